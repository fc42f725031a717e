"""Base classes of benchmarks: a dataset with the logics that judge a task on it, under an id."""

from abc import ABC, abstractmethod
from typing import Any

from evaluand.interop.pharia.domain import AggregatedEvaluation, Evaluation, ExpectedOutput, Task
from evaluand.interop.pharia.logic import AggregationLogic, EvaluationLogic
from evaluand.run.task import Input, Output


class Benchmark(ABC):
    """A dataset with the logics that judge a task on it.

    Args:
        benchmark_id: its id.
        dataset_id: the dataset.
        eval_logic: how an example is evaluated.
        aggregation_logic: how results are aggregated.
    """

    @abstractmethod
    def __init__(
        self,
        benchmark_id: str,
        dataset_id: str,
        eval_logic: EvaluationLogic[Input, Output, ExpectedOutput, Evaluation],
        aggregation_logic: AggregationLogic[Evaluation, AggregatedEvaluation],
        **kwargs: Any,
    ) -> None: ...

    @abstractmethod
    def execute(
        self,
        task: Task[Input, Output],
        name: str,
        description: str | None,
        labels: set[str] | None,
        metadata: dict[str, Any] | None,
        max_workers: int = 10,
    ) -> str:
        """Run a task over the dataset, evaluate and aggregate; returns the id of the execution."""


class BenchmarkRepository(ABC):
    """Stores benchmarks."""

    @abstractmethod
    def create_benchmark(
        self,
        dataset_id: str,
        eval_logic: EvaluationLogic[Input, Output, ExpectedOutput, Evaluation],
        aggregation_logic: AggregationLogic[Evaluation, AggregatedEvaluation],
        name: str,
        metadata: dict[str, Any] | None = None,
        description: str | None = None,
    ) -> Benchmark:
        """Store a benchmark."""

    @abstractmethod
    def get_benchmark(
        self,
        benchmark_id: str,
        eval_logic: EvaluationLogic[Input, Output, ExpectedOutput, Evaluation],
        aggregation_logic: AggregationLogic[Evaluation, AggregatedEvaluation],
        allow_diff: bool = False,
    ) -> Benchmark | None:
        """The benchmark with this id, or None.

        Args:
            allow_diff: also return it if the code of the logics has changed.
        """
