"""Where the order of a set may count: the order of texts in a set is another in each process.

Python mixes a random number into the hash of texts, unless `PYTHONHASHSEED` is set. So a set may only be used where its
order cannot count: by `in`, comparisons and conditions, `len`, `sorted`, `min`, `max`, `any` and `all`, the operators
and methods that make another set, and loops that only count or ask. From there it is followed through variables,
attributes, and the arguments and results of the user's own functions. Everything else leaves the code unpinned: a list,
a text, a dictionary or a container made of it, a library, and `set` itself passed on as a function.
"""

from __future__ import annotations

import ast
import os
import types
from collections import deque
from collections.abc import Iterator
from typing import Any

from evaluand.core.fingerprint.flow import Flow, Known, Leaf, Scope, argument_of, find_callee
from evaluand.core.fingerprint.names import CodeNames, assigned
from evaluand.core.fingerprint.shown import is_shown, reads_errors
from evaluand.core.fingerprint.wrapping import is_a

SET_MAKERS = frozenset(("builtins.frozenset", "builtins.set"))
SET_TYPES = frozenset(("AbstractSet", "FrozenSet", "MutableSet", "Set", "frozenset", "set"))  # in annotations
_ORDER_FREE = frozenset(
    f"builtins.{name}" for name in str.split("all any bool frozenset isinstance issubclass len max min set sorted")
)
_KEYED = frozenset(("builtins.max", "builtins.min", "builtins.sorted"))
_LAZY = frozenset(f"builtins.{name}" for name in ("filter", "list", "map", "tuple"))
_MAKING_METHODS = frozenset(("copy", "difference", "intersection", "symmetric_difference", "union"))
_METHODS = _MAKING_METHODS | frozenset(
    str.split(
        "add clear difference_update discard intersection_update isdisjoint issubset issuperset remove "
        "symmetric_difference_update update __contains__ __len__"
    )
)
_OPERATORS = ast.BitAnd | ast.BitOr | ast.BitXor | ast.Sub
_COUNTS = frozenset(("builtins.bool", "builtins.int", "builtins.len", "builtins.ord"))
_COUNTING_METHODS = frozenset(("count", "endswith", "startswith"))
_GIVING_ATTRIBUTES = frozenset(("builtins.vars", "dataclasses.asdict", "dataclasses.astuple"))
_LIBRARY_SETS = frozenset(
    ("WeakSet", "available_timezones", "find_undeclared_variables", "get_stop_words", "model_fields_set")
)
_DUMPING = frozenset(("_asdict", "model_dump", "model_dump_json"))  # methods that give the attributes of an object
_GETTING = frozenset(("get", "setdefault"))
_HARMLESS = ast.Assert | ast.Compare | ast.Delete | ast.Expr | ast.If | ast.Raise | ast.UnaryOp | ast.While
_FOLLOWED = ast.Await | ast.BoolOp | ast.IfExp | ast.NamedExpr  # the expression around is a set as well
_CONTAINERS = (dict, types.MappingProxyType, list, tuple, deque, set, frozenset)
MAX_DEPTH = 5  # containers inside one another that are looked into


def hash_seed() -> str | None:
    """The number that Python mixes into hashes, where it is the same in each process."""
    seed = os.environ.get("PYTHONHASHSEED", "")
    return seed if seed.isdigit() else None


class Sets:
    """The sets in the definitions of one traversal."""

    def __init__(self, flow: Flow) -> None:
        self.flow = flow
        self._known: dict[int, tuple[bool, bool]] = {}
        self._containers: dict[int, bool] = {}
        self._resolved: dict[tuple[ast.expr, Scope], tuple[Any, str]] = {}
        self._errors_are_read = any(map(reads_errors, flow.scopes.values()))

    def unordered_uses(self) -> Iterator[tuple[Scope, ast.expr]]:
        """The places in which the order of a set may count."""
        for scope in self.flow.scopes.values():
            for node in scope.nodes:
                if not isinstance(node, ast.expr) or isinstance(getattr(node, "ctx", None), ast.Store | ast.Del):
                    continue
                if self._may_count(node, scope) and not is_shown(node, scope, raised=not self._errors_are_read):
                    yield scope, node

    def _may_count(self, node: ast.expr, scope: Scope) -> bool:
        if self._is_set(node, scope):
            return not self._is_order_free(node, scope)
        if self._holds_sets(node, scope):
            return not self._is_looked_up(node, scope)
        if isinstance(node, ast.Name) and scope.names.named(node) in SET_MAKERS:
            return not _is_checked_or_called(node, scope)
        return self._is_passed_on(node, scope)

    # -- what is a set

    def _is_set(self, node: ast.expr, scope: Scope) -> bool:
        return self._classify(node, scope)[0]

    def _holds_sets(self, node: ast.expr, scope: Scope) -> bool:
        return self._classify(node, scope)[1]

    def _classify(self, node: ast.expr, scope: Scope) -> tuple[bool, bool]:
        """Whether an expression may be a set, and whether it may be a container of sets."""
        found = self._known.get(id(node))
        if found is None:
            self._known[id(node)] = False, False  # while it is followed, as in `words = words | more`
            origins = self.flow.origins(node, scope)
            values = [origin.value for origin in origins if isinstance(origin, Known)]
            leaves = [origin for origin in origins if isinstance(origin, Leaf)]
            is_set = any(map(_is_unordered, values)) or any(map(self._makes_set, leaves))
            holds = any(map(self._is_container, values)) or any(map(self._gives_attributes, leaves))
            found = self._known[id(node)] = is_set, holds
        return found

    def _is_container(self, value: Any) -> bool:
        if is_a(value, *_CONTAINERS) and id(value) not in self._containers:
            self._containers[id(value)] = _holds_unordered(value)
        return self._containers.get(id(value), False)

    def _gives_attributes(self, leaf: Leaf) -> bool:
        """Whether an expression is the dictionary of an object's attributes, and some attribute may be a set."""
        function = leaf.node.func if isinstance(leaf.node, ast.Call) else None
        full = self._resolve(function, leaf.scope)[1] if function is not None else ""
        by_call = full in _GIVING_ATTRIBUTES or getattr(function, "attr", "") in _DUMPING
        if not by_call and not (isinstance(leaf.node, ast.Attribute) and leaf.node.attr == "__dict__"):
            return False
        return any(
            _is_unordered(a.value) if isinstance(a, Known) else self._makes_set(a) for a in self.flow.attributes()
        )

    def _makes_set(self, leaf: Leaf) -> bool:
        node, scope = leaf.node, leaf.scope
        if isinstance(node, ast.Set):
            return not all(isinstance(each, ast.Constant) and isinstance(each.value, int) for each in node.elts)
        if isinstance(node, ast.BinOp) and isinstance(node.op, _OPERATORS):
            return any(self._is_set(side, scope) or self._is_view(side, scope) for side in (node.left, node.right))
        if isinstance(node, ast.Subscript):
            return self._gives_sets(node.value, scope)
        if isinstance(node, ast.Attribute):
            return node.attr in _LIBRARY_SETS
        if not isinstance(node, ast.Call):
            return isinstance(node, ast.SetComp)
        function = node.func
        value, full = self._resolve(function, scope)
        if is_a(value, type) and issubclass(value, set | frozenset):
            return True
        if full.rpartition(".")[2] in _LIBRARY_SETS or getattr(function, "attr", "") in _LIBRARY_SETS:
            return True
        if not isinstance(function, ast.Attribute):
            return False
        if function.attr in _MAKING_METHODS:
            return full.rpartition(".")[0] in SET_MAKERS or self._is_set(function.value, scope)
        return function.attr in _GETTING and self._gives_sets(function.value, scope)

    def _resolve(self, function: ast.expr, scope: Scope) -> tuple[Any, str]:
        """The value and full name of a function that is called; many expressions lead to the same call."""
        if (function, scope) not in self._resolved:
            self._resolved[function, scope] = scope.names.resolve_node(function)
        return self._resolved[function, scope]

    def _gives_sets(self, node: ast.expr, scope: Scope) -> bool:
        """Whether a container may give a set where it is asked for an item; keys do not count."""
        if not self._holds_sets(node, scope):
            return False
        values = [origin.value for origin in self.flow.origins(node, scope) if isinstance(origin, Known)]
        tables = [value for value in values if is_a(value, dict, types.MappingProxyType)]
        return not tables or len(tables) < len(values) or any(_holds_unordered([*table.values()]) for table in tables)

    def _is_view(self, node: ast.expr, scope: Scope) -> bool:
        """Whether an expression may be the keys or items of a dictionary, whose operators make sets."""
        calls = [o.node for o in self.flow.origins(node, scope) if isinstance(o, Leaf) and isinstance(o.node, ast.Call)]
        return any(isinstance(call.func, ast.Attribute) and call.func.attr in ("items", "keys") for call in calls)

    # -- what uses it

    def _is_order_free(self, node: ast.expr, scope: Scope) -> bool:
        parent = scope.parent(node)
        match parent:
            case ast.BinOp():
                return isinstance(parent.op, _OPERATORS)
            case ast.AugAssign():
                return isinstance(parent.op, _OPERATORS) and _is_variable(parent.target, scope)
            case ast.Assign():
                return all(_is_variable(target, scope) for target in parent.targets)
            case ast.AnnAssign():
                return _is_variable(parent.target, scope)
            case ast.Tuple():
                around = scope.parent(parent)
                return any(value is node and _is_variable(target, scope) for target, value in assigned(around))
            case ast.For():
                return not parent.orelse and self._only_counts(parent, scope)
            case ast.Subscript():
                return parent.slice is node and isinstance(parent.ctx, ast.Load)  # looked up by a frozenset
            case ast.Return():
                return self._is_followed(parent, scope)
            case ast.Attribute():
                around = scope.parent(parent)
                return parent.attr in _METHODS and isinstance(around, ast.Call) and around.func is parent
            case ast.Call() | ast.keyword() | ast.Starred() | ast.comprehension():
                return self._is_taken(node, parent, scope)
        return isinstance(parent, _HARMLESS | _FOLLOWED) or (parent is scope.node and self._is_followed(node, scope))

    def _is_followed(self, node: ast.AST, scope: Scope) -> bool:
        """Whether what a definition returns is followed to its calls."""
        around = scope.parent(node)
        while not isinstance(around, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            around = scope.parent(around)
        if around is scope.node:
            return self.flow.knows_calls(scope)
        if isinstance(around, ast.Lambda):
            return False
        uses = [(load, scope.parent(load)) for load in scope.loads(around.name)]
        return all(isinstance(call, ast.Call) and call.func is load for load, call in uses)

    def _is_taken(self, node: ast.expr, parent: ast.AST, scope: Scope) -> bool:
        """Whether what takes a set, or what is made of it one by one, takes it without an order."""
        if isinstance(parent, ast.Starred):
            return isinstance(scope.parent(parent), ast.Set)
        if isinstance(parent, ast.comprehension):
            made = scope.parent(parent)
            if node is not parent.iter:
                return True  # a condition
            if any(isinstance(part, ast.NamedExpr) for part in ast.walk(made)):
                return False
            return isinstance(made, ast.SetComp) or (
                isinstance(made, ast.ListComp | ast.GeneratorExp) and self._is_consumed(made, scope)
            )
        call = scope.parent(parent) if isinstance(parent, ast.keyword) else parent
        if not isinstance(call, ast.Call):
            return False
        return self._is_argument(node, call, scope) or self._is_consumed(node, scope)

    def _is_argument(self, node: ast.expr, call: ast.Call, scope: Scope) -> bool:
        """Whether a set is an argument of a user's own function, in which it is followed."""
        callee = find_callee(scope, call.func)
        inner = self.flow.scopes.get(id(callee[0])) if callee else None
        if callee is None or inner is None or any(isinstance(each, ast.Starred) for each in call.args):
            return False
        arguments = inner.node.args
        names = [each.arg for each in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]
        return any(argument_of(call, inner.node, name, callee[1]) is node for name in names)

    def _is_consumed(self, node: ast.expr, scope: Scope) -> bool:
        """Whether what an expression gives one by one is taken without an order."""
        parent = scope.parent(node)
        if isinstance(parent, ast.Compare):
            return all(isinstance(op, ast.In | ast.NotIn) for op in parent.ops)
        if isinstance(parent, ast.If | ast.Expr):
            return True
        if isinstance(parent, ast.comprehension | ast.Starred):
            return self._is_taken(node, parent, scope)
        if not isinstance(parent, ast.Call) or node is parent.func:
            return False
        full = scope.names.named(parent.func)
        if full in _ORDER_FREE:
            keys = [keyword.value for keyword in parent.keywords if keyword.arg == "key"]
            return full not in _KEYED or all(map(_distinguishes_all, keys))
        if full in _LAZY:
            return self._is_consumed(parent, scope)
        if full == "builtins.type":
            return isinstance(scope.parent(parent), ast.Compare)
        if full == "builtins.sum":
            return isinstance(node, ast.GeneratorExp | ast.ListComp) and _is_count(node.elt, scope.names)
        if not isinstance(parent.func, ast.Attribute):
            return False
        if parent.func.attr in ("get", "isin") and parent.args[0] is node:
            return True
        if parent.func.attr not in _METHODS:
            return False
        return full.rpartition(".")[0] in SET_MAKERS or self._is_set(parent.func.value, scope)

    def _only_counts(self, loop: ast.For, scope: Scope) -> bool:
        """Whether a loop gives the same in whatever order its body is run."""
        inside = list(ast.walk(loop))
        names = {part.id for part in ast.walk(loop.target) if isinstance(part, ast.Name)}
        loads = (load for name in names for load in scope.loads(name) if load not in inside)
        used_later = any(not _is_bound_again(load, names, scope) for load in loads)
        parts = [part for part in inside if isinstance(part, ast.stmt) and part is not loop]
        if used_later or any(isinstance(part, ast.NamedExpr) for part in inside):
            return False
        if self._errors_are_read and any(isinstance(part, ast.Raise) for part in parts):
            return False
        ended = any(isinstance(part, ast.Break | ast.Return) for part in parts)
        counted = any(isinstance(part, ast.AugAssign) for part in parts)
        constants = {ast.dump(part.value) for part in parts if isinstance(part, ast.Return | ast.Assign) and part.value}
        orderless = all(_is_orderless(part, scope.names) for part in parts)
        return orderless and not (ended and counted) and len(constants) < 2

    def _is_looked_up(self, node: ast.expr, scope: Scope) -> bool:
        """Whether a container of sets is only asked for one of them."""
        parent = scope.parent(node)
        if isinstance(parent, ast.Attribute):
            return parent.attr in _GETTING
        if isinstance(parent, ast.Call):
            return scope.names.named(parent.func) == "builtins.len"
        return isinstance(parent, _HARMLESS) or (isinstance(parent, ast.Subscript) and parent.value is node)

    def _is_passed_on(self, node: ast.expr, scope: Scope) -> bool:
        """Whether a function that gives a set is used other than by calling it."""
        if not isinstance(node, ast.Name | ast.Attribute):
            return False
        parent = scope.parent(node)
        if isinstance(parent, ast.Call) and parent.func is node:
            return False
        functions = [inner for inner in self.flow.functions_at(node, scope) if not inner.is_property()]
        return any(self._is_set(result, inner) for inner in functions for result in inner.results)


def _is_unordered(value: Any) -> bool:
    """Whether a value is a set whose order differs between processes: numbers keep theirs."""
    if not is_a(value, set, frozenset):
        return False
    numbers = all(type(item) in (int, float, bool) for item in value)
    return not numbers or (not value and is_a(value, set))  # an empty one may be filled


def _holds_unordered(value: Any, seen: frozenset[int] = frozenset()) -> bool:
    """Whether a container may hold such sets."""
    if not is_a(value, *_CONTAINERS) or id(value) in seen:
        return False
    if len(seen) > MAX_DEPTH:
        return True
    items = [*value.keys(), *value.values()] if is_a(value, dict, types.MappingProxyType) else value
    return any(_is_unordered(item) or _holds_unordered(item, seen | {id(value)}) for item in items)


def _is_variable(node: ast.expr, scope: Scope) -> bool:
    """Whether what is set can be followed: a variable of the definition, or an attribute."""
    return isinstance(node, ast.Attribute) or (isinstance(node, ast.Name) and scope.names.is_local(node.id))


def _is_checked_or_called(node: ast.Name, scope: Scope) -> bool:
    """Whether the name `set` is called, or types are compared with it."""
    parent = scope.parent(node)
    while isinstance(parent, ast.Tuple | ast.BinOp):
        node, parent = parent, scope.parent(parent)  # type: ignore[assignment]
    if isinstance(parent, ast.Call):
        checks = scope.names.named(parent.func) in ("builtins.isinstance", "builtins.issubclass")
        return parent.func is node or checks
    return isinstance(parent, ast.Compare | ast.Attribute)


# -- counting


def _is_orderless(part: ast.stmt, names: CodeNames) -> bool:
    if isinstance(part, ast.AugAssign):
        return isinstance(part.op, ast.Add | ast.Sub) and _is_count(part.value, names)
    if isinstance(part, ast.Assign):
        return isinstance(part.value, ast.Constant) and all(isinstance(each, ast.Name) for each in part.targets)
    if isinstance(part, ast.Return):
        return isinstance(part.value, ast.Constant)
    return isinstance(part, ast.If | ast.Continue | ast.Pass | ast.Break | ast.Raise)


def _is_bound_again(node: ast.AST, names: set[str], scope: Scope) -> bool:
    """Whether a variable is that of a loop or comprehension around it."""
    while node is not scope.node:
        node = scope.parent(node)
        loops = [node] if isinstance(node, ast.For) else getattr(node, "generators", [])
        if any(isinstance(part, ast.Name) and part.id in names for loop in loops for part in ast.walk(loop.target)):
            return True
    return False


def _distinguishes_all(key: ast.expr) -> bool:
    """Whether a key distinguishes all texts: a tuple that holds the text itself."""
    if not isinstance(key, ast.Lambda) or not isinstance(key.body, ast.Tuple):
        return False
    return any(isinstance(part, ast.Name) and part.id == key.args.args[0].arg for part in key.body.elts)


def _is_count(node: ast.expr, names: CodeNames) -> bool:
    """Whether an expression is an integer, so that a sum of such does not depend on the order."""
    if isinstance(node, ast.Constant):
        return isinstance(node.value, int)
    if isinstance(node, ast.Subscript):
        return _is_counter(node.value, names)
    if isinstance(node, ast.BinOp):
        exact = isinstance(node.op, ast.Add | ast.Sub | ast.Mult | ast.FloorDiv)
        return exact and _is_count(node.left, names) and _is_count(node.right, names)
    if isinstance(node, ast.IfExp):
        return _is_count(node.body, names) and _is_count(node.orelse, names)
    if isinstance(node, ast.Call):
        if names.named(node.func) in _KEYED:
            return all(_is_count(each, names) for each in node.args)
        method = node.func.attr if isinstance(node.func, ast.Attribute) else ""
        return names.named(node.func) in _COUNTS or method in _COUNTING_METHODS
    return isinstance(node, ast.Compare) or (isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not))


def _is_counter(node: ast.expr, names: CodeNames) -> bool:
    """Whether a variable is only ever a `Counter` of something."""
    values = names.settings.get(node.id, [None]) if isinstance(node, ast.Name) else [None]
    unpacked = [value for value in values if value is not None]
    calls = [value for value in unpacked if isinstance(value, ast.Call)]
    return len(calls) == len(values) and all(names.named(each.func) == "collections.Counter" for each in calls)
