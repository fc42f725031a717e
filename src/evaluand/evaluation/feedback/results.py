"""What a feedback says of one source, and its default aggregate."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from evaluand.core.errors import DataError


class Missing(DataError):
    """A selector finds nothing in a source."""


class Result(NamedTuple):
    """The result of a feedback for one source.

    Attributes:
        status: `scored`, `abstained`, `skipped` or `failed`.
        value: the aggregate of all calls: a number, which may be undefined (NaN), or a number for each key where the
            implementation returns several; None where there is none.
        calls: each call of the implementation in order: `args`, `ret`, `meta` and, where it failed, `error`.
        reason: why there is no value.
        note: a remark on the value: calls left out, values not combined.
        error: the exception of a call or of the aggregate.
    """

    status: str
    value: Any = None
    calls: Sequence[Mapping[str, Any]] = ()
    reason: str | None = None
    note: str | None = None
    error: Exception | None = None


def mean(values: Sequence[Any]) -> float:
    """The mean of the calls' results.

    Example:
        >>> mean([1.0, 0.5])
        0.75
    """
    return math.fsum(values) / len(values)


mean.__module__ = "evaluand.evaluation.feedback"  # stored definitions name it so
