"""Cells as JSON text, against orjson on the same values one by one."""

from __future__ import annotations

import datetime as dt
from typing import Any

import orjson
import pyarrow as pa
import pytest
from hypothesis import given, strategies as st

from evaluand.core import identity
from evaluand.data.cell_texts import cell_texts, digests_of

PAIRS = pa.list_(pa.struct([("label", pa.string()), ("score", pa.float64())]))
TEXTS = st.text(st.characters(codec="utf-8"), max_size=8) | st.sampled_from(['"', "\\", '\\"', "\n", "\x00", "é\t", ""])
NUMBERS = st.floats()
CELLS: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    "texts": (pa.string(), TEXTS),
    "large texts": (pa.large_string(), TEXTS),
    "labels": (pa.dictionary(pa.int32(), pa.string()), TEXTS),
    "integers": (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    "booleans": (pa.bool_(), st.booleans()),
    "numbers": (pa.float64(), NUMBERS),
    "short numbers": (pa.float32(), st.floats(width=32)),
    "times": (pa.timestamp("us"), st.datetimes(dt.datetime(1980, 1, 1), dt.datetime(2100, 1, 1))),
    "sets": (pa.list_(pa.string()), st.lists(TEXTS, max_size=3)),
    "scores": (PAIRS, st.lists(st.fixed_dictionaries({"label": TEXTS, "score": st.none() | NUMBERS}), max_size=3)),
    "nothing": (pa.null(), st.none()),
    "objects without fields": (pa.struct([]), st.just({})),
}


@pytest.mark.parametrize("cells", CELLS)
@given(data=st.data(), skipped=st.integers(0, 2))
def test_cells_are_written_as_orjson_does(cells: str, data: st.DataObject, skipped: int) -> None:
    kind, values = CELLS[cells]
    column = pa.array(data.draw(st.lists(st.none() | values, max_size=5)), kind).slice(skipped)
    expected = [orjson.dumps(value) for value in column.to_pylist()]
    texts = cell_texts(column)
    assert texts.to_pylist() == [text.decode() for text in expected]
    assert digests_of(texts) == [*map(identity.digest_of_text, expected)]
