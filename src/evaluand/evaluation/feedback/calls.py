"""The calls of a feedback's implementation: what each returned or raised, and how that is told."""

from __future__ import annotations

import numbers
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any, Final

from evaluand.core.errors import DataError, Skipped, TaskError, storable_message
from evaluand.core.json_like import escape_surrogates
from evaluand.evaluation.scorer import described


class Calls:
    """The calls of an implementation: each as it is told, and apart from that what they said, or raised."""

    __slots__ = ("called", "errors", "said", "skipped", "strict", "told", "undefined")

    def __init__(self, called: str, strict: bool) -> None:
        self.called = called
        self.strict = strict
        self.told: list[dict[str, Any]] = []
        self.said: list[Any] = []
        self.errors: list[Exception] = []
        self.skipped: list[Skipped] = []
        self.undefined: list[str] = []

    def add(self, args: dict[str, Any], said: Any) -> None:
        """A call that returned.

        Raises:
            DataError: it returned what no call should.
        """
        meta: dict[str, Any] = {}
        if isinstance(said, tuple):
            said, meta = self._parts(said)
        if said is None and meta:
            ret = None
            self.undefined.append(str(meta.get("reason", "no value")))
        else:
            ret = said if type(said) is float else self._ret(said)
            self.said.append(ret)
        self.told.append({"args": args, "ret": ret, "meta": meta, "error": None})

    def add_failed(self, args: dict[str, Any], error: Exception) -> None:
        """A call that raised; raises what is to stop everything."""
        if isinstance(error, TaskError) and error.stops:
            raise error
        if isinstance(error, Skipped):
            self.skipped.append(error)
        else:
            self.errors.append(error)
        self.told.append({"args": args, "ret": None, "meta": {}, "error": line_of_error(error)})

    @property
    def failures(self) -> str:
        """What is to be told of the calls that failed."""
        return self._of_all("failed", [line_of_error(error) for error in self.errors])

    @property
    def gaps(self) -> str:
        """What is to be told of the calls without a value that did not fail."""
        skipped = self._of_all("were skipped", [line_of_error(error) for error in self.skipped])
        return "; ".join(filter(None, (self._of_all("have no value", self.undefined), skipped)))

    def _of_all(self, what: str, reasons: Sequence[str]) -> str:
        if not reasons or len(self.told) == 1:
            return reasons[0] if reasons else ""
        return f"{len(reasons)} of {len(self.told)} calls {what}: {reasons[0]}"

    def _parts(self, said: tuple[Any, ...]) -> tuple[Any, dict[str, Any]]:
        if len(said) != 2 or not isinstance(said[1], Mapping):
            listed = ", ".join(described(value) for value in said)
            raise DataError(f"{self.called} returned ({listed}); a tuple is a value and a dictionary of metadata")
        return said[0], dict(said[1])

    def _ret(self, said: Any) -> Any:
        """What a call returned, as floats."""
        number = number_of(said)
        if number is not None:
            return number
        if isinstance(said, Mapping) and said:
            return {escape_surrogates(str(key)): self._part(value, f"under {key!r}") for key, value in said.items()}
        if isinstance(said, list) and said:
            return [self._part(value, f"at place {place}") for place, value in enumerate(said)]
        empty = "an empty list or object" if isinstance(said, list | Mapping) else described(said)
        raise DataError(
            f"{self.called} returned {empty}; it is to return a number, a list of numbers or a dictionary of numbers, "
            "alone or in a tuple with a dictionary of metadata"
        )

    def _part(self, value: Any, where: str) -> float:
        number = number_of(value)
        if number is None or (self.strict and not isinstance(value, float)):
            raise DataError(f"{self.called} returned {described(value)} {where}; it is to be a {self._kind}")
        return number

    @property
    def _kind(self) -> str:
        return "float" if self.strict else "number"


_NUMBERS: Final = frozenset((float, int, bool))


def number_of(value: Any) -> float | None:
    """A number of any kind as a float; None for what is none."""
    if type(value) not in _NUMBERS and hasattr(value, "item") and getattr(value, "ndim", None) == 0:  # of NumPy
        value = value.item()
    if not isinstance(value, numbers.Real | Decimal):
        return None
    try:
        return float(value)
    except OverflowError:  # more digits than a float has
        return None


def line_of_error(error: Exception) -> str:
    """An error in one line, as it is kept."""
    return f"{type(error).__name__}: {storable_message(error)}"


def reason_of(calls: Sequence[Mapping[str, Any]]) -> str | None:
    """The reason that the one call gave, where there is one."""
    reason = calls[0]["meta"].get("reason") if len(calls) == 1 else None
    return reason if isinstance(reason, str) else None
