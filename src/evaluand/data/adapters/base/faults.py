"""What adapters raise. Each is also the built-in error of its sort, for code that catches those."""

from __future__ import annotations

from evaluand.core.errors import DataError, Fault, SpecError


class AdapterSpecError(SpecError, ValueError):
    """An adapter cannot be made as it is configured."""


class WrongArguments(AdapterSpecError, TypeError):
    """An adapter, or a function of a template, is not given what it needs, or what it does not take."""


class UnknownFunction(AdapterSpecError, KeyError):
    """A template names a function that there is not."""

    __str__ = Exception.__str__  # a KeyError's would be quoted


class AdapterError(DataError, ValueError):
    """A row cannot be transformed."""

    def add_place(self, where: str) -> None:
        """Says where it happened, before what is said already."""
        self.faults = (Fault(where, str(self)),)
        self.args = (self._message(),)


class AbsentField(AdapterError, KeyError):
    """A row has no field of that name."""

    __str__ = Exception.__str__


class WrongType(AdapterError, TypeError):
    """A value is of a type that the adapter cannot work on."""
