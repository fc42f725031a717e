"""Arrays with a column for each class or label give the numbers of scikit-learn, and names where columns have none."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from scipy import sparse
from sklearn import metrics

from evaluand import MemoryStore, SpecError, evaluate

GENERATOR = np.random.default_rng(5)
THREE = GENERATOR.integers(0, 3, 60)
CHANCES = np.round(0.4 * np.eye(3)[THREE] + 0.6 * GENERATOR.dirichlet(np.ones(3), 60), 6)
CHANCES[:, 2] = 1 - CHANCES[:, 0] - CHANCES[:, 1]
NAMES = np.array(["cat", "dog", "owl"])
LABELS = GENERATOR.integers(0, 2, (40, 4))
FOUND = np.where(GENERATOR.random((40, 4)) < 0.8, LABELS, 1 - LABELS)
LABEL_SCORES = np.clip(LABELS * 0.4 + GENERATOR.random((40, 4)) * 0.6, 0, 1)


@pytest.mark.parametrize(
    ("truth", "chances", "classes"),
    [
        (THREE, CHANCES, None),
        (THREE.reshape(-1, 1), np.asarray(CHANCES, order="F"), [0, 1, 2]),
        (NAMES[THREE], CHANCES, None),
        (NAMES[THREE], CHANCES, NAMES),
        (pd.Series(NAMES[THREE]), pd.DataFrame(CHANCES, columns=NAMES), None),
        (pd.Series(NAMES[THREE]), pd.DataFrame(CHANCES), None),
        (NAMES[THREE].tolist(), pa.table(dict(zip(NAMES, CHANCES.T, strict=True))), None),
    ],
    ids=["numbers", "column", "text", "classes", "frame", "unnamed frame", "table"],
)
def test_probabilities_of_classes_are_predictions_and_scores(truth: Any, chances: Any, classes: Any) -> None:
    result = evaluate(truth, chances, metrics=["acc", "auc", "log_loss", "f1_macro"], classes=classes)
    highest = CHANCES.argmax(axis=1)
    assert result["acc"].value == metrics.accuracy_score(THREE, highest)
    assert result["auc"].value == pytest.approx(metrics.roc_auc_score(THREE, CHANCES, multi_class="ovr"), abs=1e-12)
    assert result["log_loss"].value == pytest.approx(metrics.log_loss(THREE, CHANCES), abs=1e-12)
    assert result["f1_macro"].value == pytest.approx(metrics.f1_score(THREE, highest, average="macro"), abs=1e-12)


@pytest.mark.parametrize("convert", [np.asarray, list, pd.Series, lambda chance: np.column_stack([1 - chance, chance])])
def test_one_column_of_scores_is_that_of_the_positive_class(convert: Any) -> None:
    truth, chance = (THREE > 0).astype(int), CHANCES[:, 1]
    for scores in (chance, 10 * chance - 3):
        given = convert(scores) if scores is chance else scores
        result = evaluate(truth, (chance > 0.5).astype(int), metrics=["auc", "ap"], scores=given)
        assert result["auc"].value == pytest.approx(metrics.roc_auc_score(truth, scores), abs=1e-12)
        assert result["ap"].value == pytest.approx(metrics.average_precision_score(truth, scores), abs=1e-12)
    text = np.where(truth, "yes", "no")
    assert evaluate(text, text, metrics="auc", scores=chance, label="yes").rows[0].value == result["auc"].value
    assert evaluate(text, text, metrics="auc", scores=chance).rows[0].value == result["auc"].value
    with pytest.raises(
        SpecError, match=r"'scores' is the score of which class, 'cat' or 'dog'. Give label='cat', or scores=.'cat': …"
    ):
        evaluate(NAMES[truth], NAMES[truth], metrics="auc", scores=chance)


@pytest.mark.parametrize(
    ("truth", "predictions", "scores"),
    [
        (LABELS, FOUND, LABEL_SCORES),
        (LABELS.astype(bool), sparse.csr_matrix(FOUND), LABEL_SCORES),
        (LABELS, FOUND, [np.column_stack([1 - one, one]) for one in LABEL_SCORES.T]),
        *(
            [pd.DataFrame(cells, columns=list("abcd")) for cells in (LABELS, FOUND, LABEL_SCORES)],
            (pd.DataFrame(LABELS, columns=list("abcd")), FOUND, pd.DataFrame(LABEL_SCORES, columns=list("abcd"))),
        ),
    ],
    ids=["arrays", "sparse", "a forest's", "frames", "mixed"],
)
def test_indicators_are_sets_of_labels(truth: Any, predictions: Any, scores: Any) -> None:
    names = ["acc", "f1_micro", "f1_macro", "f1_samples", "jaccard_samples", "hamming_loss", "roc_auc"]
    result = evaluate(truth, predictions, metrics=names, scores=scores)
    assert result["acc"].value == metrics.accuracy_score(LABELS, FOUND)
    for average in ("micro", "macro", "samples"):
        expected = metrics.f1_score(LABELS, FOUND, average=average, zero_division=0)
        assert result[f"f1_{average}"].value == pytest.approx(expected, abs=1e-12)
    jaccard = metrics.jaccard_score(LABELS, FOUND, average="samples", zero_division=0)
    assert result["jaccard_samples"].value == pytest.approx(jaccard, abs=1e-12)
    assert result["hamming_loss"].value == pytest.approx(metrics.hamming_loss(LABELS, FOUND), abs=1e-12)
    assert result["roc_auc"].value == pytest.approx(metrics.roc_auc_score(LABELS, LABEL_SCORES), abs=1e-12)
    [saved] = result.save(MemoryStore(), "labels").tasks
    assert saved.run.counts == {"completed": 40}


def test_a_row_without_probabilities_has_no_prediction() -> None:
    chances = np.array([[0.2, 0.8], [np.nan, np.nan], [0.6, 0.4]])
    row = evaluate([1, 1, 0], chances)["accuracy"]
    assert (row.value, row.n_scored, row.n_abstained) == (1.0, 2, 1)


@pytest.mark.parametrize(
    ("truth", "predictions", "options", "message"),
    [
        (
            THREE,
            CHANCES[:, :2],
            {},
            "2 columns, and the truth 3 labels; name the labels of the columns",
        ),
        (THREE, CHANCES, {"classes": [0, 1]}, "predictions has 3 columns and classes 2; give one for each"),
        (
            THREE,
            CHANCES,
            {"scores": CHANCES},
            "has a column of scores for each class; give either these or scores",
        ),
        (LABELS, LABEL_SCORES, {}, "pass probabilities of labels as scores, with predictions such as"),
        (LABELS, FOUND[:, :3], {}, "predictions has 3 columns for 4 labels; give one for each"),
        (LABELS, LABELS[:, 0], {}, "truth has 4 columns of labels, and predictions one value for each row"),
        (LABELS * 2.5, FOUND, {}, "truth has several columns, and cells other than 0 and 1"),
        (CHANCES[:, 0], CHANCES, {}, "but truth holds real numbers; give one number a row"),
        ([["a"]] * 40, FOUND, {}, "predictions has columns without labels; name them, as in classes=['cat', 'dog']"),
    ],
)
def test_columns_that_fit_no_label_are_refused_in_a_sentence(
    truth: Any, predictions: Any, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(SpecError) as raised:
        evaluate(truth, predictions, **options)
    assert message in str(raised.value)
