"""What may stand in a configuration: JSON data, known keys only, of the right types."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

from evaluand.core.errors import kind_of
from evaluand.core.registry import nearest
from evaluand.data.adapters.base.faults import AdapterSpecError, WrongArguments

DEEPEST: Final = 100
"""How many objects and lists may stand in one another, so that no configuration exhausts the stack."""


def check_data(name: str, value: Any, at: str = "", depth: int = 0) -> None:
    """Stops at what JSON cannot hold, for a configuration is stored and is part of what identifies results.

    Raises:
        AdapterSpecError: names the place.
    """
    if depth > DEEPEST:
        raise AdapterSpecError(f"{name}: the configuration is nested more than {DEEPEST} levels deep")
    if isinstance(value, Mapping):
        for key, each in value.items():
            if not isinstance(key, str):
                raise AdapterSpecError(f"{name}: {_place(at)}the key {key!r} is no text")
            check_data(name, each, f"{at}.{key}" if at else key, depth + 1)
    elif isinstance(value, list | tuple):
        for i, each in enumerate(value):
            check_data(name, each, f"{at}[{i}]", depth + 1)
    elif isinstance(value, float) and not math.isfinite(value):
        raise AdapterSpecError(f"{name}: {_place(at)}JSON has no number {value!r}")
    elif value is not None and not isinstance(value, str | int | float):
        raise AdapterSpecError(f"{name}: {_place(at)}{kind_of(value)} is no JSON data")


def options(
    name: str,
    given: Any,
    *,
    required: Sequence[str] = (),
    optional: Sequence[str] = (),
    what: str = "the configuration",
) -> dict[str, Any]:
    """The keys of a configuration, or of `what` it is.

    Raises:
        AdapterSpecError: it is no object, keys are unknown or missing.
    """
    if given is None:
        raise WrongArguments(f"{name}: {what} is missing; give an object{_with(required)}")
    if not isinstance(given, Mapping):
        raise AdapterSpecError(f"{name}: {what} is {_shown(given)}; give an object{_with(required)}")
    known = [*required, *optional]
    faults = [
        f"no key is called {key!r}{nearest(str(key), known)}; known: {', '.join(known)}"
        for key in given
        if key not in known
    ]
    faults += [f"{key} is missing" for key in required if key not in given]
    if faults:
        raise AdapterSpecError(f"{name}: {'; '.join(faults)}")
    return dict(given)


def field_names(name: str, key: str, value: Any, *, some: bool = False) -> tuple[str, ...]:
    """A list of names of fields; one that stands there twice counts once.

    Args:
        name: the adapter's kind.
        key: where the list stands in the configuration.
        value: what stands there.
        some: at least one, each once.
    """
    if not isinstance(value, list | tuple):
        raise AdapterSpecError(f"{name}: {key} is {_shown(value)}; give a list of names of fields")
    for field in value:
        if not isinstance(field, str):
            raise AdapterSpecError(f"{name}: {key} has {_shown(field)} in it; give a list of names of fields")
    if some and not value:
        raise AdapterSpecError(f"{name}: {key} is empty; name at least one field")
    names = tuple(dict.fromkeys(value))
    if some and len(names) < len(value):
        twice = next(name for name in names if value.count(name) > 1)
        raise AdapterSpecError(f"{name}: {key} has {twice!r} more than once")
    return names


def _place(at: str) -> str:
    return f"{at}: " if at else ""


def _shown(value: Any) -> str:
    return repr(value) if isinstance(value, str | int | float) else kind_of(value)


def _with(required: Sequence[str]) -> str:
    return f" with {', '.join(required)}" if required else ""
