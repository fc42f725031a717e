"""Matches that are interrupted between rounds: what is stored counts for them and for others, and is never mixed up."""

from __future__ import annotations

import itertools
import os
import shutil
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from support.fingerprinted import load

from evaluand import Dataset, DirectoryStore, Run, Runner, comparison_scorer
from evaluand.engine import observation
from evaluand.engine.engines.local import InlineEngine
from evaluand.matches import Matcher, Matches, Swiss
from evaluand.report.verification import verify

LABELS = ["one", "two", "three", "four"]
SCHEDULE = Swiss(80, 5)


class StoppedEngine(InlineEngine):
    """Makes so many calls, then the user stops the work."""

    def __init__(self, calls: int) -> None:
        self.left = calls

    def map_lines(self, units: Iterable[Any], recipe: Any, keep: Any, policy: Any) -> None:
        def limited() -> Iterable[Any]:
            for unit in units:
                if not self.left:
                    raise KeyboardInterrupt
                self.left -= 1
                yield unit

        super().map_lines(limited(), recipe, keep, policy)


def answer(number: int) -> Callable[[str], str]:
    return lambda text: f"{text} by {LABELS[number]}"


@pytest.fixture(scope="module")
def runs_of_all(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with the runs of all systems."""
    store = DirectoryStore(tmp_path_factory.mktemp("runs") / "store")
    run_all(store)
    return store.root


@pytest.fixture
def store(runs_of_all: Path, tmp_path: Path) -> DirectoryStore:
    return DirectoryStore(shutil.copytree(runs_of_all, tmp_path / "store"))


def run_all(store: DirectoryStore) -> list[Run]:
    data = Dataset.from_rows([{"input": f"text {number}"} for number in range(20)])
    return [Runner(store).run(answer(number), data, name=LABELS[number]) for number in range(4)]


def open_runs(store: DirectoryStore) -> list[Run]:
    return [Run.open(store, label) for label in LABELS]


class Referee:
    """A judge that remembers what it said, and may change its mind."""

    def __init__(self) -> None:
        self.turned = False
        self.said: list[tuple[str, str, str]] = []
        self.judge = comparison_scorer(self.compare, name="referee", version="1")

    def compare(self, first: str, second: str) -> str:
        better = "first" if (first.split()[-1] < second.split()[-1]) != self.turned else "second"
        self.said.append((first, second, better))
        return better


def match(store: DirectoryStore, runs: list[Run], judge: Any, *, stop: int | None = None, **options: Any) -> Matches:
    engine = InlineEngine() if stop is None else StoppedEngine(stop)
    options = {"schedule": SCHEDULE, "labels": LABELS[: len(runs)], **options}
    return Matcher(store, engine=engine).match(runs, judge, **options)


def interrupt(store: DirectoryStore, runs: list[Run], judge: Any, stop: int, **options: Any) -> None:
    with pytest.raises(KeyboardInterrupt):
        match(store, runs, judge, stop=stop, **options)


def receipt_of(matches: Matches) -> tuple[int, int, int]:
    """How many judgements were made now, reused and kept."""
    assert matches.receipt is not None
    return matches.receipt.called, matches.receipt.reused, matches.receipt.kept


def test_interrupted_rounds_continue_where_they_were(store: DirectoryStore) -> None:
    runs, referee = open_runs(store), Referee()
    interrupt(store, runs, referee.judge, 37)
    interrupt(store, runs, referee.judge, 20)
    matches = match(store, runs, referee.judge)
    assert receipt_of(matches) == (23, 0, 57)
    assert max(Counter((first, second) for first, second, _ in referee.said).values()) == 1
    assert verify(store, "matches", matches.id) == []


def test_others_reuse_the_judgements_of_all_rounds_of_open_matches(store: DirectoryStore) -> None:
    runs, referee = open_runs(store), Referee()
    interrupt(store, runs, referee.judge, 57)
    assert receipt_of(match(store, runs, referee.judge, schedule=None)) == (240 - 57, 57, 0)
    assert receipt_of(match(store, runs, referee.judge)) == (0, 23, 57)


def test_judgements_follow_their_pairs_when_an_earlier_round_is_judged_otherwise(store: DirectoryStore) -> None:
    """As when a judge that is not deterministic repeats damaged lines."""
    runs, referee = open_runs(store), Referee()
    interrupt(store, runs, referee.judge, 44)  # 16 in each round
    for path in (store.root / "matches").glob("*/journal/round0/*.lines"):
        path.write_bytes(b"")
    before, referee.turned = len(referee.said), True
    matches = match(store, runs, referee.judge)
    assert 16 + 36 <= len(referee.said) - before <= 16 + 36 + 28
    said = {(first, second): better for first, second, better in referee.said}
    for row in matches.table().to_pylist():
        texts = [f"text {row['_index_']} by {LABELS[row[side]]}" for side in ("a", "b")]
        first, second = texts if row["order"] == "ab" else texts[::-1]
        assert row["first"] == (said[first, second] == "first")
    assert verify(store, "matches", matches.id) == []
    assert len(matches.table()) == 80


def test_rounds_depend_on_complete_rounds_alone(store: DirectoryStore, tmp_path: Path) -> None:
    runs, referee = open_runs(store), Referee()
    for stop in (17, 30):
        interrupt(store, runs, referee.judge, stop)
    other = DirectoryStore(tmp_path / "other")
    assert match(store, runs, referee.judge).digest == match(other, run_all(other), Referee().judge).digest


READING = """
    from pathlib import Path

    RULES = Path(__file__).parent / "rules.txt"

    def judge(first, second):
        return "first" if RULES.read_text() < second[-3:] else "second"
    """


def settle(path: Path, text: str, seconds: int) -> None:
    path.write_text(text)
    os.utime(path, (seconds, seconds))


def judge_of(folder: Path) -> Any:
    """The judge as a new process would load it."""
    observation._opened.clear()
    observation._places.clear()
    observation._named.clear()
    return load(folder, READING, "judging").judge


@pytest.mark.usefixtures("no_bytecode_files")
def test_files_that_a_judge_opens_are_known_in_every_round(store: DirectoryStore, tmp_path: Path) -> None:
    runs, folder = open_runs(store), tmp_path / "code"
    folder.mkdir()
    settle(folder / "rules.txt", "our", 1_000_000)
    interrupt(store, runs, judge_of(folder), 57)
    interrupt(store, runs, judge_of(folder), 10)
    assert receipt_of(match(store, runs, judge_of(folder), schedule=None)) == (240 - 67, 67, 0)
    matches = match(store, runs, judge_of(folder))
    assert receipt_of(matches) == (0, 13, 67)
    assert receipt_of(match(store, runs, judge_of(folder)))[0] == 0
    settle(folder / "rules.txt", "two", 1_000_001)
    again = match(store, runs, judge_of(folder))
    assert receipt_of(again) == (80, 0, 0)
    assert again.id != matches.id


def test_equal_and_missing_responses_have_one_row_in_each_order(store: DirectoryStore) -> None:
    """Also where all responses are judged at once."""
    data = Dataset.from_rows([{"input": text} for text in ("a", "b")])

    def same(text: str) -> str:
        return text

    def also_same(text: str) -> str:
        if text == "b":
            raise ValueError("no idea")
        return text

    runs = [Runner(store).run(task, data) for task in (same, also_same, str.upper)]
    longest = comparison_scorer(lambda responses: [len(response) for response in responses])
    matches = Matcher(store).match(runs, longest, labels=["a", "b", "c"])
    keys = [tuple(row.values()) for row in matches.table(["_index_", "a", "b", "order"]).to_pylist()]
    pairs = itertools.combinations(range(3), 2)
    assert keys == [(i, a, b, order) for i, (a, b) in itertools.product(range(2), pairs) for order in ("ab", "ba")]
