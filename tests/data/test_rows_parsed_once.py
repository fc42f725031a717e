"""JSON lines are parsed many at a time and once only: with the rows, types, places and faults of one at a time."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, strategies as st

from evaluand.core.errors import DataError
from evaluand.data import spool
from evaluand.data.dataset import Dataset
from evaluand.data.formats import json_rows
from evaluand.data.sources import from_rows, open_file
from evaluand.data.spool import Spool

VALUES = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
VALUES |= st.lists(VALUES, max_size=3) | st.dictionaries(st.text(max_size=2), VALUES, max_size=2)
ROWS = st.lists(st.dictionaries(st.sampled_from(["a", "b", "c"]), VALUES, min_size=1), min_size=1, max_size=6)
LINES = [
    '{"a": 1}',
    '{"a": [1',
    "2]}",
    '{"a": 1',
    '"b": 2}',
    '{"a": 1},{"a": 2}',
    "",
    " ",
    "[1]",
    "null",
    "0",
    "x",
    "\ufeff",
]


def outcome(path: Path) -> Any:
    try:
        source = open_file(path)
    except DataError as error:
        return str(error)
    rows = [row for batch in source.batches() for row in batch.to_pylist()]
    return source.schema, rows, [source.where(place) for place in range(len(rows))]


@given(ROWS)
def test_lines_come_back_as_they_were_written(tmp_path_factory: pytest.TempPathFactory, rows: list[Any]) -> None:
    path = tmp_path_factory.mktemp("rows") / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    read, given_rows = open_file(path), from_rows(rows)
    assert read.schema.equals(given_rows.schema, check_metadata=True)
    for _ in range(2):
        assert [batch.to_pylist() for batch in read.batches()] == [batch.to_pylist() for batch in given_rows.batches()]
    assert read.n_rows == len(rows)


@given(st.lists(st.sampled_from(LINES), min_size=1, max_size=6))
def test_a_piece_of_a_line_never_passes_for_a_row(tmp_path_factory: pytest.TempPathFactory, lines: list[str]) -> None:
    path = tmp_path_factory.mktemp("rows") / "rows.jsonl"
    path.write_text("\n".join(lines))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_rows, "_parse_lines", lambda lines: None)
        one_by_one = outcome(path)
    assert outcome(path) == one_by_one


def test_integers_beyond_64_bits_stay_exact(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    numbers = [1, -(2**63), 2**63 - 1, 2**63, 2**64, 12345678901234567890123, [2**70], {"x": -(2**80)}]
    path.write_text("".join(json.dumps({"input": number}) + "\n" for number in numbers))
    assert [example.input for example in Dataset.from_file(path)] == numbers


@pytest.mark.parametrize("later", [2.5, "x", None, [1], True, 2**70])
def test_a_type_that_is_seen_late_holds_for_all_rows(tmp_path: Path, later: Any) -> None:
    path = tmp_path / "rows.jsonl"
    rows = [{"input": 1, "expected": None}] * 5000 + [{"input": later, "expected": "y"}, {"more": "z"}]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    data = Dataset.from_file(path, input="input", expected="expected", metadata="more")
    values = [(example.input, example.expected, example.metadata["more"]) for example in data]
    assert values == [(row.get("input"), row.get("expected"), row.get("more")) for row in rows]


def test_a_fault_is_named_at_its_line_whichever_rows_are_before(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    lines = ['{"input": "a"}'] * 5000
    lines[4321] = '{"input": '
    lines[4999] = "[]"
    path.write_text("\n".join(lines))
    with pytest.raises(DataError) as caught:
        open_file(path)
    assert [fault.where for fault in caught.value.faults] == [f"{path}:4322", f"{path}:5000"]


def test_a_file_is_parsed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text('{"input": "a"}\n' * 10)
    parsed = []
    parse = json_rows._parse_lines
    monkeypatch.setattr(json_rows, "_parse_lines", lambda lines: parsed.append(len(lines)) or parse(lines))
    data = Dataset.from_file(path)
    assert (len(data), len([*data]), len(data.digest)) == (10, 10, 32)
    assert parsed == [10]


@pytest.mark.parametrize("largest", [0, 1000, 1 << 20])
def test_a_spool_gives_its_batches_in_memory_and_in_a_file(largest: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spool, "LARGEST", largest)
    batches = [pa.record_batch({"a": [f"{n}-{row}" for row in range(50)]}) for n in range(20)]
    made = Spool(batches[0].schema)
    for place, batch in enumerate(batches):
        made.append(place % 2, batch)
    made.finish()
    read: list[list[pa.RecordBatch]] = []
    threads = [threading.Thread(target=lambda: read.append([*made.batches(1)])) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert read == [batches[1::2]] * 4


@pytest.mark.parametrize("largest", [0, 1 << 20])
@pytest.mark.parametrize("last", ["c", 1, None])
def test_the_files_of_a_folder_share_one_copy(
    tmp_path: Path, largest: int, last: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spool, "LARGEST", largest)
    rows = [[{"input": "a"}, {"input": "b"}], [], [{"input": last, "more": 2}]]
    for number, each in enumerate(rows):
        (tmp_path / f"{number}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in each))
    for _ in range(2):
        source = open_file(tmp_path)
        read = [row for batch in source.batches() for row in batch.to_pylist()]
        as_text = json.dumps if last == 1 else lambda value: value
        assert [row["input"] for row in read] == [as_text(row["input"]) for each in rows for row in each]
        assert [row["more"] for row in read] == [None, None, 2]


def test_rows_are_read_again_from_their_file_where_no_temporary_file_can_be_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text('{"input": "a"}\n' * 10)
    monkeypatch.setattr(spool, "LARGEST", 0)
    monkeypatch.setattr(spool.tempfile, "TemporaryFile", fail)
    rows = [row for batch in open_file(path).batches() for row in batch.to_pylist()]
    assert rows == [{"input": "a"}] * 10


def fail() -> None:
    raise OSError(28, "No space left on device")
