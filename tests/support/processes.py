"""Processes that end with the block that started them."""

from __future__ import annotations

import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


def press_ctrl_c() -> None:
    """Interrupts the main thread of this process, also where it waits."""
    signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)


@contextmanager
def open_process(*command: object, **options: Any) -> Iterator[subprocess.Popen[str]]:
    """A process whose output can be read. The end of the block kills it, so a failed test does not wait for it."""
    options = {"stdout": subprocess.PIPE} | options
    with subprocess.Popen([str(part) for part in command], text=True, **options) as process:
        try:
            yield process
        finally:
            process.kill()
