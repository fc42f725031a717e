"""What `make soak` does for hours works for a minute."""

from __future__ import annotations

from pathlib import Path

import pytest
from faults.soak import list_growth, soak


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
