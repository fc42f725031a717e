"""Scores and decisions as a file has them: deciles from 1 to 10, or words such as Low, Medium and High.

They become what the scorer `prediction` reads: a label, and for a score also that of both labels. So a published file
is evaluated as it is, without a copy in which someone has computed the decisions before. A number counts as one also
where it is text, since a single other word makes text of a whole column of a CSV file.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Final

from evaluand.core import identity
from evaluand.core.errors import DataError, ParameterError, SpecError, nearest
from evaluand.core.parameters import Text
from evaluand.run.parameters import Place, check_parameters

Label = str | int | bool

BEHAVIOUR: Final = 2
"""The version of how columns are read, which is part of a task's identity."""


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

    column: Text
    range: Sequence[float]
    threshold: float
    labels: Sequence[Label] = (0, 1)

    def __post_init__(self) -> None:
        faults = [*_label_faults(self.labels)]
        if not (_is_pair(self.range) and all(map(is_number, self.range)) and self.range[0] < self.range[1]):
            faults.append((("range",), f"is {self.range!r}; write the lowest and highest score: [1, 10]"))
        elif not (is_number(self.threshold) and self.range[0] <= self.threshold <= self.range[1]):
            within = "from {:g} to {:g}".format(*self.range)
            faults.append((("threshold",), f"is {self.threshold!r}; it must be a number {within}"))
        check_parameters(self, faults)

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

    column: Text
    negative: Any
    positive: Any
    labels: Sequence[Label] = (0, 1)

    def __post_init__(self) -> None:
        for name in ("negative", "positive"):
            values = getattr(self, name)
            object.__setattr__(self, name, values if isinstance(values, list | tuple) else [values])
        both = [value for value in self.negative if value in self.positive]
        doubted = [(("negative",), f"{value!r} is both negative and positive") for value in both]
        check_parameters(self, [*_label_faults(self.labels), *doubted])

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


Reading = ScoreReading | DecisionReading
"""How the output of a row is read from one column."""


def reading_of(score: Any, decision: Any) -> Reading | None:
    """How outputs are read from a score or a decision, whichever is set.

    Raises:
        ParameterError: all faults of the setting.
    """
    if score is not None and decision is not None:
        raise SpecError("recorded: give score or decision, not both; each says how rows are decided")
    if score is not None:
        return _read("score", ScoreReading, score)
    return None if decision is None else _read("decision", DecisionReading, decision)


def _read(name: str, kind: type[Reading], entry: Any) -> Reading:
    if not isinstance(entry, Mapping):
        raise ParameterError([((name,), f"is {entry!r}; write {_EXAMPLES[name]}")])
    known = [part.name for part in fields(kind)]
    faults: list[tuple[Place, str]] = [
        ((name,), f"there is no {key!r}{nearest(str(key), known)}; there are {', '.join(known)}")
        for key in entry
        if key not in known
    ]
    faults += [((name,), f"has no {key}; write {_EXAMPLES[name]}") for key in known[:-1] if key not in entry]
    if faults:
        raise ParameterError(faults)
    try:
        return kind(**entry)
    except ParameterError as error:
        raise ParameterError([((name, *place), message) for place, message in error.faults]) from None


def _label_faults(labels: Any) -> Iterator[tuple[Place, str]]:
    if not _is_pair(labels) or not all(isinstance(label, Label) for label in labels) or labels[0] == labels[1]:
        yield ("labels",), f"is {labels!r}; write the negative and the positive label: [0, 1]"


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


_NUMBER: Final = re.compile(
    r"\s*([+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?|nan)\s*", re.IGNORECASE | re.ASCII
)
_EXAMPLES: Final = {
    "score": "{column: decile_score, range: [1, 10], threshold: 5}",
    "decision": "{column: score_text, negative: [Low], positive: [Medium, High]}",
}
