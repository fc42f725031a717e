"""Points in the form of the table of metrics: one row per point and objective; `at` names the point."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from evaluand.aggregation.groups import group_text
from evaluand.store import tables
from evaluand.tradeoff.objectives import Objective

if TYPE_CHECKING:
    from evaluand.tradeoff.points import Tradeoff

_AT: Final = pa.map_(pa.string(), pa.string())

POINTS: Final = pa.schema(
    [
        pa.field("system", pa.string(), nullable=False),
        pa.field("scorer", pa.string()),
        *(tables.METRICS.field(name) for name in ("metric", "signature", "by")),
        pa.field("at", _AT, nullable=False),
        pa.field("disparity", pa.string()),
        pa.field("over", pa.list_(pa.string()), nullable=False),
        *(tables.METRICS.field(name) for name in ("value", "reason", "low", "high")),
        pa.field("n", pa.int64()),
        pa.field("trivial", pa.bool_(), nullable=False),
    ]
)
"""Columns that also occur in the tables of an aggregation have the same meaning there. `n` is the number of rows in the
groups that are compared, or of all rows; null where it is unknown."""


def points_table(points: Tradeoff) -> pa.Table:
    """The rows of the points, point by point; see `Tradeoff.table`."""
    n, k = points.value.shape
    at = [_point_key(points, point) for point in range(n)]
    ends = {name: np.full((n, k), np.nan) if points.ends is None else getattr(points.ends, name) for name in _ENDS}
    each = [_objective_columns(objective, points) for objective in points.objectives]
    repeated: dict[str, Sequence[Any]] = {name: [one[name] for one in each] * n for name in each[0]}
    unknown = points.unknown
    columns = {
        **repeated,
        "system": [points.system] * (n * k),
        "at": [one for one in at for _ in range(k)],
        "value": points.value.ravel(),
        "reason": [points.why_unknown(*divmod(place, k)) if miss else None for place, miss in enumerate(unknown.flat)],
        **{name: end.ravel() for name, end in ends.items()},
        "trivial": np.repeat(points.trivial, k),
    }
    arrays = [pa.array(columns[field.name], field.type, from_pandas=True) for field in POINTS]
    return pa.Table.from_arrays(arrays, schema=POINTS)


def _point_key(points: Tradeoff, point: int) -> list[tuple[str, str]]:
    """The model and its threshold, or the thresholds of the groups."""
    names = [f"threshold {group_text(name)}" for name in points.threshold_groups] or ["threshold"]
    thresholds = np.atleast_1d(points.threshold[point]).tolist()
    known = [(name, repr(each)) for name, each in zip(names, thresholds, strict=True) if each == each]
    return [("model", points.models[points.model[point]]), *known]


def _objective_columns(objective: Objective, points: Tradeoff) -> Mapping[str, Any]:
    """The columns that are the same for all points of an objective."""
    confidences = points.confidences
    signatures = [part.signature for part in objective.parts]
    if confidences is not None:  # intervals of points are not those of the metric
        signatures = [signature.partition(" interval=")[0] for signature in signatures]
    return {
        "scorer": objective.scorer,
        "metric": objective.metric,
        "signature": " | ".join(signatures),
        "by": [],
        "disparity": objective.disparity,
        "over": list(objective.by),
        "n": None if confidences is None else int((confidences.groups(objective.by).code >= 0).sum()),
    }


_ENDS: Final = ("low", "high")
