"""What a store holds, as data: read by the readers of Python and by commands.

Only names that every version of evaluand has are used, so that what one version reads can be compared with what another
version read.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
from click.testing import CliRunner, Result

from evaluand import Aggregation, Dataset, DirectoryStore, Evaluation, FileTracer, Run
from evaluand.cli import main

Data = dict[str, Any]

KINDS = ("datasets", "runs", "evaluations", "aggregations", "comparisons", "recordings")
ENTRY = ("kind", "id", "name", "status")
MANIFEST = ("name", "attempt", "pinned", "created", "digest", "seal")
EXAMPLE = ("index", "id", "input", "expected", "attributes", "weight", "cluster", "metadata")
RESPONSE = ("index", "replication", "fold", "status", "error", "responses")
PAIR = ("scorer", "metric", "n", "value_a", "value_b", "difference", "low", "high", "p", "won", "tied", "lost")
BOARD = ("label", "feedback", "mean", "low", "high", "worst", "best", "letters", "n", "n_scored", "n_waiting")


def read_all(folder: Path) -> Data:
    """Reads a folder that has a store in `store` and a file of spans in `trace.jsonl`."""
    store = DirectoryStore(folder / "store")
    read = {
        "list": [[entry[name] for name in ENTRY] for entry in read_json(folder, "list")],
        "verify": [[artifact["id"], artifact["faults"]] for artifact in read_json(folder, "verify")["artifacts"]],
        "names": [list(ref) for ref in store.refs()],
        "manifests": {f"{kind}/{id}": read_manifest(store, kind, id) for kind in KINDS for id in store.ids(kind)},
        "datasets": {id: read_examples(Dataset.stored(store, id)) for id in store.ids("datasets")},
        "runs": {id: read_run(Run(store, id)) for id in sealed_ids(store, "runs")},
        "evaluations": {id: read_evaluation(Evaluation(store, id)) for id in sealed_ids(store, "evaluations")},
        "aggregations": {id: read_aggregation(Aggregation(store, id)) for id in sealed_ids(store, "aggregations")},
        "comparisons": {id: read_comparison(store, id) for id in sealed_ids(store, "comparisons")},
        "trace": [entry.name for entry in FileTracer(folder / "trace.jsonl").traces().entries],
        "commands": read_commands(folder),
    }
    return json.loads(json.dumps(read, default=to_text))  # type: ignore[no-any-return]


def sealed_ids(store: DirectoryStore, kind: str) -> Iterator[str]:
    return (id for id in store.ids(kind) if store.is_sealed(kind, id))


def read_manifest(store: DirectoryStore, kind: str, id: str) -> Data:
    manifest = store.manifest(kind, id)
    return {key: manifest[key] for key in MANIFEST if key in manifest}


def read_examples(dataset: Dataset) -> list[Any]:
    return [[getattr(example, name) for name in EXAMPLE] for example in dataset]


def read_run(run: Run) -> Data:
    return {
        "counts": run.counts,
        "responses": [[getattr(response, name) for name in RESPONSE] for response in run],
        "usage": run.table()["usage"].to_pylist(),
        "spans": [row for batch in run.spans() for row in to_rows(pa.table(batch))],
    }


def read_evaluation(evaluation: Evaluation) -> Data:
    with_calls = [name for name in evaluation.scorers if "calls" in evaluation.columns(name)]
    return {
        "counts": evaluation.counts,
        "scores": {name: to_rows(evaluation.table(name)) for name in evaluation.scorers},
        "calls": {name: list(evaluation.calls(name)) for name in with_calls},
    }


def read_aggregation(aggregation: Aggregation) -> Data:
    return {name: to_rows(table) for name, table in aggregation.tables().items()}


def read_comparison(store: DirectoryStore, id: str) -> Data:
    tables = store.manifest("comparisons", id)["tables"]
    return {name: [row for batch in store.read("comparisons", id, name) for row in to_rows(batch)] for name in tables}


def to_rows(table: pa.Table | pa.RecordBatch) -> list[Data]:
    """The rows of a table, each without its nulls."""
    return [{name: value for name, value in row.items() if value is not None} for row in table.to_pylist()]


def to_text(value: Any) -> str:
    return value.hex() if isinstance(value, bytes) else str(value)


# -- commands


def read_commands(folder: Path) -> Data:
    """What commands print about the reviews and the guide."""
    pairs = read_json(folder, "compare", "reviews/words", "reviews/counting")["pairs"]
    board = read_json(folder, "leaderboard")["feedbacks"]
    reviews = read_json(folder, "show", "reviews")
    return {
        "compare": [[rounded(pair[name]) for name in PAIR] for pair in pairs if pair["won"] is not None],
        "leaderboard": [[rounded(row[name]) for name in BOARD] for row in board],
        "tradeoffs": [read_point(point) for each in reviews["tradeoffs"] for point in each["points"]],
        "label status": read_json(folder, "label", "status", "reviews/words/human"),
        "feedback status": {name: read_status(folder, name) for name in ("guide/2", "guide/3", "guide/4")},
        "progress": {id: read_progress(folder, id) for id in open_ids(folder)},
        "export": {name: call(folder, "export", name).stdout for name in ("names", "repeats", "scored")},
    }


def rounded(value: Any) -> Any:
    """A value without the last digits of a number, which other machines may compute otherwise."""
    return round(value, 9) if isinstance(value, float) else value


def read_point(point: Data) -> Data:
    values = {name: [rounded(value) for value in each.values()] for name, each in point["values"].items()}
    return {"model": point["model"], "values": values}


def open_ids(folder: Path) -> list[str]:
    return [entry["id"] for entry in read_json(folder, "list") if entry["status"] == "open"]


def read_progress(folder: Path, id: str) -> list[Any]:
    return [[part["done"], part["total"]] for part in read_json(folder, "show", id)["progress"]]


def read_status(folder: Path, recording: str) -> Data:
    status = read_json(folder, "feedback", "status", recording)
    return {name: status[name] for name in ("id", "mode", "status", "records", "feedbacks")}


def finish(folder: Path) -> Data:
    """Finishes what is open, with the project's code in the working folder; counts and digests of what it became."""
    call(folder, "run", "grading.yaml", "--task", "quick", "--keep-answers")
    call(folder, "resume", "guide/3", "--give-up", "--allow", "sample_guide", "--allow", "sample_reviews")
    store = DirectoryStore(folder / "store")
    kinds = {"grading/quick": "evaluations", "guide/3": "recordings"}
    named = {ref.name: ref.id for ref in store.refs() if kinds.get(ref.name) == ref.kind}
    keys = ("id", "digest", "counts")
    return {name: {key: store.manifest(kinds[name], id)[key] for key in keys} for name, id in named.items()}


def read_json(folder: Path, *command: str) -> Any:
    return json.loads(call(folder, *command, "--json").stdout)


def call(folder: Path, *command: str, code: int = 0) -> Result:
    """Calls a command on the folder's store; it must end with an exit code."""
    environment = {"EVALUAND_STORE": str(folder / "store"), "COLUMNS": "120"}
    result = CliRunner(env=environment).invoke(main, [*command])
    assert result.exit_code == code, (command, result.output, result.exception)
    return result
