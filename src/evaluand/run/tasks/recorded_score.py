"""Scores and decisions as a file has them: deciles from 1 to 10, or words such as Low, Medium and High.

They become what the scorer `prediction` reads: a label, and for a score also that of both labels. So a published file
is evaluated as it is, without a copy in which someone has computed the decisions before. A number counts as one also
where it is text, since a single other word makes text of a whole column of a CSV file.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

from evaluand.core import identity
from evaluand.core.errors import DataError, SpecError, nearest

Label = str | int | bool

BEHAVIOUR: Final = 2
"""The version of how columns are read, which is part of a task's identity."""


class Reading(Protocol):
    """How the output of a row is read from one column."""

    @property
    def column(self) -> str: ...

    def output(self, value: Any) -> dict[str, Any] | None:
        """The output for a value of the column; None for a missing value, which is no answer."""


def reading_of(score: Any, decision: Any) -> Reading | None:
    """How outputs are read from a score or a decision, whichever is set.

    Raises:
        SpecError: all faults of the setting.
    """
    if score is not None and decision is not None:
        raise SpecError("recorded: give score or decision, not both; each says how rows are decided")
    return _score_of(score) if score is not None else _decision_of(decision) if decision is not None else None


@dataclass(frozen=True)
class ScoreReading:
    """A score, which decides for the positive label from a threshold on.

    Attributes:
        column: path of the score in a row.
        range: the lowest and the highest possible score.
        threshold: the lowest score that is decided as positive.
        labels: the negative and the positive label.

    Example:
        >>> ScoreReading("decile_score", (1, 10), 5).output(10)
        {'prediction': 1, 'probabilities': {'0': 0.0, '1': 1.0}}
    """

    column: str
    range: tuple[float, float]
    threshold: float
    labels: tuple[Label, Label] = (0, 1)

    def output(self, value: Any) -> dict[str, Any] | None:
        """The decision, and the place of the score in its range, from 0 to 1, as the score of the positive label.

        It orders rows as the score does, which is what curves, areas and thresholds read; it is no calibrated
        probability.

        Raises:
            DataError: the value is no number, or outside of the range.
        """
        number = _as_number(value)
        if number is None or (isinstance(number, float) and math.isnan(number)):
            return None
        low, high = self.range
        if not is_number(number) or not low <= number <= high:
            raise DataError(f"{self.column} is {value!r}, not a number from {low:g} to {high:g} (score: range)")
        place = (number - low) / (high - low)
        names = [label if isinstance(label, str) else identity.encode(label).decode() for label in self.labels]
        return {
            "prediction": self.labels[number >= self.threshold],
            "probabilities": dict(zip(names, (1 - place, place), strict=True)),
        }


@dataclass(frozen=True)
class DecisionReading:
    """A decision in the words of a file.

    Attributes:
        column: path of the decision in a row.
        negative: the values that are decided as negative.
        positive: the values that are decided as positive.
        labels: the negative and the positive label.

    Example:
        >>> DecisionReading("score_text", ("Low",), ("Medium", "High")).output("High")
        {'prediction': 1}
    """

    column: str
    negative: tuple[Any, ...]
    positive: tuple[Any, ...]
    labels: tuple[Label, Label] = (0, 1)

    def output(self, value: Any) -> dict[str, Any] | None:
        """The decision.

        Raises:
            DataError: the value is neither negative nor positive.
        """
        if value is None:
            return None
        for given in (value, _as_number(value)):
            for label, values in zip(self.labels, (self.negative, self.positive), strict=True):
                if any(_are_same(one, given) for one in values):
                    return {"prediction": label}
        raise DataError(f"{self.column} is {value!r}, and decision names it neither under negative nor under positive")


def _score_of(entry: Any) -> ScoreReading:
    faults = _find_faults("score", entry, ("column", "range", "threshold"))
    if not faults:
        low, high = entry["range"] if _is_pair(entry["range"]) else (None, None)
        if low is None or not (is_number(low) and is_number(high) and low < high):
            faults.append(f"recorded: score: range is {entry['range']!r}; write the lowest and highest score: [1, 10]")
        elif not is_number(entry["threshold"]) or not low <= entry["threshold"] <= high:
            faults.append(
                f"recorded: score: threshold is {entry['threshold']!r}; it must be a number from {low:g} to {high:g}"
            )
    _refuse(faults)
    low, high = entry["range"]
    return ScoreReading(entry["column"], (low, high), entry["threshold"], _labels(entry))


def _decision_of(entry: Any) -> DecisionReading:
    faults = _find_faults("decision", entry, ("column", "negative", "positive"))
    negative, positive = (_values(entry[side]) for side in ("negative", "positive")) if not faults else ((), ())
    for value in negative:
        if value in positive:
            faults.append(f"recorded: decision: {value!r} is both negative and positive")
    _refuse(faults)
    return DecisionReading(entry["column"], negative, positive, _labels(entry))


def _find_faults(name: str, entry: Any, required: Sequence[str]) -> list[str]:
    """What is wrong with the keys of a setting."""
    if not isinstance(entry, Mapping):
        return [f"recorded: {name} is {entry!r}; write {_EXAMPLES[name]}"]
    known = (*required, "labels")
    faults = [
        f"recorded: {name}: there is no {key!r}{nearest(str(key), known)}; there are {', '.join(known)}"
        for key in entry
        if key not in known
    ]
    faults += [f"recorded: {name} has no {key}; write {_EXAMPLES[name]}" for key in required if key not in entry]
    column = entry.get("column", "column")
    if not isinstance(column, str) or not column:
        faults.append(f"recorded: {name}: column is {column!r}, not the name of a column")
    labels = entry.get("labels", _LABELS)
    if not _is_pair(labels) or not all(isinstance(one, Label) for one in labels) or labels[0] == labels[1]:
        faults.append(f"recorded: {name}: labels is {labels!r}; write the negative and the positive label: [0, 1]")
    return faults


def _refuse(faults: Sequence[str]) -> None:
    if faults:
        raise SpecError("\n".join(faults))


def _labels(entry: Mapping[str, Any]) -> tuple[Label, Label]:
    negative, positive = entry.get("labels", _LABELS)
    return negative, positive


def _values(entry: Any) -> tuple[Any, ...]:
    return tuple(entry) if isinstance(entry, list | tuple) else (entry,)


def _is_pair(value: Any) -> bool:
    return isinstance(value, list | tuple) and len(value) == 2


def _are_same(one: Any, other: Any) -> bool:
    """Whether two values are equal and of one type; integers and other numbers are."""
    return one == other and (type(one) is type(other) or (is_number(one) and is_number(other)))


def _as_number(value: Any) -> Any:
    """The number that a text is; any other value unchanged."""
    if not isinstance(value, str) or not _NUMBER.fullmatch(value):
        return value
    try:
        return int(value)
    except ValueError:
        return float(value)


def is_number(value: Any) -> bool:
    """Whether a value is a finite number."""
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


_LABELS: Final = (0, 1)
_NUMBER: Final = re.compile(
    r"\s*([+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?|nan)\s*", re.IGNORECASE | re.ASCII
)
_EXAMPLES: Final = {
    "score": "{column: decile_score, range: [1, 10], threshold: 5}",
    "decision": "{column: score_text, negative: [Low], positive: [Medium, High]}",
}
