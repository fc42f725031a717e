"""The parts of an experiment, made from what its file says: dataset, views, tasks, scorers and measures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError
from pydantic_core import InitErrorDetails, PydanticCustomError

from evaluand.aggregation.aggregator import Measure
from evaluand.aggregation.disparity import kinds_of
from evaluand.aggregation.fairness import measures_of
from evaluand.core import registry
from evaluand.core.errors import DataError, SpecError, kind_of
from evaluand.core.files.yaml import Document
from evaluand.core.identity import encode
from evaluand.data.adapters.base.pipeline import Pipeline
from evaluand.data.dataset import Dataset
from evaluand.data.roles import RoleError
from evaluand.evaluation.output_view import OutputView
from evaluand.evaluation.scorer import FunctionScorer, Scorer
from evaluand.experiment.parse import Sound
from evaluand.experiment.spec import (
    CodeSpec,
    DatasetSpec,
    FairnessSpec,
    KindSpec,
    MetricSpec,
    ScorerEntry,
    TaskEntry,
    TradeoffSpec,
)
from evaluand.experiment.user_code import loaded, referred
from evaluand.run.task import FunctionTask, Task, as_task
from evaluand.tradeoff.evaluations import Trade


def dataset(spec: Sound, folder: Path, document: Document) -> Dataset | None:
    """The dataset; None where it has faults, which are noted."""
    given = spec.dataset
    if given is None:
        return None
    roles = given.model_dump(exclude={"path", "format", "delimiter", "name", "views"}, exclude_defaults=True)
    path = folder / given.path
    with document.at("dataset", "path"):
        try:
            made = Dataset.from_file(
                path, format=given.format, delimiter=given.delimiter, name=given.name or spec.name, **roles
            )
        except RoleError as error:
            for role, message in error.faults:
                document.add(("dataset", role), message)
            return None
        if not len(made):
            raise DataError(f"{path}: the file holds no examples")
        return made
    return None


def view(given: Any, of: DatasetSpec | None) -> Pipeline:
    """The adapters of a task's view, given as they are or by their name among the dataset's."""
    if not isinstance(given, str):
        return Pipeline.of(given)
    known = of.views if of else {}
    if given not in known:
        there = f"there are {', '.join(known)}" if known else "the dataset has no views"
        raise SpecError(f"no view is called {given!r}{registry.nearest(given, known)}; {there}")
    return Pipeline.of(known[given])


def task(spec: TaskEntry, folder: Path) -> Task[Any, Any]:
    if isinstance(spec, KindSpec):
        return _made("tasks", spec.kind, _placed(spec, folder))  # type: ignore[no-any-return]
    code = loaded(spec, folder)
    files = tuple(str(folder / file) for file in spec.files)
    declared: dict[str, Any] = {"version": _version(spec), "files": files, "items": spec.items}
    if isinstance(code, FunctionTask) and any(declared.values()):
        code = code.function
    if not hasattr(code, "do_run"):
        return FunctionTask(_callable(code, spec), **declared)
    made = as_task(code)
    for name, value in declared.items():
        if value:  # else its own stays
            setattr(made, name, value)
    return made


def _placed(spec: KindSpec, folder: Path) -> dict[str, Any]:
    """The parameters of a kind of task, with paths taken from the experiment's folder and code in place of its name."""
    parameters = spec.parameters
    if "path" in parameters:
        parameters["path"] = str(folder / str(parameters["path"]))
    if isinstance(parameters.get("files"), list):
        parameters["files"] = [str(folder / str(file)) for file in parameters["files"]]
    if "folder" in _parameter_names("tasks", spec.kind):
        parameters["folder"] = str(folder / str(parameters.get("folder", "")))
    name = _CODE.get(spec.kind, "")
    if isinstance(parameters.get(name), str):
        parameters[name] = referred(CodeSpec(function=parameters[name]).function, folder)
    return parameters


_CODE = {"estimator": "model", "retriever_question_answering": "retriever"}
"""The parameter of a kind of task that is code of the user's own."""


def scorer(spec: ScorerEntry, folder: Path) -> Scorer:
    made = _graded_by(spec, folder)
    return made if spec.view is None else OutputView(made, spec.view)


def _graded_by(spec: ScorerEntry, folder: Path) -> Scorer:
    if isinstance(spec, KindSpec):
        return _made("scorers", spec.kind, _with_code(spec, folder))  # type: ignore[no-any-return]
    code = loaded(spec, folder)
    files = tuple(str(folder / file) for file in spec.files)
    if isinstance(code, Scorer) and not (spec.version or files or spec.batch):
        return code
    if isinstance(code, Scorer) and not isinstance(code, FunctionScorer):
        raise SpecError(f"{spec.function} is a class of scorers, which declares its version itself and takes no batch")
    function = code.function if isinstance(code, FunctionScorer) else code
    return FunctionScorer(_callable(function, spec), version=_version(spec), files=files, batch=spec.batch)


def _with_code(spec: KindSpec, folder: Path) -> dict[str, Any]:
    """The parameters of a feedback, with code in place of its name; those of other scorers as they are."""
    parameters = spec.parameters
    for name in _CODE_OF_SCORERS.get(spec.kind, ()):
        if isinstance(parameters.get(name), str) and ":" in parameters[name]:
            parameters[name] = referred(parameters[name], folder)
    return parameters


_CODE_OF_SCORERS = {"feedback": ("implementation", "aggregate")}
"""The parameters of a kind of scorer that are code of the user's own."""


def _callable(code: Any, spec: CodeSpec) -> Any:
    if not callable(code):
        what = f"{spec.function}: {kind_of(code)} cannot be called"
        raise SpecError(f"{what}; name a function, or a class whose objects can be called")
    return code


def _version(spec: CodeSpec) -> str | None:
    """What a declared version pins: the code it was declared for, with its parameters."""
    return None if spec.version is None else f"{spec.version} of {spec.function} {encode(spec.parameters).decode()}"


def measure(spec: MetricSpec, scorers: Sequence[str]) -> Measure:
    scorer = _scorer_read(spec.scorer, scorers)
    groupings = [spec.by] if isinstance(spec.by, str) else spec.by
    by = tuple((names,) if isinstance(names, str) else tuple(names) for names in groupings)
    return Measure(scorer, _made("metrics", spec.kind, spec.parameters), by, kinds_of(spec.disparities))


def fairness(spec: FairnessSpec, scorers: Sequence[str]) -> list[Measure]:
    scorer = _scorer_read(spec.scorer, scorers)
    return measures_of(
        spec.criterion,
        spec.by,
        scorer=scorer,
        label=spec.label,
        scored_by=spec.scored_by,
        disparities=kinds_of(spec.disparities),
        confidence=spec.confidence,
    )


def tradeoff(spec: TradeoffSpec) -> Trade:
    return Trade(**spec.model_dump())


def _scorer_read(name: str | None, scorers: Sequence[str]) -> str:
    if not scorers:
        return ""  # which has been told
    if name is None and len(scorers) == 1:
        return scorers[0]
    if name is None:
        raise SpecError(f"say which scorer it reads: scorer: {' | '.join(scorers)}")
    if name not in scorers:
        hint = registry.nearest(name, scorers)
        raise SpecError(f"no scorer is called {name!r}{hint}; there are {', '.join(scorers)}")
    return name


def _made(group: str, kind: str, parameters: Mapping[str, Any]) -> Any:
    """A kind with its parameters.

    Raises:
        SpecError: no kind is called so, or it refuses the parameters together.
        ValidationError: parameters it has not, or values they cannot have.
    """
    known = _parameter_names(group, kind)
    unknown = [name for name in parameters if name not in known]
    if unknown:
        raise ValidationError.from_exception_data(kind, [_unknown(kind, name, known) for name in unknown])
    made = TypeAdapter(registry.find(group, kind)).validate_python(dict(parameters))
    if lax := list(_lax_flags(made, parameters)):
        raise ValidationError.from_exception_data(kind, lax)
    return made


def _parameter_names(group: str, kind: str) -> list[str]:
    made = registry.find(group, kind)
    return [f.name for f in fields(made) if f.init] if is_dataclass(made) else []


def _lax_flags(made: Any, given: Mapping[str, Any], place: tuple[str, ...] = ()) -> Iterator[InitErrorDetails]:
    """What was read as true or false without being either: pydantic takes `yes`, 1 and much else."""
    for name, value in given.items():
        read = getattr(made, name, None)
        if isinstance(read, bool) and not isinstance(value, bool):
            yield InitErrorDetails(type="bool_type", loc=(*place, name), input=value)
        elif isinstance(value, Mapping) and is_dataclass(read):
            yield from _lax_flags(read, value, (*place, name))


def _unknown(kind: str, name: str, known: Sequence[str]) -> InitErrorDetails:
    told = f"{kind} has no such parameter{registry.nearest(name, known)}; it has {', '.join(known) or 'none'}"
    return InitErrorDetails(type=PydanticCustomError("unknown", "{told}", {"told": told}), loc=(name,), input=None)
