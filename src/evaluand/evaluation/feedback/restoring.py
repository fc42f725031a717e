"""Whether a provider that is made again from its stored arguments judges as the stored one does.

What a constructor does with its arguments cannot be read off, so the provider is made again and its attributes are
compared. Cached properties are left out: they follow from the others.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Set
from functools import cached_property
from inspect import getattr_static
from os import PathLike
from types import CellType, FunctionType, MethodType
from typing import Any, Final

from evaluand.core.errors import with_article
from evaluand.core.identity import encode
from evaluand.core.json_like import attributes_of
from evaluand.engine.rate_limit import RateLimit

_LOCKS: Final = (type(threading.Lock()), type(threading.RLock()))


def find_difference(stored: object, again: object) -> str | None:
    """What distinguishes an object that was made again from the stored one, as the end of a sentence; None if nothing.

    Example:
        >>> from types import SimpleNamespace as Judge
        >>> find_difference(Judge(least=3), Judge(least=3)) is None
        True
        >>> find_difference(Judge(least=3, strict=True), Judge(least=3))
        "its attribute 'strict' was set after it was made"
    """
    before, after = _state(stored), _state(again)
    for name, value in before.items():
        if name not in after:
            return f"its attribute {name!r} was set after it was made"
        same = _are_same(value, after[name], {(id(stored), id(again))})
        if same is None:
            what = with_article(type(value).__qualname__)
            return f"nothing of its attribute {name!r}, {what}, can be compared; make it a functools.cached_property"
        if not same:
            return f"its attribute {name!r} has another value when it is made again from its arguments"
    gone = next((name for name in after if name not in before), None)
    return None if gone is None else f"its attribute {gone!r} was deleted after it was made"


def _state(value: object) -> dict[str, Any]:
    """The attributes of an object, without those that cached properties have set."""
    kind = type(value)
    return {
        name: item
        for name, item in attributes_of(value)
        if not isinstance(getattr_static(kind, name, None), cached_property)
    }


def _are_same(a: Any, b: Any, seen: set[tuple[int, int]]) -> bool | None:
    """Whether two values are the same; None if that cannot be known. `seen` are the pairs that are being compared."""
    if a is b or (id(a), id(b)) in seen or isinstance(a, _LOCKS):
        return a is b or type(a) is type(b)
    seen.add((id(a), id(b)))
    if isinstance(a, PathLike | RateLimit) and isinstance(b, str):  # stored as text
        return str(a) == b
    if isinstance(a, list | tuple) and isinstance(b, list | tuple):
        return len(a) == len(b) and _all_same(zip(a, b, strict=True), seen)
    if type(a) is not type(b) and not (isinstance(a, str) and isinstance(b, str)):
        return False
    if isinstance(a, Mapping):
        return a.keys() == b.keys() and _all_same(((item, b[key]) for key, item in a.items()), seen)
    if isinstance(a, Set):
        return bool(a == b)
    if isinstance(a, FunctionType):
        parts = ((a.__closure__, b.__closure__), (a.__defaults__, b.__defaults__), (a.__kwdefaults__, b.__kwdefaults__))
        return a.__code__ is b.__code__ and _all_same(parts, seen)
    if isinstance(a, MethodType):
        return a.__func__ is b.__func__ and _are_same(a.__self__, b.__self__, seen)
    if isinstance(a, CellType):
        return _are_same(a.cell_contents, b.cell_contents, seen)
    return _are_equal(a, b, seen)


def _all_same(pairs: Any, seen: set[tuple[int, int]]) -> bool | None:
    """Whether the values of all pairs are the same: False if some differ, None if that of some cannot be known."""
    found = {_are_same(a, b, seen) for a, b in pairs}
    return False if False in found else None if None in found else True


def _are_equal(a: Any, b: Any, seen: set[tuple[int, int]]) -> bool | None:
    """Whether two objects of one class are equal as data, by their own comparison, or in their attributes."""
    try:
        return encode(a) == encode(b)
    except Exception:  # not data
        pass
    try:
        if bool(a == b):
            return True
    except Exception:  # code of the value
        return None
    left, right = _state(a), _state(b)
    if not left and not right:
        return None
    return left.keys() == right.keys() and _all_same(((item, right[name]) for name, item in left.items()), seen)
