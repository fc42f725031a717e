"""What code reaches beyond itself, function by function: each finding is a sentence that leaves it unpinned.

Names are judged where they stand. The files that are read are looked up last, when every instance and every call of the
traversal has been met: `self.folder` is known where all instances are, and the parameter of a helper where all its
calls are.
"""

from __future__ import annotations

import ast
import os
import pathlib
import types
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

from evaluand.fingerprint.bytecode import Uses, nested
from evaluand.fingerprint.files import Files
from evaluand.fingerprint.homes import MISSING, Homes
from evaluand.fingerprint.names import Names, closure_of, full_name_of
from evaluand.fingerprint.outside import ANYTHING, NAMING, SERVICE, UNREAD, WEIGHTS, hands_on, wanting, why_outside
from evaluand.fingerprint.parts import PIN, Place
from evaluand.fingerprint.paths import Known
from evaluand.fingerprint.reads import (
    FROM_PRETRAINED,
    LISTING_METHODS,
    LISTINGS,
    OPENERS,
    is_reader,
    read_by_names,
    reads,
)
from evaluand.fingerprint.scopes import Met, Scope
from evaluand.fingerprint.syntax import Chain, Definition, Import, chain_of
from evaluand.fingerprint.wrapping import functions_in, innermost, is_cached, is_code
from evaluand.fingerprint.writing import Writing

NAME_FILES = "name the files with files=[...] or declare version=..."
COMPUTED = f"reads a file whose name is known only when it runs; {NAME_FILES}"
LISTED = f"lists a folder whose name is known only when it runs; {NAME_FILES}"
MAX_SHOWN = 60  # characters of what is called

_IMPORTING = frozenset(("importlib.import_module", "builtins.__import__"))
_FACTORIES = frozenset(("default_factory", "factory"))
_MAKING = frozenset(("__init__", "__new__", "__post_init__", "__setstate__"))


class Reach:
    """What the code of one traversal reaches beyond itself.

    Args:
        unpinned: where to say it.
    """

    def __init__(self, homes: Homes, files: Files, unpinned: dict[str, str]) -> None:
        self.homes, self.files, self.unpinned = homes, files, unpinned
        self.met = Met(homes)
        self._harmless: set[int] = set()
        self._alive: list[ast.AST] = []  # an id stands for its node only while that lives
        self._instances: list[Any] = []
        self._reads: list[tuple[Scope, ast.Call, str | None, ast.expr]] = []
        self._unseen: list[str] = []
        self._with_files: set[int] = set()

    # -- what the traversal meets

    def handed_on(self, value: Any, place: Place) -> None:
        """Takes note of a value that is reached otherwise than by a name in code."""
        if type(value) is types.FunctionType or is_cached(value):
            self.met.handed.add(id(innermost(value)))
        if isinstance(value, type | types.FunctionType | types.ModuleType):
            name = full_name_of(value, self.homes)
            if name and (why := why_outside(name)):
                self.unpinned.setdefault(place.shown, f"{place.shown}: {name} {why}; {PIN}")

    def instance(self, value: Any, place: Place) -> None:
        """Takes note of an object whose state is read."""
        self.handed_on(type(value), place)
        self._instances.append(value)

    def with_files(self, value: Any) -> None:
        """Takes note of code whose files are declared."""
        self._with_files.add(id(innermost(value)))

    def definition(
        self, function: types.FunctionType, node: Definition, names: Names, writing: Writing, place: Place
    ) -> set[Import]:
        """Judges a function by its definition; gives the modules that it imports by a constant name."""
        self._harmless.update(writing.inside)
        self._alive.append(node)
        scope = Scope(self.met, function, node, names, place)
        for part, call in _references([node.body] if isinstance(node, ast.Lambda) else node.body):
            if not isinstance(getattr(part, "ctx", None), ast.Load | None):
                if isinstance(part, ast.Attribute) and function.__name__ not in _MAKING:
                    self.met.set_attributes.add(part.attr)
            elif chain := chain_of(part):
                self._name(scope, part, chain, call)
            elif call is not None:
                self._read(scope, call, None if isinstance(part, ast.Attribute) else "")
        return scope.imports

    def class_body(self, node: ast.AST, names: Names, place: Place) -> None:
        """Judges what a class makes its instances' attributes with; else its body has run, and what it left is read."""
        for part in ast.walk(node):
            if isinstance(part, ast.keyword) and part.arg in _FACTORIES:
                nodes = [part.value.body] if isinstance(part.value, ast.Lambda) else [part.value]
                for inner, call in _references(nodes):
                    full = names.stands_for(chain, self.homes)[1] if (chain := chain_of(inner)) else ""
                    self._say(place.shown, ".".join(chain), why_outside(full, call) if full else None, inner.lineno)

    def bytecode(self, function: types.FunctionType, uses: Uses, place: Place) -> None:
        """Judges a function without source: by names alone, as the arguments cannot be seen."""
        code, shown = function.__code__, place.shown
        names = Names(ast.Module([], []), function.__globals__, closure_of(function))
        called = {name for inner in nested(code) for name in inner.co_names}
        for chain in sorted(uses.chains):
            full = names.stands_for(chain, self.homes)[1]
            self._say(shown, ".".join(chain), why_outside(full) or wanting([full]))
            if full in OPENERS or full in LISTINGS or is_reader(full):
                self._unseen.append(f"{shown}: {'.'.join(chain)} {COMPUTED} to pin it")
        for level, module, _ in sorted(uses.imports):
            for full in () if level else (module, *(f"{module}.{name}" for name in sorted(called))):
                self._say(shown, full, why_outside(full))
        if method := read_by_names(called):
            self._unseen.append(f"{shown}: {method} {COMPUTED} to pin it")

    def settle(self, declared: bool) -> None:
        """Looks up the files that are read, when all else is known.

        Args:
            declared: the user has said which files are read.
        """
        self.met.complete = True
        if self._reads:
            self._own()
        for scope, call, full, node in self._reads:
            why = self._look_up(scope, call, full, node)
            if why and not declared and id(scope.function) not in self._with_files:
                said = f"{scope.place.shown}, line {call.lineno}: {_shown(call.func)} {why} to pin it"
                self.unpinned.setdefault(said, said)
        self.unpinned |= {said: said for said in self._unseen if not declared}

    def _own(self) -> None:
        """Tells methods which instances have them."""
        by_kind: dict[type, list[Any]] = defaultdict(list)
        for instance in self._instances:
            by_kind[type(instance)].append(instance)
        for kind, instances in by_kind.items():
            for base in kind.__mro__:
                for value in vars(base).values() if self.homes.of_class(base).ours else ():
                    owners = [kind] if isinstance(value, classmethod) else instances
                    for function in () if isinstance(value, staticmethod) else (innermost(value), *functions_in(value)):
                        self.met.owners[id(function)] += owners
                        self.met.definers[id(function)].add(base)

    # -- names

    def _name(self, scope: Scope, node: ast.expr, chain: Chain, call: ast.Call | None) -> None:
        value, full = scope.names.stands_for(chain, self.homes)
        if full and (why := why_outside(full, call)):
            if why in NAMING and id(node) in self._harmless:
                return
            self._say(scope.place.shown, ".".join(chain), why, node.lineno)
            return
        if type(value) is types.ModuleType:
            if call is None and full and hands_on(full):
                self._say(scope.place.shown, ".".join(chain), ANYTHING, node.lineno)
        elif is_code(value):
            self._code(scope, value, call)
        if call is not None and full in _IMPORTING:
            self._import(scope, call)
        elif call is not None and full == "builtins.getattr":
            self._getattr(scope, call)
        elif call is not None:
            method = len(chain) > 1 and (full.startswith("pathlib.") or (not full and not is_code(value)))
            self._read(scope, call, None if method else full)

    def _code(self, scope: Scope, value: Any, call: ast.Call | None) -> None:
        function = innermost(value)
        if isinstance(function, type):
            self.met.made.append(function)
        elif call is None:
            self.met.handed.add(id(function))
        else:
            self.met.calls[id(function)].append((scope, call))

    def _import(self, scope: Scope, call: ast.Call) -> None:
        found = Known(scope).values(call.args[0]) if call.args else None
        if found is None or not all(isinstance(name, str) for name in found):
            why = f"imports a module whose name is known only when it runs; {PIN}"
            where = f"{scope.place.shown}, line {call.lineno}"
            self.unpinned.setdefault(f"{where} import", f"{where}: {_shown(call.func)} {why}")
            return
        for name in found:
            bare = name.lstrip(".")
            scope.imports.add((len(name) - len(bare), bare, ()))
            self._say(scope.place.shown, f"{_shown(call.func)}({name!r})", why_outside(name), call.lineno)

    def _getattr(self, scope: Scope, call: ast.Call) -> None:
        chain = chain_of(call.args[0]) if len(call.args) > 1 else ()
        value = scope.names.stands_for(chain, self.homes)[0] if chain else MISSING
        if type(value) is types.ModuleType and self.homes.of(value).ours and Known(scope).values(call.args[1]) is None:
            self._say(scope.place.shown, f"getattr({'.'.join(chain)}, ...)", UNREAD, call.lineno)

    def _say(self, shown: str, what: str, why: str | None, line: int = 0) -> None:
        if why:
            where = f"{shown}, line {line}" if line else shown
            self.unpinned.setdefault(f"{shown} {why}", f"{where}: {what} {why}; {PIN}")

    # -- files

    def _read(self, scope: Scope, call: ast.Call, full: str | None) -> None:
        """Takes note of a call if it reads or lists files.

        Args:
            full: the full name of what is called; None for the method of a value; empty where it is not known.
        """
        if _lists(call, full):
            self._reads.append((scope, call, full, call))
        elif (name := reads(call, full)) is not None:
            self._reads.append((scope, call, full, name))

    def _look_up(self, scope: Scope, call: ast.Call, full: str | None, node: ast.expr) -> str:
        """Takes in the files that a call reads; why it cannot, where it cannot."""
        if full is None and scope.is_own_method(call.func):
            return ""
        if _lists(call, full):
            found = Known(scope).listing(call, full or "")
            return LISTED if found is None else self._list(found, scope)
        if node is not call and scope.is_stream(node):
            return ""
        values = None if node is call else Known(scope).values(node)
        if values is None or not all(isinstance(value, str | pathlib.PurePath) for value in values):
            return COMPUTED
        weights = isinstance(call.func, ast.Attribute) and call.func.attr == FROM_PRETRAINED
        whole = weights or is_reader(full or "")
        return next((why for value in values if (why := self._take(value, scope, whole, weights))), "")

    def _take(self, value: str | pathlib.PurePath, scope: Scope, whole: bool, weights: bool) -> str:
        home = scope.place.home
        if isinstance(value, str) and "://" in value:
            return f"{SERVICE}; declare version=..."
        folders = [f for f in dict.fromkeys((home.folder, self.files.cwd)) if os.path.isdir(os.path.join(f, value))]
        if weights and not folders:
            return f"{WEIGHTS}; {NAME_FILES}"
        self.files.mention(pathlib.PurePath(value), home)
        return self._list([(pathlib.Path(folder, value), "**/*") for folder in folders if whole], scope)

    def _list(self, found: Sequence[tuple[pathlib.Path, str]], scope: Scope) -> str:
        for folder, pattern in found:
            if why := self.files.list(folder, pattern, scope.place.home):
                return f"reads the folder {folder}, which {why}; {NAME_FILES}"
        return ""


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


def _lists(call: ast.Call, full: str | None) -> bool:
    if full is None:
        return isinstance(call.func, ast.Attribute) and call.func.attr in LISTING_METHODS
    return full in LISTINGS


def _shown(node: ast.expr) -> str:
    text = ast.unparse(node)
    return text if len(text) <= MAX_SHOWN else f"{text[: MAX_SHOWN - 3]}..."
