"""Majority votes over replications, against counting in plain Python."""

from __future__ import annotations

from collections import Counter
from itertools import product

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, strategies as st

from evaluand import MajorityVote
from evaluand.aggregation.groups import MetricRow, summarise
from evaluand.core.errors import DataError

RIGHT = "r"
ANSWERS = st.sampled_from([RIGHT, "x", "y"])


def table(rows: list[list[str | None]], **columns: object) -> pa.Table:
    """The scores of the answers of each example; None is a failed try."""
    cells = [(index, number, answer) for index, row in enumerate(rows) for number, answer in enumerate(row)]
    index, replication, answers = (list(each) for each in zip(*cells, strict=True))
    return pa.table(
        {
            "_index_": index,
            "replication": pa.array(replication, pa.int32()),
            "status": ["failed" if answer is None else "scored" for answer in answers],
            "value": pa.array([None if answer is None else float(answer == RIGHT) for answer in answers], pa.float64()),
            "prediction": pa.array(answers, pa.string()),
            **columns,
        }
    )


def vote(rows: list[list[str | None]], **parameters: object) -> MetricRow:
    [row] = summarise([table(rows)], [MajorityVote(**parameters)], repeated=True)  # type: ignore[arg-type]
    return row


def is_right(answers: list[str]) -> bool:
    """Whether the most frequent answer is right; `Counter` lists equally frequent ones in the order they came."""
    return Counter(answers).most_common(1)[0][0] == RIGHT


def test_the_most_frequent_answer_counts() -> None:
    row = vote([["x", RIGHT, RIGHT], ["x", RIGHT, "x"], ["x", RIGHT, "y"], [RIGHT, "x", "y"]])
    assert (row.value, row.n, row.data) == (0.5, 4, {"correct": 2, "n": 4})


def test_of_equally_frequent_answers_the_first_given_counts_wherever_its_row_is() -> None:
    answers = [["x", RIGHT], [RIGHT, "x"]]
    rows = table(answers)  # type: ignore[arg-type]
    mixed = rows.take([3, 1, 2, 0])
    for each in (rows, mixed):
        [row] = summarise([each], [MajorityVote()], repeated=True)
        assert row.value == 0.5


@given(st.lists(st.lists(ANSWERS, min_size=1, max_size=7), min_size=1, max_size=5))
def test_a_vote_is_what_counting_gives(rows: list[list[str]]) -> None:
    assert vote(list(map(list, rows))).value == pytest.approx(np.mean([is_right(row) for row in rows]))


@given(st.lists(st.lists(ANSWERS | st.none(), min_size=1, max_size=5), min_size=1, max_size=3))
def test_bounds_are_those_of_all_answers_that_missing_ones_could_have_been(rows: list[list[str | None]]) -> None:
    def ends(row: list[str | None]) -> tuple[bool, bool]:
        choices = [[answer] if answer is not None else [RIGHT, "x", "y", "new"] for answer in row]
        outcomes = [is_right(list(answers)) for answers in product(*choices)]
        return min(outcomes), max(outcomes)

    found = vote(rows)
    low, high = (np.mean(end) for end in zip(*map(ends, rows), strict=True))
    assert (found.worst, found.best) == (pytest.approx(low), pytest.approx(high))
    assert vote(rows, missing="wrong").value == pytest.approx(low)
    voted = [[answer for answer in row if answer is not None] for row in rows]
    if any(voted):
        assert found.value == pytest.approx(np.mean([is_right(row) for row in voted if row]))


def graded(answers: list[str], grades: list[int], missing: int = 0) -> MetricRow:
    """The vote of one example whose answers have grades of their own, and of which some at the end failed."""
    values = pa.array([*map(float, grades), *[None] * missing], pa.float64())
    rows = table([[*answers, *[None] * missing]]).set_column(3, "value", values)
    [row] = summarise([rows], [MajorityVote()], repeated=True)
    return row


def test_equal_answers_are_one_candidate_however_they_were_graded() -> None:
    row = graded([*"44555"], [0, 0, 1, 0, 1])
    assert (row.value, row.data) == (pytest.approx(2 / 3), {"correct": pytest.approx(2 / 3), "n": 1})
    assert graded([*"44455"], [0, 0, 0, 1, 1]).value == 0
    assert graded([*"5445"], [1, 0, 0, 0]).value == 0.5  # the first given of two


def test_bounds_of_differently_graded_answers_are_those_of_any_that_could_win() -> None:
    row = graded([*"4455"], [0, 1, 1, 1], missing=1)
    assert (row.value, row.worst, row.best) == (0.5, 0.5, 1)
    row = graded([*"445"], [0, 1, 1], missing=1)
    assert (row.value, row.worst, row.best) == (0.5, 0.5, 0.5)
    row = graded([*"445"], [0, 1, 1], missing=3)
    assert (row.value, row.worst, row.best) == (0.5, 0, 1)


def test_answers_may_be_in_another_column() -> None:
    rows = table([["1", "1", RIGHT]]).rename_columns(["_index_", "replication", "status", "value", "label"])
    [row] = summarise([rows], [MajorityVote(answer="label")], repeated=True)
    assert row.value == 0


def test_a_score_without_an_answer_is_refused() -> None:
    rows = table([[RIGHT, "x"]], prediction=pa.array([None, "x"], pa.string()))
    with pytest.raises(DataError, match="_index_ 0: is scored but has no prediction; name the column of the answers"):
        summarise([rows], [MajorityVote()], repeated=True)
