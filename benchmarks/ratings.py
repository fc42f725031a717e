"""Ratings of matches: what they cost, how they agree with choix, and how often their intervals hold.

    python benchmarks/ratings.py                    everything: half an hour
    python benchmarks/ratings.py --quick            few matches and simulations, no peer: some seconds
    python benchmarks/ratings.py --peers DIR        keep choix's environment in DIR and use it again
    python benchmarks/ratings.py --only speed       one part: speed, choix or coverage

Systems have true strengths. On each example they deviate from it, equally in all matches on the example, and the judge
prefers what it sees first; close matches end in a tie. The truth is the fit to the expected counts.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from itertools import pairwise, product
from pathlib import Path
from typing import NamedTuple

import numpy as np
from children import clean_environment, environment
from meter import speed

from evaluand.metrics.ratings.bradley_terry import fit_bradley_terry
from evaluand.metrics.ratings.counts import MatchCounts, MatchRows, Ties, count_matches, resample_counts
from evaluand.metrics.ratings.strength_intervals import standard_errors, strength_intervals
from evaluand.metrics.stats.intervals import t_quantile

SYSTEMS, MATCHES, REPLICATES = 50, 1_000_000, 1000
CHOIX = "choix==0.4.1"
POSITION = 0.3
"""The log-odds that a response gains by being first."""


class Cell(NamedTuple):
    """A world and how it is sampled.

    Attributes:
        systems: their strengths lie equally spaced from −0.75 to 0.75.
        examples: how many are drawn.
        shared: the standard deviation of a system's quality between examples.
        threshold: of the log-odds within which a match is a tie.
        dense: all pairs in both orders on each example; else one pair in one order.
        ties: the model that is fitted.
    """

    systems: int
    examples: int
    shared: float
    threshold: float
    dense: bool
    ties: Ties = "half"

    def __str__(self) -> str:
        matches = "all pairs, both orders" if self.dense else "one match"
        return f"{self.systems} | {self.examples} | {matches} | {self.shared:g} | {self.threshold:g} | {self.ties}"


CELLS = [
    Cell(systems, examples, shared, threshold, dense)
    for systems, (examples, dense), shared, threshold in product(
        (2, 4, 10), ((20, True), (100, True), (100, False)), (0.0, 2.0), (0.0, 0.8)
    )
]
CELLS += [
    Cell(4, examples, 2.0, 0.8, dense, ties)
    for ties, (examples, dense) in product(("davidson", "rao_kupper"), ((20, True), (100, False)))
]


class Coverage(NamedTuple):
    """How often 95 % intervals hold, of differences and of strengths.

    Attributes:
        difference: by the bootstrap; `strength` likewise.
        student: of differences, by standard errors.
        independent: of differences, by standard errors that take each match as an example.
        error: the mean standard error of a difference over the standard deviation of its estimates.
        open: the share of intervals of differences with an infinite end.
        unrated: the share of samples in which some system has no strength; these are left out.
    """

    difference: float
    strength: float
    student: float
    independent: float
    error: float
    open: float
    unrated: float


def measure_coverage(cell: Cell, simulations: int, replicates: int = 500) -> Coverage:
    random = np.random.default_rng(0)
    a, b = np.triu_indices(cell.systems, 1)
    truth = true_strengths(cell)
    expected = truth[a] - truth[b]
    held, estimates, errors, unrated = list[list[float]](), list[np.ndarray](), list[np.ndarray](), 0
    for seed in range(simulations):
        rows = sample(cell, random)
        fit = fit_bradley_terry(count_matches(rows), cell.ties)
        if not fit.rated.all():
            unrated += 1
            continue
        ends = strength_intervals(rows, fit, replicates=replicates, seed=seed)
        low, high = ends.difference_low[a, b], ends.difference_high[a, b]
        each = MatchRows.read(rows.a, rows.b, rows.outcome, np.arange(len(rows)), systems=cell.systems)
        found = [_hold(low, high, expected), _hold(ends.low, ends.high, truth)]
        for units in (rows, each):
            known = standard_errors(units, fit)
            difference, error = (fit.strength[a] - fit.strength[b], known.difference[a, b])
            half = float(t_quantile(0.95, np.array([known.examples - 1]))[0]) * error
            found.append(_hold(difference - half, difference + half, expected))
        held.append([*found, float(np.mean(np.isinf(low) | np.isinf(high)))])
        estimates.append(fit.strength[a] - fit.strength[b])
        errors.append(standard_errors(rows, fit).difference[a, b])
    difference, strength, student, independent, open_ = np.nanmean(held, axis=0).tolist()
    ratio = float(np.mean(np.mean(errors, axis=0) / np.std(estimates, axis=0)))
    return Coverage(difference, strength, student, independent, ratio, open_, unrated / simulations)


def _hold(low: np.ndarray, high: np.ndarray, truth: np.ndarray) -> float:
    """The share of intervals that hold, of those that there are."""
    known = ~np.isnan(low)
    return float(np.mean(((low <= truth) & (truth <= high))[known])) if known.any() else math.nan


def true_strengths(cell: Cell) -> np.ndarray:
    """The fit to the expected counts, by Gauss–Hermite quadrature over examples."""
    a, b = np.triu_indices(cell.systems, 1)
    strength = np.linspace(-0.75, 0.75, cell.systems)
    nodes, weight = np.polynomial.hermite_e.hermegauss(101)
    d = (strength[a] - strength[b])[:, None] + math.sqrt(2) * cell.shared * nodes
    first = np.array([POSITION, -POSITION])[:, None, None]
    shares = [(1 / (1 + np.exp(cell.threshold - each - first))).mean(axis=0) for each in (d, -d)]
    win, lost = (each @ weight / weight.sum() for each in shares)
    counts = MatchCounts(cell.systems, a, b, win, 1 - win - lost, lost, (1 + win - lost) / 2)
    return fit_bradley_terry(counts, cell.ties).strength


def sample(cell: Cell, random: np.random.Generator) -> MatchRows:
    n = cell.examples
    a, b = np.triu_indices(cell.systems, 1)
    quality = np.linspace(-0.75, 0.75, cell.systems) + cell.shared * random.normal(size=(n, cell.systems))
    if cell.dense:
        cluster, pair = (each.ravel() for each in np.indices((n, 2 * len(a))))
        pair, first = pair // 2, pair % 2
    else:
        cluster, pair, first = np.arange(n), random.integers(0, len(a), n), random.integers(0, 2, n)
    d = quality[cluster, a[pair]] - quality[cluster, b[pair]] + POSITION * (2 * first - 1)
    d += random.logistic(size=len(pair))
    outcome = np.where(d > cell.threshold, 1.0, np.where(d < -cell.threshold, 0.0, 0.5))
    return MatchRows.read(a[pair], b[pair], outcome, cluster, systems=cell.systems)


def _random_rows(matches: int, each: int) -> MatchRows:
    """Matches of 50 systems, so many on each example."""
    random = np.random.default_rng(0)
    strength = random.normal(size=SYSTEMS)
    a = random.integers(0, SYSTEMS, matches)
    b = (a + random.integers(1, SYSTEMS, matches)) % SYSTEMS
    d = strength[a] - strength[b] + random.logistic(size=matches)
    return MatchRows.read(a, b, np.where(d > 0.5, 1.0, np.where(d < -0.5, 0.0, 0.5)), np.arange(matches) // each)


def _speed(matches: int) -> Iterator[str]:
    yield f"a fixed piece of work took {speed() * 1e3:.0f} ms of CPU time\n"
    yield f"{matches:,} matches × {SYSTEMS} systems × {REPLICATES:,} replicates, s of CPU time"
    yield "matches on an example | counts | resampled counts | strengths | intervals, all of it | target"
    for each, ties in product((10, 1000), ("half", "davidson", "rao_kupper")):
        rows = _random_rows(matches, each)
        marks = [time.process_time()]
        fit = fit_bradley_terry(count_matches(rows), ties)
        marks.append(time.process_time())
        counts = resample_counts(rows, REPLICATES)
        marks.append(time.process_time())
        fit_bradley_terry(counts, ties, start=fit.strength)
        marks.append(time.process_time())
        ends = strength_intervals(rows, fit_bradley_terry(count_matches(rows), ties), replicates=REPLICATES)
        standard_errors(rows, fit)
        marks.append(time.process_time())
        assert np.isfinite(ends.low).all()
        taken = " | ".join(f"{stop - start:.2f}" for start, stop in pairwise(marks))
        yield f"{each:,}, ties {ties} | {taken} | ≤ 10"


def _choix(peers: Path) -> Iterator[str]:
    """The largest difference to the strengths by choix, for random tables of wins."""
    pythons = environment(peers, [CHOIX], {"choix": "choix"})
    if "choix" not in pythons:
        return
    random, tables = np.random.default_rng(1), list[list[list[int]]]()
    while len(tables) < 100:
        systems = int(random.integers(2, 21))
        wins = random.poisson(random.uniform(0.5, 20), (systems, systems)) * (1 - np.eye(systems, dtype=int))
        if fit_bradley_terry(_table_counts(wins)).rated.all():
            tables.append(wins.tolist())
    ended = subprocess.run(
        [str(pythons["choix"]), "-c", _CHOIX_CODE],
        input=json.dumps(tables),
        capture_output=True,
        text=True,
        env=clean_environment(),
        check=True,
    )
    found = json.loads(ended.stdout)
    for place, (name, penalty) in enumerate((("ilsr_pairwise", 0.0), ("opt_pairwise, alpha=0.5", 1.0))):
        off = [
            np.abs(fit_bradley_terry(_table_counts(np.array(table)), penalty=penalty).strength - theirs[place]).max()
            for table, theirs in zip(tables, found, strict=True)
        ]
        yield f"choix 0.4.1, {name}: the largest difference of a strength in {len(tables)} tables is {max(off):.1e}"


_CHOIX_CODE = """
import json, sys, choix
found = []
for wins in json.load(sys.stdin):
    n = len(wins)
    data = [(i, j) for i in range(n) for j in range(n) for _ in range(wins[i][j])]
    plain = choix.ilsr_pairwise(n, data, alpha=0.0, max_iter=10000, tol=1e-11)
    penalised = choix.opt_pairwise(n, data, alpha=0.5, method="Newton-CG", max_iter=1000, tol=1e-12)
    found.append([list(plain - plain.mean()), list(penalised)])
print(json.dumps(found))
"""


def _table_counts(wins: np.ndarray) -> MatchCounts:
    a, b = np.triu_indices(len(wins), 1)
    won, lost = wins[a, b].astype(np.float64), wins[b, a].astype(np.float64)
    return MatchCounts(len(wins), a, b, won, 0 * won, lost, won)


def _coverage(cells: Sequence[Cell], simulations: int) -> Iterator[str]:
    yield f"\n{simulations} simulations of each cell, 500 replicates, intervals of 95 %\n"
    yield (
        "| systems | examples | on each | shared | tie | model | differences | strengths | by standard error "
        "| as if independent | error / spread | open | unrated |"
    )
    yield "|---|---|---|---|---|---|---|---|---|---|---|---|---|"
    found = []
    for cell in cells:
        each = measure_coverage(cell, simulations)
        found.append(each)
        shares = " | ".join(f"{share:.1%}" for share in each[:4])
        yield f"| {cell} | {shares} | {each.error:.2f} | {each.open:.1%} | {each.unrated:.1%} |"
    mean, least = np.mean(found, axis=0), np.min(found, axis=0)
    for name, row in (("mean", mean), ("least", least)):
        yield f"| {name} | | | | | | {' | '.join(f'{share:.1%}' for share in row[:4])} | {row[4]:.2f} | | |"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", choices=("speed", "choix", "coverage"))
    parser.add_argument("--simulations", type=int, default=1000)
    parser.add_argument("--peers", type=Path)
    options = parser.parse_args()
    simulations = 20 if options.quick else options.simulations
    with tempfile.TemporaryDirectory(prefix="evaluand-bench-") as folder:
        parts = {
            "speed": _speed(MATCHES // 100 if options.quick else MATCHES),
            "choix": iter(()) if options.quick else _choix(options.peers or Path(folder) / "peers"),
            "coverage": _coverage(CELLS[::12] if options.quick else CELLS, simulations),
        }
        for name, lines in parts.items():
            if options.only in (None, name):
                for line in lines:
                    print(line, flush=True)


if __name__ == "__main__":
    sys.exit(main())
