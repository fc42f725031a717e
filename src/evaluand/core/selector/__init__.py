"""Selectors: a path into JSON-like data, such as `choices[0].message.content` or `$.choices[?@.score > 0.5].text`.

One engine, two notations: names separated by dots, or JSONPath (RFC 9535) if the text begins with `$`. A text is
compiled once into steps that walk the data; nothing is executed from it. A selector reads only data: mappings by key,
sequences by index, never attributes, unless a selector made in Python allows them.

There are two walks. `get` and `find` read what the data contain: every name is a key, and `find` leaves out what is
missing, as the RFC says. `select` and the methods built on it (`sole`, `exists`, `existing`, `set`) require the full
path and report what is missing; a name also goes through lists, so that `retriever.search.rets` are the `rets` of all
calls in the list `retriever.search`. `require` also demands that some element of a list has the name.

    selector/steps.py      what each step of a path selects, the walk that requires the full path, and changes
    selector/parsing.py    from text to steps and tests
    selector/filters.py    the tests in `[?…]`: comparisons and functions
    selector/patterns.py   the patterns of `match` and `search`
    selector/locations.py  normalised paths
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from evaluand.core.errors import DataError, NotStored, SpecError, kind_of, nearest
from evaluand.core.placeholders import Gap, find_gap, is_placeholder
from evaluand.core.selector.locations import locate, normalised
from evaluand.core.selector.parsing import check_rfc9535, is_jsonpath, parse
from evaluand.core.selector.steps import (
    Collect,
    Descend,
    Hidden,
    Lead,
    Member,
    Step,
    Union,
    alone,
    changed,
    finder,
    is_list,
    leading,
    one_step,
    printed,
    written,
)

__all__ = ["Member", "Selector", "is_jsonpath"]


@dataclass(frozen=True, eq=False)
class Selector:
    """A path to one value or, with `*`, `..`, slices, several indices or a filter, to any number of values.

    Two selectors are equal if their canonical texts are; `Selector(str(selector))` equals the selector.

    Args:
        text: names separated by dots, in quotes if they are not words (`a.'b.c'`); in brackets indices, slices and
            quoted keys (`a[0]['b']`); `.collect()` makes one list of all values so far. With a leading `$` it is
            JSONPath.
        objects: whether `select` also reads Python objects: names are attributes too (none with a leading `__`), and
            texts have indices. Never set it for a text from an untrusted source.

    Raises:
        SpecError: the text is not a path; the message says where the fault is.

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
        _ = self._typed_keys

    @classmethod
    def of(cls, *steps: Step, objects: bool = False) -> Selector:
        """The selector of these steps: a `Member` or key, an index, or a step of `evaluand.core.selector.steps`.

        Raises:
            SpecError: a value is not a step, or not allowed at its position.

        Example:
            >>> Selector.of(Member("app"), "my key", -1)
            Selector(text="app['my key'][-1]", objects=False)
        """
        for step in steps:
            if isinstance(step, bool) or not isinstance(step, Step):
                raise SpecError(f"{step!r} is not a step; give names and keys as text, indices as integers")
        return cls(written(steps), objects)

    @classmethod
    def jsonpath(cls, text: str) -> Selector:
        """The selector of a JSONPath exactly as RFC 9535 has it, for a path that other programs must read too.

        Raises:
            SpecError: the text is no such path, though `Selector(text)` may accept it.

        Example:
            >>> Selector.jsonpath("$.rows[?@.score >= 0.5].text").find({"rows": [{"score": 0.7, "text": "a"}]})
            ['a']
        """
        check_rfc9535(text)
        return cls(text)

    @cached_property
    def steps(self) -> tuple[Step, ...]:
        """The keys, indices and other steps, from the outside in."""
        if not self.text:
            raise SpecError("an empty path selects nothing; write $ to select everything")
        return parse(self.text)

    @property
    def singular(self) -> bool:
        """Whether the path has only names, keys and indices, so that `get` and `find` give at most one value."""
        return self._typed_keys is not None

    def __str__(self) -> str:
        return self._canonical

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Selector):
            return NotImplemented
        return self.objects == other.objects and self._canonical == other._canonical

    def __hash__(self) -> int:
        return hash(self._canonical)

    def is_prefix_of(self, other: Selector) -> bool:
        """Whether the other path begins with this one, or equals it."""
        return written(other.steps[: len(self.steps)]) == str(self)

    # What the data contain

    def get(self, value: Any) -> Any:
        """The one value at the path, where every name is a key.

        Raises:
            DataError: there is no value, or more than one; says how far the path leads and what is there instead.
        """
        if self._typed_keys is None:
            return self._only(self.find(value))
        there = value
        for depth, (step, kind) in enumerate(self._typed_keys):
            try:
                there = there[step] if type(there) is kind else one_step(there, step)
            except LookupError:
                so_far = "$" + "".join(map(printed, self.steps[:depth]))
                raise DataError(f"{self.text}: {so_far} {_describe_missing(step, there)}") from None
        return there

    def find(self, value: Any) -> list[Any]:
        """All values at the path, where every name is a key, in the order of the data; empty if nothing matches."""
        if self._typed_keys is None:
            found = [value]
            for step in self._finders:
                found = step(found, value)
            return found
        for step, kind in self._typed_keys:
            try:
                value = value[step] if type(value) is kind else one_step(value, step)
            except LookupError:
                return []
        return [value]

    def paths(self, value: Any) -> list[str]:
        """The normalised path of each value that `find` finds, in the same order (RFC 9535, section 2.7).

        Raises:
            SpecError: the path contains `.collect()`, whose list is nowhere in the data.

        Example:
            >>> Selector("$..b").paths({"a": [{"b": 1}, {"b": 2}]})
            ["$['a'][0]['b']", "$['a'][1]['b']"]
        """
        return [normalised(location) for location, _ in locate(self.steps, value)]

    # What the path requires

    def select(self, value: Any) -> list[Any]:
        """All values at the path, in the order of the data; the full path must exist.

        A name is a key of a mapping. In a list it selects the members of that name of all elements, also of nested
        lists; a list of one counts as its element, and an empty list has no members. In a list of several, a name may
        select nothing, as slices, `*` and filters may.

        Raises:
            DataError: a step selects nothing; says which one, and what is there instead.

        Example:
            >>> Selector("calls.rets[:]").select({"calls": [{"rets": ["a", "b"]}, {"rets": ["c"]}]})
            ['a', 'b', 'c']
            >>> Selector("calls[0].args.q").select({"calls": [{"args": {"query": 1}}]})
            Traceback (most recent call last):
            evaluand.DataError: calls[0].args.q: calls[0].args has no 'q' (did you mean 'query'?)
        """
        try:
            return self._selected(value, self._demands)
        except _Nowhere as nowhere:
            raise DataError(self._missing_message(nowhere)) from nowhere.__cause__

    def require(self, value: Any) -> list[Any]:
        """As `select`, but tells a wrong name from empty data.

        A name that no element of a list has is an error, also in a list of several; in an empty list it selects
        nothing.

        Raises:
            NotStored: a value at the path, on the way to it, or read by a filter was not stored, so that what the path
                selects is unknown; see `evaluand.core.placeholders`.
            DataError: a step selects nothing; says which one, and what is there instead.

        Example:
            >>> Selector("calls.text").require({"calls": []})
            []
            >>> Selector("calls.txt").require({"calls": [{"text": 1}, {"text": 2}]})
            Traceback (most recent call last):
            evaluand.DataError: calls.txt: calls is a list of 2 without 'txt' (did you mean 'text'?)
        """
        try:
            found = self._selected(value, self._requirements)
        except _Nowhere as nowhere:
            self._refuse_placeholders(nowhere)
            raise DataError(self._missing_message(nowhere)) from nowhere.__cause__
        for number, each in enumerate(found, 1):
            if type(each) not in _ATOMS and (gap := find_gap(each)):
                which = f" (value {number} of {len(found)})" if len(found) > 1 else ""
                raise NotStored(f"{self.text}{gap.path}{which} {gap}; {_STORED}")
        return found

    def sole(self, value: Any) -> Any:
        """The one value that `select` finds.

        Raises:
            DataError: a step selects nothing, or there is not exactly one value.
        """
        return self._only(self.select(value))

    def exists(self, value: Any) -> bool:
        """Whether the full path exists; a slice of an empty list does, though it selects nothing."""
        try:
            self._selected(value, self._demands)
        except _Nowhere:
            return False
        return True

    def existing(self, value: Any) -> Selector:
        """The longest prefix of the path that exists.

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
        """A copy of the value with `new` at each place of the path; creates what is missing on the way.

        Copies only what lies on the way. Mappings keep their type if it can be copied, else they become dicts;
        sequences become lists. Missing elements of a list become None, and None counts as missing.

        Raises:
            DataError: the path cannot go through a value on the way.
            SpecError: the path contains `..` or `.collect()`, which name no places.

        Example:
            >>> Selector("a.b[1]").set({"a": {"c": 1}}, 5)
            {'a': {'c': 1, 'b': [None, 5]}}
            >>> Selector("a[:].b").set({"a": [{"b": 1}, {}]}, 0)
            {'a': [{'b': 0}, {'b': 0}]}
        """
        return self.change(value, lambda _: new)

    def change(self, value: Any, change: Callable[[Any], Any]) -> Any:
        """As `set`, with a function of the present value (or None) at each place."""
        if any(isinstance(step, Collect | Descend) for step in self.steps):
            raise SpecError(f"{self.text}: nothing can be set at a path with .. or .collect(), which names no places")

        def change_below(depth: int, there: Any) -> Any:
            if depth == len(self.steps):
                return change(there)
            step = self.steps[depth]
            try:
                return changed(step, there, lambda child: change_below(depth + 1, child), value, self.objects)
            except LookupError as error:
                missing = _describe_missing(step, there, self.objects)
                raise DataError(f"{self.text}: {self._prefix(depth)} {missing}") from error

        return change_below(0, value)

    # Implementation

    def _selected(self, value: Any, demands: _Demands) -> list[Any]:
        """Follows a single value while there is only one, which costs a fraction of following a list."""
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

    def _refuse_placeholders(self, nowhere: _Nowhere) -> None:
        """Raises the error for a step that a placeholder stopped."""
        here = self._prefix(nowhere.depth)
        for each in nowhere.values:
            if is_placeholder(each):
                raise NotStored(f"{self.text}: {here} {Gap(each)}; {_STORED}")
        if isinstance(nowhere.__cause__, Hidden):
            raise NotStored(f"{self.text}: a part of {here} {Gap(nowhere.__cause__.args[0])}; {_STORED}")

    def _only(self, found: Sequence[Any]) -> Any:
        if len(found) != 1:
            raise DataError(f"{self.text}: {len(found) or 'no'} values where one is needed")
        return found[0]

    @cached_property
    def _canonical(self) -> str:
        return written(self.steps)

    @cached_property
    def _typed_keys(self) -> tuple[tuple[Any, Any], ...] | None:
        """Each step with the type of container it usually reads; None unless all steps are keys and indices."""
        if not all(isinstance(step, str | int) for step in self.steps):
            return None
        return tuple((key, kind) for _, kind, key, _ in self._demands)

    @cached_property
    def _demands(self) -> _Demands:
        return self._compile(strict=False)

    @cached_property
    def _requirements(self) -> _Demands:
        return self._compile(strict=True)

    def _compile(self, *, strict: bool) -> _Demands:
        """Of each step: its number, the type of container it usually reads, the key or index, and a function.

        A step after `..` is tried on every value, so no single value has to match it.
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

    def _missing_message(self, nowhere: _Nowhere) -> str:
        step, values = self.steps[nowhere.depth], nowhere.values
        place = next(place for place, there in enumerate(values) if not _leads(nowhere.lead, there))
        which = f", value {place + 1} of {len(values)}," if len(values) > 1 else ""
        return (
            f"{self.text}: {self._prefix(nowhere.depth)}{which} {_describe_missing(step, values[place], self.objects)}"
        )


_ATOMS: Final = frozenset((str, int, float, bool, type(None)))
_STORED: Final = "select a part that was stored, or record a smaller one"

_Demands = tuple[tuple[int, Any, Any, Lead | None], ...]


def _lenient(step: Step) -> Lead:
    find = finder(step)
    return lambda value, root: find((value,), root)


class _Nowhere(Exception):
    """A step selects nothing from one of these values."""

    def __init__(self, depth: int, lead: Lead | None, values: Sequence[Any]) -> None:
        super().__init__()
        self.depth, self.lead, self.values = depth, lead, values


def _describe_missing(step: Step, there: Any, objects: bool = False) -> str:
    """Describes the value from which a step selects nothing."""
    if isinstance(step, Union):
        step = next((part for part in step.parts if not _leads(leading(part, objects), there)), step.parts[0])
    if isinstance(step, Member):
        there = alone(there)
    named = repr(str(step)) if isinstance(step, str) else str(step) if isinstance(step, int) else f"[{step}]"
    if is_list(there):
        names = {name: None for each in there for name in _names(each, objects)} if isinstance(step, Member) else ()
        index = str(step) if isinstance(step, str) and step.isascii() and step.isdigit() else ""
        hint = f"; write [{index}] for an element" if index else nearest(str(step), names)
        return f"is a list of {len(there)} without {named}{hint}"
    near = nearest(step, _names(there, objects)) if isinstance(step, str) else ""
    if isinstance(there, Mapping) and isinstance(step, str | int):
        return f"has no {named}{near}"
    return f"is {kind_of(there)}, which has no {named}{near}"


def _names(there: Any, objects: bool) -> list[str]:
    names = there if isinstance(there, Mapping) else getattr(there, "__dict__", ()) if objects else ()
    return [name for name in names if isinstance(name, str)]


def _leads(lead: Lead | None, there: Any) -> bool:
    try:
        _ = lead and lead(there, there)
    except LookupError:
        return False
    return True
