"""Checks before a run that a scorer can grade at least one example, and one output that is known in advance.

One row that cannot be graded is reported in the evaluation. If no row can, a type or a column is wrong, and the run
would cost its calls without a single score.
"""

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
    """Checks examples, and the outputs that prepared tasks know in advance, until one can be graded.

    Raises:
        SpecError: none can be graded; one line for each target and task, with the first reason.

    Example:
        >>> from evaluand.evaluation.scorers.prediction import Prediction
        >>> data = Dataset.from_rows([{"input": 1, "expected": "cat"}])
        >>> check_gradable(Prediction(), data, {})
        >>> check_gradable(Prediction(type="boolean"), data, {})
        Traceback (most recent call last):
        evaluand.SpecError: no example can be graded: the truth is the text 'cat', not true or ...
    """
    reasons = _ungradable(scorer, dataset, lambda example: [()])
    unreadable = _unreadable(scorer, dataset)
    problems = [f"no example can be graded: {unreadable}"] if unreadable else []
    problems += [f"no example can be graded{target}: {why}" for target, why in reasons.items()]
    for name, task in tasks.items() if not problems else ():
        reasons = _ungradable(scorer, dataset, _known_outputs(task, replications or task.replications or 1))
        problems += [f"no output of task {name!r} can be graded{target}: {why}" for target, why in reasons.items()]
    if problems:
        raise SpecError("\n".join(problems))


def _known_outputs(task: Task[Any, Any], replications: int) -> Callable[[Example], list[Sequence[Any]] | None]:
    """A function from an example to its outputs, one list for each; None if the task does not know them."""

    def outputs(example: Example) -> list[Sequence[Any]] | None:
        known = [task.known(example.index, example.id, replication) for replication in range(replications)]
        return None if None in known else [[output] for found in known for output in found or ()]

    return outputs


def _ungradable(
    scorer: Scorer, dataset: Dataset, outputs: Callable[[Example], list[Sequence[Any]] | None]
) -> dict[str, str]:
    """Maps ` for target …` to the reason why no example can be graded for it, taken from the first example."""
    roles = dataset.roles.expected
    left: dict[str | None, str] = {None: ""}
    if scorer.by_target and isinstance(roles, Mapping):
        left = dict.fromkeys(roles, "")
    for example in dataset if roles else ():
        known = outputs(example)
        if known is None or not left:
            return {}
        for target in [*left]:
            expected = part_of(example.expected, target)
            if expected is None:
                continue
            failures = [
                _check_failure(scorer, expected, [part_of(value, target) for value in output]) for output in known
            ]
            if None in failures:
                del left[target]
            else:
                left[target] = left[target] or next(filter(None, failures), "")
    return {f" for target {target!r}" if target else "": why for target, why in left.items() if why}


def _unreadable(scorer: Scorer, dataset: Dataset) -> str | None:
    """Why no example has the fields that the scorer reads, for the first one; None if one has them."""
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


def _check_failure(scorer: Scorer, expected: Any, outputs: Sequence[Any]) -> str | None:
    try:
        scorer.check(expected, outputs)
    except DataError as error:
        return str(error)
    return None
