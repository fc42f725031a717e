"""Pages show what is stored now, with all digits, in words that fit the metric."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support.view_page import open_page

from evaluand import Accuracy, Aggregator, Dataset, DirectoryStore, Evaluator, Mean, Runner
from evaluand.aggregation.aggregator import Measure
from evaluand.run.task import FunctionTask

expect: Any = getattr(pytest.importorskip("playwright.sync_api", reason="needs playwright: make install"), "expect")  # noqa: B009

LARGE = 2**53 + 1
ROWS = 20
MEASURES = [Measure("right", Accuracy()), Measure("size", Mean(direction=None))]


def right(output: int, expected: int) -> bool:
    return output == expected


def size(output: int) -> float:
    return float(output % 100_000)


def evaluate(store: DirectoryStore, name: str, wrong: int) -> None:
    """A task of the experiment `x` that is wrong on its first rows."""
    data = Dataset.from_rows([{"input": i, "expected": i} for i in range(LARGE, LARGE + ROWS)])
    task = FunctionTask(lambda number: number + 4 * (number < LARGE + wrong), name=name, version=f"{wrong}")
    run = Runner(store).run(task, data, name=f"x/{name}")
    graded = Evaluator(store).evaluate(run, {"right": right, "size": size}, name=f"x/{name}")
    Aggregator(store).aggregate([graded], MEASURES, name="x")


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> DirectoryStore:
    return DirectoryStore(tmp_path_factory.mktemp("current") / "store")


@pytest.fixture(scope="module")
def tab(chromium: Any, store: DirectoryStore, tmp_path_factory: pytest.TempPathFactory) -> Any:
    evaluate(store, "one", 10)
    with open_page(chromium, Path(store.root), tmp_path_factory.mktemp("errors") / "errors") as tab:
        yield tab


def test_what_was_made_meanwhile_is_on_the_next_page(tab: Any, store: DirectoryStore) -> None:
    def open_experiment() -> Any:
        tab.get_by_role("link", name="evaluand", exact=True).click()
        tab.get_by_role("link", name="x", exact=True).click()
        return tab.locator(".answers")

    expect(open_experiment()).to_contain_text("accuracy · right 0.500")
    evaluate(store, "one", 0)
    expect(open_experiment()).to_contain_text("accuracy · right 1.000")


def test_integers_keep_their_digits_in_the_rows(tab: Any) -> None:
    tab.goto(f"{tab.origin}/e/x")
    expect(tab.get_by_role("row").nth(1)).to_contain_text(str(LARGE))


def test_a_link_to_a_section_shows_it(tab: Any) -> None:
    tab.goto("about:blank")
    tab.goto(f"{tab.origin}/e/x#rows")
    expect(tab.get_by_role("heading", name="Rows", exact=True)).to_be_in_viewport()


def test_neither_side_wins_by_a_metric_without_a_direction(tab: Any, store: DirectoryStore) -> None:
    evaluate(store, "plain", 0)
    evaluate(store, "two", 3)
    ids = {ref.name: ref.id for ref in store.refs() if ref.kind == "evaluations"}
    tab.goto(f"{tab.origin}/c?a={ids['x/plain']}&b={ids['x/two']}")
    table = tab.get_by_role("region", name="Differences")
    expect(table.get_by_role("row").filter(has_text="size")).to_contain_text("3 higher")
    expect(table.get_by_role("row").filter(has_text="right")).not_to_contain_text("higher")
    expect(tab.get_by_role("navigation", name="Page", exact=True).get_by_role("link", name="x")).to_be_visible()
