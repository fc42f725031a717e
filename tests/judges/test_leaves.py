"""Grades of any shape: metrics read the numbers in them by their path."""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from typing import Any

import pytest

from evaluand import Aggregator, Dataset, Evaluation, Evaluator, Mean, Measure, MemoryStore, Quantile, Runner, compare
from evaluand.core.errors import DataError, SpecError

WORDS = ["a", "bb", "ccc", "dddd", "eeeee", "ffffff"]


@dataclass
class Grade:
    """What an evaluation may come to: any data."""

    length: int
    shares: dict[str, float]
    short: bool
    parts: list[float]


def grade(output: str) -> Grade:
    n = len(output)
    if n == 6:
        raise ValueError("too long")
    return Grade(n, {"half": n / 2, "inverse": 1 / n}, n < 3, [float(n), n + 0.5])


def evaluated(scorer: Any = grade, task: Any = str.upper, store: Any = None) -> Evaluation:
    data = Dataset.from_rows([{"input": word, "kind": "ab"[i % 2]} for i, word in enumerate(WORDS)], attributes="kind")
    return Evaluator().evaluate(Runner(store or MemoryStore()).run(task, data), {"graded": scorer})


def values(evaluation: Evaluation, *metrics: Any, by: Any = ()) -> list[Any]:
    measures = [Measure("graded", metric, by=by) for metric in metrics]
    return Aggregator().aggregate([evaluation], measures).table().to_pylist()


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        ("data.length", [1, 2, 3, 4, 5]),
        ("data.shares.inverse", [1, 1 / 2, 1 / 3, 1 / 4, 1 / 5]),
        ("data.short", [1, 1, 0, 0, 0]),
        ("data.parts[1]", [1.5, 2.5, 3.5, 4.5, 5.5]),
    ],
)
def test_each_number_of_a_grade_has_its_mean_beside_its_counts(column: str, expected: list[float]) -> None:
    (row,) = values(evaluated(), Mean(column=column))
    assert row["value"] == pytest.approx(statistics.fmean(expected))
    assert (row["n"], row["n_scored"], row["n_failed"]) == (6, 5, 1)
    assert f'column="{column}"' in row["signature"]


def test_numbers_of_a_grade_are_summarised_by_groups_and_by_other_metrics() -> None:
    rows = values(evaluated(), Mean(column="data.length"), Quantile(q=0.5, column="data.length"), by=("kind",))
    assert [row["value"] for row in rows] == [3, 3, 3, 3, 3, 2]


def test_runs_are_compared_by_a_number_of_their_grades() -> None:
    store = MemoryStore()
    longer = evaluated(task=lambda word: word + "x" if len(word) == 1 else word, store=store)
    [pair] = compare(evaluated(store=store), longer, metrics=Measure("graded", Mean(column="data.length"))).pairs
    assert pair["difference"] == pytest.approx(0.2)


def test_a_grade_that_lacks_the_number_is_refused_with_its_row() -> None:
    scorer = {"a": {"x": 1}}.get
    with pytest.raises(DataError, match="_index_ 1"):
        values(evaluated(lambda output: scorer("a") if output == "A" else {"y": 2}), Mean(column="data.x"))


def test_what_is_no_number_is_named_with_its_row() -> None:
    with pytest.raises(DataError, match=r"_index_ 0: data.x is a text, not a number"):
        values(evaluated(lambda output: {"x": "high"}), Mean(column="data.x"))


def test_a_column_that_is_neither_there_nor_a_leaf_is_refused() -> None:
    with pytest.raises(SpecError, match=r"mean reads 'dta\.x'"):
        values(evaluated(), Mean(column="dta.x"))
