"""What one definition knows of its names: what they are set to, given in calls, and held by instances.

A name is only known where everything that sets it has been seen; so parameters and attributes stay unknown until the
traversal has met all that it reaches. A list, set or dictionary is known where nothing but looking is done with it.
"""

from __future__ import annotations

import ast
import types
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from evaluand.core.fingerprint.bindings import PLAIN, Setting, loose_in, names_loaded
from evaluand.core.fingerprint.homes import MISSING, Homes, Namespace
from evaluand.core.fingerprint.names import CodeNames, follow, static_attribute
from evaluand.core.fingerprint.parts import Place
from evaluand.core.fingerprint.reads import STREAMS, TEMPORARY, gives_handle
from evaluand.core.fingerprint.syntax import Chain, Definition, Import, chain_of
from evaluand.core.fingerprint.wrapping import innermost, is_code

_PARTS = frozenset((str, int, float, bool))
_SAME = frozenset(("is", "named", "with"))
_FROM = _SAME | {"each"}
_PATH_METHODS = frozenset(("absolute", "glob", "iterdir", "joinpath", "resolve", "rglob", "with_name", "with_suffix"))
_CHANGEABLE = (list, dict, set)
_LOOKING = frozenset(
    f"builtins.{function.__name__}"
    for function in (
        *(all, any, dict, enumerate, filter, frozenset, isinstance, len, list, map, max, min, print, repr, reversed),
        *(set, sorted, str, sum, tuple, zip),
    )
)


@dataclass
class Met:
    """What a traversal has met of functions and classes.

    Attributes:
        complete: there is nothing more to meet.
        scopes: a function's `id` → what it knows.
        calls: a function's `id` → the calls of it by name, with where they stand.
        handed: the functions that are called by who knows whom.
        made: the classes of which code may make instances.
        owners: a method's `id` → the instances that have it, or the class of a class method.
        definers: a method's `id` → the classes it was written in.
        set_attributes: the attributes that code sets other than in making an object; None among them is any.
        set_globals: namespace and name of the globals that functions set; None is any name.
        changed: the `id` of the lists, sets and dictionaries that code may change.
        loose_attributes: the attributes whose values it may change.
    """

    homes: Homes
    complete: bool = False
    scopes: dict[int, Scope] = field(default_factory=dict)
    calls: dict[int, list[tuple[Scope, ast.Call]]] = field(default_factory=lambda: defaultdict(list))
    handed: set[int] = field(default_factory=set)
    made: list[type] = field(default_factory=list)
    owners: dict[int, list[Any]] = field(default_factory=lambda: defaultdict(list))
    definers: dict[int, set[type]] = field(default_factory=lambda: defaultdict(set))
    set_attributes: set[str | None] = field(default_factory=set)
    set_globals: set[tuple[int, str | None]] = field(default_factory=set)
    changed: set[int] = field(default_factory=set)
    loose_attributes: set[str] = field(default_factory=set)

    def may_change(self, value: Any) -> None:
        """Takes note of a value that code may change, if it can be changed."""
        if type(value) in _CHANGEABLE:
            self.changed.add(id(value))


class Scope:
    """What one definition knows of its names."""

    def __init__(
        self, met: Met, function: types.FunctionType, node: Definition, names: CodeNames, place: Place
    ) -> None:
        self.met, self.function, self.node, self.names, self.place = met, function, node, names, place
        self.imports: set[Import] = set()
        self._loose: list[ast.Name | ast.Attribute] | None = None

    def stands_for(self, chain: Chain) -> tuple[Any, str]:
        """The value of a chain of names, MISSING where it is not known or changes, and its full name."""
        return (MISSING, "") if self._changes(chain) else self.names.stands_for(chain)

    def called(self, function: ast.expr) -> str | None:
        """The full name of what is called; empty where it is not known or first-party, None for a value's method."""
        chain = chain_of(function)
        if chain and self._changes(chain):
            return "" if len(chain) == 1 else None
        return self.names.called(function)

    def method(self, function: ast.expr) -> str:
        """The full name of the method of an object that the definition makes with a class of other people's."""
        of = function.value if isinstance(function, ast.Attribute) else None
        if isinstance(of, ast.Name):
            bound = self.bindings(of.id) or ()
            of = bound[0].value if len(bound) == 1 and bound[0].how in _SAME else None
        chain = chain_of(of.func) if isinstance(of, ast.Call) else ()
        full = self.stands_for(chain)[1] if chain else ""
        return f"{full}.{function.attr}" if full and isinstance(function, ast.Attribute) else ""

    def is_local(self, name: str) -> bool:
        """Whether a name is set inside the definition."""
        return name in self.names.set

    def bindings(self, name: str) -> Sequence[Setting] | None:
        """What a local name is set to, nothing for a parameter; None where it is set otherwise too."""
        if name in self.names.free or name in self.names.outer or name in self.names.imports:
            return None
        settings = self.names.settings.get(name, ())
        if len(settings) == 1 and name in parameters_of(self.node):
            return ()
        return settings if all(setting.how in PLAIN for setting in settings) else None

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
        if not owners or self._is_set(attribute):
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
        if isinstance(node, ast.Name):
            bound = self.bindings(node.id) or ()
            return bool(bound) and all(s.how in _SAME and s.value and self.is_stream(s.value) for s in bound)
        if not isinstance(node, ast.Call):
            return False
        full = self.called(node.func)
        method = node.func.attr if isinstance(node.func, ast.Attribute) else ""
        if full is None and method == "fileno" and isinstance(node.func, ast.Attribute):
            return self.is_stream(node.func.value)
        return method in STREAMS if full is None else gives_handle(full)

    def is_temporary(self, node: ast.expr) -> bool:
        """Whether something is, or lies in, a temporary file or folder that the definition itself makes."""
        if isinstance(node, ast.Name):
            bound = self.bindings(node.id) or ()
            return bool(bound) and all(s.how in _FROM and s.value and self.is_temporary(s.value) for s in bound)
        if isinstance(node, ast.BinOp):
            return self.is_temporary(node.left)
        if isinstance(node, ast.JoinedStr):
            return bool(node.values) and self.is_temporary(node.values[0])
        if isinstance(node, ast.FormattedValue | ast.Attribute):
            return self.is_temporary(node.value)
        if not isinstance(node, ast.Call):
            return False
        full = self.called(node.func)
        if full in TEMPORARY:
            return True
        if full in ("os.path.join", "pathlib.Path", "builtins.str", "os.fspath"):
            return bool(node.args) and self.is_temporary(node.args[0])
        of_path = isinstance(node.func, ast.Attribute) and node.func.attr in _PATH_METHODS
        return full is None and of_path and self.is_temporary(node.func)

    # -- lists and dictionaries

    def is_steady(self, name: str) -> bool:
        """Whether nothing is done with a local name but to look at what it holds."""
        return all(not isinstance(part, ast.Name) or part.id != name for part in self._loose_parts())

    def note_changes(self) -> None:
        """Takes note of the lists, sets and dictionaries that the definition may change, when all others are met."""
        self._loose = None
        for part in self._loose_parts():
            self.met.may_change(self.names.stands_for(chain_of(part))[0])
            if isinstance(part, ast.Attribute):
                self.met.loose_attributes.add(part.attr)
        for part in names_loaded(self.node):  # what is inside one that is used may be taken out and changed
            held = self.names.stands_for(chain_of(part))[0]
            if type(held) is list or type(held) is tuple or type(held) is dict:
                for item in held.values() if type(held) is dict else held:
                    self.met.may_change(item)

    def _loose_parts(self) -> list[ast.Name | ast.Attribute]:
        if self._loose is None:
            self._loose = list(names_loaded(self.node))  # until it is known
            self._loose = loose_in(self.node, self._seen_by)
        return self._loose

    def _seen_by(self, call: ast.Call) -> Iterable[ast.expr]:
        """The arguments of a call that it only looks at: those of Python's own, and of functions that do so too."""
        full = self.names.called(call.func)
        if full in _LOOKING or (full is None and _is_text_method(call)):
            return call.args
        chain = chain_of(call.func)
        function = innermost(self.names.stands_for(chain)[0]) if chain else None
        scope = self.met.scopes.get(id(function))
        return () if scope is None else [a for n, a in _arguments(call, scope.node) if scope.is_steady(n)]

    def _first(self) -> str:
        first = parameters_of(self.node)[:1]
        return first[0] if first and self.bindings(first[0]) == () else ""

    def _owners(self) -> list[Any]:
        definers = self.met.definers[id(self.function)]
        made = any(not definers.isdisjoint(kind.__mro__) for kind in self.met.made)
        return [] if made else self.met.owners[id(self.function)]

    def _changes(self, chain: Chain) -> bool:
        """Whether code that was met sets a name of the chain."""
        if self._is_global_set(self.names.namespace, chain[0]):
            return True
        for end, name in enumerate(chain[1:], 1):
            owner = self.names.stands_for(chain[:end])[0]
            changes = self._is_global_set(vars(owner), name) if type(owner) is types.ModuleType else self._is_set(name)
            if changes:
                return True
        return False

    def _is_global_set(self, namespace: Namespace, name: str) -> bool:
        space = id(namespace)
        return not self.met.set_globals.isdisjoint(((space, name), (space, None)))

    def _is_set(self, attribute: str) -> bool:
        return not self.met.set_attributes.isdisjoint((attribute, None))


def parameters_of(node: Definition) -> list[str]:
    """The parameters of a definition that have one value each, in their order."""
    return [argument.arg for argument in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)]


def is_part(value: Any) -> bool:
    """Whether something is a text, number or path of Python's own, which runs no code of others when it is used."""
    return type(value) in _PARTS or type(value).__module__.partition(".")[0] == "pathlib"


def _is_text_method(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Attribute) and isinstance(call.func.value, ast.Constant)


def _arguments(call: ast.Call, node: Definition) -> list[tuple[str, ast.expr]]:
    """The parameters that a call names or gives by position, with what they are given."""
    if any(isinstance(argument, ast.Starred) for argument in call.args):
        return []
    positional = [argument.arg for argument in (*node.args.posonlyargs, *node.args.args)]
    named = [(keyword.arg, keyword.value) for keyword in call.keywords if keyword.arg is not None]
    return [*zip(positional, call.args, strict=False), *named]


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
