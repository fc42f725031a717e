"""Truth and predictions as the columns that kinds of metrics read: one row for each example, in the order of the index.

So not even the last digit of a value depends on the order of rows in a file. Only metrics that are defined by that
order read the rows as they are filed.
"""

from collections.abc import Mapping
from typing import Final

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from evaluand.core.errors import Fault
from evaluand.evaluation.prediction_table import agreement, lists_by_row
from evaluand.metrics.base.metric import VALUE
from evaluand.metrics.detection.boxes import Boxes
from evaluand.predictions.problem.reading import Keys, cell_place, repeated

Columns = Mapping[str, pa.Array]


def pairs(
    truth: pa.Array, predictions: Mapping[str, pa.Array], keys: Keys, *, as_filed: bool = False
) -> dict[str, pa.Array]:
    """One row of truth and prediction for each example; `as_filed` retains the order of the truth."""
    predicted = {name: take_rows(cells, keys.prediction_rows) for name, cells in predictions.items()}
    columns = {"truth": take_rows(truth, keys.truth_rows), **predicted}
    if as_filed and keys.truth_rows is not None:
        columns = {name: column.take(pa.array(keys.truth)) for name, column in columns.items()}
    return columns


def with_value(columns: Columns) -> Columns:
    """With the column `value`: 1 where truth and prediction are equal, 0 elsewhere."""
    return {**columns, VALUE: agreement(columns["truth"], columns["prediction"])}


def take_rows(column: pa.Array, rows: np.ndarray | None) -> pa.Array:
    """The cells of some rows; all if None."""
    return column if rows is None else column.take(pa.array(rows))


def sets(truth: pa.Array, prediction: pa.Array, keys: Keys) -> dict[str, pa.Array]:
    """All labels of each example; a null adds none."""
    return {
        name: lists_by_row(column.drop_null().dictionary_decode(), codes[np.asarray(column.indices.is_valid())], keys.n)
        for name, column, codes in (("truth", truth, keys.truth), ("prediction", prediction, keys.predictions))
    }


def set_faults(side: str, name: str, column: pa.Array, codes: np.ndarray, keys: Keys) -> list[Fault]:
    """Labels that an example has twice, and empty cells of examples with other rows."""
    faults = []
    for row in repeated(pair_codes(codes, column)).tolist():
        message = f"{keys.name(codes[row])} has the label {column[row].as_py()!r} already"
        faults.append(Fault(cell_place(side, row, name), message, code="duplicate_label"))
    if not column.indices.null_count:
        return faults
    empty = np.asarray(column.indices.is_null())
    many = np.bincount(codes[codes >= 0], minlength=keys.n) > 1
    for row in np.flatnonzero(empty & (codes >= 0)).tolist():
        if many[codes[row]]:
            message = "is empty, but the example has other rows; an example without labels has one empty row"
            faults.append(Fault(cell_place(side, row, name), message, code="empty_value"))
    return faults


def most_confident(labels: pa.Array, confidence: pa.Array, codes: np.ndarray) -> np.ndarray:
    """The row of each example's most confident label; of equal confidences the first in the order of labels."""
    number = labels.indices if pa.types.is_dictionary(labels.type) else labels
    order = np.lexsort((np.asarray(number), -np.asarray(confidence), codes))
    sorted_codes = codes[order]
    return np.asarray(order[np.append(True, sorted_codes[1:] != sorted_codes[:-1])])


def has_one_score_each(columns: Columns) -> bool:
    """Whether each example has a score for exactly one class."""
    return bool((np.diff(np.asarray(columns["scores"].offsets)) == 1).all())


def scores_are_complements(columns: Columns) -> bool:
    """Whether the scores of two classes have the same sum in every row, so one determines the other."""
    lists = columns["scores"]
    if not bool((np.diff(np.asarray(lists.offsets)) == 2).all()):
        return False
    total = np.asarray(pc.struct_field(lists.flatten(), "score")).reshape(-1, 2).sum(axis=1)
    return bool(np.ptp(total) < _ROUNDING * max(1.0, float(np.abs(total).max())))


_ROUNDING: Final = 1e-12


def pair_codes(codes: np.ndarray, labels: pa.Array) -> np.ndarray:
    """A code for each example and label of a dictionary, -1 where one is missing."""
    pairs = codes * max(len(labels.dictionary), 1)
    pairs += np.asarray(labels.indices.fill_null(0) if labels.indices.null_count else labels.indices)
    missing = codes < 0
    if labels.indices.null_count:
        missing |= np.asarray(labels.indices.is_null())
    pairs[missing] = -1
    return np.asarray(pairs)


def scores(truth: pa.Array, label: pa.Array, confidence: pa.Array, keys: Keys) -> dict[str, pa.Array]:
    """The truth of each example, and a confidence for each label that has one."""
    text = pa.DictionaryArray.from_arrays(label.indices, label.dictionary.cast(pa.string()))
    pairs = pa.StructArray.from_arrays([text, confidence], names=["label", "score"])
    return {"truth": take_rows(truth, keys.truth_rows), "scores": lists_by_row(pairs, keys.predictions, keys.n)}


def scores_of_sets(truth: pa.Array, label: pa.Array, confidence: pa.Array, keys: Keys) -> dict[str, pa.Array]:
    """The true labels of each example as text, and a confidence for each label that has one.

    An example whose only label is null has no labels. It has the confidence 0 for one label, as it has for all others,
    since metrics need a score in each row to fill in the absent ones.
    """
    truth, label = (pa.DictionaryArray.from_arrays(c.indices, c.dictionary.cast(pa.string())) for c in (truth, label))
    known, any_label = label.indices.is_valid(), bool(len(label.dictionary))
    filled = pa.DictionaryArray.from_arrays(
        label.indices.fill_null(0) if any_label else label.indices, label.dictionary
    )
    pairs = pa.StructArray.from_arrays(
        [filled.dictionary_decode(), pc.if_else(known, confidence, 0.0)], names=["label", "score"]
    )
    return {"truth": sets(truth, label, keys)["truth"], "scores": lists_by_row(pairs, keys.predictions, keys.n)}


def ranking(truth: pa.Array, answer: pa.Array, rank: pa.Array, keys: Keys) -> dict[str, pa.Array]:
    """The ranks of each example's answers, which of them are relevant, and the rank of the first of these."""
    relevant = np.isin(pair_codes(keys.predictions, answer), pair_codes(keys.truth, truth))
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


def images(truths: Boxes, detections: Boxes, keys: Keys) -> dict[str, pa.Array]:
    """The boxes of each image as JSON, as the scorer `detection` has them."""
    return {
        "truths": pa.array(_by_image(truths, keys.truth, keys.n), pa.string()),
        "detections": pa.array(_by_image(detections, keys.predictions, keys.n), pa.string()),
    }


def _by_image(boxes: Boxes, codes: np.ndarray, n: int) -> list[str]:
    order = np.argsort(codes, kind="stable")
    parts = np.split(order, np.searchsorted(codes[order], np.arange(1, n)))
    columns = {"box": [[_numbers(boxes, row) for row in part.tolist()] for part in parts]}
    if boxes.confidence is not None:
        columns["confidence"] = [boxes.confidence[part].tolist() for part in parts]
    if boxes.label is not None:
        columns["label"] = [boxes.label.take(pa.array(part)).to_pylist() for part in parts]
    return [orjson.dumps(dict(zip(columns, row, strict=True))).decode() for row in zip(*columns.values(), strict=True)]


def _numbers(boxes: Boxes, row: int) -> list[float]:
    """A box of four numbers, or the corners of a polygon."""
    outline = None if boxes.outline is None else boxes.outline[row]
    numbers: list[float] = (boxes.corners[:, row] if outline is None else outline.ravel()).tolist()
    return numbers


def count_distinct(one: pa.Array, other: pa.Array) -> int:
    """How many different values two columns have together."""
    return len(np.union1d(np.asarray(one), np.asarray(other)))
