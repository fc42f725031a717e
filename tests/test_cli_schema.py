"""`evaluand schema`: showing, validating and converting."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from commands import Folder

from evaluand.experiment import json_schema
from evaluand.schema import DataSchema, DyffDataSchema, Schema, decode_schema, encode_schema


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Folder:
    monkeypatch.chdir(tmp_path)
    return Folder(tmp_path)


OUTPUT = DataSchema.make_output_schema("text.Text")


@pytest.fixture
def stored(folder: Folder) -> str:
    (folder.path / "output.json").write_text(OUTPUT.model_dump_json())
    return "output.json"


def response(index: Any, text: Any) -> dict[str, Any]:
    return {"_index_": index, "_replication_": "r", "responses": [{"_response_index_": 0, "text": text}]}


def test_the_schema_of_experiments_is_shown_by_name(folder: Folder) -> None:
    assert json.loads(folder.done("schema", "show", "experiment")) == json_schema()


def test_a_schema_is_shown_in_each_form(folder: Folder) -> None:
    assert json.loads(folder.done("schema", "show", "text.Text", "--as", "json")) == Schema.of("text.Text").json
    assert folder.done("schema", "show", "text.Text", "--as", "arrow").startswith("text: string not null")
    lines = folder.done("schema", "show", "text.TaggedSpans").splitlines()
    assert lines[1].split()[:4] == ["spans", "list", "no", "no"]
    assert lines[2].split()[:6] == ["spans[].start", "int64", "no", "no", "minimum", "0"]


def test_every_broken_row_is_told_with_its_line(folder: Folder, stored: str) -> None:
    lines = [json.dumps(response(7, "a")), "", "{", json.dumps(response("8", None)), json.dumps([1])]
    (folder.path / "rows.jsonl").write_text("\n".join(lines))
    result = folder.call("schema", "validate", "rows.jsonl", "--schema", stored)
    assert result.exit_code == 1
    assert result.stdout.splitlines() == [
        "fault  rows.jsonl:3: not JSON at column 1: unexpected end of data",
        "fault  rows.jsonl:4: row 1: _index_: is a text ('8'), not a whole number",
        "fault  rows.jsonl:4: row 1: responses[0].text: is null",
        "fault  rows.jsonl:5: row 2: is a list, not an object",
        "4 faults: 3 rows of rows.jsonl against output.json",
    ]
    told = json.loads(folder.call("schema", "validate", "rows.jsonl", "--schema", stored, "--json").stdout)
    assert told["rows"] == 3
    assert told["faults"][1] == {
        "row": 1,
        "index": None,
        "path": "_index_",
        "what": "type",
        "message": "is a text ('8'), not a whole number",
    }


def test_rows_that_hold_are_ok_in_every_format(folder: Folder, stored: str) -> None:
    rows = [response(i, "a") for i in range(3)]
    folder.write("rows.jsonl", rows)
    (folder.path / "rows.json").write_text(json.dumps(rows))
    pq.write_table(pa.Table.from_pylist(rows), folder.path / "rows.parquet")
    for name in ("rows.jsonl", "rows.json", "rows.parquet"):
        assert folder.done("schema", "validate", name, "--schema", stored) == f"ok: 3 rows of {name} against {stored}\n"
    (folder.path / "text.csv").write_text("text\na\nb\n")
    assert folder.done("schema", "validate", "text.csv", "--schema", "text.Text").startswith("ok: 2 rows")


def test_every_form_converts_into_every_other_and_back(folder: Folder) -> None:
    schema = Schema.of("text.TaggedSpans")
    product = DyffDataSchema(components=["text.TaggedSpans"])
    files = {
        "schema.json": json.dumps(schema.json),
        "product.json": product.model_dump_json(),
        "stored.json": DataSchema.from_model(product).model_dump_json(),
        "arrow.txt": encode_schema(schema.arrow),
    }
    for name, text in files.items():
        (folder.path / name).write_text(text)
    pq.write_table(schema.arrow.empty_table(), folder.path / "data.parquet")
    for name in (*files, "data.parquet", "text.TaggedSpans"):
        assert Schema.of(json.loads(folder.done("schema", "convert", name, "--to", "json"))) == schema
        assert Schema.of(decode_schema(folder.done("schema", "convert", name, "--to", "arrow").strip())) == schema
        made = DataSchema.model_validate_json(folder.done("schema", "convert", name, "--to", "dyff"))
        assert made.to_schema() == schema
    assert made.dyffSchema == product


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("{", "x.json:1:2: not JSON"),
        ("{}", "x.json: $: says no type"),
        ('{"components": []}', "x.json: components: "),
        ('{"components": ["text.Txet"]}', "x.json: no schema is called 'text.Txet'"),
        ('{"arrowSchema": "bm8="}', "this is no encoded Arrow schema"),
        ("no", "this is no encoded Arrow schema"),
    ],
)
def test_a_file_that_is_no_schema_is_refused(folder: Folder, text: str, told: str) -> None:
    (folder.path / "x.json").write_text(text)
    assert told in folder.refused("schema", "show", "x.json")


def test_files_that_are_not_there_are_told(folder: Folder) -> None:
    assert "no.json: no such file" in folder.refused("schema", "show", "no.json")
    assert "no.jsonl: no such file" in folder.refused("schema", "validate", "no.jsonl", "--schema", "text.Text")


def test_rows_of_a_dataset_that_share_an_index_are_faults(folder: Folder) -> None:
    (folder.path / "input.json").write_text(DataSchema.make_input_schema("text.Text").model_dump_json())
    (folder.path / "rows.jsonl").write_text("".join(f'{{"_index_": {i}, "text": "a"}}\n\n' for i in (4, 5, 4)))
    result = folder.call("schema", "validate", "rows.jsonl", "--schema", "input.json")
    assert result.exit_code == 1
    assert "fault  rows.jsonl:5: row 2 (_index_ 4): _index_: row 0 has it already; give each its own" in result.stdout
