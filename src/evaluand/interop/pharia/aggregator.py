"""The third step: aggregates results into statistics."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, Generic, TypeVar

from pydantic_core import to_json

from evaluand.core.errors import warn
from evaluand.core.fingerprint import code_identity
from evaluand.interop.pharia.domain import (
    AggregatedEvaluation,
    AggregationOverview,
    Evaluation,
    EvaluationOverview,
    ExampleEvaluation,
    ExampleResults,
    FailedExampleEvaluation,
    Refused,
    SerializableDict,
    new_id,
    require_all_stored,
    utc_now,
)
from evaluand.interop.pharia.evaluations import AggregationRepository, EvaluationRepository
from evaluand.interop.pharia.logic import AggregationLogic, aggregation_types
from evaluand.interop.pharia.steps import origin
from evaluand.interop.pharia.types import read_as, require_head_fields

LEFT_OUT: Final = "left out"
T = TypeVar("T")


class CountingFilterIterable(Iterator[T]):
    """The items that a filter accepts, read once; counts the accepted and the refused ones read so far.

    Example:
        >>> even = CountingFilterIterable([1, 2, 4], lambda number: number % 2 == 0)
        >>> list(even), even.included_count(), even.excluded_count()
        ([2, 4], 2, 1)
    """

    def __init__(self, wrapped_iterable: Iterable[T], filter: Callable[[T], bool]) -> None:
        self._items, self._filter = iter(wrapped_iterable), filter
        self._counts = {True: 0, False: 0}

    def __next__(self) -> T:
        for item in self._items:
            is_included = bool(self._filter(item))
            self._counts[is_included] += 1
            if is_included:
                return item
        raise StopIteration

    def included_count(self) -> int:
        """How many items the filter accepted."""
        return self._counts[True]

    def excluded_count(self) -> int:
        """How many it refused."""
        return self._counts[False]


class Aggregator(Generic[Evaluation, AggregatedEvaluation]):
    """Aggregates evaluations.

    Args:
        evaluation_repository: where the results are stored.
        aggregation_repository: where to store the aggregations.
        description: what the aggregations are; stored in their heads.
        aggregation_logic: how results are aggregated.
        failure_counts_as: the result to count for every example on which a task or the evaluation failed. By default,
            such examples are left out, and the head states their number. Examples that no run was called with, and
            those that wait for labels, are not failures and are always left out.
    """

    def __init__(
        self,
        evaluation_repository: EvaluationRepository,
        aggregation_repository: AggregationRepository,
        description: str,
        aggregation_logic: AggregationLogic[Evaluation, AggregatedEvaluation],
        *,
        failure_counts_as: Evaluation | None = None,
    ) -> None:
        self.description = description
        self._evaluation_repository, self._aggregation_repository = evaluation_repository, aggregation_repository
        self._aggregation_logic = aggregation_logic
        self._substitute = failure_counts_as

    def evaluation_type(self) -> type[Evaluation]:
        """The type of results, as the logic's class declares it; override this where it does not."""
        return aggregation_types(self._aggregation_logic)[0]  # type: ignore[no-any-return]

    def aggregated_evaluation_type(self) -> type[AggregatedEvaluation]:
        """The type of statistics, as the logic's class declares it; override this where it does not."""
        return aggregation_types(self._aggregation_logic)[1]  # type: ignore[no-any-return]

    def aggregate_evaluation(
        self,
        *eval_ids: str,
        description: str | None = None,
        labels: set[str] | None = None,
        metadata: SerializableDict | None = None,
    ) -> AggregationOverview[AggregatedEvaluation]:
        """Aggregate one or more evaluations.

        Args:
            eval_ids: the evaluations, whose results have the same type.
            description: appended to that of the aggregator.
            labels: for finding the aggregation.
            metadata: further facts to store with it.

        Raises:
            Unknown: there is no such evaluation.
            Refused: there is no id, or an argument has the wrong type for the head.
            Misfit: `failure_counts_as` or a result does not have the type of results.
        """
        require_head_fields(description=description, labels=labels, metadata=metadata)
        if self._substitute is not None:
            self._substitute = read_as(self.evaluation_type(), self._substitute, "failure_counts_as")
        start = utc_now()
        overviews = self._heads(eval_ids)
        results = self._results(overviews)
        successes = [each for each in results if not isinstance(each.result, FailedExampleEvaluation)]
        crashed = len(results) - len(successes)
        statistics = self._aggregation_logic.aggregate(
            ExampleResults(
                [each.result for each in successes] + self._substitutes(overviews, crashed),
                [each.example_id for each in successes],
            )
        )
        policy = LEFT_OUT
        if self._substitute is not None:
            policy = f"counted as {to_json(self._substitute).decode()}"
        overview: AggregationOverview[AggregatedEvaluation] = AggregationOverview(
            evaluation_overviews=frozenset(overviews),
            id=new_id(),
            start=start,
            end=utc_now(),
            successful_evaluation_count=len(successes),
            crashed_during_evaluation_count=crashed,
            description=self.description if description is None else f"{self.description} : {description}",
            statistics=statistics,
            labels=labels or set(),
            metadata=metadata or {},
            failure_policy=policy,
            provenance=origin(code_identity("metric", self._aggregation_logic), {}),
        )
        self._aggregation_repository.store_aggregation_overview(overview)
        return overview

    def _heads(self, eval_ids: tuple[str, ...]) -> list[EvaluationOverview]:
        if not eval_ids:
            raise Refused("give the id of an evaluation to aggregate")
        overviews = require_all_stored(self._evaluation_repository.evaluation_overview, "evaluation", eval_ids)
        for overview in overviews:
            left_out = [id for id in overview.previous_evaluation_ids if id not in eval_ids]
            if left_out:
                extended = f"evaluation {overview.id} extends {', '.join(left_out)}, whose results are not aggregated"
                warn(f"{extended}; pass the ids of all of them to aggregate_evaluation")
        return overviews

    def _results(self, overviews: list[EvaluationOverview]) -> list[ExampleEvaluation[Any]]:
        """The stored results and failures; warns where some are lost."""
        results: list[ExampleEvaluation[Any]] = []
        for overview in overviews:
            found = self._evaluation_repository.example_evaluations(overview.id, self.evaluation_type())
            expected = overview.successful_evaluation_count + overview.failed_evaluation_count
            if len(found) < expected:
                lost = f"{expected} results, of which {expected - len(found)} are lost or cannot be read"
                warn(f"evaluation {overview.id} made {lost}; evaluate the runs again")
            results += found
        return results

    def _substitutes(self, overviews: list[EvaluationOverview], crashed: int) -> list[Any]:
        """The substitute, once for each example without a result."""
        if self._substitute is None:
            return []
        return [self._substitute] * (crashed + sum(map(_run_failures, overviews)))


def _run_failures(overview: EvaluationOverview) -> int:
    """How many examples have no result because a run failed on them."""
    if overview.run_failure_count is not None:
        return overview.run_failure_count
    if len(overview.run_overviews) == 1:
        return sum(run.failed_example_count for run in overview.run_overviews)
    raise Refused(
        f"evaluation {overview.id} of {len(overview.run_overviews)} runs does not state on how many examples a run"
        " failed, so they cannot be counted; evaluate the runs again"
    )
