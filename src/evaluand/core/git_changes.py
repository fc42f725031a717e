"""Whether the files of a git checkout have changed since its commit.

Git is asked, which runs programs that the configuration of a checkout names. So it works with a temporary repository
folder that has no configuration, and only with the index and the objects of the checkout.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from evaluand.core.checkout import Checkout, read_below

_SECONDS = 5.0  # for one call of git


def find_changes(checkout: Checkout, commit: str, folder: Path) -> bool | None:
    """Whether tracked files differ from the commit, or the folder has Python files that git does not track.

    Git is asked, without any program that the checkout names: no monitor, hook, filter, submodule or transfer. It must
    be git 2.32 or later.

    Args:
        checkout: what `find_checkout` found.
        commit: its commit.
        folder: where untracked files are looked for.

    Returns:
        None if it is unknown: git is missing, fails or takes long, or only files that pass a filter may have changed.
    """
    program = shutil.which("git")
    if program is None or checkout.git is None or checkout.common is None:
        return None
    if Path(os.path.realpath(program)).is_relative_to(os.path.realpath(checkout.root)):
        return None
    with suppress(OSError, ValueError, subprocess.SubprocessError), tempfile.TemporaryDirectory(prefix="git-") as made:
        _write_repository(Path(made), checkout.common, commit)
        git = _Git(program, folder, checkout, Path(made))
        return git.has_changes()
    return None


class _Git:
    """Git with a temporary repository folder, in the work tree of a checkout."""

    def __init__(self, program: str, folder: Path, checkout: Checkout, repository: Path) -> None:
        self._program, self._folder = program, folder
        self._user_environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
        self._environment = self._user_environment | {
            "GIT_DIR": str(repository),
            "GIT_WORK_TREE": str(checkout.root),
            "GIT_INDEX_FILE": f"{checkout.git}/index",
            "GIT_OBJECT_DIRECTORY": f"{checkout.common}/objects",
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_CONFIG_SYSTEM": os.devnull,
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_ATTR_NOSYSTEM": "1",
            "GIT_NO_REPLACE_OBJECTS": "1",
            "GIT_NO_LAZY_FETCH": "1",
            "GIT_ALLOW_PROTOCOL": "",
            "GIT_TERMINAL_PROMPT": "0",
            "GIT_OPTIONAL_LOCKS": "0",
        }
        self._options: list[str] = []

    def has_changes(self) -> bool | None:
        self._options = [*_SAFE, *self._data_settings()]
        self._check_configuration()
        changed = self._call("status", "--porcelain", "-z", "--untracked-files=no", "--no-renames", *_NO_SUBMODULES)
        paths = [entry[3:] for entry in changed.split(b"\0") if entry]
        if self._call("ls-files", "-z", "--others", "--exclude-standard", "--", "*.py"):
            return True
        return None if paths and all(self._are_filtered(paths)) else bool(paths)

    def _data_settings(self) -> Iterator[str]:
        """The settings of user and checkout that say what counts as changed; none of them names a program."""
        listed = self._run(
            ("config", "-z", "--get-regexp", _DATA_SETTINGS), self._user_environment, none=1
        )  # `git config` runs nothing
        for entry in listed.split(b"\0"):
            name, separator, value = entry.decode(errors="replace").partition("\n")
            if separator:
                yield from ("-c", f"{name}={value}")

    def _check_configuration(self) -> None:
        """Raises a ValueError if git would read other settings, as versions before 2.32 do."""
        names = self._call("config", "-z", "--name-only", "--list").decode(errors="replace").split("\0")
        if unknown := [name for name in names if name and not re.fullmatch(_KNOWN_SETTINGS, name)]:
            raise ValueError(f"git reads {unknown[0]}")

    def _are_filtered(self, paths: Sequence[bytes]) -> Iterator[bool]:
        """For each path whether its content passes a filter, which is not called."""
        listed = self._call("check-attr", "-z", "--stdin", "filter", data=b"\0".join(paths)).split(b"\0")
        return (value not in (b"unspecified", b"unset") for value in listed[2::3])

    def _call(self, *arguments: str, data: bytes = b"") -> bytes:
        return self._run((*self._options, *arguments), self._environment, data)

    def _run(self, arguments: Sequence[str], environment: Mapping[str, str], data: bytes = b"", none: int = 0) -> bytes:
        """What git prints; `none` is a further exit code for no output."""
        done = subprocess.run(
            [self._program, "--no-pager", *arguments],
            cwd=self._folder,
            env=environment,
            input=data,
            capture_output=True,
            timeout=_SECONDS,
        )
        if done.returncode not in (0, none):
            raise ValueError(f"git {arguments[0]} failed")
        return done.stdout


_SAFE: Final = ("-c", "core.fsmonitor=false", "-c", f"core.hooksPath={os.devnull}", "-c", "submodule.recurse=false")
_NO_SUBMODULES: Final = ("--ignore-submodules=all",)
_DATA_SETTINGS: Final = r"^core\.(autocrlf|eol|filemode|ignorecase|symlinks|precomposeunicode|excludesfile)$"
_KNOWN_SETTINGS: Final = (
    r"core\.(autocrlf|eol|filemode|ignorecase|symlinks|precomposeunicode|excludesfile|fsmonitor|hookspath|"
    r"repositoryformatversion|bare)|submodule\.recurse|extensions\.objectformat"
)


def _write_repository(folder: Path, common: Path, commit: str) -> None:
    """A repository folder without settings, whose HEAD is a commit."""
    (folder / "refs").mkdir()
    (folder / "HEAD").write_text(f"{commit}\n")
    is_long = len(commit) > 40
    extensions = "[extensions]\n\tobjectformat = sha256\n" if is_long else ""
    (folder / "config").write_text(f"[core]\n\trepositoryformatversion = {is_long:d}\n\tbare = false\n{extensions}")
    (folder / "info").mkdir()
    for name in ("exclude", "attributes"):
        with suppress(FileNotFoundError):
            (folder / "info" / name).write_bytes(read_below(common, f"info/{name}"))
