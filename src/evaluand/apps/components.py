"""The components of an app: the objects that it consists of, by path, and which of their methods are traced.

Components are found by following attributes, slots, lists and dictionaries from the app's object; no property is read
and nothing is called. An object in several places has the shortest path. Lists and dictionaries of more than
`MOST_MEMBERS` values are taken for data.

Traced are the methods marked with `@instrument`; if nothing is marked, the named ones; and if none is named, the public
methods of first-party classes. Methods that are not marked are traced on the app's objects only: each of these objects
gets a subclass of its class, which looks the same except to `type(x)`.
"""

import inspect
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from types import FunctionType, MethodType, ModuleType
from typing import Any, Final
from weakref import WeakValueDictionary

from evaluand.apps.instrumentation.marking import find_instrumented, is_instrumented, make_instrumented
from evaluand.apps.instrumentation.steps import class_key
from evaluand.core.errors import SpecError, nearest
from evaluand.core.fingerprint.homes import is_first_party
from evaluand.core.json_like import attributes_of
from evaluand.core.selector.steps import printed

MOST_MEMBERS: Final = 100
MOST_OBJECTS: Final = 5000


@dataclass(frozen=True, eq=False)
class Component:
    """An object that an app consists of, at a path ("" is the app itself), and which of its methods are traced.

    `reason` says why requested methods are not traced.
    """

    path: str
    value: Any
    methods: tuple[str, ...] = ()
    reason: str = ""

    @property
    def calls(self) -> dict[str, tuple[str, ...] | None]:
        """The names of these methods in records → the names of their arguments, None where unknown."""
        is_function = inspect.isroutine(self.value)
        calls: dict[str, tuple[str, ...] | None] = {}
        for name in self.methods:
            function = self.value if is_function else inspect.getattr_static(self.value, name, None)
            instrumented = find_instrumented(function)
            calls[instrumented.name if instrumented else name] = instrumented.arguments if instrumented else None
        return calls

    @property
    def of(self) -> type:
        """The original class of the object."""
        return class_of(self.value)


def find_components(
    target: object,
    methods: Sequence[str] | None = None,
    *,
    reported: Callable[[object], tuple[str, ...]] = lambda value: (),
) -> list[Component]:
    """The components of an app that have methods to trace, the app itself first; traces these methods from now on.

    `methods` are names, of all components (`search`) or of one (`retriever.search`). The methods of an object whose
    calls a framework reports are not traced twice. A SpecError if no component has a method of that name.
    """
    found = [Component(path, value) for path, value in walk_objects(target)]
    if methods is not None:
        chosen = _choose_methods(found, methods)
    elif any(_marked_methods(each.of) for each in found):
        chosen = {}
    else:
        chosen = {id(each.value): _public_methods(each.of) for each in found if not reported(each.value)}
    traced = [_trace_methods(each, chosen.get(id(each.value), ()), reported(each.value)) for each in found]
    return [each for each in traced if each.methods or each.reason or not each.path]


def class_of(value: object) -> type:
    """The original class of an object, also if its methods are traced."""
    cls = type(value)
    own: type = vars(cls).get(_OF, cls)
    return own


def walk_objects(target: object) -> Iterator[tuple[str, object]]:
    """Objects that may be components, with their paths, the nearest first."""
    waiting: deque[tuple[tuple[Any, ...], object]] = deque([((), target)])
    seen = {id(target)}
    count = 0
    while waiting and count < MOST_OBJECTS:
        path, value = waiting.popleft()
        if type(value) not in _CONTAINERS:
            count += 1
            yield path_text(path), value
        for step, member in _members(value):
            if id(member) not in seen and _may_be_component(member):
                seen.add(id(member))
                waiting.append(((*path, step), member))


def path_text(steps: Iterable[Any]) -> str:
    """A path as written in names of spans and in selectors, such as `steps[0].retriever`."""
    return "".join(map(printed, steps)).removeprefix(".")


def _members(value: object) -> Iterable[tuple[Any, object]]:
    if type(value) in _CONTAINERS and len(value) > MOST_MEMBERS:  # type: ignore[arg-type]
        return ()
    if type(value) is list or type(value) is tuple:
        return enumerate(list(value))
    if type(value) is dict:
        return [(key, item) for key, item in list(value.items()) if isinstance(key, str)]
    return ((name, item) for name, item in attributes_of(value) if not name.startswith("__"))


def _may_be_component(value: object) -> bool:
    kind = type(value)
    if kind.__module__ == "builtins":
        return kind in _CONTAINERS
    if isinstance(
        value, type | ModuleType | FunctionType | MethodType | Enum | BaseException | str | int | float | bytes
    ):
        return False
    return kind.__module__.partition(".")[0] not in _FOREIGN


_CONTAINERS: Final = (list, tuple, dict)
_FOREIGN: Final = (sys.stdlib_module_names | {"numpy", "pandas", "pyarrow", "torch", "evaluand"}) - {"__main__"}


def _marked_methods(cls: type) -> tuple[str, ...]:
    """Names of the marked methods of a class."""
    items = (item for base in cls.__mro__ for item in vars(base).items())
    return tuple(dict.fromkeys(name for name, item in items if isinstance(item, _HOLDERS) and is_instrumented(item)))


_HOLDERS: Final = (FunctionType, classmethod, staticmethod, property, cached_property)


def _public_methods(cls: type) -> tuple[str, ...]:
    """Names of the public methods that first-party code defines for a class."""
    bases = [base for base in cls.__mro__ if _is_own(base)]
    names = (name for base in bases for name, item in vars(base).items() if isinstance(item, _METHODS))
    return tuple(dict.fromkeys(name for name in names if name == "__call__" or not name.startswith("_")))


_METHODS: Final = (FunctionType, classmethod, staticmethod)


def _is_own(cls: type) -> bool:
    module = sys.modules.get(cls.__module__)
    if module is None or cls.__module__.partition(".")[0] in sys.stdlib_module_names - {"__main__"}:
        return False
    file = getattr(module, "__file__", None)
    return is_first_party(file) if isinstance(file, str) else True


def _choose_methods(found: Sequence[Component], methods: Sequence[str]) -> dict[int, tuple[str, ...]]:
    """The named methods of each component, by its id."""
    if isinstance(methods, str):
        raise SpecError(f"methods is a list of names; write methods=[{methods!r}]")
    chosen: dict[int, tuple[str, ...]] = {}
    for requested in methods:
        path, dot, name = requested.rpartition(".")
        holders = [each for each in found if (not dot or each.path == path) and _has_method(each.of, name)]
        if not holders:
            known = [
                path_text((each.path, method)) if each.path else method
                for each in found
                for method in _public_methods(each.of)
            ]
            raise SpecError(f"no component has a method {requested!r}{nearest(requested, known)}")
        for each in holders:
            chosen[id(each.value)] = (*chosen.get(id(each.value), ()), name)
    return chosen


def _has_method(cls: type, name: str) -> bool:
    return isinstance(inspect.getattr_static(cls, name, None), _HOLDERS)


def _trace_methods(component: Component, names: Sequence[str], reported: tuple[str, ...]) -> Component:
    """The component with its methods traced: the marked ones, the named ones, and those that a framework reports."""
    cls = component.of
    marked = (*_marked_methods(cls), *reported)
    unmarked = tuple(name for name in names if name not in marked)
    if not unmarked:
        return Component(component.path, component.value, marked)
    try:
        _replace_class(component.value, cls, frozenset(unmarked))
    except Exception as error:  # such as classes of other layouts, written in C, or that may have no subclass
        reason = f"{', '.join(unmarked)}: objects of {cls.__qualname__} cannot be traced: {error}"
        return Component(component.path, component.value, marked, reason)
    return Component(component.path, component.value, (*marked, *unmarked))


# Objects whose methods are traced although they are not marked


_OF: Final = "__evaluand_of__"
_CLASS: Final = object.__dict__["__class__"]
_classes: WeakValueDictionary[tuple[int, frozenset[str]], type] = WeakValueDictionary()


def _replace_class(value: object, cls: type, names: frozenset[str]) -> None:
    names |= vars(type(value)).get("__evaluand_names__", frozenset())
    key = (id(cls), names)
    traced = _classes.get(key)
    if traced is None or vars(traced)[_OF] is not cls:
        traced = _classes[key] = _create_traced_class(cls, names)
    _CLASS.__set__(value, traced)


def _create_traced_class(cls: type, names: frozenset[str]) -> type:
    def reduce_ex(self: Any, protocol: Any) -> Any:
        """Reduces the object as one of its original class, so that copies have that class."""
        reduced = cls.__reduce_ex__(self, protocol)  # type: ignore[call-arg]
        if not isinstance(reduced, tuple):
            return reduced
        constructor, args, *rest = reduced
        own = tuple(cls if arg is type(self) else arg for arg in args)
        return cls if constructor is type(self) else constructor, own, *rest

    body: dict[str, Any] = {
        "__slots__": (),
        "__module__": cls.__module__,
        "__qualname__": cls.__qualname__,
        "__doc__": cls.__doc__,
        "__class__": property(lambda self: cls),
        "__reduce_ex__": reduce_ex,
        "__evaluand_names__": names,
        _OF: cls,
    }
    for name in names:
        method = inspect.getattr_static(cls, name)
        method = _bind_class_method(cls, name) if isinstance(method, classmethod) else method
        body[name] = make_instrumented(method, marked=False, bound=True)
    return _derive_class(cls, body)


def _derive_class(cls: type, body: dict[str, Any]) -> type:
    """A derived class that does not call `__init_subclass__` of first-party code."""
    hooks = (base for base in cls.__mro__ if "__init_subclass__" in vars(base) and _is_own(base))
    if next(hooks, None) is None:
        return type(cls)(cls.__name__, (cls,), body)
    adding = [base for base in _line(cls) if base.__dictoffset__][-1]  # the one that gave its objects a dictionary
    blank = type(cls)("_Blank", (adding.__base__ or object,), {})
    derived = type(cls)(cls.__name__, (blank,), body)
    derived.__bases__ = (cls,)  # the layout is the same, and no hook is called
    return derived


def _line(cls: type | None) -> Iterator[type]:
    while cls is not None:
        yield cls
        cls = cls.__base__


def _bind_class_method(cls: type, name: str) -> Any:
    """A method that calls a class method with the original class."""
    bound = getattr(cls, name)

    def call(self: object, *args: Any, **kwargs: Any) -> Any:
        return bound(*args, **kwargs)

    call.__name__, call.__qualname__, call.__module__ = name, bound.__qualname__, bound.__module__
    call.__signature__ = _with_self(bound)  # type: ignore[attr-defined]
    return call


def _with_self(bound: Any) -> inspect.Signature:
    signature = inspect.signature(bound)
    own = inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY)
    return signature.replace(parameters=[own, *signature.parameters.values()])


def key_of(cls: type) -> str:
    """The key of a component's class, for calls without an object."""
    return class_key(cls.__module__, cls.__qualname__)
