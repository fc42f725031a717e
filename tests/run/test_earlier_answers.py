"""Answers and scores that are taken from earlier work: the right ones, with their spans, and few rows are read."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from evaluand import Dataset, DirectoryStore, Evaluator, MemoryStore, Run, Runner, task
from evaluand.evaluation.scorer import Score, scorer
from evaluand.run.calls import key_of, numbers_of
from evaluand.trace.spans import TaskSpan


@task(version="1")
def spelled(word: str, task_span: TaskSpan, replication: int) -> str:
    """The letters of a word, a span each; an empty word fails."""
    for letter in word:
        with task_span.span(letter):
            pass
    if not word:
        raise ValueError("no letters")
    return f"{word}-{replication}"


@scorer(version="1")
def by_letter(output: str, expected: str) -> dict[str, Score]:
    """Several scores of one answer."""
    if output.startswith("z"):
        raise ValueError("not gradable")
    return {letter: Score(float(letter in expected)) for letter in dict.fromkeys(output)}


def dataset(words: list[str]) -> Dataset:
    return Dataset.from_rows(
        [{"word": word, "expected": word[::-1]} for word in words], input="word", expected="expected"
    )


def seen(run: Run) -> list[dict[str, Any]]:
    """What a run has but for times, and its spans."""
    rows = run.table().drop_columns(["started", "duration"]).to_pylist()
    spans = [row for batch in run.spans() for row in batch.drop_columns(["start", "duration", "events"]).to_pylist()]
    return [*rows, *spans]


WORDS = st.lists(st.text("abz", max_size=3), min_size=1, max_size=12)


@given(earlier=st.lists(WORDS, min_size=1, max_size=4), words=WORDS, replications=st.integers(1, 3), data=st.data())
@pytest.mark.filterwarnings("ignore::evaluand.evaluation.evaluator.ScorerFailed")
def test_what_is_reused_is_what_would_be_made(
    earlier: list[list[str]],
    words: list[str],
    replications: int,
    data: st.DataObject,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    store = data.draw(st.sampled_from([MemoryStore(), DirectoryStore(tmp_path_factory.mktemp("store"))]))
    known: set[tuple[str, int]] = set()
    for each in earlier:
        times = data.draw(st.integers(1, 3))
        run = Runner(store).run(spelled, dataset(each), replications=times)
        Evaluator(store).evaluate(run, {"letters": by_letter})
        known |= {(word, number) for word in each if word for number in range(times)}
    run = Runner(store).run(spelled, dataset(words), replications=replications)
    evaluation = Evaluator(store).evaluate(run, {"letters": by_letter})
    anew = Runner(MemoryStore()).run(spelled, dataset(words), replications=replications)
    graded = Evaluator(anew.store).evaluate(anew, {"letters": by_letter})
    assert (run.digest, evaluation.digest) == (anew.digest, graded.digest)
    assert seen(run) == seen(anew)
    assert evaluation.table("letters").equals(graded.table("letters"))
    if run.receipt is not None and run.receipt.called + run.receipt.reused:
        wanted = [(word, number) for word in words for number in range(replications)]
        assert run.receipt.called >= sum(each not in known for each in {*wanted})


class CountingStore(DirectoryStore):
    """A store that counts the whole answers that are read."""

    n_read = 0

    def read(self, kind: str, id: str, table: str, columns: list[str] | None = None, *which: Any, **more: Any) -> Any:
        for batch in super().read(kind, id, table, columns, *which, **more):
            self.n_read += batch.num_rows if table == "responses" and columns is None else 0
            yield batch


def test_few_rows_are_read_for_few_answers(tmp_path: Path) -> None:
    store = CountingStore(tmp_path)
    for number in range(6):
        run = Runner(store).run(spelled, dataset([f"{number}-{n}" for n in range(50)]))
        Evaluator(store).evaluate(run, {"letters": by_letter})
    store.n_read = 0
    run = Runner(store).run(spelled, dataset(["2-7", "5-3", "new"]))
    assert run.receipt is not None
    assert (run.receipt.reused, run.receipt.called) == (2, 1)
    assert store.n_read == 2


@given(st.lists(st.tuples(st.binary(min_size=16, max_size=16), st.integers(0, 1 << 20)), min_size=1))
def test_keys_of_many_calls_are_those_of_each(calls: list[tuple[bytes, int]]) -> None:
    digests = np.array([np.frombuffer(digest, ">u8") for digest, _ in calls]).astype(np.uint64)
    numbers = numbers_of(digests, np.array([replication for _, replication in calls]))
    assert [int(number).to_bytes(8, "big") for number in numbers] == [key_of(*call)[:8] for call in calls]


def test_answers_of_a_store_that_was_made_again_are_found_though_an_older_index_is_there(tmp_path: Path) -> None:
    calls: list[str] = []
    is_down = [True]

    @task(version="1")
    def unreliable(word: str) -> str:
        calls.append(word)
        if is_down[0] and word < "m":
            raise ConnectionError("503")
        return word

    words = [f"{letter}{number}" for letter in "az" for number in range(10)]
    few, all_words = dataset(words), dataset([*words, *"bcd"])
    Runner(DirectoryStore(tmp_path / "store")).run(unreliable, few)
    Runner(DirectoryStore(tmp_path / "store")).run(unreliable, all_words)  # indexes the ten answers that are there
    shutil.rmtree(tmp_path / "store")
    is_down[0] = False
    Runner(DirectoryStore(tmp_path / "store")).run(unreliable, few)
    calls.clear()
    Runner(DirectoryStore(tmp_path / "store")).run(unreliable, all_words)
    assert sorted(calls) == ["b", "c", "d"]


def test_answers_of_code_that_changes_the_folder_are_stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []

    @task(version="1")
    def moving(word: str) -> str:
        calls.append(word)
        os.chdir(tmp_path)
        return word

    (tmp_path / "work").mkdir()
    for _ in range(2):
        monkeypatch.chdir(tmp_path / "work")
        run = Runner(DirectoryStore("store")).run(moving, dataset(["a", "b", "c"]))
        assert run.counts == {"completed": 3}
    assert calls == ["a", "b", "c"]
    assert [path.name for path in tmp_path.iterdir()] == ["work"]
