"""Judgements of Arena-Hard: two games against a baseline, with labels such as `A>>B`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar, Final

from evaluand.core.errors import DataError, kind_of
from evaluand.matches.battle_rows import UNREADABLE, BattleFormat, BattleRow, Verdict, parse_json, read_winner, shown

_ORDERS: Final = ("ab", "ba")


class ArenaHard(BattleFormat):
    """The first game shows the baseline first, the second shows it second; labels name the places in the game."""

    kind = "arena_hard"
    columns: ClassVar[Mapping[str, Sequence[str]]] = {
        "example": ("uid",),
        "a": ("baseline",),
        "b": ("model",),
        "games": ("games",),
    }
    labels: ClassVar[Mapping[str, Verdict]] = {
        "a>>b": Verdict(1.0, strength=2.0),
        "a>b": Verdict(1.0, strength=1.0),
        "a=b": Verdict(0.5, strength=0.0),
        "b=a": Verdict(0.5, strength=0.0),
        "b>a": Verdict(0.0, strength=1.0),
        "b>>a": Verdict(0.0, strength=2.0),
        "a<b": Verdict(0.0, strength=1.0),
        "a<<b": Verdict(0.0, strength=2.0),
        "b<a": Verdict(1.0, strength=1.0),
        "b<<a": Verdict(1.0, strength=2.0),
    }
    verdict = "games"
    has_both_orders = True

    @classmethod
    def verdicts(cls, row: BattleRow) -> Iterator[Verdict]:
        games = parse_json(row.get("games"))
        if not isinstance(games, list) or len(games) > len(_ORDERS):
            what = f"has {len(games):,} games" if isinstance(games, list) else f"is {kind_of(games)}"
            return row.fault("games", f"{what}; give a list of one or two games")
        for number, (game, order) in enumerate(zip(games, _ORDERS, strict=False)):
            place = f"{row.places['games']}[{number}]"
            if not isinstance(game, dict | None):
                row.fault(place, f"is {kind_of(game)}; give an object with a score")
                continue
            score, judgment = (game or {}).get("score"), (game or {}).get("judgment")
            try:
                verdict = read_winner(score, "", "") if score else UNREADABLE
            except DataError:
                verdict = UNREADABLE
                row.fault(f"{place}.score", f"is {shown(score)}; give a label such as A>>B, A>B or A=B")
            if order == "ba" and verdict.outcome is not None:
                verdict = verdict._replace(outcome=1 - verdict.outcome)
            explanation = judgment.get("answer") if isinstance(judgment, dict) else judgment
            yield verdict._replace(order=order, explanation=explanation if isinstance(explanation, str) else None)
