"""The page of a run: `evaluand run --view`.

A separate process serves it, so it costs the run nothing.
"""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

import click

STOPS: Final = "EVALUAND_VIEW_STOPS"
"""Set for the page of a run: the id of the process that the page may interrupt, as Ctrl-C does."""

_PATIENCE: Final = 5  # seconds for requests that are being answered


@contextmanager
def watch_in_browser(folder: Path) -> Iterator[None]:
    """Serves the page of a run: in a terminal until Ctrl-C, otherwise until the block ends."""
    command = [sys.executable, "-m", "evaluand.cli", "view", "--live", "--store", str(folder)]
    environment = os.environ | {STOPS: str(os.getpid())}
    # In a separate session, so that Ctrl-C interrupts only the run and the page can show how it ended. The pipe closes
    # when this process ends, however it ends, see `end_with_parent`.
    page = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=sys.stderr, env=environment, start_new_session=True)
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
        if page.stdin is not None:
            page.stdin.close()


def find_stoppable() -> int | None:
    """The id of the process that this page may interrupt: that of its parent, if the parent allows it."""
    text = os.environ.get(STOPS, "")
    return int(text) if text.isascii() and text.isdecimal() and int(text) == os.getppid() else None


def end_with_parent() -> None:
    """Ends this process when its parent ends, which closes the pipe to stdin."""

    def wait() -> None:
        sys.stdin.buffer.read()
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=wait, name="parent", daemon=True).start()


def interrupt(process: int) -> None:
    """Interrupts the run, unless it has ended and its id may belong to another process."""
    if process == os.getppid():
        os.kill(process, signal.SIGINT)
