"""The stored layout as it is documented: other programs read it, with DuckDB and the standard library alone."""

from __future__ import annotations

import hashlib
import json
import re
import runpy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from support.json_schemas import jsonschema
from support.places import ROOT_FOLDER
from support.sample_store import ROWS, make

from evaluand.aggregation.aggregator import Aggregation
from evaluand.store.directory import DirectoryStore
from evaluand.store.kinds import find_kind, kind_names
from evaluand.store.store import FORMAT

SCRIPT = runpy.run_path(str(ROOT_FOLDER / "docs/reference/write_format.py"))
SCHEMA = SCRIPT["manifest_schema"]()
PAGE = (ROOT_FOLDER / "docs/format.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> DirectoryStore:
    return make(tmp_path_factory.mktemp("format") / "store")


@pytest.fixture(scope="module")
def manifests(store: DirectoryStore) -> list[dict[str, Any]]:
    """The manifests of everything sealed, read as plain JSON."""
    return [json.loads(path.read_text()) for path in Path(str(store.root)).glob("*/*/manifest.json")]


def validator(kind: str) -> jsonschema.Draft202012Validator:
    """The part of the schema for a kind, which takes much less time than all of it."""
    [shape] = [each for each in SCHEMA["oneOf"] if each["title"] == kind]
    return jsonschema.Draft202012Validator(shape | {"$defs": SCHEMA["$defs"]})


def blake(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=16).hexdigest()


def canonical(value: Any) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def test_the_reference_is_that_of_this_version() -> None:
    folder, again = ROOT_FOLDER / "docs/reference", "write it anew: python docs/reference/write_format.py"
    assert (folder / "tables.md").read_text(encoding="utf-8") == SCRIPT["tables_page"](), again
    assert json.loads((folder / "manifest.schema.json").read_text()) == SCRIPT["manifest_schema"](), again
    assert f"format {FORMAT}" in PAGE


def test_every_table_and_column_of_a_store_is_documented(store: DirectoryStore, manifests: list[Any]) -> None:
    assert {manifest["kind"] for manifest in manifests} == {*kind_names()} == SCRIPT["TABLES"].keys()
    for manifest in manifests:
        for table, entry in manifest["tables"].items():
            folder, _, name = table.partition("/")
            documented = SCRIPT["TABLES"][manifest["kind"]][f"{folder}/NAME" if name else folder]
            expected = SCRIPT["schema_of"](documented)
            path = Path(str(store.root)) / manifest["kind"] / manifest["id"] / entry["file"]
            found = pq.read_schema(path)
            assert [found.field(field.name).type for field in expected] == [field.type for field in expected]


def test_duckdb_reads_scores_with_their_answers(store: DirectoryStore, manifests: list[Any]) -> None:
    duckdb = pytest.importorskip("duckdb")
    root = Path(str(store.root))
    [query] = re.findall(r"```sql\n(.*?)```", PAGE, re.DOTALL)
    names = {json.loads(path.read_text())["name"]: path for path in (root / "refs").glob("*.json")}
    assert "sample/double" in names
    evaluation = next(m for m in manifests if m["kind"] == "evaluations" and m["name"] == "sample/double")
    folders = {
        "EVALUATION": root / "evaluations" / evaluation["id"],
        "RUN": root / "runs" / evaluation["provenance"]["run"],
        "DATASET": root / "datasets" / evaluation["spec"]["dataset"],
    }
    for word, folder in folders.items():
        query = query.replace(f"{word}/", f"{folder}/")
    rows = duckdb.sql(query).fetchall()
    failed = sum(number % 7 == 3 for number in range(ROWS))
    assert sorted(rows) == [("failed", failed, None), ("scored", ROWS - failed, 1.0)]


def test_duckdb_reads_the_values_of_metrics(store: DirectoryStore, manifests: list[Any]) -> None:
    duckdb = pytest.importorskip("duckdb")
    manifest = next(m for m in manifests if m["kind"] == "aggregations")
    file = Path(str(store.root)) / "aggregations" / manifest["id"] / manifest["tables"]["metrics"]["file"]
    query = (
        f"select evaluation, metric, value, n, n_scored from '{file}' where cardinality(\"by\") = 0 order by evaluation"
    )
    table = Aggregation(store, manifest["id"]).table().to_pylist()
    names = ("evaluation", "metric", "value", "n", "n_scored")
    assert duckdb.sql(query).fetchall() == [tuple(row[n] for n in names) for row in table if not row["by"]]


def test_digests_are_computed_as_documented(store: DirectoryStore, manifests: list[Any]) -> None:
    for manifest in manifests:
        rest = {name: value for name, value in manifest.items() if name != "seal"}
        assert blake(canonical(rest)) == manifest["seal"]
        for entry in manifest["tables"].values():
            file = Path(str(store.root)) / manifest["kind"] / manifest["id"] / entry["file"]
            assert blake(file.read_bytes()) == entry["digest"]
            assert file.stat().st_size == entry["bytes"]
            assert pq.read_metadata(file).num_rows == entry["rows"]
            assert file.name.endswith(f"-{entry['digest'][:8]}.parquet")


def test_names_are_found_as_documented(store: DirectoryStore) -> None:
    files = [*(Path(str(store.root)) / "refs").glob("*.json")]
    assert files
    for file in files:
        name = json.loads(file.read_text())
        assert file.stem == blake(canonical([name["kind"], name["name"]]))
        assert (Path(str(store.root)) / name["kind"] / name["id"]).is_dir()


def test_the_schema_accepts_all_manifests(manifests: list[Any]) -> None:
    whole = jsonschema.Draft202012Validator(SCHEMA)
    for manifest in manifests:
        whole.validate(manifest)


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The paths of everything in a manifest, down to what only its kind understands."""
    if path:
        yield path
    if isinstance(value, dict) and len(path) < 3:
        for name, each in value.items():
            yield from places(each, (*path, name))


def changed(manifest: dict[str, Any], path: tuple[Any, ...], value: Any) -> dict[str, Any]:
    name, *rest = path
    return manifest | {name: changed(manifest[name], (*rest,), value) if rest else value}


@pytest.mark.parametrize("value", [None, "x", -1, True, [1], {"x": []}])
def test_what_the_schema_refuses_readers_refuse(manifests: list[Any], value: Any) -> None:
    by_kind = {manifest["kind"]: manifest for manifest in manifests}
    for kind, manifest in by_kind.items():
        schema = validator(kind)
        for path in places(manifest):
            if path[0] in ("format", "kind", "id", "seal"):
                continue  # readers check these before the shape
            other = changed(manifest, path, value)
            if not schema.is_valid(other):
                assert find_kind(kind).check(other, sealed=True), (kind, path)


@pytest.mark.parametrize("key", ["attempt", "created", "digest", "spec", "provenance", "counts", "tables"])
def test_a_manifest_without_a_part_is_refused_by_both(manifests: list[Any], key: str) -> None:
    for manifest in manifests:
        rest = {name: value for name, value in manifest.items() if name != key}
        assert not validator(manifest["kind"]).is_valid(rest)
        assert find_kind(manifest["kind"]).check(rest, sealed=True)


def test_further_keys_are_ignored(manifests: list[Any]) -> None:
    for manifest in manifests:
        assert validator(manifest["kind"]).is_valid(manifest | {"later": 1})
        assert not find_kind(manifest["kind"]).check(manifest | {"later": 1}, sealed=True)
