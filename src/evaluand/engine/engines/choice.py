"""Engines by name, as the command line and experiment files choose them."""

from __future__ import annotations

from typing import Literal

from evaluand.core.errors import SpecError
from evaluand.engine.engine import Engine
from evaluand.engine.engines.local import LocalEngine

EngineKind = Literal["local", "processes", "ray"]


def choose_engine(kind: EngineKind, workers: int | None = None, address: str | None = None) -> Engine:
    """The engine of a kind.

    Args:
        workers: the number of processes or workers; by default one for each CPU.
        address: of a Ray cluster.

    Raises:
        SpecError: this kind has no such setting, or is not available here.

    Example:
        >>> choose_engine("processes", workers=2)
        ProcessEngine(2)
    """
    if address is not None and kind != "ray":
        raise SpecError(f"address is that of a Ray cluster, but the engine is {kind!r}; choose ray, or leave it out")
    if kind == "ray":
        from evaluand.engine.engines.ray import RayEngine  # Ray takes seconds to import

        return RayEngine(workers, address)
    if kind == "processes":
        from evaluand.engine.engines.processes import ProcessEngine  # multiprocessing takes a while to import

        return ProcessEngine(workers)
    if workers is not None:
        raise SpecError(
            "workers are processes or those of a cluster; choose engine processes or ray, or run: concurrency"
        )
    return LocalEngine()
