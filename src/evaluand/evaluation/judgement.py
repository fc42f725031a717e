"""What a method of a provider returns: a number with the reason for it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from numbers import Real
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin


class _Pair(NamedTuple):
    value: float | None
    meta: Mapping[str, Any]


class Judgement(NDArrayOperatorsMixin, _Pair):
    """The result of a method of a provider: a pair of a value and its metadata, which also computes as the value.

    `judged > 0.5`, `float(judged)`, `sum(...)` and `numpy.mean([...])` use the value. An undefined one computes as NaN,
    so that it is neither above nor below a threshold, and is false.

    Attributes:
        value: from 0 to 1 unless the method documents another range; None if undefined.
        meta: at least the `reason`, and the details behind it.

    Example:
        >>> judged = Judgement(0.75, {"reason": "three of four"})
        >>> judged > 0.5, float(judged), f"{judged:.0%}", judged.reason
        (True, 0.75, '75%', 'three of four')
        >>> value, meta = judged
        >>> missing = Judgement.undefined("no text")
        >>> missing > 0.5, missing <= 0.5, bool(missing)
        (False, False, False)
    """

    __slots__ = ()

    @classmethod
    def undefined(cls, reason: str) -> Self:
        """A judgement without a value, with the reason: shown and counted, never averaged as zero."""
        return cls(None, {"reason": reason})

    @property
    def reason(self) -> str:
        return str(self.meta["reason"])

    def __float__(self) -> float:
        return math.nan if self.value is None else float(self.value)

    def __int__(self) -> int:
        return int(float(self))

    def __bool__(self) -> bool:
        return bool(self.value)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return np.asarray(float(self), dtype)

    def __format__(self, spec: str) -> str:
        return format(float(self), spec) if spec else str(self)

    def __eq__(self, other: object) -> bool:
        return float(self) == other if isinstance(other, Real) else tuple.__eq__(self, other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(float(self))

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        numbers = [float(given) if isinstance(given, Judgement) else given for given in inputs]
        result = getattr(ufunc, method)(*numbers, **options)
        return result.item() if isinstance(result, np.generic) else result

    def __round__(self, digits: int | None = None) -> float:
        return round(float(self), digits)
