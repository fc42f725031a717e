"""Word and character error rates, against a table of distances filled cell by cell."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, strategies as st
from support.random_cases import Case, check_cases

from evaluand.aggregation.groups import summarise
from evaluand.core.errors import SpecError
from evaluand.metrics.text_errors import CharacterErrorRate, WordErrorRate, count_edits
from evaluand.predictions.evaluating import evaluate

SCHEMA = {"truth": pa.string(), "prediction": pa.string(), "_weight_": pa.float64()}


def distance(one: Sequence[Any], other: Sequence[Any]) -> int:
    """The distance by its definition: R. Wagner & M. Fischer (1974)."""
    line = list(range(len(other) + 1))
    for row, a in enumerate(one, 1):
        diagonal, line[0] = line[0], row
        for column, b in enumerate(other, 1):
            diagonal, line[column] = (
                line[column],
                min(line[column] + 1, line[column - 1] + 1, diagonal + (a != b)),
            )
    return line[-1]


def drawn(n_cases: int, seed: int) -> list[Case]:
    """Corpora of 1 to 6 short texts of few words; some are empty."""
    generator = np.random.default_rng(seed)
    words = np.array(["a", "ab", "ba", "abc", "é", "x"])
    cases = []
    for _ in range(n_cases):
        n = int(generator.integers(1, 7))
        texts = [[" ".join(generator.choice(words, generator.integers(0, 9))) for _ in range(n)] for _ in range(2)]
        cases.append({"truth": texts[0], "prediction": texts[1], "_weight_": generator.exponential(size=n)})
    return cases


def rate(units: Any, weighted: bool, case: Case) -> float:
    weight = case["_weight_"] if weighted else np.ones(len(case["truth"]))
    pairs = [(units(a), units(b)) for a, b in zip(case["truth"], case["prediction"], strict=True)]
    length = sum(w * len(a) for w, (a, _) in zip(weight, pairs, strict=True))
    edits = sum(w * distance(a, b) for w, (a, b) in zip(weight, pairs, strict=True))
    return edits / length if length else math.nan


def check(n_cases: int) -> int:
    return sum(
        check_cases(
            kind(weighted=weighted),
            drawn(n_cases, int(weighted)),
            lambda case, units=units, weighted=weighted: rate(units, weighted, case),  # type: ignore[misc]
            SCHEMA,
        )
        for kind, units in ((WordErrorRate, str.split), (CharacterErrorRate, str.strip))
        for weighted in (False, True)
    )


def test_random_cases_have_the_values_of_the_reference() -> None:
    assert check(25) > 90


@pytest.mark.slow
def test_two_thousand_random_cases_have_the_values_of_the_reference() -> None:
    assert check(2000) > 7000


@given(st.text("abc", max_size=80), st.text("abc", max_size=80))
def test_edits_are_the_fewest_and_account_for_both_texts(truth: str, prediction: str) -> None:
    edits = count_edits(truth, prediction)
    assert edits.substitutions + edits.deletions + edits.insertions == distance(truth, prediction)
    assert edits.hits + edits.substitutions + edits.deletions == len(truth)
    assert edits.hits + edits.substitutions + edits.insertions == len(prediction)


def test_the_corpus_counts_and_its_edits_are_listed() -> None:
    row = evaluate(["the cat sat", "yes"], ["a cat sat down", "no"], metrics="word_error_rate").rows[0]
    assert row.value == 3 / 4
    counts = {"hits": 2, "substitutions": 2, "deletions": 0, "insertions": 1, "length": 4}
    assert {name: row.data[name] for name in counts} == counts


@pytest.mark.parametrize(
    ("parameters", "value"),
    [
        ({}, 2 / 3),
        ({"lowercase": True}, 1 / 3),
        ({"remove_punctuation": True}, 1 / 3),
        ({"lowercase": True, "remove_punctuation": True}, 0.0),
    ],
)
def test_normalisation_is_a_parameter(parameters: dict[str, Any], value: float) -> None:
    metric = WordErrorRate(**parameters)
    assert evaluate(["The cat, sat"], ["the cat sat"], metrics=metric).rows[0].value == pytest.approx(value)
    assert all(f"{name}=true" in metric.signature for name in parameters)


def test_two_forms_of_an_accent_are_one_character_in_a_normal_form() -> None:
    for form, value in ((None, 2.0), ("NFC", 0.0)):
        metric = CharacterErrorRate(unicode_form=form)  # type: ignore[arg-type]
        assert evaluate(["é"], ["e\u0301"], metrics=metric).rows[0].value == value
    with pytest.raises(SpecError, match="unicode_form is the text 'NFD'; give one of NFC, NFKC"):
        CharacterErrorRate(unicode_form="NFD")  # type: ignore[arg-type]


def test_empty_truths_alone_have_no_rate() -> None:
    row = evaluate(["", " "], ["a", ""], metrics="character_error_rate").rows[0]
    assert math.isnan(row.value)
    assert row.reason == "all truths are empty"
    assert evaluate(["", "b"], ["a", "b"], metrics="character_error_rate").rows[0].value == 1.0


def test_numbers_are_compared_by_their_digits() -> None:
    assert evaluate([1, 22], [1, 21], metrics="word_error_rate").rows[0].value == 0.5
    assert evaluate([1, 22], [1.0, 21.0], metrics="character_error_rate").rows[0].value == pytest.approx(1 / 3)
    both = evaluate([1, 22], {"a": [1, 21], "b": [1, 22]}, metrics="character_error_rate")
    assert [row["value"] for row in both.facts()["metrics"]] == [pytest.approx(1 / 3), 0.0]


def test_shards_merge_to_the_whole() -> None:
    case = {name: [text for each in drawn(20, 2) for text in each[name]] for name in ("truth", "prediction")}
    n = len(case["truth"])
    whole = pa.table({"_index_": np.arange(n), "status": ["scored"] * n, **case})
    for metric in (WordErrorRate(), CharacterErrorRate()):
        [one], [other] = (summarise(parts, [metric]) for parts in ([whole], [whole.slice(0, 9), whole.slice(9)]))
        assert (one.value, one.low, one.high) == pytest.approx((other.value, other.low, other.high), abs=1e-12)
