"""The digests of rows: the same whichever way the canonical text of a batch is written, and computed once."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, strategies as st

from evaluand.core import identity
from evaluand.core.errors import DataError
from evaluand.core.key_columns import INDEX
from evaluand.data import row_values
from evaluand.data.dataset import Dataset
from evaluand.data.roles import Roles
from evaluand.data.row_values import RowDigests, RowValues, digest_rows
from evaluand.store.store import MemoryStore

TEXTS = st.text(max_size=8) | st.sampled_from(['"', "\\", "\x00", "\x1f", "\x7f", "\u2028", "null", "", "ü", "😀", ","])
COLUMNS = {
    "text": (pa.string(), TEXTS),
    "small": (pa.int8(), st.integers(-128, 127)),
    "whole": (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    "real": (pa.float64(), st.floats()),
    "flag": (pa.bool_(), st.booleans()),
    "list": (pa.list_(pa.int64()), st.lists(st.integers(0, 9), max_size=2)),
}
ROLES = [
    {"input": "a"},
    {"input": ("b", "a"), "expected": "c"},
    {"input": "a", "expected": {"x": "b", "ä": "c"}, "attributes": ("d", "a"), "metadata": ("c",)},
    {"input": "a", "id": "b", "weight": "c", "cluster": "d"},
]


@st.composite
def batches(draw: st.DrawFn) -> pa.RecordBatch:
    n = draw(st.integers(0, 5))
    kinds = [COLUMNS[draw(st.sampled_from(sorted(COLUMNS)))] for _ in range(4)]
    columns = [pa.array(draw(st.lists(st.none() | values, min_size=n, max_size=n)), kind) for kind, values in kinds]
    batch = pa.RecordBatch.from_arrays([pa.array(range(n), pa.int64()), *columns], [INDEX, "a", "b", "c", "d"])
    return batch.slice(draw(st.integers(0, n)))


@given(batches(), st.sampled_from(ROLES))
def test_the_digest_of_a_row_is_that_of_its_canonical_text(batch: pa.RecordBatch, declared: dict[str, Any]) -> None:
    roles = Roles(**declared)
    expected = [identity.digest(row) for row in RowValues(batch, roles).rows()]
    assert digest_rows(batch, roles) == expected
    digests = RowDigests(roles)
    assert digests.of(batch).to_pylist() == digests.of(batch).to_pylist() == expected


@given(st.lists(st.none() | TEXTS | st.just("x" * 50), max_size=6), st.lists(st.none() | st.floats(), max_size=6))
def test_texts_of_cells_are_those_of_their_values(texts: list[str | None], numbers: list[float | None]) -> None:
    for values, kind in ((texts, pa.string()), (numbers, pa.float64())):
        column = pa.array(values, kind)
        cells = row_values._texts_of_cells(column, pa.field("x", kind))
        if cells is None:
            assert any(value is not None and not math.isfinite(value) for value in numbers)
        else:
            assert cells.to_pylist() == [identity.encode(value).decode() for value in values]


@pytest.mark.parametrize(
    ("declared", "row"),
    [
        ({"attributes": ("$float",)}, ("2", None, {"$float": "1"}, None, None, {}, None)),
        ({"expected": {"$x": "b"}}, ("2", {"$x": "2"}, {}, None, None, {}, None)),
    ],
)
def test_a_name_that_begins_with_a_dollar_is_written_as_identity_does(declared: Any, row: tuple[Any, ...]) -> None:
    batch = pa.record_batch({INDEX: [0], "$float": ["1"], "b": ["2"]})
    assert digest_rows(batch, Roles(input="b", **declared)) == [identity.digest(row)]


def test_a_saved_dataset_has_the_digests_of_its_rows() -> None:
    rows = [{"input": f"{n}", "expected": n / 2, "topic": "a\nb"} for n in range(10)]
    data = Dataset.from_rows(rows, attributes="topic")
    stored = data.save(MemoryStore())
    assert [example.digest for example in stored] == [example.digest for example in data]
    assert stored.compute_digest() == data.compute_digest() == stored.digest


def test_a_file_that_changes_between_its_digest_and_its_rows_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text('{"input": "a"}\n')
    data = Dataset.from_file(path)
    assert data.digest
    path.write_text('{"input": "b"}\n')
    with pytest.raises(DataError, match="changed"):
        data.save(MemoryStore())
