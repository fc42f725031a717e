"""`evaluand run --until RULE`: runs growing numbers of examples until a rule is decided, or cannot be decided any more.

The rule's bound holds at all looks together. Examples are taken in a random order, which no outcome changes: those at
the beginning of a file may all be of one topic.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice
from typing import Final, NamedTuple

import numpy as np

from evaluand.aggregation.score_shards import dataset_of
from evaluand.comparison.checking import GateResult
from evaluand.comparison.rule import Gate
from evaluand.core.errors import SpecError
from evaluand.data.dataset import Dataset
from evaluand.evaluation.evaluator import Evaluation
from evaluand.predictions.steps import Results
from evaluand.report.facts.base import Facts

_FIRST: Final = 20
_GROWTH: Final = 1.5


class Stop(NamedTuple):
    """Where and why the looks ended."""

    examples: int
    most: int
    looks: int
    why: str

    def __str__(self) -> str:
        return f"{self.why} after {self.examples:,} of {self.most:,} examples, in {self.looks:,} looks"

    @property
    def facts(self) -> Facts:
        return {"examples": self.examples, "of": self.most, "looks": self.looks, "why": self.why}


def parse_until(text: str) -> Gate:
    """The rule of `--until`, with a bound for repeated looks.

    Raises:
        SpecError: the text is no gate, or one without such a bound.
    """
    gate = Gate.parse(text).at_any_time()
    if gate.disparity is not None:
        raise SpecError(f"--until {text!r}: disparities have no bound for repeated looks; write a rule on a mean")
    if not gate.anytime:
        raise SpecError(
            f"--until {text!r}: only a rule with a confidence level can be decided early, such as `accuracy better than"
            " base` or `accuracy >= 0.9 at 95%`"
        )
    return gate


def positions_in(baseline: Evaluation, dataset: Dataset) -> np.ndarray:
    """The positions of the examples that a stored baseline was run on; others have no partner.

    Raises:
        SpecError: there are none.
    """
    asked = baseline.read_run().manifest["spec"]["examples"]
    known = {*islice(dataset_of(baseline).example_digests(), asked)}
    found = np.array([place for place, digest in enumerate(dataset.example_digests()) if digest in known], np.int64)
    if not len(found):
        raise SpecError(f"the baseline {baseline.name} was run on none of these examples, so nothing can be compared")
    return found


def run_until(
    most: int, run: Callable[[int], Results], check: Callable[[Results], Sequence[GateResult]]
) -> tuple[Results, Stop]:
    """Runs more and more examples until a rule is decided for every system.

    Args:
        most: the number of examples there are.
        run: runs examples in their random order, as many as it is passed.
        check: checks the rule.
    """
    limit, looks = min(_FIRST, most), 1
    while True:
        results = run(limit)
        checked = check(results)
        reasons = [_reason(result, most - limit) for result in checked]
        if None not in reasons or limit == most:
            pairs = zip(checked, reasons, strict=True)
            why = "; ".join(f"{reason or 'not decided'} for {result.subject}" for result, reason in pairs)
            return results, Stop(limit, most, looks, why)
        limit, looks = min(round(limit * _GROWTH), most), looks + 1


def _reason(result: GateResult, remaining: int) -> str | None:
    """Why a rule needs no further look; None if it needs one."""
    values = [value for value in result.facts["values"] if "anytime" in value]
    if result.passed:
        return "is shown to hold"
    if any(value["refuted"] for value in values):
        return "is shown not to hold"
    if remaining and any(value["needed"] is None or value["needed"] > remaining for value in values):
        return f"can no longer be shown to hold with the {remaining:,} examples that remain"
    return None
