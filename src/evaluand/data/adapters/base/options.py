"""Checks of a configuration: JSON data, known keys only, of the right types; and the errors that adapters raise.

Each error is also a built-in one, for code that catches those.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

from evaluand.core.errors import DataError, Fault, SpecError, kind_of, nearest


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


MAX_DEPTH: Final = 100
"""Levels of objects and lists in a configuration, so that none exhausts the stack."""


def check_json(name: str, value: Any, path: str = "", depth: int = 0) -> None:
    """Refuse what JSON cannot hold, since a configuration is stored and part of the identity of results."""
    if depth > MAX_DEPTH:
        raise AdapterSpecError(f"{name}: the configuration is nested more than {MAX_DEPTH} levels deep")
    if isinstance(value, Mapping):
        for key, each in value.items():
            if not isinstance(key, str):
                raise AdapterSpecError(f"{name}: {_prefix(path)}the key {key!r} is not text")
            check_json(name, each, f"{path}.{key}" if path else key, depth + 1)
    elif isinstance(value, list | tuple):
        for i, each in enumerate(value):
            check_json(name, each, f"{path}[{i}]", depth + 1)
    elif isinstance(value, float) and not math.isfinite(value):
        raise AdapterSpecError(f"{name}: {_prefix(path)}JSON has no number {value!r}")
    elif value is not None and not isinstance(value, str | int | float):
        raise AdapterSpecError(f"{name}: {_prefix(path)}{kind_of(value)} is not JSON data")


def read_options(
    name: str,
    value: Any,
    *,
    required: Sequence[str] = (),
    optional: Sequence[str] = (),
    what: str = "the configuration",
) -> dict[str, Any]:
    """The keys of a configuration as a dictionary; messages call the value `what` of `name`."""
    expected = f"give an object with {', '.join(required)}" if required else "give an object"
    if value is None:
        raise WrongArguments(f"{name}: {what} is missing; {expected}")
    if not isinstance(value, Mapping):
        raise AdapterSpecError(f"{name}: {what} is {_describe(value)}; {expected}")
    known = [*required, *optional]
    faults = [
        f"no key is called {key!r}{nearest(str(key), known)}; known: {', '.join(known)}"
        for key in value
        if key not in known
    ]
    faults += [f"{key} is missing" for key in required if key not in value]
    if faults:
        raise AdapterSpecError(f"{name}: {'; '.join(faults)}")
    return dict(value)


def read_field_names(name: str, key: str, value: Any, *, unique: bool = False) -> tuple[str, ...]:
    """A list of field names without repetitions; with `unique`, repeated names and an empty list are refused."""
    if not isinstance(value, list | tuple):
        raise AdapterSpecError(f"{name}: {key} is {_describe(value)}; give a list of field names")
    for field in value:
        if not isinstance(field, str):
            raise AdapterSpecError(f"{name}: {key} contains {_describe(field)}; give a list of field names")
    if unique and not value:
        raise AdapterSpecError(f"{name}: {key} is empty; name at least one field")
    names = tuple(dict.fromkeys(value))
    if unique and len(names) < len(value):
        repeated = next(name for name in names if value.count(name) > 1)
        raise AdapterSpecError(f"{name}: {key} contains {repeated!r} more than once")
    return names


def _prefix(path: str) -> str:
    return f"{path}: " if path else ""


def _describe(value: Any) -> str:
    return repr(value) if isinstance(value, str | int | float) else kind_of(value)
