"""Workers of a Ray cluster: for work that needs more than one machine.

Plain actors of Ray Core. Its data library loses whole blocks at one bad row, and what it retries is not known to the
journal; here each unit is given to one worker, and kept or given again.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any, Final, NamedTuple

from evaluand.core.errors import EngineError, SpecError
from evaluand.engine.engine import Keep, Recipe, U
from evaluand.engine.engines.processes import check_workers, refuse_budget
from evaluand.engine.policy import Policy

_CONNECT: Final = 10.0  # seconds
_MOST_CALLS: Final = 4  # of methods of a worker at once: `take`, `give`, `begin` and `finish`


class RayEngine:
    """Makes calls in workers of a Ray cluster, each `concurrency` at once.

    The workers have the evaluand of this process; the user's code is sent to them. What that code reads (files,
    environment variables, installed packages) must be on their machines. They end with this process.

    Args:
        workers: how many; by default one for each CPU of the cluster.
        address: of the cluster, such as `ray://head:10001`, `head:6379` or `auto`; by default that in RAY_ADDRESS, else
            a cluster is started on this machine, and ends with this process.

    Raises:
        SpecError: Ray is not installed, or `workers` is no number.
    """

    def __init__(self, workers: int | None = None, address: str | None = None) -> None:
        self.workers, self.address = check_workers(workers), address
        _require_ray()
        self._idle: list[Any] = []  # actors between two maps
        self._modules = b""  # what they have imported

    def __repr__(self) -> str:
        return f"RayEngine({self.workers}, {self.address!r})"

    def check(self, policy: Policy) -> None:
        refuse_budget(policy)

    @property
    def facts(self) -> Mapping[str, Any]:
        return {"kind": "ray"} | ({} if self.workers is None else {"workers": self.workers})

    def map_lines(self, units: Iterator[U], recipe: Recipe[U], keep: Keep[U], policy: Policy) -> None:
        from evaluand.engine.engines.ray_map import RayMap

        connect(self.address)
        RayMap(self, units, recipe, keep, policy).run()

    def take_actors(self, modules: bytes) -> list[Any]:
        """The actors of earlier maps that have imported the same modules; the others end."""
        actors, self._idle = self._idle, []
        if modules == self._modules:
            return actors
        self._modules = modules
        for actor in actors:
            end(actor)
        return []

    def give_back(self, actor: Any) -> None:
        """Keeps an actor for the next map."""
        self._idle.append(actor)

    @property
    def size(self) -> int:
        """The number of workers."""
        return self.workers or max(1, n_cpus())

    def start(self) -> Any:
        """A new actor; it may have to wait for a machine."""
        import ray

        from evaluand.engine.engines.ray_worker import Worker

        share = min(1.0, max(0.01, n_cpus() / self.size))  # so that all have a place, however many they are
        options = {"num_cpus": share, "max_concurrency": _MOST_CALLS, "scheduling_strategy": "SPREAD"}
        return ray.remote(Worker).options(**options).remote()


class ClusterNode(NamedTuple):
    """A machine of a cluster.

    Attributes:
        address: its name or address.
        cpus: that it has.
        free: CPUs that no worker uses.
        is_alive: whether it can be used.
    """

    address: str
    cpus: float
    free: float
    is_alive: bool


def nodes(address: str | None) -> list[ClusterNode]:
    """The machines of a cluster.

    Raises:
        EngineError: it does not answer.
    """
    _require_ray()
    connect(address)
    import ray
    from ray._private.state import available_resources_per_node

    free = available_resources_per_node()
    return [
        ClusterNode(
            str(node.get("NodeName") or node["NodeManagerAddress"]),
            float(node["Resources"].get("CPU", 0.0)),
            float(free.get(node["NodeID"], {}).get("CPU", 0.0)),
            bool(node["Alive"]),
        )
        for node in ray.nodes()
    ]


def connect(address: str | None) -> None:
    """Connects this process with a cluster, unless it is connected already.

    Raises:
        EngineError: the cluster does not answer.
    """
    import ray

    if ray.is_initialized():
        return
    _require_listener(address)
    try:
        ray.init(address=address, include_dashboard=False if address is None else None, logging_level="ERROR")
    except Exception as error:
        where = f"the Ray cluster at {address}" if address else "a Ray cluster on this machine"
        what = str(error).strip().split("\n")[0]
        raise EngineError(
            f"{where} does not answer: {what}; start one with `ray start --head`, see `ray status`, and set"
            " RAY_AUTH_MODE=token here if `ray start` says that token authentication is enabled"
        ) from error


def _require_listener(address: str | None) -> None:
    """Raises an EngineError if nothing listens at an address, for which Ray would wait without end."""
    host, _, port = (address or "").removeprefix("ray://").rpartition(":")
    if not host or not port.isdigit():  # `auto`, or none
        return
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=_CONNECT).close()
    except (OSError, OverflowError) as error:
        raise EngineError(
            f"no Ray cluster answers at {address}: {error}; start one with `ray start --head`, and give its address"
        ) from error


def end(actor: Any) -> None:
    """Ends an actor at once."""
    import ray

    with suppress(Exception):  # it has ended already, or its machine cannot be reached
        ray.kill(actor, no_restart=True)


def n_cpus() -> int:
    """The CPUs of the cluster."""
    import ray

    return int(ray.cluster_resources().get("CPU", 1))


def _require_ray() -> None:
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # Ray reports to its makers otherwise
    try:
        import ray  # noqa: F401 - only whether it is there
    except ImportError as error:
        raise SpecError("the engine ray needs Ray; pip install 'evaluand[ray]'") from error
