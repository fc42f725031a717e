"""Gates on what judges say: refused unless the judge was measured, or the user allows it.

A judge whose agreement with people is unknown, or no better than chance, may pass anything. So a gate on its verdicts
is not passed before the judge has a card that shows agreement, unless other judges are allowed, which the result
records.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from evaluand.comparison.gate_result import GateResult, bound_facts
from evaluand.comparison.rule import RELATIONS, Gate, check_threshold
from evaluand.core.errors import SpecError, plural
from evaluand.core.files.json import none_if_nan

if TYPE_CHECKING:
    from evaluand.evaluation.evaluator import Evaluation
    from evaluand.judges.cards.standing import CorrectedMean, Standing

_SHOWN: Final = 3
ALLOW: Final = "--allow-unmeasured-judges (in an experiment file: allow_unmeasured_judges: true)"


def check_judged(
    gate: Gate,
    subject: str,
    standings: Sequence[Standing],
    *,
    allowed: bool,
    check: Callable[[], GateResult],
    correct: Callable[[Standing], CorrectedMean | None] = lambda standing: None,
) -> GateResult:
    """The result of a gate on what judges say.

    Args:
        subject: whom the gate is about.
        standings: of the judges whose verdicts it reads; none for other scorers.
        allowed: whether judges are allowed that no card of their present form shows to agree with people.
        check: checks the gate.
        correct: corrects the mean that the gate is about for the errors of a measured judge.

    Returns:
        The result with the standing of each judge in its message and its facts; a refusal fails the gate, and nothing
        is compared.
    """
    if not standings:
        return check()
    facts = [_describe(each, allowed) for each in standings]
    lacking = [each for each in standings if each.status != "measured"]
    if lacking and not allowed:
        why = "; ".join(f"judge {each.judge.name!r} is {each.finding}; {each.remedy}" for each in lacking[:_SHOWN])
        why += f"; and {plural(len(lacking) - _SHOWN, 'more judge')}" if len(lacking) > _SHOWN else ""
        message = f"refused: {why}, or allow it with {ALLOW}"
        return GateResult(gate, subject, False, message, {"values": [], "judges": facts}, is_decided=False)
    result = check()
    words = [result.message]
    for standing, own in zip(standings, facts, strict=True):
        if standing.status != "measured":
            words.append(f"judge {standing.judge.name!r} is {standing.finding}, which was allowed")
            continue
        words.append(f"judge {standing.judge.name!r}: {standing.finding}")
        if (mean := correct(standing)) is not None and mean.corrected.value == mean.corrected.value:
            words.append(_correction_text(result, mean))
            own["corrected"] = {name: getattr(mean.corrected, name) for name in ("value", "low", "high")}
    return replace(result, message="; ".join(words), facts={**result.facts, "judges": facts})


def correct_value(gate: Gate, evaluation: Evaluation, scorer: str, standing: Standing) -> CorrectedMean | None:
    """The mean of a judge that a gate compares with a threshold, corrected for the errors of the judge.

    Returns:
        None where the gate is about something else, such as a group or a difference, or nothing can be corrected.
    """
    from evaluand.judges.cards.standing import correct_mean  # on use: gates on other scorers need it not

    is_of_all = gate.baseline is None and gate.disparity is None and not gate.where
    if standing.card is None or gate.metric not in _MEANS or not is_of_all:
        return None
    return correct_mean(evaluation, scorer, standing.card)


_MEANS: Final = ("accuracy", "mean")

CORRECTED_MEAN: Final = "corrected_mean"
"""What gates call the share of right answers, estimated from a judge's verdicts and the errors on its card."""


def check_corrected_rule(gate: Gate) -> None:
    """Refuses a gate on a corrected mean that is not a threshold of all rows.

    Raises:
        SpecError: it is about a group, a disparity or a difference.
    """
    if gate.baseline is not None or gate.disparity is not None or gate.where or gate.parameters:
        raise SpecError(
            f"gate {gate.text!r}: {CORRECTED_MEAN} is of all rows of a judge and has no parameters, groups or"
            f" differences; write `{CORRECTED_MEAN}(JUDGE) >= 0.8 at 95%`"
        )
    check_threshold(gate, CORRECTED_MEAN, 0.0, 1.0)


def check_corrected(
    gate: Gate, subject: str, evaluation: Evaluation, scorer: str, standings: Sequence[Standing], *, allowed: bool
) -> GateResult:
    """The result of a gate on a corrected mean; without a card that shows right and wrong it fails.

    Args:
        subject: whom the gate is about.
        standings: of the judge, in each form; empty if the scorer is no judge.
        allowed: as in `check_judged`.

    Raises:
        SpecError: the scorer is no judge, or the rule is about something else.
    """
    from evaluand.judges.cards.standing import correct_mean  # on use, as above

    check_corrected_rule(gate)
    if not standings:
        raise SpecError(f"gate {gate.text!r}: {scorer!r} is no judge, so its mean needs no correction")

    def check() -> GateResult:
        card = standings[0].card if standings[0].status in ("measured", "weak") else None
        mean = None if card is None else correct_mean(evaluation, scorer, card)
        if mean is None:
            why = (
                "the judge, as it is now, has no card"
                if card is None
                else "its card does not say how often it errs: no right or wrong"
            )
            return GateResult(gate, subject, False, f"undefined: {why}", {"values": []}, is_decided=False)
        found = mean.corrected if gate.level is None else mean.at(2 * gate.level - 1)
        end = None if gate.level is None else "low" if gate.relation in (">=", ">") else "high"
        number = found.value if end is None else getattr(found, end)
        ends = {name: none_if_nan(getattr(found, name)) for name in ("value", "low", "high")}
        facts = {"values": [{"target": None} | ends | bound_facts(end, number) | {"n": found.n}]}
        if number != number:
            return GateResult(gate, subject, False, f"undefined: {found.reason}", facts, is_decided=False)
        bound = (
            "" if end is None else f"{'lower' if end == 'low' else 'upper'} {100 * (gate.level or 0):g}% bound about "
        )
        message = f"{bound}{number:.4g}; {mean.raw.value:.4g} judged right{mean.overlap}"
        return GateResult(gate, subject, RELATIONS[gate.relation](number, gate.number), message, facts)

    return check_judged(gate, subject, standings, allowed=allowed, check=check)


def _correction_text(result: GateResult, mean: CorrectedMean) -> str:
    """A corrected mean, and whether a rule that is fulfilled would fail for it."""
    gate, corrected = result.gate, mean.corrected
    text = f"corrected for its errors {corrected.value:.3g} [{corrected.low:.3g}, {corrected.high:.3g}]{mean.overlap}"
    if not mean.is_mean:  # the share of right answers is then another number than the gate compares
        return f"{mean.raw.value:.4g} judged right, {text}"
    end = "value" if gate.level is None else "low" if gate.relation in (">=", ">") else "high"
    bound = getattr(corrected if gate.level is None else mean.at(2 * gate.level - 1), end)
    if not result.passed or bound != bound or RELATIONS[gate.relation](bound, gate.number):
        return text
    side = "" if gate.level is None else f" with its {100 * gate.level:g}% bound {bound:.3g}"
    return f"{text}, which would fail this rule{side}"


def _describe(standing: Standing, allowed: bool) -> dict[str, Any]:
    card = standing.card
    return {
        "judge": standing.judge.name,
        "digest": standing.judge.digest,
        "status": standing.status,
        "card": None if card is None else card.id,
        "finding": standing.finding,
        "allowed": allowed and standing.status != "measured",
    }
