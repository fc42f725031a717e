"""Predictions of a million rows scored from their files, and the same files read by Arrow with their types and no more.

Ours finds the problem, reads truth and predictions, checks every row and cell, takes the digests of the files, brings
the rows together and computes the metric. Arrow is told the names and types of the columns.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from metrics import OURS, Case, Peer

ARROW = "Arrow's reading"
PEERS = {ARROW: Peer(None, "pyarrow")}
ROWS = 1_000_000
CLASSES = 10
LABELS, NUMBERS = "f1Macro", "rootMeanSquaredError"


def _files(metric: str, n: int) -> tuple[Any, Path]:
    """A problem's document with truth and predictions; the folder goes when the first is forgotten."""
    import pyarrow as pa
    from pyarrow import csv

    held = tempfile.TemporaryDirectory(prefix="evaluand-bench-")
    place = Path(held.name)
    random = np.random.default_rng(0)
    if metric == LABELS:
        codes = random.integers(0, CLASSES, n)
        names = np.array([f"class {code}" for code in range(CLASSES)])
        sides = names[codes], names[np.where(random.random(n) < 0.7, codes, random.integers(0, CLASSES, n))]
    else:
        numbers = random.normal(size=n)
        sides = numbers, numbers + random.normal(scale=0.1, size=n)
    for name, side in zip(("targets.csv", "predictions.csv"), sides, strict=True):
        table = pa.table({"d3mIndex": np.arange(n), "y": pa.array(side)})
        csv.write_csv(table, place / name, csv.WriteOptions(quoting_style="none", quoting_header="none"))
    kind = (
        {"taskType": "classification", "taskSubType": "multiClass"} if metric == LABELS else {"taskType": "regression"}
    )
    document = {
        "about": {"problemID": "p", "problemName": "p", "problemSchemaVersion": "3.1.1", **kind},
        "inputs": {
            "data": [{"datasetID": "d", "targets": [{"targetIndex": 0, "resID": "0", "colIndex": 1, "colName": "y"}]}],
            "performanceMetrics": [{"metric": metric}],
        },
        "expectedOutputs": {},
    }
    (place / "problemDoc.json").write_text(json.dumps(document))
    return held, place


def _ours(metric: str, intervals: bool, n: int) -> Callable[[], float]:
    from evaluand.predictions.scoring import score

    held, place = _files(metric, n)
    files = [place / name for name in ("problemDoc.json", "predictions.csv", "targets.csv")]

    def work() -> float:
        assert held
        return score(*files, intervals=intervals).rows[0].value

    return work


def _read(metric: str, n: int) -> Callable[[], float]:
    import pyarrow as pa
    from pyarrow import csv

    held, place = _files(metric, n)
    types = {"d3mIndex": pa.int64(), "y": pa.string() if metric == LABELS else pa.float64()}
    options = csv.ConvertOptions(column_types=types)

    def work() -> float:
        assert held
        return float(
            sum(len(csv.read_csv(place / f, convert_options=options)) for f in ("targets.csv", "predictions.csv"))
        )

    return work


CASES = [
    Case(
        f"{metric} from CSV" + ("" if intervals else ", values alone"),
        {OURS: partial(_ours, metric, intervals), ARROW: partial(_read, metric)},
        ROWS,
        {} if intervals else {ARROW: 0.5},
    )
    for metric in (LABELS, NUMBERS)
    for intervals in (False, True)
]
