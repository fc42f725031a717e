"""Labels as codes: columns of text, integers or bools as positions in one vocabulary, without an object per row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evaluand.errors import DataError, SpecError, with_article
from evaluand.ids import decode


def coded(columns: Sequence[pa.Array]) -> tuple[list[np.ndarray], np.ndarray]:
    """The codes of each column, and the vocabulary they all share, in the order labels first appear.

    Args:
        columns: of one type each; null, which is no label, gets the code -1.

    Raises:
        SpecError: a column holds real numbers, or columns hold labels that are never equal.

    Example:
        >>> (truth, prediction), vocabulary = coded([pa.array(["b", "a"]), pa.array(["a", None])])
        >>> truth, prediction, vocabulary
        (array([0, 1]), array([ 1, -1]), array(['b', 'a'], dtype=object))
    """
    plain = [_plain(column) for column in columns]
    kinds = {kind for column in plain if (kind := _kind(column.type))}
    if len(kinds) > 1:
        one, other = sorted(kinds)[:2]
        raise SpecError(f"labels of {one} and of {other} are never equal; give all columns one type")
    width = _widest([column.type for column in plain if not pa.types.is_null(column.type)])
    encoded = pa.concat_arrays([column.cast(width) for column in plain]).dictionary_encode()
    codes = np.asarray(encoded.indices.fill_null(-1)).astype(np.int64)
    ends = np.cumsum([len(column) for column in plain])[:-1]
    labels = _values(encoded.dictionary, columns)
    return np.split(codes, ends), np.fromiter(labels, np.object_, len(labels))


def label_column(scores: pa.Array, kind: pa.DataType) -> pa.Array:
    """All labels of a column of scores by label, in the type of the labels they are to be among.

    Args:
        scores: lists of label (text) and score.
        kind: the type of other labels.

    Raises:
        DataError: a label is none of that type.
    """
    texts = pc.struct_field(pc.list_flatten(scores), "label")
    storage = kind.storage_type if isinstance(kind, pa.ExtensionType) else kind
    if pa.types.is_null(storage) or pa.types.is_string(storage) or pa.types.is_large_string(storage):
        return texts
    try:
        return texts.cast(storage)
    except pa.ArrowInvalid as error:
        raise DataError(f"the scores have labels of another type than the truth: {error}") from None


def score_matrix(scores: pa.Array, code: np.ndarray, n_labels: int) -> np.ndarray:
    """Scores by label as rows × labels, NaN where a row has none for a label.

    Args:
        scores: lists of label and score.
        code: of all their labels, one after the other.
    """
    found = np.full((len(scores), n_labels), np.nan)
    row = np.asarray(pc.list_parent_indices(scores)).astype(np.int64)
    found[row, code] = np.asarray(pc.struct_field(pc.list_flatten(scores), "score"))
    return found


def _plain(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    if isinstance(column, pa.ExtensionArray):
        column = column.storage
    return column.dictionary_decode() if pa.types.is_dictionary(column.type) else column


def _kind(kind: pa.DataType) -> str:
    if pa.types.is_null(kind):
        return ""
    if pa.types.is_boolean(kind):
        return "bools"
    if pa.types.is_integer(kind):
        return "integers"
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return "text"
    raise SpecError(f"labels are text, integers or bools, and not {with_article(str(kind))}; convert the column")


def _widest(kinds: Sequence[pa.DataType]) -> pa.DataType:
    if not kinds or pa.types.is_boolean(kinds[0]):
        return kinds[0] if kinds else pa.string()
    return pa.int64() if pa.types.is_integer(kinds[0]) else kinds[0] if len(set(kinds)) == 1 else pa.large_string()


def _values(dictionary: pa.Array, columns: Sequence[pa.Array]) -> list[Any]:
    found: list[Any] = dictionary.to_pylist()
    if any(isinstance(column.type, pa.ExtensionType) for column in columns):
        return [value if value is None else _json(value) for value in found]
    return found


def _json(text: str) -> Any:
    """A label that is JSON: text, numbers and bools as they are, else its canonical text."""
    value = decode(text)
    return value if isinstance(value, str | int) else text
