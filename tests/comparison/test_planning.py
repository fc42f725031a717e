"""Plans promise a power that the tests and bounds have, and say what cannot be known."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy import stats
from statsmodels.stats.proportion import proportion_confint
from support.effort import FEW_EXAMPLES, simulations

from evaluand import (
    DataError,
    Dataset,
    Evaluation,
    Evaluator,
    Measure,
    MemoryStore,
    Policy,
    Runner,
    SpecError,
    compare,
    examples_for_width,
    plan,
)
from evaluand.comparison import drawn_power
from evaluand.comparison.difference import Sample
from evaluand.comparison.drawn_power import DrawnPower
from evaluand.comparison.pairing import pair_rows
from evaluand.comparison.power import (
    detectable_difference,
    fewest_drawn,
    fewest_rows,
    first_that,
    power_of_mcnemar,
    power_of_pairs,
)
from evaluand.comparison.rule import Gate
from evaluand.comparison.significance import mid_mcnemar
from evaluand.metrics.stats.intervals import normal_quantile, paired_score


def all_outcomes(n: int, won: float, lost: float, passes: Any) -> float:
    """The chance of the outcomes that pass, one after the other."""
    chance = 0.0
    for wins, losses in itertools.product(range(n + 1), repeat=2):
        if wins + losses <= n and passes(wins, losses):
            counts = [wins, losses, n - wins - losses]
            chance += float(stats.multinomial.pmf(counts, n, [won, lost, 1 - won - lost]))
    return chance


@pytest.mark.parametrize(("n", "won", "lost"), [(12, 0.6, 0.1), (30, 0.4, 0.1), (40, 0.2, 0.2), (25, 0.5, 0.0)])
def test_the_power_of_a_comparison_counts_all_outcomes(n: int, won: float, lost: float) -> None:
    exact = all_outcomes(n, won, lost, lambda w, k: w > k and mid_mcnemar(w, k).mid_p <= 0.05)
    assert power_of_mcnemar(n, won, lost, 0.95) == pytest.approx(exact, abs=1e-9)


@pytest.mark.parametrize(
    ("rule", "level", "margin"),
    [
        ("accuracy better than base", 0.95, 0.0),
        ("accuracy not worse than base by 0.1 at 90%", 0.9, 0.1),
        ("accuracy equal to base within 0.3 at 80%", 0.8, 0.3),
    ],
)
def test_the_power_of_a_gate_counts_all_outcomes(rule: str, level: float, margin: float) -> None:
    n, won, lost = 30, 0.25, 0.1

    def passes(wins: int, losses: int) -> bool:
        low, high = paired_score(wins, losses, n, 2 * level - 1, correction=0.5)
        return low > -margin and ("equal" not in rule or high < margin)

    exact = all_outcomes(n, won, lost, passes)
    assert 0.1 < exact < 0.95
    found = plan(rule, value=0.75, base=0.6, differ=0.35, at=[n])
    assert dict(found.needs[0].table)[n] == pytest.approx(exact, abs=1e-9)


def test_equality_is_planned_with_both_margins_also_from_a_pilot() -> None:
    """As many rows show that two systems are equal as that neither is worse, with the power of both together."""
    rng = np.random.default_rng(4)
    power = DrawnPower(
        Gate.parse("mean equal to base within 0.05"), 0.95, sample_of(rng.normal(0, 0.2, 80), np.ones(80)), 0.0, 0.05,
        (1.0, -1.0),
    )  # fmt: skip
    one_side = DrawnPower(power.gate, 0.95, power.sample, 0.0, 0.05, (1.0,))
    assert 1 - power(300) == pytest.approx(2 * (1 - one_side(300)), abs=0.04)
    rules = ("accuracy equal to base within 0.05", "accuracy not worse than base by 0.05")
    equal, not_worse = (
        plan(rule, value=0.8, base=0.8, differ=0.2, power=wanted)
        for rule, wanted in zip(rules, (0.8, 0.9), strict=True)
    )
    assert equal.examples == pytest.approx(not_worse.examples, rel=0.02)
    large = plan("accuracy equal to base within 0.01", value=0.8, base=0.8, differ=0.3)
    assert large.examples is not None
    z = (normal_quantile(0.9) + normal_quantile(0.8)) / 0.01
    assert large.examples == pytest.approx(0.3 * z * z, rel=0.02)


@pytest.mark.parametrize(("share", "threshold"), [(0.95, 0.9), (0.7, 0.6), (1.0, 0.9)])
def test_the_power_of_a_threshold_counts_all_outcomes(share: float, threshold: float) -> None:
    found = plan(f"accuracy >= {threshold} at 95%", value=share)
    n = found.examples
    assert n is not None
    right = np.arange(1, n + 1)
    passing = right[stats.beta.ppf(0.05, right, n - right + 1) >= threshold]  # the bound of Clopper and Pearson
    exact = stats.binom.pmf(passing, n, share).sum()
    assert found.needs[0].power == pytest.approx(exact)
    assert exact >= 0.8
    below = plan(f"accuracy <= {1 - threshold:g} at 95%", value=1 - share)
    assert below.examples == n


@settings(max_examples=2 * FEW_EXAMPLES)
@given(st.floats(0.05, 0.6), st.floats(0.2, 1.0), st.sampled_from([0.5, 0.8, 0.9]))
def test_a_plan_has_its_power_and_is_not_wasteful(differ: float, one_sided: float, target: float) -> None:
    difference = differ * one_sided
    base = 0.5 - difference / 2
    found = plan(value=base + difference, base=base, differ=differ, power=target)
    n = found.examples
    assert n is not None
    won, lost = (differ + difference) / 2, (differ - difference) / 2
    assert power_of_mcnemar(n, won, lost, 0.95) >= target
    if n > 100:
        assert power_of_mcnemar(n - 20, won, lost, 0.95) < target


@pytest.mark.parametrize(("n", "won", "lost"), [(33_000, 0.084, 0.076), (60_000, 0.05, 0.046)])
def test_large_plans_have_the_power_of_the_exact_test(n: int, won: float, lost: float) -> None:
    rows = np.arange(n + 1)
    chance = stats.binom.pmf(rows, n, won + lost)
    likely = rows[chance > 1e-12]
    fewest = stats.binom.isf(0.025, likely, 0.5)
    fewest += stats.binom.sf(fewest - 1, likely, 0.5) + stats.binom.sf(fewest, likely, 0.5) > 0.05
    exact = float(chance[likely] @ stats.binom.sf(fewest - 1, likely, won / (won + lost)))
    assert power_of_mcnemar(n, won, lost, 0.95) == pytest.approx(exact, abs=2e-4)


@settings(max_examples=2 * FEW_EXAMPLES)
@given(st.integers(0, 1 << 32), st.integers(3, 60), st.booleans(), st.sampled_from([1.0, -1.0]), st.booleans())
def test_a_drawn_gate_is_decided_as_its_bound_decides(
    seed: int, n: int, mostly_equal: bool, sign: float, weighted: bool
) -> None:
    rng = np.random.default_rng(seed)
    change = np.clip(rng.normal(0.05, 0.2, n), -1, 1) * (rng.random(n) < (0.1 if mostly_equal else 1.0))
    weight = rng.uniform(0.5, 3, n) if weighted else np.ones(n)
    pilot = sample_of(change, weight)
    gate = Gate.parse("mean not worse than base by 0.1 at 95%")
    power = DrawnPower(gate, 0.95, pilot, 0.03 * sign, 0.1, (sign,))
    count = rng.multinomial(n, np.full(n, 1 / n), size=3).astype(float)
    passed = power.passes(count)
    compared = DrawnPower(None, 0.95, pilot, 0.03 * sign, 0.0, (sign,)).passes(count)
    for draw, often in enumerate(count.astype(int)):
        total, size = np.repeat(power.sums, often), np.repeat(power.weight, often)
        drawn = sample_of(total / size, size)
        low, high = drawn.bounds(0.95)
        low, high = (low, high) if sign > 0 else (-high, -low)
        assert passed[draw] == (low > -0.1) or abs(low + 0.1) < 1e-5
        low, high = drawn.ends(0.95)
        assert compared[draw] == (low > 0 or high < 0) or min(abs(low), abs(high)) < 1e-9


def sample_of(change: np.ndarray, weight: np.ndarray) -> Sample:
    """Differences within ±1, each a cluster of its own."""
    n = len(change)
    return Sample.of(np.stack([0 * change, change]), weight, np.arange(n), (0.0, 1.0))


def test_many_clusters_are_drawn_like_few_by_the_normal_distribution(monkeypatch: pytest.MonkeyPatch) -> None:
    change = np.clip(np.random.default_rng(0).normal(0.02, 0.3, 60), -1, 1)
    power = DrawnPower(Gate.parse("mean better than base"), 0.95, sample_of(change, np.ones(60)), 0.02, 0.0, (1.0,))
    normal = power(1300)
    monkeypatch.setattr(drawn_power, "_FEW", 1000)
    assert 0.2 < normal < 0.9
    assert power(1300) == pytest.approx(normal, abs=0.03)


def test_large_plans_agree_with_the_normal_distribution() -> None:
    """On both sides of the number above which it is used."""
    for n in (29_000, 34_000):
        d, differ = 0.008, 0.16
        z = (d * math.sqrt(n) - 1.959964 * math.sqrt(differ)) / math.sqrt(differ - d * d)
        assert power_of_mcnemar(n, (differ + d) / 2, (differ - d) / 2, 0.95) == pytest.approx(
            stats.norm.cdf(z), abs=0.01
        )


@given(st.integers(0, 300), st.integers(0, 200), st.integers(1, 200))
def test_the_first_number_that_passes_is_found(least: int, low: int, more: int) -> None:
    high = low + more
    assert first_that(lambda n: n >= least, low, high) == min(max(least, low), high)


def test_no_number_is_found_where_none_has_the_power() -> None:
    assert fewest_rows(lambda n: 0.5, 0.8) is None


def test_without_the_share_that_differs_the_cautious_case_comes_first() -> None:
    found = plan("accuracy better than base", value=0.85, base=0.80)
    numbers = [need.examples for need in found.needs]
    assert numbers == sorted(numbers, reverse=True)
    assert "err independently" in found.needs[0].assumption


@pytest.mark.parametrize(
    ("rule", "given", "message"),
    [
        ("accuracy better than base", {"value": 0.8, "base": 0.8, "differ": 0.1}, r"difference of \+0 does not fulfil"),
        ("accuracy not worse than base by 0.02", {"value": 0.7, "base": 0.8, "differ": 0.2}, "does not fulfil it"),
        ("accuracy >= 0.9 at 95%", {"value": 0.9}, "a true value of 0.9 does not fulfil it"),
        (None, {"value": 0.8, "base": 0.8, "differ": 0.1}, "no difference to find"),
        ("accuracy equal to base within 0.02", {"value": 0.83, "base": 0.8, "differ": 0.1}, "does not fulfil it"),
        ("accuracy better than base", {"value": 0.8001, "base": 0.8, "differ": 0.3}, "more than 1,000,000 would be"),
    ],
)
def test_what_cannot_come_is_said(rule: str | None, given: dict[str, float], message: str) -> None:
    found = plan(rule, **given)  # type: ignore[arg-type]
    assert found.examples is None
    assert found.needs[0].reason is not None
    with pytest.raises(AssertionError, match=message):
        raise AssertionError(str(found))


@pytest.mark.parametrize(
    ("rule", "given", "message"),
    [
        ("accuracy better than base", {"base": 0.8}, "value is missing"),
        ("accuracy better than base", {"value": 85, "base": 0.8}, "value is a share between 0 and 1, not 85"),
        ("accuracy better than base", {"value": 0.85, "base": 0.8, "differ": 0.01}, "differ on 0.05 to 0.35"),
        ("accuracy >= 0.9", {"value": 0.95}, "add `at 95%`"),
        ("accuracy >= base - 0.02", {"value": 0.8, "base": 0.8}, "ignores chance; write `not worse than`"),
        (None, {"value": 0.9, "base": 0.8, "power": 80}, "power is a share between 0 and 1"),
        ("f1_macro better than base", {"value": 0.9, "base": 0.8}, "such as accuracy, not for f1_macro"),
        ("brier better than base", {"value": 0.9, "base": 0.8}, "brier is no share of right rows; plan from a pilot"),
        (
            "accuracy better than base anytime",
            {"value": 0.9, "base": 0.8},
            "a plan is for one look",
        ),
        ("fpr difference by sex <= 0.1 at 95%", {"value": 0.05}, "there are no plans for disparities"),
        ("nonsense better than base", {"value": 0.9, "base": 0.8}, "no metric is called 'nonsense'"),
        (None, {"value": 0.9, "base": 0.8, "at": [0]}, "numbers of examples are 1 or more"),
    ],
)
def test_faults_say_what_to_do(rule: str | None, given: dict[str, Any], message: str) -> None:
    with pytest.raises(SpecError, match=message):
        plan(rule, **given)


def test_the_rows_for_a_width_are_those_of_the_score_interval() -> None:
    for width, share in ((0.04, 0.9), (0.1, 0.5), (0.02, 1.0)):
        n = examples_for_width(width, share)
        low, high = (proportion_confint(share * k, k, method="wilson") for k in (n, n - 1))
        assert low[1] - low[0] <= width + 1e-9 < high[1] - high[0] + 1e-6
    with pytest.raises(SpecError, match="width is a share between 0 and 1"):
        examples_for_width(4, 0.9)


def evaluations(
    scores: np.ndarray, clusters: int | None = None, replications: int = 1
) -> tuple[Evaluation, Evaluation]:
    """Two systems with scores (systems × examples × replications)."""
    rows = [{"input": str(i)} | ({"document": i % clusters} if clusters else {}) for i in range(scores.shape[1])]
    data = Dataset.from_rows(rows, input="input", **({"cluster": "document"} if clusters else {}))
    runner = Runner(MemoryStore(), Policy(concurrency=1))  # the n-th call of an example is its n-th replication
    made = []
    for name, own in zip(("base", "new"), scores, strict=True):
        calls: dict[str, int] = {}

        def answer(text: str, own: np.ndarray = own, calls: dict[str, int] = calls) -> float:
            calls[text] = calls.get(text, -1) + 1
            return float(own[int(text), calls[text] % own.shape[1]])

        run = runner.run(answer, data, replications=replications)
        made.append(Evaluator().evaluate(run, {"score": lambda output: output}, name=name))
    return made[0], made[1]


def test_the_power_of_a_pilot_s_plan_is_an_average_over_what_it_leaves_open() -> None:
    """40 rows won, 10 lost, 50 tied: shares with a uniform prior."""
    base = np.repeat([0.0, 1.0, 1.0], [40, 10, 50])
    new = np.repeat([1.0, 0.0, 1.0], [40, 10, 50])
    pilot = evaluations(np.stack([base, new])[:, :, None])
    average, as_seen, *_ = plan("accuracy better than base", pilot=pilot).needs
    assert average.examples is not None
    assert as_seen.examples is not None
    assert average.examples > as_seen.examples
    shares = np.random.default_rng(0).dirichlet([41, 51, 11], 400)
    powers = [power_of_pairs(0.95, 0.0, average.examples, won, lost) for won, _, lost in shares]
    assert average.power == pytest.approx(np.mean(powers), abs=0.03)


def test_a_pilot_that_leaves_the_question_open_says_with_which_chance_it_holds() -> None:
    base, new = np.repeat([0.0, 1.0, 1.0], [6, 4, 30]), np.repeat([1.0, 0.0, 1.0], [6, 4, 30])
    found = plan("accuracy better than base", pilot=evaluations(np.stack([base, new])[:, :, None]))
    assert found.examples is None
    assert "whether it is true: 70 % that it is" in str(found)


def test_a_binary_pilot_gives_the_shares() -> None:
    rng = np.random.default_rng(0)
    base = rng.random(150) < 0.7
    new = np.where(rng.random(150) < 0.15, ~base, base) | (rng.random(150) < 0.1)
    pilot = evaluations(np.stack([base, new]).astype(float)[:, :, None])
    pair = compare(*pilot, metrics="accuracy").pairs[0]
    found = plan("accuracy better than base", pilot=pilot)
    differ = (pair["won"] + pair["lost"]) / 150
    same = plan(
        "accuracy better than base",
        value=0.5 + pair["difference"] / 2,
        base=0.5 - pair["difference"] / 2,
        differ=differ,
    )
    assert found.needs[1].examples == same.examples
    assert [need.difference for need in found.needs[1:]] == pytest.approx(
        [pair["difference"], found.needs[2].difference, found.needs[3].difference]
    )
    assert found.needs[2].difference < pair["difference"] < found.needs[3].difference


@pytest.mark.slow
def test_a_pilot_with_replications_says_whether_more_would_help() -> None:
    rng = np.random.default_rng(2)
    level = rng.normal(0.5, 0.02, (1, 40, 1)) + np.array([0.0, 0.06])[:, None, None]
    noisy = evaluations(level + rng.normal(0, 0.3, (2, 40, 4)), replications=4)
    found = plan("mean better than base", pilot=noisy, metric=_mean())
    assert found.variance is not None
    assert found.variance.components["replications"] == pytest.approx(2 * 0.3**2, rel=0.2)
    assert found.variance.components["examples"] < 0.02
    options = {each["replications"]: each for each in found.variance.options}
    assert options[4]["examples"] == pytest.approx(next(need.examples for need in found.needs if need.examples), abs=1)
    assert options[8]["examples"] < options[1]["examples"]
    assert "% of the variance is between replications" in found.to_dict()["variance"]["verdict"]


def grader(scores: np.ndarray) -> Callable[[int], float]:
    def grade(output: int) -> float:
        if np.isnan(scores[output]):
            raise ValueError("no grade")
        return float(scores[output])

    return grade


def judged(
    scores: np.ndarray, store: MemoryStore, judges: Sequence[str] = ("first", "second")
) -> tuple[Evaluation, Evaluation]:
    """Two systems with scores (systems × examples × judges)."""
    data = Dataset.from_rows([{"input": i} for i in range(scores.shape[1])])
    made = []
    for name, own in zip(("base", "new"), scores, strict=True):
        run = Runner(store).run(lambda place: place, data)
        scorers = {judge: grader(own[:, place]) for place, judge in enumerate(judges)}
        made.append(Evaluator(store).evaluate(run, scorers, name=name))
    return made[0], made[1]


def variants(of_variants: float, of_judges: float) -> list[tuple[Evaluation, Evaluation]]:
    """Three variants of two systems, .3 apart on average, graded by two judges."""
    rng, store = np.random.default_rng(0), MemoryStore()
    by_judge, pairs = of_judges * np.array([1, -1]), []
    for by_variant in of_variants * np.array([1, 0, -1]):
        base = rng.normal(0, 0.1, (80, 2))
        new = base + 0.3 + by_variant + by_judge + rng.normal(0, 0.2, (80, 2))
        pairs.append(judged(np.stack([base, new]), store))
    return pairs


def test_a_pilot_with_variants_and_judges_says_what_more_examples_cannot_remove() -> None:
    pairs = variants(0.3, 0.0)
    found = plan("mean better than base", pilot=pairs, scorer=["first", "second"], metric=_mean())
    assert found.variance is not None
    assert found.variance.sizes == {"variants": 3, "judges": 2, "replications": 1}
    assert {*found.variance.components} == {
        "examples", "variants", "judges", "examples × variants", "examples × judges", "variants × judges",
        "examples × variants × judges",
    }  # fmt: skip
    differences = np.array(
        [
            [compare(*pair, metrics=[Measure(judge, _mean())]).pairs[0]["difference"] for judge in ("first", "second")]
            for pair in pairs
        ]
    )
    assert found.needs[0].difference == pytest.approx(differences.mean())
    assert found.variance.components["variants"] == pytest.approx(differences.mean(axis=1).var(ddof=1), rel=0.05)
    own, more_variants, more_judges = found.variance.options
    assert own["remaining_error"] == pytest.approx(np.sqrt(found.variance.components["variants"] / 3), rel=0.1)
    assert (
        more_variants["remaining_error"] < own["remaining_error"] == pytest.approx(more_judges["remaining_error"], 0.1)
    )
    assert more_judges["judgements"] == 4 * more_judges["examples"] * 3
    assert "for variants and judges in general, not just these, more examples leave" in found.variance.verdict
    [judges] = [part for part in found.variance.verdict.split("; ") if "between judges" in part]
    assert judges.startswith("0 %")


@pytest.mark.slow
def test_judges_that_disagree_on_the_difference_are_named() -> None:
    found = plan("mean better than base", pilot=variants(0.0, 0.5), scorer=["first", "second"], metric=_mean())
    assert found.variance is not None
    assert found.variance.components["judges"] > 0.05 > 2 * found.variance.components["variants"]


@pytest.mark.slow
def test_only_rows_that_every_judge_and_variant_has_are_planned_from() -> None:
    pairs = variants(0.0, 0.0)
    scores = np.zeros((2, 80, 2))
    scores[1] += np.linspace(0.1, 0.5, 80)[:, None]
    scores[0, 40:, 1] = np.nan
    fewer = [judged(scores, pairs[0][0].store), pairs[1]]
    found = plan("mean better than base", pilot=fewer, scorer=["first", "second"], metric=_mean())
    known = [compare(*pair, metrics=[Measure("second", _mean())]).pairs[0]["n_used"] for pair in fewer]
    assert known == [40, 80]
    shared = scores[1, :40, 0].mean()
    rows = [pair_rows(pairs[1], judge, _mean()) for judge in ("first", "second")]
    other = np.mean([(one.value[1] - one.value[0])[one.index[0] < 40] for one in rows])
    assert found.needs[0].difference == pytest.approx((shared + other) / 2)


def _mean() -> Any:
    from evaluand.metrics.column_statistics import Mean

    return Mean(direction="higher", range=(-5.0, 5.0))


def test_a_gate_that_would_be_refused_has_no_plan() -> None:
    pilot = evaluations(np.random.default_rng(0).random((2, 50, 1)))
    with pytest.raises(
        SpecError, match=r"no bound holds at a level .* \{kind: mean, scorer: score, range: \[0, 10\]\}"
    ):
        plan("mean better than base", pilot=pilot)
    assert plan("mean better than base", pilot=pilot, metric=_mean()).needs


def test_a_pilot_that_tells_no_spread_is_refused() -> None:
    with pytest.raises(DataError, match="it tells no spread"):
        plan("accuracy better than base", pilot=evaluations(np.ones((2, 50, 1))))
    with pytest.raises(DataError, match="5 independent rows"):
        plan("accuracy better than base", pilot=evaluations(np.eye(2, 5)[:, :, None]))


def test_what_would_be_detected_is_always_known_for_rows_enough() -> None:
    """Where few rows differ too: a difference needs as many rows that differ."""
    assert math.isnan(detectable_difference(0.0, 4, 0.95, 0.8))
    for discordance in (0.0, 0.02, 0.1, 0.5):
        d = detectable_difference(discordance, 100, 0.95, 0.8)
        differ = max(d, discordance)
        assert power_of_mcnemar(100, (differ + d) / 2, (differ - d) / 2, 0.95) == pytest.approx(0.8, abs=0.01)


@pytest.mark.slow
@pytest.mark.parametrize(("shape", "clusters"), [("graded", None), ("graded", 60), ("skewed", None)])
def test_the_power_that_a_pilot_promises_holds(shape: str, clusters: int | None) -> None:
    """With a large pilot, whose spread is the true one, the gate is asked on fresh data of the planned size."""
    rng = np.random.default_rng(5)

    def draw(n: int) -> np.ndarray:
        common = (
            rng.normal(0, 1, clusters or n)[np.arange(n) % (clusters or n)]
            if clusters is None
            else (np.repeat(rng.normal(0, 1, -(-n // 10)), 10)[:n])
        )
        noise = rng.normal(0, 1, (2, n)) + np.stack([0 * common, 0.5 * common])
        score = 1 / (1 + np.exp(-(noise + common))) if shape == "graded" else rng.beta(0.3, 2, (2, n))
        return np.clip(score + np.array([[0.0], [0.03]]), 0, 1)

    from evaluand.comparison.rule import Gate

    def sample(n: int) -> Sample:
        change = np.diff(draw(n), axis=0)[0]
        cluster = np.arange(n) // (10 if clusters else 1)
        return Sample.of(np.stack([0 * change, change]), np.ones(n), cluster, (0.0, 1.0))

    gate = Gate.parse("mean not worse than base by 0.02")
    pilot = sample(20_000)
    power = DrawnPower(gate, 0.95, pilot, pilot.value, 0.0, (1.0,))
    planned = fewest_drawn(power, 0.8)
    assert planned is not None
    rows = planned * (10 if clusters else 1)
    repeats = simulations(1500)
    held = np.mean([sample(rows).bounds(0.95)[0] > -0.02 for _ in range(repeats)])
    print(f"{shape}, {clusters}: {planned} promised {power(planned):.3f}, held {held:.3f}")  # noqa: T201
    assert held >= 0.8 - 2 * math.sqrt(0.8 * 0.2 / repeats)
    assert power(planned - planned // 20 - 1) < 0.85  # fewer would not do, or the bound has a step
