"""The steps of a path: what each one selects, the walk that requires the full path, and changes of what is selected."""

import copy
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import FrozenInstanceError, dataclass, fields as dataclass_fields, replace
from typing import Any, Final

from evaluand.core.placeholders import find_gap, is_placeholder

NAME: Final = re.compile(r"[\w@-]+")
"""A key that needs no quotes in a path that begins with `$`."""

WORD: Final = re.compile(r"\w+")
"""A name that needs no quotes in any path."""


class Member(str):
    """A name: a key that `Selector.select` also follows through lists and, if allowed, into Python objects.

    In a path without `$`, what is at the beginning or after a dot is a name; what is in brackets is only a key.
    """

    __slots__ = ()


@dataclass(frozen=True)
class Every:
    """`[*]`: all values of an object, all elements of a list."""

    def find(self, values: Sequence[Any], root: Any) -> list[Any]:
        return [child for value in values for child in children(value)]

    def __str__(self) -> str:
        return "*"


@dataclass(frozen=True)
class Slice:
    """`[start:stop:step]`: part of a list."""

    start: int | None
    stop: int | None
    step: int | None

    def find(self, values: Sequence[Any], root: Any) -> list[Any]:
        if self.step == 0:  # which selects nothing: RFC 9535, section 2.3.4.2.2
            return []
        part = slice(self.start, self.stop, self.step)
        return [child for value in values if is_list(value) for child in value[part]]

    def places(self, length: int) -> range:
        """The indices that it selects from a list of this length."""
        return range(0) if self.step == 0 else range(length)[self.start : self.stop : self.step]

    def __str__(self) -> str:
        parts = ["" if part is None else str(part) for part in (self.start, self.stop, self.step)]
        return ":".join(parts) if any(parts) else ":"


@dataclass(frozen=True)
class Filter:
    """`[?…]`: the children that pass a test.

    Attributes:
        text: what follows `?`.
        test: (child, root of the data) → whether the child passes.
        gaps: for each path in the test, (child, root) → the placeholder that it meets, or None.
    """

    text: str
    test: Callable[[Any, Any], bool]
    gaps: tuple[Callable[[Any, Any], Any], ...] = ()

    def find(self, values: Sequence[Any], root: Any) -> list[Any]:
        return [child for value in values for child in children(value) if self.test(child, root)]

    def __str__(self) -> str:
        return f"?{self.text}"


@dataclass(frozen=True)
class Union:
    """`[a, b]`: what each of several parts selects, one part after another."""

    parts: tuple[str | int | Every | Slice | Filter, ...]

    def find(self, values: Sequence[Any], root: Any) -> list[Any]:
        return [child for value in values for part in self.parts for child in _part(value, part, root)]

    def __str__(self) -> str:
        return ",".join(quoted(part) if isinstance(part, str) else str(part) for part in self.parts)


@dataclass(frozen=True)
class Descend:
    """`..`: the values themselves and everything inside them, parents before children."""

    def find(self, values: Sequence[Any], root: Any) -> list[Any]:
        found = []
        waiting = list(reversed(values))
        while waiting:
            value = waiting.pop()
            found.append(value)
            waiting.extend(reversed(children(value)))
        return found


@dataclass(frozen=True)
class Collect:
    """`.collect()`: all values so far, as one list."""

    def find(self, values: Sequence[Any], root: Any) -> list[Any]:
        return [list(values)]


Step = str | int | Every | Slice | Filter | Union | Descend | Collect


def finder(step: Step) -> Callable[[Sequence[Any], Any], list[Any]]:
    """The function (values, root) → everything that a step selects; empty if nothing matches."""
    return (Union((step,)) if isinstance(step, str | int) else step).find


def children(value: Any) -> Sequence[Any]:
    if isinstance(value, Mapping):
        return list(value.values())
    return value if is_list(value) else ()


def one_step(value: Any, step: Any) -> Any:
    """The value under a key or at an index.

    Raises:
        LookupError: there is no such value.
    """
    if isinstance(value, Mapping) if isinstance(step, str) else is_list(value):
        return value[step]
    raise LookupError


def is_list(value: Any, texts: bool = False) -> bool:
    return isinstance(value, Sequence) and (texts or not isinstance(value, str | bytes))


def written(steps: Sequence[Step], *, bare: bool | None = None) -> str:
    """The canonical text of steps; without `$` (bare) if one of them is a name.

    Example:
        >>> written(("a b", 0, Slice(1, None, None))), written((Member("a"), "b", Member("c.d")))
        ("$['a b'][0][1::]", "a['b'].'c.d'")
    """
    steps = keyed(steps)
    if bare is None:
        bare = any(isinstance(step, Member) for step in steps)
    text = "" if bare else "$"
    for step in steps:
        if isinstance(step, Member):
            text += f".{quoted(step)}" if not WORD.fullmatch(step) else f".{step}" if text else step
        elif isinstance(step, str) and bare:
            text += f"[{quoted(step)}]"
        elif isinstance(step, str) and text.endswith(".."):
            text += printed(step).removeprefix(".")
        else:
            text += printed(step)
    return text


def keyed(steps: Sequence[Step]) -> tuple[Step, ...]:
    """The steps, with keys in place of names after `..`, which goes through lists by itself."""
    before = (None, *steps)
    return tuple(
        str(step) if isinstance(step, Member) and isinstance(last, Descend) else step
        for last, step in zip(before, steps, strict=False)
    )


def printed(step: Step) -> str:
    """The text of a step in a path that begins with `$`, where every name is a key."""
    if isinstance(step, Descend):
        return ".."
    if isinstance(step, Collect):
        return ".collect()"
    if isinstance(step, str):
        return f".{step}" if NAME.fullmatch(step) else f"[{quoted(step)}]"
    return f"[{step}]"


def quoted(key: str) -> str:
    inner = json.dumps(key, ensure_ascii=False)[1:-1].replace('\\"', '"')
    return "'" + inner.replace("'", "\\'") + "'"


def _part(value: Any, part: str | int | Every | Slice | Filter, root: Any) -> Iterable[Any]:
    if not isinstance(part, str | int):
        return part.find((value,), root)
    try:
        return (one_step(value, part),)
    except LookupError:
        return ()


Lead = Callable[[Any, Any], list[Any]]
"""(value, root of the data) → what a step selects; raises LookupError if nothing matches."""


class Hidden(LookupError):
    """What a step selects is unknown because of a placeholder, which is the argument."""


Change = Callable[[Any], Any]
"""The present value at a place, or None → the new value."""

_NOTHING: Final = object()
_MOST_MADE: Final = 1_000_000
"""The most elements that are added to a list to reach an index."""


def leading(step: Step, objects: bool, strict: bool = False) -> Lead:
    """The function that follows a step; with `objects`, also to attributes of Python objects and characters of texts.

    With `strict`, a name selects nothing from an empty list and is an error in a list of several that have no such
    member; without it, the reverse. With `strict`, it is an error too if something that was not stored may match.

    The usual types are tested first and by `type(…) is`, many times as fast as asking for mappings or sequences.
    """
    if isinstance(step, Member):
        return _to_member(str(step), objects, strict)
    if isinstance(step, str | int):
        return _to_place(step, objects)
    if isinstance(step, Slice):
        return _to_slice(slice(0) if step.step == 0 else slice(step.start, step.stop, step.step), objects)
    if isinstance(step, Union):
        leads = [leading(part, objects, strict) for part in step.parts]
        return lambda value, root: [child for lead in leads for child in lead(value, root)]
    return _to_children(step, strict)


def _to_member(name: str, objects: bool, strict: bool) -> Lead:
    def lead(value: Any, root: Any) -> list[Any]:
        if type(value) is list and len(value) == 1:
            value = value[0]
        if type(value) is dict:
            return [value[name]]
        return _member(name, value, objects, strict)

    return lead


def _member(name: str, value: Any, objects: bool, strict: bool) -> list[Any]:
    """The members of a name: a list of one counts as its element; elements without the member are left out."""
    value = alone(value)
    if isinstance(value, Mapping):
        return [value[name]]
    if is_list(value):
        elements = list(_elements(value))
        if strict:
            _refuse(filter(is_placeholder, elements))
        found = [member for each in elements if (member := _of_one(name, each, objects)) is not _NOTHING]
        if found or (not elements if strict else value):
            return found
    if not is_list(value) and (attribute := _attribute(name, value, objects)) is not _NOTHING:
        return [attribute]
    raise LookupError


def _elements(values: Sequence[Any]) -> Iterator[Any]:
    """The elements of a list and of the lists inside it."""
    waiting = list(reversed(values))
    while waiting:
        each = waiting.pop()
        if is_list(each):
            waiting.extend(reversed(each))
        else:
            yield each


def _of_one(name: str, value: Any, objects: bool) -> Any:
    if type(value) is dict or isinstance(value, Mapping):
        return value.get(name, _NOTHING)
    return _attribute(name, value, objects)


def alone(value: Any) -> Any:
    """The element of a list of one, also nested; any other value unchanged."""
    while is_list(value) and len(value) == 1:
        value = value[0]
    return value


def _to_place(step: str | int, objects: bool) -> Lead:
    def lead(value: Any, root: Any) -> list[Any]:
        if isinstance(value, Mapping) if isinstance(step, str) else is_list(value, objects):
            return [value[step]]
        raise LookupError

    return lead


def _to_slice(part: slice, objects: bool) -> Lead:
    def lead(value: Any, root: Any) -> list[Any]:
        if type(value) is list:
            return value[part]
        if is_list(value, objects):
            return list(value[part])
        raise LookupError

    return lead


def _to_children(step: Every | Filter | Descend | Collect, strict: bool) -> Lead:
    def lead(value: Any, root: Any) -> list[Any]:
        if strict:
            _refuse(_gaps(step, value, root))
        if isinstance(step, Descend) or isinstance(value, Mapping) or is_list(value):
            return step.find((value,), root)
        raise LookupError

    return lead


def _gaps(step: Every | Filter | Descend | Collect, value: Any, root: Any) -> Iterator[Any]:
    """The placeholders because of which it is unknown what a step selects."""
    if isinstance(step, Descend):
        gap = find_gap(value)
        yield None if gap is None else gap.placeholder
    if isinstance(step, Filter):
        yield from (find(child, root) for child in children(value) for find in step.gaps)
    if is_placeholder(value):
        yield value


def _refuse(placeholders: Iterable[Any]) -> None:
    for each in placeholders:
        if each is not None:
            raise Hidden(each)


def _attribute(name: str, value: Any, objects: bool) -> Any:
    return getattr(value, name, _NOTHING) if objects and not name.startswith("__") else _NOTHING


def changed(step: Step, value: Any, change: Change, root: Any, objects: bool) -> Any:
    """A copy of a value, changed where a step leads to; creates what is missing.

    Raises:
        LookupError: the step cannot go through this value.
    """
    if isinstance(step, Member) and is_list(value):
        return _with_members(step, value, change, root, objects)
    if isinstance(step, str):
        return _with_key(step, value, change, objects)
    if isinstance(step, Union):
        for part in step.parts:
            value = changed(part, value, change, root, objects)
        return value
    if isinstance(step, Every | Filter) and isinstance(value, Mapping):
        return _with_items(value, {key: change(each) for key, each in value.items() if _passes(step, each, root)})
    items = [] if value is None else list(value) if is_list(value, objects) else None
    if items is None:
        raise LookupError
    if isinstance(step, int):
        if step - len(items) > _MOST_MADE:
            raise LookupError
        items += [None] * (step + 1 - len(items))
        items[step] = change(items[step])
    elif isinstance(step, Slice):
        for place in step.places(len(items)):
            items[place] = change(items[place])
    else:
        items = [change(each) if _passes(step, each, root) else each for each in items]
    return items


def _with_members(name: Member, values: Sequence[Any], change: Change, root: Any, objects: bool) -> list[Any]:
    """Changes the elements that can have members; at least one must be able to."""
    items, able = [], False
    for each in values:
        try:
            items.append(changed(name, each, change, root, objects))
            able = True
        except LookupError:
            items.append(each)
    if not able:
        raise LookupError
    return items


def _with_key(key: str, value: Any, change: Change, objects: bool) -> Any:
    if value is None or isinstance(value, Mapping):
        there = {} if value is None else value
        return _with_items(there, {str(key): change(there.get(key))})
    if not (objects and isinstance(key, Member)) or key.startswith("__"):
        raise LookupError
    return _with_attribute(value, key, change(getattr(value, key, None)))


def _with_items(value: Mapping[Any, Any], items: Mapping[Any, Any]) -> Mapping[Any, Any]:
    """A copy of a mapping with other items: of the same type, or a dict where that type cannot be copied."""
    expected = {**value, **items}
    if type(value) is dict:
        return expected
    for copied in (_copy_with_items, _made_of_items):
        try:
            made = copied(value, items)
            held = list(made) == list(expected) and all(made[key] is item for key, item in expected.items())
            if held and type(made) is type(value):
                return made
        except Exception:
            continue
    return expected


def _copy_with_items(value: Any, items: Mapping[Any, Any]) -> Any:
    """A shallow copy that is changed, except of a type whose general copy would share the storage of its items."""
    copied = copy.copy(value) if isinstance(value, dict) or hasattr(value, "__copy__") else value.copy()
    for key, item in items.items():
        copied[key] = item
    return copied


def _made_of_items(value: Any, items: Mapping[Any, Any]) -> Any:
    return type(value)({**value, **items})


def _with_attribute(value: Any, name: str, new: Any) -> Any:
    """A copy of an object with another attribute, also of a frozen dataclass or pydantic model."""
    fields = getattr(type(value), "model_fields", {})
    if name in fields and (value.model_config.get("frozen") or fields[name].frozen):
        return value.model_copy(update={str(name): new})
    copied = copy.copy(value)
    try:
        setattr(copied, name, new)
    except FrozenInstanceError:
        if not any(field.name == name and field.init for field in dataclass_fields(value)):
            raise LookupError from None
        return replace(value, **{name: new})
    except (AttributeError, TypeError, ValueError):  # it has no attributes, or none that can be changed
        raise LookupError from None
    return copied


def _passes(step: Step, child: Any, root: Any) -> bool:
    return not isinstance(step, Filter) or step.test(child, root)
