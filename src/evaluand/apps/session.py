"""Recording sessions: what is recorded of an app in one `with` block."""

from __future__ import annotations

import threading
from array import array
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, ParamSpec, Self, TypeVar, overload

from evaluand.apps.instrumentation.marking import carry_context
from evaluand.apps.instrumentation.steps import CompletedCall, is_open, start_recording, stop_recording
from evaluand.apps.recording.judge import judging
from evaluand.apps.recording.writer import Annotations, RecordingWriter, Snapshot, check_metadata
from evaluand.core.errors import DataError, SpecError, warn
from evaluand.evaluation.evaluator import Evaluation
from evaluand.models.capture import Capture
from evaluand.run.runner import Run
from evaluand.trace.record import Record

if TYPE_CHECKING:
    from evaluand.apps.app import App

P = ParamSpec("P")
R = TypeVar("R")


class RecordingSession:
    """What is recorded of an app in a `with` block.

    The records are stored in a recording of the app's store (`writer`, of `evaluand.apps.recording`). The next block of
    the app continues the same recording unless it was closed. `close` turns it into a run, and an evaluation by the
    app's feedbacks.
    """

    def __init__(self, app: App, tags: str = "", meta: Any = None) -> None:
        self.app, self.tags, self.meta = app, tags, meta
        self.place = app.place
        self._annotations = _to_annotations(None, tags, meta)
        self.writer = app.open_writer(self)
        self._capture = Capture(None, None, is_on=app.policy is None or app.policy.observe_models)
        self._numbers = array("q")

    @property
    def id(self) -> str:
        """The id of the recording in the store."""
        return self.writer.id

    @property
    def is_open(self) -> bool:
        """Whether calls in this context are recorded."""
        return is_open(self)

    @property
    def records(self) -> Records[Record]:
        """The records of this block, in the order in which the calls ended; each is built when it is accessed."""
        return Records(self._numbers, self.writer.record)

    @property
    def run(self) -> Run | None:
        """The run of all records of the recording, which this closes; None where there are none.

        Raises:
            SpecError: a block is still open.
        """
        return self._close_writer().run

    @property
    def evaluation(self) -> Evaluation | None:
        """The scores of the feedbacks for all records of the recording, which this closes; None without feedbacks.

        Raises:
            SpecError: a block is still open.
        """
        return self._close_writer().evaluation

    def get(self) -> Record:
        """The only record.

        Raises:
            DataError: there is none, or more than one.
        """
        if len(self._numbers) != 1:
            raise DataError(f"there must be exactly one record, not {len(self._numbers)}; see .records")
        return self.records[0]

    def snapshot(self) -> Snapshot:
        """The run and the evaluation of all records so far; more may follow.

        Raises:
            SpecError: nothing was recorded yet.
        """
        return self.writer.snapshot()

    def evaluate(self) -> Evaluation:
        """The evaluation of all records so far by the feedbacks, whatever the mode.

        Raises:
            SpecError: there are no feedbacks, or no records.
        """
        return self.writer.evaluate()

    def close(self) -> Self:
        """Seals the recording: its run and, unless the mode is `none`, its evaluation."""
        self.writer.close()
        return self

    def carry_context(self, function: Callable[P, R]) -> Callable[P, R]:
        """The function for use in another thread: its calls are recorded there as they would be here.

        Example:
            >>> from concurrent.futures import ThreadPoolExecutor
            >>> from evaluand import App
            >>> app = App(lambda text: text.upper(), name="shout")
            >>> with app as recording, ThreadPoolExecutor() as pool:
            ...     _ = list(pool.map(recording.carry_context(app.app), ["a", "b"]))
            >>> sorted(record["main_output"] for record in recording.records)
            ['A', 'B']
        """
        return carry_context(function)

    def take(self, recorded: CompletedCall) -> None:
        """Records a call that has ended."""
        own = recorded.about
        annotations = self._annotations.merge(_to_annotations(**own)) if own else self._annotations
        number = self.writer.keep(recorded.trace, recorded.error, annotations)
        if number is not None:
            self._numbers.append(number)

    def miss(self, component: object, method: str) -> None:
        """Warns, once for each method, that it was called in a thread in which nothing is recorded."""
        path = self.place(component)
        name = f"{path}.{method}" if path else method
        if path is None or name in self.app._missed or judging.get():
            return
        self.app._missed.add(name)
        warn(
            f"{self.app.name}: {name} was called in the thread {threading.current_thread().name}, where nothing is "
            "recorded, while a recording is open in another thread; the call is in no record. If it belongs to one, "
            "give the thread recording.carry_context(function)",
        )

    def _close_writer(self) -> RecordingWriter:
        if self.writer.blocks:
            raise SpecError("the recording is still open; leave the `with` block first, or take a snapshot()")
        return self.close().writer

    def __enter__(self) -> Self:
        self.writer.blocks += 1
        self._capture.__enter__()
        start_recording(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        stop_recording(self)
        self._capture.__exit__(kind, error, traceback)
        self.writer.blocks -= 1

    def __repr__(self) -> str:
        return f"<RecordingSession of {self.app.app_id}, {len(self._numbers)} records>"


class Records(Sequence[R]):
    """The records of a session, each read by its number."""

    def __init__(self, numbers: array[int], read: Callable[[int], R]) -> None:
        self._numbers, self._read = numbers, read

    def __len__(self) -> int:
        return len(self._numbers)

    @overload
    def __getitem__(self, place: int) -> R: ...
    @overload
    def __getitem__(self, place: slice) -> list[R]: ...
    def __getitem__(self, place: int | slice) -> R | list[R]:
        numbers = self._numbers[place]
        return self._read(numbers) if isinstance(numbers, int) else list(map(self._read, numbers))

    def __repr__(self) -> str:
        return repr(list(self))


def _to_annotations(record_id: str | None = None, tags: str | None = None, meta: Any = None) -> Annotations:
    """The annotations of records, as they are stored; a SpecError if a key of the metadata is not allowed."""
    if meta is None:
        return Annotations(record_id, tags or None)
    metadata = meta if isinstance(meta, Mapping) else {"meta": meta}
    check_metadata(metadata)
    return Annotations(record_id, tags or None, metadata)
