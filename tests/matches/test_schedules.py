"""Schedules within a budget: who meets whom on which examples, round by round."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from support.thinned import thinned

from evaluand import Dataset, MemoryStore, Run, Runner, SpecError, comparison_scorer
from evaluand.matches import InformationGain, Matcher, Matches, Swiss
from evaluand.matches.schedule import Budgeted, Field, Pairs, Played, Schedule
from evaluand.metrics.ratings.bradley_terry import fit_bradley_terry
from evaluand.metrics.ratings.counts import MatchRows, count_matches

KINDS = [Swiss, InformationGain]
Kind = Callable[..., Budgeted]
each_kind = pytest.mark.parametrize("kind", KINDS)


def field_of(responses: Any, *, orders: int = 1, seed: int = 0, labels: Sequence[str] | None = None) -> Field:
    """A field in which each row is an example of its own, and equal numbers are equal responses."""
    responses = np.array(responses, np.uint64)
    rows, systems = responses.shape
    names = [f"system {number}" for number in range(systems)] if labels is None else labels
    digests = np.random.default_rng(1).integers(0, 256, (rows, 16), dtype=np.uint8)
    return Field(names, np.ones(responses.shape, bool), responses, digests, orders, seed)


def all_different(rows: int, systems: int) -> np.ndarray:
    return np.tile(np.arange(1, systems + 1), (rows, 1))


def play(
    schedule: Schedule, field: Field, strengths: Sequence[float] | None = None, no_outcome: float = 0.0
) -> list[Played]:
    """All rounds; a stronger system wins by the model of Bradley and Terry, with random numbers of the match alone."""
    theta = np.zeros(len(field.systems)) if strengths is None else np.array(strengths)
    rounds: list[Played] = []
    while (pairs := schedule.next(field, rounds)) is not None:
        chance = np.array([np.random.default_rng([field.seed, *match]).random(2) for match in zip(*pairs, strict=True)])
        chance = chance.reshape(-1, 2)
        won = chance[:, 0] < 1 / (1 + np.exp(theta[pairs.b] - theta[pairs.a]))
        equal = field.responses[pairs.row, pairs.a] == field.responses[pairs.row, pairs.b]
        outcome = np.where(equal, 0.5, np.where(chance[:, 1] < no_outcome, np.nan, won))
        rounds.append(Played(pairs, outcome))
    return rounds


def matches_of(rounds: Sequence[Played]) -> list[tuple[int, int, int]]:
    return [match for played in rounds for match in zip(*(each.tolist() for each in played.pairs), strict=True)]


@each_kind
def test_a_budget_is_spent_and_no_pair_meets_twice_on_an_example(kind: Kind) -> None:
    for systems, budget, rounds in ((5, 100, 4), (6, 37, 10), (3, 1, 3), (4, 7, 100)):
        played = play(kind(budget, rounds), field_of(all_different(50, systems)))
        matches = matches_of(played)
        assert len(matches) == len(set(matches)) == budget
        assert all(a < b for _, a, b in matches)
        assert len(played) <= rounds


@each_kind
def test_two_orders_are_two_judgements(kind: Kind) -> None:
    assert len(matches_of(play(kind(41), field_of(all_different(50, 4), orders=2)))) == 20


@each_kind
def test_a_budget_for_more_than_everything_plays_everything_once(kind: Kind) -> None:
    matches = matches_of(play(kind(10_000), field_of(all_different(8, 5))))
    assert sorted(matches) == [(row, a, b) for row in range(8) for a, b in itertools.combinations(range(5), 2)]


@each_kind
def test_two_systems_meet_on_as_many_examples_as_the_budget_has(kind: Kind) -> None:
    matches = matches_of(play(kind(12), field_of(all_different(30, 2))))
    assert {(a, b) for _, a, b in matches} == {(0, 1)}
    assert len({row for row, _, _ in matches}) == 12


@each_kind
def test_equal_responses_cost_nothing_and_are_played_where_they_are_met(kind: Kind) -> None:
    responses = all_different(200, 2)
    responses[::4] = 1  # a quarter are equal
    field = field_of(responses)
    matches = matches_of(play(kind(60), field))
    equal = [row for row, _, _ in matches if row % 4 == 0]
    assert len(matches) - len(equal) == 60
    assert 10 <= len(equal) <= 30  # as many as by chance, a third of 60
    identical = field_of([[1, 1, 2]] * 20)
    matches = matches_of(play(kind(10), identical))
    assert {row for row, a, b in matches if (a, b) == (0, 1)} == {*range(20)}  # known ties, which cost nothing
    assert len(matches) == 20 + 10
    assert len(matches_of(play(kind(10), field_of([[1, 1]] * 5)))) == 5


@each_kind
def test_rows_without_a_response_are_not_played(kind: Kind) -> None:
    responses = all_different(20, 4)
    responses[:, 3] = 0  # never answered
    responses[:15, 2] = 0
    matches = matches_of(play(kind(1000), field_of(responses)))
    assert Counter((a, b) for _, a, b in matches) == {(0, 1): 20, (0, 2): 5, (1, 2): 5}
    assert play(kind(10), field_of(np.zeros((5, 3)))) == [] or not matches_of(
        play(kind(10), field_of(np.zeros((5, 3))))
    )


@each_kind
def test_judgements_without_an_outcome_end_with_the_budget(kind: Kind) -> None:
    field = field_of(all_different(40, 4))
    assert len(matches_of(play(kind(100), field, no_outcome=1.0))) == 100
    assert len(matches_of(play(kind(100), field, no_outcome=0.3))) == 100


def test_pairs_whose_judgements_have_no_outcome_are_played_less() -> None:
    field, schedule = field_of(all_different(500, 4)), InformationGain(200, 10)
    rounds: list[Played] = []
    while (pairs := schedule.next(field, rounds)) is not None:
        unknown = (pairs.a == 0) & (pairs.b == 1)
        rounds.append(Played(pairs, np.where(unknown, np.nan, 0.5)))
    counts = Counter((a, b) for _, a, b in matches_of(rounds))
    assert counts[0, 1] < min(counts[pair] for pair in counts if pair != (0, 1)) / 2


@each_kind
def test_the_same_seed_chooses_the_same_and_another_one_otherwise(kind: Kind) -> None:
    strengths = [0.0, 0.5, 1.0, 1.5, 2.0]
    matches = [
        matches_of(play(kind(50, 4), field_of(all_different(30, 5), seed=seed), strengths)) for seed in (3, 3, 4)
    ]
    assert matches[0] == matches[1] != matches[2]


@each_kind
def test_the_first_round_does_not_depend_on_the_order_of_the_systems(kind: Kind) -> None:
    labels = ["ada", "bob", "eve", "joe", "kim"]
    first = kind(40, 4).next(field_of(all_different(60, 5), labels=labels), [])
    turned = kind(40, 4).next(field_of(all_different(60, 5), labels=labels[::-1]), [])
    assert isinstance(first, Pairs)
    assert isinstance(turned, Pairs)
    as_labels = {(row, labels[a], labels[b]) for row, a, b in zip(*first, strict=True)}
    assert as_labels == {(row, labels[4 - b], labels[4 - a]) for row, a, b in zip(*turned, strict=True)}


@each_kind
def test_a_course_goes_through_the_first_replications_first(kind: Kind) -> None:
    field = field_of(all_different(30, 2))
    digests = field.digests[np.arange(30) // 3]  # 10 examples × 3 replications
    rows = [row for row, _, _ in matches_of(play(kind(20), field._replace(digests=digests)))]
    assert sorted(row % 3 for row in rows) == [0] * 10 + [1] * 10
    assert len({row // 3 for row in rows if row % 3 == 0}) == 10


def test_swiss_systems_meet_one_other_in_a_round_and_take_turns_to_sit_out() -> None:
    rounds = play(Swiss(100, 5), field_of(all_different(200, 5)))
    met = Counter[int]()
    for played in rounds:
        pairs = {(a, b) for _, a, b in matches_of([played])}
        assert len(pairs) == 2
        assert len({system for pair in pairs for system in pair}) == 4
        met.update({system for pair in pairs for system in pair})
    assert set(met.values()) == {4}  # each sat out once


@pytest.mark.slow
def test_swiss_pairs_systems_of_similar_strength() -> None:
    strengths = np.linspace(-4, 4, 8)
    rounds = play(Swiss(1200, 30), field_of(all_different(400, 8)), strengths.tolist())
    near, far = (np.mean([b - a for _, a, b in matches_of(some)]) for some in (rounds[15:], rounds[:1]))
    assert near < 3 < far + 1.5
    assert len({(a, b) for _, a, b in matches_of(rounds)}) > 14


def test_information_gain_plays_pairs_whose_order_is_in_doubt() -> None:
    strengths = [3.0, 0.1, 0.0, -3.0]
    counts = Counter(
        (a, b) for _, a, b in matches_of(play(InformationGain(400), field_of(all_different(400, 4)), strengths))
    )
    assert counts[1, 2] == max(counts.values()) > 3 * counts[0, 3]


def test_without_outcomes_information_gain_spreads_evenly() -> None:
    first = InformationGain(150, 1).next(field_of(all_different(100, 6)), [])
    assert isinstance(first, Pairs)
    counts = Counter(zip(first.a.tolist(), first.b.tolist(), strict=True))
    assert set(counts.values()) == {10}


@each_kind
@pytest.mark.parametrize("outcome", [0.9, 0.5, np.nan])
@thinned("responses", [[1, 2], [1, 2, 3], [1, 1], [1, 1, 2], [1], [0, 1, 2], [0, 0]], every=3)
def test_rounds_end_where_every_order_is_certain_or_nothing_can_be_judged(
    kind: Kind, outcome: float, responses: list[int]
) -> None:
    n = 20_000 if outcome == 0.9 and responses in ([1, 2], [1, 2, 3]) else 200  # so that an order becomes certain
    field = field_of(np.tile(responses, (n, 1)))
    schedule, rounds = kind(budget=3 * n, rounds=6), list[Played]()
    while (pairs := schedule.next(field, rounds)) is not None:
        rounds.append(Played(pairs, np.full(len(pairs.row), outcome)))
        assert len(rounds) < 20
    differing = sum(
        int((np.take(responses, played.pairs.a) != np.take(responses, played.pairs.b)).sum()) for played in rounds
    )
    pairs_that_differ = [pair for pair in itertools.combinations(responses, 2) if len({*pair} - {0}) == 2]
    assert differing == len(pairs_that_differ) * n


@each_kind
def test_budgets_that_judge_nothing_are_refused(kind: Kind) -> None:
    name = kind(1).kind
    for budget, said in ((0, "the integer 0"), (-1, "the integer -1"), (True, "true"), (2.5, "the number 2.5")):
        with pytest.raises(SpecError, match=f"{name}: budget is {said}; give a number of judgements of at least 1"):
            kind(budget)
    with pytest.raises(SpecError, match=f"{name}: rounds is the integer 0; give a number of rounds of at least 1"):
        kind(5, 0)
    runs = run_all(MemoryStore(), str.upper, str.lower)
    with pytest.raises(
        SpecError, match="a budget of 1 judges no pair in both orders; give at least 2, or orders: random"
    ):
        Matcher().match(runs, longer, schedule=kind(1))
    assert len(Matcher().match(runs, longer, schedule=kind(1), orders="random").table()) == 1
    with pytest.raises(SpecError, match=f"{name}: give budget; from Python as {type(kind(1)).__name__}\\(budget=…"):
        Matcher().match(runs, longer, schedule=name)


# Through the matcher


def run_all(store: MemoryStore, *tasks: Callable[[str], Any], n: int = 30) -> list[Run]:
    data = Dataset.from_rows([{"input": f"Text {number}"} for number in range(n)])
    return [Runner(store).run(task, data) for task in tasks]


def repeat(times: int) -> Callable[[str], Any]:
    def task(text: str) -> Any:
        if times == 4 and text.endswith("3"):
            raise ValueError("no idea")
        return text * min(times, 5)

    return task


@comparison_scorer(version="1")
def longer(first: str, second: str) -> Any:
    if first.startswith("Text 5") and second.startswith("Text 5"):
        return None
    return "first" if len(first) > len(second) else "second"


def labels_of(n: int) -> list[str]:
    return [f"times {number}" for number in range(1, n + 1)]


@each_kind
def test_rounds_are_judged_stored_and_reused(kind: Kind) -> None:
    store = MemoryStore()
    runs = run_all(store, *(repeat(times) for times in range(1, 7)))  # the last two give equal responses
    matches = Matcher(store).match(runs, longer, schedule=kind(120, 6), labels=labels_of(6))
    rows = matches.table().to_pylist()
    assert isinstance(matches.receipt, object)
    judged = [row for row in rows if row["judgement"] is not None]
    assert matches.receipt is not None
    assert matches.receipt.called == len({row["judgement"] for row in judged}) <= 120
    assert len(judged) == 120
    assert {row["round"] for row in judged} == {*range(6)}
    assert {row["outcome"] for row in rows if (row["a"], row["b"]) == (4, 5)} == {0.5}
    assert not [row for row in rows if row["missing"]]
    again = Matcher(store).match(runs, longer, schedule=kind(120, 6), labels=labels_of(6))
    assert again.id == matches.id
    everything = Matcher(store).match(runs, longer, labels=labels_of(6))
    assert everything.receipt is not None
    assert everything.receipt.reused == matches.receipt.called
    other = MemoryStore()
    runs = run_all(other, *(repeat(times) for times in range(1, 7)))
    assert Matcher(other).match(runs, longer, schedule=kind(120, 6), labels=labels_of(6)).digest == matches.digest


@each_kind
def test_a_budget_for_everything_gives_the_table_of_all_pairs(kind: Kind) -> None:
    store = MemoryStore()
    runs = run_all(store, repeat(1), repeat(2), repeat(3), n=10)
    names = ["_index_", "a", "b", "order", "status", "outcome"]
    tables: list[Matches] = [
        Matcher(store).match(runs, longer, schedule=schedule, labels=labels_of(3)) for schedule in (kind(10_000), None)
    ]
    assert tables[0].table(names).equals(tables[1].table(names))
    assert tables[1].receipt is not None
    assert tables[1].receipt.called == 0


def test_a_judge_of_all_responses_has_no_budget() -> None:
    runs = run_all(MemoryStore(), str.upper, str.lower)
    with pytest.raises(SpecError, match="compares all pairs; leave out swiss"):
        Matcher().match(runs, comparison_scorer(lambda responses: []), schedule=Swiss(10))


# Simulation


def rank_correlation(rounds: Sequence[Played], strengths: np.ndarray) -> float:
    """Kendall's tau of the true strengths and those of a fit to the matches."""
    pairs, outcomes = [played.pairs for played in rounds], np.concatenate([played.outcome for played in rounds])
    a, b, row = (np.concatenate([getattr(each, name) for each in pairs]) for name in ("a", "b", "row"))
    counts = count_matches(MatchRows.read(a, b, outcomes, row, systems=len(strengths)))
    estimate = fit_bradley_terry(counts, penalty=0.1).strength
    i, j = np.triu_indices(len(strengths), 1)
    return float(np.mean(np.sign(estimate[i] - estimate[j]) * np.sign(strengths[i] - strengths[j])))


@dataclass(frozen=True)
class RandomPairs(Schedule):
    kind = "random"

    budget: int

    def next(self, field: Field, rounds: Sequence[Played]) -> Pairs | None:
        if rounds:
            return None
        a, b = np.triu_indices(len(field.systems), 1)
        n = len(a) * len(field.responses)
        chosen = np.random.default_rng([field.seed, 9]).choice(n, self.budget, replace=False)
        return Pairs(chosen // len(a), a[chosen % len(a)], b[chosen % len(a)])


@pytest.mark.slow
@pytest.mark.parametrize(("systems", "budget", "spread"), [(20, 1000, 2.0)])
def test_for_the_same_budget_they_rank_better_than_random_pairs(systems: int, budget: int, spread: float) -> None:
    trials = 30
    found = np.zeros((trials, 3))
    for trial in range(trials):
        strengths = np.random.default_rng([trial, systems]).normal(0, spread, systems)
        field = field_of(all_different(400, systems), seed=trial)
        for place, kind in enumerate((RandomPairs, Swiss, InformationGain)):
            found[trial, place] = rank_correlation(play(kind(budget), field, strengths.tolist()), strengths)
    for place in (1, 2):
        gain = found[:, place] - found[:, 0]
        assert gain.mean() > 2 * gain.std() / trials**0.5
