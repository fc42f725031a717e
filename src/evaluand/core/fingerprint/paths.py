"""What an expression gives whose parts are all known, so that the file it names can be digested.

Nothing of the user's code is run: names stand for values that are there already, and what is done to them is a short
list of operations on texts, numbers and paths. Where a part can be several things (a loop over a known list, either
branch of a condition, any of the instances that were read) the expression is all of them. None means not known.
"""

from __future__ import annotations

import ast
import functools
import glob
import itertools
import operator
import os
import pathlib
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from evaluand.core.fingerprint.bindings import PAIR
from evaluand.core.fingerprint.reads import argument, lists
from evaluand.core.fingerprint.scopes import Scope, is_part
from evaluand.core.fingerprint.syntax import chain_of

MAX_VALUES = 1000  # that one expression may have
Values = list[Any] | None

_SEQUENCES = (list, tuple, set, frozenset, dict)
_OPERATORS: dict[type, Callable[[Any, Any], Any]] = {
    ast.Div: operator.truediv,
    ast.Add: operator.add,
    ast.Mod: operator.mod,
}
_PATH_ATTRIBUTES = frozenset(("parent", "parents", "name", "stem", "suffix"))
_METHODS = {
    pathlib.PurePath: frozenset(
        ("joinpath", "with_name", "with_stem", "with_suffix", "resolve", "absolute", "expanduser", "as_posix")
    ),
    str: frozenset(("format", "join", "lower", "upper", "strip", "replace", "removesuffix", "removeprefix")),
}


def _package_folder(package: str) -> pathlib.Path:
    module = sys.modules[package]
    return pathlib.Path(str(module.__file__)).parent


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "builtins.str": str,
    "importlib.resources.files": _package_folder,
    "os.fspath": os.fspath,
    "os.path.abspath": os.path.abspath,
    "os.path.basename": os.path.basename,
    "os.path.dirname": os.path.dirname,
    "os.path.expanduser": os.path.expanduser,
    "os.path.join": os.path.join,
    "os.path.normpath": os.path.normpath,
    "os.path.realpath": os.path.realpath,
    "pathlib.Path": pathlib.Path,
    "pathlib.PosixPath": pathlib.Path,
    "pathlib.PurePath": pathlib.PurePath,
    "pathlib.PurePosixPath": pathlib.PurePosixPath,
}
_LISTS = frozenset(("builtins.sorted", "builtins.list", "builtins.tuple", "builtins.set", "builtins.reversed"))


class Known:
    """The values of expressions in one definition."""

    def __init__(self, scope: Scope, within: frozenset[tuple[int, str]] = frozenset()) -> None:
        self._scope, self._within = scope, within

    def values(self, node: ast.expr) -> Values:
        """All that an expression can be; None where it is not known."""
        if isinstance(node, ast.Constant):
            return [node.value]
        if isinstance(node, ast.Name | ast.Attribute):
            return self._chain(node)
        if isinstance(node, ast.NamedExpr):
            return self.values(node.value)
        if isinstance(node, ast.IfExp):
            return _union([self.values(node.body), self.values(node.orelse)])
        if isinstance(node, ast.BoolOp):
            return _union([self.values(value) for value in node.values])
        if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
            return self._applied(_OPERATORS[type(node.op)], [node.left, node.right])
        if isinstance(node, ast.JoinedStr):
            return self._applied(lambda *parts: "".join(parts), node.values)
        if isinstance(node, ast.FormattedValue) and node.conversion in (-1, ord("s")):
            return self._applied(format, [node.value, *([node.format_spec] if node.format_spec else [])])
        if isinstance(node, ast.Subscript):
            return self._item(node)
        return self._call(node) if isinstance(node, ast.Call) else None

    def each(self, node: ast.expr) -> Values:
        """All that the items of an expression can be."""
        if isinstance(node, ast.List | ast.Tuple | ast.Set):
            return _union([self.values(item) for item in node.elts])
        if isinstance(node, ast.Call):
            full = self._scope.called(node.func)
            if full in _LISTS and len(node.args) == 1:
                return self.each(node.args[0])
            if (tables := self._tables(node, "values")) is not None:
                return _parts(value for table in tables for value in table.values())
            return self._listed(node, full) if lists(node, full) else None
        name = node.id if isinstance(node, ast.Name) else ""
        if name and self._scope.is_local(name):
            steady = self._scope.is_steady(name)
            return (
                self._local(name, lambda known, how, value: known.each(value) if how == "is" else None)
                if steady
                else None
            )
        found = self._stored(node)
        return None if found is None else _parts(item for value in found for item in value)

    # -- names

    def _chain(self, node: ast.Name | ast.Attribute) -> Values:
        if isinstance(node, ast.Name) and self._scope.is_local(node.id):
            return self._local(node.id, Known._bound)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            own = self._scope.own_attribute(node.value.id, node.attr)
            if own is not None:
                return _parts(own)
        if isinstance(node, ast.Attribute) and node.attr in _PATH_ATTRIBUTES:
            base = self.values(node.value)
            if base is not None and all(isinstance(value, pathlib.PurePath) for value in base):
                return [getattr(value, node.attr) for value in base]
        chain = chain_of(node)
        value = self._scope.stands_for(chain)[0] if chain and not self._scope.is_local(chain[0]) else None
        return _parts([value])

    def _bound(self, how: str, value: ast.expr) -> Values:
        if how in PAIR:
            return self._of_pairs(PAIR.index(how), value)
        return self.values(value) if how in ("is", "named") else self.each(value) if how == "each" else None

    def _of_pairs(self, which: int, node: ast.expr) -> Values:
        """The first or second of each item of `enumerate(...)` or `table.items()`."""
        if not isinstance(node, ast.Call):
            return None
        if which and self._scope.called(node.func) == "builtins.enumerate" and node.args:
            return self.each(node.args[0])
        tables = self._tables(node, "items")
        return None if tables is None else _parts(pair[which] for table in tables for pair in table.items())

    def _tables(self, call: ast.Call, method: str) -> list[dict[Any, Any]] | None:
        """The known dictionaries whose method is called."""
        if not isinstance(call.func, ast.Attribute) or call.func.attr != method:
            return None
        tables = self._stored(call.func.value)
        return tables if tables is not None and all(type(table) is dict for table in tables) else None

    def _local(self, name: str, of: Callable[[Known, str, ast.expr], Values]) -> Values:
        step = id(self._scope), name
        if step in self._within:  # p = p / "x"
            return None
        within = self._within | {step}
        bindings = self._scope.bindings(name)
        if bindings is None:
            return None
        if bindings:
            known = Known(self._scope, within)
            return _union([of(known, how, value) for how, value in bindings if value is not None])
        given = self._scope.argument(name)
        return None if given is None else _union([of(Known(scope, within), "is", value) for scope, value in given])

    def _stored(self, node: ast.expr) -> list[Any] | None:
        """The known containers that an expression can be."""
        chain = chain_of(node)
        if not chain:
            return None
        own = self._scope.own_attribute(chain[0], chain[1]) if len(chain) == 2 else None
        if own is None and not self._scope.is_local(chain[0]):
            own = [self._scope.stands_for(chain)[0]]
        steady = all(type(value) in _SEQUENCES and id(value) not in self._scope.met.changed for value in own or ())
        return own if own and steady else None

    # -- operations

    def _item(self, node: ast.Subscript) -> Values:
        bases, keys = self._stored(node.value), self.values(node.slice)
        if bases is not None:
            try:
                if keys is not None:
                    return _parts(base[key] for base in bases for key in keys)
            except (LookupError, TypeError):
                return None
            return _parts(item for base in bases for item in (base.values() if isinstance(base, dict) else base))
        return self._applied(operator.getitem, [node.value, node.slice])

    def _call(self, call: ast.Call) -> Values:
        full = self._scope.called(call.func)
        named = {keyword.arg: keyword.value for keyword in call.keywords}
        if None in named or any(isinstance(argument, ast.Starred) for argument in call.args):
            return None
        if full in _FUNCTIONS and not named:
            return self._applied(_FUNCTIONS[full], call.args)
        if full is not None or not isinstance(call.func, ast.Attribute):
            return None
        method = functools.partial(_call_method, call.func.attr, len(call.args), tuple(map(str, named)))
        return self._applied(method, [call.func.value, *call.args, *named.values()])

    def _applied(self, function: Callable[..., Any], nodes: Sequence[ast.expr]) -> Values:
        operands = [self.values(node) for node in nodes]
        if any(values is None for values in operands):
            return None
        try:
            results = (function(*values) for values in itertools.product(*(values or () for values in operands)))
            return _parts(results)
        except Exception:  # what does not go together fails when it runs, too
            return None

    # -- listings

    def _listed(self, call: ast.Call, full: str | None) -> Values:
        found = self.listing(call, full)
        if found is None:
            return None
        results: list[Any] = []
        for folder, pattern in found:
            try:
                some = _parts(folder.glob(pattern))
            except (OSError, ValueError, NotImplementedError):  # no pattern
                return None
            if some is None:
                return None
            results += some
        if full == "os.listdir":
            return [path.name for path in results]
        return [str(path) for path in results] if full and full.startswith("glob.") else results

    def listing(self, call: ast.Call, full: str | None) -> list[tuple[pathlib.Path, str]] | None:
        """The folders and patterns of a call that lists files; None where they are not known."""
        keywords = {keyword.arg for keyword in call.keywords}
        if full in ("glob.glob", "glob.iglob"):
            name = argument(call, 0, "pathname")
            patterns = self.values(name) if name and keywords <= {"pathname", "recursive"} else None
            texts = patterns is not None and all(isinstance(p, str | pathlib.PurePath) for p in patterns)
            return [_pattern_of(str(pattern)) for pattern in patterns or ()] if texts else None
        if full:
            start = argument(call, 0, "path", "top")
            folders = self.values(start) if start else None if None in keywords else ["."]
            return _folders(folders, ["**/*" if full in ("os.walk", "os.fwalk") else "*"])
        if not isinstance(call.func, ast.Attribute):
            return None
        before = {"glob": "", "rglob": "**/"}.get(call.func.attr)
        patterns = ["*"] if before is None else self.values(call.args[0]) if call.args else None
        return _folders(self.values(call.func.value), patterns and [f"{before or ''}{p}" for p in patterns])


def _folders(folders: Values, patterns: Values) -> list[tuple[pathlib.Path, str]] | None:
    if folders is None or patterns is None or not all(isinstance(f, str | pathlib.PurePath) for f in folders):
        return None
    return [(pathlib.Path(folder), _deep(pattern)) for folder in folders for pattern in patterns]


def _pattern_of(text: str) -> tuple[pathlib.Path, str]:
    """The folder that a pattern's names have in common, and the rest of the pattern."""
    parts = pathlib.PurePath(text).parts
    fixed = next((i for i, part in enumerate(parts) if glob.has_magic(part)), len(parts) - 1)
    return pathlib.Path(*parts[:fixed]), _deep("/".join(parts[fixed:]))


def _deep(pattern: str) -> str:
    return f"{pattern}/*" if pattern == "**" or pattern.endswith("/**") else pattern


def _call_method(name: str, count: int, keywords: tuple[str, ...], value: Any, *operands: Any) -> Any:
    if name not in _METHODS[str if isinstance(value, str) else pathlib.PurePath]:
        raise AttributeError(name)
    return getattr(value, name)(*operands[:count], **dict(zip(keywords, operands[count:], strict=True)))


def _union(some: Sequence[Values]) -> Values:
    return None if any(values is None for values in some) else _parts(v for values in some for v in values or ())


def _parts(values: Iterator[Any] | Sequence[Any]) -> Values:
    """The values as a list, if each can be part of a path and there are not too many."""
    found = list(itertools.islice(values, MAX_VALUES + 1))
    return found if len(found) <= MAX_VALUES and all(map(is_part, found)) else None
