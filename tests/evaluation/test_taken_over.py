"""An evaluation of which another worker takes over a part, and one whose last attempt is damaged."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from evaluand import Dataset, DirectoryStore, Evaluator, Policy, Runner, Scorer
from evaluand.evaluation.scorer import Score
from evaluand.store import leases
from evaluand.store.manifests import DamagedFile

ROWS, STOPPED_AT = 1000, 300
calls: Counter[str] = Counter()


@dataclass(frozen=True)
class Stopped(Scorer):
    """A scorer whose process stops once for longer than a lease, in which another worker takes over."""

    kind = "stopped"
    version = 1

    def score(self, output: Any, expected: Any) -> Score:
        calls[output] += 1
        if calls.total() == STOPPED_AT:
            take_over(DirectoryStore(output.partition(" ")[0]))
        return Score(1.0)


def take_over(store: DirectoryStore) -> None:
    time.sleep(1.2 * leases.LEASE_SECONDS)
    [id] = store.ids("evaluations")
    lane = store.lane("evaluations", id, "scorer0", ROWS)
    assert lane.leases.claim(len(lane.shards)) == (lane.shards.find(STOPPED_AT - 1), 1)
    lane.close()


def test_a_worker_that_was_taken_over_repeats_the_row_in_flight(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leases, "LEASE_SECONDS", 0.3)
    monkeypatch.setattr(leases.FileLeases, "_start_beating", lambda self: None)  # its threads stop as well
    calls.clear()
    store = DirectoryStore(tmp_path / "store")
    examples = [{"input": f"{store.root} {n}", "expected": ""} for n in range(ROWS)]
    run = Runner(store).run(str, Dataset.from_rows(examples))
    evaluation = Evaluator(store, Policy(concurrency=1)).evaluate(run, {"stopped": Stopped()})
    assert evaluation.counts == {"stopped": {"scored": ROWS}}
    assert len(calls) == ROWS
    assert calls.total() - ROWS == 1


def test_a_fresh_evaluation_is_made_where_the_last_is_damaged(tmp_path: Path) -> None:
    store = DirectoryStore(tmp_path / "store")
    run = Runner(store).run(str.upper, Dataset.from_rows([{"input": "a", "expected": "A"}]))
    first = Evaluator(store).evaluate(run, {"same": "exact_match"})
    (tmp_path / "store" / "evaluations" / first.id / "manifest.json").write_text("{")
    with pytest.raises(DamagedFile):
        Evaluator(DirectoryStore(tmp_path / "store")).evaluate(run, {"same": "exact_match"})
    again = Evaluator(DirectoryStore(tmp_path / "store")).evaluate(run, {"same": "exact_match"}, fresh=True)
    assert (again.digest, again.id != first.id) == (first.digest, True)
