"""How processes end: whether one has, and what its exit status says."""

import os
import signal
from subprocess import Popen


def has_exited(process: Popen[bytes]) -> bool:
    """Whether a process has exited; it is not waited for, so that its number is still its own."""
    if not hasattr(os, "waitid"):  # macOS before Python 3.13
        return process.poll() is not None
    try:
        return os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT | os.WNOHANG) is not None
    except ChildProcessError:  # another thread has waited for it
        return True


def describe_exit(status: int) -> tuple[str, str]:
    """How a process ended, in words and as a code.

    Args:
        status: its exit status, or minus the number of the signal that ended it.

    Example:
        >>> describe_exit(3), describe_exit(-9)
        (('ended with exit status 3', 'exit 3'), ('was ended by SIGKILL', 'SIGKILL'))
    """
    if status >= 0:
        return f"ended with exit status {status}", f"exit {status}"
    name = signal.Signals(-status).name if -status in {*signal.Signals} else f"signal {-status}"
    return f"was ended by {name}", name
