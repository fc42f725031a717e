"""How numbers and mathematics in answers are read, and when two of them are equal."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st
from support.chats import Chat
from support.commands import Folder
from support.places import DATA_FOLDER, needs

from evaluand.core.errors import DataError, SpecError
from evaluand.data.dataset import Dataset
from evaluand.evaluation.preflight import check_gradable
from evaluand.evaluation.scorer import Score
from evaluand.evaluation.scorers import math_equal
from evaluand.evaluation.scorers.math_equal import MathEqual
from evaluand.evaluation.scorers.numeric_answer import NumericAnswer

NAN = math.nan
PAIRS = [json.loads(line) for line in Path(__file__).with_name("math_answers.jsonl").read_text().splitlines()]


def graded(scorer: Any, output: Any, expected: Any) -> Score:
    """The score without what was extracted."""
    score: Score = scorer.score(output, expected)
    return score._replace(columns=None)


def extracted(score: Score) -> Any:
    assert score.columns is not None
    return score.columns["extraction"]


# ---------------------------------------------------------------- which number is read


@pytest.mark.parametrize(
    ("text", "label", "number"),
    [
        ("18", "18", 18),
        ("It costs $18.", "18", 18),
        ("$ 18", "18", 18),
        ("US$18", "18", 18),
        ("-$5", "-5", -5),
        ("$-5", "-5", -5),
        ("€1,450,000.", "1,450,000", 1450000),
        ("1_450_000", "1_450_000", 1450000),
        ("1\u202f450\u00a0000\u2009000", "1\u00a0450\u00a0000\u00a0000", 1450000000),
        ("−129025", "-129025", -129025),
        ("+7", "7", 7),
        ("25%", "25", 25),
        ("1,234.56.", "1,234.56", Decimal("1234.56")),
        ("-.5", "-.5", Decimal("-0.5")),
        ("...5", "5", 5),
        ("1.5E-3", "1.5E-3", Decimal("0.0015")),
        ("-1/5", "-1/5", Decimal("-0.2")),
        ("2 1/2", "2 1/2", Decimal("2.5")),
        ("2½ cups", "2 1/2", Decimal("2.5")),
        ("1⁄4", "1/4", Decimal("0.25")),
        ("**18**", "18", 18),
        ("_18_", "18", 18),
        (r"\(18\)", "18", 18),
        ("x=-5", "-5", -5),
        ("a 5% discount", "5", 5),
        ("20% of $50 = $10", "10", 10),
        ("12 of 18 eggs", "18", 18),
        ("v1.2 needs 3 (three) files", "3", 3),
        ("x = - 5", "- 5", -5),
        ("18dollars", "18", 18),
        ("18-year-old", "18", 18),
        ("0018", "0018", 18),
        ("１８", "１８", 18),
        ("<answer>18</answer>", "18", 18),
        ("6 × 3 = <<6*3=18>>18", "18", 18),
        ("1. 18", "18", 18),
        ("H2O covid19 Q1 7", "7", 7),
        ("three dozen: 3 dozen", "3", 36),
        ("-1.8 billion", "-1.8", -1800000000),
        ("5 cm × 3 cm = 15 cm^2", "15", 15),
        (r"\frac{5}{4}", r"\frac{5}{4}", Decimal("1.25")),
        (r"\boxed{\frac12}", r"\frac12", Decimal("0.5")),
        (r"2\frac{1}{2}", r"2\frac{1}{2}", Decimal("2.5")),
        ("15 m^3", "15", 15),
        ("7{,}234", "7,234", 7234),
        (r"9 \times 10^{-2}", r"9 \times 10^{-2}", Decimal("0.09")),
        ("3 x 10^5", "3 x 10^5", 300000),
        ("10⁵", "10^5", 100000),
        (r"\sqrt{16}", r"\sqrt{16}", 4),
    ],
)
def test_a_number_is_read_however_it_is_written(text: str, label: str, number: Any) -> None:
    assert graded(NumericAnswer(), text, number) == Score(1.0, label.replace("- 5", "-5"))
    assert NumericAnswer().score(text, number + 1).value == 0


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "no number in the answer"),
        ("twelve", "no number in the answer"),
        ("x_1", "no number in the answer"),
        ("covid-19", "no number in the answer"),
        ("7 or 8", "several numbers in the answer: 7 or 8"),
        ("7 cm to 8 cm", "several numbers in the answer: 7 cm to 8 cm"),
        ("1, 2", "several numbers in the answer: 1, 2"),
        ("(1, x)", "'(1, x)' cannot be read as a number"),
        ("at least 5", "'least 5' cannot be read as a number"),
        ("4, not 5", "'not 5' cannot be read as a number"),
        ("2 and a half", "'2 and a' cannot be read as a number"),
        ("<think>it is 7 or 8", "the reply ends within its reasoning"),
        ("<think>Is it 5?</think>I do not know.", "no number in the answer"),
        (r"\boxed{7", "the last box does not end"),
        ("- 5 apples", "'- 5 apples' cannot be read as a number"),
        ("3,14 euros", "'3,14 euros' cannot be read as a number"),
    ],
)
def test_what_is_not_a_number_for_sure_abstains_and_cannot_be_expected(text: str, reason: str) -> None:
    score = NumericAnswer().score(text, 5)
    assert score.status == "abstained"
    assert score.reason == reason
    assert extracted(score) == {"candidates": 0, "reason": score.reason}
    with pytest.raises(DataError, match="the expected value is the text"):
        NumericAnswer().check(text)


@pytest.mark.parametrize(
    "text",
    [
        *("10-5", "5 - 3", "(4)-3", "4 -3", "3 + 4", "3 × 6", "10+John's age", "7–8", "5%-6%", "$3 ^ x$"),
        *("1,2,3", "12,34", "1 450", "1,234,5", "3,14", "1/5/2024", "10:30", "1.2.3", "1/0", "(1, x)"),
        *("5x", "5m", "5k", "$1.2M", "5!", "x > 5", "2x = 10", "5 > 4", r"5\pi", r"\le 5", "3 + 4i", "f(5)"),
        *(r"\sqrt12", r"1/2\sqrt{3}", r"2\frac{3}{2}", "2^{1/2}", "(2)^3", r"\sqrt{-4}", r"\sqrt[3]{8}", "2_3"),
        *("5 ft 10", "half of 8", "1/3 of 9", "20% of 50", "5 choose 2", "2 thousand five", "+-5", "5 squared"),
        *("1e9999999999", "10**999999999", "10^{999999999}", "999^{999}"),
        *("2.5 M", "2 thirds", "5 hundredths", "5 millionth", "0.3...", "3..5", r"0.333\ldots", "5'", "12 -> 13"),
        *("5 million and 200 thousand", "5 million 200 thousand", "5 dollars and 50 cents", "5 hours 30 minutes"),
        *(
            "5 in 10",
            "10 in 5",
            "5 (base 8)",
            "5 in base 8",
            "5 (or more)",
            "5 and up",
            "5 pi",
            "5 if x > 3",
            "a minimum of 5",
            "5ish",
        ),
        *("double 5", "square root of 16", "not equal to 5", "not exactly 5", "no longer 5", "cannot be 5", "isn't 5"),
        *("over 5", "more than 5", "up to 5", "the reciprocal of 5", "pi over 5", "one hundred and 5", "two and 1/2"),
        *("5 or more", "5 more than 3", "5 out of 10", "5 per 10", "5 below zero", "2 to the 5th", "5 mod 7"),
    ],
)
def test_what_may_be_more_than_a_number_abstains(text: str) -> None:
    for sentence in ("{}", "It is {} then", r"\boxed{{{}}}", "Answer: {}"):
        assert NumericAnswer().score(sentence.format(text), 5).status == "abstained", sentence


@pytest.mark.parametrize(
    ("text", "extraction"),
    [
        ("18", {"text": "18", "rule": "whole reply", "candidates": 1}),
        ("2 of 18 and 3 of 20", {"text": "20", "rule": "last number", "candidates": 4}),
        (r"\boxed{4}, no, \boxed{5}, since 2 < 3", {"text": "5", "rule": "boxed", "candidates": 2}),
        ("The answer is 18, not 20.", {"text": "18", "rule": "stated", "candidates": 1}),
        ("**Answer:**\n$18$ of 20", {"text": "18", "rule": "stated", "candidates": 1}),
        ("The answer is 3 × 6 = 18.", {"text": "18", "rule": "stated", "candidates": 1}),
        ("3 + 4\n#### 7\nDone in 2 steps", {"text": "7", "rule": "stated", "candidates": 1}),
        ("<think>8</think>The answer is 7.", {"text": "7", "rule": "stated", "candidates": 1}),
        ("<think>\nThe answer is 5\n</think>\n\nDone.", {"text": "5", "rule": "stated", "candidates": 1}),
        ("The answer is that he has 3 cats and 4 dogs.", {"text": "4", "rule": "last number", "candidates": 2}),
        ("Answer:\n1. 18", {"text": "18", "rule": "stated", "candidates": 1}),
        (18, {"text": "18", "rule": "the output itself", "candidates": 1}),
    ],
)
def test_a_box_comes_before_a_statement_and_a_statement_before_other_numbers(text: Any, extraction: Any) -> None:
    assert extracted(NumericAnswer().score(text, 18)) == extraction


@pytest.mark.parametrize(
    "answer",
    [
        "Answer:\n- 5",
        "Answer:\n1) 5\n2) 6",
        "The answer is beyond 5",
        "The answer is 5? No, it is 6!",
        r"\boxed{100,200}",
    ],
)
def test_a_stated_answer_with_marks_of_a_list_or_other_words_before_its_number_abstains(answer: str) -> None:
    assert {NumericAnswer().score(answer, number).status for number in (5, -5, 1, 100200)} == {"abstained"}


def test_two_numbers_that_differ_are_shown_with_their_sizes_and_units() -> None:
    assert NumericAnswer().score("5 billion dollars", "5").explanation == "5 billion $ ≠ 5"


def test_the_first_or_the_only_number_is_taken_on_request() -> None:
    assert NumericAnswer(take="first").score("12 eggs of 18", 12).value == 1
    only = NumericAnswer(take="only")
    assert only.score("18, that is 18.0 or $18", 18).value == 1
    assert graded(only, "18 of 19", 18) == Score.abstained("several numbers in the answer: 18, 19")
    assert NumericAnswer(fractions=False, take="first").score("2 1/2", 2).value == 1
    assert NumericAnswer(fractions=False).score("1/5", 5).value == 1


@pytest.mark.parametrize(
    ("output", "score"),
    [
        ("12 eggs\nA: 18", Score(1.0, "18")),
        ("A: 17\nA: 18", Score(1.0, "18")),
        ("A:18 of 20", Score(0.0, "20", None, "20 ≠ 18")),
        ("18", Score.abstained("no text after 'A:'")),
        ("18 A: none", Score.abstained("no number in the answer")),
        (18, Score(1.0, "18")),
    ],
)
def test_only_what_follows_the_last_marker_is_looked_at(output: Any, score: Score) -> None:
    assert graded(NumericAnswer(after="A:", expected_after="####"), output, "9 + 9 = 18\n#### 18") == score


# ---------------------------------------------------------------- equal numbers


@pytest.mark.parametrize(
    ("output", "expected", "value"),
    [
        (18, 18.0, 1),
        (18.0, "18", 1),
        (0.1, "0.1", 1),
        (0.1 + 0.2, 0.3, 0),
        (Decimal("0.1"), 0.1, 1),
        (10**400, 10**400, 1),
        (10**400, 10**400 + 1, 0),
        ("9" * 60, int("9" * 60), 1),
        ("9" * 59 + "8", int("9" * 60), 0),
        pytest.param("9" * 5000, 18, 0, id="long text"),
        pytest.param(10**5000, 18, 0, id="long integer"),
        ("1e4999", "1e4999", 1),
        ("1e999999999", "5", None),
        ("1/3", "2/6", 1),
        ("1/3", 0.3333333333333333, 0),
        ("-0", 0, 1),
        (r"\frac{5}{4}", r"\frac{3}{4}", 0),
        ("4", r"\frac{3}{4}", 0),
        (r"\frac{15}{\sqrt{3}}", r"5\sqrt{3}", 1),
        ("√75", r"5\sqrt3", 1),
        (r"5\sqrt{3}", r"2\sqrt{3}", 0),
        (r"-5\sqrt{3}", r"5\sqrt{3}", 0),
        (r"\sqrt{2}", "1.4142135623730951", 0),
        ("1.2 million", "1.2 billion", 0),
        ("12 cm^2", "12", 1),
        (r"12\text{ cm}^2", "12 square centimeters", 1),
        ("5 km/h", "5 km per hour", 1),
        ("5 km", "5 m", None),
        ("1000 m", "1 km", None),
        ("$5", "5 cents", None),
        ("25%", "0.25", None),
        ("25%", "2.5", 0),
        ("5 °C", "5 °F", None),
        ("5 degrees Celsius", "5 °C", 1),
        ("5 degrees celsius", "5 degrees fahrenheit", None),
        ("5 MB", "5 GB", None),
        ("3 Mio", "3", 0),
        ("5 million", "5 mln", 1),
        ("70¢", "70 cents", 1),
    ],
)
def test_numbers_are_compared_exactly(output: Any, expected: Any, value: float | None) -> None:
    assert NumericAnswer().score(output, expected).value == value


@pytest.mark.parametrize(
    ("parameters", "output", "expected", "value"),
    [
        ({"tolerance": 0.1}, 1.1, 1, 1),
        ({"tolerance": 0.1}, "1.1000001", 1, 0),
        ({"tolerance": 0.1}, 0.9, 1, 1),
        ({"relative": 0.01}, 101, 100, 1),
        ({"relative": 0.01}, 101.1, 100, 0),
        ({"relative": 0.01}, -101, -100, 1),
        ({"relative": 0.01}, 0.001, 0, 0),
        ({"relative": 0.01, "tolerance": 2}, 102, 100, 1),
        ({"tolerance": 1e-9}, "1e4999", "1", 0),
        ({"tolerance": 0.01}, "1/3", 0.33, 1),
        ({"tolerance": 0.001}, "1.732", r"\sqrt{3}", 1),
    ],
)
def test_a_tolerance_is_absolute_or_relative_to_what_was_expected(
    parameters: dict[str, Any], output: Any, expected: Any, value: float
) -> None:
    assert NumericAnswer(**parameters).score(output, expected).value == value


@pytest.mark.parametrize(
    ("output", "reason"),
    [
        (True, "true is neither a number nor text"),
        (None, "null is neither a number nor text"),
        ([18], "a list is neither a number nor text"),
        ({"answer": 18}, "an object is neither a number nor text"),
        (NAN, "nan is not a finite number"),
        (math.inf, "inf is not a finite number"),
        (Decimal("NaN"), "NaN is not a finite number"),
    ],
)
def test_an_answer_of_another_type_is_abstained_from(output: Any, reason: str) -> None:
    assert graded(NumericAnswer(), output, 18) == Score.abstained(reason)


@pytest.mark.parametrize(
    ("parameters", "expected", "message"),
    [
        ({}, "none", "the expected value is the text 'none': no number"),
        ({}, False, "the expected value is false"),
        ({}, [18], "the expected value is a list"),
        ({}, NAN, "the expected value is the number nan"),
        ({"expected_after": "####"}, "18", "no text after '####'"),
        ({"take": "only"}, "18 or 19", "several numbers"),
    ],
)
def test_an_expected_value_without_a_number_is_a_fault_of_the_data(
    parameters: dict[str, Any], expected: Any, message: str
) -> None:
    with pytest.raises(DataError, match=message):
        NumericAnswer(**parameters).score("18", expected)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"take": "best"}, "take is the text 'best'; give one of first, last, only"),
        ({"after": ""}, "after is the text ''"),
        ({"tolerance": -1}, "tolerance is the integer -1"),
        ({"relative": NAN}, "relative is the number nan"),
    ],
)
def test_numeric_answer_refuses_parameters_that_cannot_work(parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(SpecError, match=message):
        NumericAnswer(**parameters)


# ---------------------------------------------------------------- whatever is written


@given(
    st.integers(-(10**60), 10**60) | st.decimals(allow_nan=False, allow_infinity=False, places=6),
    st.sampled_from(["", ",", "_", "\u00a0", "{,}", ",\\!", "\\,"]),
    st.sampled_from(["{}", "A: {}.", "It is **{}**", "so 5 apples cost {}% or", "for 1: {}, I think", "({})", "={}"]),
)
def test_every_decimal_is_read_back_from_how_it_is_written(number: Any, separator: str, sentence: str) -> None:
    text = f"{Decimal(number):,f}".replace(",", separator)
    assert NumericAnswer().score(sentence.format(text), number).value == 1


WRITTEN: list[Callable[[int, int], str]] = [
    lambda a, b: f"{a}/{b}",
    lambda a, b: rf"\frac{{{a}}}{{{b}}}",
    lambda a, b: rf"$\dfrac{{{a}}}{{{b}}}$.",
    lambda a, b: rf"The answer is \tfrac{{{-a}}}{{{-b}}} cm.",
    lambda a, b: rf"\boxed{{\frac{{{a}\sqrt{{9}}}}{{{3 * b}}}}}",
    lambda a, b: rf"\frac{{{a}}}{{{b}}} \times 10^{{0}}",
    lambda a, b: f"{'-' * (a < 0)}{abs(a) // b}\\frac{{{abs(a) % b}}}{{{b}}}" if abs(a) % b > 0 else str(a // b),
    lambda a, b: f"{a}e3/{b}000",
]


@given(st.integers(-(10**40), 10**40), st.integers(1, 10**40), st.sampled_from(WRITTEN))
def test_every_fraction_is_read_back_from_how_it_is_written(over: int, under: int, write: Any) -> None:
    value = Fraction(over, under)
    scorer = NumericAnswer()
    text = write(over, under)
    assert scorer.score(text, f"{value.numerator}/{value.denominator}").value == 1
    assert scorer.score(text, f"{value.numerator + 1}/{value.denominator}").value == 0


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_every_float_is_read_back_from_its_shortest_form(number: float) -> None:
    assert NumericAnswer().score(f"about {number!r}", number).value == 1


@given(st.text(alphabet="0123456789,._-+$/ eE½−%\u00a0√\\{}^()ambx", max_size=60))
def test_whatever_digits_and_signs_are_strung_together_can_be_read(text: str) -> None:
    score = NumericAnswer(tolerance=0.5, relative=0.1).score(text, 1)
    assert score.value in (0.0, 1.0, None)


@pytest.mark.parametrize(
    "text",
    [
        "\\frac{" * 200_000,
        "{" * 1_000_000,
        "^" * 1_000_000,
        "\\boxed{" * 100_000,
        "\\frac{1}{" * 50_000 + "2" + "}" * 50_000,
        "5 and " * 200_000 + "6",
        "1, 2, " * 150_000,
        "a'" * 300_000 + "^5",
        "<" * 1_000_000 + "5",
        "(" * 500_000 + "5" + ")" * 500_000,
    ],
    ids=lambda text: text[:8],
)
@pytest.mark.parametrize("take", ["last", "only"])
def test_megabytes_of_one_sign_are_no_number(text: str, take: str) -> None:
    assert NumericAnswer(take=take).score(text, 5).status == "abstained"
    assert MathEqual().score(text, 5).status == "abstained"


GSM8K = DATA_FOLDER / "gsm8k" / "example_model_solutions.jsonl"


@needs(GSM8K)
@pytest.mark.parametrize(
    ("model", "right", "abstained"),
    [
        ("6b_finetuning", 286, 4),
        ("6b_verification", 515, 1),
        ("175b_finetuning", 458, 6),
        ("175b_verification", 742, 1),
    ],
)
def test_recorded_answers_to_gsm8k_are_graded_as_their_authors_did(model: str, right: int, abstained: int) -> None:
    recorded = [json.loads(line) for line in GSM8K.read_text().splitlines()]
    kind = NumericAnswer(after="A:", expected_after="A:")
    scores = [kind.score(row[model]["solution"], row["ground_truth"]) for row in recorded]
    assert [score.value == 1 for score in scores] == [row[model]["is_correct"] for row in recorded]
    assert sum(score.value == 1 for score in scores) == right
    assert sum(score.status == "abstained" for score in scores) == abstained


@needs(GSM8K.with_name("test.jsonl"))
def test_expected_answers_of_gsm8k_equal_themselves_in_other_forms_and_no_others() -> None:
    kind = NumericAnswer()
    for row in map(json.loads, GSM8K.with_name("test.jsonl").read_text().splitlines()):
        number = Decimal(row["answer"].rpartition("####")[2].strip().replace(",", ""))
        latex = f"{number:,f}".replace(",", "{,}")
        for form in (f"{number:f}", f"It is ${number:,f}.", rf"\boxed{{{latex}}}", rf"\frac{{{number * 2:f}}}{{2}}"):
            assert kind.score(form, row["answer"]).value == 1
        assert kind.score(f"{number + 1:f}", row["answer"]).value == 0


# ---------------------------------------------------------------- mathematics


@pytest.fixture(scope="module", autouse=True)
def _ends_the_child() -> Iterator[None]:
    yield
    MathEqual().close()


def judge(scorer: Any) -> tuple[Counter[str], list[tuple[str, str]]]:
    """How often a scorer agrees with the judgements, and the pairs where it does not."""
    counts: Counter[str] = Counter()
    wrong = []
    for pair in PAIRS:
        try:
            value = scorer.score(pair["answer"], pair["expected"]).value
        except DataError:
            counts["refused"] += 1
            continue
        counts["abstained" if value is None else "right" if value == pair["equal"] else "wrong"] += 1
        if value not in (None, pair["equal"]):
            wrong.append((pair["answer"], pair["expected"]))
    return counts, wrong


def test_no_number_is_graded_otherwise_than_by_hand() -> None:
    counts, wrong = judge(NumericAnswer())
    assert wrong == []
    assert counts == {"right": 362, "abstained": 44, "refused": 451}


def test_no_mathematics_is_graded_otherwise_than_by_hand() -> None:
    counts, wrong = judge(MathEqual())
    assert wrong == []
    assert counts == {"right": 826, "abstained": 14, "refused": 17}


@pytest.mark.parametrize(
    ("output", "expected", "value"),
    [
        (r"\sqrt{x^2}", "x", 0),
        (r"\sqrt{2}+\sqrt{3}", r"\sqrt{5+2\sqrt{6}}", 1),
        (r"\frac{x}{2}", "1/2x", 0),
        (r"0.\overline{9}", "1", 1),
        ("6.283185307179586", r"2\pi", 0),
        ("(1,0)", "(1,000)", 0),
        ("2, 1", "x=1, y=2", None),
        ("a", "A", 0),
        ("ACB", "ABC", None),
        (r"\text{June 5}", "5", None),
        (r"e^{i\pi}", "-1", 1),
        ("[3,-4]", "(3,-4)", None),
        ("1.2 million", r"12 \cdot 10^5", 1),
        (r"10\sqrt{3}\pi", r"10\sqrt{3}", 0),
        ("3\n4", "4", None),
        (7, "x = 7", 1),
        (True, "7", None),
        ("", "7", None),
        (r"\int_0^1 x\,dx", r"\frac12", None),
        *((text, "x", None) for text in ("x'", "x''", r"x^\prime", "x...")),
        ("A^T", "A", None),
        ("I", "i", None),
        (r"f^{-1}(x)", r"\frac{1}{x}", None),
        ("f(x+1)", "fx+f", None),
        ("f(x)=x^2", "x^2", 1),
        (r"\sin 45", r"\sin 45^\circ", 0),
        (r"\sin 45^\circ", r"\frac{\sqrt2}{2}", 1),
        ("x=2", "y=2", None),
        ("x=2", "y=3", 0),
        ("3=x", "3", 1),
        ("x = 5, y", "5", 0),
        ("no", "on", None),
        ("No", r"\text{no}", 1),
        ("even", "odd", 0),
        ("0.333...", "0.333", None),
        ("5''", "5", None),
        ("1,1,2", "1,2,2", None),
        ("1,1,2", "1,1,2", 1),
        (r"\text{five}", "5", None),
        (r"y=\frac{1}{x}", "xy=1", None),
        ("x^2+y^2=1", "x^2+y^2=2", 0),
        ("x^2+1>0", "x^2+2>0", None),
    ],
)
def test_mathematics_is_equal_exactly_or_not_graded(output: Any, expected: Any, value: float | None) -> None:
    assert MathEqual().score(output, expected).value == value


def test_what_was_compared_is_stored() -> None:
    score = MathEqual().score(r"First \boxed{2}, then $\boxed{x(x+2)}$.", "x^2+2x")
    assert (score.value, score.label) == (1.0, "x(x+2)")
    assert extracted(score) == {"text": "x(x+2)", "rule": "boxed", "candidates": 2}
    assert extracted(MathEqual().score("a\nb", "2")) == {"candidates": 0, "reason": "no answer is boxed or stated"}


def test_a_comparison_that_takes_too_long_abstains_and_the_next_one_works() -> None:
    scorer = MathEqual(timeout=1)
    score = scorer.score("9^{9^{9^{9}}}!", "x+1")
    assert score.value != 1
    assert graded(scorer, "99999!!!", "x+1") == Score.abstained("the comparison took over 1 s")
    assert scorer.score("1+x", "x+1").value == 1


def test_a_child_that_was_killed_is_started_again() -> None:
    scorer = MathEqual()
    assert scorer.score("1+x", "x+1").value == 1
    process = math_equal._CHILD._process
    assert process is not None
    process.kill()
    process.wait()
    assert scorer.score("1+x", "x+1").value == 1


def test_a_comparison_that_needs_too_much_memory_abstains() -> None:
    assert MathEqual(memory=1).score("1+x", "5").status == "abstained"


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os').mkdir('harmed')",
        r"\text{__import__('os').mkdir('harmed')}",
        "x.__class__",
        "open('harmed', 'w')",
        "1 if exec('import os; os.mkdir(\"harmed\")') else 2",
        "lambda: 5",
    ],
)
def test_text_that_is_a_program_is_not_executed(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    MathEqual().close()  # the next child starts in this folder
    assert MathEqual().score(rf"\boxed{{{text}}}", "x+1").value != 1
    assert list(tmp_path.iterdir()) == []
    MathEqual().close()


def test_the_process_that_grades_never_loads_the_library() -> None:
    program = (
        "import sys\nfrom evaluand.evaluation.scorers.math_equal import MathEqual\n"
        "scorer = MathEqual()\nassert scorer.score('1+x', 'x+1').value == 1\nscorer.close()\n"
        "print([name for name in sys.modules if name.startswith(('sympy', 'latex2sympy', 'antlr'))])"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=os.environ, check=True)
    assert ran.stdout == "[]\n"


@pytest.mark.parametrize("expected", ["x +", r"\int x", "1011_2", "some words and x^2", [2]])
def test_an_expected_value_that_is_no_mathematics_is_a_fault_of_the_data(expected: Any) -> None:
    with pytest.raises(DataError, match="the expected value is"):
        MathEqual().score("2", expected)
    with pytest.raises(SpecError, match="no example can be graded"):
        check_gradable(MathEqual(), Dataset.from_rows([{"input": 1, "expected": expected}]), {})


def test_without_the_extra_the_line_that_installs_it_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evaluand.evaluation.scorer.find_spec", lambda name: None)
    with pytest.raises(SpecError, match=r"needs latex2sympy2-extended: pip install 'evaluand\[math\]'"):
        MathEqual()


@pytest.mark.parametrize("scorer", ["numeric_answer", "math_equal"])
@pytest.mark.parametrize(("expected", "requests"), [("x +", 0), ("4", 1)])
def test_no_model_is_asked_where_the_expected_value_cannot_be_read(
    scorer: str,
    expected: str,
    requests: int,
    chat: Callable[..., Chat],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    folder, server = Folder(tmp_path), chat({"text": r"\boxed{4}"})
    (tmp_path / "rows.jsonl").write_text(json.dumps({"question": "2 + 2?", "answer": expected}))
    (tmp_path / "experiment.yaml").write_text(
        "name: sums\ndataset: {path: rows.jsonl, input: question, expected: answer}\n"
        f"tasks: {{small: {{kind: chat, model: {{name: small, url: '{server.url}'}}, prompt: '{{{{ input }}}}'}}}}\n"
        f"scorers: {{right: {{kind: {scorer}}}}}\nmetrics: [accuracy]\n"
    )
    if requests:
        folder.done("run", "experiment.yaml")
    else:
        assert "no example can be graded: the expected value is the text 'x +'" in folder.refused(
            "run", "experiment.yaml"
        )
    assert len(server.asked) == requests
