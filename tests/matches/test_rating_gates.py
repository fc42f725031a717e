"""Gates of ratings."""

import math
from typing import Any

import pytest
from support.matches import Outcomes, play

from evaluand import (
    Dataset,
    Matcher,
    MemoryStore,
    Ratings,
    Runner,
    Skipped,
    SpecError,
    comparison_scorer,
    rate,
)
from evaluand.comparison.checking import GateResult
from evaluand.comparison.rule import Gate
from evaluand.matches.battles import read_battles
from evaluand.matches.ratings.method import RatingMethod
from evaluand.matches.ratings.rating_gates import check_limits, check_rating_gates
from evaluand.run.runner import Run
from evaluand.testing import assert_gate

# mine wins 30 of 40 examples against base, and 25 against old
OUTCOMES: Outcomes = {
    ("mine", "base"): [1.0] * 30 + [0.0] * 10,
    ("mine", "old"): [0.0, 0.0, 0.0] * 5 + [1.0] * 25,
    ("base", "old"): [1.0, 0.0] * 20,
}


@pytest.fixture(scope="module")
def ratings() -> Ratings:
    return rate(play(MemoryStore(), OUTCOMES))


def check(rule: str, ratings: Ratings) -> GateResult:
    [result] = check_rating_gates([rule], ratings)
    return result


@pytest.mark.parametrize(
    ("rule", "passed", "message"),
    [
        ("win_rate(mine, base) >= 0.75", True, "0.75; win rate 0.75 of 40 matches"),
        ("win_rate(mine, against=base) > 0.75", False, "0.75; win rate 0.75 of 40 matches"),
        ("win_rate(base, mine) <= 0.25", True, "0.25; win rate 0.25 of 40 matches"),
        ("win_rate(mine) >= 0.6875", True, "0.6875; win rate 0.6875 of 80 matches"),
        # the exact bound: 30 or more of 40 have the probability 5 % at 0.6129
        ("win_rate(mine, base) >= 0.61 at 95%", True, "lower 95% bound 0.6129; win rate 0.75 of 40 matches"),
        ("win_rate(mine, base) >= 0.62 at 95%", False, "lower 95% bound 0.6129; win rate 0.75 of 40 matches"),
        ("win_rate(mine, base) >= 0.62 at 90%", True, "lower 90% bound 0.6412; win rate 0.75 of 40 matches"),
        ("position_bias <= 0.55", True, "0.5; 240 judgements in both orders"),
        ("position_bias <= 55 %", True, "0.5; 240 judgements in both orders"),
        ("inconsistency <= 7% at 95 %", True, "upper 95% bound about"),
        ("win_rate(mine, base) > 75 %", False, "0.75; win rate 0.75 of 40 matches"),
        ("inconsistency <= 0.07 at 95%", True, "upper 95% bound about"),
    ],
)
def test_a_rule_holds_by_its_number(rule: str, passed: bool, message: str, ratings: Ratings) -> None:
    result = check(rule, ratings)
    assert (result.passed, result.message.startswith(message)) == (passed, True), result.message


def test_ratings_are_compared_by_the_bound_of_their_difference(ratings: Ratings) -> None:
    rows = {row["system"]: row for row in ratings.ratings}
    difference = rows["mine"]["rating"] - rows["base"]["rating"]
    result = check("rating(mine) better than base", ratings)
    assert result.passed
    assert result.message.startswith(f"difference {difference:+.4g}, lower 95% bound about")
    assert not check("rating(base) better than old", ratings).passed
    assert not check("rating(base) not worse than mine by 10", ratings).passed
    assert check("rating(base) not worse than mine by 1000", ratings).passed
    point = check(f"rating(mine) >= base + {math.floor(difference)}", ratings)
    assert point.passed
    assert point.message.endswith("a point rule, which ignores chance")
    assert check("rating(mine) >= 1000 at 95%", ratings).passed


def test_missing_responses_lose(ratings: Ratings) -> None:
    outcomes: Outcomes = {("A", "B"): [1.0] * 6}
    matches = play(MemoryStore(), outcomes, fails={"A": {0, 1}})
    result = check("win_rate(A, B) >= 0.9", rate(matches, method="win_rate"))
    assert not result.passed
    assert result.message == "0.6667; win rate 0.6667 of 6 matches, 2 decided by a missing answer"
    result = check("rating(A) >= 0.9", rate(play(MemoryStore(), outcomes, fails={"A": {0}}), method="win_rate"))
    assert result.message == "0.8333; won 5, tied 0, lost 1, 1 decided by a missing answer"


def crashing(length: int) -> list[Run]:
    """Runs of mine, which wins by its label but gives no answer to four of five examples, and of base."""
    store = MemoryStore()

    def mine(number: int) -> str:
        if number % 5:
            raise ValueError("no answer")
        return "x" * (3 + number % 7)

    def base(number: int) -> str:
        return "y" * (4 + number % 3)

    data = Dataset.from_rows([{"input": number} for number in range(length)])
    return [Runner(store).run(task, data, name=task.__name__) for task in (mine, base)]


def by_label(first: str, second: str, index: int) -> float:
    return 0.5 if index % 25 == 0 else float(first[0] < second[0])


def test_missing_responses_lose_win_rates_at_equal_length_too() -> None:
    runs = crashing(40)
    matches = Matcher().match(runs, comparison_scorer(by_label), labels=["mine", "base"])
    for options in ({"covariates": ["length"]}, {"covariates": ["position"]}, {"method": "win_rate"}):
        result = check("win_rate(mine, base) >= 0.6", rate(matches, **options))
        assert not result.passed
        assert result.message == "0.175; win rate 0.175 of 40 matches, 32 decided by a missing answer"
    assert rate(matches, covariates=["length"]).win_rates[0]["n"] == 8


@pytest.mark.parametrize(
    ("options", "rule"),
    [
        ({"covariates": ["length"]}, "rating(mine) better than base"),
        ({"covariates": ["length"]}, "rating(mine) >= 1000"),
        ({"method": "equal_length", "baseline": "base"}, "rating(mine) >= 0.5 at 95%"),
    ],
)
def test_ratings_at_equal_length_are_not_compared_without_responses(options: dict[str, Any], rule: str) -> None:
    runs = crashing(100)
    matches = Matcher().match(runs, comparison_scorer(by_label), labels=["mine", "base"])
    result = check(rule, rate(matches, **options))
    assert not result.passed
    assert result.message.startswith("80 matches lack the response of one system, which cannot count as lost at equal")
    ratings = rate(matches, missing="leave_out", **options)
    assert "missing=leave_out" in ratings.signature
    assert check(rule, ratings).passed


def test_a_system_cannot_skip_its_way_through_a_gate() -> None:
    store = MemoryStore()

    def mine(number: int) -> str:
        if number % 2:
            raise Skipped("hard")
        return f"a{number}"

    def base(number: int) -> str:
        if number == 3:
            raise Skipped("hard")
        return f"b{number}"

    data = Dataset.from_rows([{"input": number} for number in range(40)])
    runs = [Runner(store).run(task, data, name=task.__name__) for task in (mine, base)]
    judge = comparison_scorer(lambda first, second: float(first < second))
    matches = Matcher().match(runs, judge, labels=["mine", "base"])
    ratings = rate(matches, method="win_rate")
    row = next(row for row in ratings.ratings if row["system"] == "mine")
    assert [row[name] for name in ("rating", "n", "n_missing", "n_skipped")] == [1.0, 20, 0, 20]
    assert ratings.win_rates[0]["n_skipped"] == 20
    assert "won 20, tied 0, lost 0, 20 skipped" in str(ratings)
    result = check("win_rate(mine, base) >= 0.6", ratings)
    assert result.message == "0.5128; win rate 0.5128 of 39 matches, 19 decided by a missing answer"
    assert not result.passed
    result = check("win_rate(mine, base) >= 0.6", rate(matches, method="win_rate", missing="refuse"))
    assert result.message.startswith("38 matches of 78 without an outcome, and missing=refuse")


def test_matches_without_an_outcome_are_counted() -> None:
    ratings = rate(play(MemoryStore(), {("A", "B"): [1.0, None, 1.0]}), method="win_rate")
    assert check("win_rate(A, B) >= 0.9", ratings).message == "1; win rate 1 of 2 matches, 1 without an outcome"


def test_an_undefined_number_fails_with_its_reason() -> None:
    ratings = rate(play(MemoryStore(), {("A", "B"): [1.0, 1.0]}))
    result = check("rating(A) >= 1000", ratings)
    assert not result.passed
    assert result.message == 'undefined: "A" won all of its 2 matches, so its strength has no finite estimate'


def test_the_baseline_of_win_rates_has_that_name() -> None:
    ratings = rate(play(MemoryStore(), OUTCOMES), method="win_rate", baseline="base")
    assert check("win_rate(mine) >= 0.75", ratings).passed
    assert check("win_rate(mine, baseline) >= 0.75", ratings).passed
    assert check("rating(mine) better than baseline", ratings).passed


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ("accuracy >= 0.9", "ratings have no number called 'accuracy'; they have win_rate, rating"),
        ("win_rate >= 0.5", "name a system, such as win_rate(mine)"),
        ("win_rate(mone, base) >= 0.5", "no system is called 'mone' (did you mean 'mine'?): mine, base, old"),
        ("win_rate(mine, mine) >= 0.5", "mine does not meet itself"),
        ("win_rate(mine) better than base", "write a win rate against a system as `win_rate(mine, base) > 0.5`"),
        ("win_rate(mine, length=3) >= 0.5", "win_rate has no parameter 'length'"),
        ("rating(mine)[topic=a] >= 0.5", "ratings have no groups"),
        ("rating(mine) better than mine", "compares a system with itself"),
        ("inconsistency(mine) <= 0.5", "is a number of all matches"),
        ("win_rate(mine, base) >= 0.5 at 95% anytime", "exist for means of one number per row, not for win_rate"),
        ("mine wins against base >= 55% at 95% anytime", "exist for means of one number per row, not for win_rate"),
        ("rating(mine) better than base anytime", "bounds for repeated looks (`anytime`, --until) exist for means"),
        ("position_bias <= 55", "a share of judgements, lies between 0 and 1, never at 55; write 55 % or 0.55"),
        ("inconsistency <= 10 at 95%", "a share of pairs, lies between 0 and 1, never at 10; write 10 % or 0.1"),
        ("mine wins against base <= 55", "a share of wins lies between 0 and 1, never at 55; write 55 % or 0.55"),
        ("win_rate(mine) >= 150 %", "a share of wins lies between 0 % and 100 %, never at 150 %"),
        ("win_rate(mine) >= -0.1", "a share of wins lies between 0 and 1, never at -0.1"),
        (
            "rating(mine) >= 55 %",
            "a Bradley–Terry rating, in points, is no share from 0 to 1; write the threshold with",
        ),
    ],
)
def test_what_is_no_rule_about_ratings_is_refused(rule: str, message: str, ratings: Ratings) -> None:
    with pytest.raises(SpecError) as error:
        check_rating_gates([rule], ratings)
    assert message in str(error.value)


def test_thresholds_of_shares_as_ratings_are_shares() -> None:
    ratings = rate(play(MemoryStore(), OUTCOMES), method="win_rate")
    assert check("rating(mine) >= 68 %", ratings).passed
    assert check("rating(mine) not worse than base by 0.2", ratings).passed
    for rule, message in (
        ("rating(mine) >= 68", "a share of wins lies between 0 and 1, never at 68; write 68 % or 0.68"),
        ("rating(mine) not worse than base by 20", "differ by at most 1, never by 20; did you mean 0.2?"),
        ("rating(mine) >= base + 60", "ratings by win_rate differ by at most 1, never by 60; did you mean 0.6?"),
    ):
        with pytest.raises(SpecError) as error:
            check(rule, ratings)
        assert message in str(error.value)


@pytest.mark.parametrize(
    ("rule", "written"),
    [
        ("win_rate(a) >= 0.5 at 90%", "rating(a) >= 0.5 at 90%"),
        ("a wins against base > 50 %", "rating(a) > 0.5"),
        ("win_rate(a, b) >= 0.5", "rating(a) >= 0.5"),
        ("win_rate(a) >= base - 0.02", "rating(a) better than base"),
        ("'a b' wins > 50 %", 'rating("a b") > 0.5'),
    ],
)
def test_ratings_at_equal_length_have_no_raw_win_rate_to_gate(rule: str, written: str) -> None:
    method = RatingMethod(kind="equal_length", baseline="base")
    with pytest.raises(SpecError) as error:
        check_limits(Gate.parse(rule), method)
    assert f"{written.partition(')')[0]}) is the win rate at equal length" in str(error.value)
    assert f"write `{written}`, or rate by method win_rate" in str(error.value)
    check_limits(Gate.parse(written), method)


def test_swapped_arguments_are_refused(ratings: Ratings) -> None:
    swapped: Any = [ratings, ["win_rate(mine) >= 0.5"]]
    for rules, about in (swapped, ("win_rate(mine) >= 0.5", ratings)):
        with pytest.raises(SpecError, match="takes a list of rules and then the ratings"):
            check_rating_gates(rules, about)


def test_a_win_rate_is_no_number_of_an_evaluation() -> None:
    assert Gate.parse("win_rate(mine, base) >= 0.5").parameters == (("against", "base"),)
    with pytest.raises(SpecError, match="expected `=`"):
        Gate.parse("accuracy(mine, base) >= 0.5")


def test_gates_of_ratings_hold_in_test_suites(ratings: Ratings) -> None:
    assert_gate(ratings, "win_rate(mine, base) >= 0.55 at 95%")
    with pytest.raises(AssertionError, match=r"FAILED  mine: lower 95% bound 0\.6129"):
        assert_gate(ratings, "win_rate(mine, base) >= 0.7 at 95%")
    with pytest.raises(SpecError, match="name the systems themselves"):
        assert_gate(ratings, "win_rate(mine, base) >= 0.7", scorer="x")


def test_unknown_orders_have_no_position_bias() -> None:
    winners = ("model_a", "model_b", "tie")
    rows = [{"question_id": n, "model_a": "A", "model_b": "B", "winner": each} for n, each in enumerate(winners)]
    result = check("position_bias <= 0.6", rate(read_battles(rows)))
    assert result.message == "undefined: no order of presentation is known"
