"""Rows from files and from Python: their types, their faults with the place of each, and reading them as a stream."""

from __future__ import annotations

import datetime as dt
import json
import re
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, strategies as st

from evaluand.core import identity
from evaluand.core.errors import DataError, SpecError
from evaluand.data.dataset import Dataset
from evaluand.data.sources import (
    MAX_FAULTS,
    DataNote,
    DataSource,
    Faults,
    format_names,
    from_rows,
    from_table,
    open_file,
    open_texts,
)
from evaluand.store.tables import BATCH_ROWS, is_json

BOM = b"\xef\xbb\xbf"


def file(folder: Path, name: str, content: str | bytes) -> Path:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def values(source: DataSource) -> list[dict[str, Any]]:
    """The rows as Python values, JSON columns decoded."""
    marked = {field.name for field in source.schema if is_json(field)}
    return [
        {name: identity.decode(cell) if name in marked and cell is not None else cell for name, cell in row.items()}
        for batch in source.batches()
        for row in batch.to_pylist()
    ]


def column(source: DataSource, name: str) -> list[Any]:
    return [row[name] for row in values(source)]


def types(source: DataSource) -> dict[str, str]:
    return {field.name: "json" if is_json(field) else str(field.type) for field in source.schema}


def faults(refused: pytest.ExceptionInfo[DataError]) -> list[tuple[str, str]]:
    return [(fault.where, fault.message) for fault in refused.value.faults]


# CSV


def test_a_csv_column_gets_the_type_that_all_of_its_cells_allow(tmp_path: Path) -> None:
    text = (
        "whole,number,truth,text,mixed,code,empty\n"
        "1,1,true,yes,1,007,\n"
        "-20,2.5,FALSE,no,x,010,\n"
        "0,-1e-3,True,1.2.3,true,123,\n"
        ",,,,,,\n"
    )
    source = open_file(file(tmp_path, "a.csv", text))
    assert types(source) == {
        "whole": "int64",
        "number": "double",
        "truth": "bool",
        "text": "string",
        "mixed": "string",
        "code": "string",
        "empty": "string",
    }
    assert column(source, "whole") == [1, -20, 0, None]
    assert column(source, "number") == [1.0, 2.5, -0.001, None]
    assert column(source, "truth") == [True, False, True, None]
    assert column(source, "mixed") == ["1", "x", "true", None]
    assert column(source, "code") == ["007", "010", "123", None]
    assert column(source, "empty") == [None] * 4


def test_one_cell_far_down_decides_the_type_of_the_whole_column(tmp_path: Path) -> None:
    cells = [str(i) for i in range(3 * BATCH_ROWS)] + ["0x"]
    source = open_file(file(tmp_path, "a.csv", "input\n" + "\n".join(cells) + "\n"))
    assert types(source) == {"input": "string"}
    assert column(source, "input") == cells


@pytest.mark.parametrize(
    "code", ["007", "00", "-01", "1_000", "1,5", "0x1F", " 1", "1.", "1e", "Infinity", "nan", "yes"]
)
def test_what_is_no_plain_number_stays_text(tmp_path: Path, code: str) -> None:
    source = open_file(file(tmp_path, "a.csv", f'input\n"{code}"\n'))
    assert values(source) == [{"input": code}]


@pytest.mark.parametrize("digits", ["123456789012345678", "1234567890123456789", "98765432109876543210", "1e999"])
def test_a_long_number_of_a_csv_file_loses_no_digit(tmp_path: Path, digits: str) -> None:
    [value] = column(open_file(file(tmp_path, "a.csv", f"input\n{digits}\n")), "input")
    assert str(value) == digits


def test_whole_numbers_a_float_cannot_hold_survive_among_fractions_in_csv(tmp_path: Path) -> None:
    [value, _] = column(open_file(file(tmp_path, "a.csv", "input\n9007199254740993\n1.5\n")), "input")
    assert str(value) == "9007199254740993"


def test_quoted_csv_cells_may_hold_newlines_delimiters_and_quotes(tmp_path: Path) -> None:
    text = 'input,expected\n"one\ntwo\r\n\nthree","a,b"\n"say ""hi""",c\n'
    source = open_file(file(tmp_path, "a.csv", text))
    assert values(source) == [
        {"input": "one\ntwo\r\n\nthree", "expected": "a,b"},
        {"input": 'say "hi"', "expected": "c"},
    ]


def test_a_quoted_empty_csv_cell_is_missing_where_another_cell_of_the_column_is(tmp_path: Path) -> None:
    source = open_file(file(tmp_path, "a.csv", 'input,expected\n,""\n"",x\n'))
    assert values(source) == [{"input": None, "expected": ""}, {"input": None, "expected": "x"}]


def test_words_that_look_missing_are_text(tmp_path: Path) -> None:
    source = open_file(file(tmp_path, "a.csv", "input\nNA\nnull\nNaN\nNone\n#N/A\n"))
    assert column(source, "input") == ["NA", "null", "NaN", "None", "#N/A"]


def test_line_ends_of_any_system_and_a_missing_last_one_are_read(tmp_path: Path) -> None:
    expected = [{"input": "a", "x": 1}, {"input": "b", "x": 2}]
    for name, text in (("unix", "input,x\na,1\nb,2"), ("windows", "input,x\r\na,1\r\nb,2\r\n")):
        assert values(open_file(file(tmp_path, f"{name}.csv", text))) == expected


def test_tabs_part_the_cells_of_a_tsv_file(tmp_path: Path) -> None:
    source = open_file(file(tmp_path, "a.tsv", 'input\texpected\na,b\t1\n"x\ty"\t2\n'))
    assert values(source) == [{"input": "a,b", "expected": 1}, {"input": "x\ty", "expected": 2}]


def test_rows_of_the_wrong_length_are_named_by_the_line_an_editor_shows_all_at_once(tmp_path: Path) -> None:
    text = 'a,b\n"x\n\ny",2\n3\n\n4,5,6\n7,8\n9\n'
    with pytest.raises(DataError) as refused:
        open_file(file(tmp_path, "a.csv", text))
    path = tmp_path / "a.csv"
    assert faults(refused) == [
        (f"{path}:5:2", "1 value where the header names 2"),
        (f"{path}:7:5", "3 values where the header names 2"),
        (f"{path}:9:2", "1 value where the header names 2"),
    ]


def test_rows_of_the_wrong_length_are_named_by_line_beyond_the_first_block(tmp_path: Path) -> None:
    good = "x" * 500 + ",1\n"
    text = "a,b\n" + good * 3000 + "short\n" + good * 3000 + "also\n"
    with pytest.raises(DataError) as refused:
        open_file(file(tmp_path, "a.csv", text))
    assert [where.rsplit(":", 2)[1:] for where, _ in faults(refused)] == [["3002", "6"], ["6003", "5"]]


@pytest.mark.parametrize(
    ("header", "names", "note"),
    [
        ("a,b,a", ["a", "b", "a_2"], "the second column 'a' is read as 'a_2'"),
        ("a,,b", ["a", "column_2", "b"], "column 2, which has no name, is read as 'column_2'"),
        ("a,a_2,a", ["a", "a_2", "a_3"], "the second column 'a' is read as 'a_3'"),
    ],
)
def test_columns_without_a_name_of_their_own_are_renamed_with_a_note(
    tmp_path: Path, header: str, names: list[str], note: str
) -> None:
    path = file(tmp_path, "a.csv", f"{header}\n1,2,3\n")
    with pytest.warns(DataNote, match=re.escape(f"{path}:1: {note}")):
        source = open_file(path)
    assert values(source) == [dict(zip(names, (1, 2, 3), strict=True))]


@pytest.mark.parametrize(
    ("header", "message"), [("a,b,a", "the columns 'a' occur twice"), ("a,,", "the columns '' occur twice")]
)
def test_a_file_whose_columns_are_declared_elsewhere_must_name_all_but_one(
    tmp_path: Path, header: str, message: str
) -> None:
    assert open_texts(file(tmp_path, "one.csv", "a,,b\n1,2,3\n")).schema.names == ["a", "", "b"]
    with pytest.raises(DataError, match=message) as refused:
        open_texts(file(tmp_path, "a.csv", f"{header}\n1,2,3\n"))
    assert refused.value.faults[0].where == f"{tmp_path / 'a.csv'}:1"


@pytest.mark.parametrize("text", ["\n\n{}\n\n", BOM.decode() + "\n{}", "{}\r\n\r\n"])
def test_blank_lines_of_a_csv_file_are_passed_over_and_rows_keep_their_line_numbers(tmp_path: Path, text: str) -> None:
    path = file(tmp_path, "a.csv", text.format('input,"x"\n"a\r\nb",1\n\n"c\n\nd",2\ne,3'))
    source = open_file(path)
    assert values(source) == [{"input": "a\r\nb", "x": 1}, {"input": "c\n\nd", "x": 2}, {"input": "e", "x": 3}]
    first = text.replace("\r\n", "\n").split("{}")[0].count("\n") + 2
    assert [source.where(row) for row in range(3)] == [f"{path}:{first + line}" for line in (0, 3, 6)]


def test_a_row_may_be_longer_than_the_limit_of_the_csv_module(tmp_path: Path) -> None:
    source = open_file(file(tmp_path, "a.csv", "input\n" + "x" * 200_000))
    assert [len(cell) for cell in column(source, "input")] == [200_000]


@pytest.mark.parametrize(
    ("text", "line", "wrong"),
    [
        ('a,b\n1,"x\n2,y\n3,z\n', 2, "is never closed"),
        ('a,b\n"1\n\n",2\n3,"x', 5, "is never closed"),
        ('"a,b\n1,2\n', 1, "is never closed"),
        ('a,b\n1,"x\n2,"y"\n3,z\n', 2, "ends in line 3, where more text follows it"),
        ('a,b\n1,2\n3,"say "hi""\n', 3, "ends in line 3, where more text follows it"),
    ],
)
def test_a_quote_that_swallows_rows_is_named_by_the_line_in_which_it_opens(
    tmp_path: Path, text: str, line: int, wrong: str
) -> None:
    for mark in ("", BOM.decode()):
        with pytest.raises(DataError) as refused:
            open_file(file(tmp_path, "a.csv", mark + text))
        [(where, message)] = faults(refused)
        assert where == f"{tmp_path / 'a.csv'}:{line}"
        assert message.startswith(f"the quoted cell that begins here {wrong}; close it")


def test_a_quote_in_the_middle_of_a_cell_is_a_character(tmp_path: Path) -> None:
    source = open_file(file(tmp_path, "a.csv", 'input,x\n5" disk,"1"\nit is 6",2\n'))
    assert column(source, "input") == ['5" disk', 'it is 6"']


@pytest.mark.parametrize("mark", [";", "\t", "|"])
def test_another_delimiter_that_divides_all_rows_alike_is_read_with_a_note(tmp_path: Path, mark: str) -> None:
    path = file(tmp_path, "a.csv", f'input{mark}x\n"a{mark}b"{mark}1\n"c\n"{mark}2\n')
    expected = [{"input": f"a{mark}b", "x": 1}, {"input": "c\n", "x": 2}]
    note = f'{path}: the cells are separated by {json.dumps(mark)}; set delimiter: "," if it is one column'
    with pytest.warns(DataNote, match=re.escape(note)):
        assert values(open_file(path)) == expected
    source = open_file(path, delimiter=mark)
    assert values(source) == expected
    assert source.where(1) == f"{path}:3"


@pytest.mark.parametrize("mark", [";", "\t", "|"])
def test_another_delimiter_that_divides_rows_differently_must_be_declared(tmp_path: Path, mark: str) -> None:
    for text in (f"input{mark}x\na\n", f"input{mark}x\na{mark}b{mark}c\n", f"input{mark}x\n"):
        path = file(tmp_path, "a.csv", text)
        with pytest.raises(DataError) as refused:
            open_file(path)
        shown = json.dumps(mark)
        message = f'the header has no "," but {shown}; set delimiter: {shown} (or ",", if it is one column)'
        assert faults(refused) == [(f"{path}:1", message)]


def test_a_single_column_may_have_any_name_where_the_delimiter_is_declared(tmp_path: Path) -> None:
    path = file(tmp_path, "a.csv", "yes;no\nx\n")
    assert values(open_file(path, delimiter=",")) == [{"yes;no": "x"}]


@pytest.mark.parametrize("wrong", ["", ";;", '"', "\n", "；", 5])
def test_a_delimiter_is_one_plain_character(tmp_path: Path, wrong: Any) -> None:
    with pytest.raises(SpecError, match="delimiter must be one character"):
        open_file(file(tmp_path, "a.csv", "a,b\n"), delimiter=wrong)


def test_only_csv_files_have_a_delimiter(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="delimiter is for CSV files; jsonl has none"):
        open_file(file(tmp_path, "a.jsonl", "{}"), delimiter=";")


@pytest.mark.parametrize("name", ["a.csv", "a.tsv", "a.jsonl", "a.json"])
def test_a_file_of_no_bytes_is_a_source_without_columns_or_rows(tmp_path: Path, name: str) -> None:
    source = open_file(file(tmp_path, name, ""))
    assert source.schema.names == []
    assert values(source) == []


def test_a_header_without_rows_is_a_source_without_rows(tmp_path: Path) -> None:
    for text in ("input,expected\n", "input,expected"):
        source = open_file(file(tmp_path, "a.csv", text))
        assert source.schema.names == ["input", "expected"]
        assert values(source) == []


# JSON lines, JSON arrays, Python rows


def test_blank_lines_are_passed_over_and_rows_keep_their_line_numbers(tmp_path: Path) -> None:
    source = open_file(file(tmp_path, "a.jsonl", '\n{"input":1}\n\n  \n{"input":2}\r\n\n{"input":3}'))
    assert column(source, "input") == [1, 2, 3]
    assert [source.where(row) for row in range(3)] == [f"{tmp_path / 'a.jsonl'}:{line}" for line in (2, 5, 7)]


def test_all_broken_lines_are_named_by_number_at_once(tmp_path: Path) -> None:
    lines = ['{"input":1}', "", '{"input":', "[1]", '{"input":2}', '"text"', "null", '{"input" 3}', '{"a":NaN}', "\t"]
    with pytest.raises(DataError) as refused:
        open_file(file(tmp_path, "a.jsonl", "\n".join(lines)))
    found = {int(where.rsplit(":", 1)[1]): message for where, message in faults(refused)}
    assert list(found) == [3, 4, 6, 7, 8, 9]
    assert found[3].startswith("not JSON at column ")
    assert found[4] == "a row must be an object with named values, not a list"
    assert "not JSON at column 10: " in found[8] or "not JSON at column 11: " in found[8]


def test_thousands_of_faults_are_all_counted_and_the_first_are_stored(tmp_path: Path) -> None:
    with pytest.raises(DataError) as refused:
        open_file(file(tmp_path, "a.jsonl", "x\n" * (MAX_FAULTS + 7)))
    assert len(refused.value.faults) == MAX_FAULTS + 1
    assert refused.value.faults[-1].message == "… and 7 more faults"
    assert "… and" in str(refused.value)


@pytest.mark.parametrize("digits", ["9223372036854775807", "18446744073709551616", "123456789012345678901234567890"])
def test_a_long_number_of_a_json_file_loses_no_digit(tmp_path: Path, digits: str) -> None:
    for name, text in (("a.jsonl", f'{{"input":{digits}}}\n'), ("a.json", f'[{{"input":{digits}}}]')):
        assert column(open_file(file(tmp_path, name, text)), "input") == [int(digits)]


def test_a_json_array_of_objects_is_a_source(tmp_path: Path) -> None:
    source = open_file(file(tmp_path, "a.json", '[{"input":"a","x":{}},\n {"input":"b"}]'))
    assert values(source) == [{"input": "a", "x": {}}, {"input": "b", "x": None}]


@pytest.mark.parametrize(
    ("text", "where", "message"),
    [
        ('[{"a":1},\n {"a":}]', "a.json:2:7", "not JSON"),
        ('{"a":1}', "", "an array of objects, not an object"),
        ('[{"a":1}, 3]', "a.json[1]", "not a number"),
        (" ", "a.json:1:1", "not JSON"),
    ],
)
def test_a_json_file_that_is_no_array_of_objects_is_refused_at_its_place(
    tmp_path: Path, text: str, where: str, message: str
) -> None:
    with pytest.raises(DataError, match=message) as refused:
        open_file(file(tmp_path, "a.json", text))
    assert refused.value.faults[0].where.endswith(where)
    assert str(tmp_path / "a.json") in str(refused.value)


@pytest.mark.parametrize(
    ("name", "text"),
    [("a.csv", "input\n1\n"), ("a.tsv", "input\n1\n"), ("a.jsonl", '{"input":1}\n'), ("a.json", '[{"input":1}]')],
)
def test_a_byte_order_mark_is_no_part_of_the_data(tmp_path: Path, name: str, text: str) -> None:
    assert values(open_file(file(tmp_path, name, BOM + text.encode()))) == [{"input": 1}]


@pytest.mark.parametrize(
    ("cells", "kind"),
    [
        ([1, None, -(2**63), 2**63 - 1], "int64"),
        ([1.5, None, -0.0, float("nan"), float("inf")], "double"),
        ([True, False, None], "bool"),
        (["", "a", "1", None], "string"),
        ([b"", b"\xff"], "binary"),
        ([None, None], "string"),
        ([dt.date(2024, 1, 2), None], "date32[day]"),
        ([dt.datetime(2024, 1, 2, 3, 4, 5, 6)], "timestamp[us]"),
        ([dt.datetime(2024, 1, 2, tzinfo=dt.UTC)], "timestamp[us, tz=UTC]"),
        ([[1, 2], [], None, [None, 3]], "list<item: int64>"),
        ([["a"], ["b", None]], "list<item: string>"),
        ([{}, {"a": 1}, {"a": {}}], "json"),
        ([1, "a", None, True, 1.5], "json"),
        ([True, 1], "json"),
        ([2**53 + 1, 1.5], "json"),
        ([2**63, 1], "json"),
        ([[1], "a"], "json"),
        ([[1, "a"], [None]], "json"),
        ([[[1]], [[]]], "json"),
        ([[], []], "list<item: string>"),
        ([[], [None], None], "list<item: string>"),
        ([[{}], [{"a": float("nan")}]], "json"),
        ([{"$float": "NaN"}, {"$x": {}}], "json"),
        ([dt.date(2024, 1, 2), dt.datetime(2024, 1, 2)], "json"),
        ([Decimal("1.10"), Decimal("NaN")], "json"),
    ],
)
def test_a_column_of_python_rows_is_native_only_where_that_loses_nothing(cells: list[Any], kind: str) -> None:
    source = from_rows([{"input": cell} for cell in cells])
    assert types(source) == {"input": kind}
    assert [identity.encode(cell) for cell in column(source, "input")] == [identity.encode(cell) for cell in cells]


def test_integers_among_fractions_are_read_as_fractions() -> None:
    source = from_rows([{"input": 1, "many": [1, 2]}, {"input": 2.5, "many": [0.5]}])
    assert types(source) == {"input": "double", "many": "list<item: double>"}
    assert values(source) == [{"input": 1.0, "many": [1.0, 2.0]}, {"input": 2.5, "many": [0.5]}]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(max_size=3) | st.sampled_from(["$float", "$$x"]), inner, max_size=3)
    ),
    max_leaves=8,
)
ROWS = st.lists(st.dictionaries(st.text(min_size=1, max_size=4), JSON, max_size=4), max_size=6)


def equal(one: Any, other: Any) -> bool:
    """Equal with equal types, but that a column may take its whole numbers for fractions of the same value."""
    if isinstance(one, float) and isinstance(other, float) and one != one:
        return bool(other != other)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(equal, one, other))
    numbers = (int, float)
    if type(one) in numbers and type(other) in numbers:
        return bool(one == other)
    return type(one) is type(other) and identity.encode(one) == identity.encode(other)


@given(ROWS.filter(any))
def test_rows_of_any_json_come_out_as_they_went_in_on_every_pass(rows: list[dict[str, Any]]) -> None:
    source = from_rows(rows)
    assert set(source.schema.names) == {name for row in rows for name in row}
    for _ in range(2):
        for row, again in zip(rows, values(source), strict=True):
            assert all(equal(row.get(name), cell) for name, cell in again.items())


@pytest.mark.parametrize(
    ("wrong", "shown"), [({"input": [1]}, "an object"), ("text", "a text"), (5, "a number"), (b"x", "a bytes")]
)
def test_what_is_not_several_rows_is_refused(wrong: Any, shown: str) -> None:
    with pytest.raises(SpecError) as refused:
        from_rows(wrong)
    assert str(refused.value) == f"rows: give a list of mappings, one for each row, not {shown}"


def test_rows_that_can_be_read_only_once_are_stored() -> None:
    source = from_rows({"input": i} for i in range(3))
    assert column(source, "input") == column(source, "input") == [0, 1, 2]


def test_python_rows_that_are_none_are_named_by_number_all_at_once() -> None:
    records: list[Any] = [{"input": 1}, [1], {1: 2}, {"": 1}, {"input": {1, 2}}, {"input": {"a": object()}}, "text"]
    with pytest.raises(DataError) as refused:
        from_rows(records, "cases")
    assert [(where, message.split(";")[0]) for where, message in faults(refused)] == [
        ("cases[1]", "a row must be an object with named values, not a list"),
        ("cases[2]", "1 is not a column name"),
        ("cases[3]", "'' is not a column name"),
        ("cases[4]", "input: $: a set is not data and cannot be stored"),
        ("cases[5]", "input: $.a: an object is not data and cannot be stored"),
        ("cases[6]", "a row must be an object with named values, not a text"),
    ]


def test_python_text_that_cannot_be_written_is_named_by_row() -> None:
    with pytest.raises(DataError) as refused:
        values(from_rows([{"input": "a"}, {"input": "\ud800"}]))
    assert refused.value.faults[0].where == "rows[1]"


def test_a_column_with_a_key_missing_in_some_rows_is_null_there() -> None:
    source = from_rows([{"a": 1}, {"b": 2}, {}])
    assert values(source) == [{"a": 1, "b": None}, {"a": None, "b": 2}, {"a": None, "b": None}]


# Columnar files


def table() -> pa.Table:
    return pa.table(
        {
            "_index_": pa.array([0, 1, 2], pa.int64()),
            "small": pa.array([1, 2, None], pa.int8()),
            "text": pa.array(["a", "", None], pa.large_string()),
            "word": pa.array(["x", "y", "x"]).dictionary_encode(),
            "price": pa.array([Decimal("1.10"), Decimal("2.00"), None], pa.decimal128(5, 2)),
            "nested": pa.array([{"a": [1]}, {"a": []}, None]),
            "when": pa.array([dt.datetime(2024, 1, 2, 3), None, None], pa.timestamp("ms", "UTC")),
        }
    )


def write(path: Path, data: pa.Table) -> Path:
    if path.suffix == ".parquet":
        pq.write_table(data, path, row_group_size=2)
    elif path.suffix == ".stream":
        with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_stream(sink, data.schema) as writer:
            writer.write_table(data, max_chunksize=2)
    else:
        with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, data.schema) as writer:
            writer.write_table(data, max_chunksize=2)
    return path


@pytest.mark.parametrize(
    ("name", "format"),
    [("a.parquet", None), ("a.arrow", None), ("a.feather", None), ("a.stream", "arrow"), ("a.bin", "ARROW")],
)
def test_columnar_files_keep_their_types_in_the_plainest_layout(tmp_path: Path, name: str, format: str | None) -> None:
    source = open_file(write(tmp_path / name, table()), format)
    plain = {"text": pa.string(), "word": pa.string(), "when": pa.timestamp("us", "UTC")}
    assert source.schema.types == [plain.get(field.name, field.type) for field in table().schema]
    assert pa.Table.from_batches(source.batches()).to_pylist() == table().to_pylist()
    assert source.where(1) == f"{tmp_path / name}: row 2"


def test_large_batches_are_cut(tmp_path: Path) -> None:
    data = pa.table({"input": pa.array(range(10_000))})
    pq.write_table(data, tmp_path / "a.parquet")
    with pa.OSFile(str(tmp_path / "a.arrow"), "wb") as sink, pa.ipc.new_file(sink, data.schema) as writer:
        writer.write_table(data)
    csv = file(tmp_path, "a.csv", "input\n" + "\n".join(map(str, range(10_000))))
    lines = file(tmp_path, "a.jsonl", "\n".join(f'{{"input":{i}}}' for i in range(10_000)))
    sources = [open_file(path) for path in (tmp_path / "a.parquet", tmp_path / "a.arrow", csv, lines)]
    for source in [*sources, from_table(data), from_rows(data.to_pylist())]:
        batches = list(source.batches())
        assert max(batch.num_rows for batch in batches) <= BATCH_ROWS
        assert pa.Table.from_batches(batches).column("input").to_pylist() == list(range(10_000))


@pytest.mark.parametrize("name", ["a.parquet", "a.arrow", "a.feather"])
@pytest.mark.parametrize(
    "content",
    [
        pytest.param(b"", id="empty"),
        pytest.param(b"x" * 100, id="anything"),
        pytest.param(b"PAR1" + b"\0" * 50 + b"PAR1", id="framed as Parquet"),
        pytest.param(b"ARROW1\0\0" + b"\0" * 100, id="begun as Arrow"),
    ],
)
def test_a_columnar_file_that_is_none_is_refused_by_name(tmp_path: Path, name: str, content: bytes) -> None:
    with pytest.raises(DataError) as refused:
        open_file(file(tmp_path, name, content))
    assert str(tmp_path / name) in str(refused.value)


@pytest.mark.parametrize("name", ["a.parquet", "a.arrow"])
def test_a_columnar_file_that_was_cut_off_is_refused_by_name(tmp_path: Path, name: str) -> None:
    path = write(tmp_path / name, table())
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(DataError) as refused:
        values(open_file(path))
    assert str(path) in str(refused.value)


def test_a_parquet_file_with_damaged_pages_is_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"input": ["some text"] * 1000}), path, compression="zstd", use_dictionary=False)
    content = bytearray(path.read_bytes())
    content[30:60] = b"\xff" * 30
    path.write_bytes(content)
    with pytest.raises(DataError) as refused:
        values(open_file(path))
    assert str(path) in str(refused.value)


# Any file


def test_a_file_that_is_not_there_is_refused_by_name(tmp_path: Path) -> None:
    for path, message in (
        ("nothing.csv", "no such file"),
        ("*.csv", "no file matches"),
        ("", "the folder has no files"),
    ):
        with pytest.raises(DataError, match=message) as refused:
            open_file(tmp_path / path)
        assert str(path) in str(refused.value)


@pytest.mark.parametrize(
    ("name", "format", "shown"), [("a.docx", None, "docx"), ("a", None, ""), ("a.csv", "xml", "xml")]
)
def test_an_unknown_format_is_refused_with_those_known(
    tmp_path: Path, name: str, format: str | None, shown: str
) -> None:
    with pytest.raises(SpecError, match=f"unknown format '{shown}'") as refused:
        open_file(file(tmp_path, name, "input\n1\n"), format)
    assert all(known in str(refused.value) for known in format_names())


def test_a_declared_format_wins_over_the_suffix_and_case_does_not_matter(tmp_path: Path) -> None:
    assert values(open_file(file(tmp_path, "a.txt", "input\n1\n"), "csv")) == [{"input": 1}]
    assert values(open_file(file(tmp_path, "a.CSV", "input\n1\n"))) == [{"input": 1}]
    assert values(open_file(file(tmp_path, "a.csv", '{"input":1}\n'), "ndjson")) == [{"input": 1}]


@pytest.mark.parametrize(
    ("name", "text", "line", "offset"),
    [
        ("a.csv", "input\na\ncafé\n", 3, 11),
        ("a.csv", "café\n1\n", 1, 3),
        ("a.jsonl", '{"input":1}\n{"input":"é"}\n', 2, 22),
        ("a.json", '[{"input":1},\n\n{"input":"é"}]\n', 3, 25),
    ],
)
def test_a_byte_that_is_not_utf_8_is_named_by_line_and_offset(
    tmp_path: Path, name: str, text: str, line: int, offset: int
) -> None:
    path = file(tmp_path, name, text.encode("latin-1"))
    with pytest.raises(DataError) as refused:
        open_file(path)
    convert = "if it is Latin-1: iconv -f LATIN1 -t UTF-8 OLD > NEW"
    message = f"byte 0xe9 at offset {offset} is not UTF-8; save the file as UTF-8 ({convert})"
    assert faults(refused) == [(f"{path}:{line}", message)]


@pytest.mark.parametrize("name", ["a.csv", "a.tsv", "a.jsonl", "a.json"])
@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be"])
def test_utf_16_is_recognised(tmp_path: Path, name: str, encoding: str) -> None:
    path = file(tmp_path, name, "input,expected\na,b\n".encode(encoding))
    with pytest.raises(DataError, match=r"UTF-16.*; save it as UTF-8") as refused:
        open_file(path)
    assert str(path) in str(refused.value)


def test_the_same_rows_are_read_alike_from_every_format(tmp_path: Path) -> None:
    rows = [{"input": f"q{i}", "x": i, "y": i / 4, "z": i % 2 == 0} for i in range(50)]
    data = pa.Table.from_pylist(rows)
    header = ",".join(rows[0])
    body = "\n".join(",".join(str(cell) for cell in row.values()) for row in rows)
    paths = [
        file(tmp_path, "a.csv", f"{header}\n{body}\n"),
        file(tmp_path, "a.jsonl", "\n".join(map(json.dumps, rows))),
        file(tmp_path, "a.json", json.dumps(rows)),
        write(tmp_path / "a.parquet", data),
        write(tmp_path / "a.arrow", data),
    ]
    for source in [*map(open_file, paths), from_rows(rows), from_table(data)]:
        assert values(source) == rows
        assert source.schema.types == data.schema.types


def test_faults_are_raised_only_where_there_are_some() -> None:
    collected = Faults()
    collected.check()
    collected.add("here", "wrong")
    with pytest.raises(DataError, match="here: wrong"):
        collected.check()


@pytest.mark.parametrize("content", [b"a,b\n1\n2,caf\xe9\n3,4,5\n", b"a,b\n1,2,\xff\n", b'a,b\n1\n"\n",2,3\r4\n'])
def test_nothing_is_printed_before_the_faults_of_a_csv_file(
    tmp_path: Path, content: bytes, capfd: pytest.CaptureFixture[str]
) -> None:
    """Arrow prints errors that a handler of broken rows raises, and those of reading their text."""
    with pytest.raises(DataError):
        open_file(file(tmp_path, "a.csv", content))
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("text", ["NaN", "Infinity", "-Infinity"])
def test_a_number_that_json_lacks_leads_to_null(tmp_path: Path, text: str) -> None:
    for name, content in (("a.jsonl", f'{{"x": 1}}\n{{"x": {text}}}\n'), ("a.json", f'[{{"x":{text}}}]')):
        with pytest.raises(DataError, match=f"{text} is not a JSON value; write null"):
            open_file(file(tmp_path, name, content))


def test_empty_lists_have_the_digest_of_stores_that_hold_them_as_json() -> None:
    rows = [{"input": f"q{i}", "expected": "a", "tags": [], "mixed": [[]]} for i in range(4)]
    data = Dataset.from_rows(rows, input=["input", "tags"], expected="expected")
    assert str(data.schema.field("tags").type) == "list<item: string>"
    assert data.digest == "c7b9874d2c06e4f9244adaea4b224daf"  # as written while the column was JSON


def test_a_file_with_many_columns_of_one_name_is_read_at_once_with_a_short_note(tmp_path: Path) -> None:
    (tmp_path / "wide.csv").write_text(",".join(["a"] * 50_000) + "\n")
    with pytest.warns(DataNote) as notes:
        names = open_file(tmp_path / "wide.csv").schema.names
    assert names[-1] == "a_50000"
    assert str(notes[0].message).endswith("the second column 'a' is read as 'a_11'; and 49,989 more")
