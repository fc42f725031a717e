"""Traces written as OTLP: what OpenTelemetry reads of them, and that importing them gives the same results."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pytest
from google.protobuf.json_format import Parse
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from evaluand import MemoryStore, span
from evaluand.data.dataset import Dataset
from evaluand.evaluation.evaluator import Evaluation, Evaluator
from evaluand.evaluation.scorer import Score, Scorer
from evaluand.exchange import import_results
from evaluand.exchange.exporter import Result
from evaluand.exchange.exporters.otel import OTel
from evaluand.report.export import flat
from evaluand.run.runner import Run, Runner
from evaluand.run.task import Candidates, FunctionTask

SAME = ("id", "replication", "scorer", "status", "value", "label", "explanation", "input", "expected", "response")


def answer(question: str) -> str:
    with span("look up", kind="retriever", k=2) as step:
        step.log("hits", ["a", "b"])
    if question == "fail":
        raise ValueError("no such question")
    with span("ask", kind="llm", input=question, model="small", usage={"input_tokens": 3, "output_tokens": 1}) as step:
        step.set(**{"gen_ai.response.id": "reply-1"})
    return question.upper()


def judge(output: str, expected: str) -> Score:
    return Score(float(output == expected), "right" if output == expected else "wrong", explanation="as expected?")


def only_short(output: str) -> float | None:
    return None if len(output) > 1 else 1.0


@pytest.fixture(scope="module")
def graded() -> Evaluation:
    rows = [("e1", "a", "A"), ("e2", "fail", "B"), ("e3", "cc", "C")]
    data = Dataset.from_rows(
        [{"name": i, "input": q, "expected": a, "topic": "letters"} for i, q, a in rows],
        id="name",
        attributes=["topic"],
        name="letters",
    )
    run = Runner(MemoryStore()).run(answer, data, name="letters/upper", replications=2)
    return Evaluator(run.store).evaluate(run, {"judge": judge, "short": only_short}, name="letters/upper")


def written(run: Run, evaluation: Evaluation | None, path: Path) -> list[dict[str, Any]]:
    """The spans of each call, in the order of the file."""
    OTel().write(Result(run, evaluation), path)
    lines = path.read_bytes().splitlines()
    return [json.loads(line)["resourceSpans"][0]["scopeSpans"][0]["spans"] for line in lines]


def said(item: dict[str, Any]) -> dict[str, Any]:
    """The attributes of a span or event."""
    return {each["key"]: next(iter(each["value"].values())) for each in item["attributes"]}


def run_of(evaluation: Evaluation) -> Run:
    run = evaluation.run
    assert run is not None
    return run


def test_each_call_is_a_trace_with_its_spans_and_grades(graded: Evaluation, tmp_path: Path) -> None:
    traces = written(run_of(graded), graded, tmp_path / "t.jsonl")
    assert [[each["name"] for each in spans[1:]] for spans in traces] == [["look up", "ask"]] * 2 + [
        ["look up"],
        ["look up"],
        ["look up", "ask"],
        ["look up", "ask"],
    ]
    root, first, second = traces[0]
    assert first["parentSpanId"] == second["parentSpanId"] == root["spanId"]
    assert "parentSpanId" not in root
    assert len({each["traceId"] for spans in traces for each in spans}) == 6
    found = said(root)
    assert (found["input.value"], found["output.value"], found["evaluand.example.id"]) == ("a", "A", "e1")
    assert found["evaluand.dataset.name"] == "letters"
    assert found["evaluand.dataset.digest"] == run_of(graded).dataset.digest
    assert said(second)["gen_ai.request.model"] == "small"
    assert int(root["startTimeUnixNano"]) <= int(first["startTimeUnixNano"]) <= int(root["endTimeUnixNano"])


def test_grades_have_the_names_of_the_conventions(graded: Evaluation, tmp_path: Path) -> None:
    traces = written(run_of(graded), graded, tmp_path / "t.jsonl")
    right, short = traces[0][0]["events"]
    assert right["name"] == short["name"] == "gen_ai.evaluation.result"
    found = said(right)
    assert found["gen_ai.evaluation.name"] == "judge"
    assert found["gen_ai.evaluation.score.value"] == 1.0
    assert found["gen_ai.evaluation.score.label"] == "right"
    assert found["gen_ai.evaluation.explanation"] == "as expected?"
    assert found["gen_ai.response.id"] == "reply-1"
    assert found["evaluand.scorer.version"]
    abstained = said(traces[4][0]["events"][1])
    assert abstained["evaluand.score.status"] == "abstained"
    assert "gen_ai.evaluation.score.value" not in abstained
    assert "error.type" not in abstained
    failed = traces[2][0]
    assert failed["status"] == {"code": 2, "message": "no such question"}
    assert said(failed)["error.type"] == "ValueError"
    assert [each["name"] for each in failed["events"]].count("exception") == 1
    assert said(failed["events"][-1])["error.type"] == "_OTHER"


def test_opentelemetry_reads_every_request(graded: Evaluation, tmp_path: Path) -> None:
    OTel().write(Result(run_of(graded), graded), tmp_path / "t.jsonl")
    for line in (tmp_path / "t.jsonl").read_text().splitlines():
        document = json.loads(line)
        for each in document["resourceSpans"][0]["scopeSpans"][0]["spans"]:
            for name in ("traceId", "spanId", "parentSpanId"):  # which protobuf's own JSON has in base64
                if name in each:
                    each[name] = base64.b64encode(bytes.fromhex(each[name])).decode()
        request = Parse(json.dumps(document), ExportTraceServiceRequest())
        assert all(len(each.trace_id) == 16 for each in request.resource_spans[0].scope_spans[0].spans)


def test_importing_them_gives_the_same_grades(graded: Evaluation, tmp_path: Path) -> None:
    OTel().write(Result(run_of(graded), graded), tmp_path / "t.jsonl")
    [again] = import_results(tmp_path / "t.jsonl", MemoryStore()).evaluations
    assert again is not None
    before, after = (flat(each).read_all().select(SAME).to_pylist() for each in (graded, again))
    assert before == after
    assert again.name == "letters/upper"
    before, after = (flat(run_of(each)).read_all().to_pylist() for each in (graded, again))
    same = ("status", "error_type", "error_message", "attribute.topic", "started", "duration")
    assert [[row[name] for name in same] for row in before] == [[row[name] for name in same] for row in after]
    OTel().write(Result(run_of(again), again), tmp_path / "again.jsonl")
    [third] = import_results(tmp_path / "again.jsonl", MemoryStore()).evaluations
    assert third is not None
    assert flat(third).read_all().select(SAME).to_pylist() == flat(graded).read_all().select(SAME).to_pylist()


def test_the_same_result_is_the_same_bytes(graded: Evaluation, tmp_path: Path) -> None:
    for name in ("one", "two"):
        OTel().write(Result(run_of(graded), graded), tmp_path / name)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


def test_hostile_texts_and_values_beyond_json_are_written(tmp_path: Path) -> None:
    texts = "../../etc/passwd\0\n<b>\u2028"
    data = Dataset.from_rows([{"input": texts, "topic": "../x"}], attributes=["topic"], name="..")
    run = Runner().run(lambda text: {"said": text, "inf": math.inf}, data, name="x/../../y")
    [[root]] = written(run, None, tmp_path / "t.jsonl")
    assert json.loads(said(root)["output.value"]) == {"said": texts, "inf": {"$float": "Infinity"}}
    assert [path.name for path in tmp_path.iterdir()] == ["t.jsonl"]


def test_all_answers_and_their_grades_are_written(tmp_path: Path) -> None:
    data = Dataset.from_rows([{"input": "q", "expected": "3"}])
    run = Runner().run(FunctionTask(lambda row: Candidates(["3", "4"])), data, name="two")
    evaluation = Evaluator().evaluate(run, {"exact": "exact_match"})
    [[root]] = written(run, evaluation, tmp_path / "t.jsonl")
    assert [(e["evaluand.score.answer"], e["gen_ai.evaluation.score.value"]) for e in map(said, root["events"])] == [
        ("0", 1.0),
        ("1", 0.0),
    ]
    assert [each["stringValue"] for each in said(root)["evaluand.answers"]["values"]] == ["3", "4"]
    result = import_results(tmp_path / "t.jsonl", MemoryStore())
    [again] = result.evaluations
    assert again is not None
    assert again.table("exact")["value"].to_pylist() == [1.0]
    [note] = result.notes
    assert "1 further answer left out, with 1 grade: the first answer of each call is imported" in note


@dataclass(frozen=True)
class Margins(Scorer):
    """A scorer with columns of its own, of which one is called as an attribute of ours."""

    kind: ClassVar[str] = "margins"

    @property
    def columns(self) -> Mapping[str, str]:
        return {"answer": "int64", "margin": "double"}

    def score(self, output: Any, expected: Any) -> Score:
        return Score(0.5, data={"a": 1} if output == "B" else None, columns={"answer": 7, "margin": 0.25})


def test_columns_of_a_scorer_are_read_again(tmp_path: Path) -> None:
    run = Runner().run(str.upper, Dataset.from_rows([{"input": "a"}, {"input": "b"}]), name="two")
    written(run, Evaluator().evaluate(run, {"near": Margins()}), tmp_path / "t.jsonl")
    result = import_results(tmp_path / "t.jsonl", MemoryStore())
    [again] = result.evaluations
    assert (again is None, result.notes) == (False, [])
    assert again is not None
    table = again.table("near")
    assert table["value"].to_pylist() == [0.5, 0.5]
    columns = {"answer": 7, "margin": 0.25}
    assert [*map(json.loads, table["data"].to_pylist())] == [columns, columns | {"data": {"a": 1}}]


def test_answers_that_an_import_cannot_hold_are_counted_without_grades_too(tmp_path: Path) -> None:
    data = Dataset.from_rows([{"input": "q"}])
    run = Runner().run(FunctionTask(lambda row: Candidates([{"a": 1}, {"a": 2}, {"a": 3}])), data, name="three")
    written(run, None, tmp_path / "t.jsonl")
    [note] = import_results(tmp_path / "t.jsonl", MemoryStore()).notes
    assert "2 further answers left out, with 0 grades" in note


def test_calls_without_times_have_that_of_the_run_and_say_so(tmp_path: Path) -> None:
    (tmp_path / "ragas.json").write_text('[{"user_input": "a", "response": "A", "faithfulness": 0.5}]')
    imported = import_results(tmp_path / "ragas.json", MemoryStore())
    [run], [evaluation] = imported.runs, imported.evaluations
    exporter = OTel()
    exporter.write(Result(run, evaluation), tmp_path / "t.jsonl")
    assert exporter.notes[0] == "1 call without a time: their spans have that of the run"
    again = import_results(tmp_path / "t.jsonl", MemoryStore())
    assert again.runs[0].table()["started"].to_pylist() == [None]
    assert again.evaluations[0] is not None
    assert again.evaluations[0].table("faithfulness")["value"].to_pylist() == [0.5]
