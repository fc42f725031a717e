"""The operating points of a system: fronts, intervals, the point to use, and the same models on other rows."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from html import escape
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from evaluand.aggregation.disparity import DisparityRow
from evaluand.aggregation.groups import group_text
from evaluand.core.errors import SpecError, nearest, plural, warn
from evaluand.metrics.base.metric import check_confidence
from evaluand.metrics.stats.disparity import IntervalEnds
from evaluand.store import tables
from evaluand.tradeoff.arguments import check_type, read_integer, read_list
from evaluand.tradeoff.confidences import READ, Confidences, Thresholds
from evaluand.tradeoff.front import distinct, hypervolume, non_dominated, settled, spreads, uniformity
from evaluand.tradeoff.objectives import Limit, Objective, Undefined, check_policy, parse_objectives
from evaluand.tradeoff.resampling import (
    HALVES,
    REPLICATES,
    VolumeDifference,
    draw_samples,
    halved_volumes,
    hypervolume_ends,
    simultaneous_levels,
    volume_difference,
)

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False, repr=False)
class Tradeoff:
    """The operating points of a system.

    Attributes:
        models: the models, or variants, of the system.
        model: the model of each point, as a place in `models`.
        threshold: the lowest confidence that is decided positive; NaN for points without a threshold. Points × groups
            where groups have separate thresholds.
        value: points × objectives, NaN where undefined.
        trivial: points that make the same decision for all rows, for which no model is needed.
        confidences: the rows that the points were computed from, if known.
        ends: the values with intervals, or with bands.
        band: the confidence level at which the ends hold for all points of a model at once; None for pointwise ones.
        threshold_groups: the groups with separate thresholds; empty where a point has one threshold for all rows.
        undefined: the value of a rate without rows, see `Undefined`.
        as_zero: points × objectives: where counting rates without rows as 0 changes the value; None where unknown.
        chosen: whether these points were selected by their values on these rows.
        picked: whether this is a point that was picked by its values on these rows.
        notes: warnings about the rows that the points come from, such as rows that are left out.
    """

    objectives: tuple[Objective, ...]
    models: tuple[str, ...]
    model: np.ndarray
    threshold: np.ndarray
    value: np.ndarray
    trivial: np.ndarray
    system: str = "system"
    confidences: Confidences | None = None
    ends: IntervalEnds | None = None
    band: float | None = None
    threshold_groups: tuple[Mapping[str, str], ...] = ()
    undefined: Undefined = "nan"
    as_zero: np.ndarray | None = None
    chosen: bool = False
    picked: bool = False
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        n, groups = len(self.model), (len(self.threshold_groups),) if self.threshold_groups else ()
        shapes = {"model": (n,), "threshold": (n, *groups), "value": (n, len(self.objectives)), "trivial": (n,)}
        for name, shape in shapes.items():
            if np.shape(getattr(self, name)) != shape:
                actual = " × ".join(map(str, np.shape(getattr(self, name)))) or "none"
                raise SpecError(
                    f"points: {name} must be an array of {' × '.join(map(str, shape))} and is one of {actual}"
                )
            object.__setattr__(self, name, np.asarray(getattr(self, name)))

    def __len__(self) -> int:
        return len(self.model)

    def __repr__(self) -> str:
        return f"<Tradeoff {self._summary}>"

    def __str__(self) -> str:
        """A summary, and a line for each objective with the lowest and the highest value.

        For a single point: its model and threshold, and each value with its interval.
        """
        rows = self._value_rows() if len(self) == 1 else [("", "lowest", "highest", "better"), *self._range_rows()]
        wide = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = [
            f"  {name:{wide[0]}}  {low:>{wide[1]}}  {high:>{wide[2]}}  {better}" for name, low, high, better in rows
        ]
        return "\n".join([self._summary if len(self) != 1 else self._point_name, *lines])

    def _repr_html_(self) -> str:
        """The same for a notebook."""
        lines = "".join(
            f"<tr><th>{escape(name)}</th>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>"
            for name, *cells in self._range_rows()
        )
        heads = "<tr><th></th><th>lowest</th><th>highest</th><th>better</th></tr>"
        return f"<table><caption>{escape(self._summary)}</caption><thead>{heads}</thead><tbody>{lines}</tbody></table>"

    @property
    def _point_name(self) -> str:
        thresholds = np.atleast_1d(self.threshold[0]).tolist()
        groups = [f"{group_text(group)}: " for group in self.threshold_groups] or [""]
        pairs = zip(groups, thresholds, strict=True)
        text = ", ".join(f"{group}{each:.6g}" for group, each in pairs if not math.isnan(each))
        return _printable(f"{self.system}: {self.models[self.model[0]]}{' from ' + text if text else ''}")

    def _value_rows(self) -> list[tuple[str, str, str, str]]:
        """Each objective with the value of the only point, its interval, and the better direction."""
        lines = [("", "value", "interval", "better")]
        for place, one in enumerate(self.objectives):
            ends = ("–", "–") if self.ends is None else [f"{end[0, place]:.4g}" for end in self.ends[1:]]
            known = self.ends is not None and not np.isnan(self.ends.low[0, place])
            value = "–" if np.isnan(self.value[0, place]) else f"{self.value[0, place]:.4g}"
            lines.append((_printable(one.name), value, " to ".join(ends) if known else "–", str(one.direction)))
        return lines

    @property
    def _summary(self) -> str:
        models, points = len(self.models), len(self)
        counts = f"{plural(points, 'point')} of {plural(models, 'model')}"
        return f"{_printable(self.system)}: {counts}, {len(self.front()):,} on the front"

    def _range_rows(self) -> Iterator[tuple[str, str, str, str]]:
        """Each objective with the lowest and the highest value of the points, and the better direction."""
        for one, values in zip(self.objectives, self.value.T, strict=True):
            known = values[~np.isnan(values)]
            ends = (f"{known.min():.4g}", f"{known.max():.4g}") if len(known) else ("–", "–")
            yield _printable(one.name), *ends, str(one.direction)

    def __getitem__(self, objective: str) -> np.ndarray:
        """The values of the points by an objective.

        Raises:
            KeyError: there is no such objective.
        """
        return np.asarray(self.value[:, self.place(objective)])

    def place(self, objective: str) -> int:
        """The place of an objective.

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
        """The values scaled from 0, the ideal, to 1, the worst: points × objectives."""
        return np.stack([one.loss(self.value[:, place]) for place, one in enumerate(self.objectives)], axis=1)

    @property
    def normalised(self) -> np.ndarray:
        """The values scaled to the objectives' ranges, whichever end is better: points × objectives."""
        return np.stack([one.normalise(self.value[:, place]) for place, one in enumerate(self.objectives)], axis=1)

    @property
    def unknown(self) -> np.ndarray:
        """Where values are undefined, or rest on rates without rows that count as 0: points × objectives."""
        undefined: np.ndarray = np.isnan(self.value)
        return undefined if self.as_zero is None else undefined | self.as_zero

    def take(self, points: np.ndarray) -> Tradeoff:
        """Some of the points, by places or by a mask.

        Raises:
            SpecError: there are no such points.
        """
        try:
            points = np.atleast_1d(np.arange(len(self))[points])
        except IndexError:
            hint = f"give integers below {len(self)}, or a mask of {len(self)} booleans"
            raise SpecError(f"{points!r} does not select points; {hint}") from None
        ends = None if self.ends is None else IntervalEnds(*(part[points] for part in self.ends))
        as_zero = None if self.as_zero is None else self.as_zero[points]
        columns = {name: getattr(self, name)[points] for name in ("model", "threshold", "value", "trivial")}
        return replace(self, ends=ends, as_zero=as_zero, **columns)

    @cached_property
    def on_front(self) -> np.ndarray:
        """Which points are on the front: no other point dominates them."""
        return non_dominated(self.loss)

    def front(self) -> Tradeoff:
        """The points that no other dominates, in order; values that differ by rounding alone count as equal."""
        return replace(self.take(self.on_front), chosen=True)

    def dominated(self) -> Tradeoff:
        """The points that another dominates; undefined points are neither dominated nor on the front."""
        return self.take(~self.on_front & ~np.isnan(self.loss).any(axis=1))

    def deduplicated(self, tolerance: float = 1e-6) -> Tradeoff:
        """The first of all points with equal values.

        A value that rests on rates without rows never equals one that does not.

        Args:
            tolerance: the distance up to which values are equal, as a share of the objective's range.

        Raises:
            SpecError: the tolerance is not a number of 0 or more.
        """
        return self.take(self.distinct_places(tolerance))

    def distinct_places(self, tolerance: float = 1e-6) -> np.ndarray:
        """The places of the points that `deduplicated` takes; arguments and errors are the same."""
        return distinct(np.hstack([self.normalised, self.unknown]), tolerance)

    def indicators(self) -> dict[str, float]:
        """Indicators of the quality of the front; NaN where no point has all values.

        - `hv`: hypervolume, the share of all possible outcomes that the front dominates; higher is better
        - `ud`: uniformity, how evenly the points are spread; higher is better
        - `os`, `as`: overall and average spread, the share of the objectives' ranges that the front covers, as a
          product and as a mean
        - `onvg`, `onvgr`: the number of points on the front, and their share of all points

        Raises:
            SpecError: there is only one objective.

        Example:
            >>> from evaluand.tradeoff import solve
            >>> confidences = Confidences.read([0, 1, 0, 1], {"tree": [0.1, 0.7, 0.6, 0.9]}, {"sex": list("ffmm")})
            >>> solve(confidences, ["accuracy", "selection_rate difference by sex"]).indicators()["hv"]
            1.0
        """
        if len(self.objectives) < 2:
            raise SpecError("indicators need two objectives or more")
        front = self.front()
        if not len(front):
            return dict.fromkeys(("hv", "ud", "os", "as", "onvg", "onvgr"), float("nan")) | {"onvg": 0.0}
        overall, mean = spreads(front.loss)
        return {
            "hv": hypervolume(front.loss),
            "ud": uniformity(front.normalised),
            "os": overall,
            "as": mean,
            "onvg": float(len(front)),
            "onvgr": len(front) / len(self),
        }

    def with_intervals(self, confidence: float = 0.95) -> Tradeoff:
        """The points with pointwise intervals of all objectives: see `Objective.with_interval`.

        A value that rests on a rate without rows that counts as 0 has no interval.

        Raises:
            SpecError: the rows that the points come from are unknown, or the confidence level is invalid.
        """
        _check_sampling(confidence)
        rows = self._require_rows("intervals")
        if self.picked:
            warn(_PICKED)
        levels = dict.fromkeys(self.models, [confidence] * len(self.objectives))
        return replace(self, ends=self._ends(rows, range(len(self.objectives)), levels), band=None)

    def with_bands(self, confidence: float = 0.95, replicates: int = REPLICATES, seed: int = 0) -> Tradeoff:
        """The points with bands, shaded in figures and pages, instead of intervals; arguments as for `bands`."""
        return replace(self, ends=self.bands(confidence, replicates, seed), band=confidence)

    def bands(self, confidence: float = 0.95, replicates: int = REPLICATES, seed: int = 0) -> IntervalEnds:
        """Simultaneous bands for all points of a model; NaN for objectives computed from confidences.

        Each point has its interval (see `with_intervals`) at a level found by resampling: `simultaneous_levels`. Of
        more than 1,000 points, a subset that is spread evenly over the thresholds of each model is resampled.

        Raises:
            SpecError: the rows that the points come from are unknown.
        """
        _check_sampling(confidence, replicates, seed)
        self._require_one_threshold("bands")
        rows = self._require_rows("bands")
        if not len(self):
            return self._ends(rows, (), {})
        decided = np.flatnonzero([not one.of_confidences for one in self.objectives])
        some = self._thin(_MOST_BANDED)
        of_decisions = [self.objectives[place] for place in decided]
        samples = draw_samples(rows, some._thresholds_by_model(), of_decisions, replicates, seed)
        levels = {
            name: simultaneous_levels(drawn, some.value[np.ix_(own, decided)], confidence)
            for (name, own), drawn in zip(some._places_by_model().items(), samples, strict=True)
        }
        return self._ends(rows, decided.tolist(), levels)

    def _ends(self, rows: Confidences, places: Sequence[int], levels: Mapping[str, Sequence[float]]) -> IntervalEnds:
        """The values with intervals of the objectives at some places, by model at these levels; NaN of others."""
        low, high = np.full((2, *self.value.shape), np.nan)
        for name, points in self._places_by_model().items():
            for place, level in zip(places, levels[name], strict=True):
                one, at = self.objectives[place], (self.threshold[points], self.threshold_groups)
                if one.of_confidences:
                    _, low[points, place], high[points, place] = one.of_model_with_interval(
                        rows, name, level, self.undefined
                    )
                    continue
                for step, counts, products in rows.iterate_counts(name, one.by, *at, with_products=True):
                    ends = one.with_interval(counts, level, self.undefined, products)
                    low[points[step], place], high[points[step], place] = ends.low, ends.high
        return IntervalEnds(self.value, low, high)

    def hypervolume_interval(
        self, confidence: float = 0.95, replicates: int = HALVES, seed: int = 0
    ) -> tuple[float, float]:
        """The interval of the hypervolume in the population of rows: see `resampling.hypervolume_ends`.

        It covers both the hypervolume of the selected front on new rows, and the highest that the models could reach at
        these points. A front is selected by its values, so its hypervolume on these rows is usually too high: the more
        so, the more thresholds and the fewer rows there are. So the interval reaches farther down than up. Of many
        points a subset is resampled that is spread evenly over the thresholds of each model: 500, or 120 with three
        objectives, or 48 with more.

        Args:
            replicates: how often the rows are split into halves.

        Returns:
            The ends; NaN with an `EvaluandWarning` where there are no points, there are too few rows for two halves
            that both have a front, or the hypervolume is equal in all halves. Points that were already selected for
            the front do not show what they were selected from, which is reported as an `EvaluandWarning` too.

        Raises:
            SpecError: the rows that the points come from are unknown, or an objective is computed from confidences.
        """
        rows = self._check_halves(confidence, replicates, seed)
        if not len(self):
            warn("there are no points, so the hypervolume has no interval")
            return math.nan, math.nan
        [(selected, tested)] = self._halved_volumes(rows, [np.arange(len(self))], replicates, seed)
        ends = hypervolume_ends(hypervolume(self.front().loss), selected, tested, rows.effective, confidence)
        if math.isnan(ends[0]):
            warn(_NO_INTERVAL)
        return ends

    def hypervolume_difference(
        self, baseline: str, model: str, confidence: float = 0.95, replicates: int = HALVES, seed: int = 0
    ) -> VolumeDifference:
        """How far the hypervolume of one model's front is above that of another: see `resampling.volume_difference`.

        Both decide the same rows. Arguments and errors are those of `hypervolume_interval`; a model without points is
        refused, too.

        Example:
            >>> from evaluand.tradeoff import solve
            >>> truth = [0, 1, 0, 1, 0, 1, 1, 0] * 5
            >>> confident = {"tree": [0.1, 0.7, 0.6, 0.4, 0.2, 0.8, 0.9, 0.1] * 5, "coin": [0.1, 0.2, 0.3, 0.4] * 10}
            >>> points = solve(Confidences.read(truth, confident, {}), ["recall", "specificity"])
            >>> found = points.hypervolume_difference("coin", "tree")
            >>> round(found.value, 2), found.low > 0, found.p < 0.01
            (0.38, True, True)
        """
        rows = self._check_halves(confidence, replicates, seed)
        if baseline == model:
            raise SpecError(f"name two models, not {model!r} twice")
        places = {name: self._places_of(name) for name in (baseline, model)}
        order = sorted(places, key=self.models.index)  # so that both directions have the same halves
        halved = self._halved_volumes(rows, [places[name] for name in order], replicates, seed)
        found = dict(zip(order, halved, strict=True))
        selected, tested = (np.stack([found[name][place] for name in places]) for place in (0, 1))
        a, b = (hypervolume(self.take(each).front().loss) for each in places.values())
        return volume_difference((a, b), selected, tested, rows.effective, confidence)

    def _places_of(self, model: str) -> np.ndarray:
        places = np.flatnonzero(self.model == self.models.index(model)) if model in self.models else np.empty(0)
        if not len(places):
            raise SpecError(f"no point is of the model {model!r}{nearest(model, self.models)}")
        return places

    def _check_halves(self, confidence: float, replicates: int, seed: int) -> Confidences:
        """The rows that halves of are drawn for hypervolumes."""
        _check_sampling(confidence, replicates, seed)
        self._require_one_threshold("interval of the hypervolume")
        for objective in self.objectives:
            if objective.of_confidences:
                raise SpecError(f"{objective.name} is not a metric of decisions, so the hypervolume has no interval")
        if self.chosen:
            warn(_SELECTED)
        return self._require_rows("intervals")

    def _halved_volumes(
        self, rows: Confidences, parts: Sequence[np.ndarray], replicates: int, seed: int
    ) -> list[tuple[np.ndarray, np.ndarray]]:
        most = _MOST_RESAMPLED.get(len(self.objectives), _MOST_RESAMPLED_ELSE)
        some = [self.take(part)._thin(most) for part in parts]
        return halved_volumes([one._thresholds_by_model() for one in some], self.objectives, rows, replicates, seed)

    def facts(self, objective: str, confidence: float = 0.95) -> list[DisparityRow]:
        """Details of a disparity at each point: the groups with the extreme values, small groups, and groups left out.

        An aggregation of the same decisions has the same rows.

        Args:
            objective: one that compares groups.
            confidence: the confidence level of the intervals.

        Raises:
            SpecError: there is no such objective, it compares no groups, or the rows of the points are unknown.

        Example:
            >>> from evaluand.tradeoff import solve
            >>> confidences = Confidences.read([0, 1, 0, 1], {"tree": [0.1, 0.7, 0.6, 0.9]}, {"sex": list("ffmm")})
            >>> [one] = solve(confidences, ["accuracy difference by sex"], [0.5]).facts("accuracy difference by sex")
            >>> one.value, one.lowest, one.highest, len(one.small)
            (0.5, {'sex': 'm'}, {'sex': 'f'}, 2)
        """
        _check_sampling(confidence)
        place = self.require_place(objective)
        one, rows = self.objectives[place], self._require_rows("facts")
        if one.disparity is None:
            raise SpecError(f"{one.name} compares no groups; give an objective such as 'accuracy difference by sex'")
        facts: list[Any] = [None] * len(self)
        for name, points, counts, products in self.iterate_counts(rows, one.by):
            compared = one.compare_groups(rows, name, counts, confidence, self.undefined, products)
            found = compared.rows(one.disparity, one.by, one.metric)
            for point, row in zip(points.tolist(), found * (len(points) // len(found)), strict=True):
                rests_on_none = self.as_zero is not None and self.as_zero[point, place]
                reason = self.why_unknown(point, place) if rests_on_none else row.reason
                facts[point] = row._replace(value=float(self.value[point, place]), reason=reason)
        return facts

    def iterate_counts(
        self, rows: Confidences, by: Sequence[str]
    ) -> Iterator[tuple[str, np.ndarray, np.ndarray, np.ndarray | None]]:
        """The counts of decisions by group, block by block: model, places of points, `counts_at` and `products_at`."""
        for name, places in self._places_by_model().items():
            at = self.threshold[places], self.threshold_groups
            for step, counts, products in rows.iterate_counts(name, by, *at, with_products=True):
                yield name, places[step], counts, products

    def why_unknown(self, point: int, place: int) -> str | None:
        """The reason why a value is undefined or rests on rates without rows; None for other values."""
        one = self.objectives[place]
        if self.as_zero is not None and self.as_zero[point, place]:
            return _OF_ZEROS if one.disparity == "ratio" else _AS_ZERO
        return one.why_undefined(self.confidences) if np.isnan(self.value[point, place]) else None

    def require_place(self, objective: str) -> int:
        """The place of an objective that a user named.

        Raises:
            SpecError: there is no such objective.
        """
        try:
            return self.place(objective)
        except KeyError as error:
            raise SpecError(error.args[0]) from None

    def at(self, confidences: Confidences, undefined: Undefined | None = None) -> Tradeoff:
        """The same models at the same thresholds on other rows: points chosen a priori.

        Args:
            undefined: the value of a rate without rows; by default that of these points.

        Raises:
            SpecError: a model has no confidences there, a point has no threshold, or a row's group has none.
        """
        confidences = check_type("confidences", confidences, Confidences, READ)
        for name in self._places_by_model():
            confidences.probabilities(name)
        if np.isnan(self.threshold).any():
            raise SpecError("some points have no threshold that could be applied to other rows")
        policy = check_policy(self.undefined if undefined is None else undefined)
        columns: dict[str, Any] = self._evaluate(confidences, policy) | {"undefined": policy}
        same_rows = self.confidences is not None and confidences.has_same_rows(self.confidences)
        if self.picked and same_rows:
            warn(_PICKED)
        unknown: dict[str, Any] = {"ends": None, "band": None, "chosen": False, "picked": False, "notes": ()}
        return replace(self, confidences=confidences, system=confidences.system, **columns, **unknown)

    def _evaluate(self, rows: Confidences, policy: Undefined) -> dict[str, np.ndarray]:
        """The attributes `value`, `trivial` and `as_zero` on some rows."""
        value, native = np.full((2, *self.value.shape), np.nan)
        outputs: dict[Undefined, np.ndarray] = {"nan": native} | {policy: value}
        decided = np.empty((len(self), 2))
        of_decisions = {(): None} | {one.by: None for one in self.objectives if not one.of_confidences}
        for name, points in self._places_by_model().items():
            for place, one in enumerate(self.objectives):
                for undefined, output in outputs.items() if one.of_confidences else ():
                    output[points, place] = one.of_model(rows, name, undefined)
            for by in of_decisions:
                for step, counts, _ in rows.iterate_counts(name, by, self.threshold[points], self.threshold_groups):
                    for place, one in enumerate(self.objectives):
                        for undefined, output in outputs.items() if one.by == by and not one.of_confidences else ():
                            output[points[step], place] = one.of_counts(counts, undefined)
                    if not by:
                        decided[points[step]] = counts[:, 0].reshape(-1, 2, 2).sum(axis=1)
        as_zero = np.isnan(native) | (native != value) if policy == "zero" else np.zeros(value.shape, bool)
        return {"value": value, "trivial": (decided == 0).any(axis=1), "as_zero": as_zero}

    def pick(self, best: str, where: str | Sequence[str] = (), *, allow_trivial: bool = False) -> Tradeoff:
        """The point that is best by an objective, among those within some limits.

        Ties are decided by the other objectives in their order, then by position. Points whose value is undefined by
        `best` or `where`, or rests on a rate without rows that counts as 0, are left out with an `EvaluandWarning`; in
        a tie such values of other objectives are the worst. A point that accepts nobody or everybody is no use of the
        model: where it would be the best, the next one is taken, with an `EvaluandWarning`.
        A pick is selected by its value, so that value is too good: evaluate the point on other rows (`at`).

        Args:
            best: an objective.
            where: limits such as `equalized_odds difference by sex <= 0.05`.
            allow_trivial: whether a point that decides equally for all rows may be chosen.

        Raises:
            SpecError: there is no such objective, or no point is within the limits; with the values' ranges. Or only
                points that decide equally for all rows are.

        Example:
            >>> from evaluand.tradeoff import solve
            >>> confidences = Confidences.read([0, 1, 0, 1], {"tree": [0.1, 0.7, 0.6, 0.9]}, {"sex": list("ffmm")})
            >>> points = solve(confidences, ["accuracy", "selection_rate difference by sex"])
            >>> points.pick("accuracy", ["selection_rate difference by sex <= 0.1"]).threshold
            array([0.7])
        """
        place = self.best_place(best, where, allow_trivial=allow_trivial)
        return replace(self.take(np.array([place])), chosen=True, picked=True)

    def best_place(self, best: str, where: str | Sequence[str] = (), *, allow_trivial: bool = False) -> int:
        """The place of the point that `pick` takes; arguments and errors are the same."""
        places = [self.require_place(best), *range(len(self.objectives))]
        limits = [Limit.parse(text, self.objectives[-1].name) for text in read_list("where", where, str, _EXAMPLE)]
        limited = [(limit, self.require_place(limit.name)) for limit in limits]
        known = ~self.unknown[:, [places[0], *(place for _, place in limited)]].any(axis=1)
        undefined = f"{(~known).sum()} of {len(self)} points have undefined values of these objectives"
        if not known.any():
            raise SpecError(f"{undefined}, so there is none to choose" if len(self) else "there are no points")
        allowed = known.copy()
        for limit, place in limited:
            allowed &= limit.allows(self.value[:, place], self.objectives[place])
        if not allowed.any():
            misses = (
                limit.describe_misses(self.value[known, place], self.objectives[place]) for limit, place in limited
            )
            raise SpecError(f"no point is within the limits: {'; '.join(misses)}")
        if not known.all():
            warn(f"{undefined}; they are left out of the choice")
        candidates = np.flatnonzero(allowed)
        loss = settled(np.where(self.unknown, np.nan, self.loss)[candidates])
        order = candidates[np.lexsort([loss[:, place] for place in reversed(places)])]
        return self._first_useful(order) if not allow_trivial else int(order[0])

    def _first_useful(self, order: np.ndarray) -> int:
        """The first of some points that does not decide equally for all rows."""
        useful = order[~self.trivial[order]]
        if not len(useful):
            raise SpecError(
                f"only points that decide equally for all rows are within the limits: {self._describe(order[0])};"
                " loosen the limits, or allow such a point (allow_trivial=True, --allow-trivial)"
            )
        if self.trivial[order[0]]:
            warn(
                f"the best point within the limits decides equally for all rows and is left out:"
                f" {self._describe(order[0])}; allow_trivial=True or --allow-trivial takes it"
            )
        return int(useful[0])

    def _describe(self, place: int) -> str:
        """A trivial point in words: the model, the threshold, and whom it accepts."""
        model, threshold = self.models[self.model[place]], np.atleast_1d(self.threshold[place])
        rows = self.confidences
        accepts = "nobody or everybody"
        if np.isposinf(threshold).all() or (
            rows and (threshold > rows.probabilities(model).max(initial=-np.inf)).all()
        ):
            accepts = "nobody"
        elif rows is not None:
            accepts = "everybody"
        return f"{_printable(model)} at {', '.join(f'{each:g}' for each in threshold.tolist())} accepts {accepts}"

    def to_arrow(self) -> pa.Table:
        """The points: system, model, threshold, each objective with its interval where it has one, and `trivial`.

        Where groups have separate thresholds, each group has a column such as `threshold sex=female`.

        Raises:
            SpecError: an objective has the name of another column.
        """
        columns: list[tuple[str, Any]] = [
            ("system", pa.array([self.system] * len(self), pa.string())),
            ("model", pa.array([self.models[number] for number in self.model], pa.string())),
        ]
        thresholds = self.threshold if self.threshold_groups else self.threshold[:, np.newaxis]
        for place, column in enumerate(self._threshold_names):
            columns.append((column, pa.array(thresholds[:, place], from_pandas=True)))
        for place, objective in enumerate(self.objectives):
            columns.append((objective.name, pa.array(self.value[:, place], from_pandas=True)))
            for part in ("low", "high") if self.ends is not None else ():
                end = pa.array(getattr(self.ends, part)[:, place], from_pandas=True)
                columns.append((f"{objective.name} {part}", end))
        names = [name for name, _ in columns]
        for name in names:
            if names.count(name) > 1:
                raise SpecError(f"two columns are called {name!r}; give that objective another name")
        return pa.table({**dict(columns), "trivial": pa.array(self.trivial)})

    def table(self) -> pa.Table:
        """The points in the form of an aggregation's table of metrics: one row per point and objective.

        `at` names the point: its model and threshold, or the thresholds of the groups, as text that reads back exactly.
        `over` are the attributes of a disparity. Columns with the same name have the same type and meaning in both
        tables, so that `pyarrow.concat_tables` with `promote_options="default"` joins them.

        Example:
            >>> from evaluand.tradeoff import solve
            >>> confidences = Confidences.read([0, 1, 0, 1], {"tree": [0.1, 0.7, 0.6, 0.9]}, {"sex": list("ffmm")})
            >>> [row] = solve(confidences, "accuracy", [0.5]).table().to_pylist()
            >>> row["metric"], row["at"], row["value"], row["n"]
            ('accuracy', [('model', 'tree'), ('threshold', '0.5')], 0.75, 4)
        """
        n, k = self.value.shape
        nothing = np.full((n, k), np.nan)
        low, high = (nothing, nothing) if self.ends is None else self.ends[1:]
        by_objective = [self._objective_columns(objective) for objective in self.objectives]
        unknown = enumerate(self.unknown.flat)
        columns = {
            **{name: [columns[name] for columns in by_objective] * n for name in by_objective[0]},
            "system": [self.system] * (n * k),
            "at": [key for point in range(n) for key in [self._point_key(point)] * k],
            "value": self.value.ravel(),
            "reason": [self.why_unknown(*divmod(place, k)) if miss else None for place, miss in unknown],
            "low": low.ravel(),
            "high": high.ravel(),
            "trivial": np.repeat(self.trivial, k),
        }
        arrays = [pa.array(columns[field.name], field.type, from_pandas=True) for field in _TABLE]
        return pa.Table.from_arrays(arrays, schema=_TABLE)

    @property
    def _threshold_names(self) -> list[str]:
        return [f"threshold {group_text(group)}" for group in self.threshold_groups] or ["threshold"]

    def _point_key(self, point: int) -> list[tuple[str, str]]:
        """The model and its threshold, or the thresholds of the groups."""
        thresholds = zip(self._threshold_names, np.atleast_1d(self.threshold[point]).tolist(), strict=True)
        known = [(name, repr(threshold)) for name, threshold in thresholds if threshold == threshold]
        return [("model", self.models[self.model[point]]), *known]

    def _objective_columns(self, objective: Objective) -> dict[str, Any]:
        """The columns that are the same for all points."""
        rows, signatures = self.confidences, [part.signature for part in objective.parts]
        if rows is not None:  # intervals of points are not those of the metric
            signatures = [signature.partition(" interval=")[0] for signature in signatures]
        columns = {name: getattr(objective, name) for name in ("scorer", "metric", "disparity")}
        n = None if rows is None else int((rows.groups(objective.by).code >= 0).sum())
        return columns | {"signature": " | ".join(signatures), "by": [], "over": list(objective.by), "n": n}

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

    def _require_rows(self, what: str) -> Confidences:
        if self.confidences is None:
            raise SpecError(f"{what} need the rows that the points come from, and only the points are known")
        return self.confidences

    def _require_one_threshold(self, what: str) -> None:
        if self.threshold_groups:
            raise SpecError(f"points whose groups have separate thresholds have no {what}; use with_intervals")

    def _thin(self, most: int) -> Tradeoff:
        """At most so many points, spread evenly over the thresholds of each model."""
        if len(self) <= most:
            return self
        selected, by_model = np.zeros(len(self), bool), self._places_by_model()
        for unsorted in by_model.values():
            places = unsorted[np.argsort(self.threshold[unsorted], kind="stable")]
            each = min(max(2, most // len(by_model)), len(places))
            selected[places[np.linspace(0, len(places) - 1, each).astype(np.int64)]] = True
        return self.take(selected)

    def _places_by_model(self) -> dict[str, np.ndarray]:
        """The places of the points of each model that has some."""
        return {self.models[number]: np.flatnonzero(self.model == number) for number in np.unique(self.model)}

    def _thresholds_by_model(self) -> dict[str, np.ndarray]:
        return {name: self.threshold[places] for name, places in self._places_by_model().items()}


def solve(
    confidences: Confidences,
    objectives: str | Objective | Sequence[str | Objective],
    thresholds: Thresholds | int | Sequence[float] = "every",
    undefined: Undefined = "nan",
    *,
    thresholds_by: str | Sequence[str] = (),
) -> Tradeoff:
    """The operating points of all models of a system.

    Args:
        objectives: such as `accuracy` and `equalized_odds difference by sex`: see `Objective.parse`.
        thresholds: the thresholds of each model: see `Confidences.thresholds`.
        undefined: the value of a rate without rows; see `Undefined`.
        thresholds_by: attributes whose groups, crossed, get separate thresholds: every combination of the groups'
            thresholds is a point, 100,000 at most. `every` and `roc` then read the rows of each group only.

    Raises:
        SpecError: an objective, attribute, threshold or policy is unknown, there are too many combinations, or a row
            belongs to no group that has a threshold.

    Example:
        >>> confidences = Confidences.read([0, 1, 0, 1], {"tree": [0.1, 0.4, 0.6, 0.9]}, {"sex": list("ffmm")})
        >>> [solve(confidences, "accuracy", thresholds_by=by)["accuracy"].max().item() for by in ((), "sex")]
        [0.75, 1.0]
    """
    confidences = check_type("confidences", confidences, Confidences, READ)
    parsed, policy = parse_objectives(objectives), check_policy(undefined)
    thresholds_by = read_list("thresholds_by", thresholds_by, str, "'sex'")
    groups = confidences.threshold_groups(thresholds_by) if thresholds_by else ()
    by_model = {name: _thresholds_of(confidences, name, thresholds, groups) for name in confidences.models}
    threshold = np.concatenate([*by_model.values()])
    model = np.repeat(np.arange(len(by_model)), [*map(len, by_model.values())])
    blank, trivial = np.empty((len(model), len(parsed))), np.zeros(len(model), bool)
    points = Tradeoff(parsed, tuple(by_model), model, threshold, blank, trivial, threshold_groups=groups)
    return points.at(confidences, policy)


def _thresholds_of(
    confidences: Confidences,
    model: str,
    thresholds: Thresholds | int | Sequence[float],
    groups: Sequence[Mapping[str, str]],
) -> np.ndarray:
    """The thresholds of a model's points; points × groups where groups have separate ones."""
    if not groups:
        return confidences.thresholds(model, thresholds)
    code = confidences.groups([*groups[0]]).code
    by_group = [confidences.thresholds(model, thresholds, code == number) for number in range(len(groups))]
    size = math.prod(map(len, by_group))
    if size * len(confidences.models) > _MOST_POINTS:
        factors = " × ".join(f"{len(one):,}" for one in by_group)
        models = f" for each of {len(confidences.models)} models" if len(confidences.models) > 1 else ""
        raise SpecError(
            f"{factors} thresholds of {len(groups)} groups are {size:,} points{models}, and {_MOST_POINTS:,} are the "
            "most; use fewer thresholds"
        )
    return np.stack(np.meshgrid(*by_group, indexing="ij"), axis=-1).reshape(-1, len(by_group))


def _printable(text: str) -> str:
    """Text without control characters, which could change a terminal."""
    return text if text.isprintable() else text.encode("unicode_escape").decode()


def _check_sampling(confidence: float, replicates: int = 1, seed: int = 0) -> None:
    check_confidence("intervals", confidence)
    read_integer("replicates", replicates, 1, f"{REPLICATES:,}")
    read_integer("seed", seed, 0, "0")


_TABLE: Final = pa.schema(
    [
        pa.field("system", pa.string(), nullable=False),
        pa.field("scorer", pa.string()),
        *(tables.METRICS.field(name) for name in ("metric", "signature", "by")),
        pa.field("at", pa.map_(pa.string(), pa.string()), nullable=False),
        pa.field("disparity", pa.string()),
        pa.field("over", pa.list_(pa.string()), nullable=False),
        *(tables.METRICS.field(name) for name in ("value", "reason", "low", "high")),
        pa.field("n", pa.int64()),
        pa.field("trivial", pa.bool_(), nullable=False),
    ]
)
"""Columns that also occur in the tables of an aggregation have the same meaning there. `n` is the number of rows in the
groups that are compared, or of all rows; null where it is unknown."""

_AS_ZERO: Final = "rests on rates without rows, which count as 0"
_OF_ZEROS: Final = "rests on rates without rows or a ratio of zeros, which count as 0"
_EXAMPLE: Final = "'equalized_odds difference by sex <= 0.05'"
_SELECTED: Final = (
    "these points were selected by their values on these rows, so the interval of their hypervolume is too high; "
    "compute it from all points"
)
_PICKED: Final = (
    "this point was chosen by its values on these rows, so its values and intervals there are too good; judge it on"
    " other rows"
)
_NO_INTERVAL: Final = (
    "the hypervolume has no interval: there are too few rows for two halves that both have a front, or it is equal in "
    "all halves"
)
_MOST_POINTS: Final = 100_000
_MOST_BANDED: Final = 1000
_MOST_RESAMPLED: Final = {2: 500, 3: 120}
_MOST_RESAMPLED_ELSE: Final = 48
