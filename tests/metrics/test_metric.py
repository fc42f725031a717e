"""What every metric gets from the concept: parameters, signature, states, intervals."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, strategies as st

from evaluand.core import registry
from evaluand.core.errors import DataError, SpecError
from evaluand.core.identity import encode
from evaluand.metrics.accuracy import Accuracy
from evaluand.metrics.base.metric import (
    Columns,
    Metric,
    State,
    Values,
    numbers,
    refuse,
)
from evaluand.metrics.column_statistics import Count, Mean
from evaluand.metrics.stats.intervals import merge_moments, moments, t_quantile, wilson


@dataclass(frozen=True, kw_only=True)
class Exceeded(Metric):
    """How many rows exceed each threshold: a metric of somebody else's, with a second axis and two columns."""

    kind = "exceeded"
    thresholds: tuple[float, ...] = (0.25, 0.75)

    @property
    def columns(self) -> tuple[str, ...]:
        return ("confidence", "truth")

    def state(self, columns: Columns, group: np.ndarray, n_groups: int) -> State:
        above = columns["confidence"][:, None] > np.array(self.thresholds)
        counts = np.zeros((n_groups, len(self.thresholds)))
        np.add.at(counts, group, above)
        return {"above": counts}

    def compute(self, state: State) -> Values:
        n = len(state["above"])
        return Values(state["above"][:, 0], np.full(n, np.nan), np.full(n, np.nan), [None] * n, [None] * n)


def one_group(values: list[float]) -> State:
    return moments(np.array(values, np.float64), np.zeros(len(values), np.int64), 1)


# Parameters


@pytest.mark.parametrize("kind", [Count, Mean, Accuracy])
@pytest.mark.parametrize(("name", "value"), [("missing", "ignore"), ("reduce", "last")])
def test_an_unknown_policy_is_refused_with_the_known_ones(kind: Any, name: str, value: str) -> None:
    with pytest.raises(SpecError, match=rf"{kind.kind}: {name}.*'{value}'.* one of (leave_out|first)"):
        kind(**{name: value})


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Accuracy(column={}), "accuracy: column={} must be the name of a column"),  # type: ignore[arg-type]
        (lambda: Mean(range=("x", 1)), r"mean: range=\('x', 1\) must be \(lowest, highest\)"),  # type: ignore[arg-type]
        (lambda: Mean(range=[1.0]), r"mean: range=\[1.0\] must be \(lowest, highest\)"),  # type: ignore[arg-type]
        (
            lambda: registry.find("metrics", "roc_auc")(scored_by="classes", absent="x"),
            "roc_auc: absent='x' must be a number",
        ),
    ],
    ids=["a column", "an end", "one end", "absent"],
)
def test_a_parameter_of_another_type_is_refused(make: Callable[[], Metric], message: str) -> None:
    with pytest.raises(SpecError, match=message):
        make()


def test_the_best_response_is_not_known_without_a_direction() -> None:
    with pytest.raises(SpecError, match="reduce='best' needs a direction"):
        Mean(direction=None, reduce="best")


@pytest.mark.parametrize(
    "wrong", [lambda: Mean(missing="wrong"), lambda: Mean(missing="wrong", range=(0, 1), direction=None)]
)
def test_missing_rows_cannot_be_wrong_where_the_worst_value_is_unknown(wrong: Callable[[], Metric]) -> None:
    with pytest.raises(SpecError, match="missing='wrong' needs the worst value"):
        wrong()


def test_the_worst_end_follows_the_direction() -> None:
    assert Mean(range=(0, 10)).ends == (0.0, 10.0)
    assert Mean(range=(0, 10), direction="lower").ends == (10.0, 0.0)
    assert all(math.isnan(end) for end in Mean(range=(0, 10), direction=None).ends)


def test_one_finite_end_is_enough_to_count_missing_rows_as_wrong() -> None:
    assert Mean(range=(0, math.inf), missing="wrong").ends[0] == 0.0
    with pytest.raises(SpecError, match="needs the worst value"):
        Mean(range=(0, math.inf), direction="lower", missing="wrong")


def test_a_lacking_column_is_named_with_those_there_are() -> None:
    with pytest.raises(SpecError, match="exceeded reads 'truth', which the table lacks; it has 'confidence', 'value'"):
        Exceeded().columns_for(["confidence", "value"])


# Signature


def test_a_signature_shows_every_parameter() -> None:
    assert Exceeded().signature == "exceeded v1 missing=leave_out reduce=first thresholds=(0.25,0.75)"


def test_a_signature_writes_a_confidence_as_its_interval() -> None:
    assert Accuracy(confidence=0.999).signature.endswith(" interval=wilson 99.9%")
    assert Mean(confidence=0.5).signature.endswith(" interval=student 50%")


COCO = [0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95]
ALIKE: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("mean", {"range": [0, 1]}, {"range": (0.0, 1.0)}),
    ("count", {"value": 1}, {"value": 1.0}),
    ("accuracy", {"confidence": np.float64(0.9)}, {"confidence": 0.9}),
    ("quantile", {"q": np.float32(0.5)}, {"q": 0.5}),
    ("f_beta", {"beta": 1}, {"beta": 1.0}),
    ("f_beta", {"labels": ["b", "a"]}, {"labels": ("a", "b")}),
    ("hamming_loss", {"labels": [2, 1]}, {"labels": [1, 2]}),
    ("jaccard", {"zero_division": 0}, {"zero_division": 0.0}),
    ("log_loss", {"clip": 0}, {"clip": 0.0}),
    ("log_loss", {"absent": 0}, {"absent": 0.0}),
    ("brier", {"label": "a", "halved": True}, {"label": "a"}),
    ("brier", {"absent": 0}, {"absent": 0.0}),
    ("roc_auc", {"scored_by": "labels", "absent": 0.0}, {"scored_by": "labels"}),
    ("roc_auc", {"label": "a", "average": "micro"}, {"label": "a"}),
    ("average_precision", {"label": "a", "average": "weighted"}, {"label": "a"}),
    ("mean_reciprocal_rank", {"absent_rank": 500}, {"absent_rank": 500.0}),
    ("mean_reciprocal_rank", {"absent_rank": math.inf}, {}),
    ("mean_average_precision", {"iou": 0.5}, {"iou": (0.5,)}),
    ("mean_average_precision", {"iou": [np.float64(0.5)]}, {}),
    ("mean_average_precision", {"iou": 1}, {"iou": 1.0}),
    ("mean_average_precision", {"iou": [0.75, 0.5]}, {"iou": (0.5, 0.75)}),
    ("mean_average_precision", {"iou": COCO}, {"iou": "0.50:0.95"}),
    ("mean_average_precision", {"definition": "coco", "points": 101}, {"definition": "coco"}),
    ("mean_average_precision", {"points": "area"}, {}),
]


@pytest.mark.parametrize(("kind", "one", "other"), ALIKE)
def test_one_definition_has_one_signature_however_it_is_written(kind: str, one: Any, other: Any) -> None:
    made, same = (registry.find("metrics", kind)(**parameters) for parameters in (one, other))
    assert made.signature == same.signature
    assert encode(made.spec) == encode(same.spec)


def test_what_is_on_or_off_is_true_or_false() -> None:
    with pytest.raises(SpecError, match="accuracy: weighted is the integer 1; give true or false"):
        Accuracy(weighted=1)  # type: ignore[arg-type]


def test_a_threshold_named_twice_is_refused() -> None:
    with pytest.raises(SpecError, match=r"iou=\(0.5, 0.5\) repeats a threshold; give each once"):
        registry.find("metrics", "mean_average_precision")(iou=(0.5, 0.5))


WORDS = st.one_of(st.none(), st.text(max_size=4), st.sampled_from(["true", "null", "nan", "1.0", "a b", '"a"']))
COUNTS = st.builds(Count, label=WORDS, value=st.one_of(st.none(), st.floats(-3, 3).map(float), st.just(1)))


@given(COUNTS, COUNTS)
def test_signatures_are_equal_exactly_where_specs_are(a: Count, b: Count) -> None:
    assert (a.signature == b.signature) == (encode(a.spec) == encode(b.spec))


# Rows a metric cannot take


def test_bad_rows_are_named_by_index_one_fault_each() -> None:
    columns = {"_index_": np.array([7, 8, 9])}
    with pytest.raises(DataError) as caught:
        refuse(columns, np.array([True, False, True]), lambda row: f"row {row}")
    assert [str(fault) for fault in caught.value.faults] == ["_index_ 7: row 0", "_index_ 9: row 2"]


def test_no_bad_row_is_no_error() -> None:
    refuse({"_index_": np.array([7])}, np.array([False]), lambda row: "never said")


@pytest.mark.parametrize(
    "truth",
    [
        np.array(["a", None], object),
        np.array([1.0, np.nan]),
        np.array(["2020-01-01", "NaT"], "M8[s]"),
        np.array([["x"], None], object),
    ],
)
def test_an_empty_cell_of_a_scored_row_is_refused_by_default(truth: np.ndarray) -> None:
    columns = {"_index_": np.array([3, 4]), "confidence": np.array([0.1, 0.2]), "truth": truth}
    with pytest.raises(DataError, match=r"^_index_ 4: is scored but has no truth"):
        Exceeded().prepare(columns)


def test_prepared_columns_are_those_the_metric_reads() -> None:
    columns = {"_index_": np.array([3]), "confidence": np.array([0.1]), "truth": np.array([2])}
    assert set(Exceeded().prepare(columns)) == {"confidence", "truth"}


def test_numbers_refuse_text_by_the_name_of_the_column() -> None:
    with pytest.raises(SpecError, match="mean needs numbers, but the column 'label' holds none"):
        numbers({"_index_": np.array([0]), "label": np.array(["x"], object)}, "label", "mean")


def test_numbers_take_bools_and_integers() -> None:
    assert numbers({"_index_": np.array([0]), "x": np.array([True])}, "x", "mean").tolist() == [1.0]
    assert numbers({"_index_": np.array([0]), "x": np.array([3])}, "x", "mean").tolist() == [3.0]


# States


def test_states_add_up_on_every_axis() -> None:
    group = np.array([0, 1, 1])
    columns = {"confidence": np.array([0.5, 0.8, 0.1]), "truth": np.ones(3)}
    metric = Exceeded()
    twice = metric.merge([metric.state(columns, group, 2)] * 2)
    assert twice["above"].tolist() == [[2, 0], [2, 2]]


def test_a_placed_state_keeps_its_further_axes_and_leaves_new_groups_empty() -> None:
    placed = Exceeded().place({"above": np.array([[1, 2], [3, 4]])}, np.array([2, 0]), 4)
    assert placed["above"].tolist() == [[3, 4], [0, 0], [1, 2], [0, 0]]


def test_a_group_placed_among_others_merges_as_if_alone() -> None:
    metric = Mean()
    alone = one_group([1.0, 4.0, 7.5])
    placed = metric.place(alone, np.array([1]), 3)
    empty = metric.place(alone, np.array([0]), 3)
    merged = metric.merge([empty, placed, metric.place(one_group([]), np.array([2]), 3)])
    for name, array in alone.items():
        assert merged[name].tolist() == [array[0], array[0], 0]


# Moments


@given(st.lists(st.floats(-1, 1), min_size=2, max_size=30), st.sampled_from([0.0, 1e6, -1e12]))
def test_moments_agree_with_exact_arithmetic(values: list[float], offset: float) -> None:
    values = [value + offset for value in values]
    state = one_group(values)
    scale = max(map(abs, values))
    assert float(state["mean"][0]) == pytest.approx(float(statistics.mean(map(Fraction, values))), abs=1e-15 * scale)
    exact = float(statistics.variance(map(Fraction, values)) * (len(values) - 1))
    assert float(state["m2"][0]) == pytest.approx(exact, rel=1e-12, abs=1e-300)


@given(st.lists(st.lists(st.floats(0, 1), max_size=6), min_size=1, max_size=6).filter(lambda parts: any(parts)))
def test_merging_keeps_the_digits_of_values_with_a_large_offset(parts: list[list[float]]) -> None:
    parts = [[1e12 + value for value in part] for part in parts]
    values = [Fraction(value) for part in parts for value in part]
    merged = merge_moments([one_group(part) for part in parts])
    mean = statistics.mean(values)
    exact = float(sum((value - mean) ** 2 for value in values))
    assert merged["n"][0] == len(values)
    assert float(Fraction(float(merged["mean"][0])) + Fraction(float(merged["rest"][0])) - mean) == pytest.approx(
        0, abs=1e-14
    )
    assert float(merged["m2"][0]) == pytest.approx(exact, rel=1e-12, abs=1e-14)


def test_moments_too_large_to_add_do_not_warn() -> None:
    state = merge_moments([one_group([1.7e308, 1.7e308, -1.7e308]), one_group([1e308])])
    assert not np.isfinite(state["m2"][0])


def test_equal_values_have_no_deviation_however_large() -> None:
    state = one_group([1.7e308, 1.7e308])
    assert (state["mean"][0], state["m2"][0]) == (1.7e308, 0)


# Intervals


@pytest.mark.parametrize("confidence", [0.01, 0.5, 0.8, 0.9, 0.95, 0.99, 0.999, 0.99999])
def test_t_quantiles_agree_with_scipy(confidence: float) -> None:
    degrees = np.array([*range(1, 40), 99, 100, 999, 1000, 1001, 1002, 12_345, 10**7])
    reference = scipy.stats.t.isf((1 - confidence) / 2, degrees)
    np.testing.assert_allclose(t_quantile(confidence, degrees), reference, rtol=1e-10)


def test_t_quantiles_without_degrees_of_freedom_are_undefined() -> None:
    assert np.isnan(t_quantile(0.95, np.array([0, -1]))).all()


def test_t_quantiles_of_nothing_are_nothing() -> None:
    assert t_quantile(0.95, np.array([], np.int64)).tolist() == []


@pytest.mark.parametrize("confidence", [0.5, 0.95, 0.999])
@pytest.mark.parametrize("n", [1, 2, 7, 90, 4000])
def test_wilson_agrees_with_scipy(n: int, confidence: float) -> None:
    successes = np.unique(np.linspace(0, n, 9).astype(int))
    low, high = wilson(successes, np.full(len(successes), n), confidence)
    tests = [scipy.stats.binomtest(int(k), n).proportion_ci(confidence, method="wilson") for k in successes]
    np.testing.assert_allclose(low, [test.low for test in tests], rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(high, [test.high for test in tests], rtol=1e-12, atol=1e-15)


def test_wilson_touches_the_ends_exactly() -> None:
    low, high = wilson(np.array([0, 9]), np.array([9, 9]), 0.95)
    assert (low[0], high[1]) == (0.0, 1.0)


def test_wilson_of_no_rows_is_undefined() -> None:
    assert np.isnan(wilson(np.array([0]), np.array([0]), 0.95)).all()
