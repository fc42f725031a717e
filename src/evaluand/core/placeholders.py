"""Placeholders in stored data, for values that were not stored: what is not data, and what is too large.

A placeholder is an object with one key. `{"$unstorable": "Lock"}` describes a value that is not data, by its type.
`{"$too_large": "text of 9000000 characters"}` takes the place of data, so nothing may be computed from a value that
contains it: its length, its equality and its parts are unknown.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

UNSTORABLE: Final = "$unstorable"
TOO_LARGE: Final = "$too_large"


def unstorable(kind: str) -> dict[str, str]:
    """The placeholder for a value that is not data."""
    return {UNSTORABLE: kind}


def too_large(description: str) -> dict[str, str]:
    """The placeholder for data that are too large or nested too deeply."""
    return {TOO_LARGE: description}


def is_placeholder(value: Any) -> bool:
    """Whether a value is itself a placeholder.

    Example:
        >>> [is_placeholder(value) for value in (too_large("bytes"), [too_large("bytes")], {"$too_large": 1, "n": 2})]
        [True, False, False]
    """
    return type(value) is dict and len(value) == 1 and (TOO_LARGE in value or UNSTORABLE in value)


def find_gap(value: Any) -> Gap | None:
    """The first part of a value without which nothing may be computed from it; None where everything was stored.

    A value that is not data counts only if it is the value itself: inside other data its placeholder describes it.

    Args:
        value: JSON-like data.

    Example:
        >>> gap = find_gap({"pages": ["…", too_large("text of 9000000 characters")]})
        >>> gap.path, str(gap)
        ('.pages[1]', 'was not stored, because it is too large (text of 9000000 characters)')
        >>> str(find_gap(unstorable("Lock")))
        'was not stored, because it is not data (Lock)'
        >>> find_gap({"text": "…", "lock": unstorable("Lock")}) is None
        True
    """
    if is_placeholder(value):
        return Gap(value)
    waiting = [("", value)]
    while waiting:
        path, each = waiting.pop()
        if isinstance(each, Mapping):
            if len(each) == 1 and TOO_LARGE in each:
                return Gap(each, path)
            waiting += [(f"{path}.{key}", item) for key, item in each.items() if type(item) not in _ATOMS]
        elif isinstance(each, list | tuple):
            waiting += [(f"{path}[{place}]", item) for place, item in enumerate(each) if type(item) not in _ATOMS]
    return None


class Gap(NamedTuple):
    """A placeholder, and its path in a value; as text, why there is no value."""

    placeholder: Mapping[str, Any]
    path: str = ""

    def __str__(self) -> str:
        ((mark, description),) = self.placeholder.items()
        reason = "it is too large" if mark == TOO_LARGE else "it is not data"
        return f"was not stored, because {reason} ({description})"


_ATOMS: Final = frozenset((str, int, float, bool, type(None)))
