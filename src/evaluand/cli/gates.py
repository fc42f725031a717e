"""What commands share that check gates: the options, and how results are told."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import click
from click.exceptions import Exit

from evaluand.cli.options import LINE
from evaluand.comparison.gates import GateResult
from evaluand.report.facts.base import Facts
from evaluand.report.junit import junit_xml

GATE_FAILED = 3

_GATE = click.option(
    "--gate", "gates", multiple=True, type=LINE, metavar="RULE", help="A rule that must hold; repeatable."
)
_JUNIT = click.option(
    "--junit", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE", help="Write the gates as JUnit XML."
)


def gate_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options `--gate` and `--junit`."""
    return _GATE(_JUNIT(command))


def require_gates(gates: tuple[str, ...], junit: Path | None) -> None:
    """Refuses a file of gates without gates.

    Raises:
        UsageError: that is so.
    """
    if junit and not gates:
        raise click.UsageError("--junit writes gates: give --gate as well")
    if junit and not junit.parent.is_dir():
        raise click.UsageError(f"--junit: there is no folder {junit.parent}")


def gate_facts(results: Iterable[GateResult]) -> list[Facts]:
    """Results of gates as plain data."""
    return [
        {"gate": r.gate.text, "subject": r.subject, "passed": r.passed, "message": r.message, **r.facts}
        for r in results
    ]


def conclude(results: list[Facts], junit: Path | None, *, failed: bool = False) -> None:
    """Writes the results where they were asked for.

    Args:
        failed: there was an error that ends the command, whatever the gates say.

    Raises:
        Exit: that is so, or a gate failed.
    """
    if junit:
        junit.write_bytes(junit_xml(results))
    if failed:
        raise Exit(1)
    if not all(result["passed"] for result in results):
        raise Exit(GATE_FAILED)
