"""Facts about matches: how often each system won against each other one, and rows with both responses."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING

from evaluand.matches.kind import judge_name
from evaluand.matches.matches import count_pairs, sum_usage
from evaluand.report.facts.base import Facts
from evaluand.report.facts.judges import matches_judge_facts
from evaluand.store.statuses import SCORED

if TYPE_CHECKING:
    from evaluand.matches.matches import Matches


def matches_facts(matches: Matches, examples: int = 0, *, failed: bool = False) -> Facts:
    """The counts of each pair of systems, and the first rows; those without an outcome come first.

    Args:
        examples: how many rows.
        failed: only rows without an outcome.
    """
    chosen: list[Facts] = []
    for is_scored in (False,) if failed else (False, True):
        if left := examples - len(chosen):
            chosen += islice(_rows(matches, is_scored), left)
    return {
        "judged": _describe_judge(matches) | ({"left out": matches.left_out} if matches.left_out else {}),
        "pairs": count_pairs(matches),
        "usage": sum_usage(matches),
        "judges": matches_judge_facts(matches),
        "rows": chosen,
    }


def _describe_judge(matches: Matches) -> Facts:
    """Who judged, and which pairs."""
    spec = matches.manifest["spec"]
    if "judge" not in spec:
        return {"judged": f"elsewhere, read from {matches.manifest['provenance'].get('source') or 'rows in memory'}"}
    schedule, orders = spec.get("schedule", {"kind": "unknown"}), str(spec.get("orders"))
    parameters = ", ".join(f"{name}={value}" for name, value in (schedule.get("parameters") or {}).items())
    return {
        "judge": judge_name(matches.manifest),
        "schedule": f"{schedule['kind']}({parameters})" if parameters else str(schedule["kind"]),
        "orders": f"{orders}, seed {spec.get('seed')}" if orders == "random" else orders,
    }


def _rows(matches: Matches, is_scored: bool) -> Iterator[Facts]:
    """Rows with an outcome, or without; the columns of `battle_export.BATTLES`."""
    if is_scored == (set(matches.counts) <= {SCORED}) or len(matches.counts) > 1:
        from evaluand.matches.battles import battle_batches

        for batch in battle_batches(matches):
            statuses = batch.column("status").to_pylist()
            for place, status in enumerate(statuses):
                if (status == SCORED) == is_scored:
                    yield from batch.slice(place, 1).to_pylist()
