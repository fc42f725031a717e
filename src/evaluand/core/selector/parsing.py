"""From text to the steps of a path, and the tests in `[?…]` (RFC 9535, sections 2.3.5 and 2.4).

    path       ['$'] step…
    step       .key  .*  ..key  ..*  [part, …]  ..[part, …]  .collect()
    part       'key'  "key"  place  start:stop:step  *  ?test
               (a quoted key may also follow the dots; in a path that begins with `$`, a name may be in brackets, as
               some write it)
    test       and-ed, or-ed, negated, parenthesised comparisons of paths from @ or $, literals, length(…), count(…) and
               value(…); or a path, match(…, pattern), search(…, pattern)

A path that begins with `$` is a JSONPath. It may be more than RFC 9535 allows: an unquoted key may begin with a digit
and contain `-` and `@`, a name in brackets may lack its quotes, and there is `.collect()`; `check_rfc9535` refuses
these. Without `$` a key is anything up to the next dot or bracket, and a `Member` at the beginning or after one dot.
"""

from __future__ import annotations

import json
import re
from typing import Any, Final

from evaluand.core.errors import SpecError, nearest
from evaluand.core.selector.filters import (
    FUNCTIONS,
    Call,
    Operand,
    Test,
    all_of,
    any_of,
    compared,
    exists,
    holds,
    negated,
)
from evaluand.core.selector.patterns import check_pattern
from evaluand.core.selector.steps import (
    WORD,
    Collect,
    Descend,
    Every,
    Filter,
    Member,
    Slice,
    Step,
    Union,
    keyed,
)

HINT: Final = "write it like a.b[0] or $['a.b'].c"

_ROOT: Final = re.compile(r"\$(?=[ \t\n\r]*[.\[]|\Z)")
_BLANKS: Final = re.compile(r"[ \t\n\r]+(?=[.\[])")
_BEYOND_ASCII: Final = r"(?![\ud800-\udfff])[^\x00-\x7f]"  # compiled in a tenth of the time of the range that it is
_NAME: Final = re.compile(rf"(?:[\w@\-]|{_BEYOND_ASCII})+")
_RFC_NAME: Final = re.compile(rf"(?:[A-Za-z_]|{_BEYOND_ASCII})(?:[0-9A-Za-z_]|{_BEYOND_ASCII})*")
_JSONPATH: Final = (_NAME, _RFC_NAME)
_BARE: Final = re.compile(r"[ \t\n\r]*([^\W\d][\w@-]*)[ \t\n\r]*(?=[\],])")
_LOOSE_NAME: Final = re.compile(r"[^.\[\]'\"]+")
_INTEGER: Final = r"[ \t\n\r]*(0|-?[1-9][0-9]*)?[ \t\n\r]*"
_SLICE: Final = re.compile(rf"{_INTEGER}:{_INTEGER}(?::{_INTEGER})?(?=[\],])")
_PLACE: Final = re.compile(r"[ \t\n\r]*(0|-?[1-9][0-9]*)[ \t\n\r]*(?=[\],])")
_COLLECT: Final = re.compile(r"collect\(\)(?=[.\[]|\Z)")
QUOTED: Final = re.compile(
    r"[ \t\n\r]*(?:'(?P<one>(?:[^'\\]|\\.)*)'|\"(?P<two>(?:[^\"\\]|\\.)*)\")[ \t\n\r]*", re.DOTALL
)
_NUMBER: Final = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_WORD: Final = re.compile(r"(?:true|false|null)\b")
_CALL: Final = re.compile(r"([a-z]\w*)\(")
_OPERATOR: Final = re.compile(r"[ \t\n\r]*(==|!=|<=|>=|<|>)[ \t\n\r]*")
_SURROGATE: Final = re.compile(r"[\ud800-\udfff]")
LITERALS: Final = {"true": True, "false": False, "null": None}
_DEEPEST: Final = 50
_MOST_DIGITS: Final = 400  # of a number: what a float can have before its point, less than the limit of Python
_MOST_PLACE: Final = 2**53 - 1  # RFC 9535, section 2.1: what every program represents exactly

_HINTS: Final = (
    (re.compile(r"[|,]"), "for several keys write $['a','b']; paths are not joined"),
    (re.compile(r"\.?`"), "functions between ` are not supported; write a computed value as $compute, and `this` as $"),
    (re.compile(r"\.\s*\["), "remove the dot before the bracket: $.a[0]"),
    (re.compile(r"\.\s"), "remove the blank after the dot"),
    (re.compile(r"\[[(/\\]|\s*~|\s+where\b"), "this is not part of RFC 9535; " + HINT),
)
"""What other libraries write with this beginning, and how to write it here."""

_SEVERAL_HINT: Final = "compare one value; for any of several write [?@.a[?@ > 1]], and value(@.a[*]) for the only one"
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
        return Reader(text, 1).all_steps(_NAME, first_bare=False)
    return Reader(text, 0).all_steps(_LOOSE_NAME, first_bare=True)


def check_rfc9535(text: str) -> None:
    """Refuse a path that is no JSONPath of RFC 9535, such as one that only this package and a few others read.

    Raises:
        SpecError: as `parse`.
    """
    if not text.startswith("$"):
        raise SpecError(f"{text!r} is not a JSONPath, which begins with $")
    Reader(text, 1, strict=True).all_steps(_RFC_NAME, first_bare=False)


def parse_words(text: str) -> tuple[Step, ...]:
    """The steps of a path without `$`, in which everything but words is in quotes; empty for an empty text.

    Raises:
        SpecError: as `parse`.
    """
    return Reader(text, 0).all_steps(WORD, first_bare=True)


class Reader:
    """Reads the text from a position on."""

    def __init__(self, text: str, place: int, *, strict: bool = False) -> None:
        self.text, self.place, self.strict = text, place, strict
        self._depth = self._filters = 0
        self._operands: list[Operand] = []  # the paths in the filter that is being read

    @property
    def _filter_name(self) -> re.Pattern[str]:
        return _RFC_NAME if self.strict else _NAME

    def fault(self, place: int | None = None, hint: str = "") -> SpecError:
        rest = self.text[self.place if place is None else place :]
        hint = hint or (_FILTER_HINT if self._filters or rest.startswith("[?") else _hint(rest))
        return SpecError(f"{_quote(self.text)} is not a path at {_quote(rest)}; {hint}")

    def all_steps(self, name: re.Pattern[str], *, first_bare: bool) -> tuple[Step, ...]:
        steps = self.steps(name, first_bare=first_bare)
        if self.place < len(self.text):
            raise self.fault()
        return steps

    def steps(self, name: re.Pattern[str], *, first_bare: bool) -> tuple[Step, ...]:
        steps: list[Step] = []
        while self.place < len(self.text):
            start = self.place
            if name in _JSONPATH:
                self._match(_BLANKS)
            if self._take(".."):
                steps.append(Descend())
                steps.append(self._bracket(name) if self._take("[") else self._name(name, start))
            elif self._take("["):
                steps.append(self._bracket(name))
            elif self._take("."):
                steps.append(Collect() if not self.strict and self._match(_COLLECT) else self._name(name, start))
            elif first_bare and not steps:
                steps.append(self._name(name, start))
            else:
                break
        return keyed(steps)

    def _name(self, name: re.Pattern[str], start: int) -> Step:
        key = str if name in _JSONPATH else Member
        found = name.match(self.text, self.place)
        if found and found[0] != "*":
            self.place = found.end()
            return key(found[0])
        if self._take("*"):
            return Every()
        if not self.strict and self.place > start and (quoted := self._match(QUOTED)):
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
        if found := self._match(QUOTED):
            return self._unescape(found, start)
        if found := self._match(_PLACE):
            return self._to_int(found[1], start)
        if found := self._match(_SLICE):
            first, last, step = (self._to_int(part, start) if part else None for part in found.groups())
            if step == 0 and name not in _JSONPATH:
                raise self.fault(start)
            return Slice(first, last, step)
        if name is _NAME and (found := self._match(_BARE)):
            return found[1]
        self._spaces()
        if self._take("*"):
            self._spaces()
            return Every()
        if self._take("?"):
            begin = self.place
            self._filters += 1
            outer, self._operands = self._operands, []
            test = self._parse_or()
            gaps = tuple(each.find_gap for each in self._operands)
            self._operands = outer
            self._filters -= 1
            return Filter(self.text[begin : self.place].strip(), test, gaps)
        raise self.fault(start)

    def _to_int(self, digits: str, start: int) -> int:
        if len(digits) > _MOST_DIGITS or abs(int(digits)) > _MOST_PLACE:
            raise self.fault(start, f"an index lies between -{_MOST_PLACE} and {_MOST_PLACE}")
        return int(digits)

    def _unescape(self, found: re.Match[str], start: int) -> str:
        one, two = found["one"], found["two"]
        inner = two if one is None else re.sub(r'\\(.)|"', _requote, one, flags=re.DOTALL)
        try:
            key = str(json.loads(f'"{inner}"'))
        except ValueError:
            raise self.fault(start, "write a control character with a backslash, such as \\n or \\u0001") from None
        if len(_SURROGATE.findall(key)) > len(_SURROGATE.findall(inner)):
            raise self.fault(start, "half of a surrogate pair is not a character; write both halves")
        return key

    # The tests of filters

    def _parse_or(self) -> Test:
        self._enter()
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
            self._enter()
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
                if isinstance(each, Operand) and not each.is_one_value:
                    raise self.fault(start, _SEVERAL_HINT)
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
            operand = Operand(path=self.steps(self._filter_name, first_bare=False), here=here)
            self._operands.append(operand)
            return operand
        if found := self._match(QUOTED):
            return Operand(literal=self._unescape(found, found.start()))
        if found := self._match(_NUMBER):
            return Operand(literal=self._to_number(found[0], found.start()))
        if found := self._match(_WORD):
            return Operand(literal=LITERALS[found[0]])
        raise self.fault()

    def _call(self, name: str, start: int) -> Call:
        if name not in FUNCTIONS:
            known = ", ".join(FUNCTIONS)
            raise self.fault(start, f"no function is called {name!r}{nearest(name, FUNCTIONS)}; known: {known}")
        self._enter()
        operands = [self._operand()]
        self._spaces()
        while self._take(","):
            operands.append(self._operand())
            self._spaces()
        function = FUNCTIONS[name]
        fit = all(_fits(each, function.reads_all) for each in operands)
        if len(operands) != function.operands or not fit or not self._take(")"):
            expected = "a path" if function.reads_all else "a text and a pattern" if function.is_test else "one value"
            raise self.fault(start, f"{name} takes {expected}")
        last = operands[-1]
        if function.is_test and isinstance(last, Operand) and isinstance(last.literal, str):
            self._check_pattern(last.literal, start)
        self._depth -= 1
        return Call(name, tuple(operands))

    # Reading

    def _enter(self) -> None:
        """Count one more level of nesting; leaving it is `self._depth -= 1`."""
        self._depth += 1
        if self._depth > _DEEPEST:
            raise self.fault()

    def _to_number(self, digits: str, start: int) -> Any:
        if len(digits) > _MOST_DIGITS:
            raise self.fault(start)
        return json.loads(digits)

    def _check_pattern(self, pattern: str, start: int) -> None:
        try:
            check_pattern(pattern)
        except SpecError as error:
            raise self.fault(start, str(error)) from None

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
        while self.text.startswith((" ", "\t", "\n", "\r"), self.place):
            self.place += 1


def _fits(operand: Operand | Call, reads_all: bool) -> bool:
    """Whether an operand is what a function takes: a path, or one value."""
    if reads_all:
        return isinstance(operand, Operand) and operand.path is not None
    return operand.is_one_value if isinstance(operand, Operand) else not operand.is_test


def _quote(text: str) -> str:
    """A text in quotes: its beginning, if it is long."""
    return repr(text) if len(text) <= _MOST_QUOTED else f"{text[:_MOST_QUOTED]!r}…"


_MOST_QUOTED: Final = 400


def _hint(rest: str) -> str:
    return next((hint for pattern, hint in _HINTS if pattern.match(rest)), HINT)


def _requote(found: re.Match[str]) -> Any:
    """The content of single quotes, escaped for double quotes."""
    return {'"': '\\"', "\\'": "'", '\\"': r"\x"}.get(found[0], found[0])  # JSON has no \x, and so refuses it
