"""References to code in stored definitions: the name to import, and the arguments of an object.

Only code that can be imported again is stored: functions of modules, and methods of providers whose arguments are plain
data. Whoever can edit the file could name any code. So of evaluand and the standard library only what a table lists is
imported, other code only from modules that are allowed by name and define it themselves, and only providers are
constructed, after everything else was checked.
"""

import importlib
import inspect
import sys
from collections.abc import Callable, Collection, Mapping
from types import BuiltinMethodType, FunctionType, MethodType
from typing import Any, Final, NamedTuple, Self

from evaluand.core.errors import DataError, SpecError
from evaluand.core.identity import decode, encode
from evaluand.core.secret_hosts import reading_file
from evaluand.evaluation.provider import Provider

_COMMON: Final = {
    "evaluand.evaluation.feedback": ("mean",),
    "builtins": ("min", "max", "sum", "len"),
    "statistics": ("median", "median_high", "median_low", "fmean", "mean", "pstdev", "stdev"),
    "math": ("fsum", "prod"),
    "numpy": ("amax", "amin", "max", "mean", "median", "min", "prod", "std", "sum", "var"),
}
_REFERENCES: Final = frozenset(f"{module}:{name}" for module, names in _COMMON.items() for name in names)
"""Functions of the standard library and NumPy that need no permission by name."""

_PROVIDERS: Final = {
    "evaluand.evaluation.providers.agreement": ("Agreement",),
    "evaluand.evaluation.providers.embeddings": ("Embeddings",),
    "evaluand.evaluation.providers.english": ("Sentiment", "Toxicity"),
    "evaluand.evaluation.providers.ground_truth": ("GroundTruth",),
    "evaluand.evaluation.providers.languages": ("Languages",),
    "evaluand.evaluation.providers.local": ("Local",),
    "evaluand.evaluation.providers.personal_data": ("PersonalData",),
    "evaluand.evaluation.providers.readability": ("Readability",),
    "evaluand.interop.trulens.aggregator": ("GroundTruthAggregator",),
    "evaluand.interop.trulens.providers": ("GroundTruthAgreement", "HuggingFace", "Huggingface", "HuggingfaceLocal"),
}
_IMPLEMENTATIONS: Final = _REFERENCES | {f"{module}:{name}" for module, names in _PROVIDERS.items() for name in names}
"""All code outside the user's that a stored definition may name: evaluand's own judges compute, and open no file that
a definition names and no connection."""

_ASKING: Final = {
    "evaluand.interop.trulens.huggingface_inference": ("HuggingfaceInference",),
    "evaluand.interop.trulens.llm_provider": ("LLMProvider",),
    "evaluand.interop.trulens.models": ("AzureOpenAI", "Bedrock", "Cohere", "Cortex", "LiteLLM", "OpenAI"),
}
_SERVICES: Final = frozenset(f"{module}:{name}" for module, names in _ASKING.items() for name in names)
"""Judges of evaluand that send what they judge to an address that the definition names: allowed like other modules."""

_KEEPING: Final = _REFERENCES & {
    *("builtins:max", "builtins:min", "evaluand.evaluation.feedback:mean"),
    *(f"statistics:{name}" for name in ("fmean", "mean", "median", "median_high", "median_low")),
    *(f"numpy:{name}" for name in ("amax", "amin", "max", "mean", "median", "min")),
}

AGGREGATES: Final = tuple(dict.fromkeys(name for names in _COMMON.values() for name in names))
"""The aggregates that can be referred to by a short name."""


def asks_services(module: str) -> bool:
    """Whether a module of evaluand has judges that send what they judge to an address of the definition."""
    return module in _ASKING


class NotAllowed(SpecError):
    """A reference, `module:name`, names code in a module that may not be imported."""

    def __init__(self, reference: str, module: str) -> None:
        self.reference, self.module = reference, module
        how = f"allow it by name: modules=[{module!r}]"
        super().__init__(f"{reference} may not be imported", python=how)

    def __reduce__(self) -> tuple[type[Self], tuple[str, str]]:
        return type(self), (self.reference, self.module)


def reference_of(code: Callable[..., Any]) -> dict[str, Any]:
    """The reference to a function, a method of an object, or a callable object, as it is stored.

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
        return {"function": _import_name(code, code.__name__, owner.__name__)}
    if isinstance(code, type):
        raise SpecError(f"{code.__qualname__} is a class, which cannot be stored; call it from your own function")
    if hasattr(code, "__qualname__"):
        return {"function": _import_name(code, code.__qualname__, code.__module__)}
    if _is_importable_as(
        code, getattr(code, "__module__", None), getattr(code, "__name__", None)
    ):  # such as numpy.maximum
        return {"function": f"{code.__module__}:{code.__name__}"}
    return _object_reference(code)


def restored(code: Callable[..., Any], reference: Mapping[str, Any]) -> Callable[..., Any]:
    """What a reference to code leads to: the code itself, or that of a provider which is made again.

    Raises:
        SpecError: the provider cannot be made again from its stored arguments.
    """
    if "class" not in reference:
        return code
    stored: Any = code.__self__ if isinstance(code, MethodType) else code
    kind = type(stored)
    if isinstance(code, MethodType) and getattr(kind, reference["method"], None) is not code.__func__:
        raise SpecError(f"{kind.__qualname__} has another method under the name {reference['method']!r}")
    try:
        with reading_file():
            again = kind(**decode(encode(reference["parameters"])))
    except Exception as error:
        raise SpecError(f"{kind.__qualname__} cannot be made again: {type(error).__name__}: {error}") from error
    return MethodType(code.__func__, again) if isinstance(code, MethodType) else again


def keeps_range(aggregate: Callable[..., Any]) -> bool:
    """Whether the result of an aggregate always lies between its lowest and its highest argument.

    Example:
        >>> keeps_range(max), keeps_range(sum)
        (True, False)
    """
    module, name = (getattr(aggregate, part, None) for part in ("__module__", "__name__"))
    return f"{module}:{name}" in _KEEPING and _is_importable_as(aggregate, module, name)


class Referred(NamedTuple):
    """The code that a reference names: a function with its name and parameters, and what returns the code itself."""

    likeness: Callable[..., Any]
    make: Callable[[], Callable[..., Any]]


def referred(reference: Any, modules: Collection[str] = ()) -> Referred:
    """The code that a reference names; none of it runs before `make` is called.

    Args:
        reference: a result of `reference_of`.
        modules: names of modules and packages that may be imported in addition to evaluand's own implementations.

    Raises:
        SpecError: the reference is invalid, or its code may not be imported or constructed.
    """
    if isinstance(modules, str):
        raise SpecError(f"modules is a list of names; write modules=[{modules!r}]")
    if not isinstance(reference, Mapping) or not (reference.keys() & {"function", "class"}):
        raise SpecError(f"{reference!r} names no code; give it the key function or class")
    if "function" in reference:
        function = _import_code(reference["function"], modules)
        if isinstance(function, type):
            raise SpecError(f"{reference['function']} is a class, not a function")
        return Referred(function, lambda: function)
    name = reference["class"]
    kind = _import_code(name, modules)
    if not (isinstance(kind, type) and issubclass(kind, Provider)):
        raise SpecError(f"{name} is not a provider; only providers can be constructed")
    method = reference.get("method", "__call__")
    function = inspect.getattr_static(kind, method, None) if isinstance(method, str) else None
    if not isinstance(function, FunctionType) or (method.startswith("_") and method != "__call__"):
        raise SpecError(f"{name} has no method {method!r}")
    try:
        parameters = decode(encode(reference.get("parameters", {})))
        inspect.signature(kind).bind(**parameters)
    except (TypeError, ValueError, DataError) as error:
        raise SpecError(f"{name} cannot be constructed: {error}") from None
    of_provider = "method" in reference

    def make() -> Callable[..., Any]:
        try:
            with reading_file():
                provider: Any = kind(**parameters)
        except Exception as error:
            raise SpecError(f"{name} cannot be constructed: {type(error).__name__}: {error}") from error
        code: Callable[..., Any] = getattr(provider, method) if of_provider else provider
        return code

    return Referred(MethodType(function, kind), make)


def aggregate_called(name: str) -> Callable[..., Any]:
    """The aggregate with a short name; if several have it, the first one listed.

    Example:
        >>> aggregate_called("max") is max
        True
    """
    module = next(module for module, names in _COMMON.items() if name in names)
    return referred({"function": f"{module}:{name}"}).make()


def _object_reference(thing: Any) -> dict[str, Any]:
    kind = type(thing)
    if not isinstance(thing, Provider):
        problem = f"{kind.__qualname__} cannot be stored: it is not a provider"
        raise SpecError(f"{problem}; derive it from evaluand.Provider, or write a module-level function")
    return {
        "class": _import_name(kind, kind.__qualname__, kind.__module__),
        "parameters": dict(thing.arguments),
    }


def _import_name(code: Any, name: str, module: str | None) -> str:
    """The name under which code can be imported, `module:name`."""
    short = name.rpartition(".")[2]
    if "<lambda>" in name:
        raise SpecError("a lambda cannot be stored; write a module-level function")
    if "<locals>" in name:
        raise SpecError(f"{short} cannot be stored: it is defined inside a function; define it at module level")
    if module in (None, "__main__"):
        raise SpecError(f"{short} cannot be stored: it is defined in the script that runs; move it to a module")
    if not _is_own(f"{module}:{name}", str(module)):
        raise SpecError(f"{short} cannot be stored: call {module}.{name} from your own function")
    if not _is_importable_as(code, module, name):
        raise SpecError(f"{short} cannot be stored: {module} has no such name, or another object under it")
    return f"{module}:{name}"


def _is_importable_as(code: Any, module: Any, name: Any) -> bool:
    there = sys.modules.get(module) if isinstance(module, str) and isinstance(name, str) else None
    for part in name.split(".") if there is not None else ():
        there = getattr(there, part, None)
    return there is not None and (there is code or there == code)


def _import_code(reference: Any, modules: Collection[str]) -> Any:
    module, _, name = reference.partition(":") if isinstance(reference, str) else ("", "", "")
    if not module or not name or not all(map(_is_name, (*module.split("."), *name.split(".")))):
        raise SpecError(f"{reference!r} names no code; write it as module:name")
    module = present_module(module)
    reference = f"{module}:{name}"
    if not _is_own(reference, module) or module == "__main__":
        raise SpecError(f"{reference} may not be imported: only your own modules are")
    if reference not in _IMPLEMENTATIONS and not _is_within(module, modules):
        raise NotAllowed(reference, module)
    *outer, last = name.split(".")
    try:
        there: Any = importlib.import_module(module)
        for part in outer:
            there = getattr(there, part)
            if not isinstance(there, type) or there.__module__ != module:  # a module may have imported others
                raise SpecError(f"{reference} is not a function or class of {module}")
        there = getattr(there, last)
    except (ImportError, AttributeError) as error:
        raise SpecError(f"{reference} cannot be imported: {error}") from None
    if not callable(there) or getattr(there, "__module__", None) != module:
        raise SpecError(f"{reference} is not a function or class of {module}")
    return there


def _is_name(part: str) -> bool:
    return part.isidentifier() and not (part.startswith("__") and part != "__main__")


def _is_own(reference: str, module: str) -> bool:
    """Whether the code is outside evaluand and the standard library, or one of the implementations listed there."""
    top = module.partition(".")[0]
    return reference in _IMPLEMENTATIONS | _SERVICES or not (top in sys.stdlib_module_names or top == "evaluand")


def _is_within(module: str, packages: Collection[str]) -> bool:
    return any(f"{module}.".startswith(f"{package}.") for package in packages)


_MOVED: Final = {
    "evaluand.feedback": "evaluand.evaluation.feedback",
    "evaluand.providers": "evaluand.evaluation.providers",
    "evaluand.evaluation.providers.sentiment": "evaluand.evaluation.providers.english",
    "evaluand.evaluation.providers.toxicity": "evaluand.evaluation.providers.english",
}
"""Old → later names of evaluand's own code, in order; definitions stored by versions before 0.1.0 have the old ones."""


def present_module(module: str) -> str:
    """Maps a module that a stored definition names to its present name.

    Example:
        >>> present_module("evaluand.providers.local"), present_module("my_judges")
        ('evaluand.evaluation.providers.local', 'my_judges')
    """
    for old, later in _MOVED.items():
        if _is_within(module, (old,)):
            module = later + module.removeprefix(old)
    return module
