"""Code of the user's own, by name: functions, classes and errors, from files and modules."""

from __future__ import annotations

import builtins
import hashlib
import importlib
import importlib.util
import inspect
import os
import sys
import traceback
from contextlib import suppress
from pathlib import Path
from typing import Any

from evaluand.core import registry
from evaluand.core.errors import SpecError, kind_of
from evaluand.core.files.yaml import Document
from evaluand.engine.engine import TRANSIENT
from evaluand.experiment.spec import CodeSpec, RunSpec


def loaded(spec: CodeSpec, folder: Path) -> Any:
    """A function or an object; a class is called with the parameters."""
    value, name = referred(spec.function, folder), spec.function.rpartition(":")[2]
    if isinstance(value, type):
        try:
            return value(**spec.parameters)
        except Exception as error:
            hint = f"; the arguments of {name} stand under parameters"
            raise SpecError(_told(error, folder) or f"{_home(value, folder)}{_named(error)}{hint}") from error
    if spec.parameters:
        raise SpecError(f"{spec.function} is no class, so it takes no parameters")
    return value


def referred(function: str, folder: Path) -> Any:
    """What stands under a name in a file or module, `file.py:name` or `module:name`."""
    place, _, name = function.rpartition(":")
    value: Any = _module(place, folder)
    for part in name.split("."):
        if not hasattr(value, part):
            known = [n for n in vars(value) if not n.startswith("_")]
            raise SpecError(f"{place} has no {part!r}{registry.nearest(part, known)}")
        value = getattr(value, part)
    return value


def transient(spec: RunSpec, folder: Path, document: Document, any_name: bool) -> list[str]:
    """What the error classes worth a retry are called where they are defined; notes those that are none."""
    names = []
    for i, name in enumerate(spec.transient):
        with document.at("run", "transient", i):
            names.append(_error_class(name, folder, any_name))
    return names


def _error_class(name: str, folder: Path, any_name: bool) -> str:
    if name in TRANSIENT:
        return name
    importlib.import_module("evaluand.engine.processes")  # has errors of its own
    known = _loaded_errors()
    if "." in name:
        module, _, last = name.rpartition(".")
        given = referred(f"{module}:{last}", folder)
    else:
        given = known.get(name) or getattr(builtins, name, None)
    if given is None and any_name:
        return name
    if given is None:
        hint = registry.nearest(name, known)
        raise SpecError(f"no error class is called {name!r}{hint}; name one of your code, or say module.{name}")
    if not isinstance(given, type) or not issubclass(given, BaseException):
        raise SpecError(f"{name} is {kind_of(given)}, not an error class")
    return given.__name__


def _loaded_errors() -> dict[str, type[BaseException]]:
    """Every class of errors that is defined by now, by its name."""
    found: dict[type[BaseException], None] = {}
    left: list[type[BaseException]] = [BaseException]
    while left:
        error = left.pop()
        if error not in found:
            found[error] = None
            left += error.__subclasses__()
    return {error.__name__: error for error in found}


def _home(made: type, folder: Path) -> str:
    """`file.py:line: ` of a class."""
    with suppress(OSError, TypeError):
        return f"{_relative(inspect.getfile(made), folder)}:{inspect.getsourcelines(made)[1]}: "
    return ""


def _module(place: str, folder: Path) -> Any:
    """The module at a path or of a name, with the experiment's folder on the import path."""
    entry = str(folder.resolve())
    if entry not in sys.path:
        sys.path.insert(0, entry)
    try:
        if not place.endswith(".py"):
            if place.startswith("."):
                raise SpecError(f"{place!r} is neither a file nor a module; give file.py:name or module:name")
            return importlib.import_module(place)
        path = (folder / place).resolve()
        if not path.is_file():
            raise SpecError(f"{path}: no such file")
        return _executed(path)
    except SpecError:
        raise
    except (Exception, SystemExit) as error:
        told = _told(error, folder) or f"{place} cannot be imported: {_named(error)}"
        raise SpecError(told) from error


def _told(error: BaseException, folder: Path) -> str:
    """What was raised, after the place in the user's files; nothing where it was raised outside of them."""
    places = [(frame.filename, frame.lineno) for frame in traceback.extract_tb(error.__traceback__)]
    if isinstance(error, SyntaxError) and error.filename:
        places.append((error.filename, error.lineno))
    own = [(_relative(file, folder), line) for file, line in places if _is_own(file, folder)]
    return f"{own[-1][0]}:{own[-1][1]}: {_named(error)}" if own else ""


def _is_own(file: str, folder: Path) -> bool:
    path = Path(file)
    return path.is_relative_to(folder.resolve()) and "site-packages" not in path.parts


def _relative(file: str, folder: Path) -> str:
    return os.path.relpath(file, folder.resolve())


def _named(error: BaseException) -> str:
    return f"{type(error).__name__}: {error.msg if isinstance(error, SyntaxError) else error}"


def _executed(path: Path) -> Any:
    """The module of a file, executed again only when its text has changed."""
    text = hashlib.blake2b(path.read_bytes()).digest()
    name = f"{path.stem}_" if path.stem in sys.stdlib_module_names else path.stem
    loaded = sys.modules.get(name)
    if loaded is not None and getattr(loaded, "__file__", None) == str(path) and _TEXTS.get(name) == text:
        return loaded
    made = importlib.util.spec_from_file_location(name, path)
    assert made is not None
    assert made.loader is not None
    module = importlib.util.module_from_spec(made)
    sys.modules[name] = module
    try:
        made.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]  # half a module is none
        raise
    _TEXTS[name] = text
    return module


_TEXTS: dict[str, bytes] = {}
