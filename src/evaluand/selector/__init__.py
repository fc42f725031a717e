"""Selectors: a path into JSON-like data, such as `choices[0].message.content` or `$.choices[?@.score > 0.5].text`.

One engine, two ways to write: keys parted by dots, or JSONPath (RFC 9535) when the text begins with `$`. A text is
compiled once into steps that walk the data; nothing is executed from it. Only data are walked: mappings by key,
sequences by place, never attributes.

    selector/steps.py      what each step of a path leads to
    selector/parsing.py    from text to steps
    selector/filters.py    the tests within `[?…]`
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from evaluand.errors import DataError, SpecError, kind_of
from evaluand.registry import nearest
from evaluand.selector.parsing import is_jsonpath, parsed
from evaluand.selector.steps import Step, Union, is_list, one_step, printed

__all__ = ["Selector", "is_jsonpath"]


@dataclass(frozen=True)
class Selector:
    """A path to one value or, with `*`, `..`, slices, several places or a filter, to any number.

    Args:
        text: keys parted by dots, list places in brackets, awkward keys quoted in brackets; `$` may stand first.

    Raises:
        SpecError: the text is no path; says where it stops being one.

    Example:
        >>> Selector("a.b[1]").get({"a": {"b": [10, 20]}})
        20
        >>> Selector("$.a[*].b").find({"a": [{"b": 1}, {"c": 2}, {"b": 3}]})
        [1, 3]
    """

    text: str

    def __post_init__(self) -> None:
        _ = self._plain

    @cached_property
    def steps(self) -> tuple[Step, ...]:
        """The keys, places and other steps, from the outside in."""
        if not self.text:
            raise SpecError("an empty path selects nothing; write $ for the whole")
        return parsed(self.text)

    @property
    def singular(self) -> bool:
        """Whether the path can lead to no more than one value."""
        return self._plain is not None

    def get(self, value: Any) -> Any:
        """The one value at the path.

        Raises:
            DataError: there is none, which says how far the path goes and what is there instead, or more than one.
        """
        if self._plain is None:
            found = self.find(value)
            if len(found) != 1:
                raise DataError(f"{self.text}: {len(found) or 'no'} values where one is needed")
            return found[0]
        there = value
        for depth, (step, kind) in enumerate(self._plain):
            try:
                there = there[step] if type(there) is kind else one_step(there, step)
            except LookupError:
                raise DataError(self._missing(depth, there)) from None
        return there

    def find(self, value: Any) -> list[Any]:
        """All values at the path, in the order of the data; none where it leads nowhere."""
        if self._plain is None:
            found = [value]
            for step in self._finders:
                found = step(found, value)
            return found
        for step, kind in self._plain:
            try:
                value = value[step] if type(value) is kind else one_step(value, step)
            except LookupError:
                return []
        return [value]

    @cached_property
    def _plain(self) -> tuple[tuple[Any, Any], ...] | None:
        """Each step with the type that it is most often taken in, where all are keys and places."""
        if not all(isinstance(step, str | int) for step in self.steps):
            return None
        return tuple((step, dict if isinstance(step, str) else list) for step in self.steps)

    @cached_property
    def _finders(self) -> tuple[Any, ...]:
        return tuple(Union((step,)).find if isinstance(step, str | int) else step.find for step in self.steps)

    def _missing(self, depth: int, value: Any) -> str:
        so_far = "".join(printed(step) for step in self.steps[:depth])
        step = self.steps[depth]
        if isinstance(value, Mapping):
            there = f"has no {step!r}{nearest(str(step), [k for k in value if isinstance(k, str)])}"
        elif is_list(value):
            there = f"is a list of {len(value)} without {step!r}"
        else:
            there = f"is {kind_of(value)}, which has no {step!r}"
        return f"{self.text}: ${so_far} {there}"
