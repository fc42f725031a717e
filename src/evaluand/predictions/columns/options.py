"""What to score, by the names of columns."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from evaluand.aggregation.disparity import Kind as DisparityKind
from evaluand.aggregation.fairness import Criterion
from evaluand.aggregation.group_rules import BONFERRONI
from evaluand.core import registry
from evaluand.core.errors import SpecError
from evaluand.data.typed_columns import TYPES
from evaluand.metrics.base.metric import Missing
from evaluand.metrics.names import is_name, resolve_metric

MOST_GROUPS: Final = 50
"""How many groups a grouping may have unless more are asked for."""


@dataclass(frozen=True, kw_only=True)
class ColumnOptions:
    """What to score; see `evaluate`.

    Attributes:
        predictions: the columns of predictions, one for each system; the first of several is the baseline.
        scores: columns of the score of the positive class, one for each system, or `LABEL=COLUMN` for each class.
        confidences: columns of the confidence of each prediction, one for each system.
        metrics: names, dictionaries, functions or metrics; proposed from the kind of target if empty.
        by: columns to group by; a list, or `a,b`, crosses several.
        pos_label: the text of the positive class, which must be one.
        label: the positive class, which may occur in no row.
        columns: further columns that metrics read.
        groups: the most groups of a grouping.
    """

    truth: str
    predictions: Sequence[str] = ()
    scores: Sequence[str] = ()
    confidences: Sequence[str] = ()
    metrics: Sequence[Any] = ()
    by: Sequence[str | Sequence[str]] = ()
    disparities: Sequence[DisparityKind] = ()
    fairness: Sequence[Criterion] = ()
    adjust: str = BONFERRONI
    gates: Sequence[str] = ()
    missing: Missing | None = None
    kind: str | None = None
    pos_label: str | None = None
    label: Any = None
    threshold: float | None = None
    id: str | None = None
    inputs: Sequence[str] = ()
    weight: str | None = None
    cluster: str | None = None
    columns: Sequence[str] = ()
    where: str | None = None
    types: Mapping[str, str] = field(default_factory=dict)
    intervals: bool = True
    groups: int = MOST_GROUPS
    origin: Mapping[str, Any] = field(default_factory=dict)

    def column_types(self) -> Mapping[str, str]:
        """Column → its declared type; that of truth and predictions is text for metrics of text.

        Raises:
            SpecError: there is no such type.
        """
        for column, type in self.types.items():
            if type not in TYPES:
                raise SpecError(f"the type {type!r} of {column!r} is none of {', '.join(TYPES)}")
        if not any(map(_reads_text, self.metrics)):
            return self.types
        names = [self.truth, *self.predictions, *(part for name in self.predictions for part in name.split(","))]
        return {name.strip(): "text" for name in names} | dict(self.types)


def _reads_text(metric: Any) -> bool:
    """Whether a metric, or the one of a name, compares columns as they were written."""
    name = metric.get("kind") if isinstance(metric, Mapping) else metric
    if isinstance(name, str):
        return is_name(name) and bool(registry.find("metrics", resolve_metric(name).kind).reads_text)
    return bool(getattr(metric, "reads_text", False))
