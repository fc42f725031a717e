"""Finds parts of an experiment that do not fit together, before anything is called."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from evaluand.aggregation.aggregator import Measure, check_measures
from evaluand.aggregation.fairness import check_decided
from evaluand.comparison import gates
from evaluand.comparison.measures import declared_as
from evaluand.comparison.rule import Gate
from evaluand.core.errors import DataError, SpecError
from evaluand.core.files.yaml import Document, Place
from evaluand.data.dataset import Dataset
from evaluand.data.view import ViewSpec
from evaluand.evaluation.comparison_scorers import as_comparison_scorer
from evaluand.evaluation.preflight import check_gradable
from evaluand.evaluation.scorer import Score, Scorer
from evaluand.experiment.gates import check_match_gates
from evaluand.experiment.parsing import ADD_MATCHES, ValidParts
from evaluand.experiment.spec import KindSpec
from evaluand.metrics.names import is_name
from evaluand.predictions.preflight import check_answers, check_trade, expected_columns
from evaluand.predictions.tournament import Tournament
from evaluand.run.dataset_fit import prepare
from evaluand.run.task import FunctionTask, Task
from evaluand.store.store import MemoryStore
from evaluand.tradeoff.evaluations import missing_confidences
from evaluand.tradeoff.trade import Trade


def check_fit(
    spec: ValidParts,
    document: Document,
    dataset: Dataset | None,
    tasks: Mapping[str, Task[Any, Any]],
    views: Mapping[str, ViewSpec],
    scorers: Mapping[str, Scorer],
    measures: Mapping[Place, Sequence[Measure]],
    tradeoffs: Mapping[Place, Trade],
) -> None:
    """Adds faults to the document: missing files and, if there is a dataset, parts that do not fit it.

    Classes of the user are not prepared here, since that may load a model.
    """
    prepared: dict[str, Task[Any, Any]] = {}
    for name, task in tasks.items():
        seen: Dataset | None = None
        with document.at("tasks", name, "view"):
            seen = dataset.view(views[name]) if dataset is not None and name in views else dataset
        with document.at("tasks", name):
            task.identify()
            if seen is not None and (isinstance(spec.tasks[name], KindSpec) or isinstance(task, FunctionTask)):
                prepare(task, seen)
                prepared[name] = task
    for name, scorer in scorers.items():
        with document.at("scorers", name):
            scorer.identify()
            scorer.prepare()
            if dataset is not None:
                check_gradable(scorer, dataset, prepared, spec.run.replications)
    for place, those in measures.items():
        for measure in those:
            with document.at(*place):
                check_answers(measure.metric, tasks, spec.run.replications)
            if dataset is not None and measure.scorer in scorers:
                with document.at(*place):
                    check_measures([measure], {measure.scorer: scorers[measure.scorer].readable}, dataset.roles)
                    if measure.where is not None:
                        dataset.matches(measure.where)  # refuses what the cells do not suit
                    for labels in expected_columns(dataset) if measure.criterion else ():
                        check_decided(measure, labels)

    for place, trade in tradeoffs.items():
        with document.at(*place):
            check_trade(trade, spec.task_names, scorers, [one for those in measures.values() for one in those], dataset)
            if dataset is not None and trade.thresholds is not None:
                known = {name: task for name, task in prepared.items() if not trade.tasks or name in trade.tasks}
                check_confidences(trade, known, scorers, dataset)


def check_gates(
    spec: ValidParts,
    document: Document,
    rules: Mapping[int, Gate],
    dataset: Dataset | None,
    scorers: Mapping[str, Scorer],
    measures: Mapping[Place, Sequence[Measure]],
    tournaments: Sequence[Tournament],
) -> None:
    """Adds gates that could never be checked to the faults of the document; a stored baseline is looked up later."""
    faulty = {*spec.scorer_names} - {*scorers}
    are_valid = len(tournaments) == len(spec.matches) and not spec.partial_matches
    declared = [measure for those in measures.values() for measure in those]
    has_matches = "matches" in document.value
    is_graded = {"scorers", "metrics"} & {*document.value} or not has_matches
    kinds = {measure.metric.kind for measure in declared}
    for i, gate in rules.items():
        with document.at("gates", i):
            if has_matches and gate.is_of_matches:
                if are_valid and tournaments:  # else it may be about matches with faults
                    check_match_gates([gate], tournaments, spec.task_names)
                continue
            if dataset is None or not (declared or not is_graded):
                continue
            if (declared and not scorers and not faulty) or (faulty and (gate.scorer is None or gate.scorer in faulty)):
                continue  # the scorers have a fault
            own = [one for one in declared if one.criterion == gate.metric or declared_as(gate.metric, [one])]
            if len(measures) < spec.n_measured and (gate.parameters or not own):
                continue  # it may be about a metric with a fault
            if gate.is_of_matches and not (gate.metric in {*kinds, *scorers} or is_name(gate.metric)):
                raise SpecError(f"gate {gate.text!r} is about matches; {ADD_MATCHES}")
            if not declared:
                raise SpecError(f"gate {gate.text!r} is about a metric; write scorers and metrics into the file")
            known = [] if gate.baseline is None else [gate.baseline]
            gates.check_fit([gate], [*scorers], declared, dataset.roles.attributes, known, MemoryStore())


def check_judges(
    document: Document, tournaments: Mapping[Place, Tournament], tasks: Sequence[str], dataset: Dataset | None
) -> list[Tournament]:
    """Adds judges that cannot judge, and systems that cannot be paired, to the faults of the document.

    Returns:
        The tournaments whose systems can be paired.
    """
    valid: list[Tournament] = []
    for place, tournament in tournaments.items():
        with document.at(*place):
            if tournament.name in [other.name for other in valid]:
                raise SpecError(f"two entries are called {tournament.name!r}; give each its own name")
            tournament.systems(tasks)
            valid.append(tournament)
        with document.at(*place, "judge"):
            judge = as_comparison_scorer(tournament.judge)
            judge.identify()
            judge.prepare()
            if dataset is not None:
                check_gradable(judge, dataset, {})
    return valid


def check_confidences(
    trade: Trade, tasks: Mapping[str, Task[Any, Any]], scorers: Mapping[str, Scorer], dataset: Dataset
) -> None:
    """Refuses models whose outputs are already known and have no confidence.

    Raises:
        SpecError: lists them.
    """
    of = [one for name, one in scorers.items() if "confidence" in one.columns and trade.scorer in (None, name)]
    blank = [name for name, task in tasks.items() if len(of) == 1 and _lacks_confidences(task, of[0], dataset)]
    if blank:
        raise SpecError(missing_confidences(blank))


def _lacks_confidences(task: Task[Any, Any], scorer: Scorer, dataset: Dataset) -> bool:
    """Whether the outputs are already known and none has a confidence."""
    if isinstance(dataset.roles.expected, Mapping):
        return False
    graded = 0
    for example in dataset:
        outputs = task.known(example.index, example.id, 0)
        if outputs is None:
            return False
        for output in outputs if example.expected is not None else ():
            with suppress(DataError):
                score = scorer.score(output, example.expected)
                columns = (score.columns if isinstance(score, Score) else None) or {}
                if columns.get("confidence") is not None or columns.get("scores"):
                    return False
                graded += columns.get("prediction") is not None
    return graded > 0
