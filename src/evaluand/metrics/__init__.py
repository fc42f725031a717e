"""Metrics: each summarises the rows of a scorer's table into one value per group.

One module for each kind, or for several kinds that differ by a formula; `base` holds what they share, `stats` the
intervals and disparities, `detection` the matching of boxes. Parameters that a class does not describe are those of its
base class, such as `weighted` and `confidence`. A metric of your own derives from `Metric`. The names are loaded on
first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from evaluand.core.lazy import lazy_names

if TYPE_CHECKING:
    from evaluand.metrics.absolute_errors import (
        MaxError as MaxError,
        MeanAbsoluteError as MeanAbsoluteError,
        MeanAbsolutePercentageError as MeanAbsolutePercentageError,
        MedianAbsoluteError as MedianAbsoluteError,
    )
    from evaluand.metrics.accuracy import Accuracy as Accuracy, TopK as TopK
    from evaluand.metrics.areas import AveragePrecision as AveragePrecision, RocAuc as RocAuc
    from evaluand.metrics.balanced_accuracy import BalancedAccuracy as BalancedAccuracy
    from evaluand.metrics.base.metric import Metric as Metric, Values as Values
    from evaluand.metrics.box_averages import (
        AverageRecall as AverageRecall,
        MeanAveragePrecision as MeanAveragePrecision,
    )
    from evaluand.metrics.chance_corrected import CohenKappa as CohenKappa, MatthewsCorrelation as MatthewsCorrelation
    from evaluand.metrics.class_rates import (
        FalseNegativeRate as FalseNegativeRate,
        FalsePositiveRate as FalsePositiveRate,
        FBeta as FBeta,
        Jaccard as Jaccard,
        Precision as Precision,
        Recall as Recall,
        Specificity as Specificity,
    )
    from evaluand.metrics.confusion_matrix import ConfusionMatrix as ConfusionMatrix
    from evaluand.metrics.correlations import Kendall as Kendall, Pearson as Pearson, Spearman as Spearman
    from evaluand.metrics.count import Count as Count
    from evaluand.metrics.expected_calibration_error import ExpectedCalibrationError as ExpectedCalibrationError
    from evaluand.metrics.hamming_loss import HammingLoss as HammingLoss
    from evaluand.metrics.mean import Mean as Mean
    from evaluand.metrics.mean_squared_error import (
        MeanSquaredError as MeanSquaredError,
        MeanSquaredLogError as MeanSquaredLogError,
        RootMeanSquaredError as RootMeanSquaredError,
    )
    from evaluand.metrics.partitions import (
        AdjustedRand as AdjustedRand,
        Completeness as Completeness,
        Homogeneity as Homogeneity,
        NormalizedMutualInformation as NormalizedMutualInformation,
        VMeasure as VMeasure,
    )
    from evaluand.metrics.precision_at_top_k import PrecisionAtTopK as PrecisionAtTopK
    from evaluand.metrics.probability_losses import Brier as Brier, LogLoss as LogLoss
    from evaluand.metrics.quantile import Quantile as Quantile
    from evaluand.metrics.r_squared import ExplainedVariance as ExplainedVariance, RSquared as RSquared
    from evaluand.metrics.rankings import (
        HitsAtK as HitsAtK,
        MapAtK as MapAtK,
        MeanReciprocalRank as MeanReciprocalRank,
        Ndcg as Ndcg,
        PrecisionAtK as PrecisionAtK,
        RecallAtK as RecallAtK,
    )
    from evaluand.metrics.replications import KOfN as KOfN, PassAtK as PassAtK
    from evaluand.metrics.selection_rate import SelectionRate as SelectionRate

__getattr__, __dir__ = lazy_names(__name__)
