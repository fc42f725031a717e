"""How long it takes to hold rows with five responses to their schema, and to make a table of them; and pydantic's time.

Pydantic's time depends on what becomes of its models: kept, as rows in a table are, they also cost the collector of
garbage; thrown away one by one, they do not.

.venv/bin/python benchmarks/schemas.py [ROWS] [--quick]
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from time import process_time
from typing import Any

import pyarrow as pa
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, create_model

from evaluand.data.schema import DataSchema, Float32, SchemaModel, UInt8

ROWS, QUICK_ROWS = 20_000, 500
ROUNDS = 5


class Answer(SchemaModel):
    """A response with numbers, a choice of labels and a list beside its text."""

    text: str
    label: str | None
    confidence: Float32
    votes: UInt8
    tokens: list[str]


class PlainText(BaseModel):
    """The same in pydantic alone, with nothing that is not checked in Rust."""

    model_config = ConfigDict(extra="forbid")
    number: int = Field(alias="_response_index_", ge=0)
    text: str


class PlainAnswer(PlainText):
    label: str | None
    confidence: float
    votes: int = Field(ge=0, le=255)
    tokens: list[str]


def output(item: type[BaseModel]) -> type[BaseModel]:
    fields: dict[str, Any] = {
        "index": (int, Field(alias="_index_", ge=0)),
        "replication": (str, Field(alias="_replication_")),
        "responses": (list[item], ...),  # type: ignore[valid-type]
    }
    return create_model("Output", __config__=ConfigDict(extra="forbid"), **fields)


def narrow(number: int) -> dict[str, Any]:
    return {"text": f"answer {number}"}


def wide(number: int) -> dict[str, Any]:
    more = {"label": None if number % 3 else "yes", "confidence": number % 7 / 7, "votes": number % 9}
    return narrow(number) | more | {"tokens": ["an", "answer", str(number)]}


def rows(count: int, item: Callable[[int], dict[str, Any]]) -> list[dict[str, Any]]:
    return [
        {
            "_index_": i,
            "_replication_": "b6c5448938a05f50a60afd8d76219cae",
            "responses": [{"_response_index_": k} | item(5 * i + k) for k in range(5)],
        }
        for i in range(count)
    ]


def seconds(work: Callable[[], object]) -> float:
    times = []
    for _ in range(ROUNDS):
        start = process_time()
        work()
        times.append(process_time() - start)
    return min(times)


def compared(name: str, source: Any, plain: type[BaseModel], data: list[dict[str, Any]]) -> None:
    schema, model, count = DataSchema.make_output_schema(source).to_schema(), output(plain), len(data)
    table, adapter = schema.validate(data), TypeAdapter(list[model])  # type: ignore[valid-type]
    kept = seconds(lambda: adapter.validate_python(data))
    dropped = seconds(lambda: [None for row in data if model.model_validate(row) is None])
    print(f"{name}: {count:,} rows with five responses; × pydantic's with models kept, thrown away")
    for what, took in (
        ("rows → checked table", seconds(lambda: schema.validate(data))),
        ("table → checked table", seconds(lambda: schema.validate(table))),
        ("rows → table by Arrow, unchecked", seconds(lambda: pa.Table.from_pylist(data, schema.arrow))),
        ("pydantic, models kept", kept),
        ("pydantic, models thrown away", dropped),
    ):
        rate = f"{count / took:12,.0f} rows/s"
        print(f"  {what:33} {took:6.3f} s CPU {rate} {kept / took:7.1f} × {dropped / took:6.1f} ×")


def main(count: int) -> None:
    compared("text.Text", "text.Text", PlainText, rows(count, narrow))
    compared("five fields", Answer, PlainAnswer, rows(count, wide))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("rows", nargs="?", type=int, help=f"how many rows; {ROWS}")
    parser.add_argument("--quick", action="store_true", help=f"{QUICK_ROWS} rows, to see that it works")
    options = parser.parse_args()
    main(options.rows or (QUICK_ROWS if options.quick else ROWS))
