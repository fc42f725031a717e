"""The cost of tokens: the price of a model, and tables of prices.

A model has its own price, or else that of a table, found by the host of its address and its name there. If no table has
it, the price is unknown, and so is the cost of its requests: unknown, not 0.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from functools import cache
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from evaluand.core.errors import ParameterError, SpecError, kind_of, nearest

VARIABLE: Final = "EVALUAND_PRICES"
ANY_HOST: Final = "*"


@dataclass(frozen=True)
class Price:
    """The price of a model's tokens.

    Args:
        input: the price of `per` tokens that it reads.
        output: the price of `per` tokens that it writes.
        cached_input: the price of `per` tokens that the service has read before; default: the price of `input`.
        currency: of these prices.
        per: the number of tokens that the prices are for.
        stored_input: the price of `per` tokens that the service keeps for later; default: the price of `input`.

    Raises:
        ParameterError: lists all invalid parameters.

    Example:
        >>> Price(input=0.25, output=2.00, cached_input=0.025).cost(1000, 200, cached_tokens=400)
        0.00056
    """

    input: float
    output: float
    cached_input: float | None = None
    currency: str = "USD"
    per: int = 1_000_000
    stored_input: float | None = None

    def __post_init__(self) -> None:
        if faults := list(self._faults()):
            raise ParameterError(faults)

    @classmethod
    def read(cls, value: Any) -> Price:
        """A price from a mapping with these parameters, or from a price.

        Raises:
            ParameterError: lists all faults.
        """
        if isinstance(value, Price):
            return value
        if not isinstance(value, Mapping):
            raise ParameterError([((), f"is {kind_of(value)}; give a mapping such as {{input: 0.25, output: 2.00}}")])
        names = [each.name for each in fields(cls)]
        faults = [((str(name),), f"unknown key{nearest(str(name), names)}") for name in value if name not in names]
        faults += [((name,), "is missing") for name in ("input", "output") if name not in value]
        if faults:
            raise ParameterError(faults)
        return cls(**value)

    @property
    def is_free(self) -> bool:
        """Whether requests cost nothing, however many tokens they have."""
        return not (self.input or self.output or self.cached_input or self.stored_input)

    def cost(self, input_tokens: int, output_tokens: int, *, cached_tokens: int = 0, stored_tokens: int = 0) -> float:
        """The cost of a request.

        Args:
            input_tokens: all that were read, including `cached_tokens` and `stored_tokens`.
        """
        cached = min(cached_tokens, input_tokens)
        stored = min(stored_tokens, input_tokens - cached)
        parts = ((cached, self.cached_input), (stored, self.stored_input), (input_tokens - cached - stored, self.input))
        read = sum(count * (self.input if price is None else price) for count, price in parts)
        return (read + output_tokens * self.output) / self.per

    def _faults(self) -> Iterator[tuple[tuple[str], str]]:
        for name in ("input", "output", *_OPTIONAL):
            amount = getattr(self, name)
            is_number = isinstance(amount, int | float) and not isinstance(amount, bool)
            if not (is_number and 0 <= amount < float("inf")) and not (amount is None and name in _OPTIONAL):
                yield (name,), f"is {amount!r}; give a number of at least 0"
        currency, per = _as_given(self.currency), _as_given(self.per)
        if not isinstance(currency, str) or not currency:
            yield ("currency",), f"is {currency!r}; give one such as USD or EUR"
        if not isinstance(per, int) or isinstance(per, bool) or per < 1:
            yield ("per",), f"is {per!r}; give a number of tokens, such as 1_000_000"


@dataclass(frozen=True)
class PriceTable:
    """Prices by the host of a service and the name of a model there.

    Attributes:
        prices: host → name → price; the host `*` stands for all hosts.
        date: the day of the prices, if the file states it.
        source: the file.

    Example:
        >>> table = PriceTable({"*": {"smollm2": Price(input=0, output=0)}})
        >>> table.find("http://127.0.0.1:8080/v1", "smollm2")
        Price(input=0, output=0, cached_input=None, currency='USD', per=1000000, stored_input=None)
    """

    prices: Mapping[str, Mapping[str, Price]]
    date: str | None = None
    source: str | None = None

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> PriceTable:
        """The table of a YAML or JSON file: `prices: {HOST: {NAME: {input: 0.25, output: 2.00}}}`.

        Further keys are `date`, and `currency` and `per` of all prices that state none.

        Raises:
            SpecError: the file has faults; each with its line.
        """
        from evaluand.core.files.yaml import Document  # on use: `evaluand list` does without YAML

        if not os.path.exists(path):
            raise SpecError(f"{os.fspath(path)}: no such file of prices")
        document = Document(Path(path))
        value = document.value if isinstance(document.value, dict) else {}
        if not isinstance(value.get("prices"), dict):
            document.add(("prices",), "must be a mapping of hosts: prices: {HOST: {NAME: {input: 0.25, output: 2.00}}}")
        for name in value.keys() - _KEYS:
            document.add((name,), f"unknown key{nearest(name, sorted(_KEYS))}")
        common = {name: value[name] for name in ("currency", "per") if name in value}
        prices: dict[str, dict[str, Price]] = {}
        for host, named in value["prices"].items() if isinstance(value.get("prices"), dict) else ():
            if not isinstance(named, dict):
                document.add(("prices", host), f"is {kind_of(named)}; give a mapping of models to prices")
                continue
            for name, price in named.items():
                with document.at("prices", host, name):
                    own = common | price if isinstance(price, dict) else price
                    prices.setdefault(host.lower(), {})[name] = Price.read(own)
        document.check()
        date = value.get("date")
        return cls(prices, None if date is None else str(date), os.fspath(path))

    def find(self, url: str, name: str) -> Price | None:
        """The price of a model at an address; None if it is unknown."""
        host = (urlsplit(url).hostname or "").lower()
        for each in (host, ANY_HOST):
            if price := self.prices.get(each, {}).get(name):
                return price
        return None

    def __str__(self) -> str:
        return f"{self.source or 'prices'}{f' of {self.date}' if self.date else ''}"


def default_prices() -> PriceTable:
    """The table in the file that the environment variable EVALUAND_PRICES names, else the one of evaluand.

    Raises:
        SpecError: the file of the variable has faults.
    """
    path = os.environ.get(VARIABLE)
    return _load_once(path) if path else _included_prices()


@cache
def _load_once(path: str) -> PriceTable:
    return PriceTable.load(path)


@cache
def _included_prices() -> PriceTable:
    with as_file(files("evaluand.models").joinpath("assets", "prices.json")) as path:
        table = PriceTable.load(path)
    return PriceTable(table.prices, table.date, "the prices that come with evaluand")


def _as_given(value: Any) -> Any:
    """A value of which nothing is known, whatever its annotation says."""
    return value


_OPTIONAL: Final = ("cached_input", "stored_input")
_KEYS: Final = frozenset(("prices", "date", "note", "sources", "currency", "per"))
