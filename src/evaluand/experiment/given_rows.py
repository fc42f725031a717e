"""Scored prediction files as a dataset, a run, an evaluation and an aggregation in a store.

The rows of the truth are the examples, named by their index; what a file predicts for one is its response. A repeat of
the split is a replication, in which rows that it does not test are skipped. Truth and predictions were aligned when
they were judged; these columns are what is stored, as outputs of the run and as scores of the evaluation.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

import pyarrow as pa

from evaluand.aggregation.aggregator import Measure
from evaluand.core import identity, registry
from evaluand.core.errors import SpecError
from evaluand.core.key_columns import INDEX
from evaluand.data.dataset import Dataset
from evaluand.evaluation.evaluator import KnownScores
from evaluand.evaluation.prediction_table import SCORER, PredictionColumns
from evaluand.experiment.experiment import Experiment, Results
from evaluand.metrics.base.metric import Metric
from evaluand.problem.alignment import AlignedTables
from evaluand.problem.definitions import Reads
from evaluand.problem.layout import FileLayout
from evaluand.problem.parts import Part
from evaluand.problem.reading import CONFIDENCE, RANK
from evaluand.run.tasks.recorded import RecordedTask
from evaluand.store.store import Store

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
        if self.scorer_kind == SCORER and "sets" not in self.reads:
            if len(types) > 1:
                listed = ", ".join(sorted(types))
                raise SpecError(f"targets of the types {listed} cannot be stored as one run; leave out --name")
            object.__setattr__(self, "_type", types.pop())

    @property
    def scorer_kind(self) -> str:
        """The kind of scorer that reads the rows, which is also its name."""
        return "detection" if "boxes" in self.reads else "ranking" if "ranking" in self.reads else SCORER

    @cached_property
    def keys(self) -> list[Any]:
        """The index of each example: sorted, or in the order of the files where a metric depends on that."""
        keys = pa.chunked_array([part.truth.column(self.layout.key).combine_chunks() for part in self.parts]).unique()
        return (keys if "rows" in self.reads else keys.sort()).to_pylist()  # type: ignore[no-any-return]

    @cached_property
    def columns(self) -> list[dict[str, PredictionColumns]]:
        """Of each part the columns of each target, in the order of `_part_keys`; none for boxes and rankings."""
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
        return kind(type="labels" if "sets" in self.reads else self._type)

    def known_scores(self) -> KnownScores:
        """The scores of all rows, which the aligned columns are; none for boxes and rankings."""
        if self.scorer_kind != SCORER:
            return {}
        names: Sequence[str | None] = [*self.layout.targets] if len(self.layout.targets) > 1 else [None]
        records: dict[tuple[int, int], list[list[Any]]] = {}
        for part, columns in zip(self.parts, self.columns, strict=True):
            places = self._places(part)
            for name, target in zip(names, columns.values(), strict=True):
                for row, score in target.known_scores():
                    records.setdefault((places[row], part.repeat), []).append(score.record(name))
        complete = (key for key in sorted(records) if len(records[key]) == len(names))
        return {SCORER: [(key, records[key]) for key in complete]}

    def _places(self, part: Part) -> list[int]:
        """Of each example of a part its position among all examples."""
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
        name: what run, evaluation and aggregation are called.
        origin: where the rows came from, for provenance.
        called: signature → what the problem calls the metric.
    """
    scorer = rows.scorer_kind
    measures = [Measure(scorer, metric, called=called.get(metric.signature, ())) for metric, _ in metrics]
    experiment = Experiment(
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
