"""What belongs to the user of this machine: the folder of settings, the cache, and the key of digests."""

from __future__ import annotations

import os
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from evaluand.core.errors import SpecError
from evaluand.core.user import UserSettings, cache_folder, config_folder, keyed_digest, user_settings


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path


def test_folders_are_those_of_the_environment(home: Path) -> None:
    assert (config_folder(), cache_folder()) == (home / "config" / "evaluand", home / "cache" / "evaluand")


@pytest.mark.parametrize("value", [None, "", "relative/folder"])
def test_without_an_absolute_folder_in_the_environment_the_home_is_used(
    home: Path, monkeypatch: pytest.MonkeyPatch, value: str | None
) -> None:
    monkeypatch.setenv("HOME", str(home))
    if value is None:
        monkeypatch.delenv("XDG_CONFIG_HOME")
    else:
        monkeypatch.setenv("XDG_CONFIG_HOME", value)
    assert config_folder() == home / ".config" / "evaluand"


def test_a_digest_depends_on_the_data_and_on_the_key_of_the_user(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = keyed_digest(b"a")
    assert first == keyed_digest(b"a") != keyed_digest(b"b")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / "other"))
    assert keyed_digest(b"a") not in (first, None)


@pytest.mark.skipif(os.name == "nt", reason="Windows has no modes of files")
def test_only_the_user_can_read_the_key(home: Path) -> None:
    keyed_digest(b"a")
    [key] = config_folder().iterdir()
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    assert stat.S_IMODE(key.parent.stat().st_mode) == 0o700


def test_processes_that_need_the_key_at_once_have_the_same() -> None:
    with ThreadPoolExecutor(8) as pool:
        assert len(set(pool.map(keyed_digest, [b"a"] * 8))) == 1


def test_a_home_that_cannot_be_written_gives_no_digest(home: Path) -> None:
    (home / "config").write_text("not a folder")
    assert keyed_digest(b"a") is None


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("git-changes", "is not valid TOML: "),
        ("git-change = true", "git-change: is no setting (did you mean 'git-changes'?)"),
        ("git-changes = 1", "git-changes: is 1; give true or false"),
        ("\udcff", "is not UTF-8"),
    ],
)
def test_faults_of_the_settings_name_the_file_and_the_key(home: Path, content: str, message: str) -> None:
    assert user_settings() == UserSettings(git_changes=False)
    config_folder().mkdir(parents=True)
    path = config_folder() / "settings.toml"
    path.write_text(content, errors="surrogateescape")
    with pytest.raises(SpecError) as caught:
        user_settings()
    assert str(caught.value).startswith(f"{path}: {message}")
