"""Runs a program in a sandbox and says how it ended."""

from __future__ import annotations

import json
import math
import os
import re
import secrets
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

from evaluand.core.errors import SpecError
from evaluand.core.system import kill_group
from evaluand.engine.sandbox.places import Place, find_bubblewrap, in_bubblewrap, in_folder

MIB: Final = 1 << 20


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What a program may use.

    Attributes:
        timeout: seconds on the clock, and of processor time for each of its processes.
        memory: MiB of address space for each of its processes.
        processes: how many it may have at once, threads included.
        files: MiB of each file it writes, and of all of them together in bubblewrap.
        output: MiB it may write to standard output and standard error.
    """

    timeout: float = 10.0
    memory: int = 1024
    processes: int = 64
    files: int = 64
    output: int = 1


@dataclass(frozen=True, slots=True)
class Ended:
    """How a program ended.

    Attributes:
        how: `finished` (its last line was executed), `raised` (an error ended it), `exited` (it left before its last
            line), `killed` (by a signal), or the limit that ended it: `timeout`, `memory`, `output`.
        error: why, in one line; None if it has finished.
        where: the part, the number and the text of the last line, if an error ended it.
        output: what it wrote.
    """

    how: str
    error: str | None = None
    where: str | None = None
    output: str = ""


def require_sandbox(*, allow_unsandboxed: bool = False) -> None:
    """Checks that programs can be run here.

    Raises:
        SpecError: there is no sandbox, and running without isolation is not allowed or does not work either.
    """
    _find_place(allow_unsandboxed)


def run_program(
    parts: Sequence[tuple[str, str]], limits: Limits = Limits(), *, allow_unsandboxed: bool = False
) -> Ended:
    """Runs a program and ends everything that it has started.

    Args:
        parts: names and texts, executed one after the other as one module.
        limits: what it may use.
        allow_unsandboxed: whether it may run without isolation where there is no sandbox.

    Raises:
        SpecError: programs cannot be run here, see `require_sandbox`.

    Example:
        >>> ended = run_program([("sum", "total = 1 + 1"), ("check", "assert total == 3")])  # doctest: +SKIP
        >>> ended.how, ended.error, ended.where  # doctest: +SKIP
        ('raised', 'AssertionError', 'check, line 1: assert total == 3')
    """
    return _run_in(_find_place(allow_unsandboxed), parts, limits)


OpenPlace = Callable[[int], AbstractContextManager[Place]]


@cache
def _find_place(allow_unsandboxed: bool) -> OpenPlace:
    """The first place in which programs run, found out by running one."""
    if sys.platform == "win32":
        raise SpecError(f"programs in a sandbox need Linux; this operating system is {sys.platform}")
    reason = "bubblewrap is not installed; install it, such as with apt-get install bubblewrap"
    if find_bubblewrap():
        fault = _probe(in_bubblewrap)
        if not fault:
            return in_bubblewrap
        reason = f"bubblewrap does not work here ({fault}); it needs version 0.7 and the right to make namespaces"
    if not allow_unsandboxed:
        raise SpecError(
            f"programs that models write are run in a sandbox, and {reason},"
            " or set allow_unsandboxed: true to run them without isolation"
        )
    fault = _probe(in_folder)
    if fault:
        reader = f"; another user than root must be able to read {sys.base_prefix}" if os.geteuid() == 0 else ""
        raise SpecError(f"programs cannot be run without a sandbox either: {fault}{reader}")
    return in_folder


def _probe(place: OpenPlace) -> str:
    """Why no program runs in a place; empty if one does."""
    ended = _run_in(place, [("probe", "import decimal, json, math, random, re")], Limits())
    if ended.how == "finished":
        return ""
    said = ended.output.strip().splitlines()
    return said[-1] if said else ended.error or ended.how


def _run_in(place: OpenPlace, parts: Sequence[tuple[str, str]], limits: Limits) -> Ended:
    token = secrets.token_hex(16)
    read, write = os.pipe()
    try:
        with place(limits.files * MIB) as found:
            request = {
                "pipe": write,
                "token": token,
                "user": found.user,
                "limits": _resources(limits),
                "parts": parts,
            }
            try:
                process = subprocess.Popen(
                    [*found.command, sys.executable, *_ALONE, "-c", _INSIDE],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                    bufsize=0,
                    cwd=found.folder,
                    env=found.env,
                    pass_fds=[write, *found.handles],
                    start_new_session=True,
                )
            finally:
                os.close(write)
            watched = _Watched(process, read, json.dumps(request).encode(), limits)
            try:
                over = watched.wait()
            finally:
                status = watched.end()
            return _ended(status if over is None else over, watched.answer, token, watched.output, limits)
    finally:
        os.close(read)


_ALONE: Final = ("-s", "-P", "-B")  # as -I, but the seed of hashes is read, so that sets have the same order each time
_INSIDE: Final = Path(__file__).with_name("inside.py").read_text(encoding="utf-8")


def _resources(limits: Limits) -> dict[str, int]:
    seconds = math.ceil(limits.timeout)
    return {
        "RLIMIT_CORE": 0,
        "RLIMIT_CPU": seconds,
        "RLIMIT_FSIZE": limits.files * MIB,
        "RLIMIT_NOFILE": _OPEN_FILES,
        "RLIMIT_NPROC": limits.processes,
        "RLIMIT_AS": limits.memory * MIB,
    }


_OPEN_FILES: Final = 256


class _Watched:
    """A process that is sent a request, and whose answer and output are read, up to their limits."""

    def __init__(self, process: subprocess.Popen[bytes], read: int, request: bytes, limits: Limits) -> None:
        self.process = process
        self.answer = b""
        self.output = b""
        self._unsent = memoryview(request)
        self._limits = limits
        self._selector = selectors.DefaultSelector()
        assert process.stdin is not None
        assert process.stdout is not None
        os.set_blocking(process.stdin.fileno(), False)
        self._stdin, self._stdout = process.stdin, process.stdout
        self._selector.register(process.stdin, selectors.EVENT_WRITE, self._send)
        self._selector.register(process.stdout, selectors.EVENT_READ, self._read_output)
        self._selector.register(read, selectors.EVENT_READ, self._read_answer)

    def wait(self) -> str | None:
        """Waits until the program has answered, exceeded a limit or ended.

        Returns:
            `answered`, or the name of the limit; None if it has ended without an answer.
        """
        until = time.monotonic() + self._limits.timeout
        has_exited = False
        while b"\n" not in self.answer:
            left = until - time.monotonic()
            if left <= 0:
                return "timeout"
            ready = self._selector.select(0 if has_exited else min(left, _LOOK))
            for key, _ in ready:
                key.data(key.fd)
            if len(self.output) > self._limits.output * MIB:
                return "output"
            if has_exited and not ready:
                return None
            has_exited = self._has_exited()
        return "answered"

    def end(self) -> int:
        """Ends all that is left of the program; returns its exit status, or minus the signal."""
        kill_group(self.process.pid)  # before it is waited for, while the number is still its own
        status = self.process.wait()
        self._selector.close()
        self._stdout.close()
        with suppress(OSError):
            self._stdin.close()
        return status

    def _has_exited(self) -> bool:
        if not hasattr(os, "waitid"):  # macOS before Python 3.13
            return self.process.poll() is not None
        return os.waitid(os.P_PID, self.process.pid, os.WEXITED | os.WNOWAIT | os.WNOHANG) is not None

    def _send(self, handle: int) -> None:
        try:
            self._unsent = self._unsent[os.write(handle, self._unsent[:_CHUNK]) :]
        except BlockingIOError:
            return
        except BrokenPipeError:  # it has ended
            self._unsent = self._unsent[:0]
        if not self._unsent:
            self._selector.unregister(handle)
            self._stdin.close()

    def _read_output(self, handle: int) -> None:
        self.output += self._read(handle)

    def _read_answer(self, handle: int) -> None:
        self.answer = (self.answer + self._read(handle))[:_LONGEST_ANSWER]
        if len(self.answer) == _LONGEST_ANSWER:
            self.answer = b"\n"  # not what `inside.py` writes

    def _read(self, handle: int) -> bytes:
        piece = os.read(handle, _CHUNK)
        if not piece:
            self._selector.unregister(handle)
        return piece


_CHUNK: Final = 1 << 16
_LOOK: Final = 0.05  # seconds after which it is looked whether a process has exited whose children hold its pipes
_LONGEST_ANSWER: Final = 1 << 16


def _ended(over: str | int, answer: bytes, token: str, output: bytes, limits: Limits) -> Ended:
    """How a program ended, from what `_Watched.wait` says, or else from the exit status."""
    shown = output[: limits.output * MIB].decode("utf-8", "replace")
    if over == "answered":
        line, _, _ = answer.partition(b"\n")
        return Ended("finished", output=shown) if line == token.encode() else Ended(*_read_answer(line), output=shown)
    if over == "timeout":
        return Ended("timeout", f"took longer than {limits.timeout:g} s", output=shown)
    if over == "output":
        return Ended("output", f"wrote more than {limits.output} MiB", output=shown)
    status = int(over)
    number = -status if status < 0 else status - _BY_SIGNAL if status > _BY_SIGNAL else 0
    if number == signal.SIGXCPU:
        return Ended("timeout", f"used more than {math.ceil(limits.timeout)} s of the processor", output=shown)
    if number:
        return Ended("killed", f"was ended by {_signal_name(number)}", output=shown)
    return Ended("exited", f"exited with status {status} before its end", output=shown)


_BY_SIGNAL: Final = 128
"""What bubblewrap, as a shell does, adds to the number of the signal that ended a program."""


def _read_answer(line: bytes) -> tuple[str, str, str | None]:
    """How the program says that it ended: `how`, `error` and `where`."""
    try:
        said: Any = json.loads(line)
        how, error, where = said["how"], said["error"], said.get("where")
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError):
        how, error, where = None, None, None
    if how not in ("raised", "memory") or not isinstance(error, str):
        return "exited", "gave an answer in place of the sandbox", None
    return how, _text(error), _text(where) if isinstance(where, str) else None


def _text(text: str) -> str:
    """A text that can be stored, without halves of characters, and is the same each time, without addresses."""
    return _ADDRESS.sub("0x…", text.encode("utf-8", "replace").decode())


_ADDRESS: Final = re.compile("0x[0-9a-f]{6,}")


def _signal_name(number: int) -> str:
    return signal.Signals(number).name if number in {*signal.Signals} else f"signal {number}"
