"""Prediction files scored by the metrics of their problem: read, checked, judged, written and stored.

The problem's split says which rows are tested; the truth is in the problem's folder or in a file that is named. All
files are checked before anything is scored.

In a store, the rows of the truth are the examples, named by their index; the predictions are the responses. A repeat of
the split is a replication, in which rows that it does not test are skipped. Truth and predictions were aligned for
scoring; the aligned columns are stored as outputs of the run and as scores of the evaluation.
"""

from __future__ import annotations

import math
import os
import statistics
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from evaluand.aggregation.aggregator import Measure
from evaluand.comparison.comparing import Comparison, compare
from evaluand.core import identity, registry
from evaluand.core.errors import EvaluandWarning, Fault, SpecError
from evaluand.core.files.csv import write_table
from evaluand.core.key_columns import INDEX
from evaluand.data.columns import join_chunks
from evaluand.data.dataset import Dataset
from evaluand.evaluation.evaluator import KnownScores
from evaluand.evaluation.prediction_table import SCORER, PredictionColumns
from evaluand.metrics.base.metric import Metric
from evaluand.predictions.problem.definitions import Reads
from evaluand.predictions.problem.formats import OpenProblem, ProblemFormat, default_format, format_of
from evaluand.predictions.problem.judging import CriterionResult
from evaluand.predictions.problem.layout import FileLayout
from evaluand.predictions.problem.parts import JudgedPart, Part, assign_files, find_files, judge_part, read_parts
from evaluand.predictions.problem.problem import Problem
from evaluand.predictions.problem.reading import CONFIDENCE, PREDICTIONS, RANK, TRUTH
from evaluand.predictions.steps import FLIPS, Results, Steps
from evaluand.predictions.unsaved import ColumnStore
from evaluand.run.tasks.recorded import RecordedTask
from evaluand.store.store import MemoryStore, Store

_CONFIDENCE = 0.95


@dataclass(frozen=True, kw_only=True)
class Score:
    """The value of a metric for one target over one part of the tested rows.

    Attributes:
        system: the name of the system whose predictions were scored.
        metric: its name in the problem's document.
        target: None for all targets judged together.
        k: of the criterion.
        positive: of the criterion.
        n: the number of rows judged.
        value: NaN if undefined.
        low: lower end of the interval, NaN if there is none.
        high: upper end of the interval.
        reason: why the value is undefined, or has no interval.
        kind: the name of the metric in evaluand.
        signature: the kind with its parameters.
        definition: the public definition that it follows.
        predictions: the file that was scored.
        predictions_digest: of the file's bytes.
        data: further results of the metric, such as the cells of a confusion matrix.
    """

    system: str
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
    data: Any = None


@dataclass(frozen=True, kw_only=True)
class Spread:
    """The values of a metric over the parts of a split; undefined ones are left out and counted."""

    system: str
    metric: str
    target: str | None
    parts: int
    undefined: int
    mean: float
    deviation: float
    least: float
    most: float


@dataclass(frozen=True, kw_only=True, repr=False)
class Scores:
    """The scores of prediction files.

    Attributes:
        rows: a score for each criterion and target of each part of each system.
        notes: deviations that did not prevent scoring.
        digests: of the problem's document and of the truth file.
        systems: system → the parts of the tested rows, aligned with its predictions; the first is the baseline.
        metrics: the metrics, each with what it reads of the rows.
    """

    problem: Problem
    rows: tuple[Score, ...]
    notes: tuple[Fault, ...]
    digests: Mapping[str, str]
    systems: Mapping[str, Sequence[JudgedPart]]
    layout: FileLayout
    metrics: tuple[tuple[Metric, Reads], ...]
    format: ProblemFormat

    def __str__(self) -> str:
        return "\n".join(map(self._line, self.rows))

    def __repr__(self) -> str:
        return f"<Scores of {self.problem.id}: {'; '.join(map(self._line, self.rows))}>"

    def _line(self, row: Score) -> str:
        system = f"{row.system}: " if len(self.systems) > 1 else ""
        interval = "" if math.isnan(row.low) else f" [{row.low:.4g}, {row.high:.4g}]"
        part = f", repeat {row.repeat}, fold {row.fold}" if row.repeat or row.fold else ""
        return f"{system}{row.metric} of {row.target or 'all targets'}: {row.value:.6g}{interval}, n={row.n:,}{part}"

    @property
    def n_parts(self) -> int:
        """How many parts the split has."""
        return len(next(iter(self.systems.values())))

    @property
    def spread(self) -> tuple[Spread, ...]:
        """Mean and spread over the parts; none if there is one part."""
        return tuple(_spread(self.rows)) if self.n_parts > 1 else ()

    @cached_property
    def comparison(self) -> Comparison | None:
        """The differences of every two systems over the same rows; None if there is one system.

        Raises:
            SpecError: see `save`.
        """
        if len(self.systems) < 2:
            return None
        given = self._given
        if not given.is_plain:
            return self.save(MemoryStore(), "scores").comparison
        graded = ColumnStore().put(
            given.dataset(), given.scorer(), {name: given.columns(name) for name in self.systems}
        )
        with warnings.catch_warnings(action="ignore", category=EvaluandWarning):  # as `Steps.run` compares
            evaluations = [result.evaluation for result in graded if result.evaluation is not None]
            return compare(*evaluations, labels=[*self.systems], flips=FLIPS, declared=self._measures)

    @cached_property
    def _given(self) -> GivenRows:
        return GivenRows(self.systems, self.layout, {reads for _, reads in self.metrics})

    @property
    def _measures(self) -> list[Measure]:
        called: dict[str, dict[str, None]] = {}
        for row in self.rows:
            called.setdefault(row.signature, {})[row.metric] = None
        return [
            Measure(self._given.scorer_kind, metric, called=tuple(called.get(metric.signature, ())))
            for metric, _ in self.metrics
        ]

    def table(self) -> pa.Table:
        """Every score with all its attributes, one row each."""
        shared = {"problem": self.problem.id, **{f"{name}_digest": value for name, value in self.digests.items()}}
        records = [{**asdict(row), **shared} for row in self.rows]
        numbers = {name: pa.float64() for name in ("value", "low", "high")}
        counts = {name: pa.int64() for name in ("k", "repeat", "fold", "n")}
        schema = pa.schema([(name, {**numbers, **counts}.get(name, pa.string())) for name in records[0]])
        for record in records:
            record |= {name: None for name in numbers if math.isnan(record[name])}
            record["data"] = None if record["data"] is None else identity.encode(record["data"]).decode()
        return pa.Table.from_pylist(records, schema)

    def csv(self, layout: str | None = None) -> pa.Table:
        """The scores as a file in the problem's format; an undefined value is empty.

        Args:
            layout: one of `format.score_layouts`; the first if None.

        Raises:
            SpecError: there is no such layout, or there are several systems.
        """
        if len(self.systems) > 1:
            raise SpecError("a file of scores has those of one system; write the table of all values instead")
        return self.format.scores_table(self.rows, self.problem, layout or self.format.score_layouts[0])

    def save(self, store: Store, name: str) -> Results:
        """Stores the scores as a dataset, and for each system a run of recorded predictions with its evaluation.

        Runs and evaluations are called `NAME/SYSTEM`, their aggregation and their comparison `NAME`. Artifacts that are
        already stored stay, and the predictions are not graded a second time.

        Args:
            store: where; `DirectoryStore()` is the command line's.

        Raises:
            SpecError: targets have several types, so no single scorer can read them.
        """
        given = self._given
        files = dict.fromkeys(str(judged.part.file) for parts in self.systems.values() for judged in parts)
        origin = {"problem": self.problem.id, "files": [*files], **self.digests}
        tasks = {system: given.task(system) for system in self.systems}
        scorers = {given.scorer_kind: given.scorer()}
        steps = Steps(name, given.dataset(), tasks, scorers, self._measures, origin=origin)
        return steps.run(store, known_scores={system: given.known_scores(system) for system in self.systems})

    def write(self, path: str | os.PathLike[str], layout: str | None = None, *, force: bool = False) -> None:
        """Writes the file of scores.

        Args:
            layout: see `csv`.

        Raises:
            SpecError: the file exists, or see `csv`.
        """
        if Path(path).exists() and not force:
            raise SpecError(f"{path}: exists already", python="give force=True", command="give --force")
        write_table(self.csv(layout), path)


def score(
    problem: str | os.PathLike[str] | OpenProblem | Problem,
    predictions: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] = (),
    truth: str | os.PathLike[str] | None = None,
    *,
    definition: str | None = None,
    part: str | None = None,
    intervals: bool = True,
) -> Scores:
    """Scores prediction files by the metrics of their problem.

    Args:
        problem: the problem's folder or document, an open folder, or a problem stated in code.
        predictions: the file; or one for each repeat and fold, with `repeat0`, `fold1` or both in its name; or those of
            several systems, which are compared. By default the file that the problem names, or the numbered ones in
            the same folder.
        truth: a CSV file of index and targets, or a dataset; by default the truth in the problem's folder.
        definition: the public definition that metrics follow where several are in use.
        part: TRAIN, TEST or SCORE, where each has its own documents.
        intervals: whether to compute intervals; without them large files are scored faster.

    Raises:
        DataError: anything that the scores depend on is wrong: every fault with its place and code.
        SpecError: there is no truth, no prediction or no metric.

    Example:
        >>> [row.value for row in score("185_baseball").rows]  # doctest: +SKIP
        [0.691369766847508]
    """
    paths = [predictions] if isinstance(predictions, str | os.PathLike) else [*predictions]
    source = Path(problem) if isinstance(problem, str | os.PathLike) else problem
    chosen = format_of(source) if isinstance(source, Path) else default_format()
    task, findings = chosen.read_truth(source, None if truth is None else Path(truth), part)
    findings.check()
    assert task is not None  # else there are faults
    if not task.problem.criteria:
        raise SpecError(f"{task.document}: the problem has no metric; name one under performanceMetrics")
    systems = assign_files([Path(path) for path in paths] or find_files(task), task)
    task = task.for_files(path for files in systems.values() for path in files)
    parts = {name: [*read_parts(files, task, findings)] for name, files in systems.items()}
    findings.check()
    confidence = _CONFIDENCE if intervals else None
    judged = {name: [judge_part(part, task, definition, confidence) for part in parts[name]] for name in systems}
    results = [
        (name, each, result) for name, of_system in judged.items() for each in of_system for result in each.results
    ]
    metrics = {result.made_metric.signature: (result.made_metric, result.reads) for _, _, result in results}
    digests = {path: identity.digest_of_file(path) for files in systems.values() for path in files}
    notes = [
        replace(note, where=f"{each.part.file}: {note.where}") for _, each, result in results for note in result.notes
    ]
    return Scores(
        problem=task.problem,
        rows=tuple(_score(name, result, each.part, digests[each.part.file], chosen) for name, each, result in results),
        notes=tuple(dict.fromkeys([*findings.notes, *notes])),
        digests={
            "problem": identity.digest_of_file(task.document),
            "truth": identity.digest_of_file(task.cells.path),
        },
        systems=judged,
        layout=task.layout,
        metrics=tuple(metrics.values()),
        format=chosen,
    )


def _score(system: str, result: CriterionResult, part: Part, digest: str, format: ProblemFormat) -> Score:
    return Score(
        system=system,
        metric=format.metric_word(result.criterion.metric),
        k=result.criterion.k,
        positive=result.criterion.positive,
        repeat=part.repeat,
        fold=part.fold,
        kind=result.metric,
        predictions=str(part.file),
        predictions_digest=digest,
        **{name: getattr(result, name) for name in _OF_RESULT},
    )


_OF_RESULT: Final = ("target", "n", "value", "low", "high", "reason", "signature", "definition", "data")


def _spread(rows: Sequence[Score]) -> Iterator[Spread]:
    grouped: dict[Any, list[Score]] = {}
    for row in rows:
        grouped.setdefault((row.system, row.metric, row.target, row.signature), []).append(row)
    for (system, metric, target, _), group in grouped.items():
        values = [row.value for row in group if not math.isnan(row.value)]
        yield Spread(
            system=system,
            metric=metric,
            target=target,
            parts=len(group),
            undefined=len(group) - len(values),
            mean=statistics.fmean(values) if values else math.nan,
            deviation=statistics.stdev(values) if len(values) > 1 else math.nan,
            least=min(values, default=math.nan),
            most=max(values, default=math.nan),
        )


_TYPES: Final = {"text": "text", "time": "text", "integer": "integer", "real": "number", "boolean": "boolean"}


@dataclass(frozen=True, eq=False)
class GivenRows:
    """Truth and predictions of all parts, as a dataset, tasks and what a scorer would say of them.

    Args:
        systems: system → its parts.
        reads: what the metrics read of the rows.

    Raises:
        SpecError: targets have several types, so no single scorer reads them, or a reserved name.
    """

    systems: Mapping[str, Sequence[JudgedPart]]
    layout: FileLayout
    reads: set[Reads]

    def __post_init__(self) -> None:
        if INDEX in self.layout.targets:
            raise SpecError(f"a target called {INDEX!r} cannot be stored, since runs use this name; leave out --name")
        types = {_TYPES.get(kind, "json") for kind in self.layout.targets.values()}
        if self.scorer_kind == SCORER and not self._with_sets and len(types) > 1:
            listed = ", ".join(sorted(types))
            raise SpecError(f"targets of the types {listed} are not one run, so they cannot be stored or compared")

    @property
    def scorer_kind(self) -> str:
        """The kind of scorer that reads the rows, which is also its name."""
        return "detection" if "boxes" in self.reads else "ranking" if "ranking" in self.reads else SCORER

    @property
    def _with_sets(self) -> bool:
        return any(judged.aligned.with_sets for parts in self.systems.values() for judged in parts)

    @property
    def _type(self) -> str:
        return "labels" if self._with_sets else _TYPES.get(next(iter(self.layout.targets.values())), "json")

    @cached_property
    def _parts(self) -> Sequence[JudgedPart]:
        """Those of the first system, with the truth of all."""
        return next(iter(self.systems.values()))

    @cached_property
    def _targets(self) -> list[str]:
        """The targets that have values of their own: not the label of boxes."""
        return [*self._parts[0].aligned.boxes] if "boxes" in self.reads else [*self.layout.targets]

    @cached_property
    def _places(self) -> dict[Any, int]:
        """The place of each example by its index: sorted, or in the order of the files if a metric depends on that."""
        keys = pa.chunked_array([join_chunks(judged.part.truth.column(self.layout.key)) for judged in self._parts])
        unique = keys.unique()
        return {key: place for place, key in enumerate((unique if "rows" in self.reads else unique.sort()).to_pylist())}

    @property
    def is_plain(self) -> bool:
        """Whether each system is one table of one target, whose columns need not become rows."""
        is_one = len(self._parts) == len(self.layout.targets) == 1
        return is_one and self.scorer_kind == SCORER and self._type != "json" and "rows" not in self.reads

    def columns(self, system: str) -> PredictionColumns:
        """The columns of a system that is one table of one target."""
        return self._columns[id(self.systems[system][0]), self._targets[0]]

    def dataset(self) -> Dataset:
        """The truth of each example."""
        targets, key = self._targets, self.layout.key
        if self.is_plain:
            table = pa.table({key: pa.array([*self._places]), targets[0]: self.columns(next(iter(self.systems))).truth})
            return Dataset.from_arrow(table, id=key, input=key, expected=targets[0])
        truths: dict[Any, Mapping[str, Any]] = {}
        for judged in self._parts:
            truths |= zip(self._keys(judged), self._values(judged, TRUTH), strict=True)
        records = [{key: each, **truths[each]} for each in self._places]
        expected = targets[0] if len(targets) == 1 else {target: target for target in targets}
        return Dataset.from_rows(records, id=key, input=key, expected=expected)

    def task(self, system: str) -> RecordedTask:
        """The predictions of a system as the outputs of a task."""
        if self.is_plain:
            return RecordedTask.from_texts(system, self.columns(system).output_texts)
        outputs: dict[tuple[int, int], bytes] = {}
        folds: dict[tuple[int, int], int] = {}
        for judged in self.systems[system]:
            for key, values in zip(self._keys(judged), self._values(judged, PREDICTIONS), strict=True):
                row = judged.part.repeat, self._places[key]
                outputs[row] = identity.encode(values if len(values) > 1 else next(iter(values.values())))
                folds[row] = judged.part.fold
        return RecordedTask.from_outputs(system, outputs, folds if len({*folds.values()}) > 1 else {})

    def scorer(self) -> Any:
        """The scorer that grades the outputs."""
        kind = registry.find("scorers", self.scorer_kind)
        return kind(type=self._type) if self.scorer_kind == SCORER else kind()

    def known_scores(self, system: str) -> KnownScores:
        """The scores of all rows of a system, from the aligned columns; none for boxes and rankings."""
        if self.scorer_kind != SCORER:
            return {}
        if self.is_plain:
            return {SCORER: self.columns(system).scored_rows()}
        several = len(self._targets) > 1
        records: dict[tuple[int, int], list[list[Any]]] = {}
        for judged in self.systems[system]:
            keys = self._keys(judged)
            for name in self._targets:
                for (row, _), [[number, _, *score]] in self._columns[id(judged), name].scored_rows().records():
                    place = self._places[keys[row]], judged.part.repeat
                    records.setdefault(place, []).append([number, name if several else None, *score])
        complete = (key for key in sorted(records) if len(records[key]) == len(self._targets))
        return {SCORER: [(key, records[key]) for key in complete]}

    @cached_property
    def _columns(self) -> dict[tuple[int, str], PredictionColumns]:
        """The columns of each part, by its identity in memory, and target."""
        return {
            (id(judged), target): judged.aligned.prediction_columns(target, self._type)
            for parts in self.systems.values()
            for judged in parts
            for target in self._targets
        }

    def _keys(self, judged: JudgedPart) -> list[Any]:
        """The index of each example of a part, sorted."""
        return join_chunks(judged.part.truth.column(self.layout.key)).unique().sort().to_pylist()  # type: ignore[no-any-return]

    def _values(self, judged: JudgedPart, side: str) -> Iterator[dict[str, Any]]:
        """Of each example of a part its true or predicted value for each target."""
        if self.scorer_kind == SCORER:
            columns = {name: self._columns[id(judged), name] for name in self._targets}
            values = [each.truths() if side == TRUTH else each.outputs() for each in columns.values()]
            return (dict(zip(columns, row, strict=True)) for row in zip(*values, strict=True))
        by_key: dict[Any, list[Mapping[str, Any]]] = {key: [] for key in self._keys(judged)}
        for row in (judged.part.truth if side == TRUTH else judged.part.predictions).to_pylist():
            if row[self.layout.key] in by_key:
                by_key[row[self.layout.key]].append(row)
        cell = self._box if "boxes" in self.reads else _answer if side == PREDICTIONS else _value
        return ({name: [cell(row, name) for row in rows] for name in self._targets} for rows in by_key.values())

    def _box(self, row: Mapping[str, Any], target: str) -> Any:
        labels = [row[name] for name in self.layout.targets if name not in self._targets]
        given = {"box": row[target], "label": next(iter(labels), None), CONFIDENCE: row.get(CONFIDENCE)}
        return {key: value for key, value in given.items() if value is not None}


def _value(row: Mapping[str, Any], target: str) -> Any:
    return row[target]


def _answer(row: Mapping[str, Any], target: str) -> Any:
    return {"answer": row[target], "rank": row[RANK]}
