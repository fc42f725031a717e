"""`recorded`: a file of battles, judged elsewhere, as the judge of runs."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from evaluand.core.errors import DataError, Fault, SpecError, plural, warn
from evaluand.core.fingerprint import Identity
from evaluand.data.sources import digest_of_files
from evaluand.engine.keyed_work import Receipt
from evaluand.evaluation.comparison_scorers import ComparisonScorer
from evaluand.matches.battle_export import as_text
from evaluand.matches.battle_rows import Battle
from evaluand.matches.battles import BattleFile, describe_file
from evaluand.matches.column_options import spelled_for
from evaluand.matches.matches import BY_PEOPLE, Matches
from evaluand.matches.recorded import RecordedMatch, store_recorded_matches
from evaluand.run.runner import Run
from evaluand.store.tables import ABSTAINED


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
            file = BattleFile(
                self.path,
                self.fields,
                a=self.a,
                b=self.b,
                in_order=self.in_order,
                format=self.format,
                delimiter=self.delimiter,
            )
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
