"""What wraps what: the function inside a property, a partial, a cache or a task, and the functions a class consists of.

A wrapper of a known kind is read rather than copied: the wrapped object is code with a separate name, and its settings
are data.
"""

from __future__ import annotations

import functools
import os
import types
from collections.abc import Iterator, Sequence
from typing import Any


def is_a(value: Any, *kinds: type) -> bool:
    """Whether a value has one of the types, without reading its `__class__`, which may run code."""
    return issubclass(type(value), kinds)


def wrapped(value: Any) -> tuple[Any, ...] | None:
    """What a wrapper of code consists of; None for anything else."""
    kind = type(value)
    if issubclass(kind, staticmethod | classmethod):
        return (value.__func__,)
    if issubclass(kind, property):
        return value.fget, value.fset, value.fdel
    if kind is functools.cached_property:
        return (value.func,)
    if kind is functools.partial or kind is functools.partialmethod:
        return value.func, value.args, value.keywords
    if kind is functools.singledispatchmethod:
        return value.func, dict(value.dispatcher.registry)
    if is_cached(value):
        return value.__wrapped__, value.cache_parameters()
    if _is_function_kind(kind):
        declared = getattr(value, "declared", value.version)  # a scorer's `version` is that of its kind
        return (value.function,) if declared is None else (value.function, declared)
    return None


def is_cached(value: Any) -> bool:
    """Whether something is a function whose results are cached."""
    return module_of(type(value)) == "functools" and hasattr(value, "cache_parameters")


def innermost(value: Any) -> Any:
    """What is left when every wrapper is taken off."""
    while (inner := wrapped(value)) and not is_a(inner[0], str, types.NoneType):
        value = inner[0]
    return value


def is_code(value: Any) -> bool:
    """Whether something is a function, class or module, or wraps one."""
    kind = type(value)
    return kind in (types.FunctionType, types.ModuleType) or issubclass(kind, type) or wrapped(value) is not None


def is_function(value: Any) -> bool:
    """Whether something is a function, of Python or compiled."""
    kind = type(value)
    return kind in (types.FunctionType, types.BuiltinFunctionType) or kind.__name__ == "cython_function_or_method"


def is_readable(kind: type) -> bool:
    """Whether a class shows what it consists of; a metaclass may refuse."""
    try:
        return bool(kind.__mro__ and vars(kind) and kind.__qualname__) and hasattr(kind, "__module__")
    except Exception:  # of the metaclass's own
        return False


def declared_files(value: Any) -> Sequence[str | os.PathLike[str]]:
    """The files that a task or scorer made of a function declares."""
    return value.files if _is_function_kind(type(value)) else ()


def _is_function_kind(kind: type) -> bool:
    return module_of(kind).startswith("evaluand.") and kind.__name__ in ("FunctionTask", "FunctionScorer")


# -- names


def name_of(obj: Any) -> str:
    """What something is called, without its module."""
    if is_a(obj, types.FunctionType):
        return str(obj.__code__.co_qualname)
    obj = innermost(obj)
    try:
        name: Any = obj.__qualname__
    except Exception:  # whatever objects raise when asked for an attribute
        name = None
    return name if isinstance(name, str) and name else type(obj).__qualname__


def module_of(kind: type) -> str:
    """The name of the module of a class."""
    name: Any = kind.__module__
    return name if isinstance(name, str) else ""  # some extension types have a property there


def file_of(function: types.FunctionType) -> str:
    """The file of a function; where the code has a relative path, it is the module that knows the folder."""
    named, file = function.__code__.co_filename, function.__globals__.get("__file__")
    return file if isinstance(file, str) and os.path.basename(file) == os.path.basename(named) else named


# -- classes


def functions_in(value: Any) -> list[types.FunctionType]:
    """The functions that a class's attribute is made of."""
    if type(value) is types.FunctionType:
        return [value]
    if is_a(value, staticmethod, classmethod, property, functools.cached_property):
        return [f for f in wrapped(value) or () if type(f) is types.FunctionType]
    return []


def own_functions(kind: type) -> Iterator[types.FunctionType]:
    """The functions of a class that were written in the class's module."""
    for value in vars(kind).values():
        for function in functions_in(value):
            if function.__module__ == kind.__module__ == function.__globals__.get("__name__"):
                yield function


def cached_properties(kind: type) -> set[str]:
    """The names of the properties whose values are cached among an instance's attributes."""
    return {name for base in kind.__mro__ for name, v in vars(base).items() if type(v) is functools.cached_property}
