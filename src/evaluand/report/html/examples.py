"""The example rows of a task as a stream: question, answer, scores and trace of each call.

Each row is one call: a task, an example and a replication. The tables of a run, its evaluation and its dataset are all
sorted by this key, so one pass over them together is enough, with one batch of each in memory. Long values are cut to
`TEXT` characters; the contents of spans and of feedback calls share a budget per row, which shrinks as rows increase.

An image is embedded only if the example names a file in the folder of the dataset or below, the file is small, and its
first bytes are those of an image: a report reads nothing else from the disk.
"""

from __future__ import annotations

import base64
import itertools
import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from itertools import chain, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import orjson
import pyarrow as pa

from evaluand.core import identity
from evaluand.core.errors import DataError, NotFound
from evaluand.core.key_columns import INDEX
from evaluand.data.kind import DATASETS
from evaluand.evaluation.scorer import find_call_reader
from evaluand.evaluation.units import Sources
from evaluand.metrics.detection.boxes import Boxes
from evaluand.metrics.detection.definition import definition_of
from evaluand.metrics.detection.tables import IMAGES, read_images
from evaluand.models.extraction import COLUMN
from evaluand.models.usage_total import usage_text
from evaluand.report.facts.base import Facts
from evaluand.report.facts.evaluation import CALLS, deciding, first_metrics
from evaluand.report.facts.report import Part
from evaluand.report.html.cells import PRETTY, SHORT, TEXT, TRACED, Budget, cell, cut_text, json_cell, span_cells
from evaluand.report.html.chats import chat_cells
from evaluand.report.row_columns import (
    Attributes,
    RowColumns,
    RowKeys,
    choose_worst,
    describe_columns,
    find_decisive,
    list_scorers,
    read_attributes,
    read_row_columns,
    short_text,
    wrong_value,
)
from evaluand.report.text import extraction_text
from evaluand.run.excerpts import PREDICTION, in_reading_order, to_json
from evaluand.store.ownership import is_own
from evaluand.store.tables import ABSTAINED, FAILED, SKIPPED

if TYPE_CHECKING:
    from evaluand.aggregation.aggregator import Measure
    from evaluand.data.dataset import Example
    from evaluand.evaluation.evaluator import Evaluation
    from evaluand.run.runner import Run
    from evaluand.store.store import Store


_SPANS: Final = 300
_CALLS: Final = 50
_ROOM: Final = 400 << 20
_LEAST_ROOM: Final = 2000
_SCORES: Final = 100
_ANSWERS: Final = 20
_MARKS: Final = 300

FEEDBACK: Final = "feedback"

_KEY = [INDEX, "replication"]
_RESPONSE = ["status", "error", "responses", "n_responses", "attempts", "usage", "started", "duration"]
_SCORE = ["_response_index_", "target", "status", "value", "label", "reason", "explanation", "data"]
_NOT_OWN = {*_KEY, *_SCORE, "fold", "digest"}


class Examples:
    """The rows of a task.

    Args:
        part: the task.
        scores: as `scores_facts` returns them.
        limit: how many rows, the worst first by `OUTCOMES`; None is all.
        measures: those that summarised the scores; they define which of several answers decides a row.
        spans: how many spans of a row are shown.
        room: a budget of characters for spans and calls, shared by all rows; by default each row has its own.
        rows: how many rows, of all tasks that are shown together, decide how large that of each row is.

    Attributes:
        total: the number of rows, chosen or not.
        keys: of the rows that are shown; None for those that the limit chooses.
    """

    def __init__(
        self,
        part: Part,
        scores: Sequence[Facts],
        limit: int | None = None,
        measures: Sequence[Measure] = (),
        *,
        spans: int = _SPANS,
        room: Budget | None = None,
        rows: int | None = None,
    ) -> None:
        self.part, self._limit = part, limit
        self.keys: RowKeys | None = None
        self._measures, self._metrics = measures, first_metrics(measures)
        self._spans, self._shared = spans, room
        self._scores = scores
        self.total = sum(part.run.counts.values())
        self._room = max(_ROOM // max(_count_shown(part, limit) if rows is None else rows, 1), _LEAST_ROOM)
        self._numbers = {name: number for number, name in enumerate(list_scorers(part, measures))}
        binary = {entry["scorer"] for entry in scores if entry["binary"]}
        self._decisive = find_decisive(self._numbers, binary, self._metrics)

    @cached_property
    def aggregates(self) -> dict[str, str]:
        """The name of the function that aggregates several calls, by feedback."""
        specs = {} if self.part.evaluation is None else self.part.evaluation.manifest["spec"]["scorers"]
        known = {name: spec.get("aggregate") for name, spec in specs.items() if spec.get("kind") == FEEDBACK}
        return {name: aggregate if isinstance(aggregate, str) else "aggregate" for name, aggregate in known.items()}

    @property
    def dataset(self) -> str:
        """The id of the dataset."""
        return str(self.part.run.manifest["spec"]["dataset"])

    @property
    def detects(self) -> bool:
        """Whether there are boxes to draw."""
        return bool(detectors(self.part))

    def __iter__(self) -> Iterator[Facts]:
        chosen = itertools.repeat(True) if self._is_whole() else self._choose(self.all_columns).tolist()
        for row, is_chosen in zip(self._rows(), chosen, strict=False):
            if is_chosen:
                yield row()

    def columns(self, attributes: Attributes | None = None) -> RowColumns:
        """The rows as columns by which they are filtered and sorted.

        Args:
            attributes: of the run's dataset, where they are known.
        """
        columns = self.all_columns if attributes is None else self._read_columns(attributes)
        return (columns if self._is_whole() else columns.take(self._choose(columns))).limit_words()

    def describe(self, columns: RowColumns) -> Facts:
        """The meaning of the numbers in the columns."""
        return describe_columns(columns, self._scores, self.aggregates, self._metrics, self._decisive) | {
            "replications": self.part.run.manifest["spec"]["replications"],
            "dataset": self.dataset,
        }

    def _is_whole(self) -> bool:
        """Whether all rows are shown."""
        return self.keys is None and (self._limit is None or self.total <= self._limit)

    def _choose(self, columns: RowColumns) -> np.ndarray:
        """Whether each row is shown."""
        keys = choose_worst([columns], self._limit or 0) if self.keys is None else self.keys
        chosen: np.ndarray = keys.places(columns.index, columns.replication) >= 0
        return chosen

    @cached_property
    def all_columns(self) -> RowColumns:
        """The columns of all rows."""
        return self._read_columns(read_attributes(self.part.run))

    def _read_columns(self, attributes: Attributes) -> RowColumns:
        return read_row_columns(self.part, self._decisive, self._measures, attributes)

    def _rows(self) -> Iterator[Any]:
        """For each row, in the order of the key, a function that builds it."""
        part = self.part
        columns = {s: _ScorerTable(part.evaluation, s) for s in list_scorers(part, self._measures)}
        examples, keys = ExampleReader(part.run), _span_keys(part)
        spans = Keyed(row for batch in part.run.spans() for row in read_tuples(batch))
        sources = Sources(part.run)
        boxes = [Keyed(_boxes(part.evaluation, scorer)) for scorer in detectors(part)]
        images = Images(find_source(part.run.store, part.run.manifest["spec"]["dataset"]) if boxes else None)
        for batch in part.run.batches([*_KEY, *_RESPONSE]):
            for index, replication, *response in read_tuples(batch):
                key = index, replication
                example, traced = examples.take(index), spans.take(key)
                graded = {s: column.take(key) for s, column in columns.items()}
                found = [drawn for one in boxes for (drawn,) in one.take(key)]
                yield (
                    lambda key=key, response=response, example=example, graded=graded, traced=traced, found=found: (
                        self._row(part.run.items, key, response, example, columns, graded, traced, keys, sources)
                        | _draw_boxes(found, example, images)
                    )
                )

    def _row(
        self,
        in_lists: bool,
        key: tuple[int, int],
        response: Sequence[Any],
        example: Example | None,
        columns: Mapping[str, _ScorerTable],
        graded: Mapping[str, list[tuple[Any, ...]]],
        traced: list[tuple[Any, ...]],
        keys: Mapping[str, str],
        sources: Sources,
    ) -> Facts:
        status, error, items, n, attempts, usage, started, duration = response
        scores = [(s, row) for s, rows in graded.items() for row in rows]
        room = self._shared or Budget(self._room)
        texts = [] if items is None else response_texts(items, n, in_lists)
        question = None if example is None else example.input
        return {
            "index": key[0],
            "replication": key[1],
            "status": status,
            "outcome": self._outcome(status, graded),
            "id": None if example is None else cut_text(example.id, SHORT),
            "input": None if example is None else cell(example.input),
            "expected": None if example is None or example.expected is None else cell(example.expected),
            "attributes": {} if example is None else {n: short_text(v) for n, v in example.attributes.items()},
            "metadata": {} if example is None else _metadata(example),
            "error": error and {name: None if v is None else cut_text(v, TEXT) for name, v in error.items()},
            "responses": None if items is None else [json_cell(text) for text in texts],
            "marks": [] if items is None or example is None else _marks(example, texts, keys),
            "n_responses": n,
            "attempts": attempts,
            "usage": usage and cut_text(usage_text(usage), SHORT),
            "started": started and started.timestamp(),
            "duration": None if duration is None else duration.total_seconds(),
            "scores": [self._score(s, columns[s], row, room, partial(sources.of, *key)) for s, row in scores[:_SCORES]],
            "n_scores": len(scores),
            "chats": chat_cells(traced, room),
            "spans": [span_cells(row, question, room) for row in traced[: self._spans]],
            "n_spans": len(traced),
        }

    def _score(
        self, scorer: str, of: _ScorerTable, row: tuple[Any, ...], room: Budget, source: Callable[[int | None], Any]
    ) -> Facts:
        number, target, status, value, label, reason, explanation, data, *columns = row
        held = dict(zip(of.own, columns, strict=True))
        score = {
            "scorer": self._numbers[scorer],
            "response": number,
            "target": target,
            "status": status,
            "value": value,
        }
        for name, text in (("label", label), ("reason", reason), ("explanation", explanation)):
            if text is not None:
                score[name] = cut_text(text, TEXT)
        if data is not None:
            score["data"] = json_cell(data)
        if of.read_calls is not None and (text := held.pop(CALLS)) is not None:
            calls = of.read_calls(orjson.loads(text), partial(source, number))
            score |= {"calls": [call_cells(to_json(call), room) for call in calls[:_CALLS]], "n_calls": len(calls)}
        if (used := held.pop("usage", None)) is not None:
            held["used"] = usage_text(orjson.loads(used))
        if (read := held.get(COLUMN)) is not None:
            held[COLUMN] = extraction_text(orjson.loads(read))
        if held:
            score["columns"] = {name: short_text(v) for name, v in held.items() if v is not None}
        return score

    def _outcome(self, status: str, graded: Mapping[str, Sequence[tuple[Any, ...]]]) -> int:
        """The position in `OUTCOMES`, from the scores that decide the metrics."""
        scores = []
        for scorer, rows in graded.items():
            keys = [(number, target, outcome, value) for number, target, outcome, value, *_ in rows]
            scores += [(scorer, *keys[i][2:]) for i in deciding(keys, self._metrics.get(scorer))]
        statuses = {status, *(score[1] for score in scores)}
        if FAILED in statuses:
            return 0
        if SKIPPED in statuses or ABSTAINED in statuses:
            return 1
        values = {value for scorer, _, value in scores if scorer == self._decisive}
        wrong = wrong_value(self._metrics.get(self._decisive or ""))
        return 2 if wrong in values else 3 if values else 4 if scores else 5


def examples_of(
    parts: Sequence[Part], scores: Sequence[Facts], limit: int | None = None, measures: Sequence[Measure] = ()
) -> list[Examples]:
    """The rows of some tasks that are shown side by side.

    Args:
        limit: how many examples and replications of a dataset: those that are worst for any of its tasks.
    """
    rows = sum(_count_shown(part, limit) for part in parts)
    found = [Examples(part, scores, limit, measures, rows=rows) for part in parts]
    for dataset in dict.fromkeys(each.dataset for each in found):
        tasks = [each for each in found if each.dataset == dataset]
        if limit is not None and any(each.total > limit for each in tasks):
            chosen = choose_worst([each.all_columns for each in tasks], limit)
            for each in tasks:
                each.keys = chosen
    return found


def _count_shown(part: Part, limit: int | None) -> int:
    n = sum(part.run.counts.values())
    return n if limit is None else min(n, limit)


def _metadata(example: Example) -> dict[str, str | None]:
    return {name: short_text(value) for name, value in all_metadata(example).items()}


def all_metadata(example: Example) -> dict[str, Any]:
    """Weight, cluster and metadata of an example by name, without those that are missing."""
    known = {"weight": example.weight, "cluster": example.cluster, **example.metadata}
    return {name: value for name, value in known.items() if value is not None}


def response_texts(items: list[dict[str, Any]], n: int, in_lists: bool) -> list[str]:
    """The first responses as JSON, best first."""
    if not in_lists:
        return [_in_reading_order(item["value"]) for item in items[:_ANSWERS]]
    texts: list[list[str]] = [[] for _ in range(n)]
    for item in items:
        texts[item["_response_index_"]].append(_in_reading_order(item["value"]))
    return [f"[{','.join(each)}]" for each in texts[:_ANSWERS]]


def _marks(example: Example, responses: Sequence[str], keys: Mapping[str, str]) -> list[Any]:
    """For each response the spans to mark in the input: `[start, end, tag, 0 both, 1 expected or 2 answered]`.

    Empty if the input is not text, or the expected or answered values are not spans of it.
    """
    text = example.input.get(keys["text"]) if isinstance(example.input, Mapping) else example.input
    if not isinstance(text, str) or (expected := _count_spans(example.expected, keys, text)) is None:
        return []
    own = None if text is example.input else cell(text)
    found = []
    for response in responses:
        answered = _count_spans(identity.decode(response), keys, text)
        both = Counter() if answered is None else expected & answered
        kinds = [] if answered is None else [both, expected - both, answered - both]
        marks: list[list[Any]] = [[*span, kind] for kind, spans in enumerate(kinds) for span in spans.elements()]
        marks.sort(key=lambda mark: (mark[0], mark[1], mark[3]))
        shown = [mark for mark in marks if mark[1] <= TEXT][:_MARKS]
        found.append({"text": own, "spans": shown, "more": len(marks) - len(shown)} if marks else None)
    return found if any(found) else []


def _count_spans(value: Any, keys: Mapping[str, str], text: str) -> Counter[tuple[int, int, str]] | None:
    """The spans of a list with their counts; None if it contains anything else."""
    found = Counter[tuple[int, int, str]]()
    for item in value if isinstance(value, list) else [None]:
        parts: list[Any] = [item.get(keys[k]) if isinstance(item, dict) else None for k in ("start", "end", "tag")]
        start, end, tag = parts
        if not (
            isinstance(start, int) and isinstance(end, int) and isinstance(tag, str) and 0 <= start < end <= len(text)
        ):
            return None
        found[start, end, cut_text(tag, SHORT)] += 1
    return found


def detectors(part: Part) -> list[str]:
    """The names of the scorers whose tables hold boxes."""
    specs = {} if part.evaluation is None else part.evaluation.manifest["spec"]["scorers"]
    return [name for name, spec in specs.items() if spec.get("kind") == _DETECTION]


def _draw_boxes(found: list[Facts | None], example: Example | None, images: Images) -> Facts:
    """The boxes of each answer, matched with those expected, and their image."""
    if not any(found):
        return {}
    return {"frames": found[:_ANSWERS], "image": None if example is None else images.read(example.input)}


def find_source(store: Store, dataset: str) -> str | None:
    """The file of a dataset, next to which its images are.

    None for a dataset of somebody else whose manifest names a file outside the folder that the store is in: a report,
    which may be passed on, does not take images of whoever writes it.
    """
    try:
        made = store.manifest(DATASETS, dataset)
    except NotFound:
        return None
    source = (made.get("provenance") or {}).get("source")
    if not isinstance(source, str) or "\0" in source:
        return None
    place = os.path.dirname(os.path.realpath(getattr(store, "root", "")))
    return source if is_own(store, made) or Path(os.path.realpath(source)).is_relative_to(place) else None


def _span_keys(part: Part) -> Mapping[str, str]:
    """The keys of a span's parts, from the parameters of the first scorer `spans`."""
    specs = {} if part.evaluation is None else part.evaluation.manifest["spec"]["scorers"]
    parameters = next((spec.get("parameters") for spec in specs.values() if spec.get("kind") == "spans"), None)
    keys = {name: parameters.get(f"{name}_key") for name in _SPAN_PARTS} if isinstance(parameters, Mapping) else {}
    return {name: key if isinstance(key := keys.get(name), str) and key else name for name in _SPAN_PARTS}


_SPAN_PARTS: Final = ("start", "end", "tag", "text")


def _in_reading_order(text: str) -> str:
    if not text.startswith("{") or f'"{PREDICTION}":' not in text or len(text) > PRETTY:
        return text
    return orjson.dumps(in_reading_order(orjson.loads(text))).decode()


def call_cells(call: Facts, room: Budget) -> Facts:
    """One call of a feedback: its arguments and its result."""
    result = call["ret"] if call["ret"] is None or isinstance(call["ret"], float) else room.value(call["ret"])
    parts = {name: {cut_text(n, SHORT): room.value(v) for n, v in call[name].items()} for name in ("args", "meta")}
    return {"ret": result, "error": call["error"] and cut_text(str(call["error"]), TRACED), **parts}


def read_tuples(batch: pa.RecordBatch) -> Iterator[tuple[Any, ...]]:
    return zip(*(column.to_pylist() for column in batch.columns), strict=True)


class Keyed:
    """Rows sorted by the key they begin with, taken key by key."""

    def __init__(self, rows: Iterator[tuple[Any, ...]]) -> None:
        self._rows = rows
        self._next = next(rows, None)

    def take(self, key: tuple[int, int]) -> list[tuple[Any, ...]]:
        """The rest of every row with a key; rows of earlier keys are skipped."""
        found = []
        while self._next is not None and self._next[:2] <= key:
            if self._next[:2] == key:
                found.append(self._next[2:])
            self._next = next(self._rows, None)
        return found


class _ScorerTable(Keyed):
    """The table of a scorer, read along with the rows of its run.

    Attributes:
        own: the names of the columns that only this scorer has, which come last.
        read_calls: reads the cells of its column `calls`; None where it has none.
    """

    def __init__(self, evaluation: Evaluation | None, scorer: str) -> None:
        assert evaluation is not None
        self.read_calls = find_call_reader(evaluation.manifest["spec"]["scorers"][scorer])
        self.own = [name for name in evaluation.columns(scorer) if name not in _NOT_OWN]
        names = [*_KEY, *_SCORE, *self.own]
        super().__init__(row for b in evaluation.batches(scorer, names) for row in read_tuples(b.select(names)))


def _boxes(evaluation: Evaluation | None, scorer: str) -> Iterator[tuple[Any, ...]]:
    """The key and the matched boxes of each row."""
    assert evaluation is not None
    columns = [*_KEY, "truths", "detections"]
    for batch in evaluation.batches(scorer, columns):
        index, replication, truths, detections = (column.to_pylist() for column in batch.select(columns).columns)
        yield from zip(index, replication, frames(truths, detections), strict=True)


class ExampleReader:
    """The examples of a run, read along with its rows; none if the store lacks the dataset."""

    def __init__(self, run: Run) -> None:
        dataset = _dataset(run)
        self._examples = iter(()) if dataset is None else dataset.examples()
        self._current = next(self._examples, None)

    def take(self, index: int) -> Example | None:
        while self._current is not None and self._current.index < index:
            self._current = next(self._examples, None)
        return self._current if self._current is not None and self._current.index == index else None


def _dataset(run: Run) -> Any:
    try:
        return run.dataset
    except NotFound:
        return None


_DETECTION: Final = "detection"
"""The scorer whose columns `truths` and `detections` hold the boxes."""

OVERLAP: Final = 0.5
_BOXES: Final = 200
_LABEL: Final = 80
_IMAGE_BYTES: Final = 250_000
_TOTAL_BYTES: Final = 4_000_000  # of a task
_FIRST_BYTES: Final = {b"\x89PNG\r\n\x1a\n": "png", b"\xff\xd8\xff": "jpeg", b"GIF8": "gif"}
_RIGHT, _MISSED, _SPURIOUS, _IGNORED = range(4)


def frames(truths: Sequence[str | None], detections: Sequence[str | None]) -> list[Facts | None]:
    """Matches the boxes of some images, by the standard definition at an overlap of 0.5.

    Args:
        truths: the scorer's column, as JSON text.
        detections: the same; None for an image without an answer.

    Returns:
        For each image `boxes`, each `[x_min, y_min, x_max, y_max, label, 0 right, 1 missed or 2 spurious, confidence]`,
        the `counts` of these kinds, and `more`, the number of boxes left out; None for an image without boxes. Crowds
        and detections in them are ignored.

    Example:
        >>> [found] = frames(['{"box":[[0,0,9,9],[20,20,29,29]]}'], ['{"box":[[0,0,9,8]],"confidence":[0.9]}'])
        >>> found["boxes"]
        [[0.0, 0.0, 9.0, 8.0, None, 0, 0.9], [20.0, 20.0, 29.0, 29.0, None, 1, None]]
    """
    n = len(truths)
    answered = [text if truth else None for text, truth in zip(detections, truths, strict=True)]
    columns = {"truths": pa.array(truths, pa.string()), "detections": pa.array(answered, pa.string())}
    try:
        images: Any = read_images({INDEX: np.arange(n), **columns})[IMAGES]
        matching = images.match((OVERLAP,), definition_of("standard"))
    except DataError:  # not a table of the scorer `detection`
        return [None] * n
    kind = np.full(len(images.detections), _SPURIOUS)
    kind[matching.order] = np.where(matching.found[0], _RIGHT, np.where(matching.ignored[0], _IGNORED, _SPURIOUS))
    missed = np.where(matching.met[0] | matching.truth_ignored, _IGNORED, _MISSED)
    sides = zip(_list_boxes(images.detections, kind, n), _list_boxes(images.truths, missed, n), strict=True)
    return [_frame([box for box in chain(*both) if box[5] != _IGNORED]) for both in sides]


def _frame(boxes: list[list[Any]]) -> Facts | None:
    boxes.sort(key=lambda box: box[5])
    counts = [sum(box[5] == kind for box in boxes) for kind in (_RIGHT, _MISSED, _SPURIOUS)]
    return {"boxes": boxes[:_BOXES], "counts": counts, "more": max(len(boxes) - _BOXES, 0)} if boxes else None


def _list_boxes(boxes: Boxes, kinds: np.ndarray, n: int) -> list[list[list[Any]]]:
    """The boxes of each of n images."""
    nothing = [None] * len(boxes)
    labels = nothing if boxes.label is None else [str(label)[:_LABEL] for label in boxes.label.to_pylist()]
    confidences = nothing if boxes.confidence is None else boxes.confidence.tolist()
    columns = zip(boxes.corners.T.tolist(), labels, kinds.tolist(), confidences, strict=True)
    rows = [[*corners, name, kind, confidence] for corners, name, kind, confidence in columns]
    ends = np.searchsorted(boxes.image.to_numpy(), np.arange(n + 1)).tolist()
    return [rows[start:end] for start, end in pairwise(ends)]


class Images:
    """The images in the folder of a dataset's file, up to a total size."""

    def __init__(self, source: str | None) -> None:
        file = None if source is None else Path(source)
        self._folder = file.resolve().parent if file is not None and file.is_file() else None
        self._left = _TOTAL_BYTES

    def read(self, input: Any) -> str | None:
        """The image that an input names, as a data URI."""
        for name in _names(input) if self._folder is not None else ():
            data = self._read(name)
            kind = next((kind for first, kind in _FIRST_BYTES.items() if data.startswith(first)), None)
            if kind is not None:
                self._left -= len(data)
                return f"data:image/{kind};base64,{base64.b64encode(data).decode()}"
        return None

    def _read(self, name: str) -> bytes:
        assert self._folder is not None
        try:
            path = (self._folder / name).resolve()
            if not path.is_relative_to(self._folder) or not path.is_file():
                return b""
            return path.read_bytes() if path.stat().st_size <= min(_IMAGE_BYTES, self._left) else b""
        except (OSError, ValueError):  # not a valid file name
            return b""


def _names(input: Any) -> Iterator[str]:
    values = input.values() if isinstance(input, Mapping) else [input]
    ends = (".png", ".jpg", ".jpeg", ".gif")
    yield from (value for value in values if isinstance(value, str) and value.lower().endswith(ends))
