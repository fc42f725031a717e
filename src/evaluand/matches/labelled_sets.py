"""Labelled sets from matches: the judgements of a judge and of people on the same pairs of responses."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

import orjson
import pyarrow.compute as pc

from evaluand.core import identity
from evaluand.core.errors import NotFound, SpecError
from evaluand.core.key_columns import INDEX
from evaluand.judges.cards.from_evaluation import answering_model, model_of, read_seconds
from evaluand.judges.cards.labelled_set import Item, JudgeIdentity, Judgement, LabelledSet
from evaluand.matches.judge_agreement import mean_winner
from evaluand.matches.judging import SPANS_TABLE
from evaluand.matches.match_keys import file_origin, read_example_ids, read_example_keys
from evaluand.matches.matches import BY_PEOPLE, Matches
from evaluand.run.runner import Run
from evaluand.store.store import find_sealed

PEOPLE = "people"
RECORDED = "recorded"


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
    found = find_people(matches) if labels is None else labels
    said, given = _read_pairs(matches), _read_pairs(found)
    people = sorted({by for pair in given.values() for by in pair.by}, key=lambda by: (by is None, by or ""))
    items = [_item(key, said[key], given[key], people) for key in given if key in said]
    if not items:
        raise SpecError(f"{matches!r} and {found!r} have no pair in common")
    usage = [each for pair in said.values() for each in pair.usage]
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
    return judge.get("kind") == PEOPLE or bool(spec.get(BY_PEOPLE) or judge.get(BY_PEOPLE))


def is_from_elsewhere(matches: Matches) -> bool:
    """Whether the judgements come from a file."""
    judge = matches.manifest["spec"].get("judge")
    return judge is None or judge.get("kind") == RECORDED


def judges_elsewhere(matches: Matches) -> list[JudgeIdentity]:
    """The judges that a file names, each as the card of a file names it; none that are known to be people.

    A file that names no judge is one judge with the name of the file.
    """
    origin = file_origin(matches) or {}
    unnamed = Path(str(origin.get("source") or "")).stem or "unnamed"
    names = {unnamed if name is None else name for name in _read_judges(matches)}
    return [
        JudgeIdentity(name, {"kind": RECORDED, "name": name, "version": None})
        for name in sorted(names)
        if not _PEOPLE_ELSEWHERE.fullmatch(name)
    ]


_PEOPLE_ELSEWHERE: Final = re.compile(r"(arena_user|expert|author)_\d+")
"""Who judged in Chatbot Arena, and in MT-Bench's human judgements."""


def _read_judges(matches: Matches) -> set[str | None]:
    return {name for batch in matches.batches(["judge"]) for name in pc.unique(batch.column(0)).to_pylist()}


def find_people(matches: Matches) -> Matches:
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


class _Key(NamedTuple):
    example: tuple[int, ...]
    replication: int
    a: str
    b: str


class _Pair:
    """The judgements on a pair, as shares of the win that `a` gets."""

    def __init__(self, id: str) -> None:
        self.id = id
        self.by: dict[str | None, list[float]] = {}
        self.orders: dict[str, list[Judgement]] = {"ab": [], "ba": []}
        self.usage: list[Mapping[str, Any]] = []
        self.lengths: tuple[int, ...] = ()
        self.models: tuple[str | None, ...] = ()


_READ = (
    *(INDEX, "replication", "a", "b", "order", "status", "reason", "outcome"),
    *("equal", "explanation", "judge", "style_a", "style_b", "usage"),
)


def _read_pairs(matches: Matches) -> dict[_Key, _Pair]:
    keys, ids = read_example_keys(matches), read_example_ids(matches)
    examples = dict(zip(keys.index.tolist(), map(tuple, keys.shared.tolist()), strict=True))
    models = [_model_of_run(run) for run in matches.runs] or [None] * len(matches.systems)
    found: dict[_Key, _Pair] = {}
    for batch in matches.batches(list(_READ)):
        for row in batch.to_pylist():
            if row["equal"] or row["status"] == "skipped":
                continue
            sides = sorted("ab", key=lambda side: matches.systems[row[side]])
            swapped = sides == ["b", "a"]
            key = _Key(examples[row[INDEX]], row["replication"], *(matches.systems[row[side]] for side in sides))
            pair = found.setdefault(key, _Pair(str(ids.get(row[INDEX]) or row[INDEX])))
            outcome = row["outcome"] if row["outcome"] is None or not swapped else 1 - row["outcome"]
            reason = None if outcome is not None else f"{row['status']}: {row['reason']}"
            order = row["order"] if not swapped else row["order"][::-1]
            pair.orders[order].append(Judgement(outcome, reason, row["explanation"]))
            if outcome is not None:
                pair.by.setdefault(row["judge"], []).append(outcome)
            styles = [row[f"style_{side}"] for side in sides]
            pair.lengths = tuple(style["characters"] for style in styles) if all(styles) else ()
            own = tuple(models[row[side]] for side in sides)
            pair.models = own if any(own) else ()
            pair.usage += [orjson.loads(row["usage"])] if row["usage"] else []
    return found


def _item(key: _Key, said: _Pair, given: _Pair, people: list[str | None]) -> Item:
    labels = [0.5 + 0.5 * mean_winner(given.by[person]) if person in given.by else None for person in people]
    digest = identity.digest([list(key.example), key.replication, key.a, key.b]).hex()
    example = identity.digest(list(key.example)).hex()
    judgements, swapped = (tuple(said.orders[order]) for order in ("ab", "ba"))
    texts = {"response_a": key.a, "response_b": key.b}
    return Item(example, digest, said.id, tuple(labels), judgements, swapped, said.lengths, said.models, texts)


def _model_of_run(run: Run | None) -> str | None:
    """The model that wrote the responses of a run, if its usage names exactly one."""
    if run is None:
        return None
    return answering_model(usage for batch in run.batches(["usage"]) for usage in batch.column(0).to_pylist())


def _read_spans(matches: Matches) -> Iterator[float]:
    """How long each judgement took, as far as it was traced."""
    try:
        batches = [*matches.store.read("matches", matches.id, SPANS_TABLE, ["judgement", "parent", "duration"])]
    except NotFound:
        return
    for batch in batches:
        for row in batch.to_pylist():
            if row["parent"] is None and row["duration"] is not None:
                yield row["duration"].total_seconds()
