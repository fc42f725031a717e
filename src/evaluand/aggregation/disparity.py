"""Disparities between groups: the value, its interval, and the groups behind them.

`metrics.stats.disparity` computes values and intervals. Here they become rows with the two groups that differ most, the
groups that are left out, those with few rows, and the reason where a disparity is undefined. Where a group is compared
with all rows the interval is wider than necessary; where clusters extend across groups it may be too wide, or too
narrow where a cluster that is good in one group is bad in another.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, NamedTuple, get_args

import numpy as np

from evaluand.aggregation.groups import By, MetricRow, Summary, group_text
from evaluand.core.errors import SpecError, nearest
from evaluand.metrics.base.metric import Metric
from evaluand.metrics.stats.disparity import Disparity, IntervalEnds, Kind as Kind, disparity

SMALL: Final = 30
"""Groups with fewer scored rows behind their value are reported as small; behind recall are the expected rows."""


class DisparityRow(NamedTuple):
    """A disparity between groups.

    Attributes:
        metric: the metric's kind; the name of the criterion for several metrics.
        signature: the metric with all its parameters; for several metrics, all of them.
        target: the target, where several things are expected; None without targets.
        over: the attributes whose groups are compared.
        value: NaN where undefined, with a `reason`.
        low: lower end of the interval, NaN where there is none.
        high: upper end of the interval.
        reason: why the value, or only its interval, is undefined; or which groups the interval leaves out.
        lowest: the group with the smallest value, attribute by attribute; None where undefined.
        highest: the group with the largest value.
        n_groups: the number of groups compared.
        small: groups with fewer than `SMALL` scored rows behind their value.
        undefined: groups without a value, which were left out.
        decided_by: the metric with the largest disparity, of several; None of one, and where undefined.
    """

    metric: str
    signature: str
    target: str | None
    over: tuple[str, ...]
    disparity: str
    value: float
    low: float
    high: float
    reason: str | None
    lowest: Mapping[str, str | None] | None
    highest: Mapping[str, str | None] | None
    n_groups: int
    small: tuple[Mapping[str, str | None], ...]
    undefined: tuple[Mapping[str, str | None], ...]
    decided_by: str | None = None


def check_kinds(kinds: Any) -> tuple[Kind, ...]:
    """The kinds of disparities, checked.

    Raises:
        SpecError: there is no such kind.

    Example:
        >>> check_kinds("difference")
        ('difference',)
    """
    names = (kinds,) if isinstance(kinds, str) else tuple(kinds or ())
    known = get_args(Kind)
    for name in names:
        if name not in known:
            raise SpecError(f"no disparity is called {name!r}{nearest(str(name), known)}; there are {', '.join(known)}")
    return tuple(dict.fromkeys(names))


def disparities(
    summary: Summary,
    positions: Sequence[int],
    over: By,
    kinds: Sequence[Kind],
    *,
    name: str | None = None,
    attributes: By | None = None,
) -> list[DisparityRow]:
    """The disparities between the groups of one grouping, for each target.

    Rows without a value of an attribute form no group; groups without a metric value are left out and reported.

    Args:
        summary: of all shards, by `over` and over all rows.
        positions: the places of the metrics; of several, the largest disparity counts (equalized odds is that of the
            true and the false positive rates).
        over: the columns whose groups are compared.
        name: the name of the criterion, for several metrics.
        attributes: the names of the attributes in `over`; the same by default.
    """
    metrics = [summary.settled(position) for position in positions]
    groups, overall = ([_by_target(summary.values(each, names)) for each in positions] for names in (over, ()))
    result = []
    for target in groups[0]:
        rows = [[row for row in one[target] if None not in row.by.values()] for one in groups]
        compared = GroupComparison(
            metrics,
            [dict(zip(attributes or over, row.by.values(), strict=False)) for row in rows[0]],
            list(map(_interval_ends, rows)),
            [np.array([[_basis(row) for row in one]]).reshape(1, -1) for one in rows],
            [_interval_ends(one[target]) for one in overall],
        )
        result += [
            row._replace(target=target) for kind in kinds for row in compared.rows(kind, attributes or over, name)
        ]
    return result


Group = Mapping[str, str | None]


@dataclass(frozen=True, eq=False)
class GroupComparison:
    """Values of groups to compare, by one metric or several, and for one or many entries, such as thresholds.

    Attributes:
        metrics: settled.
        groups: the groups, also those without a value.
        values: entries × groups for each metric, with intervals of the metric's confidence.
        rests_on: the rows behind each value: entries × groups for each metric.
        overall: the value over all rows for each metric, entries × 1, for disparities to it.
        confidence: the level of the intervals; by default that of the metrics.
        as_zero: whether undefined values count as 0; what rests on them has no interval.
    """

    metrics: Sequence[Metric]
    groups: Sequence[Group]
    values: Sequence[IntervalEnds]
    rests_on: Sequence[np.ndarray]
    overall: Sequence[IntervalEnds] | None = None
    confidence: float | None = None
    as_zero: bool = False

    def rows(self, kind: Kind, over: By, name: str | None = None) -> list[DisparityRow]:
        """The disparity of each entry; the target is None.

        Args:
            over: the attributes whose groups are compared.
            name: the name of the criterion, for several metrics.
        """
        found = None if self._why_never(kind) else self._compute(kind)
        return [self._row(entry, kind, over, name, found) for entry in range(len(self.values[0].value))]

    def _compute(self, kind: Kind) -> Disparity:
        known = [getattr(metric, "confidence", None) for metric in self.metrics]
        confidence = self.confidence or min(filter(None, known), default=_USUAL)
        overall = self.overall if kind.endswith("overall") else None
        return disparity(self._counted, kind, confidence, self.metrics[0].range, overall)

    @cached_property
    def _counted(self) -> list[IntervalEnds]:
        return [IntervalEnds(np.nan_to_num(one.value), *one[1:]) if self.as_zero else one for one in self.values]

    @cached_property
    def _known(self) -> np.ndarray:
        """Which groups have a value: metrics × entries × groups."""
        return np.asarray(~np.isnan(np.stack([one.value for one in self.values])))

    def _row(self, entry: int, kind: Kind, over: By, name: str | None, found: Disparity | None) -> DisparityRow:
        known = self._known[:, entry]
        counted = known | self.as_zero
        fault = self._why_never(kind) or self._why_undefined(kind, entry, counted)
        value, low, high = (np.nan,) * 3 if found is None else (float(end[entry]) for end in found.ends)
        unbounded = self._without_interval(entry, kind)
        if self.as_zero and not known.all():
            low = high = np.nan
        names = [*self.groups, {}]
        between = None if fault or found is None else (names[found.lowest[entry]], names[found.highest[entry]])
        rests_on = np.stack([each[entry] for each in self.rests_on])
        return DisparityRow(
            metric=name or self.metrics[0].kind,
            signature=" | ".join(metric.signature for metric in self.metrics),
            target=None,
            over=tuple(over),
            disparity=kind,
            value=np.nan if fault else value,
            low=np.nan if fault else low,
            high=np.nan if fault else high,
            reason=fault or _explain_missing(unbounded, not np.isnan(low)),
            lowest=between and between[0],
            highest=between and between[1],
            n_groups=int(counted.sum(axis=1).min()),
            small=self._select((known & (rests_on < SMALL)).any(axis=0)),
            undefined=self._select((~known).any(axis=0)),
            decided_by=None
            if between is None or found is None or len(known) == 1
            else self._metric_names[found.of[entry]],
        )

    def _select(self, chosen: Any) -> tuple[Group, ...]:
        return tuple(self.groups[place] for place in np.flatnonzero(chosen).tolist())

    @property
    def _metric_names(self) -> list[str]:
        """The kinds of the metrics, or their signatures where kinds are equal."""
        kinds = [metric.kind for metric in self.metrics]
        return kinds if len(set(kinds)) == len(kinds) else [metric.signature for metric in self.metrics]

    def _why_never(self, kind: Kind) -> str | None:
        """Why there is no such disparity, whatever the values are."""
        if kind in ("min", "max") and len(self.metrics) > 1:
            return f"several metrics have no common {kind}"
        if kind.startswith("ratio") and any(metric.range[0] < 0 for metric in self.metrics):
            return "a ratio needs values that cannot be negative"
        return None

    def _why_undefined(self, kind: Kind, entry: int, counted: np.ndarray) -> str | None:
        fewest = int(counted.sum(axis=1).min())
        if fewest < 2:
            return f"{'no group has' if not fewest else 'only one group has'} a value; a disparity is one of two groups"
        if kind.endswith("overall") and any(np.isnan(one.value[entry]).any() for one in self.overall or ()):
            return f"{_ALL_ROWS} is undefined"
        if kind.startswith("ratio") and all(np.nan_to_num(one.value[entry]).max() <= 0 for one in self.values):
            return "a ratio of zeros: all groups have the value 0"
        return None

    def _without_interval(self, entry: int, kind: Kind) -> list[str]:
        """The groups without an interval, in words."""
        overall = (self.overall or []) if kind.endswith("overall") else []
        names: list[str] = []
        for place, one in enumerate(self._counted):
            suffix = f" of {self._metric_names[place]}" if len(self.metrics) > 1 else ""
            of_all = [(_ALL_ROWS, overall[place])] if overall else []
            unbounded = ~one.bounded[entry] & ~np.isnan(one.value[entry])
            names += [group_text(self.groups[i]) + suffix for i in np.flatnonzero(unbounded).tolist()]
            names += [name + suffix for name, each in of_all if not each.bounded[entry].all()]
        return names


_USUAL: Final = 0.95
_NAMED: Final = 3
_ALL_ROWS: Final = "the value over all rows"


def _explain_missing(names: Sequence[str], bounded: bool) -> str | None:
    """A sentence on the groups that an interval leaves out, or on why there is none."""
    if not names:
        return None
    parts = [*names[:_NAMED], *([f"{len(names) - _NAMED:,} more"] if len(names) > _NAMED else [])]
    text = " and ".join(filter(None, [", ".join(parts[:-1]), parts[-1]]))
    has = "has" if len(names) == 1 else "have"
    if bounded:
        return f"the interval leaves out {text}, which {has} none"
    return f"no interval: {text} {has} none"


def _by_target(rows: Iterable[MetricRow]) -> dict[str | None, list[MetricRow]]:
    of: dict[str | None, list[MetricRow]] = {}
    for row in rows:
        of.setdefault(row.target, []).append(row)
    return of


def _interval_ends(rows: Sequence[MetricRow]) -> IntervalEnds:
    ends = np.array([[row.value, row.low, row.high] for row in rows], np.float64).reshape(-1, 3)
    return IntervalEnds(*ends.T[:, None])


def _basis(row: MetricRow) -> float:
    """The number of scored rows behind a value: for recall those that were expected."""
    return float((row.data or {}).get("rests_on", row.n_scored))
