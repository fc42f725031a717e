"""`evaluand tradeoff pick`: the point to use."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click
from click import UsageError
from rich.text import Text

from evaluand.cli.options import FILE, TARGET, force_option, json_option
from evaluand.cli.output import print_json, show
from evaluand.cli.run import notes
from evaluand.cli.tradeoff.options import (
    EXAMPLES,
    NO_THRESHOLDS,
    OF_STORED,
    Stored,
    check_form,
    check_target,
    format_option,
    metrics_for,
    parse_thresholds,
    refuse_options,
    stored_options,
)
from evaluand.cli.tradeoff.output import print_table
from evaluand.cli.tradeoff.systems import System
from evaluand.core.errors import SpecError
from evaluand.core.files.json import without_infinities
from evaluand.evaluation.evaluator import Evaluation
from evaluand.report.facts.base import Facts
from evaluand.report.facts.results import point_facts
from evaluand.report.text import safe
from evaluand.tradeoff.confidences import Confidences
from evaluand.tradeoff.evaluations import find_variants
from evaluand.tradeoff.files.scores import ScoreFile
from evaluand.tradeoff.files.solutions import SolutionFile
from evaluand.tradeoff.points import Tradeoff


@click.command("pick", epilog=EXAMPLES)
@click.argument("file", required=False, type=FILE)
@stored_options
@click.option("--best", required=True, metavar="METRIC", help="The metric to optimise.")
@click.option("--where", multiple=True, metavar="LIMIT", help="A limit such as 'eod+race <= 0.05'; repeatable.")
@click.option(
    "--on",
    type=FILE,
    metavar="SCORES",
    help="Scores of other samples, on which the chosen point is evaluated with intervals.",
)
@click.option(
    "--on-stored",
    multiple=True,
    metavar="NAME",
    help="The same with runs, evaluations or aggregations on other data in the store.",
)
@click.option(
    "--rates",
    type=TARGET,
    metavar="FILE",
    help="Draw the rates of each group there, at the threshold: .png, .svg or .pdf.",
)
@force_option
@format_option
@json_option
def pick_command(
    file: Path | None,
    stored: Stored,
    best: str,
    where: tuple[str, ...],
    on: Path | None,
    on_stored: tuple[str, ...],
    rates: Path | None,
    force: bool,
    form: str | None,
    as_json: bool,
) -> None:
    """Choose the point to use, and evaluate it on samples it was not chosen on.

    It is chosen from a file of solutions or from --stored; of stored runs by the metrics of --best and --where, if no
    others are given. A chosen point looks better than it is on the data it was chosen on: choose on validation data,
    and report the value on test data (--on, --on-stored).
    """
    check_form(form, as_json)
    if (file is None) == (not stored.names):
        raise UsageError("give either a file of solutions or --stored")
    if on is not None and on_stored:
        raise UsageError("give either --on or --on-stored")
    if file is not None:
        refuse_options(OF_STORED if not on_stored else ("metrics", "thresholds"), "needs --stored")
    stored = stored.with_metrics_of(best, where)
    if rates is not None:
        if on is None and not on_stored:
            raise UsageError("--rates needs samples; give them with --on or --on-stored")
        check_target(rates, [each for each in (file, on) if each], force)
    if stored.of_scores and (on is not None or rates is not None):
        raise UsageError("--on and --rates apply to models at thresholds; with stored scores use --on-stored")
    with notes():
        point = _pick(file, stored, best, where)
        confidences, there = _evaluate_there(point, stored, on, on_stored)
    if rates is not None and confidences is not None:
        from evaluand.report import matplotlib_figures

        matplotlib_figures.save(matplotlib_figures.rates(point, confidences), rates)
    _show_pick(point, there, form, as_json)


def _pick(file: Path | None, stored: Stored, best: str, where: Sequence[str]) -> Tradeoff:
    if file is not None:
        return SolutionFile.load(file).pick(best, where)
    if stored.of_scores:
        refuse_options(("thresholds", "by"), NO_THRESHOLDS)
        return _only(list(stored.points())).pick(best, where)
    confidences = _only(list(stored.confidences()))
    metrics = metrics_for(stored.metrics, confidences)
    return SolutionFile.a_posteriori(confidences, metrics, parse_thresholds(stored.thresholds)).pick(best, where)


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
        at = "" if threshold is None else f" at {threshold!r}{' (same decision for all)' if trivial else ''}"
        show(Text(f"{safe(model)}{at}\n"))
        return print_table(header, rows)
    columns = {"point": model} | ({} if threshold is None else {"threshold": repr(threshold)})
    print_table((*columns, *header), [(*columns.values(), *row) for row in rows], form)


def _reasons(points: Tradeoff) -> dict[str, str]:
    """Why values of a single point are undefined, or rest on rates without rows: objective → reason."""
    reasons = {one.name: points.why_unknown(0, place) for place, one in enumerate(points.objectives)}
    return {name: why for name, why in reasons.items() if why}
