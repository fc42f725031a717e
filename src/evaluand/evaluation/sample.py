"""Samples: which rows of a run are graded; the others are skipped with the reason, and no metric averages them.

A sample is drawn in the order in which people label, so those who label the first answers of a run and the judge that
grades a sample of it see the same ones. Failed rows are drawn too, so that they are as frequent as in the run.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

import numpy as np

from evaluand.core import identity
from evaluand.core.errors import SpecError, nearest
from evaluand.core.key_columns import INDEX
from evaluand.metrics.judging.labelling_order import draw_in_turn, random_places
from evaluand.run.runner import Run
from evaluand.store.tables import COMPLETED, FAILED


@dataclass(frozen=True, eq=False)
class RowSample:
    """Some rows of a run.

    Attributes:
        rule: how they were chosen, in words.
        chosen: of each row of the run, in order, whether it is among them.
    """

    rule: str
    chosen: np.ndarray[Any, np.dtype[np.bool_]]

    @property
    def spec(self) -> dict[str, Any]:
        """What an evaluation says of it."""
        rows = hashlib.blake2b(np.packbits(self.chosen).tobytes(), digest_size=identity.DIGEST_SIZE).hexdigest()
        return {"rule": self.rule, "chosen": int(self.chosen.sum()), "of": len(self.chosen), "rows": rows}

    @property
    def reason(self) -> str:
        """Why the others have no score."""
        return f"not in the sample: {self.rule}"

    @property
    def unseen(self) -> bytes:
        """The digest of a row of which nothing is seen, in place of that of its content: none is graded like it."""
        return identity.digest(self.spec)


def choose_rows(run: Run, rule: str, is_chosen: Callable[[tuple[int, int]], bool]) -> RowSample | None:
    """The rows of a run whose `_index_` and replication fulfil a condition; None if all do."""
    chosen = np.array([is_chosen(key) for key, _ in _rows(run)], np.bool_)
    return None if chosen.all() else RowSample(rule, chosen)


def draw_sample(
    run: Run,
    size: int | float,
    *,
    seed: int = 0,
    among: Collection[tuple[int, int]] | None = None,
    rule: str = "",
) -> RowSample:
    """A random sample of the rows of a run that were asked.

    Args:
        size: the number of rows, or their share below 1, rounded up.
        among: `_index_` and replication of the rows to draw from; by default all.
        rule: how these were chosen, in words.

    Example:
        >>> from evaluand.data.dataset import Dataset
        >>> from evaluand.run.runner import Runner
        >>> run = Runner().run(str.upper, Dataset.from_rows([{"input": text} for text in "abcd"]))
        >>> draw_sample(run, 0.5).chosen.tolist(), draw_sample(run, 2).rule
        ([False, False, True, True], '2 of 4 rows, seed 0')
    """
    turns = find_turns(run, seed, statuses=(COMPLETED, FAILED))
    order = [key for key in sorted(turns, key=turns.__getitem__) if among is None or key in among]
    n = min(len(order), math.ceil(size * len(order)) if isinstance(size, float) else size)
    drawn = {*order[:n]}
    chosen = np.array([key in drawn for key, _ in _rows(run)], np.bool_)
    return RowSample(f"{n:,} of {len(order):,} rows{rule}, seed {seed}", chosen)


def find_turns(
    run: Run, seed: int = 0, strata: str | None = None, *, statuses: Collection[str] = (COMPLETED,)
) -> dict[tuple[int, int], int]:
    """The place of each row with one of the statuses in the order in which people label, by `_index_` and replication.

    Args:
        strata: an attribute of the dataset, whose values take turns.
    """
    dataset = run.dataset
    if strata is not None and strata not in dataset.roles.attributes:
        known = dataset.roles.attributes
        raise SpecError(f"{strata!r} is not an attribute of the dataset{nearest(strata, known)}; declare it there")
    keys = [key for key, status in _rows(run) if status in statuses]
    index, replication = np.array(keys, np.int64).reshape(-1, 2).T
    positions = np.searchsorted(np.array(dataset.indices, np.int64), index)
    digests = np.array([np.frombuffer(each, ">i8") for each in dataset.example_digests()], np.int64).reshape(-1, 2)
    places = random_places(digests[positions], replication, seed)
    groups = np.zeros(len(positions), np.int64)
    if strata is not None:
        values = [repr(value) for batch in dataset.columns([strata]) for value in batch.column(0).to_pylist()]
        groups = np.unique(values, return_inverse=True)[1][positions]
    order = draw_in_turn(places, groups).tolist()
    return {keys[place]: turn for turn, place in enumerate(order)}


def _rows(run: Run) -> list[tuple[tuple[int, int], str]]:
    """`_index_` and replication, and the status, of every row of a run."""
    return [
        ((index, replication), status)
        for batch in run.batches([INDEX, "replication", "status"])
        for index, replication, status in zip(*(column.to_pylist() for column in batch.columns), strict=True)
    ]
