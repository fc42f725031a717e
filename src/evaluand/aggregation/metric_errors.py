"""Errors of a metric's code, distinct from those of reading the scores: only the former cost one value."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

import pyarrow as pa

from evaluand.core.errors import DataError, EvaluandError, Fault, SpecError, describe_error
from evaluand.metrics.base.metric import Metric
from evaluand.metrics.names import name_in_tables


class MetricFailed(DataError):
    """The code of a metric raised an error; it costs this metric's values only."""


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
        raise MetricFailed(Fault(what, f"its code failed: {describe_error(error)}")) from error
