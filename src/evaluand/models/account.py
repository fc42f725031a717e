"""Accounts: what a run or an evaluation spends, noted in its journal and counted against a budget."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from typing import Any, Final

from evaluand.engine.budget import CODE, Budget, BudgetReached
from evaluand.engine.policy import Policy, Prices
from evaluand.models.capture import Capture, MakeOwn
from evaluand.models.prices import default_prices
from evaluand.models.usage import Spending, active_spendings
from evaluand.store.journal import WorkLog

_READ_SECONDS: Final = 1.0  # between two looks at what other processes have noted


class Account(Spending):
    """What a run or an evaluation spends.

    Costs are noted in its journal as they arise. So a budget also counts those of killed processes and of other
    processes that do the same work.

    Args:
        work: the name of this work for the budget, such as `runs/ID`.
        log: where costs are noted.
        policy: has the budget against which they are counted, and the prices of models.
    """

    def __init__(self, work: str, log: WorkLog | _Gathered, policy: Policy) -> None:
        super().__init__()
        self._work, self._log, self.budget, self.prices = work, log, policy.shared_budget, policy.prices
        self.observes_models = policy.observe_models
        self._read = -_READ_SECONDS

    def __reduce__(self) -> Any:
        """A worker of a cluster has neither the journal nor a budget; it gathers what calls cost."""
        return _account_of_worker, (self._work, self.prices, self.observes_models)

    def take_costs(self) -> list[tuple[float, str]]:
        """The costs of calls that a worker has gathered since the last time."""
        return self._log.take() if isinstance(self._log, _Gathered) else []

    def note_cost(self, cost: float, currency: str) -> None:
        """Notes a cost that a worker has gathered."""
        self._log.note_spent(cost, currency)

    def add(self, *, requests: int = 0, failed: int = 0, known: int = 0, usage: Mapping[str, Any] = {}) -> None:
        super().add(requests=requests, failed=failed, known=known, usage=usage)
        cost, currency = usage.get("cost"), usage.get("currency", "")
        if cost:
            self._log.note_spent(cost, currency)
        if self.budget is None:
            return
        if cost is not None:
            self.budget.count(self._work, cost, currency)
        elif requests > failed:
            model = f" to {usage['model']}" if "model" in usage else ""
            remedy = "report it, as 0 if the request is free"
            self.budget.refuse(f"the cost of a request{model} is unknown", remedy)

    def check(self, unpriced: Callable[[Budget], str]) -> None:
        """Raises BudgetReached if no further request may be made.

        Args:
            unpriced: the reason why the budget could not count the cost of the next request; empty if it could.
        """
        if self.budget:
            if reason := unpriced(self.budget):
                raise BudgetReached(reason, code=CODE)
            self.budget.check()

    def stop_reason(self) -> str:
        """The reason why no further call may start; empty for work that has made no request, as it may need none."""
        if self.budget is None:
            return ""
        if isinstance(self._log, WorkLog) and time.monotonic() - self._read >= _READ_SECONDS:
            self._read = time.monotonic()
            self._log.refresh()
            self.budget.count_earlier(self._work, self._log.spent)
        return self.budget.reason if self.n_requests or self._log.spent else ""

    def charge(self, make_own: MakeOwn, *, is_traced: bool = True) -> AbstractContextManager[Any]:
        """A block that counts the requests of a call, and raises BudgetReached if one was refused.

        It is raised even if the code of the call has handled that error.

        Args:
            make_own: as of `Capture`.
            is_traced: whether requests by the SDKs of services are spans of the current trace.
        """
        return Capture(self, make_own, self.observes_models, is_traced)


class _Gathered:
    """The costs that a worker has still to report."""

    spent: Mapping[str, float] = {}

    def __init__(self) -> None:
        self._costs: deque[tuple[float, str]] = deque()

    def note_spent(self, cost: float, currency: str) -> None:
        self._costs.append((cost, currency))

    def take(self) -> list[tuple[float, str]]:
        return [self._costs.popleft() for _ in range(len(self._costs))]


def _account_of_worker(work: str, prices: Prices | None, observes_models: bool) -> Account:
    return Account(work, _Gathered(), Policy(prices=prices, observe_models=observes_models))


def current_prices() -> Prices:
    """The prices of the current run or evaluation, else the default ones.

    Raises:
        SpecError: the file of default prices has faults.
    """
    own = (each.prices for each in reversed(active_spendings()) if isinstance(each, Account) and each.prices)
    return next(own, None) or default_prices()


def check_budget(unpriced: Callable[[Budget], str]) -> None:
    """Refuses the next request if the budget of the current run or evaluation is spent, or cannot count its cost.

    Args:
        unpriced: the reason why a budget could not count the cost of the request; empty if it could.

    Raises:
        BudgetReached: the request must not be made.
    """
    for each in active_spendings():
        if isinstance(each, Account):
            each.check(unpriced)


def set_money_aside() -> AbstractContextManager[None] | None:
    """A block for a request whose cost fits into the current budgets; None while it may not."""
    if _is_paid_for.get():  # a request that another one makes
        return nullcontext()
    budgets = {each.budget for each in active_spendings() if isinstance(each, Account) and each.budget}
    if not budgets:
        return nullcontext()
    amounts: list[tuple[Budget, float]] = []
    for budget in budgets:
        amount = budget.set_aside()
        if amount is None:
            _put_back(amounts)
            return None
        amounts.append((budget, amount))
    return _paying(amounts)


@contextmanager
def _paying(amounts: Sequence[tuple[Budget, float]]) -> Iterator[None]:
    token = _is_paid_for.set(True)
    try:
        yield
    finally:
        _is_paid_for.reset(token)
        _put_back(amounts)


def _put_back(amounts: Sequence[tuple[Budget, float]]) -> None:
    for budget, amount in amounts:
        budget.put_back(amount)


@contextmanager
def noting_refusal() -> Iterator[None]:
    """Lets the current call stay open if the block raises BudgetReached, even if the call handles that error."""
    try:
        yield
    except BudgetReached as error:
        for each in active_spendings():
            each.refusal = str(error)
        raise


_is_paid_for: ContextVar[bool] = ContextVar("_is_paid_for", default=False)
