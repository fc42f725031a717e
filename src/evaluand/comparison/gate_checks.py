"""What gates need of a metric: numbers that its values can have, attributes, a bound, a difference."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from evaluand.comparison.disparity_differences import COMPARED
from evaluand.comparison.pairing import why_unpairable
from evaluand.comparison.rule import EQUAL, RELATIONS, Gate, check_threshold, quote_word
from evaluand.core.errors import SpecError, nearest
from evaluand.metrics.base.metric import Metric


def check_attributes(gate: Gate, attributes: Sequence[str]) -> None:
    """Refuses attributes that the dataset does not have."""
    unknown = [name for name in (*dict(gate.where), *gate.by, *gate.given) if name not in attributes]
    if unknown:
        raise SpecError(f"gate {gate.text!r}: {unknown[0]!r} is not an attribute{nearest(unknown[0], attributes)}")


def check_decidable(gate: Gate, scorer: str, metric: Metric) -> None:
    """Refuses a difference or a bound that the metric never has."""
    if gate.baseline is None:
        if gate.level is not None:
            at_level(gate, metric)
        return
    if gate.relation in RELATIONS:
        return
    if gate.disparity is not None:
        if gate.disparity not in COMPARED:
            raise SpecError(
                f"gate {gate.text!r}: a disparity of kind {gate.disparity!r} has no difference with an interval; take"
                f" {' or '.join(COMPARED)}"
            )
        if gate.reference or gate.given:
            raise SpecError(
                f"gate {gate.text!r}: against a baseline all groups count; leave out `from …` and `given …`"
            )
    if why := why_unpairable(metric):
        point = f"{gate.metric} {'<=' if metric.direction == 'lower' else '>='} {quote_word(gate.baseline)}"
        raise SpecError(f"gate {gate.text!r}: {why}; or compare the values themselves: `{point}`")
    if metric.direction is None and gate.relation != EQUAL and gate.disparity is None:
        raise SpecError(
            f"gate {gate.text!r}: {metric.kind} of {scorer!r} has no direction; declare under metrics of the experiment"
            f" whether higher or lower is better, and run it: {{kind: {metric.kind}, scorer: {scorer},"
            f" direction: lower}}; or import its results again with --direction {scorer}=lower"
        )


def check_number(gate: Gate, metric: Metric) -> None:
    """Refuses a threshold that no value can have, and a margin by which no two values can differ."""
    low, high = metric.range
    if gate.baseline is None:
        what = gate.metric if gate.disparity is None else f"the {gate.disparity} of {gate.metric}"
        if gate.disparity is not None and gate.disparity not in ("min", "max"):
            low, high = (0.0, 1.0) if gate.disparity.startswith("ratio") else (0.0, high - low)
        check_threshold(gate, what, low, high)
        return
    number = abs(gate.number)
    if number > high - low:
        hint = f"; did you mean {number / 100:g}?" if (low, high) == (0, 1) and number <= 100 else ""
        raise SpecError(
            f"gate {gate.text!r}: values of {gate.metric} differ by at most {high - low:g}, never by {number:g}{hint}"
        )


def at_level(gate: Gate, metric: Metric, share: float = 0.5) -> Metric:
    """The metric with an interval whose ends are one-sided bounds of the gate's level.

    Args:
        share: the fraction of an interval's errors that fall on this end.
    """
    if gate.level is None or not hasattr(metric, "confidence"):
        raise SpecError(f"gate {gate.text!r}: {metric.kind} has no interval; leave out `at …`")
    confidence = 2 * gate.level - 1 if share == 0.5 else 1 - (1 - gate.level) / share
    return dataclasses.replace(metric, confidence=confidence)  # type: ignore[call-arg]
