"""Bins of rows of similar confidence: how often the rows of each are right, and calibration errors made of them."""

from dataclasses import dataclass
from typing import ClassVar, Final, Literal

import numpy as np

from evaluand.core.errors import SpecError
from evaluand.metrics.base.class_scores import (
    CONFIDENCE,
    GIVE_SCORES,
    SCORES,
    OfScores,
    ScoredBy,
    check_probabilities,
    class_of_confidence,
)
from evaluand.metrics.base.confusion import PREDICTION, TRUTH
from evaluand.metrics.base.curves import Curve, Drawn, part_name
from evaluand.metrics.base.metric import (
    CLUSTER,
    INDEPENDENT,
    LABELS,
    WEIGHT,
    Columns,
    Metric,
    State,
    check_whole_number,
    numbers,
    refuse,
)
from evaluand.metrics.base.weighted_rows import WeightedRowsMetric, clusters_in
from evaluand.metrics.stats.intervals import (
    cautious_spread,
    cluster_sums,
    cluster_variance,
    clustered_wilson,
    mid_p,
)

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
    bins: int = 10
    binning: Binning = "width"

    def __post_init__(self) -> None:
        check_whole_number(self.kind, "bins", self.bins, 1)
        if self.binning not in ("width", "mass"):
            raise SpecError(f"{self.kind}: binning={self.binning!r} must be one of width, mass")
        super().__post_init__()

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
