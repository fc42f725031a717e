"""Forecasts of numbers: a point, quantiles or samples, with the scale of the series where it is known."""

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal

from evaluand.core.errors import DataError, SpecError, described
from evaluand.core.parameters import Text, Within
from evaluand.core.selector import Selector
from evaluand.evaluation.scorer import NO_ANSWER, NOTHING_EXPECTED, Score, Scorer
from evaluand.metrics.forecasts import seasonal_naive_scale

Point = Literal["median", "mean"]


@dataclass(frozen=True, kw_only=True)
class Forecast(Scorer):
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
    def columns(self) -> Mapping[str, str]:
        points = dict.fromkeys(("truth", "prediction", "scale"), "double")
        return {**points, **dict.fromkeys(("samples", "levels", "quantiles"), "numbers"), "weight": "double"}

    @property
    def readable(self) -> tuple[str, ...]:
        return tuple(self.columns)

    @property
    def arguments(self) -> tuple[str, ...]:
        known = ("output", "expected", "weight")
        return known if self.scale is None and self.history is None else (*known, "example")

    def score(self, output: Any, expected: Any, weight: float | None = None, example: Any = None) -> Score:
        """The columns of one forecast; a DataError names what is no number, level or sample."""
        if expected is None:
            return NOTHING_EXPECTED
        truth = _number("truth", expected)
        if output is None:
            return NO_ANSWER._replace(columns={"truth": truth})
        columns = {"truth": truth, **self._distribution(output), "scale": self._scale(example)}
        columns["weight"] = None if weight is None else _number("weight", weight)
        return Score(columns=columns)

    def unanswered(self, expected: Any) -> Mapping[str, Any] | None:
        return None if expected is None else {"truth": _number("truth", expected)}

    def check(self, expected: Any, outputs: Sequence[Any] = ()) -> None:
        _number("truth", expected)
        for output in outputs:
            if output is not None:
                self._distribution(output)

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
            point: float | None = _number("prediction", stated)
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
            scale = _number("scale", found)
            if scale < 0:
                raise DataError(f"the scale is {scale:g}; a scale is 0 or more")
            return scale
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
        found[level] = _number(f"quantile {text}", value)
    return dict(sorted(found.items()))


def _numbers(name: str, values: Any) -> list[float]:
    if not isinstance(values, list | tuple) or not values:
        raise DataError(f"{name} are {described(values)}, not a list of numbers")
    return [_number(name, value) for value in values]


def _number(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise DataError(f"{name}: {described(value)} is not a number")
    try:
        number = float(value)
    except OverflowError:
        raise DataError(f"{name}: {described(value)} is too large for a number of 64 bits") from None
    if not math.isfinite(number):
        raise DataError(f"{name}: {number} is not a finite number")
    return number
