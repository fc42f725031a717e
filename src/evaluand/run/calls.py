"""The calls of a run: their slots, their requests and their keys.

Every call has a slot, ordered by example and then by repeat. Answers of earlier runs are found by a call's key:
everything the task can see of the example, and the number of the repeat.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

from evaluand.core import identity as ids
from evaluand.core.errors import SpecError, with_article
from evaluand.core.fingerprint import Identity
from evaluand.data.dataset import Dataset, Example, ExampleStream
from evaluand.engine.engine import Policy
from evaluand.engine.reuse import OpenSlots
from evaluand.run.responses import key_of
from evaluand.run.task import Request, Runnable, Task, as_task
from evaluand.trace.spans import TaskSpan
from evaluand.trace.traces import Trace

MAX_CALLS = 1 << 28  # 14 bytes of memory each


@dataclass(slots=True)
class Call:
    """One call to make."""

    slot: int
    example: Example
    replication: int
    digest: bytes
    trace: Trace | None = None
    size: int = 1

    def __str__(self) -> str:
        return f"_index_ {self.example.index}, replication {self.replication}"

    def request(self, span: TaskSpan, seed: int, policy: Policy) -> Request:
        """The request to the task, with a copy of a mutable input."""
        example = self.example
        own = deepcopy(example.input) if isinstance(example.input, list | dict) else example.input
        limits = (policy.timeout, policy.rate_limit)
        return Request(own, span, example.index, example.id, self.replication, self.digest, seed, *limits)


def pack_call(call: Call) -> bytes:
    """The data that a process needs to make the call."""
    e = call.example
    return ids.encode([call.slot, e.index, e.position, e.id, e.input, call.replication, call.digest])


def unpack_call(data: bytes) -> Call:
    """The inverse of `pack_call`."""
    slot, index, position, id, input, replication, digest = ids.decode(data)
    return Call(slot, Example(index, position, id, input, None, {}, None, None, {}, b""), replication, digest)


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
    def requested(
        cls, task: Runnable, dataset: Dataset, limit: int | None, replications: int | None, seed: int
    ) -> Calls:
        """The calls for the arguments of `Runner.run`.

        Raises:
            SpecError: the calls cannot be made.
        """
        task = as_task(task)
        if not isinstance(dataset, Dataset):
            raise SpecError(
                f"pass a Dataset, not {with_article(type(dataset).__name__)}; see Dataset.from_rows and from_file"
            )
        if dataset.view_spec is not None and "dataset" in task.reads:
            raise SpecError(
                f"task {task.name!r} reads the dataset's columns, which a view does not change; run it without"
            )
        times = _replications(task, replications)
        if limit is not None and limit < 1:
            raise SpecError("limit must be at least 1")
        calls = cls(task, task.identify(), dataset, min(limit or len(dataset), len(dataset)), times, seed)
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
    def work(self) -> str | None:
        """The identity of the work without its data; None if nothing may be reused."""
        return ids.digest(self._core).hex() if self.identity.pinned else None

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

    def open_slots(self, is_done: Callable[[int], bool]) -> OpenSlots:
        """The slots of the calls that are still to be made."""
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

    def fold(self, call: Call) -> int | None:
        """The fold of a cross-validation that a call belongs to."""
        return self.task.fold(call.example.index, call.example.id, call.replication)

    def _visible_digest(self, example: Example) -> bytes:
        """A digest of everything the task can see of an example."""
        if not self.task.reads:
            return example.input_digest
        more = (self.dataset.id if name == "dataset" else getattr(example, name) for name in self.task.reads)
        return ids.digest([example.input, *more])


def _replications(task: Task[Any, Any], requested: int | None) -> int:
    """How often each example is run.

    Raises:
        SpecError: the number is invalid, or does not fit the task.
    """
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
