"""Who judged matches, and what several judges said about the same pairs of responses.

From that follow labelled sets of a judge and of people, how often judges agree, and whether a judge was measured.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import orjson
import pyarrow.compute as pc

from evaluand.core import identity
from evaluand.core.errors import NotFound, SpecError
from evaluand.core.key_columns import INDEX
from evaluand.evaluation.comparison_scorers import ComparisonScorer
from evaluand.evaluation.scorer import class_of
from evaluand.evaluation.standing import ScorerStanding
from evaluand.judges.cards.from_evaluation import answering_model, model_of, read_seconds
from evaluand.judges.cards.labelled_set import Item, JudgeIdentity, Judgement, LabelledSet
from evaluand.judges.cards.standing import find_standing
from evaluand.matches.judging import SPANS_TABLE
from evaluand.matches.match_keys import file_origin, read_example_ids, read_example_keys
from evaluand.matches.matches import BY_PEOPLE, Matches
from evaluand.metrics.judging.kappa import measure_kappa
from evaluand.run.runner import Run
from evaluand.store.store import find_sealed
from evaluand.store.tables import SKIPPED


def read_labelled_matches(matches: Matches, labels: Matches | None = None) -> LabelledSet:
    """The pairs that people have judged, with the judgements of a judge.

    Systems are matched by label, and examples by content. Equal responses, which no judge sees, do not count.

    Args:
        matches: those of the judge.
        labels: those of people; by default the newest matches by people of the same runs.

    Raises:
        NotFound: there are no matches by people.
        SpecError: the sets have no pair in common.
    """
    if is_by_people(matches):
        raise SpecError(f"{matches!r} were judged by people; name those of the judge")
    found = _find_people(matches) if labels is None else labels
    said, given = _read_pairs(matches), _read_pairs(found)
    people = sorted({by for judged in given.values() for by in judged.by}, key=lambda by: (by is None, by or ""))
    items = [_item(pair, said[pair], given[pair], people) for pair in given if pair in said]
    if not items:
        raise SpecError(f"{matches!r} and {found!r} have no pair in common")
    usage = [each for judged in said.values() for each in judged.usage]
    seconds = read_seconds(usage) or [*_read_spans(matches)]
    made_from = [("matches", matches.id), ("matches", found.id)]
    judge = judge_of_matches(matches)
    judge = judge._replace(model=answering_model(usage) or judge.model)
    return LabelledSet(items, judge, people, True, usage, seconds, made_from)


def judge_of_matches(matches: Matches) -> JudgeIdentity:
    """Which judge made matches.

    Raises:
        SpecError: the matches do not say.
    """
    spec = matches.manifest["spec"].get("judge")
    if spec is None:
        raise SpecError(f"{matches!r} were judged elsewhere, by nobody knows whom; measure the judge from its file")
    parameters = spec.get("parameters")
    name = spec.get("name") or (parameters.get("name") if isinstance(parameters, Mapping) else None) or spec["kind"]
    stored = (matches.manifest["provenance"].get("parts") or {}).get("judge") or {}
    parts = {part: str(value) for part, value in stored.items()}
    return JudgeIdentity(str(name), spec, parts, model_of(spec), bool(matches.manifest.get("pinned", True)))


def is_by_people(matches: Matches) -> bool:
    """Whether people have judged matches."""
    spec = matches.manifest["spec"]
    judge = spec.get("judge", {})
    return judge.get("kind") == "people" or bool(spec.get(BY_PEOPLE) or judge.get(BY_PEOPLE))


def _find_people(matches: Matches) -> Matches:
    """The newest matches by people of the same runs.

    Raises:
        NotFound: there are none.
    """
    store, runs = matches.store, set(matches.manifest["spec"].get("runs", ()))
    for manifest in find_sealed(store, "matches", *runs):
        other = Matches(store, manifest["id"])
        if is_by_people(other) and len(runs & set(manifest["spec"].get("runs", ()))) > 1:
            return other
    raise NotFound("people have not judged pairs of these runs; let them judge with `evaluand label --pairs`")


class _Pair(NamedTuple):
    """Two systems, in the order of their labels, on an example."""

    example: tuple[int, ...]
    replication: int
    a: str
    b: str


def _read_judged(matches: Matches, columns: Sequence[str]) -> Iterator[tuple[_Pair, Sequence[str], dict[str, Any]]]:
    """Each match of responses that differ: its pair, the sides of the pair's systems, and its cells.

    The cells are the columns, the id of the example, and the share of the win that the first system of the pair gets.
    """
    keys, ids = read_example_keys(matches), read_example_ids(matches)
    examples = dict(zip(keys.index.tolist(), map(tuple, keys.shared.tolist()), strict=True))
    for batch in matches.batches([INDEX, "replication", "a", "b", "equal", "outcome", "judge", *columns]):
        for row in batch.to_pylist():
            if not row["equal"]:
                sides = sorted("ab", key=lambda side: matches.systems[row[side]])
                if row["outcome"] is not None and sides[0] == "b":
                    row["outcome"] = 1 - row["outcome"]
                systems = (matches.systems[row[side]] for side in sides)
                yield (
                    _Pair(examples[row[INDEX]], row["replication"], *systems),
                    sides,
                    row | {"id": ids.get(row[INDEX])},
                )


class _Judged:
    """The judgements on a pair, as shares of the win that `a` gets."""

    def __init__(self, id: str) -> None:
        self.id = id
        self.by: dict[str | None, list[float]] = {}
        self.orders: dict[str, list[Judgement]] = {"ab": [], "ba": []}
        self.usage: list[Mapping[str, Any]] = []
        self.lengths: tuple[int, ...] = ()
        self.models: tuple[str | None, ...] = ()


def _read_pairs(matches: Matches) -> dict[_Pair, _Judged]:
    models = [_model_of_run(run) for run in matches.runs] or [None] * len(matches.systems)
    pairs: dict[_Pair, _Judged] = {}
    for pair, sides, row in _read_judged(matches, ("order", "status", "reason", "explanation", *_STYLES, "usage")):
        if row["status"] == SKIPPED:
            continue
        judged, outcome = pairs.setdefault(pair, _Judged(str(row["id"] or row[INDEX]))), row["outcome"]
        reason = None if outcome is not None else f"{row['status']}: {row['reason']}"
        order = row["order"] if sides[0] == "a" else row["order"][::-1]
        judged.orders[order].append(Judgement(outcome, reason, row["explanation"]))
        if outcome is not None:
            judged.by.setdefault(row["judge"], []).append(outcome)
        styles = [row[f"style_{side}"] for side in sides]
        judged.lengths = tuple(style["characters"] for style in styles) if all(styles) else ()
        own = tuple(models[row[side]] for side in sides)
        judged.models = own if any(own) else ()
        judged.usage += [orjson.loads(row["usage"])] if row["usage"] else []
    return pairs


_STYLES: Final = ("style_a", "style_b")


def _item(pair: _Pair, said: _Judged, given: _Judged, people: list[str | None]) -> Item:
    labels = [0.5 + 0.5 * _mean_winner(given.by[person]) if person in given.by else None for person in people]
    digest = identity.digest([list(pair.example), pair.replication, pair.a, pair.b]).hex()
    example = identity.digest(list(pair.example)).hex()
    judgements, swapped = (tuple(said.orders[order]) for order in ("ab", "ba"))
    texts = {"response_a": pair.a, "response_b": pair.b}
    return Item(example, digest, said.id, tuple(labels), judgements, swapped, said.lengths, said.models, texts)


def _model_of_run(run: Run | None) -> str | None:
    """The model that wrote the responses of a run, if its usage names exactly one."""
    if run is None:
        return None
    return answering_model(usage for batch in run.batches(["usage"]) for usage in batch.column(0).to_pylist())


def _read_spans(matches: Matches) -> Iterator[float]:
    """How long each judgement took, as far as it was traced."""
    if SPANS_TABLE in matches.manifest["tables"]:
        for batch in matches.store.read("matches", matches.id, SPANS_TABLE, ["parent", "duration"]):
            for row in batch.to_pylist():
                if row["parent"] is None and row["duration"] is not None:
                    yield row["duration"].total_seconds()


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
    for number, matches in enumerate(sets):
        spec = matches.manifest["spec"].get("judge", {})
        is_people = spec.get("kind") == "people"
        unnamed = str(matches.name or spec.get("kind") or f"set {number + 1}")
        for pair, _, row in _read_judged(matches, ()):
            if row["outcome"] is not None and not (is_people and row["judge"] is None):
                places.setdefault(pair.example, (row[INDEX], row["id"]))
                said.setdefault(row["judge"] or unnamed, {}).setdefault(pair, []).append(row["outcome"])
    found = []
    for one, other in itertools.combinations(said, 2):
        common = [pair for pair in said[one] if pair in said[other]]
        winners = np.array([[_mean_winner(said[judge][pair]) for pair in common] for judge in (one, other)], np.int64)
        disputed = [
            Disputed(*places[pair.example], pair.replication, pair.a, pair.b, _WORDS[first], _WORDS[second])
            for pair, first, second in zip(common, *winners.tolist(), strict=True)
            if first != second
        ]
        examples = [pair.example for pair in common]
        kappa, low, high = measure_kappa(winners + 1, ["b", "tie", "a"], examples) if common else (None, None, None)
        found.append(Agreement(one, other, len(common), len(common) - len(disputed), kappa, low, high, disputed))
    return found


def _mean_winner(outcomes: Sequence[float]) -> int:
    """Who wins by the mean of some shares: 1 for the first system, 0 for a tie, -1 for the second."""
    total = sum(outcome - 0.5 for outcome in outcomes)
    return (total > 0) - (total < 0)


_WORDS: Final = {1: "a", 0: "tie", -1: "b"}


def standings_of(matches: Matches) -> list[tuple[JudgeIdentity, ScorerStanding]]:
    """The judges of matches, each with whether it was measured, as its class says; none for people and functions.

    The judgements of other tools count as those of a judge, unless people are known to have made them. A file that
    names no judge is one judge with the name of the file.
    """
    if is_by_people(matches):
        return []
    spec = matches.manifest["spec"].get("judge")
    if spec is None or spec.get("kind") == RECORDED:
        unnamed = Path(str((file_origin(matches) or {}).get("source") or "")).stem or "unnamed"
        named = {name for batch in matches.batches(["judge"]) for name in pc.unique(batch.column(0)).to_pylist()}
        return [
            (judge, find_standing(matches.store, judge, f"FILE --judge {name}")._replace(otherwise=_BY_PEOPLE))
            for name in sorted(unnamed if name is None else name for name in named)
            if not _PEOPLE_ELSEWHERE.fullmatch(name)
            for judge in [JudgeIdentity(name, {"kind": RECORDED, "name": name, "version": None})]
        ]
    if not matches.manifest["provenance"].get("judges"):
        return []
    kind = class_of("comparison_scorers", spec)
    kind = kind if issubclass(kind, ComparisonScorer) else ComparisonScorer
    judge = judge_of_matches(matches)
    return [(judge, standing) for standing in kind.standings(matches.store, [judge], matches.name or matches.id[:12])]


RECORDED: Final = "recorded"
_PEOPLE_ELSEWHERE: Final = re.compile(r"(arena_user|expert|author)_\d+")
"""Who judged in Chatbot Arena, and in MT-Bench's human judgements."""

_BY_PEOPLE: Final = "; if people have judged, read the file with --by-people (in Python and experiments: by_people)"
