"""What a request to a model costs, beside OpenAI's SDK: the same requests to the same server on loopback, in turn.

    python benchmarks/models.py             # three rounds: ten minutes
    python benchmarks/models.py --quick     # a tenth of the requests, once: a minute

CPU time and memory are those of the client; the server, which answers after 50 ms, is another process. Each measurement
is made in a process of its own, and the median of the rounds is shown. `aiohttp` posts prepared bytes and parses the
answer; `SDK` is a bare loop of `chat.completions.create` over the SDK's aiohttp backend, without its retries; `SDK,
unread` leaves the answer as the bytes that came; `SDK, observed` makes each request within a traced call. `ChatModel`
validates, caches, counts and prices; `judge` is the kind `judge` with the rubric `correctness` on the rows of a run:
prompt, request, verdict, journal, spans and table.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Any

from children import clean_environment, run, say
from meter import cpu, peak_memory, speed

IN_FLIGHT = (1, 32, 256)
REQUESTS = {1: 200, 32: 5_000, 256: 10_000}
LATENCY = 0.05  # seconds until the server answers
TARGET = 0.5  # ms of CPU time that a request of a judge may cost more than one of the SDK
SCHEMA = {
    "type": "object",
    "properties": {"reasons": {"type": "string"}, "verdict": {"enum": ["correct", "incorrect", "not attempted"]}},
    "required": ["reasons", "verdict"],
    "additionalProperties": False,
}
REPLY = json.dumps({"reasons": "It names the capital and nothing else.", "verdict": "correct"})

Ask = Callable[[int], Awaitable[Any]]


def main() -> None:
    options = _options()
    if options.serve:
        return asyncio.run(_serve())
    if options.measure:
        name, in_flight, requests = options.measure
        return print(json.dumps(_measure(name, options.url, int(in_flight), int(requests))))
    rounds, share = (1, 10) if options.quick else (options.rounds, 1)
    server = subprocess.Popen([sys.executable, __file__, "--serve"], stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        url = f"http://127.0.0.1:{int(server.stdout.readline())}/v1"
        _show(_measure_all(url, rounds, share, options.clients))
    finally:
        server.kill()


def _measure_all(
    url: str, rounds: int, share: int, clients: Sequence[str]
) -> dict[tuple[int, str], list[dict[str, float]]]:
    """The results of each round, by requests in flight and client."""
    found: dict[tuple[int, str], list[dict[str, float]]] = {}
    for turn in range(rounds):
        for in_flight in IN_FLIGHT:
            for name in clients:
                say(f"round {turn + 1}: {name}, {in_flight} in flight")
                requests = str(max(REQUESTS[in_flight] // share, in_flight, 20))
                command = [sys.executable, __file__, "--url", url, "--measure", name, str(in_flight), requests]
                found.setdefault((in_flight, name), []).append(run(command, clean_environment()))
    return found


# Clients


async def plain(url: str) -> Ask:
    import aiohttp

    session = aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0), timeout=aiohttp.ClientTimeout(total=None))
    headers = {"Content-Type": "application/json"}

    async def ask(number: int) -> Any:
        content = json.dumps(_body(number)).encode()
        async with session.post(f"{url}/chat/completions", data=content, headers=headers) as answer:
            return json.loads(await answer.read())

    return ask


async def sdk(url: str) -> Ask:
    import openai

    client = _sdk_client(url)

    async def ask(number: int) -> openai.types.chat.ChatCompletion:
        return await client.chat.completions.create(**_body(number))

    return ask


async def sdk_unread(url: str) -> Ask:
    client = _sdk_client(url)

    async def ask(number: int) -> bytes:
        return (await client.chat.completions.with_raw_response.create(**_body(number))).http_response.content

    return ask


async def sdk_observed(url: str) -> Ask:
    from evaluand import Trace
    from evaluand.models.capture import Capture, observable
    from evaluand.models.usage import Spending

    ask = await sdk(url)
    observable(True).__enter__()  # for all requests, as a run does

    async def ask_observed(number: int) -> Any:
        own = Spending()
        with Trace.start("answer").root, Capture(None, lambda own=own: own, is_on=True):
            return await ask(number)

    return ask_observed


async def chat_model(url: str) -> Ask:
    from evaluand import ChatModel

    model = ChatModel(url, "small", version="1", timeout=600)
    return lambda number: model.complete_async(_body(number)["messages"])


async def chat_model_with_schema(url: str) -> Ask:
    from evaluand import ChatModel

    model = ChatModel(url, "small", version="1", timeout=600)
    return lambda number: model.complete_async(_body(number)["messages"], schema=SCHEMA)


def judge(url: str, in_flight: int, requests: int) -> dict[str, float]:
    """Grades the rows of a run, each by one request."""
    from evaluand import ChatModel, Dataset, Evaluator, Policy, Runner, task
    from evaluand.judges import Judge

    @task
    def capital(question: str) -> str:
        return "Paris"

    def rows(first: int, n: int) -> Dataset:
        questions = (f"Row {number}: what is the capital of France?" for number in range(first, first + n))
        return Dataset.from_rows([{"input": question, "expected": "Paris"} for question in questions])

    def grade(made: Any) -> Any:
        return Evaluator(policy=Policy(concurrency=in_flight)).evaluate(made, {"verdict": grader})

    grader = Judge(rubric="correctness", model=ChatModel(url, "small", version="1"))
    grade(Runner().run(capital, rows(0, 2)))  # what is imported and made once
    made = Runner().run(capital, rows(2, requests))
    with _Meter(requests) as meter:
        done = grade(made)
    assert done.counts["verdict"] == {"scored": requests}
    return meter.result


CLIENTS: dict[str, Callable[..., Any]] = {
    "aiohttp": plain,
    "SDK": sdk,
    "SDK, unread": sdk_unread,
    "SDK, observed": sdk_observed,
    "ChatModel": chat_model,
    "ChatModel, schema": chat_model_with_schema,
    "judge": judge,
}


def _sdk_client(url: str) -> Any:
    import openai

    return openai.AsyncOpenAI(
        base_url=url, api_key="none", max_retries=0, http_client=openai.DefaultAioHttpClient(timeout=None)
    )


def _body(number: int) -> dict[str, Any]:
    question = f"Row {number}: is “Paris” a good answer to “What is the capital of France?”"
    messages = [{"role": "system", "content": "You judge answers."}, {"role": "user", "content": question}]
    return {"model": "small", "messages": messages, "temperature": 0.0, "max_tokens": 512}


# Measuring


class _Meter:
    """What a number of requests took."""

    def __init__(self, requests: int) -> None:
        self._requests = requests
        self.result: dict[str, float] = {}

    def __enter__(self) -> _Meter:
        self._cpu, self._wall = cpu(), time.perf_counter()
        return self

    def __exit__(self, *error: object) -> None:
        used, took = cpu() - self._cpu, time.perf_counter() - self._wall
        self.result = {"ms": 1000 * used / self._requests, "per_second": self._requests / took}


def _measure(name: str, url: str, in_flight: int, requests: int) -> dict[str, float]:
    result = judge(url, in_flight, requests) if name == "judge" else asyncio.run(_loop(name, url, in_flight, requests))
    return result | {"memory": peak_memory(), "speed": speed()}


async def _loop(name: str, url: str, in_flight: int, requests: int) -> dict[str, float]:
    """Makes the requests, so many in flight, without anything around them."""
    used = cpu()
    ask = await CLIENTS[name](url)
    await ask(-1)
    started = cpu() - used
    numbers = iter(range(requests))

    async def work() -> None:
        for number in numbers:
            await ask(number)

    with _Meter(requests) as meter:
        await asyncio.gather(*(work() for _ in range(in_flight)))
    return meter.result | {"start": started}


def _show(found: dict[tuple[int, str], list[dict[str, float]]]) -> None:
    speeds = [1000 * result["speed"] for results in found.values() for result in results]
    print(f"{os.cpu_count()} CPUs, load {os.getloadavg()[0]:.1f}; a fixed piece of work took ", end="")
    print(f"{min(speeds):.0f} to {max(speeds):.0f} ms of CPU time\n")
    print(f"{'in flight':>9}  {'client':<18}{'ms of CPU':>9}{'more than SDK':>15}{'calls/s':>9}", end="")
    print(f"{'first call, ms of CPU':>23}{'peak memory':>14}")
    for (in_flight, name), results in found.items():
        ms, per_second, memory = (_median(results, of) for of in ("ms", "per_second", "memory"))
        more = ms - _median(found.get((in_flight, "SDK"), results), "ms")
        start = f"{1000 * _median(results, 'start'):,.0f}" if "start" in results[0] else ""
        print(f"{in_flight:9}  {name:<18}{ms:9.3f}{more:+15.3f}{per_second:9,.0f}{start:>23}", end="")
        print(f"{memory / 2**20:10,.0f} MiB")
    if not {(IN_FLIGHT[-1], name) for name in ("judge", "SDK")} <= found.keys():
        return
    more = _median(found[IN_FLIGHT[-1], "judge"], "ms") - _median(found[IN_FLIGHT[-1], "SDK"], "ms")
    met = "yes" if more <= TARGET else "NO"
    print(f"\nmore than the SDK for a judge, {IN_FLIGHT[-1]} in flight: {more:+.3f} ms, target ≤ {TARGET}, met? {met}")


def _median(results: list[dict[str, float]], name: str) -> float:
    return statistics.median(result[name] for result in results)


# The server


class _Server(asyncio.Protocol):
    """Answers each request on a connection after a while, whatever it asks."""

    def connection_made(self, transport: Any) -> None:
        self._transport, self._received = transport, b""

    def data_received(self, data: bytes) -> None:
        self._received += data
        for _ in self._requests():
            asyncio.get_running_loop().call_later(LATENCY, self._transport.write, _ANSWER)

    def _requests(self) -> Iterator[None]:
        while (end := self._received.find(b"\r\n\r\n")) >= 0:
            head = self._received[:end].lower()
            at = head.index(b"content-length:") + len(b"content-length:")
            size = end + 4 + int(head[at:].split(b"\r\n", 1)[0])
            if len(self._received) < size:
                return
            self._received = self._received[size:]
            yield


async def _serve() -> None:
    server = await asyncio.get_running_loop().create_server(_Server, "127.0.0.1", 0, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


def _answer() -> bytes:
    message = {"role": "assistant", "content": REPLY, "refusal": None}
    choice = {"index": 0, "message": message, "finish_reason": "stop", "logprobs": None}
    usage = {"prompt_tokens": 30, "completion_tokens": 20, "total_tokens": 50}
    answer = {"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "small", "choices": [choice]}
    body = json.dumps({**answer, "usage": usage}).encode()
    return b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)


_ANSWER = _answer()


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="a tenth of the requests, once")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--clients", nargs="+", choices=CLIENTS, default=list(CLIENTS), help="by default all")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--measure", nargs=3, help=argparse.SUPPRESS, metavar=("CLIENT", "IN_FLIGHT", "REQUESTS"))
    parser.add_argument("--url", help=argparse.SUPPRESS)
    return parser.parse_args()


if __name__ == "__main__":
    main()
