"""`GroundTruthAggregator`: compare a list of scores with human labels, by the metrics of the core."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from evaluand.core.errors import DataError, SpecError, kind_of, plural, warn
from evaluand.evaluation.provider import Judgement, Provider
from evaluand.evaluation.providers.agreement import Agreement
from evaluand.metrics.base.metric import Metric
from evaluand.metrics.calibration import ExpectedCalibrationError
from evaluand.predictions.evaluating import evaluate

Scores = Sequence[Any]


@dataclass(frozen=True)
class GroundTruthAggregator(Provider):
    """Aggregates of a list of scores, one score per label; each method returns one number.

    A score is a number, or a pair of a number and its metadata. An undefined value is NaN, with a warning that gives
    the reason; `evaluand.evaluate` returns the same numbers with intervals and counts.

    Args:
        true_labels: human labels in the order of the scores: 0 or 1; for correlations, `mae` and `ndcg_at_k` any
            number.
        k: the number of places of a ranking to consider; default: all.
        n_bins: the number of confidence bins of `ece`.
        custom_agg_funcs: name → function of the scores and this object, as `register_custom_agg_func` adds them.

    Raises:
        SpecError: a label is not a number, or k or n_bins is not an integer of at least 1.

    Example:
        >>> aggregator = GroundTruthAggregator([1, 0, 1, 0], k=2)
        >>> scores = [0.9, 0.2, 0.4, 0.6]
        >>> [aggregator.mae(scores), aggregator.auc(scores), aggregator.precision_at_k(scores)]
        [0.375, 0.75, 0.5]
    """

    true_labels: Sequence[float]
    k: int | None = None
    n_bins: int = 5
    custom_agg_funcs: Mapping[str, Callable[[Scores, GroundTruthAggregator], float]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        labels = self.true_labels.tolist() if hasattr(self.true_labels, "tolist") else self.true_labels
        if not isinstance(labels, list | tuple) or not labels or not all(map(_is_number, labels)):
            raise SpecError(f"true_labels is {kind_of(labels)}; pass a list with one number per score")
        object.__setattr__(self, "true_labels", [label + 0 for label in labels])  # True + 0 is 1
        object.__setattr__(self, "custom_agg_funcs", dict(self.custom_agg_funcs))
        _ = Agreement(k=self.k), ExpectedCalibrationError(bins=self.n_bins)

    def __getattr__(self, name: str) -> Any:
        custom = vars(self).get("custom_agg_funcs", {}).get(name)
        if custom is None:
            raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")

        def aggregate(scores: Scores) -> float:
            return custom(scores, self)  # type: ignore[no-any-return] # the annotation says float

        return aggregate

    def register_custom_agg_func(self, name: str, func: Callable[[Scores, GroundTruthAggregator], float]) -> None:
        """Add a method that calls a function with a list of scores and this object.

        Raises:
            SpecError: the name is not an identifier, or already an attribute.
        """
        if not name.isidentifier() or hasattr(type(self), name) or name in vars(self):
            raise SpecError(
                f"{name!r} cannot be the name of an aggregate: it must be a Python identifier that "
                f"{type(self).__name__} does not use yet"
            )
        self.custom_agg_funcs[name] = func  # type: ignore[index] # __post_init__ made it a dict

    def mae(self, scores: Scores) -> float:
        """The mean absolute error."""
        return self._compare_numbers("mean_absolute_error", scores)

    def pearson_correlation(self, scores: Scores) -> float:
        """Pearson's correlation."""
        return self._compare_numbers("pearson", scores)

    def spearman_correlation(self, scores: Scores) -> float:
        """Spearman's correlation of ranks."""
        return self._compare_numbers("spearman", scores)

    def kendall_tau(self, scores: Scores) -> float:
        """Kendall's τ-b."""
        return self._compare_numbers("kendall", scores)

    def auc(self, scores: Scores) -> float:
        """The area under the ROC curve; labels are 0 and 1."""
        return self._compare_probabilities("roc_auc", scores)

    def brier_score(self, scores: Scores) -> float:
        """The mean squared error of scores that are probabilities of label 1; labels are 0 and 1."""
        return self._compare_probabilities("brier", scores)

    def ece(self, score_confidence_pairs: Sequence[Sequence[float]], threshold: float = 0.5) -> float:
        """The expected calibration error of confidences, over `n_bins` bins of equal width.

        Args:
            score_confidence_pairs: per label, the score and its confidence. A score is right if it is on the same side
                of the threshold as the label.
            threshold: a score of at least this means label 1.
        """
        pairs = list(score_confidence_pairs)
        if not all(isinstance(pair, list | tuple) and len(pair) == 2 and all(map(_is_number, pair)) for pair in pairs):
            raise DataError("ece takes pairs of a score and its confidence, not scores alone")
        metric = ExpectedCalibrationError(bins=self.n_bins, confidence=None)
        confidences = [float(confidence) for _, confidence in pairs]
        return self._compare_decisions(metric, pairs, threshold, confidence=confidences)

    def precision(self, scores: Scores, threshold: float = 0.5) -> float:
        """The share of label 1 among the scores of at least the threshold."""
        return self._compare_decisions("precision", scores, threshold, label=1)

    def recall(self, scores: Scores, threshold: float = 0.5) -> float:
        """The share of scores of at least the threshold among the labels 1."""
        return self._compare_decisions("recall", scores, threshold, label=1)

    def f1_score(self, scores: Scores, threshold: float = 0.5) -> float:
        """The harmonic mean of precision and recall."""
        return self._compare_decisions("f_beta", scores, threshold, label=1)

    def cohens_kappa(self, scores: Scores, threshold: float = 0.5) -> float:
        """Cohen's κ of the labels and whether scores reach the threshold."""
        return self._compare_decisions("cohen_kappa", scores, threshold)

    def matthews_correlation(self, scores: Scores, threshold: float = 0.5) -> float:
        """The Matthews correlation of the labels and whether scores reach the threshold."""
        return self._compare_decisions("matthews_correlation", scores, threshold)

    def ndcg_at_k(self, scores: Scores) -> float:
        """Normalised discounted cumulative gain of one ranking: the list by its scores, with labels as relevances."""
        return self._compare_ranking("ndcg_at_k", scores)

    def precision_at_k(self, scores: Scores) -> float:
        """The share of the first k places of one ranking with a label above 0."""
        return self._compare_ranking("precision_at_k", scores)

    def recall_at_k(self, scores: Scores) -> float:
        """The share of the labels above 0 in the first k places of one ranking."""
        return self._compare_ranking("recall_at_k", scores)

    def ir_hit_rate(self, scores: Scores) -> float:
        """1 if any of the first k places of one ranking has a label above 0, else 0."""
        return self._compare_ranking("hit_rate", scores)

    def mrr(self, scores: Scores) -> float:
        """1 / the first place of one ranking with a label above 0."""
        return self._compare_ranking("reciprocal_rank", scores)

    def _compare_numbers(self, metric: str, scores: Scores) -> float:
        numbers = self._numbers(scores)
        return _metric_value(metric, [float(label) for label in self.true_labels], numbers)

    def _compare_probabilities(self, metric: str, scores: Scores) -> float:
        numbers = self._numbers(scores)
        decisions = [int(score >= 0.5) for score in numbers]
        return _metric_value(metric, self._binary_labels, decisions, scores={1: numbers}, label=1)

    def _compare_decisions(self, metric: str | Metric, scores: Scores, threshold: float, **columns: Any) -> float:
        decisions = [int(score >= threshold) for score in self._numbers(scores)]
        return _metric_value(metric, self._binary_labels, decisions, **columns)

    def _compare_ranking(self, method: str, scores: Scores) -> float:
        retrieved = {str(place): score for place, score in enumerate(self._numbers(scores))}
        relevant = {str(place): label for place, label in enumerate(self.true_labels)}
        judgement: Judgement = getattr(Agreement(k=self.k), method)(retrieved, relevant)
        return _value_or_nan(method, judgement.value, judgement.reason)

    @property
    def _binary_labels(self) -> list[int]:
        for index, label in enumerate(self.true_labels):
            if label not in (0, 1):
                raise DataError(
                    f"true_labels[{index}] is {label:g}, but this method takes only labels 0 and 1; mae and the "
                    "correlations take any number"
                )
        return [int(label) for label in self.true_labels]

    def _numbers(self, scores: Scores) -> list[float]:
        values = scores.tolist() if hasattr(scores, "tolist") else list(scores)
        numbers = [value[0] if isinstance(value, list | tuple) and len(value) == 2 else value for value in values]
        for index, number in enumerate(numbers):
            if not _is_number(number):
                raise DataError(f"scores[{index}] is {kind_of(number)}, not a number; remove it and its label")
        if len(numbers) != len(self.true_labels):
            counts = f"{plural(len(numbers), 'score')} for {plural(len(self.true_labels), 'label')}"
            raise DataError(f"{counts}; pass one score per label")
        return [float(number) for number in numbers]


def _metric_value(metric: str | Metric, labels: Sequence[Any], predictions: Sequence[Any], **columns: Any) -> float:
    row = evaluate(labels, predictions, metrics=metric, **columns).rows[0]
    return _value_or_nan(row.metric, row.value, row.reason)


def _value_or_nan(name: str, value: float | None, reason: str | None) -> float:
    if value is None or math.isnan(value):
        warn(f"{name} is not defined: {reason}")
        return math.nan
    return value


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and math.isfinite(value)
