"""The mean that people would give all rows, from a judge's values of all and people's labels of a few."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, Final

import numpy as np

from evaluand.core.errors import SpecError, plural
from evaluand.metrics.base.averaging import OfColumn
from evaluand.metrics.base.metric import (
    CLUSTER,
    DRAW,
    NO_ROWS,
    PEOPLE,
    STRATUM,
    VALUE,
    Columns,
    Direction,
    State,
    Values,
    check_confidence,
    check_whole_number,
    numbers,
    weights_of,
)
from evaluand.metrics.column_statistics import check_range
from evaluand.metrics.judging.estimate import Estimate, undefined
from evaluand.metrics.judging.prediction_powered import UNBOUNDED, PredictionPowered, prediction_powered_mean
from evaluand.metrics.stats.intervals import count_rows


@dataclass(frozen=True, kw_only=True)
class PredictionPoweredMean(OfColumn):
    """The mean of what people say about all rows: a judge grades all, and people have labelled some at random.

    Unbiased whatever the judge is worth, and never much wider than the interval of the labels alone; see
    `judging.prediction_powered`. Its `data` hold the judge's mean alone and that of the labels alone. There is no value
    unless the labelled rows were drawn at random: those that come first in the order of `evaluand label export`.

    Args:
        column: the judge's value.
        labels: the column of the dataset with people's labels, or the question if people answered several; by default
            the newest labels of the run.
        threshold: the judge's lowest number that means right, for grades of a judge where people say right or wrong.
        people_threshold: people's lowest grade that means right, where the judge says right or wrong.
        strata: an attribute of the dataset by which the labelled rows were drawn separately.
        seed: that of `evaluand label export`.
        drawn: the labelled rows were drawn at random in another way, which nothing can verify.
        weighted: each row counts by the weight of its example.
        range: the values that people and judge can give.
        direction: whether higher or lower is better; None if neither.
        confidence: of the intervals.

    Raises:
        SpecError: the range is empty or reversed, the confidence not between 0 and 1, or the threshold not finite.

    Example:
        >>> metric = PredictionPoweredMean(range=(0, 1), drawn=True)
        >>> rows = {"value": np.array([1.0, 0.0, 1.0] * 20), PEOPLE: np.array([1.0, 0.0] * 6 + [np.nan] * 48)}
        >>> state = metric.state(rows | {CLUSTER: np.arange(60)}, np.zeros(60, np.int64), n_groups=1)
        >>> found = metric.compute(state)
        >>> found.value.round(2), found.data[0]["judge"]["value"], found.data[0]["people"]["value"]
        (array([0.5]), 0.6666666666666666, 0.5)
    """

    kind = "prediction_powered_mean"
    reads_labels = True

    labels: str | None = None
    threshold: float | None = None
    people_threshold: float | None = None
    strata: str | None = None
    seed: int = 0
    drawn: bool = False
    weighted: bool = False
    range: tuple[float, float] = (-math.inf, math.inf)
    direction: Direction | None = "higher"
    confidence: float = 0.95

    def __post_init__(self) -> None:
        object.__setattr__(self, "range", check_range(self.kind, self.range))
        object.__setattr__(self, "confidence", check_confidence(self.kind, self.confidence))
        check_whole_number(self.kind, "seed", self.seed, 0)
        for name in ("threshold", "people_threshold"):
            value = getattr(self, name)
            if value is not None and not math.isfinite(value):
                raise SpecError(f"{self.kind}: {name}={value} must be a number")
        super().__post_init__()

    @property
    def interval_name(self) -> str:
        return "prediction-powered"

    @property
    def by_cluster(self) -> bool:
        return True

    def prepare(self, columns: Columns) -> Columns:
        return {VALUE: numbers(columns, self.column, self.kind)}

    def state(self, columns: Columns, group: np.ndarray, n_groups: int) -> State:
        n = len(group)
        weight = weights_of(columns, self.kind) if self.weighted else np.ones(n)
        rows = {VALUE: columns[VALUE], _WEIGHT: weight, CLUSTER: columns[CLUSTER], _GROUP: group}
        rows[PEOPLE] = columns.get(PEOPLE, np.full(n, np.nan)).astype(np.float64)
        rows[DRAW] = columns.get(DRAW, np.full(n, np.nan)).astype(np.float64)
        rows[STRATUM] = columns.get(STRATUM, np.zeros(n, np.int64))
        return {"n": count_rows(group, n_groups)} | rows

    def merge(self, states: Sequence[State]) -> State:
        rows = {name: np.concatenate([state[name] for state in states]) for name in _ROW}
        return {"n": reduce(np.add, [state["n"] for state in states])} | rows

    def place(self, state: State, positions: np.ndarray, n_groups: int) -> State:
        n = np.zeros(n_groups, np.int64)
        n[positions] = state["n"]
        return {**state, "n": n, _GROUP: positions[state[_GROUP]] if len(state[_GROUP]) else state[_GROUP]}

    def compute(self, state: State) -> Values:
        groups = np.arange(len(state["n"])).tolist()
        found = [self._compute_group({name: state[name][state[_GROUP] == group] for name in _ROW}) for group in groups]
        value, low, high = (np.array([getattr(one, end) for one, _ in found]) for end in ("value", "low", "high"))
        return Values(value, low, high, [one.reason for one, _ in found], [data for _, data in found])

    def _compute_group(self, rows: State) -> tuple[Estimate, dict[str, Any] | None]:
        rows = {name: column[rows[_WEIGHT] > 0] for name, column in rows.items()}
        if not len(rows[VALUE]):
            return undefined(NO_ROWS), None
        found, fault = self.measure(
            rows[VALUE][None], rows[PEOPLE][None], rows[DRAW], rows[STRATUM], rows[_WEIGHT], rows[CLUSTER]
        )
        return undefined(fault) if fault else found.both, _describe(found)

    def measure(
        self,
        judged: np.ndarray,
        labels: np.ndarray,
        draw: np.ndarray,
        stratum: np.ndarray,
        weight: np.ndarray,
        cluster: np.ndarray,
    ) -> tuple[PredictionPowered, str | None]:
        """The mean of one system, or of the second minus the first on the same rows, from those labelled for both.

        Args:
            judged: of one system or of both: systems × rows, like `labels`.
            draw: the place of each row in the random order; the other arguments as in `prediction_powered_mean`.

        Returns:
            The mean, and why it does not count; None if it does.
        """
        judged, labels = _divide(judged, self.threshold), _divide(labels, self.people_threshold)
        least, most = self._range_of(judged, labels)
        fault = _find_scale_fault(judged, labels, (least, most))
        if len(judged) > 1:
            judged, labels, least, most = np.diff(judged, axis=0), np.diff(labels, axis=0), least - most, most - least
        found = prediction_powered_mean(
            judged[0],
            labels[0],
            weight=weight,
            cluster=cluster,
            stratum=stratum if self.strata is not None else None,
            range=(least, most),
            confidence=self.confidence,
        )
        return found, fault or self._find_draw_fault(labels[0], draw, stratum)

    def _range_of(self, judged: np.ndarray, labels: np.ndarray) -> tuple[float, float]:
        """The declared range; that of shares where none is declared for these numbers and all are 0 and 1."""
        if self.range != UNBOUNDED and self.threshold is None and self.people_threshold is None:
            return self.range
        is_binary = all(np.isin(each[~np.isnan(each)], (0.0, 1.0)).all() for each in (judged, labels))
        return (0.0, 1.0) if is_binary else self.range

    def _find_draw_fault(self, labels: np.ndarray, draw: np.ndarray, stratum: np.ndarray) -> str | None:
        """Why the labelled rows are not known to be drawn at random; None if they are."""
        known = ~np.isnan(labels)
        if self.drawn or not known.any() or known.all():
            return None
        skipped = 0
        for each in np.unique(stratum[known]):
            own = stratum == each
            last = draw[own & known].max()
            skipped += int((own & ~known).sum() if np.isnan(last) else (draw[own & ~known] < last).sum())
        if not skipped:
            return None
        without = plural(skipped, "row")
        return (
            f"labels not drawn at random: {without} before the last labelled one lack one; label these, or declare"
            " `drawn: true`"
        )


_GROUP: Final = "_group_"
_WEIGHT: Final = "_weight_of_row_"
_ROW: Final = (VALUE, PEOPLE, DRAW, STRATUM, _WEIGHT, CLUSTER, _GROUP)


def _divide(values: np.ndarray, threshold: float | None) -> np.ndarray:
    """1 from the threshold on, else 0; unknown values stay unknown."""
    if threshold is None:
        return values
    return np.where(np.isnan(values), np.nan, (values >= threshold).astype(np.float64))


def _find_scale_fault(judged: np.ndarray, labels: np.ndarray, range: tuple[float, float]) -> str | None:
    """Why people and judge are not on one scale, as far as that can be seen; None if they may be."""
    given = labels[~np.isnan(labels)]
    if not len(given):
        return None
    if math.isfinite(range[1] - range[0]):
        is_alike = bool((given >= range[0]).all() and (given <= range[1]).all())
    else:
        of_people, of_judge = (bool((each >= 0).all() and (each <= 1).all()) for each in (given, judged))
        is_alike = of_people == of_judge
    if is_alike:
        return None
    ends = [f"{each.min():g} to {each.max():g}" for each in (given, judged)]
    return f"people give {ends[0]} and the judge {ends[1]}; say what means right: `people_threshold` or `threshold`"


def _describe(found: PredictionPowered) -> dict[str, Any]:
    alone = {
        name: {end: None if math.isnan(number := getattr(mean, end)) else number for end in ("value", "low", "high")}
        for name, mean in (("judge", found.judge), ("people", found.people))
    }
    share = None if math.isnan(found.weight) else found.weight
    return {"n": found.judge.n, "labelled": found.people.n, "judge_share": share} | alone
