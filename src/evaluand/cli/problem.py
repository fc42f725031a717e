"""`evaluand problem`: what a problem document says, and whether its data fit it."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click
from click.exceptions import Exit

from evaluand.cli.options import Group, json_option
from evaluand.cli.output import condensed, print_json
from evaluand.core.errors import DataError, Fault, SpecError
from evaluand.interop.d3m.folder import ProblemFolder, examine_folder
from evaluand.interop.d3m.judge import scorable
from evaluand.interop.d3m.truth import tested
from evaluand.problem.problem import Criterion, Division, Problem
from evaluand.report.facts.base import Facts
from evaluand.report.text import safe

_EXAMPLES = """\b
Examples:
  evaluand problem check 185_baseball
  evaluand problem show 185_baseball --part TEST --json
"""

_FOLDER = click.argument("folder", metavar="FOLDER|problemDoc.json", type=click.Path(exists=True, path_type=Path))
_PART = click.option("--part", metavar="PART", help="TRAIN, TEST or SCORE, where each has documents of its own.")


@click.group("problem", cls=Group, epilog=_EXAMPLES)
def command() -> None:
    """Problems as documents: problemDoc.json with its datasets and splits."""


@command.command("check", epilog=_EXAMPLES)
@_FOLDER
@_PART
@json_option
def check(folder: Path, part: str | None, as_json: bool) -> None:
    """Tell everything that is wrong with a problem's documents and data, and what is odd.

    Also why no predictions could be scored: metrics that do not fit the target values. A document without its data is
    checked by itself. Exits 1 if anything is wrong.
    """
    faults, notes = _checked(folder, part)
    if as_json:
        print_json({"ok": not faults, "faults": [*map(_plain, faults)], "notes": [*map(_plain, notes)]})
    else:
        for word, found in (("fault", faults), ("note ", notes)):
            for line in condensed(found):
                click.echo(f"{word}  {safe(line)}")
        count = f"{len(faults):,} fault{'s' * (len(faults) != 1)}"
        is_ = "is whole" if all(note.code != "no_data" for note in notes) else "is a sound document"
        click.echo(count if faults else f"ok: {safe(str(folder))} {is_}")
    if faults:
        raise Exit(1)


@command.command("show", epilog=_EXAMPLES)
@_FOLDER
@_PART
@json_option
def show(folder: Path, part: str | None, as_json: bool) -> None:
    """Show what is to be predicted, from which data, by which split, and how it is judged."""
    found, faults, _ = _examined(folder, part)
    if found is None:
        raise DataError(faults)
    if as_json:
        print_json({"document": str(found.document), "problem": asdict(found.problem), **_data(found)})
        return
    for name, told in _told(found.problem, found):
        click.echo(f"{name:<9} {safe(told)}")


def _examined(folder: Path, part: str | None) -> tuple[ProblemFolder | None, list[Fault], list[Fault]]:
    try:
        found, findings = examine_folder(folder, part)
    except DataError as error:
        return None, [*error.faults], []
    return found, findings.faults, findings.notes


def _checked(path: Path, part: str | None) -> tuple[list[Fault], list[Fault]]:
    """The faults and notes of a problem, or of its document alone."""
    found, faults, notes = _examined(path, part)
    codes = {fault.code for fault in faults}
    if path.is_file() and "no_such_dataset" in codes and codes <= {"no_such_dataset", "no_such_file"}:
        alone = "; the document alone was checked"
        return [], [*notes, *(Fault(fault.where, fault.message + alone, code="no_data") for fault in faults)]
    if found is None:
        return faults, notes
    try:
        task, findings = tested(found, None, part)
        return findings.faults or [*(scorable(task) if task else ())], notes
    except DataError as error:
        return [*error.faults], notes
    except SpecError as error:  # nothing to predict, or nothing to hold predictions to
        if not found.problem.targets:
            return [Fault(str(found.document), str(error), code="empty")], notes
        told = "; whether the metrics fit the target values was not checked"
        return [], [*notes, Fault(str(found.document), str(error).partition("; give")[0] + told, code="no_truth")]


def _plain(fault: Fault) -> Facts:
    return {"where": fault.where, "code": fault.code, "message": fault.message}


def _data(found: ProblemFolder) -> Facts:
    data = found.dataset(truth=False)
    return {"examples": len(data), "hidden": found.hidden, "tested": _tested(found)}


def _tested(found: ProblemFolder) -> list[list[int]] | None:
    """How many examples each fold of each repeat tests."""
    if found.problem.division is None:
        return None
    folds = found.folds()
    return [[len(folds.test(repeat, fold)) for fold in range(folds.count)] for repeat in range(len(folds.numbers))]


def _told(problem: Problem, found: ProblemFolder) -> list[tuple[str, str]]:
    name = f" ({problem.name})" if problem.name else ""
    data, tested = _data(found), _tested(found)
    lines = [
        ("problem", f"{problem.id}{name}, version {problem.version}"),
        ("task", ", ".join([*problem.task_types, *problem.sub_types, *problem.keywords])),
    ]
    for dataset in problem.datasets:
        targets = ", ".join(f"{target.name} (column {target.column})" for target in dataset.targets)
        lines.append(("dataset", f"{dataset.id}: {targets or 'no targets'}"))
    hidden = ", target values hidden" if data["hidden"] else ""
    lines.append(("examples", f"{data['examples']:,}{hidden}"))
    if problem.division is not None and tested is not None:
        sizes = " | ".join(", ".join(f"{size:,}" for size in repeat) for repeat in tested)
        lines.append(("split", f"{_of_division(problem.division)}; tested: {sizes}"))
    lines += [("judged by", _of_criterion(criterion)) for criterion in problem.criteria]
    return lines


def _of_division(division: Division) -> str:
    told = f"{division.folds} folds" if division.method == "folds" else "hold-out"
    told += f" of {division.test:g}" if division.test is not None else ""
    return told + (", stratified" if division.stratified else "") + f", {division.file}"


def _of_criterion(criterion: Criterion) -> str:
    given = {"k": criterion.k, "positive": criterion.positive, "jointly": criterion.jointly or None}
    told = ", ".join(f"{name} {value}" for name, value in given.items() if value is not None)
    return criterion.metric + (f" ({told})" if told else "")
