"""Truth and predictions aligned by their index: one row for each example, in the order of the index.

So not even the last digit of a value depends on the order of rows in a file. Only metrics that are defined by that
order read the rows as they are filed.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from typing import Final, Literal

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from evaluand.core.errors import DataError, Fault
from evaluand.core.files import cells
from evaluand.evaluation.prediction_table import PredictionColumns, agreement, convert, lists_by_row
from evaluand.metrics.base.labels import contents
from evaluand.metrics.base.metric import VALUE
from evaluand.metrics.detection.boxes import Boxes
from evaluand.predictions.problem.definitions import Reads
from evaluand.predictions.problem.sides import (
    CONFIDENCE,
    RANK,
    Keys,
    Side,
    read_numbers,
    read_pair,
    repeated,
)

Columns = Mapping[str, pa.Array]
_OF_LABELS: Final = frozenset({"labels", "sets", "scores", "confidence"})
_NEEDS_CONFIDENCE: Final = frozenset({"scores", "confidence"})


@dataclass(frozen=True, eq=False)
class AlignedTables:
    """Both tables, and the columns that metrics read of them: those of the scorers `prediction` and `ranking`.

    Attributes:
        keys: the example of each row.
        with_sets: whether an example may have several labels.
        by_class: whether predictions have a row with a confidence for each class, so that the label is the surest.
        boxes: the true and the detected boxes of each target that holds boxes.
    """

    truth: Side
    predictions: Side
    keys: Keys
    with_sets: bool
    by_class: bool = False
    boxes: dict[str, tuple[Boxes, Boxes]] = field(default_factory=dict)
    _columns: dict[tuple[str, str], Columns] = field(default_factory=dict)

    def read(self, targets: Sequence[str], reads: set[Reads], *, sound: bool = True) -> list[Fault]:
        """Reads what metrics need of all targets for `columns`.

        Args:
            sound: whether rows fit one another; else their cells are only checked.

        Returns:
            What is wrong with the cells.
        """
        faults = self._read_targets_with_boxes(targets) if "boxes" in reads else []
        for name in targets:
            if of_labels := reads & _OF_LABELS:
                faults += self._read_labels(name, of_labels, sound)
            for each in sorted(reads - _OF_LABELS - {"boxes"}):
                read = self._read_ranking if each == "ranking" else self._read_values
                faults += read(name, each, sound)  # type: ignore[arg-type]
        return faults

    def columns(self, name: str, reads: Reads) -> Columns:
        """The columns of a target for metrics that read `reads`."""
        return self._columns[name, "labels" if reads in _OF_LABELS else reads]

    def numbers_of_truth(self, name: str) -> tuple[pa.Array | None, list[Fault]]:
        """A further column of the truth, one number for each example, or what is wrong with it."""
        if name not in self.truth.table.column_names:
            message = f"there is no column {name!r}, which a metric reads; add it, or choose another metric"
            return None, [self.truth.fault("missing_column", message)]
        numbers, faults = read_numbers(self.truth, name)
        return None if faults else _take(numbers, self.keys.truth_rows), faults

    def as_predictions(self, name: str, type: str) -> PredictionColumns:
        """A target as the scorer `prediction` has it, in one of its types."""
        reads: Reads = "numbers" if type == "number" else "labels"
        if (name, reads) not in self._columns:
            self.read([name], {reads})
        columns = self._columns[name, reads]
        truth, prediction = (columns[side] for side in ("truth", "prediction"))
        if pa.types.is_dictionary(truth.type):
            truth, prediction = truth.dictionary_decode(), prediction.dictionary_decode()
        scores = columns.get("scores")
        if scores is not None:
            scores = scores.cast(pa.list_(pa.struct([("label", pa.string()), ("score", pa.float64())])))
        return PredictionColumns(type, convert(truth, type), convert(prediction, type), columns.get(CONFIDENCE), scores)

    # Labels and numbers

    @cached_property
    def _confidence(self) -> tuple[pa.Array | None, list[Fault]]:
        column = self.predictions.find_column(CONFIDENCE)
        if column is None:
            hint = "give a score for each class: rows of index, label and confidence"
            return None, [self.predictions.fault("needs_confidence", f"there is no column {CONFIDENCE!r}; {hint}")]
        return read_numbers(self.predictions, column)

    def _read_labels(self, name: str, reads: set[Reads], sound: bool) -> list[Fault]:
        keys = self.keys
        truth, prediction, faults = read_pair(
            self.truth, self.predictions, name, "sets" if self.with_sets else "labels"
        )
        confidence, odd = self._confidence
        needs_confidence = self.by_class or bool(reads & _NEEDS_CONFIDENCE)
        if not faults and self.with_sets:
            faults += _set_faults(self.truth, name, truth, keys.truth, keys.n)
        if not faults and (self.with_sets or "scores" in reads):
            faults += _set_faults(self.predictions, name, prediction, keys.predictions, keys.n)
        faults += odd if needs_confidence else []
        if faults or not sound:
            return faults
        columns: dict[str, pa.Array] = {}
        if self.with_sets:
            columns = {
                "truth": _sets(truth, keys.truth, keys.n),
                "prediction": _sets(prediction, keys.predictions, keys.n),
            }
        else:
            rows = keys.prediction_rows if not self.by_class else _surest(prediction, confidence, keys.predictions)
            columns = {"truth": _take(truth, keys.truth_rows), "prediction": _take(prediction, rows)}
            if not odd and self.predictions.find_column(CONFIDENCE) != name:
                columns[CONFIDENCE] = _take(confidence, rows)
        columns[VALUE] = agreement(columns["truth"], columns["prediction"])
        if "scores" in reads or self.by_class:
            columns["scores"] = _scores(prediction, confidence, keys)
        self._columns[name, "labels"] = columns
        return []

    def _read_values(self, name: str, reads: Literal["numbers", "rows"], sound: bool) -> list[Fault]:
        truth, prediction, faults = read_pair(self.truth, self.predictions, name, reads)
        if faults or not sound:
            return faults
        keys = self.keys
        columns = {"truth": _take(truth, keys.truth_rows), "prediction": _take(prediction, keys.prediction_rows)}
        if reads == "numbers" and not self._confidence[1] and self.predictions.find_column(CONFIDENCE) != name:
            columns[CONFIDENCE] = _take(self._confidence[0], keys.prediction_rows)
        if reads == "rows" and keys.truth_rows is not None:
            columns = {side: column.take(pa.array(keys.truth)) for side, column in columns.items()}
        self._columns[name, reads] = columns
        return []

    # Rankings

    def _read_ranking(self, name: str, reads: Literal["ranking"], sound: bool) -> list[Fault]:
        truth, answer, faults = read_pair(self.truth, self.predictions, name, "labels")
        keys, column = self.keys, self.predictions.find_column(RANK)
        if not faults:
            faults += _set_faults(self.predictions, name, answer, keys.predictions, keys.n)
            faults += _set_faults(self.truth, name, truth, keys.truth, keys.n)
        if column is None:
            return [*faults, self.predictions.fault("missing_column", f"there is no column {RANK!r}; give ranks")]
        rank, odd = read_numbers(self.predictions, column)
        faults += odd or self._rank_faults(column, rank)
        if sound and not faults:
            self._columns[name, reads] = _ranking(truth, answer, rank, keys)
        return faults

    def _rank_faults(self, column: str, rank: pa.Array) -> list[Fault]:
        numbers = np.asarray(rank)
        bad = (numbers < 1) | (np.floor(numbers) != numbers)
        if bad.any():
            message = lambda row: f"is {numbers[row]:g}; ranks are 1, 2, 3, …"  # noqa: E731
            return self.predictions.faults(bad, column, "wrong_type", message)
        twice = repeated(_pair_codes(self.keys.predictions, rank.dictionary_encode()))
        message = lambda row: f"another row of this example has the rank {numbers[row]:g} already"  # noqa: E731
        return self.predictions.faults(twice, column, "duplicate_row", message)

    # Boxes

    def _read_targets_with_boxes(self, targets: Sequence[str]) -> list[Fault]:
        """The boxes of each target; of several targets the one that holds none is their label."""
        boxes = [name for name in targets if len(targets) == 1 or _holds_boxes(self.truth.column(name))]
        others = [name for name in targets if name not in boxes]
        if not boxes or len(others) > 1:
            listed = ", ".join(map(repr, others))
            message = f"{listed} hold no boxes; give one column of boxes, x_min,y_min,x_max,y_max, and one of labels"
            return [self.truth.fault("wrong_type", message)]
        labels: Sequence[pa.Array | None] = (None, None)
        faults = list[Fault]()
        if others:
            *pair, faults = read_pair(self.truth, self.predictions, others[0], "labels")
            labels = pair if faults else [column.dictionary_decode() for column in pair]
        for name in boxes:
            own = [_read_boxes(self.truth, name, self.keys.truth, labels[0], None)]
            number, wrong = (None, []) if self.predictions.find_column(CONFIDENCE) is None else self._confidence
            own.append(_read_boxes(self.predictions, name, self.keys.predictions, labels[1], number))
            faults += [*wrong, *chain.from_iterable(each for each in own if isinstance(each, list))]
            if not faults:
                self.boxes[name] = (own[0], own[1])  # type: ignore[assignment] # no list of faults
        return faults

    def image_columns(self, name: str) -> Columns:
        """The boxes of each image, one row for each, as the scorer `detection` has them."""
        truths, detections = self.boxes[name]
        n = 1 + int(max(np.asarray(side.image).max(initial=-1) for side in (truths, detections)))
        return {"truths": _by_image(truths, n), "detections": _by_image(detections, n)}


def _take(column: pa.Array, rows: np.ndarray | None) -> pa.Array:
    """The cells of some rows; all if None."""
    return column if rows is None else column.take(pa.array(rows))


def _sets(labels: pa.Array, codes: np.ndarray, n: int) -> pa.Array:
    """All labels of each example; a null adds none."""
    return lists_by_row(labels.drop_null().dictionary_decode(), codes[np.asarray(labels.indices.is_valid())], n)


def _set_faults(side: Side, name: str, column: pa.Array, codes: np.ndarray, n: int) -> list[Fault]:
    """Labels that an example has twice, and empty cells of examples with other rows."""
    again = lambda row: f"another row of this example has the label {column[row].as_py()!r} already"  # noqa: E731
    faults = side.faults(repeated(_pair_codes(codes, column)), name, "duplicate_label", again)
    if column.indices.null_count:
        alone = np.bincount(codes[(codes >= 0) & (codes < n)], minlength=n) == 1
        beside = np.flatnonzero(np.asarray(column.indices.is_null()) & (codes >= 0) & (codes < n))
        message = "is empty, but the example has other rows; an example without labels has one empty row"
        faults += side.faults(beside[~alone[codes[beside]]], name, "empty_value", message)
    return faults


def _surest(labels: pa.Array, confidence: pa.Array, codes: np.ndarray) -> np.ndarray:
    """The row of each example's most confident label; of equal confidences the first in the order of labels."""
    order = np.lexsort((np.asarray(labels.indices), -np.asarray(confidence), codes))
    sorted_codes = codes[order]
    return np.asarray(order[np.append(True, sorted_codes[1:] != sorted_codes[:-1])])


def _pair_codes(codes: np.ndarray, labels: pa.Array) -> np.ndarray:
    """A code for each example and label of a dictionary, -1 where one is missing."""
    pairs = codes * max(len(labels.dictionary), 1) + np.asarray(labels.indices.fill_null(0))
    pairs[(codes < 0) | np.asarray(labels.indices.is_null())] = -1
    return np.asarray(pairs)


def _scores(label: pa.Array, confidence: pa.Array, keys: Keys) -> pa.Array:
    """Of each example a confidence for each label that has one.

    An example whose only label is null has no labels. It has the confidence 0 for one label, as it has for all others,
    since metrics need a score in each row to fill in the absent ones.
    """
    texts = label.dictionary.cast(pa.string())
    indices, known = label.indices, label.indices.is_valid()
    if indices.null_count:
        indices = indices.fill_null(0) if len(texts) else indices
        confidence = pc.if_else(known, confidence, 0.0)
    text = pa.DictionaryArray.from_arrays(indices, texts)
    pairs = pa.StructArray.from_arrays([text, confidence], names=["label", "score"])
    return lists_by_row(pairs, keys.predictions, keys.n)


def _ranking(truth: pa.Array, answer: pa.Array, rank: pa.Array, keys: Keys) -> Columns:
    """The ranks of each example's answers, which of them are relevant, and the rank of the first of these."""
    relevant = np.isin(_pair_codes(keys.predictions, answer), _pair_codes(keys.truth, truth))
    order = np.lexsort((np.asarray(rank), keys.predictions))
    numbers, codes = np.asarray(rank)[order], keys.predictions[order]
    first = np.full(keys.n, np.inf)
    np.minimum.at(first, codes[relevant[order]], numbers[relevant[order]])
    return {
        "ranks": lists_by_row(pa.array(numbers), codes, keys.n),
        "grades": lists_by_row(pa.array(relevant[order].astype(np.float64)), codes, keys.n),
        "relevant": lists_by_row(pa.array(np.ones(len(truth))), keys.truth, keys.n),
        "first_rank": pa.array(first, mask=np.isinf(first)),
        "reciprocal_rank": pa.array(1 / first),
    }


def _holds_boxes(column: pa.Array) -> bool:
    """Whether the first cell that is not empty is a list of numbers, or a text of one."""
    if contents(column.type) != "text":
        return contents(column.type) == "lists"
    first = column.filter(pc.not_equal(column, "")).slice(0, 1).cast(pa.string())
    wrong: dict[int, str] = {}
    return pc.any(pc.greater(pc.list_value_length(cells.typed(first, "vector", wrong.__setitem__)), 1)).as_py() is True


def _read_boxes(
    side: Side, name: str, images: np.ndarray, label: pa.Array | None, confidence: pa.Array | None
) -> Boxes | list[Fault]:
    """The boxes of a column of texts or lists, or what is wrong with them."""
    column = side.column(name)
    empty = column.is_null()
    if contents(column.type) == "text":
        empty = pc.or_(empty, pc.equal(column, "").fill_null(False))
    message = "is empty; give x_min,y_min,x_max,y_max"
    if faults := side.faults(np.asarray(empty), name, "empty_value", message):
        return faults
    parts = {"image": pa.array(images), "box": column, CONFIDENCE: confidence, "label": label}
    try:
        boxes = Boxes.of({part: cells for part, cells in parts.items() if cells is not None}, side.name)
    except DataError as error:
        rows = {
            int(words[2]): each.message for each in error.faults if (words := each.where.split()[:3])[1:2] == ["row"]
        }
        listed = side.faults(np.array([*rows], np.int64), name, "wrong_type", rows.__getitem__)
        return listed or [side.fault("wrong_type", "holds no boxes; give x_min,y_min,x_max,y_max", column=name)]
    odd = ~(np.abs(boxes.corners) < _LARGEST).all(axis=0)
    return side.faults(odd, name, "not_finite", "has a number that is not finite, or far too large") or boxes


_LARGEST: Final = 1e150


def _by_image(boxes: Boxes, n: int) -> pa.Array:
    """The boxes of each of n images as JSON."""
    codes = np.asarray(boxes.image)
    order = np.argsort(codes, kind="stable")
    parts = np.split(order, np.searchsorted(codes[order], np.arange(1, n)))
    drawn = boxes.corners.T.tolist()
    if boxes.outline is not None:
        drawn = [
            box if outline is None else outline.ravel().tolist()
            for box, outline in zip(drawn, boxes.outline, strict=True)
        ]
    columns = {"box": drawn}
    if boxes.confidence is not None:
        columns[CONFIDENCE] = boxes.confidence.tolist()
    if boxes.label is not None:
        columns["label"] = boxes.label.to_pylist()
    images = ({name: [cells[row] for row in part] for name, cells in columns.items()} for part in parts)
    return pa.array([orjson.dumps(image).decode() for image in images], pa.string())
