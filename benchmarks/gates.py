"""Level and power of one-sided bounds of the mean of clustered, graded or rare values, as gates use them.

    python benchmarks/gates.py [--only level|power] [--samples 2000]

A gate passes if the lower 95 % bound of a mean difference lies above minus its margin. *Level*: how often it passes
where the true difference is the negative margin. *Power*: how often it passes where the systems are equal, margin 0.1.
Every candidate is asked about a single hypothetical mean, which for all of them is the same as comparing its bound.
"""

import argparse
import math
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from scipy import optimize, stats

ALPHA = 0.05
LOWEST = -1.0
"""The least possible difference of a row."""

Rng = np.random.Generator
SIZES: dict[str, Callable[[Rng, int, int], np.ndarray]] = {
    "1": lambda rng, samples, n: np.ones((samples, n), int),
    "10": lambda rng, samples, n: np.full((samples, n), 10),
    "lognormal 1": lambda rng, samples, n: np.ceil(np.exp(rng.normal(1, 1, (samples, n)))).astype(int),
    "lognormal 1.5": lambda rng, samples, n: np.ceil(np.exp(rng.normal(1, 1.5, (samples, n)))).astype(int),
    "Pareto 1.5": lambda rng, samples, n: np.minimum(np.ceil(1 + rng.pareto(1.5, (samples, n))), 2000).astype(int),
    "one a quarter": lambda rng, samples, n: np.c_[
        np.full((samples, 1), (n - 1) * 2 // 3), np.full((samples, n - 1), 2)
    ],
}
KINDS = ("only losses", "2 in 10 differ", "5 in 10 differ", "graded", "skewed", "rare losses", "rare among noise")


class Cell(NamedTuple):
    sizes: str
    clusters: int
    correlation: float
    kind: str
    mean: float


def values_of(kind: str, mean: float) -> tuple[np.ndarray, np.ndarray]:
    """The values of rows and their probabilities."""
    if kind == "graded":
        return _tilted(np.array([-1, -0.5, 0, 0.5, 1]), np.array([0.05, 0.15, 0.6, 0.15, 0.05]), mean)
    if kind == "skewed":  # many small gains, some large losses: beta(0.2, 1.8) turned round
        ends = stats.beta.cdf(np.linspace(0, 1, 22), 0.2, 1.8)
        chance, loss = np.diff(ends), np.linspace(0, 0.8, 21)
        return chance @ loss - loss + mean, chance
    if kind == "rare losses":
        lost = (0.01 - mean) / 1.01
        return np.array([0.01, LOWEST]), np.array([1 - lost, lost])
    if kind == "rare among noise":
        return np.array([0.05, -0.05, LOWEST]), np.array([(1 + mean) / 2, (1 + mean) / 2, -mean])
    differ = {"only losses": 0.0, "2 in 10 differ": 0.2, "4 in 10 differ": 0.4, "5 in 10 differ": 0.5}[kind]
    differ = max(differ, -mean)
    return np.array([-1.0, 0, 1]), np.array([(differ - mean) / 2, 1 - differ, (differ + mean) / 2])


def _tilted(values: np.ndarray, chance: np.ndarray, mean: float) -> tuple[np.ndarray, np.ndarray]:
    def tilt(by: float) -> np.ndarray:
        heavy = chance * np.exp(by * values)
        return heavy / heavy.sum()

    return values, tilt(optimize.brentq(lambda by: tilt(by) @ values - mean, -20, 20))


def draw(rng: Rng, cell: Cell, samples: int) -> tuple[np.ndarray, np.ndarray]:
    """Sums and sizes of clusters: each row takes its cluster's value with a chance of √correlation, else its own."""
    size = SIZES[cell.sizes](rng, samples, cell.clusters)
    values, chance = values_of(cell.kind, cell.mean)
    common = rng.binomial(size, math.sqrt(cell.correlation))
    own = rng.multinomial(size - common, chance) @ values
    return own + common * rng.choice(values, size.shape, p=chance), size


def passes(total: np.ndarray, size: np.ndarray, mean: float) -> dict[str, np.ndarray]:
    """Whether the bound of each candidate lies above `mean`, by sample."""
    n, whole = size.shape[1], size.sum(1)
    share = size / whole[:, None]
    effective = 1 / (share**2).sum(1)
    found = total.sum(1) / whole
    off, beyond = total - found[:, None] * size, total - mean * size

    def student(variance: np.ndarray, degrees: np.ndarray | int, shift: Callable[..., np.ndarray] | None = None):
        with np.errstate(divide="ignore", invalid="ignore"):
            t = (found - mean) / np.sqrt(variance)
        t = np.where(variance > 1e-24, t, np.where(found > mean, np.inf, -np.inf))
        skew = (off**3).mean(1) / np.maximum((off**2).mean(1), 1e-24) ** 1.5 / (6 * math.sqrt(n))
        with np.errstate(invalid="ignore"):
            return (t if shift is None else shift(t, skew)) > stats.t.isf(ALPHA, degrees)

    plain = n / (n - 1) * (off**2).sum(1) / whole**2
    fourth = n * (off**4).sum(1) / np.maximum((off**2).sum(1), 1e-24) ** 2
    few = np.maximum(effective - 1, 1)
    result = {
        "t": student(plain, n - 1),
        "t, df by kurtosis": student(plain, np.clip(2 * n / np.maximum(fourth - 1, 1e-9), 1, n - 1)),
        "CR2, effective df": student((off**2 / (1 - share)).sum(1) / whole**2, few),
        "CR3, effective df": student((off**2 / (1 - share) ** 2).sum(1) / whole**2, few),
        "Johnson": student(plain, few, lambda t, a: t + a * (1 + 2 * t * t)),
        "Hall": student(plain, few, lambda t, a: t + 2 * a * t * t + 4 / 3 * a * a * t**3 + a),
    }
    for name, ghost in (("heaviest", size.max(1)), ("effective", whole / effective), ("mean", whole / n)):
        ghosted = np.c_[beyond, (LOWEST - mean) * ghost]
        result[f"Gaffke, {name}"] = chance_below(ghosted) <= ALPHA
        if name == "effective":
            result[f"likelihood, {name}"] = likelihood_ratio(ghosted) > stats.t.isf(ALPHA, few) ** 2
    scaled = beyond / size.max(1)[:, None]
    result["Bernstein"] = bernstein(scaled, 1 - LOWEST)
    result["betting"] = betting(scaled, mean - LOWEST)
    return result


def chance_below(factor: np.ndarray) -> np.ndarray:
    """The saddlepoint approximation of `least_mean`, for each row of factors."""
    least, most = factor.min(1), factor.max(1)
    chance = (most <= 0).astype(float)
    mixed = (least < 0) & (most > 0)
    factor, low, high = factor[mixed], 1 / least[mixed], 1 / most[mixed]
    point = np.zeros(len(factor))
    for _ in range(60):
        tilted = factor / (1 - point[:, None] * factor)
        slope = tilted.sum(1)
        low, high = np.where(slope < 0, point, low), np.where(slope < 0, high, point)
        following = point - slope / (tilted**2).sum(1)
        point = np.where((following > low) & (following < high), following, (low + high) / 2)
    tilted = factor / (1 - point[:, None] * factor)
    root = np.sign(point) * np.sqrt(np.maximum(2 * np.log1p(-point[:, None] * factor).sum(1), 0))
    with np.errstate(divide="ignore", invalid="ignore"):
        tail = stats.norm.sf(-root) + stats.norm.pdf(root) * (1 / root - 1 / (point * np.sqrt((tilted**2).sum(1))))
    chance[mixed] = np.where(np.abs(root) < 1e-4, 0.5, tail)
    return chance


def likelihood_ratio(beyond: np.ndarray) -> np.ndarray:
    """−2 log of the empirical likelihood ratio of a mean of 0, 0 where the observed mean is lower (A. Owen, 1988)."""
    low, high = -1 / np.maximum(beyond.max(1), 1e-12), -1 / np.minimum(beyond.min(1), -1e-12)
    for _ in range(60):
        middle = (low + high) / 2
        slope = (beyond / (1 + middle[:, None] * beyond)).sum(1)
        low, high = np.where(slope > 0, middle, low), np.where(slope > 0, high, middle)
    ratio = 2 * np.log1p(((low + high) / 2)[:, None] * beyond).sum(1)
    return np.where(beyond.sum(1) > 0, np.where(beyond.max(1) > 0, ratio, 0), 0)


def bernstein(beyond: np.ndarray, width: float) -> np.ndarray:
    """A. Maurer & M. Pontil, "Empirical Bernstein bounds and sample-variance penalization" (COLT 2009)."""
    n, log = beyond.shape[1], math.log(2 / ALPHA)
    off = np.sqrt(2 * beyond.var(1, ddof=1) * log / n) + 7 * width * log / (3 * (n - 1))
    return beyond.mean(1) > off


def betting(beyond: np.ndarray, least: float) -> np.ndarray:
    """Capital above 1/α at the end; I. Waudby-Smith & A. Ramdas (JRSS B 86, 2024), predictable plug-in bets."""
    n = beyond.shape[1]
    count = np.arange(1, n + 1)
    variance = (0.25 * least**2 + np.cumsum(beyond**2, 1)) / (count + 1)
    before = np.c_[np.full(len(beyond), 0.25 * least**2), variance[:, :-1]]
    bet = np.minimum(np.sqrt(2 * math.log(1 / ALPHA) / (n * before)), 0.9 / max(least, 1e-9))
    return np.maximum.accumulate(np.cumsum(np.log1p(bet * beyond), 1), 1)[:, -1] > math.log(1 / ALPHA)


def null_cells() -> Iterator[Cell]:
    for sizes in SIZES:
        for clusters in (10, 30, 100, 300, 1000):
            for correlation in (0.0,) if sizes == "1" else (0.0, 0.2, 1.0):
                for kind in KINDS:
                    for margin in (0.02, 0.1, 0.3) if kind == "only losses" else (0.02, 0.1):
                        yield Cell(sizes, clusters, correlation, kind, -margin)


def print_levels(samples: int) -> None:
    found: dict[str, list[tuple[float, Cell]]] = {}
    for place, cell in enumerate(null_cells()):
        few = max(samples * min(1, 100 / cell.clusters), 400)
        drawn = draw(np.random.default_rng([1, place]), cell, int(few))
        for name, passed in passes(*drawn, cell.mean).items():
            found.setdefault(name, []).append((float(passed.mean()), cell))
    sure = 0.055 + 3 * math.sqrt(0.05 * 0.95 / 400)
    print(f"| bound | cells | false passes on average | above {sure:.3f} | most | where |\n|---|---|---|---|---|---|")
    for name, rates in found.items():
        most, cell = max(rates)
        mean = sum(rate for rate, _ in rates) / len(rates)
        bad = sum(rate > sure for rate, _ in rates)
        print(f"| {name} | {len(rates)} | {mean:.3f} | {bad} | {most:.3f} | {', '.join(map(str, cell))} |")


def print_powers(samples: int) -> None:
    names: list[str] = []
    for sizes in SIZES:
        for clusters in (100, 300, 1000):
            for correlation in (0.0,) if sizes == "1" else (0.2, 0.5):
                cell = Cell(sizes, clusters, correlation, "4 in 10 differ", 0.0)
                found = passes(*draw(np.random.default_rng(2), cell, samples), -0.1)
                if not names:
                    names = [*found]
                    print(
                        f"| sizes | clusters | correlation | {' | '.join(names)} |\n|---|---|---|{'---|' * len(names)}"
                    )
                shown = " | ".join(f"{100 * passed.mean():.0f} %" for passed in found.values())
                print(f"| {sizes} | {clusters:,} | {correlation:g} | {shown} |")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=["level", "power"])
    parser.add_argument("--samples", type=int, default=2000)
    options = parser.parse_args()
    if options.only != "power":
        print_levels(options.samples)
    if options.only != "level":
        print_powers(options.samples)
