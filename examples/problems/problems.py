"""A worked problem of each type that has metrics: written as a folder of D3M, solved, and scored from its files.

    python examples/problems/problems.py build
    evaluand score build/wine

Where an estimator of scikit-learn solves the problem, `solve` writes predictions.csv and scores.csv; elsewhere
predictions.csv is written here. The data ship with scikit-learn or are drawn with a seed.
Needs scikit-learn and pandas: pip install 'evaluand[sklearn,pandas]'
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from sklearn.cluster import KMeans
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris, load_linnerud, load_wine
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from evaluand import Dataset
from evaluand.core.files.csv import write_table
from evaluand.data.split import Folds
from evaluand.interop.d3m.folder import ProblemFolder
from evaluand.interop.d3m.solving import solve
from evaluand.interop.d3m.write import write_folder
from evaluand.predictions.problem.problem import Criterion, Division, Problem, SubType, Target, TargetDataset, TaskType
from evaluand.predictions.result import SystemScores
from evaluand.predictions.scoring import score, write_scores_file

LOGISTIC = make_pipeline(StandardScaler(), LogisticRegression())


def binary(root: Path) -> SystemScores:
    """Classification of two classes, of which one is the positive one."""
    table = load_breast_cancer(as_frame=True)
    frame = table.frame.assign(target=table.target_names[table.target])
    metrics = [Criterion(metric="f1", positive="malignant"), Criterion(metric="accuracy")]
    folder = stated(root, "tumours", frame, ["target"], metrics, TaskType.CLASSIFICATION, SubType.BINARY)
    return solve(folder, LOGISTIC)


def multiclass(root: Path) -> SystemScores:
    """Classification of three classes, on three folds, twice: a file of predictions for each."""
    table = load_wine(as_frame=True)
    frame = table.frame.assign(target=table.target_names[table.target])
    division = Division(method="folds", folds=3, repeats=2, seed=1)
    metrics = [Criterion(metric="f1_macro"), Criterion(metric="f1_micro")]
    kinds = (TaskType.CLASSIFICATION, SubType.MULTI_CLASS)
    return solve(stated(root, "wine", frame, ["target"], metrics, *kinds, division=division), LOGISTIC)


def ranked_classes(root: Path) -> SystemScores:
    """Areas under ROC curves: a row of predictions for each class, with its probability as confidence."""
    frame = load_iris(as_frame=True).frame
    metrics = [Criterion(metric="roc_auc_macro"), Criterion(metric="roc_auc_micro")]
    kinds = (TaskType.CLASSIFICATION, SubType.MULTI_CLASS)
    return solve(stated(root, "iris", frame, ["target"], metrics, *kinds), LOGISTIC)


def multilabel(root: Path) -> SystemScores:
    """Classification with any number of labels: one row of a d3mIndex for each label."""
    draw = np.random.default_rng(1)
    x = draw.normal(size=(120, 3))
    has = x + draw.normal(scale=0.5, size=x.shape) > 0.3
    labels = [[name for name, has_it in zip(("calm", "loud", "old"), row, strict=True) if has_it] for row in has]
    data = Dataset.from_arrow(
        pa.table({"x0": x[:, 0], "x1": x[:, 1], "x2": x[:, 2], "labels": labels}),
        input=["x0", "x1", "x2"],
        expected="labels",
    )
    metrics = [Criterion(metric="f1_macro"), Criterion(metric="hamming_loss")]
    kinds = (TaskType.CLASSIFICATION, SubType.MULTI_LABEL)
    folder = stated(root, "music", data, ["labels"], metrics, *kinds)
    train, tested = folder.folds().train(0, 0), folder.folds().test(0, 0)
    said = np.stack([LogisticRegression().fit(x[train], y).predict(x[tested]) for y in has[train].T], axis=1)
    rows = [
        {"d3mIndex": int(place), "labels": label}
        for place, row in zip(tested, said, strict=True)
        for label in [name for name, has_it in zip(("calm", "loud", "old"), row, strict=True) if has_it] or [""]
    ]
    return filed(folder, rows)


def univariate(root: Path) -> SystemScores:
    """Regression of one number."""
    metrics = [Criterion(metric="root_mean_squared_error"), Criterion(metric="r_squared")]
    frame = load_diabetes(as_frame=True).frame
    folder = stated(root, "diabetes", frame, ["target"], metrics, TaskType.REGRESSION, SubType.UNIVARIATE)
    return solve(folder, Ridge())


def multivariate(root: Path) -> SystemScores:
    """Regression of three numbers: a value for each target, and one over all."""
    frame = load_linnerud(as_frame=True).frame
    metrics = [Criterion(metric="mean_absolute_error"), Criterion(metric="mean_absolute_error", jointly=True)]
    kinds = (TaskType.REGRESSION, SubType.MULTIVARIATE)
    targets = ["Weight", "Waist", "Pulse"]
    return solve(stated(root, "exercise", frame, targets, metrics, *kinds, version="3.1.1"), LinearRegression())


def clustering(root: Path) -> SystemScores:
    """Clusters held against species, whatever their numbers."""
    table = load_iris(as_frame=True)
    frame = table.frame.assign(target=table.target_names[table.target])
    metrics = [Criterion(metric="normalized_mutual_information")]
    folder = stated(root, "clusters", frame, ["target"], metrics, TaskType.CLUSTERING, SubType.NON_OVERLAPPING)
    return solve(folder, KMeans(3, n_init=5))


def links(root: Path) -> SystemScores:
    """Link prediction: for subject and relation a ranking of objects."""
    draw = np.random.default_rng(2)
    town, road = draw.integers(20, size=90), draw.integers(1, 4, size=90)
    frame = pd.DataFrame({"town": town, "road": road, "leads_to": (town + road) % 20})
    metrics = [Criterion(metric="hits_at_k", k=3), Criterion(metric="mean_reciprocal_rank")]
    folder = stated(root, "roads", frame, ["leads_to"], metrics, TaskType.LINK_PREDICTION)
    rows = []
    for place in folder.folds().test(0, 0):
        away = (np.arange(20) - town[place] - road[place] + 10) % 20 - 10
        order = np.argsort(np.abs(away) + draw.gumbel(scale=0.8, size=20))[:5]
        rows += [{"d3mIndex": int(place), "leads_to": int(o), "rank": rank} for rank, o in enumerate(order, 1)]
    return filed(folder, rows)


def forecasting(root: Path) -> SystemScores:
    """The last fifth of a series from what was seen a week and a year before."""
    draw = np.random.default_rng(3)
    day = np.arange(500.0)
    sold = 20 + 0.02 * day + 5 * np.sin(day * 2 * np.pi / 7) + draw.normal(size=500)
    frame = pd.DataFrame({"day": day, "week_before": np.roll(sold, 7), "sold": sold}).iloc[7:].reset_index(drop=True)
    last = Folds(np.where(np.arange(len(frame)) < 400, -1, 0).astype(np.int32)[None], 1)
    metrics = [Criterion(metric="mean_absolute_error"), Criterion(metric="root_mean_squared_error")]
    return solve(stated(root, "sales", frame, ["sold"], metrics, TaskType.FORECASTING, folds=last), LinearRegression())


def detection(root: Path) -> SystemScores:
    """Boxes in images: any number of rows for each image, with a confidence."""
    draw = np.random.default_rng(4)
    boxes = [[[*corner, *(corner + size)] for corner, size in zip(*drawn_boxes(draw), strict=True)] for _ in range(40)]
    images = [f"image{number}.png" for number in range(len(boxes))]
    held = pa.array(boxes, pa.list_(pa.list_(pa.float64())))
    data = Dataset.from_arrow(pa.table({"image": images, "box": held}), input="image", expected="box")
    metrics = [Criterion(metric="object_detection_average_precision")]
    folder = stated(root, "boxes", data, ["box"], metrics, TaskType.OBJECT_DETECTION)
    rows = []
    for place in folder.folds().test(0, 0):
        for box in boxes[place]:
            found = np.asarray(box) + draw.normal(scale=12, size=4)
            confidence = draw.beta(4, 2)
            rows.append(
                {"d3mIndex": int(place), "box": ",".join(f"{side:.1f}" for side in found), "confidence": confidence}
            )
    return filed(folder, rows)


def drawn_boxes(draw: np.random.Generator) -> tuple[Any, Any]:
    count = draw.integers(1, 4)
    return draw.integers(0, 200, size=(count, 2)).astype(float), draw.integers(40, 90, size=(count, 2)).astype(float)


ALL: Sequence[Callable[[Path], SystemScores]] = (
    binary,
    multiclass,
    ranked_classes,
    multilabel,
    univariate,
    multivariate,
    clustering,
    links,
    forecasting,
    detection,
)


def stated(
    root: Path,
    name: str,
    data: Dataset | pd.DataFrame,
    targets: list[str],
    metrics: list[Criterion],
    task: TaskType,
    *kinds: SubType,
    division: Division | None = None,
    folds: Folds | None = None,
    version: str = "4.1.1",
) -> ProblemFolder:
    """A problem written as a folder, and read again."""
    named = [Target(index=i, resource="learningData", column=0, name=target) for i, target in enumerate(targets)]
    problem = Problem(
        id=f"{name}_problem",
        task_types=(task,),
        sub_types=kinds,
        datasets=(TargetDataset(id=f"{name}_dataset", targets=tuple(named)),),
        division=division or Division(test=None if folds else 0.3, stratified=False, seed=1),
        criteria=tuple(metrics),
    )
    if isinstance(data, pd.DataFrame):
        data = Dataset.from_pandas(data, expected=targets if len(targets) > 1 else targets[0])
    return write_folder(root / name, problem, data, folds, version=version)


def filed(folder: ProblemFolder, rows: list[dict[str, Any]]) -> SystemScores:
    """Predictions written to their file, and scored from it."""
    write_table(pa.Table.from_pylist(rows), folder.predictions_path)
    scores = score(folder)
    write_scores_file(scores, folder.scores_path)
    return scores


if __name__ == "__main__":
    for work in ALL:
        scores = work(Path(sys.argv[1]))
        for row in (row for row in scores.rows if not row.by):
            value = f"{row.value:.4f}" + (f", {row.reason}" if row.reason else "")
            print(f"{work.__name__:<15} {row.metric:<28} {row.target or 'all':<10} {value}")
