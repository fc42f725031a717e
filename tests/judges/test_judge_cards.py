"""Cards of judges: what they are measured on, what they say, and what they are bound to."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st
from support.labelled import Rounding, judge_numbers, label_numbers, play_numbers
from support.matches import play_runs, table_judge

from evaluand import (
    DataError,
    Dataset,
    DirectoryStore,
    EvaluandWarning,
    Evaluator,
    Matcher,
    MemoryStore,
    NotFound,
    Runner,
    SpecError,
)
from evaluand.comparison.gates import check_gates
from evaluand.evaluation.scorer import Score, Scorer
from evaluand.judges.cards.card import JudgeCard, make_card
from evaluand.judges.cards.from_evaluation import read_labelled_evaluation
from evaluand.judges.cards.standing import correct_mean, standings
from evaluand.judges.cards.tuning import tune_judges
from evaluand.matches.labelled_sets import read_labelled_file, read_labelled_matches
from evaluand.matches.people import Judged, match_by_people, pairs_to_judge
from evaluand.report.verification import verify

NUMBERS = [*range(0, 100, 2), *range(1, 100, 2)]  # the judge takes the upper half for right


def truth(number: int) -> int:
    """People disagree with the judge about 40 to 49, which are right, and 60 to 64, which are wrong."""
    return int(40 <= number < 60 or number >= 65)


def card_of(rows: list[dict[str, Any]], **options: Any) -> JudgeCard:
    return make_card(read_labelled_file(rows, "mine"), **options)


def value(card: JudgeCard, measure: str, part: str = "") -> float:
    found = card.find(measure, part)
    assert found is not None, f"no {measure}"
    return found.value


# What is measured


def test_right_and_wrong_are_counted() -> None:
    rows = [{"label": truth(n), "judgement": n >= 50} for n in range(100)]
    card = card_of(rows)
    assert value(card, "agreement") == 0.85
    assert value(card, "sensitivity") == pytest.approx(45 / 55)
    assert value(card, "specificity") == pytest.approx(40 / 45)
    assert value(card, "mean_difference") == pytest.approx(-0.05)
    assert {(row["people"], row["judge"]): row["n"] for row in card.read_rows("confusion")} == {
        ("0", "0"): 40,
        ("0", "1"): 5,
        ("1", "0"): 10,
        ("1", "1"): 45,
    }


def test_a_confusion_is_in_the_order_of_the_labels() -> None:
    rows = [{"label": 2 + 9 * (n % 2), "judgement": None if n < 4 else 11 - n % 3 * 4} for n in range(40)]
    found = card_of(rows).read_rows("confusion")
    assert list(dict.fromkeys(row["people"] for row in found)) == ["2", "11"]
    assert list(dict.fromkeys(row["judge"] for row in found)) == ["3", "7", "11", "abstained"]
    assert sum(row["n"] for row in found) == 40


@pytest.mark.parametrize(("said", "positive"), [("good", "good"), (1, "good"), ("Good ", "GOOD")])
def test_a_word_may_mean_right(said: Any, positive: str) -> None:
    other = 0 if said == 1 else "bad"
    rows = [{"label": "good" if n % 2 else "poor", "judgement": said if n % 4 else other} for n in range(40)]
    card = card_of(rows, positive=positive)
    assert (value(card, "sensitivity"), value(card, "specificity")) == (1.0, 0.5)


def test_words_without_an_order_have_a_recall_each() -> None:
    rows = [{"label": "abc"[n % 3], "judgement": "abc"[n % 3 if n < 30 else 0]} for n in range(60)]
    card = card_of(rows)
    assert value(card, "agreement") == pytest.approx(40 / 60)
    assert [value(card, "recall", label) for label in "abc"] == [1.0, 0.5, 0.5]
    assert card.find("sensitivity") is None


def test_grades_count_by_their_distance() -> None:
    near = [{"label": n % 5, "judgement": min(n % 5 + 1, 4)} for n in range(60)]
    far = [{"label": n % 5, "judgement": (n % 5 + 3) % 5} for n in range(60)]
    close, distant = card_of(near), card_of(far)
    assert value(close, "agreement") == 0.2
    assert value(distant, "agreement") == 0.0
    assert value(close, "weighted_kappa", "quadratic") > 0.6 > 0 > value(distant, "weighted_kappa", "quadratic")
    assert value(close, "mean_absolute_error") == pytest.approx(0.8)
    assert value(close, "mean_difference") == pytest.approx(0.8)


def test_words_in_an_order_are_grades() -> None:
    order = ["poor", "fair", "good"]
    rows = [{"label": order[n % 3], "judgement": order[min(n % 3 + 1, 2)]} for n in range(60)]
    assert value(card_of(rows, order=order), "mean_absolute_error") == pytest.approx(2 / 3)
    with pytest.raises(SpecError, match=r"the order poor, good lacks fair; name all labels"):
        card_of(rows, order=["poor", "good"])
    with pytest.raises(SpecError, match="names a label twice"):
        card_of(rows, order=["poor", "fair", "good", "Good"])


def test_probabilities_are_calibrated_or_not() -> None:
    rows = [{"label": int(n % 10 < 3 + 4 * (n % 2)), "judgement": 0.3 + 0.4 * (n % 2)} for n in range(100)]
    card = card_of(rows)
    said, labels = ([row[name] for row in rows] for name in ("judgement", "label"))
    assert value(card, "calibration_slope") == pytest.approx(np.polyfit(said, labels, 1)[0])
    assert math.isnan(value(card, "sensitivity"))
    assert card.find("sensitivity").reason.startswith("the judge gives numbers, not right or wrong")  # type: ignore[union-attr]
    decided = card_of(rows, threshold=0.5)
    assert value(decided, "sensitivity") == pytest.approx(
        sum(row["label"] * (row["judgement"] >= 0.5) for row in rows) / sum(row["label"] for row in rows)
    )
    assert value(card, "brier") == pytest.approx(sum((r["label"] - r["judgement"]) ** 2 for r in rows) / 100)


def test_several_people_decide_together() -> None:
    people = [(1, 1, 0), (0, 0, 0), (1, 0, None), (1, 1, 1)] * 10
    rows = [{"ann": a, "bob": b, "cy": c, "judgement": 1} for a, b, c in people]
    card = make_card(read_labelled_file(rows, "mine", columns={"label": ["ann", "bob", "cy"]}))
    assert value(card, "agreement") == pytest.approx(20 / 30)  # the third has no majority
    assert value(card, "disputed") == 0.25
    assert 0 < value(card, "people_alpha") < 1


def test_what_a_judge_did_not_judge_is_counted() -> None:
    rows = [{"label": n % 2, "judgement": None if n < 10 else n % 2} for n in range(40)]
    card = card_of(rows)
    assert (value(card, "abstained"), value(card, "agreement")) == (0.25, 1.0)
    assert sum(row["n"] for row in card.read_rows("confusion") if row["judge"] == "abstained") == 10


def test_a_judge_that_is_asked_again_may_say_something_else() -> None:
    rows = [{"id": n // 2, "label": 1, "judgement": int(n < 30 or n % 2), "repeat": n % 2} for n in range(80)]
    card = card_of(rows)
    assert value(card, "retest_agreement") == pytest.approx(15 / 40)
    assert card.manifest["spec"]["items"] == 40


def test_a_judge_may_prefer_long_answers_and_its_own() -> None:
    rows = [
        {
            "label": 0,
            "judgement": int(n % 4 == 3),
            "response": "x" * (400 if n % 4 == 3 else 100),
            "model": "gpt" if n % 2 else "other",
            "id": n,
        }
        for n in range(80)
    ]
    card = make_card(read_labelled_file(rows, "mine", judge_model="gpt"))
    assert value(card, "length_bias") == pytest.approx(0.5)  # by two doublings
    assert value(card, "self_preference") == pytest.approx(0.5)
    assert card_of(rows).find("self_preference") is None


def test_answers_to_one_example_count_less_than_independent_ones() -> None:
    rows = [{"id": n, "label": 1, "judgement": int(n % 5 > 0)} for n in range(100)]
    grouped = [row | {"group": row["id"] % 5} for row in rows]
    alone = card_of(rows).find("agreement")
    together = make_card(read_labelled_file(grouped, "mine", columns={"cluster": "group"})).find("agreement")
    assert alone is not None
    assert together is not None
    assert alone.value == together.value
    assert together.high - together.low > 2 * (alone.high - alone.low)


def test_the_worst_misses_come_first() -> None:
    rows = [{"id": f"r{n}", "label": 3, "judgement": 3 + n % 3, "explanation": f"why {n}"} for n in range(30)]
    first = card_of(rows).misses[0]
    assert (first["id"], first["people"], first["judge"], first["difference"]) == ("r2", "3", "5", 2.0)
    assert first["explanation"] == "why 2"


def test_a_miss_on_which_people_disagree_has_what_each_says() -> None:
    rows = [{"id": f"r{n}", "ann": n % 2, "bob": 0, "cid": None, "judgement": 0} for n in range(4)]
    card = make_card(read_labelled_file(rows, "mine", columns={"label": ["ann", "bob", "cid"]}))
    assert [(miss["id"], miss["people"]) for miss in card.misses] == [
        ("r1", "disagree (0, 1)"),
        ("r3", "disagree (0, 1)"),
    ]
    assert "nan" not in str(card.to_dict()["misses"])


# What is refused


@pytest.mark.parametrize(
    ("rows", "options", "message"),
    [
        ([{"label": "yes", "judgement": 1}], {}, "people say yes and the judge says 1.0, so no label is the same"),
        ([{"label": "yes", "judgement": "yes"}], {"positive": "yep"}, "no label is 'yep'"),
        ([{"label": "good", "judgement": "correct"}], {"positive": "good"}, "says correct: no word is the same; write"),
        ([{"label": n % 5, "judgement": "good"} for n in range(9)], {"positive": "good"}, "people give numbers"),
        ([{"label": 1, "judgement": "good"}], {}, "name the word that means right: `--positive WORD`"),
        ([{"label": 1, "judgement": 1}], {"positive": "yes"}, "no label is 'yes': labels are numbers"),
        ([{"label": 1, "judgement": 1}], {"confidence": 95}, "must lie between 0 and 1"),
    ],
)
def test_labels_that_cannot_be_compared_are_refused(
    rows: list[dict[str, Any]], options: dict[str, Any], message: str
) -> None:
    with pytest.raises((DataError, SpecError), match=message.replace("?", r"\?")):
        card_of(rows, **options)


def test_words_of_one_scale_may_differ_if_their_order_says_so() -> None:
    rows = [{"label": "good", "judgement": "fair"}] * 30
    with pytest.raises(DataError, match=r"if these are words of one scale, list all of them: `--order LOWEST,…,HIGH"):
        card_of(rows)
    assert value(card_of(rows, order=["poor", "fair", "good"]), "mean_difference") == -1.0


def test_words_that_people_meant_otherwise_are_replaced() -> None:
    rows = [{"label": ["good", "bad"][n % 2], "judgement": ["correct", "incorrect"][n % 4 // 2]} for n in range(40)]
    labelled = read_labelled_file(rows, "mine").with_words({"GOOD": "correct", "bad": "incorrect"})
    assert value(make_card(labelled, positive="correct"), "sensitivity") == 0.5


FIVE = [1, 2, 3, 4, 5]


@pytest.mark.parametrize(
    ("people", "judge", "message"),
    [
        ([0, 1], FIVE, r"people say right or wrong .*numbers from 1 to 5.*such as `--threshold 5`"),
        ([0, 1], [0, 100], r"people say right or wrong .*numbers from 0 to 100"),
        (FIVE, [0, 1], r"people give numbers from 1 to 5 and the judge gives numbers from 0 to 1, which are different"),
        (FIVE, [0.0, 0.25, 0.5, 1.0], r"people give numbers from 1 to 5 and the judge gives numbers from 0 to 1"),
        (
            [0, 1, 2, 3, 4],
            [0, 1],
            r"from 0 to 4 .* from 0 to 1, .*list all of its grades, such as `--order 0,1,2,3,4`",
        ),
        (FIVE, [60, 80], r"from 1 to 5 and the judge gives numbers from 60 to 80"),
    ],
)
def test_numbers_on_different_scales_are_refused(people: list[Any], judge: list[Any], message: str) -> None:
    rows = [{"label": people[n % len(people)], "judgement": judge[n % len(judge)]} for n in range(40)]
    with pytest.raises(DataError, match=message):
        card_of(rows)


def test_grades_of_people_are_divided_for_a_judge_that_says_right_or_wrong() -> None:
    rows = [{"label": FIVE[n % 5], "judgement": int(n % 5 > 1)} for n in range(40)]
    labelled = read_labelled_file(rows, "mine")
    with pytest.raises(DataError, match="give the grade of people that means right, such as `--people-threshold 5`"):
        make_card(labelled)

    card = make_card(labelled.with_threshold(4))

    assert value(card, "sensitivity") == 1.0
    assert value(card, "specificity") == pytest.approx(2 / 3)
    words = read_labelled_file([{"label": "good", "judgement": 1}], "mine")
    with pytest.raises(SpecError, match="`--people-threshold` divides grades, but people wrote 'good'"):
        words.with_threshold(4)


def test_a_threshold_or_an_order_makes_scales_fit() -> None:
    rows = [{"label": n % 2, "judgement": 5 if n % 4 else 1} for n in range(40)]
    card = card_of(rows, threshold=4)
    assert value(card, "specificity") == 0.5
    assert value(card, "mean_difference") == 0.25  # of verdicts
    assert {row["difference"] for row in card.misses} == {1.0}
    harsh = [{"label": n % 5, "judgement": n % 2} for n in range(40)]
    graded = card_of(harsh, order=["0", "1", "2", "3", "4"])
    assert value(graded, "mean_absolute_error") == pytest.approx(np.mean([abs(n % 5 - n % 2) for n in range(40)]))


@pytest.mark.parametrize(
    ("labels", "options", "given"),
    [
        ([1, 3, 5], {}, "grades"),
        ([0, 1], {"order": ["0", "1", "3", "5"]}, "grades"),
        ([0.5, 1.5], {}, "numbers"),
        (["good", "bad"], {}, "words"),
    ],
)
def test_a_threshold_is_refused_where_nobody_says_right_or_wrong(
    labels: list[Any], options: dict[str, Any], given: str
) -> None:
    rows = [{"label": labels[n % len(labels)], "judgement": labels[n % len(labels)]} for n in range(30)]
    with pytest.raises(
        SpecError, match=f"people give {given}, and `--threshold` is for labels that say right or wrong"
    ):
        card_of(rows, threshold=3, **options)


def test_a_threshold_of_a_judge_that_writes_words_is_refused() -> None:
    rows = [{"label": ["good", "bad"][n % 2], "judgement": ["good", "bad"][n % 3 % 2]} for n in range(30)]
    with pytest.raises(SpecError, match="the judge gives words, and `--threshold` is for a judge that gives numbers"):
        card_of(rows, positive="good", threshold=5)


@pytest.mark.parametrize("threshold", [math.nan, math.inf, -math.inf])
def test_a_threshold_that_no_number_or_every_number_reaches_is_refused(threshold: float) -> None:
    rows = [{"label": n % 2, "judgement": n % 3 / 2} for n in range(30)]
    with pytest.raises(SpecError, match=f"`--threshold` is {threshold}; give the lowest number that counts as right"):
        card_of(rows, threshold=threshold)


@dataclass(frozen=True)
class Grading(Scorer):
    """Always says 1, on a scale from 1 to 5."""

    kind = "grading"
    version = 1
    is_judge = True
    ranges = {"value": (1.0, 5.0)}  # noqa: RUF012

    def score(self, output: Any, expected: Any) -> Score:
        return Score(1.0)


def test_the_scale_of_a_stored_judge_is_known_whatever_it_said(tmp_path: Path) -> None:
    evaluation = judge_numbers(MemoryStore(), NUMBERS, Grading())
    label_numbers(evaluation.run, tmp_path, {"ann": [truth(n) for n in NUMBERS]})  # type: ignore[arg-type]
    with pytest.raises(
        DataError, match=r"people say right or wrong \(1 or 0\) and the judge gives numbers from 1 to 5"
    ):
        make_card(read_labelled_evaluation(evaluation, "fine"))
    assert value(make_card(read_labelled_evaluation(evaluation, "fine"), threshold=4), "specificity") == 1.0
    label_numbers(evaluation.run, tmp_path, {"ann": [n % 6 for n in NUMBERS]})  # type: ignore[arg-type]
    with (
        pytest.warns(EvaluandWarning, match=r"newest labels count, .* \(100 labelled\); 1 other evaluation of the run"),
        pytest.raises(DataError, match="people give numbers from 0 to 5 and the judge gives numbers from 1 to 5"),
    ):
        make_card(read_labelled_evaluation(evaluation, "fine"))


def test_faults_of_a_file_are_reported_together(tmp_path: Path) -> None:
    path = tmp_path / "pairs.jsonl"
    rows = [
        {"id": 1, "label": "left", "judgement": 1, "swapped": 1},
        {"id": 2, "label": 1, "judgement": 3, "swapped": 1, "seconds": -1},
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    with pytest.raises(DataError) as error:
        read_labelled_file(path, "mine")
    assert [fault.where.removeprefix(f"{path}:") for fault in error.value.faults] == [
        "1:label",
        "2:judgement",
        "2:seconds",
    ]
    assert "is no winner; give 1, 2, a, b or tie" in str(error.value)


def test_rows_about_one_answer_must_have_one_label() -> None:
    rows = [{"id": 1, "label": label, "judgement": 1, "response": "x"} for label in (1, 0)]
    with pytest.raises(DataError, match="other labels than an earlier row with the same answer"):
        card_of(rows)


def test_answers_of_several_models_stay_several() -> None:
    rows = [{"id": n // 2, "model": "ab"[n % 2], "label": n % 2, "judgement": 1 - n % 2} for n in range(40)]
    for more in ({}, {"response": "Paris"}):
        card = card_of([row | more for row in rows])
        assert card.manifest["spec"]["items"] == 40
        assert card.find("retest_agreement") is None
    pairs = [
        {"id": 1, "label": 1, "judgement": 1, "response_a": "x", "response_b": "y", "model_a": "a", "model_b": model}
        for model in "bc"
    ]
    assert len(read_labelled_file(pairs, "mine").items) == 2


def test_rows_of_one_example_without_responses_are_different_answers_unless_they_are_counted() -> None:
    rows = [{"id": n % 10, "label": n % 3 % 2, "judgement": 1} for n in range(20)]
    assert card_of(rows).find("retest_agreement") is None
    assert len({item.key for item in read_labelled_file(rows, "mine").items}) == 20
    assert len({item.example for item in read_labelled_file(rows, "mine").items}) == 10
    again = [{"id": n % 10, "label": n % 2, "judgement": 1, "try": n // 10} for n in range(20)]
    labelled = read_labelled_file(again, "mine", columns={"repeat": "try"})
    assert [len(item.judgements) for item in labelled.items] == [2] * 10
    with pytest.raises(DataError, match="has the repeat 1 of an earlier row with the same answer"):
        read_labelled_file([again[-1], again[-1]], "mine", columns={"repeat": "try"})


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"label": "lable"}, "no column is called 'lable'.*did you mean 'label'"),
        ({"labels": "label"}, "no field is called 'labels'.*did you mean 'label'"),
        ({"id": ["label", "judgement"]}, "id has 2 columns; it can have one"),
    ],
)
def test_unknown_columns_are_refused(columns: dict[str, Any], message: str) -> None:
    with pytest.raises(SpecError, match=message):
        read_labelled_file([{"label": 1, "judgement": 1}], "mine", columns=columns)


def test_a_file_needs_labels_and_judgements() -> None:
    with pytest.raises(SpecError, match="no column has what the judge said; name it"):
        read_labelled_file([{"label": 1}], "mine")
    with pytest.raises(DataError, match="no row has a label"):
        read_labelled_file([{"label": None, "judgement": 1}], "mine")


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), min_size=1, max_size=25), st.randoms())
def test_the_order_of_rows_changes_nothing(pairs: list[tuple[int, int]], random: Any) -> None:
    rows = [{"id": n, "label": label, "judgement": said} for n, (label, said) in enumerate(pairs)]
    mixed = random.sample(rows, len(rows))
    one, other = (card_of(each, order=["0", "1", "2"]) for each in (rows, mixed))
    assert one.manifest["spec"] == other.manifest["spec"]
    for row, same in zip(one.measures, other.measures, strict=True):
        assert row["value"] == pytest.approx(same["value"], nan_ok=True)


# Pairs


def pairs(n: int, says: Any) -> list[dict[str, Any]]:
    """Pairs of which people prefer the first; `says` gives both judgements."""
    rows = [{"id": i, "label": 1, "response_a": "long" * 9, "response_b": "short"} for i in range(n)]
    return [row | dict(zip(("judgement", "swapped"), says(i), strict=True)) for i, row in enumerate(rows)]


def test_a_judge_that_prefers_the_first_place_is_inconsistent() -> None:
    card = card_of(pairs(40, lambda i: (1, 2 if i < 10 else 1)))
    assert value(card, "agreement", "first order") == 1.0
    assert value(card, "agreement", "second order") == 0.75
    assert value(card, "agreement", "both orders") == 0.75  # opposite winners are a tie
    assert value(card, "consistency") == 0.75
    note = next(row["note"] for row in card.measures if row["measure"] == "consistency")
    assert note == "30 of 40; 10 favour the first place, 0 the second"
    assert value(card, "position_bias") == pytest.approx((40 + 10) / 80)


def test_swapped_judgements_may_name_the_place() -> None:
    rows = pairs(10, lambda i: (1, 2))
    by_response, by_place = (make_card(read_labelled_file(rows, "m", by_place=each)) for each in (False, True))
    assert value(by_response, "consistency") == 0.0
    assert value(by_place, "consistency") == 1.0


def test_one_order_says_nothing_about_the_other() -> None:
    rows = [{"id": i, "label": i % 2 + 1, "judgement": 1, "response_a": "x", "response_b": "y"} for i in range(20)]
    card = card_of(rows)
    assert value(card, "agreement", "first order") == 0.5
    assert card.find("consistency") is None
    assert card.find("agreement", "both orders") is None


# From what is stored


def test_a_judge_is_measured_by_the_labels_of_its_run(tmp_path: Path) -> None:
    store = MemoryStore()
    evaluation = judge_numbers(store, NUMBERS)
    label_numbers(evaluation.run, tmp_path, {"ann": [truth(n) if n < 90 else None for n in NUMBERS]})  # type: ignore[arg-type]
    labelled = read_labelled_evaluation(evaluation, "fine")
    card = make_card(labelled, store)
    assert card.manifest["spec"]["items"] == 90
    assert value(card, "agreement") == pytest.approx(75 / 90)
    assert card.judge.name == "fine"
    assert {one["kind"] for one in card.manifest["provenance"]["made_from"]} == {"evaluations"}
    assert verify(store, "cards", card.id) == []


def test_labels_may_be_a_column_of_the_dataset() -> None:
    store = MemoryStore()
    rows = [{"input": n, "verdict": truth(n)} for n in NUMBERS]
    run = Runner(store).run(abs, Dataset.from_rows(rows, input="input", metadata=["verdict"]))
    evaluation = Evaluator(store).evaluate(run, {"fine": Rounding()})
    assert value(make_card(read_labelled_evaluation(evaluation, "fine", "verdict")), "agreement") == 0.85
    with pytest.raises(SpecError, match=r"no column with labels is called 'verdit' \(did you mean 'verdict'\?\)"):
        read_labelled_evaluation(evaluation, "fine", "verdit")


def test_words_of_people_are_compared_with_labels_of_the_judge(tmp_path: Path) -> None:
    evaluation = judge_numbers(MemoryStore(), NUMBERS)
    words = ["Good" if truth(n) else "bad" for n in NUMBERS]
    label_numbers(evaluation.run, tmp_path, {"ann": words})  # type: ignore[arg-type]
    card = make_card(read_labelled_evaluation(evaluation, "fine"), positive="good")
    assert value(card, "sensitivity") == pytest.approx(45 / 55)


def test_unlabelled_runs_are_refused() -> None:
    evaluation = judge_numbers(MemoryStore(), [1, 2])
    with pytest.raises(NotFound, match=r"nobody has labelled run numbers/mine; .*evaluand label export"):
        read_labelled_evaluation(evaluation, "fine")
    with pytest.raises(SpecError, match=r"no scorer is called 'find' \(did you mean 'fine'\?\)"):
        read_labelled_evaluation(evaluation, "find")


def test_abstentions_keep_their_reason(tmp_path: Path) -> None:
    evaluation = judge_numbers(MemoryStore(), [-1, 60])
    label_numbers(evaluation.run, tmp_path, {"ann": [0, 1]})  # type: ignore[arg-type]
    first = read_labelled_evaluation(evaluation, "fine").items[0].judgements[0]
    assert (first.label, first.reason) == (None, "abstained: a negative number")


def test_matches_are_measured_by_those_of_people() -> None:
    store = MemoryStore()
    runs = play_runs(store, ["mine", "base"], 20)
    outcomes = {("mine", "base"): [(1.0, 1.0) if n < 15 else (1.0, 0.0) for n in range(20)]}
    matches = Matcher().match(runs, table_judge(outcomes), labels=["mine", "base"], name="judged")
    prefers = [
        Judged(pair.key, "first" if str(pair.first).startswith("mine") else "second", "ann", None)
        for pair in pairs_to_judge(runs, by="ann")
    ]
    people = match_by_people(runs, prefers, labels=["mine", "base"]).matches
    card = make_card(read_labelled_matches(matches, people), store)
    assert value(card, "agreement", "both orders") == 0.75
    assert value(card, "consistency") == 0.75
    assert make_card(read_labelled_matches(matches), store).id == card.id  # the newest by people
    with pytest.raises(SpecError, match="were judged by people; name those of the judge"):
        read_labelled_matches(people)


# What a card is bound to


def test_a_card_is_made_once(tmp_path: Path) -> None:
    store = DirectoryStore(tmp_path / "store")
    rows = [{"id": n, "label": n % 2, "judgement": n % 2} for n in range(30)]
    first, again = (make_card(read_labelled_file(rows, "mine"), store, name="mine") for _ in range(2))
    assert (first.id, again.receipt.kept) == (again.id, 1)  # type: ignore[union-attr]
    other = make_card(read_labelled_file([*rows, {"id": 99, "label": 1, "judgement": 1}], "mine"), store)
    assert other.id != first.id
    assert JudgeCard.open(store, "mine").id == first.id


def test_a_mean_is_measured_stale_or_unmeasured(tmp_path: Path) -> None:
    store = MemoryStore()
    evaluation = judge_numbers(store, NUMBERS)
    assert standings(evaluation)["fine"].status == "unmeasured"
    assert "measure it with `evaluand judge card numbers/mine`" in standings(evaluation)["fine"].text
    label_numbers(evaluation.run, tmp_path, {"ann": [truth(n) for n in NUMBERS]})  # type: ignore[arg-type]
    card = make_card(read_labelled_evaluation(evaluation, "fine"), store)
    measured = standings(evaluation)["fine"]
    assert (measured.status, measured.card.id) == ("measured", card.id)  # type: ignore[union-attr]
    assert measured.text.startswith("agreement 0.85 [0.77, 0.91], 100 answers labelled by people (card ")
    changed = standings(judge_numbers(store, NUMBERS, Rounding(limit=55)))["fine"]
    assert (changed.status, changed.changed) == ("stale", ("limit changed",))
    assert f"stale: limit changed since card {card.id[:12]}; measure it again" in changed.text


def test_a_small_new_card_replaces_no_large_one(tmp_path: Path) -> None:
    store = MemoryStore()
    evaluation = judge_numbers(store, NUMBERS)
    people = [truth(n) for n in NUMBERS]
    label_numbers(evaluation.run, tmp_path, {"ann": people})  # type: ignore[arg-type]
    large = make_card(read_labelled_evaluation(evaluation, "fine"), store)
    few = [*people[:2], *[None] * 98]
    small = make_card(
        read_labelled_evaluation(evaluation, "fine", label_numbers(evaluation.run, tmp_path, {"ann": few})),  # type: ignore[arg-type]
        store,
    )
    found = standings(evaluation)["fine"]
    assert (found.status, found.card.id, found.newer.id) == ("measured", large.id, small.id)  # type: ignore[union-attr]
    assert found.text.endswith("a newer card has only 2 examples")
    later = make_card(read_labelled_evaluation(evaluation, "fine", evaluation_of(evaluation, tmp_path)), store)
    assert standings(evaluation)["fine"].card.id == later.id  # type: ignore[union-attr] # as large, and newer


def evaluation_of(evaluation: Any, folder: Path) -> Any:
    """Other labels of the same answers."""
    return label_numbers(evaluation.run, folder, {"bob": [int(n >= 50) for n in NUMBERS]})


def test_scorers_that_are_no_judges_need_no_card() -> None:
    store = MemoryStore()
    run = play_numbers(store, [1, 2])
    evaluation = Evaluator(store).evaluate(run, {"even": lambda output, expected: output % 2 == 0})
    assert standings(evaluation) == {}


def test_a_mean_is_corrected_for_the_errors_of_its_judge(tmp_path: Path) -> None:
    store = MemoryStore()
    labelled = judge_numbers(store, NUMBERS)
    label_numbers(labelled.run, tmp_path, {"ann": [truth(n) for n in NUMBERS]})  # type: ignore[arg-type]
    card = make_card(read_labelled_evaluation(labelled, "fine"), store)
    others = [n % 100 for n in range(3, 1003, 7)]
    evaluation = judge_numbers(store, others)
    means = correct_mean(evaluation, "fine", card)
    assert means is not None
    assert means.raw.value == pytest.approx(sum(n >= 50 for n in others) / len(others))
    expected = (means.raw.value + 40 / 45 - 1) / (45 / 55 + 40 / 45 - 1)
    assert means.corrected.value == pytest.approx(expected)
    assert means.corrected.low < sum(map(truth, others)) / len(others) < means.corrected.high
    assert (means.is_mean, means.overlap) == (True, "")


def test_labelled_answers_among_the_corrected_ones_are_reported(tmp_path: Path) -> None:
    store = MemoryStore()
    evaluation = judge_numbers(store, NUMBERS)
    people = [truth(n) if n < 90 else None for n in NUMBERS]
    label_numbers(evaluation.run, tmp_path, {"ann": people})  # type: ignore[arg-type]
    card = make_card(read_labelled_evaluation(evaluation, "fine"), store)
    means = correct_mean(evaluation, "fine", card)
    assert means is not None
    assert means.overlap == " (includes the 90 labelled answers: interval too wide)"


def test_labelled_answers_that_another_system_gives_too_are_reported(tmp_path: Path) -> None:
    store = MemoryStore()
    evaluation = judge_numbers(store, NUMBERS)
    people = [truth(n) if n < 90 else None for n in NUMBERS]
    label_numbers(evaluation.run, tmp_path, {"ann": people})  # type: ignore[arg-type]
    labelled = read_labelled_evaluation(evaluation, "fine")
    run = Runner(store).run(lambda number: number if number % 2 else -number, evaluation.run.dataset)  # type: ignore[union-attr]
    other = Evaluator(store).evaluate(run, {"fine": Rounding()})
    means = correct_mean(other, "fine", make_card(labelled, store))
    assert means is not None
    assert means.overlap == " (includes 46 of the 90 labelled answers: interval too wide)"  # 0 is even, and the same
    mine = judge_numbers(store, [200 + n for n in NUMBERS])
    other_answers = correct_mean(mine, "fine", make_card(labelled, store))
    assert other_answers is not None
    assert other_answers.overlap == ""
    tuned = tune_judges({"one": labelled, "two": labelled}, store)
    half = correct_mean(evaluation, "fine", tuned.card)
    assert half is not None
    assert half.overlap == " (includes the 45 labelled answers: interval too wide)"


@dataclass(frozen=True)
class Generous(Rounding):
    """Gives half a point where it says `bad`."""

    kind = "generous"

    def score(self, output: Any, expected: Any) -> Score:
        score = super().score(output, expected)
        return score._replace(value=0.5 + 0.5 * (score.value or 0.0))


def test_the_share_judged_right_is_not_taken_for_the_mean_of_values(tmp_path: Path) -> None:
    store = MemoryStore()
    evaluation = judge_numbers(store, NUMBERS, Generous())
    label_numbers(evaluation.run, tmp_path, {"ann": ["good" if truth(n) else "bad" for n in NUMBERS]})  # type: ignore[arg-type]
    card = make_card(read_labelled_evaluation(evaluation, "fine"), store, positive="good")
    means = correct_mean(evaluation, "fine", card)
    assert means is not None
    assert (means.raw.value, means.is_mean) == (0.5, False)
    [result] = check_gates(["mean >= 0.7"], {"mine": evaluation})
    assert result.passed
    assert result.message.startswith("0.75; 100 rows: 100 scored; ")
    assert "; 0.5 judged right, corrected for its errors 0.55 [" in result.message


# The choice among judges


def candidates(n: int, **right: float) -> dict[str, Any]:
    rows = {
        name: [
            {"id": i, "label": i % 2, "judgement": i % 2 if (i * 7919 % 100) / 100 < share else 1 - i % 2}
            for i in range(n)
        ]
        for name, share in right.items()
    }
    return {name: read_labelled_file(each, name) for name, each in rows.items()}


def test_the_best_is_measured_on_answers_that_did_not_choose_it() -> None:
    found = tune_judges(candidates(100, good=0.9, bad=0.6))
    assert [each.name for each in found.candidates] == ["good", "bad"]
    assert found.card.judge.name == "good"
    spec = found.card.manifest["spec"]
    chose = found.candidates[0].card.manifest["spec"]["items"]
    assert (spec["items"], chose) == (50, 50)
    assert spec["part"]["criterion"] == "krippendorff_alpha"
    assert "none of which chose it" in found.card.basis


def test_the_halves_share_no_example_whatever_the_seed() -> None:
    for seed in range(5):
        sets = candidates(41, good=0.9, bad=0.6)
        found = tune_judges(sets, seed=seed)
        counts = found.card.manifest["spec"]["items"], found.candidates[0].card.manifest["spec"]["items"]
        assert sum(counts) == 41
        assert abs(counts[0] - counts[1]) == 1
    assert len({tune_judges(candidates(41, a=0.9, b=0.6), seed=seed).card.id for seed in range(5)}) > 1


def test_another_split_of_the_same_labels_is_reported() -> None:
    store, sets = MemoryStore(), candidates(60, good=0.9, bad=0.6)
    tune_judges(sets, store)
    tune_judges(sets, store)
    with pytest.warns(UserWarning, match="these labels chose a judge before, with seed 0"):
        tune_judges(sets, store, seed=1)


def test_a_half_that_reports_again_says_so() -> None:
    store = MemoryStore()
    tune_judges(candidates(60, good=0.9, bad=0.6), store)
    for n in (1, 2):
        sets = candidates(60, good=0.9 - n / 10, bad=0.6)
        with pytest.warns(UserWarning, match=f"this half of the labels has reported {n} times? before"):
            found = tune_judges(sets, store)
        assert found.reported_before == found.to_dict()["reported_before"] == n
        assert f"none of which chose it, and which reported {n} time" in found.card.basis
    assert tune_judges(candidates(60, good=0.9, bad=0.6), store).reported_before == 0  # the first once more


def graded(**said: Any) -> dict[str, Any]:
    """Judges of answers with the grades 1 to 5; each says a function of the grade."""
    return {
        name: read_labelled_file([{"id": i, "label": i % 5 + 1, "judgement": of(i % 5 + 1)} for i in range(100)], name)
        for name, of in said.items()
    }


@pytest.mark.parametrize("criterion", ["mean_absolute_error", "spearman", "weighted_kappa"])
def test_the_best_has_the_least_error_and_the_greatest_agreement(criterion: str) -> None:
    sets = graded(opposite=lambda grade: 6 - grade, near=lambda grade: min(grade + 1, 5))
    assert [each.name for each in tune_judges(sets, criterion=criterion).candidates] == ["near", "opposite"]


@pytest.mark.parametrize("criterion", ["mean_difference", "calibration_slope", "position_bias", "abstained"])
def test_what_has_no_better_values_chooses_nothing(criterion: str) -> None:
    sets = graded(opposite=lambda grade: 6 - grade, near=lambda grade: min(grade + 1, 5))
    usable = "agreement, weighted_kappa, krippendorff_alpha, mean_absolute_error, spearman"
    with pytest.raises(SpecError, match=f"no value of '{criterion}' is better than another; choose by one of {usable}"):
        tune_judges(sets, criterion=criterion)


def test_probabilities_are_chosen_by_the_least_brier_score() -> None:
    sets = {
        name: read_labelled_file([{"id": i, "label": i % 2, "judgement": says[i % 2]} for i in range(40)], name)
        for name, says in {"vague": (0.4, 0.6), "sharp": (0.1, 0.9)}.items()
    }
    assert tune_judges(sets, criterion="brier", threshold=0.5).candidates[0].name == "sharp"


def test_a_judge_that_abstains_much_more_often_is_not_chosen() -> None:
    labels = [i % 2 for i in range(200)]
    good = [label if i % 20 else 1 - label for i, label in enumerate(labels)]
    few = [label if i % 15 == 0 else None for i, label in enumerate(labels)]
    sets = {
        name: read_labelled_file([{"id": i, "label": labels[i], "judgement": said[i]} for i in range(200)], name)
        for name, said in {"few": few, "good": good}.items()
    }
    found = tune_judges(sets)
    assert [each.name for each in found.candidates] == ["good", "few"]
    assert str(found.candidates[1].estimate.reason).startswith("abstained on 9")


def test_judges_are_compared_on_the_answers_that_all_of_them_judged() -> None:
    labels = [i % 2 for i in range(400)]
    hard = [i % 12 == 0 for i in range(400)]  # a coin about these, or nothing
    bold = [i // 12 % 2 if hard[i] else label for i, label in enumerate(labels)]
    shy = [None if hard[i] else label if i % 30 != 5 else 1 - label for i, label in enumerate(labels)]
    sets = {
        name: read_labelled_file([{"id": i, "label": labels[i], "judgement": said[i]} for i in range(400)], name)
        for name, said in {"shy": shy, "bold": bold}.items()
    }
    found = tune_judges(sets, criterion="agreement").candidates
    assert [(each.name, each.estimate.value == 1.0) for each in found] == [("bold", True), ("shy", False)]
    assert found[0].card.manifest["spec"]["items"] == found[1].card.manifest["spec"]["items"] < 200


def test_a_choice_needs_the_same_answers() -> None:
    sets = candidates(40, good=0.9)
    with pytest.raises(SpecError, match="a choice needs two judges or more"):
        tune_judges(sets)
    with pytest.raises(SpecError, match="'good' and 'other' judged different answers"):
        tune_judges(sets | {"other": candidates(50, x=0.9)["x"]})
    with pytest.raises(SpecError, match="there are labels of 3 examples, and a split needs 4; label more"):
        tune_judges(candidates(3, good=0.9, bad=0.5))
    with pytest.raises(SpecError, match=r"have no 'agrement' \(did you mean 'agreement'\?\)"):
        tune_judges(candidates(40, good=0.9, bad=0.5), criterion="agrement")
