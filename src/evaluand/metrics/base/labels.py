"""Encode columns of labels, or of sets of labels, as codes into one vocabulary, without an object per row."""

from collections.abc import Iterable, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evaluand.core.errors import DataError, SpecError, with_article


def encode_labels(columns: Sequence[pa.Array | pa.ChunkedArray]) -> tuple[list[np.ndarray], np.ndarray]:
    """Encode columns of labels into one shared vocabulary.

    Args:
        columns: of one type each: text, integers, bools, or lists of these, which are sets of labels; null gets the
            code -1. Dictionary arrays are used as they are, which costs next to nothing.

    Returns:
        The codes of each column, and the vocabulary of distinct labels; a set is the sorted tuple of its labels.

    Raises:
        SpecError: a column holds something else, columns hold labels of different types, or a list repeats a label.

    Example:
        >>> (truth, prediction), vocabulary = encode_labels([pa.array(["b", "a"]), pa.array(["a", None])])
        >>> truth, prediction, vocabulary
        (array([0, 1]), array([ 1, -1]), array(['b', 'a'], dtype=object))
        >>> encode_labels([pa.array([["b", "a"], [], ["a", "b"]])])
        ([array([1, 0, 1])], array([(), ('a', 'b')], dtype=object))
    """
    arrays = [_storage_array(column) for column in columns]
    values = [column.dictionary if pa.types.is_dictionary(column.type) else column for column in arrays]
    kinds = {kind for column in values if (kind := _label_kind(column.type))}
    if len(kinds) > 1:
        one, other = sorted(kinds)[:2]
        raise SpecError(f"labels are {one} in one column and {other} in another; give all columns one type")
    ends = np.cumsum([len(column) for column in values])[:-1]
    types = [column.type for column in values if not pa.types.is_null(column.type)]
    found, vocabulary = (_encode_sets if types and is_list(types[0]) else _encode_labels)(values, types)
    codes = np.split(found, ends)
    if not any(pa.types.is_dictionary(column.type) for column in arrays):
        return codes, vocabulary
    return _codes_of_rows(arrays, codes, vocabulary)


def encode_members(
    sets: Sequence[pa.Array | pa.ChunkedArray], labels: Sequence[pa.Array] = ()
) -> tuple[list[np.ndarray], list[np.ndarray], np.ndarray]:
    """Encode columns of sets as matrices of rows × labels, with further columns of single labels.

    Args:
        sets: columns of lists of labels; null is a missing set.
        labels: columns of labels of the same type.

    Returns:
        For each column of sets a matrix, 1 for each label of a row's set and 0 for the others, NaN for a missing set;
        for each further column its codes; and the labels.

    Raises:
        SpecError: as `encode_labels`.

    Example:
        >>> [matrix], _, vocabulary = encode_members([pa.array([["b", "a"], [], ["b"]])])
        >>> matrix.tolist(), vocabulary.tolist()
        ([[1.0, 1.0], [0.0, 0.0], [1.0, 0.0]], ['b', 'a'])
    """
    columns = [_storage_array(column) for column in sets]
    columns = [column.dictionary_decode() if pa.types.is_dictionary(column.type) else column for column in columns]
    columns = [column.cast(pa.list_(pa.null())) if pa.types.is_null(column.type) else column for column in columns]
    codes, vocabulary = encode_labels([*(column.flatten() for column in columns), *labels])
    matrices = []
    for column, code in zip(columns, codes, strict=False):
        if (code < 0).any():
            raise SpecError(_NULL_LABEL)
        matrix = np.zeros((len(column), len(vocabulary)))
        np.add.at(matrix, (np.asarray(pc.list_parent_indices(column)).astype(np.int64), code), 1.0)
        twice = np.argwhere(matrix > 1)
        if len(twice):
            raise SpecError(_label_twice(vocabulary[twice[0, 1]]))
        matrix[~np.asarray(column.is_valid())] = np.nan
        matrices.append(matrix)
    return matrices, codes[len(columns) :], vocabulary


def one_vocabulary(parts: Sequence[np.ndarray]) -> tuple[np.ndarray, list[np.ndarray]]:
    """All labels of several vocabularies, in the order they appear.

    Returns:
        The labels, and for each vocabulary an array: its code → code in the result. -1 and -2 stay unchanged.
    """
    place: dict[Any, int] = {}
    codes = [[place.setdefault(label, len(place)) for label in part.tolist()] for part in parts]
    return object_array(list(place)), [np.array([*each, -2, -1], np.int64) for each in codes]


def in_order(labels: np.ndarray) -> np.ndarray:
    """The order in which labels are shown: numbers by size, text by code points, false before true; type by type."""
    values = labels.tolist()
    return np.array(sorted(range(len(values)), key=lambda place: (str(type(values[place])), values[place])), np.int64)


def contents(kind: pa.DataType) -> str:
    """What a column of a type holds, in one word; empty if all its cells are null."""
    if pa.types.is_null(kind):
        return ""
    if pa.types.is_boolean(kind):
        return "bools"
    if pa.types.is_integer(kind):
        return "integers"
    if pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return "numbers"
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return "text"
    return "lists" if is_list(kind) else "other"


def label_column(scores: pa.Array, kind: pa.DataType) -> pa.Array:
    """All labels of lists of label and score, in the type of the others; a DataError if one has no such form."""
    texts = pc.struct_field(pc.list_flatten(scores), "label")
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    if is_list(kind):
        kind = kind.value_type
    storage = kind.storage_type if isinstance(kind, pa.ExtensionType) else kind
    if pa.types.is_null(storage) or pa.types.is_string(storage) or pa.types.is_large_string(storage):
        return texts
    try:
        if pa.types.is_dictionary(texts.type):
            return pa.DictionaryArray.from_arrays(texts.indices, texts.dictionary.cast(storage))
        return texts.cast(storage)
    except pa.ArrowInvalid as error:
        raise DataError(f"the scores have labels of another type than the truth: {error}") from None


def score_matrix(scores: pa.Array, code: np.ndarray, n_labels: int) -> np.ndarray:
    """Lists of label and score as a matrix of rows × labels, NaN for no score; `code` has all their labels."""
    each = len(code) // max(len(scores), 1)
    if each and scores.null_count == 0 and (pc.list_value_length(scores).to_numpy() == each).all():
        order = code.reshape(-1, each)
        if (order == order[0]).all():  # every row has the same labels in the same order
            matrix = np.asarray(pc.struct_field(pc.list_flatten(scores), "score")).reshape(-1, each)
            place = np.argsort(order[0])
            if each == n_labels and (order[0][place] == np.arange(each)).all():
                return matrix[:, place]
    found = np.full((len(scores), n_labels), np.nan)
    row = np.asarray(pc.list_parent_indices(scores)).astype(np.int64)
    found[row, code] = np.asarray(pc.struct_field(pc.list_flatten(scores), "score"))
    return found


def _codes_of_rows(
    columns: Sequence[pa.Array], codes: Sequence[np.ndarray], vocabulary: np.ndarray
) -> tuple[list[np.ndarray], np.ndarray]:
    """The codes of rows, from the codes of dictionaries, and the labels that occur in rows."""
    by_row = [
        _take_codes(code, column.indices) if pa.types.is_dictionary(column.type) else code
        for column, code in zip(columns, codes, strict=True)
    ]
    used = np.zeros(len(vocabulary) + 1, np.bool_)
    for code in by_row:
        used[code] = True  # that of a missing label, -1, comes last
    if used[:-1].all():
        return by_row, vocabulary
    place = np.where(used, np.cumsum(used) - 1, -1)
    return [place[code] for code in by_row], vocabulary[used[:-1]]


def _take_codes(code: np.ndarray, indices: pa.Array) -> np.ndarray:
    if indices.null_count:
        code, indices = np.append(code, -1), indices.fill_null(-1)
    if (code == np.arange(len(code))).all():
        return np.asarray(indices).astype(np.int64)
    return np.take(code, np.asarray(indices))


def _storage_array(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    if isinstance(column, pa.ExtensionArray):  # of JSON: its canonical text
        column = column.storage
    return column


def _label_kind(kind: pa.DataType) -> str:
    content = contents(kind)
    if content in ("", "bools", "integers", "text"):
        return content
    if content == "lists":
        return f"lists of {_label_kind(kind.value_type) or 'text'}"
    raise SpecError(
        f"labels must be text, integers, bools or lists of these, not {with_article(str(kind))}; convert the column"
    )


def is_list(kind: pa.DataType) -> bool:
    """Whether a column of this type holds lists."""
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind))


def _encode_labels(columns: Sequence[pa.Array], types: Sequence[pa.DataType]) -> tuple[np.ndarray, np.ndarray]:
    width = _widest(types)
    encoded = pa.chunked_array([column.cast(width) for column in columns], width).dictionary_encode()
    encoded = encoded.combine_chunks() if encoded.num_chunks else pa.array([], width).dictionary_encode()
    codes = np.asarray(encoded.indices.fill_null(-1)).astype(np.int64)
    return codes, object_array(encoded.dictionary.to_pylist())


def _widest(kinds: Sequence[pa.DataType]) -> pa.DataType:
    if not kinds or pa.types.is_boolean(kinds[0]):
        return kinds[0] if kinds else pa.string()
    return pa.int64() if pa.types.is_integer(kinds[0]) else kinds[0] if len(set(kinds)) == 1 else pa.large_string()


def _encode_sets(columns: Sequence[pa.Array], types: Sequence[pa.DataType]) -> tuple[np.ndarray, np.ndarray]:
    """Encode sets label by label, from the smallest: the code of a prefix and the next label give a new code."""
    lists = [column.cast(pa.large_list(_widest([kind.value_type for kind in types]))) for column in columns]
    code, labels = _encode_labels([column.flatten() for column in lists], [column.type.value_type for column in lists])
    if (code < 0).any():
        raise SpecError(_NULL_LABEL)
    lengths = np.concatenate([np.asarray(pc.fill_null(pc.list_value_length(column), 0)) for column in lists])
    known = np.concatenate([np.asarray(column.is_valid()) for column in lists])
    order = in_order(labels)
    rank = np.argsort(order)[code]
    row = np.repeat(np.arange(len(lengths)), lengths)
    sort = np.lexsort((rank, row))
    rank = rank[sort]
    twice = np.flatnonzero((rank[1:] == rank[:-1]) & (row[1:] == row[:-1]))
    if len(twice):
        raise SpecError(_label_twice(labels[order[rank[twice[0]]]]))
    starts = np.cumsum(lengths) - lengths
    found, many = np.zeros(len(lengths), np.int64), 1  # 0 is the empty set
    for place in range(int(lengths.max(initial=0))):
        longer = np.flatnonzero(lengths > place)
        step = pa.array(found[longer] * len(labels) + rank[starts[longer] + place]).dictionary_encode()
        found[longer] = many + np.asarray(step.indices)
        many += len(step.dictionary)
    found[~known] = -1
    sets, first, codes = np.unique(found, return_index=True, return_inverse=True)
    names = [labels[place] for place in order.tolist()]
    members = (rank[starts[i] : starts[i] + lengths[i]].tolist() for i in first[sets >= 0].tolist())
    return codes - int((sets < 0).any()), object_array([tuple(names[place] for place in each) for each in members])


_NULL_LABEL: Final = "a list of labels contains null; remove it from the list"


def _label_twice(label: Any) -> str:
    return f"a list has the label {label!r} twice; a set has each label once"


def object_array(values: Iterable[Any]) -> np.ndarray:
    """An array of Python objects, never of their items."""
    items = list(values)
    return np.fromiter(items, np.object_, len(items))
