"""Arguments of `evaluate` as columns: groupings, scores of classes, and columns of a table by their names."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import numpy as np
import pyarrow as pa

from evaluand.core.errors import DataError, SpecError
from evaluand.data.sources import missing_column, open_data
from evaluand.predictions.columns.tables import mark_json

_RESERVED: Final = frozenset(("row", "truth", "weight", "cluster"))  # the other columns of a saved dataset


def read_groupings(by: Any) -> Iterator[tuple[str, Any]]:
    for name, column in _named_arrays(by):
        text = "group" if name is None else str(name)
        if text in _RESERVED or text.startswith("_"):
            raise SpecError(f"by: {text!r} is a reserved name; choose another")
        yield text, column


def read_columns(data: Any) -> Mapping[str, pa.ChunkedArray]:
    """The columns of any table by name."""
    source = open_data(data, "data")
    table = mark_json(pa.Table.from_batches(source.batches(), source.schema))
    return dict(zip(table.column_names, table.columns, strict=True))


def take_columns(known: Mapping[str, Any], argument: str, value: Any, *, named: bool = False) -> Any:
    """The column with a name, or the columns of several; other values stay as they are."""
    if isinstance(value, Mapping):
        return {name: take_columns(known, argument, each) for name, each in value.items()}
    names = [value] if isinstance(value, str) else value
    if not isinstance(names, list | tuple) or not all(isinstance(name, str) for name in names) or not names:
        return value
    if not isinstance(value, str) and not (named and set(names) <= {*known}):
        return value
    for name in names:
        if name not in known:
            raise SpecError(f"{argument}: {missing_column(name, [*known])}")
    return {name: known[name] for name in names} if named else known[names[0]]


def _as_columns(frame: Any) -> Any:
    """The columns of a frame of another library by name; other values stay as they are."""
    is_frame = hasattr(frame, "__arrow_c_stream__") and hasattr(frame, "columns") and not hasattr(frame, "items")
    return read_columns(frame) if is_frame else frame


def _named_arrays(by: Any) -> Iterable[tuple[Any, Any]]:
    if by is None:
        return []
    by = _as_columns(by)
    if hasattr(by, "items") and not hasattr(by, "to_frame"):
        return by.items()  # type: ignore[no-any-return]
    if isinstance(by, list | tuple) and any(map(_is_array, by)):
        if all(getattr(column, "name", None) is not None for column in by):
            return [(column.name, column) for column in by]
        raise SpecError("by: the arrays of a list have no names; give a mapping, such as by={'size': [...], ...}")
    return [(getattr(by, "name", None), by)]


def _is_array(value: Any) -> bool:
    """Whether an item of a list is a column, and not a value to group by."""
    return hasattr(value, "__len__") and not isinstance(value, str | bytes | Mapping)


def check_one_index(arrays: Mapping[str, Any]) -> None:
    series = {name: value for name, value in arrays.items() if hasattr(value, "to_frame") and hasattr(value, "index")}
    indexed = [(name, value.index) for name, value in series.items()]
    for name, index in indexed[1:]:
        first, expected = indexed[0]
        if len(index) == len(expected) and not index.equals(expected):
            raise SpecError(f"{first} and {name} have different indexes; align them, or give {name}.to_numpy()")


def check_lengths(columns: Mapping[str, pa.Array]) -> None:
    lengths = {name: len(column) for name, column in columns.items()}
    if len(set(lengths.values())) > 1:
        sizes = ", ".join(f"{name} has {n:,}" for name, n in lengths.items())
        raise DataError(f"the arrays are of different lengths: {sizes}; give one value for each row")


def read_class_scores(scores: Any) -> Iterable[tuple[Any, Any]]:
    if scores is None:
        return []
    scores = _as_columns(scores)
    if not hasattr(scores, "items") or hasattr(scores, "to_frame"):
        raise SpecError('scores must be a mapping label → n numbers, such as {"cat": [0.9, 0.2], "dog": [0.1, 0.8]}')
    classes = [(plain_label(label), numbers) for label, numbers in scores.items()]
    if not classes:
        raise SpecError("scores is empty; give the scores of at least one class")
    return classes


def plain_label(value: Any) -> Any:
    """A label as a value of Python; an integer if NumPy or pandas made it a float.

    Example:
        >>> plain_label(np.int64(1)), plain_label(np.float64(0.0)), plain_label("cat")
        (1, 0, 'cat')
    """
    value = value.item() if isinstance(value, np.generic) else value
    return int(value) if isinstance(value, float) and value.is_integer() else value
