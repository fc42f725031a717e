"""A kind of artifacts that one file registers is listed, shown, exported, checked, copied and collected."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from dataclasses import replace
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from rich.console import RenderableType
from rich.text import Text
from support.commands import Folder

from evaluand import Dataset, Runner
from evaluand.core import registry
from evaluand.core.errors import EngineError, SpecError
from evaluand.core.identity import artifact_id, digest
from evaluand.report.facts.base import Facts
from evaluand.report.kinds.base import Choice, KindView
from evaluand.report.page.resources.base import Source, find_resources, read_resource
from evaluand.run.kind import RUNS
from evaluand.run.task import FunctionTask
from evaluand.store import checks, garbage, kinds
from evaluand.store.directory import DirectoryStore
from evaluand.store.kinds import Kind, Page, list_origins, provenance, register
from evaluand.store.store import Store, at_once, drafted

NAME = "notes"
ROWS = [{"input": "a"}, {"input": "b"}]


class NoteView(KindView):
    name = NAME

    def recount(self, store: Store, id: str) -> tuple[str, object]:
        texts = [text for batch in store.read(NAME, id, "lines") for text in batch.column("text").to_pylist()]
        return digest(texts).hex(), {"lines": len(texts)}

    def facts(self, store: Store, id: str, head: Facts, choice: Choice) -> Facts:
        return {"lines": [row for batch in store.read(NAME, id, "lines") for row in batch.to_pylist()]}

    def body(self, facts: Facts) -> Iterator[RenderableType]:
        yield from (Text(f"line: {row['text']}") for row in facts["lines"])

    def describe(self, spec: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
        yield "by", spec["author"]


NOTES = Kind(
    name=NAME,
    rank=200,
    spec=checks.object_of({"author": checks.text, "runs": checks.TEXTS}),
    provenance=provenance({"runs": checks.IDS}),
    view=NoteView(),
    made_from=(RUNS,),
    origins=lambda spec, made: list_origins(RUNS, made.get("runs"), spec.get("runs")),
    found_by=("runs",),
    page=Page("note"),
)


def write_note(store: Store, run: str, *texts: str, name: str | None = None) -> str:
    spec = {"author": "ann", "runs": [str(store.manifest(RUNS, run)["digest"])]}
    id = artifact_id(NAME, spec, 0)
    manifest = at_once(
        NAME,
        id,
        spec,
        name,
        digest=digest([*texts]).hex(),
        counts={"lines": len(texts)},
        provenance={"runs": [run]},
    )
    with drafted(store, NAME, id) as draft:
        draft.append("lines", pa.RecordBatch.from_pydict({"text": [*texts]}))
        draft.seal(manifest)
    if name is not None:
        store.refer(name, NAME, id)
    return id


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Folder]:
    """A store with a run, and a note on it that is called `first`."""
    register(NOTES)
    try:
        folder = Folder(tmp_path)
        run = Runner(folder.store).run(FunctionTask(str.upper, name="shout", version="1"), Dataset.from_rows(ROWS))
        write_note(folder.store, run.id, "good", "but slow", name="first")
        yield folder
    finally:
        kinds._registered.pop(NAME, None)


def test_it_is_listed_with_its_counts(folder: Folder) -> None:
    [entry] = folder.json("list", NAME)
    assert (entry["kind"], entry["names"], entry["counts"]) == (NAME, ["first"], {"lines": 2})
    assert "notes" in folder.done("list")


def test_it_is_shown_with_what_it_was_made_from(folder: Folder) -> None:
    facts = folder.json("show", "first")
    assert [row["text"] for row in facts["lines"]] == ["good", "but slow"]
    assert [(origin["kind"], origin["id"]) for origin in facts["made_from"]] == [(RUNS, folder.id(RUNS))]
    assert [use["kind"] for use in folder.json("show", folder.id(RUNS))["used_by"]] == [NAME]
    shown = folder.done("show", "first")
    assert all(text in shown for text in ("note ", "by  ", "line: but slow"))


def test_its_tables_are_exported(folder: Folder) -> None:
    assert folder.done("export", "first") == '"text"\n"good"\n"but slow"\n'
    assert "no table 'rows'" in folder.refused("export", "first", "--table", "rows")


def test_damage_of_it_is_found(folder: Folder) -> None:
    assert folder.json("verify", "first")["artifacts"][0]["faults"] == []
    [table] = (folder.path / "store" / NAME).rglob("*.parquet")
    table.write_bytes(table.read_bytes()[:-1])
    result = folder.call("verify", "first")
    assert (result.exit_code, "fault  note" in result.stdout) == (1, True)


def test_a_manifest_of_another_shape_is_refused(folder: Folder) -> None:
    with pytest.raises(SpecError, match=r"the note cannot be stored: spec.author: expected a text, found 7"):
        folder.store.open(at_once(NAME, "0" * 32, {"author": 7, "runs": []}, None, digest="", counts={}, provenance={}))


def test_a_run_that_it_was_made_from_is_not_collected(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(garbage, "QUIET_SECONDS", 0)
    assert folder.json("gc", "--unreferenced", "--dry-run")["found"] == []
    folder.path.joinpath("store", "refs").rename(folder.path / "refs")
    removed = [Path(item["path"]).parent.name for item in folder.json("gc", "--unreferenced", "--dry-run")["found"]]
    assert removed[0] == NAME
    assert {*removed} == {NAME, RUNS, "datasets"}


def test_the_page_lists_it(folder: Folder) -> None:
    find_resources()
    index = json.loads(read_resource(Source(folder.store), "index", {}))
    [entry] = [entry for entry in index["artifacts"] if entry["kind"] == NAME]
    assert entry["command"].startswith("evaluand show ")
    assert index["kinds"][NAME] == {"title": "note", "routes": {}, "served": []}


def test_it_is_copied_with_what_it_was_made_from(folder: Folder) -> None:
    folder.done("copy", folder.path / "store", folder.path / "other", "first")
    other = DirectoryStore(folder.path / "other")
    assert {kind: len(other.ids(kind)) for kind in (NAME, RUNS, "datasets")} == {NAME: 1, RUNS: 1, "datasets": 1}


@pytest.mark.parametrize("n", [1, 20], ids=["few", "many"])
def test_where_nothing_registers_it_all_of_it_stays_and_says_what_to_install(
    folder: Folder, monkeypatch: pytest.MonkeyPatch, n: int
) -> None:
    monkeypatch.setattr(garbage, "QUIET_SECONDS", 0)
    for number in range(n):
        write_note(folder.store, folder.id(RUNS), str(number), name=f"note {number}")
    folder.done("list")  # keeps what it has read
    kinds._registered.pop(NAME)
    listed = folder.call("list", "--json")
    assert [entry["kind"] for entry in json.loads(listed.stdout)] == [RUNS, "datasets"]
    assert f"{n + 1} names and 1 folder cannot be read" in listed.stderr
    verified = folder.call("verify")
    assert (verified.exit_code, verified.stdout.count(UNKNOWN)) == (1, n + 2)
    assert folder.json("gc", "--damaged", "--yes")["removed"] == []
    for words in (("gc", "--unreferenced", "--yes"), ("copy", folder.path / "store", folder.path / "other")):
        refused = folder.refused(*words)
        assert (UNKNOWN in refused, "--damaged" in refused) == (True, False)
    for words in (("show", "first"), ("export", "first"), ("report", "first")):
        assert "nothing is called 'first' here" in folder.refused(*words)
    folder.done("copy", folder.path / "store", folder.path / "other", folder.id(RUNS))
    register(NOTES)
    assert "first" in folder.json("show", "first")["names"]


UNKNOWN = "is of the kind 'notes', which no installed package registers; install the package that stored it"


@pytest.mark.parametrize(
    ("module", "why"),
    [
        ("import nowhere", "No module named 'nowhere'"),
        ("KIND = 7", "it is a number, not a Kind"),
        ("raise SystemError('on import')", "on import"),
    ],
)
def test_a_package_whose_kind_cannot_be_used_stops_nothing_else(
    folder: Folder, monkeypatch: pytest.MonkeyPatch, module: str, why: str
) -> None:
    (folder.path / "broken_kind.py").write_text(module)
    monkeypatch.syspath_prepend(folder.path)
    monkeypatch.delitem(sys.modules, "broken_kind", raising=False)
    own = registry._entry_points(kinds.GROUP)
    broken = EntryPoint("notes", "broken_kind:KIND", f"evaluand.{kinds.GROUP}")
    with monkeypatch.context() as patched:  # before the kind of the folder is taken back
        patched.setattr(registry, "_entry_points", lambda group: {**own, "notes": broken})
        patched.setattr(kinds, "_registered", {})
        result = folder.call("list")
    assert (result.exit_code, why in result.stderr) == (0, True), result.output
    assert "1 folder cannot be read" in " ".join(result.stderr.split())


def test_kinds_that_are_made_of_each_other_are_collected(folder: Folder) -> None:
    songs = replace(NOTES, name="songs", singular="song", made_from=(NAME,))
    kinds._registered |= {NAME: replace(NOTES, made_from=(RUNS, "songs")), "songs": songs}
    try:
        assert folder.json("gc", "--unreferenced", "--dry-run")["found"] == []
    finally:
        kinds._registered.pop("songs")


def test_the_class_of_a_view_is_a_view(folder: Folder) -> None:
    kinds._registered[NAME] = replace(NOTES, view=NoteView)
    assert "line: but slow" in folder.done("show", "first")


def test_a_kind_that_says_nothing_is_still_listed_shown_exported_and_checked(folder: Folder) -> None:
    bare = KindView()
    bare.name = NAME
    kinds._registered[NAME] = replace(NOTES, view=bare)
    assert folder.json("list", NAME)[0]["counts"] == {"lines": 2}
    assert f"note {folder.id(NAME)}" in folder.done("show", "first")
    assert folder.done("export", "first").count("\n") == 3
    assert folder.json("verify", "first")["artifacts"][0]["faults"] == []
    [table] = (folder.path / "store" / NAME).rglob("*.parquet")
    table.write_bytes(table.read_bytes()[:-1])
    assert folder.call("verify", "first").exit_code == 1


def test_two_kinds_of_one_name_are_refused_and_unknown_ones_named(folder: Folder) -> None:
    with pytest.raises(SpecError, match="a kind of artifacts called 'notes'"):
        register(Kind(NAME, 1, NOTES.spec, NOTES.provenance, view=NoteView()))
    with pytest.raises(EngineError, match="'songs' is not a kind of artifact"):
        kinds.find_kind("songs")
