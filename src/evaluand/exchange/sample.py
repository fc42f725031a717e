"""One graded answer of another tool: what every importer makes of its format."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from heapq import heappop, heappush
from itertools import chain
from typing import Any, NamedTuple

from evaluand.core.errors import described
from evaluand.core.files.json_items import parse_json


class Grade(NamedTuple):
    """What a tool's scorer said of one answer.

    Attributes:
        value: the number; None if there is none.
        label: a word, such as the answer that was extracted.
        explanation: why, for people.
        data: anything JSON-like.
        reason: why there is no score.
        is_share: the value can only lie between 0 and 1.
    """

    value: float | None = None
    label: str | None = None
    explanation: str | None = None
    data: Any = None
    reason: str | None = None
    is_share: bool = False

    @classmethod
    def of(cls, value: Any, *, explanation: Any = None, label: str | None = None) -> Grade:
        """The grade for a plain value: a number, true or false, a text, or None.

        Example:
            >>> Grade.of(True).value, Grade.of("toxic").label, Grade.of(None).reason
            (1.0, 'toxic', 'the file has no score here')
        """
        text = None if explanation is None else str(explanation)
        if isinstance(value, bool):
            return cls(float(value), label, text, is_share=True)
        if isinstance(value, int | float):
            if math.isfinite(value):
                return cls(float(value), label, text)
            return cls(None, label, text, reason=f"the score in the file is {value}")
        if isinstance(value, str):
            return cls(None, value, text)
        if value is None:
            return cls(None, label, text, reason=NO_GRADE)
        return cls(None, label, text, value)

    def as_share(self) -> Grade:
        """The grade of a scorer whose values lie between 0 and 1 by definition, if this one does.

        Example:
            >>> Grade(0.5).as_share().is_share, Grade(70.0).as_share().is_share
            (True, False)
        """
        return self._replace(is_share=self.value is not None and 0 <= self.value <= 1)


NO_GRADE = "the file has no score here"


@dataclass(slots=True)
class Sample:
    """One answer of one system to one example.

    Attributes:
        id: of the example in the tool; None if it has none.
        input: what the system saw.
        output: its answer; None for no answer.
        problem: the name of the set of examples.
        system: who answered.
        expected: the right answer, if the tool has one.
        attributes: what else the file says of the example, by name. Examples can be grouped by numbers, flags and short
            texts; the rest becomes metadata.
        replication: the number of the repeat, from 0; None if the file does not count: a further row of the same
            example is a further repeat then.
        part: which of several rows on one answer this is, such as those of lm-eval's filters; their grades are united.
        error: class and message of the error of a failed call.
        grades: scorer → its grade.
        usage: as in the table of responses.
        started: microseconds since 1970; `duration` in microseconds.
        spans: rows as of `Trace.rows`, without those of the root.
    """

    id: str | int | None
    input: Any
    output: Any = None
    problem: str = ""
    system: str = ""
    expected: Any = None
    attributes: Mapping[str, Any] = field(default_factory=dict)
    replication: int | None = None
    part: str = ""
    error: tuple[str, str] | None = None
    grades: Mapping[str, Grade] = field(default_factory=dict)
    usage: Mapping[str, Any] | None = None
    started: int | None = None
    duration: int | None = None
    spans: Sequence[list[Any]] = ()


class Total(NamedTuple):
    """A number that the file states about all samples of a system.

    Attributes:
        statistic: `mean` (over examples, of the mean over their repeats) `sum`, `passed` (values above 0) or `count`.
    """

    problem: str
    system: str
    scorer: str
    statistic: str
    value: float


def by_name(grades: Iterable[tuple[str, Grade]]) -> dict[str, Grade]:
    """The grades of one answer by their names; further ones of a name are numbered, so that none is lost.

    Example:
        >>> list(by_name([("ok", Grade(1.0)), ("ok", Grade(0.0)), ("tone", Grade(0.5))]))
        ['ok', 'ok (2)', 'tone']
    """
    found: dict[str, Grade] = {}
    for name, grade in grades:
        found[free_name(name, found)] = grade
    return found


def free_name(name: str, taken: Container[str]) -> str:
    """A name, with a number behind it if it is taken."""
    free, n = name, 1
    while free in taken:
        n += 1
        free = f"{name} ({n})"
    return free


def require(record: Any, *keys: str) -> Any:
    """The value of the first of these keys that an object has.

    Raises:
        ValueError: it is not an object, or has none of the keys.
    """
    if not isinstance(record, Mapping):
        raise ValueError(f"this is {described(record)}, not an object")
    for key in keys:
        if key in record:
            return record[key]
    raise ValueError(f"there is no {' or '.join(map(repr, keys))}")


def parse_object(record: bytes | dict[str, Any] | str) -> dict[str, Any]:
    """The object that a text of JSON holds, or a row that is one already.

    Raises:
        ValueError: it is not JSON, or no object; or a row that could not be read, for the reason that it has instead.
    """
    if isinstance(record, str):
        raise ValueError(record)
    found = parse_json(record, "") if isinstance(record, bytes) else record
    if not isinstance(found, dict):
        raise ValueError(f"this is {described(found)}, not an object")
    return found


def mapping(value: Any) -> Mapping[str, Any]:
    """A value that is an object, or an empty one for null.

    Raises:
        ValueError: it is something else.
    """
    if type(value) is dict:
        return value
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise ValueError(f"an object is expected, not {described(value)}")
    return value


def sequence(value: Any) -> Sequence[Any]:
    """A value that is a list, or an empty one for null.

    Raises:
        ValueError: it is something else.
    """
    if value is None:
        return ()
    if not isinstance(value, list):
        raise ValueError(f"a list is expected, not {described(value)}")
    return value


def whole_number(record: Any, key: str, default: int = 0) -> int:
    """A member of an object that is a whole number.

    Raises:
        ValueError: it is something else, or below 0.
    """
    value = mapping(record).get(key, default)
    if type(value) is not int or value < 0:
        raise ValueError(f"{key} is {described(value)}, not a whole number from 0")
    return value


def cell_value(text: str) -> Any:
    """What a cell of a CSV file that Python has written means: a number, true or false, a list, or else the text.

    Example:
        >>> cell_value("0.5"), cell_value("True"), cell_value("['a', 'b']"), cell_value("8 o'clock")
        (0.5, True, ['a', 'b'], "8 o'clock")
    """
    if "_" not in text:  # 1_0 is a number in source code only
        with suppress(ValueError):
            return float(text)
    try:
        found = ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return text
    return found if isinstance(found, bool | list | dict) else text


def named_values(values: Any) -> dict[str, Any]:
    """The members of an object; none of anything else."""
    return {str(name): value for name, value in values.items()} if isinstance(values, Mapping) else {}


def parents_first(
    spans: Sequence[Mapping[str, Any]], parent: str, start: Callable[[Mapping[str, Any]], int]
) -> Iterator[tuple[int, int, Mapping[str, Any]]]:
    """The number of each span, from 1, that of its parent, or 0, and the span: by start, but none before its parent.

    Args:
        spans: of one trace, each with an `id`.
        parent: the key of the id of the parent, which may be none of them.
        start: of a span.

    Example:
        >>> spans = [{"id": "b", "in": "a"}, {"id": "a", "in": None}]
        >>> [(number, above, span["id"]) for number, above, span in parents_first(spans, "in", lambda span: 0)]
        [(1, 0, 'a'), (2, 1, 'b')]
    """
    ranked = sorted(spans, key=start)
    ranks = {str(span.get("id")): rank for rank, span in enumerate(ranked)}
    above = [ranks.get(str(span.get(parent))) for span in ranked]
    below: dict[int | None, list[int]] = {}
    for rank, its in enumerate(above):
        below.setdefault(its, []).append(rank)
    numbers: dict[int | None, int] = {None: 0}
    circles = ([rank] for rank in range(len(ranked)))  # of spans that are each other's parents, the first one
    for ready in chain([below.get(None, [])], circles):
        while ready:
            rank = heappop(ready)
            if rank not in numbers:
                numbers[rank] = len(numbers)
                yield numbers[rank], numbers.get(above[rank], 0), ranked[rank]
                for child in below.get(rank, ()):
                    heappush(ready, child)


def microseconds(time: Any) -> int | None:
    """Microseconds since 1970 of an ISO 8601 time, or of a number of seconds or milliseconds; None if it is none.

    Example:
        >>> microseconds("1970-01-01T00:00:01Z"), microseconds(1_600_000_000), microseconds("soon")
        (1000000, 1600000000000000, None)
    """
    try:
        if isinstance(time, str):
            moment = datetime.fromisoformat(time)
            return round(moment.timestamp() * 1e6) if moment.tzinfo else None
        if isinstance(time, int | float) and not isinstance(time, bool) and 0 < time < 1e14:
            return round(time * (1e3 if time > _SECONDS else 1e6))
    except (ValueError, OverflowError, OSError):
        pass
    return None


_SECONDS = 1e11  # larger numbers are milliseconds
