"""Secrets in the parameters of providers, which are neither stored nor shown."""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from evaluand.core.json_like import DEEPEST
from evaluand.core.redaction import HIDDEN, is_secret, without_passwords


def class_place(kind: type) -> str:
    """`module:name` of a class."""
    return f"{kind.__module__}:{kind.__qualname__}"


def find_secrets(value: Any, place: str = "", depth: int = 0) -> Iterator[tuple[str, Any]]:
    """The secrets in data, with their places: values under a secret's name, and texts with a password in a URL."""
    if isinstance(value, str) and without_passwords(value) != value:
        yield place, value
    for name, item in _parts(value) if depth < DEEPEST else ():
        inner = f"{place}.{name}" if place else str(name)
        if _is_secret(name, item):
            yield inner, item
        else:
            yield from find_secrets(item, inner, depth + 1)


def secret_texts(secret: Any) -> Iterator[str]:
    """The texts that a secret consists of."""
    if isinstance(secret, str) and secret:
        yield secret
    for _, item in _parts(secret):
        yield from secret_texts(item)


def without_secrets(value: Any, *, shown: bool = False) -> Any:
    """The data without secrets, or with a placeholder for each."""
    if isinstance(value, str):
        return without_passwords(value)
    if next(find_secrets(value), None) is None:
        return value
    parts = [(name, item, _is_secret(name, item)) for name, item in _parts(value)]
    mended = {
        name: HIDDEN if secret and item is not None else without_secrets(item, shown=shown)
        for name, item, secret in parts
        if shown or not secret
    }
    if isinstance(value, list | tuple):
        return list(mended.values())
    return mended if isinstance(value, Mapping) else {"class": class_place(type(value)), **mended}


def _parts(value: Any) -> Sequence[tuple[Any, Any]]:
    """The parts of data, as `evaluand.core.identity` reads them."""
    if isinstance(value, Mapping):
        return list(value.items())
    if isinstance(value, list | tuple):
        return list(enumerate(value))
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return [(each.name, getattr(value, each.name)) for each in dataclasses.fields(value)]
    if hasattr(value, "model_dump") and not isinstance(value, type):
        return list(value.model_dump().items())
    return ()


def _is_secret(name: Any, value: Any) -> bool:
    return isinstance(name, str) and is_secret(name) and type(value) is not bool
