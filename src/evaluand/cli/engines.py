"""Options that choose where calls are made, and what a step says about it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])

address_option = click.option(
    "--address", metavar="ADDRESS", help="The Ray cluster, such as head:6379 or auto; by default RAY_ADDRESS."
)


def engine_options(command: F) -> F:
    """Adds --engine, --workers and --address."""
    kind = click.option(
        "--engine",
        type=click.Choice(("local", "processes", "ray")),
        help="Where calls are made: here, in processes of this machine, or in workers of a Ray cluster.",
    )
    workers = click.option(
        "--workers",
        type=click.IntRange(min=1),
        metavar="N",
        help="How many processes or workers; by default one for each CPU.",
    )
    return kind(workers(address_option(command)))


def engine_chosen(engine: Any, kind: str | None, workers: int | None, address: str | None) -> Any:
    """The engine of an experiment, with what the options change.

    Raises:
        SpecError: options contradict each other, or the engine is not available here.
    """
    from evaluand.engine.engines.choice import choose_engine  # which imports the modules of calls

    if (kind, workers, address) == (None, None, None):
        return engine
    own = engine.facts.get("kind", "local")
    if kind in (None, own):
        kind, workers = own, workers or engine.facts.get("workers")
        address = address or getattr(engine, "address", None)
    return choose_engine(kind, workers, address)  # type: ignore[arg-type]
