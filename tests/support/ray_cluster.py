"""A Ray cluster on this machine, of one or more nodes; each has its own raylet."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

_PORTS = ("dashboard_agent_listen_port", "metrics_agent_port", "metrics_export_port")  # -1: there is none
_ENVIRONMENT = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_agent_register_timeout_ms": "200000",
    "RAY_worker_register_timeout_seconds": "200",
    "RAY_raylet_start_wait_time_s": "200",
    "RAY_health_check_initial_delay_ms": "2000",
    "RAY_health_check_period_ms": "1000",
    "RAY_health_check_timeout_ms": "5000",
    "RAY_health_check_failure_threshold": "3",
}


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def _start_lightly() -> None:
    """Lets nodes start on a busy machine, where their agents need longer to import than a raylet waits for their ports.

    The files with the ports, which the agents write when they have started, are written before; and the page of Ray,
    which no test opens, is not started.
    """
    from ray._private import services

    start_raylet = services.start_raylet

    def start(*args: Any, **named: Any) -> Any:
        node, session = args[2], Path(args[11])
        for name in _PORTS:
            (session / f"{name}_{node}").write_text("-1")
        return start_raylet(*args, **named)

    services.start_raylet = start
    services.start_api_server = lambda *args, **named: ("", None)


class TestCluster:
    """Nodes of a cluster, to which this process is connected."""

    __test__ = False

    def __init__(self, cpus: int) -> None:
        os.environ.update(_ENVIRONMENT)
        from ray.cluster_utils import Cluster

        _start_lightly()
        self._cluster = Cluster()
        self.nodes: list[Any] = []
        self.add(cpus)

    @property
    def address(self) -> str:
        return str(self._cluster.address)

    def add(self, cpus: int) -> Any:
        """A further node."""
        head: dict[str, Any] = {} if self.nodes else {"include_dashboard": False, "no_monitor": True}
        node = self._cluster.add_node(
            wait=True,
            num_cpus=cpus,
            object_store_memory=80_000_000,
            runtime_env_agent_port=_free_port(),
            **head,
        )
        self.nodes.append(node)
        return node

    def kill(self, node: Any) -> None:
        """Ends a node at once, with its workers."""
        self.nodes.remove(node)
        self._cluster.remove_node(node, allow_graceful=False)

    def close(self) -> None:
        import ray

        ray.shutdown()
        self._cluster.shutdown()


@contextmanager
def cluster(cpus: int = 4) -> Iterator[TestCluster]:
    """A cluster with one node, for the block."""
    import ray

    started = TestCluster(cpus)
    try:
        ray.init(address=started.address, logging_level="ERROR", log_to_driver=False)
        yield started
    finally:
        started.close()
