"""Truth and predictions as the tables that kinds of metrics read: one row for each example, in the order of the index.

So not even the last digit of a value depends on the order of rows in a file. Only what is said to depend on it takes
the rows as they stand.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from evaluand.core.errors import Fault
from evaluand.core.key_columns import INDEX
from evaluand.metrics.base.labels import encode_labels
from evaluand.metrics.base.metric import VALUE
from evaluand.metrics.detection import Boxes
from evaluand.problem.reading import Keys, place, repeated
from evaluand.store.tables import SCORED

Columns = Mapping[str, pa.Array]


def table_of(columns: Sequence[Columns], targets: Sequence[str] | None) -> pa.Table:
    """The table of one target, or of several, one after the other."""
    n = len(next(iter(columns[0].values())))
    index = np.tile(np.arange(n), len(columns))
    status = pa.DictionaryArray.from_arrays(pa.array(np.zeros(len(index), np.int8)), pa.array([SCORED]))
    held = {name: _joined([each[name] for each in columns]) for name in columns[0]}
    if targets is not None:
        code = pa.array(np.repeat(np.arange(len(columns), dtype=np.int32), n))
        held["target"] = pa.DictionaryArray.from_arrays(code, pa.array(targets, pa.string()))
    return pa.table({INDEX: pa.array(index), "status": status, **held})


def _joined(columns: Sequence[pa.Array]) -> pa.Array:
    """Columns of several targets; labels of different types as text, since each target has its own."""
    if len({column.type for column in columns}) > 1:
        columns = [column.cast(column.type.value_type).cast(pa.large_string()) for column in columns]
    return columns[0] if len(columns) == 1 else pa.concat_arrays(columns)


def pairs(
    truth: pa.Array, predictions: Mapping[str, pa.Array], keys: Keys, *, as_filed: bool = False
) -> dict[str, pa.Array]:
    """One cell of each.

    Args:
        truth: the cells of the truth's rows.
        predictions: of the predictions' rows: `prediction`, and perhaps its `confidence`.
        keys: what the rows are about; each example has one of each.
        as_filed: the rows stay in the order of the truth.
    """
    given = {name: _taken(cells, keys.prediction_rows) for name, cells in predictions.items()}
    held = {"truth": _taken(truth, keys.truth_rows), **given}
    if as_filed and keys.truth_rows is not None:
        held = {name: column.take(pa.array(keys.truth)) for name, column in held.items()}
    return held


def with_value(columns: Columns) -> Columns:
    """With the column `value`: 1 where truth and prediction are the same, 0 elsewhere."""
    truth, prediction = columns["truth"], columns["prediction"]
    if pa.types.is_list(truth.type):
        (one, other), _ = encode_labels([truth, prediction])
    else:  # both have one dictionary
        one, other = np.asarray(truth.indices), np.asarray(prediction.indices)
    return {**columns, VALUE: pa.array((one == other).astype(np.float64))}


def _taken(column: pa.Array, rows: np.ndarray | None) -> pa.Array:
    return column if rows is None else column.take(pa.array(rows))


def sets(truth: pa.Array, prediction: pa.Array, keys: Keys) -> dict[str, pa.Array]:
    """All labels of each; null is none."""
    return {
        name: _lists(column.drop_null().dictionary_decode(), codes[np.asarray(column.indices.is_valid())], keys.n)
        for name, column, codes in (("truth", truth, keys.truth), ("prediction", prediction, keys.predictions))
    }


def set_faults(side: str, name: str, column: pa.Array, codes: np.ndarray, keys: Keys) -> list[Fault]:
    """Labels that an example has twice, and empty cells beside a label."""
    faults = []
    for row in repeated(pair_codes(codes, column)).tolist():
        told = f"{keys.names(codes[row])} has the label {column[row].as_py()!r} already"
        faults.append(Fault(place(side, row, name), told, code="duplicate_label"))
    if not column.indices.null_count:
        return faults
    empty = np.asarray(column.indices.is_null())
    many = np.bincount(codes[codes >= 0], minlength=keys.n) > 1
    for row in np.flatnonzero(empty & (codes >= 0)).tolist():
        if many[codes[row]]:
            told = "is empty, and the example has other rows; an example without labels has one row, which is empty"
            faults.append(Fault(place(side, row, name), told, code="empty_value"))
    return faults


def surest(labels: pa.Array, confidence: pa.Array, codes: np.ndarray) -> np.ndarray:
    """The row of each example's label of greatest confidence; of equal ones the first in the order of labels."""
    number = labels.indices if pa.types.is_dictionary(labels.type) else labels
    order = np.lexsort((np.asarray(number), -np.asarray(confidence), codes))
    held = codes[order]
    return np.asarray(order[np.append(True, held[1:] != held[:-1])])


def one_score_each(columns: Columns) -> bool:
    """Whether each example has a score for one class alone."""
    return bool((np.diff(np.asarray(columns["scores"].offsets)) == 1).all())


def say_the_same(columns: Columns) -> bool:
    """Whether scores of two classes add up to one number in every row, so that the one tells the other."""
    lists = columns["scores"]
    if not bool((np.diff(np.asarray(lists.offsets)) == 2).all()):
        return False
    total = np.asarray(pc.struct_field(lists.flatten(), "score")).reshape(-1, 2).sum(axis=1)
    return bool(np.ptp(total) < _ROUNDING * max(1.0, float(np.abs(total).max())))


_ROUNDING: Final = 1e-12


def pair_codes(codes: np.ndarray, labels: pa.Array) -> np.ndarray:
    """A code for each example and label of a dictionary, -1 where one is missing."""
    found = codes * max(len(labels.dictionary), 1)
    found += np.asarray(labels.indices.fill_null(0) if labels.indices.null_count else labels.indices)
    missing = codes < 0
    if labels.indices.null_count:
        missing |= np.asarray(labels.indices.is_null())
    found[missing] = -1
    return np.asarray(found)


def _lists(values: pa.Array, codes: np.ndarray, n: int) -> pa.Array:
    """The values of each example as a list, in the order of their rows."""
    if not bool((codes[1:] >= codes[:-1]).all()):
        order = np.argsort(codes, kind="stable")
        values, codes = values.take(pa.array(order)), codes[order]
    ends = np.concatenate([[0], np.cumsum(np.bincount(codes, minlength=n))])
    return pa.ListArray.from_arrays(pa.array(ends.astype(np.int32)), values)


def scores(truth: pa.Array, label: pa.Array, confidence: pa.Array, keys: Keys) -> dict[str, pa.Array]:
    """The truth of each example, and a confidence for each label that has one."""
    text = pa.DictionaryArray.from_arrays(label.indices, label.dictionary.cast(pa.string()))
    held = pa.StructArray.from_arrays([text, confidence], names=["label", "score"])
    return {"truth": _taken(truth, keys.truth_rows), "scores": _lists(held, keys.predictions, keys.n)}


def ranking(truth: pa.Array, answer: pa.Array, rank: pa.Array, keys: Keys) -> dict[str, pa.Array]:
    """The ranks of each example's answers, which of them are relevant, and the rank of the first of these."""
    relevant = np.isin(pair_codes(keys.predictions, answer), pair_codes(keys.truth, truth))
    order = np.lexsort((np.asarray(rank), keys.predictions))
    numbers, codes = np.asarray(rank)[order], keys.predictions[order]
    first = np.full(keys.n, np.inf)
    np.minimum.at(first, codes[relevant[order]], numbers[relevant[order]])
    return {
        "ranks": _lists(pa.array(numbers), codes, keys.n),
        "grades": _lists(pa.array(relevant[order].astype(np.float64)), codes, keys.n),
        "relevant": _lists(pa.array(np.ones(len(truth))), keys.truth, keys.n),
        "first_rank": pa.array(first, mask=np.isinf(first)),
        "reciprocal_rank": pa.array(1 / first),
    }


def images(truths: Boxes, detections: Boxes, keys: Keys) -> dict[str, pa.Array]:
    """The boxes of each image, as the scorer `detection` tells them."""
    return {
        "truths": pa.array(_by_image(truths, keys.truth, keys.n), pa.string()),
        "detections": pa.array(_by_image(detections, keys.predictions, keys.n), pa.string()),
    }


def _by_image(boxes: Boxes, codes: np.ndarray, n: int) -> list[str]:
    order = np.argsort(codes, kind="stable")
    parts = np.searchsorted(codes[order], np.arange(1, n))
    corners = [part.tolist() for part in np.split(boxes.corners.T[order], parts)]
    if boxes.confidence is None:
        return [orjson.dumps({"box": box}).decode() for box in corners]
    sure = [part.tolist() for part in np.split(boxes.confidence[order], parts)]
    return [orjson.dumps({"box": b, "confidence": c}).decode() for b, c in zip(corners, sure, strict=True)]
