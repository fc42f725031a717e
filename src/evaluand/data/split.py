"""Splits: which examples a system is tested on, and which it may learn from.

A split is a function of the examples, not of their order: within each stratum the examples are sorted by a hash of the
seed, the repeat and their digest, and then assigned to folds in turn. So an example is tested in the same fold however
the rows of a file are ordered or formatted, on any machine and with any version of NumPy. Groups stay together; in the
order of a hash of their value, each is assigned to the fold where it evens out the sizes of the strata best.
"""

from __future__ import annotations

import hashlib
import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Final

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from evaluand.core import identity
from evaluand.core.errors import DataError, SpecError, nearest
from evaluand.data.dataset import Dataset
from evaluand.data.sources import DataSource, Faults, digest_of_files, missing_column, open_file
from evaluand.store import tables as rows

NOT_TESTED: Final = -1
_MAX_VALUES = 5

Integers = np.ndarray[Any, np.dtype[np.integer[Any]]]
Booleans = np.ndarray[Any, np.dtype[np.bool_]]
AddFault = Callable[[int, str, str], None]  # takes a row, a code and a message


@dataclass(frozen=True, kw_only=True)
class Split:
    """The division of a dataset into training and test examples: a hold-out or a cross-validation.

    Give one of `test`, `folds` and `file`. The sizes of folds differ by at most one, in the dataset and, if
    stratified, in each stratum. A hold-out is one fold: its share of each stratum differs by less than one example from
    its share of the dataset.

    Where examples belong together (images of one patient, say), a system that learns from some recognises the others,
    and a split that separates them overestimates it: name the column as `groups`. Then

    - rows of one group are always tested together and learnt from together; a row without a group is a group;
    - the sizes of folds differ by at most the largest group, and so does a hold-out from the requested size;
    - with `stratified`, this holds for each stratum if each group lies in one stratum. If groups mix strata, they are
      balanced greedily, without a bound.

    Attributes:
        test: the size of the hold-out: a share between 0 and 1, rounded to the nearest number of examples, or a number
            of examples.
        folds: the number of folds; each is tested once in each repeat.
        repeats: the number of repeats, each with a different division.
        stratified: whether each fold has the same distribution of expected values; or the name of a column to use
            instead.
        groups: the column whose equal values mark examples that stay together; or true for the dataset's cluster.
        seed: changes the division.
        file: a file with the division, as OpenML publishes it: a row for each example in each fold, with the columns
            `rowid` (its `_index_`), `repeat`, `fold` and `type` (TRAIN or TEST). No other parameter is needed.

    Raises:
        SpecError: the parameters are wrong for any dataset.

    Example:
        >>> data = Dataset.from_rows([{"input": i, "expected": "ab"[i % 2]} for i in range(8)])
        >>> folds = Split(folds=4, stratified=True).assign(data)
        >>> [sorted(data.indices[i] % 2 for i in folds.test(0, fold)) for fold in range(folds.count)]
        [[0, 1], [0, 1], [0, 1], [0, 1]]
        >>> len(Split(test=0.25).assign(data).train(repeat=0, fold=0))
        6
    """

    test: float | int | None = None
    folds: int | None = None
    repeats: int = 1
    stratified: bool | str = False
    groups: bool | str = False
    seed: int = 0
    file: str | None = field(default=None, repr=False)

    __pydantic_config__ = {"extra": "forbid"}  # noqa: RUF012 - a misspelt key of an experiment file is refused

    def __post_init__(self) -> None:
        if self.file is not None:
            parameters = [each for each in fields(self) if each.name != "file"]
            others = [each.name for each in parameters if getattr(self, each.name) != each.default]
            if others:
                raise SpecError(f"file has the division; leave out {', '.join(others)}")
            repeats = self._read_file().numbers("repeat")
            return object.__setattr__(self, "repeats", int(repeats.max(initial=0)) + 1)
        if (self.test is None) == (self.folds is None):
            raise SpecError("a split needs either test (a hold-out) or folds (a cross-validation), or a file")
        if self.folds is not None and not (_is_integer(self.folds) and self.folds >= 2):
            raise SpecError(f"folds is {self.folds!r}; give an integer of at least 2")
        is_share = isinstance(self.test, float) and 0 < self.test < 1
        if self.test is not None and not is_share and not (_is_integer(self.test) and self.test >= 1):
            raise SpecError(f"test is {self.test!r}; give a share between 0 and 1, or a number of examples")
        if not (_is_integer(self.repeats) and self.repeats >= 1):
            raise SpecError(f"repeats is {self.repeats!r}; give an integer of at least 1")
        if not _is_integer(self.seed):
            raise SpecError(f"seed is {self.seed!r}; give an integer")
        for name in ("stratified", "groups"):
            if not isinstance(getattr(self, name), bool | str):
                raise SpecError(f"{name} is {getattr(self, name)!r}; give true, false or the name of a column")

    @property
    def spec(self) -> dict[str, Any]:
        """What determines the division, for identity: the parameters, or the content of the file."""
        if self.file is not None:
            return {"file": digest_of_files(self.file)}
        return {each.name: getattr(self, each.name) for each in fields(self) if each.name != "file"}

    def _read_file(self) -> _SplitFile:
        source = open_file(self.file or "")
        lacking = [name for name in ("rowid", "repeat", "fold", "type") if name not in source.schema.names]
        if lacking:
            message = missing_column(lacking[0], source.schema.names)
            raise SpecError(f"{source.name}: {message}; a split has rowid, repeat, fold and type")
        return _SplitFile(source, pa.Table.from_batches(source.batches(), source.schema))

    def assign(self, dataset: Dataset) -> Folds:
        """The fold of every example in every repeat.

        Raises:
            SpecError: the dataset is too small, or a stratum has too few examples.
        """
        n = len(dataset)
        if self.file is not None:
            return self._read_file().folds(dataset)
        held_out = self._hold_out_size(n)
        digests = [example.digest for example in dataset]
        groups = self._read_groups(dataset, digests)
        strata = self._read_strata(dataset, groups)
        numbers = np.empty((self.repeats, n), np.int32)
        for repeat in range(self.repeats):
            if groups is not None:
                numbers[repeat] = self._assign_groups(groups, strata, held_out, repeat)
                continue
            order = _sort_positions(self.seed, repeat, digests, strata)
            if self.folds is not None:
                numbers[repeat, order] = np.arange(n) % self.folds
            else:  # of each stratum the first
                sizes = np.bincount(strata)
                places = np.arange(n) - np.repeat(np.cumsum(sizes) - sizes, sizes)
                counts = _divide_proportionally(sizes, held_out)
                numbers[repeat, order] = np.where(places < np.repeat(counts, sizes), 0, NOT_TESTED)
        return Folds(numbers, self.folds or 1)

    def _assign_groups(self, groups: _Groups, strata: Integers, held_out: int, repeat: int) -> Integers:
        """The fold of each example in one repeat, with groups that stay together."""
        order = _sort_positions(self.seed, repeat, groups.keys, np.zeros(len(groups.keys), np.int64))
        folds = groups.assign(strata, self.folds, held_out, order)
        if self.folds is None and not (folds != NOT_TESTED).any():
            raise SpecError(
                f"test: {self.test} cannot be held out without splitting a group of {groups.column!r}: each is at least"
                " twice as large; hold out more"
            )
        return folds[groups.codes]

    def _hold_out_size(self, n: int) -> int:
        """The number of examples in a hold-out; 0 for folds."""
        if self.folds is not None:
            if self.folds > n:
                raise SpecError(f"{n} examples are too few for {self.folds} folds; give at most {n}")
            return 0
        test = self.test or 0
        held_out = test if isinstance(test, int) else math.floor(test * n + 0.5)
        if not 0 < held_out < n:
            missing = "to learn from" if held_out else "to test on"
            raise SpecError(f"test: {test} of {n} examples leaves none {missing}; change test")
        return held_out

    def _read_groups(self, dataset: Dataset, digests: Sequence[bytes]) -> _Groups | None:
        """The groups that stay together; None if there are none."""
        if self.groups is False:
            return None
        column = self.groups if isinstance(self.groups, str) else dataset.roles.cluster
        if column is None:
            raise SpecError("groups: the dataset has no cluster; give the name of the column with the groups")
        _check_column("groups", column, dataset)
        groups = _Groups.of(column, list(_column_texts(dataset, column)), digests)
        least = self.folds or 2
        if len(groups.keys) < least:
            parts = f"{least} folds" if self.folds else "test and training"
            raise SpecError(f"groups: {column!r} has {len(groups.keys)} groups, too few for {parts}")
        return groups

    def _read_strata(self, dataset: Dataset, groups: _Groups | None) -> Integers:
        """The number of each example's stratum; strata are numbered in the order of their canonical texts."""
        if self.stratified is False:
            return np.zeros(len(dataset), np.int64)
        column = self._stratum_column(dataset)
        texts = list(_column_texts(dataset, column))
        codes = {text: code for code, text in enumerate(sorted(set(texts)))}
        strata = np.array([codes[text] for text in texts], np.int64)
        if groups is None:
            self._check_strata(column, Counter(texts), "examples")
        else:
            pairs = np.unique(strata * len(groups.keys) + groups.codes) // len(groups.keys)
            sizes = np.bincount(pairs, minlength=len(codes)).tolist()
            self._check_strata(column, Counter(dict(zip(codes, sizes, strict=True))), f"groups of {groups.column!r}")
        return strata

    def _stratum_column(self, dataset: Dataset) -> str:
        if isinstance(self.stratified, str):
            _check_column("stratified", self.stratified, dataset)
            return self.stratified
        expected = dataset.roles.expected
        if isinstance(expected, str):
            return expected
        problem = "has no expected value" if expected is None else f"expects several values: {', '.join(expected)}"
        raise SpecError(f"stratified: the dataset {problem}; give the name of a column to stratify by")

    def _check_strata(self, column: str, sizes: Counter[bytes], units: str) -> None:
        least = self.folds or 2
        small = sorted((size, text) for text, size in sizes.items() if size < least)
        if small:
            values = ", ".join(f"{text.decode()[:60]} ({size})" for size, text in small[:_MAX_VALUES])
            more = f" and {len(small) - _MAX_VALUES} more" if len(small) > _MAX_VALUES else ""
            noun = "value" if len(small) == 1 else "values"
            parts = f"{least} folds" if self.folds else "test and training"
            raise SpecError(
                f"stratified by {column!r}: too few {units} for {parts} have the {noun} {values}{more}; each needs at "
                f"least {least}. Use fewer folds, merge rare values, or do not stratify by it"
            )


@dataclass(frozen=True, eq=False)
class Folds:
    """The result of a split of one dataset.

    Attributes:
        numbers: int32, repeats × examples: the fold that tests an example, or -1 for an example that is only learnt
            from.
        count: the number of folds in each repeat.
    """

    numbers: Integers
    count: int

    @classmethod
    def from_rows(
        cls, n: int, positions: Integers, tested: Booleans, repeats: Integers, folds: Integers, fault: AddFault
    ) -> Folds:
        """The folds that a table describes: in each row, a fold of a repeat tests an example or learns from it.

        A fold that lists only test examples learns from all the others; one that lists both must list every example.

        Args:
            n: the number of examples.
            positions: the position of each row's example.
            tested: whether the row's example is tested, rather than learnt from.
            repeats: the number of the repeat.
            folds: the number of the fold.
            fault: called with each fault: the row, a code and a message. After a fault the result is undefined.

        Example:
            >>> def fault(row, code, message):
            ...     print(f"row {row}: {code}: {message}")
            >>> rows = [np.array(column) for column in ([0, 1, 2, 1], [True, False, False, True], [0] * 4, [0] * 4)]
            >>> Folds.from_rows(3, *rows, fault).numbers
            row 3: contradicted: tested, and learnt from in another row of repeat 0, fold 0
            array([[ 0,  0, -1]], dtype=int32)
        """
        if not len(positions):
            return cls(np.full((1, n), NOT_TESTED, np.int32), 1)
        _check_numbers(repeats, "repeat", fault)
        _check_numbers(folds, "fold", fault)
        repeated, count = int(repeats.max()) + 1, int(folds.max()) + 1
        cells = (repeats.astype(np.int64) * count + folds) * n + positions
        _check_agreement(cells, tested, repeats, folds, fault)
        _check_tested_once(repeats.astype(np.int64) * n + positions, folds, tested, fault)
        _check_complete(n, cells, tested, count, fault)
        numbers = np.full((repeated, n), NOT_TESTED, np.int32)
        numbers[repeats[tested], positions[tested]] = folds[tested]
        return cls(numbers, count)

    def to_rows(self) -> tuple[Integers, Booleans, Integers, Integers]:
        """Every example in every fold of every repeat, as for `from_rows`: positions, tested, repeats, folds."""
        repeated, n = self.numbers.shape
        shape = (repeated, self.count, n)
        folds = np.broadcast_to(np.arange(self.count, dtype=np.int32)[None, :, None], shape)
        repeats = np.broadcast_to(np.arange(repeated, dtype=np.int32)[:, None, None], shape)
        positions = np.broadcast_to(np.arange(n)[None, None, :], shape)
        tested = folds == self.numbers[:, None, :]
        return positions.ravel(), tested.ravel(), repeats.ravel(), folds.ravel()

    def test(self, repeat: int, fold: int) -> Integers:
        """The positions of the examples tested in a fold, ascending."""
        return np.flatnonzero(self.numbers[repeat] == fold)

    def train(self, repeat: int, fold: int) -> Integers:
        """The positions of the examples that a fold's system may learn from: all the others."""
        return np.flatnonzero(self.numbers[repeat] != fold)

    def find_split_clusters(self, clusters: Integers) -> Integers:
        """The clusters, ascending, with rows in several folds, so that some are tested after learning from others.

        Args:
            clusters: the number of each example's cluster, from 0; -1 for none.

        Example:
            >>> folds = Folds(np.array([[0, 1, 1, 0], [0, 0, 1, 1]], np.int32), 2)
            >>> folds.find_split_clusters(np.array([7, -1, 4, 4]))
            array([4])
        """
        width, clustered = self.count + 1, clusters >= 0
        owners = [np.unique(clusters[clustered] * width + fold[clustered] + 1) // width for fold in self.numbers]
        return np.unique(np.concatenate([owner[1:][owner[1:] == owner[:-1]] for owner in owners]))


@dataclass(frozen=True, eq=False)
class _SplitFile:
    """A file that says of each example in each fold whether it is tested."""

    source: DataSource
    table: pa.Table

    def folds(self, dataset: Dataset) -> Folds:
        """The folds of the examples.

        Raises:
            DataError: a row is of no example, or rows contradict each other; lists every fault with its row.
        """
        faults = Faults()

        def fault(row: int, code: str, message: str) -> None:
            faults.add(self.source.where(row), message, code)

        rowid, repeats, folds = (self.numbers(name) for name in ("rowid", "repeat", "fold"))
        if "sample" in self.table.column_names and self.numbers("sample").any():
            raise DataError(f"{self.source.name}: a learning curve, whose samples are parts of folds, is no split")
        types = [str(text).upper() for text in self.table.column("type").to_pylist()]
        for row in (row for row, text in enumerate(types) if text not in ("TRAIN", "TEST")):
            fault(row, "unknown_type", f"type is {types[row]!r}; give TRAIN or TEST")
        indices = np.asarray(dataset.indices, np.int64)
        positions = np.minimum(np.searchsorted(indices, rowid), len(indices) - 1)
        for row in np.flatnonzero(indices[positions] != rowid).tolist():
            fault(row, "unknown_row", f"rowid {rowid[row]} is the _index_ of none of the {len(indices):,} examples")
        faults.check()
        tested = np.array([text == "TEST" for text in types], np.bool_)
        result = Folds.from_rows(len(indices), positions, tested, repeats, folds, fault)
        faults.check()
        return result

    def numbers(self, name: str) -> Integers:
        """A column of integers.

        Raises:
            DataError: a value is none, with its row.
        """
        column = self.table.column(name)
        try:
            numbers = column.cast(pa.int64())
            wrong = pc.index(pc.is_null(numbers), True).as_py()
        except pa.ArrowInvalid:
            values = enumerate(column.to_pylist())
            wrong = next(row for row, value in values if not isinstance(value, int | float) or value % 1 != 0)
        if wrong >= 0:
            raise DataError(f"{self.source.where(wrong)}: {name} is {column[wrong].as_py()!r}; give an integer")
        return np.asarray(numbers, np.int64)


@dataclass(frozen=True, eq=False)
class _Groups:
    """Groups of examples that stay together.

    Attributes:
        codes: the number of each example's group.
        keys: the bytes of each group that determine its place in the order.
    """

    column: str
    codes: Integers
    keys: Sequence[bytes]

    @classmethod
    def of(cls, column: str, texts: Sequence[bytes], digests: Sequence[bytes]) -> _Groups:
        """The groups of examples with equal texts; an example with null is a group of one."""
        numbers: dict[bytes, int] = {}
        keys: list[bytes] = []
        codes = np.empty(len(texts), np.int64)
        for place, (text, digest) in enumerate(zip(texts, digests, strict=True)):
            codes[place] = numbers.get(text, len(keys))
            if codes[place] == len(keys):
                keys.append(b"row" + digest if text == b"null" else b"group" + text)
            if text != b"null":
                numbers[text] = codes[place]
        return cls(column, codes, keys)

    def assign(self, strata: Integers, folds: int | None, held_out: int, order: Integers) -> Integers:
        """The fold of each group, assigned one by one in an order.

        Integers only, so that every machine rounds the same. A stratum is weighted by the inverse square of its size:
        strata count equally, however many examples they have.
        """
        sizes = np.bincount(strata)
        weights = np.maximum(2**61 // (sizes.astype(object) ** 2 * len(sizes)), 1).astype(np.int64)
        pairs, counts = np.unique(self.codes * len(sizes) + strata, return_counts=True)
        ends = np.searchsorted(pairs, np.arange(len(self.keys) + 1) * len(sizes))
        parts = [(pairs[a:b] % len(sizes), counts[a:b]) for a, b in itertools.pairwise(ends.tolist())]
        if folds is None:
            return _hold_out_groups(parts, order, _divide_proportionally(sizes, held_out), weights)
        load = np.zeros((folds, len(sizes)), np.int64)
        total = np.zeros(folds, np.int64)
        assigned = np.empty(len(parts), np.int32)
        for group in order:
            which, count = parts[group]
            costs = (load[:, which] * (count * weights[which])).sum(axis=1)
            fold = np.lexsort((total, costs))[0]
            load[fold, which] += count
            total[fold] += count.sum()
            assigned[group] = fold
        return assigned


def _hold_out_groups(
    parts: Sequence[tuple[Integers, Integers]], order: Integers, targets: Integers, weights: Integers
) -> Integers:
    """Hold out each group that brings the strata nearer to their target sizes; leave at least one to learn from."""
    missing = targets.astype(np.int64)
    assigned = np.full(len(parts), NOT_TESTED, np.int32)
    for group in order:
        which, count = parts[group]
        gain = 2 * missing[which] - count  # the squared difference to the target shrinks by count times this
        if (gain * count * weights[which]).sum() > 0:
            assigned[group] = 0
            missing[which] -= count
    if (assigned == 0).all():
        assigned[min(order, key=lambda group: int(parts[group][1].sum()))] = NOT_TESTED
    return assigned


def _check_numbers(numbers: Integers, what: str, fault: AddFault) -> None:
    """Report the first number that does not follow the one before; numbers start from 0 without gaps."""
    known, first = np.unique(numbers, return_index=True)
    for number, row, expected in zip(known.tolist(), first.tolist(), range(len(known)), strict=True):
        if number != expected:
            message = f"{what} {number}: {what}s are numbered from 0, and there is no {what} {expected}"
            return fault(row, f"{what}_numbering", message)


def _check_agreement(cells: Integers, tested: Booleans, repeats: Integers, folds: Integers, fault: AddFault) -> None:
    """Report examples that a fold both tests and learns from."""
    for row in np.flatnonzero(tested != _first_of_equals(cells, tested)).tolist():
        use, other = ("tested", "learnt from") if tested[row] else ("learnt from", "tested")
        fault(row, "contradicted", f"{use}, and {other} in another row of repeat {repeats[row]}, fold {folds[row]}")


def _check_tested_once(examples: Integers, folds: Integers, tested: Booleans, fault: AddFault) -> None:
    """Report examples tested in two folds of a repeat."""
    tests = np.flatnonzero(tested)
    earlier = _first_of_equals(examples[tests], folds[tests])
    differs = folds[tests] != earlier
    for row, fold in zip(tests[differs].tolist(), earlier[differs].tolist(), strict=True):
        fault(row, "tested_twice", f"tested in fold {folds[row]} and, in the same repeat, in fold {fold}")


def _first_of_equals(keys: Integers, values: Any) -> Any:
    """Of each row the value of the first row with an equal key."""
    _, first, back = np.unique(keys, return_index=True, return_inverse=True)
    return values[first][back]


def _check_complete(n: int, cells: Integers, tested: Booleans, count: int, fault: AddFault) -> None:
    """Report folds that list examples to learn from, but not every example."""
    folds, first = np.unique(cells[~tested] // n, return_index=True)
    learnt = np.flatnonzero(~tested)[first]
    listed = np.bincount(np.unique(cells) // n, minlength=int(folds.max(initial=-1)) + 1)
    for fold, row in zip(folds.tolist(), learnt.tolist(), strict=True):
        if listed[fold] < n:
            where = f"repeat {fold // count}, fold {fold % count}"
            fault(row, "incomplete", f"{where} lists {listed[fold]:,} of {n:,} examples; list each as test or training")


def _check_column(parameter: str, column: str, dataset: Dataset) -> None:
    known = dataset.roles.columns
    if column not in known:
        raise SpecError(
            f"{parameter}: no column with a role is called {column!r}{nearest(column, known)}; there are"
            f" {', '.join(known)} (the role metadata does not change what the task sees)"
        )


def _is_integer(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _column_texts(dataset: Dataset, column: str) -> Iterator[bytes]:
    """The values of a column as canonical text."""
    for batch in dataset.columns([column]):
        if rows.is_json(batch.schema.field(0)):
            yield from (b"null" if text is None else text.encode() for text in batch.column(0).to_pylist())
        elif pa.types.is_string(batch.schema.field(0).type):
            yield from map(orjson.dumps, batch.column(0).to_pylist())
        else:
            values = batch.column(0)
            if pa.types.is_floating(values.type):
                values = pc.add(values, 0.0)  # turns -0.0 into 0.0
            yield from map(identity.encode, values.to_pylist())


def _sort_positions(seed: int, repeat: int, digests: Sequence[bytes], strata: Integers) -> Integers:
    """The positions of all examples by stratum, then by hash; equal examples are numbered and differ in their hash."""
    prefix = b"%d/%d/" % (seed, repeat)
    seen: Counter[bytes] = Counter()
    keys = bytearray()
    for digest in digests:
        text = prefix + b"%d/" % seen[digest] + digest
        seen[digest] += 1
        keys += hashlib.blake2b(text, digest_size=identity.DIGEST_SIZE).digest()
    pairs = np.frombuffer(bytes(keys), dtype=">u8").reshape(-1, 2)
    return np.lexsort((pairs[:, 1], pairs[:, 0], strata))


def _divide_proportionally(sizes: Integers, total: int) -> Integers:
    """Divide a total in proportion to sizes: round exact shares down, and give the rest to the largest remainders."""
    exact = sizes.astype(object) * total  # Python integers do not overflow, however many examples there are
    n = int(sizes.sum())
    counts = np.array([part // n for part in exact], np.int64)
    remainders = [-(part % n) for part in exact]
    largest = sorted(range(len(sizes)), key=lambda i: remainders[i])  # stable: ties go to the first stratum
    counts[largest[: total - int(counts.sum())]] += 1
    return counts
