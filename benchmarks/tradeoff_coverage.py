"""How often intervals of trade-offs hold what they are about, by simulation.

    python benchmarks/tradeoff_coverage.py [--simulations 1000]

Rows are drawn from worlds whose rates are known; some share of them is of the second group. The truth of a point is its
value in an endless sample; that of a hypervolume and of a curve is taken from a sample of 2,000,000 rows.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from evaluand.tradeoff import Confidences, Objective, solve

OBJECTIVES = (
    "accuracy",
    "recall",
    "f_beta",
    "demographic_parity difference by g",
    "recall difference by g",
    "equalized_odds difference by g",
    "equalized_odds ratio by g",
)
SIZES, SHARES = (200, 2000), (0.1, 0.5)


class World(NamedTuple):
    """Of the first and the second group, the shares of positive rows, of those found, and of others taken for some."""

    positive: tuple[float, float]
    recall: tuple[float, float]
    false_positive: tuple[float, float]


WORLDS = {
    "recall apart": World((0.4, 0.3), (0.85, 0.6), (0.15, 0.2)),
    "both apart": World((0.4, 0.3), (0.8, 0.65), (0.15, 0.3)),
    "false positives apart": World((0.4, 0.3), (0.8, 0.75), (0.1, 0.35)),
    "high rates": World((0.4, 0.3), (0.95, 0.85), (0.05, 0.1)),
    "alike": World((0.4, 0.4), (0.75, 0.75), (0.2, 0.2)),
}


def of_points(world: World, n: int, share: float, simulations: int, seed: int = 0) -> dict[str, float]:
    """How often the interval of each objective holds; samples in which it is undefined are left out."""
    positive, recall, wrong = map(np.array, world)
    cells = np.stack(
        [(1 - positive) * (1 - wrong), (1 - positive) * wrong, positive * (1 - recall), positive * recall], axis=1
    )
    cells *= np.array([[1 - share], [share]])
    drawn = np.random.default_rng(seed).multinomial(n, cells.ravel(), simulations).reshape(simulations, 2, 4)
    endless = np.rint(cells * 1e12).astype(np.int64)
    found = {}
    for text in OBJECTIVES:
        objective = Objective.parse(text)
        counts, whole = (each if objective.by else each.sum(axis=-2, keepdims=True) for each in (drawn, endless))
        truth, ends = objective.of_counts(whole), objective.with_interval(counts, 0.95)
        known = ~np.isnan(ends.low)
        near = 1e-9  # the truth is rounded
        found[text] = float(((ends.low <= truth + near) & (truth - near <= ends.high))[known].mean())
    return found


def sample(n: int, share: float, random: np.random.Generator) -> Confidences:
    """Two models, of which one knows more and errs in the second group."""
    second, truth = random.random(n) < share, random.random(n) < 0.4
    noise = random.normal(size=(2, n))
    sure = {"one": 1.6 * truth + noise[0] - 0.5 * second * truth, "other": 1.1 * truth + 0.5 * noise[0] + noise[1]}
    return Confidences.read(truth, sure, {"g": np.where(second, "b", "a")})


def of_resampling(n: int, share: float, simulations: int, seed: int = 0) -> dict[str, float]:
    """How often the interval of the hypervolume holds, and a model's bands do at all of their points at once."""
    thresholds = np.linspace(-0.5, 2, 26)
    objectives = ["accuracy", "equalized_odds difference by g"]
    curve = ["accuracy", "recall"]
    random = np.random.default_rng(seed)
    large = sample(2_000_000, share, random)
    truth = solve(large, objectives, thresholds).indicators()["hv"]
    true_curve = solve(large, curve, thresholds)
    held: dict[str, list[bool]] = {"hypervolume": [], "bands of accuracy": [], "bands of recall": []}
    for number in range(simulations):
        given = sample(n, share, random)
        low, high = solve(given, objectives, thresholds).hypervolume_interval(seed=number)
        held["hypervolume"].append(low <= truth <= high)
        points = solve(given, curve, thresholds)
        ends, first = points.bands(seed=number), points.model == 0
        for place, name in enumerate(curve):
            value = true_curve.value[first, place]
            held[f"bands of {name}"].append(
                bool(((ends.low[first, place] <= value) & (value <= ends.high[first, place])).all())
            )
    return {name: float(np.mean(each)) for name, each in held.items()}


def _lines(simulations: int) -> Iterator[str]:
    names = [text.replace(" by g", "") for text in OBJECTIVES]
    yield f"of points, {simulations} simulations\n\n| world | n | second group | {' | '.join(names)} |"
    yield "|---|" + "---|" * (len(names) + 2)
    for name, world in WORLDS.items():
        for n in SIZES:
            for share in SHARES:
                found = of_points(world, n, share, simulations).values()
                yield f"| {name} | {n} | {share:.0%} | {' | '.join(f'{each:.1%}' for each in found)} |"
    some = max(simulations * 3 // 10, 1)
    yield f"\nof fronts and curves, {some} simulations\n"
    for n in SIZES:
        for share in SHARES:
            told = ", ".join(f"{name} {each:.1%}" for name, each in of_resampling(n, share, some).items())
            yield f"n = {n}, second group {share:.0%}: {told}"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--simulations", type=int, default=1000)
    for line in _lines(parser.parse_args().simulations):
        print(line, flush=True)


if __name__ == "__main__":
    main()
