"""Schedules find defects that are planted in what they try, each for the promise that it breaks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple
from unittest.mock import patch

import pytest
from faults.schedules import play
from support.forks import in_fork
from support.memory_disk import MemoryDisk

from evaluand.engine.keyed_work import KeyedWork
from evaluand.store import garbage
from evaluand.store.journal import WorkLog
from evaluand.store.lease_state import State
from evaluand.store.leases import FileLeases

MOST_SEEDS = 600

take_over, link = State.take_over, MemoryDisk.link
claim, keep, append = FileLeases.claim, KeyedWork._keep, WorkLog.append


class Defect(NamedTuple):
    """What is planted, where, and how the failure that shows it is described."""

    place: Any
    name: str
    act: Callable[..., Any]
    shown_by: str
    first: int = 0  # of the seeds: those before it show the defect by another failure, or not


def take_from_the_living(self: FileLeases, name: str, worker: object) -> bool:
    return name != self._name


def fence_from_the_start(self: State, name: str, offset: Callable[[str], int]) -> None:
    take_over(self, name, lambda segment: 0)


def replacing(ending: str) -> Callable[..., None]:
    """Links that replace files whose names end so."""

    def replace(self: MemoryDisk, name: str, new: str, folder: int | None) -> None:
        if new.endswith(ending):
            self._names(folder).pop(new, None)
        link(self, name, new, folder)

    return replace


def claim_without_history(self: FileLeases, *given: Any, **more: Any) -> tuple[int, int] | None:
    taken = claim(self, *given, **more)
    return taken and (taken[0], 0)


def finish_first(self: KeyedWork[Any], made: Any) -> None:
    for shard in {self.lane.shards.find(unit.slot) for unit, *_ in made}:
        self.lane.leases.finish(shard)
    keep(self, made)


def lose_the_first_of_several(self: WorkLog, lines: bytes) -> bool:
    return append(self, lines[lines.find(b"\n") + 1 :] if lines.count(b"\n") > 1 else lines)


def do_nothing(*given: Any, **more: Any) -> None:
    pass


def always(*given: Any, **more: Any) -> bool:
    return True


DEFECTS = {
    "late lines count": Defect(FileLeases, "_write_fences", do_nothing, "before the journal says where"),
    "lines that were read stay": Defect(WorkLog, "_take_back_fenced", do_nothing, "would be sealed", 259),
    "the living are taken over from": Defect(FileLeases, "_is_over", take_from_the_living, "works on is taken over"),
    "hearts do not beat": Defect(FileLeases, "_start_beating", do_nothing, "works on is taken over"),
    "a shard has no history": Defect(FileLeases, "claim", claim_without_history, "called again"),
    "what was written is lost with a lease": Defect(State, "take_over", fence_from_the_start, "lost with the leases"),
    "two states have one number": Defect(MemoryDisk, "link", replacing("0.json"), "works on is taken over", 216),
    "a manifest is replaced": Defect(MemoryDisk, "link", replacing("manifest.json"), "sealed twice", 30),
    "a shard is done before its line": Defect(KeyedWork, "_keep", finish_first, "would be sealed|more often than", 4),
    "a line is lost": Defect(WorkLog, "append", lose_the_first_of_several, "more often than"),
    "garbage has open work": Defect(garbage, "_is_abandoned", always, "called again|sealed twice", 33),
}


@pytest.mark.parametrize("what", DEFECTS)
@in_fork  # without threads that earlier tests have left, which would call the clocks and the disk of the simulation
def test_a_planted_defect_is_found(what: str) -> None:
    place, name, act, shown_by, first = DEFECTS[what]
    with patch.object(place, name, act), pytest.raises(AssertionError, match=shown_by):
        play(range(first, first + MOST_SEEDS))
