"""Facts about the tournaments of an experiment: the work of their judges, why matches have no outcome, ratings."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING

from evaluand.report.facts.base import Facts, count_reasons

if TYPE_CHECKING:
    from evaluand.comparison.ratings.stored import Ratings
    from evaluand.evaluation.matching.matches import Matches


def tournament_facts(name: str, matches: Matches, ratings: Ratings | None = None, unrated: str | None = None) -> Facts:
    """A set of matches: its systems, its receipt, its rows by status, why rows have no outcome, and the ratings.

    `judged` counts the rows that a judgement decides.

    Args:
        name: what the experiment calls it.
        unrated: why its systems have no ratings.
    """
    return {
        "matches": name,
        "id": matches.id,
        "digest": matches.digest,
        "name": matches.name,
        "systems": matches.systems,
        "counts": matches.counts,
        "receipt": None if matches.receipt is None else asdict(matches.receipt),
        "judged": sum(len(batch) - batch.column(0).null_count for batch in matches.batches(["judgement"])),
        "missing": count_reasons(_iterate_undecided(matches)),
        "ratings": None if ratings is None else ratings.to_dict(),
        "unrated": unrated,
    }


def _iterate_undecided(matches: Matches) -> Iterator[tuple[int, str, str]]:
    """(`_index_`, status, reason) of each match without an outcome."""
    for batch in matches.batches(["_index_", "status", "reason"]):
        for row in batch.filter(batch.column("reason").is_valid()).to_pylist():
            yield row["_index_"], row["status"], row["reason"]
