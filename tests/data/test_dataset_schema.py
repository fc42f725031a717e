"""Datasets whose rows pass through adapters and are validated against a schema."""

from __future__ import annotations

import datetime as dt
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings, strategies as st
from pydantic import BaseModel, Field

from evaluand.core.errors import DataError, SpecError
from evaluand.data.dataset import Dataset
from evaluand.data.schema.data import DataSchema, Schema
from evaluand.data.schema.stored import Float32
from evaluand.experiment.experiment import Experiment
from evaluand.store.store import MemoryStore

EXPLODE = {"kind": "ExplodeCollections", "configuration": {"collections": ["text"]}}
RENAME = {"kind": "Rename", "configuration": {"said": "text"}}


class Note(BaseModel):
    page: int


class Row(BaseModel):
    text: str
    zip: str = "none"
    votes: int = Field(0, ge=0)
    share: Float32 | None = None
    day: dt.date | None = None
    right: bool = True
    note: Note | None = None
    tags: list[str] = []


def write(folder: Path, name: str, text: str) -> Path:
    (folder / name).write_text(text)
    return folder / name


def faults(make: Any, folder: Path | None = None) -> list[str]:
    with pytest.raises(DataError) as raised:
        make()
    return [line.removeprefix(f"{folder}/") for line in str(raised.value).split("\n")]


def test_every_fault_of_a_file_is_reported_with_row_and_column(tmp_path: Path) -> None:
    rows = [
        {"text": "a", "note": {"page": 1}},
        {"txet": "b", "votes": "2", "day": "2026-13-01"},
        {"text": None, "votes": -1, "note": {"page": 1.5}, "tags": ["x", 1]},
    ]
    path = write(tmp_path, "rows.jsonl", "\n\n".join(map(json.dumps, rows)))
    assert faults(lambda: Dataset.from_file(path, schema=Row), tmp_path) == [
        "rows.jsonl:3:text: is missing (there is 'txet')",
        "rows.jsonl:3:txet: is not a field (did you mean 'text'?)",
        "rows.jsonl:3:votes: is text ('2'), not an integer",
        "rows.jsonl:3:day: is text ('2026-13-01'), not the text of a date",
        "rows.jsonl:5:text: is null",
        "rows.jsonl:5:votes: -1 is less than 0",
        "rows.jsonl:5:note.page: is a number (1.5), not an integer",
        "rows.jsonl:5:tags[1]: is an integer (1), not text",
    ]


def test_the_cells_of_a_csv_file_are_read_as_the_schema_says(tmp_path: Path) -> None:
    path = write(
        tmp_path, "rows.csv", 'text,zip,votes,share,day,right,note\n1,0123,,0.5,2026-11-22,TRUE,"{""page"": 3}"\n'
    )
    [example] = Dataset.from_file(path, schema=Row)
    assert example.input == {
        "text": "1",
        "zip": "0123",
        "votes": 0,
        "share": 0.5,
        "day": dt.date(2026, 11, 22),
        "right": True,
        "note": {"page": 3},
        "tags": [],
    }


def test_wrong_cells_of_a_csv_file_are_reported_by_line_and_wrong_columns_once(tmp_path: Path) -> None:
    path = write(tmp_path, "rows.csv", "text,votes,right\na,1,yes\nb,1.5,true\n,1_0,true\n")
    assert faults(lambda: Dataset.from_file(path, schema=Row), tmp_path) == [
        "rows.csv:2:right: is text ('yes'), not true or false",
        "rows.csv:3:votes: is text ('1.5'), not an integer",
        "rows.csv:4:text: is null",
        "rows.csv:4:votes: is text ('1_0'), not an integer",
    ]
    path = write(tmp_path, "rows.csv", "txet\na\nb\n")
    assert faults(lambda: Dataset.from_file(path, schema=Row), tmp_path) == [
        "rows.csv:1:text: is missing (did you mean 'txet'?)",
        "rows.csv:1:txet: is not a field (did you mean 'text'?)",
    ]


def test_rows_are_validated_after_the_adapters_and_located_in_the_file(tmp_path: Path) -> None:
    path = write(tmp_path, "rows.jsonl", '{"said":["a",1]}\n{"said":[]}\n{"said":3}\n{"said":["b",null]}\n')
    adapters = [RENAME, EXPLODE]
    assert faults(lambda: Dataset.from_file(path, adapters=adapters, schema="text.Text"), tmp_path) == [
        "rows.jsonl:3: ExplodeCollections (step 2 of 2): text is a number, not a list",
        "rows.jsonl:1:text: is an integer (1), not text",
        "rows.jsonl:4:text: is null",
    ]


def test_adapters_may_make_several_rows_of_one_which_are_numbered(tmp_path: Path) -> None:
    rows = [{"said": ["a", "b"]}, {"said": []}, {"said": ["c"]}]
    sources = [
        Dataset.from_rows(rows, adapters=[RENAME, EXPLODE]),
        Dataset.from_rows(rows, adapters=[RENAME, EXPLODE], schema="text.Text"),
        Dataset.from_arrow(pa.Table.from_pylist(rows), adapters=[RENAME, EXPLODE]),
        Dataset.from_arrow(pa.Table.from_pylist(rows), adapters=[RENAME, EXPLODE], schema="text.Text"),
    ]
    assert [[(each.index, each.input) for each in data] for data in sources] == [
        [(0, {"text": "a"}), (1, {"text": "b"}), (2, {"text": "c"})]
    ] * 4
    assert len({data.digest for data in sources}) == 1


def test_rows_that_adapters_leave_out_are_counted_and_the_count_is_stored() -> None:
    pipeline = {"adapters": [RENAME], "onError": "skip"}
    data = Dataset.from_rows([{"said": "a"}, {"sad": "b"}], adapters=pipeline)
    assert [example.input for example in data] == [{"text": "a"}]
    store = MemoryStore()
    stored = data.save(store)
    counts = store.manifest("datasets", stored.id)["provenance"]["adapters"]
    assert (counts["read"], counts["skipped"]) == (2, 1)


def test_a_parquet_file_is_validated_by_column(tmp_path: Path) -> None:
    pq.write_table(pa.table({"text": ["a", None], "votes": [1, -1]}), tmp_path / "rows.parquet")
    assert faults(lambda: Dataset.from_file(tmp_path / "rows.parquet", schema=Row), tmp_path) == [
        "rows.parquet: row 2, text: is null",
        "rows.parquet: row 2, votes: -1 is less than 0",
    ]
    pq.write_table(pa.table({"text": ["a"], "votes": [1.5]}), tmp_path / "rows.parquet")
    assert faults(lambda: Dataset.from_file(tmp_path / "rows.parquet", schema=Row), tmp_path) == [
        "rows.parquet:votes: the column is double, not int64"
    ]


def test_an_index_may_be_in_the_rows_in_the_schema_or_in_neither() -> None:
    with_index, without = DataSchema.make_input_schema("text.Text"), Schema.of("text.Text")
    rows: list[dict[str, Any]] = [{"text": "a"}, {"text": "b"}]
    numbered = [{"_index_": 5, "text": "a"}, {"_index_": 3, "text": "b"}]
    for schema in (with_index, without):
        assert [each.index for each in Dataset.from_rows(rows, schema=schema)] == [0, 1]
        assert [(each.index, each.input) for each in Dataset.from_rows(numbered, schema=schema)] == [
            (3, {"text": "b"}),
            (5, {"text": "a"}),
        ]
    repeated = [{"_index_": 5, "text": "a"}, {"_index_": 5, "text": 1}]
    assert faults(lambda: Dataset.from_rows(repeated, schema=with_index)) == [
        "rows[1]:text: is an integer (1), not text",
        "rows[1]:_index_: 5 occurs twice; give each row its own",
    ]


def test_rows_in_python_may_hold_times_as_objects_or_in_the_forms_of_json() -> None:
    day = dt.date(2026, 11, 22)
    for written in (day, "2026-11-22"):
        [example] = Dataset.from_rows([{"text": "a", "day": written}], schema=Row)
        assert example.input["day"] == day


def test_a_schema_of_outputs_or_without_columns_is_refused() -> None:
    with pytest.raises(SpecError, match="the schema has _replication_: it describes outputs"):
        Dataset.from_rows([{"text": "a"}], schema=DataSchema.make_output_schema("text.Text"))
    with pytest.raises(SpecError, match="has no field but _index_"):
        Dataset.from_rows([{"_index_": 1}], schema=pa.schema([("_index_", pa.int64())]))


ROWS = st.fixed_dictionaries(
    {"text": st.text(st.characters(codec="utf-8"), max_size=5)},
    optional={
        "zip": st.text("01", max_size=3),
        "votes": st.integers(0, 2**53),
        "share": st.none() | st.floats(width=32, allow_nan=False),
        "day": st.none() | st.dates(),
        "right": st.booleans(),
        "note": st.none() | st.fixed_dictionaries({"page": st.integers(-5, 5)}),
        "tags": st.lists(st.text("ab", max_size=2), max_size=2),
    },
)


@settings(max_examples=15, deadline=None)
@given(st.lists(ROWS, min_size=1, max_size=4))
def test_what_validation_fills_in_is_valid_again_and_stays_the_same(rows: list[dict[str, Any]]) -> None:
    data = Dataset.from_rows(rows, schema=Row)
    stored = data.save(MemoryStore())
    again = Dataset.from_rows([{"_index_": each.index, **each.input} for each in stored], schema=Row)
    assert again.digest == data.digest
    table = pa.Table.from_batches(data.columns(data.schema.names))
    assert Dataset.from_arrow(table, schema=Row).digest == data.digest


def test_an_experiment_file_names_adapters_and_a_schema(tmp_path: Path) -> None:
    write(tmp_path, "rows.csv", "said,label\n1,a\n2,b\n")
    write(
        tmp_path,
        "app.py",
        "from pydantic import BaseModel\n\nclass Row(BaseModel):\n    text: str\n    label: str\n\n"
        "def f(text):\n    return text\n",
    )
    text = (
        "name: x\ndataset:\n  path: rows.csv\n  adapters: [{kind: Rename, configuration: {said: text}}]\n"
        "  schema: app.py:Row\n  input: text\n  expected: label\n"
        "tasks: {t: app.py:f}\nscorers: {s: exact_match}\nmetrics: [accuracy]\n"
    )
    path = write(tmp_path, "x.yaml", text)
    run = Experiment.from_file(path).run(MemoryStore()).tasks[0].run
    assert [row.responses for row in run] == [["1"], ["2"]]
    write(tmp_path, "x.yaml", text.replace("Rename", "Renam").replace(":Row", ":Rows"))
    with pytest.raises(SpecError) as raised:
        Experiment.from_file(path)
    lines = str(raised.value).split("\n")
    assert lines[0].startswith(f"{path}:4: dataset.adapters: no adapter is called 'Renam' (did you mean 'Rename'?)")
    assert lines[1].startswith(f"{path}:5: dataset.schema: app.py has no 'Rows' (did you mean 'Row'?)")
