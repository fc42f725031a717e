"""The page of a run: `evaluand run --view`.

A separate process serves it, so it costs the run nothing.
"""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final

import click

from evaluand.store.addresses import Place

STOPS: Final = "EVALUAND_VIEW_STOPS"
"""Set for the page of a run: the id of the process that the page may interrupt, as Ctrl-C does."""

_PATIENCE: Final = 5  # seconds for requests that are being answered
_GLANCE: Final = 0.5  # seconds between two looks whether the run has ended


@contextmanager
def watch_in_browser(folder: Place) -> Iterator[None]:
    """Serves the page of a run: in a terminal until Ctrl-C, otherwise until the block ends."""
    command = [sys.executable, "-m", "evaluand.cli", "view", "--live", "--store", str(folder)]
    environment = os.environ | {STOPS: str(os.getpid())}
    # In a separate session, so that Ctrl-C interrupts only the run and the page can show how it ended. However this
    # process ends, the page ends too, see `end_with_parent`.
    page = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=sys.stderr, env=environment, start_new_session=True
    )
    try:
        yield
    finally:
        if sys.stdin.isatty() and page.poll() is None:
            click.echo("the page stays open until Ctrl-C", err=True)
            with suppress(KeyboardInterrupt):
                page.wait()
        page.terminate()
        try:
            page.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            page.kill()


def find_stoppable() -> int | None:
    """The id of the process that this page may interrupt: that of its parent, if the parent allows it."""
    text = os.environ.get(STOPS, "")
    return int(text) if text.isascii() and text.isdecimal() and int(text) == os.getppid() else None


def end_with_parent(parent: int) -> None:
    """Ends this process when its parent ends.

    A pipe would not tell: what the parent has forked, such as workers, may keep it open.
    """

    def wait() -> None:
        while os.getppid() == parent:
            time.sleep(_GLANCE)
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=wait, name="parent", daemon=True).start()


def interrupt(process: int) -> None:
    """Interrupts the run, unless it has ended and its id may belong to another process."""
    if process == os.getppid():
        os.kill(process, signal.SIGINT)
