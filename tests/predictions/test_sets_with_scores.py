"""Areas of problems whose examples have several labels, against scikit-learn's on indicator matrices."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sklearn.metrics as sk
from support.problem_scores import noted
from support.thinned import thinned

from evaluand.core.errors import DataError
from evaluand.interop.d3m import compute_metric
from evaluand.predictions.result import SystemScores
from evaluand.predictions.scoring import score
from evaluand.store.store import MemoryStore

AREAS = {"rocAuc": "macro", "rocAucMicro": "micro", "rocAucMacro": "macro"}


def drawn(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """An indicator matrix in which each label has both values, and scores with ties."""
    generator = np.random.default_rng(seed)
    n, k = int(generator.integers(4, 15)), int(generator.integers(2, 5))
    member = generator.random((n, k)) < 0.5
    member[0], member[1] = True, False
    return member, np.round(generator.random((n, k)), 1)


def columns(member: np.ndarray, scores: np.ndarray) -> tuple[dict[str, Any], dict[str, Any]]:
    n, k = member.shape
    pairs = [(i, f"l{j}") for i in range(n) for j in range(k) if member[i, j] or (j == 0 and not member[i].any())]
    truth = {"d3mIndex": [i for i, _ in pairs], "y": [label if member[i].any() else "" for i, label in pairs]}
    every = [(i, f"l{j}", scores[i, j]) for i in range(n) for j in range(k)]
    return truth, dict(zip(("d3mIndex", "y", "confidence"), map(list, zip(*every, strict=True)), strict=True))


@thinned("seed", [*range(4), *(pytest.param(i, marks=pytest.mark.slow) for i in range(4, 500))], every=4)
def test_areas_of_sets_equal_those_of_indicator_matrices(seed: int) -> None:
    member, scores = drawn(seed)
    truth, predictions = columns(member, scores)
    for metric, average in AREAS.items():
        expected = sk.roc_auc_score(member, scores, average=average)
        for dialect in (None, "3.1.1", "sklearn", *(["core-2022"] if metric != "rocAuc" else [])):
            found = compute_metric(metric, truth, predictions, targets="y", dialect=dialect)
            assert found == pytest.approx(expected, abs=1e-12)


def test_a_label_without_a_row_has_the_score_0() -> None:
    member, scores = drawn(3)
    truth, predictions = columns(member, scores)
    known = [i for i in range(len(predictions["y"])) if i % 3]
    fewer = {name: [cells[i] for i in known] for name, cells in predictions.items()}
    scores = scores.copy()
    scores.ravel()[::3] = 0
    expected = sk.roc_auc_score(member, scores, average="macro")
    assert compute_metric("rocAucMacro", truth, fewer, targets="y") == pytest.approx(expected, abs=1e-12)


def document(*metrics: str) -> dict[str, Any]:
    target = {"targetIndex": 0, "resID": "learningData", "colIndex": 1, "colName": "y"}
    keywords = ["classification", "multiLabel"]
    return {
        "about": {
            "problemID": "p", "problemName": "p", "taskKeywords": keywords, "problemSchemaVersion": "4.1.1"
        },
        "inputs": {
            "data": [{"datasetID": "d", "targets": [target]}],
            "performanceMetrics": [{"metric": metric} for metric in metrics],
        },
        "expectedOutputs": {},
    }  # fmt: skip


def scored(place: Path, truth: str, predictions: str, *metrics: str, definition: str | None = None) -> SystemScores:
    (place / "problemDoc.json").write_text(json.dumps(document(*metrics)))
    for name, text in (("targets.csv", truth), ("predictions.csv", predictions)):
        (place / name).write_text(text)
    files = (place / name for name in ("problemDoc.json", "predictions.csv", "targets.csv"))
    return score(*files, definition=definition)


TRUTH = "d3mIndex,y\n0,a\n0,b\n1,\n2,b\n"
PREDICTIONS = "d3mIndex,y,confidence\n0,a,.9\n0,b,.4\n1,a,.5\n1,b,.3\n2,a,.1\n2,b,.2\n"


def test_a_multilabel_problem_has_areas_which_are_stored_too(tmp_path: Path) -> None:
    scores = scored(tmp_path, TRUTH, PREDICTIONS, *AREAS)
    assert [row.value for row in scores.rows] == pytest.approx([0.75, 6 / 9, 0.75])
    assert scores.notes == []
    stored = scores.save(MemoryStore(), "mine")
    values = stored.aggregation.table().column("value").to_pylist()
    assert sorted(values) == pytest.approx([6 / 9, 0.75])


def test_the_truth_as_predictions_is_perfect_even_without_labels(tmp_path: Path) -> None:
    perfect = "d3mIndex,y,confidence\n0,a,1\n0,b,1\n1,,1\n2,b,1\n"
    assert [row.value for row in scored(tmp_path, TRUTH, perfect, *AREAS).rows] == [1.0, 1.0, 1.0]


def test_a_multilabel_problem_stays_one_where_each_example_has_one_label(tmp_path: Path) -> None:
    scores = scored(tmp_path, "d3mIndex,y\n0,a\n1,b\n2,b\n", PREDICTIONS, "rocAuc")
    assert scores.rows[0].value == pytest.approx(
        sk.roc_auc_score([[1, 0], [0, 1], [0, 1]], [[0.9, 0.4], [0.5, 0.3], [0.1, 0.2]])
    )


def test_metrics_of_labels_note_that_they_do_not_read_confidences(tmp_path: Path) -> None:
    scores = scored(tmp_path, TRUTH, PREDICTIONS, "rocAucMacro", "hammingLoss")
    assert [note.code for note in noted(scores)] == ["confidence_not_read"]


@pytest.mark.parametrize("definition", ["core-2022", "nist"])
def test_the_area_of_two_classes_is_refused_where_programs_refuse_it(tmp_path: Path, definition: str) -> None:
    with pytest.raises(DataError, match="judges one label of each example, but here examples have several"):
        scored(tmp_path, TRUTH, PREDICTIONS, "rocAuc", definition=definition)


def test_the_top_of_core_2022_is_that_of_integer_parts() -> None:
    truth = {"d3mIndex": [0, 1, 2, 3], "y": [0.2, 3.0, 0.9, -2.5]}
    predictions = {"d3mIndex": [0, 1, 2, 3], "y": [5.0, 4.0, 1.0, 0.0]}
    tops = {d: compute_metric("precisionAtTopK", truth, predictions, targets="y", K=3, dialect=d)
            for d in ("core-2022", "nist")}  # fmt: skip
    assert tops == {"core-2022": 1.0, "nist": 1.0}
    predictions["y"] = [5.0, 4.0, 0.0, 1.0]
    truth["y"] = [0.9, 3.0, 0.2, 0.1]  # integers 0, 3, 0, 0: of equal ones the later rows come first
    tops = {d: compute_metric("precisionAtTopK", truth, predictions, targets="y", K=2, dialect=d)
            for d in ("core-2022", "nist")}  # fmt: skip
    assert tops == {"core-2022": 0.5, "nist": 1.0}


def test_a_ranking_without_any_right_answer_is_0_in_core_2022() -> None:
    truth = {"d3mIndex": [0, 1], "y": ["a", "b"]}
    wrong = {"d3mIndex": [0, 1], "y": ["x", "y"], "rank": [1, 1]}
    value = {d: compute_metric("meanReciprocalRank", truth, wrong, targets="y", dialect=d) for d in (None, "core-2022")}
    assert value == {None: 1 / 500, "core-2022": 0.0}
    half = wrong | {"y": ["a", "y"]}
    expected = pytest.approx((1 + 1 / 500) / 2)
    assert compute_metric("meanReciprocalRank", truth, half, targets="y", dialect="core-2022") == expected
