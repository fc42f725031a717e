"""The curves of an aggregation: that they are those of scikit-learn, small, the same however cut, and verified."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from click.testing import CliRunner
from support.cancer import answers, cancer

from evaluand.aggregation.aggregator import Aggregation, Aggregator, Measure
from evaluand.aggregation.groups import merge as merged, summarise_shard
from evaluand.cli import main
from evaluand.data.dataset import Dataset
from evaluand.data.schema.named import tables
from evaluand.evaluation.evaluator import Evaluator
from evaluand.evaluation.scorers.prediction import Prediction
from evaluand.metrics.areas import AveragePrecision, RocAuc
from evaluand.metrics.base.curves import PARTS, POINTS, residual_curve
from evaluand.metrics.base.metric import Metric
from evaluand.metrics.base.numeric_pairs import ROWS, Residuals
from evaluand.metrics.calibration import ExpectedCalibrationError
from evaluand.metrics.confusion_matrix import ConfusionMatrix
from evaluand.metrics.errors import MeanSquaredError, RootMeanSquaredError
from evaluand.report.export import flat
from evaluand.report.facts.aggregation import curves_facts
from evaluand.report.verification import verify
from evaluand.run.runner import Runner
from evaluand.store.directory import DirectoryStore
from evaluand.store.store import MemoryStore, Store
from evaluand.store.tables import CURVES

sk = pytest.importorskip("sklearn.metrics")


def aggregated(
    truth: list[Any], answers: list[Any], metrics: list[Metric], by: tuple[str, ...] = (), store: Store | None = None
) -> Aggregation:
    records = [{"input": i, "expected": t, "side": str(i % 2)} for i, t in enumerate(truth)]
    dataset = Dataset.from_rows(records, input="input", attributes="side")
    run = Runner(store=store or MemoryStore()).run(lambda i: answers[i], dataset)
    scorer = Prediction(type="number" if isinstance(truth[0], float) else "text")
    evaluation = Evaluator().evaluate(run, {"same": scorer})
    return Aggregator().aggregate([evaluation], [Measure("same", metric, by) for metric in metrics], name="all")


def test_curves_of_real_data_are_those_of_scikit_learn() -> None:
    truth, scores = cancer()
    made = aggregated(truth, answers(scores), [RocAuc(), AveragePrecision()])
    roc, _, precision, _ = curves_facts(made)
    assert [roc[name] for name in ("metric", "curve", "part", "by")] == ["roc_auc", "roc", "benign", {}]
    positive = np.array(truth) == "benign"
    x, y, _ = sk.roc_curve(positive, scores, drop_intermediate=False)
    points = roc["points"]
    assert set(zip(points["x"], points["y"], strict=True)) <= set(zip(x.tolist(), y.tolist(), strict=True))
    assert (points["x"][0], points["y"][-1], points["threshold"][0], points["n"][-1]) == (0, 1, None, len(truth))
    y, x, _ = sk.precision_recall_curve(positive, scores)
    pairs = zip(precision["points"]["x"], precision["points"]["y"], strict=True)
    assert np.abs(np.array(list(pairs))[:, None] - np.stack([x, y], axis=1)).sum(axis=2).min(axis=1).max() < 1e-12
    assert precision["points"]["y"][-1] == positive.mean()


@pytest.mark.slow
def test_a_table_stays_small_whatever_the_rows() -> None:
    random = np.random.default_rng(0)
    truth = random.integers(0, 60, 1500).astype(str).tolist()
    made = aggregated(
        truth,
        [
            {"prediction": "1", "confidence": dict(zip(map(str, range(60)), s, strict=True))}
            for s in random.random((1500, 60)).tolist()
        ],
        [RocAuc(confidence=None), ConfusionMatrix()],
    )
    drawn = curves_facts(made)
    roc = [curve for curve in drawn if curve["curve"] == "roc"]
    assert len(roc) == PARTS
    assert max(len(curve["points"]["x"]) for curve in roc) <= POINTS + 1
    matrix = [curve for curve in drawn if curve["curve"] == "confusion"]
    assert [curve["part"] for curve in matrix][-1] is None
    assert sum(sum(curve["points"]["n"]) for curve in matrix) == 1500


def test_bins_of_confidence_have_counts_and_intervals() -> None:
    truth, scores = cancer()
    made = aggregated(truth, answers(scores), [ExpectedCalibrationError()])
    [with_] = curves_facts(made)
    points = with_["points"]
    assert sum(points["n"]) == len(truth)
    assert all(low <= y <= high for low, y, high in zip(points["low"], points["y"], points["high"], strict=True))
    ece = sum(n * abs(x - y) for n, x, y in zip(points["n"], points["x"], points["y"], strict=True)) / len(truth)
    assert ece == pytest.approx(made.table()["value"][0].as_py(), abs=1e-12)


def pages_drawn(pages: int) -> dict[str, list[float | None]]:
    """The only bin of eight right rows on so many pages, which are their clusters."""
    records = [{"input": i, "expected": "a", "page": i % pages} for i in range(8)]
    run = Runner().run(
        lambda i: {"prediction": "a", "confidence": 0.9}, Dataset.from_rows(records, input="input", cluster="page")
    )
    evaluation = Evaluator().evaluate(run, {"same": Prediction()})
    [curve] = curves_facts(Aggregator().aggregate([evaluation], [Measure("same", ExpectedCalibrationError())]))
    return dict(curve["points"])


def test_rows_of_one_cluster_give_bins_no_interval() -> None:
    points = pages_drawn(1)
    assert (points["n"], points["low"]) == ([8], [None])


def test_a_bin_of_four_clusters_has_the_interval_of_four_rows() -> None:
    points = pages_drawn(4)
    student = 3.182446305284263  # of three degrees of freedom
    assert points["low"] == [pytest.approx(4 / (4 + student**2))]


def test_a_matrix_has_each_truth_with_what_it_met_and_its_shares() -> None:
    made = aggregated(["a", "a", "a", "b"], ["a", "b", "c", "b"], [ConfusionMatrix()])
    assert [(curve["part"], curve["points"]["label"], curve["points"]["n"]) for curve in curves_facts(made)] == [
        ("a", ["a", "b", "c"], [1, 1, 1]),
        ("b", ["b"], [1]),
    ]
    assert curves_facts(made)[0]["points"]["y"] == [pytest.approx(1 / 3)] * 3


def test_residuals_are_single_rows_or_bins_of_many() -> None:
    made = aggregated([1.0, 5.0], [2.0, 1.5], [RootMeanSquaredError(), MeanSquaredError()])
    drawn = curves_facts(made)
    assert [curve["metric"] for curve in drawn] == ["root_mean_squared_error", "mean_squared_error"]
    assert (drawn[0]["points"]["x"], drawn[0]["points"]["y"]) == ([1.5, 2.0], [3.5, -1.0])
    truth, prediction = np.arange(4000.0), np.arange(4000.0) - np.tile(np.arange(100.0), 40)
    many = residual_curve(truth, prediction)
    assert len(many.points.x) == 20
    assert many.points.weight.sum() == 4000
    errors = truth - prediction
    assert many.low is not None
    assert many.high is not None
    assert (errors.min() <= many.low).all()
    assert ((many.low < many.points.y) & (many.points.y < many.high)).all()


def test_residuals_of_halves_merge_to_those_of_the_whole_in_any_order() -> None:
    random = np.random.default_rng(1)
    n = ROWS + 5000
    truth, prediction = random.normal(size=(2, n))
    index = np.arange(n)
    table = pa.table({"_index_": index, "status": ["scored"] * n, "truth": truth, "prediction": prediction})
    whole = summarise_shard(table, [Residuals()])
    halves = merged([summarise_shard(part, [Residuals()]) for part in (table[:9000], table[9000:])])
    turned = summarise_shard(table.take(random.permutation(n)), [Residuals()])
    first, *others = ([drawn for _, _, drawn in summary.curves(0, (), 1)] for summary in (whole, halves, turned))
    assert sum(first[0].points.weight) == pytest.approx(n)
    for other in others:
        assert all((a == b).all() for a, b in zip(first[0].points, other[0].points, strict=True))


def test_groups_have_curves_of_their_own_where_they_are_few() -> None:
    truth, scores = cancer()
    made = aggregated(truth, answers(scores), [RocAuc(label="benign", confidence=None)], ("side",))
    assert [curve["by"] for curve in curves_facts(made)] == [{}, {"side": "0"}, {"side": "1"}]


def test_what_has_no_curve_has_no_table() -> None:
    made = aggregated(["a", "a"], [{"prediction": "a", "confidence": {"a": 1.0}}] * 2, [RocAuc(confidence=None)])
    assert "curves" not in made.manifest["counts"]
    assert made.curves().num_rows == 0


def test_curves_are_verified_shown_and_exported(tmp_path: Any) -> None:
    store = DirectoryStore(tmp_path / "store")
    made = aggregated(["a", "b"], ["a", "b"], [ConfusionMatrix()], store=store)
    assert verify(store, "aggregations", made.id) == []
    assert made.manifest["counts"] == {"metrics": 1, "curves": 2}
    assert made.curves().schema == CURVES == tables.curves.arrow
    table = flat(made, "curves").read_all()
    assert table.select(["metric", "curve", "part", "label", "n"]).to_pylist()[1] == {
        "metric": "confusion_matrix", "curve": "confusion", "part": "b", "label": "b", "n": 1.0
    }  # fmt: skip
    result = CliRunner().invoke(main, ["show", made.id, "--json", "--store", str(store.root)])
    assert '"curve":"confusion"' in result.output.replace(" ", "")
