"""Gates on what judges say: refused unless the judge was measured, or the user allows it.

A judge whose agreement with people is unknown may pass anything. So a gate on its verdicts is not passed before the
judge has a card, unless unmeasured judges are allowed, which the result records.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from evaluand.comparison.gates import GateResult
    from evaluand.comparison.rule import Gate
    from evaluand.evaluation.judges.cards.standing import Standing

ALLOW: Final = "--allow-unmeasured-judges (in an experiment file: allow_unmeasured_judges: true)"


def check_judged(
    gate: Gate, subject: str, standings: Sequence[Standing], *, allowed: bool, check: Callable[[], GateResult]
) -> GateResult:
    """The result of a gate on what judges say.

    Args:
        subject: whom the gate is about.
        standings: of the judges whose verdicts it reads; none for other scorers.
        allowed: whether judges without a card of their present form are allowed.
        check: checks the gate.

    Returns:
        The result with the standing of each judge in its facts; a refusal fails the gate, and nothing is compared.
    """
    if not standings:
        return check()
    facts = [_describe(each, allowed) for each in standings]
    lacking = [each for each in standings if each.status != "measured"]
    if lacking and not allowed:
        from evaluand.comparison.gates import GateResult  # which imports this module

        why = "; ".join(f"judge {each.judge.name!r} is {each.finding}; {each.remedy}" for each in lacking)
        message = f"refused: {why}, or allow it with {ALLOW}"
        return GateResult(gate, subject, False, message, {"values": [], "judges": facts})
    result = check()
    words = "".join(f"; judge {each.judge.name!r} is {each.status}, which was allowed" for each in lacking)
    return replace(result, message=result.message + words, facts={**result.facts, "judges": facts})


def _describe(standing: Standing, allowed: bool) -> dict[str, Any]:
    return {
        "judge": standing.judge.name,
        "digest": standing.judge.digest,
        "status": standing.status,
        "card": None if standing.card is None else standing.card.id,
        "allowed": allowed and standing.status != "measured",
    }
