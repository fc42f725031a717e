"""problemDoc.json, versions 3.0 to 4.1.1, as a `Problem` and back.

Versions 3.x name one task type and at most one sub-type; versions 4.x a list of keywords, of which several may be
types. Writing a problem warns of what the version cannot express, or refuses to write it.
"""

import os
from collections.abc import Iterator, Mapping, Sequence, Set
from pathlib import Path
from typing import Any, Final, Literal

from evaluand.core import registry
from evaluand.core.errors import DataError, Fault, SpecError, alternatives, nearest, warn
from evaluand.core.files.json import Findings, Node, read_json, write_json
from evaluand.interop.d3m.names import (
    KEYWORDS,
    METRICS,
    METRICS_ONLY_3,
    METRICS_ONLY_4,
    ONLY_3,
    ONLY_4,
    SUB_TYPES,
    TASK_TYPES,
    WORDS,
    Version,
    parse_version,
    read_version,
    takes_k,
    takes_label,
)
from evaluand.interop.d3m.needed import needed_of_problem
from evaluand.predictions.problem.problem import (
    TAKES_K,
    TAKES_POSITIVE,
    Augmentation,
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
    has_clusters,
    misfit_message,
)

SPLITS_FILE: Final = "dataSplits.csv"
WRITTEN: Final = ("3.1.1", "4.0.0", "4.1.0", "4.1.1")


def read_problem(document: str | os.PathLike[str] | Mapping[str, Any]) -> Problem:
    """The problem of a problemDoc.json.

    Args:
        document: the path of the file, or what is in it.

    Raises:
        DataError: it breaks its schema: every fault, each with its JSON path and a code.

    Example:
        >>> target = {"targetIndex": 0, "resID": "0", "colIndex": 5, "colName": "species"}
        >>> problem = read_problem({
        ...     "about": {"problemID": "iris", "problemName": "Iris", "taskType": "classification",
        ...               "taskSubType": "multiClass", "problemSchemaVersion": "3.1.1"},
        ...     "inputs": {"data": [{"datasetID": "iris_dataset", "targets": [target]}],
        ...                "dataSplits": {"testSize": 0.3}, "performanceMetrics": [{"metric": "f1Macro"}]},
        ...     "expectedOutputs": {},
        ... })
        >>> problem.task_types[0], problem.criteria[0].metric, problem.division.split().test
        (<TaskType.CLASSIFICATION: 'classification'>, 'f1_macro', 0.3)
    """
    problem, findings = examine_problem(document)
    findings.check()
    assert problem is not None
    return problem


def examine_problem(document: str | os.PathLike[str] | Mapping[str, Any]) -> tuple[Problem | None, Findings]:
    """The problem of a document, with its faults and notes; a DataError if it is no JSON file.

    What breaks the schema is left out of the problem; there is none only if a score depends on that.
    """
    findings = Findings()
    value = document if isinstance(document, Mapping) else read_json(Path(document))
    root = Node.root(value, findings, "" if isinstance(document, Mapping) else str(document))
    about, inputs = root.node("about", required=True), root.node("inputs", required=True)
    outputs = root.node("expectedOutputs", required=True)
    augmentations = tuple(map(_augmentation, root.nodes("dataAugmentation")))
    root.refuse_unknown_keys()
    version = read_version(about, "problemSchemaVersion", "3.1.1") if about else (3, 1, 1)
    attributes: dict[str, Any] = {"augmentations": augmentations}
    attributes |= _about(about, version) if about else {}
    attributes |= _inputs(inputs, version, attributes.get("task_types", ())) if inputs else {}
    attributes |= {"outputs": _outputs(outputs)} if outputs else {}
    if any(map(needed_of_problem, findings.faults)):
        return None, findings
    folder = "" if isinstance(document, Mapping) else Path(document).parent.name
    return Problem(**{**attributes, "id": attributes.get("id") or folder or "problem"}), findings


def schema_version(document: str | os.PathLike[str]) -> Version:
    """The version of the schema that a problemDoc.json states, or that it is read by."""
    about = read_json(Path(document)).get("about")
    return read_version(
        Node(about if isinstance(about, Mapping) else {}, "", Findings()), "problemSchemaVersion", "3.1.1"
    )


def _augmentation(node: Node) -> Augmentation:
    made = Augmentation(domains=node.texts("domain"), keywords=node.texts("keywords"))
    node.refuse_unknown_keys()
    return made


def _about(about: Node, version: Version) -> dict[str, Any]:
    name = about.text("problemName", required=True, empty=True)
    if name in ("NULL", ""):
        about.note("problemName", "no_name", f"is {name!r}; the problem has no name")
        name = None
    made = {
        "id": about.text("problemID", required=True),
        "name": name,
        "description": about.text("problemDescription") or None,
        "uri": about.text("problemURI") or None,
        "version": about.text("problemVersion") or "1.0",
        **(_keywords(about, version) if version >= (4,) else _types(about)),
    }
    about.ignore("digest")
    about.refuse_unknown_keys()
    return made


def _types(about: Node) -> dict[str, Any]:
    """The task type and sub-type of versions 3.x."""
    about.ignore_with_note(
        ["taskKeywords"], "other_version", "belongs to schema 4; schema 3 has taskType and taskSubType"
    )
    word = about.choice("taskType", [*TASK_TYPES], required=True)
    if word in ONLY_4:
        about.note("taskType", "other_version", f"{word!r} belongs to schema 4")
    if about.value.get("taskSubType") == "":
        about.note("taskSubType", "empty", "is empty; read as missing")
    sub = about.choice("taskSubType", [*SUB_TYPES])
    types = (TASK_TYPES[word],) if word else ()
    return {"task_types": types, "sub_types": _fitting(about, {"taskSubType": sub} if sub and types else {}, types)}


def _keywords(about: Node, version: Version) -> dict[str, Any]:
    """The keywords of versions 4.x, divided into types, sub-types and others."""
    about.ignore_with_note(
        ["taskType", "taskSubType"], "other_version", "belongs to schema 3 and is not read; schema 4 has taskKeywords"
    )
    placed = about.choices("taskKeywords", [*TASK_TYPES, *SUB_TYPES, *KEYWORDS], required=True)
    words = {f"taskKeywords[{i}]": word for i, word in placed.items()}
    types = tuple(dict.fromkeys(TASK_TYPES[word] for word in words.values() if word in TASK_TYPES))
    for place, word in words.items():
        if word in ONLY_3:
            about.note(place, "other_version", f"{word!r} belongs to schema 3")
    if words and not types:
        about.note("taskKeywords", "no_task_type", "no keyword is a type of task")
    subs = _fitting(about, {place: word for place, word in words.items() if word in SUB_TYPES}, types)
    rest = tuple(KEYWORDS[word] for word in words.values() if word in KEYWORDS)
    return {"task_types": types, "sub_types": subs, "keywords": rest}


def _fitting(about: Node, words: Mapping[str, str], types: tuple[TaskType, ...]) -> tuple[SubType, ...]:
    """The sub-types that fit the task, from words by their place."""
    subs = {place: SUB_TYPES[word] for place, word in words.items()}
    for place, sub in subs.items():
        if not sub.task_types.intersection(types):
            about.fault(place, "not_applicable", misfit_message(sub, types))
    return tuple(sub for sub in subs.values() if sub.task_types.intersection(types))


def _inputs(inputs: Node, version: Version, types: tuple[TaskType, ...]) -> dict[str, Any]:
    datasets = tuple(_dataset(node, types) for node in inputs.nodes("data", required=True))
    if inputs.value.get("data") == []:
        inputs.fault("data", "empty", "is empty; name the dataset with its targets")
    splits = inputs.node("dataSplits")
    division = _division(splits) if splits else None
    criteria = tuple(_criterion(node, version) for node in inputs.nodes("performanceMetrics", required=True))
    inputs.refuse_unknown_keys()
    for i, criterion in enumerate(criteria):
        if criterion is not None and criterion in criteria[:i]:
            inputs.note(f"performanceMetrics[{i}]", "twice", "repeats an earlier metric")
    if not criteria and isinstance(inputs.value.get("performanceMetrics"), list):
        inputs.note("performanceMetrics", "no_metric", "is empty; predictions cannot be judged")
    return {
        "datasets": datasets,
        "division": division,
        "criteria": tuple(criterion for criterion in criteria if criterion is not None),
    }


def _dataset(node: Node, types: tuple[TaskType, ...]) -> TargetDataset:
    id = node.text("datasetID", required=True) or ""
    targets: list[Target] = []
    for one in node.nodes("targets", required=True):
        index, place = one.integer("targetIndex", required=True, least=0), _place(one)
        clusters = one.integer("numClusters", least=1)
        if clusters is not None and types and not has_clusters(types):
            one.fault("numClusters", "not_applicable", "is only for clustering and community detection")
            clusters = None
        if index is not None and index in {target.index for target in targets}:
            one.fault("targetIndex", "twice", f"two targets have the index {index}")
            index = None
        if place is not None:
            free = max((target.index for target in targets), default=-1) + 1
            targets.append(Target(index=free if index is None else index, clusters=clusters, **place))
        one.refuse_unknown_keys()
    privileged = []
    for one in node.nodes("privilegedData"):
        one.integer("privilegedDataIndex", required=True, least=0)
        privileged.append(_place(one))
        one.refuse_unknown_keys()
    ahead = node.node("forecastingHorizon")
    horizon = None
    if ahead:
        place, steps = _place(ahead), ahead.number("horizonValue", required=True, least=0, most=float("inf"))
        horizon = Horizon(place=ColumnPlace(**place), steps=steps) if place and steps is not None else None
        ahead.refuse_unknown_keys()
    node.refuse_unknown_keys()
    columns = tuple(ColumnPlace(**place) for place in privileged if place is not None)
    return TargetDataset(id=id, targets=tuple(targets), privileged=columns, horizon=horizon)


def _place(node: Node) -> dict[str, Any] | None:
    """The place of a column; None if it is incomplete."""
    made = {
        "resource": node.text("resID", required=True),
        "column": node.integer("colIndex", required=True, least=0),
        "name": node.text("colName", required=True),
    }
    return None if None in made.values() else made


def _division(node: Node) -> Division:
    folding = node.choice("method", ["holdOut", "kFold"]) == "kFold"
    test, folds = node.number("testSize", least=0, most=1), node.integer("numFolds", least=0)
    if folding and test is not None:
        node.fault("testSize", "not_applicable", "is only for the method holdOut; folds test every row once")
    if folding and (folds is None or folds < 2):
        node.fault("numFolds", "out_of_range", f"is {folds}; the method kFold needs at least 2")
        folds = None
    if not folding and folds:
        node.fault("numFolds", "not_applicable", "is only for the method kFold; a hold-out has a testSize")
    repeats = node.integer("numRepeats", least=0)  # 0, the default, means no repetition
    made = Division(
        method="folds" if folding else "hold_out",
        test=None if folding else test,
        folds=folds if folding else None,
        stratified=node.boolean("stratified", True),
        repeats=repeats or 1,
        seed=node.integer("randomSeed"),
        file=node.file_path("splitsFile") or SPLITS_FILE,
        script=node.file_path("splitScript"),
        views=tuple(_views(node)),
    )
    node.refuse_unknown_keys()
    return made


def _views(node: Node) -> Iterator[DatasetView]:
    maps = node.node("datasetViewMaps")
    if not maps:
        return
    parts: tuple[Literal["train", "test", "score"], ...] = ("train", "test", "score")
    for part in parts:
        for one in maps.nodes(part):
            yield DatasetView(
                part=part, dataset=one.text("from", required=True) or "", id=one.text("to", required=True) or ""
            )
            one.refuse_unknown_keys()
    maps.refuse_unknown_keys()


def _criterion(node: Node, version: Version) -> Criterion | None:
    word = node.choice("metric", [*METRICS, "other"], required=True)
    if word is not None and word in (METRICS_ONLY_4 if version < (4,) else METRICS_ONLY_3):
        node.note("metric", "other_version", f"{word!r} belongs to schema {'4' if version < (4,) else '3'}")
    takes_any = word in ("other", None)
    k = node.integer("K", least=1) if takes_any or _takes(node, "K", word, TAKES_K, takes_k(version)) else None
    label = None
    if takes_any or _takes(node, "posLabel", word, TAKES_POSITIVE, takes_label(version)):
        label = node.text("posLabel", empty=True)
    if version >= (4,) and node.has("applicabilityToTarget"):
        node.note("applicabilityToTarget", "other_version", "belongs to schema 3; read anyway")
    jointly = node.choice("applicabilityToTarget", ["singleTarget", "allTargets"]) == "allTargets"
    other = _specified(node, word)
    node.refuse_unknown_keys()
    name = other if word == "other" else METRICS[word] if word else None
    return None if name is None else Criterion(metric=name, k=k, positive=label, jointly=jointly)


def _takes(node: Node, key: str, word: str | None, metrics: Set[str], of_version: Sequence[str]) -> bool:
    """Whether a metric takes a parameter; reported where a document has one that its metric or its version lacks."""
    assert word is not None  # else there is no metric to ask
    takes = METRICS[word] in metrics
    if node.has(key) and word not in of_version:
        known = ", ".join(of_version)
        node.fault(
            key, "not_applicable", f"is only for {known}; the metric is {word}" + ("; read anyway" if takes else "")
        )
    node.ignore(key)
    return takes


def _specified(node: Node, word: str | None) -> str | None:
    """The registered kind of metric that `other` stands for."""
    if word != "other":
        if word is not None and node.has("specifyOther"):
            node.fault("specifyOther", "not_applicable", f"is only for the metric other; the metric is {word}")
        node.ignore("specifyOther")
        return None
    name = node.text("specifyOther", required=True)
    known = registry.names("metrics")
    if name is None or name in known:
        return name
    message = f"there is no metric {name!r}{alternatives(name, known)}"
    node.fault("specifyOther", "unregistered_metric", message)
    return None


def _outputs(node: Node) -> Outputs:
    outputs = Outputs(
        predictions=node.file_path("predictionsFile") or "predictions.csv",
        scores=node.file_path("scoresFile") or "scores.csv",
    )
    node.refuse_unknown_keys()
    return outputs


# Writing


def problem_document(problem: Problem, version: str = "4.1.1") -> dict[str, Any]:
    """A problem as the object of a problemDoc.json.

    What only describes, such as keywords in schema 3.1.1, is left out with an `EvaluandWarning`. What would make it
    another problem, such as a metric that judges several targets jointly in 4.x, is refused.

    Args:
        version: one of `WRITTEN`.

    Raises:
        SpecError: that version cannot be written.
        DataError: the version cannot express the problem: every fault with its path in the problem.
    """
    if version not in WRITTEN:
        raise SpecError(f"problems are written as {', '.join(WRITTEN)}, not as {version!r}")
    number = parse_version(version)
    faults: list[Fault] = []
    left_out: list[Fault] = []
    for fault in _inexpressible(problem, number):
        (left_out if fault.code == "left_out" else faults).append(fault)
    if faults:
        raise DataError(faults)
    for fault in left_out:
        warn(str(fault))
    about = {
        "problemID": problem.id,
        "problemName": problem.name or "NULL",
        **_without_none(problemDescription=problem.description, problemURI=problem.uri),
        **(_keywords_to_write(problem) if number >= (4,) else _types_to_write(problem)),
        "problemVersion": problem.version,
        "problemSchemaVersion": version,
    }
    inputs: dict[str, Any] = {"data": [_dataset_to_write(dataset) for dataset in problem.datasets]}
    if problem.division is not None:
        inputs["dataSplits"] = _division_to_write(problem.division, number)
    inputs["performanceMetrics"] = [_criterion_to_write(criterion, number) for criterion in problem.criteria]
    outputs = {"predictionsFile": problem.outputs.predictions, **_without_none(scoresFile=problem.outputs.scores)}
    sources = [{"domain": [*each.domains], "keywords": [*each.keywords]} for each in problem.augmentations]
    augmentation = {"dataAugmentation": sources} if sources and number >= (4,) else {}
    return {"about": about, "inputs": inputs, "expectedOutputs": outputs, **augmentation}


def write_problem(problem: Problem, path: str | os.PathLike[str], version: str = "4.1.1") -> None:
    """Writes a problemDoc.json; see `problem_document`."""
    write_json(problem_document(problem, version), path, parents=True)


def _inexpressible(problem: Problem, version: Version) -> Iterator[Fault]:
    """What a version cannot express."""
    old = version < (4,)
    if old and len(problem.task_types) != 1:
        yield Fault("task_types", f"schema 3 has one task type, not {len(problem.task_types)}", code="other_version")
    if old and len(problem.sub_types) > 1:
        yield Fault("sub_types", f"schema 3 has one sub-type, not {len(problem.sub_types)}", code="other_version")
    if old and problem.keywords:
        yield Fault("keywords", f"schema 3 has none; left out: {', '.join(problem.keywords)}", code="left_out")
    for i, keyword in enumerate(problem.keywords):
        if not old and keyword not in KEYWORDS.values():
            near = nearest(keyword, KEYWORDS.values())
            yield Fault(f"keywords[{i}]", f"schema 4 has no keyword {keyword!r}{near}", code="not_allowed")
    for i, dataset in enumerate(problem.datasets):
        if old and (dataset.privileged or dataset.horizon):
            yield Fault(
                f"datasets[{i}]", "schema 3 has neither privileged columns nor horizons; left out", code="left_out"
            )
    for i, task_type in enumerate(problem.task_types):
        if _word_of(task_type, old) is None:
            yield Fault(f"task_types[{i}]", f"schema {version[0]} has no task {task_type}", code="other_version")
    if old and problem.division is not None and (problem.division.views or problem.division.script):
        yield Fault("division", "schema 3 has no views and no script of the split; left out", code="left_out")
    if old and problem.augmentations:
        yield Fault("augmentations", "schema 3 has no dataAugmentation; left out", code="left_out")
    if problem.outputs.scores is None:
        yield Fault("outputs.scores", "is None, which is read back as the default scores.csv", code="left_out")
    if problem.name == "NULL":
        yield Fault("name", "'NULL' is read back as no name", code="left_out")
    for i, criterion in enumerate(problem.criteria):
        yield from _inexpressible_criterion(criterion, version, f"criteria[{i}]")


def _inexpressible_criterion(criterion: Criterion, version: Version, where: str) -> Iterator[Fault]:
    old = version < (4,)
    word = WORDS.get(criterion.metric)
    if word is None and criterion.metric not in registry.names("metrics"):
        near = nearest(criterion.metric, [*WORDS, *registry.names("metrics")])
        yield Fault(f"{where}.metric", f"there is no metric {criterion.metric!r}{near}", code="unregistered_metric")
    if word in (METRICS_ONLY_4 if old else METRICS_ONLY_3):
        yield Fault(f"{where}.metric", f"schema {version[0]} has no {criterion.metric}", code="other_version")
    if word is not None and criterion.k is not None and word not in takes_k(version):
        yield Fault(f"{where}.k", f"schema {version[0]} has none for {criterion.metric}", code="other_version")
    if word is not None and criterion.positive is not None and word not in takes_label(version):
        yield Fault(f"{where}.positive", f"schema {version[0]} has none for {criterion.metric}", code="other_version")
    if not old and criterion.jointly:
        yield Fault(f"{where}.jointly", "schema 4 has no applicabilityToTarget", code="other_version")


_SUB_TYPE_WORDS: Final = {ours: theirs for theirs, ours in SUB_TYPES.items()}
_KEYWORD_WORDS: Final = {ours: theirs for theirs, ours in KEYWORDS.items()}


def _word_of(task_type: TaskType, old: bool) -> str | None:
    unknown = ONLY_4 if old else ONLY_3
    return next((word for word, ours in TASK_TYPES.items() if ours is task_type and word not in unknown), None)


def _types_to_write(problem: Problem) -> dict[str, Any]:
    sub_type = _SUB_TYPE_WORDS[problem.sub_types[0]] if problem.sub_types else None
    return {"taskType": _word_of(problem.task_types[0], True), **_without_none(taskSubType=sub_type)}


def _keywords_to_write(problem: Problem) -> dict[str, Any]:
    types = [_word_of(task_type, False) for task_type in problem.task_types]
    sub_types = [_SUB_TYPE_WORDS[sub_type] for sub_type in problem.sub_types]
    return {"taskKeywords": [*types, *sub_types, *(_KEYWORD_WORDS[keyword] for keyword in problem.keywords)]}


def _dataset_to_write(dataset: TargetDataset) -> dict[str, Any]:
    targets = [
        {"targetIndex": target.index, **_written_place(target), **_without_none(numClusters=target.clusters)}
        for target in dataset.targets
    ]
    made: dict[str, Any] = {"datasetID": dataset.id, "targets": targets}
    if dataset.privileged:
        made["privilegedData"] = [
            {"privilegedDataIndex": i, **_written_place(place)} for i, place in enumerate(dataset.privileged)
        ]
    if dataset.horizon is not None:
        made["forecastingHorizon"] = {
            **_written_place(dataset.horizon.place),
            "horizonValue": dataset.horizon.steps,
        }
    return made


def _written_place(place: ColumnPlace) -> dict[str, Any]:
    return {"resID": place.resource, "colIndex": place.column, "colName": place.name}


def _division_to_write(division: Division, version: Version) -> dict[str, Any]:
    made: dict[str, Any] = {
        "method": "kFold" if division.method == "folds" else "holdOut",
        **_without_none(testSize=division.test),
        "numFolds": division.folds or 0,
        "stratified": division.stratified,
        "numRepeats": 0 if division.repeats == 1 else division.repeats,
        **_without_none(randomSeed=division.seed),
        "splitsFile": division.file or SPLITS_FILE,
    }
    if version >= (4,):
        made.update(_without_none(splitScript=division.script))
        if division.views:
            made["datasetViewMaps"] = {
                part: [{"from": view.dataset, "to": view.id} for view in division.views if view.part == part]
                for part in dict.fromkeys(view.part for view in division.views)
            }
    return made


def _criterion_to_write(criterion: Criterion, version: Version) -> dict[str, Any]:
    word = WORDS.get(criterion.metric)
    name = {"metric": word} if word else {"metric": "other", "specifyOther": criterion.metric}
    jointly = "allTargets" if criterion.jointly else "singleTarget"
    applies = {"applicabilityToTarget": jointly} if version < (4,) and criterion.jointly else {}
    return {**name, **_without_none(K=criterion.k, posLabel=criterion.positive), **applies}


def _without_none(**values: Any) -> dict[str, Any]:
    return {key: value for key, value in values.items() if value is not None}
