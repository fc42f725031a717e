"""`plan`: how many examples a question needs before it is asked.

The power is that of the very bound or test that gates and `compare` use. For shares it is exact: the sum over all
outcomes that pass. For other values the clusters of a pilot are drawn again, with the difference that is assumed.

A pilot does not say how large the difference is. So the first number of its plan has the power on average over what it
leaves open: differences and spreads that are equally likely given the pilot, by a uniform prior for pairs of 0 and 1,
and by Student's distribution for other values.
Source: A. O'Hagan, J. Stevens & M. Campbell, "Assurance in clinical trial design" (Pharmaceutical Statistics 4, 2005).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache, partial
from statistics import NormalDist
from typing import Any, Final

import numpy as np

from evaluand.comparison.difference import Sample
from evaluand.comparison.drawn_power import DRAWS, DrawnPower
from evaluand.comparison.gate_metrics import check_ranges, find_ranges
from evaluand.comparison.measures import declared_measures, default_metric, undeclared_metric
from evaluand.comparison.pairing import PairedRows, pair_rows
from evaluand.comparison.power import (
    MOST_ROWS,
    Power,
    binomial,
    fewest_drawn,
    fewest_rows,
    first_that,
    power_of_mcnemar,
    power_of_pairs,
)
from evaluand.comparison.rule import EQUAL, LEVEL, RELATIONS, Gate
from evaluand.comparison.variance import VarianceSplit, align, split_variance
from evaluand.core.errors import DataError, SpecError
from evaluand.evaluation.evaluator import Evaluation
from evaluand.metrics.base.metric import Metric
from evaluand.metrics.stats.intervals import clopper_pearson, is_share_above, normal_quantile

Pair = tuple[Evaluation, Evaluation]
"""The evaluations of the baseline and of the new system."""


@dataclass(frozen=True)
class Need:
    """What is needed under one assumption.

    Attributes:
        assumption: in words.
        difference: the assumed true difference from the baseline; of a value without one, the value itself.
        examples: the fewest, or clusters, with the power; None if there are none, or more than a million are needed.
        power: at that number.
        table: (examples, power) at some numbers.
        reason: why there is no such number.
    """

    assumption: str
    difference: float
    examples: int | None
    power: float
    table: tuple[tuple[int, float], ...]
    reason: str | None = None


@dataclass(frozen=True)
class Plan:
    """How many examples a question needs.

    Attributes:
        question: the gate, or that a comparison finds the difference.
        method: how the power was computed.
        target: the power asked for.
        unit: what is counted: `examples` or `clusters`.
        needs: under each assumption; the first is the one to plan for.
        variance: where a pilot has several answers to an example, variants or judges.
    """

    question: str
    method: str
    target: float
    unit: str
    needs: tuple[Need, ...]
    variance: VarianceSplit | None = None

    @property
    def examples(self) -> int | None:
        """The examples, or clusters, to plan for."""
        return self.needs[0].examples

    def __str__(self) -> str:
        first = self.needs[0]
        if first.examples is None:
            return f"{self.question}: {first.reason}"
        asked = "" if self.variance is None else self.variance.design
        return f"{self.question}: {first.examples:,} {self.unit}{asked} have a power of {100 * first.power:.0f} %"

    def to_dict(self) -> dict[str, Any]:
        """All of it as JSON-like data."""
        found = asdict(self)
        if self.variance is not None:
            found["variance"]["verdict"] = self.variance.verdict
        return found | {"examples": self.examples, "summary": str(self)}


def plan(
    rule: str | None = None,
    *,
    value: float | None = None,
    base: float | None = None,
    differ: float | None = None,
    pilot: Pair | Sequence[Pair] | None = None,
    scorer: str | Sequence[str] | None = None,
    metric: Metric | None = None,
    power: float = 0.8,
    confidence: float = 0.95,
    at: Sequence[int] = (),
) -> Plan:
    """How many examples give a gate or a comparison its power.

    Args:
        rule: a gate, such as `accuracy better than base` or `accuracy >= 0.9 at 95%`; None asks whether `compare` finds
            the difference, at `confidence`.
        value: the assumed share of right rows of the new system.
        base: that of the baseline.
        differ: the share of rows on which only one of them is right. Without it the plan shows what is possible.
        pilot: the evaluations of the baseline and of the new system, in place of assumed shares; or several such pairs,
            of the same systems and examples with other prompts or seeds. The plan is then for their mean.
        scorer: of the pilot, if it has several; several of them are judges of the same thing, whose mean counts.
        metric: of the pilot, which averages rows; by default that of the rule, or accuracy.
        power: how often the question is to be answered with yes.
        at: numbers of examples whose power to show.

    Raises:
        SpecError: the rule cannot be planned for, or an assumption is missing or impossible.
        DataError: the pilot has too few rows.

    Example:
        >>> found = plan("accuracy better than base", value=0.85, base=0.80, differ=0.15)
        >>> print(found)
        accuracy better than base: 381 examples have a power of 80 %
        >>> print(plan("accuracy >= 0.9 at 95%", value=0.95))
        accuracy >= 0.9 at 95%: 191 examples have a power of 84 %
    """
    if not 0 < power < 1:
        raise SpecError(f"power is a share between 0 and 1, such as 0.8, not {power!r}")
    if any(n < 1 for n in at):
        raise SpecError("numbers of examples are 1 or more")
    gate = None if rule is None else Gate.parse(rule)
    asked = _Question(
        gate, rule or f"a comparison finds the difference at {100 * confidence:g} %", power, confidence, at
    )
    if gate is not None and gate.disparity is not None:
        raise gate.fault("there are no plans for disparities; plan for the metric in each group")
    if gate is not None and gate.anytime:
        raise gate.fault(
            "a plan is for one look; leave out `anytime`. With looks after every row, about 2.4 times as many rows have"
            " the same power (docs/intervals.md)"
        )
    if pilot is not None:
        if not (value is base is differ is None):
            raise SpecError("give a pilot or assumed shares, not both")
        pairs = [pilot] if isinstance(pilot[0], Evaluation) else list(pilot)
        return _plan_pilot(asked, pairs, scorer, metric)  # type: ignore[arg-type]
    if gate is None:
        return _plan_shares(asked, value, base, differ)
    proportion = default_metric(gate.metric)
    _check_averages(gate, proportion)
    if proportion.direction == "lower" or proportion.row_range not in ((0.0, 1.0), (-math.inf, math.inf)):
        raise gate.fault(f"{proportion.kind} is no share of right rows; plan from a pilot")
    if gate.baseline is None:
        if not (base is differ is None):
            raise SpecError(f"gate {gate.text!r} has no baseline; leave out base and differ")
        return _plan_value(asked, gate, value)
    if gate.relation in RELATIONS:
        raise SpecError(f"gate {gate.text!r} compares the values themselves and ignores chance; write `not worse than`")
    return _plan_shares(asked, value, base, differ)


@dataclass(frozen=True)
class _Question:
    """What is planned for.

    Attributes:
        gate: None asks whether a comparison at the confidence finds the difference.
        text: the question in words.
        power: how often it is to be answered with yes.
        at: numbers of examples whose power to show.
    """

    gate: Gate | None
    text: str
    power: float
    confidence: float
    at: Sequence[int]

    @property
    def margin(self) -> float:
        """By which the new system may be worse, or differ."""
        return 0.0 if self.gate is None else self.gate.number

    @property
    def is_equality(self) -> bool:
        return self.gate is not None and self.gate.relation == EQUAL

    def test(self, *, binary: bool) -> str:
        """What decides, in words."""
        if self.gate is not None:
            return "the bound of gates for pairs of 0 and 1" if binary else "the bound of gates"
        return "McNemar's mid-p test" if binary else "the t interval, with which the permutation test agrees"

    def unit(self, unit: str) -> str:
        """What is counted; for a gate on one group, its examples."""
        where = " and ".join(f"{name}={value}" for name, value in self.gate.where) if self.gate else ""
        return f"{unit} with {where}" if where else unit

    def plan(
        self, method: str, needs: Sequence[Need], counted: str = "examples", variance: VarianceSplit | None = None
    ) -> Plan:
        return Plan(self.text, method, self.power, self.unit(counted), tuple(needs), variance)

    def why_not(self, difference: float) -> str | None:
        """Why no number of examples shows a difference."""
        if self.gate is None:
            return None if difference else "there is no difference to find"
        if -self.margin < difference and not (self.is_equality and difference >= self.margin):
            return None
        return f"a true difference of {difference:+.3g} does not fulfil it, so more examples make it fail more surely"

    def paired_power(self, difference: float, differ: float) -> Power:
        """The power where so large a share of independent pairs of 0 and 1 differ."""
        return partial(self.power_of_pairs, (differ + difference) / 2, max((differ - difference) / 2, 0.0))

    def power_of_pairs(self, won: float, lost: float, n: int) -> float:
        """The chance that n independent pairs of 0 and 1 pass."""
        if self.gate is None:
            return power_of_mcnemar(n, won, lost, self.confidence)
        return power_of_pairs(self.gate.level or LEVEL, -self.margin, n, won, lost, both=self.is_equality)


def _check_averages(gate: Gate | None, metric: Metric) -> None:
    if not metric.averages:
        rule, name = (f"gate {gate.text!r}: ", gate.metric) if gate else ("", metric.kind)
        raise SpecError(f"{rule}there are plans for means of one number per row, such as accuracy, not for {name}")


def _plan_value(asked: _Question, gate: Gate, value: float | None) -> Plan:
    if gate.level is None:
        raise SpecError(f"gate {gate.text!r} checks the value itself, whatever its interval; add `at 95%`")
    share = _check_share("value", value)
    why_not = None
    if not gate.holds(share) or share == gate.number:
        why_not = f"a true value of {share:g} does not fulfil it, so more examples make it fail more surely"
    need = _find_need(asked, f"the true value is {share:g}", share, partial(_power_of_share, gate, share), why_not)
    return asked.plan("exact, by the bound of Clopper and Pearson", [need])


def _power_of_share(gate: Gate, share: float, n: int) -> float:
    """The chance that the bound of n independent rows passes."""
    assert gate.level is not None
    level, lower = gate.level, gate.relation in (">=", ">")

    def passes(right: int) -> bool:
        if 0 < gate.number < 1:
            found, least = (right, gate.number) if lower else (n - right, 1 - gate.number)
            return is_share_above(found, n, least, level)
        return gate.holds(clopper_pearson(right, n, level)[0 if lower else 1])

    chance = binomial(n, share)
    if lower:
        return float(chance[first_that(passes, 0, n + 1) :].sum())
    return float(chance[: first_that(lambda right: not passes(right), 0, n + 1)].sum())


def _plan_shares(asked: _Question, value: float | None, base: float | None, differ: float | None) -> Plan:
    new, old = _check_share("value", value), _check_share("base", base)
    least, most = abs(new - old), min(new + old, 2 - new - old)
    if differ is not None and not least - 1e-12 <= differ <= most + 1e-12:
        raise SpecError(
            f"differ: systems with shares of {new:g} and {old:g} differ on {least:g} to {most:g} of the rows, not on"
            f" {differ:g}"
        )
    apart = new * (1 - old) + old * (1 - new)
    assumed = {
        f"they differ on {share:.3g} of the rows{why}": share
        for share, why in (
            ((differ, ""),) if differ is not None else (
                (apart, ", as systems that err independently do"), ((apart + least) / 2, ""),
                (least, ", the fewest possible: one is right wherever the other is"),
            )
        )
    }  # fmt: skip
    change = new - old
    needs = [
        _find_need(asked, text, change, asked.paired_power(change, share), asked.why_not(change))
        for text, share in assumed.items()
    ]
    return asked.plan(f"exact, by {asked.test(binary=True)}", needs)


def _find_need(
    asked: _Question, text: str, difference: float, power_of: Power, why_not: str | None, *, drawn: bool = False
) -> Need:
    """What is needed under an assumption."""
    power, n = cache(power_of), None
    if why_not is None:
        n = fewest_drawn(power, asked.power) if drawn else fewest_rows(power, asked.power)
    numbers = {*asked.at} if n is None else {max(n // 4, 1), max(n // 2, 1), n, 2 * n, *asked.at}
    table = tuple((each, power(each)) for each in sorted(numbers))
    if n is None:
        return Need(text, difference, None, math.nan, table, why_not or f"more than {MOST_ROWS:,} would be needed")
    return Need(text, difference, n, power(n), table)


def _plan_pilot(
    asked: _Question, pilot: Sequence[Pair], scorer: str | Sequence[str] | None, metric: Metric | None
) -> Plan:
    gate = asked.gate
    if gate is not None and (gate.baseline is None or gate.relation in RELATIONS):
        raise gate.fault("a pilot plans for `better than`, `not worse than` and `equal to` a baseline")
    scorers, sides = _find_scorers(pilot, gate, scorer), [evaluation for pair in pilot for evaluation in pair]
    if metric is None:
        metric = undeclared_metric(gate.metric if gate else "accuracy", sides, scorers[0], declared_measures(sides))
    _check_averages(gate, metric)
    [metric] = find_ranges([metric], scorers[0], sides)
    if gate is not None:
        check_ranges(gate, scorers[0], [metric])
    by_variant = _read_pilot(pilot, scorers, metric, dict(gate.where) if gate else None)
    every = [rows for of_variant in by_variant for rows in of_variant]
    rows = replace(every[0], value=np.mean([each.value for each in every], axis=0))
    sample = Sample.from_rows(rows, 0, 1)
    if sample.clusters < _FEWEST_CLUSTERS or not sample.change.any():
        raise DataError(f"the pilot has {sample.clusters} independent rows, or none that differ; it tells no spread")
    sign = -1.0 if metric.direction == "lower" else 1.0
    possible: list[tuple[float, Power]]
    if sample.is_pairs:
        differ, counted = float(np.mean(sample.change != 0)), "examples"
        method = f"exact, by {asked.test(binary=True)}"

        def power_at(difference: float) -> Power:
            return asked.paired_power(sign * difference, max(differ, abs(difference)))

        possible = [(won - lost, partial(asked.power_of_pairs, won, lost)) for won, lost in _possible_shares(sample)]
    else:
        counted = "examples" if rows.cluster is None else "clusters"
        method = f"by {asked.test(binary=False)}, for {DRAWS:,} draws of the pilot's {asked.unit(counted)}"
        signs = (1.0, -1.0) if asked.is_equality else (sign,)
        power_at = draw = partial(DrawnPower, gate, asked.confidence, sample, margin=asked.margin, signs=signs)
        possible = [
            (sign * d, draw(d, scale=scale, part=(place, _POSSIBLE)))
            for place, (d, scale) in enumerate(_possible_differences(sample))
        ]
    find_need = partial(_find_need, asked, drawn=not sample.is_pairs)
    held = np.mean([asked.why_not(d) is None for d, _ in possible])
    average = find_need(
        f"the difference is one of those that the pilot leaves open, about {sample.value:+.3g}: power on average",
        sample.value,
        lambda n: float(np.mean([power(n) for _, power in possible])),
        None if held > asked.power else f"the pilot leaves open whether it is true: {100 * held:.0f} % that it is",
    )
    assumed = _assumed_differences(sample, sign, asked.is_equality)
    needs = [average, *(find_need(text, d, power_at(d), asked.why_not(sign * d)) for text, d in assumed)]
    examples = next((need.examples for need in needs if need.examples), None)
    is_split = not (sample.is_pairs or counted == "clusters" or getattr(metric, "weighted", False))
    variance = split_variance(by_variant, examples) if is_split and examples else None
    return asked.plan(method, needs, counted, variance)


_FEWEST_CLUSTERS: Final = 10


def _find_scorers(pilot: Sequence[Pair], gate: Gate | None, scorer: str | Sequence[str] | None) -> list[str]:
    every = [evaluation.scorers for pair in pilot for evaluation in pair]
    shared = [name for name in every[0] if all(name in each for each in every)]
    more = [scorer] if isinstance(scorer, str) else list(scorer or ())
    names = list(dict.fromkeys([*([gate.scorer] if gate and gate.scorer else []), *more]))
    if not names and len(shared) == 1:
        return shared
    if not names or not {*names} <= {*shared}:
        raise SpecError(f"name the scorer of the pilot: {', '.join(shared) or 'they share none'}")
    return names


def _read_pilot(
    pilot: Sequence[Pair], scorers: Sequence[str], metric: Metric, where: Mapping[str, str] | None
) -> list[list[PairedRows]]:
    """By variant and judge, the rows that all of them have."""
    sides = [evaluation for pair in pilot for evaluation in pair]
    by_judge = align([pair_rows(sides, scorer, metric, where) for scorer in scorers])
    return [
        [replace(rows, value=rows.value[place : place + 2], status=rows.status[place : place + 2]) for rows in by_judge]
        for place in range(0, len(sides), 2)
    ]


def _assumed_differences(sample: Sample, sign: float, is_equality: bool) -> Iterator[tuple[str, float]]:
    """The pilot's difference, and the ends of its 80 % interval, the cautious one first after it."""
    low, high = sample.interval(0.8)
    ends = (low, high) if sign > 0 else (high, low)
    ends = (max(ends, key=abs), min(ends, key=abs)) if is_equality else ends
    yield f"the difference is that of the pilot, {sample.value:+.3g}", sample.value
    if not math.isnan(low):
        yield f"it is the worse end of the pilot's 80 % interval, {ends[0]:+.3g}", ends[0]
        yield f"it is the better end, {ends[1]:+.3g}", ends[1]


_POSSIBLE: Final = 20
_GOLDEN: Final = (0.7548776662466927, 0.5698402909980532)
"""Multiples of these, without their whole numbers, fill a square evenly: 1 / x and 1 / x² for x³ = x + 1."""


def _even_points() -> Iterator[tuple[float, float]]:
    return (((0.5 + place * _GOLDEN[0]) % 1, (0.5 + place * _GOLDEN[1]) % 1) for place in range(_POSSIBLE))


def _possible_shares(sample: Sample) -> Iterator[tuple[float, float]]:
    """Equally likely shares of rows won and lost, in the direction of the metric; before the pilot, all were."""
    won, tied, lost = sample.outcomes
    for at_differ, at_won in _even_points():
        differ, share = _beta_quantile(won + lost + 2, tied + 1, at_differ), _beta_quantile(won + 1, lost + 1, at_won)
        yield differ * share, differ * (1 - share)


def _possible_differences(sample: Sample) -> Iterator[tuple[float, float]]:
    """Equally likely differences, and how many times the spread is that of the pilot, by Student's distribution."""
    degrees, normal = sample.clusters - 1, NormalDist()
    for at_spread, at_value in _even_points():
        part = 2 / (9 * degrees)  # Wilson & Hilferty's quantile of chi-squared
        scale = max(1 - part + normal.inv_cdf(at_spread) * math.sqrt(part), _LEAST) ** -1.5
        yield sample.value + scale * sample.error * normal.inv_cdf(at_value), scale


_LEAST: Final = 0.1


def _beta_quantile(a: int, b: int, chance: float) -> float:
    if chance > 0.5:
        return 1 - _beta_quantile(b, a, 1 - chance)
    return clopper_pearson(a, a + b - 1, 1 - chance)[0]


def _check_share(name: str, share: float | None) -> float:
    if share is None:
        raise SpecError(f"{name} is missing: give the assumed share of right rows (--{name}), or a pilot (--pilot)")
    if not 0 <= share <= 1:
        raise SpecError(f"{name} is a share between 0 and 1, not {share!r}")
    return float(share)


def examples_for_width(width: float, share: float, confidence: float = 0.95) -> int:
    """The rows with which the interval of a share is no wider, by the score interval.

    Source: E. B. Wilson (1927), solved for n.

    Raises:
        SpecError: the width is not between 0 and 1.

    Example:
        >>> examples_for_width(0.04, 0.9)
        868
    """
    if not 0 < width < 1:
        raise SpecError(f"width is a share between 0 and 1, such as 0.04, not {width!r}")
    z2 = normal_quantile(confidence) ** 2

    def is_narrow(n: int) -> bool:
        return 2 * math.sqrt(z2 * (share * (1 - share) / n + z2 / (4 * n * n))) / (1 + z2 / n) <= width

    return first_that(is_narrow, 1, 1 << 40)
