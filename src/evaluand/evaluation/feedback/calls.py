"""The calls of a feedback's implementation, what each returned or raised, and the result that is made of them."""

from __future__ import annotations

import math
import numbers
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any, Final, NamedTuple

from evaluand.core.errors import DataError, Skipped, TaskError, storable_message
from evaluand.core.json_like import escape_surrogates
from evaluand.evaluation.scorer import described


class Calls:
    """The calls of an implementation.

    Attributes:
        records: each call in order, as `{args, ret, meta, error}`.
        values: what the calls that have a value returned, as floats, lists of floats or dictionaries of floats.
        errors: what failed calls raised.
        skipped: what skipped calls raised.
        undefined: the reason of each call that returned no value.
    """

    __slots__ = ("errors", "function", "records", "skipped", "strict", "undefined", "values")

    def __init__(self, function: str, strict: bool) -> None:
        self.function = function
        self.strict = strict
        self.records: list[dict[str, Any]] = []
        self.values: list[Any] = []
        self.errors: list[Exception] = []
        self.skipped: list[Skipped] = []
        self.undefined: list[str] = []

    def add(self, args: dict[str, Any], returned: Any) -> None:
        """Records a call that returned.

        Raises:
            DataError: it returned something that is not a value, with or without metadata.
        """
        meta: dict[str, Any] = {}
        if isinstance(returned, tuple):
            returned, meta = self._split(returned)
        if returned is None and meta:
            ret = None
            self.undefined.append(str(meta.get("reason", "no value")))
        else:
            ret = returned if type(returned) is float else self._to_floats(returned)
            self.values.append(ret)
        self.records.append({"args": args, "ret": ret, "meta": meta, "error": None})

    def add_failed(self, args: dict[str, Any], error: Exception) -> None:
        """Records a call that raised; raises errors that stop the run."""
        if isinstance(error, TaskError) and error.stops:
            raise error
        if isinstance(error, Skipped):
            self.skipped.append(error)
        else:
            self.errors.append(error)
        self.records.append({"args": args, "ret": None, "meta": {}, "error": error_line(error)})

    @property
    def failures(self) -> str:
        """How many calls failed, and why the first did; empty where none did."""
        return self._count("failed", [error_line(error) for error in self.errors])

    @property
    def gaps(self) -> str:
        """How many calls have no value although they did not fail, and why the first has none."""
        skipped = self._count("were skipped", [error_line(error) for error in self.skipped])
        return "; ".join(filter(None, (self._count("have no value", self.undefined), skipped)))

    def _count(self, outcome: str, reasons: Sequence[str]) -> str:
        if not reasons or len(self.records) == 1:
            return reasons[0] if reasons else ""
        return f"{len(reasons)} of {len(self.records)} calls {outcome}: {reasons[0]}"

    def _split(self, returned: tuple[Any, ...]) -> tuple[Any, dict[str, Any]]:
        if len(returned) != 2 or not isinstance(returned[1], Mapping):
            items = ", ".join(described(value) for value in returned)
            raise DataError(f"{self.function} returned ({items}); a tuple must be a value and a dictionary of metadata")
        return returned[0], dict(returned[1])

    def _to_floats(self, returned: Any) -> Any:
        number = to_number(returned)
        if number is not None:
            return number
        if isinstance(returned, Mapping) and returned:
            return {
                escape_surrogates(str(key)): self._to_float(value, f"under {key!r}") for key, value in returned.items()
            }
        if isinstance(returned, list) and returned:
            return [self._to_float(value, f"at place {place}") for place, value in enumerate(returned)]
        what = "an empty list or object" if isinstance(returned, list | Mapping) else described(returned)
        raise DataError(
            f"{self.function} returned {what}; it must return a number, a list of numbers or a dictionary of numbers, "
            "alone or in a tuple with a dictionary of metadata"
        )

    def _to_float(self, value: Any, where: str) -> float:
        number = to_number(value)
        if number is None or (self.strict and not isinstance(value, float)):
            kind = "float" if self.strict else "number"
            raise DataError(f"{self.function} returned {described(value)} {where}; it must be a {kind}")
        return number


_NUMBERS: Final = frozenset((float, int, bool))


def to_number(value: Any) -> float | None:
    """A number of any kind as a float; None for anything else."""
    if type(value) not in _NUMBERS and hasattr(value, "item") and getattr(value, "ndim", None) == 0:  # of NumPy
        value = value.item()
    if not isinstance(value, numbers.Real | Decimal):
        return None
    try:
        return float(value)
    except OverflowError:  # more digits than a float has
        return None


def error_line(error: Exception) -> str:
    """An error in one line, as it is stored."""
    return f"{type(error).__name__}: {storable_message(error)}"


def only_reason(calls: Sequence[Mapping[str, Any]]) -> str | None:
    """The reason in the metadata of the only call; None where there are several calls or no reason."""
    reason = calls[0]["meta"].get("reason") if len(calls) == 1 else None
    return reason if isinstance(reason, str) else None


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
