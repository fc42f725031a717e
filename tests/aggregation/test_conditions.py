"""Metrics of the rows that match a condition."""

from __future__ import annotations

import pytest

from evaluand import Accuracy, Aggregator, Dataset, Evaluation, Evaluator, Measure, Runner
from evaluand.aggregation.aggregator import Aggregation
from evaluand.core.errors import EvaluandWarning, SpecError
from evaluand.evaluation.scorers.prediction import Prediction
from evaluand.experiment import Experiment
from evaluand.metrics.calibration import ExpectedCalibrationError
from evaluand.report.facts.aggregation import curves_facts
from evaluand.report.lineage import lineage_of_value
from evaluand.report.metric_labels import metric_labels

ROWS = [{"input": i, "expected": i % 2, "sex": "FFM"[i % 3], "age": None if i == 4 else 20 + 5 * i} for i in range(6)]
DATA = Dataset.from_rows(ROWS, attributes=["sex", "age"])


@pytest.fixture(scope="module")
def evaluation() -> Evaluation:
    run = Runner().run(lambda number: 1, DATA)
    return Evaluator().evaluate(run, {"same": lambda output, expected: output == expected})


def aggregate(evaluation: Evaluation, *measures: Measure) -> Aggregation:
    return Aggregator().aggregate([evaluation], measures)


def test_a_value_is_that_of_the_matching_rows_and_says_so(evaluation: Evaluation) -> None:
    condition = "age > 22 and sex == 'F'"  # of 1, 3 and, without an age, 4, of which 1 and 3 are right
    with pytest.warns(
        EvaluandWarning, match=r"where: 1 of 6 examples has a missing value in .*, which matches nothing"
    ):
        table = aggregate(evaluation, Measure("same", Accuracy()), Measure("same", Accuracy(), where=condition)).table()
    assert table["n"].to_pylist() == [6, 2]
    assert table["value"].to_pylist() == [0.5, 1.0]
    rows = table.select(["scorer", "signature"]).to_pylist()
    assert [*metric_labels(rows).values()] == ["accuracy · same", f'accuracy(where="{condition}") · same']


def test_it_equals_the_value_of_an_evaluation_of_these_rows_only(evaluation: Evaluation) -> None:
    part = Runner().run(lambda number: 1, DATA.where("age != null and age >= 30"))
    own = Evaluator().evaluate(part, {"same": lambda output, expected: output == expected})
    measures = [Measure("same", Accuracy(), by="sex", where=where) for where in (None, "age != null and age >= 30")]
    expected, found = aggregate(own, measures[0]).table(), aggregate(evaluation, measures[1]).table()
    columns = ["by", "value", "low", "high", "n"]
    assert found.select(columns).to_pylist() == expected.select(columns).to_pylist()


def test_the_curve_of_matching_rows_belongs_to_their_value() -> None:
    run = Runner().run(lambda number: {"prediction": 1, "confidence": 0.6}, DATA)
    own = Evaluator().evaluate(run, {"said": Prediction(type="integer")})
    metric = ExpectedCalibrationError()
    aggregation = aggregate(own, *(Measure("said", metric, where=where) for where in (None, "sex == 'F'")))
    rows = aggregation.table().to_pylist()
    assert {curve["signature"]: curve["points"]["n"] for curve in curves_facts(aggregation)} == {
        rows[0]["signature"]: [6],
        rows[1]["signature"]: [4],
    }


def test_the_rows_behind_the_value_match_too(evaluation: Evaluation) -> None:
    aggregation = aggregate(evaluation, Measure("same", Accuracy(), where="sex == 'M'"))
    assert lineage_of_value(aggregation, 0, [evaluation]).scores["_index_"].to_pylist() == [2, 5]


def test_where_nothing_matches_there_is_no_value(evaluation: Evaluation) -> None:
    [row] = aggregate(evaluation, Measure("same", Accuracy(), where="sex == 'X'")).table().to_pylist()
    assert (row["n"], row["value"]) == (0, None)


def test_gates_and_comparisons_use_the_measures_of_all_rows(evaluation: Evaluation) -> None:
    both = [Measure("same", Accuracy()), Measure("same", Accuracy(), where="sex == 'F'")]
    aggregation = aggregate(evaluation, *both)
    assert [measure.where for measure in aggregation.measures] == [None]
    assert [measure.where for measure in aggregation.every_measure] == [None, "sex == 'F'"]
    experiment = Experiment("x", DATA, {"t": abs}, {"same": lambda output, expected: output == expected}, both)
    assert experiment.measures_of_all_rows == experiment.measures[:1]


def test_a_condition_on_what_is_not_stored_is_refused(evaluation: Evaluation) -> None:
    with pytest.raises(SpecError, match=r"where: 'agee' has no role in the dataset \(did you mean 'age'\?\)"):
        aggregate(evaluation, Measure("same", Accuracy(), where="agee > 1"))
    with pytest.raises(SpecError, match="write == for equal"):
        Measure("same", Accuracy(), where="age = 1")
    with pytest.raises(SpecError, match="which are never equal"):
        aggregate(evaluation, Measure("same", Accuracy(), where="sex > 1"))
