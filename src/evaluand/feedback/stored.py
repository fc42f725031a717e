"""Code by its name, for definitions that are stored: what is to be imported, and what an object is made with.

Only what can be imported again is written: functions of modules, and methods of objects that are made of plain data.
What is written names code, and whoever can change the file could name any; so it is read only from modules that the
process has imported already, or that are allowed by name.
"""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import sys
from collections.abc import Callable, Collection, Mapping
from types import BuiltinMethodType, MethodType
from typing import Any, Final

from evaluand.credentials import secret_in
from evaluand.errors import DataError, SpecError, with_article
from evaluand.ids import decode, encode
from evaluand.provider import Provider

AGGREGATES: Final = frozenset(
    [f"builtins:{name}" for name in ("len", "max", "min", "sum")]
    + [f"statistics:{name}" for name in ("fmean", "mean", "median", "median_high", "median_low", "pstdev", "stdev")]
    + [f"math:{name}" for name in ("fsum", "prod")]
    + [f"numpy:{name}" for name in ("amax", "amin", "max", "mean", "median", "min", "prod", "std", "sum", "var")]
)
"""What may be read of the standard library and, without being asked for, of others."""


def reference_of(code: Callable[..., Any]) -> dict[str, Any]:
    """What can be stored of a function, a method of an object, or an object that is called.

    Raises:
        SpecError: it cannot be imported again; says why.

    Example:
        >>> reference_of(max)
        {'function': 'builtins:max'}
    """
    owner = getattr(code, "__self__", None)
    if isinstance(code, MethodType) and not isinstance(owner, type):
        return _object_reference(owner) | {"method": code.__name__}
    if isinstance(code, BuiltinMethodType) and inspect.ismodule(owner):
        return {"function": _name_of(code, code.__name__, owner.__name__)}
    if hasattr(code, "__qualname__"):
        return {"function": _name_of(code, code.__qualname__, code.__module__)}
    if _is_there(code, getattr(code, "__module__", None), getattr(code, "__name__", None)):  # such as numpy.maximum
        return {"function": f"{code.__module__}:{code.__name__}"}
    return _object_reference(code)


def referred(reference: Any, modules: Collection[str] | None = None) -> Any:
    """The code that a reference names.

    Args:
        reference: what `reference_of` gave.
        modules: names of modules and packages that may be imported; None for those that are imported already, but for
            the standard library.

    Raises:
        SpecError: it names nothing, or nothing that may be imported.
    """
    if not isinstance(reference, Mapping) or not (reference.keys() & {"function", "class"}):
        raise SpecError(f"{reference!r} names no code; it is to have the key function or class")
    if "function" in reference:
        return _found(reference["function"], modules)
    made = _found(reference["class"], modules)
    if not isinstance(made, type):
        raise SpecError(f"{reference['class']} is no class")
    try:
        thing = made(**decode(encode(reference.get("parameters", {}))))
    except Exception as error:
        raise SpecError(f"{reference['class']} cannot be made: {type(error).__name__}: {error}") from error
    method = reference.get("method")
    if method is None:
        return thing
    if not isinstance(method, str) or method.startswith("_") or not hasattr(thing, method):
        raise SpecError(f"{reference['class']} has no method {method!r}")
    return getattr(thing, method)


def _object_reference(thing: Any) -> dict[str, Any]:
    made_of = type(thing)
    name = _name_of(made_of, made_of.__qualname__, made_of.__module__)
    of_fields = isinstance(thing, Provider) and dataclasses.is_dataclass(thing)
    parameters = dict(thing.arguments) if of_fields else _made_with(thing)
    secret = next(filter(None, (secret_in(value, parameter) for parameter, value in parameters.items())), None)
    if secret is not None:
        told = f"{made_of.__qualname__} cannot be stored with its {secret}"
        raise SpecError(f"{told}; let it read that from the environment")
    return {"class": name, "parameters": parameters}


def _made_with(thing: Any) -> dict[str, Any]:
    """What an object was made with, but for what it has by default."""
    made_of, parameters = type(thing), {}
    for parameter in _parameters(made_of):
        value = _kept(thing, parameter.name)
        if value is _NOTHING:
            raise SpecError(
                f"{made_of.__qualname__} cannot be stored: it keeps no attribute {parameter.name!r} with what it was "
                "made with"
            )
        if value is parameter.default or (type(value) is type(parameter.default) and value == parameter.default):
            continue
        parameters[parameter.name] = _plain(value, f"{made_of.__qualname__}: {parameter.name}")
    return parameters


def _parameters(made_of: type) -> list[inspect.Parameter]:
    if dataclasses.is_dataclass(made_of):
        known = {field.name for field in dataclasses.fields(made_of) if field.init}
        return [p for p in inspect.signature(made_of).parameters.values() if p.name in known]
    if "__init__" not in {name for base in made_of.__mro__[:-1] for name in vars(base)}:
        return []
    parameters = list(inspect.signature(made_of).parameters.values())
    for parameter in parameters:
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.POSITIONAL_ONLY):
            raise SpecError(f"{made_of.__qualname__} cannot be stored: it takes {parameter} by position")
    return [p for p in parameters if p.kind is not p.VAR_KEYWORD]


_NOTHING: Final = object()


def _kept(thing: Any, name: str) -> Any:
    return getattr(thing, name, getattr(thing, f"_{name}", _NOTHING))


def _plain(value: Any, where: str) -> Any:
    try:
        return decode(encode(value))
    except DataError:
        kind = with_article(type(value).__name__)
        raise SpecError(f"{where} is {kind}, which cannot be stored; make it of text and numbers") from None


def _name_of(code: Any, name: str, module: str | None) -> str:
    """`module:name` of what can be imported."""
    told = name.rpartition(".")[2]
    if "<lambda>" in name:
        raise SpecError("a lambda cannot be stored; write it as a function of a module")
    if "<locals>" in name:
        raise SpecError(f"{told} cannot be stored: it is made inside a function; write it at the top of a module")
    if module in (None, "__main__"):
        raise SpecError(f"{told} cannot be stored: it stands in the script that is run; write it in a module")
    if not _is_own(f"{module}:{name}", str(module)):
        raise SpecError(f"{told} cannot be stored: call {module}.{name} from a function of your own")
    if not _is_there(code, module, name):
        raise SpecError(f"{told} cannot be stored: {module} has something else, or nothing, of that name")
    return f"{module}:{name}"


def _is_there(code: Any, module: Any, name: Any) -> bool:
    there = sys.modules.get(module) if isinstance(module, str) and isinstance(name, str) else None
    for part in name.split(".") if there is not None else ():
        there = getattr(there, part, None)
    return there is not None and (there is code or there == code)


def _found(reference: Any, modules: Collection[str] | None) -> Any:
    module, _, name = reference.partition(":") if isinstance(reference, str) else ("", "", "")
    if not module or not name or not all(part.isidentifier() for part in (*module.split("."), *name.split("."))):
        raise SpecError(f"{reference!r} names no code; write it as module:name")
    if not _is_own(reference, module) or module == "__main__":
        raise SpecError(f"{reference} may not be imported: only modules of your own are")
    if not _may_be_imported(reference, module, modules):
        raise SpecError(
            f"{reference} may not be imported: import {module} before, or allow it by name: modules=[{module!r}]"
        )
    try:
        there: Any = importlib.import_module(module)
        for part in name.split("."):
            there = getattr(there, part)
    except (ImportError, AttributeError) as error:
        raise SpecError(f"{reference} is not there: {error}") from None
    if not callable(there) or getattr(there, "__module__", None) != module:  # else a name leads on to other modules
        raise SpecError(f"{reference} is no function or class of {module}")
    return there


def _is_own(reference: str, module: str) -> bool:
    """Whether it is outside the standard library, or one of the aggregates in it."""
    return reference in AGGREGATES or module.partition(".")[0] not in sys.stdlib_module_names


def _may_be_imported(reference: str, module: str, modules: Collection[str] | None) -> bool:
    if reference in AGGREGATES or _is_within(module, _OURS):
        return True
    if modules is not None:
        return _is_within(module, modules)
    return module in sys.modules and not _is_within(module, ("evaluand",))


def _is_within(module: str, packages: Collection[str]) -> bool:
    return any(f"{module}.".startswith(f"{package}.") for package in packages)


_OURS: Final = ("evaluand.feedback", "evaluand.providers", "evaluand.interop.trulens")
