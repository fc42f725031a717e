"""Columns of rows say what the rows say one by one."""

from __future__ import annotations

import datetime as dt
import math
import random
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pytest
from hypothesis import given, strategies as st

from evaluand.aggregation.aggregator import Aggregator, Measure
from evaluand.comparison.comparing import compare
from evaluand.core.errors import Skipped
from evaluand.data.dataset import Dataset
from evaluand.evaluation.evaluator import Evaluator
from evaluand.evaluation.scorer import Score
from evaluand.metrics.accuracy import Accuracy
from evaluand.metrics.column_statistics import Mean
from evaluand.report.facts.evaluation import first_metrics
from evaluand.report.facts.report import Part, scores_facts
from evaluand.report.html.examples import Examples, examples_of
from evaluand.report.html.packing import pack_columns
from evaluand.report.row_columns import (
    OUTCOMES,
    STATUSES,
    RowColumns,
    find_decisive,
    list_scorers,
    read_attributes,
    read_row_columns,
    short_text,
)
from evaluand.run.runner import Runner
from evaluand.run.task import Candidates, FunctionTask
from evaluand.store.directory import DirectoryStore
from evaluand.store.store import MemoryStore, Store

METRICS = [Accuracy(), Accuracy(reduce="any"), Mean(reduce="best", direction="lower"), Mean(reduce="mean")]


def answer(text: str) -> Any:
    draw = random.Random(text)
    kind = draw.random()
    if kind < 0.1:
        raise ValueError("no answer")
    if kind < 0.2:
        raise Skipped("not asked")
    return Candidates([draw.random() for _ in range(draw.choice([1, 1, 2, 3]))])


def binary(output: float) -> Any:
    return (
        Score.abstained("unclear")
        if output < 0.1
        else Score(float(output > 0.5), label="high" * (output > 0.5) or None)
    )


def graded(output: float) -> Any:
    if output > 0.9:
        raise RuntimeError("too high")
    return Score(output)


LONG = "z" * 500


def part_of(seed: int, n: int, replications: int, store: Store | None = None) -> Part:
    rows = [
        {
            "_index_": 3 * i - n,
            "input": f"{seed} {i}",
            "group": [None, "a", 3, True, LONG][i % 5],
            "list": [[i % 3], [LONG, i % 2]][i % 2],
        }
        for i in range(n)
    ]
    data = Dataset.from_rows(rows, attributes=["group", "list"])
    store = store or MemoryStore()
    run = Runner(store).run(FunctionTask(answer), data.save(store), replications=replications)
    return Part("mine", run, Evaluator(store).evaluate(run, {"binary": binary, "graded": graded}))


@pytest.mark.filterwarnings("ignore::evaluand.evaluation.evaluator.ScorerFailed")
@given(seed=st.integers(0, 10**6), n=st.integers(1, 25), replications=st.integers(1, 2))
def test_columns_are_those_of_the_rows(seed: int, n: int, replications: int) -> None:
    part = part_of(seed, n, replications)
    for metric in METRICS:
        assert_columns_are_rows(part, metric)


@pytest.mark.filterwarnings("ignore::evaluand.evaluation.evaluator.ScorerFailed")
@pytest.mark.parametrize(("size", "replications"), [pytest.param(1, 1, marks=pytest.mark.slow), (1, 2), (3, 2)])
def test_pieces_of_any_size_are_the_same(
    size: int, replications: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    part = part_of(size, 20, replications, DirectoryStore(tmp_path))
    for place in ("store.parquet.READ_ROWS", "report.row_columns._PIECE", "aggregation.score_shards.SHARD_ROWS"):
        monkeypatch.setattr(f"evaluand.{place}", size)
    for metric in METRICS:
        assert_columns_are_rows(part, metric)


def assert_columns_are_rows(part: Part, metric: Any) -> None:
    measures = [Measure(scorer, metric) for scorer in ("binary", "graded")]
    scores = scores_facts([part])
    rows = [*Examples(part, scores, None, measures)]
    names = [each["scorer"] for each in scores if each["binary"]]
    decisive = find_decisive(list_scorers(part, measures), names, first_metrics(measures))
    columns = read_row_columns(part, decisive, measures, read_attributes(part.run))
    assert columns.index.tolist() == [row["index"] for row in rows]
    assert columns.replication.tolist() == [row["replication"] for row in rows]
    assert [OUTCOMES[each] for each in columns.outcome] == [OUTCOMES[row["outcome"]] for row in rows]
    assert_are_those_of(columns, rows)


def assert_are_those_of(columns: RowColumns, rows: list[dict[str, Any]]) -> None:
    """Scores and attributes in columns are those of the rows, whose scores name their scorer by number."""
    for number, (name, of) in enumerate(columns.scorers.items()):
        own = [[score for score in row["scores"] if score["scorer"] == number] for row in rows]
        assert of.status.tolist() == [max((STATUSES.index(s["status"]) for s in each), default=0) for each in own], name
        lowest = [min((s["value"] for s in each if s["value"] is not None), default=math.nan) for each in own]
        assert np.array_equal(of.value, lowest, equal_nan=True)
        labels = [next((s["label"] for s in each if s.get("label")), None) for each in own]
        assert [None if code == 0 else of.label.known[code - 1] for code in of.label.codes] == labels
    for name, words in columns.attributes.items():
        assert [None if not code else words.known[code - 1] for code in words.codes] == [
            row["attributes"].get(name) for row in rows
        ]


@pytest.mark.filterwarnings("ignore::evaluand.evaluation.evaluator.ScorerFailed")
@given(seed=st.integers(0, 10**6), limit=st.sampled_from([None, 1, 5, 40]))
def test_columns_of_each_of_several_tasks_are_those_of_its_chosen_rows(seed: int, limit: int | None) -> None:
    """The tasks have other scorers and attributes, and the second has none of the first's words."""
    first, bare = part_of(seed, 20, 1), part_of(seed + 1, 3, 2)
    records = [{"input": f"{i} x", "group": f"g{i % 3}", "more": i} for i in range(9)]
    other = Dataset.from_rows(records, attributes=["group", "more"])
    store = MemoryStore()
    run = Runner(store).run(FunctionTask(answer), other.save(store))
    second = Part("second", run, Evaluator(store).evaluate(run, {"binary": binary, "third": graded}))
    parts = [first, second, Part("bare", bare.run, None)]
    for examples in examples_of(parts, scores_facts(parts), limit):
        rows, columns = [*examples], examples.columns()
        assert columns.index.tolist() == [row["index"] for row in rows]
        assert columns.outcome.tolist() == [row["outcome"] for row in rows]
        assert_are_those_of(columns, rows)


def graded_part(store: MemoryStore, data: Dataset, values: list[float], name: str) -> Part:
    run = Runner(store).run(FunctionTask(lambda i: values[i], name=name, version=name), data)
    return Part(name, run, Evaluator(store).evaluate(run, {"graded": lambda output: output}))


def test_the_worst_rows_are_those_with_the_worst_scores_of_any_task() -> None:
    store = MemoryStore()
    data = Dataset.from_rows([{"input": i} for i in range(20)]).save(store)
    first = graded_part(store, data, [1 - i / 20 for i in range(20)], "first")
    second = graded_part(store, data, [0.04 if i == 3 else 0.9 for i in range(20)], "second")
    measures = [Measure("graded", Mean(range=(0, 1), direction="higher"))]
    scores = scores_facts([first, second])
    assert [row["index"] for row in Examples(first, scores, 3, measures)] == [17, 18, 19]
    both = examples_of([first, second], scores, 3, measures)
    assert [[row["index"] for row in each] for each in both] == [[3, 18, 19]] * 2
    assert [each.columns().index.tolist() for each in both] == [[3, 18, 19]] * 2


def test_an_attribute_of_too_many_values_has_none_to_choose_from() -> None:
    data = Dataset.from_rows(
        [{"input": i, "id": f"n{i}", "empty": None} for i in range(300)], attributes=["id", "empty"]
    )
    store = MemoryStore()
    run = Runner(store).run(str, data.save(store))
    words = {name: of.limit(200) for name, of in read_attributes(run).words.items()}
    assert words["id"].known is None
    assert not words["id"].codes.any()
    assert words["empty"].known == []


def test_an_attribute_may_be_of_no_example() -> None:
    store = MemoryStore()
    run = Runner(store).run(str, Dataset.from_rows([{"input": "a", "g": "x"}], attributes=["g"]).save(store))
    words = read_attributes(run).of(np.array([0, 7]))["g"]
    assert (words.codes.tolist(), words.known) == ([1, 0], ["x"])


def test_values_of_attributes_are_written_as_people_do() -> None:
    rows = [
        {"input": 0, "time": dt.datetime(2024, 1, 2, 3, 4), "day": dt.date(2024, 1, 2), "number": math.nan},
        {"input": 1, "time": dt.datetime(2024, 1, 2, 3, 4, tzinfo=dt.UTC), "day": None, "number": -math.inf},
    ]
    rows = [{**row, "took": dt.timedelta(seconds=90), "price": Decimal("1.50"), "clock": dt.time(3)} for row in rows]
    assert [{n: short_text(v) for n, v in row.items()} for row in rows] == [
        {"input": "0", "time": "2024-01-02T03:04:00", "day": "2024-01-02", "number": "NaN"}
        | {"took": "0:01:30", "price": "1.50", "clock": "03:00:00"},
        {"input": "1", "time": "2024-01-02T03:04:00+00:00", "day": None, "number": "-Infinity"}
        | {"took": "0:01:30", "price": "1.50", "clock": "03:00:00"},
    ]
    store, names = MemoryStore(), ["day", "number"]
    data = Dataset.from_rows([{**row, "day": dt.date(2024, 1, 2)} for row in rows], attributes=names).save(store)
    attributes = read_attributes(Runner(store).run(str, data))
    assert {name: attributes.words[name].known for name in names} == {
        "day": ["2024-01-02"],
        "number": ["NaN", "-Infinity"],
    }


def test_long_values_that_begin_alike_are_different_values() -> None:
    store, texts = MemoryStore(), [f"{'a' * 500}{end}" for end in "xyx"]
    rows = [{"input": i, "text": text} for i, text in enumerate(texts)]
    words = read_attributes(Runner(store).run(str, Dataset.from_rows(rows, attributes=["text"]).save(store))).words
    assert words["text"].codes.tolist() == [1, 2, 1]
    assert words["text"].known == [short_text(text) for text in texts[:2]]
    assert len({*words["text"].known}) == 2


def test_a_column_with_two_names_is_packed_once() -> None:
    values = np.arange(1000.0)
    once = pack_columns({"rows": 1000}, [("value", values), ("compared", values)])
    twice = pack_columns({"rows": 1000}, [("value", values), ("compared", values.copy())])
    assert len(twice) - len(once) >= values.nbytes
    head = orjson.loads(once[8 : 8 + int(once[:8])])
    assert head["columns"]["value"] == head["columns"]["compared"]
    assert once.endswith(values.tobytes())


def test_the_scorer_of_the_first_metric_comes_first(tmp_path: Path) -> None:
    store = DirectoryStore(tmp_path)
    data = Dataset.from_rows([{"input": i} for i in range(10)])
    scorers = {"brief": lambda output: output > 2, "right": lambda output: output > 5}
    graded = []
    for name in ("a", "b"):
        run = Runner(store).run(FunctionTask(lambda i: i, name=name, version=name), data)
        graded.append(Evaluator(store).evaluate(run, scorers))
    measures = [Measure("right", Accuracy()), Measure("brief", Accuracy())]
    Aggregator(store).aggregate(graded, measures)
    assert [pair["scorer"] for pair in compare(*graded).read_rows("pairs")] == ["right", "brief"]
    part = Part("a", graded[0].run, graded[0])
    columns = Examples(part, scores_facts([part]), None, measures).columns()
    assert [*columns.scorers] == ["right", "brief"]
    ranks = [of.compared.rank for of in columns.scorers.values() if of.compared is not None]
    assert ranks == [0, 1]


@dataclass(frozen=True, kw_only=True)
class _LowerMean(Accuracy):
    kind = "lower_mean"
    direction = "lower"


@pytest.mark.parametrize(
    ("measures", "decisive", "wrong"),
    [
        ([Measure("right", Accuracy()), Measure("toxic", Mean(direction="lower"))], "right", [0, 1, 2]),
        ([Measure("toxic", Mean(direction="lower")), Measure("right", Accuracy())], "toxic", [3, 4]),
        ([Measure("toxic", Mean(direction=None)), Measure("right", Accuracy())], "right", [0, 1, 2]),
        ([Measure("toxic", Mean(direction=None))], "toxic", [0, 1, 2]),
        ([Measure("length", Mean(direction="lower"))], "right", [0, 1, 2]),
        ([], "right", [0, 1, 2]),
        ([Measure("toxic", _LowerMean())], "toxic", [3, 4]),
    ],
)
def test_rows_are_wrong_by_one_scorer_alone(
    tmp_path: Path, measures: list[Measure], decisive: str, wrong: list[int]
) -> None:
    store = DirectoryStore(tmp_path)
    data = Dataset.from_rows([{"input": i} for i in range(5)])
    scorers = {
        "length": lambda output: output + 2.0,
        "right": lambda output: output > 2,
        "toxic": lambda output: output > 2,
    }
    run = Runner(store).run(FunctionTask(lambda i: i, version="1"), data)
    part = Part("a", run, Evaluator(store).evaluate(run, scorers))
    shown = Examples(part, scores_facts([part]), None, measures)
    columns = shown.columns()
    assert shown.describe(columns)["decisive"] == decisive
    found = [OUTCOMES[place] for place in columns.outcome]
    assert found == ["wrong" if i in wrong else "right" for i in range(5)]
    assert [OUTCOMES[row["outcome"]] for row in shown] == found
