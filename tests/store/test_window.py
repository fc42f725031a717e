"""Stores of which only some rows are read, and stores that are only read."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from support.effort import FEW_EXAMPLES

from evaluand.comparison.comparing import compare
from evaluand.data.dataset import Dataset
from evaluand.evaluation.evaluator import Evaluation, Evaluator
from evaluand.run.runner import Run, Runner
from evaluand.store.directory import DirectoryStore
from evaluand.store.overlay import OverlayStore
from evaluand.store.store import MemoryStore, Rows, Store
from evaluand.store.window import WindowedStore

N = 300


def same(output: str, expected: str) -> bool:
    return output == expected


def filled(store: Any) -> tuple[Run, Evaluation]:
    data = Dataset.from_rows([{"input": f"{i}", "expected": f"{i % 7}"} for i in range(N)]).save(store)
    run = Runner(store).run(lambda text: text[-1], data, replications=2)
    return run, Evaluator(store).evaluate(run, {"same": same})


@pytest.fixture(scope="module", params=["memory", "directory"])
def stored(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Any, Run, Evaluation]]:
    """A store with groups and batches of few rows, which divide the two rows of some examples."""
    with pytest.MonkeyPatch.context() as monkey:
        monkey.setattr("evaluand.store.parquet.ROW_GROUP_ROWS", 64)
        monkey.setattr("evaluand.store.parquet.READ_ROWS", 5)
        store: Any = MemoryStore() if request.param == "memory" else DirectoryStore(tmp_path_factory.mktemp("store"))
        yield store, *filled(store)


@settings(max_examples=FEW_EXAMPLES)
@given(indices=st.lists(st.integers(-3, N + 3), max_size=6))
def test_a_window_has_the_rows_of_its_examples_alone(stored: tuple[Any, Run, Evaluation], indices: list[int]) -> None:
    store, run, evaluation = stored
    window: Any = WindowedStore(store, indices)
    wanted = sorted({i for i in indices if 0 <= i < N})
    assert [row.index for row in Run(window, run.id)] == [i for i in wanted for _ in range(2)]
    assert [row.responses for row in Run(window, run.id)] == [row.responses for row in run if row.index in wanted]
    scores = Evaluation(window, evaluation.id).table("same").to_pylist()
    assert scores == [row for row in evaluation.table("same").to_pylist() if row["_index_"] in wanted]
    assert [example.index for example in Run(window, run.id).dataset] == wanted


def test_a_window_reads_only_row_groups_that_have_its_rows(
    stored: tuple[Any, Run, Evaluation], monkeypatch: pytest.MonkeyPatch
) -> None:
    store, run, _ = stored
    if isinstance(store, MemoryStore):
        pytest.skip("a store in memory has no row groups")
    of_one = [*store.read("runs", run.id, "responses", None, Rows(of=np.array([5])))]
    assert sum(batch.num_rows for batch in of_one) < 2 * N
    [none] = store.read("runs", run.id, "responses", ["_index_"], Rows(of=np.zeros(0, np.int64)))
    assert (none.num_rows, none.schema.names) == (0, ["_index_"])


def test_a_window_reads_nothing_after_its_last_row(stored: tuple[Any, Run, Evaluation]) -> None:
    store, run, _ = stored
    seen = []

    class Watched:
        def read(self, *args: Any) -> Iterator[Any]:
            for batch in store.read(*args):
                seen.append(batch.num_rows)
                yield batch

    window = WindowedStore(cast(Store, Watched()), [3, 4])
    assert sum(batch.num_rows for batch in window.read("runs", run.id, "responses")) == 4
    assert sum(seen) < 64 or isinstance(store, MemoryStore)


def test_what_is_written_over_a_store_stays_in_memory(tmp_path: Path) -> None:
    store = DirectoryStore(tmp_path)
    first, second = (filled_with(store, name) for name in ("a", "b"))
    before = sorted(path for path in tmp_path.rglob("*"))
    over: Any = OverlayStore(store)
    comparison = compare(Evaluation(over, first.id), Evaluation(over, second.id), name="mine")
    assert comparison.pairs[0]["n_used"] == 4
    assert over.is_sealed("comparisons", comparison.id)
    assert comparison.id in over.ids("comparisons")
    assert sorted(path for path in tmp_path.rglob("*")) == before
    assert store.ids("comparisons") == []


def filled_with(store: Store, answer: str) -> Evaluation:
    data = Dataset.from_rows([{"input": str(i), "expected": "a"} for i in range(4)]).save(store)
    return Evaluator(store).evaluate(Runner(store).run(lambda text: answer, data), {"same": same})
