"""Calibration errors of bins of rows of similar confidence, and how often the rows of each bin are right.

Those without the bias of chance have an interval, tests and reliability curves as data.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, Any, ClassVar, Final, Literal

import numpy as np

from evaluand.core.errors import SpecError
from evaluand.core.parameters import Within
from evaluand.metrics.base.class_scores import (
    CONFIDENCE,
    GIVE_SCORES,
    SCORES,
    OfScores,
    ScoredBy,
    check_probabilities,
    class_of_confidence,
)
from evaluand.metrics.base.confusion import MAX_CLASSES, PREDICTION, TRUTH
from evaluand.metrics.base.curves import Curve, Drawn, part_name
from evaluand.metrics.base.labels import in_order
from evaluand.metrics.base.left_out import LeftOut, clusters_by_group, count_clusters
from evaluand.metrics.base.metric import (
    CLUSTER,
    INDEPENDENT,
    LABELS,
    WEIGHT,
    Columns,
    Metric,
    State,
    Values,
    numbers,
    refuse,
)
from evaluand.metrics.base.weighted_rows import GroupResult, WeightedRowsMetric, clusters_in
from evaluand.metrics.stats.calibration import (
    MAX_CELLS,
    ErrorEnds,
    Rows,
    calibration_p,
    error_interval,
    spiegelhalter,
    squared_errors,
    squared_errors_without,
)
from evaluand.metrics.stats.intervals import cautious_spread, cluster_sums, cluster_variance, clustered_wilson, mid_p
from evaluand.metrics.stats.paired_change import Ends

Binning = Literal["width", "mass"]


@dataclass(frozen=True, kw_only=True)
class ConfidenceBins(OfScores, WeightedRowsMetric):
    """A function of bins of rows of similar confidence, drawn as a reliability curve.

    Args:
        scored_by: what the confidences are, see `OfScores`; `predicted` without `label`.
        label: the class whose probabilities are evaluated; by default the confidence in the prediction is.
        bins: the number of bins.
        binning: bins of equal `width` of confidence, each including its upper end, or of equal `mass`, with equally
            many rows (or weight) each; equal confidences are never split.

    Raises:
        SpecError: the parameters contradict each other.
    """

    direction = "lower"
    range = (0.0, 1.0)
    like_share: ClassVar[bool] = False
    of_either_class: ClassVar[bool] = True
    row_columns: ClassVar[tuple[str, ...]] = ("probability", "right")
    of_one: ClassVar[tuple[ScoredBy, ...]] = ("classes", "positive", "labels")

    scored_by: ScoredBy = "predicted"
    bins: Annotated[int, Within(1)] = 10
    binning: Binning = "width"

    @property
    def columns(self) -> tuple[str, ...]:
        return (TRUTH, PREDICTION, CONFIDENCE) if self.label is None else super().columns

    def prepare(self, columns: Columns) -> Columns:
        if self.label is None:
            self.check_truth(columns)
            truth, prediction = columns[TRUTH], columns[PREDICTION]
            probability, right = numbers(columns, CONFIDENCE, self.kind), truth == prediction
            others = class_of_confidence(columns) != prediction
            if others.any() and len(columns[LABELS]) > 2:
                raise SpecError(
                    f"{self.kind}: some confidences belong to another class than the predicted one, and with more than "
                    "two classes they do not determine its confidence; give label, the class, and scored_by"
                )
            probability = np.where(others, 1 - probability, probability)
        else:
            rows = self.scored(columns)
            probability, right = np.where(np.isnan(rows[SCORES]), self.otherwise, rows[SCORES])[:, 0], rows[TRUTH] == 0
            refuse(columns, np.isnan(probability), lambda row: f"has no score for {self.label!r}; {GIVE_SCORES}")
        check_probabilities(columns, probability[:, None], self.kind, whole=False)
        return {"probability": probability, "right": right.astype(np.float64)}

    def arranged(self, rows: Columns) -> Columns:
        return {**rows, BIN: assign_bins(rows["probability"], rows[WEIGHT], self.bins, self.binning)}

    @property
    def drawn_by(self) -> Metric:
        return self

    def curves(self, state: State) -> list[list[Drawn]]:
        """How often rows of each bin are right, with intervals if it is known which rows belong together."""
        found: list[list[Drawn]] = [[] for _ in state["n"]]
        for group, rows in self.rows_of(state):
            bins = reliability(self.arranged(rows), self.confidence if CLUSTER in rows or INDEPENDENT in rows else None)
            part = None if self.label is None else part_name(self.label)
            found[group] = [Drawn("calibration", part, *bins)] if len(bins[0].x) else []
        return found


def reliability(rows: Columns, confidence: float | None) -> tuple[Curve, np.ndarray | None, np.ndarray | None]:
    """For each bin with rows: mean confidence, share of right rows, highest confidence and weight, with its interval.

    The interval of independent rows is the mid-P interval, that of rows in clusters the score interval with the
    variance between the clusters of the bin; NaN in a bin with a single one of these.

    Args:
        rows: what `ConfidenceBins.arranged` returns; with a confidence also the cluster of each row.
        confidence: of each bin by itself; None for no intervals.
    """
    counted = rows[WEIGHT] > 0
    probability, right, weight = (rows[name][counted] for name in (*ConfidenceBins.row_columns, WEIGHT))
    _, of = np.unique(rows[BIN][counted], return_inverse=True)
    total, sure, share, square = (np.bincount(of, weight * each) for each in (1.0, probability, right, weight))
    highest = np.full(len(total), -np.inf)
    np.maximum.at(highest, of, probability)
    curve = Curve(sure / total, share / total, highest, total)
    if confidence is None:
        return curve, None, None
    keys = clusters_in(rows)[counted]
    if len(np.unique(keys)) == len(keys):
        effective = total * total / square
        ends = [mid_p(y * n, n, confidence) for y, n in zip(curve.y.tolist(), effective.tolist(), strict=True)]
        return curve, *np.array(ends).reshape(-1, 2).T
    spread = cluster_variance(cluster_sums(right, weight, keys, of), curve.y)
    return curve, *clustered_wilson(curve.y, cautious_spread(curve.y, spread, confidence), confidence)


def assign_bins(probability: np.ndarray, weight: np.ndarray, bins: int, binning: Binning) -> np.ndarray:
    """The bin of each confidence, from 0 on.

    Example:
        >>> assign_bins(np.array([0.0, 0.5, 0.6, 1.0]), np.ones(4), 2, "width").tolist()
        [0, 0, 1, 1]
        >>> assign_bins(np.array([0.1, 0.9, 0.9, 0.9]), np.ones(4), 2, "mass").tolist()
        [0, 0, 0, 0]
        >>> assign_bins(np.array([0.1, 0.2, 0.9]), np.array([2.0, 1.0, 1.0]), 2, "mass").tolist()
        [0, 1, 1]
    """
    if binning == "width":
        return np.searchsorted(np.linspace(0, 1, bins + 1)[1:-1], probability)
    values, place = np.unique(probability, return_inverse=True)
    mass = np.bincount(place, weight, minlength=len(values))
    below = (np.cumsum(mass) - mass) / (mass.sum() or 1.0)
    return np.minimum(below * bins * (1 + _ROUNDING), bins - 1).astype(np.int64)[place]


BIN: Final = "_bin_"
_ROUNDING: Final = 1e-12


Norm = Literal["l1", "max"]


@dataclass(frozen=True, kw_only=True)
class ExpectedCalibrationError(ConfidenceBins):
    """The difference between mean confidence and share of right rows, over bins of rows of similar confidence.

    Without `label`, a row is right if prediction and truth are equal, and its confidence is that of the prediction.
    With `label`, a row is right if the truth is that class, and its confidence is the probability of the class. If the
    table says that a confidence belongs to the other of two classes, it is subtracted from 1. The value depends on the
    bins, and with few rows per bin even perfect confidences give a value well above 0: compare only values with the
    same bins and about as many rows, or take `debiased_calibration_error`. As this bias differs between systems,
    differences have no interval; `compare` and gates against a baseline take `debiased_calibration_error`.
    Source: C. Guo et al., "On calibration of modern neural networks" (ICML 2017), section 2.

    Args:
        scored_by: what the confidences are, see `OfScores`; `predicted` without `label`.
        label: the class whose probabilities are evaluated.
        bins: the number of bins.
        binning: bins of equal `width` of confidence, each including its upper end, or of equal `mass`, with equally
            many rows (or weight) each; equal confidences are never split.
        norm: the mean of the differences, weighted by the rows of the bin (`l1`), or the largest (`max`).
        weighted: each row counts by the weight of its example.
        confidence: of the shares drawn in a report; the value has no interval, see `interval`.

    Raises:
        SpecError: the parameters contradict each other.

    Example:
        >>> ExpectedCalibrationError(bins=15, confidence=None).signature
        'expected_calibration_error v2 missing=leave_out reduce=first scored_by=predicted bins=15 binning=width norm=l1'
    """

    kind = "expected_calibration_error"
    version = 2
    has_differences: ClassVar[bool] = False  # its bias differs between systems
    compared_by: ClassVar[str | None] = "debiased_calibration_error"
    interval_name = None  # with few rows the value is biased upwards by chance, and an interval would hide that

    norm: Norm = "l1"

    def value(self, rows: Columns, weight: np.ndarray) -> np.ndarray:
        total, probability, right = (
            np.stack([np.bincount(rows[BIN], each * values, minlength=self.bins) for each in weight])
            for values in (1.0, rows["probability"], rows["right"])
        )
        distance = np.abs(probability - right) / np.where(total > 0, total, np.inf)
        share = total / total.sum(axis=1, keepdims=True)
        return np.asarray((share * distance).sum(axis=1) if self.norm == "l1" else distance.max(axis=1))

    def compute(self, state: State) -> Values:
        values = super().compute(state)
        known = np.isfinite(values.value).tolist()
        reason = [_BIASED if has else other for has, other in zip(known, values.reason, strict=True)]
        return replace(values, reason=reason)

    def details(self, rows: Columns, weight: np.ndarray) -> dict[str, Any]:
        """The number of bins that have rows."""
        return {"bins": int(np.count_nonzero(np.bincount(rows[BIN])))}


_BIASED: Final = "no interval: by chance alone the calibration error of few rows is above 0"


class _DebiasedError(WeightedRowsMetric):
    """The root of the mean squared distance of confidence and accuracy in bins, less what chance adds to it."""

    direction = "lower"
    range = (0.0, 1.0)
    like_share: ClassVar[bool] = False
    by_cluster = True  # products of two rows of one cluster have a bias too

    @property
    def interval_name(self) -> str | None:
        return None if self.confidence is None else "noncentral"

    def of_cells(self, rows: Columns) -> Rows | None:
        """The probabilities and outcomes of what `arranged` returned; None if a probability is missing."""
        raise NotImplementedError

    def value(self, rows: Columns, weight: np.ndarray) -> np.ndarray:
        cells = self.of_cells(rows)
        if cells is None:
            return np.full(len(weight), np.nan)
        return np.asarray(np.sqrt(np.maximum(squared_errors(cells, weight), 0.0)))

    def undefined(self, rows: Columns, weight: np.ndarray) -> str:
        if self.of_cells(rows) is None:
            return f"some rows have no probability for a class; {GIVE_SCORES}, or absent=0"
        return "no bin has rows of two clusters"

    def group_results(self, state: State) -> Iterator[tuple[int, GroupResult]]:
        for group, rows in self.rows_of(state):
            arranged = self.arranged(rows)
            weight = arranged[WEIGHT]
            value = float(self._values(arranged, weight[None])[0])
            if not math.isfinite(value):
                yield group, GroupResult(value, dict, self._undefined_reason(arranged, weight))
                continue
            cells = self.of_cells(arranged)
            assert cells is not None
            details = partial(self.details, arranged, weight)
            ends = None if self.confidence is None else error_interval(cells, weight, self.confidence)
            yield group, GroupResult(value, details, None, ends=ends)

    def details(self, rows: Columns, weight: np.ndarray) -> dict[str, Any]:
        """Two tests of calibration."""
        cells = self.of_cells(rows)
        assert cells is not None
        test = spiegelhalter(cells, weight)
        return {"p": calibration_p(cells, weight), "spiegelhalter": test._asdict() if test else _NO_TEST}

    def leave_out(self, columns: Columns, group: np.ndarray, n_groups: int) -> LeftOut:
        """The errors and their squares without each cluster: a root that is cut at 0 does not show what moves it."""
        cluster, of, _ = clusters_by_group(columns[CLUSTER], group, n_groups)
        value, without = np.full(n_groups, np.nan), np.full(len(of), np.nan)
        ends: list[Ends | None] = [None] * n_groups
        for place, rows in self.rows_of(self.state(columns, group, n_groups)):
            arranged = self.arranged(rows)
            cells, weight = self.of_cells(arranged), arranged[WEIGHT]
            value[place] = self._values(arranged, weight[None])[0]
            if cells is not None and (found := ErrorEnds.of(cells, weight)) is not None:
                ends[place] = found.at
                without[of == place] = squared_errors_without(cells, weight)
        n = count_clusters(columns[CLUSTER])
        return LeftOut(value, cluster, of, without, n, np.ones(n_groups), ends=ends)

    def compute(self, state: State) -> Values:
        values = super().compute(state)
        known = zip(values.value.tolist(), values.low.tolist(), values.reason, strict=True)
        none = None if self.confidence is None else _NO_INTERVAL
        reason = [why if value != value else none if low != low else None for value, low, why in known]
        return replace(values, reason=reason)


@dataclass(frozen=True, kw_only=True)
class DebiasedCalibrationError(_DebiasedError, ConfidenceBins):
    """The root of the mean squared difference of confidence and accuracy, over bins, without the bias of few rows.

    What chance alone adds to the squared differences is subtracted, so values of few and of many rows, and of different
    numbers of bins, can be compared; it is 0 if no error can be seen. Without `label`, the error of the confidence in
    predictions (top label); with it, that of the probability of the class. `data` has the plug-in value, which is
    biased upwards, two tests of calibration with p, and the reliability of each bin with its interval and with a band
    that holds all bins at once.
    Source: A. Kumar, P. Liang & T. Ma, "Verified uncertainty calibration" (NeurIPS 2019).

    Args:
        scored_by: what the confidences are, see `OfScores`; `predicted` without `label`.
        label: the class whose probabilities are evaluated.
        bins: the number of bins.
        binning: bins of equal `mass`, with equally many rows (or weight) each, or of equal `width` of confidence.
        weighted: each row counts by the weight of its example.

    Raises:
        SpecError: the parameters contradict each other.

    Example:
        >>> DebiasedCalibrationError(confidence=None).signature
        'debiased_calibration_error v1 missing=leave_out reduce=first scored_by=predicted bins=10 binning=mass'
    """

    kind = "debiased_calibration_error"

    binning: Binning = "mass"

    def of_cells(self, rows: Columns) -> Rows:
        probability, right = (rows[name][:, None] for name in self.row_columns)
        return Rows(probability, right, rows[BIN][:, None], _clusters(rows), self.bins)

    def details(self, rows: Columns, weight: np.ndarray) -> dict[str, Any]:
        """The plug-in value, the reliability of each bin, and tests."""
        curve, _, _ = reliability(rows, None)
        share = curve.weight / curve.weight.sum()
        found: dict[str, Any] = {"plug_in": math.sqrt(float(share @ np.square(curve.x - curve.y)))}
        table = dict(zip(("confidence", "right", "to", "n"), (column.tolist() for column in curve), strict=True))
        if self.confidence is not None:
            for name, level in (("", self.confidence), ("band_", self.confidence ** (1 / len(share)))):
                _, low, high = reliability(rows, level)
                assert low is not None
                assert high is not None
                table |= {f"{name}low": _numbers(low), f"{name}high": _numbers(high)}
        found["reliability"] = [dict(zip(table, row, strict=True)) for row in zip(*table.values(), strict=True)]
        return found | super().details(rows, weight)


@dataclass(frozen=True, kw_only=True)
class ClasswiseCalibrationError(_DebiasedError, OfScores):
    """The root of the mean over classes of the squared calibration error of each class's probability, without bias.

    A system may be calibrated in its predicted class and not in the others. Each class counts alike, and has bins of
    its own. `data` has the error of each class, and a test of calibration of all of them.
    Source: A. Kumar, P. Liang & T. Ma, "Verified uncertainty calibration" (NeurIPS 2019), definition 2.4; M. Kull et
    al., "Beyond temperature scaling" (NeurIPS 2019), whose classwise ECE takes distances and not their squares.

    Args:
        absent: the probability of a class without one in a row; by default the value is undefined if one is missing.
        bins: the number of bins of each class.
        binning: bins of equal `mass`, with equally many rows (or weight) each, or of equal `width` of probability.
        weighted: each row counts by the weight of its example.

    Raises:
        SpecError: the parameters contradict each other.

    Example:
        >>> ClasswiseCalibrationError(bins=5, confidence=None).signature
        'classwise_calibration_error v1 missing=leave_out reduce=first scored_by=classes bins=5 binning=mass'
    """

    kind = "classwise_calibration_error"
    row_columns: ClassVar[tuple[str, ...]] = (TRUTH, SCORES)
    label: ClassVar[None] = None  # type: ignore[misc]

    scored_by: ScoredBy = "classes"
    bins: Annotated[int, Within(1)] = 10
    binning: Binning = "mass"

    def __post_init__(self) -> None:
        if self.scored_by != "classes":
            raise SpecError(f"{self.kind}: scored_by={self.scored_by!r} must be classes: it needs those of all classes")
        super().__post_init__()

    def prepare(self, columns: Columns) -> Columns:
        rows = self.scored(columns)
        check_probabilities(columns, rows[SCORES], self.kind, whole=self.absent is None)
        return rows

    def arranged(self, rows: Columns) -> Columns:
        scores = rows[SCORES]
        occurs = ~np.isnan(scores).all(axis=0) | np.isin(np.arange(len(rows[LABELS])), rows[TRUTH])
        order = in_order(rows[LABELS])
        classes = order[occurs[order]]
        chosen = np.where(np.isnan(scores[:, classes]), self.otherwise, scores[:, classes])
        if np.isnan(chosen).any() or not len(classes):
            return {**rows, _CLASSES: classes, SCORES: np.full(chosen.shape, np.nan)}
        bins = np.stack([assign_bins(each, rows[WEIGHT], self.bins, self.binning) for each in chosen.T], axis=1)
        return {**rows, _CLASSES: classes, SCORES: chosen, BIN: bins + self.bins * np.arange(len(classes))}

    def of_cells(self, rows: Columns) -> Rows | None:
        if BIN not in rows:
            return None
        outcome = (rows[TRUTH][:, None] == rows[_CLASSES]).astype(np.float64)
        return Rows(rows[SCORES], outcome, rows[BIN], _clusters(rows), len(rows[_CLASSES]) * self.bins)

    def details(self, rows: Columns, weight: np.ndarray) -> dict[str, Any]:
        """The error of each class, of at most `MAX_CLASSES`: the first by label."""
        cells = self.of_cells(rows)
        if cells is None:
            return {}
        found = []
        for place, code in enumerate(rows[_CLASSES].tolist()[:MAX_CLASSES]):
            one = slice(place, place + 1)
            own = cells.probability[:, one], cells.outcome[:, one], cells.cell[:, one] - place * self.bins
            alone = Rows(*own, cells.cluster, self.bins)
            value = math.sqrt(max(float(squared_errors(alone, weight[None])[0]), 0.0))
            found.append({"label": rows[LABELS][code], "value": value, "p": calibration_p(alone, weight)})
        return {"classes": found} | super().details(rows, weight)


def _clusters(rows: Columns) -> np.ndarray:
    """The cluster of each row, from 0 on."""
    return np.unique(clusters_in(rows), return_inverse=True)[1]


def _numbers(ends: np.ndarray) -> list[float | None]:
    """Ends of intervals as JSON has them, None where there is none."""
    return [end if math.isfinite(end) else None for end in ends.tolist()]


_NO_TEST: Final = {"z": None, "p": None}
_CLASSES = "_classes_"
_NO_INTERVAL = (
    f"no interval: of means of several values there is none, nor of more than {MAX_CELLS:,} bins of all classes, nor of"
    " probabilities that are all 0 or 1"
)
