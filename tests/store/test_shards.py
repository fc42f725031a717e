"""The division of slots into shards: complete, without gaps, large first, and few."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from evaluand.store.journal import MOST_SLOTS
from evaluand.store.shards import LEAST_SLOTS, SHARD_SLOTS, Shards


@given(st.integers(0, 40 * SHARD_SLOTS))
def test_each_slot_is_in_one_shard(slots: int) -> None:
    shards = Shards(slots)
    ranges = [shards.range(shard) for shard in range(len(shards))]
    assert [slot for each in ranges for slot in each] == list(range(slots))
    for shard, each in enumerate(ranges):
        assert {shards.find(slot) for slot in (each[0], each[-1])} == {shard}


@given(st.integers(1, 40 * SHARD_SLOTS))
def test_no_shard_is_larger_than_the_one_before_or_than_an_eighth_of_what_is_left(slots: int) -> None:
    shards = Shards(slots)
    sizes = [len(shards.range(shard)) for shard in range(len(shards))]
    assert sizes == sorted(sizes, reverse=True)
    assert max(sizes) <= SHARD_SLOTS
    assert all(size <= max(LEAST_SLOTS, (slots - sum(sizes[:place])) // 8) for place, size in enumerate(sizes))


@pytest.mark.parametrize(
    ("slots", "most"), [(0, 0), (1, 1), (16, 1), (100, 7), (1000, 25), (10_000, 45), (1_000_000, 1020)]
)
def test_there_are_few_shards(slots: int, most: int) -> None:
    assert len(Shards(slots)) <= most


def test_the_shards_of_the_largest_lane_are_found_at_once() -> None:
    shards = Shards(MOST_SLOTS)
    assert shards.range(len(shards) - 1)[-1] == MOST_SLOTS - 1
    assert shards.find(MOST_SLOTS - 1) == len(shards) - 1
    assert shards.range(5) == range(5 * SHARD_SLOTS, 6 * SHARD_SLOTS)
