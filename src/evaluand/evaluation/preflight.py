"""Whether a scorer can grade anything of a dataset, and of outputs that are known before anything is called.

One row that cannot be graded is a row of the evaluation which says so. Where none can, a type or a column is named
wrongly, and a run would come to nothing whatever it costs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from evaluand.core.errors import DataError, SpecError
from evaluand.data.dataset import Dataset, Example
from evaluand.evaluation.grading import part_of, seen_of
from evaluand.evaluation.scorer import Scorer
from evaluand.run.task import Task


def check_gradable(
    scorer: Scorer, dataset: Dataset, tasks: Mapping[str, Task[Any, Any]], replications: int | None = None
) -> None:
    """Looks at examples, and at the outputs of prepared tasks that know them, until one can be graded.

    Raises:
        SpecError: none can; a line for each target and task, with what is wrong with the first.

    Example:
        >>> from evaluand.evaluation.scorers.prediction import Prediction
        >>> data = Dataset.from_rows([{"input": 1, "expected": "cat"}])
        >>> check_gradable(Prediction(), data, {})
        >>> check_gradable(Prediction(type="boolean"), data, {})
        Traceback (most recent call last):
        evaluand.SpecError: no example can be graded: the truth is the text 'cat', not true or ...
    """
    faults = _refused(scorer, dataset, lambda example: [()])
    unread = _unread(scorer, dataset)
    told = [f"no example can be graded: {unread}"] if unread else []
    told += [f"no example can be graded{target}: {why}" for target, why in faults.items()]
    for name, task in tasks.items() if not told else ():
        faults = _refused(scorer, dataset, _known(task, replications or task.replications or 1))
        told += [f"no output of task {name!r} can be graded{target}: {why}" for target, why in faults.items()]
    if told:
        raise SpecError("\n".join(told))


def _known(task: Task[Any, Any], replications: int) -> Callable[[Example], list[Sequence[Any]] | None]:
    """What gives the outputs for an example, each on its own; None where the task does not know them."""

    def outputs(example: Example) -> list[Sequence[Any]] | None:
        known = [task.known(example.index, example.id, replication) for replication in range(replications)]
        return None if None in known else [[output] for found in known for output in found or ()]

    return outputs


def _refused(
    scorer: Scorer, dataset: Dataset, outputs: Callable[[Example], list[Sequence[Any]] | None]
) -> dict[str, str]:
    """` for target …` → why nothing can be graded for it, as it is with the first example."""
    roles = dataset.roles.expected
    left: dict[str | None, str] = {None: ""}
    if scorer.by_target and isinstance(roles, Mapping):
        left = dict.fromkeys(roles, "")
    for example in dataset if roles else ():
        given = outputs(example)
        if given is None or not left:
            return {}
        for target in [*left]:
            expected = part_of(example.expected, target)
            if expected is None:
                continue
            reasons = [_why_not(scorer, expected, [part_of(value, target) for value in output]) for output in given]
            if None in reasons:
                del left[target]
            else:
                left[target] = left[target] or next(filter(None, reasons), "")
    return {f" for target {target!r}" if target else "": why for target, why in left.items() if why}


def _unread(scorer: Scorer, dataset: Dataset) -> str | None:
    """Why no example has what is to be read of it, as it is with the first."""
    if type(scorer).check_example is Scorer.check_example:
        return None
    first = None
    for example in dataset:
        try:
            scorer.check_example(seen_of(example))
        except DataError as error:
            first = first or str(error)
        else:
            return None
    return first


def _why_not(scorer: Scorer, expected: Any, outputs: Sequence[Any]) -> str | None:
    try:
        scorer.check(expected, outputs)
    except DataError as error:
        return str(error)
    return None
