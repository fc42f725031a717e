"""One measurement of evaluand in a process of its own: `python ours.py '{"measure": "path", …}'`.

Prints the result as one line of JSON. `path.py` starts it; see there for what is measured and why.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from meter import DiskPeak, Phases, speed
from workload import LENGTH, example

from evaluand import (
    Accuracy,
    Aggregator,
    Dataset,
    DirectoryStore,
    Evaluator,
    Measure,
    Policy,
    Runner,
    Task,
    TaskSpan,
    Trace,
    task,
)

ROWS = 10_000
SPANS = 10_000
SPAN_TURNS = 5


@task
def echo(text: str, task_span: TaskSpan) -> str:
    with task_span.span("retrieve"):
        pass
    with task_span.span("answer"):
        return text


@task
async def echo_async(text: str, task_span: TaskSpan) -> str:
    with task_span.span("retrieve"):
        pass
    with task_span.span("answer"):
        return text


@task
async def echo_async_untraced(text: str) -> str:
    return text


@task
async def wait(text: str) -> str:
    await asyncio.sleep(0.001)
    return text


TASKS: dict[str, Task[Any, Any]] = {"async": echo_async, "threads": echo}


def write_examples(file: str, n: int) -> dict[str, Any]:
    """Writes the examples as Parquet, so that the measured process only streams them."""
    schema = pa.schema([("input", pa.string()), ("expected", pa.string())])
    with pq.ParquetWriter(file, schema) as writer:
        for start in range(0, n, ROWS):
            rows = [example(number) for number in range(start, min(start + ROWS, n))]
            columns = [pa.array(column) for column in zip(*rows, strict=True)]
            writer.write_batch(pa.RecordBatch.from_arrays(columns, schema=schema))
    return {}


def measure_path(file: str, folder: str, mode: str, watch: bool = False) -> dict[str, Any]:
    """The whole path over a file of examples, into a store in a folder."""
    peak = DiskPeak(folder) if watch else None
    phases, store = Phases(), DirectoryStore(folder)
    with phases("dataset"):
        dataset = Dataset.from_file(file).save(store)
    with phases("run"):
        run = Runner(store).run(TASKS[mode], dataset)
    with phases("evaluate"):
        evaluation = Evaluator().evaluate(run, {"exact_match": "exact_match"})
    with phases("aggregate"):
        aggregation = Aggregator().aggregate([evaluation], [Measure("exact_match", Accuracy())])
    result = phases.result(folder) | {"n": len(dataset), "value": aggregation.table()["value"][0].as_py()}
    if peak:
        peak.look()
        result |= {"peak_bytes": peak.bytes, "peak_files": peak.files}
    return result


def measure_scorers(file: str, folder: str, scorers: int) -> dict[str, Any]:
    """An evaluation of one run by many cheap scorers."""
    phases, store = Phases(), DirectoryStore(folder)
    dataset = Dataset.from_file(file).save(store)
    run = Runner(store).run(echo_async_untraced, dataset)
    with phases("evaluate"):
        Evaluator().evaluate(run, {f"exact_match_{n}": "exact_match" for n in range(scorers)})
    return phases.result(folder) | {"n": len(dataset)}


def measure_waits(file: str, folder: str, in_flight: int) -> dict[str, Any]:
    """A run of calls that wait for a millisecond each."""
    phases, store = Phases(), DirectoryStore(folder)
    dataset = Dataset.from_file(file).save(store)
    with phases("run"):
        Runner(store, Policy(concurrency=in_flight)).run(wait, dataset)
    return phases.result(folder) | {"n": len(dataset)}


def measure_spans(file: str, folder: str) -> dict[str, Any]:
    """Seconds of CPU time for a span: what two of them add to a call, in memory and in a run that is kept.

    The two are run in turn, so that whatever else the machine does falls on both.
    """
    store = DirectoryStore(folder)
    dataset = Dataset.from_file(file).save(store)
    return {
        "memory": _two_spans(_opens_none, _opens_two, SPANS),
        "persisted": _two_spans(
            lambda: Runner(store).run(echo_async_untraced, dataset, fresh=True),
            lambda: Runner(store).run(echo_async, dataset, fresh=True),
            len(dataset),
        ),
        "speed": speed(),
    }


def _two_spans(without: Callable[[], Any], with_two: Callable[[], Any], n: int) -> float:
    differences = []
    for _ in range(SPAN_TURNS):
        before = time.process_time()
        without()
        between = time.process_time()
        with_two()
        differences.append((time.process_time() - between) - (between - before))
    return statistics.median(differences) / n / 2


def _opens_none() -> None:
    for _ in range(SPANS):
        with Trace.start("echo", "x" * LENGTH).root:
            pass


def _opens_two() -> None:
    for _ in range(SPANS):
        with Trace.start("echo", "x" * LENGTH).root as task_span:
            with task_span.span("retrieve"):
                pass
            with task_span.span("answer"):
                pass


MEASURES: dict[str, Callable[..., dict[str, Any]]] = {
    "examples": write_examples,
    "path": measure_path,
    "scorers": measure_scorers,
    "waits": measure_waits,
    "spans": measure_spans,
}

if __name__ == "__main__":
    request = json.loads(sys.argv[1])
    print(json.dumps(MEASURES[request.pop("measure")](**request)))
