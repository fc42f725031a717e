"""What the rest of some work will cost, by the cost of the rows that are answered: how large a budget has to be."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import Final

from evaluand.engine.budget import Budget
from evaluand.evaluation.kind import EVALUATIONS
from evaluand.models.preflight import find_models
from evaluand.predictions.steps import Steps
from evaluand.run.kind import RUNS
from evaluand.run.responses import LANE
from evaluand.store.store import Manifest, Store

_MARGIN: Final = 1.1  # rows cost more or less
_CALLS: Final = ""


@dataclass(frozen=True)
class _Step:
    """Calls of a task, or the grades of a scorer; `spent` is None if they have not begun."""

    name: str
    asks: bool
    done: int
    total: int
    spent: float | None

    @property
    def rate(self) -> float | None:
        """The cost of a row; None if none is answered."""
        return self.spent / self.done if self.done and self.spent is not None else None


def sufficient_budget(
    budget: Budget, experiment: Steps, store: Store, stopped: Manifest, only: str | None
) -> Budget | None:
    """A budget that will do for an experiment, rounded up; None if nobody knows what its open rows cost.

    What has not begun is taken to cost as much by row as the dearest of its kind so far.

    Args:
        stopped: the manifest of the run or evaluation that the budget has stopped.
        only: the one task to run.
    """
    if only is None and any([*find_models(one.judge)] for one in experiment.matches):
        return None  # how many matches there are depends on the answers
    steps = [*_list_steps(budget, experiment, store, stopped, only)]
    rows = max((step.total for step in steps), default=0)
    dearest: dict[str, float] = {}
    for step in steps:
        if step.rate is not None:
            dearest[step.name] = max(step.rate, dearest.get(step.name, 0.0))
    rest = 0.0
    for step in steps:
        rate = step.rate if step.rate is not None and step.name == _CALLS else dearest.get(step.name)
        if rate is None and step.asks:
            return None
        rest += (rate or 0.0) * ((step.total or rows) - step.done)
    return Budget(_round_up(budget.spent + _MARGIN * rest), budget.currency) if rest else None


def _list_steps(
    budget: Budget, experiment: Steps, store: Store, stopped: Manifest, only: str | None
) -> Iterator[_Step]:
    has_begun = True  # the tasks up to the one that was stopped
    for task in experiment.tasks if only is None else [only]:
        name = experiment.run_name(task)
        ids = {ref.kind: ref.id for ref in store.named(name)} if has_begun else {}
        run, evaluation = ids.get(RUNS), ids.get(EVALUATIONS)
        if stopped["kind"] == RUNS and stopped["id"] == run:
            evaluation = None
        asks, total = bool([*find_models(experiment.tasks[task])]), 0
        if run is None:
            yield _Step(_CALLS, asks, 0, 0, None)
        else:
            spec = store.manifest(RUNS, run)["spec"]
            total = spec["examples"] * spec["replications"]
            yield _Step(
                _CALLS, asks, _count_done(store, RUNS, run, LANE, total), total, budget.spent_on(f"{RUNS}/{run}")
            )
        for number, (scorer, grades) in enumerate(sorted(experiment.scorers_of(task).items())):
            asks = bool([*find_models(grades)])
            if evaluation is None:
                yield _Step(scorer, asks, 0, total, None)
                continue
            done = _count_done(store, EVALUATIONS, evaluation, f"scorer{number}", total)
            yield _Step(scorer, asks, done, total, budget.spent_on(f"{EVALUATIONS}/{evaluation}/{scorer}"))
        has_begun = has_begun and stopped["id"] not in (run, evaluation)


def _count_done(store: Store, kind: str, id: str, lane: str, total: int) -> int:
    if store.is_sealed(kind, id):
        return total
    with closing(store.lane(kind, id, lane, total)) as log:
        log.refresh()
        return log.n_done


def _round_up(amount: float) -> float:
    """An amount with two digits, not below it.

    Example:
        >>> _round_up(0.06062), _round_up(1.55), _round_up(123.0)
        (0.061, 1.6, 130.0)
    """
    step = math.floor(math.log10(amount)) - 1
    return float(round(math.ceil(round(amount / 10**step, 6)) * 10**step, -step))
