"""The components of an app: the objects that it is made of, by path, and which of their methods are traced.

Components are found by following attributes, slots, lists and dictionaries from the app's object; no property is asked
for and nothing is called. An object in several places has the shortest path. Lists and dictionaries of more than
`MOST_MEMBERS` values are taken for data.

Traced are the methods marked with `@instrument`; where nothing is marked, the named ones; and where none is named, the
public methods of first-party classes. Methods that are not marked are traced on the app's own objects alone: these get
a class of their own, derived from theirs, which in all but `type(x)` passes for it.
"""

from __future__ import annotations

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

from evaluand.apps.instrumentation.marking import instrumented, is_instrumented, told_of
from evaluand.apps.instrumentation.steps import class_key
from evaluand.core.errors import SpecError
from evaluand.core.fingerprint.homes import is_first_party
from evaluand.core.json_like import attributes_of
from evaluand.core.registry import nearest
from evaluand.core.selector.steps import printed

MOST_MEMBERS: Final = 100
MOST_OBJECTS: Final = 5000


@dataclass(frozen=True, eq=False)
class Component:
    """An object that an app is made of.

    Attributes:
        path: where it is; "" is the app itself.
        value: the object.
        methods: which of its methods are traced.
        reason: why those that were asked for are not, where they are not.
        calls: what calls of these methods are named in records → the names of their arguments, where these are known.
    """

    path: str
    value: Any
    methods: tuple[str, ...] = ()
    reason: str = ""

    @property
    def calls(self) -> dict[str, tuple[str, ...] | None]:
        is_function = inspect.isroutine(self.value)
        calls: dict[str, tuple[str, ...] | None] = {}
        for name in self.methods:
            told = told_of(self.value if is_function else inspect.getattr_static(self.value, name, None))
            calls[told.name if told else name] = told.arguments if told else None
        return calls

    @property
    def of(self) -> type:
        """The class that its author gave it."""
        return class_of(self.value)


def components_of(
    target: object,
    methods: Sequence[str] | None = None,
    *,
    told: Callable[[object], tuple[str, ...]] = lambda value: (),
) -> list[Component]:
    """The components of an app that have methods to trace, the app itself first; these are traced from now on.

    Args:
        target: the app's object.
        methods: names of methods, of all components (`search`) or of one (`retriever.search`).
        told: the methods of an object whose calls a framework tells of, which are not traced twice.

    Raises:
        SpecError: no component has a method of that name.
    """
    found = [Component(path, value) for path, value in reachable(target)]
    if methods is not None:
        chosen = _named(found, methods)
    elif any(_marked(each.of) for each in found):
        chosen = {}
    else:
        chosen = {id(each.value): _public(each.of) for each in found if not told(each.value)}
    traced = [_traced(each, chosen.get(id(each.value), ()), told(each.value)) for each in found]
    return [each for each in traced if each.methods or each.reason or not each.path]


def class_of(value: object) -> type:
    """The class that an object's author gave it."""
    cls = type(value)
    own: type = vars(cls).get(_OF, cls)
    return own


def reachable(target: object) -> Iterator[tuple[str, object]]:
    """Objects that others may hold as components, with their paths, the nearest first."""
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
    """A path as it stands in names of spans and in selectors.

    Example:
        >>> path_text(("steps", 0, "retriever"))
        'steps[0].retriever'
    """
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


def _marked(cls: type) -> tuple[str, ...]:
    """Names of the methods of a class that are marked."""
    return tuple(dict.fromkeys(name for base in cls.__mro__ for name, item in vars(base).items() if _is_marked(item)))


def _is_marked(item: object) -> bool:
    return isinstance(item, _HOLDERS) and is_instrumented(item)


_HOLDERS: Final = (FunctionType, classmethod, staticmethod, property, cached_property)


def _public(cls: type) -> tuple[str, ...]:
    """Names of the public methods that first-party code gave a class."""
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


def _named(found: Sequence[Component], methods: Sequence[str]) -> dict[int, tuple[str, ...]]:
    """The named methods of each component, by its id."""
    if isinstance(methods, str):
        raise SpecError(f"methods is a list of names; write methods=[{methods!r}]")
    chosen: dict[int, tuple[str, ...]] = {}
    for asked in methods:
        path, dot, name = asked.rpartition(".")
        holders = [each for each in found if (not dot or each.path == path) and _holds(each.of, name)]
        if not holders:
            there = [
                path_text((each.path, method)) if each.path else method for each in found for method in _public(each.of)
            ]
            raise SpecError(f"no component has a method {asked!r}{nearest(asked, there)}")
        for each in holders:
            chosen[id(each.value)] = (*chosen.get(id(each.value), ()), name)
    return chosen


def _holds(cls: type, name: str) -> bool:
    return isinstance(inspect.getattr_static(cls, name, None), _HOLDERS)


def _traced(component: Component, names: Sequence[str], told: tuple[str, ...]) -> Component:
    """The component with its methods traced: those that are marked, those of the names, and those that are told of."""
    cls = component.of
    marked = (*_marked(cls), *told)
    wanted = tuple(name for name in names if name not in marked)
    if not wanted:
        return Component(component.path, component.value, marked)
    try:
        _make_traced(component.value, cls, frozenset(wanted))
    except Exception as error:  # such as classes of other layouts, written in C, or that may have no subclass
        reason = f"{', '.join(wanted)}: objects of {cls.__qualname__} cannot be traced: {error}"
        return Component(component.path, component.value, marked, reason)
    return Component(component.path, component.value, (*marked, *wanted))


# Objects whose methods are traced without a mark


_OF: Final = "__evaluand_of__"
_CLASS: Final = object.__dict__["__class__"]
_classes: WeakValueDictionary[tuple[int, frozenset[str]], type] = WeakValueDictionary()


def _make_traced(value: object, cls: type, names: frozenset[str]) -> None:
    names |= vars(type(value)).get("__evaluand_names__", frozenset())
    key = (id(cls), names)
    traced = _classes.get(key)
    if traced is None or vars(traced)[_OF] is not cls:
        traced = _classes[key] = _traced_class(cls, names)
    _CLASS.__set__(value, traced)


def _traced_class(cls: type, names: frozenset[str]) -> type:
    def reduce_ex(self: Any, protocol: Any) -> Any:
        """As an object of its author's class, which is what a copy is."""
        reduced = cls.__reduce_ex__(self, protocol)  # type: ignore[call-arg]
        if not isinstance(reduced, tuple):
            return reduced
        made, args, *rest = reduced
        own = tuple(cls if arg is type(self) else arg for arg in args)
        return cls if made is type(self) else made, own, *rest

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
        method = _of_class(cls, name) if isinstance(method, classmethod) else method
        body[name] = instrumented(method, marked=False, bound=True)
    return _derived(cls, body)


def _derived(cls: type, body: dict[str, Any]) -> type:
    """A class derived from another without a word to it, where it wants to be told of its subclasses."""
    hooks = (base for base in cls.__mro__ if "__init_subclass__" in vars(base) and _is_own(base))
    if next(hooks, None) is None:
        return type(cls)(cls.__name__, (cls,), body)
    adding = [base for base in _line(cls) if base.__dictoffset__][-1]  # the one that gave its objects a dictionary
    blank = type(cls)("_Blank", (adding.__base__ or object,), {})
    derived = type(cls)(cls.__name__, (blank,), body)
    derived.__bases__ = (cls,)  # which has the same layout, and hears nothing
    return derived


def _line(cls: type | None) -> Iterator[type]:
    while cls is not None:
        yield cls
        cls = cls.__base__


def _of_class(cls: type, name: str) -> Any:
    """A class method is given the class that it was written for."""
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
    """What stands for the class of a component where a call has no object."""
    return class_key(cls.__module__, cls.__qualname__)
