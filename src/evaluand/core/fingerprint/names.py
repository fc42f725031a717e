"""Resolves the names in a definition, as far as possible without running anything."""

from __future__ import annotations

import ast
import builtins
import importlib
import inspect
import os
import sys
import types
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from evaluand.core.fingerprint.homes import MISSING, Homes, Namespace, imported
from evaluand.core.fingerprint.outside import is_listed
from evaluand.core.fingerprint.syntax import Chain, chain_of, imports_in
from evaluand.core.fingerprint.wrapping import is_a, is_readable

_SAME_MODULES = {
    "nt": "os",
    "ntpath": "os.path",
    "pathlib._local": "pathlib",
    "posix": "os",
    "posixpath": "os.path",
    "_frozen_importlib": "importlib",
    "_frozen_importlib_external": "importlib",
    "_blake2": "hashlib",
    "_md5": "hashlib",
    "_sha1": "hashlib",
    "_sha2": "hashlib",
    "_sha256": "hashlib",
    "_sha3": "hashlib",
    "_sha512": "hashlib",
    "_sre": "re",
    "_strptime": "time",
    "_pydatetime": "datetime",
    "_pydecimal": "decimal",
}
_KNOWN_OBJECTS = {  # objects of Python itself that have no name
    id(value): name
    for name, value in (
        ("builtins.__dict__", vars(builtins)),
        ("os.environ", os.environ),
        ("sys.argv", sys.argv),
        ("sys.modules", sys.modules),
    )
}


class CodeNames:
    """The names in one definition.

    Args:
        node: the definition, or several in one node.
        namespace: the names of its module.
        homes: where code comes from.
        free: names that belong to a function around it, with their values where these are known.
        outer: names that the bytecode takes from the module, whatever else is called so inside.

    Attributes:
        imports: the names set by importing, and what they stand for.
        settings: the names set otherwise → the expressions that they are set to, None for what is no expression.
    """

    def __init__(
        self,
        node: ast.AST,
        namespace: Namespace,
        homes: Homes,
        free: Mapping[str, Any] | None = None,
        outer: Collection[str] = (),
    ) -> None:
        self.namespace, self.free, self.outer, self._homes = namespace, free or {}, outer, homes
        self.imports = imports_in(node)
        self.settings = _settings_in(node)

    def is_local(self, name: str) -> bool:
        """Whether a name is set inside the definition, other than by an import."""
        return name in self.settings and name not in self.outer and name not in self.free

    def resolve(self, chain: Chain) -> tuple[Any, str]:
        """The value of a chain, or MISSING, and its full name, which is empty for what is first-party or not known."""
        name, *rest = chain
        if name in self.free:
            return follow(self.free[name], rest, self._homes)
        if name in self.imports:
            level, module, taken = self.imports[name]
            found = imported(module, level, self.namespace) or (None if level else _import_listed(module))
            if found is None:
                return MISSING, "" if level else ".".join((module, *taken, *rest))
            return follow(found, [*taken, *rest], self._homes)
        if self.is_local(name):
            return MISSING, ""
        return follow(self.namespace.get(name, getattr(builtins, name, MISSING)), rest, self._homes)

    def is_ours(self, value: Any) -> bool:
        """Whether code is first-party."""
        return self._homes.of(value).ours

    def full_name(self, value: Any) -> str:
        """The full name of a value; empty for what is first-party, and for what has none."""
        return full_name_of(value, self._homes)

    def resolve_node(self, node: ast.AST) -> tuple[Any, str]:
        """The value and full name of an expression; MISSING and empty where it is more than a chain of names."""
        chain = chain_of(node)
        return self.resolve(chain) if chain else (MISSING, "")

    def named(self, node: ast.AST) -> str:
        """The full name of an expression; empty where it has none."""
        return self.resolve_node(node)[1]


def _import_listed(module: str) -> types.ModuleType | None:
    """A listed module that is not imported yet; the call would import it, and what takes a seed is seen only then."""
    try:
        return importlib.import_module(module) if is_listed(module) else None
    except Exception:  # it is not installed, or fails; then so will the call
        return None


def _settings_in(node: ast.AST) -> Mapping[str, Sequence[ast.expr | None]]:
    found: dict[str, list[ast.expr | None]] = defaultdict(list)
    known: set[int] = set()
    for part in ast.walk(node):
        for target, value in assigned(part):
            if isinstance(target, ast.Name):
                known.add(id(target))
                found[target.id].append(value)
        if isinstance(part, ast.Name) and not isinstance(part.ctx, ast.Load) and id(part) not in known:
            found[part.id].append(None)
        elif part is not node and (name := _name_set(part)):
            found[name].append(None)
    return found


def assigned(node: ast.AST) -> Iterator[tuple[ast.expr, ast.expr]]:
    """The targets of an assignment, each with the expression that it is set to; those of `a, b = 1, 2` one by one."""
    match node:
        case ast.Assign(targets=targets, value=value):
            pairs = [(target, value) for target in targets]
        case ast.AnnAssign(target=target, value=ast.expr() as value) | ast.NamedExpr(target=target, value=value):
            pairs = [(target, value)]
        case ast.withitem(context_expr=value, optional_vars=ast.expr() as target):
            pairs = [(target, value)]
        case _:
            return
    for target, value in pairs:
        match target, value:
            case ast.Tuple(elts=inner), ast.Tuple(elts=values) if len(inner) == len(values) and not any(
                isinstance(part, ast.Starred) for part in (*inner, *values)
            ):
                yield from zip(inner, values, strict=True)
            case _:
                yield target, value


def _name_set(node: ast.AST) -> str:
    if isinstance(node, ast.arg):
        return node.arg
    if isinstance(node, ast.MatchMapping):
        return node.rest or ""
    named = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.ExceptHandler | ast.MatchAs | ast.MatchStar
    return (node.name or "") if isinstance(node, named) else ""


def closure_of(function: types.FunctionType) -> dict[str, Any]:
    """The variables of the functions around one; MISSING where they are not set yet."""
    found: dict[str, Any] = {}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            found[name] = cell.cell_contents
        except ValueError:
            found[name] = MISSING
    return found


def follow(value: Any, rest: Collection[str], homes: Homes) -> tuple[Any, str]:
    """What is found by taking attributes from a value, and its full name; no attribute is computed for that."""
    name = full_name_of(value, homes)
    for attribute in rest:
        inner = static_attribute(value, attribute)
        own = "" if inner is MISSING else full_name_of(inner, homes)
        by_path = f"{name}.{attribute}" if name else ""
        value, name = inner, own if type(inner) is types.ModuleType else by_path or own
    return value, name


def full_name_of(value: Any, homes: Homes) -> str:
    """The full name under which third-party code is known; empty for first-party code, and for what has none."""
    kind = type(value)  # isinstance would ask the value for its class, which may run code
    if id(value) in _KNOWN_OBJECTS:
        return _KNOWN_OBJECTS[id(value)]
    if kind is types.MethodType:
        return full_name_of(value.__func__, homes)
    if kind is types.ModuleType:
        return "" if homes.of(value).ours else _SAME_MODULES.get(value.__name__, value.__name__)
    if kind is types.BuiltinFunctionType:
        owner = value.__self__ if is_a(value.__self__, type) else value
        return _public(str(owner.__module__ or type(value.__self__).__module__), value.__qualname__)
    if issubclass(kind, type):
        foreign = is_readable(value) and (value.__module__ == "builtins" or not homes.of(value).ours)
        return _public(str(value.__module__), value.__qualname__) if foreign else ""
    if kind is types.FunctionType:
        return "" if homes.of(value).ours else _name_of_function(value, homes)
    return _public(str(value.__module__), value.__qualname__) if kind.__name__ == "cython_function_or_method" else ""


def _name_of_function(function: types.FunctionType, homes: Homes) -> str:
    """The full name of a foreign function; if it has taken the name of a first-party function, that in its code."""
    module = sys.modules.get(str(function.__module__))
    if module is not None and not homes.of(module).ours:
        return _public(module.__name__, function.__qualname__)
    return _public(homes.of(function).name, function.__code__.co_qualname)


def static_attribute(value: Any, name: str) -> Any:
    """An attribute as it is stored, MISSING where there is none or where it would have to be computed."""
    if value is MISSING:
        return MISSING
    if type(value) is types.ModuleType:
        return vars(value).get(name, MISSING)
    try:
        found = inspect.getattr_static(value, name, MISSING)
    except Exception:  # a metaclass may refuse to say what its classes hold
        return MISSING
    if type(found) is types.MemberDescriptorType and not issubclass(type(value), type):
        try:
            return found.__get__(value)
        except AttributeError:  # not set yet
            return MISSING
    computed = property | types.DynamicClassAttribute | types.GetSetDescriptorType
    return MISSING if issubclass(type(found), computed) else found


def _public(module: str, name: str) -> str:
    """A full name without the private modules in which a package keeps it."""
    module = _SAME_MODULES.get(module, module)
    top, *inner = module.split(".")
    return ".".join((top.lstrip("_") or top, *(part for part in inner if not part.startswith("_")), name))
