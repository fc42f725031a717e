"""The files of the Pharia SDKs' repositories: names, rows, death of a process, and files that the SDKs wrote."""

from __future__ import annotations

import inspect
import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections import deque
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from hypothesis import given, strategies as st
from support.fresh import run_python
from support.patience import PATIENCE

from evaluand.core.errors import EvaluandWarning
from evaluand.interop.pharia import (
    AggregationOverview,
    AsyncFileEvaluationRepository,
    AsyncInMemoryEvaluationRepository,
    EvaluationOverview,
    Example,
    ExampleEvaluation,
    ExampleOutput,
    FailedExampleEvaluation,
    FailedExampleRun,
    FileAggregationRepository,
    FileDatasetRepository,
    FileEvaluationRepository,
    FileRunRepository,
    FileTracer,
    InMemoryDatasetRepository,
    InMemorySpan,
    InMemoryTaskSpan,
    InMemoryTracer,
    LogEntry,
    PartialEvaluationOverview,
    RepositoryNavigator,
    RunOverview,
    TaskSpan,
)
from evaluand.interop.pharia.repository_files import AppendedRows, file_name, id_of

NOW = datetime(2026, 1, 2, 3, 4, 5, 678901, UTC)
HOSTILE = [
    "../x",
    "/etc/x",
    "..",
    ".",
    "",
    "a\0b",
    "x" * 300,
    "é" * 300,
    "CON",
    "con",
    "nul.json",
    "twin",
    "Twin",
    "TWIN",
    "a.json",
    "a",
    "a%2E",
    "%",
    "%-x",
    "C:\\x",
    "日本",
    "tab\tline\n",
    " ",
    "x" * 60 + "%-" + "0" * 32,
]


def a_run(id: str) -> RunOverview:
    return RunOverview(
        dataset_id="d",
        id=id,
        start=NOW,
        end=NOW,
        failed_example_count=0,
        successful_example_count=1,
        description="a run",
    )


def an_evaluation(id: str) -> EvaluationOverview:
    return EvaluationOverview(
        run_overviews=frozenset([a_run("r")]),
        id=id,
        start_date=NOW,
        end_date=NOW,
        successful_evaluation_count=1,
        failed_evaluation_count=0,
        description="an evaluation",
    )


def files_below(folder: Path) -> set[Path]:
    return {path.relative_to(folder) for path in folder.rglob("*")}


def test_hostile_ids_stay_below_the_root_and_come_back_one_to_one(tmp_path: Path) -> None:
    root = tmp_path / "deep" / "root"
    datasets, runs, evaluations = (
        FileDatasetRepository(root),
        FileRunRepository(root),
        AsyncFileEvaluationRepository(root),
    )
    aggregations = FileAggregationRepository(root)
    for id in HOSTILE:
        named = [each for each in HOSTILE if each]
        datasets.create_dataset([Example(id=each, input=id, expected_output=None) for each in named], "n", id=id)
        runs.store_run_overview(a_run(id))
        runs.create_temporary_run_data(id, id)
        evaluations.store_evaluation_overview(an_evaluation(id))
        evaluations.store_partial_evaluation_overview(
            PartialEvaluationOverview(
                run_overviews=frozenset(), id=id, start_date=NOW, submitted_evaluation_count=1, description=""
            )
        )
        aggregations.store_aggregation_overview(
            AggregationOverview(
                evaluation_overviews=frozenset(),
                id=id,
                start=NOW,
                end=NOW,
                successful_evaluation_count=0,
                crashed_during_evaluation_count=0,
                description="",
                statistics=id,
            )
        )
        for example in HOSTILE:
            runs.store_example_output(ExampleOutput(run_id=id, example_id=example, output=f"{id}|{example}"))
            with runs.create_tracer_for_example(id, example).task_span("t", example):
                pass
            evaluations.store_example_evaluation(
                ExampleEvaluation(evaluation_id=id, example_id=example, result=f"{id}|{example}")
            )
    assert files_below(tmp_path) == {Path("deep"), Path("deep/root")} | {
        Path("deep/root") / path for path in files_below(root)
    }
    assert {path.parts[0] for path in files_below(root)} == {"datasets", "runs", "evaluations", "aggregations"}
    names = [path.name for path in files_below(root)]
    assert all(len(name.encode()) <= 255 for name in names)
    for folder in (root, *(root / path for path in files_below(root) if (root / path).is_dir())):
        folded = [name.casefold() for name in os.listdir(folder)]
        assert len(set(folded)) == len(folded), "names that differ by case alone"

    again_datasets, again, again_evaluations = (
        FileDatasetRepository(root),
        FileRunRepository(root),
        AsyncFileEvaluationRepository(root),
    )
    ids = sorted(HOSTILE)
    assert list(again_datasets.dataset_ids()) == ids
    assert list(again.run_overview_ids()) == ids
    assert list(again_evaluations.evaluation_overview_ids()) == ids
    assert list(again_evaluations.partial_evaluation_overview_ids()) == ids
    assert list(FileAggregationRepository(root).aggregation_overview_ids()) == ids
    with again.begun("nothing", resume=True) as begun:
        assert begun.finished_examples == []
    for id in HOSTILE:
        assert [each.id for each in again_datasets.examples(id, str, type(None))] == sorted(named)
        assert again.run_overview(id) == a_run(id)
        assert again.finished_examples(id).run_id == id
        assert list(again.example_output_ids(id)) == ids
        assert [each.output for each in again.example_outputs(id, str)] == [f"{id}|{each}" for each in ids]
        assert again.example_tracer(id, ids[0]).entries[0].input == ids[0]
        assert again_evaluations.example_evaluation(id, ids[-1], str).result == f"{id}|{ids[-1]}"
        assert FileAggregationRepository(root).aggregation_overview(id, str).statistics == id


def test_a_broken_line_of_a_dataset_is_reported_with_its_file_and_number(tmp_path: Path) -> None:
    datasets = FileDatasetRepository(tmp_path)
    datasets.create_dataset([Example(id=id, input=id, expected_output=None) for id in "abcd"], "n", id="d")
    file = tmp_path / "datasets" / "d" / "d.jsonl"
    first, second, third, fourth = file.read_text().splitlines()
    file.write_text("\n".join([first, second[:-4], "", third.replace('"input":"c",', ""), "[1]", fourth]))
    with pytest.raises(ValueError, match="is not JSON") as raised:
        list(datasets.examples("d", str, type(None)))
    reported = str(raised.value).splitlines()
    assert reported[0].startswith(f"{file}:2: is not JSON: ")
    assert reported[1:] == [
        f"{file}:4.input: Field required",
        f"{file}:5: is not an example; write an object whose id is a text",
    ]
    with pytest.raises(ValueError, match=r"d\.jsonl:2: is not JSON"):
        datasets.example("d", "a", str, type(None))


@given(st.text(st.characters(exclude_categories=("Cs",)), max_size=40), st.text(max_size=40).filter(str.isprintable))
def test_a_file_name_belongs_to_one_id(id: str, other: str) -> None:
    assert id_of(file_name(id)) in (id, None)
    assert (file_name(id).casefold() == file_name(other).casefold()) == (id == other)


def test_a_row_that_was_cut_off_is_no_row_and_harms_no_other(tmp_path: Path) -> None:
    rows = AppendedRows(tmp_path / "rows.jsonl")
    rows.append("a", b"1")
    with rows.path.open("ab") as file:
        file.write(b'{"example_id":"b","failed":false,"val')
    assert AppendedRows(rows.path).ids() == ["a"]
    after = AppendedRows(rows.path)
    after.append("c", b"3")
    assert after.ids() == ["a", "c"]
    assert rows.ids() == ["a", "c"]
    assert after.get("c")["value"] == 3


def test_the_last_row_of_an_example_counts_and_others_writers_are_seen(tmp_path: Path) -> None:
    mine, theirs = AppendedRows(tmp_path / "rows.jsonl"), AppendedRows(tmp_path / "rows.jsonl")
    mine.append("a", b"1")
    assert theirs.get("a")["value"] == 1
    mine.append("a", b"2", failed=True)
    assert theirs.get("a") == {"example_id": "a", "failed": True, "value": 2}
    assert [row["value"] for row in theirs.all("a")] == [1, 2]


RUN = """
    import sys, time
    from pathlib import Path
    from evaluand.interop.pharia import FileDatasetRepository, FileRunRepository, Runner, Task

    class Slow(Task[int, int]):
        def do_run(self, input, task_span):
            with open(sys.argv[2], "a") as log:
                log.write(f"{input}\\n")
            if input >= 5 and sys.argv[3] == "stop":
                time.sleep(60)
            return input * 2

    root = Path(sys.argv[1])
    runner = Runner(Slow(), FileDatasetRepository(root), FileRunRepository(root), "slow")
    run = runner.run_dataset("numbers", max_workers=2, resume_from_recovery_data=True)
    print(run.successful_example_count, run.failed_example_count)
"""


@pytest.mark.slow
def test_a_run_killed_in_the_midst_goes_on_in_a_new_process_with_what_is_missing(tmp_path: Path) -> None:
    examples = [Example(id=f"{n:02}", input=n, expected_output=None) for n in range(12)]
    FileDatasetRepository(tmp_path).create_dataset(examples, "numbers", id="numbers")
    script = tmp_path / "run.py"
    script.write_text(textwrap.dedent(RUN))
    first, second = tmp_path / "first.log", tmp_path / "second.log"
    process = subprocess.Popen([sys.executable, str(script), str(tmp_path), str(first), "stop"])
    runs = FileRunRepository(tmp_path)
    deadline = time.monotonic() + 60
    while not (first.exists() and len(first.read_text().split()) == 7) and time.monotonic() < deadline:
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait()
    command = [sys.executable, str(script), str(tmp_path), str(second), "go"]
    ended = subprocess.run(command, capture_output=True, text=True, check=True, timeout=PATIENCE)
    assert sorted(map(int, first.read_text().split())) == list(range(7))
    assert sorted(map(int, second.read_text().split())) == list(range(5, 12))
    assert ended.stdout == "12 0\n"
    (run_id,) = runs.run_overview_ids()
    assert [each.output for each in runs.example_outputs(run_id, int)] == [n * 2 for n in range(12)]
    assert all(runs.example_tracer(run_id, each.id) is not None for each in examples)


LAYOUT: dict[str, Any] = {
    "datasets/DS.1/DS.1.json": {"id": "DS.1", "name": "sentiment", "labels": ["x"], "metadata": {"k": [1, None]}},
    "runs/R/output/Ex 1.json": {"run_id": "R", "example_id": "Ex 1", "output": {"label": "pos"}},
    "runs/R/output/ex2.json": {"run_id": "R", "example_id": "ex2", "output": {"error_message": "ValueError: no"}},
    "evaluations/E/Ex 1.json": {
        "evaluation_id": "E",
        "example_id": "Ex 1",
        "is_exception": False,
        "json_result": '{"correct":true}',
    },
    "evaluations/E/ex2.json": {
        "evaluation_id": "E",
        "example_id": "ex2",
        "is_exception": True,
        "json_result": '{"error_message":"KeyError: x"}',
    },
}
OVERVIEWS: dict[str, Any] = {
    "runs/R.json": {
        "dataset_id": "DS.1",
        "id": "R",
        "start": "2026-11-21T23:19:21.456577Z",
        "end": "2026-11-21T23:19:21.486301Z",
        "failed_example_count": 1,
        "successful_example_count": 1,
        "description": "desc",
        "labels": ["l"],
        "metadata": {},
    }
}
OVERVIEWS["evaluations/E.json"] = {
    "run_overviews": [OVERVIEWS["runs/R.json"]],
    "id": "E",
    "start_date": "2026-11-21T23:19:21.502129Z",
    "end_date": "2026-11-21T23:19:21.524103Z",
    "successful_evaluation_count": 1,
    "failed_evaluation_count": 1,
    "description": "evd",
    "labels": [],
    "metadata": {},
}
OVERVIEWS["aggregations/A.json"] = {
    "evaluation_overviews": [OVERVIEWS["evaluations/E.json"]],
    "id": "A",
    "start": "2026-11-21T23:19:21.525925Z",
    "end": "2026-11-21T23:19:21.525983Z",
    "successful_evaluation_count": 1,
    "crashed_during_evaluation_count": 1,
    "description": "agg",
    "statistics": {"accuracy": 1.0, "n": 1},
    "labels": [],
    "metadata": {},
}
EXAMPLES = [
    {"input": {"text": "good"}, "expected_output": "pos", "id": "Ex 1", "metadata": None},
    {"input": {"text": "bad"}, "expected_output": "neg", "id": "ex2", "metadata": {"m": 1}},
]
ROOT_ID = "15b4ee4f-71b1-4257-b81c-8356f721f6f2"
TRACE = [
    {
        "trace_id": ROOT_ID,
        "entry_type": "StartTask",
        "entry": {
            "uuid": ROOT_ID,
            "parent": ROOT_ID,
            "name": "Root",
            "start": "2024-01-01T00:00:00Z",
            "input": {"text": "good"},
            "trace_id": ROOT_ID,
        },
    },
    {
        "trace_id": ROOT_ID,
        "entry_type": "EndTask",
        "entry": {"uuid": ROOT_ID, "end": "2024-01-01T00:00:04Z", "output": {"label": "pos"}, "status_code": "OK"},
    },
]


def written_by_the_sdk(root: Path) -> None:
    """Files in the layout of the SDKs, written by hand."""
    for name, content in (LAYOUT | OVERVIEWS).items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(json.dumps(content))
    lines = {"datasets/DS.1/DS.1.jsonl": EXAMPLES, "runs/R/trace/Ex 1.jsonl": TRACE}
    for name, rows in lines.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("".join(json.dumps(row) + "\n" for row in rows))


def test_files_that_the_sdks_wrote_are_read(tmp_path: Path) -> None:
    written_by_the_sdk(tmp_path)
    datasets, runs, evaluations = (
        FileDatasetRepository(tmp_path),
        FileRunRepository(tmp_path),
        FileEvaluationRepository(tmp_path),
    )
    assert list(datasets.dataset_ids()) == ["DS.1"]
    assert datasets.dataset("DS.1").metadata == {"k": [1, None]}
    assert [each.id for each in datasets.examples("DS.1", dict[str, str], str)] == ["Ex 1", "ex2"]
    assert list(runs.run_overview_ids()) == ["R"]
    fine, failed = runs.example_outputs("R", dict)
    assert fine.output == {"label": "pos"}
    assert failed.output == FailedExampleRun(error_message="ValueError: no")
    assert runs.example_output("R", "ex2", Any).output == failed.output
    (span,) = runs.example_tracer("R", "Ex 1").export_for_viewing()
    assert (span.name, span.attributes.output, str(span.context.trace_id)) == ("Root", {"label": "pos"}, ROOT_ID)
    results = evaluations.example_evaluations("E", dict[str, bool])
    assert [each.result for each in results] == [
        {"correct": True},
        FailedExampleEvaluation(error_message="KeyError: x"),
    ]
    overview = FileAggregationRepository(tmp_path).aggregation_overview("A", dict[str, float])
    assert (overview.statistics, overview.failed_evaluation_count) == ({"accuracy": 1.0, "n": 1.0}, 2)
    navigator = RepositoryNavigator(datasets, runs, evaluations)
    lineages = list(navigator.evaluation_lineages("E", dict, str, dict, dict))
    assert [each.example.id for each in lineages] == ["Ex 1", "ex2"]
    assert len(lineages[0].tracers[0].entries) == 1


THEIRS = """
    import sys
    from pathlib import Path
    from typing import Any
    from pydantic import BaseModel
    from pharia_inference_sdk.core import Task, TaskSpan
    from pharia_studio_sdk.evaluation import *

    class Verdict(BaseModel):
        correct: bool

    class Shout(Task[str, Any]):
        def do_run(self, input: str, task_span: TaskSpan) -> Any:
            if input == "crash":
                raise ValueError("boom")
            with task_span.span("step") as span:
                span.log("note", [1, "two", None])
            return {"loud": input.upper()}

    class Same(SingleOutputEvaluationLogic[str, Any, str, Verdict]):
        def do_evaluate_single_output(self, example: Example[str, str], output: Any) -> Verdict:
            if "error_message" in output:
                raise KeyError("loud")
            return Verdict(correct=output["loud"] == example.expected_output)

    class Count(AggregationLogic[Verdict, Verdict]):
        def aggregate(self, evaluations: Any) -> Verdict:
            return Verdict(correct=all(each.correct for each in evaluations))

    root = Path(sys.argv[1])
    datasets, runs = FileDatasetRepository(root), FileRunRepository(root)
    evaluations, aggregations = FileEvaluationRepository(root), FileAggregationRepository(root)
    examples = [Example(id=each, input=each, expected_output=each.upper()) for each in ("hi", "crash", "Ho")]
    dataset = datasets.create_dataset(examples, "n", id="Mixed.Case")
    run = Runner(Shout(), datasets, runs, "r").run_dataset(dataset.id)
    evaluation = Evaluator(datasets, runs, evaluations, "e", Same()).evaluate_runs(run.id)
    overview = Aggregator(evaluations, aggregations, "a", Count()).aggregate_evaluation(evaluation.id)
    print(run.id, evaluation.id, overview.id)
"""


@pytest.mark.skipif("PHARIA_PYTHON" not in os.environ, reason="PHARIA_PYTHON names no interpreter that has the SDKs")
def test_what_the_sdks_themselves_have_just_written_is_read(tmp_path: Path) -> None:
    script = tmp_path / "theirs.py"
    script.write_text(textwrap.dedent(THEIRS))
    root = tmp_path / "root"
    command = [os.environ["PHARIA_PYTHON"], str(script), str(root)]
    ended = subprocess.run(command, capture_output=True, text=True, check=True)
    run_id, evaluation_id, aggregation_id = ended.stdout.split()[-3:]
    datasets, runs = FileDatasetRepository(root), FileRunRepository(root)
    assert [each.input for each in datasets.examples("Mixed.Case", str, str)] == ["Ho", "crash", "hi"]
    outputs = {each.example_id: each.output for each in runs.example_outputs(run_id, Any)}
    assert outputs["hi"] == {"loud": "HI"}
    assert isinstance(outputs["crash"], FailedExampleRun)
    step, root_span = runs.example_tracer(run_id, "Ho").export_for_viewing()
    assert (step.name, root_span.name, step.events[0].body) == ("step", "Shout", [1, "two", None])
    evaluations = FileEvaluationRepository(root)
    assert len(evaluations.example_evaluations(evaluation_id, dict[str, bool])) == 3
    assert len(evaluations.failed_example_evaluations(evaluation_id, dict)) == 1
    overview = FileAggregationRepository(root).aggregation_overview(aggregation_id, dict[str, bool])
    assert [each.id for each in overview.evaluation_overviews] == [evaluation_id]


def test_a_kept_trace_comes_back_as_it_was(tmp_path: Path) -> None:
    runs = FileRunRepository(tmp_path)
    tracer = runs.create_tracer_for_example("r", "e")
    given = {"q": [1]}

    def traced(root: TaskSpan) -> None:
        with root:
            given["q"].append(2)
            root.log("first", {"a": 1})
            with root.span("child", temperature=0.5) as child:
                child.log("inner", "x")
            root.log("last", None)
            raise ValueError("no")

    root = tracer.task_span("root", given)
    with pytest.raises(ValueError, match="no"):
        traced(root)
    with tracer.span("another"):
        pass
    back = runs.example_tracer("r", "e")
    again = FileRunRepository(tmp_path).example_tracer("r", "e")
    first, second = back.entries
    assert (first.name, first.input, first.status, second.name) == ("root", {"q": [1]}, "error", "another")
    names = [getattr(entry, "name", None) or entry.message for entry in first.entries]
    assert names == ["first", "child", "last", "no"]
    assert first.entries[1].attributes == {"temperature": 0.5}
    assert first.id == root.id
    exported = [span.model_dump_json() for span in back.export_for_viewing()]
    assert exported == [span.model_dump_json() for span in again.export_for_viewing()]


def test_a_row_after_one_that_the_disk_had_no_room_for_is_kept(tmp_path: Path) -> None:
    program = """
        import resource, signal, sys
        from pathlib import Path
        from evaluand.core.errors import EngineError
        from evaluand.interop.pharia import ExampleOutput, FileRunRepository, FileTracer
        from evaluand.trace.tracers.file import TracerLogEntryFailed

        def room(size):
            resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))

        def put(id, size):
            runs.store_example_output(ExampleOutput(run_id="r", example_id=id, output="y" * size))

        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        root = Path(sys.argv[1])
        runs = FileRunRepository(root)
        put("a", 10)
        room(300)
        try:
            put("b", 1000)
        except EngineError:
            print("told")
        room(resource.RLIM_INFINITY)
        put("c", 10)
        with FileTracer(root / "trace").span("root") as root_span:
            room(600)
            try:
                root_span.log("big", "z" * 1000)
            except TracerLogEntryFailed:
                print("told")
            room(resource.RLIM_INFINITY)
            with root_span.span("child") as child:
                child.log("x", 1)
    """
    done = run_python(textwrap.dedent(program), str(tmp_path))
    assert done.stdout == "told\ntold\n", done.stderr
    assert FileRunRepository(tmp_path).example_output_ids("r") == ["a", "c"]
    with pytest.warns(EvaluandWarning, match="trace:2: the line is incomplete"):
        (entry,) = FileTracer(tmp_path / "trace").traces().entries
    assert [child.name for child in entry.entries if isinstance(child, InMemorySpan)] == ["child"]


@pytest.mark.parametrize("id", ["r", "Run"])
def test_what_the_sdks_began_is_gone_on_with(tmp_path: Path, id: str) -> None:
    outputs, results = tmp_path / "runs" / id / "output", tmp_path / "evaluations" / id
    for folder in (outputs, results):
        folder.mkdir(parents=True)
    for example in ("1", "2"):
        reported = {"run_id": id, "example_id": example, "output": "theirs"}
        (outputs / f"{example}.json").write_text(json.dumps(reported))
        reported = {"evaluation_id": id, "example_id": example, "is_exception": False, "json_result": '"theirs"'}
        (results / f"{example}.json").write_text(json.dumps(reported))
    runs, evaluations = FileRunRepository(tmp_path), FileEvaluationRepository(tmp_path)
    for example in ("2", "3"):
        runs.store_example_output(ExampleOutput(run_id=id, example_id=example, output="own"))
        evaluations.store_example_evaluation(ExampleEvaluation(evaluation_id=id, example_id=example, result="own"))
    runs, evaluations = FileRunRepository(tmp_path), FileEvaluationRepository(tmp_path)
    assert runs.example_output_ids(id) == ["1", "2", "3"]
    assert [each.output for each in runs.example_outputs(id, str)] == ["theirs", "own", "own"]
    assert [each.result for each in evaluations.example_evaluations(id, str)] == ["theirs", "own", "own"]
    first = evaluations.example_evaluation(id, "1", str)
    assert first is not None
    assert first.result == "theirs"


def test_a_kept_trace_holds_what_other_tracers_hold_of_odd_values(tmp_path: Path) -> None:
    runs = FileRunRepository(tmp_path)
    with runs.create_tracer_for_example("r", "1").task_span("t", {1: {2}}) as task_span:
        for value in ({"one"}, {1: "a"}, Path("x/y"), deque([1]), {"$set": {1}}, object()):
            task_span.log("odd", value)
        task_span.record_output(frozenset([3]))
    tracer = FileRunRepository(tmp_path).example_tracer("r", "1")
    assert isinstance(tracer, InMemoryTracer)
    (entry,) = tracer.entries
    assert (entry.input, entry.output, entry.attributes) == ({"1": [2]}, [3], {})
    reported = [each.value for each in entry.entries if isinstance(each, LogEntry)]
    assert reported == [["one"], {"1": "a"}, "x/y", [1], {"$set": [1]}, {"$unstorable": "object"}]


@pytest.mark.parametrize("kind", ["memory", "files"])
def test_names_of_arguments_are_those_of_the_sdks(tmp_path: Path, kind: str) -> None:
    evaluations = AsyncInMemoryEvaluationRepository() if kind == "memory" else AsyncFileEvaluationRepository(tmp_path)
    waiting = PartialEvaluationOverview(
        run_overviews=frozenset(), id="e", start_date=NOW, submitted_evaluation_count=1, description=""
    )
    evaluations.store_partial_evaluation_overview(overview=waiting)
    assert evaluations.partial_evaluation_overview(evaluation_id="e") == waiting
    evaluations.store_evaluation_overview(overview=an_evaluation("e"))
    name = "evaluation" if kind == "memory" else "example_evaluation"
    evaluations.store_example_evaluation(**{name: ExampleEvaluation(evaluation_id="e", example_id="1", result="a")})
    assert len(evaluations.example_evaluations("e", str)) == 1


def test_one_example_is_found_without_the_others_being_read(tmp_path: Path) -> None:
    for datasets in (FileDatasetRepository(tmp_path), InMemoryDatasetRepository()):
        examples = [Example(id=f"é{n}", input=n, expected_output=str(n)) for n in range(3)]
        datasets.create_dataset(examples, "n", id="d")
        for n in (2, 0):
            assert datasets.example("d", f"é{n}", int, str) == examples[n]
        assert datasets.example("d", "3", int, str) is None
        with pytest.raises(ValueError, match="no dataset 'e'"):
            datasets.example("e", "1", int, str)
        datasets.delete_dataset("d")
        datasets.create_dataset([Example(id="new", input=1, expected_output="")], "n", id="d")
        assert datasets.example("d", "é0", int, str) is None
        assert datasets.example("d", "new", int, str) is not None


def test_spans_and_entries_in_memory_are_made_as_the_sdks_make_them() -> None:
    assert [*inspect.signature(InMemorySpan).parameters] == ["name", "context", "start_timestamp"]
    assert [*inspect.signature(InMemoryTaskSpan).parameters] == ["name", "input", "context", "start_timestamp"]
    assert LogEntry(message="a", value=1, trace_id=uuid4()).timestamp.tzinfo is not None
