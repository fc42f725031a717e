"""The tests within `[?…]` (RFC 9535, section 2.3.5): comparisons of paths and literals."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from evaluand.selector.steps import Step, Union

Test = Callable[[Any, Any], bool]
"""Whether a child passes, given the child and the root of the data."""

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
            found = (Union((step,)) if isinstance(step, str | int) else step).find(found, root)
        return found

    def value(self, child: Any, root: Any) -> Any:
        found = self.find(child, root)
        return found[0] if len(found) == 1 else _NOTHING


def exists(operand: Operand) -> Test:
    return lambda child, root: bool(operand.find(child, root))


def negated(test: Test) -> Test:
    return lambda child, root: not test(child, root)


def all_of(tests: Sequence[Test]) -> Test:
    return lambda child, root: all(test(child, root) for test in tests)


def any_of(tests: Sequence[Test]) -> Test:
    return lambda child, root: any(test(child, root) for test in tests)


def compared(left: Operand, sign: str, right: Operand) -> Test:
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
