"""The grid of the page shows as better and worse the rows that a comparison counts, and filters exactly."""

from __future__ import annotations

import itertools
import random
import shutil
from pathlib import Path
from typing import Any

import orjson
import pytest
from support.grid_script import show_rows
from support.node import needs_node, run_script

from evaluand import Accuracy, Aggregator, Dataset, DirectoryStore, Evaluator, Runner
from evaluand.aggregation.aggregator import Measure
from evaluand.comparison.comparing import compare
from evaluand.core.errors import NotFound, Skipped
from evaluand.evaluation.evaluator import Evaluation
from evaluand.evaluation.scorer import Score
from evaluand.metrics.base.metric import Metric
from evaluand.metrics.column_statistics import Mean
from evaluand.report.page.resources.base import Source, find_resources, list_paths, read_resource
from evaluand.report.row_columns import MOST_VALUES
from evaluand.run.task import Candidates, FunctionTask

pytestmark = [needs_node, pytest.mark.filterwarnings("ignore::evaluand.evaluation.evaluator.ScorerFailed")]
ROWS = 40
EXAMPLES = Dataset.from_rows([{"input": f"row {i}"} for i in range(ROWS)])
find_resources()


def answer(text: str, seed: int) -> Any:
    draw = random.Random(f"{seed} {text}")
    kind = draw.random()
    if kind < 0.1:
        raise ValueError("no answer")
    if kind < 0.2:
        raise Skipped("not asked")
    return Candidates([draw.choice([0.0, 0.1, 0.3, 1.0]) for _ in range(draw.choice([1, 2, 3]))])


def score(output: float) -> Any:
    return Score.abstained("unclear") if output == 0.1 else output


def evaluate(store: DirectoryStore, data: Dataset, metric: Metric | None, seed: int, **options: Any) -> Evaluation:
    task = FunctionTask(lambda text: answer(text, seed), name=f"task {seed}", version="1")
    graded = Evaluator(store).evaluate(Runner(store).run(task, data, **options), {"score": score})
    if metric is not None:
        Aggregator(store).aggregate([graded], [Measure("score", metric)])
    return graded


def show(store: DirectoryStore, tasks: dict[str, Evaluation], *asked: dict[str, str]) -> Any:
    source = Source(store)
    named = {name: (each.manifest["provenance"]["run"], each.id) for name, each in tasks.items()}
    return show_rows(source, named, asked)


def counts(store: DirectoryStore, a: Evaluation, b: Evaluation) -> tuple[int, int]:
    """How many rows the grid shows as won and as lost by the first."""
    better, worse = show(store, {"a": a, "b": b}, {"preset": "better-0-1"}, {"preset": "better-1-0"})
    return len(better), len(worse)


def compared(a: Evaluation, b: Evaluation) -> tuple[int, int]:
    """How many rows the first loses to the second, and how many it wins, by the comparison of both."""
    pair = compare(a, b).pairs[0]
    return pair["lost"], pair["won"]


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with what two tasks were graded with, and no metric of it."""
    store = DirectoryStore(tmp_path_factory.mktemp("played"))
    evaluate(store, EXAMPLES, None, 1, replications=2)
    evaluate(store, EXAMPLES, None, 2, replications=2)
    return store.root


@pytest.mark.parametrize(
    "metric",
    [
        Mean(),
        Mean(direction="lower"),
        Mean(reduce="best"),
        Mean(reduce="best", direction="lower"),
        Mean(reduce="mean"),
        Mean(reduce="mean", direction="lower"),
        None,
    ],
)
def test_rows_shown_as_better_are_those_that_a_comparison_counts(played: Path, tmp_path: Path, metric: Any) -> None:
    store = DirectoryStore(shutil.copytree(played, tmp_path / "store", symlinks=True))
    a, b = (evaluate(store, EXAMPLES, metric, seed, replications=2) for seed in (1, 2))
    assert counts(store, a, b) == (better_and_worse := compared(a, b))
    assert min(better_and_worse) > 5


@pytest.mark.parametrize(("n", "pairs"), [(3, [(0, 1), (0, 2), (1, 2)]), (5, [(0, 1)])])
def test_rows_are_shown_for_every_two_of_few_systems(tmp_path: Path, n: int, pairs: list[tuple[int, int]]) -> None:
    store = DirectoryStore(tmp_path)
    graded = [evaluate(store, EXAMPLES, Mean(), seed) for seed in range(n)]
    tasks = {f"{seed}": each for seed, each in enumerate(graded)}
    every = [*itertools.permutations(range(n), 2)]
    shown = show(store, tasks, *({"preset": f"better-{one}-{other}"} for one, other in every))
    found = {pair: len(rows) for pair, rows in zip(every, shown, strict=True)}
    for one, other in itertools.combinations(range(n), 2):
        if (one, other) in pairs:
            assert (found[one, other], found[other, one]) == compared(graded[one], graded[other])
        else:
            assert found[one, other] == found[other, one] == ROWS  # there is no such preset


def test_a_missing_row_that_counts_as_wrong_is_lost(tmp_path: Path) -> None:
    store = DirectoryStore(tmp_path)
    data = Dataset.from_rows([{"input": str(i)} for i in range(ROWS)])
    metric = Accuracy(missing="wrong")
    tasks = [lambda text: 1 / int(text) and 1.0, lambda text: float(int(text) % 2 == 0)]
    graded = []
    for number, task in enumerate(tasks):
        run = Runner(store).run(FunctionTask(task, name=f"{number}", version="1"), data)
        graded.append(Evaluator(store).evaluate(run, {"score": score}))
        Aggregator(store).aggregate(graded[-1:], [Measure("score", metric)])
    assert counts(store, *graded) == compared(*graded) == (20, 1)


def test_rows_of_different_datasets_are_paired_by_content_as_in_a_comparison(tmp_path: Path) -> None:
    store = DirectoryStore(tmp_path)
    texts = [f"row {i % 30}" for i in range(ROWS)]  # some occur twice
    shuffled = [*texts[5:], "only here"]
    random.Random(1).shuffle(shuffled)
    first, second = (Dataset.from_rows([{"input": text} for text in each]) for each in (texts, shuffled))
    a, b = evaluate(store, first, Mean(), 1), evaluate(store, second, Mean(), 2)
    assert counts(store, a, b) == compared(a, b)
    rows, paired = show(store, {"a": a, "b": b}, {"sort": "index"}, {"filter": "a.index >= 0 and b.index >= 0"})
    [pair] = compare(a, b).pairs
    assert len(paired) == ROWS - 5
    assert len(rows) - len(paired) == pair["n_only_a"] + pair["n_only_b"] == 6
    assert all(texts[one] == shuffled[other] for one, other in paired)


def test_rows_of_a_run_over_some_examples_meet_those_of_all(tmp_path: Path) -> None:
    store = DirectoryStore(tmp_path)
    data = Dataset.from_rows([{"input": "the same"} for i in range(ROWS)])
    a, b = evaluate(store, data, Mean(), 1), evaluate(store, data, Mean(), 2, limit=10)
    [rows] = show(store, {"a": a, "b": b}, {"sort": "index"})
    assert rows == [[i, i if i < 10 else -1] for i in range(ROWS)]


def test_rows_pair_by_their_numbers_where_the_store_lacks_the_examples(tmp_path: Path) -> None:
    store = DirectoryStore(tmp_path)
    a, b = evaluate(store, EXAMPLES, Mean(), 1), evaluate(store, EXAMPLES, Mean(), 2, limit=10)
    [id] = store.ids("datasets")
    (tmp_path / "datasets" / id).rename(tmp_path / "gone")
    [rows] = show(DirectoryStore(tmp_path), {"a": a, "b": b}, {"sort": "index"})
    assert rows == [[i, i if i < 10 else -1] for i in range(ROWS)]


def test_attributes_of_many_values_are_filtered_by_and_come_when_they_are_asked_for(tmp_path: Path) -> None:
    store = DirectoryStore(tmp_path)
    rows = [{"input": f"{i}", "id": f"id {i}", "few": i % 3} for i in range(MOST_VALUES + 50)]
    graded = evaluate(store, Dataset.from_rows(rows, attributes=["id", "few"]), None, 1)
    run, source = graded.manifest["provenance"]["run"], Source(store)
    columns = read_resource(source, f"columns/{run}/{graded.id}", {})
    many, few = orjson.loads(columns[8 : 8 + int(columns[:8])])["attributes"]
    assert many == {"name": "id", "n": len(rows), "values": None}
    assert few == {"name": "few", "n": 3, "values": ["0", "1", "2"]}
    assert orjson.loads(read_resource(source, f"words/{run}/{graded.id}/0", {})) == [row["id"] for row in rows]
    written = {path for path in list_paths(source) if path.startswith("words/")}
    assert written == {f"words/{run}/{graded.id}/0", f"words/{run}/-/0"}
    asked = [{"filter": text} for text in ('id == "id 7"', 'id in ["id 9", "id 240", "none"] and few == 0', "id")]
    assert [len(found) for found in show_rows(source, {"a": (run, graded.id)}, asked)] == [1, 2, len(rows)]
    with pytest.raises(NotFound):
        read_resource(source, f"words/{run}/{graded.id}/2", {})


def test_an_attribute_of_too_many_values_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evaluand.report.row_columns._MOST_WORDS", 20)
    store = DirectoryStore(tmp_path)
    data = Dataset.from_rows([{"input": f"{i}", "id": f"id {i}"} for i in range(ROWS)], attributes=["id"])
    [said] = show(store, {"a": evaluate(store, data, None, 1)}, {"filter": 'id == "id 7"'})
    assert said.startswith("id has more than 65,535 different values, too many to filter by; search the text")
    assert said.endswith("at character 1")


NEAR = 2**53  # beyond which a float holds only every other whole number


def test_large_numbers_are_compared_exactly(tmp_path: Path) -> None:
    store = DirectoryStore(tmp_path)
    numbers = [1, NEAR, NEAR + 1, NEAR + 2, 2**63 - 1]
    rows = [{"_index_": number, "input": "row", "key": str(number)} for number in numbers]
    graded = evaluate(store, Dataset.from_rows(rows, attributes=["key"]), None, 1)
    expected = {
        f"index == {NEAR + 1}": [2],
        f"index in [{NEAR + 2}, 1]": [0, 3],
        f"index > {NEAR}": [2, 3, 4],
        f"index != {NEAR + 1}": [0, 1, 3, 4],
        f"index == {2**63 - 1}": [4],
        f"index == {2**63}": [],
        "index < 1e300": [0, 1, 2, 3, 4],
        f"key == {NEAR + 1}": [2],
        f"key < {NEAR + 1}": [0, 1],
        "key == true": [0],
    }
    found = show(store, {"a": graded}, *({"filter": text, "sort": "index"} for text in expected))
    assert {text: [place for [place] in rows] for text, rows in zip(expected, found, strict=True)} == expected


KIND = "(compare it with a text in quotes, such as"


NEVER_MEET: list[tuple[str, str | list[int]]] = [
    ('score.right == "yes"', 'score.right is a number and "yes" is not (compare it with a number) at character 16'),
    ('score.said in [1, "yes"]', 'score.said is a number and "yes" is not (compare it with a number, or compare'),
    ('mine.score.said < "yes"', "with a number, or compare mine.label.said) at character 19"),
    ('duration > 1 or index != "a"', 'index is a number and "a" is not (compare it with a number) at character 26'),
    ("score.right == 1 and topic < 1", f'no value of topic is a number {KIND} "plus") at character 30'),
    ("topic == true", f'no value of topic is a number {KIND} "plus") at character 10'),
    ("outcome == 1", f'no value of outcome is a number {KIND} "failed") at character 12'),
    ("status.right >= 1", f'no value of status.right is a number {KIND} "scored") at character 17'),
    ("label.said in [1]", f'no value of label.said is a number {KIND} "no") at character 16'),
    ('score.right == "1"', [1]),
    ('score.right < "true"', [0]),
    ("level > 9", [1]),
    ("level == 10", [1]),
    ("nothing == 1", []),
]


def test_numbers_and_texts_that_never_meet_are_a_fault_with_its_place(tmp_path: Path) -> None:
    store = DirectoryStore(tmp_path)
    rows: list[dict[str, Any]] = [
        {"input": "a", "topic": "plus", "level": "low", "nothing": None},
        {"input": "bb", "topic": "times", "level": "10", "nothing": None},
    ]
    data = Dataset.from_rows(rows, attributes=["topic", "level", "nothing"])
    scorers = {
        "right": lambda output: float(output == "bb"),
        "said": lambda output: Score(1.0 if output == "bb" else 0.0, label="yes" if output == "bb" else "no"),
    }
    graded = Evaluator(store).evaluate(Runner(store).run(FunctionTask(str, version="1"), data), scorers)
    shown = show(store, {"mine": graded}, *({"filter": text, "sort": "index"} for text, _ in NEVER_MEET))
    for (text, found), rows in zip(NEVER_MEET, shown, strict=True):
        if isinstance(found, str):
            assert found in rows, text
        else:
            assert rows == [[place] for place in found], text


def test_every_name_that_is_offered_is_a_filter(tmp_path: Path) -> None:
    store, names = DirectoryStore(tmp_path), ["not", "1e5", "disagree", "true", "1st", "a-b", "é"]
    rows = [{"input": text, **dict.fromkeys(names, value)} for text, value in (("a", "x"), ("b", "y"))]
    data = Dataset.from_rows(rows, attributes=names)
    graded = Evaluator(store).evaluate(Runner(store).run(FunctionTask(str, version="1"), data), {"score": len})
    offered = run_script('import { quotedName } from "./grid/filter.js";' + _SAY, names)
    assert show(store, {"only": graded}, *({"filter": f'{name} == "y"'} for name in offered)) == [[[1]]] * len(names)


def test_a_task_may_be_called_as_a_part_of_names(tmp_path: Path) -> None:
    store = DirectoryStore(tmp_path)
    data = Dataset.from_rows([{"input": "a"}, {"input": "bb"}])
    graded = Evaluator(store).evaluate(Runner(store).run(FunctionTask(str, version="1"), data), {"score": len})
    asked = {"filter": "score.score > 1"}
    assert show(store, {"score": graded, "status": graded}, asked) == [[[1, 1]]]
    [fault] = show(store, {"score": graded, "status": graded}, {"filter": "status.score.wrong > 1"})
    assert "there are score.score, score.score.score, status.score.score, outcome" in fault


UNKNOWN = [
    ("score.rihgt > 1", "no column is called score.rihgt (did you mean score.right?) at character 1"),
    ("topic and right == 1", "no column is called right (did you mean score.right?) at character 11"),
    ("not (scor.right)", "(did you mean score.right?) at character 6"),
    ("mine.score.rigth < 1", "(did you mean mine.score.right?) at character 1"),
    ("mien.score.right < 1", "(did you mean mine.score.right?) at character 1"),
    ('Topc == "plus"', "(did you mean topic?) at character 1"),
    ("two_words == 1", '(did you mean "two words"?) at character 1'),
    ("  outcme == 1", "(did you mean outcome?) at character 3"),
    ("label.wrong == 1", "no column is called label.wrong; there are score.right, mine.score.right"),
    ("x == 1", "no column is called x; there are score.right"),
]


def test_an_unknown_name_is_located_and_the_nearest_one_is_named(tmp_path: Path) -> None:
    store = DirectoryStore(tmp_path)
    data = Dataset.from_rows([{"input": "a", "topic": "plus", "two words": "1"}], attributes=["topic", "two words"])
    graded = Evaluator(store).evaluate(Runner(store).run(FunctionTask(str, version="1"), data), {"right": len})
    found = show(store, {"mine": graded, "theirs": graded}, *({"filter": text} for text, _ in UNKNOWN))
    for (text, fault), said in zip(UNKNOWN, found, strict=True):
        assert fault in said, text


_SAY = """
import { readFileSync } from "node:fs";
console.log(JSON.stringify(JSON.parse(readFileSync(0)).map(quotedName)));
"""
