"""The page as files: each path has its own, nothing leads out of the folder, and no folder of others is lost."""

from __future__ import annotations

import base64
import gzip
import json
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import example, given, strategies as st
from support import sample_store
from support.commands import Folder
from support.node import needs_node, serve_script
from support.places import ROOT_FOLDER
from support.view_server import HOSTILE, SECRET, make_store

from evaluand.core.errors import SpecError
from evaluand.engine.keyed_work import Tally
from evaluand.report.page.bundle import PIECE, name_file, write_bundle
from evaluand.report.page.resources.base import Source, list_paths, read_resource
from evaluand.store.directory import DirectoryStore

NAMES = [
    *(
        "..",
        ".",
        "../../x",
        "/etc/passwd",
        "C:\\x",
        "con",
        "NUL",
        "com1",
        "lpt9",
        "aux.txt",
        "a" * 500,
        "a" * 101,
        "a" * 100 + "con",
        "a" * 200 + "lpt1",
        "A",
        "a",
    ),
    *(
        "_",
        "__",
        "_2e_",
        "a+",
        "+",
        "a+/b",
        "a/",
        "-",
        "é",
        "e\u0301",
        "\U0001f600",
        "\u202e",
        "x\n",
        "\0",
        "%2e",
        "%",
        " ",
    ),
]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> DirectoryStore:
    return make_store(tmp_path_factory.mktemp("hostile") / "store")


def write(store: DirectoryStore, folder: Path, piece: int = PIECE) -> Any:
    return write_bundle(Source(store, piece), folder, Tally("files"))


@pytest.fixture(scope="module")
def page(store: DirectoryStore, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any]:
    """A bundle, alone in a folder that is alone in a folder, and what was said of it."""
    folder = tmp_path_factory.mktemp("bundle") / "in" / "page"
    folder.parent.mkdir()
    return folder, write(store, folder)


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> DirectoryStore:
    return sample_store.make(tmp_path_factory.mktemp("sample") / "home-of-ann" / "store", recordings=False)


def contents(folder: Path) -> dict[str, Any]:
    """Path → the bytes that a file of a bundle gives to the page, or the reason why there are none."""
    found = {}
    for file in folder.glob("data/**/*.js"):
        text = file.read_text()
        assert (text[:9], text[-3:]) == ("evaluand(", ");\n")
        path, content, *problem = json.loads(f"[{text[9:-3]}]")
        assert file.relative_to(folder / "data") == Path(f"{name_file(path)}.js")
        found[path] = problem[0] if content is None else gzip.decompress(base64.b64decode(content, validate=True))
    return found


# Names


@pytest.fixture(scope="module")
def script_names() -> Iterator[Callable[[list[str]], list[str]]]:
    """The names that the script of the page finds for the files of some paths."""
    source = (ROOT_FOLDER / "web/src/source.js").read_text(encoding="utf-8")
    [rule] = re.findall(r"^const fileOf = .*?;$", source, re.MULTILINE | re.DOTALL)
    lines = "import { createInterface } from 'node:readline'; const lines = createInterface({ input: process.stdin });"
    answer = "lines.on('line', (line) => console.log(JSON.stringify(JSON.parse(line).map(fileOf))));"
    with serve_script("\n".join((lines, rule, answer))) as ask:
        yield ask


names = st.text(st.characters(codec="utf-8") | st.sampled_from("._-/%+~ABab"), min_size=1) | st.sampled_from(NAMES)


@needs_node
@given(st.lists(st.lists(names, min_size=1, max_size=4), min_size=1, max_size=30))
@example([[name] for name in NAMES] + [[name, "x"] for name in NAMES])
def test_the_script_of_the_page_finds_the_files_that_python_writes(
    script_names: Callable[[list[str]], list[str]], parts: list[list[str]]
) -> None:
    paths = ["/".join(quote(part, safe="") for part in each) for each in parts]
    assert script_names(paths) == [name_file(path) for path in paths]


@given(names)
@example("a" * 2000)
def test_no_name_leads_elsewhere_or_is_unusual(name: str) -> None:
    file = name_file(f"results/{quote(name, safe='')}")
    head, *parts = file.split("/")
    assert head == "results"
    for part in parts:
        assert re.fullmatch(r"[a-z0-9_+-]{1,110}", part)
        assert not re.fullmatch("con|prn|aux|nul|com[0-9]|lpt[0-9]", part)


@given(st.sets(names, min_size=2))
@example({*NAMES})
def test_no_two_paths_have_one_file(found: set[str]) -> None:
    paths = {f"results/{quote(name, safe='')}" for name in found}
    assert len({name_file(path).lower() for path in paths}) == len(paths)


# Files


def test_files_hold_what_a_server_answers(sample: DirectoryStore, tmp_path: Path) -> None:
    written = write(sample, tmp_path / "page", 10)
    found, source = contents(tmp_path / "page"), Source(sample, 10, is_published=True)
    assert {*found} == {*list_paths(source)}
    assert "index" in found
    assert sum(written.files.values()) == len(found)
    for path, content in found.items():
        if not path.startswith("answers/"):  # which say when they were made
            assert content == read_resource(source, path, {})
    pieces = [json.loads(content) for path, content in found.items() if path.startswith("rows/")]
    assert {len(piece) for piece in pieces} == {10, sample_store.ROWS % 10}
    heads = [content[8 : 8 + int(content[:8])] for path, content in found.items() if path.startswith("columns/")]
    assert {json.loads(head)["piece"] for head in heads} == {10}


def test_all_bytes_are_counted(page: tuple[Path, Any]) -> None:
    folder, written = page
    assert written.bytes == sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def test_what_cannot_be_read_says_why_in_its_place(page: tuple[Path, Any]) -> None:
    folder, written = page
    found = contents(folder)
    assert "its digest differs" in found["answers/damaged"]
    assert written.unreadable["answers/damaged"] == found["answers/damaged"]
    assert SECRET.encode() in b"".join(each for each in found.values() if isinstance(each, bytes))


def test_where_the_store_was_is_not_in_the_files(sample: DirectoryStore, tmp_path: Path) -> None:
    """The folders above it may be called after a person."""
    store = DirectoryStore(shutil.copytree(sample.root, tmp_path / "home-of-ann" / "store", symlinks=True))
    for table in [*store.root.glob("evaluations/*/*.parquet")][:1]:
        table.write_bytes(table.read_bytes()[:-40] + b"\0" * 40)
    written = write(store, tmp_path / "page")
    assert written.unreadable
    found = contents(tmp_path / "page")
    places = [path for path, content in found.items() if "home-of-ann" in str(content)]
    assert places == []
    assert json.loads(found["index"])["store"] == "store"
    assert "--store store" in str([*found.values()])


def test_hostile_names_stay_inside(page: tuple[Path, Any]) -> None:
    folder, _ = page
    assert [path.name for path in folder.parent.parent.iterdir()] == ["in"]
    assert [path.name for path in folder.parent.iterdir()] == ["page"]
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert all(re.fullmatch(r"[A-Za-z0-9_+./-]+", str(path.relative_to(folder))) for path in files)
    assert f"results/{quote(HOSTILE, safe='')}" in contents(folder)


# Folders


def keep(folder: Path) -> None:
    (folder / "mine.txt").write_text("precious")


def bundle_with_more(folder: Path) -> None:
    write(DirectoryStore(folder.parent / "none"), folder)
    keep(folder)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (keep, "exists and is not a bundle"),
        (lambda folder: (folder / "index.html").write_text("mine"), "exists and is not a bundle"),
        (bundle_with_more, "also holds 'mine.txt', which would be lost"),
    ],
)
def test_a_folder_of_others_is_not_replaced(tmp_path: Path, make: Callable[[Path], None], message: str) -> None:
    (tmp_path / "page").mkdir()
    make(tmp_path / "page")
    before = sorted(path.relative_to(tmp_path) for path in tmp_path.rglob("*"))
    with pytest.raises(SpecError, match=message):
        write(DirectoryStore(tmp_path / "none"), tmp_path / "page")
    assert sorted(path.relative_to(tmp_path) for path in tmp_path.rglob("*")) == before


def test_links_and_files_are_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("precious")
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "folder")
    (tmp_path / "dangling").symlink_to(tmp_path / "none")
    for name in ("file", "link", "dangling"):
        with pytest.raises(SpecError, match="is no folder"):
            write(DirectoryStore(tmp_path / "store"), tmp_path / name)


def test_nothing_is_written_into_the_store(store: DirectoryStore, tmp_path: Path) -> None:
    before = sorted(store.root.rglob("*"))
    (tmp_path / "link").symlink_to(store.root)
    for place in (store.root / "page", store.root / "runs" / "page", tmp_path / "link" / "page"):
        with pytest.raises(SpecError, match="is in the store"):
            write(store, place)
    with pytest.raises(SpecError, match="exists and is not a bundle"):
        write(store, store.root)
    assert sorted(store.root.rglob("*")) == before


def test_a_bundle_is_replaced_as_a_whole(store: DirectoryStore, page: tuple[Path, Any], tmp_path: Path) -> None:
    shutil.copytree(page[0], tmp_path / "page")
    (tmp_path / "page/data/old.js").write_text("old")
    write(store, tmp_path / "page")
    assert not (tmp_path / "page/data/old.js").exists()
    assert [path.name for path in tmp_path.iterdir()] == ["page"]


def test_a_bundle_that_cannot_be_finished_leaves_the_old_one(
    store: DirectoryStore, page: tuple[Path, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(page[0], tmp_path / "page")
    before = contents(tmp_path / "page")

    def full(self: Path, content: bytes) -> int:
        raise OSError(28, "No space left on device", str(self))

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(OSError, match="No space"):
        write(store, tmp_path / "page")
    assert contents(tmp_path / "page") == before
    assert [path.name for path in tmp_path.iterdir()] == ["page"]


# The command


def test_the_command_says_what_it_wrote(store: DirectoryStore, tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    options = ["view", "--bundle", tmp_path / "page", "--store", store.root]
    facts = json.loads(folder.call(*options, "--json").stdout)
    assert facts["files"] == sum(facts["of"].values()) == len(contents(tmp_path / "page"))
    assert [*facts["unreadable"]] != []
    done = folder.call(*options)
    assert f"{tmp_path}/page/index.html: {facts['files']} files of data, 0." in done.stdout
    assert "answers/damaged: " in done.stderr


def test_json_is_for_bundles(tmp_path: Path) -> None:
    assert "--json describes a bundle; give --bundle DIR" in Folder(tmp_path).call("view", "--json").stderr


def test_settings_of_a_checkout_write_no_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "evaluand.toml").write_text("[view]\nbundle = 'src'\n")
    assert "view.bundle: names a file to write, which evaluand.toml cannot" in Folder(tmp_path).refused("view")
    assert not (tmp_path / "src").exists()
