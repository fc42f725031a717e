"""Values of a run that a rule of `--until` stopped: their intervals hold at all looks, or are not there."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from evaluand.aggregation.aggregator import Aggregation, Aggregator, Measure, find_summary
from evaluand.aggregation.seen import Seen, heaviest_cluster
from evaluand.comparison.difference import row_weights
from evaluand.comparison.pairing import pair_rows
from evaluand.data.dataset import Dataset
from evaluand.evaluation.evaluator import Evaluation, Evaluator
from evaluand.metrics.accuracy import Accuracy
from evaluand.metrics.base.metric import Metric
from evaluand.metrics.column_statistics import Mean, Quantile
from evaluand.metrics.stats.anytime import anytime_interval
from evaluand.metrics.stats.intervals import cluster_sums
from evaluand.report.facts.aggregation import disparities_facts
from evaluand.run.runner import Runner
from evaluand.store.store import MemoryStore, Store

RULE = "accuracy better than base"


def evaluated(store: Store, drawn: int | None = 40, **roles: Any) -> Evaluation:
    """An evaluation of 40 examples, of 100 that a rule drew from; None where none did."""
    rows = [{"input": n, "expected": n % 3, "side": "lr"[n % 2], "weight": 1 + n % 2} for n in range(40)]
    rows = [row | {"batch": n // 4} for n, row in enumerate(rows)]
    data = Dataset.from_rows(rows, attributes="side", **roles)
    origin = {"experiment": "/mine.yaml"}
    origin |= {} if drawn is None else {"until": {"rule": RULE, "drawn": drawn, "of": 100}}  # type: ignore[dict-item]
    run = Runner(store=store).run(lambda n: n % 3 if n % 5 else -1, data, origin=origin)
    return Evaluator().evaluate(run, {"same": lambda output, expected: output == expected})


def summarised(evaluation: Evaluation, *metrics: Metric, **options: Any) -> Aggregation:
    return Aggregator().aggregate([evaluation], [Measure("same", metric, **options) for metric in metrics])


@pytest.mark.parametrize("metric", [Accuracy(), Accuracy(weighted=True, confidence=0.9), Mean(range=(0, 2))])
@pytest.mark.parametrize("roles", [{}, {"cluster": "batch"}])
def test_a_bounded_mean_has_the_interval_of_its_gate(metric: Metric, roles: dict[str, Any]) -> None:
    evaluation = evaluated(MemoryStore(), weight="weight", **roles)
    for row in summarised(evaluation, metric, by="side").table().to_pylist():
        where = dict(row["by"])
        rows = pair_rows([evaluation], "same", metric, where)
        cluster, weight = rows.example if rows.cluster is None else rows.cluster, row_weights(rows, metric)
        state = cluster_sums(rows.value[0], weight, cluster, np.zeros(len(weight), np.int64))
        heaviest = heaviest_cluster(evaluation, metric)
        seen = Seen(state["cluster_sum"], state["cluster_weight"], metric.row_range, heaviest)
        assert (row["low"], row["high"]) == pytest.approx(seen.bounds((1 + metric.confidence) / 2))  # type: ignore[attr-defined]
        assert row["reason"] is None


def test_other_values_have_no_interval_and_say_why() -> None:
    evaluation = evaluated(MemoryStore())
    why = "the run stopped by the rule 'accuracy better than base', which an interval of a fixed number of rows"
    aggregation = summarised(evaluation, Quantile(q=0.5), by="side", disparities=["difference"])
    for row in (*aggregation.table().to_pylist(), *disparities_facts(aggregation)):
        assert (row["low"], row["high"], row["reason"]) == (None, None, f"{why} does not allow for")
        assert row["value"] is not None


def test_the_values_of_a_stopped_run_are_not_those_of_a_whole_one() -> None:
    stopped, whole, reached = (evaluated(MemoryStore(), drawn) for drawn in (40, None, 100))
    assert stopped.digest == whole.digest
    [narrow], [wide] = (summarised(each, Accuracy()).table().to_pylist() for each in (whole, stopped))
    assert wide["low"] < narrow["low"] < narrow["value"] == wide["value"] < narrow["high"] < wide["high"]
    [one, other, same] = (summarised(each, Accuracy()).id for each in (stopped, whole, reached))
    assert one != other == same
    Aggregator(stopped.store).aggregate([whole], [Measure("same", Accuracy())])
    assert (found := find_summary(stopped)) is not None
    assert found.id == one


def test_both_ends_of_an_anytime_interval_are_bounds() -> None:
    low, high = anytime_interval(np.ones(50), np.ones(50), (0.0, 1.0), 0.95)
    assert (round(low, 3), high) == (0.93, 1.0)
