"""Metrics: each summarises the rows of a scorer's table into one value per group.

One module for each kind, or for several kinds that differ by a formula; `base` holds what they share, `stats` the
intervals and disparities, `detection` the matching of boxes. Parameters that a class does not describe are those of its
base class, such as `weighted` and `confidence`. Derive your own metric from `Metric`. The names are loaded on
first use.
"""

from typing import TYPE_CHECKING

from evaluand.core.lazy import lazy_names

if TYPE_CHECKING:
    from evaluand.metrics.accuracy import (
        Accuracy as Accuracy,
        KOfN as KOfN,
        MajorityVote as MajorityVote,
        PassAtK as PassAtK,
        TopK as TopK,
    )
    from evaluand.metrics.adjusted_mutual_information import AdjustedMutualInformation as AdjustedMutualInformation
    from evaluand.metrics.areas import (
        AveragePrecision as AveragePrecision,
        OneVsOneRocAuc as OneVsOneRocAuc,
        RocAuc as RocAuc,
    )
    from evaluand.metrics.base.metric import Metric as Metric, Values as Values
    from evaluand.metrics.box_averages import (
        AverageRecall as AverageRecall,
        MeanAveragePrecision as MeanAveragePrecision,
    )
    from evaluand.metrics.calibration import (
        ClasswiseCalibrationError as ClasswiseCalibrationError,
        DebiasedCalibrationError as DebiasedCalibrationError,
        ExpectedCalibrationError as ExpectedCalibrationError,
    )
    from evaluand.metrics.class_rates import (
        FalseNegativeRate as FalseNegativeRate,
        FalsePositiveRate as FalsePositiveRate,
        FBeta as FBeta,
        Jaccard as Jaccard,
        Precision as Precision,
        Recall as Recall,
        SelectionRate as SelectionRate,
        Specificity as Specificity,
    )
    from evaluand.metrics.column_statistics import Count as Count, Mean as Mean, Quantile as Quantile
    from evaluand.metrics.confusion_matrix import (
        BalancedAccuracy as BalancedAccuracy,
        CohenKappa as CohenKappa,
        ConfusionMatrix as ConfusionMatrix,
        HammingLoss as HammingLoss,
        MatthewsCorrelation as MatthewsCorrelation,
        WeightedKappa as WeightedKappa,
    )
    from evaluand.metrics.correlations import (
        ExplainedVariance as ExplainedVariance,
        Kendall as Kendall,
        Pearson as Pearson,
        RSquared as RSquared,
        Spearman as Spearman,
    )
    from evaluand.metrics.covers import (
        OmegaIndex as OmegaIndex,
        OverlappingMutualInformation as OverlappingMutualInformation,
    )
    from evaluand.metrics.detection.precision import (
        average_precision as average_precision,
        average_precision_by_label as average_precision_by_label,
    )
    from evaluand.metrics.deviances import (
        D2AbsoluteError as D2AbsoluteError,
        D2Pinball as D2Pinball,
        D2Tweedie as D2Tweedie,
        MeanGammaDeviance as MeanGammaDeviance,
        MeanPoissonDeviance as MeanPoissonDeviance,
        MeanTweedieDeviance as MeanTweedieDeviance,
        PinballLoss as PinballLoss,
    )
    from evaluand.metrics.errors import (
        MaxError as MaxError,
        MeanAbsoluteError as MeanAbsoluteError,
        MeanAbsolutePercentageError as MeanAbsolutePercentageError,
        MeanSquaredError as MeanSquaredError,
        MeanSquaredLogError as MeanSquaredLogError,
        MedianAbsoluteError as MedianAbsoluteError,
        RootMeanSquaredError as RootMeanSquaredError,
    )
    from evaluand.metrics.forecasts import (
        Crps as Crps,
        MeanAbsoluteScaledError as MeanAbsoluteScaledError,
        MeanQuantileLoss as MeanQuantileLoss,
        SymmetricMeanAbsolutePercentageError as SymmetricMeanAbsolutePercentageError,
        WeightedAbsolutePercentageError as WeightedAbsolutePercentageError,
        seasonal_naive_scale as seasonal_naive_scale,
    )
    from evaluand.metrics.function import FunctionMetric as FunctionMetric
    from evaluand.metrics.names import make_metric as make_metric
    from evaluand.metrics.partitions import (
        AdjustedRand as AdjustedRand,
        Completeness as Completeness,
        Homogeneity as Homogeneity,
        NormalizedMutualInformation as NormalizedMutualInformation,
        VMeasure as VMeasure,
    )
    from evaluand.metrics.prediction_powered import PredictionPoweredMean as PredictionPoweredMean
    from evaluand.metrics.probabilities import Brier as Brier, LogLoss as LogLoss
    from evaluand.metrics.rankings import (
        CoverageError as CoverageError,
        HitsAtK as HitsAtK,
        LabelRankingAveragePrecision as LabelRankingAveragePrecision,
        LabelRankingLoss as LabelRankingLoss,
        MapAtK as MapAtK,
        MeanReciprocalRank as MeanReciprocalRank,
        Ndcg as Ndcg,
        PrecisionAtK as PrecisionAtK,
        PrecisionAtTopK as PrecisionAtTopK,
        RecallAtK as RecallAtK,
    )
    from evaluand.metrics.segment_averages import (
        MeanIou as MeanIou,
        PanopticQuality as PanopticQuality,
        RecognitionQuality as RecognitionQuality,
        SegmentationQuality as SegmentationQuality,
    )
    from evaluand.metrics.text_errors import CharacterErrorRate as CharacterErrorRate, WordErrorRate as WordErrorRate

__getattr__, __dir__ = lazy_names(__name__, explain="evaluand.metrics.names:usage")
