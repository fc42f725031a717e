"""The numbers of rows that comparisons are made of, so that rows shown as better are those that a comparison counts."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from evaluand.aggregation.aggregator import Measure
from evaluand.comparison.difference import row_weights
from evaluand.comparison.measures import definition, resolve_measures
from evaluand.comparison.pairing import read_rows
from evaluand.core.errors import EvaluandError, EvaluandWarning
from evaluand.evaluation.evaluator import Evaluation
from evaluand.report.facts.base import Facts

if TYPE_CHECKING:
    from evaluand.report.row_columns import RowKeys


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
    rows = read_rows(evaluation, measure.scorer, metric)
    targets = [key[0] for key in rows.keys]
    first = min(targets, key=lambda target: target or "", default=None)
    used = rows.known[0] & (row_weights(rows, metric) > 0)
    if len(targets) > 1:
        used &= rows.group == targets.index(first)
    value = np.full(len(keys), np.nan)
    value[keys.places(rows.index[0][used], rows.replication[used])] = rows.value[0][used]
    return Compared(definition(metric), first, metric.direction, value)
