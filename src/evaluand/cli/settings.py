"""Settings of a folder: `evaluand.toml`, or `[tool.evaluand]` in `pyproject.toml`.

    store = "results"            # --store of every command, relative to this file and in its folder
    [run]
    concurrency = 8              # options of a command by their names

The nearest such file of this user counts, from the working folder upwards to the folder of a repository. An option of
the command line or of the environment comes first.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from shlex import quote
from typing import Any, Final, NoReturn

import click

from evaluand.core.errors import SpecError, alternatives
from evaluand.core.files.paths import relative_name
from evaluand.core.files.regular import read_regular_file
from evaluand.core.user import config_folder, user_settings
from evaluand.store.addresses import Address, Place, is_address, parse_place


@dataclass(frozen=True)
class Settings:
    """What a file of settings says.

    Attributes:
        path: the file.
        values: its keys, of `pyproject.toml` those below `[tool.evaluand]`.
    """

    path: Path
    values: Mapping[str, Any]

    @property
    def store(self) -> Place | None:
        """The store of every command; None if the file names none."""
        store = self.values.get("store")
        if store is None:
            return None
        if not isinstance(store, str) or not store:
            raise SpecError(f"{self.path}: store: is {store!r}; write the path of a folder as text")
        if is_address(store):
            return parse_place(store)
        return Path(relative_name(self.path.parent / store, Path.cwd()))

    def explain_refusal(self, store: Place) -> str:
        """Why a store that the file names is not used; an empty text if it is inside the folder of the file.

        The file may come from somebody else, and commands write into the store and remove from it. So an address counts
        only if the user's own settings list it.
        """
        if isinstance(store, Address):
            if str(store) in user_settings().stores:
                return ""
            listed = f"list it in {config_folder() / 'settings.toml'}: stores = [{json.dumps(str(store))}]"
            return f"{self.path}: the store {str(store)!r} is not in a folder; {listed}, or give --store"
        if is_inside(store, self.path.parent):
            return ""
        target = quote(os.path.realpath(store))
        return (
            f"{self.path}: the store {str(store)!r} leads out of the folder of this file;"
            f" give --store {target}, or set EVALUAND_STORE"
        )

    def defaults(self, group: click.Group, ctx: click.Context, name: str) -> dict[str, Any]:
        """The default values of a command's parameters, and of those of its subcommands.

        A value that a file may not set is a function that raises: click calls it unless the option is on the command
        line or in the environment.

        Raises:
            SpecError: a key is neither a command nor an option, or a value cannot be one of the option.
        """
        commands = group.list_commands(ctx)
        for key, value in self.values.items():
            if key != "store" and not (key in commands and isinstance(value, dict)):
                known = alternatives(key, ["store", *commands])
                raise SpecError(f"{self.path}: {key}: is neither `store` nor a table of a command's options{known}")
        command = group.get_command(ctx, name)
        return self._options(command, name, self.values.get(name, {})) if command else {}

    def _options(self, command: click.Command, name: str, values: Mapping[str, Any]) -> dict[str, Any]:
        subcommands = command.commands if isinstance(command, click.Group) else {}
        options = {
            flag: option for option in command.params if isinstance(option, click.Option) for flag in _names(option)
        }
        defaults: dict[str, Any] = {"folder": str(self.store)} if self.store and "store" in options else {}
        for key, value in values.items():
            option = options.get(key.replace("_", "-"))
            if option is not None and not isinstance(value, dict):
                defaults[str(option.name)] = self._check(f"{name}.{key}", option, value)
            elif key not in subcommands or not isinstance(value, dict):
                settable = [flag for flag, option in options.items() if _is_settable(option)]
                known = alternatives(key, [*settable, *subcommands])
                raise SpecError(f"{self.path}: {name}.{key}: the command has no such option{known}")
        for key, subcommand in subcommands.items():
            defaults[key] = self._options(subcommand, f"{name}.{key}", values.get(key, {}))
        return defaults

    def _check(self, key: str, option: click.Option, value: Any) -> Any:
        if _is_written(option):
            return self._refusal(f"{key}: names a file to write, which {self.path.name} cannot; {_advise(option)}")
        if not _is_settable(option):
            return self._refusal(f"{key}: cannot be set in {self.path.name}; give it on the command line")
        is_flag = option.is_flag
        fits = isinstance(value, bool) if is_flag else isinstance(value, list) if option.multiple else True
        if not fits or (isinstance(value, bool) and not is_flag):
            form = "true or false" if is_flag else "a list" if option.multiple else "one value"
            raise SpecError(f"{self.path}: {key}: is {value!r}; give {form}")
        return value

    def _refusal(self, message: str) -> Callable[[], NoReturn]:
        """A default value that ends the command: settings may come with a checkout from somebody else."""

        def refuse() -> NoReturn:
            raise SpecError(f"{self.path}: {message}")

        return refuse


def is_inside(path: Path, folder: Path) -> bool:
    """Whether a path is in a folder, after all links are followed."""
    return Path(os.path.realpath(path)).is_relative_to(os.path.realpath(folder))


def _is_settable(option: click.Option) -> bool:
    return not option.hidden and option.name not in _NEVER and not _is_written(option)


def _is_written(option: click.Option) -> bool:
    """Whether an option names a file that a command writes.

    The file could be code that Python executes next, the configuration of git, or a source.
    """
    return isinstance(option.type, click.Path) and not option.type.exists and option.name not in _READ


def _advise(option: click.Option) -> str:
    """How to set an option that a file may not set."""
    flag = max(option.opts, key=len)
    where = f"give {flag} on the command line"
    return f"{where}, or set {option.envvar}" if option.envvar else where


def _names(option: click.Parameter) -> Iterator[str]:
    return (flag.lstrip("-") for flag in option.opts if flag.startswith("--"))


def find_settings(folder: Path) -> Settings | None:
    """The settings of the nearest folder that has any, or None.

    Raises:
        SpecError: the file is not valid TOML.
    """
    for place in (folder, *folder.parents):
        for name, keys in (("evaluand.toml", ()), ("pyproject.toml", ("tool", "evaluand"))):
            values = _read(place / name, keys)
            if values is not None:
                return Settings(place / name, values)
        if (place / ".git").exists():
            break
    return None


_NEVER: Final = (
    *("allow", "auth", "damaged", "force", "git_changes", "give_up", "host"),
    *("open_older_than", "raw", "unreferenced", "url", "yes"),
)
"""Options that only the command line may set: what may be imported, started, replaced or removed, who may
read the store over a network, and whether cells are written so that a spreadsheet executes them."""

_READ: Final = ("folder", "spec")
"""Options with a path that need not exist and is not a file to write: the store, and the pipeline of `adapt`."""

_MOST_BYTES: Final = 1 << 20
_MOST_PARTS: Final = 50
_PART: Final = rb"""(?:[\w-]+|"[^"\n]*"|'[^'\n]*')[ \t]*"""
_LONG_KEY: Final = re.compile(rb"(?<![\w-])(?:%b\.[ \t]*){%d}" % (_PART, _MOST_PARTS))
"""Keys with dots, which take quadratic time to parse."""


@lru_cache(4)
def _parse(text: bytes) -> Mapping[str, Any]:
    """Once for a process that calls several commands in one folder, since it takes longer than many a command."""
    import tomllib

    return tomllib.loads(text.decode())


def _read(path: Path, keys: tuple[str, ...]) -> Mapping[str, Any] | None:
    try:
        if hasattr(os, "getuid") and path.stat().st_uid not in (os.getuid(), 0):
            return None  # of somebody else, in a folder that others may write to
        text = read_regular_file(path, _MOST_BYTES, follow_link=True)
    except OSError:
        return None
    if keys and b"evaluand" not in text:  # most projects, whose file need not be parsed
        return None
    if _LONG_KEY.search(text):
        raise SpecError(f"{path}: has a key of more than {_MOST_PARTS} parts")
    try:
        values = _parse(text)
    except ValueError as error:  # of its syntax or encoding
        raise SpecError(f"{path}: is not valid TOML: {error}") from None
    except RecursionError:
        raise SpecError(f"{path}: is nested too deeply") from None
    for key in keys:
        found = values.get(key)
        if found is None:
            return None
        if not isinstance(found, dict):
            raise SpecError(f"{path}: {'.'.join(keys)}: is not a table")
        values = found
    return values
