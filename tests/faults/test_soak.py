"""What `make soak` does for hours works for a minute."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from random import Random

import pytest
from faults.soak import CONCURRENCY, Counts, Soak, list_growth, soak
from support.nursery import Nursery


@pytest.mark.slow
def test_a_minute_of_kills_stops_and_pauses_loses_nothing(tmp_path: Path) -> None:
    found = soak(tmp_path, 60, seed=1, every=2)
    counts = found["counts"]
    assert counts["faults"] == []
    assert counts["rounds"] >= 2
    assert counts["kills"] > 10
    assert counts["answers"] > 0


def test_what_grows_is_named() -> None:
    flat = [{"reader MiB": 100.0 + i % 2, "files": 12.0} for i in range(40)]
    assert list_growth(flat) == []
    growing = [{"reader MiB": 100.0, "files": 12.0 + i} for i in range(40)]
    assert list_growth(growing) == ["files grew from 26.5 to 46.5"]


@pytest.mark.parametrize(
    ("calls", "told", "complete", "fault"),
    [
        ([0, 1, 2, 2], {"right"}, {0}, ""),
        ([0, 1, 2, 2], {"right", "wrong"}, {0}, "digests"),
        ([0, 1, 1], {"right"}, {0}, "2 of 3 rows were asked"),
        ([0, 1, 2, 1], {"right"}, {0, 1}, "1 finished calls were repeated, such as row 1"),
        ([0, 1, 2] + [2] * (CONCURRENCY + 1), {"right"}, {0}, f"{CONCURRENCY} were in flight"),
    ],
)
def test_what_a_round_has_lost_or_repeated_is_named(
    tmp_path: Path, calls: list[int], told: set[str], complete: set[int], fault: str
) -> None:
    """The only kill came after two calls."""
    (tmp_path / "calls").write_text("\n".join(map(str, calls)))
    with closing(Nursery(tmp_path)) as nursery:
        made = Soak(nursery, tmp_path, Random(0))
        made._check(tmp_path, "right", told, 3, [(2, complete)], Counts(kills=1))
    assert [fault in each for each in made.counts.faults] == ([True] if fault else [])
