"""What is installed is pinned."""

from __future__ import annotations

import re
import tomllib
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
