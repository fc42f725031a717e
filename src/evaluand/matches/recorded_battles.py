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
from evaluand.matches.battles import BattleFile, file_origin
from evaluand.matches.column_options import spelled_for
from evaluand.matches.matches import BY_PEOPLE, Matches
from evaluand.matches.recorded import RecordedMatch, store_recorded_matches
from evaluand.run.runner import Run


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
            file = BattleFile.open(
                self.path,
                self.fields,
                a=self.a,
                b=self.b,
                in_order=self.in_order,
                format=self.format,
                delimiter=self.delimiter,
            )
        reader = _Reader(file, runs, labels, options.get("limit"))
        recorded = reader.read()
        reader.report()
        matches = store_recorded_matches(
            runs,
            recorded,
            labels=labels,
            judge=dict(self.identify().spec),
            tie_equal=True,
            **options | {"origin": file_origin(self.path, self.fields) | {"origin": dict(options.get("origin") or {})}},
        )
        n = len(recorded)
        matches.receipt = Receipt(n, kept=n, why=f"{plural(n, 'judgement')} read from {file.name}")
        return matches


class _Reader:
    """Finds the runs and examples of battles."""

    def __init__(self, file: BattleFile, runs: Sequence[Run], labels: Sequence[str], limit: int | None) -> None:
        self._file, self._labels = file, labels
        self._numbers = {label: number for number, label in enumerate(labels)}
        self._replications = min(int(run.manifest["spec"]["replications"]) for run in runs)
        n_examples = max(int(run.manifest["spec"]["examples"]) for run in runs)
        self._has_ids = "example" in file.columns.places
        self._indices: dict[str | None, int | None] = {}  # None beyond the limit of the runs or of the matches
        n_examples = n_examples if limit is None else min(n_examples, limit)
        for place, example in enumerate(runs[0].dataset):
            key = example.id if self._has_ids else as_text(example.input)
            if key in self._indices:
                raise SpecError(
                    f"{file.name} has no ids of examples, and two examples have the input {key!r}; add a column of ids"
                )
            self._indices[key] = example.index if place < n_examples else None
        self._other_systems: dict[str, None] = {}
        self._n_read = self._n_used = self._n_other_examples = self._n_other_systems = 0
        self._other_example: str | None = None

    def read(self) -> list[RecordedMatch]:
        faults: list[Fault] = []
        found: list[RecordedMatch] = []
        for row, where in self._file.rows():
            texts, battles = self._file.columns.read(row, where, faults)
            for battle in battles:
                match = self._match(battle, texts.input)
                if match is not None and match.replication >= self._replications:
                    message = f"is {match.replication}, but the runs have {plural(self._replications, 'replication')}"
                    faults.append(Fault(f"{where}:replication", message))
                elif match is not None:
                    found.append(match)
        if faults:
            raise DataError(faults)
        return found

    def report(self) -> None:
        """Warns of battles that belong to no run or example; raises a SpecError if all do."""
        notes = []
        if self._n_other_systems:
            others = ", ".join(self._other_systems)
            known = ", ".join(self._labels)
            notes.append(f"{plural(self._n_other_systems, 'battle')} of other systems ({others}) than {known}")
        if self._n_other_examples:
            battles, such = plural(self._n_other_examples, "battle"), f"such as {self._other_example!r}"
            notes.append(f"{battles} on examples that the dataset does not have, {such}")
        if not self._n_used:
            raise SpecError(f"{self._file.name} has no battle of these runs: {'; '.join(notes) or 'it is empty'}")
        for note in notes:
            warn(f"{self._file.name}: {note}, left out")

    def _match(self, battle: Battle, input: str | None) -> RecordedMatch | None:
        others = [system for system in (battle.a, battle.b) if system not in self._numbers]
        if others or battle.a == battle.b:
            self._other_systems |= dict.fromkeys(others or [battle.a])
            self._n_other_systems += 1
            return None
        key = battle.example if self._has_ids else input
        if key not in self._indices:
            self._other_example = self._other_example or key
            self._n_other_examples += 1
            return None
        self._n_used += 1
        index = self._indices[key]
        if index is None:
            return None
        first, second = (self._numbers[system] for system in (battle.a, battle.b))
        verdict, outcome = battle.verdict, battle.verdict.outcome
        if battle.order == "ba":
            first, second, outcome = second, first, None if outcome is None else 1 - outcome
        return RecordedMatch(
            index,
            first,
            second,
            outcome,
            verdict.reason,
            replication=battle.replication if "replication" in self._file.columns.places else 0,
            judge=battle.judge,
            label=verdict.label,
            strength=verdict.strength,
            explanation=battle.explanation,
            abstained=verdict.status == "abstained",
            in_order=battle.order is not None,
        )
