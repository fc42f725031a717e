"""Chatbot Arena's battles on Kaggle: a 1 in one of three columns, and texts that are JSON lists of turns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

from evaluand.matches.battle_rows import BattleFormat, BattleRow, Verdict, parse_json


class KaggleArena(BattleFormat):
    """One of the columns `winner_model_a`, `winner_model_b` and `winner_tie` is 1, the others are 0."""

    kind = "kaggle_arena"
    columns: ClassVar[Mapping[str, Sequence[str]]] = {
        "winner_a": ("winner_model_a",),
        "winner_b": ("winner_model_b",),
        "winner_tie": ("winner_tie", "winner_model_tie"),
    }
    verdict = "winner_a"

    @classmethod
    def verdicts(cls, row: BattleRow) -> Iterator[Verdict]:
        won, lost, tied = (row.number(field) or 0.0 for field in cls.columns)
        if sorted((won, lost, tied)) != [0, 0, 1]:
            names = ", ".join(row.places[field] for field in cls.columns if field in row.places)
            row.fault("winner_a", f"exactly one of {names} must be 1, the others 0")
        yield Verdict(won + tied / 2)

    @classmethod
    def turns(cls, value: Any, role: str) -> list[str] | None:
        parsed = parse_json(value) if isinstance(value, str) and value.startswith("[") else None
        if not isinstance(parsed, list) or not parsed or not all(isinstance(each, str | None) for each in parsed):
            return None
        return [each for each in parsed if each is not None]
