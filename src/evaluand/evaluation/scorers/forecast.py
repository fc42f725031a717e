"""Forecasts of numbers: a point, quantiles or samples, with the scale of the series where it is known."""

import math
import statistics
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Final, Literal

from evaluand.core.errors import DataError, SpecError, described
from evaluand.core.parameters import Text, Within
from evaluand.core.selector import Selector
from evaluand.evaluation.scorer import NO_ANSWER, ExpectationScorer, Score, read_number
from evaluand.metrics.forecasts import seasonal_naive_scale

Point = Literal["median", "mean"]


@dataclass(frozen=True, kw_only=True)
class Forecast(ExpectationScorer):
    """Columns `truth`, `prediction`, `scale`, `samples`, `levels` and `quantiles` for metrics of forecasts.

    The output is a number, a list of samples, or an object with a `prediction`, `samples` and `quantiles`, an object
    level → number such as `{"0.1": 3, "0.9": 8}`; each may be missing. Without a `prediction` the point is the quantile
    of level 0.5, else the median or mean of the samples. There is no value, since numbers are hardly ever equal.

    Abstains where nothing is expected and where there is no answer.

    Attributes:
        scale: path in the example of the scale of its series, such as `metadata.scale`.
        history: path in the example of the values of its series before the forecast, from which the scale is computed
            as the error of the seasonal naive forecast, such as `input.history`.
        season: the number of steps of a season, for `history`; 1 without seasons.
        point: the point forecast of samples, `median` or `mean`.

    Raises:
        SpecError: both scale and history are set, or a setting is invalid.

    Example:
        >>> columns = Forecast().score({"quantiles": {"0.1": 3, "0.5": 5, "0.9": 8}}, 4, None).columns
        >>> columns["prediction"], columns["levels"], columns["quantiles"]
        (5.0, [0.1, 0.5, 0.9], [3.0, 5.0, 8.0])
    """

    kind = "forecast"
    version = 1
    cheap = True
    by_target = True
    columns: ClassVar = {
        **dict.fromkeys(("truth", "prediction", "scale"), "double"),
        **dict.fromkeys(("samples", "levels", "quantiles"), "numbers"),
        "weight": "double",
    }
    readable = tuple(columns)

    scale: Text | None = None
    history: Text | None = None
    season: Annotated[int, Within(1)] = 1
    point: Point = "median"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.scale is not None and self.history is not None:
            raise SpecError("forecast: set scale or history, not both")
        if self.season != 1 and self.history is None:
            raise SpecError("forecast: season needs history, the values before the forecast")
        for path in (self.scale, self.history):
            if path is not None:
                Selector(path)

    @property
    def arguments(self) -> tuple[str, ...]:
        known = ("output", "expected", "weight")
        return known if self.scale is None and self.history is None else (*known, "example")

    def grade(self, output: Any, truth: float, *others: Any) -> Score:
        """The columns of one forecast."""
        if output is None:
            return self.abstained(NO_ANSWER.reason, truth)
        weight, example = (*others, None, None)[:2]
        columns = {"truth": truth, **self._distribution(output), "scale": self._scale(example)}
        return Score(columns=columns | {"weight": None if weight is None else read_number("the weight", weight)})

    def read_expected(self, expected: Any) -> float:
        return read_number("the truth", expected)

    def columns_of(self, truth: float) -> Mapping[str, Any]:
        return {"truth": truth}

    def _distribution(self, output: Any) -> dict[str, Any]:
        """The point, samples and quantiles of an output."""
        fields: Mapping[str, Any] = output if isinstance(output, Mapping) else {}
        if isinstance(output, list | tuple):
            fields = {"samples": output}
        elif not isinstance(output, Mapping):
            fields = {"prediction": output}
        elif not any(fields.get(name) is not None for name in _PARTS):
            raise DataError("the forecast is an object without 'prediction', 'samples' or 'quantiles'; give one")
        samples = None if fields.get("samples") is None else _numbers("samples", fields["samples"])
        by_level = _quantiles(fields.get("quantiles"))
        stated = fields.get("prediction")
        if stated is not None:
            point: float | None = read_number("the prediction", stated)
        elif 0.5 in by_level:
            point = by_level[0.5]
        else:
            point = None if samples is None else getattr(statistics, self.point)(samples)
        levels, quantiles = (list(by_level), list(by_level.values())) if by_level else (None, None)
        return {"prediction": point, "samples": samples, "levels": levels, "quantiles": quantiles}

    def _scale(self, example: Any) -> float | None:
        path = self.scale or self.history
        if path is None or example is None:
            return None
        parts = {name: getattr(example, name) for name in ("input", "expected", "metadata", "attributes")}
        found = next(iter(Selector(path).find(parts)), None)
        if found is None:
            raise DataError(f"the example has nothing at {path!r}; name a path such as 'metadata.scale'")
        if self.scale is not None:
            return read_number("the scale", found, 0)
        scale = seasonal_naive_scale(_numbers("history", found), self.season)
        return None if math.isnan(scale) else scale


_PARTS: Final = ("prediction", "samples", "quantiles")


def _quantiles(values: Any) -> dict[float, float]:
    """Quantiles by level, lowest first."""
    if values is None:
        return {}
    if not isinstance(values, Mapping) or not values:
        raise DataError(f"quantiles are {described(values)}, not an object level → number")
    found: dict[float, float] = {}
    for text, value in values.items():
        try:
            level = float(text)
        except (TypeError, ValueError):
            level = math.nan
        if not 0 < level < 1:
            raise DataError(f"the quantiles have the level {text!r}; levels lie between 0 and 1")
        if level in found:
            raise DataError(f"the quantiles have the level {level:g} twice")
        found[level] = read_number(f"quantile {text}", value)
    return dict(sorted(found.items()))


def _numbers(name: str, values: Any) -> list[float]:
    if not isinstance(values, list | tuple) or not values:
        raise DataError(f"{name} are {described(values)}, not a list of numbers")
    return [read_number(f"one of the {name}", value) for value in values]
