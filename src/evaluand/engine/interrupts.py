"""Ctrl-C only where work can stop without losing what is done."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, Self


class DelayedInterrupts:
    """A context in which Ctrl-C waits for a block that allows it; a second Ctrl-C does not wait.

    Only the main thread receives Ctrl-C, so other threads need no delay. An interrupt that is still waiting at the end
    is raised there.
    """

    def __enter__(self) -> Self:
        self._before: Any = None
        self._is_allowed = self._is_waiting = False
        is_main = threading.current_thread() is threading.main_thread()
        if is_main and callable(before := signal.getsignal(signal.SIGINT)):
            self._before = before
            signal.signal(signal.SIGINT, self._handle)
        return self

    def __exit__(self, *_: object) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)
            self._raise_waiting()

    @contextmanager
    def allowed(self) -> Iterator[None]:
        """Lets Ctrl-C interrupt the block, also one that has come before it."""
        self._is_allowed = True
        try:
            self._raise_waiting()
            yield
        finally:
            self._is_allowed = False

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self._is_allowed or self._is_waiting:
            self._is_waiting = False
            self._before(number, frame)
        else:
            self._is_waiting = True

    def _raise_waiting(self) -> None:
        if self._is_waiting:
            self._is_waiting = False
            self._before(signal.SIGINT, None)
