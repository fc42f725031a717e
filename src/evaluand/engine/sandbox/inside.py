"""What runs inside the sandbox: reads the program, limits itself, executes the program, and says how it ended.

It is started as the text of `python -c`, so that it needs no file, and imports only the standard library. The request
is a JSON object, the first line of standard input. The answers are two lines on what is standard error at first, which
then becomes standard output: `BEGUN`, and how the program ended. That it has come to its end is believed only with the
token of the request.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
import types
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, TextIO

MODULE: Final = "program"
"""The module that the program is; not `__main__`, so what a file does only as a script is left out."""

BEGUN: Final = b"[begun]\n"
"""Said before the program is executed; what comes before is not said by it, nor by this module."""

OUT_OF_MEMORY: Final = b'{"how": "memory", "error": "MemoryError"}'
"""Written down beforehand, since there is no memory left to make it."""

LONGEST: Final = 500
"""Characters of a line that describes an error."""


def main() -> None:
    write, leave = os.write, os._exit  # as they are before the program can replace them
    if os.getpid() == 1:
        _become_child()
    request = json.loads(sys.stdin.buffer.readline())
    with open(os.devnull, "rb") as nothing:
        os.dup2(nothing.fileno(), 0)
    pipe = os.dup(2)
    os.dup2(1, 2)
    _become(request["user"])
    _refuse(request["filters"].get(os.uname().machine))
    write(pipe, BEGUN)
    _limit(request["limits"])
    # the token is an argument that waits for the others: no variable holds it while the program is executed
    _end(write, leave, pipe, request.pop("token").encode(), _fail(request["parts"]))


def _become_child() -> None:
    """Goes on in a child of the first process of a container, which ends all others when it ends.

    That is when the child has ended, of which it tells, or nobody is left at the other end of standard input.
    """
    import threading

    child = os.fork()
    if child == 0:
        return
    threading.Thread(target=_leave_on_hangup, daemon=True).start()
    ended = 0
    while ended != child:
        ended, status = os.wait()
    code = os.waitstatus_to_exitcode(status)
    answer = {"how": "ended", "status": code if code >= 0 else 128 - code}  # as a shell says it
    os.write(2, json.dumps(answer).encode() + b"\n")  # at once: a container takes its time to end
    os._exit(0)


def _leave_on_hangup() -> None:
    import select

    watched = select.poll()
    watched.register(0, 0)
    watched.poll()
    os._exit(1)


def _become(user: int | None) -> None:
    """Gives up the rights of root."""
    if user is not None:
        os.setgroups([])
        os.setgid(user)
        os.setuid(user)


def _refuse(calls: str | None) -> None:
    """Has the kernel refuse what a filter of seccomp(2) refuses."""
    if calls is None:
        return
    import ctypes

    class Filter(ctypes.Structure):
        _fields_ = (("length", ctypes.c_ushort), ("lines", ctypes.c_char_p))

    lines = bytes.fromhex(calls)
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(SET_SECCOMP, ctypes.c_ulong(BY_FILTER), ctypes.byref(Filter(len(lines) // 8, lines))):
        raise OSError(ctypes.get_errno(), "the kernel does not filter calls")


SET_SECCOMP, BY_FILTER = 22, 2  # of linux/prctl.h and linux/seccomp.h


def _limit(limits: Mapping[str, int]) -> None:
    import resource

    for name, most in limits.items():
        kind = getattr(resource, name, None)
        if kind is not None:
            hard = most + (name == "RLIMIT_CPU")  # reaching it is SIGKILL, and SIGXCPU before
            with suppress(ValueError, OSError):  # the limit is lower already, or this system cannot set it
                resource.setrlimit(kind, (most, hard))
    with suppress(OSError), open("/proc/self/oom_score_adj", "w") as score:  # the first to go if memory is short
        score.write("1000")


def _end(
    write: Callable[[int, bytes], int], leave: Callable[[int], None], pipe: int, token: bytes, failure: bytes | None
) -> None:
    write(pipe, (token if failure is None else failure) + b"\n")
    leave(0)


def _fail(parts: Sequence[tuple[str, str]]) -> bytes | None:
    """Executes the parts; returns None, or the answer that says how they failed."""
    streams = sys.stdout, sys.stderr
    try:
        failure = _execute(parts)
        _flush(streams)
        return None if failure is None else json.dumps(failure).encode()
    except MemoryError:
        return OUT_OF_MEMORY


def _execute(parts: Sequence[tuple[str, str]]) -> dict[str, Any] | None:
    """Executes the parts as one module; returns None, or what was raised."""
    run, describe = exec, _describe  # as they are before the program can replace them
    try:
        codes = [compile(text, name, "exec", dont_inherit=True) for name, text in parts]
        module = sys.modules[MODULE] = types.ModuleType(MODULE)
        namespace = vars(module)
        for code in codes:
            run(code, namespace)
    except MemoryError:
        raise
    except BaseException as error:
        return describe(error, dict(parts))
    return None


def _flush(streams: Iterable[TextIO]) -> None:
    for stream in streams:
        with suppress(OSError, ValueError):  # the program has closed it
            stream.flush()


def _describe(error: BaseException, parts: Mapping[str, str]) -> dict[str, Any]:
    message = " ".join(traceback.format_exception_only(error)[-1].split())
    return {"how": "raised", "error": message[:LONGEST], "where": _place(error, parts)}


def _place(error: BaseException, parts: Mapping[str, str]) -> str | None:
    """The last line of the program that was being executed, or the one that cannot be read."""
    found = [(name, line) for name, line in _lines(error) if name in parts]
    if not found:
        return None
    name, line = found[-1]
    text = " ".join(parts[name].splitlines()[line - 1 : line]).strip()
    return f"{name}, line {line}: {text}"[:LONGEST]


def _lines(error: BaseException) -> Iterator[tuple[str, int]]:
    for frame, line in traceback.walk_tb(error.__traceback__):
        yield frame.f_code.co_filename, line
    if isinstance(error, SyntaxError):
        yield str(error.filename), error.lineno or 0


if __name__ == "__main__":
    main()
