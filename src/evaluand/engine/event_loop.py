"""The event loop of this process: all coroutines of tasks, scorers and feedbacks run in it.

An asynchronous client, such as `AsyncOpenAI` or `httpx.AsyncClient`, holds connections of the loop in which it was used
first, and breaks in any other. So one loop, in a thread that lives as long as the process, serves runs, evaluations and
recordings alike, also where the caller has a running loop (a notebook). A forked process starts a new one.

A caller with a running loop may use the same client in it afterwards. So the idle connections that httpx, and the
clients built on it, have pooled in the loop of this process are closed once its coroutine has ended; the client then
opens new ones.

A coroutine that waits here for another one blocks the loop. The other one then runs in the next loop: `run_coroutine`
in the thread of a loop uses the next one at once. In another thread it waits for the loop, however long the loop
computes, and uses the next one only if the loop waits for work of evaluand or for this thread, or for a minute on a
lock.
"""

import asyncio
import atexit
import gc
import sys
import threading
import time
import traceback
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import Future, thread as thread_pools
from contextlib import suppress
from types import CodeType, FrameType
from typing import Any, Final, TypeVar
from weakref import WeakSet

from evaluand.core.system import call_after_fork

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])

PATIENCE: Final = 1.0  # seconds in which a loop that is not blocked starts a coroutine
MOST_FOREIGN: Final = 200
"""How many calls of a run are made again because of connections of another loop; clients pool fewer of them."""
MOST_FOREIGN_OF_UNIT: Final = 2
"""How many times one call is: its request may have been sent, and paid for, before the connection failed."""

_OTHER_LOOP: Final = ("Event loop is closed", "is bound to a different event loop", "attached to a different loop")
_POOLING: Final = ("httpcore", "httpcore2")
_LONGEST_LOCK: Final = 60  # periods of PATIENCE on a lock, after which a loop is taken to wait for this thread
_MOMENT: Final = 0.001
_EXIT: Final = 2.0  # seconds that a connection, or the clients of a loop at the end of the process, may take to close


def run_coroutine(coroutine: Coroutine[Any, Any, T]) -> T:
    """The result of a coroutine that runs in the event loop of this process, in the caller's context.

    Raises:
        KeyboardInterrupt: this thread was interrupted; the coroutine was cancelled and has ended. A second interrupt
            does not wait for that.
        BaseException: the error of the coroutine.

    Example:
        >>> async def answer():
        ...     return threading.current_thread().name
        >>> run_coroutine(answer())
        'evaluand loop'
    """
    place = _place_after_this_thread()
    ticket: _Ticket[T] | None = None
    loop: _LoopThread | None = None
    try:
        while True:
            ticket = _Ticket(coroutine)  # before it is submitted: an interrupt may follow at any line
            loop = _loop_at(place)
            loop.submit(ticket)
            if not ticket.is_refused(loop.thread):
                return ticket.result()
            place += 1
    except BaseException:
        if ticket is not None:
            ticket.end()
        raise
    finally:
        if loop is not None and _has_running_loop():
            loop.close_pooled()


def is_foreign_connection(error: BaseException) -> bool:
    """Whether a call failed because its client reused a connection of another event loop, which the client then drops.

    Such a client was used in a loop of the caller before, as by `await answer("hello")` in a notebook.
    """
    return any(
        isinstance(cause, RuntimeError) and any(text in str(cause) for text in _OTHER_LOOP) for cause in _causes(error)
    )


async def close_idle_connections(error: BaseException) -> None:
    """Close what is idle in the pool that had a connection of another event loop, so that no further call meets one.

    Pools are found in the frames of the error: those of httpcore, which httpx and the clients of OpenAI and Anthropic
    use. They open new connections on demand.
    """
    frames = (frame for cause in _causes(error) for frame, _ in traceback.walk_tb(cause.__traceback__))
    owners = {id(owner): owner for frame in frames if (owner := frame.f_locals.get("self")) is not None}
    for pool in [owner for owner in owners.values() if type(owner).__module__.partition(".")[0] in _POOLING]:
        for connection in getattr(pool, "connections", ()):
            if connection.is_idle():
                with suppress(Exception):  # such as of a loop that is closed; the pool drops this connection as well
                    async with asyncio.timeout(_EXIT):
                        await connection.aclose()


def _causes(error: BaseException) -> list[BaseException]:
    """An error, what caused it, what caused that …"""
    causes: list[BaseException] = []
    cause: BaseException | None = error
    while cause is not None and cause not in causes:
        causes.append(cause)
        cause = cause.__cause__ or cause.__context__
    return causes


class _Ticket(Future[T]):
    """A coroutine that was submitted to a loop."""

    def __init__(self, coroutine: Coroutine[Any, Any, T]) -> None:
        super().__init__()
        self._coroutine = coroutine
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[T] | None = None

    def start(self) -> None:
        """Start the coroutine in the running loop."""
        if self.set_running_or_notify_cancel():
            self._loop = asyncio.get_running_loop()
            self._task = self._loop.create_task(self._coroutine)
            self._task.add_done_callback(self._pass_on)

    def is_refused(self, loop: threading.Thread) -> bool:
        """Wait until the coroutine has started; true if the loop is blocked or has ended, and will not start it."""
        locked = 0
        while True:
            if not loop.is_alive() and self.cancel():
                return True
            try:
                self.exception(PATIENCE)
            except TimeoutError:
                if self.running():
                    return False
                locked = locked + 1 if _is_locked(loop) else 0
                if locked > _LONGEST_LOCK or _waits_for_this_thread(loop):
                    return self.cancel()
            else:
                return False

    def end(self) -> None:
        """Cancel the coroutine and wait until it has ended, if this thread was interrupted before."""
        if self.cancel():
            self._coroutine.close()
        elif not self.done():
            with suppress(BaseException):  # a second interrupt
                while self._loop is None:
                    time.sleep(_MOMENT)
                self._loop.call_soon_threadsafe(lambda: self._task and self._task.cancel())
                self.exception()

    def _pass_on(self, task: asyncio.Task[T]) -> None:
        if task.cancelled():
            self.set_exception(asyncio.CancelledError())
        elif (error := task.exception()) is not None:
            self.set_exception(error)
        else:
            self.set_result(task.result())


class _LoopThread:
    """An event loop and its thread, which ends with the process."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._connect = self._loop.create_connection
        with suppress(AttributeError):  # a loop of another library may be sealed
            setattr(self._loop, "create_connection", self._note_connection)  # noqa: B010
        self._connections: WeakSet[asyncio.BaseTransport] = WeakSet()
        self._tickets: set[_Ticket[Any]] = set()
        self._ending = False
        self.thread = threading.Thread(target=self._run, name="evaluand loop", daemon=True)
        self.thread.start()

    def submit(self, ticket: _Ticket[Any]) -> None:
        """Have a coroutine started as soon as the loop is free."""
        self._tickets.add(ticket)
        ticket.add_done_callback(self._tickets.discard)
        with suppress(RuntimeError):  # the loop has ended, as the ticket will find
            self._loop.call_soon_threadsafe(ticket.start)

    def close_pooled(self) -> None:
        """Close the idle connections in the pools of httpx, and of clients built on it, if no coroutine runs.

        The caller waits for that as for its own coroutine: one that goes on sooner may meet a connection of this loop.
        What cannot be closed changes nothing of what the coroutine gave.
        """
        if self.thread is threading.current_thread():
            return
        ticket = _Ticket(self._close_pooled())
        try:
            with suppress(RuntimeError):  # the loop has ended, as the ticket will find
                self._loop.call_soon_threadsafe(ticket.start)
            if not ticket.is_refused(self.thread):
                ticket.exception()
        finally:
            ticket.end()

    def end(self) -> None:
        """Cancel what still runs and close the connections, unless a coroutine blocks the loop."""
        self._ending = True
        self._loop.call_soon_threadsafe(self._loop.stop)
        self.thread.join(_EXIT)

    async def _note_connection(self, *args: Any, **options: Any) -> tuple[asyncio.BaseTransport, asyncio.BaseProtocol]:
        """`create_connection` of the loop, which clients call."""
        transport, protocol = await self._connect(*args, **options)
        self._connections.add(transport)
        return transport, protocol

    async def _close_pooled(self) -> None:
        if self._connections and not self._tickets:
            idle = {*_idle_sockets()}
            for transport in [*self._connections]:
                socket = transport.get_extra_info("socket")
                if socket is not None and socket.fileno() in idle:
                    transport.close()
        await asyncio.sleep(0)  # until the connections know that they are closed

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        while not self._ending:
            with suppress(BaseException):  # SystemExit and KeyboardInterrupt of a coroutine, which its caller receives
                self._loop.run_forever()
        with suppress(BaseException):
            self._loop.run_until_complete(self._cancel_all())
        with suppress(BaseException):
            self._loop.run_until_complete(self._loop.shutdown_asyncgens())
        with suppress(BaseException):
            self._loop.close()

    async def _cancel_all(self) -> None:
        running = asyncio.all_tasks() - {asyncio.current_task()}
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)


def _waits_for_this_thread(loop: threading.Thread) -> bool:
    """Whether a coroutine blocks its loop with nested work of evaluand, or by waiting for the current thread."""
    of_pools = (f for f in _frames(threading.current_thread()) if f.f_code.co_filename == thread_pools.__file__)
    tasks = [getattr(frame.f_locals.get("self"), "future", None) for frame in of_pools]
    for frame in _frames(loop):
        if frame.f_code in _nested_waits:
            return True
        if frame.f_code is _JOIN and frame.f_locals["self"] is threading.current_thread():
            return True
        if frame.f_code is _RESULT and any(frame.f_locals["self"] is task for task in tasks):
            return True
    return False


def _is_locked(loop: threading.Thread) -> bool:
    """Whether a loop waits on a lock, an event or a queue: for another thread, perhaps this one."""
    frame = next(_frames(loop), None)
    return frame is not None and frame.f_code.co_filename == threading.__file__


def _frames(thread: threading.Thread) -> Iterator[FrameType]:
    """The frames of a thread, the innermost first."""
    frame = sys._current_frames().get(thread.ident or 0)
    while frame is not None:
        yield frame
        frame = frame.f_back


def waits_for_nested_work(function: F) -> F:
    """Marks a function that blocks its thread until other threads have made calls; these use the next event loop."""
    _nested_waits.add(function.__code__)
    return function


def _place_after_this_thread() -> int:
    """The place of the loop for this thread: the first, or in the thread of a loop the next one, since it waits."""
    return next((place for place, loop in enumerate(_loops, 1) if loop.thread is threading.current_thread()), 0)


def _loop_at(place: int) -> _LoopThread:
    with _starting[0]:
        while len(_loops) <= place:
            _loops.append(_LoopThread())
        return _loops[place]


def _end_all() -> None:
    for loop in _loops:
        loop.end()


def _forget() -> None:
    """Reset the state in a forked process, which has the loops but none of their threads.

    They are not closed there: that would take their connections out of the selector which the parent uses.
    """
    _starting[0] = threading.Lock()
    _inherited.extend(_loops)
    _loops.clear()


def _idle_sockets() -> Iterator[int]:
    """The file descriptors of connections that pools of httpcore hold open for later requests."""
    kinds = tuple(sys.modules[name].AsyncConnectionPool for name in _POOLING if name in sys.modules)
    pools = [each for each in gc.get_objects() if issubclass(type(each), kinds)] if kinds else []
    for pool in pools:
        for connection in pool.connections:
            if connection.is_idle() and (socket := _socket_of(connection)) is not None:
                yield socket.fileno()


def _socket_of(connection: Any) -> Any:
    """The socket of a connection, perhaps through a proxy; None if it has none yet."""
    while connection is not None and not hasattr(connection, "_network_stream"):
        connection = getattr(connection, "_connection", None)
    return None if connection is None else connection._network_stream.get_extra_info("socket")


def _has_running_loop() -> bool:
    """Whether this thread runs an event loop, as that of a notebook."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


_JOIN: Final = threading.Thread.join.__code__
_RESULT: Final = Future.result.__code__
_nested_waits: set[CodeType] = {run_coroutine.__code__}
_starting = [threading.Lock()]
_loops: list[_LoopThread] = []
_inherited: list[_LoopThread] = []
call_after_fork(_forget)
atexit.register(_end_all)  # now, so that what a later import registers, as the end of recordings, still has the loops
