"""`evaluand adapt`: what is shown, counted and written, and how each mistake is told."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.commands import Folder

from evaluand.data.dataset import Dataset

EXPLODE = {
    "kind": "ExplodeCollections",
    "configuration": {"collections": ["text"], "index": {"_response_index_": None}},
}
RENAME = {"kind": "Rename", "configuration": {"text": "answer"}}
ROWS = [
    {"_index_": 0, "text": ["a", "b"], "o": {"k": 2**70}},
    {"_index_": 1, "text": None, "o": {"k": 1}},
    {"_index_": 2, "text": ["c"], "o": None},
]
MADE = [
    {"_index_": 0, "answer": "a", "o": {"k": 2**70}, "_response_index_": 0},
    {"_index_": 0, "answer": "b", "o": {"k": 2**70}, "_response_index_": 1},
    {"_index_": 2, "answer": "c", "o": None, "_response_index_": 0},
]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Folder:
    monkeypatch.chdir(tmp_path)
    made = Folder(tmp_path)
    made.write("rows.jsonl", ROWS)
    pipeline(made, {"adapters": [EXPLODE, RENAME], "onError": "skip"})
    return made


def pipeline(folder: Folder, spec: Any, name: str = "p.json") -> str:
    (folder.path / name).write_text(spec if isinstance(spec, str) else json.dumps(spec))
    return name


def test_rows_are_shown_before_and_after_and_counted(folder: Folder) -> None:
    assert folder.done("adapt", "rows.jsonl", "--pipeline", "p.json", "--rows", 2) == (
        "_index_ 0\n"
        '- {"_index_":0,"text":["a","b"],"o":{"k":1180591620717411303424}}\n'
        '+ {"_index_":0,"o":{"k":1180591620717411303424},"_response_index_":0,"answer":"a"}\n'
        '+ {"_index_":0,"o":{"k":1180591620717411303424},"_response_index_":1,"answer":"b"}\n'
        "\n"
        "_index_ 1\n"
        '- {"_index_":1,"text":null,"o":{"k":1}}\n'
        "+ no row\n"
        "\n"
        "3 rows read, 3 made, 1 skipped, 0 defaulted\n"
        "      1 × ExplodeCollections (step 1 of 2): text is null, not a list\n"
    )


def test_json_holds_counts_reasons_and_the_rows_shown(folder: Folder) -> None:
    reported = folder.json("adapt", "rows.jsonl", "--pipeline", "p.json", "--rows", 1)
    assert reported == {
        "file": "rows.jsonl",
        "pipeline": {"adapters": [EXPLODE, RENAME], "onError": "skip"},
        "counts": {
            "read": 3,
            "made": 3,
            "skipped": 1,
            "defaulted": 0,
            "reasons": {"ExplodeCollections (step 1 of 2): text is null, not a list": 1},
        },
        "rows": [{"before": ROWS[0], "after": MADE[:2]}],
        "output": None,
    }


def test_a_default_row_is_shown_where_it_stands(folder: Folder) -> None:
    pipeline(folder, {"adapters": [EXPLODE, RENAME], "onError": "default", "default": {"answer": "none"}})
    reported = folder.json("adapt", "rows.jsonl", "--pipeline", "p.json")
    assert reported["rows"][1]["after"] == [{"answer": "none"}]
    assert (reported["counts"]["made"], reported["counts"]["defaulted"]) == (4, 1)


def test_new_rows_are_written_as_json_lines(folder: Folder) -> None:
    result = folder.call("adapt", "rows.jsonl", "--pipeline", "p.json", "-o", "out.jsonl", "--rows", 0)
    assert [json.loads(line) for line in (folder.path / "out.jsonl").read_text().splitlines()] == MADE
    assert result.stderr == "3 rows written to out.jsonl\n"


def test_new_rows_are_written_as_parquet_that_a_dataset_reads(folder: Folder) -> None:
    folder.done("adapt", "rows.jsonl", "--pipeline", "p.json", "-o", "out.parquet")
    assert pq.read_table(folder.path / "out.parquet").column("answer").to_pylist() == ["a", "b", "c"]
    pipeline(folder, [{"kind": "Select", "configuration": {"fields": ["answer", "o"]}}], "q.json")
    again = folder.json("adapt", "out.parquet", "--pipeline", "q.json")
    assert [row["after"][0] for row in again["rows"]] == [{k: row[k] for k in ("answer", "o")} for row in MADE]


def test_what_json_has_no_word_for_is_written_all_the_same(folder: Folder) -> None:
    upload = {"kind": "FileUpload", "configuration": {"field": "$.answer", "encoding": "utf-8"}}
    pipeline(folder, {"adapters": [EXPLODE, RENAME, upload], "onError": "skip"})
    folder.done("adapt", "rows.jsonl", "--pipeline", "p.json", "-o", "out.jsonl")
    first = json.loads((folder.path / "out.jsonl").read_text().splitlines()[0])
    assert first["$fileUpload"]["content"] == "YQ=="


def test_parquet_that_can_be_transformed_at_once_keeps_its_types(folder: Folder) -> None:
    table = pa.table({"text": ["a", "b"], "n": pa.array([1, 2], pa.int8()), "o": [{"k": 1}, {"k": 2}]})
    pq.write_table(table, folder.path / "rows.parquet")
    pipeline(folder, [RENAME, {"kind": "FlattenHierarchy"}])
    shown = folder.done("adapt", "rows.parquet", "--pipeline", "p.json", "-o", "out.parquet", "--rows", 1)
    again = pq.read_table(folder.path / "out.parquet")
    assert again.schema.equals(pa.schema([("n", pa.int8()), ("o.k", pa.int64()), ("answer", pa.string())]))
    assert again.to_pylist() == [{"n": 1, "o.k": 1, "answer": "a"}, {"n": 2, "o.k": 2, "answer": "b"}]
    assert '+ {"n":1,"o.k":1,"answer":"a"}\n' in shown
    assert "2 rows read, 2 made, 0 skipped, 0 defaulted" in shown
    folder.done("adapt", "rows.parquet", "--pipeline", "p.json", "-o", "out.jsonl")
    assert (folder.path / "out.jsonl").read_text().splitlines()[1] == '{"n":2,"o.k":2,"answer":"b"}'


def test_a_row_beyond_the_first_batch_is_named_by_its_place(folder: Folder) -> None:
    folder.write("many.jsonl", [{"text": ["a"]}] * 5000 + [{"text": None}])
    pipeline(folder, [EXPLODE])
    reported = folder.refused("adapt", "many.jsonl", "--pipeline", "p.json")
    assert reported.startswith("error: many.jsonl:5001: row 5000: ExplodeCollections: text is null")


def test_a_pipeline_that_makes_no_row_writes_an_empty_file(folder: Folder) -> None:
    pipeline(folder, {"adapters": [{"kind": "Select", "configuration": {"fields": ["nope"]}}], "onError": "skip"})
    folder.done("adapt", "rows.jsonl", "--pipeline", "p.json", "-o", "out.jsonl")
    folder.done("adapt", "rows.jsonl", "--pipeline", "p.json", "-o", "out.parquet")
    assert (folder.path / "out.jsonl").read_text() == ""
    assert pq.read_table(folder.path / "out.parquet").num_rows == 0


@pytest.mark.parametrize("name", ["rows.csv", "rows.tsv", "rows.json", "rows.parquet", "rows.arrow"])
def test_every_format_of_datasets_is_read(folder: Folder, name: str) -> None:
    table = pa.Table.from_pylist([{"_index_": 0, "text": "a"}])
    if name.endswith("sv"):
        separator = "," if name == "rows.csv" else "\t"
        (folder.path / name).write_text(separator.join(["_index_", "text"]) + "\n" + separator.join(["0", "a"]) + "\n")
    elif name == "rows.json":
        (folder.path / name).write_text(json.dumps(table.to_pylist()))
    elif name == "rows.parquet":
        pq.write_table(table, folder.path / name)
    else:
        with pa.OSFile(str(folder.path / name), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
            writer.write_table(table)
    pipeline(folder, RENAME)
    assert folder.json("adapt", name, "--pipeline", "p.json")["rows"][0]["after"] == [{"_index_": 0, "answer": "a"}]


def test_a_pipeline_is_written_in_yaml_too(folder: Folder) -> None:
    text = "- kind: Rename\n  configuration: {text: answer}\n- {kind: Drop, configuration: {fields: [o]}}\n"
    reported = folder.json("adapt", "rows.jsonl", "--pipeline", pipeline(folder, text, "p.yaml"), "--rows", 1)
    assert reported["rows"][0]["after"] == [{"_index_": 0, "answer": ["a", "b"]}]


@pytest.mark.parametrize(
    ("name", "spec", "message"),
    [
        ("p.json", "[", "p.json:1:2: not JSON: Expecting value"),
        ("p.json", '{"kind": "Rename", "kind": "Drop"}', "p.json: cannot be read as JSON: the key 'kind' occurs"),
        ("p.json", "[" * 100_000, "p.json: cannot be read as JSON: "),
        ("p.yaml", "- kind: Rename\n- kind: [", "p.yaml:2:10: not YAML: "),
        ("p.yaml", "- {kind: Rename, kind: Drop}", "p.yaml:1: "),
        ("p.yaml", "", "p.yaml: a pipeline is empty; give a list of adapters"),
        ("p.json", "5", "p.json: a pipeline is 5; give a list of adapters"),
        ("p.json", "[5]", "p.json: an adapter: its spec is 5; give an object with kind"),
        ("p.json", [{"kind": "Renam"}], "p.json: no adapter is called 'Renam' (did you mean 'Rename'?); known: Drop, "),
        (
            "p.json",
            [RENAME, {"kind": "Drop"}],
            "p.json: step 2: Drop: the configuration is missing; give an object with",
        ),
        (
            "p.json",
            [{"kind": "FileUpload", "configuration": {"field": "$"}}, RENAME],
            "p.json: FileUpload (step 1 of 2) m",
        ),
        (
            "p.json",
            [{"kind": "TransformJSON", "configuration": {"a": "$5"}}],
            "p.json: TransformJSON: a: '$5' is not a path",
        ),
        (
            "p.json",
            [{"kind": "Rename", "configuration": {"txt": "a"}}],
            "rows.jsonl:1: _index_ 0: Rename: there is no fi",
        ),
        (
            "p.json",
            [EXPLODE, RENAME],
            "rows.jsonl:2: _index_ 1: ExplodeCollections (step 1 of 2): text is null, not a ",
        ),
    ],
)
def test_a_mistake_is_one_sentence_and_no_traceback(folder: Folder, name: str, spec: Any, message: str) -> None:
    reported = folder.refused("adapt", "rows.jsonl", "--pipeline", pipeline(folder, spec, name), "-o", "out.jsonl")
    assert reported.startswith(f"error: {message}")
    assert reported.count("\n") == 1
    assert not (folder.path / "out.jsonl").exists()


def test_rows_before_the_failed_one_are_shown(folder: Folder) -> None:
    pipeline(folder, [EXPLODE])
    shown = folder.call("adapt", "rows.jsonl", "--pipeline", "p.json").stdout
    assert shown.count("\n+ {") == 2
    assert shown.endswith('_index_ 1\n- {"_index_":1,"text":null,"o":{"k":1}}\n\n')


def test_files_that_are_not_there_are_named(folder: Folder) -> None:
    assert folder.refused("adapt", "nope.jsonl", "--pipeline", "p.json") == "error: nope.jsonl: no such file\n"
    reported = folder.refused("adapt", "rows.jsonl", "--pipeline", "nope.json")
    assert reported == "error: nope.json: no such file; it must contain the adapters of the pipeline\n"


def test_an_output_of_unknown_form_is_wrong_usage(folder: Folder) -> None:
    reported = folder.refused("adapt", "rows.jsonl", "--pipeline", "p.json", "-o", "out.csv", code=2)
    assert "the output must be OUT.jsonl or OUT.parquet" in reported


def test_what_rows_hold_does_nothing_to_the_terminal(folder: Folder) -> None:
    folder.write("evil.jsonl", [{"text": "\x1b[31m red"}])
    pipeline(folder, RENAME)
    assert "\x1b" not in folder.done("adapt", "evil.jsonl", "--pipeline", "p.json")


def test_adapting_a_file_gives_what_a_dataset_of_it_holds(folder: Folder) -> None:
    pipeline(folder, [])
    reported = folder.json("adapt", "rows.jsonl", "--pipeline", "p.json")
    data = Dataset.from_file(folder.path / "rows.jsonl", input=["text", "o"])
    assert [{k: row["after"][0][k] for k in ("text", "o")} for row in reported["rows"]] == [each.input for each in data]


def test_a_folder_that_is_not_there_is_reported_by_the_name_that_was_given(folder: Folder) -> None:
    result = folder.call("adapt", "rows.jsonl", "--pipeline", "p.json", "-o", "none/out.jsonl")
    assert (result.exit_code, result.stderr) == (1, "error: none/out.jsonl: No such file or directory\n")


def test_the_file_that_is_read_is_not_written_over(folder: Folder) -> None:
    before = (folder.path / "rows.jsonl").read_bytes()
    result = folder.call("adapt", "rows.jsonl", "--pipeline", "p.json", "-o", "./rows.jsonl")
    assert result.exit_code == 2
    assert "rows.jsonl is the input file" in result.stderr
    assert (folder.path / "rows.jsonl").read_bytes() == before
