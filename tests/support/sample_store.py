"""A small store with everything that a store can have: sealed and open artifacts of every kind, names and journals."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from evaluand import (
    Accuracy,
    Aggregator,
    App,
    Dataset,
    DirectoryStore,
    Evaluator,
    Feedback,
    Matcher,
    Run,
    Runner,
    compare,
    comparison_scorer,
    rate,
)
from evaluand.aggregation.aggregator import Measure
from evaluand.engine.policy import Policy
from evaluand.evaluation.scorer import scorer
from evaluand.judges.cards.card import make_card
from evaluand.matches.labelled_sets import read_labelled_file
from evaluand.matches.schedule import Swiss
from evaluand.run.task import task
from support.forks import call_in_fork

ROWS = 24
OPEN_CALLS = 15  # of the calls of what is open
POLICY = Policy(concurrency=1)


@dataclass
class Calls:
    """The calls of tasks and scorers: how many there may be, and the inputs of those that were made."""

    most: float = float("inf")
    made: list[int] = field(default_factory=list)

    def count(self, number: int) -> None:
        if len(self.made) >= self.most:
            raise KeyboardInterrupt
        self.made.append(number)

    def __fingerprint__(self) -> tuple[()]:
        """Nothing: what is counted is no part of the code."""
        return ()


calls = Calls()


@contextmanager
def counted(most: float = float("inf")) -> Iterator[list[int]]:
    """Counts the calls in a block; after `most` of them, the user stops the work."""
    calls.most, calls.made = most, []
    with suppress(KeyboardInterrupt):
        yield calls.made
    calls.most = float("inf")


@task(version="1")
def double(number: int) -> dict[str, Any]:
    calls.count(number)
    if number % 7 == 3:
        raise ValueError(f"{number} is too hard")
    return {"answer": number * 2, "text": "words " * (number % 5)}


@task(version="1")
def nearly(number: int) -> dict[str, Any]:
    calls.count(number)
    return {"answer": number * 2 + (number % 4 == 0), "text": ""}


@task(version="open")
def begun(number: int) -> dict[str, Any]:
    return double.function(number)  # type: ignore[attr-defined, no-any-return]


@scorer(version="1")
def right(output: Any, expected: Any) -> bool:
    return bool(output["answer"] == expected)


@scorer(version="open")
def slowly(output: Any, expected: Any, index: int) -> bool:
    calls.count(index)
    return bool(output["answer"] == expected)


@comparison_scorer(name="longer", version="1")
def longer(first: Any, second: Any) -> float:
    return float(len(first["text"]) > len(second["text"]))


@comparison_scorer(version="open")
def slowly_closer(first: Any, second: Any, expected: Any) -> str | None:
    calls.count(expected + bool(first["text"]))
    errors = [abs(each["answer"] - expected) for each in (first, second)]
    if errors[0] == errors[1]:
        return "tie" if expected % 5 else None
    return "first" if errors[0] < errors[1] else "second"


def answer(question: str) -> str:
    return question.upper()


def is_short(text: str) -> float:
    return float(len(text) < 9)


def dataset() -> Dataset:
    rows = [{"number": n, "twice": n * 2, "even": n % 2 == 0} for n in range(ROWS)]
    return Dataset.from_rows(rows, name="numbers", input="number", expected="twice", attributes=["even"])


def finish_run(store: DirectoryStore) -> Run:
    """Does what is missing in the run that was interrupted."""
    return Runner(store, POLICY).run(begun, dataset(), name="sample/open")


def finish_evaluation(store: DirectoryStore) -> Any:
    """Does what is missing in the evaluation that was interrupted."""
    return Evaluator(store, POLICY).evaluate(Run.open(store, "sample/double"), {"slowly": slowly}, name="sample/slowly")


def finish_matches(store: DirectoryStore) -> Any:
    """Does what is missing in the matches that were interrupted in their second round."""
    runs = [Run.open(store, name) for name in ("sample/double", "sample/nearly")]
    return Matcher(store, POLICY).match(runs, slowly_closer, schedule=Swiss(24, 3), name="sample/slowly")


def make(folder: Path, *, recordings: bool = True) -> DirectoryStore:
    """Makes the store in a folder that does not exist yet."""
    store = DirectoryStore(folder)
    if recordings:  # an app that dies without closing its recording, forked while no other thread is at work
        assert call_in_fork(lambda: _record(store, "killed")) == 0
    runner, evaluator = Runner(store, POLICY), Evaluator(store, POLICY)
    evaluations, runs = [], []
    for each in (double, nearly):
        run = runner.run(each, dataset(), name=f"sample/{each.name}")
        runs.append(run)
        evaluations.append(evaluator.evaluate(run, {"right": right}, name=f"sample/{each.name}"))
    Aggregator(store).aggregate(evaluations, [Measure("right", Accuracy(), by=("even",))], name="sample")
    compare(*evaluations, name="sample/two")
    matches = Matcher(store, POLICY).match(runs, longer, labels=["double", "nearly"], name="sample/matches")
    rate(matches, penalty=1.0, name="sample/ratings")
    labelled = [{"id": n, "label": n % 2, "judgement": n % 3 % 2, "input": f"question {n}"} for n in range(ROWS)]
    make_card(read_labelled_file(labelled, "judge"), store, name="sample/card")
    with counted(OPEN_CALLS):
        finish_run(store)
    with counted(OPEN_CALLS):
        finish_evaluation(store)
    with counted(OPEN_CALLS):
        finish_matches(store)
    if recordings:
        _record(store, "closed")
    return store


def _record(store: DirectoryStore, version: str) -> None:
    feedbacks = {"short": Feedback(is_short, version="1").on_output()}
    app = App(answer, name="guide", version=version, feedbacks=feedbacks, mode="with_app", store=store)
    recording = app.__enter__()
    for number in range(6):
        app.app(f"question {number}")
    if version == "killed":
        os._exit(0)
    app.__exit__(None, None, None)
    recording.close()
