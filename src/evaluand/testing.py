"""Gates in a test suite: `assert_gate(evaluation, "accuracy >= 0.9")`."""

from typing import Any

from evaluand.comparison.checking import GateResult
from evaluand.comparison.gates import check_gates
from evaluand.comparison.rule import BASELINE, Gate
from evaluand.core.errors import SpecError
from evaluand.core.labels import short_labels
from evaluand.evaluation.evaluator import Evaluation
from evaluand.experiment.gates import evaluate_match_gates
from evaluand.matches.ratings.rating import Ratings
from evaluand.matches.ratings.rating_gates import check_rating_gates
from evaluand.metrics.base.metric import Missing
from evaluand.predictions.result import SystemScores
from evaluand.predictions.tournament import MatchResults
from evaluand.report.text import safe
from evaluand.store.store import MemoryStore


def assert_gate(
    result: Any,
    gate: str,
    *,
    baseline: Any = None,
    scorer: str | None = None,
    missing: Missing | None = None,
    allow_unmeasured_judges: bool = False,
) -> list[GateResult]:
    """Fails the test unless a gate holds.

    Args:
        result: an evaluation, what `evaluate` returns, or an experiment's result for one task or for all tasks. Of
            several systems the first is `baseline`, and the others must pass. Or `Ratings`, whose rules name the
            systems: `win_rate(mine, base) >= 0.55 at 95%`; or an experiment's result with matches, whose ratings such a
            rule is about.
        gate: the rule, see `evaluand.comparison.gates`.
        baseline: the evaluation, or an experiment's result for one task, that the rule calls `baseline`.
        scorer: the scorer to use if the rule names none.
        missing: what happens to rows without a score, in place of the default of gates.
        allow_unmeasured_judges: whether verdicts of judges without a card count; otherwise such gates fail.

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
    allowed = allow_unmeasured_judges
    if isinstance(result, Ratings):
        _refuse_options(baseline, scorer, missing)
        checked = check_rating_gates([gate], result, allow_unmeasured_judges=allowed)
    elif isinstance(result, MatchResults) and result.matches and (rule := Gate.parse(gate)).is_of_matches:
        _refuse_options(baseline, scorer, missing)
        checked = evaluate_match_gates([rule], result.ratings, result.unrated, allow_unmeasured_judges=allowed)
    else:
        evaluations, options = _read_subjects(result)
        first = next(iter(evaluations)) if len(evaluations) > 1 else None
        if baseline is not None:
            [other], first = _evaluations(baseline), BASELINE
            evaluations = {label: each for label, each in evaluations.items() if each != other} | {BASELINE: other}
        checked = check_gates(
            [gate], evaluations, first, scorer=scorer, missing=missing, allow_unmeasured_judges=allowed, **options
        )
    if not all(each.passed for each in checked):
        results = ((each.result if each.passed else each.result.upper(), each) for each in checked)
        lines = (f"  {result}  {safe(each.subject)}: {safe(each.message)}" for result, each in results)
        raise AssertionError("\n".join([f"{safe(gate)} does not hold", *lines]))
    return checked


def _refuse_options(*options: Any) -> None:
    if any(option is not None for option in options):
        raise SpecError("gates of ratings name the systems themselves; leave out baseline, scorer and missing")


def _read_subjects(result: Any) -> tuple[dict[str, Evaluation], dict[str, Any]]:
    """What must pass a gate by label, and the metrics that the gate may name, as options of `check_gates`."""
    if isinstance(result, SystemScores):
        results, proposals = result.save(MemoryStore(), "result"), result.proposals  # to be paired by content
        options: dict[str, Any] = {"measures": () if results.aggregation is None else results.aggregation.measures}
        return results.evaluations, options | ({} if proposals is None else {"metric_by_name": proposals.gate_metric})
    found = _evaluations(result)
    labels = short_labels([each.name for each in found], [each.id for each in found])
    return dict(zip(labels, found, strict=True)), {}


def _evaluations(result: Any) -> list[Evaluation]:
    if isinstance(result, SystemScores):
        return [*_read_subjects(result)[0].values()]
    if isinstance(result, Evaluation):
        return [result]
    if isinstance(evaluation := getattr(result, "evaluation", None), Evaluation):
        return [evaluation]
    if getattr(result, "evaluation", result) is None:
        raise SpecError("nothing was graded, so a gate about a metric cannot be checked; add scorers and metrics")
    if tasks := getattr(result, "tasks", None):
        return [evaluation for task in tasks for evaluation in _evaluations(task)]
    raise SpecError(
        "give an evaluation, what evaluate() returns, the results of an experiment, or ratings, not a"
        f" {type(result).__name__}"
    )
