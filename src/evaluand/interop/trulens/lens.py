"""`Lens`, also called `JSONPath` and `Select.Query`: selectors written as Python, over `evaluand.core.selector`.

Every attribute of a lens is a step: `Lens().a.b`. The name of a method is also a step unless it is called:
`Lens().a.get.b`, `on(Lens().a.set)`. To call a lens that ends in such a step, write the step in brackets:
`Lens().a['get'](value)`. Names that begin and end with `__` are reserved by Python, except for the roots `__record__`,
`__app__` and `__example__`; to select such a key, write it in brackets.
"""

from __future__ import annotations

import keyword
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from evaluand.core.errors import DataError, SpecError
from evaluand.core.selector import Member, Selector, steps as native
from evaluand.core.selector.parsing import parse_words

ROOTS: Final = ("__record__", "__app__", "__example__")

# Steps as classes


@dataclass(frozen=True, kw_only=True)
class GetItemOrAttribute:
    item_or_attribute: str


@dataclass(frozen=True, kw_only=True)
class GetAttribute:
    """Equivalent to `GetItemOrAttribute`."""

    attribute: str


@dataclass(frozen=True, kw_only=True)
class GetItem:
    item: str


@dataclass(frozen=True, kw_only=True)
class GetIndex:
    index: int


@dataclass(frozen=True, kw_only=True)
class GetSlice:
    start: int | None = None
    stop: int | None = None
    step: int | None = None


@dataclass(frozen=True)
class GetItems:
    items: tuple[str, ...]


@dataclass(frozen=True)
class GetIndices:
    indices: tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class Collect:
    collect: None = None


Step = GetItemOrAttribute | GetAttribute | GetItem | GetIndex | GetSlice | GetItems | GetIndices | Collect


def _native_step(step: Any) -> native.Step:
    match step:
        case GetItemOrAttribute(item_or_attribute=name) | GetAttribute(attribute=name):
            return Member(name)
        case GetItem(item=key):
            return str(key)
        case GetIndex(index=index):
            return index
        case GetSlice(start=start, stop=stop, step=stride):
            return native.Slice(start, stop, stride)
        case GetItems(items=parts) | GetIndices(indices=parts):
            return native.Union(tuple(parts))
        case Collect():
            return native.Collect()
    raise _InvalidStep(f"{step!r} is not a step of a lens; for a path as text use Lens.of_string")


def _public_step(step: Any) -> Step:
    match step:
        case Member():
            return GetItemOrAttribute(item_or_attribute=str(step))
        case str():
            return GetItem(item=step)
        case int():
            return GetIndex(index=step)
        case native.Slice(start, stop, stride):
            return GetSlice(start=start, stop=stop, step=stride)
        case native.Collect():
            return Collect()
        case native.Union(parts) if all(isinstance(part, str) for part in parts):
            return GetItems(parts)  # type: ignore[arg-type]
        case native.Union(parts) if all(isinstance(part, int) for part in parts):
            return GetIndices(parts)  # type: ignore[arg-type]
    raise SpecError(
        "a lens has only names, keys, indices, slices and .collect(); for `*`, `..` and filters use a Selector"
    )


# Errors that are also Python's built-in ones


class _InvalidStep(SpecError, TypeError):
    pass


class _MissingValue(DataError, ValueError):
    pass


class _MissingIndex(DataError, IndexError):
    pass


class _MissingKey(DataError, KeyError):
    def __str__(self) -> str:  # KeyError would put quotes around the message
        return self._message()


def _builtin_error(error: DataError) -> DataError:
    kinds: dict[type | None, type[DataError]] = {KeyError: _MissingKey, IndexError: _MissingIndex}
    return kinds.get(type(error.__cause__), _MissingValue)(error.faults)


class _Method:
    """A method whose name is a step unless it is called."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self.__doc__ = function.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, lens: Lens | None, owner: type) -> Any:
        return self.function if lens is None else _MethodLens(lens, self)


class _ClassFunction(_Method):
    """A static method; like other methods a step on instances, unless it is called."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        self.function = lambda lens, *args, **kwargs: function(*args, **kwargs)
        self.static = function

    def __get__(self, lens: Lens | None, owner: type) -> Any:
        return self.static if lens is None else super().__get__(lens, owner)


class Lens:
    """A path into JSON-like data and Python objects, written as Python; call it with an object to select values.

    Attributes and strings in brackets are names: keys, attributes and, on a list, those of its elements. Other steps
    are indices, slices, several keys or indices, and `collect()`, which puts all values selected so far into one list.
    For names of methods see the top of this module.

    Args:
        path: the steps, such as `GetItem(item="a")`.

    Example:
        >>> lens = Lens().calls[:].args["query"]
        >>> lens({"calls": [{"args": {"query": "a"}}, {"args": {"query": "b"}}]})
        ['a', 'b']
        >>> print(lens, Lens.of_string(str(lens)) == lens)
        calls[:].args.query True
    """

    __slots__ = ("__selector__", "__steps__")

    def __init__(self, path: Iterable[Step] | None = None) -> None:
        if isinstance(path, str):
            raise _InvalidStep(f"{path!r} is a path as text; use Lens.of_string")
        self.__steps__: tuple[native.Step, ...] = tuple(_native_step(step) for step in path or ())
        self.__selector__: Selector | None = None

    def __walk__(self) -> Selector:
        """The selector, built on first use: most lenses are only prefixes of the path that is used."""
        if self.__selector__ is None:
            self.__selector__ = Selector.of(*self.__steps__, objects=True)
        return self.__selector__

    # Building

    def __getattr__(self, name: str) -> Lens:
        if name.startswith("__") and name.endswith("__") and name not in ROOTS:
            raise AttributeError(f"{name} is reserved by Python; to select a key of this name write [{name!r}]")
        return _lens(*self.__steps__, Member(name))

    def __getitem__(self, item: Any) -> Lens:
        return _lens(*self.__steps__, _step_from_item(item))

    def __add__(self, other: Lens | Step) -> Lens:
        steps = other.__steps__ if isinstance(other, Lens) else (_native_step(other),)
        return _lens(*self.__steps__, *steps)

    @_Method
    def collect(self) -> Lens:
        """The path to one list of all values of this one."""
        return _lens(*self.__steps__, native.Collect())

    @_ClassFunction
    def of_string(text: str) -> Lens:  # noqa: N805 - a static method
        """Read a lens from its text.

        Raises:
            SpecError: the text is not a path, or has a step that lenses do not support.

        Example:
            >>> Lens.of_string("__record__.calls[-1].args['my key']").path()[-2:]
            (GetItemOrAttribute(item_or_attribute='args'), GetItem(item='my key'))
            >>> Lens().of_string("a.b[0]") == Lens().a.b[0]
            True
        """
        steps = parse_words(text)
        for step in steps:
            _public_step(step)
        return _lens(*steps)

    # Selecting

    def __call__(self, obj: Any) -> list[Any]:
        """Select all values at the path.

        Raises:
            DataError: the path does not match; the error is also a `KeyError`, `IndexError` or `ValueError`.
        """
        try:
            return (self.__selector__ or self.__walk__()).select(obj)
        except DataError as error:
            raise _builtin_error(error) from None

    @_Method
    def get(self, obj: Any) -> list[Any]:
        """Select all values at the path, as calling the lens does."""
        return Lens.__call__(self, obj)

    @_Method
    def get_sole_item(self, obj: Any) -> Any:
        """The one value at the path.

        Raises:
            DataError: there is no value, or more than one.
        """
        return _call_native(self.__walk__().sole, obj)

    @_Method
    def exists(self, obj: Any) -> bool:
        """Whether every step of the path matches."""
        return self.__walk__().exists(obj)

    @_Method
    def existing_prefix(self, obj: Any) -> Lens:
        """The longest prefix of the path that exists."""
        return _lens(*self.__steps__[: len(self.__walk__().existing(obj).steps)])

    @_Method
    def set(self, obj: Any, val: Any) -> Any:
        """A copy of an object with a value at each position of the path; see `Selector.set`.

        Example:
            >>> from collections import OrderedDict
            >>> Lens().a.b.set(OrderedDict(a=OrderedDict(b=1)), 2) == OrderedDict(a=OrderedDict(b=2))
            True
        """
        return _call_native(self.__walk__().set, obj, val)

    @_Method
    def set_or_append(self, obj: Any, val: Any) -> Any:
        """Like `set`, but append the value to an existing list, and replace anything else by a list of the value."""
        return _call_native(
            self.__walk__().change, obj, lambda old: [*old, val] if native.is_list(old, texts=True) else [val]
        )

    # Comparing and showing

    @_Method
    def path(self) -> tuple[Step, ...]:
        """The steps."""
        return tuple(_public_step(step) for step in self.__steps__)

    @_Method
    def selector(self) -> Selector:
        """The same path as a `Selector`, which reads data only, not attributes."""
        return Selector.of(*self.__steps__)

    @_Method
    def is_prefix_of(self, other: Lens) -> bool:
        """Whether the other path begins with this one, or equals it."""
        return self.__walk__().is_prefix_of(other.__walk__())

    @_Method
    def is_immediate_prefix_of(self, other: Lens) -> bool:
        """Whether the other path is this one and one more step."""
        return len(other) == len(self) + 1 and self.__walk__().is_prefix_of(other.__walk__())

    def __len__(self) -> int:
        return len(self.__steps__)

    def __eq__(self, other: object) -> bool:
        return str(self) == str(other) if isinstance(other, Lens) else NotImplemented

    def __hash__(self) -> int:
        return hash(str(self))

    def __str__(self) -> str:
        return native.written(self.__steps__, bare=True)

    def __repr__(self) -> str:
        text = str(self)
        if any(isinstance(step, str) and not _is_attribute(step) for step in self.__steps__):
            return f"Lens.of_string({text!r})"
        return f"Lens(){'.' if text[:1].isidentifier() else ''}{text}"

    __iter__ = None  # else Python would call __getitem__ with 0, 1, 2, ... forever
    __contains__ = None

    def __copy__(self) -> Lens:
        return self

    def __deepcopy__(self, memo: Any) -> Lens:
        return self

    def __reduce__(self) -> Any:
        return Lens.of_string, (str(self),)


class _MethodLens(Lens):
    """A lens that ends in the name of a method; calling it calls that method of the lens before the name.

    Nearly all of them are called at once, so the last step is added only when the steps are read.
    """

    __slots__ = ("__before__", "__method__")

    def __init__(self, before: Lens, method: _Method) -> None:
        self.__before__ = before
        self.__method__ = method

    @property
    def __steps__(self) -> Any:  # type: ignore[override]
        return (*self.__before__.__steps__, Member(self.__method__.name))

    @property
    def __selector__(self) -> Any:  # type: ignore[override]
        return _lens(*self.__steps__).__walk__()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.__method__.function(self.__before__, *args, **kwargs)


JSONPath = Lens


def _lens(*steps: native.Step) -> Lens:
    lens = Lens()
    lens.__steps__ = steps
    return lens


def _call_native(method: Callable[..., Any], *args: Any) -> Any:
    try:
        return method(*args)
    except DataError as error:
        raise _builtin_error(error) from None


def _step_from_item(item: Any) -> native.Step:
    if isinstance(item, str):
        return Member(item)
    if isinstance(item, int) and not isinstance(item, bool):
        return item
    if isinstance(item, slice) and item.step != 0:
        parts: tuple[Any, ...] = (item.start, item.stop, item.step)
        if all(part is None or (isinstance(part, int) and not isinstance(part, bool)) for part in parts):
            return native.Slice(*parts)
    if isinstance(item, tuple | list) and item:
        if all(isinstance(each, str) for each in item):
            return native.Union(tuple(map(str, item)))
        if all(isinstance(each, int) and not isinstance(each, bool) for each in item):
            return native.Union(tuple(item))
    raise _InvalidStep(
        f"[{item!r}] is not a step: use a string, an integer, a slice, several strings or several integers"
    )


def _is_attribute(step: str) -> bool:
    """Whether a step can be written as an attribute in Python."""
    dunder = step.startswith("__") and step.endswith("__") and step not in ROOTS
    return isinstance(step, Member) and step.isidentifier() and not keyword.iskeyword(step) and not dunder


# Named paths


class Select:
    """Paths to the parts of a record, an app and an example."""

    Query = Lens
    Lens = Lens
    Tru = Lens()
    Record = Lens().__record__
    App = Lens().__app__
    Example = Lens().__example__
    RecordInput = Record.main_input
    RecordOutput = Record.main_output
    RecordCalls = Record.app
    RecordCall = Record.calls[-1]
    RecordArgs = RecordCall.args
    RecordRets = RecordCall.rets

    @staticmethod
    def dequalify(lens: JSONPath) -> JSONPath:
        """The path without its root, if it begins with one."""
        first, *rest = lens.path() or (None,)
        qualified = isinstance(first, GetItemOrAttribute) and first.item_or_attribute in ROOTS
        return Lens(rest) if qualified else lens

    @staticmethod
    def for_record(lens: JSONPath) -> JSONPath:
        """The same path within the record."""
        return Select.Record + lens

    @staticmethod
    def for_app(lens: JSONPath) -> JSONPath:
        """The same path within the app."""
        return Select.App + lens

    @staticmethod
    def path_and_method(select: JSONPath) -> tuple[JSONPath, str]:
        """The path to a component, and the name of its method, which is the last step.

        Raises:
            SpecError: the last step is not a name.
        """
        *path, last = select.path() or (None,)
        if not isinstance(last, GetItemOrAttribute):
            raise SpecError(f"{select!r}: the last step must be the name of a method")
        return Lens(path), last.item_or_attribute


def all_objects(obj: Any, query: Lens | None = None) -> Iterator[tuple[Lens, Any]]:
    """Every value in JSON-like data with its path, beginning with the data itself."""
    pending = [(Lens() if query is None else query, obj)]
    while pending:
        lens, value = pending.pop()
        yield lens, value
        if isinstance(value, Mapping):
            pending.extend(reversed([(lens[key], child) for key, child in value.items() if isinstance(key, str)]))
        elif native.is_list(value):
            pending.extend(reversed([(lens[index], child) for index, child in enumerate(value)]))


def all_queries(obj: Any, query: Lens | None = None) -> Iterator[Lens]:
    """The path of every value in JSON-like data.

    Example:
        >>> print(*all_queries({"a": [1, {"b": 2}]}), sep=" | ")
         | a | a[0] | a[1] | a[1].b
    """
    return (lens for lens, _ in all_objects(obj, query))
