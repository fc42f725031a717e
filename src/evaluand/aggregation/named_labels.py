"""Labels that a metric names and no row has: most are misspelt, and the value would be about nothing."""

from collections.abc import Iterable

from evaluand.core.errors import EvaluandWarning, nearest, pluralize
from evaluand.metrics.base.confusion import TRUTH
from evaluand.metrics.base.metric import Labels, Metric
from evaluand.metrics.names import name_in_tables


class AbsentLabel(EvaluandWarning):
    """A metric names a label that no row has."""


def describe_absent_labels(metric: Metric, labels: Labels, scorer: str, where: str | None = None) -> str:
    """A sentence about the labels that a metric names and no row has; empty if rows have them all, or no labels.

    Args:
        metric: as it was declared.
        labels: of all rows, by the columns that the metric reads.
        where: the condition for rows.

    Example:
        >>> from evaluand.metrics.class_rates import Recall
        >>> describe_absent_labels(Recall(label="malignent"), {"truth": ("benign", "malignant")}, "said")
        "recall of 'said': no row has the label 'malignent' (did you mean 'malignant'?)"
    """
    there = {label for column in labels.values() for each in column for label in _members(each)}
    absent = [label for label in metric.named_labels if label not in there]
    if not absent or not there:
        return ""
    others = [label for label in there if isinstance(label, str) and label not in metric.named_labels]
    names = ", ".join(f"{label!r}{nearest(label, others) if isinstance(label, str) else ''}" for label in absent)
    rows = "row has" if TRUTH in labels else f"{' or '.join(labels)} is"
    condition = "" if where is None else f" where {where}"
    what = f"{name_in_tables(metric.signature)} of {scorer!r}{condition}"
    return f"{what}: no {rows} the {pluralize(len(absent), 'label')} {names}"


def _members(label: object) -> Iterable[object]:
    """The labels of a set; a single label alone."""
    return label if isinstance(label, tuple) else (label,)
