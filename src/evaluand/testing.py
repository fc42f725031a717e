"""Gates in a test suite: `assert_gate(evaluation, "accuracy >= 0.9")`."""

from typing import Any

from evaluand.comparison.comparing import short_labels
from evaluand.comparison.gates import GateResult, check_gates
from evaluand.core.errors import SpecError
from evaluand.evaluation.evaluator import Evaluation
from evaluand.metrics.base.metric import Missing
from evaluand.report.text import safe


def assert_gate(
    result: Any,
    gate: str,
    *,
    baseline: Any = None,
    scorer: str | None = None,
    missing: Missing | None = None,
) -> list[GateResult]:
    """Fails the test unless a gate holds.

    Args:
        result: an evaluation, or an experiment's result for one task or for all tasks, each of which must then pass.
        gate: the rule, see `evaluand.comparison.gates`.
        baseline: the evaluation, or an experiment's result for one task, that the rule calls `baseline`.
        scorer: the scorer to use if the rule names none.
        missing: what happens to rows without a score, in place of the default of gates.

    Returns:
        The results of the gate, with the numbers that decided it.

    Raises:
        AssertionError: the gate does not hold; the message has the numbers.
        SpecError: the text is not a gate, or names something that does not exist.

    Example:
        >>> from evaluand.data.dataset import Dataset
        >>> from evaluand.evaluation.evaluator import Evaluator
        >>> from evaluand.run.runner import Runner
        >>> data = Dataset.from_rows([{"input": "a", "expected": "A"}, {"input": "b", "expected": "C"}])
        >>> run = Runner().run(str.upper, data)
        >>> evaluation = Evaluator().evaluate(run, {"same": lambda output, expected: output == expected}, name="bot")
        >>> assert_gate(evaluation, "accuracy >= 0.9")
        Traceback (most recent call last):
        AssertionError: accuracy >= 0.9 does not hold
          FAILED  bot: 0.5; 2 rows: 2 scored
    """
    evaluations = _evaluations(result)
    labels = short_labels([e.name for e in evaluations], [e.id for e in evaluations])
    baselines = {} if baseline is None else dict(zip(["baseline"], _evaluations(baseline), strict=True))
    checked = check_gates(
        [gate], dict(zip(labels, evaluations, strict=True)), baselines, scorer=scorer, missing=missing
    )
    if not all(one.passed for one in checked):
        lines = (
            f"  {'passed' if one.passed else 'FAILED'}  {safe(one.subject)}: {safe(one.message)}" for one in checked
        )
        raise AssertionError("\n".join([f"{safe(gate)} does not hold", *lines]))
    return checked


def _evaluations(result: Any) -> list[Evaluation]:
    if isinstance(result, Evaluation):
        return [result]
    if isinstance(evaluation := getattr(result, "evaluation", None), Evaluation):
        return [evaluation]
    if tasks := getattr(result, "tasks", None):
        return [evaluation for task in tasks for evaluation in _evaluations(task)]
    raise SpecError(f"give an evaluation or the results of an experiment, not a {type(result).__name__}")
