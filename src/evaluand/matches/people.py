"""People as judges of pairs: what they are shown, what they answer, and their answers as matches.

    pairs_to_judge(runs) ──▶ a terminal, or a file to fill in ── people ──▶ read_judged ──▶ match_by_people ──▶ Matches

A person sees two responses to one example without the names of the systems, in random order. An answer belongs to the
example and to both responses, not to the runs: it also counts for other runs with the same responses. Pairs come in
random order too, so that those judged so far are a sample of all.

What was judged elsewhere, by people or not, is stored like the matches of a `Matcher`, and nothing is judged again:
`recorded` is the judge of runs whose judgements are in a file of battles.
"""

from __future__ import annotations

import itertools
import math
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from evaluand.core import identity
from evaluand.core.errors import DataError, Fault, SpecError, kind_of, nearest, plural, warn
from evaluand.core.fingerprint import Identity
from evaluand.core.json_like import escape_surrogates
from evaluand.core.labels import short_labels
from evaluand.core.provenance import provenance
from evaluand.data.sources import digest_of_files
from evaluand.engine.keyed_work import Receipt
from evaluand.evaluation.comparison_scorers import ComparisonScorer
from evaluand.judges.people import label_files
from evaluand.judges.people.human_labels import filled_in
from evaluand.matches.battle_rows import Battle, spelled_for
from evaluand.matches.battles import BattleFile, as_text, describe_file
from evaluand.matches.judging import (
    ABSENT,
    ANSWERED,
    Entrants,
    check_labels,
    check_one_dataset,
    check_text,
    is_answered,
    match_batches,
    read_rows,
    seal_matches,
)
from evaluand.matches.matches import BY_PEOPLE, SAID, Matches, describe_left_out
from evaluand.run.excerpts import in_reading_order, to_json
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
        "run_ids": [run.id for run in runs],
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
    cells = [match and {name: getattr(match, name) for name in names} for match in said]
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
        *(index, first, second, outcome),
        *(verdict.reason, replication, battle.judge),
        *(verdict.label, verdict.strength, verdict.explanation),
        abstained=verdict.status == ABSTAINED,
        in_order=verdict.order is not None,
    )


WINNERS: Final[Mapping[str, float | None]] = {"first": 1.0, "second": 0.0, "tie": 0.5, "skip": None}
"""What a person may answer → the share of the win of the response that was shown first."""

FIELDS: Final = ("winner", "by", "explanation")  # which people fill in
COLUMNS: Final = ("key", "id", "input", "first", "second", *FIELDS)  # of a row to fill in

_EXPORT: Final = "`evaluand label pairs --export`"


class PairToJudge(NamedTuple):
    """Two responses to an example, as a person is shown them.

    Attributes:
        key: identifies the example and both responses in this order.
        id: the id of the example.
        input: what the systems saw.
        first, second: the responses, in the order in which they are shown.
    """

    key: str
    id: str
    input: Any
    first: Any
    second: Any

    @property
    def row(self) -> dict[str, Any]:
        """A row to fill in."""
        return dict(zip(COLUMNS, (*self, *[None] * len(FIELDS)), strict=True))

    def filled_in(self, judged: Judged) -> dict[str, Any]:
        """The row with the answer of a person."""
        return self.row | {"winner": judged.winner, "by": judged.by, "explanation": judged.explanation}


class Judged(NamedTuple):
    """The answer of one person about one pair.

    Attributes:
        key: that of the pair.
        winner: a key of `WINNERS`.
        by: the person.
        explanation: the reason.
    """

    key: str
    winner: str
    by: str | None
    explanation: str | None


class People(NamedTuple):
    """Matches judged by people, and how far they are.

    Attributes:
        matches: the matches.
        pairs: how many different pairs there are to judge.
        by: person → how many of them they have judged; skipped ones count.
        unmatched: how many answers belong to none of these pairs.
    """

    matches: Matches
    pairs: int
    by: dict[str | None, int]
    unmatched: int


def pairs_to_judge(runs: Sequence[Run], *, by: str | None = None, seed: int = 0) -> list[PairToJudge]:
    """The pairs of different responses to one example, each once, in random order and in random order within the pair.

    Args:
        runs: over one dataset.
        by: the person; another person gets another order.
        seed: of the random orders.

    Example:
        >>> from evaluand import Dataset, Runner
        >>> data, runner = Dataset.from_rows([{"input": "a"}]), Runner()
        >>> runs = [runner.run(task, data) for task in (str.upper, str.title, lambda text: text * 2)]
        >>> [sorted([pair.first, pair.second]) for pair in pairs_to_judge(runs)]
        [['A', 'aa']]
    """
    if by is not None:
        check_text("by", by)
    found: dict[bytes, tuple[bytes, PairToJudge]] = {}
    for row in _rows(runs):
        for one, other in itertools.combinations(row.responses.values(), 2):
            low, high = sorted((one, other), key=lambda each: each.content)
            if low.content == high.content:
                continue
            draw = identity.digest([seed, by, row.example.digest.hex(), low.content.hex(), high.content.hex()])
            first, second = (low, high) if draw[0] & 1 else (high, low)
            key = _key(row, first, second)
            outputs = (in_reading_order(to_json(each.output)) for each in (first, second))
            pair = PairToJudge(key, row.example.id, to_json(row.example.input), *outputs)
            found[row.example.digest + low.content + high.content] = draw, pair
    return [pair for _, pair in sorted(found.values(), key=lambda each: each[0][1:])]


def read_judged(files: Sequence[Path]) -> list[Judged]:
    """The answers in filled-in files, JSON lines or CSV; rows without a winner are not judged yet.

    Of two answers of one person about one pair the later counts.

    Raises:
        DataError: a row is invalid; reports every fault with file and line.
    """
    rows = [judged for judged in filled_in(files, _judged, written_by=_EXPORT) if judged.winner]
    return [*{(each.key, each.by): each for each in rows}.values()]


def read_to_append(path: Path) -> list[Judged]:
    """The answers in a file of JSON lines, made ready to append more to it; see `label_files.read_to_append`."""
    return label_files.read_to_append(path, COLUMNS, read_judged)


def match_by_people(
    runs: Sequence[Run],
    judged: Sequence[Judged],
    *,
    labels: Sequence[str] | None = None,
    name: str | None = None,
) -> People:
    """The matches of runs as people judged them; each row has the person in `judge`. Pairs not judged are skipped.

    Args:
        runs: over one dataset.
        judged: the answers; those about other responses are left out and reported.
        labels: of the systems; by default the names of the runs without the part that all share.
        name: a name for the matches.

    Raises:
        SpecError: no answer belongs to a pair of these runs.
    """
    known = short_labels([run.name for run in runs], [run.id for run in runs]) if labels is None else labels
    known = check_labels(known, len(runs))
    answers: dict[str, list[Judged]] = {}
    for each in judged:
        if each.by is not None:
            check_text("by", each.by)
        answers.setdefault(each.key, []).append(each)
    recorded: list[RecordedMatch] = []
    used: set[str] = set()
    pairs: set[tuple[bytes, ...]] = set()
    done: dict[str | None, set[tuple[bytes, ...]]] = {}
    for row in _rows(runs):
        for (a, one), (b, other) in itertools.combinations(row.responses.items(), 2):
            if one.content == other.content:
                continue
            pair = (row.example.digest, *sorted((one.content, other.content)))
            pairs.add(pair)
            for first, second, key in ((a, b, _key(row, one, other)), (b, a, _key(row, other, one))):
                for each in answers.get(key, ()):
                    used.add(key)
                    done.setdefault(each.by, set()).add(pair)
                    recorded.append(_recorded(row, first, second, each))
    if judged and not used:
        raise SpecError(
            f"no answer is about a pair of responses of these runs; {plural(len(judged), 'answer')} of other responses"
        )
    matches = store_recorded_matches(runs, recorded, labels=known, judge={"kind": "people"}, name=name, tie_equal=True)
    if (left_out := describe_left_out(runs, known)) is not None:
        warn(left_out)
    unmatched = sum(each.key not in used for each in judged)
    if unmatched:
        verb = "is" if unmatched == 1 else "are"
        warn(f"{plural(unmatched, 'answer')} of {len(judged):,} {verb} about other responses, and {verb} left out")
    return People(matches, len(pairs), {by: len(each) for by, each in done.items()}, unmatched)


def name_matches(runs: Sequence[Run], by: str | None) -> str | None:
    """The usual name of the matches: `PREFIX/ann` if all runs are called `PREFIX/…`; none otherwise."""
    heads = {(run.name or "").rpartition("/")[0] for run in runs}
    return f"{heads.pop()}/{by or 'people'}" if len(heads) == 1 and "" not in heads else None


# The rows of runs


class _Response(NamedTuple):
    output: Any
    content: bytes


class _Row(NamedTuple):
    """An example, the replication, and the response of each system that has one, by number."""

    example: Any
    replication: int
    responses: dict[int, _Response]


def _rows(runs: Sequence[Run]) -> Iterator[_Row]:
    check_one_dataset(runs, "pairs")
    entrants = Entrants.of(runs, [run.id for run in runs])
    streams = [read_rows(run, entrants) for run in runs]
    examples = runs[0].dataset.examples(0, entrants.n_rows // entrants.replications)
    for example, replication in itertools.product(examples, range(entrants.replications)):
        responses = {}
        for number, stream in enumerate(streams):
            response = next(stream, None)
            if response is not None and is_answered(response):
                responses[number] = _Response((response.responses or [None])[0], response.content)
        yield _Row(example, replication, responses)


def _key(row: _Row, first: _Response, second: _Response) -> str:
    return identity.digest_of_text(row.example.digest + first.content + second.content).hex()


def _recorded(row: _Row, first: int, second: int, judged: Judged) -> RecordedMatch:
    outcome = WINNERS[judged.winner]
    return RecordedMatch(
        *(row.example.index, first, second, outcome),
        None if outcome is not None else "the person skipped it",
        row.replication,
        judged.by,
        explanation=judged.explanation and escape_surrogates(judged.explanation),
        abstained=outcome is None,
    )


def _judged(row: Mapping[str, Any]) -> Judged:
    key = row.get("key")
    if not isinstance(key, str) or not key.strip():
        raise DataError(f"has no key; keep the key that {_EXPORT} wrote")
    winner, by, explanation = (_read_text(name, row.get(name)) for name in FIELDS)
    if winner is not None and winner.casefold() not in WINNERS:
        raise DataError(f"winner is {winner!r}{nearest(winner, [*WINNERS])}; give one of {', '.join(WINNERS)}")
    return Judged(key.strip(), (winner or "").casefold(), by, explanation)


def _read_text(name: str, value: Any) -> str | None:
    if value is not None and not isinstance(value, str):
        raise DataError(f"{name} is {kind_of(value)}; give a text")
    return (value or "").strip() or None
