"""The two-sample classifier: can a model that sees all columns tell two samples apart?

A logistic regression learns from one half of the units which sample a row is in; its ranks of the other half, which it
has not seen, are tested. So any difference that it finds counts, also one of several columns together, and its p value
needs no assumption.
Source: D. Lopez-Paz & M. Oquab, "Revisiting classifier two-sample tests" (ICLR 2017).
"""

from __future__ import annotations

import math
import re
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from evaluand.comparison.drift.columns import Column
from evaluand.metrics.stats.intervals import random_bits
from evaluand.metrics.stats.two_samples import Sides, chance_larger, rank_sum

MOST_ROWS: Final = 20_000
"""Of more rows a random part is learnt from and tested."""

FEWEST_UNITS: Final = 40
"""Units of each sample below which no half is large enough to learn from."""

_WORDS: Final = 64
_CATEGORIES: Final = 20
_PENALTY: Final = 1.0
_STEPS: Final = 25
_DRIVERS: Final = 5
_WORD: Final = re.compile(r"\w+")


@dataclass(frozen=True)
class Classifier:
    """The two-sample classifier: `area` is the chance that it ranks an unseen row of b above one of a.

    Attributes:
        p: of whether it is above .5.
        rows: of both halves.
        drivers: the columns that it needs most: `column`, and `area` that is lost without it.
        reason: why there is none.
    """

    area: float = math.nan
    low: float = math.nan
    high: float = math.nan
    p: float = math.nan
    p_adjusted: float = math.nan
    rows: int = 0
    drivers: tuple[dict[str, Any], ...] = ()
    reason: str | None = None


def classify(columns: Sequence[Column], sides: Sides, confidence: float) -> Classifier:
    """Learns from one half of the units and is tested on the other; p is not adjusted."""
    if min(sides.units) < FEWEST_UNITS:
        return Classifier(reason=f"fewer than {FEWEST_UNITS} independent rows in a sample")
    bits = random_bits(np.arange(sides.n_units, dtype=np.uint64), 1)
    order = np.argsort(bits, kind="stable")
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    share = min(1.0, MOST_ROWS / len(sides))
    rows = np.flatnonzero((rank < share * sides.n_units)[sides.unit])
    if not len(columns):
        return Classifier(reason="there is no column to learn from")
    features, source = _features([_select(column, rows) for column in columns], len(rows))
    test = (rank[sides.unit[rows]] % 2).astype(np.bool_)
    second = sides.second[rows]
    if min(np.bincount(second[half], minlength=2).min() for half in (test, ~test)) < FEWEST_UNITS // 4:
        return Classifier(reason="too few rows in a half")
    weights = _fit(features[~test], second[~test])
    unseen = sides.take(rows[test])
    score = features[test] @ weights
    area = chance_larger(score, unseen, confidence)
    drivers = []
    for place, column in enumerate(columns):
        own = np.append(source == place, False)  # the last one is the constant
        without = score - (features[test][:, own] - features[~test][:, own].mean(axis=0)) @ weights[own]
        drivers.append((column.name, area.value - chance_larger(without, unseen, confidence).value))
    drivers.sort(key=lambda each: -each[1])
    needed = tuple({"column": name, "area": lost} for name, lost in drivers if lost > 0)[:_DRIVERS]
    return Classifier(*area, rank_sum(score, unseen).p, rows=len(rows), drivers=needed)


def _select(column: Column, rows: np.ndarray) -> Column:
    values = [column.values[i] for i in rows.tolist()] if column.kind == "text" else column.values[rows]
    return Column(column.name, column.kind, values, column.categories)


def _features(columns: Sequence[Column], n: int) -> tuple[np.ndarray, np.ndarray]:
    """The columns as numbers of about equal size, with a constant at the end, and the column each comes from."""
    found: list[np.ndarray] = []
    source: list[int] = []
    for place, column in enumerate(columns):
        parts = _numbers(column)
        missing = column.missing
        parts += [missing.astype(np.float64)] if missing.any() else []
        found += parts
        source += [place] * len(parts)
    return np.column_stack([*found, np.ones(n)]), np.array(source, np.int64)


def _numbers(column: Column) -> list[np.ndarray]:
    if column.kind == "category":
        shown = range(min(len(column.categories), _CATEGORIES))
        return [(column.values == each).astype(np.float64) for each in shown]
    if column.kind == "number":
        return _ranked(column.values)
    lengths = np.array([math.nan if text is None else len(text) for text in column.values])
    words = np.zeros((len(column.values), _WORDS))
    for row, text in enumerate(column.values):
        for word in set(_WORD.findall(text.casefold())) if text else ():
            words[row, zlib.crc32(word.encode("utf-8", "replace")) % _WORDS] = 1.0
    return [*_ranked(lengths), *words.T]


def _ranked(values: np.ndarray) -> list[np.ndarray]:
    """Ranks from -1 to 1 and their squares, which show another location and another spread; 0 where missing."""
    known = ~np.isnan(values)
    rank = np.zeros(len(values))
    _, code, count = np.unique(values[known], return_inverse=True, return_counts=True)
    middle = (np.cumsum(count) - (count + 1) / 2)[code]
    rank[known] = 2 * (middle + 0.5) / max(int(known.sum()), 1) - 1
    return [rank, np.where(known, np.square(rank) - 1 / 3, 0.0)]


def _fit(features: np.ndarray, second: np.ndarray) -> np.ndarray:
    """The weights of a logistic regression with a small quadratic penalty, by Newton's method."""
    weights = np.zeros(features.shape[1])
    penalty = np.full(features.shape[1], _PENALTY)
    penalty[-1] = 1e-6
    for _ in range(_STEPS):
        chance = 1 / (1 + np.exp(-np.clip(features @ weights, -30, 30)))
        gradient = features.T @ (second - chance) - penalty * weights
        curvature = (features * (chance * (1 - chance))[:, None]).T @ features + np.diag(penalty)
        step = np.linalg.solve(curvature, gradient)
        weights += step
        if np.abs(step).max() < 1e-6:
            break
    return weights
