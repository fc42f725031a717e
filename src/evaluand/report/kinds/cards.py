"""Cards of judges, as they are shown and written."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from evaluand.judges.cards.card import TABLES, JudgeCard, stored_digest
from evaluand.judges.kind import CARDS
from evaluand.report.facts.base import Facts
from evaluand.report.kinds.base import Choice, KindView
from evaluand.report.terminal.judges import card_parts
from evaluand.store.store import Store

if TYPE_CHECKING:
    from rich.console import RenderableType


class CardView(KindView):
    """A card: how well a judge agrees with people."""

    name = CARDS

    def open(self, store: Store, id: str) -> JudgeCard:
        return JudgeCard(store, id)

    def recount(self, store: Store, id: str) -> tuple[str, object]:
        return stored_digest(store, id)

    def facts(self, store: Store, id: str, head: Facts, choice: Choice) -> Facts:
        return {"card": JudgeCard(store, id).to_dict()}

    def body(self, facts: Facts) -> Iterator[RenderableType]:
        return card_parts(facts["card"])

    def tables(self, artifact: Any) -> list[str]:
        return [*TABLES]
