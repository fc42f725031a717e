"""Pairwise judgements of MT-Bench: the winners of two games, in which the responses change places."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from evaluand.matches.battle_rows import UNREADABLE, BattleFormat, Verdict


class MTBench(BattleFormat):
    """Each game names the winner by the row, not by the place in the game."""

    kind = "mt_bench"
    columns: ClassVar[Mapping[str, Sequence[str]]] = {
        "a": ("model_1",),
        "b": ("model_2",),
        "winner": ("g1_winner",),
        "swapped": ("g2_winner",),
        "explanation": ("g1_judgment",),
        "swapped_explanation": ("g2_judgment",),
    }
    words: ClassVar[Mapping[str, Verdict]] = {"model_1": Verdict(1.0), "model_2": Verdict(0.0), "error": UNREADABLE}
