"""Ratings of systems from matches."""

import math
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pytest
from rich.console import Console
from support.matches import Outcomes, play, play_runs, table_judge

from evaluand import (
    DataError,
    Dataset,
    EvaluandWarning,
    Matcher,
    Matches,
    MemoryStore,
    Ratings,
    Runner,
    SpecError,
    comparison_scorer,
    rate,
)
from evaluand.comparison.significance import sign_flip
from evaluand.matches.battles import battle_batches, read_battles
from evaluand.matches.people import Judged, RecordedBattles, match_by_people, pairs_to_judge
from evaluand.matches.ratings.estimates import _exchange_p, estimate_win_rates
from evaluand.matches.ratings.method import RatingMethod, RatingParameters
from evaluand.matches.ratings.tables import gather
from evaluand.matches.schedule import AgainstBaseline
from evaluand.metrics.ratings.counts import MatchRows
from evaluand.metrics.ratings.equal_length import equal_length_win_rate
from evaluand.metrics.ratings.win_rates import win_rates
from evaluand.report.terminal.ratings import ratings_table
from evaluand.report.verification import verify
from evaluand.store.store import Store

POINTS = 400 / math.log(10)


def answer(label: str) -> Callable[[int], str]:
    return lambda number: f"{label}{number}"


def row_of(ratings: Ratings, system: str) -> dict[str, object]:
    return next(row for row in ratings.ratings if row["system"] == system)


TWO: Outcomes = {("A", "B"): [1.0, 1.0, (1.0, 0.0), 0.0]}
"""A wins two examples in both orders, one in one order, and loses one."""


@pytest.fixture(scope="module")
def two() -> Matches:
    return play(MemoryStore(), TWO)


@pytest.mark.parametrize(
    ("rule", "won", "tied", "lost", "win_rate"),
    [("average", 2.5, 0, 1.5, 2.5 / 4), ("tie", 2, 1, 1, 2.5 / 4), ("drop", 2, 0, 1, 2 / 3)],
)
def test_contradictory_orders_count_by_the_declared_rule(
    two: Matches, rule: str, won: float, tied: float, lost: float, win_rate: float
) -> None:
    ratings = rate(two, contradictory=rule)
    best, other = ratings.ratings
    assert [best[name] for name in ("system", "won", "tied", "lost")] == ["A", won, tied, lost]
    assert best["win_rate"] == pytest.approx(win_rate)
    strength = math.log(win_rate / (1 - win_rate)) / 2
    assert best["strength"] == pytest.approx(strength)
    assert best["rating"] == pytest.approx(1000 + POINTS * strength)
    assert other["rating"] == pytest.approx(1000 - POINTS * strength)
    [difference] = ratings.differences
    assert difference["difference"] == pytest.approx(2 * POINTS * strength)


def test_win_rates_count_each_opponent_equally() -> None:
    matches = play(MemoryStore(), {("A", "B"): [1.0, 1.0], ("A", "C"): [0.0, 0.5], ("B", "C"): [1.0, 0.0]})
    ratings = rate(matches, method="win_rate")
    assert {row["system"]: row["rating"] for row in ratings.ratings} == {"A": 0.625, "C": 0.625, "B": 0.25}
    matrix = {(row["a"], row["b"]): row["win_rate"] for row in ratings.win_rates}
    assert matrix == {
        ("A", "B"): 1.0,
        ("B", "A"): 0.0,
        ("A", "C"): 0.25,
        ("C", "A"): 0.75,
        ("B", "C"): 0.5,
        ("C", "B"): 0.5,
    }


def test_win_rates_against_a_baseline_take_its_matches_only() -> None:
    matches = play(MemoryStore(), {("A", "B"): [1.0, 1.0], ("A", "C"): [0.0, 0.5], ("B", "C"): [1.0, 0.0]})
    ratings = rate(matches, method="win_rate", baseline="C")
    assert {row["system"]: row["rating"] for row in ratings.ratings} == {"A": 0.25, "B": 0.5, "C": 0.5}
    assert row_of(ratings, "C")["reason"] == "the baseline: ½ by definition"
    assert row_of(ratings, "C")["low"] is None
    names = ("win_rate", "win_rate_worst", "win_rate_best", "won", "tied", "lost", "opponents")
    assert [row_of(ratings, "A")[name] for name in names] == [0.25, 0.25, 0.25, 0, 1, 1, 1]
    assert [row_of(ratings, "C")[name] for name in names] == [0.625, 0.625, 0.625, 2, 1, 1, 2]
    matrix = {(row["a"], row["b"]): row["won"] for row in ratings.win_rates}
    assert matrix["A", "B"] == 2


def test_probabilities_are_shares_or_are_rounded_to_the_winner() -> None:
    matches = play(MemoryStore(), {("A", "B"): [0.75, 0.75, 0.25, 0.25]})
    assert row_of(rate(matches, method="win_rate"), "A")["rating"] == 0.5
    matches = play(MemoryStore(), {("A", "B"): [0.75, 0.75, 0.75, 0.0]})
    assert row_of(rate(matches, method="win_rate"), "A")["rating"] == pytest.approx(2.25 / 4)
    assert row_of(rate(matches, method="win_rate", outcomes="discrete"), "A")["rating"] == pytest.approx(3 / 4)


def test_strengths_expect_as_many_wins_as_there_were() -> None:
    outcomes = {("A", "B"): [1, 1, 0, 0.5], ("A", "C"): [1, 1, 1, 0], ("B", "C"): [1, 0, 1, 0.5]}
    ratings = rate(play(MemoryStore(), outcomes))
    strength = {row["system"]: row["strength"] for row in ratings.ratings}
    expected = {
        one: sum(4 / (1 + math.exp(strength[other] - strength[one])) for other in strength if other != one)
        for one in strength
    }
    assert expected == pytest.approx({"A": 5.5, "B": 1.5 + 2.5, "C": 1 + 1.5})
    assert sum(strength.values()) == pytest.approx(0, abs=1e-9)


def test_an_undefeated_system_has_a_reason_and_no_number() -> None:
    outcomes = {("A", "B"): [1.0, 0.0, 1.0], ("A", "C"): [0.0, 0.0, 0.0], ("B", "C"): [0.0, 0.0, 0.0]}
    ratings = rate(play(MemoryStore(), outcomes))
    row = row_of(ratings, "C")
    assert (row["rating"], row["rank"], row["letters"]) == (None, None, None)
    assert row["reason"] == '"C" won all of its 6 matches, so its strength has no finite estimate'
    assert row["win_rate"] == 1.0
    assert [row["system"] for row in ratings.ratings] == ["A", "B", "C"]
    assert 'C: no rating, "C" won all of its 6 matches' in str(ratings)
    assert row_of(rate(play(MemoryStore(), outcomes), penalty=1.0), "C")["rank"] == 1


def test_an_undefeated_system_without_spread_has_neither_interval_nor_p_value_nor_error() -> None:
    ratings = rate(play(MemoryStore(), {("A", "B"): [1.0] * 5}), penalty=1.0)
    [difference] = ratings.differences
    assert (difference["low"], difference["high"], difference["p"]) == (None, None, None)
    assert [row["standard_error"] for row in ratings.ratings] == [None, None]


def test_ties_and_a_lost_example_never_pass_a_gate_that_ties_fail() -> None:
    tied, lost = (
        rate(play(MemoryStore(), {("A", "B"): [0.5] * 59 + [last]}), method="win_rate") for last in (0.5, 0.0)
    )
    bounds = [row_of(each, "A") for each in (tied, lost)]
    lows = [float(str(row["low"])) for row in bounds]
    assert 0.45 < lows[1] < lows[0] < 0.5


def test_an_interval_and_the_p_value_agree_when_a_system_ties_on_all_examples_with_the_baseline() -> None:
    quarter = [1.0, 0.5, 0.5, 0.5] * 15
    outcomes: Outcomes = {("C", "A"): [0.5] * 60, ("A", "B"): quarter, ("C", "B"): quarter}
    ratings = rate(play(MemoryStore(), outcomes), method="win_rate", baseline="A")
    difference = next(each for each in ratings.differences if {each["a"], each["b"]} == {"C", "B"})
    assert difference["p_holm"] < 0.05
    assert difference["low"] * difference["high"] > 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("missing", "examples", "baseline"),
    [((0, 0, 0, 0), 20, None), ((0.7, 0, 0, 0, 0), 20, None), ((0.5, 0.5, 0.5, 0, 0), 20, None), ((0,) * 4, 20, "0")],
)
def test_intervals_of_differences_of_win_rates_cover_the_truth(
    missing: tuple[float, ...], examples: int, baseline: str | None
) -> None:
    rng, systems = np.random.default_rng(1), len(missing)
    labels, strength = [str(each) for each in range(systems)], np.linspace(-0.75, 0.75, systems)
    a, b = np.triu_indices(systems, 1)

    def chances(n: int) -> np.ndarray:
        ability = strength + rng.normal(size=(n, systems))
        return np.asarray(1 / (1 + np.exp(ability[:, b] - ability[:, a])))

    true = np.full((systems, systems), np.nan)
    true[a, b] = chances(200_000).mean(axis=0)
    true[b, a] = 1 - true[a, b]
    value = np.nanmean(true, axis=1) if baseline is None else np.nan_to_num(true[:, int(baseline)], nan=0.5)
    covered = []
    for _ in range(1000):
        answered = rng.random((examples, systems)) >= missing
        example, pair = np.nonzero(answered[:, a] & answered[:, b])
        outcome = (rng.random((examples, len(a))) < chances(examples))[example, pair].astype(float)
        rows = MatchRows.read(a[pair], b[pair], outcome, example, systems=systems)
        found = estimate_win_rates(rows, win_rates(rows), labels, baseline, 0.95)
        difference = value[a] - value[b]
        inside = (found.difference_low[a, b] <= difference) & (difference <= found.difference_high[a, b])
        covered.append(np.where(np.isnan(found.difference_low[a, b]), np.nan, inside))
    share = np.nanmean(covered, axis=0)
    name = f"{systems} systems, {examples} examples, missing {missing}, baseline {baseline}"
    print(f"| {name} | {share.mean():.3f} | {share.min():.3f} |")  # noqa: T201
    assert share.min() >= 0.91


def test_systems_that_no_matches_link_are_not_compared() -> None:
    outcomes = {("A", "B"): [1.0, 0.0, 1.0], ("C", "D"): [1.0, 0.0, 0.0]}
    ratings = rate(play(MemoryStore(), outcomes))
    assert all(row["rating"] is None and "cannot be rated" in str(row["reason"]) for row in ratings.ratings)


def test_win_rates_against_different_opponents_are_not_ranked() -> None:
    ratings = rate(play(MemoryStore(), {("A", "B"): [1.0, 0.0], ("B", "C"): [1.0, 0.0]}), method="win_rate")
    assert {row["rank"] for row in ratings.ratings} == {None}
    reason = next(row["reason"] for row in ratings.differences if {row["a"], row["b"]} == {"A", "B"})
    assert reason.startswith('only one of them met "C", and win rates against different opponents cannot be compared')
    alike = next(row for row in ratings.differences if {row["a"], row["b"]} == {"A", "C"})
    assert alike["difference"] == 0.0


def test_few_wins_are_no_significant_difference() -> None:
    [difference] = rate(play(MemoryStore(), {("A", "B"): [1.0, 1.0, 1.0]}), method="win_rate").differences
    assert (difference["difference"], difference["p"]) == (1.0, 0.25)
    assert difference["low"] < 0.5


def test_systems_share_a_rank_and_a_letter_unless_they_differ() -> None:
    wins, even = [1.0] * 12, [1.0, 0.0] * 6
    ratings = rate(play(MemoryStore(), {("A", "B"): even, ("A", "C"): wins, ("B", "C"): wins}), method="win_rate")
    assert [(row["system"], row["rank"], row["letters"]) for row in ratings.ratings] == [
        ("A", 1, "a"),
        ("B", 1, "a"),
        ("C", 3, "b"),
    ]


def test_missing_responses_are_left_out_with_bounds_or_lost_or_refused() -> None:
    matches = play(MemoryStore(), {("A", "B"): [0.5, 0.0, 0.0, 1.0]}, fails={"B": {3}})
    row = row_of(rate(matches, method="win_rate"), "B")
    assert [row[name] for name in ("rating", "n", "won", "tied", "n_missing")] == [pytest.approx(2.5 / 3), 3, 2, 1, 1]
    assert [row["win_rate_worst"], row["win_rate_best"]] == [2.5 / 4, 3.5 / 4]
    row = row_of(rate(matches, method="win_rate", missing="lose"), "B")
    assert [row[name] for name in ("rating", "n", "lost", "n_missing")] == [2.5 / 4, 4, 1, 0]
    with pytest.raises(DataError, match="2 matches of 8 without an outcome, and missing=refuse"):
        rate(matches, missing="refuse")


def test_an_order_that_the_judge_did_not_decide_is_half_a_match() -> None:
    ratings = rate(play(MemoryStore(), {("A", "B"): [1.0, (0.0, None), 0.0]}), method="win_rate")
    row = row_of(ratings, "A")
    assert [row[name] for name in ("n", "won", "lost", "n_missing")] == [2.5, 1, 1.5, 0.5]
    assert row["rating"] == pytest.approx(1 / 2.5)


ALL: Outcomes = {
    ("A", "B"): [1, 0, 1, 1],
    ("A", "C"): [1, 1, 0, 1],
    ("B", "C"): [1, 0, 0, 1],
    ("A", "D"): [0, 0, 1, 1],
    ("B", "D"): [0, 1, 0, 0],
    ("C", "D"): [0, 0, 0, 1],
}


def extend(store: Store) -> tuple[Matches, Matches, Matches]:
    """The matches of three runs, those of a fourth against the first, and those of all four."""
    judge = table_judge(ALL)
    a, b, c, d = play_runs(store, "ABCD", 4)
    matcher = Matcher()
    three = matcher.match([a, b, c], judge, labels=["A", "B", "C"])
    fourth = matcher.match([d, a], judge, labels=["D", "A"], schedule=AgainstBaseline("A"))
    return three, fourth, matcher.match([a, b, c, d], judge, labels=["A", "B", "C", "D"])


def test_three_runs_are_extended_by_a_fourth() -> None:
    store = MemoryStore()
    three, fourth, every = extend(store)
    tables = rate(every).to_dict()
    for sets in ((three, every), (every, three), (three, fourth, every), (every, fourth, every)):
        extended = rate(*sets).to_dict()
        assert [extended[name] for name in ("ratings", "win_rates", "differences", "bias")] == [
            tables[name] for name in ("ratings", "win_rates", "differences", "bias")
        ]
    extended = rate(three, fourth)
    counts = {row["system"]: row["n"] for row in extended.ratings}
    assert counts == {"A": 12, "B": 8, "C": 8, "D": 4}
    against = next(row for row in extended.win_rates if (row["a"], row["b"]) == ("D", "A"))
    assert [against[name] for name in ("won", "lost", "win_rate")] == [2, 2, 0.5]


def test_examples_of_different_datasets_meet_by_their_content() -> None:
    store = MemoryStore()
    judge = comparison_scorer(
        lambda first, second: "first" if first < second else "second", name="alphabet", version="1"
    )
    rows = [{"input": number} for number in range(4)]
    sets = []
    for some in (rows[:3], rows[:0:-1]):
        data = Dataset.from_rows(some)
        runs = [Runner(store).run(answer(label), data, name=f"run/{label}") for label in "AB"]
        sets.append(Matcher().match(runs, judge, labels=["A", "B"]))
    with pytest.warns(EvaluandWarning, match="system 'A' is another run in matches"):
        ratings = rate(*sets, method="win_rate")
    assert row_of(ratings, "A")["n"] == 4
    assert row_of(ratings, "A")["examples"] == 4


def test_two_judges_of_one_match_both_count_and_are_listed() -> None:
    store = MemoryStore()
    runs = play_runs(store, "AB", 6)
    one = comparison_scorer(lambda first, second: "first", name="first always", version="1")
    other = comparison_scorer(
        lambda first, second: "first" if first < second else "second", name="alphabet", version="1"
    )
    ratings = rate(*(Matcher().match(runs, judge, labels=["A", "B"]) for judge in (one, other)))
    assert row_of(ratings, "A")["n"] == 12
    shares = {row["judge"]: row["share"] for row in ratings.bias if row["measure"] == "position_bias"}
    assert shares == {None: 0.75, "first always": 1.0, "alphabet": 0.5}
    shares = {row["judge"]: row["share"] for row in ratings.bias if row["measure"] == "inconsistency"}
    assert shares == {None: 0.5, "first always": 1.0, "alphabet": 0.0}


def test_clusters_of_the_dataset_are_drawn_together() -> None:
    store = MemoryStore()
    rows = [{"input": number, "doc": number // 2} for number in range(40)]
    judge = comparison_scorer(lambda first, second: _by_document(first, second), name="documents")
    found = []
    for cluster in (None, "doc"):
        data = Dataset.from_rows(rows, cluster=cluster) if cluster else Dataset.from_rows(rows)
        runs = [Runner(store).run(answer(label), data) for label in "AB"]
        found.append(rate(Matcher().match(runs, judge, labels=["A", "B"])).ratings[0])
    alone, clustered = found
    assert alone["rating"] == clustered["rating"]
    assert clustered["standard_error"] / alone["standard_error"] == pytest.approx(
        math.sqrt(2 * (20 / 19) / (40 / 39)), rel=1e-6
    )


def _by_document(first: str, second: str) -> str:
    a_wins = int(first[1:]) // 2 % 3 == 0
    return "first" if (first[0] == "A") == a_wins else "second"


def test_ratings_are_stored_once_and_verified() -> None:
    store = MemoryStore()
    matches = play(store, TWO)
    ratings = rate(matches, name="ratings/demo")
    again = rate(matches)
    assert (again.id, again.digest, str(again.receipt)) == (ratings.id, ratings.digest, str(again.receipt))
    assert rate(matches, seed=1).id != ratings.id
    assert rate(play(MemoryStore(), TWO)).digest == ratings.digest
    assert verify(store, "ratings", ratings.id) == []
    assert Ratings.open(store, "ratings/demo").to_dict() == ratings.to_dict()
    assert [each.id for each in ratings.matches if each] == [matches.id]
    assert ratings.table("bias").num_rows == 2


def test_the_signature_names_what_differs_from_the_usual() -> None:
    assert RatingMethod(kind="win_rate", baseline="gpt 4", missing="lose").signature(0.9) == (
        'win_rate v2 baseline="gpt 4" missing=lose interval=clustered_wilson 90%'
    )
    method = RatingMethod(penalty=0.5, covariates=["length", "position"], contradictory="drop")
    assert RatingMethod.from_spec(method.spec) == method


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "elo"}, "method is 'elo'; give one of bradley_terry, win_rate"),
        ({"ties": "davidsen"}, "ties is 'davidsen'; give one of half, davidson, rao_kupper (did you mean 'davidson'?)"),
        ({"method": "win_rate", "ties": "half"}, "ties is a parameter of bradley_terry, not of win_rate; leave it out"),
        ({"baseline": "A"}, "baseline is a parameter of win_rate and equal_length, not of bradley_terry"),
        ({"method": "win_rate", "baseline": "Q"}, "baseline 'Q' is not one of the systems"),
        ({"penalty": -1}, "penalty is -1; give a finite number of at least 0"),
        ({"contradictory": "first"}, "contradictory is 'first'; give one of average, tie, drop"),
        ({"missing": "wrong"}, "missing is 'wrong'; give one of leave_out, lose, refuse"),
        ({"covariates": ["size"]}, "a covariate is 'size'; give one of length, words"),
        ({"covariates": ["length"], "ties": "davidson"}, "covariates need ties=half, not davidson"),
        ({"covariates": ["length"], "missing": "lose"}, "missing=lose cannot be used with covariates"),
        ({"ties": "davidson", "outcomes": "weighted"}, "ties=davidson counts winners"),
        ({"covariates": 3}, "covariates must be names, such as length, not 3"),
        (
            {"method": "equal_length", "baseline": "A", "missing": "lose"},
            "missing=lose cannot be used with equal_length: a missing response has no length",
        ),
        ({"replicates": 3}, "rate: replicates=3 must be an integer of at least 100"),
        ({"confidence": 95}, "confidence=95 must lie between 0 and 1"),
    ],
)
def test_wrong_parameters_are_refused_in_one_sentence(two: Matches, options: dict[str, object], message: str) -> None:
    with pytest.raises(SpecError) as error:
        rate(two, **options)  # type: ignore[arg-type]
    assert message in str(error.value)


@pytest.mark.parametrize("parameter", [{"ties": "davidson"}, {"missing": "leave_out"}, {"weighted": False}])
def test_parameters_next_to_a_method_that_has_them_are_refused(two: Matches, parameter: dict[str, Any]) -> None:
    [name] = parameter
    with pytest.raises(SpecError, match=f"{name} is a parameter of the RatingMethod that is the method; set it there"):
        rate(two, method=RatingMethod(kind="win_rate"), **parameter)
    assert rate(two, method=RatingMethod(kind="win_rate", missing="lose")).method.missing == "lose"


def test_rate_takes_every_parameter_of_the_method() -> None:
    assert [*RatingParameters.__annotations__] == [each.name for each in fields(RatingMethod) if each.name != "kind"]


def test_a_parameter_that_rate_lacks_is_refused(two: Matches) -> None:
    with pytest.raises(SpecError, match=r"rate has no parameter 'tie' \(did you mean 'ties'\?\)"):
        rate(two, tie="half")


def test_undefined_differences_have_a_reason() -> None:
    for outcomes in ([0.5] * 4, [0.75]):
        [row] = rate(play(MemoryStore(), {("A", "B"): outcomes})).differences
        assert [row[name] for name in ("low", "high", "p")] == [None] * 3
        assert row["reason"] == "the examples show no spread, so there is no interval"


def test_a_table_that_ratings_lack_is_refused(two: Matches) -> None:
    with pytest.raises(SpecError, match=r"ratings have no table 'win_rate' \(did you mean 'win_rates'\?\)"):
        rate(two).table("win_rate")


def test_only_matches_are_rated() -> None:
    with pytest.raises(SpecError, match="rate takes matches"):
        rate()
    with pytest.raises(SpecError, match="rate takes matches"):
        rate("name")  # type: ignore[arg-type]
    with pytest.raises(SpecError, match="matches are rated in one store"):
        rate(play(MemoryStore(), TWO), play(MemoryStore(), ALL))


def test_gathered_pairs_have_the_lower_number_first() -> None:
    three, fourth, _ = extend(MemoryStore())
    table = gather([three, fourth])
    assert (table.a < table.b).all()
    assert table.systems == ["A", "B", "C", "D"]
    assert len(table) == 2 * (12 + 4)


def battle(question: int, a: str, b: str, winner: str, **more: object) -> dict[str, object]:
    return {"question_id": question, "model_a": a, "model_b": b, "winner": winner} | more


def test_each_battle_of_a_file_is_a_match() -> None:
    rows = [
        battle(1, "A", "B", "model_a"),
        battle(1, "A", "B", "model_b"),
        battle(1, "B", "A", "model_b"),
        battle(2, "B", "A", "tie"),
    ]
    ratings = rate(read_battles(rows))
    row = row_of(ratings, "A")
    assert [row[name] for name in ("n", "won", "tied", "lost", "examples")] == [4, 2, 1, 1, 2]
    assert ratings.bias == []


def test_battles_of_two_files_meet_in_examples_with_the_same_input() -> None:
    store = MemoryStore()
    first = [battle(1, "A", "B", "model_a", judge="ann", input="why?")]
    second = [battle(1, "A", "C", "model_a", judge="ann", input="why?"), *first]
    ratings = rate(*(read_battles(rows, store) for rows in (first, second)), method="win_rate", baseline="A")
    assert {row["system"]: (row["n"], row["examples"]) for row in ratings.ratings} == {
        "A": (2, 1),
        "B": (1, 1),
        "C": (1, 1),
    }
    unknown = [[battle(1, "A", "B", "model_a")], [battle(1, "B", "A", "model_a")]]
    ratings = rate(*(read_battles(rows, store) for rows in unknown))
    assert row_of(ratings, "A")["examples"] == 2


def import_battles(store: Store, path: Path, *rows: dict[str, object]) -> Matches:
    path.write_bytes(b"\n".join(map(orjson.dumps, rows)))
    return read_battles(str(path), store)


def test_a_file_without_judges_that_grew_extends_what_it_was(tmp_path: Path) -> None:
    store, path = MemoryStore(), tmp_path / "arena.jsonl"
    rows = [battle(number, "A", "B", "model_a") for number in range(3)]
    more = [battle(number, "A", "B", "model_b") for number in (3, 4)]
    sets = [import_battles(store, path, *rows), import_battles(store, path, *rows, *more)]
    row = row_of(rate(*sets, method="win_rate"), "A")
    assert [row[name] for name in ("won", "lost", "examples")] == [3, 2, 5]


def test_files_of_two_names_have_two_judges_and_changes_in_a_file_of_one_name_are_reported(tmp_path: Path) -> None:
    store, rows = MemoryStore(), [battle(number, "A", "B", "model_a") for number in range(3)]
    first, copy = (import_battles(store, tmp_path / name, *rows[:n]) for name, n in (("a.jsonl", 2), ("b.jsonl", 3)))
    assert row_of(rate(first, copy, method="win_rate"), "A")["won"] == 5
    other = import_battles(store, tmp_path / "a.jsonl", battle(0, "A", "B", "model_b"), rows[1])
    with pytest.warns(EvaluandWarning, match="1 judgement in matches .* differ, and the later count"):
        assert row_of(rate(first, other, method="win_rate"), "A")["lost"] == 1


def test_what_files_mean_does_not_depend_on_what_was_read_before(tmp_path: Path) -> None:
    store, rows = MemoryStore(), [battle(number, "A", "B", "model_a") for number in range(3)]
    import_battles(store, tmp_path / "before.jsonl", *rows)
    ann = import_battles(store, tmp_path / "ann.jsonl", *rows)
    grown = import_battles(store, tmp_path / "ann.jsonl", *rows, battle(3, "A", "B", "model_b"))
    assert row_of(rate(ann, grown, method="win_rate"), "A")["n"] == 4


def test_columns_of_one_file_are_different_judges(tmp_path: Path) -> None:
    path = tmp_path / "votes.csv"
    path.write_text("id,model_a,model_b,ann,bob,eve,why\n1,A,B,model_a,model_b,model_a,so\n2,A,B,tie,model_b,tie,so\n")
    store = MemoryStore()
    ann, bob = (read_battles(str(path), store, columns={"winner": person}) for person in ("ann", "bob"))
    eve = read_battles(str(path), store, columns={"winner": "eve", "explanation": "why"})
    assert row_of(rate(ann, bob, method="win_rate"), "A")["n"] == 4
    assert row_of(rate(ann, eve, method="win_rate"), "A")["n"] == 4


def test_rows_without_example_and_input_are_an_example_each() -> None:
    with pytest.warns(EvaluandWarning, match="counts as a separate example"):
        matches = read_battles([{"model_a": "A", "model_b": "B", "winner": each} for each in ("A", "B", "A", "tie")])
    row = row_of(rate(matches, method="win_rate"), "A")
    assert row["examples"] == 4
    assert row["low"] < row["win_rate"] < row["high"]


def test_battles_count_together_with_judged_runs() -> None:
    store = MemoryStore()
    judged = play(store, {("A", "B"): [1.0, 0.0]})
    assert row_of(rate(judged, read_battles([battle(1, "A", "B", "model_a")], store)), "A")["won"] == 2


def test_votes_on_runs_count_as_in_their_file(tmp_path: Path) -> None:
    store = MemoryStore()
    judged = play(store, {("A", "B"): [1.0, 0.0]})
    rows = [{"id": "0", "model_a": "A", "model_b": "B", "winner": winner} for winner in ("A", "A", "B")]
    (tmp_path / "votes.jsonl").write_bytes(b"\n".join(map(orjson.dumps, rows)))
    runs = [run for run in judged.runs if run is not None]
    votes = Matcher().match(runs, RecordedBattles(str(tmp_path / "votes.jsonl")), labels=["A", "B"])
    assert [row_of(rate(votes), "A")[name] for name in ("won", "lost")] == [2, 1]
    assert [row_of(rate(votes, judged), "A")[name] for name in ("won", "lost")] == [3, 2]


def test_what_a_person_has_judged_counts_once_when_more_is_judged() -> None:
    runs = play_runs(MemoryStore(), ["A", "B"], 4)
    judged = [Judged(pair.key, "first", "ann", None) for pair in pairs_to_judge(runs)]
    half, all_ = (match_by_people(runs, each, labels=["A", "B"]).matches for each in (judged[:2], judged))
    ratings = rate(half, all_, method="win_rate")
    assert row_of(ratings, "A")["n"] == 4
    assert {row["judge"] for row in ratings.bias} == {None, "ann"}


def test_many_judges_are_shown_together_and_stored_one_by_one() -> None:
    rows = [
        battle(n // 2, "A", "B", "model_a", order="ab" if n % 2 else "ba", judge=f"voter {n // 2}") for n in range(50)
    ]
    facts = rate(read_battles(rows), method="win_rate").to_dict()
    assert len(facts["bias"]) == 2 * (1 + 25)
    console = Console(width=120)
    with console.capture() as capture:
        console.print(ratings_table(facts))
    assert "voter" not in capture.get()
    assert "each of 25 judges: --json" in capture.get()


def test_ties_of_equal_responses_say_nothing_about_the_position() -> None:
    store = MemoryStore()
    data = Dataset.from_rows([{"input": number} for number in range(12)])
    other = Runner(store).run(lambda number: f"A{number}" if number >= 8 else f"B{number}", data)
    runs = [Runner(store).run(answer("A"), data), other]
    judge = comparison_scorer(lambda first, index: "second" if index % 4 == 0 else "first")
    ratings = rate(Matcher().match(runs, judge, labels=["A", "B"]), covariates=["position"])
    assert ratings.parameters[0]["value"] == pytest.approx(math.log(3))


def test_missing_responses_say_nothing_about_the_position() -> None:
    def judge(first: str, second: str, index: int) -> str:
        return "second" if index % 4 == 0 else "first"

    runs = play_runs(MemoryStore(), ["A", "B"], 14, fails={"A": {8, 9, 10}, "B": {11, 12, 13}})
    matches = Matcher().match(runs, comparison_scorer(judge), labels=["A", "B"])
    ratings = rate(matches, covariates=["position"], missing="lose")
    assert row_of(ratings, "A")["lost"] == 4 + 3
    assert ratings.parameters[0]["value"] == pytest.approx(math.log(3))


def test_sets_with_equal_rows_and_other_systems_are_not_confused() -> None:
    store = MemoryStore()
    base = read_battles([battle(1, "A", "B", "model_a"), battle(2, "A", "B", "model_b")], store)
    one = read_battles([battle(1, "B", "C", "model_a"), battle(2, "B", "C", "tie")], store)
    other = read_battles([battle(1, "A", "C", "model_a"), battle(2, "A", "C", "tie")], store)
    assert one.digest == other.digest
    assert rate(base, one, penalty=1.0).id != rate(base, other, penalty=1.0).id


def judge_by_length(store: Store, systems: dict[str, tuple[float, int]], n: int = 240) -> Matches:
    """Systems with a quality (their chance against the baseline) and a length; the judge prefers longer responses."""
    labels = [*systems]

    def respond(label: str) -> Callable[[int], str]:
        return lambda number: label + "x" * (systems[label][1] * (number * (ord(label) - 63) % 7 + 1))

    def judge(first: str, second: str, index: int) -> float:
        quality = math.log(systems[first[0]][0] / systems[second[0]][0])
        length = (len(first) - len(second)) / 20
        draw = (index * 0.6180339887 + 0.1 * (ord(first[0]) + ord(second[0]))) % 1
        chance = 1 / (1 + math.exp(-quality - length)) if first[0] < second[0] else 1 / (1 + math.exp(quality + length))
        return float((draw < chance) == (first[0] < second[0]))

    data = Dataset.from_rows([{"input": number} for number in range(n)])
    runs = [Runner(store).run(respond(label), data, name=label) for label in labels]
    scorer = comparison_scorer(judge, name="length", version=str(systems))
    return Matcher().match(runs, scorer, labels=labels)


def test_win_rates_at_equal_length_are_fair_and_stay_when_systems_are_added() -> None:
    store = MemoryStore()
    systems = {"A": (1.0, 4), "B": (1.0, 8), "C": (3.0, 2)}
    two = rate(judge_by_length(store, {name: systems[name] for name in "AB"}), method="equal_length", baseline="A")
    three = rate(judge_by_length(store, systems), method="equal_length", baseline="A")
    raw = row_of(rate(judge_by_length(store, systems), method="win_rate", baseline="A"), "B")
    row = row_of(three, "B")
    assert raw["rating"] > 0.6
    assert row["low"] < 0.5 < row["high"]
    assert row_of(two, "B")["rating"] == row["rating"]
    assert row_of(three, "C")["rating"] > 0.6
    assert row_of(three, "A")["reason"] == "the baseline: ½ by definition"
    assert three.signature == "equal_length v2 baseline=A interval=clustered_wilson 95%"
    assert {(each["name"], each["system"]) for each in three.parameters} >= {("length", "B"), ("quality", "B")}
    assert verify(store, "ratings", three.id) == []


def test_covariates_free_strengths_from_length() -> None:
    matches = judge_by_length(MemoryStore(), {"A": (1.0, 4), "B": (1.0, 8), "C": (1.0, 6)})
    plain, free = rate(matches), rate(matches, covariates=["length", "position"])
    assert plain.ratings[0]["system"] == "B"
    assert abs(row_of(free, "B")["strength"]) < abs(row_of(plain, "B")["strength"]) / 2
    [length, position] = free.parameters
    assert length["low"] > 0
    assert position["value"] == pytest.approx(0, abs=1e-6)
    assert row_of(free, "B")["low"] < 1000 < row_of(free, "B")["high"]


def test_lengths_must_be_known_for_length_control() -> None:
    matches = read_battles([battle(number, "A", "B", "model_a") for number in range(9)])
    for options in ({"method": "equal_length", "baseline": "A"}, {"covariates": ["length"]}):
        with pytest.raises(SpecError, match="length: 9 matches without the length and style of the responses"):
            rate(matches, **options)  # type: ignore[arg-type]
    with pytest.raises(SpecError, match="covariate position: the order of 9 matches is unknown"):
        rate(matches, covariates="position")
    with pytest.raises(SpecError, match="equal_length needs a baseline"):
        rate(matches, method="equal_length")


def test_p_values_are_the_same_whether_pairs_share_their_draws() -> None:
    rng = np.random.default_rng(3)
    centred = rng.normal(size=(40, 6)) + np.linspace(0, 0.4, 6)
    difference = np.zeros((6, 6))
    shared = _exchange_p(centred, difference)
    alone = _exchange_p(centred[:, :2], difference[:2, :2])
    assert shared[0, 1] == alone[0, 1]
    assert shared[0, 5] == pytest.approx(sign_flip(centred[:, 0] - centred[:, 5]).p, abs=0.002)  # other draws


@pytest.fixture(scope="module")
def silent() -> Matches:
    """Matches of which none of C has an outcome."""
    outcomes: Outcomes = {("A", "B"): [1.0, 0.0, 1.0], ("A", "C"): [None] * 3, ("B", "C"): [None] * 3}
    return play(MemoryStore(), outcomes, fails={"C": {0}})


@pytest.mark.parametrize(
    ("parameters", "reason"),
    [
        ({}, 'no match of "C" has an outcome (4 without a response, 8 abstained)'),
        ({"method": "win_rate"}, 'no match of "C" has an outcome (4 without a response, 8 abstained)'),
        (
            {"method": "win_rate", "baseline": "A"},
            'no match of "C" against "A" has an outcome (2 without a response, 4 abstained)',
        ),
        (
            {"method": "equal_length", "baseline": "A"},
            'no match of "C" against "A" has an outcome (2 without a response, 4 abstained)',
        ),
        ({"covariates": ["position"]}, 'no match of "C" has an outcome (4 without a response, 8 abstained)'),
    ],
)
def test_a_system_without_outcomes_has_the_reason_with_counts(
    silent: Matches, parameters: dict[str, Any], reason: str
) -> None:
    assert row_of(rate(silent, **parameters), "C")["reason"] == reason


def test_a_system_whose_matches_all_failed_contradict_or_do_not_exist_has_that_reason() -> None:
    battles = [{"id": 1, "model_a": "x", "model_b": "y", "winner": "error"}]
    assert row_of(rate(read_battles(battles)), "x")["reason"] == 'no match of "x" has an outcome (1 failed)'
    battles = [
        {"id": 1, "model_a": "x", "model_b": "y", "winner": "tie"},
        {"id": 1, "model_a": "z", "model_b": "y", "winner": "tie"},
    ]
    reason = row_of(rate(read_battles(battles), method="win_rate", baseline="x"), "z")["reason"]
    assert reason == '"z" has no matches against "x"'
    matches = play(MemoryStore(), {("A", "B"): [(1.0, 0.0)]})
    reason = row_of(rate(matches, contradictory="drop"), "A")["reason"]
    assert reason == 'no match of "A" counts (2 contradictory)'


def export(matches: Matches, store: Store) -> Matches:
    """The matches as they are read again from their export."""
    return read_battles([row for batch in battle_batches(matches) for row in batch.to_pylist()], store)


def counted(*sets: Matches) -> list[object]:
    tables = rate(*sets, replicates=100).to_dict()
    return [tables[name] for name in ("ratings", "win_rates", "differences")]


def test_an_export_rated_with_its_original_counts_each_match_once() -> None:
    store = MemoryStore()
    matches = play(store, TWO | {("A", "C"): [1.0, None, 0.5, 0.0], ("B", "C"): [0.0, 1.0, 1.0, 0.5]})
    exported = export(matches, store)
    again = export(exported, store)
    assert len(gather([exported])) == len(matches.table(["a"]))
    for sets in ((matches, exported), (exported, matches), (exported, again), (matches, exported, again)):
        assert counted(*sets) == counted(matches)


def test_an_export_of_part_of_the_matches_extends_the_others() -> None:
    store = MemoryStore()
    three, fourth, every = extend(store)
    assert counted(export(three, store), every) == counted(every)
    assert counted(export(fourth, store), three) == counted(fourth, three)


def test_the_judges_of_an_export_stay_different_judges() -> None:
    store = MemoryStore()
    runs = play_runs(store, "AB", 6)
    judges = [
        comparison_scorer(lambda first, second: "first", name="first always", version="1"),
        comparison_scorer(lambda first, second: "first" if first < second else "second", name="alphabet", version="1"),
    ]
    sets = [Matcher().match(runs, judge, labels=["A", "B"]) for judge in judges]
    assert counted(sets[0], export(sets[1], store)) == counted(*sets)
    assert counted(*sets, export(sets[1], store)) == counted(*sets)


def test_an_export_of_clustered_examples_belongs_to_their_clusters() -> None:
    store = MemoryStore()
    data = Dataset.from_rows([{"input": n, "doc": n // 2} for n in range(8)], cluster="doc")
    runs = [Runner(store).run(answer(label), data, name=f"run/{label}") for label in "AB"]
    judge = comparison_scorer(lambda first, second: _by_document(first, second), name="documents", version="1")
    matches = Matcher().match(runs, judge, labels=["A", "B"])
    assert counted(export(matches, store), matches) == counted(matches)


BATTLES = [
    {"id": n, "prompt": f"question {n}", "judge": "ann", "model_a": "x", "model_b": "y", "winner": winner}
    for n, winner in enumerate(["model_a", "model_b", "tie", "model_a", "model_a"])
]


def without(name: str, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{key: value for key, value in row.items() if key != name} for row in rows]


def test_files_of_battles_that_overlap_count_each_match_once() -> None:
    store = MemoryStore()
    parts = [read_battles(rows, store) for rows in (BATTLES[:3], BATTLES[1:])]
    assert row_of(rate(*parts), "x")["n"] == 5


@pytest.mark.parametrize("name", ["prompt", "judge"])
def test_files_of_battles_with_other_outcomes_or_examples_all_count(name: str) -> None:
    store = MemoryStore()
    other = [row | {"winner": "model_b"} for row in BATTLES[:3]]
    parts = [read_battles(without(name, rows), store) for rows in (BATTLES[:3], other)]
    assert row_of(rate(*parts), "x")["n"] == 6
    parts = [read_battles(without(name, rows), store) for rows in (BATTLES[:3], BATTLES[3:])]
    assert row_of(rate(*parts), "x")["n"] == 5


def weigh(weights: list[float], weighted: bool) -> Ratings:
    """Ratings of two systems by a table of outcomes, over examples with weights."""
    store = MemoryStore()
    data = Dataset.from_rows([{"input": n, "w": weight} for n, weight in enumerate(weights)], weight="w")
    runs = [Runner(store).run(lambda n, label=label: f"{label} {n}", data, name=f"run/{label}") for label in "AB"]
    outcomes: Outcomes = {("A", "B"): [1.0, 0.0, 0.5, 1.0, (1.0, 0.0)]}
    return rate(Matcher().match(runs, table_judge(outcomes), labels=["A", "B"]), method="win_rate", weighted=weighted)


def test_weights_of_examples_count_if_asked_for() -> None:
    row = row_of(weigh([1.0, 3.0, 2.0, 0.0, 0.5], weighted=True), "A")
    assert row["rating"] == pytest.approx((1 + 0 + 1 + 0.25) / 6.5)
    assert [row[name] for name in ("n", "won", "tied", "lost", "n_missing")] == [4, 1.5, 1, 1.5, 0]
    assert "weighted=true" in weigh([1.0, 3.0, 2.0, 0.0, 0.5], weighted=True).signature
    with pytest.warns(EvaluandWarning, match="the examples have weights, which are not used; rate with weighted=True"):
        row = row_of(weigh([1.0, 3.0, 2.0, 0.0, 0.5], weighted=False), "A")
    assert [row["rating"], row["n"]] == [3 / 5, 5]


def test_a_weight_is_worth_as_many_matches() -> None:
    store = MemoryStore()
    rows = [{"input": n, "w": 1 + n % 3} for n in range(8)]
    runs = [
        Runner(store).run(lambda n, label=label: f"{label} {n}", Dataset.from_rows(rows, weight="w")) for label in "ABC"
    ]
    outcomes: Outcomes = {
        ("A", "B"): [1, 0, 1, 1, 0.5, 0, 1, 1],
        ("A", "C"): [1, 1, 0, 0, 0, 1, 1, 0],
        ("B", "C"): [0.5, 0, 0, 1, 1, 1, 0, 0],
    }
    matches = Matcher().match(runs, table_judge(outcomes), labels=["A", "B", "C"])
    repeated = [
        {"id": n, "model_a": a, "model_b": b, "winner": {1: a, 0: b, 0.5: "tie"}[outcome]}
        for (a, b), each in outcomes.items()
        for n, outcome in enumerate(each)
        for _ in range(1 + n % 3)
    ]
    for method in ("bradley_terry", "win_rate"):
        weighted = rate(matches, method=method, weighted=True)
        battles = rate(read_battles(repeated), method=method)
        for system in "ABC":
            one, other = row_of(weighted, system), row_of(battles, system)
            ends = ("low", "high") if method == "win_rate" else ()  # those of the bootstrap are drawn by example
            for name in ("rating", "standard_error", "win_rate", *ends):
                assert one[name] == pytest.approx(other[name], rel=1e-9), (method, system, name)


@pytest.mark.parametrize("options", [{"penalty": 1.0, "replicates": 100}, {"method": "equal_length", "baseline": "B"}])
def test_the_unit_of_weights_and_the_columns_of_the_dataset_do_not_matter(options: dict[str, Any]) -> None:
    def judge(first: str, second: str, index: int) -> float:
        wins = (index * 7 + len(first)) % 3 > 0
        return float(wins if first[0] < second[0] else (index * 7 + len(second)) % 3 == 0)

    def respond(label: str) -> Callable[[int], str]:
        return lambda number: label * (1 + (number * ord(label)) % 11)

    found = []
    for weight in (None, 1.0, 1000.0):
        rows = [{"input": number} | ({} if weight is None else {"w": weight}) for number in range(30)]
        data = Dataset.from_rows(rows, weight=None if weight is None else "w")
        store = MemoryStore()
        runs = [Runner(store).run(respond(label), data, name=f"run/{label}") for label in "ABC"]
        matches = Matcher().match(runs, comparison_scorer(judge), labels=["A", "B", "C"])
        ratings = rate(matches, weighted=weight is not None, **options)
        found.append([(row["system"], row["rating"], row["standard_error"] or 0.0) for row in ratings.ratings])
    for each in found[1:]:
        assert [row[0] for row in each] == [row[0] for row in found[0]]
        for ours, theirs in zip(each, found[0], strict=True):
            assert ours[1:] == pytest.approx(theirs[1:], rel=1e-8)


def test_weights_that_nobody_declared_are_refused() -> None:
    with pytest.raises(SpecError, match="weighted needs weights, and the examples of 8 matches have none; name the"):
        rate(play(MemoryStore(), TWO), weighted=True)
    with pytest.warns(EvaluandWarning, match="battles: the column weight is not used; each row counts once"):
        read_battles([{"id": 1, "model_a": "x", "model_b": "y", "winner": "tie", "weight": 3}])


@pytest.mark.parametrize("name", ["replicates", "seed"])
def test_covariates_refuse_parameters_of_the_bootstrap(two: Matches, name: str) -> None:
    with pytest.raises(
        SpecError, match=f"{name} has no use with covariates, whose intervals come from standard errors"
    ):
        rate(two, covariates=["position"], **{name: 200})  # type: ignore[arg-type]
    assert rate(two, covariates=["position"]).method.replicates is None
    assert rate(two, covariates=["position"]).signature.endswith("interval=clustered_student 95%")


def long_battles() -> list[dict[str, Any]]:
    """Battles of systems and of longer and shorter variants against a baseline, in both orders."""
    rng = np.random.default_rng(5)
    rows = []
    lengths = {"base": 100, "one": 160, "two": 90, "three": 120, "longer": 220, "shorter": 40}
    size = {name: (mean * rng.uniform(0.7, 1.3, 60)).astype(int) for name, mean in lengths.items()}
    difficulty = rng.normal(0, 1, 60)
    for name in [*lengths][1:]:
        for n in range(60):
            chance = 1 / (1 + math.exp(-((size[name][n] - size["base"][n]) / 80 + difficulty[n])))
            for first, second in ((name, "base"), ("base", name)):
                won = rng.random() < chance
                texts = {"response_a": "x" * size[first][n], "response_b": "x" * size[second][n]}
                winner = name if won else "base"
                rows.append({"id": n, "model_a": first, "model_b": second, "winner": winner} | texts)
    return rows


@pytest.fixture(scope="module")
def long() -> Matches:
    return read_battles(long_battles(), in_order=True)


def test_win_rates_at_equal_length_are_those_of_the_arithmetic(long: Matches) -> None:
    ratings = rate(long, method="equal_length", baseline="base")
    assert RatingMethod.from_spec(ratings.method.spec) == ratings.method
    rows = [row for row in long_battles() if "three" in (row["model_a"], row["model_b"])]
    own, other = (
        [len(row["response_a" if (row["model_a"] == "three") == is_own else "response_b"]) for row in rows]
        for is_own in (True, False)
    )
    expected = equal_length_win_rate(
        np.array([row["winner"] == "three" for row in rows], float),
        np.array(own),
        np.array(other),
        np.array([row["id"] for row in rows]),
        weight=np.full(len(rows), 0.5),
    )
    row = row_of(ratings, "three")
    assert [row[name] for name in ("rating", "low", "high")] == pytest.approx(
        [expected.win_rate, expected.low, expected.high], rel=1e-6
    )
    parameters = {row["name"]: row["value"] for row in ratings.parameters if row["system"] == "three"}
    assert parameters == {"length": pytest.approx(expected.length), "quality": pytest.approx(expected.quality)}
