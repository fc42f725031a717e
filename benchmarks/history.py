"""What a store costs that already holds much: `python benchmarks/history.py`.

    python benchmarks/history.py                    # 10,000 artifacts, 10 million rows: half an hour, 2 GB of disk
    python benchmarks/history.py --quick            # a hundredth of it: half a minute
    python benchmarks/history.py --only artifacts   # one part alone: artifacts, rows
    python benchmarks/history.py --rows 2000000     # fewer stored rows

Artifacts are made by experiments with four examples, one task and one scorer: a dataset, a run, an evaluation and an
aggregation each, with three names. All runs are of the same task, so each new run looks for its answers in all earlier
ones. Rows are those of a task that gives its input back, in runs of up to a million.

Each measurement is a process of its own, for the large store, the smaller one and an empty one in turn; the median is
shown. Times are CPU time in user and kernel mode. A process that measures a run or opens an artifact has done the same
in another store before, so that imports do not count; commands count from nothing to their end. The user's cache, with
its indexes, is a folder beside the stores.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from children import clean_environment, run, say
from measures import print_measures
from meter import speed

ARTIFACTS = 10_000
ROWS = 10_000_000
RUN_ROWS = 1_000_000
SMALLER = 10
"""By how much the smaller of two stores is smaller."""
PER_EXPERIMENT = 4
EXAMPLES = 4
REPEATS = 5
QUICK = 100
TASK = "echo"

Result = dict[str, float]


@dataclass
class Row:
    """One line of the table."""

    measure: str
    ours: float
    unit: str
    limit: float | None = None

    @property
    def cells(self) -> list[str]:
        target = "" if self.limit is None else f"≤ {self.limit:g}"
        met = "" if self.limit is None else "yes" if self.ours <= self.limit else "NO"
        return [self.measure, f"{self.ours:.3g} {self.unit}".strip(), target, met]


def main() -> None:
    options = _options()
    if options.measure:
        request = json.loads(options.measure)
        print(json.dumps(MEASURES[request.pop("of")](**request) | {"speed": speed()}))
        return
    share = QUICK if options.quick else 1
    with tempfile.TemporaryDirectory(prefix="evaluand-bench-", dir=options.folder) as name:
        bench = Bench(Path(name), options.repeats or (1 if options.quick else REPEATS))
        sizes = {"artifacts": options.artifacts // share, "rows": options.rows // share}
        rows = [row for part, size in sizes.items() if options.only in (None, part) for row in PARTS[part](bench, size)]
    found = [each for results in bench.results.values() for each in results]
    print_measures([each["speed"] for each in found if "speed" in each], [row.cells for row in rows])
    if options.json:
        options.json.write_text(json.dumps(bench.results, indent=2) + "\n", encoding="utf-8")


class Bench:
    """Stores in a folder, and all results of the processes that measured them."""

    def __init__(self, folder: Path, repeats: int) -> None:
        self.results: dict[str, list[Result]] = {}
        self.repeats = repeats
        self._folder = folder
        self._environment = clean_environment() | {"XDG_CACHE_HOME": str(folder / "cache")}

    def store(self, name: object) -> str:
        return str(self._folder / f"store-{name}")

    def measure(self, name: str, of: str, **request: Any) -> None:
        """Adds the result of a measurement in a new process."""
        say(name)
        text = json.dumps({"of": of, "scratch": str(self._folder / "scratch"), **request})
        command = [sys.executable, str(Path(__file__).resolve()), "--measure", text]
        self.results.setdefault(name, []).append(run(command, self._environment))

    def measure_command(self, name: str, *words: str) -> None:
        """Adds the CPU time of a command."""
        say(name)
        before = _children_cpu()
        command = [str(Path(sys.executable).with_name("evaluand")), *words]
        ended = subprocess.run(command, cwd=self._folder, env=self._environment, capture_output=True, check=False)
        if ended.returncode:
            raise RuntimeError(f"{' '.join(command)}: {ended.stderr.decode()[-2000:]}")
        self.results.setdefault(name, []).append({"cpu": _children_cpu() - before})

    def median(self, name: str, key: str = "cpu") -> float:
        return statistics.median(result[key] for result in self.results[name])


def _children_cpu() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


# ---------------------------------------------------------------- many artifacts


def measure_artifacts(bench: Bench, size: int) -> list[Row]:
    sizes = (PER_EXPERIMENT, max(size // SMALLER, PER_EXPERIMENT), size)
    for n in sizes:
        bench.measure(f"fill {n}", "fill", folder=bench.store(n), n=n // PER_EXPERIMENT)
        bench.measure_command(f"first list {n}", "list", "--store", bench.store(n))
    ids = {n: _id_of_run(bench.store(n)) for n in sizes}
    for turn in range(bench.repeats):
        for n in sizes[:2]:
            bench.measure_command(f"verify {n}", "verify", "--store", bench.store(n))
        for n in sizes:
            bench.measure_command(f"list {n}", "list", "--store", bench.store(n))
            bench.measure(f"open {n}", "open", folder=bench.store(n))
            bench.measure(f"run {n}", "run", folder=bench.store(n), number=size + turn)
            for what, name in (("experiment", _name(0)), ("run", ids[n])):
                bench.measure_command(
                    f"report {what} {n}", "report", name, "-o", "report.html", "--store", bench.store(n)
                )
    return _artifact_rows(bench, sizes)


def _artifact_rows(bench: Bench, sizes: Sequence[int]) -> list[Row]:
    empty, small, large = sizes
    verified = (bench.median(f"verify {small}") - bench.median(f"verify {empty}")) / max(small - empty, 1)
    rows = [Row(f"open one of {large:,} artifacts by name", bench.median(f"open {large}") * 1e3, "ms", 5)]
    rows += _growth(bench, "open", sizes)
    rows += [
        Row(f"evaluand list of {large:,} artifacts", bench.median(f"list {large}"), "s", 0.25),
        Row("  the first time", bench.median(f"first list {large}"), "s"),
        Row(f"  of {empty}", bench.median(f"list {empty}"), "s"),
        *_growth(bench, "list", sizes),
        Row("evaluand verify, one more artifact", verified * 1e3, "ms", 0.6),
    ]
    for what, label, limit in (
        ("run", f"run of {EXAMPLES} examples", 1.3),
        ("report run", "evaluand report of a run", 1.2),
        ("report experiment", "evaluand report of an experiment", 1.2),
    ):
        without, beside = bench.median(f"{what} {empty}"), bench.median(f"{what} {large}")
        rows += [
            Row(f"{label} beside {large:,} artifacts", beside * 1e3, "ms"),
            Row("  by the same in an empty store", beside / without, "×", limit),
            *_growth(bench, what, sizes),
        ]
    return rows


def _growth(bench: Bench, what: str, sizes: Sequence[int]) -> list[Row]:
    """The exponent of growth between the last two sizes: 0 where the size does not matter, 1 where cost is linear."""
    small, large = sizes[-2:]
    ratio = bench.median(f"{what} {large}") / bench.median(f"{what} {small}")
    return [Row(f"  exponent, {small:,} → {large:,}", math.log(ratio) / math.log(large / small), "")]


def _id_of_run(store: str) -> str:
    """The id of one of the runs in a store."""
    return min(os.listdir(Path(store, "runs")))


def fill(folder: str, scratch: str, n: int) -> dict[str, Any]:
    """Stores so many experiments."""
    from evaluand import DirectoryStore

    _never_sync()
    store, before = DirectoryStore(folder), time.process_time()
    for number in range(n):
        _experiment(number).run(store)
    return {"cpu": time.process_time() - before}


def open_by_name(folder: str, scratch: str) -> dict[str, Any]:
    from evaluand import DirectoryStore, Run

    _experiment(0).run(DirectoryStore(scratch))
    for place in (scratch, folder):
        before = time.process_time()
        Run.open(DirectoryStore(place), f"{_name(0)}/{TASK}")
    return {"cpu": time.process_time() - before}


def run_few(folder: str, scratch: str, number: int) -> dict[str, Any]:
    """A run of a few new examples."""
    from evaluand import Dataset, DirectoryStore, Runner

    _experiment(0).run(DirectoryStore(scratch))
    for place in (scratch, folder):
        store, data = DirectoryStore(place), Dataset.from_rows(_examples(number))
        before = time.process_time()
        made = Runner(store).run(_echo, data, name=f"{_name(number)}/{TASK}")
    return {"cpu": time.process_time() - before, "called": made.receipt.called}


def _experiment(number: int) -> Any:
    from evaluand import Accuracy, Experiment, Measure
    from evaluand.data.dataset import Dataset
    from evaluand.evaluation.scorers.exact_match import ExactMatch

    data, scorers = Dataset.from_rows(_examples(number)), {"exact": ExactMatch()}
    return Experiment(_name(number), data, {TASK: _echo}, scorers, [Measure("exact", Accuracy())])


def _name(number: int) -> str:
    return f"experiment {number}"


def _examples(number: int) -> list[dict[str, str]]:
    from workload import example

    return [
        dict(zip(("input", "expected"), example(each), strict=True))
        for each in range(number * EXAMPLES, (number + 1) * EXAMPLES)
    ]


def _echo(text: str) -> str:
    return text


def _never_sync() -> None:
    """Makes writing faster: what is measured later does not depend on it."""
    from evaluand.store import io

    io.disk.sync = lambda handle: None  # type: ignore[method-assign]


# ---------------------------------------------------------------- many rows


def measure_rows(bench: Bench, size: int) -> list[Row]:
    sizes = (max(size // SMALLER, 1), size)
    per_run = min(RUN_ROWS, sizes[0])
    for n in sizes:
        for number in range(n // per_run):
            bench.measure(f"store {n}", "store", folder=bench.store(f"rows-{n}"), number=number, n=per_run)
        bench.measure(f"first start {n}", "start", folder=bench.store(f"rows-{n}"), number=size)
    for turn in range(1, bench.repeats + 1):
        for n in sizes:
            bench.measure(f"start {n}", "start", folder=bench.store(f"rows-{n}"), number=size + turn)
    large = sizes[-1]
    return [
        Row(f"start of a run beside {large:,} rows", bench.median(f"start {large}"), "s", 0.1),
        Row("  by the clock", bench.median(f"start {large}", "clock"), "s"),
        Row("  the first", bench.median(f"first start {large}"), "s"),
        *_growth(bench, "start", sizes),
    ]


def store_rows(folder: str, scratch: str, number: int, n: int) -> dict[str, Any]:
    """Stores a run of n examples that no other run has."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from evaluand import Dataset, DirectoryStore, Runner

    _never_sync()
    file = f"{folder}.parquet"
    pq.write_table(pa.table({"input": range(number * n, (number + 1) * n)}), file)
    before = time.process_time()
    made = Runner(DirectoryStore(folder)).run(_recorded_task()[0], Dataset.from_file(file), fresh=True)
    os.unlink(file)
    return {"cpu": time.process_time() - before, "rows": sum(made.counts.values())}


def start(folder: str, scratch: str, number: int) -> dict[str, Any]:
    """Seconds from the request of a run of one new example to its call."""
    from evaluand import Dataset, DirectoryStore, Runner

    task, calls = _recorded_task()
    for each, place in ((0, scratch), (1, scratch), (-number, folder)):
        store, data = DirectoryStore(place), Dataset.from_rows([{"input": each}])
        before, clock = time.process_time(), time.perf_counter()
        Runner(store).run(task, data, limit=1)
    return {"cpu": calls[-1][0] - before, "clock": calls[-1][1] - clock, "calls": len(calls)}


def _recorded_task() -> tuple[Any, list[tuple[float, float]]]:
    """A task that gives integers back, without calls where it may, and the times of its calls."""
    from evaluand import Task
    from evaluand.run.task import Recorded

    calls: list[tuple[float, float]] = []

    class Echo(Task[int, int]):
        version = "1"

        def do_run(self, input: int, task_span: Any) -> int:
            calls.append((time.process_time(), time.perf_counter()))
            return input

        def recorded(self, dataset: Any, examples: int, replications: int) -> Any:
            return Recorded(map(str, dataset.inputs()), iter([None] * examples)) if examples > 1 else None

    return Echo(), calls


MEASURES: dict[str, Callable[..., dict[str, Any]]] = {
    "fill": fill,
    "open": open_by_name,
    "run": run_few,
    "store": store_rows,
    "start": start,
}
PARTS = {"artifacts": measure_artifacts, "rows": measure_rows}


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="a hundredth of everything, each once")
    parser.add_argument("--only", choices=PARTS, help="one part alone")
    parser.add_argument("--artifacts", type=int, default=ARTIFACTS, help=f"artifacts of the large store; {ARTIFACTS:,}")
    parser.add_argument("--rows", type=int, default=ROWS, help=f"rows of the large store; {ROWS:,}")
    parser.add_argument("--repeats", type=int, help=f"processes per measurement; {REPEATS}, with --quick 1")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all results to FILE")
    parser.add_argument("--folder", type=Path, metavar="DIR", help="where stores are made, and removed")
    parser.add_argument("--measure", default="", help=argparse.SUPPRESS)
    return parser.parse_args()


if __name__ == "__main__":
    main()
