"""Same everywhere: the same has the same digest however it came about, and only what changed is redone."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import orjson
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, strategies as st
from support.patience import PATIENCE
from support.unread import Unread

from evaluand.aggregation.aggregator import Aggregation, Aggregator, Measure
from evaluand.data.dataset import Dataset
from evaluand.engine.keyed_work import Tally
from evaluand.engine.outcome import Aborted
from evaluand.engine.policy import Policy
from evaluand.evaluation.evaluator import Evaluation, Evaluator
from evaluand.evaluation.scorer import FunctionScorer, Score, Scorer
from evaluand.evaluation.scorers.exact_match import ExactMatch
from evaluand.evaluation.scorers.prediction import Prediction
from evaluand.metrics.accuracy import Accuracy
from evaluand.metrics.column_statistics import Mean
from evaluand.run.runner import Run, Runner
from evaluand.run.task import Candidates, Task, task
from evaluand.run.tasks.recorded import DoubtfulJoin, RecordedTask
from evaluand.store.directory import DirectoryStore
from evaluand.store.shards import SHARD_SLOTS
from evaluand.store.store import MemoryStore, Store

Row = dict[str, Any]


@pytest.fixture(params=["memory", pytest.param("directory", marks=pytest.mark.slow)])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    return MemoryStore() if request.param == "memory" else DirectoryStore(tmp_path / "store")


# Whatever the process


APP = """
import json
import sys

from evaluand.aggregation.aggregator import Aggregator, Measure
from evaluand.data.dataset import Dataset
from evaluand.engine.policy import Policy
from evaluand.evaluation.evaluator import Evaluator
from evaluand.metrics.accuracy import Accuracy
from evaluand.metrics.column_statistics import Count
from evaluand.run.runner import Runner
from evaluand.evaluation.scorers.prediction import Prediction
from evaluand.store.directory import DirectoryStore
from evaluand.run.task import task
from evaluand.report.verification import verify

STOP = {"the", "a", "an", "of", "to"}
KNOWN = frozenset(("alpha", "beta", "gamma", "delta"))
WEIGHTS = {"x": 1, "y": {"nested": [1, 2, 3]}}


@task
def answer(text):
    if text in {"q13", "q14", "q15"}:
        raise ValueError("unlucky")
    kept = [word for word in text.split() if word not in STOP and word not in KNOWN]
    return {"prediction": kept[0][-1], "confidence": len(kept) / (WEIGHTS["x"] + 1)}


def same(output, expected, example):
    return output["prediction"] == expected and "a" in {"a", "b", "c"}


rows = [
    {"input": f"q{i}", "expected": str(i % 7), "group": "ab"[i % 2], "set": {"p": i, "o": [1.5, None]}}
    for i in range(300)
]
data = Dataset.from_rows(rows, attributes=["group"], metadata=["set"])
store = DirectoryStore(sys.argv[1])
run = Runner(store, Policy(concurrency=int(sys.argv[2]))).run(answer, data, name="app")
evaluation = Evaluator().evaluate(run, {"same": same, "prediction": Prediction()})
measures = [Measure("same", Accuracy(), (("group",),)), Measure("prediction", Accuracy()), Measure("same", Count())]
aggregation = Aggregator().aggregate([evaluation], measures)
told = {kind: [one.id, one.digest] for kind, one in
        {"dataset": data, "run": run, "evaluation": evaluation, "aggregation": aggregation}.items()}
told["pinned"] = [run.manifest["pinned"], evaluation.manifest["pinned"]]
told["spec"] = run.manifest["spec"]
print(json.dumps(told))
"""


@pytest.mark.slow
def test_ids_and_digests_are_the_same_in_any_process_and_folder(tmp_path: Path) -> None:
    reported = []
    for number, (hash_seed, concurrency) in enumerate([("0", 1), ("4242", 8)]):
        folder = tmp_path / f"place {number}"
        folder.mkdir()
        (folder / "app.py").write_text(APP)
        result = subprocess.run(
            [sys.executable, "app.py", "store", str(concurrency)],
            cwd=folder,
            env=os.environ | {"PYTHONHASHSEED": hash_seed},
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
        assert result.returncode == 0, result.stderr
        reported.append(json.loads(result.stdout))
    assert reported[0] == reported[1]
    assert reported[0]["pinned"] == [True, True]


# Whatever the file


def table(n: int) -> list[Row]:
    """Rows that text formats can say without loss, more than are read at once."""
    return [
        {
            "question": f'Line one of {i},\n"line two", ü {"😀" * (i % 3)}',
            "answer": i * 7 - 100,
            "share": i / 7 if i % 11 else None,
            "code": f"{i:05}",
            "right": i % 3 == 0,
            "note": None if i % 5 else f"note {i}",
            "size": float(i) + 0.5,
        }
        for i in range(n)
    ]


ROLES: dict[str, Any] = {
    "input": ["question", "share", "code"],
    "expected": "answer",
    "attributes": ["right"],
    "weight": "size",
    "metadata": ["note"],
}
ROWS = table(4200)


def as_csv(path: Path, delimiter: str = ",") -> Path:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(ROWS[0]), delimiter=delimiter)
        writer.writeheader()
        for row in ROWS:
            shown = {k: "" if v is None else repr(v) if isinstance(v, float) else v for k, v in row.items()}
            writer.writerow(shown | {"right": str(row["right"]).lower()})
    return path


def as_json_lines(path: Path) -> Path:
    path.write_bytes(b"".join(orjson.dumps(row) + b"\n" for row in ROWS))
    return path


def as_parquet(path: Path, row_group: int) -> Path:
    pq.write_table(pa.Table.from_pylist(ROWS), path, row_group_size=row_group)
    return path


def as_arrow(path: Path, chunk: int) -> Path:
    made = pa.Table.from_pylist(ROWS)
    with pa.ipc.new_file(path, made.schema) as writer:
        writer.write_table(made, max_chunksize=chunk)
    return path


SOURCES: dict[str, Callable[[Path], Dataset]] = {
    "csv": lambda p: Dataset.from_file(as_csv(p / "t.csv"), **ROLES),
    "tsv": lambda p: Dataset.from_file(as_csv(p / "t.tsv", "\t"), **ROLES),
    "jsonl": lambda p: Dataset.from_file(as_json_lines(p / "t.jsonl"), **ROLES),
    "parquet in one piece": lambda p: Dataset.from_file(as_parquet(p / "t.parquet", 10_000), **ROLES),
    "parquet in many pieces": lambda p: Dataset.from_file(as_parquet(p / "t.parquet", 97), **ROLES),
    "arrow in many pieces": lambda p: Dataset.from_file(as_arrow(p / "t.arrow", 13), **ROLES),
    "arrow table": lambda p: Dataset.from_arrow(pa.Table.from_pylist(ROWS), **ROLES),
    "pandas": lambda p: Dataset.from_pandas(pd.DataFrame(ROWS), **ROLES),
    "pandas with another index": lambda p: Dataset.from_pandas(
        pd.DataFrame(ROWS, index=range(9000, 9000 + len(ROWS))), **ROLES
    ),
    "dictionary columns": lambda p: Dataset.from_pandas(pd.DataFrame(ROWS).astype({"code": "category"}), **ROLES),
    "a generator": lambda p: Dataset.from_rows((row for row in ROWS), **ROLES),
    "more columns": lambda p: Dataset.from_rows([row | {"unused": i} for i, row in enumerate(ROWS)], **ROLES),
    "columns in another order": lambda p: Dataset.from_rows([dict(reversed(row.items())) for row in ROWS], **ROLES),
    "numbered from 0": lambda p: Dataset.from_rows([{"_index_": i, **row} for i, row in enumerate(ROWS)], **ROLES),
    "numbered and shuffled": lambda p: Dataset.from_rows(
        [{"_index_": i, **ROWS[i]} for i in sorted(range(len(ROWS)), key=lambda i: (i * 7919) % len(ROWS))], **ROLES
    ),
    "stored and read": lambda p: Dataset.from_rows(ROWS, **ROLES).save(DirectoryStore(p / "s")),
}


@pytest.fixture(scope="module")
def reference() -> Dataset:
    return Dataset.from_rows(ROWS, **ROLES)


@pytest.mark.parametrize("source", SOURCES)
def test_a_dataset_is_the_same_whatever_it_came_from(tmp_path: Path, reference: Dataset, source: str) -> None:
    data = SOURCES[source](tmp_path)
    assert data.digest == reference.digest
    assert data.id == reference.id
    for position in (0, 1, 4095, 4096, 4199):
        [one], [other] = data.examples(position, position + 1), reference.examples(position, position + 1)
        assert (one.input, one.expected, one.metadata) == (other.input, other.expected, other.metadata)
        assert one.input["question"] == ROWS[position]["question"]


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)
COLUMN = st.sampled_from(["text", "number", "any"])


@st.composite
def records(draw: st.DrawFn) -> list[Row]:
    kinds = {"text": st.none() | st.text(), "number": st.none() | st.integers(-9, 9) | st.floats(-9, 9), "any": VALUES}
    columns = {name: kinds[draw(COLUMN)] for name in ("input", "expected", "extra")}
    return draw(st.lists(st.fixed_dictionaries(columns), min_size=1, max_size=6))


@given(rows=records())
def test_rows_in_memory_and_the_same_rows_in_a_file_are_one_dataset(rows: list[Row]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.jsonl"
        path.write_bytes(b"".join(orjson.dumps(row) + b"\n" for row in rows))
        one, other = Dataset.from_rows(rows, metadata="extra"), Dataset.from_file(path, metadata="extra")
        assert one.id == other.id
        stored = one.save(MemoryStore())
        assert stored.id == one.id
        for example, again, row in zip(one, stored, rows, strict=True):
            assert (example.input, example.expected, example.metadata) == (
                row["input"],
                row["expected"],
                {"extra": row["extra"]},
            )
            assert (again.input, again.expected, again.metadata, again.digest) == (
                example.input,
                example.expected,
                example.metadata,
                example.digest,
            )


# However calls are made


def shout(text: str) -> str:
    if text.endswith("7"):
        raise ValueError("seven")
    return text.upper()


async def shout_later(text: str) -> str:
    return shout(text)


def questions(n: int) -> list[Row]:
    return [{"input": f"q{i}", "expected": f"Q{i}" if i % 4 else "no", "group": "ab"[i % 2]} for i in range(n)]


def digests(function: Callable[..., Any], concurrency: int, store: Store) -> tuple[str, str, str]:
    policy = Policy(concurrency=concurrency)
    data = Dataset.from_rows(questions(1500), attributes=["group"])
    run = Runner(store, policy).run(task(version="1")(function), data)
    scorers = {"exact": ExactMatch(), "slow": FunctionScorer(lambda output, expected: output == expected, version="1")}
    evaluation = Evaluator(policy=policy).evaluate(run, scorers)
    measures = [Measure("exact", Accuracy(), (("group",),)), Measure("slow", Mean(range=(0, 1)), (("group",),))]
    return run.digest, evaluation.digest, Aggregator().aggregate([evaluation], measures).digest


@pytest.mark.slow
def test_results_are_the_same_however_many_calls_are_made_at_once(tmp_path: Path) -> None:
    made = {
        (function.__name__, concurrency): digests(function, concurrency, store)
        for function, concurrency, store in (
            (shout, 1, MemoryStore()),
            (shout, 8, DirectoryStore(tmp_path / "8")),
            (shout, 256, MemoryStore()),
            (shout_later, 1, MemoryStore()),
            (shout_later, 256, DirectoryStore(tmp_path / "256")),
        )
    }
    assert len(set(made.values())) == 1, made


def test_an_example_has_the_same_seed_wherever_it_stands(store: Store) -> None:
    def seeds(rows: list[Row], concurrency: int) -> dict[tuple[str, int], int]:
        found: dict[tuple[str, int], int] = {}

        def note(text: str, seed: int, replication: int) -> None:
            found[text, replication] = seed

        Runner(MemoryStore(), Policy(concurrency=concurrency)).run(
            note, Dataset.from_rows(rows), replications=2, seed=5
        )
        return found

    rows = questions(50)
    forward = seeds(rows, 1)
    assert len(set(forward.values())) == 100
    assert seeds(rows[::-1], 8) == forward


def test_replications_that_do_not_fit_the_pieces_of_work_are_each_made_once(store: Store) -> None:
    calls = Counter[tuple[str, int]]()

    def note(text: str, replication: int) -> int:
        calls[text, replication] += 1
        return replication

    n = SHARD_SLOTS // 3 * 2 + 5
    run = Runner(store).run(note, Dataset.from_rows(questions(n)), replications=3)
    assert calls == {(f"q{i}", r): 1 for i in range(n) for r in range(3)}
    assert [(r.index, r.replication, r.responses) for r in run] == [(i, r, [r]) for i in range(n) for r in range(3)]


# What changed is all that is redone


BASE = 60


@dataclass
class Bench:
    """The path from rows to numbers over one store, with every call and grade counted by input and replication."""

    store: Store
    calls: Counter[str] = field(default_factory=Counter)
    grades: Counter[str] = field(default_factory=Counter)
    failing: set[str] = field(default_factory=set)
    metadata: tuple[str, ...] = ("note",)

    def run(self, rows: list[Row], *, version: str = "1", **options: Any) -> Run:
        self.calls.clear()
        calls, failing = self.calls, Unread(self.failing)

        def answer(text: str) -> str:
            calls[text] += 1
            if text in failing.value:
                raise ValueError("no")
            return text.upper()

        data = Dataset.from_rows(rows, attributes=["group"], metadata=self.metadata)
        return Runner(self.store).run(task(version=version)(answer), data, name="bench", **options)

    def evaluate(self, run: Run, *, version: str = "1", name: str = "same", **options: Any) -> Evaluation:
        self.grades.clear()
        grades = self.grades

        def same(output: str, expected: str, input: str) -> bool:
            grades[input] += 1
            return output == expected

        return Evaluator().evaluate(run, {name: FunctionScorer(same, version=version)}, **options)

    def whole(self, rows: list[Row], **options: Any) -> tuple[Run, Evaluation, Aggregation]:
        run = self.run(rows, **options)
        evaluation = self.evaluate(run)
        measures = [Measure("same", Accuracy(), (("group",),))]
        return run, evaluation, Aggregator().aggregate([evaluation], measures)


@pytest.fixture
def bench(store: Store) -> Bench:
    return Bench(store)


def rows_with_notes(n: int = BASE) -> list[Row]:
    return [row | {"note": f"n{i}"} for i, row in enumerate(questions(n))]


def changed(position: int, **values: Any) -> list[Row]:
    rows = rows_with_notes()
    rows[position] |= values
    return rows


def ids_of(*made: Run | Evaluation | Aggregation) -> list[str]:
    return [one.id for one in made]


def test_the_same_again_does_nothing(bench: Bench) -> None:
    first = bench.whole(rows_with_notes())
    assert bench.calls == bench.grades == {f"q{i}": 1 for i in range(BASE)}
    again = bench.whole(rows_with_notes())
    assert bench.calls == bench.grades == {}
    assert ids_of(*first) == ids_of(*again)
    assert again[0].receipt is not None
    assert (again[0].receipt.called, again[0].receipt.kept) == (0, BASE)


def test_a_corrected_answer_costs_no_call_and_one_grade(bench: Bench) -> None:
    run, evaluation, aggregation = bench.whole(rows_with_notes())
    new_run, new_evaluation, new_aggregation = bench.whole(changed(4, expected="Q4"))
    assert (bench.calls, bench.grades) == ({}, {"q4": 1})
    assert new_run.digest == run.digest
    assert new_evaluation.digest != evaluation.digest
    assert new_aggregation.digest != aggregation.digest
    values = new_evaluation.table("same")["value"].to_pylist()
    assert values == [1.0 if i % 4 or i == 4 else 0.0 for i in range(BASE)]


def test_a_changed_input_costs_one_call_and_one_grade(bench: Bench) -> None:
    run, *_ = bench.whole(rows_with_notes())
    new_run, *_ = bench.whole(changed(9, input="other"))
    assert bench.calls == bench.grades == {"other": 1}
    assert new_run.digest != run.digest
    assert [r.responses for r in new_run][8:11] == [["Q8"], ["OTHER"], ["Q10"]]


def test_a_changed_attribute_costs_no_call(bench: Bench) -> None:
    run, evaluation, aggregation = bench.whole(rows_with_notes())
    new_run, new_evaluation, new_aggregation = bench.whole(changed(9, group="c"))
    assert bench.calls == {}
    assert set(bench.grades) <= {"q9"}
    assert (new_run.digest, new_evaluation.digest) == (run.digest, evaluation.digest)
    assert new_aggregation.digest != aggregation.digest
    [row] = [row for row in new_aggregation.table().to_pylist() if row["by"] == [("group", "c")]]
    assert (row["value"], row["n"]) == (1.0, 1)


def test_a_changed_note_changes_no_result(bench: Bench) -> None:
    run, evaluation, aggregation = bench.whole(rows_with_notes())
    new_run, new_evaluation, new_aggregation = bench.whole(changed(9, note="seen"))
    assert bench.calls == {}
    assert set(bench.grades) <= {"q9"}
    assert new_run.digest == run.digest
    assert new_evaluation.digest == evaluation.digest
    assert new_run.id != run.id  # of another dataset
    assert new_run.dataset.id != run.dataset.id
    values = [[row["value"] for row in one.table().to_pylist()] for one in (aggregation, new_aggregation)]
    assert values[0] == values[1]


def test_a_column_that_gets_a_role_changes_no_result(bench: Bench) -> None:
    run, *_ = bench.whole(rows_with_notes())
    bench.metadata = ()
    new_run, *_ = bench.whole(rows_with_notes())
    assert bench.calls == {}
    assert new_run.digest == run.digest


def test_rows_in_another_order_cost_nothing(bench: Bench) -> None:
    bench.whole(rows_with_notes())
    run, evaluation, _ = bench.whole(rows_with_notes()[::-1])
    assert bench.calls == bench.grades == {}
    assert [r.responses for r in run] == [[f"Q{i}"] for i in reversed(range(BASE))]
    assert evaluation.table("same")["value"].to_pylist() == [float(i % 4 != 0) for i in reversed(range(BASE))]


def test_the_first_examples_and_then_all_cost_each_example_once(bench: Bench) -> None:
    part, *_ = bench.whole(rows_with_notes(), limit=20)
    assert sum(part.counts.values()) == 20
    assert bench.calls == bench.grades == {f"q{i}": 1 for i in range(20)}
    run, *_ = bench.whole(rows_with_notes())
    assert bench.calls == bench.grades == {f"q{i}": 1 for i in range(20, BASE)}
    assert run.receipt is not None
    assert (run.receipt.called, run.receipt.reused, run.receipt.kept) == (40, 20, 0)
    bench.whole(rows_with_notes(), limit=10)
    assert bench.calls == bench.grades == {}

    alone = Bench(MemoryStore()).whole(rows_with_notes())
    again = bench.whole(rows_with_notes())
    assert [one.digest for one in again] == [one.digest for one in alone]
    assert ids_of(*again) == ids_of(*alone)


def test_ten_rows_more_cost_ten_calls(bench: Bench) -> None:
    bench.whole(rows_with_notes())
    bench.whole(rows_with_notes(BASE + 10))
    assert bench.calls == bench.grades == {f"q{i}": 1 for i in range(BASE, BASE + 10)}
    bench.whole(rows_with_notes(BASE - 10))
    assert bench.calls == bench.grades == {}


def test_further_replications_cost_only_themselves(bench: Bench) -> None:
    bench.run(rows_with_notes())
    run = bench.run(rows_with_notes(), replications=3)
    assert bench.calls == {f"q{i}": 2 for i in range(BASE)}
    assert run.counts == {"completed": 3 * BASE}
    bench.run(rows_with_notes(), replications=2)
    assert bench.calls == {}


def test_another_seed_is_another_run(bench: Bench) -> None:
    first = bench.run(rows_with_notes(), seed=1)
    second = bench.run(rows_with_notes(), seed=2)
    assert bench.calls == {f"q{i}": 1 for i in range(BASE)}
    assert first.id != second.id


def test_another_task_and_another_scorer_take_nothing_over(bench: Bench) -> None:
    bench.whole(rows_with_notes())
    run = bench.run(rows_with_notes(), version="2")
    assert sum(bench.calls.values()) == BASE
    bench.evaluate(run)
    assert bench.grades == {}  # the same answers to the same examples by the same scorer
    bench.evaluate(run, version="2")
    assert sum(bench.grades.values()) == BASE


def test_a_scorer_under_another_name_takes_its_scores_over(bench: Bench) -> None:
    run, evaluation, _ = bench.whole(rows_with_notes())
    renamed = bench.evaluate(run, name="equal")
    assert bench.grades == {}
    assert renamed.scorers == ["equal"]
    assert renamed.table("equal")["value"].to_pylist() == evaluation.table("same")["value"].to_pylist()


def test_what_failed_is_tried_again_only_when_asked_and_alone(bench: Bench) -> None:
    bench.failing = {"q3", "q30"}
    first, *_ = bench.whole(rows_with_notes())
    assert first.counts == {"completed": BASE - 2, "failed": 2}
    bench.failing = {"q30"}
    bench.whole(rows_with_notes())
    assert bench.calls == {}

    second, evaluation, _ = bench.whole(rows_with_notes(), retry_failed=True)
    assert bench.calls == {"q3": 1, "q30": 1}
    assert bench.grades == {"q3": 1}
    assert second.counts == {"completed": BASE - 1, "failed": 1}
    assert second.id != first.id
    assert Run(bench.store, first.id).counts == first.counts
    assert evaluation.counts == {"same": {"scored": BASE - 1, "failed": 1}}

    bench.failing = set()
    third, *_ = bench.whole(rows_with_notes(), retry_failed=True)
    assert bench.calls == {"q30": 1}
    assert third.counts == {"completed": BASE}
    last, *_ = bench.whole(rows_with_notes(), retry_failed=True)
    assert bench.calls == {}
    assert last.id == third.id
    usual, *_ = bench.whole(rows_with_notes())
    assert usual.id == third.id


def test_what_failed_is_not_taken_over_into_a_larger_run(bench: Bench) -> None:
    bench.failing = {"q3"}
    bench.run(rows_with_notes(), limit=20)
    bench.failing = set()
    run = bench.run(rows_with_notes())
    assert bench.calls == {f"q{i}": 1 for i in [3, *range(20, BASE)]}
    assert run.counts == {"completed": BASE}


def test_fresh_makes_everything_anew_and_ends_the_same(bench: Bench) -> None:
    run, evaluation, _ = bench.whole(rows_with_notes())
    new_run = bench.run(rows_with_notes(), fresh=True)
    assert bench.calls == {f"q{i}": 1 for i in range(BASE)}
    assert (new_run.id != run.id, new_run.digest) == (True, run.digest)
    new_evaluation = bench.evaluate(new_run, fresh=True)
    assert bench.grades == {f"q{i}": 1 for i in range(BASE)}
    assert (new_evaluation.id != evaluation.id, new_evaluation.digest) == (True, evaluation.digest)
    again = bench.run(rows_with_notes())
    assert (bench.calls, again.id) == ({}, new_run.id)


def test_an_aborted_run_lends_what_it_finished(bench: Bench) -> None:
    calls = Counter[str]()
    broken = Unread(True)

    def answer(text: str) -> str:
        calls[text] += 1
        if broken.value and text == "q30":
            raise ValueError("thirty")
        return text.upper()

    one = task(version="1")(answer)
    small, large = (Dataset.from_rows(questions(n)) for n in (BASE, BASE + 10))
    with pytest.raises(Aborted):
        Runner(bench.store, Policy(concurrency=1, abort_on_error=True)).run(one, small)
    broken.value = False
    run = Runner(bench.store).run(one, large)
    assert calls == {f"q{i}": 2 if i == 30 else 1 for i in range(BASE + 10)}
    assert run.counts == {"completed": BASE + 10}


# What may be taken over


def test_a_recorded_answer_belongs_to_its_row_and_not_to_its_input(store: Store, tmp_path: Path) -> None:
    (tmp_path / "predictions.csv").write_text("_index_,label\n" + "".join(f"{i},label {i}\n" for i in range(4)))
    recorded = RecordedTask(path=str(tmp_path / "predictions.csv"), response="label")
    data = Dataset.from_rows([{"input": "same"}, {"input": "same"}, {"input": "other"}, {"input": "same"}])
    Runner(store).run(recorded, data, limit=1)
    run = Runner(store).run(recorded, data)
    assert [r.responses for r in run] == [[f"label {i}"] for i in range(4)]

    moved = Dataset.from_rows([{"input": "other"}, {"input": "same"}])
    with pytest.warns(DoubtfulJoin, match="2 rows"):
        run = Runner(store).run(recorded, moved)
    assert [r.responses for r in run] == [["label 0"], ["label 1"]]


@pytest.mark.parametrize("wanted", ["index", "id"])
def test_an_answer_made_from_more_than_the_input_is_taken_over_only_with_it(store: Store, wanted: str) -> None:
    functions: Mapping[str, Callable[..., str]] = {
        "index": lambda text, index: f"{text} {index}",
        "id": lambda text, id: f"{text} {id}",
    }
    data = Dataset.from_rows([{"input": "same", "id": str(i)} for i in range(4)])
    one = task(version="1")(functions[wanted])
    Runner(store).run(one, data, limit=1)
    run = Runner(store).run(one, data)
    assert [r.responses for r in run] == [[f"same {i}"] for i in range(4)]


def test_a_grade_made_from_the_place_of_a_row_is_taken_over_only_with_it(store: Store) -> None:
    def place(index: int, replication: int) -> float:
        return 10.0 * replication + index

    data = Dataset.from_rows([{"input": "same"}] * 4)
    one = task(version="1")(lambda text: text)
    scorers = {"place": FunctionScorer(place, version="1")}
    Evaluator().evaluate(Runner(store).run(one, data, limit=2), scorers)
    evaluation = Evaluator().evaluate(Runner(store).run(one, data, replications=2), scorers)
    assert evaluation.table("place")["value"].to_pylist() == [0, 10, 1, 11, 2, 12, 3, 13]


def test_what_cannot_be_fingerprinted_is_never_taken_over(store: Store) -> None:
    class Client(Task[str, str]):
        def __init__(self) -> None:
            self.lock = threading.Lock()
            self.calls = 0

        def do_run(self, input: str, task_span: Any) -> str:
            with self.lock:
                self.calls += 1
            return input

    client = Client()
    data = Dataset.from_rows(questions(5))
    first = Runner(store).run(client, data)
    second = Runner(store).run(client, data)
    assert client.calls == 10
    assert first.id != second.id
    assert not second.manifest["pinned"]
    assert second.receipt is not None
    assert "unpinned" in second.receipt.why


@dataclass(frozen=True)
class Sparse(Scorer):
    """Fills its declared columns as people do: an integer for a float, or nothing."""

    kind: ClassVar[str] = "sparse"
    version: ClassVar[int] = 1

    @property
    def columns(self) -> Mapping[str, str]:
        return {"a": "double", "b": "string", "c": "json"}

    def score(self, output: Any, expected: Any) -> Score:
        n = int(output[1:])
        if n % 5 == 0:
            return Score.abstained("five")
        filled: list[Row | None] = [{"a": n}, {"a": n / 3, "b": "x"}, {"c": {"z": n, "y": [None, 1.0]}}, None]
        data = {"b": 1, "a": n} if n % 3 else None
        return Score(n % 2, data=data, explanation="ü" * (n % 3) or None, columns=filled[n % 4])


@pytest.mark.parametrize("scorer", [Sparse(), Prediction(), ExactMatch()], ids=lambda scorer: scorer.kind)
def test_scores_that_were_taken_over_make_the_same_evaluation_as_new_ones(store: Store, scorer: Scorer) -> None:
    def answer(text: str) -> Any:
        return Candidates([text.upper(), text]) if text == "q8" else text.upper()

    def evaluation(where: Store, n: int) -> Evaluation:
        data = Dataset.from_rows([row | {"w": i} for i, row in enumerate(questions(n))], metadata="group", weight="w")
        return Evaluator().evaluate(Runner(where).run(task(version="1")(answer), data), {"it": scorer})

    evaluation(store, 30)
    mixed, new = evaluation(store, 40), evaluation(MemoryStore(), 40)
    assert mixed.receipt is not None
    assert mixed.receipt.reused == (0 if scorer.is_quick else 30)
    assert mixed.table("it").drop_columns("digest").to_pylist() == new.table("it").drop_columns("digest").to_pylist()
    assert mixed.digest == new.digest


def length(output: str) -> float:
    return float(len(output))


def zero(output: str) -> float:
    return 0.0


SCORERS = {"length": FunctionScorer(length, version="1"), "zero": FunctionScorer(zero, version="1")}
OTHER_ORDER = dict(reversed(SCORERS.items()))


def echoed(store: Store) -> Run:
    return Runner(store).run(task(version="1")(lambda text: text), Dataset.from_rows(questions(5)))


def test_the_order_in_which_scorers_are_named_changes_nothing() -> None:
    first, second = (Evaluator().evaluate(echoed(MemoryStore()), scorers) for scorers in (SCORERS, OTHER_ORDER))
    assert (first.id, first.digest) == (second.id, second.digest)


class Stop(Exception):
    """Raised by a progress display."""


def test_an_evaluation_that_is_resumed_with_its_scorers_in_another_order_mixes_nothing(store: Store) -> None:
    def only_the_first(tally: Tally) -> AbstractContextManager[None]:
        if tally.label == "zero":
            raise Stop
        return nullcontext()

    run = echoed(store)
    with pytest.raises(Stop):
        Evaluator(progress=only_the_first).evaluate(run, SCORERS)
    resumed = Evaluator().evaluate(run, OTHER_ORDER)
    assert resumed.table("length")["value"].to_pylist() == [2.0] * 5
    assert resumed.table("zero")["value"].to_pylist() == [0.0] * 5
    again = Evaluator().evaluate(run, SCORERS)
    assert (again.id, again.digest) == (resumed.id, resumed.digest)


def test_the_order_in_which_targets_are_named_changes_nothing() -> None:
    rows = [{"input": f"q{i}", "a": i, "b": -i} for i in range(4)]
    made = []
    for expected in ({"x": "a", "y": "b"}, {"y": "b", "x": "a"}):
        data = Dataset.from_rows(rows, input="input", expected=expected)
        run = Runner().run(task(version="1")(lambda text: {"x": 1, "y": -1}), data)
        evaluation = Evaluator().evaluate(run, {"it": Prediction(type="integer")})
        made.append((data.id, run.id, run.digest, evaluation.id, evaluation.digest))
    assert made[0] == made[1]


@pytest.mark.parametrize("limit", [1, 59, 60, 61, 10_000])
def test_a_limit_beyond_the_end_is_the_whole(limit: int) -> None:
    data = Dataset.from_rows(questions(BASE))
    one = task(version="1")(shout)
    whole, part = (Runner(MemoryStore()).run(one, data, limit=asked) for asked in (None, limit))
    assert (part.id == whole.id) == (limit >= BASE)
    assert sum(part.counts.values()) == min(limit, BASE)
