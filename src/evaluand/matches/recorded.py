"""Matches of runs that were judged elsewhere, stored like those of a `Matcher`: nothing is judged again."""

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from evaluand.core import identity
from evaluand.core.errors import DataError
from evaluand.core.provenance import provenance
from evaluand.matches.judging import read_styles
from evaluand.matches.match_table import match_batches, seal_matches
from evaluand.matches.matches import Matches
from evaluand.matches.pairing import ABSENT, ANSWERED, Entrants
from evaluand.run.runner import Run
from evaluand.store.store import Manifest, begin, check_name
from evaluand.store.tables import ABSTAINED, FAILED, MATCHES, SCORED

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
        entrants = Entrants.of(runs, labels, limit)
        styles = np.stack([read_styles(run, entrants) for run in runs])
        columns = _columns(entrants, matches, tie_equal)
        seal_matches(store, manifest, match_batches(entrants, styles, columns, lambda numbers: _said(matches, numbers)))
    return Matches(store, manifest["id"])


def _columns(entrants: Entrants, matches: Sequence[RecordedMatch], tie_equal: bool) -> dict[str, np.ndarray]:
    """The recorded matches, and the pairs about which nothing is recorded, in the order of the table."""
    numbers, every = range(len(entrants.labels)), entrants.replications
    positions = {index: position for position, index in enumerate(entrants.index.tolist())}
    rows: list[tuple[Any, ...]] = []
    for number, match in enumerate(matches):
        a, b = sorted((match.first, match.second))
        is_known = match.example in positions and 0 <= match.replication < every
        if not is_known or a == b or not {a, b} <= {*numbers}:
            raise DataError(
                f"the match {match} is not of two of the {len(numbers)} systems on an example of the dataset"
            )
        is_ab, share = match.first == a, math.nan if match.outcome is None else match.outcome
        shares = share if is_ab else 1 - share, share if match.in_order else math.nan
        row = positions[match.example] * every + match.replication
        rows.append((row, a, b, is_ab or not match.in_order, False, *shares, number))
    judged = {row[:3] for row in rows}
    for row, (a, b) in itertools.product(range(entrants.n_rows), itertools.combinations(numbers, 2)):
        states, (one, other) = entrants.states[row, [a, b]], entrants.contents[row, [a, b]]
        if (row, a, b) not in judged and ABSENT not in states:
            is_tie = tie_equal and not (states != ANSWERED).any() and bool((one == other).all())
            rows.append((row, a, b, True, is_tie, *[0.5 if is_tie else math.nan] * 2, -1))
    rows.sort(key=lambda row: (entrants.index[row[0] // every], row[0] % every, *row[1:3], not row[3]))
    names = ("row", "a", "b", "ab", "equal", "outcome", "first", "judgement")
    columns = {name: np.array([row[place] for row in rows]) for place, name in enumerate(names)}
    return columns | {"round": np.zeros(len(rows), np.int32)}


def _said(matches: Sequence[RecordedMatch], judgements: np.ndarray) -> dict[str, pa.Array]:
    """What was said in some matches; null for -1."""
    cells = [None if number < 0 else _cells(matches[number]) for number in judgements.tolist()]
    names = ("status", *_SAID)
    table = pa.array(cells, pa.struct([(name, MATCHES.field(name).type) for name in names]))
    return dict(zip(names, table.flatten(), strict=True))


def _cells(match: RecordedMatch) -> dict[str, Any]:
    status = SCORED if match.outcome is not None else ABSTAINED if match.abstained else FAILED
    return {"status": status} | {name: getattr(match, name) for name in _SAID}


_SAID: Final = ("reason", "judge", "label", "strength", "explanation")
