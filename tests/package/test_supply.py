"""What is installed and published is pinned, and is the same whoever makes it."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Iterator
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT_FOLDER = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT_FOLDER / "pyproject.toml").read_text(encoding="utf-8"))["project"]
LOCK = (ROOT_FOLDER / "requirements.lock").read_text(encoding="utf-8")


def read_pins() -> dict[str, list[Requirement]]:
    """Name → its pins, several where they depend on the version of Python or the platform."""
    found: dict[str, list[Requirement]] = {}
    for text in re.findall(r"^(\S.*?) \\$", LOCK, flags=re.MULTILINE):
        pin = Requirement(text)
        found.setdefault(canonicalize_name(pin.name), []).append(pin)
    return found


def list_required(extra: str) -> Iterator[Requirement]:
    for text in PROJECT["optional-dependencies"][extra]:
        requirement = Requirement(text)
        if requirement.name == PROJECT["name"]:
            for each in requirement.extras:
                yield from list_required(each)
        else:
            yield requirement


def test_all_that_tests_and_tools_need_is_pinned_with_a_digest_of_each_file() -> None:
    pins = read_pins()
    required = [*map(Requirement, PROJECT["dependencies"]), *list_required("dev")]
    assert len(required) > 40
    for requirement in required:
        for pin in pins[canonicalize_name(requirement.name)]:
            [specifier] = pin.specifier
            assert specifier.operator == "=="
            assert requirement.specifier.contains(specifier.version, prereleases=True), f"{pin}: run `make lock`"
    entries = re.split(r"\n(?=\S)", LOCK.strip())
    assert sum(map(len, pins.values())) == len(entries)
    assert all(re.search(r"--hash=sha256:[0-9a-f]{64}\b", entry) for entry in entries)
    assert "://" not in LOCK


def build(folder: Path, *, time: int, umask: int) -> Path:
    """The folder with what hatchling builds of a copy of the checkout, whose files have a time and rights."""
    names = ("src", "docs", "examples", "benchmarks", "tests", "hatch_build.py", "pyproject.toml", "Makefile")
    copy = folder / "copy"
    copy.mkdir(parents=True)
    for name in (*names, *(path.name for path in ROOT_FOLDER.glob("*.md")), "LICENSE", "requirements.lock"):
        source = ROOT_FOLDER / name
        if source.is_dir():
            shutil.copytree(source, copy / name, ignore=shutil.ignore_patterns("__pycache__", ".evaluand*"))
        else:
            shutil.copy(source, copy / name)
    for path in copy.rglob("*"):
        os.utime(path, (time, time))
        path.chmod(0o777 & ~umask if path.is_dir() else 0o666 & ~umask)
    environment = {name: value for name, value in os.environ.items() if name != "SOURCE_DATE_EPOCH"}
    command = [sys.executable, "-m", "hatchling", "build", "--directory", str(folder / "dist")]
    subprocess.run(command, cwd=copy, env=environment, check=True, capture_output=True)
    return folder / "dist"


def test_two_builds_of_one_checkout_are_the_same_bytes(tmp_path: Path) -> None:
    first = build(tmp_path / "first", time=1_500_000_000, umask=0o022)
    second = build(tmp_path / "second", time=1_700_000_000, umask=0o077)
    digests = [
        {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in each.iterdir()}
        for each in (first, second)
    ]
    assert len(digests[0]) == 2
    assert digests[0] == digests[1]
    [wheel] = first.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    assert not [
        name for name in names if name.split("/")[0] not in ("evaluand", wheel.name.split("-py3")[0] + ".dist-info")
    ]
    assert [name for name in names if name.endswith("view/assets/LICENSES.txt")]
