"""Columns as JSON text and as digests of it: what identity covers, written by Arrow instead of row by row."""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Final

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from evaluand.core.identity import DIGEST_SIZE

TEXT: Final = pa.large_string()


def cell_texts(column: pa.Array) -> pa.Array:
    """The JSON text of each cell, as orjson writes it; fields of structs stay in their order.

    Example:
        >>> cell_texts(pa.array([{"label": "a", "score": 0.5}, None])).to_pylist()
        ['{"label":"a","score":0.5}', 'null']
    """
    kind, types = column.type, pa.types
    if not len(column):
        return pa.array([], TEXT)
    if types.is_dictionary(kind):
        text = cell_texts(column.dictionary).take(column.indices)
    elif types.is_string(kind) or types.is_large_string(kind):
        text = quoted(column)
    elif types.is_signed_integer(kind) or types.is_boolean(kind) or types.is_null(kind):
        text = column.cast(TEXT)
    elif types.is_struct(kind) and kind.num_fields:
        text = join_texts(object_pieces(dict(zip(kind.names, map(cell_texts, column.flatten()), strict=True))))
        text = pc.if_else(column.is_valid(), text, None)
    elif types.is_list(kind) or types.is_large_list(kind):
        text = join_texts(["[", join_lists(cell_texts(column.flatten()), column.value_lengths()), "]"])
    elif types.is_float64(kind):
        text = pa.array(orjson.dumps(column.to_pylist())[1:-1].decode().split(","), TEXT)
    else:
        text = pa.array([orjson.dumps(value).decode() for value in column.to_pylist()], TEXT)
    return pc.fill_null(text, "null")


def quoted(column: pa.Array) -> pa.Array:
    """Texts in quotes, with what JSON escapes."""
    text = column.cast(TEXT)
    content, ends = _content(text)
    characters = np.frombuffer(content[ends[0] : ends[-1]], np.uint8)
    if (characters < ord(" ")).any():
        return pa.array([orjson.dumps(value).decode() for value in column.to_pylist()], TEXT)
    for mark in "\\", '"':
        if (characters == ord(mark)).any():
            text = pc.replace_substring(text, mark, f"\\{mark}")
    return join_texts(['"', text, '"'])


def object_pieces(cells: dict[str, pa.Array]) -> list[Any]:
    """The pieces of an object's text, by its keys, for `join_texts`."""
    pieces: list[Any] = []
    for place, (key, texts) in enumerate(cells.items()):
        pieces += [f"{',' if place else ''}{orjson.dumps(key).decode()}:", texts]
    return ["{", *pieces, "}"]


def join_texts(pieces: Sequence[Any]) -> pa.Array:
    """The concatenation of texts and columns of texts in each row; null where a column is."""
    merged: list[Any] = []
    for piece in pieces:
        if isinstance(piece, str) and merged and isinstance(merged[-1], str):
            merged[-1] += piece
        else:
            merged.append(piece)
    columns = [pa.scalar(piece, TEXT) if isinstance(piece, str) else piece for piece in merged]
    return pc.binary_join_element_wise(*columns, pa.scalar("", TEXT))


def join_lists(texts: pa.Array, lengths: pa.Array) -> pa.Array:
    """Texts of consecutive rows joined by commas; null where a length is.

    Args:
        texts: of all rows' items, one after another.
        lengths: the number of items of each row.
    """
    ends = np.cumsum(np.asarray(lengths.fill_null(0)))
    offsets = pa.array(np.concatenate([[0], ends]), pa.int64(), mask=np.append(np.asarray(lengths.is_null()), False))
    return pc.binary_join(pa.LargeListArray.from_arrays(offsets, texts), pa.scalar(",", TEXT))


def digests_of(texts: pa.Array) -> list[bytes]:
    """The 16-byte digest of each text."""
    content, ends = _content(texts)
    hashed, size = hashlib.blake2b, DIGEST_SIZE
    return [hashed(content[start:end], digest_size=size).digest() for start, end in pairwise(ends)]


def _content(texts: pa.Array) -> tuple[memoryview, memoryview]:
    """The characters of texts as UTF-8, and where in them each text ends; the first end is where the first begins."""
    _, ends, characters = texts.buffers()
    places = memoryview(ends).cast("q") if ends else memoryview(array("q", [0]))
    return memoryview(characters or b""), places[texts.offset : texts.offset + len(texts) + 1]
