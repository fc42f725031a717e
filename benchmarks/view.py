"""What the page costs: paint, rows, filters, the list, memory of the server, and how far a watched run is shown behind.

    python benchmarks/view.py [--rows 100000] [--runs 2000] [--only rows,list,memory,live]

Everything is opened by a real server in Chromium (`pip install 'evaluand[view,browser]'`). The live part runs an
experiment of 2,000 examples alternately alone and watched by two browsers, and compares the CPU time of the run.
"""

from __future__ import annotations

import argparse
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from evaluand import Accuracy, Aggregator, Dataset, DirectoryStore, Evaluator, Measure, Runner
from evaluand.run.task import FunctionTask

WORDS = ("the", "of", "and", "sum", "apples", "people", "train", "price", "store", "many", "hours", "minutes", "left")
TOPICS = ("plus", "minus", "times", "ratio")
SYSTEMS = ("base", "small", "large", "xl")
WATCHERS = 2
LIVE_ROWS = 2000
COMMAND = (sys.executable, "-c", "from evaluand.cli import main; main()")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--runs", type=int, default=2000)
    parser.add_argument("--memory-rows", type=int, default=1_000_000)
    parser.add_argument("--pairs", type=int, default=10)
    parser.add_argument("--only", default="rows,list,memory,live")
    parser.add_argument("--chromium", default="/usr/bin/chromium")
    options = parser.parse_args()
    parts: dict[str, Callable[[Path, Any], None]] = {
        "rows": partial(measure_rows, options.rows),
        "list": partial(measure_list, options.runs),
        "memory": partial(measure_memory, options.memory_rows),
        "live": partial(measure_live, options.pairs),
    }
    with open_browser(options.chromium) as browser:
        for name in options.only.split(","):
            with tempfile.TemporaryDirectory(prefix="evaluand-bench-") as folder:
                parts[name](Path(folder), browser)


# Rows


def measure_rows(rows: int, folder: Path, browser: Any) -> None:
    make_results(folder / "store", rows, SYSTEMS)
    with serve(folder / "store") as (link, process):
        for attempt in range(4):
            page = browser.new_page()
            page.goto(link(page))
            page.goto(f"{origin(page)}/e/big")
            page.wait_for_selector("html[data-ready]", timeout=120_000)
            paint = page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime")
            ready, nodes = page.evaluate(
                "[document.documentElement.dataset.ready, document.querySelectorAll('*').length]"
            )
            what = "cold" if attempt == 0 else "warm"
            print(f"{rows:,} rows × {len(SYSTEMS)}, {what}: painted {paint:.0f} ms, rows {ready} ms, {nodes:,} nodes")
            if attempt < 3:
                page.close()
        times = [
            time_filter(page, text) for text in ('topic == "plus"', 'base.score.right < 1 and topic == "ratio"', "")
        ]
        print(f"a filter: {', '.join(f'{each:.0f}' for each in times)} ms")
        began, n = cpu_of(process.pid), 0
        for place in range(0, rows, rows // 10):
            page.evaluate(f"document.querySelector('.table').scrollTop = {place * 58}")
            page.wait_for_timeout(400)
            n += 1
        used = (cpu_of(process.pid) - began) / n
        print(f"some 25 rows × {len(SYSTEMS)} on the screen after a jump: {1000 * used:.0f} ms of the server's CPU")


def time_filter(page: Any, text: str) -> float:
    """Milliseconds from Enter until the number of rows has changed."""
    page.get_by_label("Filter", exact=True).fill(text)
    found: float = page.evaluate(
        """() => new Promise((resolve) => {
          const count = document.querySelector(".row-count"), began = performance.now();
          const tell = () => resolve(performance.now() - began);
          new MutationObserver(tell).observe(count, {childList: true, characterData: true, subtree: true});
          document.querySelector("#grid-filter").form.requestSubmit();
        })"""
    )
    return found


def make_results(folder: Path, rows: int, systems: tuple[str, ...]) -> None:
    store, chance = DirectoryStore(folder), random.Random(0)
    data = Dataset.from_rows(
        (
            {"question": sentence(chance, 40), "answer": str(chance.randrange(1000)), "topic": chance.choice(TOPICS)}
            for _ in range(rows)
        ),
        input="question",
        expected="answer",
        attributes=["topic"],
        name="big",
    )
    graded = []
    for number, system in enumerate(systems):
        run = Runner(store).run(
            FunctionTask(partial(reply, number), name=system, version="1"), data, name=f"big/{system}"
        )
        graded.append(Evaluator(store).evaluate(run, {"right": right}, name=f"big/{system}"))
    Aggregator(store).aggregate(graded, [Measure("right", Accuracy(), by="topic")], name="big", labels=list(systems))


def sentence(chance: random.Random, n: int) -> str:
    return " ".join(chance.choices(WORDS, k=n))


def reply(system: int, text: str) -> str:
    return f"{text[:200]} {hash_of(text) % (5 + system)}"


def right(output: str, expected: str) -> bool:
    return not output.endswith("0")


def hash_of(text: str) -> int:
    return sum(map(ord, text)) * 7919 % 104_729


# The list, and memory


def measure_list(runs: int, folder: Path, browser: Any) -> None:
    store = DirectoryStore(folder / "store")
    data = Dataset.from_rows({"input": f"{i}"} for i in range(3))
    for number in range(runs):
        Runner(store).run(
            FunctionTask(str.upper, version=str(number)), data, name=f"experiment {number // 4}/{number % 4}"
        )
    with serve(folder / "store") as (link, _):
        page = browser.new_page()
        for attempt in range(3):
            page.goto(link(page) if attempt == 0 else origin(page))
            page.wait_for_selector(".entry", timeout=60_000)
            shown = page.evaluate("performance.now()")
            took = page.evaluate(
                "performance.getEntriesByType('resource').find((one) => one.name.endsWith('/api/index')).duration"
            )
            print(f"a list of {runs:,} runs: {took:.0f} ms from the server, shown after {shown:.0f} ms")


def measure_memory(rows: int, folder: Path, browser: Any) -> None:
    make_results(folder / "store", rows, ("base",))
    with serve(folder / "store") as (link, process):
        page = browser.new_page()
        page.goto(link(page))
        page.goto(f"{origin(page)}/e/big")
        page.wait_for_selector("html[data-ready]", timeout=300_000)
        for place in range(0, rows, rows // 10):
            page.evaluate(f"document.querySelector('.table').scrollTop = {16e6 * place / rows}")
            page.wait_for_timeout(300)
        ready = page.evaluate("document.documentElement.dataset.ready")
        print(f"{rows:,} rows: rows after {ready} ms, server {memory_of(process.pid)}")


# A run that is watched


def measure_live(pairs: int, folder: Path, browser: Any) -> None:
    alone, watched, lags = [], [], list[float]()
    for number in range(pairs):
        for is_watched in (False, True) if number % 2 else (True, False):
            store = folder / f"{number}-{is_watched}"
            write_experiment(store)
            used, lag = run_once(store, browser if is_watched else None)
            (watched if is_watched else alone).append(used)
            lags += lag
    ratios = [100 * (b / a - 1) for a, b in zip(alone, watched, strict=True)]
    first, second = statistics.median(alone), statistics.median(watched)
    print(f"{LIVE_ROWS:,} rows, {pairs} pairs: {first:.2f} s of CPU alone, {second:.2f} s watched by {WATCHERS}")
    print(f"more CPU: median {statistics.median(ratios):+.1f} %, {min(ratios):+.1f} to {max(ratios):+.1f} %")
    print(f"a row is shown after: median {statistics.median(lags):.2f} s, at most {max(lags):.2f} s")


def write_experiment(folder: Path) -> None:
    folder.mkdir()
    (folder / "app.py").write_text(
        "import asyncio\nasync def answer(text):\n    await asyncio.sleep(0.04)\n    return text.upper()\n"
        "def same(output, expected):\n    return output == expected\n"
    )
    (folder / "rows.jsonl").write_text(
        "".join(f'{{"input": "a {i}", "expected": "A {i}"}}\n' for i in range(LIVE_ROWS))
    )
    (folder / "e.yaml").write_text(
        "name: live\ndataset: {path: rows.jsonl, input: input, expected: expected}\n"
        "tasks: {mine: {function: app.py:answer, version: '1'}}\n"
        "scorers: {same: {function: app.py:same, version: '1'}}\n"
        "metrics: [accuracy]\nrun: {concurrency: 8}\n"
    )


def run_once(folder: Path, browser: Any) -> tuple[float, list[float]]:
    """CPU seconds of a run, and for its rows the seconds from their end until a browser shows them."""
    command = [*COMMAND, "run", "e.yaml", "--quiet", "--store", "store"]
    (folder / "store").mkdir()
    if browser is None:
        return time_run(command, folder), []
    with serve(folder / "store") as (link, _):
        pages = [browser.new_page() for _ in range(WATCHERS)]
        for page in pages:
            page.goto(link(page))
        process = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL)
        while process.poll() is None and not list((folder / "store").glob("runs/*/*")):
            time.sleep(0.05)
        for page in pages:
            page.goto(f"{origin(page)}/live/newest")
            page.evaluate(
                """() => { globalThis.seen = []; setInterval(() => {
                  const bar = document.querySelector("progress.done");
                  const [, last] = globalThis.seen.at(-1) ?? [];
                  if (bar && bar.value !== last) globalThis.seen.push([Date.now() / 1000, bar.value]);
                }, 10); }"""
            )
        used = wait_for(process)
        pages[0].wait_for_timeout(1500)
        seen = [page.evaluate("globalThis.seen") for page in pages]
        for page in pages:
            page.close()
    return used, [lag for each in seen for lag in compute_lags(folder / "store", each)]


def compute_lags(folder: Path, seen: list[list[float]]) -> list[float]:
    store = DirectoryStore(folder)
    [run] = (ref.id for ref in store.refs() if ref.kind == "runs")
    table = next(iter(store.read("runs", run, "responses", ["started", "duration"]))).to_pydict()
    ends = sorted(
        started.timestamp() + took.total_seconds()
        for started, took in zip(table["started"], table["duration"], strict=True)
    )
    lags, shown = [], 0
    for at, done in seen:
        lags += [
            at - end for end in ends[shown : int(done)] if end > seen[0][0]
        ]  # those before the page was open do not count
        shown = max(shown, int(done))
    return lags


def time_run(command: list[str], folder: Path) -> float:
    return wait_for(subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL))


def wait_for(process: subprocess.Popen[bytes]) -> float:
    """Seconds of CPU that a process has used when it ends."""
    _, status, usage = os.wait4(process.pid, 0)
    assert status == 0
    process.returncode = 0
    return usage.ru_utime + usage.ru_stime


# Servers and browsers


@contextmanager
def open_browser(chromium: str) -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        yield browser.new_context()
        browser.close()


@contextmanager
def serve(store: Path) -> Iterator[tuple[Callable[[Any], str], subprocess.Popen[str]]]:
    """A function of a page that returns the address by which a browser is let in, and the server's process."""
    command = [*COMMAND, "view", "--no-browser", "--store", str(store)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            link = process.stdout.readline().split(" is shown at ")[1].split(";")[0].strip()
            host = link.split("/?")[0]
            known = list[str]()

            def address(page: Any) -> str:
                known.append(link)
                return link if len(known) == 1 else host  # it opens once; the pages share the cookie

            yield address, process
        finally:
            process.terminate()


def origin(page: Any) -> str:
    found: str = page.evaluate("location.origin")
    return found


def cpu_of(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def memory_of(pid: int) -> str:
    lines = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    return ", ".join(
        f"{int(lines[name].split()[0]) / 1024:.0f} MiB {what}"
        for name, what in (("VmHWM", "at most"), ("VmRSS", "now"))
    )


if __name__ == "__main__":
    main()
