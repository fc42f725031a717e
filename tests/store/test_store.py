"""What a store promises, whichever it is; and what a folder keeps whatever names, damage and company it meets."""

from __future__ import annotations

import copy
import shutil
import subprocess
import sys
import threading
import unicodedata
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

import orjson
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings, strategies as st
from support.commands import Folder
from support.journals import lines_of
from support.manifests import SPECS, create_manifest
from support.patience import PATIENCE

from evaluand.aggregation.aggregator import Aggregation, Aggregator, Measure
from evaluand.apps.recording.writer import RecordingWriter
from evaluand.comparison import compare
from evaluand.core import identity
from evaluand.core.errors import EngineError, EvaluandError, NotFound, SpecError
from evaluand.data.dataset import Dataset
from evaluand.engine.engine import Recipe
from evaluand.engine.keyed_work import KeyedWork
from evaluand.engine.outcome import Aborted, Outcome
from evaluand.engine.policy import Policy
from evaluand.evaluation.evaluator import Evaluation, Evaluator
from evaluand.evaluation.scorer import FunctionScorer
from evaluand.evaluation.scorers.exact_match import ExactMatch
from evaluand.experiment import Experiment
from evaluand.judges.cards.card import make_card
from evaluand.matches import rate
from evaluand.matches.labelled_sets import read_labelled_file
from evaluand.matches.matcher import Matcher
from evaluand.metrics.accuracy import Accuracy
from evaluand.metrics.column_statistics import Mean
from evaluand.run.runner import Run, Runner
from evaluand.run.task import task
from evaluand.store.directory import DirectoryStore
from evaluand.store.io import DiskFolder as StoreFolder
from evaluand.store.journal import WorkLog
from evaluand.store.kinds import kind_names
from evaluand.store.leases import FileLeases
from evaluand.store.log import FileLog
from evaluand.store.store import Manifest, MemoryStore, Ref, Store, resolve, with_seal

Made = TypeVar("Made")


@pytest.fixture(params=["memory", "directory"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    return MemoryStore() if request.param == "memory" else DirectoryStore(tmp_path / "store")


@pytest.fixture
def eager_threads() -> Iterator[None]:
    """Threads that take turns as often as possible."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def id_of(text: str) -> str:
    return identity.digest(text).hex()


def manifest(id: str, kind: str = "runs", **more: Any) -> Manifest:
    return create_manifest(kind, id, **more)


SCHEMA = pa.schema([pa.field("n", pa.int64(), metadata={"role": "number"}), pa.field("text", pa.string())])


def batch(*numbers: int) -> pa.RecordBatch:
    return pa.record_batch([list(numbers), [f"t{n}" for n in numbers]], schema=SCHEMA)


def sealed(store: Store, id: str, kind: str = "runs", *, numbers: tuple[int, ...] = (1, 2), **more: Any) -> Manifest:
    draft = store.draft(kind, id)
    draft.append("things", batch(*numbers))
    return draft.seal(manifest(id, kind, digest=id_of(str(numbers)), **more))


def read(store: Store, id: str, columns: list[str] | None = None, name: str = "things") -> list[dict[str, Any]]:
    return pa.Table.from_batches(store.read("runs", id, name, columns)).to_pylist()  # type: ignore[no-any-return]


def data(n: int = 8) -> Dataset:
    return Dataset.from_rows([{"input": f"q{i}", "expected": f"q{i}"} for i in range(n)])


def echo(text: str) -> str:
    return text


ECHO = task(version="1")(echo)


def tree(folder: Path) -> dict[str, bytes]:
    """Every file below a folder with its content, and every folder."""
    return {str(path.relative_to(folder)): path.read_bytes() if path.is_file() else b"/" for path in folder.rglob("*")}


def attempt(make: Callable[[], Made]) -> Made | EvaluandError:
    """What is made, or why it is refused."""
    try:
        return make()
    except EvaluandError as error:
        return error


# What every store promises

A, B, C = (id_of(text) for text in "abc")


def test_nothing_is_in_a_new_store(store: Store) -> None:
    assert [store.ids(kind) for kind in kind_names()] == [[]] * len(kind_names())
    assert store.refs() == []
    assert not store.is_sealed("runs", A)
    for ask in (lambda: store.manifest("runs", A), lambda: list(store.read("runs", A, "things"))):
        with pytest.raises(NotFound):
            ask()


def test_a_sealed_artifact_reads_back_as_it_was_written(store: Store) -> None:
    asked = SPECS["runs"] | {"task": {"name": "ü", "list": [1, None, 2.5, True], "empty": {}}, "seed": 2**63 - 1}
    stands = sealed(store, A, spec=asked, name="first", counts={"completed": 2})
    assert store.is_sealed("runs", A)
    assert store.manifest("runs", A) == stands
    assert (stands["spec"], stands["name"], stands["counts"]) == (asked, "first", {"completed": 2})
    assert stands["tables"]["things"]["rows"] == 2
    assert read(store, A) == [{"n": 1, "text": "t1"}, {"n": 2, "text": "t2"}]
    [one] = store.read("runs", A, "things")
    assert one.schema.field("n").metadata == {b"role": b"number"}


def test_rows_keep_their_order_over_any_number_of_batches(store: Store) -> None:
    draft = store.draft("runs", A)
    for start in range(0, 10_000, 7):
        draft.append("things", batch(*range(start, min(start + 7, 10_000))))
    draft.append("others", batch(5))
    draft.seal(manifest(A, digest="d"))
    assert [row["n"] for row in read(store, A)] == list(range(10_000))
    assert read(store, A, name="others") == [{"n": 5, "text": "t5"}]


def test_an_empty_table_keeps_its_columns(store: Store) -> None:
    draft = store.draft("runs", A)
    draft.append("things", batch())
    draft.seal(manifest(A, digest="d"))
    table = pa.Table.from_batches(store.read("runs", A, "things"), SCHEMA)
    assert (table.num_rows, table.column_names) == (0, ["n", "text"])


@pytest.mark.parametrize("columns", [["n"], ["text"], ["text", "n"], ["n", "text"]])
def test_columns_come_as_asked(store: Store, columns: list[str]) -> None:
    sealed(store, A)
    for one in store.read("runs", A, "things", columns):
        assert one.schema.names == columns


def test_a_table_that_is_not_there_is_not_found(store: Store) -> None:
    sealed(store, A)
    with pytest.raises(NotFound, match="nothing"):
        list(store.read("runs", A, "nothing"))
    with pytest.raises(NotFound):
        list(store.read("evaluations", A, "things"))


def test_a_draft_is_invisible_until_it_is_sealed(store: Store) -> None:
    draft = store.draft("runs", A)
    draft.append("things", batch(1))
    assert store.ids("runs") == []
    assert not store.is_sealed("runs", A)
    with pytest.raises(NotFound):
        list(store.read("runs", A, "things"))
    draft.discard()
    assert store.ids("runs") == []
    assert sealed(store, A)["tables"]["things"]["rows"] == 2


def test_an_open_artifact_has_no_tables_yet(store: Store) -> None:
    store.open(manifest(A))
    draft = store.draft("runs", A)
    draft.append("things", batch(1))
    with pytest.raises(NotFound):
        list(store.read("runs", A, "things"))
    draft.discard()


def test_the_first_to_seal_wins(store: Store) -> None:
    one, other = store.draft("runs", A), store.draft("runs", A)
    one.append("things", batch(1))
    other.append("things", batch(2, 3))
    other.append("more", batch(4))
    first = one.seal(manifest(A, digest="one"))
    assert first["digest"] == "one"
    assert other.seal(manifest(A, digest="other")) == first
    assert store.manifest("runs", A) == first
    assert read(store, A) == [{"n": 1, "text": "t1"}]
    with pytest.raises(NotFound):
        list(store.read("runs", A, "more"))


def test_a_draft_can_be_discarded_after_another_was_sealed(store: Store) -> None:
    one, other = store.draft("runs", A), store.draft("runs", A)
    one.append("things", batch(1))
    other.append("things", batch(2))
    one.seal(manifest(A, digest="one"))
    other.discard()
    assert read(store, A) == [{"n": 1, "text": "t1"}]


def test_drafts_of_one_artifact_sealed_at_once_agree(store: Store, eager_threads: None) -> None:
    for round in range(5):
        id = id_of(f"round {round}")
        start = threading.Barrier(6)
        stand: list[Manifest] = []
        failures: list[BaseException] = []

        def seal(number: int, id: str = id, start: threading.Barrier = start, stand: list[Manifest] = stand) -> None:
            try:
                draft = store.draft("runs", id)
                draft.append("things", batch(number))
                draft.append("others", batch(number, number))
                start.wait(PATIENCE)
                stand.append(draft.seal(manifest(id, digest=f"by {number}", winner=number)))
            except BaseException as error:
                failures.append(error)  # noqa: B023 - every thread ends within its round

        threads = [threading.Thread(target=seal, args=(number,)) for number in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert failures == []
        assert stand == [store.manifest("runs", id)] * 6
        winner = stand[0]["winner"]
        assert read(store, id) == [{"n": winner, "text": f"t{winner}"}]
        assert len(read(store, id, name="others")) == 2


def test_an_open_artifact_keeps_its_first_manifest(store: Store) -> None:
    first = store.open(manifest(A, name="first"))
    assert store.open(manifest(A, name="second")) == first
    assert store.manifest("runs", A) == first
    assert first["name"] == "first"
    assert not store.is_sealed("runs", A)
    assert store.ids("runs") == [A]


def test_opening_what_is_sealed_changes_nothing(store: Store) -> None:
    stands = sealed(store, A)
    assert store.open(manifest(A, name="again")) == stands
    assert store.manifest("runs", A) == stands
    assert store.is_sealed("runs", A)


def test_a_manifest_that_was_read_can_be_changed_without_changing_the_store(store: Store) -> None:
    given = manifest(A, spec=SPECS["runs"] | {"list": [1]}, counts={"failed": 1}, digest="d")
    draft = store.draft("runs", A)
    draft.append("things", batch(1))
    draft.seal(given)
    store.open(opened := manifest(B, spec=SPECS["runs"] | {"list": [1]}))
    before = [copy.deepcopy(store.manifest("runs", id)) for id in (A, B)]
    for taken in (given, opened, store.manifest("runs", A), store.manifest("runs", B)):
        taken["spec"]["list"].append("changed")
        taken["name"] = "changed"
    store.manifest("runs", A)["counts"].clear()
    assert [store.manifest("runs", id) for id in (A, B)] == before


def test_ids_are_listed_by_kind_and_in_order(store: Store) -> None:
    for id in (C, A, B):
        sealed(store, id)
    sealed(store, C, "evaluations")
    store.open(manifest(A, "datasets"))
    assert store.ids("runs") == sorted([A, B, C])
    assert store.ids("evaluations") == [C]
    assert store.ids("datasets") == [A]
    assert store.ids("aggregations") == []


def test_artifacts_are_found_by_their_work_newest_first(store: Store) -> None:
    x, y = "1" * 32, "2" * 32
    sealed(store, A, work=[x, y], created="2024-01-01T00:00:00")
    sealed(store, B, work=[x], created="2024-03-01T00:00:00")
    store.open(manifest(C, work=[x], created="2024-02-01T00:00:00"))
    sealed(store, id_of("d"), work=["3" * 32])
    sealed(store, A, "evaluations", work=[x])
    assert store.find("runs", x) == [B, C, A]
    assert store.find("runs", y) == [A]
    assert store.find("runs", "4" * 32) == []
    assert store.find("runs", "") == []


def test_lanes_of_an_artifact_are_kept_apart_and_found_again(store: Store) -> None:
    store.open(manifest(A))
    for name, slot in (("one", 0), ("two", 1)):
        lane = store.lane("runs", A, name, 3)
        lane.append(b'[%d,"%s"]\n' % (slot, name.encode()))
        lane.close()
    again = store.lane("runs", A, "two", 3)
    again.refresh()
    assert lines_of(again) == [b'[1,"two"]\n']
    again.close()


def test_a_name_stands_for_one_artifact_of_each_kind(store: Store) -> None:
    store.refer("best", "runs", A)
    store.refer("best", "evaluations", B)
    store.refer("Best", "runs", C)
    assert store.refs() == sorted([Ref("best", "runs", A), Ref("best", "evaluations", B), Ref("Best", "runs", C)])
    store.refer("best", "runs", B)
    assert Ref("best", "runs", B) in store.refs()
    assert Ref("best", "runs", A) not in store.refs()
    assert len(store.refs()) == 3


@pytest.mark.parametrize(
    "id", ["", "..", "../../evil", "/etc/passwd", A[:-1], A + "0", A.upper(), f"{A}\n", f"{A[:31]}/"]
)
def test_invalid_id_is_never_found(store: Store, id: str) -> None:
    with pytest.raises(NotFound):
        store.manifest("runs", id)
    with pytest.raises(NotFound):
        list(store.read("runs", id, "things"))
    with pytest.raises(NotFound):
        store.manifest(f"runs/../{id}", A)


# A folder


@pytest.fixture
def folder(tmp_path: Path) -> DirectoryStore:
    return DirectoryStore(tmp_path / "store")


def path_of(store: DirectoryStore, id: str, kind: str = "runs") -> Path:
    return store.root / kind / id


def test_a_sealed_artifact_consists_of_its_manifest_and_its_tables(folder: DirectoryStore) -> None:
    folder.open(manifest(A))
    lane = folder.lane("runs", A, "lane", 5)
    lane.append(b"[0,1]\n")
    lane.close()
    stands = sealed(folder, A)
    files = {path.name for path in path_of(folder, A).iterdir()}
    assert files == {"manifest.json", stands["tables"]["things"]["file"]}


def test_opening_what_is_sealed_leaves_no_files(folder: DirectoryStore) -> None:
    sealed(folder, A)
    before = tree(path_of(folder, A))
    folder.open(manifest(A, name="again"))
    assert tree(path_of(folder, A)) == before


def test_a_store_is_made_when_it_is_first_written_to(tmp_path: Path) -> None:
    one = DirectoryStore(tmp_path / "deep" / "store")
    assert one.ids("runs") == []
    assert one.refs() == []
    with pytest.raises(NotFound):
        one.manifest("runs", A)
    assert not one.root.exists()
    sealed(one, A)
    assert one.ids("runs") == [A]


def test_two_views_of_one_folder_see_the_same(folder: DirectoryStore) -> None:
    other = DirectoryStore(folder.root)
    assert other.ids("runs") == []
    sealed(folder, A)
    folder.refer("name", "runs", A)
    assert other.ids("runs") == [A]
    assert other.refs() == [Ref("name", "runs", A)]
    shutil.rmtree(path_of(other, A))
    assert folder.ids("runs") == []


def test_a_stored_table_is_named_by_its_content(folder: DirectoryStore) -> None:
    one, same, other = sealed(folder, A), sealed(folder, B), sealed(folder, C, numbers=(7,))
    entries = [stands["tables"]["things"] for stands in (one, same, other)]
    assert entries[0] == entries[1] != entries[2]
    path = path_of(folder, A) / entries[0]["file"]
    assert path.stat().st_size == entries[0]["bytes"]
    assert identity.digest_of_file(path) == entries[0]["digest"]


def test_the_rows_of_many_tables_wait_for_their_row_groups_within_one_limit(folder: DirectoryStore) -> None:
    megabyte = pa.record_batch([list(range(1000)), ["x" * 1000] * 1000], schema=SCHEMA)
    draft = folder.draft("runs", A)
    for _ in range(2):
        for table in range(80):
            draft.append(f"t{table}", megabyte)
    made = draft.seal(manifest(A, digest=id_of("a")))
    files = [path_of(folder, A) / entry["file"] for entry in made["tables"].values()]
    groups = [pq.ParquetFile(file).metadata.num_row_groups for file in files]
    assert len(groups) == 80
    assert sum(groups) > 80  # of 16 MB, one each would do


# Damage


@pytest.mark.parametrize(
    "file", ["../../secret.parquet", "/etc/passwd", "..", ".", "", "a/b.parquet", "sub/../x.parquet"]
)
def test_a_manifest_that_names_a_file_outside_its_folder_is_refused(folder: DirectoryStore, file: str) -> None:
    (folder.root / "runs").mkdir(parents=True)
    stands = sealed(folder, A)
    secret = path_of(folder, A) / stands["tables"]["things"]["file"]
    shutil.copy(secret, folder.root / "secret.parquet")
    stands["tables"]["things"]["file"] = file
    (path_of(folder, A) / "manifest.json").write_bytes(orjson.dumps(with_seal(stands)))
    with pytest.raises(EngineError, match="outside its folder"):
        list(folder.read("runs", A, "things"))


@pytest.mark.parametrize(
    "text", [b"", b"{", b"[]", b"null", b"\x00" * 50], ids=["empty", "cut", "list", "null", "zeros"]
)
def test_a_damaged_manifest_is_an_error_that_names_it(folder: DirectoryStore, text: bytes) -> None:
    sealed(folder, A)
    path = path_of(folder, A) / "manifest.json"
    path.write_bytes(text)
    with pytest.raises(EngineError, match=r"manifest\.json") as raised:
        folder.manifest("runs", A)
    assert not isinstance(raised.value, NotFound)


@pytest.mark.parametrize(
    "damaged", [lambda d: b"", lambda d: d[:100], lambda d: b"\x00" * len(d)], ids=["empty", "cut", "zeros"]
)
def test_a_damaged_table_is_an_error_that_names_it(folder: DirectoryStore, damaged: Callable[[bytes], bytes]) -> None:
    stands = sealed(folder, A)
    path = path_of(folder, A) / stands["tables"]["things"]["file"]
    path.write_bytes(damaged(path.read_bytes()))
    with pytest.raises(EngineError, match=path.name):
        list(folder.read("runs", A, "things"))


def test_a_missing_table_is_an_error_that_names_it(folder: DirectoryStore) -> None:
    stands = sealed(folder, A)
    path = path_of(folder, A) / stands["tables"]["things"]["file"]
    path.unlink()
    with pytest.raises(EngineError, match=path.name):
        list(folder.read("runs", A, "things"))


# Names


LONG = "x" * 300


def short(name: str) -> str:
    return f"{name!a:.30}"


LOOK_ALIKE = [
    ("v1.1", "v1.2"),
    ("a/b", "a_b"),
    ("a", "a "),
    ("A", "a"),
    ("naïve", unicodedata.normalize("NFD", "naïve")),
]
LOOK_ALIKE += [
    (LONG, LONG + "y"),
    ("...", ".."),
    ("😀", "😁"),
    ("CON", "con"),
    ("a.", "a"),
    ("-", "--"),
    ("\u200b", "\u200c"),
]
NAMES = [
    "v1.1",
    "a/b",
    "../../evil",
    "/etc/passwd",
    "..",
    ".",
    "~",
    "$HOME",
    "%2e%2e%2f",
    "a\\..\\b",
    "C:\\x",
    "CON",
    "nul.txt",
    "trailing.",
    "trailing ",
    " leading",
    "-rf",
    "*",
    "manifest.json",
    "open.json",
    "journal",
    "catalog.db",
    LONG,
    "ü" * 300,
    "😀👩‍👩‍👧",
    "naïve",
    unicodedata.normalize("NFD", "naïve"),
    "\u202eevil",
    "'; DROP TABLE artifact; --",
    "{}",
    "scores/a",
    A,
]
REFUSED = ["", " ", "\t", "\u3000", "a\nb", "a\x00b", "\x1b[31mred", "\x7f", "\x85", "\ud800"]


ALL_NAMES = list(dict.fromkeys([*NAMES, *(name for pair in LOOK_ALIKE for name in pair)]))


@pytest.mark.parametrize(
    "name", ["../../evil", "/etc/passwd", "a\\..\\b", "manifest.json", LONG, "\u202eevil"], ids=short
)
def test_no_name_leaves_the_store_or_reaches_a_path(tmp_path: Path, name: str) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "precious").write_text("kept")
    (tmp_path / "work").mkdir()
    store = DirectoryStore(tmp_path / "work" / "store")

    named = Dataset.from_rows([{"id": name, "input": "q", "expected": "q"}], name=name)
    run = Runner(store).run(ECHO, named, name=name)
    evaluation = Evaluator().evaluate(run, {name: ExactMatch()}, name=name)
    aggregation = Aggregator().aggregate([evaluation], [Measure(name, Accuracy())], name=name)
    compare(evaluation, evaluation, name=name)
    matches = Matcher().match([run, run], lambda first, second: "tie", labels=[name, f"{name} "], name=name)
    rate(matches, name=name)
    make_card(read_labelled_file([{"label": 1, "judgement": 1}], name), store, name=name)
    RecordingWriter.begin(store, {"name": name}, name=name).close()

    again = DirectoryStore(store.root)
    for kind, id in (("runs", run.id), ("evaluations", evaluation.id), ("aggregations", aggregation.id)):
        assert resolve(again, name, kind) == (kind, id)
    assert Run(again, run.id).dataset.name == name
    assert {path.name for path in tmp_path.iterdir()} == {"outside", "work"}
    assert {path.name for path in (tmp_path / "work").iterdir()} == {"store"}
    assert tree(outside) == {"precious": b"kept"}
    known = {"refs", *kind_names()}
    assert {path.name for path in store.root.iterdir()} <= known
    for kind in kind_names():
        assert all(len(path.name) == 32 for path in (store.root / kind).iterdir())
        assert all(path.is_file() for path in (store.root / kind).glob("*/*"))


def test_hostile_and_similar_names_of_artifacts_stand_side_by_side(store: Store) -> None:
    for name in ALL_NAMES:
        store.refer(name, "runs", id_of(name))
    for name in ALL_NAMES:
        assert resolve(store, name, "runs") == ("runs", id_of(name))
    assert len(store.refs()) == len(ALL_NAMES)


def test_hostile_and_similar_names_of_scorers_and_examples_stand_side_by_side(store: Store) -> None:
    def graded(number: int) -> FunctionScorer:
        return FunctionScorer(lambda output: float(number), version=str(number))

    rows = [{"id": name, "input": f"q{i}"} for i, name in enumerate(ALL_NAMES)]
    run = Runner(store).run(ECHO, Dataset.from_rows(rows))
    evaluation = Evaluator().evaluate(run, {name: graded(i) for i, name in enumerate(ALL_NAMES)})
    assert sorted(evaluation.scorers) == sorted(ALL_NAMES)
    for i, name in enumerate(ALL_NAMES):
        assert set(evaluation.table(name)["value"].to_pylist()) == {float(i)}
    assert [example.id for example in run.dataset] == ALL_NAMES
    measures = [Measure(name, Mean()) for name in ALL_NAMES]
    table = Aggregator().aggregate([evaluation], measures).table()
    assert table["scorer"].to_pylist() == ALL_NAMES
    assert table["value"].to_pylist() == [float(i) for i in range(len(ALL_NAMES))]


@settings(max_examples=25)
@given(names=st.lists(st.text(min_size=1, max_size=12), min_size=2, max_size=5, unique=True))
def test_names_are_kept_apart_or_refused(tmp_path_factory: pytest.TempPathFactory, names: list[str]) -> None:
    store = DirectoryStore(tmp_path_factory.mktemp("names"))
    kept: dict[str, str] = {}
    for name in names:
        try:
            store.refer(name, "runs", id_of(name))
            kept[name] = id_of(name)
        except SpecError:
            assert not name.strip() or not name.isprintable()
    assert {ref.name: ref.id for ref in store.refs()} == kept


@pytest.mark.parametrize("name", REFUSED, ids=short)
def test_a_name_that_cannot_be_shown_is_refused_before_anything_is_called(name: str) -> None:
    store, calls = MemoryStore(), list[str]()

    def answer(text: str) -> str:
        calls.append(text)
        return text

    def grade(output: str) -> float:
        calls.append(output)
        return 1.0

    with pytest.raises(SpecError, match="name"):
        Runner(store).run(answer, data(), name=name)
    measures = [Measure("grade", Accuracy())]
    with pytest.raises(SpecError, match="name"):
        Experiment(name, data(), {"it": answer}, {"grade": grade}, measures).run(store)
    with pytest.raises(SpecError, match="name"):
        Experiment("e", data(), {name: answer}, {"grade": grade}, measures).run(store)
    assert calls == []

    run = Runner(store).run(ECHO, data())
    with pytest.raises(SpecError, match="name"):
        Evaluator().evaluate(run, {"grade": grade}, name=name)
    with pytest.raises(SpecError, match="name"):
        Evaluator().evaluate(run, {name: grade})
    assert calls == []
    assert store.refs() == []


@pytest.mark.parametrize("name", REFUSED, ids=short)
def test_a_name_that_cannot_be_shown_stands_for_nothing(store: Store, name: str) -> None:
    with pytest.raises(SpecError, match="name"):
        store.refer(name, "runs", A)
    assert store.refs() == []


@pytest.mark.parametrize("name", REFUSED, ids=short)
def test_a_dataset_with_a_name_that_cannot_be_shown_is_refused_or_kept(store: Store, name: str) -> None:
    stored = attempt(lambda: Dataset.from_rows([{"input": "q"}], name=name).save(store))
    if isinstance(stored, EvaluandError):
        assert "name" in str(stored)
    else:
        assert Dataset.stored(store, stored.id).name == name


@pytest.mark.parametrize("example", ["a\nb", "\x1b[31mred", "\x00", " ", "../x", "\u2028"], ids=short)
def test_an_example_may_have_any_id(store: Store, example: str) -> None:
    rows = [{"id": example, "input": "q"}, {"id": example + "x", "input": "q"}]
    stored = Dataset.from_rows(rows).save(store)
    assert [one.id for one in stored] == [example, example + "x"]


def test_examples_with_the_same_id_are_refused(store: Store) -> None:
    with pytest.raises(EvaluandError, match="occurs twice"):
        Dataset.from_rows([{"id": "a", "input": "q"}, {"id": "b", "input": "q"}, {"id": "a", "input": "r"}])


def test_ids_in_different_unicode_forms_are_different_examples(store: Store) -> None:
    forms = ["naïve", unicodedata.normalize("NFD", "naïve")]
    stored = Dataset.from_rows([{"id": form, "input": "q"} for form in forms]).save(store)
    assert [one.id for one in stored] == forms


def test_the_names_of_experiments_and_tasks_do_not_run_together(store: Store) -> None:
    """The task c of a/b and the task b/c of a are not the same thing."""
    measures = [Measure("same", Accuracy())]

    def run(experiment: str, name: str, n: int) -> Run:
        results = Experiment(experiment, data(n), {name: ECHO}, {"same": ExactMatch()}, measures).run(store)
        return results.tasks[0].run

    made = [attempt(lambda: run("a/b", "c", 2)), attempt(lambda: run("a", "b/c", 3))]
    kept = [one for one in made if not isinstance(one, EvaluandError)]
    assert all("name" in str(one) for one in made if isinstance(one, EvaluandError))
    assert len({one.name for one in kept}) == len(kept)
    for one in kept:
        assert one.name is not None
        assert resolve(store, one.name, "runs") == ("runs", one.id)


# Finding


def test_a_name_is_found_before_the_beginning_of_an_id(store: Store) -> None:
    first, second = "abcd" + "0" * 28, "ffff" + "0" * 28
    for id in (first, second):
        sealed(store, id)
    store.refer("abcd", "runs", second)
    assert resolve(store, "abcd") == ("runs", second)
    assert resolve(store, "abcd0") == ("runs", first)


def test_four_digits_are_enough_where_they_are_unique(store: Store) -> None:
    first, second = "abcd1" + "0" * 27, "abcd2" + "0" * 27
    for id in (first, second):
        sealed(store, id)
    assert resolve(store, first) == ("runs", first)
    assert resolve(store, "abcd1") == ("runs", first)
    assert resolve(store, "ABCD2") == ("runs", second)
    with pytest.raises(NotFound, match="several") as raised:
        resolve(store, "abcd")
    assert first in str(raised.value)
    assert second in str(raised.value)
    with pytest.raises(NotFound):
        resolve(store, "abc")
    with pytest.raises(NotFound):
        resolve(store, "")


def test_the_same_beginning_in_two_kinds_needs_the_kind(store: Store) -> None:
    sealed(store, A, "runs")
    sealed(store, A, "evaluations")
    with pytest.raises(NotFound, match="several"):
        resolve(store, A)
    assert resolve(store, A, "evaluations") == ("evaluations", A)


def test_a_name_of_several_kinds_stands_for_the_run(store: Store) -> None:
    for kind in reversed(kind_names()):
        sealed(store, id_of(kind), kind)
        store.refer("all", kind, id_of(kind))
    assert resolve(store, "all") == ("runs", id_of("runs"))
    assert resolve(store, "all", "datasets") == ("datasets", id_of("datasets"))


@pytest.mark.parametrize("text", ["nothing", "%", "____", "*", "../runs", "\x00", "0" * 32, "'"])
def test_what_is_not_there_is_not_found(store: Store, text: str) -> None:
    sealed(store, A)
    with pytest.raises(NotFound):
        resolve(store, text)


# Company


SAVES = """
import sys
from pathlib import Path
from evaluand.data.dataset import Dataset
from evaluand.store.directory import DirectoryStore

store = DirectoryStore(sys.argv[1])
sets = [Dataset.from_rows([{"input": f"{n}/{i}"} for i in range(50)]) for n in range(20)]
print("ready", flush=True)
sys.stdin.readline()
for one in sets:
    stored = one.save(store)
    assert len(list(stored)) == 50
print(*store.ids("datasets"))
"""


def test_threads_that_run_at_once_share_a_store_in_memory(eager_threads: None) -> None:
    store = MemoryStore()

    def run_several(number: int) -> None:
        for other in range(3):
            Runner(store).run(str.upper, Dataset.from_rows([{"input": f"{number} {other}"}]))

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(run_several, range(8)))
    assert len(store.ids("runs")) == 24


@pytest.mark.slow
def test_processes_that_save_the_same_datasets_at_once_end_with_one_of_each(folder: DirectoryStore) -> None:
    started = [
        subprocess.Popen(
            [sys.executable, "-c", SAVES, str(folder.root)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(2)
    ]
    for one in started:
        assert one.stdout is not None
        assert one.stdout.readline() == "ready\n"
    for one in started:
        assert one.stdin is not None
        one.stdin.write("go\n")
        one.stdin.flush()
    reported = [one.communicate(timeout=PATIENCE) for one in started]
    assert [error for _, error in reported] == ["", ""]
    found = folder.ids("datasets")
    assert len(found) == 20
    assert [out.split() for out, _ in reported] == [found, found]
    for id in found:
        stands = folder.manifest("datasets", id)
        files = {path.name for path in path_of(folder, id, "datasets").iterdir()}
        assert files == {"manifest.json", stands["tables"]["examples"]["file"]}


class _Unit:
    size = 1

    def __init__(self, slot: int) -> None:
        self.slot = slot


class SealsFirst(FileLeases):
    """Lets another process seal the artifact just before this one looks for work, or once it has some."""

    def __init__(self, log: FileLog, seal: Callable[[], Any], after: int) -> None:
        super().__init__(log._folder, log)
        self.seal, self.after = seal, after

    def claim(self, shards: int, *, is_fenced: bool = True) -> tuple[int, int] | None:
        if self.after == 0:
            self.seal()
        self.after -= 1
        return super().claim(shards)


@pytest.mark.parametrize("after", [0, 1])
def test_work_that_another_process_seals_meanwhile_ends_quietly(folder: DirectoryStore, after: int) -> None:
    folder.open(manifest(A))
    folder.lane("runs", A, "lane", 4).close()
    log = FileLog(StoreFolder(folder.root, "runs", A, "journal", "lane"), f"runs/{A}/lane")
    leases = SealsFirst(log, lambda: sealed(DirectoryStore(folder.root), A), after)
    lane = WorkLog(log, leases, 4)

    def line(unit: _Unit, outcome: Outcome) -> tuple[bytes, int]:
        return b"[%d,1]\n" % unit.slot, 0

    work = KeyedWork(
        lane,
        lambda start, stop: (_Unit(slot) for slot in range(start, stop)),
        Recipe(lambda unit: None, line),
        sealed=lambda: folder.is_sealed("runs", A),
    )
    work.perform()
    lane.close()
    stands = folder.manifest("runs", A)
    assert {path.name for path in path_of(folder, A).iterdir()} == {
        "manifest.json",
        stands["tables"]["things"]["file"],
    }


class SealedMeanwhile(DirectoryStore):
    """Another process seals the artifact just after this one has looked whether it is sealed."""

    looked = False

    def is_sealed(self, kind: str, id: str) -> bool:
        found = super().is_sealed(kind, id)
        if not self.looked:
            self.looked = True
            sealed(DirectoryStore(self.root), id)
        return found


def only_whole_files(store: DirectoryStore, id: str) -> bool:
    stands = store.manifest("runs", id)
    files = {entry["file"] for entry in stands["tables"].values()}
    return {path.name for path in path_of(store, id).iterdir()} == {"manifest.json", *files}


def test_an_artifact_that_is_sealed_while_it_is_opened_is_found_sealed(tmp_path: Path) -> None:
    store = SealedMeanwhile(tmp_path)
    opened = store.open(manifest(A))
    assert store.is_sealed("runs", A)
    assert opened == store.manifest("runs", A)
    assert only_whole_files(store, A)
    assert [entry["status"] for entry in store.catalog.entries()] == ["sealed"]


def test_a_lane_that_is_used_after_the_artifact_was_sealed_leaves_nothing(folder: DirectoryStore) -> None:
    folder.open(manifest(A))
    early, late = folder.lane("runs", A, "lane", 4), folder.lane("runs", A, "lane", 4)
    assert early.leases.claim(1) == (0, 0)
    early.append(b"[0,1]\n")
    sealed(DirectoryStore(folder.root), A)
    early.append(b"[1,1]\n")
    early.leases.finish(0)
    for lane in (early, late):
        lane.refresh()
        lane.leases.claim(1)
        lane.append(b"[2,1]\n")
        lane.leases.busy()
        lane.close()
    assert only_whole_files(folder, A)


def test_what_is_stored_is_opened_by_its_name_or_the_first_digits_of_its_id(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    folder.call("run", folder.experiment())
    for kind, name in ((Run, "doubling/mine"), (Evaluation, "doubling/mine"), (Aggregation, "doubling")):
        assert kind.open(folder.store, name).id == kind.open(folder.store, folder.id(kind.kind)[:6]).id
    with pytest.raises(NotFound, match="no aggregation is called 'doubling/mine', but "):
        Aggregation.open(folder.store, "doubling/mine")


def test_what_is_not_finished_is_not_opened() -> None:
    store = MemoryStore()
    with pytest.raises(Aborted):
        Runner(store, Policy(abort_on_error=True)).run(int, Dataset.from_rows([{"input": "x"}]))
    (id,) = store.ids("runs")
    with pytest.raises(SpecError, match=f"run {id} is not finished"):
        Run.open(store, id)


def test_names_are_short_enough_to_be_listed(store: Store) -> None:
    store.refer("n" * 4096, "runs", A)
    with pytest.raises(SpecError, match=r"^a name must have at most 4,096 characters, not 4,097: 'n{40}'…$"):
        store.refer("n" * 4097, "runs", A)
