"""What is recorded about the machine and code that made an artifact."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from evaluand.core import provenance
from evaluand.core.checkout import find_checkout, read_commit
from evaluand.core.git_changes import find_changes
from evaluand.core.user import config_folder

AUTHOR = ("-c", "user.name=a", "-c", "user.email=a@example.org")


@pytest.fixture(scope="module")
def committed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("committed")
    (path / "app.py").write_text("ANSWER = 1\n")
    _git(path, "init", "-qb", "main")
    _git(path, "add", "app.py")
    _git(path, *AUTHOR, "commit", "-qm", "Add the app")
    return path


@pytest.fixture
def checkout(tmp_path: Path, committed: Path) -> Path:
    return shutil.copytree(committed, tmp_path / "checkout", symlinks=True)


# -- the commit


def test_the_commit_is_that_of_git(checkout: Path) -> None:
    (checkout / "below" / "folder").mkdir(parents=True)
    assert _commit(checkout / "below" / "folder") == _head(checkout)


@pytest.mark.parametrize(
    "command",
    [
        ("checkout", "-q", "--detach"),
        ("pack-refs", "--all"),
        ("checkout", "-qb", "feature/long.name"),
        ("symbolic-ref", "refs/heads/alias", "refs/heads/main"),
    ],
)
def test_the_commit_is_that_of_git_after(checkout: Path, command: tuple[str, ...]) -> None:
    _git(checkout, *command)
    if command[0] == "symbolic-ref":
        _git(checkout, "symbolic-ref", "HEAD", "refs/heads/alias")
    assert _commit(checkout) == _head(checkout)


def test_a_packed_branch_is_found_where_its_folder_remains(checkout: Path) -> None:
    _git(checkout, "checkout", "-qb", "one/two")
    _git(checkout, "pack-refs", "--all")
    (checkout / ".git" / "refs" / "heads" / "one" / "two").mkdir(parents=True)
    assert _commit(checkout) == _head(checkout)


def test_a_worktree_has_its_own_commit(checkout: Path, tmp_path: Path) -> None:
    _git(checkout, "worktree", "add", "-qb", "other", str(tmp_path / "tree"))
    _git(tmp_path / "tree", *AUTHOR, "commit", "--allow-empty", "-qm", "Another one")
    assert _commit(tmp_path / "tree") == _head(tmp_path / "tree") != _head(checkout)


def test_a_submodule_has_its_own_commit(checkout: Path, committed: Path) -> None:
    _git(checkout, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(committed), "part")
    assert find_checkout(checkout / "part").root == checkout / "part"  # type: ignore[union-attr]
    assert _commit(checkout / "part") == _head(checkout / "part")


def test_a_repository_with_long_digests_has_a_commit(tmp_path: Path) -> None:
    _git(tmp_path, "init", "-q", "--object-format=sha256")
    _git(tmp_path, *AUTHOR, "commit", "--allow-empty", "-qm", "Nothing")
    commit = _commit(tmp_path)
    assert commit == _head(tmp_path)
    assert len(commit) == 64
    assert _changes(tmp_path) is False


def test_a_folder_without_git_has_no_commit(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    assert provenance._git(str(tmp_path), True) is None


def _use_tables(git: Path) -> None:
    (git / "reftable").mkdir()
    (git / "HEAD").write_text("ref: refs/heads/.invalid\n")


def _link_the_branch(git: Path) -> None:
    branch = git / "refs" / "heads" / "main"
    branch.rename(git.parent / "outside")
    branch.symlink_to(git.parent / "outside")


def _link_the_branches(git: Path) -> None:
    (git / "refs").rename(git.parent / "outside")
    (git / "refs").symlink_to(git.parent / "outside")


def _enlarge_head(git: Path) -> None:
    (git / "HEAD").write_bytes(b" " * 100_000 + (git / "refs" / "heads" / "main").read_bytes())


def _loop(git: Path) -> None:
    (git / "refs" / "heads" / "main").write_text("ref: refs/heads/main\n")


def _pipe_head(git: Path) -> None:
    (git / "HEAD").unlink()
    os.mkfifo(git / "HEAD")


def _link_head_to_a_device(git: Path) -> None:
    (git / "HEAD").unlink()
    (git / "HEAD").symlink_to("/dev/zero")


def _climb(git: Path) -> None:
    (git.parent.parent / "outside").write_text("0" * 40)
    (git / "HEAD").write_text("ref: refs/../../../outside\n")


def _start_anew(git: Path) -> None:
    (git / "HEAD").write_text("ref: refs/heads/never\n")


def _name_another_repository(git: Path) -> None:
    other = shutil.copytree(git, git.parent.parent / "private")
    shutil.rmtree(git)
    git.write_text(f"gitdir: {other}\n")


@pytest.mark.parametrize(
    "damage",
    [
        _use_tables,
        _link_the_branch,
        _link_the_branches,
        _enlarge_head,
        _loop,
        _pipe_head,
        _link_head_to_a_device,
        _climb,
        _start_anew,
        _name_another_repository,
    ],
)
def test_a_commit_that_cannot_be_read_safely_is_unknown(checkout: Path, damage: Callable[[Path], None]) -> None:
    damage(checkout / ".git")
    assert provenance._git(str(checkout), True) == {"commit": None, "changed": None}


# -- changes


def test_changes_are_unknown_unless_somebody_asks(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(checkout)
    assert provenance.provenance()["git"] == {"commit": _head(checkout), "changed": None}
    with provenance.look_for_git_changes():
        assert provenance.provenance()["git"]["changed"] is False


def test_the_settings_of_the_user_can_ask(checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.chdir(checkout)
    config_folder().mkdir(parents=True)
    (config_folder() / "settings.toml").write_text("git-changes = true\n")
    (checkout / "app.py").write_text("ANSWER = 2\n")
    assert provenance.provenance()["git"]["changed"] is True


def test_a_clean_checkout_has_no_changes(checkout: Path) -> None:
    (checkout / "report.html").write_text("made by the app")
    assert _changes(checkout) is False


def test_a_clean_worktree_has_no_changes(checkout: Path, tmp_path: Path) -> None:
    _git(checkout, "worktree", "add", "-qb", "other", str(tmp_path / "tree"))
    assert _changes(tmp_path / "tree") is False
    (tmp_path / "tree" / "app.py").write_text("ANSWER = 2\n")
    assert _changes(tmp_path / "tree") is True


@pytest.mark.parametrize("name", ["app.py", "new.py", "tools/new.py"])
def test_code_that_the_commit_does_not_contain_is_a_change(checkout: Path, name: str) -> None:
    (checkout / name).parent.mkdir(exist_ok=True)
    (checkout / name).write_text("ANSWER = 2\n")
    assert _changes(checkout) is True


def test_ignored_code_is_no_change(checkout: Path) -> None:
    (checkout / ".git" / "info" / "exclude").write_text("scratch.py\n")
    (checkout / "scratch.py").write_text("")
    assert _changes(checkout) is False


def test_the_line_ends_of_the_settings_of_the_checkout_count(checkout: Path) -> None:
    _git(checkout, "config", "core.autocrlf", "true")
    (checkout / "app.py").unlink()
    _git(checkout, "checkout", "app.py")
    assert (checkout / "app.py").read_bytes() == b"ANSWER = 1\r\n"
    os.utime(checkout / "app.py", (1, 1))  # so that git compares the contents
    assert _changes(checkout) is False


def test_files_that_pass_a_filter_are_unknown_and_others_count(checkout: Path) -> None:
    (checkout / ".gitattributes").write_text("app.py filter=big\n")
    (checkout / "app.py").write_text("ANSWER = 3\n")
    assert _changes(checkout) is None
    (checkout / "more.py").write_text("")
    assert _changes(checkout) is True


@pytest.mark.parametrize(
    "damage", [lambda git: (git / "index").write_bytes(b"DIRC"), lambda git: (git / "index").mkdir()]
)
def test_changes_that_git_cannot_see_are_unknown(checkout: Path, damage: Callable[[Path], None]) -> None:
    (checkout / ".git" / "index").unlink()
    damage(checkout / ".git")
    assert _changes(checkout) is None


def test_a_git_of_the_checkout_is_not_called(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (checkout / "git").write_text(f"#!/bin/sh\ntouch {checkout}/called\n")
    (checkout / "git").chmod(0o755)
    monkeypatch.setenv("PATH", str(checkout), prepend=os.pathsep)
    assert _changes(checkout) is None
    assert not (checkout / "called").exists()


def test_no_program_that_a_checkout_names_is_called(checkout: Path, tmp_path: Path) -> None:
    """Every program that git would run on `status` here; a call of git itself shows that they are real."""
    evil = tmp_path / "evil"
    evil.mkdir()
    call = f"touch {evil}/"
    hooks = checkout / ".git" / "own-hooks"
    hooks.mkdir()
    for name in ("post-index-change", "fsmonitor-watchman"):
        (hooks / name).write_text(f"#!/bin/sh\n{call}{name}\n")
        (hooks / name).chmod(0o755)
    for key, value in {
        "core.fsmonitor": f"{call}fsmonitor; false",
        "core.hooksPath": str(hooks),
        "core.pager": f"{call}pager",
        "filter.planted.clean": f"{call}clean; cat",
        "filter.planted.process": f"{call}process; false",
        "filter.planted.required": "true",
        "diff.external": f"{call}external",
        "include.path": "more-config",
        "core.worktree": str(tmp_path),
    }.items():
        _git(checkout, "config", key, value)
    (checkout / ".git" / "more-config").write_text(f'[core]\n\tsshCommand = "{call}ssh"\n')
    (checkout / ".git" / "info" / "attributes").write_text("* filter=planted\n")
    (checkout / "app.py").write_text("ANSWER = 4\n")
    with provenance.look_for_git_changes():
        assert provenance._git(str(checkout), True) == {"commit": _head(checkout), "changed": None}
    assert not list(evil.iterdir())
    _git(checkout, "config", "--unset", "core.worktree")
    subprocess.run(["git", "status"], cwd=checkout, capture_output=True, timeout=60)
    assert {"fsmonitor", "process"} <= {path.name for path in evil.iterdir()}


def _changes(folder: Path) -> bool | None:
    checkout = find_checkout(folder)
    assert checkout is not None
    commit = read_commit(checkout)
    assert commit is not None
    return find_changes(checkout, commit, folder)


def _commit(folder: Path) -> str:
    checkout = find_checkout(folder)
    assert checkout is not None
    return read_commit(checkout) or ""


def _head(folder: Path) -> str:
    return _git(folder, "rev-parse", "HEAD").strip()


def _git(folder: Path, *arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=folder, capture_output=True, text=True, check=True).stdout


# -- the experiment


@pytest.mark.parametrize(
    "manifest",
    [
        {},
        {"provenance": None},
        {"provenance": []},
        {"provenance": {"origin": "e.yaml"}},
        {"provenance": {"origin": {"experiment": ["e.yaml"]}}},
        {"provenance": {"origin": {"experiment": ""}}},
    ],
)
def test_a_manifest_without_a_usable_origin_has_no_experiment(manifest: dict[str, Any]) -> None:
    assert provenance.experiment_origin(manifest) is None


def test_a_rule_for_which_examples_were_drawn_is_part_of_an_origin() -> None:
    until = {"rule": "accuracy better than base", "drawn": 20, "of": 300}
    found = provenance.experiment_origin({"provenance": {"origin": {"experiment": "e.yaml", "until": until}}})
    assert found is not None
    assert found.until == ("accuracy better than base", 20, 300)
    for wrong in ({"drawn": 0}, {"drawn": 301}, {"rule": 5}, {"of": True}):
        origin = {"experiment": "e.yaml", "until": until | wrong}
        found = provenance.experiment_origin({"provenance": {"origin": origin}})
        assert found is not None
        assert found.until is None


def test_values_of_other_types_are_no_part_of_an_origin() -> None:
    until = {"rule": "accuracy better than base", "drawn": 20, "of": "all"}
    written = {"experiment": "e.yaml", "digest": 5, "task": {}, "limit": True, "where": ["a"], "until": until}
    found = provenance.experiment_origin({"provenance": {"origin": written}})
    assert found == provenance.ExperimentOrigin("e.yaml", None, None, None, None, None, None, None)
