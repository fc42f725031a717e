"""Evaluations of several runs by the names of the Pharia SDKs as native matches."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evaluand import Matcher, MemoryStore, Runner as NativeRunner
from evaluand.interop.pharia import (
    EloEvaluationLogic,
    Evaluator,
    Example,
    IncrementalEvaluator,
    InMemoryDatasetRepository,
    InMemoryEvaluationRepository,
    InMemoryRunRepository,
    MatchOutcome,
    Runner,
    SuccessfulExampleOutput,
    Task,
    TaskSpan,
    as_judge,
    native_dataset,
    native_evaluation,
    native_matches,
)
from evaluand.matches.matches import Matches as NativeMatches
from evaluand.metrics.ratings.elo import Record, count_results
from evaluand.report.verification import verify
from evaluand.store.directory import DirectoryStore

EXAMPLES = {"e0": "aa", "e1": "b", "e2": "ccc"}


class Repeat(Task[str, str]):
    def __init__(self, times: int, crashes_on: str = "") -> None:
        self.times, self.crashes_on = times, crashes_on

    def do_run(self, input: str, task_span: TaskSpan) -> str:
        if input == self.crashes_on:
            raise ValueError("no answer")
        return input * self.times


class Shorter(EloEvaluationLogic[str, str, str]):
    def __init__(self, crashes_on: str = "") -> None:
        self.crashes_on = crashes_on

    def grade(
        self, first: SuccessfulExampleOutput[str], second: SuccessfulExampleOutput[str], example: Example[str, str]
    ) -> MatchOutcome:
        if example.id == self.crashes_on:
            raise RuntimeError("the judge does not answer")
        if len(first.output) == len(second.output):
            return MatchOutcome.DRAW
        return MatchOutcome.A_WINS if len(first.output) < len(second.output) else MatchOutcome.B_WINS


class World:
    def __init__(self) -> None:
        self.datasets, self.runs = InMemoryDatasetRepository(), InMemoryRunRepository()
        self.evaluations = InMemoryEvaluationRepository()
        examples = [Example(id=id, input=text, expected_output="") for id, text in EXAMPLES.items()]
        self.datasets.create_dataset(examples, "texts", "texts")

    def run(self, task: Repeat, name: str) -> str:
        return Runner(task, self.datasets, self.runs, name).run_dataset("texts").id

    def evaluator(self, logic: Shorter) -> IncrementalEvaluator[str, str, str, Any]:
        return IncrementalEvaluator(self.datasets, self.runs, self.evaluations, "shorter", logic)

    def native(self, *ids: str, **options: Any) -> NativeMatches:
        return native_matches(self.datasets, self.runs, self.evaluations, *ids, **options)


@pytest.fixture
def world() -> World:
    return World()


COLUMNS = ["_index_", "a", "b", "order", "status", "outcome", "missing", "reason"]


def rows(matches: NativeMatches) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in matches.table(COLUMNS).to_pylist()]


def test_an_evaluation_of_several_runs_is_a_table_of_matches(world: World, tmp_path: Path) -> None:
    one, two = world.run(Repeat(1), "once"), world.run(Repeat(2), "twice")
    overview = world.evaluator(Shorter()).evaluate_runs(two, one)
    store = DirectoryStore(tmp_path)
    matches = native_evaluation(world.datasets, world.runs, world.evaluations, overview.id, store=store, name="shorter")
    assert isinstance(matches, NativeMatches)
    assert matches.systems == ["twice", "once"]
    assert rows(matches) == [(place, 0, 1, "ab", "scored", 0.0, None, None) for place in range(3)]
    assert [run and run.counts for run in matches.runs] == [{"completed": 3}] * 2
    assert matches.counts == {"scored": 3}
    assert matches.table(["style_a"]).to_pylist()[0]["style_a"]["characters"] == 4
    again = world.native(overview.id, store=DirectoryStore(tmp_path))
    assert (again.id, again.digest) == (matches.id, matches.digest)
    assert verify(DirectoryStore(tmp_path), "matches", matches.id) == []


def test_an_extension_has_the_matches_of_what_it_extends(world: World) -> None:
    one, two, three = (world.run(Repeat(times), str(times)) for times in (1, 2, 3))
    evaluator = world.evaluator(Shorter())
    first = evaluator.evaluate_runs(one, two)
    second = evaluator.evaluate_additional_runs(three, previous_evaluation_ids=[first.id])
    matches = world.native(second.id)
    assert matches.systems == ["1", "2", "3"]
    assert matches.counts == {"scored": 9}
    assert rows(matches) == rows(world.native(first.id, second.id))
    table = matches.table()
    a, b = (np.asarray(table[name]) for name in "ab")
    shares = count_results(Record.begin(3), a, b, np.asarray(table["outcome"])).share
    assert shares.tolist() == [1.0, 0.5, 0.0]


def test_the_outcome_is_that_of_the_system_with_the_smaller_number(world: World) -> None:
    one, two = world.run(Repeat(1), "1"), world.run(Repeat(2), "2")
    evaluator = world.evaluator(Shorter())
    first = evaluator.evaluate_runs(one, two, num_examples=1)
    second = evaluator.evaluate_runs(two, one)
    assert rows(world.native(first.id, second.id))[:3] == [
        (0, 0, 1, "ab", "scored", 1.0, None, None),
        (0, 0, 1, "ba", "scored", 1.0, None, None),
        (1, 0, 1, "ba", "scored", 1.0, None, None),
    ]


def test_failures_and_what_was_not_judged_are_rows_of_their_own(world: World) -> None:
    one, two = world.run(Repeat(1), "1"), world.run(Repeat(2, crashes_on="b"), "2")
    overview = world.evaluator(Shorter(crashes_on="e0")).evaluate_runs(one, two)
    assert rows(world.native(overview.id)) == [
        (0, 0, 1, "ab", "failed", None, None, "RuntimeError: the judge does not answer"),
        (1, 0, 1, "ab", "failed", None, "b", "2: the task failed"),
        (2, 0, 1, "ab", "scored", 1.0, None, None),
    ]
    limited = world.evaluator(Shorter()).evaluate_runs(one, two, num_examples=1)
    assert rows(world.native(limited.id))[2] == (2, 0, 1, "ab", "skipped", None, None, "not judged")


def test_a_failed_example_counts_as_judged_where_another_evaluation_succeeded(world: World) -> None:
    one, two, three = (world.run(Repeat(times), str(times)) for times in (1, 2, 3))
    first = world.evaluator(Shorter(crashes_on="e0")).evaluate_runs(one, two)
    second = world.evaluator(Shorter()).evaluate_additional_runs(three, previous_evaluation_ids=[first.id])
    assert world.native(second.id).counts == {"scored": 9}


def test_runs_with_equal_outputs_and_names_are_two_systems(world: World) -> None:
    ids = [world.run(Repeat(1), "same") for _ in range(2)]
    overview = world.evaluator(Shorter()).evaluate_runs(*ids)
    matches = world.native(overview.id, store=MemoryStore())
    assert matches.systems == ["same", "same (2)"]
    assert matches.table(["outcome"])["outcome"].to_pylist() == [0.5, 0.5, 0.5]


def test_what_has_no_matches_is_refused(world: World) -> None:
    one, two = world.run(Repeat(1), "1"), world.run(Repeat(2), "2")
    evaluator = world.evaluator(Shorter())
    alone = evaluator.evaluate_runs(one)
    with pytest.raises(ValueError, match="matches need evaluations of two runs or more"):
        world.native(alone.id)
    with pytest.raises(ValueError, match="matches need evaluations of two runs or more"):
        world.native()
    with pytest.raises(ValueError, match="no evaluation 'none'"):
        world.native("none")

    class Other(Shorter):
        def do_evaluate(self, example: Any, *output: Any) -> Any:
            return super().do_evaluate(example, *(each.model_copy(update={"run_id": "?"}) for each in output))

    foreign = Evaluator(world.datasets, world.runs, world.evaluations, "other", Other()).evaluate_runs(one, two)
    with pytest.raises(ValueError, match="which is none of its runs"):
        world.native(foreign.id)


def test_a_logic_judges_on_the_native_path_and_its_judgements_are_reused(world: World) -> None:
    data, runner = native_dataset(world.datasets, "texts"), NativeRunner(store=MemoryStore())
    one, two, three = (runner.run(Repeat(times), data) for times in (1, 2, 3))
    judge = as_judge(Shorter())
    first = Matcher().match([one, two], judge, labels=["1", "2"])
    assert first.table(["outcome", "label"]).slice(0, 2).to_pylist() == [
        {"outcome": 1.0, "label": "a_wins"},
        {"outcome": 1.0, "label": "b_wins"},
    ]
    second = Matcher().match([one, two, three], judge, labels=["1", "2", "3"])
    assert (second.receipt.called, second.receipt.reused) == (12, 6)
