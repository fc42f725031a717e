"""Given outputs: what is known already, as a task, so that it becomes a run like any other."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from evaluand.core import identity as ids
from evaluand.core.errors import TaskError
from evaluand.core.fingerprint import Identity
from evaluand.run.task import Request, Task
from evaluand.trace import TaskSpan


class GivenTask(Task[Any, Any]):
    """Gives each example, in each replication, the output that is there for it, and skips it where there is none.

    Args:
        name: what the task is called.
        outputs: replication and `_index_` → the output, as `ids.encode` writes it.
        folds: the fold of a cross-validation that an output belongs to, likewise.

    Example:
        >>> given = GivenTask("predictions", {(0, 0): ids.encode("cat"), (1, 0): ids.encode("dog")})
        >>> given.replications, given.skips(1, "1", 0)
        (2, True)
    """

    def __init__(
        self, name: str, outputs: Mapping[tuple[int, int], bytes], folds: Mapping[tuple[int, int], int] | None = None
    ) -> None:
        self._name, self._outputs, self._folds = name, outputs, folds or {}

    @property
    def name(self) -> str:
        return self._name

    @property
    def is_async(self) -> bool:
        """Looking up waits for nothing."""
        return True

    @property
    def reads(self) -> tuple[str, ...]:
        return ("index",)

    @property
    def replications(self) -> int:
        return 1 + max((replication for replication, _ in self._outputs), default=0)

    def identify(self) -> Identity:
        told = (ids.digest([*place, output.decode()]) for place, output in sorted(self._outputs.items()))
        return Identity({"kind": "given", "outputs": ids.digest_of_digests(told).hex()})

    def fold(self, index: int, id: str, replication: int) -> int | None:
        return self._folds.get((replication, index))

    def skips(self, index: int, id: str, replication: int) -> bool:
        return (replication, index) not in self._outputs

    def do_run(self, input: Any, task_span: TaskSpan) -> Any:
        raise TaskError("given outputs belong to examples; they cannot be asked for an input alone")

    async def call(self, request: Request) -> Any:
        return ids.decode(self._outputs[request.replication, request.index])
