"""What sets the names in a definition, and how they are used."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from evaluand.core.fingerprint.syntax import chain_of

PAIR = ("first", "second")  # of each item
PLAIN = frozenset(("is", "named", "each", "with", *PAIR))

_LOOKING_METHODS = frozenset(("copy", "count", "get", "index", "items", "keys", "values"))


class Setting(NamedTuple):
    """One place that sets a name.

    Attributes:
        how: the name `is` the value, also where it is `named` in passing; it is `each` of its items, the `first` or
            `second` of each, or what `with` gives for it; it is a `default`; it is an `import`. All else is `other`.
        value: the expression; None where there is none.
    """

    how: str
    value: ast.expr | None = None


Settings = Mapping[str, Sequence[Setting]]


def settings_in(node: ast.AST) -> Settings:
    """Everything inside some syntax that sets a name."""
    found: dict[str, list[Setting]] = defaultdict(list)
    told: dict[int, Setting] = {}
    for part in ast.walk(node):
        told |= {id(target): setting for target, setting in _told(part)}
        if part is not node and (name := _name_set(part)):
            found[name].append(told.get(id(part), Setting("other")))
    return found


def _name_set(node: ast.AST) -> str:
    """The name that some syntax sets; what is inside it sets its own."""
    if isinstance(node, ast.Name):
        return "" if isinstance(node.ctx, ast.Load) else node.id
    if isinstance(node, ast.arg):
        return node.arg
    if isinstance(node, ast.alias):
        return node.asname or node.name.partition(".")[0]
    if isinstance(node, ast.MatchMapping):
        return node.rest or ""
    named = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.ExceptHandler | ast.MatchAs | ast.MatchStar
    return (node.name or "") if isinstance(node, named) else ""


def _told(node: ast.AST) -> Iterator[tuple[ast.AST, Setting]]:
    """The targets in a statement of which it can be told what they are set to."""
    if isinstance(node, ast.Assign) and all(isinstance(target, ast.Name) for target in node.targets):
        yield from ((target, Setting("is", node.value)) for target in node.targets)
    elif isinstance(node, ast.AnnAssign) and node.value is not None:
        yield node.target, Setting("is", node.value)
    elif isinstance(node, ast.NamedExpr):
        yield node.target, Setting("named", node.value)
    elif isinstance(node, ast.For | ast.comprehension):
        if isinstance(node.target, ast.Tuple) and len(node.target.elts) == len(PAIR):
            yield from ((t, Setting(how, node.iter)) for t, how in zip(node.target.elts, PAIR, strict=True))
        yield node.target, Setting("each", node.iter)
    elif isinstance(node, ast.withitem) and node.optional_vars is not None:
        yield node.optional_vars, Setting("with", node.context_expr)
    elif isinstance(node, ast.arguments):
        positional = [*node.posonlyargs, *node.args]
        defaults = positional[len(positional) - len(node.defaults) :]
        values = (*node.defaults, *node.kw_defaults)
        yield from ((a, Setting("default", v)) for a, v in zip((*defaults, *node.kwonlyargs), values, strict=True) if v)
    elif isinstance(node, ast.Import | ast.ImportFrom):
        yield from ((alias, Setting("import")) for alias in node.names)


# -- uses


class Variables:
    """The variables of a definition. Those of functions inside it are taken for the same where they share a name."""

    def __init__(self, node: ast.AST, settings: Settings) -> None:
        self.uses: dict[str, set[int]] = defaultdict(set)
        self._shared = {name for part in ast.walk(node) for name in _shared_by(part)}
        values = {id(s.value): s.value for several in settings.values() for s in several if s.how in ("is", "default")}
        names: dict[int, list[str]] = defaultdict(list)
        for name, several in settings.items():
            for setting in several:
                names[id(setting.value)].append(name)
        self._settings = [(names[key], value) for key, value in values.items() if value is not None]
        for part in ast.walk(node):
            if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load):
                self.uses[part.id].add(id(part))

    def is_among(self, name: str, nodes: Collection[int]) -> bool:
        """Whether a variable is used, and only in these nodes."""
        uses = self.uses.get(name)
        return bool(uses) and name not in self._shared and all(use in nodes for use in uses or ())

    def follow(self, nodes: Collection[int], mark: Callable[[ast.expr], None]) -> None:
        """Marks what variables are set to that are used only in marked nodes, until there are no more."""
        waiting, before = self._settings, -1
        while len(waiting) != before:
            before, left = len(waiting), []
            for names, value in waiting:
                if all(self.is_among(name, nodes) for name in names):
                    mark(value)
                else:
                    left.append((names, value))
            waiting = left


def _shared_by(node: ast.AST) -> Iterator[str]:
    """The names that code elsewhere can use too: globals, and attributes of a class."""
    if isinstance(node, ast.Global | ast.Nonlocal):
        yield from node.names
    elif isinstance(node, ast.ClassDef):
        names = (part for part in ast.walk(node) if isinstance(part, ast.Name))
        yield from (name.id for name in names if isinstance(name.ctx, ast.Store))


def loose_in(node: ast.AST, seen_by: Callable[[ast.Call], Iterable[ast.expr]]) -> list[ast.Name | ast.Attribute]:
    """The names and attributes in some syntax that are not only looked at, so that a list of that name may change.

    Args:
        node: the syntax.
        seen_by: the arguments of a call that it only looks at.
    """
    kept = {id(inner) for part in ast.walk(node) for inner in _looked_at(part, seen_by)}
    return [part for part in names_loaded(node) if id(part) not in kept]


def names_loaded(node: ast.AST) -> Iterator[ast.Name | ast.Attribute]:
    """The names in some syntax whose values are taken, with their attributes."""
    for part in ast.walk(node):
        if isinstance(part, ast.Name | ast.Attribute) and isinstance(part.ctx, ast.Load) and chain_of(part):
            yield part


def _looked_at(node: ast.AST, seen_by: Callable[[ast.Call], Iterable[ast.expr]]) -> Sequence[ast.expr]:
    if isinstance(node, ast.For | ast.AsyncFor | ast.comprehension):
        return [node.iter]
    if isinstance(node, ast.Subscript):
        return [node.value] if isinstance(node.ctx, ast.Load) else []
    if isinstance(node, ast.Starred | ast.FormattedValue):
        return [node.value]
    if isinstance(node, ast.Compare):
        return [node.left, *node.comparators]
    if isinstance(node, ast.If | ast.While | ast.IfExp):
        return [node.test]
    if isinstance(node, ast.UnaryOp):
        return [node.operand]
    if isinstance(node, ast.BinOp):
        return [node.left, node.right]
    if isinstance(node, ast.Call):
        looks = isinstance(node.func, ast.Attribute) and node.func.attr in _LOOKING_METHODS
        return [
            node.func,
            *([node.func.value] if isinstance(node.func, ast.Attribute) and looks else []),
            *seen_by(node),
        ]
    return []
