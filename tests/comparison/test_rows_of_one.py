"""The rows of one evaluation are those that pairing aligns."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest

from evaluand import Accuracy, Dataset, Evaluator, Mean, Runner
from evaluand.comparison.pairing import PairedRows, pair_rows, read_rows
from evaluand.evaluation.scorer import Score
from evaluand.metrics.base.metric import Metric
from evaluand.run.task import FunctionTask


def score(output: int) -> Score:
    draw = random.Random(output)
    return Score.abstained("unclear") if draw.random() < 0.2 else Score(draw.choice([0.0, 1.0]), "x")


def describe(rows: PairedRows) -> list[tuple[object, ...]]:
    values = [None if math.isnan(value) else value for value in rows.value[0].tolist()]
    keys = [rows.keys[group] for group in rows.group.tolist()]
    columns = (rows.index[0].tolist(), rows.replication.tolist(), rows.status[0].tolist())
    return sorted(zip(*columns, keys, map(repr, values), strict=True))


@pytest.mark.parametrize("metric", [Accuracy(), Accuracy(missing="wrong"), Mean()])
def test_they_are_the_same_in_another_order(metric: Metric) -> None:
    data = Dataset.from_rows([{"input": i % 7} for i in range(30)])  # equal examples, too
    run = Runner().run(FunctionTask(lambda number: number, version="1"), data, replications=2)
    graded = Evaluator().evaluate(run, {"score": score})
    alone = read_rows(graded, "score", metric)
    assert describe(alone) == describe(pair_rows([graded], "score", metric))
    assert np.array_equal(alone.index[0], np.sort(alone.index[0]))
    assert len(alone.group) == 60
