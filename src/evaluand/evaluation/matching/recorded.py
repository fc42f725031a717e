"""Matches of runs that were judged elsewhere, stored like those of a `Matcher`: nothing is judged again."""

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple

import pyarrow as pa

from evaluand.core import identity
from evaluand.core.errors import DataError
from evaluand.core.key_columns import INDEX
from evaluand.core.provenance import provenance
from evaluand.evaluation.matching.judging import is_answered, rows_of
from evaluand.evaluation.matching.matches import TABLE, MatchDigest, Matches
from evaluand.evaluation.matching.pairing import ANSWERED, Entrants, unjudged_status
from evaluand.evaluation.matching.response_style import ResponseStyle, response_styles
from evaluand.run.runner import Run
from evaluand.store.store import Manifest, begin, check_name, drafted, now
from evaluand.store.tables import BATCH_ROWS, FAILED, MATCHES, SCORED, SKIPPED


class RecordedMatch(NamedTuple):
    """What a judge said about two systems on one example.

    Attributes:
        example: `_index_` of the example.
        first: the number of the system whose response the judge saw first, from 0; `second` that of the other.
        outcome: the share of the win that the first gets; None if the judge failed.
        reason: why it failed.
    """

    example: int
    first: int
    second: int
    outcome: float | None
    reason: str | None = None


def store_recorded_matches(
    runs: Sequence[Run],
    recorded: Iterable[RecordedMatch],
    *,
    labels: Sequence[str],
    judge: Mapping[str, Any],
    name: str | None = None,
) -> Matches:
    """Store matches of runs in their store. A pair on an example about which nothing is recorded is skipped.

    Args:
        runs: over one dataset, with one replication.
        recorded: what the judge said.
        labels: of the systems, in the order of the runs.
        judge: what identifies the judge, as JSON.
        name: a name for the matches.

    Raises:
        DataError: a match is of an example that is not in the dataset, or not of two of the systems.
    """
    if name is not None:
        check_name(name)
    matches = [*recorded]
    spec = {
        "systems": [*labels],
        "runs": [run.digest for run in runs],
        "dataset": runs[0].manifest["spec"]["dataset"],
        "judge": dict(judge) | {"said": identity.digest([[*each] for each in matches]).hex()},
    }
    store = runs[0].store
    origin = provenance(None) | {"runs": [run.id for run in runs]}
    about: Manifest = {"work": [], "pinned": True, "observed": False, "fresh": False, "provenance": origin}
    manifest = begin(store, "matches", spec, name=name, again=lambda _: False, resume=None, about=lambda: about)
    if "digest" not in manifest:
        _seal(manifest, runs, Entrants.of(runs, labels), matches)
    return Matches(store, manifest["id"])


def _seal(manifest: Manifest, runs: Sequence[Run], entrants: Entrants, matches: Sequence[RecordedMatch]) -> None:
    state = MatchDigest()
    rows = sorted(_rows(entrants, matches, [*_styles(runs, entrants)]), key=_key)
    with drafted(runs[0].store, "matches", manifest["id"]) as draft:
        draft.append(TABLE, pa.RecordBatch.from_pylist([], MATCHES))
        for start in range(0, len(rows), BATCH_ROWS):
            batch = pa.RecordBatch.from_pylist(rows[start : start + BATCH_ROWS], MATCHES)
            state.add(batch)
            draft.append(TABLE, batch)
        draft.seal(manifest | {"digest": state.digest, "counts": state.counts, "sealed": now()})


def _key(row: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(row[name] for name in (INDEX, "a", "b", "order"))


def _rows(
    entrants: Entrants, matches: Sequence[RecordedMatch], styles: Sequence[Mapping[int, Mapping[str, int]]]
) -> Iterator[dict[str, Any]]:
    """The rows of recorded matches, and of the pairs about which nothing is recorded."""
    numbers = range(len(entrants.labels))
    places = {index: place for place, index in enumerate(entrants.index.tolist())}
    judged = set()
    for number, match in enumerate(matches):
        a, b = sorted((match.first, match.second))
        if match.example not in places or a == b or not {a, b} <= {*numbers}:
            raise DataError(
                f"the match {match} is not of two of the {len(numbers)} systems on an example of the dataset"
            )
        place, ab = places[match.example], a == match.first
        judged.add((place, a, b))
        share = match.outcome
        yield _pair(entrants, styles, place, a, b) | {
            "order": "ab" if ab else "ba",
            "judgement": number,
            "status": FAILED if share is None else SCORED,
            "reason": match.reason,
            "outcome": share if share is None or ab else 1 - share,
            "first": share,
        }
    for place, (a, b) in itertools.product(places.values(), itertools.combinations(numbers, 2)):
        if (place, a, b) not in judged:
            yield _pair(entrants, styles, place, a, b) | _unjudged(entrants, place, a, b)


def _pair(
    entrants: Entrants, styles: Sequence[Mapping[int, Mapping[str, int]]], place: int, a: int, b: int
) -> dict[str, Any]:
    index = int(entrants.index[place])
    pair = {INDEX: index, "replication": 0, "a": a, "b": b, "round": 0, "equal": False}
    return pair | {"style_a": styles[a].get(place), "style_b": styles[b].get(place)}


def _unjudged(entrants: Entrants, place: int, a: int, b: int) -> dict[str, Any]:
    states = {number: int(entrants.states[place, number]) for number in (a, b)}
    status, reason = unjudged_status({entrants.labels[number]: state for number, state in states.items()})
    missing = [side for side, state in zip("ab", states.values(), strict=True) if state != ANSWERED]
    if not missing:
        status, reason = SKIPPED, "not judged"
    return {
        "order": "ab",
        "status": status,
        "reason": reason,
        "missing": "both" if len(missing) == 2 else next(iter(missing), None),
    }


def _styles(runs: Sequence[Run], entrants: Entrants) -> Iterator[dict[int, dict[str, int]]]:
    """The length and markup of the responses of each run, by the place of the example."""
    for run in runs:
        answered = {
            place: response.responses[0]
            for place, response in enumerate(islice(rows_of(run, entrants), entrants.n_rows))
            if is_answered(response) and response.responses
        }
        counts = response_styles(answered.values()).tolist()
        yield {place: ResponseStyle(*each)._asdict() for place, each in zip(answered, counts, strict=True)}
