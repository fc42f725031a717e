"""Differences of prediction-powered means: a judge has graded both systems, and people have labelled some examples."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from evaluand.aggregation.score_shards import dataset_of, label_adder
from evaluand.comparison.difference import Measured, row_weights
from evaluand.comparison.pairing import ABSENT, PairedRows, Pairing
from evaluand.core.key_columns import INDEX, RESPONSE_INDEX
from evaluand.metrics.base.metric import DRAW, PEOPLE, STRATUM, Fill
from evaluand.metrics.column_statistics import Mean
from evaluand.metrics.prediction_powered import PredictionPoweredMean


@dataclass(frozen=True)
class LabelledRows(PairedRows):
    """Paired rows with the judge's values, and what people say about the rows of each side.

    Attributes:
        labels: by side, NaN where a row has no label.
        draw: the place of each row in the random order in which people label.
        stratum: of each row.
    """

    labels: np.ndarray = field(kw_only=True)
    draw: np.ndarray = field(kw_only=True)
    stratum: np.ndarray = field(kw_only=True)


def label_rows(pairing: Pairing, metric: PredictionPoweredMean) -> LabelledRows:
    """The rows of a judge in several evaluations, with people's labels."""
    evaluations, scorer = pairing.evaluations, pairing.scorer
    of_judge = Mean(column=metric.column, weighted=metric.weighted, direction=metric.direction, missing=metric.missing)
    rows = pairing.rows(of_judge)
    n = len(rows.group)
    labels, draw, stratum = np.full((len(evaluations), n), np.nan), np.full(n, np.nan), np.zeros(n, np.int64)
    for side, evaluation in enumerate(evaluations):
        here = np.flatnonzero(rows.status[side] != ABSENT)
        dataset, index, nothing = dataset_of(evaluation), rows.index[side, here], np.zeros(len(here), np.int64)
        keys = pa.table({INDEX: index, "replication": rows.replication[here], RESPONSE_INDEX: nothing})
        positions = np.searchsorted(np.array(dataset.indices, np.int64), index)
        table = label_adder(evaluation, scorer, metric)(keys, positions)
        columns = (table.column(name).to_numpy() for name in (PEOPLE, DRAW, STRATUM))
        labels[side, here], draw[here], stratum[here] = columns
    return LabelledRows(**vars(rows) | {"metric": metric}, labels=labels, draw=draw, stratum=stratum)


@dataclass(frozen=True, kw_only=True, eq=False)
class LabelledSample(Measured):
    """The difference of prediction-powered means over the rows that both have.

    Attributes:
        arguments: of `metric.measure`.
        lacking: why it does not count; None if it does.
    """

    arguments: Sequence[Any]
    metric: PredictionPoweredMean
    lacking: str | None
    method: ClassVar[str] = "prediction-powered"

    @classmethod
    def from_rows(cls, rows: LabelledRows, a: int, b: int, heaviest: float | None = None) -> LabelledSample:
        metric = rows.metric
        assert isinstance(metric, PredictionPoweredMean)
        used = rows.take(rows.known[a] & rows.known[b] & (row_weights(rows, metric) > 0))
        cluster = used.example if used.cluster is None else used.cluster
        judged, labels = used.value[[a, b]], used.labels[[a, b]]
        others = used.draw, used.stratum, row_weights(used, metric), cluster
        found, fault = metric.measure(judged, labels, *others)
        lacking = fault or found.both.reason
        value_a = value_b = math.nan
        if lacking is None:  # by the same λ, and only what both have
            shared = np.where(np.isnan(labels[1]), np.nan, labels[0])
            alone, people = (np.stack([0 * side, side]) for side in (judged[0], shared))
            value_a = metric.measure(alone, people, *others)[0].both.value
            value_b = value_a + found.both.value
        return cls(
            value_a=value_a,
            value_b=value_b,
            value=math.nan if lacking else found.both.value,
            clusters=len(np.unique(cluster)),
            span=metric.range[1] - metric.range[0],
            heaviest=heaviest,
            arguments=(judged, labels, *others),
            metric=metric,
            lacking=lacking,
        )

    @property
    def fault(self) -> str | None:
        return self.lacking

    def ends(self, confidence: float) -> tuple[float, float]:
        both = dataclasses.replace(self.metric, confidence=confidence).measure(*self.arguments)[0].both
        return (math.nan, math.nan) if self.lacking else (both.low, both.high)

    @property
    def p_of_ends(self) -> float:
        return math.nan if self.lacking else self.metric.measure(*self.arguments)[0].p

    @property
    def outcomes(self) -> tuple[int, int, int]:
        """Of the rows that people labelled on both sides."""
        labels = self.arguments[1]
        gain = np.nan_to_num(labels[1] - labels[0]) * (-1 if self.metric.direction == "lower" else 1)
        won, lost = int((gain > 0).sum()), int((gain < 0).sum())
        return won, int((~np.isnan(labels).any(axis=0)).sum()) - won - lost, lost

    def extreme(self, rows: PairedRows, a: int, b: int, end: Fill) -> float:
        asked = rows.asked[a] & rows.asked[b]
        return math.nan if (asked & (rows.unscored[a] | rows.unscored[b])).any() else self.value
