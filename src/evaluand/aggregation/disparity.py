"""Disparities between groups: the value, its interval, and the groups behind them.

`metrics.stats.disparity` computes values and intervals. Here they become rows with the two groups that differ most, the
groups that are left out, those with few rows, and the reason where a disparity is undefined. Where a group is compared
with all rows the interval is wider than necessary; where clusters extend across groups it may be too wide, or too
narrow where a cluster that is good in one group is bad in another.

The disparities of a request are one family. Of 16 disparities of a fair system, in every third request one has an
unadjusted interval that leaves "no disparity" out. Two kinds of intervals allow for that. Those of `bonferroni` hold at
once. Those of `fdr_by` control the false coverage rate: the share of intervals that do not cover, among the disparities
that are found, is on average at most that of the level, whatever their dependence: Y. Benjamini & D. Yekutieli, "False
discovery rate-adjusted multiple confidence intervals for selected parameters" (JASA 100, 2005).
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, NamedTuple, get_args

import numpy as np

from evaluand.aggregation.group_rules import BONFERRONI, is_beyond_none
from evaluand.aggregation.groups import By, group_text
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
        reference: the group to which others are compared; None where all pairs are.
        other: the group of a pair with the reference; None where the groups that differ most are looked for.
        given: the stratum: attribute → value; the value is None where the disparity is standardised over all strata.
        at_once: how many intervals hold at the same time with this confidence: those of all pairs, or of all strata.
        unjudged: groups that are too small to be judged.
        groups: the groups with their raw and shrunk values, see `rated_groups`; empty without a smallest size.
        family_low: lower end of an interval that allows for all disparities of the request, see `with_family_ends`.
        family_high: upper end of that interval.
        family_size: the number of disparities with intervals in the request.
        family_method: how the ends allow for them.
        found: whether these ends show a disparity, see `is_beyond_none`.
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
    reference: Mapping[str, str | None] | None = None
    other: Mapping[str, str | None] | None = None
    given: Mapping[str, str | None] | None = None
    at_once: int = 1
    unjudged: tuple[Mapping[str, str | None], ...] = ()
    groups: tuple[Mapping[str, Any], ...] = ()
    family_low: float = np.nan
    family_high: float = np.nan
    family_size: int = 0
    family_method: str = BONFERRONI
    found: bool = False


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


Group = Mapping[str, str | None]


@dataclass(frozen=True, eq=False)
class GroupValues:
    """Values of groups by one metric or several.

    Attributes:
        names: the groups, also those without a value.
        values: entries × groups for each metric.
        rests_on: the rows behind each value: entries × groups for each metric.
    """

    names: Sequence[Group]
    values: Sequence[IntervalEnds]
    rests_on: Sequence[np.ndarray]

    def take(self, places: Sequence[int], names: Sequence[Group] | None = None) -> "GroupValues":
        """Some of the groups, under other names if these are given."""
        return GroupValues(
            [(names or self.names)[place] for place in places],
            [IntervalEnds(*(part[:, places] for part in ends)) for ends in self.values],
            [basis[:, places] for basis in self.rests_on],
        )

    @property
    def basis(self) -> np.ndarray:
        """The rows that the values of each group rest on: those of the metric with the fewest."""
        return np.asarray(np.stack(self.rests_on).min(axis=0)[0])


@dataclass(frozen=True, eq=False)
class GroupComparison:
    """Groups to compare, for one or many entries, such as thresholds.

    Attributes:
        metrics: settled.
        groups: with intervals of this confidence.
        overall: the value over all rows for each metric, entries × 1, for disparities to it; or that of the reference.
        reference: the group whose values `overall` are; it is none of the groups.
        as_zero: whether undefined values count as 0; what rests on them has no interval.
    """

    metrics: Sequence[Metric]
    groups: GroupValues
    confidence: float
    overall: Sequence[IntervalEnds] | None = None
    reference: Group | None = None
    as_zero: bool = False

    def rows(self, kind: Kind, over: By, name: str | None = None) -> list[DisparityRow]:
        """The disparity of each entry; the target is None.

        Args:
            over: the attributes whose groups are compared.
            name: the name of the criterion, for several metrics.
        """
        found = None if self._why_never(kind) else self._compute(kind)
        return [self._row(entry, kind, over, name, found) for entry in range(len(self.groups.values[0].value))]

    def _compute(self, kind: Kind) -> Disparity:
        overall = self.overall if kind.endswith("overall") else None
        return disparity(self._counted, kind, self.confidence, self.metrics[0].range, overall, self._fewest(kind))

    def _fewest(self, kind: Kind) -> int:
        return 1 if self.reference is not None and kind.endswith("overall") else 2

    @cached_property
    def _counted(self) -> list[IntervalEnds]:
        return [IntervalEnds(np.nan_to_num(one.value), *one[1:]) if self.as_zero else one for one in self.groups.values]

    @cached_property
    def _known(self) -> np.ndarray:
        """Which groups have a value: metrics × entries × groups."""
        return np.asarray(~np.isnan(np.stack([one.value for one in self.groups.values])))

    def _row(self, entry: int, kind: Kind, over: By, name: str | None, found: Disparity | None) -> DisparityRow:
        known = self._known[:, entry]
        counted = known | self.as_zero
        fault = self._why_never(kind) or self._why_undefined(kind, entry, counted)
        value, low, high = (np.nan,) * 3 if found is None else (float(end[entry]) for end in found.ends)
        unbounded = self._without_interval(entry, kind)
        if self.as_zero and not known.all():
            low = high = np.nan
        names = [*self.groups.names, self.reference or {}]
        between = None if fault or found is None else (names[found.lowest[entry]], names[found.highest[entry]])
        rests_on = np.stack([each[entry] for each in self.groups.rests_on])
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
        return tuple(self.groups.names[place] for place in np.flatnonzero(chosen).tolist())

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
        if fewest < self._fewest(kind):
            return f"{'no group has' if not fewest else 'only one group has'} a value; a disparity is one of two groups"
        if kind.endswith("overall") and any(np.isnan(one.value[entry]).any() for one in self.overall or ()):
            of_reference = self.reference and f"the value of the reference group {group_text(self.reference)}"
            return f"{of_reference or _ALL_ROWS} is undefined"
        if kind.startswith("ratio") and all(np.nan_to_num(one.value[entry]).max() <= 0 for one in self.groups.values):
            return "a ratio of zeros: all groups have the value 0"
        return None

    def _without_interval(self, entry: int, kind: Kind) -> list[str]:
        """The groups without an interval, in words."""
        overall = (self.overall or []) if kind.endswith("overall") else []
        names: list[str] = []
        for place, one in enumerate(self._counted):
            suffix = f" of {self._metric_names[place]}" if len(self.metrics) > 1 else ""
            of_all = [(group_text(self.reference) if self.reference else _ALL_ROWS, overall[place])] if overall else []
            unbounded = ~one.bounded[entry] & ~np.isnan(one.value[entry])
            names += [group_text(self.groups.names[i]) + suffix for i in np.flatnonzero(unbounded).tolist()]
            names += [name + suffix for name, each in of_all if not each.bounded[entry].all()]
        return names


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


def with_family_ends(
    rows: Sequence[DisparityRow], compute: Callable[[float], Sequence[DisparityRow]]
) -> list[DisparityRow]:
    """The disparities of a request with the ends, the size and the method of their family.

    Args:
        compute: computes the same rows with intervals that each make a share of the error of one interval.
    """
    n = sum(not math.isnan(row.low) for row in rows)
    if not n:
        return [*rows]
    joint = compute(1 / n)
    ends = {BONFERRONI: joint}
    if any(row.family_method != BONFERRONI for row in rows):
        ends["fdr_by"] = _selected_ends(joint, compute, n)
    result = []
    for place, row in enumerate(rows):
        low, high = ends[row.family_method][place].low, ends[row.family_method][place].high
        found = is_beyond_none(row.disparity, low, high)
        result.append(row._replace(family_low=low, family_high=high, family_size=n, found=found))
    return result


def _selected_ends(
    joint: Sequence[DisparityRow], compute: Callable[[float], Sequence[DisparityRow]], n: int
) -> Sequence[DisparityRow]:
    """Rows of which as many are found as the share of the error allows for: the most for which that is so."""
    harmonic = sum(1 / rank for rank in range(1, n + 1))
    selected = n
    while True:
        rows = compute(max(selected, 1) / (n * harmonic))
        found = sum(is_beyond_none(row.disparity, row.low, row.high) for row in rows)
        if found >= selected:
            return rows
        selected = found
