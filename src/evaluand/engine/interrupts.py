"""Ctrl-C only where work can stop without losing what is done."""

import signal
import threading
import time
from types import FrameType
from typing import Any, Final, Self

STUCK: Final = 1.0
"""Seconds after which a second Ctrl-C does not wait; before, it counts as the same one, which may come in several."""


class DelayedInterrupts:
    """A context in which Ctrl-C waits until it is allowed; a second one after `STUCK` seconds does not wait.

    Only the main thread receives Ctrl-C, so other threads need no delay. An interrupt that is still waiting at the end
    is raised there.
    """

    def __enter__(self) -> Self:
        self._before: Any = None
        self._is_allowed = False
        self._since: float | None = None  # when an interrupt came that waits
        is_main = threading.current_thread() is threading.main_thread()
        if is_main and callable(before := signal.getsignal(signal.SIGINT)):
            self._before = before
            signal.signal(signal.SIGINT, self._handle)
        return self

    def __exit__(self, *_: object) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)
            self._raise_waiting()

    def allow(self) -> None:
        """Lets Ctrl-C interrupt what follows, until `delay`; raises one that waits."""
        self._is_allowed = True
        self._raise_waiting()

    def delay(self) -> None:
        """Lets Ctrl-C wait again."""
        self._is_allowed = False

    def _handle(self, number: int, frame: FrameType | None) -> None:
        now = time.monotonic()
        if self._is_allowed or (self._since is not None and now - self._since > STUCK):
            self._is_allowed, self._since = False, None
            self._before(number, frame)
        elif self._since is None:
            self._since = now

    def _raise_waiting(self) -> None:
        if self._since is not None:
            self._is_allowed, self._since = False, None
            self._before(signal.SIGINT, None)
