"""Facts about the tournaments of an experiment: the work of their judges, why matches have no outcome, ratings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

from evaluand.matches.kind import MATCHES
from evaluand.matches.matches import JUDGE_FAILED
from evaluand.report.facts.base import Facts, count_reasons, usage_facts
from evaluand.report.facts.judges import matches_judge_facts
from evaluand.store.store import caveats

if TYPE_CHECKING:
    from evaluand.matches.matches import Matches
    from evaluand.matches.ratings.rating import Ratings


def tournament_facts(name: str, matches: Matches, ratings: Ratings | None = None, unrated: str | None = None) -> Facts:
    """A set of matches: its systems, its receipt, its rows by status, why rows have no outcome, and the ratings.

    `judged` counts the rows that a judgement decides, `failures` the judgements that failed, by class of error.
    `judge_error` is the first error of a judge that failed on every comparison; None if it did not.

    Args:
        name: what the experiment calls it.
        unrated: why its systems have no ratings.
    """
    judged = sum(len(batch) - batch.column(0).null_count for batch in matches.batches(["judgement"]))
    missing = count_reasons(_iterate_undecided(matches))
    return {
        "matches": name,
        "id": matches.id,
        "digest": matches.digest,
        "name": matches.name,
        "systems": matches.systems,
        "counts": matches.counts,
        "receipt": None if matches.receipt is None else asdict(matches.receipt),
        "failures": matches.failures,
        "judged": judged,
        "caveats": caveats(matches.store, [(MATCHES, matches.id)]),
        "judge_error": _find_judge_error(missing, judged),
        "missing": missing,
        "judges": matches_judge_facts(matches),
        "ratings": None if ratings is None else ratings.to_dict(),
        "unrated": unrated,
    } | usage_facts(matches.manifest)


def _find_judge_error(missing: Sequence[Facts], judged: int) -> str | None:
    """The first error of a judge that failed on every comparison that it was asked for."""
    reasons = [reason for reason in missing if reason["reason"].startswith(JUDGE_FAILED)]
    if not reasons or sum(reason["count"] for reason in reasons) < judged:
        return None
    return str(reasons[0]["reason"]).removeprefix(JUDGE_FAILED)


def _iterate_undecided(matches: Matches) -> Iterator[tuple[int, str, str]]:
    """(`_index_`, status, reason) of each match without an outcome."""
    for batch in matches.batches(["_index_", "status", "reason"]):
        for row in batch.filter(batch.column("reason").is_valid()).to_pylist():
            yield row["_index_"], row["status"], row["reason"]
