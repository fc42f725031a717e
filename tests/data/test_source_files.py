"""Files as people have them: compressed, in folders, from standard input, in workbooks."""

from __future__ import annotations

import bz2
import datetime as dt
import gzip
import io
import lzma
import sys
import zipfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.workbooks import book

from evaluand.core.errors import DataError, SpecError
from evaluand.data import DataNote, files
from evaluand.data.dataset import Dataset
from evaluand.data.formats import workbook
from evaluand.data.sources import DataSource, open_file

CSV = "input,x\na,1\nb,2\n"
ROWS = [{"input": "a", "x": 1}, {"input": "b", "x": 2}]


def values(source: DataSource) -> list[dict[str, Any]]:
    return [row for batch in source.batches() for row in batch.to_pylist()]


def write(path: Path, content: str | bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def zstd(content: str) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as stream:
        stream.write(content.encode())
    return bytes(sink.getvalue())


# Compression


@pytest.mark.parametrize(
    ("name", "text"),
    [("a.csv", CSV), ("a.tsv", CSV.replace(",", "\t")), ("a.jsonl", '{"input":"a","x":1}\n{"input":"b","x":2}\n')],
)
def test_a_compressed_file_is_read_as_the_file_in_it(tmp_path: Path, name: str, text: str) -> None:
    contents = {"gz": gzip.compress(text.encode()), "zst": zstd(text)}
    contents |= {"xz": lzma.compress(text.encode()), "bz2": bz2.compress(text.encode())}
    paths = [write(tmp_path / f"{name}.{suffix}", content) for suffix, content in contents.items()]
    for path in paths:
        source = open_file(path)
        assert values(source) == values(source) == ROWS
        assert source.where(1).startswith(f"{path}:")


@pytest.mark.parametrize("level", range(1, 10))
def test_bzip2_of_any_level_is_read(tmp_path: Path, level: int) -> None:
    path = write(tmp_path / "a.csv.bz2", bz2.compress(CSV.encode(), level))
    assert values(open_file(path)) == ROWS


@pytest.mark.parametrize("compress", [gzip.compress, lzma.compress, bz2.compress, lambda text: zstd(text.decode())])
def test_an_empty_file_has_no_rows_if_it_is_compressed_either(tmp_path: Path, compress: Any) -> None:
    for name, content in {"a.csv": b"", "a.csv.z": compress(b"")}.items():
        source = open_file(write(tmp_path / name, content), "csv")
        assert (source.schema.names, values(source)) == ([], [])


def test_the_bytes_of_a_file_say_whether_it_is_compressed(tmp_path: Path) -> None:
    assert values(open_file(write(tmp_path / "a.csv.gz", CSV))) == ROWS
    assert values(open_file(write(tmp_path / "b.csv", gzip.compress(CSV.encode())))) == ROWS


def test_faults_in_a_compressed_file_are_named_by_its_own_lines(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv.gz", gzip.compress(f"{CSV}3\n".encode()))
    with pytest.raises(DataError) as refused:
        open_file(path)
    assert str(refused.value) == f"{path}:4:2: 1 value where the header names 2"


@pytest.mark.parametrize(
    "content",
    [
        gzip.compress(CSV.encode() * 99)[:-9],
        b"\x1f\x8b not gzip",
        zstd(CSV)[:-3],
        lzma.compress(CSV.encode())[:-3],
        bz2.compress(CSV.encode())[:-3],
    ],
    ids=["gzip cut off", "not gzip", "zstd", "xz", "bz2"],
)
def test_a_damaged_compressed_file_is_refused_by_name(tmp_path: Path, content: bytes) -> None:
    path = write(tmp_path / "a.csv.gz", content)
    with pytest.raises(DataError, match="cannot be decompressed") as refused:
        open_file(path)
    assert str(path) in str(refused.value)


def test_a_file_that_expands_beyond_all_measure_is_refused_before_the_disk_is_full(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "MAX_BYTES", 1 << 20)
    text = b"input\n" + b"0" * (20 << 20)
    for content in (gzip.compress(text), zstd(text.decode())):
        path = write(tmp_path / "a.csv.gz", content)
        with pytest.raises(DataError, match="expands to more than 100 times its size, and 1 MB; decompress"):
            open_file(path)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.csv", b"a,b\n1,2\n" + b"0" * (80 << 20), "expands to more than 100 times its size, and 64 MB"),
        ("a.csv", b"a,b\n1,2\n" + b"0" * (12 << 20), r"a\.csv\.gz:3: the row has more than 8 MB"),
        (
            "a.csv",
            b'a,b\n1,2\n"' + (b"0" * 99 + b"\n") * (9 << 15) + b'",2\n',
            r"a\.csv\.gz:3: the row has more than 8 MB",
        ),
        (
            "a.csv",
            b"a\n" + b"1\n" * (2 << 20),
            "expands to more than 4 lines per byte, and 1,048,576 lines; decompress",
        ),
        ("a.csv", b"a," * (1 << 17) + b"\n1", r"a\.csv\.gz:1: the header has more than 100,000 columns"),
        ("a.csv", b"a,b\n" + b"1\n" * 10_000, r"a\.csv\.gz: over 1,000 rows have another number of values"),
    ],
    ids=["expansion", "row", "row of lines", "lines", "header", "ragged rows"],
)
def test_a_small_file_that_holds_much_is_refused_in_one_sentence(
    tmp_path: Path, name: str, text: bytes, message: str
) -> None:
    path = write(tmp_path / f"{name}.gz", gzip.compress(text))
    with pytest.raises(DataError, match=message):
        open_file(path)


def test_a_line_of_json_that_is_too_long_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", b'{"a": 1}\n{"a": "' + b"0" * (65 << 20))
    with pytest.raises(DataError, match=r"a\.jsonl:2: the row has more than 64 MB"):
        open_file(path)


def test_an_object_of_too_many_columns_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", b"{" + b",".join(b'"c%d":1' % i for i in range(100_001)) + b"}\n")
    with pytest.raises(DataError, match=r"a\.jsonl:1: has more than 100,000 columns"):
        open_file(path)


def test_a_compressed_file_that_changes_is_not_read_further(tmp_path: Path) -> None:
    path = write(tmp_path / "a.csv.gz", gzip.compress(CSV.encode()))
    source = open_file(path)
    write(path, gzip.compress(b"input\nother\n"))
    with pytest.raises(DataError, match="the file has changed since it was opened"):
        values(source)


def test_the_decompressed_copy_is_removed_with_the_source(tmp_path: Path) -> None:
    source = files.SourceFile.open(write(tmp_path / "a.csv.gz", gzip.compress(CSV.encode())))
    copy = source.path
    assert copy.read_text() == CSV
    del source
    assert not copy.parent.exists()


# Folders and patterns


def test_the_files_of_a_folder_are_one_table_in_the_order_of_their_paths(tmp_path: Path) -> None:
    for name, rows in (("b/2.csv", "input,x\nd,4\n"), ("a.csv", "input,x\na,1\nb,2\n"), ("b/1.csv", "x,input\n3,c\n")):
        write(tmp_path / name, rows)
    for hidden in ("_SUCCESS", ".a.csv.crc", "_temporary/0.csv"):
        write(tmp_path / hidden, "?")
    expected = [*ROWS, {"input": "c", "x": 3}, {"input": "d", "x": 4}]
    source = open_file(tmp_path)
    assert values(source) == values(source) == expected
    assert values(open_file(tmp_path / "**/*.csv")) == expected
    assert values(open_file(f"{tmp_path}/b/[12].csv")) == expected[2:]
    assert source.where(2) == f"{tmp_path}/b/1.csv:2"
    assert source.where(3) == f"{tmp_path}/b/2.csv:2"


def test_a_column_gets_the_type_that_fits_all_files(tmp_path: Path) -> None:
    write(tmp_path / "a.csv", "x,y\n1,1\n")
    write(tmp_path / "b.csv", "x,y\n2.5,007\n")
    assert values(open_file(tmp_path)) == [{"x": 1.0, "y": "1"}, {"x": 2.5, "y": "007"}]


def test_files_with_other_columns_are_refused_by_name(tmp_path: Path) -> None:
    first = write(tmp_path / "a.csv", "x,y\n1,2\n")
    write(tmp_path / "b.csv", "x,z\n1,2\n")
    with pytest.raises(DataError) as refused:
        open_file(tmp_path)
    assert str(refused.value) == (
        f"{tmp_path}/b.csv: the file lacks 'y' and adds 'z', compared to {first}; give the files the same columns"
    )


def test_a_folder_with_several_formats_is_refused(tmp_path: Path) -> None:
    write(tmp_path / "a.csv", CSV)
    write(tmp_path / "b.jsonl", "{}")
    with pytest.raises(SpecError, match=r"the files have several formats: csv, jsonl; give a pattern such as \*.csv"):
        open_file(tmp_path)


def test_folders_named_by_hive_are_columns(tmp_path: Path) -> None:
    for year, place, value in (("2025", "K%C3%B6ln", 1), ("2026", "__HIVE_DEFAULT_PARTITION__", 2)):
        path = tmp_path / f"year={year}" / f"city={place}" / "part.parquet"
        path.parent.mkdir(parents=True)
        pq.write_table(pa.table({"x": [value]}), path)
    expected = [{"x": 1, "year": 2025, "city": "Köln"}, {"x": 2, "year": 2026, "city": None}]
    assert values(open_file(tmp_path)) == expected
    assert values(open_file(f"{tmp_path}/*/*/*.parquet")) == expected
    assert values(open_file(tmp_path / "year=2025")) == [{"x": 1, "city": "Köln"}]


def test_a_partition_column_that_the_files_have_is_read_from_them(tmp_path: Path) -> None:
    (tmp_path / "x=1").mkdir()
    pq.write_table(pa.table({"x": ["one"]}), tmp_path / "x=1" / "a.parquet")
    assert values(open_file(tmp_path)) == [{"x": "one"}]


def test_parquet_files_may_differ_in_the_width_of_numbers_but_not_in_kind(tmp_path: Path) -> None:
    pq.write_table(pa.table({"x": pa.array([1], pa.int16())}), tmp_path / "a.parquet")
    pq.write_table(pa.table({"x": pa.array([2.5], pa.float32())}), tmp_path / "b.parquet")
    assert values(open_file(tmp_path)) == [{"x": 1.0}, {"x": 2.5}]
    pq.write_table(pa.table({"x": ["3"]}), tmp_path / "c.parquet")
    with pytest.raises(DataError, match=r"c.parquet: the column 'x' is string, but double in .*a.parquet; convert one"):
        open_file(tmp_path)


def test_the_unnamed_index_of_pandas_is_left_out_with_a_note(tmp_path: Path) -> None:
    pd = pytest.importorskip("pandas")
    pd.DataFrame({"x": [1, 2]}, index=[7, 3]).to_parquet(tmp_path / "a.parquet")
    with pytest.warns(DataNote, match="__index_level_0__, the index of a pandas frame, is left out"):
        assert values(open_file(tmp_path / "a.parquet")) == [{"x": 1}, {"x": 2}]


# Standard input


class _Pipe(io.TextIOWrapper):
    def isatty(self) -> bool:
        return False


@pytest.mark.parametrize(
    "content",
    [
        CSV.encode(),
        b'{"input":"a","x":1}\n{"input":"b","x":2}\n',
        b'[{"input":"a","x":1},{"input":"b","x":2}]',
        gzip.compress(CSV.encode()),
    ],
    ids=["csv", "jsonl", "json", "gzip"],
)
def test_standard_input_is_read_in_the_format_that_it_shows(content: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", _Pipe(io.BytesIO(content)))
    source = open_file("-")
    assert values(source) == values(source) == values(open_file("-")) == ROWS
    assert source.where(0).startswith("<stdin>")


def test_a_terminal_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = _Pipe(io.BytesIO())
    monkeypatch.setattr(terminal, "isatty", lambda: True)
    monkeypatch.setattr(sys, "stdin", terminal)
    with pytest.raises(DataError, match="- reads standard input, which is a terminal; pipe a file"):
        open_file("-")


# Workbooks


def test_a_workbook_with_one_sheet_is_read_by_its_header(tmp_path: Path) -> None:
    rows: list[list[Any]] = [
        [],
        ["input", "code", "n", "y", "ok", 2026],
        ["a & b", "007", 1, 0.5, True, None],
        [],
        ["c", "8", None, 2, False, 3.5],
    ]
    path = book(tmp_path / "a.xlsx", only=rows)
    source = open_file(path)
    assert values(source) == [
        {"input": "a & b", "code": "007", "n": 1, "y": 0.5, "ok": True, "2026": None},
        {"input": "c", "code": "8", "n": None, "y": 2.0, "ok": False, "2026": 3.5},
    ]
    assert [source.where(row) for row in range(2)] == [f"{path}:3", f"{path}:5"]


def test_of_several_sheets_one_must_be_chosen(tmp_path: Path) -> None:
    path = book(tmp_path / "a.xlsx", train=[["x"], [1]], test=[["x"], [2]], notes=[])
    with pytest.raises(SpecError, match=f"the workbook has the sheets train, test; choose one, as in {path}#train"):
        open_file(path)
    assert values(open_file(f"{path}#test")) == [{"x": 2}]
    assert open_file(f"{path}#test").where(0) == f"{path}#test:2"
    with pytest.raises(SpecError, match=r"no sheet is called 'tets'.*test"):
        open_file(f"{path}#tets")
    with pytest.raises(SpecError, match="a csv file has no parts that #x could choose"):
        open_file(f"{write(tmp_path / 'a.csv', CSV)}#x")


def test_a_file_may_have_a_number_sign_in_its_name(tmp_path: Path) -> None:
    assert values(open_file(write(tmp_path / "a#b.csv", CSV))) == ROWS


def test_a_workbook_that_expands_beyond_all_measure_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workbook, "MAX_BYTES", 1 << 20)
    path = tmp_path / "a.xlsx"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        with archive.open("xl/worksheets/only.xml", "w", force_zip64=True) as stream:
            for _ in range(3):
                stream.write(b" " * (1 << 20))
        archive.writestr("more", bytes(range(256)) * 2)
    with pytest.raises(DataError, match="expands to more than 1 MB; save it as CSV or Parquet"):
        workbook.Workbook().open([files.SourceFile.open(path)], workbook.Reading())


def test_a_file_that_is_no_workbook_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="not a workbook that can be read"):
        open_file(write(tmp_path / "a.xlsx", b"PK\x03\x04 and no more"))


# What other libraries hold


def tables() -> dict[str, Any]:
    """The same rows as every library holds them."""
    pl, duckdb, pd = (pytest.importorskip(name) for name in ("polars", "duckdb", "pandas"))
    when = dt.datetime(2026, 1, 2, 3, 4, 5, tzinfo=dt.UTC)
    rows: list[dict[str, Any]] = [
        {"input": "a", "n": 1, "x": 0.5, "ok": True, "day": dt.date(2026, 1, 2), "when": when, "tags": ["p", "q"]},
        {"input": "b", "n": 2, "x": None, "ok": False, "day": None, "when": None, "tags": []},
    ]
    arrow = pa.Table.from_pylist(rows)
    wide = arrow.cast(
        pa.schema(
            [
                ("input", pa.large_string()),
                ("n", pa.int16()),
                ("x", pa.float64()),
                ("ok", pa.bool_()),
                ("day", pa.date64()),
                ("when", pa.timestamp("ns", "Europe/Berlin")),
                ("tags", pa.large_list(pa.string_view())),
            ]
        )
    )
    frame = pl.DataFrame(rows)
    relation = duckdb.connect().from_arrow(arrow)
    return {
        "lists": rows,
        "columns": {name: [row[name] for row in rows] for name in rows[0]},
        "arrow": arrow,
        "layouts": wide,
        "views": arrow.set_column(0, "input", arrow["input"].cast(pa.string_view())),
        "dictionary": arrow.set_column(0, "input", arrow["input"].dictionary_encode()),
        "chunks": pa.concat_tables([arrow.slice(0, 1), arrow.slice(1)]),
        "batch": arrow.combine_chunks().to_batches()[0],
        "reader": pa.RecordBatchReader.from_batches(arrow.schema, arrow.to_batches()),
        "polars": frame,
        "categorical": frame.with_columns(pl.col("input").cast(pl.Categorical), pl.col("n").cast(pl.UInt8)),
        "lazy": frame.lazy(),
        "duckdb": relation,
        "query": relation.query("t", "select * from t order by n"),
        "pandas": pd.DataFrame(rows),
        "nullable": arrow.to_pandas(types_mapper=pd.ArrowDtype),
    }


def test_the_same_data_have_the_same_digest_from_every_library() -> None:
    digests = {name: Dataset.from_data(data).digest for name, data in tables().items()}
    assert digests == dict.fromkeys(digests, digests["lists"])


def test_a_folder_of_arrow_datasets_is_data(tmp_path: Path) -> None:
    from pyarrow import dataset

    pq.write_table(pa.table({"input": ["a", "b"]}), tmp_path / "a.parquet")
    assert Dataset.from_data(dataset.dataset(tmp_path)).digest == Dataset.from_file(tmp_path).digest


def test_values_that_differ_have_different_digests() -> None:
    """A number is not another type of number; a missing value is not NaN, which only pandas cannot tell."""
    pd = pytest.importorskip("pandas")

    def digest(values: Any) -> str:
        return Dataset.from_data({"input": values}).digest

    assert digest([1]) != digest([1.0]) != digest(["1.0"])
    assert digest([1]) != digest([True])
    assert digest([float("nan")]) != digest([None])
    assert Dataset.from_data(pd.DataFrame({"input": [float("nan")]})).digest == digest([None])
    assert digest([dt.date(2026, 1, 2)]) != digest([dt.datetime(2026, 1, 2)])
    assert digest([dt.datetime(2026, 1, 2)]) != digest([dt.datetime(2026, 1, 2, tzinfo=dt.UTC)])


def test_objects_of_a_pandas_frame_are_not_merged() -> None:
    pd = pytest.importorskip("pandas")
    rows = [{"input": {"a": 1}}, {"input": {"b": [1, "x"]}}, {"input": {}}]
    assert Dataset.from_data(pd.DataFrame(rows)).digest == Dataset.from_data(rows).digest


def test_times_finer_than_a_microsecond_are_refused() -> None:
    table = pa.table({"t": pa.array([1_000, 1_001], pa.timestamp("ns"))})
    with pytest.raises(DataError, match="dataset: t: a time is finer than a microsecond; round it"):
        Dataset.from_data(table)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (5, "dataset: give a path, a table or frame, or a list of mappings, not a number"),
        ({"a": 1}, "a mapping of columns must hold lists; 'a' is a number"),
        ({"train": pa.table({"x": [1]})}, r"this is a mapping of tables; choose one, such as data\['train'\]"),
        ({"a": [1], "b": [1, 2]}, "the columns have different lengths: a has 1, b has 2"),
    ],
)
def test_what_has_no_rows_is_refused(data: Any, message: str) -> None:
    with pytest.raises((SpecError, DataError), match=message):
        Dataset.from_data(data)


def test_a_frame_that_arrow_cannot_hold_is_refused_with_the_reason() -> None:
    pl = pytest.importorskip("polars")
    frame = pl.DataFrame({"x": pl.Series([object()], dtype=pl.Object)})
    with pytest.raises(DataError, match=r"a polars.DataFrame cannot give Python objects as Arrow: 'x'; cast them"):
        Dataset.from_data(frame)


def test_a_json_file_may_have_lines_or_a_list_under_a_name(tmp_path: Path) -> None:
    assert values(open_file(write(tmp_path / "a.json", '{"x":1}\n{"x":2}\n'))) == [{"x": 1}, {"x": 2}]
    path = write(tmp_path / "b.json", '{"version": 1,\n "data": [{"x": 1}]}')
    assert values(open_file(f"{path}#data")) == [{"x": 1}]
    with pytest.raises(DataError, match=f"not an object; choose one of its lists, as in {path}#data"):
        open_file(path)
    with pytest.raises(SpecError, match=r"no list is called 'date' \(did you mean 'data'\?\)"):
        open_file(f"{path}#date")


def test_a_type_whose_storage_is_another_value_is_refused() -> None:
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"month": pd.period_range("2026-01", periods=2, freq="M")})
    with pytest.raises(DataError, match=r"the column 'month' has the type pandas.period; convert it to a plain one"):
        Dataset.from_data(frame)
    with pytest.raises(SpecError, match=r"a pandas.Series is one column; give a table, such as its to_frame\(\)"):
        Dataset.from_data(pd.Series([1], name="x"))


def test_the_reason_of_another_library_is_shown() -> None:
    duckdb = pytest.importorskip("duckdb")
    with pytest.raises(DataError, match=r"a duckdb.DuckDBPyConnection cannot give its rows as Arrow: .*con.sql"):
        Dataset.from_data(duckdb.connect().execute("select 'a' as input"))


def test_an_archive_and_the_folder_of_a_description_are_led_to_what_can_be_read(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match=r"rows.zip: is an archive; unpack it, and name the file with the rows"):
        open_file(write(tmp_path / "rows.zip", b"PK\x03\x04"))
    folder = tmp_path / "derm"
    folder.mkdir()
    write(folder / "a.csv", CSV.encode())
    description = write(folder / "datapackage.json", b'{"resources": [{"name": "a", "path": "a.csv"}]}')
    with pytest.raises(SpecError, match=r"the folder has a description of its files; give .*datapackage.json"):
        open_file(folder)
    assert values(open_file(description)) == ROWS
