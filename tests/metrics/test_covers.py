"""Metrics of overlapping communities, against their definitions counted node by node."""

from __future__ import annotations

import math
from collections import Counter
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import sklearn.metrics as sk
from support.random_cases import Case, check_cases

from evaluand.aggregation.groups import summarise
from evaluand.core.errors import SpecError
from evaluand.metrics.base.metric import Metric
from evaluand.metrics.covers import OmegaIndex, OverlappingMutualInformation
from evaluand.predictions.evaluating import evaluate

SETS = pa.list_(pa.string())
SCHEMA = {"truth": SETS, "prediction": SETS, "_weight_": pa.float64()}


def drawn(n_cases: int, seed: int) -> list[Case]:
    """Cases of 1 to 14 nodes in up to four communities of each side; some equal, some empty, some with all nodes."""
    generator = np.random.default_rng(seed)
    cases = []
    for number in range(n_cases):
        n = int(generator.integers(1, 15))
        sides = [generator.random((n, generator.integers(1, 5))) < generator.uniform(0.1, 0.9) for _ in range(2)]
        if number % 5 == 0:
            sides[1] = sides[0][:, ::-1]
        if number % 7 == 0:
            sides[0][:, 0] = True
        cases.append(
            {
                "truth": [[f"t{j}" for j in np.flatnonzero(row)] for row in sides[0]],
                "prediction": [[f"p{j}" for j in np.flatnonzero(row)] for row in sides[1]],
                "_weight_": generator.integers(1, 4, n).astype(float),
            }
        )
    return cases


def repeated(case: Case, weighted: bool) -> list[tuple[list[str], list[str]]]:
    """The sets of both sides; a node of weight 3 is three nodes."""
    pairs = list(zip(case["truth"], case["prediction"], strict=True))
    return [pair for pair, w in zip(pairs, case["_weight_"], strict=True) for _ in range(int(w) if weighted else 1)]


def communities(sets: list[list[str]]) -> list[frozenset[int]]:
    labels = sorted({label for one in sets for label in one})
    return [frozenset(node for node, one in enumerate(sets) if label in one) for label in labels]


def h(*counts: int) -> float:
    n = sum(counts)
    return -sum(c / n * math.log2(c / n) for c in counts if c)


def left(x: frozenset[int], others: list[frozenset[int]], n: int) -> float:
    """The entropy of a community given the best of the others."""
    found = [h(len(x), n - len(x))]
    for y in others:
        d, b, c = len(x & y), len(y - x), len(x - y)
        a = n - b - c - d
        part = {k: -k / n * math.log2(k / n) if k else 0.0 for k in (a, b, c, d)}
        if part[a] + part[d] > part[b] + part[c] + 1e-12:
            found.append(h(a, b, c, d) - h(len(y), n - len(y)))
    return min(found)


def information(normalization: str, weighted: bool, case: Case) -> float:
    pairs = repeated(case, weighted)
    n, (one, other) = len(pairs), (communities([list(pair[side]) for pair in pairs]) for side in range(2))
    if not one or not other:
        return 0.0 if one or other else math.nan
    if Counter(one) == Counter(other):
        return 1.0
    entropy = [[h(len(x), n - len(x)) for x in side] for side in (one, other)]
    rest = [[left(x, other, n) for x in one], [left(y, one, n) for y in other]]
    if normalization == "max":
        most = max(map(sum, entropy))
        return (sum(map(sum, entropy)) - sum(map(sum, rest))) / 2 / most if most else math.nan
    shares = [[r / e if e else 1.0 for r, e in zip(*side, strict=True)] for side in zip(rest, entropy, strict=True)]
    return 1 - sum(sum(side) / len(side) for side in shares) / 2


def omega(weighted: bool, case: Case) -> float:
    """Pairs of different rows, each counted by the product of the weights."""
    weight = case["_weight_"] if weighted else np.ones(len(case["truth"]))
    numbers: list[Counter[int]] = [Counter(), Counter()]
    agree = total = 0.0
    for i, j in combinations(range(len(weight)), 2):
        shared = [len(set(case[side][i]) & set(case[side][j])) for side in ("truth", "prediction")]
        pair = weight[i] * weight[j]
        total, agree = total + pair, agree + pair * (shared[0] == shared[1])
        for counter, number in zip(numbers, shared, strict=True):
            counter[number] += pair
    if not total:
        return math.nan
    expected = sum(numbers[0][k] * numbers[1][k] for k in numbers[0]) / total**2
    return 1.0 if agree == total else (agree / total - expected) / (1 - expected)


def check(n_cases: int) -> None:
    for weighted in (False, True):
        cases = drawn(n_cases, int(weighted))
        for normalization in ("max", "lfk"):
            metric = OverlappingMutualInformation(normalization=normalization, weighted=weighted)  # type: ignore[arg-type]
            assert check_cases(metric, cases, partial(information, normalization, weighted), SCHEMA) > n_cases / 2
        assert check_cases(OmegaIndex(weighted=weighted), cases, partial(omega, weighted), SCHEMA) > n_cases / 2


def test_random_cases_have_the_values_of_the_definitions() -> None:
    check(12)


@pytest.mark.slow
def test_two_thousand_random_cases_have_the_values_of_the_definitions() -> None:
    check(1000)


def test_of_partitions_omega_is_the_adjusted_rand_index() -> None:
    generator = np.random.default_rng(1)
    truth, prediction = generator.integers(0, 4, (2, 60))
    expected = sk.adjusted_rand_score(truth, prediction)
    assert evaluate(truth, prediction, metrics="omega_index").rows[0].value == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("metric", [OverlappingMutualInformation(), OmegaIndex()])
def test_shards_merge_to_the_whole_and_names_do_not_matter(metric: Metric) -> None:
    cases = drawn(12, 3)
    sets = {name: [one for case in cases for one in case[name]] for name in ("truth", "prediction")}
    n = len(sets["truth"])
    whole = pa.table(
        {"_index_": np.arange(n), "status": ["scored"] * n, **{k: pa.array(v, SETS) for k, v in sets.items()}}
    )
    [one], [other] = (summarise(parts, [metric]) for parts in ([whole], [whole.slice(0, 30), whole.slice(30)]))
    assert (one.value, one.low, one.high) == pytest.approx((other.value, other.low, other.high), abs=1e-12)
    renamed = [[{"p0": "p3", "p3": "p0"}.get(label, label) for label in one] for one in sets["prediction"]]
    assert evaluate(sets["truth"], renamed, metrics=metric).rows[0].value == pytest.approx(one.value, abs=1e-12)


@pytest.mark.parametrize(
    ("metric", "sets", "why"),
    [
        (OverlappingMutualInformation(), [[], []], "no node is in a community"),
        (OverlappingMutualInformation(), [["a", "b"]], "every community has all nodes, which tells nothing"),
        (OmegaIndex(), [["a"]], "there is one node, which makes no pair"),
    ],
)
def test_what_is_undefined_has_a_reason_and_no_value(metric: Metric, sets: Any, why: str) -> None:
    predicted = [one[:1] for one in sets]
    row = evaluate(pa.array(sets, SETS), pa.array(predicted, SETS), metrics=metric).rows[0]
    assert math.isnan(row.value)
    assert row.reason == why


def test_an_unknown_normalisation_is_refused() -> None:
    with pytest.raises(SpecError, match="normalization is the text 'min'; give one of max, lfk"):
        OverlappingMutualInformation(normalization="min")  # type: ignore[arg-type]
