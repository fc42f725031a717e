"""Truth and predictions checked and aligned by their index, as each kind of metric reads them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evaluand.core.errors import Fault
from evaluand.core.files import cells
from evaluand.evaluation.prediction_table import PredictionColumns, convert
from evaluand.metrics.base.labels import contents
from evaluand.metrics.detection.boxes import Boxes
from evaluand.metrics.detection.outlines import FEWEST, read_outline
from evaluand.predictions.problem import tables
from evaluand.predictions.problem.definitions import Reads
from evaluand.predictions.problem.reading import (
    CONFIDENCE,
    PREDICTIONS,
    RANK,
    TRUTH,
    Keys,
    Side,
    cell_place,
    match_keys,
    read_labels,
    read_numbers,
    read_pair,
    repeated,
    row_faults,
    same_labels,
)

_SINGLE: Final = ("labels", "numbers", "rows", "confidence")
"""What is read of one row for each example."""


@dataclass(frozen=True)
class AlignedTables:
    """Both tables, and the columns that metrics read of them.

    Attributes:
        index: the columns of the index.
        keys: which example each row belongs to; None where the indexes cannot be compared.
        with_sets: whether an example may have several labels.
        by_class: whether predictions have a row with a confidence for each class.
    """

    truth: Side
    predictions: Side
    index: tuple[str, ...]
    keys: Keys | None
    with_sets: bool
    by_class: bool = False

    @cached_property
    def _columns(self) -> dict[tuple[str, Reads], tables.Columns]:
        """What `faults` has found sound, by target."""
        return {}

    @cached_property
    def boxes(self) -> dict[str, tuple[Boxes, Boxes]]:
        """The boxes of each target."""
        return {}

    def as_read(self, reads: Reads) -> Reads:
        """What is read of the rows: `sets` are single labels where no example has several."""
        return "labels" if reads == "sets" and not self.with_sets else reads

    def faults(self, targets: Sequence[str], reads: set[Reads]) -> list[Fault]:
        """Checks rows and cells of all targets, and stores the sound ones for `columns`."""
        faults = list[Fault]()
        needed = {self.as_read(each) for each in reads}
        if self.keys is not None and needed - {"boxes"}:
            one_each = bool(needed.intersection(_SINGLE))
            faults += row_faults(
                self.truth,
                self.predictions,
                self.index,
                self.keys,
                one_truth=one_each or ("scores" in needed and not self.with_sets),
                one_prediction=one_each and not self.by_class,
            )
        if "boxes" in needed:
            faults += self._read_targets_with_boxes(targets)
        for name in targets:
            for each in sorted(needed - {"boxes"}):
                faults += self._read(name, each, sound=not faults)
        return faults

    def columns(self, name: str, reads: Reads) -> tables.Columns:
        """The columns of a target for metrics that read `reads`."""
        return self._columns[name, self.as_read(reads)]

    def has_ranked_answer(self, name: str) -> bool:
        """Whether the ranking of any example has an answer that is in its truth."""
        first = self.columns(name, "ranking")["first_rank"]
        return bool(first.null_count < len(first))

    def faults_of_truth(self, name: str) -> list[Fault]:
        """Why a further column of the truth cannot be read as numbers."""
        if name not in self.truth.table.column_names:
            message = f"there is no column {name!r}, which a metric reads; add it, or choose another metric"
            return [Fault(TRUTH, message, code="missing_column")]
        return read_numbers(self.truth, name)[1]

    def numbers_of_truth(self, name: str) -> pa.Array:
        """A further column of the truth, one number for each example."""
        assert self.keys is not None  # else there were faults
        return tables.take_rows(read_numbers(self.truth, name)[0], self.keys.truth_rows)

    def prediction_columns(self, name: str, type: str) -> PredictionColumns:
        """A target as the scorer `prediction` has it: one row for each example, in the order of the index."""
        keys = self.keys
        assert keys is not None  # else there were faults
        confidence = self.predictions.find_column(CONFIDENCE)
        confidence = None if confidence == name else confidence
        if self.with_sets:
            truth, prediction, _ = read_pair(self.truth, self.predictions, name, "sets")
            lists = tables.sets(truth, prediction, keys)
            scores = self._columns[name, "scores"]["scores"] if (name, "scores") in self._columns else None
            true, predicted = (convert(lists[side], "labels") for side in ("truth", "prediction"))
            return PredictionColumns("labels", true, predicted, scores=scores)
        truth = tables.take_rows(self.truth.column(name), keys.truth_rows)
        if confidence is not None and not keys.aligned and len(repeated(keys.predictions)):
            return self._class_scores(name, truth, type)
        prediction = tables.take_rows(self.predictions.column(name), keys.prediction_rows)
        numbers = None if confidence is None else read_numbers(self.predictions, confidence)[0]
        return PredictionColumns(
            type,
            convert(truth, type),
            convert(prediction, type),
            None if numbers is None else tables.take_rows(numbers, keys.prediction_rows),
        )

    def _class_scores(self, name: str, truth: pa.Array, type: str) -> PredictionColumns:
        (labels, _), numbers = read_labels(self.predictions, name), self._confidence[0]
        assert self.keys is not None  # else there were faults
        assert numbers is not None
        labels = same_labels(labels, labels, "")[1]
        best = pa.array(tables.most_confident(labels, numbers, self.keys.predictions))
        by_class = tables.scores(truth, labels, numbers, self.keys)["scores"]
        prediction = convert(labels.take(best).dictionary_decode(), type)
        scores = by_class.cast(pa.list_(pa.struct([("label", pa.string()), ("score", pa.float64())])))
        return PredictionColumns(type, convert(truth, type), prediction, numbers.take(best), scores)

    def _read(self, name: str, reads: Reads, sound: bool) -> list[Fault]:
        faults, keys = list[Fault](), self.keys
        columns: tables.Columns | None = None
        if reads == "sets" or reads in _SINGLE:
            truth, prediction, faults = read_pair(self.truth, self.predictions, name, reads)
            if keys is not None and reads == "sets" and not faults:
                for side, column, codes in (
                    (self.truth, truth, keys.truth),
                    (self.predictions, prediction, keys.predictions),
                ):
                    faults += tables.set_faults(side.name, name, column, codes, keys)
            if reads == "confidence" or self.by_class:
                faults += self._confidence[1]
            if keys is not None and sound and not faults:
                columns = (
                    tables.sets(truth, prediction, keys)
                    if reads == "sets"
                    else self._pairs(truth, prediction, keys, reads)
                )
        else:
            columns, faults = self._read_table(name, reads, sound)
        if columns is not None:
            self._columns[name, reads] = columns
        return faults

    def _pairs(self, truth: pa.Array, prediction: pa.Array, keys: Keys, reads: Reads) -> tables.Columns:
        predicted = {"prediction": prediction} | ({CONFIDENCE: self._confidence[0]} if reads == "confidence" else {})
        if self.by_class:
            rows = pa.array(tables.most_confident(prediction, self._confidence[0], keys.predictions))
            predicted = {name: column.take(rows) for name, column in predicted.items()}
            keys = replace(keys, predictions=np.arange(keys.n))
        return tables.pairs(truth, predicted, keys, as_filed=reads == "rows")

    @cached_property
    def _confidence(self) -> tuple[pa.Array | None, list[Fault]]:
        column = self.predictions.find_column(CONFIDENCE)
        if column is None:
            return None, [Fault(PREDICTIONS, f"there is no column {CONFIDENCE!r}; {_HINT}", code="needs_confidence")]
        return read_numbers(self.predictions, column)

    def _read_table(self, name: str, reads: Reads, sound: bool) -> tuple[tables.Columns | None, list[Fault]]:
        """Columns of which each example has several rows of predictions: labels with a confidence or a rank."""
        keys = self.keys
        sides = (self.truth, self.predictions)
        (truth, wrong), (label, also) = (read_labels(side, name, sets=self.with_sets) for side in sides)
        faults = [*wrong, *also]
        if not faults:
            truth, label, faults = same_labels(truth, label, f"{PREDICTIONS}, column {name}")
        number, odd = None, list[Fault]()
        column = self.predictions.find_column(RANK)
        if reads == "scores":
            number, odd = self._confidence
        elif column is None:
            odd = [Fault(PREDICTIONS, f"there is no column {RANK!r}; give ranks", code="missing_column")]
        else:
            number, odd = read_numbers(self.predictions, column)
        if keys is not None and not faults:
            faults += tables.set_faults(PREDICTIONS, name, label, keys.predictions, keys)
            if reads == "ranking" or self.with_sets:
                faults += tables.set_faults(TRUTH, name, truth, keys.truth, keys)
        faults += odd
        if reads == "ranking" and column is not None and not odd:
            faults += self._rank_faults(column, number)
        if keys is None or faults or not sound:
            return None, faults
        if reads == "ranking":
            return tables.ranking(truth, label, number, keys), faults
        read_scores = tables.scores_of_sets if self.with_sets else tables.scores
        return read_scores(truth, label, number, keys), faults

    def _rank_faults(self, column: str, rank: pa.Array) -> Iterable[Fault]:
        numbers = np.asarray(rank)
        bad = (numbers < 1) | (np.floor(numbers) != numbers)
        yield from self.predictions.faults(
            bad, column, "wrong_type", lambda row: f"is {numbers[row]:g}; ranks are 1, 2, 3, …"
        )
        if self.keys is not None and not bad.any():
            codes = tables.pair_codes(self.keys.predictions, rank.dictionary_encode())
            for row in repeated(codes).tolist():
                message = f"{self.keys.name(self.keys.predictions[row])} has the rank {numbers[row]:g} already"
                yield Fault(cell_place(PREDICTIONS, row, column), message, code="duplicate_row")

    def _read_targets_with_boxes(self, targets: Sequence[str]) -> list[Fault]:
        """The boxes of each target; of several targets the one that holds none is their label."""
        boxes = [name for name in targets if len(targets) == 1 or _holds_boxes(self.truth.column(name))]
        others = [name for name in targets if name not in boxes]
        if not boxes or len(others) > 1:
            listed = ", ".join(map(repr, others))
            message = f"{listed} hold no boxes; give one column of boxes, x_min,y_min,x_max,y_max, and one of labels"
            return [Fault(TRUTH, message, code="wrong_type")]
        labels: Sequence[pa.Array | None] = (None, None)
        faults = list[Fault]()
        if others:
            *pair, faults = read_pair(self.truth, self.predictions, others[0], "labels")
            labels = pair if faults else [column.dictionary_decode() for column in pair]
        return [*faults, *(fault for name in boxes for fault in self._read_boxes(name, labels))]

    def _read_boxes(self, name: str, labels: Sequence[pa.Array | None]) -> list[Fault]:
        faults, boxes = list[Fault](), list[Boxes]()
        for side, label in zip((self.truth, self.predictions), labels, strict=True):
            corners, outline, wrong = _corners(side, name)
            faults += wrong
            confidence = side.find_column(CONFIDENCE) if side.name == PREDICTIONS else None
            number = None
            if confidence is not None:
                number, wrong = read_numbers(side, confidence)
                faults += wrong
            if not faults:
                image = np.asarray(self._images[side.name])
                confidences = None if number is None else np.asarray(number)
                boxes.append(Boxes(side.name, pa.array(image), corners, confidences, label, outline=outline))
        if not faults:
            self.boxes[name] = (boxes[0], boxes[1])
        return faults

    @cached_property
    def _images(self) -> dict[str, np.ndarray]:
        """The number of each row's image, for all images of both tables."""
        assert self.keys is not None
        both = Side(TRUTH, pa.concat_tables([side.table.select(self.index) for side in (self.truth, self.predictions)]))
        keys, _ = match_keys(both, both, self.index)
        assert keys is not None
        n = self.truth.table.num_rows
        return {TRUTH: keys.truth[:n], PREDICTIONS: keys.truth[n:]}

    def image_columns(self, name: str) -> tables.Columns:
        """The boxes of each image, one row for each."""
        codes = self._images
        n = int(max(codes[TRUTH].max(initial=-1), codes[PREDICTIONS].max(initial=-1))) + 1
        return tables.images(*self.boxes[name], Keys(codes[TRUTH], codes[PREDICTIONS], n, str))


def _holds_boxes(column: pa.Array) -> bool:
    """Whether the first cell that is not empty is a list of numbers, or a text of one."""
    if contents(column.type) != "text":
        return contents(column.type) == "lists"
    first = column.filter(pc.not_equal(column, "")).slice(0, 1).cast(pa.string())
    wrong: dict[int, str] = {}
    return pc.any(pc.greater(pc.list_value_length(cells.typed(first, "vector", wrong.__setitem__)), 1)).as_py() is True


_HINT: Final = "give a score for each class: rows of index, label and confidence"


def _corners(side: Side, name: str) -> tuple[np.ndarray, np.ndarray | None, list[Fault]]:
    """The boxes of a column of texts or lists, 4 × rows, and the outlines of polygons that are no boxes."""
    nothing = np.empty((4, 0)), None
    column = side.column(name)
    wrong: dict[int, str] = {}
    kind = contents(column.type)
    if kind == "text":
        column = cells.typed(column.cast(pa.string()), "vector", wrong.__setitem__)
    elif kind not in ("lists", ""):
        return *nothing, [
            Fault(f"{side.name}, column {name}", "holds no boxes; give x_min,y_min,x_max,y_max", code="wrong_type")
        ]
    faults = [Fault(cell_place(side.name, row, name), message, code="wrong_type") for row, message in wrong.items()]
    empty = np.asarray(column.is_null())
    empty[list(wrong)] = False
    faults += side.faults(empty, name, "empty_value", lambda row: "is empty; give x_min,y_min,x_max,y_max")
    if kind == "":
        return *nothing, faults
    length = np.asarray(pc.fill_null(pc.list_value_length(column), 4))
    faults += side.faults(
        (length != 4) & ((length < FEWEST) | (length % 2 == 1)),
        name,
        "wrong_type",
        lambda row: f"has {length[row]} numbers; a box is x_min,y_min,x_max,y_max, a polygon x,y of each corner",
    )
    if faults:
        return *nothing, faults
    numbers = np.asarray(column.flatten().cast(pa.float64()))
    odd = np.zeros(len(length), np.bool_)
    odd[np.repeat(np.arange(len(length)), length)[~(np.abs(numbers) < _LARGEST)]] = True
    faults += side.faults(odd, name, "not_finite", lambda row: "has a number that is not finite, or far too large")
    if faults or (length == 4).all():
        return np.ascontiguousarray(numbers.reshape(-1, 4).T) if not faults else nothing[0], None, faults
    wrong, boxes, outlines = zip(*(read_outline(each.as_py()) for each in column), strict=True)
    odd = np.array([fault is not None for fault in wrong], np.bool_)
    faults += side.faults(odd, name, "wrong_type", lambda row: f"{wrong[row]}")
    outline = np.full(len(outlines), None, np.object_)
    outline[:] = outlines
    return np.array(boxes, np.float64).T, outline if any(each is not None for each in outlines) else None, faults


_LARGEST: Final = 1e150
