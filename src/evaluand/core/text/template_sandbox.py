"""The sandbox in which templates are rendered: plain data in, text out, within limits.

A template may come from somebody else's experiment, so it can neither reach Python nor keep it busy:

    data        attributes are keys of objects; of methods only those of `_METHODS`; no files, no other templates
    repeatable  nothing random, no clock, so that the same row makes the same text
    bounded     every iteration, call and filter costs steps (`_MOST_STEPS`), by what it reads and makes, and no text
                gets longer than `_MOST_CHARACTERS`: what would multiply a text or a number is estimated before it is
                computed

Macros and blocks, in which text would grow unseen, are refused when the template is read.
"""

from __future__ import annotations

import html
import json
import re
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import date, time, timedelta
from decimal import Decimal
from functools import partial, wraps
from typing import Any, Final

from jinja2 import StrictUndefined, Undefined, nodes
from jinja2.exceptions import SecurityError
from jinja2.filters import FILTERS
from jinja2.runtime import Context, LoopContext
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.utils import Namespace
from jinja2.visitor import NodeTransformer

from evaluand.core.errors import kind_of

_MOST_STEPS: Final = 200_000
_MOST_CHARACTERS: Final = 8_000_000
_MOST_BITS: Final = 4096  # of a whole number
_MOST_DIGITS: Final = 100  # to round to
_WIDEST: Final = 10  # how much longer than allowed the estimated result of a filter may be
_PER_STEP: Final = 200  # characters that a filter reads or makes in one step
_COMPARED_PER_STEP: Final = 100_000  # pairs of characters that a method of `_SEARCHING` compares in one step


class RenderError(Exception):
    """A template cannot be rendered.

    Attributes:
        line: of the template; None if it is not known.
    """

    def __init__(self, message: str, line: int | None) -> None:
        super().__init__(message)
        self.line = line


class Program:
    """A template that is ready to be rendered.

    Args:
        text: its text, which has no faults.
    """

    def __init__(self, text: str) -> None:
        with _rendering():
            self._compiled = SANDBOX.from_string(_Counting().visit(SANDBOX.parse(text)))

    def render(self, values: Mapping[str, Any]) -> str:
        """The text with some values.

        Raises:
            RenderError: says why there is none.
        """
        pieces: list[str] = []
        length = 0
        with _rendering():
            for piece in self._compiled.generate(values):
                length += len(piece)
                _require_length(length)
                pieces.append(piece)
        return "".join(pieces)


class _LimitExceeded(Exception):
    """A template does more, or writes more, than a prompt needs."""


class _Sandbox(ImmutableSandboxedEnvironment):
    """The environment of all templates."""

    intercepted_binops = frozenset(("+", "*", "**", "%"))

    def __init__(self) -> None:
        super().__init__(
            undefined=StrictUndefined, autoescape=False, trim_blocks=True, lstrip_blocks=True, finalize=_text_of
        )
        self.globals = {"namespace": Namespace, "range": _range}
        self.filters = {name: _counted(function, name in _WIDENING) for name, function in _FILTERS.items()}
        tests: Mapping[str, Any] = self.tests
        self.tests = {name: _counted(function) for name, function in tests.items()}

    def call(__self, __context: Context, __obj: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: N805
        owner = getattr(__obj, "__self__", None)
        _charge((owner, args, kwargs))
        if isinstance(owner, str) and __obj.__name__ in _SEARCHING:
            _spend(_size(owner) * max(map(_size, (*args, *kwargs.values())), default=1) // _COMPARED_PER_STEP)
        return _charged(super().call(__context, __obj, *args, **kwargs))

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        _charge((left, right))
        _require_small(operator, left, right)
        if operator == "%" and isinstance(left, str):
            return _format(left, *(right if isinstance(right, tuple) else (right,)))
        return _charged(super().call_binop(context, operator, left, right))

    def getitem(self, obj: Any, argument: Any) -> Any:
        _charge(argument)
        return super().getitem(obj, argument)

    def getattr(self, obj: Any, attribute: str) -> Any:
        """A key of an object before a method of the same name: `row.items` are its items where it has such a key."""
        if isinstance(obj, Mapping) and attribute in obj:
            return obj[attribute]
        if isinstance(obj, str) and attribute in _METHODS_WITHIN_LIMITS:
            return partial(_METHODS_WITHIN_LIMITS[attribute], obj)
        return super().getattr(obj, attribute)

    def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:
        if isinstance(obj, Namespace):
            return not attr.startswith("_")
        return any(isinstance(obj, kind) and attr in names for kind, names in _METHODS.items())

    def unsafe_undefined(self, obj: Any, attribute: str) -> Undefined:
        return self.undefined(f"{attribute!r} of {kind_of(obj)} is not available", obj, attribute, SecurityError)


class _Counting(NodeTransformer):
    """Makes loops count their iterations; and comparisons, slices, keys and `~` what they read."""

    def visit_For(self, node: nodes.For) -> nodes.For:  # noqa: N802
        self.generic_visit(node)
        node.iter = _filtered(node.iter, _ITERATE)
        return node

    def visit_Concat(self, node: nodes.Concat) -> nodes.Filter:  # noqa: N802
        self.generic_visit(node)
        return _filtered(nodes.List(node.nodes, lineno=node.lineno), _CONCATENATE)

    def visit_Compare(self, node: nodes.Compare) -> nodes.Compare:  # noqa: N802
        self.generic_visit(node)
        node.expr = _filtered(node.expr, _PASS)
        return node

    def visit_Operand(self, node: nodes.Operand) -> nodes.Operand:  # noqa: N802
        self.generic_visit(node)
        node.expr = _filtered(node.expr, _PASS)
        return node

    def visit_Getitem(self, node: nodes.Getitem) -> nodes.Getitem:  # noqa: N802
        self.generic_visit(node)
        if isinstance(node.arg, nodes.Slice):
            node.node = _filtered(node.node, _PASS)
        return node

    def visit_Pair(self, node: nodes.Pair) -> nodes.Pair:  # noqa: N802
        self.generic_visit(node)
        node.key = _filtered(node.key, _PASS)
        return node


def _filtered(node: Any, name: str) -> nodes.Filter:
    return nodes.Filter(node, name, [], [], None, None, lineno=node.lineno)


@contextmanager
def _rendering() -> Iterator[None]:
    """A block in which a template is compiled (which computes its constants) or rendered, with a budget of steps."""
    token = _steps_left.set([_MOST_STEPS])
    try:
        yield
    except Exception as error:
        raise RenderError(str(error) or type(error).__name__, _line_of(error)) from None
    finally:
        _steps_left.reset(token)


def _line_of(error: BaseException) -> int | None:
    """The line of the template in which an error was raised."""
    frames = traceback.walk_tb(error.__traceback__)
    return next((line for frame, line in frames if frame.f_code.co_filename == "<template>"), None)


def _text_of(value: Any) -> Any:
    """A value as a template writes it: text as it is, lists, objects and truth values as JSON.

    Raises:
        ValueError: it is null.
    """
    if isinstance(value, str):
        return value
    if value is None:
        raise ValueError(_NULL)
    if isinstance(value, Undefined):
        return str(value)  # raises what it says about itself
    if isinstance(value, Iterator):  # of a filter such as map
        value = list(value)
    if isinstance(value, bool | list | tuple | Mapping):
        return _to_json(value)
    if isinstance(value, int | float | Decimal | date | time | timedelta):
        return str(value)
    raise TypeError(f"{type(value).__name__} is no data that can be written")


def _require_length(characters: int) -> None:
    if characters > _MOST_CHARACTERS:
        raise _LimitExceeded(f"makes a text of more than {_MOST_CHARACTERS:,} characters")


_steps_left: ContextVar[list[int]] = ContextVar("_steps_left")


def _spend(steps: int) -> None:
    left = _steps_left.get()
    left[0] -= steps
    if left[0] < 0:
        raise _LimitExceeded(f"takes more than {_MOST_STEPS:,} steps; shorten its loops")


def _charge(value: Any) -> None:
    """Spend what reading a value takes, with everything in it: lists may hold the same large list many times."""
    waiting = [value]
    while waiting:
        each = waiting.pop()
        _spend(1 + len(each) // _PER_STEP if isinstance(each, str) else 1)
        if isinstance(each, Mapping):
            waiting += each.values()
        elif isinstance(each, list | tuple):
            waiting += each


def _charged(made: Any) -> Any:
    """A text that was made, after its characters were spent: names and lists may hold many."""
    if isinstance(made, str):
        _charge(made)
    return made


def _size(value: Any) -> int:
    return len(value) if isinstance(value, str | list | tuple | Mapping) else 1


def _require_small(operator: str, left: Any, right: Any) -> None:
    """Refuse an operation whose result would be too large, before it is computed."""
    if isinstance(left, int) and isinstance(right, int):
        bits = {"*": left.bit_length() + right.bit_length(), "**": left.bit_length() * right}.get(operator, 0)
        if bits > _MOST_BITS:
            raise _LimitExceeded("computes a number of more than a thousand digits")
    elif operator in "+*":
        times = max([1, *(value for value in (left, right) if isinstance(value, int))])
        size = times * max(_size(left), _size(right)) if operator == "*" else _size(left) + _size(right)
        _require_length(size)
        _spend(0 if isinstance(left, str) or isinstance(right, str) else size)


def _counted(function: Callable[..., Any], widens: bool = False) -> Callable[..., Any]:
    """A filter or test that spends steps on what it reads.

    Args:
        widens: whether its result may be as long as the product of its value and an argument.
    """
    skipped = hasattr(function, "jinja_pass_arg")  # what Jinja passes first is no value

    @wraps(function)
    def counted(*args: Any, **kwargs: Any) -> Any:
        value, *others = (*args[skipped:], *kwargs.values())
        _charge((value, others))
        if widens:
            widths = [abs(other) if isinstance(other, int) else _size(other) for other in others]
            _require_length(max([1, *widths]) * max(1, _size(value)) // _WIDEST)
        result = _charged(function(*args, **kwargs))
        _require_length(len(result) if isinstance(result, str) else 0)
        return result

    return counted


def _iterate(values: Iterable[Any]) -> Iterator[Any]:
    """The values of a loop, each of which costs a step.

    Raises:
        TypeError: they are no list.
    """
    if isinstance(values, str):
        raise TypeError("a loop needs a list, not a text")
    if values is None:
        raise ValueError(_NULL)
    for value in values:
        _spend(1)
        yield value


def _range(*bounds: int) -> range:
    values = range(*bounds)
    if len(values) > _MOST_STEPS:
        raise _LimitExceeded(f"counts further than {_MOST_STEPS:,}")
    return values


def _concatenate(parts: Sequence[Any]) -> str:
    texts = [_text_of(part) for part in parts]
    _require_length(sum(map(len, texts)))
    return "".join(texts)


def _join(values: Iterable[Any], separator: str = "", attribute: str | None = None) -> str:
    """The texts of values, joined; of one attribute of each if it is named."""
    parts: list[str] = []
    length = 0
    for value in _iterate(values):
        parts.append(_text_of(value if attribute is None else value[attribute]))
        length += len(parts[-1]) + len(separator)
        _require_length(length)
    return separator.join(parts)


def _replace(text: Any, old: str, new: str, count: int = -1) -> str:
    text, new = _text_of(text), _text_of(new)
    found = text.count(old) if count < 0 else min(count, text.count(old))
    _require_length(len(text) + found * max(0, len(new) - len(old)))
    return str(text.replace(old, new, count))


def _format(text: str, *args: Any, **kwargs: Any) -> str:
    """The `%` formatting of Python, without wide columns."""
    if re.search(r"%[^a-zA-Z%]*(\d{4}|\*)", text):
        raise _LimitExceeded("pads to a column of a thousand characters or more")
    values = (*args, *kwargs.values())
    longest = max([1000, *(_size(_text_of(value)) for value in values)])
    _require_length(len(text) + text.count("%") * longest if longest > 1000 else 0)
    return text % (kwargs or args)


def _round(value: float, precision: int = 0) -> float:
    if abs(precision) > _MOST_DIGITS:
        raise _LimitExceeded(f"rounds to {precision} digits")
    return round(value, precision)


def _sum(values: Iterable[Any], attribute: str | None = None) -> Any:
    """The sum of numbers; of one attribute of each if it is named."""
    return sum(value if attribute is None else value[attribute] for value in _iterate(values))


def _trim(value: Any, chars: str | None = None) -> str:
    """A text without some characters at its ends, by default white space."""
    text = _text_of(value)
    _spend(len(text) * len(chars or "") // _COMPARED_PER_STEP)
    return str(text.strip(chars))


def _to_json(value: Any, indent: int | None = None) -> str:
    """JSON as a model reads it best: letters as they are."""
    _charge(value)
    text = json.dumps(value, ensure_ascii=False, indent=indent, default=_text_of)
    _require_length(len(text))
    return text


def _escape(value: Any) -> str:
    return html.escape(_text_of(value))


_NULL: Final = 'a value is null; write {{ VALUE or "" }} if it may be'
_ITERATE: Final = "iterate "  # with a blank, so that no template can name it
_CONCATENATE: Final = "concatenate "
_PASS: Final = "pass "
_WIDENING: Final = ("batch", "center", "indent", "slice", "tojson", "wordwrap")
"""Filters whose result may be as long as the product of their value and an argument."""

_OF_JINJA: Final = (
    "abs", "batch", "capitalize", "center", "count", "d", "default", "dictsort", "first", "float", "groupby", "indent",
    "int", "items", "last", "length", "list", "lower", "map", "max", "min", "reject", "rejectattr", "reverse", "select",
    "selectattr", "slice", "sort", "string", "title", "truncate", "unique", "upper", "wordcount", "wordwrap",
)  # fmt: skip
_FILTERS: Final[Mapping[str, Callable[..., Any]]] = {name: FILTERS[name] for name in _OF_JINJA} | {
    _ITERATE: _iterate,
    _CONCATENATE: _concatenate,
    _PASS: lambda value: value,
    "e": _escape,
    "escape": _escape,
    "format": _format,
    "join": _join,
    "replace": _replace,
    "round": _round,
    "string": _text_of,
    "sum": _sum,
    "tojson": _to_json,
    "trim": _trim,
}
FILTER_NAMES: Final = tuple(sorted(name for name in _FILTERS if name.isidentifier()))

_METHODS_WITHIN_LIMITS: Final[Mapping[str, Callable[..., str]]] = {
    "join": lambda separator, values: _join(values, separator),
    "replace": _replace,
}
_METHODS: Final[Mapping[Any, frozenset[str]]] = {
    str: frozenset(
        (
            "capitalize", "casefold", "count", "endswith", "find", "index", "isalnum", "isalpha", "isascii",
            "isdecimal", "isdigit", "islower", "isnumeric", "isspace", "istitle", "isupper", "lower", "lstrip",
            "partition", "removeprefix", "removesuffix", "rfind", "rindex", "rpartition", "rsplit", "rstrip", "split",
            "splitlines", "startswith", "strip", "swapcase", "title", "upper",
        )
    ),
    (Mapping, list, tuple): frozenset(("count", "get", "index", "items", "keys", "values")),
    LoopContext: frozenset(
        (
            "changed", "cycle", "depth", "depth0", "first", "index", "index0", "last", "length", "nextitem", "previtem",
            "revindex", "revindex0",
        )
    ),
}  # fmt: skip
"""What templates may use of data besides their keys, and of a loop."""

_SEARCHING: Final = frozenset(("lstrip", "rfind", "rindex", "rpartition", "rsplit", "rstrip", "strip"))
"""Methods that may compare each character of a text with each of their argument."""

SANDBOX: Final = _Sandbox()
