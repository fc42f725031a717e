"""The result of a feedback: the aggregate of its calls, and the score of it."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from evaluand.core.errors import DataError, described
from evaluand.evaluation.feedback.calls import Calls, error_line, pack_calls, to_number
from evaluand.evaluation.scorer import Score

Aggregator = Callable[[Sequence[Any]], Any]


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


def make_result(calls: Calls, aggregator: Aggregator, *, on_error: str, note: str | None = None) -> Result:
    """The aggregate of calls as a result."""
    first = calls.errors[0] if calls.errors else None
    if len(calls.values) < len(calls.records):
        if first is not None and (on_error == "fail" or not calls.values):
            return Result("failed", None, calls.records, calls.failures, None, first)
        if not calls.values:
            return Result("abstained" if calls.undefined else "skipped", None, calls.records, calls.gaps)
        note = "; ".join(filter(None, (note, calls.failures and f"left out: {calls.failures}", calls.gaps)))
    try:
        return Result("scored", _aggregate(calls.values, aggregator), calls.records, None, note, first)
    except Exception as error:  # an aggregator may be a function of the user, which may raise anything
        return Result("failed", None, calls.records, f"the aggregate failed: {error_line(error)}", note, error)


def to_score(result: Result) -> Score:
    """The score of a result."""
    status, value, calls, reason, note, error = result
    columns = {"calls": pack_calls(calls)} if calls else None
    if status != "scored":
        return Score(status=status, reason=reason, columns=columns, error=error)
    if isinstance(value, dict):
        undefined = [f"{key!r} is {number}" for key, number in value.items() if not math.isfinite(number)]
        if undefined:  # a row has one status, and each of its numbers counts by it
            return Score(status="abstained", reason=", ".join(undefined), columns=columns, error=error)
        return Score(data=value, explanation=note, columns=columns, error=error)
    number = to_number(value)
    if number is None:
        reason = f"the aggregate returned {described(value)}; it must return a number"
        return Score(status="failed", reason=reason, columns=columns)
    if not math.isfinite(number):
        return Score(status="abstained", reason=f"the value is {number}", columns=columns, error=error)
    return Score(number, explanation=note or _only_reason(calls), columns=columns, error=error)


def _aggregate(values: list[Any], aggregator: Aggregator) -> Any:
    if not any(type(value) is dict for value in values):
        return aggregator([mean(value) if type(value) is list else value for value in values])
    keys = values[0].keys() if type(values[0]) is dict else ()
    if not all(type(value) is dict and value.keys() == keys for value in values):
        raise DataError(
            "calls returned different things; each must return a number, or a dictionary with the same keys"
        )
    numbers = {key: to_number(aggregator([value[key] for value in values])) for key in keys}
    if None in numbers.values():
        raise DataError("it must return a number")
    return numbers


def _only_reason(calls: Sequence[Mapping[str, Any]]) -> str | None:
    """The reason in the metadata of the only call; None where there are several calls or no reason."""
    reason = calls[0]["meta"].get("reason") if len(calls) == 1 else None
    return reason if isinstance(reason, str) else None
