"""Comparisons by group, of some examples, and of the prompts or models of a matrix."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from scipy import stats

from evaluand import Dataset, Evaluation, Evaluator, MemoryStore, Runner, Task, compare
from evaluand.cli import main
from evaluand.comparison.comparing import Comparison
from evaluand.comparison.pairing import pair_rows
from evaluand.core.errors import EvaluandError, SpecError
from evaluand.core.fingerprint import Identity
from evaluand.metrics.names import make_metric
from evaluand.store.opening import open_store
from evaluand.store.store import Store

N = 60
ROWS = [
    {"input": i, "expected": i, "topic": "xyz"[i % 3], "level": i % 4, "id": f"n{i}", "half": "ab"[i % 2]}
    for i in range(N)
]
ATTRIBUTES = ["topic", "level", "id"]


@dataclass
class Asked(Task[int, int]):
    """A task that stands for a prompt and a model; it knows some of the answers."""

    prompt: str
    model: str
    right: Collection[int]

    def do_run(self, input: int, task_span: Any) -> int:
        return input if input in self.right else -1

    def identify(self) -> Identity:
        return Identity({"kind": "asked", "chat": {"model": self.model}, "prompt": self.prompt})


def grade(task: Any, name: str, rows: Sequence[dict[str, Any]] = ROWS, store: Store | None = None) -> Evaluation:
    attributes = [name for name in ATTRIBUTES if name in rows[0]]
    data = Dataset.from_rows(rows, attributes=attributes)
    run = Runner(store).run(task, data, name=name)
    return Evaluator(run.store).evaluate(run, {"exact": lambda output, expected: output == expected}, name=name)


def matrix(right: dict[str, Collection[int]], store: Store | None = None, name: str = "e") -> list[Evaluation]:
    store = store or MemoryStore()
    return [grade(Asked(*cell.split("/"), own), f"{name}/ask/{cell}", store=store) for cell, own in right.items()]


@pytest.fixture(scope="module")
def pair() -> list[Evaluation]:
    store = MemoryStore()
    tasks = {"a": lambda i: i if i % 3 else -1, "b": lambda i: i if i % 4 else -1}
    return [grade(task, name, store=store) for name, task in tasks.items()]


def test_each_group_is_compared_as_its_examples_alone(pair: list[Evaluation]) -> None:
    by_group = compare(*pair, by=["topic", "level"])
    assert [row["by"] for row in by_group.pairs] == [
        None,
        *({"topic": topic} for topic in "xyz"),
        *({"level": str(level)} for level in range(4)),
    ]
    for row in by_group.pairs[1:]:
        [(name, value)] = row["by"].items()
        condition = f'{name} == "{value}"' if name == "topic" else f"{name} == {value}"
        [alone] = compare(*pair, where=condition).pairs
        own = ("n", "value_a", "value_b", "difference", "low", "high", "worst", "p", "won", "lost", "detectable")
        assert {name: row[name] for name in own} == {name: alone[name] for name in own}


def test_all_examples_are_compared_as_without_groups(pair: list[Evaluation]) -> None:
    [alone] = compare(*pair).pairs
    assert compare(*pair, by="topic").pairs[0] == alone


def test_the_groups_of_a_metric_are_a_family_of_their_own(pair: list[Evaluation]) -> None:
    overall, *groups = compare(*pair, by="topic").pairs
    assert overall["p_holm"] == overall["p"]
    assert min(row["p_holm"] for row in groups) == pytest.approx(3 * min(row["p"] for row in groups))
    assert "after Holm" not in overall["verdict"]
    assert all("after Holm" in row["verdict"] for row in groups)


def test_three_systems_are_compared_in_each_group(pair: list[Evaluation]) -> None:
    third = grade(lambda i: i, "c", store=pair[0].store)
    compared = compare(*pair, third, by="topic")
    assert len(compared.pairs) == 3 + 3 * 3
    assert [place["evaluation"] for place in compared.ranking] == [2, 1, 0]
    assert all(row["p_shaffer"] >= row["p"] for row in compared.pairs)


def test_functions_of_all_rows_have_groups_too() -> None:
    store = MemoryStore()
    data = Dataset.from_rows([row | {"expected": ["no", "yes"][row["input"] % 2]} for row in ROWS], attributes="topic")
    made = []
    for wrong in (5, 7):
        run = Runner(store).run(lambda i, wrong=wrong: ["no", "yes"][(i + (i % wrong == 0)) % 2], data)
        made.append(Evaluator(store).evaluate(run, {"prediction": "prediction"}))
    rows = compare(*made, metrics="f1_macro", by="topic").pairs
    [alone] = compare(*made, metrics="f1_macro", where='topic == "y"').pairs
    assert [row["difference"] for row in rows if row["by"] == {"topic": "y"}] == [alone["difference"]]


def test_a_group_that_only_one_side_has_says_so(pair: list[Evaluation]) -> None:
    other = grade(lambda i: i, "c", [row for row in ROWS if row["topic"] != "z"], pair[0].store)
    *_, last = compare(pair[0], other, by="topic").pairs
    assert (last["by"], last["difference"], last["n_only_a"]) == ({"topic": "z"}, None, N // 3)
    assert last["verdict"] == "nothing can be said: no row was asked of both"


def test_examples_without_a_value_are_a_group() -> None:
    store, rows = MemoryStore(), [row | {"topic": None if row["input"] < 6 else "x"} for row in ROWS]
    made = [grade(task, name, rows, store) for name, task in (("a", lambda i: i), ("b", lambda i: -i))]
    assert [row["by"] for row in compare(*made, by="topic").pairs] == [None, {"topic": "x"}, {"topic": None}]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"by": "topics"}, "'topics' is not an attribute of the dataset (did you mean 'topic'?); declare it under"),
        ({"by": "half"}, "'half' is not an attribute of the dataset; declare it under attributes"),
        ({"by": "id"}, "'id' has 60 values; compare by one with at most 50, such as ranges of it"),
        ({"where": "levl > 1"}, "'levl' is not an attribute of the dataset (did you mean 'level'?); declare it"),
        ({"where": "level > 9"}, "no example matches 'level > 9', so nothing can be compared"),
        ({"where": 'level > "x"'}, "filter 'level > \"x\"': level is a number and 'x' is text"),
        ({"over": "topic"}, "over is 'topic'; give prompt or model, the factors of a matrix of tasks"),
        ({"over": "prompt"}, "the prompt of a is unknown: its task asks no model"),
    ],
)
def test_what_cannot_be_known_is_refused(pair: list[Evaluation], arguments: Any, message: str) -> None:
    with pytest.raises(SpecError) as error:
        compare(*pair, **arguments)
    assert str(error.value).startswith(message)


def test_equal_examples_meet_in_order_among_many_others() -> None:
    store = MemoryStore()
    one, other = [{"input": n} for n in (1, 1, 2)], [{"input": n} for n in (5, 1, 4, 3, 1, 1)]
    a, b = (grade(lambda input: input, name, rows, store) for name, rows in (("a", one), ("b", other)))
    rows = pair_rows([a, b], "exact", make_metric("accuracy"))
    both = (rows.index >= 0).all(axis=0)
    assert sorted(map(tuple, rows.index[:, both].T.tolist())) == [(0, 1), (1, 4)]
    assert len(set(rows.example[both].tolist())) == 1


RIGHT = {"short/small": range(4), "short/big": range(8), "long/small": range(8), "long/big": range(8)}


def describe(compared: Comparison) -> list[tuple[Any, ...]]:
    return [(row["a"], row["b"], row["value_a"], row["value_b"], row["difference"]) for row in compared.pairs]


def test_prompts_are_compared_by_the_mean_of_each_example_over_models() -> None:
    made = matrix(RIGHT)
    compared = compare(*made, over="prompt", where="level < 4")
    assert describe(compared) == [(0, 2, pytest.approx(6 / N), pytest.approx(8 / N), pytest.approx(2 / N))]
    [row] = compared.pairs
    contrast = np.array([-1.0 if 4 <= i < 8 else 0.0 for i in range(N)])  # of big against small
    assert row["p_interaction"] == pytest.approx(stats.ttest_1samp(contrast, 0).pvalue)
    assert row["verdict"].startswith("no difference could be shown: long − short = +3.3 points")
    assert row["verdict"].endswith(f"; interaction with the model: p = {row['p_interaction']:.4f}")
    assert compared.to_dict()["over"] == {
        "factor": "prompt",
        "other": "model",
        "levels": ["short", "short", "long", "long"],
    }


def test_models_are_compared_over_prompts_whatever_the_order() -> None:
    small, big, *others = matrix(RIGHT)
    assert describe(compare(big, *others, small, over="model"))[0][2:] == pytest.approx((8 / N, 6 / N, -2 / N))


def test_prompts_are_known_whatever_else_the_same_tasks_are_called() -> None:
    store = MemoryStore()
    made = matrix(RIGHT, store)
    before = describe(compare(*made, over="prompt"))
    again = matrix(RIGHT, store, "e2")
    assert [evaluation.id for evaluation in again] == [evaluation.id for evaluation in made]
    assert describe(compare(*made, over="prompt")) == describe(compare(*again, over="prompt")) == before
    others = {name: range(9 + number) for number, name in enumerate(RIGHT)}
    store = MemoryStore()
    distinct, _ = (matrix(others, store, name) for name in ("e", "e2"))
    assert len(compare(*distinct, over="prompt", labels=["k", "l", "m", "n"]).pairs) == 1


def test_prompts_of_tasks_with_the_same_answers_are_told_apart_whatever_their_labels() -> None:
    same = matrix({cell: range(3) for cell in RIGHT})
    assert len({each.digest for each in same}) == 1
    [row] = compare(*same, over="prompt", labels=["k", "l", "m", "n"]).pairs
    assert (row["n"], row["difference"]) == (N, 0)


def test_several_levels_are_ranked_and_have_an_interaction_over_all() -> None:
    names = ["/".join(name) for name in itertools.product(["p", "q", "r"], ["k", "l", "m"])]
    random = np.random.default_rng(0)
    right = random.random((9, N)) < 0.5
    made = matrix({name: set(np.flatnonzero(own).tolist()) for name, own in zip(names, right, strict=True)})
    compared = compare(*made, over="prompt")
    assert [(row["a"], row["b"]) for row in compared.pairs] == [(0, 3), (0, 6), (3, 6)]
    assert {place["evaluation"] for place in compared.ranking} == {0, 3, 6}
    change = (right[3:6].astype(float) - right[:3])[:, :N]
    contrasts = change[1:] - change[0]
    mean, spread = contrasts.mean(axis=1), np.cov(contrasts) / N
    f = float(mean @ np.linalg.inv(spread) @ mean) * (N - 2) / (2 * (N - 1))
    assert compared.pairs[0]["p_interaction"] == pytest.approx(stats.f.sf(f, 2, N - 2))


def test_a_row_counts_where_all_cells_have_a_value() -> None:
    store = MemoryStore()
    data = Dataset.from_rows(ROWS, attributes=ATTRIBUTES)

    @dataclass
    class Failing(Asked):
        def do_run(self, input: int, task_span: Any) -> int:
            if input == 7 and self.prompt == "long" and self.model == "big":
                raise ValueError("no answer")
            return super().do_run(input, task_span)

    made = []
    for name, right in RIGHT.items():
        run = Runner(store).run(Failing(*name.split("/"), right), data, name=name)
        made.append(Evaluator(store).evaluate(run, {"exact": lambda output, expected: output == expected}, name=name))
    [row] = compare(*made, over="prompt").pairs
    assert (row["n"], row["n_used"], row["n_a_missing"], row["n_b_missing"]) == (N, N - 1, 0, 1)


@pytest.mark.parametrize(
    ("cells", "message"),
    [
        (["short/small", "short/big", "long/small"], "no task has the prompt long with the model big; run it too, or"),
        (
            ["short/small", "short/big"],
            "all tasks have the same prompt; compare tasks with several prompts and several",
        ),
        (
            ["short/small", "long/small"],
            "all tasks have the same model; compare tasks with several prompts and several",
        ),
    ],
)
def test_a_matrix_with_gaps_is_refused(cells: list[str], message: str) -> None:
    with pytest.raises(SpecError) as error:
        compare(*matrix({name: RIGHT[name] for name in cells}), over="prompt")
    assert str(error.value).startswith(message)


def test_functions_of_all_rows_have_no_effect_on_each() -> None:
    with pytest.raises(EvaluandError, match="no mean of one number per row"):
        compare(*matrix(RIGHT), over="prompt", metrics=make_metric("quantile", q=0.5))


def test_the_command_takes_groups_and_conditions(tmp_path: Path) -> None:
    store = open_store(tmp_path / "store")
    for name, task in (("a", lambda i: i if i % 3 else -1), ("b", lambda i: i if i % 4 else -1)):
        grade(task, name, store=store)

    def call(*options: str) -> Any:
        return CliRunner(env={"COLUMNS": "120"}).invoke(
            main, ["compare", "a", "b", "--store", str(tmp_path / "store"), "--flips", "0", *options]
        )

    shown = call("--by", "topic", "--where", "level > 0").output
    assert "accuracy · exact, by group" in shown
    assert "topic=z A → B" in shown
    refused = call("--where", "level > 0", "--gate", "accuracy >= 0.1")
    assert (refused.exit_code, "--where does not reach gates" in refused.output) == (2, True)
    assert "the prompt of a is unknown" in call("--over", "prompt").output
    assert '"by": {' in call("--by", "topic", "--json").output
