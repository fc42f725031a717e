"""Evaluations that are extended when new runs arrive: only what earlier evaluations have not compared is judged.

evaluate_runs(A, B)                                          A–B                 evaluation 1
evaluate_additional_runs(C, previous_evaluation_ids=[1])     A–C, B–C            evaluation 2
aggregate_evaluation(1, 2)                                   all three pairs
"""

import itertools
import threading
from abc import abstractmethod
from collections.abc import Iterable, Sequence
from enum import Enum
from typing import Any, ClassVar, Final

from pydantic import BaseModel

from evaluand.interop.pharia.datasets import DatasetRepository
from evaluand.interop.pharia.domain import (
    Evaluation,
    EvaluationOverview,
    Example,
    ExpectedOutput,
    Refused,
    RunOverview,
    SerializableDict,
    SuccessfulExampleOutput,
    require_all_stored,
)
from evaluand.interop.pharia.evaluations import EvaluationRepository
from evaluand.interop.pharia.evaluator import Evaluable, Evaluator
from evaluand.interop.pharia.logic import EvaluationLogic
from evaluand.interop.pharia.runs import RunRepository
from evaluand.interop.pharia.types import declared_or_any
from evaluand.run.task import Input, Output


class MatchOutcome(str, Enum):  # noqa: UP042 - as in the SDKs, `str()` gives the name of the member
    """How a comparison of two outputs ended."""

    A_WINS = "a_wins"
    DRAW = "draw"
    B_WINS = "b_wins"

    @property
    def payoff(self) -> tuple[float, float]:
        """What the first and the second get: 1 for a win, ½ each for a draw, 0 for a loss.

        Example:
            >>> MatchOutcome.DRAW.payoff
            (0.5, 0.5)
        """
        return _PAYOFFS[self]

    @staticmethod
    def from_rank_literal(rank: int) -> "MatchOutcome":
        """The outcome for a model's answer: 1 if the first is better, 2 if the second is, 3 for neither.

        Raises:
            Refused: it is another number; a ValueError.

        Example:
            >>> MatchOutcome.from_rank_literal(2).value
            'b_wins'
        """
        if rank not in _RANKS:
            raise Refused(f"the rank must be 1 (first), 2 (second) or 3 (neither is better), not {rank!r}")
        return _RANKS[rank]


_PAYOFFS: Final[dict[MatchOutcome, tuple[float, float]]] = {
    MatchOutcome.A_WINS: (1, 0),
    MatchOutcome.DRAW: (0.5, 0.5),
    MatchOutcome.B_WINS: (0, 1),
}
_RANKS: Final = {1: MatchOutcome.A_WINS, 2: MatchOutcome.B_WINS, 3: MatchOutcome.DRAW}


class ComparisonEvaluation(BaseModel):
    """A match: two players, which are ids of runs, and how it ended."""

    first_player: str
    second_player: str
    outcome: MatchOutcome


class Matches(BaseModel):
    """The matches on one example."""

    comparison_evaluations: Sequence[ComparisonEvaluation]


class EloGradingInput(BaseModel):
    """What a model needs for comparing two completions of an instruction."""

    instruction: str
    first_completion: str
    second_completion: str


class EvaluatedRuns(set[str]):
    """The ids of the runs that an earlier evaluation compared.

    Attributes:
        examples: the ids of the examples for which it has a result.
    """

    def __init__(self, run_ids: Iterable[str] = (), examples: Iterable[str] = ()) -> None:
        super().__init__(run_ids)
        self.examples = frozenset(examples)


class IncrementalEvaluationLogic(EvaluationLogic[Input, Output, ExpectedOutput, Evaluation]):
    """Evaluates an example by the outputs of runs, some of which earlier evaluations have compared."""

    _signature: ClassVar = ("do_incremental_evaluate", 0, 1)
    _previous: Sequence[set[str]] = ()

    def set_previous_run_output_ids(self, previous_run_output_ids: list[set[str]]) -> None:
        """Set the runs that earlier evaluations compared, a set for each; the evaluator calls this."""
        self._previous = previous_run_output_ids

    def do_evaluate(
        self, example: Example[Input, ExpectedOutput], *output: SuccessfulExampleOutput[Output]
    ) -> Evaluation:
        already_evaluated = [
            [each for each in output if each.run_id in runs] if _has_result(runs, example.id) else []
            for runs in self._previous
        ]
        return self.do_incremental_evaluate(example, list(output), already_evaluated)

    @abstractmethod
    def do_incremental_evaluate(
        self,
        example: Example[Input, ExpectedOutput],
        outputs: list[SuccessfulExampleOutput[Output]],
        already_evaluated_outputs: list[list[SuccessfulExampleOutput[Output]]],
    ) -> Evaluation:
        """The result for one example.

        Args:
            outputs: of all runs, in their order; those of earlier evaluations are among them.
            already_evaluated_outputs: for each earlier evaluation, those of the outputs that it has compared; empty if
                it has no result for the example.
        """

    def __getstate__(self) -> object:
        """The state without the earlier evaluations, so that the identity of the logic is the same for each call."""
        state = super().__getstate__()
        return (
            {name: value for name, value in state.items() if name != "_previous"} if isinstance(state, dict) else state
        )


def _has_result(runs: set[str], example_id: str) -> bool:
    return not isinstance(runs, EvaluatedRuns) or example_id in runs.examples


class EloEvaluationLogic(IncrementalEvaluationLogic[Input, Output, ExpectedOutput, Matches]):
    """Compares the outputs of all pairs of runs that no earlier evaluation has compared.

    `class Judge(EloEvaluationLogic[str, str, str])` declares input, output and expected output.
    """

    _signature: ClassVar = ("grade", 2, 0)

    def do_incremental_evaluate(
        self,
        example: Example[Input, ExpectedOutput],
        outputs: list[SuccessfulExampleOutput[Output]],
        already_evaluated_outputs: list[list[SuccessfulExampleOutput[Output]]],
    ) -> Matches:
        judged = {
            frozenset((one.run_id, other.run_id))
            for earlier in already_evaluated_outputs
            for one, other in itertools.combinations(earlier, 2)
        }
        return Matches(
            comparison_evaluations=[
                ComparisonEvaluation(
                    first_player=first.run_id,
                    second_player=second.run_id,
                    outcome=self.grade(first, second, example),
                )
                for first, second in itertools.combinations(outputs, 2)
                if frozenset((first.run_id, second.run_id)) not in judged
            ]
        )

    @abstractmethod
    def grade(
        self,
        first: SuccessfulExampleOutput[Output],
        second: SuccessfulExampleOutput[Output],
        example: Example[Input, ExpectedOutput],
    ) -> MatchOutcome:
        """Which of two outputs for one example is better."""


class IncrementalEvaluator(Evaluator[Input, Output, ExpectedOutput, Evaluation]):
    """Evaluates runs together, and extends earlier evaluations by new runs.

    Args:
        dataset_repository: where the examples are stored.
        run_repository: where the outputs are stored.
        evaluation_repository: where to store the results; the earlier evaluations are there too.
        description: what the evaluations are; stored in their heads.
        incremental_evaluation_logic: how an example is evaluated.
    """

    def __init__(
        self,
        dataset_repository: DatasetRepository,
        run_repository: RunRepository,
        evaluation_repository: EvaluationRepository,
        description: str,
        incremental_evaluation_logic: IncrementalEvaluationLogic[Input, Output, ExpectedOutput, Evaluation],
    ) -> None:
        super().__init__(
            dataset_repository, run_repository, evaluation_repository, description, incremental_evaluation_logic
        )
        self._incremental = incremental_evaluation_logic
        self._extended: Sequence[EvaluationOverview] = ()
        self._one_at_a_time = threading.Lock()  # the earlier evaluations are a state of the logic

    def evaluate_runs(
        self,
        *run_ids: str,
        num_examples: int | None = None,
        abort_on_error: bool = False,
        skip_example_on_any_failure: bool = True,
        description: str | None = None,
        labels: set[str] | None = None,
        metadata: SerializableDict | None = None,
    ) -> EvaluationOverview:
        """Evaluate runs without regard to earlier evaluations; see `Evaluator.evaluate_runs`."""
        return self._evaluate_after(
            [],
            run_ids,
            num_examples=num_examples,
            abort_on_error=abort_on_error,
            skip_example_on_any_failure=skip_example_on_any_failure,
            description=description,
            labels=labels,
            metadata=metadata,
        )

    def evaluate_additional_runs(
        self,
        *run_ids: str,
        previous_evaluation_ids: list[str] | None = None,
        num_examples: int | None = None,
        abort_on_error: bool = False,
        skip_example_on_any_failure: bool = True,
        description: str | None = None,
        labels: set[str] | None = None,
        metadata: SerializableDict | None = None,
    ) -> EvaluationOverview:
        """Extend earlier evaluations by new runs: the result has only what they have not evaluated.

        The logic receives the outputs of the runs of the earlier evaluations, too. What an earlier evaluation failed on
        or left out counts as not evaluated. Aggregate the earlier evaluations together with this one.

        Args:
            run_ids: the new runs; runs of the earlier evaluations may be among them.
            previous_evaluation_ids: the earlier evaluations; what they extend in turn counts as well.
            num_examples: as in `evaluate_runs`, like the other arguments.

        Raises:
            Unknown: there is no such run or evaluation.
            Refused: no run is given, the runs are of several datasets, or the earlier evaluations are no list.
        """
        if not run_ids:
            raise Refused("give the id of a run to evaluate; it may be one of an earlier evaluation")
        if isinstance(previous_evaluation_ids, str):
            raise Refused(f"previous_evaluation_ids must be a list of ids: [{previous_evaluation_ids!r}]")
        return self._evaluate_after(
            previous_evaluation_ids or [],
            run_ids,
            num_examples=num_examples,
            abort_on_error=abort_on_error,
            skip_example_on_any_failure=skip_example_on_any_failure,
            description=description,
            labels=labels,
            metadata=metadata,
        )

    def _evaluate_after(
        self, previous_ids: Sequence[str], run_ids: Sequence[str], **options: Any
    ) -> EvaluationOverview:
        """Evaluate what earlier evaluations have not evaluated; the options are those of `evaluate_runs`."""
        with self._one_at_a_time:
            previous = require_all_stored(self._evaluation_repository.evaluation_overview, "evaluation", previous_ids)
            self._extend(previous)
            return super().evaluate_runs(*_in_order(previous, run_ids), **options)

    def _extend(self, previous: Sequence[EvaluationOverview]) -> None:
        """Make earlier evaluations known to the logic.

        Those that they extend in turn are added if they have results for further examples.
        """
        self._extended = previous
        evaluated = {each.id: self._evaluated_runs(each) for each in previous}
        for each in previous:
            for earlier in self._ancestors(each):
                runs = evaluated.get(earlier.id) or self._evaluated_runs(earlier)
                if not runs.examples <= evaluated[each.id].examples:
                    evaluated[earlier.id] = runs
        self._incremental.set_previous_run_output_ids([*evaluated.values()])

    def _evaluated_runs(self, evaluation: EvaluationOverview) -> EvaluatedRuns:
        results = self._evaluation_repository.successful_example_evaluations(
            evaluation.id, declared_or_any(self.evaluation_type)
        )
        return EvaluatedRuns((run.id for run in evaluation.run_overviews), (each.example_id for each in results))

    def _ancestors(self, evaluation: EvaluationOverview) -> Iterable[EvaluationOverview]:
        """The evaluations that one extends, those that they extend, and so on."""
        seen: set[str] = set()
        waiting = [*evaluation.previous_evaluation_ids]
        for id in waiting:
            if id not in seen and (found := self._evaluation_repository.evaluation_overview(id)):
                seen.add(id)
                waiting += found.previous_evaluation_ids
                yield found

    def _head(self, runs: list[RunOverview], evaluable: Evaluable, *arguments: Any) -> dict[str, Any]:
        head = super()._head(runs, evaluable, *arguments)
        return head | {"previous_evaluation_ids": tuple(each.id for each in self._extended)}


def _in_order(previous: Sequence[EvaluationOverview], run_ids: Sequence[str]) -> list[str]:
    """The runs of earlier evaluations that are not given again, followed by the given ones."""
    earlier = (run.id for each in previous for run in each.ordered_runs)
    return [*dict.fromkeys(id for id in earlier if id not in run_ids), *run_ids]
