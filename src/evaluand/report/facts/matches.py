"""Facts about matches: how often each system won against each other one, and rows with both responses."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any

from evaluand.core.key_columns import INDEX
from evaluand.report.facts.base import Facts
from evaluand.run.excerpts import excerpts
from evaluand.store.statuses import SCORED

if TYPE_CHECKING:
    from evaluand.evaluation.matching.matches import Matches
    from evaluand.run.runner import Run

_COLUMNS = [INDEX, "replication", "a", "b", "order", "status", "reason", "outcome", "first", "label", "explanation"]


def matches_facts(matches: Matches, examples: int = 0, *, failed: bool = False) -> Facts:
    """The counts of each pair of systems, and the first rows; those without an outcome come first.

    Args:
        examples: how many rows.
        failed: only rows without an outcome.
    """
    chosen = list(islice(_rows(matches, scored=False), examples))
    if not failed:
        chosen += islice(_rows(matches, scored=True), examples - len(chosen))
    return {"judged": _judged(matches), "pairs": _count_pairs(matches), "rows": _with_texts(matches, chosen)}


def _judged(matches: Matches) -> Facts:
    """Who judged, and which pairs."""
    spec = matches.manifest["spec"]
    if "judge" not in spec:
        return {"judged": f"elsewhere, read from {matches.manifest['provenance'].get('source') or 'rows in memory'}"}
    judge, schedule = spec["judge"], spec["schedule"]
    parameters = ", ".join(f"{name}={value}" for name, value in (schedule.get("parameters") or {}).items())
    return {
        "judge": str(judge.get("name") or judge.get("kind")),
        "schedule": f"{schedule['kind']}({parameters})" if parameters else schedule["kind"],
        "orders": f"{spec['orders']}, seed {spec['seed']}" if spec["orders"] == "random" else spec["orders"],
    }


def _count_pairs(matches: Matches) -> list[Facts]:
    """Judgements of each pair of systems, in the order of the systems."""
    counts: dict[tuple[int, int], Facts] = {}
    for batch in matches.batches(["a", "b", "outcome"]):
        grouped = batch.group_by_pairs() if hasattr(batch, "group_by_pairs") else batch.to_pydict()
        for a, b, outcome in zip(grouped["a"], grouped["b"], grouped["outcome"], strict=True):
            row = counts.setdefault((a, b), {"won": 0, "tied": 0, "lost": 0, "n_missing": 0})
            name = "n_missing" if outcome is None else "won" if outcome > 0.5 else "lost" if outcome < 0.5 else "tied"
            row[name] += 1
    labels = matches.systems
    return [{"a": labels[a], "b": labels[b]} | counts[a, b] for a, b in sorted(counts)]


def _rows(matches: Matches, *, scored: bool) -> Iterator[tuple[int, Facts]]:
    """The place and the cells of rows with an outcome, or without."""
    place = 0
    for batch in matches.batches([*_COLUMNS, "judge"]):
        for status in batch.column("status").to_pylist():
            if (status == SCORED) == scored:
                yield place, batch.slice(place - _start(place, batch), 1).to_pylist()[0]
            place += 1
