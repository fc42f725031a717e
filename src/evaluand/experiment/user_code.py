"""Imports the user's functions, classes and errors by name, from files and modules."""

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

from evaluand.core.errors import SpecError, kind_of, nearest
from evaluand.core.files.yaml import Document
from evaluand.core.redaction import issued_in
from evaluand.core.system import keep_process_state
from evaluand.engine.policy import TRANSIENT
from evaluand.experiment.spec import CodeSpec, RunSpec


def load(spec: CodeSpec, folder: Path) -> Any:
    """A function, or an object: a class is called with the parameters.

    Raises:
        SpecError: there is no such code, or it fails, or a parameter is a credential.
    """
    if place := issued_in(spec.parameters, "parameters"):
        raise SpecError(f"{place} would be stored; let the code read it from an environment variable")
    value, name = import_reference(spec.function, folder), spec.function.rpartition(":")[2]
    if isinstance(value, type):
        try:
            return value(**spec.parameters)
        except Exception as error:
            hint = f"; put the arguments of {name} under parameters"
            raise SpecError(
                _locate_error(error, folder) or f"{_format_location(value, folder)}{_format_error(error)}{hint}"
            ) from error
    if spec.parameters:
        raise SpecError(f"{spec.function} is not a class, so it takes no parameters")
    return value


def import_reference(function: str, folder: Path) -> Any:
    """The object with a name in a file or module: `file.py:name` or `module:name`."""
    place, _, name = function.rpartition(":")
    value: Any = _import_module(place, folder)
    for part in name.split("."):
        if not hasattr(value, part):
            known = [n for n in vars(value) if not n.startswith("_")]
            raise SpecError(f"{place} has no {part!r}{nearest(part, known)}")
        value = getattr(value, part)
    return value


def transient_errors(spec: RunSpec, folder: Path, document: Document, any_name: bool) -> list[str]:
    """The names of the error classes worth a retry, where they are defined; adds faults for other names."""
    names = []
    for i, name in enumerate(spec.transient):
        with document.at("run", "transient", i):
            names.append(_error_class(name, folder, any_name))
    return names


def _error_class(name: str, folder: Path, any_name: bool) -> str:
    if name in TRANSIENT:
        return name
    importlib.import_module("evaluand.engine.engines.processes")  # defines further errors
    known = _loaded_errors()
    if "." in name:
        module, _, last = name.rpartition(".")
        found = import_reference(f"{module}:{last}", folder)
    else:
        found = known.get(name) or getattr(builtins, name, None)
    if found is None and any_name:
        return name
    if found is None:
        hint = nearest(name, known)
        raise SpecError(f"no error class is called {name!r}{hint}; name a class of your code, or write module.{name}")
    if not isinstance(found, type) or not issubclass(found, BaseException):
        raise SpecError(f"{name} is {kind_of(found)}, not an error class")
    return found.__name__


def _loaded_errors() -> dict[str, type[BaseException]]:
    """All error classes defined so far, by name."""
    found: dict[type[BaseException], None] = {}
    left: list[type[BaseException]] = [BaseException]
    while left:
        error = left.pop()
        if error not in found:
            found[error] = None
            left += error.__subclasses__()
    return {error.__name__: error for error in found}


def _format_location(made: type, folder: Path) -> str:
    with suppress(OSError, TypeError):
        return f"{_relative(inspect.getfile(made), folder)}:{inspect.getsourcelines(made)[1]}: "
    return ""


@keep_process_state()
def _import_module(place: str, folder: Path) -> Any:
    """The module with a path or name, with the experiment's folder on the import path."""
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
        return _execute_file(path)
    except SpecError:
        raise
    except (Exception, SystemExit) as error:
        message = _locate_error(error, folder) or f"{place} cannot be imported: {_format_error(error)}"
        raise SpecError(message) from error


def _locate_error(error: BaseException, folder: Path) -> str:
    """An error with its location in the user's files; empty if it was raised elsewhere."""
    places = [(frame.filename, frame.lineno) for frame in traceback.extract_tb(error.__traceback__)]
    if isinstance(error, SyntaxError) and error.filename:
        places.append((error.filename, error.lineno))
    own = [(_relative(file, folder), line) for file, line in places if _is_own(file, folder)]
    return f"{own[-1][0]}:{own[-1][1]}: {_format_error(error)}" if own else ""


def _is_own(file: str, folder: Path) -> bool:
    path = Path(file)
    return path.is_relative_to(folder.resolve()) and "site-packages" not in path.parts


def _relative(file: str, folder: Path) -> str:
    return os.path.relpath(file, folder.resolve())


def _format_error(error: BaseException) -> str:
    return f"{type(error).__name__}: {error.msg if isinstance(error, SyntaxError) else error}"


def _execute_file(path: Path) -> Any:
    """The module of a file, executed again only if its text has changed."""
    text = hashlib.blake2b(path.read_bytes()).digest()
    name = f"{path.stem}_" if path.stem in sys.stdlib_module_names else path.stem
    load = sys.modules.get(name)
    if load is not None and getattr(load, "__file__", None) == str(path) and _TEXTS.get(name) == text:
        return load
    made = importlib.util.spec_from_file_location(name, path)
    assert made is not None
    assert made.loader is not None
    module = importlib.util.module_from_spec(made)
    sys.modules[name] = module
    try:
        made.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]  # never leave a half-executed module
        raise
    _TEXTS[name] = text
    return module


_TEXTS: dict[str, bytes] = {}
