"""Forked processes for which no test waits for ever: one that does not end prints where it is, and fails."""

from __future__ import annotations

import faulthandler
import functools
import gc
import os
import signal
import traceback
import warnings
from collections.abc import Callable
from typing import ParamSpec

from support.patience import PATIENCE

P = ParamSpec("P")


def start_fork(call: Callable[[], object]) -> int:
    """The number of a process forked from this one that calls a function and ends."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of Python 3.12: the process has several threads
        child = os.fork()
    if child:
        return child
    code = 1
    try:
        _end_after(PATIENCE)
        gc.freeze()  # what earlier tests left is not closed here, where its numbers may be those of other files
        call()
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


def in_fork(test: Callable[P, None]) -> Callable[P, None]:
    """Runs a test in a forked process, since it sends signals to its own process or changes its limits or folder.

    An interrupt that comes late, or a limit that also holds for what pytest writes, would end all other tests. A test
    that must be skipped is skipped by a mark.
    """

    @functools.wraps(test)
    def run(*args: P.args, **options: P.kwargs) -> None:
        assert call_in_fork(lambda: test(*args, **options)) == 0, "its process has failed: see what it has printed"

    return run


def _end_after(seconds: float) -> None:
    """Prints what all threads do after some time, and ends the process, also where a lock of C is never released."""
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    faulthandler.register(signal.SIGALRM, chain=True)
    signal.alarm(int(seconds))


def end_fork(child: int) -> int:
    """Waits for a forked process; how it ended (below 0: by which signal)."""
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def call_in_fork(call: Callable[[], object]) -> int:
    """Calls a function in a forked process and waits for it; how it ended."""
    return end_fork(start_fork(call))
