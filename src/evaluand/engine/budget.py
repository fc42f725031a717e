"""Budgets: what requests may cost, across all callers.

A budget stops the work before the next request once so much is spent. Requests in flight end, so each sets aside
what the most expensive one so far has cost: near the end fewer and fewer are in flight. More is spent by at most the
cost of the last one, and by what those in flight cost beyond the most expensive one before.
"""

from __future__ import annotations

import math
import re
import threading
from collections.abc import Mapping
from typing import Any, Final

from evaluand.core.errors import SpecError, TaskError

CODE: Final = "budget"
"""The code of errors that are about a budget."""


class BudgetReached(TaskError):
    """A request was not made, because of a budget; its call stays open."""


class Budget:
    """At most so much money; one object, shared by all policies that receive it.

    Args:
        cost: how much may be spent.
        currency: of this amount. Costs in other currencies cannot be counted, and stop the work.

    Attributes:
        other_currency: that of costs that it could not count; None if there were none.

    Raises:
        SpecError: an argument is no amount, or no currency.

    Example:
        >>> budget = Budget.parse("5 USD")
        >>> budget.count("run 1", 4.5, "USD")
        >>> budget.reason
        ''
        >>> budget.count("run 1", 0.75, "USD")
        >>> budget.reason
        'the budget of 5 USD is spent (5.25 USD)'
    """

    def __init__(self, cost: float, currency: str) -> None:
        _check(cost, currency)
        self.cost, self.currency = float(cost), currency
        self._lock = threading.Lock()
        self._spent: dict[str, float] = {}  # by the work for which it was spent
        self._largest: float | None = None  # cost of a request so far
        self._set_aside = 0.0
        self._in_flight = 0
        self._fault = ""
        self.other_currency: str | None = None

    @classmethod
    def parse(cls, text: str) -> Budget:
        """The budget of a text such as `5 USD` or `0.50 EUR`.

        Raises:
            SpecError: the text is not an amount with its currency.
        """
        found = _BUDGET.fullmatch(text)
        if found is None:
            raise SpecError(f"budget is {text!r}; write an amount and its currency, such as '5 USD'")
        return cls(float(found[1].replace("_", "")), found[2])

    @classmethod
    def read(cls, value: Any) -> Budget:
        """The budget of a text, or of a mapping with `cost` and `currency`; a budget is itself.

        Raises:
            SpecError: it is none of these.
        """
        if isinstance(value, Budget):
            return value
        if isinstance(value, str):
            return cls.parse(value)
        if isinstance(value, Mapping) and value.keys() == {"cost", "currency"}:
            return cls(**value)
        raise SpecError(f"budget is {value!r}; give a Budget, or a text such as '5 USD'")

    def __repr__(self) -> str:
        return f"Budget({self.cost:g}, {self.currency!r})"

    def __str__(self) -> str:
        """The text that `parse` reads."""
        return f"{self.cost:g} {self.currency}"

    @property
    def spent(self) -> float:
        """What was spent so far, in its currency."""
        with self._lock:
            return math.fsum(self._spent.values())

    def spent_on(self, work: str) -> float:
        """What was spent so far on a run, or on a scorer of an evaluation."""
        with self._lock:
            return self._spent.get(work, 0.0)

    @property
    def is_spent(self) -> bool:
        return self.spent >= self.cost

    @property
    def is_exceeded(self) -> bool:
        """Whether more was spent than it allows."""
        return self.spent > self.cost * (1 + 1e-9)

    @property
    def reason(self) -> str:
        """Why no further request may be made; empty while there is money left."""
        if self._fault:
            return self._fault
        return f"the budget of {self} is spent ({self.spent:.4g} {self.currency})" if self.is_spent else ""

    def count(self, work: str, cost: float, currency: str) -> None:
        """Counts what a request has cost.

        Args:
            work: the run or evaluation for which it was made.
        """
        if currency != self.currency:
            self.other_currency = currency or None
            return self.refuse(f"a request cost {cost:g} {currency or 'in an unknown currency'}")
        with self._lock:
            self._spent[work] = self._spent.get(work, 0.0) + cost
            self._largest = max(cost, self._largest or 0.0)

    def count_earlier(self, work: str, costs: Mapping[str, float]) -> None:
        """Counts what some work has cost so far, by currency, as stored; what of it was counted before counts once."""
        for currency, cost in costs.items():
            if currency != self.currency and cost:
                self.other_currency = currency or None
                return self.refuse(f"this work has cost {cost:g} {currency or 'in an unknown currency'} so far")
        with self._lock:
            self._spent[work] = max(self._spent.get(work, 0.0), costs.get(self.currency, 0.0))

    def set_aside(self) -> float | None:
        """Sets money aside for a request; how much, or None while those in flight may need what is left.

        That is the cost of the most expensive request so far. The first one goes alone, since nobody knows its cost.
        """
        with self._lock:
            left = self.cost - math.fsum(self._spent.values()) - self._set_aside
            amount = left if self._largest is None else self._largest
            if self._in_flight and (self._largest is None or amount > left):
                return None
            self._set_aside += amount
            self._in_flight += 1
            return amount

    def put_back(self, amount: float) -> None:
        """Puts back what was set aside for a request, after its cost was counted."""
        with self._lock:
            self._in_flight -= 1
            self._set_aside = self._set_aside - amount if self._in_flight else 0.0

    def refuse(self, what: str, remedy: str = "") -> None:
        """Lets no further request be made, because something cannot be counted."""
        self._fault = self._fault or self.explain(what, remedy)

    def explain(self, what: str, remedy: str = "") -> str:
        """Why something cannot be counted, with what to do about it."""
        return f"{what}, so the budget of {self} cannot count it{f'; {remedy}' if remedy else ''}"

    def check(self) -> None:
        """Raises BudgetReached if no further request may be made."""
        if reason := self.reason:
            raise BudgetReached(reason, code=CODE)


def _check(cost: Any, currency: Any) -> None:
    if not isinstance(cost, int | float) or isinstance(cost, bool) or not 0 < cost < math.inf:
        raise SpecError(f"a budget of {cost!r}; give a number above 0")
    if not isinstance(currency, str) or not _CURRENCY.fullmatch(currency):
        raise SpecError(f"the currency of a budget is {currency!r}; give one such as USD or EUR")


_CURRENCY: Final = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,11}")
_BUDGET: Final = re.compile(rf"\s*(\d[\d_]*(?:\.\d+)?)\s*({_CURRENCY.pattern})\s*")
