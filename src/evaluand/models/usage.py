"""The usage of requests: counted where they are made, and summed in enclosing blocks of `spending`."""

import math
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from decimal import Decimal
from numbers import Integral, Real
from types import TracebackType
from typing import Any, Final, Self

from evaluand.core.errors import DataError, kind_of


@dataclass
class Spending:
    """The usage of requests, in total or for one call or judgement.

    Attributes:
        n_requests: requests made, including retries.
        n_failed: requests without a reply; they count as free.
        n_known: replies from the cache, or from an equal request of another caller; they cost nothing.
        input_tokens: tokens read, of which the service knew `cached_input_tokens` from before, and keeps
            `stored_input_tokens` for later.
        output_tokens: tokens written, of which `reasoning_tokens` were reasoning.
        cost: by currency; costs without a currency are under `""`.
        n_without_tokens: replies whose tokens are unknown, `n_without_cost`: those whose cost is.
        models: the models that answered.
        seconds: the sum of the times from sending a request to its reply; these may overlap.
        refusal: the reason why a budget has refused a request, if it has.
        is_reported: whether the code of the call has reported its usage itself.
    """

    n_requests: int = 0
    n_failed: int = 0
    n_known: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cached_input_tokens: int = 0
    stored_input_tokens: int = 0
    reasoning_tokens: int = 0
    cost: dict[str, float] = field(default_factory=dict)
    n_without_tokens: int = 0
    n_without_cost: int = 0
    models: set[str] = field(default_factory=set)
    seconds: float = 0.0
    refusal: str = ""
    is_reported: bool = field(default=False, repr=False, compare=False)
    _reported: set[str] = field(default_factory=set, repr=False, compare=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False, compare=False)

    @property
    def usage(self) -> dict[str, Any] | None:
        """The value for the column `usage` of a table; None if no request was made.

        Tokens or costs that are unknown for one of the replies are left out. Costs in several currencies are not
        added, but listed in `costs`.
        """
        if not (self.n_requests or self.n_known or self.cost or self.input_tokens or self.output_tokens):
            return None
        usage: dict[str, Any] = {"requests": self.n_requests, "failed": self.n_failed, "cached": self.n_known}
        if not self.n_without_tokens:
            counts = {name: getattr(self, name) for name in _COUNTS if name in self._reported}
            usage |= {name: number for name, number in counts.items() if number < 2**63}
        costs = [{"cost": cost, "currency": currency or None} for currency, cost in sorted(self.cost.items())]
        if costs and not self.n_without_cost:
            usage |= costs[0] if len(costs) == 1 else {"costs": costs}
        if len(self.models) == 1:
            usage["model"] = next(iter(self.models))
        if self.seconds:
            usage["seconds"] = round(self.seconds, 6)
        return usage

    def divide(self, n: int) -> "list[Spending]":
        """Equal shares for the rows of a batch, which add up to this; whole numbers differ by at most one.

        Example:
            >>> shares = Spending(2, input_tokens=100, cost={"EUR": 0.75}).divide(3)
            >>> [(one.n_requests, one.input_tokens, one.cost) for one in shares]
            [(0, 33, {'EUR': 0.25}), (1, 33, {'EUR': 0.25}), (1, 34, {'EUR': 0.25})]
        """
        return [
            replace(
                self,
                **{name: getattr(self, name) * (i + 1) // n - getattr(self, name) * i // n for name in _DIVIDED},
                cost={currency: cost / n for currency, cost in self.cost.items()},
            )
            for i in range(n)
        ]

    def add(self, *, requests: int = 0, failed: int = 0, known: int = 0, usage: Mapping[str, Any] = {}) -> None:
        """Adds amounts; the costs of a usage go to its currency.

        Args:
            requests: how many were made, of which `failed` had no reply.
            known: replies that needed no request.
            usage: of the replies, as `read_usage` returns it.
        """
        answered = requests - failed
        with self._lock:
            self.n_requests += requests
            self.n_failed += failed
            self.n_known += known
            for name in usage.keys() & _COUNTS:
                setattr(self, name, getattr(self, name) + usage[name])
                self._reported.add(name)
            self.n_without_tokens += 0 if usage.keys() & _TOKENS else answered
            if "cost" in usage:
                currency = usage.get("currency", "")
                self.cost[currency] = self.cost.get(currency, 0.0) + usage["cost"]
            else:
                self.n_without_cost += answered
            if "model" in usage:
                self.models.add(usage["model"])
            self.seconds += usage.get("seconds", 0.0)


@contextmanager
def spending(spent: Spending | None = None) -> Iterator[Spending]:
    """Records the usage of all requests within the block, in its thread or task, and what `report_usage` adds.

    Args:
        spent: the record to add to; a new one by default.

    Example:
        >>> with spending() as spent:
        ...     pass
        >>> spent.n_requests, spent.usage
        (0, None)
    """
    spent = Spending() if spent is None else spent
    with Block(spent):
        yield spent


class Block:
    """A block whose requests, in its thread or task, are added to some records.

    A class, since it is entered for each call and a generator would take three times as long.
    """

    def __init__(self, *records: Spending) -> None:
        self._records = records

    @property
    def records(self) -> Sequence[Spending]:
        return self._records

    def __enter__(self) -> Self:
        active_blocks.set((*active_blocks.get(), self))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        """Ends it and the blocks within it; of recordings, which may be closed anywhere, it alone."""
        blocks = active_blocks.get()
        if self in blocks:
            at = blocks.index(self)
            within = blocks[at + 1 :]
            active_blocks.set(blocks[:at] + within if within and not self.records else blocks[:at])


def report_usage(
    *,
    input_tokens: int | None = None,
    output_tokens: int | None = None,
    cached_input_tokens: int | None = None,
    reasoning_tokens: int | None = None,
    cost: float | None = None,
    currency: str | None = None,
    model: str | None = None,
    requests: int = 1,
) -> None:
    """Reports what requests made by your code used, so that it is stored with the row: in tasks and scorers.

    Works in functions, coroutines and threads that a call starts with its context (`contextvars.copy_context`). Models
    and providers of evaluand are counted without it, as are requests by the SDKs of services: of a call that reports
    its usage, these are not counted again. Outside of a call it does nothing.

    Args:
        input_tokens: tokens read, with `cached_input_tokens`, which the service knew from before; None if unknown.
        output_tokens: tokens written, with `reasoning_tokens`; None if unknown.
        cost: of these requests; None if unknown, 0 if they are free.
        currency: of the cost, such as USD.
        model: the model that answered.
        requests: how many requests were made.

    Raises:
        DataError: an amount is not a number of at least 0.

    Example:
        >>> with spending() as spent:
        ...     report_usage(input_tokens=120, output_tokens=30, cost=0.002, currency="USD")
        >>> spent.usage["cost"], spent.usage["output_tokens"]
        (0.002, 30)
    """
    amounts = {"input_tokens": input_tokens, "output_tokens": output_tokens, "cost": cost}
    amounts |= {"cached_input_tokens": cached_input_tokens, "reasoning_tokens": reasoning_tokens}
    try:
        usage = read_usage({**amounts, "currency": currency, "model": model})
        if _read_count(requests) is None:
            raise DataError(f"requests is {requests!r}, not an integer of at least 0")
    except DataError as error:
        raise DataError(f"this usage cannot be counted: {error}") from None
    for spent in active_spendings():
        spent.is_reported = True
    count(requests=requests, usage=usage)


def count(*totals: Spending, **amounts: Any) -> None:
    """Adds amounts to the records of the current `spending` blocks, and to `totals`.

    Args:
        amounts: as `Spending.add` takes them.
    """
    for spent in (*totals, *active_spendings()):
        spent.add(**amounts)


def active_spendings() -> Sequence[Spending]:
    """The records of the current `spending` blocks, the outermost first."""
    return [spent for block in active_blocks.get() for spent in block.records]


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
    ("cached_input_tokens", "an integer of at least 0", _read_count),
    ("stored_input_tokens", "an integer of at least 0", _read_count),
    ("reasoning_tokens", "an integer of at least 0", _read_count),
    ("cost", "a number of at least 0", _read_amount),
    ("currency", "a text", _read_text),
    ("model", "a text", _read_text),
    ("seconds", "a number of at least 0", _read_amount),
)
_TOKENS: Final = {"input_tokens": None, "output_tokens": None}.keys()
_COUNTS: Final = (*_TOKENS, "cached_input_tokens", "stored_input_tokens", "reasoning_tokens")
_DIVIDED: Final = ("n_requests", "n_failed", "n_known", *_COUNTS)


active_blocks: ContextVar[tuple[Block, ...]] = ContextVar("evaluand.blocks", default=())
"""The blocks of this thread or task, the outermost first."""
