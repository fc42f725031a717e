"""The path through pharia-studio-sdk: `python pharia.py '{"n": 1000, "folder": "…"}'`.

Its repositories are on disk, or in memory with `"memory": true`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from meter import Phases
from pharia_inference_sdk.core import Task, TaskSpan
from pharia_studio_sdk.evaluation import (
    AggregationLogic,
    Aggregator,
    Evaluator,
    Example,
    FileAggregationRepository,
    FileDatasetRepository,
    FileEvaluationRepository,
    FileRunRepository,
    InMemoryAggregationRepository,
    InMemoryDatasetRepository,
    InMemoryEvaluationRepository,
    InMemoryRunRepository,
    MeanAccumulator,
    Runner,
    SingleOutputEvaluationLogic,
)
from pydantic import BaseModel
from workload import example


class Match(BaseModel):
    value: float


class Accuracy(BaseModel):
    value: float


class Echo(Task[str, str]):
    def do_run(self, input: str, task_span: TaskSpan) -> str:
        with task_span.span("retrieve"):
            pass
        with task_span.span("answer"):
            return input


class ExactMatch(SingleOutputEvaluationLogic[str, str, str, Match]):
    def do_evaluate_single_output(self, example: Example[str, str], output: str) -> Match:
        return Match(value=float(output == example.expected_output))


class Mean(AggregationLogic[Match, Accuracy]):
    def aggregate(self, evaluations: Iterable[Match]) -> Accuracy:
        mean = MeanAccumulator()
        for each in evaluations:
            mean.add(each.value)
        return Accuracy(value=mean.extract())


FILES = FileDatasetRepository, FileRunRepository, FileEvaluationRepository, FileAggregationRepository
MEMORY = (
    InMemoryDatasetRepository,
    InMemoryRunRepository,
    InMemoryEvaluationRepository,
    InMemoryAggregationRepository,
)


def measure(n: int, folder: str, memory: bool = False) -> dict[str, Any]:
    made = [kind() for kind in MEMORY] if memory else [kind(Path(folder)) for kind in FILES]
    datasets, runs, evaluations, aggregations = made
    examples = [Example(input=i, expected_output=e) for i, e in map(example, range(n))]
    phases = Phases()
    with phases("dataset"):
        dataset = datasets.create_dataset(examples=examples, dataset_name="echo")
    with phases("run"):
        run = Runner(Echo(), datasets, runs, "echo").run_dataset(dataset.id)
    with phases("evaluate"):
        evaluator = Evaluator(datasets, runs, evaluations, "exact match", ExactMatch())
        evaluation = evaluator.evaluate_runs(run.id)
    with phases("aggregate"):
        overview = Aggregator(evaluations, aggregations, "mean", Mean()).aggregate_evaluation(evaluation.id)
    return phases.result(folder) | {"n": n, "value": overview.statistics.value}


if __name__ == "__main__":
    print(json.dumps(measure(**json.loads(sys.argv[1]))))
