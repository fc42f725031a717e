"""A document never stops a score that does not depend on it: what is beside a score, and what it needs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.commands import Folder as Commands
from support.d3m_problem import Made, column
from support.problem_scores import noted

from evaluand.core.errors import DataError, Fault
from evaluand.interop.d3m.dataset import dataset_document
from evaluand.interop.d3m.needed import needed_of_dataset, needed_of_problem
from evaluand.interop.d3m.problem import examine_problem, problem_document, read_problem
from evaluand.predictions.problem.problem import Augmentation
from evaluand.predictions.scoring import score

SAID = "d3mIndex,label\n11,no\n13,yes\n"  # of the tested rows one is right
Change = Callable[[Made], Any]


@pytest.fixture
def made(tmp_path: Path) -> Made:
    (tmp_path / "said.csv").write_text(SAID)
    return Made(tmp_path)


def about(**fields: Any) -> Change:
    return lambda made: made.problem["about"].update(fields)


def keywords(*words: str, **fields: Any) -> Change:
    return about(problemSchemaVersion="4.0.0", taskKeywords=["classification", *words], **fields)


def without(*path: Any) -> Change:
    def change(made: Made) -> None:
        place: Any = {"problem": made.problem, "dataset": made.dataset}
        for key in path[:-1]:
            place = place[key]
        del place[path[-1]]

    return change


def within(*path: Any, **fields: Any) -> Change:
    def change(made: Made) -> None:
        place: Any = {"problem": made.problem, "dataset": made.dataset}
        for key in path:
            place = place[key]
        place.update(fields)

    return change


def metric(**fields: Any) -> Change:
    return within("problem", "inputs", "performanceMetrics", 0, **fields)


def splits(**fields: Any) -> Change:
    return within("problem", "inputs", "dataSplits", **fields)


def reference(**fields: Any) -> Change:
    """A column of the table that refers to something."""
    return within("dataset", "dataResources", 1, "columns", 2, refersTo=fields)


INPUTS = ("problem", "inputs")
OWN: list[Change] = [
    within("problem", notes="x"),
    within("problem", "about", notes="x"),
    within(*INPUTS, notes="x"),
    within(*INPUTS, "data", 0, notes="x"),
    within(*INPUTS, "data", 0, "targets", 0, notes="x"),
    splits(notes="x"),
    metric(notes="x"),
    within("problem", "expectedOutputs", notes="x"),
    within("dataset", notes="x"),
    within("dataset", "about", notes="x"),
    within("dataset", "dataResources", 0, notes="x"),
    within("dataset", "dataResources", 1, notes="x"),
    within("dataset", "dataResources", 1, "columns", 2, notes="x"),
]
WORDS: list[tuple[Change, str]] = [
    (keywords("anomalyDetection"), "not_allowed"),
    (keywords(""), "not_allowed"),
    (keywords("CLASSIFICATION!"), "not_allowed"),
    (keywords(3), "wrong_type"),  # type: ignore[arg-type]
    (keywords("univariate"), "not_applicable"),
    (about(problemSchemaVersion="4.0.0", taskKeywords="classification"), "wrong_type"),
    (about(taskType="guessing"), "not_allowed"),
    (about(taskSubType="trinary"), "not_allowed"),
    (about(taskSubType="univariate"), "not_applicable"),
    (about(taskType=7), "not_allowed"),
    (about(problemSchemaVersion="9.0"), "unknown_version"),
    (splits(method="bootstrap"), "not_allowed"),
]
MISSING: list[Change] = [
    without("problem", "about"),
    without("problem", "about", "problemID"),
    without("problem", "about", "problemName"),
    without("problem", "about", "taskType"),
    without("problem", "expectedOutputs"),
    without(*INPUTS, "data", 0, "targets", 0, "targetIndex"),
    without("dataset", "about", "datasetID"),
    without("dataset", "dataResources", 0, "resPath"),
    without("dataset", "dataResources", 0, "resID"),
    within(*INPUTS, "data", 0, privilegedData=[{"resID": "1", "colIndex": 2, "colName": "code"}]),
    within(*INPUTS, "data", 0, forecastingHorizon={"resID": "1", "colIndex": 2, "colName": "code"}),
]
NO_MEANING: list[tuple[Change, str]] = [
    (metric(posLabel="yes"), "not_applicable"),
    (metric(posLabel=["yes"]), "not_applicable"),
    (metric(K=3), "not_applicable"),
    (metric(K=0), "not_applicable"),
    (metric(specifyOther="accuracy"), "not_applicable"),
    (within(*INPUTS, "data", 0, "targets", 0, numClusters=2), "not_applicable"),
    (splits(numFolds=3), "not_applicable"),
    (splits(method="kFold", numFolds=2), "not_applicable"),
    (splits(method="kFold"), "out_of_range"),
    (splits(testSize=3), "out_of_range"),
    (splits(numRepeats=-1), "out_of_range"),
    (splits(randomSeed="often"), "wrong_type"),
    (splits(splitScript="../../split.py"), "unsafe_path"),
    (within("problem", "expectedOutputs", scoresFile="/scores.csv"), "unsafe_path"),
]
REFERENCES: list[tuple[Change, str]] = [
    (within(*INPUTS, "data", 0, datasetID="other"), "other_dataset"),
    (reference(resID="9", resObject="item"), "no_such_resource"),
    (reference(resID="1", resObject="item"), "not_a_collection"),
    (reference(resID="1", resObject={"columnName": "none"}), "no_such_column"),
    (reference(resID="1", resObject={"columnIndex": 17}), "no_such_column"),
    (reference(resID="0", resObject="pixel"), "not_allowed"),
    (reference(resID="0", resObject={"pixel": "x"}), "wrong_type"),
    (reference(resID="0", resObject={"nodeAttribute": 5}), "wrong_type"),
    (reference(resObject="item"), "missing_key"),
    (within("dataset", "dataResources", 1, "columns", 2, colType="colour"), "not_allowed"),
    (within("dataset", "dataResources", 1, "columns", 2, colIndex=1), "twice"),
    (within("dataset", "dataResources", 1, "columns", 2, colName="kode"), "header_mismatch"),
    (within("dataset", "dataResources", 1, columnsCount=1), "out_of_range"),
    (within("dataset", "dataResources", 0, resFormat="png"), "wrong_type"),
]
BESIDE = [
    *((change, "unknown_key") for change in OWN),
    *WORDS,
    *((change, "missing_key") for change in MISSING),
    *NO_MEANING,
    *REFERENCES,
]


@pytest.mark.parametrize(("change", "code"), BESIDE)
def test_what_no_score_depends_on_is_noted_by_score_and_a_fault_of_the_check(
    made: Made, change: Change, code: str
) -> None:
    change(made)
    scores = score(made.write(), made.root / "said.csv", intervals=False)
    assert [row.value for row in scores.rows] == [0.5]
    assert code in [note.code for note in noted(scores)]
    checked = Commands(made.root).call("problem", "check", made.root)
    assert checked.exit_code == 1
    assert f"[{code}]" in checked.output


NEEDED: list[tuple[Change, str]] = [
    (without("problem", "inputs"), "missing_key"),
    (without(*INPUTS, "data"), "missing_key"),
    (without(*INPUTS, "data", 0, "targets"), "missing_key"),
    (without(*INPUTS, "data", 0, "targets", 0, "colName"), "missing_key"),
    (without(*INPUTS, "data", 0, "targets", 0, "colIndex"), "missing_key"),
    (without(*INPUTS, "performanceMetrics"), "missing_key"),
    (without("dataset", "dataResources"), "missing_key"),
    (within(*INPUTS, "data", 0, "targets", 0, resID="9"), "no_such_resource"),
    (within(*INPUTS, "data", 0, "targets", 0, colIndex=2), "column_mismatch"),
    (within(*INPUTS, "data", 0, "targets", 0, colName="lable"), "column_mismatch"),
    (splits(splitsFile="none.csv"), "no_such_file"),
    (splits(splitsFile="../said.csv"), "unsafe_path"),
    (metric(metric="accurate"), "not_allowed"),
    (metric(metric="other", specifyOther="no_such_metric"), "unregistered_metric"),
    (metric(metric="precisionAtTopK", K=0), "out_of_range"),
    (metric(metric="f1", posLabel=["yes"]), "wrong_type"),
    (metric(metric="f1"), "needs_positive"),
    (metric(metric="hitsAtK"), "cannot_be_scored"),
    (within("dataset", "dataResources", 1, resPath="tables/none.csv"), "no_such_file"),
    (within("dataset", "dataResources", 1, resPath="../../data.csv"), "unsafe_path"),
    (within("dataset", "dataResources", 1, "columns", 0, role=["attribute"], colName="d3m"), "no_index"),
    (within("dataset", "dataResources", 1, "columns", 0, colName="d3m"), "header_mismatch"),
    (within("dataset", "dataResources", 1, "columns", 3, colIndex=2), "twice"),
]


@pytest.mark.parametrize(("change", "code"), NEEDED)
def test_what_targets_split_metrics_and_index_need_stops_the_score(made: Made, change: Change, code: str) -> None:
    change(made)
    with pytest.raises(DataError) as refused:
        score(made.write(), made.root / "said.csv", intervals=False)
    assert code in refused.value.codes


def test_a_refused_score_shows_what_is_beside_it_as_notes_only(made: Made) -> None:
    within("problem", notes="x")(made)
    metric(metric="accurate")(made)
    with pytest.raises(DataError) as refused:
        score(made.write(), made.root / "said.csv")
    assert refused.value.codes == ("not_allowed",)
    assert {fault.code for fault in examine_problem(made.problem)[1].faults} == {"not_allowed", "unknown_key"}


@pytest.mark.parametrize(
    ("resource", "named"),
    [
        ("graph", {"nodeAttribute": "nodeID"}),
        ("graph", {"edgeAttribute": "weight"}),
        ("graph", "nodeAttribute"),
        ("graph", "edgeAttribute"),
        ("graph", "node"),
        ("graph", "edge"),
        ("1", {"columnName": "code"}),
        ("1", {"columnIndex": 2}),
    ],
)
def test_every_reference_of_the_schema_is_read_and_written_as_it_was(made: Made, resource: str, named: Any) -> None:
    graph = {"resID": "graph", "resPath": "graphs/g.gml", "resType": "graph", "resFormat": {"text/vnd.gml": ["gml"]}}
    made.dataset["dataResources"].append(graph | {"isCollection": False})
    reference(resID=resource, resObject=named)(made)
    assert made.found() == ([], [])
    written = dataset_document(made.opened().datasets[0], "3.1.1")
    assert written["dataResources"][1]["columns"][2]["refersTo"] == {"resID": resource, "resObject": named}


def test_every_chapter_of_the_problem_schema_4_is_read_and_written_as_it_was(made: Made) -> None:
    keywords("lupi", "tabular")(made)
    del made.problem["about"]["taskType"], made.problem["about"]["taskSubType"]
    place = {"resID": "1", "colIndex": 2, "colName": "code"}
    made.problem["inputs"]["data"][0] |= {
        "privilegedData": [{"privilegedDataIndex": 0, **place}],
        "forecastingHorizon": {**place, "horizonValue": 10.0},
    }
    splits(
        splitScript="split.py",
        randomSeed=7,
        datasetViewMaps={"train": [{"from": "p_dataset", "to": "p_dataset_TRAIN"}]},
    )(made)
    made.problem["dataAugmentation"] = [{"domain": ["census"], "keywords": ["income", "housing"]}]
    problem = read_problem(made.problem)
    assert problem.augmentations == (Augmentation(domains=("census",), keywords=("income", "housing")),)
    assert read_problem(problem_document(problem, "4.0.0")) == problem
    assert made.found() == ([], [])


@pytest.mark.parametrize("sources", ["census", ["census"], [{"domain": "census"}], [{"domain": [3]}], [{"own": 1}]])
def test_a_broken_chapter_of_augmentation_is_beside_the_score(made: Made, sources: Any) -> None:
    made.problem["dataAugmentation"] = sources
    scores = score(made.write(), made.root / "said.csv", intervals=False)
    assert scores.rows[0].value == 0.5
    assert noted(scores)[0].code in ("wrong_type", "unknown_key")


def test_a_dataset_of_two_tables_needs_only_the_one_with_the_targets(made: Made) -> None:
    other = {**made.dataset["dataResources"][1], "resID": "2", "resPath": "tables/none.csv"}
    made.dataset["dataResources"].append(other | {"columns": [column(0, "x", "integer", "index", notes="x")]})
    made.dataset["dataResources"].append({"resID": "2", "resType": "table", "resPath": "tables/none.csv"})
    scores = score(made.write(), made.root / "said.csv", intervals=False)
    assert scores.rows[0].value == 0.5
    assert {note.code for note in noted(scores)} == {"unknown_key", "twice", "unknown_label"}


def test_two_targets_of_one_number_are_told_apart_by_their_columns(made: Made) -> None:
    made.columns[2]["role"] = ["suggestedTarget"]
    made.rows("d3mIndex,image,code,label\n10,a.png,x,yes\n11,b.png,x,no\n12,c.png,x,yes\n13,d.png,y,no\n")
    targets = made.problem["inputs"]["data"][0]["targets"]
    targets.append({"targetIndex": 0, "resID": "1", "colIndex": 2, "colName": "code"})
    (made.root / "said.csv").write_text("d3mIndex,label,code\n11,no,x\n13,yes,y\n")
    scores = score(made.write(), made.root / "said.csv", intervals=False)
    assert [(row.target, row.value) for row in scores.rows] == [("label", 0.5), ("code", 1.0)]
    assert [note.code for note in noted(scores)] == ["twice", "unknown_label"]


@pytest.mark.parametrize(
    ("where", "code", "expected"),
    [
        ("inputs.data[0].targets[1].colName", "missing_key", True),
        ("inputs.data[12].datasetID", "no_such_dataset", True),
        ("inputs.dataSplits.splitsFile", "no_such_file", True),
        ("inputs.performanceMetrics[3].posLabel", "wrong_type", True),
        ("inputs.performanceMetrics[3].posLabel", "not_applicable", False),
        ("inputs.data[0].targets[1].targetIndex", "twice", False),
        ("inputs.dataSplits.method", "not_allowed", False),
        ("inputs.dataSplits.numFolds", "other_split", False),
        ("about", "missing_key", False),
        ("expectedOutputs.predictionsFile", "unsafe_path", False),
        ("a chapter of a later schema", "wrong_type", False),
    ],
)
def test_one_list_says_which_part_of_a_problem_is_needed(where: str, code: str, expected: bool) -> None:
    assert needed_of_problem(Fault(where, "…", code=code)) is expected


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("dataResources", True),
        ("dataResources[1].resPath", True),
        ("dataResources[1].columns[0].role", True),
        ("dataResources[1].columns[3].colIndex", True),
        ("dataResources[1].columns[2].colIndex", False),
        ("dataResources[1].columns[3].refersTo.resID", False),
        ("dataResources[0].resPath", False),
        ("about.datasetID", False),
        ("dataResources[1].resFormat", False),
        ("dataResources[11].resPath", False),
    ],
)
def test_of_a_dataset_the_table_its_index_and_its_targets_are_needed(where: str, expected: bool) -> None:
    assert needed_of_dataset(1, [0, 3])(Fault(where, "…", code="missing_key")) is expected
