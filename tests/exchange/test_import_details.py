"""Details of other tools' files that an import keeps: names, parents, counts of words, and ids without contents."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support.foreign_results import (
    write_deepeval,
    write_helm,
    write_langfuse,
    write_langsmith,
    write_openai_evals,
    write_promptfoo,
)

from evaluand.exchange.sample import cell_value
from evaluand.exchange.storing import ImportedResult, import_results
from evaluand.store.store import MemoryStore


def read(path: Path) -> ImportedResult:
    return import_results(path, MemoryStore())


def lines_of(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def write_lines(path: Path, lines: list[Any]) -> Path:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def scores(result: ImportedResult) -> dict[str, list[float | None]]:
    (evaluation,) = result.evaluations
    assert evaluation is not None
    return {scorer: evaluation.table(scorer)["value"].to_pylist() for scorer in evaluation.scorers}


def spans(result: ImportedResult) -> list[tuple[int, str, int]]:
    (run,) = result.runs
    rows = [row for batch in run.spans() for row in batch.to_pylist() if row["parent"] is not None]
    return [(row["span"], row["name"], row["parent"]) for row in rows]


def perturb(path: Path, *perturbations: dict[str, Any]) -> Path:
    """Gives the run of HELM each of its questions with each of these, of which the nth has the score n."""
    run = path.parent
    states, stats = [json.loads((run / name).read_text()) for name in (path.name, "per_instance_stats.json")]
    first, [stat, *_] = states["request_states"][0], stats
    states["request_states"] = [
        {**first, "instance": {**first["instance"], "perturbation": each}} for each in perturbations
    ]
    stats = [
        {**stat, "perturbation": dict(reversed(each.items())), "stats": [{"name": {"name": "score"}, "mean": n}]}
        for n, each in enumerate(perturbations)
    ]
    path.write_text(json.dumps(states))
    (run / "per_instance_stats.json").write_text(json.dumps(stats))
    return path


def test_perturbations_of_helm_of_one_name_have_their_own_scores(tmp_path: Path) -> None:
    typo = {"name": "misspelling", "robustness": True}
    path = perturb(write_helm(tmp_path), typo | {"prob": 0.05}, typo | {"prob": 0.5}, {"name": "lower"})
    result = read(path)
    assert scores(result) == {"score": [0.0, 1.0, 2.0]}
    assert [example.id for example in result.runs[0].dataset] == [
        'id0 misspelling {"name": "misspelling", "prob": 0.05, "robustness": true}',
        'id0 misspelling {"name": "misspelling", "prob": 0.5, "robustness": true}',
        "id0 lower",
    ]


def test_promptfoo_without_prompts_is_read(tmp_path: Path) -> None:
    path = write_promptfoo(tmp_path)
    document = json.loads(path.read_text())
    document["results"]["prompts"] = []
    path.write_text(json.dumps(document))
    assert scores(read(path))["success"] == [1.0, 0.0, 1.0]


def test_a_second_match_of_openai_evals_is_a_second_scorer(tmp_path: Path) -> None:
    path = write_openai_evals(tmp_path)
    lines = lines_of(path)
    again = [{**line, "data": {**line["data"], "correct": False}} for line in lines if line.get("type") == "match"]
    result = read(write_lines(path, [*lines[:-1], *again, lines[-1]]))
    assert sorted(scores(result)) == ["match", "match (2)"]
    assert (sum(scores(result)["match"]), scores(result)["match (2)"]) == (2.0, [0.0] * 3)
    assert (result.agreements, result.notes) == (1, [])


def test_an_observation_of_langfuse_that_is_listed_before_its_parent_keeps_it(tmp_path: Path) -> None:
    path = write_langfuse(tmp_path)
    document = json.loads(path.read_text())
    (trace, *_) = document["data"]
    (call,) = trace["observations"]
    about = {"type": "SPAN", "startTime": call["startTime"]}
    step = {**about, "id": "o2", "name": "step", "parentObservationId": "o3"}
    agent = {**about, "id": "o3", "name": "agent", "parentObservationId": None}
    trace["observations"] = [{**call, "parentObservationId": "o2"}, step, agent]
    path.write_text(json.dumps({**document, "data": [trace]}))
    assert spans(read(path)) == [(1, "agent", 0), (2, "step", 1), (3, "ask", 2)]


@pytest.mark.parametrize("is_before", [True, False])
def test_a_run_of_langsmith_that_starts_with_its_parent_keeps_it(tmp_path: Path, is_before: bool) -> None:
    path = write_langsmith(tmp_path)
    below, root = lines_of(path)[:2]
    deep = {**below, "id": "deep", "parent_run_id": below["id"], "name": "deep"}
    later = {**below, "id": "later", "name": "later", "start_time": below["end_time"]}
    path = write_lines(path, [later, *([deep, below] if is_before else [below, deep]), root])
    assert spans(read(path)) == [(1, "ask", 0), (2, "deep", 1), (3, "later", 0)]


def test_spans_that_are_each_others_parents_are_kept(tmp_path: Path) -> None:
    path = write_langsmith(tmp_path)
    below, root = lines_of(path)[:2]
    circle = [{**below, "id": one, "name": one, "parent_run_id": other} for one, other in ("ab", "bc", "ca")]
    found = spans(read(write_lines(path, [root, *circle, below])))
    assert found == [(1, "ask", 0), (2, "c", 0), (3, "b", 2), (4, "a", 3)]


def test_words_that_langsmith_only_counts_are_the_reason_why_there_is_no_score(tmp_path: Path) -> None:
    path = write_langsmith(tmp_path)
    lines = lines_of(path)
    for line in lines:
        line["feedback_stats"]["tone"] = {"n": 3, "avg": None, "values": {"good": 2, "bad": 1}}
    (evaluation,) = read(write_lines(path, lines)).evaluations
    assert evaluation is not None
    assert evaluation.counts["tone"] == {"abstained": 3}
    [reason, *_] = evaluation.table("tone")["reason"].to_pylist()
    assert reason.endswith("the file has several words here, and how often each was said: good (2), bad (1)")


@pytest.mark.parametrize("text", ["1_0", "1_000.5", "_"])
def test_a_cell_with_an_underscore_is_a_text(text: str) -> None:
    assert cell_value(text) == text


def test_a_reply_is_imported_without_the_reasoning_it_begins_with(tmp_path: Path) -> None:
    path = write_deepeval(tmp_path)
    content = json.loads(path.read_text())
    content["testCases"][0]["actualOutput"] = "<think>Three? No.</think>\nFour."
    path.write_text(json.dumps(content))
    [run] = import_results(path, MemoryStore()).runs
    assert next(iter(run)).responses == ["Four."]
    spans = [span for batch in run.spans() for span in batch.to_pylist()]
    assert [json.loads(span["attributes"] or "{}") for span in spans] == [{"reasoning": "Three? No."}]


def test_an_imported_reply_that_ends_within_its_reasoning_is_no_answer(tmp_path: Path) -> None:
    path = write_deepeval(tmp_path)
    content = json.loads(path.read_text())
    content["testCases"][0]["actualOutput"] = "<think>It could be four, or"
    path.write_text(json.dumps(content))
    [run] = import_results(path, MemoryStore()).runs
    assert next(iter(run)).responses is None
    assert "It could be four, or" in str([batch.to_pylist() for batch in run.spans()])
