"""Metrics of numbers, scores and rankings against recorded values of D3M's programs, where these lie beside us."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from typing import Any

import pyarrow as pa
import pytest
from support.places import VECTORS_FOLDER

from evaluand.aggregation.groups import summarise
from evaluand.evaluation.scorers.ranking import Ranking
from evaluand.metrics.areas import RocAuc
from evaluand.metrics.base.metric import Metric
from evaluand.metrics.correlations import RSquared
from evaluand.metrics.errors import MeanAbsoluteError, MeanSquaredError, RootMeanSquaredError
from evaluand.metrics.rankings import HitsAtK, MeanReciprocalRank, PrecisionAtTopK
from evaluand.predictions.evaluating import evaluate

FILE = VECTORS_FOLDER / "d3m" / "metrics.json"
CASES = {case["id"]: case for case in json.loads(FILE.read_text())["cases"]} if FILE.exists() else {}
CORE, TABLE, NIST = "core_2022_5_5", "sklearn_table_3_1_1", "nist_dval_2019_3_25"
OF_NUMBERS: dict[str, Any] = {
    "meanSquaredError": MeanSquaredError,
    "rootMeanSquaredError": RootMeanSquaredError,
    "rootMeanSquaredErrorAvg": RootMeanSquaredError,
    "meanAbsoluteError": MeanAbsoluteError,
    "rSquared": RSquared,
}


@pytest.fixture(scope="module", autouse=True)
def _there() -> None:
    if not CASES:
        pytest.skip(f"no recorded cases in {FILE}")


def chosen(*metrics: str) -> list[str]:
    return [id for id, case in CASES.items() if case["metric"] in metrics and "expect_error" not in case]


def recorded(case: dict[str, Any], program: str) -> Any:
    return case["by"].get(program, {}).get("value", case.get("expected"))


def over_targets(case: dict[str, Any], over: Any) -> float:
    """The value over all targets, or that of the only one."""
    targets, n = case["targets"], len(case["truth"]["d3mIndex"])
    table = pa.table(
        {
            "_index_": [i for i in range(n) for _ in targets],
            "status": ["scored"] * n * len(targets),
            "target": targets * n,
            "truth": [float(case["truth"][t][i]) for i in range(n) for t in targets],
            "prediction": [float(case["predictions"][t][i]) for i in range(n) for t in targets],
        }
    )
    return summarise([table], [OF_NUMBERS[case["metric"]](over_targets=over)])[-1].value


@pytest.mark.parametrize("id", chosen(*OF_NUMBERS))
def test_numbers_of_one_and_of_several_targets(id: str) -> None:
    case = CASES[id]
    of_means = recorded(case, TABLE if case["metric"] == "rootMeanSquaredErrorAvg" else CORE)
    assert over_targets(case, "mean") == pytest.approx(of_means, rel=1e-12)
    pooled = recorded(case, TABLE)
    if case["metric"] == "rootMeanSquaredError" and isinstance(pooled, float):
        assert over_targets(case, "pooled") == pytest.approx(pooled, rel=1e-12)


def by_label(case: dict[str, Any]) -> dict[str, list[float]]:
    """The score of each label for each row of the truth, 0 for those that are not given."""
    given = case["predictions"]
    scores = {(i, label): c for i, label, c in zip(given["d3mIndex"], given["y"], given["confidence"], strict=True)}
    return {
        label: [scores.get((i, label), 0.0) for i in case["truth"]["d3mIndex"]] for label in sorted(set(given["y"]))
    }


@pytest.mark.parametrize("id", chosen("rocAuc", "rocAucMicro", "rocAucMacro"))
def test_areas_of_scores_and_of_labels(id: str) -> None:
    case = CASES[id]
    truth, average = case["truth"]["y"], "micro" if case["metric"] == "rocAucMicro" else "macro"
    if "confidence" not in case["predictions"]:
        metric: Metric = RocAuc(scored_by="labels", average=average)  # type: ignore[arg-type]
        found = evaluate(truth, case["predictions"]["y"], metrics=metric)
        assert found["roc_auc"].value == pytest.approx(recorded(case, NIST), rel=1e-12)
        return
    found = evaluate(truth, truth, scores=by_label(case), metrics=RocAuc(average=average))  # type: ignore[arg-type]
    assert found["roc_auc"].value == pytest.approx(recorded(case, CORE), rel=1e-12)


@pytest.mark.parametrize("id", chosen("precisionAtTopK"))
def test_the_top_by_values_and_by_rows(id: str) -> None:
    case = CASES[id]
    k = case["params"].get("K", 20)
    for top, program in (("first", TABLE), ("largest", NIST)):
        metric = PrecisionAtTopK(k=k, top=top)  # type: ignore[arg-type]
        found = evaluate(case["truth"]["y"], case["predictions"]["y"], metrics=metric)["precision_at_top_k"]
        assert found.value == pytest.approx(recorded(case, program), rel=1e-12)


@pytest.mark.parametrize("id", chosen("hitsAtK", "meanReciprocalRank"))
def test_rankings(id: str) -> None:
    case = CASES[id]
    answers = defaultdict(list)
    given = case["predictions"]
    for index, answer, rank in zip(given["d3mIndex"], given["y"], given["rank"], strict=True):
        answers[index].append({"answer": answer, "rank": rank})
    truth = zip(case["truth"]["d3mIndex"], case["truth"]["y"], strict=True)
    scored = [Ranking().score(answers[index], expected).columns or {} for index, expected in truth]
    lists = pa.list_(pa.float64())
    columns = {name: pa.array([row[name] for row in scored], lists) for name in ("ranks", "grades", "relevant")}
    first = pa.array([row["first_rank"] for row in scored], pa.float64())
    table = pa.table(
        {"_index_": range(len(scored)), "status": ["scored"] * len(scored), **columns, "first_rank": first}
    )
    metric = HitsAtK(k=case["params"]["K"]) if case["metric"] == "hitsAtK" else MeanReciprocalRank(absent_rank=500)
    value = summarise([table], [metric])[0].value
    assert not math.isnan(value)
    assert value == pytest.approx(recorded(case, CORE), rel=1e-12)
