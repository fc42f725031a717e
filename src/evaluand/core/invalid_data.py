"""Data of a wrong type, as an error that programs written for pydantic catch as well."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Self

from pydantic_core import InitErrorDetails, PydanticCustomError, ValidationError

from evaluand.core.errors import DataError, Fault


class InvalidData(DataError, ValidationError):
    """Data that do not have their type; also a `pydantic.ValidationError`. Create one with `from_faults`.

    Its message lists the faults. `errors()` lists them as pydantic does, with type, location and input where pydantic
    found them.

    Example:
        >>> error = InvalidData.from_faults("the age is not a number")
        >>> isinstance(error, ValidationError), error.error_count(), str(error)
        (True, 1, 'the age is not a number')
    """

    def __init__(self, *arguments: Any) -> None:
        """Called by pydantic, which creates the instance; `from_faults` sets the faults."""

    @classmethod
    def from_faults(cls, faults: str | Fault | Iterable[Fault], causes: Iterable[ValidationError] = ()) -> Self:
        """The error for these faults.

        Args:
            faults: every fault found.
            causes: the errors of pydantic behind the faults, if there are any.
        """
        listed = DataError(faults).faults
        error = cls.from_exception_data(cls.__name__, list(_details(causes)) or list(map(_detail, listed)))
        DataError.__init__(error, listed)
        return error

    def __str__(self) -> str:
        return self._message()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._message()!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        """Copies are made from the faults, since an input may not be copyable."""
        return type(self).from_faults, (self.faults,)


def _details(causes: Iterable[ValidationError]) -> Iterator[InitErrorDetails]:
    for cause in causes:
        for each in cause.errors(include_url=False, include_context=False):
            kind: Any = PydanticCustomError(each["type"], each["msg"])
            yield InitErrorDetails(type=kind, loc=each["loc"], input=each["input"])


def _detail(fault: Fault) -> InitErrorDetails:
    kind: Any = PydanticCustomError("invalid_data", fault.message)
    return InitErrorDetails(type=kind, loc=(fault.where,) if fault.where else (), input=None)
