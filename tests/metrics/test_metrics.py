"""The kinds of metric: values by hand and against scipy, undefined groups, and merging."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, strategies as st

from evaluand.core.errors import DataError, SpecError
from evaluand.metrics.accuracy import Accuracy
from evaluand.metrics.base.metric import Metric, Values, numbers
from evaluand.metrics.column_statistics import Count, Mean


def values_of(metric: Metric, n_groups: int = 1, group: list[int] | None = None, **columns: list[Any]) -> Values:
    """A metric's values over columns, by the path every row takes."""
    n_rows = len(next(iter(columns.values())))
    arrays = {name: np.array(cells, object if name == "label" else None) for name, cells in columns.items()}
    prepared = metric.prepare({"_index_": np.arange(n_rows), **arrays})
    return metric.compute(metric.state(prepared, np.array(group or [0] * n_rows, np.int64), n_groups))


# Count


def test_count_counts_rows() -> None:
    assert values_of(Count(), value=[0.0, 1.0, 0.5]).value.tolist() == [3.0]


def test_count_of_a_value_counts_only_rows_equal_to_it() -> None:
    assert values_of(Count(value=1), value=[0.0, 1.0, 1.0, 0.5]).value.tolist() == [2.0]


def test_count_of_a_label_takes_rows_without_one_as_different() -> None:
    assert values_of(Count(label="toxic"), label=["toxic", None, "fine"]).value.tolist() == [1.0]


def test_count_of_a_label_takes_a_column_without_any_label() -> None:
    assert values_of(Count(label="toxic"), value=[1.0], label=[None]).value.tolist() == [0.0]


def test_count_of_a_value_and_a_label_needs_both() -> None:
    metric = Count(value=1, label="a")
    assert values_of(metric, value=[1.0, 1.0, 0.0], label=["a", "b", "a"]).value.tolist() == [1.0]


def test_count_of_an_empty_group_is_zero_not_undefined() -> None:
    values = values_of(Count(), n_groups=2, group=[1], value=[1.0])
    assert (values.value.tolist(), values.reason) == ([0.0, 1.0], [None, None])


def test_count_reads_only_what_it_compares() -> None:
    assert Count().columns_for([]) == ()
    assert Count(label="a").columns_for(["value", "label"]) == ("label",)
    with pytest.raises(SpecError, match="count reads 'label'"):
        Count(label="a").columns_for(["value"])


def test_count_has_no_direction_of_its_own() -> None:
    assert Count().direction is None
    assert Count().range == (0.0, math.inf)


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_count_of_a_value_no_row_can_have_is_refused(value: float) -> None:
    with pytest.raises(SpecError, match="never equals a score"):
        Count(value=value)


# Mean


@pytest.mark.parametrize("confidence", [0.8, 0.95, 0.99])
def test_mean_and_its_interval_agree_with_scipy(confidence: float) -> None:
    scores = [0.3, 2.5, -1.0, 4.25, 0.0, 9.5]
    values = values_of(Mean(confidence=confidence), value=scores)
    reference = scipy.stats.ttest_1samp(scores, 0).confidence_interval(confidence)
    assert values.value[0] == pytest.approx(np.mean(scores), rel=1e-15)
    assert (values.low[0], values.high[0]) == pytest.approx((reference.low, reference.high), rel=1e-12)
    assert values.data[0] == {"n": 6, "standard_deviation": pytest.approx(np.std(scores, ddof=1), rel=1e-14)}


def test_mean_of_no_rows_is_undefined_with_a_reason() -> None:
    values = values_of(Mean(), n_groups=2, group=[1, 1], value=[1.0, 2.0])
    assert np.isnan([values.value[0], values.low[0], values.high[0]]).all()
    assert values.reason == ["no scored rows", None]
    assert values.data[0] == {"n": 0, "standard_deviation": None}


def test_mean_of_one_row_has_a_value_and_no_interval() -> None:
    values = values_of(Mean(), value=[0.25])
    assert values.value[0] == 0.25
    assert np.isnan([values.low[0], values.high[0]]).all()
    assert values.reason == ["one scored row has no interval"]


def test_mean_of_equal_values_is_that_value_exactly() -> None:
    values = values_of(Mean(), value=[0.1] * 7)
    assert values.value[0] == 0.1
    assert np.isnan([values.low[0], values.high[0]]).all()
    assert values.reason == ["no interval: all values are equal"]


def test_mean_keeps_the_digits_of_values_with_a_large_offset() -> None:
    values = values_of(Mean(), value=[1e9 + 1, 1e9 + 2, 1e9 + 3])
    assert values.data[0]["standard_deviation"] == pytest.approx(1.0, rel=1e-15)


def test_mean_reads_the_column_it_names() -> None:
    metric = Mean(column="confidence")
    assert metric.columns_for(["value", "confidence"]) == ("confidence",)
    assert values_of(metric, confidence=[1.0, 2.0]).value.tolist() == [1.5]


def test_mean_cuts_the_interval_to_the_range() -> None:
    values = values_of(Mean(range=(0, math.inf)), value=[0.0, 1.0, 1.0])
    assert values.low[0] == 0.0
    within = values_of(Mean(range=(0, 1)), value=[0.0, 1.0, 1.0])
    assert 0 < within.low[0] < within.high[0] < 1


def test_mean_refuses_values_outside_its_range_by_name() -> None:
    with pytest.raises(DataError, match=r"_index_ 1: value 1\.5 lies outside the range 0\.0 to 1\.0"):
        values_of(Mean(range=(0, 1)), value=[1.0, 1.5])


@pytest.mark.parametrize(("score", "message"), [(math.nan, "has no value"), (math.inf, "needs finite numbers")])
def test_mean_refuses_what_is_no_finite_number(score: float, message: str) -> None:
    with pytest.raises(DataError, match=f"_index_ 1: .*{message}"):
        values_of(Mean(), value=[1.0, score])


@pytest.mark.parametrize("ends", [(1, 0), (1, 1), (0, math.nan)])
def test_mean_refuses_a_range_that_holds_nothing(ends: tuple[float, float]) -> None:
    with pytest.raises(SpecError, match=r"must be \(lowest, highest\)"):
        Mean(range=ends)


def test_mean_of_values_too_far_apart_says_so() -> None:
    values = values_of(Mean(), value=[1e200, -1e200])
    assert values.value[0] == 0
    assert values.reason == ["the values lie too far apart for an interval"]


def test_mean_of_values_too_large_is_undefined_with_a_reason() -> None:
    values = values_of(Mean(), value=[1.7e308, 1.7e308, -1.7e308])
    assert np.isnan(values.value[0])
    assert values.reason == ["the values are too large to be averaged"]


# Accuracy


def test_accuracy_and_its_interval_agree_with_scipy() -> None:
    values = values_of(Accuracy(), value=[1.0] * 80 + [0.0] * 10)
    reference = scipy.stats.binomtest(80, 90).proportion_ci(0.95, method="wilson")
    assert values.value[0] == 80 / 90
    assert (values.low[0], values.high[0]) == pytest.approx((reference.low, reference.high), rel=1e-12)
    assert values.data == [{"correct": 80, "n": 90}]


def test_accuracy_of_no_rows_is_undefined_with_a_reason() -> None:
    values = values_of(Accuracy(), n_groups=2, group=[0], value=[1.0])
    assert np.isnan([values.value[1], values.low[1], values.high[1]]).all()
    assert values.reason == [None, "no scored rows"]
    assert values.data[1] == {"correct": 0, "n": 0}


def test_accuracy_of_one_row_has_an_interval() -> None:
    values = values_of(Accuracy(), value=[1.0])
    assert (values.value[0], values.high[0], values.reason) == (1.0, 1.0, [None])
    assert 0 < values.low[0] < 1


@pytest.mark.parametrize("score", [0.5, -1.0, 2.0])
def test_accuracy_refuses_what_is_neither_right_nor_wrong(score: float) -> None:
    with pytest.raises(DataError, match=f"_index_ 1: value {score} is neither 0 nor 1"):
        values_of(Accuracy(), value=[1.0, score])


def test_a_column_that_is_always_empty_is_reported_once_and_not_row_by_row() -> None:
    with pytest.raises(DataError, match="the column 'value' is empty in every scored row"):
        values_of(Accuracy(), value=[math.nan] * 3)
    with pytest.raises(DataError, match="'confidence' is empty in every scored row; let each output hold it, as in"):
        numbers({"_index_": np.arange(2), "confidence": np.full(2, math.nan)}, "confidence", "roc_auc")


def test_accuracy_refuses_a_scored_row_without_a_value() -> None:
    with pytest.raises(DataError, match="_index_ 0: is scored but has no value"):
        values_of(Accuracy(), value=[math.nan])


def test_accuracy_cannot_be_reduced_by_the_mean() -> None:
    with pytest.raises(SpecError, match="reduce='mean' does not work here; choose one of first, best, any, all"):
        Accuracy(reduce="mean")


@pytest.mark.parametrize("kind", [Accuracy, Mean])
@pytest.mark.parametrize("confidence", [0, 1, 95, math.nan])
def test_a_confidence_outside_0_and_1_is_refused(kind: type[Accuracy] | type[Mean], confidence: float) -> None:
    with pytest.raises(SpecError, match=r"must lie between 0 and 1, such as 0\.95"):
        kind(confidence=confidence)


def test_accuracy_reads_the_column_it_was_reported_to_read() -> None:
    with pytest.raises(SpecError, match="accuracy reads 'passed', which the table lacks"):
        Accuracy(column="passed").columns_for(["value"])


# Merging

BINARY = st.sampled_from([0.0, 1.0])
CASES = [(Count(value=1), BINARY), (Accuracy(), BINARY), (Mean(), st.floats(-1e6, 1e6))]


@st.composite
def partitions(draw: st.DrawFn, scores: st.SearchStrategy[float]) -> tuple[np.ndarray, np.ndarray, list[slice]]:
    rows = draw(st.lists(st.tuples(st.integers(0, 3), scores), max_size=40))
    borders = [0, *sorted(draw(st.lists(st.integers(0, len(rows)), max_size=5))), len(rows)]
    group, values = np.array([g for g, _ in rows], np.int64), np.array([v for _, v in rows], np.float64)
    return group, values, [slice(a, b) for a, b in pairwise(borders)]


@st.composite
def shards(draw: st.DrawFn, metric: Metric, scores: st.SearchStrategy[float]) -> tuple[Any, list[Any], float]:
    """The state of all rows, the states of their parts, and how large the values are."""
    group, values, parts = draw(partitions(scores))
    columns = metric.prepare({"_index_": np.arange(len(values)), "value": values})
    states = [metric.state({"value": columns["value"][part]}, group[part], 4) for part in parts]
    return metric.state(columns, group, 4), states, float(np.abs(values).max(initial=1.0))


@pytest.mark.parametrize(("metric", "scores"), CASES, ids=["count", "accuracy", "mean"])
@given(data=st.data())
def test_any_partition_merges_to_the_whole(
    metric: Metric, scores: st.SearchStrategy[float], data: st.DataObject
) -> None:
    state, states, scale = data.draw(shards(metric, scores))
    whole, merged = metric.compute(state), metric.compute(metric.merge(states))
    for name in ("value", "low", "high"):
        np.testing.assert_allclose(
            getattr(merged, name), getattr(whole, name), rtol=1e-12, atol=1e-12 * scale, err_msg=name
        )
    assert merged.reason == whole.reason


@pytest.mark.parametrize(("metric", "scores"), CASES, ids=["count", "accuracy", "mean"])
@given(data=st.data())
def test_merging_one_by_one_gives_the_same_bits_as_all_at_once(
    metric: Metric, scores: st.SearchStrategy[float], data: st.DataObject
) -> None:
    _, states, _ = data.draw(shards(metric, scores))
    total = states[0]
    for state in states[1:]:
        total = metric.merge([total, state])
    at_once = metric.merge(states)
    assert {name: array.tobytes() for name, array in total.items()} == {
        name: array.tobytes() for name, array in at_once.items()
    }
