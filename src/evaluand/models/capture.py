"""Requests to models that nobody declared: where and when those of the user's own code are observed.

    call (a `Capture`) ─▶ a method that sends requests ─▶ `CapturedRequest`: its span, its usage

The methods are those of the HTTP clients (httpx, httpx2) with which the SDKs of OpenAI, Anthropic, LiteLLM and others
send, and those of google-genai, which has several clients: where a request and its answer are seen in one place,
whatever the version of the SDK. They are replaced only while a call runs, in modules that are imported already or
meanwhile; no SDK is imported. What they return, they return as before.
"""

from __future__ import annotations

import functools
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from importlib.machinery import ModuleSpec
from types import ModuleType, TracebackType
from typing import TYPE_CHECKING, Any, Final, Self

from evaluand.core.errors import warn
from evaluand.core.late_imports import find_behind
from evaluand.core.system import call_after_fork
from evaluand.engine.budget import CODE, BudgetReached
from evaluand.engine.observation import machinery
from evaluand.models.usage import Block, Spending, active_blocks, count
from evaluand.trace.spans import Span

if TYPE_CHECKING:
    from evaluand.models.captured import CapturedRequest

MakeOwn = Callable[[], Spending]
MODULES: Final = ("httpx", "httpx2", "google.genai._api_client")
"""The modules whose methods are replaced; see `evaluand.models.captured.methods_of`."""


class Capture(Block):
    """A block whose requests to models are observed, in its thread or task.

    What a call reports itself (`report_usage`) has precedence: then its observed requests are not counted. So they are
    counted when the block ends.

    Args:
        account: what the requests are counted against, beside the call.
        make_own: gives the record of the call, which is made with its first request: most calls make none. None for a
            recording, which counts nothing.
        is_on: whether they are observed.
        is_traced: whether they are spans of the current trace.

    Raises:
        BudgetReached: the budget of the account has refused a request, even if the code has handled that error.
    """

    _is_over = False
    _own: Spending | None = None

    def __init__(self, account: Spending | None, make_own: MakeOwn | None, is_on: bool, is_traced: bool = True) -> None:
        self._account, self._make_own = account, make_own
        self.is_on, self.is_traced = is_on, is_traced
        self.requests: set[CapturedRequest] = set()  # whose answers have not been read
        self._amounts: list[dict[str, Any]] = []

    @property
    def records(self) -> Sequence[Spending]:
        if self._make_own is None:
            return ()
        with _methods.lock:
            self._own = self._make_own()
        return (self._own,) if self._account is None else (self._account, self._own)

    def __enter__(self) -> Self:
        """Begins to observe; a recording counts nothing, so it leaves that to the call in which it is made, if any."""
        if self._make_own is not None or current_capture() is None:
            Block.__enter__(self)
        if self.is_on:
            _methods.blocks.add(self)
            if not _methods.are_replaced:
                _methods.replace()
        return self

    def add(self, **amounts: Any) -> None:
        """Counts a request, at the end of the block if it goes on."""
        if self._make_own is None or self._is_over:
            count(**amounts)
        else:
            self._amounts.append(amounts)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        try:
            if self._make_own is not None and (self.requests or self._amounts):
                self._settle(self.records[-1])
        finally:
            Block.__exit__(self, kind, error, where)
            if self.is_on:
                _methods.blocks.discard(self)
                if not _methods.blocks:
                    _methods.restore()
        refusal = "" if self._account is None or self._own is None else self._own.refusal
        if refusal and (error is None or isinstance(error, Exception)):
            raise BudgetReached(refusal, code=CODE) from None

    def _settle(self, own: Spending) -> None:
        """Counts the requests; those whose answers the call has not read to their end stop being observed."""
        for request in [*self.requests]:
            request.close()
        self._is_over = True
        if not own.is_reported:
            for amounts in self._amounts:
                count(**amounts)
            return
        names = ("input_tokens", "output_tokens")
        observed = sum(amounts.get("usage", {}).get(name, 0) for amounts in self._amounts for name in names)
        if observed > own.input_tokens + own.output_tokens:
            warn(
                f"a call reports {own.input_tokens + own.output_tokens} tokens by report_usage, but its requests to "
                f"models used {observed}; the report is counted: let it include them, or leave it out"
            )


@contextmanager
def observable(is_on: bool) -> Iterator[None]:
    """A block of many calls, between which methods stay replaced: replacing them takes as long as a quick call.

    Args:
        is_on: whether requests of these calls are observed.
    """
    block = object()
    if is_on:
        _methods.blocks.add(block)
        _methods.replace()
    try:
        yield
    finally:
        _methods.blocks.discard(block)
        _methods.restore()


class Uncaptured(Block):
    """Hides the blocks that observe requests."""


def current_capture() -> Capture | None:
    """The innermost block of this context; None outside of calls, and in threads that were started without context."""
    for block in reversed(active_blocks.get()):
        if isinstance(block, Capture):
            return block
        if isinstance(block, Uncaptured):
            return _OFF
    return None


def has_calls() -> bool:
    """Whether a call runs in any thread."""
    return bool(_methods.blocks)


framework_request: ContextVar[Span | None] = ContextVar("evaluand.framework_request", default=None)
"""The span that the callbacks of a framework have opened in this context for a request to a model."""
framework_spans: Final[list[Callable[[], Span | None]]] = []
"""Functions that know the current span where a framework keeps track of it."""
_OFF: Final = Capture(None, None, is_on=False)


class _Methods:
    """The replaced methods, while there are blocks; and the import hook that replaces those of modules yet to come.

    Every call begins and ends a block, so no lock is taken for one beside others. Who ends the last one says that the
    methods are not replaced before it looks for others: so a block that begins meanwhile is seen, or replaces them.
    """

    def __init__(self) -> None:
        self.blocks: set[object] = set()
        self.are_replaced = False
        self.lock = threading.RLock()
        self._replaced: list[tuple[type, str, Any, Any]] = []
        self._known: dict[tuple[type, str], tuple[Any, Any]] = {}
        call_after_fork(self._renew_lock)

    def _renew_lock(self) -> None:
        self.lock = threading.RLock()

    def replace(self) -> None:
        """Replaces them, for a block that was added."""
        with self.lock:
            if not self.are_replaced:
                sys.meta_path = [self, *sys.meta_path]  # a new list: other threads may be going through the old one
                for name in MODULES:
                    module = sys.modules.get(name)
                    if module is not None and not getattr(module.__spec__, "_initializing", False):
                        self._replace_in(module)
                self.are_replaced = True

    def restore(self) -> None:
        """Restores them, unless there are blocks."""
        with self.lock:
            was_replaced, self.are_replaced = self.are_replaced, False
            if not was_replaced or self.blocks:
                self.are_replaced = was_replaced
                return
            sys.meta_path = [finder for finder in sys.meta_path if finder is not self]
            for owner, name, original, ours in self._replaced:
                if vars(owner).get(name) is ours:  # else others have replaced it since, and call ours
                    setattr(owner, name, original)
            self._replaced.clear()

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        """The spec of a module whose methods are replaced when it has been imported."""
        if name not in MODULES:
            return None
        return find_behind(self, self._replace_later, name, path, target)

    def _replace_later(self, module: ModuleType) -> None:
        """Replaces the methods of a module that was imported while there are calls."""
        with self.lock:
            if self.are_replaced:
                self._replace_in(module)

    def _replace_in(self, module: ModuleType) -> None:
        with machinery():
            from evaluand.models.captured import methods_of  # only where one of the modules is used

            try:
                for owner, name, wrap in methods_of(module):
                    original = vars(owner)[name]
                    known = self._known.get((owner, name))
                    if known is None or (original is not known[0] and original is not known[1]):
                        known = self._known[owner, name] = original, functools.wraps(original)(wrap(original))
                    setattr(owner, name, known[1])
                    self._replaced.append((owner, name, *known))
            except (AttributeError, KeyError) as error:
                warn(f"requests by {module.__name__} are not observed: this version has no {error}")


_methods: Final = _Methods()
