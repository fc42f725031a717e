"""The options and results that commands share for gates."""

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
    """Refuses `--junit` without gates or with a missing folder.

    Raises:
        UsageError: the options do not fit.
    """
    if junit and not gates:
        raise click.UsageError("--junit needs --gate")
    if junit and not junit.parent.is_dir():
        raise click.UsageError(f"--junit: no such folder: {junit.parent}")


def gate_facts(results: Iterable[GateResult]) -> list[Facts]:
    """Results of gates as plain data."""
    return [
        {"gate": r.gate.text, "subject": r.subject, "passed": r.passed, "message": r.message, **r.facts}
        for r in results
    ]


def conclude(results: list[Facts], junit: Path | None, *, failed: bool = False) -> None:
    """Writes the JUnit file, and exits with the code that fits the results.

    Args:
        failed: the command had an error, whatever the gates say.

    Raises:
        Exit: the command had an error, or a gate failed.
    """
    if junit:
        junit.write_bytes(junit_xml(results))
    if failed:
        raise Exit(1)
    if not all(result["passed"] for result in results):
        raise Exit(GATE_FAILED)
