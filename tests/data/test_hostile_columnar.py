"""Parquet and Arrow files that were damaged, or made to do damage."""

from __future__ import annotations

import base64
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.places import ROOT_FOLDER

from evaluand import Dataset
from evaluand.core.errors import DataError
from evaluand.data.sources import open_file

FAR = [10**14, -(10**14)]  # seconds, some three million years


def table(column: pa.Array) -> pa.Table:
    return pa.table({"input": ["a"] * len(column), "more": column})


def write(path: Path, rows: pa.Table) -> Path:
    if path.suffix == ".parquet":
        pq.write_table(rows, path)
    else:
        with pa.ipc.new_file(path, rows.schema) as writer:
            writer.write_table(rows)
    return path


def read_all(path: Path) -> list[pa.RecordBatch]:
    return list(open_file(path).batches())


@pytest.mark.parametrize(
    "column",
    [
        pa.array([FAR[0]], pa.timestamp("s")),
        pa.array([FAR[1]], pa.timestamp("s")),
        pa.array([2**31 - 1], pa.date32()),
        pa.array([[1, FAR[0]]], pa.list_(pa.timestamp("s"))),
        pa.array([{"a": {"b": FAR[0]}}], pa.struct({"a": pa.struct({"b": pa.timestamp("s")})})),
        pa.array([FAR[0]], pa.timestamp("s", "UTC")).dictionary_encode(),
        pa.array([[("a", FAR[0])]], pa.map_(pa.string(), pa.timestamp("s"))),
    ],
    ids=lambda column: str(column.type),
)
def test_times_that_no_calendar_has_are_refused_with_their_column(column: pa.Array, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"rows\.arrow: more: a time is outside of the years 1 to 9999"):
        read_all(write(tmp_path / "rows.arrow", table(column)))


@pytest.mark.parametrize("suffix", ["arrow", "parquet"])
def test_the_first_and_the_last_time_are_read(suffix: str, tmp_path: Path) -> None:
    times = pa.array([-62_135_596_800_000_000, None, 253_402_300_799_999_999], pa.timestamp("us"))
    path = write(tmp_path / f"rows.{suffix}", table(times))
    assert [row["more"].year for row in pa.Table.from_batches(read_all(path)).to_pylist() if row["more"]] == [1, 9999]


LISTS = [[3, 1], None, [], [2], [1, None]]
NESTED = [None, [LISTS], [LISTS[:2], []]]
UNORDERED = pa.ListViewArray.from_arrays(
    pa.array([2, 0], pa.int32()), pa.array([1, 3], pa.int32()), pa.array([1, 2, 3])
)
BYTES = pa.list_view(pa.int8())


@pytest.mark.parametrize(
    ("column", "values"),
    [
        (pa.array(LISTS, pa.list_view(pa.int32())), LISTS),
        (pa.array(LISTS, pa.large_list_view(pa.int32())), LISTS),
        (pa.array(NESTED, pa.list_view(pa.list_(BYTES))), NESTED),
        (pa.array([{"l": [3, 1]}, None], pa.struct({"l": BYTES})), [{"l": [3, 1]}, None]),
        (pa.array([[[3, 1]], None], pa.list_(BYTES, 1)), [[[3, 1]], None]),
        (pa.array([[("k", [3, 1])]], pa.map_(pa.string(), BYTES)), [[("k", [3, 1])]]),
        (UNORDERED, [[3], [1, 2, 3]]),
    ],
)
def test_views_of_lists_have_their_values(column: pa.Array, values: list[Any], tmp_path: Path) -> None:
    [batch] = read_all(write(tmp_path / "rows.arrow", table(column)))
    batch.validate(full=True)
    assert batch.column("more").to_pylist() == values


def test_views_may_share_their_values(tmp_path: Path) -> None:
    starts, sizes = pa.array([0] * 1000, pa.int32()), pa.array([1000] * 1000, pa.int32())
    column = pa.ListViewArray.from_arrays(starts, sizes, pa.array(range(1000)))
    read = read_all(write(tmp_path / "rows.arrow", table(column)))
    assert [row for batch in read for row in batch.column("more").to_pylist()] == [[*range(1000)]] * 1000


def test_objects_with_two_fields_of_one_name_are_refused_where_they_are_read(tmp_path: Path) -> None:
    column = pa.StructArray.from_arrays([pa.array([1]), pa.array([2])], names=["n", "n"])
    path = write(tmp_path / "rows.arrow", table(column))
    assert [each.input for each in Dataset.from_file(path, input="input").examples(0, 1)] == ["a"]
    with pytest.raises(DataError, match="the column 'more' cannot be read"):
        list(Dataset.from_file(path, input="more").examples(0, 1))


MONTHS = (  # a stream without rows, whose column m is of the type month_interval, which pyarrow cannot make
    "/////3AAAAAQAAAAAAAKAAwABgAFAAgACgAAAAABBAAMAAAACAAIAAAABAAIAAAABAAAAAEAAAAUAAAAEAAUAAgABgAHAAwAAAAQABAAAAAAAA"
    "ELEAAAABgAAAAEAAAAAAAAAAEAAABtAAAABAAEAAQAAAAAAAAA/////wAAAAA="
)


def test_a_column_of_a_type_that_has_no_values_in_python_is_refused(tmp_path: Path) -> None:
    (tmp_path / "rows.arrow").write_bytes(base64.b64decode(MONTHS))
    with pytest.raises(DataError, match="the column 'm' has the type month_interval; convert it to a duration"):
        open_file(tmp_path / "rows.arrow")


def test_text_that_is_no_text_is_refused(tmp_path: Path) -> None:
    raw = pa.Array.from_buffers(pa.binary(), 1, pa.array([b"\xff\xfe"]).buffers())
    texts = pa.Array.from_buffers(pa.string(), 1, raw.buffers())
    with pytest.raises(DataError, match="Invalid UTF8"):
        read_all(write(tmp_path / "rows.arrow", table(texts)))


def test_offsets_that_lead_outside_are_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "rows.arrow", table(pa.array(["one", "two", "three"])))
    whole = path.read_bytes()
    offsets = b"".join(n.to_bytes(4, "little") for n in (0, 3, 6, 11))
    assert whole.count(offsets) == 1
    for n in (-1, 2**31 - 1, 12, 2):
        path.write_bytes(whole.replace(offsets, offsets[:12] + (n % 2**32).to_bytes(4, "little")))
        with pytest.raises(DataError, match=r"rows\.arrow"):
            read_all(path)


def test_places_outside_of_a_dictionary_are_refused(tmp_path: Path) -> None:
    places = pa.Array.from_buffers(pa.int32(), 2, pa.array([0, 1_000_000], pa.int32()).buffers())
    column = pa.DictionaryArray.from_arrays(places, pa.array(["a"]), safe=False)
    with pytest.raises(DataError, match=r"rows\.arrow"):
        read_all(write(tmp_path / "rows.arrow", table(column)))


def test_a_file_with_fewer_rows_than_it_states_is_refused() -> None:
    path = ROOT_FOLDER / "tests" / "faults" / "corpus" / "parquet" / "found" / "no_rows.parquet"
    with pytest.raises(DataError, match="the file is damaged: it states 3 rows, but 0 can be read"):
        read_all(path)


@pytest.mark.parametrize("suffix", ["arrow", "parquet"])
def test_a_file_with_damage_anywhere_is_read_or_refused(suffix: str, tmp_path: Path) -> None:
    chance = random.Random(0)
    column = pa.array([{"x": [1, None], "y": "é"}, None, {"x": [], "y": "z"}] * 5)
    whole = write(tmp_path / f"rows.{suffix}", table(column)).read_bytes()
    path, refused = tmp_path / f"damaged.{suffix}", 0
    for _ in range(300):
        damaged = bytearray(whole)
        for _ in range(chance.choice((1, 1, 3))):
            at = chance.randrange(len(damaged))
            damaged[at : at + 8] = chance.choice(
                (bytes(8), b"\xff" * 8, bytes([damaged[at] ^ 1 << chance.randrange(8)]))
            )
        path.write_bytes(damaged)
        try:
            Dataset.from_file(path, input="input")
        except DataError:
            refused += 1
    assert refused > 30
