"""The disparities of a summary: between all groups, with a reference group, of named pairs, and within strata.

Intervals of several pairs, or of several strata, hold at the same time (Bonferroni): each is computed at a higher
level. The interval of the group farthest from a reference needs none of that, as that of the largest difference.

A standardised disparity compares what the groups' values would be if all had the same strata: the mean of a group's
values by stratum, weighted by the share of each stratum in the rows of all groups (direct standardisation). Its
interval combines those of the strata: G. Y. Zou, G. Huang & X. Zhang, "A note on confidence interval estimation for a
linear function of binomial proportions" (Computational Statistics & Data Analysis 53, 2009).
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, Final

import numpy as np

from evaluand.aggregation.disparity import DisparityRow, Group, GroupComparison, GroupValues, Kind
from evaluand.aggregation.group_rules import GroupRules
from evaluand.aggregation.groups import By, Grouping, MetricRow, Summary, group_text
from evaluand.core.errors import SpecError, nearest
from evaluand.core.files.json import none_if_nan
from evaluand.metrics.base.metric import Metric
from evaluand.metrics.stats.disparity import IntervalEnds, shrink

_NO_RULES: Final = GroupRules()


def disparities(
    summary: Summary,
    positions: Sequence[int],
    over: By,
    kinds: Sequence[Kind],
    *,
    name: str | None = None,
    rules: GroupRules | None = None,
    share: float | None = None,
) -> list[DisparityRow]:
    """The disparities between the groups of one grouping, for each target.

    Rows without a value of an attribute form no group; groups without a metric value are left out and reported.

    Args:
        summary: of all shards, by `over`, by `over` and the strata of the rules, and over all rows.
        positions: the places of the metrics; of several, the largest disparity counts (equalized odds is that of the
            true and the false positive rates).
        over: the attributes whose groups are compared.
        name: the name of the criterion, for several metrics.
        rules: which groups are compared; by default the two that differ most.
        share: the share of the error of one interval that each may make; by default intervals hold within a disparity,
            and those of all its pairs, or of all its strata, at once.

    Raises:
        SpecError: no row has the values of a reference group or pair.
    """
    rules, over = rules or _NO_RULES, tuple(over)
    metrics = [summary.settled(position) for position in positions]
    _check_groups(summary, over, rules)
    of_groups, of_cells, of_all = (
        cache(partial(_read_values, summary, tuple(positions), names)) for names in (over, (*over, *rules.given), ())
    )
    result = []
    levels = [getattr(metric, "confidence", None) for metric in metrics]
    confidence = min(filter(None, levels), default=_USUAL)
    compared = _Compared(metrics, kinds, over, name, rules, confidence, share)
    for target in of_groups(confidence):
        read = partial(_read_groups, of_groups, target)
        found = compared.compare(read, [*map(_interval_ends, of_all(compared.level())[target])])
        if rules.smallest:
            found[0] = found[0]._replace(groups=tuple(compared.rate(read(compared.level()))))
        if rules.given:
            found += compared.by_stratum(partial(_read_groups, of_cells, target))
        result += [row._replace(target=target, family_method=rules.adjust) for row in found]
    return result if share is None or all(levels) else [row._replace(low=np.nan, high=np.nan) for row in result]


_Reader = Callable[[float], GroupValues]
"""Reads groups with intervals at a level."""

_Stratum = tuple[str | None, ...]


@dataclass(frozen=True, eq=False)
class _Compared:
    """How the groups of one grouping are compared."""

    metrics: Sequence[Metric]
    kinds: Sequence[Kind]
    names: By
    name: str | None
    rules: GroupRules
    confidence: float
    share: float | None

    def level(self, at_once: int = 1) -> float:
        """The level of each of so many intervals that hold at once, or of those of the share."""
        if self.share is not None:
            return 1 - (1 - self.confidence) * self.share
        return self.confidence if at_once == 1 else 1 - (1 - self.confidence) / at_once

    def compare(self, read: _Reader, overall: list[IntervalEnds] | None = None) -> list[DisparityRow]:
        """Between all groups or with the reference, and of all pairs."""
        judged, left = self.judge(read(self.level()))
        rows = self.between(judged, self.level(), overall) + self.pairs(judged, read)
        return [row._replace(unjudged=left) for row in rows]

    def by_stratum(self, read: _Reader) -> list[DisparityRow]:
        """The disparities within each stratum, at once, and then the standardised ones."""
        given = self.rules.given
        strata = list(dict.fromkeys(tuple(group[name] for name in given) for group in read(self.confidence).names))
        level = self.level(max(len(strata), 1))
        rows = []
        for stratum, groups in self._split(read(level), strata).items():
            judged, left = self.judge(groups)
            more: dict[str, Any] = {
                "given": dict(zip(given, stratum, strict=True)),
                "at_once": len(strata),
                "unjudged": left,
            }
            rows += [row._replace(**more) for row in self.between(judged, level)]
        standardised = self.compare(lambda level: _standardise([*self._split(read(level), strata).values()]))
        rows += [row._replace(given=dict.fromkeys(given)) for row in standardised]
        return [row for row in rows if row.disparity in (*_OF_PAIRS, "min", "max")]

    def _split(self, cells: GroupValues, strata: Iterable[_Stratum]) -> dict[_Stratum, GroupValues]:
        """The groups of each stratum."""
        names = [{name: cell[name] for name in self.names} for cell in cells.names]
        of = [tuple(cell[name] for name in self.rules.given) for cell in cells.names]
        return {own: cells.take([place for place, each in enumerate(of) if each == own], names) for own in strata}

    def judge(self, groups: GroupValues) -> tuple[GroupValues, tuple[Group, ...]]:
        """The groups that are large enough to be judged, and the others."""
        if not self.rules.smallest:
            return groups, ()
        large = groups.basis >= self.rules.smallest
        return groups.take(np.flatnonzero(large).tolist()), tuple(groups.take(np.flatnonzero(~large).tolist()).names)

    def between(
        self, groups: GroupValues, confidence: float, overall: list[IntervalEnds] | None = None
    ) -> list[DisparityRow]:
        """The disparity of all groups, or to the reference group, of each kind."""
        reference = self.rules.reference_of(self.names)
        if not groups.names:
            why = "no group is compared: none is large enough, or has a value"
            return [self._undefined(kind, why) for kind in self.kinds]
        result, plain = [], GroupComparison(self.metrics, groups, confidence, overall)
        for kind in self.kinds:
            if reference is not None and kind in _OF_PAIRS:
                result += self._to_reference(groups, reference, kind, confidence)
            else:
                result += plain.rows(kind, self.names, self.name)
        return result

    def _to_reference(self, groups: GroupValues, reference: Group, kind: Kind, confidence: float) -> list[DisparityRow]:
        if reference not in groups.names:
            why = f"the reference group {group_text(reference)} has too few rows or none"
            return [self._undefined(kind, why)._replace(reference=reference)]
        at = groups.names.index(reference)
        others = groups.take([place for place in range(len(groups.names)) if place != at])
        to = GroupComparison(self.metrics, others, confidence, groups.take([at]).values, reference)
        rows = to.rows(_TO[kind], self.names, self.name)
        return [row._replace(disparity=kind, reference=reference, n_groups=row.n_groups + 1) for row in rows]

    def pairs(self, groups: GroupValues, read: _Reader) -> list[DisparityRow]:
        """Each pair of the rules: named ones, and the reference with every other group."""
        reference = self.rules.reference_of(self.names)
        pairs: list[tuple[Group, Group]] = [(reference, one) for one in groups.names if reference and one != reference]
        pairs += [pair for pair in self.rules.pairs_of(self.names) if pair not in pairs]
        if not pairs:
            return []
        confidence = self.level(len(pairs))
        wide = read(confidence)
        kept = wide.take([place for place, one in enumerate(wide.names) if one in groups.names])
        rows = []
        for one, other in pairs:
            for kind in self.kinds:
                if kind in _OF_PAIRS:
                    pair = kept.take([place for place, each in enumerate(kept.names) if each in (one, other)])
                    [row] = GroupComparison(self.metrics, pair, confidence).rows(kind, self.names, self.name)
                    rows.append(row._replace(reference=one, other=other, at_once=len(pairs)))
        return rows

    def rate(self, groups: GroupValues) -> Iterator[Mapping[str, Any]]:
        """Each group with its raw value by each metric, and beside it the value shrunk towards the mean of all."""
        for metric, values, basis in zip(self.metrics, groups.values, groups.rests_on, strict=True):
            raw = IntervalEnds(*(part[0] for part in values))
            shrunk = shrink(raw, self.confidence, metric.range)
            for place, group in enumerate(groups.names):
                judged = bool(groups.basis[place] >= self.rules.smallest)
                facts = {"metric": metric.kind, "by": group, "n": float(basis[0, place]), "judged": judged}
                for prefix, ends in (("", raw), ("shrunk_", shrunk)):
                    facts |= {f"{prefix}{name}": none_if_nan(float(end[place])) for name, end in ends._asdict().items()}
                yield facts

    def _undefined(self, kind: Kind, why: str) -> DisparityRow:
        n = len(self.metrics)
        nothing = GroupValues([{}], [_UNKNOWN] * n, [np.zeros((1, 1))] * n)
        [row] = GroupComparison(self.metrics, nothing, self.confidence).rows("difference", self.names, self.name)
        return row._replace(disparity=kind, reason=why, undefined=())


def _standardise(strata: Sequence[GroupValues]) -> GroupValues:
    """The values of groups if all had the same strata; NaN where a group has no value in one of them."""
    names: list[Group] = []
    for each in strata:
        names += [group for group in each.names if group not in names]
    values, basis = [], []
    for metric in range(len(strata[0].values) if strata else 0):
        cells = np.full((len(strata), 4, len(names)), np.nan)
        for row, each in zip(cells, strata, strict=True):
            places = [names.index(group) for group in each.names]
            row[:3, places] = np.stack(each.values[metric])[:, 0]
            row[3, places] = each.rests_on[metric][0]
        value, low, high, rows = np.moveaxis(cells, 1, 0)
        share = np.nansum(rows, axis=1)
        used = share > 0
        weight = (share / max(share.sum(), 1.0))[used, None]
        mean = (weight * value[used]).sum(axis=0)
        ends = [
            mean + sign * np.sqrt(np.square(weight * (end[used] - value[used])).sum(axis=0))
            for sign, end in ((-1, low), (1, high))
        ]
        values.append(IntervalEnds(mean[None], *(end[None] for end in ends)))
        basis.append(np.nansum(rows, axis=0)[None])
    return GroupValues(names, values, basis)


_Values = dict[str | None, list[list[MetricRow]]]
"""Of each target the rows by each metric."""


def _read_values(summary: Summary, positions: Sequence[int], names: By, confidence: float) -> _Values:
    found: _Values = {}
    for place, position in enumerate(positions):
        level = getattr(summary.metrics[position], "confidence", None) and confidence
        for row in summary.values(position, names, level):
            found.setdefault(row.target, [[] for _ in positions])[place].append(row)
    return found


def _read_groups(values: Callable[[float], _Values], target: str | None, confidence: float) -> GroupValues:
    """The groups of a target that have all attributes, with values at a level."""
    found = [[row for row in rows if None not in row.by.values()] for rows in values(confidence)[target]]
    return GroupValues(
        [row.by for row in found[0]],
        [_interval_ends(rows) for rows in found],
        [np.array([[row.rests_on for row in rows]]).reshape(1, -1) for rows in found],
    )


def _check_groups(summary: Summary, names: By, rules: GroupRules) -> None:
    """Refuses a reference or pair that no row belongs to."""
    wanted: list[Mapping[str, str]] = [group for pair in rules.pairs_of(names) for group in pair]
    reference = rules.reference_of(names)
    wanted += [reference] if reference else []
    known = [key[1:] for key in summary.groups[Grouping(names)]]
    for group in wanted:
        if known and tuple(group[name] for name in names) not in known:
            text = group_text(group)
            groups = [group_text(dict(zip(names, key, strict=True))) for key in known if None not in key]
            hint = nearest(text, groups) or f"; there are {', '.join(groups[:_NAMED])}"
            raise SpecError(f"no row belongs to the group {text}{hint}")


def _interval_ends(rows: Iterable[MetricRow]) -> IntervalEnds:
    ends = np.array([[row.value, row.low, row.high] for row in rows], np.float64).reshape(-1, 3)
    return IntervalEnds(*ends.T[:, None])


_USUAL: Final = 0.95
_NAMED: Final = 10
_UNKNOWN: Final = IntervalEnds(*(np.full((1, 1), np.nan),) * 3)
_OF_PAIRS: Final = ("difference", "ratio")
_TO: Final[Mapping[Kind, Kind]] = {"difference": "difference_to_overall", "ratio": "ratio_to_overall"}
"""A disparity to the reference group is computed as one to all rows."""
