"""Hides credentials among the arguments of traced calls, by their names, before a trace stores them.

Arguments, attributes and the keys of dictionaries within them are read as `evaluand.core.redaction` reads names. What
always means a credential is hidden (`api_key`, `Authorization`, `password`). What may be harmless is judged by its
value too: a `token` inside data is mostly a part of a text, and a `key` mostly that of a dictionary. What a call
returns is data, and stays as it is.
"""

import dataclasses
import os
import re
import threading
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, Final

from evaluand.core.placeholders import too_large, unstorable
from evaluand.core.redaction import HIDDEN, TOKEN, is_secret

VARIABLE: Final = "EVALUAND_KEEP_CREDENTIALS"
"""The environment variable that keeps credentials in the spans of a process, if it is `1`."""

_ATOMS: Final = frozenset((str, int, float, bool, type(None)))
_PLAIN: Final = frozenset((dict, list, tuple))
_MAY_BE_SECRET: Final = re.compile(r"pass|pwd|secret|credential|auth|bearer|key|token|cookie|jwt|pat", re.IGNORECASE)
_COUNT: Final = re.compile(r"(?:tokens|keys)$", re.IGNORECASE)
_KEY: Final = re.compile(r"keys?$", re.IGNORECASE)
_WORD_OF_TEXT: Final = re.compile(r"tokens?$", re.IGNORECASE)
_ISSUED: Final = re.compile(rf"{TOKEN}|^(?=\S*[A-Za-z])(?=\S*\d)\S{{8,}}$")
"""A value that was issued rather than written: a token of a known form, or letters and digits without a blank."""


@contextmanager
def keep_credentials() -> Iterator[None]:
    """Stores arguments that are named like credentials as they are, in spans of all threads, within the block.

    Example:
        >>> hide_credentials({"api_key": "abc"})
        {'api_key': '***'}
        >>> with keep_credentials():
        ...     hide_credentials({"api_key": "abc"})
        {'api_key': 'abc'}
    """
    global _blocks
    with _counting:
        _blocks += 1
    try:
        yield
    finally:
        with _counting:
            _blocks -= 1


_blocks = 0
_counting = threading.Lock()


def hide_credentials(value: Any) -> Any:
    """The value with `***` in place of credentials under their names, at any depth; itself where there are none.

    Objects are read only if they are dataclasses or pydantic models, and become dictionaries if something is hidden.
    Never fails: a value that cannot be read stays as it is, and one that is nested too deeply is left out.

    Example:
        >>> hide_credentials({"headers": {"Authorization": "Bearer abc", "Accept": "*/*"}, "max_tokens": 9})
        {'headers': {'Authorization': '***', 'Accept': '*/*'}, 'max_tokens': 9}
    """
    if type(value) in _ATOMS:
        return value
    try:
        return _rebuild(value, set()) if _has_credential(value) else value
    except RecursionError:
        return too_large(f"{type(value).__qualname__} nested too deeply")
    except Exception:  # code of the value itself, such as a mapping that fails
        return value


def hide_arguments(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a call, or the attributes of a span, without credentials.

    Example:
        >>> hide_arguments({"token": "abc", "logprobs": [{"token": "Emma"}], "key": "title"})
        {'token': '***', 'logprobs': [{'token': 'Emma'}], 'key': 'title'}
    """
    return {
        name: value
        if type(value) in _ATOMS and not _may_be_secret(name)
        else _hidden(name, value) or hide_credentials(value)
        for name, value in arguments.items()
    }


def hide_member(name: Any, value: Any) -> Any:
    """What is stored of a value under a name in data, where more names are harmless than among arguments."""
    return _hidden(name, value, nested=True) or hide_credentials(value)


def _has_credential(value: Any) -> bool:
    """Whether a value contains a credential; reads each of its parts once."""
    seen: dict[int, Any] = {}  # with the values, so that no other gets the same id
    waiting = [value]
    while waiting:
        each = waiting.pop()
        if id(each) in seen:
            continue
        seen[id(each)] = each
        parts = _parts(each)
        if type(parts) is dict or isinstance(parts, Mapping):
            for name in parts:
                if _may_be_secret(name) and _hidden(name, parts[name], nested=True):
                    return True
            parts = parts.values()
        waiting += [item for item in parts if type(item) not in _ATOMS]
    return False


def _rebuild(value: Any, within: set[int]) -> Any:
    """A copy of a value without credentials."""
    parts = () if type(value) in _ATOMS else _parts(value)
    if not parts:
        return value
    if id(value) in within:
        return unstorable(f"{type(value).__qualname__} within itself")
    within.add(id(value))
    copied: Any
    if isinstance(parts, Mapping):
        copied = {name: _hidden(name, item, nested=True) or _rebuild(item, within) for name, item in parts.items()}
    else:
        copied = [_rebuild(item, within) for item in parts]
    within.discard(id(value))
    return copied


def _parts(value: Any) -> Mapping[Any, Any] | Collection[Any]:
    """The members of a mapping, a dataclass or a pydantic model, or the items of a list; nothing of any other value."""
    if type(value) in _PLAIN or isinstance(value, list | tuple | Mapping):
        return value  # type: ignore[no-any-return]
    if isinstance(value, type):
        return ()
    if dataclasses.is_dataclass(value):
        return {each.name: getattr(value, each.name) for each in dataclasses.fields(value)}
    fields = getattr(type(value), "model_fields", None)
    return {name: getattr(value, name) for name in fields} if isinstance(fields, Mapping) else ()


def _hidden(name: Any, value: Any, *, nested: bool = False) -> str | None:
    """What takes the place of a credential; None for any other value."""
    if not _may_be_secret(name) or not _is_credential(name, value, nested):
        return None
    return None if _blocks > 0 or os.environ.get(VARIABLE) == "1" else HIDDEN


@lru_cache(maxsize=4096)
def _may_be_secret(name: Any) -> bool:
    return isinstance(name, str) and _MAY_BE_SECRET.search(name) is not None


def _is_credential(name: str, value: Any, nested: bool) -> bool:
    if value is None or type(value) is bool or not is_secret(name):
        return False
    is_number = isinstance(value, int | float)
    if is_number and _COUNT.search(name):
        return False
    if is_secret(name, strict=True):
        return True
    if _KEY.search(name):
        return isinstance(value, str) and re.search(TOKEN, value) is not None
    if nested and _WORD_OF_TEXT.search(name):
        return isinstance(value, str) and _ISSUED.search(value) is not None
    return not is_number
