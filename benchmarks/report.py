"""What a report of many examples costs: CPU time to write it, its size, and how long a browser takes to open it.

    python benchmarks/report.py [--rows 100000] [--matches 100000] [--chromium /usr/bin/chromium]

Makes a run of questions and answers of some hundred characters each, with a failure and a row that is not scored now
and then, writes its report, and opens it in Chromium (`pip install 'evaluand[browser]'`). With `--matches` it does the
same for so many matches of four systems.
"""

from __future__ import annotations

import argparse
import os
import random
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path

from meter import cpu, peak_memory

from evaluand import Accuracy, Aggregator, Dataset, DirectoryStore, Evaluator, Matcher, Mean, Measure, Runner, Score
from evaluand.aggregation.aggregator import Aggregation
from evaluand.cli.report import write
from evaluand.evaluation.comparison_scorers import Preference
from evaluand.evaluation.evaluator import Evaluation
from evaluand.matches.ratings.rating import rate
from evaluand.report.facts.aggregation import metrics_facts
from evaluand.report.facts.report import Part, report_facts
from evaluand.report.html.examples import examples_of
from evaluand.report.html.report import write_report
from evaluand.run.runner import Run

WORDS = [f"{a}{b}{c}" for a in ("ba", "ke", "lo", "mi", "ru") for b in ("sta", "ne", "vor") for c in ("", "n", "ling")]
TOPICS = ("algebra", "geometry", "history", "physics")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--chromium", default="/usr/bin/chromium")
    parser.add_argument("--matches", type=int, help="measure a report of so many matches instead")
    options = parser.parse_args()
    if options.matches:
        return report_of_matches(options.matches, options.chromium)
    with tempfile.TemporaryDirectory(prefix="evaluand-bench-") as folder:
        store, path = Path(folder) / "store", Path(folder) / "report.html"
        with ProcessPoolExecutor(1, get_context("spawn")) as other:  # so that its memory is not counted here
            run, evaluation, aggregation = other.submit(made, options.rows, store).result()
        kept = DirectoryStore(store)
        part = Part("echo", Run(kept, run), Evaluation(kept, evaluation))
        metrics = metrics_facts(Aggregation(kept, aggregation))
        began, clock, memory = cpu(), time.perf_counter(), peak_memory()
        facts = report_facts("benchmark", [part], metrics)
        with path.open("wb") as file:
            write_report(facts, examples_of([part], facts["scores"]), file)
        print(f"written in {cpu() - began:.1f} s of CPU, {time.perf_counter() - clock:.1f} s by the clock")
        print(f"{path.stat().st_size / 1e6:.1f} MB; memory rose by {(peak_memory() - memory) / 2**20:.0f} MiB")
        if os.path.exists(options.chromium):
            opened(path, options.chromium, options.rows)


def report_of_matches(matches: int, chromium: str) -> None:
    with tempfile.TemporaryDirectory(prefix="evaluand-bench-") as folder:
        store, path = Path(folder) / "store", Path(folder) / "report.html"
        with ProcessPoolExecutor(1, get_context("spawn")) as other:
            other.submit(judged, matches, store).result()
        began, clock, memory = cpu(), time.perf_counter(), peak_memory()
        *_, rows = write(DirectoryStore(store), "benchmark", str(path))
        assert rows is not None
        print(f"{rows.n:,} pairs in {cpu() - began:.1f} s of CPU, {time.perf_counter() - clock:.1f} s by the clock")
        print(f"{path.stat().st_size / 1e6:.1f} MB; memory rose by {(peak_memory() - memory) / 2**20:.0f} MiB")
        if os.path.exists(chromium):
            open_matches(path, chromium)


def open_matches(path: Path, chromium: str) -> None:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page()
        for _ in range(3):
            page.goto(f"file://{path}")
            page.wait_for_selector(".pair-line .asked-of:not(:text('…'))")
            print(f"first rows after {page.evaluate('performance.now()'):.0f} ms")
        browser.close()


def judged(matches: int, folder: Path) -> None:
    """Matches of four systems, each pair in both orders, and their ratings."""
    store, chance = DirectoryStore(folder), random.Random(0)
    data = Dataset.from_rows({"input": f"{i}: {' '.join(words(chance, 30))}?"} for i in range(-(-matches // 12)))
    runs = [Runner(store).run(partial(reply, system), data) for system in range(4)]
    rate(Matcher().match(runs, prefer, labels=["a", "b", "c", "d"], name="benchmark"), name="benchmark")


def reply(system: int, text: str) -> str:
    return " ".join(words(random.Random(f"{system}{text}"), 40 + 10 * system))


def prefer(first: str, second: str) -> Preference:
    share = (hash_of(first) + 3 * hash_of(second)) % 1000 / 1000
    return Preference(share, explanation=f"{len(first)} characters against {len(second)}")


def answer(text: str) -> str:
    if hash_of(text) % 97 == 0:
        raise ValueError(f"no answer to {text[:20]}")
    return " ".join(words(random.Random(text), 40))


def close(output: str, expected: str) -> Score:
    score = hash_of(output) % 1000 / 1000
    if score > 0.98:
        return Score.abstained("the answer holds no number")
    return Score(score, label=expected[:1], explanation=f"{len(output)} characters against {len(expected)}")


def right(output: str, expected: str) -> bool:
    return hash_of(output) % 3 == 0


def hash_of(text: str) -> int:
    return sum(map(ord, text)) * 7919 % 104_729


def words(chance: random.Random, n: int) -> list[str]:
    return chance.choices(WORDS, k=n)


def made(rows: int, folder: Path) -> tuple[str, str, str]:
    """The ids of a run of so many examples, graded and summarised."""
    store = DirectoryStore(folder)
    chance = random.Random(0)
    data = Dataset.from_rows(
        (
            {
                "input": f"{i}: {' '.join(words(chance, 30))}?",
                "expected": " ".join(words(chance, 12)),
                "topic": chance.choice(TOPICS),
            }
            for i in range(rows)
        ),
        attributes=["topic"],
    )
    run = Runner(store).run(answer, data, name="benchmark")
    evaluation = Evaluator().evaluate(run, {"close": close, "right": right}, name="benchmark")
    measures = [Measure("right", Accuracy(), by=("topic",)), Measure("close", Mean(range=(0, 1)), by=("topic",))]
    aggregation = Aggregator().aggregate([evaluation], measures, labels=["echo"])
    return run.id, evaluation.id, aggregation.id


def opened(path: Path, chromium: str, rows: int) -> None:
    """Opens the report, and searches for what stands in its last row."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page()
        for _ in range(3):
            page.goto(f"file://{path}")
            page.wait_for_selector("html[data-ready]")
            complete = page.evaluate("performance.getEntriesByType('navigation')[0].domComplete")
            print(f"page complete after {complete:.0f} ms", end=", ")
            print(f"first rows after {page.evaluate('document.documentElement.dataset.ready')} ms", end=", ")
            clock = time.perf_counter()
            page.fill("#grid-text", f"{rows - 1}: ")
            page.keyboard.press("Enter")
            page.locator(".row-count", has_text="1 of").wait_for(timeout=120_000)
            print(f"all searched in {time.perf_counter() - clock:.1f} s")
        browser.close()


if __name__ == "__main__":
    main()
