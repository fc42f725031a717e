"""Where a program runs: in bubblewrap, or in an empty folder without isolation; for containers see `containers.py`."""

from __future__ import annotations

import itertools
import os
import platform
import secrets
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Final, NamedTuple

from evaluand.core.system import kill_marked
from evaluand.engine.sandbox.calls import filter_calls
from evaluand.engine.sandbox.limits import MIB, Limits


class Place(NamedTuple):
    """What a process is started with.

    Attributes:
        command: what starts Python.
        env: its complete environment.
        folder: where it starts.
        user: who it becomes, where root starts it.
        handles: open files that the command reads.
        filters: machine → filter of calls, in hexadecimal digits, where the command does not filter them.
        end: ends what may outlive the command; None where everything ends with it.
    """

    command: Sequence[str]
    env: dict[str, str]
    folder: str
    user: int | None
    handles: tuple[int, ...] = ()
    filters: Mapping[str, str] = MappingProxyType({})
    end: Callable[[], object] | None = None


@contextmanager
def in_bubblewrap(limits: Limits) -> Iterator[Place]:
    """A system that can only be read, apart from a folder in memory, and no network."""
    user = _user_of_root()
    scratch = ("--perms", "1777", "--size", str(limits.files * MIB), "--tmpfs", SCRATCH)
    with _readable(filter_calls(platform.machine())) as handles:
        filters = [part for handle in handles for part in ("--seccomp", str(handle))]
        command = [
            shutil.which(_BUBBLEWRAP) or _BUBBLEWRAP,
            *_APART,
            *_rights(user),
            *scratch,
            *_visible(),
            *_DEVICES,
            *filters,
            *_STARTED,
            sys.executable,
        ]
        yield Place(command, ENVIRONMENT | {"HOME": SCRATCH}, os.sep, user, handles)


SCRATCH: Final = "/tmp"
"""The folder that can be written to."""

ENVIRONMENT: Final = {"PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8", "PYTHONHASHSEED": "0"}
"""What a program reads of its environment, besides HOME."""

_BUBBLEWRAP: Final = "bwrap"
_APART: Final = ("--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts", "--unshare-cgroup-try")
_DEVICES: Final = ("--proc", "/proc", "--dev", "/dev", "--remount-ro", "/dev")
_STARTED: Final = ("--remount-ro", "/", "--chdir", SCRATCH, "--die-with-parent", "--")
_SYSTEM: Final = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/nix/store")
_SETTINGS: Final = ("/etc/alternatives", "/etc/ld.so.cache", "/etc/localtime")


def why_no_bubblewrap() -> str:
    """Why there is no bubblewrap; empty if it is installed."""
    if shutil.which(_BUBBLEWRAP):
        return ""
    return "bubblewrap is not installed (install it, such as with apt-get install bubblewrap)"


def _rights(user: int | None) -> Sequence[str]:
    if user is None:
        return ("--unshare-user", "--cap-drop", "ALL")
    return ("--cap-drop", "ALL", "--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID")  # until it is that user


def _visible() -> list[str]:
    """The options that show the system and the Python environment, whatever hides the folders above them outside."""
    python = sorted({sys.base_prefix, sys.base_exec_prefix, sys.prefix, sys.exec_prefix})
    paths = (*_SYSTEM, *_SETTINGS, *python)
    above = dict.fromkeys(str(folder) for path in paths for folder in [*Path(path).parents][-2::-1])
    folders = [part for folder in above for part in ("--perms", "0755", "--dir", folder)]
    return [*folders, *(part for path in paths for part in ("--ro-bind-try", path, path))]


@contextmanager
def _readable(content: bytes | None) -> Iterator[tuple[int, ...]]:
    """A pipe that holds a short content; none for None."""
    if content is None:
        yield ()
        return
    read, write = os.pipe()
    try:
        os.write(write, content)
        os.close(write)
        yield (read,)
    finally:
        os.close(read)


@contextmanager
def in_folder(limits: Limits) -> Iterator[Place]:
    """An empty folder, without isolation; nothing limits how much it can hold."""
    folder, mark, user = tempfile.mkdtemp(prefix="evaluand-"), secrets.token_hex(16), _user_of_root()
    try:
        if user is not None:
            os.chown(folder, user, user)
        yield Place([sys.executable], ENVIRONMENT | {"HOME": folder, "TMPDIR": folder, _MARK: mark}, folder, user)
    finally:
        kill_marked(f"{_MARK}={mark}")
        _remove(folder)


_MARK: Final = "EVALUAND_SANDBOX"


def _remove(folder: str) -> None:
    """Removes a folder, also one that is nested too deeply for Python, or that its owner has locked."""
    for command in (["chmod", "-R", "u+rwx", "--", folder], ["rm", "-rf", "--", folder]):
        subprocess.run(command, check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def _user_of_root() -> int | None:
    return next_user() if os.geteuid() == 0 else None


def next_user() -> int:
    """A user without any rights, whose processes are counted apart from those of other programs."""
    return _FIRST_USER + (os.getpid() * 16 + next(_users)) % _USERS


_users: Final = itertools.count()
_FIRST_USER: Final = 61184  # those that systemd, too, gives to services for as long as they run
_USERS: Final = 4336
