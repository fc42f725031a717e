"""problemDoc.json: what is read, what is refused and where, and that what is written is read again."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st
from support.places import VECTORS_FOLDER, needs

from evaluand.core.errors import DataError, EvaluandWarning, SpecError
from evaluand.interop.d3m.names import METRICS, METRICS_ONLY_3, METRICS_ONLY_4, VERSIONS
from evaluand.interop.d3m.needed import needed_of_problem
from evaluand.interop.d3m.problem import examine_problem, problem_document, read_problem, write_problem
from evaluand.predictions.problem.definitions import STANDARD_METRICS, TAKES_K, TAKES_POSITIVE
from evaluand.predictions.problem.problem import (
    ColumnPlace,
    Criterion,
    DatasetView,
    Division,
    Horizon,
    Outputs,
    Problem,
    SubType,
    Target,
    TargetDataset,
    TaskType,
)

VECTORS = VECTORS_FOLDER / "d3m" / "problems"
needs_vectors = needs(VECTORS)

OLD: dict[str, Any] = {
    "about": {
        "problemID": "p_problem",
        "problemName": "a problem",
        "problemDescription": "tell yes from no",
        "taskType": "classification",
        "taskSubType": "binary",
        "problemVersion": "1.0",
        "problemSchemaVersion": "3.1.1",
    },
    "inputs": {
        "data": [
            {
                "datasetID": "p_dataset",
                "targets": [{"targetIndex": 0, "resID": "0", "colIndex": 3, "colName": "label"}],
            }
        ],
        "dataSplits": {
            "method": "holdOut",
            "testSize": 0.2,
            "numFolds": 0,
            "stratified": True,
            "numRepeats": 0,
            "randomSeed": 42,
            "splitsFile": "dataSplits.csv",
        },
        "performanceMetrics": [{"metric": "f1", "posLabel": "yes"}],
    },
    "expectedOutputs": {"predictionsFile": "predictions.csv", "scoresFile": "scores.csv"},
}


def new() -> dict[str, Any]:
    made = copy.deepcopy(OLD)
    about = made["about"]
    about |= {"problemSchemaVersion": "4.1.1", "taskKeywords": ["classification", "binary", "tabular"]}
    del about["taskType"], about["taskSubType"]
    return made


def changed(document: dict[str, Any], path: str, value: Any) -> dict[str, Any]:
    """A document with a value set, or taken out where it is `...`, at a path of keys and numbers."""
    made = copy.deepcopy(document)
    *way, last = [int(part) if part.isdigit() else part for part in path.split(".")]
    place = made
    for part in way:
        place = place[part]
    if value is ...:
        del place[last]
    else:
        place[last] = value
    return made


def found(document: Any) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """The places and codes of faults and of notes."""
    _, findings = examine_problem(document)
    return tuple([(f.where, f.code) for f in kind] for kind in (findings.faults, findings.notes))  # type: ignore[return-value]


# Reading


def test_a_document_of_schema_3_is_read() -> None:
    assert read_problem(OLD) == Problem(
        id="p_problem",
        name="a problem",
        description="tell yes from no",
        task_types=(TaskType.CLASSIFICATION,),
        sub_types=(SubType.BINARY,),
        datasets=(TargetDataset(id="p_dataset", targets=(Target(index=0, resource="0", column=3, name="label"),)),),
        division=Division(test=0.2, seed=42, file="dataSplits.csv"),
        criteria=(Criterion(metric="f1", positive="yes"),),
    )
    assert found(OLD) == ([], [])


def test_a_document_of_schema_4_has_keywords_horizons_views_and_privileged_columns() -> None:
    document = new()
    document["about"]["taskKeywords"] = ["forecasting", "regression", "univariate", "timeSeries", "lupi"]
    place = {"resID": "learningData", "colIndex": 2, "colName": "time"}
    document["inputs"]["data"][0] |= {
        "privilegedData": [{"privilegedDataIndex": 0, **place}],
        "forecastingHorizon": {**place, "horizonValue": 10.0},
    }
    views = {"train": [{"from": "p_dataset", "to": "p_dataset_TRAIN"}]}
    document["inputs"]["dataSplits"] |= {"datasetViewMaps": views, "splitScript": "split.py"}
    document["inputs"]["performanceMetrics"] = [{"metric": "hitsAtK", "K": 5}]
    problem = read_problem(document)
    assert problem.task_types == (TaskType.FORECASTING, TaskType.REGRESSION)
    assert problem.sub_types == (SubType.UNIVARIATE,)
    assert problem.keywords == ("time_series", "privileged")
    time = ColumnPlace(resource="learningData", column=2, name="time")
    assert problem.datasets[0].privileged == (time,)
    assert problem.datasets[0].horizon == Horizon(place=time, steps=10.0)
    assert problem.division is not None
    assert problem.division.views == (DatasetView(part="train", dataset="p_dataset", id="p_dataset_TRAIN"),)
    assert problem.criteria == (Criterion(metric="hits_at_k", k=5),)
    assert read_problem(problem_document(problem)) == problem


def test_defaults_are_those_of_the_schema() -> None:
    document = copy.deepcopy(OLD)
    document["inputs"]["dataSplits"], document["expectedOutputs"] = {}, {}
    document["inputs"]["performanceMetrics"] = [{"metric": "accuracy"}]
    del document["about"]["problemVersion"]
    problem = read_problem(document)
    assert problem.division == Division(method="hold_out", stratified=True, repeats=1, file="dataSplits.csv")
    assert problem.outputs == Outputs(predictions="predictions.csv", scores="scores.csv")
    assert problem.version == "1.0"
    assert problem.criteria[0].jointly is False


def test_several_datasets_and_targets_are_read() -> None:
    document = copy.deepcopy(OLD)
    document["about"] |= {"taskType": "clustering", "taskSubType": "nonOverlapping"}
    document["inputs"]["performanceMetrics"] = [{"metric": "normalizedMutualInformation"}]
    [first] = document["inputs"]["data"]
    first["targets"].append({"targetIndex": 1, "resID": "0", "colIndex": 4, "colName": "b", "numClusters": 7})
    document["inputs"]["data"].append({"datasetID": "other", "targets": []})
    problem = read_problem(document)
    assert [(t.name, t.clusters) for t in problem.targets] == [("label", None), ("b", 7)]
    assert [dataset.id for dataset in problem.datasets] == ["p_dataset", "other"]


def test_other_is_a_registered_metric() -> None:
    document = changed(OLD, "inputs.performanceMetrics.0", {"metric": "other", "specifyOther": "cohen_kappa"})
    assert read_problem(document).criteria == (Criterion(metric="cohen_kappa"),)
    assert problem_document(read_problem(document), "3.1.1")["inputs"]["performanceMetrics"] == [
        {"metric": "other", "specifyOther": "cohen_kappa"}
    ]


def test_every_metric_of_the_schema_has_a_name() -> None:
    assert set(METRICS.values()) == set(STANDARD_METRICS)


@pytest.mark.parametrize("version", VERSIONS)
def test_all_versions_are_read(version: str) -> None:
    document = new() if version.startswith("4") else OLD
    assert read_problem(changed(document, "about.problemSchemaVersion", version)).id == "p_problem"


# What is wrong, by place and code


@pytest.mark.parametrize(
    ("path", "value", "where", "code"),
    [
        ("about", ..., "about", "missing_key"),
        ("about", [], "about", "wrong_type"),
        ("about.problemID", ..., "about.problemID", "missing_key"),
        ("about.problemID", "", "about.problemID", "empty"),
        ("about.problemName", ..., "about.problemName", "missing_key"),
        ("about.problemDescription", ["x"], "about.problemDescription", "wrong_type"),
        ("about.taskType", ..., "about.taskType", "missing_key"),
        ("about.taskType", "clasification", "about.taskType", "not_allowed"),
        ("about.taskSubType", "univariate", "about.taskSubType", "not_applicable"),
        ("about.taskSubTyp", "binary", "about.taskSubTyp", "unknown_key"),
        ("about.problemSchemaVersion", "2.0", "about.problemSchemaVersion", "unknown_version"),
        ("about.problemSchemaVersion", "new", "about.problemSchemaVersion", "unknown_version"),
        ("inputs.data", {}, "inputs.data", "wrong_type"),
        ("inputs.data.0", "d", "inputs.data[0]", "wrong_type"),
        ("inputs.data.0.datasetID", ..., "inputs.data[0].datasetID", "missing_key"),
        ("inputs.data.0.targets", ..., "inputs.data[0].targets", "missing_key"),
        ("inputs.data.0.targets.0.colIndex", "3", "inputs.data[0].targets[0].colIndex", "wrong_type"),
        ("inputs.data.0.targets.0.colIndex", 3.5, "inputs.data[0].targets[0].colIndex", "wrong_type"),
        ("inputs.data.0.targets.0.colIndex", -1, "inputs.data[0].targets[0].colIndex", "out_of_range"),
        ("inputs.data.0.targets.0.colName", ..., "inputs.data[0].targets[0].colName", "missing_key"),
        ("inputs.data.0.targets.0.colname", "x", "inputs.data[0].targets[0].colname", "unknown_key"),
        ("inputs.data.0.targets.0.numClusters", 2, "inputs.data[0].targets[0].numClusters", "not_applicable"),
        ("inputs.data.0.targets.0.numClusters", 0, "inputs.data[0].targets[0].numClusters", "out_of_range"),
        ("inputs.dataSplits.method", "bootstrap", "inputs.dataSplits.method", "not_allowed"),
        ("inputs.dataSplits.testSize", 1.2, "inputs.dataSplits.testSize", "out_of_range"),
        ("inputs.dataSplits.testSize", "0.2", "inputs.dataSplits.testSize", "wrong_type"),
        ("inputs.dataSplits.numFolds", 5, "inputs.dataSplits.numFolds", "not_applicable"),
        ("inputs.dataSplits.stratified", 1, "inputs.dataSplits.stratified", "wrong_type"),
        ("inputs.dataSplits.numRepeats", -1, "inputs.dataSplits.numRepeats", "out_of_range"),
        ("inputs.dataSplits.randomSeed", True, "inputs.dataSplits.randomSeed", "wrong_type"),
        ("inputs.dataSplits.splitsFile", "../s.csv", "inputs.dataSplits.splitsFile", "unsafe_path"),
        ("inputs.performanceMetrics", ..., "inputs.performanceMetrics", "missing_key"),
        ("inputs.performanceMetrics.0.metric", "f1macro!", "inputs.performanceMetrics[0].metric", "not_allowed"),
        ("inputs.performanceMetrics.0.K", 5, "inputs.performanceMetrics[0].K", "not_applicable"),
        ("inputs.performanceMetrics.0.applicabilityToTarget", "some",
         "inputs.performanceMetrics[0].applicabilityToTarget", "not_allowed"),
        ("inputs.performanceMetrics.0.specifyOther", "mean",
         "inputs.performanceMetrics[0].specifyOther", "not_applicable"),
        ("expectedOutputs", ..., "expectedOutputs", "missing_key"),
        ("expectedOutputs.predictionsFile", "/tmp/x", "expectedOutputs.predictionsFile", "unsafe_path"),
        ("extra", 1, "extra", "unknown_key"),
    ],
)  # fmt: skip
def test_what_breaks_the_schema_is_reported_by_its_path_and_code(path: str, value: Any, where: str, code: str) -> None:
    assert found(changed(OLD, path, value))[0] == [(where, code)]


@pytest.mark.parametrize(
    ("metric", "where", "code"),
    [
        ({"metric": "precision", "posLabel": "yes"}, "posLabel", "not_applicable"),
        ({"metric": "hitsAtK", "K": 3}, "K", "not_applicable"),
        ({"metric": "precisionAtTopK", "K": 0}, "K", "out_of_range"),
        ({"metric": "other"}, "specifyOther", "missing_key"),
        ({"metric": "other", "specifyOther": "cohen_kapa"}, "specifyOther", "unregistered_metric"),
    ],
)
def test_parameters_belong_to_their_metrics(metric: dict[str, Any], where: str, code: str) -> None:
    faults, _ = found(changed(OLD, "inputs.performanceMetrics.0", metric))
    assert faults == [(f"inputs.performanceMetrics[0].{where}", code)]


@pytest.mark.parametrize("metric", ["precision", "recall", "f1", "jaccardSimilarityScore"])
def test_later_versions_have_a_positive_label_for_all_metrics_of_two_classes(metric: str) -> None:
    document = changed(new(), "inputs.performanceMetrics.0", {"metric": metric, "posLabel": "yes"})
    assert found(document) == ([], [])


@pytest.mark.parametrize(
    ("splits", "where", "code"),
    [
        ({"method": "kFold"}, "inputs.dataSplits.numFolds", "out_of_range"),
        ({"method": "kFold", "numFolds": 1}, "inputs.dataSplits.numFolds", "out_of_range"),
        ({"method": "kFold", "numFolds": 5, "testSize": 0.2}, "inputs.dataSplits.testSize", "not_applicable"),
    ],
)
def test_folds_and_holdouts_have_parameters_of_their_own(splits: dict[str, Any], where: str, code: str) -> None:
    assert found(changed(OLD, "inputs.dataSplits", splits))[0] == [(where, code)]


def test_two_targets_may_not_share_an_index() -> None:
    document = copy.deepcopy(OLD)
    document["inputs"]["data"][0]["targets"] *= 2
    assert found(document)[0] == [("inputs.data[0].targets[1].targetIndex", "twice")]


def test_a_keyword_that_does_not_apply_is_reported_by_its_place() -> None:
    document = changed(new(), "about.taskKeywords", ["tabular", "regression", "binary", "tabulr"])
    assert found(document)[0] == [
        ("about.taskKeywords[3]", "not_allowed"),
        ("about.taskKeywords[2]", "not_applicable"),
    ]


def test_all_faults_are_reported_at_once_with_the_nearest_words() -> None:
    document = changed(changed(OLD, "about.taskType", "regresion"), "inputs.dataSplits.numFold", 3)
    document["inputs"]["performanceMetrics"][0]["metric"] = "f1Marco"
    with pytest.raises(DataError) as caught:
        read_problem(document)
    reported = str(caught.value).split("\n")
    assert len(reported) == 3
    assert reported[0].startswith("about.taskType: unknown value 'regresion' (did you mean 'regression'?)")
    assert "(did you mean 'f1Macro'?)" in reported[1]
    assert "inputs.dataSplits.numFold: unknown key (did you mean 'numFolds'?)" in reported[2]


def test_clusters_of_a_task_without_a_type_are_a_fault_of_the_document() -> None:
    document = changed(new(), "about.taskKeywords", ["tabular"])
    document["inputs"]["data"][0]["targets"][0]["numClusters"] = 3
    problem, findings = examine_problem(document)
    assert [(fault.where, fault.code) for fault in findings.faults] == [
        ("inputs.data[0].targets[0].numClusters", "not_applicable")
    ]
    assert problem is not None
    assert problem.targets[0].clusters is None


@pytest.mark.parametrize("document", [[], "x", 3, None])
def test_a_document_that_is_no_object_is_refused(document: Any, tmp_path: Path) -> None:
    (tmp_path / "problemDoc.json").write_text(json.dumps(document))
    with pytest.raises(DataError, match="must be an object, not") as caught:
        read_problem(tmp_path / "problemDoc.json")
    assert caught.value.faults[0].code == "wrong_type"


def test_a_file_that_is_missing_or_no_json_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no such file"):
        read_problem(tmp_path / "none.json")
    (tmp_path / "bad.json").write_text('{"about": ')
    with pytest.raises(DataError, match=r"bad.json:1:\d+: not JSON"):
        read_problem(tmp_path / "bad.json")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=10,
)


@given(st.data(), JSON)
def test_no_document_breaks_the_reader(data: st.DataObject, value: Any) -> None:
    document = new() if data.draw(st.booleans()) else copy.deepcopy(OLD)
    place: Any = document
    while True:
        keys = list(place) if isinstance(place, dict) else list(range(len(place)))
        key = data.draw(st.sampled_from(keys))
        if not isinstance(place[key], dict | list) or not place[key] or data.draw(st.integers(0, 3)) == 0:
            place[key] = value
            break
        place = place[key]
    problem, findings = examine_problem(document)
    assert (problem is None) == any(map(needed_of_problem, findings.faults))


# What real documents have


@pytest.mark.parametrize(
    ("path", "value", "where", "code"),
    [
        ("about.problemName", "NULL", "about.problemName", "no_name"),
        ("about.taskSubType", "", "about.taskSubType", "empty"),
        ("about.taskSubType", None, "about.taskSubType", "null"),
        ("about.problemSchemaVersion", "3.4.0", "about.problemSchemaVersion", "unknown_version"),
        ("about.problemVersion", 2, "about.problemVersion", "number_for_text"),
        ("about.taskKeywords", ["tabular"], "about.taskKeywords", "other_version"),
        ("inputs.dataSplits.method", "holdout", "inputs.dataSplits.method", "other_case"),
        ("inputs.dataSplits.randomSeed", 42.0, "inputs.dataSplits.randomSeed", "float_for_integer"),
        ("inputs.performanceMetrics.0.posLabel", 1, "inputs.performanceMetrics[0].posLabel", "number_for_text"),
        ("inputs.performanceMetrics", [], "inputs.performanceMetrics", "no_metric"),
        ("inputs.performanceMetrics.0", {"metric": "hammingLoss"},
         "inputs.performanceMetrics[0].metric", "other_version"),
    ],
)  # fmt: skip
def test_mild_deviations_are_read_and_noted(path: str, value: Any, where: str, code: str) -> None:
    assert found(changed(OLD, path, value)) == ([], [(where, code)])


@needs_vectors
@pytest.mark.parametrize("name", ["1491_one_hundred_plants_margin", "185_baseball", "22_handgeometry"])
def test_real_documents_are_read_and_written_with_nothing_but_defaults_added(name: str) -> None:
    path = VECTORS / name / "problem_TEST" / "problemDoc.json"
    document, written = json.loads(path.read_text()), problem_document(read_problem(path), "3.1.1")
    assert found(path) == ([], [("about.problemName", "no_name")])
    for section, parts in document.items():
        for key in parts.keys() - {"problemSchemaVersion"}:
            there, again = parts[key], written[section][key]
            assert again == there if not isinstance(there, dict) else again.items() >= there.items()


# Writing

LETTERS = st.characters(codec="ascii", categories=["L", "N"])
NAMES = st.text(LETTERS, min_size=1, max_size=8).filter(lambda name: name != "NULL")
PLACES = {"resource": NAMES, "column": st.integers(0, 99), "name": NAMES}
SHARES = st.none() | st.floats(0, 1)


def criteria(old: bool) -> st.SearchStrategy[Criterion]:
    unknown = METRICS_ONLY_4 if old else METRICS_ONLY_3
    names = [ours for theirs, ours in METRICS.items() if theirs not in unknown]

    def made(name: str) -> st.SearchStrategy[Criterion]:
        k = st.none() | st.integers(1, 50) if name in TAKES_K else st.none()
        labels = {"f1"} if old else TAKES_POSITIVE
        positive = st.none() | NAMES if name in labels else st.none()
        jointly = st.booleans() if old else st.just(False)
        return st.builds(Criterion, metric=st.just(name), k=k, positive=positive, jointly=jointly)

    return st.sampled_from([*names, "cohen_kappa"]).flatmap(made)


def divisions(old: bool) -> st.SearchStrategy[Division]:
    common = {
        "stratified": st.booleans(),
        "repeats": st.integers(1, 5),
        "seed": st.none() | st.integers(-(2**63), 2**63 - 1),
        "file": NAMES,
        "script": st.none() if old else st.none() | NAMES,
        "views": st.just(())
        if old
        else st.lists(st.builds(DatasetView, part=st.sampled_from(["train", "test"]), dataset=NAMES, id=NAMES)).map(
            lambda views: tuple(sorted(views, key=lambda view: view.part, reverse=True))
        ),
    }
    hold_out = st.builds(Division, method=st.just("hold_out"), test=SHARES, **common)
    return hold_out | st.builds(Division, method=st.just("folds"), folds=st.integers(2, 9), **common)


@st.composite
def problems(draw: st.DrawFn, old: bool) -> Problem:
    types = [t for t in TaskType if t != (TaskType.VERTEX_CLASSIFICATION if old else TaskType.GRAPH_CLUSTERING)]
    chosen = draw(st.lists(st.sampled_from(types), min_size=1, max_size=1 if old else 3, unique=True))
    subs = sorted({sub for task_type in chosen for sub in task_type.sub_types})
    sub_types = draw(st.lists(st.sampled_from(subs), max_size=1 if old else 3, unique=True)) if subs else []
    names = draw(st.lists(st.integers(0, 9), max_size=3, unique=True))
    targets = tuple(draw(st.builds(Target, index=st.just(index), **PLACES)) for index in names)
    place = st.builds(ColumnPlace, **PLACES)
    horizon = st.none() if old else st.none() | st.builds(Horizon, place=place, steps=st.floats(0, 100))
    privileged = st.just(()) if old else st.lists(place, max_size=2).map(tuple)
    keywords = (
        () if old else tuple(draw(st.lists(st.sampled_from(["tabular", "time_series", "privileged"]), unique=True)))
    )
    return Problem(
        id=draw(NAMES),
        name=draw(st.none() | NAMES),
        description=draw(st.none() | NAMES),
        uri=draw(st.none() | NAMES),
        task_types=tuple(chosen),
        sub_types=tuple(sub_types),
        keywords=keywords,
        datasets=(TargetDataset(id=draw(NAMES), targets=targets, privileged=draw(privileged), horizon=draw(horizon)),),
        division=draw(st.none() | divisions(old)),
        criteria=tuple(draw(st.lists(criteria(old), max_size=3))),
        outputs=Outputs(predictions=draw(NAMES), scores=draw(NAMES)),
    )


@given(problems(old=True))
def test_what_is_written_as_schema_3_is_read_again(problem: Problem) -> None:
    assert read_problem(problem_document(problem, "3.1.1")) == problem


@given(problems(old=False), st.sampled_from(["4.0.0", "4.1.1"]))
def test_what_is_written_as_schema_4_is_read_again(problem: Problem, version: str) -> None:
    assert read_problem(problem_document(problem, version)) == problem


def test_a_file_is_written(tmp_path: Path) -> None:
    write_problem(read_problem(OLD), tmp_path / "problemDoc.json", "3.1.1")
    assert json.loads((tmp_path / "problemDoc.json").read_text()) == OLD


def test_what_a_version_cannot_say_is_refused_or_reported() -> None:
    keyed = read_problem(new())
    with pytest.warns(EvaluandWarning, match="keywords: schema 3 has none; left out: tabular"):
        assert "taskKeywords" not in problem_document(keyed, "3.1.1")["about"]
    document = changed(new(), "about.taskKeywords", ["regression"])
    place = {"resID": "0", "colIndex": 2, "colName": "spare"}
    document["inputs"]["data"][0]["privilegedData"] = [{"privilegedDataIndex": 0, **place}]
    with pytest.warns(EvaluandWarning, match=r"datasets\[0\]: schema 3 has neither privileged columns nor horizons"):
        assert "privilegedData" not in problem_document(read_problem(document), "3.1.1")["inputs"]["data"][0]
    several = read_problem(changed(new(), "about.taskKeywords", ["forecasting", "regression"]))
    with pytest.raises(DataError, match="task_types: schema 3 has one task type, not 2"):
        problem_document(several, "3.1.1")
    ranked = read_problem(changed(new(), "inputs.performanceMetrics", [{"metric": "hitsAtK", "K": 3}]))
    with pytest.raises(DataError, match=r"criteria\[0\].metric: schema 3 has no hits_at_k"):
        problem_document(ranked, "3.1.1")
    joint = read_problem(changed(OLD, "inputs.performanceMetrics.0.applicabilityToTarget", "allTargets"))
    with pytest.raises(DataError, match="schema 4 has no applicabilityToTarget"):
        problem_document(joint)
    with pytest.raises(SpecError, match=r"written as 3.1.1, 4.0.0, 4.1.0, 4.1.1, not as '2.0'"):
        problem_document(keyed, "2.0")
