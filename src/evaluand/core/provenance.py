"""Where an artifact came from: facts worth recording that are not part of its identity."""

import platform
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from shlex import quote
from typing import Any, Final, NamedTuple

from evaluand._version import __version__
from evaluand.core.checkout import find_checkout, read_commit
from evaluand.core.system import working_folder
from evaluand.core.user import user_settings

PACKAGES = ("numpy", "pyarrow", "pydantic", "orjson")


def provenance(origin: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Versions, platform, git commit and what the caller knows about the origin. Never environment variables."""
    return {
        "evaluand": __version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "packages": {name: _version(name) for name in PACKAGES},
        "git": _git(working_folder(), _looks.get() or user_settings().git_changes),
        "origin": dict(origin or {}),
    }


OF_CLASS: Final = "of_class"
"""In the origin: the parameters of metrics that look at one class, as those who gave the predictions meant them."""


class UntilOrigin(NamedTuple):
    """The rule for which examples were drawn at random: so many of the first ones, of which there are `of`."""

    rule: str
    drawn: int
    of: int

    def __str__(self) -> str:
        drawn = f"{self.drawn:,} of {self.of:,} examples that --until {quote(self.rule)} drew"
        return f"stopped early, after {drawn}: {AFTER_LOOKS}"


AFTER_LOOKS: Final = (
    "values, differences and their gates have intervals that hold at all looks, whichever a signature names, or none;"
    " others, as of ratings, curves and worst groups, are those of a single look, and too sure after several"
)


class ExperimentOrigin(NamedTuple):
    """What a manifest says about the experiment file that began an artifact; None where it says nothing usable."""

    path: str
    digest: str | None
    task: str | None
    limit: int | None
    where: str | None
    matches: str | None
    model: str | None
    until: UntilOrigin | None


def experiment_origin(manifest: Mapping[str, Any]) -> ExperimentOrigin | None:
    """The experiment file that began an artifact, read with types: somebody else may have written the manifest.

    Example:
        >>> origin = experiment_origin({"provenance": {"origin": {"experiment": "/me/e.yaml", "limit": "all"}}})
        >>> origin.path, origin.limit
        ('/me/e.yaml', None)
    """
    origin = read_origin(manifest)
    path, *texts = (value if isinstance(value := origin.get(name), str) else None for name in _TEXTS)
    limit = origin.get("limit")
    digest, task, where, matches, model = texts
    limit = limit if type(limit) is int else None
    until = _until_origin(origin.get("until"))
    return ExperimentOrigin(path, digest, task, limit, where, matches, model, until) if path else None


def read_origin(manifest: Mapping[str, Any]) -> Mapping[str, Any]:
    """What the caller knew about the origin; empty if that is no mapping, as somebody else may have written it."""
    facts = manifest.get("provenance")
    origin = facts.get("origin") if isinstance(facts, Mapping) else None
    return origin if isinstance(origin, Mapping) else {}


def suite_origin(manifest: Mapping[str, Any]) -> str | None:
    """The file of the suite that began an artifact; None if something else did."""
    path = read_origin(manifest).get("suite")
    return path if isinstance(path, str) else None


def _until_origin(stored: Any) -> UntilOrigin | None:
    rule, drawn, of = (stored.get(name) for name in UntilOrigin._fields) if isinstance(stored, Mapping) else (None,) * 3
    if isinstance(rule, str) and type(drawn) is int and type(of) is int and 0 < drawn <= of:
        return UntilOrigin(rule, drawn, of)
    return None


_TEXTS = ("experiment", "digest", "task", "where", "matches", "model")


@cache
def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


@contextmanager
def look_for_git_changes() -> Iterator[None]:
    """In the block, provenance says whether the files of a git checkout have changed since its commit.

    Otherwise only the user's own settings can ask for that: `git-changes = true` in `settings.toml`.
    """
    before = _looks.set(True)
    try:
        yield
    finally:
        _looks.reset(before)


_looks: ContextVar[bool] = ContextVar("_looks", default=False)


@cache
def _git(folder: str, changes: bool) -> dict[str, Any] | None:
    """The commit of the checkout of a folder, and whether it has changes; unknown is None.

    A Python file that git does not track is a change: the commit does not contain it.
    """
    checkout = find_checkout(Path(folder))
    if checkout is None:
        return None
    commit, changed = read_commit(checkout), None
    if changes and commit is not None:
        from evaluand.core.git_changes import find_changes  # on request only

        changed = find_changes(checkout, commit, Path(folder))
    return {"commit": commit, "changed": changed}
