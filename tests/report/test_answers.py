"""What results say first."""

from __future__ import annotations

from pathlib import Path

import pytest

from evaluand import Accuracy, Aggregator, App, Dataset, DirectoryStore, Evaluator, Feedback, Mean, Runner
from evaluand.aggregation.aggregator import Measure
from evaluand.aggregation.worst_groups import GroupSearch
from evaluand.comparison.comparing import compare
from evaluand.report.contents import read_contents
from evaluand.report.facts.answers import answers
from evaluand.run.task import FunctionTask

N = 200


def perfect(text: str) -> str:
    return text


def poor(text: str) -> str:
    if text == "1":
        raise TimeoutError("no reply")
    return text if int(text) % 2 else "?"


def same(output: str, expected: str) -> bool:
    return output == expected


def stored(folder: Path, *measures: Measure, is_compared: bool = True) -> DirectoryStore:
    store = DirectoryStore(folder)
    rows = [{"input": str(i), "expected": str(i), "half": "even" if i % 2 == 0 else "odd"} for i in range(N)]
    data = Dataset.from_rows(rows, attributes=["half"])
    tasks = {"perfect": perfect, "poor": poor}
    runs = {name: Runner(store).run(task, data, name=f"e/{name}") for name, task in tasks.items()}
    graded = [Evaluator(store).evaluate(run, {"same": same}, name=f"e/{name}") for name, run in runs.items()]
    Aggregator(store).aggregate(graded, [*measures], name="e")
    if is_compared:
        compare(*graded)
    return store


def said(store: DirectoryStore, name: str = "e") -> dict[str, tuple[list[str], str | None]]:
    contents = read_contents(store, [name], distributions=False)
    return {each.question: (each.sentences, each.hint) for each in answers(contents.facts, contents.measures)}


def test_the_best_system_comes_with_its_interval_and_the_most_frequent_failure_with_its_count(tmp_path: Path) -> None:
    found = said(stored(tmp_path, Measure("same", Accuracy())))
    [best], hint = found["Which is better, and how sure is it?"]
    assert best.startswith("e/perfect is best by accuracy · same")
    assert "p < 0.0001" in best
    assert hint is None
    [failed, wrong] = found["What fails most?"][0]
    assert failed == "e/poor: 1 failed by the task: TimeoutError: no reply"
    assert wrong == "e/poor: 100 of 199 wrong by accuracy · same"
    assert found["What did it cost?"][0] == ["No call says what it used"]


def test_answers_are_counted_as_wrong_by_every_accuracy_and_missing_ones_by_none(tmp_path: Path) -> None:
    measures = (
        Measure("same", Accuracy(missing="wrong")),
        Measure("same", Mean()),
        Measure("same", Accuracy(), by=("half",)),
    )
    found = said(stored(tmp_path, *measures))["What fails most?"][0]
    assert [each.partition(" wrong by ")[0] for each in found[1:]] == ["e/poor: 100 of 199", "e/poor: 100 of 199"]


def test_reasons_and_counts_that_are_not_shown_are_counted(tmp_path: Path) -> None:
    def fail(text: str) -> str:
        if int(text) < 10:
            raise RuntimeError("abcdefghij"[int(text)] * 5)
        return "?"

    store = DirectoryStore(tmp_path)
    data = Dataset.from_rows({"input": str(i), "expected": str(i)} for i in range(20))
    run = Runner(store).run(FunctionTask(fail, version="1"), data)
    graded = Evaluator(store).evaluate(run, {f"same{i}": same for i in range(8)}, name="e/one")
    Aggregator(store).aggregate([graded], [Measure(f"same{i}", Accuracy()) for i in range(8)], name="e")
    found = said(store)["What fails most?"][0]
    assert found[3] == "7 more for 7 other reasons"
    assert found[-1] == "2 more counts of wrong answers"
    assert len(found) == 3 + 1 + 6 + 1


def test_without_a_comparison_values_stand_alone_with_how_to_compare_them(tmp_path: Path) -> None:
    found = said(stored(tmp_path, Measure("same", Accuracy()), is_compared=False))
    sentences, hint = found["Which is better, and how sure is it?"]
    assert sentences[0].startswith("e/perfect: accuracy · same 1.000 (0.981 to 1.000), ")
    assert sentences[1].endswith("199 of 200 rows scored")
    assert hint is not None
    assert "evaluand compare" in hint


@pytest.mark.parametrize(
    ("measure", "first"),
    [
        (
            Measure("same", Accuracy(), by=("half",), disparities=("difference", "min")),
            "e/poor: accuracy difference",
        ),
        (
            Measure("same", Accuracy(), search=GroupSearch("half")),
            "e/poor: half=even is worse",
        ),
        (Measure("same", Accuracy(), by=("half",)), "No groups were compared; by their values alone:"),
        (Measure("same", Accuracy()), "No metric was computed by group"),
    ],
)
def test_groups_are_worse_where_that_was_tested_and_else_it_is_said_that_it_was_not(
    tmp_path: Path, measure: Measure, first: str
) -> None:
    sentences, hint = said(stored(tmp_path, measure))["Which groups are worse?"]
    assert sentences[0].startswith(first)
    assert (hint is None) == first.startswith("e/poor")


def test_one_system_is_as_good_as_its_values(tmp_path: Path) -> None:
    store = stored(tmp_path, Measure("same", Accuracy()))
    found = said(store, "e/perfect")
    assert found["How good is it, and how sure is it?"][0][0].startswith(
        "e/perfect: accuracy · same 1.000 (0.981 to 1.000), "
    )
    assert found["What fails most?"][0] == ["No call failed, and every row was scored"]


def test_recorded_apps_are_as_good_as_the_means_of_their_feedbacks(tmp_path: Path) -> None:
    def brief(text: str) -> bool:
        return len(text) < 6

    store = DirectoryStore(tmp_path)
    feedback = Feedback(brief, version="1").on_output()
    for version, end in (("1", "!"), ("2", " indeed!")):
        app = App(lambda text, end=end: text + end, name="echo", version=version, feedbacks=[feedback], store=store)
        with app as recording:
            for word in ("yes", "no", "never"):
                app.app(word)
        recording.close()
    sentences, _ = said(store, "echo")["Which is better, and how sure is it?"]
    assert [sentence.partition(" (")[0] for sentence in sentences] == [
        "echo 1: mean brief 0.667",
        "echo 2: mean brief 0.000",
    ]
    assert all(sentence.endswith("3 of 3 records scored") for sentence in sentences)
