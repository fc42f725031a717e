"""`evaluand schema`: showing, validating and converting."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.commands import Folder

from evaluand.data.schema.data import DataSchema, DyffDataSchema, Schema, decode_schema, encode_schema
from evaluand.experiment import json_schema


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
    assert lines[2].split()[:6] == ["spans[].start", "int64", "no", "no", "≥", "0"]


def test_every_broken_row_is_reported_with_its_line(folder: Folder, stored: str) -> None:
    lines = [json.dumps(response(7, "a")), "", "{", json.dumps(response("8", None)), json.dumps([1])]
    (folder.path / "rows.jsonl").write_text("\n".join(lines))
    result = folder.call("schema", "validate", "rows.jsonl", "--schema", stored)
    assert result.exit_code == 1
    assert result.stdout.splitlines() == [
        "fault  rows.jsonl:3: not JSON at column 1: unexpected end of data",
        "fault  rows.jsonl:4: _index_: is text ('8'), not an integer",
        "fault  rows.jsonl:4: responses[0].text: is null",
        "fault  rows.jsonl:5: is a list, not an object",
        "4 faults in rows.jsonl (3 rows) against output.json",
    ]
    reported = json.loads(folder.call("schema", "validate", "rows.jsonl", "--schema", stored, "--json").stdout)
    assert reported["rows"] == 3
    assert reported["faults"][1] == {
        "row": 1,
        "index": None,
        "path": "_index_",
        "what": "type",
        "message": "is text ('8'), not an integer",
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
    (folder.path / "text.csv").write_text("text\n0123\n4\n")
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
    ("text", "reported"),
    [
        ("{", "x.json:1:2: not JSON"),
        ("{}", "x.json: $: has no type"),
        ('{"components": []}', "x.json: components: "),
        ('{"components": ["text.Txet"]}', "x.json: no schema is called 'text.Txet'"),
        ('{"arrowSchema": "bm8="}', "this is not an encoded Arrow schema"),
        ("no", "this is not an encoded Arrow schema"),
    ],
)
def test_a_file_that_is_no_schema_is_refused(folder: Folder, text: str, reported: str) -> None:
    (folder.path / "x.json").write_text(text)
    assert reported in folder.refused("schema", "show", "x.json")


def test_files_that_are_not_there_are_reported(folder: Folder) -> None:
    assert "no.json: no such file" in folder.refused("schema", "show", "no.json")
    assert "no.jsonl: no such file" in folder.refused("schema", "validate", "no.jsonl", "--schema", "text.Text")


def test_rows_of_a_dataset_that_share_an_index_are_faults(folder: Folder) -> None:
    (folder.path / "input.json").write_text(DataSchema.make_input_schema("text.Text").model_dump_json())
    (folder.path / "rows.jsonl").write_text("".join(f'{{"_index_": {i}, "text": "a"}}\n\n' for i in (4, 5, 4)))
    result = folder.call("schema", "validate", "rows.jsonl", "--schema", "input.json")
    assert result.exit_code == 1
    assert "fault  rows.jsonl:5 (_index_ 4): _index_: row 0 has the same value; give each row its own" in result.stdout


def test_all_faults_are_counted_and_the_first_of_each_path_and_sort_listed(folder: Folder) -> None:
    rows = [{"spans": [{"start": -1, "end": "x", "tag": "t"}] * 2}] * 50
    (folder.path / "rows.jsonl").write_text("{\n" * 30 + "".join(json.dumps(row) + "\n" for row in rows))
    call = ("schema", "validate", "rows.jsonl", "--schema", "text.TaggedSpans", "--most", "1")
    assert folder.call(*call).stdout.splitlines() == [
        "fault  rows.jsonl:1: not JSON at column 1: unexpected end of data",
        "fault  rows.jsonl:31: spans[0].start: -1 is less than 0",
        "fault  rows.jsonl:31: spans[0].end: is text ('x'), not an integer",
        "     30 × row: json",
        "    100 × spans[].start: bounds",
        "    100 × spans[].end: type",
        "230 faults in rows.jsonl (50 rows) against text.TaggedSpans",
    ]
    reported = json.loads(folder.call(*call, "--json").stdout)
    assert [(each["path"], each["faults"]) for each in reported["counts"]] == [
        ("", 30),
        ("spans[].start", 100),
        ("spans[].end", 100),
    ]
    assert len(reported["faults"]) == 3
    none = folder.call(*call[:-1], "0")
    assert (none.exit_code, none.stdout.splitlines()[-1]) == (
        1,
        "230 faults in rows.jsonl (50 rows) against text.TaggedSpans",
    )


def test_rows_of_columnar_files_are_reported_by_their_number(folder: Folder) -> None:
    pq.write_table(pa.table({"text": ["a", None]}), folder.path / "rows.parquet")
    reported = folder.call("schema", "validate", "rows.parquet", "--schema", "text.Text").stdout
    assert reported.splitlines()[0] == "fault  rows.parquet: row 1: text: is null"


def test_an_encoded_schema_is_read_from_a_file_of_any_name(folder: Folder) -> None:
    (folder.path / "x.arrow").write_text(folder.done("schema", "convert", "text.Text", "--to", "arrow"))
    assert folder.done("schema", "show", "x.arrow", "--as", "json") == folder.done(
        "schema", "show", "text.Text", "--as", "json"
    )


MODEL = """
import datetime as dt
from decimal import Decimal
from uuid import UUID

from pydantic import BaseModel, Field


class Person(BaseModel):
    id: UUID
    born: dt.date
    seen: dt.datetime
    spent: dt.timedelta
    paid: Decimal = Field(max_digits=6, decimal_places=2, ge=0)
    raw: bytes
    sizes: dict[str, int]
    tags: list[str] = Field(max_length=3, default_factory=list)
    home: str | None = None
    shoe: int = None
    tone: str = Field("kind", pattern="^[a-z]+$")
"""


@pytest.fixture
def model(folder: Folder) -> str:
    (folder.path / "people.py").write_text(MODEL)
    return "people.py:Person"


def test_a_model_of_ones_own_is_a_schema(folder: Folder, model: str) -> None:
    lines = {line.split()[0]: line for line in folder.done("schema", "show", model).splitlines()}
    assert "≥ 0" in lines["paid"]
    assert "x-" not in lines["paid"]
    assert lines["tags"].split()[2:6] == ["no", "yes:", "[]", "at"]
    assert lines["home"].split()[2:] == ["yes", "yes:", "null"]
    assert lines["shoe"].split()[2:] == ["no", "yes"]
    assert lines["tone"].split()[2:] == ["no", "yes:", '"kind"', "matches", "^[a-z]+$"]
    assert json.loads(folder.done("schema", "show", "people:Person", "--as", "json"))["title"] == "Person"
    assert "people.py has no 'Persno' (did you mean 'Person'?)" in folder.refused("schema", "show", "people.py:Persno")
    assert "people.py:dt: a module is not a schema" in folder.refused("schema", "show", "people.py:dt")


def test_typed_rows_go_to_parquet_and_back(folder: Folder, model: str) -> None:
    row = {
        "id": "00000000-0000-0000-0000-000000000003",
        "born": "2000-01-02",
        "seen": "2026-01-02T03:04:05.600000+00:00",
        "spent": "PT5400S",
        "paid": "12.5",
        "raw": "YQ==",
        "sizes": {"x": 1, "y": 2},
        "tags": ["a"],
        "home": None,
        "tone": "kind",
    }
    folder.write("rows.jsonl", [row, row | {"shoe": 41, "paid": "0", "sizes": {}}])
    (folder.path / "schema.json").write_text(folder.done("schema", "convert", model, "--to", "json"))
    folder.done("schema", "write", "rows.jsonl", "--schema", model, "-o", "rows.parquet")
    assert Schema.of(pq.read_schema(folder.path / "rows.parquet")) == Schema.of(
        json.loads((folder.path / "schema.json").read_text())
    )
    folder.done("schema", "write", "rows.parquet", "--schema", "schema.json", "-o", "back.jsonl")
    made, given = ((folder.path / name).read_text().splitlines() for name in ("back.jsonl", "rows.jsonl"))
    assert list(map(json.loads, made)) == list(map(json.loads, given))


@pytest.mark.parametrize(
    ("text", "output", "code", "reported"),
    [
        ('{"text": 1}', "out.parquet", 1, "row 0: text: is an integer (1), not text"),
        ('{"text": "a"}\n{', "out.parquet", 1, "in.jsonl:2: not JSON"),
        ('{"text": "a"}', "out.csv", 2, "the output must be OUT.jsonl or OUT.parquet"),
    ],
)
def test_nothing_is_written_where_a_row_breaks_the_schema(
    folder: Folder, text: str, output: str, code: int, reported: str
) -> None:
    (folder.path / "in.jsonl").write_text(text)
    call = ("schema", "write", "in.jsonl", "--schema", "text.Text", "-o", output)
    assert reported in folder.refused(*call, code=code)
    assert not (folder.path / output).exists()


def test_numbers_that_json_has_not_are_reported(folder: Folder) -> None:
    pq.write_table(pa.table({"x": [1.0, float("nan")]}), folder.path / "x.parquet")
    reported = folder.refused("schema", "write", "x.parquet", "--schema", "x.parquet", "-o", "x.jsonl")
    assert "row 1: JSON has no NaN or infinity; write Parquet" in reported
