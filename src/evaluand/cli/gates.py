"""The options and results that commands share for gates, also as JUnit XML, which build servers show."""

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import click
from click.exceptions import Exit

from evaluand.cli.options import name_store
from evaluand.cli.output import show
from evaluand.comparison.checking import GateResult
from evaluand.comparison.rule import BASELINE, Gate
from evaluand.core.files.paths import replaced
from evaluand.report.facts.base import Facts
from evaluand.report.facts.gates import list_gates
from evaluand.report.terminal.comparison import gates_table
from evaluand.report.text import safe

GATE_FAILED = 3


def require_gates(gates: Sequence[Any], junit: Path | None, where: str = "--gate") -> None:
    """Refuses `--junit` without gates or with a missing folder.

    Args:
        where: gates are given.

    Raises:
        UsageError: the options do not fit.
    """
    if junit and not gates:
        raise click.UsageError(f"--junit needs {where}")
    if junit and not junit.parent.is_dir():
        raise click.UsageError(f"--junit: no such folder: {junit.parent}")


def look_at_any_time(gates: list[Gate], *, anytime: bool, where: str) -> list[Gate]:
    """The gates, with `--anytime` with bounds that hold however often one looks.

    Args:
        where: gates are given.

    Raises:
        UsageError: there are none.
    """
    if anytime and not gates:
        raise click.UsageError(f"--anytime needs {where}")
    return [gate.at_any_time() for gate in gates] if anytime else gates


def has_results(gate: Gate, tasks: Sequence[str], known: Sequence[str], baseline: str | None) -> bool:
    """Whether there are results that a gate can compare; notes the task that it lacks.

    Args:
        tasks: those with results; `known` are those of the experiment file.
        baseline: the task of the file that gates call `baseline`.
    """
    reference = baseline if gate.baseline == BASELINE else gate.baseline
    if reference in known and reference not in tasks:
        click.echo(f"note: gate {safe(gate.text)!r} needs the task {safe(reference)}; not checked", err=True)
        return False
    return [*tasks] != [reference]


def show_gates(results: Sequence[Facts]) -> None:
    """Prints the results of gates below what was printed before."""
    if results:
        click.echo()
        show(gates_table(results))


def gate_facts(results: Iterable[GateResult]) -> list[Facts]:
    """Results of gates as plain data, with commands that name the store."""
    return [{**facts, "message": name_store(facts["message"])} for facts in list_gates(results)]


def conclude(results: list[Facts], junit: Path | None, caveats: Sequence[str] = (), *, failed: bool = False) -> None:
    """Writes the JUnit file, and exits with the code that fits the results.

    Args:
        caveats: of the numbers behind the gates.
        failed: the command had an error, whatever the gates say.

    Raises:
        Exit: the command had an error, or a gate failed.
    """
    if junit:
        with replaced(junit) as file:
            file.write(junit_xml(results, caveats))
    if failed:
        raise Exit(1)
    if not all(result["passed"] for result in results):
        raise Exit(GATE_FAILED)


_NOT_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")


def junit_xml(results: Sequence[Mapping[str, Any]], caveats: Sequence[str] = ()) -> bytes:
    """A test suite with a case for each gate and evaluation.

    Args:
        results: with `gate`, `subject`, `passed` and `message`.
        caveats: of the numbers behind them.

    Example:
        >>> junit_xml([{"gate": "accuracy >= 1", "subject": "bot", "passed": True, "message": "1"}]).count(b"<testcase")
        1
    """
    failed = sum(not result["passed"] for result in results)
    suite = ElementTree.Element("testsuite", name="evaluand", tests=str(len(results)), failures=str(failed))
    for result in results:
        case = ElementTree.SubElement(suite, "testcase", name=_xml(result["gate"]), classname=_xml(result["subject"]))
        if result["passed"]:
            ElementTree.SubElement(case, "system-out").text = _xml(result["message"])
        else:
            failure = ElementTree.SubElement(case, "failure", message=_xml(result["message"]))
            failure.text = _xml(f"{result['gate']}\n{result['message']}")
    if caveats:
        ElementTree.SubElement(suite, "system-out").text = _xml("\n".join(caveats))
    return bytes(ElementTree.tostring(suite, encoding="utf-8", xml_declaration=True))


def _xml(text: str) -> str:
    """Text without the characters that XML cannot hold."""
    return _NOT_XML.sub("\ufffd", text)
