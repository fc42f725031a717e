"""Recorded outputs: how the rows of a file find their examples, and what becomes of rows that are missing or wrong."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from evaluand.core.errors import DataError, EvaluandError, SpecError, TaskError
from evaluand.data.dataset import Dataset
from evaluand.evaluation.evaluator import Evaluator
from evaluand.run.runner import Run, Runner
from evaluand.run.tasks.recorded import DoubtfulJoin, GivenTask, RecordedTask
from evaluand.store.store import MemoryStore
from evaluand.trace import Trace


def file(folder: Path, rows: list[dict[str, Any]] | str, name: str = "model.jsonl") -> str:
    path = folder / name
    path.write_text(rows if isinstance(rows, str) else "\n".join(map(json.dumps, rows)))
    return str(path)


def examples(*indices: int, names: list[Any] | None = None) -> Dataset:
    rows: list[dict[str, Any]] = [{"_index_": index, "input": f"question {index}"} for index in indices]
    for row, name in zip(rows, names or [], strict=False):
        row["id"] = name
    return Dataset.from_rows(rows)


def outcomes(run: Run) -> list[Any]:
    """Of each row what it answered, or the type and code of its failure."""
    return [(r.error["type"], r.error["code"]) if r.error else r.responses for r in run]


NOT_RECORDED = ("TaskError", "not_recorded")


# Joining


def test_rows_are_joined_by_index_in_whatever_order(tmp_path: Path) -> None:
    path = file(
        tmp_path, [{"_index_": 9, "text": "nine"}, {"_index_": 1, "text": "one"}, {"_index_": 7, "text": "no one's"}]
    )
    with pytest.warns(DoubtfulJoin):
        run = Runner().run(RecordedTask(path=path, response="text"), examples(1, 9))
    assert outcomes(run) == [["one"], ["nine"]]


def test_rows_without_an_index_are_joined_by_their_number(tmp_path: Path) -> None:
    path = file(tmp_path, "text\nzero\none\ntwo\n", "model.csv")
    with pytest.warns(DoubtfulJoin):
        run = Runner().run(RecordedTask(path=path, response="text"), examples(0, 2))
    assert outcomes(run) == [["zero"], ["two"]]


def test_blank_lines_do_not_count_as_rows(tmp_path: Path) -> None:
    path = file(tmp_path, '\n{"text":"zero"}\n\n{"text":"one"}\n')
    assert outcomes(Runner().run(RecordedTask(path=path, response="text"), examples(0, 1))) == [["zero"], ["one"]]


def test_rows_are_joined_by_id(tmp_path: Path) -> None:
    path = file(tmp_path, [{"id": "b", "text": "B"}, {"id": 7, "text": "seven"}, {"id": "a", "text": "A"}])
    run = Runner().run(RecordedTask(path=path, response="text", by="id"), examples(0, 1, 2, names=["a", "b", "7"]))
    assert outcomes(run) == [["A"], ["B"], ["seven"]]


def test_codes_with_leading_zeros_are_joined_as_they_are_written(tmp_path: Path) -> None:
    (tmp_path / "cases.csv").write_text("id,input\n007,x\n7,y\n")
    path = file(tmp_path, "id,text\n7,seven\n007,double o seven\n", "model.csv")
    run = Runner().run(RecordedTask(path=path, response="text", by="id"), Dataset.from_file(tmp_path / "cases.csv"))
    assert outcomes(run) == [["double o seven"], ["seven"]]


@pytest.mark.parametrize(("by", "key"), [("index", "case.number"), ("id", "case.name"), ("id", "$['case']['name']")])
def test_the_key_may_stand_anywhere_in_the_row(tmp_path: Path, by: str, key: str) -> None:
    rows = [{"case": {"number": i, "name": name}, "out": {"texts": [name.upper()]}} for i, name in ((4, "d"), (2, "b"))]
    task = RecordedTask(path=file(tmp_path, rows), response="out.texts[0]", by=by, key=key)
    assert outcomes(Runner().run(task, examples(2, 4, names=["b", "d"]))) == [["B"], ["D"]]


def test_repeats_are_joined_by_their_number(tmp_path: Path) -> None:
    rows = [{"_index_": i, "try": r, "text": f"{i}/{r}"} for i in (0, 1) for r in (1, 0)]
    task = RecordedTask(path=file(tmp_path, rows), response="text", replication="try")
    run = Runner().run(task, examples(0, 1), replications=3)
    assert outcomes(run) == [["0/0"], ["0/1"], NOT_RECORDED, ["1/0"], ["1/1"], NOT_RECORDED]
    assert [(r.index, r.replication) for r in run] == [(i, r) for i in (0, 1) for r in (0, 1, 2)]


def test_folds_stand_beside_the_responses_and_the_scores(tmp_path: Path) -> None:
    rows = [{"_index_": i, "fold": i % 2, "text": "t"} for i in range(3)]
    run = Runner().run(RecordedTask(path=file(tmp_path, rows), response="text", fold_key="fold"), examples(0, 1, 2, 3))
    assert run.table()["fold"].to_pylist() == [0, 1, 0, None]
    scores = Evaluator().evaluate(run, {"any": lambda output: True}).table("any")
    assert scores["fold"].to_pylist() == [0, 1, 0, None]


def test_each_example_keeps_its_own_output_however_alike_the_inputs_and_in_however_many_runs(tmp_path: Path) -> None:
    data = Dataset.from_rows([{"input": "the same"}, {"input": "the same"}, {"input": "the same"}])
    task = RecordedTask(path=file(tmp_path, [{"text": "a"}, {"text": "b"}, {"text": "c"}]), response="text")
    runner = Runner()
    runner.run(task, data, limit=1)
    assert outcomes(runner.run(task, data)) == [["a"], ["b"], ["c"]]


# What a row holds


@pytest.mark.parametrize("value", ["text", 1, 1.5, True, [], [1, "a"], {}, {"a": {}}, 2**60, "é"])
def test_an_output_is_given_as_it_was_recorded(tmp_path: Path, value: Any) -> None:
    path = file(tmp_path, [{"out": value}, {"out": "something else"}])
    [first, _] = outcomes(Runner().run(RecordedTask(path=path, response="out"), examples(0, 1)))
    assert first == [value]
    assert type(first[0]) is type(value)


def test_several_parts_are_given_under_their_names(tmp_path: Path) -> None:
    rows = [{"models": [{"label": "cat", "p": 0.75}, {"label": "dog", "p": 0.5}]}]
    task = RecordedTask(
        path=file(tmp_path, rows), response={"prediction": "models[1].label", "confidence": "models[1].p"}
    )
    assert outcomes(Runner().run(task, examples(0))) == [[{"prediction": "dog", "confidence": 0.5}]]


def test_the_whole_row_can_be_the_output(tmp_path: Path) -> None:
    path = file(tmp_path, [{"a": 1, "b": {"c": None}}])
    assert outcomes(Runner().run(RecordedTask(path=path, response="$"), examples(0))) == [[{"a": 1, "b": {"c": None}}]]


def test_items_are_one_response_and_an_empty_list_is_an_answer(tmp_path: Path) -> None:
    path = file(tmp_path, [{"spans": [[0, 3], [4, 5]]}, {"spans": []}, {"spans": None}, {"spans": "none"}])
    run = Runner().run(RecordedTask(path=path, response="spans", items=True), examples(0, 1, 2, 3))
    assert outcomes(run) == [[[[0, 3], [4, 5]]], [[]], None, ("DataError", None)]
    assert run.table()["n_responses"].to_pylist() == [1, 1, 0, 0]


def test_the_error_of_a_row_is_that_of_the_call_and_is_not_repeated(tmp_path: Path) -> None:
    rows = [
        {"_index_": 0, "text": "zero", "error": None},
        {"_index_": 1, "text": None, "error": "RateLimitError: 429"},
        {"_index_": 2, "text": "half an ans", "error": "timed out"},
        {"_index_": 3, "text": None, "error": ""},
    ]
    path = file(tmp_path, rows)
    read = Runner().run(RecordedTask(path=path, response="text", error="error"), examples(0, 1, 2, 3, 4))
    assert outcomes(read) == [["zero"], *[("TaskError", "recorded")] * 2, None, NOT_RECORDED]
    assert [row.error["message"] for row in read if row.error][:2] == ["RateLimitError: 429", "timed out"]
    assert (read.failures, read.failures_to_repeat) == ({"TaskError": 3}, {})
    with pytest.warns(DoubtfulJoin, match="'error' is not read, but says why 1 row without a response failed, such as"):
        ignored = Runner().run(RecordedTask(path=path, response="text"), examples(0, 1, 2, 3))
    assert outcomes(ignored) == [["zero"], None, ["half an ans"], None]
    assert ignored.manifest["spec"]["task"] != read.manifest["spec"]["task"]


@pytest.mark.parametrize(
    ("error", "message"),
    [
        ({"type": "E", "code": 3}, '{"code":3,"type":"E"}'),
        (503, "503"),
        (0, "0"),
        (True, "true"),
        (False, None),
    ],
)
def test_errors_of_other_types_are_written_as_json(tmp_path: Path, error: Any, message: str | None) -> None:
    path = file(tmp_path, [{"_index_": 0, "text": "zero", "call": {"error": error}}])
    [row] = Runner().run(RecordedTask(path=path, response="text", error="call.error"), examples(0))
    assert (row.error and row.error["message"]) == message


def test_a_column_of_errors_that_the_file_does_not_have_is_refused(tmp_path: Path) -> None:
    path = file(tmp_path, [{"_index_": 0, "text": "zero"}])
    with pytest.raises(SpecError, match="error: "):
        Runner().run(RecordedTask(path=path, response="text", error="eror"), examples(0))


def test_a_null_response_is_no_answer_and_a_missing_row_a_failure(tmp_path: Path) -> None:
    path = file(tmp_path, [{"_index_": 0, "text": None}, {"_index_": 1, "text": "one"}])
    run = Runner().run(RecordedTask(path=path, response="text"), examples(0, 1, 2))
    assert outcomes(run) == [None, ["one"], NOT_RECORDED]
    assert run.counts == {"completed": 2, "failed": 1}
    [failed] = [r.error for r in run if r.error]
    assert failed["message"] == f"{path} has no row for index 2"
    evaluation = Evaluator().evaluate(run, {"any": lambda output: True})
    assert evaluation.table("any")["status"].to_pylist() == ["abstained", "scored", "failed"]


@pytest.mark.parametrize(("first", "outcome"), [("", None), ("a", [""])])
def test_a_quoted_empty_csv_cell_is_no_answer_where_another_cell_is_empty(
    tmp_path: Path, first: str, outcome: list[str] | None
) -> None:
    path = file(tmp_path, f'_index_,text\n0,{first}\n1,""\n', "model.csv")
    assert outcomes(Runner().run(RecordedTask(path=path, response="text"), examples(0, 1)))[1] == outcome


def test_a_response_missing_in_some_rows_fails_those_and_names_the_line(tmp_path: Path) -> None:
    path = file(tmp_path, '{"out":{"text":"zero"}}\n\n{"out":{"txt":"one"}}\n{"out":null}\n')
    run = Runner().run(RecordedTask(path=path, response="out.text"), examples(0, 1, 2))
    assert outcomes(run) == [["zero"], NOT_RECORDED, NOT_RECORDED]
    messages = [r.error["message"] for r in run if r.error]
    assert messages[0] == f"{path}:3: out.text: $.out has no 'text' (did you mean 'txt'?)"
    assert messages[1].startswith(f"{path}:4: out.text: $.out is ")


def test_one_part_missing_fails_the_row(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [{"m": {"label": "cat", "p": 0.5}}, {"m": {"label": "cat"}}]
    task = RecordedTask(path=file(tmp_path, rows), response={"prediction": "m.label", "confidence": "m.p"})
    assert outcomes(Runner().run(task, examples(0, 1))) == [[{"prediction": "cat", "confidence": 0.5}], NOT_RECORDED]


@pytest.mark.parametrize("name", ["model.csv", "model.tsv", "model.json", "model.parquet", "model.arrow", "model.txt"])
def test_every_format_is_read(tmp_path: Path, name: str) -> None:
    rows = [{"_index_": 1, "text": "one", "p": 0.5}, {"_index_": 0, "text": "zero", "p": 0.25}]
    path = tmp_path / name
    if name == "model.parquet":
        pq.write_table(pa.Table.from_pylist(rows), path)
    elif name == "model.arrow":
        with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, pa.Table.from_pylist(rows).schema) as writer:
            writer.write_table(pa.Table.from_pylist(rows))
    elif name == "model.json":
        path.write_text(json.dumps(rows))
    else:
        mark = "\t" if name == "model.tsv" else ","
        path.write_text("\n".join(mark.join(map(str, row)) for row in (rows[0], *(r.values() for r in rows))))
    format = "csv" if name == "model.txt" else None
    task = RecordedTask(path=str(path), response={"prediction": "text", "confidence": "p"}, format=format)
    assert outcomes(Runner().run(task, examples(0, 1))) == [
        [{"prediction": "zero", "confidence": 0.25}],
        [{"prediction": "one", "confidence": 0.5}],
    ]


# Refused before anything runs


def refused(task: RecordedTask, data: Dataset | None = None) -> EvaluandError:
    """The error with which a run over a task's recorded outputs is refused; nothing was sealed."""
    store = MemoryStore()
    with pytest.raises(EvaluandError) as error:
        Runner(store).run(task, data or examples(0, 1))
    assert not any(store.is_sealed("runs", id) for id in store.ids("runs"))
    return error.value


def test_rows_of_one_key_are_named_all_at_once(tmp_path: Path) -> None:
    path = file(tmp_path, [{"_index_": i, "text": "t"} for i in (3, 4, 3, 5, 4)])
    error = refused(RecordedTask(path=path, response="text"))
    assert isinstance(error, DataError)
    assert [(fault.where, fault.message) for fault in error.faults] == [
        (f"{path}:3", f"index 3 occurs twice (first at {path}:1); keep one row for each"),
        (f"{path}:5", f"index 4 occurs twice (first at {path}:2); keep one row for each"),
    ]


def test_rows_of_one_key_and_different_repeats_are_reported_apart(tmp_path: Path) -> None:
    path = file(tmp_path, [{"_index_": 0, "try": r, "text": "t"} for r in (0, 1, 1)])
    error = refused(RecordedTask(path=path, response="text", replication="try"))
    assert [fault.where for fault in error.faults] == [f"{path}:3"]  # type: ignore[attr-defined]


@pytest.mark.parametrize("wrong", ["x", 1.5, None, True])
@pytest.mark.parametrize("column", ["_index_", "try", "fold"])
def test_a_key_that_is_no_whole_number_is_named_by_row(tmp_path: Path, column: str, wrong: Any) -> None:
    rows = [{"_index_": i, "try": 0, "fold": 0, "text": "t"} for i in range(3)]
    rows[1] |= {"_index_": 1, column: wrong}
    path = file(tmp_path, rows)
    error = refused(RecordedTask(path=path, response="text", replication="try", fold_key="fold"))
    assert isinstance(error, DataError)
    assert [fault.where for fault in error.faults] == [f"{path}:2"]
    assert column in str(error)


@pytest.mark.parametrize("wrong", ["null", '""'])
def test_an_id_that_is_empty_is_named_by_row(tmp_path: Path, wrong: str) -> None:
    path = file(tmp_path, f'{{"id":"a","text":"A"}}\n{{"id":{wrong},"text":"B"}}\n')
    error = refused(RecordedTask(path=path, response="text", by="id"), examples(0, names=["a"]))
    assert isinstance(error, DataError)
    assert [fault.where for fault in error.faults] == [f"{path}:2"]


@pytest.mark.parametrize(
    ("parameters", "reported"),
    [
        ({"by": "id"}, "by: id needs a column 'id'; set key to the column that holds the ids, one of: _index_, text"),
        ({"key": "case"}, "key: no column is called 'case'; there are _index_, text"),
        ({"replication": "try"}, "replication: no column is called 'try'; there are _index_, text"),
        ({"response": "txet"}, "response: no column is called 'txet' (did you mean 'text'?); there are _index_, text"),
    ],
)
def test_a_column_that_the_file_has_not_is_refused_with_what_there_is(
    tmp_path: Path, parameters: dict[str, Any], reported: str
) -> None:
    path = file(tmp_path, [{"_index_": 0, "text": "t"}, {"_index_": 1, "text": "t"}])
    error = refused(RecordedTask(path=path, **{"response": "text"} | parameters))
    assert isinstance(error, SpecError)
    assert str(error) == f"{path}: {reported}"


def test_columns_that_the_file_has_not_are_named_all_at_once(tmp_path: Path) -> None:
    path = file(tmp_path, [{"text": "t"}])
    response = {"prediction": "text", "confidence": "score"}
    error = refused(RecordedTask(path=path, response=response, by="id", fold_key="fold"))
    assert [line.split(": ")[1] for line in str(error).splitlines()] == ["response", "fold_key", "by"]


def test_a_response_that_no_row_has_is_refused_with_what_is_there(tmp_path: Path) -> None:
    path = file(tmp_path, [{"_index_": 0, "text": "t"}, {"_index_": 1, "text": "t"}])
    error = refused(RecordedTask(path=path, response="text.content"))
    assert isinstance(error, DataError)
    assert str(error).startswith(f"no row has a response: {path}:1: text.content: $.text is ")


@pytest.mark.parametrize(("name", "text"), [("a.csv", ""), ("a.csv", "id,text\n"), ("a.jsonl", ""), ("a.json", "[]")])
def test_a_file_without_rows_is_refused_alike_in_every_format(tmp_path: Path, name: str, text: str) -> None:
    path = file(tmp_path, text, name)
    error = refused(RecordedTask(path=path, response="text", by="id"))
    assert isinstance(error, DataError)
    assert str(error) == f"{path}: the file has no rows"


def test_a_csv_file_may_part_its_cells_otherwise(tmp_path: Path) -> None:
    path = file(tmp_path, "_index_;text\n0;a,b\n", "model.csv")
    task = RecordedTask(path=path, response="text", delimiter=";")
    assert outcomes(Runner().run(task, examples(0))) == [["a,b"]]
    assert task.identify().spec != RecordedTask(path=path, response="text").identify().spec


# Rows that nobody asks for


@pytest.mark.parametrize("limit", [None, 1])
def test_rows_that_no_example_has_are_reported_once_whatever_the_limit(tmp_path: Path, limit: int | None) -> None:
    path = file(tmp_path, [{"id": name, "text": "t"} for name in ("a", "x17", "b", "y")])
    with pytest.warns(DoubtfulJoin) as reported:
        Runner().run(RecordedTask(path=path, response="text", by="id"), examples(0, 1, names=["a", "b"]), limit=limit)
    assert [str(one.message) for one in reported] == [f"{path}: 2 rows match no example, such as id 'x17'"]


def test_a_row_that_no_example_has_is_reported_by_its_key(tmp_path: Path) -> None:
    path = file(tmp_path, [{"_index_": i, "try": 0, "text": "t"} for i in (0, 1, 7)])
    with pytest.warns(DoubtfulJoin) as reported:
        Runner().run(RecordedTask(path=path, response="text", replication="try"), examples(0, 1))
    assert [str(one.message) for one in reported] == [f"{path}: 1 row matches no example: index 7"]


def test_a_limit_leaves_rows_over_without_a_word(tmp_path: Path) -> None:
    path = file(tmp_path, [{"_index_": i, "text": str(i)} for i in range(5)])
    run = Runner().run(RecordedTask(path=path, response="text"), examples(*range(5)), limit=2)
    assert outcomes(run) == [["0"], ["1"]]


# A fresh interpreter's memory beyond what the libraries take, in MB, when it holds the outputs of a file.
HELD = """
import resource, sys
from evaluand.data.dataset import Dataset
from evaluand.run.tasks.recorded import RecordedTask
def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
data = Dataset.from_rows([{"id": "0", "input": ""}])
RecordedTask(path=sys.argv[1], response="text", by="id").prepare(data)
before = peak()
RecordedTask(path=sys.argv[2], response="text", by="id").prepare(data)
print(peak() - before)
"""


@pytest.mark.slow
def test_a_file_of_many_outputs_takes_little_more_memory_than_its_size(tmp_path: Path) -> None:
    few = file(tmp_path, "id,text\n0,a\n", "few.csv")
    many = file(tmp_path, "id,text\n" + "".join(f"{i},{'x' * 400}\n" for i in range(50_000)), "many.csv")  # 20 MB
    command = [sys.executable, "-W", "ignore", "-c", HELD, few, many]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    assert int(result.stdout) < 100


# Files


def test_a_file_that_is_missing_broken_or_of_no_known_format_is_refused(tmp_path: Path) -> None:
    missing = refused(RecordedTask(path=str(tmp_path / "nothing.csv"), response="text"))
    assert str(missing) == f"{tmp_path / 'nothing.csv'}: no such file"
    broken = refused(RecordedTask(path=file(tmp_path, '{"text":"a"}\n{"text":\n'), response="text"))
    assert f"{tmp_path / 'model.jsonl'}:2: not JSON" in str(broken)
    unknown = refused(RecordedTask(path=file(tmp_path, "x", "model.docx"), response="text"))
    assert "unknown format 'docx'" in str(unknown)


def test_a_way_of_joining_that_does_not_exist_is_refused_as_written_wrongly(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="by: is the text 'name'; give one of index, id"):
        RecordedTask(path=file(tmp_path, []), response="text", by="name")


@pytest.mark.parametrize(
    "parameters",
    [{"response": "a...b"}, {"response": {"x": "a["}}, {"response": ""}, {"key": "a["}, {"replication": "a["}],
)
def test_what_is_no_path_is_refused_as_written_wrongly(tmp_path: Path, parameters: dict[str, Any]) -> None:
    path = file(tmp_path, [{"_index_": 0, "text": "t"}])
    with pytest.raises(SpecError, match=r"is not a path|selects nothing|response must not be empty"):
        RecordedTask(path=path, **{"response": "text"} | parameters).prepare()


@pytest.mark.parametrize("response", [3, ["text"], {"prediction": 1}])
def test_a_response_that_is_no_path_is_refused_with_what_to_give(response: Any) -> None:
    with pytest.raises(SpecError, match=r"response: is .*; give the path of the output in a row, or a path for each"):
        RecordedTask(path="p.jsonl", response=response)


def test_an_output_of_null_is_not_known_before_the_run(tmp_path: Path) -> None:
    task = RecordedTask(
        path=file(tmp_path, [{"_index_": 0, "text": None}, {"_index_": 1, "text": "a"}]), response="text"
    )
    assert [task.known(index, str(index), 0) for index in (0, 1, 2)] == [(), ("a",), ()]


def test_outputs_in_memory_are_made_when_the_first_is_needed() -> None:
    made: list[str] = []
    task = GivenTask.from_texts("a", lambda: made.append("texts") or pa.array(['"x"'], pa.large_string()))
    assert (task.replications, made) == (1, [])
    assert (task.known(0, "0", 0), made) == (("x",), ["texts"])


# Identity


def test_the_same_outputs_are_the_same_task_wherever_the_file_lies(tmp_path: Path) -> None:
    rows = [{"text": "a"}]
    (tmp_path / "elsewhere").mkdir()
    task = RecordedTask(path=file(tmp_path, rows), response="text")
    moved = RecordedTask(path=file(tmp_path / "elsewhere", rows, "renamed.jsonl"), response="text")
    assert task.identify().spec == moved.identify().spec
    assert task.identify().pinned
    runner = Runner()
    assert runner.run(task, examples(0)).id == runner.run(moved, examples(0)).id


def test_other_outputs_another_place_or_another_join_is_another_task(tmp_path: Path) -> None:
    path = file(tmp_path, [{"id": 0, "text": "a"}])
    tasks = [
        RecordedTask(path=path, response="text"),
        RecordedTask(path=path, response={"text": "text"}),
        RecordedTask(path=path, response="id"),
        RecordedTask(path=path, response="text", by="id"),
        RecordedTask(path=path, response="text", key="id"),
        RecordedTask(path=path, response="text", items=True),
        RecordedTask(path=path, response="text", replication="id"),
        RecordedTask(path=path, response="text", fold_key="id"),
        RecordedTask(path=file(tmp_path, [{"id": 0, "text": "b"}], "other.jsonl"), response="text"),
    ]
    specs = [json.dumps(task.identify().spec) for task in tasks]
    assert len(set(specs)) == len(tasks)


def test_recorded_outputs_cannot_be_asked_for_an_input_alone(tmp_path: Path) -> None:
    task = RecordedTask(path=file(tmp_path, [{"text": "a"}]), response="text")
    with Trace.start("t", "question").root as span, pytest.raises(TaskError, match="belong to examples"):
        task.do_run("question", span)


def test_a_recorded_task_is_called_by_the_name_of_its_file(tmp_path: Path) -> None:
    assert RecordedTask(path=file(tmp_path, [], "my.model.jsonl"), response="text").name == "my.model"


def test_a_file_that_has_changed_between_two_runs_is_read_again(tmp_path: Path) -> None:
    path = file(tmp_path, [{"_index_": 0, "text": "old"}])
    task, data = RecordedTask(path=str(path), response="text"), Dataset.from_rows([{"input": "q"}])
    assert [r.responses for r in Runner().run(task, data)] == [["old"]]
    file(tmp_path, [{"_index_": 0, "text": "newer"}])
    assert [r.responses for r in Runner().run(task, data)] == [["newer"]]


def test_a_file_that_names_its_rows_and_is_joined_by_their_number_is_reported(tmp_path: Path) -> None:
    path = file(tmp_path, [{"qid": "b", "text": "B"}, {"qid": "a", "text": "A"}])
    data = Dataset.from_rows([{"input": "x", "id": "a"}, {"input": "y", "id": "b"}])
    with pytest.warns(DoubtfulJoin, match="if 'qid' holds the ids of the examples, set by: id, key: qid"):
        Runner().run(RecordedTask(path=str(path), response="text"), data)
    run = Runner().run(RecordedTask(path=str(path), response="text", by="id", key="qid"), data)
    assert [r.responses for r in run] == [["A"], ["B"]]


def test_a_dataset_without_ids_is_not_joined_by_them(tmp_path: Path) -> None:
    path = file(tmp_path, [{"id": "a", "text": "A"}])
    with pytest.raises(SpecError, match="the dataset has no ids; set its role id to their column"):
        Runner().run(RecordedTask(path=str(path), response="text", by="id"), Dataset.from_rows([{"input": "x"}]))


def test_a_file_with_the_ids_of_the_examples_is_not_joined_by_row_numbers(tmp_path: Path) -> None:
    path = file(tmp_path, [{"review": "b", "text": "B"}, {"review": "a", "text": "A"}])
    data = Dataset.from_rows([{"input": "x", "review": "a"}, {"input": "y", "review": "b"}], id="review", input="input")
    with pytest.raises(SpecError, match="has the ids of the examples in 'review'; set by: id, key: review"):
        Runner().run(RecordedTask(path=str(path), response="text"), data)
