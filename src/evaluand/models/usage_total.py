"""The total usage of many calls or judgements: the sum of a column `usage`, and how it is shown."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, Self

from evaluand.core.errors import plural

if TYPE_CHECKING:
    from evaluand.models.prices import Price

_COUNTS: Final = (
    *("requests", "failed", "cached", "input_tokens", "output_tokens"),
    *("cached_input_tokens", "stored_input_tokens", "reasoning_tokens"),
)


@dataclass
class UsageTotal:
    """The sum of the usages of rows; unknown tokens and costs are counted, and costs in two currencies never added.

    Attributes:
        rows: how many rows have a usage.
        requests: requests made, of which `failed` had no reply; `cached` replies needed none.
        input_tokens: of the rows whose tokens are known, with `cached_input_tokens` and `stored_input_tokens`;
            `output_tokens` likewise, with `reasoning_tokens`.
        without_tokens: rows whose tokens are unknown.
        without_cost: rows whose cost is unknown.
        cost: of the others, by currency; costs without a currency are under `""`.
        is_priced_later: whether the price became known after the requests were made.

    Example:
        >>> total = UsageTotal()
        >>> total.add({"requests": 1, "input_tokens": 1200, "output_tokens": 30, "cost": 0.25, "currency": "EUR"})
        >>> total.add({"requests": 2, "failed": 1, "input_tokens": 900, "output_tokens": 20})
        >>> str(total)
        '3 requests, 1 failed, 2,100 input tokens, 50 output tokens, cost 0.25 EUR and unknown for 1 of 2 rows'
    """

    rows: int = 0
    requests: int = 0
    failed: int = 0
    cached: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cached_input_tokens: int = 0
    stored_input_tokens: int = 0
    reasoning_tokens: int = 0
    without_tokens: int = 0
    without_cost: int = 0
    cost: dict[str, float] = field(default_factory=dict)
    is_priced_later: bool = False

    @classmethod
    def read(cls, stored: Any) -> Self:
        """The inverse of `to_dict`; values that are not numbers count as 0."""
        known = stored if isinstance(stored, Mapping) else {}
        costs = known.get("cost") if isinstance(known.get("cost"), Mapping) else {}
        parts: dict[str, Any] = {name: int(_number(known.get(name)) or 0) for name in (*_COUNTS, *_ROWS)}
        parts["is_priced_later"] = known.get("is_priced_later") is True
        return cls(**parts, cost={str(each): _number(cost) or 0.0 for each, cost in (costs or {}).items()})

    def to_dict(self) -> dict[str, Any]:
        """As JSON data."""
        later = {"is_priced_later": True} if self.is_priced_later else {}
        counts = {name: getattr(self, name) for name in (*_COUNTS, *_ROWS)}
        return counts | {"cost": dict(sorted(self.cost.items()))} | later

    def add(self, usage: Any) -> None:
        """Adds the usage of a row; a row without one is not counted.

        Args:
            usage: as in the column `usage`. Values that are not numbers count as unknown; files of others may have any.
        """
        if not isinstance(usage, Mapping):
            return
        counts = {name: _number(usage.get(name)) for name in _COUNTS}
        self.rows += 1
        for name, number in counts.items():
            setattr(self, name, getattr(self, name) + int(number or 0))
        requests, failed, _, read, written, *_ = counts.values()
        has_reply = requests is None or requests > (failed or 0)  # where requests are not counted, something was used
        self.without_tokens += has_reply and read is None and written is None
        costs = costs_of(usage)
        self.without_cost += has_reply and not costs
        for currency, cost in costs.items():
            self.cost[currency] = self.cost.get(currency, 0.0) + cost

    def merge(self, other: UsageTotal) -> None:
        """Adds another total."""
        for name in (*_COUNTS, *_ROWS):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        for currency, cost in other.cost.items():
            self.cost[currency] = self.cost.get(currency, 0.0) + cost

    def without(self, part: UsageTotal) -> UsageTotal:
        """This total without that of some of its rows.

        Example:
            >>> whole, part = UsageTotal(), UsageTotal()
            >>> for total in (whole, whole, part):
            ...     total.add({"requests": 1, "cost": 0.1, "currency": "EUR"})
            >>> str(whole.without(part))
            '1 request, tokens unknown for 1 of 1 row, cost 0.10 EUR'
        """
        rest = type(self)(**{name: getattr(self, name) - getattr(part, name) for name in (*_COUNTS, *_ROWS)})
        rest.is_priced_later = self.is_priced_later
        if rest:
            for currency, cost in self.cost.items():
                less = part.cost.get(currency, 0.0)
                rest.cost[currency] = 0.0 if math.isclose(cost, less, rel_tol=1e-9) else max(cost - less, 0.0)
        return rest

    def priced(self, price: Price | None) -> UsageTotal:
        """This total at a price that became known later; itself if a cost or no tokens are known.

        Example:
            >>> from evaluand.models.prices import Price
            >>> total = UsageTotal()
            >>> total.add({"requests": 1, "input_tokens": 1000, "output_tokens": 200})
            >>> total.priced(Price(input=0.25, output=2.00)).cost
            {'USD': 0.00065}
        """
        if price is None or self.cost or self.without_tokens or not self.without_cost:
            return self
        cached = {"cached_tokens": self.cached_input_tokens, "stored_tokens": self.stored_input_tokens}
        cost = price.cost(self.input_tokens, self.output_tokens, **cached)
        return replace(self, cost={price.currency: cost}, without_cost=0, is_priced_later=True)

    def describe(self, row: str = "row") -> str:
        """The total in one line; `row` is the word for what was counted."""
        counts = (
            (plural(self.requests, "request"), self.requests, 0, ""),
            (f"{self.failed:,} failed", self.failed, 0, ""),
            (plural(self.input_tokens, "input token"), self.input_tokens, self.cached_input_tokens, "cached"),
            (plural(self.output_tokens, "output token"), self.output_tokens, self.reasoning_tokens, "reasoning"),
        )
        parts = [text + (f" ({part:,} {word})" if part else "") for text, n, part, word in counts if n]
        if self.cached:
            parts.append(f"{plural(self.cached, 'reply', 'replies')} from the cache")
        if self.without_tokens:
            parts.append(f"tokens unknown for {self._share(self.without_tokens, row)}")
        if cost := self.describe_cost(row):
            parts.append(f"cost {cost}")
        return ", ".join(parts) or "nothing used"

    def describe_cost(self, row: str = "row") -> str:
        """The cost by currency, with the number of rows whose cost is unknown; empty if no request was made."""
        parts = [cost + " by a later price" * self.is_priced_later for cost in self.costs()]
        if self.without_cost:
            is_known = bool(self.cost) or self.without_cost < self.rows
            parts.append(f"unknown for {self._share(self.without_cost, row)}" if is_known else "unknown")
        return " and ".join(parts)

    def costs(self) -> list[str]:
        """The cost in each currency, as texts."""
        return [cost_text(cost, currency) for currency, cost in sorted(self.cost.items())]

    def __str__(self) -> str:
        return self.describe()

    def __bool__(self) -> bool:
        return self.rows > 0

    def _share(self, n: int, row: str) -> str:
        return f"{n:,} of {plural(self.rows, row)}"


class RowUsage:
    """The usage of the rows of a journal: of all of them, and of those that are not among some earlier ones.

    Args:
        earlier: the slots of the earlier rows in ascending order, which were reused or made before.

    Attributes:
        total: of all rows.
    """

    def __init__(self, earlier: Iterable[int] = ()) -> None:
        self.total, self._later = UsageTotal(), UsageTotal()
        self._is_earlier = bytearray()  # by slot, as there may be millions; empty if there are none
        for slot in earlier:
            self._is_earlier.extend(bytes(slot - len(self._is_earlier)) + b"")

    def add(self, slot: int, usage: Any) -> None:
        """Adds the usage of a row, as `UsageTotal.add` does."""
        if usage:
            self.total.add(usage)
            if self._is_earlier and (slot >= len(self._is_earlier) or not self._is_earlier[slot]):
                self._later.add(usage)

    @property
    def made_now(self) -> UsageTotal:
        """The total of those that are not among the earlier ones."""
        return self._later if self._is_earlier else self.total


_ROWS: Final = ("rows", "without_tokens", "without_cost")


def usage_text(usage: Mapping[str, Any]) -> str:
    """The usage of one row, in one line.

    Example:
        >>> usage_text({"requests": 1, "input_tokens": 120, "output_tokens": 30, "model": "gpt-5-mini"})
        '1 request, 120 input tokens, 30 output tokens, cost unknown, by gpt-5-mini'
    """
    total = UsageTotal()
    total.add(usage)
    return str(total) + (f", by {usage['model']}" if isinstance(usage.get("model"), str) else "")


def costs_of(usage: Mapping[str, Any]) -> dict[str, float]:
    """The costs of a row by currency; empty if they are unknown.

    Example:
        >>> costs_of({"costs": [{"cost": 1.0, "currency": "EUR"}, {"cost": 2.0, "currency": "USD"}]})
        {'EUR': 1.0, 'USD': 2.0}
    """
    listed = usage.get("costs")
    entries = [usage] if not isinstance(listed, list) else [each for each in listed if isinstance(each, Mapping)]
    costs: dict[str, float] = {}
    for entry in entries:
        if (cost := _number(entry.get("cost"))) is not None:
            currency = str(entry.get("currency") or "")
            costs[currency] = costs.get(currency, 0.0) + cost
    return costs


def cost_text(cost: float, currency: str) -> str:
    """A cost for people, with at least two significant digits.

    Example:
        >>> cost_text(0.000123, "USD"), cost_text(1234.5, "EUR"), cost_text(0.0, "USD")
        ('0.00012 USD', '1,234.50 EUR', '0 USD')
    """
    decimals = 2 if cost >= 0.1 else 1 - math.floor(math.log10(cost)) if cost > 0 else 0
    return f"{cost:,.{decimals}f} {currency}".rstrip()


def _number(value: Any) -> float | None:
    is_number = type(value) is int or (isinstance(value, int | float) and not isinstance(value, bool))
    return value if is_number and 0 <= value < _MOST else None


_MOST: Final = 2**63
