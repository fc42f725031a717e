"""What is asked of `evaluate`: the options that mean the same for arrays and columns, and those of each."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Final, TypedDict

from evaluand.aggregation.disparity import Kind
from evaluand.aggregation.fairness import Criterion
from evaluand.aggregation.group_rules import BONFERRONI
from evaluand.core import registry
from evaluand.core.errors import SpecError
from evaluand.data.typed_columns import TYPES
from evaluand.metrics.base.metric import Metric, Missing
from evaluand.metrics.names import is_name, resolve_metric
from evaluand.store.store import Store

MOST_GROUPS: Final = 50
"""How many groups a grouping may have unless more are asked for."""

MetricLike = str | Mapping[str, Any] | Metric | Callable[..., float]
"""A metric by its name, as a dictionary of `kind` and parameters, as an object, or as a function of columns."""


class Keywords(TypedDict, total=False):
    """The keywords of `evaluate`, for type checkers."""

    metrics: MetricLike | Sequence[MetricLike] | None
    by: Any
    weight: Any
    confidence: Any
    scores: Any
    cluster: Any
    columns: Any
    disparities: Kind | Sequence[Kind]
    fairness: Criterion | Sequence[Criterion]
    adjust: str
    gates: str | Sequence[str]
    missing: Missing | None
    label: str | int | bool | None
    classes: Sequence[str | int | bool] | None
    kind: str | None
    threshold: float | None
    intervals: bool
    groups: int
    data: Any
    truth_file: Any
    id: str | None
    inputs: str | Sequence[str]
    where: str | None
    types: Mapping[str, str]
    store: Store | None
    name: str


@dataclass(frozen=True, kw_only=True)
class SharedOptions:
    """The keywords of `evaluate` that mean the same for arrays and for columns.

    Attributes:
        metrics: proposed from the kind of target if empty.
        groups: the most groups of a grouping.
    """

    metrics: MetricLike | Sequence[MetricLike] | None = None
    disparities: Kind | Sequence[Kind] = ()
    fairness: Criterion | Sequence[Criterion] = ()
    adjust: str = BONFERRONI
    gates: str | Sequence[str] = ()
    missing: Missing | None = None
    kind: str | None = None
    threshold: float | None = None
    intervals: bool = True
    groups: int = MOST_GROUPS
    id: str | None = None
    inputs: str | Sequence[str] = ()
    where: str | None = None
    types: Mapping[str, str] = field(default_factory=dict)

    def shared(self) -> dict[str, Any]:
        """These options by name."""
        return {option.name: getattr(self, option.name) for option in fields(SharedOptions)}


def as_tuple(value: Any) -> tuple[Any, ...]:
    """The items of a list or a tuple; any other value alone, and nothing of None."""
    return () if value is None else tuple(value) if isinstance(value, list | tuple) else (value,)


@dataclass(frozen=True, kw_only=True)
class EvaluateOptions(SharedOptions):
    """The keywords of `evaluate`."""

    by: Any = None
    weight: Any = None
    confidence: Any = None
    scores: Any = None
    cluster: Any = None
    columns: Any = None
    label: str | int | bool | None = None
    classes: Sequence[str | int | bool] | None = None
    data: Any = None
    truth_file: Any = None
    store: Store | None = None
    name: str = "predictions"


@dataclass(frozen=True, kw_only=True)
class ColumnOptions(SharedOptions):
    """What to score, by the names of columns.

    Attributes:
        predictions: the columns of predictions, one for each system; the first of several is the baseline.
        scores: columns of the score of the positive class, one for each system, or `LABEL=COLUMN` for each class.
        confidences: columns of the confidence of each prediction, one for each system.
        by: columns to group by; a list, or `a,b`, crosses several.
        label: the positive class, or its text.
        columns: further columns that metrics read.
    """

    truth: str
    predictions: Sequence[str] = ()
    scores: Sequence[str] = ()
    confidences: Sequence[str] = ()
    by: Sequence[str | Sequence[str]] = ()
    label: Any = None
    weight: str | None = None
    cluster: str | None = None
    columns: Sequence[str] = ()
    origin: Mapping[str, Any] = field(default_factory=dict)

    def column_types(self) -> Mapping[str, str]:
        """Column → its declared type; that of truth and predictions is text for metrics of text.

        Raises:
            SpecError: there is no such type.
        """
        for column, type in self.types.items():
            if type not in TYPES:
                raise SpecError(f"the type {type!r} of {column!r} is none of {', '.join(TYPES)}")
        if not any(map(reads_text, as_tuple(self.metrics))):
            return self.types
        names = [self.truth, *self.predictions, *(part for name in self.predictions for part in name.split(","))]
        return {name.strip(): "text" for name in names} | dict(self.types)


def reads_text(metric: Any) -> bool:
    """Whether a metric, or the one of a name, compares columns as they were written."""
    name = metric.get("kind") if isinstance(metric, Mapping) else metric
    if isinstance(name, str):
        return is_name(name) and bool(registry.find("metrics", resolve_metric(name).kind).reads_text)
    return bool(getattr(metric, "reads_text", False))
