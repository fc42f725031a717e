"""The sub-commands of `evaluand tradeoff`: indicators and figures of systems, their points, and the one to use."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, TypeVar

import click
import numpy as np
from click import UsageError
from rich.text import Text

from evaluand.cli.command import argument, make_command, option
from evaluand.cli.options import FILE, TARGET, force_option, json_option, refuse_options
from evaluand.cli.output import open_output, print_json, show
from evaluand.cli.progress import show_notes
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
    print_table,
)
from evaluand.core.errors import SpecError, collect_warnings, pluralize, warn
from evaluand.core.files.json import without_infinities
from evaluand.evaluation.evaluator import Evaluation
from evaluand.report.facts.base import Facts
from evaluand.report.facts.report import point_facts
from evaluand.report.html.tradeoff import write_page
from evaluand.report.text import safe
from evaluand.tradeoff.confidences import Confidences
from evaluand.tradeoff.evaluations import find_variants
from evaluand.tradeoff.files.scores import ScoreFile
from evaluand.tradeoff.files.solutions import SolutionFile
from evaluand.tradeoff.front import ROUNDING
from evaluand.tradeoff.indicators import compare_systems
from evaluand.tradeoff.points import Tradeoff

System = TypeVar("System", Confidences, Tradeoff)
Item = TypeVar("Item", SolutionFile, Confidences, Tradeoff)


def read_systems(files: Sequence[Path], stored: Stored, names: Sequence[str], deduplicate: bool) -> dict[str, Tradeoff]:
    """The points of each file and of each stored system, with the metrics in the order of the first."""
    if not files and not stored.runs:
        raise UsageError("give files of solutions, or --stored")
    if not stored.runs:
        refuse_options(OF_STORED, "needs --stored; files of solutions already define it")
    if stored.of_scores:
        refuse_options(("thresholds", "by"), NO_THRESHOLDS)
    with show_notes():
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
        with show_notes():
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
    if stored.runs and not stored.of_scores:
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
        counts = f"{solutions.n_undefined} of {solutions.n_points} points"
        message = f"{counts} rest on undefined values, which count as 0: a difference of 0 is perfectly fair"
        warn(f"{solutions.system}: {message}")
    return solutions.tradeoff


def _with_rows(file: Path, name: str, points: Tradeoff, confidences: Confidences) -> Tradeoff:
    """Points with the rows they were computed from.

    Raises:
        SpecError: the points have other values on these rows.
    """
    points = replace(points, threshold=_snap_to_scores(points, confidences), confidences=confidences)
    distance = np.abs(points.at(confidences, "zero").value - points.value)
    if other := int((distance > _SAME).any(axis=1).sum()):
        have = pluralize(other, "has", "have")
        raise SpecError(
            f"{file}: {other:,} of the {len(points):,} solutions {name} {have} other values on these scores, by up to "
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


@dataclass(frozen=True, kw_only=True)
class _EvaluateOptions:
    files: tuple[Path, ...] = files_argument
    stored: Stored
    names: tuple[str, ...] = names_option
    deduplicate: bool = deduplicate_option
    form: str | None = format_option
    as_json: bool = json_option


@make_command("evaluate", short_help="Compare fronts by indicators.", epilog=EXAMPLES)
def evaluate_command(options: _EvaluateOptions) -> None:
    """Compare the fronts of systems by indicators, from files of solutions or from the store.

    hv hypervolume, ud uniformity, as and os average and overall spread, onvg points on the front (onvgr: share of all
    points, relative_onvg: share of the system with the most), area of the radar chart: higher is better. igd_plus and
    epsilon: how far a system falls short of the best of all systems together, lower is better.
    """
    check_form(options.form, options.as_json)
    indicators = compare_systems(read_systems(options.files, options.stored, options.names, options.deduplicate))
    if options.as_json:
        return print_json({"indicators": without_infinities(indicators)})
    rows = [
        (name, *(int(one[key]) if key == "onvg" else one[key] for key in _INDICATORS))
        for name, one in indicators.items()
    ]
    print_table(("system", *_INDICATORS), rows, options.form)


_INDICATORS: Final = ("hv", "ud", "as", "os", "onvg", "onvgr", "relative_onvg", "area", "igd_plus", "epsilon")


@dataclass(frozen=True, kw_only=True)
class _PlotOptions:
    files: tuple[Path, ...] = files_argument
    stored: Stored
    names: tuple[str, ...] = names_option
    out: Path = option(
        "A figure: .png, .svg or .pdf; or an interactive page: .html.", required=True, type=TARGET, metavar="FILE"
    )
    kind: str | None = option("The kind of figure.  [default: pareto]", type=click.Choice(["pareto", "radar"]))
    scores: tuple[Path, ...] = option(
        "The scores that the solutions of the same name were computed from, for bands around the fronts and rates of"
        " groups in a page; repeatable.",
        type=FILE,
        metavar="FILE",
    )
    hide_dominated: bool = option("Draw only the fronts, in a figure of points.")
    deduplicate: bool = deduplicate_option
    force: bool = force_option


@make_command("plot", short_help="Draw fronts, or a radar chart of indicators.", epilog=EXAMPLES)
def plot_command(options: _PlotOptions) -> None:
    """Draw the points of systems and their fronts, or a radar chart of indicators; from files or from the store.

    Two metrics are drawn in a plane, three in three planes, more on parallel axes. Files of solutions have no
    intervals: with --scores the fronts get bands that hold for all points of a model at once, with 95 %; a page then
    also has the rates of groups, which `pick --rates` draws for one point. Stored models have both without it.
    """
    from evaluand.report import matplotlib_figures

    page = options.out.suffix.lower() == ".html"
    if page and (options.kind or options.hide_dominated):
        raise UsageError("--kind and --hide-dominated apply to figures; a page has all points and the indicators")
    if options.kind == "radar" and (options.hide_dominated or options.scores):
        raise UsageError("--hide-dominated and --scores apply to points, and a radar chart has none")
    check_target(options.out, [*options.files, *options.scores], options.force)
    systems = read_systems(options.files, options.stored, options.names, options.deduplicate)
    if options.kind != "radar":
        systems = add_bands(systems, options.scores)
    if page:
        with open_output(options.out) as file:
            write_page(options.out.stem, systems, file)
    elif options.kind == "radar":
        matplotlib_figures.save(matplotlib_figures.radar(compare_systems(systems)), options.out)
    else:
        matplotlib_figures.save(matplotlib_figures.pareto(systems, dominated=not options.hide_dominated), options.out)
    click.echo(f"written: {safe(str(options.out))}", err=True)


@dataclass(frozen=True, kw_only=True)
class _SolveOptions:
    files: tuple[Path, ...] = files_argument
    stored: Stored
    names: tuple[str, ...] = names_option
    prior: Path | None = option(
        "Use the models and thresholds of these solutions, chosen on other data.", type=FILE, metavar="FILE"
    )
    only: str | None = option("Use only these points of --prior.", type=click.Choice(["front", "dominated"]))
    out: Path = option(
        "The folder for the solutions; those of NAME.json are written to NAME.json.",
        type=click.Path(file_okay=False, path_type=Path),
        default="solutions",
        show_default=True,
        metavar="DIR",
    )
    deduplicate: bool = deduplicate_option
    force: bool = force_option
    form: str | None = format_option
    as_json: bool = json_option


@make_command("solve", short_help="Compute operating points from scores.", epilog=EXAMPLES)
def solve_command(options: _SolveOptions) -> None:
    """Compute the operating points of systems, from files of scores or from the store.

    Nothing is written unless every file can be read and solved, and inputs are never replaced. Points of stored scores
    have no thresholds and are shown, not written: evaluate, plot and pick read them from the store.
    """
    _check_options(options)
    if options.stored.of_scores:
        refuse_options(_OF_THRESHOLDS, NO_THRESHOLDS)
        with show_notes():
            points = rename_systems(list(options.stored.points()), options.names)
        return _show_points(points, options.form, options.as_json)
    with show_notes():
        earlier = SolutionFile.load(options.prior) if options.prior else None
        systems = (
            list(options.stored.confidences())
            if options.stored.runs
            else [ScoreFile.load(file).confidences for file in options.files]
        )
        systems = rename_systems(systems, options.names)
        inputs = [*options.files, *([options.prior] if options.prior else [])]
        targets = _targets([system.system for system in systems], inputs, options.out, options.force)
        solutions = [_solve(system, options.stored, earlier, options.only) for system in systems]
        solutions = [each.deduplicated() for each in solutions] if options.deduplicate else solutions
    options.out.mkdir(parents=True, exist_ok=True)
    for each, target in zip(solutions, targets, strict=True):
        with open_output(target) as file:
            each.write(file)
    _show_solutions(solutions, targets, options.form, options.as_json)


def _check_options(options: _SolveOptions) -> None:
    check_form(options.form, options.as_json)
    if options.only and options.prior is None:
        raise UsageError("--only needs --prior")
    if options.stored.thresholds is not None and options.prior is not None:
        raise UsageError("--prior already has thresholds; leave out --thresholds")
    if bool(options.files) == bool(options.stored.runs):
        raise UsageError("give either files of scores or --stored")
    if options.files:
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
            "points": each.n_points,
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


@dataclass(frozen=True, kw_only=True)
class _PickOptions:
    file: Path | None = argument(required=False, type=FILE)
    stored: Stored
    best: str = option("The metric to optimise.", required=True, metavar="METRIC")
    where: tuple[str, ...] = option("A limit such as 'eod+race <= 0.05'; repeatable.", metavar="LIMIT", type=str)
    on: Path | None = option(
        "Scores of other samples, on which the chosen point is evaluated with intervals.", type=FILE, metavar="SCORES"
    )
    on_stored: tuple[str, ...] = option(
        "The same with runs, evaluations or aggregations on other data in the store.", metavar="NAME", type=str
    )
    rates: Path | None = option(
        "Draw the rates of each group there, at the threshold: .png, .svg or .pdf.", type=TARGET, metavar="FILE"
    )
    allow_trivial: bool = option(
        "Also choose a point that decides equally for all rows: one that accepts nobody, or everybody."
    )
    force: bool = force_option
    form: str | None = format_option
    as_json: bool = json_option


@make_command("pick", short_help="Choose a point, and evaluate it on others.", epilog=EXAMPLES)
def pick_command(options: _PickOptions) -> None:
    """Choose the point to use, and evaluate it on samples it was not chosen on.

    It is chosen from a file of solutions or from --stored; of stored runs by the metrics of --best and --where, if no
    others are given. A chosen point looks better than it is on the data it was chosen on: choose on validation data,
    and report the value on test data (--on, --on-stored). A point that accepts nobody or everybody is chosen only with
    --allow-trivial.
    """
    check_form(options.form, options.as_json)
    if (options.file is None) == (not options.stored.runs):
        raise UsageError("give either a file of solutions or --stored")
    if options.on is not None and options.on_stored:
        raise UsageError("give either --on or --on-stored")
    if options.file is not None:
        refuse_options(OF_STORED if not options.on_stored else ("metrics", "thresholds"), "needs --stored")
    stored = options.stored.with_metrics_of(options.best, options.where)
    if options.rates is not None:
        if options.on is None and not options.on_stored:
            raise UsageError("--rates needs samples; give them with --on or --on-stored")
        check_target(options.rates, [each for each in (options.file, options.on) if each], options.force)
    if stored.of_scores and (options.on is not None or options.rates is not None):
        raise UsageError("--on and --rates apply to models at thresholds; with stored scores use --on-stored")
    with show_notes():
        point = _pick(options, stored)
        if options.on is None and not options.on_stored:
            warn(_SAME_ROWS)
        confidences, there = _evaluate_there(point, stored, options.on, options.on_stored)
    if options.rates is not None and confidences is not None:
        from evaluand.report import matplotlib_figures

        matplotlib_figures.save(matplotlib_figures.rates(point, confidences), options.rates)
    _show_pick(point, there, options.form, options.as_json)


_SAME_ROWS: Final = (
    "the values are those of the data on which the point was chosen, so they are too good; judge it on other data with"
    " --on or --on-stored"
)


def _pick(options: _PickOptions, stored: Stored) -> Tradeoff:
    if options.file is not None:
        points: SolutionFile | Tradeoff = SolutionFile.load(options.file)
    elif stored.of_scores:
        refuse_options(("thresholds", "by"), NO_THRESHOLDS)
        points = _only(list(stored.points()))
    else:
        confidences = _only(list(stored.confidences()))
        metrics = metrics_for(stored.metrics, confidences)
        points = SolutionFile.a_posteriori(confidences, metrics, parse_thresholds(stored.thresholds))
    return points.pick(options.best, options.where, allow_trivial=options.allow_trivial)


def _only(systems: Sequence[System]) -> System:
    if len(systems) > 1:
        raise UsageError("a point is chosen from one system; give its models or variants without SYSTEM=")
    return systems[0]


def _evaluate_there(
    point: Tradeoff, stored: Stored, on: Path | None, on_stored: Sequence[str]
) -> tuple[Confidences | None, Tradeoff | None]:
    """The point on other data, with the confidences of its models there; None where there are none."""
    confidences = ScoreFile.load(on).confidences if on else None
    if on_stored:
        evaluations, system = _evaluation_there(point, stored, on_stored), " ".join(on_stored)
        if stored.of_scores:
            return None, stored.points_of(evaluations, stored.metrics, system)
        by = dict.fromkeys(name for one in point.objectives for name in one.by)
        confidences = stored.confidences_of(evaluations, [*by], system)
    return confidences, None if confidences is None else point.at(confidences).with_intervals()


def _evaluation_there(point: Tradeoff, stored: Stored, names: Sequence[str]) -> dict[str, Evaluation]:
    model, evaluations = point.models[point.model[0]], find_variants(stored.store, names)
    if model not in evaluations and len(evaluations) == len(point.models) == 1:  # a single run may have another name
        evaluations = {model: next(iter(evaluations.values()))}
    if model not in evaluations:
        raise SpecError(f"--on-stored has no {model!r}; there are: {', '.join(evaluations)}")
    return {model: evaluations[model]}


def _show_pick(point: Tradeoff, there: Tradeoff | None, form: str | None, as_json: bool) -> None:
    facts = point_facts(point, 0)
    model, threshold, trivial = facts["model"], facts["threshold"], facts["trivial"]
    chosen = {name: one["value"] for name, one in facts["values"].items()}
    values_there: Facts = {} if there is None else point_facts(there, 0)["values"]
    reasons = {"chosen": _reasons(point), "there": {} if there is None else _reasons(there)}
    if as_json:
        document = {"model": model, "threshold": threshold, "trivial": trivial, "chosen": chosen}
        if known := {where: each for where, each in reasons.items() if each}:
            document["reasons"] = known
        if there is not None:
            document |= {"there": values_there, "system": there.system}
        return print_json(without_infinities(document))
    for where, each in reasons.items():
        for name, reason in each.items():
            place = "where it was chosen" if where == "chosen" else "there"
            click.echo(f"note: {safe(name)} {place}: {reason}", err=True)
    rows = [
        (name, value, *([values_there[name][end] for end in ("value", "low", "high")] if values_there else ()))
        for name, value in chosen.items()
    ]
    header = ("metric", "chosen at", *(("there", "low", "high") if values_there else ()))
    if form is None:
        at = (
            ""
            if threshold is None
            else f" at {threshold!r}{': accepts nobody or everybody, the same decision for all' if trivial else ''}"
        )
        show(Text(f"{safe(model)}{at}\n"))
        return print_table(header, rows)
    columns = {"point": model} | ({} if threshold is None else {"threshold": repr(threshold)})
    print_table((*columns, *header), [(*columns.values(), *row) for row in rows], form)


def _reasons(points: Tradeoff) -> dict[str, str]:
    """Why values of a single point are undefined, or rest on rates without rows: objective → reason."""
    reasons = {one.name: points.why_unknown(0, place) for place, one in enumerate(points.objectives)}
    return {name: why for name, why in reasons.items() if why}
