"""How often the intervals of a judge's card hold, and how well means are corrected for a judge's errors.

    python benchmarks/judging.py                       everything: a quarter of an hour
    python benchmarks/judging.py --quick               few simulations: some seconds
    python benchmarks/judging.py --only coverage       one part: coverage or corrected
    python benchmarks/judging.py --simulations 300     of each cell; 1,000 by default

People label answers to examples, several answers to each in some cells. What is right depends on the example, and so
does where the judge errs. The truth of each cell is the mean of its values in 20 samples of 10,000 answers, or known.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable, Iterator, Sequence
from itertools import product
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from evaluand.metrics.judging.alpha import RATINGS, KrippendorffAlpha, Level
from evaluand.metrics.judging.differences import (
    Slope,
    contrast_within,
    mean_difference,
    preference_within,
    slope_within,
)
from evaluand.metrics.judging.estimate import Estimate, estimate, kappa, rogan_gladen, share

LARGE, OFTEN = 10_000, 20
SHARED = 0.4
"""The part of the variance between answers that is between examples."""

NONE = ", none"
"""How the name of a bias ends whose true value is 0: the judge errs by the label alone."""

Statistic = Callable[[np.random.Generator, int], Estimate]
"""An estimate from so many answers."""


class Cell(NamedTuple):
    """A judge, and how the labelled set is sampled.

    Attributes:
        n: the number of answers.
        answers: to each example.
        prevalence: the share of right answers.
        sensitivity, specificity: how often the judge is right about right and about wrong answers.
    """

    n: int
    answers: int
    prevalence: float
    sensitivity: float
    specificity: float

    def __str__(self) -> str:
        rates = f"{self.sensitivity:g} / {self.specificity:g}"
        return f"{self.n} | {self.answers} | {self.prevalence:g} | {rates}"


RATES = ((0.7, 0.7), (0.9, 0.8), (0.95, 0.95))
CELLS = [
    Cell(n, answers, prevalence, *rates)
    for n, answers, prevalence, rates in product((40, 100, 300), (1, 4), (0.15, 0.5, 0.8), RATES)
]


class RaterCell(NamedTuple):
    """Raters of equal skill, and how they are sampled.

    Attributes:
        n: the number of answers.
        answers: to each example.
        raters: how many there are; a third of their ratings is missing if there are more than two.
        noise: the standard deviation of a rater's errors; that of the answers is 1.
        shift: by how many standard deviations most answers lie below the middle of the scale.
    """

    n: int
    answers: int
    raters: int
    noise: float
    shift: float

    def __str__(self) -> str:
        return f"{self.n} | {self.answers} | {self.raters} | {self.noise:g} | {self.shift:g}"


RATER_CELLS = [RaterCell(*each) for each in product((40, 100, 300), (1, 4), (2, 4), (0.3, 1.0), (0.0, 1.0))]


def quality(random: np.random.Generator, n: int, answers: int) -> tuple[np.ndarray, np.ndarray]:
    """The example of each answer, and a standard normal quality that answers to an example share in part."""
    example = np.arange(n) // answers
    if answers == 1:
        return example, random.normal(size=n)
    of_example = random.normal(size=int(example[-1]) + 1)[example]
    return example, math.sqrt(SHARED) * of_example + math.sqrt(1 - SHARED) * random.normal(size=n)


class Judged(NamedTuple):
    """Answers with what is true and what the judge says, 0 or 1."""

    example: np.ndarray
    truth: np.ndarray
    judge: np.ndarray


def judged(cell: Cell, random: np.random.Generator, n: int, prevalence: float | None = None) -> Judged:
    example, level = quality(random, n, cell.answers)
    _, luck = quality(random, n, cell.answers)
    truth = level > NormalDist().inv_cdf(1 - (cell.prevalence if prevalence is None else prevalence))
    right, wrong = (luck < NormalDist().inv_cdf(rate) for rate in (cell.sensitivity, cell.specificity))
    return Judged(example, truth.astype(np.int64), np.where(truth, right, ~wrong).astype(np.int64))


def of_judge(cell: Cell) -> dict[str, Statistic]:
    """The statistics of a judge of right and wrong."""

    def of_rows(compute: Callable[[Judged], Estimate]) -> Statistic:
        return lambda random, n: compute(judged(cell, random, n))

    def part(rows: Judged, truth: int) -> Estimate:
        chosen = rows.truth == truth
        return share((rows.judge == truth)[chosen].astype(np.float64), rows.example[chosen])

    def alpha(rows: Judged) -> Estimate:
        ratings = np.stack([rows.truth, rows.judge], axis=1).astype(np.float64)
        return estimate(KrippendorffAlpha(), {RATINGS: ratings}, rows.example)

    def preference(random: np.random.Generator, n: int, favour: float) -> Estimate:
        rows, luck = judged(cell, random, n), random.random(n)
        own = random.random(n) < np.where(rows.truth, 0.6, 0.2)  # which are better than those of others
        kinder = np.where(own & (luck < favour), 1, rows.judge)
        return contrast_within(kinder.astype(np.float64), own, rows.truth, rows.example)

    def length(random: np.random.Generator, n: int) -> Estimate:
        rows = judged(cell, random, n)
        doublings = random.normal(7 + rows.truth, 1.0)  # so that right answers are longer
        return slope_within(rows.judge.astype(np.float64), doublings, rows.example, stratum=rows.truth)

    def preference_of_pairs(random: np.random.Generator, n: int, favour: float) -> Estimate:
        """Of the better one of two answers by `prevalence`, where the judge errs with the rate of `sensitivity`."""
        example, level = quality(random, n, cell.answers)
        people = (level > NormalDist().inv_cdf(1 - cell.prevalence)).astype(np.float64)
        people[random.random(n) < 0.1] = 0.5
        wins = np.zeros(n)
        for _ in range(2):
            _, luck = quality(random, n, cell.answers)
            right = luck < NormalDist().inv_cdf(cell.sensitivity)
            guess = random.random(n) < 0.5
            said = np.where(people == 0.5, guess, np.where(right, people, 1 - people))
            wins += np.where(random.random(n) < favour, 1.0, said) / 2
        return preference_within(wins, people, example)

    def retest(random: np.random.Generator, n: int) -> Estimate:
        rows, again = judged(cell, random, n), random.random(n) < 0.2
        repeated = np.where(again, random.integers(0, 2, n), rows.judge)
        return share((repeated == rows.judge).astype(np.float64), rows.example)

    return {
        "agreement": of_rows(lambda rows: share((rows.truth == rows.judge).astype(np.float64), rows.example)),
        "Cohen's kappa": of_rows(lambda rows: kappa(rows.truth, rows.judge, ["no", "yes"], rows.example)),
        "Krippendorff's alpha": of_rows(alpha),
        "sensitivity": of_rows(lambda rows: part(rows, 1)),
        "specificity": of_rows(lambda rows: part(rows, 0)),
        "mean difference": of_rows(
            lambda rows: mean_difference((rows.judge - rows.truth).astype(np.float64), rows.example, 1.0)
        ),
        "self-preference, none": lambda random, n: preference(random, n, 0.0),
        "self-preference": lambda random, n: preference(random, n, 0.15),
        "length bias, none": length,
        "preference of pairs, none": lambda random, n: preference_of_pairs(random, n, 0.0),
        "preference of pairs": lambda random, n: preference_of_pairs(random, n, 0.15),
        "retest": retest,
    }


def rated(cell: RaterCell, random: np.random.Generator, n: int, levels: int) -> tuple[np.ndarray, np.ndarray]:
    """The example of each answer, and its ratings: answers × raters."""
    example, level = quality(random, n, cell.answers)
    seen = level[:, None] + cell.noise * random.normal(size=(n, cell.raters))
    limits = math.sqrt(1 + cell.noise**2) * (np.linspace(-1.2, 1.2, levels - 1) if levels > 2 else np.zeros(1))
    ratings = np.searchsorted(limits + cell.shift, seen.ravel()).reshape(seen.shape).astype(np.float64)
    if cell.raters > 2:
        ratings[random.random(ratings.shape) < 1 / 3] = np.nan
    return example, ratings


def of_raters(cell: RaterCell) -> dict[str, Statistic]:
    """The statistics of ratings."""

    def alpha(level: Level, levels: int) -> Statistic:
        def compute(random: np.random.Generator, n: int) -> Estimate:
            example, ratings = rated(cell, random, n, levels)
            return estimate(KrippendorffAlpha(level=level), {RATINGS: ratings}, example)

        return compute

    def weighted(random: np.random.Generator, n: int, weights: str) -> Estimate:
        example, ratings = rated(cell, random, n, 5)
        first, second = ratings[:, :2].astype(np.int64).T
        return kappa(first, second, [0, 1, 2, 3, 4], example, weights=weights)  # type: ignore[arg-type]

    def slope(random: np.random.Generator, n: int) -> Estimate:
        example, ratings = rated(cell, random, n, 5)
        return estimate(Slope(), {"truth": ratings[:, 0], "prediction": ratings[:, 1]}, example)

    found = {
        "alpha, two labels": alpha("nominal", 2),
        "alpha, five labels": alpha("nominal", 5),
        "alpha, ordinal": alpha("ordinal", 5),
        "alpha, interval": alpha("interval", 5),
    }
    if cell.raters > 2:
        return found
    return found | {
        "kappa, linear": lambda random, n: weighted(random, n, "linear"),
        "kappa, quadratic": lambda random, n: weighted(random, n, "quadratic"),
        "calibration slope": slope,
    }


class Coverage(NamedTuple):
    """How often intervals hold.

    Attributes:
        truth: the true value.
        covered: the share of intervals that hold it.
        width: their median width.
        none: the share of samples without an interval.
    """

    truth: float
    covered: float
    width: float
    none: float


def measure_coverage(name: str, statistic: Statistic, n: int, simulations: int) -> Coverage:
    random = np.random.default_rng(0)
    is_none = name.endswith(NONE)
    truth = 0.0 if is_none else float(np.mean([statistic(random, LARGE).value for _ in range(OFTEN)]))
    return cover(truth, [statistic(random, n) for _ in range(simulations)])


def cover(truth: float, found: Sequence[Estimate]) -> Coverage:
    known = [each for each in found if not math.isnan(each.low)]
    if not known:
        return Coverage(truth, math.nan, math.nan, 1.0)
    held = float(np.mean([each.low <= truth <= each.high for each in known]))
    width = float(np.median([each.high - each.low for each in known]))
    return Coverage(truth, held, width, 1 - len(known) / len(found))


def _coverage(cells: Sequence[Cell], raters: Sequence[RaterCell], simulations: int) -> Iterator[str]:
    yield f"\n{simulations} simulations of each cell, intervals of 95 %\n"
    by_statistic: dict[str, list[tuple[str, Coverage]]] = {}
    for cells_of, statistics in ((cells, of_judge), (raters, of_raters)):
        for cell in cells_of:
            for name, statistic in statistics(cell).items():  # type: ignore[operator]
                found = measure_coverage(name, statistic, cell.n, simulations)
                by_statistic.setdefault(name, []).append((str(cell), found))
    yield "| statistic | cells | covered | least | in the cell | no interval |"
    yield "|---|---|---|---|---|---|"
    for name, each in by_statistic.items():
        covered = [found.covered for _, found in each]
        place = int(np.nanargmin(covered))
        none = float(np.mean([found.none for _, found in each]))
        yield (
            f"| {name} | {len(each)} | {np.nanmean(covered):.3f} | {covered[place]:.3f} | {each[place][0]}"
            f" | {none:.1%} |".replace(each[place][0], each[place][0].replace(" | ", ", "))
        )
    every = [found.covered for each in by_statistic.values() for _, found in each]
    yield f"| all | {len(every)} | {np.nanmean(every):.3f} | {np.nanmin(every):.3f} | | |"


def _corrected(cells: Sequence[Cell], simulations: int) -> Iterator[str]:
    yield f"\nmeans corrected for errors that {simulations} labelled sets of each cell show; 40 % of these are right\n"
    yield "| n | answers | truly right | rates | judged | raw mean | corrected | covered | width | not corrected |"
    yield "|---|---|---|---|---|---|---|---|---|---|"
    every = []
    for cell, n_judged in product(cells, (100, 1000)):
        random, raw, found = np.random.default_rng(0), list[float](), list[Estimate]()
        for _ in range(simulations):
            labelled = judged(cell, random, cell.n, 0.4)
            others = judged(cell, random, n_judged)
            shares = [
                share((labelled.judge == truth)[rows].astype(np.float64), labelled.example[rows])
                for truth in (1, 0)
                for rows in [labelled.truth == truth]
            ]
            raw.append(float(others.judge.mean()))
            found.append(rogan_gladen(share(others.judge.astype(np.float64), others.example), *shares))
        each = cover(cell.prevalence, found)
        every.append(each.covered)
        corrected = float(np.nanmean([one.value for one in found]))
        yield (
            f"| {cell} | {n_judged:,} | {np.mean(raw):.3f} | {corrected:.3f} | {each.covered:.3f}"
            f" | {each.width:.2f} | {each.none:.1%} |"
        )
    yield f"| all | | | | | | | {np.mean(every):.3f} (least {np.min(every):.3f}) | | |"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", choices=("coverage", "corrected"))
    parser.add_argument("--simulations", type=int, default=1000)
    options = parser.parse_args()
    simulations, step = (20, 18) if options.quick else (options.simulations, 1)
    parts = {
        "coverage": _coverage(CELLS[::step], RATER_CELLS[::step], simulations),
        "corrected": _corrected(CELLS[::step], simulations),
    }
    for name, lines in parts.items():
        if options.only in (None, name):
            for line in lines:
                print(line, flush=True)


if __name__ == "__main__":
    sys.exit(main())
