"""The scale of a rubric: the possible verdicts, their meanings and their values."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, NamedTuple

from evaluand.core.errors import ParameterError, described, nearest
from evaluand.evaluation.scorer import is_number

Fault = tuple[tuple[str | int, ...], str]
"""A place among data, and what is wrong there."""


def unknown_keys(written: Mapping[Any, Any], known: Sequence[str]) -> list[Fault]:
    """A fault for each key that is not known."""
    words = f"known keys: {', '.join(known)}"
    return [((str(name),), f"unknown key{nearest(str(name), known)}; {words}") for name in written if name not in known]


class Level(NamedTuple):
    """One verdict of a scale.

    Attributes:
        label: the word or number that the judge writes.
        value: the value of the verdict.
        anchor: tells the judge when the verdict applies; empty if the label says enough.
        strength: of a comparison: how much better the response is, 0 or more; None if the scale does not say.
    """

    label: str
    value: float
    anchor: str = ""
    strength: float | None = None


@dataclass(frozen=True)
class Scale:
    """The levels of a rubric, in the order in which the judge reads them.

    Example:
        >>> scale = Scale.of({"right": 1, "partly": {"value": 0.5, "anchor": "something is missing"}, "wrong": 0})
        >>> scale.find(" Partly. "), scale.find("half") is None
        (Level(label='partly', value=0.5, anchor='something is missing', strength=None), True)
        >>> Scale.of("1-5").find(4).value, Scale.of("1-5").find(3.5) is None
        (4.0, True)
    """

    levels: tuple[Level, ...]

    @classmethod
    def of(cls, written: Any) -> Scale:
        """A scale as written in a rubric: `1-5`, or label → value, or label → a mapping of value, anchor and strength.

        A label that is a number needs no value.

        Raises:
            ParameterError: lists every fault with its place.
        """
        if isinstance(written, Scale):
            return written
        if isinstance(written, str):
            return cls(tuple(_whole_numbers(written)))
        if not isinstance(written, Mapping):
            raise ParameterError([((), f"is {described(written)}; {_FORM}")])
        levels, faults = list[Level](), list[Fault]()
        for label, entry in written.items():
            try:
                levels.append(_level(label, entry))
            except ParameterError as error:
                faults += [((str(label), *place), message) for place, message in error.faults]
        if faults := faults or list(_faults(levels)):
            raise ParameterError(faults)
        return cls(tuple(levels))

    @cached_property
    def is_numeric(self) -> bool:
        """Whether all labels are numbers, so that the judge must write numbers."""
        return all(_NUMBER.fullmatch(level.label) for level in self.levels)

    @property
    def labels(self) -> list[str]:
        return [level.label for level in self.levels]

    @property
    def range(self) -> tuple[float, float]:
        """The lowest and the highest value."""
        values = [level.value for level in self.levels]
        return min(values), max(values)

    @property
    def spec(self) -> dict[str, Any]:
        """The scale as data that `of` can read."""
        return {
            level.label: {
                name: value for name, value in level._asdict().items() if name != "label" and value not in ("", None)
            }
            for level in self.levels
        }

    def find(self, written: Any) -> Level | None:
        """The level that a judge means by what it wrote; None if that is not on the scale.

        Numbers are compared by value; words without regard to case, quotation marks and a final period.
        """
        return self._by_key.get(_key(written, self.is_numeric))

    def as_written(self, level: Level) -> Any:
        """The label as a judge is to write it in JSON."""
        if not self.is_numeric:
            return level.label
        number = float(level.label)
        return int(number) if number.is_integer() else number

    @cached_property
    def _by_key(self) -> dict[Any, Level]:
        return {_key(level.label, self.is_numeric): level for level in self.levels}


_FORM: Final = "give verdicts with their values, such as {right: 1, wrong: 0}, or whole numbers, such as 1-5"
_NUMBER: Final = re.compile(r"[+-]?\d{1,15}(?:\.\d{1,15})?", re.ASCII)
_RANGE: Final = re.compile(r"(-?\d{1,6})\s*(?:-|–|to|\.\.)\s*(-?\d{1,6})", re.ASCII)
_MOST: Final = 101
_KEYS: Final = ("value", "anchor", "strength")


def _whole_numbers(written: str) -> Iterator[Level]:
    match = _RANGE.fullmatch(written.strip())
    if match is None:
        raise ParameterError([((), f"is {described(written)}; {_FORM}")])
    low, high = int(match[1]), int(match[2])
    if not 1 <= high - low < _MOST:
        raise ParameterError([((), f"is {described(written)}; give 2 to {_MOST} numbers, the lower one first")])
    yield from (Level(str(number), float(number)) for number in range(low, high + 1))


def _level(label: Any, entry: Any) -> Level:
    text, is_mapping = str(label).strip(), isinstance(entry, Mapping)
    fields: Mapping[Any, Any] = entry if is_mapping else {"value": entry}
    faults = unknown_keys(fields, _KEYS)
    if not text or "\n" in text:
        faults.append(((), "the label of a verdict is some text on one line"))
    value, anchor, strength = (fields.get(key) for key in _KEYS)
    number = float(text) if value is None and _NUMBER.fullmatch(text) else value
    if not is_number(number) or not math.isfinite(number):
        given = "has no value" if number is None else f"is worth {described(number)}"
        faults.append((("value",) if is_mapping and number is not None else (), f"{given}; give a finite number"))
    if not isinstance(anchor, str | None):
        faults.append((("anchor",), f"is {described(anchor)}; give the text that says when the verdict is right"))
    if strength is not None and not (is_number(strength) and 0 <= strength < math.inf):
        faults.append((("strength",), f"is {described(strength)}; give a number of at least 0"))
    if faults:
        raise ParameterError(faults)
    return Level(text, float(number), (anchor or "").strip(), None if strength is None else float(strength))  # type: ignore[arg-type] # checked above


def _faults(levels: list[Level]) -> Iterator[Fault]:
    is_numeric = all(_NUMBER.fullmatch(level.label) for level in levels)
    seen: dict[Any, str] = {}
    for level in levels:
        key = _key(level.label, is_numeric)
        if key is None:
            yield (level.label,), "is no word or number; choose a label that a judge can write"
        elif key in seen:
            yield (level.label,), f"cannot be distinguished from {seen[key]!r} in a reply; choose another word"
        seen[key] = level.label
    if len({level.value for level in levels}) < 2:
        yield (), "needs at least two verdicts that are worth different numbers"


def _key(written: Any, is_numeric: bool) -> Any:
    """The same text for all ways to write a label; None for values that are no label."""
    if isinstance(written, bool):
        return None if is_numeric else str(written).casefold()
    if is_number(written):
        number = float(written) if isinstance(written, float) or abs(written) < 1e15 else math.inf
        return number if is_numeric else f"{number:g}"
    if not isinstance(written, str) or len(written) > _LONGEST:
        return None
    text = written.strip(" \t\r\n.\"'`*").casefold()
    if is_numeric:
        return float(text) if _NUMBER.fullmatch(text) else None
    return re.sub(r"[\s_-]+", " ", text).strip() or None


_LONGEST: Final = 300
