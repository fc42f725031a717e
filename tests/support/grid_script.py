"""The grid of the page in Node.js: how it pairs rows, and which of them it shows."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from evaluand.report.page.resources.base import Source, read_resource
from support.node import run_script

_CODE = """
import { readFileSync } from "node:fs";
import { completeWords } from "./grid/filter.js";
import { join } from "./grid/join.js";
import { unpackColumns } from "./grid/packed.js";
import { select } from "./grid/select.js";

const unpack = (text) => unpackColumns(Uint8Array.from(Buffer.from(text, "base64")).buffer);
const { tasks, digests, words, asked } = JSON.parse(readFileSync(0));
const read = tasks.map(({ task, columns }) => ({ task, ...unpack(columns) }));
const known = new Map(Object.entries(digests).map(([dataset, columns]) => [dataset, unpack(columns).columns]));
const grid = join(read, known);

async function show(query) {
  await completeWords(grid, query.filter ?? "", async ({ task }, attribute) => words[task][attribute]);
  return [...select(grid, query)].map((row) => grid.places.map((place) => place[row]));
}

console.log(JSON.stringify(await Promise.all(asked.map((query) => show(query).catch((error) => error.message)))));
"""


def show_rows(
    source: Source, tasks: Mapping[str, tuple[str, str]], asked: Sequence[Mapping[str, str]]
) -> list[list[list[int]] | str]:
    """For each of some queries the rows that the grid shows, as the place of each task's row or -1; or what is wrong.

    Args:
        tasks: name → run and evaluation.
        asked: of each query `preset`, `filter` and `sort`.
    """
    columns = {name: read_resource(source, f"columns/{run}/{graded}", {}) for name, (run, graded) in tasks.items()}
    heads = {name: orjson.loads(each[8 : 8 + int(each[:8])]) for name, each in columns.items()}
    said = {
        "tasks": [{"task": name, "columns": b64encode(each).decode()} for name, each in columns.items()],
        "digests": {id: _encode(source, f"digests/{id}") for id in {head["dataset"] for head in heads.values()}},
        "words": {name: _read_words(source, *tasks[name], head) for name, head in heads.items()},
        "asked": asked,
    }
    return run_script(_CODE, said)  # type: ignore[no-any-return]


def _encode(source: Source, path: str) -> str:
    return b64encode(read_resource(source, path, {})).decode()


def _read_words(source: Source, run: str, graded: str, head: Any) -> dict[int, Any]:
    many = [number for number, each in enumerate(head["attributes"]) if each["values"] is None and each["n"]]
    return {number: orjson.loads(read_resource(source, f"words/{run}/{graded}/{number}", {})) for number in many}
