"""ELO ratings and win rates by the names of the Pharia SDKs, also against recorded ones if the vectors are present."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from typing import Any

import pytest
from support.places import VECTORS_FOLDER, needs

from evaluand.core.errors import SpecError
from evaluand.interop.pharia import (
    AggregatedComparison,
    Aggregator,
    ComparisonEvaluation,
    ComparisonEvaluationAggregationLogic,
    EloAggregationAdapter,
    EloCalculator,
    EloGradingInput,
    ExampleEvaluation,
    FileAggregationRepository,
    InMemoryAggregationRepository,
    InMemoryEvaluationRepository,
    Matches,
    MatchesAggregationLogic,
    MatchOutcome,
    PlayerScore,
    WinRateCalculator,
)
from evaluand.interop.pharia.domain import EvaluationOverview, utc_now

VECTOR = VECTORS_FOLDER / "pharia" / "elo.json"
needs_vectors = needs(VECTOR)


@pytest.fixture
def recorded() -> Any:
    return json.loads(VECTOR.read_bytes())


def match(first: str, second: str, outcome: str) -> ComparisonEvaluation:
    return ComparisonEvaluation(first_player=first, second_player=second, outcome=MatchOutcome(outcome))


def in_threes(matches: Iterable[ComparisonEvaluation]) -> list[Matches]:
    listed = list(matches)
    return [Matches(comparison_evaluations=listed[at : at + 3]) for at in range(0, len(listed), 3)]


@needs_vectors
@pytest.mark.parametrize("case", ["three_runs", "one_draw"])
def test_recorded_sequential_ratings_come_out(recorded: Any, case: str) -> None:
    expected = recorded[case]["sequential_ratings"]
    calculator = EloCalculator(expected)
    calculator.calculate([match(*each) for each in recorded[case]["matches"]])
    assert calculator.ratings == pytest.approx(expected, abs=1e-9)


@needs_vectors
def test_recorded_win_rates_come_out(recorded: Any) -> None:
    expected = recorded["three_runs"]["win_rates"]
    rates = WinRateCalculator(expected).calculate([match(*each) for each in recorded["three_runs"]["matches"]])
    assert rates == expected


@needs_vectors
def test_the_recorded_aggregate_comes_out_and_its_standard_error_is_called_that_of_the_order(recorded: Any) -> None:
    case = recorded["three_runs"]
    found = MatchesAggregationLogic().aggregate(in_threes(match(*each) for each in case["matches"]))
    assert set(found.scores) == set(case["aggregate_seed_0"])
    for name, expected in case["aggregate_seed_0"].items():
        score, over_seeds = found.scores[name], case["aggregate_distribution"][name]
        assert score.elo == pytest.approx(expected["elo"], abs=1e-9)
        assert score.elo_order_error == pytest.approx(expected["elo_standard_error"], rel=1e-5)
        assert (score.win_rate, score.num_matches) == (expected["win_rate"], expected["num_matches"])
        assert abs(score.elo - over_seeds["elo_mean_over_200_seeds"]) < 4 * over_seeds["elo_sd_over_200_seeds"]
        assert score.elo_standard_error > 20 * expected["elo_standard_error"]


@needs_vectors
def test_recorded_payoffs_and_ranks_come_out(recorded: Any) -> None:
    assert {each.value: list(each.payoff) for each in MatchOutcome} == recorded["payoff"]
    ranks = {rank: MatchOutcome.from_rank_literal(int(rank)).value for rank in recorded["rank_literals"]}
    assert ranks == recorded["rank_literals"]


@pytest.mark.parametrize("rank", [0, 4, "1", None])
def test_another_rank_is_refused(rank: Any) -> None:
    with pytest.raises(ValueError, match=r"the rank must be 1 \(first\), 2 \(second\) or 3 \(neither is better\)"):
        MatchOutcome.from_rank_literal(rank)


def test_an_outcome_is_its_text_and_shows_its_name() -> None:
    assert MatchOutcome.DRAW == "draw"
    assert str(MatchOutcome.DRAW) == "MatchOutcome.DRAW"
    assert json.loads(match("A", "B", "draw").model_dump_json())["outcome"] == "draw"


def test_what_a_model_is_asked_has_the_two_completions() -> None:
    asked = EloGradingInput(instruction="Summarise", first_completion="a", second_completion="b")
    assert asked.model_dump() == {"instruction": "Summarise", "first_completion": "a", "second_completion": "b"}


def test_calculators_go_on_from_where_they_were() -> None:
    matches = [match("A", "B", "a_wins"), match("B", "A", "draw"), match("A", "B", "b_wins")]
    at_once, one_by_one = EloCalculator("AB"), EloCalculator("AB")
    at_once.calculate(matches)
    for each in matches:
        one_by_one.calculate([each])
    assert one_by_one.ratings == at_once.ratings
    rates = WinRateCalculator("AB")
    assert rates.calculate(matches[:1]) == {"A": 1.0, "B": 0.0}
    assert rates.calculate(matches[1:]) == {"A": 0.5, "B": 0.5}
    assert (rates.match_count, rates.win_count) == ({"A": 3, "B": 3}, {"A": 1.5, "B": 1.5})


def test_parameters_set_how_far_a_match_moves_ratings() -> None:
    calculator = EloCalculator(["A", "B"], k_start=32, k_floor=8, decay_factor=0.5)
    calculator.calculate([match("A", "B", "a_wins")])
    assert calculator.ratings == {"A": 1516.0, "B": 1484.0}


def test_a_win_rate_without_matches_is_undefined() -> None:
    rates = WinRateCalculator(["A", "B", "C"]).calculate([match("A", "B", "a_wins")])
    assert math.isnan(rates["C"])


@pytest.mark.parametrize("kind", [EloCalculator, WinRateCalculator])
def test_an_unknown_player_and_one_that_meets_itself_are_refused(kind: Any) -> None:
    with pytest.raises(SpecError, match=r"^a match has the unknown player 'C'; name all players$") as raised:
        kind(["A", "B"]).calculate([match("A", "C", "draw")])
    assert isinstance(raised.value, KeyError)
    with pytest.raises(SpecError, match="player 'A' meets itself"):
        kind(["A", "B"]).calculate([match("A", "A", "draw")])


def test_no_matches_have_no_scores() -> None:
    nothing = AggregatedComparison(scores={})
    assert MatchesAggregationLogic().aggregate([]) == nothing
    assert ComparisonEvaluationAggregationLogic().aggregate([]) == nothing
    assert MatchesAggregationLogic().aggregate([Matches(comparison_evaluations=[])]) == nothing


def test_an_aggregation_is_the_same_each_time_and_accepts_an_iterator() -> None:
    matches = [match("A", "B", "a_wins"), match("A", "C", "draw"), match("C", "B", "a_wins"), match("B", "A", "a_wins")]
    first, again = (EloAggregationAdapter.aggregate(iter(matches)) for _ in range(2))
    assert first == again == ComparisonEvaluationAggregationLogic().aggregate(matches)
    assert list(first.scores) == ["A", "B", "C"]


def test_a_score_of_the_sdks_is_read() -> None:
    stored = '{"scores":{"A":{"elo":1510.0,"elo_standard_error":0.2,"win_rate":1.0,"num_matches":1}}}'
    assert AggregatedComparison.model_validate_json(stored).scores["A"] == PlayerScore(
        elo=1510.0, elo_standard_error=0.2, win_rate=1.0, num_matches=1
    )


def test_an_undefined_standard_error_reads_back_from_a_file(tmp_path: Any) -> None:
    evaluations = InMemoryEvaluationRepository()
    store(evaluations, "one", {"e": [match("A", "B", "a_wins")]})
    aggregations = FileAggregationRepository(tmp_path)
    id = Aggregator(evaluations, aggregations, "elo", MatchesAggregationLogic()).aggregate_evaluation("one").id
    found = FileAggregationRepository(tmp_path).aggregation_overview(id, AggregatedComparison)
    assert found is not None
    assert found.statistics.scores["A"].elo == 1510.0
    assert math.isnan(found.statistics.scores["A"].elo_standard_error)


def test_matches_of_one_example_belong_together_in_several_evaluations() -> None:
    """Two evaluations of the same examples: their matches are drawn by example, not by result."""
    chances = ["a_wins", "b_wins", "a_wins", "draw", "a_wins", "b_wins"]
    evaluations, aggregations = InMemoryEvaluationRepository(), InMemoryAggregationRepository()
    for id, prefix in (("first", "e"), ("second", "e"), ("elsewhere", "f")):
        store(evaluations, id, {f"{prefix}{n}": [match("A", "B", each)] for n, each in enumerate(chances)})
    aggregator = Aggregator(evaluations, aggregations, "elo", MatchesAggregationLogic())
    same, others = (aggregator.aggregate_evaluation("first", id).statistics for id in ("second", "elsewhere"))
    assert same.scores["A"].elo == others.scores["A"].elo
    assert same.scores["A"].elo_standard_error > 1.2 * others.scores["A"].elo_standard_error


def store(repository: InMemoryEvaluationRepository, id: str, results: dict[str, list[ComparisonEvaluation]]) -> None:
    for example, matches in results.items():
        result = Matches(comparison_evaluations=matches)
        repository.store_example_evaluation(ExampleEvaluation(evaluation_id=id, example_id=example, result=result))
    head = EvaluationOverview(
        run_overviews=frozenset(),
        id=id,
        start_date=utc_now(),
        end_date=utc_now(),
        successful_evaluation_count=len(results),
        failed_evaluation_count=0,
        description="judged",
        run_failure_count=0,
    )
    repository.store_evaluation_overview(head)
