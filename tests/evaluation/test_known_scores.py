"""Recorded outputs and known scores written as tables, against the same rows called and graded one by one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as st
from support.effort import FEW_EXAMPLES
from support.prediction_columns import columns

from evaluand.core import identity
from evaluand.data.dataset import Dataset
from evaluand.evaluation.evaluator import Evaluation, Evaluator
from evaluand.evaluation.prediction_table import PredictionColumns
from evaluand.report.verification import verify
from evaluand.run.runner import Run, Runner
from evaluand.run.tasks.recorded import GivenTask
from evaluand.store.directory import DirectoryStore
from evaluand.store.store import Draft, MemoryStore, Store

pytestmark = pytest.mark.filterwarnings(
    "ignore::evaluand.evaluation.evaluator.ScorerFailed", "ignore::evaluand.evaluation.preflight.NeverEqual"
)


class OneByOne(GivenTask):
    """Recorded outputs that the runner asks for one call after another."""

    def recorded(self, dataset: Dataset, examples: int, replications: int) -> None:
        return None


def dataset_of(made: PredictionColumns) -> Dataset:
    rows = [{"row": row, "truth": truth} for row, truth in enumerate(made.truths())]
    return Dataset.from_rows(rows, input="row", expected="truth")


def run_both(dataset: Dataset, make: Any) -> tuple[Run, Run]:
    written, called = (Runner(MemoryStore()).run(make(task), dataset) for task in (GivenTask, OneByOne))
    return written, called


def check_same_runs(written: Run, called: Run) -> None:
    assert (written.id, written.digest, written.counts) == (called.id, called.digest, called.counts)
    one, other = (run.table().drop_columns(["started", "duration"]) for run in (written, called))
    assert one.equals(other)


def check_same_scores(one: Evaluation, other: Evaluation) -> None:
    assert (one.id, one.digest, one.counts) == (other.id, other.digest, other.counts)
    assert one.table("prediction").equals(other.table("prediction"))


@given(columns())
@settings(max_examples=2 * FEW_EXAMPLES)
def test_columns_give_the_ids_digests_and_tables_of_rows(made: PredictionColumns) -> None:
    assert made.output_texts().to_pylist() == [identity.encode(output).decode() for output in made.outputs()]
    written, called = run_both(dataset_of(made), lambda task: task.from_texts("a", made.output_texts))
    check_same_runs(written, called)
    known, scorers = made.scored_rows(), {"prediction": made.scorer}
    by_column = Evaluator().evaluate(written, scorers, judged={"prediction": known})
    by_row = Evaluator().evaluate(called, scorers, judged={"prediction": known.records()})
    check_same_scores(by_column, by_row)
    if made.weight is None:  # the dataset has no weights, so the scorer sees none
        graded = Evaluator(MemoryStore()).evaluate(called, scorers)
        check_same_scores(by_column, graded)
    assert by_column.receipt is not None
    assert by_column.receipt.reused == len(known)


@given(
    st.dictionaries(
        st.tuples(st.integers(0, 2), st.integers(0, 4)),
        st.none() | st.floats() | st.text("a$é") | st.lists(st.integers(), max_size=2),
        min_size=1,
    ),
    st.booleans(),
)
@settings(max_examples=15)
def test_skipped_examples_repeats_and_folds_are_written_as_if_called(
    outputs: dict[tuple[int, int], Any], has_folds: bool
) -> None:
    texts = {key: identity.encode(output) for key, output in outputs.items()}
    folds = {(repeat, row): row % 2 for repeat, row in outputs} if has_folds else None
    dataset = Dataset.from_rows([{"input": {"n": row}, "expected": None} for row in range(5)])
    check_same_runs(*run_both(dataset, lambda task: task.from_outputs("a", texts, folds)))


def many_rows(n: int) -> PredictionColumns:
    """Rows of several batches, some without a truth or a prediction."""
    truth = [None if row % 1000 == 7 else "ab"[row % 2] for row in range(n)]
    return PredictionColumns.build(truth, [None if row % 1111 == 5 else "ab"[row % 3 % 2] for row in range(n)])


def test_rows_of_several_batches_verify(tmp_path: Path) -> None:
    made, store = many_rows(5000), DirectoryStore(tmp_path)
    texts = made.output_texts()
    dataset = dataset_of(made).save(store)
    run = Runner(store).run(GivenTask.from_texts("a", lambda: texts), dataset)
    scorers = {"prediction": made.scorer}
    evaluation = Evaluator().evaluate(run, scorers, judged={"prediction": made.scored_rows()})
    assert verify(store, "runs", run.id) == verify(store, "evaluations", evaluation.id) == []
    graded = Evaluator(MemoryStore()).evaluate(run, scorers)
    check_same_scores(evaluation, graded)
    assert evaluation.counts == {"prediction": {"scored": 4990, "abstained": 10}}


class Stopped(MemoryStore):
    """A store whose tables are interrupted after a number of batches."""

    left = 0

    def draft(self, kind: str, id: str) -> Draft:
        draft = super().draft(kind, id)
        append = draft.append

        def append_or_stop(table: str, batch: pa.RecordBatch) -> None:
            if kind != "datasets":
                self.left -= 1
            if self.left < 0:
                raise KeyboardInterrupt
            append(table, batch)

        vars(draft)["append"] = append_or_stop
        return draft


def test_an_interrupted_write_is_done_again() -> None:
    made = many_rows(5000)
    dataset, task, store = dataset_of(made), GivenTask.from_texts("a", made.output_texts), Stopped()
    store.left = 2
    with pytest.raises(KeyboardInterrupt):
        Runner(store).run(task, dataset)
    [id] = store.ids("runs")
    assert not store.is_sealed("runs", id)
    store.left = 5
    run = Runner(store).run(task, dataset)
    with pytest.raises(KeyboardInterrupt):
        evaluate(store, run, made)
    store.left = 100
    assert run.id == id
    whole = Runner(MemoryStore()).run(task, dataset)
    check_same_scores(evaluate(store, run, made), evaluate(whole.store, whole, made))


def test_what_was_journalled_before_makes_no_difference() -> None:
    made, store = many_rows(1500), MemoryStore()
    run = Runner(store).run(GivenTask.from_texts("a", made.output_texts), dataset_of(made))
    known = made.scored_rows()

    def some_rows() -> Any:
        for number, row in enumerate(known.records()):
            if number == 1000:
                raise KeyboardInterrupt
            yield row

    with pytest.raises(KeyboardInterrupt):
        Evaluator().evaluate(run, {"prediction": made.scorer}, judged={"prediction": some_rows()})
    evaluation = evaluate(store, run, made)
    fresh = Evaluator(MemoryStore()).evaluate(run, {"prediction": made.scorer})
    check_same_scores(evaluation, fresh)


def evaluate(store: Store, run: Run, made: PredictionColumns) -> Evaluation:
    scorers = {"prediction": made.scorer}
    return Evaluator(store).evaluate(run, scorers, judged={"prediction": made.scored_rows()})
