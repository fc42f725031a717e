"""The errors that adapters raise. Each is also a built-in error, for code that catches those."""

from evaluand.core.errors import DataError, Fault, SpecError


class AdapterSpecError(SpecError, ValueError):
    """An adapter's spec is wrong."""


class WrongArguments(AdapterSpecError, TypeError):
    """An adapter, or a function of a template, lacks an argument or has one that it does not take."""


class UnknownFunction(AdapterSpecError, KeyError):
    """A template names an unknown function."""

    __str__ = Exception.__str__  # that of KeyError adds quotes


class AdapterError(DataError, ValueError):
    """A row cannot be transformed."""

    def add_place(self, where: str) -> None:
        """Put the place of the fault before the message."""
        self.faults = (Fault(where, str(self)),)
        self.args = (self._message(),)


class AbsentField(AdapterError, KeyError):
    """A row lacks a field."""

    __str__ = Exception.__str__


class WrongType(AdapterError, TypeError):
    """A value is of a type that the adapter cannot work on."""
