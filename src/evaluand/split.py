"""Splits: which examples a system is tested on, and which it may learn from.

A split is a function of the examples, not of their order: within each stratum the examples are sorted by a hash of the
seed, the repeat and their digest, and are then dealt out. So shuffling the rows of a file, or reading it from another
format, tests every example in the same fold, on any machine and with any version of NumPy.
"""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import orjson
import pyarrow as pa

from evaluand import ids, registry, rows
from evaluand.dataset import Dataset
from evaluand.errors import SpecError

NOT_TESTED: Final = -1
_SHOWN = 5

Integers = np.ndarray[Any, np.dtype[np.integer[Any]]]


@dataclass(frozen=True, kw_only=True)
class Split:
    """How a dataset is divided: a hold-out or a cross-validation, once or several times.

    Give either `test` or `folds`. The sizes of folds differ by at most one, over the whole dataset and, where it is
    stratified, within each stratum too. A hold-out is one fold: its share of each stratum differs by less than one
    example from its share of the whole.

    Examples that belong together (of one patient, of one document) are not kept together: where a system could
    recognise them, a split of this kind makes it look better than it is.

    Attributes:
        test: how much is held out for testing: a share between 0 and 1, rounded to the nearest number of examples, or
            a whole number of examples.
        folds: into how many parts the dataset is cut, each of which is tested once in each repeat.
        repeats: how often, each time otherwise.
        stratified: whether each fold gets the same mixture of expected values; or the name of a column instead.
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
        if not isinstance(self.stratified, bool | str):
            raise SpecError(f"stratified is {self.stratified!r}; give true, false or the name of a column")

    def assign(self, dataset: Dataset) -> Folds:
        """The fold of every example in every repeat.

        Raises:
            SpecError: the dataset is too small, or has too few examples of some stratum; says which.
        """
        n = len(dataset)
        held_out = self._held_out(n)
        strata = self._strata(dataset)
        digests = [example.digest for example in dataset]
        numbers = np.empty((self.repeats, n), np.int32)
        for repeat in range(self.repeats):
            order = _order(self.seed, repeat, digests, strata)
            if self.folds is not None:
                numbers[repeat, order] = np.arange(n) % self.folds
            else:
                numbers[repeat, order] = _held_out_first(np.bincount(strata), held_out)
        return Folds(numbers, self.folds or 1)

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

    def _strata(self, dataset: Dataset) -> Integers:
        """The number of each example's stratum; strata are numbered in the order of their canonical texts."""
        if self.stratified is False:
            return np.zeros(len(dataset), np.int64)
        column = self._column(dataset)
        texts = list(_texts(dataset, column))
        sizes = Counter(texts)
        self._check_strata(column, sizes)
        codes = {text: code for code, text in enumerate(sorted(sizes))}
        return np.array([codes[text] for text in texts], np.int64)

    def _column(self, dataset: Dataset) -> str:
        """The column that the strata are made by."""
        if isinstance(self.stratified, str):
            known = dataset.roles.columns
            if self.stratified not in known:
                near = registry.nearest(self.stratified, known)
                raise SpecError(
                    f"stratified: no column with a role is called {self.stratified!r}{near}; there are"
                    f" {', '.join(known)} (the role metadata changes nothing for the task)"
                )
            return self.stratified
        expected = dataset.roles.expected
        if isinstance(expected, str):
            return expected
        why = "has no expected value" if expected is None else f"expects several values: {', '.join(expected)}"
        raise SpecError(f"stratified: the dataset {why}; give the name of a column to stratify by")

    def _check_strata(self, column: str, sizes: Counter[bytes]) -> None:
        least = self.folds or 2
        small = sorted((size, text) for text, size in sizes.items() if size < least)
        if small:
            shown = ", ".join(f"{text.decode()[:60]} ({size})" for size, text in small[:_SHOWN])
            more = f" and {len(small) - _SHOWN} more" if len(small) > _SHOWN else ""
            where = f"{least} folds" if self.folds else "test and training"
            raise SpecError(
                f"stratified by {column!r}: too few examples for {where} have the value{'s'[: len(small) > 1]} {shown}"
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
            yield from map(ids.encode, batch.column(0).to_pylist())


def _order(seed: int, repeat: int, digests: Sequence[bytes], strata: Integers) -> Integers:
    """The positions of all examples, stratum by stratum, within each by hash; examples that are alike by occurrence."""
    begin = b"%d/%d/" % (seed, repeat)
    seen: Counter[bytes] = Counter()
    keys = bytearray()
    for digest in digests:
        text = begin + b"%d/" % seen[digest] + digest
        seen[digest] += 1
        keys += hashlib.blake2b(text, digest_size=ids.DIGEST_SIZE).digest()
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
