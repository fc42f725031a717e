"""Matches of runs that were judged elsewhere, stored like those of a `Matcher`: nothing is judged again.

`recorded` is the judge of runs whose judgements are in a file of battles.
"""

from __future__ import annotations

import itertools
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from evaluand.core import identity
from evaluand.core.errors import DataError, Fault, SpecError, plural, warn
from evaluand.core.fingerprint import Identity
from evaluand.core.provenance import provenance
from evaluand.data.sources import digest_of_files
from evaluand.engine.keyed_work import Receipt
from evaluand.evaluation.comparison_scorers import ComparisonScorer
from evaluand.matches.battle_rows import Battle, spelled_for
from evaluand.matches.battles import BattleFile, as_text, describe_file
from evaluand.matches.judging import match_batches, seal_matches
from evaluand.matches.matches import BY_PEOPLE, SAID, Matches
from evaluand.matches.pairing import ABSENT, ANSWERED, Entrants
from evaluand.run.runner import Run
from evaluand.store.store import Manifest, begin, check_name
from evaluand.store.tables import ABSTAINED, FAILED, MATCHES, SCORED


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

    @property
    def status(self) -> str:
        return SCORED if self.outcome is not None else ABSTAINED if self.abstained else FAILED


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
        columns = _columns(entrants, matches, tie_equal)
        seal_matches(store, manifest, match_batches(entrants, runs, columns, lambda numbers: _said(matches, numbers)))
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
    names = ("status", "reason", "judge", "label", "strength", "explanation")
    said = (None if number < 0 else matches[number] for number in judgements.tolist())
    cells = [None if match is None else {name: getattr(match, name) for name in names} for match in said]
    table = pa.array(cells, pa.struct([(name, MATCHES.field(name).type) for name in names]))
    return dict(zip(names, table.flatten(), strict=True))


@dataclass(frozen=True)
class RecordedBattles(ComparisonScorer):
    """Takes the judgements of runs from a file, in which they have the id of the example and the labels of the runs.

    Every judgement of the file counts, also several of one pair by several people. Pairs that the file does not have
    are `skipped`, and equal responses tie. Battles of other systems and examples are left out and reported. Where the
    file has no ids, examples are found by their input.

    Args:
        path: the file, or several as a folder or pattern.
        fields: field → column, as the columns of `read_battles`.
        a: the label of the first system, if no column has it; `b` that of the second.
        in_order: the response of each row's first system was shown first.
        by_people: people have judged, not a model, so gates need no card of a judge.
        format: of the file, if its suffix does not say; `delimiter` of a CSV file, if not a comma.
    """

    kind = "recorded"
    version = 1
    cheap = True
    has_pairs = True

    path: str
    fields: Mapping[str, str] = field(default_factory=dict)
    a: str | None = None
    b: str | None = None
    in_order: bool = False
    by_people: bool = False
    format: str | None = None
    delimiter: str | None = None

    def identify(self) -> Identity:
        digest = digest_of_files(self.path)
        options = {"a": self.a, "b": self.b, "in_order": self.in_order, "delimiter": self.delimiter}
        spec = {"kind": self.kind, "version": self.version, "file": digest, "fields": dict(self.fields)} | options
        spec |= {BY_PEOPLE: True} if self.by_people else {}
        return Identity(spec, parts={os.path.basename(self.path): digest})

    def compare(self, first: Any, second: Any) -> Any:
        raise SpecError("recorded battles belong to runs; use them as the judge of a Matcher")

    def read_matches(self, runs: Sequence[Run], labels: Sequence[str], **options: Any) -> Matches:
        """The matches of runs that the file has; options are those of `Matcher.match`.

        Raises:
            DataError: rows are invalid; reports every fault with file, row and column.
            SpecError: no battle is between two of the runs on one of their examples, or the file has changed since the
                matches to resume were begun.
        """
        with spelled_for("scorer"):
            file = BattleFile(self.path, self.fields, self.a, self.b, self.in_order, self.format, self.delimiter)
        origin = describe_file(self.path, self.fields)
        recorded = _join(file, runs, labels, options.get("limit"))
        matches = store_recorded_matches(
            runs,
            recorded,
            labels=labels,
            judge=dict(self.identify().spec),
            tie_equal=True,
            **options | {"origin": origin | {"origin": dict(options.get("origin") or {})}},
        )
        n = len(recorded)
        matches.receipt = Receipt(n, kept=n, why=f"{plural(n, 'judgement')} read from {file.name}")
        return matches


def _join(file: BattleFile, runs: Sequence[Run], labels: Sequence[str], limit: int | None) -> list[RecordedMatch]:
    """The battles of runs; warns of those that belong to no run or example.

    Raises:
        DataError: rows are invalid.
        SpecError: all battles belong to none.
    """
    places, replications = file.columns.places, min(int(run.manifest["spec"]["replications"]) for run in runs)
    has_ids, indices = "example" in places, _number_examples(file, runs, limit)
    numbers = {label: number for number, label in enumerate(labels)}
    faults, other_systems, other_keys = list[Fault](), list[list[str]](), list[str | None]()
    found: list[RecordedMatch] = []
    n_used = 0
    for row, where in file.rows():
        texts, battles = file.columns.read(row, where, faults)
        for battle in battles:
            others = [system for system in (battle.a, battle.b) if system not in numbers]
            if others or battle.a == battle.b:
                other_systems.append(others or [battle.a])
                continue
            key = battle.example if has_ids else texts.input
            if key not in indices:
                other_keys.append(key)
                continue
            n_used += 1
            replication = battle.replication if "replication" in places else 0
            if (index := indices[key]) is None:
                continue
            if replication >= replications:
                message = f"is {replication}, but the runs have {plural(replications, 'replication')}"
                faults.append(Fault(f"{where}:replication", message))
            found.append(_record(battle, index, numbers, replication))
    if faults:
        raise DataError(faults)
    notes = []
    if other_systems:
        named = ", ".join(dict.fromkeys(system for each in other_systems for system in each))
        notes.append(f"{plural(len(other_systems), 'battle')} of other systems ({named}) than {', '.join(labels)}")
    if other_keys:
        such = next((key for key in other_keys if key), None)
        battles_ = plural(len(other_keys), "battle")
        notes.append(f"{battles_} on examples that the dataset does not have, such as {such!r}")
    if not n_used:
        raise SpecError(f"{file.name} has no battle of these runs: {'; '.join(notes) or 'it is empty'}")
    for note in notes:
        warn(f"{file.name}: {note}, left out")
    return found


def _number_examples(file: BattleFile, runs: Sequence[Run], limit: int | None) -> dict[str | None, int | None]:
    """Id or input of each example → `_index_`; None beyond the limit of the runs or of the matches."""
    n_examples = max(int(run.manifest["spec"]["examples"]) for run in runs)
    n_examples = n_examples if limit is None else min(n_examples, limit)
    indices: dict[str | None, int | None] = {}
    for place, example in enumerate(runs[0].dataset):
        key = example.id if "example" in file.columns.places else as_text(example.input)
        if key in indices:
            raise SpecError(
                f"{file.name} has no ids of examples, and two examples have the input {key!r}; add a column of ids"
            )
        indices[key] = example.index if place < n_examples else None
    return indices


def _record(battle: Battle, index: int, numbers: Mapping[str, int], replication: int) -> RecordedMatch:
    verdict, outcome = battle.verdict, battle.verdict.outcome
    first, second = numbers[battle.a], numbers[battle.b]
    if verdict.order == "ba":
        first, second, outcome = second, first, None if outcome is None else 1 - outcome
    return RecordedMatch(
        index,
        first,
        second,
        outcome,
        verdict.reason,
        replication=replication,
        judge=battle.judge,
        label=verdict.label,
        strength=verdict.strength,
        explanation=verdict.explanation,
        abstained=verdict.status == ABSTAINED,
        in_order=verdict.order is not None,
    )
