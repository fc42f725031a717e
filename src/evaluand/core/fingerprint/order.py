"""Where the order of a set may count: the order of texts in a set is another in each process.

Python mixes a random number into the hash of texts, unless `PYTHONHASHSEED` is set. So a set may only stand where its
order cannot count: by `in` and comparisons, directly in `len`, `sorted`, `min`, `max`, `any`, `all` and `sum`, under
the operators and methods that ask it or make another set, in loops that only count or ask. Anything else leaves the
code unpinned: a list, a text, a container, an argument of other code, `set` itself passed on as a function.

Nothing is followed but names: where a variable, an attribute or a function's result may be a set, its name may stand
only in such places too, in all code that is reached, whatever object it belongs to.
"""

from __future__ import annotations

import ast
import os
import types
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple

from evaluand.core.fingerprint.names import assigned
from evaluand.core.fingerprint.parts import Place
from evaluand.core.fingerprint.scope import Scope
from evaluand.core.fingerprint.wrapping import innermost, is_a


class Name(NamedTuple):
    """An attribute or function, whatever it belongs to; or a variable, with the `id` of its definition."""

    text: str
    scope: int | None = None


class Use(NamedTuple):
    """What stands in a line of some code; line 0 where the line is not known."""

    place: Place
    line: int
    text: str


SET_MAKERS: Final = frozenset(("builtins.frozenset", "builtins.set"))
SET_TYPES: Final = frozenset(("AbstractSet", "FrozenSet", "MutableSet", "Set", "frozenset", "set"))  # in annotations
_SET: Final = Name("")  # what is a set for certain
_SET_HOLDER: Final = Name("[]")  # and what holds one
_TAKING: Final = frozenset(
    f"builtins.{name}" for name in str.split("all any bool frozenset isinstance issubclass len max min set sorted sum")
)
_KEYED: Final = frozenset(("builtins.max", "builtins.min", "builtins.sorted"))
_MAKING: Final = frozenset(("copy", "difference", "intersection", "symmetric_difference", "union"))
_ASKING: Final = _MAKING | frozenset(str.split("difference_update intersection_update isdisjoint issubset issuperset"))
_ORDERED: Final = frozenset(("pop", "__iter__", "__repr__", "__str__"))  # methods of sets
_VIEWS: Final = frozenset(("items", "keys"))  # of dictionaries, whose operators make sets
_OPERATORS: Final = ast.BitAnd | ast.BitOr | ast.BitXor | ast.Sub
_LIBRARY_SETS: Final = frozenset(
    ("WeakSet", "available_timezones", "find_undeclared_variables", "get_stop_words", "model_fields_set")
)
_DUMPING: Final = frozenset(("__dict__", "_asdict", "asdict", "astuple", "model_dump", "model_dump_json", "vars"))
_CONTAINERS: Final = (dict, types.MappingProxyType, list, tuple, deque, set, frozenset)
_FUNCTIONS: Final = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
MAX_DEPTH: Final = 5  # containers inside one another that are looked into


def hash_seed() -> str | None:
    """The number that Python mixes into hashes, where it is the same in each process."""
    seed = os.environ.get("PYTHONHASHSEED", "")
    return seed if seed.isdigit() else None


class Order:
    """The sets in one traversal, by name, and the places where an order would count."""

    def __init__(self) -> None:
        self._origins: list[tuple[Name, set[Name]]] = []  # what is set, and from what
        self._in_order: dict[Name, Use] = {}
        self._updates: list[tuple[set[Name], set[Name], Use]] = []  # receiver, argument
        self._read: set[Name] = set()
        self._results: dict[Name, Use] = {}  # functions
        self._attributes: set[Name] = set()
        self._dump: Use | None = None

    def note_attribute(self, name: str, value: Any) -> None:
        """Takes note of an attribute's value."""
        self._attributes.add(Name(name))
        if kind := _kind_of(value):
            self._origins.append((Name(name), kind))

    def note_set(self, name: str) -> None:
        """Takes note of an attribute that is declared to be a set."""
        self.note_attribute(name, set())

    def note_passed(self, function: types.FunctionType, place: Place) -> None:
        """Takes note of a function that is used as a value, so that its result may be used in any way."""
        self._in_order.setdefault(Name(function.__name__), Use(place, 0, function.__name__))

    def read(self, scope: Scope) -> None:
        """Reads a definition."""
        for node in scope.nodes:
            if isinstance(node, ast.expr) and not isinstance(getattr(node, "ctx", None), ast.Store | ast.Del):
                names = self._names(node, scope)
                if names and not scope.is_shown(node):
                    self._read_use(node, names, scope)
                if isinstance(node, ast.Name | ast.Attribute) and ast.unparse(node).rpartition(".")[2] in _DUMPING:
                    self._dump = self._dump or _use(node, scope)

    def uses(self) -> Iterator[Use]:
        """The places in which the order of a set counts."""
        sets = self._closure()
        yield from (use for name, use in self._in_order.items() if name in sets)
        yield from (use for taken, given, use in self._updates if given & sets and not taken & sets)
        yield from (use for name, use in self._results.items() if name in sets and name not in self._read)
        if self._dump is not None and self._attributes & sets:
            yield self._dump

    def _closure(self) -> set[Name]:
        """The names that may stand for a set."""
        sets: set[Name] = {_SET, _SET_HOLDER}
        while new := {name for name, origins in self._origins if name not in sets and origins & sets}:
            sets |= new
        return sets

    # -- what may be a set

    def _names(self, node: ast.AST, scope: Scope, views: bool = False) -> set[Name]:
        """The names through which an expression may be a set."""
        match node:
            case ast.Set(elts=items):
                return set() if all(map(_is_number, items)) else {_SET}
            case ast.SetComp():
                return {_SET}
            case ast.BinOp(left=left, right=right, op=ast.BitAnd() | ast.BitOr() | ast.BitXor() | ast.Sub()):
                return self._names(left, scope, True) | self._names(right, scope, True)
            case ast.IfExp(body=one, orelse=other):
                return self._names(one, scope) | self._names(other, scope)
            case ast.BoolOp(values=values):
                return set().union(*(self._names(value, scope) for value in values))
            case ast.Await(value=value) | ast.NamedExpr(value=value):
                return self._names(value, scope)
            case ast.Call():
                return self._names_of_call(node, scope, views)
            case ast.Subscript(value=value):
                return {_SET} if _SET_HOLDER in self._names(value, scope) else set()
            case ast.Name() | ast.Attribute():
                return self._names_of_name(node, scope)
        return set()

    def _names_of_call(self, call: ast.Call, scope: Scope, views: bool) -> set[Name]:
        value, full = scope.names.resolve_node(call.func)
        if (is_a(value, type) and issubclass(value, set | frozenset)) or full.rpartition(".")[0] in SET_MAKERS:
            return {_SET}
        match call.func:
            case ast.Attribute(attr=method) if method in _LIBRARY_SETS or (views and method in _VIEWS):
                return {_SET}
            case ast.Attribute(value=receiver, attr=method) if not full:
                return self._names(receiver, scope) if method in _MAKING else {Name(method)}
            case ast.Call(args=names) as getter if scope.names.named(getter.func) == "operator.attrgetter":
                return _constant_names(names)
        if full == "builtins.getattr":
            return _constant_names(call.args[1:2])
        return {_SET} if full.rpartition(".")[2] in _LIBRARY_SETS else self._names_of_variable(call.func, scope)

    def _names_of_name(self, node: ast.Name | ast.Attribute, scope: Scope) -> set[Name]:
        if names := self._names_of_variable(node, scope):
            return names
        value, full = scope.names.resolve_node(node)
        if kind := _kind_of(value):
            return kind
        if full in SET_MAKERS or full.rpartition(".")[0] in SET_MAKERS:
            return {_SET}
        if isinstance(node, ast.Attribute) and not full:
            return {_SET} if node.attr in _LIBRARY_SETS else {Name(node.attr)}
        return set()

    def _names_of_variable(self, node: ast.expr, scope: Scope) -> set[Name]:
        """The names of a variable, or of one of the user's own functions."""
        if not isinstance(node, ast.Name):
            return set()
        if scope.names.is_local(node.id):
            return {Name(node.id, id(scope))} | ({Name(node.id)} if node.id in scope.functions else set())
        function = innermost(scope.names.resolve((node.id,))[0])
        return (
            {Name(function.__name__)} if is_a(function, types.FunctionType) and scope.names.is_ours(function) else set()
        )

    # -- where it stands

    def _read_use(self, node: ast.expr, names: set[Name], scope: Scope) -> None:
        """Takes note of where something stands that may be a set."""
        parent = scope.parent(node)
        self._read |= names if isinstance(node, ast.Name | ast.Attribute) else set()
        if isinstance(parent, ast.Call) and parent.func is node:
            return
        if isinstance(parent, ast.Return) or (isinstance(parent, _FUNCTIONS) and node is parent.body):
            return self._read_result(node, names, scope)
        targets = [self._target(target, scope) for target in _targets(node, parent, scope)]
        if targets and None not in targets:
            names = self._names(node, scope, views=True)
            self._origins += [(target, names) for target in targets if target is not None]
        elif not self._is_free(node, parent, names, scope):
            self._in_order |= {name: _use(node, scope) for name in names - self._in_order.keys()}

    def _read_result(self, node: ast.expr, names: set[Name], scope: Scope) -> None:
        """Takes note of what a function returns."""
        around: ast.AST = scope.parent(node)
        while not isinstance(around, _FUNCTIONS):
            around = scope.parent(around)
        name = Name(scope.function.__name__ if around is scope.node else getattr(around, "name", "<lambda>"))
        self._origins.append((name, names))
        self._results.setdefault(name, _use(node, scope))

    def _target(self, target: ast.expr, scope: Scope) -> Name | None:
        """What is set, if it can be told by a name."""
        match target:
            case ast.Attribute(attr=attribute):
                self._attributes.add(Name(attribute))
                return Name(attribute)
            case ast.Name(id=variable) if scope.names.is_local(variable):
                return Name(variable, id(scope))
        return None

    def _is_free(self, node: ast.expr, parent: ast.AST, names: set[Name], scope: Scope) -> bool:
        """Whether the order of what stands there cannot count, or is seen to around it."""
        match parent:
            case ast.BinOp():
                return isinstance(parent.op, _OPERATORS)
            case ast.IfExp() | ast.BoolOp() | ast.Await() | ast.NamedExpr():
                return True  # what is around it has the same names
            case ast.Compare() | ast.UnaryOp() | ast.Assert() | ast.Delete() | ast.Expr() | ast.If() | ast.While():
                return True
            case ast.AugAssign():
                return isinstance(parent.op, _OPERATORS)
            case ast.For():
                return _only_counts(parent, scope)
            case ast.Subscript():
                return parent.slice is node and isinstance(parent.ctx, ast.Load)
            case ast.Attribute():
                return (
                    parent.attr not in _ORDERED and _SET_HOLDER not in names
                )  # which a set has not, or which only ask it
            case ast.Starred():
                return isinstance(scope.parent(parent), ast.Set)
            case ast.Tuple():
                return _is_check(scope.parent(parent), scope)
            case ast.comprehension():
                return node is not parent.iter or _is_taken(scope.parent(parent), scope)
            case ast.Call():
                return self._is_argument_free(node, parent, names, scope)
        return False

    def _is_argument_free(self, node: ast.expr, call: ast.Call, names: set[Name], scope: Scope) -> bool:
        match call.func:
            case ast.Attribute(value=receiver, attr="update") if len(call.args) == 1:
                self._updates.append((self._names(receiver, scope), names, _use(node, scope)))
                return True
            case ast.Attribute(attr=method) if method in _ASKING or (method == "get" and call.args[0] is node):
                return True
        if scope.names.named(call.func) == "builtins.type":
            return isinstance(scope.parent(call), ast.Compare)
        return _takes(call, scope)


def _use(node: ast.expr, scope: Scope) -> Use:
    return Use(scope.place, node.lineno, ast.unparse(node))


def _constant_names(arguments: Sequence[ast.expr]) -> set[Name]:
    """The attributes that the texts among some arguments name."""
    return {Name(str(argument.value)) for argument in arguments if isinstance(argument, ast.Constant)}


def _is_check(node: ast.AST, scope: Scope) -> bool:
    """Whether a tuple stands where types are checked."""
    return isinstance(node, ast.Call) and scope.names.named(node.func) in ("builtins.isinstance", "builtins.issubclass")


def _takes(call: ast.Call, scope: Scope) -> bool:
    """Whether a call takes its arguments in any order."""
    full = scope.names.named(call.func)
    return full in _TAKING and not (full in _KEYED and any(keyword.arg == "key" for keyword in call.keywords))


def _is_taken(made: ast.AST, scope: Scope) -> bool:
    """Whether what is made of a set one by one is taken in any order; a sum of fractions depends on it."""
    if any(isinstance(part, ast.NamedExpr) for part in ast.walk(made)):
        return False
    if isinstance(made, ast.SetComp):
        return True
    call = scope.parent(made)
    if not isinstance(made, ast.GeneratorExp | ast.ListComp) or not isinstance(call, ast.Call) or call.func is made:
        return False
    is_sum = scope.names.named(call.func) == "builtins.sum"
    return _takes(call, scope) and (not is_sum or _is_count(made.elt, scope))


def _only_counts(loop: ast.For, scope: Scope) -> bool:
    """Whether a loop gives the same in whatever order its body is run: it adds up counts, or gives one constant."""
    inside = [part for part in ast.walk(loop) if part is not loop]
    statements = [part for part in inside if isinstance(part, ast.stmt)]
    results = {ast.dump(part) for part in statements if isinstance(part, ast.Return | ast.Break | ast.Raise)}
    added = [part for part in statements if isinstance(part, ast.AugAssign)]
    targets = {part.id for part in ast.walk(loop.target) if isinstance(part, ast.Name)}
    later = [node for node in scope.nodes if isinstance(node, ast.Name) and node.id in targets and node not in inside]
    return (
        not loop.orelse
        and not later
        and not any(isinstance(part, ast.NamedExpr) for part in inside)
        and len(results) + bool(added) < 2
        and all(isinstance(part, ast.If | ast.Continue | ast.Pass | ast.Return | ast.AugAssign) for part in statements)
        and all(isinstance(part.op, ast.Add | ast.Sub) and _is_count(part.value, scope) for part in added)
        and all(isinstance(part.value, ast.Constant) for part in statements if isinstance(part, ast.Return))
    )


def _is_count(node: ast.expr, scope: Scope) -> bool:
    """Whether an expression is an integer."""
    match node:
        case ast.Call(func=ast.Attribute(attr="count")) | ast.Compare() | ast.Constant(value=int()):
            return True
        case ast.Call(func=function, args=arguments):
            full = scope.names.named(function)
            is_one_of_several = full in ("builtins.max", "builtins.min")
            inner = is_one_of_several and all(_is_count(argument, scope) for argument in arguments)
            return inner or full in ("builtins.int", "builtins.len", "builtins.ord")
    return False


def _is_number(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, int | float)


def _targets(node: ast.expr, parent: ast.AST, scope: Scope) -> list[ast.expr]:
    """What an expression is assigned to."""
    if isinstance(parent, ast.AugAssign) and isinstance(parent.op, _OPERATORS):
        return [parent.target]
    around = scope.parent(parent) if isinstance(parent, ast.Tuple) else parent
    return [target for target, value in assigned(around) if value is node and not isinstance(around, ast.withitem)]


def _kind_of(value: Any) -> set[Name]:
    """Whether a value is a set, or a container that holds one."""
    if _is_unordered(value):
        return {_SET}
    return {_SET_HOLDER} if _holds_unordered(value) else set()


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
    items: Iterable[Any] = [*value.keys(), *value.values()] if is_a(value, dict, types.MappingProxyType) else value
    return any(_is_unordered(item) or _holds_unordered(item, seen | {id(value)}) for item in items)
