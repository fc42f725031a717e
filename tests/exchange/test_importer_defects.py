"""What is alike in a file of results and yet not the same is kept apart, and no grade is lost."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from support.foreign_results import WRITERS, write_langsmith, write_promptfoo

from evaluand.core.errors import DataError
from evaluand.exchange.importer import find_importers
from evaluand.exchange.storing import ImportedResult, save_results
from evaluand.run.runner import Run
from evaluand.store.store import MemoryStore


def read(path: Path) -> ImportedResult:
    return save_results(find_importers(path), MemoryStore())


def edit(path: Path, change: Any) -> ImportedResult:
    """Reads a file of JSON after a change of its content."""
    content = json.loads(path.read_text())
    path.write_text(json.dumps(change(content) or content))
    return read(path)


def scores(result: ImportedResult) -> list[dict[str, list[float | None]]]:
    """Scorer → values, for each evaluation."""
    return [
        {scorer: each.table(scorer)["value"].to_pylist() for scorer in each.scorers} if each else {}
        for each in result.evaluations
    ]


def answers(run: Run) -> list[Any]:
    return [None if each.responses is None else each.responses[0] for each in run]


def again(rows: list[dict[str, Any]], **said: Any) -> list[dict[str, Any]]:
    return [{**row, "response": {"output": "again"}, **said} for row in rows]


@pytest.mark.parametrize("are_behind", [False, True])
def test_a_provider_that_promptfoo_asks_in_two_ways_is_two_systems(tmp_path: Path, are_behind: bool) -> None:
    def change(document: dict[str, Any]) -> None:
        results = document["results"]
        (prompt,), rows = results["prompts"], results["results"]
        results["prompts"] = [prompt, prompt]
        rows[:0] = again(rows, promptIdx=1)
        if are_behind:
            results["prompts"] = results.pop("prompts")

    result = edit(write_promptfoo(tmp_path), change)
    assert (result.samples, result.agreements, result.notes) == (6, 6, [])
    assert {run.name: answers(run) for run in result.runs} == {
        "out/openai:m": ["8", "10", "10"],
        "out/openai:m (2)": ["again"] * 3,
    }


def test_prompts_behind_the_results_of_promptfoo_name_their_systems(tmp_path: Path) -> None:
    def change(document: dict[str, Any]) -> None:
        results = document["results"]
        (prompt,), rows = results.pop("prompts"), results["results"]
        results["prompts"] = [prompt, {**prompt, "label": "other"}]
        rows += again(rows, promptIdx=1)

    result = edit(write_promptfoo(tmp_path), change)
    assert [run.name for run in result.runs] == ["out/openai:m with {{question}}", "out/openai:m with other"]


def test_repeats_of_promptfoo_are_replications_and_other_assertions_other_examples(tmp_path: Path) -> None:
    def change(document: dict[str, Any]) -> None:
        rows = document["results"]["results"]
        del document["results"]["prompts"][0]["metrics"]
        rows += again(rows, testIdx=3)
        for number in (6, 7):
            rows += again(rows[:1], testIdx=number, testCase={"assert": [{"type": "equals", "value": "7"}]})

    (run,) = edit(write_promptfoo(tmp_path), change).runs
    assert (len(run.dataset), run.manifest["spec"]["replications"]) == (4, 2)
    assert answers(run) == ["8", "again", "10", "again", "10", "again", "again", "again"]


def test_a_metric_of_promptfoo_does_not_replace_the_score_of_its_test(tmp_path: Path) -> None:
    def change(document: dict[str, Any]) -> None:
        for row in document["results"]["results"]:
            (part,) = row["gradingResult"]["componentResults"]
            part["assertion"]["metric"], part["score"] = "score", 0.25
            row["gradingResult"]["componentResults"] = [part, {**part, "score": 0.75}]

    result = edit(write_promptfoo(tmp_path), change)
    assert (result.agreements, result.notes) == (3, [])
    (found,) = scores(result)
    assert found["score"] == [1.0, 0.0, 1.0]
    assert (found["score (2)"], found["score (3)"]) == ([0.25] * 3, [0.75] * 3)


def grade_twice(format: str, content: Any) -> None:
    """Adds to each answer a second grade of the name that it has, which is 0.5."""
    if format == "langfuse":
        for trace in content["data"]:
            trace["scores"].append({**trace["scores"][0], "value": 0.5})
    elif format == "deepeval":
        for case in content["testCases"]:
            case["metricsData"].append({**case["metricsData"][0], "score": 0.5})
    elif format == "mlflow":
        for row in content:
            row["trace"]["info"]["assessments"].append({"assessment_name": "exact", "feedback": {"value": 0.5}})
    else:
        for span in content["resourceSpans"][0]["scopeSpans"][0]["spans"]:
            again = json.loads(json.dumps(span["events"][0]))
            again["attributes"][1]["value"]["doubleValue"] = 0.5
            span["events"].append(again)


@pytest.mark.parametrize("format", ["deepeval", "langfuse", "mlflow", "spans"])
def test_two_grades_of_one_name_are_two_scorers(format: str, tmp_path: Path) -> None:
    result = edit(WRITERS[format](tmp_path), lambda content: grade_twice(format, content))
    (found,) = scores(result)
    (first,) = {"Exact Match", "exact"} & {*found}
    assert (found[first], found[f"{first} (2)"]) == ([1.0, 0.0, 1.0], [0.5] * 3)
    assert result.notes == []


def test_feedback_of_two_people_on_a_run_of_langsmith_is_kept(tmp_path: Path) -> None:
    path = write_langsmith(tmp_path)
    runs = [json.loads(line) for line in path.read_text().splitlines()]
    for run in runs:
        run["feedback"] = [{"key": "ok", "score": 1, "comment": "yes"}, {"key": "ok", "score": 0, "comment": "no"}]
    path.write_text("".join(json.dumps(run) + "\n" for run in runs))
    assert scores(read(path)) == [{"ok": [1.0] * 3, "ok (2)": [0.0] * 3}]


def test_whether_a_test_case_of_deepeval_passed_is_a_score_with_its_totals(tmp_path: Path) -> None:
    def change(document: dict[str, Any]) -> None:
        document |= {"testPassed": 2, "testFailed": 1, "evaluationCost": 0.75}
        for case in document["testCases"]:
            case |= {"success": case["metricsData"][0]["success"], "evaluationCost": 0.25, "completionTime": 1.5}
            case["tokenCost"] = 0.5

    result = edit(WRITERS["deepeval"](tmp_path), change)
    assert result.agreements == 4
    [note] = result.notes
    assert "the evaluation has cost 0.75 USD, which is no part of the cost of the answers" in note
    assert scores(result)[0]["success"] == [1.0, 0.0, 1.0]
    table = result.runs[0].table()
    assert {(each["cost"], each["currency"]) for each in table["usage"].to_pylist()} == {(0.5, "USD")}
    assert {each.total_seconds() for each in table["duration"].to_pylist()} == {1.5}


def test_a_number_of_passed_tests_that_deepeval_states_wrongly_is_named(tmp_path: Path) -> None:
    def change(document: dict[str, Any]) -> None:
        document |= {"testPassed": 3, "testFailed": 0}
        for case in document["testCases"]:
            case["success"] = case["metricsData"][0]["success"]

    assert edit(WRITERS["deepeval"](tmp_path), change).notes == [
        "test_run.json: the file states 3 as the number of passes of success, and the imported scores have 2"
    ]


def copy_lm_eval(source: Path, folder: Path, model: str, time: str, answer: str) -> None:
    """The results of a model at a time, with one answer to all questions."""
    folder.mkdir(exist_ok=True)
    document = json.loads(source.read_text())
    (samples,) = source.parent.glob("samples_*.jsonl")
    rows = [json.loads(line) | {"resps": [[answer]], "exact_match": 1.0} for line in samples.read_text().splitlines()]
    document |= {"model_name": model}
    document["results"]["addition"]["exact_match,none"] = 1.0
    (folder / f"results_{time}.json").write_text(json.dumps(document))
    (folder / f"samples_addition_{time}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def test_a_folder_of_lm_eval_has_each_model_with_its_newest_samples(tmp_path: Path) -> None:
    source = WRITERS["lm_eval"](tmp_path)
    folder = tmp_path / "all"
    folder.mkdir()
    copy_lm_eval(source, folder / "b", "org/b", "2026-11-23T09-00-00.1", "new")
    copy_lm_eval(source, folder / "b", "org/b", "2026-11-22T10-00-00.1", "old")
    copy_lm_eval(source, folder / "c", "org/c", "2026-11-21T09-00-00.1", "other")
    result = read(folder)
    assert {run.name: answers(run) for run in result.runs} == {
        "addition/org/b": ["new"] * 3,
        "addition/org/c": ["other"] * 3,
    }
    assert (result.agreements, result.left_out) == (2, [])
    assert result.notes == [
        "b: addition of org/b in results_2026-11-22T10-00-00.1.json is not imported, because"
        " results_2026-11-23T09-00-00.1.json is newer"
    ]


def test_results_of_lm_eval_without_samples_do_not_keep_others_out(tmp_path: Path) -> None:
    WRITERS["lm_eval"](tmp_path)
    (tmp_path / "results_2026-11-29T00-00-00.1.json").write_text("{}")
    result = read(tmp_path)
    assert (result.samples, result.agreements) == (3, 1)
    assert [fault.message.partition(";")[0] for fault in result.left_out] == [
        "there is no samples_*_2026-11-29T00-00-00.1.jsonl beside it"
    ]


def test_the_answer_of_lm_eval_is_the_reply_and_what_a_filter_found_the_label_of_its_grade(tmp_path: Path) -> None:
    path = WRITERS["lm_eval"](tmp_path)
    (samples,) = tmp_path.glob("samples_*.jsonl")
    rows = [json.loads(line) for line in samples.read_text().splitlines()]
    for row in rows:
        row["resps"] = [["I think it is " + row["filtered_resps"][0]]]
    rows = [{**row, "filter": name} for row in rows for name in ("strict", "flexible")]
    samples.write_text("".join(json.dumps(row) + "\n" for row in rows))
    result = read(path)
    assert answers(result.runs[0]) == [f"I think it is {answer}" for answer in ("8", "10", "10")]
    assert result.evaluations[0] is not None
    for name in ("strict", "flexible"):
        assert result.evaluations[0].table(f"exact_match,{name}")["label"].to_pylist() == ["8", "10", "10"]


def test_runs_of_langsmith_are_below_the_root_that_they_belong_to(tmp_path: Path) -> None:
    path = write_langsmith(tmp_path)
    runs = [json.loads(line) | {"trace_id": "t"} for line in path.read_text().splitlines()]
    for below, name in zip(runs[::2], ("a", "b", "c"), strict=True):
        below["name"] = name
    runs.append({**runs[0], "id": "deep", "parent_run_id": "c1", "name": "under b"})
    runs.append({**runs[0], "id": "lost", "parent_run_id": "unknown"})
    runs[1]["child_runs"] = [runs[0]]
    listed = tmp_path / "runs.json"
    listed.write_text(json.dumps(runs))
    result = read(listed)
    spans = [(row["_index_"], row["name"]) for batch in result.runs[0].spans() for row in batch.to_pylist()]
    assert sorted(spans) == [(0, "a"), (1, "b"), (1, "under b"), (2, "c")]
    assert [(fault.where.rpartition(": ")[2], fault.message) for fault in result.left_out] == [
        ("run lost", "its parent is none of the runs of its trace")
    ]


PYTHON = re.compile(
    "object has no attribute|not supported|object is not|argument must|invalid literal|padding|unhashable"
)

UNREADABLE = (DataError, ValueError, TypeError, AttributeError, LookupError)


@pytest.mark.parametrize("format", sorted({*WRITERS} - {"eval", "inspect"}))
@pytest.mark.parametrize("other", [7, "word", [7], {"a": 1}])
def test_reasons_are_not_in_the_words_of_python(format: str, other: Any, tmp_path: Path) -> None:
    path = WRITERS[format](tmp_path)
    lines = path.read_text().splitlines() if path.suffix == ".jsonl" else [path.read_text()]
    *others, last = map(json.loads, lines)
    said = []
    for holder, key in places(last):
        kept, holder[key] = holder[key], other
        path.write_text("".join(json.dumps(each) + "\n" for each in [*others, last]))
        holder[key] = kept
        try:
            (importer,) = find_importers(path)
            for where, record in importer.records():
                try:
                    list(importer.samples(record))
                except UNREADABLE as error:
                    importer.leave_out(where, str(error))
            said += [fault.message for fault in importer.left_out]
            list(importer.totals())
        except UNREADABLE as error:
            said.append(str(error))
    assert [message for message in said if PYTHON.search(message)] == []


def places(value: Any) -> list[tuple[Any, Any]]:
    """Each object or list in a JSON value with each of its keys; of lists, only the first item."""
    keys = [*value] if isinstance(value, dict) else [0] if isinstance(value, list) and value else []
    return [place for key in keys for place in ((value, key), *places(value[key]))]


def test_a_span_that_cannot_be_stored_does_not_keep_others_out(tmp_path: Path) -> None:
    def change(content: Any) -> None:
        spans = content["resourceSpans"][0]["scopeSpans"][0]["spans"]
        spans[0]["name"] = "\ud800"
        spans[1]["traceId"] = "A" * 11 + "=" * 3

    result = edit(WRITERS["spans"](tmp_path), change)
    assert result.samples == 1
    assert [fault.message for fault in result.left_out] == [
        "has a text that is not valid Unicode, or a number of more than 64 bits",
        "not a span: 'AAAAAAAAAAA===' is not an id",
    ]


def test_a_long_chain_of_runs_of_langsmith_has_one_root(tmp_path: Path) -> None:
    n = 5_000
    first = {"trace_id": "t", "id": "0", "run_type": "chain", "inputs": {"q": "1"}, "outputs": {"a": "2"}}
    chain = [{**first, "id": str(number), "parent_run_id": str(number - 1)} for number in range(n - 1, 0, -1)]
    other = {**first, "id": "other"}
    path = tmp_path / "runs.jsonl"
    path.write_text("".join(json.dumps(run) + "\n" for run in [first, other, *chain]))
    result = read(path)
    assert (result.samples, result.left_out) == (2, [])
    rows = [row for batch in result.runs[0].spans() for row in batch.to_pylist()]
    assert sum(row["parent"] is not None for row in rows) == n - 1
