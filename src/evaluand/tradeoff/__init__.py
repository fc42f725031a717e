"""Trade-offs: what a system costs whom, at every threshold of every model it may use.

An operating point is a model and a threshold, with what it is worth by some objectives: its utility, and how far groups
lie apart. The points that no other beats are the front, which is what a system has to offer; indicators say in a number
how much that is. Of a system without thresholds (an LLM application and its settings) each variant is a point.

    Confidences ── solve ──▶ Tradeoff ── front ──▶ indicators, interval ── pick ──▶ one point ── at ──▶ other rows
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from evaluand.errors import Doubt, SpecError
from evaluand.metric import confidence_of
from evaluand.tradeoff.confidences import CELLS, Confidences, Thresholds, counts_at, crossed_at, in_blocks
from evaluand.tradeoff.ends import Ends
from evaluand.tradeoff.front import (
    additive_epsilon,
    distinct,
    fronts,
    hypervolume,
    hypervolumes,
    igd_plus,
    non_dominated,
    radar_area,
    settled,
    spreads,
    uniformity,
)
from evaluand.tradeoff.objectives import Objective, Undefined, objectives_of
from evaluand.tradeoff.resampling import HALVES, REPLICATES, between_worths, halved, replicated, simultaneous

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Confidences", "Objective", "Tradeoff", "compared", "solve"]

RADAR: Final = ("relative_onvg", "onvgr", "ud", "as", "hv")
"""The axes of a radar chart of indicators."""


@dataclass(frozen=True, eq=False)
class Tradeoff:
    """The operating points of a system.

    Attributes:
        objectives: what the points are worth by.
        models: the models, or variants, of the system.
        model: of each point its model, as a place in `models`.
        threshold: from which confidence on a point's decision is positive; NaN where there is none.
        value: points × objectives, NaN where undefined.
        trivial: points that decide alike for all rows, which no model is needed for.
        system: what the points belong to.
        given: the rows they come from, if these are known.
        ends: the values with their intervals, where these come from elsewhere than `given`.
    """

    objectives: tuple[Objective, ...]
    models: tuple[str, ...]
    model: np.ndarray
    threshold: np.ndarray
    value: np.ndarray
    trivial: np.ndarray
    system: str = "system"
    given: Confidences | None = field(default=None, repr=False)
    ends: Ends | None = field(default=None, repr=False)

    def __len__(self) -> int:
        return len(self.model)

    def __getitem__(self, objective: str) -> np.ndarray:
        """The values of the points by an objective.

        Raises:
            KeyError: there is no such objective.
        """
        return np.asarray(self.value[:, self.place(objective)])

    def place(self, objective: str) -> int:
        """Which of the objectives one is.

        Raises:
            KeyError: there is no such objective.
        """
        for place, one in enumerate(self.objectives):
            if objective in (one.name, one.text):
                return place
        raise KeyError(
            f"there is no objective {objective!r}; there are: {', '.join(one.name for one in self.objectives)}"
        )

    @cached_property
    def loss(self) -> np.ndarray:
        """The values from 0, the ideal, to 1, the worst: points × objectives."""
        return np.stack([one.loss(self.value[:, place]) for place, one in enumerate(self.objectives)], axis=1)

    @property
    def share(self) -> np.ndarray:
        """The values as shares of the objectives' ranges, which may go up or down: points × objectives."""
        return np.stack([one.share(self.value[:, place]) for place, one in enumerate(self.objectives)], axis=1)

    def taken(self, points: np.ndarray) -> Tradeoff:
        """Some of the points, by their places or as a mask."""
        ends = None if self.ends is None else Ends(*(part[points] for part in self.ends))
        named = ("model", "threshold", "value", "trivial")
        return replace(self, ends=ends, **{name: getattr(self, name)[points] for name in named})

    def front(self) -> Tradeoff:
        """The points that no other dominates, in their order; values that differ by rounding alone are equal."""
        return self.taken(non_dominated(self.loss))

    def dominated(self) -> Tradeoff:
        """The points that another dominates; those that are undefined are neither here nor there."""
        return self.taken(~non_dominated(self.loss) & ~np.isnan(self.loss).any(axis=1))

    def deduplicated(self, apart: float = 1e-6) -> Tradeoff:
        """The first of each points whose values are equal, to within `apart` of the objectives' ranges."""
        return self.taken(distinct(self.share, apart))

    def indicators(self) -> dict[str, float]:
        """What the front is worth, in numbers; of points without values, NaN.

        - `hv`: hypervolume, the share of all possible outcomes that the front dominates; higher is better
        - `ud`: how evenly the points are spread; higher is better
        - `os`, `as`: how much of the objectives' ranges the front reaches over, as a product and in the mean
        - `onvg`, `onvgr`: how many points the front has, and which share of all

        Raises:
            SpecError: there is only one objective.

        Example:
            >>> given = Confidences.read([0, 1, 0, 1], {"tree": [0.1, 0.7, 0.6, 0.9]}, {"sex": list("ffmm")})
            >>> solve(given, ["accuracy", "selection_rate difference by sex"]).indicators()["hv"]
            1.0
        """
        if len(self.objectives) < 2:
            raise SpecError("indicators are those of a trade-off between two objectives or more")
        front = self.front()
        if not len(front):
            return dict.fromkeys(("hv", "ud", "os", "as", "onvg", "onvgr"), float("nan")) | {"onvg": 0.0}
        overall, mean = spreads(front.loss)
        return {
            "hv": hypervolume(front.loss),
            "ud": uniformity(front.share),
            "os": overall,
            "as": mean,
            "onvg": float(len(front)),
            "onvgr": len(front) / len(self),
        }

    def with_intervals(self, confidence: float = 0.95) -> Tradeoff:
        """With the interval of each point by each objective, that of each by itself: see `Objective.with_interval`.

        Raises:
            SpecError: the rows that the points come from are not known, or there is no such confidence.
        """
        _check(confidence)
        given = self._rows("intervals")
        found = [np.full(self.value.shape, np.nan) for _ in Ends._fields]
        for number in np.unique(self.model).tolist():
            name, mine = self.models[number], np.flatnonzero(self.model == number)
            for place, objective in enumerate(self.objectives):
                ends = self._intervals(given, name, self.threshold[mine], objective, confidence)
                for part, end in zip(found, ends, strict=True):
                    part[mine, place] = end
        return replace(self, ends=Ends(self.value, *found[1:]))

    def bands(self, confidence: float = 0.95, replicates: int = REPLICATES, seed: int = 0) -> Ends:
        """Bands that hold for all points of a model at once; NaN for objectives of confidences.

        Each point has its interval (see `with_intervals`) at the confidence that resampling tells: `simultaneous`.

        Raises:
            SpecError: the rows that the points come from are not known.
        """
        _check(confidence, replicates)
        given = self._rows("bands")
        found = [np.full(self.value.shape, np.nan) for _ in range(2)]
        decided = np.flatnonzero([not one.of_confidences for one in self.objectives])
        for number, drawn in self._replicated(replicates, seed).items():
            mine, name = np.flatnonzero(self.model == number), self.models[number]
            levels = simultaneous(drawn, self.value[np.ix_(mine, decided)], confidence)
            for place, level in zip(decided, levels, strict=True):
                ends = self._intervals(given, name, self.threshold[mine], self.objectives[place], level)
                for part, end in zip(found, ends[1:], strict=True):
                    part[mine, place] = end
        return Ends(self.value, *found)

    def hypervolume_interval(
        self, confidence: float = 0.95, replicates: int = HALVES, seed: int = 0
    ) -> tuple[float, float]:
        """The interval of the hypervolume among all rows of the kind there are: see `resampling.between_worths`.

        It reaches from below what the front that is chosen here is worth on other rows to above the most that the
        models could be worth at these points, and holds either. A front is chosen for its values, so the hypervolume
        here is mostly too high, the more so, the more thresholds were tried and the fewer rows there are; and the
        interval reaches farther down than up. Of many points those are resampled that lie evenly among the thresholds
        of each model: 500, or 120 of three objectives, or 48 of more.

        Args:
            confidence: of the interval.
            replicates: how often rows are halved.
            seed: of the draws.

        Returns:
            NaN, told as a `Doubt`, where rows are too few for two halves that both have a front, or the hypervolume is
            the same in all halves.

        Raises:
            SpecError: the rows that the points come from are not known, or an objective is one of confidences.
        """
        _check(confidence, replicates)
        for objective in self.objectives:
            if objective.of_confidences:
                raise SpecError(f"{objective.name} is no metric of decisions, so the hypervolume has no interval")
        given = self._rows("intervals")
        some = self._thinned(_MOST_RESAMPLED.get(len(self.objectives), _MOST_RESAMPLED_ELSE))
        pairs = [self._volumes(*halves) for halves in halved(given, some._tried(), self.objectives, replicates, seed)]
        chosen, tried = np.concatenate(pairs, axis=-1)
        volume = hypervolume(self.front().loss)
        ends = between_worths(volume, chosen, tried, given.effective, confidence)
        if math.isnan(ends[0]):
            told = "the hypervolume has no interval: rows are too few for two halves that both have a front"
            told = f"{told}, or it is the same in all halves"
            warnings.warn(told, Doubt, stacklevel=2)
        return ends

    def at(self, given: Confidences, undefined: Undefined = "nan") -> Tradeoff:
        """The same models at the same thresholds on other rows: points chosen a priori.

        Raises:
            SpecError: a model of the points has no confidences there, or a point has no threshold.
        """
        used = [self.models[number] for number in np.unique(self.model)]
        for name in used:
            if name not in given.models:
                raise SpecError(f"there are no confidences of the model {name!r}; there are: {', '.join(given.models)}")
        if np.isnan(self.threshold).any():
            raise SpecError("some points have no threshold that could be tried on other rows")
        value, trivial = np.full(self.value.shape, np.nan), np.zeros(len(self), bool)
        for name in used:
            mine = self.model == self.models.index(name)
            value[mine], trivial[mine] = _valued(given, name, self.threshold[mine], self.objectives, undefined)
        return replace(self, value=value, trivial=trivial, given=given, ends=None, system=given.system)

    def pick(self, best: str, where: Sequence[str] = ()) -> Tradeoff:
        """The one point that is best by an objective among those that keep some limits.

        Of points that are equally good, the one that is best by the other objectives in their order; then the first.
        A pick is chosen for its value and so looks better than it is: take its value from other rows (`at`).

        Args:
            best: an objective.
            where: limits such as `equalized_odds difference by sex <= 0.05`.

        Raises:
            SpecError: there is no such objective, or no point keeps the limits; tells how near they come.

        Example:
            >>> given = Confidences.read([0, 1, 0, 1], {"tree": [0.1, 0.7, 0.6, 0.9]}, {"sex": list("ffmm")})
            >>> points = solve(given, ["accuracy", "selection_rate difference by sex"])
            >>> points.pick("accuracy", ["selection_rate difference by sex <= 0.1"]).threshold
            array([0.7])
        """
        return self.taken(np.array([self.best_place(best, where)]))

    def best_place(self, best: str, where: Sequence[str] = ()) -> int:
        """Which of the points `pick` takes; arguments and errors are the same."""
        try:
            places = [self.place(best), *range(len(self.objectives))]
            limits = [_Limit.parse(text, self) for text in where]
        except KeyError as fault:
            raise SpecError(fault.args[0]) from None
        known = ~np.isnan(self.value).any(axis=1)
        kept = known & np.logical_and.reduce([known, *(limit.kept(self.value[:, limit.place]) for limit in limits)])
        if not kept.any():
            nearest = "; ".join(limit.nearest(self.value[known, limit.place]) for limit in limits)
            raise SpecError(f"no point keeps the limits{': ' + nearest if known.any() else ': none has all values'}")
        among = np.flatnonzero(kept)
        loss = settled(self.loss[among])
        order = np.lexsort([loss[:, place] for place in reversed(places)])
        return int(among[order[0]])

    def to_arrow(self) -> pa.Table:
        """The points: system, model, threshold, each objective with its interval where it has one, and `trivial`."""
        columns: dict[str, Any] = {
            "system": pa.array([self.system] * len(self)),
            "model": pa.array([self.models[number] for number in self.model]),
            "threshold": pa.array(self.threshold, from_pandas=True),
        }
        for place, objective in enumerate(self.objectives):
            columns[objective.name] = pa.array(self.value[:, place], from_pandas=True)
            for part in ("low", "high") if self.ends is not None else ():
                columns[f"{objective.name} {part}"] = pa.array(getattr(self.ends, part)[:, place], from_pandas=True)
        return pa.table({**columns, "trivial": pa.array(self.trivial)})

    def to_pandas(self) -> pd.DataFrame:
        """The points as a frame; see `to_arrow`.

        Raises:
            SpecError: pandas is not installed.
        """
        try:
            frame: pd.DataFrame = self.to_arrow().to_pandas()
        except ImportError:
            raise SpecError("to_pandas needs pandas: pip install 'evaluand[pandas]'") from None
        return frame

    def _rows(self, what: str) -> Confidences:
        if self.given is None:
            raise SpecError(f"{what} need the rows that the points come from, and only the points are known")
        return self.given

    @staticmethod
    def _intervals(
        given: Confidences, model: str, thresholds: np.ndarray, objective: Objective, confidence: float
    ) -> Ends:
        groups = given.groups(objective.by)
        alone = groups.weight is None and groups.cluster is None
        cells = len(CELLS) if alone else len(CELLS) ** 2
        each = len(groups.names) * max(cells, len(groups.names) if objective.disparity in _OF_PAIRS else 1)
        steps = list(in_blocks(len(thresholds), each, f"{objective.name} of {len(groups.names):,} groups"))
        if objective.of_confidences:
            return objective.of_model_with_interval(given, model, confidence)
        found = []
        for step in steps:
            rows = given.models[model], given.truth, groups, thresholds[step]
            found.append(objective.with_interval(counts_at(*rows), confidence, crossed_at(*rows)))
        return Ends(*map(np.concatenate, zip(*found, strict=True)))

    def _thinned(self, most: int) -> Tradeoff:
        """Points of each model that lie evenly among its thresholds."""
        if len(self) <= most:
            return self
        kept, used = np.zeros(len(self), bool), np.unique(self.model)
        for number in used:
            mine = np.flatnonzero(self.model == number)
            mine = mine[np.argsort(self.threshold[mine], kind="stable")]
            each = min(max(2, most // len(used)), len(mine))
            kept[mine[np.linspace(0, len(mine) - 1, each).astype(np.int64)]] = True
        return self.taken(kept)

    def _tried(self) -> dict[str, np.ndarray]:
        """The thresholds of each model that has points."""
        return {self.models[number]: self.threshold[self.model == number] for number in np.unique(self.model)}

    def _volumes(self, value: np.ndarray, other: np.ndarray) -> np.ndarray:
        """Of halves of the rows the hypervolume of each, and that of its front on the other half."""
        here, there = (
            np.stack([one.loss(each[..., place]) for place, one in enumerate(self.objectives)], axis=-1)
            for each in (value, other)
        )
        return np.stack([hypervolumes(here), hypervolumes(np.where(fronts(here)[..., None], there, np.nan))])

    def _replicated(self, replicates: int, seed: int) -> dict[int, np.ndarray]:
        """Of each model that has points: replicates × its points × objectives of decisions."""
        decided = [one for one in self.objectives if not one.of_confidences]
        drawn = replicated(self._rows("bands"), self._tried(), decided, replicates, seed)
        return dict(zip(np.unique(self.model).tolist(), drawn, strict=True))


def solve(
    given: Confidences,
    objectives: Sequence[str | Objective],
    thresholds: Thresholds | int | Sequence[float] = "every",
    undefined: Undefined = "nan",
) -> Tradeoff:
    """The operating points of all models of a system.

    Args:
        given: the models' confidences, with the truth and the attributes.
        objectives: such as `accuracy` and `equalized_odds difference by sex`: see `Objective.parse`.
        thresholds: which of each model are tried: see `Confidences.thresholds`.
        undefined: what a rate without rows is; see `Undefined`.

    Raises:
        SpecError: there is no such objective, attribute or threshold.
    """
    wanted = objectives_of(objectives)
    parts = []
    for name in given.models:
        tried = given.thresholds(name, thresholds)
        parts.append((tried, *_valued(given, name, tried, wanted, undefined)))
    threshold, value, trivial = (np.concatenate(each) for each in zip(*parts, strict=True))
    model = np.repeat(np.arange(len(parts)), [len(tried) for tried, *_ in parts])
    return Tradeoff(wanted, tuple(given.models), model, threshold, value, trivial, given.system, given)


def compared(systems: Mapping[str, Tradeoff]) -> dict[str, dict[str, float]]:
    """The indicators of several systems, with those that are about one beside the others.

    - `relative_onvg`: points of the front, as a share of those of the system that has the most
    - `igd_plus`, `epsilon`: how far a system falls short of the best of all together; lower is better
    - `area`: of the radar chart of `RADAR`

    Raises:
        SpecError: there is no system, or they have different objectives.
    """
    shared_objectives(systems)
    fronts = {name: one.front() for name, one in systems.items()}
    every = np.concatenate([one.loss for one in fronts.values()])
    reference = np.unique(every[non_dominated(every)], axis=0)
    found = {name: one.indicators() for name, one in systems.items()}
    most = max((one["onvg"] for one in found.values()), default=0.0)
    for name, one in found.items():
        one["relative_onvg"] = one["onvg"] / most if most else float("nan")
        one["igd_plus"] = igd_plus(fronts[name].loss, reference)
        one["epsilon"] = additive_epsilon(fronts[name].loss, reference)
        one["area"] = radar_area([one[axis] for axis in RADAR])
    return found


def shared_objectives(systems: Mapping[str, Tradeoff]) -> tuple[Objective, ...]:
    """The objectives that all of some systems have.

    Raises:
        SpecError: there is no system, or they have different objectives.
    """
    if not systems:
        raise SpecError("no system is given; give the points of each by its name")
    first = next(iter(systems.values())).objectives
    for name, other in systems.items():
        if [one.text for one in other.objectives] != [one.text for one in first]:
            raise SpecError(f"{name} has other objectives than the systems before it; compare systems by the same ones")
    return first


def _check(confidence: float, replicates: int = 1) -> None:
    confidence_of("intervals", confidence)
    if replicates < 1:
        raise SpecError(f"replicates={replicates} must be 1 or more, such as {REPLICATES:,}")


def _valued(
    given: Confidences, model: str, thresholds: np.ndarray, objectives: Sequence[Objective], undefined: Undefined
) -> tuple[np.ndarray, np.ndarray]:
    """The values of a model at some thresholds, and which of them decide alike for all rows."""
    value = np.empty((len(thresholds), len(objectives)))
    for place, one in enumerate(objectives):
        if one.of_confidences:
            value[:, place] = one.of_model(given, model, undefined)
    decided = np.empty((len(thresholds), 2))
    for by in {(): None, **{one.by: None for one in objectives if not one.of_confidences}}:
        groups = given.groups(by)
        told = f"counts of {len(groups.names):,} groups"
        for step in in_blocks(len(thresholds), len(groups.names) * len(CELLS), told):
            counts = counts_at(given.models[model], given.truth, groups, thresholds[step])
            for place, one in enumerate(objectives):
                if one.by == by and not one.of_confidences:
                    value[step, place] = one.of_counts(counts, undefined)
            if not by:
                decided[step] = counts[:, 0].reshape(-1, 2, 2).sum(axis=1)
    return value, np.asarray((decided == 0).any(axis=1))


@dataclass(frozen=True)
class _Limit:
    """What a value must not go beyond."""

    place: int
    above: bool
    bound: float
    text: str

    @classmethod
    def parse(cls, text: str, points: Tradeoff) -> _Limit:
        for sign in ("<=", ">="):
            name, found, number = text.rpartition(sign)
            if found:
                try:
                    bound = float(number)
                except ValueError:
                    break
                if math.isnan(bound):
                    break
                return cls(points.place(name.strip()), sign == ">=", bound, text)
        raise SpecError(f"{text!r} is no limit; write it as in 'equalized_odds difference by sex <= 0.05'")

    def kept(self, value: np.ndarray) -> np.ndarray:
        return value >= self.bound if self.above else value <= self.bound

    def nearest(self, value: np.ndarray) -> str:
        kept = int(self.kept(value).sum())
        return f"{self.text!r} is kept by {kept}, and the values lie from {value.min():.4g} to {value.max():.4g}"


_MOST_RESAMPLED: Final = {2: 500, 3: 120}
_MOST_RESAMPLED_ELSE: Final = 48
_OF_PAIRS: Final = ("difference", "ratio")
