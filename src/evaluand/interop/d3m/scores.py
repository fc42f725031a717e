"""Predictions of a problem scored from files: what is read, checked, judged, and written as scores.csv.

Which rows are tested tells the problem's split; what is right, its `targets.csv` or its learning table, or a file that
is named. Nothing is scored before everything was found to be in order.
"""

from __future__ import annotations

import math
import os
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final, Literal

import pyarrow as pa

from evaluand.core import identity
from evaluand.core.errors import Fault, SpecError
from evaluand.experiment.experiment import Results
from evaluand.interop.d3m.columns import Form
from evaluand.interop.d3m.dataset import write_csv
from evaluand.interop.d3m.folder import ProblemFolder
from evaluand.interop.d3m.judge import judged
from evaluand.interop.d3m.names import METRICS, UPPER, WORDS
from evaluand.interop.d3m.prediction_files import Part, assigned, files_beside, parts_of
from evaluand.interop.d3m.to_native import Rows, keep
from evaluand.interop.d3m.truth import tested
from evaluand.metrics.base.metric import Metric
from evaluand.problem import DEFINITIONS, STANDARD, CriterionResult, Reads
from evaluand.problem.problem import Criterion, Problem
from evaluand.store.store import Store

Layout = Literal["3.1.1", "4"]
LAYOUTS: Final = ("3.1.1", "4")


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
        data: what else the metric tells, such as the cells of a confusion matrix.
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

    def __str__(self) -> str:
        return "\n".join(map(_line, self.rows))

    def __repr__(self) -> str:
        return f"<Scores of {self.problem.id}: {'; '.join(map(_line, self.rows))}>"

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
            record["data"] = None if record["data"] is None else identity.encode(record["data"]).decode()
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
        origin = {"problem": self.problem.id, "files": [*files], **self.digests}
        called: dict[str, list[str]] = {}
        for metric, signature in dict.fromkeys((row.metric, row.signature) for row in self.rows):
            called.setdefault(signature, []).append(metric)
        return keep(rows, self.metrics, store, name, origin, called)

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
    problem: str | os.PathLike[str] | ProblemFolder | Problem,
    predictions: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] = (),
    truth: str | os.PathLike[str] | None = None,
    *,
    definition: str | None = None,
    part: str | None = None,
    intervals: bool = True,
) -> Scores:
    """Scores files of predictions by the metrics of their problem.

    Args:
        problem: the problem's folder, also one that is open, or its document; or a problem that is stated in code.
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
    task, findings = tested(problem, None if truth is None else Path(truth), part)
    findings.check()
    assert task is not None
    if not task.problem.criteria:
        raise SpecError(f"{task.document}: the problem has no metric; name one under performanceMetrics")
    files = assigned([Path(path) for path in given] or files_beside(task), task)
    parts = [*parts_of(files, task, findings)]
    findings.check()
    digests = {path: identity.digest_of_file(path) for path in files}
    found = [(one, each) for one in parts for each in judged(one, task, definition, 0.95 if intervals else None)]
    metrics = {each.made.signature: (each.made, each.reads) for _, each in found}
    told = (replace(note, where=f"{one.file}: {note.where}") for one, each in found for note in each.notes)
    notes = dict.fromkeys([*findings.notes, *(note for note in told if note.code != "unknown_label")])  # told already
    return Scores(
        problem=task.problem,
        rows=tuple(_score(each, one, digests[one.file]) for one, each in found),
        notes=tuple(notes),
        digests={
            "problem": identity.digest_of_file(task.document),
            "truth": identity.digest_of_file(task.truth.path),
        },
        parts=tuple(parts),
        form=task.form,
        metrics=tuple(metrics.values()),
    )


def _score(found: CriterionResult, part: Part, digest: str) -> Score:
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
        data=found.data,
    )


def _line(row: Score) -> str:
    interval = "" if math.isnan(row.low) else f" [{row.low:.4g}, {row.high:.4g}]"
    part = f", repeat {row.repeat}, fold {row.fold}" if row.repeat or row.fold else ""
    return f"{row.metric} of {row.target or 'all targets'}: {row.value:.6g}{interval}, n={row.n:,}{part}"


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
    return WORDS.get(criterion.metric, criterion.metric)


def _upper(word: str) -> str:
    name = METRICS.get(word, word)
    return UPPER.get(name, name.upper())


def _normalized(row: Score) -> float | None:
    """The value from 0, the worst, to 1, the best, as the layout of schema 4 has it; None where that is not known."""
    name = METRICS.get(row.metric)
    if math.isnan(row.value) or name is None:
        return None
    if DEFINITIONS[STANDARD][name].reads == "numbers":
        best = 1.0 if name == "r_squared" else 0.0
        return 2 / (1 + math.exp(min(abs(best - row.value), 700.0)))
    return 1 - row.value if name == "hamming_loss" else row.value
