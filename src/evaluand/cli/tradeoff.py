"""`evaluand tradeoff`: what systems cost whom: operating points, fronts, indicators, pictures, and the point to use."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
import numpy as np
import pyarrow as pa
from click import UsageError
from rich.text import Text

from evaluand.cli.options import Group, json_option, store_option
from evaluand.cli.output import opened, print_json, show
from evaluand.cli.run import notes
from evaluand.comparison import find_evaluations
from evaluand.comparison.comparing import labels_of
from evaluand.errors import SpecError
from evaluand.evaluation import Evaluation
from evaluand.interop.fairical import Scores, Solutions
from evaluand.interop.fairical.reading import doubt, strict
from evaluand.interop.fairical.scores import a_posteriori, a_priori
from evaluand.report.cells import plain_table
from evaluand.report.facts import Facts
from evaluand.report.text import safe
from evaluand.report.tradeoff_page import write_page
from evaluand.stores.directory import DirectoryStore
from evaluand.tradeoff import Confidences, Tradeoff, compared
from evaluand.tradeoff.stored import confidences_of

_EXAMPLES = """\b
Examples:
  evaluand tradeoff solve scores/*.json --metric acc --metric eod+race --out solutions
  evaluand tradeoff solve --stored classifiers --by age_group --label malignant
  evaluand tradeoff evaluate solutions/*.json
  evaluand tradeoff plot solutions/*.json --out front.html
  evaluand tradeoff pick solutions/validation.json --best acc --where "eod+race <= 0.05" --on scores/test.json
"""

_INDICATORS = ("hv", "ud", "as", "os", "onvg", "onvgr", "relative_onvg", "area", "igd_plus", "epsilon")
_COUNTS = ("onvg",)

_FILES = click.argument(
    "files", nargs=-1, required=True, metavar="FILE...", type=click.Path(exists=True, dir_okay=False, path_type=Path)
)
_DEDUPLICATE = click.option(
    "--deduplicate/--no-deduplicate", default=True, show_default=True, help="Take equal points as one."
)
_FORCE = click.option("--force", is_flag=True, help="Replace files that are there.")


@click.group("tradeoff", cls=Group, epilog=_EXAMPLES)
def command() -> None:
    """What a system is worth, and how far groups lie apart, at every threshold of every model it may use."""


@command.command("solve", epilog=_EXAMPLES)
@click.argument("files", nargs=-1, metavar="[FILE]...", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "--stored",
    multiple=True,
    metavar="NAME",
    help="Instead of files: runs, evaluations or aggregations in the store, the models of one system; several times.",
)
@click.option("--by", multiple=True, metavar="ATTRIBUTE", help="Of --stored: attributes of the dataset.")
@click.option("--label", metavar="LABEL", help="Of --stored: the positive label.")
@click.option("--name", metavar="NAME", help="Of --stored: what the system is called; the first NAME if not given.")
@click.option(
    "--metric",
    "-m",
    "metrics",
    multiple=True,
    metavar="NAME",
    help="acc, f1, eod+ATTRIBUTE, minmaxd+UTILITY+ATTRIBUTE …, in order; acc and eod of each attribute if not given.",
)
@click.option(
    "--thresholds",
    default="every",
    show_default=True,
    metavar="WHICH",
    help="Which of each model are tried: every (each of its scores), roc (the corners of its ROC curve: fewer, and the"
    " best point may be missing), or how many from 0 to 1.",
)
@click.option(
    "--prior",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Take models and thresholds from these solutions, chosen on other data.",
)
@click.option("--only", type=click.Choice(["front", "dominated"]), help="Of --prior only these points.")
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    default="solutions",
    show_default=True,
    metavar="DIR",
    help="Where the solutions of NAME.json are written as NAME.json.",
)
@_DEDUPLICATE
@_FORCE
@store_option
@json_option
def solve(
    files: tuple[Path, ...],
    stored: tuple[str, ...],
    by: tuple[str, ...],
    label: str | None,
    name: str | None,
    metrics: tuple[str, ...],
    thresholds: str,
    prior: Path | None,
    only: str | None,
    out: Path,
    deduplicate: bool,
    force: bool,
    folder: Path,
    as_json: bool,
) -> None:
    """Find the operating points of systems, from files of scores or from stored confidences.

    Nothing is written unless every file can be read and solved, and inputs are never replaced.
    """
    if only and prior is None:
        raise UsageError("--only is about the points of --prior")
    if bool(files) == bool(stored):
        raise UsageError("give either files of scores or --stored")
    if not stored and (by or label or name):
        raise UsageError("--by, --label and --name are about --stored; files of scores tell these themselves")
    with notes():
        earlier = Solutions.load(prior) if prior else None
        if stored:
            systems = [_stored(DirectoryStore(folder), stored, by, label, name)]
        else:
            systems = [Scores.load(file).confidences for file in files]
        inputs = [*files, *([prior] if prior else [])]
        places = _places([system.system for system in systems], inputs, out, force)
        found: list[Solutions] = []
        for given in systems:
            wanted = metrics or ("acc", *(f"eod+{attribute}" for attribute in given.attributes))
            if earlier is None:
                solutions = a_posteriori(given, wanted, _thresholds(thresholds))
            else:
                solutions = a_priori(given, wanted, earlier, None if only is None else only == "dominated")
            found.append(solutions.deduplicate() if deduplicate else solutions)
    out.mkdir(parents=True, exist_ok=True)
    for solutions, place in zip(found, places, strict=True):
        with opened(place) as target:
            solutions.write(target)
    if as_json:
        told = [
            {
                "system": each.system,
                "file": str(place),
                "points": each.n_solutions,
                "front": len(each.tradeoff.front()),
                "undefined": each.metadata.get("undefined", {}),
            }
            for each, place in zip(found, places, strict=True)
        ]
        return print_json({"solutions": told})
    table = plain_table("system", "points", "on the front", "undefined", "written")
    for each, place in zip(found, places, strict=True):
        undefined = len({point for points in each.metadata.get("undefined", {}).values() for point in points})
        table.add_row(*map(_text, (each.system, each.n_solutions, len(each.tradeoff.front()), undefined, place)))
    show(table)


@command.command("evaluate", epilog=_EXAMPLES)
@_FILES
@_DEDUPLICATE
@click.option("--format", "form", metavar="NAME", help="Print the table as github, latex, html, csv, tsv, rst …")
@json_option
def evaluate(files: tuple[Path, ...], deduplicate: bool, form: str | None, as_json: bool) -> None:
    """Tell in numbers what the fronts of systems are worth, side by side.

    hv hypervolume, ud uniformity, as and os average and overall spread, onvg points on the front (onvgr: of all,
    relative_onvg: of the system with the most), area of the radar chart: higher is better. igd_plus and epsilon: how
    far a system falls short of the best of all together, lower is better.
    """
    found = compared(_systems(files, deduplicate))
    if as_json:
        return print_json({"indicators": strict(found)})
    if form:
        return click.echo(_formatted(found, form))
    table = plain_table("system", *_INDICATORS)
    for name, one in found.items():
        table.add_row(_text(name), *(Text(_cell(key, one[key]), justify="right") for key in _INDICATORS))
    show(table)


@command.command("plot", epilog=_EXAMPLES)
@_FILES
@click.option(
    "--out",
    required=True,
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="A picture: .png, .svg or .pdf; or a page to look through: .html.",
)
@click.option("--kind", type=click.Choice(["pareto", "radar"]), default="pareto", show_default=True)
@click.option(
    "--scores",
    multiple=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="The scores that solutions of the same name were made from: their fronts get bands, and a page the rates of"
    " groups; several times.",
)
@click.option("--hide-dominated", is_flag=True, help="Draw the fronts alone.")
@_DEDUPLICATE
@_FORCE
def plot(
    files: tuple[Path, ...],
    out: Path,
    kind: str,
    scores: tuple[Path, ...],
    hide_dominated: bool,
    deduplicate: bool,
    force: bool,
) -> None:
    """Draw the points of systems and their fronts, or their indicators on a radar chart.

    Two metrics are a plane, three a space, more are parallel axes. Solutions tell nothing of how sure they are: with
    --scores the fronts have bands that hold for all points of a model at once, with 95 %.
    """
    from evaluand.report import tradeoffs

    if scores and kind == "radar":
        raise UsageError("--scores are for bands of fronts, and a radar chart has none")
    _check_new(out, [*files, *scores], force)
    systems = _with_bands(_systems(files, deduplicate), scores)
    if out.suffix == ".html":
        with opened(out) as page:
            write_page(out.stem, systems, page)
        return click.echo(f"written: {safe(str(out))}", err=True)
    figure = (
        tradeoffs.radar(compared(systems))
        if kind == "radar"
        else tradeoffs.pareto(systems, dominated=not hide_dominated)
    )
    tradeoffs.save(figure, out)
    click.echo(f"written: {safe(str(out))}", err=True)


@command.command("pick", epilog=_EXAMPLES)
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--best", required=True, metavar="METRIC", help="What is to be as good as can be.")
@click.option("--where", multiple=True, metavar="LIMIT", help="Such as 'eod+race <= 0.05'; several times.")
@click.option(
    "--on",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="SCORES",
    help="Scores of other samples, on which the chosen point is then looked at, with intervals.",
)
@click.option(
    "--rates",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Draw the rates of each group there: .png, .svg or .pdf.",
)
@_FORCE
@json_option
def pick(
    file: Path, best: str, where: tuple[str, ...], on: Path | None, rates: Path | None, force: bool, as_json: bool
) -> None:
    """Choose the point to use, and tell what it is worth on samples it was not chosen on.

    The point that is chosen looks better than it is where it was chosen: choose on validation data, and quote the value
    on test data (--on).
    """
    if rates is not None:
        if on is None:
            raise UsageError("--rates are those of samples; give their scores with --on")
        _check_new(rates, [file, on], force)
    with notes():
        point = Solutions.load(file).pick(best, where)
        given = Scores.load(on).confidences if on else None
    there = point.at(given).with_intervals() if given else None
    if rates is not None and given is not None:
        from evaluand.report import tradeoffs

        tradeoffs.save(tradeoffs.rates(point, given), rates)
    if as_json:
        return print_json(strict(_pick_facts(point, there)))
    model = point.models[point.model[0]]
    show(
        Text(
            f"{safe(model)} at {float(point.threshold[0])!r}{' (decides alike for all)' if point.trivial[0] else ''}\n"
        )
    )
    table = plain_table("metric", "chosen at", *(["there", "low", "high"] if there else []))
    for place, objective in enumerate(point.objectives):
        cells = [point.value[0, place], *([each[0, place] for each in there.ends] if there and there.ends else [])]
        table.add_row(_text(objective.name), *map(_number, cells))
    show(table)


def _stored(
    store: DirectoryStore, names: Sequence[str], by: Sequence[str], label: str | None, called: str | None
) -> Confidences:
    """The confidences of models that are stored."""
    evaluations = [each for name in names for each in find_evaluations(store, name)]
    called_so = labels_of([each.name for each in evaluations], [each.id for each in evaluations])
    models = dict(zip(called_so, evaluations, strict=True))
    return confidences_of(models, by, label=_label(label, evaluations), system=called or names[0])


def _label(text: str | None, evaluations: Sequence[Evaluation]) -> str | int | bool | None:
    """The label of the type of the truths there are; text where that is none of them."""
    if text is None:
        return None
    kinds = [
        schema.field("truth").type
        for evaluation in evaluations
        for schema in (next(evaluation.batches(scorer)).schema for scorer in evaluation.scorers)
        if {"truth", "prediction", "confidence"} <= set(schema.names)
    ]
    if any(map(pa.types.is_boolean, kinds)):
        return {"true": True, "false": False}.get(text.lower(), text)
    if any(pa.types.is_integer(kind) or pa.types.is_floating(kind) for kind in kinds):
        try:
            return int(text)
        except ValueError:
            return text
    return text


def _places(systems: Sequence[str], inputs: Sequence[Path], out: Path, force: bool) -> list[Path]:
    """Where the solutions of systems are written: under their names; no file is replaced unasked."""
    places = [out / f"{_OF_NO_FILE.sub('-', system)}.json" for system in systems]
    for system, place in zip(systems, places, strict=True):
        if places.count(place) > 1:
            raise UsageError(
                f"several systems are called {system}; solve them one by one into different folders (--out)"
            )
        _check_new(place, inputs, force)
    return places


def _check_new(place: Path, inputs: Sequence[Path], force: bool) -> None:
    if place.resolve() in {file.resolve() for file in inputs}:
        raise UsageError(f"{place} is an input and is not replaced; write elsewhere (--out)")
    if place.exists() and not force:
        raise UsageError(f"{place} is there already; write elsewhere (--out), or give --force")


def _thresholds(text: str) -> Any:
    if text in ("every", "roc"):
        return text
    try:
        number = int(text)
    except ValueError:
        raise UsageError(f"--thresholds: {text!r} is neither every nor roc, nor how many") from None
    if number < 2:
        raise UsageError("--thresholds: at least 2, from 0 to 1")
    return number


def _systems(files: Sequence[Path], deduplicate: bool) -> dict[str, Tradeoff]:
    """The points of each file, called after it, with the metrics in the order of the first."""
    found: dict[str, Tradeoff] = {}
    order: list[str] = []
    with notes():
        for file in files:
            solutions = Solutions.load(file)
            if solutions.system in found:
                raise SpecError(
                    f"{file}: another file is called {file.name} too; name systems differently to compare them"
                )
            order = order or list(solutions)
            if set(order) == set(solutions):
                solutions = replace(solutions, points={metric: solutions[metric] for metric in order})
            solutions = solutions.deduplicate() if deduplicate else solutions
            if solutions.n_undefined:
                told = "rest on undefined values, which count as 0: perfectly fair of differences"
                doubt(f"{solutions.system}: {solutions.n_undefined} of {solutions.n_solutions} points {told}")
            found[solutions.system] = solutions.tradeoff
    return found


def _with_bands(systems: dict[str, Tradeoff], scores: Sequence[Path]) -> dict[str, Tradeoff]:
    """Systems with the rows they come from, and bands, where the scores are given."""
    found = dict(systems)
    for file in scores:
        with notes():
            given = Scores.load(file).confidences
        name = given.system if len(systems) > 1 or len(scores) > 1 else next(iter(systems))
        if name not in found:
            raise SpecError(f"{file}: no solutions are called {name}; there are: {', '.join(map(safe, found))}")
        points = found[name]
        there = points.at(given, "zero")
        if not np.allclose(there.value, points.value, atol=1e-6):
            raise SpecError(
                f"{file}: the solutions {name} come to other values there; give the scores they are made from"
            )
        found[name] = replace(points, given=given).with_bands()
    return found


def _formatted(found: dict[str, dict[str, float]], form: str) -> str:
    header = ["system", *_INDICATORS]
    if form == "csv":
        import csv
        import io

        text = io.StringIO()
        exact = [[safe(name), *(_whole(key, one[key]) for key in _INDICATORS)] for name, one in found.items()]
        csv.writer(text, lineterminator="\n").writerows([header, *exact])
        return text.getvalue().rstrip("\n")
    try:
        from tabulate import tabulate, tabulate_formats
    except ImportError:
        raise SpecError(f"tables as {form} need tabulate: pip install 'evaluand[plots]'") from None
    if form not in tabulate_formats:
        raise UsageError(f"--format: there is no {form!r}; there are csv, {', '.join(tabulate_formats)}")
    rows = [[safe(name), *(_cell(key, one[key]) for key in _INDICATORS)] for name, one in found.items()]
    sides = ["left", *["right"] * len(_INDICATORS)]
    return str(tabulate(rows, header, tablefmt=form, disable_numparse=True, colalign=sides))


def _pick_facts(point: Tradeoff, there: Tradeoff | None) -> Facts:
    facts: Facts = {
        "model": point.models[point.model[0]],
        "threshold": float(point.threshold[0]),
        "trivial": bool(point.trivial[0]),
        "chosen": {one.name: float(point.value[0, place]) for place, one in enumerate(point.objectives)},
    }
    if there is None or there.ends is None:
        return facts
    named = ("value", "low", "high")
    ends = there.ends
    each = {
        one.name: {key: float(end[0, place]) for key, end in zip(named, ends, strict=True)}
        for place, one in enumerate(there.objectives)
    }
    return {**facts, "there": each, "system": there.system}


def _text(value: object) -> Text:
    return Text(safe(str(value)))


def _cell(indicator: str, value: float) -> str:
    return "–" if math.isnan(value) else str(int(value)) if indicator in _COUNTS else f"{value:.4f}"


def _whole(indicator: str, value: float) -> float:
    return int(value) if indicator in _COUNTS else value


def _number(value: float) -> Text:
    return Text(_cell("", value), justify="right")


_OF_NO_FILE = re.compile(r"[^\w. -]|^[. ]")
