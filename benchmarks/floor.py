"""The path and no more, as a floor: `python floor.py '{"file": "…", "folder": "…"}'`.

The same calls, 20 at once, the same spans, a journal with a line for each call, written every millisecond, and the same
tables in the end; grades are comparisons in a loop. There are no identities and digests, and nothing can be resumed,
reused, shared, checked or read by anybody else. What evaluand takes beyond this is the price of these.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Iterator
from itertools import chain, islice
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.parquet as pq
from meter import Phases

AT_ONCE = 20
ROWS = 1024
TURN = 1_000_000  # nanoseconds

SPAN = [("number", pa.int32()), ("parent", pa.int32()), ("name", pa.string()), ("kind", pa.string())]
SPAN += [("started", pa.int64()), ("duration", pa.int64()), ("output", pa.string())]
RESPONSE = [("index", pa.int64()), ("status", pa.string()), ("response", pa.string()), ("attempts", pa.int32())]
RESPONSE += [("started", pa.int64()), ("duration", pa.int64())]


async def echo(text: str, spans: list[list[Any]]) -> str:
    started = time.perf_counter_ns()
    spans.append([1, 0, "retrieve", None, started, time.perf_counter_ns() - started, None])
    started = time.perf_counter_ns()
    spans.append([2, 0, "answer", None, started, time.perf_counter_ns() - started, None])
    return text


async def call_all(texts: Iterator[str], journal: Path) -> None:
    numbered, lines, written = enumerate(texts), list[bytes](), time.perf_counter_ns()
    with journal.open("wb", buffering=0) as file:

        async def work() -> None:
            nonlocal written
            for index, text in numbered:
                started, clock = time.time_ns(), time.perf_counter_ns()
                spans: list[list[Any]] = [[0, None, "echo", "task", started, 0, None]]
                output = await echo(text, spans)
                ended = time.perf_counter_ns()
                spans[0][-2:] = ended - clock, output
                lines.append(orjson.dumps([index, "completed", output, 1, started, ended - clock, spans]) + b"\n")
                if ended - written > TURN:
                    file.write(b"".join(lines))
                    lines.clear()
                    written = ended

        await asyncio.gather(*(work() for _ in range(AT_ONCE)))
        file.write(b"".join(lines))


def write_tables(journal: Path, folder: Path) -> None:
    responses, spans = pa.schema(RESPONSE), pa.schema([("index", pa.int64()), *SPAN])
    with (
        journal.open("rb") as file,
        pq.ParquetWriter(folder / "responses.parquet", responses, compression="zstd") as response_writer,
        pq.ParquetWriter(folder / "spans.parquet", spans, compression="zstd") as span_writer,
    ):
        while lines := [*islice(file, ROWS)]:
            records = sorted(orjson.loads(b"[%b]" % b",".join(lines)))
            *columns, traces = zip(*records, strict=True)
            owners = [index for index, trace in zip(columns[0], traces, strict=True) for _ in trace]
            for writer, schema, cells in (
                (response_writer, responses, columns),
                (span_writer, spans, [owners, *zip(*chain(*traces), strict=True)]),
            ):
                arrays = [pa.array(column, field.type) for column, field in zip(cells, schema, strict=True)]
                writer.write_batch(pa.RecordBatch.from_arrays(arrays, schema=schema))


def read(file: Path, columns: list[str]) -> Iterator[pa.RecordBatch]:
    yield from pq.ParquetFile(file).iter_batches(10 * ROWS, columns=columns)


def write_scores(folder: Path, examples: Path) -> None:
    schema = pa.schema([("index", pa.int64()), ("score", pa.float64())])
    expected = chain.from_iterable(batch.column(0).to_pylist() for batch in read(examples, ["expected"]))
    with pq.ParquetWriter(folder / "scores.parquet", schema, compression="zstd") as writer:
        for batch in read(folder / "responses.parquet", ["index", "response"]):
            wanted = islice(expected, batch.num_rows)
            scores = [float(said == right) for said, right in zip(batch.column(1).to_pylist(), wanted, strict=True)]
            writer.write_batch(pa.RecordBatch.from_arrays([batch.column(0), pa.array(scores)], schema=schema))


def measure(file: str, folder: str) -> dict[str, Any]:
    phases, place, journal = Phases(), Path(folder), Path(folder, "journal.jsonl")
    place.mkdir(exist_ok=True)
    examples = place / "examples.parquet"
    with phases("dataset"):
        source = pq.ParquetFile(file)
        with pq.ParquetWriter(examples, source.schema_arrow, compression="zstd") as writer:
            for batch in source.iter_batches(10 * ROWS):
                writer.write_batch(batch)
    with phases("run"):
        texts = chain.from_iterable(batch.column(0).to_pylist() for batch in read(examples, ["input"]))
        asyncio.run(call_all(texts, journal))
        write_tables(journal, place)
        journal.unlink()
    with phases("evaluate"):
        write_scores(place, examples)
    with phases("aggregate"):
        scores = [batch.column(0).to_numpy().mean() for batch in read(place / "scores.parquet", ["score"])]
    return phases.result(folder) | {"n": source.metadata.num_rows, "value": float(sum(scores) / len(scores))}


if __name__ == "__main__":
    print(json.dumps(measure(**json.loads(sys.argv[1]))))
