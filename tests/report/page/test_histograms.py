"""How the numbers of a run are distributed: what is counted, and bars that filter the rows."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.accessible import check_readable
from support.view_page import open_page
from support.view_server import HOSTILE

from evaluand import Dataset, DirectoryStore, Evaluator, Runner
from evaluand.evaluation.evaluator import Evaluation
from evaluand.models.usage import report_usage
from evaluand.report.facts.report import Part, scores_facts
from evaluand.report.histograms import BINS
from evaluand.report.page.resources.base import Source, find_resources, read_resource
from evaluand.report.page.resources.histograms import draw_histogram
from evaluand.run.runner import Run
from evaluand.run.task import Candidates, FunctionTask

ROWS = 40


def answer(i: int) -> int:
    if i % 2:
        report_usage(input_tokens=i, output_tokens=1, cost=0.01 * i, currency="EUR")
    return i


def share(output: int) -> float:
    return output / ROWS


def offer(i: int) -> Candidates:
    return Candidates([i, i + 10])


def size(output: int) -> float:
    return float(output)


def word(output: int) -> str:
    return "even" if output % 2 == 0 else "odd"


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> DirectoryStore:
    """A run that reports its usage for every second row, graded; and one that reports none."""
    store = DirectoryStore(tmp_path_factory.mktemp("store") / "store")
    data = Dataset.from_rows([{"input": i} for i in range(ROWS)])
    run = Runner(store).run(FunctionTask(answer, name="counts", version="1"), data, name="counts")
    Evaluator(store).evaluate(run, {HOSTILE: share, "word": word}, name="counts")
    Runner(store).run(FunctionTask(str, name="plain", version="1"), data, name="plain")
    few, several = Dataset.from_rows([{"input": i} for i in range(4)]), FunctionTask(offer, name="several", version="1")
    for name in ("several", "both/one", "both/two"):
        run = Runner(store).run(several, few, name=name)
        Evaluator(store).evaluate(run, {"size": size}, name=name)
    return store


def find(store: DirectoryStore, kind: str, name: str) -> str:
    return next(ref.id for ref in store.refs() if (ref.kind, ref.name) == (kind, name))


def read(store: DirectoryStore, run: str, evaluation: str) -> Any:
    find_resources()
    return json.loads(read_resource(Source(store), f"histograms/{run}/{evaluation}", {}))


def test_scores_durations_tokens_and_costs_are_counted_where_they_are_known(store: DirectoryStore) -> None:
    found = read(store, find(store, "runs", "counts"), find(store, "evaluations", "counts"))
    by_title = {each["title"]: each for each in found["quantities"]}
    assert list(by_title) == [HOSTILE, "duration", "tokens", "cost"]
    assert found["absent"] == ["word"]
    assert {title: each["n"] for title, each in by_title.items()} == {
        HOSTILE: ROWS,
        "duration": ROWS,
        "tokens": ROWS // 2,
        "cost": ROWS // 2,
    }
    assert by_title["tokens"]["ends"] == [2, ROWS]
    assert (by_title["cost"]["unit"], by_title["cost"]["name"]) == ("EUR", None)
    assert by_title[HOSTILE]["name"] == ["score", HOSTILE]
    assert sum(by_title[HOSTILE]["drawn"]["counts"]) == ROWS
    assert "<script" not in by_title[HOSTILE]["drawn"]["chart"]


def test_of_several_scores_of_a_row_the_lowest_is_counted_and_the_page_says_so(store: DirectoryStore) -> None:
    found = read(store, find(store, "runs", "several"), find(store, "evaluations", "several"))
    by_title = {each["title"]: each for each in found["quantities"]}
    assert {title: each["lowest"] for title, each in by_title.items()} == {"size": True, "duration": False}
    assert (by_title["size"]["n"], by_title["size"]["ends"]) == (4, [0, 3])


def test_a_page_and_a_report_count_between_the_same_edges(store: DirectoryStore) -> None:
    run, evaluation = find(store, "runs", "counts"), find(store, "evaluations", "counts")
    page = next(each for each in read(store, run, evaluation)["quantities"] if each["title"] == HOSTILE)
    report, _ = scores_facts([Part("counts", Run(store, run), Evaluation(store, evaluation))])
    assert page["lowest"] is False
    assert {name: page["drawn"][name] for name in ("edges", "counts")} == {
        name: report[name] for name in ("edges", "counts")
    }


def test_a_page_of_one_task_shows_the_distribution_of_a_scorer_once(store: DirectoryStore) -> None:
    def count(name: str) -> int:
        sections = json.loads(read_resource(Source(store), f"sections/{name}", {}))
        return sum(section["html"].count('<svg class="histogram"') for section in sections)

    find_resources()
    assert count(find(store, "evaluations", "several")) == 0
    assert count("both") == 2


def test_a_run_that_reports_no_usage_says_so(store: DirectoryStore) -> None:
    found = read(store, find(store, "runs", "plain"), "-")
    assert [each["title"] for each in found["quantities"]] == ["duration"]
    assert found["absent"] == ["tokens", "cost"]


@pytest.mark.parametrize(
    "values",
    [[0, 1, 1], [1, 2, 3, 4, 5], [1e-9, 3e-9, 5e-9], [1e17, 1e17 + 64], [-1e-7, 1e5], [*range(100)], [0.1, 0.2, 0.3]],
)
def test_bars_count_what_a_filter_by_their_edges_finds(values: list[float]) -> None:
    numbers = np.array(values, np.float64)
    drawn = draw_histogram(numbers)
    assert drawn is not None
    edges, counts = drawn["edges"], drawn["counts"]
    last = len(counts) - 1
    assert len(counts) == len(edges) - 1 == min(BINS, len(set(values)))
    assert edges == sorted(set(edges))
    for i, count in enumerate(counts):
        low, high = numbers >= edges[i], numbers < edges[i + 1]
        assert count == ((low if i > 0 else True) & (high if i < last else True)).sum()


@pytest.mark.parametrize("values", [[], [3.0], [3.0, 3.0], [-1.7e308, 1.7e308]])
def test_what_has_no_width_is_not_drawn(values: list[float]) -> None:
    assert draw_histogram(np.array(values, np.float64)) is None


@pytest.fixture(scope="module")
def tab(chromium: Any, store: DirectoryStore, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with open_page(chromium, Path(store.root), tmp_path_factory.mktemp("log") / "errors") as tab:
        yield tab


@pytest.mark.slow
def test_a_bar_filters_the_rows_and_the_address_says_how(tab: Any, store: DirectoryStore) -> None:
    tab.goto(f"{tab.origin}/v/{find(store, 'evaluations', 'counts')}")
    bars = tab.get_by_role("group", name=f"Rows by {HOSTILE}").get_by_role("button")
    bars.nth(1).click()
    count = tab.locator(".row-count")
    count.get_by_text(f"2 of {ROWS} rows").wait_for()
    assert bars.nth(1).get_attribute("aria-pressed") == "true"
    filter = tab.get_by_label("Filter", exact=True).input_value()
    assert filter == f"score.{json.dumps(HOSTILE)} >= 0.0488 and score.{json.dumps(HOSTILE)} < 0.0975"
    tab.reload()
    count.get_by_text(f"2 of {ROWS} rows").wait_for()
    bars.nth(1).focus()
    tab.keyboard.press("Enter")
    count.get_by_text(f"{ROWS} of {ROWS} rows").wait_for()
    tab.get_by_role("group", name="Rows by duration").get_by_role("button").first.click()
    tab.get_by_text("duration < ").first.wait_for()
    assert tab.locator(".histograms figure").count() == 4
    tab.get_by_text("No row has a number for word.").wait_for()


def test_a_run_without_usage_has_no_empty_box(tab: Any, store: DirectoryStore) -> None:
    tab.goto(f"{tab.origin}/r/{find(store, 'runs', 'plain')}")
    tab.get_by_text("No row has a number for tokens, cost.").wait_for()
    assert tab.locator(".histograms figure").count() == 1


@pytest.mark.slow
def test_readers_of_all_kinds_can_use_distributions(tab: Any, store: DirectoryStore) -> None:
    check_readable(tab, f"{tab.origin}/v/{find(store, 'evaluations', 'counts')}")
