"""What was scored from files, kept as dataset, run, evaluation and aggregation: one more run on the path.

The rows of the truth are the examples, named by their index; what a file says of one is its response. A repeat of the
split is a replication; what it does not test is skipped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

import pyarrow as pa

from evaluand.aggregation.aggregator import Measure
from evaluand.core import identity, registry
from evaluand.core.errors import SpecError
from evaluand.data.dataset import Dataset
from evaluand.experiment.experiment import Experiment, Results
from evaluand.metrics.base.metric import Metric
from evaluand.problem.definitions import Reads
from evaluand.problem.files import CONFIDENCE, RANK
from evaluand.problem.layout import FileLayout
from evaluand.run.tasks.given import GivenTask
from evaluand.store.store import Store
from evaluand.store.tables import INDEX

TASK: Final = "predictions"
_SCORER: Final = "prediction"
_TYPES: Final = {"text": "text", "time": "text", "integer": "integer", "real": "number", "boolean": "boolean"}


class GivenRows:
    """What is right and what was predicted, for each part: repeat, fold, and both tables."""

    def __init__(
        self, parts: Sequence[tuple[int, int, pa.Table, pa.Table]], layout: FileLayout, reads: Sequence[Reads]
    ) -> None:
        self.parts, self.layout, self.reads = parts, layout, {*reads}
        keys = pa.chunked_array([part[2].column(layout.key).combine_chunks() for part in parts]).unique()
        self.keys = (keys if "rows" in self.reads else keys.sort()).to_pylist()
        several = any(len(part[3]) > len(part[3].column(layout.key).unique()) for part in parts)
        self.shape = _shape_of(self.reads, several)

    def dataset(self, name: str | None) -> Dataset:
        targets = [*self.layout.targets]
        if INDEX in targets:
            raise SpecError(f"a target called {INDEX!r} cannot be kept, since runs call their rows so; leave out name")
        right: dict[Any, dict[str, Any]] = {}
        for _, _, truth, _ in self.parts:
            right |= _gathered(truth, self.layout, self.shape.truth)
        records = [{self.layout.key: key, **right[key]} for key in self.keys]
        expected = targets[0] if len(targets) == 1 else {target: target for target in targets}
        return Dataset.from_rows(records, name=name, id=self.layout.key, input=self.layout.key, expected=expected)

    def task(self) -> GivenTask:
        places = {key: place for place, key in enumerate(self.keys)}
        outputs: dict[tuple[int, int], bytes] = {}
        folds: dict[tuple[int, int], int] = {}
        for repeat, fold, truth, predictions in self.parts:
            found = _gathered(predictions, self.layout, self.shape.prediction)
            for key in truth.column(self.layout.key).unique().to_pylist():
                place = (repeat, places[key])
                of_targets = found.get(key) or {target: [] for target in self.layout.targets}  # an image without boxes
                outputs[place] = identity.encode(of_targets if len(of_targets) > 1 else next(iter(of_targets.values())))
                folds[place] = fold
        return GivenTask(TASK, outputs, folds if len({fold for _, fold, _, _ in self.parts}) > 1 else {})


def store_rows(
    rows: GivenRows,
    metrics: Sequence[tuple[Metric, Reads]],
    store: Store,
    name: str,
    origin: Mapping[str, Any],
    called: Mapping[str, Sequence[str]],
) -> Results:
    """Keeps rows and what metrics say of them; see `Experiment.run`.

    Args:
        called: signature → what the problem calls the metric.
    """
    scorers = {scorer: registry.find("scorers", kind)(**more) for scorer, kind, more in rows.shape.scorers(rows.layout)}
    measures = [
        Measure(rows.shape.read_by(reads), metric, called=called.get(metric.signature, ())) for metric, reads in metrics
    ]
    given = {TASK: rows.task()}
    experiment = Experiment(name, rows.dataset(None), given, scorers, measures, origin=dict(origin))
    return experiment.run(store)


# Shapes


Cells = Callable[[list[Mapping[str, Any]], str], Any]
"""The rows of one key and a target → the value."""


class _Shape:
    """How the rows of an example are one value, and which scorers read it."""

    def __init__(self, truth: Cells, prediction: Cells, kind: str | None = None, type: str | None = None) -> None:
        self.truth, self.prediction, self._kind, self._type = truth, prediction, kind, type

    def scorers(self, layout: FileLayout) -> Iterator[tuple[str, str, dict[str, Any]]]:
        """Name, kind and parameters of each."""
        if self._kind is not None:
            yield self._kind, self._kind, {}
            return
        kinds = {_TYPES.get(kind, "json") for kind in layout.targets.values()}
        if self._type is None and len(kinds) > 1:
            raise SpecError(
                f"targets of the types {', '.join(sorted(kinds))} cannot be kept as one run; leave out name"
            )
        yield _SCORER, _SCORER, {"type": self._type or kinds.pop()}

    def read_by(self, reads: Reads) -> str:
        return self._kind or _SCORER


def _shape_of(reads: set[Reads], several: bool) -> _Shape:
    if "boxes" in reads:
        return _Shape(_boxes, _boxes, kind="detection")
    if "ranking" in reads:
        return _Shape(_values, _answers, kind="ranking")
    if "sets" in reads:
        return _Shape(_labels, _labels, type="labels")
    if "scores" in reads or several:
        return _Shape(_value, _scores)
    return _Shape(_value, _value_and_confidence)


def _gathered(table: pa.Table, layout: FileLayout, cells: Cells) -> dict[Any, dict[str, Any]]:
    """Key → target → value."""
    by_key: dict[Any, list[Mapping[str, Any]]] = {}
    for row in table.to_pylist():
        by_key.setdefault(row[layout.key], []).append(row)
    return {key: {target: cells(rows, target) for target in layout.targets} for key, rows in by_key.items()}


def _value(rows: list[Mapping[str, Any]], target: str) -> Any:
    return rows[0][target]


def _value_and_confidence(rows: list[Mapping[str, Any]], target: str) -> Any:
    [row] = rows
    if CONFIDENCE not in row or target == CONFIDENCE:
        return row[target]
    return {"prediction": row[target], "confidence": row[CONFIDENCE]}


def _values(rows: list[Mapping[str, Any]], target: str) -> Any:
    return [row[target] for row in rows]


def _labels(rows: list[Mapping[str, Any]], target: str) -> Any:
    return sorted(str(row[target]) for row in rows if row[target] not in (None, ""))


def _answers(rows: list[Mapping[str, Any]], target: str) -> Any:
    return [{"answer": row[target], "rank": row[RANK]} for row in rows]


def _scores(rows: list[Mapping[str, Any]], target: str) -> Any:
    best = min(rows, key=lambda row: (-row[CONFIDENCE], row[target]))
    texts = {
        row[target]: row[target] if isinstance(row[target], str) else identity.encode(row[target]).decode()
        for row in rows
    }
    return {"prediction": best[target], "confidence": {texts[row[target]]: row[CONFIDENCE] for row in rows}}


def _boxes(rows: list[Mapping[str, Any]], target: str) -> Any:
    return [{"box": row[target]} | ({CONFIDENCE: row[CONFIDENCE]} if CONFIDENCE in row else {}) for row in rows]
