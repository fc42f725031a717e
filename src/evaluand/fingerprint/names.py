"""What the names in a definition stand for, as far as that can be told without running anything."""

from __future__ import annotations

import ast
import builtins
import inspect
import os
import sys
import types
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from evaluand.fingerprint.homes import MISSING, Homes, Namespace, imported
from evaluand.fingerprint.syntax import Chain, chain_of, imports_in

_SAME_MODULES = {
    "_io": "io",
    "nt": "os",
    "ntpath": "os.path",
    "pathlib._local": "pathlib",
    "posix": "os",
    "posixpath": "os.path",
}
_KNOWN_OBJECTS = {  # those of Python itself that do not tell their names
    id(value): name
    for name, value in (("os.environ", os.environ), ("sys.argv", sys.argv), ("sys.modules", sys.modules))
}


class Names:
    """The names in one definition.

    Args:
        node: the definition, or several in one node.
        namespace: the names of its module.
        free: names that belong to a function around it, with their values where these are known.
        outer: names that the bytecode takes from the module, whatever else is called so inside.
    """

    def __init__(
        self, node: ast.AST, namespace: Namespace, free: Mapping[str, Any] | None = None, outer: Collection[str] = ()
    ) -> None:
        self.namespace, self.free, self.outer = namespace, free or {}, outer
        self.imports = imports_in(node)
        self.set = {name for part in ast.walk(node) if part is not node for name in _set_by(part)}
        self.local = self.set | set(self.free)

    def function(self, called: ast.expr) -> str | None:
        """The full name of a function or class; empty where it is not known; None for the method of a value."""
        name, *rest = chain_of(called) or ("",)
        if not name:
            return None if isinstance(called, ast.Attribute) else ""
        if name in self.local:
            return None if rest else ""
        if name in self.imports:
            level, module, taken = self.imports[name]
            return _full_name(imported(module, level, self.namespace), module, [*taken, *rest])
        value = self.namespace.get(name, getattr(builtins, name, None))
        if type(value) is types.ModuleType:
            return _full_name(value, value.__name__, rest)
        return None if rest else _own_full_name(value)

    def stands_for(self, chain: Chain, homes: Homes) -> tuple[Any, str]:
        """The value of a chain, or MISSING, and its full name, which is empty for what is first-party or not known."""
        name, *rest = chain
        if name in self.free:
            return follow(self.free[name], rest, homes)
        if name in self.imports:
            level, module, taken = self.imports[name]
            found = imported(module, level, self.namespace)
            if found is None:
                return MISSING, "" if level else ".".join((module, *taken, *rest))
            return follow(found, [*taken, *rest], homes)
        if name in self.local and name not in self.outer:
            return MISSING, ""
        return follow(self.namespace.get(name, getattr(builtins, name, MISSING)), rest, homes)


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
        told = "" if inner is MISSING else full_name_of(inner, homes)
        by_path = f"{name}.{attribute}" if name else ""
        value, name = inner, told if type(inner) is types.ModuleType else by_path or told
    return value, name


def full_name_of(value: Any, homes: Homes) -> str:
    """The full name under which other people's code is known; empty for one's own, and for what has none."""
    if id(value) in _KNOWN_OBJECTS:
        return _KNOWN_OBJECTS[id(value)]
    if type(value) is types.ModuleType:
        return "" if homes.of(value).ours else _SAME_MODULES.get(value.__name__, value.__name__)
    if isinstance(value, types.BuiltinFunctionType):
        owner = value.__self__ if isinstance(value.__self__, type) else value
        return _plain(str(owner.__module__), value.__qualname__)
    if not isinstance(value, type | types.FunctionType) and type(value).__name__ != "cython_function_or_method":
        return ""
    if isinstance(value, type | types.FunctionType) and value.__module__ != "builtins" and homes.of(value).ours:
        return ""
    return _plain(str(value.__module__), value.__qualname__)


def static_attribute(value: Any, name: str) -> Any:
    """An attribute as it is stored, MISSING where there is none or where it would have to be computed."""
    if value is MISSING:
        return MISSING
    if type(value) is types.ModuleType:
        return vars(value).get(name, MISSING)
    found = inspect.getattr_static(value, name, MISSING)
    if type(found) is types.MemberDescriptorType and not isinstance(value, type):
        try:
            return found.__get__(value)
        except AttributeError:  # not set yet
            return MISSING
    return MISSING if isinstance(found, property | types.GetSetDescriptorType) else found


def _plain(module: str, name: str) -> str:
    module = _SAME_MODULES.get(module, module)
    return ".".join((*(part for part in module.split(".") if not part.startswith("_")), name))


def _full_name(module: types.ModuleType | None, name: str, rest: list[str]) -> str | None:
    while module is not None and rest:
        value = vars(module).get(rest[0])
        if type(value) is types.ModuleType:
            module, name, rest = value, value.__name__, rest[1:]
        elif value is not None and len(rest) > 1:
            return None
        else:
            break
    return ".".join((_SAME_MODULES.get(name, name), *rest))


def _own_full_name(value: Any) -> str:
    if not isinstance(value, types.FunctionType | types.BuiltinFunctionType | type):
        return ""
    module = str(value.__module__)
    return f"{_SAME_MODULES.get(module, module)}.{value.__qualname__}"


def _set_by(node: ast.AST) -> Iterator[str]:
    """The names that some syntax sets otherwise than by importing."""
    if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
        yield node.id
    elif isinstance(node, ast.arg):
        yield node.arg
    elif isinstance(
        node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.ExceptHandler | ast.MatchAs | ast.MatchStar
    ):
        yield node.name or ""
    elif isinstance(node, ast.MatchMapping):
        yield node.rest or ""
