"""One event loop per process: asynchronous clients of a module serve tasks, judges and recordings alike."""

import asyncio
import contextvars
import gc
import http.server
import json
import math
import os
import signal
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
import anyio.abc
import httpx2
import pytest
from support.forks import call_in_fork, in_fork

from evaluand import Dataset, Evaluator, MemoryStore, Policy, Run, Runner
from evaluand.engine import event_loop, observation
from evaluand.engine.engines.processes import ProcessEngine
from evaluand.engine.event_loop import is_foreign_connection, run_coroutine
from evaluand.engine.keyed_work import Receipt
from evaluand.run.task import as_task

ROWS = 24


class _Chat(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"  # connections stay open, so that clients pool them
    wbufsize = -1  # one packet for headers and body
    requests = 0
    interrupt_at = 0

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path.endswith("/slow"):
            time.sleep(0.3)
        _Chat.requests += 1
        if _Chat.requests == _Chat.interrupt_at:
            os.kill(os.getpid(), signal.SIGINT)
        said = asked["messages"][-1]["content"].upper()
        body = json.dumps({"choices": [{"message": {"role": "assistant", "content": said}}]}).encode()
        self.send_response(200)
        self.send_header("Set-Cookie", f"session={_Chat.requests}; Path=/")  # as the proxies in front of services do
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *reported: Any) -> None:
        pass


class _Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Says nothing of clients that leave."""


@contextmanager
def served() -> Iterator[str]:
    """The address of a server of this process."""
    server = _Server(("127.0.0.1", 0), _Chat)
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/v1"
    server.shutdown()
    server.server_close()


@pytest.fixture
def url() -> Iterator[str]:
    with served() as url:
        yield url


class Chat:
    """A client with a pool of connections, as a module of a user holds one."""

    def __init__(self, url: str) -> None:
        self.client = httpx2.AsyncClient(base_url=url)

    @property
    def pool(self) -> Any:
        return self.client._transport._pool  # type: ignore[attr-defined]

    async def ask(self, text: str) -> str:
        asked = {"model": "m", "messages": [{"role": "user", "content": text}]}
        reply = await self.client.post("/chat/completions", json=asked)
        return str(reply.json()["choices"][0]["message"]["content"])

    async def answer(self, input: str) -> str:
        return await self.ask(input)

    async def judge(self, output: str, expected: str) -> float:
        return float(await self.ask(f"{output}?") == f"{expected}?")


@pytest.fixture
def chat(url: str) -> Iterator[Chat]:
    chat = Chat(url)
    yield chat
    run_coroutine(chat.client.aclose())


DATA = Dataset.from_rows([{"input": f"q{i}", "expected": f"Q{i}"} for i in range(ROWS)])


def evaluate_twice(chat: Chat, **how: Any) -> None:
    store = MemoryStore()
    for _ in range(2):
        run = Runner(store, **how).run(chat.answer, DATA, fresh=True)
        evaluation = Evaluator(store, **how).evaluate(run, {"judge": chat.judge}, fresh=True)
        assert run.counts == {"completed": ROWS}
        assert evaluation.counts == {"judge": {"scored": ROWS}}


def test_a_client_serves_tasks_and_judges_of_one_process(chat: Chat) -> None:
    evaluate_twice(chat)


def test_a_client_serves_forked_processes(chat: Chat) -> None:
    evaluate_twice(chat, engine=ProcessEngine(2))


def test_a_client_serves_callers_with_a_running_loop(chat: Chat) -> None:
    async def cell() -> None:
        evaluate_twice(chat)

    asyncio.run(cell())


def test_a_client_that_was_used_in_the_loop_of_the_caller_loses_no_row(chat: Chat) -> None:
    async def notebook() -> None:
        await asyncio.gather(*(chat.ask(str(i)) for i in range(10)))
        evaluate_twice(chat)

    asyncio.run(notebook())


def test_a_caller_with_a_running_loop_may_use_the_client_afterwards(chat: Chat) -> None:
    async def notebook() -> list[str]:
        Runner(MemoryStore()).run(chat.answer, DATA)
        found = [await chat.ask("one by one") for _ in range(ROWS)]
        Runner(MemoryStore()).run(chat.answer, DATA)
        found += await asyncio.gather(*(chat.ask("at once") for _ in range(ROWS)))
        await chat.client.aclose()
        return found

    assert asyncio.run(notebook()) == ROWS * ["ONE BY ONE"] + ROWS * ["AT ONCE"]


def test_a_caller_goes_on_when_connections_are_closed_however_long_they_are_searched_for(
    chat: Chat, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_loop, "PATIENCE", 0.001)
    held: list[Any] = [[] for _ in range(300_000)]  # among which the pools are searched for

    async def notebook() -> str:
        run_coroutine(chat.ask("cell"))
        assert [each.has_expired() for each in chat.pool.connections] == [True]
        answer = await chat.ask("next")
        await chat.client.aclose()
        return answer

    assert asyncio.run(notebook()) == "NEXT"
    assert len(held) == 300_000


def test_a_request_in_progress_outlives_the_call_that_began_it(url: str) -> None:
    begun: list[asyncio.Task[httpx2.Response]] = []

    async def begin(text: str) -> str:
        client = httpx2.AsyncClient(base_url=url)
        begun.append(asyncio.create_task(client.post("/slow", json={"messages": [{"content": text}]})))
        await asyncio.sleep(0.1)
        return text

    async def end() -> int:
        return (await begun[0]).status_code

    async def notebook() -> int:
        run_coroutine(begin("cell"))
        return run_coroutine(end())

    assert asyncio.run(notebook()) == 200


def test_a_connection_that_is_in_no_pool_stays_open(url: str) -> None:
    address = httpx2.URL(url)
    streams: list[anyio.abc.SocketStream] = []

    async def connect() -> None:
        streams.append(await anyio.connect_tcp(address.host, address.port or 80))

    async def ask() -> bytes:
        await streams[0].send(b"POST / HTTP/1.1\r\nContent-Length: 35\r\n\r\n" + b'{"messages": [{"content": "text"}]}')
        answer = await streams[0].receive()
        await streams[0].aclose()
        return answer

    async def notebook() -> bytes:
        run_coroutine(connect())
        return run_coroutine(ask())

    assert asyncio.run(notebook()).startswith(b"HTTP/1.1 200")


def test_pooled_connections_stay_open_while_another_thread_makes_calls(chat: Chat) -> None:
    started, ended = threading.Event(), threading.Event()

    async def wait() -> None:
        started.set()
        await asyncio.to_thread(ended.wait)

    async def notebook() -> None:
        run_coroutine(chat.ask("cell"))

    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(run_coroutine, wait())
        started.wait()
        try:
            asyncio.run(notebook())
            assert [each.has_expired() for each in chat.pool.connections] == [False]
        finally:
            ended.set()
        waiting.result()
    asyncio.run(notebook())
    assert all(each.has_expired() for each in chat.pool.connections)


@pytest.fixture
def nothing_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process in which no call has opened a file: code that may remember files counts with all that were opened."""
    monkeypatch.setattr(observation, "_opened", [])
    monkeypatch.setattr(observation, "_places", {})


def interrupt_and_resume(chat: Chat) -> Receipt:
    """The receipt of a run that was interrupted half-way and resumed, in a process that does nothing else."""
    store = MemoryStore()
    _Chat.requests, _Chat.interrupt_at = 0, ROWS // 2
    with pytest.raises(KeyboardInterrupt):
        Runner(store, Policy(concurrency=4)).run(chat.answer, DATA, name="bot")
    id = next(ref.id for ref in store.refs() if ref.name == "bot")
    run = Runner(store).run(chat.answer, DATA, name="bot", resume=id)
    assert run.counts == {"completed": ROWS}
    assert run.receipt is not None
    return run.receipt


@in_fork
def test_an_interrupted_run_is_resumed_with_the_same_client(nothing_opened: None) -> None:
    with served() as url:
        receipt = interrupt_and_resume(Chat(url))
    assert receipt.kept >= ROWS // 2 - 4
    assert "changed since opened" not in receipt.why
    assert _Chat.requests <= ROWS + 4


@in_fork
def test_a_resumed_run_names_the_changed_file_that_its_client_may_remember(
    nothing_opened: None, tmp_path: Path
) -> None:
    prompt = tmp_path / "prompt.txt"
    cache: dict[str, str] = {}
    prompt.write_text("old")

    def reading(input: str) -> str:
        cache[input] = prompt.read_text()
        return cache[input]

    Runner(MemoryStore()).run(reading, [{"input": "q"}])
    prompt.write_text("another")
    with served() as url:
        receipt = interrupt_and_resume(Chat(url))
    assert (receipt.called, receipt.kept) == (ROWS, 0)
    assert receipt.why.startswith("changed since opened: ")
    assert "prompt.txt; unpinned, so never reused: " in receipt.why


def test_coroutines_run_in_one_loop_whoever_calls() -> None:
    async def loop() -> asyncio.AbstractEventLoop:
        return asyncio.get_running_loop()

    async def caller() -> asyncio.AbstractEventLoop:
        return run_coroutine(loop())

    first = run_coroutine(loop())
    found: list[asyncio.AbstractEventLoop] = []
    thread = threading.Thread(target=lambda: found.append(run_coroutine(loop())))
    thread.start()
    thread.join()
    assert found == [first]
    assert asyncio.run(caller()) is first


def test_a_coroutine_that_waits_for_another_is_served_by_the_next_loop() -> None:
    async def inner() -> int:
        return 1

    async def outer() -> int:
        return 1 + run_coroutine(inner())

    assert run_coroutine(outer()) == 2


def test_a_thread_is_served_while_a_coroutine_waits_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_loop, "PATIENCE", 0.1)

    async def inner() -> int:
        return 1

    async def outer() -> list[int]:
        found: list[int] = []
        thread = threading.Thread(target=lambda: found.append(run_coroutine(inner())))
        thread.start()
        thread.join()  # blocks the loop that the thread would use
        return found

    assert run_coroutine(outer()) == [1]


def test_a_loop_that_computes_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_loop, "PATIENCE", 0.02)
    begun = threading.Event()

    async def compute() -> None:
        begun.set()
        time.sleep(0.2)

    async def loop() -> asyncio.AbstractEventLoop:
        return asyncio.get_running_loop()

    usual = run_coroutine(loop())
    thread = threading.Thread(target=lambda: run_coroutine(compute()))
    thread.start()
    begun.wait()
    assert run_coroutine(loop()) is usual
    thread.join()


def test_a_pool_is_served_while_a_coroutine_waits_for_its_result(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_loop, "PATIENCE", 0.02)

    async def inner() -> int:
        return 1

    async def outer() -> int:
        with ThreadPoolExecutor(1) as pool:
            return pool.submit(lambda: run_coroutine(inner())).result()

    monkeypatch.setattr(event_loop, "_LONGEST_LOCK", math.inf)  # the wait itself must be recognised
    found: list[int] = []
    caller = threading.Thread(target=lambda: found.append(run_coroutine(outer())), daemon=True)
    caller.start()
    caller.join(30.0)
    assert found == [1]


def test_a_run_in_threads_within_a_coroutine_is_served(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_loop, "PATIENCE", 0.02)

    async def upper(text: str) -> str:
        return text.upper()

    def ask(input: str) -> str:
        return run_coroutine(upper(input))

    async def outer() -> dict[str, int]:
        return dict(Runner(MemoryStore()).run(ask, DATA).counts)

    assert run_coroutine(outer()) == {"completed": ROWS}


def test_a_call_that_reports_another_loop_is_repeated_twice_at_most_and_counted() -> None:
    starts: list[float] = []

    async def answer(input: str) -> str:
        starts.append(time.monotonic())
        raise RuntimeError("Event loop is closed")

    run = Runner(MemoryStore(), Policy(rate="50/s")).run(answer, Dataset.from_rows([{"input": "a"}]))
    assert run.counts == {"failed": 1}
    assert len(starts) == 3
    assert run.receipt is not None
    assert run.receipt.retried == 2


def test_calls_with_connections_of_another_loop_are_reported_in_the_receipt(
    chat: Chat, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def notebook() -> Run:
        await asyncio.gather(*(chat.ask(str(i)) for i in range(5)))
        monkeypatch.setattr(_Chat, "requests", 0)
        return Runner(MemoryStore()).run(chat.answer, DATA)

    run = asyncio.run(notebook())
    assert run.counts == {"completed": ROWS}
    assert run.receipt is not None
    assert 0 <= _Chat.requests - ROWS <= run.receipt.retried <= 5
    assert run.receipt.retried > 0


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # connections of a closed loop
@pytest.mark.parametrize(("concurrency", "closed"), [(1, True), (1, False), (3, False)])
def test_few_calls_at_once_meet_few_connections_of_another_loop(
    chat: Chat, monkeypatch: pytest.MonkeyPatch, concurrency: int, closed: bool
) -> None:
    async def use() -> None:
        await asyncio.gather(*(chat.ask(str(i)) for i in range(12)))

    async def use_and_run() -> Run:
        await use()
        return Runner(MemoryStore(), policy).run(chat.answer, DATA)

    policy = Policy(concurrency=concurrency)
    if closed:
        asyncio.run(use())
        run = Runner(MemoryStore(), policy).run(chat.answer, DATA)
    else:
        run = asyncio.run(use_and_run())
    assert run.counts == {"completed": ROWS}
    assert run.receipt is not None
    assert 0 < run.receipt.retried <= concurrency
    if closed:
        gc.collect()  # the sockets of its loop warn now, and not in another test


def test_the_context_of_the_caller_is_seen() -> None:
    variable = contextvars.ContextVar("variable", default=0)

    async def read() -> int:
        return variable.get()

    token = variable.set(1)
    assert run_coroutine(read()) == 1
    variable.reset(token)
    assert run_coroutine(read()) == 0


@pytest.mark.parametrize("error", [ValueError("no"), TimeoutError("late"), SystemExit(3), KeyboardInterrupt()])
def test_errors_reach_the_caller_and_the_loop_goes_on(error: BaseException) -> None:
    async def fail() -> None:
        raise error

    async def fine() -> int:
        return 1

    with pytest.raises(type(error)):
        run_coroutine(fail())
    assert run_coroutine(fine()) == 1


@in_fork
def test_an_interrupt_cancels_the_coroutine_and_waits_for_its_end() -> None:
    ended: list[str] = []

    async def slow() -> None:
        os.kill(os.getpid(), signal.SIGINT)
        try:
            await asyncio.sleep(60)
        finally:
            ended.append("ended")

    with pytest.raises(KeyboardInterrupt):
        run_coroutine(slow())
    assert ended == ["ended"]


@in_fork
def test_an_interrupt_ends_calls_that_wait_for_nothing() -> None:
    calls: list[int] = []

    async def busy(input: int) -> int:
        calls.append(input)
        if len(calls) == 10:
            os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.001)
        return input

    with pytest.raises(KeyboardInterrupt):
        Runner(MemoryStore()).run(busy, Dataset.from_rows([{"input": i} for i in range(6000)]))
    assert len(calls) < 6000


def test_a_forked_process_has_its_own_loop() -> None:
    async def name() -> str:
        return threading.current_thread().name

    run_coroutine(name())
    reader, writer = os.pipe()
    assert call_in_fork(lambda: os.write(writer, run_coroutine(name()).encode())) == 0
    assert os.read(reader, 100) == b"evaluand loop"
    for end in (reader, writer):
        os.close(end)
    assert run_coroutine(name()) == "evaluand loop"


def test_connections_of_other_loops_are_found_in_the_causes_of_an_error() -> None:
    def wrapped(error: Exception) -> Exception:
        try:
            raise ConnectionError("Connection error.") from error
        except ConnectionError as raised:
            return raised

    assert is_foreign_connection(wrapped(RuntimeError("<Event> is bound to a different event loop")))
    assert is_foreign_connection(RuntimeError("Event loop is closed"))
    assert not is_foreign_connection(wrapped(RuntimeError("no")))
    assert not is_foreign_connection(ValueError("Event loop is closed"))


def test_a_client_that_was_used_has_the_same_fingerprint(chat: Chat) -> None:
    async def gather() -> list[str]:
        return await asyncio.gather(*(chat.ask(str(i)) for i in range(5)))

    def parts() -> dict[str, str]:
        return dict(as_task(chat.answer).identify().parts)

    before = parts()
    run_coroutine(gather())
    run_coroutine(gather())
    assert parts() == before


def test_what_refers_to_all_that_runs_here_is_not_read_for_a_fingerprint() -> None:
    async def loop() -> asyncio.AbstractEventLoop:
        return asyncio.get_running_loop()

    held = {run_coroutine(loop()), threading.current_thread()}

    def answer(input: str) -> str:
        return input * len(held)

    identity = as_task(answer).identify()
    assert not identity.pinned
    assert as_task(answer).identify().parts == identity.parts


# The end of a loop


def test_what_is_asked_after_a_loop_has_ended_is_answered_by_the_next() -> None:
    async def double(n: int) -> int:
        await asyncio.sleep(0)
        return 2 * n

    def ask() -> None:
        assert run_coroutine(double(1)) == 2
        event_loop._end_all()
        assert [run_coroutine(double(n)) for n in range(3)] == [0, 2, 4]

    assert call_in_fork(ask) == 0
