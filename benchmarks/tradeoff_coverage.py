"""How often intervals of trade-offs hold what they are about, by simulation.

    python benchmarks/tradeoff_coverage.py [--simulations 1000]

Rows are drawn from worlds whose rates are known; some share of them is of the second group. The truth of a point is its
value in an endless sample; that of a hypervolume and of a curve is taken from a sample of 2,000,000 rows. The interval
of a hypervolume is to hold the most that the models could be worth, and what the front is that was chosen on the
sample.
"""

from __future__ import annotations

import argparse
import math
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product
from typing import NamedTuple

import numpy as np

from evaluand.core.errors import EvaluandWarning
from evaluand.tradeoff import Confidences, Objective, solve
from evaluand.tradeoff.front import hypervolume

OBJECTIVES = (
    "accuracy",
    "balanced_accuracy",
    "recall",
    "precision",
    "f_beta",
    "demographic_parity difference by g",
    "recall difference by g",
    "balanced_accuracy difference by g",
    "equalized_odds difference by g",
    "equalized_odds ratio by g",
)
FRONTS = {
    "accuracy, equalized odds": ("accuracy", "equalized_odds difference by g"),
    "recall, false positives": ("recall", "false_positive_rate"),
    "accuracy, recall, parity": ("accuracy", "recall", "demographic_parity difference by g"),
}
CLUSTERED = ("accuracy", "recall", "f_beta", "matthews_correlation", "equalized_odds difference by g", "roc_auc")
SIZES, SHARES = (200, 2000), (0.1, 0.5)
MANY = 2_000_000


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
    "rare positives": World((0.05, 0.05), (0.9, 0.9), (0.02, 0.02)),
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


def of_bands(n: int, share: float, simulations: int, seed: int = 0) -> dict[str, float]:
    """How often a model's bands hold at all of their points at once."""
    thresholds, curve = np.linspace(-0.5, 2, 26), ["accuracy", "recall"]
    random = np.random.default_rng(seed)
    truth = solve(sample(MANY, share, random), curve, thresholds)
    held: dict[str, list[bool]] = {name: [] for name in curve}
    for number in range(simulations):
        points = solve(sample(n, share, random), curve, thresholds)
        ends, first = points.bands(seed=number), points.model == 0
        for place, name in enumerate(curve):
            value = truth.value[first, place]
            inside = (ends.low[first, place] <= value) & (value <= ends.high[first, place])
            held[name].append(bool(inside.all()))
    return {name: float(np.mean(each)) for name, each in held.items()}


def of_hypervolumes(
    n: int, share: float, models: int, objectives: Sequence[str], given: bool, simulations: int, seed: int = 0
) -> dict[str, float]:
    """How often the interval of the hypervolume holds each of what it is about; and how wide it is.

    Args:
        n: rows of a sample.
        share: of the second group.
        models: one or two.
        objectives: two or more.
        given: 26 thresholds, and not all that there are.
        simulations: how many samples.
        seed: of the draws.

    Returns:
        `most`: the share of intervals that hold the most the models could be worth; `chosen`: that hold what the front
        that was chosen on the sample is worth; `width` in the mean. Samples without an interval are left out.
    """
    random, names = np.random.default_rng(seed), ["one", "other"][:models]
    grid = np.linspace(-0.5, 2, 26) if given else np.linspace(-3, 6, 1801)
    whole = solve(_only(sample(MANY, share, random), names), objectives, grid)
    most, losses = whole.indicators()["hv"], whole.loss.reshape(models, len(grid), -1)
    found = {"most": [], "chosen": [], "width": []}  # type: dict[str, list[float]]
    for number in range(simulations):
        points = solve(_only(sample(n, share, random), names), objectives, grid if given else "every")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", EvaluandWarning)  # there may be no interval
            low, high = points.hypervolume_interval(replicates=100, seed=number)
        if math.isnan(low):
            continue
        front = points.front()
        place = np.abs(grid - np.clip(front.threshold, grid[0], grid[-1])[:, None]).argmin(axis=1)
        worth = hypervolume(losses[front.model, place])
        for name, each in (("most", low <= most <= high), ("chosen", low <= worth <= high), ("width", high - low)):
            found[name].append(each)
    return {name: float(np.mean(each)) for name, each in found.items()}


def clustered(n: int, random: np.random.Generator, heeded: bool = True) -> Confidences:
    """Clusters of five rows of one group, which are as hard to tell as each other; some rows count three times."""
    cluster = np.arange(n) // 5
    second, hard = (each[cluster] for each in (random.random(n) < 0.3, random.normal(size=n)))
    truth, weight = random.random(n) < 0.4, np.where(random.random(n) < 0.2, 3.0, 1.0)
    side = np.where(truth, 1.0, -1.0)
    sure = side * (1.2 - 0.4 * second + 0.7 * hard - 0.2 * (weight > 1)) + random.normal(size=n)
    together = {"weight": weight, "cluster": cluster} if heeded else {}
    return Confidences.read(truth, {"m": sure}, {"g": np.where(second, "b", "a")}, **together)


def of_clusters(n: int, simulations: int, heeded: bool = True, seed: int = 0) -> dict[str, float]:
    """How often intervals hold of rows with weights that come in clusters, and if neither is `heeded`."""
    thresholds = np.linspace(-1, 1, 9)
    random = np.random.default_rng(seed)
    whole = solve(clustered(MANY, random), CLUSTERED, thresholds)
    truth = whole.value[4]
    decided = solve(whole.confidences, CLUSTERED[:-1], thresholds)  # type: ignore[arg-type]
    volume = solve(whole.confidences, FRONTS["accuracy, equalized odds"], thresholds).indicators()["hv"]  # type: ignore[arg-type]
    names = (*CLUSTERED, "bands of accuracy", "hypervolume")
    held: dict[str, list[bool]] = {name: [] for name in names}
    for number in range(simulations):
        given = clustered(n, random, heeded)
        ends = solve(given, CLUSTERED, thresholds[4:5]).with_intervals().ends
        inside = (ends.low <= truth) & (truth <= ends.high)  # type: ignore[union-attr]
        bands = solve(given, CLUSTERED[:1], thresholds).bands(replicates=200, seed=number)
        all_inside = (bands.low <= decided.value[:, :1]) & (decided.value[:, :1] <= bands.high)
        points = solve(given, FRONTS["accuracy, equalized odds"], thresholds)
        low, high = points.hypervolume_interval(replicates=100, seed=number)
        for name, each in zip(names, [*inside[0], all_inside.all(), low <= volume <= high], strict=True):
            held[name].append(bool(each))
    return {name: float(np.mean(each)) for name, each in held.items()}


def _only(given: Confidences, models: Sequence[str]) -> Confidences:
    return replace(given, models={name: given.models[name] for name in models})


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
    yield f"\nof curves, {some} simulations\n"
    for n in SIZES:
        for share in SHARES:
            line = ", ".join(f"{name} {each:.1%}" for name, each in of_bands(n, share, some).items())
            yield f"n = {n}, second group {share:.0%}: {line}"
    yield f"\nof rows with weights in clusters of five, {some} simulations\n"
    for n in (400, 2000):
        line = ", ".join(f"{name} {each:.1%}" for name, each in of_clusters(n, some).items())
        yield f"n = {n}: {line}"
    yield f"\nof hypervolumes, {some} simulations: the most there is to have, what the front is worth, the width\n"
    yield "| n | second group | objectives | models | every threshold | 26 thresholds |\n|---|---|---|---|---|---|"
    for n, share, name, models in product(SIZES, SHARES, FRONTS, (1, 2)):
        each = (of_hypervolumes(n, share, models, FRONTS[name], given, some) for given in (False, True))
        line = " | ".join(f"{one['most']:.1%}, {one['chosen']:.1%}, {one['width']:.3f}" for one in each)
        yield f"| {n} | {share:.0%} | {name} | {models} | {line} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--simulations", type=int, default=1000)
    for line in _lines(parser.parse_args().simulations):
        print(line, flush=True)


if __name__ == "__main__":
    main()
