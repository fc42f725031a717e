"""Whenever the removal of artifacts ends, what is left has what it was made from."""

from __future__ import annotations

from pathlib import Path

import pytest

from evaluand import Accuracy, Aggregator, Dataset, DirectoryStore, Evaluator, Runner, compare
from evaluand.aggregation.aggregator import Measure
from evaluand.report.verification import verify
from evaluand.run.task import FunctionTask
from evaluand.store import garbage
from evaluand.store.store import KINDS


def test_nothing_is_left_without_what_it_was_made_from(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(garbage, "QUIET_SECONDS", 0)
    store = DirectoryStore(tmp_path)
    data = Dataset.from_rows([{"input": f"{i}", "expected": f"{i}"} for i in range(4)])
    graded = []
    for name in ("a", "b"):
        run = Runner(store).run(FunctionTask(str, name=name, version=name), data)
        graded.append(Evaluator(store).evaluate(run, {"same": lambda output, expected: output == expected}))
    Aggregator(store).aggregate(graded, [Measure("same", Accuracy())])
    compare(*graded)
    items = garbage.leftovers(store, unreferenced=True)
    assert len(items) == sum(len(store.ids(kind)) for kind in KINDS) == 6
    for item in items:
        assert garbage.remove(store, [item]).left == []
        left = [(kind, id) for kind in KINDS for id in store.ids(kind)]
        assert [fault for kind, id in left for fault in verify(store, kind, id)] == []
    assert [id for kind in KINDS for id in store.ids(kind)] == []


def test_every_kind_has_a_place_in_the_order_of_removal() -> None:
    assert sorted(garbage._ORIGINS_LAST) == sorted(KINDS)
