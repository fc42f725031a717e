"""Labels given later, the command, and the SDKs' world on the native path."""

from __future__ import annotations

import importlib
import json
import math
import re
import subprocess
import textwrap
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

import pytest
from pydantic import BaseModel, Field
from support.fresh import run_python
from support.places import ROOT_FOLDER

from evaluand import Accuracy, Aggregator, Dataset, Evaluator, Mean, Measure, MemoryStore, Runner, compare
from evaluand.core.errors import DataError, EvaluandWarning
from evaluand.interop import pharia
from evaluand.interop.names import advice_by_name
from evaluand.interop.pharia import (
    AggregationLogic,
    AsyncEvaluator,
    AsyncFileEvaluationRepository,
    AsyncInMemoryEvaluationRepository,
    Example,
    FailedExampleEvaluation,
    FileDatasetRepository,
    InMemoryAggregationRepository,
    InMemoryDatasetRepository,
    InMemoryEvaluationRepository,
    InMemoryRunRepository,
    LabellingLogic,
    SingleOutputEvaluationLogic,
    SuccessfulExampleOutput,
    Task,
    TaskSpan,
    as_scorer,
    dataset_of,
    native_dataset,
    native_evaluation,
)
from evaluand.interop.pharia.missing_names import REPLACEMENTS


class Shout(Task[str, str]):
    def do_run(self, input: str, task_span: TaskSpan) -> str:
        if input == "crash":
            raise ValueError("boom")
        return input.upper()


class Parts(BaseModel):
    length: int
    ratio: float | None


class Verdict(BaseModel):
    correct: bool
    why: str
    parts: Parts


class Judge(SingleOutputEvaluationLogic[str, str, str, Verdict]):
    def do_evaluate_single_output(self, example: Example[str, str], output: str) -> Verdict:
        if example.expected_output == "?":
            raise KeyError("nothing to compare with")
        same = output == example.expected_output
        return Verdict(correct=same, why="same" if same else "not", parts=Parts(length=len(output), ratio=None))


CASES = [("a", "hi", "HI"), ("b", "ho", "HO"), ("c", "crash", "X"), ("d", "hey", "no"), ("e", "hm", "?")]


@pytest.fixture
def world() -> tuple[InMemoryDatasetRepository, InMemoryRunRepository, str]:
    datasets, runs = InMemoryDatasetRepository(), InMemoryRunRepository()
    examples = [Example(id=id, input=input, expected_output=expected) for id, input, expected in CASES]
    dataset = datasets.create_dataset(examples, "shouts", id="shouts")
    return datasets, runs, pharia.Runner(Shout(), datasets, runs, "shout").run_dataset(dataset.id).id


def test_a_logic_scores_on_the_native_path_with_its_whole_result(world: Any) -> None:
    datasets, _, _ = world
    data = native_dataset(datasets, "shouts")
    run = Runner().run(Shout(), data)
    evaluation = Evaluator().evaluate(run, {"judge": as_scorer(Judge())})
    table = evaluation.table("judge")
    assert table["status"].to_pylist() == ["scored", "scored", "failed", "scored", "failed"]
    whole = {"correct": False, "parts": {"length": 3, "ratio": None}, "why": "not"}
    assert json.loads(table["data"].to_pylist()[3]) == whole


def test_an_evaluation_as_kept_is_measured_natively_without_being_made_again(world: Any) -> None:
    datasets, runs, run_id = world
    kept = InMemoryEvaluationRepository()
    overview = pharia.Evaluator(datasets, runs, kept, "judged", Judge()).evaluate_runs(run_id)
    evaluation = native_evaluation(datasets, runs, kept, overview.id)
    assert evaluation.table("evaluation")["status"].to_pylist() == ["scored", "scored", "failed", "scored", "failed"]
    measures = [
        Measure("evaluation", Accuracy(column="data.correct")),
        Measure("evaluation", Accuracy(column="data.correct", missing="wrong")),
        Measure("evaluation", Mean(column="data.parts.length")),
    ]
    left_out, wrong, length = Aggregator().aggregate([evaluation], measures).table().to_pylist()
    assert (left_out["value"], left_out["n_failed"]) == (pytest.approx(2 / 3), 2)
    assert wrong["value"] == pytest.approx(2 / 5)
    assert length["value"] == pytest.approx(7 / 3)


def test_two_failures_in_ten_are_left_out_or_wrong_natively_too() -> None:
    texts = ["hi"] * 8 + ["crash"] * 2
    datasets, runs, kept = InMemoryDatasetRepository(), InMemoryRunRepository(), InMemoryEvaluationRepository()
    examples = [Example(id=str(n), input=text, expected_output="HI" if n < 6 else "no") for n, text in enumerate(texts)]
    datasets.create_dataset(examples, "ten", id="ten")
    run = pharia.Runner(Shout(), datasets, runs, "shout").run_dataset("ten")
    overview = pharia.Evaluator(datasets, runs, kept, "judged", Judge()).evaluate_runs(run.id)
    evaluation = native_evaluation(datasets, runs, kept, overview.id)
    measures = [Measure("evaluation", Accuracy(column="data.correct", missing=how)) for how in ("leave_out", "wrong")]
    assert Aggregator().aggregate([evaluation], measures).table()["value"].to_pylist() == [0.75, 0.6]


def test_results_of_the_seeds_code_are_compared(world: Any) -> None:
    datasets, runs, run_id = world

    class Whisper(Task[str, str]):
        def do_run(self, input: str, task_span: TaskSpan) -> str:
            return input

    other = pharia.Runner(Whisper(), datasets, runs, "whisper").run_dataset("shouts").id
    kept = InMemoryEvaluationRepository()
    judge = pharia.Evaluator(datasets, runs, kept, "judged", Judge())
    store = MemoryStore()
    ids = {"whisper": judge.evaluate_runs(other).id, "shout": judge.evaluate_runs(run_id).id}
    sides = [native_evaluation(datasets, runs, kept, id, store=store, name=name) for name, id in ids.items()]
    reported = str(compare(*sides, metrics=Accuracy(column="data.correct")))
    assert "shout − whisper = +66.7 points" in reported


def test_results_of_several_runs_together_belong_to_no_native_run(world: Any) -> None:
    datasets, runs, run_id = world
    kept = InMemoryEvaluationRepository()

    class Both(pharia.EvaluationLogic[str, str, str, int]):
        def do_evaluate(self, example: Example[str, str], *output: SuccessfulExampleOutput[str]) -> int:
            return len(output)

    other = pharia.Runner(Shout(), datasets, runs, "shout").run_dataset("shouts").id
    overview = pharia.Evaluator(datasets, runs, kept, "both", Both()).evaluate_runs(run_id, other)
    with pytest.raises(ValueError, match="of 2 runs together"):
        native_evaluation(datasets, runs, kept, overview.id)


@pytest.mark.parametrize(
    ("result", "path", "number"),
    [(True, "value", 1.0), ({"value": 3}, "data.value", 3.0), ({"a": [1, {"b": 2}]}, "data.a[1].b", 2.0)],
)
def test_numbers_in_results_of_any_type_are_measured(world: Any, result: Any, path: str, number: float) -> None:
    datasets, runs, run_id = world
    kept = InMemoryEvaluationRepository()

    class Constant(SingleOutputEvaluationLogic[str, str, str, Any]):
        def do_evaluate_single_output(self, example: Example[str, str], output: str) -> Any:
            return result

    overview = pharia.Evaluator(datasets, runs, kept, "constant", Constant()).evaluate_runs(run_id)
    evaluation = native_evaluation(datasets, runs, kept, overview.id)
    (row,) = Aggregator().aggregate([evaluation], [Measure("evaluation", Mean(column=path))]).table().to_pylist()
    assert (row["value"], row["n_scored"], row["n_failed"]) == (number, 4, 1)


def test_an_undefined_number_in_a_result_is_reported_as_such(world: Any) -> None:
    datasets, runs, run_id = world
    kept = InMemoryEvaluationRepository()

    class Undefined(SingleOutputEvaluationLogic[str, str, str, dict[str, float]]):
        def do_evaluate_single_output(self, example: Example[str, str], output: str) -> dict[str, float]:
            return {"f1": math.nan if example.id == "b" else 1.0}

    overview = pharia.Evaluator(datasets, runs, kept, "undefined", Undefined()).evaluate_runs(run_id)
    evaluation = native_evaluation(datasets, runs, kept, overview.id)
    with pytest.raises(DataError, match=r"_index_ 1: data\.f1 is NaN, which cannot be measured"):
        Aggregator().aggregate([evaluation], [Measure("evaluation", Mean(column="data.f1"))])


def test_a_dataset_goes_to_the_native_path_and_back(world: Any) -> None:
    datasets = InMemoryDatasetRepository()
    examples = [
        Example(id="1", input={"q": {}, "n": None}, expected_output=[1, "x"], metadata={"author": {"name": "x"}}),
        Example(id="2", input="text", expected_output=None),
    ]
    head = datasets.create_dataset(examples, "mixed")
    native = native_dataset(datasets, head.id)
    back = dataset_of(native, datasets, "again", id="again")
    assert list(datasets.examples(back.id, Any, Any)) == examples
    rich = Dataset.from_rows([{"input": "a", "expected": "b", "topic": "x", "w": 2.0}], attributes="topic", weight="w")
    dataset_of(rich, datasets, "rich", id="rich")
    (example,) = datasets.examples("rich", str, str)
    assert example.metadata == {"topic": "x", "weight": 2.0}


class Rating(BaseModel):
    stars: int


class Ask(LabellingLogic[str, str, str, Rating]):
    def to_record(self, example: Example[str, str], *output: SuccessfulExampleOutput[str]) -> dict[str, Any]:
        if example.id == "e":
            raise ValueError("nothing to show")
        return {"question": example.input, "answers": [each.output for each in output]}


@pytest.mark.parametrize("kind", ["memory", "files"])
def test_labels_are_asked_for_given_and_retrieved(world: Any, tmp_path: Path, kind: str) -> None:
    datasets, runs, run_id = world
    kept = AsyncInMemoryEvaluationRepository() if kind == "memory" else AsyncFileEvaluationRepository(tmp_path)
    evaluator = AsyncEvaluator(datasets, runs, kept, "stars", Ask(), tmp_path / "labelling")
    waiting = evaluator.submit(run_id, labels={"people"})
    assert (waiting.submitted_evaluation_count, waiting.skipped_example_count) == (3, 1)
    assert list(kept.partial_evaluation_overview_ids()) == [waiting.id]
    path = evaluator.labelling_file(waiting.id)
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert lines[0] == {"example_id": "a", "record": {"question": "hi", "answers": ["HI"]}, "label": None}

    nothing_yet = evaluator.retrieve(waiting.id)
    assert (nothing_yet.successful_evaluation_count, nothing_yet.skipped_example_count) == (0, 4)

    labels = {"a": {"stars": 5}, "b": {"stars": "many"}}
    people = tmp_path / "labels.jsonl"
    people.write_text("".join(json.dumps({"example_id": id, "label": label}) + "\n" for id, label in labels.items()))
    evaluator.import_labels(waiting.id, people)
    overview = evaluator.retrieve(waiting.id)
    assert overview.id == waiting.id
    assert (overview.successful_evaluation_count, overview.failed_evaluation_count) == (1, 2)
    assert (overview.skipped_example_count, overview.labels) == (2, {"people"})
    a, b, e = kept.example_evaluations(overview.id, Rating)
    assert a.result == Rating(stars=5)
    assert isinstance(b.result, FailedExampleEvaluation)
    assert e.result.error_message == "ValueError: nothing to show"

    people.write_text('{"example_id": "d", "label": {"stars": 1}}\n{"example_id": "b", "label": {"stars": 2}}\n')
    with pytest.warns(EvaluandWarning, match="another label"):
        evaluator.import_labels(waiting.id, people)
    full = evaluator.retrieve(waiting.id)
    assert (full.successful_evaluation_count, full.failed_evaluation_count, full.skipped_example_count) == (3, 1, 1)
    assert [lineage.example.id for lineage in evaluator.evaluation_lineages(full.id)] == ["a", "b", "d", "e"]

    file = evaluator.labelling_file(waiting.id)
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    written = (json.dumps(line | ({"label": None} if line["example_id"] == "a" else {})) for line in lines)
    file.write_bytes(b"\xef\xbb\xbf" + "\r\n".join(written).encode())
    fewer = evaluator.retrieve(waiting.id)
    assert (fewer.successful_evaluation_count, fewer.failed_evaluation_count, fewer.skipped_example_count) == (2, 1, 2)
    assert [each.example_id for each in kept.example_evaluations(full.id, Rating)] == ["b", "d", "e"]


def test_labels_of_other_examples_are_refused(world: Any, tmp_path: Path) -> None:
    datasets, runs, run_id = world
    kept = AsyncInMemoryEvaluationRepository()
    evaluator = AsyncEvaluator(datasets, runs, kept, "stars", Ask(), tmp_path)
    waiting = evaluator.submit(run_id)
    other = tmp_path / "other.jsonl"
    other.write_text('{"example_id": "z", "label": 1}\n')
    with pytest.raises(DataError, match="'z' was not submitted"):
        evaluator.import_labels(waiting.id, other)
    other.write_text('{"example_id": "a", "label": 1}\nnonsense\n')
    with pytest.raises(DataError, match=r"other\.jsonl:2: is no JSON"):
        evaluator.import_labels(waiting.id, other)
    other.write_text('{"example_id": ["a"], "label": 1}\n')
    with pytest.raises(DataError, match=r"other\.jsonl:1: not a line"):
        evaluator.import_labels(waiting.id, other)
    with pytest.raises(ValueError, match="nothing submitted as 'none'"):
        evaluator.retrieve("none")


def stars(world: Any, tmp_path: Path, kind: Any) -> tuple[Any, Any, Path]:
    """Three of the answers of a run, waiting for labels."""
    datasets, runs, run_id = world

    class Stars(LabellingLogic[str, str, str, kind]):
        def to_record(self, example: Example[str, str], *output: SuccessfulExampleOutput[str]) -> dict[str, Any]:
            return {"question": example.input}

    kept = AsyncFileEvaluationRepository(tmp_path)
    evaluator: Any = AsyncEvaluator(datasets, runs, kept, "stars", Stars(), tmp_path / "labelling")
    waiting = evaluator.submit(run_id, num_examples=3)
    return evaluator, waiting.id, evaluator.labelling_file(waiting.id)


def lines_of(file: Path, *labels: Any) -> list[str]:
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    return [json.dumps(line | {"label": label}) + "\n" for line, label in zip(lines, labels, strict=True)]


def test_lines_that_are_gone_count_as_not_labelled_yet_and_are_named(world: Any, tmp_path: Path) -> None:
    evaluator, id, file = stars(world, tmp_path, int)
    first, second, third = lines_of(file, 5, None, 4)
    for rest, labelled in (([first, second], 1), ([first], 1), ([], 0)):
        file.write_text("".join(rest))
        gone = f"{file}: {3 - len(rest)} submitted examples? without a line, .*'d'"
        with pytest.warns(EvaluandWarning, match=gone):
            overview = evaluator.retrieve(id)
        assert (overview.successful_evaluation_count, overview.unlabelled_example_count) == (labelled, 3 - labelled)
        assert overview.skipped_example_count == (3 - labelled) + 1, "one more is skipped: the task failed on it"
    labels = tmp_path / "labels.jsonl"
    labels.write_text(first + third)
    evaluator.import_labels(id, labels)
    with pytest.warns(EvaluandWarning, match="1 submitted example without"):
        assert evaluator.retrieve(id).successful_evaluation_count == 2


def test_lines_of_one_example_twice_or_of_none_that_was_submitted_are_faults(world: Any, tmp_path: Path) -> None:
    evaluator, id, file = stars(world, tmp_path, int)
    first, second, third = lines_of(file, 5, 4, 3)
    other = '{"example_id": "z", "label": 1}\n'
    file.write_text(first + second + other + third + first)
    with pytest.raises(DataError) as raised:
        evaluator.retrieve(id)
    assert str(raised.value).splitlines() == [
        f"{file}:3: example 'z' was not submitted",
        f"{file}:5: example 'a' has an earlier line already; delete one of them",
    ]
    file.write_text(first + second + third)
    labels = tmp_path / "labels.jsonl"
    labels.write_text(second + "\n" + second)
    with pytest.raises(DataError, match=r"labels\.jsonl:3: example 'b' has an earlier line already"):
        evaluator.import_labels(id, labels)


def test_true_is_no_number_of_stars_and_a_type_says_which_labels_there_are(world: Any, tmp_path: Path) -> None:
    evaluator, id, file = stars(world, tmp_path, Annotated[int, Field(ge=1, le=5)])
    file.write_text("".join(lines_of(file, True, 7, "4")))
    overview = evaluator.retrieve(id)
    assert (overview.successful_evaluation_count, overview.failed_evaluation_count) == (1, 2)
    a, b, d = (each.evaluation.result for each in evaluator.evaluation_lineages(id))
    assert "valid integer" in a.error_message
    assert "less than or equal to 5" in b.error_message
    assert d == 4


def test_an_aggregation_tells_of_examples_that_wait_for_labels(world: Any, tmp_path: Path) -> None:
    class Mean(AggregationLogic[int, float]):
        def aggregate(self, evaluations: Iterable[int]) -> float:
            found = list(evaluations)
            return sum(found) / len(found)

    evaluator, id, file = stars(world, tmp_path, int)
    file.write_text("".join(lines_of(file, 4, None, None)))
    assert "1 successful, 0 failed, 1 skipped, 2 not labelled yet (stars)" in str(evaluator.retrieve(id))
    kept = AsyncFileEvaluationRepository(tmp_path)
    aggregation = pharia.Aggregator(kept, InMemoryAggregationRepository(), "mean", Mean()).aggregate_evaluation(id)
    assert "1 evaluated, 1 failed and left out, 2 not labelled yet (mean)" in str(aggregation)


MODULE = """
    from pydantic import BaseModel
    from evaluand.interop.pharia import AggregationLogic, SingleOutputEvaluationLogic, Task

    class Verdict(BaseModel):
        correct: bool

    class Total(BaseModel):
        right: int

    class Shout(Task[str, str]):
        def do_run(self, input, task_span):
            return input.upper()

    class Needy(Shout):
        def __init__(self, model):
            self.model = model

    class Same(SingleOutputEvaluationLogic[str, str, str, Verdict]):
        def do_evaluate_single_output(self, example, output):
            return Verdict(correct=output == example.expected_output)

    class Count(AggregationLogic[Verdict, Total]):
        def aggregate(self, evaluations):
            return Total(right=sum(each.correct for each in evaluations))

    class Leave(Task[str, str]):
        def do_run(self, input, task_span):
            raise SystemExit(0)

    class Share(AggregationLogic[Verdict, float]):
        def aggregate(self, evaluations):
            given = [each.correct for each in evaluations]
            return sum(given) / len(given)
"""


def test_the_three_steps_are_one_command(tmp_path: Path) -> None:
    (tmp_path / "shouting.py").write_text(textwrap.dedent(MODULE))
    examples = [Example(id=id, input=id, expected_output="A") for id in "ab"]
    FileDatasetRepository(tmp_path / "data").create_dataset(examples, "letters", id="letters")
    options = {
        "--task": "shouting.Shout",
        "--eval-logic": "shouting.Same",
        "--aggregation-logic": "shouting.Count",
        "--dataset-repository-path": "data",
        "--dataset-id": "letters",
        "--target-dir": "results",
        "--description": "letters",
    }

    main = "import runpy; runpy.run_module('evaluand.interop.pharia.run_evaluation', run_name='__main__')"

    def called(**changed: str) -> subprocess.CompletedProcess[str]:
        given = options | {f"--{name.replace('_', '-')}": value for name, value in changed.items()}
        return run_python(main, *(part for option in given.items() for part in option), cwd=tmp_path)

    done = called()
    assert done.returncode == 0, done.stderr
    assert "Total(right=1); 2 evaluated, 0 failed (letters)" in done.stdout
    (aggregation,) = (tmp_path / "results" / "aggregations").glob("*.json")
    assert aggregation.stem in done.stdout
    wrong = called(task="shouting.Whisper")
    assert (wrong.returncode, "Traceback" in wrong.stderr) == (1, False)
    assert "shouting.Whisper cannot be imported" in wrong.stderr
    assert "no dataset 'none'" in called(dataset_id="none").stderr
    wrong = called(task="shouting.Needy")
    assert (wrong.returncode, "Traceback" in wrong.stderr) == (1, False)
    assert "shouting.Needy() fails: TypeError: " in wrong.stderr
    assert "a class or function that can be called without arguments" in wrong.stderr
    wrong = called(task="shouting.Leave", aggregation_logic="shouting.Share")
    assert (wrong.returncode, "Traceback" in wrong.stderr) == (1, False)
    assert re.search("shouting.Share fails on evaluation .* 0 successful.*: ZeroDivisionError: ", wrong.stderr)
    assert "dat contains no datasets" in called(dataset_repository_path="dat").stderr
    assert not (tmp_path / "dat").exists()
    (data,) = (tmp_path / "data").glob("datasets/letters/*.jsonl")
    data.write_text(data.read_text()[:-9])
    wrong = called()
    assert (wrong.returncode, "Traceback" in wrong.stderr) == (1, False)
    assert "letters.jsonl:2: is not JSON" in wrong.stderr


def test_every_name_of_the_namespace_is_there() -> None:
    for name in pharia.__all__:
        if name != "OpenTelemetryTracer":
            assert getattr(pharia, name) is not None
    assert callable(importlib.import_module("evaluand.interop.pharia").main)


def test_a_name_that_is_not_here_is_reported_with_what_to_take_instead() -> None:
    for name, instead in advice_by_name(REPLACEMENTS).items():
        reported = f"^{name} is not in evaluand.interop.pharia: {re.escape(instead)}$"
        with pytest.raises(ImportError, match=reported):
            exec(f"from evaluand.interop.pharia import {name}")
        with pytest.raises(AttributeError, match=reported):
            getattr(pharia, name)
        assert not hasattr(pharia, name)
    with pytest.raises(ImportError, match="FileDatasetRepository"):
        exec("from evaluand.interop.pharia import StudioDatasetRepository")
    with pytest.raises(AttributeError, match="nonsense"):
        pharia.nonsense  # noqa: B018
    assert not advice_by_name(REPLACEMENTS).keys() & set(pharia.__all__)


def test_the_guide_lists_the_names_that_are_here_and_those_that_are_not() -> None:
    page = (ROOT_FOLDER / "docs" / "howto" / "pharia.md").read_text()
    section = page.partition("## Names\n")[2].partition("\n## ")[0]
    here, _, absent = section.partition("Not supported, with")
    assert set(re.findall(r"`(\w+)`", here)) == set(pharia.__all__)
    assert set(re.findall(r"`(\w+)`", absent)) == advice_by_name(REPLACEMENTS).keys()
    words = re.sub(r"\s+", " ", absent)
    assert all(instead in words for instead in advice_by_name(REPLACEMENTS).values())


def test_labels_that_give_way_to_others_are_named(world: Any, tmp_path: Path) -> None:
    evaluator, id, file = stars(world, tmp_path, int)
    first, second = tmp_path / "first.jsonl", tmp_path / "second.jsonl"
    first.write_text("".join(lines_of(file, 4, 5, None)))
    second.write_text("".join(lines_of(file, 4, 1, 3)))
    evaluator.import_labels(id, first)
    names = [json.loads(line)["example_id"] for line in file.read_text().splitlines()]
    with pytest.warns(
        EvaluandWarning, match=re.escape(f"second.jsonl: 1 examples had another label, which is replaced: {names[1:2]}")
    ):
        evaluator.import_labels(id, second)
    assert [json.loads(line)["label"] for line in file.read_text().splitlines()] == [4, 1, 3]
