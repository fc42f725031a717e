"""The table of the names of metrics: everyday names, those of scikit-learn and those of D3M; see `names`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final, NamedTuple

FUNCTION: Final = "function"
"""The kind of metrics that are functions of the user, which name them."""

_COCO: Final = "0.50:0.95"
BINARY: Final = "binary"
"""The value of `average` that stands for one class, which the truths must imply."""


@dataclass(frozen=True)
class MetricName:
    """A metric with a name.

    Attributes:
        name: the name under which it is printed.
        kind: the registered kind.
        about: what it is, in a few words, which suggestions search too.
        parameters: of the kind, by which this metric differs from the kind's defaults.
        aliases: further names: everyday ones, those of scikit-learn and those of D3M.
    """

    name: str
    kind: str
    about: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    aliases: tuple[str, ...] = ()


AVERAGES: Final = {"micro": "micro", "macro": "macro", "weighted": "weighted", "samples": "example"}
"""The end of a name → the value of the parameter `average`."""

_ZERO: Final = {"zero_division": 0.0}


class OneClass(NamedTuple):
    """A metric of one class, whose name with an ending is an average over classes or rows.

    `zero` lists the endings under which scikit-learn counts an undefined ratio of a class or row as 0.
    """

    name: str
    kind: str
    about: str
    aliases: tuple[str, ...]
    zero: tuple[str, ...]
    parameters: Mapping[str, Any] = {}


AVERAGED: Final = (
    OneClass(
        "f1",
        "f_beta",
        "harmonic mean of precision and recall",
        ("f1_score", "fscore", "f_score", "f_measure", "f1_measure", "dice"),
        ("samples",),
        {"beta": 1.0},
    ),
    OneClass(
        "precision",
        "precision",
        "share of what was predicted that is right",
        ("precision_score", "prec", "ppv", "positive_predictive_value"),
        ("macro", "weighted", "samples"),
    ),
    OneClass(
        "recall",
        "recall",
        "share of what was expected that was found; hit rate of a class",
        ("recall_score", "rec", "tpr", "true_positive_rate", "sensitivity"),
        ("macro", "weighted", "samples"),
    ),
    OneClass(
        "jaccard",
        "jaccard",
        "intersection over union of labels",
        ("jaccard_score", "jaccard_similarity", "jaccard_similarity_score", "jaccard_index"),
        ("samples",),
    ),
    OneClass(
        "specificity",
        "specificity",
        "share of negatives that are right",
        ("tnr", "true_negative_rate", "selectivity"),
        (),
    ),
    OneClass(
        "false_positive_rate",
        "false_positive_rate",
        "share of negatives that are wrong: false alarms, fall-out",
        ("fpr", "fall_out", "false_alarm_rate"),
        (),
    ),
    OneClass(
        "false_negative_rate",
        "false_negative_rate",
        "share of positives that are missed: miss rate",
        ("fnr", "miss_rate"),
        (),
    ),
)

_OTHERS: Final = (
    MetricName(
        "f_beta", "f_beta", "F with β: how much more recall counts than precision", {}, ("fbeta", "fbeta_score")
    ),
    MetricName(
        "accuracy", "accuracy", "share of rows that are right", {}, ("acc", "accuracy_score", "exact_match", "em")
    ),
    MetricName(
        "prediction_powered_mean",
        "prediction_powered_mean",
        "mean of what people would say, from a judge and a few labels",
        {},
        ("ppi", "ppi_mean", "ppi++"),
    ),
    MetricName(
        "balanced_accuracy",
        "balanced_accuracy",
        "mean recall of the classes",
        {},
        ("bal_acc", "balanced_accuracy_score"),
    ),
    MetricName(
        "roc_auc",
        "roc_auc",
        "area under the ROC curve",
        {},
        (
            "auc",
            "auroc",
            "roc_auc_score",
            "auc_roc",
            "roc_auc_ovr",
            "roc_auc_macro",
            "roc_auc_ovr_macro",
        ),
    ),
    MetricName("roc_auc_micro", "roc_auc", "ROC AUC over all pairs of row and class", {"average": "micro"}),
    MetricName(
        "roc_auc_weighted",
        "roc_auc",
        "ROC AUC, weighted mean over classes",
        {"average": "weighted"},
        ("roc_auc_ovr_weighted",),
    ),
    MetricName(
        "average_precision",
        "average_precision",
        "area under the precision-recall curve",
        {"average": BINARY},
        ("ap", "avg_prec", "pr_auc", "auc_pr", "auprc", "average_precision_score"),
    ),
    MetricName(
        "average_precision_macro",
        "average_precision",
        "area under the precision-recall curve, mean over classes",
        {"average": "macro"},
        ("ap_macro",),
    ),
    MetricName(
        "average_precision_weighted",
        "average_precision",
        "area under the precision-recall curve, weighted mean over classes",
        {"average": "weighted"},
        ("ap_weighted",),
    ),
    MetricName(
        "average_precision_micro",
        "average_precision",
        "area under the precision-recall curve of all pairs of row and class",
        {"average": "micro"},
        ("ap_micro",),
    ),
    MetricName(
        "average_precision_samples",
        "average_precision",
        "area under the precision-recall curve, mean over rows",
        {"average": "samples"},
        ("ap_samples",),
    ),
    MetricName("roc_auc_samples", "roc_auc", "ROC AUC, mean over rows", {"average": "samples"}),
    MetricName(
        "roc_auc_one_vs_one",
        "roc_auc_one_vs_one",
        "area under the ROC curve, mean over pairs of classes",
        {},
        ("roc_auc_ovo", "auc_ovo", "roc_auc_ovo_macro"),
    ),
    MetricName(
        "roc_auc_one_vs_one_weighted",
        "roc_auc_one_vs_one",
        "area under the ROC curve, weighted mean over pairs of classes",
        {"average": "weighted"},
        ("roc_auc_ovo_weighted",),
    ),
    MetricName(
        "log_loss",
        "log_loss",
        "cross-entropy of probabilities",
        {},
        ("logloss", "cross_entropy", "cross_entropy_loss", "nll", "negative_log_likelihood"),
    ),
    MetricName("brier", "brier", "squared error of probabilities, summed over classes"),
    MetricName(
        "expected_calibration_error",
        "expected_calibration_error",
        "distance of confidence from accuracy",
        {},
        ("ece", "calibration_error", "calibration"),
    ),
    MetricName(
        "debiased_calibration_error",
        "debiased_calibration_error",
        "distance of confidence from accuracy, without the bias of few rows",
        {},
        ("rms_calibration_error", "top_label_calibration_error"),
    ),
    MetricName(
        "classwise_calibration_error",
        "classwise_calibration_error",
        "distance of probabilities from what happened, over all classes, without the bias of few rows",
        {},
        ("marginal_calibration_error",),
    ),
    MetricName(
        "matthews_correlation",
        "matthews_correlation",
        "Matthews' correlation of labels",
        {},
        ("mcc", "matthews_corrcoef", "phi"),
    ),
    MetricName(
        "cohen_kappa",
        "cohen_kappa",
        "Cohen's kappa: agreement beyond chance",
        {},
        ("kappa", "cohens_kappa", "cohen_kappa_score"),
    ),
    MetricName(
        "quadratic_kappa",
        "weighted_kappa",
        "Cohen's kappa of ordered labels, by squared distance",
        {"weights": "quadratic"},
        ("weighted_kappa", "quadratic_weighted_kappa", "qwk", "kappa_quadratic"),
    ),
    MetricName(
        "linear_kappa",
        "weighted_kappa",
        "Cohen's kappa of ordered labels, by distance",
        {"weights": "linear"},
        ("linear_weighted_kappa", "lwk", "kappa_linear"),
    ),
    MetricName("hamming_loss", "hamming_loss", "share of labels that are wrong", {}, ("hamming",)),
    MetricName(
        "confusion_matrix", "confusion_matrix", "counts of each pair of truth and prediction", {}, ("confusion",)
    ),
    MetricName("selection_rate", "selection_rate", "share of rows predicted as a class", {}, ("positive_rate",)),
    MetricName("mean_absolute_error", "mean_absolute_error", "mean distance of numbers", {}, ("mae",)),
    MetricName("mean_squared_error", "mean_squared_error", "mean squared distance of numbers", {}, ("mse",)),
    MetricName(
        "root_mean_squared_error",
        "root_mean_squared_error",
        "root of the mean squared error",
        {},
        ("rmse", "rms_error", "rmsd"),
    ),
    MetricName("median_absolute_error", "median_absolute_error", "median distance of numbers", {}, ("medae",)),
    MetricName("max_error", "max_error", "largest distance of numbers", {}, ("maximum_error",)),
    MetricName(
        "mean_absolute_percentage_error",
        "mean_absolute_percentage_error",
        "mean distance relative to the truth, as a fraction",
        {},
        ("mape",),
    ),
    MetricName("mean_squared_log_error", "mean_squared_log_error", "mean squared error of logarithms", {}, ("msle",)),
    MetricName(
        "r_squared",
        "r_squared",
        "coefficient of determination: share of variance explained",
        {},
        ("r2", "r2_score", "rsquared", "coefficient_of_determination"),
    ),
    MetricName(
        "explained_variance",
        "explained_variance",
        "share of variance explained, without regard to a constant shift",
        {},
        ("explained_variance_score", "evs"),
    ),
    MetricName(
        "pearson",
        "pearson",
        "linear correlation of numbers",
        {},
        ("pearsonr", "correlation", "pcc", "pearson_correlation"),
    ),
    MetricName(
        "spearman", "spearman", "correlation of ranks", {}, ("spearmanr", "rank_correlation", "spearman_correlation")
    ),
    MetricName(
        "kendall", "kendall", "share of pairs in the same order, tau-b", {}, ("kendalltau", "kendall_tau", "tau")
    ),
    MetricName(
        "adjusted_rand",
        "adjusted_rand",
        "agreement of clusterings",
        {},
        ("ari", "adjusted_rand_score", "adjusted_rand_index"),
    ),
    MetricName(
        "normalized_mutual_information",
        "normalized_mutual_information",
        "shared information of clusterings",
        {},
        ("nmi", "normalized_mutual_info_score", "normalized_mutual_info"),
    ),
    MetricName("homogeneity", "homogeneity", "clusters hold one class", {}, ("homogeneity_score",)),
    MetricName("completeness", "completeness", "classes are in one cluster", {}, ("completeness_score",)),
    MetricName("v_measure", "v_measure", "mean of homogeneity and completeness", {}, ("v_measure_score", "vmeasure")),
    MetricName(
        "adjusted_mutual_information",
        "adjusted_mutual_information",
        "shared information of clusterings beyond chance",
        {},
        ("ami", "adjusted_mutual_info_score", "adjusted_mutual_info"),
    ),
    MetricName(
        "overlapping_mutual_information",
        "overlapping_mutual_information",
        "shared information of overlapping communities",
        {},
        ("onmi", "overlapping_nmi", "nmi_max", "overlapping_normalized_mutual_information"),
    ),
    MetricName("omega_index", "omega_index", "agreement of overlapping communities", {}, ("omega",)),
    MetricName(
        "pinball_loss",
        "pinball_loss",
        "loss of a predicted quantile",
        {},
        ("pinball", "quantile_loss", "mean_pinball_loss"),
    ),
    MetricName("mean_poisson_deviance", "mean_poisson_deviance", "deviance of counts", {}, ("poisson_deviance",)),
    MetricName("mean_gamma_deviance", "mean_gamma_deviance", "deviance of positive amounts", {}, ("gamma_deviance",)),
    MetricName(
        "mean_tweedie_deviance", "mean_tweedie_deviance", "deviance of the Tweedie family", {}, ("tweedie_deviance",)
    ),
    MetricName(
        "d2_absolute_error",
        "d2_absolute_error",
        "share of the absolute error explained",
        {},
        ("d2_absolute_error_score", "d2"),
    ),
    MetricName("d2_pinball", "d2_pinball", "share of the pinball loss explained", {}, ("d2_pinball_score",)),
    MetricName("d2_tweedie", "d2_tweedie", "share of the deviance explained", {}, ("d2_tweedie_score",)),
    MetricName(
        "symmetric_mean_absolute_percentage_error",
        "symmetric_mean_absolute_percentage_error",
        "forecast error relative to truth and forecast",
        {},
        ("smape", "symmetric_mape"),
    ),
    MetricName(
        "weighted_absolute_percentage_error",
        "weighted_absolute_percentage_error",
        "sum of forecast errors relative to the sum of truths",
        {},
        ("wape", "nd", "normalized_deviation", "mad_mean_ratio"),
    ),
    MetricName(
        "mean_absolute_scaled_error",
        "mean_absolute_scaled_error",
        "forecast error relative to the naive forecast",
        {},
        ("mase", "scaled_error"),
    ),
    MetricName(
        "mean_quantile_loss",
        "mean_quantile_loss",
        "loss of several predicted quantiles of a forecast",
        {},
        ("quantile_losses", "multi_quantile_loss"),
    ),
    MetricName(
        "crps",
        "crps",
        "error of samples or quantiles of a forecast",
        {},
        ("continuous_ranked_probability_score",),
    ),
    MetricName(
        "word_error_rate",
        "word_error_rate",
        "wrong words of a transcript, of those expected",
        {},
        ("wer", "word_error"),
    ),
    MetricName(
        "character_error_rate",
        "character_error_rate",
        "wrong characters of a transcript, of those expected",
        {},
        ("cer", "char_error_rate", "character_error"),
    ),
    MetricName(
        "label_ranking_average_precision",
        "label_ranking_average_precision",
        "how high the true labels of a row are ranked",
        {},
        ("lrap",),
    ),
    MetricName(
        "label_ranking_average_precision_score",
        "label_ranking_average_precision",
        "the same as in scikit-learn: 1 for a row without true labels",
        {"empty": 1.0},
    ),
    MetricName("label_ranking_loss", "label_ranking_loss", "pairs of labels in the wrong order", {}, ("ranking_loss",)),
    MetricName("coverage_error", "coverage_error", "how many labels contain all that are true"),
    MetricName("mean", "mean", "mean of a number of each row", {}, ("average", "avg", "mean_score")),
    MetricName("quantile", "quantile", "value below which a share q of the rows lies"),
    MetricName("median", "quantile", "median of a number of each row", {"q": 0.5}),
    MetricName("count", "count", "number of rows", {}, ("n_rows", "rows")),
    MetricName(
        "mean_reciprocal_rank",
        "mean_reciprocal_rank",
        "one over the rank of the first right answer",
        {},
        ("mrr", "reciprocal_rank"),
    ),
    MetricName("hits_at_k", "hits_at_k", "hit rate: rankings with a relevant answer among the first k"),
    MetricName("recall_at_k", "recall_at_k", "share of relevant items among the first k"),
    MetricName("precision_at_k", "precision_at_k", "share of the first k that is relevant"),
    MetricName("map_at_k", "map_at_k", "average precision of a ranking's first k"),
    MetricName("precision_at_top_k", "precision_at_top_k", "overlap of the first rows of truth and prediction"),
    MetricName("pass_at_k", "pass_at_k", "chance that one of k replications is right"),
    MetricName("k_of_n", "k_of_n", "examples with at least k right replications"),
    MetricName(
        "majority_vote",
        "majority_vote",
        "examples whose most frequent answer is right",
        {},
        ("self_consistency",),
    ),
    MetricName("top_k", "top_k", "one of the first k answers is right", {}, ("top_k_accuracy", "top_k_accuracy_score")),
    MetricName("ndcg", "ndcg", "discounted cumulative gain of a ranking", {}, ("ndcg_score",)),
    MetricName(
        "mean_average_precision",
        "mean_average_precision",
        "average precision of boxes: object detection",
        {},
        ("map", "object_detection_ap", "object_detection_average_precision"),
    ),
    MetricName(
        "average_recall", "average_recall", "recall of boxes: object detection", {}, ("mar", "mean_average_recall")
    ),
    *(
        MetricName(f"coco_{name}", kind, f"COCO's {name}: {about}", {"definition": "coco", "iou": iou} | parameters)
        for name, kind, iou, about, parameters in (
            ("ap", "mean_average_precision", _COCO, "average precision over ten overlaps", {}),
            ("ap50", "mean_average_precision", 0.5, "average precision from an overlap of .5", {}),
            ("ap75", "mean_average_precision", 0.75, "average precision from an overlap of .75", {}),
            ("ap_small", "mean_average_precision", _COCO, "average precision of small objects", {"area": "small"}),
            ("ap_medium", "mean_average_precision", _COCO, "average precision of medium objects", {"area": "medium"}),
            ("ap_large", "mean_average_precision", _COCO, "average precision of large objects", {"area": "large"}),
            ("ar_1", "average_recall", _COCO, "recall of one detection by image and class", {"max_detections": 1}),
            ("ar_10", "average_recall", _COCO, "recall of ten detections by image and class", {"max_detections": 10}),
            ("ar_100", "average_recall", _COCO, "recall of a hundred detections by image and class", {}),
            ("ar_small", "average_recall", _COCO, "recall of small objects", {"area": "small"}),
            ("ar_medium", "average_recall", _COCO, "recall of medium objects", {"area": "medium"}),
            ("ar_large", "average_recall", _COCO, "recall of large objects", {"area": "large"}),
        )
    ),
    *(
        MetricName(
            f"{kind}{suffix}",
            kind,
            f"{about}{of}: panoptic segmentation",
            parameters,
            (f"{short}{end}", f"{short}_{end}") if end else (short,),
        )
        for kind, short, about in (
            ("panoptic_quality", "pq", "overlap of matched segments over all segments"),
            ("segmentation_quality", "sq", "mean overlap of matched segments"),
            ("recognition_quality", "rq", "F1 of matched segments"),
        )
        for suffix, end, of, parameters in (
            ("", "", "", {}),
            ("_things", "th", " of things", {"part": "things"}),
            ("_stuff", "st", " of stuff", {"part": "stuff"}),
        )
    ),
    MetricName(
        "mean_iou",
        "mean_iou",
        "intersection over union of pixels, mean over classes: semantic segmentation",
        {},
        ("miou", "mean_intersection_over_union", "semantic_iou"),
    ),
)


def averaged_parameters(base: OneClass, suffix: str) -> dict[str, Any]:
    zero = _ZERO if suffix in base.zero else {}
    return {**base.parameters, "average": AVERAGES[suffix], **zero}


def _averaged_names(base: OneClass) -> Iterator[MetricName]:
    binary = {**base.parameters, "average": BINARY}
    yield MetricName(base.name, base.kind, base.about, binary, (*base.aliases, f"{base.name}_binary"))
    for suffix in AVERAGES:
        aliases = tuple(f"{alias}_{suffix}" for alias in base.aliases)
        words = "mean over rows" if suffix == "samples" else f"{suffix} average over classes"
        yield MetricName(
            f"{base.name}_{suffix}", base.kind, f"{base.about}, {words}", averaged_parameters(base, suffix), aliases
        )


@cache
def table() -> tuple[MetricName, ...]:
    return (*(name for base in AVERAGED for name in _averaged_names(base)), *_OTHERS)
