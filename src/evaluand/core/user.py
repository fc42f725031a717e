"""What belongs to the user of this machine and not to a store or a checkout: settings, a cache, and a secret key.

Nothing here comes with a store or a checkout from elsewhere, so it says what may be trusted.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
import sys
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Final

from evaluand.core.errors import SpecError, alternatives
from evaluand.core.files.regular import read_regular_file
from evaluand.core.system import BINARY, put_if_absent

_KEY_BYTES: Final = 32
_MOST_BYTES: Final = 1 << 20


def config_folder() -> Path:
    """The folder of the user's settings: `$XDG_CONFIG_HOME/evaluand`, or `~/.config/evaluand`."""
    return _folder("XDG_CONFIG_HOME", "APPDATA", ".config")


def cache_folder() -> Path:
    """The folder of what can be computed again: `$XDG_CACHE_HOME/evaluand`, or `~/.cache/evaluand`."""
    return _folder("XDG_CACHE_HOME", "LOCALAPPDATA", ".cache")


@dataclass(frozen=True)
class UserSettings:
    """What `settings.toml` in the folder of the user's settings says.

    Attributes:
        git_changes: `git-changes`, whether git is asked if the files of a checkout have changed since its commit.
        stores: the addresses of stores that a project's settings may name, see `evaluand.store.addresses`.
    """

    git_changes: bool = False
    stores: tuple[str, ...] = ()


def user_settings() -> UserSettings:
    """The settings of the user, which no store and no checkout can change.

    Raises:
        SpecError: the file is not valid TOML, has an unknown key, or a value of the wrong type.
    """
    path = config_folder() / "settings.toml"
    try:
        content = read_regular_file(path, _MOST_BYTES, follow_link=True)
    except FileNotFoundError:
        return UserSettings()
    except OSError as error:
        raise SpecError(f"{path}: {error.strerror}") from None
    return _parse_settings(path, content)


def _parse_settings(path: Path, content: bytes) -> UserSettings:
    import tomllib  # few users have settings

    try:
        values = tomllib.loads(content.decode())
    except UnicodeDecodeError:
        raise SpecError(f"{path}: is not UTF-8") from None
    except tomllib.TOMLDecodeError as error:
        raise SpecError(f"{path}: is not valid TOML: {error}") from None
    except RecursionError:
        raise SpecError(f"{path}: is nested too deeply") from None
    known = {each.name.replace("_", "-"): each.name for each in fields(UserSettings)}
    for key, value in values.items():
        if key not in known:
            raise SpecError(f"{path}: {key}: is no setting{alternatives(key, [*known])}")
        if key == "git-changes" and not isinstance(value, bool):
            raise SpecError(f"{path}: {key}: is {value!r}; give true or false")
        if key == "stores" and not (isinstance(value, list) and all(isinstance(each, str) for each in value)):
            raise SpecError(f"{path}: {key}: is {value!r}; give a list of addresses")
    return UserSettings(values.get("git-changes", False), tuple(values.get("stores", ())))


def write_private(path: Path, content: bytes) -> Path:
    """Writes a temporary file that only the user can read, which may take the place of another.

    Raises:
        OSError: the home of the user cannot be written.
    """
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    temporary = path.with_name(f".{path.name}-{secrets.token_hex(4)}.tmp")
    try:
        with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | BINARY, 0o600), "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
    except OSError:
        temporary.unlink(missing_ok=True)
        raise
    return temporary


def keyed_digest(data: bytes) -> str | None:
    """A digest that only this user can compute, as 32 hexadecimal digits.

    The key is made by the first call, in the user's settings.

    Returns:
        None if there is no key and none can be written.
    """
    key = _read_key() or _write_key()
    return None if key is None else hmac.new(key, data, hashlib.blake2b).hexdigest()[:32]


def has_key() -> bool:
    """Whether the user has the key of `keyed_digest`; makes none."""
    return _read_key() is not None


def _read_key() -> bytes | None:
    try:
        key = read_regular_file(config_folder() / "key", _KEY_BYTES, follow_link=True)
    except OSError:
        return None
    return key if len(key) == _KEY_BYTES else None


def _write_key() -> bytes | None:
    path = config_folder() / "key"
    try:
        put_if_absent(write_private(path, secrets.token_bytes(_KEY_BYTES)), path)
    except OSError:
        return None
    return _read_key()  # another process may have been first


def _folder(variable: str, on_windows: str, otherwise: str) -> Path:
    base = os.environ.get(variable) or (os.environ.get(on_windows) if sys.platform == "win32" else None)
    if base and os.path.isabs(base):
        return Path(base) / "evaluand"
    return Path(os.path.expanduser("~")) / otherwise / "evaluand"
