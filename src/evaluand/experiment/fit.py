"""What of an experiment does not fit together, found before anything is called."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from evaluand.adapter import Pipeline
from evaluand.aggregation import Measure, check_measures
from evaluand.dataset import Dataset
from evaluand.document import Document, Place
from evaluand.errors import SpecError
from evaluand.experiment.reading import Sound
from evaluand.experiment.spec import KindSpec
from evaluand.fairness import check_decided
from evaluand.gradable import check_gradable
from evaluand.metric import Metric
from evaluand.scorer import Scorer
from evaluand.task import FunctionTask, Task, as_task, may_give_several, prepare


def check_fit(
    spec: Sound,
    document: Document,
    dataset: Dataset | None,
    tasks: Mapping[str, Task[Any, Any]],
    views: Mapping[str, Pipeline],
    scorers: Mapping[str, Scorer],
    measures: Mapping[Place, Sequence[Measure]],
) -> None:
    """Notes files that are missing and, where there is a dataset, what does not fit it, before anything is called.

    A class of the user's own is left to the runner: to prepare it may load a model.
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
            if dataset is not None:
                check_gradable(scorer, dataset, prepared, spec.run.replications)
    for place, those in measures.items():
        for measure in those:
            with document.at(*place):
                check_answers(measure.metric, tasks, spec.run.replications)
            if dataset is not None and measure.scorer in scorers:
                with document.at(*place):
                    check_measures([measure], {measure.scorer: scorers[measure.scorer].readable}, dataset.roles)
                    for labels in _truths(dataset) if measure.criterion else ():
                        check_decided(measure, labels)


def _truths(dataset: Dataset) -> Iterator[pa.Array]:
    """The columns of what is expected."""
    expected = dataset.roles.expected
    for name in () if expected is None else [expected] if isinstance(expected, str) else expected.values():
        yield pa.chunked_array([batch.column(0) for batch in dataset.columns([name])]).combine_chunks()


def check_answers(metric: Metric, tasks: Mapping[str, Any], replications: int | None) -> None:
    """Refuses a metric that needs more answers to each example than a task will give.

    Raises:
        SpecError: names the tasks, and what to do.
    """
    given = {name: as_task(task) for name, task in tasks.items()}
    times = {name: replications or task.replications or 1 for name, task in given.items()}
    short = [name for name, n in times.items() if n < metric.fewest_answers and not may_give_several(given[name])]
    if short:
        k, n = metric.fewest_answers, times[short[0]]
        once = "once" if n == 1 else f"{n} times"
        raise SpecError(
            f"{metric.kind}: k={k} needs {k} answers to each example, but {', '.join(short)} is asked {once};"
            f" run with replications: {k} or more"
        )
