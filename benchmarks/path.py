"""What the whole path costs: dataset → run → evaluate → aggregate, kept on disk, beside other systems and a floor.

    python benchmarks/path.py                    everything; peers are installed into a throw-away environment
    python benchmarks/path.py --quick            small sizes, no peers, about half a minute
    python benchmarks/path.py --peers DIR        keep the peers' environment in DIR and use it again

Every example is a short text that the task gives back, opening two spans, and that is graded by exact match. Each
measurement is made in a fresh process, so that none profits from another's imports, caches and freed memory; of
several, the median is shown. Sizes are measured in turn rather than one after the other, so that a busy minute falls
on all of them. What an example costs is the difference between two sizes: start-up is measured apart.

This process measures others, so it imports only the standard library: a child's peak of memory begins with that of
its parent. Nothing here fails on a slow machine; the README says how to read the figures.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from children import clean_environment, environment, run, say
from workload import PAYLOAD

HERE = Path(__file__).resolve().parent
REPEATS = 3
SIZES = (10_000, 100_000, 1_000_000)
QUICK_SIZES = (1_000, 5_000)
PEER_SIZES = (1_000, 10_000)
IN_FLIGHT = 256
SCORERS = 64
PEER_PACKAGES = ("pharia-studio-sdk", "pharia-inference-sdk", "inspect-ai", "deepeval", "lm-eval")
PEERS = {
    "pharia": ("pharia.py", "pharia_studio_sdk"),
    "inspect-ai": ("inspect_mock.py", "inspect_ai"),
    "deepeval": ("deepeval_cases.py", "deepeval"),
    "lm-eval": ("lm_eval_task.py", "lm_eval"),
}
OFFLINE = {"DEEPEVAL_TELEMETRY_OPT_OUT": "1", "HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1"}
"""The environment in which peers ask nobody."""
MIB = 1 << 20

Result = dict[str, Any]


@dataclass
class Row:
    """One line of the table; `limit` is the target, to be kept from above or, where `least`, from below."""

    measure: str
    unit: str
    ours: float | None
    limit: float | None = None
    least: bool = False
    peers: dict[str, float | None] = field(default_factory=dict)

    @property
    def met(self) -> bool | None:
        if self.ours is None or self.limit is None:
            return None
        return self.ours >= self.limit if self.least else self.ours <= self.limit

    def ratio(self, peer: str) -> float | None:
        """How many times as much the peer takes."""
        theirs = self.peers.get(peer)
        return theirs / self.ours if theirs is not None and self.ours else None


def main() -> None:
    options = _options()
    sizes = options.sizes
    with tempfile.TemporaryDirectory(prefix="evaluand-bench-", dir=options.dir) as name:
        folder = Path(name)
        peers = {} if options.quick else _peers(options.peers or folder / "peers")
        bench = _Bench(folder, options.repeats)
        bench.measure_ours(sizes, [] if options.quick else PEER_SIZES)
        bench.measure_peers(peers, PEER_SIZES)
        rows = bench.rows(sizes, [] if options.quick else PEER_SIZES, list(peers))
        _print_head(folder, bench)
        _print_table(rows, list(peers))
        _print_phases(bench, sizes)
        if options.json:
            _write_json(options.json, rows, bench)


class _Bench:
    """All measurements, each a list of the results of its processes."""

    def __init__(self, folder: Path, repeats: int) -> None:
        self.results: dict[str, list[Result]] = {}
        self._folder, self._repeats = folder, repeats

    def measure_ours(self, sizes: Sequence[int], more: Sequence[int]) -> None:
        small, large = sizes[:2]
        for n in sorted({*sizes, *more, 2 * small}):
            self._child("examples", file=str(self._file(n)), n=n)
        self._child("path", file=str(self._file(small)), folder=str(self._folder / ".evaluand"), mode="async")
        for turn in range(self._repeats):
            for mode in ("async", "threads"):
                for n in sorted({small, large, *more}):
                    self._measure(f"path {mode} {n}", "path", n, turn, mode=mode)
            for n in (small, large):
                self._measure(f"path floor {n}", None, n, turn)
            for n in (small, large):
                self._measure(f"waits {n}", "waits", n, turn, in_flight=IN_FLIGHT)
            self._measure("spans", "spans", small, turn)
            for n in (small, 2 * small):
                self._measure(f"scorers {n}", "scorers", n, turn, scorers=SCORERS)
            for command in STARTUPS:
                self._add(command, _startup(command, self._folder))
        self._measure(f"disk {large}", "path", large, 0, mode="async", watch=True)
        for n in sizes[2:]:
            self._measure(f"path async {n}", "path", n, 0, mode="async")

    def measure_peers(self, peers: dict[str, Path], sizes: Sequence[int]) -> None:
        for name, python in peers.items():
            for n in sizes:
                say(f"{name}, {n:,} examples")
                with _scratch(self._folder) as store:
                    request = json.dumps({"n": n, "folder": str(store)})
                    environment = clean_environment() | OFFLINE | {"PYTHONPATH": str(HERE)}
                    environment |= {
                        "XDG_DATA_HOME": str(self._folder),
                        "HF_DATASETS_CACHE": f"{store}/datasets",
                    }
                    script = str(HERE / "peers" / PEERS[name][0])
                    try:
                        self._add(f"{name} {n}", run([str(python), script, request], environment))
                    except RuntimeError as error:
                        say(f"{name} failed and is left out: {error}")
                        break

    def rows(self, sizes: Sequence[int], peer_sizes: Sequence[int], peers: Sequence[str]) -> list[Row]:
        """The table."""
        small, large = sizes[:2]
        rows = self._cpu_rows(small, large) + self._beside(peer_sizes, peers) + self._disk_rows(large)
        if peer_sizes:
            rows += self._stored_beside(peer_sizes[-1], peers)
        rows += [
            Row(
                f"peak memory, {n:,} examples",
                "MiB",
                self._median(f"path async {n}", "memory") / MIB,
                _memory_limit(n),
                peers={peer: self._peer(peer, n, "memory", 1 / MIB) for peer in peers},
            )
            for n in sorted({*sizes, *peer_sizes})
        ]
        rows += self._call_rows(small, large)
        return rows + [Row(f"CPU of {text}", "s", self._median(text, "cpu"), limit) for text, limit in STARTUPS.items()]

    def _cpu_rows(self, small: int, large: int) -> list[Row]:
        limits = {"async": 0.06, "threads": 0.16, "floor": None}
        return [
            Row(
                f"CPU per example, {mode}, {small:,} → {large:,}",
                "ms",
                self._slope(f"path {mode}", small, large) * 1e3,
                limit,
            )
            for mode, limit in limits.items()
        ]

    def _beside(self, sizes: Sequence[int], peers: Sequence[str]) -> list[Row]:
        """What a whole path of some sizes costs per example, first and last things included."""
        return [
            Row(
                f"CPU per example, {mode}, all of {n:,}",
                "ms",
                self._median(f"path {mode} {n}", "cpu") / n * 1e3,
                peers={peer: self._peer(peer, n, "cpu", 1e3 / n) for peer in peers},
            )
            for n in sizes
            for mode in ("async", "threads")
        ]

    def _disk_rows(self, n: int) -> list[Row]:
        disk, payload = f"disk {n}", PAYLOAD * n
        return [
            Row("stored per example beyond payload, sealed", "B", (self._median(disk, "bytes") - payload) / n, 200),
            Row("stored per example beyond payload, peak", "B", (self._median(disk, "peak_bytes") - payload) / n, 600),
            Row("files, sealed", "", self._median(disk, "files"), 20),
            Row("files, peak", "", self._median(disk, "peak_files"), 20),
        ]

    def _stored_beside(self, n: int, peers: Sequence[str]) -> list[Row]:
        ours = f"path async {n}"
        stored = {peer: self._peer(peer, n, "bytes", 1 / n) for peer in peers}
        files = {peer: self._peer(peer, n, "files", 1 / n) for peer in peers}
        return [
            Row(f"stored per example, all of {n:,}", "B", self._median(ours, "bytes") / n, peers=stored),
            Row(f"files per example, all of {n:,}", "", self._median(ours, "files") / n, peers=files),
        ]

    def _call_rows(self, small: int, large: int) -> list[Row]:
        waits = (large - small) / (self._wall(f"waits {large}") - self._wall(f"waits {small}"))
        scorers = self._slope("scorers", small, 2 * small) / SCORERS
        return [
            Row(f"1 ms calls, {IN_FLIGHT} in flight", "/s", waits, 25_000, least=True),
            Row(f"row, each of {SCORERS} cheap scorers", "µs", scorers * 1e6, 8),
            Row("span in memory", "µs", self._median("spans", "memory") * 1e6, 4),
            Row("span persisted", "µs", self._median("spans", "persisted") * 1e6, 10),
        ]

    def speeds(self) -> list[float]:
        return [result["speed"] for results in self.results.values() for result in results if "speed" in result]

    def phases(self, name: str) -> dict[str, float]:
        """CPU seconds of each step."""
        results = self.results[name]
        return {step: statistics.median(r["cpu_of"][step] for r in results) for step in results[0]["cpu_of"]}

    def _measure(self, name: str, measure: str | None, n: int, turn: int, **request: Any) -> None:
        say(f"{name}, {turn + 1} of {self._repeats}" if self._repeats > 1 else name)
        with _scratch(self._folder) as store:
            self._add(name, self._child(measure, file=str(self._file(n)), folder=str(store), **request))

    def _child(self, measure: str | None, **request: Any) -> Result:
        """A measurement of ours; of the floor where it has no name."""
        script, named = ("floor.py", {}) if measure is None else ("ours.py", {"measure": measure})
        return run([sys.executable, str(HERE / script), json.dumps(named | request)], dict(os.environ))

    def _file(self, n: int) -> Path:
        return self._folder / f"examples-{n}.parquet"

    def _add(self, name: str, result: Result | None) -> None:
        if result is not None:
            self.results.setdefault(name, []).append(result)

    def _median(self, name: str, key: str) -> Any:
        results = self.results.get(name)
        return statistics.median(result[key] for result in results) if results else None

    def _wall(self, name: str) -> float:
        return float(statistics.median(result["wall_of"]["run"] for result in self.results[name]))

    def _slope(self, name: str, small: int, large: int) -> float:
        """Seconds of CPU time that one more example costs."""
        spent = self._median(f"{name} {large}", "cpu") - self._median(f"{name} {small}", "cpu")
        return float(spent / (large - small))

    def _peer(self, peer: str, n: int, key: str, factor: float) -> float | None:
        found = self._median(f"{peer} {n}", key)
        return None if found is None else float(found) * factor


def _memory_limit(n: int) -> float | None:
    if n < 100_000:
        return None
    return 240 if n < 1_000_000 else 280


# Start-up

STARTUPS = {
    "evaluand --version": 0.15,
    "evaluand --help": 0.15,
    "evaluand list": 0.25,
    "from evaluand import Dataset, Runner, Evaluator": 0.5,
}
"""What is started, and how many seconds of CPU time it may take."""


def _startup(command: str, folder: Path) -> Result | None:
    """CPU time of a command from nothing to its end, beside a store; None where it is not there or fails."""
    name, *arguments = command.split()
    script = Path(sys.executable).with_name("evaluand")
    words = [str(script), *arguments] if name == "evaluand" else [sys.executable, "-c", command]
    if not Path(words[0]).exists():
        return None
    before = _children_cpu()
    ended = subprocess.run(words, cwd=folder, capture_output=True, check=False)
    return {"cpu": _children_cpu() - before} if ended.returncode == 0 else None


def _children_cpu() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def _peers(folder: Path) -> dict[str, Path]:
    return environment(folder, PEER_PACKAGES, {name: module for name, (_, module) in PEERS.items()})


def _scratch(folder: Path) -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="store-", dir=folder)


# Output


def _print_head(folder: Path, bench: _Bench) -> None:
    speeds = sorted(bench.speeds())
    print(f"{platform.platform()}, Python {platform.python_version()}, {os.cpu_count()} CPUs, {_file_system(folder)}")
    print(
        f"a fixed piece of work took {statistics.median(speeds) * 1e3:.0f} ms of CPU time"
        f" ({speeds[0] * 1e3:.0f} to {speeds[-1] * 1e3:.0f} in {len(speeds)} processes)\n"
    )


def _file_system(folder: Path) -> str:
    if not (stat := shutil.which("stat")):
        return ""
    found = subprocess.run([stat, "-f", "-c", "%T", str(folder)], capture_output=True, text=True, check=False)
    return f"{folder.parent} on {found.stdout.strip() or 'an unknown file system'}"


def _print_table(rows: Iterable[Row], peers: Sequence[str]) -> None:
    head = ["measure", "ours", "target", "met?", *(text for peer in peers for text in (peer, "ratio"))]
    lines = [head]
    for row in rows:
        sign = "≥" if row.least else "≤"
        target = "" if row.limit is None else f"{sign} {_number(row.limit)}"
        met = {True: "yes", False: "NO", None: ""}[row.met]
        line = [row.measure, f"{_number(row.ours)} {row.unit}".strip(), target, met]
        for peer in peers:
            theirs, ratio = row.peers.get(peer), row.ratio(peer)
            line += ["" if theirs is None else _number(theirs), "" if ratio is None else f"{_number(ratio)}×"]
        lines.append(line)
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        cells = (text.rjust(width) for text, width in zip(line[1:], widths[1:], strict=True))
        print("  ".join((line[0].ljust(widths[0]), *cells)).rstrip())


def _number(value: float | None) -> str:
    if value is None:
        return "n/a"
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.3f}" if abs(value) < 1 else f"{value:.3g}"


def _print_phases(bench: _Bench, sizes: Sequence[int]) -> None:
    small, large = sizes[:2]
    print(f"\nCPU per example by step, µs, {small:,} → {large:,}")
    for mode in ("async", "threads", "floor"):
        below, above = bench.phases(f"path {mode} {small}"), bench.phases(f"path {mode} {large}")
        steps = (f"{step} {(above[step] - below[step]) / (large - small) * 1e6:.1f}" for step in above)
        print(f"  {mode + ':':<12}{', '.join(steps)}")
    below, above = bench.phases(f"waits {small}"), bench.phases(f"waits {large}")
    print(f"  {'1 ms calls:':<12}run {(above['run'] - below['run']) / (large - small) * 1e6:.1f}")


def _write_json(file: Path, rows: Iterable[Row], bench: _Bench) -> None:
    table = [
        {
            "measure": row.measure,
            "unit": row.unit,
            "ours": row.ours,
            "target": row.limit,
            "met": row.met,
            "peers": row.peers,
        }
        for row in rows
    ]
    file.write_text(json.dumps({"table": table, "results": bench.results}, indent=2) + "\n", encoding="utf-8")


# Options


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="small sizes, each once, and no peers")
    parser.add_argument("--sizes", type=_sizes, help="numbers of examples: two to compare, then more for memory only")
    parser.add_argument("--repeats", type=int, help=f"processes per measurement; {REPEATS}, with --quick 1")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the table and all results to FILE")
    parser.add_argument("--peers", type=Path, metavar="DIR", help="the peers' environment; made if it is not there")
    parser.add_argument("--dir", type=Path, help="where to keep the stores meanwhile: on a real disk, not in memory")
    options = parser.parse_args()
    options.sizes = options.sizes or (QUICK_SIZES if options.quick else SIZES)
    options.repeats = options.repeats or (1 if options.quick else REPEATS)
    return options


def _sizes(text: str) -> tuple[int, ...]:
    sizes = tuple(sorted({int(part) for part in text.split(",")}))
    if len(sizes) < 2 or sizes[0] < 1:
        raise argparse.ArgumentTypeError("give two sizes or more, such as 10000,100000")
    return sizes


if __name__ == "__main__":
    main()
