"""Problems as they are published: columns that no document describes, no split, parts, several problems in a folder."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from support.commands import Folder as Commands
from support.d3m_problem import PROBLEM, ROWS, SPLITS, Made, column
from support.problem_scores import noted

from evaluand.core.errors import DataError, SpecError
from evaluand.interop.d3m.folder import open_folder
from evaluand.predictions.scoring import score

INDEX = column(0, "d3mIndex", "integer", "index")


@pytest.fixture
def made(tmp_path: Path) -> Made:
    return Made(tmp_path / "p")


def predict(made: Made, *labels: str) -> Path:
    path = made.root / "mine.csv"
    path.write_text("d3mIndex,label\n" + "".join(f"{i},{label}\n" for i, label in zip((11, 13), labels, strict=True)))
    return path


# Columns


@pytest.mark.parametrize(
    "columns",
    [
        [INDEX],
        [{"colIndex": 0, "role": ["index"]}, {"colIndex": 3}],
        [{"colName": "d3mIndex", "role": ["index"]}, {"colName": "label", "colType": "categorical"}],
        [column(0, "d3mIndex", "integer", "index"), column(3, "label", "unknown", "suggestedTarget")],
        [],
    ],
    ids=["the index alone", "by index", "by name", "of unknown type", "none"],
)
def test_columns_are_completed_from_the_table(made: Made, columns: list[dict[str, Any]]) -> None:
    made.columns[:] = columns
    folder = made.opened()
    resource = folder.resource()
    assert sorted((c.index, c.name, c.type) for c in resource.columns) == [
        (0, "d3mIndex", "integer"),
        (1, "image", "string"),
        (2, "code", "string"),  # 007 is no number
        (3, "label", "categorical"),
    ]
    assert [c.name for c in resource.index] == ["d3mIndex"]
    assert [example.expected for example in folder.dataset()] == ["yes", "no", "yes", "no"]
    assert score(made.root, predict(made, "no", "yes")).rows[0].value == 0.5


def test_types_of_undescribed_columns_are_inferred_and_noted(made: Made) -> None:
    made.columns[:] = [INDEX]
    made.rows("d3mIndex,a,b,label\n10,1,0.5,1\n11,2,,2\n12,,1e3,1\n13,4,2,2\n")
    folder = made.opened()
    assert {name: str(folder.table().schema.field(name).type) for name in ("a", "b", "label")} == {
        "a": "int64",
        "b": "double",
        "label": "string",
    }
    [note] = [note for note in folder.notes if note.code == "undescribed_column"]
    assert note.message == (
        "the document does not describe 'a' (integer), 'b' (real), 'label' (categorical); types are inferred from the "
        "table and the task"
    )
    assert score(made.root, predict(made, "2", "1")).rows[0].value == 0.5


def test_an_undescribed_target_of_a_regression_is_a_number(made: Made) -> None:
    made.columns[:] = [INDEX]
    made.rows("d3mIndex,a,b,label\n10,1,0.5,1\n11,2,,2\n12,,1e3,1\n13,4,2,2\n")
    made.problem["about"] |= {"taskType": "regression", "taskSubType": "univariate"}
    made.problem["inputs"]["performanceMetrics"] = [{"metric": "meanAbsoluteError"}]
    made.write()
    assert score(made.root, predict(made, "2.5", "2.0")).rows[0].value == 0.25


def test_a_target_that_the_table_hides_may_be_undescribed(made: Made) -> None:
    made.columns[:] = [INDEX]
    made.rows("".join(line.rpartition(",")[0] + "\n" for line in ROWS.splitlines()))
    (made.root / "p_problem" / "targets.csv").write_text("d3mIndex,label\n11,no\n13,no\n")
    folder = made.opened()
    assert {note.code for note in folder.notes} == {"undescribed_column", "hidden_target"}
    assert score(made.root, predict(made, "no", "yes")).rows[0].value == 0.5


def test_a_target_that_is_nowhere_is_reported(made: Made) -> None:
    made.columns[:] = [INDEX]
    made.target.update(colName="lable", colIndex=9)
    assert made.found()[0] == [("p_problem/problemDoc.json: inputs.data[0].targets[0].colName", "no_such_column")]


@pytest.mark.parametrize(
    ("incomplete", "message"),
    [
        ({"colIndex": 9}, "colName: is missing, and tables/learningData.csv has no column 9"),
        ({"colName": "x"}, "colIndex: is missing, and tables/learningData.csv has no column 'x'"),
        ({"colType": "real"}, "colName: is missing, and so is colIndex"),
    ],
)
def test_a_column_that_the_table_does_not_have_either_is_reported(
    made: Made, incomplete: dict[str, Any], message: str
) -> None:
    made.columns[:] = [INDEX, incomplete]
    with pytest.raises(DataError) as error:
        made.opened()
    assert [str(fault).rpartition("columns[1].")[2] for fault in error.value.faults] == [message]


def test_a_reference_to_an_undescribed_column_is_found_in_the_table(made: Made) -> None:
    made.columns[:] = [INDEX, column(2, "code", "categorical", "attribute")]
    made.columns[1]["refersTo"] = {"resID": "1", "resObject": {"columnName": "image"}}
    assert made.found()[0] == []


def test_a_table_that_is_a_pointer_of_git_lfs_is_reported_in_one_sentence(made: Made) -> None:
    made.columns[:] = [INDEX]
    made.rows("version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 12\n")
    with pytest.raises(DataError) as error:
        made.opened()
    [fault] = error.value.faults
    assert fault.message == "is a pointer of Git LFS, not the file itself; fetch it with git lfs pull"


# Without a split


def test_without_a_split_the_truth_says_which_rows_are_tested(made: Made, tmp_path: Path) -> None:
    (made.root / "p_problem" / "dataSplits.csv").unlink()
    (made.root / "targets.csv").write_text("d3mIndex,label\n13,yes\n11,no\n")
    folder = made.opened()
    assert folder.folds().test(0, 0).tolist() == [1, 3]
    scores = score(made.root, predict(made, "no", "no"))
    assert (scores.rows[0].value, scores.rows[0].n) == (0.5, 2)
    assert [(note.code, note.message) for note in noted(scores)] == [
        ("no_split", "there is no file dataSplits.csv, so the rows of targets.csv are tested: 2 of 4")
    ]
    shown = Commands(tmp_path).done("problem", "show", made.root)
    assert "split     hold-out of 0.5, stratified, targets.csv; tested: 2" in shown


def test_a_truth_that_is_named_says_which_rows_are_tested_too(made: Made, tmp_path: Path) -> None:
    (made.root / "p_problem" / "dataSplits.csv").unlink()
    made.write()
    truth = tmp_path / "truth.csv"
    truth.write_text("d3mIndex,label\n11,no\n13,yes\n")
    assert score(made.root, predict(made, "no", "no"), truth).rows[0].value == 0.5
    with pytest.raises(DataError, match=r"no file dataSplits\.csv .*, and no targets\.csv, so no row is known to be"):
        score(made.root, predict(made, "no", "no"))


def test_a_document_without_a_split_tests_all_rows_or_those_of_the_truth(made: Made) -> None:
    del made.problem["inputs"]["dataSplits"]
    made.write()
    mine = made.root / "mine.csv"
    mine.write_text("d3mIndex,label\n" + "".join(f"{i},no\n" for i in range(10, 14)))
    scores = score(made.root, mine)
    assert (scores.rows[0].value, scores.rows[0].n) == (0.5, 4)
    assert [note.message for note in noted(scores)] == ["is missing, so all rows of the table are tested"]
    (made.root / "targets.csv").write_text("d3mIndex,label\n11,no\n13,no\n")
    scores = score(made.root, predict(made, "no", "no"))
    assert (scores.rows[0].value, scores.rows[0].n) == (1.0, 2)
    assert [note.message for note in noted(scores)] == ["is missing, so the rows of targets.csv are tested"]


@pytest.mark.parametrize(
    ("truth", "code"), [("d3mIndex,label\n11,no\n99,yes\n", "extra_row"), ("id,label\n1,no\n", "missing_column")]
)
def test_a_truth_of_other_rows_is_reported(made: Made, truth: str, code: str) -> None:
    (made.root / "p_problem" / "dataSplits.csv").unlink()
    (made.root / "targets.csv").write_text(truth)
    made.write()
    with pytest.raises(DataError) as error:
        score(made.root, predict(made, "no", "no"))
    assert code in error.value.codes


@pytest.mark.parametrize(
    ("split", "message"),
    [
        (ROWS, "is no split of rows; it lacks the columns 'type', 'repeat', 'fold'"),
        (SPLITS + "".join(f"{i},TEST,0,0\n" for i in range(20, 30)),
         "10 of 12 TEST rows are not in the learning table, first d3mIndex '20'"),
    ],
)  # fmt: skip
def test_a_split_that_is_none_is_one_sentence(made: Made, split: str, message: str) -> None:
    made.splits(split)
    with pytest.raises(DataError) as error:
        made.opened()
    assert [fault.message for fault in error.value.faults] == [message]


def test_where_a_split_is_none_the_truth_says_which_rows_are_tested(made: Made) -> None:
    made.splits(ROWS)
    (made.root / "targets.csv").write_text("d3mIndex,label\n13,yes\n11,no\n")
    made.write()
    scores = score(made.root, predict(made, "no", "no"))
    assert (scores.rows[0].value, scores.rows[0].n) == (0.5, 2)
    assert [(note.code, note.message) for note in noted(scores)] == [
        ("no_split", "dataSplits.csv is no split of rows, so the rows of targets.csv are tested: 2 of 4")
    ]


# Parts, and several problems


def divide(made: Made, *, scored: str = "TEST", whole: bool = False) -> None:
    """Copies the problem to TRAIN, TEST and SCORE, as the archive has them: SCORE has the documents of `scored`."""
    made.write()
    for part, name in (("TRAIN", "TRAIN"), ("TEST", "TEST"), ("SCORE", scored)):
        for kind in ("dataset", "problem"):
            shutil.copytree(made.root / f"p_{kind}", made.root / part / f"{kind}_{name}")
        kept = [line for line in SPLITS.splitlines() if ("TRAIN" in line) == (part == "TRAIN") or "type" in line]
        (made.root / part / f"problem_{name}" / "dataSplits.csv").write_text("\n".join(kept) + "\n")
        rows = [ROWS.splitlines()[0], *(row for row in ROWS.splitlines()[1:] if any(row[:2] == k[:2] for k in kept))]
        rows = [rows[0], *(row.rpartition(",")[0] + "," for row in rows[1:])] if part == "TEST" else rows
        (made.root / part / f"dataset_{name}" / "tables" / "learningData.csv").write_text("\n".join(rows) + "\n")
    for kind in () if whole else ("dataset", "problem"):
        shutil.rmtree(made.root / f"p_{kind}")


@pytest.mark.parametrize("scored", ["TEST", "SCORE"])
def test_each_part_is_chosen_by_its_folder(made: Made, scored: str) -> None:
    divide(made, scored=scored, whole=True)
    assert open_folder(made.root).document == made.root / "p_problem" / "problemDoc.json"
    for part, name in (("TRAIN", "TRAIN"), ("test", "TEST"), ("SCORE", scored)):
        document = open_folder(made.root, part).document
        assert document == made.root / part.upper() / f"problem_{name}" / "problemDoc.json"
    for path in (made.root / "SCORE", made.root / "SCORE" / f"problem_{scored}"):
        assert score(path, predict(made, "no", "yes")).rows[0].value == 0.5
    with pytest.raises(SpecError, match="the problem has no part LEARN; it has TRAIN and TEST and SCORE"):
        open_folder(made.root, "LEARN")


def test_of_parts_alone_the_scored_one_is_read_with_a_note(made: Made) -> None:
    divide(made)
    scores = score(made.root, predict(made, "no", "yes"))
    assert scores.rows[0].value == 0.5
    assert noted(scores)[0].message == "the part SCORE is read; --part chooses TRAIN and TEST"
    with pytest.raises(SpecError, match="target values are hidden") as error:
        score(made.root, predict(made, "no", "yes"), part="TEST")
    assert error.value.for_commands.endswith("give --truth FILE, or --part SCORE")


def test_without_a_scored_part_the_tested_one_is_read_with_a_note(made: Made) -> None:
    divide(made)
    shutil.rmtree(made.root / "SCORE")
    with pytest.raises(SpecError, match=r"target values are hidden, and there is no targets\.csv"):
        score(made.root, predict(made, "no", "yes"))
    fill(made.root / "TEST" / "dataset_TEST")
    scores = score(made.root, predict(made, "no", "yes"))
    assert (scores.rows[0].value, noted(scores)[0].message) == (0.5, "the part TEST is read; --part chooses TRAIN")


def test_a_part_scores_the_rows_that_it_has_and_an_empty_truth_is_none(made: Made) -> None:
    divide(made, scored="TEST")
    splits = made.root / "SCORE" / "problem_TEST" / "dataSplits.csv"
    splits.write_text(splits.read_text() + "".join(f"{row},TEST,0,0\n" for row in range(20, 30)))
    (made.root / "SCORE" / "targets.csv").touch()
    scores = score(made.root / "SCORE", predict(made, "no", "yes"))
    assert (scores.rows[0].value, scores.rows[0].n) == (0.5, 2)
    assert noted(scores)[0].message == "10 of 12 TEST rows are not in the table of SCORE, so they are not scored"


def test_hidden_values_are_those_of_a_scored_dataset_without_a_document_of_its_own(made: Made) -> None:
    divide(made, scored="SCORE")
    shutil.rmtree(made.root / "SCORE" / "problem_SCORE")
    assert score(made.root, predict(made, "no", "yes")).rows[0].value == 0.5


def test_a_dataset_whose_id_names_another_part_is_read_with_a_note(made: Made) -> None:
    made.problem["inputs"]["data"][0]["datasetID"] = "p_dataset_TEST"
    made.dataset["about"]["datasetID"] = "p_dataset_TRAIN"
    assert "other_part" in {note.code for note in made.opened().notes}


# Without the split that the document names


def fill(dataset: Path) -> None:
    """Gives the rows of a test part their target values."""
    table = dataset / "tables" / "learningData.csv"
    table.write_text("".join(line + "\n" for line in ROWS.splitlines() if line[:2] in table.read_text()))


def test_the_table_of_the_tested_part_says_which_rows_are_tested(made: Made) -> None:
    divide(made, whole=True)
    for split in made.root.rglob("dataSplits.csv"):
        split.unlink()
    shutil.rmtree(made.root / "SCORE")
    scores = score(made.root, predict(made, "no", "yes"))
    assert (scores.rows[0].value, scores.rows[0].n) == (0.5, 2)
    assert noted(scores)[0].message == (
        "there is no file dataSplits.csv, so the rows of TEST/dataset_TEST/tables/learningData.csv are tested: 2 of 4"
    )
    with pytest.raises(DataError, match="so no row is known to be tested"):
        score(made.root, predict(made, "no", "yes"), part="TRAIN")


def test_all_rows_are_tested_if_nothing_says_which_and_all_have_a_prediction(made: Made) -> None:
    (made.root / "p_problem" / "dataSplits.csv").unlink()
    made.write()
    mine = made.root / "mine.csv"
    mine.write_text("d3mIndex,label\n10,yes\n11,no\n12,no\n13,no\n")
    scores = score(made.root, mine)
    assert (scores.rows[0].value, scores.rows[0].n) == (0.75, 4)
    assert [note.message for note in noted(scores)] == [
        "nothing says which rows are tested; all of the table are, since all have a prediction"
    ]
    with pytest.raises(DataError, match="give the truth of those that are, or predictions of all rows"):
        score(made.root, predict(made, "no", "no"))


def test_a_split_in_a_folder_above_the_document_is_read_with_a_note(made: Made) -> None:
    (made.root / "p_problem" / "dataSplits.csv").rename(made.root / "dataSplits.csv")
    scores = score(made.write(), predict(made, "no", "yes"))
    assert (scores.rows[0].value, noted(scores)[0].message) == (0.5, "is read from dataSplits.csv")


# Names that mean the only thing there is


def test_the_only_dataset_is_meant_whatever_its_id(made: Made) -> None:
    made.problem["inputs"]["data"][0]["datasetID"] = "elsewhere"
    scores = score(made.write(), predict(made, "no", "yes"))
    assert scores.rows[0].value == 0.5
    assert noted(scores)[0].message == "there is no dataset 'elsewhere'; the only one is 'p_dataset', which is read"
    assert made.found()[0] == [("p_problem/problemDoc.json: inputs.data[0].datasetID", "other_dataset")]


def test_the_only_table_is_meant_whatever_its_id(made: Made) -> None:
    made.target["resID"] = "learningData"
    assert [code for _, code in made.found()[0]] == ["no_such_resource"]
    del made.columns[1]["refersTo"], made.dataset["dataResources"][0]
    made.write()
    scores = score(made.root, predict(made, "no", "yes"))
    assert scores.rows[0].value == 0.5
    assert noted(scores)[0].message.endswith("has no resource 'learningData'; it has 1 only, which is read")


def test_an_unnamed_column_of_the_table_is_not_counted(made: Made) -> None:
    made.rows("".join(f"{i},{line}\n" if i else f",{line}\n" for i, line in enumerate(ROWS.splitlines())))
    scores = score(made.write(), predict(made, "no", "yes"))
    assert scores.rows[0].value == 0.5
    made.target["colIndex"] = 4
    with pytest.raises(DataError, match=r"is 4, but in dataset 'p_dataset' 'label' is column 3"):
        score(made.write(), predict(made, "no", "yes"))


def test_several_problems_are_listed_although_one_is_nearer(made: Made, tmp_path: Path) -> None:
    made.write()
    for name in ("template", "deep/q"):
        Made(tmp_path / name).write()
    shutil.move(tmp_path / "template" / "p_problem" / "problemDoc.json", tmp_path / "template" / "problemDoc.json")
    with pytest.raises(SpecError) as error:
        open_folder(tmp_path)
    listed = "there are 3 problems: deep/q, p, template"
    assert str(error.value) == f"{tmp_path}: {listed}; name the folder of one, such as {tmp_path}/deep/q"


def test_two_documents_of_one_dataset_are_listed(made: Made) -> None:
    made.write()
    other = made.root / "other_problem"
    shutil.copytree(made.root / "p_problem", other)
    (other / "problemDoc.json").write_text(json.dumps(PROBLEM))
    with pytest.raises(SpecError, match="there are 2 problems: other_problem, p_problem; name the folder of one"):
        open_folder(made.root)
    assert open_folder(other).problem.id == "p_problem"


def test_problems_next_to_their_datasets_are_opened(made: Made) -> None:
    made.write()
    collection = made.root.parent
    for name in ("problem", "dataset"):
        (collection / f"{name}s").mkdir()
        (made.root / f"p_{name}").rename(collection / f"{name}s" / f"p_{name}_1")
    shutil.copytree(collection / "problems" / "p_problem_1", collection / "problems" / "p_problem_2")
    folder = open_folder(collection / "problems" / "p_problem_1")
    assert (folder.root, len(folder.dataset())) == (collection, 4)
    with pytest.raises(SpecError, match="there are 2 problems: problems/p_problem_1, problems/p_problem_2; name"):
        open_folder(collection)


# Cells


def test_a_score_depends_on_no_attribute(made: Made) -> None:
    (made.root / "p_dataset" / "media" / "a.png").unlink()
    for kind, code in (("categorical", "no_such_media"), ("boolean", "bad_value")):
        made.columns[2]["colType"] = kind  # the cells are 007, 08 and 1.50
        assert {found for _, found in made.found()[0]} == {code}
        assert score(made.root, predict(made, "no", "yes")).rows[0].value == 0.5


def test_a_boolean_target_may_be_written_yes_and_no(made: Made) -> None:
    made.columns[3]["colType"] = "boolean"
    made.problem["inputs"]["performanceMetrics"] = [{"metric": "f1", "posLabel": "no"}]
    made.write()
    assert score(made.root, predict(made, "no", "N")).rows[0].value == 1.0
    made.problem["inputs"]["performanceMetrics"][0]["posLabel"] = "maybe"
    made.rows(ROWS.replace("11,b.png,08,no", "11,b.png,08,yes"))
    made.write()
    with pytest.raises(DataError, match=r"the positive label \(posLabel\) 'maybe' is none of False and True"):
        score(made.root, predict(made, "no", "yes"))
