"""Drift is found where two samples differ, and not where they do not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from scipy.stats import binom
from support.effort import simulations

from evaluand import DataError, Dataset, Evaluator, MemoryStore, Runner, SpecError, measure_drift


def rows(rng: np.random.Generator, n: int, shift: float = 0.0, words: str = "red green blue cat dog") -> list[Any]:
    common = rng.normal(size=n)
    return [
        {f"n{j}": float(rng.normal(shift if j == 0 else 0) + common[i]) for j in range(4)}
        | {f"c{j}": "abcdefg"[min(int(rng.exponential(1.5)), 6)] for j in range(3)}
        | {"text": " ".join(rng.choice(words.split(), int(rng.integers(3, 12))))}
        | {"sometimes": None if rng.random() < 0.1 else int(rng.poisson(3))}
        for i in range(n)
    ]


def test_a_column_that_moved_is_named_with_its_effect() -> None:
    rng = np.random.default_rng(0)
    found = measure_drift(rows(rng, 200), rows(rng, 150, shift=1.0), labels=("march", "june"))
    assert found.verdict == "drift: 1 of 11 tests of columns differs between march and june, n0 most clearly"
    first = found.columns[0]
    assert (first.column, first.effect) == ("n0", "chance that b is larger")
    assert 0.6 < first.low < first.value < first.high < 0.85
    assert first.b > first.a
    assert first.psi > first.psi_by_chance
    assert found.drifted == ["n0", "classifier"]
    assert found.classifier.drivers[0]["column"] == "n0"


def test_other_words_are_found_by_the_classifier_alone() -> None:
    rng = np.random.default_rng(0)
    found = measure_drift(rows(rng, 300), rows(rng, 300, words="red green blue cat eel"))
    assert found.drifted == ["classifier"]
    assert found.classifier.drivers[0]["column"] == "text"
    assert found.verdict == "drift: the columns of a and b differ together, though none of 11 tests shows it alone"


def test_values_that_go_missing_are_drift() -> None:
    full = [{"x": i % 17, "y": 1} for i in range(300)]
    holes = [row | ({"x": None} if i % 5 == 0 else {}) for i, row in enumerate(full)]
    found = measure_drift(full, holes)
    assert found.columns[0].column == "x (missing)"
    assert found.columns[0].value == pytest.approx(0.2)
    assert found.drifted[0] == "x (missing)"


@pytest.mark.parametrize("n", [1, 9])
def test_of_few_rows_nothing_is_said(n: int) -> None:
    found = measure_drift([{"x": i} for i in range(n)], [{"x": 100 + i} for i in range(500)])
    assert not found.is_tested
    assert found.drifted == []
    assert found.verdict == "nothing can be said: fewer than 10 independent values in a sample"
    assert found.to_dict()["columns"][0]["p"] is None


def test_rows_of_a_cluster_are_one_observation() -> None:
    """Ten customers on each side, with forty equal rows each: rows alone would show drift almost always."""
    rng = np.random.default_rng(3)
    sides = [
        [
            {"x": float(level), "customer": f"{side}{i}"}
            for i, level in enumerate(rng.normal(size=10))
            for _ in range(40)
        ]
        for side in "ab"
    ]
    assert measure_drift(*sides, columns=["x"]).drifted
    by_customer = measure_drift(*(Dataset.from_rows(side, cluster="customer") for side in sides))
    assert by_customer.by == "cluster (customer)"
    assert by_customer.units == (10, 10)
    assert by_customer.drifted == []


def test_runs_over_one_dataset_are_compared_by_example() -> None:
    data = Dataset.from_rows([{"input": f"{'x' * (1 + i % 60)}"} for i in range(120)])
    runner = Runner(MemoryStore())
    long, short = (runner.run(task, data) for task in (lambda text: {"text": text * 2, "n": len(text)}, _shortened))
    found = measure_drift(long, short)
    assert (found.by, found.pairs) == ("example", 120)
    assert {each.column for each in found.columns} == {
        "output.text (characters)",
        "output.text (words)",
        "output.n",
        "failed",
    }
    assert [name for name in found.drifted if name != "classifier"] == ["output.n", "output.text (characters)"]


def _shortened(text: str) -> dict[str, Any]:
    return {"text": text * 2 + "!", "n": len(text) + 1}


def test_scores_of_evaluations_are_compared() -> None:
    data = Dataset.from_rows([{"input": str(i), "expected": str(i)} for i in range(200)])
    store = MemoryStore()
    right = {"right": lambda output, expected: output == expected}
    made = [
        Evaluator().evaluate(Runner(store).run(task, data), right, name=name)
        for name, task in (("good", str.strip), ("bad", lambda text: text if int(text) % 2 else "?"))
    ]
    found = measure_drift(*made)
    assert found.drifted[0] == "right"
    assert found.columns[0].value == pytest.approx(-0.5, abs=1e-9) or found.columns[0].value == pytest.approx(0.5)


def test_categories_that_are_new_count_even_if_each_is_rare() -> None:
    before = [{"c": "ab"[i % 2]} for i in range(400)]
    after = [{"c": "ab"[i % 2] if i % 4 else f"new{i % 12}"} for i in range(400)]
    found = measure_drift(before, after)
    assert found.drifted[0] == "c"


def test_dates_and_nested_values_are_columns_of_their_own() -> None:
    before = [{"day": f"2024-01-{1 + i % 28:02}", "user": {"age": i % 50, "tags": [1] * (i % 3)}} for i in range(200)]
    after = [{"day": f"2024-02-{1 + i % 28:02}", "user": {"age": i % 50, "tags": [1] * (i % 3)}} for i in range(200)]
    found = measure_drift(before, after)
    assert {each.column: each.kind for each in found.columns} == {
        "day": "number",
        "user.age": "number",
        "user.tags (items)": "number",
    }
    assert found.drifted == ["day", "classifier"]


def test_faults_say_what_to_do() -> None:
    with pytest.raises(SpecError, match="no column in common: they have x and y"):
        measure_drift([{"x": 1}], [{"y": 1}])
    with pytest.raises(SpecError, match=r"both samples have no column 'agee' .did you mean 'age'"):
        measure_drift([{"age": 1}], [{"age": 1}], columns=["agee"])
    with pytest.raises(DataError, match="b has no rows to compare"):
        measure_drift([{"x": 1}], Dataset.from_arrow(pa.table({"x": pa.array([], pa.int64())})))
    with pytest.raises(SpecError, match="confidence"):
        measure_drift([{"x": 1}], [{"x": 1}], confidence=95)


@pytest.mark.slow
@pytest.mark.parametrize(("n", "m"), [(60, 60), (300, 200), (4000, 2000)])
def test_samples_of_one_distribution_show_drift_in_at_most_five_of_a_hundred_cases(n: int, m: int) -> None:
    repeats = simulations(200 if n < 1000 else 40)
    wrong = powerful = 0
    for seed in range(repeats):
        rng = np.random.default_rng(seed)
        wrong += bool(measure_drift(rows(rng, n), rows(rng, m)).drifted)
        powerful += "n0" in measure_drift(rows(rng, n), rows(rng, m, shift=0.8), columns=["n0", "n1", "c0"]).drifted
    print(f"{n} and {m} rows: false alarms {wrong / repeats:.3f}, .57 deviations found {powerful / repeats:.2f}")  # noqa: T201
    assert wrong <= binom.ppf(0.99, repeats, 0.05)
