"""Trade-offs that an experiment asks for, and their results: computed when it aggregates, stored, and read by reports.

Three tables of the aggregation hold them: `tradeoffs` has one row per trade-off, `tradeoff_points` one per point, and
`tradeoff_rates` one per group and listed point of a front. All name a trade-off by its place.
"""

import dataclasses
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evaluand.aggregation.aggregator import Aggregation, Measure
from evaluand.core import registry
from evaluand.core.errors import DataError, SpecError, collect_warnings
from evaluand.core.files.json import none_if_nan
from evaluand.core.identity import decode, encode
from evaluand.evaluation.evaluator import Evaluation
from evaluand.metrics.stats.disparity import IntervalEnds
from evaluand.tradeoff.confidences import Confidences, Thresholds
from evaluand.tradeoff.evaluations import (
    CONFIDENT,
    UNIT,
    Label,
    as_declared,
    check_objective,
    confidences_of,
    default_metric,
    lacks_confidences,
    missing_confidences,
    of_evaluations,
    resolve_objective,
    unclear_scorer,
)
from evaluand.tradeoff.indicators import compare_systems
from evaluand.tradeoff.objectives import Objective, parse_objectives, parse_text
from evaluand.tradeoff.points import Tradeoff, solve
from evaluand.tradeoff.rates import FrontRates, GroupRate, RateKey, rates_of_fronts


@dataclass(frozen=True, kw_only=True)
class Trade:
    """A trade-off between the tasks of an experiment.

    Args:
        objectives: two or more, such as `mean(quality)` and `mean(quality) difference by topic`.
        name: a name for it; by default its objectives.
        tasks: the tasks to compare; all by default.
        thresholds: if set, the tasks are models with confidences, which have a point at each of these thresholds; see
            `Confidences.thresholds`. Otherwise each task is a point, by its stored scores.
        label: the positive label.
        scorer: the scorer whose confidences are read.

    Raises:
        SpecError: these do not fit together.

    Example:
        >>> Trade(objectives=["mean(fit)", "mean(fit) difference by topic"]).name
        'mean(fit), mean(fit) difference by topic'
    """

    objectives: Sequence[str]
    name: str = ""
    tasks: Sequence[str] = ()
    thresholds: Thresholds | int | Sequence[float] | None = None
    label: Label | None = None
    scorer: str | None = None

    def __post_init__(self) -> None:
        parts = [parse_text(text) for text in self.objectives]
        if len({(one["metric"], one["scorer"], one["disparity"], one["by"]) for one in parts}) < 2:
            raise SpecError("a trade-off needs two different objectives or more")
        if not self.name:
            object.__setattr__(self, "name", ", ".join(self.objectives))
        if self.thresholds is not None:
            for text, one in zip(self.objectives, parts, strict=True):
                if one["scorer"] is not None:
                    raise SpecError(f"{text!r}: at thresholds, name the scorer of all objectives under scorer")
            parse_objectives(self.objectives)
            _ANY.thresholds("", self.thresholds)
        for text, one in zip(self.objectives, parts, strict=True):
            check_objective(text, one)

    @property
    def spec(self) -> dict[str, Any]:
        """The form stored with an aggregation."""
        return {name: list(v) if isinstance(v, tuple | list) else v for name, v in dataclasses.asdict(self).items()}

    @property
    def by(self) -> tuple[str, ...]:
        """The attributes whose groups are compared."""
        return tuple(dict.fromkeys(name for text in self.objectives for name in parse_text(text)["by"]))

    @property
    def scorers(self) -> set[str]:
        """The scorers that it names."""
        return {name for name in (self.scorer, *(parse_text(text)["scorer"] for text in self.objectives)) if name}

    def misfits(self, scorers: Mapping[str, Collection[str]], declared: Sequence[Measure]) -> list[str]:
        """Everything that does not fit the scorers, as far as is known before anything is scored.

        Args:
            scorers: name → the columns of its table.
            declared: see `of_evaluations`.
        """
        if self.thresholds is not None:
            known = [name for name, columns in scorers.items() if set(columns) >= CONFIDENT]
            fits = self.scorer in known or (self.scorer is None and len(known) == 1)
            return [] if fits else [unclear_scorer(known)]
        faults = []
        options = self.scorer, self.label, lambda kind, _: default_metric(kind, self.label, UNIT)
        for text in self.objectives:
            try:
                _, measures = resolve_objective(text, [*scorers], declared, *options)
                for measure in measures:
                    measure.metric.columns_for(scorers[measure.scorer])
            except SpecError as error:
                faults.append(str(error) if str(error).startswith(repr(text)) else f"{text!r}: {error}")
        return faults

    def points(self, evaluations: Mapping[str, Evaluation], declared: Sequence[Measure] | None = None) -> Tradeoff:
        """The points with their intervals; warnings become their notes.

        Args:
            evaluations: task → its evaluation.
            declared: see `of_evaluations`.

        Raises:
            SpecError: a task is not among them, or the scores do not fit the objectives.
            DataError: see `confidences_of`.
        """
        for task in self.tasks:
            if task not in evaluations:
                raise SpecError(f"the task {task!r} was not run; there are: {', '.join(evaluations)}")
        chosen = {name: evaluations[name] for name in self.tasks or evaluations}
        with collect_warnings() as notes:
            points = self._points(chosen, declared)
        return replace(points, notes=tuple(notes))

    def _points(self, evaluations: Mapping[str, Evaluation], declared: Sequence[Measure] | None) -> Tradeoff:
        options: dict[str, Any] = {"label": self.label, "scorer": self.scorer, "declared": declared}
        if self.thresholds is None:
            return of_evaluations(evaluations, self.objectives, system=self.name, **options)
        confidences = confidences_of(evaluations, self.by, system=self.name, **options)
        objectives = [as_declared(one, declared or (), self.scorer) for one in parse_objectives(self.objectives)]
        return solve(confidences, objectives, self.thresholds).with_intervals()


def trades_without_confidences(trades: Sequence[Trade], evaluations: Mapping[str, Evaluation]) -> Iterator[str]:
    """A message for each trade-off at thresholds that has no points because models have no confidences."""
    for trade in trades:
        if trade.thresholds is None:
            continue
        tasks = [name for name in trade.tasks or evaluations if name in evaluations]
        missing = [name for name in tasks if lacks_confidences(evaluations[name], trade.scorer)]
        if missing:
            yield f"the trade-off {trade.name!r} has no points: {missing_confidences(missing)}"


@dataclass(frozen=True)
class TradeoffResult:
    """A trade-off of an experiment.

    Attributes:
        objectives: the objectives as the experiment writes them.
        points: its points; None where there are none.
        reason: why there are no points; None where there are some.
        indicators: the indicators of its front, see `compare_systems`.
        rates: the rates of groups at points of its front; None where there are none.
    """

    name: str
    objectives: tuple[str, ...]
    points: Tradeoff | None = None
    reason: str | None = None
    indicators: Mapping[str, float] = field(default_factory=dict)
    rates: FrontRates | None = None


def compute_results(
    trades: Sequence[Trade], evaluations: Mapping[str, Evaluation], declared: Sequence[Measure]
) -> list[TradeoffResult]:
    """The results of the trade-offs that an experiment asks for."""
    return [_compute_result(trade, evaluations, declared) for trade in trades]


def result_tables(results: Sequence[TradeoffResult]) -> dict[str, pa.RecordBatch]:
    """The tables to store with an aggregation; without results none."""
    if not results:
        return {}
    rows = {TRADEOFFS: list[dict[str, Any]](), POINTS: list[dict[str, Any]](), RATES: list[dict[str, Any]]()}
    for place, result in enumerate(results):
        rows[TRADEOFFS].append(_tradeoff_row(result))
        if result.points is not None:
            rows[POINTS] += _point_rows(place, result.points)
        if result.rates is not None:
            rows[RATES] += _rate_rows(place, result.rates)
    return {name: pa.RecordBatch.from_pylist(rows[name], schema) for name, schema in SCHEMAS.items() if rows[name]}


def stored_results(aggregation: Aggregation) -> list[TradeoffResult]:
    """The trade-offs of an aggregation, as it stores them.

    Those of an aggregation that was made before trade-offs were stored are computed from its evaluations.
    """
    specs = aggregation.manifest["spec"].get("tradeoffs", ())
    if not specs:
        return []
    if TRADEOFFS not in aggregation.manifest["counts"]:
        each = [Evaluation(aggregation.store, id) for id in aggregation.manifest["provenance"]["evaluations"]]
        evaluations = dict(zip(aggregation.labels, each, strict=True))
        return compute_results([Trade(**spec) for spec in specs], evaluations, aggregation.measures)
    tables = {name: aggregation.further_table(name, schema) for name, schema in SCHEMAS.items()}
    rows = tables[TRADEOFFS].to_pylist()
    return [
        _read_result(row, *(tables[name].filter(pc.equal(tables[name]["tradeoff"], place)) for name in _LONG))
        for place, row in enumerate(rows)
    ]


def _compute_result(trade: Trade, evaluations: Mapping[str, Evaluation], declared: Sequence[Measure]) -> TradeoffResult:
    objectives = tuple(trade.objectives)
    try:
        points = trade.points(evaluations, declared)
    except (SpecError, DataError) as error:
        return TradeoffResult(trade.name, objectives, reason=str(error))
    systems = {trade.name: points}
    indicators = compare_systems(systems)[trade.name]
    return TradeoffResult(trade.name, objectives, points, None, indicators, rates_of_fronts(systems).get(trade.name))


def _tradeoff_row(result: TradeoffResult) -> dict[str, Any]:
    points, rates = result.points, result.rates
    row: dict[str, Any] = {"name": result.name, "texts": list(result.objectives), "reason": result.reason}
    if points is not None:
        indicators = {name: none_if_nan(value) for name, value in result.indicators.items()}
        row |= {"models": list(points.models), "notes": list(points.notes), "indicators": list(indicators.items())}
        row |= {"objectives": [*map(_objective_row, points.objectives)]}
        row |= {"rates": None if rates is None else [key._asdict() for key in rates.keys]}
    return row


def _objective_row(objective: Objective) -> dict[str, Any]:
    parts = [encode(part.spec).decode() for part in objective.parts]
    names = ("metric", "disparity", "scorer", "name")
    return {name: getattr(objective, name) for name in names} | {"by": list(objective.by), "parts": parts}


def _point_rows(place: int, points: Tradeoff) -> list[dict[str, Any]]:
    columns = {
        "model": points.model.tolist(),
        "threshold": [none_if_nan(each) for each in points.threshold.tolist()],
        "trivial": points.trivial.tolist(),
        "front": points.on_front.tolist(),
        "value": _lists(points.value),
        "low": [None] * len(points) if points.ends is None else _lists(points.ends.low),
        "high": [None] * len(points) if points.ends is None else _lists(points.ends.high),
    }
    return [{"tradeoff": place} | dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def _rate_rows(place: int, rates: FrontRates) -> list[dict[str, Any]]:
    return [
        {"tradeoff": place, "point": point, "rate": number}
        | {name: none_if_nan(value) for name, value in rate._asdict().items()}
        for point, of_point in rates.by_point.items()
        for number, groups in enumerate(of_point)
        for rate in groups
    ]


def _read_result(row: Mapping[str, Any], points: pa.Table, rates: pa.Table) -> TradeoffResult:
    texts = tuple(row["texts"])
    if row["reason"] is not None:
        return TradeoffResult(row["name"], texts, reason=row["reason"])
    try:
        objectives = tuple(map(_read_objective, row["objectives"]))
    except (SpecError, TypeError) as error:  # a metric of the user's, which no store can bring back
        return TradeoffResult(row["name"], texts, reason=f"its metrics cannot be loaded: {error}")
    indicators = {name: np.nan if value is None else value for name, value in row["indicators"]}
    read = None if row["rates"] is None else _read_rates([RateKey(**key) for key in row["rates"]], rates)
    return TradeoffResult(row["name"], texts, _read_points(row, objectives, points), None, indicators, read)


def _read_objective(row: Mapping[str, Any]) -> Objective:
    specs = map(decode, row["parts"])
    parts = tuple(registry.find("metrics", spec["kind"])(**spec["parameters"]) for spec in specs)
    return Objective(**{**row, "by": tuple(row["by"]), "parts": parts})


def _read_points(row: Mapping[str, Any], objectives: tuple[Objective, ...], table: pa.Table) -> Tradeoff:
    k = len(objectives)
    value = _matrix(table["value"], k)
    ends = None if table["low"].null_count else IntervalEnds(value, _matrix(table["low"], k), _matrix(table["high"], k))
    return Tradeoff(
        objectives,
        tuple(row["models"]),
        table["model"].to_numpy().astype(np.int64),
        table["threshold"].to_numpy().astype(np.float64),
        value,
        np.asarray(table["trivial"].to_numpy()),
        row["name"],
        ends=ends,
        notes=tuple(row["notes"]),
    )


def _read_rates(keys: Sequence[RateKey], table: pa.Table) -> FrontRates:
    by_point: dict[int, list[list[GroupRate]]] = {}
    for row in table.to_pylist():
        of_point = by_point.setdefault(row["point"], [[] for _ in keys])
        value, low, high = (np.nan if row[name] is None else row[name] for name in ("value", "low", "high"))
        of_point[row["rate"]].append(GroupRate(row["group"], value, low, high, row["counted"], row["of"]))
    return FrontRates(tuple(keys), by_point)


def _lists(values: np.ndarray) -> list[list[float | None]]:
    return [[none_if_nan(each) for each in row] for row in values.tolist()]


def _matrix(column: pa.ChunkedArray, width: int) -> np.ndarray:
    flat = column.combine_chunks().flatten().to_numpy(zero_copy_only=False)
    return np.array(flat, np.float64).reshape(-1, width)


TRADEOFFS: Final = "tradeoffs"
POINTS: Final = "tradeoff_points"
RATES: Final = "tradeoff_rates"
_LONG: Final = (POINTS, RATES)

_VALUES: Final = pa.list_(pa.float64())
_TEXTS: Final = pa.list_(pa.string())
_OBJECTIVE: Final = pa.struct(
    {name: _TEXTS if name in ("by", "parts") else pa.string() for name in Objective.__dataclass_fields__}
)

_KINDS: Final[dict[str, dict[str, pa.DataType]]] = {
    TRADEOFFS: {
        "name": pa.string(),
        "texts": _TEXTS,
        "reason": pa.string(),
        "models": _TEXTS,
        "notes": _TEXTS,
        "indicators": pa.map_(pa.string(), pa.float64()),
        "objectives": pa.list_(_OBJECTIVE),
        "rates": pa.list_(pa.struct({name: pa.int32() for name in RateKey._fields})),
    },
    POINTS: {
        "tradeoff": pa.int32(),
        "model": pa.int32(),
        "threshold": pa.float64(),
        "trivial": pa.bool_(),
        "front": pa.bool_(),
        **dict.fromkeys(("value", "low", "high"), _VALUES),
    },
    RATES: {
        **dict.fromkeys(("tradeoff", "point", "rate"), pa.int32()),
        "group": pa.string(),
        **dict.fromkeys(("value", "low", "high", "counted", "of"), pa.float64()),
    },
}
_ALWAYS: Final = {
    TRADEOFFS: ("name", "texts"),
    POINTS: ("tradeoff", "model", "trivial", "front", "value"),
    RATES: ("tradeoff", "point", "rate", "group"),
}
SCHEMAS: Final = {
    table: pa.schema([pa.field(name, kind, nullable=name not in _ALWAYS[table]) for name, kind in kinds.items()])
    for table, kinds in _KINDS.items()
}

_ANY: Final = Confidences(np.array([True]), {"": np.array([0.5])}, {})
