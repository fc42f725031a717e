"""The changelog stays short enough to be read, and covers the version that is built."""

from __future__ import annotations

import re

import pytest
from support.places import ROOT_FOLDER

from evaluand import __version__

CHANGELOG = ROOT_FOLDER / "CHANGELOG.md"


def releases() -> dict[str, str]:
    """The text of each release by its name, newest first."""
    _, *parts = re.split(r"^## ", CHANGELOG.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return {part.split()[0]: part for part in parts}


def entries(release: str) -> list[str]:
    return re.findall(r"^[-*] (.+(?:\n  .+)*)", release, flags=re.MULTILINE)


@pytest.mark.parametrize("name", releases())
def test_a_release_has_at_most_60_entries_of_at_most_25_words(name: str) -> None:
    listed = entries(releases()[name])
    assert 0 < len(listed) <= 60
    assert [entry for entry in listed if len(entry.split()) > 25] == []


def test_the_version_has_a_release() -> None:
    newest = next(name for name in releases() if name != "Unreleased")
    assert __version__ == newest
