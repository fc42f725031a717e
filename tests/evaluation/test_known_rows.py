"""Scores of all scorers that are known as rows, against the same scores taken over one by one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st
from support.effort import FEW_EXAMPLES

from evaluand.data.dataset import Dataset
from evaluand.evaluation.evaluator import Evaluation, Evaluator
from evaluand.evaluation.score_tables import KnownRows
from evaluand.evaluation.scorers.imported import Imported
from evaluand.run.runner import Run, Runner
from evaluand.store.store import MemoryStore
from evaluand.store.tables import ABSTAINED, SCORED

pytestmark = pytest.mark.filterwarnings("ignore::evaluand.evaluation.evaluator.ScorerFailed")

NAMES = ("first", "second")
numbers = st.one_of(st.none(), st.floats(-5, 5))
scored = st.tuples(st.just(SCORED), st.none(), numbers, st.sampled_from([None, "a", "é"]), st.sampled_from([None, [1]]))
abstained = st.tuples(st.just(ABSTAINED), st.just("why"), st.none(), st.none(), st.none())
cells = st.tuples(st.one_of(scored, abstained), st.sampled_from([None, "explained"])).map(
    lambda each: (*each[0], each[1])
)
rows = st.dictionaries(st.sampled_from(NAMES), cells)


def run_of(n: int, replications: int, failing: set[int]) -> Run:
    def task(value: int) -> int:
        if value in failing:
            raise ValueError("no answer")
        return value

    data = Dataset.from_rows([{"input": value, "expected": value} for value in range(n)])
    return Runner(MemoryStore()).run(task, data, replications=replications)


def scorers() -> dict[str, Any]:
    return {name: Imported("tool", name, "0") for name in NAMES}


def one_by_one(run: Run, known: list[dict[str, Any]], name: str) -> Iterator[Any]:
    places = [(index, n) for index in run.dataset.indices for n in range(run.manifest["spec"]["replications"])]
    for place, row in zip(places, known, strict=True):
        if name in row:
            yield place, [[0, None, *row[name], None]]


@given(st.integers(1, 5), st.integers(1, 3), st.sets(st.integers(0, 4)), st.data())
@settings(max_examples=2 * FEW_EXAMPLES)
def test_rows_give_the_tables_and_digests_of_scores_taken_over_one_by_one(
    n: int, replications: int, failing: set[int], data: st.DataObject
) -> None:
    run = run_of(n, replications, failing)
    known = data.draw(st.lists(rows, min_size=n * replications, max_size=n * replications))
    at_once = Evaluator(MemoryStore()).evaluate(run, scorers(), judged=KnownRows(iter(known)))
    judged = {name: one_by_one(run, known, name) for name in NAMES}
    singly = Evaluator(MemoryStore()).evaluate(run, scorers(), judged=judged)
    check_same(at_once, singly)


def check_same(one: Evaluation, other: Evaluation) -> None:
    assert (one.digest, one.counts) == (other.digest, other.counts)
    for name in NAMES:
        assert one.table(name).equals(other.table(name))
    assert one.receipt is not None
    assert other.receipt is not None
    assert (one.receipt.reused, one.receipt.called) == (other.receipt.reused, other.receipt.called)


def test_known_rows_are_not_computed_again() -> None:
    run, store = run_of(3, 1, set()), MemoryStore()
    known = [dict.fromkeys(NAMES, (SCORED, None, 1.0, None, None, None))] * 3
    first = Evaluator(store).evaluate(run, scorers(), judged=KnownRows(iter(known)))
    again = Evaluator(store).evaluate(run, scorers(), judged=KnownRows(iter(known)))
    assert (again.id, again.digest) == (first.id, first.digest)
    assert again.receipt is not None
    assert (again.receipt.kept, again.receipt.called) == (6, 0)
