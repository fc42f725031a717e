"""From text to the steps of a path, and the tests in `[?…]` (RFC 9535, sections 2.3.5 and 2.4).

    path       ['$'] step…
    step       .key  .*  ..key  ..*  [part, …]  ..[part, …]  .collect()
    part       'key'  "key"  place  start:stop:step  *  ?test
               (a quoted key may also follow the dots; in a path that begins with `$`, a name may be in brackets, as
               some write it)
    test       and-ed, or-ed, negated, parenthesised comparisons of paths from @ or $, literals, length(…), count(…) and
               value(…); or a path, match(…, pattern), search(…, pattern)

In a path that begins with `$` an unquoted key is a name of letters, digits, `_`, `-` and `@` (RFC 9535 allows less),
and blanks are allowed before a step. Without `$` a key is anything up to the next dot or bracket, and a `Member` at the
beginning or after one dot.
"""

from __future__ import annotations

import json
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from evaluand.core.errors import SpecError, nearest
from evaluand.core.selector.steps import (
    NAME,
    WORD,
    Collect,
    Descend,
    Every,
    Filter,
    Member,
    Slice,
    Step,
    Union,
    finder,
    is_list,
    keyed,
)

Test = Callable[[Any, Any], bool]
"""(child, root of the data) → whether the child passes."""

_NOTHING: Final = object()
_ORDERS: Final = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}


@dataclass(frozen=True)
class Operand:
    """A literal, or a path from the child (`@`) or from the root (`$`)."""

    literal: Any = None
    path: tuple[Step, ...] | None = None
    here: bool = True

    def find(self, child: Any, root: Any) -> list[Any]:
        if self.path is None:
            return [self.literal]
        found = [child if self.here else root]
        for step in self.path:
            found = finder(step)(found, root)
        return found

    def value(self, child: Any, root: Any) -> Any:
        found = self.find(child, root)
        return found[0] if len(found) == 1 else _NOTHING


@dataclass(frozen=True)
class Call:
    """A function of operands, by its name in `FUNCTIONS`."""

    name: str
    operands: tuple[Operand | Call, ...]

    def value(self, child: Any, root: Any) -> Any:
        function = FUNCTIONS[self.name]
        if function.reads_all:
            return function.apply(*(each.find(child, root) for each in self.operands))  # type: ignore[union-attr]
        return function.apply(*(each.value(child, root) for each in self.operands))

    @property
    def is_test(self) -> bool:
        return FUNCTIONS[self.name].is_test


def exists(operand: Operand) -> Test:
    return lambda child, root: bool(operand.find(child, root))


def holds(call: Call) -> Test:
    return lambda child, root: bool(call.value(child, root))


def negated(test: Test) -> Test:
    return lambda child, root: not test(child, root)


def all_of(tests: Sequence[Test]) -> Test:
    return lambda child, root: all(test(child, root) for test in tests)


def any_of(tests: Sequence[Test]) -> Test:
    return lambda child, root: any(test(child, root) for test in tests)


def compared(left: Operand | Call, sign: str, right: Operand | Call) -> Test:
    """Two values that are both missing are equal; only two numbers or two texts have an order."""

    def test(child: Any, root: Any) -> bool:
        a, b = left.value(child, root), right.value(child, root)
        if sign in ("==", "!="):
            return _equal(a, b) == (sign == "==")
        if _equal(a, b):
            return "=" in sign
        return _comparable(a, b) and bool(_ORDERS[sign](a, b))

    return test


def _equal(a: Any, b: Any) -> bool:
    return isinstance(a, bool) == isinstance(b, bool) and bool(a == b)


def _comparable(a: Any, b: Any) -> bool:
    if isinstance(a, bool) or isinstance(b, bool):
        return False
    return any(isinstance(a, kind) and isinstance(b, kind) for kind in (int | float, str))


# Functions


def _length(value: Any) -> Any:
    return len(value) if isinstance(value, str | Mapping) or is_list(value) else _NOTHING


def _value(found: Sequence[Any]) -> Any:
    return found[0] if len(found) == 1 else _NOTHING


def _match(text: Any, expected: Any) -> bool:
    expression = _expression(text, expected)
    return expression is not None and expression.fullmatch(text) is not None


def _search(text: Any, expected: Any) -> bool:
    expression = _expression(text, expected)
    return expression is not None and expression.search(text) is not None


def _expression(text: Any, expected: Any) -> re.Pattern[str] | None:
    if not (isinstance(text, str) and isinstance(expected, str)):
        return None
    try:
        return pattern(expected)
    except (re.error, RecursionError, OverflowError):
        return None


@lru_cache(maxsize=256)
def pattern(text: str) -> re.Pattern[str]:
    """The Python pattern of a text, in which a dot matches no line break (RFC 9485)."""
    return re.compile(_DOT.sub(lambda found: found[1] or "[^\\n\\r]", text))


_DOT: Final = re.compile(r"(\\.|\[\^?\]?(?:\\.|[^\]\\])*\])|\.", re.DOTALL)


@dataclass(frozen=True)
class Function:
    """A function of RFC 9535.

    Attributes:
        apply: the computation, with one argument per operand.
        reads_all: whether each argument is the list of all values at a path.
        is_test: whether the result is true or false.
    """

    apply: Callable[..., Any]
    operands: int = 1
    reads_all: bool = False
    is_test: bool = False


FUNCTIONS: Final[Mapping[str, Function]] = {
    "length": Function(_length),
    "count": Function(len, reads_all=True),
    "value": Function(_value, reads_all=True),
    "match": Function(_match, 2, is_test=True),
    "search": Function(_search, 2, is_test=True),
}


HINT: Final = "write it like a.b[0] or $['a.b'].c"

_ROOT: Final = re.compile(r"\$(?=[ \t\n\r]*[.\[]|\Z)")
_BLANKS: Final = re.compile(r"[ \t\n\r]+(?=[.\[])")
_BARE: Final = re.compile(r"\s*([^\W\d][\w@-]*)\s*(?=[\],])")
_LOOSE_NAME: Final = re.compile(r"[^.\[\]'\"]+")
_SLICE: Final = re.compile(r"\s*(-?\d+)?\s*:\s*(-?\d+)?\s*(?::\s*(-?\d+)?\s*)?(?=[\],])")
_PLACE: Final = re.compile(r"\s*(-?(?:0|[1-9]\d*))\s*(?=[\],])")
_COLLECT: Final = re.compile(r"collect\(\)(?=[.\[]|\Z)")
_QUOTED: Final = re.compile(r"\s*(?:'(?P<one>(?:[^'\\]|\\.)*)'|\"(?P<two>(?:[^\"\\]|\\.)*)\")\s*", re.DOTALL)
_NUMBER: Final = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?")
_WORD: Final = re.compile(r"(?:true|false|null)\b")
_CALL: Final = re.compile(r"([a-z]\w*)\(")
_OPERATOR: Final = re.compile(r"\s*(==|!=|<=|>=|<|>)\s*")
_WORDS: Final = {"true": True, "false": False, "null": None}
_DEEPEST: Final = 50
_MOST_DIGITS: Final = 400  # of a number: what a float can have before its point, less than the limit of Python

_HINTS: Final = (
    (re.compile(r"[|,]"), "for several keys write $['a','b']; paths are not joined"),
    (re.compile(r"\.?`"), "functions between ` are not supported; write a computed value as $compute, and `this` as $"),
    (re.compile(r"\.\s*\["), "remove the dot before the bracket: $.a[0]"),
    (re.compile(r"\.\s"), "remove the blank after the dot"),
    (re.compile(r"\[[(/\\]|\s*~|\s+where\b"), "this is not part of RFC 9535; " + HINT),
)
"""What other libraries write with this beginning, and how to write it here."""

_FILTER_HINT: Final = "a filter is a test of values, in which a key of each is written with @: [?@.score > 0.5]"


def is_jsonpath(text: str) -> bool:
    """Whether a text is a JSONPath, and not a key that contains a `$`."""
    return _ROOT.match(text) is not None


def parse(text: str) -> tuple[Step, ...]:
    """The steps of a path.

    Raises:
        SpecError: the text is not a path; the message says where the fault is.
    """
    if is_jsonpath(text):
        return _Reader(text, 1).all_steps(NAME, first_bare=False)
    return _Reader(text, 0).all_steps(_LOOSE_NAME, first_bare=True)


def parse_words(text: str) -> tuple[Step, ...]:
    """The steps of a path without `$`, in which everything but words is in quotes; empty for an empty text.

    Raises:
        SpecError: as `parse`.
    """
    return _Reader(text, 0).all_steps(WORD, first_bare=True)


class _Reader:
    """Reads the text from a position on."""

    def __init__(self, text: str, place: int) -> None:
        self.text, self.place = text, place
        self._depth = self._filters = 0

    def fault(self, place: int | None = None, hint: str = "") -> SpecError:
        rest = self.text[self.place if place is None else place :]
        hint = hint or (_FILTER_HINT if self._filters or rest.startswith("[?") else _hint(rest))
        return SpecError(f"{self.text!r} is not a path at {rest!r}; {hint}")

    def all_steps(self, name: re.Pattern[str], *, first_bare: bool) -> tuple[Step, ...]:
        steps = self.steps(name, first_bare=first_bare)
        if self.place < len(self.text):
            raise self.fault()
        return steps

    def steps(self, name: re.Pattern[str], *, first_bare: bool) -> tuple[Step, ...]:
        steps: list[Step] = []
        while self.place < len(self.text):
            start = self.place
            if name is NAME:
                self._match(_BLANKS)
            if self._take(".."):
                steps.append(Descend())
                steps.append(self._bracket(name) if self._take("[") else self._name(name, start))
            elif self._take("["):
                steps.append(self._bracket(name))
            elif self._take("."):
                steps.append(Collect() if self._match(_COLLECT) else self._name(name, start))
            elif first_bare and not steps:
                steps.append(self._name(name, start))
            else:
                break
        return keyed(steps)

    def _name(self, name: re.Pattern[str], start: int) -> Step:
        key = str if name is NAME else Member
        found = name.match(self.text, self.place)
        if found and found[0] != "*":
            self.place = found.end()
            return key(found[0])
        if self._take("*"):
            return Every()
        if self.place > start and (quoted := self._match(_QUOTED)):
            return key(self._unescape(quoted, start))
        raise self.fault(start)

    def _bracket(self, name: re.Pattern[str]) -> Step:
        start = self.place - 1
        parts = [self._part(name, start)]
        while self._take(","):
            parts.append(self._part(name, start))
        if not self._take("]"):
            raise self.fault(start)
        return parts[0] if len(parts) == 1 else Union(tuple(parts))

    def _part(self, name: re.Pattern[str], start: int) -> str | int | Every | Slice | Filter:
        if found := self._match(_QUOTED):
            return self._unescape(found, start)
        if found := self._match(_PLACE):
            return self._to_int(found[1], start)
        if found := self._match(_SLICE):
            first, last, step = (self._to_int(part, start) if part else None for part in found.groups())
            if step == 0:
                raise self.fault(start)
            return Slice(first, last, step)
        if name is NAME and (found := self._match(_BARE)):
            return found[1]
        self._spaces()
        if self._take("*"):
            self._spaces()
            return Every()
        if self._take("?"):
            begin = self.place
            self._filters += 1
            test = self._parse_or()
            self._filters -= 1
            return Filter(self.text[begin : self.place].strip(), test)
        raise self.fault(start)

    def _to_int(self, digits: str, start: int) -> int:
        if len(digits) > _MOST_DIGITS:
            raise self.fault(start)
        return int(digits)

    def _unescape(self, found: re.Match[str], start: int) -> str:
        one, two = found["one"], found["two"]
        inner = two if one is None else re.sub(r'\\(.)|"', _requote, one, flags=re.DOTALL)
        try:
            return str(json.loads(f'"{inner}"', strict=False))
        except ValueError:
            raise self.fault(start) from None

    # The tests of filters

    def _parse_or(self) -> Test:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise self.fault()
        tests = [self._parse_and()]
        while self._take("||"):
            tests.append(self._parse_and())
        self._depth -= 1
        return tests[0] if len(tests) == 1 else any_of(tests)

    def _parse_and(self) -> Test:
        tests = [self._parse_unary()]
        while self._take("&&"):
            tests.append(self._parse_unary())
        return tests[0] if len(tests) == 1 else all_of(tests)

    def _parse_unary(self) -> Test:
        self._spaces()
        start = self.place
        if self._take("!"):
            self._depth += 1
            if self._depth > _DEEPEST:
                raise self.fault()
            test = negated(self._parse_unary())
            self._depth -= 1
        elif self._take("("):
            test = self._parse_or()
            if not self._take(")"):
                raise self.fault(start)
        else:
            test = self._parse_comparison(start)
        self._spaces()
        return test

    def _parse_comparison(self, start: int) -> Test:
        left = self._operand()
        if found := self._match(_OPERATOR):
            right = self._operand()
            for each in (left, right):
                if isinstance(each, Call) and each.is_test:
                    raise self.fault(start, f"{each.name}(…) is true or false; do not compare it")
            return compared(left, found[1], right)
        if isinstance(left, Operand):
            if left.path is None:
                raise self.fault(start)
            return exists(left)
        if not left.is_test:
            raise self.fault(start, f"{left.name}(…) is a value; compare it, as in {left.name}(@.a) > 1")
        return holds(left)

    def _operand(self) -> Operand | Call:
        self._spaces()
        if found := self._match(_CALL):
            return self._call(found[1], found.start())
        if self.text[self.place : self.place + 1] in ("@", "$") and self.place < len(self.text):
            here = self.text[self.place] == "@"
            self.place += 1
            return Operand(path=self.steps(NAME, first_bare=False), here=here)
        if found := self._match(_QUOTED):
            return Operand(literal=self._unescape(found, found.start()))
        if found := self._match(_NUMBER):
            if len(found[0]) > _MOST_DIGITS:
                raise self.fault(found.start())
            return Operand(literal=json.loads(found[0]))
        if found := self._match(_WORD):
            return Operand(literal=_WORDS[found[0]])
        raise self.fault()

    def _call(self, name: str, start: int) -> Call:
        if name not in FUNCTIONS:
            known = ", ".join(FUNCTIONS)
            raise self.fault(start, f"no function is called {name!r}{nearest(name, FUNCTIONS)}; known: {known}")
        self._depth += 1
        if self._depth > _DEEPEST:
            raise self.fault()
        operands = [self._operand()]
        self._spaces()
        while self._take(","):
            operands.append(self._operand())
            self._spaces()
        function = FUNCTIONS[name]
        fit = not function.reads_all or all(isinstance(each, Operand) and each.path is not None for each in operands)
        if len(operands) != function.operands or not fit or not self._take(")"):
            expected = "a path" if function.reads_all else "a text and a pattern" if function.is_test else "a value"
            raise self.fault(start, f"{name} takes {expected}")
        last = operands[-1]
        if function.is_test and isinstance(last, Operand) and isinstance(last.literal, str):
            try:
                pattern(last.literal)
            except (re.error, RecursionError, OverflowError) as error:
                raise self.fault(start, f"{last.literal!r} is not a Python pattern: {error}") from None
        self._depth -= 1
        return Call(name, tuple(operands))

    # Reading

    def _take(self, token: str) -> bool:
        if self.text.startswith(token, self.place):
            self.place += len(token)
            return True
        return False

    def _match(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        found = pattern.match(self.text, self.place)
        if found:
            self.place = found.end()
        return found

    def _spaces(self) -> None:
        while self.text[self.place : self.place + 1].isspace():
            self.place += 1


def _hint(rest: str) -> str:
    return next((hint for pattern, hint in _HINTS if pattern.match(rest)), HINT)


def _requote(found: re.Match[str]) -> Any:
    """The content of single quotes, escaped for double quotes."""
    return {'"': '\\"', "\\'": "'"}.get(found[0], found[0])
