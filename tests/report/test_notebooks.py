"""What a notebook shows of artifacts: the tables of a report, as text that cannot become markup."""

from __future__ import annotations

import re
from typing import Any

import pytest
from support.html_page import Page

from evaluand import Accuracy, Aggregator, Dataset, Evaluator, MemoryStore, Runner, compare
from evaluand.aggregation.aggregator import Measure
from evaluand.report.html.notebook import evaluation_html
from evaluand.run.runner import Run

HOSTILE = "<img src=x onerror=alert(1)>"


def answer(text: str) -> str:
    if text == "7":
        raise ValueError(HOSTILE)
    return text if int(text) % 3 else HOSTILE


def same(output: str, expected: str) -> bool:
    return output == expected


@pytest.fixture
def run() -> Run:
    rows = [{"input": f"{i}", "expected": f"{i}", "site": "ab"[i % 2]} for i in range(12)]
    return Runner(MemoryStore()).run(answer, Dataset.from_rows(rows, attributes=["site"]), name=f"demo/{HOSTILE}")


def shown(artifact: Any) -> Page:
    page = artifact._repr_html_()
    assert "<img" not in page
    return Page(page)


def test_a_run_shows_its_rows_by_status_and_what_is_missing(run: Run) -> None:
    page = shown(run)
    assert next(line for line in page.lines if "calls" in line)[1:] == ["calls", "11", "0", "1", "0", "0"]
    assert "1 of 12 calls failed" in "".join(page.texts)


def test_an_evaluation_shows_its_metrics_once_they_are_computed(run: Run) -> None:
    evaluation = Evaluator().evaluate(run, {"right": same}, name="demo/upper")
    assert "no metric has been computed" in "".join(shown(evaluation).texts)
    aggregation = Aggregator().aggregate([evaluation], [Measure("right", Accuracy(), by="site")], labels=["upper"])
    [line] = [line for line in shown(evaluation).lines if line[0] == "upper"]
    assert line[1] == "0.636"
    values = shown(aggregation).lines
    assert [line[2] for line in values[1:]] == ["", "site=a", "site=b"]


def test_an_evaluation_whose_run_is_lost_says_so(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    evaluation = Evaluator().evaluate(run, {"right": same})
    monkeypatch.setattr(type(evaluation), "run", None)
    assert "its run is not in this store" in evaluation_html(evaluation)


def test_a_comparison_shows_each_difference_with_its_verdict(run: Run) -> None:
    other = Runner(run.store).run(str.strip, run.dataset)
    graded = [Evaluator().evaluate(each, {"right": same}) for each in (run, other)]
    comparison = compare(*graded, metrics="accuracy", labels=[HOSTILE, "strip"])
    page = shown(comparison)
    assert [line[:4] for line in page.lines if line[0] == HOSTILE] == [[HOSTILE, "strip", "accuracy · right", "0.364"]]
    html = comparison._repr_html_()
    assert "#example" not in html
    assert re.findall("<dt>(.*?)</dt>", html) == ["Holm"]
