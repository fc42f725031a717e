"""Groups that are looked for on one half of the examples and judged on the other."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from support.effort import simulations

from evaluand.aggregation import Aggregator, GroupSearch, Measure, WorstGroup, find_worst_groups
from evaluand.cli import main
from evaluand.core.errors import SpecError
from evaluand.data.dataset import Dataset
from evaluand.evaluation.evaluator import Evaluation, Evaluator
from evaluand.metrics.accuracy import Accuracy
from evaluand.metrics.column_statistics import Mean
from evaluand.metrics.names import make_metric
from evaluand.run.runner import Runner


def evaluated(worse: float, n: int = 1200, seed: int = 0) -> Evaluation:
    """Right four times of five; less often, by so much, for the group a, x. The attribute `same` repeats g."""
    rng = np.random.default_rng(seed)
    rows = []
    for i in range(n):
        g, h = "ab"[rng.integers(2)], "xyz"[rng.integers(3)]
        right = rng.random() < (0.8 - worse * (g == "a" and h == "x"))
        rows.append({"input": i, "expected": i if right else -1, "g": g, "h": h, "same": g, "person": i // 2})
    data = Dataset.from_rows(rows, attributes=["g", "h", "same"], cluster="person")
    return Evaluator().evaluate(Runner().run(int, data), {"same": lambda output, expected: output == expected})


def found(evaluation: Evaluation, attributes: tuple[str, ...] = ("g", "h"), **options: Any) -> list[WorstGroup]:
    return find_worst_groups(evaluation, Measure("same", Accuracy(), search=GroupSearch(attributes, **options)))


def test_the_worst_group_is_found_on_one_half_and_confirmed_on_the_other() -> None:
    evaluation = evaluated(0.4)
    first = found(evaluation)[0]
    assert first.by == {"g": "a", "h": "x"}
    assert first.confirmed
    assert first.low <= first.value <= first.high < first.rest
    assert first.n_looked == 2 + 3 + 6
    assert found(evaluation)[0] == first
    assert found(evaluation, seed=1)[0].value != first.value


def test_of_groups_with_the_same_rows_one_is_shown() -> None:
    groups = found(evaluated(0.4), ("g", "h", "same"), depth=3, most=20)
    rows = [{*group.by.items()} for group in groups if group.by]
    assert {("g", "a"), ("h", "x")} in rows
    assert not any({"g", "same"} <= {name for name, _ in each} for each in rows)


@pytest.mark.slow
def test_groups_that_differ_by_chance_are_rarely_confirmed() -> None:
    of_samples = [found(evaluated(0.0, 300, seed), smallest=5) for seed in range(12)]
    assert sum(any(group.confirmed for group in groups) for groups in of_samples) <= 2
    assert np.mean([groups[0].found - groups[0].value for groups in of_samples]) < 0  # what was chosen looked too bad


@pytest.mark.slow
def test_confirmed_groups_and_their_intervals_err_as_rarely_as_they_say() -> None:
    """Eleven groups of 300 rows: equal, or one of them worse by .3."""
    equal = [found(evaluated(0.0, 300, seed), smallest=5) for seed in range(400)]
    wrong = np.mean([any(group.confirmed for group in groups) for groups in equal])
    covered = np.mean([all(not group.by or group.low <= 0.8 <= group.high for group in groups) for groups in equal])
    worse = [found(evaluated(0.3, 600, seed), smallest=5) for seed in range(200)]
    power = np.mean([any(g.confirmed and g.by == {"g": "a", "h": "x"} for g in groups) for groups in worse])
    print(f"wrong {wrong:.3f}, all covered {covered:.3f}, found {power:.3f}")  # noqa: T201 - for the documentation
    assert wrong <= 0.05
    assert covered >= 0.93
    assert power >= 0.8


@pytest.mark.slow
@pytest.mark.parametrize(
    ("right", "n", "attributes", "smallest"),
    [(0.97, 600, 3, 10), (0.9, 1200, 3, 30), (0.9, 300, 4, 5), (0.5, 600, 3, 10)],
)
def test_equal_groups_are_rarely_worse_whatever_the_share(right: float, n: int, attributes: int, smallest: int) -> None:
    """Three or four attributes of four values each, crossed in pairs."""
    names = "pqrs"[:attributes]
    wrong = []
    for seed in range(simulations(300)):
        rng = np.random.default_rng(seed)
        values = {name: rng.integers(4, size=n).tolist() for name in names}
        rows = [
            {"input": i, "expected": i if rng.random() < right else -1} | {name: values[name][i] for name in names}
            for i in range(n)
        ]
        data = Dataset.from_rows(rows, attributes=[*names])
        evaluation = Evaluator().evaluate(
            Runner().run(int, data), {"same": lambda output, expected: output == expected}
        )
        wrong.append(any(group.confirmed for group in found(evaluation, (*names,), smallest=smallest)))
    print(f"| {right} | {n} | {attributes} | {smallest} | {np.mean(wrong):.3f} |")  # noqa: T201 - for the documentation
    assert np.mean(wrong) <= 0.05 + 2 * math.sqrt(0.05 * 0.95 / len(wrong))


def test_without_a_worse_group_one_entry_says_so() -> None:
    [nothing] = found(evaluated(0.0, 40), smallest=30)
    assert (nothing.by, nothing.n_looked, nothing.confirmed) == (None, 0, False)
    aggregation = Aggregator().aggregate(
        [evaluated(0.0, 40)], [Measure("same", Accuracy(), search=GroupSearch("g", smallest=30))]
    )
    assert [row["by"] for row in aggregation.worst_groups().to_pylist()] == [None]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: found(evaluated(0.0, 20), ("gg",)), "'gg' is not an attribute of the dataset"),
        (lambda: GroupSearch(()), "name the attributes"),
        (lambda: GroupSearch("g", depth=0), "depth=0 must be an integer of at least 1"),
        (
            lambda: Measure("same", make_metric("max_error"), search=GroupSearch("g")),
            "max_error has no interval, so no group is worst",
        ),
        (lambda: Measure("same", Mean(direction=None), search=GroupSearch("g")), "mean has no direction"),
    ],
)
def test_what_cannot_be_searched_is_refused(make: Callable[[], object], message: str) -> None:
    with pytest.raises(SpecError, match=message):
        make()


EXPERIMENT = """
name: hiring
dataset: {path: rows.jsonl, input: x, expected: y, attributes: [sex, age]}
tasks:
  mine: {function: systems.py:mine}
  fair: {function: systems.py:fair}
scorers: prediction
metrics:
  - {kind: accuracy, worst_groups: [sex, age]}
  - {kind: recall, label: "yes", where: sex == "f", worst_groups: {attributes: age, smallest: 40, most: 2}}
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "e.yaml").write_text(EXPERIMENT)
    (tmp_path / "systems.py").write_text(
        "def fair(x):\n    return 'yes' if x % 7 else 'no'\n\n"
        "def mine(x):\n    return 'yes' if x % 7 and (x % 6 or x % 4 == 0) else 'no'\n"
    )
    rows = ({"x": n, "y": "yes", "sex": "fm"[n % 2], "age": ["old", "young", "<b>"][n % 3]} for n in range(1200))
    (tmp_path / "rows.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return tmp_path


def call(*words: str) -> Any:
    return CliRunner().invoke(main, [*words, "--store", "store"], catch_exceptions=False)


@pytest.mark.slow
def test_an_experiment_shows_its_worst_groups_everywhere(folder: Path) -> None:
    ran = call("run", "e.yaml", "--json")
    assert ran.exit_code == 0
    facts = json.loads(ran.stdout)
    groups = [row for row in facts["worst_groups"] if row["task"] == "mine"]
    first = groups[0]
    assert (first["by"], first["confirmed"], first["n_looked"]) == ({"sex": "f", "age": "old"}, True, 11)
    assert first["value"] < first["rest"]
    recall = [row for row in groups if row["metric"] == "recall"]
    assert [row["by"] for row in recall] == [{"age": "old"}]
    assert "where" in recall[0]["signature"]
    shown = call("show", facts["aggregation"]["id"], "--json")
    assert json.loads(shown.stdout)["worst_groups"] == facts["worst_groups"]
    for command in (("run", "e.yaml"), ("show", facts["aggregation"]["id"])):
        text = call(*command).stdout
        assert "sex=f, age=old" in text
        sure = [row["confirmed"] for row in facts["worst_groups"] if row["by"]]
        assert text.count("unclear") == sure.count(False) > 0
        assert "judged on the other half" in " ".join(text.split())
    assert call("report", "hiring", "-o", "r.html").exit_code == 0
    page = (folder / "r.html").read_text()
    assert "Groups that looked worse than all rows" in page
    assert "sex=f, age=old" in page
    assert "age=<b>" not in page
    assert call("verify", facts["aggregation"]["id"]).exit_code == 0


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ("worst_groups: [sexx]", "'sexx' is not an attribute of the dataset (did you mean 'sex'?)"),
        ("worst_groups: {attributes: sex, dept: 3}", "dept"),
        ("worst_groups: []", "name the attributes"),
        ("worst_groups: {attributes: sex, depth: 0}", "depth"),
    ],
)
def test_faults_of_a_search_are_named_at_their_line(folder: Path, entry: str, message: str) -> None:
    text = EXPERIMENT.replace("worst_groups: [sex, age]", entry)
    (folder / "e.yaml").write_text(text)
    result = call("run", "e.yaml")
    assert result.exit_code == 1
    assert "e.yaml:9" in result.stderr
    assert message in " ".join(result.stderr.split())
    assert not (folder / "store").exists()
