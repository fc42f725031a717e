"""The path through pharia-studio-sdk with its repositories on disk: `python pharia.py '{"n": 1000, "folder": "…"}'`."""

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


def measure(n: int, folder: str) -> dict[str, Any]:
    root = Path(folder)
    datasets, runs = FileDatasetRepository(root), FileRunRepository(root)
    evaluations, aggregations = FileEvaluationRepository(root), FileAggregationRepository(root)
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
