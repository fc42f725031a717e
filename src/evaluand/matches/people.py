"""People as judges of pairs: what they are shown, what they answer, and their answers as matches.

    pairs_to_judge(runs) ──▶ a terminal, or a file to fill in ── people ──▶ read_judged ──▶ match_by_people ──▶ Matches

A person sees two responses to one example without the names of the systems, in random order. An answer belongs to the
example and to both responses, not to the runs: it also counts for other runs with the same responses. Pairs come in
random order too, so that those judged so far are a sample of all.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from evaluand.core import identity
from evaluand.core.errors import DataError, SpecError, kind_of, nearest, plural, warn
from evaluand.core.json_like import escape_surrogates
from evaluand.core.labels import short_labels
from evaluand.judges.people import label_files
from evaluand.judges.people.human_labels import filled_in
from evaluand.matches.judging import is_answered, read_rows
from evaluand.matches.matches import Matches, describe_left_out
from evaluand.matches.pairing import Entrants, check_labels, check_one_dataset, check_text
from evaluand.matches.recorded import RecordedMatch, store_recorded_matches
from evaluand.run.excerpts import in_reading_order, to_json
from evaluand.run.runner import Run

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
        row.example.index,
        first,
        second,
        outcome,
        None if outcome is not None else "the person skipped it",
        replication=row.replication,
        judge=judged.by,
        explanation=None if judged.explanation is None else escape_surrogates(judged.explanation),
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
