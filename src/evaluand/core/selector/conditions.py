"""The language of row filters, as data: `sex == "F" and age > 30`, with the paths and comparisons of JSONPath filters.

    filter     and-ed, or-ed, negated (not, !), parenthesised conditions; && and || are the same as `and` and `or`
    condition  operand (== != < <= > >=) operand;  path in [literal, …];  path not in [literal, …];  path;
               match(path, pattern), search(path, pattern)
    operand    path, literal, length(path), count(path), value(path)
    path       a column, or a path into one: age, person.sex, gold.answers[0]; also $['any name'].x and @.x

There are three values: a condition on a missing value is neither true nor false, and only true ones match. So `not`
turns no missing value into a match. `path == null` and `path != null` ask whether there is a value, and are never
unknown. A path alone is true where its value is true.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from evaluand.core.errors import SpecError
from evaluand.core.selector.filters import compare
from evaluand.core.selector.parsing import LITERALS, QUOTED, Reader
from evaluand.core.selector.patterns import contains, matches
from evaluand.core.selector.steps import Step, finder

MISSING: Final = None
"""The truth of a condition on a missing value, and the value that is missing."""


@dataclass(frozen=True)
class Path:
    """A path; its first step is the column.

    Attributes:
        text: as written, without `$.` and `@.`.
    """

    text: str
    steps: tuple[Step, ...]

    def value(self, row: Any) -> Any:
        found = self.find(row)
        return found[0] if len(found) == 1 else MISSING

    def find(self, row: Any) -> list[Any]:
        found = [row]
        for step in self.steps:
            found = finder(step)(found, row)
        return found


@dataclass(frozen=True)
class Literal:
    """A text, a number, true, false or null."""

    literal: Any

    def value(self, row: Any) -> Any:
        return self.literal


@dataclass(frozen=True)
class Function:
    """`length`, `count` or `value` of a path."""

    name: str
    path: Path

    def value(self, row: Any) -> Any:
        if self.name == "length":
            value = self.path.value(row)
            return len(value) if isinstance(value, str | list | dict) else MISSING
        found = self.path.find(row)
        return len(found) if self.name == "count" else found[0] if len(found) == 1 else MISSING


Operand = Path | Literal | Function


@dataclass(frozen=True)
class Comparison:
    """`left sign right`."""

    left: Operand
    sign: str
    right: Operand

    def test(self, row: Any) -> bool | None:
        a, b = self.left.value(row), self.right.value(row)
        if is_missing(a) or is_missing(b):
            return MISSING
        return compare(a, self.sign, b)


@dataclass(frozen=True)
class Presence:
    """`operand == null`, or `!=`."""

    operand: Operand
    missing: bool

    def test(self, row: Any) -> bool | None:
        return is_missing(self.operand.value(row)) == self.missing


@dataclass(frozen=True)
class Choice:
    """`operand in [literals]`."""

    operand: Operand
    literals: tuple[Any, ...]

    def test(self, row: Any) -> bool | None:
        value = self.operand.value(row)
        return MISSING if is_missing(value) else any(compare(value, "==", each) for each in self.literals)


@dataclass(frozen=True)
class Pattern:
    """`match(operand, pattern)` or `search(operand, pattern)`."""

    name: str
    operand: Operand
    pattern: str

    def test(self, row: Any) -> bool | None:
        value = self.operand.value(row)
        if is_missing(value):
            return MISSING
        return matches(value, self.pattern) if self.name == "match" else contains(value, self.pattern)


@dataclass(frozen=True)
class Truth:
    """A path alone."""

    path: Path

    def test(self, row: Any) -> bool | None:
        value = self.path.value(row)
        return value if isinstance(value, bool) else MISSING


@dataclass(frozen=True)
class Negation:
    """`not condition`."""

    condition: Condition

    def test(self, row: Any) -> bool | None:
        found = self.condition.test(row)
        return MISSING if found is None else not found


@dataclass(frozen=True)
class AllOf:
    """Conditions joined by `and`."""

    conditions: tuple[Condition, ...]

    def test(self, row: Any) -> bool | None:
        found = [each.test(row) for each in self.conditions]
        return False if False in found else MISSING if None in found else True


@dataclass(frozen=True)
class AnyOf:
    """Conditions joined by `or`."""

    conditions: tuple[Condition, ...]

    def test(self, row: Any) -> bool | None:
        found = [each.test(row) for each in self.conditions]
        return True if True in found else MISSING if None in found else False


Condition = Comparison | Presence | Choice | Pattern | Truth | Negation | AllOf | AnyOf


def is_missing(value: Any) -> bool:
    """Whether a value is null or not a number."""
    return value is None or (isinstance(value, float) and value != value)


def parse_condition(text: str) -> Condition:
    """The condition that a text says.

    Raises:
        SpecError: the text is no condition; says where, and what to write.
    """
    if not text.strip():
        raise SpecError('a filter must not be empty; write a condition, such as age > 30 and sex == "F"')
    return _ConditionReader(text, 0).condition()


def paths_in(condition: Condition) -> Iterator[Path]:
    """Every path of a condition."""
    if isinstance(condition, AllOf | AnyOf):
        for each in condition.conditions:
            yield from paths_in(each)
    elif isinstance(condition, Negation):
        yield from paths_in(condition.condition)
    elif isinstance(condition, Comparison):
        yield from (*_paths_of(condition.left), *_paths_of(condition.right))
    else:
        yield from _paths_of(condition.path if isinstance(condition, Truth) else condition.operand)


def _paths_of(operand: Operand) -> Iterator[Path]:
    if not isinstance(operand, Literal):
        yield operand if isinstance(operand, Path) else operand.path


_OR: Final = re.compile(r"\|\||or\b")
_AND: Final = re.compile(r"&&|and\b")
_NOT: Final = re.compile(r"!(?!=)|not\b")
_IN: Final = re.compile(r"(not[ \t\n\r]+)?in\b")
_SIGN: Final = re.compile(r"==|!=|<=|>=|<(?!>)|>")
_NUMBER: Final = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?(?![\w.])")
_WORD: Final = re.compile(r"(?:true|false|null)\b(?![.\[])")
_FUNCTION: Final = re.compile(r"(\w+)\(")
_COLUMN: Final = re.compile(r"\d*[^\W\d]\w*")
_KEY: Final = re.compile(r"\w+")
_RESERVED: Final = ("and", "or", "not", "in")
_ONE_EQUALS: Final = re.compile(r"=(?!=)")
_ELSEWHERE: Final = (
    (re.compile(r"=(?!=)"), "write == for equal"),
    (re.compile(r"<>"), "write != for not equal"),
    (re.compile(r"&|\|"), "write `and`, `or`"),
    (re.compile(r"is\b", re.IGNORECASE), "write == null, or != null"),
    (re.compile(r"(AND|OR|NOT|IN)\b"), "write and, or, not, in as small letters"),
    (re.compile(r"(like|~|=~)", re.IGNORECASE), 'for a pattern write search(name, "pattern")'),
)
"""What other languages write here, and how to write it."""


class _ConditionReader(Reader):
    """Reads a condition from left to right."""

    def fault(self, place: int | None = None, hint: str = "") -> SpecError:
        at = self.place if place is None else place
        rest = self.text[at:]
        if not hint:
            found = (hint for pattern, hint in _ELSEWHERE if pattern.match(rest.lstrip()))
            hint = next(found, 'write it like sex == "F" and age > 30')
        return SpecError(f"filter {self.text!r}: at {at + 1}: {repr(rest[:30]) if rest else 'the end'}; {hint}")

    def condition(self) -> Condition:
        found = self._read_or()
        if self.place < len(self.text):
            raise self.fault()
        return found

    def _read_or(self) -> Condition:
        self._enter()
        found = [self._read_and()]
        while self._match(_OR):
            found.append(self._read_and())
        self._depth -= 1
        return found[0] if len(found) == 1 else AnyOf(tuple(found))

    def _read_and(self) -> Condition:
        found = [self._read_unary()]
        while self._match(_AND):
            found.append(self._read_unary())
        return found[0] if len(found) == 1 else AllOf(tuple(found))

    def _read_unary(self) -> Condition:
        self._spaces()
        start = self.place
        found: Condition
        if self._match(_NOT):
            self._enter()
            found = Negation(self._read_unary())
            self._depth -= 1
        elif self._take("("):
            found = self._read_or()
            if not self._take(")"):
                raise self.fault(start, "the parenthesis is not closed")
        else:
            found = self._read_condition(start)
        self._spaces()
        return found

    def _read_condition(self, start: int) -> Condition:
        name = _FUNCTION.match(self.text, self.place)
        if name and name[1] in ("match", "search"):
            self.place = name.end()
            return self._read_pattern(name[1], start)
        left = self._read_operand()
        self._spaces()
        if sign := self._match(_SIGN):
            return self._read_comparison(left, sign[0], start)
        if found := self._match(_IN):
            choice = Choice(left, self._read_list())
            return Negation(choice) if found[1] else choice
        if isinstance(left, Path):
            return Truth(left)
        raise self.fault(self.place, "" if self.place < len(self.text) else "a comparison is expected, such as > 1")

    def _read_comparison(self, left: Operand, sign: str, start: int) -> Condition:
        right = self._read_operand()
        null = Literal(None)
        if null in (left, right):
            if sign not in ("==", "!="):
                raise self.fault(start, "null has no order; write == null, or != null")
            return Presence(right if left == null else left, sign == "==")
        if isinstance(left, Literal) and isinstance(right, Literal):
            raise self.fault(start, "compare a column with a value, or with another column")
        return Comparison(left, sign, right)

    def _read_operand(self) -> Operand:
        self._spaces()
        start = self.place
        if found := self._match(QUOTED):
            return Literal(self._unescape(found, start))
        if found := self._match(_NUMBER):
            return Literal(self._to_number(found[0], start))
        if found := self._match(_WORD):
            return Literal(LITERALS[found[0]])
        if found := self._match(_FUNCTION):
            return self._read_function(found[1], start)
        return self._read_path(start)

    def _read_path(self, start: int) -> Path:
        if self._take("$") or self._take("@"):
            steps = self.steps(_KEY, first_bare=False)
        elif (found := _COLUMN.match(self.text, self.place)) and found[0] not in _RESERVED:
            steps = self.steps(_KEY, first_bare=True)
        else:
            raise self.fault(start)
        steps = tuple(str(step) if isinstance(step, str) else step for step in steps)
        if not steps or not isinstance(steps[0], str):
            raise self.fault(start, "a path begins with a column")
        return Path(self.text[start : self.place].strip().removeprefix("$.").removeprefix("@."), steps)

    def _read_function(self, name: str, start: int) -> Function:
        if name not in ("length", "count", "value"):
            raise self.fault(start, "the functions are length, count, value, match and search")
        self._spaces()
        path = self._read_path(self.place)
        self._spaces()
        if not self._take(")"):
            raise self.fault(start, f"{name} takes one path")
        return Function(name, path)

    def _read_pattern(self, name: str, start: int) -> Pattern:
        operand = self._read_operand()
        self._spaces()
        if not self._take(","):
            raise self.fault(start, f"{name} takes a path and a pattern")
        pattern = self._read_operand()
        self._spaces()
        if not (isinstance(pattern, Literal) and isinstance(pattern.literal, str) and self._take(")")):
            raise self.fault(start, f'{name} takes a path and a pattern in quotes, as in {name}(name, "a.*")')
        self._check_pattern(pattern.literal, start)
        return Pattern(name, operand, pattern.literal)

    def _read_list(self) -> tuple[Any, ...]:
        self._spaces()
        start = self.place
        close = "]" if self._take("[") else ")" if self._take("(") else ""
        if not close:
            raise self.fault(start, 'write a list: in ["a", "b"]')
        found: list[Any] = []
        while True:
            each = self._read_operand()
            if not isinstance(each, Literal) or each.literal is None:
                raise self.fault(start, "a list contains texts, numbers, true and false")
            found.append(each.literal)
            self._spaces()
            if not self._take(","):
                break
        if not self._take(close):
            raise self.fault(start, f"the list is not closed by {close}")
        return tuple(found)
