"""`evaluand tradeoff evaluate` and `plot`: indicators and figures of systems from files of solutions and the store."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final, TypeVar

import click
import numpy as np
from click import UsageError

from evaluand.cli.options import FILE, TARGET, force_option, json_option
from evaluand.cli.output import open_output, print_json
from evaluand.cli.run import notes
from evaluand.cli.tradeoff.options import (
    EXAMPLES,
    NO_THRESHOLDS,
    OF_STORED,
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
from evaluand.core.errors import EvaluandWarning, SpecError, collect_warnings
from evaluand.core.files.json import without_infinities
from evaluand.report.html.tradeoff import write_page
from evaluand.report.text import safe
from evaluand.tradeoff.confidences import Confidences
from evaluand.tradeoff.files.scores import ScoreFile
from evaluand.tradeoff.files.solutions import SolutionFile
from evaluand.tradeoff.front import ROUNDING
from evaluand.tradeoff.indicators import compare_systems
from evaluand.tradeoff.points import Tradeoff

System = TypeVar("System", Confidences, Tradeoff)
Item = TypeVar("Item", SolutionFile, Confidences, Tradeoff)


def read_systems(files: Sequence[Path], stored: Stored, names: Sequence[str], deduplicate: bool) -> dict[str, Tradeoff]:
    """The points of each file and of each stored system, with the metrics in the order of the first."""
    if not files and not stored.names:
        raise UsageError("give files of solutions, or --stored")
    if not stored.names:
        refuse_options(OF_STORED, "needs --stored; files of solutions already define it")
    if stored.of_scores:
        refuse_options(("thresholds", "by"), NO_THRESHOLDS)
    with notes():
        points = list(_points_at_thresholds(files, stored, deduplicate))
        if stored.of_scores:
            for each, messages in _collect_notes(stored.points()):
                each = replace(each, notes=messages)
                points.append(each.deduplicated() if deduplicate else each)
        systems = rename_systems(points, names)
    for each in systems:
        if [other.system for other in systems].count(each.system) > 1:
            raise UsageError(f"several systems are called {each.system}; name each by --name to compare them")
    return {each.system: each for each in systems}


def rename_systems(systems: list[System], names: Sequence[str]) -> list[System]:
    """The systems under the names of --name, if there are any."""
    if not names:
        return systems
    if not all(map(str.strip, names)):
        raise UsageError("--name must not be empty")
    if len(names) != len(systems):
        raise UsageError(f"--name: give one name per system; there are {len(systems)} systems and {len(names)} names")
    return [replace(each, system=name) for each, name in zip(systems, names, strict=True)]


def add_bands(systems: dict[str, Tradeoff], score_files: Sequence[Path]) -> dict[str, Tradeoff]:
    """The systems with the rows of their score files, and with bands where the rows are known."""
    result = dict(systems)
    for file in score_files:
        with notes():
            confidences = ScoreFile.load(file).confidences
        name = confidences.system if len(systems) > 1 or len(score_files) > 1 else next(iter(systems))
        if name not in result:
            raise SpecError(f"{file}: no solutions are called {name}; there are: {', '.join(map(safe, result))}")
        result[name] = _with_rows(file, name, result[name], confidences)
    return {name: points if points.confidences is None else points.with_bands() for name, points in result.items()}


def _points_at_thresholds(files: Sequence[Path], stored: Stored, deduplicate: bool) -> Iterator[Tradeoff]:
    """The points of files of solutions, and those of stored models."""
    rows: list[Confidences | None] = [None] * len(files)
    solutions = [*_collect_notes(SolutionFile.load(file) for file in files)]
    if stored.names and not stored.of_scores:
        thresholds = parse_thresholds(stored.thresholds)
        for confidences, messages in _collect_notes(stored.confidences()):
            metrics = metrics_for(stored.metrics, confidences)
            solutions.append((SolutionFile.a_posteriori(confidences, metrics, thresholds), messages))
            rows.append(confidences)
    order = list(solutions[0][0].points) if solutions else []
    points = _collect_notes(_ordered_points(each, order, deduplicate) for each, _ in solutions)
    for (each, more), (_, messages), known in zip(points, solutions, rows, strict=True):
        yield replace(each, confidences=known, notes=(*messages, *more))


def _collect_notes(items: Iterator[Item]) -> Iterator[tuple[Item, tuple[str, ...]]]:
    """Each item with the warnings issued while it was computed."""
    while True:
        with collect_warnings() as messages:
            item = next(items, None)
        if item is None:
            return
        yield item, tuple(messages)


def _ordered_points(solutions: SolutionFile, order: Sequence[str], deduplicate: bool) -> Tradeoff:
    """The points of a file, with its metrics in a given order if they are the same."""
    if set(order) == set(solutions.points):
        solutions = replace(solutions, points={metric: solutions.points[metric] for metric in order})
    solutions = solutions.deduplicated() if deduplicate else solutions
    if solutions.n_undefined:
        counts = f"{solutions.n_undefined} of {solutions.n_solutions} points"
        message = f"{counts} rest on undefined values, which count as 0: a difference of 0 is perfectly fair"
        warnings.warn(f"{solutions.system}: {message}", EvaluandWarning, stacklevel=2)
    return solutions.tradeoff


def _with_rows(file: Path, name: str, points: Tradeoff, confidences: Confidences) -> Tradeoff:
    """Points with the rows they were computed from.

    Raises:
        SpecError: the points have other values on these rows.
    """
    points = replace(points, threshold=_snap_to_scores(points, confidences), confidences=confidences)
    distance = np.abs(points.at(confidences, "zero").value - points.value)
    if other := int((distance > _SAME).any(axis=1).sum()):
        raise SpecError(
            f"{file}: {other:,} of the {len(points):,} solutions {name} have other values on these scores, by up to "
            f"{np.nanmax(distance):.3g}; give the scores they were computed from, with all their digits"
        )
    return points


def _snap_to_scores(points: Tradeoff, confidences: Confidences) -> np.ndarray:
    """The thresholds; one that differs from a score by rounding alone is replaced by the score.

    They differ if a store has the confidence in the other class, and a file that in the positive class.
    """
    thresholds = points.threshold.copy()
    for number in np.unique(points.model):
        places, scores = points.model == number, np.unique(confidences.probabilities(points.models[number]))
        nearest = scores[np.searchsorted(scores, thresholds[places] - ROUNDING).clip(max=len(scores) - 1)]
        near = np.isclose(nearest, thresholds[places], rtol=0, atol=ROUNDING)
        thresholds[places] = np.where(near, nearest, thresholds[places])
    return thresholds


_SAME: Final = 1e-6


@click.command("evaluate", epilog=EXAMPLES)
@files_argument
@stored_options
@names_option
@deduplicate_option
@format_option
@json_option
def evaluate_command(
    files: tuple[Path, ...],
    stored: Stored,
    names: tuple[str, ...],
    deduplicate: bool,
    form: str | None,
    as_json: bool,
) -> None:
    """Compare the fronts of systems by indicators, from files of solutions or from the store.

    hv hypervolume, ud uniformity, as and os average and overall spread, onvg points on the front (onvgr: share of all
    points, relative_onvg: share of the system with the most), area of the radar chart: higher is better. igd_plus and
    epsilon: how far a system falls short of the best of all systems together, lower is better.
    """
    check_form(form, as_json)
    indicators = compare_systems(read_systems(files, stored, names, deduplicate))
    if as_json:
        return print_json({"indicators": without_infinities(indicators)})
    rows = [(name, *(_cell(key, one[key]) for key in _INDICATORS)) for name, one in indicators.items()]
    print_table(("system", *_INDICATORS), rows, form)


def _cell(indicator: str, value: float) -> float:
    return int(value) if indicator in _COUNTS else value


_INDICATORS: Final = ("hv", "ud", "as", "os", "onvg", "onvgr", "relative_onvg", "area", "igd_plus", "epsilon")
_COUNTS: Final = ("onvg",)


@click.command("plot", epilog=EXAMPLES)
@files_argument
@stored_options
@names_option
@click.option(
    "--out",
    required=True,
    type=TARGET,
    metavar="FILE",
    help="A figure: .png, .svg or .pdf; or an interactive page: .html.",
)
@click.option("--kind", type=click.Choice(["pareto", "radar"]), help="The kind of figure.  [default: pareto]")
@click.option(
    "--scores",
    multiple=True,
    type=FILE,
    metavar="FILE",
    help="The scores that the solutions of the same name were computed from, for bands around the fronts and rates of"
    " groups in a page; repeatable.",
)
@click.option("--hide-dominated", is_flag=True, help="Draw only the fronts, in a figure of points.")
@deduplicate_option
@force_option
def plot_command(
    files: tuple[Path, ...],
    stored: Stored,
    names: tuple[str, ...],
    out: Path,
    kind: str | None,
    scores: tuple[Path, ...],
    hide_dominated: bool,
    deduplicate: bool,
    force: bool,
) -> None:
    """Draw the points of systems and their fronts, or a radar chart of indicators; from files or from the store.

    Two metrics are drawn in a plane, three in space, more on parallel axes. Files of solutions have no intervals: with
    --scores the fronts get bands that hold for all points of a model at once, with 95 %; a page then also has the rates
    of groups, which `pick --rates` draws for one point. Stored models have both without it.
    """
    from evaluand.report import matplotlib_figures

    page = out.suffix.lower() == ".html"
    if page and (kind or hide_dominated):
        raise UsageError("--kind and --hide-dominated apply to figures; a page has all points and the indicators")
    if kind == "radar" and (hide_dominated or scores):
        raise UsageError("--hide-dominated and --scores apply to points, and a radar chart has none")
    check_target(out, [*files, *scores], force)
    systems = read_systems(files, stored, names, deduplicate)
    if kind != "radar":
        systems = add_bands(systems, scores)
    if page:
        with open_output(out) as file:
            write_page(out.stem, systems, file)
    elif kind == "radar":
        matplotlib_figures.save(matplotlib_figures.radar(compare_systems(systems)), out)
    else:
        matplotlib_figures.save(matplotlib_figures.pareto(systems, dominated=not hide_dominated), out)
    click.echo(f"written: {safe(str(out))}", err=True)
