"""Prediction files scored by the metrics of their problem: read, checked, judged, written and stored.

The problem's split says which rows are tested; the truth is in the problem's folder or in a file that is named. Nothing
is scored before all files were checked.
"""

from __future__ import annotations

import math
import os
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from evaluand.core import identity
from evaluand.core.errors import Fault, SpecError
from evaluand.core.files.csv import write_table
from evaluand.experiment.experiment import Results
from evaluand.experiment.given_rows import GivenRows, store_rows
from evaluand.metrics.base.metric import Metric
from evaluand.problem.alignment import AlignedTables
from evaluand.problem.definitions import Reads
from evaluand.problem.formats import OpenProblem, ProblemFormat, default_format, format_of
from evaluand.problem.judge_parts import judge_part
from evaluand.problem.judging import CriterionResult
from evaluand.problem.layout import FileLayout
from evaluand.problem.parts import Part, assign_files, find_files, read_parts
from evaluand.problem.problem import Problem
from evaluand.store.store import Store

_CONFIDENCE = 0.95


@dataclass(frozen=True, kw_only=True)
class Score:
    """The value of a metric for one target over one part of the tested rows.

    Attributes:
        metric: as the problem's document calls it.
        target: None for all targets judged together.
        k: of the criterion.
        positive: of the criterion.
        n: the number of rows judged.
        value: NaN if undefined.
        low: lower end of the interval, NaN if there is none.
        high: upper end of the interval.
        reason: why the value is undefined, or has no interval.
        kind: the metric as evaluand calls it.
        signature: the kind with its parameters.
        definition: the public definition that it follows.
        predictions: the file that was scored.
        predictions_digest: of the file's bytes.
        data: further results of the metric, such as the cells of a confusion matrix.
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
    data: Any = None


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


@dataclass(frozen=True, kw_only=True, repr=False)
class Scores:
    """The scores of prediction files.

    Attributes:
        rows: a score for each criterion and target of each part.
        notes: deviations that did not prevent scoring.
        digests: of the problem's document and of the truth file.
        parts: the rows that were judged.
        aligned: the same rows aligned with their truth, for each part.
        metrics: the metrics, each with what it reads of the rows.
    """

    problem: Problem
    rows: tuple[Score, ...]
    notes: tuple[Fault, ...]
    digests: Mapping[str, str]
    parts: tuple[Part, ...]
    aligned: tuple[AlignedTables, ...]
    layout: FileLayout
    metrics: tuple[tuple[Metric, Reads], ...]
    format: ProblemFormat

    def __str__(self) -> str:
        return "\n".join(map(_line, self.rows))

    def __repr__(self) -> str:
        return f"<Scores of {self.problem.id}: {'; '.join(map(_line, self.rows))}>"

    @property
    def spread(self) -> tuple[Spread, ...]:
        """Mean and spread over the parts; none if there is one part."""
        return tuple(_spread(self.rows)) if len(self.parts) > 1 else ()

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
        """The scores as the problem's format has them in its file of scores; an undefined value is empty.

        Args:
            layout: one of `format.score_layouts`; the first if None.

        Raises:
            SpecError: there is no such layout.
        """
        return self.format.scores_table(self.rows, self.problem, layout or self.format.score_layouts[0])

    def save(self, store: Store, name: str) -> Results:
        """Stores the scores as a dataset, a run of recorded predictions, its evaluation and its aggregation.

        Run and evaluation are called `NAME/predictions`, the aggregation `NAME`. What is stored already stays, and
        the predictions are not graded a second time.

        Args:
            store: where; `DirectoryStore()` is the command line's.

        Raises:
            SpecError: targets have several types, so no single scorer can read them.
        """
        rows = GivenRows(self.parts, self.aligned, self.layout, {reads for _, reads in self.metrics})
        files = {str(part.file): None for part in self.parts}
        origin = {"problem": self.problem.id, "files": [*files], **self.digests}
        words: dict[str, list[str]] = {}
        for metric, signature in dict.fromkeys((row.metric, row.signature) for row in self.rows):
            words.setdefault(signature, []).append(metric)
        return store_rows(rows, self.metrics, store, name, origin, words)

    def write(self, path: str | os.PathLike[str], layout: str | None = None, *, force: bool = False) -> None:
        """Writes the file of scores.

        Args:
            layout: see `csv`.

        Raises:
            SpecError: the file exists, or there is no such layout.
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
        predictions: the file; or one for each repeat and fold, with `repeat0`, `fold1` or both in its name. If not
            given, the file that the problem names, or the numbered ones in the same folder.
        truth: a CSV file of index and targets, or a dataset; if not given, the truth in the problem's folder.
        definition: the public definition that metrics follow where several are in use.
        part: TRAIN, TEST or SCORE, where each has its own documents.
        intervals: whether to compute intervals; without them large files are scored faster.

    Raises:
        DataError: anything is wrong with the files: every fault with its place and code.
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
    files = assign_files([Path(path) for path in paths] or find_files(task), task)
    parts = [*read_parts(files, task, findings)]
    findings.check()
    digests = {path: identity.digest_of_file(path) for path in files}
    confidence = _CONFIDENCE if intervals else None
    judged = [(part, *judge_part(part, task, definition, confidence)) for part in parts]
    results = [(part, result) for part, _, part_results in judged for result in part_results]
    metrics = {result.made_metric.signature: (result.made_metric, result.reads) for _, result in results}
    return Scores(
        problem=task.problem,
        rows=tuple(_score(result, part, digests[part.file], chosen) for part, result in results),
        notes=tuple(dict.fromkeys([*findings.notes, *_notes(results)])),
        digests={
            "problem": identity.digest_of_file(task.document),
            "truth": identity.digest_of_file(task.cells.path),
        },
        parts=tuple(parts),
        aligned=tuple(aligned for _, aligned, _ in judged),
        layout=task.layout,
        metrics=tuple(metrics.values()),
        format=chosen,
    )


def _notes(results: Sequence[tuple[Part, CriterionResult]]) -> Iterator[Fault]:
    """The notes of the judgement, except for unknown labels, which reading the files has noted."""
    for part, result in results:
        for note in result.notes:
            if note.code != "unknown_label":
                yield replace(note, where=f"{part.file}: {note.where}")


def _score(result: CriterionResult, part: Part, digest: str, format: ProblemFormat) -> Score:
    return Score(
        metric=format.metric_word(result.criterion.metric),
        target=result.target,
        k=result.criterion.k,
        positive=result.criterion.positive,
        repeat=part.repeat,
        fold=part.fold,
        n=result.n,
        value=result.value,
        low=result.low,
        high=result.high,
        reason=result.reason,
        kind=result.metric,
        signature=result.signature,
        definition=result.definition,
        predictions=str(part.file),
        predictions_digest=digest,
        data=result.data,
    )


def _line(row: Score) -> str:
    interval = "" if math.isnan(row.low) else f" [{row.low:.4g}, {row.high:.4g}]"
    part = f", repeat {row.repeat}, fold {row.fold}" if row.repeat or row.fold else ""
    return f"{row.metric} of {row.target or 'all targets'}: {row.value:.6g}{interval}, n={row.n:,}{part}"


def _spread(rows: Sequence[Score]) -> Iterator[Spread]:
    grouped: dict[Any, list[Score]] = {}
    for row in rows:
        grouped.setdefault((row.metric, row.target, row.signature), []).append(row)
    for (metric, target, _), group in grouped.items():
        values = [row.value for row in group if not math.isnan(row.value)]
        yield Spread(
            metric=metric,
            target=target,
            parts=len(group),
            undefined=len(group) - len(values),
            mean=statistics.fmean(values) if values else math.nan,
            deviation=statistics.stdev(values) if len(values) > 1 else math.nan,
            least=min(values, default=math.nan),
            most=max(values, default=math.nan),
        )
