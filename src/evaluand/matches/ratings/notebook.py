"""Ratings as the tables of a notebook cell."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from evaluand.core.text.html_table import html_notes, html_table
from evaluand.matches.ratings.wording import (
    bias_texts,
    count_texts,
    find_only_opponent,
    format_rating,
    is_at_equal_length,
    is_share,
    rating_label,
)

_MATRIX: Final = 10
"""The most systems whose win rates fit the width of a cell."""


def ratings_html(facts: Mapping[str, Any]) -> str:
    """The ranking, why systems have no rating, who wins against whom, and what the bias of the judges was.

    Args:
        facts: ratings, as `Ratings.to_dict` returns them.
    """
    rows = facts["ratings"]
    reasons = dict.fromkeys(f"{row['system']}: {row['reason']}" for row in rows if row["reason"])
    rating = rating_label(facts["method"]) if is_at_equal_length(facts) else "rating"
    heads = ["system", "rank", "alike", rating, "win rate", "won", "tied", "lost", "missing", "skipped"]
    return "".join(
        (
            html_table(heads, (_ranking_cells(row, is_share(facts)) for row in rows), facts["signature"]),
            html_notes([*reasons, *count_texts(facts)]),
            _win_rates(facts),
            html_notes(bias_texts(row for row in facts["bias"] if row["judge"] is None)),
        )
    )


def _ranking_cells(row: Mapping[str, Any], share: bool) -> Iterator[str]:
    yield row["system"]
    yield "–" if row["rank"] is None else str(row["rank"])
    yield row["letters"] or ""
    yield format_rating(row, share)
    yield _percent(row["win_rate"])
    yield from (f"{row[name]:,g}" for name in ("won", "tied", "lost", "n_missing", "n_skipped"))


def _win_rates(facts: Mapping[str, Any]) -> str:
    systems = [row["system"] for row in facts["ratings"]]
    if not 1 < len(systems) <= _MATRIX or (len(systems) > 2 and find_only_opponent(facts["win_rates"]) is not None):
        return ""
    rates = {(row["a"], row["b"]): row["win_rate"] for row in facts["win_rates"]}
    rows = ([a, *("" if a == b else _percent(rates.get((a, b))) for b in systems)] for a in systems)
    return html_table(["win rate \\ against", *systems], rows)


def _percent(share: float | None) -> str:
    return "–" if share is None else f"{100 * share:.1f} %"
