"""Splits: which examples a system is tested on, and which it may learn from.

A split is a function of the examples, not of their order: within each stratum the examples are sorted by a hash of the
seed, the repeat and their digest, and are then dealt out. So shuffling the rows of a file, or reading it from another
format, tests every example in the same fold, on any machine and with any version of NumPy. Groups are dealt out whole,
in the order of a hash of their value, each to the fold that lacks most what it brings.
"""

from __future__ import annotations

import hashlib
import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from evaluand.core import identity, registry
from evaluand.core.errors import SpecError
from evaluand.data.dataset import Dataset
from evaluand.store import tables as rows

NOT_TESTED: Final = -1
_SHOWN = 5

Integers = np.ndarray[Any, np.dtype[np.integer[Any]]]


@dataclass(frozen=True, kw_only=True)
class Split:
    """How a dataset is divided: a hold-out or a cross-validation, once or several times.

    Give either `test` or `folds`. The sizes of folds differ by at most one, over the whole dataset and, where it is
    stratified, within each stratum too. A hold-out is one fold: its share of each stratum differs by less than one
    example from its share of the whole.

    Where examples belong together (of one patient, of one image), a system could recognise them, and a split that
    parts them makes it look better than it is: name the column as `groups`. What is certain then:

    - rows of one group are tested together and learnt from together, always; a row without a group is one by itself;
    - the sizes of folds differ by at most the largest group; a hold-out differs from what was asked by at most the
      largest group;
    - with `stratified`, this holds for each stratum where each group lies in one stratum. Where groups mix strata, the
      parts are as alike as dealing out one group after the other makes them, which nothing bounds.

    Attributes:
        test: how much is held out for testing: a share between 0 and 1, rounded to the nearest number of examples, or
            a whole number of examples.
        folds: into how many parts the dataset is cut, each of which is tested once in each repeat.
        repeats: how often, each time otherwise.
        stratified: whether each fold gets the same mixture of expected values; or the name of a column instead.
        groups: the name of the column that tells which examples stay together; or true for the dataset's cluster.
        seed: another number gives another split.

    Raises:
        SpecError: the split cannot be made of any dataset.

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

    __pydantic_config__ = {"extra": "forbid"}  # noqa: RUF012 - a misspelt key of an experiment file is refused

    def __post_init__(self) -> None:
        if (self.test is None) == (self.folds is None):
            raise SpecError("a split needs either test (a hold-out) or folds (a cross-validation)")
        if self.folds is not None and not (_is_whole(self.folds) and self.folds >= 2):
            raise SpecError(f"folds is {self.folds!r}; give a whole number of at least 2")
        if self.test is not None:
            _check_test(self.test)
        if not (_is_whole(self.repeats) and self.repeats >= 1):
            raise SpecError(f"repeats is {self.repeats!r}; give a whole number of at least 1")
        if not _is_whole(self.seed):
            raise SpecError(f"seed is {self.seed!r}; give a whole number")
        for name in ("stratified", "groups"):
            if not isinstance(getattr(self, name), bool | str):
                raise SpecError(f"{name} is {getattr(self, name)!r}; give true, false or the name of a column")

    def assign(self, dataset: Dataset) -> Folds:
        """The fold of every example in every repeat.

        Raises:
            SpecError: the dataset is too small, or has too few examples of some stratum; says which.
        """
        n = len(dataset)
        held_out = self._held_out(n)
        digests = [example.digest for example in dataset]
        groups = self._groups(dataset, digests)
        strata = self._strata(dataset, groups)
        numbers = np.empty((self.repeats, n), np.int32)
        for repeat in range(self.repeats):
            if groups is not None:
                numbers[repeat] = self._dealt(groups, strata, held_out, repeat)
                continue
            order = _order(self.seed, repeat, digests, strata)
            if self.folds is not None:
                numbers[repeat, order] = np.arange(n) % self.folds
            else:
                numbers[repeat, order] = _held_out_first(np.bincount(strata), held_out)
        return Folds(numbers, self.folds or 1)

    def _dealt(self, groups: _Groups, strata: Integers, held_out: int, repeat: int) -> Integers:
        """The fold of each example of one repeat, where groups stay together."""
        dealt = groups.dealt(strata, self.folds, held_out, _order(self.seed, repeat, groups.keys, groups.one))
        if self.folds is None and not (dealt != NOT_TESTED).any():
            raise SpecError(
                f"test: {self.test} cannot be held out without parting a group of {groups.column!r}: each is at least"
                " twice as large; hold out more"
            )
        return dealt[groups.codes]

    def _held_out(self, n: int) -> int:
        """How many examples a hold-out tests; 0 for folds. Refuses what leaves nothing to test or to learn from."""
        if self.folds is not None:
            if self.folds > n:
                raise SpecError(f"{self.folds} folds cannot be made of {n} examples; give at most {n}")
            return 0
        asked = self.test or 0
        held_out = asked if isinstance(asked, int) else math.floor(asked * n + 0.5)
        if not 0 < held_out < n:
            what = "nothing to learn from" if held_out else "nothing to test on"
            raise SpecError(f"test: {asked} of {n} examples leaves {what}; give a share that leaves both")
        return held_out

    def _groups(self, dataset: Dataset, digests: Sequence[bytes]) -> _Groups | None:
        """What is dealt out whole; None where nothing belongs together."""
        if self.groups is False:
            return None
        column = self.groups if isinstance(self.groups, str) else dataset.roles.cluster
        if column is None:
            raise SpecError("groups: the dataset has no cluster; give the name of a column that tells the groups")
        _check_column("groups", column, dataset)
        groups = _Groups.of(column, list(_texts(dataset, column)), digests)
        least = self.folds or 2
        if len(groups.keys) < least:
            what = f"{least} folds" if self.folds else "test and training"
            raise SpecError(f"groups: {column!r} has {len(groups.keys)} groups, too few for {what}")
        return groups

    def _strata(self, dataset: Dataset, groups: _Groups | None) -> Integers:
        """The number of each example's stratum; strata are numbered in the order of their canonical texts."""
        if self.stratified is False:
            return np.zeros(len(dataset), np.int64)
        column = self._column(dataset)
        texts = list(_texts(dataset, column))
        codes = {text: code for code, text in enumerate(sorted(set(texts)))}
        strata = np.array([codes[text] for text in texts], np.int64)
        if groups is None:
            self._check_strata(column, Counter(texts), "examples")
        else:
            pairs = np.unique(strata * len(groups.keys) + groups.codes) // len(groups.keys)
            sizes = np.bincount(pairs, minlength=len(codes)).tolist()
            self._check_strata(column, Counter(dict(zip(codes, sizes, strict=True))), f"groups of {groups.column!r}")
        return strata

    def _column(self, dataset: Dataset) -> str:
        """The column that the strata are made by."""
        if isinstance(self.stratified, str):
            _check_column("stratified", self.stratified, dataset)
            return self.stratified
        expected = dataset.roles.expected
        if isinstance(expected, str):
            return expected
        why = "has no expected value" if expected is None else f"expects several values: {', '.join(expected)}"
        raise SpecError(f"stratified: the dataset {why}; give the name of a column to stratify by")

    def _check_strata(self, column: str, sizes: Counter[bytes], what: str) -> None:
        least = self.folds or 2
        small = sorted((size, text) for text, size in sizes.items() if size < least)
        if small:
            shown = ", ".join(f"{text.decode()[:60]} ({size})" for size, text in small[:_SHOWN])
            more = f" and {len(small) - _SHOWN} more" if len(small) > _SHOWN else ""
            where = f"{least} folds" if self.folds else "test and training"
            raise SpecError(
                f"stratified by {column!r}: too few {what} for {where} have the value{'s'[: len(small) > 1]} {shown}"
                f"{more}; each needs at least {least}. Use fewer folds, join rare values, or do not stratify by it"
            )


@dataclass(frozen=True, eq=False)
class Folds:
    """What a split makes of one dataset.

    Attributes:
        numbers: int32, repeats × examples: the fold in which an example is tested, or -1 where it is not (it is only
            learnt from).
        count: how many folds there are in each repeat.
    """

    numbers: Integers
    count: int

    @classmethod
    def listed(
        cls,
        n: int,
        positions: Integers,
        tested: np.ndarray[Any, np.dtype[np.bool_]],
        repeats: Integers,
        folds: Integers,
        fault: Callable[[int, str, str], None],
    ) -> Folds:
        """The folds that a list of rows says, each of which tests an example in a fold of a repeat or learns from it.

        A fold that lists only what it tests learns from all the rest; one that lists both must list every example.

        Args:
            n: how many examples there are.
            positions: which example a row is about.
            tested: whether the row says that it is tested; learnt from otherwise.
            repeats: the number of the repeat.
            folds: the number of the fold.
            fault: is told what is wrong: the row, a code and a sentence. What is made of faulty rows means nothing.

        Example:
            >>> def fault(row, code, message):
            ...     print(f"row {row}: {code}: {message}")
            >>> rows = [np.array(column) for column in ([0, 1, 2, 1], [True, False, False, True], [0] * 4, [0] * 4)]
            >>> Folds.listed(3, *rows, fault).numbers
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
        _check_whole(n, cells, tested, count, fault)
        numbers = np.full((repeated, n), NOT_TESTED, np.int32)
        numbers[repeats[tested], positions[tested]] = folds[tested]
        return cls(numbers, count)

    def rows(self) -> tuple[Integers, np.ndarray[Any, np.dtype[np.bool_]], Integers, Integers]:
        """Every example in every fold of every repeat, as `listed` takes it: positions, tested, repeats, folds."""
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

    def parts(self, clusters: Integers) -> Integers:
        """The clusters, ascending, of which some rows are tested by what was learnt from others.

        Args:
            clusters: the number of each example's cluster, from 0; -1 where it belongs to none.

        Example:
            >>> Folds(np.array([[0, 1, 1, 0], [0, 0, 1, 1]], np.int32), 2).parts(np.array([7, -1, 4, 4]))
            array([4])
        """
        width, given = self.count + 1, clusters >= 0
        found = [np.unique(clusters[given] * width + fold[given] + 1) // width for fold in self.numbers]
        return np.unique(np.concatenate([once[1:][once[1:] == once[:-1]] for once in found]))


@dataclass(frozen=True, eq=False)
class _Groups:
    """Which examples stay together.

    Attributes:
        column: that tells it.
        codes: the number of each example's group.
        keys: what stands for each group, from which its place in the order follows.
    """

    column: str
    codes: Integers
    keys: Sequence[bytes]

    @classmethod
    def of(cls, column: str, texts: Sequence[bytes], digests: Sequence[bytes]) -> _Groups:
        """The groups of examples by the texts of their values; null is no value, and groups nothing."""
        numbers: dict[bytes, int] = {}
        keys: list[bytes] = []
        codes = np.empty(len(texts), np.int64)
        for place, (text, digest) in enumerate(zip(texts, digests, strict=True)):
            if text == b"null":
                codes[place] = len(keys)
                keys.append(b"row" + digest)
                continue
            number = numbers.get(text)
            if number is None:
                number = numbers[text] = len(keys)
                keys.append(b"group" + text)
            codes[place] = number
        return cls(column, codes, keys)

    @property
    def one(self) -> Integers:
        """One stratum for all groups: they are dealt out in one order."""
        return np.zeros(len(self.keys), np.int64)

    def dealt(self, strata: Integers, folds: int | None, held_out: int, order: Integers) -> Integers:
        """The fold of each group, one after the other in an order.

        Whole numbers only, so that no machine rounds otherwise than another. What a stratum weighs is the inverse of
        its size squared: strata count alike, and not by how many examples they have.
        """
        sizes = np.bincount(strata)
        weights = np.maximum(2**61 // (sizes.astype(object) ** 2 * len(sizes)), 1).astype(np.int64)
        pairs, counts = np.unique(self.codes * len(sizes) + strata, return_counts=True)
        ends = np.searchsorted(pairs, np.arange(len(self.keys) + 1) * len(sizes))
        parts = [(pairs[a:b] % len(sizes), counts[a:b]) for a, b in itertools.pairwise(ends.tolist())]
        if folds is None:
            return _held_out_whole(parts, order, _shares(sizes, held_out), weights)
        load = np.zeros((folds, len(sizes)), np.int64)
        total = np.zeros(folds, np.int64)
        dealt = np.empty(len(parts), np.int32)
        for group in order:
            which, count = parts[group]
            costs = (load[:, which] * (count * weights[which])).sum(axis=1)
            fold = np.lexsort((total, costs))[0]
            load[fold, which] += count
            total[fold] += count.sum()
            dealt[group] = fold
        return dealt


def _held_out_whole(
    parts: Sequence[tuple[Integers, Integers]], order: Integers, wanted: Integers, weights: Integers
) -> Integers:
    """Which groups are held out: each that brings the strata nearer to what is wanted; one is left to learn from."""
    lacking = wanted.astype(np.int64)
    dealt = np.full(len(parts), NOT_TESTED, np.int32)
    for group in order:
        which, count = parts[group]
        gained = 2 * lacking[which] - count  # the square of what lacks shrinks by count times this
        if (gained * count * weights[which]).sum() > 0:
            dealt[group] = 0
            lacking[which] -= count
    if (dealt == 0).all():
        dealt[min(order, key=lambda group: int(parts[group][1].sum()))] = NOT_TESTED
    return dealt


def _check_numbers(numbers: Integers, what: str, fault: Callable[[int, str, str], None]) -> None:
    """Tells of numbers that are skipped: there is none below 0, and none missing below the largest."""
    known, first = np.unique(numbers, return_index=True)
    for number, row, due in zip(known.tolist(), first.tolist(), range(len(known)), strict=True):
        if number != due:
            told = f"{what} {number}: {what}s are numbered from 0, and there is no {what} {due}"
            return fault(row, f"{what}_numbering", told)


def _check_agreement(
    cells: Integers,
    tested: np.ndarray[Any, np.dtype[np.bool_]],
    repeats: Integers,
    folds: Integers,
    fault: Callable[[int, str, str], None],
) -> None:
    """Tells of examples that a fold both tests and learns from."""
    _, first, back = np.unique(cells, return_index=True, return_inverse=True)
    for row in np.flatnonzero(tested != tested[first][back]).tolist():
        did, other = ("tested", "learnt from") if tested[row] else ("learnt from", "tested")
        fault(row, "contradicted", f"{did}, and {other} in another row of repeat {repeats[row]}, fold {folds[row]}")


def _check_tested_once(
    examples: Integers,
    folds: Integers,
    tested: np.ndarray[Any, np.dtype[np.bool_]],
    fault: Callable[[int, str, str], None],
) -> None:
    """Tells of examples tested in two folds of a repeat."""
    rows_ = np.flatnonzero(tested)
    _, first, back = np.unique(examples[rows_], return_index=True, return_inverse=True)
    earlier = folds[rows_][first][back]
    for row, fold in zip(
        rows_[folds[rows_] != earlier].tolist(), earlier[folds[rows_] != earlier].tolist(), strict=True
    ):
        fault(row, "tested_twice", f"tested in fold {folds[row]} and, in the same repeat, in fold {fold}")


def _check_whole(
    n: int,
    cells: Integers,
    tested: np.ndarray[Any, np.dtype[np.bool_]],
    count: int,
    fault: Callable[[int, str, str], None],
) -> None:
    """Tells of folds that list what they learn from, but not of every example whether they do."""
    folds, first = np.unique(cells[~tested] // n, return_index=True)
    learnt = np.flatnonzero(~tested)[first]
    listed = np.bincount(np.unique(cells) // n, minlength=int(folds.max(initial=-1)) + 1)
    for fold, row in zip(folds.tolist(), learnt.tolist(), strict=True):
        if listed[fold] < n:
            where = f"repeat {fold // count}, fold {fold % count}"
            fault(
                row, "incomplete", f"{where} lists {listed[fold]:,} of {n:,} examples; say of each whether it is tested"
            )


def _check_column(parameter: str, column: str, dataset: Dataset) -> None:
    known = dataset.roles.columns
    if column not in known:
        raise SpecError(
            f"{parameter}: no column with a role is called {column!r}{registry.nearest(column, known)}; there are"
            f" {', '.join(known)} (the role metadata changes nothing for the task)"
        )


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _check_test(test: Any) -> None:
    if isinstance(test, float) and 0 < test < 1:
        return
    if not (_is_whole(test) and test >= 1):
        raise SpecError(f"test is {test!r}; give a share between 0 and 1, or a whole number of examples")


def _texts(dataset: Dataset, column: str) -> Iterator[bytes]:
    """The values of a column as canonical texts."""
    for batch in dataset.columns([column]):
        if rows.is_json(batch.schema.field(0)):
            yield from (b"null" if text is None else text.encode() for text in batch.column(0).to_pylist())
        elif pa.types.is_string(batch.schema.field(0).type):
            yield from map(orjson.dumps, batch.column(0).to_pylist())
        else:
            values = batch.column(0)
            if pa.types.is_floating(values.type):
                values = pc.add(values, 0.0)  # -0.0 is 0.0
            yield from map(identity.encode, values.to_pylist())


def _order(seed: int, repeat: int, digests: Sequence[bytes], strata: Integers) -> Integers:
    """The positions of all examples, stratum by stratum, within each by hash; examples that are alike by occurrence."""
    begin = b"%d/%d/" % (seed, repeat)
    seen: Counter[bytes] = Counter()
    keys = bytearray()
    for digest in digests:
        text = begin + b"%d/" % seen[digest] + digest
        seen[digest] += 1
        keys += hashlib.blake2b(text, digest_size=identity.DIGEST_SIZE).digest()
    pairs = np.frombuffer(bytes(keys), dtype=">u8").reshape(-1, 2)
    return np.lexsort((pairs[:, 1], pairs[:, 0], strata))


def _held_out_first(sizes: Integers, held_out: int) -> Integers:
    """The folds of examples in the order of their strata, of each of which the first few are held out."""
    counts = _shares(sizes, held_out)
    parts = [[0] * int(count) + [NOT_TESTED] * int(size - count) for size, count in zip(sizes, counts, strict=True)]
    return np.array([fold for part in parts for fold in part], np.int32)


def _shares(sizes: Integers, total: int) -> Integers:
    """A total divided in proportion to sizes: each exact share rounded down, the rest to the largest remainders."""
    exact = sizes.astype(object) * total  # Python's whole numbers: no rounding, however many examples
    n = int(sizes.sum())
    counts = np.array([part // n for part in exact], np.int64)
    remainders = [-(part % n) for part in exact]
    largest = sorted(range(len(sizes)), key=lambda i: remainders[i])  # stable: ties go to the first stratum
    counts[largest[: total - int(counts.sum())]] += 1
    return counts
