"""A Ray cluster on this machine, of one or more nodes; each has its own raylet."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

# A raylet waits 15 s for the port of an agent that takes longer to import on a busy machine, unless it is told the port.
_PORTS = ("metrics_agent_port", "metrics_export_port", "dashboard_agent_listen_port", "runtime_env_agent_port")
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


def _free_ports(n: int) -> list[int]:
    sockets = [socket.socket() for _ in range(n)]
    for each in sockets:
        each.bind(("127.0.0.1", 0))
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


class TestCluster:
    """Nodes of a cluster, to which this process is connected."""

    __test__ = False

    def __init__(self, cpus: int) -> None:
        os.environ.update(_ENVIRONMENT)
        from ray._private import services
        from ray.cluster_utils import Cluster

        services.start_api_server = lambda *args, **named: ("", None)  # a page that no test opens; it starts slowly
        self._cluster = Cluster()
        self.nodes: list[Any] = []
        self.add(cpus)

    @property
    def address(self) -> str:
        return str(self._cluster.address)

    def add(self, cpus: int) -> Any:
        """A further node."""
        head: dict[str, Any] = {} if self.nodes else {"include_dashboard": False, "no_monitor": True}
        ports = dict(zip(_PORTS, _free_ports(len(_PORTS)), strict=True))
        folder = {"temp_dir": os.environ.get("RAY_TEST_FOLDER", "/tmp/evaluand-ray")}  # short: it holds sockets
        node = self._cluster.add_node(
            wait=True, num_cpus=cpus, object_store_memory=80_000_000, **ports, **folder, **head
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
