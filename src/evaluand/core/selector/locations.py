"""Normalised paths: where in the data a path leads (RFC 9535, section 2.7)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from evaluand.core.errors import SpecError
from evaluand.core.selector.steps import Collect, Descend, Every, Filter, Slice, Step, Union, is_list

Location = tuple["Location", str | int] | None
"""The location of the parent, and the key or index in it; None is the root."""

_Node = tuple[Location, Any]


def locate(steps: Sequence[Step], value: Any) -> list[tuple[Location, Any]]:
    """Each value at a path with its location, in the order in which `Selector.find` finds the values.

    Raises:
        SpecError: the path contains `.collect()`, whose list is nowhere in the data.
    """
    nodes: list[_Node] = [(None, value)]
    for step in steps:
        if isinstance(step, Collect):
            raise SpecError(".collect() makes a list that is nowhere in the data; leave it out to ask for places")
        nodes = [child for node in nodes for child in _follow(step, node, value)]
    return nodes


def normalised(location: Location) -> str:
    r"""The normalised path of a location.

    Example:
        >>> normalised(((None, "it's"), 0))
        "$['it\\'s'][0]"
    """
    parts = []
    while location is not None:
        location, key = location
        parts.append(f"[{key}]" if isinstance(key, int) else f"['{_escaped(key)}']")
    return "$" + "".join(reversed(parts))


def _follow(step: Step, node: _Node, root: Any) -> Iterator[_Node]:
    location, value = node
    if isinstance(step, Union):
        for part in step.parts:
            yield from _follow(part, node, root)
    elif isinstance(step, Descend):
        yield from _descendants(node)
    elif isinstance(step, str):
        if isinstance(value, Mapping) and step in value:
            yield (location, str(step)), value[step]
    elif isinstance(step, int):
        if is_list(value) and -len(value) <= step < len(value):
            yield (location, step % len(value)), value[step]
    elif isinstance(step, Slice):
        if is_list(value):
            yield from (((location, place), value[place]) for place in step.places(len(value)))
    elif isinstance(step, Every):
        yield from _children(node)
    elif isinstance(step, Filter):
        yield from (child for child in _children(node) if step.test(child[1], root))


def _children(node: _Node) -> Iterator[_Node]:
    location, value = node
    if isinstance(value, Mapping):
        yield from (((location, str(key)), child) for key, child in value.items())
    elif is_list(value):
        yield from (((location, place), child) for place, child in enumerate(value))


def _descendants(node: _Node) -> Iterator[_Node]:
    waiting = [node]
    while waiting:
        node = waiting.pop()
        yield node
        waiting.extend(reversed([*_children(node)]))


def _escaped(key: str) -> str:
    inner = json.dumps(key, ensure_ascii=False)[1:-1].replace('\\"', '"')
    return inner.replace("'", "\\'")
