"""What one definition knows of its names: what they are set to, given in calls, and held by instances.

A name is only known where everything that sets it has been seen; so parameters and attributes stay unknown until the
traversal has met all that it reaches.
"""

from __future__ import annotations

import ast
import types
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from evaluand.fingerprint.homes import MISSING, Homes
from evaluand.fingerprint.names import Names, follow, static_attribute
from evaluand.fingerprint.parts import Place
from evaluand.fingerprint.reads import STREAMS, reads
from evaluand.fingerprint.syntax import Chain, Definition, Import, chain_of
from evaluand.fingerprint.wrapping import is_code

PAIR = ("first", "second")  # of each item

_PARTS = frozenset((str, int, float, bool))


@dataclass
class Met:
    """What a traversal has met of functions and classes.

    Attributes:
        complete: there is nothing more to meet.
        calls: a function's `id` → the calls of it by name, with where they stand.
        handed: the functions that are called by who knows whom.
        made: the classes of which code may make instances.
        owners: a method's `id` → the instances that have it, or the class of a class method.
        definers: a method's `id` → the classes it was written in.
        set_attributes: the attributes that code sets other than in making an object.
        set_globals: namespace and name of the globals that functions set.
    """

    homes: Homes
    complete: bool = False
    calls: dict[int, list[tuple[Scope, ast.Call]]] = field(default_factory=lambda: defaultdict(list))
    handed: set[int] = field(default_factory=set)
    made: list[type] = field(default_factory=list)
    owners: dict[int, list[Any]] = field(default_factory=lambda: defaultdict(list))
    definers: dict[int, set[type]] = field(default_factory=lambda: defaultdict(set))
    set_attributes: set[str] = field(default_factory=set)
    set_globals: set[tuple[int, str]] = field(default_factory=set)


class Scope:
    """What one definition knows of its names."""

    def __init__(self, met: Met, function: types.FunctionType, node: Definition, names: Names, place: Place) -> None:
        self.met, self.function, self.node, self.names, self.place = met, function, node, names, place
        self.imports: set[Import] = set()
        self._bound: Mapping[str, Sequence[tuple[str, ast.expr]] | None] | None = None

    def stands_for(self, chain: Chain) -> tuple[Any, str]:
        """The value of a chain of names, MISSING where it is not known or changes, and its full name."""
        if (id(self.names.namespace), chain[0]) in self.met.set_globals or self._is_set(chain[1:]):
            return MISSING, ""
        return self.names.stands_for(chain, self.met.homes)

    def is_local(self, name: str) -> bool:
        """Whether a name is set inside the definition."""
        return name in self.names.set

    def bindings(self, name: str) -> Sequence[tuple[str, ast.expr]] | None:
        """What a local name is set to; None where it is set otherwise too.

        Each is an expression, and how the name is set to it: `is` it, `each` of it, the `first` or `second` of each, or
        what `with` gives for it.
        """
        if name in self.names.free or name in self.names.outer or name in self.names.imports:
            return None
        if self._bound is None:
            self._bound = _bindings(self.node)
        return self._bound.get(name, ())

    def argument(self, name: str) -> Sequence[tuple[Scope, ast.expr]] | None:
        """What a parameter is given in every call; None where that is not known."""
        calls = self.met.calls.get(id(self.function))
        if not self.met.complete or id(self.function) in self.met.handed or not calls:
            return None
        given = [(scope, _given(call, self.node.args, self.function, name)) for scope, call in calls]
        return None if any(value is None for _, value in given) else [(s, v) for s, v in given if v is not None]

    def own_attribute(self, name: str, attribute: str) -> list[Any] | None:
        """The values of an attribute where the name is the instance of a method; None where they are not known."""
        owners = self._owners() if name == self._first() else []
        if not owners or self._is_set((attribute,)):
            return None
        return [static_attribute(owner, attribute) for owner in owners]

    def is_own_method(self, called: ast.expr) -> bool:
        """Whether what is called is a method of the same class, which is judged by itself."""
        chain = chain_of(called)
        if len(chain) != 2 or chain[0] != self._first():
            return False
        found = [follow(owner, chain[1:], self.met.homes)[0] for owner in self.met.owners[id(self.function)]]
        return bool(found) and all(is_code(value) and self.met.homes.of(value).ours for value in found)

    def is_stream(self, node: ast.expr) -> bool:
        """Whether something is an open file or a text in memory, and not a name."""
        if isinstance(node, ast.Call):
            chain = chain_of(node.func)
            full = self.names.stands_for(chain, self.met.homes)[1] if chain else ""
            method = not full or full.startswith("pathlib.")
            return full in STREAMS or reads(node, None if method else full) is not None
        bound = self.bindings(node.id) if isinstance(node, ast.Name) else None
        return bool(bound) and all(how in ("is", "with") and self.is_stream(value) for how, value in bound or ())

    def _first(self) -> str:
        arguments = self.node.args
        first = (*arguments.posonlyargs, *arguments.args)[:1]
        return first[0].arg if first and self.bindings(first[0].arg) == () else ""

    def _owners(self) -> list[Any]:
        definers = self.met.definers[id(self.function)]
        made = any(not definers.isdisjoint(kind.__mro__) for kind in self.met.made)
        return [] if made else self.met.owners[id(self.function)]

    def _is_set(self, attributes: Sequence[str]) -> bool:
        return any(attribute in self.met.set_attributes for attribute in attributes)


def is_part(value: Any) -> bool:
    """Whether something is a text, number or path of Python's own, which runs no code of others when it is used."""
    return type(value) in _PARTS or type(value).__module__.partition(".")[0] == "pathlib"


def _bindings(node: Definition) -> dict[str, list[tuple[str, ast.expr]] | None]:
    """What the names in a definition are set to, where every setting is a plain one; parameters inside it are not."""
    bound: dict[str, list[tuple[str, ast.expr]]] = defaultdict(list)
    stores: dict[str, int] = defaultdict(int)
    for part in ast.walk(node):
        if isinstance(part, ast.Name) and not isinstance(part.ctx, ast.Load):
            stores[part.id] += 1
        elif isinstance(part, ast.arg) or (isinstance(part, ast.alias | ast.ExceptHandler) and part.name):
            stores[part.arg if isinstance(part, ast.arg) else str(part.name)] += 1
        for name, how, value in _set_in(part):
            bound[name].append((how, value))
    arguments = node.args
    for argument in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs):
        if stores[argument.arg] == 1:
            del stores[argument.arg]
    return {name: bound[name] if len(bound[name]) == number else None for name, number in stores.items()}


def _set_in(node: ast.AST) -> Iterator[tuple[str, str, ast.expr]]:
    """The names that some syntax sets to a value or to each item of one."""
    targets: list[tuple[ast.expr | None, str, ast.expr | None]] = []
    if isinstance(node, ast.Assign):
        targets = [(target, "is", node.value) for target in node.targets]
    elif isinstance(node, ast.AnnAssign | ast.NamedExpr):
        targets = [(node.target, "is", node.value)]
    elif isinstance(node, ast.For | ast.comprehension):
        targets = [(node.target, "each", node.iter)]
    elif isinstance(node, ast.withitem):
        targets = [(node.optional_vars, "with", node.context_expr)]
    for target, how, value in targets:
        if isinstance(target, ast.Name) and value is not None:
            yield target.id, how, value
        elif isinstance(target, ast.Tuple) and len(target.elts) == 2 and how == "each" and value is not None:
            names = [
                (item.id, which) for item, which in zip(target.elts, PAIR, strict=True) if isinstance(item, ast.Name)
            ]
            yield from ((name, which, value) for name, which in names)


def _given(call: ast.Call, arguments: ast.arguments, function: types.FunctionType, name: str) -> ast.expr | None:
    """What a call gives for a parameter; None where that cannot be told."""
    if any(isinstance(a, ast.Starred) for a in call.args) or any(keyword.arg is None for keyword in call.keywords):
        return None
    positional = [argument.arg for argument in (*arguments.posonlyargs, *arguments.args)]
    if name in positional and positional.index(name) < len(call.args):
        return call.args[positional.index(name)]
    for keyword in call.keywords:
        if keyword.arg == name:
            return keyword.value
    defaults = function.__defaults__ or ()
    told = dict(zip(positional[len(positional) - len(defaults) :], defaults, strict=True))
    told |= function.__kwdefaults__ or {}
    return ast.Constant(told[name]) if name in told and is_part(told[name]) else None
