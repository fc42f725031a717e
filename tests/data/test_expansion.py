"""Arrow and Parquet files that stand for more than their limit are refused; others are read."""

from __future__ import annotations

import re
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, strategies as st
from support.thinned import thinned

from evaluand.core.errors import DataError
from evaluand.data.formats import columnar
from evaluand.data.sources import open_file

LONG = "x" * 100_000
ROWS = 100_000


def places(values: pa.Array, n: int = ROWS) -> pa.Array:
    return pa.DictionaryArray.from_arrays(pa.array(np.zeros(n, np.int8)), values)


def runs(values: pa.Array, ends: list[int]) -> pa.Array:
    return pa.RunEndEncodedArray.from_arrays(pa.array(ends, pa.int64()), values)


def views(lists: int, length: int) -> pa.Array:
    starts, sizes = pa.array(np.zeros(lists, np.int32)), pa.array(np.full(lists, length, np.int32))
    return pa.ListViewArray.from_arrays(starts, sizes, pa.array(np.zeros(length, np.int8)))


def text_views(n: int) -> pa.Array:
    """Views of one long text: its length, how it begins, and where it is."""
    one = np.frombuffer(len(LONG).to_bytes(4, "little") + LONG[:4].encode() + bytes(8), np.uint8)
    return pa.Array.from_buffers(
        pa.string_view(), n, [None, pa.py_buffer(np.tile(one, n)), pa.py_buffer(LONG.encode())]
    )


def union(n: int) -> pa.Array:
    codes, offsets = pa.array(np.zeros(n, np.int8)), pa.array(np.zeros(n, np.int32))
    return pa.UnionArray.from_dense(codes, offsets, [pa.array([LONG])])


ARROW: dict[str, Callable[[], pa.Array]] = {
    "dictionary": lambda: places(pa.array([LONG])),
    "dictionary in an object": lambda: pa.StructArray.from_arrays([places(pa.array([LONG]))], names=["a"]),
    "run of texts": lambda: runs(pa.array([LONG]), [ROWS]),
    "run of numbers": lambda: runs(pa.array([1]), [(1 << 31) - 1]),
    "nulls": lambda: pa.nulls(1 << 30),
    "views of lists": lambda: views(100_000, 100_000),
    "views of texts": lambda: text_views(ROWS),
    "union": lambda: union(ROWS),
}


def write_arrow(path: Path, column: pa.Array, **options: Any) -> Path:
    with pa.ipc.new_file(path, pa.schema([("input", column.type)]), options=pa.ipc.IpcWriteOptions(**options)) as file:
        file.write_batch(pa.RecordBatch.from_arrays([column], ["input"]))
    return path


def read_all(path: Path) -> list[Any]:
    return [row["input"] for batch in open_file(path).batches() for row in batch.to_pylist()]


@thinned("kind", sorted(ARROW), every=3)
def test_an_arrow_file_that_expands_without_end_is_refused(tmp_path: Path, kind: str) -> None:
    path = write_arrow(tmp_path / "rows.arrow", ARROW[kind]())
    with pytest.raises(DataError, match=r"^[^\n]*rows\.arrow: would expand to [\d,.]+ .B or more; the limit"):
        read_all(path)


@pytest.mark.parametrize("codec", ["zstd", "lz4"])
def test_compressed_buffers_are_counted_as_they_expand(
    tmp_path: Path, codec: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_arrow(tmp_path / "rows.arrow", pa.array(np.zeros(1_000_000)), compression=codec)
    assert sum(read_all(path)) == 0
    monkeypatch.setattr(columnar, "MAX_BYTES", 1_000_000)
    monkeypatch.setattr(columnar, "MAX_EXPANSION", 1)
    with pytest.raises(DataError, match="would expand to"):
        read_all(path)


PARQUET: dict[str, Callable[[], pa.Array]] = {
    "dictionary": lambda: pa.array([LONG] * 6_000),
    "long and short texts": lambda: pa.array([LONG, *["y"] * 1000] * 20),
    "nulls": lambda: pa.nulls(40_000_000, pa.string()),
    "equal numbers": lambda: pa.array(np.zeros(40_000_000, np.int64)),
}


@pytest.mark.parametrize("kind", [pytest.param("dictionary", marks=pytest.mark.slow), "nulls", "equal numbers"])
def test_a_parquet_file_that_expands_without_end_is_refused(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.table({"input": PARQUET[kind]()}), path, compression="zstd")
    with pytest.raises(DataError, match=r"^[^\n]*rows\.parquet: would expand to [\d,.]+ .B[^\n]*; the limit"):
        read_all(path)


def test_few_long_texts_of_a_dictionary_are_read(tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    column = PARQUET["long and short texts"]()
    pq.write_table(pa.table({"input": column}), path)
    assert read_all(path) == column.to_pylist()


def test_a_batch_counts_as_often_as_the_footer_names_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, parts = tmp_path / "rows.arrow", [10_000, *[1] * 40]
    with pa.ipc.new_file(path, pa.schema([("input", pa.int64())])) as file:
        for n in parts:
            file.write_batch(pa.record_batch({"input": np.zeros(n, np.int64)}))
    monkeypatch.setattr(columnar, "MAX_BYTES", 1_000_000)
    monkeypatch.setattr(columnar, "MAX_EXPANSION", 1)
    assert len(read_all(path)) == 10_040
    content = path.read_bytes()
    end = len(content) - 10 - footer_bytes(content)
    head, footer = content[:end], bytearray(content[end:])
    starts = [found.start() for found in re.finditer(rb"\xff{4}", head)][1 : 1 + len(parts)]
    blocks = [footer.index(struct.pack("<q", start)) for start in starts]
    for block in blocks:
        footer[block : block + 24] = footer[blocks[0] : blocks[0] + 24]
    path.write_bytes(head + footer)
    with pytest.raises(DataError, match=r"^[^\n]*rows\.arrow: would expand to"):
        read_all(path)


@pytest.mark.parametrize("kind", [pa.string_view(), pa.list_(pa.string_view(), 2), pa.list_(pa.string_view())])
def test_views_of_texts_have_their_values_in_lists_too(tmp_path: Path, kind: pa.DataType) -> None:
    values = ["a", LONG] if kind == pa.string_view() else [["a", LONG], ["b", None]]
    assert read_all(write_arrow(tmp_path / "rows.arrow", pa.array(values, kind))) == values


def test_lists_of_a_fixed_size_count_where_they_are_null(tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.table({"input": pa.nulls(2, pa.list_(pa.list_(pa.int8(), 1000), 100))}), path)
    assert read_all(path) == [None, None]
    pq.write_table(pa.table({"input": pa.nulls(400, pa.list_(pa.list_(pa.int8(), 1000), 100))}), path)
    with pytest.raises(DataError, match=r"^[^\n]*rows\.parquet: would expand to 640 MB"):
        open_file(path)


READ = """
import sys
from pathlib import Path
from evaluand.core.errors import DataError
from evaluand.data.sources import open_file

try:
    for batch in open_file(sys.argv[1]).batches():
        batch.to_pylist()
except DataError:
    print(Path("/proc/self/status").read_text().partition("VmHWM:")[2].split()[0])
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads the largest memory from /proc")
@pytest.mark.parametrize("kind", ["nulls", "run of numbers", "union", "Parquet"])
def test_what_states_its_size_is_refused_before_it_takes_memory(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "rows.parquet"
    if kind == "Parquet":
        pq.write_table(pa.table({"input": PARQUET["nulls"]()}), path, compression="zstd")
    else:
        path = write_arrow(tmp_path / "rows.arrow", ARROW[kind]())
    found = subprocess.run([sys.executable, "-c", READ, path], capture_output=True, text=True, check=True)
    assert int(found.stdout) < 500_000  # kB


@pytest.mark.slow
def test_ten_million_labels_are_read(tmp_path: Path) -> None:
    labels = pa.DictionaryArray.from_arrays(pa.array(np.arange(10_000_000) % 3, pa.int8()), pa.array(["a", "b", "c"]))
    for path in (write_arrow(tmp_path / "rows.arrow", labels), tmp_path / "rows.parquet"):
        if path.suffix == ".parquet":
            pq.write_table(pa.table({"input": labels}), path)
        assert sum(batch.num_rows for batch in open_file(path).batches()) == 10_000_000


TEXTS = st.lists(st.none() | st.text(max_size=5), max_size=8)


@given(TEXTS)
def test_honest_files_are_read_whatever_their_layout(
    tmp_path_factory: pytest.TempPathFactory, values: list[Any]
) -> None:
    folder, plain = tmp_path_factory.mktemp("rows"), pa.array(values, pa.string())
    for column in (plain, plain.dictionary_encode(), plain.cast(pa.string_view())):
        assert read_all(write_arrow(folder / "rows.arrow", column)) == values
    for options in ({"use_dictionary": True}, {"use_dictionary": False, "column_encoding": "DELTA_BYTE_ARRAY"}):
        pq.write_table(pa.table({"input": plain}), folder / "rows.parquet", **options)
        assert read_all(folder / "rows.parquet") == values


@pytest.mark.parametrize("compression", ["uncompressed", "lz4", "zstd"])
def test_a_file_of_another_writer_with_several_batches_is_read(tmp_path: Path, compression: Any) -> None:
    pl = pytest.importorskip("polars")
    frame = pl.DataFrame({"input": [f"row {i % 7}" for i in range(1000)]})
    frame.write_ipc(tmp_path / "rows.arrow", compression=compression, record_batch_size=300)
    assert read_all(tmp_path / "rows.arrow") == frame["input"].to_list()


def footer_bytes(content: bytes) -> int:
    return int.from_bytes(content[-10:-6], "little")


@pytest.mark.filterwarnings("ignore::evaluand.data.source.DataNote")  # the name of a column may have changed
@pytest.mark.parametrize("suffix", ["parquet", "arrow"])
@given(data=st.data())
def test_a_changed_file_ends_in_rows_or_in_one_sentence(
    tmp_path_factory: pytest.TempPathFactory, suffix: str, data: st.DataObject
) -> None:
    path = tmp_path_factory.mktemp("rows") / f"rows.{suffix}"
    column = pa.array(["a", None, "b"] * 3)
    if suffix == "parquet":
        pq.write_table(pa.table({"input": column}), path)
    else:
        write_arrow(path, column)
    content = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 3))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    path.write_bytes(content)
    found = outcome(path)
    assert found == len(column) or path.name in str(found)


def outcome(path: Path) -> int | str:
    """How many rows a file has, or why it is refused."""
    try:
        return sum(batch.num_rows for batch in open_file(path).batches())
    except DataError as error:
        return str(error)
