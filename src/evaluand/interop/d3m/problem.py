"""problemDoc.json, versions 3.0 to 4.1.1, as a `Problem` and back.

Versions 3.x name one task type and at most one sub-type; versions 4.x a list of keywords, of which several may be
types. Writing a problem warns of what the version cannot express, or refuses to write it.
"""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, Literal

from evaluand.core import registry
from evaluand.core.errors import DataError, SpecError, alternatives, nearest, warn
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
from evaluand.predictions.problem.definitions import TAKES_K, TAKES_POSITIVE
from evaluand.predictions.problem.problem import (
    Augmentation,
    Check,
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
    division_checks,
    faults_of,
    misfit_message,
    target_checks,
    within,
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
    augmentations = tuple(
        Augmentation(domains=node.texts("domain"), keywords=node.texts("keywords"))
        for node in root.nodes("dataAugmentation")
    )
    version = read_version(about, "problemSchemaVersion", "3.1.1") if about else (3, 1, 1)
    attributes: dict[str, Any] = {"augmentations": augmentations}
    attributes |= _about(about, version) if about else {}
    attributes |= _inputs(inputs, version, attributes.get("task_types", ())) if inputs else {}
    attributes |= {"outputs": _outputs(outputs)} if outputs else {}
    root.refuse_unknown_keys()
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
        if place is not None:
            free = max((target.index for target in targets), default=-1) + 1
            target = Target(index=free if index is None else index, clusters=clusters, **place)
            checks = target_checks(target, targets, types)
            targets.append(_sound(one, target, checks, {"index": "targetIndex", "clusters": "numClusters"}, index=free))
    privileged = []
    for one in node.nodes("privilegedData"):
        one.integer("privilegedDataIndex", required=True, least=0)
        privileged.append(_place(one))
    horizon = None
    if ahead := node.node("forecastingHorizon"):
        place, steps = _place(ahead), ahead.number("horizonValue", required=True, least=0, most=float("inf"))
        horizon = Horizon(place=ColumnPlace(**place), steps=steps) if place and steps is not None else None
    columns = tuple(ColumnPlace(**place) for place in privileged if place is not None)
    return TargetDataset(id=id, targets=tuple(targets), privileged=columns, horizon=horizon)


def _sound(node: Node, value: Any, checks: Iterable[Check], keys: Mapping[str, str], **instead: Any) -> Any:
    """A value without what is wrong with it, which is reported at the keys of its attributes."""
    faults = faults_of(checks)
    for fault in faults:
        node.fault(keys[fault.where], fault.code or "", fault.message)
    return replace(value, **{fault.where: instead.get(fault.where) for fault in faults})


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
    folds = node.integer("numFolds", least=0)
    if folding and folds is None:
        node.fault("numFolds", "out_of_range", "is missing; the method kFold needs at least 2")
    division = Division(
        method="folds" if folding else "hold_out",
        test=node.number("testSize", least=0, most=1),
        folds=folds if folding else folds or None,
        stratified=node.boolean("stratified", True),
        repeats=node.integer("numRepeats", least=0) or 1,  # 0, the default, means no repetition
        seed=node.integer("randomSeed"),
        file=node.file_path("splitsFile") or SPLITS_FILE,
        script=node.file_path("splitScript"),
        views=tuple(_views(node)),
    )
    sound: Division = _sound(node, division, division_checks(division), {"test": "testSize", "folds": "numFolds"})
    return sound


def _views(node: Node) -> Iterator[DatasetView]:
    maps = node.node("datasetViewMaps")
    parts: tuple[Literal["train", "test", "score"], ...] = ("train", "test", "score")
    for part in parts:
        for one in maps.nodes(part) if maps else ():
            dataset, id = one.text("from", required=True), one.text("to", required=True)
            yield DatasetView(part=part, dataset=dataset or "", id=id or "")


def _criterion(node: Node, version: Version) -> Criterion | None:
    word = node.choice("metric", [*METRICS, "other"], required=True)
    if word is not None and word in (METRICS_ONLY_4 if version < (4,) else METRICS_ONLY_3):
        node.note("metric", "other_version", f"{word!r} belongs to schema {'4' if version < (4,) else '3'}")
    k = node.integer("K", least=1) if _takes(node, "K", word, TAKES_K, takes_k(version)) else None
    has_label = _takes(node, "posLabel", word, TAKES_POSITIVE, takes_label(version))
    label = node.text("posLabel", empty=True) if has_label else None
    if version >= (4,) and node.has("applicabilityToTarget"):
        node.note("applicabilityToTarget", "other_version", "belongs to schema 3; read anyway")
    jointly = node.choice("applicabilityToTarget", ["singleTarget", "allTargets"]) == "allTargets"
    is_other = _takes(node, "specifyOther", word, frozenset(), ("other",))
    name = node.text("specifyOther", required=word == "other") if is_other else METRICS[word or ""]
    if is_other and name is not None and name not in (known := registry.names("metrics")):
        node.fault("specifyOther", "unregistered_metric", f"there is no metric {name!r}{alternatives(name, known)}")
        return None
    return None if word is None or name is None else Criterion(metric=name, k=k, positive=label, jointly=jointly)


def _takes(node: Node, key: str, word: str | None, metrics: Set[str], of_version: Sequence[str]) -> bool:
    """Whether a metric takes a parameter; reported where a document has one that its metric or its version lacks."""
    if word in ("other", None):
        return True
    takes = METRICS[word] in metrics
    if node.has(key) and word not in of_version:
        more = "; read anyway" if takes else ""
        message = f"is only for {', '.join(of_version)}; the metric is {word}{more}"
        node.fault(key, "not_applicable", message)
    node.ignore(key)
    return takes


def _outputs(node: Node) -> Outputs:
    return Outputs(
        predictions=node.file_path("predictionsFile") or "predictions.csv",
        scores=node.file_path("scoresFile") or "scores.csv",
    )


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
    old = number < (4,)
    checked = faults_of(_inexpressible(problem, number))
    if faults := [fault for fault in checked if fault.code != "left_out"]:
        raise DataError(faults)
    for fault in checked:
        warn(str(fault))
    types = [_word_of(task_type, old) for task_type in problem.task_types]
    sub_types = [_SUB_TYPE_WORDS[sub_type] for sub_type in problem.sub_types]
    keywords = [*types, *sub_types, *(_KEYWORD_WORDS[keyword] for keyword in problem.keywords if not old)]
    about = {
        "problemID": problem.id,
        "problemName": problem.name or "NULL",
        "problemDescription": problem.description,
        "problemURI": problem.uri,
        **({"taskType": types[0], "taskSubType": next(iter(sub_types), None)} if old else {"taskKeywords": keywords}),
        "problemVersion": problem.version,
        "problemSchemaVersion": version,
    }
    inputs = {
        "data": [_dataset_to_write(dataset, old) for dataset in problem.datasets],
        "dataSplits": problem.division and _division_to_write(problem.division, old),
        "performanceMetrics": [_criterion_to_write(criterion) for criterion in problem.criteria],
    }
    outputs = {"predictionsFile": problem.outputs.predictions, "scoresFile": problem.outputs.scores}
    sources = [{"domain": [*each.domains], "keywords": [*each.keywords]} for each in problem.augmentations]
    document = {"about": about, "inputs": inputs, "expectedOutputs": outputs}
    written: dict[str, Any] = _without_none(document | {"dataAugmentation": None if old else sources or None})
    return written


def write_problem(problem: Problem, path: str | os.PathLike[str], version: str = "4.1.1") -> None:
    """Writes a problemDoc.json; see `problem_document`."""
    write_json(problem_document(problem, version), path, parents=True)


def _inexpressible(problem: Problem, version: Version) -> Iterator[Check]:
    """What a version cannot express, or leaves out."""
    old, division, other, left_out = version < (4,), problem.division, "other_version", "left_out"
    types, subs = len(problem.task_types), len(problem.sub_types)
    yield old and types != 1, "task_types", f"schema 3 has one task type, not {types}", other
    yield old and subs > 1, "sub_types", f"schema 3 has one sub-type, not {subs}", other
    listed = ", ".join(problem.keywords)
    yield old and bool(listed), "keywords", f"schema 3 has none; left out: {listed}", left_out
    for i, keyword in enumerate(problem.keywords):
        message = f"schema 4 has no keyword {keyword!r}{nearest(keyword, _KEYWORD_WORDS)}"
        yield not old and keyword not in _KEYWORD_WORDS, f"keywords[{i}]", message, "not_allowed"
    for i, dataset in enumerate(problem.datasets):
        message = "schema 3 has neither privileged columns nor horizons; left out"
        yield old and bool(dataset.privileged or dataset.horizon), f"datasets[{i}]", message, left_out
    for i, task_type in enumerate(problem.task_types):
        lacks = f"schema {version[0]} has no task {task_type}"
        yield _word_of(task_type, old) is None, f"task_types[{i}]", lacks, other
    only_4 = division is not None and bool(division.views or division.script)
    yield old and only_4, "division", "schema 3 has no views and no script of the split; left out", left_out
    yield old and bool(problem.augmentations), "augmentations", "schema 3 has no dataAugmentation; left out", left_out
    default = "is None, which is read back as the default scores.csv"
    yield problem.outputs.scores is None, "outputs.scores", default, left_out
    yield problem.name == "NULL", "name", "'NULL' is read back as no name", left_out
    for i, criterion in enumerate(problem.criteria):
        yield from within(f"criteria[{i}]", _inexpressible_criterion(criterion, version))


def _inexpressible_criterion(criterion: Criterion, version: Version) -> Iterator[Check]:
    name, old, other = criterion.metric, version < (4,), "other_version"
    word, ours = WORDS.get(name), registry.names("metrics")
    lacks = f"schema {version[0]} has none for {name}"
    if word is None:
        message = f"there is no metric {name!r}{nearest(name, [*WORDS, *ours])}"
        yield name not in ours, "metric", message, "unregistered_metric"
    else:
        only_other = METRICS_ONLY_4 if old else METRICS_ONLY_3
        yield word in only_other, "metric", f"schema {version[0]} has no {name}", other
        yield criterion.k is not None and word not in takes_k(version), "k", lacks, other
        yield criterion.positive is not None and word not in takes_label(version), "positive", lacks, other
    yield not old and criterion.jointly, "jointly", "schema 4 has no applicabilityToTarget", other


_SUB_TYPE_WORDS: Final = {ours: theirs for theirs, ours in SUB_TYPES.items()}
_KEYWORD_WORDS: Final = {ours: theirs for theirs, ours in KEYWORDS.items()}


def _word_of(task_type: TaskType, old: bool) -> str | None:
    unknown = ONLY_4 if old else ONLY_3
    return next((word for word, ours in TASK_TYPES.items() if ours is task_type and word not in unknown), None)


def _dataset_to_write(dataset: TargetDataset, old: bool) -> dict[str, Any]:
    targets = [
        {"targetIndex": target.index, **_written_place(target), "numClusters": target.clusters}
        for target in dataset.targets
    ]
    privileged = [{"privilegedDataIndex": i, **_written_place(place)} for i, place in enumerate(dataset.privileged)]
    ahead = dataset.horizon and {**_written_place(dataset.horizon.place), "horizonValue": dataset.horizon.steps}
    only_4 = {} if old else {"privilegedData": privileged or None, "forecastingHorizon": ahead}
    return {"datasetID": dataset.id, "targets": targets, **only_4}


def _written_place(place: ColumnPlace) -> dict[str, Any]:
    return {"resID": place.resource, "colIndex": place.column, "colName": place.name}


def _division_to_write(division: Division, old: bool) -> dict[str, Any]:
    views = {
        part: [{"from": view.dataset, "to": view.id} for view in division.views if view.part == part]
        for part in dict.fromkeys(view.part for view in division.views)
    }
    return {
        "method": "kFold" if division.method == "folds" else "holdOut",
        "testSize": division.test,
        "numFolds": division.folds or 0,
        "stratified": division.stratified,
        "numRepeats": 0 if division.repeats == 1 else division.repeats,
        "randomSeed": division.seed,
        "splitsFile": division.file or SPLITS_FILE,
        **({} if old else {"splitScript": division.script, "datasetViewMaps": views or None}),
    }


def _criterion_to_write(criterion: Criterion) -> dict[str, Any]:
    word = WORDS.get(criterion.metric)
    name = {"metric": word} if word else {"metric": "other", "specifyOther": criterion.metric}
    jointly = "allTargets" if criterion.jointly else None
    return {**name, "K": criterion.k, "posLabel": criterion.positive, "applicabilityToTarget": jointly}


def _without_none(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_none(cell) for key, cell in value.items() if cell is not None}
    return [*map(_without_none, value)] if isinstance(value, list) else value
