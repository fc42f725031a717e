"""How long metrics take beside scikit-learn's on the same data: `python benchmarks/scores.py [rows]`.

CPU time of this process, the best of three; without imports, and without what makes the data.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa

Case = tuple[str, Callable[[], Any]]


def scores(rows: int) -> Iterator[Case]:
    """Areas under curves of one class, from a table in shards."""
    from sklearn.metrics import average_precision_score, roc_auc_score

    from evaluand.groups import summarise
    from evaluand.metrics.average_precision import AveragePrecision
    from evaluand.metrics.roc_auc import RocAuc
    from evaluand.rows import SHARD_ROWS

    generator = np.random.default_rng(0)
    truth = generator.random(rows) < 0.3
    score = generator.normal(truth / 2, 1)
    status = pa.array(["scored"]).take(pa.array(np.zeros(rows, np.int64)))
    table = pa.table({"_index_": np.arange(rows), "status": status, "truth": truth, "confidence": score})
    shards = [table.slice(start, SHARD_ROWS) for start in range(0, rows, SHARD_ROWS)]
    given: dict[str, Any] = {"scored_by": "positive", "label": True}
    for kind, reference in ((RocAuc, roc_auc_score), (AveragePrecision, average_precision_score)):
        yield f"{kind.kind} of scikit-learn", lambda reference=reference: reference(truth, score)
        yield f"{kind.kind}", lambda kind=kind: summarise(shards, [kind(**given, confidence=None)])
        yield f"{kind.kind} with its interval", lambda kind=kind: summarise(shards, [kind(**given)])


def numbers(rows: int) -> Iterator[Case]:
    """Errors and correlations, with their intervals, from arrays."""
    from evaluand import evaluate

    generator = np.random.default_rng(0)
    truth = generator.normal(size=rows)
    prediction = truth + generator.normal(size=rows)
    for kind in ("root_mean_squared_error", "r_squared", "spearman", "kendall"):
        yield f"{kind} with its interval", lambda kind=kind: evaluate(truth, prediction, metrics=kind)


def seconds(call: Callable[[], Any]) -> float:
    """The best of three."""
    taken = []
    for _ in range(3):
        start = time.process_time()
        call()
        taken.append(time.process_time() - start)
    return min(taken)


if __name__ == "__main__":
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    print(f"{rows:,} rows")
    for name, call in (*scores(rows), *numbers(rows)):
        print(f"{name:<48}{seconds(call):8.3f} s")
