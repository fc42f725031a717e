"""Folders of problems: documents, tables and splits held against each other, loaded, and written."""

from __future__ import annotations

import copy
import datetime as dt
import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, strategies as st
from support.commands import Folder as Commands
from support.d3m_problem import DATASET, ROWS, SPLITS, Made, column
from support.places import VECTORS_FOLDER, needs

from evaluand.core.errors import DataError, SpecError
from evaluand.data.dataset import Dataset
from evaluand.data.split import Folds, Split
from evaluand.interop.d3m.dataset import dataset_document, examine_dataset, read_dataset, write_dataset
from evaluand.interop.d3m.folder import open_folder
from evaluand.interop.d3m.splits import read_splits, write_splits
from evaluand.interop.d3m.write import write_folder
from evaluand.predictions.problem.problem import Criterion, Division, Problem, Target, TargetDataset, TaskType
from evaluand.predictions.problem.truth import RowKeys

VECTORS = VECTORS_FOLDER / "d3m" / "problems"
needs_vectors = needs(VECTORS)


@pytest.fixture
def made(tmp_path: Path) -> Made:
    return Made(tmp_path / "p")


# Loading


def test_a_folder_is_a_problem_with_examples_and_a_split(made: Made) -> None:
    folder = made.opened()
    assert made.found() == ([], [])
    data = folder.dataset()
    assert [(e.id, e.expected, e.input["code"]) for e in data] == [
        ("10", "yes", "007"),
        ("11", "no", "08"),
        ("12", "yes", None),
        ("13", "no", "1.50"),
    ]
    assert data.roles.input == ("image", "code")
    assert folder.folds().numbers.tolist() == [[-1, 0, -1, 0]]
    assert not folder.hidden
    assert folder.predictions_path == made.root / "predictions.csv"


@pytest.mark.parametrize("way", [".", "p_problem", "p_problem/problemDoc.json"])
def test_one_path_stands_for_all_of_it(made: Made, way: str) -> None:
    made.write()
    assert len(open_folder(made.root / way).dataset()) == 4


def test_roles_may_be_given(made: Made) -> None:
    data = made.opened().dataset(attributes=["code"], input="image")
    assert next((e.input, e.attributes) for e in data) == ("a.png", {"code": "007"})


def test_columns_have_their_declared_types(made: Made) -> None:
    kinds = ["integer", "real", "boolean", "dateTime", "realVector", "string", "categorical", "json"]
    made.dataset["dataResources"][1]["columns"] = [
        column(0, "d3mIndex", "integer", "index"),
        *(column(i, kind, kind, "attribute") for i, kind in enumerate(kinds, 1)),
        column(9, "label", "categorical", "suggestedTarget"),
    ]
    made.target["colIndex"] = 9
    header = ",".join(["d3mIndex", *kinds, "label"])
    values = '5,1e3,True,2026-01-31,"10,11,100,100",05,7,"{""a"":1}",1'
    made.rows(f"{header}\n" + "".join(f"{i},{values}\n" for i in (10, 11, 12, 13)))
    example = next(iter(made.opened().dataset()))
    assert example.expected == "1"
    assert example.input == {
        "integer": 5,
        "real": 1000.0,
        "boolean": True,
        "dateTime": dt.datetime(2026, 1, 31),
        "realVector": [10.0, 11.0, 100.0, 100.0],
        "string": "05",
        "categorical": "7",
        "json": '{"a":1}',
    }


def test_several_targets_are_a_mapping(made: Made) -> None:
    made.problem["about"] |= {"taskSubType": "multiClass"}
    targets = made.problem["inputs"]["data"][0]["targets"]
    targets.append({"targetIndex": 1, "resID": "1", "colIndex": 2, "colName": "code"})
    assert next(iter(made.opened().dataset())).expected == {"label": "yes", "code": "007"}


def test_weights_keys_groups_and_privileged_columns_have_roles(made: Made) -> None:
    made.dataset["about"]["datasetSchemaVersion"] = "4.0.0"
    made.dataset["dataResources"][1]["columns"] = [
        column(0, "d3mIndex", "integer", "index"),
        column(1, "w", "real", "instanceWeight"),
        column(2, "key", "string", "key"),
        column(3, "label", "categorical", "suggestedTarget"),
        column(4, "patient", "categorical", "attribute", "suggestedGroupingKey"),
        column(5, "secret", "real", "attribute", "suggestedPrivilegedData"),
    ]
    about = made.problem["about"]
    about |= {"problemSchemaVersion": "4.1.1", "taskKeywords": ["classification", "binary"]}
    del about["taskType"], about["taskSubType"]
    made.problem["inputs"]["data"][0]["privilegedData"] = [
        {"privilegedDataIndex": 0, "resID": "1", "colIndex": 5, "colName": "secret"}
    ]
    rows = "".join(f"{i},{i / 10},k{i},yes,p{i // 2},3\n" for i in (10, 11, 12, 13))
    made.rows("d3mIndex,w,key,label,patient,secret\n" + rows)
    roles = made.opened().dataset().roles
    assert (roles.weight, roles.cluster, roles.input) == ("w", "patient", ("patient",))
    assert set(roles.metadata) == {"key", "secret"}


def test_the_rows_of_an_image_are_one_example_and_never_cross(made: Made) -> None:
    made.columns[1]["role"] = ["index"]
    made.rows("d3mIndex,image,code,label\n10,b.png,1,x\n11,a.png,2,y\n12,b.png,3,z\n13,a.png,4,x\n")
    made.splits(
        "d3mIndex,image,type,repeat,fold\n10,b.png,TEST,0,0\n11,a.png,TRAIN,0,0\n12,b.png,TEST,0,0\n13,a.png,TRAIN,0,0\n"
    )
    folder = made.opened()
    data = folder.dataset()
    assert [(e.id, e.expected, e.metadata) for e in data] == [
        ("b.png", ["x", "z"], {"d3mIndex": [10, 12]}),
        ("a.png", ["y", "x"], {"d3mIndex": [11, 13]}),
    ]
    assert folder.folds().numbers.tolist() == [[0, -1]]
    made.splits(
        "d3mIndex,image,type,repeat,fold\n10,b.png,TEST,0,0\n11,c.png,TRAIN,0,0\n12,b.png,TRAIN,0,0\n13,a.png,TRAIN,0,0\n"
    )
    assert made.found()[0] == [
        ("p_problem/dataSplits.csv:3", "other_index"),
        ("p_problem/dataSplits.csv:4", "contradicted"),
    ]


def test_a_multi_index_gathers_labels(made: Made) -> None:
    made.columns[0]["role"] = ["multiIndex"]
    made.rows("d3mIndex,image,code,label\n10,a.png,7,x\n10,a.png,7,y\n11,b.png,8,x\n")
    made.splits("d3mIndex,type,repeat,fold\n10,TRAIN,0,0\n10,TRAIN,0,0\n11,TEST,0,0\n")
    folder = made.opened()
    assert [(e.id, e.expected, e.input["code"]) for e in folder.dataset()] == [
        ("10", ["x", "y"], "7"),
        ("11", ["x"], "8"),
    ]
    assert folder.folds().numbers.tolist() == [[-1, 0]]


def test_hidden_targets_come_from_the_truth_next_to_the_problem(made: Made) -> None:
    made.rows("d3mIndex,image,code,label\n10,a.png,1,\n11,b.png,2,\n12,c.png,3,\n13,d.png,4,\n")
    folder = made.opened()
    assert folder.hidden
    assert [e.expected for e in folder.dataset()] == [None] * 4
    (made.root / "targets.csv").write_text("label,d3mIndex\nd,13\nc,12\nb,11\na,10\n")
    assert [e.expected for e in folder.dataset()] == ["a", "b", "c", "d"]
    assert [e.expected for e in folder.dataset(truth=False)] == [None] * 4
    (made.root / "targets.csv").write_text("d3mIndex,label\n10,a\n")
    with pytest.raises(DataError, match="3 test rows have no target value"):
        folder.dataset()


def test_the_file_of_a_media_value_is_found_and_stays_inside(made: Made) -> None:
    [dataset] = made.opened().datasets
    table = dataset.learning
    assert table is not None
    image = table.column("image")
    assert image is not None
    assert dataset.media(image, "a.png") == (made.root / "p_dataset" / "media" / "a.png").resolve()
    with pytest.raises(DataError, match="leads out of media/"):
        dataset.media(image, "../datasetDoc.json")


# What does not fit


@pytest.mark.parametrize(
    ("change", "where", "code"),
    [
        (lambda m: m.target.update(colIndex=2), "targets[0].colIndex", "column_mismatch"),
        (lambda m: m.target.update(colName="lable"), "targets[0].colName", "column_mismatch"),
        (lambda m: m.target.update(colName="lable", colIndex=9), "targets[0].colName", "no_such_column"),
        (lambda m: m.target.update(resID="7"), "targets[0].resID", "no_such_resource"),
        (lambda m: m.target.update(resID="0"), "targets[0].resID", "not_a_table"),
    ],
)
def test_a_target_that_is_not_where_it_should_be_is_reported(made: Made, change: Any, where: str, code: str) -> None:
    change(made)
    assert made.found()[0] == [(f"p_problem/problemDoc.json: inputs.data[0].{where}", code)]


def test_a_misplaced_target_is_reported_where_it_is(made: Made) -> None:
    made.target["colIndex"] = 2
    with pytest.raises(DataError, match=r"colIndex: is 2, but in dataset 'p_dataset' 'label' is column 3"):
        made.opened()


@pytest.mark.parametrize(
    ("change", "where", "code"),
    [
        (lambda m: m.dataset["about"].update(datasetID=""), "about.datasetID", "empty"),
        (lambda m: m.columns[1].update(colType="text"), "dataResources[1].columns[1].colType", "not_allowed"),
        (lambda m: m.columns[1].update(colIndex=0), "dataResources[1].columns[1].colIndex", "twice"),
        (lambda m: m.columns[1].update(colName="code"), "dataResources[1].columns[2].colName", "twice"),
        (lambda m: m.columns[1].update(colKind="x"), "dataResources[1].columns[1].colKind", "unknown_key"),
        (lambda m: m.columns[1]["refersTo"].update(resID="9"),
         "dataResources[1].columns[1].refersTo.resID", "no_such_resource"),
        (lambda m: m.columns[1]["refersTo"].update(resID="1"),
         "dataResources[1].columns[1].refersTo.resID", "not_a_collection"),
        (lambda m: m.columns[2].update(refersTo={"resID": "1", "resObject": {"columnName": "x"}}),
         "dataResources[1].columns[2].refersTo.resObject", "no_such_column"),
        (lambda m: m.columns[1]["refersTo"].update(resObject="thing"),
         "dataResources[1].columns[1].refersTo.resObject", "not_allowed"),
        (lambda m: m.dataset["dataResources"][0].update(resID="1"), "dataResources[1].resID", "twice"),
        (lambda m: m.dataset["dataResources"][0].update(columns=[column(0, "a", "real", "index")]),
         "dataResources[0].columns", "not_applicable"),
        (lambda m: m.dataset["dataResources"][1].update(resPath="../../secret.csv"),
         "dataResources[1].resPath", "unsafe_path"),
        (lambda m: m.dataset["dataResources"][1].update(resFormat=3), "dataResources[1].resFormat", "wrong_type"),
    ],
)  # fmt: skip
def test_what_breaks_the_schema_of_datasets_is_reported(made: Made, change: Any, where: str, code: str) -> None:
    change(made)
    made.write()
    _, findings = examine_dataset(made.root / "p_dataset" / "datasetDoc.json")
    assert (where, code) in [(fault.where, fault.code) for fault in findings.faults]


@pytest.mark.parametrize(
    ("rows", "where", "code"),
    [
        (ROWS.replace("code,label", "label,code"),
         "datasetDoc.json: dataResources[1].columns[2].colIndex", "header_mismatch"),
        (ROWS.replace("code", "kode", 1), "datasetDoc.json: dataResources[1].columns[2].colName", "header_mismatch"),
        (ROWS.replace("12,", "x,"), "tables/learningData.csv:4, d3mIndex", "bad_value"),
        (ROWS.replace("12,", ","), "tables/learningData.csv:4", "empty_index"),
        (ROWS.replace("12,", "10,"), "tables/learningData.csv:4", "twice"),
        (ROWS.replace("c.png", "../c.png"), "tables/learningData.csv:4", "unsafe_path"),
        (ROWS.replace("c.png", "/etc/passwd"), "tables/learningData.csv:4", "unsafe_path"),
        (ROWS.replace("c.png", "e.png"), "tables/learningData.csv:4", "no_such_media"),
        (ROWS + "14,a.png\n", "tables/learningData.csv:6", "bad_csv"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_table_is_reported_by_its_row(made: Made, rows: str, where: str, code: str) -> None:
    made.rows(rows)
    assert (f"p_dataset/{where}", code) in made.found()[0]


def test_a_table_or_dataset_that_is_missing_is_reported(made: Made) -> None:
    (made.root / "p_dataset" / "tables" / "learningData.csv").unlink()
    assert [code for _, code in made.found()[0]] == ["no_such_file"]
    made.rows(ROWS)
    made.problem["inputs"]["data"][0]["datasetID"] = "q_dataset"
    assert made.found()[0] == [("p_problem/problemDoc.json: inputs.data[0].datasetID", "other_dataset")]
    shutil.copytree(made.root / "p_dataset", made.root / "r_dataset")
    other = made.root / "r_dataset" / "datasetDoc.json"
    other.write_text(other.read_text().replace("p_dataset", "r_dataset"))
    assert made.found()[0] == [("p_problem/problemDoc.json: inputs.data[0].datasetID", "no_such_dataset")]


def test_a_link_out_of_the_folder_is_not_followed(made: Made) -> None:
    table = made.root / "p_dataset" / "tables" / "learningData.csv"
    outside = made.root.parent / "outside.csv"
    shutil.move(table, outside)
    table.symlink_to(outside)
    assert made.found()[0] == [("p_dataset/datasetDoc.json: dataResources[1].resPath", "unsafe_path")]


def test_media_in_another_place_are_noted(made: Made) -> None:
    shutil.rmtree(made.root / "p_dataset" / "media")
    assert made.found() == (
        [],
        [("p_dataset/datasetDoc.json: dataResources[1].columns[1].refersTo", "no_media")],
    )


# Splits


@pytest.mark.parametrize(
    ("text", "where", "code"),
    [
        (SPLITS.replace("fold\n", "flod\n"), "", "missing_column"),
        (SPLITS.replace("12,TRAIN", "12,VALID"), ":4", "bad_type"),
        (SPLITS.replace("12,TRAIN,0", "12,TRAIN,x"), ":4, repeat", "bad_repeat"),
        (SPLITS.replace("12,TRAIN,0,0", "12,TRAIN,0,"), ":4, fold", "bad_fold"),
        (SPLITS.replace("12,TRAIN,0,0", "12,TRAIN,0,-1"), ":4, fold", "bad_fold"),
        (SPLITS.replace("12,TRAIN,0", "12,TRAIN,2"), ":4", "repeat_numbering"),
        (SPLITS.replace("12,TRAIN", "99,TRAIN"), ":4", "unknown_index"),
        (SPLITS.replace("12,TRAIN", ",TRAIN"), ":4, d3mIndex", "bad_index"),
        (SPLITS.replace("12,TRAIN", "10,TRAIN"), ":4", "twice"),
        (SPLITS.replace("12,TRAIN", "10,TEST"), ":4", "contradicted"),
        (SPLITS.replace("12,TRAIN,0,0\n", ""), ":2", "incomplete"),
        (SPLITS.replace("12,TRAIN,0,0\n", ""), "", "unassigned"),
        ("d3mIndex,type,repeat,fold\n", "", "no_rows"),
    ],
)
def test_what_is_wrong_with_a_split_is_reported_by_its_row(made: Made, text: str, where: str, code: str) -> None:
    made.splits(text)
    assert (f"p_problem/dataSplits.csv{where}", code) in made.found()[0]


def test_a_split_that_is_missing_is_reported_by_the_documents_path(made: Made) -> None:
    (made.root / "p_problem" / "dataSplits.csv").unlink()
    assert made.found()[0] == [("p_problem/problemDoc.json: inputs.dataSplits.splitsFile", "no_such_file")]


def test_what_the_document_says_of_the_split_is_held_against_it(made: Made) -> None:
    made.problem["inputs"]["dataSplits"] |= {"testSize": 0.2, "numRepeats": 3}
    place = "p_problem/problemDoc.json: inputs.dataSplits"
    assert made.found() == ([], [(f"{place}.numRepeats", "other_split"), (f"{place}.testSize", "other_split")])
    made.problem["inputs"]["dataSplits"] = {"method": "kFold", "numFolds": 2}
    assert made.found()[0] == [(f"{place}.numFolds", "other_split")]
    made.splits(SPLITS + "10,TEST,0,1\n11,TRAIN,0,1\n12,TRAIN,0,1\n13,TRAIN,0,1\n")
    assert made.found()[0] == [(f"{place}.method", "never_tested")]
    made.splits(SPLITS + "10,TEST,0,1\n11,TRAIN,0,1\n12,TEST,0,1\n13,TRAIN,0,1\n")
    assert made.found() == ([], [])
    assert made.opened().folds().numbers.tolist() == [[1, 0, 1, 0]]
    made.splits(SPLITS + "10,TEST,0,1\n11,TEST,0,1\n12,TEST,0,1\n13,TRAIN,0,1\n")
    assert made.found()[0] == [("p_problem/dataSplits.csv:7", "tested_twice")]


def test_the_part_that_is_tested_needs_no_rows_to_learn_from(made: Made) -> None:
    made.rows("d3mIndex,image,code,label\n11,b.png,2,\n13,d.png,4,\n")
    assert made.found() == ([], [("p_problem/dataSplits.csv", "other_part")])
    made.splits("d3mIndex,type,repeat,fold\n11,TEST,0,0\n13,TEST,0,0\n")
    assert made.opened().folds().numbers.tolist() == [[0, 0]]


@given(st.integers(2, 20), st.integers(1, 4), st.integers(1, 3), st.booleans(), st.randoms(use_true_random=False))
def test_a_split_that_is_written_is_read_again(
    tmp_path_factory: Any, n: int, folds: int, repeats: int, whole: bool, random: Any
) -> None:
    path = tmp_path_factory.mktemp("splits") / "dataSplits.csv"
    least = 0 if whole or folds > 1 else -1
    numbers = [[random.randint(least, folds - 1) for _ in range(n)] for _ in range(repeats)]
    keys = RowKeys({"d3mIndex": pa.array(random.sample(range(1000), n))}, np.arange(n))
    write_splits(path, Folds(np.array(numbers, np.int32), folds), keys)
    again = read_splits(path, keys)
    assert again.numbers.tolist() == numbers
    assert again.count == folds


def test_a_split_by_image_is_written_row_by_row(tmp_path: Path) -> None:
    keys = RowKeys({"d3mIndex": pa.array([5, 6, 7]), "image": pa.array(["a", "b", "a"])}, np.array([0, 1, 0], np.int64))
    write_splits(tmp_path / "s.csv", Folds(np.array([[0, -1]], np.int32), 1), keys)
    assert (tmp_path / "s.csv").read_text() == (
        "d3mIndex,image,type,repeat,fold\n5,a,TEST,0,0\n6,b,TRAIN,0,0\n7,a,TEST,0,0\n"
    )
    assert read_splits(tmp_path / "s.csv", keys).numbers.tolist() == [[0, -1]]
    with pytest.raises(SpecError, match="the split has 3 examples, but the table has 2"):
        write_splits(tmp_path / "t.csv", Folds(np.zeros((1, 3), np.int32), 1), keys)


# Finding


def test_the_parts_of_a_problem_are_found_by_name_or_asked_for(made: Made) -> None:
    made.write()
    for part in ("TRAIN", "TEST"):
        for kind in ("dataset", "problem"):
            shutil.copytree(made.root / f"p_{kind}", made.root / part / f"{kind}_{part}")
        document = made.root / part / f"dataset_{part}" / "datasetDoc.json"
        document.write_text(document.read_text().replace('"p_dataset"', f'"p_dataset_{part}"'))
    assert open_folder(made.root).document == made.root / "p_problem" / "problemDoc.json"
    tested = open_folder(made.root, "TEST")
    assert tested.document == made.root / "TEST" / "problem_TEST" / "problemDoc.json"
    assert tested.datasets[0].id == "p_dataset_TEST"
    assert [note.code for note in tested.notes] == ["other_part"]


def test_no_problem_and_several_are_refused(made: Made, tmp_path: Path) -> None:
    with pytest.raises(SpecError, match=r"there is no problemDoc\.json"):
        open_folder(made.root / "p_dataset")
    Made(tmp_path / "q").write()
    made.write()
    with pytest.raises(SpecError, match=r"there are 2 problems: p, q; name the folder of one, such as .*/p"):
        open_folder(tmp_path)
    with pytest.raises(DataError, match="no such file or folder"):
        open_folder(tmp_path / "none")


# Real folders


@needs_vectors
@pytest.mark.parametrize(
    ("name", "examples", "hidden", "notes"),
    [
        ("1491_one_hundred_plants_margin", 319, True, {"no_name"}),
        ("185_baseball", 267, True, {"no_name", "real_for_integer"}),
        ("22_handgeometry", 38, True, {"no_name", "no_media"}),
        ("object_detection_seed", 4, False, {"no_media"}),
    ],
)
def test_real_folders_are_opened(name: str, examples: int, hidden: bool, notes: set[str]) -> None:
    folder = open_folder(VECTORS / name)
    data = folder.dataset()
    assert (len(data), folder.hidden) == (examples, hidden)
    assert {note.code for note in folder.notes} == notes
    assert all(example.expected is not None for example in data)
    assert folder.predictions_path.is_file()


@needs_vectors
def test_the_images_of_the_object_detection_folder_never_cross() -> None:
    folder = open_folder(VECTORS / "object_detection_seed")
    assert [(e.id, len(e.expected)) for e in folder.dataset()] == [
        ("img_00001.png", 2),
        ("img_00002.png", 1),
        ("img_00285.png", 2),
        ("img_00225.png", 2),
    ]
    assert folder.folds().numbers.tolist() == [[-1, -1, 0, 0]]


# Writing

WRITTEN = Problem(
    id="w_problem",
    task_types=(TaskType.REGRESSION,),
    datasets=(TargetDataset(id="w_dataset", targets=(Target(index=0, resource="?", column=0, name="y"),)),),
    division=Division(method="folds", folds=3, stratified=False, file="dataSplits.csv"),
    criteria=(Criterion(metric="r_squared"),),
)


@pytest.mark.parametrize("version", ["3.1.1", "4.1.1"])
def test_a_folder_that_is_written_is_read_again(tmp_path: Path, version: str) -> None:
    rows = [
        {"x": f'text, "{i}"', "n": i, "v": [i + 0.1, 2.0], "t": dt.datetime(2026, 1, i + 1), "b": i > 3, "y": i / 7}
        for i in range(9)
    ]
    data = Dataset.from_rows(rows, input=["x", "n", "v", "t", "b"], expected="y")
    folds = Split(folds=3, seed=4).assign(data)
    folder = write_folder(tmp_path / "w", WRITTEN, data, folds, version=version)
    assert sorted(path.name for path in (tmp_path / "w").iterdir()) == ["w_dataset", "w_problem", "w_solution"]
    again = folder.dataset()
    assert [(e.input, e.expected) for e in again] == [(e.input, e.expected) for e in data]
    assert folder.folds().numbers.tolist() == folds.numbers.tolist()
    assert folder.problem.targets[0] == Target(index=0, resource="learningData", column=6, name="y")
    assert folder.predictions_path == tmp_path / "w" / "w_solution" / "predictions.csv"
    assert [note.code for note in folder.notes] == ["no_name"]


def test_texts_of_any_arrow_type_are_written_and_nested_columns_are_refused(tmp_path: Path) -> None:
    texts = pa.array(["007", "x"])
    columns = {"y": [1.5, 2.5], "large": texts.cast(pa.large_string()), "coded": texts.dictionary_encode()}
    problem = replace(WRITTEN, division=None)
    folder = write_folder(tmp_path / "w", problem, Dataset.from_arrow(pa.table(columns), expected="y"))
    assert [e.input for e in folder.dataset()] == [{"large": t, "coded": t} for t in ("007", "x")]
    nested = Dataset.from_arrow(pa.table({"y": [1.0], "x": [[["a"]]]}), expected="y")
    with pytest.raises(SpecError, match=r"column 'x' of the type .* cannot be written as CSV"):
        write_folder(tmp_path / "n", problem, nested)


def test_a_folder_is_not_written_over_another(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("")
    data = Dataset.from_rows([{"x": 1, "y": 2}], input="x", expected="y")
    with pytest.raises(SpecError, match="exists already; give a new folder"):
        write_folder(tmp_path, WRITTEN, data)
    ranked = replace(WRITTEN, criteria=(Criterion(metric="hits_at_k"),))
    with pytest.raises(DataError, match="schema 3 has no hits_at_k"):
        write_folder(tmp_path / "new", ranked, data.from_rows([{"x": i, "y": i} for i in range(3)]), version="3.1.1")
    assert not (tmp_path / "new").exists()
    with pytest.raises(SpecError, match="the dataset has no column 'y'"):
        write_folder(tmp_path / "new", WRITTEN, Dataset.from_rows([{"x": 1}], input="x"))


def test_a_dataset_document_is_written_and_read_again(made: Made, tmp_path: Path) -> None:
    made.columns[2]["refersTo"] = {"resID": "1", "resObject": {"columnName": "label"}}
    path = made.write() / "p_dataset" / "datasetDoc.json"
    assert dataset_document(read_dataset(path), "3.1.1") == made.dataset
    write_dataset(read_dataset(path), tmp_path / "datasetDoc.json")
    assert read_dataset(tmp_path / "datasetDoc.json").resources == read_dataset(path).resources


# Commands


def test_commands_show_and_check(made: Made, tmp_path: Path) -> None:
    made.write()
    commands = Commands(tmp_path)
    shown = commands.done("problem", "show", made.root)
    assert "dataset   p_dataset: label (column 3)" in shown
    assert "split     hold-out of 0.5, stratified, dataSplits.csv; tested: 2" in shown
    assert commands.json("problem", "show", made.root)["tested"] == [[2]]
    assert commands.json("problem", "check", made.root) == {"ok": True, "faults": [], "notes": []}
    made.target["colIndex"] = 2
    made.write()
    result = commands.call("problem", "check", made.root)
    assert result.exit_code == 1
    assert "inputs.data[0].targets[0].colIndex: is 2, but" in result.stdout
    assert "[column_mismatch]\n1 fault\n" in result.stdout


def test_a_folder_is_written_over_another_only_when_that_is_asked_for(tmp_path: Path) -> None:
    data = Dataset.from_rows([{"x": i, "y": i} for i in range(10)], input="x", expected="y")
    place = tmp_path / "new" / "w"
    nested = replace(WRITTEN, division=Division(test=0.3, stratified=False, file="sub/splits.csv"))
    folder = write_folder(place, nested, data)
    assert folder.folds().count == 1
    assert (place / "w_problem" / "sub" / "splits.csv").is_file()
    folder.predictions_path.write_text("mine")
    before = folder.document.read_bytes()
    with pytest.raises(SpecError, match="exists already; give a new folder, or overwrite=True"):
        write_folder(place, replace(nested, id="other"), data)
    assert folder.document.read_bytes() == before
    assert write_folder(place, replace(nested, id="other"), data, overwrite=True).problem.id == "other"
    assert folder.predictions_path.read_text() == "mine"
    assert [path.name for path in place.parent.iterdir()] == ["w"]


def test_a_folder_that_cannot_be_written_leaves_nothing(tmp_path: Path) -> None:
    data = Dataset.from_rows([{"x": i, "y": i} for i in range(10)], input="x", expected="y")
    itself = replace(WRITTEN, division=Division(test=0.3, stratified=False, file="./PROBLEMDOC.json"))
    with pytest.raises(SpecError, match="is the problem's own document"):
        write_folder(tmp_path / "w", itself, data)
    with pytest.raises(SpecError, match="no column"):
        write_folder(tmp_path / "w", WRITTEN, Dataset.from_rows([{"x": 1}], input="x"))
    assert [*tmp_path.iterdir()] == []


def test_a_folder_is_never_written_through_a_link(tmp_path: Path) -> None:
    data = Dataset.from_rows([{"x": i, "y": i} for i in range(10)], input="x", expected="y")
    outside = tmp_path / "outside"
    outside.mkdir()
    (tmp_path / "w").mkdir()
    (tmp_path / "w" / "w_problem").symlink_to(outside)
    with pytest.raises(DataError, match="leads out of") as error:
        write_folder(tmp_path / "w", WRITTEN, data, overwrite=True)
    assert error.value.codes == ("unsafe_path",)
    assert [*outside.iterdir()] == []


# Links


def moved_out(path: Path, place: Path) -> None:
    """Puts a file or folder elsewhere, and a link in its stead."""
    place.mkdir(exist_ok=True)
    path.rename(place / path.name)
    path.symlink_to(place / path.name)


@pytest.mark.parametrize(
    "name",
    [
        "p_dataset",
        "p_problem",
        "p_dataset/datasetDoc.json",
        "p_problem/problemDoc.json",
        "p_problem/dataSplits.csv",
        "p_dataset/tables",
        "p_dataset/tables/learningData.csv",
    ],
)
def test_a_link_that_leads_out_of_the_folder_is_refused_in_one_sentence(made: Made, tmp_path: Path, name: str) -> None:
    root = made.write()
    moved_out(root / name, tmp_path / "outside")
    with pytest.raises(DataError, match="leads out of") as error:
        open_folder(root)
    assert [fault.code for fault in error.value.faults] == ["unsafe_path"]


def test_files_of_the_truth_and_the_solution_are_in_the_folder_whatever_links_there_are(
    made: Made, tmp_path: Path
) -> None:
    root, outside = made.write(), tmp_path / "outside"
    (outside / "p_solution").mkdir(parents=True)
    (outside / "targets.csv").write_text("d3mIndex,label\n")
    (root / "p_solution").symlink_to(outside / "p_solution")
    (root / "targets.csv").symlink_to(outside / "targets.csv")
    folder = open_folder(root)
    for name in ("truth_path", "solution", "predictions_path", "scores_path"):
        with pytest.raises(DataError, match="leads out of") as error:
            getattr(folder, name)
        assert error.value.codes == ("unsafe_path",)
    (root / "p_solution").unlink()
    (root / "p_solution").mkdir()
    (root / "p_solution" / "predictions.csv").symlink_to(outside / "nothing.csv")
    with pytest.raises(DataError, match="leads out of"):
        _ = folder.predictions_path


def test_links_within_the_folder_and_to_it_are_followed(made: Made, tmp_path: Path) -> None:
    root = made.write()
    moved_out(root / "p_dataset" / "tables" / "learningData.csv", root / "p_dataset" / "kept")
    (tmp_path / "link").symlink_to(root)
    assert len(open_folder(tmp_path / "link").dataset()) == 4


@pytest.mark.parametrize("way", [".", "problemDoc.json", "../p_problem"])
def test_a_problem_is_found_from_within_its_folder(made: Made, way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(made.write() / "p_problem")
    assert len(open_folder(way).dataset()) == 4


def test_a_link_to_itself_is_no_file(made: Made) -> None:
    loop = made.root / "p_dataset" / "media" / "a.png"
    loop.unlink()
    loop.symlink_to(loop.name)
    assert made.found()[0] == [("p_dataset/tables/learningData.csv:2", "no_such_media")]


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (lambda m: m.rows(""), "empty_file"),
        (lambda m: m.splits(""), "empty_file"),
        (lambda m: m.splits(SPLITS.replace("11,TEST,0,0", f"11,TEST,{2**40},0")), "bad_repeat"),
        (lambda m: m.problem["inputs"]["dataSplits"].update(randomSeed=2**63), "out_of_range"),
        (lambda m: m.problem["inputs"]["dataSplits"].update(randomSeed=10**30), "out_of_range"),
        (lambda m: m.problem["inputs"].update(data=[]), "empty"),
        (lambda m: m.dataset["about"].update(datasetID=None), "missing_key"),
    ],
)
def test_what_makes_no_sense_is_reported_in_one_sentence(made: Made, change: Any, code: str) -> None:
    change(made)
    assert [found for _, found in made.found()[0]] == [code]


# Several datasets


def test_of_several_datasets_the_one_with_targets_is_the_main_one(made: Made) -> None:
    other = copy.deepcopy(DATASET)
    other["about"]["datasetID"] = "other"
    (made.root / "other" / "tables").mkdir(parents=True)
    (made.root / "other" / "tables" / "learningData.csv").write_text("d3mIndex,image,code,label\n7,x.png,1,no\n")
    (made.root / "other" / "datasetDoc.json").write_text(json.dumps(other))
    made.problem["inputs"]["data"].insert(0, {"datasetID": "other", "targets": []})
    folder = made.opened()
    assert [example.id for example in folder.dataset()] == ["10", "11", "12", "13"]
    assert [example.id for example in folder.dataset(0)] == ["7"]
    assert folder.folds().numbers.tolist() == [[-1, 0, -1, 0]]
