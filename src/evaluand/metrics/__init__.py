"""Metrics: each summarises the rows of a scorer's table into one value per group.

One module for each kind, or for several kinds that differ by a formula; `base` holds what they share, `stats` the
intervals and disparities, `detection` the matching of boxes. A metric of your own derives from `Metric`. The names are
loaded on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from evaluand.core.lazy import lazy_names

if TYPE_CHECKING:
    from evaluand.metrics.absolute_errors import MaxError as MaxError
    from evaluand.metrics.absolute_errors import MeanAbsoluteError as MeanAbsoluteError
    from evaluand.metrics.absolute_errors import MeanAbsolutePercentageError as MeanAbsolutePercentageError
    from evaluand.metrics.absolute_errors import MedianAbsoluteError as MedianAbsoluteError
    from evaluand.metrics.accuracy import Accuracy as Accuracy
    from evaluand.metrics.areas import AveragePrecision as AveragePrecision
    from evaluand.metrics.areas import RocAuc as RocAuc
    from evaluand.metrics.at_k import HitsAtK as HitsAtK
    from evaluand.metrics.at_k import MapAtK as MapAtK
    from evaluand.metrics.at_k import Ndcg as Ndcg
    from evaluand.metrics.at_k import PrecisionAtK as PrecisionAtK
    from evaluand.metrics.at_k import RecallAtK as RecallAtK
    from evaluand.metrics.average_recall import AverageRecall as AverageRecall
    from evaluand.metrics.balanced_accuracy import BalancedAccuracy as BalancedAccuracy
    from evaluand.metrics.base.metric import Metric as Metric
    from evaluand.metrics.base.metric import Values as Values
    from evaluand.metrics.chance_corrected import CohenKappa as CohenKappa
    from evaluand.metrics.chance_corrected import MatthewsCorrelation as MatthewsCorrelation
    from evaluand.metrics.class_rates import FalseNegativeRate as FalseNegativeRate
    from evaluand.metrics.class_rates import FalsePositiveRate as FalsePositiveRate
    from evaluand.metrics.class_rates import FBeta as FBeta
    from evaluand.metrics.class_rates import Jaccard as Jaccard
    from evaluand.metrics.class_rates import Precision as Precision
    from evaluand.metrics.class_rates import Recall as Recall
    from evaluand.metrics.class_rates import Specificity as Specificity
    from evaluand.metrics.confusion_matrix import ConfusionMatrix as ConfusionMatrix
    from evaluand.metrics.count import Count as Count
    from evaluand.metrics.expected_calibration_error import ExpectedCalibrationError as ExpectedCalibrationError
    from evaluand.metrics.hamming_loss import HammingLoss as HammingLoss
    from evaluand.metrics.kendall import Kendall as Kendall
    from evaluand.metrics.mean import Mean as Mean
    from evaluand.metrics.mean_average_precision import MeanAveragePrecision as MeanAveragePrecision
    from evaluand.metrics.mean_reciprocal_rank import MeanReciprocalRank as MeanReciprocalRank
    from evaluand.metrics.mean_squared_error import MeanSquaredError as MeanSquaredError
    from evaluand.metrics.mean_squared_error import MeanSquaredLogError as MeanSquaredLogError
    from evaluand.metrics.mean_squared_error import RootMeanSquaredError as RootMeanSquaredError
    from evaluand.metrics.partitions import AdjustedRand as AdjustedRand
    from evaluand.metrics.partitions import Completeness as Completeness
    from evaluand.metrics.partitions import Homogeneity as Homogeneity
    from evaluand.metrics.partitions import (
        NormalizedMutualInformation as NormalizedMutualInformation,
    )
    from evaluand.metrics.partitions import VMeasure as VMeasure
    from evaluand.metrics.pearson import Pearson as Pearson
    from evaluand.metrics.pearson import Spearman as Spearman
    from evaluand.metrics.precision_at_top_k import PrecisionAtTopK as PrecisionAtTopK
    from evaluand.metrics.probability_losses import Brier as Brier
    from evaluand.metrics.probability_losses import LogLoss as LogLoss
    from evaluand.metrics.quantile import Quantile as Quantile
    from evaluand.metrics.r_squared import ExplainedVariance as ExplainedVariance
    from evaluand.metrics.r_squared import RSquared as RSquared
    from evaluand.metrics.replications import KOfN as KOfN
    from evaluand.metrics.replications import PassAtK as PassAtK
    from evaluand.metrics.selection_rate import SelectionRate as SelectionRate
    from evaluand.metrics.top_k import TopK as TopK

__getattr__, __dir__, __all__ = lazy_names(
    __name__,
    {
        "absolute_errors": ("MaxError", "MeanAbsoluteError", "MeanAbsolutePercentageError", "MedianAbsoluteError"),
        "accuracy": ("Accuracy",),
        "areas": ("AveragePrecision", "RocAuc"),
        "at_k": ("HitsAtK", "MapAtK", "Ndcg", "PrecisionAtK", "RecallAtK"),
        "average_recall": ("AverageRecall",),
        "balanced_accuracy": ("BalancedAccuracy",),
        "base.metric": ("Metric", "Values"),
        "chance_corrected": ("CohenKappa", "MatthewsCorrelation"),
        "class_rates": (
            "FBeta",
            "FalseNegativeRate",
            "FalsePositiveRate",
            "Jaccard",
            "Precision",
            "Recall",
            "Specificity",
        ),
        "confusion_matrix": ("ConfusionMatrix",),
        "count": ("Count",),
        "expected_calibration_error": ("ExpectedCalibrationError",),
        "hamming_loss": ("HammingLoss",),
        "kendall": ("Kendall",),
        "mean": ("Mean",),
        "mean_average_precision": ("MeanAveragePrecision",),
        "mean_reciprocal_rank": ("MeanReciprocalRank",),
        "mean_squared_error": ("MeanSquaredError", "MeanSquaredLogError", "RootMeanSquaredError"),
        "partitions": ("AdjustedRand", "Completeness", "Homogeneity", "NormalizedMutualInformation", "VMeasure"),
        "pearson": ("Pearson", "Spearman"),
        "precision_at_top_k": ("PrecisionAtTopK",),
        "probability_losses": ("Brier", "LogLoss"),
        "quantile": ("Quantile",),
        "r_squared": ("ExplainedVariance", "RSquared"),
        "replications": ("KOfN", "PassAtK"),
        "selection_rate": ("SelectionRate",),
        "top_k": ("TopK",),
    },
)
