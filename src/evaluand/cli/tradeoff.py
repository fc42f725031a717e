"""`evaluand tradeoff`: what systems cost whom: operating points, fronts, indicators, pictures, and the point to use.

A system comes from a file, or from the store by the names of runs, evaluations or aggregations. Stored classifiers are
the models of a system and have points at thresholds of their confidence, as in files; of other stored scores each run
is a point. Which is meant is told by the metrics: `acc` and `eod+race` are those of files, `mean(helpful)` is one of
stored scores.
"""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import wraps
from pathlib import Path
from typing import Any, Final, TypeVar

import click
import numpy as np
import pyarrow as pa
from click import UsageError
from click.core import ParameterSource
from rich.text import Text

from evaluand.aggregation.aggregator import dataset_of
from evaluand.cli.options import Group, json_option, store_option
from evaluand.cli.output import opened, print_json, show
from evaluand.cli.run import notes
from evaluand.core import registry
from evaluand.core.errors import EvaluandWarning, SpecError, collect_warnings
from evaluand.core.files.json import without_infinities
from evaluand.evaluation.evaluator import Evaluation
from evaluand.interop.fairical import Scores, Solutions
from evaluand.interop.fairical.names import objectives
from evaluand.interop.fairical.scores import a_posteriori, a_priori
from evaluand.report.facts.base import Facts
from evaluand.report.facts.tradeoff import point_facts
from evaluand.report.html.tradeoff import write_page
from evaluand.report.terminal.cells import plain_table
from evaluand.report.text import safe
from evaluand.store.directory import DirectoryStore
from evaluand.tradeoff import Confidences, Tradeoff, compared
from evaluand.tradeoff.constraints import Limit
from evaluand.tradeoff.evaluations import confidences_of, of_evaluations, variants
from evaluand.tradeoff.front import ROUNDING
from evaluand.tradeoff.short_names import FAIRNESS, UTILITIES, WITHIN

_EXAMPLES = """\b
Examples:
  evaluand tradeoff solve scores/*.json --metric acc --metric eod+race --out solutions
  evaluand tradeoff solve --stored classifiers --by age_group --label malignant
  evaluand tradeoff solve --stored bots --metric "mean(helpful)" --metric "mean(helpful) difference by language"
  evaluand tradeoff evaluate solutions/*.json
  evaluand tradeoff plot solutions/*.json --out front.html
  evaluand tradeoff pick solutions/validation.json --best acc --where "eod+race <= 0.05" --on scores/test.json
  evaluand tradeoff pick --stored validation --best "mean(helpful)" --where "mean(brief) >= 0.5" --on-stored test
"""

_INDICATORS = ("hv", "ud", "as", "os", "onvg", "onvgr", "relative_onvg", "area", "igd_plus", "epsilon")
_COUNTS = ("onvg",)

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
_FILES = click.argument("files", nargs=-1, metavar="[FILE]...", type=_FILE)
_NAMES = click.option(
    "--name",
    "names",
    multiple=True,
    metavar="NAME",
    help="What a system is called, in their order: files, then those of --stored; as many as there are.",
)
_DEDUPLICATE = click.option(
    "--deduplicate/--no-deduplicate", default=True, show_default=True, help="Take equal points as one."
)
_FORCE = click.option("--force", is_flag=True, help="Replace files that are there.")
_FORMAT = click.option(
    "--format", "form", metavar="NAME", help="Print the table as github, latex, html, csv, tsv, rst …"
)
_STORED = (
    click.option(
        "--stored",
        multiple=True,
        metavar="[SYSTEM=]NAME",
        help="Runs, evaluations or aggregations in the store: the models or variants of one system, or of each SYSTEM;"
        " several times. All of one system are on the same examples.",
    ),
    click.option(
        "--metric",
        "-m",
        "metrics",
        multiple=True,
        metavar="METRIC",
        help="acc, f1, eod+ATTRIBUTE, minmaxd+UTILITY+ATTRIBUTE …: of decisions at thresholds; or of stored scores"
        ' "KIND(SCORER)" and "KIND(SCORER) difference|ratio|min|max by ATTRIBUTE", by which each run is a point. In'
        " order, several times; acc and eod of each attribute if not given.",
    ),
    click.option(
        "--by", multiple=True, metavar="ATTRIBUTE", help="Of --stored: attributes, where no metric names them."
    ),
    click.option("--label", metavar="LABEL", help="Of --stored: the positive label."),
    click.option(
        "--scorer", metavar="SCORER", help="Of --stored: whose confidences or scores, where there are several."
    ),
    click.option(
        "--thresholds",
        metavar="WHICH",
        help="Which of each model are tried: every (each of its scores), roc (the corners of its ROC curve: fewer, and"
        " the best point may be missing), how many from 0 to 1, or these: 0.3,0.5.  [default: every]",
    ),
    store_option,
)


_System = TypeVar("_System", Confidences, Tradeoff)
_Made = TypeVar("_Made", Solutions, Confidences, Tradeoff)


@dataclass(frozen=True)
class _Stored:
    """What was said of systems in the store, and of which metrics at which thresholds."""

    store: DirectoryStore
    named: tuple[str, ...]
    metrics: tuple[str, ...]
    by: tuple[str, ...]
    label: str | None
    scorer: str | None
    thresholds: str | None

    @property
    def of_scores(self) -> bool:
        """Whether runs are points by their stored scores, and no models with thresholds."""
        own = [_of_scores(metric) for metric in self.metrics]
        if any(own) and not all(own):
            one, other = self.metrics[own.index(True)], self.metrics[own.index(False)]
            raise UsageError(
                f"{one} is of stored scores and {other} of decisions at thresholds; give those of one sort"
            )
        return bool(self.named) and any(own)

    def choosing(self, best: str, where: Sequence[str]) -> _Stored:
        """With the metrics that a choice is made by, where no others are given."""
        if self.metrics or not self.named:
            return self
        asked = dict.fromkeys([best, *(Limit.parse(text, best).name for text in where)])
        return replace(self, metrics=tuple(asked))

    def confidences(self) -> Iterator[Confidences]:
        """Those of each system."""
        asked = objectives(self.metrics) if self.metrics else ()
        named = dict.fromkeys((*self.by, *(name for one in asked for name in one.by)))
        for system, found in self._systems():
            by = [*named] if named or asked else dataset_of(next(iter(found.values()))).roles.attributes
            yield self.confidences_of(found, by, system)

    def confidences_of(self, found: Mapping[str, Evaluation], by: Sequence[str], system: str) -> Confidences:
        label = _label(self.label, [*found.values()])
        return confidences_of(found, by, label=label, scorer=self.scorer, system=system)

    def points(self) -> Iterator[Tradeoff]:
        """Those of each system, by stored scores."""
        for system, found in self._systems():
            yield self.points_of(found, self.metrics, system)

    def points_of(self, found: Mapping[str, Evaluation], metrics: Sequence[str], system: str) -> Tradeoff:
        label = _label(self.label, [*found.values()])
        return of_evaluations(found, metrics, label=label, scorer=self.scorer, system=system)

    def _systems(self) -> Iterator[tuple[str, dict[str, Evaluation]]]:
        """Each system with its models or variants: `SYSTEM=NAME`, or all names without a system as one."""
        known = {ref.name for ref in self.store.refs()}
        of: dict[str, list[str]] = {}
        alone = [text for text in self.named if text in known or "=" not in text]
        together = " + ".join(alone)
        if len(together) > _LONGEST:
            together = f"{alone[0]} + {len(alone) - 1} others"
        for text in self.named:
            system, _, name = (together, "", text) if text in alone else text.partition("=")
            of.setdefault(system, []).append(name)
        for system, names in of.items():
            yield system, variants(self.store, names)


def _stored_options(function: Callable[..., None]) -> Callable[..., None]:
    """Gives a command the options about the store, as one argument `stored`."""

    @wraps(function)
    def called(*, stored: tuple[str, ...], folder: Path, **given: Any) -> None:
        named = {name: given.pop(name) for name in ("metrics", "by", "label", "scorer", "thresholds")}
        function(stored=_Stored(DirectoryStore(folder), stored, **named), **given)

    for option in reversed(_STORED):
        called = option(called)
    return called


@click.group("tradeoff", cls=Group, epilog=_EXAMPLES)
def command() -> None:
    """What a system is worth, and how far groups lie apart, at every threshold of every model it may use."""


@command.command("solve", epilog=_EXAMPLES)
@_FILES
@_stored_options
@_NAMES
@click.option(
    "--prior",
    type=_FILE,
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
@_FORMAT
@json_option
def solve(
    files: tuple[Path, ...],
    stored: _Stored,
    names: tuple[str, ...],
    prior: Path | None,
    only: str | None,
    out: Path,
    deduplicate: bool,
    force: bool,
    form: str | None,
    as_json: bool,
) -> None:
    """Find the operating points of systems, from files of scores or from what is stored.

    Nothing is written unless every file can be read and solved, and inputs are never replaced. Points of stored scores
    have no thresholds and are not written: they are shown here, and evaluate, plot and pick take them from the store.
    """
    _check_form(form, as_json)
    if only and prior is None:
        raise UsageError("--only is about the points of --prior")
    if stored.thresholds is not None and prior is not None:
        raise UsageError("--thresholds are those of --prior; leave one of them out")
    if bool(files) == bool(stored.named):
        raise UsageError("give either files of scores or --stored")
    if files:
        _refuse(("by", "label", "scorer"), "is about --stored; files of scores tell it themselves")
    if stored.of_scores:
        _refuse(_OF_THRESHOLDS, "is about models at thresholds; of stored scores each run is a point without one")
        with notes():
            points = _called(list(stored.points()), names)
        return _show_points(points, form, as_json)
    with notes():
        earlier = Solutions.load(prior) if prior else None
        systems = list(stored.confidences()) if stored.named else [Scores.load(file).confidences for file in files]
        systems = _called(systems, names)
        places = _places([system.system for system in systems], [*files, *([prior] if prior else [])], out, force)
        found: list[Solutions] = []
        for given in systems:
            wanted = _wanted(stored.metrics, given)
            if earlier is None:
                solutions = a_posteriori(given, wanted, _thresholds(stored.thresholds))
            else:
                solutions = a_priori(given, wanted, earlier, None if only is None else only == "dominated")
            found.append(solutions.deduplicate() if deduplicate else solutions)
    out.mkdir(parents=True, exist_ok=True)
    for solutions, place in zip(found, places, strict=True):
        with opened(place) as target:
            solutions.write(target)
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
    if as_json:
        return print_json({"solutions": told})
    _print(
        ("system", "points", "on the front", "undefined", "written"),
        [
            (one["system"], one["points"], one["front"], each.n_undefined, one["file"])
            for one, each in zip(told, found, strict=True)
        ],
        form,
    )


@command.command("evaluate", epilog=_EXAMPLES)
@_FILES
@_stored_options
@_NAMES
@_DEDUPLICATE
@_FORMAT
@json_option
def evaluate(
    files: tuple[Path, ...],
    stored: _Stored,
    names: tuple[str, ...],
    deduplicate: bool,
    form: str | None,
    as_json: bool,
) -> None:
    """Tell in numbers what the fronts of systems are worth, side by side; from files of solutions or from the store.

    hv hypervolume, ud uniformity, as and os average and overall spread, onvg points on the front (onvgr: of all,
    relative_onvg: of the system with the most), area of the radar chart: higher is better. igd_plus and epsilon: how
    far a system falls short of the best of all together, lower is better.
    """
    _check_form(form, as_json)
    found = compared(_systems(files, stored, names, deduplicate))
    if as_json:
        return print_json({"indicators": without_infinities(found)})
    _print(
        ("system", *_INDICATORS),
        [(name, *(_whole(key, one[key]) for key in _INDICATORS)) for name, one in found.items()],
        form,
    )


@command.command("plot", epilog=_EXAMPLES)
@_FILES
@_stored_options
@_NAMES
@click.option(
    "--out",
    required=True,
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="A picture: .png, .svg or .pdf; or a page to look through: .html.",
)
@click.option("--kind", type=click.Choice(["pareto", "radar"]), help="Of a picture: what is drawn.  [default: pareto]")
@click.option(
    "--scores",
    multiple=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="The scores that solutions of the same name were made from: their fronts get bands, and a page the rates of"
    " groups; several times.",
)
@click.option("--hide-dominated", is_flag=True, help="Of a picture of points: draw the fronts alone.")
@_DEDUPLICATE
@_FORCE
def plot(
    files: tuple[Path, ...],
    stored: _Stored,
    names: tuple[str, ...],
    out: Path,
    kind: str | None,
    scores: tuple[Path, ...],
    hide_dominated: bool,
    deduplicate: bool,
    force: bool,
) -> None:
    """Draw the points of systems and their fronts, or their indicators on a radar chart; from files or from the store.

    Two metrics are a plane, three a space, more are parallel axes. Files of solutions tell nothing of how sure they
    are: with --scores the fronts have bands that hold for all points of a model at once, with 95 %; a page then has the
    rates of groups too, as a picture of one point has by `pick --rates`. Stored models have both without.
    """
    from evaluand.report import matplotlib_figures

    page = out.suffix.lower() == ".html"
    if page and (kind or hide_dominated):
        raise UsageError("--kind and --hide-dominated are about pictures; a page has all points and the indicators")
    if kind == "radar" and (hide_dominated or scores):
        raise UsageError("--hide-dominated and --scores are about points, and a radar chart has none")
    _check_new(out, [*files, *scores], force)
    systems = _systems(files, stored, names, deduplicate)
    if kind != "radar":
        systems = _with_bands(systems, scores)
    if page:
        with opened(out) as file:
            write_page(out.stem, systems, file)
        return click.echo(f"written: {safe(str(out))}", err=True)
    figure = (
        matplotlib_figures.radar(compared(systems))
        if kind == "radar"
        else matplotlib_figures.pareto(systems, dominated=not hide_dominated)
    )
    matplotlib_figures.save(figure, out)
    click.echo(f"written: {safe(str(out))}", err=True)


@command.command("pick", epilog=_EXAMPLES)
@click.argument("file", required=False, type=_FILE)
@_stored_options
@click.option("--best", required=True, metavar="METRIC", help="What is to be as good as can be.")
@click.option("--where", multiple=True, metavar="LIMIT", help="Such as 'eod+race <= 0.05'; several times.")
@click.option(
    "--on",
    type=_FILE,
    metavar="SCORES",
    help="Scores of other samples, on which the chosen point is then looked at, with intervals.",
)
@click.option(
    "--on-stored",
    multiple=True,
    metavar="NAME",
    help="The same, of runs, evaluations or aggregations on other data in the store.",
)
@click.option(
    "--rates",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Draw the rates of each group there, at the threshold: .png, .svg or .pdf.",
)
@_FORCE
@_FORMAT
@json_option
def pick(
    file: Path | None,
    stored: _Stored,
    best: str,
    where: tuple[str, ...],
    on: Path | None,
    on_stored: tuple[str, ...],
    rates: Path | None,
    force: bool,
    form: str | None,
    as_json: bool,
) -> None:
    """Choose the point to use, and tell what it is worth on samples it was not chosen on.

    It is chosen from a file of solutions or from --stored, and of stored runs by the metrics of --best and --where, if
    no others are given. The point that is chosen looks better than it is where it was chosen: choose on validation
    data, and quote the value on test data (--on, --on-stored).
    """
    _check_form(form, as_json)
    if (file is None) == (not stored.named):
        raise UsageError("give either a file of solutions or --stored")
    if on is not None and on_stored:
        raise UsageError("give either --on or --on-stored")
    if file is not None:
        _refuse(_OF_STORED if not on_stored else ("metrics", "thresholds"), "is about --stored")
    stored = stored.choosing(best, where)
    if rates is not None:
        if on is None and not on_stored:
            raise UsageError("--rates are those of samples; give them with --on or --on-stored")
        _check_new(rates, [each for each in (file, on) if each], force)
    if stored.of_scores and (on is not None or rates is not None):
        raise UsageError("--on and --rates are about models at thresholds; of stored scores give --on-stored")
    with notes():
        point = _picked(file, stored, best, where)
        given = Scores.load(on).confidences if on else None
        there = None
        if on_stored:
            model, found = point.models[point.model[0]], variants(stored.store, on_stored)
            if (
                model not in found and len(found) == len(point.models) == 1
            ):  # what was run alone may be called otherwise
                found = {model: next(iter(found.values()))}
            if model not in found:
                raise SpecError(f"--on-stored has no {model!r}; there are: {', '.join(found)}")
            mine, system = {model: found[model]}, " ".join(on_stored)
            if stored.of_scores:
                there = stored.points_of(mine, stored.metrics, system)
            else:
                by = dict.fromkeys(name for one in point.objectives for name in one.by)
                given = stored.confidences_of(mine, [*by], system)
        if given is not None:
            there = point.at(given).with_intervals()
    if rates is not None and given is not None:
        from evaluand.report import matplotlib_figures

        matplotlib_figures.save(matplotlib_figures.rates(point, given), rates)
    _show_pick(point, there, form, as_json)


def _picked(file: Path | None, stored: _Stored, best: str, where: Sequence[str]) -> Tradeoff:
    if file is not None:
        return Solutions.load(file).pick(best, where)
    if stored.of_scores:
        _refuse(("thresholds", "by"), "is about models at thresholds; of stored scores each run is a point without one")
        return _only(list(stored.points())).pick(best, where)
    given = _only(list(stored.confidences()))
    return a_posteriori(given, _wanted(stored.metrics, given), _thresholds(stored.thresholds)).pick(best, where)


def _only(systems: Sequence[_System]) -> _System:
    if len(systems) > 1:
        raise UsageError("a point is chosen from one system; give its models or variants without SYSTEM=")
    return systems[0]


def _show_pick(point: Tradeoff, there: Tradeoff | None, form: str | None, as_json: bool) -> None:
    come = point_facts(point, 0)
    model, threshold = come["model"], come["threshold"]
    chosen = {name: one["value"] for name, one in come["values"].items()}
    elsewhere: Facts = {} if there is None else point_facts(there, 0)["values"]
    reasons = {"chosen": _reasons(point), "there": {} if there is None else _reasons(there)}
    if as_json:
        told = {"model": model, "threshold": threshold, "trivial": come["trivial"], "chosen": chosen}
        told |= {"reasons": {where: each for where, each in reasons.items() if each}} if any(reasons.values()) else {}
        return print_json(
            without_infinities(told if there is None else {**told, "there": elsewhere, "system": there.system})
        )
    rows = [
        (name, value, *([elsewhere[name][end] for end in ("value", "low", "high")] if elsewhere else ()))
        for name, value in chosen.items()
    ]
    header = ("metric", "chosen at", *(("there", "low", "high") if elsewhere else ()))
    for where, name, why in ((where, name, why) for where, each in reasons.items() for name, why in each.items()):
        click.echo(f"note: {safe(name)} {'where it was chosen' if where == 'chosen' else 'there'}: {why}", err=True)
    at = "" if threshold is None else f" at {threshold!r}{' (decides alike for all)' if come['trivial'] else ''}"
    if form is None:
        show(Text(f"{safe(model)}{at}\n"))
        return _print(header, rows)
    beside = {"point": model} | ({} if threshold is None else {"threshold": repr(threshold)})
    _print((*beside, *header), [(*beside.values(), *row) for row in rows], form)


def _reasons(points: Tradeoff) -> dict[str, str]:
    """Why values of a single point are undefined, or no values like others."""
    found = {one.name: points.why_unknown(0, place) for place, one in enumerate(points.objectives)}
    return {name: why for name, why in found.items() if why}


def _show_points(systems: Sequence[Tradeoff], form: str | None, as_json: bool) -> None:
    """The points of stored scores: all of them, for they are few."""
    told: list[Facts] = [
        {
            "system": points.system,
            "points": [
                point_facts(points, place) | {"front": bool(best)} for place, best in enumerate(points.on_front)
            ],
        }
        for points in systems
    ]
    if as_json:
        return print_json({"systems": without_infinities(told)})
    rows = [
        (each["system"], point["model"], name, *one.values(), "yes" if point["front"] else "")
        for each in told
        for point in each["points"]
        for name, one in point["values"].items()
    ]
    _print(("system", "point", "metric", "value", "low", "high", "front"), rows, form)


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
            raise UsageError(f"several systems are called {system}; name each by --name")
        _check_new(place, inputs, force)
    return places


def _check_new(place: Path, inputs: Sequence[Path], force: bool) -> None:
    if place.resolve() in {file.resolve() for file in inputs}:
        raise UsageError(f"{place} is an input and is not replaced; write elsewhere (--out)")
    if place.exists() and not force:
        raise UsageError(f"{place} is there already; write elsewhere (--out), or give --force")


def _thresholds(text: str | None) -> Any:
    if text in (None, "every", "roc"):
        return text or "every"
    try:
        number = int(text)
    except ValueError:
        return _given_thresholds(text)
    if number < 2:
        raise UsageError("--thresholds: at least 2, from 0 to 1")
    return number


def _given_thresholds(text: str) -> list[float]:
    try:
        found = [float(part) for part in text.split(",")]
    except ValueError:
        found = [math.nan]
    if any(map(math.isnan, found)):
        raise UsageError(f"--thresholds: {text!r} is neither every nor roc, nor how many, nor numbers such as 0.3,0.5")
    return found


def _of_scores(metric: str) -> bool:
    """Whether a metric is one of stored scores, and none of files, whose attributes may have any name."""
    head, attribute, _ = metric.partition("+")
    if head in UTILITIES or (attribute and head in (*FAIRNESS, *WITHIN)):
        return False
    return bool(re.search(r"[(\s]", metric)) or metric in registry.names("metrics")


def _wanted(metrics: Sequence[str], given: Confidences) -> Sequence[str]:
    return metrics or ("acc", *(f"eod+{attribute}" for attribute in given.attributes))


def _refuse(options: Sequence[str], why: str) -> None:
    """Refuses options that say nothing beside the others."""
    context = click.get_current_context()
    for option in context.command.params:
        if option.name in options and context.get_parameter_source(option.name) is ParameterSource.COMMANDLINE:
            raise UsageError(f"{option.opts[0]} {why}")


def _called(systems: list[_System], names: Sequence[str]) -> list[_System]:
    """Systems by other names, where these are given."""
    if not names:
        return systems
    if not all(map(str.strip, names)):
        raise UsageError("--name: a name of nothing; write some text")
    if len(names) != len(systems):
        raise UsageError(f"--name: there are {len(systems)} systems and {len(names)} names")
    return [replace(each, system=name) for each, name in zip(systems, names, strict=True)]


def _systems(files: Sequence[Path], stored: _Stored, names: Sequence[str], deduplicate: bool) -> dict[str, Tradeoff]:
    """The points of each file, called after it, and of stored systems, with the metrics in the order of the first."""
    if not files and not stored.named:
        raise UsageError("give files of solutions, or --stored")
    if not stored.named:
        _refuse(_OF_STORED, "is about --stored; files of solutions tell it themselves")
    if stored.of_scores:
        _refuse(("thresholds", "by"), "is about models at thresholds; of stored scores each run is a point without one")
    with notes():
        solutions = [*_with_notes(Solutions.load(file) for file in files)]
        rows: list[Confidences | None] = [None] * len(files)
        found: list[Tradeoff] = []
        if stored.of_scores:
            known = (replace(each, notes=told) for each, told in _with_notes(stored.points()))
            found = [each.deduplicated() if deduplicate else each for each in known]
        elif stored.named:
            at = _thresholds(stored.thresholds)
            for given, told in _with_notes(stored.confidences()):
                solutions.append((a_posteriori(given, _wanted(stored.metrics, given), at), told))
                rows.append(given)
        order = list(solutions[0][0]) if solutions else []
        decided = _with_notes(_in_order(each, order, deduplicate) for each, _ in solutions)
        at_thresholds = [
            replace(points, given=given, notes=(*told, *more))
            for (points, more), (_, told), given in zip(decided, solutions, rows, strict=True)
        ]
        systems = _called([*at_thresholds, *found], names)
    called = [each.system for each in systems]
    for name in called:
        if called.count(name) > 1:
            raise UsageError(f"several systems are called {name}; name each by --name to compare them")
    return dict(zip(called, systems, strict=True))


def _with_notes(each: Iterator[_Made]) -> Iterator[tuple[_Made, tuple[str, ...]]]:
    """What is made one after the other, each with the doubts that were told meanwhile."""
    while True:
        with collect_warnings() as told:
            one = next(each, None)
        if one is None:
            return
        yield one, tuple(told)


def _with_bands(systems: dict[str, Tradeoff], scores: Sequence[Path]) -> dict[str, Tradeoff]:
    """Systems with the rows they come from where the scores are given, and with bands where the rows are known."""
    found = dict(systems)
    for file in scores:
        with notes():
            given = Scores.load(file).confidences
        name = given.system if len(systems) > 1 or len(scores) > 1 else next(iter(systems))
        if name not in found:
            raise SpecError(f"{file}: no solutions are called {name}; there are: {', '.join(map(safe, found))}")
        points = found[name]
        settled = replace(points, threshold=_at_scores(points, given), given=given)
        apart = np.abs(settled.at(given, "zero").value - points.value)
        if other := int((apart > _SAME).any(axis=1).sum()):
            told = f"{other:,} of the {len(points):,} solutions {name} come to other values there, by up to"
            told = f"{told} {np.nanmax(apart):.3g}; give the scores they are made from, with all their digits"
            raise SpecError(f"{file}: {told}")
        found[name] = settled
    return {name: points if points.given is None else points.with_bands() for name, points in found.items()}


def _at_scores(points: Tradeoff, given: Confidences) -> np.ndarray:
    """The thresholds, those that differ from a score by rounding alone as this score.

    So they do where a store has how sure a model was of the other class, and a file how sure of the positive one.
    """
    found = points.threshold.copy()
    for number in np.unique(points.model):
        mine, sure = points.model == number, np.unique(given.sure(points.models[number]))
        place = np.searchsorted(sure, found[mine] - ROUNDING).clip(max=len(sure) - 1)
        near = np.isclose(sure[place], found[mine], rtol=0, atol=ROUNDING)
        found[mine] = np.where(near, sure[place], found[mine])
    return found


def _in_order(solutions: Solutions, order: Sequence[str], deduplicate: bool) -> Tradeoff:
    """The points of solutions, whose metrics come in an order if they are the same."""
    if set(order) == set(solutions):
        solutions = replace(solutions, points={metric: solutions[metric] for metric in order})
    solutions = solutions.deduplicate() if deduplicate else solutions
    if solutions.n_undefined:
        told = "rest on undefined values, which count as 0: perfectly fair of differences"
        message = f"{solutions.system}: {solutions.n_undefined} of {solutions.n_solutions} points {told}"
        warnings.warn(message, EvaluandWarning, stacklevel=2)
    return solutions.tradeoff


def _check_form(form: str | None, as_json: bool) -> None:
    if form is not None and as_json:
        raise UsageError("give either --format or --json")


def _print(header: Sequence[str], rows: Sequence[Sequence[Any]], form: str | None = None) -> None:
    """A table of texts, counts and numbers, for people or in a format of others."""
    if form is None:
        table = plain_table(*header)
        for column, value in zip(table.columns, rows[0] if rows else (), strict=False):
            column.no_wrap, column.overflow = not isinstance(value, str), "fold"  # names give way, numbers do not
        for row in rows:
            table.add_row(*(Text(_cell(value), justify=_side(value)) for value in row))
        return show(table)
    if form == "csv":
        import csv
        import io

        text = io.StringIO()
        exact = [[safe(each) if isinstance(each, str) else each for each in row] for row in rows]
        csv.writer(text, lineterminator="\n").writerows([header, *exact])
        return click.echo(text.getvalue(), nl=False)
    try:
        from tabulate import tabulate, tabulate_formats
    except ImportError:
        raise SpecError(f"tables as {form} need tabulate: pip install 'evaluand[plots]'") from None
    known = [one for one in tabulate_formats if one not in _UNSAFE]
    if form not in known:
        raise UsageError(f"--format: there is no {form!r}; there are csv, {', '.join(known)}")
    sides = [_side(value) for value in rows[0]]
    cells = [[*map(_cell, row)] for row in rows]
    if form in _PIPED:
        header, *cells = ([cell.replace("|", "\\|") for cell in row] for row in (header, *cells))
    click.echo(tabulate(cells, header, tablefmt=form, disable_numparse=True, colalign=sides))


def _cell(value: str | float | None) -> str:
    if isinstance(value, str | int):
        return safe(str(value))
    return "–" if value is None or math.isnan(value) else f"{value:.4f}"


def _side(value: object) -> Any:
    return "left" if isinstance(value, str) else "right"


def _whole(indicator: str, value: float) -> float:
    return int(value) if indicator in _COUNTS else value


_SAME: Final = 1e-6
_OF_STORED: Final = ("metrics", "by", "label", "scorer", "thresholds")
_OF_THRESHOLDS: Final = ("thresholds", "by", "prior", "only", "out", "deduplicate", "force")
_LONGEST: Final = 80
_OF_NO_FILE: Final = re.compile(r"[^\w. -]|^[. ]")
_PIPED: Final = ("github", "pipe", "orgtbl", "jira")
"""Forms of tables in which | ends a cell."""
_UNSAFE: Final = ("latex_raw", "unsafehtml")
"""Forms that take names for markup."""
