"""Matches of runs that were judged elsewhere, stored like those of a `Matcher`: nothing is judged again."""

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from evaluand.core import identity
from evaluand.core.errors import DataError
from evaluand.core.key_columns import INDEX
from evaluand.core.provenance import provenance
from evaluand.matches.judging import read_styles
from evaluand.matches.matches import TABLE, MatchDigest, Matches
from evaluand.matches.pairing import ABSENT, ANSWERED, Entrants, unjudged_status
from evaluand.matches.response_style import ResponseStyle
from evaluand.run.runner import Run
from evaluand.store.store import Manifest, begin, check_name, drafted, now
from evaluand.store.tables import ABSTAINED, BATCH_ROWS, FAILED, MATCHES, SCORED, SKIPPED

SAID: Final = "said"
"""The entry of a judge's identity with the digest of its judgements."""


class RecordedMatch(NamedTuple):
    """What a judge said about two systems on one example.

    Attributes:
        example: `_index_` of the example.
        first: the number of the system whose response the judge saw first, from 0; `second` that of the other.
        outcome: the share of the win that the first gets; None if there is none.
        reason: why there is none.
        replication: of both responses, from 0.
        judge: the person who judged.
        label: the judge's own word, `strength` and `explanation` as in a `Preference`.
        abstained: whether the judge abstained, if there is no outcome; otherwise it failed.
        in_order: whether the order is known; if not, `first` is just one of both.
    """

    example: int
    first: int
    second: int
    outcome: float | None
    reason: str | None = None
    replication: int = 0
    judge: str | None = None
    label: str | None = None
    strength: float | None = None
    explanation: str | None = None
    abstained: bool = False
    in_order: bool = True


def store_recorded_matches(
    runs: Sequence[Run],
    recorded: Iterable[RecordedMatch],
    *,
    labels: Sequence[str],
    judge: Mapping[str, Any],
    name: str | None = None,
    tie_equal: bool = False,
    limit: int | None = None,
    resume: str | None = None,
    origin: Mapping[str, Any] | None = None,
) -> Matches:
    """Store matches of runs in their store. A pair on an example about which nothing is recorded is skipped.

    Args:
        runs: over one dataset.
        recorded: what the judge said.
        labels: of the systems, in the order of the runs.
        judge: what identifies the judge, as JSON.
        name: a name for the matches.
        tie_equal: equal responses about which nothing is recorded tie.
        limit: only the first examples.
        resume: the id of open matches that this must continue.
        origin: where it was recorded, for provenance.

    Raises:
        DataError: a match is of an example that is not in the dataset, or not of two of the systems.
        SpecError: `resume` is the id of other matches.
    """
    if name is not None:
        check_name(name)
    matches = [*recorded]
    spec = {
        "systems": [*labels],
        "runs": [run.digest for run in runs],
        "dataset": runs[0].manifest["spec"]["dataset"],
        "judge": dict(judge) | {SAID: identity.digest([[*each] for each in matches]).hex(), "ties": tie_equal},
        **({} if limit is None else {"limit": limit}),
    }
    store = runs[0].store
    made_from = provenance(None) | {"runs": [run.id for run in runs], **(origin or {})}
    about: Manifest = {"work": [], "pinned": True, "observed": False, "fresh": False, "provenance": made_from}
    manifest = begin(store, "matches", spec, name=name, again=lambda _: False, resume=resume, about=lambda: about)
    if "digest" not in manifest:
        _seal(manifest, runs, Entrants.of(runs, labels, limit), matches, tie_equal)
    return Matches(store, manifest["id"])


def _seal(
    manifest: Manifest, runs: Sequence[Run], entrants: Entrants, matches: Sequence[RecordedMatch], tie_equal: bool
) -> None:
    state = MatchDigest()
    styles = [read_styles(run, entrants) for run in runs]
    rows = sorted(_rows(entrants, matches, styles, tie_equal), key=_key)
    with drafted(runs[0].store, "matches", manifest["id"]) as draft:
        draft.append(TABLE, pa.RecordBatch.from_pylist([], MATCHES))
        for start in range(0, len(rows), BATCH_ROWS):
            batch = pa.RecordBatch.from_pylist(rows[start : start + BATCH_ROWS], MATCHES)
            state.add(batch)
            draft.append(TABLE, batch)
        draft.seal(manifest | {"digest": state.digest, "counts": state.counts, "sealed": now()})


def _key(row: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(row[name] for name in (INDEX, "replication", "a", "b", "order"))


def _rows(
    entrants: Entrants,
    matches: Sequence[RecordedMatch],
    styles: Sequence[np.ndarray],
    tie_equal: bool,
) -> Iterator[dict[str, Any]]:
    """The rows of recorded matches, and of the pairs about which nothing is recorded."""
    numbers = range(len(entrants.labels))
    positions = {index: position for position, index in enumerate(entrants.index.tolist())}
    judged = set()
    for number, match in enumerate(matches):
        a, b = sorted((match.first, match.second))
        is_known = match.example in positions and 0 <= match.replication < entrants.replications
        if not is_known or a == b or not {a, b} <= {*numbers}:
            raise DataError(
                f"the match {match} is not of two of the {len(numbers)} systems on an example of the dataset"
            )
        place = positions[match.example] * entrants.replications + match.replication
        judged.add((place, a, b))
        yield _pair(entrants, styles, place, a, b) | _judged(match, number)
    for place, (a, b) in itertools.product(range(entrants.n_rows), itertools.combinations(numbers, 2)):
        if (place, a, b) not in judged and ABSENT not in entrants.states[place, [a, b]]:
            yield _pair(entrants, styles, place, a, b) | _unjudged(entrants, place, a, b, tie_equal)


def _pair(entrants: Entrants, styles: Sequence[np.ndarray], place: int, a: int, b: int) -> dict[str, Any]:
    position, replication = divmod(place, entrants.replications)
    pair = {INDEX: int(entrants.index[position]), "replication": replication, "a": a, "b": b, "round": 0}
    style_a, style_b = (_style(entrants, styles, place, number) for number in (a, b))
    return pair | {"equal": False, "style_a": style_a, "style_b": style_b}


def _style(entrants: Entrants, styles: Sequence[np.ndarray], place: int, number: int) -> dict[str, int] | None:
    if entrants.states[place, number] != ANSWERED:
        return None
    return ResponseStyle(*styles[number][place].tolist())._asdict()


def _judged(match: RecordedMatch, number: int) -> dict[str, Any]:
    ab, share = match.first < match.second, match.outcome
    return {
        "order": "ab" if ab or not match.in_order else "ba",
        "judgement": number,
        "status": SCORED if share is not None else ABSTAINED if match.abstained else FAILED,
        "outcome": share if share is None or ab else 1 - share,
        "first": share if match.in_order else None,
    } | {name: getattr(match, name) for name in ("reason", "judge", "label", "strength", "explanation")}


def _unjudged(entrants: Entrants, place: int, a: int, b: int, tie_equal: bool) -> dict[str, Any]:
    states = {number: int(entrants.states[place, number]) for number in (a, b)}
    status, reason = unjudged_status({entrants.labels[number]: state for number, state in states.items()})
    missing = [side for side, state in zip("ab", states.values(), strict=True) if state != ANSWERED]
    if not missing and tie_equal and (entrants.contents[place, a] == entrants.contents[place, b]).all():
        return {"order": "ab", "status": SCORED, "outcome": 0.5, "first": 0.5, "equal": True}
    if not missing:
        status, reason = SKIPPED, "not judged"
    return {
        "order": "ab",
        "status": status,
        "reason": reason,
        "missing": "both" if len(missing) == 2 else next(iter(missing), None),
    }
