"""`GroundTruthAggregator`: what the scores of a list are worth beside what people said, by the metrics of the core."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from evaluand.core.errors import DataError, EvaluandWarning, SpecError, kind_of
from evaluand.evaluation.provider import Judgement, Provider
from evaluand.evaluation.providers.agreement import Agreement
from evaluand.experiment.arrays import evaluate
from evaluand.metrics.base.metric import Metric
from evaluand.metrics.expected_calibration_error import ExpectedCalibrationError

Scores = Sequence[Any]


@dataclass(frozen=True)
class GroundTruthAggregator(Provider):
    """Its methods are aggregates: of the scores of a list, one for each label, they make one number.

    A score is a number, or a list of a number and what was said of it. Where a number is not defined it is NaN, with a
    warning that tells why; `evaluand.evaluate` gives the same ones with their intervals and counts.

    Args:
        true_labels: what people said, score by score: 0 or 1, or for correlations, `mae` and `ndcg_at_k` any number.
        k: how many places of a ranking are looked at; all if not given.
        n_bins: of confidences, for `ece`.
        custom_agg_funcs: functions of the scores and this object, by name; as `register_custom_agg_func` adds them.

    Raises:
        SpecError: the labels are no numbers, or k or n_bins are no whole numbers of at least 1.

    Example:
        >>> beside = GroundTruthAggregator([1, 0, 1, 0], k=2)
        >>> scores = [0.9, 0.2, 0.4, 0.6]
        >>> [beside.mae(scores), beside.auc(scores), beside.precision_at_k(scores)]
        [0.375, 0.75, 0.5]
    """

    true_labels: Sequence[float]
    k: int | None = None
    n_bins: int = 5
    custom_agg_funcs: Mapping[str, Callable[[Scores, GroundTruthAggregator], float]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        labels = self.true_labels.tolist() if hasattr(self.true_labels, "tolist") else self.true_labels
        if not isinstance(labels, list | tuple) or not labels or not all(map(_is_number, labels)):
            raise SpecError(f"true_labels is {kind_of(labels)}; give a list of one number for each score")
        object.__setattr__(self, "true_labels", [label + 0 for label in labels])  # True is 1
        object.__setattr__(self, "custom_agg_funcs", dict(self.custom_agg_funcs))
        _ = Agreement(k=self.k), ExpectedCalibrationError(bins=self.n_bins)

    def __getattr__(self, name: str) -> Any:
        custom = vars(self).get("custom_agg_funcs", {}).get(name)
        if custom is None:
            raise AttributeError(f"{type(self).__name__} has no {name!r}")

        def aggregate(scores: Scores) -> float:
            return custom(scores, self)  # type: ignore[no-any-return] # it says so

        return aggregate

    def register_custom_agg_func(self, name: str, func: Callable[[Scores, GroundTruthAggregator], float]) -> None:
        """Adds a method of a list of scores and this object.

        Raises:
            SpecError: the name is no name, or taken.
        """
        if not name.isidentifier() or hasattr(type(self), name) or name in vars(self):
            raise SpecError(f"{name!r} cannot be the name of an aggregate; give a word that is no name of mine")
        self.custom_agg_funcs[name] = func  # type: ignore[index] # a dict, since it was copied

    def mae(self, scores: Scores) -> float:
        """The mean absolute error."""
        return self._compared("mean_absolute_error", scores)

    def pearson_correlation(self, scores: Scores) -> float:
        """Pearson's correlation."""
        return self._compared("pearson", scores)

    def spearman_correlation(self, scores: Scores) -> float:
        """Spearman's correlation of ranks."""
        return self._compared("spearman", scores)

    def kendall_tau(self, scores: Scores) -> float:
        """Kendall's τ-b."""
        return self._compared("kendall", scores)

    def auc(self, scores: Scores) -> float:
        """The area under the ROC curve; labels are 0 and 1."""
        return self._as_probability("roc_auc", scores)

    def brier_score(self, scores: Scores) -> float:
        """The mean squared error of scores that are probabilities of label 1; labels are 0 and 1."""
        return self._as_probability("brier", scores)

    def ece(self, score_confidence_pairs: Sequence[Sequence[float]], threshold: float = 0.5) -> float:
        """How far confidences are from how often scores are right, over `n_bins` bins of equal width.

        Args:
            score_confidence_pairs: of each label, the score and how sure it is. A score is right on the side of the
                threshold on which the label is.
            threshold: scores from this one on mean label 1.
        """
        pairs = list(score_confidence_pairs)
        if not all(isinstance(pair, list | tuple) and len(pair) == 2 and all(map(_is_number, pair)) for pair in pairs):
            raise DataError("ece takes pairs of a score and its confidence; a score alone does not say how sure it is")
        metric = ExpectedCalibrationError(bins=self.n_bins, confidence=None)
        sure = [float(confidence) for _, confidence in pairs]
        return self._decided(metric, pairs, threshold, confidence=sure)

    def precision(self, scores: Scores, threshold: float = 0.5) -> float:
        """Of the scores from the threshold on, the share with label 1."""
        return self._decided("precision", scores, threshold, label=1)

    def recall(self, scores: Scores, threshold: float = 0.5) -> float:
        """Of the labels 1, the share with scores from the threshold on."""
        return self._decided("recall", scores, threshold, label=1)

    def f1_score(self, scores: Scores, threshold: float = 0.5) -> float:
        """The harmonic mean of precision and recall."""
        return self._decided("f_beta", scores, threshold, label=1)

    def cohens_kappa(self, scores: Scores, threshold: float = 0.5) -> float:
        """Cohen's κ of labels and scores from the threshold on."""
        return self._decided("cohen_kappa", scores, threshold)

    def matthews_correlation(self, scores: Scores, threshold: float = 0.5) -> float:
        """The Matthews correlation of labels and scores from the threshold on."""
        return self._decided("matthews_correlation", scores, threshold)

    def ndcg_at_k(self, scores: Scores) -> float:
        """Normalised discounted cumulative gain of one ranking: the list by its scores, the labels as relevances."""
        return self._ranked("ndcg_at_k", scores)

    def precision_at_k(self, scores: Scores) -> float:
        """The share of the first k places of one ranking with a label above 0."""
        return self._ranked("precision_at_k", scores)

    def recall_at_k(self, scores: Scores) -> float:
        """The share of the labels above 0 in the first k places of one ranking."""
        return self._ranked("recall_at_k", scores)

    def ir_hit_rate(self, scores: Scores) -> float:
        """1 where any of the first k places of one ranking has a label above 0, else 0."""
        return self._ranked("hit_rate", scores)

    def mrr(self, scores: Scores) -> float:
        """1 / the first place of one ranking with a label above 0."""
        return self._ranked("reciprocal_rank", scores)

    def _compared(self, metric: str, scores: Scores) -> float:
        numbers = self._numbers(scores)
        return _value(metric, [float(label) for label in self.true_labels], numbers)

    def _as_probability(self, metric: str, scores: Scores) -> float:
        numbers = self._numbers(scores)
        return _value(metric, self._binary, [int(score >= 0.5) for score in numbers], scores={1: numbers}, label=1)

    def _decided(self, metric: str | Metric, scores: Scores, threshold: float, **given: Any) -> float:
        return _value(metric, self._binary, [int(score >= threshold) for score in self._numbers(scores)], **given)

    def _ranked(self, method: str, scores: Scores) -> float:
        found = {str(place): score for place, score in enumerate(self._numbers(scores))}
        relevant = {str(place): label for place, label in enumerate(self.true_labels)}
        judged: Judgement = getattr(Agreement(k=self.k), method)(found, relevant)
        return _told(method, judged.value, judged.reason)

    @property
    def _binary(self) -> list[int]:
        other = next((label for label in self.true_labels if label not in (0, 1)), None)
        if other is not None:
            raise DataError(
                f"a label is {other:g}: this is defined for labels 0 and 1; mae and correlations take others"
            )
        return [int(label) for label in self.true_labels]

    def _numbers(self, scores: Scores) -> list[float]:
        listed = scores.tolist() if hasattr(scores, "tolist") else list(scores)
        numbers = [one[0] if isinstance(one, list | tuple) and len(one) == 2 else one for one in listed]
        wrong = next((one for one in numbers if not _is_number(one)), None)
        if wrong is not None or None in numbers:
            raise DataError(f"a score is {kind_of(wrong)}, not a number; leave it out together with its label")
        if len(numbers) != len(self.true_labels):
            raise DataError(f"there are {len(numbers)} scores and {len(self.true_labels)} labels; give one for each")
        return [float(number) for number in numbers]


def _value(metric: str | Metric, labels: Sequence[Any], predictions: Sequence[Any], **given: Any) -> float:
    row = evaluate(labels, predictions, metrics=metric, **given).rows[0]
    return _told(row.metric, row.value, row.reason)


def _told(name: str, value: float | None, reason: str | None) -> float:
    if value is None or math.isnan(value):
        warnings.warn(f"{name} is not defined: {reason}", EvaluandWarning, stacklevel=4)
        return math.nan
    return value


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and math.isfinite(value)
