"""The numbers of cards against independent references: scikit-learn, SciPy, and sums over all pairs and rows."""

from __future__ import annotations

import math
from collections import Counter
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy import stats
from sklearn.metrics import accuracy_score, brier_score_loss, cohen_kappa_score, confusion_matrix, recall_score
from statsmodels.stats.proportion import proportion_confint
from support.thinned import thinned

from evaluand.judges.cards.card import JudgeCard, make_card
from evaluand.judges.cards.measures import DIRECTIONS
from evaluand.matches.labelled_sets import read_labelled_file


def card_of(rows: list[dict[str, Any]], **options: Any) -> JudgeCard:
    return make_card(read_labelled_file(rows, "mine"), **options)


def value(card: JudgeCard, measure: str, part: str = "") -> float:
    found = card.find(measure, part)
    assert found is not None, f"no {measure}"
    return found.value


def alpha(units: list[list[float]], distance: Any) -> float:
    """Krippendorff's alpha from all pairs of ratings, one by one."""
    units = [unit for unit in units if len(unit) > 1]
    every = [rating for unit in units for rating in unit]
    within = sum(2 * distance(a, b) / (len(unit) - 1) for unit in units for a, b in combinations(unit, 2))
    between = sum(2 * distance(a, b) for a, b in combinations(every, 2))
    return 1 - (len(every) - 1) * within / between if between else math.nan


def unequal(a: float, b: float) -> float:
    return float(a != b)


def squared(a: float, b: float) -> float:
    return (a - b) ** 2


labels_and_judgements = st.lists(st.tuples(st.integers(0, 1), st.integers(0, 1)), min_size=2, max_size=40)


@given(labels_and_judgements)
def test_measures_of_right_and_wrong(pairs: list[tuple[int, int]]) -> None:
    people, said = (list(each) for each in zip(*pairs, strict=True))
    card = card_of([{"label": a, "judgement": b} for a, b in pairs])
    assert value(card, "agreement") == pytest.approx(accuracy_score(people, said))
    if len({*people, *said}) > 1:
        assert value(card, "cohen_kappa") == pytest.approx(cohen_kappa_score(people, said), nan_ok=True)
    assert value(card, "krippendorff_alpha") == pytest.approx(alpha([[a, b] for a, b in pairs], unequal), nan_ok=True)
    for name, label in (("sensitivity", 1), ("specificity", 0)):
        n = people.count(label)
        if not n:
            assert math.isnan(value(card, name))
            continue
        found = card.find(name)
        assert found is not None
        right = sum(a == b == label for a, b in pairs)
        assert found.value == pytest.approx(recall_score(people, said, pos_label=label))
        assert (found.low, found.high) == pytest.approx(proportion_confint(right, n, method="wilson"), abs=1e-12)
    assert value(card, "mean_difference") == pytest.approx(np.mean(said) - np.mean(people))
    counted = {(int(row["people"]), int(row["judge"])): row["n"] for row in card.read_rows("confusion")}
    matrix = confusion_matrix(people, said, labels=[0, 1])
    assert all(matrix[cell] == n for cell, n in counted.items())
    assert sum(counted.values()) == len(pairs)


@given(st.lists(st.tuples(st.integers(1, 5), st.integers(1, 5)), min_size=3, max_size=40))
def test_measures_of_grades(pairs: list[tuple[int, int]]) -> None:
    pairs = [(1, 1), (5, 5), *pairs]  # so that both are seen to be on one scale
    people, said = (list(each) for each in zip(*((a + 10, b + 10) for a, b in pairs), strict=True))
    card = card_of([{"label": a, "judgement": b} for a, b in zip(people, said, strict=True)])
    every = Counter([*people, *said])

    def ordinal(a: float, b: float) -> float:
        low, high = sorted((a, b))
        between = sum(n for grade, n in every.items() if low <= grade <= high)
        return (between - (every[a] + every[b]) / 2) ** 2 if a != b else 0.0  # type: ignore[index]

    for weights in ("linear", "quadratic"):
        if len(every) > 1:
            expected = cohen_kappa_score(people, said, weights=weights, labels=range(11, 16))
            assert value(card, "weighted_kappa", weights) == pytest.approx(expected, nan_ok=True)
    units = [[a, b] for a, b in zip(people, said, strict=True)]
    assert value(card, "krippendorff_alpha") == pytest.approx(alpha(units, ordinal), nan_ok=True)  # type: ignore[arg-type]
    assert value(card, "mean_absolute_error") == pytest.approx(np.mean(np.abs(np.subtract(people, said))))
    if len({*people}) > 1 and len({*said}) > 1:
        assert value(card, "spearman") == pytest.approx(stats.spearmanr(people, said).statistic)
        assert value(card, "calibration_slope") == pytest.approx(stats.linregress(said, people).slope)


@given(st.lists(st.tuples(st.integers(0, 1), st.floats(0.01, 0.99)), min_size=5, max_size=40))
def test_measures_of_probabilities(pairs: list[tuple[int, float]]) -> None:
    card = card_of([{"label": a, "judgement": b} for a, b in pairs], threshold=0.5)
    people, said = (np.array(each) for each in zip(*pairs, strict=True))
    if len(set(people)) > 1:
        assert value(card, "brier") == pytest.approx(brier_score_loss(people, said))
    assert value(card, "agreement") == pytest.approx(accuracy_score(people, said >= 0.5))


@given(st.lists(st.tuples(st.floats(-9, 9), st.floats(-9, 9)), min_size=3, max_size=30))
def test_measures_of_numbers(pairs: list[tuple[float, float]]) -> None:
    pairs = [(round(a, 3) + 0.0001, round(b, 3)) for a, b in [(-9, -9), (9, 9), *pairs]]  # which are no grades
    card = card_of([{"label": a, "judgement": b} for a, b in pairs])
    assert value(card, "krippendorff_alpha") == pytest.approx(alpha([[*pair] for pair in pairs], squared), nan_ok=True)
    people, said = zip(*pairs, strict=True)
    if len({*people}) > 1 and len({*said}) > 1:
        assert value(card, "spearman") == pytest.approx(stats.spearmanr(people, said).statistic)


rating = st.one_of(st.none(), st.integers(0, 2))


@given(st.lists(st.tuples(rating, rating, rating, st.integers(0, 2)), min_size=1, max_size=15))
def test_people_among_themselves(rows: list[tuple[int | None, ...]]) -> None:
    names = ("ann", "bob", "cy", "judgement")
    data = [dict(zip(names, row, strict=True)) for row in rows]
    if all(person is None for row in rows for person in row[:3]):
        return
    words = [{name: None if one is None else "abc"[one] for name, one in row.items()} for row in data]
    labelled = [row for row in rows if any(person is not None for person in row[:3])]
    if not {row[3] for row in labelled} & {one for row in labelled for one in row[:3]}:
        return  # which is refused
    card = make_card(read_labelled_file(words, "mine", columns={"label": ["ann", "bob", "cy"]}))
    units = [[float(one) for one in row[:3] if one is not None] for row in rows]
    if any(len(unit) > 1 for unit in units):
        assert value(card, "people_alpha") == pytest.approx(alpha(units, unequal), nan_ok=True)
    majority = {
        number: label
        for number, row in enumerate(rows)
        for label, n in Counter(one for one in row[:3] if one is not None).items()
        if 2 * n > sum(one is not None for one in row[:3])
    }
    if majority:
        agreed = [rows[number][3] == label for number, label in majority.items()]
        assert value(card, "agreement") == pytest.approx(np.mean(agreed))


outcome = st.sampled_from([1, 2, "tie"])


@given(st.lists(st.tuples(st.sampled_from([1, 2]), outcome, outcome), min_size=1, max_size=30))
def test_measures_of_pairs(rows: list[tuple[Any, Any, Any]]) -> None:
    card = card_of([{"label": a, "judgement": b, "swapped": c} for a, b, c in rows])
    assert value(card, "agreement", "first order") == pytest.approx(np.mean([a == b for a, b, _ in rows]))
    assert value(card, "agreement", "second order") == pytest.approx(np.mean([a == c for a, _, c in rows]))
    share = {1: 1.0, 2: 0.0, "tie": 0.5}
    mean = [(share[b] + share[c]) / 2 for _, b, c in rows]
    both = [1 if each > 0.5 else 2 if each < 0.5 else "tie" for each in mean]
    agreed = [a == winner for (a, _, _), winner in zip(rows, both, strict=True)]
    assert value(card, "agreement", "both orders") == pytest.approx(np.mean(agreed))
    for part, said in (("first order", [b for _, b, _ in rows]), ("both orders", both)):
        units = [[share[a], share[b]] for a, b in zip((row[0] for row in rows), said, strict=True)]
        assert value(card, "krippendorff_alpha", part) == pytest.approx(alpha(units, unequal), nan_ok=True)
    first = sum(share[b] + 1 - share[c] for _, b, c in rows)  # `a` was shown first, then `b`
    assert value(card, "position_bias") == pytest.approx(first / (2 * len(rows)))
    assert value(card, "consistency") == pytest.approx(np.mean([{b, c} != {1, 2} for _, b, c in rows]))


@given(st.lists(st.lists(st.integers(0, 1), min_size=1, max_size=4), min_size=1, max_size=15))
def test_retest(judgements: list[list[int]]) -> None:
    rows = [
        {"id": n, "label": 1, "judgement": each, "repeat": i}
        for n, said in enumerate(judgements)
        for i, each in enumerate(said)
    ]
    card = card_of(rows)
    repeated = [said for said in judgements if len(said) > 1]
    if not repeated:
        assert card.find("retest_agreement") is None
        return
    same = [np.mean([a == b for a, b in combinations(said, 2)]) for said in repeated]
    assert value(card, "retest_agreement") == pytest.approx(np.mean(same))
    units = [[float(each) for each in said] for said in repeated]
    assert value(card, "retest_alpha") == pytest.approx(alpha(units, unequal), nan_ok=True)


def slope_of(values: np.ndarray, by: np.ndarray, label: np.ndarray, *, as_number: bool = False) -> float:
    """The coefficient of `by` in the regression with a constant for each label, or with a line for it."""
    beside = [np.ones(len(label)), label] if as_number else [label == each for each in np.unique(label)]
    table = np.stack([by, *beside], axis=1).astype(np.float64)
    return float(np.linalg.lstsq(table, values, rcond=None)[0][0])


@pytest.mark.parametrize("as_number", [False, True])
def test_length_bias_and_self_preference_are_those_of_regressions_on_the_label(as_number: bool) -> None:
    random = np.random.default_rng(0)
    lengths, own = random.integers(1, 2000, 200), random.random(200) < 0.4
    label = random.integers(1, 6, 200) + 0.25 * as_number
    said = np.clip(np.round(label + 0.4 * np.log2(lengths) - 4 + own + random.normal(size=200)), 1, 5)
    rows = [
        {"id": n, "label": a, "judgement": b, "response": "x" * c, "model": "gpt" if d else "other", "group": n // 3}
        for n, (a, b, c, d) in enumerate(zip(label.tolist(), said, lengths.tolist(), own, strict=True))
    ]
    card = make_card(read_labelled_file(rows, "mine", judge_model="gpt", columns={"cluster": "group"}))
    found = card.find("length_bias")
    assert found is not None
    assert found.value == pytest.approx(slope_of(said, np.log2(lengths), label, as_number=as_number))
    assert value(card, "self_preference") == pytest.approx(slope_of(said, own, label, as_number=as_number))
    groups = np.arange(200) // 3
    left_out = np.array(
        [
            slope_of(*(each[groups != group] for each in (said, np.log2(lengths), label)), as_number=as_number)
            for group in np.unique(groups)
        ]
    )
    k = len(left_out)
    half = stats.t.ppf(0.975, k - 1) * math.sqrt((k - 1) / k * np.square(left_out - np.mean(left_out)).sum())
    assert (found.low, found.high) == pytest.approx((found.value - half, found.value + half))


def test_pairs_show_whether_longer_or_own_answers_win_too_often() -> None:
    random = np.random.default_rng(1)
    label, first, second = (random.integers(0, 3, 120) for _ in range(3))
    longer, mine = random.integers(-1, 2, 120), random.integers(-1, 2, 120)
    rows = [
        {"label": ("1", "tie", "2")[a], "judgement": ("1", "tie", "2")[b], "swapped": ("1", "tie", "2")[c]}
        | {"response_a": "x" * (10 + d), "response_b": "x" * 10}
        | {"model_a": "gpt" if e > 0 else "other", "model_b": "gpt" if e < 0 else "other"}
        for a, b, c, d, e in zip(*(each.tolist() for each in (label, first, second, longer, mine)), strict=True)
    ]
    card = make_card(read_labelled_file(rows, "mine", judge_model="gpt"))
    outcome = 1 - (first + second) / 4
    for name, side in (("length_bias", longer), ("self_preference", mine)):
        groups: dict[int, list[float]] = {1: [], -1: [], 0: []}
        for person, won, sign in zip((1 - label).tolist(), outcome.tolist(), side.tolist(), strict=True):
            if sign:
                groups[person * sign].append(won if sign > 0 else 1 - won)
        n, m = len(groups[1]), len(groups[-1])
        of_winners, of_ties = (np.mean(groups[1]) + np.mean(groups[-1])) / 2, np.mean(groups[0])
        weights = [4 * n * m / (n + m), len(groups[0])]
        assert value(card, name) == pytest.approx(np.average([of_winners, of_ties], weights=weights) - 0.5)


def test_a_judge_of_one_order_has_no_biases_but_that_of_position() -> None:
    rows = [
        {
            "label": 1 + n % 2,
            "judgement": 1,
            "response_a": "x",
            "response_b": "long",
            "model_a": "gpt",
            "model_b": "other",
        }
        for n in range(60)
    ]
    card = make_card(read_labelled_file(rows, "mine", judge_model="gpt"))
    for name in ("length_bias", "self_preference"):
        found = card.find(name)
        assert found is not None
        assert math.isnan(found.value)
        assert "judge them in both" in str(found.reason)
    swapped = make_card(
        read_labelled_file([row | {"swapped": 2} for row in rows], "mine", judge_model="gpt")
    )  # which always prefers the first place
    assert (value(swapped, "length_bias"), value(swapped, "self_preference")) == (0.0, 0.0)


def test_answers_without_any_to_compare_them_with_have_no_self_preference() -> None:
    rows = [{"label": n % 2, "judgement": n % 3 % 2, "model": ("other", "gpt")[n % 2]} for n in range(40)]
    found = make_card(read_labelled_file(rows, "mine", judge_model="gpt")).find("self_preference")
    assert found is not None
    assert math.isnan(found.value)
    assert "no label of people is common to both" in str(found.reason)


def test_a_perfect_judge_may_still_have_biases_that_few_answers_do_not_show() -> None:
    rows = [{"label": n % 2, "judgement": n % 2, "model": ("other", "gpt")[n // 2 % 2]} for n in range(40)]
    found = make_card(read_labelled_file(rows, "mine", judge_model="gpt")).find("self_preference")
    assert found is not None
    assert found.value == 0
    assert found.low < -0.1 < 0.1 < found.high


# Errors that depend on nothing but the label


def judged_answers(random: np.random.Generator, n: int, *, favour: float = 0.0) -> list[dict[str, Any]]:
    """Own answers and long ones are better; the judge errs by the label alone, or favours its own."""
    own = random.random(n) < 0.5
    truth = random.random(n) < np.where(own, 0.9, 0.3)
    said = np.where(random.random(n) < np.where(truth, 0.9, 0.8), truth, ~truth) | (own & (random.random(n) < favour))
    length = np.exp(random.normal(5 + truth, 0.7)).astype(int) + 1
    return [
        {"label": int(a), "judgement": int(b), "response": "x" * int(c), "model": "gpt" if d else "other", "id": i}
        for i, (a, b, c, d) in enumerate(zip(truth, said, length, own, strict=True))
    ]


def judged_pairs(random: np.random.Generator, n: int, *, favour: float = 0.0) -> list[dict[str, Any]]:
    """The longer answer, which is the judge's own, is better in 80 %; the judge errs in 20 %, or favours it."""
    label = np.where(random.random(n) < 0.8, 1, 2)
    said = [np.where(random.random(n) < 0.2, 3 - label, label) for _ in range(2)]
    first, second = (np.where(random.random(n) < favour, 1, each) for each in said)
    return [
        {"id": i, "label": a, "judgement": b, "swapped": c, "response_a": "x" * 50, "response_b": "x"}
        | {"model_a": "gpt", "model_b": "other"}
        for i, (a, b, c) in enumerate(zip(label.tolist(), first.tolist(), second.tolist(), strict=True))
    ]


@pytest.mark.slow
@pytest.mark.parametrize("sample", [judged_answers, judged_pairs])
@pytest.mark.parametrize("measure", ["length_bias", "self_preference"])
def test_errors_by_the_label_alone_are_no_bias(sample: Any, measure: str) -> None:
    random = np.random.default_rng(2)
    found = [
        make_card(read_labelled_file(sample(random, 200), "mine", judge_model="gpt")).find(measure) for _ in range(200)
    ]
    values = [each.value for each in found]  # type: ignore[union-attr]
    assert abs(np.mean(values)) < 3 * np.std(values) / math.sqrt(len(values))
    covered = np.mean([each.low <= 0 <= each.high for each in found])  # type: ignore[union-attr]
    assert 0.91 <= covered <= 0.99


@thinned("sample", [judged_answers, judged_pairs], every=2)
def test_a_bias_is_found_and_errors_by_the_label_alone_are_none(sample: Any) -> None:
    fair, biased = (
        make_card(read_labelled_file(sample(np.random.default_rng(3), 3000, favour=each), "mine", judge_model="gpt"))
        for each in (0.0, 0.5)
    )
    one, other = fair.find("self_preference"), biased.find("self_preference")
    assert one is not None
    assert other is not None
    assert one.low <= 0 <= one.high
    assert abs(one.value) < 0.03
    truth = 0.25 if sample is judged_pairs else None  # half of what it would not prefer anyway
    assert other.low > 0.1
    assert truth is None or other.low <= truth <= other.high


def test_every_measure_says_which_values_are_better() -> None:
    cards = [
        card_of([{"label": n % 2, "judgement": said, "id": n} for n in range(30)], threshold=0.5) for said in (0, 0.3)
    ]
    cards += [card_of([{"label": 1 + n % 5 + part, "judgement": 1 + n % 3} for n in range(30)]) for part in (0, 0.5)]
    cards.append(card_of([{"label": "abc"[n % 3], "judgement": "a"} for n in range(30)]))
    cards.append(card_of([{"label": 1 + n % 2, "judgement": 1, "swapped": 2} for n in range(30)]))
    assert {row["measure"] for card in cards for row in card.measures} <= {*DIRECTIONS}
