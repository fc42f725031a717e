"""Matches in numbers: who won how often against whom, and what judging them cost."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from evaluand.core.errors import plural
from evaluand.models.usage_total import UsageTotal

if TYPE_CHECKING:
    from evaluand.matches.matches import Matches


def count_pairs(matches: Matches) -> list[dict[str, Any]]:
    """The judgements of each pair of systems, in the order of the systems.

    Returns:
        `a` and `b`, `won` (by a), `tied`, `lost`, `n_missing` (without an outcome) and `n_probable` (whose outcome is a
        probability, and counts for the side with the higher one).
    """
    labels = matches.systems
    names = ("lost", "tied", "won", "n_missing")
    counts = np.zeros((len(labels), len(labels), len(names)), np.int64)
    probable = np.zeros(counts.shape[:2], np.int64)
    for batch in matches.batches(["a", "b", "outcome"]):
        a, b = (np.asarray(batch.column(side)) for side in "ab")
        outcome = batch.column("outcome").to_numpy(zero_copy_only=False).astype(float)
        kind = np.where(np.isnan(outcome), 3, 1 + np.sign(np.nan_to_num(outcome, nan=0.5) - 0.5)).astype(np.int64)
        np.add.at(counts, (a, b, kind), 1)
        np.add.at(probable, (a, b), ~np.isnan(outcome) & ~np.isin(outcome, (0.0, 0.5, 1.0)))
    met = np.argwhere(counts.any(axis=2)).tolist()
    order = ("won", "tied", "lost", "n_missing")
    return [
        {"a": labels[a], "b": labels[b]}
        | {name: int(counts[a, b, names.index(name)]) for name in order}
        | {"n_probable": int(probable[a, b])}
        for a, b in met
    ]


def sum_usage(matches: Matches) -> list[dict[str, Any]]:
    """What the judgements cost when they were made, by judge; empty if none says so.

    A judgement that decides several matches counts once.

    Returns:
        `judge` (None if the matches do not name judges), `judgements` (those with a usage), and the entries of a
        `UsageTotal`.
    """
    totals: dict[str | None, UsageTotal] = {}
    batches = matches.batches(["judgement", "judge", "usage"])
    for batch in once_per_judgement(batch.filter(batch["usage"].is_valid()) for batch in batches):
        for row in batch.to_pylist():
            usage = orjson.loads(row["usage"])
            if isinstance(usage, dict):
                totals.setdefault(row["judge"], UsageTotal()).add(usage)
    found = sorted(totals.items(), key=lambda each: (each[0] is not None, str(each[0])))
    return [{"judge": judge, "judgements": total.rows, **total.to_dict()} for judge, total in found]


def usage_text(total: dict[str, Any]) -> str:
    """The usage of a judge in a line.

    Example:
        >>> usage_text({"rows": 2, "requests": 3, "failed": 1, "input_tokens": 1200, "cost": {"EUR": 0.25}})
        '2 judgements: 3 requests, 1 failed, 1,200 input tokens, cost 0.25 EUR'
    """
    used = UsageTotal.read(total)
    return f"{plural(used.rows, 'judgement')}: {used.describe('judgement')}"


def once_per_judgement(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Of matches that one judgement decides the first; those without a judgement are all there."""
    known = np.zeros(0, bool)
    for batch in batches:
        numbers = np.asarray(pc.fill_null(batch["judgement"], -1))
        known = np.pad(known, (0, max(int(numbers.max(initial=0)) + 1 - len(known), 0)))
        first = np.zeros(len(numbers), bool)
        first[np.unique(numbers, return_index=True)[1]] = True
        is_new = (numbers < 0) | (first & ~known[numbers])
        known[numbers[numbers >= 0]] = True
        yield batch.filter(pa.array(is_new))
