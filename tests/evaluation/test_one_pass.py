"""Scorers that neither wait nor cost: they grade in one pass over the rows, and without a journal."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from evaluand import Candidates, Dataset, DirectoryStore, Evaluation, Evaluator, MemoryStore, Run, Runner, Score, Scorer
from evaluand.core.errors import TaskError
from evaluand.engine.outcome import Aborted
from evaluand.evaluation import evaluator
from evaluand.evaluation.sample import draw_sample
from evaluand.evaluation.units import RowStream

pytestmark = pytest.mark.filterwarnings(
    "ignore::evaluand.evaluation.evaluator.ScorerFailed", "ignore::evaluand.evaluation.preflight.NeverEqual"
)

VALUES = st.one_of(
    st.none(), st.booleans(), st.integers(-3, 3), st.text("ab ", max_size=3), st.lists(st.text("ab", max_size=2))
)


@dataclass(frozen=True)
class Whole(Scorer):
    """Grades by everything that a scorer can see, and gives all that a score can hold."""

    kind = "whole"
    version = 1
    cheap = True
    by_target: Any = False

    @property
    def arguments(self) -> tuple[str, ...]:
        return ("output", "expected", "index", "replication")

    @property
    def columns(self) -> dict[str, str]:
        return {"seen": "json", "length": "int64"}

    def score(self, output: Any, expected: Any, index: int, replication: int) -> Score:
        if output == "b":
            raise ValueError("b")
        if output is False:
            return Score.abstained("false")
        seen = [output, expected, index, replication]
        return Score(
            float(index), str(output), {"of": expected}, "so", columns={"seen": seen, "length": len(str(seen))}
        )


SCORERS = {"whole": Whole(), "exact": "exact_match", "rouge": "rouge", "equal": "json_equality"}


def answers_of(outputs: list[Any], replications: int) -> tuple[Any, Run]:
    rows = [{"input": n, "expected": outputs[-n]} for n in range(len(outputs))]

    def answer(number: int) -> Any:
        output = outputs[number]
        if output == "a":
            raise ValueError("a")
        return Candidates(output) if type(output) is list and output else output

    store = MemoryStore()
    return store, Runner(store).run(answer, Dataset.from_rows(rows), replications=replications)


@given(st.lists(VALUES, min_size=1, max_size=12), st.integers(1, 2), st.booleans())
def test_scorers_together_give_what_each_gives_alone(outputs: list[Any], replications: int, is_sample: bool) -> None:
    _, run = answers_of(outputs, replications)
    sample = draw_sample(run, 0.5) if is_sample else None
    together = Evaluator(MemoryStore()).evaluate(run, SCORERS, sample=sample)
    for name, kind in SCORERS.items():
        alone = Evaluator(MemoryStore()).evaluate(run, {name: kind}, sample=sample)
        assert together.table(name).equals(alone.table(name))
        assert together.counts[name] == alone.counts[name]
    total = sum(run.counts.values())
    assert together.receipt is not None
    assert together.receipt.called + together.receipt.skipped == len(SCORERS) * total


@given(st.lists(VALUES, min_size=1, max_size=12))
def test_a_scorer_gives_the_same_with_a_journal(outputs: list[Any]) -> None:
    @dataclass(frozen=True)
    class Journalled(Whole):
        kind = "whole"
        version = 1
        cheap = False

    _, run = answers_of(outputs, 1)
    tables = [
        Evaluator(MemoryStore()).evaluate(run, {"whole": kind}).table("whole") for kind in (Whole(), Journalled())
    ]
    assert tables[0].equals(tables[1])


def read_rows(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How often rows are read from now on, in one entry for each pass."""
    passes: list[int] = []
    take = RowStream.take

    def counted(self: RowStream, start: int, stop: int) -> Any:
        passes.append(0)
        for unit in take(self, start, stop):
            passes[-1] += 1
            yield unit

    monkeypatch.setattr(RowStream, "take", counted)
    return passes


def test_rows_are_read_once_for_all_that_see_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    run = Runner().run(str.upper, Dataset.from_rows([{"input": "a", "expected": "A"}] * 700))
    passes = read_rows(monkeypatch)
    evaluation = Evaluator().evaluate(run, {f"exact{n}": "exact_match" for n in range(20)} | {"whole": Whole()})
    assert passes == [512, 188] * 2  # of those that see where a row is, and of the others
    assert [*evaluation.counts.values()] == [{"scored": 700}] * 21


def test_nothing_is_written_before_the_tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = DirectoryStore(tmp_path / "store")
    run = Runner(store).run(str.upper, Dataset.from_rows([{"input": "a", "expected": "A"}] * 700))
    stopped: list[Any] = []

    def stop(*given: Any) -> Any:
        stopped.append(sum(path.stat().st_size for path in (store.root / "evaluations").rglob("*.lines")))
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(evaluator, "_keys", stop)
        with pytest.raises(KeyboardInterrupt):
            Evaluator(store).evaluate(run, {"exact": "exact_match"})
    assert stopped == [0]
    evaluation = Evaluator(store).evaluate(run, {"exact": "exact_match"})
    assert isinstance(evaluation, Evaluation)
    assert evaluation.receipt is not None
    assert (evaluation.receipt.kept, evaluation.receipt.called) == (0, 700)
    assert store.ids("evaluations") == [evaluation.id]


@dataclass(frozen=True)
class Leaving(Scorer):
    """Raises an error at one output."""

    kind = "leaving"
    version = 1
    cheap = True
    stops: bool = False

    def score(self, output: Any, expected: Any) -> float:
        if output == 1:
            raise TaskError("left", stops=True) if self.stops else SystemExit("left")
        return 1.0


def test_whatever_is_raised_costs_one_row() -> None:
    _, run = answers_of([0, 1, 2], 1)
    evaluation = Evaluator(MemoryStore()).evaluate(run, {"leaving": Leaving()})
    assert evaluation.manifest["counts"] == {"leaving": {"scored": 2, "failed": 1}}
    assert evaluation.table("leaving")["reason"].to_pylist()[1].startswith("scorer: SystemExit: left")


def test_an_error_that_stops_everything_ends_the_evaluation() -> None:
    _, run = answers_of([0, 1, 2], 1)
    with pytest.raises(Aborted, match="TaskError: left; this stops the run"):
        Evaluator(MemoryStore()).evaluate(run, {"leaving": Leaving(stops=True)})
