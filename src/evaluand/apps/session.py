"""What is recorded of an app in one `with` block."""

from __future__ import annotations

import threading
from array import array
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, ParamSpec, Self, TypeVar, overload

from evaluand.apps.instrumentation.marking import carried
from evaluand.apps.instrumentation.steps import CompletedCall, closed, is_open, opened
from evaluand.apps.recording.judge import judging
from evaluand.apps.recording.writer import About, RecordingWriter, Snapshot, check_metadata
from evaluand.core.errors import DataError, SpecError, warn
from evaluand.evaluation.evaluator import Evaluation
from evaluand.run.runner import Run
from evaluand.trace.record import Record

if TYPE_CHECKING:
    from evaluand.apps.app import App

P = ParamSpec("P")
R = TypeVar("R")


class RecordingSession:
    """What is recorded of an app in a `with` block.

    The records are kept in a recording of the app's store (`evaluand.apps.recording`), `kept`, which the next block of
    the app goes on with unless it was closed. `close` makes of it a run, and its evaluation by the app's feedbacks.

    Attributes:
        app: the app.
        kept: where the records are.
        tags: of the records.
        meta: of the records.
    """

    def __init__(self, app: App, tags: str = "", meta: Any = None) -> None:
        self.app, self.tags, self.meta = app, tags, meta
        self.place = app.place
        self._about = _about(None, tags, meta)
        self.kept = app.keeps(self)
        self._numbers = array("q")

    @property
    def id(self) -> str:
        """The id of the recording in the store."""
        return self.kept.id

    @property
    def is_open(self) -> bool:
        """Whether calls in this context are recorded."""
        return is_open(self)

    @property
    def records(self) -> Records:
        """The records of this block, in the order in which the calls ended; each is made when it is asked for."""
        return Records(self)

    @property
    def run(self) -> Run | None:
        """The run of all that was kept, which is closed for that; None where nothing was.

        Raises:
            SpecError: a block is open that records more.
        """
        return self._closed().run

    @property
    def evaluation(self) -> Evaluation | None:
        """What the feedbacks said of all that was kept, which is closed for that; None where nobody was asked.

        Raises:
            SpecError: a block is open that records more.
        """
        return self._closed().evaluation

    def get(self) -> Record:
        """The only record.

        Raises:
            DataError: there is none, or more than one.
        """
        if len(self._numbers) != 1:
            raise DataError(f"{len(self._numbers) or 'no'} records where one is needed; see .records")
        return self.records[0]

    def snapshot(self) -> Snapshot:
        """The run and the evaluation of all that was kept so far; more may follow.

        Raises:
            SpecError: nothing was recorded yet.
        """
        return self.kept.snapshot()

    def evaluate(self) -> Evaluation:
        """The evaluation by the feedbacks of all that was kept so far, whatever the mode.

        Raises:
            SpecError: there are no feedbacks, or no records.
        """
        return self.kept.evaluate()

    def close(self) -> Self:
        """Seals the recording: its run and, unless the mode is `none`, its evaluation."""
        self.kept.close()
        return self

    def carried(self, function: Callable[P, R]) -> Callable[P, R]:
        """A function that may be called in any thread, where its calls are recorded as they would be here.

        Example:
            >>> from concurrent.futures import ThreadPoolExecutor
            >>> app = App(lambda text: text.upper(), name="shout")
            >>> with app as recording, ThreadPoolExecutor() as pool:
            ...     _ = list(pool.map(recording.carried(app.app), ["a", "b"]))
            >>> sorted(record["main_output"] for record in recording.records)
            ['A', 'B']
        """
        return carried(function)

    def take(self, recorded: CompletedCall) -> None:
        """Keeps a call that has ended."""
        own = recorded.about
        about = self._about.with_more(_about(**own)) if own else self._about
        number = self.kept.keep(recorded.trace, recorded.error, about)
        if number is not None:
            self._numbers.append(number)

    def miss(self, component: object, method: str) -> None:
        """Tells once of each method that it was called in a thread in which nothing is recorded."""
        path = self.place(component)
        called = f"{path}.{method}" if path else method
        if path is None or called in self.app._missed or judging.get():
            return
        self.app._missed.add(called)
        warn(
            f"{self.app.name}: {called} was called in the thread {threading.current_thread().name}, in which nothing "
            "is recorded, while a recording is open in another; the call is in no record. If it belongs to one, give "
            "the thread recording.carried(function)",
        )

    def _closed(self) -> RecordingWriter:
        if self.kept.blocks:
            raise SpecError("more is being recorded; leave the `with` block first, or take a snapshot()")
        return self.close().kept

    def __enter__(self) -> Self:
        self.kept.blocks += 1
        opened(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        closed(self)
        self.kept.blocks -= 1

    def __repr__(self) -> str:
        return f"<RecordingSession of {self.app.app_id}, {len(self._numbers)} records>"


class Records(Sequence[Record]):
    """The records of a recording."""

    def __init__(self, recording: RecordingSession) -> None:
        self._numbers, self._kept = recording._numbers, recording.kept

    def __len__(self) -> int:
        return len(self._numbers)

    @overload
    def __getitem__(self, place: int) -> Record: ...
    @overload
    def __getitem__(self, place: slice) -> list[Record]: ...
    def __getitem__(self, place: int | slice) -> Record | list[Record]:
        numbers = self._numbers[place]
        return self._kept.record(numbers) if isinstance(numbers, int) else [self._kept.record(n) for n in numbers]

    def __repr__(self) -> str:
        return repr(list(self))


def _about(record_id: str | None = None, tags: str | None = None, meta: Any = None) -> About:
    """What is known of records, as it is kept.

    Raises:
        SpecError: metadata cannot be called so.
    """
    if meta is None:
        return About(record_id, tags or None)
    metadata = meta if isinstance(meta, Mapping) else {"meta": meta}
    check_metadata(metadata)
    return About(record_id, tags or None, metadata)
