"""D3M's metrics under their names: the recorded cases of three programs, the seed's examples, families of cases."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import sklearn.metrics as sk
from support.places import VECTORS_FOLDER, needs

import evaluand.interop.d3m as d3m
from evaluand.core.errors import DataError, SpecError
from evaluand.interop.d3m import compute_metric, precision_at_top_K
from evaluand.interop.d3m.names import METRICS

FILE = VECTORS_FOLDER / "d3m" / "metrics.json"
CASES = {case["id"]: case for case in json.loads(FILE.read_text())["cases"]} if FILE.exists() else {}
DIALECTS = {"sklearn_table_3_1_1": "3.1.1", "core_2022_5_5": "core-2022", "nist_dval_2019_3_25": "nist"}
RECORDED = [(id, program) for id, case in CASES.items() for program, found in case["by"].items() if "value" in found]
CRASHED = [(id, program) for id, case in CASES.items() for program, found in case["by"].items() if "error" in found]
recorded = needs(FILE)

SENSIBLE = {
    "precision": "posLabel is taken, which that program's function did not know",
    "recall": "posLabel is taken, as with precision",
    "rocAuc/binary/one_row_per_sample": "labels that are text have an area like those that are numbers",
}
"""Where NIST's program stopped at a case that has a value, and why we give it: by metric, or by case."""


def computed(case: dict[str, Any], dialect: str | None = None, **changed: Any) -> Any:
    case = case | changed
    return compute_metric(
        case["metric"],
        case["truth"],
        case["predictions"],
        targets=case["targets"],
        applicability_to_target=case["applicabilityToTarget"],
        labels=case["all_labels"],
        dialect=dialect,
        **case["params"],
    )


@recorded
@pytest.mark.parametrize("id", [id for id, case in CASES.items() if "expected" in case])
def test_what_all_programs_agree_on_is_the_value_by_default(id: str) -> None:
    assert computed(CASES[id]) == pytest.approx(CASES[id]["expected"], abs=1e-9)


@recorded
@pytest.mark.parametrize("id", [id for id, case in CASES.items() if case.get("expect_error")])
def test_what_cannot_be_scored_is_refused_with_a_code(id: str) -> None:
    with pytest.raises(DataError) as caught:
        computed(CASES[id])
    assert caught.value.code
    assert all(fault.code and fault.where for fault in caught.value.faults)


@recorded
@pytest.mark.parametrize(("id", "program"), RECORDED)
def test_each_programs_value_is_found_under_its_dialect(id: str, program: str) -> None:
    expected = CASES[id]["by"][program]["value"]
    found = computed(CASES[id], DIALECTS[program])
    if isinstance(expected, list):
        found, expected = list(found.values()), pytest.approx(expected, abs=1e-9)
    assert found == pytest.approx(expected, abs=1e-9) if not isinstance(found, list) else found == expected


@recorded
@pytest.mark.parametrize(("id", "program"), CRASHED)
def test_where_a_program_crashed_there_is_a_refusal_or_the_sensible_value(id: str, program: str) -> None:
    if program.startswith("nist") and SENSIBLE.keys() & {id, CASES[id]["metric"]}:
        assert isinstance(computed(CASES[id], DIALECTS[program]), float)
        return
    with pytest.raises(DataError) as caught:
        computed(CASES[id], DIALECTS[program])
    assert caught.value.code


@recorded
@pytest.mark.parametrize("id", [id for id, case in CASES.items() if "expected" in case])
@pytest.mark.parametrize("orders", [10, pytest.param(100, marks=pytest.mark.slow)])
@pytest.mark.slow
def test_no_order_of_rows_changes_the_value(id: str, orders: int) -> None:
    case = CASES[id]
    if case["metric"] == "precisionAtTopK":
        pytest.skip("it looks at the first rows")
    random = np.random.default_rng(0)
    expected = computed(case)
    for _ in range(orders):
        sides = {}
        for side in ("truth", "predictions"):
            order = random.permutation(len(case[side]["d3mIndex"])).tolist()
            sides[side] = {name: [cells[row] for row in order] for name, cells in case[side].items()}
        assert computed(case, **sides) == expected


def test_the_seeds_examples_give_what_is_printed() -> None:
    gt, pred = [0, 1, 2, 3, 4], [1, 3, 2, 4, 0]
    assert precision_at_top_K(gt, pred, K=3) == pytest.approx(2 / 3)
    assert precision_at_top_K(np.array(gt), np.array(pred), K=4) == 0.75
    boxes = {
        "image": ["img_00285.png"] * 6 + ["img_00225.png"] * 4,
        "bounding_box": [
            "330,463,387,505",
            "420,433,451,498",
            "328,465,403,540",
            "480,477,508,522",
            "357,460,417,537",
            "356,456,391,521",
            "345,460,415,547",
            "381,362,455,513",
            "382,366,416,422",
            "730,463,763,583",
        ],
    }
    sure = [0.0739, 0.0910, 0.1008, 0.1012, 0.1058, 0.0843, 0.0539, 0.0542, 0.0559, 0.0588]
    truth = {
        "image": ["img_00285.png"] * 2 + ["img_00225.png"] * 2,
        "bounding_box": ["480,457,515,529", "480,457,515,529", "522,540,576,660", "739,460,768,545"],
    }
    options: dict[str, Any] = {"targets": "bounding_box", "index": "image", "dialect": "3.1.1"}
    assert compute_metric("objectDetectionAP", truth, boxes | {"confidence": sure}, **options) == 0.125
    assert compute_metric("objectDetectionAP", truth, boxes, **options) == 0.0625
    rows = [[im, *map(int, box.split(","))] for im, box in zip(truth["image"], truth["bounding_box"], strict=True)]
    found = [[im, *map(int, box.split(","))] for im, box in zip(boxes["image"], boxes["bounding_box"], strict=True)]
    assert d3m.objectDetectionAP(found, rows)[2] == 0.0625


# Families of cases, as the recorded ones have them


def reference(metric: str, positive: Any) -> Callable[[Any, Any], float]:
    zero: dict[str, Any] = {"zero_division": 0}
    named: dict[str, Callable[[Any, Any], float]] = {
        "accuracy": sk.accuracy_score,
        "f1Micro": lambda t, p: sk.f1_score(t, p, average="micro"),
        "f1Macro": lambda t, p: sk.f1_score(t, p, average="macro"),
        "precision": lambda t, p: sk.precision_score(t, p, pos_label=positive, **zero),
        "recall": lambda t, p: sk.recall_score(t, p, pos_label=positive, **zero),
        "f1": lambda t, p: sk.f1_score(t, p, pos_label=positive, **zero),
        "jaccardSimilarityScore": lambda t, p: sk.jaccard_score(t, p, pos_label=positive, **zero),
        "hammingLoss": sk.hamming_loss,
        "normalizedMutualInformation": lambda t, p: sk.normalized_mutual_info_score(t, p),
    }
    return named[metric]


TWO = ["a", "a", "b", "a", "a", "b", "b", "b", "a", "b", "a", "a"]
MIXED = ["a", "a", "a", "b", "a", "b", "a", "a", "b", "b", "a", "b"]
THREE = ["a", "b", "a", "b", "c", "a", "a", "b", "a", "c", "c", "b"]
NEXT = {"a": "b", "b": "c", "c": "a"}
OF_TWO = {
    "perfect": TWO,
    "inverted": [{"a": "b", "b": "a"}[label] for label in TWO],
    "mixed": MIXED,
    "constant": ["a"] * 12,
    "never_positive": ["b"] * 12,
}
OF_THREE = {
    "perfect": THREE,
    "permuted": [NEXT[label] for label in THREE],
    "constant": ["a"] * 12,
    "extra_label": ["d", *THREE[1:]],
    "ok": ["a", "b", "a", "c", "a", "a", "a", "b", "b", "c", "c", "b"],
}
AVERAGES = ("accuracy", "f1Micro", "f1Macro", "hammingLoss", "normalizedMutualInformation")
OF_ONE = ("precision", "recall", "f1", "jaccardSimilarityScore")


def columns(cells: list[Any]) -> dict[str, list[Any]]:
    return {"d3mIndex": list(range(len(cells))), "y": cells}


@pytest.mark.parametrize("pattern", OF_TWO)
@pytest.mark.parametrize("type", [str, int])
@pytest.mark.parametrize("metric", [*AVERAGES, *OF_ONE])
def test_two_classes(metric: str, type: Any, pattern: str) -> None:
    truth, predictions = (
        [label if type is str else "ba".index(label) for label in labels] for labels in (TWO, OF_TWO[pattern])
    )
    for positive in (("a", "b") if type is str else (1, 0))[: 1 + (metric in OF_ONE)]:
        given = {"posLabel": positive} if metric in OF_ONE else {}
        expected = reference(metric, positive)(truth, predictions)
        for dialect in (None, "3.1.1", "core-2022", "sklearn"):
            if (metric, dialect) in (("jaccardSimilarityScore", "3.1.1"), ("normalizedMutualInformation", "core-2022")):
                continue
            found = compute_metric(metric, columns(truth), columns(predictions), targets="y", dialect=dialect, **given)
            if dialect is None and math.isnan(found):  # type: ignore[arg-type]
                assert metric == "precision"
                assert positive not in predictions
            else:
                assert found == pytest.approx(expected, abs=1e-12), dialect


@pytest.mark.parametrize("pattern", OF_THREE)
@pytest.mark.parametrize("metric", AVERAGES)
def test_several_classes(metric: str, pattern: str) -> None:
    predictions = OF_THREE[pattern]
    expected = reference(metric, None)(THREE, predictions)
    n_labels = len({*THREE, *predictions})
    others = {
        "hammingLoss": 2 * expected / n_labels,
        "normalizedMutualInformation": sk.normalized_mutual_info_score(THREE, predictions, average_method="geometric"),
    }
    for dialect in (None, "3.1.1", "core-2022", "sklearn"):
        found = compute_metric(metric, columns(THREE), columns(predictions), targets="y", dialect=dialect)
        wanted = others.get(metric, expected) if dialect == "core-2022" else expected
        assert found == pytest.approx(wanted, abs=1e-12), dialect


@pytest.mark.parametrize("dialect", ["3.1.1", "nist"])
def test_the_jaccard_similarity_of_single_labels_was_their_accuracy(dialect: str) -> None:
    for truth, predictions in ((THREE, OF_THREE["ok"]), (TWO, MIXED)):
        sides = columns(truth), columns(predictions)
        found = compute_metric("jaccardSimilarityScore", *sides, targets="y", dialect=dialect)
        assert found == pytest.approx(sk.accuracy_score(truth, predictions))


@pytest.mark.parametrize("average", ["micro", "macro"])
@pytest.mark.parametrize("pattern", ["perfect", "permuted", "ok"])
def test_areas_of_hard_labels(average: str, pattern: str) -> None:
    truth, predictions = (np.array([[c == label for c in "abc"] for label in x]) for x in (THREE, OF_THREE[pattern]))
    metric = f"rocAuc{average.title()}"
    sides = columns(THREE), columns(OF_THREE[pattern])
    expected = sk.roc_auc_score(truth, predictions, average=average)
    assert compute_metric(metric, *sides, targets="y", dialect="nist") == pytest.approx(expected, abs=1e-12)


NUMBERS = [0.5, 6, 2, 5.6]
PATTERNS = {
    "perfect": NUMBERS,
    "ok": [0.0, 7.2, 2.1, 4.7],
    "bad": [5435, -45, 45646, 34],
    "constant_mean": [3.525] * 4,
}


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("dialect", [None, "3.1.1", "core-2022", "nist", "sklearn"])
def test_numbers(pattern: str, dialect: str | None) -> None:
    predictions = PATTERNS[pattern]
    squared = sk.mean_squared_error(NUMBERS, predictions)
    expected = {
        "meanSquaredError": squared,
        "rootMeanSquaredError": math.sqrt(squared),
        "meanAbsoluteError": sk.mean_absolute_error(NUMBERS, predictions),
        "rSquared": sk.r2_score(NUMBERS, predictions),
    }
    for metric, value in expected.items():
        found = compute_metric(metric, columns(NUMBERS), columns(predictions), targets="y", dialect=dialect)
        assert found == pytest.approx(value, rel=1e-12, abs=1e-12), metric


def test_several_targets_have_a_value_each_or_one_together() -> None:
    truth = {"d3mIndex": [1, 2, 16], "v1": [0.5, -1, 7], "v2": [1, 1, -6]}
    predictions = {"d3mIndex": [1, 2, 16], "v2": [2, 2, -5], "v1": [0, -1, 8]}
    table = [[0.5, 1], [-1, 1], [7, -6]], [[0, 2], [-1, 2], [8, -5]]
    for metric, score in {
        "meanSquaredError": sk.mean_squared_error,
        "meanAbsoluteError": sk.mean_absolute_error,
        "rSquared": sk.r2_score,
    }.items():
        each = compute_metric(metric, truth, predictions, targets=["v1", "v2"])
        expected = score(*table, multioutput="raw_values")
        assert each == pytest.approx(dict(zip(("v1", "v2"), expected, strict=True)))
        options: dict[str, Any] = {"targets": ["v1", "v2"], "applicability_to_target": "allTargets"}
        for dialect in (None, "3.1.1", "core-2022", "nist"):
            together = compute_metric(metric, truth, predictions, dialect=dialect, **options)
            assert together == pytest.approx(score(*table))


@pytest.mark.parametrize("make", [pd.DataFrame, pa.table, dict])
def test_columns_are_a_mapping_a_frame_or_a_table(make: Any) -> None:
    truth, predictions = make(columns(TWO)), make(columns(MIXED))
    found = compute_metric("f1", truth, predictions, targets="y", posLabel="a")
    assert found == pytest.approx(sk.f1_score(TWO, MIXED, pos_label="a"))


@pytest.mark.parametrize(
    ("predictions", "codes"),
    [
        ({"d3mIndex": [1, 2, 3, 4], "y": list("abab")}, ("extra_row",)),
        ({"d3mIndex": [1, 2, 3, 3], "y": list("abaa")}, ("duplicate_label",)),
        ({"id": [1, 2, 3], "y": list("aba")}, ("missing_column", "unexpected_column")),
        ({"d3mIndex": [], "y": []}, ("no_rows",)),
        ({"d3mIndex": [1, 2, 3], "y": ["a", None, "b"]}, ("empty_value",)),
        ({"d3mIndex": [1, 2, 3], "y": ["a", "b"]}, ("ragged_row",)),
        ({"d3mIndex": [1, 2, 3], "y": ["a", 1, "b"]}, ("wrong_type",)),
        (pd.DataFrame([[1, "a", "b"]], columns=["d3mIndex", "y", "y"]), ("twice_column",)),
    ],
)
def test_tables_that_do_not_fit_are_refused(predictions: Any, codes: tuple[str, ...]) -> None:
    with pytest.raises(DataError) as caught:
        compute_metric("accuracy", {"d3mIndex": [1, 2, 3], "y": list("aba")}, predictions, targets="y")
    assert caught.value.codes == codes


def test_the_area_of_one_class_is_refused_with_its_reason() -> None:
    both = {"d3mIndex": [1, 1, 2, 2], "y": ["p", "n"] * 2, "confidence": [0.9, 0.1, 0.3, 0.7]}
    with pytest.raises(DataError, match=r"rocAuc of y: all truths are 'p'") as caught:
        compute_metric("rocAuc", {"d3mIndex": [1, 2], "y": ["p", "p"]}, both, targets="y")
    assert caught.value.code == "cannot_be_scored"


def test_calls_that_are_none_are_refused() -> None:
    sides = columns(TWO), columns(MIXED)
    with pytest.raises(SpecError, match="must be 'singleTarget' or 'allTargets'"):
        compute_metric("accuracy", *sides, targets="y", applicability_to_target="all")
    with pytest.raises(SpecError, match="has no parameter 'poslabel' \\(did you mean 'posLabel'\\?\\)"):
        compute_metric("f1", *sides, targets="y", poslabel="a")
    with pytest.raises(DataError, match="K is 0; give an integer"):
        compute_metric("precisionAtTopK", *sides, targets="y", K=0)
    with pytest.raises(DataError, match="there is no metric 'f1macro'"):
        compute_metric("f1macro", *sides, targets="y")
    with pytest.raises(SpecError, match="truth is list; give columns"):
        compute_metric("accuracy", TWO, MIXED, targets="y")
    assert set(METRICS) >= {"accuracy", "hitsAtK"}
    assert not hasattr(d3m, "nothing")
