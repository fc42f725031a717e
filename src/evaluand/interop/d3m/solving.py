"""Solves a problem with an estimator: writes its predictions and scores where the problem expects them."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from evaluand.core.errors import DataError, SpecError, TaskError
from evaluand.core.files.cells import TYPES, typed
from evaluand.core.files.csv import write_table
from evaluand.core.files.paths import require_within
from evaluand.data.dataset import Dataset
from evaluand.data.split import Folds
from evaluand.interop.d3m.checks import declared_layout
from evaluand.interop.d3m.folder import ProblemFolder, open_folder
from evaluand.interop.d3m.format import D3MFormat
from evaluand.predictions.problem.layout import BY_CLASS, FileLayout, reads_of
from evaluand.predictions.problem.parts import scoring_faults
from evaluand.predictions.problem.sides import CONFIDENCE
from evaluand.predictions.result import SystemScores
from evaluand.predictions.scoring import score, write_scores_file
from evaluand.run.runner import Runner
from evaluand.run.tasks.estimator import EstimatorTask
from evaluand.store.store import MemoryStore, Store
from evaluand.store.tables import COMPLETED, SKIPPED


def solve(
    problem: str | os.PathLike[str] | ProblemFolder,
    estimator: Any,
    *,
    definition: str | None = None,
    layout: str = "3.1.1",
    seed: int = 0,
    force: bool = False,
    store: Store | None = None,
) -> SystemScores:
    """Fits an estimator on each part of a problem's split, and writes its predictions and their scores.

    Where the split has several repeats or folds, each has its own file, such as `predictions_repeat0_fold1.csv`. Where
    the problem has areas under ROC curves or another metric of probabilities, each class has a row with its probability
    as confidence.

    Args:
        problem: the folder, with the target values of all training rows.
        estimator: an object with fit and predict, or a function that makes one, as for `EstimatorTask`.
        definition: see `score`.
        layout: of scores.csv.
        seed: of the estimator's random states.
        force: whether to replace existing files.
        store: where the run is stored; in memory if not given.

    Raises:
        DataError: not even perfect predictions could be scored.
        SpecError: a file exists already, or estimator and problem do not fit together.
        TaskError: the estimator failed.

    Example:
        >>> from sklearn.dummy import DummyClassifier
        >>> solve("185_baseball", DummyClassifier()).rows[0].value  # doctest: +SKIP
        0.31...
    """
    folder = problem if isinstance(problem, ProblemFolder) else open_folder(problem)
    data, folds = folder.dataset(), folder.folds()
    parts = [(r, f) for r in range(len(folds.numbers)) for f in range(folds.count) if len(folds.test(r, f))]
    place = folder.predictions_path
    files = {part: require_within(_file(place, part, len(parts)), folder.root) for part in parts}
    _check_new([*files.values(), folder.scores_path], force)
    truth, findings = D3MFormat().read_truth(folder, None, None)
    findings.check()
    assert truth is not None  # else there are faults
    faults = [*scoring_faults(truth, definition)]
    if faults:
        raise DataError(faults)
    columns = declared_layout(folder.problem, folder.resource())
    answers = _answers(data, folds, estimator, seed, store)
    for (repeat, fold), path in files.items():
        rows = folds.test(repeat, fold).tolist()
        write_table(_table(folder, columns, rows, [answers[repeat, place] for place in rows]), path)
    scores = score(folder, [*files.values()], definition=definition)
    write_scores_file(scores, folder.scores_path, layout, force=force)
    return scores


def _file(place: Path, part: tuple[int, int], parts: int) -> Path:
    return place if parts == 1 else place.with_name(f"{place.stem}_repeat{part[0]}_fold{part[1]}{place.suffix}")


def _check_new(files: Sequence[Path], force: bool) -> None:
    if files[-1] in files[:-1]:
        raise SpecError(f"{files[-1]}: is named for both predictions and scores; name different files")
    existing = [str(path) for path in files if path.exists()]
    if existing and not force:
        raise SpecError(f"{', '.join(existing[:3])}: exists already; move it, or give force=True")


def _answers(data: Dataset, folds: Folds, estimator: Any, seed: int, store: Store | None) -> dict[tuple[int, int], Any]:
    """(repeat, position of the example) → the estimator's response."""
    run = Runner(store or MemoryStore()).run(EstimatorTask(estimator, folds), data, seed=seed)
    places = {index: place for place, index in enumerate(data.indices)}
    answers = {}
    for row in run:
        if row.status == COMPLETED and row.responses:
            answers[row.replication, places[row.index]] = row.responses[0]
        elif row.status != SKIPPED:
            message = (row.error or {}).get("message", "the estimator gave no answer")
            raise TaskError(f"repeat {row.replication}, fold {row.fold}: {message}")
    return answers


def _table(folder: ProblemFolder, layout: FileLayout, tested: Sequence[int], answers: Sequence[Any]) -> pa.Table:
    """The rows of a file of predictions."""
    targets = [*layout.targets]
    by_target = [answer if len(targets) > 1 else {targets[0]: answer} for answer in answers]
    rows = pa.array(tested, pa.int64())
    index = {name: values.take(rows) for name, values in folder.keys().columns.items()}
    if reads_of(*folder.problem.criteria) & BY_CLASS and len(targets) == 1:
        return _by_class(index, targets[0], layout, [answer[targets[0]] for answer in by_target])
    predicted = {name: _predictions([answer[name] for answer in by_target], layout.targets[name]) for name in targets}
    return pa.table({**index, **predicted})


def _by_class(index: Mapping[str, pa.Array], target: str, layout: FileLayout, answers: Sequence[Any]) -> pa.Table:
    """A row for each class of each example, with its probability."""
    if not all(isinstance(answer, Mapping) for answer in answers):
        raise SpecError(
            "the problem has a metric of probabilities, such as rocAuc, but the estimator has no predict_proba"
        )
    probabilities = [answer["probabilities"] for answer in answers]
    rows = pa.array([place for place, each in enumerate(probabilities) for _ in each], pa.int64())
    labels = pa.array([label for each in probabilities for label in each], pa.string())
    if layout.targets[target] in TYPES:
        labels = typed(labels, layout.targets[target], _refuse)
    confidence = pa.array([chance for each in probabilities for chance in each.values()], pa.float64())
    return pa.table(
        {**{name: values.take(rows) for name, values in index.items()}, target: labels, CONFIDENCE: confidence}
    )


def _refuse(row: int, message: str) -> None:
    raise SpecError(f"the estimator's class {message}")


def _predictions(answers: list[Any], kind: str) -> pa.Array:
    values = [answer["prediction"] if isinstance(answer, Mapping) else answer for answer in answers]
    return pa.array([str(value) for value in values] if kind == "text" else values)
