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


def test_answers_may_be_in_another_column() -> None:
    rows = table([["1", "1", RIGHT]]).rename_columns(["_index_", "replication", "status", "value", "label"])
    [row] = summarise([rows], [MajorityVote(answer="label")], repeated=True)
    assert row.value == 0


def test_a_score_without_an_answer_is_refused() -> None:
    rows = table([[RIGHT, "x"]], prediction=pa.array([None, "x"], pa.string()))
    with pytest.raises(DataError, match="_index_ 0: is scored but has no prediction; name the column of the answers"):
        summarise([rows], [MajorityVote()], repeated=True)
