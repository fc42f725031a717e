"""Options that choose where calls are made, and what a step says about it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import click

from evaluand.cli.command import option

address_option = option("The Ray cluster, such as head:6379 or auto; by default RAY_ADDRESS.", metavar="ADDRESS")


@dataclass(frozen=True, kw_only=True)
class EngineOptions:
    """Options that choose where calls are made."""

    engine: Literal["local", "processes", "ray"] | None = option(
        "Where calls are made, `concurrency` in each: here, in processes, or in workers of a Ray cluster."
    )
    workers: int | None = option(
        "How many processes or workers; by default one for each CPU.", type=click.IntRange(min=1), metavar="N"
    )
    address: str | None = address_option


def engine_chosen(engine: Any, options: EngineOptions) -> Any:
    """The engine of an experiment, with what the options change.

    Raises:
        SpecError: options contradict each other, or the engine is not available here.
    """
    from evaluand.engine.engines.choice import choose_engine  # which imports the modules of calls

    if options == EngineOptions(engine=None, workers=None, address=None):
        return engine
    kind, workers, address = options.engine, options.workers, options.address
    own = engine.facts.get("kind", "local")
    if kind in (None, own):
        kind, workers = own, workers or engine.facts.get("workers")
        address = address or getattr(engine, "address", None)
    return choose_engine(kind, workers, address)
