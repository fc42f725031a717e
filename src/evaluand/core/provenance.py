"""Where an artifact came from: facts worth recording that are not part of its identity."""

import os
import platform
import subprocess
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from evaluand._version import __version__

PACKAGES = ("numpy", "pyarrow", "pydantic", "orjson")


def provenance(origin: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Versions, platform, git commit and what the caller knows about the origin. Never environment variables."""
    return {
        "evaluand": __version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "packages": {name: _version(name) for name in PACKAGES},
        "git": _git(os.getcwd()),
        "origin": dict(origin or {}),
    }


def origins(manifest: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The (kind, id) of each artifact that an artifact was made from.

    Example:
        >>> list(origins({"kind": "runs", "spec": {"dataset": "3f2a"}}))
        [('datasets', '3f2a')]
    """
    kind, spec, made = manifest["kind"], manifest["spec"], manifest.get("provenance") or {}
    if kind == "runs":
        yield "datasets", spec["dataset"]
    elif kind == "evaluations":
        yield "runs", made["run"]
    elif kind in ("aggregations", "comparisons"):
        yield from (("evaluations", id) for id in made["evaluations"])
    elif kind == "recordings":
        yield from ((of, made[of[:-1]]) for of in ("runs", "evaluations") if made.get(of[:-1]))


@cache
def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


@cache
def _git(folder: str) -> dict[str, Any] | None:
    """The commit of the working folder and whether it has changes, where it is a git checkout.

    A Python file that git does not track is a change: the commit does not contain it.
    """
    try:
        commit = _ask_git(folder, "rev-parse", "HEAD").strip()
        changed = bool(_ask_git(folder, "status", "--porcelain", "--untracked-files=no").strip())
        changed = changed or bool(_ask_git(folder, "ls-files", "--others", "--exclude-standard", "*.py").strip())
    except (OSError, subprocess.SubprocessError):
        return None
    return {"commit": commit, "changed": changed}


def _ask_git(folder: str, *arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=folder, capture_output=True, text=True, check=True, timeout=5).stdout
