"""The same predictions through every door: the same values, and the same digests of runs and evaluations."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.thinned import thinned

from evaluand import (
    Accuracy,
    Aggregator,
    Dataset,
    EstimatorTask,
    Evaluator,
    LocalEngine,
    Measure,
    MemoryStore,
    Policy,
    ProcessEngine,
    ProgramTask,
    Run,
    Runner,
    evaluate,
)
from evaluand.evaluation.scorers.prediction import Prediction
from evaluand.run.tasks.recorded import RecordedTask

RATES = [round(0.7 * i % 5, 1) for i in range(40)]
TRUTH = ["high" if rate > 2.4 else "low" for rate in RATES]
SIZES = ["small" if i % 3 else "large" for i in range(40)]


class Threshold:
    """A fitted estimator without probabilities."""

    def predict(self, features: Any) -> Any:
        return np.where(np.asarray(features)[:, 0] > 2, "high", "low")


def threshold(rate: float) -> str:
    return "high" if rate > 2 else "low"


async def waiting(rate: float) -> str:
    return threshold(rate)


PROGRAM = """
import json, sys
for line in sys.stdin:
    rate = json.loads(line)["input"]
    print(json.dumps({"output": "high" if rate > 2 else "low"}), flush=True)
"""


def through(door: str, folder: Path) -> Run:
    """The run that comes out of a door."""
    rows = [{"rate": r, "truth": t, "size": s} for r, t, s in zip(RATES, TRUTH, SIZES, strict=True)]
    data = Dataset.from_rows(rows, input="rate", expected="truth", attributes="size")
    (folder / "program.py").write_text(PROGRAM)
    lines = (json.dumps({"_index_": i, "said": threshold(rate)}) for i, rate in enumerate(RATES))
    (folder / "said.jsonl").write_text("\n".join(lines))
    tasks: dict[str, Any] = {
        "coroutine": waiting,
        "estimator": EstimatorTask(Threshold()),
        "program": ProgramTask(command=[sys.executable, "program.py"], folder=str(folder)),
        "recorded": RecordedTask(path=str(folder / "said.jsonl"), response="said"),
    }
    engine = ProcessEngine(2) if door == "processes" else LocalEngine()
    return Runner(MemoryStore(), Policy(concurrency=2), engine).run(tasks.get(door, threshold), data)


@pytest.fixture(scope="module")
def arrays() -> Any:
    result = evaluate(TRUTH, [threshold(rate) for rate in RATES], by={"size": SIZES}, metrics=Accuracy())
    return result, result.save(MemoryStore(), "arrays")


@thinned("door", ["function", "coroutine", "processes", "estimator", "program", "recorded"], every=3)
def test_every_door_gives_the_numbers_and_digests_of_the_arrays(door: str, arrays: Any, tmp_path: Path) -> None:
    result, saved = arrays
    run = through(door, tmp_path)
    assert run.digest == saved.tasks[0].run.digest
    evaluation = Evaluator().evaluate(run, {"prediction": Prediction()})
    assert evaluation.digest == saved.tasks[0].evaluation.digest
    table = Aggregator().aggregate([evaluation], [Measure("prediction", Accuracy(), by="size")]).table()
    values = [(row["value"], row["low"], row["high"], row["n"]) for row in table.to_pylist()]
    assert values == [(row.value, row.low, row.high, row.n) for row in result.rows]


def test_a_prediction_that_is_missing_abstains_through_every_door(tmp_path: Path) -> None:
    (tmp_path / "said.csv").write_text("_index_,said,sure\n0,low,0.9\n1,,\n2,high,0.7\n")
    task = RecordedTask(path=str(tmp_path / "said.csv"), response={"prediction": "said", "confidence": "sure"})
    truth = ["low", "low", "low"]
    data = Dataset.from_rows([{"input": i, "expected": value} for i, value in enumerate(truth)])
    run = Runner().run(task, data)
    table = Evaluator().evaluate(run, {"prediction": Prediction()}).table("prediction")
    assert table["status"].to_pylist() == ["scored", "abstained", "scored"]
    assert table["reason"].to_pylist() == [None, "the task gave no answer", None]
    [row] = evaluate(truth, ["low", None, "high"], confidence=[0.9, None, 0.7], metrics=Accuracy()).rows
    assert (row.value, row.n_scored, row.n_abstained, row.n_failed) == (0.5, 2, 1, 0)
