"""ARFF files, and the splits that OpenML publishes in them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from evaluand.core.errors import DataError, SpecError
from evaluand.data.dataset import Dataset
from evaluand.data.sources import open_file
from evaluand.data.split import Split

HEADER = """% a comment
@RELATION 'a relation'
@attribute n integer
@ATTRIBUTE 'the x' Real
@attribute "kind" {red, 'dark blue', "it's"}
@attribute text string

@data
"""


def values(path: Path) -> list[dict[str, Any]]:
    return [row for batch in open_file(path).batches() for row in batch.to_pylist()]


def write(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def test_dense_rows_have_the_types_of_their_attributes(tmp_path: Path) -> None:
    rows = "1,0.5,red,plain\n% a comment\n-2 , 1e3, 'dark blue', 'a, \\'b\\'\\n'\n?,?,?,'?'\n"
    path = write(tmp_path / "a.arff", HEADER + rows)
    assert values(path) == [
        {"n": 1, "the x": 0.5, "kind": "red", "text": "plain"},
        {"n": -2, "the x": 1000.0, "kind": "dark blue", "text": "a, 'b'\n"},
        {"n": None, "the x": None, "kind": None, "text": "?"},
    ]
    assert [open_file(path).where(row) for row in range(3)] == [f"{path}:{line}" for line in (9, 11, 12)]


def test_numbers_that_are_all_written_as_integers_are_integers(tmp_path: Path) -> None:
    path = write(tmp_path / "a.arff", "@relation a\n@attribute x numeric\n@attribute y numeric\n@data\n1,1\n2,2.5\n")
    assert values(path) == [{"x": 1, "y": 1.0}, {"x": 2, "y": 2.5}]


def test_sparse_rows_leave_out_zeros(tmp_path: Path) -> None:
    path = write(tmp_path / "a.arff", HEADER + "{1 0.5, 2 'dark blue'}\n{}\n{0 3, 3 'x y'}\n")
    assert values(path) == [
        {"n": 0, "the x": 0.5, "kind": "dark blue", "text": ""},
        {"n": 0, "the x": 0.0, "kind": "red", "text": ""},
        {"n": 3, "the x": 0.0, "kind": "red", "text": "x y"},
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (HEADER + "1,2\n", "9: 2 values for 4 attributes"),
        (HEADER + "one,2,red,x\n1,2,red,'x\n", "9: n: 'one' is not integer"),
        (HEADER + "1,2,red,'x\n", "9: the cell that begins at column 9 is not well quoted"),
        (HEADER + "{9 1}\n", "9: the entry of a sparse row at column 1"),
        ("@relation a\n@attribute x\n", "2: an @attribute line has a name and a type"),
        ("@relation a\n@attribute x relational\n", "2: the type 'relational' of 'x' cannot be read"),
        ("@relation a\nx,y\n", "2: the header has @relation and @attribute lines before @data"),
        ("@relation a\n", "there is no @data line"),
    ],
)
def test_lines_that_break_the_format_are_named(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(DataError) as refused:
        open_file(write(tmp_path / "a.arff", text))
    assert message in str(refused.value)


# Splits

SPLIT = """@relation splits
@attribute type {TRAIN,TEST}
@attribute rowid numeric
@attribute repeat numeric
@attribute fold numeric
@data
"""


def split_rows(folds: list[list[int]]) -> str:
    """Each example in each fold of each repeat; `folds` is the fold that tests it."""
    return "".join(
        f"{'TEST' if tested == fold else 'TRAIN'},{row},{repeat},{fold}\n"
        for repeat, numbers in enumerate(folds)
        for fold in range(max(numbers) + 1)
        for row, tested in enumerate(numbers)
    )


def dataset(n: int = 4) -> Dataset:
    return Dataset.from_rows([{"input": i, "expected": i % 2} for i in range(n)])


def test_a_split_of_openml_gives_its_folds(tmp_path: Path) -> None:
    folds = [[0, 1, 0, 1], [1, 1, 0, 0]]
    path = write(tmp_path / "splits.arff", SPLIT + split_rows(folds))
    split = Split(file=str(path))
    assert split.repeats == 2
    assert split.assign(dataset()).numbers.tolist() == folds
    pq.write_table(pa.Table.from_batches(open_file(path).batches()), tmp_path / "splits.parquet")
    assert Split(file=str(tmp_path / "splits.parquet")).assign(dataset()).numbers.tolist() == folds


def test_the_content_of_the_file_identifies_the_split(tmp_path: Path) -> None:
    one = Split(file=str(write(tmp_path / "a.arff", SPLIT + split_rows([[0, 1]]))))
    same = Split(file=str(write(tmp_path / "b.arff", SPLIT + split_rows([[0, 1]]))))
    other = Split(file=str(write(tmp_path / "c.arff", SPLIT + split_rows([[1, 0]]))))
    assert one.spec == same.spec != other.spec
    assert "file" not in Split(folds=2).spec


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ("TEST,0,0,0\nTRAIN,9,0,0\n", "splits.arff:8: rowid 9 is the _index_ of none of the 4 examples"),
        ("TEST,0,0,0\nTEST,0,0,1\n", "splits.arff:8: tested in fold 1 and, in the same repeat, in fold 0"),
        ("TEST,0,0,0\nTRAIN,1,0,0\n", "repeat 0, fold 0 lists 2 of 4 examples; list each as test or training"),
        ("TEST,0.5,0,0\n", "splits.arff:7: rowid is 0.5; give an integer"),
        ("TEST,?,0,0\n", "splits.arff:7: rowid is None; give an integer"),
        ("VALIDATE,0,0,0\n", "splits.arff:7: type is 'VALIDATE'; give TRAIN or TEST"),
    ],
)
def test_a_split_that_does_not_fit_the_dataset_is_refused_by_row(tmp_path: Path, rows: str, message: str) -> None:
    with pytest.raises(DataError) as refused:
        Split(file=str(write(tmp_path / "splits.arff", SPLIT + rows))).assign(dataset())
    assert message in str(refused.value)


def test_a_file_has_the_whole_division(tmp_path: Path) -> None:
    path = write(tmp_path / "splits.arff", SPLIT + split_rows([[0, 1]]))
    with pytest.raises(SpecError, match="file has the division; leave out folds, seed"):
        Split(file=str(path), folds=2, seed=1)
    with pytest.raises(SpecError, match=r"no column is called 'repeat'.*a split has rowid, repeat, fold and type"):
        Split(file=str(write(tmp_path / "a.csv", "rowid,fold\n0,0\n")))
    curve = Split(file=str(write(tmp_path / "b.csv", "type,rowid,repeat,fold,sample\nTEST,0,0,0,1\n")))
    with pytest.raises(DataError, match="a learning curve, whose samples are parts of folds, is no split"):
        curve.assign(dataset(1))
