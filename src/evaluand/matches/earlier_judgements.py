"""The judgements in earlier matches: how they are read, and given again."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import pyarrow as pa
from orjson import Fragment

from evaluand.core import identity as ids
from evaluand.core.key_columns import INDEX
from evaluand.engine.policy import Policy
from evaluand.engine.reuse import Inputs
from evaluand.evaluation.comparison_scorers import STRENGTH, ComparisonScorer
from evaluand.evaluation.earlier_scores import EarlierGrades
from evaluand.evaluation.grading import N_FIELDS
from evaluand.evaluation.units import Unit
from evaluand.matches.judging import (
    SPANS_TABLE,
    ComparisonGrader,
    Entrants,
    JudgeView,
    Presentations,
    Presenter,
)
from evaluand.matches.matches import Matches
from evaluand.matches.schedule import Pairs
from evaluand.run.earlier_work import Records, Repeats
from evaluand.run.responses import span_rows
from evaluand.run.runner import Run
from evaluand.store.journal import WorkLog
from evaluand.store.store import Manifest, journalled
from evaluand.store.tables import FAILED

INPUTS: Final = "inputs"


@dataclass
class EarlierJudgements(EarlierGrades):
    """What a judge has said in earlier matches."""

    scorer: ComparisonScorer

    kind = "matches"

    @property
    def what(self) -> str:
        return "judgements"

    @property
    def code(self) -> str:
        return ids.digest({"judge": self.inputs.identity.spec}).hex()

    def read(self, id: str, slots: np.ndarray | None = None) -> Iterator[tuple[Records, Inputs]]:
        matches = Matches(self.store, id)
        if "digest" in matches.manifest:  # not asked of the store, where another process may have sealed it meanwhile
            records = _sealed_judgements(matches, self.scorer.compares_all)
            wanted = records if slots is None else (record for record in records if record[0] in slots)
            yield wanted, Inputs.stored(self.store, "matches", id, INPUTS)
            return
        for number in itertools.count():
            with closing(self.store.lane("matches", id, f"round{number}", None)) as lane:
                lane.refresh()
                if not lane.n_done:
                    return
                with journalled("matches", id):
                    yield _open_judgements(lane), Inputs.written(lane, N_FIELDS)

    def spec_in(self, manifest: Manifest) -> Mapping[str, Any] | None:
        spec: Mapping[str, Any] | None = manifest["spec"].get("judge")
        return spec

    def count_slots(self, manifest: Manifest) -> int:
        return sum(batch.num_rows for batch in Matches(self.store, manifest["id"]).judgements([]))

    @contextmanager
    def repeating(self, id: str, slots: Sequence[int], policy: Policy) -> Iterator[Repeats[Unit]]:
        grader = ComparisonGrader(self.scorer, policy)
        units = _units_at(Matches(self.store, id), self.scorer, slots)
        self.scorer.prepare()
        try:
            yield units, grader.call, grader.line
        finally:
            self.scorer.close()


def _units_at(matches: Matches, judge: ComparisonScorer, slots: Sequence[int]) -> Iterator[Unit]:
    """What a judge saw in some judgements."""
    spec, runs = matches.manifest["spec"], [Run(matches.store, id) for id in matches.manifest["provenance"]["runs"]]
    entrants = Entrants.of(runs, spec["systems"], spec.get("limit"))
    presenter = Presenter(entrants, spec["orders"], spec["seed"], JudgeView.of(judge))
    rows = [
        row for batch in matches.judgements([INDEX, "replication", "a", "b", "digest"]) for row in batch.to_pylist()
    ]
    slot_of = {row["digest"]: row["judgement"] for row in rows if row["judgement"] in slots}
    if judge.compares_all:
        shown = presenter.groups()
    else:
        position = {index: at for at, index in enumerate(entrants.index.tolist())}
        met = {(position[row[INDEX]] * entrants.replications + row["replication"], row["a"], row["b"]) for row in rows}
        shown = presenter.pairs(Pairs(*np.array(sorted(met), np.int64).T))
    chosen = sorted({key: at for at, key in enumerate(map(bytes, shown.keys)) if key in slot_of}.values())
    stream = Presentations(runs, entrants, shown.rows[chosen], shown.presented[chosen], shown.keys[chosen])
    return (replace(unit, slot=slot_of[unit.digest]) for unit in stream.take(0, len(chosen)))


def _open_judgements(lane: WorkLog) -> Records:
    """(slot, key, record without slot and inputs) of what a judge has said in open matches."""
    for slot, digest, scores, *_ in lane.records():
        if scores[0][2] != FAILED:
            yield slot, bytes.fromhex(digest), [digest, scores]


def _sealed_judgements(matches: Matches, compares_all: bool) -> Records:
    """The same of sealed matches, each judgement once; its slot is its number."""
    names = ["judgement", "digest", "status", "reason", "first", "label", "data", "explanation", "strength", "usage"]
    spans = _stored_spans(matches)
    rows = (row for batch in matches.judgements(names) for row in batch.to_pylist())
    for row in rows:
        if row["status"] != FAILED:
            number, value = row["judgement"], None if compares_all else row["first"]
            data, usage = (None if row[name] is None else Fragment(row[name]) for name in ("data", "usage"))
            score = [0, None, row["status"], row["reason"], value, row["label"], data, row["explanation"]]
            others = [usage, spans[number]] if number in spans else [] if usage is None else [usage]
            yield number, row["digest"], [row["digest"].hex(), [[*score, {STRENGTH: row["strength"]}, *others]]]


def _stored_spans(matches: Matches) -> dict[int, list[list[Any]]]:
    """The steps of the calls of a judge, by judgement, as in the journal."""
    found: dict[int, list[list[Any]]] = {}
    if SPANS_TABLE in matches.manifest["tables"]:
        for batch in matches.store.read("matches", matches.id, SPANS_TABLE):
            with_replication = batch.add_column(1, "replication", pa.array([0] * batch.num_rows))
            for number, _, span in span_rows(with_replication):
                found.setdefault(number, []).append(span)
    return found
