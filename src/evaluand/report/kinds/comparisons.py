"""Comparisons, as they are shown."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from evaluand.comparison.comparing import Comparison, stored_digest
from evaluand.comparison.kind import COMPARISONS
from evaluand.report.facts.base import Facts
from evaluand.report.kinds.base import Choice, KindView
from evaluand.report.terminal.comparison import comparison_parts
from evaluand.store.store import Store

if TYPE_CHECKING:
    from rich.console import RenderableType


class ComparisonView(KindView):
    """A comparison: differences with verdicts, a ranking, and examples won and lost."""

    name = COMPARISONS
    notebook = "evaluand.report.html.notebook:comparison_html"
    is_table = False
    notes_stops = False  # it says so itself

    def open(self, store: Store, id: str) -> Comparison:
        return Comparison(store, id)

    def recount(self, store: Store, id: str) -> tuple[str, object]:
        return stored_digest(store, id)

    def facts(self, store: Store, id: str, head: Facts, choice: Choice) -> Facts:
        return {"comparison": Comparison(store, id).to_dict()}

    def body(self, facts: Facts) -> Iterator[RenderableType]:
        return comparison_parts(facts["comparison"])
