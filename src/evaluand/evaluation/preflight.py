"""Checks before a run that a scorer can grade at least one example, and one output that is known in advance.

One row that cannot be graded is reported in the evaluation. If no row can, a type or a column is wrong, and the run
would cost its calls without a single score.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, get_args, get_origin

import pyarrow.compute as pc

from evaluand.core.errors import DataError, EvaluandWarning, SpecError, warn
from evaluand.data.dataset import Dataset, Example
from evaluand.data.paths import suggest_paths
from evaluand.evaluation.scorer import Scorer, value_kind
from evaluand.evaluation.units import answered_examples, part_of, seen_of
from evaluand.run.runner import Run
from evaluand.run.task import Task, types_of
from evaluand.store.tables import SCORED

if TYPE_CHECKING:
    from evaluand.evaluation.evaluator import Evaluation


class NeverEqual(EvaluandWarning):
    """A scorer compared values of different kinds, so that every score is 0."""


def check_gradable(
    scorer: Scorer, dataset: Dataset, tasks: Mapping[str, Task[Any, Any]], replications: int | None = None
) -> None:
    """Checks examples, and the outputs that prepared tasks know or declare in advance, until one can be graded.

    Where a value inside the expected value would fit, the message lists its paths.

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
    reasons = _ungradable(scorer, dataset, lambda example: [lambda expected, target: scorer.check(expected)])
    unreadable = _unreadable(scorer, dataset)
    problems = [f"no example can be graded: {unreadable}"] if unreadable else []
    problems += [f"no example can be graded{target}: {why}" for target, why in reasons.items()]
    for name, task in tasks.items() if not problems else ():
        asked, kind = replications or task.replications or 1, _declared_kind(task)
        declared: list[Check] | None = None if kind is None else [partial(_check_declared, scorer, kind)]
        reasons = _ungradable(scorer, dataset, _checks(scorer, task, asked, _check_output, declared))
        problems += [f"no output of task {name!r} can be graded{target}: {why}" for target, why in reasons.items()]
        if not reasons:
            reasons = _ungradable(scorer, dataset, _checks(scorer, task, asked, _check_kind))
        for target, why in reasons.items() if not problems else ():
            warn(f"scorer {scorer.kind!r}: no output of task {name!r} can be right{target}: {why}", NeverEqual)
    if problems:
        raise SpecError("\n".join(problems))


def warn_of_declared(scorers: Mapping[str, Scorer], dataset: Dataset, tasks: Mapping[str, Task[Any, Any]]) -> None:
    """Warns, before anything is called, of tasks whose declared outputs can never be right."""
    for name, scorer in scorers.items():
        if type(scorer).check_kind is Scorer.check_kind:
            continue
        for task_name, task in tasks.items():
            if (kind := _declared_kind(task)) is None:
                continue
            checks: list[Check] = [partial(_check_declared, scorer, kind)]
            for target, why in _ungradable(scorer, dataset, lambda example: checks).items():  # noqa: B023 - used here
                warn(f"scorer {name!r}: no output of task {task_name!r} can be right{target}: {why}", NeverEqual)


Check = Callable[[Any, str | None], None]
"""(expected, target or None) → raises a DataError where an output cannot be graded."""


def _checks(
    scorer: Scorer,
    task: Task[Any, Any],
    replications: int,
    check: Callable[[Scorer, Any, Any, str | None], None],
    otherwise: list[Check] | None = None,
) -> Callable[[Example], list[Check] | None]:
    """A function from an example to checks, one for each output that is known in advance, else others."""

    def checks(example: Example) -> list[Check] | None:
        known = [task.known(example.index, example.id, replication) for replication in range(replications)]
        if None in known:
            return otherwise
        return [partial(check, scorer, output) for outputs in known for output in outputs or ()]

    return checks


def _check_output(scorer: Scorer, output: Any, expected: Any, target: str | None) -> None:
    scorer.check(expected, [part_of(output, target)])


def _check_kind(scorer: Scorer, output: Any, expected: Any, target: str | None) -> None:
    kind = value_kind(part_of(output, target))
    if isinstance(kind, str):
        scorer.check_kind(expected, kind)


def _check_declared(scorer: Scorer, kind: str, expected: Any, target: str | None) -> None:
    scorer.check_kind(expected, kind)


def _declared_kind(task: Task[Any, Any]) -> str | None:
    """The kind of the outputs of a task by its declared type; None if unknown."""
    declared = types_of(task)[1]
    parts = [part for part in get_args(declared) if part is not type(None)]
    if len(parts) == 1 and type(None) in get_args(declared):
        declared = parts[0]
    return None if task.items else _KIND_OF_TYPE.get(get_origin(declared) or declared)


_KIND_OF_TYPE: Final[Mapping[Any, str]] = {
    **dict.fromkeys((int, float), "number"),
    str: "text",
    bool: "boolean",
    list: "list",
    dict: "object",
}


def _ungradable(scorer: Scorer, dataset: Dataset, checks: Callable[[Example], list[Check] | None]) -> dict[str, str]:
    """Maps ` for target …` to the reason why no example can be graded for it, taken from the first example."""
    roles = dataset.roles.expected
    left: dict[str | None, tuple[str, Check] | None] = {None: None}
    if scorer.by_target and isinstance(roles, Mapping):
        left = dict.fromkeys(roles, None)
    for example in dataset if roles else ():
        wanted = checks(example)
        if wanted is None or not left:
            return {}
        for target in [*left]:
            expected = part_of(example.expected, target)
            if expected is None:
                continue
            failures = [(_failure(check, expected, target), check) for check in wanted]
            if any(why is None for why, _ in failures):
                del left[target]
            elif left[target] is None and failures:
                left[target] = failures[0]  # type: ignore[assignment]
    return {
        f" for target {target!r}" if target else "": found[0] + _suggest(dataset, target, found[1])
        for target, found in left.items()
        if found
    }


def _suggest(dataset: Dataset, target: str | None, check: Check) -> str:
    """The paths to values inside the expected values that pass a check, for the end of a message."""
    roles = dataset.roles.expected
    column = roles.get(target or "") if isinstance(roles, Mapping) else roles
    if column is None:
        return ""
    values = [part_of(example.expected, target) for example in islice(dataset, _MOST_READ)]
    paths = suggest_paths(column, values, lambda value: value is not None and _failure(check, value, target) is None)
    where = f"expected: {{{target}: …}}" if target else "expected"
    return f"; {where} can be a path to a part that fits: {', '.join(paths)}" if paths else ""


_MOST_READ: Final = 20
"""How many examples are searched for paths."""


def _failure(check: Callable[..., None], *arguments: Any) -> str | None:
    try:
        check(*arguments)
    except DataError as error:
        return str(error)
    return None


def _unreadable(scorer: Scorer, dataset: Dataset) -> str | None:
    """Why no example has the fields that the scorer reads, for the first one; None if one has them."""
    if type(scorer).check_example is Scorer.check_example:
        return None
    first = None
    for example in dataset:
        if (why := _failure(scorer.check_example, seen_of(example))) is None:
            return None
        first = first or why
    return first


def warn_of_unequal(evaluation: Evaluation, run: Run, scorers: Mapping[str, Scorer]) -> None:
    """Warns of scorers that scored every answer 0 because no answer has the kind of the expected value."""
    for name, scorer in scorers.items():
        if type(scorer).check_kind is Scorer.check_kind or scorer.by_target or not _are_all_zero(evaluation, name):
            continue
        rows = ((response.responses or (), example.expected) for response, example in answered_examples(run))
        graded = ((outputs, expected) for outputs, expected in rows if outputs and expected is not None)
        failures = [
            (_failure(_check_kind, scorer, output, expected, None), output)
            for outputs, expected in islice(graded, _MOST_COMPARED)
            for output in outputs
        ]
        if failures and all(why is not None for why, _ in failures):
            why, output = failures[0]
            paths = _suggest(run.dataset, None, partial(_check_kind, scorer, output))
            warn(f"scorer {name!r} gave every answer 0, and none could be right: {why}{paths}", NeverEqual)


_MOST_COMPARED: Final = 100


def _are_all_zero(evaluation: Evaluation, name: str) -> bool:
    found = False
    for batch in evaluation.batches(name, ["status", "value"]) if SCORED in evaluation.counts[name] else ():
        scored = batch.column("value").filter(pc.equal(batch.column("status"), SCORED))
        if len(scored) and (scored.null_count or pc.any(pc.not_equal(scored, 0)).as_py()):
            return False
        found = found or len(scored) > 0
    return found
