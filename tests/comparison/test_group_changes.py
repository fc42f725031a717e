"""In which groups a system does worse than another."""

from __future__ import annotations

import math
from typing import Any

import pytest

from evaluand.aggregation.aggregator import Measure
from evaluand.comparison.comparing import compare
from evaluand.comparison.group_changes import group_changes
from evaluand.core.errors import SpecError
from evaluand.data.dataset import Dataset
from evaluand.evaluation.evaluator import Evaluation, Evaluator
from evaluand.evaluation.scorers.prediction import Prediction
from evaluand.metrics.accuracy import Accuracy
from evaluand.metrics.column_statistics import Mean
from evaluand.metrics.names import make_metric
from evaluand.run.runner import Run, Runner
from evaluand.store.store import MemoryStore

N = 60
STORE = MemoryStore()


def graded(wrong: Any) -> Evaluation:
    rows = [{"input": i, "expected": i % 2, "g": "abc"[i % 3], "id": f"n{i}"} for i in range(N)]
    data = Dataset.from_rows(rows, attributes=["g", "id"])
    return evaluated(Runner(STORE).run(lambda i: 1 - i % 2 if wrong(i) else i % 2, data))


def evaluated(run: Run) -> Evaluation:
    same = {"same": lambda output, expected: output == expected, "prediction": Prediction(type="integer")}
    return Evaluator(STORE).evaluate(run, same)


def test_each_group_has_the_difference_that_its_rows_alone_have() -> None:
    a, b = graded(lambda i: i % 5 == 0), graded(lambda i: i % 3 == 1)
    found = group_changes(a, b, Measure("same", Accuracy()), ["g"])
    assert [each.by for each in found] == [{"g": "b"}, *({"g": g} for g in "ac")]
    assert [each.change["difference"] for each in found] == pytest.approx([-16 / 20, 4 / 20, 4 / 20])
    assert [(each.change["won"], each.change["lost"]) for each in found] == [(0, 16), (4, 0), (4, 0)]
    assert found[0].p == pytest.approx(3 * found[0].change["p"])
    sides = [_only_b(wrong) for wrong in (lambda i: i % 5 == 0, lambda i: i % 3 == 1)]
    alone = compare(*sides, scorers="same").pairs[0]
    assert (found[0].change["low"], found[0].change["high"]) == pytest.approx((alone["low"], alone["high"]))


def _only_b(wrong: Any) -> Evaluation:
    data = Dataset.from_rows([{"input": i, "expected": i % 2} for i in range(N) if i % 3 == 1])
    return evaluated(Runner(STORE).run(lambda i: 1 - i % 2 if wrong(i) else i % 2, data))


def test_losses_come_first_also_where_lower_is_better() -> None:
    a, b = graded(lambda i: False), graded(lambda i: i % 3 == 2)
    better, worse = (
        group_changes(a, b, Measure("same", Mean(direction=direction)), ["g"]) for direction in ("lower", "higher")
    )
    assert worse[0].by == {"g": "c"}
    assert better[-1].by == {"g": "c"}


def test_an_attribute_of_very_many_values_makes_no_groups() -> None:
    a, b = graded(lambda i: False), graded(lambda i: True)
    assert group_changes(a, b, Measure("same", Accuracy()), ["id"]) == []
    assert group_changes(a, b, Measure("same", Accuracy()), []) == []


def test_metrics_of_all_rows_have_differences_by_group_too() -> None:
    a, b = graded(lambda i: i % 7 == 0), graded(lambda i: i % 4 == 0)
    found = group_changes(a, b, Measure("prediction", make_metric("f1_macro")), ["g"])
    assert {each.by["g"] for each in found} == {*"abc"}
    assert not any(math.isnan(each.change["low"]) for each in found)


def test_an_unknown_attribute_is_refused() -> None:
    a, b = graded(lambda i: False), graded(lambda i: True)
    with pytest.raises(SpecError, match="'h' is not an attribute"):
        group_changes(a, b, Measure("same", Accuracy()), ["h"])
