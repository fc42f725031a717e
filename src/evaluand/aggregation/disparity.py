"""Disparities: how far a metric's values by group lie apart, with intervals that hold for the worst pair of groups.

What they are, and their intervals, is found by `apart`. Here it is told: which groups they lie between, which are left
out, which rest on few rows, and why there is none. Where a group is compared with all rows the interval is wider than
need be; where clusters reach across groups it may be too wide or too narrow: too narrow where a cluster that is good in
one group is bad in another.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, NamedTuple, get_args

import numpy as np

from evaluand.aggregation.groups import By, MetricRow, Summary
from evaluand.core.errors import SpecError
from evaluand.core.registry import nearest
from evaluand.metrics.base.metric import Metric
from evaluand.metrics.stats.disparity import Disparity, IntervalEnds, disparity
from evaluand.metrics.stats.disparity import Kind as Kind

SMALL: Final = 30
"""Groups whose values rest on fewer scored rows are told as small: recall rests on those expected."""


class DisparityRow(NamedTuple):
    """How far groups lie apart.

    Attributes:
        metric: the metric's kind; of several metrics, what they are called together.
        signature: the metric with all its parameters; of several, each.
        target: which of several things expected; None where there are no targets.
        over: the attributes whose groups are compared.
        disparity: what is made of the groups' values.
        value: NaN where undefined, with a `reason`.
        low: lower end of the interval, NaN where there is none.
        high: upper end of the interval.
        reason: why the value, or else only its interval, is undefined; or which groups the interval leaves out.
        lowest: the group with the smallest value, attribute by attribute; None where undefined.
        highest: the group with the largest value.
        n_groups: how many groups were compared.
        small: groups compared whose values rest on fewer than `SMALL` scored rows.
        undefined: groups without a value, which were left out.
        decided_by: of several metrics, the one whose groups lie so far apart; None of one, and where undefined.
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


def check_kinds(given: Any) -> tuple[Kind, ...]:
    """The disparities asked for, checked.

    Raises:
        SpecError: one is none.

    Example:
        >>> check_kinds("difference")
        ('difference',)
    """
    listed = (given,) if isinstance(given, str) else tuple(given or ())
    known = get_args(Kind)
    for name in listed:
        if name not in known:
            raise SpecError(f"no disparity is called {name!r}{nearest(str(name), known)}; there are {', '.join(known)}")
    return tuple(dict.fromkeys(listed))


def disparities(
    summary: Summary,
    positions: Sequence[int],
    over: By,
    kinds: Sequence[Kind],
    *,
    name: str | None = None,
    attributes: By | None = None,
) -> list[DisparityRow]:
    """How far the groups of one grouping lie apart, for each target.

    Rows without an attribute's value are no group; groups without a value are left out and told.

    Args:
        summary: of all shards, by `over` and over all rows.
        positions: which of its metrics; of several, the largest disparity counts (equalized odds is that of the true
            and the false positive rates).
        over: attributes whose groups are compared.
        kinds: what is made of their values.
        name: what several metrics are called together.
        attributes: what those of `over` are called, if not so.
    """
    metrics = [summary.settled(position) for position in positions]
    groups, overall = ([_by_target(summary.values(each, names)) for each in positions] for names in (over, ()))
    found = []
    for target in groups[0]:
        rows = [[row for row in one[target] if None not in row.by.values()] for one in groups]
        compared = GroupComparison(
            metrics,
            [dict(zip(attributes or over, row.by.values(), strict=False)) for row in rows[0]],
            list(map(_interval_ends, rows)),
            [np.array([[_basis(row) for row in one]]).reshape(1, -1) for one in rows],
            [_interval_ends(one[target]) for one in overall],
        )
        found += [
            row._replace(target=target) for kind in kinds for row in compared.rows(kind, attributes or over, name)
        ]
    return found


Group = Mapping[str, str | None]


@dataclass(frozen=True, eq=False)
class GroupComparison:
    """Groups that are compared, by one metric or several, and for one or many entries, such as thresholds.

    Attributes:
        metrics: settled.
        groups: what the groups are called, also those without a value.
        values: of each metric entries × groups, with intervals of the metric's confidence.
        rests_on: of each metric, how many rows a value is about: entries × groups.
        overall: of each metric the value over all rows, entries × 1, for disparities to it.
        confidence: of the intervals; that of the metrics if not given.
        as_zero: values that are undefined count as 0, and there is no interval of what rests on them.
    """

    metrics: Sequence[Metric]
    groups: Sequence[Group]
    values: Sequence[IntervalEnds]
    rests_on: Sequence[np.ndarray]
    overall: Sequence[IntervalEnds] | None = None
    confidence: float | None = None
    as_zero: bool = False

    def rows(self, kind: Kind, over: By, name: str | None = None) -> list[DisparityRow]:
        """What is made of the values, for each entry; the target is None.

        Args:
            kind: what is made of them.
            over: the attributes whose groups are compared.
            name: what several metrics are called together.
        """
        found = None if self._never(kind) else self._found(kind)
        return [self._row(entry, kind, over, name, found) for entry in range(len(self.values[0].value))]

    def _found(self, kind: Kind) -> Disparity:
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
        fault = self._never(kind) or self._fault(kind, entry, counted)
        value, low, high = (np.nan,) * 3 if found is None else (float(end[entry]) for end in found.ends)
        lacking = self._lacking(entry, kind)
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
            reason=fault or _explain_missing(lacking, not np.isnan(low)),
            lowest=between and between[0],
            highest=between and between[1],
            n_groups=int(counted.sum(axis=1).min()),
            small=self._some((known & (rests_on < SMALL)).any(axis=0)),
            undefined=self._some((~known).any(axis=0)),
            decided_by=None if between is None or found is None or len(known) == 1 else self._called[found.of[entry]],
        )

    def _some(self, chosen: Any) -> tuple[Group, ...]:
        return tuple(self.groups[place] for place in np.flatnonzero(chosen).tolist())

    @property
    def _called(self) -> list[str]:
        """What tells the metrics apart."""
        kinds = [metric.kind for metric in self.metrics]
        return kinds if len(set(kinds)) == len(kinds) else [metric.signature for metric in self.metrics]

    def _never(self, kind: Kind) -> str | None:
        """Why there is none, whatever the values are."""
        if kind in ("min", "max") and len(self.metrics) > 1:
            return f"several metrics have no common {kind}"
        if kind.startswith("ratio") and any(metric.range[0] < 0 for metric in self.metrics):
            return "a ratio needs values that cannot be negative"
        return None

    def _fault(self, kind: Kind, entry: int, counted: np.ndarray) -> str | None:
        fewest = int(counted.sum(axis=1).min())
        if fewest < 2:
            return f"{'no group has' if not fewest else 'only one group has'} a value; a disparity is one of two groups"
        if kind.endswith("overall") and any(np.isnan(one.value[entry]).any() for one in self.overall or ()):
            return f"{_ALL_ROWS} is undefined"
        if kind.startswith("ratio") and all(np.nan_to_num(one.value[entry]).max() <= 0 for one in self.values):
            return "a ratio of zeros: all groups have the value 0"
        return None

    def _lacking(self, entry: int, kind: Kind) -> list[str]:
        """What has no interval, in words."""
        whole = (self.overall or []) if kind.endswith("overall") else []
        names: list[str] = []
        for place, one in enumerate(self._counted):
            told = f" of {self._called[place]}" if len(self.metrics) > 1 else ""
            of_all = [(_ALL_ROWS, whole[place])] if whole else []
            lacking = ~one.bounded[entry] & ~np.isnan(one.value[entry])
            names += [_group_text(self.groups[i]) + told for i in np.flatnonzero(lacking).tolist()]
            names += [name + told for name, each in of_all if not each.bounded[entry].all()]
        return names


_USUAL: Final = 0.95
_NAMED: Final = 3
_ALL_ROWS: Final = "the value over all rows"


def _explain_missing(names: Sequence[str], bounded: bool) -> str | None:
    """What an interval leaves out, or why there is none."""
    if not names:
        return None
    shown = [*names[:_NAMED], *([f"{len(names) - _NAMED:,} more"] if len(names) > _NAMED else [])]
    told = " and ".join(filter(None, [", ".join(shown[:-1]), shown[-1]]))
    has = "has" if len(names) == 1 else "have"
    if bounded:
        return f"the interval leaves out {told}, which {has} none"
    return f"no interval: {told} {has} none"


def _group_text(group: Group) -> str:
    return ", ".join(f"{attribute}={value}" for attribute, value in group.items())


def _by_target(rows: Iterable[MetricRow]) -> dict[str | None, list[MetricRow]]:
    of: dict[str | None, list[MetricRow]] = {}
    for row in rows:
        of.setdefault(row.target, []).append(row)
    return of


def _interval_ends(rows: Sequence[MetricRow]) -> IntervalEnds:
    """One entry of the values of some groups."""
    held = np.array([[row.value, row.low, row.high] for row in rows], np.float64).reshape(-1, 3)
    return IntervalEnds(*held.T[:, None])


def _basis(row: MetricRow) -> float:
    """How many scored rows a value is about: recall only about those that were expected."""
    return float((row.data or {}).get("rests_on", row.n_scored))
