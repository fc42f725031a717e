"""Checks of models before the first request: which ones an object uses, and whether a budget can count them."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any, Final, Protocol, TypeGuard

from evaluand.core.errors import SpecError
from evaluand.engine.budget import Budget
from evaluand.engine.policy import Policy, Prices
from evaluand.models.prices import Price, default_prices

_MOST_PARTS: Final = 10_000


class Priced(Protocol):
    """An object whose requests may cost something: a model.

    Attributes:
        name: of the model at its address, by which tables have its price.
    """

    name: str

    @property
    def address(self) -> str:
        """The endpoint, without secrets."""

    def find_price(self, prices: Prices) -> Price | None:
        """The price of the model, its own or that of a table; None if it is unknown."""

    def explain_unpriced(self, budget: Budget, prices: Prices) -> str:
        """The reason why a budget could not count the cost of its replies, and what to do; empty if it could."""


def check_prices(policy: Policy, *users: Any) -> None:
    """Refuses models whose cost the budget of a policy cannot count, before the first request.

    Args:
        users: tasks, scorers or judges. Models that only their code knows are refused at their first request.

    Raises:
        SpecError: lists the models, and says how to state their prices.
    """
    budget = policy.shared_budget
    if budget is None:
        return
    prices = policy.prices or default_prices()
    reasons = (model.explain_unpriced(budget, prices) for user in users for model in find_models(user))
    if faults := [reason for reason in dict.fromkeys(reasons) if reason]:
        raise SpecError("\n".join(faults))


def find_models(user: Any) -> Iterator[Priced]:
    """The models in the fields of an object and of the objects there, each once; long collections are left out.

    Example:
        >>> from evaluand import ChatModel
        >>> model = ChatModel("http://127.0.0.1:8080/v1", "small")
        >>> list(find_models({"judges": [model]}))
        [ChatModel(name='small', version=None)]
    """
    waiting, seen = deque([user]), set[int]()
    while waiting and len(seen) < _MOST_PARTS:
        part = waiting.popleft()
        if id(part) in seen:
            continue
        seen.add(id(part))
        if _is_priced(part):
            yield part
        else:
            waiting.extend(_parts(part))


def _is_priced(part: Any) -> TypeGuard[Priced]:
    return hasattr(type(part), "explain_unpriced")  # of the type: objects may answer to any name


def _parts(user: Any) -> Iterable[Any]:
    if isinstance(user, type):
        return ()
    if isinstance(user, Mapping):
        return user.values()
    if isinstance(user, list | tuple):
        return user
    if is_dataclass(user):
        return [getattr(user, each.name, None) for each in fields(user)]
    return vars(user).values() if hasattr(user, "__dict__") else ()
