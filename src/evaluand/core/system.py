"""What not every operating system and file system offers, each with its substitute or one clear sentence.

Windows has neither forks nor process groups, and ends a process that is sent signal 0; some network drives and memory
cards have no hard links. Modules import none of these names themselves, so that every module can be
imported everywhere.
"""

from __future__ import annotations

import errno
import json
import os
import platform
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

from evaluand.core.errors import EngineError, SpecError

BINARY: Final[int] = getattr(os, "O_BINARY", 0)
"""A flag for `os.open`: without it, Windows changes line ends."""

KILLED: Final[int] = getattr(signal, "SIGKILL", signal.SIGTERM)


def call_after_fork(reset: Callable[[], object]) -> None:
    """Calls a function in every forked child, where there are forks."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=reset)


def require_forks(what: str, instead: str) -> None:
    """Checks that processes can be forked.

    Args:
        what: what needs forks, the start of the message.
        instead: what the reader can do.

    Raises:
        SpecError: this system has no forks.
    """
    if not hasattr(os, "fork"):
        raise SpecError(f"{what} need forks, which this operating system ({sys.platform}) does not have; {instead}")


def working_folder() -> str:
    """The current directory; the root where it has been removed."""
    try:
        return os.getcwd()
    except OSError:
        return os.sep


@contextmanager
def keep_process_state() -> Iterator[None]:
    """A block with code of the user, after which the current folder and the mask of new files are as before."""
    folder, mask = os.getcwd(), os.umask(0o077)
    os.umask(mask)
    try:
        yield
    finally:
        os.umask(mask)
        with suppress(OSError):  # it was removed meanwhile
            os.chdir(folder)


def release_memory() -> None:
    """Gives free memory back to the system, where the C library can: after much was read, it holds most of that."""
    if sys.platform == "linux":
        import ctypes  # on use: it takes a while to import

        if trim := getattr(ctypes.CDLL(None), "malloc_trim", None):  # of glibc
            trim(0)


def kill_group(pid: int) -> None:
    """Kills the process group of a process; without groups, the process alone."""
    with suppress(ProcessLookupError, PermissionError):
        if hasattr(os, "killpg"):
            os.killpg(pid, KILLED)
        else:
            os.kill(pid, KILLED)


def kill_marked(mark: str) -> None:
    """Kills the processes that were started with a text in their environment, also those that left their group.

    Only where the system shows the environment of processes, as Linux does; a process that clears it is not found.
    """
    for _ in range(_ROUNDS):  # those found may start others meanwhile
        found = [*_find_marked(mark.encode())]
        for pid in found:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, KILLED)
        if not found:
            return


_ROUNDS: Final = 10


def _find_marked(mark: bytes) -> Iterator[int]:
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it has ended, or belongs to somebody else
            if mark in (folder / "environ").read_bytes():
                yield int(folder.name)


def is_alive(pid: int) -> bool:
    """Whether a process of this machine is alive."""
    if sys.platform == "win32":
        return _is_alive_on_windows(pid)
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


@dataclass(frozen=True, slots=True)
class ProcessIdentity:
    """Which process this is, among those of all containers and machines, now and before a crash.

    Attributes:
        boot: the start of the machine and the clock since then, which processes with an equal `boot` share; empty if
            the system does not say.
        numbers: within which process numbers are distinct: the boot and the namespace; without these the name of the
            host.
        pid: the process number.
        started: when it was started, in the units of the system; 0 if unknown.
        host: the name of the host, for messages.
    """

    boot: str
    numbers: str
    pid: int
    started: int
    host: str

    def has_ended(self) -> bool:
        """Whether the process is known to have ended; False where this process cannot know."""
        here = this_process()
        if self.numbers != here.numbers:
            return False
        if self.pid == here.pid:
            return self.started != here.started
        if not is_alive(self.pid):
            return True
        state = _read_process_state(self.pid) if self.started else None
        return state is not None and (state.started != self.started or state.is_zombie)


def this_process() -> ProcessIdentity:
    """The identity of this process."""
    global _identity
    if _identity is None or _identity.pid != os.getpid():
        _identity = _identify()
    return _identity


_identity: ProcessIdentity | None = None


def boot_seconds() -> float:
    """Seconds since the machine was started, or since another fixed moment; no change of the date moves this clock.

    On Linux it also counts while the machine sleeps. Processes with an equal `ProcessIdentity.boot` share it.
    """
    return time.clock_gettime(_BOOT_CLOCK) if _BOOT_CLOCK is not None else time.monotonic()


_BOOT_CLOCK: Final[int | None] = getattr(time, "CLOCK_BOOTTIME", None)


def _identify() -> ProcessIdentity:
    host, pid = platform.node(), os.getpid()
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        numbers = os.stat("/proc/self/ns/pid").st_ino
        clock = os.stat("/proc/self/ns/time").st_ino if os.path.exists("/proc/self/ns/time") else 0
    except OSError:
        return ProcessIdentity("", host, pid, 0, host)
    state = _read_process_state(pid)
    return ProcessIdentity(f"{boot}/{clock}", f"{boot}/{clock}/{numbers}", pid, state.started if state else 0, host)


class _ProcessState(NamedTuple):
    started: int
    is_zombie: bool


def _read_process_state(pid: int) -> _ProcessState | None:
    """The state of a process, from `/proc`; None where that is missing, hidden, or of another namespace."""
    try:
        if os.readlink("/proc/self") != str(os.getpid()):
            return None
        text = Path(f"/proc/{pid}/stat").read_bytes()
        fields = text[text.rindex(b")") + 2 :].split()  # the name of the program before may have parentheses
        return _ProcessState(int(fields[19]), fields[0] in (b"Z", b"X"))
    except (OSError, ValueError, IndexError):
        return None


def _is_alive_on_windows(pid: int) -> bool:
    """`os.kill(pid, 0)` would send Ctrl-C to the process."""
    import ctypes

    query, still_active = 0x1000, 259
    kernel: Any = ctypes.windll.kernel32  # type: ignore[attr-defined, unused-ignore]
    handle = kernel.OpenProcess(query, False, pid)
    if not handle:
        return False
    code = ctypes.c_ulong()
    kernel.GetExitCodeProcess(handle, ctypes.byref(code))
    kernel.CloseHandle(handle)
    return code.value == still_active


def read_at(handle: int, size: int, offset: int) -> bytes:
    """Up to `size` bytes of an open file from an offset, from any thread."""
    if hasattr(os, "pread"):
        return os.pread(handle, size, offset)
    with _seeking:
        os.lseek(handle, offset, os.SEEK_SET)
        return os.read(handle, size)


_seeking: Final = threading.Lock()


def put_if_absent(temporary: Path, path: Path) -> bool:
    """Gives a complete file its final name unless that exists; the temporary name is removed.

    A hard link does this in one step. On a file system without hard links a claim file excludes other processes. That
    of a process that died delays the next by `CLAIM_SECONDS`; that of another machine or container, or of a
    time before a restart, is not removed.

    Returns:
        Whether the file was put there.

    Raises:
        EngineError: a process that cannot be seen has left its claim.
    """
    try:
        os.link(temporary, path)
        return True
    except FileExistsError:
        return False
    except (AttributeError, NotImplementedError):  # a Python without os.link
        return _move_if_absent(temporary, path)
    except OSError as error:
        if error.errno not in NO_LINKS:
            raise
        return _move_if_absent(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


CLAIM_SECONDS: Final = 10.0
NO_LINKS: Final = {
    errno.EPERM,
    errno.EACCES,
    errno.EMLINK,
    errno.ENOSYS,
    errno.ENOTSUP,
    errno.EOPNOTSUPP,
    errno.EINVAL,
}
"""The errors of a hard link on a file system that has none."""


def _move_if_absent(temporary: Path, path: Path) -> bool:
    claim = path.with_name(f".{path.name}.claim")
    until = time.monotonic() + CLAIM_SECONDS
    while not path.exists():
        try:
            handle = os.open(claim, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
        except FileExistsError:
            if time.monotonic() >= until:
                _end_dead_claim(claim)
            time.sleep(0.01)
            continue
        try:
            os.write(handle, json.dumps(astuple(this_process())).encode())
            if path.exists():
                return False
            os.replace(temporary, path)
            return True
        finally:
            os.close(handle)
            claim.unlink(missing_ok=True)
    return False


def _end_dead_claim(claim: Path) -> None:
    """Removes the claim of a process that died, also one that died before it wrote who it is.

    Raises:
        EngineError: it is of another machine or container, or of a time before a restart, whose processes cannot be
            seen.
    """
    try:
        process = _read_claim(claim)
    except OSError:
        return
    if process is not None and process.numbers != this_process().numbers:
        where = f"process {process.pid} on {process.host}"
        raise EngineError(f"{claim}: {where} writes here; if it has ended, remove the file")
    if process is None or process.has_ended():
        claim.unlink(missing_ok=True)


def _read_claim(claim: Path) -> ProcessIdentity | None:
    """The process that made a claim; None if it has written nothing, or something else."""
    try:
        boot, numbers, pid, started, host = json.loads(claim.read_bytes()[:_CLAIM_BYTES])
    except (ValueError, TypeError):
        return None
    is_typed = all(isinstance(text, str) for text in (boot, numbers, host)) and type(pid) is type(started) is int
    return ProcessIdentity(boot, numbers, pid, started, host) if is_typed and 0 < pid < 1 << 31 else None


_CLAIM_BYTES: Final = 4096


def lock_file(handle: int) -> bool:
    """Locks an open file until it is closed: False if another process has locked it.

    A file system without locks excludes nobody.
    """
    try:
        import fcntl
    except ImportError:
        return _lock_on_windows(handle)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        pass
    return True


def _lock_on_windows(handle: int) -> bool:
    try:
        import msvcrt

        msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined, unused-ignore]
    except ImportError:
        return True
    except OSError:
        return False
    return True
