"""Tables of truth, prediction, confidence and weight built from whole columns: the scorer `prediction`, vectorised.

Each row of the table is what the scorer `prediction` says of the same values one by one, so metrics give the same value
for arrays, for prediction files, for stored runs and for models at thresholds. No row becomes a Python object, except
where values are lists, objects or of mixed types.
"""

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, Final, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evaluand.core import identity, registry
from evaluand.core.errors import DataError, Fault, SpecError, with_article
from evaluand.core.key_columns import INDEX
from evaluand.data.cell_texts import TEXT, cell_texts, join_lists, join_texts, object_pieces
from evaluand.data.columns import cast, join_chunks, plain_type
from evaluand.evaluation.score_tables import ScoredRows
from evaluand.evaluation.scorer import Scorer
from evaluand.metrics.base.labels import contents, encode_labels
from evaluand.metrics.base.metric import VALUE, WEIGHT
from evaluand.store.tables import ABSTAINED, FAILED, SCORE_STATUSES, SCORED, SHARD_ROWS, scores_schema

SCORER: Final = "prediction"


@dataclass(frozen=True, eq=False)
class PredictionColumns:
    """Truth and predictions of n rows in the types of the scorer `prediction`; null is missing.

    Attributes:
        type: of truth and predictions, as the scorer's `type`.
        truth: n values, `json` as canonical text.
        prediction: n values of the same type.
        confidence: n numbers; None without confidences.
        scores: n lists of label and score; None without scores of classes.
        weight: n numbers; None if all rows count equally.
        further: columns that metrics read besides these, by name.

    Example:
        >>> columns = PredictionColumns.build(["cat", "dog", "dog"], ["cat", "cat", None])
        >>> columns.table().select(["status", "value"]).to_pylist()[1:]
        [{'status': 'scored', 'value': 0.0}, {'status': 'abstained', 'value': None}]
    """

    type: str
    truth: pa.Array
    prediction: pa.Array
    confidence: pa.Array | None = None
    scores: pa.Array | None = None
    weight: pa.Array | None = None
    further: Mapping[str, pa.Array] = field(default_factory=dict, kw_only=True)

    @classmethod
    def build(
        cls,
        truth: Any,
        prediction: Any,
        *,
        confidence: Any = None,
        scores: Mapping[Any, Any] | None = None,
        weight: Any = None,
        type: str | None = None,
    ) -> Self:
        """Checks columns and converts them to the scorer's types.

        Args:
            truth: n values: a list, an array, a series or an Arrow column.
            prediction: n values of the same type.
            confidence: n numbers, each the confidence of a prediction.
            scores: label → n numbers; the prediction's own score is then its confidence.
            weight: n numbers of 0 or more.
            type: one of the scorer's types; found from the values if None.

        Raises:
            SpecError: truth and predictions have types that are never equal, or a column has no numbers.
            DataError: a value does not fit its type; names the rows.
        """
        true, predicted = to_column("truth", truth), to_column("predictions", prediction)
        kind = type or common_type(true, predicted)
        predicted = convert(predicted, kind)
        by_class = {
            _class_label(label, kind): _finite_scores(label, column) for label, column in (scores or {}).items()
        }
        numbers = None if confidence is None else to_numbers("confidence", to_column("confidence", confidence))
        return cls(
            kind,
            convert(true, kind),
            predicted,
            _own_score(predicted, by_class, kind) if by_class and kind != "labels" else numbers,
            scores_by_row(dict(sorted(by_class.items()))) if by_class else None,
            None if weight is None else read_weights(weight),
        )

    def take(self, rows: pa.Array) -> Self:
        """Some rows, without further columns."""
        columns = (self.truth, self.prediction, self.confidence, self.scores, self.weight)
        return type(self)(self.type, *[None if column is None else column.take(rows) for column in columns])

    @property
    def scorer(self) -> Scorer:
        """The scorer that gives the same table row by row for `outputs`, but for further columns."""
        keys = {} if self.confidence is not None or self.scores is not None else {"prediction_key": None}
        kind: Any = registry.find("scorers", SCORER)
        scorer: Scorer = kind(type=self.type, **keys)
        if self.further:
            more = {"version": kind.version, "readable": (*scorer.readable, *self.further)}
            scorer = type(kind.__name__, (kind,), more)(**vars(scorer))
        return scorer

    def status(self) -> pa.DictionaryArray:
        """Of each row: abstained where a value is missing, failed where a number is infinite, else scored.

        An infinite truth fails even without a prediction.
        """
        return pa.DictionaryArray.from_arrays(pa.array(self._status_codes()), pa.array(SCORE_STATUSES))

    def _status_codes(self) -> np.ndarray:
        """The status of each row, as a position in `SCORE_STATUSES`."""
        truth, prediction = (self.truth, self.prediction) if self.type == "number" else (None, None)
        codes = np.full(len(self.truth), _CODES[SCORED], np.int8)
        codes[infinite_rows(prediction)] = _CODES[FAILED]
        codes[infinite_rows(self.confidence)] = _CODES[FAILED]
        codes[_null_rows(self.prediction)] = _CODES[ABSTAINED]
        codes[_null_rows(self.truth)] = _CODES[ABSTAINED]
        codes[infinite_rows(truth)] = _CODES[FAILED]
        return codes

    def table(self) -> pa.Table:
        """The scorer's table and further columns, with `_index_` from 0 and without columns that no row has.

        Raises:
            SpecError: a further column has the name of another.
        """
        columns = {INDEX: pa.array(np.arange(len(self.truth))), "status": self.status()}
        columns |= {"truth": self.truth, "prediction": self.prediction}
        if self.type != "number":
            columns[VALUE] = agreement(self.truth, self.prediction)
        optional = {"confidence": self.confidence, "scores": self.scores, "weight": self.weight, WEIGHT: self.weight}
        columns |= {name: column for name, column in optional.items() if column is not None}
        if (own := self._confidence_of) is not None:
            columns["confidence_of"] = own
        for name in self.further:
            if name in columns or name in scores_schema({}).names or name.startswith("_"):
                raise SpecError(f"columns: {name!r} is a reserved name; choose another")
        return pa.table(columns | dict(self.further))

    @property
    def _confidence_of(self) -> pa.Array | None:
        """The class whose score each confidence is."""
        if self.scores is None or self.confidence is None:
            return None
        return pc.if_else(pc.is_valid(self.confidence), self.prediction, None)

    def truths(self) -> Iterator[Any]:
        """Of each row the truth as a plain value."""
        return self._plain_values(self.truth)

    def outputs(self) -> Iterator[Any]:
        """Of each row the output of a task that predicts so: the prediction, with its confidence or scores."""
        return chain.from_iterable(part._outputs() for part in self._parts())

    def _parts(self) -> Iterator[Self]:
        """Its rows in parts, as all at once would take gigabytes as objects."""
        for start in range(0, max(len(self.truth), 1), SHARD_ROWS):
            yield self.take(pa.array(np.arange(start, min(start + SHARD_ROWS, len(self.truth)))))

    def _outputs(self) -> Iterator[Any]:
        predictions = self._plain_values(self.prediction)
        if self.confidence is None and self.scores is None:
            return predictions
        confidences: Iterator[Any] = iter(() if self.confidence is None else self.confidence.to_pylist())
        if self.scores is not None:
            confidences = ({pair["label"]: pair["score"] for pair in pairs} for pairs in self.scores.to_pylist())
        pairs = zip(predictions, confidences, strict=True)
        return ({"prediction": p, "confidence": c} if p is not None else None for p, c in pairs)

    def output_texts(self) -> pa.Array:
        """Of each row the canonical text of that output."""
        if not self._is_plain_json:
            return pa.array([*map(identity.encode, self.outputs())], TEXT)
        return pa.concat_arrays([part._output_texts() for part in self._parts()])

    def _output_texts(self) -> pa.Array:
        prediction = self.prediction.cast(TEXT) if self.type == "json" else cell_texts(self.prediction)
        if self.confidence is None and self.scores is None:
            return prediction.fill_null("null")
        confidence = cell_texts(self.confidence) if self.scores is None else _score_texts(self.scores)
        texts = join_texts(object_pieces({"confidence": confidence, "prediction": prediction}))
        return pc.if_else(self.prediction.is_valid(), texts, "null")

    @property
    def _is_plain_json(self) -> bool:
        """Whether outputs are JSON as they are: finite numbers, and no key that canonical text marks."""
        numbers = [self.prediction] if self.type == "number" else []
        if any(map(len, map(infinite_rows, [*numbers, self.confidence]))):
            return False
        if self.scores is None or pa.types.is_null(self.scores.type):
            return True
        finite = pc.all(pc.is_finite(self.scores.flatten().field("score"))).as_py() is not False
        return finite and not any(label.startswith("$") for label in scored_classes(self.scores))

    def scored_rows(self) -> ScoredRows:
        """What the scorer says of the rows that are scored, for `Evaluator.evaluate`."""
        scored = pa.array(self._status_codes() == _CODES[SCORED])
        value = agreement(self.truth, self.prediction) if self.type != "number" else pa.nulls(len(self.truth))
        columns = {"truth": self.truth, "prediction": self.prediction, "confidence": self.confidence}
        columns |= {"confidence_of": self._confidence_of, "scores": self.scores, "weight": self.weight}
        rows = np.flatnonzero(np.asarray(scored))
        cells = {
            name: pa.nulls(len(rows)) if column is None else column.filter(scored) for name, column in columns.items()
        }
        json = ("truth", "prediction", "confidence_of") if self.type == "json" else ()
        return ScoredRows(rows, value.filter(scored), cells, frozenset(json))

    def _plain_values(self, column: pa.Array) -> Iterator[Any]:
        values: Iterator[Any] = iter(column.to_pylist())
        return (None if text is None else identity.decode(text) for text in values) if self.type == "json" else values


_CODES: Final = {status: np.int8(code) for code, status in enumerate(SCORE_STATUSES)}
_NO_ROWS: Final = np.empty(0, np.int64)


def infinite_rows(numbers: pa.Array | None) -> np.ndarray:
    """The rows of a column of doubles with an infinite number; none of no column."""
    if numbers is None:
        return _NO_ROWS
    infinite = pc.is_inf(numbers)
    return np.flatnonzero(np.asarray(infinite.fill_null(False))) if pc.any(infinite).as_py() else _NO_ROWS


def _null_rows(column: pa.Array) -> np.ndarray:
    return np.flatnonzero(np.asarray(column.is_null())) if column.null_count else _NO_ROWS


def agreement(truth: pa.Array, prediction: pa.Array) -> pa.Array:
    """1 where truth and prediction are equal, 0 elsewhere; null where one is missing.

    Args:
        truth: values of one type, lists that are sets, or a dictionary of labels.
        prediction: the same; where both are dictionaries, of the same labels.
    """
    if pa.types.is_list(truth.type):
        (one, other), _ = encode_labels([truth, prediction])
    elif pa.types.is_dictionary(truth.type) and pa.types.is_dictionary(prediction.type):
        one, other = (np.asarray(column.indices.fill_null(-1)) for column in (truth, prediction))
    else:
        return pc.equal(truth, prediction).cast(pa.float64())
    missing = (one < 0) | (other < 0)
    return pa.array((one == other).astype(np.float64), mask=missing if missing.any() else None)


def scores_by_row(by_class: Mapping[str, pa.Array]) -> pa.Array:
    """Label → n scores as lists of label and score of each row, without the classes that a row has no score for."""
    table = np.stack([np.asarray(column.to_numpy(zero_copy_only=False), np.float64) for column in by_class.values()], 1)
    known = ~np.isnan(table)
    if known.all():
        rows, code = np.repeat(np.arange(len(table)), len(by_class)), np.tile(np.arange(len(by_class)), len(table))
        scores = table.ravel()
    else:
        rows, code = np.nonzero(known)
        scores = table[known]
    labels = pa.array([*by_class], pa.string()).take(pa.array(code))
    pairs = pa.StructArray.from_arrays([labels, pa.array(scores)], names=["label", "score"])
    return lists_by_row(pairs, rows, len(table))


def _score_texts(scores: pa.Array) -> pa.Array:
    """Of each row label → score as the text of an object, whose keys are sorted."""
    if pa.types.is_null(scores.type):
        return cell_texts(scores)
    pairs, labels = scores.flatten(), scores.flatten().field("label").dictionary_encode()
    rank = np.argsort(np.argsort(np.array(labels.dictionary.to_pylist(), object)))
    order = np.lexsort((rank[labels.indices.to_numpy()], scores.value_parent_indices().to_numpy()))
    texts = join_texts([cell_texts(labels), ":", cell_texts(pairs.field("score"))]).take(pa.array(order))
    return join_texts(["{", join_lists(texts, scores.value_lengths()), "}"]).fill_null("null")


def class_score(scores: pa.Array, label: str) -> np.ndarray:
    """The score of the class with this label, from lists of label and score; NaN where a row has none."""
    result = np.full(len(scores), np.nan)
    if not pa.types.is_null(scores.type):
        flat, rows = scores.flatten(), scores.value_parent_indices().to_numpy()
        places = np.flatnonzero(pc.equal(flat.field("label"), label).to_numpy(zero_copy_only=False))
        result[rows[places]] = flat.field("score").to_numpy(zero_copy_only=False)[places]
    return result


def scored_classes(scores: pa.Array) -> list[str]:
    """The labels that have scores."""
    return [] if pa.types.is_null(scores.type) else pc.unique(scores.flatten().field("label")).to_pylist()


def label_text(label: Any) -> str:
    """The text of a label, as scores of classes name it.

    Example:
        >>> label_text("yes"), label_text(True), label_text(1)
        ('yes', 'true', '1')
    """
    return label if isinstance(label, str) else identity.encode(label).decode()


def lists_by_row(values: pa.Array, rows: np.ndarray, n: int) -> pa.Array:
    """The values of each of n rows as a list, in the order in which they come; `rows` is the row of each value."""
    if not bool((rows[1:] >= rows[:-1]).all()):
        order = np.argsort(rows, kind="stable")
        values, rows = values.take(pa.array(order)), rows[order]
    ends = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=n))])
    return pa.ListArray.from_arrays(pa.array(ends.astype(np.int32)), values)


def scored_table(columns: Sequence[Mapping[str, pa.Array]], targets: Sequence[str] | None = None) -> pa.Table:
    """The columns of one target, or of several one after the other (of one length), as a table of scored rows."""
    n = len(next(iter(columns[0].values())))
    index = np.tile(np.arange(n), len(columns))
    status = pa.DictionaryArray.from_arrays(pa.array(np.zeros(len(index), np.int8)), pa.array([SCORED]))
    table = {INDEX: pa.array(index), "status": status}
    table |= {name: _concatenate([each[name] for each in columns]) for name in columns[0]}
    if targets is not None:
        code = pa.array(np.repeat(np.arange(len(columns), dtype=np.int32), n))
        table["target"] = pa.DictionaryArray.from_arrays(code, pa.array(targets, pa.string()))
    return pa.table(table)


def _concatenate(columns: Sequence[pa.Array]) -> pa.Array:
    """Columns of several targets; labels of different types as text, since each target has its own labels."""
    if len({column.type for column in columns}) > 1:
        columns = [column.cast(column.type.value_type).cast(pa.large_string()) for column in columns]
    return columns[0] if len(columns) == 1 else pa.concat_arrays(columns)


# Columns and their types


def to_column(name: str, values: Any) -> pa.Array:
    """An array as an Arrow column, NaN as null; values that Arrow cannot hold as canonical JSON.

    Args:
        name: how messages name it.
        values: a list, an array, a series or an Arrow column.

    Raises:
        SpecError: it is not a one-dimensional array.
        DataError: a value is not data; names the rows.
    """
    is_known = isinstance(values, pa.ChunkedArray) or hasattr(values, "iloc")  # `pa.array` reads NaN of pandas as null
    if hasattr(values, "__arrow_c_stream__") and not is_known:
        values = _read_stream(name, values)
    if isinstance(values, str | bytes | Mapping | Set) or not hasattr(values, "__len__"):
        raise SpecError(f"{name} is {with_article(type(values).__name__)}; give a list, an array or a column")
    if getattr(values, "ndim", 1) != 1:
        raise SpecError(f"{name} has {values.ndim} dimensions; give one value for each row")
    try:
        column = _as_arrow(values)
    except (pa.ArrowException, TypeError, OverflowError, UnicodeEncodeError):
        return _encode(name, values)
    if isinstance(column, pa.ChunkedArray):
        column = join_chunks(column)
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if pa.types.is_float16(column.type):
        column = column.cast(pa.float32())
    return nan_as_null(column)


def nan_as_null(column: pa.Array) -> pa.Array:
    """A column of which the cells that are no number are missing, as NumPy and pandas mark them."""
    if not pa.types.is_floating(column.type):
        return column
    if not pc.any(pc.is_nan(column)).as_py():
        return column
    return pc.if_else(pc.is_nan(column), None, column)


def _as_arrow(values: Any) -> pa.Array | pa.ChunkedArray:
    if isinstance(values, pa.Array | pa.ChunkedArray):
        return values
    if type(values) is np.ndarray and values.dtype.kind in "iuf":
        return pa.array(values.copy())  # the array may change later, and NaN is found faster afterwards
    column = pa.array(values, from_pandas=True)
    if pa.types.is_primitive(column.type) and isinstance(column, pa.Array):
        return pa.concat_arrays([column, column[:0]])  # a series of pandas may change later, too
    return column


def _read_stream(name: str, values: Any) -> pa.ChunkedArray:
    """A series of polars, or a table of one column, in the plain layout of its values."""
    column = pa.chunked_array(values)
    if pa.types.is_struct(column.type) and hasattr(values, "columns"):
        if column.type.num_fields != 1:
            columns = ", ".join(field.name for field in column.type)
            raise SpecError(f"{name} is a table with the columns {columns}; give one of them")
        column = pa.chunked_array([chunk.field(0) for chunk in column.chunks], column.type.field(0).type)
    return cast(column, plain_type(column.type), name)


def common_type(truth: pa.Array, predictions: pa.Array) -> str:
    """The type of the scorer `prediction` that both columns fit; a SpecError if their values are never equal."""
    kinds = {_type_of(column) for column in (truth, predictions)} - {""}
    if kinds <= {"integer", "number"}:
        whole = all(_are_integers(column) for column in (truth, predictions))
        return "integer" if kinds and whole else "number" if kinds else "text"
    if kinds == {"labels"} and not (_are_sets(truth) and _are_sets(predictions)):
        return "json"
    if len(kinds) == 1:
        return kinds.pop()
    if "json" in kinds or "labels" in kinds:
        return "json"
    one, other = _PLURAL[_type_of(truth)], _PLURAL[_type_of(predictions)]
    raise SpecError(f"truth holds {one} and predictions {other}, which are never equal; convert one")


def convert(column: pa.Array, kind: str) -> pa.Array:
    """A column in the type of the scorer `prediction`.

    Raises:
        DataError: a value does not fit in 64 bits.
    """
    if kind == "json":
        return (column if column.type == _JSON else _encode("a value", column.to_pylist())).storage
    try:
        column = column.cast(_TYPES[kind])
        return _sort_lists(column) if kind == "labels" else column
    except pa.ArrowInvalid as error:
        raise DataError(f"a value does not fit in 64 bits: {error}") from None


def to_numbers(name: str, column: pa.Array) -> pa.Array:
    """A column of numbers as doubles; a SpecError if it holds something else."""
    if _type_of(column) not in ("integer", "number", ""):
        raise SpecError(f"{name} holds {_PLURAL.get(_type_of(column), 'objects')}; give numbers")
    return column.cast(pa.float64())


_JSON: Final = pa.json_(pa.string())
_PLURAL: Final = {"boolean": "bools", "integer": "integers", "number": "numbers", "text": "text"}
_SINGULAR: Final = {plural: singular for singular, plural in _PLURAL.items()}
_TYPES: Final = {
    "text": pa.string(),
    "integer": pa.int64(),
    "number": pa.float64(),
    "boolean": pa.bool_(),
    "labels": pa.list_(pa.string()),
}


def _encode(name: str, values: Any) -> pa.Array:
    texts, faults = [], []
    for row, value in enumerate(values):
        missing = value is None or (isinstance(value, float) and value != value)
        try:
            texts.append(None if missing else identity.encode(value).decode())
        except DataError as error:
            faults.append(Fault(f"{name}, row {row}", str(error)))
    if faults:
        raise DataError(faults)
    return pa.ExtensionArray.from_storage(_JSON, pa.array(texts, pa.string()))


def _type_of(column: pa.Array) -> str:
    holds = contents(column.type)
    if holds == "lists":
        return "labels" if contents(column.type.value_type) in ("", "text") else "json"
    return {**_SINGULAR, "": ""}.get(holds, "json")


def _are_sets(column: pa.Array) -> bool:
    """Whether no list has a label twice, or a null."""
    if pa.types.is_null(column.type):
        return True
    row, label = pc.list_parent_indices(column), column.flatten()
    pairs = pa.table({"row": row, "label": label}).group_by(["row", "label"], use_threads=False).aggregate([])
    return bool(label.null_count == 0 and pairs.num_rows == len(label))


def _are_integers(column: pa.Array) -> bool:
    """Whether numbers are integers, also as floats, which pandas makes of integers with gaps."""
    if not pa.types.is_floating(column.type):
        return not pa.types.is_decimal(column.type)
    if len(column) > HEAD and not _are_integers(column[:HEAD]):
        return False
    fits = pc.less(pc.abs(column), 2.0**63)
    whole = pc.and_(fits, pc.equal(pc.floor(column), column))
    return pc.all(whole, min_count=0).as_py() is not False


HEAD: Final = 1000
"""The rows at the beginning of a column that mostly answer a question about all."""


def _sort_lists(column: pa.Array) -> pa.Array:
    """Lists with their labels in order, as the scorer gives them."""
    row, label = pc.list_parent_indices(column), column.flatten()
    order = pc.sort_indices(pa.table({"row": row, "label": label}), [("row", "ascending"), ("label", "ascending")])
    lengths = pc.list_value_length(column)
    offsets = pa.array(np.concatenate([[0], np.cumsum(np.asarray(pc.fill_null(lengths, 0)))]), pa.int32())
    lists = pa.ListArray.from_arrays(offsets, label.take(order))
    return pc.if_else(column.is_valid(), lists, None) if column.null_count else lists


# Scores and weights


def _class_label(label: Any, kind: str) -> str:
    """The text of a class's label; a SpecError if no prediction could have it."""
    value = label.item() if isinstance(label, np.generic) else label
    types: dict[str, Any] = {"text": str, "integer": int, "boolean": bool, "labels": str}
    if kind not in types:
        raise SpecError(f"scores need classes, but a prediction is {with_article(kind)}; give text, integers or bools")
    if not isinstance(value, types[kind]) or (kind == "integer" and isinstance(value, bool)):
        raise SpecError(
            f"scores have the label {value!r}, but predictions are {_PLURAL.get(kind, 'lists of text')}; "
            "give labels of one type"
        )
    return label_text(value)


def _finite_scores(label: Any, values: Any) -> pa.Array:
    name = f"score of {label!r}"
    numbers = to_numbers(name, to_column(name, values))
    rows = infinite_rows(numbers).tolist()
    if rows:
        raise DataError(Fault(f"{name}, row {row}", "is infinite; give a finite number") for row in rows)
    return numbers


def _own_score(predictions: pa.Array, by_class: Mapping[str, pa.Array], kind: str) -> pa.Array:
    """The score of each prediction's own class."""
    texts = predictions if kind == "text" else predictions.cast(pa.string())
    place = pc.index_in(texts, pa.array([*by_class], texts.type))
    return pc.choose(place, *by_class.values())


def read_weights(values: Any) -> pa.Array:
    """Weights as doubles; a DataError names the rows of those that are no finite number of 0 or more."""
    weights = to_numbers("weight", to_column("weight", values))
    bad = pc.invert(pc.and_(pc.is_finite(weights), pc.greater_equal(weights, 0.0))).fill_null(True)
    rows = np.flatnonzero(np.asarray(bad)).tolist()
    if rows:
        originals = np.asarray(values, object)  # NaN and None are both null in the column
        raise DataError(
            Fault(f"weight, row {row}", f"{_name_missing(originals[row])} is not a finite number of 0 or more")
            for row in rows
        )
    return weights


def _name_missing(value: Any) -> str:
    return "NaN" if isinstance(value, float) and value != value else str(value)
