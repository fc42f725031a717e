"""Rows summarised by groups: denominators, missing rows, several responses, groups, shards."""

from __future__ import annotations

import datetime as dt
import math
from dataclasses import dataclass, replace
from itertools import groupby, pairwise
from typing import Any, get_args

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, strategies as st

from evaluand.aggregation.groups import MetricRow, merge, summarise, summarise_shard
from evaluand.core.errors import DataError, SpecError
from evaluand.metrics.accuracy import Accuracy
from evaluand.metrics.base.metric import Columns, Metric, Missing, Reduce, State, Values
from evaluand.metrics.column_statistics import Count, Mean

TYPES = {
    "_index_": pa.int64(),
    "replication": pa.int32(),
    "_response_index_": pa.int64(),
    "target": pa.string(),
    "status": pa.string(),
    "value": pa.float64(),
    "label": pa.string(),
}


def table(**columns: Any) -> pa.Table:
    """A scorer's table: one scored row per example unless columns say otherwise."""
    n = len(next(iter(columns.values())))
    columns = {"_index_": list(range(n)), "status": ["scored"] * n} | columns
    return pa.table({name: pa.array(cells, TYPES.get(name)) for name, cells in columns.items()})


def answers(*responses: tuple[str, float | None], target: str | None = None) -> pa.Table:
    """One example with several responses, each a status and a value."""
    n = len(responses)
    return table(
        _index_=[0] * n,
        _response_index_=list(range(n)),
        target=[target] * n,
        status=[status for status, _ in responses],
        value=[value for _, value in responses],
    )


def one(shard: pa.Table, metric: Metric) -> MetricRow:
    [row] = summarise([shard], [metric])
    return row


def text(rows: list[MetricRow]) -> list[str]:
    """Rows as text, in which every bit of a value shows and NaN is equal to itself."""
    return [repr(row) for row in rows]


# Honest denominators


@pytest.fixture
def hundred() -> pa.Table:
    """80 right, 10 wrong, 10 failed."""
    status = ["scored"] * 90 + ["failed"] * 10
    return table(value=[1.0] * 80 + [0.0] * 10 + [None] * 10, status=status)


def test_failed_rows_are_left_out_and_bounded(hundred: pa.Table) -> None:
    row = one(hundred, Accuracy())
    assert (row.value, row.worst, row.best) == (80 / 90, 0.80, 0.90)
    assert (row.n, row.n_scored, row.n_failed, row.n_abstained, row.n_skipped) == (100, 90, 10, 0, 0)


def test_failed_rows_may_count_as_wrong(hundred: pa.Table) -> None:
    row = one(hundred, Accuracy(missing="wrong"))
    assert (row.value, row.worst, row.best) == (0.80, 0.80, 0.90)
    assert row.data == {"correct": 80, "n": 100}
    assert (row.n, row.n_scored, row.n_failed) == (100, 90, 10)


def test_failed_rows_may_be_refused_by_name(hundred: pa.Table) -> None:
    with pytest.raises(DataError, match=r"^_index_ 90, 91, 92, .*, 99: 10 rows have no score .* accuracy refuses"):
        summarise([hundred], [Accuracy(missing="refuse")])


def test_a_refusal_counts_rows_of_all_shards_and_names_the_first() -> None:
    shards = [table(_index_=[i], status=["abstained"], value=[None]) for i in range(12)]
    with pytest.raises(DataError, match=r"^_index_ 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, …: 12 rows have no score"):
        summarise(shards, [Accuracy(missing="refuse")])


def test_a_metric_that_refuses_missing_rows_takes_complete_ones() -> None:
    assert one(table(value=[1.0, 0.0]), Accuracy(missing="refuse")).value == 0.5


def test_bounds_follow_the_direction() -> None:
    rows = table(value=[2.0, None], status=["scored", "abstained"])
    higher, lower = one(rows, Mean(range=(0, 10))), one(rows, Mean(range=(0, 10), direction="lower"))
    assert (higher.value, higher.worst, higher.best) == (2, 1, 6)
    assert (lower.value, lower.worst, lower.best) == (2, 6, 1)
    assert higher.n_abstained == 1


def test_each_bound_is_known_where_its_end_is() -> None:
    row = one(table(value=[2.0, None], status=["scored", "failed"]), Mean(range=(0, math.inf)))
    assert row.worst == 1
    assert math.isnan(row.best)


@pytest.mark.parametrize("metric", [Mean(), Mean(range=(0, 1), direction=None), Count()])
def test_bounds_are_undefined_where_the_metric_cannot_tell(metric: Metric) -> None:
    row = one(table(value=[1.0, None], status=["scored", "failed"]), metric)
    assert row.value == 1
    assert math.isnan(row.worst)
    assert math.isnan(row.best)


@pytest.mark.parametrize("metric", [Mean(), Accuracy(), Count(), Mean(range=(0, 1), missing="wrong")])
def test_bounds_equal_the_value_where_nothing_is_missing(metric: Metric) -> None:
    row = one(table(value=[1.0, 0.0, 1.0]), metric)
    assert row.worst == row.value == row.best


def test_a_count_with_a_direction_has_bounds() -> None:
    rows = table(label=["toxic", "fine", None], value=[None] * 3, status=["scored", "scored", "failed"])
    row = one(rows, Count(label="toxic", direction="lower"))
    assert (row.value, row.worst, row.best) == (1, 2, 1)


def test_where_all_rows_fail_the_value_is_undefined_and_the_bounds_are_the_range() -> None:
    row = one(table(value=[None, None], status=["failed", "abstained"]), Accuracy())
    assert math.isnan(row.value)
    assert (row.worst, row.best, row.reason) == (0, 1, "no scored rows")
    assert (row.n, row.n_scored, row.n_failed, row.n_abstained) == (2, 0, 1, 1)


def test_where_all_rows_fail_and_count_as_wrong_the_value_is_the_worst() -> None:
    row = one(table(value=[None, None], status=["failed", "abstained"]), Accuracy(missing="wrong"))
    assert (row.value, row.reason, row.data) == (0, None, {"correct": 0, "n": 2})


@pytest.mark.parametrize("missing", get_args(Missing))
def test_skipped_rows_are_counted_and_never_weigh(missing: Missing) -> None:
    row = one(table(value=[1.0, None], status=["scored", "skipped"]), Accuracy(missing=missing))
    assert (row.value, row.worst, row.best, row.n, row.n_skipped) == (1, 1, 1, 1, 1)


def test_where_all_rows_are_skipped_everything_is_undefined() -> None:
    row = one(table(value=[None], status=["skipped"]), Accuracy(missing="wrong"))
    assert np.isnan([row.value, row.worst, row.best]).all()
    assert (row.reason, row.n, row.n_skipped) == ("no scored rows", 0, 1)


def test_a_table_without_rows_has_one_undefined_value_and_no_groups() -> None:
    [row] = summarise([table(value=[], race=pa.array([], pa.string()))], [Accuracy()], [(), ("race",)])
    assert (row.by, row.n, row.reason) == ({}, 0, "no scored rows")
    assert math.isnan(row.value)


def test_no_shards_give_no_rows() -> None:
    assert summarise([], [Accuracy()]) == []


def test_no_metrics_give_no_rows() -> None:
    assert summarise([table(value=[1.0])], []) == []


# Several responses


@pytest.mark.parametrize(("way", "value"), [("first", 0.25), ("best", 1.0), ("any", 1.0), ("mean", 0.5), ("all", 0.5)])
def test_several_responses_are_reduced_by_the_declared_rule(way: Reduce, value: float) -> None:
    row = one(answers(("scored", 0.25), ("scored", 1.0), ("scored", 0.25)), Mean(reduce=way))
    assert row.value == value
    assert row.n == (3 if way == "all" else 1)


def test_the_best_of_a_score_that_should_be_low_is_the_lowest() -> None:
    assert one(answers(("scored", 3.0), ("scored", 1.0)), Mean(reduce="best", direction="lower")).value == 1


def test_the_first_response_is_the_one_with_the_smallest_index_in_any_order_of_rows() -> None:
    rows = table(_index_=[0, 0, 0], _response_index_=[4, 2, 3], value=[0.0, 1.0, 0.0])
    assert one(rows, Accuracy()).value == 1


@pytest.mark.parametrize(
    ("way", "expected"),
    [
        # (value, worst, best, n, scored, failed, abstained)
        ("first", (math.nan, 0, 1, 1, 0, 1, 0)),
        ("best", (0.5, 0.5, 1, 1, 1, 0, 0)),
        ("any", (0.5, 0.5, 1, 1, 1, 0, 0)),
        ("mean", (0.25, 0.125, 0.625, 1, 1, 0, 0)),
        ("all", (0.25, 0.125, 0.625, 4, 2, 1, 1)),
    ],
)
def test_an_example_with_some_missing_responses_is_scored_and_bounded(way: Reduce, expected: tuple[float, ...]) -> None:
    rows = answers(("failed", None), ("scored", 0.0), ("abstained", None), ("scored", 0.5))
    row = one(rows, Mean(reduce=way, range=(0, 1)))
    found = (row.value, row.worst, row.best, row.n, row.n_scored, row.n_failed, row.n_abstained)
    np.testing.assert_equal(found, expected)


def test_missing_responses_count_as_wrong_before_they_are_reduced() -> None:
    row = one(answers(("scored", 1.0), ("failed", None)), Mean(reduce="mean", range=(0, 1), missing="wrong"))
    assert row.value == 0.5


def test_bounds_of_a_metric_without_range_are_undefined_if_any_response_is_missing() -> None:
    row = one(answers(("scored", 1.0), ("failed", None)), Mean(reduce="mean"))
    assert (row.value, row.n_failed) == (1, 0)
    assert math.isnan(row.worst)


@pytest.mark.parametrize(
    ("statuses", "counted"),
    [
        (("failed", "abstained"), "n_failed"),
        (("abstained", "skipped"), "n_abstained"),
        (("skipped", "skipped"), "n_skipped"),
        (("skipped", "scored"), "n_scored"),
    ],
)
@pytest.mark.parametrize("way", ["best", "any", "mean"])
def test_an_example_is_in_exactly_one_state(statuses: tuple[str, ...], counted: str, way: Reduce) -> None:
    rows = answers(*((status, 1.0 if status == "scored" else None) for status in statuses))
    counts = one(rows, Mean(reduce=way))._asdict()
    assert {name: counts[name] for name in counts if name.startswith("n_") and counts[name]} == {counted: 1}


def test_a_skipped_response_does_not_hide_the_first_that_was_asked() -> None:
    assert one(answers(("skipped", None), ("scored", 1.0)), Accuracy()).value == 1


def test_an_example_without_any_response_is_one_missing_row() -> None:
    row = one(table(_response_index_=[None], status=["failed"], value=[None]), Accuracy(reduce="any"))
    assert (row.n, row.n_failed) == (1, 1)


def test_replications_count_on_their_own() -> None:
    rows = table(_index_=[0, 0, 0], replication=[0, 1, 2], value=[1.0, 0.0, 0.0])
    row = one(rows, Accuracy(reduce="any"))
    assert (row.value, row.n) == (1 / 3, 3)


def test_values_are_checked_before_they_are_reduced() -> None:
    with pytest.raises(DataError, match=r"value 3\.0 lies outside"):
        one(answers(("scored", 3.0), ("scored", -1.0)), Mean(reduce="mean", range=(0, 1)))


def test_metrics_with_different_rules_are_computed_together() -> None:
    rows = answers(("scored", 0.0), ("scored", 1.0))
    first, any_, every = summarise([rows], [Accuracy(), Accuracy(reduce="any"), Accuracy(reduce="all")])
    assert [(row.value, row.n) for row in (first, any_, every)] == [(0, 1), (1, 1), (0.5, 2)]


# Groups and targets


def test_groups_come_after_all_rows_in_the_order_of_their_values_with_none_last() -> None:
    rows = table(value=[1.0, 0.0, 1.0, 1.0], race=["b", None, "a", "b"])
    found = summarise([rows], [Accuracy()], [("race",), ()])
    assert [(row.by, row.value, row.n) for row in found] == [
        ({}, 0.75, 4),
        ({"race": "a"}, 1, 1),
        ({"race": "b"}, 1, 2),
        ({"race": None}, 0, 1),
    ]


def test_attributes_together_make_the_groups_that_occur() -> None:
    rows = table(value=[1.0, 0.0, 0.0], race=["x", "x", "y"], gender=["f", "m", "f"])
    found = summarise([rows], [Accuracy()], [("race", "gender")])
    assert [(row.by, row.value) for row in found] == [
        ({"race": "x", "gender": "f"}, 1),
        ({"race": "x", "gender": "m"}, 0),
        ({"race": "y", "gender": "f"}, 0),
    ]


@pytest.mark.parametrize(
    ("values", "order"),
    [
        ([10, 2, None, 1, -3], ["-3", "1", "2", "10", None]),
        ([10.0, 2.5, math.inf, 1e-7], ["1e-07", "2.5", "10.0", "inf"]),
        (["10", "2", "1"], ["1", "2", "10"]),
        (["10", "2", "x1"], ["10", "2", "x1"]),
        (["1_0", "2"], ["1_0", "2"]),
    ],
)
def test_groups_that_are_all_numbers_come_in_the_order_of_numbers(values: list[Any], order: list[str | None]) -> None:
    n = len(values)
    shard = table(_index_=list(range(n)), status=["scored"] * n, value=[1.0] * n, a=values, b=["x"] * n)
    assert [row.by["a"] for row in summarise([shard], [Accuracy()], [("a",)])] == order
    assert [row.by["a"] for row in summarise([shard], [Accuracy()], [("b", "a")])] == order


def test_metrics_come_in_the_order_asked_for() -> None:
    found = summarise([table(value=[1.0], race=["x"])], [Mean(), Accuracy()], [(), ("race",)])
    assert [(row.metric, row.by) for row in found] == [
        ("mean", {}),
        ("mean", {"race": "x"}),
        ("accuracy", {}),
        ("accuracy", {"race": "x"}),
    ]


def test_a_grouping_asked_for_twice_is_given_once() -> None:
    assert len(summarise([table(value=[1.0])], [Accuracy()], [(), ()])) == 1


def test_each_target_has_its_own_rows() -> None:
    rows = table(_index_=[0, 0, 1, 1], target=["size", "color"] * 2, value=[1.0, 0.0, 1.0, 1.0], race=["x"] * 4)
    found = summarise([rows], [Accuracy()], [(), ("race",)])
    assert [(row.target, row.by, row.value, row.n) for row in found] == [
        ("color", {}, 0.5, 2),
        ("size", {}, 1, 2),
        ("color", {"race": "x"}, 0.5, 2),
        ("size", {"race": "x"}, 1, 2),
    ]


def test_responses_are_reduced_within_a_target() -> None:
    rows = table(
        _index_=[0] * 4, _response_index_=[0, 0, 1, 1], target=["a", "b", "a", "b"], value=[0.0, 0.0, 0.0, 1.0]
    )
    found = summarise([rows], [Accuracy(reduce="any")])
    assert [(row.target, row.value, row.n) for row in found] == [("a", 0, 1), ("b", 1, 1)]


@pytest.mark.parametrize(
    ("cells", "kind", "texts"),
    [
        ([True, False, None], pa.bool_(), ["false", "true", None]),
        ([1, -2, None], pa.int16(), ["-2", "1", None]),
        ([0.5, -0.0, 0.0], pa.float64(), ["0.0", "0.5"]),
        ([math.nan, math.nan, None], pa.float64(), ["nan", None]),
        ([dt.date(2020, 1, 2), None, None], pa.date32(), ["2020-01-02", None]),
        (["a", "b", "a"], pa.dictionary(pa.int8(), pa.string()), ["a", "b"]),
        (["a", "", None], pa.large_string(), ["", "a", None]),
        ([None, None, None], pa.null(), [None]),
    ],
    ids=lambda value: str(value) if isinstance(value, pa.DataType) else "",
)
def test_values_of_every_simple_type_make_groups_named_by_their_text(
    cells: list[Any], kind: pa.DataType, texts: list[str | None]
) -> None:
    rows = table(value=[1.0] * 3, attribute=pa.array(cells, kind))
    assert [row.by["attribute"] for row in summarise([rows], [Accuracy()], [("attribute",)])] == texts


@pytest.mark.parametrize("cells", [[["a"]], [{"a": 1}], [b"a"]])
def test_lists_structures_and_bytes_make_no_groups(cells: list[Any]) -> None:
    with pytest.raises(SpecError, match="cannot group by 'attribute', which holds"):
        summarise([table(value=[1.0], attribute=cells)], [Accuracy()], [("attribute",)])


def test_a_lacking_attribute_is_named() -> None:
    with pytest.raises(SpecError, match="cannot group by 'race': the table has no such column"):
        summarise([table(value=[1.0])], [Accuracy()], [("race",)])


def test_groups_that_differ_in_failing_show_it() -> None:
    rows = table(value=[1.0, None], status=["scored", "failed"], race=["x", "y"])
    x, y = summarise([rows], [Accuracy()], [("race",)])
    assert (x.worst, x.best, y.worst, y.best) == (1, 1, 0, 1)


# Columns


def test_a_column_lacking_for_a_metric_is_named() -> None:
    with pytest.raises(SpecError, match="mean reads 'score', which the table lacks"):
        one(table(value=[1.0]), Mean(column="score"))


@pytest.mark.parametrize("score", [None, math.nan, math.inf])
def test_a_scored_row_without_a_finite_number_is_refused_by_name(score: float | None) -> None:
    with pytest.raises(DataError, match="_index_ 1: "):
        one(table(value=[1.0, score]), Accuracy())


def test_what_a_missing_row_holds_is_never_read() -> None:
    assert one(table(value=[1.0, math.nan, 7.0], status=["scored", "failed", "skipped"]), Accuracy()).value == 1


def test_bools_and_decimals_are_numbers() -> None:
    shard = pa.table({"_index_": [0, 1], "status": ["scored"] * 2, "passed": [True, False]})
    assert one(shard, Accuracy(column="passed")).value == 0.5
    cost = pa.array([1, 2], pa.decimal128(9, 2))
    assert one(shard.append_column("cost", cost), Mean(column="cost")).value == 1.5


def test_a_column_of_bools_with_gaps_in_a_scored_row_is_refused_by_name() -> None:
    shard = pa.table({"_index_": [0, 1], "status": ["scored"] * 2, "passed": [True, None]})
    with pytest.raises(DataError, match="_index_ 1: is scored but has no passed"):
        one(shard, Accuracy(column="passed"))


@pytest.mark.parametrize("name", ["_index_", "status"])
def test_a_table_that_is_no_scorers_table_is_refused(name: str) -> None:
    with pytest.raises(SpecError, match=f"the table has no column '{name}'"):
        one(table(value=[1.0]).drop_columns([name]), Accuracy())


@pytest.mark.parametrize("status", ["completed", None])
def test_an_unknown_status_is_refused_by_name(status: str | None) -> None:
    with pytest.raises(DataError, match=f"_index_ 1: status {status!r} is none of scored, failed, abstained, skipped"):
        one(table(value=[1.0, 1.0], status=["scored", status]), Accuracy())


def test_a_row_without_index_is_refused() -> None:
    with pytest.raises(DataError, match="1 row has no _index_"):
        one(table(_index_=[None], value=[1.0]), Accuracy())


def test_a_record_batch_is_a_shard_too() -> None:
    [batch] = table(value=[1.0, 0.0]).to_batches()
    assert summarise([batch], [Accuracy()])[0].value == 0.5


@dataclass(frozen=True, kw_only=True)
class WeightedMean(Metric):
    """Somebody else's metric, which reads two columns."""

    kind = "weighted_mean"
    columns = ("value", "weight")

    def state(self, columns: Columns, group: np.ndarray, n_groups: int) -> State:
        value, weight = columns["value"], columns["weight"]
        return {
            "sum": np.bincount(group, value * weight, minlength=n_groups),
            "weight": np.bincount(group, weight, minlength=n_groups),
        }

    def compute(self, state: State) -> Values:
        n, undefined = len(state["sum"]), np.full(len(state["sum"]), np.nan)
        return Values(state["sum"] / state["weight"], undefined, undefined, [None] * n, [None] * n)


def test_a_metric_of_several_columns_needs_only_its_state_and_its_value() -> None:
    rows = table(
        _index_=[0, 0, 1, 2],
        _response_index_=[1, 0, 0, 0],
        status=["scored", "scored", "scored", "failed"],
        value=[9.0, 1.0, 3.0, None],
        weight=[1.0, 1.0, 3.0, None],
    )
    row = one(rows, WeightedMean())
    assert (row.value, row.n, row.n_scored) == (2.5, 3, 2)
    assert math.isnan(row.worst)
    with pytest.raises(SpecError, match="reduce='mean' does not work here; choose one of first, all"):
        WeightedMean(reduce="mean")


# Shards

METRICS: list[Metric] = [
    Count(value=1, direction="higher"),
    Count(reduce="mean"),
    Accuracy(),
    Accuracy(reduce="any", missing="wrong"),
    Accuracy(reduce="all"),
    Mean(range=(0, 1)),
    Mean(range=(0, 1), reduce="mean", missing="wrong", direction="lower"),
    Mean(reduce="best", direction="lower"),
]
BY: list[tuple[str, ...]] = [(), ("race",), ("race", "age")]


@st.composite
def tables(draw: st.DrawFn) -> pa.Table:
    """Examples with replications, targets and responses, in every status, binary values."""
    rows: list[dict[str, Any]] = []
    statuses = st.sampled_from(["scored", "scored", "scored", "failed", "abstained", "skipped"])
    for index in range(draw(st.integers(0, 8))):
        attributes = {"race": draw(st.sampled_from(["x", "y", None])), "age": draw(st.sampled_from([1, 20]))}
        for replication in range(draw(st.integers(1, 2))):
            for response in range(draw(st.integers(1, 3))):
                for target in draw(st.sampled_from([(None,), ("s", "t")])):
                    status = draw(statuses)
                    value = float(draw(st.integers(0, 1))) if status == "scored" else None
                    key = {"_index_": index, "replication": replication, "_response_index_": response}
                    rows.append({**key, "target": target, "status": status, "value": value, **attributes})
    types = {name: TYPES[name] for name in ("_index_", "replication", "_response_index_", "target", "status", "value")}
    return pa.Table.from_pylist(rows, pa.schema({**types, "race": pa.string(), "age": pa.int64()}))


def cut(whole: pa.Table, borders: list[int]) -> list[pa.Table]:
    """The table cut before the given `_index_`es."""
    index = whole["_index_"].to_numpy()
    places = [0, *np.searchsorted(index, sorted(borders)).tolist(), len(index)]
    return [whole.slice(start, stop - start) for start, stop in pairwise(places)]


@given(tables(), st.lists(st.integers(0, 8), max_size=4))
def test_any_partition_into_shards_gives_the_whole(whole: pa.Table, borders: list[int]) -> None:
    one_shard = summarise([whole], METRICS, BY)
    many = summarise(cut(whole, borders), METRICS, BY)
    assert len(one_shard) == len(many)
    for a, b in zip(one_shard, many, strict=True):
        assert a[:4] == b[:4]
        np.testing.assert_allclose(a[4:9], b[4:9], rtol=1e-12, atol=1e-12)
        assert (a.reason, a[11:]) == (b.reason, b[11:])


@given(tables(), st.lists(st.integers(0, 8), max_size=4), st.integers(1, 5))
def test_how_rows_are_batched_inside_a_shard_changes_no_bit(whole: pa.Table, borders: list[int], size: int) -> None:
    shards = cut(whole, borders)
    batched = [pa.Table.from_batches(shard.to_batches(size), shard.schema) for shard in shards]
    assert text(summarise(batched, METRICS, BY)) == text(summarise(shards, METRICS, BY))


@given(tables(), st.lists(st.integers(0, 8), max_size=4))
def test_shards_summarised_elsewhere_and_merged_at_once_give_the_same_bits(whole: pa.Table, borders: list[int]) -> None:
    shards = cut(whole, borders)
    merged = merge([summarise_shard(shard, METRICS, BY) for shard in shards])
    assert text(merged.rows()) == text(summarise(shards, METRICS, BY))


@given(tables(), st.randoms())
def test_the_order_of_rows_inside_a_shard_changes_no_value(whole: pa.Table, random: Any) -> None:
    order = list(range(len(whole)))
    random.shuffle(order)
    shuffled = whole.take(pa.array(order, pa.int64()))
    metrics = [replace(metric, reduce="all") if metric.reduce == "mean" else metric for metric in METRICS]
    for a, b in zip(summarise([whole], metrics, BY), summarise([shuffled], metrics, BY), strict=True):
        np.testing.assert_allclose(a[4:9], b[4:9], rtol=1e-12)
        assert a[11:] == b[11:]


@pytest.mark.parametrize("indices", [([0, 1], [1, 2]), ([2], [1])], ids=["cut", "out of order"])
def test_shards_that_cut_an_example_or_are_out_of_order_are_refused(indices: tuple[list[int], list[int]]) -> None:
    shards = [table(_index_=index, value=[1.0] * len(index)) for index in indices]
    with pytest.raises(DataError, match="the shards overlap or are out of order: one ends at _index_"):
        summarise(shards, [Accuracy()])


def test_an_empty_shard_among_others_adds_no_group() -> None:
    full = table(value=[1.0], target=["t"])
    rows = summarise([full.slice(0, 0), full, full.slice(0, 0)], [Accuracy()])
    assert [(row.target, row.value) for row in rows] == [("t", 1)]


def test_groups_found_late_take_their_place() -> None:
    shards = [
        table(_index_=[0], value=[1.0], race=["y"]),
        table(_index_=[1, 2], value=[0.0, 1.0], race=["x", "y"]),
    ]
    found = summarise(shards, [Accuracy()], [("race",)])
    assert [(row.by["race"], row.data) for row in found] == [
        ("x", {"correct": 0, "n": 1}),
        ("y", {"correct": 2, "n": 2}),
    ]


# Against a plain reading of the rules


def plainly(rows: list[dict[str, Any]], reduce: Reduce, fill: float | None) -> list[float]:
    """The values left after reduction, computed example by example."""
    values: list[float] = []
    for _, unit in groupby(sorted(rows, key=unit_key), key=unit_key):
        asked = [row for row in unit if row["status"] != "skipped"]
        responses = asked[:1] if reduce == "first" else asked
        filled = [fill if row["value"] is None else row["value"] for row in responses]
        known = [value for value in filled if value is not None]
        if reduce == "all":
            values += known
        elif known:
            values.append(
                sum(known) / len(known) if reduce == "mean" else known[0] if reduce == "first" else max(known)
            )
    return values


def unit_key(row: dict[str, Any]) -> tuple[int, int]:
    return row["_index_"], row["replication"]


@given(tables(), st.sampled_from(get_args(Reduce)), st.sampled_from([(), ("race",), ("race", "age")]))
def test_values_and_bounds_agree_with_a_plain_reading_of_the_rules(
    whole: pa.Table, reduce: Reduce, by: tuple[str, ...]
) -> None:
    rows = whole.to_pylist()
    for found in summarise([whole], [Mean(range=(0, 1), reduce=reduce)], [by]):
        group = [
            row
            for row in rows
            if row["target"] == found.target
            and all(text == (None if row[name] is None else str(row[name])) for name, text in found.by.items())
        ]
        for fill, value in ((None, found.value), (0.0, found.worst), (1.0, found.best)):
            values = plainly(group, reduce, fill)
            assert value == pytest.approx(np.mean(values) if values else math.nan, nan_ok=True, abs=1e-12)
        assert found.n_scored == len(plainly(group, reduce, None))
        assert found.n == len(plainly(group, reduce, 0.0)) == found.n_scored + found.n_failed + found.n_abstained


@pytest.mark.parametrize("n", [150_000, pytest.param(1_000_000, marks=pytest.mark.slow)])
def test_very_many_rows_in_many_groups(n: int) -> None:
    random = np.random.default_rng(0)
    value, race = random.integers(0, 2, n).astype(float), random.integers(0, 50, n)
    failed = random.random(n) < 0.1
    whole = pa.table(
        {"_index_": np.arange(n), "status": np.where(failed, "failed", "scored"), "value": value, "race": race}
    )
    shards = (whole.slice(start, 65_536) for start in range(0, n, 65_536))
    rows = summarise(shards, [Accuracy()], [(), ("race",)])
    assert rows[0].data == {"correct": int(value[~failed].sum()), "n": int((~failed).sum())}
    for row in rows[1:]:
        members = race == int(str(row.by["race"]))
        assert row.data["correct"] == value[members & ~failed].sum()
        assert row.best == (value[members & ~failed].sum() + (members & failed).sum()) / members.sum()
    assert len(rows) == 51
