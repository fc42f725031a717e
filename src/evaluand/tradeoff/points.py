"""The points of a trade-off: fronts, intervals, picks, and the same models on other rows."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from html import escape
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from evaluand.aggregation.disparity import DisparityRow
from evaluand.core.errors import EvaluandWarning, SpecError
from evaluand.metrics.base.metric import check_confidence
from evaluand.metrics.stats.disparity import IntervalEnds
from evaluand.tradeoff.arguments import listed, made, whole
from evaluand.tradeoff.confidences import READ, Confidences, group_text
from evaluand.tradeoff.constraints import Limit
from evaluand.tradeoff.front import (
    distinct,
    fronts,
    hypervolume,
    hypervolumes,
    non_dominated,
    settled,
    spreads,
    uniformity,
)
from evaluand.tradeoff.objectives import Objective, Undefined
from evaluand.tradeoff.resampling import HALVES, REPLICATES, between_worths, halved, replicated, simultaneous
from evaluand.tradeoff.table import table_of
from evaluand.tradeoff.values import policy_of, valued

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False, repr=False)
class Tradeoff:
    """The operating points of a system.

    Attributes:
        objectives: what the points are worth by.
        models: the models, or variants, of the system.
        model: of each point its model, as a place in `models`.
        threshold: from which confidence on a point's decision is positive; NaN where there is none. Where groups have
            thresholds of their own, points × groups.
        value: points × objectives, NaN where undefined.
        trivial: points that decide alike for all rows, which no model is needed for.
        system: what the points belong to.
        given: the rows they come from, if these are known.
        ends: the values with their intervals, or bands.
        band: how surely the ends hold for all points of a model at once; None where each holds by itself.
        apart: the groups that have thresholds of their own; none where a point has one threshold for all rows.
        undefined: what a rate without rows is taken for, see `Undefined`.
        as_zero: which values, points × objectives, are others for counting rates without rows as 0 than for leaving
            them out; None where that is not known.
        chosen: whether these points were chosen among others by their values on these rows.
        notes: what is odd about the rows they come from, such as those that are left out.
    """

    objectives: tuple[Objective, ...]
    models: tuple[str, ...]
    model: np.ndarray
    threshold: np.ndarray
    value: np.ndarray
    trivial: np.ndarray
    system: str = "system"
    given: Confidences | None = None
    ends: IntervalEnds | None = None
    band: float | None = None
    apart: tuple[Mapping[str, str], ...] = ()

    undefined: Undefined = "nan"
    as_zero: np.ndarray | None = None
    chosen: bool = False
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        n, thresholds = len(self.model), (len(self.apart),) if self.apart else ()
        shapes = {"model": (n,), "threshold": (n, *thresholds), "value": (n, len(self.objectives)), "trivial": (n,)}
        for name, shape in shapes.items():
            if np.shape(getattr(self, name)) != shape:
                told = " × ".join(map(str, np.shape(getattr(self, name)))) or "none"
                raise SpecError(
                    f"points: {name} must be an array of {' × '.join(map(str, shape))} and is one of {told}"
                )
            object.__setattr__(self, name, np.asarray(getattr(self, name)))

    def __len__(self) -> int:
        return len(self.model)

    def __repr__(self) -> str:
        return f"<Tradeoff {self._told}>"

    def __str__(self) -> str:
        """What there is, and a line for each objective with the least and the greatest value.

        Of a single point its model and threshold, and each value with the interval it has.
        """
        rows = self._values() if len(self) == 1 else [("", "lowest", "highest", "better"), *self._ranges()]
        wide = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = [
            f"  {name:{wide[0]}}  {low:>{wide[1]}}  {high:>{wide[2]}}  {better}" for name, low, high, better in rows
        ]
        return "\n".join([self._told if len(self) != 1 else self._point, *lines])

    def _repr_html_(self) -> str:
        """The same for a notebook."""
        lines = "".join(
            f"<tr><th>{escape(name)}</th>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>"
            for name, *cells in self._ranges()
        )
        heads = "<tr><th></th><th>lowest</th><th>highest</th><th>better</th></tr>"
        return f"<table><caption>{escape(self._told)}</caption><thead>{heads}</thead><tbody>{lines}</tbody></table>"

    @property
    def _point(self) -> str:
        """What the only point is called."""
        at = np.atleast_1d(self.threshold[0]).tolist()
        groups = [f"{group_text(group)}: " for group in self.apart] or [""]
        told = ", ".join(f"{group}{each:.6g}" for group, each in zip(groups, at, strict=True) if not math.isnan(each))
        return _printable(f"{self.system}: {self.models[self.model[0]]}{' from ' + told if told else ''}")

    def _values(self) -> list[tuple[str, str, str, str]]:
        """Each objective with the value of the only point, its interval, and which is better."""
        lines = [("", "value", "interval", "better")]
        for place, one in enumerate(self.objectives):
            ends = ("–", "–") if self.ends is None else [f"{end[0, place]:.4g}" for end in self.ends[1:]]
            known = self.ends is not None and not np.isnan(self.ends.low[0, place])
            value = "–" if np.isnan(self.value[0, place]) else f"{self.value[0, place]:.4g}"
            lines.append((_printable(one.name), value, " to ".join(ends) if known else "–", str(one.direction)))
        return lines

    @property
    def _told(self) -> str:
        models, points = (
            f"{n:,} {word}{'s'[: n != 1]}" for n, word in ((len(self.models), "model"), (len(self), "point"))
        )
        return f"{_printable(self.system)}: {points} of {models}, {len(self.front()):,} on the front"

    def _ranges(self) -> Iterator[tuple[str, str, str, str]]:
        """Each objective with the least and the greatest value of the points, and which is better."""
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

    @property
    def unknown(self) -> np.ndarray:
        """Which values are undefined, or rest on rates without rows that count as 0: points × objectives."""
        undefined: np.ndarray = np.isnan(self.value)
        return undefined if self.as_zero is None else undefined | self.as_zero

    def taken(self, points: np.ndarray) -> Tradeoff:
        """Some of the points, by their places or as a mask.

        Raises:
            SpecError: there are no such points.
        """
        try:
            points = np.atleast_1d(np.arange(len(self))[points])
        except IndexError:
            told = f"places of points are integers below {len(self)}, or a mask of so many"
            raise SpecError(f"{points!r} names no points; {told}") from None
        ends = None if self.ends is None else IntervalEnds(*(part[points] for part in self.ends))
        as_zero = None if self.as_zero is None else self.as_zero[points]
        named = ("model", "threshold", "value", "trivial")
        return replace(self, ends=ends, as_zero=as_zero, **{name: getattr(self, name)[points] for name in named})

    @cached_property
    def on_front(self) -> np.ndarray:
        """Which points no other dominates."""
        return non_dominated(self.loss)

    def front(self) -> Tradeoff:
        """The points that no other dominates, in their order; values that differ by rounding alone are equal."""
        return replace(self.taken(self.on_front), chosen=True)

    def dominated(self) -> Tradeoff:
        """The points that another dominates; those that are undefined are neither here nor there."""
        return self.taken(~self.on_front & ~np.isnan(self.loss).any(axis=1))

    def deduplicated(self, apart: float = 1e-6) -> Tradeoff:
        """The first of each points whose values are equal, to within `apart` of the objectives' ranges.

        A value that rests on rates without rows is equal to none that does not.

        Raises:
            SpecError: `apart` is no number of 0 or more.
        """
        return self.taken(self.distinct_places(apart))

    def distinct_places(self, apart: float = 1e-6) -> np.ndarray:
        """Which of the points `deduplicated` takes; arguments and errors are the same."""
        return distinct(np.hstack([self.share, self.unknown]), apart)

    def indicators(self) -> dict[str, float]:
        """What the front is worth, in numbers; of points without values, NaN.

        - `hv`: hypervolume, the share of all possible outcomes that the front dominates; higher is better
        - `ud`: how evenly the points are spread; higher is better
        - `os`, `as`: how much of the objectives' ranges the front reaches over, as a product and in the mean
        - `onvg`, `onvgr`: how many points the front has, and which share of all

        Raises:
            SpecError: there is only one objective.

        Example:
            >>> from evaluand.tradeoff import solve
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

        What rests on a rate without rows that counts as 0 has none.

        Raises:
            SpecError: the rows that the points come from are not known, or there is no such confidence.
        """
        _check(confidence)
        given = self._rows("intervals")
        found = [np.full(self.value.shape, np.nan) for _ in IntervalEnds._fields]
        for number in np.unique(self.model).tolist():
            name, mine = self.models[number], np.flatnonzero(self.model == number)
            for place, objective in enumerate(self.objectives):
                ends = self._intervals(given, name, self.threshold[mine], objective, confidence)
                for part, end in zip(found, ends, strict=True):
                    part[mine, place] = end
        return replace(self, ends=IntervalEnds(self.value, *found[1:]), band=None)

    def with_bands(self, confidence: float = 0.95, replicates: int = REPLICATES, seed: int = 0) -> Tradeoff:
        """With bands in the place of intervals; pictures and pages shade them. Arguments and errors: see `bands`."""
        return replace(self, ends=self.bands(confidence, replicates, seed), band=confidence)

    def bands(self, confidence: float = 0.95, replicates: int = REPLICATES, seed: int = 0) -> IntervalEnds:
        """Bands that hold for all points of a model at once; NaN for objectives of confidences.

        Each point has its interval (see `with_intervals`) at the confidence that resampling tells: `simultaneous`. Of
        more than 1,000 points those are resampled that lie evenly among the thresholds of each model.

        Raises:
            SpecError: the rows that the points come from are not known.
        """
        _check(confidence, replicates, seed)
        self._for_all("bands")
        given = self._rows("bands")
        found = [np.full(self.value.shape, np.nan) for _ in range(2)]
        if not len(self):
            return IntervalEnds(self.value, *found)
        decided = np.flatnonzero([not one.of_confidences for one in self.objectives])
        some = self._thinned(_MOST_BANDED)
        for number, drawn in some._replicated(replicates, seed).items():
            mine, name = np.flatnonzero(self.model == number), self.models[number]
            levels = simultaneous(drawn, some.value[np.ix_(some.model == number, decided)], confidence)
            for place, level in zip(decided, levels, strict=True):
                ends = self._intervals(given, name, self.threshold[mine], self.objectives[place], level)
                for part, end in zip(found, ends[1:], strict=True):
                    part[mine, place] = end
        return IntervalEnds(self.value, *found)

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
            NaN, told as an `EvaluandWarning`, where there are no points, rows are too few for two halves that both have
            a front, or the hypervolume is the same in all halves. Points that are a front already no longer tell what
            it was chosen from, which is told as an `EvaluandWarning` too.

        Raises:
            SpecError: the rows that the points come from are not known, or an objective is one of confidences.
        """
        _check(confidence, replicates, seed)
        self._for_all("interval of the hypervolume")
        for objective in self.objectives:
            if objective.of_confidences:
                raise SpecError(f"{objective.name} is no metric of decisions, so the hypervolume has no interval")
        given = self._rows("intervals")
        if not len(self):
            warnings.warn("there are no points, so the hypervolume has no interval", EvaluandWarning, stacklevel=2)
            return math.nan, math.nan
        if self.chosen:
            told = "these points were chosen by their values on these rows, so the interval of their hypervolume is too"
            warnings.warn(f"{told} high; ask all points for it", EvaluandWarning, stacklevel=2)
        some = self._thinned(_MOST_RESAMPLED.get(len(self.objectives), _MOST_RESAMPLED_ELSE))
        pairs = [self._volumes(*halves) for halves in halved(given, some._tried(), self.objectives, replicates, seed)]
        chosen, tried = np.concatenate(pairs, axis=-1)
        volume = hypervolume(self.front().loss)
        ends = between_worths(volume, chosen, tried, given.effective, confidence)
        if math.isnan(ends[0]):
            told = "the hypervolume has no interval: rows are too few for two halves that both have a front"
            told = f"{told}, or it is the same in all halves"
            warnings.warn(told, EvaluandWarning, stacklevel=2)
        return ends

    def facts(self, objective: str, confidence: float = 0.95) -> list[DisparityRow]:
        """What there is to tell of a disparity at each point: between which groups, which are small or left out, why.

        They are those that an aggregation of the same decisions tells, with the interval at this confidence.

        Args:
            objective: one that is about groups.
            confidence: of the intervals.

        Raises:
            SpecError: there is no such objective, it is about no groups, or the rows of the points are not known.

        Example:
            >>> from evaluand.tradeoff import solve
            >>> given = Confidences.read([0, 1, 0, 1], {"tree": [0.1, 0.7, 0.6, 0.9]}, {"sex": list("ffmm")})
            >>> [one] = solve(given, ["accuracy difference by sex"], [0.5]).facts("accuracy difference by sex")
            >>> one.value, one.lowest, one.highest, len(one.small)
            (0.5, {'sex': 'm'}, {'sex': 'f'}, 2)
        """
        _check(confidence)
        place = self.place_asked(objective)
        one, given = self.objectives[place], self._rows("facts")
        if one.disparity is None:
            raise SpecError(f"{one.name} is about no groups; ask for an objective such as 'accuracy difference by sex'")
        found: list[Any] = [None] * len(self)
        for number in np.unique(self.model).tolist():
            name, mine = self.models[number], np.flatnonzero(self.model == number)
            for step, counts, crossed in given.counted(name, one.by, self.threshold[mine], self.apart, crossed=True):
                some = mine[step]
                compared = one.compared(given, name, counts, confidence, self.undefined, crossed)
                rows = compared.rows(one.disparity, one.by, one.metric)
                for point, row in zip(some.tolist(), rows * (len(some) // len(rows)), strict=True):
                    row = row._replace(value=float(self.value[point, place]))
                    found[point] = (
                        row
                        if self.as_zero is None or not self.as_zero[point, place]
                        else row._replace(reason=self.why_unknown(point, place))
                    )
        return found

    def why_unknown(self, point: int, place: int) -> str | None:
        """Why a point's value by an objective is undefined, or no value like others; None where it is one."""
        one = self.objectives[place]
        if self.as_zero is not None and self.as_zero[point, place]:
            return _OF_ZEROS if one.disparity == "ratio" else _AS_ZERO
        return one.why_undefined(self.given) if np.isnan(self.value[point, place]) else None

    def place_asked(self, objective: str) -> int:
        """Which of the objectives one is that a user asks for.

        Raises:
            SpecError: there is no such objective.
        """
        try:
            return self.place(objective)
        except KeyError as fault:
            raise SpecError(fault.args[0]) from None

    def at(self, given: Confidences, undefined: Undefined | None = None) -> Tradeoff:
        """The same models at the same thresholds on other rows: points chosen a priori.

        Args:
            given: the other rows.
            undefined: what a rate without rows is; as it is for these points if not given.

        Raises:
            SpecError: a model of the points has no confidences there, a point has no threshold, or rows are of a group
                that has none.
        """
        given = made("given", given, Confidences, READ)
        used = [self.models[number] for number in np.unique(self.model)]
        for name in used:
            given.sure(name)
        if np.isnan(self.threshold).any():
            raise SpecError("some points have no threshold that could be tried on other rows")
        policy = policy_of(self.undefined if undefined is None else undefined)
        value, trivial = np.full(self.value.shape, np.nan), np.zeros(len(self), bool)
        as_zero = np.zeros(self.value.shape, bool)
        for name in used:
            mine = self.model == self.models.index(name)
            tried = self.threshold[mine]
            found = valued(given, name, tried, self.objectives, policy, self.apart)
            value[mine], trivial[mine], as_zero[mine] = found
        points = replace(self, value=value, trivial=trivial, as_zero=as_zero, undefined=policy)
        return replace(points, given=given, ends=None, band=None, system=given.system, chosen=False, notes=())

    def pick(self, best: str, where: str | Sequence[str] = ()) -> Tradeoff:
        """The one point that is best by an objective among those that keep some limits.

        Of points that are equally good, the one that is best by the other objectives in their order; then the first.
        Points that are undefined by what is asked for, or rest on a rate without rows that counts as 0, are left out
        and told as an `EvaluandWarning`; by the other objectives these are the worst.
        A pick is chosen for its value and so looks better than it is: take its value from other rows (`at`).

        Args:
            best: an objective.
            where: limits such as `equalized_odds difference by sex <= 0.05`.

        Raises:
            SpecError: there is no such objective, or no point keeps the limits; tells how near they come.

        Example:
            >>> from evaluand.tradeoff import solve
            >>> given = Confidences.read([0, 1, 0, 1], {"tree": [0.1, 0.7, 0.6, 0.9]}, {"sex": list("ffmm")})
            >>> points = solve(given, ["accuracy", "selection_rate difference by sex"])
            >>> points.pick("accuracy", ["selection_rate difference by sex <= 0.1"]).threshold
            array([0.7])
        """
        return replace(self.taken(np.array([self.best_place(best, where)])), chosen=True)

    def best_place(self, best: str, where: str | Sequence[str] = ()) -> int:
        """Which of the points `pick` takes; arguments and errors are the same."""
        places = [self.place_asked(best), *range(len(self.objectives))]
        limits = [Limit.parse(text, self.objectives[-1].name) for text in listed("where", where, str, _LIMIT)]
        of = [(limit, self.place_asked(limit.name)) for limit in limits]
        known = ~self.unknown[:, [places[0], *(place for _, place in of)]].any(axis=1)
        told = f"{(~known).sum()} of {len(self)} points are undefined by what is asked for"
        if not known.any():
            raise SpecError(f"{told}, so there is nothing to choose from" if len(self) else "there are no points")
        kept = known.copy()
        for limit, place in of:
            kept &= limit.kept(self.value[:, place], self.objectives[place])
        if not kept.any():
            nearest = "; ".join(limit.nearest(self.value[known, place], self.objectives[place]) for limit, place in of)
            raise SpecError(f"no point keeps the limits: {nearest}")
        if not known.all():
            warnings.warn(f"{told}; they are not chosen from", EvaluandWarning, stacklevel=3)
        among = np.flatnonzero(kept)
        loss = settled(np.where(self.unknown, np.nan, self.loss)[among])
        order = np.lexsort([loss[:, place] for place in reversed(places)])
        return int(among[order[0]])

    def to_arrow(self) -> pa.Table:
        """The points: system, model, threshold, each objective with its interval where it has one, and `trivial`.

        Where groups have thresholds of their own, each has a column such as `threshold sex=female`.

        Raises:
            SpecError: an objective is called as the interval of another.
        """
        columns: list[tuple[str, Any]] = [
            ("system", pa.array([self.system] * len(self), pa.string())),
            ("model", pa.array([self.models[number] for number in self.model], pa.string())),
        ]
        thresholds = self.threshold if self.apart else self.threshold[:, np.newaxis]
        for place, group in enumerate(self.apart or ({},)):
            called = f"threshold {group_text(group)}" if group else "threshold"
            columns.append((called, pa.array(thresholds[:, place], from_pandas=True)))
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
        """The points in the form of the table of metrics of an aggregation: a row for each point and objective.

        `at` is what the value is one at: the model and the threshold, or those of the groups, as text that is read back
        as it was. A disparity is one over the attributes of `over`. Columns with the same name as there have the same
        type and meaning, so that `pyarrow.concat_tables` with `promote_options="default"` puts both together.

        Example:
            >>> from evaluand.tradeoff import solve
            >>> given = Confidences.read([0, 1, 0, 1], {"tree": [0.1, 0.7, 0.6, 0.9]}, {"sex": list("ffmm")})
            >>> [row] = solve(given, "accuracy", [0.5]).table().to_pylist()
            >>> row["metric"], row["at"], row["value"], row["n"]
            ('accuracy', [('model', 'tree'), ('threshold', '0.5')], 0.75, 4)
        """
        return table_of(self)

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

    def _for_all(self, what: str) -> None:
        if self.apart:
            raise SpecError(f"points whose groups have thresholds of their own have no {what}; see with_intervals")

    def _intervals(
        self, given: Confidences, model: str, thresholds: np.ndarray, objective: Objective, confidence: float
    ) -> IntervalEnds:
        if objective.of_confidences:
            return objective.of_model_with_interval(given, model, confidence, self.undefined)
        counted = given.counted(model, objective.by, thresholds, self.apart, crossed=True)
        found = [objective.with_interval(counts, confidence, self.undefined, crossed) for _, counts, crossed in counted]
        return IntervalEnds(*map(np.concatenate, zip(*found, strict=True)))

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


def _printable(text: str) -> str:
    """Text that can do nothing to a terminal."""
    return text if text.isprintable() else text.encode("unicode_escape").decode()


def _check(confidence: float, replicates: int = 1, seed: int = 0) -> None:
    check_confidence("intervals", confidence)
    whole("replicates", replicates, 1, f"{REPLICATES:,}")
    whole("seed", seed, 0, "0")


_AS_ZERO: Final = "rests on rates without rows, taken for 0"
_OF_ZEROS: Final = "rests on rates without rows or a ratio of zeros, taken for 0"
_LIMIT: Final = "'equalized_odds difference by sex <= 0.05'"
_MOST_BANDED: Final = 1000
_MOST_RESAMPLED: Final = {2: 500, 3: 120}
_MOST_RESAMPLED_ELSE: Final = 48
