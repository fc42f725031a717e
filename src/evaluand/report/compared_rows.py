"""The numbers of rows that comparisons are made of, so that rows shown as better are those that a comparison counts."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from evaluand.aggregation.aggregator import Measure
from evaluand.comparison.difference import row_weights
from evaluand.comparison.measures import definition, resolve_measures
from evaluand.comparison.pairing import iterate_units
from evaluand.core.errors import EvaluandError, EvaluandWarning
from evaluand.evaluation.evaluator import Evaluation
from evaluand.report.facts.base import Facts
from evaluand.store.tables import SCORE_STATUSES, SKIPPED

if TYPE_CHECKING:
    from evaluand.report.row_columns import RowKeys

_SKIPPED: Final = SCORE_STATUSES.index(SKIPPED)


@dataclass(frozen=True)
class Compared:
    """What a metric averages.

    Attributes:
        signature: of the metric.
        target: the first one by name; None without targets.
        direction: `higher`, `lower` or None.
        value: of each row; NaN where a comparison would use none.
        rank: its place among the metrics of all scorers, in the order in which a comparison has them.
    """

    signature: str
    target: str | None
    direction: str | None
    value: np.ndarray
    rank: int = 0

    def describe(self) -> Facts:
        """What the numbers are."""
        return {"signature": self.signature, "target": self.target, "direction": self.direction, "rank": self.rank}


def read_compared(evaluation: Evaluation, measures: Sequence[Measure], keys: RowKeys) -> Mapping[str, Compared]:
    """By scorer, what the first metric averages of those that `compare` takes; none where no metric averages rows.

    Args:
        measures: those that summarised the scores.
        keys: of the rows.
    """
    found: dict[str, Compared] = {}
    with warnings.catch_warnings(action="ignore", category=EvaluandWarning):
        for measure in _resolve(evaluation, measures):
            if measure.scorer not in found and measure.metric.averages:
                try:
                    found[measure.scorer] = replace(_read(evaluation, measure, keys), rank=len(found))
                except EvaluandError:  # the metric refuses these scores, so that they are not compared by it
                    continue
    return found


def _resolve(evaluation: Evaluation, measures: Sequence[Measure]) -> list[Measure]:
    try:
        return resolve_measures([evaluation], None, None, None, measures).compared
    except EvaluandError:  # nothing can be compared
        return []


def _read(evaluation: Evaluation, measure: Measure, keys: RowKeys) -> Compared:
    metric = measure.metric
    first: str | None = None
    value = np.full(len(keys), np.nan)
    for number, units in enumerate(iterate_units(evaluation, measure.scorer, metric)):
        targets = [key[0] for key in units.keys]
        least = min(targets, key=_target_key, default=first)
        if number == 0 or _target_key(least) < _target_key(first):
            first, value[:] = least, np.nan
        used = (units.outcome != _SKIPPED) & ~np.isnan(units.value) & (row_weights(units, metric) > 0)
        used &= np.array([target == first for target in targets], np.bool_)[units.group]
        value[keys.places(units.index[used], units.replication[used])] = units.value[used]
    return Compared(definition(metric), first, metric.direction, value)


def _target_key(target: str | None) -> str:
    return target or ""
