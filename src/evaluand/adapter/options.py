"""What may stand in a configuration: known keys only, of the right types, all faults at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from evaluand.adapter.faults import AdapterSpecError
from evaluand.errors import with_article
from evaluand.registry import nearest


def options(name: str, given: Any, *, required: Sequence[str] = (), optional: Sequence[str] = ()) -> dict[str, Any]:
    """The keys of a configuration.

    Raises:
        AdapterSpecError: it is no object, a key is unknown or one is missing.
    """
    if not isinstance(given, Mapping):
        raise AdapterSpecError(f"{name}: the configuration is {_told(given)}; give an object{_with(required)}")
    known = [*required, *optional]
    faults = [
        f"{name}: no key is called {key!r}{nearest(str(key), known)}; known: {', '.join(known)}"
        for key in given
        if key not in known
    ]
    faults += [f"{name}: {key} is missing" for key in required if key not in given]
    if faults:
        raise AdapterSpecError("\n".join(faults))
    return dict(given)


def field_names(name: str, key: str, value: Any, *, some: bool = False) -> tuple[str, ...]:
    """A list of names of fields, each once.

    Args:
        name: the adapter's kind.
        key: where the list stands in the configuration.
        value: what stands there.
        some: at least one.
    """
    if not isinstance(value, list | tuple) or not all(isinstance(field, str) for field in value):
        raise AdapterSpecError(f"{name}: {key} is {_told(value)}; give a list of names of fields")
    twice = sorted({field for field in value if value.count(field) > 1})
    if twice:
        raise AdapterSpecError(f"{name}: {key} names {', '.join(twice)} twice")
    if some and not value:
        raise AdapterSpecError(f"{name}: {key} is empty; name at least one field")
    return tuple(value)


def _told(value: Any) -> str:
    if value is None:
        return "missing"
    return with_article(type(value).__name__) if isinstance(value, Mapping | list | tuple) else repr(value)


def _with(required: Sequence[str]) -> str:
    return f" with {', '.join(required)}" if required else ""
