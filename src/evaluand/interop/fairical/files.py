"""`Scores` and `Solutions`: score and solution files under fairical's names."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar, Final, Literal, Self

import numpy as np

from evaluand.core.errors import DataError, Fault, SpecError
from evaluand.core.files.json import Findings, Node, read_json, without_infinities
from evaluand.tradeoff.arguments import check_type
from evaluand.tradeoff.confidences import Confidences, Thresholds
from evaluand.tradeoff.files.metrics import parse_metrics
from evaluand.tradeoff.files.reading import JsonFile
from evaluand.tradeoff.files.scores import TRUTH, ScoreFile
from evaluand.tradeoff.files.solutions import FROM, NAMES, OF_MODELS, THRESHOLDS, SolutionFile
from evaluand.tradeoff.points import Tradeoff, solve


def _list_of(items: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": items}


def _or_path(value: Mapping[str, Any]) -> dict[str, Any]:
    return {"anyOf": [value, {"type": "string", "format": "path"}]}


class _Model(JsonFile):
    """The methods of pydantic's models, as which fairical has its files."""

    json_schema: ClassVar[Mapping[str, Any]]

    @classmethod
    def model_validate(cls, obj: Any, *, context: Mapping[str, Any] | None = None) -> Self:
        """The content of a JSON object.

        Args:
            context: `base_dir` is the folder of other files that it names; by default the current one.

        Raises:
            DataError: a field is missing or invalid.
        """
        if isinstance(obj, cls):
            return obj
        document = Node.root(obj, Findings(), f"the {cls.format} file").value
        return cls.from_dict(cls.with_parts(document, Path((context or {}).get("base_dir", "."))))

    @classmethod
    def model_validate_json(cls, json_data: str | bytes, *, context: Mapping[str, Any] | None = None) -> Self:
        """The content of a JSON text; see `model_validate`."""
        text = json_data.decode() if isinstance(json_data, bytes) else json_data
        return cls.model_validate(read_json(io.StringIO(text), extended=True), context=context)

    def model_dump(self, *, by_alias: bool = False) -> dict[str, Any]:
        """The fields, under the names of attributes, or with `by_alias` under those of the file."""
        return {name if by_alias else name.replace("-", "_"): value for name, value in self.to_dict().items()}

    def model_dump_json(self, *, indent: int | None = None, by_alias: bool = False) -> str:
        """The same as JSON text; infinite numbers are the text "Infinity"."""
        return json.dumps(without_infinities(self.model_dump(by_alias=by_alias)), indent=indent, ensure_ascii=False)

    @classmethod
    def model_json_schema(cls) -> dict[str, Any]:
        """The JSON Schema of the file."""
        return {"title": cls.__name__, "type": "object", "required": [*cls.required], "properties": {**cls.json_schema}}


@dataclass(frozen=True)
class Solutions(_Model, SolutionFile, Mapping[str, list[float]]):
    """Points of a system by several metrics; a mapping from metric to values, and an array of points × metrics.

    Fields and errors as of `SolutionFile`. An undefined value is 0, and the metadata list which values are undefined.

    Example:
        >>> points = {"acc": [0.65, 0.0], "eod+race": [0.1, 1.0]}
        >>> found = Solutions(points, {"identifier-names": ["tree"], "identifiers": [0, 0], "thresholds": [0.1, 0.2]})
        >>> front, dominated = found.non_dominated_solutions()
        >>> front["acc"], dominated["acc"], round(front.indicators()["hv"], 3)
        ([0.65], [0.0], 0.585)
    """

    json_schema = MappingProxyType(
        {
            "points": {"type": "object", "additionalProperties": _list_of({"type": "number"})},
            "metadata": {"type": "object"},
        }
    )

    @classmethod
    def fromarray(
        cls,
        points: Any,
        metrics: Sequence[str],
        thresholds: Sequence[float],
        identifiers: Sequence[int] | None = None,
        identifier_names: Sequence[str] | None = None,
    ) -> Solutions:
        """Solutions from an array of points × metrics, such as `numpy.asarray` of solutions.

        Args:
            points: an array or a list of lists.
            metrics: the metrics of its columns.
            thresholds: of each point.
            identifiers: the position of each point's model among the names; the first by default.
            identifier_names: the names of the models.

        Raises:
            DataError: these do not fit together.
            SpecError: there is no such metric, or one occurs twice.

        Example:
            >>> found = Solutions.fromarray([[0.65, 0.1], [0.7, 0.3]], ["acc", "eod+race"], [0.1, 0.2])
            >>> found["acc"], Solutions.fromarray(np.asarray(found), list(found), [0.1, 0.2]) == found
            ([0.65, 0.7], True)
        """
        names = [one.name for one in parse_metrics(metrics)]
        try:
            array = np.asarray(points, np.float64)
        except (TypeError, ValueError):
            raise DataError(Fault("points", f"must be numbers: an array of points × {len(names)} metrics")) from None
        if array.ndim != 2 or array.shape[1] != len(names):
            actual = " × ".join(map(str, array.shape)) or "a number"
            hint = "; give its transpose" if array.ndim == 2 and len(array) == len(names) else ""
            message = f"must be an array of points × {len(names)} metrics and is {actual}{hint}"
            raise DataError(Fault("points", message))
        metadata: dict[str, Any] = {
            THRESHOLDS: thresholds,
            OF_MODELS: [0] * len(array) if identifiers is None else identifiers,
        }
        metadata |= {} if identifier_names is None else {NAMES: identifier_names}
        return cls(dict(zip(names, array.T.tolist(), strict=True)), metadata)

    def __getitem__(self, key: str) -> list[float]:
        return self.points[key]

    def __len__(self) -> int:
        """The number of metrics."""
        return len(self.points)

    def __iter__(self) -> Iterator[str]:
        return iter(self.points)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        """Points × metrics."""
        return np.array(list(self.points.values()), dtype or np.float64).T

    def n_metrics(self) -> int:
        """The number of metrics."""
        return len(self.points)

    def n_solutions(self) -> int:
        """The number of points."""
        return self.n_points

    def tabulate(self) -> str:
        """A table of the points: their values, their thresholds and the models that they are of."""
        names, models = self.metadata[NAMES], self.metadata[OF_MODELS]
        columns = {**self.points, "thresholds": self.metadata.get(THRESHOLDS, [None] * len(models))}
        texts = {
            name: [name, *(f"{value:g}" if value is not None else "" for value in columns[name])] for name in columns
        }
        texts["identifiers"] = ["identifiers", *(names[model] for model in models)]
        widths = [max(map(len, column)) for column in texts.values()]
        header, *rows = zip(*texts.values(), strict=True)
        lines = [header, tuple("-" * width for width in widths), *rows]
        return "\n".join("  ".join(map(str.ljust, line, widths)).rstrip() for line in lines)

    def deduplicate(self, eps: float = 1e-6) -> Solutions:
        """The first of all points with equal values; an undefined value never equals a defined one."""
        return self.deduplicated(eps)

    def non_dominated_solutions(self) -> tuple[Solutions, Solutions]:
        """The points that no other dominates, and the others."""
        return self.front(), self.dominated()

    def indicators(self) -> dict[Literal["hv", "ud", "os", "as", "onvg", "onvgr"], float]:
        """Indicators of the front: see `Tradeoff.indicators`.

        Raises:
            SpecError: there are no points, or there is only one metric.
        """
        if not self.n_points:
            raise SpecError("there are no points, so there are no indicators")
        return self.tradeoff.indicators()  # type: ignore[return-value]


_OF_SCORES: Final = frozenset({"prec", "rec", "avg_prec", "f1"})
"""Utilities whose default thresholds are all finite scores, not the corners of the ROC curve."""


@dataclass(frozen=True)
class Scores(_Model, ScoreFile):
    """Scores of one or several models on the same samples; fields and errors as of `ScoreFile`.

    Example:
        >>> scores = Scores([[0.2, 0.7, 0.6, 0.9]], [0, 1, 0, 1], {"sex": ["f", "f", "m", "m"]})
        >>> scores.identifiers
        ['model-1']
        >>> scores.solutions_a_posteriori(["acc", "eod+sex"], [0.5, 0.65])["acc"]
        [0.75, 1.0]
    """

    json_schema = MappingProxyType(
        {
            "scores": _list_of(_or_path(_list_of({"type": "number", "minimum": 0, "maximum": 1}))),
            "identifiers": _list_of({"type": "string"}),
            TRUTH: _or_path(_list_of({"enum": [0, 1]})),
            "attributes": _or_path(
                {
                    "type": "object",
                    "additionalProperties": _list_of(
                        {"anyOf": [{"type": "string"}, {"type": "integer", "minimum": 0}]}
                    ),
                }
            ),
        }
    )

    def solutions_a_posteriori(
        self, metrics: Sequence[str], thresholds: Thresholds | int | Sequence[float] | None = None
    ) -> Solutions:
        """The points of all models at thresholds that come from these scores.

        Args:
            metrics: such as `acc`, `eod+race`, `minmaxd+f1+race`.
            thresholds: `every`, `roc`, a number of them, or a list (see `Confidences.thresholds`). None for those of
                fairical: the corners of the ROC curve; but all scores, without the infinite threshold, if one of
                `prec`, `rec`, `avg_prec` and `f1` is among the metrics, so that more thresholds may give a smaller
                hypervolume.

        Raises:
            SpecError: there is no such metric or attribute.
        """
        if thresholds is None:
            return Solutions.of_points(_solve_by_default(self.confidences, metrics))
        return Solutions.a_posteriori(self.confidences, metrics, thresholds)

    def solutions_a_priori(
        self,
        metrics: Sequence[str],
        prior_solutions: Solutions,
        dominated: bool | None = None,
        *,
        nds_from: str | None = None,
    ) -> Solutions:
        """The points of these scores at the models and thresholds of an earlier solution.

        Args:
            metrics: such as `acc` and `eod+race`; those of the earlier solution may be others.
            prior_solutions: the earlier one; its models are matched by name.
            dominated: use only its dominated points, or only the others; None for all.
            nds_from: the name of the system that the thresholds come from; by default that of the earlier solution.

        Raises:
            SpecError: there is no such metric or attribute, or a model of the earlier solution has no scores.
        """
        earlier = check_type("prior_solutions", prior_solutions, Solutions, "load a file by Solutions.load")
        found = Solutions.a_priori(self.confidences, metrics, earlier, dominated)
        return found if nds_from is None else replace(found, metadata={**found.metadata, FROM: nds_from})


def _solve_by_default(confidences: Confidences, metrics: Sequence[str]) -> Tradeoff:
    """The points at fairical's default thresholds."""
    objectives = parse_metrics(metrics)
    if not any(one.name in _OF_SCORES for one in objectives):
        return solve(confidences, objectives, "roc", "zero")
    points = solve(confidences, objectives, "every", "zero")
    order = np.lexsort((points.threshold, points.model))
    return points.take(order[np.isfinite(points.threshold[order])])
