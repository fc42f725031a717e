"""The outcome of a gate for one target, and that of a difference from a baseline."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from evaluand.aggregation.groups import MetricRow
from evaluand.comparison.anytime import seen_differences
from evaluand.comparison.difference import Sample
from evaluand.comparison.gate_result import bound_facts
from evaluand.comparison.labelled_differences import LabelledSample
from evaluand.comparison.metric_differences import MetricSample
from evaluand.comparison.rule import ANYTIME, EQUAL, NOT_WORSE, Gate
from evaluand.core.errors import plural
from evaluand.core.files.json import none_if_nan


class Outcome(NamedTuple):
    """The outcome for one target; `rows` are those of a value that leaves some out."""

    passed: bool
    message: str
    facts: dict[str, Any]
    is_decided: bool = True
    rows: MetricRow | None = None

    def doubted(self) -> Outcome:
        """Undecided where a rule holds and more than one row in twenty has no score, which could be worse ones."""
        if not self.passed or self.rows is None or self.rows.n_scored >= 0.95 * self.rows.n:
            return self
        way = "declare how they count, `missing: wrong` or `missing: leave_out` (--missing of score and compare)"
        why = f"undecided: too many rows have no score; score them, or {way}; {self.message}"
        return self._replace(passed=False, message=why, is_decided=False)


def name_counts(counts: Mapping[str, int]) -> dict[str, int]:
    """The counts of pairs, named as those of a gate."""
    return {name: counts[of] for name, of in _COUNTS.items()}


_COUNTS: Final = {
    "n": "n",
    "n_used": "n_used",
    "n_baseline_missing": "n_a_missing",
    "n_missing": "n_b_missing",
    "n_only_baseline": "n_only_a",
    "n_only": "n_only_b",
}


def judge_difference(
    gate: Gate,
    sample: Sample | MetricSample | LabelledSample,
    target: str | None,
    better: str | None,
    level: float,
    is_same: bool,
    counts: dict[str, int],
    heaviest: float = 0.0,
) -> Outcome:
    """Compares a difference with the margin of a gate; `better` is the direction.

    Args:
        heaviest: the weight of the heaviest cluster that a growing run can have.
    """
    difference, (low, high) = sample.value, sample.interval(level)
    seen = seen_differences(sample, heaviest) if gate.anytime and isinstance(sample, Sample) else None
    lower, upper = seen.bounds(level) if seen else sample.bounds(level)
    both = gate.relation == EQUAL  # the bound nearer to its margin decides
    which = "low" if (lower <= -upper if both else better == "higher") else "high"
    end = lower if which == "low" else upper
    facts = {"target": target, "difference": none_if_nan(difference), "level": level} | bound_facts(which, end)
    facts |= {"low": none_if_nan(low), "high": none_if_nan(high)} | counts
    margin = gate.number if gate.relation in (NOT_WORSE, EQUAL) else 0.0
    if seen is not None:
        facts |= seen.facts(which, -margin if which == "low" else margin, level)
    pairs = format_pair_counts(counts)
    if counts["n"] in (counts["n_baseline_missing"], counts["n_missing"]):
        return Outcome(False, f"undefined: one side has no scores; {pairs}", facts, is_decided=False)
    if is_same and not math.isnan(difference):
        passed = gate.relation in (NOT_WORSE, EQUAL)
        return Outcome(passed, f"unchanged: both sides are the same evaluation of the same task; {pairs}", facts)
    if math.isnan(end):
        fault = None if isinstance(sample, Sample) else sample.fault
        why = fault or "the difference has no interval"
        return Outcome(False, f"undefined: {why}; {pairs}", facts, is_decided=False)
    passed = end > -margin if which == "low" else end < margin
    about, unsure = ("", "") if math.isfinite(sample.span) else ("about ", UNSURE)
    bound = f"{format_bound_name(which, level, gate.anytime)}{about}{end:+.4g}{unsure}"
    shown = f"difference {format_target(target)}{difference:+.4g}, {bound}; {pairs}"
    if seen is not None:
        return Outcome(passed, shown, facts)
    near = low if which == "low" else -high
    if passed and -margin >= near:
        shown += f"; the {_format_interval(low, high, level)} of a comparison is two-sided and so wider than the bound"
    elif (end if which == "low" else -end) < near:
        shown += f"; beyond the {_format_interval(low, high, level)} of a comparison, {_why_beyond_interval(sample)}"
    return Outcome(passed, shown, facts)


UNSURE: Final = " (without a range of values its level is not guaranteed)"


def _format_interval(low: float, high: float, level: float) -> str:
    return f"{100 * level:g}% interval [{low:+.4g}, {high:+.4g}]"


def _why_beyond_interval(sample: Sample | MetricSample | LabelledSample) -> str:
    """Why a one-sided bound that keeps its level may lie beyond a two-sided interval."""
    if isinstance(sample, MetricSample | LabelledSample) or (sample.independent and sample.binary):
        return "which is slightly too narrow where few rows differ"
    unit = "row" if sample.clusters == len(sample.change) else "cluster"
    return f"which uses observed {unit}s only: the bound allows for an unseen one that differs by {sample.span:.4g}"


def format_bound_name(end: str | None, level: float | None, anytime: bool = False) -> str:
    if end is None or level is None:
        return ""
    return f"{'lower' if end == 'low' else 'upper'} {100 * level:g}% {f'{ANYTIME} ' if anytime else ''}bound "


def format_target(target: str | None) -> str:
    return "" if target is None else f"({target}) "


def format_pair_counts(counts: Mapping[str, int]) -> str:
    words = {
        "n_baseline_missing": "without a score in the baseline",
        "n_missing": "without a score",
        "n_only_baseline": "more only in the baseline",
        "n_only": "more not in the baseline",
    }
    return ", ".join(
        [plural(counts["n"], "pair"), *(f"{counts[n]:,} {word}" for n, word in words.items() if counts[n])]
    )


def format_counts(row: MetricRow) -> str:
    """The rows behind a value, with those that have none."""
    parts = [f"{plural(row.n, 'row')}: {row.n_scored:,} scored"]
    parts += [
        f"{n:,} {word}"
        for n, word in ((row.n_failed, "failed"), (row.n_abstained, "abstained"), (row.n_skipped, "more skipped"))
        if n
    ]
    bounds = "" if row.worst == row.best or math.isnan(row.worst) else f", worst {row.worst:.4g} … best {row.best:.4g}"
    return ", ".join(parts) + bounds
