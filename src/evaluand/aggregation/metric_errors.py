"""What is wrong with a metric: its code raises an error, or it names labels that no row has.

Errors of a metric's code are distinct from those of reading the scores: only the former cost one value. Most labels
that no row has are misspelt, and the value would be about nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

import pyarrow as pa

from evaluand.core.errors import (
    DataError,
    EvaluandError,
    EvaluandWarning,
    Fault,
    SpecError,
    describe_error,
    nearest,
    pluralize,
)
from evaluand.metrics.base.confusion import TRUTH
from evaluand.metrics.base.metric import Labels, Metric
from evaluand.metrics.names import name_in_tables


class _ReadFailed(Exception):
    """A table of scores could not be read, which is no fault of a metric."""

    def __init__(self, cause: Exception) -> None:
        self.cause = cause


def read_shards(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """The shards of a table, with errors of reading it distinct from those of a metric."""
    try:
        yield from tables
    except EvaluandError:
        raise
    except Exception as error:
        raise _ReadFailed(error) from error


@contextmanager
def naming_scorer(scorer: str, metrics: Sequence[Metric]) -> Iterator[None]:
    """Adds the metrics and the scorer to the message of an error."""
    names = dict.fromkeys(name_in_tables(metric.signature) for metric in metrics)
    what = f"{', '.join(names)} of {scorer!r}"
    try:
        yield
    except DataError as error:
        raise DataError(Fault(f"{what}: {f.where}" if f.where else what, f.message) for f in error.faults) from None
    except SpecError as error:
        raise SpecError(f"{what}: {error}") from None
    except _ReadFailed as error:
        raise error.cause  # noqa: B904 (its own traceback and cause show where reading failed)
    except (EvaluandError, OSError, MemoryError, pa.ArrowException):  # may differ the next time, so must not be sealed
        raise
    except Exception as error:  # the code of a metric, perhaps of a plug-in
        raise DataError(Fault(what, f"its code failed: {describe_error(error)}")) from error


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
