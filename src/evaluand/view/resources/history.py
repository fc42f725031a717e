"""How the metrics of the tasks of an experiment have changed from one evaluation to the next."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import orjson

from evaluand.core.errors import EvaluandError, NotFound
from evaluand.core.labels import experiment_of
from evaluand.report.facts.base import Facts
from evaluand.report.html.charts import Axis, Plot, Series, key
from evaluand.view.resources.base import Source, resource
from evaluand.view.resources.listing import list_values

_MOST: Final = 30  # evaluations of a task, the newest ones
_MOST_TICKS: Final = 4


class _Setting(NamedTuple):
    """What a value was measured with: only values with the same one can be compared."""

    data: str
    rows: tuple[int, int]
    scorer: str
    metric: str


_WORDS: Final = {
    "data": "other examples",
    "rows": "another number of rows",
    "scorer": "another scorer",
    "metric": "other settings of the metric",
}


def list_attempts(source: Source, experiment: str) -> dict[str, list[str]]:
    """The finished evaluations of each task of an experiment that has several, oldest first."""
    found: dict[str, list[str]] = {name: [] for name in _list_current(source) if experiment_of(name) == experiment}
    for entry in source.finished("evaluations"):
        if entry["name"] in found and len(found[entry["name"]]) < _MOST:
            found[entry["name"]].insert(0, entry["id"])
    return {name: ids for name, ids in found.items() if len(ids) > 1}


def _list_current(source: Source) -> dict[str, str]:
    """The evaluation that each name refers to now."""
    return {ref.name: ref.id for ref in source.store.refs() if ref.kind == "evaluations"}


def _list_experiments(source: Source) -> Iterator[Mapping[str, str]]:
    for name in dict.fromkeys(map(experiment_of, _list_current(source))):
        if name is not None and list_attempts(source, name):
            yield {"name": name}


@resource("history/{name}", _list_experiments)
def read_history(source: Source, name: str) -> list[Facts]:
    """The values of each metric of each task of an experiment, evaluation by evaluation, oldest first.

    Values that were measured on other examples or by another scorer than the current one are marked, and no line joins
    them with it.
    """
    attempts, current = list_attempts(source, name), _list_current(source)
    key = "history", name, *(current[task] for task in attempts), source.list_ids("evaluations", "aggregations")
    return source.contents.get(
        key, lambda: [_describe(source, task, ids, current[task]) for task, ids in attempts.items()]
    )


def _describe(source: Source, name: str, ids: Sequence[str], current: str) -> Facts:
    evaluations: list[Facts] = []
    values: dict[tuple[str, str | None], list[Facts]] = {}
    before = None
    for number, id in enumerate(ids, 1):
        manifest = source.store.manifest("evaluations", id)
        run = _read_run(source, manifest)
        system = _encode((run.get("spec") or {}).get("task"))
        about = {"id": id, "created": manifest["created"], "current": id == current}
        evaluations.append(about | {"changed": before is not None and system != before})
        before = system
        for row in list_values(source, id):
            own = {name: row[name] for name in ("value", "low", "high", "n", "n_scored", "reason")}
            own |= {"number": number, "setting": _find_setting(source, manifest, run, row)}
            values.setdefault((row["label"], row["target"]), []).append(own)
    now = ids.index(current) + 1 if current in ids else len(ids)
    metrics = [_describe_metric(*key, rows, now) for key, rows in values.items() if len(rows) > 1]
    return {"task": name.partition("/")[2], "evaluations": evaluations, "metrics": metrics}


def _read_run(source: Source, manifest: Facts) -> Facts:
    """The manifest of the run of an evaluation; empty if the store has lost it."""
    try:
        return dict(source.store.manifest("runs", manifest["provenance"]["run"]))
    except EvaluandError:
        return {}


def _encode(value: Any) -> str:
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()


def _find_setting(source: Source, manifest: Facts, run: Facts, row: Facts) -> _Setting:
    spec, asked = manifest["spec"], run.get("spec") or {}
    try:
        data = str(source.store.manifest("datasets", spec["dataset"]).get("digest"))
    except NotFound:
        data = spec["dataset"]
    rows = asked.get("examples", 0), asked.get("replications", 0)
    return _Setting(data, rows, _encode(spec["scorers"].get(row["scorer"])), row["signature"])


def _describe_metric(label: str, target: str | None, rows: list[Facts], now: int) -> Facts:
    """A metric of a task, with a chart that joins only what can be compared.

    Args:
        rows: its values.
        now: the number of the current evaluation.
    """
    current = next((row["setting"] for row in rows if row["number"] == now), rows[-1]["setting"])
    settings = [current, *dict.fromkeys(row["setting"] for row in rows if row["setting"] != current)]
    marks = {setting: number for number, setting in enumerate(settings)}
    values = [
        row | {"key": key(marks[row["setting"]]), "differs": _list_differences(row["setting"], current)} for row in rows
    ]
    return {"label": label, "target": target, "chart": _draw(label, rows, marks), "values": values}


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
