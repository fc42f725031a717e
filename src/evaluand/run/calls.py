"""All calls of a run: which they are, what identifies each, and which are still to be made."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, islice, repeat
from typing import Any, TypeVar

import numpy as np

from evaluand.core import identity as ids
from evaluand.core.errors import SpecError
from evaluand.core.fingerprint import Identity
from evaluand.data.dataset import Dataset, Example, ExampleStream
from evaluand.engine.reuse import OpenSlots
from evaluand.run.calling import Call
from evaluand.run.outputs import identify
from evaluand.run.task import Runnable, Task, as_task

T = TypeVar("T")

MAX_CALLS = 1 << 28  # 14 bytes of memory each


@dataclass(frozen=True)
class Calls:
    """All calls of a task over the first examples of a dataset.

    Attributes:
        identity: of the task.
        examples: the number of examples, from the first on.
        replications: the number of repeats of each.
        seed: from which the examples' seeds are derived.
    """

    task: Task[Any, Any]
    identity: Identity
    dataset: Dataset
    examples: int
    replications: int
    seed: int

    @classmethod
    def requested(cls, task: Runnable, dataset: Any, limit: int | None, replications: int | None, seed: int) -> Calls:
        """The calls for the arguments of `Runner.run`.

        Raises:
            SpecError: the calls cannot be made.
        """
        task = as_task(task)
        dataset = Dataset.from_data(dataset)
        if dataset.view_spec is not None and "dataset" in task.reads:
            raise SpecError(
                f"task {task.name!r} reads the dataset's columns, which a view does not change; run it without"
            )
        times = _replications(task, replications)
        calls = cls(task, identify(task), dataset, min(limit or len(dataset), len(dataset)), times, seed)
        if calls.total > MAX_CALLS:
            size = f"{calls.examples:,} examples × {times:,} replications"
            raise SpecError(f"{size} exceed the {MAX_CALLS:,} calls that a run can hold; make several runs")
        return calls

    @property
    def total(self) -> int:
        return self.examples * self.replications

    @property
    def spec(self) -> dict[str, Any]:
        """The identity of the run."""
        data = {"dataset": self.dataset.id, "examples": self.examples, "replications": self.replications}
        view = self.dataset.view_spec
        return self._core | data | ({} if view is None else {"view": view})

    @property
    def work(self) -> str:
        """The identity of the work without its data."""
        return ids.digest(self._core).hex()

    @property
    def _core(self) -> dict[str, Any]:
        return {"task": self.identity.spec, "seed": self.seed}

    @property
    def may_skip(self) -> bool:
        """Whether the task may skip calls."""
        return type(self.task).skips is not Task.skips

    def between(self, stream: ExampleStream, start: int, stop: int) -> Iterator[Call]:
        """The calls of the slots start … stop."""
        times = self.replications
        for example in stream.take(start // times, -(-stop // times)):
            digest = self._visible_digest(example)
            for replication in range(times):
                slot = example.position * times + replication
                if start <= slot < stop:
                    yield Call(slot, example, replication, digest)

    def keys(self) -> tuple[Iterator[int], Iterator[int], Iterator[bytes]]:
        """Of the calls, in order, the examples' `_index_`, the repeats and the digests of what the task can see.

        For tasks that read at most the index and the id.
        """
        times = self.replications
        indices = islice(self.dataset.indices, self.examples)
        digests = islice(self.dataset.input_digests(self.task.reads), self.examples)
        if times == 1:
            return indices, repeat(0, self.examples), digests
        return (
            _repeat_each(indices, times),
            chain.from_iterable(repeat(range(times), self.examples)),
            (_repeat_each(digests, times)),
        )

    def open_slots(self, is_done: Callable[[int], bool] = lambda slot: False) -> OpenSlots:
        """The slots of the calls that are still to be made, by default of all."""
        return OpenSlots(self._missing(is_done))

    def _missing(self, is_done: Callable[[int], bool]) -> Iterator[tuple[int, bytes]]:
        for example in self.dataset.examples(0, self.examples):
            first = example.position * self.replications
            open_ = (r for r in range(self.replications) if not is_done(first + r))
            missing = [r for r in open_ if not self.skips(example, r)]
            if missing:
                digest = self._visible_digest(example)
                yield from ((first + r, key_of(digest, r)) for r in missing)

    def skips(self, example: Example, replication: int) -> bool:
        """Whether the task skips a call."""
        return self.task.skips(example.index, example.id, replication)

    @cached_property
    def _reads(self) -> tuple[str, ...]:
        return tuple(self.task.reads)

    def _visible_digest(self, example: Example) -> bytes:
        """A digest of everything the task can see of an example."""
        if not self._reads:
            return example.input_digest
        more = (self.dataset.id if name == "dataset" else getattr(example, name) for name in self._reads)
        return ids.digest([example.input, *more])


def key_of(digest: bytes, replication: int) -> bytes:
    """A 16-byte key of a call: what the task sees, and the number of the repeat."""
    if not replication:
        return digest
    return ((int.from_bytes(digest, "big") + replication * _STEP) & _MOST_KEY).to_bytes(16, "big")


_STEP, _MOST_KEY = 0x9E3779B97F4A7C15F39CC0605CEDC835, (1 << 128) - 1  # from one repeat to the next


def numbers_of(digests: np.ndarray, replications: np.ndarray) -> np.ndarray:
    """The first eight bytes of `key_of`."""
    repeats, of = np.unique(replications, return_inverse=True)
    steps = [int(repeat) * _STEP & _MOST_KEY for repeat in repeats]
    high, low = (np.array([step >> shift & (1 << 64) - 1 for step in steps], np.uint64)[of] for shift in (64, 0))
    carries = digests[:, 1] + low < low
    return digests[:, 0] + high + carries.astype(np.uint64)


def _repeat_each(values: Iterator[T], times: int) -> Iterator[T]:
    return (value for value in values for _ in range(times))


def _replications(task: Task[Any, Any], requested: int | None) -> int:
    """How often each example is run."""
    own = task.replications
    if requested is None:
        return own or 1
    if requested < 1:
        raise SpecError("replications must be at least 1")
    if own is not None and requested != own:
        raise SpecError(
            f"task {task.name!r} repeats each example {own} times; set replications: {own}, not {requested}"
        )
    return requested
