"""Code by its name, for definitions that are stored: what is to be imported, and what an object is made with.

Only what can be imported again is written: functions of modules, and methods of providers that are made of plain data.
What is written names code, and whoever can change the file could name any; so but for evaluand's own it is read only
from modules that are allowed by name, no objects but providers are made, and these after all else was checked.
"""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import sys
from collections.abc import Callable, Collection, Mapping
from types import BuiltinMethodType, FunctionType, MethodType
from typing import Any, Final, NamedTuple

from evaluand.core.errors import DataError, SpecError, with_article
from evaluand.core.identity import decode, encode
from evaluand.core.redaction import secret_in
from evaluand.evaluation.provider import Provider

_COMMON: Final = {
    "evaluand.evaluation.feedback": ("mean",),
    "builtins": ("min", "max", "sum", "len"),
    "statistics": ("median", "median_high", "median_low", "fmean", "mean", "pstdev", "stdev"),
    "math": ("fsum", "prod"),
    "numpy": ("amax", "amin", "max", "mean", "median", "min", "prod", "std", "sum", "var"),
}
_REFERENCES: Final = frozenset(f"{module}:{name}" for module, names in _COMMON.items() for name in names)
"""What may be read of the standard library and of NumPy without being allowed by name."""

_KEEPING: Final = _REFERENCES & {
    *("builtins:max", "builtins:min", "evaluand.evaluation.feedback:mean"),
    *(f"statistics:{name}" for name in ("fmean", "mean", "median", "median_high", "median_low")),
    *(f"numpy:{name}" for name in ("amax", "amin", "max", "mean", "median", "min")),
}

AGGREGATES: Final = tuple(dict.fromkeys(name for names in _COMMON.values() for name in names))
"""The aggregates that have a name of their own."""


class NotAllowed(SpecError):
    """Code that a reference names in a module that may not be imported.

    Attributes:
        reference: what it is called, `module:name`.
        module: the module.
    """

    def __init__(self, reference: str, module: str) -> None:
        self.reference, self.module = reference, module
        how = f"allow it by name: modules=[{module!r}]"
        super().__init__(f"{reference} may not be imported", python=how)

    def __reduce__(self) -> tuple[type[NotAllowed], tuple[str, str]]:
        return type(self), (self.reference, self.module)


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
    if isinstance(code, type):
        raise SpecError(f"{code.__qualname__} is a class, which cannot be stored; call it from a function of your own")
    if hasattr(code, "__qualname__"):
        return {"function": _name_of(code, code.__qualname__, code.__module__)}
    if _is_there(code, getattr(code, "__module__", None), getattr(code, "__name__", None)):  # such as numpy.maximum
        return {"function": f"{code.__module__}:{code.__name__}"}
    return _object_reference(code)


def keeps_range(aggregate: Callable[..., Any]) -> bool:
    """Whether what an aggregate gives surely lies between the lowest and the highest of what it is given.

    Example:
        >>> keeps_range(max), keeps_range(sum)
        (True, False)
    """
    module, name = (getattr(aggregate, part, None) for part in ("__module__", "__name__"))
    return f"{module}:{name}" in _KEEPING and _is_there(aggregate, module, name)


class Referred(NamedTuple):
    """What a reference names.

    Attributes:
        likeness: a function with the name and the arguments of what is named.
        make: makes what is named; of a provider's method, the provider.
    """

    likeness: Callable[..., Any]
    make: Callable[[], Callable[..., Any]]


def referred(reference: Any, modules: Collection[str] = ()) -> Referred:
    """The code that a reference names; nothing of it is called before `make` is.

    Args:
        reference: what `reference_of` gave.
        modules: names of modules and packages that may be imported beside evaluand's own.

    Raises:
        SpecError: it names nothing, or nothing that may be imported or made.
    """
    if isinstance(modules, str):
        raise SpecError(f"modules is a list of names; write modules=[{modules!r}]")
    if not isinstance(reference, Mapping) or not (reference.keys() & {"function", "class"}):
        raise SpecError(f"{reference!r} names no code; it is to have the key function or class")
    if "function" in reference:
        function = _found(reference["function"], modules)
        if isinstance(function, type):
            raise SpecError(f"{reference['function']} is a class, no function")
        return Referred(function, lambda: function)
    name = reference["class"]
    made = _found(name, modules)
    if not (isinstance(made, type) and issubclass(made, Provider)):
        raise SpecError(f"{name} is no provider, and nothing else is made")
    method = reference.get("method", "__call__")
    function = inspect.getattr_static(made, method, None) if isinstance(method, str) else None
    if not isinstance(function, FunctionType) or (method.startswith("_") and method != "__call__"):
        raise SpecError(f"{name} has no method {method!r}")
    try:
        parameters = decode(encode(reference.get("parameters", {})))
        inspect.signature(made).bind(**parameters)
    except (TypeError, ValueError, DataError) as error:
        raise SpecError(f"{name} cannot be made: {error}") from None
    of_provider = "method" in reference

    def make() -> Callable[..., Any]:
        try:
            provider: Any = made(**parameters)
        except Exception as error:
            raise SpecError(f"{name} cannot be made: {type(error).__name__}: {error}") from error
        code: Callable[..., Any] = getattr(provider, method) if of_provider else provider
        return code

    return Referred(MethodType(function, made), make)


def aggregate_called(name: str) -> Callable[..., Any]:
    """The aggregate of a name; of several, the first that is listed.

    Example:
        >>> aggregate_called("max") is max
        True
    """
    module = next(module for module, names in _COMMON.items() if name in names)
    return referred({"function": f"{module}:{name}"}).make()


def _object_reference(thing: Any) -> dict[str, Any]:
    made_of = type(thing)
    if not isinstance(thing, Provider):
        told = f"{made_of.__qualname__} cannot be stored: it is no provider"
        raise SpecError(f"{told}; derive it from evaluand.Provider, or write a function of a module")
    name = _name_of(made_of, made_of.__qualname__, made_of.__module__)
    of_fields = dataclasses.is_dataclass(thing)
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


def _found(reference: Any, modules: Collection[str]) -> Any:
    module, _, name = reference.partition(":") if isinstance(reference, str) else ("", "", "")
    if not module or not name or not all(part.isidentifier() for part in (*module.split("."), *name.split("."))):
        raise SpecError(f"{reference!r} names no code; write it as module:name")
    module = present_module(module)
    reference = f"{module}:{name}"
    if not _is_own(reference, module) or module == "__main__":
        raise SpecError(f"{reference} may not be imported: only modules of your own are")
    if not _may_be_imported(reference, module, modules):
        raise NotAllowed(reference, module)
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
    return reference in _REFERENCES or module.partition(".")[0] not in sys.stdlib_module_names


def _may_be_imported(reference: str, module: str, modules: Collection[str]) -> bool:
    return reference in _REFERENCES or _is_within(module, (*_OURS, *modules))


def _is_within(module: str, packages: Collection[str]) -> bool:
    return any(f"{module}.".startswith(f"{package}.") for package in packages)


_OURS: Final = ("evaluand.evaluation.feedback", "evaluand.evaluation.providers", "evaluand.interop.trulens")

_MOVED: Final = {
    "evaluand.feedback": "evaluand.evaluation.feedback",
    "evaluand.providers": "evaluand.evaluation.providers",
}
"""Old → present packages of evaluand's own code; definitions stored by versions before 0.1.0 name the old ones."""


def present_module(module: str) -> str:
    """Maps a module that a stored definition names to its present name.

    Example:
        >>> present_module("evaluand.providers.local"), present_module("my_judges")
        ('evaluand.evaluation.providers.local', 'my_judges')
    """
    old = next((old for old in _MOVED if _is_within(module, (old,))), None)
    return module if old is None else _MOVED[old] + module.removeprefix(old)
