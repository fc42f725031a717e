"""In any order of what several workers do, and whatever befalls them, no result is lost; see `schedules`.

`SCHEDULES` says how many seeds the slow suite plays, `SCHEDULE` which one alone:

    SCHEDULE=17 python -m pytest -n 0 -m slow tests/faults/test_simulation.py
"""

from __future__ import annotations

import os

import pytest
from faults.schedules import play
from support.forks import in_fork

QUICK = 40
FIRST = int(os.environ.get("SCHEDULE", QUICK))
SCHEDULES = int(os.environ.get("SCHEDULES", "1" if "SCHEDULE" in os.environ else "5000"))
BATCH = 500


@in_fork  # without threads that earlier tests have left, which would call the clocks and the disk of the simulation
def test_in_any_of_some_schedules_no_result_is_lost() -> None:
    play(range(QUICK))


@pytest.mark.slow
@pytest.mark.parametrize("start", range(FIRST, FIRST + SCHEDULES, BATCH))
@in_fork  # as above
def test_in_any_of_many_schedules_no_result_is_lost(start: int) -> None:
    play(range(start, min(start + BATCH, FIRST + SCHEDULES)))
