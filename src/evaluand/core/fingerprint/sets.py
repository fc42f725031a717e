"""Where code turns a set into a sequence: the order of texts in a set is another in each process.

Python mixes a random number into the hash of texts, unless `PYTHONHASHSEED` is set. So a list, a text, a loop, the
largest of several by a key, or `pop` made from a set may give another answer each time. What does not depend on the
order is let pass: `sorted` without a key, `len`, `in`, `min`, `max`, `any`, `all`, and making another set.
"""

from __future__ import annotations

import ast
import os
import types
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from evaluand.core.fingerprint.homes import MISSING
from evaluand.core.fingerprint.names import CodeNames, static_attribute
from evaluand.core.fingerprint.parts import Place
from evaluand.core.fingerprint.syntax import Definition, chain_of
from evaluand.core.fingerprint.wrapping import innermost

MAX_DEPTH = 6  # variables and functions followed to find out what an expression is

_MAKERS = frozenset(("builtins.frozenset", "builtins.set"))
_ORDER_FREE = frozenset(
    f"builtins.{n}" for n in str.split("all any bool frozenset isinstance len max min set sorted type")
)
_LAZY = frozenset(f"builtins.{name}" for name in ("filter", "list", "map", "tuple"))
_KEYED = frozenset(("builtins.max", "builtins.min", "builtins.sorted"))
_COUNTS = frozenset(("builtins.bool", "builtins.int", "builtins.len"))
_SET_METHODS = frozenset(("copy", "difference", "intersection", "symmetric_difference", "union"))
_TAKING_SETS = _SET_METHODS | frozenset(
    [
        "add",
        "append",
        "count",
        "difference_update",
        "discard",
        "get",
        "intersection_update",
        "isdisjoint",
        "issubset",
        "issuperset",
        "remove",
        "setdefault",
        "symmetric_difference_update",
        "update",
    ]
)
_VIEWS = frozenset(("items", "keys"))
_ANNOTATIONS = frozenset(("AbstractSet", "FrozenSet", "MutableSet", "Set", "frozenset", "set"))


def hash_seed() -> str | None:
    """The number that Python mixes into hashes, where it is the same in each process."""
    seed = os.environ.get("PYTHONHASHSEED", "")
    return seed if seed.isdigit() else None


@dataclass
class Scope:
    """A definition, to be looked at once all that is reached has been met."""

    function: types.FunctionType
    node: Definition
    names: CodeNames
    place: Place
    owner: Any = MISSING


@dataclass
class Sets:
    """The sets of one traversal.

    Attributes:
        scopes: a function's `id` → its definition.
        calls: a function's `id` → the calls of it, with where they are and how many arguments precede its own.
        attributes: the names of attributes that hold sets.
    """

    scopes: dict[int, Scope] = field(default_factory=dict)
    calls: dict[int, list[tuple[Scope, ast.Call, int]]] = field(default_factory=dict)
    attributes: set[str] = field(default_factory=set)

    def note_value(self, name: str, value: Any) -> None:
        """Takes note of an attribute's value."""
        if _is_unordered(value):
            self.attributes.add(name)

    def note(self, scope: Scope) -> None:
        """Takes note of a definition: of whom it calls, and which attributes it sets."""
        self.scopes[id(scope.function)] = scope
        for part in ast.walk(scope.node):
            if isinstance(part, ast.Call) and (callee := _callee(scope, part.func)):
                self.calls.setdefault(id(callee[0]), []).append((scope, part, callee[1]))

    def unordered_uses(self) -> Iterator[tuple[Scope, ast.expr]]:
        """The places in which the order of a set counts."""
        for _ in range(2):  # an attribute may be set from another one
            for scope in self.scopes.values():
                self.attributes |= {name for name, value in _attributes_set(scope.node) if self._is_set(value, scope)}
        for scope in self.scopes.values():
            for node in scope.node.body if isinstance(scope.node.body, list) else [scope.node.body]:
                yield from ((scope, found) for found in self._uses(node, scope, free=False))

    # -- uses

    def _uses(self, node: ast.AST, scope: Scope, free: bool) -> Iterator[ast.expr]:
        """The sets in some syntax whose order counts; `free` says that what this gives is taken without an order."""
        if isinstance(node, ast.Call):
            yield from self._uses_of_call(node, scope, free)
            return
        if isinstance(node, ast.ListComp | ast.GeneratorExp | ast.SetComp | ast.DictComp):
            free = free or isinstance(node, ast.SetComp)
            if not free:
                yield from (each.iter for each in node.generators if self._is_set(each.iter, scope))
        else:
            yield from (each for each in _in_order(node) if self._is_set(each, scope))
        for child in ast.iter_child_nodes(node):
            yield from self._uses(child, scope, free=False)

    def _uses_of_call(self, node: ast.Call, scope: Scope, free: bool) -> Iterator[ast.expr]:
        full = scope.names.named(node.func)
        keyed = full in _KEYED and any(keyword.arg == "key" for keyword in node.keywords)
        orderless = full in _ORDER_FREE and not keyed
        arguments = [*node.args, *(keyword.value for keyword in node.keywords)]
        if not (orderless or (free and full in _LAZY) or self._takes_sets(node, scope, full)):
            yield from (each for each in arguments if self._is_set(each, scope))
        if isinstance(node.func, ast.Attribute):
            if node.func.attr == "pop" and not arguments and self._is_set(node.func.value, scope):
                yield node.func.value
            yield from self._uses(node.func.value, scope, free=False)
        counts = full == "builtins.sum" and arguments and _is_count(arguments[0], scope.names)
        for each in arguments:
            yield from self._uses(each, scope, free=orderless or bool(counts) or (free and full in _LAZY))

    def _takes_sets(self, node: ast.Call, scope: Scope, full: str) -> bool:
        """Whether a call ignores the order of a set argument, or its function is checked as well."""
        if _callee(scope, node.func) is not None:
            return True
        method = node.func.attr if isinstance(node.func, ast.Attribute) else ""
        return method in _TAKING_SETS and (not full or full.startswith("builtins."))

    # -- what is a set

    def _is_set(self, node: ast.expr | None, scope: Scope, depth: int = MAX_DEPTH) -> bool:
        if node is None or not depth:
            return False
        if isinstance(node, ast.SetComp):
            return True
        if isinstance(node, ast.Set):
            return not all(isinstance(each, ast.Constant) and isinstance(each.value, int) for each in node.elts)
        if isinstance(node, ast.Call):
            return self._gives_set(node, scope, depth - 1)
        if isinstance(node, ast.BinOp):
            return self._is_set_operation(node, scope, depth - 1)
        if isinstance(node, ast.BoolOp):
            return any(self._is_set(each, scope, depth - 1) for each in node.values)
        if isinstance(node, ast.IfExp):
            return any(self._is_set(each, scope, depth - 1) for each in (node.body, node.orelse))
        if isinstance(node, ast.Await | ast.NamedExpr):
            return self._is_set(node.value, scope, depth - 1)
        if isinstance(node, ast.Subscript):
            return self._holds_sets(node.value, scope)
        return self._names_set(node, scope, depth - 1)

    def _gives_set(self, node: ast.Call, scope: Scope, depth: int) -> bool:
        if scope.names.named(node.func) in _MAKERS:
            return True
        if isinstance(node.func, ast.Attribute) and node.func.attr in _SET_METHODS:
            return self._is_set(node.func.value, scope, depth)
        callee = _callee(scope, node.func)
        inner = self.scopes.get(id(callee[0])) if callee else None
        if inner is None:
            return False
        body = inner.node.body
        if not isinstance(body, list):
            return self._is_set(body, inner, depth)
        returned = (part.value for part in ast.walk(inner.node) if isinstance(part, ast.Return))
        return any(self._is_set(value, inner, depth) for value in returned)

    def _is_set_operation(self, node: ast.BinOp, scope: Scope, depth: int) -> bool:
        if not isinstance(node.op, ast.BitAnd | ast.BitOr | ast.BitXor | ast.Sub):
            return False
        return any(self._is_set(side, scope, depth) or _is_view(side) for side in (node.left, node.right))

    def _names_set(self, node: ast.expr, scope: Scope, depth: int) -> bool:
        if isinstance(node, ast.Name) and scope.names.is_local(node.id):
            values = scope.names.settings[node.id]
            return any(self._is_set(value, scope, depth) for value in values) or self._is_given_set(
                node.id, scope, depth
            )
        chain = chain_of(node)
        value = scope.names.resolve(chain)[0] if chain else MISSING
        if value is MISSING and isinstance(node, ast.Attribute):
            return node.attr in self.attributes
        return _is_unordered(value)

    def _is_given_set(self, name: str, scope: Scope, depth: int) -> bool:
        """Whether a parameter is declared as a set, or gets one in a call."""
        arguments = scope.node.args
        positional = [*arguments.posonlyargs, *arguments.args]
        declared = next((each for each in (*positional, *arguments.kwonlyargs) if each.arg == name), None)
        if declared is None:
            return False
        if declared.annotation is not None and _is_set_annotation(declared.annotation):
            return True
        place = next((i for i, each in enumerate(positional) if each.arg == name), None)
        for caller, call, before in self.calls.get(id(scope.function), ()):
            values = [keyword.value for keyword in call.keywords if keyword.arg == name]
            if place is not None and 0 <= place - before < len(call.args):
                values.append(call.args[place - before])
            if any(self._is_set(value, caller, depth) for value in values):
                return True
        return False

    def _holds_sets(self, node: ast.expr, scope: Scope) -> bool:
        """Whether the values of a dictionary or list are sets."""
        if isinstance(node, ast.Name) and scope.names.is_local(node.id):
            made = (value for value in scope.names.settings[node.id] if isinstance(value, ast.Call))
            return any(scope.names.named(arg) in _MAKERS for call in made for arg in call.args)
        chain = chain_of(node)
        value: Any = scope.names.resolve(chain)[0] if chain else MISSING
        held = dict.values(value) if issubclass(type(value), dict) else value
        return any(map(_is_unordered, held)) if held is not value or type(value) in (list, tuple) else False


def _callee(scope: Scope, function: ast.expr) -> tuple[Any, int] | None:
    """The first-party function that is called, and how many arguments precede those of the call."""
    chain = chain_of(function)
    value = scope.names.resolve(chain)[0] if chain else MISSING
    bound = 0
    if value is MISSING and len(chain) == 2 and scope.owner is not MISSING:
        value, bound = static_attribute(scope.owner, chain[1]), 1
    if type(value) is types.MethodType:
        value, bound = value.__func__, 1
    inner = innermost(value)
    return (inner, bound) if type(inner) is types.FunctionType and scope.names.is_ours(inner) else None


def _in_order(node: ast.AST) -> list[ast.expr]:
    """The expressions that a piece of syntax takes in their order."""
    if isinstance(node, ast.For | ast.AsyncFor):
        return [node.iter]
    if isinstance(node, ast.Starred | ast.FormattedValue | ast.YieldFrom):
        return [node.value]
    if isinstance(node, ast.Assign) and any(isinstance(target, ast.Tuple | ast.List) for target in node.targets):
        return [node.value]
    if isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Add):
        return [node.value]
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod):
        return [node.right]
    return []


def _attributes_set(node: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    for part in ast.walk(node):
        targets = part.targets if isinstance(part, ast.Assign) else [getattr(part, "target", None)]
        value = getattr(part, "value", None)
        if isinstance(part, ast.Assign | ast.AnnAssign | ast.AugAssign) and value is not None:
            yield from ((target.attr, value) for target in targets if isinstance(target, ast.Attribute))


def _is_unordered(value: Any) -> bool:
    """Whether a value is a set whose order differs between processes: numbers keep theirs."""
    return issubclass(type(value), set | frozenset) and not all(type(item) in (int, float, bool) for item in value)


def _is_view(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _VIEWS


def _is_set_annotation(node: ast.expr) -> bool:
    named = {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}
    named |= {part.attr for part in ast.walk(node) if isinstance(part, ast.Attribute)}
    return bool(named & _ANNOTATIONS)


def _is_count(node: ast.expr, names: CodeNames) -> bool:
    """Whether an expression gives whole numbers one by one, whose sum does not depend on their order."""
    if not isinstance(node, ast.GeneratorExp | ast.ListComp):
        return False
    element = node.elt
    if isinstance(element, ast.Call):
        return names.named(element.func) in _COUNTS
    whole = isinstance(element, ast.Constant) and isinstance(element.value, int)
    return (
        whole
        or isinstance(element, ast.Compare)
        or (isinstance(element, ast.UnaryOp) and isinstance(element.op, ast.Not))
    )
