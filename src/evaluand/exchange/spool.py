"""Samples on disk, so that logs of any size are sorted in little memory.

Texts go to a temporary file without a name; memory holds their places, and for each system the places of its answers
by example and repeat.
"""

from __future__ import annotations

import hashlib
import math
import tempfile
from array import array
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, Final
from weakref import finalize

import orjson
import pyarrow as pa

from evaluand.core import identity
from evaluand.core.key_columns import INDEX
from evaluand.data.source import DataSource
from evaluand.exchange.sample import Grade, Sample
from evaluand.store.tables import BATCH_ROWS, json_field

_TYPES: Final[Mapping[Any, pa.DataType]] = {str: pa.string(), bool: pa.bool_(), int: pa.int64(), float: pa.float64()}
_EXACT: Final = 2**53
_LARGEST: Final = 2**63 - 1
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
        self._ids: list[str | None] = []
        self._contents: list[bytes] = []  # digests
        self._numbers: dict[bytes, int] = {}
        self._copies: dict[tuple[int, int], int] = {}
        self._shapes: dict[_Shape, int] = {}
        self._shape_of = array("q")
        self._attributes = array("q")  # hashes
        self.n_unlike = 0

    def number(self, sample: Sample) -> int:
        """The number of the example of a sample; other content under a known id is another example."""
        content = orjson.dumps([sample.id, sample.input, sample.expected])
        key = hashlib.blake2b(content, digest_size=16).digest()
        found = self._numbers.get(key)
        own = hash(orjson.dumps(sample.attributes, option=orjson.OPT_SORT_KEYS))
        if found is not None:
            self.n_unlike += own != self._attributes[found]
            return found
        attributes = {_column_name(name): value for name, value in sample.attributes.items() if value is not None}
        row = {"input": sample.input, "expected": sample.expected, **attributes}
        text = orjson.dumps(row)  # which fails for what is not JSON-like, before anything has changed
        shape = tuple((name, _kind(value), _is_short(value)) for name, value in row.items())
        number = self._numbers[key] = self._append(None if sample.id is None else str(sample.id), key)
        self._places.append(self._texts.add(text))
        self._shape_of.append(self._shapes.setdefault(shape, len(self._shapes)))
        self._attributes.append(own)
        return number

    def copy(self, number: int, n: int) -> int:
        """The number of the n-th further example with the content of one."""
        if (number, n) not in self._copies:
            self._copies[number, n] = self._append(self._ids[number], self._contents[number])
            for column in (self._places, self._shape_of, self._attributes):
                column.append(column[number])
        return self._copies[number, n]

    def content(self, number: int) -> bytes:
        """A digest of an example, the same whatever else is read."""
        return self._contents[number]

    def _append(self, id: str | None, content: bytes) -> int:
        self._ids.append(id)
        self._contents.append(content)
        return len(self._ids) - 1

    def source(self, numbers: Sequence[int]) -> DataSource:
        """The rows of a dataset of some examples; a column whose values have several types holds JSON."""
        shapes = [*self._shapes]
        kinds: dict[str, set[_Kind]] = {"id": {str}}
        others: set[str] = set()  # names of values by which examples cannot be grouped
        for shape in dict.fromkeys(self._shape_of[number] for number in numbers):
            for name, kind, is_short in shapes[shape]:
                kinds.setdefault(name, set()).add(kind)
                others.update(() if is_short or name in _OWN else (name,))
        names = [name for name in kinds if name != "expected" or kinds[name] != {type(None)}]
        schema = pa.schema([_field(name, kinds[name] - {type(None)}) for name in names])
        roles: dict[str, Any] = {name: name for name in _OWN if name in names}
        roles["attributes"] = [name for name in names if name not in (*_OWN, *others)]
        roles["metadata"] = [name for name in names if name in others]
        ids = self._free_ids(numbers)
        return DataSource(
            self.name,
            schema,
            lambda: self._batches(numbers, ids, schema),
            lambda row: f"{self.name}, example {row}",
            len(numbers),
            roles=tuple(roles.items()),
        )

    def _free_ids(self, numbers: Sequence[int]) -> list[str]:
        """The ids of examples; of those with the same, the later ones have a number behind it."""
        given = [self._ids[number] for number in numbers]
        known = [str(place) if id is None else id for place, id in enumerate(given)]
        taken, count, ids = set(known), Counter[str](), []
        for id in known:
            free, n = id, count[id] + 1
            while n > 1 and free in taken:
                free, n = f"{id} ({n})", n + 1
            count[id] = max(n - 1, 1)
            taken.add(free)
            ids.append(free)
        return ids

    def _batches(self, numbers: Sequence[int], ids: Sequence[str], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        for start in range(0, len(numbers), BATCH_ROWS):
            stop = min(start + BATCH_ROWS, len(numbers))
            rows = [orjson.loads(self._texts.read(self._places[number])) for number in numbers[start:stop]]
            for row, id in zip(rows, ids[start:stop], strict=True):
                row["id"] = id
            yield pa.RecordBatch.from_arrays([_column(rows, field) for field in schema], schema=schema)


_Kind = type | None
"""The type of a value; None for an integer that is not exact among floats."""

_Shape = tuple[tuple[str, _Kind, bool], ...]
"""The columns of a row, each with the kind of its value, and whether examples can be grouped by it."""


def _kind(value: Any) -> _Kind:
    return None if type(value) is int and abs(value) > _EXACT else type(value)


def _field(name: str, kinds: set[_Kind]) -> pa.Field:
    if kinds == {int, float}:
        kinds = {float}
    if len(kinds) == 1 and (type_ := _TYPES.get(next(iter(kinds)))) is not None:
        return pa.field(name, type_)
    return json_field(name)


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
        self._next: dict[tuple[int, str], int] = {}  # the repeat of the next row of an example that states none
        self._digest = hashlib.blake2b(digest_size=identity.DIGEST_SIZE)

    def __len__(self) -> int:
        return len(self._slots)

    @property
    def examples(self) -> list[int]:
        """The numbers of the examples that were answered, in order."""
        return [*dict.fromkeys(number for number, _ in self._slots)]

    @property
    def digest(self) -> str:
        """A digest of the answers."""
        return self._digest.hexdigest()

    def add(self, sample: Sample) -> str | None:
        """Adds a sample; returns why it cannot be added, or None.

        Raises:
            TypeError: a value is not JSON-like.
        """
        numbers = [sample.started, sample.duration, *(sample.usage or {}).values(), *chain.from_iterable(sample.spans)]
        if large := next((n for n in numbers if type(n) is int and abs(n) > _LARGEST), None):
            return f"{large:,} is too large to be stored"
        answer = orjson.dumps(
            [sample.output, sample.error, sample.usage, sample.started, sample.duration, [*sample.spans]]
        )
        grades = orjson.dumps({name: tuple(grade) for name, grade in sample.grades.items()})
        number = self.problem.number(sample)
        replication = sample.replication
        if replication is None:
            replication = self._next.get((number, sample.part), 0)
            while self._has(number, replication, sample.part):
                replication += 1
            self._next[number, sample.part] = replication + 1
        elif not 0 <= replication < MOST_REPEATS:
            return f"its repeat, {replication + 1:,}, must be between 1 and {MOST_REPEATS:,}"
        elif self._has(number, replication, sample.part):
            return f"example {sample.id!r}, repeat {replication + 1}, is in the file already"
        self._slots.setdefault((number, replication), []).append((sample.part, self._texts.add(answer)))
        self._texts.add(grades)  # right behind its answer
        self._digest.update(self.problem.content(number) + orjson.dumps([replication, sample.part]) + answer)
        self.replications = max(self.replications, replication + 1)
        self._count(number, replication, sample.grades)
        return None

    def _count(self, number: int, replication: int, grades: Mapping[str, Grade]) -> None:
        content = self.problem.content(number)
        for name, grade in grades.items():
            self.scorers.setdefault(name, ScorerFacts()).add(number, content, replication, grade)

    def _has(self, number: int, replication: int, part: str) -> bool:
        return any(known == part for known, _ in self._slots.get((number, replication), ()))

    def separate(self) -> int:
        """Makes further examples of further rows, where the file states no repeats and examples have unequal numbers.

        A test that stands twice in a file is no repeat that all others lack. Returns how many rows these are.
        """
        counts = Counter(number for number, _ in self._slots)
        if not self._next or len({*counts.values()}) == 1:
            return 0
        self._slots = {
            (number if replication == 0 else self.problem.copy(number, replication), 0): parts
            for (number, replication), parts in self._slots.items()
        }
        self.replications, self.scorers = 1, {}
        for number, replication in self._slots:
            self._count(number, replication, self.grades(number, replication))
        return len(self._slots) - len(counts)

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

    def add(self, number: int, content: bytes, replication: int, grade: Grade) -> None:
        """Counts a grade for an example, with its number and the digest of its content."""
        self._digest.update(content + orjson.dumps([replication, tuple(grade)]))
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
