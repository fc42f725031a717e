"""What adapters raise. Each is also the built-in error of its sort, for code that catches those."""

from __future__ import annotations

from evaluand.errors import DataError, SpecError


class AdapterSpecError(SpecError, ValueError):
    """An adapter cannot be made as it is configured."""


class MissingParameter(AdapterSpecError, TypeError):
    """A function is not given what it needs."""


class AdapterError(DataError, ValueError):
    """A row cannot be transformed."""


class AbsentField(AdapterError, KeyError):
    """A row has no field of that name."""

    __str__ = Exception.__str__  # a KeyError's would be quoted


class WrongType(AdapterError, TypeError):
    """A value is of a type that the adapter cannot work on."""
