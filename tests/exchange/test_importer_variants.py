"""The forms in which a tool writes its results are read alike: tables, lists, lines and single objects."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest
from support.foreign_results import (
    QUESTIONS,
    WRITERS,
    write_deepeval,
    write_helm,
    write_langfuse,
    write_langsmith,
    write_lm_eval,
    write_mlflow,
    write_openai_evals,
    write_phoenix,
    write_promptfoo,
)
from support.thinned import thinned

from evaluand.core.errors import DataError
from evaluand.exchange.importer import find_importers
from evaluand.exchange.storing import ImportedResult, save_results
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


@thinned("format", sorted({*WRITERS} - {"eval"}), every=3)
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


def test_a_page_of_traces_is_no_list_of_their_observations(tmp_path: Path) -> None:
    traces = langfuse_traces(tmp_path)
    for trace in traces:
        trace["observations"][0] |= {"traceId": trace["id"], "parentObservationId": None}
    result = read(write(tmp_path / "traces.json", {"data": traces, "meta": {}}))
    assert values(result, "exact") == RIGHT


def test_scores_of_which_a_file_has_only_the_ids_are_named(tmp_path: Path) -> None:
    traces = [{**trace, "scores": ["s1", "s2"], "observations": ["o1"]} for trace in langfuse_traces(tmp_path)]
    result = read(write(tmp_path / "traces.json", traces))
    assert result.notes == [
        "traces.json: of 6 scores and 3 observations there are only the ids; export traces with their details"
    ]


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


def test_a_trace_that_langfuse_has_downloaded(tmp_path: Path) -> None:
    (trace, *_) = langfuse_traces(tmp_path)
    observations = trace.pop("observations")
    del trace["htmlPath"], trace["totalCost"]
    observations[0] |= {"usage": None, "usageDetails": {"input": 7, "output": 1, "total": 8}, "totalCost": 0.25}
    trace |= {"input": json.dumps({"sum": "1 + 7"}), "output": '"8"', "metadata": '{"hard": false}'}
    result = read(write(tmp_path / "trace-t0.json", {"trace": trace, "observations": observations}))
    assert (answers(result), values(result, "exact")) == (["8"], [1.0])
    (run,) = result.runs
    assert [(each.input, each.attributes) for each in run.dataset] == [({"sum": "1 + 7"}, {"hard": False})]
    [usage] = run.table().column("usage").to_pylist()
    assert (usage["input_tokens"], usage["output_tokens"], usage["cost"]) == (7, 1, 0.25)


def observation(trace: int, id: str, parent: str | None, **said: Any) -> dict[str, Any]:
    start = f"2026-11-22T09:32:5{trace}.{len(id)}00Z"
    ids = {"id": id, "traceId": f"t{trace}", "projectId": "p", "parentObservationId": parent}
    return {**ids, "type": "SPAN", "name": "addition", "startTime": start, "level": "DEFAULT"} | said


@pytest.mark.parametrize("form", ["page", "pages", "list", "lines", "snake case"])
def test_observations_of_langfuse_in_a_list_are_put_together_by_trace(form: str, tmp_path: Path) -> None:
    asked = [
        observation(number, "o1", None, input=json.dumps({"sum": text}), output=answered, endTime=None)
        for number, (text, _, answered) in enumerate(QUESTIONS)
    ]
    calls = [
        observation(number, "o12", "o1", type="GENERATION", usageDetails={"input": 20 + number})
        for number in range(len(QUESTIONS))
    ]
    rows = [*calls, *asked]
    if form == "snake case":
        names = {"traceId": "trace_id", "projectId": "project_id", "parentObservationId": "parent_observation_id"}
        rows = [{names.get(name, name): value for name, value in row.items()} for row in rows]
    pages = [{"data": part, "meta": {"cursor": "c"}} for part in (rows[:2], rows[2:])]
    written = {"page": {"data": rows, "meta": {}}, "pages": "\n".join(map(json.dumps, pages)), "list": rows}
    path = write(tmp_path / "observations.json", written.get(form, "\n".join(map(json.dumps, rows))))
    result = read(path)
    assert (result.samples, result.left_out, result.notes) == (3, [], [])
    assert answers(result) == [answered for *_, answered in QUESTIONS]
    (run,) = result.runs
    assert [(each.id, each.input["sum"]) for each in run.dataset] == [(f"t{n}", q[0]) for n, q in enumerate(QUESTIONS)]
    assert [usage["input_tokens"] for usage in run.table().column("usage").to_pylist()] == [20, 21, 22]
    spans = [(row["_index_"], row["kind"]) for batch in run.spans() for row in batch.to_pylist() if row["parent"]]
    assert spans == [(0, "llm"), (1, "llm"), (2, "llm")]


def test_a_trace_of_langfuse_with_several_observations_at_its_top_is_named(tmp_path: Path) -> None:
    rows = [observation(0, "second", None, input="b", output="y"), observation(0, "one", None, input="a", output="x")]
    result = read(write(tmp_path / "observations.json", rows))
    assert answers(result) == ["x"]
    assert result.notes == [
        "observations.json: 1 of 1 traces have several observations at the top, of which the first has the input and"
        " output"
    ]


def test_observations_of_langfuse_without_contents_say_how_to_get_them(tmp_path: Path) -> None:
    path = write(tmp_path / "observations.json", {"data": [observation(0, "o1", None)], "meta": {}})
    with pytest.raises(
        DataError, match="there is no input; export traces, or observations with the fields core, basic"
    ):
        read(path)


@pytest.mark.parametrize("form", ["json", "csv"])
def test_an_exported_table_of_traces_of_langfuse(form: str, tmp_path: Path) -> None:
    kept = ("id", "name", "timestamp", "input", "output")
    rows = [
        {name: trace[name] for name in kept}
        | {"tags": [], "bookmarked": False, "public": False, "exact_match": [trace["scores"][0]["value"]], "tone": None}
        for trace in langfuse_traces(tmp_path)
    ]
    path = write(tmp_path / f"traces.{form}", rows)
    if form == "csv":
        with path.open("w", newline="") as file:
            table = csv.writer(file, quoting=csv.QUOTE_ALL)
            table.writerow(rows[0])
            cells = ([each if isinstance(each, str) else json.dumps(each) for each in row.values()] for row in rows)
            table.writerows(["" if cell == "null" else cell for cell in row] for row in cells)
    result = read(path)
    assert (answers(result), values(result, "exact_match")) == ([answered for *_, answered in QUESTIONS], RIGHT)
    assert result.evaluations[0] is not None
    assert result.evaluations[0].scorers == ["exact_match"]


def test_an_experiment_of_phoenix_as_csv_is_that_as_json(tmp_path: Path) -> None:
    path = write_phoenix(tmp_path)
    runs = json.loads(path.read_text())
    runs[2] |= {"output": None, "error": "no connection", "annotations": []}
    expected = read(write(path, runs))
    rows = []
    for run in runs:
        row = {name: value for name, value in run.items() if name != "annotations"}
        row |= {name: json.dumps(run[name]) for name in ("input", "reference_output")}
        for each in run["annotations"]:
            row |= {f"annotation_exact_{part}": value for part, value in each.items() if part != "name"}
        rows.append({name: "" if value is None else value for name, value in row.items()})
    table = tmp_path / "experiment.csv"
    with table.open("w", newline="") as file:
        lines = csv.DictWriter(file, list(rows[0]))
        lines.writeheader()
        lines.writerows(rows)
    result = read(table)
    assert values(result, "exact") == values(expected, "exact") == [1.0, 0.0, None]
    assert result.runs[0].counts == expected.runs[0].counts == {"completed": 2, "failed": 1}
    assert [(each.id, each.input, each.expected) for each in result.runs[0].dataset] == [
        (each.id, each.input, each.expected) for each in expected.runs[0].dataset
    ]
    assert answers_or_none(result) == answers_or_none(expected) == ['"8"', '"10"', None]


def answers_or_none(result: ImportedResult) -> list[Any]:
    return [row[0]["value"] if row else None for row in result.runs[0].table().column("responses").to_pylist()]


def test_repeats_and_failed_annotations_of_phoenix(tmp_path: Path) -> None:
    path = write_phoenix(tmp_path)
    (run, *_) = json.loads(path.read_text())
    failed = {"name": "exact", "score": None, "label": None, "error": "the judge timed out"}
    again = run | {"repetition_number": 2, "annotations": [failed]}
    result = read(write(path, [run, again]))
    assert values(result, "exact") == [1.0, None]
    assert result.evaluations[0] is not None
    assert result.evaluations[0].table("exact")["reason"].to_pylist() == [None, "phoenix: the judge timed out"]
    assert [run.counts for run in result.runs] == [{"completed": 2}]


def test_the_latest_test_run_of_deepeval_and_its_cache(tmp_path: Path) -> None:
    run = json.loads(write_deepeval(tmp_path).read_text())
    latest = read(write(tmp_path / ".latest_test_run.json", {"testRunData": run}))
    assert (values(latest, "Exact Match"), latest.agreements) == (RIGHT, 2)
    cache = {
        json.dumps({"input": case["input"], "actual_output": case["actualOutput"], "hyperparameters": None}): {
            "cached_metrics_data": [{"metric_data": each, "metric_configuration": {}} for each in case["metricsData"]]
        }
        for case in run["testCases"]
    }
    cached = read(write(tmp_path / ".deepeval-cache.json", {"test_cases_lookup_map": cache}))
    assert (values(cached, "Exact Match"), cached.left_out) == (RIGHT, [])
    assert answers(cached) == answers(latest)


def test_a_cache_of_deepeval_with_a_broken_key_names_the_case(tmp_path: Path) -> None:
    good = {"cached_metrics_data": [{"metric_data": {"name": "m", "score": 0.5}}]}
    cache = {"test_cases_lookup_map": {"no case": good, json.dumps({"input": "a", "actual_output": "b"}): good}}
    result = read(write(tmp_path / "cache.json", cache))
    assert values(result, "m") == [0.5]
    assert [fault.where.rpartition(": ")[2] for fault in result.left_out] == ["test_cases_lookup_map, member 1"]


@pytest.mark.parametrize("beside", [True, False])
def test_samples_of_lm_eval_before_they_had_lines_and_names_of_filters(beside: bool, tmp_path: Path) -> None:
    rows = [
        {
            "doc_id": number,
            "doc": {"question": asked},
            "target": right,
            "arguments": [[asked, {"until": ["\n"]}]],
            "resps": [[answered]],
            "filtered_resps": [answered],
            "exact_match": float(filter == "loose" or answered == right),
        }
        for filter in ("strict", "loose")
        for number, (asked, right, answered) in enumerate(QUESTIONS)
    ]
    path = write(tmp_path / "pretrained=org__m_addition_easy.jsonl", json.dumps(rows, indent=2))
    names = ("exact_match", "exact_match,filter 2")
    if beside:
        filters = [{"name": "strict"}, {"name": "loose"}]
        config = {"metric_list": [{"metric": "exact_match", "aggregation": "mean"}], "filter_list": filters}
        stated = {"exact_match,strict": 2 / 3, "exact_match,loose": 1.0}
        document = {"results": {"addition_easy": stated}, "configs": {"addition_easy": config}, "versions": {}}
        path = write(tmp_path / "results.json", document)
        names = ("exact_match,strict", "exact_match,loose")
    result = read(path)
    assert (result.samples, result.left_out, result.notes) == (6, [], [])
    assert [values(result, name) for name in names] == [RIGHT, [1.0] * 3]
    assert result.agreements == 2 * beside
    assert [each.input for each in result.runs[0].dataset] == [asked for asked, *_ in QUESTIONS]
    assert str(result.runs[0].name).startswith("addition_easy") == beside
    assert [run.digest for run in read(tmp_path).runs] == [run.digest for run in result.runs]  # of the folder: once


def test_results_of_lm_eval_before_it_wrote_samples_say_what_is_missing(tmp_path: Path) -> None:
    stated = {"results": {"sums": {"acc": 0.5, "acc_stderr": 0.1}}, "versions": {"sums": 0}, "config": {"model": "m"}}
    with pytest.raises(DataError, match=r"no samples_\*\.jsonl beside it; run lm_eval, version 0\.4 or later, with"):
        read(write(tmp_path / "m.json", stated))


def ranges(result: ImportedResult) -> dict[str, Any]:
    (evaluation,) = result.evaluations
    assert evaluation is not None
    return {name: evaluation.ranges.get(name) == {"value": (0, 1)} for name in evaluation.scorers}


def test_metrics_of_lm_eval_that_are_shares_have_a_range(tmp_path: Path) -> None:
    path = write_lm_eval(tmp_path)
    (samples,) = tmp_path.glob("samples_*")
    rows = [json.loads(line) | {"likelihood": -1.5, "acc": 70.0} for line in samples.read_text().splitlines()]
    for row in rows:
        row["metrics"] += ["likelihood", "acc"]
    write(samples, "\n".join(map(json.dumps, rows)))
    assert ranges(read(path)) == {"acc": False, "exact_match": True, "likelihood": False}


def test_scores_of_promptfoo_have_a_range_unless_code_of_the_user_gives_them(tmp_path: Path) -> None:
    path = write_promptfoo(tmp_path)
    document = json.loads(path.read_text())
    for row in document["results"]["results"]:
        own = {"pass": True, "score": 0.5, "assertion": {"type": "javascript"}}
        row["gradingResult"]["componentResults"].append(own)
    assert ranges(read(write(path, document))) == {"equals": True, "javascript": False, "score": True, "success": True}


@pytest.mark.parametrize("truth", ["ground_truth", "ground_truths"])
def test_tables_of_ragas_with_its_earlier_columns(truth: str, tmp_path: Path) -> None:
    table = tmp_path / "ragas.csv"
    with table.open("w", newline="") as file:
        lines = csv.writer(file)
        lines.writerow(["", "question", "contexts", "answer", truth, "faithfulness", "context_recall"])
        for number, (asked, right, answered) in enumerate(QUESTIONS):
            lines.writerow([number, asked, "['c']", answered, right, float(answered == right), ""])
    result = read(table)
    assert (values(result, "faithfulness"), answers(result)) == (RIGHT, [answered for *_, answered in QUESTIONS])
    assert [(each.input, each.expected) for each in result.runs[0].dataset] == [
        ({"user_input": asked, "retrieved_contexts": ["c"]}, right) for asked, right, _ in QUESTIONS
    ]
    assert result.notes == ["ragas.csv: no row has a value of context_recall"]


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
    columns = ["inputs", "ground_truth", "predictions", "token_count", "length/score", "length/justification"]
    data = [[asked, right, answered, 9, len(answered), "counted"] for asked, right, answered in QUESTIONS]
    rows = [dict(zip(columns, cells, strict=True)) for cells in data]
    result = read(write(tmp_path / "table.json", rows if by_row else {"columns": columns, "data": data}))
    assert values(result, "length") == [1.0, 2.0, 2.0]
    assert values(result, "token_count") == [9.0, 9.0, 9.0]
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
