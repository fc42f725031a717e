"""`Experiment`: the complete path from one file or a few lines of Python."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from evaluand.aggregation.aggregator import Measure
from evaluand.core.files.yaml import Document, Place
from evaluand.core.near import Explained
from evaluand.data.view import ViewSpec
from evaluand.engine.budget import Budget
from evaluand.engine.engine import Engine
from evaluand.engine.engines.choice import choose_engine
from evaluand.engine.engines.local import LocalEngine
from evaluand.engine.policy import Policy
from evaluand.evaluation.scorer import Scorer
from evaluand.experiment import build
from evaluand.experiment.parsing import ValidParts, parse_file
from evaluand.experiment.preflight import check_fit, check_gates, check_judges
from evaluand.experiment.tournament_entries import build_tournaments
from evaluand.experiment.user_code import transient_errors
from evaluand.models.preflight import check_prices
from evaluand.models.prices import PriceTable
from evaluand.predictions.steps import Steps
from evaluand.run.task import Task
from evaluand.store.store import Store, check_name
from evaluand.tradeoff.trade import Trade


@dataclass
class Experiment(Steps, metaclass=Explained):
    """The complete path: every task over the dataset, graded by every scorer, summarised by every metric, compared.

    Args:
        name: the name of the experiment, and the first part of the runs' names.
        dataset: the examples: a dataset, or any data that `Dataset.from_data` reads by its column names.
        tasks: name → task, function or object with `do_run`.
        scorers: name → scorer or function; or the name of a kind, or a list of such names, which name the scorers too.
        measures: metrics on the scorers' tables; with one scorer, names or metrics suffice. An experiment with matches
            may have neither scorers nor measures.
        replications: how often each example is run; None takes the task's default, or once.
        seed: the seed from which the examples' seeds are derived.
        views: task → the adapters that transform the dataset's rows for this task, as `Dataset.view` takes them.
        tradeoffs: trade-offs between objectives, for reports.
        gates: rules that results must fulfil; `check_gates` and `evaluand run` check them.
        matches: comparisons of the tasks' responses by judges.
        allow_unmeasured_judges: whether gates on judges without a card are checked; otherwise they fail.
        engine: where calls are made.

    Raises:
        SpecError: an argument has a wrong type, or parts do not fit together.

    Example:
        >>> from evaluand import Accuracy, Dataset
        >>> experiment = Experiment(
        ...     "shouting",
        ...     Dataset.from_rows([{"input": "a", "expected": "A"}]),
        ...     {"upper": str.upper},
        ...     {"same": lambda output, expected: output == expected},
        ...     [Measure("same", Accuracy())],
        ... )
        >>> experiment.run().aggregation.table()["value"].to_pylist()
        [1.0]
    """

    @classmethod
    def from_file(
        cls,
        path: str | os.PathLike[str],
        *,
        content: bytes | None = None,
        model: str | None = None,
        store: Store | None = None,
    ) -> Experiment:
        """Loads the experiment of a YAML file, with its code and its dataset.

        Args:
            content: the bytes of the file, if they have been read, so that it is not read again.
            model: the model of all tasks that take one, in place of those in the file; or the name of one of its
                `models`.
            store: where the runs are that take part as `{kind: stored, run: NAME}`.

        Raises:
            SpecError: the file has faults; each with its line.
            DataError: the dataset or recorded outputs are invalid, or there are no examples.
        """
        path = Path(path)
        spec, document = parse_file(path, content, model)
        origin = {"experiment": os.path.abspath(path), "digest": document.digest}
        origin |= {} if model is None else {"model": model}
        return cls.from_parts(spec, document, path.parent, origin, store=store)

    @classmethod
    def from_parts(
        cls,
        spec: ValidParts,
        document: Document,
        folder: Path,
        origin: dict[str, Any],
        *,
        tasks_folder: Path | None = None,
        store: Store | None = None,
    ) -> Experiment:
        """Loads an experiment from the parts of a document, which it checks.

        Args:
            folder: the folder to which paths are relative.
            origin: of what it makes, for provenance.
            tasks_folder: the folder of the paths of tasks, if it is another one.
            store: where stored runs are.

        Raises:
            SpecError, DataError: as `from_file`.
        """
        tasks, views = _build_tasks(spec, document, tasks_folder or folder, store)
        scorers = _build_scorers(spec, document, folder)
        measures = _build_measures(spec, document, folder, scorers)
        trades = _build_trades(spec, document)
        tournaments = build_tournaments(spec, document, scorers, folder)
        gates = spec.parse_gates(document)
        policy = _build_policy(spec, document, folder, tasks)
        engine = _build_engine(spec, document, policy)
        with document.at("budget"):
            check_prices(policy, tasks, scorers, [one.judge for one in tournaments.values()])
        dataset = build.dataset(spec, folder, document, tasks_folder or folder)
        if spec.dataset is None:
            dataset = next((task.stored.dataset for task in tasks.values() if task.stored is not None), None)
        check_fit(spec, document, dataset if spec.is_dataset_valid else None, tasks, views, scorers, measures, trades)
        rated = check_judges(document, tournaments, spec.task_names, dataset if spec.is_dataset_valid else None)
        check_gates(spec, document, gates, dataset, scorers, measures, rated)
        document.check()
        assert spec.name is not None
        assert dataset is not None
        return cls(
            spec.name,
            dataset,
            tasks,
            scorers,
            [measure for those in measures.values() for measure in those],
            policy,
            spec.run.replications,
            spec.run.seed,
            origin,
            views,
            [*trades.values()],
            [*gates.values()],
            [*tournaments.values()],
            spec.allow_unmeasured_judges,
            engine,
        )


def _build_tasks(
    spec: ValidParts, document: Document, folder: Path, store: Store | None
) -> tuple[dict[str, Task[Any, Any]], dict[str, ViewSpec]]:
    """The tasks of a file, and the views of those that have one; adds faults to the document."""
    tasks: dict[str, Task[Any, Any]] = {}
    views: dict[str, ViewSpec] = {}
    for name, task in spec.tasks.items():
        with document.at("tasks", name):
            tasks[check_name(name)] = build.task(task, folder, store)
        with document.at("tasks", name, "view"):
            if task.view is not None:
                views[name] = build.view(task.view, spec.dataset, folder)
    return tasks, views


def _build_scorers(spec: ValidParts, document: Document, folder: Path) -> dict[str, Scorer]:
    scorers: dict[str, Scorer] = {}
    for name, scorer in spec.scorers.items():
        with document.at("scorers", name):
            scorers[check_name(name)] = build.scorer(scorer, folder)
    return scorers


def _build_measures(
    spec: ValidParts, document: Document, folder: Path, scorers: Mapping[str, Scorer]
) -> dict[Place, list[Measure]]:
    """The metrics of a file, and those of its fairness criteria, by their place in it; adds faults to the document.

    Args:
        scorers: the valid ones.
    """
    measures: dict[Place, list[Measure]] = {}
    for i, metric in spec.metrics.items():
        with document.at("metrics", i):
            made = build.measure(metric, spec.scorer_names, folder)
            is_lower_better = getattr(scorers.get(made.scorer), "higher_is_better", None) is False
            measures["metrics", i] = [build.lower_is_better(made, metric) if is_lower_better else made]
    for i, rule in spec.fairness.items():
        with document.at("fairness", i):
            measures["fairness", i] = build.fairness(rule, spec.scorer_names)
    return measures


def _build_trades(spec: ValidParts, document: Document) -> dict[Place, Trade]:
    trades: dict[Place, Trade] = {}
    for i, trade in spec.tradeoffs.items():
        with document.at("tradeoffs", i):
            trades["tradeoffs", i] = build.tradeoff(trade)
    return trades


def _build_policy(spec: ValidParts, document: Document, folder: Path, tasks: Mapping[str, Task[Any, Any]]) -> Policy:
    """How calls are made; adds faults to the document.

    Args:
        tasks: the valid ones.
    """
    any_name = len(tasks) < len(spec.task_names) or any(task.names_errors for task in tasks.values())
    errors = transient_errors(spec.run, folder, document, any_name)
    policy = Policy()
    with document.at("run", "rate"):
        policy = spec.run.policy(errors)
    with document.at("budget"):
        policy = replace(policy, budget=None if spec.budget is None else Budget(**spec.budget.model_dump()))
    with document.at("prices"):
        policy = replace(policy, prices=None if spec.prices is None else PriceTable.load(folder / spec.prices))
    return policy


def _build_engine(spec: ValidParts, document: Document, policy: Policy) -> Engine:
    """Where calls are made; adds faults to the document."""
    engine: Engine = LocalEngine()
    with document.at("engine"):
        engine = choose_engine(**spec.engine.model_dump())
        engine.check(policy)
    return engine
