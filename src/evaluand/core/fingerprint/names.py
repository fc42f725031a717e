"""What the names in a definition stand for, as far as that can be told without running anything."""

from __future__ import annotations

import ast
import builtins
import inspect
import os
import sys
import types
from collections.abc import Collection, Mapping
from typing import Any

from evaluand.core.fingerprint.bindings import settings_in
from evaluand.core.fingerprint.homes import MISSING, Homes, Namespace, imported
from evaluand.core.fingerprint.syntax import Chain, chain_of, imports_in
from evaluand.core.fingerprint.wrapping import is_a, is_code, is_readable

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
        settings: what sets the names inside it.
        imports: those set by importing, and what they stand for.
        set: those set otherwise.
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
        self.settings = settings_in(node)
        self.imports = imports_in(node)
        self.set = {name for name, several in self.settings.items() if any(s.how != "import" for s in several)}

    def stands_for(self, chain: Chain) -> tuple[Any, str]:
        """The value of a chain, or MISSING, and its full name, which is empty for what is first-party or not known."""
        name, *rest = chain
        if name in self.free:
            return follow(self.free[name], rest, self._homes)
        if name in self.imports:
            level, module, taken = self.imports[name]
            found = imported(module, level, self.namespace)
            if found is None:
                return MISSING, "" if level else ".".join((module, *taken, *rest))
            return follow(found, [*taken, *rest], self._homes)
        if name in self.set and name not in self.outer:
            return MISSING, ""
        return follow(self.namespace.get(name, getattr(builtins, name, MISSING)), rest, self._homes)

    def called(self, function: ast.expr) -> str | None:
        """The full name of what is called; empty where it is not known or first-party, None for a value's method."""
        chain = chain_of(function)
        if not chain:
            return None if isinstance(function, ast.Attribute) else ""
        value, full = self.stands_for(chain)
        of_path = full.startswith("pathlib.") and type(value) is types.FunctionType
        method = len(chain) > 1 and (of_path or (not full and not is_code(value)))
        return None if method else full


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
    kind = type(value)  # isinstance would ask the value for its class, which is code of its own
    if id(value) in _KNOWN_OBJECTS:
        return _KNOWN_OBJECTS[id(value)]
    if kind is types.MethodType:
        return full_name_of(value.__func__, homes)
    if kind is types.ModuleType:
        return "" if homes.of(value).ours else _SAME_MODULES.get(value.__name__, value.__name__)
    if kind is types.BuiltinFunctionType:
        owner = value.__self__ if is_a(value.__self__, type) else value
        return _plain(str(owner.__module__), value.__qualname__)
    if issubclass(kind, type):
        foreign = is_readable(value) and (value.__module__ == "builtins" or not homes.of(value).ours)
        return _plain(str(value.__module__), value.__qualname__) if foreign else ""
    if kind is types.FunctionType:
        return "" if homes.of(value).ours else _plain(str(value.__module__), value.__qualname__)
    return _plain(str(value.__module__), value.__qualname__) if kind.__name__ == "cython_function_or_method" else ""


def static_attribute(value: Any, name: str) -> Any:
    """An attribute as it is stored, MISSING where there is none or where it would have to be computed."""
    if value is MISSING:
        return MISSING
    if type(value) is types.ModuleType:
        return vars(value).get(name, MISSING)
    try:
        found = inspect.getattr_static(value, name, MISSING)
    except Exception:  # a metaclass may refuse to tell what its classes hold
        return MISSING
    if type(found) is types.MemberDescriptorType and not issubclass(type(value), type):
        try:
            return found.__get__(value)
        except AttributeError:  # not set yet
            return MISSING
    return MISSING if issubclass(type(found), property | types.GetSetDescriptorType) else found


def _plain(module: str, name: str) -> str:
    module = _SAME_MODULES.get(module, module)
    return ".".join((*(part for part in module.split(".") if not part.startswith("_")), name))
