"""What code reaches beyond itself, function by function: each finding is a sentence that leaves it unpinned.

Names are judged where they stand; the files that are read are looked up last.
"""

from __future__ import annotations

import ast
import types
from collections.abc import Iterator, Sequence
from typing import Any

from evaluand.core.fingerprint.bytecode import Uses, nested
from evaluand.core.fingerprint.changes import TABLE, note_call, note_item_set, note_module, note_set
from evaluand.core.fingerprint.files import Files
from evaluand.core.fingerprint.homes import MISSING, Homes, imported
from evaluand.core.fingerprint.influence import Idle, idle_in
from evaluand.core.fingerprint.lookup import Lookup, shown
from evaluand.core.fingerprint.names import CodeNames, closure_of, full_name_of
from evaluand.core.fingerprint.outside import ANYTHING, HARMLESS, STATE, UNREAD, hands_on, why_changing, why_outside
from evaluand.core.fingerprint.parts import PIN, Place
from evaluand.core.fingerprint.paths import Known
from evaluand.core.fingerprint.reads import LISTING_METHODS, READING_METHODS, TEMPORARY, is_reading, read_by_names
from evaluand.core.fingerprint.scopes import Met, Scope
from evaluand.core.fingerprint.syntax import Chain, Definition, Import, chain_of
from evaluand.core.fingerprint.wrapping import innermost, is_a, is_cached, is_code, is_function, is_readable
from evaluand.core.fingerprint.writing import Writing

_IMPORTING = frozenset(("importlib.import_module", "builtins.__import__"))
_FACTORIES = frozenset(("default_factory", "factory"))


class Reach:
    """What the code of one traversal reaches beyond itself.

    Args:
        homes: where code comes from.
        files: where the files that code reads are kept.
        unpinned: where to say it.
    """

    def __init__(self, homes: Homes, files: Files, unpinned: dict[str, str]) -> None:
        self.homes, self.unpinned = homes, unpinned
        self.met = Met(homes)
        self.lookup = Lookup(self.met, files, unpinned)
        self._imports: list[tuple[Scope, ast.Call]] = []
        self._alive: list[ast.AST] = []  # an id stands for its node only while that lives

    # -- what the traversal meets

    def handed_on(self, value: Any, place: Place) -> None:
        """Takes note of a value that is reached otherwise than by a name in code."""
        kind = type(value)
        if kind is types.FunctionType or is_cached(value):
            self.met.handed.add(id(innermost(value)))
        if kind is types.ModuleType or issubclass(kind, type) or is_function(value):
            name = "" if _is_exception(value) else full_name_of(value, self.homes)
            if name and (why := why_outside(name)):
                self.unpinned.setdefault(place.shown, f"{place.shown}: {name} {why}; {PIN}")
            elif name and not issubclass(kind, type) and is_reading(name):
                self.lookup.unseen(place.shown, name)

    def instance(self, value: Any, place: Place) -> None:
        """Takes note of an object whose state is read."""
        self.handed_on(type(value), place)
        self.lookup.instance(value, place)

    def definition(
        self, function: types.FunctionType, node: Definition, names: CodeNames, writing: Writing, place: Place
    ) -> set[Import]:
        """Judges a function by its definition; gives the modules that it imports by a constant name."""
        idle = idle_in(node, names)
        idle = Idle({*idle.shown, *writing.inside}, idle.unused)
        self._alive.append(node)
        scope = self.met.scopes[id(function)] = Scope(self.met, function, node, names, place)
        for value in (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()):
            self.met.may_change(value)
        for part, call in _references([node.body] if isinstance(node, ast.Lambda) else node.body):
            if not isinstance(getattr(part, "ctx", None), ast.Load | None):
                if isinstance(part, ast.Attribute):
                    note_set(scope, part.value, part.attr)
            elif chain := chain_of(part):
                self._name(scope, part, chain, call, idle)
            elif call is not None:
                self._call(scope, call, None if isinstance(part, ast.Attribute) else "")
            elif isinstance(part, ast.Attribute):
                self._loaded(scope, part, idle)
        for inner in ast.walk(node):
            if isinstance(inner, ast.Subscript) and not isinstance(inner.ctx, ast.Load):
                note_item_set(scope, inner.value)
        return scope.imports

    def class_body(self, node: ast.AST, names: CodeNames, place: Place) -> None:
        """Judges what a class makes its instances' attributes with; else its body has run, and what it left is read."""
        for part in ast.walk(node):
            if isinstance(part, ast.keyword) and part.arg in _FACTORIES:
                nodes = [part.value.body] if isinstance(part.value, ast.Lambda) else [part.value]
                for inner, call in _references(nodes):
                    full = names.stands_for(chain)[1] if (chain := chain_of(inner)) else ""
                    self._say(place.shown, ".".join(chain), why_outside(full, call) if full else None, inner.lineno)

    def bytecode(self, function: types.FunctionType, uses: Uses, place: Place) -> None:
        """Judges a function without source: by names alone, as the arguments cannot be seen."""
        code, shown = function.__code__, place.shown
        names = CodeNames(ast.Module([], []), function.__globals__, self.homes, closure_of(function))
        called = {name for inner in nested(code) for name in inner.co_names}
        for chain in sorted(uses.chains):
            value, full = names.stands_for(chain)
            self._say(shown, ".".join(chain), None if _is_exception(value) else why_outside(full))
            if is_reading(full):
                self.lookup.unseen(shown, ".".join(chain))
            for end in range(len(chain)):
                self.met.may_change(names.stands_for(chain[: end + 1])[0])
        for level, module, _ in sorted(uses.imports):
            for full in () if level else (module, *(f"{module}.{name}" for name in sorted(called))):
                self._say(shown, full, why_outside(full))
        if method := read_by_names(called):
            self.lookup.unseen(shown, method)

    def settle(self, declared: bool) -> None:
        """Judges what can be told only when all that is reached has been met.

        Args:
            declared: the user has said which files are read.
        """
        if self._imports or self.lookup.has_readings:
            self.lookup.note_changes()
        for scope, call in self._imports:
            if Known(scope).values(call.args[0]) is None:
                self._say_importing(scope, call)
        self.lookup.settle(declared)

    # -- names

    def _name(self, scope: Scope, node: ast.expr, chain: Chain, call: ast.Call | None, idle: Idle) -> None:
        value, full = scope.names.stands_for(chain)
        if id(node) in idle.unused or _is_exception(value):
            return
        if full and (why := why_outside(full, call) or self._changing(scope, full, call)):
            harmless = why in HARMLESS and id(node) in idle.shown
            if not harmless and not self._is_own_module(scope, full, node) and not _stays_inside(scope, why, node):
                self._say(scope.place.shown, ".".join(chain), why, node.lineno)
            return
        if call is None:
            self._loaded(scope, node, idle)
        if type(value) is types.ModuleType or TABLE in chain:
            self._module(scope, node, chain, call)
        elif is_code(value):
            self._code(scope, value, call)
        if call is not None:
            self._call(scope, call, scope.names.called(node))

    def _loaded(self, scope: Scope, node: ast.expr, idle: Idle) -> None:
        """Judges what is named and not called here, so that somebody else may."""
        chain = chain_of(node)
        full = scope.names.stands_for(chain)[1] if chain else ""
        last = node.attr if isinstance(node, ast.Attribute) else ""
        if id(node) in idle.unused:
            return
        if full:
            if is_reading(full):
                self.lookup.handed(scope, node, full)
        elif last in READING_METHODS or last in LISTING_METHODS - {"glob"}:
            if not scope.is_own_method(node) and not is_code(scope.names.stands_for(chain)[0] if chain else MISSING):
                self.lookup.handed(scope, node, last)
        elif last == "name" and id(node) not in idle.shown and _is_made_temporary(node, scope):
            self._say(scope.place.shown, shown(node), STATE, node.lineno)

    def _changing(self, scope: Scope, full: str, call: ast.Call | None) -> str | None:
        """Why something that gives the same for the same argument is given another one each time."""
        if call is None or why_outside(full) is None:
            return None
        return why_changing(full, _names_in([*call.args, *call.keywords], scope, set()))

    def _module(self, scope: Scope, node: ast.expr, chain: Chain, call: ast.Call | None) -> None:
        """Judges a module, or the table of its names, that is used as a value."""
        at = chain.index(TABLE) if TABLE in chain else len(chain)
        module, full = scope.names.stands_for(chain[:at])
        if type(module) is not types.ModuleType or (call is not None and at == len(chain)):
            return
        if full and hands_on(full):
            self._say(scope.place.shown, ".".join(chain), ANYTHING, node.lineno)
        elif not full:
            note_module(self.met, module)

    def _is_own_module(self, scope: Scope, full: str, node: ast.expr) -> bool:
        """Whether `sys.modules[__name__]` is meant, which is followed as a module."""
        namespace = scope.names.namespace
        module = imported(str(namespace.get("__name__", "")), 0, namespace) if full == "sys.modules" else None
        if module is None or vars(module) is not namespace or not _is_item(scope.node, node, "__name__"):
            return False
        scope.imports.add((0, module.__name__, ()))
        note_module(self.met, module)
        return True

    def _call(self, scope: Scope, call: ast.Call, full: str | None) -> None:
        if full in _IMPORTING:
            self._import(scope, call)
        elif full == "builtins.getattr":
            self._getattr(scope, call)
        elif not note_call(scope, call, full):
            self.lookup.call(scope, call, full)

    def _code(self, scope: Scope, value: Any, call: ast.Call | None) -> None:
        function = innermost(value)
        if is_a(function, type):
            if is_readable(function):
                self.met.made.append(function)
        elif call is None:
            self.met.handed.add(id(function))
        else:
            self.met.calls[id(function)].append((scope, call))

    def _import(self, scope: Scope, call: ast.Call) -> None:
        found = Known(scope).values(call.args[0]) if call.args else None
        if found is None or not all(isinstance(name, str) for name in found):
            self._say_importing(scope, call)
            return
        self._imports.append((scope, call))
        for name in found:
            bare = name.lstrip(".")
            scope.imports.add((len(name) - len(bare), bare, ()))
            self._say(scope.place.shown, f"{shown(call.func)}({name!r})", why_outside(name), call.lineno)

    def _say_importing(self, scope: Scope, call: ast.Call) -> None:
        where = f"{scope.place.shown}, line {call.lineno}"
        why = f"imports a module whose name is known only when it runs; {PIN}"
        self.unpinned.setdefault(f"{where} import", f"{where}: {shown(call.func)} {why}")

    def _getattr(self, scope: Scope, call: ast.Call) -> None:
        chain = chain_of(call.args[0]) if len(call.args) > 1 else ()
        module, full = scope.names.stands_for(chain) if chain else (MISSING, "")
        if type(module) is not types.ModuleType:
            return
        names = Known(scope).values(call.args[1])
        what = f"getattr({'.'.join(chain)}, ...)"
        if names is None:
            why = (why_outside(full) or (ANYTHING if hands_on(full) else None)) if full else UNREAD
            self._say(scope.place.shown, what, why, call.lineno)
        for name in names or ():
            value, told = scope.names.stands_for((*chain, str(name)))
            self._say(scope.place.shown, what, why_outside(told) if told else None, call.lineno)
            self.met.handed.add(id(innermost(value)))

    def _say(self, shown: str, what: str, why: str | None, line: int = 0) -> None:
        if why:
            where = f"{shown}, line {line}" if line else shown
            self.unpinned.setdefault(f"{shown} {why}", f"{where}: {what} {why}; {PIN}")


def _references(nodes: Sequence[ast.AST]) -> Iterator[tuple[ast.expr, ast.Call | None]]:
    """The expressions that name something or are called, with the call; annotations are left out, as none runs them."""
    waiting = list(reversed(nodes))
    while waiting:
        part = waiting.pop()
        inner: list[ast.AST]
        chain = chain_of(part.func if isinstance(part, ast.Call) else part)
        if isinstance(part, ast.Call):
            yield part.func, part
            inner = [*part.args, *part.keywords]
            if not chain:
                inner[:0] = ast.iter_child_nodes(part.func) if isinstance(part.func, ast.Attribute) else [part.func]
        elif isinstance(part, ast.Name | ast.Attribute):
            yield part, None
            inner = [] if chain else list(ast.iter_child_nodes(part))
        elif isinstance(part, ast.AnnAssign):
            inner = [part.target, *([part.value] if part.value else [])]
        elif isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef):
            defaults = [*part.args.defaults, *(value for value in part.args.kw_defaults if value)]
            inner = [*part.decorator_list, *defaults, *part.body]
        else:
            inner = list(ast.iter_child_nodes(part))
        waiting.extend(reversed(inner))


def _is_exception(value: Any) -> bool:
    """Whether something is a class of errors, which does nothing but tell what went wrong."""
    return is_readable(value) and issubclass(value, BaseException) if issubclass(type(value), type) else False


def _is_made_temporary(node: ast.expr, scope: Scope) -> bool:
    """Whether something is taken from a temporary file that nothing else can use."""
    made = node.value if isinstance(node, ast.Attribute) else None
    return isinstance(made, ast.Call) and scope.names.called(made.func) in TEMPORARY


def _is_item(tree: ast.AST, node: ast.expr, name: str) -> bool:
    """Whether what is taken from a table is what a name says."""
    items = (p for p in ast.walk(tree) if isinstance(p, ast.Subscript) and p.value is node)
    return any(isinstance(item.slice, ast.Name) and item.slice.id == name for item in items)


def _names_in(nodes: Sequence[ast.AST], scope: Scope, seen: set[str]) -> Iterator[str]:
    """The full names in some syntax and in what its variables are set to."""
    for part, _ in _references(nodes):
        chain = chain_of(part)
        if chain:
            yield scope.names.stands_for(chain)[1]
        if len(chain) == 1 and chain[0] not in seen:
            seen.add(chain[0])
            settings = scope.names.settings.get(chain[0], ())
            yield from _names_in([s.value for s in settings if s.value is not None], scope, seen)


def _stays_inside(scope: Scope, why: str, node: ast.expr) -> bool:
    """Whether `id` or `hash` only tells objects apart: as a key, in a comparison, in the hash of an object."""
    if why != STATE or not isinstance(node, ast.Name) or node.id not in ("hash", "id"):
        return False
    if scope.function.__name__ in ("__hash__", "__repr__"):
        return True
    for part in ast.walk(scope.node):
        told = [part.slice] if isinstance(part, ast.Subscript) else []
        told = [part.left, *part.comparators] if isinstance(part, ast.Compare) else told
        if node.id == "id" and any(isinstance(inner, ast.Call) and inner.func is node for inner in told):
            return True
    return False
