"""Matches and ratings, as they are shown and written."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from evaluand.core.errors import Fault
from evaluand.judges.stored_rubric import find_changed_rubrics
from evaluand.matches.battles import battle_batches
from evaluand.matches.kind import MATCHES, RATINGS
from evaluand.matches.matches import Matches, stored_digest
from evaluand.matches.ratings.rating import TABLES, Ratings, stored_digest as digest_of_ratings
from evaluand.report.facts.base import Facts
from evaluand.report.facts.match_sets import ratings_facts
from evaluand.report.facts.matches import matches_facts
from evaluand.report.kinds.base import Choice, KindView
from evaluand.report.terminal.ratings import matches_parts, ratings_parts
from evaluand.store.store import Manifest, Store
from evaluand.store.tables import SCORE_STATUSES

if TYPE_CHECKING:
    import pyarrow as pa
    from rich.console import RenderableType


class MatchesView(KindView):
    """Matches: who met whom on which example, and who won."""

    name = MATCHES
    sums_usage = False  # it is listed by judge

    def open(self, store: Store, id: str) -> Matches:
        return Matches(store, id)

    def recount(self, store: Store, id: str) -> tuple[str, object]:
        return stored_digest(store, id)

    def find_faults(self, store: Store, manifest: Manifest) -> Iterable[Fault]:
        where = f"{self.name} {manifest['id']}"
        return [Fault(where, change) for change in find_changed_rubrics(manifest).values()]

    def facts(self, store: Store, id: str, head: Facts, choice: Choice) -> Facts:
        return matches_facts(Matches(store, id), choice.examples, failed=choice.failed)

    def body(self, facts: Facts) -> Iterator[RenderableType]:
        return matches_parts(facts)

    def tables(self, artifact: Any) -> list[str]:
        return ["matches"]

    def rows(self, artifact: Any, table: str) -> Iterator[pa.RecordBatch]:
        return battle_batches(artifact)

    def statuses(self, table: str) -> Sequence[str]:
        return SCORE_STATUSES


class RatingsView(KindView):
    """Ratings of systems, with win rates, differences, parameters and bias."""

    name = RATINGS

    def open(self, store: Store, id: str) -> Ratings:
        return Ratings(store, id)

    def recount(self, store: Store, id: str) -> tuple[str, object]:
        return digest_of_ratings(store, id)

    def facts(self, store: Store, id: str, head: Facts, choice: Choice) -> Facts:
        return {"ratings": ratings_facts(Ratings(store, id))}

    def body(self, facts: Facts) -> Iterator[RenderableType]:
        return ratings_parts(facts["ratings"])

    def tables(self, artifact: Any) -> list[str]:
        return [*TABLES]
