"""One measurement of evaluand in a process of its own: `python ours.py '{"measure": "path", …}'`.

Prints the result as one line of JSON. `path.py` starts it; see there for what is measured and why.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Callable, Iterator
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
from evaluand.scorers.exact_match import ExactMatch

ROWS = 10_000


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
def echo_untraced(text: str) -> str:
    return text


@task
async def echo_async_untraced(text: str) -> str:
    return text


@task
async def wait(text: str) -> str:
    await asyncio.sleep(0.001)
    return text


TASKS: dict[tuple[str, bool], Task[Any, Any]] = {
    ("threads", True): echo,
    ("async", True): echo_async,
    ("threads", False): echo_untraced,
    ("async", False): echo_async_untraced,
}


def write_examples(file: str, n: int) -> dict[str, Any]:
    """Writes the examples as Parquet, so that the measured process only streams them."""
    schema = pa.schema([("input", pa.string()), ("expected", pa.string())])
    with pq.ParquetWriter(file, schema) as writer:
        for start in range(0, n, ROWS):
            rows = [example(number) for number in range(start, min(start + ROWS, n))]
            columns = [pa.array(column) for column in zip(*rows, strict=True)]
            writer.write_batch(pa.RecordBatch.from_arrays(columns, schema=schema))
    return {}


def measure_path(file: str, folder: str, mode: str, traced: bool = True, watch: bool = False) -> dict[str, Any]:
    """The whole path over a file of examples, into a store in a folder."""
    peak = DiskPeak(folder) if watch else None
    phases, store = Phases(), DirectoryStore(folder)
    with phases("dataset"):
        dataset = Dataset.from_file(file).save(store)
    with phases("run"):
        run = Runner(store).run(TASKS[mode, traced], dataset)
    with phases("evaluate"):
        evaluation = Evaluator().evaluate(run, {"exact_match": ExactMatch()})
    with phases("aggregate"):
        aggregation = Aggregator().aggregate([evaluation], [Measure("exact_match", Accuracy())])
    result = phases.result(folder) | {"n": len(dataset), "value": aggregation.table()["value"][0].as_py()}
    if peak:
        peak.look()
        result |= {"peak_bytes": peak.bytes, "peak_files": peak.files}
    return result


def measure_waits(file: str, folder: str, in_flight: int) -> dict[str, Any]:
    """A run of calls that wait for a millisecond each."""
    phases, store = Phases(), DirectoryStore(folder)
    dataset = Dataset.from_file(file).save(store)
    with phases("run"):
        Runner(store, Policy(concurrency=in_flight)).run(wait, dataset)
    return phases.result(folder) | {"n": len(dataset)}


def measure_spans(n: int) -> dict[str, Any]:
    """Seconds of CPU time for a span in memory: what two of them add to an empty trace."""

    def cost(call: Callable[[TaskSpan], None]) -> float:
        started = time.process_time()
        for _ in range(n):
            with Trace.start("echo", "x" * LENGTH).root as task_span:
                call(task_span)
        return time.process_time() - started

    def nothing(task_span: TaskSpan) -> None:
        pass

    def two(task_span: TaskSpan) -> None:
        with task_span.span("retrieve"):
            pass
        with task_span.span("answer"):
            pass

    def differences() -> Iterator[float]:
        for _ in range(5):
            empty = cost(nothing)
            yield (cost(two) - empty) / n / 2

    return {"cpu": sorted(differences())[2], "speed": speed()}


MEASURES: dict[str, Callable[..., dict[str, Any]]] = {
    "examples": write_examples,
    "path": measure_path,
    "waits": measure_waits,
    "spans": measure_spans,
}

if __name__ == "__main__":
    request = json.loads(sys.argv[1])
    print(json.dumps(MEASURES[request.pop("measure")](**request)))
