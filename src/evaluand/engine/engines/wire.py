"""What goes to the workers of a cluster: a recipe with the user's code, pickled for the wire and never stored.

Functions and classes of modules are sent by name, and the text of every first-party module with them: a worker imports
what was sent, under the same names, and not what lies on its own disk. So its fingerprints can equal those of the
process that sent it. What has no module (a notebook, a program's own functions) is sent as it is.

Limits of rates stay where they are: a reference to them is sent, and a worker asks for each turn.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.util
import io
import linecache
import os
import pickle  # noqa: TID251 - for the wire only: nothing is stored, and only the sender's own workers read it
import sys
import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from ray import cloudpickle

from evaluand._version import __version__
from evaluand.core.errors import SpecError
from evaluand.core.fingerprint.homes import is_first_party
from evaluand.core.system import working_folder
from evaluand.engine.engine import Recipe
from evaluand.engine.policy import Policy
from evaluand.engine.rate_limit import RateLimit
from evaluand.engine.token_limit import TokenLimit


class Module(NamedTuple):
    """A module as it is sent."""

    file: str
    text: str
    is_package: bool


class Sent(NamedTuple):
    """What a worker needs to make calls.

    Attributes:
        version: of evaluand.
        folder: the working folder, which a worker enters if it has it.
        path: folders from which code may be imported later.
        modules: first-party modules by name; the program itself is `__main__`.
        texts: of code without a file, such as cells of a notebook.
        pickled: the recipe and its policy.
    """

    version: str
    folder: str
    path: Sequence[str]
    modules: Mapping[str, Module]
    texts: Mapping[str, Sequence[str]]
    pickled: bytes


def pack(recipe: Recipe[Any], policy: Policy, limits: list[RateLimit]) -> Sent:
    """A recipe to send.

    Args:
        limits: receives the limits that stay here; a worker knows them by their number.

    Raises:
        SpecError: a part of it cannot be sent.
    """
    name = recipe.code.name if recipe.code else "this work"
    written = io.BytesIO()
    try:
        _Pickler(written, limits).dump((recipe, policy))
    except SpecError:
        raise
    except Exception as error:
        raise SpecError(
            f"{name} cannot be sent to workers: {type(error).__name__}: {error};"
            " make such parts when they are first used, leave them out in `__getstate__`, or choose engine processes"
        ) from error
    path = [os.path.abspath(entry) for entry in sys.path]
    own = [entry for entry in path if os.path.isdir(entry) and is_first_party(os.path.join(entry, "code.py"))]
    return Sent(__version__, working_folder(), own, _modules(), _texts(), written.getvalue())


def load(sent: Sent, limit: Callable[[int, Any], RateLimit]) -> tuple[Recipe[Any], Policy]:
    """The recipe that was sent, and its policy.

    Args:
        limit: makes the limit with a number, for which turns are asked elsewhere.
    """
    return _Unpickler(io.BytesIO(sent.pickled), limit).load()  # type: ignore[no-any-return]


def install(sent: Sent) -> None:
    """Makes the modules that were sent importable in this process, before any others."""
    if os.path.isdir(sent.folder):
        os.chdir(sent.folder)
    sys.path[:] = [*dict.fromkeys([*sent.path, *sys.path])]
    for file, lines in sent.texts.items():
        linecache.cache[file] = (sum(map(len, lines)), None, [*lines], file)
    sys.meta_path.insert(0, _Finder(sent.modules))


def _modules() -> dict[str, Module]:
    """The first-party modules of this process."""
    found = {}
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if isinstance(file, str) and file.endswith(".py") and name != "__main__" and is_first_party(file):
            try:
                text = Path(file).read_text("utf-8")
            except (OSError, ValueError):
                continue
            found[name] = Module(os.path.abspath(file), text, hasattr(module, "__path__"))
    return found


def _texts() -> dict[str, Sequence[str]]:
    """The lines of code that is in no module: the program itself, and what was typed."""
    typed: dict[str, Sequence[str]] = {
        name: entry[2] for name, entry in linecache.cache.items() if len(entry) == 4 and name.startswith("<")
    }
    main = getattr(sys.modules.get("__main__"), "__file__", None)
    lines = linecache.getlines(main) if isinstance(main, str) else []
    return {**typed, main: lines} if isinstance(main, str) and lines else typed


class _Pickler(cloudpickle.CloudPickler):  # type: ignore[misc]
    def __init__(self, file: io.BytesIO, limits: list[RateLimit]) -> None:
        super().__init__(file)
        self._limits = limits

    def persistent_id(self, obj: Any) -> Any:
        """What stands for a limit that stays here."""
        if isinstance(obj, TokenLimit):
            raise SpecError("workers cannot share a limit of tokens; leave out token_rate, or choose engine local")
        if not isinstance(obj, RateLimit):
            return None
        if obj not in self._limits:
            self._limits.append(obj)
        return self._limits.index(obj), obj.calls, obj.seconds

    def reducer_override(self, obj: Any) -> Any:
        if isinstance(obj, Policy) and (obj.finishing or obj.sharing):  # they tell the user of this process
            return replace(obj, finishing=None, sharing=None).__reduce_ex__(pickle.HIGHEST_PROTOCOL)
        return super().reducer_override(obj)


class _Unpickler(pickle.Unpickler):
    def __init__(self, file: io.BytesIO, limit: Callable[[int, Any], RateLimit]) -> None:
        super().__init__(file)
        self._limit = limit

    def persistent_load(self, key: Any) -> RateLimit:
        number, calls, seconds = key
        return self._limit(number, RateLimit(calls, seconds))


class _Finder(importlib.abc.MetaPathFinder):
    """Finds the modules that were sent."""

    def __init__(self, modules: Mapping[str, Module]) -> None:
        self._modules = modules

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        module = self._modules.get(name)
        if module is None:
            return None
        folders = [os.path.dirname(module.file)] if module.is_package else None
        loader = _Loader(module)
        return importlib.util.spec_from_file_location(
            name, module.file, loader=loader, submodule_search_locations=folders
        )


class _Loader(importlib.abc.InspectLoader):
    """Loads a module from the text that was sent."""

    def __init__(self, module: Module) -> None:
        self._module = module

    def get_source(self, name: str) -> str:
        return self._module.text

    def get_code(self, name: str) -> types.CodeType:
        return self.source_to_code(self._module.text, self._module.file)

    def is_package(self, name: str) -> bool:
        return self._module.is_package
