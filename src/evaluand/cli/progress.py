"""What commands write to stderr while they work: progress and notes.

A bar on a terminal, otherwise a line every few seconds. The work only counts; another thread reads the counts. So
progress costs the work nothing, however fast its units are, and steps that end at once show nothing.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress

from rich.console import Console, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from evaluand.aggregation.aggregator import MetricRefused
from evaluand.cli.notes import print_notes
from evaluand.cli.output import console
from evaluand.engine.keyed_work import Tally
from evaluand.evaluation.evaluator import ScorerFailed
from evaluand.report.text import safe, seconds

_QUICK = 0.3
_FRAME = 0.1


def show_notes() -> AbstractContextManager[None]:
    """A block in which evaluand's warnings are written as one line each, without those that tables of results list."""
    return print_notes(ScorerFailed, MetricRefused)


def display(as_json: bool, quiet: bool) -> Display:
    """Progress on stderr; none with --quiet, or with --json if stderr is not a terminal."""
    watched = console(err=True)
    return Display(None if quiet or (as_json and not watched.is_terminal) else watched)


class Display:
    """Shows tallies; a `keyed_work.Progress`.

    Args:
        console: the console to write to; None shows nothing.
        every: seconds between two lines if the console is not a terminal.
        first: seconds before the first line, which shows that a step that still loads a library is running.

    Attributes:
        last: the latest tally, to report how far an interrupted step was.
    """

    def __init__(self, console: Console | None, *, every: float = 10.0, first: float = 3.0) -> None:
        self.last: Tally | None = None
        self._console, self._every, self._first = console, every, min(first, every)

    @contextmanager
    def __call__(self, tally: Tally) -> Iterator[None]:
        self.last = tally
        if self._console is None:
            yield
            return
        ended = threading.Event()
        show = self._bar if self._console.is_terminal else self._lines
        thread = threading.Thread(target=show, args=(self._console, _Speed(tally), ended), name="progress", daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()

    def _bar(self, console: Console, pace: _Speed, ended: threading.Event) -> None:
        if ended.wait(_QUICK):
            return
        with Live(console=console, auto_refresh=False, transient=True, get_renderable=pace.bar) as live:
            while not ended.wait(_FRAME):
                live.refresh()

    def _lines(self, console: Console, pace: _Speed, ended: threading.Event) -> None:
        if ended.wait(self._first):
            return
        with suppress(OSError, ValueError):  # nobody reads any more; the work continues
            while True:
                console.file.write(pace.line() + "\n")
                console.file.flush()
                if ended.is_set():
                    return
                ended.wait(self._every)


class _Speed:
    """A tally with its speed and remaining time."""

    def __init__(self, tally: Tally) -> None:
        self._tally, self._started = tally, time.monotonic()

    def bar(self) -> RenderableType:
        tally = self._tally
        grid = Table.grid(padding=(0, 1), expand=True)
        grid.add_column(no_wrap=True)
        grid.add_column(ratio=1)
        grid.add_column(no_wrap=True)
        bar = ProgressBar(total=tally.total or 1, completed=tally.done if tally.total else 1)
        state = Text(f"{_done(tally)}{self._speed()}")
        if tally.failed:
            state.append(f"  {tally.failed:,} failed", "red")
        state.append(_workers(tally))
        grid.add_row(Text(safe(tally.label, 30)), bar, state)
        return grid

    def line(self) -> str:
        failed = f", {self._tally.failed:,} failed" if self._tally.failed else ""
        return f"{safe(self._tally.label, 60)}: {_done(self._tally)}{failed}{self._speed()}{_workers(self._tally)}"

    def _speed(self) -> str:
        tally, passed = self._tally, time.monotonic() - self._started
        if not tally.called or passed <= 0:
            return ""
        rate = tally.called / passed
        shown = f"{rate:,.0f}/s" if rate >= 10 else f"{rate:.1f}/s" if rate >= 1 else f"{rate * 60:.1f}/min"
        left = (tally.total - tally.done) / rate
        return f"  {shown}" + (f"  {seconds(round(left))} left" if left >= 1 else "")


def _workers(tally: Tally) -> str:
    """How many workers of a cluster have done something, and how evenly."""
    counts = sorted(tally.by_worker.copy().values())
    return f"  {len(counts)} workers, {counts[0]:,} to {counts[-1]:,} each" if len(counts) > 1 else ""


def _done(tally: Tally) -> str:
    return f"{tally.done:,} of {tally.total:,}"
