"""Earlier evaluations of several runs, extended by new runs: only new pairs are judged, by the names of the SDKs."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from evaluand.core.errors import EvaluandWarning
from evaluand.interop.pharia import (
    AggregatedComparison,
    Aggregator,
    ComparisonEvaluation,
    DatasetRepository,
    EloEvaluationLogic,
    EvaluationOverview,
    EvaluationRepository,
    Example,
    ExampleOutput,
    FailedExampleRun,
    FileDatasetRepository,
    FileEvaluationRepository,
    FileRunRepository,
    IncrementalEvaluationLogic,
    IncrementalEvaluator,
    InMemoryAggregationRepository,
    InMemoryDatasetRepository,
    InMemoryEvaluationRepository,
    InMemoryRunRepository,
    Matches,
    MatchesAggregationLogic,
    MatchOutcome,
    RunOverview,
    RunRepository,
    SuccessfulExampleOutput,
    utc_now,
)
from evaluand.interop.pharia.logic import LogicTypes

EXAMPLES = ["e0", "e1", "e2", "e3"]


class Judge(EloEvaluationLogic[str, str, str]):
    """Prefers the earlier letter; counts what it judges as `example:first second`."""

    def __init__(self, crashes_on: str = "") -> None:
        super().__init__()
        self.judged: list[str] = []
        self.crashes_on = crashes_on

    def grade(
        self,
        first: SuccessfulExampleOutput[str],
        second: SuccessfulExampleOutput[str],
        example: Example[str, str],
    ) -> MatchOutcome:
        pair = f"{example.id}:{first.output[0]}{second.output[0]}"
        self.judged.append(pair)
        if pair == self.crashes_on:
            raise RuntimeError("the judge does not answer")
        return MatchOutcome.A_WINS if first.output < second.output else MatchOutcome.B_WINS

    def take(self) -> list[str]:
        """What it judged since the last call."""
        judged, self.judged = sorted(self.judged), []
        return judged


class World(NamedTuple):
    datasets: DatasetRepository
    runs: RunRepository
    evaluations: EvaluationRepository

    def run(self, name: str, crashes_on: str = "", dataset: str = "letters") -> str:
        """Store a run whose outputs are `name:input`, without the cost of running it."""
        examples = list(self.datasets.examples(dataset, str, str))
        for example in examples:
            failure = FailedExampleRun(error_message="no answer")
            output = failure if example.id == crashes_on else f"{name}:{example.input}"
            self.runs.store_example_output(ExampleOutput(run_id=name, example_id=example.id, output=output))
        failed = sum(example.id == crashes_on for example in examples)
        counts = {"failed_example_count": failed, "successful_example_count": len(examples) - failed}
        head = RunOverview(dataset_id=dataset, id=name, start=utc_now(), end=utc_now(), description=name, **counts)
        self.runs.store_run_overview(head)
        return name

    def evaluator(self, logic: IncrementalEvaluationLogic[str, str, str, Matches]) -> Any:
        return IncrementalEvaluator(self.datasets, self.runs, self.evaluations, "judged", logic)

    def aggregate(self, *ids: str) -> AggregatedComparison:
        aggregator = Aggregator(self.evaluations, InMemoryAggregationRepository(), "ratings", MatchesAggregationLogic())
        return aggregator.aggregate_evaluation(*ids).statistics


@pytest.fixture
def world() -> World:
    return with_letters(World(InMemoryDatasetRepository(), InMemoryRunRepository(), InMemoryEvaluationRepository()))


def with_letters(world: World) -> World:
    examples = [Example(id=id, input=id, expected_output="") for id in EXAMPLES]
    world.datasets.create_dataset(examples, "letters", "letters")
    return world


def pairs(*names: str, examples: Sequence[str] = EXAMPLES) -> list[str]:
    return [f"{example}:{name}" for example in examples for name in names]


def test_a_third_run_adds_only_its_own_pairs(world: World) -> None:
    judge = Judge()
    evaluator = world.evaluator(judge)
    a, b, c = map(world.run, "ABC")
    first = evaluator.evaluate_runs(a, b)
    assert judge.take() == pairs("AB")
    second = evaluator.evaluate_additional_runs(c, previous_evaluation_ids=[first.id])
    assert judge.take() == pairs("AC", "BC")
    assert second.previous_evaluation_ids == (first.id,)
    assert [run.id for run in second.ordered_runs] == [a, b, c]
    scores = world.aggregate(first.id, second.id).scores
    assert {name: score.num_matches for name, score in scores.items()} == dict.fromkeys([a, b, c], 8)
    assert [scores[run].win_rate for run in (a, b, c)] == [1.0, 0.5, 0.0]


def test_runs_named_again_are_not_judged_again_and_have_the_order_of_the_call(world: World) -> None:
    judge = Judge()
    evaluator = world.evaluator(judge)
    a, b, c = map(world.run, "ABC")
    first = evaluator.evaluate_runs(a, b)
    judge.take()
    second = evaluator.evaluate_additional_runs(c, b, a, previous_evaluation_ids=[first.id])
    assert judge.take() == pairs("CA", "CB")
    assert second.run_order == (c, b, a)


def test_an_extension_is_extended_with_or_without_naming_what_it_extends(world: World) -> None:
    judge = Judge()
    evaluator = world.evaluator(judge)
    a, b, c, d = map(world.run, "ABCD")
    first = evaluator.evaluate_runs(a, b)
    second = evaluator.evaluate_additional_runs(c, previous_evaluation_ids=[first.id])
    judge.take()
    for earlier in ([second.id], [first.id, second.id], [second.id, first.id]):
        evaluator.evaluate_additional_runs(d, previous_evaluation_ids=earlier)
        assert judge.take() == pairs("AD", "BD", "CD")


def test_without_earlier_evaluations_all_pairs_are_judged(world: World) -> None:
    judge = Judge()
    evaluator = world.evaluator(judge)
    a, b, c = map(world.run, "ABC")
    first = evaluator.evaluate_runs(a, b)
    evaluator.evaluate_additional_runs(a, c, previous_evaluation_ids=[first.id])
    judge.take()
    evaluator.evaluate_additional_runs(a, b)
    assert judge.take() == pairs("AB")
    evaluator.evaluate_runs(a, b)
    assert judge.take() == pairs("AB")


def test_separate_evaluations_of_single_runs_compare_no_pair(world: World) -> None:
    judge = Judge()
    evaluator = world.evaluator(judge)
    a, b = map(world.run, "AB")
    alone = [evaluator.evaluate_runs(run).id for run in (a, b)]
    assert judge.take() == []
    evaluator.evaluate_additional_runs(a, b, previous_evaluation_ids=alone)
    assert judge.take() == pairs("AB")


def test_what_the_judge_failed_on_is_judged_again(world: World) -> None:
    failing = Judge(crashes_on="e2:AB")
    a, b, c = map(world.run, "ABC")
    first = world.evaluator(failing).evaluate_runs(a, b)
    assert (first.successful_evaluation_count, first.failed_evaluation_count) == (3, 1)
    judge = Judge()
    second = world.evaluator(judge).evaluate_additional_runs(c, previous_evaluation_ids=[first.id])
    assert judge.take() == sorted([*pairs("AC", "BC"), "e2:AB"])
    scores = world.aggregate(first.id, second.id).scores
    assert [scores[run].num_matches for run in (a, b, c)] == [8, 8, 8]


def test_a_failed_extension_does_not_repeat_what_the_first_evaluation_compared(world: World) -> None:
    a, b, c, d = map(world.run, "ABCD")
    first = world.evaluator(Judge()).evaluate_runs(a, b)
    second = world.evaluator(Judge(crashes_on="e1:BC")).evaluate_additional_runs(c, previous_evaluation_ids=[first.id])
    judge = Judge()
    third = world.evaluator(judge).evaluate_additional_runs(d, previous_evaluation_ids=[second.id])
    assert judge.take() == sorted([*pairs("AD", "BD", "CD"), "e1:AC", "e1:BC"])
    scores = world.aggregate(first.id, second.id, third.id).scores
    assert [score.num_matches for score in scores.values()] == [12] * 4


def test_examples_left_out_by_num_examples_are_judged_later(world: World) -> None:
    judge = Judge()
    evaluator = world.evaluator(judge)
    a, b, c = map(world.run, "ABC")
    first = evaluator.evaluate_runs(a, b, num_examples=1)
    judge.take()
    evaluator.evaluate_additional_runs(c, previous_evaluation_ids=[first.id])
    assert judge.take() == sorted([*pairs("AC", "BC"), *pairs("AB", examples=EXAMPLES[1:])])


def test_an_example_on_which_a_run_failed_is_skipped_or_judged_without_it(world: World) -> None:
    judge = Judge()
    evaluator = world.evaluator(judge)
    a, b, c = world.run("A"), world.run("B"), world.run("C", crashes_on="e3")
    first = evaluator.evaluate_runs(a, b)
    judge.take()
    strict = evaluator.evaluate_additional_runs(c, previous_evaluation_ids=[first.id])
    assert (strict.skipped_example_count, strict.run_failure_count) == (1, 1)
    assert judge.take() == pairs("AC", "BC", examples=EXAMPLES[:3])
    loose = evaluator.evaluate_additional_runs(c, previous_evaluation_ids=[first.id], skip_example_on_any_failure=False)
    assert (loose.skipped_example_count, loose.incomplete_example_count) == (0, 1)
    assert judge.take() == pairs("AC", "BC", examples=EXAMPLES[:3])


def test_an_extension_is_found_by_another_process(tmp_path: Path) -> None:
    def opened() -> World:
        return World(FileDatasetRepository(tmp_path), FileRunRepository(tmp_path), FileEvaluationRepository(tmp_path))

    world = with_letters(opened())
    a, b = map(world.run, "AB")
    first = world.evaluator(Judge()).evaluate_runs(a, b)
    later, judge = opened(), Judge()
    second = later.evaluator(judge).evaluate_additional_runs(later.run("C"), previous_evaluation_ids=[first.id])
    assert judge.take() == pairs("AC", "BC")
    stored = opened().evaluations.evaluation_overview(second.id)
    assert stored is not None
    assert stored.previous_evaluation_ids == (first.id,)


def test_lineages_of_an_extension_have_the_outputs_of_all_runs(world: World) -> None:
    evaluator = world.evaluator(Judge())
    a, b, c = map(world.run, "ABC")
    first = evaluator.evaluate_runs(a, b)
    second = evaluator.evaluate_additional_runs(c, previous_evaluation_ids=[first.id])
    lineages = list(evaluator.evaluation_lineages(second.id))
    assert [each.example.id for each in lineages] == EXAMPLES
    assert [output.output for output in lineages[0].outputs] == ["A:e0", "B:e0", "C:e0"]
    assert [(m.first_player, m.second_player) for m in lineages[0].evaluation.result.comparison_evaluations] == [
        (a, c),
        (b, c),
    ]


def test_an_aggregation_without_the_extended_evaluation_warns(world: World) -> None:
    evaluator = world.evaluator(Judge())
    a, b, c = map(world.run, "ABC")
    first = evaluator.evaluate_runs(a, b)
    second = evaluator.evaluate_additional_runs(c, previous_evaluation_ids=[first.id])
    with pytest.warns(EvaluandWarning, match=f"{second.id} extends {first.id}, whose results are not aggregated"):
        world.aggregate(second.id)


def test_invalid_calls_are_refused_before_anything_is_judged(world: World) -> None:
    judge = Judge()
    evaluator = world.evaluator(judge)
    a, b = map(world.run, "AB")
    first = evaluator.evaluate_runs(a, b)
    judge.take()
    with pytest.raises(ValueError, match="give the id of a run to evaluate"):
        evaluator.evaluate_additional_runs(previous_evaluation_ids=[first.id])
    with pytest.raises(ValueError, match="previous_evaluation_ids must be a list of ids"):
        evaluator.evaluate_additional_runs(b, previous_evaluation_ids=first.id)
    with pytest.raises(ValueError, match="no evaluation 'none'"):
        evaluator.evaluate_additional_runs(b, previous_evaluation_ids=["none"])
    with pytest.raises(ValueError, match="no run 'none'"):
        evaluator.evaluate_additional_runs("none", previous_evaluation_ids=[first.id])
    world.datasets.create_dataset([Example(id="e0", input="x", expected_output="")], "other", "other")
    other = world.run("O", dataset="other")
    with pytest.raises(ValueError, match="the runs are of several datasets"):
        evaluator.evaluate_additional_runs(other, previous_evaluation_ids=[first.id])
    assert judge.take() == []


class Recorder(IncrementalEvaluationLogic[str, str, str, Matches]):
    """Records what it receives."""

    def __init__(self) -> None:  # without that of its base
        self.received: dict[str, tuple[list[str], list[list[str]]]] = {}

    def do_incremental_evaluate(
        self,
        example: Example[str, str],
        outputs: list[SuccessfulExampleOutput[str]],
        already_evaluated_outputs: list[list[SuccessfulExampleOutput[str]]],
    ) -> Matches:
        earlier = [[output.output[0] for output in each] for each in already_evaluated_outputs]
        self.received[example.id] = [output.output[0] for output in outputs], earlier
        return Matches(comparison_evaluations=[])


def test_any_logic_receives_all_outputs_and_those_of_each_earlier_evaluation(world: World) -> None:
    logic = Recorder()
    evaluator = world.evaluator(logic)
    a, b, c, d = map(world.run, "ABCD")
    first = evaluator.evaluate_runs(a, b)
    assert logic.received["e0"] == (["A", "B"], [])
    second = evaluator.evaluate_runs(b, c, num_examples=1)
    evaluator.evaluate_additional_runs(d, previous_evaluation_ids=[first.id, second.id])
    assert logic.received["e0"] == (["A", "B", "C", "D"], [["A", "B"], ["B", "C"]])
    assert logic.received["e1"] == (["A", "B", "C", "D"], [["A", "B"], []])


def test_a_logic_is_usable_without_an_evaluator() -> None:
    judge = Judge()
    outputs = [SuccessfulExampleOutput(run_id=name, example_id="e", output=name) for name in "ABC"]
    example = Example(id="e", input="", expected_output="")
    judge.set_previous_run_output_ids([{"A", "B"}])
    assert judge.do_evaluate(example, *outputs) == Matches(
        comparison_evaluations=[
            ComparisonEvaluation(first_player=first, second_player="C", outcome=MatchOutcome.A_WINS) for first in "AB"
        ]
    )
    judge.set_previous_run_output_ids([{"A", "B"}, {"A", "C"}, {"B", "C"}])
    assert judge.do_evaluate(example, *outputs).comparison_evaluations == []


class Steady(EloEvaluationLogic[str, str, str]):
    def grade(self, first: Any, second: Any, example: Any) -> MatchOutcome:
        return MatchOutcome.DRAW


def test_the_identity_of_a_logic_does_not_depend_on_what_it_extends(world: World) -> None:
    evaluator = world.evaluator(Steady())
    a, b, c = map(world.run, "ABC")
    heads: list[EvaluationOverview] = [evaluator.evaluate_runs(a, b)]
    heads.append(evaluator.evaluate_additional_runs(c, previous_evaluation_ids=[heads[0].id]))
    one, other = (head.provenance["code"] for head in heads if head.provenance)
    assert one == other


def test_types_are_read_from_brackets_or_annotations() -> None:
    class Bare(IncrementalEvaluationLogic):  # type: ignore[type-arg]
        def do_incremental_evaluate(
            self,
            example: Example[str, int],
            outputs: list[SuccessfulExampleOutput[float]],
            already_evaluated_outputs: list[list[SuccessfulExampleOutput[float]]],
        ) -> bool:
            return True

    class Graded(EloEvaluationLogic):  # type: ignore[type-arg]
        def grade(
            self,
            first: SuccessfulExampleOutput[float],
            second: SuccessfulExampleOutput[float],
            example: Example[str, int],
        ) -> MatchOutcome:
            return MatchOutcome.DRAW

    for logic, result in ((Bare(), bool), (Graded(), Matches)):
        types = LogicTypes(logic)
        assert (types.input(), types.output(), types.expected(), types.evaluation()) == (str, float, int, result)
    types = LogicTypes(Judge())
    assert (types.input(), types.output(), types.expected(), types.evaluation()) == (str, str, str, Matches)


def test_every_pair_is_judged_once_whatever_the_order_of_extensions(world: World) -> None:
    judge = Judge()
    evaluator = world.evaluator(judge)
    runs = {name: world.run(name) for name in "ABCDE"}
    ids = [evaluator.evaluate_runs(runs["D"], runs["B"]).id, evaluator.evaluate_runs(runs["A"], runs["C"]).id]
    ids.append(evaluator.evaluate_additional_runs(runs["B"], runs["C"], previous_evaluation_ids=ids).id)
    ids.append(evaluator.evaluate_additional_runs(runs["E"], previous_evaluation_ids=ids[-1:]).id)
    every = [frozenset(pair.partition(":")[2]) for pair in judge.take()]
    assert sorted(map(sorted, every)) == sorted(4 * [list(pair) for pair in itertools.combinations("ABCDE", 2)])
    assert {score.num_matches for score in world.aggregate(*ids).scores.values()} == {16}
