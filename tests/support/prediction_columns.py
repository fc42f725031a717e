"""Columns of predictions of every type, for properties."""

from __future__ import annotations

import math
from typing import Any

from hypothesis import strategies as st

from evaluand.evaluation.prediction_table import PredictionColumns

TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=2)
VALUES = {
    "text": TEXT,
    "integer": st.integers(-(2**63), 2**63 - 1) | st.integers(0, 2),
    "number": st.floats(allow_nan=False) | st.sampled_from([0.5, 1.5]),
    "boolean": st.booleans(),
    "labels": st.lists(st.sampled_from("abc"), unique=True, max_size=3),
    "json": st.lists(st.integers(0, 2), max_size=2) | st.none() | TEXT,
}
CLASSES = {"text": ["a", "b"], "integer": [0, 1], "boolean": [True, False]}
CONFIDENCE = st.none() | st.floats(-1, 2) | st.just(math.inf)


@st.composite
def columns(draw: st.DrawFn) -> PredictionColumns:
    kind = draw(st.sampled_from(sorted(VALUES)))
    values = st.none() | VALUES[kind]
    if draw(st.booleans()) and kind in CLASSES:
        values = st.none() | st.sampled_from(CLASSES[kind])
    n = draw(st.integers(1, 6))
    truth, predictions = (draw(st.lists(values, min_size=n, max_size=n)) for _ in range(2))
    more: dict[str, Any] = {}
    which = draw(st.sampled_from(["nothing", "confidence", "scores"]))
    if which == "confidence":
        more["confidence"] = draw(st.lists(CONFIDENCE, min_size=n, max_size=n))
    elif which == "scores" and kind in CLASSES:
        score = st.none() | st.floats(0, 1)
        more["scores"] = {label: draw(st.lists(score, min_size=n, max_size=n)) for label in CLASSES[kind]}
    if draw(st.booleans()):
        more["weight"] = draw(st.lists(st.floats(0, 3), min_size=n, max_size=n))
    return PredictionColumns.build(truth, predictions, type=kind, **more)
