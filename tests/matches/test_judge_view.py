"""Examples that move: what a judge can see decides what is judged again, and nothing is reused that could differ."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar

import numpy as np
import pytest

from evaluand import Dataset, MemoryStore, Run, Runner
from evaluand.engine.engines.local import InlineEngine
from evaluand.evaluation import ComparisonScorer
from evaluand.evaluation.comparison_scorers import as_comparison_scorer
from evaluand.matches import Matcher, Matches
from evaluand.matches.judging import Entrants, JudgeView, Presenter
from evaluand.matches.schedule import Pairs

TEXTS = "abcd"


def verdict(key: Any) -> str:
    return ("first", "second", "tie")[sum(map(ord, str(key))) % 3]


def by_input(first: str, second: str, input: str) -> str:
    return verdict(input)


def by_index(first: str, second: str, index: int) -> str:
    return verdict(index)


def by_replication(first: str, second: str, index: int, replication: int) -> str:
    return verdict((index, replication))


def by_expected(first: str, second: str, example: Any) -> str:
    return verdict((example.input, example.expected, example.metadata.get("topic")))


def by_all(responses: list[str], example: Any) -> list[float]:
    return [len(verdict((example.input, each))) for each in responses]


@dataclass(frozen=True)
class ByExpected(ComparisonScorer):
    kind: ClassVar[str] = "by_expected"
    version = 1
    arguments = ("first", "second", "example")

    def compare(self, first: Any, second: Any, example: Any = None) -> str:
        return verdict(example.expected)


class ByInputAlone(ByExpected):
    sees_place = False


def rows_of(texts: str, **first: int) -> list[dict[str, Any]]:
    return [
        {"name": f"q-{text}", "input": f"{text}{text}", "expected": text, "topic": text}
        | {name: value + 10 * number for name, value in first.items()}
        for number, text in enumerate(texts)
    ]


NUMBERED, ROWS = rows_of(TEXTS, _index_=10), rows_of(TEXTS)
CHANGES: dict[str, tuple[list[dict[str, Any]], list[dict[str, Any]], dict[str, str]]] = {
    "inserted": (NUMBERED, [*rows_of("e", _index_=3), *NUMBERED], {}),
    "reordered": (ROWS, ROWS[::-1], {}),
    "reordered with ids": (ROWS, ROWS[::-1], {"id": "name"}),
}
"""The rows before and after a change, and the roles of their columns."""


def run_both(rows: list[dict[str, Any]], roles: dict[str, str]) -> list[Run]:
    data, runner = Dataset.from_rows(rows, metadata=["topic"], **roles), Runner(MemoryStore())  # type: ignore[arg-type]
    return [runner.run(task, data, name=task.__name__) for task in (str.upper, str.title)]


@cache
def run_change(change: str) -> tuple[list[Run], list[Run]]:
    before, after, roles = CHANGES[change]
    return run_both(before, roles), run_both(after, roles)


def outcomes(matches: Matches) -> list[dict[str, Any]]:
    return matches.table(["_index_", "a", "b", "order", "outcome", "status"]).to_pylist()


def count_judged(judge: Any, change: str) -> int:
    """How many judgements a change costs. The outcomes must be those of a judge who judges everything again."""
    matcher = Matcher(MemoryStore(), engine=InlineEngine())
    before, after = run_change(change)
    matcher.match(before, judge)
    matches = matcher.match(after, judge)
    assert matches.counts == {"scored": 2 * len(CHANGES[change][1])}
    assert outcomes(matches) == outcomes(matcher.match(after, judge, fresh=True))
    assert matches.receipt is not None
    return matches.receipt.called


@pytest.mark.parametrize(
    ("judge", "inserted", "reordered", "reordered_with_ids"),
    [
        (by_input, 2, 0, 0),
        (ByInputAlone(), 2, 0, 0),
        (by_index, 2, 8, 8),
        (by_expected, 10, 8, 8),
    ],
)
def test_only_what_the_judge_could_see_to_have_changed_is_judged_again(
    judge: Any, inserted: int, reordered: int, reordered_with_ids: int
) -> None:
    assert [count_judged(judge, change) for change in CHANGES] == [inserted, reordered, reordered_with_ids]


@pytest.mark.parametrize(
    ("judge", "view"),
    [
        (by_input, JudgeView()),
        (ByInputAlone(), JudgeView()),
        (by_index, JudgeView(index=True)),
        (by_replication, JudgeView(index=True, replication=True)),
        (by_expected, JudgeView(index=True, position=True)),
        (ByExpected(), JudgeView(index=True, position=True)),
        (by_all, JudgeView(index=True, position=True)),
    ],
)
def test_what_a_judge_can_see_of_where_an_example_is(judge: Any, view: JudgeView) -> None:
    assert JudgeView.of(as_comparison_scorer(judge)) == view


def test_keys_of_judges_that_see_differently_are_never_equal() -> None:
    runs = run_change("reordered")[0]
    entrants = Entrants.of(runs, ["x", "y"])
    pairs = Pairs(np.arange(4), np.zeros(4, np.int64), np.ones(4, np.int64))
    views = [JudgeView(*flags) for flags in itertools.product([False, True], repeat=3)]
    keys = [bytes(key) for view in views for key in Presenter(entrants, "both", 0, view).pairs(pairs).keys]
    assert len({*keys}) == len(keys) == 8 * 8
