"""`Solutions`: operating points of a system with what they are worth, and where they come from."""

from __future__ import annotations

from collections.abc import ItemsView, Iterator, KeysView, Mapping, Sequence, ValuesView
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import IO, Any, Final, Literal

import numpy as np

from evaluand.core.errors import DataError, Fault, SpecError, kind_of
from evaluand.core.registry import nearest
from evaluand.interop.fairical.names import objectives
from evaluand.interop.fairical.reading import (
    SYSTEM,
    Source,
    Target,
    as_text,
    content,
    doubt,
    load,
    numbers,
    plain,
    put,
    save,
    shown,
    unique_names,
)
from evaluand.tradeoff import Confidences, Objective, Tradeoff
from evaluand.tradeoff.arguments import made
from evaluand.tradeoff.front import non_dominated

NAMES: Final = "identifier-names"
OF_MODELS: Final = "identifiers"
THRESHOLDS: Final = "thresholds"
FROM: Final = "nds-from"
UNDEFINED: Final = "undefined"
TRIVIAL: Final = "trivial"
_MISSPELT: Final = "threholds"


@dataclass(frozen=True)
class Solutions:
    """Points of a system by several metrics; a mapping from metric to values, and an array of points × metrics.

    In these files an undefined value is 0; `undefined` in the metadata tells which those are, metric → positions. They
    count as 0 in what is made of the points, as in the files' own definition; for another see `evaluand.tradeoff`.

    Args:
        points: metric → the value of each point, from 0 to 1.
        metadata: `identifier-names`, the models; `identifiers`, of each point its model, as a place among these;
            `thresholds`, of each point; `nds-from`, the system the thresholds were taken from, where these were chosen
            on another; `trivial`, the positions of points that decide alike for all rows; and whatever else is there,
            which is kept.
        system: what the points belong to; not part of the file.

    Raises:
        DataError: these do not fit; every fault by its field and position.

    Example:
        >>> points = {"acc": [0.65, 0.0], "eod+race": [0.1, 1.0]}
        >>> found = Solutions(points, {"identifier-names": ["tree"], "identifiers": [0, 0], "thresholds": [0.1, 0.2]})
        >>> front, dominated = found.non_dominated_solutions()
        >>> front["acc"], dominated["acc"], round(front.indicators()["hv"], 3)
        ([0.65], [0.0], 0.585)
    """

    points: dict[str, list[float]]
    metadata: dict[str, Any]
    system: str = field(default=SYSTEM, compare=False)

    def __post_init__(self) -> None:
        faults: list[Fault] = []
        points = _points(self.points, faults)
        metadata = _metadata(self.metadata, points, faults)
        if faults:
            raise DataError(faults)
        object.__setattr__(self, "points", points)
        object.__setattr__(self, "metadata", metadata)

    @classmethod
    def load(cls, source: Source) -> Solutions:
        """From a file, its path or open text; the system is called after the file.

        Raises:
            DataError: the file is none, or its content does not fit.
        """
        return load(source, cls.from_dict)

    @classmethod
    def from_dict(cls, document: Mapping[str, Any], system: str = SYSTEM) -> Solutions:
        """From the object of a file.

        Raises:
            DataError: a field is missing, or does not fit.
        """
        document = content(document, "the file")
        for key in document:
            if key not in ("points", "metadata"):
                doubt(f"{key} is no field of a solution file and is left out{nearest(key, ('points', 'metadata'))}")
        faults = [Fault(key, "is missing") for key in ("points", "metadata") if key not in document]
        if faults:
            raise DataError(faults)
        return cls(document["points"], document["metadata"], system)

    @classmethod
    def fromarray(
        cls,
        points: Any,
        metrics: Sequence[str],
        thresholds: Sequence[float],
        identifiers: Sequence[int] | None = None,
        identifier_names: Sequence[str] | None = None,
    ) -> Solutions:
        """From an array of points × metrics, as `numpy.asarray` makes of solutions.

        Args:
            points: an array or a list of lists.
            metrics: those of its columns.
            thresholds: of each point.
            identifiers: of each point its model, as a place among the names; the first if not given.
            identifier_names: what the models are called.

        Raises:
            DataError: these do not fit.
            SpecError: the metrics are none, or one is given twice.

        Example:
            >>> found = Solutions.fromarray([[0.65, 0.1], [0.7, 0.3]], ["acc", "eod+race"], [0.1, 0.2])
            >>> found["acc"], Solutions.fromarray(np.asarray(found), list(found), [0.1, 0.2]) == found
            ([0.65, 0.7], True)
        """
        names = [one.name for one in objectives(metrics)]
        try:
            array = np.asarray(points, np.float64)
        except (TypeError, ValueError):
            raise DataError(Fault("points", f"must be numbers: an array of points × {len(names)} metrics")) from None
        if array.ndim != 2 or array.shape[1] != len(names):
            turned = array.ndim == 2 and len(array) == len(names)
            told = f" and is {' × '.join(map(str, array.shape)) or 'a number'}" + "; give its transpose" * turned
            raise DataError(Fault("points", f"must be an array of points × {len(names)} metrics{told}"))
        given: dict[str, Any] = {
            THRESHOLDS: thresholds,
            OF_MODELS: [0] * len(array) if identifiers is None else identifiers,
        }
        given |= {} if identifier_names is None else {NAMES: identifier_names}
        return cls(dict(zip(names, array.T.tolist(), strict=True)), given)

    @classmethod
    def of_points(cls, points: Tradeoff, metadata: Mapping[str, Any] | None = None) -> Solutions:
        """From operating points whose undefined rates count as 0.

        Args:
            points: with the names of these files.
            metadata: what else to tell.
        """
        points = made("points", points, Tradeoff, "such as solve gives")
        if points.apart:
            groups = f"and these points have one for each of {len(points.apart)} groups"
            raise SpecError(f"solution files hold one threshold of each point, {groups}; keep them with to_arrow")
        if not isinstance(metadata, Mapping | None):
            raise SpecError(f"metadata must be an object and is {kind_of(metadata)}")
        undefined = _undefined_of(points)
        values = {one.name: np.nan_to_num(points.value[:, i]).tolist() for i, one in enumerate(points.objectives)}
        told = {
            OF_MODELS: points.model.tolist(),
            THRESHOLDS: points.threshold.tolist(),
            NAMES: list(points.models),
            FROM: None,
            TRIVIAL: np.flatnonzero(points.trivial).tolist(),
            **(metadata or {}),
            **({UNDEFINED: undefined} if undefined else {}),
        }
        return cls(values, told, points.system)

    def to_dict(self) -> dict[str, Any]:
        """The object of a file."""
        return {"points": self.points, "metadata": self.metadata}

    def save(self, dest: Target) -> None:
        """Writes a file, by its path or to open text; infinite thresholds are the text "Infinity"."""
        save(self.to_dict(), dest)

    def write(self, file: IO[bytes]) -> None:
        """Writes to an open file."""
        put(as_text(self.to_dict()).encode(), file, "bytes")

    def __getitem__(self, key: str) -> list[float]:
        return self.points[key]

    def __len__(self) -> int:
        """How many metrics there are."""
        return len(self.points)

    def __iter__(self) -> Iterator[str]:
        return iter(self.points)

    def keys(self) -> KeysView[str]:
        """The metrics."""
        return self.points.keys()

    def values(self) -> ValuesView[list[float]]:
        """The values of each metric."""
        return self.points.values()

    def items(self) -> ItemsView[str, list[float]]:
        """Each metric with its values."""
        return self.points.items()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        """Points × metrics."""
        return np.array(list(self.points.values()), dtype or np.float64).T

    @property
    def n_metrics(self) -> int:
        """How many metrics there are."""
        return len(self.points)

    @property
    def n_solutions(self) -> int:
        """How many points there are."""
        return len(self.metadata[OF_MODELS])

    @cached_property
    def tradeoff(self) -> Tradeoff:
        """The same as points of `evaluand.tradeoff`; of points without a threshold that is NaN.

        Where the metadata do not tell which points are trivial, those at infinite thresholds are known to be so.
        """
        wanted = objectives(list(self.points))
        value = np.asarray(self).reshape(-1, len(wanted))
        n = len(value)
        threshold = np.array(self.metadata.get(THRESHOLDS, [np.nan] * n), np.float64)
        model = np.array(self.metadata[OF_MODELS], np.int64)
        known = self.metadata.get(TRIVIAL)
        trivial = np.isinf(threshold) if known is None else np.isin(np.arange(n), known)
        return Tradeoff(
            wanted,
            tuple(self.metadata[NAMES]),
            model,
            threshold,
            value,
            trivial,
            self.system,
            undefined="zero",
            as_zero=self._undefined(),
        )

    def deduplicate(self, eps: float = 1e-6) -> Solutions:
        """The first of each points that are equal, defined and undefined ones apart."""
        return self._taken(self.tradeoff.distinct_places(eps))

    def non_dominated_solutions(self) -> tuple[Solutions, Solutions]:
        """The points that no other dominates, and those that another does."""
        kept = non_dominated(self.tradeoff.loss)
        return self._taken(np.flatnonzero(kept)), self._taken(np.flatnonzero(~kept))

    def indicators(self) -> dict[Literal["hv", "ud", "os", "as", "onvg", "onvgr"], float]:
        """What the front is worth: see `Tradeoff.indicators`.

        Raises:
            SpecError: there are no points, or there is only one metric.
        """
        if not self.n_solutions:
            raise SpecError("there are no points, and so nothing to indicate")
        return self.tradeoff.indicators()  # type: ignore[return-value]

    def pick(self, best: str, where: Sequence[str] = ()) -> Tradeoff:
        """The one point that is best within limits: see `Tradeoff.pick`.

        Points whose values are undefined by a metric that is asked for are not chosen; what is undefined of the chosen
        one by others is NaN.

        Raises:
            SpecError: there is no such metric, or no point keeps the limits or is defined.
        """
        chosen = self.tradeoff.pick(best, where)
        return replace(chosen, value=np.where(chosen.unknown, np.nan, chosen.value))

    @property
    def n_undefined(self) -> int:
        """How many points have a value that is undefined and counts as 0."""
        return int(self._undefined().any(axis=1).sum())

    def at(self, given: Confidences, wanted: Sequence[Objective]) -> Tradeoff:
        """The same models at the same thresholds on other samples.

        Raises:
            SpecError: a model has no scores there, or the points have no thresholds.
        """
        if THRESHOLDS not in self.metadata:
            raise SpecError("the earlier solution tells no thresholds, so it cannot be applied to other scores")
        blank = np.empty((self.n_solutions, len(wanted)))
        return replace(self.tradeoff, objectives=tuple(wanted), value=blank).at(given, "zero")

    def _undefined(self) -> np.ndarray:
        """Which values are undefined: points × metrics."""
        marks = np.zeros((self.n_solutions, self.n_metrics), bool)
        for column, metric in enumerate(self):
            marks[self.metadata.get(UNDEFINED, {}).get(metric, []), column] = True
        return marks

    def _taken(self, places: np.ndarray) -> Solutions:
        """Some of the points with what is told of them, and the models they use."""
        points = self.tradeoff.taken(places)
        used = np.unique(points.model)
        told = {**self.metadata, OF_MODELS: np.searchsorted(used, points.model).tolist()}
        told[NAMES] = [points.models[number] for number in used]
        if THRESHOLDS in told:
            told[THRESHOLDS] = [self.metadata[THRESHOLDS][place] for place in places]
        new = {int(old): place for place, old in enumerate(places)}
        if UNDEFINED in told:
            kept = {metric: [new[old] for old in each if old in new] for metric, each in told[UNDEFINED].items()}
            told[UNDEFINED] = {metric: each for metric, each in kept.items() if each}
        if TRIVIAL in told:
            told[TRIVIAL] = [new[old] for old in told[TRIVIAL] if old in new]
        return Solutions({name: [each[place] for place in places] for name, each in self.items()}, told, self.system)


def _points(given: Any, faults: list[Fault]) -> dict[str, list[float]]:
    if not isinstance(given, Mapping) or not given:
        faults.append(Fault("points", "must be an object with a list of values for each metric"))
        return {}
    found = {str(name): numbers(values, f"points.{name}", faults, 0.0, 1.0) for name, values in given.items()}
    try:
        objectives(list(found))
    except SpecError as fault:
        faults.append(Fault("points", str(fault)))
    first, *others = found
    faults += [
        Fault(f"points.{name}", f"has {len(found[name])} values and points.{first} has {len(found[first])}")
        for name in others
        if len(found[name]) != len(found[first])
    ]
    return found


def _metadata(given: Any, points: Mapping[str, list[float]], faults: list[Fault]) -> dict[str, Any]:
    if not isinstance(given, Mapping):
        faults.append(Fault("metadata", f"must be an object and is {kind_of(given)}"))
        return {}
    found, n = dict(given), len(next(iter(points.values()), []))
    if _MISSPELT in found:
        doubt(f"metadata.{_MISSPELT} is read as {THRESHOLDS}")
        misspelt = found.pop(_MISSPELT)
        if found.setdefault(THRESHOLDS, misspelt) != misspelt:
            faults.append(Fault(f"metadata.{_MISSPELT}", f"differs from metadata.{THRESHOLDS}; leave one of them out"))
    if THRESHOLDS in found:
        found[THRESHOLDS] = numbers(found[THRESHOLDS], f"metadata.{THRESHOLDS}", faults, -np.inf, np.inf)
    found[OF_MODELS] = _of_models(found.get(OF_MODELS), faults)
    unnamed = found.get(NAMES) is None
    models = min(n, max(found[OF_MODELS], default=-1) + 1) if unnamed else None  # no more models than points
    found[NAMES] = unique_names(found.get(NAMES), f"metadata.{NAMES}", models, faults)
    n_names = len(found[NAMES])
    there = f"there are {n} points and no {NAMES}" if unnamed else f"{NAMES} has the places 0 to {n_names - 1}"
    faults += [
        Fault(f"metadata.{OF_MODELS}[{place}]", f"is {shown(each)}, and {there}")
        for place, each in enumerate(found[OF_MODELS])
        if each >= n_names
    ]
    for key in (OF_MODELS, THRESHOLDS):
        if key in found and len(found[key]) != n:
            faults.append(Fault(f"metadata.{key}", f"has {len(found[key])} entries and there are {n} points"))
    if not isinstance(found.get(FROM), str | None):
        faults.append(Fault(f"metadata.{FROM}", f"must be the name of a system or null and is {found[FROM]!r}"))
    if TRIVIAL in found:
        found[TRIVIAL] = _positions(found[TRIVIAL], f"metadata.{TRIVIAL}", n, faults)
    if UNDEFINED in found:
        found[UNDEFINED] = _of_metrics(found[UNDEFINED], points, n, faults)
    return found


def _of_metrics(given: Any, points: Mapping[str, list[float]], n: int, faults: list[Fault]) -> dict[str, list[int]]:
    where = f"metadata.{UNDEFINED}"
    if not isinstance(given, Mapping):
        faults.append(Fault(where, f"must be an object with a list of positions by metric and is {kind_of(given)}"))
        return {}
    faults += [
        Fault(f"{where}.{name}", f"is none of the metrics; there are {', '.join(points)}")
        for name in given
        if name not in points
    ]
    return {name: _positions(each, f"{where}.{name}", n, faults) for name, each in given.items()}


def _positions(given: Any, where: str, n: int, faults: list[Fault]) -> list[int]:
    """Places of points."""
    given = plain(given)
    if not isinstance(given, list | tuple):
        faults.append(Fault(where, f"must be a list of positions and is {kind_of(given)}"))
        return []
    found = [plain(each) for each in given]
    faults += [
        Fault(f"{where}[{place}]", f"{shown(each)} is no position of a point; there are {n}, counted from 0")
        for place, each in enumerate(found)
        if isinstance(each, bool) or not isinstance(each, int) or not 0 <= each < n
    ]
    return found


def _of_models(given: Any, faults: list[Fault]) -> list[int]:
    where = f"metadata.{OF_MODELS}"
    given = plain(given)
    if not isinstance(given, list | tuple):
        faults.append(
            Fault(where, "is missing; give the place of each point's model" if given is None else "must be a list")
        )
        return []
    found = [plain(each) for each in given]
    for place, each in enumerate(found):
        if isinstance(each, bool) or not isinstance(each, int) or each < 0:
            faults.append(Fault(f"{where}[{place}]", f"{shown(each)} is no place; write an integer of 0 or more"))
    return [each if isinstance(each, int) and each >= 0 else 0 for each in found]


def _undefined_of(points: Tradeoff) -> dict[str, list[int]]:
    """Which values are undefined, or others, if rates without rows are left out: metric → positions."""
    found = {one.name: np.flatnonzero(points.unknown[:, i]).tolist() for i, one in enumerate(points.objectives)}
    return {name: places for name, places in found.items() if places}
