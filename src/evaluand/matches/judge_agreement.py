"""How often two judges of matches agree, beyond chance and pair by pair."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np

from evaluand.core.key_columns import INDEX
from evaluand.matches.match_keys import read_example_ids, read_example_keys
from evaluand.matches.matches import Matches
from evaluand.metrics.judging.kappa import measure_kappa


class Disputed(NamedTuple):
    """A pair on which two judges do not agree.

    Attributes:
        example: `_index_` of the example in the first set of matches that has it; `id` is its id there.
        replication: of the pair.
        a, b: the labels of the systems.
        one, other: who wins according to each judge: `a`, `b` or `tie`.
    """

    example: int
    id: str | None
    replication: int
    a: str
    b: str
    one: str
    other: str


class Agreement(NamedTuple):
    """How often two judges agree on pairs that both have judged.

    Attributes:
        one, other: the judges.
        pairs: how many pairs both have judged.
        agreed: on how many they name the same winner, or both a tie.
        kappa: Cohen's kappa of the winners, None where chance agrees everywhere or without pairs.
        low: the lower end of its 95 % interval by example, None below two examples; `high` the upper end.
        disputed: the pairs on which they do not agree.
    """

    one: str
    other: str
    pairs: int
    agreed: int
    kappa: float | None
    low: float | None
    high: float | None
    disputed: list[Disputed]


def agreement(sets: Sequence[Matches]) -> list[Agreement]:
    """How often any two judges agree, by pair: with both orders, their mean decides.

    A judge is a person, or all matches of a set without one; people without a name are left out. Systems are those of
    the same label. Examples are those of the same content, and in battles those of the same id and input, so that sets
    over different datasets or from different files meet in the examples that they share.

    Args:
        sets: matches, of any datasets or files.

    Raises:
        NotFound: a dataset is not in the store.
    """
    said: dict[str, dict[_Pair, list[float]]] = {}
    places: dict[tuple[int, ...], tuple[int, str | None]] = {}
    names = ["_index_", "replication", "a", "b", "outcome", "judge", "equal"]
    for number, matches in enumerate(sets):
        spec = matches.manifest["spec"].get("judge", {})
        is_people = spec.get("kind") == "people"
        unnamed = str(matches.name or spec.get("kind") or f"set {number + 1}")
        examples, ids = read_example_keys(matches), read_example_ids(matches)
        keys = dict(zip(examples.index.tolist(), map(tuple, examples.shared.tolist()), strict=True))
        for batch in matches.batches(names):
            for row in batch.to_pylist():
                if row["outcome"] is None or row["equal"] or (is_people and row["judge"] is None):
                    continue
                systems = [matches.systems[row[side]] for side in "ab"]
                outcome = row["outcome"] if systems == sorted(systems) else 1 - row["outcome"]
                example = keys[row[INDEX]]
                places.setdefault(example, (row[INDEX], ids.get(row[INDEX])))
                pair = _Pair(example, row["replication"], *sorted(systems))
                said.setdefault(row["judge"] or unnamed, {}).setdefault(pair, []).append(outcome)
    winners = {judge: {pair: mean_winner(each) for pair, each in pairs.items()} for judge, pairs in said.items()}
    return [_compare(one, other, winners, places) for one, other in itertools.combinations(winners, 2)]


class _Pair(NamedTuple):
    example: tuple[int, ...]
    replication: int
    a: str
    b: str


def mean_winner(outcomes: Sequence[float]) -> int:
    """Who wins by the mean of some shares: 1 for the first system, 0 for a tie, -1 for the second."""
    total = sum(outcome - 0.5 for outcome in outcomes)
    return (total > 0) - (total < 0)


def _compare(
    one: str,
    other: str,
    winners: Mapping[str, Mapping[_Pair, int]],
    places: Mapping[tuple[int, ...], tuple[int, str | None]],
) -> Agreement:
    common = [pair for pair in winners[one] if pair in winners[other]]
    said = np.array([[winners[judge][pair] for pair in common] for judge in (one, other)], np.int64)
    disputed = [
        Disputed(*places[pair.example], pair.replication, pair.a, pair.b, _WORDS[first], _WORDS[second])
        for pair, first, second in zip(common, *said.tolist(), strict=True)
        if first != second
    ]
    examples = [pair.example for pair in common]
    kappa, low, high = measure_kappa(said + 1, ["b", "tie", "a"], examples) if common else (None, None, None)
    return Agreement(one, other, len(common), len(common) - len(disputed), kappa, low, high, disputed)


_WORDS: Final = {1: "a", 0: "tie", -1: "b"}
