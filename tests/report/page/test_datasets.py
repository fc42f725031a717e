"""Datasets in the page: their columns, their examples page by page, and the difference of two versions."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from support.browser import open_tab
from support.view_server import HOSTILE, serve_store

from evaluand import Dataset, DirectoryStore, Runner
from evaluand.core.errors import NotFound
from evaluand.report.page.resources import datasets as module
from evaluand.report.page.resources.base import Source, read_resource

ROWS = 120


def make_rows(n: int = ROWS) -> list[dict[str, Any]]:
    return [
        {
            "id": f"id {i}",
            "input": {"text": f"question {i} {HOSTILE}"},
            "expected": None if i % 10 == 0 else i % 4,
            HOSTILE: f"{HOSTILE} {i % 3}",
            "size": float(i),
            "day": dt.date(2024, 1, 1) + dt.timedelta(i),
        }
        for i in range(n)
    ]


ROLES = {"input": "input", "attributes": [HOSTILE], "metadata": ["size", "day"]}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> DirectoryStore:
    """A dataset with a run, another version of it, one of another name, and an empty one."""
    store = DirectoryStore(tmp_path_factory.mktemp("store"))
    data = Dataset.from_rows(make_rows(), name=HOSTILE, **ROLES).save(store)
    Runner(store).run(str, data, name=HOSTILE)
    changed = make_rows()[5:]
    changed[0]["expected"] = 77
    changed[1]["size"] = -1.0
    changed[1][HOSTILE] = "other"
    Dataset.from_rows([*changed, make_rows(ROWS + 1)[-1]], name=HOSTILE, **ROLES).save(store)
    Dataset.from_rows([{"input": "a"}], name="other").save(store)
    Dataset.from_arrow(pa.table({"input": pa.array([], pa.string())}), name="empty").save(store)
    return store


def read(store: DirectoryStore, path: str) -> Any:
    return json.loads(read_resource(Source(store), path, {}))


def find(store: DirectoryStore, name: str, examples: int = ROWS) -> str:
    made = [(id, store.manifest("datasets", id)) for id in store.ids("datasets")]
    return next(id for id, each in made if each["name"] == name and each["counts"]["examples"] == examples)


def second(store: DirectoryStore) -> str:
    return find(store, HOSTILE, ROWS - 4)


def test_a_dataset_says_what_it_is_and_what_ran_over_it(store: DirectoryStore) -> None:
    id = find(store, HOSTILE)
    found = read(store, f"dataset/{id}")
    assert (found["name"], found["examples"], found["digest"]) == (HOSTILE, ROWS, Dataset.stored(store, id).digest)
    assert found["origin"] == {"source": "rows"}
    assert [run["names"] for run in found["runs"]] == [[HOSTILE]]
    assert found["others"][0]["name"] == HOSTILE
    assert len(found["others"]) == 3


def test_columns_are_summarised_by_their_types(store: DirectoryStore) -> None:
    columns = {each["name"]: each for each in read(store, f"dataset-columns/{find(store, HOSTILE)}")}
    assert {name: each["role"] for name, each in columns.items()} == {
        "input": "input",
        "expected": "expected",
        HOSTILE: "attribute",
        "id": "id",
        "size": "metadata",
        "day": "metadata",
    }
    size = columns["size"]
    assert (size["low"], size["high"], size["distinct"], size["missing"], size["top"]) == (0, ROWS - 1, ROWS, 0, [])
    assert size["histogram"].startswith('<svg class="histogram"')
    assert (columns["expected"]["missing"], columns["expected"]["distinct"]) == (12, 4)
    assert [n for _, n in columns["expected"]["top"]] == [30, 30, 24, 24]
    assert columns[HOSTILE]["top"] == [[f"{HOSTILE} {i}", 40] for i in range(3)]
    assert (columns["day"]["low"], columns["day"]["high"]) == ("2024-01-01", "2024-04-29")
    assert columns["id"]["distinct"] == ROWS


BIG = 2**53
NUMBERS: dict[str, tuple[pa.Array, dict[str, Any]]] = {
    "large integers": (
        pa.array([BIG + i for i in range(12)]),
        {"distinct": 12, "missing": 0, "low": BIG, "high": str(BIG + 11), "top": [[str(BIG + i), 1] for i in range(5)]},
    ),
    "integers and nothing": (
        pa.array([1234567, 1234568, 1234568, None] * 3),
        {"distinct": 2, "missing": 3, "low": 1234567, "high": 1234568, "top": [["1234568", 6], ["1234567", 3]]},
    ),
    "the largest": (
        pa.array([2**64 - 1] * 12, pa.uint64()),
        {"distinct": 1, "missing": 0, "low": str(2**64 - 1), "high": str(2**64 - 1), "top": [[str(2**64 - 1), 12]]},
    ),
    "the lowest": (
        pa.array([-(2**63), 0] * 6),
        {"distinct": 2, "low": str(-(2**63)), "high": 0, "top": [[str(-(2**63)), 6], ["0", 6]]},
    ),
    "floats": (
        pa.array([0.1, 0.1, 0.30000000000000004, 1e300] * 3),
        {"distinct": 3, "low": 0.1, "high": 1e300, "top": [["0.1", 6], ["0.30000000000000004", 3], ["1e+300", 3]]},
    ),
    "short floats": (
        pa.array([0.1, 2.0] * 6, pa.float32()),
        {"distinct": 2, "high": 2.0, "top": [["0.1", 6], ["2.0", 6]]},
    ),
    "endless": (
        pa.array([float("inf"), float("-inf"), float("nan"), None, 2.5, 2.5] * 2),
        {
            "distinct": 3,
            "missing": 4,
            "low": "-Infinity",
            "high": "Infinity",
            "top": [["2.5", 4], ["-Infinity", 2], ["Infinity", 2]],
        },
    ),
    "nothing": (pa.array([float("nan"), None] * 6), {"distinct": None, "missing": 12, "low": None, "top": []}),
}


def test_numbers_are_summarised_exactly(tmp_path: Path) -> None:
    store, columns = DirectoryStore(tmp_path), {name: array for name, (array, _) in NUMBERS.items()}
    table = pa.table({"input": [str(i) for i in range(12)]} | columns)
    Dataset.from_arrow(table, metadata=[*columns]).save(store)
    [id] = store.ids("datasets")
    found = {each["name"]: each for each in read(store, f"dataset-columns/{id}")}
    for name, (_, summary) in NUMBERS.items():
        assert {key: found[name][key] for key in summary} == summary, name
        if 0 < len(found[name]["top"]) < 5:
            assert sum(n for _, n in found[name]["top"]) + found[name]["missing"] == len(table), name


def test_columns_of_many_values_are_not_counted_to_the_end(
    store: DirectoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_MOST_WORDS", 50)
    columns = {each["name"]: each for each in read(store, f"dataset-columns/{find(store, HOSTILE)}")}
    assert (columns["id"]["distinct"], columns["id"]["more"], columns["id"]["top"]) == (50, True, [])
    assert columns[HOSTILE]["more"] is False


def test_examples_come_in_pieces(store: DirectoryStore) -> None:
    id = find(store, HOSTILE)
    pieces = [read(store, f"dataset-examples/{id}/{piece}") for piece in range(3)]
    assert [len(piece) for piece in pieces] == [50, 50, 20]
    assert [row["id"] for piece in pieces for row in piece] == [f"id {i}" for i in range(ROWS)]
    assert pieces[0][0]["expected"] is None
    assert pieces[0][1]["attributes"] == {HOSTILE: f"{HOSTILE} 1"}


def test_an_empty_dataset_has_columns_and_no_examples(store: DirectoryStore) -> None:
    id = find(store, "empty", 0)
    assert read(store, f"dataset/{id}")["examples"] == 0
    [column] = read(store, f"dataset-columns/{id}")
    assert (column["name"], column["missing"], column["distinct"], column["top"]) == ("input", 0, 0, [])
    assert read(store, f"dataset-examples/{id}/0") == []
    found = read(store, f"dataset-difference/{id}/{find(store, 'other', 1)}")
    assert (found["only_a"], found["only_b"], found["changed"], found["same"]) == (0, 1, 0, 0)


def test_the_difference_of_two_versions_is_by_id(store: DirectoryStore) -> None:
    a, b = find(store, HOSTILE), second(store)
    found = read(store, f"dataset-difference/{a}/{b}")
    assert (found["by"], found["repeated"]) == ("id", 0)
    assert (found["only_a"], found["only_b"], found["changed"], found["same"]) == (5, 1, 2, 113)
    assert [(each["id"], each["a"], each["b"], each["columns"]) for each in found["first_changed"]] == [
        ("id 5", "5", "0", ["expected"]),
        ("id 6", "6", "1", [HOSTILE, "size"]),
    ]
    assert "drift" in found["drift"]["verdict"]


def test_drift_of_many_rows_is_left_to_the_command(store: DirectoryStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_QUICK", 10)
    found = read(store, f"dataset-difference/{find(store, HOSTILE)}/{second(store)}")
    assert found["drift"] is None
    assert found["command"].startswith("evaluand drift ")


def test_what_is_not_there_is_said(store: DirectoryStore) -> None:
    id, run = find(store, HOSTILE), store.ids("runs")[0]
    for path in (
        f"dataset/{run}",
        "dataset/..%2F..%2Fetc",
        f"dataset-columns/{run}",
        f"dataset-examples/{id}/3",
        f"dataset-examples/{id}/-1",
        f"dataset-examples/{id}/%D9%A1",
        f"dataset-examples/{run}/0",
        f"dataset-difference/{id}/{run}",
    ):
        with pytest.raises(NotFound):
            read(store, path)


@pytest.fixture(scope="module")
def tab(chromium: Any) -> Iterator[Any]:
    with open_tab(chromium) as tab:
        yield tab


@pytest.mark.slow
def test_a_dataset_is_read_in_a_browser(tab: Any, store: DirectoryStore, tmp_path: Path) -> None:
    faults: list[str] = []
    tab.on("dialog", lambda dialog: (faults.append(dialog.message), dialog.dismiss()))
    tab.on("pageerror", lambda error: faults.append(str(error)))
    tab.on("console", lambda message: faults.append(message.text))
    id = find(store, HOSTILE)
    with serve_store(store.root, tmp_path / "errors", is_opened=False) as server:
        tab.goto(server.link)
        tab.goto(f"{server.origin}/?k=datasets")
        tab.locator(f"a[href='/d/{id}']").click()
        tab.get_by_role("region", name="Table of columns").wait_for()
        assert tab.locator(".histogram").count() == 2
        examples = tab.get_by_role("region", name="Table of examples")
        tab.get_by_role("button", name="Next").click()
        tab.get_by_role("link", name="id 50", exact=True).wait_for()
        assert examples.locator("tbody tr").count() == 50
        tab.get_by_label("Compare with").select_option(second(store))
        changed = tab.get_by_role("region", name="Changed examples")
        changed.wait_for()
        assert changed.locator("tbody th").all_inner_texts() == ["id 5", "id 6"]
        tab.set_viewport_size({"width": 390, "height": 800})
        assert tab.evaluate("document.documentElement.scrollWidth") <= 390
        assert tab.locator("main script, main img").count() == 0
        changed.get_by_role("link", name="id 5").click()
        tab.get_by_role("heading", name="Example 5").wait_for()
        tab.locator(f"main a[href='/d/{id}']").click()
        tab.get_by_role("heading", name="Columns").wait_for()
        empty = find(store, "empty", 0)
        tab.goto(f"{server.origin}/d/{empty}")
        tab.get_by_text("There are no examples.").wait_for()
    assert faults == []
