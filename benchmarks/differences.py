"""CPU time of a paired difference with its interval and p value, by metric, of a hundred thousand rows.

    python benchmarks/differences.py             100,000 rows
    python benchmarks/differences.py --quick     2,000 rows
    python benchmarks/differences.py --only f1_macro,spearman

Timed is `compare`, from two stored evaluations to the stored comparison; of disparities, a gate.
Each is measured once in a process of its own. Making the evaluations is in no figure.
"""

from __future__ import annotations

import argparse
import multiprocessing
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import evaluand
from evaluand.aggregation.aggregator import Measure
from evaluand.comparison.comparing import compare
from evaluand.comparison.gates import check_gates
from evaluand.data.dataset import Dataset
from evaluand.evaluation.evaluator import Evaluator
from evaluand.metrics.names import make_metric
from evaluand.run.runner import Runner
from evaluand.store.store import MemoryStore

ROWS, FEW = 100_000, 2_000
Timed = Callable[[], object]


def labels(metric: str, n: int) -> Timed:
    """Three classes, of which systems recognise 70 and 71 %."""
    random = np.random.default_rng(0)
    truth = random.choice(3, n, p=[0.6, 0.3, 0.1])
    sides = [np.where(random.random(n) < right, truth, random.integers(0, 3, n)) for right in (0.7, 0.71)]
    return _compare(metric, truth, predictions=sides)


def scores(metric: str, n: int) -> Timed:
    """Probabilities of a class that three in ten rows have."""
    random = np.random.default_rng(0)
    truth = (random.random(n) < 0.3).astype(int)
    logits = [random.normal(size=n) + better * truth - 1 for better in (1.0, 1.02)]
    return _compare(metric, truth, scores=[1 / (1 + np.exp(-logit)) for logit in logits])


def numbers(metric: str, n: int) -> Timed:
    random = np.random.default_rng(0)
    truth = random.normal(size=n)
    return _compare(metric, truth, predictions=[truth + spread * random.normal(size=n) for spread in (1.0, 0.99)])


def rankings(metric: str, n: int) -> Timed:
    """Questions with ten documents each."""
    random = np.random.default_rng(0)
    names = [f"d{place}" for place in range(10)]
    expected = [dict(zip(names, row, strict=True)) for row in random.integers(0, 3, (n, 10)).tolist()]
    return _compare_scored(
        metric,
        "ranking",
        expected,
        [
            [[names[place] for place in order] for order in np.argsort(random.random((n, 10)), axis=1).tolist()]
            for _ in "ab"
        ],
    )


def boxes(metric: str, n: int) -> Timed:
    """Images with one object of two classes each, found by four in five, and one wrong box in five images."""
    random = np.random.default_rng(0)
    label = random.choice(["cat", "dog"], n).tolist()
    expected = [[{"box": [0, 0, 10, 10], "label": name}] for name in label]

    def side() -> list[list[dict[str, object]]]:
        found, sure = random.random((n, 2)) < [0.8, 0.2], random.random((n, 2)).tolist()
        places = ([0, 0, 10, 10], [30, 30, 40, 40])
        return [
            [
                {"box": box, "label": name, "confidence": c}
                for box, c, is_found in zip(places, both, row, strict=True)
                if is_found
            ]
            for name, both, row in zip(label, sure, found.tolist(), strict=True)
        ]

    return _compare_scored(metric, "detection", expected, [side(), side()])


def disparity(gate: str, n: int) -> Timed:
    """Two labels and two groups; one system is mistaken more often in one of them."""
    random = np.random.default_rng(0)
    truth, group = random.integers(0, 2, n), random.integers(0, 2, n)
    sides = [np.where(random.random(n) < np.where(group == 1, wrong, 0.2), 1 - truth, truth) for wrong in (0.25, 0.21)]
    data = Dataset.from_rows(
        [
            {"input": place, "expected": f"c{label}", "group": name}
            for place, (label, name) in enumerate(zip(truth.tolist(), group.tolist(), strict=True))
        ],
        attributes="group",
    )
    store, made = MemoryStore(), []
    for side in sides:
        run = Runner(store).run([f"c{label}" for label in side.tolist()].__getitem__, data)
        made.append(Evaluator(store).evaluate(run, {"prediction": "prediction"}))
    odds = [
        Measure("prediction", make_metric(name, label="c1"), ("group",), ("difference",), "equalized_odds")
        for name in ("tpr", "fpr")
    ]
    return lambda: check_gates([gate], {"mine": made[1], "baseline": made[0]}, "baseline", measures=odds)


def _compare(metric: str, truth: np.ndarray, **both: list[np.ndarray]) -> Timed:
    [(name, sides)] = both.items()
    store = MemoryStore()
    evaluated = [evaluand.evaluate(truth, metrics=metric, **{name: side}) for side in sides]
    made = [each.to_evaluation(store, label) for each, label in zip(evaluated, "ab", strict=True)]
    return lambda: compare(*made, metrics=metric)


def _compare_scored(metric: str, scorer: str, expected: list[Any], sides: list[list[Any]]) -> Timed:
    store = MemoryStore()
    data = Dataset.from_rows([{"input": place, "expected": each} for place, each in enumerate(expected)])
    made = []
    for side in sides:
        run = Runner(store).run(side.__getitem__, data)
        made.append(Evaluator(store).evaluate(run, {"scored": scorer}))
    return lambda: compare(*made, metrics=[Measure("scored", make_metric(metric))])


CASES: dict[str, tuple[Callable[[str, int], Timed], float]] = {
    "f1_macro": (labels, 2),
    "roc_auc": (scores, 2),
    "r2": (numbers, 2),
    "root_mean_squared_error": (numbers, 2),
    "spearman": (numbers, 2),
    "ndcg": (rankings, 2),
    "debiased_calibration_error": (scores, 2),
    "equalized_odds difference by group not worse than baseline by 0.5": (disparity, 2),
    "mean_average_precision": (boxes, 10),
}
"""What is compared, by what data, and the CPU seconds that it may take."""


def measure(case: str, n: int) -> float:
    """CPU seconds, once: what is stored is not computed again."""
    draw, _ = CASES[case]
    work = draw(case, n)
    start = time.process_time()
    work()
    return time.process_time() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help=f"{FEW:,} rows")
    parser.add_argument("--only", default="", help="some of the metrics, separated by commas")
    options = parser.parse_args()
    chosen = [case for case in CASES if not options.only or case.split()[0] in options.only.split(",")]
    n = FEW if options.quick else ROWS
    print(f"{n:,} rows\n")
    for case in chosen:
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            seconds = pool.apply(measure, (case, n))
        print(f"{case:60} {seconds:6.2f} s of {CASES[case][1]:.0f}", flush=True)


if __name__ == "__main__":
    main()
