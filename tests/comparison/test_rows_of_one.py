"""The rows of one evaluation are those that pairing aligns."""

from __future__ import annotations

import random
from itertools import chain

import pytest

from evaluand import Accuracy, Dataset, Evaluator, Mean, Runner
from evaluand.aggregation.groups import Units
from evaluand.comparison.pairing import PairedRows, iterate_units, pair_rows
from evaluand.evaluation.scorer import Score
from evaluand.metrics.base.metric import Metric
from evaluand.run.task import FunctionTask


def score(output: int) -> Score:
    draw = random.Random(output)
    return Score.abstained("unclear") if draw.random() < 0.2 else Score(draw.choice([0.0, 1.0]), "x")


def describe(rows: PairedRows) -> list[tuple[object, ...]]:
    keys = [rows.keys[group] for group in rows.group.tolist()]
    columns = (rows.index[0].tolist(), rows.replication.tolist(), rows.status[0].tolist())
    return sorted(zip(*columns, keys, map(repr, rows.value[0].tolist()), strict=True))


def describe_units(units: Units) -> list[tuple[object, ...]]:
    keys = [units.keys[group] for group in units.group.tolist()]
    columns = (units.index.tolist(), units.replication.tolist(), units.outcome.tolist())
    return [*zip(*columns, keys, map(repr, units.value.tolist()), strict=True)]


@pytest.mark.parametrize("metric", [Accuracy(), Accuracy(missing="wrong"), Mean()])
def test_they_are_the_same_in_another_order(metric: Metric, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evaluand.aggregation.score_shards.SHARD_ROWS", 20)
    data = Dataset.from_rows([{"input": i % 7} for i in range(50)])  # equal examples, too
    run = Runner().run(FunctionTask(lambda number: number, version="1"), data, replications=2)
    graded = Evaluator().evaluate(run, {"score": score})
    pieces = [describe_units(units) for units in iterate_units(graded, "score", metric)]
    assert [len(piece) for piece in pieces] == [40, 40, 20]
    assert [*chain.from_iterable(pieces)] == describe(pair_rows([graded], "score", metric))
