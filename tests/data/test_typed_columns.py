"""The type of a column, decided from all of its cells."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from evaluand.core import identity
from evaluand.core.errors import DataError
from evaluand.data.sources import open_file
from evaluand.data.typed_columns import TypedColumn, type_column

N = None


def texts(*cells: str | None) -> pa.Array:
    return pa.array(cells, pa.string())


def mixed(*cells: Any) -> pa.Array:
    """Cells of several types, as JSON lines have them."""
    encoded = [None if cell is None else identity.encode(cell).decode() for cell in cells]
    return pa.ExtensionArray.from_storage(pa.json_(pa.string()), pa.array(encoded, pa.string()))


def read(cells: pa.Array, declared: str | None = None) -> TypedColumn:
    return type_column("x", cells, declared)


@pytest.mark.parametrize(
    ("cells", "type", "values", "words"),
    [
        (texts("1", "2"), "integer", [1, 2], N),
        (texts("1", "1.0", " 2 ", "+3"), "integer", [1, 1, 2, 3], N),
        (texts("1e-3", ".5", "2."), "number", [0.001, 0.5, 2.0], N),
        (
            texts("1", "NA", "", "n/a", "#N/A", "NaN", "null", "None", "nil", "-", "?", "."),
            "integer",
            [1, *[N] * 11],
            N,
        ),
        (texts("1", "2", "3", "about 4"), "integer", [1, 2, 3, N], [N, N, N, "about 4"]),
        (texts("1", "2", "x", "y"), "text", ["1", "2", "x", "y"], N),
        (texts("01", "2"), "text", ["01", "2"], N),
        (texts("9007199254740993", "+2"), "integer", [9007199254740993, 2], N),
        (texts("9007199254740993", "2.5"), "text", ["9007199254740993", "2.5"], N),
        (texts("9223372036854775808", "2"), "text", ["9223372036854775808", "2"], N),
        (texts("cat", "", N), "text", ["cat", N, N], N),
        (texts("cat", "", "-"), "text", ["cat", "", "-"], N),
        (texts("true", "FALSE", "tRuE", N), "boolean", [True, False, True, N], N),
        (texts("true", "false", "NA"), "boolean", [True, False, N], N),
        (texts("true", "false", "true", "maybe"), "boolean", [True, False, True, N], [N, N, N, "maybe"]),
        (texts("yes", "no"), "text", ["yes", "no"], N),
        (texts("cat", "NA"), "text", ["cat", "NA"], N),
        (texts("NA", "-"), "empty", [N, N], N),
        (texts("['a', 'b']", "[]"), "list", [["a", "b"], []], N),
        (texts('["a"]', "[1]"), "list", [["a"], ["1"]], N),
        (texts("[1, 2]", "[]"), "list", [[1, 2], []], N),
        (texts("[a]", "[b]"), "text", ["[a]", "[b]"], N),
        (texts("__import__('os')", "[__import__('os')]"), "text", ["__import__('os')", "[__import__('os')]"], N),
        (mixed(1, "2", 3.0), "integer", [1, 2, 3], N),
        (mixed(1, 2, 3, "unknown"), "integer", [1, 2, 3, N], [N, N, N, "unknown"]),
        (mixed(True, "False", N), "boolean", [True, False, N], N),
        (mixed(1.0, "a", "b"), "text", ["1", "a", "b"], N),
        (mixed(1.0, "1.0", "a", "b", "c"), "text", ["1", "1.0", "a", "b", "c"], N),
        (mixed(1, 2, True), "integer", [1, 2, N], [N, N, "true"]),
        (mixed(["a"], "['b']", "NA"), "list", [["a"], ["b"], N], N),
        (pa.array([1.0, float("nan")]), "number", [1.0, N], N),
        (pa.array([N, N], pa.float64()), "empty", [N, N], N),
        (pa.array(["a", "b"]).dictionary_encode(), "text", ["a", "b"], N),
        (pa.array([["a"], N], pa.large_list(pa.large_string())), "list", [["a"], N], N),
    ],
)
def test_the_type_of_a_column_is_that_of_all_its_cells(
    cells: pa.Array, type: str, values: list[Any], words: list[Any] | None
) -> None:
    column = read(cells)
    assert (column.type, column.values.to_pylist()) == (type, values)
    assert (None if column.words is None else column.words.to_pylist()) == words


@pytest.mark.parametrize(
    ("cells", "declared", "type", "values"),
    [
        (texts("1", "2"), "text", "text", ["1", "2"]),
        (texts("01", "2"), "number", "integer", [1, 2]),
        (texts("a|b", "c"), "list", "list", [["a", "b"], ["c"]]),
        (texts("a; b", "c"), "list", "list", [["a", "b"], ["c"]]),
        (pa.array([1.0, 2.5, N]), "text", "text", ["1", "2.5", N]),
        (pa.array([True, N]), "text", "text", ["true", N]),
        (texts("NA", N), "text", "text", ["NA", N]),
    ],
)
def test_a_declared_type_comes_before_what_cells_look_like(
    cells: pa.Array, declared: str, type: str, values: list[Any]
) -> None:
    column = read(cells, declared)
    assert (column.type, column.values.to_pylist()) == (type, values)


def test_cells_that_are_none_of_the_declared_type_are_refused() -> None:
    with pytest.raises(DataError, match="'x' is declared as boolean, and holds integers; declare another type"):
        read(texts("1", "0"), "boolean")
    with pytest.raises(DataError, match=re.escape("'x' is declared as number, and holds 'x' is '1,234', as 1 cell")):
        read(texts("1,234"), "number")


def test_labels_that_are_equal_numbers_are_one_label_beside_words() -> None:
    column = read(texts("1", "1.0", "01x", "2"))
    assert column.labels().to_pylist() == ["1", "1", "01x", "2"]
    assert read(mixed(1.0, "TRUE", "b")).texts().to_pylist() == ["1", "true", "b"]


def test_integers_beyond_64_bits_equal_the_floats_of_their_value() -> None:
    huge = read(mixed(10**21, 10**21 + 1, 1e21, 2**70, float(2**70)))
    digits = [str(10**21), str(10**21 + 1), str(10**21), str(2**70), str(2**70)]
    assert (huge.type, huge.texts().to_pylist()) == ("text", digits)
    floats = read(mixed(1e21, "1e21", float(2**70), 0.5, N))
    assert (floats.type, floats.texts().to_pylist()) == ("number", [digits[0], digits[0], digits[3], "0.5", N])


def test_what_rows_were_chosen_changes_no_type() -> None:
    words = read(texts("1", "2", "n.d.")).take(pa.array([0, 1]))
    assert (words.words, words.describe_words(str, "missing")) == (N, N)
    for cells in (texts("1", "x", "y", "z"), texts("1,234")):
        with pytest.raises(DataError, match=r"'x' is text in other rows|'1,234', as 1 cell with a comma"):
            read(cells).take(pa.array([0])).numbers(str)


def test_floats_that_stand_for_several_integers_are_noted() -> None:
    [note] = read(pa.array([2.0**53, 1.0, N])).notes
    assert note == "'x' has 9007199254740992.0 as a float, which equals other integers, too; write them as text"
    for exact in ([2.0**53 - 1, 1.0], [2**60, 1], [1e20, 0.5]):
        assert not read(pa.array(exact)).notes


def test_infinite_numbers_are_no_missing_ones() -> None:
    with pytest.raises(DataError, match="row 3: 'x' is '-inf' where a number is needed"):
        read(texts("1", "2", "3", "-inf")).numbers(lambda row: f"row {row}")


@pytest.mark.parametrize(
    ("cells", "values", "word"),
    [
        ("1\nNA\n\n3", [1, N, N, 3], "NA"),
        ("1.5\nnan\n2", [1.5, N, 2.0], "nan"),
        ("tRUE\nfalse\n?", [True, False, N], "?"),
        ('a\n""\n\nb', ["a", N, N, "b"], N),
        ('a\n""\nb', ["a", "", "b"], N),
        ("NA\nNA", ["NA", "NA"], N),
        ("01\n2", ["01", "2"], N),
        ("1\nabout 2", ["1", "about 2"], N),
    ],
)
def test_the_cells_of_a_csv_file_are_read_by_the_same_words(
    tmp_path: Path, cells: str, values: list[Any], word: str | None
) -> None:
    path = tmp_path / "a.csv"
    path.write_text("i,x\n" + "\n".join(f"{row},{cell}" for row, cell in enumerate(cells.split("\n"))) + "\n")
    source = open_file(path)
    assert pa.Table.from_batches(source.batches())["x"].to_pylist() == values
    assert dict(source.notes) == ({"x": f"'x' has 1 cell with {word!r}, taken as missing"} if word else {})
