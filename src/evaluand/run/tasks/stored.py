"""Stored runs as tasks: the answers of a run that exists stand for calls, which are never made again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NoReturn

from evaluand.core.errors import NotFound, SpecError
from evaluand.core.fingerprint import Identity
from evaluand.core.labels import shown_name
from evaluand.data.dataset import Dataset
from evaluand.run.runner import Run
from evaluand.run.task import Task
from evaluand.store.store import Store
from evaluand.trace.spans import TaskSpan


@dataclass(frozen=True, kw_only=True)
class StoredRun:
    """The answers of a stored run, graded and compared as those of any task, without a call.

    Args:
        run: its name or id.
    """

    run: str

    kind: ClassVar[str] = "stored"

    def open(self, store: Store | None) -> StoredTask:
        """The run as a task.

        Raises:
            SpecError: there is no store, no such run in it, or the run is not finished.
        """
        if store is None:
            raise SpecError(f"the store of run {self.run!r} is not known: from Python give store=…; a suite takes none")
        try:
            return StoredTask(Run.open(store, self.run))
        except NotFound as error:
            raise SpecError(f"run: {error}") from None


class StoredTask(Task[Any, Any]):
    """A stored run in place of a task.

    Example:
        >>> from evaluand.run.runner import Runner
        >>> run = Runner().run(str.upper, Dataset.from_rows([{"input": "a"}]), name="demo/upper")
        >>> StoredTask(run).name, StoredTask(run).replications
        ('demo/upper', 1)
    """

    stored: Run

    def __init__(self, run: Run) -> None:
        self.stored = run
        self.items = run.items

    @property
    def name(self) -> str:
        return shown_name(self.stored.name or self.stored.id)

    @property
    def replications(self) -> int:
        return int(self.stored.manifest["spec"]["replications"])

    def identify(self) -> Identity:
        return Identity(self.stored.manifest["spec"]["task"])

    def prepare(self, dataset: Dataset) -> None:
        """Checks that examples are among those of the run.

        Raises:
            SpecError: one has another content there, or is not there.
        """
        own = self.stored.dataset
        if dataset.id == own.id:
            return
        known = dict(zip(own.indices, own.example_digests(), strict=True))
        for index, digest in zip(dataset.indices, dataset.example_digests(), strict=True):
            if known.get(index) != digest:
                why = "has another content" if index in known else "is missing"
                raise SpecError(
                    f"run {self.name!r} is over other examples than this dataset: the one with _index_ {index} {why}"
                    " there; leave out dataset to take that of the run, or run the task again"
                )

    def do_run(self, input: Any, task_span: TaskSpan) -> NoReturn:
        raise SpecError(f"run {self.name!r} is stored and cannot be called again")
