"""How the metrics of the tasks of an experiment have changed from one evaluation to the next."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import orjson

from evaluand.aggregation.kind import AGGREGATIONS
from evaluand.core.errors import EvaluandError, NotFound
from evaluand.core.labels import experiment_of
from evaluand.data.kind import DATASETS
from evaluand.evaluation.kind import EVALUATIONS
from evaluand.metrics.base.signature import words_of
from evaluand.metrics.names import name_in_tables
from evaluand.report.facts.base import Facts
from evaluand.report.html.charts import Axis, Plot, Series, key
from evaluand.report.metric_labels import metric_labels
from evaluand.report.page.resources.base import Source, resource
from evaluand.report.page.resources.listing import list_values
from evaluand.run.kind import RUNS

_MOST: Final = 30  # evaluations of a task, the newest ones
_MOST_TICKS: Final = 4


class _Setting(NamedTuple):
    """What a value was measured with: only values with the same one can be compared."""

    data: str
    view: str
    rows: tuple[int, int]
    scorer: str
    metric: str


_WORDS: Final = {
    "data": "other examples",
    "view": "another view of the examples",
    "rows": "another number of rows",
    "scorer": "another scorer",
    "metric": "other settings of the metric",
}


def list_attempts(source: Source, experiment: str) -> dict[str, list[str]]:
    """The finished evaluations of each task of an experiment that has several, oldest first."""
    found: dict[str, list[str]] = {name: [] for name in _list_current(source) if experiment_of(name) == experiment}
    for entry in source.finished(EVALUATIONS):
        if entry["name"] in found and len(found[entry["name"]]) < _MOST:
            found[entry["name"]].insert(0, entry["id"])
    return {name: ids for name, ids in found.items() if len(ids) > 1}


def _list_current(source: Source) -> dict[str, str]:
    """The evaluation that each name refers to now."""
    return {ref.name: ref.id for ref in source.store.refs() if ref.kind == EVALUATIONS}


def _list_experiments(source: Source) -> Iterator[Mapping[str, str]]:
    for name in dict.fromkeys(map(experiment_of, _list_current(source))):
        if name is not None and list_attempts(source, name):
            yield {"name": name}


@resource("history/{name}", _list_experiments)
def read_history(source: Source, name: str) -> list[Facts]:
    """The values of each metric of each task of an experiment, evaluation by evaluation, oldest first.

    Values that were measured on other examples or by another scorer than the current one are marked, and no line joins
    them with it. Tasks without a metric that has several values are left out.
    """
    attempts, current = list_attempts(source, name), _list_current(source)
    key = "history", name, *(current[task] for task in attempts), source.list_ids(EVALUATIONS, AGGREGATIONS)
    return source.contents.get(key, lambda: _describe_all(source, attempts, current))


def _describe_all(source: Source, attempts: Mapping[str, Sequence[str]], current: Mapping[str, str]) -> list[Facts]:
    found = (_describe(source, task, ids, current[task]) for task, ids in attempts.items())
    return [task for task in found if task["metrics"]]


def _describe(source: Source, name: str, ids: Sequence[str], current: str) -> Facts:
    evaluations: list[Facts] = []
    listed = [list_values(source, id) for id in ids]
    identify = _identify_metrics(listed)
    values: dict[_Metric, list[Facts]] = {}
    before = None
    for number, id in enumerate(ids, 1):
        manifest = source.store.manifest(EVALUATIONS, id)
        run = _read_run(source, manifest)
        system = _encode((run.get("spec") or {}).get("task"))
        about = {"id": id, "created": manifest["created"], "current": id == current}
        evaluations.append(about | {"changed": before is not None and system != before})
        before = system
        for row in listed[number - 1]:
            own = {name: row[name] for name in ("value", "low", "high", "n", "n_scored", "reason")}
            own |= {"number": number, "scorer": row["scorer"], "signature": row["signature"]}
            own |= {"setting": _find_setting(source, manifest, run, row)}
            values.setdefault(identify(row), []).append(own)
    now = ids.index(current) + 1 if current in ids else len(ids)
    newest = {metric: next((row for row in rows if row["number"] == now), rows[-1]) for metric, rows in values.items()}
    labels = metric_labels([*newest.values()])
    metrics = [
        _describe_metric(labels[metric.scorer, newest[metric]["signature"]], metric.target, rows, newest[metric], now)
        for metric, rows in values.items()
        if sum(row["value"] is not None for row in rows) > 1
    ]
    return {"task": name.partition("/")[2], "evaluations": evaluations, "metrics": metrics}


class _Metric(NamedTuple):
    """What the values of a trend have in common.

    Attributes:
        name: in tables, without parameters.
        words: the parameters that distinguish it from metrics of the same name.
    """

    scorer: str
    target: str | None
    kind: str
    name: str
    words: tuple[tuple[str, str | None], ...]


def _identify_metrics(evaluations: Sequence[Sequence[Facts]]) -> Callable[[Facts], _Metric]:
    """Says of a value of some evaluations of a task what metric it is of.

    Parameters that differ within an evaluation make different metrics; those that differ only from one evaluation to
    another are other settings of one metric.
    """
    differing: dict[tuple[str, ...], set[str]] = {}
    for rows in evaluations:
        alike: dict[tuple[str, ...], list[dict[str, str]]] = {}
        for row in rows:
            alike.setdefault(_find_kind(row), []).append(words_of(row["signature"]))
        for kind, words in alike.items():
            names = {name for each in words for name in each}
            own = {name for name in names if len({each.get(name) for each in words}) > 1}
            differing.setdefault(kind, {*_ALWAYS}).update(own)

    def identify(row: Facts) -> _Metric:
        kind, words = _find_kind(row), words_of(row["signature"])
        distinguished = tuple((name, words.get(name)) for name in sorted(differing[kind]))
        return _Metric(row["scorer"], row["target"], *kind[1:], distinguished)

    return identify


_ALWAYS: Final = ("k", "where")  # as in labels: the answers and the rows that a metric is of


def _find_kind(row: Facts) -> tuple[str, str, str]:
    return row["scorer"], row["signature"].partition(" ")[0], name_in_tables(row["signature"])


def _read_run(source: Source, manifest: Facts) -> Facts:
    """The manifest of the run of an evaluation; empty if the store has lost it."""
    try:
        return dict(source.store.manifest(RUNS, manifest["provenance"]["run"]))
    except EvaluandError:
        return {}


def _encode(value: Any) -> str:
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()


def _find_setting(source: Source, manifest: Facts, run: Facts, row: Facts) -> _Setting:
    spec, asked = manifest["spec"], run.get("spec") or {}
    try:
        data = str(source.store.manifest(DATASETS, spec["dataset"]).get("digest"))
    except NotFound:
        data = spec["dataset"]
    rows = asked.get("examples", 0), asked.get("replications", 0)
    return _Setting(
        data, _encode(asked.get("view")), rows, _encode(spec["scorers"].get(row["scorer"])), row["signature"]
    )


def _describe_metric(label: str, target: str | None, rows: list[Facts], newest: Facts, now: int) -> Facts:
    """A metric of a task, with a chart that joins only what can be compared.

    Args:
        rows: its values.
        newest: the one with which they are compared: that of the current evaluation, or the last if it has none.
        now: the number of the current evaluation.

    Returns:
        Also `current`, whether the current evaluation has a value.
    """
    current = newest["setting"]
    settings = [current, *dict.fromkeys(row["setting"] for row in rows if row["setting"] != current)]
    marks = {setting: number for number, setting in enumerate(settings)}
    values = [
        {name: row[name] for name in _SHOWN}
        | {"key": key(marks[row["setting"]]), "differs": _list_differences(row["setting"], current)}
        for row in rows
    ]
    described = {"label": label, "target": target, "chart": _draw(label, rows, marks), "values": values}
    return described | {"current": newest["number"] == now}


_SHOWN: Final = ("number", "value", "low", "high", "n", "n_scored", "reason")


def _list_differences(setting: _Setting, other: _Setting) -> list[str]:
    differing = [name for name in _WORDS if getattr(setting, name) != getattr(other, name)]
    return [_WORDS[name] for name in differing if name != "rows" or "data" not in differing]


def _draw(label: str, rows: Sequence[Facts], marks: Mapping[_Setting, int]) -> str:
    series = []
    for setting, number in marks.items():
        own = [row for row in rows if row["setting"] == setting and row["value"] is not None]
        points = [(float(row["number"]), row["value"]) for row in own]
        series.append(Series(number, points, [(row["low"], row["high"]) for row in own], dots=True))
    known = [row[name] for row in rows for name in ("value", "low", "high") if row[name] is not None]
    last = rows[-1]["number"]
    step = -(-last // _MOST_TICKS)
    plot = Plot(
        "evaluation",
        label,
        f"{label} of {len(rows)} evaluations, whose numbers are in the table",
        Axis(1, last, 1) if step == 1 else Axis(0, -(-last // step) * step, step),
        Axis.over(known),
    )
    return plot.svg(series)
