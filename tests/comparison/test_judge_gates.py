"""Gates on what judges say: refused unless the judge was measured, or the user allows it."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from support.labelled import Rounding, judge_numbers, label_numbers
from support.matches import play_runs

from evaluand import ComparisonScorer, Evaluation, Evaluator, Feedback, Matcher, MemoryStore, SpecError, rate
from evaluand.comparison.checking import GateResult
from evaluand.comparison.gates import check_gates
from evaluand.evaluation import RemoteProvider, asks
from evaluand.judges.cards.card import make_card
from evaluand.judges.cards.from_evaluation import read_labelled_evaluation
from evaluand.judges.cards.labelled_set import LabelledSet
from evaluand.matches import RecordedBattles, read_battles
from evaluand.matches.labelled_sets import judge_of_matches, read_labelled_file
from evaluand.matches.ratings.rating_gates import check_rating_gates
from evaluand.models.requests import Reply
from evaluand.store.store import Store
from evaluand.testing import assert_gate

NUMBERS = [*range(0, 100, 2), *range(1, 100, 2)]


def check(evaluation: Evaluation, rule: str = "accuracy >= 0.5", **options: Any) -> GateResult:
    [result] = check_gates([rule], {"mine": evaluation}, **options)
    return result


def measure(evaluation: Evaluation, folder: Path) -> None:
    label_numbers(evaluation.run, folder, {"ann": [int(n >= 45) for n in NUMBERS]})  # type: ignore[arg-type]
    make_card(read_labelled_evaluation(evaluation, "fine"), evaluation.store)


def test_an_unmeasured_judge_cannot_gate() -> None:
    result = check(judge_numbers(MemoryStore(), NUMBERS))
    assert not result.passed
    assert result.message == (
        "refused: judge 'fine' is unmeasured; measure it with `evaluand judge card numbers/mine`, or allow it with"
        " --allow-unmeasured-judges (in an experiment file: allow_unmeasured_judges: true)"
    )
    assert result.facts["values"] == []
    assert [(each["status"], each["allowed"]) for each in result.facts["judges"]] == [("unmeasured", False)]


def test_a_gate_compares_the_mean_corrected_by_the_card(tmp_path: Path) -> None:
    evaluation = judge_numbers(MemoryStore(), NUMBERS)
    without = check(evaluation, "corrected_mean(fine) >= 0.4", allow_unmeasured_judges=True)
    measure(evaluation, tmp_path)

    value = check(evaluation, "corrected_mean(fine) >= 0.5")
    bound = check(evaluation, "corrected_mean >= 0.5 at 95%")

    assert (without.passed, without.is_decided) == (False, False)
    assert without.message.startswith("undefined: the judge, as it is now, has no card")
    assert value.passed  # half are judged right; people found 55 of 100 right
    assert value.facts["values"][0]["value"] == pytest.approx(0.55)
    assert value.message.startswith(
        "0.55; 0.5 judged right (includes the 100 labelled answers: interval too wide); judge"
    )
    assert not bound.passed
    assert bound.facts["values"][0]["bound"] == pytest.approx(bound.facts["values"][0]["low"])
    assert bound.message.startswith("lower 95% bound about 0.4")


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ("corrected_mean better than base", "is of all rows of a judge and has no parameters, groups or differences"),
        ("corrected_mean[topic=a] >= 0.5", "is of all rows of a judge and has no parameters, groups or differences"),
        ("corrected_mean >= 50", "never at 50; write 50 % or 0.5"),
        (
            "corrected_mean >= 0.5 at 95% anytime",
            "exist for means of one number per row, not for corrected_mean",
        ),
    ],
)
def test_a_corrected_mean_is_compared_with_thresholds_only(rule: str, message: str, tmp_path: Path) -> None:
    evaluation = judge_numbers(MemoryStore(), NUMBERS)
    measure(evaluation, tmp_path)
    with pytest.raises(SpecError, match=message):
        check(evaluation, rule)


def test_a_measured_judge_gates(tmp_path: Path) -> None:
    evaluation = judge_numbers(MemoryStore(), NUMBERS)
    measure(evaluation, tmp_path)
    result = check(evaluation)
    card = result.facts["judges"][0]["card"][:12]
    assert result.passed
    assert result.message == (
        "0.5; 100 rows: 100 scored; judge 'fine': agreement 0.95 [0.89, 0.98], 100 answers labelled by people"
        f" (card {card}); corrected for its errors 0.55 [0.431, 0.676] (includes the 100 labelled answers: interval"
        " too wide)"
    )
    assert result.facts["judges"][0]["status"] == "measured"


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        ("accuracy >= 0.6", "which would fail this rule"),
        ("accuracy >= 0.5 at 90%", "which would fail this rule with its 90% bound 0.304"),
        ("accuracy >= 0.1 at 95%", None),
        ("accuracy <= 0.8", None),
    ],
)
def test_a_gate_says_whether_the_corrected_mean_would_fail(rule: str, words: str | None, tmp_path: Path) -> None:
    store = MemoryStore()
    lenient = judge_numbers(store, NUMBERS, Rounding(limit=30))
    label_numbers(lenient.run, tmp_path, {"ann": [int(n >= 50) for n in NUMBERS]})  # type: ignore[arg-type]
    make_card(read_labelled_evaluation(lenient, "fine"), store)
    result = check(judge_numbers(store, [(7 * n + 3) % 100 for n in range(90)], Rounding(limit=30)), rule)
    assert result.passed
    assert "corrected for its errors 0." in result.message
    assert "too wide" not in result.message  # these are other answers than the labelled ones
    assert ("would fail" in result.message) == (words is not None)
    assert words is None or words in result.message


@pytest.mark.parametrize("people", [[1], [n % 2 for n in range(19)]])
def test_a_few_labels_do_not_measure_a_judge(people: list[int], tmp_path: Path) -> None:
    evaluation = judge_numbers(MemoryStore(), [90 * n for n in people] + [90] * (30 - len(people)))
    labels = [*people, *[None] * (30 - len(people))]
    label_numbers(evaluation.run, tmp_path, {"ann": labels})  # type: ignore[arg-type]
    make_card(read_labelled_evaluation(evaluation, "fine"), evaluation.store)
    result = check(evaluation)
    assert not result.passed
    assert "refused: judge 'fine' is weak: it was measured on " in result.message
    assert "and 20 are needed; agreement 1.00" in result.message
    assert "label more answers and measure it again with `evaluand judge card numbers/mine`" in result.message
    allowed = check(evaluation, allow_unmeasured_judges=True)
    assert allowed.passed
    assert "judge 'fine' is weak: it was measured on" in allowed.message
    assert allowed.message.endswith(", which was allowed")


def test_a_judge_no_better_than_chance_cannot_gate(tmp_path: Path) -> None:
    evaluation = judge_numbers(MemoryStore(), NUMBERS, Rounding(limit=0))  # always says right
    label_numbers(evaluation.run, tmp_path, {"ann": [int(n >= 10) for n in NUMBERS]})  # type: ignore[arg-type]
    make_card(read_labelled_evaluation(evaluation, "fine"), evaluation.store)
    result = check(evaluation, "accuracy >= 0.9 at 95%")
    assert (result.passed, result.facts["judges"][0]["status"]) == (False, "weak")
    assert "is weak: it is not shown to agree with people beyond chance; agreement 0.90" in result.message


def test_labels_of_one_kind_show_no_agreement_beyond_chance(tmp_path: Path) -> None:
    evaluation = judge_numbers(MemoryStore(), [60 + n for n in range(30)])
    label_numbers(evaluation.run, tmp_path, {"ann": [1] * 30})  # type: ignore[arg-type]
    make_card(read_labelled_evaluation(evaluation, "fine"), evaluation.store)
    message = check(evaluation).message
    assert "beyond chance: all ratings are one value, so chance agrees everywhere" in message


def test_a_changed_judge_cannot_gate(tmp_path: Path) -> None:
    store = MemoryStore()
    measure(judge_numbers(store, NUMBERS), tmp_path)
    result = check(judge_numbers(store, NUMBERS, Rounding(limit=40)))
    assert not result.passed
    assert "judge 'fine' is stale: limit changed since card" in result.message


def test_what_was_allowed_is_recorded() -> None:
    evaluation = judge_numbers(MemoryStore(), NUMBERS)
    result = check(evaluation, allow_unmeasured_judges=True)
    assert result.passed
    assert result.message == "0.5; 100 rows: 100 scored; judge 'fine' is unmeasured, which was allowed"
    assert result.facts["judges"][0]["allowed"]
    assert assert_gate(evaluation, "accuracy >= 0.5", allow_unmeasured_judges=True)[0].passed
    with pytest.raises(AssertionError, match="refused: judge 'fine' is unmeasured"):
        assert_gate(evaluation, "accuracy >= 0.5")


def test_the_judge_of_a_baseline_must_be_measured_too(tmp_path: Path) -> None:
    store = MemoryStore()
    evaluation = judge_numbers(store, NUMBERS)
    measure(evaluation, tmp_path)
    other = judge_numbers(store, NUMBERS, Rounding(limit=60))
    [result] = check_gates(["accuracy not worse than base by 0.2"], {"mine": evaluation, "base": other}, "base")
    assert not result.passed
    assert "is stale" in result.message


def test_functions_gate_as_before() -> None:
    run = judge_numbers(MemoryStore(), NUMBERS).run
    assert run is not None
    evaluation = Evaluator().evaluate(run, {"even": lambda output, expected: output % 2 == 0})
    result = check(evaluation)
    assert (result.passed, "judges" in result.facts) == (True, False)


@dataclass(frozen=True, kw_only=True)
class Guessing(RemoteProvider):
    """In place of a model behind a network."""

    @asks
    def ask(self, text: str) -> Any:
        return Reply(len(text) % 2, {"output_tokens": 1})

    def odd(self, text: str) -> float:
        return float(self.ask(text))


def test_a_feedback_of_a_provider_that_asks_a_model_is_a_judge() -> None:
    run = judge_numbers(MemoryStore(), NUMBERS).run
    assert run is not None
    remote = Feedback(Guessing(model="m", version="1").odd, name="odd", aggregate=max).on("__example__.id")
    local = Feedback(lambda text: 1.0, name="one", version="1").on("__example__.id")
    assert (remote.is_judge, local.is_judge) == (True, False)
    evaluation = Evaluator(run.store).evaluate(run, {"odd": remote, "one": local}, name="numbers/odd")
    refused = check(evaluation, "mean >= 0", scorer="odd")
    assert refused.message.startswith("refused: judge 'odd' is unmeasured; measure it with")
    assert check(evaluation, "mean >= 0", scorer="one").passed


class Shorter(ComparisonScorer):
    """A judge that prefers `mine`."""

    kind = "shorter"
    version = 1
    is_judge = True

    def identify(self) -> Any:
        from evaluand.core.fingerprint import Identity

        return Identity({"kind": self.kind, "version": 1})

    def compare(self, first: Any, second: Any) -> Any:
        return "first" if str(first).startswith("mine") else "second"


def recorded(store: Store, matches: Any, swapped: Callable[[int], int]) -> None:
    """A card of the judge of some matches, made from other pairs."""
    rows = [{"id": n, "label": 1, "judgement": 1, "swapped": swapped(n)} for n in range(30)]
    found = read_labelled_file(rows, "x")
    make_card(LabelledSet(found.items, judge_of_matches(matches), [None], is_pairs=True), store)


def test_ratings_by_an_unmeasured_judge_cannot_gate() -> None:
    store = MemoryStore()
    matches = Matcher().match(play_runs(store, ["mine", "base"], 30), Shorter(), labels=["mine", "base"], name="m")
    ratings = rate(matches, method="win_rate")
    rule = "win_rate(mine, base) >= 0.6"
    [refused] = check_rating_gates([rule], ratings)
    assert not refused.passed
    assert "judge 'shorter' is unmeasured" in refused.message
    [allowed] = check_rating_gates([rule], ratings, allow_unmeasured_judges=True)
    assert (allowed.passed, allowed.facts["judges"][0]["allowed"]) == (True, True)
    [bias] = check_rating_gates(["position_bias <= 0.55"], ratings)  # which is about the judge itself
    assert bias.passed
    recorded(store, matches, lambda n: 1 + n % 2)
    [weak] = check_rating_gates([rule], ratings)
    assert (weak.passed, weak.facts["judges"][0]["status"]) == (False, "weak")  # it prefers the first place
    recorded(store, matches, lambda n: 1 + (n == 0))
    [measured] = check_rating_gates([rule], ratings)
    assert (measured.passed, measured.facts["judges"][0]["status"]) == (True, "measured")


def battles(judge: str | None, **options: Any) -> Any:
    rows = [{"id": n, "model_a": "mine", "model_b": "base", "winner": "tie" if n % 9 == 0 else "a"} for n in range(60)]
    return read_battles([row | ({} if judge is None else {"judge": judge}) for row in rows], **options)


RATE = "win_rate(mine, base) >= 0.6 at 95%"


@pytest.mark.parametrize("judge", [None, "gpt-4", "expert", "an arena_user_1"])
def test_battles_judged_elsewhere_cannot_gate_until_somebody_says_that_people_judged(judge: str | None) -> None:
    [refused] = check_rating_gates([RATE], rate(battles(judge), method="win_rate"))
    assert not refused.passed
    assert f"refused: judge {judge or 'unnamed'!r} is unmeasured; measure it with `evaluand judge card FILE" in (
        refused.message
    )
    assert "if people have judged, read the file with --by-people" in refused.message
    ratings = rate(battles(judge, by_people=True), method="win_rate")
    [passed] = check_rating_gates([RATE], ratings)
    assert (passed.passed, "judges" in passed.facts) == (True, False)
    [allowed] = check_rating_gates([RATE], rate(battles(judge), method="win_rate"), allow_unmeasured_judges=True)
    assert (allowed.passed, allowed.facts["judges"][0]["allowed"]) == (True, True)


@pytest.mark.parametrize("judge", [None, "gpt-4"])
@pytest.mark.parametrize("first", [False, True])
def test_each_reading_of_battles_says_for_itself_whether_people_judged(first: bool, judge: str | None) -> None:
    store = MemoryStore()
    ratings = {
        by_people: rate(battles(judge, store=store, by_people=by_people), method="win_rate")
        for by_people in (first, not first)
    }
    assert [check_rating_gates([RATE], ratings[by_people])[0].passed for by_people in (False, True)] == [False, True]
    assert ratings[False].id != ratings[True].id
    assert ratings[False].ratings == ratings[True].ratings
    both = rate(*(battles(judge, store=store, by_people=by_people) for by_people in (False, True)), method="win_rate")
    assert both.ratings == ratings[True].ratings  # the same rows count once
    assert not check_rating_gates([RATE], both)[0].passed  # one of them may be a judge's


@pytest.mark.parametrize("judge", ["arena_user_973", "expert_17", "author_2"])
def test_battles_of_known_people_gate(judge: str) -> None:
    [passed] = check_rating_gates([RATE], rate(battles(judge), method="win_rate"))
    assert (passed.passed, "judges" in passed.facts) == (True, False)


def test_a_card_of_a_file_measures_the_judge_of_its_battles() -> None:
    store = MemoryStore()
    ratings = rate(battles("gpt-4", store=store), method="win_rate")
    rows = [{"id": n, "label": 1 + n % 2, "judgement": 1 + n % 2, "response_a": "x"} for n in range(30)]
    make_card(read_labelled_file(rows, "gpt-4"), store)
    [passed] = check_rating_gates([RATE], ratings)
    assert passed.passed
    assert "; judge 'gpt-4': agreement" in passed.message


def test_many_unmeasured_judges_are_counted() -> None:
    rows = [{"id": n, "model_a": "mine", "model_b": "base", "winner": "a", "judge": f"m{n % 7}"} for n in range(60)]
    [refused] = check_rating_gates([RATE], rate(read_battles(rows), method="win_rate"))
    assert "; and 4 more judges, or allow it with" in refused.message
    assert len(refused.facts["judges"]) == 7


def test_recorded_battles_of_runs_are_judges_too(tmp_path: Path) -> None:
    store = MemoryStore()
    runs = play_runs(store, ["mine", "base"], 30)
    ids = [example.id for example in runs[0].dataset]
    path = tmp_path / "said.jsonl"
    rows = [{"id": id, "model_a": "mine", "model_b": "base", "winner": "a", "judge": "gpt-4"} for id in ids]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    for by_people in (False, True):
        judge = RecordedBattles(str(path), by_people=by_people)
        matches = Matcher().match(runs, judge, labels=["mine", "base"])
        [result] = check_rating_gates([RATE], rate(matches, method="win_rate"))
        assert result.passed == by_people
