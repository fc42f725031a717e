"""Templates: the structure of a new value, with literals, paths and computations as its leaves.

    "text"                 itself
    "$.choices[0].text"    the one value at a path of the row
    "$$5"                  the text "$5"; keys likewise
    {"$compute": …}        a step, or a list of steps, each of which takes what the step before has given:
        {"$literal": …}                    anything, as it stands
        {"$scalar": path, "default": …}    the one value at a path; the default where there is none
        {"$list": path}                    all values at a path, as a list
        {"$list": [value, …]}              a list of values, each a `$literal`, `$scalar` or `$list`
        {"$func": name, …}                 findall, join, list, reduce, search, split or sub

A template is compiled once into functions of the row; nothing is executed from its text.
"""

from __future__ import annotations

import copy
import functools
import operator
import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from typing import Any

from evaluand.core.errors import DataError, EvaluandWarning, SpecError, kind_of
from evaluand.core.registry import nearest
from evaluand.core.selector import Selector, is_jsonpath
from evaluand.data.adapters.base.faults import (
    AdapterError,
    AdapterSpecError,
    UnknownFunction,
    WrongArguments,
    WrongType,
)

Made = Callable[[Any], Any]
"""A value, made from a row."""


class LikeAPath(EvaluandWarning):
    """A text of a template looks like a path without its `$`."""


def compiled(template: Any, name: str, at: str = "") -> Made:
    """A function that makes the template's value from a row.

    Args:
        template: literals, paths and computations, in objects and lists.
        name: the adapter's kind, for messages.
        at: where the template stands in the new structure.

    Raises:
        AdapterSpecError: a path, a key or a computation is wrong.
    """
    return _Compiler(name).value(template, at)


def path_of(text: str) -> str | None:
    """The path that a text of a template stands for, or None where it is a literal."""
    return text if text.startswith("$") and not text.startswith("$$") else None


def literal(value: Any) -> Any:
    """A text or key of a template without its escape."""
    return value[1:] if isinstance(value, str) and value.startswith("$$") else value


def selector(text: Any, where: str) -> Selector:
    """A path as it stands in a configuration.

    Raises:
        AdapterSpecError: it is none.
    """
    if not isinstance(text, str):
        raise AdapterSpecError(f"{where}: {text!r} is no path; write it like $.a.b[0]")
    if text.startswith("$") and not is_jsonpath(text):
        raise AdapterSpecError(f"{where}: {text!r} is no path; write $.name for a path, or ${text} for the text itself")
    try:
        return Selector(text)
    except SpecError as error:
        raise AdapterSpecError(f"{where}: {error}") from None


class _Compiler:
    def __init__(self, name: str) -> None:
        self.name = name

    def value(self, template: Any, at: str) -> Made:
        if isinstance(template, str):
            path = path_of(template)
            return self._text(template, at) if path is None else self._scalar(path, at)
        if isinstance(template, Mapping):
            return self._computed(template, at) if "$compute" in template else self._object(template, at)
        if isinstance(template, list | tuple):
            parts = [self.value(part, f"{at}[{i}]") for i, part in enumerate(template)]
            return lambda row: [part(row) for part in parts]
        return _constant(template)

    def _object(self, template: Mapping[Any, Any], at: str) -> Made:
        made: dict[str, Any] = {}  # what is the same for all rows, and the order of the keys
        parts = []
        for key, part in template.items():
            if not isinstance(key, str):
                raise self._wrong(at, f"the key {key!r} is no text")
            if key.startswith("$") and not key.startswith("$$"):
                close = nearest(key, ["$compute"])
                raise self._wrong(at, f"the key {key!r} begins with $, which is reserved{close}; write ${key} for it")
            key = literal(key)
            made[key] = literal(part)
            place = f"{at}.{key}" if at else key
            if isinstance(part, Mapping | list | tuple) or (isinstance(part, str) and path_of(part)):
                parts.append((key, self.value(part, place)))
            elif isinstance(part, str):
                self._text(part, place)

        def filled(row: Any) -> Any:
            new = made.copy()
            for key, part in parts:
                new[key] = part(row)
            return new

        return filled

    def _text(self, text: str, at: str) -> Made:
        if _LIKE_A_PATH.fullmatch(text):
            told = f'{text!r} stands for itself; write $.{text} for the path, or {{"$literal": …}} in $compute'
            warnings.warn(f"{self._place(at)}: {told} for the text", LikeAPath, stacklevel=1)
        return _constant(literal(text))

    # Computations

    def _computed(self, template: Mapping[str, Any], at: str) -> Made:
        if len(template) > 1:
            others = ", ".join(repr(key) for key in template if key != "$compute")
            raise self._wrong(at, f"$compute must be the only key of its object; {others} stands beside it")
        steps = template["$compute"]
        steps = [steps] if isinstance(steps, Mapping) else steps
        if not isinstance(steps, list | tuple) or not steps:
            raise self._wrong(at, f"$compute is {steps!r}; give a step, or a list of steps")
        made = [self._step(step, at) for step in steps]
        if len(made) == 1:
            return made[0]
        return lambda row: functools.reduce(lambda value, step: step(value), made, row)

    def _step(self, step: Any, at: str) -> Made:
        if not isinstance(step, Mapping):
            raise self._wrong(at, f"{step!r} is no step of $compute; give an object with one of {', '.join(_STEPS)}")
        sort = [key for key in _STEPS if key in step]
        if len(sort) != 1:
            close = "".join(nearest(key, _STEPS) for key in step if isinstance(key, str) and not sort)
            raise self._wrong(at, f"a step of $compute has {_keys(step)}{close}; give one of {', '.join(_STEPS)}")
        return self._function(step, at) if sort == ["$func"] else self._read(step, sort[0], at)

    def _read(self, step: Mapping[str, Any], sort: str, at: str) -> Made:
        allowed = (sort, "default") if sort == "$scalar" else (sort,)
        for key in step:
            if key not in allowed:
                raise self._wrong(at, f"{sort} takes no {key!r}{nearest(str(key), allowed)}")
        value = step[sort]
        if sort == "$literal":
            return _constant(value)
        if sort == "$list" and isinstance(value, list | tuple):
            parts = [self._listed(part, f"{at}[{i}]") for i, part in enumerate(value)]
            return lambda row: [part(row) for part in parts]
        if not isinstance(value, str) or path_of(value) is None:
            raise self._wrong(at, f"{sort} is {value!r}; give a path that begins with $, or use $literal")
        if sort == "$list":
            return selector(value, self._place(at)).find
        return self._scalar(value, at) if "default" not in step else self._or(value, step["default"], at)

    def _listed(self, step: Any, at: str) -> Made:
        if isinstance(step, Mapping) and "$func" in step:
            raise self._wrong(at, "an element of $list is a $literal, $scalar or $list; $func has nothing to work on")
        return self._step(step, at)

    def _scalar(self, path: str, at: str) -> Made:
        found, before = selector(path, self._place(at)), _before(at)
        several = "" if found.singular else "; $list in $compute takes any number of them"

        def scalar(row: Any) -> Any:
            try:
                return found.get(row)
            except DataError as error:
                raise AdapterError(f"{before}{error}{several}") from None

        if not found.steps or not all(isinstance(step, str) for step in found.steps):
            return scalar
        first, *rest = found.steps

        def field(row: Any) -> Any:
            try:
                value = row[first]
                for key in rest:
                    value = value[key]
                return value
            except (LookupError, TypeError):
                return scalar(row)

        return field

    def _or(self, path: str, default: Any, at: str) -> Made:
        find, instead, before = selector(path, self._place(at)).find, _constant(default), _before(at)

        def scalar(row: Any) -> Any:
            found = find(row)
            if len(found) > 1:
                raise AdapterError(f"{before}{path}: {len(found)} values where one is needed; $list takes them all")
            return found[0] if found else instead(row)

        return scalar

    def _function(self, step: Mapping[str, Any], at: str) -> Made:
        name = step["$func"]
        if not isinstance(name, str) or name not in _FUNCTIONS:
            known = ", ".join(_FUNCTIONS)
            raise UnknownFunction(
                f"{self._place(at)}: no function is called {name!r}{nearest(str(name), _FUNCTIONS)}; known: {known}"
            )
        make, parameters, needed = _FUNCTIONS[name]
        given = {key: value for key, value in step.items() if key != "$func"}
        for key in given:
            if key not in parameters:
                known = ", ".join(parameters) or "none"
                raise WrongArguments(
                    f"{self._place(at)}: {name} takes no {key!r}{nearest(str(key), parameters)}; it takes {known}"
                )
        missing = [key for key in needed if key not in given]
        if missing:
            raise WrongArguments(f"{self._place(at)}: {name} needs {', '.join(missing)}")
        for key, value in given.items():
            if key in _TYPES and (not isinstance(value, _TYPES[key]) or isinstance(value, bool)):
                raise self._wrong(at, f"{name}: {key} is {value!r}; give {_WANTED[key]}")
        if given.get("flags", 0) & ~_FLAGS:
            raise self._wrong(at, f"{name}: flags is {given['flags']}; add up {_told_flags()}")
        try:
            function = make(**given)
        except (re.error, ValueError, IndexError, OverflowError, RecursionError) as error:
            raise self._wrong(at, f"{name}: {_shown(given)} is wrong: {error}") from None
        return self._guarded(function, name, at)

    def _guarded(self, function: Made, name: str, at: str) -> Made:
        before = _before(at)

        def guarded(value: Any) -> Any:
            try:
                return function(value)
            except (TypeError, IndexError, re.error):
                raise WrongType(f"{before}{name} of {_described(value)}: it works on {_WORKS_ON[name]}") from None

        return guarded

    def _place(self, at: str) -> str:
        return f"{self.name}: {at}" if at else self.name

    def _wrong(self, at: str, message: str) -> AdapterSpecError:
        return AdapterSpecError(f"{self._place(at)}: {message}")


def _before(at: str) -> str:
    """What a message about a row begins with."""
    return f"{at}: " if at else ""


def _constant(value: Any) -> Made:
    """The value itself; where it could be changed by whoever gets it, a copy of its own for each."""
    if isinstance(value, Mapping | list | tuple):
        value = copy.deepcopy(value)
        return lambda row: copy.deepcopy(value)
    return lambda row: value


# The functions, which are those of Python of the same names and parameters


def _findall(pattern: str, flags: int = 0) -> Made:
    find = re.compile(pattern, flags).findall
    return lambda text: [list(groups) if isinstance(groups, tuple) else groups for groups in find(text)]


def _join(separator: str = "") -> Made:
    return separator.join


def _list() -> Made:
    return list


def _reduce(**given: Any) -> Made:
    if not given:
        return _summed
    instead = _constant(given["default"])
    return lambda values: instead(values) if isinstance(values, list | tuple) and not values else _summed(values)


def _summed(values: Any) -> Any:
    if isinstance(values, list) and values:  # added one by one, each sum would be copied for the next
        if all(isinstance(value, str) for value in values):
            return "".join(values)
        if all(isinstance(value, list) for value in values):
            return list(chain.from_iterable(values))
    return functools.reduce(operator.add, values)


def _search(pattern: str, flags: int = 0, group: int | str = 0, default: Any = None) -> Made:
    expression = re.compile(pattern, flags)
    known = expression.groupindex if isinstance(group, str) else range(expression.groups + 1)
    if group not in known:
        raise ValueError(f"it has no group {group!r}")
    search, instead = expression.search, _constant(default)

    def first(text: Any) -> Any:
        found = search(text)
        value = None if found is None else found.group(group)  # None too where the group took no part
        return instead(text) if value is None else value

    return first


def _split(pattern: str, maxsplit: int = 0, flags: int = 0) -> Made:
    expression = re.compile(pattern, flags)
    expression.split("", maxsplit)  # finds out whether the number is one that it takes
    return lambda text: expression.split(text, maxsplit)


def _sub(pattern: str, repl: str, count: int = 0, flags: int = 0) -> Made:
    expression = re.compile(pattern, flags)
    expression.sub(repl, "", count)  # finds out whether the groups that `repl` names are there
    return lambda text: expression.sub(repl, text, count)


_LIKE_A_PATH = re.compile(r"[A-Za-z_]\w*(\.\w+)*(\[(\d+|\*)\](\.\w+)*)+")
_SHOWN = 80
_KINDS = 3
_FLAGS = re.ASCII | re.IGNORECASE | re.MULTILINE | re.DOTALL | re.VERBOSE | re.UNICODE
_STEPS = ("$literal", "$scalar", "$list", "$func")
_FUNCTIONS: dict[Any, tuple[Callable[..., Made], Sequence[str], Sequence[str]]] = {
    "findall": (_findall, ("pattern", "flags"), ("pattern",)),
    "join": (_join, ("separator",), ()),
    "list": (_list, (), ()),
    "reduce": (_reduce, ("default",), ()),
    "search": (_search, ("pattern", "flags", "group", "default"), ("pattern",)),
    "split": (_split, ("pattern", "maxsplit", "flags"), ("pattern",)),
    "sub": (_sub, ("pattern", "repl", "count", "flags"), ("pattern", "repl")),
}
_WORKS_ON = dict.fromkeys(("findall", "search", "split", "sub"), "text") | {
    "join": "a list of texts",
    "list": "a list or a text",
    "reduce": "a list of numbers, texts or lists, all of one sort and at least one, or has a default",
}
_TYPES: dict[str, Any] = {
    "pattern": str,
    "repl": str,
    "separator": str,
    "flags": int,
    "count": int,
    "maxsplit": int,
    "group": int | str,
}
_WANTED = {
    "pattern": "a regular expression",
    "repl": "a text",
    "separator": "a text",
    "flags": "a whole number",
    "count": "a whole number",
    "maxsplit": "a whole number",
    "group": "a number or a name",
}


def _told_flags() -> str:
    return ", ".join(f"{flag.value} ({flag.name})" for flag in _FLAGS)


def _described(value: Any) -> str:
    if not isinstance(value, list | tuple):
        return kind_of(value)
    kinds = [*dict.fromkeys(map(kind_of, value))]
    return (
        f"a list of {' and '.join(kinds[:_KINDS])}{' and more' * (len(kinds) > _KINDS)}" if kinds else "an empty list"
    )


def _shown(given: Mapping[str, Any]) -> str:
    return " with ".join(f"{key} {value!r}"[:_SHOWN] for key, value in given.items() if key != "flags")


def _keys(step: Mapping[Any, Any]) -> str:
    return ", ".join(repr(key) for key in step) or "no key"
