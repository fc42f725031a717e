"""Where code comes from: its module, its file, and whether it is first-party.

First-party code is followed into its content. Code of the standard library, of installed packages and of evaluand
itself counts by name, because a version identifies its content.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import pathlib
import sys
import sysconfig
import types
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from evaluand.core.fingerprint.wrapping import innermost, is_a, is_readable, own_functions
from evaluand.core.system import working_folder

Namespace = Mapping[str, Any]

MISSING = object()


@dataclass(frozen=True, slots=True)
class Home:
    """The module that something comes from.

    Attributes:
        name: of the module, for what is identified by name.
        stem: of the file, for showing; unlike the module's name it does not depend on how the file was loaded.
        file: None in a notebook or an interactive session.
        ours: first-party.
        folder: where the file lies; the current directory where there is none.
    """

    name: str
    stem: str
    file: str | None
    ours: bool
    folder: str


class Homes:
    """The homes of everything met in one traversal."""

    def __init__(self, cwd: str) -> None:
        self.cwd = cwd
        self._homes: dict[int, Home] = {}
        self._namespaces: dict[str, Namespace] = {}
        self._own: dict[int, types.FunctionType | None] = {}
        self._alive: list[Any] = []  # an id belongs to its object only while that lives

    def of(self, obj: Any) -> Home:
        """The home of a function, module, class or instance, or of what it wraps."""
        obj = innermost(obj)
        if is_a(obj, types.MethodType):
            obj = obj.__func__
        if is_a(obj, types.FunctionType):
            home = self.of_namespace(obj.__globals__)
            typed = obj.__code__.co_filename.startswith(("<doctest", "<stdin"))
            return Home(home.name, home.stem, None, True, self.cwd) if typed else home
        if is_a(obj, types.ModuleType):
            return self.of_namespace(vars(obj))
        return self.of_class(obj if is_a(obj, type) else type(obj))

    def of_namespace(self, namespace: Namespace) -> Home:
        """The home of a module's names."""
        home = self._homes.get(id(namespace))
        if home is None:
            home = self._homes[id(namespace)] = _home(namespace)
            self._alive.append(namespace)
            if home.ours:
                self._namespaces.setdefault(home.name, namespace)
        return home

    def files(self) -> frozenset[str]:
        """The files of the first-party code that was met; names of modules where there is no file."""
        return frozenset(home.file or home.name for home in self._homes.values() if home.ours)

    def of_class(self, kind: type) -> Home:
        """The home of a class."""
        if not is_readable(kind):
            return Home("?", "?", None, True, self.cwd)
        function = self._own_function(kind)
        if function is not None:
            return self.of(function)
        namespace = self.namespace_of(kind)
        if not namespace:
            return Home(kind.__module__, kind.__module__, None, True, self.cwd)
        return self.of_namespace(namespace)

    def namespace_of(self, kind: type) -> Namespace:
        """The names of the module in which a class was written; none where that module is not to be found."""
        function = self._own_function(kind)
        if function is not None:
            return function.__globals__
        if kind.__module__ in self._namespaces:  # may be loaded from a path, and unknown to sys.modules
            return self._namespaces[kind.__module__]
        module = sys.modules.get(kind.__module__)
        return vars(module) if module else {}

    def _own_function(self, kind: type) -> types.FunctionType | None:
        """A function that was written in a class's module; looked for once, since each instance asks for its class."""
        if id(kind) not in self._own:
            self._own[id(kind)] = next(own_functions(kind), None)
            self._alive.append(kind)
        return self._own[id(kind)]


# -- modules


def imported(name: str, level: int, namespace: Namespace) -> types.ModuleType | None:
    """A module that a function imports when it is called; one of ours is imported now, as the call would."""
    try:
        name = importlib.util.resolve_name("." * level + name, namespace.get("__package__"))
        if name in sys.modules:
            return sys.modules[name]
        top = importlib.util.find_spec(name.partition(".")[0])
        if top is None or not top.origin or not is_first_party(top.origin):
            return None
        return importlib.import_module(name)
    except Exception:  # the module's own code may raise anything; then so will the call
        return None


def attribute_of(module: types.ModuleType, name: str) -> Any:
    """What a module holds under a name, a submodule included; MISSING where there is nothing."""
    try:
        return getattr(module, name)
    except Exception:  # a module's __getattr__ may raise anything
        submodule = imported(f"{module.__name__}.{name}", 0, vars(module)) if hasattr(module, "__path__") else None
        return submodule or MISSING


def _home(namespace: Namespace) -> Home:
    name, file = str(namespace.get("__name__", "?")), namespace.get("__file__")
    if not isinstance(file, str):
        return Home(name, name, None, name.partition(".")[0] not in sys.stdlib_module_names, working_folder())
    path = pathlib.PurePath(file)
    stem = path.parent.name if path.stem == "__init__" else path.name.partition(".")[0]
    return Home(name, stem, file, is_first_party(file), os.path.dirname(os.path.abspath(file)))


def is_first_party(file: str) -> bool:
    """Whether code that comes from a file is the user's own."""
    path = os.path.abspath(file)
    installed = {"site-packages", "dist-packages"} & set(pathlib.PurePath(path).parts)
    return not installed and not path.startswith(_NOT_OURS)


def _folders_not_ours() -> tuple[str, ...]:
    evaluand = os.path.dirname(os.path.abspath(str(sys.modules["evaluand"].__file__)))
    folders = [sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib"), evaluand]
    return tuple({form(folder) + os.sep for folder in folders for form in (os.path.abspath, os.path.realpath)})


_NOT_OURS = _folders_not_ours()
