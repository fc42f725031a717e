"""Whenever the removal of artifacts ends, what is left has what it was made from."""

from __future__ import annotations

from pathlib import Path

import pytest

from evaluand import Accuracy, Aggregator, Dataset, DirectoryStore, Evaluator, Runner, compare
from evaluand.aggregation.aggregator import Measure
from evaluand.report.verification import verify
from evaluand.run.task import FunctionTask
from evaluand.store import garbage
from evaluand.store.kinds import kind_names, made_of, origins_last


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
    assert len(items) == sum(len(store.ids(kind)) for kind in kind_names()) == 7
    for item in items:
        assert garbage.remove(store, [item]).left == []
        left = [(kind, id) for kind in kind_names() for id in store.ids(kind)]
        assert [fault for kind, id in left for fault in verify(store, kind, id)] == []
    assert [id for kind in kind_names() for id in store.ids(kind)] == []


def test_what_an_artifact_was_made_from_is_removed_after_it() -> None:
    order = origins_last()
    assert sorted(order) == sorted(kind_names())
    assert all(order.index(made) < order.index(name) for name in order for made in made_of(name))
