"""Selectors: a path into JSON-like data, such as `choices[0].message.content` or `$.choices[?@.score > 0.5].text`.

One engine, two ways to write: names parted by dots, or JSONPath (RFC 9535) when the text begins with `$`. A text is
compiled once into steps that walk the data; nothing is executed from it. Only data are walked: mappings by key,
sequences by place, never attributes, unless a selector that was made in Python says so.

There are two walks. `get` and `find` read what data happen to hold: every name is a key, and `find` leaves out what is
not there, as the RFC has it. `select` and what is built on it (`sole`, `exists`, `existing`, `set`) want all of the
path to be there and tell what is not; and a name goes through lists, so that `retriever.search.rets` are the `rets` of
all calls in the list `retriever.search`. `require` also wants some element of a list to have the name.

    selector/steps.py      what each step of a path leads to
    selector/walking.py    the walk on which all must be there, and changes
    selector/parsing.py    from text to steps
    selector/filters.py    the tests within `[?…]`
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from evaluand.core.errors import DataError, SpecError, kind_of
from evaluand.core.registry import nearest
from evaluand.core.selector.parsing import is_jsonpath, parsed
from evaluand.core.selector.steps import (
    Collect,
    Descend,
    Member,
    Step,
    Union,
    finder,
    is_list,
    one_step,
    printed,
    written,
)
from evaluand.core.selector.walking import Lead, alone, changed, leading

__all__ = ["Member", "Selector", "is_jsonpath"]


@dataclass(frozen=True, eq=False)
class Selector:
    """A path to one value or, with `*`, `..`, slices, several places or a filter, to any number.

    Two selectors are equal when their canonical texts are, and `Selector(str(selector))` is the selector again.

    Args:
        text: names parted by dots, in quotes where they are no words (`a.'b.c'`); in brackets places, slices and quoted
            keys (`a[0]['b']`); `.collect()` makes one list of all so far. With `$` at the beginning it is JSONPath.
        objects: whether `select` also walks Python objects: names are attributes too (none with a leading `__`), and
            texts have places. Never set it for a text that somebody else has written.

    Raises:
        SpecError: the text is no path; says where it stops being one.

    Example:
        >>> Selector("a.b[1]").get({"a": {"b": [10, 20]}})
        20
        >>> Selector("$.a[*].b").find({"a": [{"b": 1}, {"c": 2}, {"b": 3}]})
        [1, 3]
        >>> Selector("a.b").select({"a": [{"b": 1}, {"c": 2}, {"b": 3}]})
        [1, 3]
    """

    text: str
    objects: bool = False

    def __post_init__(self) -> None:
        _ = self._plain

    @classmethod
    def of(cls, *steps: Step, objects: bool = False) -> Selector:
        """The selector of these steps: a `Member` or key, a place, or a step of `evaluand.core.selector.steps`.

        Raises:
            SpecError: one is no step, or cannot stand where it does.

        Example:
            >>> Selector.of(Member("app"), "my key", -1)
            Selector(text="app['my key'][-1]", objects=False)
        """
        for step in steps:
            if isinstance(step, bool) or not isinstance(step, Step):
                raise SpecError(f"{step!r} is no step of a path; give names and keys as text, places as whole numbers")
        return cls(written(steps), objects)

    @cached_property
    def steps(self) -> tuple[Step, ...]:
        """The keys, places and other steps, from the outside in."""
        if not self.text:
            raise SpecError("an empty path selects nothing; write $ for the whole")
        return parsed(self.text)

    @property
    def singular(self) -> bool:
        """Whether the path has only names, keys and places, so that `get` and `find` lead to no more than one value."""
        return self._plain is not None

    def __str__(self) -> str:
        return self._canonical

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Selector):
            return NotImplemented
        return self.objects == other.objects and self._canonical == other._canonical

    def __hash__(self) -> int:
        return hash(self._canonical)

    def is_prefix_of(self, other: Selector) -> bool:
        """Whether the other path begins as this one, or is the same."""
        return written(other.steps[: len(self.steps)]) == str(self)

    # What data happen to hold

    def get(self, value: Any) -> Any:
        """The one value at the path, in which a name is a key.

        Raises:
            DataError: there is none, which says how far the path goes and what is there instead, or more than one.
        """
        if self._plain is None:
            return self._only(self.find(value))
        there = value
        for depth, (step, kind) in enumerate(self._plain):
            try:
                there = there[step] if type(there) is kind else one_step(there, step)
            except LookupError:
                so_far = "$" + "".join(map(printed, self.steps[:depth]))
                raise DataError(f"{self.text}: {so_far} {_lacking(step, there)}") from None
        return there

    def find(self, value: Any) -> list[Any]:
        """All values at the path, in which names are keys, in the order of the data; none where it leads nowhere."""
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

    # What is demanded of them

    def select(self, value: Any) -> list[Any]:
        """All values at the path, in the order of the data, where all of it is there.

        A name is a key of a mapping. Of a list it is the members of that name that elements have, those of lists within
        it too; but a list of one is as good as that one, and a list of none has no members. So a name may lead to
        nothing in a list of several, as slices, `*` and filters may.

        Raises:
            DataError: a step leads nowhere; says which, and what is there instead.

        Example:
            >>> Selector("calls.rets[:]").select({"calls": [{"rets": ["a", "b"]}, {"rets": ["c"]}]})
            ['a', 'b', 'c']
            >>> Selector("calls[0].args.q").select({"calls": [{"args": {"query": 1}}]})
            Traceback (most recent call last):
            evaluand.DataError: calls[0].args.q: calls[0].args has no 'q' (did you mean 'query'?)
        """
        return self._told(value, self._demands)

    def require(self, value: Any) -> list[Any]:
        """As `select`, for those to whom a wrong name is another thing than nothing being there.

        A name that no element of a list has leads nowhere, though it be a list of several; of an empty list it is the
        members of none.

        Raises:
            DataError: a step leads nowhere; says which, and what is there instead.

        Example:
            >>> Selector("calls.text").require({"calls": []})
            []
            >>> Selector("calls.txt").require({"calls": [{"text": 1}, {"text": 2}]})
            Traceback (most recent call last):
            evaluand.DataError: calls.txt: calls is a list of 2 without 'txt' (did you mean 'text'?)
        """
        return self._told(value, self._requirements)

    def sole(self, value: Any) -> Any:
        """The one value that `select` finds.

        Raises:
            DataError: a step leads nowhere, or there is not exactly one value.
        """
        return self._only(self.select(value))

    def exists(self, value: Any) -> bool:
        """Whether every step leads somewhere; a slice of an empty list does, though there is nothing to select."""
        try:
            self._selected(value, self._demands)
        except _Nowhere:
            return False
        return True

    def existing(self, value: Any) -> Selector:
        """The longest beginning of the path that exists.

        Example:
            >>> str(Selector("a.b[9].c").existing({"a": {"b": [1]}}))
            'a.b'
        """
        try:
            self._selected(value, self._demands)
        except _Nowhere as nowhere:
            return Selector.of(*self.steps[: nowhere.depth], objects=self.objects)
        return self

    def set(self, value: Any, new: Any) -> Any:
        """A copy of the value with something new at each place of the path; what is missing on the way is made.

        What is copied is what lies on the way; mappings become dicts there, sequences lists. Missing places of a list
        are filled up with None, and None is as good as nothing.

        Raises:
            DataError: what is there is nothing that the path could go through.
            SpecError: the path has no places, with `..` or `.collect()`.

        Example:
            >>> Selector("a.b[1]").set({"a": {"c": 1}}, 5)
            {'a': {'c': 1, 'b': [None, 5]}}
            >>> Selector("a[:].b").set({"a": [{"b": 1}, {}]}, 0)
            {'a': [{'b': 0}, {'b': 0}]}
        """
        return self.change(value, lambda _: new)

    def change(self, value: Any, change: Callable[[Any], Any]) -> Any:
        """As `set`, with what a function makes of what stands in each place, or of None."""
        if any(isinstance(step, Collect | Descend) for step in self.steps):
            raise SpecError(f"{self.text}: nothing can be set at a path with .. or .collect(), which names no places")

        def below(depth: int, there: Any) -> Any:
            if depth == len(self.steps):
                return change(there)
            step = self.steps[depth]
            try:
                return changed(step, there, lambda child: below(depth + 1, child), value, self.objects)
            except LookupError as error:
                raise DataError(f"{self.text}: {self._prefix(depth)} {_lacking(step, there, self.objects)}") from error

        return below(0, value)

    # How it is done

    def _told(self, value: Any, demands: _Demands) -> list[Any]:
        try:
            return self._selected(value, demands)
        except _Nowhere as nowhere:
            raise DataError(self._refusal(nowhere)) from nowhere.__cause__

    def _selected(self, value: Any, demands: _Demands) -> list[Any]:
        """Follows one value as long as there is one, which costs a fraction of following a list."""
        one, many = value, None
        for depth, kind, key, lead in demands:
            try:
                if many is None:
                    if type(one) is kind:
                        one = one[key]
                        continue
                    if lead is None:
                        one = [one]
                        continue
                    found = lead(one, value)
                elif lead is None:
                    one, many = many, None
                    continue
                else:
                    found = []
                    for there in many:
                        if type(there) is kind:
                            found.append(there[key])
                        else:
                            found += lead(there, value)
            except LookupError as error:
                raise _Nowhere(depth, lead, [one] if many is None else many) from error
            if len(found) == 1:
                one, many = found[0], None
            else:
                many = found
        return [one] if many is None else many

    def _only(self, found: Sequence[Any]) -> Any:
        if len(found) != 1:
            raise DataError(f"{self.text}: {len(found) or 'no'} values where one is needed")
        return found[0]

    @cached_property
    def _canonical(self) -> str:
        return written(self.steps)

    @cached_property
    def _plain(self) -> tuple[tuple[Any, Any], ...] | None:
        """Each step with the type that it is most often taken in, where all are keys and places."""
        if not all(isinstance(step, str | int) for step in self.steps):
            return None
        return tuple((key, kind) for _, kind, key, _ in self._demands)

    @cached_property
    def _demands(self) -> _Demands:
        """What `select` demands."""
        return self._demanded(strict=False)

    @cached_property
    def _requirements(self) -> _Demands:
        """What `require` demands."""
        return self._demanded(strict=True)

    def _demanded(self, *, strict: bool) -> _Demands:
        """Of each step its number, the type that it is most often taken in, the key or place, and what it leads to.

        What stands behind `..` is wanted of everything there is, and so of nothing in particular.
        """
        demands = []
        for depth, step in enumerate(self.steps):
            kind = dict if isinstance(step, str) else list if isinstance(step, int) else None
            key = str(step) if isinstance(step, str) else step
            lead = None if isinstance(step, Collect) else leading(step, self.objects, strict)
            if depth and isinstance(self.steps[depth - 1], Descend):
                kind, lead = None, _lenient(step)
            demands.append((depth, kind, key, lead))
        return tuple(demands)

    @cached_property
    def _finders(self) -> tuple[Any, ...]:
        return tuple(finder(step) for step in self.steps)

    def _prefix(self, depth: int) -> str:
        return written(self.steps[:depth])

    def _refusal(self, nowhere: _Nowhere) -> str:
        step, values = self.steps[nowhere.depth], nowhere.values
        place = next(place for place, there in enumerate(values) if not _leads(nowhere.lead, there))
        which = f", value {place + 1} of {len(values)}," if len(values) > 1 else ""
        return f"{self.text}: {self._prefix(nowhere.depth)}{which} {_lacking(step, values[place], self.objects)}"


_Demands = tuple[tuple[int, Any, Any, Lead | None], ...]


def _lenient(step: Step) -> Lead:
    find = finder(step)
    return lambda value, root: find((value,), root)


class _Nowhere(Exception):
    """A step leads nowhere from one of these values."""

    def __init__(self, depth: int, lead: Lead | None, values: Sequence[Any]) -> None:
        super().__init__()
        self.depth, self.lead, self.values = depth, lead, values


def _lacking(step: Step, there: Any, objects: bool = False) -> str:
    """What is at a place where a step leads nowhere."""
    if isinstance(step, Union):
        step = next((part for part in step.parts if not _leads(leading(part, objects), there)), step.parts[0])
    if isinstance(step, Member):
        there = alone(there)
    named = repr(str(step)) if isinstance(step, str) else str(step) if isinstance(step, int) else f"[{step}]"
    if is_list(there):
        names = {name: None for each in there for name in _names(each, objects)} if isinstance(step, Member) else ()
        return f"is a list of {len(there)} without {named}{nearest(str(step), names)}"
    near = nearest(step, _names(there, objects)) if isinstance(step, str) else ""
    if isinstance(there, Mapping) and isinstance(step, str | int):
        return f"has no {named}{near}"
    return f"is {kind_of(there)}, which has no {named}{near}"


def _names(there: Any, objects: bool) -> list[str]:
    held = there if isinstance(there, Mapping) else getattr(there, "__dict__", ()) if objects else ()
    return [name for name in held if isinstance(name, str)]


def _leads(lead: Lead | None, there: Any) -> bool:
    try:
        _ = lead and lead(there, there)
    except LookupError:
        return False
    return True
