"""Small files in the formats of other tools, each of three samples (of which one may have failed)."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

QUESTIONS = [("1 + 7", "8", "8"), ("2 + 7", "9", "10"), ("3 + 7", "10", "10")]


def inspect_samples() -> list[dict[str, Any]]:
    samples = []
    for number, (asked, right, answered) in enumerate(QUESTIONS):
        value = "C" if answered == right else "I"
        samples.append(
            {
                "id": number,
                "epoch": 1,
                "input": asked,
                "target": right,
                "messages": [{"role": "user", "content": asked}, {"role": "assistant", "content": answered}],
                "output": {"model": "m", "choices": [{"message": {"role": "assistant", "content": answered}}]},
                "scores": {"match": {"value": value, "answer": answered, "explanation": "compared"}},
                "model_usage": {"m": {"input_tokens": 20, "output_tokens": 2}},
                "started_at": "2026-11-22T09:32:58.840726+00:00",
                "total_time": 0.5,
            }
        )
    return samples


def inspect_header() -> dict[str, Any]:
    return {
        "version": 2,
        "status": "success",
        "eval": {"task": "addition", "model": "m", "dataset": {"sample_ids": [0, 1, 2]}, "config": {"epochs": 1}},
        "results": {"scores": [{"name": "match", "metrics": {"accuracy": {"value": 2 / 3}}}]},
    }


def write_inspect(folder: Path) -> Path:
    path = folder / "addition.json"
    path.write_text(json.dumps({**inspect_header(), "samples": inspect_samples()}))
    return path


def write_eval(folder: Path) -> Path:
    path = folder / "addition.eval"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("header.json", json.dumps(inspect_header()))
        for sample in inspect_samples():
            archive.writestr(f"samples/{sample['id']}_epoch_1.json", json.dumps(sample))
    return path


def write_lm_eval(folder: Path) -> Path:
    time = "2026-11-22T09-36-27.188943"
    samples = folder / f"samples_addition_{time}.jsonl"
    with samples.open("w") as file:
        for number, (asked, right, answered) in enumerate(QUESTIONS):
            row = {
                "doc_id": number,
                "doc": {"question": asked},
                "target": right,
                "arguments": {"gen_args_0": {"arg_0": asked, "arg_1": {"until": ["\n"]}}},
                "resps": [[answered]],
                "filtered_resps": [answered],
                "filter": "none",
                "metrics": ["exact_match"],
                "exact_match": float(answered == right),
            }
            file.write(json.dumps(row) + "\n")
    results = {"addition": {"alias": "addition", "exact_match,none": 2 / 3, "exact_match_stderr,none": 0.3}}
    metric = {"metric": "exact_match", "aggregation": "mean"}
    stated = {"results": results, "configs": {"addition": {"metric_list": [metric]}}, "model_name": "m"}
    path = folder / f"results_{time}.json"
    path.write_text(json.dumps(stated))
    return path


def write_promptfoo(folder: Path) -> Path:
    rows = []
    for number, (asked, right, answered) in enumerate(QUESTIONS):
        passed = answered == right
        part = {"pass": passed, "score": int(passed), "reason": "why", "assertion": {"type": "equals"}}
        grading = {"pass": passed, "score": int(passed), "reason": "why", "componentResults": [part]}
        rows.append(
            {
                "testIdx": number,
                "promptIdx": 0,
                "vars": {"question": asked},
                "provider": {"id": "openai:m"},
                "prompt": {"raw": asked, "label": "{{question}}"},
                "response": {"output": answered},
                "success": passed,
                "score": int(passed),
                "gradingResult": grading,
                "failureReason": 0 if passed else 1,
                "latencyMs": 12,
            }
        )
    metrics = {"score": 2, "testPassCount": 2, "testFailCount": 1, "testErrorCount": 0}
    prompts = [{"label": "{{question}}", "provider": "openai:m", "metrics": metrics}]
    path = folder / "out.json"
    path.write_text(json.dumps({"evalId": "e", "results": {"version": 3, "prompts": prompts, "results": rows}}))
    return path


def write_deepeval(folder: Path) -> Path:
    cases, scores = [], []
    for number, (asked, right, answered) in enumerate(QUESTIONS):
        scores.append(float(answered == right))
        metric = {"name": "Exact Match", "score": scores[-1], "success": answered == right, "reason": "compared"}
        case = {"name": f"q{number}", "input": asked, "actualOutput": answered, "expectedOutput": right}
        cases.append(case | {"metricsData": [metric]})
    stated = [{"metric": "Exact Match", "scores": scores, "passes": 2, "fails": 1, "errors": 0}]
    path = folder / "test_run.json"
    path.write_text(json.dumps({"testCases": cases, "conversationalTestCases": [], "metricsScores": stated}))
    return path


def write_mlflow(folder: Path) -> Path:
    rows = []
    for number, (asked, right, answered) in enumerate(QUESTIONS):
        assessments = [
            {"assessment_name": "exact", "feedback": {"value": answered == right}, "rationale": "compared"},
            {"assessment_name": "expected_response", "expectation": {"value": right}},
        ]
        info = {"trace_id": f"tr-{number}", "state": "OK", "request_time": 1795340300350, "execution_duration": 3}
        info |= {"request": {"question": asked}, "response": answered, "assessments": assessments}
        rows.append({"trace_id": f"tr-{number}", "trace": {"info": info, "data": {"spans": []}}})
    path = folder / "eval_results.json"
    path.write_text(json.dumps(rows))
    return path


def write_openai_evals(folder: Path) -> Path:
    lines: list[dict[str, Any]] = [{"spec": {"eval_name": "addition.dev.v0", "completion_fns": ["m"]}}]
    for number, (asked, right, answered) in enumerate(QUESTIONS):
        prompt = [{"role": "user", "content": asked}]
        about = {"run_id": "r", "sample_id": f"addition.dev.{number}", "created_at": "2026-11-22 09:32:58+00:00"}
        lines.append({**about, "type": "sampling", "data": {"prompt": prompt, "sampled": [answered]}})
        match = {"correct": answered == right, "expected": right, "picked": answered}
        lines.insert(1 + number, {**about, "type": "match", "data": match})
    lines.append({"final_report": {"accuracy": 2 / 3}})
    path = folder / "events.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def write_ragas(folder: Path) -> Path:
    rows = [
        {
            "user_input": asked,
            "response": answered,
            "reference": right,
            "retrieved_contexts": ["c"],
            "faithfulness": float(answered == right),
            "answer_relevancy": float("nan") if number else 0.5,
        }
        for number, (asked, right, answered) in enumerate(QUESTIONS)
    ]
    path = folder / "ragas.json"
    path.write_text(json.dumps(rows))
    return path


def write_helm(folder: Path) -> Path:
    run = folder / "addition,model=m"
    run.mkdir()
    states, stats = [], []
    for number, (asked, right, answered) in enumerate(QUESTIONS):
        references = [{"output": {"text": right}, "tags": ["correct"]}]
        instance = {"id": f"id{number}", "input": {"text": asked}, "references": references, "split": "test"}
        result = {"success": True, "completions": [{"text": answered}], "request_time": 0.5}
        states.append({"instance": instance, "train_trial_index": 0, "request": {"model": "org/m"}, "result": result})
        stat = {"name": {"name": "exact_match", "split": "test"}, "count": 1, "mean": float(answered == right)}
        stats.append({"instance_id": f"id{number}", "train_trial_index": 0, "stats": [stat]})
    (run / "run_spec.json").write_text(json.dumps({"name": "addition:model=org_m"}))
    (run / "scenario_state.json").write_text(json.dumps({"adapter_spec": {}, "request_states": states}))
    (run / "per_instance_stats.json").write_text(json.dumps(stats))
    return run / "scenario_state.json"


def write_langfuse(folder: Path) -> Path:
    traces = [
        {
            "id": f"t{number}",
            "projectId": "p",
            "name": "addition",
            "timestamp": "2026-11-22T09:32:58.840Z",
            "htmlPath": "/p/t",
            "input": asked,
            "output": answered,
            "latency": 0.5,
            "totalCost": 0.01,
            "scores": [{"name": "exact", "value": float(answered == right), "dataType": "NUMERIC", "comment": "c"}],
            "observations": [
                {
                    "id": "o1",
                    "type": "GENERATION",
                    "name": "ask",
                    "startTime": "2026-11-22T09:32:58.940Z",
                    "endTime": "2026-11-22T09:32:59.140Z",
                    "usage": {"input": 20, "output": 2},
                }
            ],
        }
        for number, (asked, right, answered) in enumerate(QUESTIONS)
    ]
    path = folder / "traces.json"
    path.write_text(json.dumps({"data": traces, "meta": {"page": 1}}))
    return path


def write_langsmith(folder: Path) -> Path:
    lines = []
    for number, (asked, right, answered) in enumerate(QUESTIONS):
        root = {
            "id": f"r{number}",
            "trace_id": f"r{number}",
            "name": "addition",
            "run_type": "chain",
            "inputs": {"question": asked},
            "outputs": {"output": answered},
            "reference_example_id": f"e{number}",
            "start_time": "2026-11-22T09:32:58.840000+00:00",
            "end_time": "2026-11-22T09:32:59.340000+00:00",
            "feedback_stats": {"exact": {"n": 1, "avg": float(answered == right)}},
            "prompt_tokens": 20,
            "completion_tokens": 2,
        }
        below = {**root, "id": f"c{number}", "parent_run_id": f"r{number}", "run_type": "llm", "name": "ask"}
        lines += [below, root]
    path = folder / "runs.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def write_phoenix(folder: Path) -> Path:
    runs = []
    for number, (asked, right, answered) in enumerate(QUESTIONS):
        annotation = {"name": "exact", "annotator_kind": "CODE", "label": str(answered == right), "error": None}
        annotation |= {"score": float(answered == right), "explanation": "compared", "metadata": {}}
        runs.append(
            {
                "example_id": f"RGF0YXNldEV4YW1wbGU6{number}",
                "repetition_number": 1,
                "input": {"question": asked},
                "reference_output": {"answer": right},
                "output": answered,
                "error": None,
                "latency_ms": 500.0,
                "start_time": "2026-11-22T09:32:58.840000+00:00",
                "end_time": "2026-11-22T09:32:59.340000+00:00",
                "trace_id": None,
                "prompt_token_count": 20,
                "completion_token_count": 2,
                "annotations": [annotation],
            }
        )
    path = folder / "experiment.json"
    path.write_text(json.dumps(runs, indent=2))
    return path


def write_spans(folder: Path) -> Path:
    spans = []
    for number, (asked, right, answered) in enumerate(QUESTIONS):
        values = {"openinference.span.kind": "LLM", "input.value": asked, "output.value": answered}
        graded = {"gen_ai.evaluation.name": "exact", "gen_ai.evaluation.score.value": float(answered == right)}
        event = {"name": "gen_ai.evaluation.result", "timeUnixNano": "3000", "attributes": _attributes(graded)}
        span = {"traceId": f"{number + 1:032x}", "spanId": f"{number + 1:016x}", "name": "ask", "events": [event]}
        times = {"startTimeUnixNano": str(1000 + number), "endTimeUnixNano": str(9000 + number)}
        spans.append({**span, **times, "attributes": _attributes(values)})
    path = folder / "spans.json"
    path.write_text(json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}))
    return path


def _attributes(values: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        {"key": key, "value": {"stringValue": value} if isinstance(value, str) else {"doubleValue": value}}
        for key, value in values.items()
    ]


WRITERS = {
    "deepeval": write_deepeval,
    "eval": write_eval,
    "helm": write_helm,
    "inspect": write_inspect,
    "langfuse": write_langfuse,
    "langsmith": write_langsmith,
    "lm_eval": write_lm_eval,
    "mlflow": write_mlflow,
    "openai_evals": write_openai_evals,
    "phoenix": write_phoenix,
    "promptfoo": write_promptfoo,
    "ragas": write_ragas,
    "spans": write_spans,
}
"""Format → what writes its file into a folder and returns its path."""
