"""What requests cost: counted where they are made, summed by whoever encloses them with `spending`."""

import math
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from decimal import Decimal
from numbers import Integral, Real
from typing import Any, Final

from evaluand.core.errors import DataError, kind_of


@dataclass
class Spending:
    """What requests have cost, in total or for one judgement.

    Attributes:
        n_requests: requests made, including retries.
        n_failed: requests without a reply.
        n_known: replies from the cache, or from the same request of another caller.
        input_tokens: tokens read; `output_tokens`: tokens written.
        cost: by currency; costs without a currency are under `""`.
    """

    n_requests: int = 0
    n_failed: int = 0
    n_known: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost: dict[str, float] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False, compare=False)

    @property
    def usage(self) -> dict[str, Any] | None:
        """The value for the column `usage` of a table; None if no request was made.

        Costs in several currencies cannot be summed, and are left out.
        """
        if not self.n_requests:
            return None
        counts = {"input_tokens": self.input_tokens, "output_tokens": self.output_tokens}
        usage: dict[str, Any] = {name: count for name, count in counts.items() if count}  # 0: not reported
        if len(self.cost) == 1:
            ((currency, cost),) = self.cost.items()
            usage |= {"cost": cost, "currency": currency or None}
        return usage

    def add(self, *, requests: int = 0, failed: int = 0, known: int = 0, usage: Mapping[str, Any] = {}) -> None:
        """Adds amounts; the costs of a usage go to its currency."""
        with self._lock:
            self.n_requests += requests
            self.n_failed += failed
            self.n_known += known
            self.input_tokens += usage.get("input_tokens", 0)
            self.output_tokens += usage.get("output_tokens", 0)
            if "cost" in usage:
                currency = usage.get("currency", "")
                self.cost[currency] = self.cost.get(currency, 0.0) + usage["cost"]


@contextmanager
def spending(spent: Spending | None = None) -> Iterator[Spending]:
    """Records what all providers spend within the block, in its thread or task.

    Args:
        spent: the record to add to; a new one by default.

    Example:
        >>> with spending() as spent:
        ...     pass
        >>> spent.n_requests, spent.usage
        (0, None)
    """
    spent = Spending() if spent is None else spent
    token = _active.set((*_active.get(), spent))
    try:
        yield spent
    finally:
        _active.reset(token)


def count(*totals: Spending, **amounts: Any) -> None:
    """Adds amounts to the records of the current `spending` blocks, and to `totals`.

    Args:
        amounts: as `Spending.add` takes them.
    """
    for spent in (*totals, *_active.get()):
        spent.add(**amounts)


def read_usage(usage: Any) -> dict[str, Any]:
    """The entries of a usage that are summed; a DataError names an invalid one."""
    if not isinstance(usage, Mapping):
        raise DataError(f"it is {kind_of(usage)}, not an object")
    reported = [(name, kind, read) for name, kind, read in _USAGE if usage.get(name) is not None]
    entries = {name: read(usage[name]) for name, _, read in reported}
    for name, kind, _ in reported:
        if entries[name] is None:
            raise DataError(f"{name} is {usage[name]!r}, not {kind}")
    return entries


def _read_count(value: Any) -> int | None:
    if isinstance(value, bool) or not isinstance(value, Integral):
        return None
    return int(value) if int(value) >= 0 else None


def _read_amount(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, Real | Decimal):
        return None
    return float(value) if 0 <= float(value) < math.inf else None


def _read_text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


_USAGE: Final[Sequence[tuple[str, str, Callable[[Any], Any]]]] = (
    ("input_tokens", "an integer of at least 0", _read_count),
    ("output_tokens", "an integer of at least 0", _read_count),
    ("cost", "a number of at least 0", _read_amount),
    ("currency", "a text", _read_text),
)


_active: ContextVar[tuple[Spending, ...]] = ContextVar("_active", default=())
