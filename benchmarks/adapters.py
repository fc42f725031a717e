"""What adapters cost per row, beside dyff-schema: the same configurations on the same rows, in turn.

    python benchmarks/adapters.py                  100,000 rows; dyff-schema is installed into a throw-away environment
    python benchmarks/adapters.py --quick          few rows, no peer, some seconds
    python benchmarks/adapters.py --peers DIR      keep the peer's environment in DIR and use it again

Rows are given to an adapter a thousand at a time, or 4,096 as one Arrow batch, and CPU time is taken each time: on a
machine that others use as well, the smallest of many short times says what the code costs. Each of the two is measured
in processes of its own, in turn. The README says how to read the figures.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from children import clean_environment, environment, run, say
from meter import speed

HERE = Path(__file__).resolve().parent
PEER, PEER_PACKAGE, PEER_MODULE = "dyff", "dyff-schema==0.46.17", "dyff.schema.adapters"
ROWS, QUICK_ROWS, CHUNK = 100_000, 8_192, 1_000
BATCH = 4_096  # what datasets are streamed in
AT_ONCE, BACK, AGAIN = ", all in one batch", ", and back", 5
ROUNDS = 5

Row = dict[str, Any]


def main() -> None:
    options = _options()
    if options.measure:
        print(json.dumps({"times": dict(_times(options.rows)), "speed": speed()}))
        return
    with tempfile.TemporaryDirectory(prefix="evaluand-bench-") as name:
        folder = options.peers or Path(name) / "peers"
        pythons = {"ours": Path(sys.executable)}
        if not options.quick:
            pythons |= environment(folder, [PEER_PACKAGE], {PEER: PEER_MODULE})
        results: dict[str, list[dict[str, Any]]] = {name: [] for name in pythons}
        for turn in range(options.rounds):
            for who, python in pythons.items():
                say(f"{who}, {turn + 1} of {options.rounds}")
                command = [str(python), str(HERE / "adapters.py"), "--measure", "--rows", str(options.rows)]
                results[who].append(run(command, clean_environment()))
        _print(results)
        if options.json:
            options.json.write_text(json.dumps(results) + "\n")


# What is measured: a name, the adapter, a row, and how many times as much the peer should take at least

LISTS = {"collections": ["text", "score"]}
TEMPLATE = {"prompt": "$.text", "id": "$.meta.id", "temperature": 0.7, "n": 2}
CASES: dict[str, tuple[str, Any, str, float | None]] = {
    "TransformJSON, 2 paths + 2 literals": ("TransformJSON", TEMPLATE, "plain", 10),
    "TransformJSON, a sub": (
        "TransformJSON",
        {"id": {"$compute": [{"$scalar": "$.text"}, {"$func": "sub", "pattern": "[a-z]", "repl": ""}]}},
        "plain",
        None,
    ),
    "TransformJSON, a search": (
        "TransformJSON",
        {"id": {"$compute": [{"$scalar": "$.text"}, {"$func": "search", "pattern": r"times (\d+)", "group": 1}]}},
        "plain",
        None,
    ),
    "ExplodeCollections, 1 list of 5": ("ExplodeCollections", {"collections": ["text"]}, "lists", 3),
    "ExplodeCollections, 2 lists of 5": ("ExplodeCollections", LISTS, "lists", 3),
    "ExplodeCollections, 1 list of 5, index": (
        "ExplodeCollections",
        {"collections": ["text"], "index": {"_response_index_": None}},
        "lists",
        3,
    ),
    "FlattenHierarchy": ("FlattenHierarchy", {"addPrefix": True}, "nested", 1.5),
    "Rename": ("Rename", {"text": "prompt"}, "plain", 1),
    "Rename, 1 of 13 fields": ("Rename", {"text": "prompt"}, "wide", 1),
    "Select, 2 of 3 fields": ("Select", {"fields": ["text", "meta"]}, "plain", 1),
    "Select, 8 of 13 fields": ("Select", {"fields": ["text", *(f"c{number}" for number in range(7))]}, "wide", 1),
    "Drop, 1 of 3 fields": ("Drop", {"fields": ["meta"]}, "plain", 1),
    "Rename, Drop, Select": (
        "Pipeline",
        [
            {"kind": "Rename", "configuration": {"text": "prompt"}},
            {"kind": "Drop", "configuration": {"fields": ["meta"]}},
            {"kind": "Select", "configuration": {"fields": ["prompt"]}},
        ],
        "plain",
        1,
    ),
    "TransformJSON, Rename": (
        "Pipeline",
        [
            {"kind": "TransformJSON", "configuration": {"text": "$.text", "n": 2}},
            {"kind": "Rename", "configuration": {"text": "prompt"}},
        ],
        "plain",
        1,
    ),
    "ExplodeCollections, Rename, Select": (
        "Pipeline",
        [
            {"kind": "ExplodeCollections", "configuration": LISTS},
            {"kind": "Rename", "configuration": {"text": "prompt"}},
            {"kind": "Select", "configuration": {"fields": ["prompt", "score"]}},
        ],
        "lists",
        1,
    ),
    "Map, Rename, 5 elements": (
        "Map",
        {"collections": ["choices"], "adapter": {"kind": "Rename", "configuration": {"label": "text"}}},
        "choices",
        1,
    ),
    "EmbedIndex, 5 elements": ("EmbedIndex", {"collections": ["choices"], "index": {"rank": None}}, "choices", None),
}
ARROW_CASES = {
    "Arrow: ExplodeCollections, 2 lists of 5": ("ExplodeCollections", LISTS, "lists", 50),
    "Arrow: TransformJSON, rename + literals": (
        "TransformJSON",
        {"prompt": "$.text", "id": "$.meta.id", "temperature": 0.7, "n": 2},
        "plain",
        100,
    ),
}
STEPS = "$.a[0].b.c[1].d.e[0].f"
SELECTOR = "a path of 9 steps"


def _row(sort: str, i: int) -> Row:
    if sort == "plain":
        return {"_index_": i, "text": f"It was the best of times {i}", "meta": {"id": i, "source": "x"}}
    if sort == "lists":
        return {"_index_": i, "text": [f"{i} {k}" for k in range(5)], "score": [0.5] * 5}
    if sort == "wide":
        return {"_index_": i, **{f"c{number}": number for number in range(11)}, "text": "a"}
    if sort == "choices":
        return {"_index_": i, "choices": [{"label": f"{i} {k}", "score": 0.5} for k in range(5)]}
    scores = {"top": {"label": "a", "value": 0.9}, "next": {"label": "b", "value": 0.1}}
    return {"_index_": i, "text": f"It was {i}", "scores": scores, "usage": {"tokens": 5}}


# Within a measuring process: seconds per row, one figure for each thousand rows


def _times(n: int) -> Iterator[tuple[str, list[float]]]:
    try:
        from evaluand.data.adapters.base.adapter import Pipeline, create_adapter

        create_pipeline: Any = Pipeline
    except ImportError:
        from dyff.schema.adapters import create_adapter, create_pipeline, known_adapters
        from dyff.schema.v0.r1.adapters import EmbedIndex

        known_adapters()["EmbedIndex"] = EmbedIndex  # which it has, but does not make by its name
        columns = False
    else:
        columns = True
    for name, (kind, configuration, sort, _) in CASES.items():
        adapter: Any
        if kind == "Pipeline":
            adapter = create_pipeline(configuration)
        else:
            adapter = create_adapter({"kind": kind, "configuration": configuration})
        yield name, _timed(lambda rows, adapter=adapter: _use(adapter(rows)), _chunks(sort, n))
    for name, (kind, configuration, sort, _) in ARROW_CASES.items():
        adapter = create_adapter({"kind": kind, "configuration": configuration})
        if columns:
            batches = [_batch(rows) for rows in _chunks(sort, n, BATCH)]
            yield name, _timed(adapter.adapt_batch, batches)
            yield f"{name}{AT_ONCE}", _timed(adapter.adapt_batch, [_joined(batches)] * AGAIN)
        else:
            yield name, _timed(lambda rows, adapter=adapter: _use(adapter(rows)), _chunks(sort, n))
            yield f"{name}{BACK}", _timed(_there_and_back(adapter), map(_batch, _chunks(sort, n, BATCH)))
    yield SELECTOR, _timed(_selecting(columns), ([_deep()] * CHUNK for _ in range(n // CHUNK)))


def _timed(work: Callable[[Any], Any], chunks: Any) -> list[float]:
    times = []
    for chunk in chunks:
        started = time.process_time()
        work(chunk)
        times.append((time.process_time() - started) / len(chunk))
    return times


def _chunks(sort: str, n: int, size: int = CHUNK) -> Iterator[list[Row]]:
    for start in range(0, n, size):
        yield [_row(sort, i) for i in range(start, start + size)]


def _use(made: Any) -> None:
    for _ in made:
        pass


def _batch(rows: list[Row]) -> Any:
    import pyarrow as pa

    return pa.RecordBatch.from_pylist(rows)


def _joined(batches: list[Any]) -> Any:
    import pyarrow as pa

    (whole,) = pa.Table.from_batches(batches).combine_chunks().to_batches()
    return whole


def _there_and_back(adapter: Any) -> Callable[[Any], Any]:
    return lambda batch: _batch(list(adapter(batch.to_pylist())))


def _deep() -> Row:
    return {"a": [{"b": {"c": [0, {"d": {"e": [{"f": 5}]}}]}}]}


def _selecting(ours: bool) -> Callable[[Any], Any]:
    if ours:
        from evaluand.core.selector import Selector

        find = Selector(STEPS).get
    else:
        import jsonpath_ng

        find = jsonpath_ng.parse(STEPS).find
    return lambda rows: [find(row) for row in rows]


# Output


def _print(results: dict[str, list[dict[str, Any]]]) -> None:
    speeds = sorted(result["speed"] for each in results.values() for result in each)
    print(f"{platform.platform()}, Python {platform.python_version()}, {os.cpu_count()} CPUs")
    print(
        f"a fixed piece of work took {statistics.median(speeds) * 1e3:.0f} ms of CPU time"
        f" ({speeds[0] * 1e3:.0f} to {speeds[-1] * 1e3:.0f} in {len(speeds)} processes)\n"
    )
    limits = {name: limit for name, (*_, limit) in (CASES | ARROW_CASES).items()}
    lines = [["µs per row: smallest (median)", "ours", PEER, "ratio", "target", "met?"]]
    for name in [*CASES, *ARROW_CASES, SELECTOR]:
        ours, theirs = (_pooled(results.get(who, []), name) for who in ("ours", PEER))
        ratio, limit = min(theirs) / min(ours) if theirs else None, limits.get(name)
        line = [name, _figure(ours), _figure(theirs), "" if ratio is None else _times_as(ratio, ours, theirs)]
        if name == SELECTOR:
            line += ["≤ 2 µs", "yes" if min(ours) <= 2e-6 else "NO"]
        elif limit and ratio:
            line += [f"≥ {limit:g}×", "yes" if ratio >= limit else "NO"]
        lines.append(line + [""] * (len(lines[0]) - len(line)))
        if back := _pooled(results.get(PEER, []), f"{name}{BACK}"):
            lines.append(["  from batch to batch", "", _figure(back), f"{min(back) / min(ours):.3g}×", "", ""])
        if whole := _pooled(results["ours"], f"{name}{AT_ONCE}"):
            lines.append(
                ["  all in one batch", _figure(whole), "", f"{min(theirs) / min(whole):.3g}×" if theirs else "", "", ""]
            )
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        cells = (text.rjust(width) for text, width in zip(line[1:], widths[1:], strict=True))
        print("  ".join((line[0].ljust(widths[0]), *cells)).rstrip())


def _pooled(results: list[dict[str, Any]], name: str) -> list[float]:
    return [each for result in results for each in result["times"].get(name, [])]


def _figure(times: list[float]) -> str:
    return f"{min(times) * 1e6:.3g} ({statistics.median(times) * 1e6:.3g})" if times else ""


def _times_as(ratio: float, ours: list[float], theirs: list[float]) -> str:
    return f"{ratio:.3g}× ({statistics.median(theirs) / statistics.median(ours):.3g}×)"


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="few rows, once, and no peer")
    parser.add_argument("--rows", type=int, help=f"rows of each measurement; {ROWS:,}, with --quick {QUICK_ROWS:,}")
    parser.add_argument("--rounds", type=int, help=f"processes of each; {ROUNDS}, with --quick 1")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all results to FILE")
    parser.add_argument("--peers", type=Path, metavar="DIR", help="the peer's environment; made if it is not there")
    parser.add_argument("--measure", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    options.rows = options.rows or (QUICK_ROWS if options.quick else ROWS)
    options.rounds = options.rounds or (1 if options.quick else ROUNDS)
    return options


if __name__ == "__main__":
    main()
