"""What gates of ratings can never check: thresholds that no rating has, and numbers that a method does not have."""

from __future__ import annotations

from typing import Final

from evaluand.comparison.rule import NOT_WORSE, RELATIONS, WIN_RATE, Gate, check_threshold, quote_word
from evaluand.core.errors import SpecError
from evaluand.matches.ratings.method import RatingMethod


def check_limits(gate: Gate, method: RatingMethod) -> None:
    """Refuses a gate that holds always or never, whatever the matches are.

    Args:
        method: how the systems are rated.

    Raises:
        SpecError: the threshold is no share, two ratings never differ by the margin, or the method has no such number.

    Example:
        >>> check_limits(Gate.parse("mine wins against base >= 55"), RatingMethod())
        Traceback (most recent call last):
        evaluand.SpecError: gate '...': a share of wins lies between 0 and 1, never at 55; write 55 % or 0.55
    """
    if gate.metric == WIN_RATE and method.kind == "equal_length":
        _refuse_raw(gate)
    if gate.metric != "rating":
        check_threshold(gate, _NAMES[gate.metric], 0.0, 1.0)
    elif gate.baseline is not None:
        _check_margin(gate, method)
    elif method.kind == "bradley_terry":
        check_threshold(gate, "a Bradley–Terry rating, in points,", -float("inf"), float("inf"))
    else:
        name = "a win rate at equal length" if method.kind == "equal_length" else "a share of wins"
        check_threshold(gate, name, 0.0, 1.0)


_NAMES: Final = {
    WIN_RATE: "a share of wins",
    "position_bias": "position_bias, a share of judgements,",
    "inconsistency": "inconsistency, a share of pairs,",
}


def _refuse_raw(gate: Gate) -> None:
    """Refuses raw win rates of ratings at equal length: the reader of the rule would take them for those."""
    name = f"rating({'SYSTEM' if gate.scorer is None else quote_word(gate.scorer)})"
    if gate.baseline is not None:
        threshold = f"better than {quote_word(gate.baseline)}"
    else:
        threshold = f"{gate.relation} {gate.number:g}" + ("" if gate.level is None else f" at {100 * gate.level:g}%")
    raise SpecError(
        f"gate {gate.text!r}: {name} is the win rate at equal length; write `{name} {threshold}`, or"
        " rate by method win_rate to check the raw one"
    )


def _check_margin(gate: Gate, method: RatingMethod) -> None:
    is_compared = gate.relation in RELATIONS or gate.relation == NOT_WORSE
    if method.kind == "bradley_terry" or not is_compared or abs(gate.number) <= 1:
        return
    hint = f"; did you mean {abs(gate.number) / 100:g}?" if abs(gate.number) <= 100 else ""
    raise SpecError(
        f"gate {gate.text!r}: ratings by {method.kind} differ by at most 1, never by {abs(gate.number):g}{hint}"
    )
