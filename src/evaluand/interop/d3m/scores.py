"""Predictions of a problem scored from files: what is read, checked, judged, and written as scores.csv.

Which rows are tested tells the problem's split; what is right, its `targets.csv` or its learning table, or a file that
is named. Nothing is scored before everything was found to be in order.
"""

from __future__ import annotations

import math
import os
import re
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evaluand import ids
from evaluand.cells import typed
from evaluand.errors import DataError, Fault, SpecError
from evaluand.experiment import Results
from evaluand.interop.d3m.dataset import SHOWN, Resource, examine_dataset, gathered_positions, write_csv
from evaluand.interop.d3m.folder import DATASET, ProblemFolder, below, examine_folder, learning
from evaluand.interop.d3m.kept import Rows, keep
from evaluand.interop.d3m.names import COLUMN_TYPES, METRICS
from evaluand.interop.d3m.predictions import (
    CONFIDENCE,
    RANK,
    Cells,
    Form,
    cell_fault,
    check_rows,
    header_in,
    read_at_once,
    read_predictions,
    read_truth,
)
from evaluand.interop.d3m.problem import SPLITS_FILE, examine_problem
from evaluand.interop.d3m.reading import Findings
from evaluand.interop.d3m.splits import Keys, examine_splits
from evaluand.metric import Metric
from evaluand.problem import STANDARD_METRICS, Criterion, Problem, SubType, TaskType
from evaluand.scoring import Judgement, Reads, judge
from evaluand.split import NOT_TESTED, Folds
from evaluand.store import Store

_Mask = np.ndarray[Any, np.dtype[np.bool_]]
Layout = Literal["3.1.1", "4"]
LAYOUTS: Final = ("3.1.1", "4")

_INDEX: Final = "d3mIndex"
_OF_NUMBERS: Final = frozenset(
    {
        "mean_squared_error",
        "root_mean_squared_error",
        "root_mean_squared_error_mean",
        "mean_absolute_error",
        "r_squared",
    }
)
_OF_ANSWERS: Final = frozenset({"mean_reciprocal_rank", "hits_at_k"})
OF_SCORES: Final = frozenset({"roc_auc", "roc_auc_micro", "roc_auc_macro"})
_OF_BOXES: Final = "object_detection_average_precision"
_NUMBERED: Final = {"repeat": re.compile(r"(?:repeat|rep)[_-]?(\d+)"), "fold": re.compile(r"fold[_-]?(\d+)")}
_WORDS: Final = {name: word for word, name in METRICS.items()}
_CLASSES: Final = frozenset({TaskType.CLASSIFICATION, TaskType.VERTEX_CLASSIFICATION, TaskType.VERTEX_NOMINATION})
_UPPER: Final = {
    "jaccard_similarity": "JACCARD_SIMILARITY_SCORE",
    "root_mean_squared_error_mean": "ROOT_MEAN_SQUARED_ERROR_AVG",
}


@dataclass(frozen=True, kw_only=True)
class Score:
    """A metric of one target over one part of the tested rows.

    Attributes:
        metric: as the problem's document calls it.
        target: None where all are judged together.
        k: of the criterion.
        positive: of the criterion.
        repeat: which repeat of the split.
        fold: which fold of it.
        n: how many rows were judged.
        value: NaN where it is undefined.
        low: where the interval begins; NaN where there is none.
        high: where it ends.
        reason: why the value is undefined, or has no interval.
        kind: the metric as evaluand calls it.
        signature: the kind with its parameters.
        definition: which of the public definitions it follows.
        predictions: the file that was scored.
        predictions_digest: of the file's bytes.
    """

    metric: str
    target: str | None
    k: int | None
    positive: str | None
    repeat: int
    fold: int
    n: int
    value: float
    low: float
    high: float
    reason: str | None
    kind: str
    signature: str
    definition: str
    predictions: str
    predictions_digest: str


@dataclass(frozen=True, kw_only=True)
class Spread:
    """The values of a metric over the parts of a split; undefined ones are left out and counted."""

    metric: str
    target: str | None
    parts: int
    undefined: int
    mean: float
    deviation: float
    least: float
    most: float


@dataclass(frozen=True, kw_only=True)
class Part:
    """The rows of one fold of one repeat: what is right beside what was predicted.

    Attributes:
        repeat: which repeat.
        fold: which fold of it.
        truth: the rows that are tested, with what is right.
        predictions: the rows for them.
        cells: the file of these.
        truth_rows: which rows of the truth's file they are.
        prediction_rows: likewise of the predictions' file.
    """

    repeat: int
    fold: int
    truth: pa.Table
    predictions: pa.Table
    cells: Cells = field(repr=False)
    truth_rows: np.ndarray[Any, np.dtype[np.int64]] = field(repr=False)
    prediction_rows: np.ndarray[Any, np.dtype[np.int64]] = field(repr=False)

    @property
    def file(self) -> Path:
        """Where the predictions stand."""
        return self.cells.path


@dataclass(frozen=True, kw_only=True)
class Scores:
    """What predictions came to.

    Attributes:
        problem: what was to be predicted.
        rows: a score for each criterion and target of each part.
        notes: what is odd but was read.
        digests: of the problem's document and of the file with the truth.
        parts: the rows that were judged.
        form: what their columns are.
        metrics: what judged them, and what of the rows each of them reads.
    """

    problem: Problem
    rows: tuple[Score, ...]
    notes: tuple[Fault, ...]
    digests: Mapping[str, str]
    parts: tuple[Part, ...]
    form: Form
    metrics: tuple[tuple[Metric, Reads], ...]

    @property
    def spread(self) -> tuple[Spread, ...]:
        """Mean and spread over the parts; none where there is one part."""
        return tuple(_spread(self.rows)) if len(self.parts) > 1 else ()

    def table(self) -> pa.Table:
        """All that is known of each score, one row each."""
        told = {"problem": self.problem.id, **{f"{name}_digest": value for name, value in self.digests.items()}}
        records = [{**asdict(row), **told} for row in self.rows]
        numbers = {name: pa.float64() for name in ("value", "low", "high")}
        counts = {name: pa.int64() for name in ("k", "repeat", "fold", "n")}
        schema = pa.schema([(name, {**numbers, **counts}.get(name, pa.string())) for name in records[0]])
        for record in records:
            record |= {name: None for name in numbers if math.isnan(record[name])}
        return pa.Table.from_pylist(records, schema)

    def csv(self, layout: Layout = "3.1.1") -> pa.Table:
        """The scores as they stand in scores.csv; an undefined value is empty.

        Args:
            layout: `3.1.1`: index, problemID, metric, value; `4`: metric, value, normalized, randomSeed, fold.

        Raises:
            SpecError: there is no such layout.
        """
        if layout not in LAYOUTS:
            raise SpecError(f"scores are written in the layout {' or '.join(LAYOUTS)}, not {layout!r}")
        values = pa.array([None if math.isnan(row.value) else row.value for row in self.rows], pa.float64())
        if layout == "3.1.1":
            return pa.table(
                {
                    "index": pa.array(range(len(self.rows)), pa.int64()),
                    "problemID": pa.array([self.problem.id] * len(self.rows)),
                    "metric": pa.array([row.metric for row in self.rows]),
                    "value": values,
                }
            )
        seed = self.problem.division.seed if self.problem.division else None
        folds = 1 + max(row.fold for row in self.rows)
        return pa.table(
            {
                "metric": pa.array([_upper(row.metric) for row in self.rows]),
                "value": values,
                "normalized": pa.array([_normalized(row) for row in self.rows], pa.float64()),
                "randomSeed": pa.array([seed or 0] * len(self.rows), pa.int64()),
                "fold": pa.array([row.repeat * folds + row.fold for row in self.rows], pa.int64()),
            }
        )

    def save(self, store: Store, name: str) -> Results:
        """Keeps it in a store: as a dataset, a run of given predictions, its evaluation and its aggregation.

        Run and evaluation are called `NAME/predictions`, the aggregation `NAME`. What is there already stays.

        Args:
            store: where; `DirectoryStore()` is that of the command line.
            name: what it is called there.

        Raises:
            SpecError: targets are of several types, so that no one scorer reads them.
        """
        parts = [(part.repeat, part.fold, part.truth, part.predictions) for part in self.parts]
        rows = Rows(parts, self.form, [reads for _, reads in self.metrics])
        files = {str(part.file): None for part in self.parts}
        return keep(rows, self.metrics, store, name, {"problem": self.problem.id, "files": [*files], **self.digests})

    def write(self, path: str | os.PathLike[str], layout: Layout = "3.1.1", *, force: bool = False) -> None:
        """Writes scores.csv.

        Args:
            path: the file.
            layout: see `csv`.
            force: whether a file that is there is replaced.

        Raises:
            SpecError: the file is there, or there is no such layout.
        """
        if Path(path).exists() and not force:
            raise SpecError(f"{path}: is there already", python="give force=True", command="give --force")
        write_csv(self.csv(layout), path)


def score(
    problem: str | os.PathLike[str] | ProblemFolder,
    predictions: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] = (),
    truth: str | os.PathLike[str] | None = None,
    *,
    definition: str | None = None,
    part: str | None = None,
    intervals: bool = True,
) -> Scores:
    """Scores files of predictions by the metrics of their problem.

    Args:
        problem: the problem's folder, also one that is open, or its document.
        predictions: the file, or those of the repeats and folds, whose names then hold `repeat0`, `fold1` or both; the
            one that the problem names, or the numbered ones beside it, if not given.
        truth: a CSV file of index and targets, or a dataset; where the problem's folder has it, if not given.
        definition: the public definition that metrics follow where several are in use.
        part: TRAIN, TEST or SCORE, where each has documents of its own.
        intervals: whether values have intervals; without them large files are scored faster.

    Raises:
        DataError: anything is wrong with the files: every fault with its place and code.
        SpecError: what is asked for cannot be done: no truth, no predictions, no metric.

    Example:
        >>> [row.value for row in score("185_baseball").rows]  # doctest: +SKIP
        [0.691369766847508]
    """
    given = [predictions] if isinstance(predictions, str | os.PathLike) else [*predictions]
    task, findings = _task(problem, None if truth is None else Path(truth), part)
    findings.check()
    assert task is not None
    if not task.problem.criteria:
        raise SpecError(f"{task.document}: the problem has no metric; name one under performanceMetrics")
    files = _assigned([Path(path) for path in given] or _found(task), task)
    parts = [*_parts(files, task, findings)]
    findings.check()
    digests = {path: ids.digest_of_file(path) for path in files}
    judged = [(one, found) for one in parts for found in _judged(one, task, definition, 0.95 if intervals else None)]
    metrics = {found.made.signature: (found.made, found.reads) for _, found in judged}
    return Scores(
        problem=task.problem,
        rows=tuple(_score(found, one, digests[one.file]) for one, found in judged),
        notes=tuple(findings.notes),
        digests={
            "problem": ids.digest_of_file(task.document),
            "truth": ids.digest_of_file(task.truth.path),
        },
        parts=tuple(parts),
        form=task.form,
        metrics=tuple(metrics.values()),
    )


# What is to be scored


@dataclass(frozen=True)
class _Task:
    """A problem with what is right.

    Attributes:
        tested: (repeat, fold) → which rows of the truth are tested.
        known: the keys of all rows of the dataset; None where they are not known.
        place: where the problem says that predictions are.
    """

    problem: Problem
    document: Path
    form: Form
    truth: Cells
    tested: Mapping[tuple[int, int], _Mask]
    known: pa.Array | None
    place: Path


def _task(
    given: str | os.PathLike[str] | ProblemFolder, truth: Path | None, part: str | None
) -> tuple[_Task | None, Findings]:
    if isinstance(given, ProblemFolder):
        findings = Findings()
        return _of_folder(given, truth, findings), findings
    path = Path(given)
    if truth is not None and path.is_file():
        return _of_document(path, truth)
    folder, findings = examine_folder(path, part)
    findings.notes.clear()  # which `evaluand problem check` tells
    return (None if folder is None else _of_folder(folder, truth, findings)), findings


def _of_folder(folder: ProblemFolder, given: Path | None, findings: Findings) -> _Task | None:
    """A problem with its data; what is right is in a file given, in targets.csv, or in the learning table."""
    resource = folder.resource()
    form = _form(folder.problem, resource)
    path = given or folder.truth_path
    if path is None and folder.hidden:
        told = "target values are hidden, and there is no targets.csv"
        raise SpecError(f"{folder.root}: {told}", python="give truth", command="give --truth FILE")
    if path is None or not _is_csv(path):
        folded = (folder.datasets[0].folder or folder.root) / resource.path
        truth = _of_table(path, folded, folder.problem, form, findings)
    else:
        truth = read_truth(path, form, findings)
    if truth is None or findings.faults:
        return None
    keys = folder.keys()
    folds = folder.folds() if folder.problem.division is not None else None
    tested = _tested(truth, form, keys, folds, findings)
    known = keys.columns[form.key]
    return _Task(folder.problem, folder.document, form, truth, tested, known, folder.predictions_path)


def _of_document(document: Path, path: Path) -> tuple[_Task | None, Findings]:
    """A problem without its data, beside the truth: a file of all that is tested, or a dataset."""
    problem, findings = examine_problem(document)
    findings.notes.clear()
    if problem is None:
        return None, findings
    place = document.parent / problem.outputs.predictions
    if _is_csv(path):
        form, truth = _guessed(problem, path, findings)
        if form is None or truth is None or findings.faults:
            return None, findings
        return _Task(problem, document, form, truth, _tested(truth, form, None, None, findings), None, place), findings
    table, resource = _table_of(path, problem)
    form = _form(problem, resource)
    truth = read_truth(table, form, Findings())
    if truth is None:
        findings.fault(str(table), "cannot_be_scored", "has not the columns that its document tells")
        return None, findings
    keys = Keys({form.key: truth.keys(form)}, gathered_positions(truth.table.column(form.key)).to_numpy(), True)
    splits = document.parent / ((problem.division.file if problem.division else None) or SPLITS_FILE)
    folds = examine_splits(splits, keys, findings) if splits.is_file() else None
    tested = _tested(truth, form, keys, folds, findings)
    return _Task(problem, document, form, truth, tested, truth.keys(form), place), findings


def _is_csv(path: Path) -> bool:
    if not path.exists():
        raise DataError(Fault(str(path), "no such file", code="no_such_file"))
    return path.is_file() and path.name != DATASET


def _of_table(given: Path | None, table: Path, problem: Problem, form: Form, findings: Findings) -> Cells | None:
    """The truth from a learning table, whose untested rows may lack it."""
    if given is not None:
        table, _ = _table_of(given, problem)
    truth = read_truth(table, form, Findings())
    if truth is None:
        findings.fault(str(table), "cannot_be_scored", f"has not all of the columns {', '.join(form.columns)}")
    return truth


def _table_of(path: Path, problem: Problem) -> tuple[Path, Resource]:
    """The learning table of a dataset, which is given by its folder or its document."""
    found = path if path.is_file() else next(below(path, DATASET), None)
    if found is None:
        raise SpecError(f"{path}: there is no {DATASET} in this folder or below it")
    document, findings = examine_dataset(found)
    findings.check()
    resource = learning(document, problem.datasets[0])
    if resource is None or not resource.index:
        raise SpecError(f"{found}: there is no table to learn from that has an index")
    return found.parent / resource.path, resource


def _tested(
    truth: Cells, form: Form, keys: Keys | None, folds: Folds | None, findings: Findings
) -> dict[tuple[int, int], _Mask]:
    """Which rows of the truth are tested in each fold of each repeat; all of them where there is no split."""
    numbers = np.zeros((1, truth.table.num_rows), np.int32)
    if keys is not None and folds is not None:
        numbers = _numbers(truth, form, keys, folds, findings)
    used = (numbers >= 0).any(axis=0)
    for name in [form.key] if form.sets else form.columns:
        for row in np.flatnonzero(np.asarray(truth.table.column(name).is_null()) & used)[:SHOWN].tolist():
            findings.faults.append(
                cell_fault(truth, "empty_value", "a tested row has no value that is right", row, name)
            )
    parts = ((repeat, fold) for repeat in range(len(numbers)) for fold in range(numbers.max(initial=0) + 1))
    return {(r, f): mask for r, f in parts if (mask := numbers[r] == f).any()}


def _numbers(truth: Cells, form: Form, keys: Keys, folds: Folds, findings: Findings) -> np.ndarray[Any, Any]:
    """repeats × rows of the truth: the fold that tests a row, or -1."""
    wanted = truth.keys(form)
    there = keys.columns[form.key].cast(wanted.type)
    rows = pc.index_in(wanted, value_set=there, skip_nulls=True)
    unknown = np.asarray(pc.is_null(rows))
    for row in np.flatnonzero(unknown)[:SHOWN].tolist():
        told = f"the dataset has no row with the index {wanted[row]}"
        findings.faults.append(cell_fault(truth, "extra_row", told, row, form.key))
    tested = (folds.numbers[:, keys.positions] >= 0).any(axis=0)
    for row in np.flatnonzero(tested & ~np.asarray(pc.is_in(there, value_set=wanted)))[:SHOWN].tolist():
        told = f"the tested row {there[row]} is not in the truth"
        findings.faults.append(cell_fault(truth, "missing_row", told, None, form.key))
    numbers = folds.numbers[:, keys.positions[np.asarray(rows.fill_null(0))]]
    return np.where(unknown, NOT_TESTED, numbers)


# The form of the files


def form_of(folder: ProblemFolder) -> Form:
    """What files of predictions of a problem are made of."""
    return _form(folder.problem, folder.resource())


def _form(problem: Problem, resource: Resource) -> Form:
    """What files are made of, by the dataset's document."""
    declared = {column.name: COLUMN_TYPES[column.type] for column in resource.columns}
    index = tuple(column.name for column in resource.index)
    gathers = _OF_BOXES in _metrics(problem)
    key = resource.gathers.name if gathers and resource.gathers else index[0]
    several = "multiIndex" in resource.index[0].roles
    return _made_form(problem, index, key, declared, several=several)


def _guessed(problem: Problem, path: Path, findings: Findings) -> tuple[Form | None, Cells | None]:
    """A file with the truth, and what files are made of by it and by what the problem says."""
    try:
        header = header_in(path)
    except DataError as error:
        findings.faults += error.faults
        return None, None
    targets = [target.name for target in problem.datasets[0].targets]
    others = [name for name in header if name not in targets]
    if not others:
        findings.fault(str(path), "missing_column", "no column names the rows; there must be d3mIndex or such")
        return None, None
    index = [_INDEX if _INDEX in others else others[0]]
    beside = [name for name in others if name not in index]
    if _OF_BOXES in _metrics(problem) and beside:
        index.append("image" if "image" in beside else beside[0])

    def form(kinds: Mapping[str, str]) -> Form:
        return _made_form(problem, tuple(index), index[-1], kinds, several=False)

    numbered = form(dict.fromkeys(index, "integer"))
    truth = read_at_once(path, numbered)
    if truth is not None:
        return numbered, truth
    as_text = read_truth(path, form({}), Findings())
    kinds = {name: "integer" for name in index if as_text and _all_whole(as_text.table.column(name))}
    return form(kinds), read_truth(path, form(kinds), findings)


def _made_form(
    problem: Problem, index: tuple[str, ...], key: str, declared: Mapping[str, str], *, several: bool
) -> Form:
    metrics = _metrics(problem)
    targets = {target.name: _type(problem, declared.get(target.name)) for target in problem.datasets[0].targets}
    boxes = _OF_BOXES in metrics
    return Form(
        index=index,
        key=key,
        targets=targets,
        index_types={name: {"integer": "integer"}.get(declared.get(name, "text"), "text") for name in index},
        repeats=several or SubType.MULTI_LABEL in problem.sub_types or bool(metrics & _OF_ANSWERS),
        by_class=bool(metrics & OF_SCORES),
        gathers=boxes,
        sets=SubType.MULTI_LABEL in problem.sub_types,
        labels=bool(_CLASSES.intersection(problem.task_types)) and not boxes,
    )


def _type(problem: Problem, declared: str | None) -> str:
    """What the cells of a target are."""
    metrics = _metrics(problem)
    if _OF_BOXES in metrics:
        return "vector"
    numbers = {TaskType.REGRESSION, TaskType.FORECASTING}.intersection(problem.task_types)
    if metrics & _OF_NUMBERS or (declared is None and numbers and not metrics.intersection(STANDARD_METRICS)):
        return "real"
    return "text" if declared in (None, "time") else declared


def _metrics(problem: Problem) -> set[str]:
    return {criterion.metric for criterion in problem.criteria}


def _all_whole(texts: pa.ChunkedArray) -> bool:
    wrong: list[int] = []
    typed(texts.combine_chunks(), "integer", lambda row, message: wrong.append(row))
    return not wrong


# Files of predictions, and the parts that they are for


def _found(task: _Task) -> list[Path]:
    """The file where the problem says, else those beside it that are numbered."""
    if task.place.is_file():
        return [task.place]
    beside = sorted(task.place.parent.glob("*.csv"))
    numbered = [path for path in beside if path.stem.startswith(task.place.stem) and any(_numbers_in(path).values())]
    if not numbered:
        raise SpecError(
            f"{task.place}: there are no predictions", python="give predictions", command="give --predictions FILE"
        )
    return numbered


def _numbers_in(path: Path) -> dict[str, str | None]:
    """The numbers of repeat and fold in a file's name."""
    found = {name: pattern.search(path.stem.lower()) for name, pattern in _NUMBERED.items()}
    return {name: match[1] if match else None for name, match in found.items()}


def _assigned(files: Sequence[Path], task: _Task) -> dict[Path, list[tuple[int, int]]]:
    """Which parts each file is for; each part has one file."""
    found: dict[Path, list[tuple[int, int]]] = {}
    taken: dict[tuple[int, int], Path] = {}
    repeats = len({repeat for repeat, _ in task.tested})
    for path in files:
        named = {name: None if text is None else int(text) for name, text in _numbers_in(path).items()}
        if len(files) == 1 and len(task.tested) == 1:
            named = {"repeat": None, "fold": None}
        if repeats > 1 and named["repeat"] is None:
            raise SpecError(f"{path}: the split has {repeats} repeats; name a file for each, such as {_example(task)}")
        parts = [part for part in task.tested if _is_for(part, named)]
        if not parts:
            told = ", ".join(f"{name} {number}" for name, number in named.items() if number is not None)
            raise SpecError(f"{path}: the split has no {told}")
        for part in parts:
            if part in taken:
                raise SpecError(f"{path}: {taken[part]} is for repeat {part[0]}, fold {part[1]} too; give one of them")
            taken[part] = path
        found[path] = parts
    lacking = [part for part in task.tested if part not in taken]
    if lacking:
        repeat, fold = lacking[0]
        told = f"{len(lacking)} of {len(task.tested)} parts have no predictions, first repeat {repeat}, fold {fold}"
        raise SpecError(f"{told}; name their files such as {_example(task)}")
    return found


def _is_for(part: tuple[int, int], named: Mapping[str, int | None]) -> bool:
    return all(named[name] in (None, number) for name, number in zip(("repeat", "fold"), part, strict=True))


def _example(task: _Task) -> str:
    return f"{task.place.stem}_repeat0_fold0.csv"


def _parts(files: Mapping[Path, list[tuple[int, int]]], task: _Task, findings: Findings) -> Iterator[Part]:
    """The rows of each part, after all were held to what is tested."""
    for path, parts in files.items():
        given = read_predictions(path, task.form, findings)
        if given is None:
            continue
        tested = np.any([task.tested[part] for part in parts], axis=0)
        truth = _taken(task.truth.table, tested)
        check_rows(given, truth, task.known, task.form, findings)
        for part in parts:
            mine = np.ones(given.table.num_rows, bool)
            if len(parts) > 1:
                truth = _taken(task.truth.table, task.tested[part])
                own = truth.column(task.form.key).combine_chunks()
                mine = np.asarray(pc.is_in(given.keys(task.form), value_set=own))
            yield Part(
                repeat=part[0],
                fold=part[1],
                truth=truth,
                predictions=_taken(given.table, mine),
                cells=given,
                truth_rows=np.flatnonzero(task.tested[part]),
                prediction_rows=np.flatnonzero(mine),
            )


def _taken(table: pa.Table, mask: _Mask) -> pa.Table:
    return table if mask.all() else table.filter(pa.array(mask))


# Judging


def _judged(part: Part, task: _Task, definition: str | None, confidence: float | None) -> list[Judgement]:
    names = [task.form.key, *task.form.targets]
    beside = [name for name in (CONFIDENCE, RANK) if name in part.predictions.column_names]
    try:
        return judge(
            part.truth.select(names),
            part.predictions.select([*names, *beside]),
            task.problem.criteria,
            index=(task.form.key,),
            targets=[*task.form.targets],
            definition=definition,
            confidence_of_interval=confidence,
            several=True if SubType.MULTI_LABEL in task.problem.sub_types else None,
        )
    except DataError as error:
        raise DataError(_placed(fault, part, task.truth) for fault in error.faults) from None


def _placed(fault: Fault, part: Part, truth: Cells) -> Fault:
    """A fault of a row by the line of its file."""
    found = _ROW.fullmatch(fault.where)
    if found is None:
        return replace(fault, where=f"{part.file}: {fault.where}" if fault.where else str(part.file))
    side, row, column = found[1], int(found[2]) - 1, found[3]
    cells, rows = (truth, part.truth_rows) if side == "truth" else (part.cells, part.prediction_rows)
    return cell_fault(cells, fault.code, fault.message, int(rows[row]), column)


_ROW: Final = re.compile(r"(truth|predictions) row (\d+), column (.+)")


def _score(found: Judgement, part: Part, digest: str) -> Score:
    return Score(
        metric=_word(found.criterion),
        target=found.target,
        k=found.criterion.k,
        positive=found.criterion.positive,
        repeat=part.repeat,
        fold=part.fold,
        n=found.n,
        value=found.value,
        low=found.low,
        high=found.high,
        reason=found.reason,
        kind=found.metric,
        signature=found.signature,
        definition=found.definition,
        predictions=str(part.file),
        predictions_digest=digest,
    )


def _spread(rows: Sequence[Score]) -> Iterator[Spread]:
    gathered: dict[Any, list[Score]] = {}
    for row in rows:
        gathered.setdefault((row.metric, row.target, row.signature), []).append(row)
    for (metric, target, _), alike in gathered.items():
        values = [row.value for row in alike if not math.isnan(row.value)]
        yield Spread(
            metric=metric,
            target=target,
            parts=len(alike),
            undefined=len(alike) - len(values),
            mean=statistics.fmean(values) if values else math.nan,
            deviation=statistics.stdev(values) if len(values) > 1 else math.nan,
            least=min(values, default=math.nan),
            most=max(values, default=math.nan),
        )


# Words and figures of scores.csv


def _word(criterion: Criterion) -> str:
    return _WORDS.get(criterion.metric, criterion.metric)


def _upper(word: str) -> str:
    name = METRICS.get(word, word)
    return _UPPER.get(name, name.upper())


def _normalized(row: Score) -> float | None:
    """The value from 0, the worst, to 1, the best, as the layout of schema 4 has it; None where that is not known."""
    name = METRICS.get(row.metric)
    if math.isnan(row.value) or name is None:
        return None
    if name in _OF_NUMBERS:
        best = 1.0 if name == "r_squared" else 0.0
        return 2 / (1 + math.exp(min(abs(best - row.value), 700.0)))
    return 1 - row.value if name == "hamming_loss" else row.value
