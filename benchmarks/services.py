"""What a call to a service that answers after 50 ms costs: with aiohttp alone, with our client, and in a whole run.

    python benchmarks/services.py            # a quarter of an hour
    python benchmarks/services.py --quick    # a tenth of the calls, one round: a minute

The caller has one core, the service another. Each measurement is a process; the three take turns, and the medians of
the rounds are shown. Opening connections is included, and in a run everything from its start to its seal, with a store
on disk. On a machine that others use as well, the CPU time of a call says more than calls per second; "by core" are the
calls in a second of CPU time, which a core makes that nobody else uses, unless it waits for answers.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from typing import Any

import children
import meter

DELAY = 0.05  # seconds until the service answers
BODY = b'{"text":"Paris","score":0.5}'
CALLERS = ("aiohttp", "client", "run")
IN_FLIGHT = (16, 64, 256, 1000)
CALLS = {16: 3_000, 64: 5_000, 256: 10_000, 1000: 10_000}
LEAST = {256: 1500, 1000: 1800}  # calls per second
MOST = 500  # µs of CPU time per call
STEEPEST = 1.25  # of the costs at 1,000 in flight by those at 16


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--measure", nargs=3, help=argparse.SUPPRESS, metavar=("CALLER", "IN_FLIGHT", "CALLS"))
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.serve:
        asyncio.run(serve())
    elif chosen.measure:
        caller, in_flight, calls = chosen.measure
        print(json.dumps(measure(caller, int(in_flight), int(calls))))
    else:
        show(measure_all(1 if chosen.quick else chosen.rounds, 10 if chosen.quick else 1))


def measure_all(rounds: int, share: int) -> dict[tuple[str, int], list[dict[str, float]]]:
    """The results of each round, by caller and calls in flight."""
    found: dict[tuple[str, int], list[dict[str, float]]] = {}
    for number in range(rounds):
        for in_flight in IN_FLIGHT:
            for caller in CALLERS:
                children.say(f"round {number + 1}: {caller}, {in_flight} in flight")
                asked = ("--measure", caller, str(in_flight), str(max(CALLS[in_flight] // share, 2 * in_flight)))
                result = children.run((sys.executable, __file__, *asked), dict(os.environ))
                found.setdefault((caller, in_flight), []).append(result)
    return found


def show(found: dict[tuple[str, int], list[dict[str, float]]]) -> None:
    speeds = [result["speed"] * 1e3 for results in found.values() for result in results]
    print(f"{os.cpu_count()} CPUs, load {os.getloadavg()[0]:.1f}; a fixed piece of work took ", end="")
    print(f"{min(speeds):.0f} to {max(speeds):.0f} ms of CPU time\n")
    print("in flight  caller   calls/s  by core  by aiohttp  µs of CPU  by aiohttp  target             met?")
    costs = {}
    for in_flight in IN_FLIGHT:
        for caller in CALLERS:
            per_second, cost = (
                statistics.median(result[name] for result in found[caller, in_flight])
                for name in ("per_second", "cost")
            )
            costs[caller, in_flight] = per_second, cost
            plain = costs["aiohttp", in_flight]
            line = f"{in_flight:9}  {caller:7}  {per_second:7,.0f}  {1e6 / cost:7,.0f}  {per_second / plain[0]:9.2f}×"
            line += f"  {cost:9.0f}  {cost / plain[1]:9.2f}×"
            if caller == "run":
                least = LEAST.get(in_flight, 0)
                wanted = (f"≥ {least:,}/s, " if least else "") + f"≤ {MOST} µs"
                line += f"  {wanted:17}  {'yes' if per_second >= least and cost <= MOST else 'no'}"
            print(line)
    growth = costs["run", IN_FLIGHT[-1]][1] / costs["run", IN_FLIGHT[0]][1]
    print(f"a run at {IN_FLIGHT[-1]:,} in flight by one at {IN_FLIGHT[0]}: {growth:.2f}×, target ≤ {STEEPEST}×")


def measure(caller: str, in_flight: int, calls: int) -> dict[str, float]:
    """Calls per second and µs of CPU time per call."""
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, cores[:1])
    server = subprocess.Popen([sys.executable, __file__, "--serve"], stdout=subprocess.PIPE, text=True)
    try:
        os.sched_setaffinity(server.pid, cores[-1:])
        assert server.stdout is not None
        url = f"http://127.0.0.1:{server.stdout.readline().strip()}/answer"
        work: Callable[[int, int], Any] = {"aiohttp": with_aiohttp, "client": with_client, "run": with_run}[caller](url)
        work(10, 10)  # imports and whatever else is done once
        gc.collect()
        began, used = time.perf_counter(), meter.cpu()
        work(in_flight, calls)
        took, cost = time.perf_counter() - began, meter.cpu() - used
        return {"per_second": calls / took, "cost": cost / calls * 1e6, "speed": meter.speed()}
    finally:
        server.kill()
        server.wait()


def with_aiohttp(url: str) -> Callable[[int, int], None]:
    import aiohttp

    async def work(in_flight: int, calls: int) -> None:
        connector = aiohttp.TCPConnector(limit=0)
        async with aiohttp.ClientSession(connector=connector, timeout=aiohttp.ClientTimeout(total=None)) as session:

            async def ask(content: bytes) -> Any:
                async with session.post(url, data=content, headers={"Content-Type": "application/json"}) as answer:
                    return json.loads(await answer.read())

            await make_calls(ask, in_flight, calls)

    return lambda in_flight, calls: asyncio.run(work(in_flight, calls))


def with_client(url: str) -> Callable[[int, int], None]:
    from evaluand.engine.http import HttpClient

    async def work(in_flight: int, calls: int) -> None:
        await make_calls(HttpClient(url, "POST", {}).ask, in_flight, calls)

    return lambda in_flight, calls: asyncio.run(work(in_flight, calls))


async def make_calls(ask: Callable[[bytes], Awaitable[Any]], in_flight: int, calls: int) -> None:
    numbers = iter(range(calls))

    async def work() -> None:
        for number in numbers:
            await ask(json.dumps({"text": question(number)}).encode())

    await asyncio.gather(*(work() for _ in range(in_flight)))


def with_run(url: str) -> Callable[[int, int], None]:
    from evaluand import Dataset, DirectoryStore, Policy, Runner
    from evaluand.run.tasks.service import ServiceTask

    def work(in_flight: int, calls: int) -> None:
        rows = Dataset.from_rows([{"text": question(number)} for number in range(calls)], input=["text"])
        task = ServiceTask(url, model="capitals", version=str(calls))
        with tempfile.TemporaryDirectory() as folder:
            run = Runner(DirectoryStore(folder), Policy(concurrency=in_flight)).run(task, rows)
            assert run.counts == {"completed": calls}

    return work


def question(number: int) -> str:
    return f"What is the capital of country {number}?"


async def serve() -> None:
    """Answers each request after the delay, with as little work as possible; prints the port."""
    loop = asyncio.get_running_loop()
    answer = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%b" % (len(BODY), BODY)

    class Service(asyncio.Protocol):
        received = b""

        def connection_made(self, transport: Any) -> None:
            self.transport = transport

        def data_received(self, data: bytes) -> None:
            self.received += data
            head, mark, body = self.received.partition(b"\r\n\r\n")
            if mark and len(body) >= int(head.lower().partition(b"content-length:")[2].split(b"\r\n", 1)[0]):
                self.received = b""
                loop.call_later(DELAY, self.answer)

        def answer(self) -> None:
            if not self.transport.is_closing():
                self.transport.write(answer)

    server = await loop.create_server(Service, "127.0.0.1", 0, backlog=2048)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    main()
