"""The page beside a run: `evaluand run --view`.

It is served by a process of its own, so the run spends nothing on it.
"""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

import click

STOPS: Final = "EVALUAND_VIEW_STOPS"
"""The process that the page may interrupt, as Ctrl-C does; set for the page of a run alone."""


@contextmanager
def watch_in_browser(folder: Path) -> Iterator[None]:
    """Serves the page of the run that is made meanwhile; on a terminal until Ctrl-C, else until the run ends."""
    command = [sys.executable, "-m", "evaluand.cli", "view", "--live", "--store", str(folder)]
    environment = os.environ | {STOPS: str(os.getpid())}
    # In a session of its own, so that Ctrl-C interrupts the run alone, whose end the page then shows.
    page = subprocess.Popen(command, stdout=sys.stderr, env=environment, start_new_session=True)
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


_PATIENCE: Final = 5  # seconds for requests that are being answered


def end_with(process: int) -> None:
    """Ends this process soon after its parent, which may have been killed."""

    def watch() -> None:
        while os.getppid() == process:
            time.sleep(1)
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=watch, name="parent", daemon=True).start()


def find_stopped() -> int | None:
    """The process that this page may interrupt: its parent, if that has said so."""
    text = os.environ.get(STOPS, "")
    return int(text) if text.isascii() and text.isdecimal() and int(text) == os.getppid() else None


def interrupt(process: int) -> None:
    """Interrupts the run, unless it has ended and another process may have its number."""
    if process == os.getppid():
        os.kill(process, signal.SIGINT)
