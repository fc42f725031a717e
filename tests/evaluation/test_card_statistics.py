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

from evaluand.evaluation.judges.cards.card import JudgeCard, make_card
from evaluand.evaluation.judges.cards.from_files import read_labelled_file


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
    pairs = [(round(a, 3) + 0.0001, round(b, 3)) for a, b in pairs]  # which are no grades
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
    if not {row[3] for row in rows} & {one for row in rows for one in row[:3]}:
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
    rows = [{"id": n, "label": 1, "judgement": each} for n, said in enumerate(judgements) for each in said]
    card = card_of(rows)
    repeated = [said for said in judgements if len(said) > 1]
    if not repeated:
        assert card.find("retest_agreement") is None
        return
    same = [np.mean([a == b for a, b in combinations(said, 2)]) for said in repeated]
    assert value(card, "retest_agreement") == pytest.approx(np.mean(same))
    units = [[float(each) for each in said] for said in repeated]
    assert value(card, "retest_alpha") == pytest.approx(alpha(units, unequal), nan_ok=True)


def test_length_bias_and_self_preference_are_those_of_least_squares_and_means() -> None:
    random = np.random.default_rng(0)
    lengths, own = random.integers(1, 2000, 200), random.random(200) < 0.4
    label = random.integers(1, 6, 200)
    said = np.clip(np.round(label + 0.4 * np.log2(lengths) - 4 + own + random.normal(size=200)), 1, 5)
    rows = [
        {"id": n, "label": int(a), "judgement": int(b), "response": "x" * c, "model": "gpt" if d else "other"}
        for n, (a, b, c, d) in enumerate(zip(label, said, lengths.tolist(), own, strict=True))
    ]
    card = make_card(read_labelled_file(rows, "mine", judge_model="gpt"))
    error = said - label
    assert value(card, "length_bias") == pytest.approx(stats.linregress(np.log2(lengths), error).slope)
    assert value(card, "self_preference") == pytest.approx(error[own].mean() - error[~own].mean())


def test_pairs_show_whether_longer_or_own_answers_win_too_often() -> None:
    rows = [
        {"label": 1 + n % 2, "judgement": 1, "response_a": "x" * (9 + n % 3), "response_b": "x" * 10}
        | {"model_a": "gpt" if n % 4 else "other", "model_b": "other"}
        for n in range(60)
    ]
    card = make_card(read_labelled_file(rows, "mine", judge_model="gpt"))
    differ = [n for n in range(60) if n % 3 != 1]
    gained = [(1 if n % 3 == 2 else -1) * (1 - (n % 2 == 0)) for n in differ]  # the judge always says a
    assert value(card, "length_bias") == pytest.approx(np.mean(gained))
    assert value(card, "self_preference") == pytest.approx(np.mean([n % 2 for n in range(60) if n % 4]))
