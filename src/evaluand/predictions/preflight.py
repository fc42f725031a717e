"""Finds steps that do not fit together, before anything is called."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from evaluand.aggregation.aggregator import Measure
from evaluand.core.errors import SpecError, nearest
from evaluand.data.dataset import Dataset
from evaluand.evaluation.scorer import Scorer
from evaluand.metrics.base.labels import contents
from evaluand.metrics.base.metric import Metric
from evaluand.predictions.tournament import Tournament
from evaluand.run.task import as_task, may_give_several
from evaluand.tradeoff.confidences import positive_label
from evaluand.tradeoff.trade import Trade


def check_tournaments(tournaments: Any, tasks: Sequence[str]) -> None:
    """Refuses a value that is not a list of tournaments, and systems that cannot be paired.

    Raises:
        SpecError: says what is wrong.
    """
    if not isinstance(tournaments, list | tuple) or not all(isinstance(one, Tournament) for one in tournaments):
        raise SpecError("matches must be a list of Tournament(judge, …)")
    for place, one in enumerate(tournaments):
        one.systems(tasks)
        if one.name in [other.name for other in tournaments[:place]]:
            raise SpecError(f"two tournaments are called {one.name!r}; give each its own name")


def check_trade(
    trade: Trade,
    tasks: Sequence[str],
    scorers: Mapping[str, Scorer],
    declared: Sequence[Measure],
    dataset: Dataset | None,
) -> None:
    """Refuses a trade-off with unknown names, or with objectives that need more than the scorers provide.

    Raises:
        SpecError: lists every fault.
    """
    faults = [
        f"no task is called {task!r}{nearest(task, tasks)}; there are {', '.join(tasks)}"
        for task in trade.tasks
        if task not in tasks
    ]
    attributes = () if dataset is None else dataset.roles.attributes
    faults += [
        f"{name!r} is not an attribute of the dataset{nearest(name, attributes)}; declare it under attributes"
        for name in trade.by
        if dataset is not None and name not in attributes
    ]
    tables = {name: scorer.readable for name, scorer in scorers.items()}
    faults += trade.misfits(tables, declared)
    for truths in expected_columns(dataset) if dataset is not None and trade.thresholds is not None else ():
        try:
            if contents(truths.type) in ("bools", "integers", "text"):
                positive_label(sorted(pc.unique(truths.drop_null()).to_pylist()), trade.label)
        except SpecError as error:
            faults.append(str(error))
    if faults:
        raise SpecError("\n".join(dict.fromkeys(faults)))


def check_answers(metric: Metric, tasks: Mapping[str, Any], replications: int | None) -> None:
    """Refuses a metric that needs more answers to each example than a task returns.

    Raises:
        SpecError: names the tasks and the remedy.
    """
    prepared = {name: as_task(task) for name, task in tasks.items()}
    own = {name: task.replications if task.stored is not None else None for name, task in prepared.items()}
    times = {name: own[name] or replications or task.replications or 1 for name, task in prepared.items()}
    short = [name for name, n in times.items() if n < metric.fewest_answers and not may_give_several(prepared[name])]
    if short:
        k, n = metric.fewest_answers, times[short[0]]
        once = "once" if n == 1 else f"{n} times"
        raise SpecError(
            f"{metric.kind}: k={k} needs {k} answers to each example, but {', '.join(short)} is called {once};"
            f" run with replications: {k} or more"
        )


def expected_columns(dataset: Dataset) -> Iterator[pa.Array]:
    """The columns of expected values."""
    expected = dataset.roles.expected
    for name in () if expected is None else [expected] if isinstance(expected, str) else expected.values():
        yield pa.chunked_array([batch.column(0) for batch in dataset.columns([name])]).combine_chunks()
