"""`evaluand import` of folders: every log in them is read once, and everything else is named."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.foreign_results import WRITERS, write_helm, write_inspect, write_lm_eval, write_ragas

from evaluand.core.errors import DataError
from evaluand.exchange.importer import UnknownFormat, find_importers
from evaluand.exchange.storing import ImportedResult, import_results
from evaluand.store.store import MemoryStore

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")  # a zip file with two members of one name


def read(folder: Path, tool: str | None = None) -> ImportedResult:
    return import_results(folder, MemoryStore(), tool=tool)


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    """A folder with a folder for the log of each tool."""
    for name, write in WRITERS.items():
        (folder := tmp_path / "logs" / name).mkdir(parents=True)
        write(folder)
    return tmp_path / "logs"


def test_a_folder_of_many_logs_is_read_as_each_file_is(logs: Path) -> None:
    found = find_importers(logs)
    assert sorted(each.kind for each in found) == sorted("inspect" if name == "eval" else name for name in WRITERS)
    result = read(logs)
    assert result.samples == 3 * len(found)
    assert (result.left_out, result.unreadable) == ([], [])


def test_a_log_that_is_a_folder_itself_is_read_once_and_files_of_other_tools_in_it_too(tmp_path: Path) -> None:
    write_lm_eval(tmp_path)
    write_ragas(tmp_path)
    write_helm(tmp_path)
    assert [importer.kind for importer in find_importers(tmp_path)] == ["lm_eval", "ragas", "helm"]
    assert read(tmp_path).samples == 9


def test_only_the_logs_of_a_named_tool_are_read(logs: Path) -> None:
    (logs / "helm" / "addition.json").write_bytes(write_inspect(logs).read_bytes())
    result = read(logs, "ragas")
    assert {run.manifest["spec"]["task"]["tool"] for run in result.runs} == {"ragas"}
    with pytest.raises(DataError, match="has no file or folder of the format helm"):
        read(logs / "ragas", "helm")


def test_files_of_unknown_formats_are_named(tmp_path: Path) -> None:
    write_ragas(tmp_path)
    for name in ("a.txt", "b.csv", "c.json", "d.json"):
        (tmp_path / name).write_text("1")
    (note,) = read(tmp_path).notes
    assert note == f"{tmp_path}: 4 files of no format that is recognised: a.txt, b.csv, c.json and 1 more"


def test_hidden_files_and_linked_folders_are_not_read(tmp_path: Path) -> None:
    write_ragas(tmp_path)
    (tmp_path / ".cache").mkdir()
    write_ragas(tmp_path / ".cache")
    (tmp_path / "again").symlink_to(tmp_path, target_is_directory=True)
    (tmp_path / "nowhere.json").symlink_to(tmp_path / "missing.json")
    result = read(tmp_path)
    assert (result.samples, result.notes) == (3, [])


@pytest.mark.parametrize("names", [(), ("a.txt",)])
def test_a_folder_without_a_log_is_of_no_format(names: tuple[str, ...], tmp_path: Path) -> None:
    for name in names:
        (tmp_path / name).write_text("text")
    with pytest.raises(UnknownFormat, match="has no file of a format that is recognised"):
        read(tmp_path)


def test_a_file_that_cannot_be_read_at_all_does_not_stop_the_others(tmp_path: Path) -> None:
    write_inspect(tmp_path)
    (tmp_path / "cut.eval").write_bytes(b"PK\3\4 and no more")
    result = read(tmp_path)
    assert result.samples == 3
    (fault,) = result.unreadable
    assert "cannot be read as a log of Inspect" in str(fault)


def test_nothing_is_stored_of_a_file_that_ends_within_its_samples(tmp_path: Path) -> None:
    """Its first samples are read before the end is found."""
    write_ragas(tmp_path)
    path = write_inspect(tmp_path)
    path.write_bytes(path.read_bytes()[:-200])
    result = read(tmp_path)
    assert [run.name for run in result.runs] == ["ragas"]
    assert (result.samples, len(result.unreadable)) == (3, 1)
    with pytest.raises(DataError, match="ends before"):
        read(path)


def test_a_name_that_an_import_takes_over_is_noted(tmp_path: Path) -> None:
    store, path = MemoryStore(), write_ragas(tmp_path)
    first = import_results(path, store)
    assert import_results(path, store).notes == []
    path.write_text(path.read_text().replace("+", "-"))
    second = import_results(path, store)
    assert second.notes == [
        f"'ragas' was the name of {kind} {before.id[:12]} and is now that of {after.id[:12]}; both are stored, and"
        " another --name names them both"
        for kind, before, after in (
            ("run", first.runs[0], second.runs[0]),
            ("aggregation", first.aggregations[0], second.aggregations[0]),
        )
    ]


def test_a_folder_that_cannot_be_read_does_not_stop_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    list_folder = Path.iterdir

    def refuse(path: Path) -> Iterator[Path]:  # root may read every folder
        if path.name == "closed":
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        return list_folder(path)

    write_ragas(tmp_path)
    (tmp_path / "closed").mkdir()
    monkeypatch.setattr(Path, "iterdir", refuse)
    result = read(tmp_path)
    assert result.samples == 3
    assert [(fault.where, fault.message) for fault in result.unreadable] == [
        (str(tmp_path / "closed"), "cannot be read: Permission denied")
    ]


def test_an_empty_file_is_called_empty(tmp_path: Path) -> None:
    (path := tmp_path / "empty.json").touch()
    with pytest.raises(DataError, match=r"empty\.json: is empty"):
        read(path)
