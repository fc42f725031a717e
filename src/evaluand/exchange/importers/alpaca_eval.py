"""Annotations of AlpacaEval: `preference` says which of two outputs to an instruction is better."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar

from evaluand.matches.battle_rows import UNDECIDED, BattleFormat, BattleRow, Verdict


class AlpacaEval(BattleFormat):
    """A preference is 1 if the first output is better, 2 if the second is, or between; 0 was a tie."""

    kind = "alpaca_eval"
    columns: ClassVar[Mapping[str, Sequence[str]]] = {
        "a": ("generator_1",),
        "b": ("generator_2",),
        "preference": ("preference",),
        "judge": ("annotator",),
        "response_a": ("output_1",),
        "response_b": ("output_2",),
    }
    marks = frozenset(("generator_1", "generator_2", "preference"))
    words: ClassVar[Mapping[str, Verdict]] = {"output_1": Verdict(1.0), "output_2": Verdict(0.0)}
    verdict = "preference"

    @classmethod
    def verdicts(cls, row: BattleRow) -> Iterator[Verdict]:
        preference = row.number("preference")
        if preference and not 1 <= preference <= 2:
            row.fault("preference", f"is {preference:g}; give a number from 1 (the first is better) to 2")
        yield UNDECIDED if preference is None else Verdict(2 - preference if preference else 0.5)
