"""The calls of a run, one by one: how each is made, sent to another process, and written into the journal."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from evaluand.core import identity as ids
from evaluand.data.dataset import Example
from evaluand.engine.engine import Code, Recipe, UnitCodec
from evaluand.engine.outcome import Outcome
from evaluand.engine.policy import Policy
from evaluand.models.account import Account
from evaluand.models.requests import begin_measured
from evaluand.models.usage import Spending
from evaluand.run.outputs import check_outputs, identify
from evaluand.run.responses import line_of
from evaluand.run.task import Request, Task, input_type
from evaluand.trace.spans import TaskSpan
from evaluand.trace.traces import Trace


@dataclass(slots=True)
class Call:
    """One call to make; `spent` is what it has used in all attempts."""

    slot: int
    example: Example
    replication: int
    digest: bytes
    trace: Trace | None = None
    spent: Spending | None = None
    size: int = 1

    def __str__(self) -> str:
        return f"_index_ {self.example.index}, replication {self.replication}"

    def make_spent(self) -> Spending:
        self.spent = self.spent or Spending()
        return self.spent

    def request(self, span: TaskSpan, seed: int, policy: Policy) -> Request:
        """The request to the task, with a copy of a mutable input."""
        example = self.example
        own = deepcopy(example.input) if isinstance(example.input, _MUTABLE) else example.input
        of_example = own, span, example.index, example.id
        return Request(*of_example, self.replication, self.digest, seed, policy.timeout, policy.rate_limit)


_MUTABLE: Final = (list, dict)


def pack_call(call: Call) -> bytes:
    """The data that a process needs to make the call."""
    e = call.example
    return ids.encode([call.slot, e.index, e.position, e.id, e.input, call.replication, call.digest])


def unpack_call(data: bytes) -> Call:
    """The inverse of `pack_call`."""
    slot, index, position, id, input, replication, digest = ids.decode(data)
    return Call(slot, Example(index, position, id, input, None, {}, None, None, {}, b""), replication, digest)


@dataclass(frozen=True)
class Calling:
    """Makes the calls of a run and writes their lines; sent as a whole to workers of a cluster.

    Attributes:
        seed: from which the examples' seeds are derived.
        attempt: at the run, from 0.
        policy: its limits are passed to the task.
        account: what requests are counted against.
    """

    task: Task[Any, Any]
    seed: int
    attempt: int
    policy: Policy
    account: Account

    @property
    def recipe(self) -> Recipe[Call]:
        task = self.task
        return Recipe(
            check_outputs(task, self.call_async if task.is_async else self.call),
            self.line,
            UnitCodec(pack_call, unpack_call, task.close),
            Code(f"task {task.name!r}", partial(identify, task), partial(input_type, task), self.account),
        )

    def call(self, call: Call) -> Any:
        with self._begin(call) as span, self.account.charge(call.make_spent):
            return self.task.call(call.request(span, self.seed, self.policy))

    async def call_async(self, call: Call) -> Any:
        with self._begin(call) as span, self.account.charge(call.make_spent):
            return await self.task.call(call.request(span, self.seed, self.policy))

    def _begin(self, call: Call) -> TaskSpan:
        begin_measured(self.attempt, call.replication)
        call.trace = Trace.start(self.task.name, call.example.input)
        return call.trace.root

    def line(self, call: Call, outcome: Outcome) -> tuple[bytes, bool]:
        return line_of(call.slot, call.digest, self.fold(call), outcome, call.trace, self.task.items, call.spent)

    def fold(self, call: Call) -> int | None:
        """The fold of a cross-validation that a call belongs to."""
        return self.task.fold(call.example.index, call.example.id, call.replication)
