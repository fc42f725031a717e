"""Prediction files scored by the metrics of their problem: read, checked, judged, written and stored.

The problem's split says which rows are tested; the truth is in the problem's folder or in a file that is named. All
files are checked before anything is scored.

In a store, the rows of the truth are the examples, named by their index; the predictions are the responses. A repeat of
the split is a replication, in which rows that it does not test are skipped. Truth and predictions were aligned for
scoring; the aligned columns are stored as outputs of the run and as scores of the evaluation.
"""

import math
import os
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from evaluand.aggregation.aggregator import Measure
from evaluand.core import identity, registry
from evaluand.core.errors import Fault, SpecError
from evaluand.core.files.csv import write_table
from evaluand.core.key_columns import INDEX
from evaluand.data.dataset import Dataset
from evaluand.evaluation.evaluator import KnownScores
from evaluand.evaluation.prediction_table import SCORER, PredictionColumns
from evaluand.metrics.base.metric import Metric
from evaluand.predictions.problem.alignment import AlignedTables
from evaluand.predictions.problem.definitions import Reads
from evaluand.predictions.problem.formats import OpenProblem, ProblemFormat, default_format, format_of
from evaluand.predictions.problem.judging import CriterionResult
from evaluand.predictions.problem.layout import FileLayout
from evaluand.predictions.problem.parts import Part, assign_files, find_files, judge_part, read_parts
from evaluand.predictions.problem.problem import Problem
from evaluand.predictions.problem.reading import CONFIDENCE, RANK
from evaluand.predictions.steps import Results, Steps
from evaluand.run.tasks.recorded import RecordedTask
from evaluand.store.store import Store

_CONFIDENCE = 0.95


@dataclass(frozen=True, kw_only=True)
class Score:
    """The value of a metric for one target over one part of the tested rows.

    Attributes:
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
        """The scores as a file in the problem's format; an undefined value is empty.

        Args:
            layout: one of `format.score_layouts`; the first if None.

        Raises:
            SpecError: there is no such layout.
        """
        return self.format.scores_table(self.rows, self.problem, layout or self.format.score_layouts[0])

    def save(self, store: Store, name: str) -> Results:
        """Stores the scores as a dataset, a run of recorded predictions, its evaluation and its aggregation.

        Run and evaluation are called `NAME/predictions`, the aggregation `NAME`. Artifacts that are already stored
        stay, and the predictions are not graded a second time.

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
        predictions: the file; or one for each repeat and fold, with `repeat0`, `fold1` or both in its name. By
            default the file that the problem names, or the numbered ones in the same folder.
        truth: a CSV file of index and targets, or a dataset; by default the truth in the problem's folder.
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


TASK: Final = "predictions"
_TYPES: Final = {"text": "text", "time": "text", "integer": "integer", "real": "number", "boolean": "boolean"}


@dataclass(frozen=True, eq=False)
class GivenRows:
    """Truth and predictions of all parts.

    Args:
        aligned: the rows of each part aligned with their truth.
        reads: what the metrics read of the rows.

    Raises:
        SpecError: targets have several types, so no single scorer reads them, or a reserved name.
    """

    parts: Sequence[Part]
    aligned: Sequence[AlignedTables]
    layout: FileLayout
    reads: set[Reads]
    _type: str = field(init=False, default="json")

    def __post_init__(self) -> None:
        if INDEX in self.layout.targets:
            raise SpecError(f"a target called {INDEX!r} cannot be stored, since runs use this name; leave out --name")
        types = {_TYPES.get(kind, "json") for kind in self.layout.targets.values()}
        if self.scorer_kind == SCORER and not self._with_sets:
            if len(types) > 1:
                listed = ", ".join(sorted(types))
                raise SpecError(f"targets of the types {listed} cannot be stored as one run; leave out --name")
            object.__setattr__(self, "_type", types.pop())

    @property
    def scorer_kind(self) -> str:
        """The kind of scorer that reads the rows, which is also its name."""
        return "detection" if "boxes" in self.reads else "ranking" if "ranking" in self.reads else SCORER

    @property
    def _with_sets(self) -> bool:
        return any(aligned.with_sets for aligned in self.aligned)

    @cached_property
    def keys(self) -> list[Any]:
        """The index of each example: sorted, or in the order of the files where a metric depends on that."""
        keys = pa.chunked_array([part.truth.column(self.layout.key).combine_chunks() for part in self.parts]).unique()
        return (keys if "rows" in self.reads else keys.sort()).to_pylist()  # type: ignore[no-any-return]

    @cached_property
    def columns(self) -> list[dict[str, PredictionColumns]]:
        """The columns of each target for each part, in the order of `_part_keys`; none for boxes and rankings."""
        if self.scorer_kind != SCORER:
            return []
        return [
            {name: aligned.prediction_columns(name, self._type) for name in self.layout.targets}
            for aligned in self.aligned
        ]

    def dataset(self) -> Dataset:
        """The truth of each example."""
        targets, key_column = [*self.layout.targets], self.layout.key
        truths: dict[Any, Mapping[str, Any]] = {}
        for part, values in zip(self.parts, self._truths(), strict=True):
            truths |= dict(zip(_part_keys(part, key_column), values, strict=True))
        records = [{key_column: key, **truths[key]} for key in self.keys]
        expected = targets[0] if len(targets) == 1 else {target: target for target in targets}
        return Dataset.from_rows(records, id=key_column, input=key_column, expected=expected)

    def task(self) -> RecordedTask:
        """The predictions as the outputs of a task."""
        outputs: dict[tuple[int, int], bytes] = {}
        folds: dict[tuple[int, int], int] = {}
        for part, values in zip(self.parts, self._outputs(), strict=True):
            for place, of_targets in zip(self._places(part), values, strict=True):
                output = of_targets if len(of_targets) > 1 else next(iter(of_targets.values()))
                outputs[part.repeat, place] = identity.encode(output)
                folds[part.repeat, place] = part.fold
        return RecordedTask.from_outputs(TASK, outputs, folds if len({part.fold for part in self.parts}) > 1 else {})

    def scorer(self) -> Any:
        """The scorer that grades the outputs."""
        kind = registry.find("scorers", self.scorer_kind)
        if self.scorer_kind != SCORER:
            return kind()
        return kind(type="labels" if self._with_sets else self._type)

    def known_scores(self) -> KnownScores:
        """The scores of all rows, from the aligned columns; none for boxes and rankings."""
        if self.scorer_kind != SCORER:
            return {}
        names: Sequence[str | None] = [*self.layout.targets] if len(self.layout.targets) > 1 else [None]
        records: dict[tuple[int, int], list[list[Any]]] = {}
        for part, columns in zip(self.parts, self.columns, strict=True):
            places = self._places(part)
            for name, target in zip(names, columns.values(), strict=True):
                for (row, _), [[number, _, *score]] in target.scored_rows().records():
                    records.setdefault((places[row], part.repeat), []).append([number, name, *score])
        complete = (key for key in sorted(records) if len(records[key]) == len(names))
        return {SCORER: [(key, records[key]) for key in complete]}

    def _places(self, part: Part) -> list[int]:
        """The position of each example of a part among all examples."""
        positions = {key: place for place, key in enumerate(self.keys)}
        return [positions[key] for key in _part_keys(part, self.layout.key)]

    def _truths(self) -> Iterator[list[dict[str, Any]]]:
        if self.scorer_kind != SCORER:
            yield from (
                self._by_target(part, part.truth, _gather_boxes if "boxes" in self.reads else _gather_values)
                for part in self.parts
            )
        for columns in self.columns:
            yield _transpose({name: target.truths() for name, target in columns.items()})

    def _outputs(self) -> Iterator[list[dict[str, Any]]]:
        if self.scorer_kind != SCORER:
            gather = _gather_boxes if "boxes" in self.reads else _gather_answers
            yield from (self._by_target(part, part.predictions, gather) for part in self.parts)
        for columns in self.columns:
            yield _transpose({name: target.outputs() for name, target in columns.items()})

    def _by_target(self, part: Part, table: pa.Table, gather: Any) -> list[dict[str, Any]]:
        """Of each example of a part its rows of a table, gathered to one value for each target."""
        by_key: dict[Any, list[Mapping[str, Any]]] = {}
        for row in table.to_pylist():
            by_key.setdefault(row[self.layout.key], []).append(row)
        keys = _part_keys(part, self.layout.key)
        return [{name: gather(by_key.get(key, []), name) for name in self.layout.targets} for key in keys]


def store_rows(
    rows: GivenRows,
    metrics: Sequence[tuple[Metric, Reads]],
    store: Store,
    name: str,
    origin: Mapping[str, Any],
    called: Mapping[str, Sequence[str]],
) -> Results:
    """Stores rows and the values of metrics; see `Experiment.run`.

    Args:
        metrics: the metrics, each with what it reads.
        name: of run, evaluation and aggregation.
        origin: where the rows came from, for provenance.
        called: signature → the name of the metric in the problem.
    """
    scorer = rows.scorer_kind
    measures = [Measure(scorer, metric, called=called.get(metric.signature, ())) for metric, _ in metrics]
    experiment = Steps(
        name, rows.dataset(), {TASK: rows.task()}, {scorer: rows.scorer()}, measures, origin=dict(origin)
    )
    return experiment.run(store, known_scores={TASK: rows.known_scores()})


def _part_keys(part: Part, key: str) -> list[Any]:
    """The index of each example of a part, sorted."""
    return part.truth.column(key).combine_chunks().unique().sort().to_pylist()  # type: ignore[no-any-return]


def _transpose(columns: Mapping[str, Iterator[Any]]) -> list[dict[str, Any]]:
    return [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]


def _gather_values(rows: list[Mapping[str, Any]], target: str) -> Any:
    return [row[target] for row in rows]


def _gather_answers(rows: list[Mapping[str, Any]], target: str) -> Any:
    return [{"answer": row[target], "rank": row[RANK]} for row in rows]


def _gather_boxes(rows: list[Mapping[str, Any]], target: str) -> Any:
    return [{"box": row[target]} | ({CONFIDENCE: row[CONFIDENCE]} if CONFIDENCE in row else {}) for row in rows]
