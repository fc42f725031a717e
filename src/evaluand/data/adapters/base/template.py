"""Templates: the structure of a new value, with literals, paths and computations as its leaves.

    "text"                 itself
    "$.choices[0].text"    the one value at a path of the row
    "$$5"                  the text "$5"; keys likewise
    {"$compute": …}        a step, or a list of steps, each applied to the result of the step before:
        {"$literal": …}                    any value, unchanged
        {"$scalar": path, "default": …}    the one value at a path; the default where there is none
        {"$list": path}                    all values at a path, as a list
        {"$list": [value, …]}              a list of values, each a `$literal`, `$scalar` or `$list`
        {"$func": name, …}                 findall, join, list, reduce, search, split or sub

A template is compiled once into functions of the row; no text of it is executed as code.
"""

import copy
import functools
import inspect
import operator
import re
from collections.abc import Callable, Mapping
from itertools import chain
from typing import Any, NewType

from evaluand.core.errors import DataError, EvaluandWarning, SpecError, kind_of, nearest, warn
from evaluand.core.limited_patterns import LimitedPattern
from evaluand.core.selector import Selector, is_jsonpath
from evaluand.data.adapters.base.options import (
    AdapterError,
    AdapterSpecError,
    UnknownFunction,
    WrongArguments,
    WrongType,
)

Compute = Callable[[Any], Any]
"""A function of a row that returns a value."""


class LooksLikePath(EvaluandWarning):
    """A text of a template looks like a path that lacks its `$`."""


def compile_template(template: Any, name: str, at: str = "") -> Compute:
    """A function that returns the template's value for a row; `at` is the template's place in the new structure."""
    return _Compiler(name).value(template, at)


def as_path(text: str) -> str | None:
    """A text of a template if it is a path, or None where it is a literal."""
    return text if text.startswith("$") and not text.startswith("$$") else None


def unescape(value: Any) -> Any:
    """A text or key of a template without the `$` that escapes it."""
    return value[1:] if isinstance(value, str) and value.startswith("$$") else value


def read_path(text: Any, where: str) -> Selector:
    """The selector of a path in a configuration."""
    if not isinstance(text, str):
        raise AdapterSpecError(f"{where}: {text!r} is not a path; write it like $.a.b[0]")
    if text.startswith("$") and not is_jsonpath(text):
        raise AdapterSpecError(
            f"{where}: {text!r} is not a path; write $.name for a path, or ${text} for the text itself"
        )
    try:
        return Selector(text)
    except SpecError as error:
        raise AdapterSpecError(f"{where}: {error}") from None


class _Compiler:
    def __init__(self, name: str) -> None:
        self.name = name

    def value(self, template: Any, at: str) -> Compute:
        if isinstance(template, str):
            path = as_path(template)
            return self._text(template, at) if path is None else self._scalar(path, at)
        if isinstance(template, Mapping):
            return self._computation(template, at) if "$compute" in template else self._object(template, at)
        if isinstance(template, list | tuple):
            parts = [self.value(part, f"{at}[{i}]") for i, part in enumerate(template)]
            return lambda row: [part(row) for part in parts]
        return _constant(template)

    def _object(self, template: Mapping[Any, Any], at: str) -> Compute:
        constants: dict[str, Any] = {}  # also sets the order of the keys
        parts = []
        for key, part in template.items():
            if not isinstance(key, str):
                raise self._error(at, f"the key {key!r} is not text")
            if key.startswith("$") and not key.startswith("$$"):
                close = nearest(key, ["$compute"])
                raise self._error(at, f"the key {key!r} begins with $, which is reserved{close}; write ${key} for it")
            key = unescape(key)
            constants[key] = unescape(part)
            place = f"{at}.{key}" if at else key
            if isinstance(part, Mapping | list | tuple) or (isinstance(part, str) and as_path(part)):
                parts.append((key, self.value(part, place)))
            elif isinstance(part, str):
                self._text(part, place)

        def fill(row: Any) -> Any:
            new = constants.copy()
            for key, part in parts:
                new[key] = part(row)
            return new

        return fill

    def _text(self, text: str, at: str) -> Compute:
        if _LOOKS_LIKE_PATH.fullmatch(text):
            message = (
                f"{text!r} is used as text; write $.{text} if you mean the path, "
                'or {"$literal": …} in $compute to keep the text without this warning'
            )
            warn(f"{self._place(at)}: {message}", LooksLikePath)
        return _constant(unescape(text))

    # Computations

    def _computation(self, template: Mapping[str, Any], at: str) -> Compute:
        if len(template) > 1:
            others = ", ".join(repr(key) for key in template if key != "$compute")
            raise self._error(at, f"$compute must be the only key of its object; remove {others}")
        steps = template["$compute"]
        steps = [steps] if isinstance(steps, Mapping) else steps
        if not isinstance(steps, list | tuple) or not steps:
            raise self._error(at, f"$compute is {steps!r}; give a step, or a list of steps")
        functions = [self._step(step, at) for step in steps]
        if len(functions) == 1:
            return functions[0]
        return lambda row: functools.reduce(lambda value, function: function(value), functions, row)

    def _step(self, step: Any, at: str) -> Compute:
        if not isinstance(step, Mapping):
            raise self._error(at, f"{step!r} is not a step of $compute; give an object with one of {', '.join(_STEPS)}")
        kinds = [key for key in _STEPS if key in step]
        if len(kinds) != 1:
            close = "".join(nearest(key, _STEPS) for key in step if isinstance(key, str) and not kinds)
            found = ", ".join(map(repr, step)) or "no key"
            raise self._error(at, f"a step of $compute has {found}{close}; give one of {', '.join(_STEPS)}")
        return self._function(step, at) if kinds == ["$func"] else self._read(step, kinds[0], at)

    def _read(self, step: Mapping[str, Any], kind: str, at: str) -> Compute:
        allowed = (kind, "default") if kind == "$scalar" else (kind,)
        for key in step:
            if key not in allowed:
                raise self._error(at, f"{kind} takes no {key!r}{nearest(str(key), allowed)}")
        value = step[kind]
        if kind == "$literal":
            return _constant(value)
        if kind == "$list" and isinstance(value, list | tuple):
            parts = [self._element(part, f"{at}[{i}]") for i, part in enumerate(value)]
            return lambda row: [part(row) for part in parts]
        if not isinstance(value, str) or as_path(value) is None:
            raise self._error(at, f"{kind} is {value!r}; give a path that begins with $, or use $literal")
        if kind == "$list":
            return read_path(value, self._place(at)).find
        return self._scalar(value, at) if "default" not in step else self._scalar_or(value, step["default"], at)

    def _element(self, step: Any, at: str) -> Compute:
        if isinstance(step, Mapping) and "$func" in step:
            raise self._error(at, "an element of $list is a $literal, $scalar or $list; $func has no value to work on")
        return self._step(step, at)

    def _scalar(self, path: str, at: str) -> Compute:
        parsed, prefix = read_path(path, self._place(at)), _prefix(at)
        hint = "" if parsed.singular else "; $list in $compute takes any number of them"

        def scalar(row: Any) -> Any:
            try:
                return parsed.get(row)
            except DataError as error:
                raise AdapterError(f"{prefix}{error}{hint}") from None

        if not parsed.steps or not all(isinstance(step, str) for step in parsed.steps):
            return scalar
        first, *rest = parsed.steps

        def field(row: Any) -> Any:
            try:
                value = row[first]
                for key in rest:
                    value = value[key]
                return value
            except (LookupError, TypeError):
                return scalar(row)

        return field

    def _scalar_or(self, path: str, default: Any, at: str) -> Compute:
        find, make_default, prefix = read_path(path, self._place(at)).find, _constant(default), _prefix(at)

        def scalar(row: Any) -> Any:
            values = find(row)
            if len(values) > 1:
                raise AdapterError(f"{prefix}{path}: {len(values)} values where one is needed; $list takes them all")
            return values[0] if values else make_default(row)

        return scalar

    def _function(self, step: Mapping[str, Any], at: str) -> Compute:
        name = step["$func"]
        if not isinstance(name, str) or name not in _FUNCTIONS:
            known = ", ".join(_FUNCTIONS)
            raise UnknownFunction(
                f"{self._place(at)}: no function is called {name!r}{nearest(str(name), _FUNCTIONS)}; known: {known}"
            )
        make, operand = _FUNCTIONS[name]
        arguments = {key: value for key, value in step.items() if key != "$func"}
        self._check_arguments(name, arguments, inspect.signature(make).parameters, at)
        try:
            function = make(**arguments)
        except (re.error, ValueError, IndexError, OverflowError, RecursionError) as error:
            shown = [f"{key} {value!r}"[:_MAX_CHARACTERS] for key, value in arguments.items() if key != "flags"]
            raise self._error(at, f"{name}: {' with '.join(shown)} is wrong: {error}") from None
        prefix = _prefix(at)

        def call(value: Any) -> Any:
            try:
                return function(value)
            except (TypeError, IndexError, re.error):
                raise WrongType(f"{prefix}{name} of {_describe(value)}: it works on {operand}") from None
            except DataError as error:  # the pattern takes too long
                raise AdapterError(f"{prefix}{name}: {error}") from None

        return call

    def _check_arguments(
        self, name: str, arguments: Mapping[str, Any], parameters: Mapping[str, inspect.Parameter], at: str
    ) -> None:
        for key in arguments:
            if key not in parameters:
                known = ", ".join(parameters) or "none"
                raise WrongArguments(
                    f"{self._place(at)}: {name} takes no {key!r}{nearest(str(key), parameters)}; it takes {known}"
                )
        missing = [
            key for key in parameters if parameters[key].default is inspect.Parameter.empty and key not in arguments
        ]
        if missing:
            raise WrongArguments(f"{self._place(at)}: {name} needs {', '.join(missing)}")
        for key, value in arguments.items():
            kinds, form = _TYPES.get(parameters[key].annotation, (object, ""))
            if form and (not isinstance(value, kinds) or isinstance(value, bool)):
                raise self._error(at, f"{name}: {key} is {value!r}; give {form}")
        if arguments.get("flags", 0) & ~_FLAGS:
            known = ", ".join(f"{flag.value} ({flag.name})" for flag in _FLAGS)
            raise self._error(at, f"{name}: flags is {arguments['flags']}; give a sum of {known}")

    def _place(self, at: str) -> str:
        return f"{self.name}: {at}" if at else self.name

    def _error(self, at: str, message: str) -> AdapterSpecError:
        return AdapterSpecError(f"{self._place(at)}: {message}")


def _prefix(at: str) -> str:
    return f"{at}: " if at else ""


def _constant(value: Any) -> Compute:
    """The same value for every row, or a copy per row where the value is mutable."""
    if isinstance(value, Mapping | list | tuple):
        value = copy.deepcopy(value)
        return lambda row: copy.deepcopy(value)
    return lambda row: value


# The functions: Python's functions of the same names and parameters


Expression = NewType("Expression", str)
_ABSENT: Any = object()


def _findall(pattern: Expression, flags: int = 0) -> Compute:
    find = LimitedPattern(pattern, flags).findall
    return lambda text: [list(groups) if isinstance(groups, tuple) else groups for groups in find(text)]


def _join(separator: str = "") -> Compute:
    return separator.join


def _reduce(default: Any = _ABSENT) -> Compute:
    if default is _ABSENT:
        return _add_up
    make_default = _constant(default)
    return lambda values: make_default(values) if isinstance(values, list | tuple) and not values else _add_up(values)


def _add_up(values: Any) -> Any:
    if isinstance(values, list) and values:  # adding one by one would copy each partial sum
        if all(isinstance(value, str) for value in values):
            return "".join(values)
        if all(isinstance(value, list) for value in values):
            return list(chain.from_iterable(values))
    return functools.reduce(operator.add, values)


def _search(pattern: Expression, flags: int = 0, group: int | str = 0, default: Any = None) -> Compute:
    expression = LimitedPattern(pattern, flags)
    known = expression.groupindex if isinstance(group, str) else range(expression.groups + 1)
    if group not in known:
        raise ValueError(f"it has no group {group!r}")
    search, make_default = expression.search, _constant(default)

    def first(text: Any) -> Any:
        match = search(text)
        value = None if match is None else match.group(group)  # also None where the group took no part
        return make_default(text) if value is None else value

    return first


def _split(pattern: Expression, maxsplit: int = 0, flags: int = 0) -> Compute:
    expression = LimitedPattern(pattern, flags)
    expression.split("", maxsplit)  # raises here for a number that it does not take
    return lambda text: expression.split(text, maxsplit)


def _sub(pattern: Expression, repl: str, count: int = 0, flags: int = 0) -> Compute:
    expression = LimitedPattern(pattern, flags)
    expression.sub(repl, "", count)  # raises here where `repl` names an unknown group
    return lambda text: expression.sub(repl, text, count)


_LOOKS_LIKE_PATH = re.compile(r"[A-Za-z_]\w*(\.\w+)*(\[(\d+|\*)\](\.\w+)*)+")
_MAX_CHARACTERS = 80
_MAX_KINDS = 3
_FLAGS = re.ASCII | re.IGNORECASE | re.MULTILINE | re.DOTALL | re.VERBOSE | re.UNICODE
_STEPS = ("$literal", "$scalar", "$list", "$func")
_LISTS = "a list of at least one number, text or list, all of one type, or on any list if it has a default"
_FUNCTIONS: dict[str, tuple[Callable[..., Compute], str]] = {
    "findall": (_findall, "text"),
    "join": (_join, "a list of texts"),
    "list": (lambda: list, "a list or a text"),
    "reduce": (_reduce, _LISTS),
    "search": (_search, "text"),
    "split": (_split, "text"),
    "sub": (_sub, "text"),
}
"""Name → what makes the function of its arguments, and what the function works on."""
_TYPES: dict[Any, tuple[Any, str]] = {
    Expression: (str, "a regular expression"),
    str: (str, "a text"),
    int: (int, "an integer"),
    int | str: (int | str, "a number or a name"),
}
"""The annotation of an argument → its types, and these in words."""


def _describe(value: Any) -> str:
    """What a value is; of a list also what its elements are."""
    if not isinstance(value, list | tuple):
        return kind_of(value)
    kinds = list(dict.fromkeys(map(kind_of, value)))
    if not kinds:
        return "an empty list"
    more = " and more" if len(kinds) > _MAX_KINDS else ""
    return f"a list of {' and '.join(kinds[:_MAX_KINDS])}{more}"
