"""`evaluand tradeoff solve`: the operating points of systems."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import click
from click import UsageError

from evaluand.cli.options import FILE, force_option, json_option
from evaluand.cli.output import open_output, print_json
from evaluand.cli.run import notes
from evaluand.cli.tradeoff.options import (
    EXAMPLES,
    NO_THRESHOLDS,
    Stored,
    check_form,
    check_target,
    deduplicate_option,
    files_argument,
    format_option,
    metrics_for,
    names_option,
    parse_thresholds,
    refuse_options,
    stored_options,
)
from evaluand.cli.tradeoff.output import print_table
from evaluand.cli.tradeoff.systems import rename_systems
from evaluand.core.files.json import without_infinities
from evaluand.report.facts.base import Facts
from evaluand.report.facts.results import point_facts
from evaluand.tradeoff.confidences import Confidences
from evaluand.tradeoff.files.scores import ScoreFile
from evaluand.tradeoff.files.solutions import SolutionFile
from evaluand.tradeoff.points import Tradeoff


@click.command("solve", epilog=EXAMPLES)
@files_argument
@stored_options
@names_option
@click.option(
    "--prior", type=FILE, metavar="FILE", help="Use the models and thresholds of these solutions, chosen on other data."
)
@click.option("--only", type=click.Choice(["front", "dominated"]), help="Use only these points of --prior.")
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    default="solutions",
    show_default=True,
    metavar="DIR",
    help="The folder for the solutions; those of NAME.json are written to NAME.json.",
)
@deduplicate_option
@force_option
@format_option
@json_option
def solve_command(
    files: tuple[Path, ...],
    stored: Stored,
    names: tuple[str, ...],
    prior: Path | None,
    only: str | None,
    out: Path,
    deduplicate: bool,
    force: bool,
    form: str | None,
    as_json: bool,
) -> None:
    """Compute the operating points of systems, from files of scores or from the store.

    Nothing is written unless every file can be read and solved, and inputs are never replaced. Points of stored scores
    have no thresholds and are shown, not written: evaluate, plot and pick read them from the store.
    """
    _check_options(files, stored, prior, only, form, as_json)
    if stored.of_scores:
        refuse_options(_OF_THRESHOLDS, NO_THRESHOLDS)
        with notes():
            points = rename_systems(list(stored.points()), names)
        return _show_points(points, form, as_json)
    with notes():
        earlier = SolutionFile.load(prior) if prior else None
        systems = list(stored.confidences()) if stored.names else [ScoreFile.load(file).confidences for file in files]
        systems = rename_systems(systems, names)
        inputs = [*files, *([prior] if prior else [])]
        targets = _targets([system.system for system in systems], inputs, out, force)
        solutions = [_solve(system, stored, earlier, only) for system in systems]
        solutions = [each.deduplicated() for each in solutions] if deduplicate else solutions
    out.mkdir(parents=True, exist_ok=True)
    for each, target in zip(solutions, targets, strict=True):
        with open_output(target) as file:
            each.write(file)
    _show_solutions(solutions, targets, form, as_json)


def _check_options(
    files: Sequence[Path], stored: Stored, prior: Path | None, only: str | None, form: str | None, as_json: bool
) -> None:
    check_form(form, as_json)
    if only and prior is None:
        raise UsageError("--only needs --prior")
    if stored.thresholds is not None and prior is not None:
        raise UsageError("--prior already has thresholds; leave out --thresholds")
    if bool(files) == bool(stored.names):
        raise UsageError("give either files of scores or --stored")
    if files:
        refuse_options(("by", "label", "scorer"), "needs --stored; files of scores already define it")


def _solve(confidences: Confidences, stored: Stored, earlier: SolutionFile | None, only: str | None) -> SolutionFile:
    metrics = metrics_for(stored.metrics, confidences)
    if earlier is None:
        return SolutionFile.a_posteriori(confidences, metrics, parse_thresholds(stored.thresholds))
    return SolutionFile.a_priori(confidences, metrics, earlier, None if only is None else only == "dominated")


def _targets(systems: Sequence[str], inputs: Sequence[Path], out: Path, force: bool) -> list[Path]:
    """The file of each system's solutions, by the system's name."""
    targets = [out / f"{_NOT_IN_NAMES.sub('-', system)}.json" for system in systems]
    for system, target in zip(systems, targets, strict=True):
        if targets.count(target) > 1:
            raise UsageError(f"several systems are called {system}; name each by --name")
        check_target(target, inputs, force)
    return targets


def _show_solutions(
    solutions: Sequence[SolutionFile], targets: Sequence[Path], form: str | None, as_json: bool
) -> None:
    documents: list[dict[str, Any]] = [
        {
            "system": each.system,
            "file": str(target),
            "points": each.n_solutions,
            "front": len(each.tradeoff.front()),
            "undefined": each.metadata.get("undefined", {}),
        }
        for each, target in zip(solutions, targets, strict=True)
    ]
    if as_json:
        return print_json({"solutions": documents})
    rows = [
        (one["system"], one["points"], one["front"], each.n_undefined, one["file"])
        for one, each in zip(documents, solutions, strict=True)
    ]
    print_table(("system", "points", "on the front", "undefined", "written"), rows, form)


def _show_points(systems: Sequence[Tradeoff], form: str | None, as_json: bool) -> None:
    documents: list[Facts] = [
        {
            "system": points.system,
            "points": [
                point_facts(points, place) | {"front": bool(on_front)} for place, on_front in enumerate(points.on_front)
            ],
        }
        for points in systems
    ]
    if as_json:
        return print_json({"systems": without_infinities(documents)})
    rows = [
        (each["system"], point["model"], name, *one.values(), "yes" if point["front"] else "")
        for each in documents
        for point in each["points"]
        for name, one in point["values"].items()
    ]
    print_table(("system", "point", "metric", "value", "low", "high", "front"), rows, form)


_OF_THRESHOLDS: Final = ("thresholds", "by", "prior", "only", "out", "deduplicate", "force")
_NOT_IN_NAMES: Final = re.compile(r"[^\w. -]|^[. ]")
