"""Labels as codes: one vocabulary for all columns, sets of labels, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, strategies as st

from evaluand import SpecError
from evaluand.metrics.base.labels import encode_labels, in_order, one_vocabulary


def decoded(columns: list[pa.Array]) -> list[list[Any]]:
    codes, vocabulary = encode_labels(columns)
    return [[None if code < 0 else vocabulary[code] for code in column.tolist()] for column in codes]


@pytest.mark.parametrize(
    "column",
    [
        pa.array(["b", None, "a", "b"]),
        pa.array(["b", None, "a", "b"], pa.large_string()),
        pa.array(["b", None, "a", "b"]).dictionary_encode(),
        pa.chunked_array([["b", None], ["a", "b"]]),
        pa.array([3, None, -1, 3]),
        pa.array([3, None, 1, 3], pa.uint8()),
        pa.array([True, None, False, True]),
        pa.array([None, None], pa.null()),
    ],
    ids=lambda column: str(column.type),
)
def test_codes_stand_for_the_labels_and_minus_one_for_none(column: Any) -> None:
    assert decoded([column]) == [column.to_pylist()]


def test_columns_share_one_vocabulary_also_where_their_widths_differ() -> None:
    truth, prediction = pa.array([1, 2], pa.int8()), pa.array([2, 300])
    codes, vocabulary = encode_labels([truth, prediction])
    assert (vocabulary.tolist(), [column.tolist() for column in codes]) == ([1, 2, 300], [[0, 1], [1, 2]])
    assert decoded([pa.array(["a"]), pa.array(["b", "a"], pa.large_string())]) == [["a"], ["b", "a"]]
    assert decoded([pa.array(["a"]), pa.nulls(1)]) == [["a"], [None]]


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (
            [pa.array(["1"]), pa.array([1])],
            "labels are integers in one column and text in another; give all columns one type",
        ),
        ([pa.array([True]), pa.array([1])], "labels are bools in one column and integers in another"),
        ([pa.array([["a"]]), pa.array(["a"])], "labels are lists of text in one column and text in another"),
        ([pa.array([0.5])], "labels must be text, integers, bools or lists of these, not a double; convert the column"),
        ([pa.array([["a", None]])], "a list of labels contains null; remove it from the list"),
        ([pa.array([["a"], ["b", "c", "b"]])], "a list has the label 'b' twice; a set has each label once"),
    ],
)
def test_what_is_never_equal_or_no_label_is_refused(columns: list[pa.Array], message: str) -> None:
    with pytest.raises(SpecError, match=message):
        encode_labels(columns)


SETS = st.lists(st.one_of(st.none(), st.lists(st.sampled_from("abcd"), unique=True)), max_size=8)


@given(truth=SETS, prediction=SETS)
def test_lists_with_the_same_labels_are_one_set_in_any_order(truth: list[Any], prediction: list[Any]) -> None:
    kind = pa.list_(pa.string())
    found = decoded([pa.array(truth, kind), pa.array(prediction, kind)])
    assert found == [[None if one is None else tuple(sorted(one)) for one in side] for side in (truth, prediction)]


def test_a_slice_of_lists_is_coded_as_what_it_shows() -> None:
    column = pa.array([["x"], ["b", "a"], [], ["a"], ["y"]]).slice(1, 3)
    assert decoded([column]) == [[("a", "b"), (), ("a",)]]


def test_vocabularies_are_joined_and_missing_codes_stay_what_they_are() -> None:
    parts = [np.array(["b", "a"], object), np.array(["c", "b"], object)]
    labels, codes = one_vocabulary(parts)
    assert labels.tolist() == ["b", "a", "c"]
    assert [codes[1][code] for code in (0, 1, -1, -2)] == [2, 0, -1, -2]


@pytest.mark.parametrize(("labels", "ordered"), [(["b", "B", "a"], ["B", "a", "b"]), ([10, 9], [9, 10])])
def test_labels_are_shown_in_their_own_order(labels: list[Any], ordered: list[Any]) -> None:
    assert [labels[place] for place in in_order(np.array(labels, object))] == ordered
