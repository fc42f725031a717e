"""The walk that requires the full path, and changes of the values that a path selects."""

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from evaluand.core.selector.steps import Collect, Descend, Every, Filter, Member, Slice, Step, Union, is_list

Lead = Callable[[Any, Any], list[Any]]
"""(value, root of the data) → what a step selects; raises LookupError if nothing matches."""

Change = Callable[[Any], Any]
"""The present value at a place, or None → the new value."""

_NOTHING: Final = object()
_MOST_MADE: Final = 1_000_000
"""The most elements that are added to a list to reach an index."""


def leading(step: Step, objects: bool, strict: bool = False) -> Lead:
    """The function that follows a step; with `objects`, also to attributes of Python objects and characters of texts.

    With `strict`, a name selects nothing from an empty list and is an error in a list of several that have no such
    member; without it, the reverse.

    The usual types are tested first and by `type(…) is`, many times as fast as asking for mappings or sequences.
    """
    if isinstance(step, Member):
        return _to_member(str(step), objects, strict)
    if isinstance(step, str | int):
        return _to_place(step, objects)
    if isinstance(step, Slice):
        return _to_slice(slice(step.start, step.stop, step.step), objects)
    if isinstance(step, Union):
        leads = [leading(part, objects) for part in step.parts]
        return lambda value, root: [child for lead in leads for child in lead(value, root)]
    return _to_children(step)


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


def _to_children(step: Every | Filter | Descend | Collect) -> Lead:
    def lead(value: Any, root: Any) -> list[Any]:
        if isinstance(step, Descend) or isinstance(value, Mapping) or is_list(value):
            return step.find((value,), root)
        raise LookupError

    return lead


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
        return {key: change(each) if _passes(step, each, root) else each for key, each in value.items()}
    items = [] if value is None else list(value) if is_list(value, objects) else None
    if items is None:
        raise LookupError
    if isinstance(step, int):
        if step - len(items) > _MOST_MADE:
            raise LookupError
        items += [None] * (step + 1 - len(items))
        items[step] = change(items[step])
    elif isinstance(step, Slice):
        for place in range(len(items))[step.start : step.stop : step.step]:
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
        there = value or {}
        return {**there, str(key): change(there.get(key))}
    if not (objects and isinstance(key, Member)) or key.startswith("__"):
        raise LookupError
    copied, new = copy.copy(value), change(getattr(value, key, None))
    try:
        setattr(copied, key, new)
    except (AttributeError, TypeError, ValueError):  # it has no attributes, or none that can be changed
        raise LookupError from None
    return copied


def _passes(step: Step, child: Any, root: Any) -> bool:
    return not isinstance(step, Filter) or step.test(child, root)
