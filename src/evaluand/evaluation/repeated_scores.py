"""Scores of code without a declared version are given again, a few of them, before stored ones are reused."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
import orjson

from evaluand.core.errors import EngineError
from evaluand.engine.engines.local import make_calls
from evaluand.engine.observation import machinery
from evaluand.engine.outcome import Outcome as CallOutcome
from evaluand.engine.policy import Policy
from evaluand.engine.repeated import Outcome, Repeatable, check_reuse, is_harmless
from evaluand.engine.reuse import InputCheck
from evaluand.evaluation.earlier_scores import read_scores
from evaluand.evaluation.grading import Grader
from evaluand.evaluation.scorer import Scorer
from evaluand.evaluation.units import RowStream, Unit, app_of, name_of, targets_of
from evaluand.run.kind import RUNS
from evaluand.run.runner import Run
from evaluand.store.store import Manifest, Store

_N_CELLS = 9  # of a score in the journal, before its usage


def check_scores(
    store: Store, sources: Sequence[str], work: str, scorer: Scorer, inputs: InputCheck, policy: Policy
) -> Outcome:
    """Whether the scores of earlier evaluations are given again the same; none of code with a version is asked for.

    Args:
        sources: the ids of the evaluations, the first to be checked first.
        work: identifies the scorer.
    """
    facts = inputs.identity.observed
    if facts is None or facts.is_versioned or scorer.is_batch:
        return Outcome()

    def total(manifest: Manifest) -> int:
        counts: dict[str, int] = store.manifest(RUNS, manifest["provenance"]["run"])["counts"]
        return sum(counts.values())

    def read(id: str, slots: np.ndarray[Any, Any]) -> Iterator[Repeatable]:
        seconds = _seconds_of_row(store.manifest("evaluations", id))
        for scores, opened in read_scores(store, id, work, slots):
            for slot, digest, (_, rows) in scores:
                node, cells = opened.of(slot), orjson.loads(orjson.dumps(rows))
                is_free = not any(row[_N_CELLS:] for row in cells)
                if is_free and is_harmless(node, opened.nodes) and inputs.holds(node, opened):
                    yield Repeatable(slot, [digest.hex(), [row[:_N_CELLS] for row in cells]], seconds)

    def repeat(id: str, slots: Sequence[int]) -> dict[int, Any]:
        run = Run(store, store.manifest("evaluations", id)["provenance"]["run"])
        grader = Grader(scorer, policy, targets_of(run), app_of(run), name_of(run))
        again: dict[int, Any] = {}

        def keep(unit: Unit, outcome: CallOutcome) -> None:
            slot, digest, rows = orjson.loads(grader.line(unit, outcome)[0])
            again[slot] = [digest, [row[:_N_CELLS] for row in rows]]

        stream = RowStream(run, scorer)
        scorer.prepare()
        try:
            with machinery():
                make_calls((u for slot in slots for u in stream.take(slot, slot + 1)), grader.call, keep, policy)
        finally:
            scorer.close()
        return again

    with suppress(EngineError):  # what is damaged is reported where it would be used
        return check_reuse(store, "evaluations", sources, work, total, read, repeat, facts.libraries)
    return Outcome()


def _seconds_of_row(manifest: Manifest) -> float:
    """How long a score took at most, as far as the times of an evaluation say."""
    begun, ended = (dt.datetime.fromisoformat(str(manifest[name])) for name in ("created", "sealed"))
    seconds: float = (ended - begun).total_seconds()
    rows: int = max(1, *(sum(counts.values()) for counts in manifest["counts"].values()))
    return seconds / rows
