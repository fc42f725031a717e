"""How metrics change from one evaluation of an experiment to the next, and what may be compared."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.accessible import check_readable
from support.view_page import open_page
from support.view_server import HOSTILE

from evaluand import Accuracy, Aggregator, Dataset, DirectoryStore, Evaluator, FBeta, Runner
from evaluand.aggregation.aggregator import Measure
from evaluand.core.labels import join_name
from evaluand.evaluation.scorers.prediction import Prediction
from evaluand.report.page.resources.base import Source, find_resources, list_paths, read_resource
from evaluand.run.task import FunctionTask

TASK = "mine"
OTHER_EXAMPLES, OTHER_ROWS = "other examples", "another number of rows"


def strict(output: str, expected: str) -> bool:
    return output == expected


def loose(output: str, expected: str) -> bool:
    return output.lower() == expected.lower()


def make_data(rows: int, name: str = "data") -> Dataset:
    return Dataset.from_rows([{"input": f"{name} {i}", "expected": f"{name.upper()} {i}"} for i in range(rows)])


def evaluate(
    store: DirectoryStore,
    version: str,
    data: Dataset,
    scorer: Callable[..., bool] = strict,
    limit: int | None = None,
    name: str = HOSTILE,
) -> str:
    """Evaluates a task of an experiment, as `evaluand run` does."""
    task = FunctionTask(str.upper if version != "1" else str.lower, name=TASK, version=version)
    run = Runner(store).run(task, data, name=join_name(name, TASK), limit=limit)
    graded = Evaluator(store).evaluate(run, {"right": scorer}, name=join_name(name, TASK))
    Aggregator(store).aggregate([graded], [Measure("right", Accuracy())], name=name)
    return graded.id


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> DirectoryStore:
    """Five evaluations of a task, of which the first two and the last differ in what they measure; and one alone."""
    store = DirectoryStore(tmp_path_factory.mktemp("store") / "store")
    evaluate(store, "1", make_data(4, "old"))
    evaluate(store, "1", make_data(8), loose)
    evaluate(store, "1", make_data(8), limit=6)
    evaluate(store, "1", make_data(8))
    evaluate(store, "2", make_data(8))
    evaluate(store, "1", make_data(3), name="alone")
    return store


def read(store: DirectoryStore, name: str) -> Any:
    find_resources()
    return json.loads(read_resource(Source(store), f"history/{name.replace('/', '%2F')}", {}))


def test_values_come_with_what_they_were_measured_on(store: DirectoryStore) -> None:
    [task] = read(store, HOSTILE)
    assert task["task"] == TASK
    assert [each["current"] for each in task["evaluations"]] == [False] * 4 + [True]
    assert [each["changed"] for each in task["evaluations"]] == [False] * 4 + [True]
    [metric] = task["metrics"]
    assert [row["value"] for row in metric["values"]] == [0.0, 1.0, 0.0, 0.0, 1.0]
    assert [row["differs"] for row in metric["values"]] == [
        [OTHER_EXAMPLES],
        ["another scorer"],
        [OTHER_ROWS],
        [],
        [],
    ]


def test_lines_join_only_what_can_be_compared(store: DirectoryStore) -> None:
    [[metric]] = [task["metrics"] for task in read(store, HOSTILE)]
    lines = [part.partition('"')[0] for part in metric["chart"].split('points="')[1:]]
    assert sorted(len(line.split()) // 2 for line in lines) == [1, 1, 1, 2]


def test_an_evaluation_that_is_taken_up_again_is_the_current_one(tmp_path: Path) -> None:
    store = DirectoryStore(tmp_path / "store")
    first = evaluate(store, "1", make_data(4))
    evaluate(store, "1", make_data(5))
    assert evaluate(store, "1", make_data(4)) == first
    [task] = read(store, HOSTILE)
    assert [each["current"] for each in task["evaluations"]] == [True, False]
    assert [row["differs"] for row in task["metrics"][0]["values"]] == [[], [OTHER_EXAMPLES]]


def measure(store: DirectoryStore, version: str, *measures: Measure) -> None:
    """Evaluates classes that a task says, by metrics that may be others each time."""
    data = Dataset.from_rows([{"input": f"{i}", "expected": i % 2} for i in range(8)])
    task = FunctionTask(lambda input: int(int(input) > int(version)), name=TASK, version=version)
    run = Runner(store).run(task, data, name=join_name("classes", TASK))
    graded = Evaluator(store).evaluate(run, {"p": Prediction(type="integer")}, name=join_name("classes", TASK))
    Aggregator(store).aggregate([graded], measures, name="classes")


def test_a_metric_is_the_same_whatever_is_measured_beside_it(tmp_path: Path) -> None:
    store, one, none = DirectoryStore(tmp_path), Measure("p", FBeta(label=1)), Measure("p", FBeta(label=0))
    for version in ("1", "2"):
        measure(store, version, one)
    measure(store, "3", one, none)
    [[metric]] = [task["metrics"] for task in read(store, "classes")]
    assert (metric["label"], metric["current"]) == ("f1(label=1) · p", True)
    assert [(row["number"], row["differs"]) for row in metric["values"]] == [(1, []), (2, []), (3, [])]


def test_other_settings_of_a_metric_are_not_another_metric(tmp_path: Path) -> None:
    store = DirectoryStore(tmp_path)
    measure(store, "1", Measure("p", Accuracy(confidence=0.9)))
    measure(store, "2", Measure("p", Accuracy()))
    [[metric]] = [task["metrics"] for task in read(store, "classes")]
    assert [row["differs"] for row in metric["values"]] == [["other settings of the metric"], []]


@pytest.mark.slow
def test_a_metric_that_the_current_evaluation_lacks_is_not_compared_with_it(chromium: Any, tmp_path: Path) -> None:
    store = DirectoryStore(tmp_path / "store")
    for version in ("1", "2"):
        measure(store, version, Measure("p", FBeta(label=1)))
    measure(store, "3", Measure("p", Accuracy()))
    [[metric]] = [task["metrics"] for task in read(store, "classes")]
    assert ([row["number"] for row in metric["values"]], metric["current"]) == ([1, 2], False)
    with open_page(chromium, Path(store.root), tmp_path / "errors") as tab:
        tab.goto(f"{tab.origin}/e/classes")
        section = tab.get_by_role("region", name="Earlier evaluations")
        section.get_by_text("The current evaluation has no value of it").wait_for()
        assert "as now" not in section.inner_text()


@pytest.mark.slow
def test_without_a_metric_in_common_there_is_no_history(chromium: Any, tmp_path: Path) -> None:
    store = DirectoryStore(tmp_path / "store")
    measure(store, "1", Measure("p", FBeta(label=1)))
    measure(store, "2", Measure("p", Accuracy()))
    assert read(store, "classes") == []
    with open_page(chromium, Path(store.root), tmp_path / "errors") as tab:
        with tab.expect_response("**/api/history/**") as answered:
            tab.goto(f"{tab.origin}/e/classes")
        answered.value.finished()
        tab.get_by_role("heading", name="Provenance").wait_for()
        assert tab.get_by_role("region", name="Earlier evaluations").count() == 0


def test_values_over_another_view_of_the_examples_are_not_comparable(tmp_path: Path) -> None:
    store, data = DirectoryStore(tmp_path), make_data(4)
    viewed = data.view([{"kind": "TransformJSON", "configuration": {"text": "$.input"}}])
    task = FunctionTask(lambda input: str(input).upper(), name=TASK, version="1")
    for rows in (data, viewed):
        run = Runner(store).run(task, rows, name=join_name(HOSTILE, TASK))
        graded = Evaluator(store).evaluate(run, {"right": strict}, name=join_name(HOSTILE, TASK))
        Aggregator(store).aggregate([graded], [Measure("right", Accuracy())], name=HOSTILE)
    [[metric]] = [task["metrics"] for task in read(store, HOSTILE)]
    assert [row["differs"] for row in metric["values"]] == [["another view of the examples"], []]
    assert metric["chart"].count("points=") == 2


def test_one_evaluation_has_no_history(store: DirectoryStore) -> None:
    assert read(store, "alone") == []
    paths = [path for path in list_paths(Source(store)) if path.startswith("history/")]
    assert len(paths) == 1


@pytest.mark.slow
def test_history_is_shown_where_there_is_any(chromium: Any, store: DirectoryStore, tmp_path: Path) -> None:
    with open_page(chromium, Path(store.root), tmp_path / "errors") as tab:
        tab.goto(f"{tab.origin}/?k=experiments")
        tab.get_by_role("link", name=HOSTILE).click()
        section = tab.get_by_role("region", name="Earlier evaluations")
        section.get_by_text("(current)").wait_for()
        rows = section.locator("tbody tr")
        assert rows.count() == 5
        assert "not comparable: other examples" in rows.first.inner_text()
        assert section.locator("svg.plane").count() == 1
        check_readable(tab, tab.url)
        rows.first.get_by_role("link").click()
        tab.get_by_role("heading", name="Distributions").wait_for()
        tab.goto(f"{tab.origin}/e/alone")
        tab.get_by_role("heading", name="Provenance").wait_for()
        assert tab.get_by_role("region", name="Earlier evaluations").count() == 0
        assert tab.locator("main script, main img").count() == 0
