"""Runs a program in a sandbox and says how it ended."""

from __future__ import annotations

import json
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
from functools import cache, partial
from pathlib import Path
from typing import Any, Final

from evaluand.core.errors import SpecError, TransientError
from evaluand.core.system import kill_group
from evaluand.engine.exits import describe_exit, has_exited
from evaluand.engine.sandbox import inside
from evaluand.engine.sandbox.containers import PROGRAMS, in_container, why_no_container
from evaluand.engine.sandbox.limits import MIB, Limits
from evaluand.engine.sandbox.places import Place, in_bubblewrap, in_folder, why_no_bubblewrap


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


DEFAULT: Final = Limits()
"""The limits, unless others are given."""

IMAGE: Final = "python:3.12-slim"
"""The image of containers, unless another is asked for."""


def require_sandbox(image: str = IMAGE, *, allow_unsandboxed: bool = False) -> None:
    """Checks that programs can be run here.

    Raises:
        SpecError: there is no sandbox, and running without isolation is not allowed or does not work either.
    """
    _find_place(image, allow_unsandboxed)


def run_program(
    parts: Sequence[tuple[str, str]],
    limits: Limits = DEFAULT,
    *,
    image: str = IMAGE,
    allow_unsandboxed: bool = False,
) -> Ended:
    """Runs a program and ends everything that it has started.

    Args:
        parts: names and texts, executed one after the other as one module.
        limits: what it may use.
        image: with what Python and packages it runs in a container, where there is no bubblewrap.
        allow_unsandboxed: whether it may run without isolation where there is no sandbox.

    Raises:
        SpecError: programs cannot be run here, see `require_sandbox`.
        TransientError: the sandbox did not start this time.

    Example:
        >>> ended = run_program([("sum", "total = 1 + 1"), ("check", "assert total == 3")])  # doctest: +SKIP
        >>> ended.how, ended.error, ended.where  # doctest: +SKIP
        ('raised', 'AssertionError', 'check, line 1: assert total == 3')
    """
    return _run_in(_find_place(image, allow_unsandboxed), parts, limits)


OpenPlace = Callable[[Limits], AbstractContextManager[Place]]


@cache
def _find_place(image: str, allow_unsandboxed: bool) -> OpenPlace:
    """The first place in which programs run, found out by running one."""
    if sys.platform == "win32":
        raise SpecError(f"programs in a sandbox need Linux; this operating system is {sys.platform}")
    reasons = []
    for name in ("bubblewrap", *PROGRAMS):
        place, reason = find_sandbox(name, image)
        if place is not None:
            return place
        reasons.append(reason)
    if not allow_unsandboxed:
        raise SpecError(
            f"programs that models write are run in a sandbox, and {'; '.join(reasons)};"
            " set allow_unsandboxed: true to run them without isolation"
        )
    fault = _probe(in_folder)
    if fault:
        reader = f"; another user than root must be able to read {sys.base_prefix}" if os.geteuid() == 0 else ""
        raise SpecError(f"programs cannot be run without a sandbox either: {fault}{reader}")
    return in_folder


def find_sandbox(name: str, image: str) -> tuple[OpenPlace | None, str]:
    """A sandbox in which programs run, or why there is none: bubblewrap, or a container of docker or podman."""
    if name == "bubblewrap":
        place, reason = in_bubblewrap, why_no_bubblewrap()
        needs = "; it needs version 0.7 and the right to make namespaces"
    else:
        place, reason, needs = partial(in_container, name, image), why_no_container(name, image), ""
    if reason:
        return None, reason
    fault = _probe(place)
    return (None, f"{name} does not work here ({fault}{needs})") if fault else (place, "")


def _probe(place: OpenPlace) -> str:
    """Why no program runs in a place; empty if one does."""
    try:
        ended = _run_in(place, [("probe", _PROBE)], Limits())
    except TransientError as error:
        return str(error)
    return "" if ended.how == "finished" else ended.error or ended.how


_PROBE: Final = "import decimal, json, math, random, re\nopen('probe', 'x').close()"


def _run_in(place: OpenPlace, parts: Sequence[tuple[str, str]], limits: Limits) -> Ended:
    token = secrets.token_hex(16)
    read, write = os.pipe()
    try:
        with place(limits) as found:
            request = {
                "token": token,
                "user": found.user,
                "filters": dict(found.filters),
                "limits": limits.of_processes,
                "parts": parts,
            }
            try:
                process = subprocess.Popen(
                    [*found.command, *_ALONE, "-c", _INSIDE],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=write,
                    bufsize=0,
                    cwd=found.folder,
                    env=found.env,
                    pass_fds=found.handles,
                    start_new_session=True,
                )
            finally:
                os.close(write)
            watched = _Watched(process, read, json.dumps(request).encode() + b"\n", limits)
            try:
                over = watched.wait()
            finally:
                status = watched.end(found.end)
            if not watched.has_begun:
                raise TransientError(f"the sandbox did not start: {watched.said_instead or f'status {status}'}")
            return _ended(status if over is None else over, watched.answer, token, bytes(watched.output), limits)
    finally:
        os.close(read)


_ALONE: Final = ("-s", "-P", "-B")  # as -I, but the seed of hashes is read, so that sets have the same order each time
_INSIDE: Final = Path(inside.__file__).read_text(encoding="utf-8")


class _Watched:
    """A process that is sent a request, and whose answer and output are read, up to their limits."""

    def __init__(self, process: subprocess.Popen[bytes], read: int, request: bytes, limits: Limits) -> None:
        self.process = process
        self.said = b""
        self.output = bytearray()
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

    @property
    def has_begun(self) -> bool:
        """Whether the program has begun to be executed."""
        return inside.BEGUN in self.said

    @property
    def answer(self) -> bytes:
        """What was answered since then."""
        return self.said.partition(inside.BEGUN)[2]

    def wait(self) -> str | None:
        """Waits until the program has answered, exceeded a limit or ended.

        Returns:
            `answered`, or the name of the limit; None if it has ended without an answer, or has not begun.
        """
        until = time.monotonic() + _LONGEST_START
        has_begun = is_over = False
        while b"\n" not in self.answer:
            if self.has_begun and not has_begun:
                has_begun, until = True, time.monotonic() + self._limits.timeout
            left = until - time.monotonic()
            if left <= 0:
                return "timeout" if has_begun else None
            ready = self._look(0 if is_over else min(left, _LOOK))
            if len(self.output) > self._limits.output * MIB:
                return "output"
            if is_over and not ready:
                return None
            is_over = has_exited(self.process)
        return "answered"

    def end(self, end: Callable[[], object] | None) -> int:
        """Ends all that is left of the program; returns its exit status, or minus the signal.

        Args:
            end: what does so where the process does not, once its input ends.
        """
        if self._unsent:
            self._selector.unregister(self._stdin)
        with suppress(OSError):
            self._stdin.close()
        if end is not None:
            self._await_exit()
            if not has_exited(self.process):
                end()
        kill_group(self.process.pid)  # before it is waited for, while the number is still its own
        status = self.process.wait()
        self._selector.close()
        self._stdout.close()
        return status

    @property
    def said_instead(self) -> str:
        """What was said by what should have executed the program, such as the reason why it did not."""
        said = (bytes(self.output) + self.said).decode("utf-8", "replace")
        return " ".join(said.split())[-inside.LONGEST :]

    def _look(self, seconds: float) -> bool:
        """Sends and reads what can be sent and read by then; returns whether there was anything."""
        ready = self._selector.select(seconds)
        for key, _ in ready:
            key.data(key.fd)
        return bool(ready)

    def _await_exit(self) -> None:
        """Waits until the process has ended by itself, which it cannot as long as its output is not read."""
        until = time.monotonic() + _LONGEST_END
        while not has_exited(self.process) and time.monotonic() < until:
            self._look(_LOOK)
            self.output = self.output[: self._limits.output * MIB + 1]

    def _send(self, handle: int) -> None:
        try:
            self._unsent = self._unsent[os.write(handle, self._unsent[:_CHUNK]) :]
        except BlockingIOError:
            return
        except BrokenPipeError:  # it has ended
            self._unsent = self._unsent[:0]
        if not self._unsent:
            self._selector.unregister(handle)

    def _read_output(self, handle: int) -> None:
        self.output += self._read(handle)

    def _read_answer(self, handle: int) -> None:
        self.said = (self.said + self._read(handle))[:_LONGEST_ANSWER]
        if len(self.said) == _LONGEST_ANSWER:
            self.said = inside.BEGUN + b"\n"  # not what `inside.py` writes

    def _read(self, handle: int) -> bytes:
        piece = os.read(handle, _CHUNK)
        if not piece:
            self._selector.unregister(handle)
        return piece


_CHUNK: Final = 1 << 16
_LONGEST_START: Final = 60.0  # seconds
_LONGEST_END: Final = 10.0
_LOOK: Final = 0.05  # seconds after which it is looked whether a process has exited whose children hold its pipes
_LONGEST_ANSWER: Final = 1 << 16


def _ended(over: str | int, answer: bytes, token: str, output: bytes, limits: Limits) -> Ended:
    """How a program ended, from what `_Watched.wait` says, or else from the exit status."""
    shown = output[: limits.output * MIB].decode("utf-8", "replace")
    if over == "answered":
        line, _, _ = answer.partition(b"\n")
        if line == token.encode():
            return Ended("finished", output=shown)
        return Ended(*_read_answer(line, limits), output=shown)
    if over == "timeout":
        return Ended("timeout", f"took longer than {limits.timeout:g} s", output=shown)
    if over == "output":
        return Ended("output", f"wrote more than {limits.output} MiB", output=shown)
    return Ended(*_read_status(int(over), limits), output=shown)


def _read_answer(line: bytes, limits: Limits) -> tuple[str, str, str | None]:
    """How the program says that it ended: `how`, `error` and `where`."""
    try:
        said: Any = json.loads(line)
        how, error, where, status = (said.get(name) for name in ("how", "error", "where", "status"))
    except (ValueError, AttributeError, RecursionError):
        how, error, where, status = None, None, None, None
    if how == "ended" and isinstance(status, int):
        return *_read_status(status, limits), None
    if how not in ("raised", "memory") or not isinstance(error, str):
        return "exited", "gave an answer in place of the sandbox", None
    return how, _text(error), _text(where) if isinstance(where, str) else None


def _read_status(status: int, limits: Limits) -> tuple[str, str]:
    """What an exit status says, or minus the signal: `how` and `error`."""
    number = -status if status < 0 else status - _BY_SIGNAL if status > _BY_SIGNAL else 0
    if number == signal.SIGXCPU:
        return "timeout", f"used more than {limits.processor} s of the processor"
    if number:
        return "killed", describe_exit(-number)[0]
    return "exited", f"exited with status {status} before its end"


_BY_SIGNAL: Final = 128
"""What a shell, and so bubblewrap, adds to the number of the signal that ended a program."""


def _text(text: str) -> str:
    """A text that can be stored, without halves of characters, and is the same each time, without addresses."""
    return _ADDRESS.sub("0x…", text.encode("utf-8", "replace").decode())


_ADDRESS: Final = re.compile("0x[0-9a-f]{6,}")
