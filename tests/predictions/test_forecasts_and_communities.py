"""Problems of forecasting and community detection, judged by metrics that no problem document names."""

from __future__ import annotations

import pyarrow as pa
import pytest

from evaluand.core.errors import DataError
from evaluand.predictions import judge
from evaluand.predictions.problem.problem import Criterion

TRUTH = pa.table({"id": [0, 1, 2, 3], "y": [1.0, 2.0, 3.0, 4.0], "scale": ["1", "1", "2", "2"]})
PREDICTIONS = pa.table({"id": [3, 2, 1, 0], "y": [5.0, 3.0, 2.0, 1.5]})


def value(metric: str, truth: pa.Table = TRUTH, predictions: pa.Table = PREDICTIONS, **names: str) -> float:
    index, target = names.get("index", "id"), names.get("target", "y")
    [result] = judge(truth, predictions, [Criterion(metric=metric)], index=[index], targets=[target])
    return result.value


@pytest.mark.parametrize(
    ("metric", "expected"),
    [
        ("smape", (0.4 + 2 / 9) / 4),
        ("weighted_absolute_percentage_error", 1.5 / 10),
        ("pinball_loss", 1.5 / 8),
        ("mase", (0.5 + 0.5) / 4),
    ],
)
def test_forecasts_are_judged_and_the_truth_has_the_scale_of_each_row(metric: str, expected: float) -> None:
    assert value(metric) == pytest.approx(expected)


def test_a_scale_that_is_missing_or_no_number_is_refused() -> None:
    with pytest.raises(DataError, match="there is no column 'scale', which a metric reads; add it"):
        value("mase", TRUTH.drop_columns("scale"))
    with pytest.raises(DataError, match="column scale: 'high' is not"):
        value("mase", TRUTH.set_column(2, "scale", pa.array(["1", "high", "2", "2"])))


def test_communities_may_overlap() -> None:
    truth = pa.table({"node": [0, 0, 1, 2], "community": ["a", "b", "a", "b"]})
    renamed = pa.table({"node": [2, 0, 1, 0], "community": ["y", "x", "x", "y"]})
    for metric in ("omega_index", "overlapping_mutual_information"):
        assert value(metric, truth, renamed, index="node", target="community") == 1
        other = renamed.set_column(1, "community", pa.array(["x", "x", "x", "y"]))
        assert value(metric, truth, other, index="node", target="community") < 1
