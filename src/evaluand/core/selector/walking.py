"""Walks on which what a step asks for must be there, and changes of what they lead to."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from evaluand.core.selector.steps import Collect, Descend, Every, Filter, Member, Slice, Step, Union, is_list

Lead = Callable[[Any, Any], list[Any]]
"""What is led to from a value, given the root of the data; raises LookupError where that is nowhere."""

Change = Callable[[Any], Any]
"""What is to stand in a place, given what stands there, or None."""

_NOTHING: Final = object()
_MOST_MADE: Final = 1_000_000
"""How many places of a list are made to reach one."""


def leading(step: Step, objects: bool, strict: bool = False) -> Lead:
    """What a step leads to; of Python objects also attributes, and of texts characters, where `objects` says so.

    Where it is strict, a name leads to the members of a list that is empty, and nowhere from one of several without
    such a member; else it is the other way round.

    What most values are made of is looked for first and by its type alone, many times as fast as asking whether
    they are mappings or sequences.
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
    """A list of one is that one; of several, those without such a member are left out; see `leading` for the rest."""
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
    """The elements of a list and of the lists within it."""
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
    """What a list of one holds, and all else as it is."""
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
    """A copy of a value in which there is something else where a step leads to; what is missing is made.

    Raises:
        LookupError: the value is nothing of which the step could lead on.
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
    """Elements that can have no members stay as they are, but not all of them."""
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
