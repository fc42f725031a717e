"""How calls are made: how many at once, with which time limit, with how many retries, and at which cost."""

import logging
import math
import random
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Protocol

from evaluand.core.errors import SpecError, TaskError, TaskTimeout, TransientError
from evaluand.core.redaction import redact
from evaluand.engine.budget import Budget, BudgetReached
from evaluand.engine.rate_limit import RateLimit

logger = logging.getLogger(__name__)

TRANSIENT = (
    "TransientError",
    "ConnectionError",
    "RateLimitError",  # OpenAI and Anthropic
    "APIConnectionError",
    "APITimeoutError",
    "InternalServerError",
    "ConnectError",  # httpx
    "ConnectTimeout",
    "ReadError",
    "ReadTimeout",
    "WriteError",
    "WriteTimeout",
    "PoolTimeout",
    "RemoteProtocolError",
)
"""Names of the error classes that are worth a retry: those of evaluand, of Python and of common clients."""
MAX_BACKOFF = 60.0
_JITTER: Final = 0.25
_draw = random.Random()  # a generator of this module: calls that draw from the shared one cannot be reused
_LEAST: Final[Sequence[tuple[str, int, Any]]] = (
    ("concurrency", 1, int),
    ("retries", 0, int),
    ("same_failures", 0, int),
    ("backoff", 0, int | float),
    ("backoff_growth", 1, int | float),
)


class Prices(Protocol):
    """A table of prices."""

    def find(self, url: str, name: str) -> Any:
        """The price of a model at an address; None if it is unknown."""


@dataclass(frozen=True)
class Policy:
    """How calls are made.

    Attributes:
        concurrency: calls in flight at once, in each process and in each worker of a cluster; by default 16. One thread
            alone calls plain functions while they return at once. A process makes one call of a plain function at once.
        timeout: seconds that one attempt may take, or None.
        retries: further attempts after a transient error. None means the default of the task or judge: 4 for services,
            chat models and judges that ask a model, else 0. If a call makes several requests to a chat model, only the
            failed request is repeated, and each request up to this many times. Each repeat counts as an attempt of the
            call.
        backoff: seconds before the first retry. Each pause is extended by a random part of up to a quarter, so that
            calls which failed together are not repeated together.
        backoff_growth: factor between one pause and the next, up to a minute (or up to `backoff`, if that is longer);
            with 1 all pauses are equal.
        transient: names of the error classes (or of their bases) worth a retry; by default those of connections, time
            limits, 429 and 5xx of Python, httpx, OpenAI and Anthropic.
        abort_on_error: the first failure stops the run.
        same_failures: the run stops if its first so many calls all failed with the same error; these calls count as not
            made. 0 never stops it. Judges that ask a model stop in the same way, and so does the judge of matches; the
            other scorers of an evaluation do not.
        total_timeout: seconds after which no further call starts; calls in flight end, and the work stays open. Without
            `timeout`, this is also the time limit of an attempt.
        rate: how many attempts may start in a period: a `RateLimit`, which several policies may share, or a text such
            as `60/min`, `10/s` or `5000/h`.
        budget: what all requests together may cost: a `Budget`, which several policies may share, or a text such as
            `5 USD`. It counts the requests of evaluand's models and providers and what `report_usage` reports,
            including those of earlier attempts at the same work. Where it is reached, the work stays open, and can be
            continued with a higher budget.
        prices: a `PriceTable` for models without their own price. By default the table in the file that EVALUAND_PRICES
            names, else the one that comes with evaluand.
        observe_models: whether requests that calls make by the SDKs of services (`openai`, `anthropic`, `google-genai`,
            `litellm`) are traced and counted.
        finishing: called after Ctrl-C with the number of calls in flight that the run still waits for. It does not
            wait for coroutines, which end at once.
        sharing: called with a sentence where another process works on the same calls, may do so, or writes the tables.
    """

    concurrency: int | None = None
    timeout: float | None = None
    retries: int | None = None
    backoff: float = 1.0
    backoff_growth: float = 2.0
    transient: tuple[str, ...] = TRANSIENT
    abort_on_error: bool = False
    same_failures: int = 20
    rate: RateLimit | str | None = None
    budget: Budget | str | None = None
    prices: Prices | None = None
    total_timeout: float | None = None
    observe_models: bool = True
    finishing: Callable[[int], None] | None = field(default=None, repr=False, compare=False)
    sharing: Callable[[str], None] | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.concurrency is None:
            object.__setattr__(self, "concurrency", 16)
        for name, least, kind in _LEAST:
            value = getattr(self, name)
            if value is None and name == "retries":
                continue
            if not isinstance(value, kind) or isinstance(value, bool) or not least <= value < math.inf:
                number = "a number" if name.startswith("backoff") else "an integer"
                raise SpecError(f"{name} is {value!r}; give {number} of at least {least}")
        for name in ("timeout", "total_timeout"):
            seconds: Any = getattr(self, name)
            if seconds is None:
                continue
            if not isinstance(seconds, int | float) or isinstance(seconds, bool) or not seconds > 0:
                raise SpecError(f"{name} is {seconds!r}; give seconds above 0, or leave it out for none")
            if seconds > threading.TIMEOUT_MAX:
                object.__setattr__(self, name, None)
        if not isinstance(self.observe_models, bool):
            raise SpecError(f"observe_models is {self.observe_models!r}; give True or False")
        if isinstance(self.transient, str):
            raise SpecError(f"transient is the text {self.transient!r}; give a tuple of names of error classes")
        if isinstance(self.rate, str):
            object.__setattr__(self, "rate", RateLimit.parse(self.rate))
        elif self.rate is not None and not isinstance(self.rate, RateLimit):
            raise SpecError(f"rate is {self.rate!r}; give a RateLimit, or a text such as 10/s, 60/min or 5000/h")
        if self.budget is not None:
            object.__setattr__(self, "budget", Budget.read(self.budget))

    @property
    def calls_at_once(self) -> int:
        """How many calls are in flight at once: `concurrency`, or its default."""
        assert self.concurrency is not None  # `__post_init__` sets it
        return self.concurrency

    @property
    def rate_limit(self) -> RateLimit | None:
        """The rate limit that attempts wait for before they start."""
        assert not isinstance(self.rate, str)
        return self.rate

    @property
    def shared_budget(self) -> Budget | None:
        """The budget, as an object."""
        assert not isinstance(self.budget, str)
        return self.budget

    def with_defaults(self, retries: int, transient: Sequence[str]) -> "Policy":
        """This policy with what a kind of task or scorer adds.

        Args:
            retries: the number of retries if this policy has none.
            transient: further names of error classes worth a retry.
        """
        retries = retries if self.retries is None else self.retries
        return replace(self, retries=retries, transient=(*self.transient, *transient))

    def retries_after(self, error: BaseException, attempts: int) -> bool:
        """Whether a failed attempt is followed by another."""
        return attempts <= (self.retries or 0) and any(base.__name__ in self.transient for base in type(error).__mro__)

    def report_finishing(self, calls: int) -> None:
        """Calls `finishing` if the run still waits for calls in flight."""
        if calls and self.finishing:
            self.finishing(calls)

    def pause(self, attempts: int, error: BaseException | None = None) -> float:
        """The least number of seconds to wait after so many attempts, the last of which failed with `error`."""
        try:
            grown = self.backoff * self.backoff_growth ** (attempts - 1)
        except OverflowError:
            grown = math.inf
        pause = float(min(grown, max(self.backoff, MAX_BACKOFF)))
        return max(pause, (isinstance(error, TransientError) and error.after) or 0.0)

    def draw_pause(self, attempts: int, error: BaseException | None = None, message: str = "") -> float:
        """The pause after so many attempts, up to a quarter longer.

        Args:
            message: the text to log; by default that of the error, without credentials.
        """
        pause = self.pause(attempts, error) * (1.0 + _JITTER * _draw.random())
        reason = redact(message or str(error)) if error else "it took too long"
        logger.info("attempt %d failed: %s; the next follows in %.3g s", attempts, reason, pause)
        return pause

    def stops_at(self, error: BaseException) -> bool:
        """Whether the error of a unit stops the run."""
        if isinstance(error, BudgetReached):  # the work ends without this call, and stays open
            return False
        return self.abort_on_error or (isinstance(error, TaskError) and error.stops)


def too_long(policy: Policy) -> TaskTimeout:
    """The error of a call that took longer than the policy allows."""
    return TaskTimeout(f"took longer than {policy.timeout:g} s", code="timeout")
