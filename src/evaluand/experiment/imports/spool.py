"""Samples on disk, so that logs of any size are sorted in little memory.

Texts go to a temporary file without a name; memory holds their places, and for each system the places of its answers
by example and repeat.
"""

from __future__ import annotations

import hashlib
import math
import tempfile
from array import array
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any, Final
from weakref import finalize

import orjson
import pyarrow as pa

from evaluand.core import identity
from evaluand.core.key_columns import INDEX
from evaluand.data.source import DataSource
from evaluand.experiment.imports.sample import Grade, Sample
from evaluand.store.tables import BATCH_ROWS, json_field

_TYPES: Final = {str: pa.string(), bool: pa.bool_(), int: pa.int64(), float: pa.float64()}
MOST_REPEATS: Final = 10_000
_OWN: Final = ("id", "input", "expected")
_LONG: Final = 200  # characters of a text by which nobody groups


class Texts:
    """Texts in a temporary file, each found by its number."""

    def __init__(self) -> None:
        self._file = tempfile.TemporaryFile()  # noqa: SIM115 - closed with this object
        finalize(self, self._file.close)
        self._ends = array("q", [0])
        self._is_written = True

    def __len__(self) -> int:
        return len(self._ends) - 1

    def add(self, text: bytes) -> int:
        """The number under which a text is stored."""
        self._file.write(text)
        self._ends.append(self._ends[-1] + len(text))
        self._is_written = False
        return len(self._ends) - 2

    def read(self, number: int) -> bytes:
        """The text with a number."""
        if not self._is_written:
            self._file.flush()
            self._is_written = True
        self._file.seek(self._ends[number])
        return self._file.read(self._ends[number + 1] - self._ends[number])


class Problem:
    """The examples of one problem, in the order in which they appear.

    Attributes:
        n_unlike: how many samples have other attributes than an earlier one of their example, which count.
    """

    def __init__(self, name: str, texts: Texts) -> None:
        self.name = name
        self._texts = texts
        self._places = array("q")  # of the rows among the texts
        self._numbers: dict[bytes, int] = {}
        self._ids: dict[str, int] = {}
        self._types: dict[str, set[type]] = defaultdict(set)
        self._metadata: set[str] = set()  # names of values by which examples cannot be grouped
        self._attributes = array("q")  # hashes
        self.n_unlike = 0

    def __len__(self) -> int:
        return len(self._places)

    def number(self, sample: Sample) -> int:
        """The number of the example of a sample; other content under a known id is another example."""
        content = orjson.dumps([sample.id, sample.input, sample.expected])
        key = hashlib.blake2b(content, digest_size=16).digest()
        found = self._numbers.get(key)
        own = hash(orjson.dumps(sample.attributes, option=orjson.OPT_SORT_KEYS))
        if found is not None:
            self.n_unlike += own != self._attributes[found]
            return found
        number = len(self._places)
        id = str(number if sample.id is None else sample.id)
        attributes = {_column_name(name): value for name, value in sample.attributes.items() if value is not None}
        row = {"id": self._free_id(id), "input": sample.input, "expected": sample.expected, **attributes}
        text = orjson.dumps(row)  # which fails for what is not JSON-like, before anything has changed
        self._ids[id] = self._ids.get(id, 0) + 1
        self._ids.setdefault(row["id"], 1)
        for name, value in row.items():
            self._types[name].add(type(value))
        self._places.append(self._texts.add(text))
        self._metadata.update(name for name, value in attributes.items() if not _is_short(value))
        self._attributes.append(own)
        self._numbers[key] = number
        return number

    def _free_id(self, id: str) -> str:
        """An id that no example has yet: the id, or the id with a number behind it."""
        free, n = id, self._ids.get(id, 0)
        while free in self._ids:
            free, n = f"{id} ({n + 1})", n + 1
        return free

    def source(self) -> DataSource:
        """The rows of the dataset; a column whose values have several types holds JSON."""
        has_truth = self._types["expected"] != {type(None)}
        names = [name for name in self._types if name != "expected" or has_truth]
        schema = pa.schema([self._field(name) for name in names])
        others = [name for name in names if name not in _OWN]
        roles: dict[str, Any] = {name: name for name in _OWN if name in names}
        roles["attributes"] = [name for name in others if name not in self._metadata]
        roles["metadata"] = [name for name in others if name in self._metadata]
        return DataSource(
            self.name,
            schema,
            lambda: self._batches(schema),
            lambda row: f"{self.name}, example {row}",
            len(self),
            roles=tuple(roles.items()),
        )

    def _field(self, name: str) -> pa.Field:
        types = self._types[name] - {type(None)}
        if types == {int, float}:
            types = {float}
        if len(types) == 1 and (kind := _TYPES.get(next(iter(types)))) is not None:
            return pa.field(name, kind)
        return json_field(name)

    def _batches(self, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        for start in range(0, len(self), BATCH_ROWS):
            stop = min(start + BATCH_ROWS, len(self))
            rows = [orjson.loads(self._texts.read(place)) for place in self._places[start:stop]]
            yield pa.RecordBatch.from_arrays([_column(rows, field) for field in schema], schema=schema)


def _column_name(name: str) -> str:
    """The name of a column for an attribute: its own, unless it is that of another column."""
    return f"{name} (2)" if name in (*_OWN, INDEX) else name


def _is_short(value: Any) -> bool:
    """Whether examples can be grouped by a value."""
    return isinstance(value, bool | int | float) or (isinstance(value, str) and len(value) <= _LONG)


def _column(rows: list[dict[str, Any]], field: pa.Field) -> pa.Array:
    values = [row.get(field.name) for row in rows]
    if field.metadata:
        values = [None if value is None else identity.canonical_text(value) for value in values]
    return pa.array(values, field.type)


class Answers:
    """The answers and grades of one system to one problem.

    Attributes:
        scorers: the names of the scorers, in the order in which they appear, each with a digest of what it said and
            whether all of its values are shares.
        replications: how many repeats there are.
    """

    def __init__(self, problem: Problem, system: str, texts: Texts) -> None:
        self.problem, self.system = problem, system
        self.replications = 0
        self.scorers: dict[str, ScorerFacts] = {}
        self._texts = texts
        self._slots: dict[tuple[int, int], list[tuple[str, int]]] = {}  # → parts and the places of their answers
        self._digest = hashlib.blake2b(digest_size=identity.DIGEST_SIZE)

    def __len__(self) -> int:
        return len(self._slots)

    @property
    def examples(self) -> set[int]:
        """The numbers of the examples that were answered."""
        return {number for number, _ in self._slots}

    @property
    def digest(self) -> str:
        """A digest of the answers."""
        return self._digest.hexdigest()

    def add(self, sample: Sample) -> str | None:
        """Adds a sample; returns why it cannot be added, or None.

        Raises:
            TypeError: a value is not JSON-like.
        """
        answer = orjson.dumps(
            [sample.output, sample.error, sample.usage, sample.started, sample.duration, [*sample.spans]]
        )
        grades = orjson.dumps({name: tuple(grade) for name, grade in sample.grades.items()})
        number = self.problem.number(sample)
        replication = sample.replication
        if replication is None:
            replication = 0
            while self._has(number, replication, sample.part):
                replication += 1
        elif not 0 <= replication < MOST_REPEATS:
            return f"its repeat, {replication + 1:,}, must be between 1 and {MOST_REPEATS:,}"
        elif self._has(number, replication, sample.part):
            return f"example {sample.id!r}, repeat {replication + 1}, is in the file already"
        self._slots.setdefault((number, replication), []).append((sample.part, self._texts.add(answer)))
        self._texts.add(grades)  # right behind its answer
        self._digest.update(orjson.dumps([number, replication, sample.part]) + answer)
        self.replications = max(self.replications, replication + 1)
        for name, grade in sample.grades.items():
            self.scorers.setdefault(name, ScorerFacts()).add(number, replication, grade)
        return None

    def _has(self, number: int, replication: int, part: str) -> bool:
        return any(known == part for known, _ in self._slots.get((number, replication), ()))

    def answer(self, number: int, replication: int) -> list[Any] | None:
        """Output, error, usage, start, duration and spans of a call; None if the file has none."""
        parts = self._slots.get((number, replication))
        return None if parts is None else orjson.loads(self._texts.read(parts[0][1]))

    def grades(self, number: int, replication: int) -> dict[str, Grade]:
        """The grades of a call by scorer."""
        found: dict[str, Grade] = {}
        for _, place in self._slots.get((number, replication), ()):
            found |= {name: Grade(*values) for name, values in orjson.loads(self._texts.read(place + 1)).items()}
        return found


class ScorerFacts:
    """What is known of a scorer after all of its grades.

    Attributes:
        is_share: all values lie between 0 and 1 by their nature.
        n: how many values there are.
        total: their sum.
        passed: how many are above 0.
    """

    def __init__(self) -> None:
        self.is_share = True
        self.n = self.passed = 0
        self.total = 0.0
        self._digest = hashlib.blake2b(digest_size=identity.DIGEST_SIZE)
        self._totals, self._counts = array("d"), array("q")  # of the values of each example

    @property
    def digest(self) -> str:
        return self._digest.hexdigest()

    def add(self, number: int, replication: int, grade: Grade) -> None:
        """Counts a grade."""
        self._digest.update(orjson.dumps([number, replication, tuple(grade)]))
        if grade.value is None:
            return
        self.is_share = self.is_share and grade.is_share
        self.n += 1
        self.total += grade.value
        self.passed += grade.value > 0
        if number >= len(self._totals):
            missing = number + 1 - len(self._totals)
            self._totals.extend([0.0] * missing)
            self._counts.extend([0] * missing)
        self._totals[number] += grade.value
        self._counts[number] += 1

    @property
    def mean(self) -> float:
        """The mean over rows; not a number if there are none."""
        return self.total / self.n if self.n else math.nan

    def statistics(self) -> Mapping[str, float]:
        """The statistics that files state; see `Total`."""
        means = [total / n for total, n in zip(self._totals, self._counts, strict=True) if n]
        known = {"sum": self.total, "passed": float(self.passed), "count": float(self.n)}
        return known | ({"mean": sum(means) / len(means)} if means else {})
