"""The forms in which a tool writes its results are read alike: tables, lists, lines and single objects."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support.foreign_results import (
    QUESTIONS,
    WRITERS,
    write_helm,
    write_langfuse,
    write_langsmith,
    write_lm_eval,
    write_mlflow,
    write_openai_evals,
)

from evaluand.experiment.imports.importer import find_importers
from evaluand.experiment.imports.storing import ImportedResult, save_results
from evaluand.store.store import MemoryStore

RIGHT = [float(right == answered) for _, right, answered in QUESTIONS]


def read(path: Path) -> ImportedResult:
    return save_results(find_importers(path), MemoryStore())


def write(path: Path, value: Any) -> Path:
    path.write_text(value if isinstance(value, str) else json.dumps(value))
    return path


def values(result: ImportedResult, scorer: str) -> list[float | None]:
    (evaluation,) = result.evaluations
    assert evaluation is not None
    found: list[float | None] = evaluation.table(scorer)["value"].to_pylist()
    return found


def answers(result: ImportedResult) -> list[Any]:
    (run,) = result.runs
    return [None if each.responses is None else each.responses[0] for each in run]


@pytest.mark.parametrize("format", sorted({*WRITERS} - {"eval"}))
def test_a_byte_order_mark_and_other_line_ends_change_nothing(format: str, tmp_path: Path) -> None:
    path = WRITERS[format](tmp_path)
    plain = read(path)
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes().replace(b"\n", b"\r\n"))
    marked = read(path)
    assert (marked.samples, marked.agreements, marked.left_out) == (3, plain.agreements, [])
    assert [run.digest for run in marked.runs] == [run.digest for run in plain.runs]


RAGAS = [
    {"user_input": "1 + 7", "retrieved_contexts": ["it's", 'a "b"'], "response": "8", "exact_match": 1.0, "kind": "a"},
    {"user_input": "2 + 7", "retrieved_contexts": ["c"], "response": "1,\n0", "exact_match": 0.0, "kind": "b"},
]
RAGAS_CSV = """,user_input,retrieved_contexts,response,exact_match,kind,recall
0,1 + 7,"[""it's"", 'a ""b""']",8,1.0,a,
1,2 + 7,['c'],"1,
0",0.0,b,
"""


def test_tables_of_ragas_by_row_by_column_and_as_csv_are_the_same(tmp_path: Path) -> None:
    columns = {name: {str(n): row[name] for n, row in enumerate(RAGAS)} for name in RAGAS[0]}
    forms = [
        write(tmp_path / "a.json", RAGAS),
        write(tmp_path / "b.json", columns),
        write(tmp_path / "c.csv", RAGAS_CSV),
    ]
    results = [read(path) for path in forms]
    assert [values(result, "exact_match") for result in results] == [[1.0, 0.0]] * 3
    assert [answers(result) for result in results] == [["8", "1,\n0"]] * 3
    assert len({result.runs[0].digest for result in results}) == 1
    assert all(result.evaluations[0].scorers == ["exact_match", "kind"] for result in results if result.evaluations[0])


def test_a_row_of_a_csv_file_with_too_few_cells_is_named(tmp_path: Path) -> None:
    result = read(write(tmp_path / "r.csv", "user_input,response,score\n1 + 7,8,0.5\n2 + 7,9\n"))
    assert result.samples == 1
    assert [fault.message for fault in result.left_out] == ["2 cells where the header has 3"]
    assert result.left_out[0].where.endswith("r.csv:3")


def helm_run(tmp_path: Path, **stated: float) -> Path:
    path = write_helm(tmp_path)
    stats = [{"name": {"name": name, "split": "test"}, "mean": mean} for name, mean in stated.items()]
    worst = {"name": {"name": "exact_match", "split": "test", "perturbation": {"name": "robustness"}}, "mean": 0.0}
    write(path.parent / "stats.json", [*stats, worst])
    return path


def test_means_that_helm_states_of_a_split_are_compared(tmp_path: Path) -> None:
    result = read(helm_run(tmp_path, exact_match=2 / 3, perplexity=7.0))
    assert (result.agreements, result.notes) == (1, [])
    result = read(
        write(
            tmp_path / "addition,model=m" / "stats.json",
            [{"name": {"name": "exact_match", "split": "test"}, "mean": 0.5}],
        )
    )
    assert result.notes == [
        "addition,model=m: the file states 0.5 as the mean of exact_match for org/m,"
        " and the imported scores have 0.666667"
    ]


def test_requests_for_each_choice_are_one_answer_of_helm(tmp_path: Path) -> None:
    path = helm_run(tmp_path, exact_match=2 / 3)
    document = json.loads(path.read_text())
    document["request_states"] = [
        {
            **state,
            "reference_index": n,
            "request_mode": "original",
            "result": {
                **state["result"],
                "completions": [{"text": state["instance"]["input"]["text"], "logprob": -1.0 - n}],
            },
        }
        for state in document["request_states"]
        for n in range(4)
    ]
    result = read(write(path, document))
    assert (result.samples, result.agreements) == (3, 1)
    assert result.runs[0].manifest["spec"]["replications"] == 1
    assert values(result, "exact_match") == RIGHT
    assert [choice["logprob"] for choice in answers(result)[0]] == [[-1.0], [-2.0], [-3.0], [-4.0]]


def edit_lines(path: Path, change: Any) -> Path:
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    return write(path, "".join(json.dumps(line) + "\n" for line in change(lines)))


def test_answers_that_openai_evals_notes_only_with_their_match_are_read(tmp_path: Path) -> None:
    def change(lines: list[Any]) -> list[Any]:
        for line in lines:
            if line.get("type") == "match":
                line["data"]["sampled"] = "said " + line["data"]["picked"]
        return [line for line in lines if line.get("type") != "sampling"]

    result = read(edit_lines(write_openai_evals(tmp_path), change))
    assert sorted(answers(result)) == ["said 10", "said 10", "said 8"]
    assert result.agreements == 1


def test_the_grader_of_openai_evals_is_not_the_answer(tmp_path: Path) -> None:
    def change(lines: list[Any]) -> list[Any]:
        kept = [line for line in lines if line.get("type") == "sampling"]
        graded = []
        for line in kept:
            usage = {"prompt_tokens": 5, "completion_tokens": 1}
            asked = {"prompt": "Is this right?", "sampled": ["Y, I think"], "usage": usage}
            scored = {"choice": "Y", "score": 1.0}
            graded += [line, {**line, "data": asked}, {**line, "type": "metrics", "data": scored}]
        return [lines[0], {"final_report": {"counts/Y": 3, "score": 1.0}}, *graded]

    result = read(edit_lines(write_openai_evals(tmp_path), change))
    assert answers(result) == [answered for *_, answered in QUESTIONS]
    assert (result.agreements, result.notes) == (1, [])
    (evaluation,) = result.evaluations
    assert evaluation is not None
    assert evaluation.scorers == ["score"]


def test_a_log_of_openai_evals_without_its_end_is_named(tmp_path: Path) -> None:
    result = read(edit_lines(write_openai_evals(tmp_path), lambda lines: lines[:-2]))
    assert result.notes == ["events.jsonl: there is no final report; samples may be missing"]


def langsmith_runs(tmp_path: Path) -> list[dict[str, Any]]:
    runs = [json.loads(line) for line in write_langsmith(tmp_path).read_text().splitlines()]
    for run in runs:
        run |= {
            "child_runs": None,
            "feedback_stats": {**run["feedback_stats"], "tone": {"avg": None, "values": {"kind": 1}}},
        }
    return runs


def test_runs_of_langsmith_in_a_list_are_put_together(tmp_path: Path) -> None:
    runs = langsmith_runs(tmp_path)
    lines = write(tmp_path / "runs.jsonl", "".join(json.dumps(run) + "\n" for run in runs))
    listed = write(tmp_path / "runs.json", json.dumps(runs, indent=1))
    results = [read(lines), read(listed)]
    for result in results:
        assert (result.samples, result.left_out) == (3, [])
        assert values(result, "exact") == RIGHT
        assert result.evaluations[0] is not None
        assert set(result.evaluations[0].table("tone")["label"].to_pylist()) == {"kind"}
    assert results[0].runs[0].digest == results[1].runs[0].digest


def test_one_run_of_langsmith_with_runs_nested_in_it(tmp_path: Path) -> None:
    below, root = langsmith_runs(tmp_path)[:2]
    root["child_runs"] = [{**below, "child_runs": [{**below, "id": "deep", "parent_run_id": below["id"]}]}]
    (run,) = read(write(tmp_path / "run.json", json.dumps(root, indent=2))).runs
    assert [row["name"] for batch in run.spans() for row in batch.to_pylist()] == ["ask", "ask"]


LANGSMITH_CSV = """inputs.question,outputs.output,error,reference.answer,feedback.exact,feedback.tone,execution_time,id
1 + 7,8,,8,True,kind,0.25,r0
2 + 7,10,,9,False,kind,0.5,r1
3 + 7,,"ValueError('no')",10,False,,0.5,r2
"""


def test_rows_of_an_experiment_of_langsmith(tmp_path: Path) -> None:
    result = read(write(tmp_path / "experiment.csv", LANGSMITH_CSV))
    assert values(result, "exact") == [1.0, 0.0, 0.0]
    assert answers(result) == [{"output": "8"}, {"output": "10"}, None]
    (run,) = result.runs
    first = next(iter(run.dataset))
    assert (first.id, first.input, first.expected) == ("r0", {"question": "1 + 7"}, {"answer": "8"})
    assert run.failures == {"RunError": 1}


def langfuse_traces(tmp_path: Path) -> list[dict[str, Any]]:
    traces: list[dict[str, Any]] = json.loads(write_langfuse(tmp_path).read_text())["data"]
    return traces


def test_traces_of_several_names_are_several_datasets(tmp_path: Path) -> None:
    traces = langfuse_traces(tmp_path)
    traces[2]["name"] = "chat"
    result = read(write(tmp_path / "traces.json", traces))
    assert [(run.name, run.counts) for run in result.runs] == [
        ("addition", {"completed": 2}),
        ("chat", {"completed": 1}),
    ]


def test_a_single_trace_with_line_breaks(tmp_path: Path) -> None:
    result = read(write(tmp_path / "trace.json", json.dumps(langfuse_traces(tmp_path)[0], indent=2)))
    assert values(result, "exact") == [1.0]


def test_scores_of_which_a_file_has_only_the_ids_are_named(tmp_path: Path) -> None:
    traces = [{**trace, "scores": ["s1", "s2"], "observations": ["o1"]} for trace in langfuse_traces(tmp_path)]
    result = read(write(tmp_path / "traces.json", traces))
    assert result.notes == ["traces.json: of 6 scores there are only the ids; export traces with their details"]


def test_snake_case_of_langfuse_is_read_as_camel_case(tmp_path: Path) -> None:
    (trace, *_) = langfuse_traces(tmp_path)
    trace |= {
        "total_cost": trace.pop("totalCost"),
        "html_path": trace.pop("htmlPath"),
        "project_id": trace.pop("projectId"),
    }
    trace["scores"] = [{"name": "tone", "value": 1.0, "data_type": "CATEGORICAL", "string_value": "kind"}]
    result = read(write(tmp_path / "traces.json", [trace]))
    assert result.evaluations[0] is not None
    assert result.evaluations[0].table("tone")["label"].to_pylist() == ["kind"]
    [usage] = result.runs[0].table().column("usage").to_pylist()
    assert usage["cost"] == 0.01


def test_items_of_an_experiment_of_langfuse(tmp_path: Path) -> None:
    items = [
        {
            "id": f"o{number}",
            "experimentItemId": f"i{number}",
            "experimentName": "baseline",
            "startTime": "2026-11-22T09:32:58Z",
            "endTime": "2026-11-22T09:32:59Z",
            "input": asked,
            "output": answered,
            "expectedOutput": right,
            "scores": [{"name": "exact", "value": answered == right, "dataType": "BOOLEAN"}],
        }
        for number, (asked, right, answered) in enumerate(QUESTIONS)
    ]
    result = read(write(tmp_path / "items.json", {"data": items, "meta": {}}))
    assert values(result, "exact") == RIGHT
    (run,) = result.runs
    assert run.name == "items/baseline"
    assert [(each.id, each.expected) for each in run.dataset] == [(f"i{n}", q[1]) for n, q in enumerate(QUESTIONS)]


def test_totals_of_lm_eval_that_are_no_means_of_scores_are_not_compared(tmp_path: Path) -> None:
    path = write_lm_eval(tmp_path)
    document = json.loads(path.read_text())
    document["results"] |= {"group": {"exact_match,none": 0.5, "sample_count": {"exact_match,none": 9}}}
    document["results"]["addition"] |= {"word_perplexity,none": 3.0, "perplexity,none": 2.0}
    document["configs"]["addition"]["metric_list"] += [{"metric": "word_perplexity"}, {"metric": "perplexity"}]
    for samples in tmp_path.glob("samples_*.jsonl"):
        edit_lines(
            samples,
            lambda rows: [
                {
                    **row,
                    "metrics": ["exact_match", "word_perplexity", "perplexity"],
                    "word_perplexity": [-1.0, 4],
                    "perplexity": -0.7,
                }
                for row in rows
            ],
        )
    result = read(write(path, document))
    assert (result.samples, result.agreements, result.notes) == (3, 1, [])


def test_a_trace_of_mlflow_that_failed_is_a_failed_row(tmp_path: Path) -> None:
    path = write_mlflow(tmp_path)
    rows = json.loads(path.read_text())
    info = rows[1]["trace"]["info"]
    del info["response"]
    info |= {"state": "ERROR", "trace_metadata": {"mlflow.traceInputs": '{"q": "2 + 7"}', "mlflow.traceOutputs": ""}}
    result = read(write(path, rows))
    assert (result.samples, result.left_out) == (3, [])
    assert result.runs[0].failures == {"TraceError": 1}


@pytest.mark.parametrize("by_row", [True, False])
def test_the_table_that_mlflow_logs(tmp_path: Path, by_row: bool) -> None:
    columns = ["inputs", "ground_truth", "predictions", "length/score", "length/justification"]
    data = [[asked, right, answered, len(answered), "counted"] for asked, right, answered in QUESTIONS]
    rows = [dict(zip(columns, cells, strict=True)) for cells in data]
    result = read(write(tmp_path / "table.json", rows if by_row else {"columns": columns, "data": data}))
    assert values(result, "length") == [1.0, 2.0, 2.0]
    assert answers(result) == [answered for *_, answered in QUESTIONS]
    assert [(each.input, each.expected) for each in result.runs[0].dataset] == [each[:2] for each in QUESTIONS]


def span(number: int, name: str, **said: Any) -> dict[str, Any]:
    ids = {"context.trace_id": f"{number:032x}", "context.span_id": f"{number:016x}", "parent_id": None}
    times = {"start_time": 1_795_793_988_211 + number, "end_time": "2026-11-27T15:39:49Z", "status_code": "OK"}
    return {"name": name, "span_kind": "CHAIN", **ids, **times, "attributes.input.value": None} | said


def test_rows_of_a_data_frame_of_phoenix_are_spans(tmp_path: Path) -> None:
    said = {"attributes.input.value": "1 + 7", "attributes.output.value": "8"}
    result = read(write(tmp_path / "spans.json", [span(1, "ask", **said)]))
    assert answers(result) == ["8"]
    (run,) = result.runs
    assert next(iter(run.dataset)).input == "1 + 7"
    assert run.name == "spans/ask"


def test_traces_without_contents_are_named_and_those_of_several_applications_kept_apart(tmp_path: Path) -> None:
    said = {"attributes.input.value": "1 + 7", "attributes.output.value": "8"}
    result = read(write(tmp_path / "spans.json", [span(1, "ask", **said), span(2, "embed", span_kind="LLM")]))
    assert [(run.name, run.counts) for run in result.runs] == [("ask", {"completed": 1}), ("embed", {"completed": 1})]
    assert [note.partition(";")[0] for note in result.notes] == [
        "spans.json: 1 of 2 traces have calls of models without input and output"
    ]
