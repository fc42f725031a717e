"""The index of keys against a search through all rows, and what happens to its files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, strategies as st

from evaluand.core.errors import EngineError
from evaluand.core.user import cache_folder
from evaluand.store.directory import DirectoryStore
from evaluand.store.key_index import KeyIndex
from evaluand.store.store import MemoryStore, Store

Rows = Mapping[str, Sequence[int]]
"""By source, the numbers of its rows."""

KEYS = st.integers(0, 3) | st.integers(0, 2**64 - 1)


def index_of(
    store: Store, rows: Rows, best: Sequence[str], opened: Sequence[str] = (), digest: str = "0a"
) -> tuple[KeyIndex, list[str]]:
    """An index, and the sources that were read for it."""
    read: list[str] = []

    def numbers(source: str) -> tuple[np.ndarray, np.ndarray] | None:
        read.append(source)
        if source in opened:
            return None
        return np.array(rows[source], np.uint64), np.arange(len(rows[source]))

    digests = {source: None if source in opened else digest for source in best}
    return KeyIndex(store, "runs/work", digests, numbers), read


def found(index: KeyIndex, wanted: Sequence[int], most: int) -> dict[int, list[tuple[str, int]]]:
    """By number, the source and place of each row, in the order in which they were found."""
    by_number: dict[int, list[tuple[str, int]]] = {}
    for number in sorted({*wanted}):
        search = index.search(np.array([number], np.uint64))
        while (taken := search.take(np.array([most]))) is not None:
            rows = [(source, place) for source, places in taken for place in places.tolist()]
            assert len(rows) <= most
            by_number.setdefault(number, []).extend(rows)
    return by_number


@given(st.lists(st.lists(KEYS, max_size=6), max_size=6), st.integers(0, 6), st.integers(1, 3), st.data())
def test_an_index_finds_each_row_once_and_the_best_first(
    tmp_path_factory: pytest.TempPathFactory, numbers: list[list[int]], n: int, most: int, data: st.DataObject
) -> None:
    rows = {f"s{place}": each for place, each in enumerate(numbers)}
    store = data.draw(st.sampled_from([MemoryStore(), DirectoryStore(tmp_path_factory.mktemp("store"))]))
    removed = data.draw(st.sets(st.sampled_from(sorted(rows)))) if rows else set()
    index_of(store, rows, [*rows][:n][::-1])
    index_of(store, rows, [*rows][: n + 1][::-1])
    best = [source for source in reversed(rows) if source not in removed]
    index, _ = index_of(store, rows, best)
    wanted = {*(number for each in numbers for number in each), 7}
    expected = {
        number: [(source, place) for source in best for place, each in enumerate(rows[source]) if each == number]
        for number in wanted
    }
    assert {n: each for n, each in found(index, [*wanted], most).items() if each} == {
        n: each for n, each in expected.items() if each
    }


def test_a_row_behind_which_a_source_was_removed_is_found(tmp_path: Path) -> None:
    store, rows = DirectoryStore(tmp_path), {"a": [0, 0], "b": [0], "c": [0]}
    index_of(store, rows, ["a"])
    index_of(store, rows, ["b", "a"])
    index, _ = index_of(store, rows, ["c", "b"])
    assert found(index, [0], 2) == {0: [("c", 0), ("b", 0)]}


def test_several_numbers_are_searched_together(tmp_path: Path) -> None:
    index, _ = index_of(DirectoryStore(tmp_path), {"a": [5, 9, 5, 7], "b": [9, 5]}, ["b", "a"])
    search = index.search(np.array([5, 8, 9], np.uint64))
    taken = search.take(np.array([2, 1, 0]))
    assert taken is not None
    assert [(source, places.tolist()) for source, places in taken] == [("b", [1]), ("a", [0])]
    taken = search.take(np.array([9, 9, 9]))
    assert taken is not None
    assert [(source, places.tolist()) for source, places in taken] == [("b", [0]), ("a", [1, 2])]
    assert search.take(np.array([9, 9, 9])) is None


def files() -> list[Path]:
    return sorted((cache_folder() / "indexes").glob("*"))


def test_a_source_is_read_once_and_few_files_hold_many_sources(tmp_path: Path) -> None:
    store, rows = DirectoryStore(tmp_path), {f"s{n}": [n, 1000] for n in range(40)}
    for n in range(40):
        _, read = index_of(store, rows, [*rows][: n + 1][::-1])
        assert read == [f"s{n}"]
    assert 1 <= len(files()) <= 7
    index, read = index_of(store, rows, [*rows][::-1])
    assert read == []
    assert found(index, [17, 1000], 50) == {17: [("s17", 0)], 1000: [(f"s{n}", 1) for n in reversed(range(40))]}


def test_sources_that_are_open_are_named_and_read_again(tmp_path: Path) -> None:
    store, rows = DirectoryStore(tmp_path), {"a": [1], "b": [2]}
    index, _ = index_of(store, rows, ["b", "a"], opened=["b"])
    assert (index.others, found(index, [1, 2], 1)) == (["b"], {1: [("a", 0)]})
    index, read = index_of(store, rows, ["b", "a"])
    assert (index.others, read, found(index, [1, 2], 1)) == ([], ["b"], {1: [("a", 0)], 2: [("b", 0)]})


def test_sources_that_no_longer_exist_leave_the_index(tmp_path: Path) -> None:
    store = DirectoryStore(tmp_path)
    index_of(store, {"gone": [3] * 5}, ["gone"])
    index_of(store, {"new": [3] * 9}, ["new"])
    [file] = files()
    assert b"gone" not in file.read_bytes()


def test_a_source_whose_content_is_another_one_is_read_again(tmp_path: Path) -> None:
    store = DirectoryStore(tmp_path)
    index_of(store, {"a": [1], "b": [2]}, ["a", "b"])
    index, read = index_of(store, {"a": [3, 4, 1], "b": [2]}, ["a"], digest="0b")
    assert read == ["a"]
    assert found(index, [1, 3], 1) == {1: [("a", 2)], 3: [("a", 0)]}


def test_files_of_which_a_byte_was_changed_or_lost_are_made_again(tmp_path: Path) -> None:
    store, rows = DirectoryStore(tmp_path), {"a": [1, 2]}
    index_of(store, rows, ["a"])
    [file] = files()
    content = file.read_bytes()
    flipped = (content[:at] + bytes([content[at] ^ 4]) + content[at + 1 :] for at in range(len(content)))
    for damaged in (b"", content[:20], content[:-1], content + b"\0", b"EVKEYS01" + content[8:], *flipped):
        for newer in files():
            newer.unlink()
        file.write_bytes(damaged)
        index, read = index_of(store, rows, ["a"])
        assert read == ["a"]
        assert found(index, [1, 2], 1) == {1: [("a", 0)], 2: [("a", 1)]}


def test_a_source_that_cannot_be_read_is_named_and_tried_again(tmp_path: Path) -> None:
    def read(source: str) -> tuple[np.ndarray, np.ndarray]:
        raise EngineError("a/table.parquet: cannot be read")

    with pytest.warns(UserWarning, match=r"earlier answers are not reused: a/table\.parquet: cannot be read"):
        index = KeyIndex(DirectoryStore(tmp_path), "runs/work", {"a": "0a"}, read)
    assert found(index, [1], 1) == {}
    assert index_of(DirectoryStore(tmp_path), {"a": [1]}, ["a"])[1] == ["a"]


def test_where_the_cache_cannot_be_written_sources_are_read_each_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    (tmp_path / "file").touch()
    for _ in range(2):
        index, read = index_of(DirectoryStore(tmp_path), {"a": [1]}, ["a"])
        assert (read, found(index, [1], 1)) == (["a"], {1: [("a", 0)]})


def test_stores_do_not_share_an_index(tmp_path: Path) -> None:
    for name in ("one", "other"):
        assert index_of(DirectoryStore(tmp_path / name), {"a": [1]}, ["a"])[1] == ["a"]
