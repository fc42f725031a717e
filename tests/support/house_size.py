"""How large the rooms of a package are, and into how small pieces its functions are cut."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_DOCUMENTED = (ast.Module, ast.ClassDef, *_FUNCTIONS)
_MOST_SLACK = 1.08


@dataclass(frozen=True)
class Size:
    """The size of a package.

    Attributes:
        rooms: lines of code by folder, without docstrings, comments and blank lines; `(top)` stands beside the folders.
        used_once: the share of functions and methods whose name is used exactly once. Those with a decorator and
            dunders do not count; what an `__init__.py` names is used.
        p90_lines: nine of ten functions are this long at most, without their docstrings.
    """

    rooms: Mapping[str, int]
    used_once: float
    p90_lines: int

    @classmethod
    def of(cls, package: Path) -> Size:
        rooms: Counter[str] = Counter()
        uses: Counter[str] = Counter()
        functions, lengths, exported = [], [], set()
        for path in package.rglob("*.py"):
            text = path.read_text(encoding="utf-8")
            docstrings: list[ast.stmt] = []
            is_init = path.name == "__init__.py"
            for node in ast.walk(ast.parse(text)):
                kind = type(node)
                if kind is ast.Name:
                    uses[node.id] += 1
                elif kind is ast.Attribute:
                    uses[node.attr] += 1
                elif kind in _DOCUMENTED:
                    documented = [node.body[0]] if node.body and _is_text(node.body[0]) else []
                    docstrings += documented
                    if kind in _FUNCTIONS:
                        lengths.append(_line_count(node) - sum(map(_line_count, documented)))
                        if not node.decorator_list and not node.name.startswith("__"):
                            functions.append(node.name)
                elif is_init and kind is ast.Constant:
                    exported.add(node.value)
                elif is_init and kind is ast.alias:
                    exported.add(node.asname or node.name)
            parts = path.relative_to(package).parts
            rooms[parts[0] if len(parts) > 1 else "(top)"] += _code_lines(text, docstrings)
        once = sum(uses[name] == 1 and name not in exported for name in functions)
        return cls(rooms, once / max(1, len(functions)), sorted(lengths)[int(0.9 * len(lengths))] if lengths else 0)

    def faults(self, budgets: Mapping[str, Any]) -> list[str]:
        """A sentence for each budget that is exceeded, or that no longer holds anything back."""
        faults = []
        for room in sorted({*self.rooms, *budgets["rooms"]}):
            lines, most = self.rooms.get(room, 0), budgets["rooms"].get(room, 0)
            if lines > most:
                faults.append(
                    f"{room} has {lines:,} lines of code, {lines - most:,} above its budget of {most:,}; "
                    "remove some, or raise it and say in the commit why"
                )
            elif most > _MOST_SLACK * lines:
                faults.append(
                    f"{room} has only {lines:,} lines of code; lower its budget of {most:,} to {int(1.04 * lines):,}"
                )
        if self.used_once > budgets["used_once"]:
            faults.append(
                f"{self.used_once:.2%} of all functions are used once, more than {budgets['used_once']:.2%}; "
                "put one where it is used unless its name is worth it"
            )
        if self.p90_lines > budgets["p90_lines"]:
            faults.append(f"a tenth of all functions has more than {budgets['p90_lines']} lines ({self.p90_lines})")
        return faults


def _is_text(node: ast.stmt) -> bool:
    """Whether a statement is a text alone: a docstring, if it is the first one."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def _code_lines(text: str, docstrings: Iterable[ast.stmt]) -> int:
    skipped = {line for node in docstrings for line in range(node.lineno, node.lineno + _line_count(node))}
    lines = enumerate(map(str.strip, text.splitlines()), 1)
    return sum(bool(line) and not line.startswith("#") and number not in skipped for number, line in lines)


def _line_count(node: ast.stmt) -> int:
    return (node.end_lineno or node.lineno) - node.lineno + 1
