"""`Suite`: the same systems on several problems, each of which is an experiment."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Unpack

from evaluand.aggregation.aggregator import Measure
from evaluand.core.errors import DataError, EvaluandError, Fault, SpecError, kind_of, nearest, warn
from evaluand.core.labels import join_name
from evaluand.core.near import keywords
from evaluand.engine.keyed_work import Progress
from evaluand.engine.outcome import Unreachable
from evaluand.experiment.experiment import Experiment
from evaluand.experiment.suite_results import NotRun, ProblemResult, SuiteResults
from evaluand.experiment.suite_spec import ParsedSuite, ProblemFolder, ProblemParts, ScoreSpec, parse_suite
from evaluand.metrics.names import as_called, name_in_tables
from evaluand.predictions.scoring import GradedProblem, score
from evaluand.run.request import PathOptions, PathRequest
from evaluand.store.store import MemoryStore, Store, check_name


@dataclass
class Suite:
    """The same systems on several problems: scores, mean ranks, means over problems, and cost.

    Args:
        name: of the suite, and the first part of the names of its experiments.
        problems: name → experiment; all with the same names of tasks. Its name becomes `SUITE/PROBLEM`.
        scores: problem → the measure by which systems are ranked, one of those of the experiment; by default its first.
        macro_mean: whether scores are averaged over problems; by default if all are of one kind and range.
        seed: of the bootstrap.
        confidence: level of intervals, and 1 − that of tests.
        control: the task with which the ranks of the others are compared; by default the first.

    Raises:
        SpecError: an argument has a wrong type, or the tasks of two problems have different names.

    Example:
        >>> from evaluand import Accuracy, Dataset, Measure
        >>> def experiment(text):
        ...     data = Dataset.from_rows([{"input": letter, "expected": letter.upper()} for letter in text])
        ...     same = {"same": lambda output, expected: output == expected}
        ...     tasks = {"upper": str.upper, "lower": str.lower}
        ...     return Experiment("any", data, tasks, same, [Measure("same", Accuracy())])
        >>> found = Suite("letters", {"small": experiment("abc"), "mixed": experiment("aBC")}).run()
        >>> [system["mean_rank"] for system in found.to_dict()["ranks"]["systems"]]
        [1.0, 2.0]
    """

    name: str
    problems: Mapping[str, Experiment]
    scores: Mapping[str, Measure] = field(default_factory=dict)
    macro_mean: bool | None = None
    seed: int = 0
    confidence: float = 0.95
    control: str | None = None

    @classmethod
    def from_file(cls, path: str | os.PathLike[str], *, model: str | None = None) -> Suite:
        """Loads the suite of a YAML file, with the code and the data of all problems.

        Args:
            model: the model of all tasks that take one, in place of those in the file.

        Raises:
            SpecError: the file, or one of a problem, has faults; all of them, each with its file and line.
            DataError: datasets or recorded outputs are invalid.
        """
        parsed = parse_suite(Path(path), model)
        problems: dict[str, Experiment] = {}
        scores: dict[str, Measure] = {}
        faults = _Faults(len(parsed.problems))
        for name, parts in parsed.problems.items():
            try:
                problems[name] = _build(parsed, name, parts)
            except EvaluandError as error:
                faults.add(name, error)
                continue
            with parsed.document.at(*parts.score_place):
                scores[name] = _choose_score(problems[name], name, parts.score)
        try:
            parsed.document.check()
        except EvaluandError as error:
            faults.add(None, error)
        faults.check()
        spec = parsed.spec
        return cls(spec.name, problems, scores, spec.macro_mean, spec.seed, spec.confidence, spec.control)

    def __post_init__(self) -> None:
        check_name(self.name)
        experiments: Any = self.problems
        if not isinstance(experiments, Mapping) or not experiments:
            raise SpecError(f"problems must be a mapping name: experiment, not {kind_of(experiments)}")
        for name, experiment in experiments.items():
            if not isinstance(experiment, Experiment):
                raise SpecError(f"problems.{name} must be an Experiment, not {kind_of(experiment)}")
            check_name(name)
            if {*experiment.tasks} != {*self.systems}:
                raise SpecError(f"problems.{name} has the tasks {', '.join(experiment.tasks)}; all problems need those"
                                f" of the first: {', '.join(self.systems)}")  # fmt: skip
        if self.control is not None and self.control not in self.systems:
            raise SpecError(
                f"control: no task is called {self.control!r}{nearest(self.control, self.systems)};"
                f" there are {', '.join(self.systems)}"
            )
        self.problems = {
            name: replace(one, name=join_name(self.name, name)) if one.name != join_name(self.name, name) else one
            for name, one in experiments.items()
        }
        self.scores = {
            name: self.scores.get(name) or _choose_score(one, name, ScoreSpec()) for name, one in self.problems.items()
        }

    @property
    def systems(self) -> list[str]:
        """The names of the tasks, in order."""
        return [*next(iter(self.problems.values())).tasks]

    @keywords(PathRequest)
    def run(
        self,
        store: Store | None = None,
        *,
        progress: Progress | None = None,
        **options: Unpack[PathOptions],
    ) -> SuiteResults:
        """Runs every problem as an experiment, with what is stored; what fails is left out, and the others are run.

        A system whose server cannot be reached is not run on the problems that follow.

        Args:
            store: where everything is stored; by default in memory.
            progress: shows the progress of each step.
            options: what of each problem is run and repeated: `limit`, `fresh`, `retry_failed`, `calls`.
        """
        store, request = store or MemoryStore(), vars(PathRequest(**options))
        found: list[ProblemResult] = []
        lost: dict[str, tuple[Any, NotRun]] = {}  # system → its task, and where its server could not be reached
        for name, experiment in self.problems.items():
            not_run = {system: reason for system, (task, reason) in lost.items() if experiment.tasks[system] == task}
            results, error = None, None
            try:
                results = experiment.run(store, progress=progress, compared=False, left_out=not_run, **request)
            except EvaluandError as raised:
                error = raised
            found.append(ProblemResult(name, experiment.name, self.scores[name], results, error))
            for system, failure in results.left_out.items() if results else ():
                if isinstance(failure, Unreachable):
                    reason = NotRun(f"its server could not be reached on {name}")
                    lost[system] = experiment.tasks[system], reason
        return SuiteResults(self.name, self.systems, found, self.macro_mean, self.seed, self.confidence, self.control)


def _build(parsed: ParsedSuite, name: str, problem: ProblemParts | ProblemFolder) -> Experiment:
    origin = {"suite": os.path.abspath(parsed.document.path), "problem": name}
    if isinstance(problem, ProblemFolder):
        parsed.document.check()  # tasks without predictions
        scores = score(problem.folder, problem.files, intervals=False)
        for note in scores.notes:
            warn(f"problem {name}: {note}")
        assert isinstance(scores.graded, GradedProblem)
        if scores.graded.why_apart:
            warn(f"problem {name}: the suite's values are those of all rows: in its folder {scores.graded.why_apart}")
        steps = scores.graded.steps(join_name(parsed.spec.name, name))
        return Experiment(**vars(steps) | {"origin": steps.origin | origin})
    home, document = parsed.document.path.parent, problem.document
    origin |= {"digest": document.digest}
    return Experiment.from_parts(problem.parts, document, problem.folder, origin, tasks_folder=home)


def _choose_score(experiment: Experiment, problem: str, score: ScoreSpec) -> Measure:
    """The first measure of all rows that fits a score.

    Raises:
        SpecError: there is none; lists those that there are.
    """
    known = experiment.measures_of_all_rows
    for measure in known:
        if score.scorer in (None, measure.scorer) and (score.metric is None or _is_called(measure, score.metric)):
            return measure
    if not known:
        raise SpecError(f"problem {problem} has no metric of all rows; systems are ranked by one")
    named = {f"{name_in_tables(each.metric.signature)} of {each.scorer}": None for each in known}
    wanted = " of ".join(filter(None, (score.metric or "any metric", score.scorer)))
    raise SpecError(f"problem {problem} has no {wanted}{nearest(wanted, named)}; it has {', '.join(named)}; give the"
                    " problem its own score")  # fmt: skip


def _is_called(measure: Measure, name: str) -> bool:
    metric = measure.metric
    return name in (metric.kind, *measure.called) or as_called(metric, name) is not None


class _Faults:
    """The faults of all problems; those of the tasks, which problems share, once.

    Args:
        problems: how many problems there are.
    """

    def __init__(self, problems: int) -> None:
        self._problems = problems
        self._found: dict[Fault, list[str]] = {}
        self._are_of_data = True

    def add(self, problem: str | None, error: EvaluandError) -> None:
        self._are_of_data &= isinstance(error, DataError)
        for fault in _faults_of(error):
            self._found.setdefault(fault, []).extend([problem] if problem is not None else [])

    def check(self) -> None:
        """Raises them all: a DataError where all are of data, else a SpecError."""
        if not self._found:
            return
        faults = [*self._described()]
        raise DataError(faults) if self._are_of_data else SpecError("\n".join(map(str, faults)))

    def _described(self) -> Iterator[Fault]:
        for fault, problems in self._found.items():
            some = 0 < len(problems) < self._problems and ": tasks." in str(fault)
            yield Fault(fault.where, f"{fault.message} (of {_listed(problems)})", code=fault.code) if some else fault


def _faults_of(error: EvaluandError) -> Iterable[Fault]:
    if isinstance(error, DataError):
        return error.faults
    return [Fault("", line) for line in str(error).split("\n")]


def _listed(problems: Sequence[str]) -> str:
    shown = ", ".join(problems[:3])
    return f"{shown} and {len(problems) - 3:,} more" if len(problems) > 3 else shown
