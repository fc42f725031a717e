"""Whether B is better than A: pairing, statistics against references, and what is stored and shown."""

from __future__ import annotations

import io
import itertools
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from random import Random
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, strategies as st
from rich.console import Console
from statsmodels.stats.contingency_tables import mcnemar as reference_mcnemar
from statsmodels.stats.multitest import multipletests
from support.effort import simulations
from support.manifests import create_manifest
from support.thinned import thinned

from evaluand import Accuracy, Comparison, Dataset, Evaluation, Evaluator, Mean, Measure, MemoryStore, Runner, compare
from evaluand.comparison import check_gates, find_evaluations
from evaluand.comparison.difference import Sample, describe
from evaluand.comparison.measuring import measure_pair
from evaluand.comparison.metric_differences import MetricSample
from evaluand.comparison.pairing import PairedRows, pair_rows
from evaluand.comparison.significance import assign_letters, benjamini_hochberg, holm, mcnemar, sign_flip
from evaluand.comparison.verdict import families_text, format_difference
from evaluand.core.errors import DataError, EvaluandWarning, NotFound, SpecError
from evaluand.core.row_numbers import number_rows
from evaluand.evaluation.scorer import Score, Scorer
from evaluand.metrics.accuracy import PassAtK
from evaluand.metrics.base.metric import Metric
from evaluand.metrics.column_statistics import Quantile
from evaluand.metrics.errors import MaxError
from evaluand.metrics.forecasts import Crps, MeanQuantileLoss
from evaluand.metrics.stats.intervals import binomial_tail, normal_tail, paired_score
from evaluand.metrics.stats.least_mean import least_mean
from evaluand.metrics.stats.paired_change import PairedChange
from evaluand.report.terminal.comparison import comparison_table
from evaluand.report.verification import verify
from evaluand.store.store import Store

HOSTILE = "[red]x[/red]\x1b[2J\u202e"


def grade(output: Any) -> Any:
    if output == "fail":
        raise ValueError("nothing to grade")
    return Score.abstained("no number") if output == "abstain" else float(output)


def evaluated(
    store: Store,
    name: str,
    answers: Mapping[str, Any],
    rows: Sequence[Mapping[str, Any]] | None = None,
    *,
    replications: int = 1,
    **roles: Any,
) -> Evaluation:
    """An evaluation whose score of each example is what its input stands for; a list has one for each replication."""

    def answer(text: str, replication: int) -> Any:
        found = answers[text]
        return found[replication] if isinstance(found, list) else found

    data = Dataset.from_rows(rows or [{"input": text} for text in answers], **roles)
    run = Runner(store).run(answer, data, name=name, replications=replications)
    return Evaluator().evaluate(run, {"score": grade}, name=name)


def scores(values: Sequence[Any]) -> dict[str, Any]:
    return {f"q{i}": value for i, value in enumerate(values)}


def two(a: Sequence[Any], b: Sequence[Any], **options: Any) -> dict[str, Any]:
    """The one pair of a comparison of two systems by their scores."""
    store = MemoryStore()
    [pair] = compare(evaluated(store, "a", scores(a)), evaluated(store, "b", scores(b)), **options).pairs
    return pair


def rows_of(
    a: Sequence[float], b: Sequence[float], example: Sequence[int] | None = None, metric: Metric | None = None
) -> PairedRows:
    """Rows side by side, all scored."""
    values = np.array([a, b], np.float64)
    n = values.shape[1]
    return PairedRows(
        metric=metric or Mean(),
        keys=[(None,)],
        group=np.zeros(n, np.int64),
        example=np.arange(n) if example is None else np.array(example),
        cluster=None,
        weight=None,
        status=np.zeros((2, n), np.int8),
        index=np.tile(np.arange(n), (2, 1)),
        replication=np.zeros(n, np.int64),
        value=values,
        worst=values,
        best=values,
    )


def difference(rows: PairedRows, confidence: float) -> SimpleNamespace:
    return SimpleNamespace(**describe(measure_pair(rows, 0, 1), rows, 0, 1, confidence))


def bounds(rows: PairedRows, metric: Metric) -> tuple[float, float]:
    """The one-sided bounds at 95 % that gates use."""
    return Sample.from_rows(replace(rows, metric=metric), 0, 1).bounds(0.95)


# Statistics


@pytest.mark.parametrize(("won", "lost"), [(0, 0), (1, 0), (8, 1), (30, 12), (209, 152), (700, 650), (5000, 5200)])
def test_exact_mcnemar_is_the_binomial_test(won: int, lost: int) -> None:
    expected = scipy.stats.binomtest(won, won + lost).pvalue if won + lost else 1.0
    assert mcnemar(won, lost) == pytest.approx(expected, abs=1e-9)
    assert mcnemar(won, lost) == pytest.approx(reference_mcnemar([[3, lost], [won, 4]], exact=True).pvalue, abs=1e-9)


@given(n=st.integers(1, 3000), share=st.floats(0, 1))
def test_the_binomial_tail_is_that_of_scipy(n: int, share: float) -> None:
    k = int(share * n)
    assert binomial_tail(k, n) == pytest.approx(scipy.stats.binom.cdf(k, n, 0.5), rel=1e-8)


def test_the_normal_tail_is_that_of_scipy() -> None:
    for z in (-3.0, 0.0, 1.96, 9.0):
        assert normal_tail(z) == pytest.approx(scipy.stats.norm.sf(z), rel=1e-12)


@given(st.lists(st.integers(-4, 4), min_size=2, max_size=8))
def test_flipping_signs_exactly_is_the_permutation_test_of_scipy(apart: list[int]) -> None:
    found = scipy.stats.permutation_test(
        (np.array(apart), np.zeros(len(apart))),
        lambda x, y: np.mean(x - y),
        permutation_type="samples",
        n_resamples=np.inf,
        vectorized=False,
    )
    assert sign_flip(np.array(apart, np.float64)).p == pytest.approx(found.pvalue, abs=1e-12)


def test_flipping_by_counting_looking_and_drawing_agree() -> None:
    apart = np.array([1.0, 2.0, 0.5, -1.0, 3.0, -0.25, 1.5, 0.75, -2.0, 2.5, 1.0, 0.1, -0.3, 0.9, 1.1, -0.7])
    exact = sign_flip(apart)
    drawn = sign_flip(np.concatenate([apart, [1e-9]]))  # too small to matter, but one too many to look at all
    assert (exact.method, drawn.method) == ("exact", "10,000 draws")
    assert drawn.p == pytest.approx(exact.p, abs=4 * math.sqrt(exact.p / 10_000))
    assert sign_flip(np.array([1.0] * 20 + [-1.0] * 9)).p == pytest.approx(
        scipy.stats.binomtest(9, 29).pvalue, abs=1e-12
    )


def test_with_many_clusters_flipping_is_normal_and_agrees_with_the_t_test() -> None:
    apart = np.random.default_rng(3).normal(0.012, 1, 30_000)
    found = sign_flip(apart)
    assert found.method == "normal"
    assert found.p == pytest.approx(scipy.stats.ttest_1samp(apart, 0).pvalue, rel=1e-2)


def test_a_few_heavy_clusters_among_many_do_not_flip_as_a_normal_sum() -> None:
    """Of the 32 patterns of the heavy five, two are as far from 0 as all alike; the others hardly count."""
    found = sign_flip(np.concatenate([np.full(5, 1e6), np.full(20_000, -1e-3)]))
    assert found.method == "10,000 draws"
    assert found.p == pytest.approx(2 / 32, abs=4 * math.sqrt(2 / 32 / 10_000))


@given(
    st.lists(
        st.tuples(st.floats(-5, 5), st.floats(-5, 5)).map(lambda p: (round(p[0], 3), round(p[1], 3))),
        min_size=3,
        max_size=30,
    )
)
def test_the_paired_t_interval_is_that_of_scipy(pairs: list[tuple[float, float]]) -> None:
    a, b = np.array(pairs).T
    found = difference(rows_of(a, b), 0.9)
    if np.ptp(b - a) < 1e-6 or found.binary:
        return
    low, high = scipy.stats.ttest_rel(b, a).confidence_interval(0.9)
    low, high = (low, high) if found.p <= 0.1 else (min(low, 0), max(high, 0))
    assert (found.low, found.high) == pytest.approx((low, high), rel=1e-9, abs=1e-9)


@pytest.mark.parametrize(
    ("won", "lost", "n", "low", "high"),
    [
        # M. Fagerland, S. Lydersen & P. Laake, "Recommended tests and confidence intervals for paired binomial
        # proportions" (Statistics in Medicine 33, 2014): airway hyper-responsiveness before and after transplantation.
        (1, 7, 21, -0.517, -0.026),
        # Complete response before and after consolidation therapy, in the same article; by bisection with scipy.
        (6, 16, 161, -0.124, -0.005),
    ],
)
def test_the_paired_score_interval_gives_published_values(won: int, lost: int, n: int, low: float, high: float) -> None:
    assert paired_score(won, lost, n, 0.95) == pytest.approx((low, high), abs=5e-4)


@given(won=st.integers(0, 30), lost=st.integers(0, 30), tied=st.integers(0, 60))
def test_the_paired_score_interval_turns_with_its_sides_and_holds_the_difference(
    won: int, lost: int, tied: int
) -> None:
    n = won + lost + tied
    low, high = paired_score(won, lost, n, 0.95)
    if n == 0:
        assert math.isnan(low)
        return
    assert -1 <= low <= (won - lost) / n <= high <= 1
    assert paired_score(lost, won, n, 0.95) == (-high, -low)
    wider = paired_score(won, lost, n, 0.95, correction=0.5)
    assert wider[0] <= low
    assert wider[1] >= high


@pytest.mark.parametrize("n", [20, pytest.param(100, marks=pytest.mark.slow)])
@pytest.mark.parametrize("margin", [0.0, 0.02, 0.1])
@pytest.mark.parametrize("discordance", [0.1, 0.2, 0.5])
def test_a_one_sided_bound_errs_at_most_in_five_of_a_hundred_cases(n: int, margin: float, discordance: float) -> None:
    """All outcomes are counted with their probability: B is truly worse by the margin, and the bound says it is not."""
    up, down = (discordance - margin) / 2, (discordance + margin) / 2
    outcomes = np.array([(won, lost, n - won - lost) for won in range(n + 1) for lost in range(n + 1 - won)])
    chances = scipy.stats.multinomial.pmf(outcomes, n, [up, down, 1 - discordance])
    erring = sum(
        chance
        for (won, lost, _), chance in zip(outcomes.tolist(), chances.tolist(), strict=True)
        if chance > 1e-8 and paired_score(won, lost, n, 0.9, correction=0.5)[0] > -margin
    )
    assert erring <= 0.05 + 1e-6


@pytest.mark.parametrize(
    ("n", "up", "down"),
    [
        (35, 0.02, 0.04),
        *(
            pytest.param(*case, marks=pytest.mark.slow)
            for case in ((50, 0.01, 0.03), (100, 0.01, 0.02), (200, 0.005, 0.01))
        ),
    ],
)
@pytest.mark.parametrize(
    ("metric", "step", "replications"),
    [(Accuracy(), 1.0, 1), (Accuracy(), 1.0, 2), (Mean(range=(0, 1)), 0.5, 1), (Mean(range=(0, 1)), 1.0, 2)],
    ids=["right or wrong", "replicated", "graded", "a mean replicated"],
)
@pytest.mark.slow
def test_a_bound_of_few_rows_that_differ_errs_at_most_in_five_of_a_hundred_cases(
    n: int, up: float, down: float, metric: Metric, step: float, replications: int
) -> None:
    """Rows are won or lost by a step; all but the rarest outcomes are counted, and the rest as if all erred."""
    erring = 1.0
    for won, lost in itertools.product(range(9), repeat=2):
        chance = scipy.stats.multinomial.pmf([won, lost, n - won - lost], n, [up, down, 1 - up - down])
        if chance > 1e-3:
            b = np.repeat([1.0 - step, 1.0, 1.0], [lost, won, n - won - lost])
            a = np.repeat([1.0, 1.0 - step, 1.0], [lost, won, n - won - lost])
            rows = rows_of(*(np.repeat(side, replications) for side in (a, b)), np.repeat(np.arange(n), replications))
            erring -= chance * (bounds(rows, metric)[0] <= (up - down) * step)
    assert erring <= 0.05


@pytest.mark.parametrize(("right", "n"), [(0, 5), (1, 5), (5, 5), (19, 20), (37, 50), (300, 301)])
@pytest.mark.parametrize("level", [0.8, 0.95, 0.99])
def test_the_least_mean_of_zeros_and_ones_is_clopper_and_pearson_s(right: int, n: int, level: float) -> None:
    values = np.repeat([1.0, 0.0], [right, n - right])
    expected = scipy.stats.binomtest(right, n).proportion_ci(2 * level - 1, "exact").low
    found = least_mean(values, np.ones(n), 0.0, level)
    assert found <= expected + 1e-9
    assert found == pytest.approx(expected, abs=0.005)
    assert least_mean(10 * values - 5, np.ones(n), -5.0, level) == pytest.approx(10 * found - 5, abs=1e-5)


def test_the_least_mean_is_the_quantile_of_means_weighed_by_chance() -> None:
    draw = np.random.default_rng(4)
    values, weight = draw.uniform(-0.3, 0.5, 30), draw.uniform(1, 2, 30)
    unseen = (weight**2).sum() / weight.sum()  # of all divided by their effective number
    total, whole = np.append(values * weight, -unseen), np.append(weight, unseen)
    chances = draw.exponential(size=(200_000, 31))
    expected = np.quantile(chances @ total / (chances @ whole), 0.05)
    assert least_mean(values * weight, weight, -1.0, 0.95) == pytest.approx(expected, abs=2e-3)


def test_a_bound_of_many_rows_that_differ_is_near_student_s() -> None:
    draw = np.random.default_rng(6)
    a, b = draw.integers(0, 5, (2, 5000)) / 4
    low, high = bounds(rows_of(a, b), Mean(range=(0, 1)))
    least, most = scipy.stats.ttest_rel(b, a).confidence_interval(0.9)
    assert least - 0.0005 < low <= least
    assert most <= high < most + 0.0005


@thinned("n", [1, 2, 3, 5, 8, 40], every=5)
def test_adjusted_p_values_are_those_of_statsmodels(n: int) -> None:
    p = np.round(np.random.default_rng(n).random(n) ** 3, 2)  # with ties
    assert holm(p) == pytest.approx(multipletests(p, method="holm")[1], abs=1e-12)
    assert benjamini_hochberg(p) == pytest.approx(multipletests(p, method="fdr_bh")[1], abs=1e-12)


def test_undefined_p_values_stay_undefined_and_do_not_count() -> None:
    adjusted = holm(np.array([0.02, math.nan, 0.03]))
    assert adjusted[[0, 2]].tolist() == [0.04, 0.04]
    assert math.isnan(adjusted[1])


def test_rows_of_one_example_are_one_observation() -> None:
    """Clusters' sums apart from the mean 0.5: (2, 0, 1) − 0.5 × 2 = 1, −1, 0; variance 3/2 × 2 / 36 = 1/12."""
    found = difference(rows_of([0] * 6, [1, 1, 0, 0, 1, 0], [0, 0, 1, 1, 2, 2], metric=Accuracy()), 0.95)
    half = scipy.stats.t.ppf(0.975, 2) * math.sqrt(1 / 12)
    assert (found.difference, found.clusters, found.interval) == (0.5, 3, "clustered student")
    assert (found.low, found.high) == pytest.approx((max(0.5 - half, -1), min(0.5 + half, 1)), abs=1e-9)
    assert found.test == "mid-p sign flip"
    assert found.p == 0.25  # of the four patterns of +2 and +1, two are as far from 0 as 3, which count half


def test_the_detectable_difference_is_found_in_four_of_five_cases() -> None:
    n, discordance = 500, 0.2
    a = [1.0] * 50 + [0.0] * 50 + [1.0] * 400
    b = [0.0] * 50 + [1.0] * 50 + [1.0] * 400
    least = difference(rows_of(a, b, metric=Accuracy()), 0.95).detectable
    draws = np.random.default_rng(7).multinomial(
        n, [(discordance + least) / 2, (discordance - least) / 2, 1 - discordance], 2000
    )
    found = np.mean([abs(won - lost) / math.sqrt(won + lost) > 1.96 for won, lost, _ in draws.tolist()])
    assert found == pytest.approx(0.8, abs=0.03)


def test_where_no_row_differs_there_is_still_an_interval() -> None:
    pair = two([1, 0, 1, 1], [1.0, 0, 1, 1])  # other responses with the same grades
    assert (pair["difference"], pair["p"], pair["won"], pair["tied"], pair["lost"]) == (0, 1, 0, 4, 0)
    assert pair["low"] == -pair["high"] < 0
    assert pair["detectable"] is None
    assert "4 rows, of which 0 differ, are too few" in pair["verdict"]


def test_where_rows_differ_alike_as_many_unseen_ones_may_differ_as_much() -> None:
    """Of n equal rows so many may be others: z² / (n + z²), with z = 1.96."""
    few, many = ([n / 16 for n in range(most)] for most in (3, 8))
    pair = two(few, [score + 0.25 for score in few])
    assert (pair["difference"], pair["low"], pair["p"]) == (0.25, 0, 0.125)
    pair = two(many, [score + 0.25 for score in many])
    far = 0.25 * 1.96**2 / (8 + 1.96**2)
    assert (pair["low"], pair["high"]) == pytest.approx((0.25 - far, 0.25 + far), abs=1e-5)
    assert (pair["p"], pair["test"]) == (2**-8, "mid-p sign flip")


def test_a_shift_that_only_rounding_varies_is_one_of_equal_differences() -> None:
    a = np.arange(12) / 7
    assert len({*(a + 0.1 - a).tolist()}) > 1
    found = difference(rows_of(a, a + 0.1), 0.95)
    assert found.difference == pytest.approx(0.1)
    assert found.p == 0.5**12
    assert math.isnan(found.effect)
    assert math.isnan(found.detectable)


def test_values_that_only_rounding_distinguishes_are_ties() -> None:
    p = np.arange(1, 40) / 41
    a, b = p**2, (1 - (1 - p)) ** 2
    assert (a != b).sum() > 10
    found = difference(rows_of([*a, 1e-300, 1e15], [*b, 2e-300, 1e15 + 16]), 0.95)
    assert (found.won, found.tied, found.lost) == (2, 39, 0)
    found = difference(rows_of(a, b, metric=Mean(range=(0, 1))), 0.95)
    assert (found.difference, found.won, found.tied, found.lost, found.p) == (0, 0, 39, 0, 1)
    assert found.low < 0 < found.high


@pytest.mark.parametrize("metric", [Mean(), Mean(range=(0, 10))])
def test_agreement_is_as_uncertain_as_that_of_shares_over_the_range(metric: Mean) -> None:
    """Four rows that agree; where the range is not known, values were seen to lie 4 apart."""
    values = [5.0, 3.0, 7.0, 5.0]
    found = difference(rows_of(values, values, metric=metric), 0.95)
    half = paired_score(0, 0, 4, 0.95)[1] * (4 if metric == Mean() else 10)
    assert (found.low, found.high, found.reason) == (pytest.approx(-half), pytest.approx(half), None)


def test_agreement_on_one_value_of_no_known_range_says_no_spread() -> None:
    found = difference(rows_of([5.0] * 8, [5.0] * 8), 0.95)
    assert (found.difference, found.p) == (0, 1)
    assert math.isnan(found.low)
    assert math.isnan(found.high)
    assert found.reason == "all rows differ alike, so nothing tells the spread"


def test_differences_too_large_to_be_squared_have_no_t_interval_but_a_reason() -> None:
    found = difference(rows_of([0.0] * 4, [1e200, 5e199, -3e199, 1e199]), 0.95)
    assert found.reason == "the values lie too far apart for an interval"
    assert all(map(math.isnan, (found.low, found.high, found.effect, found.detectable)))


def test_sums_that_cancel_are_no_difference_whatever_their_rounding() -> None:
    """0.1 + 0.2 + 0.3 − 0.6 is not 0 in binary, though no pattern of signs gives less."""
    for apart in ([0.1, 0.2, 0.3, -0.6], [0.6, -0.1, -0.2, -0.3], [0.1, 0.2, 0.3, -0.6] * 5):
        assert sign_flip(np.array(apart)).p == 1.0


@pytest.mark.parametrize("clusters", [1, 2, 5, 6])
def test_so_few_clusters_that_no_outcome_is_rare_show_no_difference(clusters: int) -> None:
    """Half of the two most extreme of the 2 ** 4 outcomes of four clusters is 1/16, above 0.05."""
    a, b = np.zeros(clusters * 3), np.arange(clusters * 3) % 4 / 4
    found = difference(rows_of(a, b, np.arange(clusters * 3) // 3), 0.95)
    assert math.isnan(found.detectable) == (clusters <= 4)
    assert not found.p <= 0.05 or clusters > 4


# Pairing


def test_values_are_those_of_the_paired_rows() -> None:
    pair = two([1, 1, 0, 0, 1], [1, 0, 1, 1, 1])
    assert (pair["metric"], pair["n"], pair["n_used"], pair["value_a"], pair["value_b"]) == ("accuracy", 5, 5, 0.6, 0.8)
    assert (pair["won"], pair["tied"], pair["lost"], pair["effect"]) == (2, 2, 1, 2.0)
    assert pair["difference"] == pytest.approx(0.2)


def test_the_order_of_rows_changes_nothing() -> None:
    values = {f"q{i}": (i % 3 / 2, (i * 7 % 5) / 4) for i in range(23)}
    store, found = MemoryStore(), []
    for texts in (list(values), sorted(values), list(values)[::-1]):
        rows = [{"input": text} for text in texts]
        number = len(found)
        a = evaluated(store, f"a{number}", {t: v[0] for t, v in values.items()}, rows)
        b = evaluated(store, f"b{number}", {t: v[1] for t, v in values.items()}, rows[::-1])
        found.append({n: v for n, v in compare(a, b).pairs[0].items() if n != "verdict"})
    assert found[0] == found[1] == found[2]


def test_what_only_one_side_has_is_counted_and_listed() -> None:
    store = MemoryStore()
    a = evaluated(store, "a", scores([1, 1, 0, 1]))
    rows = [{"input": f"q{i}"} for i in (3, 1, 7, 8, 9)]
    b = evaluated(store, "b", scores(range(2)) | {f"q{i}": 1 for i in (3, 1, 7, 8, 9)}, rows)
    [pair] = compare(a, b).pairs
    assert (pair["n"], pair["n_only_a"], pair["n_only_b"]) == (2, 2, 3)
    assert (pair["only_a"], pair["only_b"]) == (["0", "2"], ["2", "3", "4"])


def test_equal_examples_meet_in_their_order() -> None:
    rows = [{"input": "same"}, {"input": "same"}, {"input": "other"}, {"input": "same"}]
    store = MemoryStore()
    a = evaluated(store, "a", {"same": 1, "other": 0}, rows)
    b = evaluated(store, "b", {"same": 0, "other": 1}, rows[:3])
    [pair] = compare(a, b).pairs
    assert (pair["n"], pair["n_only_a"], pair["n_only_b"], pair["won"], pair["lost"]) == (3, 1, 0, 1, 2)
    assert pair["only_a"] == ["3"]
    assert (pair["clusters"], pair["clustered_by"], pair["interval"]) == (2, None, "clustered student")


@given(
    st.lists(
        st.lists(st.sampled_from([-(2**63), -1, 0, 1, 2**63 - 1]), min_size=3, max_size=3), min_size=1, max_size=30
    )
)
def test_rows_of_any_numbers_match_where_they_are_equal(table: list[list[int]]) -> None:
    for size in (1, 2, 3):
        rows = np.array(table)[:, :size]
        first, second = number_rows([rows[:7], rows[7:]])
        texts = [tuple(row) for row in rows.tolist()]
        places = {row: place for place, row in enumerate(sorted(set(texts)))}
        assert [*first.tolist(), *second.tolist()] == [places[row] for row in texts]


def test_replications_meet_and_are_clustered_by_example() -> None:
    store = MemoryStore()
    a = evaluated(store, "a", {"x": [1, 0, 0], "y": [0, 0, 0], "z": [1, 1, 0]}, replications=3)
    b = evaluated(store, "b", {"x": [1, 1], "y": [0, 1], "z": [1, 1]}, replications=2)
    [pair] = compare(a, b).pairs
    assert (pair["n"], pair["clusters"], pair["n_only_a"], pair["won"], pair["lost"]) == (6, 3, 3, 2, 0)
    [pair] = compare(a, b, metrics=PassAtK(k=2)).pairs
    assert (pair["n"], pair["clusters"], pair["n_only_a"]) == (3, None, 0)
    assert (pair["value_a"], pair["value_b"]) == pytest.approx(((2 / 3 + 0 + 1) / 3, 1.0))


def test_declared_clusters_bind_examples() -> None:
    rows = [{"input": f"q{i}", "document": i // 2} for i in range(6)]
    store = MemoryStore()
    a = evaluated(store, "a", scores([0] * 6), rows, input="input", cluster="document")
    b = evaluated(store, "b", scores([1, 1, 0, 0, 1, 0]), rows, input="input", cluster="document")
    [pair] = compare(a, b).pairs
    expected = difference(rows_of([0] * 6, [1, 1, 0, 0, 1, 0], [0, 0, 1, 1, 2, 2], metric=Accuracy()), 0.95)
    assert (pair["clusters"], pair["low"], pair["high"]) == (
        3,
        pytest.approx(expected.low),
        pytest.approx(expected.high),
    )


def test_a_comparison_says_what_is_not_independent() -> None:
    def reported(store: Store, **roles: Any) -> tuple[Any, Any, str]:
        rows = [{"input": f"q{i}", "page": i // 2, "w": 1.0 + i} for i in range(6)]
        a = evaluated(store, "a", scores([0] * 6), rows, input="input", **roles)
        b = evaluated(store, "b", scores([1, 1, 0, 0, 1, 0]), rows, input="input", **roles)
        made = compare(a, b, metrics=Accuracy(weighted="weight" in roles)).to_dict()
        file = io.StringIO()
        Console(file=file, width=120, markup=False, highlight=False).print(comparison_table(made))
        return made["pairs"][0]["clusters"], made["pairs"][0]["clustered_by"], file.getvalue()

    *declared, text = reported(MemoryStore(), cluster="page")
    assert declared == [3, "page"]
    assert "interval and test by 3 clusters (page): rows of the same one are not independent" in text
    for roles in ({}, {"weight": "w"}):
        *none, text = reported(MemoryStore(), **roles)
        assert none == [None, None]
        assert "go by" not in text
    store = MemoryStore()
    a = evaluated(store, "a", {"x": [1, 0], "y": [0, 0]}, replications=2)
    made = compare(a, evaluated(store, "b", {"x": [1, 1], "y": [1, 0]}, replications=2)).to_dict()
    file = io.StringIO()
    Console(file=file, width=120, markup=False, highlight=False).print(comparison_table(made))
    assert (made["pairs"][0]["clusters"], made["pairs"][0]["clustered_by"]) == (2, None)
    assert "interval and test by 2 examples: rows" in file.getvalue()


def test_weights_count() -> None:
    rows = [{"input": f"q{i}", "weight": w} for i, w in enumerate([1.0, 3.0, 4.0])]
    store = MemoryStore()
    a = evaluated(store, "a", scores([0, 0, 1]), rows, input="input", weight="weight")
    b = evaluated(store, "b", scores([0, 1, 0]), rows, input="input", weight="weight")
    [pair] = compare(a, b, metrics=Accuracy(weighted=True)).pairs
    assert (pair["value_a"], pair["value_b"], pair["difference"]) == (0.5, 0.375, -0.125)
    assert pair["interval"] == "clustered student"


def test_rows_without_weight_say_nothing_in_a_comparison() -> None:
    store, pairs = MemoryStore(), []
    for n in (4, 40):
        rows = [{"input": f"q{i}", "weight": float(i < 4)} for i in range(n)]
        a = evaluated(store, f"a{n}", scores([0.0] * n), rows, input="input", weight="weight")
        b = evaluated(store, f"b{n}", scores([0.1, 0.5, 0.9, -0.05] + [0.0, 1.0] * (n // 2 - 2)), rows, weight="weight")
        pairs += compare(a, b, metrics=Mean(weighted=True)).pairs
        measures = [Measure("score", Mean(weighted=True, range=(-1, 1)))]
        [gate] = check_gates(["mean better than a"], {"b": b, "a": a}, "a", measures=measures)
        assert not gate.passed
    apart = [0.1, 0.5, 0.9, -0.05]
    low, high = scipy.stats.t.interval(0.95, 3, np.mean(apart), scipy.stats.sem(apart))
    for pair in pairs:
        assert (pair["low"], pair["high"]) == pytest.approx((low, high))
        assert (pair["won"], pair["tied"], pair["lost"]) == (3, 0, 1)
    same = ("value_b", "difference", "p", "p_permutation", "effect", "detectable")
    assert [pairs[1][name] for name in same] == pytest.approx([pairs[0][name] for name in same])
    assert [(pair["n_used"], pair["clusters"]) for pair in pairs] == [(4, None), (40, 4)]


def test_targets_are_compared_apart() -> None:
    rows = [{"input": str(i), "x": "1", "y": "0"} for i in range(4)]
    data = Dataset.from_rows(rows, input="input", expected={"first": "x", "second": "y"})
    store = MemoryStore()
    runs = [Runner(store).run(task, data, name=name) for name, task in (("a", always), ("b", never))]
    a, b = (Evaluator().evaluate(run, {"exact": ByTarget()}, name=run.name) for run in runs)
    first, second = compare(a, b, metrics="accuracy").pairs
    assert (first["target"], first["difference"]) == ("first", -1)
    assert (second["target"], second["difference"]) == ("second", 1)
    assert first["p_holm"] == 2 * first["p"] == 0.125


class ByTarget(Scorer):
    kind = "by_target"
    by_target = True

    def score(self, output: Any, expected: Any) -> Score:
        return Score.of(output == expected)


def always(text: str) -> dict[str, str]:
    return {"first": "1", "second": "1"}


def never(text: str) -> dict[str, str]:
    return {"first": "0", "second": "0"}


# Missing rows


def test_rows_without_a_score_are_left_out_by_pairs_and_bound_the_difference() -> None:
    pair = two([1, "fail", 0, 1], [1, 1, "abstain", 0])
    assert (pair["n"], pair["n_used"], pair["n_a_missing"], pair["n_b_missing"]) == (4, 2, 1, 1)
    assert (pair["value_a"], pair["value_b"], pair["difference"]) == (1, 0.5, -0.5)
    assert (pair["worst"], pair["best"]) == ((0 + 0 + 0 - 1) / 4, (0 + 1 + 1 - 1) / 4)


def test_rows_without_a_score_may_count_as_wrong() -> None:
    pair = two([1, "fail", 0, 1], [1, 1, "abstain", 0], missing="wrong", metrics="accuracy")
    assert (pair["n_used"], pair["n_a_missing"], pair["value_a"], pair["value_b"]) == (4, 1, 0.5, 0.5)


def test_rows_without_a_score_may_be_refused() -> None:
    with pytest.raises(DataError, match=r"_index_ 1: 1 example of .* without a score"):
        two([1, "fail"], [1, 1], missing="refuse")


def test_where_nothing_is_scored_on_both_sides_nothing_is_said() -> None:
    pair = two(["fail", 1], [1, "fail"], metrics="accuracy")
    assert (pair["n"], pair["n_used"], pair["difference"], pair["p"], pair["p_holm"]) == (2, 0, None, None, None)
    assert pair["verdict"] == "nothing can be said: no row has a score on both sides"
    assert (pair["p_permutation"], pair["p_benjamini_hochberg"]) == (None, None)


def test_where_all_weights_are_0_nothing_is_said() -> None:
    store, rows = MemoryStore(), [{"input": f"q{i}", "weight": 0.0} for i in range(8)]
    a = evaluated(store, "a", scores([0] * 8), rows, input="input", weight="weight")
    b = evaluated(store, "b", scores([1] * 8), rows, input="input", weight="weight")
    [pair] = compare(a, b, metrics=Accuracy(weighted=True)).pairs
    assert (pair["difference"], pair["p"], pair["p_permutation"], pair["p_holm"]) == (None, None, None, None)
    assert pair["verdict"] == "nothing can be said: all weights are 0"


def test_differences_too_large_for_a_number_are_said_to_be() -> None:
    pair = two([1e308, 1e308, -1e308], [-1e308, 1e308, 1e308], metrics=Mean(direction="lower"))
    assert pair["verdict"] == "nothing can be said: the differences are too large for a number"


def test_where_lower_is_better_a_fall_is_a_win() -> None:
    pair = two([5.0, 7.5, 6.0, 8.0, 9.0, 4.0], [4.0, 5.0, 5.5, 6.0, 6.0, 1.0], metrics=Mean(direction="lower"))
    assert (pair["won"], pair["lost"]) == (6, 0)
    assert pair["verdict"].startswith("b is better: b − a = -2 [")


# Comparisons


def test_several_runs_are_ranked_and_alike_ones_share_a_letter() -> None:
    store = MemoryStore()
    good, fair, bad = [1] * 60, [1] * 57 + [0] * 3, [0] * 40 + [1] * 20
    evaluations = [evaluated(store, n, scores(v)) for n, v in (("bad", bad), ("good", good), ("fair", fair))]
    made = compare(*evaluations)
    assert [(row["evaluation"], row["letters"], row["n"]) for row in made.ranking] == [
        (1, "a", 60),
        (2, "a", 60),
        (0, "b", 60),
    ]
    assert [pair["p_holm"] <= 0.05 for pair in made.pairs] == [True, True, False]


def test_letters_of_many_systems_take_no_time() -> None:
    random = Random(1)
    places = sorted(random.gauss(0, 1) for _ in range(60))
    pairs = [*itertools.combinations(range(60), 2)]
    differ = {frozenset(pair) for pair in pairs if places[pair[1]] - places[pair[0]] + random.gauss(0, 0.1) > 0.4}
    found = {
        system: {*re.findall(r"[a-z]|\(\d+\)", text)} for system, text in assign_letters(range(60), differ).items()
    }
    assert all(bool(found[a] & found[b]) == (frozenset((a, b)) not in differ) for a, b in pairs)


@given(st.integers(2, 6), st.data())
def test_two_share_a_letter_if_and_only_if_they_cannot_be_distinguished(n: int, data: st.DataObject) -> None:
    every = [frozenset(pair) for pair in itertools.combinations(range(n), 2)]
    apart = data.draw(st.lists(st.sampled_from(every), unique=True))
    found = assign_letters(range(n), apart)
    for pair in every:
        a, b = pair
        assert bool(set(found[a]) & set(found[b])) == (pair not in apart)


def test_flips_show_what_was_asked_and_answered_and_counts_stay_exact() -> None:
    store = MemoryStore()
    a, b = evaluated(store, "a", scores([1] * 8)), evaluated(store, "b", scores([0] * 5 + [1] * 3))
    made = compare(a, b, flips=2)
    assert made.pairs[0]["lost"] == 5
    first, second = made.flips()
    assert (first["flip"], first["input"], first["responses_a"], first["responses_b"]) == ("lost", "q0", [1], [0])
    assert second["index_a"] == 1


def test_the_primary_metric_is_tested_alone_and_all_others_together() -> None:
    store = MemoryStore()
    a, b = (evaluated(store, name, scores([1] * right + [0] * (20 - right))) for name, right in (("a", 10), ("b", 16)))
    others = [Mean(missing=missing, range=(0, 1)) for missing in ("leave_out", "wrong")]
    [alone] = compare(a, b, metrics=[Accuracy()]).pairs
    first, *more = compare(a, b, metrics=[Accuracy(), *others]).pairs
    assert (first["p_holm"], first["verdict"]) == (alone["p"], alone["verdict"])
    assert [pair["family"] for pair in (alone, first, *more)] == ["primary"] * 2 + ["secondary"] * 2
    assert [pair["p_holm"] for pair in more] == [2 * pair["p"] for pair in more]
    assert more[0]["verdict"].endswith("after Holm, secondary")
    named = compare(a, b, metrics=[Accuracy(), *others], primary="mean").pairs
    assert [pair["family"] for pair in named] == ["secondary", "primary", "secondary"]
    assert families_text(named) == "secondary: 2 tests, adjusted together (Holm); primary: 1 test"


def test_a_comparison_says_what_pairing_saves() -> None:
    """Values that vary alike, beside a shift of half of them: covariances by hand."""
    pair = two([0.0, 0.0, 0.5, 0.5], [0.25, 0.0, 0.75, 0.5], metrics=Mean(range=(0, 1)))
    assert pair["correlation"] == pytest.approx(0.25 / math.sqrt(0.25 * 0.3125))
    assert pair["variance_saved"] == pytest.approx(1 - 0.0625 / (0.25 + 0.3125))


def test_metrics_of_one_kind_are_reported_apart() -> None:
    store, file = MemoryStore(), io.StringIO()
    sides = [evaluated(store, name, scores(given)) for name, given in (("a", [0, 0]), ("b", [1, 1]), ("c", [0, 1]))]
    made = compare(*sides, metrics=[Accuracy(), Accuracy(missing="wrong")])
    Console(file=file, width=120, markup=False, highlight=False).print(comparison_table(made.to_dict()))
    lines = [line.rstrip() for line in file.getvalue().splitlines()]
    for missing in ("leave_out", "wrong"):
        label = f"accuracy(missing={missing}) · {made.pairs[0]['scorer']}"
        assert label + (" (secondary)" if missing == "wrong" else "") in lines
        assert f"ranking by {label}" in lines
        assert any(line.startswith(f"{label}, A → B: 2 won") for line in lines)


def test_what_is_compared_in_place_of_metrics_that_cannot_be_is_reported() -> None:
    store = MemoryStore()
    sides = [evaluated(store, name, scores(given)) for name, given in (("a", [1, 0.5]), ("b", [0, 0.5]))]
    [scorer] = sides[0].scorers
    with pytest.warns(
        EvaluandWarning, match="quantile as declared cannot be compared row by row; the plain mean of the values is"
    ):
        made = compare(*sides, declared=[Measure(scorer, Quantile(q=0.5, reduce="all"))])
    assert made.pairs[0]["signature"].startswith("mean ")


def test_a_declared_metric_that_cannot_be_compared_is_listed_and_those_of_fairness_are_not_compared() -> None:
    store, file = MemoryStore(), io.StringIO()
    sides = [evaluated(store, name, scores(given)) for name, given in (("a", [1, 0]), ("b", [0, 0]))]
    [scorer] = sides[0].scorers
    own = [Measure(scorer, Accuracy()), *(Measure(scorer, Quantile(q=q, reduce="all")) for q in (0.5, 0.9))]
    made = compare(*sides, declared=[*own, Measure(scorer, Mean(), criterion="demographic_parity")])
    assert [pair["metric"] for pair in made.pairs] == ["accuracy"]
    found = Comparison(store, made.id).left_out
    assert [(one["metric"], one["reason"]) for one in found] == [("quantile", "each of several responses is a row")] * 2
    Console(file=file, width=200, markup=False, highlight=False).print(comparison_table(made.to_dict()))
    reported = (
        f"not compared: quantile(q=0.5) · {scorer}, quantile(q=0.9) · {scorer} (each of several responses is a row)"
    )
    assert reported in file.getvalue()
    assert str(made).endswith(f"quantile · {scorer}: not compared, each of several responses is a row")
    assert compare(*sides, metrics="accuracy", declared=own).left_out == []
    assert [pair["metric"] for pair in compare(*sides, metrics="mean", declared=own).pairs] == ["mean"]


def test_thousands_are_written_as_such() -> None:
    pair = {"share": False}
    assert [format_difference(value, pair) for value in (-1153.4, -467.2, 0.0123)] == ["-1,153", "-467", "0.0123"]


def test_values_of_one_metric_have_the_same_decimals() -> None:
    store, file = MemoryStore(), io.StringIO()
    sides = [evaluated(store, name, scores(given)) for name, given in (("a", [1, 1]), ("b", [0, 0]), ("c", [0, 1]))]
    made = compare(*sides, metrics=[Accuracy()])
    Console(file=file, width=120, markup=False, highlight=False).print(comparison_table(made.to_dict()))
    assert "A → B  1.000 → 0.000" in file.getvalue()


def test_an_example_that_differs_is_named_once() -> None:
    store, file = MemoryStore(), io.StringIO()
    rows = [{"id": "first", "input": "q0"}, {"id": "1", "input": "q1"}]
    made = compare(evaluated(store, "a", scores([0, 0]), rows), evaluated(store, "b", scores([1, 1]), rows))
    Console(file=file, width=80, markup=False, highlight=False).print(comparison_table(made.to_dict()))
    heads = [line.rstrip() for line in file.getvalue().splitlines() if line.startswith("_index_")]
    assert heads == ["_index_ 0 first: 0 → 1", "_index_ 1: 0 → 1"]


def test_flips_of_numbers_begin_with_the_largest() -> None:
    store = MemoryStore()
    a = evaluated(store, "a", scores([0.5, 0.5, 0.5, 0.5]))
    made = compare(a, evaluated(store, "b", scores([0.4, 0.1, 0.6, 0.9])), flips=1)
    assert [(f["flip"], f["input"]) for f in made.flips()] == [("lost", "q1"), ("won", "q3")]


def test_the_same_comparison_is_found_again_and_whole() -> None:
    store = MemoryStore()
    a, b = evaluated(store, "a", scores([1, 0, 1])), evaluated(store, "b", scores([1, 1, 1]))
    made, again, other = compare(a, b, name="c"), compare(a, b), compare(b, a)
    assert (made.id, made.receipt.called, again.receipt.kept) == (again.id, 1, 1)
    assert other.id != made.id
    called = compare(a, b, labels=["x", "y"])
    assert called.id not in (made.id, compare(a, b, labels=["y", "x"]).id)
    assert (called.labels, made.labels) == (["x", "y"], ["a", "b"])
    assert compare(a, b, labels=["a", "b"]).id == made.id
    assert verify(store, "comparisons", made.id) == []
    assert Comparison(store, made.id).to_dict() == made.to_dict()


def test_runs_with_the_same_responses_are_compared_as_two_by_their_names() -> None:
    store = MemoryStore()
    a, b = evaluated(store, "exp/a", scores([1, 0])), evaluated(store, "exp/b", scores([1, 0]) | {"more": 1})
    one = evaluated(store, "exp/c", scores([1, 0, 1]), [{"input": "q0"}, {"input": "q1"}])
    assert (a.digest == one.digest, a.id == one.id, a.id == b.id) == (True, False, False)
    made = compare(a, one)
    assert (made.labels, made.pairs[0]["difference"]) == (["a", "c"], 0)
    assert compare(Evaluation(store, a.id), Evaluation(store, one.id)).labels == ["a", "c"]
    assert compare(Evaluation(store, a.id), Evaluation(store, a.id)).labels == ["a", "a (2)"]
    assert compare(a, b, labels=["x", "y"]).labels == ["x", "y"]


def test_names_stand_for_evaluations_runs_and_all_of_an_aggregation() -> None:
    store = MemoryStore()
    a = evaluated(store, "a", scores([1, 0]))
    assert [e.id for e in find_evaluations(store, "a")] == [a.id]
    assert [e.id for e in find_evaluations(store, a.manifest["provenance"]["run"])] == [a.id]
    with pytest.raises(SpecError, match="is dataset"):
        find_evaluations(store, a.manifest["spec"]["dataset"])
    with pytest.raises(NotFound):
        find_evaluations(store, "nobody")


def test_quantiles_of_different_levels_are_not_compared() -> None:
    def forecasts(store: Store, name: str, levels: Sequence[float]) -> Evaluation:
        data = Dataset.from_rows([{"input": str(n), "expected": float(n)} for n in range(9)])
        run = Runner(store).run(lambda input: {"quantiles": {str(x): float(input) + x for x in levels}}, data)
        return Evaluator(store).evaluate(run, {"forecast": "forecast"}, name=name)

    store = MemoryStore()
    a, b = forecasts(store, "a", [0.1, 0.5, 0.9]), forecasts(store, "b", [0.01, 0.5, 0.99])
    for metric in (Crps(source="quantiles"), MeanQuantileLoss()):
        with pytest.raises(SpecError, match=r"different levels: 0\.1, 0\.5, 0\.9 and 0\.01, 0\.5, 0\.99; compare with"):
            compare(a, b, metrics=metric)
        with pytest.raises(
            SpecError, match=r"no declared metric can be compared: .* · forecast: the systems have diff"
        ):
            compare(a, b, declared=[Measure("forecast", metric)])
        declared = [Measure("forecast", metric), Measure("forecast", MeanQuantileLoss(levels=[0.5]))]
        comparison = compare(a, b, declared=declared)
        assert [row["reason"] for row in comparison.left_out] == ["the systems have different levels"]
        assert [pair["metric"] for pair in comparison.pairs] == ["mean_quantile_loss"]
    again = forecasts(store, "c", [0.9, 0.5, 0.1])
    assert compare(a, again, metrics=Crps(source="quantiles")).pairs[0]["tied"] == 9


def test_what_cannot_be_compared_is_reported_in_a_sentence() -> None:
    store = MemoryStore()
    a, b = evaluated(store, "a", scores([1, 0])), evaluated(store, "b", scores([1, 1]))
    with pytest.raises(
        SpecError,
        match="max_error has no differences with an interval; compare by another metric",
    ):
        compare(a, b, metrics=MaxError())
    with pytest.raises(
        SpecError,
        match="accuracy with reduce='all' counts each response as a row, and responses of different runs cannot be",
    ):
        compare(a, b, metrics=Accuracy(reduce="all"))
    with pytest.raises(SpecError, match="needs two evaluations"):
        compare(a)
    with pytest.raises(SpecError, match="scorer 'scor' is not in all evaluations"):
        compare(a, b, scorers="scor")
    with pytest.raises(SpecError, match="another store"):
        compare(a, evaluated(MemoryStore(), "c", scores([0, 1])))
    with pytest.raises(SpecError, match=r"^pass_at_k: give k; from Python as PassAtK\(k=…\)$"):
        compare(a, b, metrics="pass_at_k")
    with pytest.raises(SpecError, match="is not an attribute"):
        pair_rows([a, b], "score", Accuracy(), {"topic": "x"})
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"labels": ["x"]}, r"labels must be a list of texts, one for each of the 2 evaluations, not \['x'\]"),
        ({"labels": "ab"}, "labels must be a list of texts"),
        ({"labels": [1, 2]}, "labels must be a list of texts"),
        ({"metrics": 3}, r"a measure needs a metric, such as Accuracy\(\), not 3"),
        ({"metrics": ["accuracy", 3]}, "a measure needs a metric"),
        ({"scorers": 3}, "scorers must be names of scorers, not 3"),
        ({"flips": "x"}, "flips='x' must be an integer of at least 0"),
        ({"flips": -1}, "flips=-1 must be an integer of at least 0"),
    ]
    for options, message in wrong:
        with pytest.raises(SpecError, match=message):
            compare(a, b, **options)


@pytest.mark.parametrize("again", [["accuracy"] * 2, [Accuracy(), Accuracy(bootstrap=2000)], ["accuracy", Accuracy()]])
def test_a_measure_that_is_given_twice_counts_once_in_its_family(again: list[Any]) -> None:
    store = MemoryStore()
    three = [evaluated(store, name, scores([1] * n + [0] * (30 - n))) for n, name in ((10, "a"), (17, "b"), (28, "c"))]
    once, twice = (compare(*three, metrics=metrics, scorers=["score"] * 2) for metrics in ("accuracy", again))
    assert twice.pairs == once.pairs
    assert len(twice.ranking) == 3


def test_hostile_names_and_texts_do_nothing_to_a_terminal() -> None:
    store = MemoryStore()
    rows = [{"id": HOSTILE + str(i), "input": HOSTILE + str(i)} for i in range(3)]
    answers = {row["input"]: 1 for row in rows}
    a = evaluated(store, "[b]\u202ea", answers, rows)
    b = evaluated(store, "[b]\u202eb", dict.fromkeys(answers, 0), rows[:2])
    made = compare(a, b)
    file = io.StringIO()
    Console(file=file, width=80, markup=False, highlight=False).print(comparison_table(made.to_dict()))
    for text in (file.getvalue(), str(made), repr(made)):
        assert "\x1b[2J" not in text
        assert "\u202e" not in text
    assert r"[red]x[/red]\x1b[2J\u202e0" in file.getvalue()
    assert max(map(len, file.getvalue().splitlines())) <= 80


def test_measures_may_be_given_with_their_scorer() -> None:
    store = MemoryStore()
    a, b = evaluated(store, "a", scores([1, 0])), evaluated(store, "b", scores([1, 1]))
    pairs = compare(a, b, metrics=[Measure("score", Mean(range=(0, 1))), "accuracy"]).pairs
    assert [(p["metric"], p["share"]) for p in pairs] == [("mean", True), ("accuracy", True)]


@given(st.integers(0, 1 << 32), st.integers(2, 60), st.sampled_from(["binary", "shares", "clusters", "weights", "r2"]))
def test_a_pair_differs_at_a_level_exactly_where_its_interval_leaves_0_out(seed: int, n: int, kind: str) -> None:
    rng = np.random.default_rng(seed)
    cut, shift = rng.random(2)
    a = rng.random(n).round(2)
    b = np.clip(a + rng.normal(shift / 4, 0.2, n) * (rng.random(n) < cut), 0, 1).round(2)
    a, b = ((a < cut).astype(float), (b < cut).astype(float)) if kind == "binary" else (a, b)
    example = rng.integers(0, n, n) if kind == "clusters" else None
    rows = rows_of(a, b, example, Mean(range=(0, 1), weighted=kind == "weights"))
    rows = replace(rows, weight=rng.integers(1, 4, n).astype(float))
    measured = measure_pair(rows, 0, 1)
    if kind == "r2":
        measured = MetricSample.of(PairedChange(a.mean(), b.mean(), a, b, (-math.inf, 1), n), n, math.inf)
    for level in (0.8, 0.9, 0.95, 0.99):
        low, high = measured.interval(level)
        assert (measured.p <= 1 - level) == (low > 0 or high < 0)


@pytest.mark.slow
def test_simulated_gates_err_at_most_in_five_of_a_hundred_cases() -> None:
    """2,000 pairs of systems on 200 examples that truly are equal, or worse by just the margin."""
    draw = np.random.default_rng(11)
    for margin, mean in ((0.0, False), (0.05, False), (0.0, True)):
        erring = 0
        for _ in range(2000):
            u = draw.random(200)
            a, b = (u < 0.7), np.where(draw.random(200) < 0.5, u, draw.random(200)) < 0.7 - margin
            noise = draw.random((2, 200)) if mean else np.zeros((2, 200))
            rows = rows_of(a + noise[0], b + noise[1])
            erring += bounds(rows, Mean() if mean else Accuracy())[0] > -margin
        assert erring / 2000 <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / 2000)


@pytest.mark.slow
@pytest.mark.parametrize("n", [20, 50, 200])
def test_simulated_bounds_of_graded_and_clustered_rows_err_at_most_in_five_of_a_hundred_cases(n: int) -> None:
    """Many small gains beside rare total losses, small steps both ways, and clusters lost or won whole."""
    draw, metric = np.random.default_rng([13, n]), Mean(range=(0, 1))

    def gains() -> PairedRows:
        gained = draw.random(n) * 0.02
        return rows_of(0.5 + 0 * gained, np.where(draw.random(n) < 3 / n, 0.0, 0.5 + gained))

    def steps() -> PairedRows:
        return rows_of(np.full(n, 0.5), 0.5 + draw.choice([-0.5, -0.25, 0, 0.25], n, p=[0.02, 0.1, 0.8, 0.08]))

    def clusters() -> PairedRows:
        size, chance = draw.integers(1, 11, n), draw.random(n)
        apart = np.select([chance < 2 / n, chance > 1 - 1 / n], [-1.0, 1.0])
        example = np.repeat(np.arange(n), size)
        return rows_of((apart < 0)[example].astype(float), (apart > 0)[example].astype(float), example)

    repeats = simulations(1000)
    for rows, truth in ((gains, 0.01 * (1 - 3 / n) - 0.5 * 3 / n), (steps, -0.015), (clusters, -1 / n)):
        erring = np.mean([bounds(rows(), metric)[0] > truth for _ in range(repeats)])
        assert erring <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / repeats), rows.__name__


def test_a_run_that_is_not_finished_has_no_evaluation_to_compare() -> None:
    store, run = MemoryStore(), "a" * 32
    store.open(create_manifest("runs", run))
    with pytest.raises(SpecError, match="run aaaaaaaaaaaa has not been evaluated"):
        find_evaluations(store, run)


def test_metrics_that_decide_in_an_experiment_decide_in_later_comparisons_too() -> None:
    store, rng = MemoryStore(), np.random.default_rng(3)
    a, b = (evaluated(store, name, scores(rng.integers(0, 2, 40))) for name in "ab")
    measures = [Measure("score", Accuracy()), Measure("score", Mean(range=(0, 1)))]
    origin = {"experiment": "/m.yaml", "until": None}
    first, later = (
        compare(a, b, metrics=measures, **options)
        for options in ({"primary": measures[1], "origin": origin}, {"flips": 5})
    )
    families = [{pair["metric"]: pair["family"] for pair in found.pairs} for found in (first, later)]
    assert families == [{"accuracy": "secondary", "mean": "primary"}] * 2
    alone = compare(a, b, metrics=measures, primary=())
    assert {pair["metric"]: pair["family"] for pair in alone.pairs} == {"accuracy": "primary", "mean": "secondary"}
