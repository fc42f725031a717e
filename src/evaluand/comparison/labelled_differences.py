"""Differences of prediction-powered means: a judge has graded both systems, and people have labelled some examples."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np
import pyarrow as pa

from evaluand.aggregation.score_shards import dataset_of, find_label_adder
from evaluand.comparison.difference import Difference, rows_without_partner
from evaluand.comparison.pairing import ABSENT, PairedRows, pair_rows
from evaluand.core.key_columns import INDEX, RESPONSE_INDEX
from evaluand.evaluation.evaluator import Evaluation
from evaluand.metrics.base.metric import DRAW, PEOPLE, STRATUM, WEIGHT, weights_of
from evaluand.metrics.column_statistics import Mean
from evaluand.metrics.judging.estimate import Estimate
from evaluand.metrics.judging.prediction_powered import PredictionPowered
from evaluand.metrics.prediction_powered import PredictionPoweredMean

METHOD: Final = "prediction-powered"


@dataclass(frozen=True)
class LabelledRows:
    """Paired rows with the judge's values, and what people say about the rows of each side.

    Attributes:
        rows: paired by the judge's values.
        labels: sides × rows, NaN where a row has no label.
        draw: the place of each row in the random order in which people label.
        stratum: of each row.
        metric: the prediction-powered mean.
    """

    rows: PairedRows
    labels: np.ndarray
    draw: np.ndarray
    stratum: np.ndarray
    metric: PredictionPoweredMean

    def take(self, chosen: np.ndarray) -> LabelledRows:
        """The chosen rows, by mask or position."""
        return dataclasses.replace(
            self,
            rows=self.rows.take(chosen),
            labels=self.labels[:, chosen],
            draw=self.draw[chosen],
            stratum=self.stratum[chosen],
        )


def pair_labelled_rows(
    evaluations: Sequence[Evaluation],
    scorer: str,
    metric: PredictionPoweredMean,
    where: Mapping[str, str] | None = None,
) -> LabelledRows:
    """Aligns the rows of a judge in several evaluations, with people's labels; arguments as for `pair_rows`."""
    of_judge = Mean(column=metric.column, weighted=metric.weighted, direction=metric.direction, missing=metric.missing)
    rows = pair_rows(evaluations, scorer, of_judge, where)
    n = len(rows.group)
    labels, draw, stratum = np.full((len(evaluations), n), np.nan), np.full(n, np.nan), np.zeros(n, np.int64)
    for side, evaluation in enumerate(evaluations):
        here = np.flatnonzero(rows.status[side] != ABSENT)
        columns = _read_labels(evaluation, scorer, metric, rows.index[side, here], rows.replication[here])
        labels[side, here], draw[here], stratum[here] = (columns[name] for name in (PEOPLE, DRAW, STRATUM))
    return LabelledRows(rows, labels, draw, stratum, metric)


def _read_labels(
    evaluation: Evaluation, scorer: str, metric: PredictionPoweredMean, index: np.ndarray, replication: np.ndarray
) -> dict[str, np.ndarray]:
    dataset = dataset_of(evaluation)
    keys = pa.table({INDEX: index, "replication": replication, RESPONSE_INDEX: np.zeros(len(index), np.int64)})
    positions = np.searchsorted(np.array(dataset.indices, np.int64), index)
    table = find_label_adder(evaluation, dataset, scorer, metric)(keys, positions)
    return {name: table.column(name).to_numpy() for name in (PEOPLE, DRAW, STRATUM)}


@dataclass(frozen=True)
class LabelledSample:
    """Two sides over the rows that both have.

    Attributes:
        found: the difference, and each alone.
        fault: why the difference does not count; None if it does.
    """

    judged: np.ndarray
    labels: np.ndarray
    found: PredictionPowered
    fault: str | None
    arguments: Sequence[Any]
    metric: PredictionPoweredMean

    @classmethod
    def from_rows(cls, every: LabelledRows, a: int, b: int, confidence: float | None = None) -> LabelledSample:
        metric = every.metric if confidence is None else dataclasses.replace(every.metric, confidence=confidence)
        weight = _weights(every)
        used = every.rows.known[a] & every.rows.known[b] & (weight > 0)
        every, weight = every.take(used), weight[used]
        rows = every.rows
        judged, labels = rows.value[[a, b]], every.labels[[a, b]]
        cluster = rows.example if rows.cluster is None else rows.cluster
        arguments = (judged, labels, every.draw, every.stratum, weight, cluster)
        found, fault = metric.measure(*arguments)
        return cls(judged, labels, found, fault or found.both.reason, arguments, metric)

    @property
    def value(self) -> float:
        return math.nan if self.fault else self.found.both.value

    @property
    def span(self) -> float:
        """The largest possible distance of two values; infinite where unknown."""
        return self.metric.range[1] - self.metric.range[0]

    def interval(self, confidence: float) -> tuple[float, float]:
        """The interval of the difference; NaN where it does not count."""
        at_level = dataclasses.replace(self.metric, confidence=confidence)
        both = at_level.measure(*self.arguments)[0].both
        return (math.nan, math.nan) if self.fault else (both.low, both.high)

    def bounds(self, level: float) -> tuple[float, float]:
        """One-sided bounds at a level such as 0.95."""
        return self.interval(2 * level - 1)

    @cached_property
    def of_sides(self) -> tuple[float, float]:
        """The prediction-powered means of both sides, by the same λ."""
        if self.fault:
            return math.nan, math.nan
        labels = np.where(np.isnan(self.labels[1]), np.nan, self.labels[0])  # only what both have
        base = self.metric.measure(*self._against_zero(self.judged[0], labels))[0].both.value
        return base, base + self.value

    def _against_zero(self, judged: np.ndarray, labels: np.ndarray) -> Sequence[Any]:
        return (np.stack([0 * judged, judged]), np.stack([0 * labels, labels]), *self.arguments[2:])


def labelled_difference(every: LabelledRows, a: int, b: int, confidence: float) -> Difference:
    """Compares side `b` with side `a` over the rows of one group."""
    rows = every.rows
    asked, used = rows.asked[a] & rows.asked[b], rows.known[a] & rows.known[b]
    both = (rows.status[a] != ABSENT) & (rows.status[b] != ABSENT)
    sample = LabelledSample.from_rows(every, a, b, confidence)
    found: Estimate = sample.found.both
    counted = sample.fault is None
    value_a, value_b = sample.of_sides
    gain = np.nan_to_num(sample.labels[1] - sample.labels[0]) * (-1 if every.metric.direction == "lower" else 1)
    unscored = bool((asked & (rows.unscored[a] | rows.unscored[b])).any())
    n_used = int(used.sum())
    clusters = len(np.unique(sample.arguments[-1]))
    return Difference(
        n=int(asked.sum()),
        n_used=n_used,
        n_a_missing=int((asked & rows.unscored[a]).sum()),
        n_b_missing=int((asked & rows.unscored[b]).sum()),
        n_skipped=int((both & ~asked).sum()),
        n_only_a=int(rows_without_partner(rows, a, b).sum()),
        n_only_b=int(rows_without_partner(rows, b, a).sum()),
        clusters=None if rows.cluster is None and clusters == n_used else clusters,
        binary=False,
        value_a=value_a,
        value_b=value_b,
        difference=sample.value,
        low=found.low if counted else math.nan,
        high=found.high if counted else math.nan,
        interval=METHOD,
        bootstrap_low=math.nan,
        bootstrap_high=math.nan,
        worst=math.nan if unscored else sample.value,
        best=math.nan if unscored else sample.value,
        p=sample.found.p if counted else math.nan,
        test=METHOD,
        p_permutation=math.nan,
        permutation="none",
        won=int((gain > 0).sum()),
        tied=int((~np.isnan(sample.labels).any(axis=0)).sum() - (gain != 0).sum()),
        lost=int((gain < 0).sum()),
        effect=math.nan,
        detectable=math.nan,
        reason=sample.fault,
    )


def _weights(every: LabelledRows) -> np.ndarray:
    if not every.metric.weighted:
        return np.ones(len(every.rows.group))
    return weights_of({} if every.rows.weight is None else {WEIGHT: every.rows.weight}, every.metric.kind)
