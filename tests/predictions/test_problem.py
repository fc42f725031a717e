"""Problems: what they say, and that they do not contradict themselves."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from evaluand.core.errors import DataError, SpecError
from evaluand.data.split import Split
from evaluand.predictions.problem.problem import (
    Criterion,
    Division,
    Outputs,
    Problem,
    SubType,
    Target,
    TargetDataset,
    TaskType,
    is_inside,
)

LABEL = Target(index=0, resource="learningData", column=1, name="label")
PROBLEM = Problem(
    id="p",
    task_types=(TaskType.CLASSIFICATION,),
    sub_types=(SubType.BINARY,),
    datasets=(TargetDataset(id="d", targets=(LABEL,)),),
    division=Division(test=0.25),
    criteria=(Criterion(metric="f1", positive="yes"),),
)


@pytest.mark.parametrize(
    ("changed", "where", "code"),
    [
        ({"id": ""}, "id", "empty"),
        ({"sub_types": (SubType.UNIVARIATE,)}, "sub_types[0]", "not_applicable"),
        ({"datasets": (TargetDataset(id=""),)}, "datasets[0].id", "empty"),
        ({"datasets": (TargetDataset(id="d", targets=(LABEL, LABEL)),)}, "datasets[0].targets[1].index", "twice"),
        (
            {"datasets": (TargetDataset(id="d", targets=(replace(LABEL, clusters=3),)),)},
            "datasets[0].targets[0].clusters",
            "not_applicable",
        ),
        (
            {"datasets": (TargetDataset(id="d", targets=(replace(LABEL, column=-1),)),)},
            "datasets[0].targets[0].column",
            "out_of_range",
        ),
        ({"division": Division(method="folds", folds=1)}, "division.folds", "out_of_range"),
        ({"division": Division(method="folds", folds=3, test=0.2)}, "division.test", "not_applicable"),
        ({"division": Division(folds=3)}, "division.folds", "not_applicable"),
        ({"division": Division(test=1.5)}, "division.test", "out_of_range"),
        ({"division": Division(repeats=0)}, "division.repeats", "out_of_range"),
        ({"division": Division(seed=10**400)}, "division.seed", "out_of_range"),
        ({"division": Division(file="../x.csv")}, "division.file", "unsafe_path"),
        ({"criteria": (Criterion(metric="f1", k=3),)}, "criteria[0].k", "not_applicable"),
        ({"criteria": (Criterion(metric="hits_at_k", k=0),)}, "criteria[0].k", "out_of_range"),
        ({"criteria": (Criterion(metric="accuracy", positive="a"),)}, "criteria[0].positive", "not_applicable"),
        ({"outputs": Outputs(predictions="/etc/passwd")}, "outputs.predictions", "unsafe_path"),
    ],
)
def test_a_problem_that_contradicts_itself_is_refused(changed: dict[str, Any], where: str, code: str) -> None:
    with pytest.raises(DataError) as caught:
        replace(PROBLEM, **changed)
    assert [(fault.where, fault.code) for fault in caught.value.faults] == [(where, code)]


def test_all_contradictions_are_reported_at_once() -> None:
    with pytest.raises(DataError) as caught:
        replace(PROBLEM, id="", division=Division(repeats=0), criteria=(Criterion(metric="f1", k=1),))
    assert [fault.code for fault in caught.value.faults] == ["empty", "out_of_range", "not_applicable"]


@pytest.mark.parametrize(
    ("task_type", "sub_types"),
    [
        (TaskType.CLASSIFICATION, {"binary", "multi_class", "multi_label"}),
        (TaskType.VERTEX_NOMINATION, {"binary", "multi_class"}),
        (TaskType.REGRESSION, {"univariate", "multivariate"}),
        (TaskType.CLUSTERING, {"overlapping", "non_overlapping"}),
        (TaskType.COMMUNITY_DETECTION, {"overlapping", "non_overlapping"}),
        (TaskType.OBJECT_DETECTION, set()),
    ],
)
def test_a_task_type_has_the_sub_types_that_apply_to_it(task_type: TaskType, sub_types: set[str]) -> None:
    assert set(task_type.sub_types) == sub_types


def test_a_division_becomes_the_split_it_describes() -> None:
    assert Division(test=0.3, seed=5).split() == Split(test=0.3, stratified=True, seed=5)
    folds = Division(method="folds", folds=4, repeats=2, stratified=False)
    assert folds.split(groups="image") == Split(folds=4, repeats=2, groups="image")
    with pytest.raises(SpecError, match="does not say how many rows are tested"):
        Division().split()


def test_targets_are_those_of_all_datasets() -> None:
    other = TargetDataset(id="e", targets=(replace(LABEL, name="other"),))
    assert [t.name for t in replace(PROBLEM, datasets=(*PROBLEM.datasets, other)).targets] == ["label", "other"]


@pytest.mark.parametrize("path", ["..", "a/../../b", "/a", "C:/a", "C:\\a", "..\\a", "a\0b", "", "http://a/b"])
def test_a_path_that_leaves_its_folder_is_not_inside(path: str) -> None:
    assert not is_inside(path)
