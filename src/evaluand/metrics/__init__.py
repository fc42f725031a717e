"""Metrics: each summarises the rows of a scorer's table into one value per group.

One module for each kind; `base` holds what they share, `stats` the intervals and disparities, `detection` the matching
of boxes. A metric of your own derives from `Metric`. The names are loaded on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from evaluand.core.lazy import lazy_names

if TYPE_CHECKING:
    from evaluand.metrics.accuracy import Accuracy as Accuracy
    from evaluand.metrics.adjusted_rand import AdjustedRand as AdjustedRand
    from evaluand.metrics.at_k import (
        HitsAtK as HitsAtK,
        MapAtK as MapAtK,
        Ndcg as Ndcg,
        PrecisionAtK as PrecisionAtK,
        RecallAtK as RecallAtK,
    )
    from evaluand.metrics.average_precision import AveragePrecision as AveragePrecision
    from evaluand.metrics.average_recall import AverageRecall as AverageRecall
    from evaluand.metrics.balanced_accuracy import BalancedAccuracy as BalancedAccuracy
    from evaluand.metrics.base.metric import Metric as Metric, Values as Values
    from evaluand.metrics.brier import Brier as Brier
    from evaluand.metrics.cohen_kappa import CohenKappa as CohenKappa
    from evaluand.metrics.completeness import Completeness as Completeness
    from evaluand.metrics.confusion_matrix import ConfusionMatrix as ConfusionMatrix
    from evaluand.metrics.count import Count as Count
    from evaluand.metrics.expected_calibration_error import ExpectedCalibrationError as ExpectedCalibrationError
    from evaluand.metrics.f_beta import FBeta as FBeta
    from evaluand.metrics.false_negative_rate import FalseNegativeRate as FalseNegativeRate
    from evaluand.metrics.false_positive_rate import FalsePositiveRate as FalsePositiveRate
    from evaluand.metrics.hamming_loss import HammingLoss as HammingLoss
    from evaluand.metrics.homogeneity import Homogeneity as Homogeneity
    from evaluand.metrics.jaccard import Jaccard as Jaccard
    from evaluand.metrics.k_of_n import KOfN as KOfN
    from evaluand.metrics.kendall import Kendall as Kendall
    from evaluand.metrics.log_loss import LogLoss as LogLoss
    from evaluand.metrics.matthews_correlation import MatthewsCorrelation as MatthewsCorrelation
    from evaluand.metrics.max_error import MaxError as MaxError
    from evaluand.metrics.mean import Mean as Mean
    from evaluand.metrics.mean_absolute_error import (
        MeanAbsoluteError as MeanAbsoluteError,
        MeanAbsolutePercentageError as MeanAbsolutePercentageError,
    )
    from evaluand.metrics.mean_average_precision import MeanAveragePrecision as MeanAveragePrecision
    from evaluand.metrics.mean_reciprocal_rank import MeanReciprocalRank as MeanReciprocalRank
    from evaluand.metrics.mean_squared_error import (
        MeanSquaredError as MeanSquaredError,
        RootMeanSquaredError as RootMeanSquaredError,
    )
    from evaluand.metrics.mean_squared_log_error import MeanSquaredLogError as MeanSquaredLogError
    from evaluand.metrics.median_absolute_error import MedianAbsoluteError as MedianAbsoluteError
    from evaluand.metrics.normalized_mutual_information import (
        NormalizedMutualInformation as NormalizedMutualInformation,
    )
    from evaluand.metrics.pass_at_k import PassAtK as PassAtK
    from evaluand.metrics.pearson import Pearson as Pearson, Spearman as Spearman
    from evaluand.metrics.precision import Precision as Precision
    from evaluand.metrics.precision_at_top_k import PrecisionAtTopK as PrecisionAtTopK
    from evaluand.metrics.quantile import Quantile as Quantile
    from evaluand.metrics.r_squared import ExplainedVariance as ExplainedVariance, RSquared as RSquared
    from evaluand.metrics.recall import Recall as Recall
    from evaluand.metrics.roc_auc import RocAuc as RocAuc
    from evaluand.metrics.selection_rate import SelectionRate as SelectionRate
    from evaluand.metrics.specificity import Specificity as Specificity
    from evaluand.metrics.top_k import TopK as TopK
    from evaluand.metrics.v_measure import VMeasure as VMeasure

__getattr__, __dir__ = lazy_names(__name__)
