"""The files that code reads, looked up when every instance and every call of the traversal has been met.

`self.folder` is known where all instances are, and the parameter of a helper where all its calls are.
"""

from __future__ import annotations

import ast
import os
import pathlib
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from evaluand.core.fingerprint.files import Files
from evaluand.core.fingerprint.names import full_name_of, static_attribute
from evaluand.core.fingerprint.outside import SERVICE, WEIGHTS
from evaluand.core.fingerprint.parts import Place
from evaluand.core.fingerprint.paths import Known
from evaluand.core.fingerprint.reads import FROM_PRETRAINED, METHODS, is_reader, lists, reads
from evaluand.core.fingerprint.scopes import Met, Scope
from evaluand.core.fingerprint.syntax import chain_of
from evaluand.core.fingerprint.wrapping import functions_in, innermost, is_a

NAME_FILES = "name the files with files=[...] or declare version=..."
COMPUTED = f"reads a file whose name is known only when it runs; {NAME_FILES}"
LISTED = f"lists a folder whose name is known only when it runs; {NAME_FILES}"
MAX_SHOWN = 60  # characters of what is called

_FOLDER_LOADERS = frozenset((("jinja2", "FileSystemLoader"),))


@dataclass(frozen=True, slots=True)
class Reading:
    """A place that reads or lists files.

    Attributes:
        what: the call, or what reads when somebody else calls it.
        full: its full name; None for the method of a value; empty where it is not known.
        named: the expressions that name the files; the call itself where there is none to be seen.
    """

    scope: Scope
    what: ast.expr
    full: str | None
    named: Sequence[ast.expr]


class Lookup:
    """The files read in one traversal.

    Args:
        met: what the traversal meets.
        files: where the files are kept.
        unpinned: where to say which cannot be told.
    """

    def __init__(self, met: Met, files: Files, unpinned: dict[str, str]) -> None:
        self.met, self.files, self.unpinned = met, files, unpinned
        self._instances: list[Any] = []
        self._readings: list[Reading] = []
        self._unseen: list[str] = []
        self._with_files: set[int] = set()

    def instance(self, value: Any, place: Place) -> None:
        """Takes note of an object whose state is read; one that loads from folders is taken for all that is in them."""
        self._instances.append(value)
        names = (full_name_of(kind, self.met.homes).split(".") for kind in type(value).__mro__)
        if any((name[0], name[-1]) in _FOLDER_LOADERS for name in names):
            for folder in vars(value).get("searchpath", ()):
                if why := self.files.list(pathlib.Path(folder), "**/*", place.home):
                    said = f"{place.shown}: reads the folder {folder}, which {why}; {NAME_FILES} to pin it"
                    self.unpinned.setdefault(said, said)

    @property
    def has_readings(self) -> bool:
        """Whether anything has been met that reads or lists files."""
        return bool(self._readings)

    def with_files(self, value: Any) -> None:
        """Takes note of code whose files are declared."""
        self._with_files.add(id(innermost(value)))

    def unseen(self, shown: str, what: str) -> None:
        """Takes note of reading of which nothing more is to be seen."""
        self._unseen.append(f"{shown}: {what} {COMPUTED} to pin it")

    def call(self, scope: Scope, call: ast.Call, full: str | None) -> None:
        """Takes note of a call if it reads or lists files.

        Args:
            scope: where it stands.
            call: the call.
            full: the full name of what is called; None for the method of a value; empty where it is not known.
        """
        if full is None and (method := scope.method(call.func)) in METHODS:
            full = method
        if lists(call, full):
            self._readings.append(Reading(scope, call, full, [call]))
        elif (named := reads(call, full, lambda node: _is_path(scope, node))) is not None:
            self._readings.append(Reading(scope, call, full, named))

    def handed(self, scope: Scope, node: ast.expr, full: str) -> None:
        """Takes note of what reads files when somebody else calls it."""
        self._readings.append(Reading(scope, node, full, [node]))

    def note_changes(self) -> None:
        """Finds the lists and dictionaries that may change, when all that is reached has been met."""
        self.met.complete = True
        for scope in self.met.scopes.values():
            scope.note_changes()
        for owner in (*self._instances, *map(type, self._instances), *self.met.made):
            for attribute in self.met.loose_attributes:
                self.met.may_change(static_attribute(owner, attribute))

    def settle(self, declared: bool) -> None:
        """Looks up the files that are read, when all else is known.

        Args:
            declared: the user has said which files are read.
        """
        if self._readings:
            self._own()
        for reading in self._readings:
            why = self._look_up(reading)
            if why and not declared and id(reading.scope.function) not in self._with_files:
                what = shown(reading.what.func if isinstance(reading.what, ast.Call) else reading.what)
                said = f"{reading.scope.place.shown}, line {reading.what.lineno}: {what} {why} to pin it"
                self.unpinned.setdefault(said, said)
        self.unpinned |= {said: said for said in self._unseen if not declared}

    def _own(self) -> None:
        """Tells methods which instances have them."""
        by_kind: dict[type, list[Any]] = defaultdict(list)
        for instance in self._instances:
            by_kind[type(instance)].append(instance)
        for kind, instances in by_kind.items():
            for base in kind.__mro__:
                for value in vars(base).values() if self.met.homes.of_class(base).ours else ():
                    owners = [kind] if is_a(value, classmethod) else instances
                    for function in () if is_a(value, staticmethod) else (innermost(value), *functions_in(value)):
                        self.met.owners[id(function)] += owners
                        self.met.definers[id(function)].add(base)

    def _look_up(self, reading: Reading) -> str:
        """Takes in the files that are read; why it cannot, where it cannot."""
        scope, call, full = reading.scope, reading.what, reading.full
        if not isinstance(call, ast.Call):
            return LISTED if full in ("glob", "iterdir", "rglob") else COMPUTED
        if full is None and scope.is_own_method(call.func):
            return ""
        if lists(call, full):
            if _listed_folder(scope, call):
                return ""
            found = Known(scope).listing(call, full)
            return LISTED if found is None else self._list(found, scope)
        return next((why for node in reading.named if (why := self._look_at(scope, call, full, node))), "")

    def _look_at(self, scope: Scope, call: ast.Call, full: str | None, node: ast.expr) -> str:
        if node is not call and (scope.is_stream(node) or scope.is_temporary(node)):
            return ""
        known = Known(scope)
        several = isinstance(node, ast.List | ast.Tuple)
        values = None if node is call else known.each(node) if several else known.values(node)
        if values is None or not all(isinstance(value, str | pathlib.PurePath) for value in values):
            return COMPUTED
        weights = isinstance(call.func, ast.Attribute) and call.func.attr == FROM_PRETRAINED
        whole = weights or bool(full and is_reader(full) and not full.startswith("os."))
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


def shown(node: ast.expr) -> str:
    """An expression in a sentence."""
    text = ast.unparse(node)
    return text if len(text) <= MAX_SHOWN else f"{text[: MAX_SHOWN - 3]}..."


def _listed_folder(scope: Scope, call: ast.Call) -> bool:
    """Whether a call lists a folder that the definition itself makes."""
    of = call.args[0] if call.args and scope.called(call.func) else getattr(call.func, "value", None)
    return of is not None and scope.is_temporary(of)


def _is_path(scope: Scope, node: ast.expr) -> bool:
    """Whether an expression is to be seen as a path."""
    if isinstance(node, ast.BinOp):
        return isinstance(node.op, ast.Div)
    if isinstance(node, ast.Call):
        full = scope.called(node.func)
        if full:
            return full.startswith(("pathlib.", "os.path."))
        return isinstance(node.func, ast.Attribute) and _is_path(scope, node.func.value)
    if isinstance(node, ast.Name) and scope.bindings(node.id):
        return all(
            setting.how in ("is", "named") and setting.value is not None and _is_path(scope, setting.value)
            for setting in scope.bindings(node.id) or ()
        )
    chain = chain_of(node)
    return bool(chain) and issubclass(type(scope.names.stands_for(chain)[0]), pathlib.PurePath)
