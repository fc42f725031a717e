"""Short names of objectives, as used in score and solution files: `acc`, `eod+race`, `minmaxd+f1+race`."""

from typing import Final

from evaluand.metrics.stats.disparity import Kind

UTILITIES: Final = {
    "fpr": "false_positive_rate",
    "tpr": "recall",
    "tnr": "specificity",
    "fnr": "false_negative_rate",
    "roc_auc": "roc_auc",
    "prec": "precision",
    "rec": "recall",
    "avg_prec": "average_precision",
    "f1": "f_beta",
    "acc": "accuracy",
    "bal_acc": "balanced_accuracy",
}
"""Utility → kind of metric."""

FAIRNESS: Final[dict[str, tuple[str, Kind]]] = {
    "dpd": ("demographic_parity", "difference"),
    "dpr": ("demographic_parity", "ratio"),
    "eod": ("equalized_odds", "difference"),
    "eor": ("equalized_odds", "ratio"),
}
"""Fairness, followed by + and an attribute → metric or criterion, and disparity."""

WITHIN: Final[dict[str, Kind]] = {"minmaxd": "difference", "minmaxr": "ratio"}
"""Disparity of a utility, followed by + and the utility, and by + and an attribute."""


def full_name(short: str) -> str | None:
    """The objective of a short name; None if it is not a short name.

    Example:
        >>> full_name("acc"), full_name("eod+sex"), full_name("minmaxr+f1+sex")
        ('accuracy', 'equalized_odds difference by sex', 'f_beta ratio by sex')
    """
    parts = parts_of(f"{short}+ATTRIBUTE" if short in FAIRNESS else short)
    if parts is None:
        return None
    metric, kind, by = parts
    return f"{metric} {kind} by {by[0]}" if kind else metric


def parts_of(short: str) -> tuple[str, Kind | None, tuple[str, ...]] | None:
    """Metric, disparity and attribute of a short name; None if it is not a short name."""
    head, *rest = short.split("+")
    if head in UTILITIES and not rest:
        return UTILITIES[head], None, ()
    if head in FAIRNESS and len(rest) == 1:
        return *FAIRNESS[head], (rest[0],)
    if head in WITHIN and len(rest) == 2 and rest[0] in UTILITIES:
        return UTILITIES[rest[0]], WITHIN[head], (rest[1],)
    return None
