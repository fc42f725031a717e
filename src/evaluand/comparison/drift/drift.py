"""`measure_drift`: tests column by column, and of all columns together, whether two samples differ."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Final

import numpy as np

from evaluand.comparison.drift.classifier import Classifier, classify
from evaluand.comparison.drift.columns import Column, Kind, Sample, join_columns, read_samples
from evaluand.comparison.significance import holm
from evaluand.core.errors import DataError, SpecError, nearest, plural
from evaluand.data.dataset import Dataset
from evaluand.metrics.base.metric import check_confidence
from evaluand.metrics.stats.two_samples import (
    Estimate,
    Sides,
    TwoSampleTest,
    chance_larger,
    chance_stability_index,
    changed_ranks,
    chi_squared,
    kolmogorov_smirnov,
    share_changes,
    stability_index,
)

FEWEST_UNITS: Final = 10
"""Independent rows of each sample below which nothing is said about a column."""

_BINS: Final = 10
_EXPECTED: Final = 5


@dataclass(frozen=True)
class ColumnDrift:
    """What is known about one column, or about one property of its texts.

    Attributes:
        column: its name; `(characters)` and `(words)` are properties of texts, `(missing)` is whether there is a value.
        n_a: the rows of the first sample that have a value.
        a: the median of numbers, or the share of the category that changed most.
        effect: what `value`, `low` and `high` are: `chance that b is larger`, or `change of the share of …`.
        statistic: of Kolmogorov and Smirnov for numbers, chi-squared for categories.
        p_adjusted: after Holm, for all columns and the classifier.
        psi: the population stability index; NaN for too few rows.
        psi_by_chance: what equal distributions exceed in 1 − confidence of all cases; NaN unless rows are independent.
        reason: why there is no test.
    """

    column: str
    kind: Kind
    n_a: int
    n_b: int
    a: float
    b: float
    effect: str
    value: float = math.nan
    low: float = math.nan
    high: float = math.nan
    statistic: float = math.nan
    test: str = "none"
    p: float = math.nan
    p_adjusted: float = math.nan
    psi: float = math.nan
    psi_by_chance: float = math.nan
    reason: str | None = None


@dataclass(frozen=True)
class Drift:
    """How two samples differ.

    Attributes:
        labels: of both samples.
        rows: of both samples.
        units: the independent units of both, such as clusters.
        by: what a unit is; None if each row is one.
        pairs: how many units are in both samples, and so are compared with themselves.
        columns: those that differ most clearly first.
        classifier: of all columns together.
        only_a: columns that only the first sample has, and `only_b`.
    """

    labels: tuple[str, str]
    rows: tuple[int, int]
    units: tuple[int, int]
    by: str | None
    pairs: int
    confidence: float
    columns: tuple[ColumnDrift, ...]
    classifier: Classifier
    only_a: tuple[str, ...]
    only_b: tuple[str, ...]

    @property
    def drifted(self) -> list[str]:
        """The columns that differ significantly, and `classifier` if all of them together do."""
        level = 1 - self.confidence + 1e-12
        return [
            *(each.column for each in self.columns if each.p_adjusted <= level),
            *(["classifier"] if self.classifier.p_adjusted <= level else []),
        ]

    @property
    def is_tested(self) -> bool:
        """Whether there were rows enough for a test."""
        return any(not math.isnan(each.p) for each in self.columns)

    @property
    def verdict(self) -> str:
        """In a sentence: drift, no drift shown, or nothing that can be said."""
        a, b = self.labels
        tested = sum(not math.isnan(each.p) for each in self.columns)
        if not tested:
            return f"nothing can be said: {next(iter(self._reasons()), 'there is no column to compare')}"
        drifted = [name for name in self.drifted if name != "classifier"]
        of = plural(tested, "test")
        if drifted:
            verb = "differs" if len(drifted) == 1 else "differ"
            return f"drift: {len(drifted)} of {of} of columns {verb} between {a} and {b}, {drifted[0]} most clearly"
        if self.drifted:
            return f"drift: the columns of {a} and {b} differ together, though none of {of} shows it alone"
        fewest = plural(min(self.units), "unit" if self.by else "row")
        return f"no drift could be shown in {of} of columns, with {fewest} in the smaller sample"

    def _reasons(self) -> Iterator[str]:
        yield from (each.reason for each in self.columns if each.reason)

    def __str__(self) -> str:
        return self.verdict

    def to_dict(self) -> dict[str, Any]:
        """All of it as JSON-like data."""
        return {**_finite(asdict(self)), "drifted": self.drifted, "verdict": self.verdict}


def measure_drift(
    a: Any,
    b: Any,
    *,
    columns: Sequence[str] | None = None,
    confidence: float = 0.95,
    labels: Sequence[str] = ("a", "b"),
) -> Drift:
    """Tests whether two datasets, runs or evaluations come from one distribution.

    Numbers are compared by the test of Kolmogorov and Smirnov, categories by chi-squared, texts by their lengths and
    the words that the classifier sees. p values are adjusted together by Holm, so that samples of one distribution show
    drift in at most 1 − confidence of all cases, however many columns there are. Rows that belong together (a cluster,
    an example with replications) are exchanged together; runs over one dataset are compared by example.

    Args:
        a: a `Dataset` or anything `Dataset.from_data` takes, a `Run` or an `Evaluation`.
        b: another one of the same kind.
        columns: only these; by default all that both have, except ids, weights and clusters.

    Raises:
        SpecError: the two are of different kinds, share no column, or lack one that is named.
        DataError: one of them has no rows.

    Example:
        >>> before = Dataset.from_rows([{"age": 20 + i % 40, "text": "hello"} for i in range(200)])
        >>> after = Dataset.from_rows([{"age": 30 + i % 40, "text": "hello"} for i in range(200)])
        >>> print(measure_drift(before, after, labels=("before", "after")))
        drift: 1 of 2 tests of columns differs between before and after, age most clearly
    """
    check_confidence("measure_drift", confidence)
    first, second = read_samples(_as_data(a), _as_data(b), labels)
    for sample in (first, second):
        if not len(sample):
            raise DataError(f"{sample.label} has no rows to compare")
    joined = [*join_columns(first, second)]
    if columns is not None:
        joined = _select(joined, columns)
    if not joined:
        named = " and ".join(", ".join(sample.columns) or "none" for sample in (first, second))
        raise SpecError(f"{first.label} and {second.label} have no column in common: they have {named}")
    sides = _sides(first, second)
    found = [result for column in joined for result in _compare_column(column, sides, confidence)]
    classified = classify(joined, sides, confidence)
    adjusted = holm(np.array([*(each.p for each in found), classified.p])).tolist()
    results = [replace(one, p_adjusted=p) for one, p in zip(found, adjusted[:-1], strict=True)]
    results.sort(key=lambda each: (math.isnan(each.p), each.p, -each.psi))
    return Drift(
        labels=(first.label, second.label),
        rows=sides.n,
        units=sides.units,
        by=first.by,
        pairs=int(sides.paired.sum()),
        confidence=confidence,
        columns=tuple(results),
        classifier=replace(classified, p_adjusted=adjusted[-1]),
        only_a=tuple(name for name in first.columns if name not in second.columns),
        only_b=tuple(name for name in second.columns if name not in first.columns),
    )


def _as_data(one: Any) -> Any:
    return one if hasattr(one, "manifest") else Dataset.from_data(one)


def _select(columns: Sequence[Column], names: Sequence[str]) -> list[Column]:
    known = {column.name: column for column in columns}
    if unknown := [name for name in names if name not in known]:
        raise SpecError(f"both samples have no column {unknown[0]!r}{nearest(unknown[0], [*known])}")
    return [known[name] for name in dict.fromkeys(names)]


def _sides(first: Sample, second: Sample) -> Sides:
    n, m = len(first), len(second)
    side = np.arange(n + m) >= n
    if first.unit is None or second.unit is None:
        return Sides(side, np.arange(n + m))
    number: dict[Any, int] = {}
    return Sides(side, np.array([number.setdefault(unit, len(number)) for unit in (*first.unit, *second.unit)]))


def _compare_column(column: Column, sides: Sides, confidence: float) -> Iterator[ColumnDrift]:
    """The tests of a column: of its values, or of the lengths of its texts, and of which values are missing."""
    missing = column.missing
    known = np.flatnonzero(~missing)
    here = sides.take(known)
    if column.kind == "number":
        yield _compare_numbers(column.name, column.values[known], here, confidence)
    elif column.kind == "category":
        yield _compare_categories(column.name, column.values[known], column.categories, here, confidence)
    else:
        texts = [column.values[i] for i in known.tolist()]
        for name, lengths in (("characters", map(len, texts)), ("words", (len(text.split()) for text in texts))):
            numbers = np.array([*lengths], np.float64)
            yield _compare_numbers(f"{column.name} ({name})", numbers, here, confidence, "text")
    if missing.any() and not missing.all():
        words = ("present", "missing")
        yield _compare_categories(f"{column.name} (missing)", missing.astype(np.int64), words, sides, confidence, 1)


def _compare_numbers(
    name: str, values: np.ndarray, sides: Sides, confidence: float, kind: Kind = "number"
) -> ColumnDrift:
    a, b = (float(np.median(part)) if len(part) else math.nan for part in _split(values, sides))
    column = ColumnDrift(name, kind, *sides.n, a, b, "chance that b is larger")
    if reason := _too_few(sides):
        return replace(column, reason=reason)
    edges = np.unique(np.quantile(values, np.arange(1, _BINS) / _BINS))
    bins = np.searchsorted(edges, values, side="right")
    found, effect = kolmogorov_smirnov(values, sides), chance_larger(values, sides, confidence)
    name = "Kolmogorov-Smirnov"
    if sides.paired.any():  # where it hardly sees a small change of every row
        name, found = min(((name, found), ("ranks", changed_ranks(values, sides))), key=lambda each: each[1].p)
        found = found._replace(p=min(2 * found.p, 1.0))
    return replace(column, **_describe(effect, name, found), **_stability(bins, sides, confidence))


def _compare_categories(
    name: str,
    code: np.ndarray,
    categories: Sequence[str],
    sides: Sides,
    confidence: float,
    shown: int | None = None,
) -> ColumnDrift:
    """A column of categories; the effect is that of the one shown, by default the one that changed most."""
    pooled = _pool_rare(code, sides) if shown is None else code
    names = [*categories[: int(pooled.max(initial=0))], "others"] if (pooled != code).any() else [*categories]
    if reason := _too_few(sides):
        return ColumnDrift(name, "category", *sides.n, math.nan, math.nan, "", reason=reason)
    changes = share_changes(pooled, sides, confidence)
    most = max(range(len(changes)), key=lambda i: abs(changes[i].value)) if shown is None else shown
    a, b = (float((part == most).mean()) for part in _split(pooled, sides))
    column = ColumnDrift(name, "category", *sides.n, a, b, f"change of the share of {names[most]}")
    test = _describe(changes[most], "chi-squared", chi_squared(pooled, sides))
    return replace(column, **test, **_stability(pooled, sides, confidence))


def _pool_rare(code: np.ndarray, sides: Sides) -> np.ndarray:
    """Categories with one for all that are expected fewer than five times in the smaller sample."""
    count = np.bincount(code)
    rare = count * (min(sides.n) / max(len(code), 1)) < _EXPECTED
    return np.asarray(np.minimum(code, int(rare.argmax()))) if rare.sum() > 1 else code  # from the most common


def _describe(effect: Estimate, name: str, found: TwoSampleTest) -> dict[str, Any]:
    return effect._asdict() | {"statistic": found.statistic, "test": f"{name}, {found.method}", "p": found.p}


def _stability(bins: np.ndarray, sides: Sides, confidence: float) -> dict[str, Any]:
    by_chance = chance_stability_index(len(np.unique(bins)), sides, confidence)
    return {"psi": stability_index(bins, sides), "psi_by_chance": by_chance}


def _too_few(sides: Sides) -> str | None:
    if min(sides.units) >= FEWEST_UNITS:
        return None
    return f"fewer than {FEWEST_UNITS} independent values in a sample"


def _split(values: np.ndarray, sides: Sides) -> tuple[np.ndarray, np.ndarray]:
    return values[~sides.second], values[sides.second]


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _finite(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(inner) for inner in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
