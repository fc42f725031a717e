"""The result of checking a gate."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from evaluand.comparison.rule import Gate
from evaluand.core.files.json import none_if_nan


def bound_facts(end: str | None, bound: float) -> dict[str, Any]:
    """The one-sided bound that decides about a gate, as data; empty where the value decides.

    Args:
        end: `low` or `high`.

    Example:
        >>> bound_facts("low", 0.75)
        {'bound': 0.75, 'side': 'lower'}
    """
    return {} if end is None else {"bound": none_if_nan(bound), "side": "lower" if end == "low" else "upper"}


@dataclass(frozen=True, repr=False)
class GateResult:
    """The result of checking one gate for one evaluation.

    Attributes:
        subject: the label of the evaluation.
        message: the number that decided, with its counts, or why there is none.
        facts: the same as data.
        is_decided: whether there was a number to compare; a gate without one has not passed.
    """

    gate: Gate
    subject: str
    passed: bool
    message: str
    facts: Mapping[str, Any]
    is_decided: bool = True

    @property
    def result(self) -> str:
        """`passed`, `failed` or `undecided`."""
        return "passed" if self.passed else "failed" if self.is_decided else "undecided"

    def __str__(self) -> str:
        """One line: whether the gate holds, and the number that decided."""
        result = self.result if self.passed else self.result.upper()
        return f"{result}  {self.gate.text}  {self.subject}: {self.message}"

    def __repr__(self) -> str:
        return f"<{self}>"
