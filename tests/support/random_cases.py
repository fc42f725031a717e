"""Many random cases of a metric in one table: each case is a group, and cases differ in size, ties and weights."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from evaluand.aggregation.groups import MetricRow, summarise
from evaluand.metrics.base.metric import Metric

Case = Mapping[str, Any]
"""Columns of one case; `weight` holds the weights of its rows."""


def summarise_cases(metric: Metric, cases: Sequence[Case], schema: Mapping[str, pa.DataType]) -> list[MetricRow]:
    """The value of each case, in order."""
    sizes = [len(next(iter(case.values()))) for case in cases]
    n = sum(sizes)
    table = {"_index_": pa.array(np.arange(n)), "status": pa.array(["scored"] * n)}
    table |= {"case": pa.array(np.repeat(np.arange(len(cases)), sizes))}
    for name, kind in schema.items():
        table[name] = pa.array([value for case in cases for value in case[name]], kind)
    rows = summarise([pa.table(table)], [metric], [("case",)])
    by_case = {row.by["case"]: row for row in rows if row.by}
    return [by_case[str(number)] for number in range(len(cases))]


def check_cases(
    metric: Metric,
    cases: Sequence[Case],
    reference: Callable[[Case], float],
    schema: Mapping[str, pa.DataType],
    tolerance: float = 1e-12,
) -> int:
    """Compares each case with the reference, whose NaN means undefined; returns how many are defined."""
    defined = 0
    for number, (case, row) in enumerate(zip(cases, summarise_cases(metric, cases, schema), strict=True)):
        expected = reference(case)
        if math.isnan(expected):
            assert math.isnan(row.value), (number, case, row)
            assert row.reason, (number, case, row)
            continue
        assert row.value == pytest.approx(expected, rel=tolerance, abs=tolerance), (number, case, row)
        assert math.isnan(row.low) or row.low - _ROUNDING <= row.value <= row.high + _ROUNDING, (number, row)
        defined += 1
    return defined


_ROUNDING = 1e-12
