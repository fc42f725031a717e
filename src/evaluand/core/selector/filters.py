"""The tests of filters: comparisons, operands and functions (RFC 9535, sections 2.3.5 and 2.4)."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from evaluand.core.placeholders import is_placeholder
from evaluand.core.selector.patterns import contains, matches
from evaluand.core.selector.steps import Step, finder, is_list

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

    @property
    def is_one_value(self) -> bool:
        """Whether there is at most one value: a literal, or a path of names and indices."""
        return self.path is None or all(isinstance(step, str | int) for step in self.path)

    def find(self, child: Any, root: Any) -> list[Any]:
        if self.path is None:
            return [self.literal]
        found = [child if self.here else root]
        for step in self.path:
            found = finder(step)(found, root)
        return found

    def find_gap(self, child: Any, root: Any) -> Any:
        """The placeholder that the path meets, so that its values are unknown; None where it meets none."""
        found = [child if self.here else root]
        gap = None
        for step in self.path or ():
            gap = gap or next(filter(is_placeholder, found), None)
            found = finder(step)(found, root)
        return gap or next(filter(is_placeholder, found), None)

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
        return compare(left.value(child, root), sign, right.value(child, root))

    return test


def compare(a: Any, sign: str, b: Any) -> bool:
    """Whether a comparison of two values is true."""
    if sign in ("==", "!="):
        return _equal(a, b) == (sign == "==")
    if _equal(a, b):
        return "=" in sign
    return _comparable(a, b) and bool(_ORDERS[sign](a, b))


def _equal(a: Any, b: Any) -> bool:
    """Whether two values are equal; true and false equal no number, also inside lists and objects."""
    if isinstance(a, bool) or isinstance(b, bool):
        return a is b
    if is_list(a) and is_list(b):
        return len(a) == len(b) and all(map(_equal, a, b))
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        return a.keys() == b.keys() and all(_equal(value, b[key]) for key, value in a.items())
    return bool(a == b)


def _comparable(a: Any, b: Any) -> bool:
    if isinstance(a, bool) or isinstance(b, bool):
        return False
    return any(isinstance(a, kind) and isinstance(b, kind) for kind in (int | float, str))


def _length(value: Any) -> Any:
    return len(value) if isinstance(value, str | Mapping) or is_list(value) else _NOTHING


def _value(found: Sequence[Any]) -> Any:
    return found[0] if len(found) == 1 else _NOTHING


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
    "match": Function(matches, 2, is_test=True),
    "search": Function(contains, 2, is_test=True),
}
