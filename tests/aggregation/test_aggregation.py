"""Aggregations: a metric that cannot take the scores costs no other its values."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from support.commands import Folder

from evaluand import Accuracy, Aggregator, Dataset, Evaluation, Evaluator, Mean, Measure, Runner
from evaluand.aggregation.aggregator import MetricRefused
from evaluand.core.errors import DataError

TOLD = r"refused: mean of 'size': _index_ 2: value 3\.0 lies outside the range 0\.0 to 2\.0"


@pytest.fixture
def evaluation() -> Evaluation:
    rows = [{"input": "a" * n, "expected": "a", "part": "even" if n % 2 == 0 else "odd"} for n in (1, 2, 3)]
    run = Runner().run(lambda text: text, Dataset.from_rows(rows, attributes="part"))
    return Evaluator().evaluate(run, {"size": lambda output: len(output), "same": lambda output: output == "a"})


def test_the_others_have_their_values_and_the_one_its_counts_and_a_reason(evaluation: Evaluation) -> None:
    measures = [
        Measure("size", Mean(range=(0, 2)), by="part"),
        Measure("size", Mean(), by="part", disparities=["difference"]),
        Measure("same", Accuracy()),
    ]
    with pytest.warns(MetricRefused, match=TOLD):
        aggregation = Aggregator().aggregate([evaluation], measures)
    rows = aggregation.table().to_pylist()
    assert [(row["scorer"], row["value"], row["n"]) for row in rows] == [
        ("size", None, 3),
        ("size", None, 1),
        ("size", None, 2),
        ("size", 2.0, 3),
        ("size", 2.0, 1),
        ("size", 2.0, 2),
        ("same", pytest.approx(1 / 3), 3),
    ]
    assert rows[0]["signature"] == Mean(range=(0, 2)).signature
    assert {row["reason"] for row in rows[:3]} == {TOLD.replace("\\", "")}
    assert len(aggregation.disparities()) == 1
    with pytest.warns(MetricRefused):
        assert Aggregator().aggregate([evaluation], measures).receipt.called == 0


def test_where_no_metric_can_take_the_scores_nothing_is_made(evaluation: Evaluation) -> None:
    with pytest.raises(DataError, match="lies outside the range"):
        Aggregator().aggregate([evaluation], [Measure("size", Mean(range=(0, 2))), Measure("size", Mean(range=(0, 1)))])
    assert not list(evaluation.store.ids("aggregations"))


@pytest.mark.parametrize("fault", [OSError("disk"), MemoryError(), KeyError("page"), pa.ArrowInvalid("page")])
def test_an_error_of_reading_is_raised_and_nothing_is_stored(
    evaluation: Evaluation, monkeypatch: pytest.MonkeyPatch, fault: Exception
) -> None:
    def read(*_: object, **__: object) -> Iterator[pa.RecordBatch]:
        raise fault
        yield

    measures = [Measure("size", Mean()), Measure("same", Accuracy())]
    with monkeypatch.context() as patch:
        patch.setattr(Evaluation, "batches", read)
        with pytest.raises(type(fault)):
            Aggregator().aggregate([evaluation], measures)
    assert not list(evaluation.store.ids("aggregations"))
    assert Aggregator().aggregate([evaluation], measures).table()["value"].to_pylist() == pytest.approx([2, 1 / 3])


def test_rates_of_one_criterion_are_refused_together(evaluation: Evaluation) -> None:
    alike = [Measure("size", Mean(range=(0, n)), "part", ["difference"], "both") for n in (2, 9)]
    with pytest.warns(MetricRefused):
        table = Aggregator().aggregate([evaluation], [*alike, Measure("size", Mean())]).table()
    assert [math.isfinite(v if v is not None else math.nan) for v in table["value"].to_pylist()] == [False] * 6 + [True]


def test_a_run_prints_the_other_values_and_exits_with_1(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    path = folder.experiment()
    path.write_text(path.read_text() + "  - {kind: mean, scorer: number, range: [2, 3]}\n")
    result = folder.call("run", path)
    assert result.exit_code == 1
    assert "accuracy · number" in result.stdout
    assert (
        "error: task 'mine': mean of 'number': _index_ 0: value 1.0 lies outside the range 2.0 to 3.0" in result.stderr
    )
