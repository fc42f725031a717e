"""Logs of Inspect that are large, incomplete or ambiguous, and what its scores count."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest
from support.foreign_results import inspect_header, inspect_samples
from support.thinned import thinned

from evaluand.core.errors import DataError
from evaluand.data.dataset import Dataset
from evaluand.evaluation.evaluator import Evaluator
from evaluand.evaluation.scorer import Score
from evaluand.exchange.exporter import Result
from evaluand.exchange.exporters.inspect import Inspect
from evaluand.exchange.storing import ImportedResult, import_results
from evaluand.run.runner import Runner
from evaluand.store.store import MemoryStore


def read(path: Path) -> ImportedResult:
    return import_results(path, MemoryStore())


def log(folder: Path, samples: list[dict[str, Any]], **header: Any) -> Path:
    path = folder / "log.json"
    path.write_text(json.dumps({**inspect_header(), "results": {}, **header, "samples": samples}))
    return path


def grades(result: ImportedResult, scorer: str = "match") -> list[dict[str, Any]]:
    (evaluation,) = result.evaluations
    assert evaluation is not None
    columns = ["value", "label", "explanation", "data"]
    rows: list[dict[str, Any]] = evaluation.table(scorer).select(columns).to_pylist()
    return rows


def model_call(**said: Any) -> dict[str, Any]:
    reply = {"choices": [{"message": {"role": "assistant", "content": "done"}}]}
    return {"event": "model", "model": "m", "output": reply, **said}


def inputs(result: ImportedResult) -> list[Any]:
    (run,) = result.runs
    return [json.loads(row["input"]) for batch in run.spans() for row in batch.to_pylist() if row["parent"] is not None]


def test_attachments_that_make_a_sample_too_large_leave_it_out(tmp_path: Path) -> None:
    first, second, *_ = inspect_samples()
    first["attachments"] = {"d": "x" * (1 << 20)}
    many = [{"type": "text", "text": "attachment://d"}] * 600
    for content in (
        {"events": [model_call(input=[{"role": "user", "content": many}])]},
        {"events": [{"event": "tool", "function": "f", "arguments": {"a": ["attachment://d"] * 600}}]},
        {"messages": [{"role": "user", "content": many}]},
        {"metadata": {"a": ["attachment://d"] * 600}},
    ):
        result = read(log(tmp_path, [{**first, **content}, second]))
        assert result.samples == 1
        assert [fault.message for fault in result.left_out] == [
            "its attachments, in all of their places, have more than 67,108,864 characters"
        ]


@thinned("has_pool", [True, False], every=2)
def test_inputs_that_grow_with_every_call_are_shortened_to_their_last_messages(tmp_path: Path, has_pool: bool) -> None:
    (sample, *_) = inspect_samples()
    n, text = 200, "y" * 4000
    messages = [{"role": "user", "content": f"{number} {text}"} for number in range(n)]
    if has_pool:
        sample["events_data"] = {"messages": messages}
        sample["events"] = [model_call(input=[], input_refs=[[0, number]]) for number in range(1, n + 1)]
    else:
        sample["attachments"] = {f"{number}": message["content"] for number, message in enumerate(messages)}
        named = [{"role": "user", "content": f"attachment://{number}"} for number in range(n)]
        sample["events"] = [model_call(input=named[:number]) for number in range(1, n + 1)]
    result = read(log(tmp_path, [sample]))
    found = inputs(result)
    assert found[99] == messages[:100]
    assert found[-1] == [{"earlier_messages": n - 2}, *messages[-2:]]
    shortened = sum("earlier_messages" in each[0] for each in found)
    assert result.notes == [
        f"log.json: {shortened} model calls without the earlier messages of the input, because the inputs of a sample"
        " would have more than 33,554,432 characters in all"
    ]
    assert sum(len(json.dumps(each)) for each in found) < 1.1 * (1 << 25)


def test_words_and_texts_of_numbers_count_as_in_inspect(tmp_path: Path) -> None:
    said = ["yes", "True", "NO", "false", "0.5", " 1e3 ", "P", "maybe", "nan"]
    (sample, *_) = inspect_samples()
    samples = [{**sample, "id": n, "scores": {"match": {"value": value}}} for n, value in enumerate(said)]
    found = grades(read(log(tmp_path, samples)))
    assert [row["value"] for row in found] == [1.0, 1.0, 0.0, 0.0, 0.5, 1000.0, 0.5, None, None]
    assert [row["label"] for row in found] == ["yes", "True", "NO", "false", None, None, "P", "maybe", "nan"]


def test_two_members_of_one_name_are_one_sample_and_the_other_is_named(tmp_path: Path) -> None:
    path, samples = tmp_path / "log.eval", inspect_samples()
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("header.json", json.dumps({**inspect_header(), "results": {}}))
        archive.writestr("samples/0_epoch_1.json", json.dumps(samples[1]))
        with pytest.warns(UserWarning, match="Duplicate name"):
            archive.writestr("samples/0_epoch_1.json", json.dumps(samples[0]))
        archive.writestr("samples/2_epoch_1.json", json.dumps(samples[2]))
    result = read(path)
    assert [row["value"] for row in grades(result)] == [1.0, 1.0]
    assert [(fault.where, fault.message) for fault in result.left_out] == [
        (f"{path}: samples/0_epoch_1.json", "another member further on has this name, and counts, as in Inspect")
    ]


def test_a_log_that_is_not_complete_says_how_much_it_has(tmp_path: Path) -> None:
    result = read(log(tmp_path, inspect_samples()[:2], status="cancelled"))
    assert result.notes == ["log.json: the status of this log is 'cancelled', not 'success'; it has 2 of 3 samples"]
    results = {"total_samples": 9, "completed_samples": 2}
    [note] = read(log(tmp_path, inspect_samples()[:2], status="error", results=results)).notes
    assert note.endswith("it has 2 of 9 samples")
    path = tmp_path / "started.eval"
    with zipfile.ZipFile(path, "w") as archive:
        head = {"version": 2, "eval": {"task": "addition", "model": "m"}}
        archive.writestr("_journal/start.json", json.dumps(head))
        archive.writestr("samples/0_epoch_1.json", json.dumps(inspect_samples()[0]))
    assert read(path).notes == ["started.eval: the status of this log is 'started', not 'success'"]


def exported(result: Result, path: Path) -> list[dict[str, Any]]:
    Inspect().write(result, path)
    samples: list[dict[str, Any]] = json.loads(path.read_text())["samples"]
    return samples


def test_an_exported_log_keeps_labels_data_and_explanations_and_shows_the_answer(tmp_path: Path) -> None:
    before = read(log(tmp_path, inspect_samples()))
    samples = exported(Result(before.runs[0], before.evaluations[0]), tmp_path / "again.json")
    assert [sample["scores"]["match"]["answer"] for sample in samples] == ["8", "10", "10"]
    after = read(tmp_path / "again.json")
    assert grades(after) == grades(before)
    for evaluation in (before.evaluations[0], after.evaluations[0]):
        assert evaluation is not None
        assert evaluation.ranges["match"] == {"value": (0, 1)}


def test_grades_without_numbers_or_without_labels_are_the_same_after_an_export(tmp_path: Path) -> None:
    data = Dataset.from_rows([{"input": "a"}, {"input": "b"}])
    run = Runner().run(str.upper, data)
    scorers = {
        "near": lambda output: Score(0.5),
        "kind": lambda output: Score(None, "yes" if output == "A" else "0.5"),
        "found": lambda output: Score(1.0, "right", explanation="why", data={"answer": 7}),
    }
    evaluation = Evaluator().evaluate(run, scorers)
    [sample, _] = exported(Result(run, evaluation), tmp_path / "log.json")
    assert {name: score["answer"] for name, score in sample["scores"].items()} == {
        "near": "A",
        "kind": "A",
        "found": "7",
    }
    again = read(tmp_path / "log.json")
    assert [(row["value"], row["label"]) for row in grades(again, "near")] == [(0.5, None)] * 2
    assert [(row["value"], row["label"]) for row in grades(again, "kind")] == [(None, "yes"), (None, "0.5")]
    [found, _] = grades(again, "found")
    assert (found["value"], found["label"], found["explanation"]) == (1.0, "right", "why")
    assert json.loads(found["data"]) == {"answer": 7}


def test_a_log_whose_samples_are_all_left_out_says_why(tmp_path: Path) -> None:
    (sample, *_) = inspect_samples()
    sample |= {"attachments": {"d": "x" * (1 << 20)}, "target": ["attachment://d"] * 65}
    with pytest.raises(DataError, match="its attachments, in all of their places"):
        read(log(tmp_path, [sample]))
