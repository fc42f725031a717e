"""`evaluand problem`: what a problem document says, and whether its data fit it."""

from dataclasses import asdict
from pathlib import Path

import click
from click.exceptions import Exit

from evaluand.cli.command import argument, make_command, option
from evaluand.cli.options import json_option
from evaluand.cli.output import condensed, print_json
from evaluand.core.errors import DataError, Fault, SpecError, plural
from evaluand.predictions.problem.formats import OpenProblem, format_of
from evaluand.predictions.problem.parts import scoring_faults
from evaluand.predictions.problem.problem import Criterion, Division, Problem
from evaluand.report.facts.base import Facts
from evaluand.report.text import safe

_EXAMPLES = """\b
Examples:
  evaluand problem check 185_baseball
  evaluand problem show 185_baseball --part TEST --json
"""

_FOLDER = argument(metavar="FOLDER|problemDoc.json", type=click.Path(exists=True, path_type=Path))
_PART = option("TRAIN, TEST or SCORE, if each has its own documents.", metavar="PART")


@click.group("problem", epilog=_EXAMPLES)
def command() -> None:
    """Problems as documents: problemDoc.json with its datasets and splits."""


@make_command("check", command, short_help="Report faults in documents and data.", epilog=_EXAMPLES)
def check(folder: Path = _FOLDER, part: str | None = _PART, as_json: bool = json_option) -> None:
    """Report everything that is wrong or odd in a problem's documents and data.

    This includes why no predictions could be scored: metrics that do not fit the target values. A document without its
    data is checked alone. Exits 1 if anything is wrong.
    """
    faults, notes = _check(folder, part)
    if as_json:
        print_json({"ok": not faults, "faults": [*map(_facts, faults)], "notes": [*map(_facts, notes)]})
    else:
        for label, found in (("fault", faults), ("note ", notes)):
            for line in condensed(found):
                click.echo(f"{label}  {safe(line)}")
        with_data = all(note.code != "no_data" for note in notes)
        verdict = "is complete and consistent" if with_data else "is a valid document"
        click.echo(plural(len(faults), "fault") if faults else f"ok: {safe(str(folder))} {verdict}")
    if faults:
        raise Exit(1)


@make_command("show", command, short_help="Show targets, data, split and metrics.", epilog=_EXAMPLES)
def show(folder: Path = _FOLDER, part: str | None = _PART, as_json: bool = json_option) -> None:
    """Show what is to be predicted, from which data, by which split, and how it is judged."""
    found, faults, _ = _examine(folder, part)
    if found is None:
        raise DataError(faults)
    if as_json:
        print_json({"document": str(found.document), "problem": asdict(found.problem), **_data_facts(found)})
        return
    for name, text in _describe(found.problem, found):
        click.echo(f"{name:<9} {safe(text)}")


def _check(path: Path, part: str | None) -> tuple[list[Fault], list[Fault]]:
    """The faults and notes of a problem, or of its document alone."""
    found, faults, notes = _examine(path, part)
    codes = {fault.code for fault in faults}
    if path.is_file() and "no_such_dataset" in codes and codes <= {"no_such_dataset", "no_such_file"}:
        alone = "; only the document was checked"
        return [], [*notes, *(Fault(fault.where, fault.message + alone, code="no_data") for fault in faults)]
    if found is None:
        return faults, notes
    try:
        truth, findings = format_of(path).read_truth(found, None, part)
        return [*faults, *(findings.faults or (scoring_faults(truth) if truth else ()))], notes
    except DataError as error:
        return [*faults, *error.faults], notes
    except SpecError as error:  # there is no target, or no truth
        if not found.problem.targets:
            return [*faults, Fault(str(found.document), str(error), code="empty")], notes
        message = str(error).partition("; give")[0] + "; whether the metrics fit the target values was not checked"
        return faults, [*notes, Fault(str(found.document), message, code="no_truth")]


def _examine(folder: Path, part: str | None) -> tuple[OpenProblem | None, list[Fault], list[Fault]]:
    try:
        found, findings = format_of(folder).examine(folder, part)
    except DataError as error:
        return None, [*error.faults], []
    return found, findings.faults, findings.notes


def _facts(fault: Fault) -> Facts:
    return {"where": fault.where, "code": fault.code, "message": fault.message}


def _data_facts(found: OpenProblem) -> Facts:
    data = found.dataset(truth=False)
    tested_by = None if found.tested_by is None else str(found.tested_by)
    return {"examples": len(data), "hidden": found.hidden, "tested": _count_tested(found), "tested_by": tested_by}


def _count_tested(found: OpenProblem) -> list[list[int]] | None:
    """How many examples each fold of each repeat tests."""
    if found.tested_by is None:
        return None
    folds = found.folds()
    return [[len(folds.test(repeat, fold)) for fold in range(folds.count)] for repeat in range(len(folds.numbers))]


def _describe(problem: Problem, found: OpenProblem) -> list[tuple[str, str]]:
    name = f" ({problem.name})" if problem.name else ""
    data, tested = _data_facts(found), _count_tested(found)
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
        assert found.tested_by is not None  # else nothing were counted
        lines.append(("split", f"{_describe_division(problem.division, found.tested_by.name)}; tested: {sizes}"))
    lines += [("judged by", _describe_criterion(criterion)) for criterion in problem.criteria]
    return lines


def _describe_division(division: Division, file: str) -> str:
    method = f"{division.folds} folds" if division.method == "folds" else "hold-out"
    share = f" of {division.test:g}" if division.test is not None else ""
    return method + share + (", stratified" if division.stratified else "") + f", {file}"


def _describe_criterion(criterion: Criterion) -> str:
    parameters = {"k": criterion.k, "positive": criterion.positive, "jointly": criterion.jointly or None}
    listed = ", ".join(f"{name} {value}" for name, value in parameters.items() if value is not None)
    return criterion.metric + (f" ({listed})" if listed else "")
