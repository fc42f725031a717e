"""What metrics cost, beside the packages and the code people use for them: the same data, in turn.

    python benchmarks/metrics.py                   everything; peers are installed into a throw-away environment
    python benchmarks/metrics.py --quick           few rows, ours alone, some seconds
    python benchmarks/metrics.py --only detection  the cases of one module
    python benchmarks/metrics.py --peers DIR       keep the peers' environment in DIR and use it again

Each module in `MODULES` has its cases: what is computed, by whom, and how many times as much a peer should take at
least. Everyone is measured in processes of his own, in turn, and CPU time is taken of each repetition: the smallest is
what the code costs. Making the data, and giving peers theirs in the form they take, is in no figure.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import platform
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from children import clean_environment, environment, run, say
from meter import speed

HERE = Path(__file__).resolve().parent
MODULES = ("metrics_detection", "metrics_scores", "metrics_numbers", "metrics_files")
OURS = "ours"
ROUNDS, REPEATS, ENOUGH = 3, 5, 5.0  # seconds after which nothing is repeated


class Case(NamedTuple):
    """One thing computed.

    Attributes:
        name: shown in the table.
        work: who → what makes the data for so many rows and gives the function that is timed, whose result is a number.
        rows: how many.
        targets: who → how many times as much it should take at least.
        alike: those whose results are to be the same number.
    """

    name: str
    work: Mapping[str, Callable[[int], Callable[[], float]]]
    rows: int
    targets: Mapping[str, float]
    alike: tuple[str, ...] = ()


class Peer(NamedTuple):
    """A package to compare with; without one, code of ours in the style of others, in our own environment."""

    package: str | None
    module: str


def main() -> None:
    options = _options()
    modules = [importlib.import_module(name) for name in MODULES if options.only in ("", name.removeprefix("metrics_"))]
    cases: list[Case] = [case for module in modules for case in module.CASES]
    if options.measure:
        print(json.dumps({"cases": dict(_measured(cases, options)), "speed": speed()}))
        return
    peers: dict[str, Peer] = {name: peer for module in modules for name, peer in module.PEERS.items()}
    with tempfile.TemporaryDirectory(prefix="evaluand-bench-") as name:
        pythons = {OURS: Path(sys.executable)}
        if not options.quick:
            pythons |= {who: Path(sys.executable) for who, peer in peers.items() if peer.package is None}
            foreign = {who: peer for who, peer in peers.items() if peer.package is not None}
            packages = [str(peer.package) for peer in foreign.values()]
            modules_of = {who: peer.module for who, peer in foreign.items()}
            pythons |= environment(options.peers or Path(name) / "peers", packages, modules_of)
        results: dict[str, list[dict[str, Any]]] = {who: [] for who in pythons}
        for turn in range(options.rounds):
            for who, python in pythons.items():
                say(f"{who}, {turn + 1} of {options.rounds}")
                passed = ["--measure", who, "--only", options.only, *["--quick"] * options.quick]
                results[who].append(run([str(python), str(HERE / "metrics.py"), *passed], clean_environment()))
    _print(cases, results)
    if options.json:
        options.json.write_text(json.dumps(results) + "\n")


def _measured(cases: list[Case], options: argparse.Namespace) -> Iterator[tuple[str, Any]]:
    """Seconds of each repetition, and the result."""
    for case in cases:
        if options.measure in case.work:
            work = case.work[options.measure](case.rows // 100 if options.quick else case.rows)
            times, value = list[float](), 0.0
            while len(times) < REPEATS and sum(times) < ENOUGH:
                started = time.process_time()
                value = work()
                times.append(time.process_time() - started)
            yield case.name, {"times": times, "value": value}


def _print(cases: list[Case], results: dict[str, list[dict[str, Any]]]) -> None:
    speeds = sorted(result["speed"] for each in results.values() for result in each)
    print(f"{platform.platform()}, Python {platform.python_version()}, {os.cpu_count()} CPUs")
    print(
        f"a fixed piece of work took {statistics.median(speeds) * 1e3:.0f} ms of CPU time"
        f" ({speeds[0] * 1e3:.0f} to {speeds[-1] * 1e3:.0f} in {len(speeds)} processes)\n"
    )
    lines = [["s of CPU time: smallest (median)", OURS, "peer", "", "ratio", "target", "met?"]]
    for case in cases:
        ours = _times(results, OURS, case)
        shown = [case.name, _figure(ours)]
        for who in [who for who in case.work if who != OURS and _times(results, who, case)]:
            theirs = _times(results, who, case)
            ratio, target = min(theirs) / min(ours), case.targets.get(who)
            told = f"{ratio:.3g}× ({statistics.median(theirs) / statistics.median(ours):.3g}×)"
            met = ["", ""] if target is None else [f"≥ {target:.3g}×", "yes" if ratio >= target else "NO"]
            lines.append([*shown, who, _figure(theirs), told, *met])
            shown = ["", ""]
        if shown[0]:
            lines.append([*shown, "", "", "", "", ""])
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        print("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())
    for case in cases:
        values = {
            who: each[0]["cases"][case.name]["value"] for who, each in results.items() if who in case.alike and each
        }
        if values and max(values.values()) - min(values.values()) > 1e-9:
            print(f"{case.name}: results differ: {values}")


def _times(results: dict[str, list[dict[str, Any]]], who: str, case: Case) -> list[float]:
    return [each for result in results.get(who, []) for each in result["cases"].get(case.name, {"times": []})["times"]]


def _figure(times: list[float]) -> str:
    return f"{min(times):.3g} ({statistics.median(times):.3g})"


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="a hundredth of the rows, once, and no peer")
    parser.add_argument("--only", default="", metavar="MODULE", help="the cases of one module, such as detection")
    parser.add_argument("--rounds", type=int, help=f"processes of each; {ROUNDS}, with --quick 1")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all results to FILE")
    parser.add_argument("--peers", type=Path, metavar="DIR", help="the peers' environment; made if it is not there")
    parser.add_argument("--measure", default="", help=argparse.SUPPRESS)
    options = parser.parse_args()
    options.rounds = options.rounds or (1 if options.quick else ROUNDS)
    return options


if __name__ == "__main__":
    main()
