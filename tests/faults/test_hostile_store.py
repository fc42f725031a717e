"""A store that came from somebody else: looking neither writes nor executes, and no command touches what is outside.

Each trial puts one odd thing at one place of a copy of the sample store, and calls one command in a process of its own,
with little memory and little time.
"""

from __future__ import annotations

import hashlib
import os
import random
import resource
import shutil
import signal
import socket
import sqlite3
import stat
import struct
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest
from support import sample_store
from support.forgery import Forgery, describe, forge, list_forgeries
from support.forks import call_in_fork

from evaluand.cli import main
from evaluand.core.user import cache_folder
from evaluand.store.kinds import kind_names

pytestmark = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no pipes in folders")

SECONDS = 30  # for one command, on a slow machine
MEMORY = 2 << 30  # more than the process of the tests has
PRECIOUS = b"precious"

LOOKING = [
    ["list"],
    ["list", "--json"],
    ["show", "sample/double"],
    ["show", "sample/open"],
    ["show", "sample"],
    ["export", "sample/matches", "-o", "OUT/matches.csv"],
    ["show", "guide/killed"],
    ["verify"],
    ["verify", "sample/double"],
    ["report", "sample/double", "-o", "OUT/page.html"],
    ["export", "sample/double", "-o", "OUT/rows.csv"],
    ["gc", "--dry-run"],
    ["gc", "--dry-run", "--unreferenced", "--open-older-than", "0s"],
    ["leaderboard"],
    ["feedback", "status", "guide/killed"],
    ["label", "export", "sample/double", "-o", "OUT/labels.jsonl"],
    ["complete", "sam"],
]
WRITING = [
    ["compare", "sample/double", "sample/nearly"],
    ["import", "OUT/answers.csv", "--dataset", "numbers", "--by", "index", "--key", "number", "--response", "answer"],
    ["run", "OUT/experiment.yaml"],
    ["gc", "--yes"],
    ["gc", "--unreferenced", "--open-older-than", "0s", "--yes"],
    ["resume", "sample/open"],
    ["resume", "guide/killed"],
]
EXPERIMENT = """
name: hostile
dataset: {path: answers.csv, input: number, expected: answer}
tasks: {recorded: {kind: recorded, path: answers.csv, by: index, key: number, response: answer}}
scorers: [exact_match]
metrics: [accuracy]
"""


@dataclass
class Ground:
    """A folder with a copy of the sample store, and what is outside of it."""

    folder: Path

    @property
    def store(self) -> Path:
        return self.folder / "store"

    @property
    def outside(self) -> Path:
        return self.folder / "outside"


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("original") / "store"
    sample_store.make(folder)
    shutil.rmtree(cache_folder(), ignore_errors=True)
    return folder


@pytest.fixture
def ground(original: Path, tmp_path: Path) -> Ground:
    return prepare(original, tmp_path / "ground")


def prepare(original: Path, folder: Path) -> Ground:
    made = Ground(folder)
    made.outside.mkdir(parents=True)
    shutil.copytree(original, made.store)
    for name in ("manifest.json", "open.json", "a-12345678.parquet", "notes.txt", "x.tmp"):
        (made.outside / name).write_bytes(PRECIOUS)
    (made.outside / "journal").mkdir()
    (made.outside / "journal" / "notes.txt").write_bytes(PRECIOUS)
    out = folder / "out"
    out.mkdir()
    (out / "answers.csv").write_text("number,answer\n" + "".join(f"{n},{n * 2}\n" for n in range(24)))
    (out / "experiment.yaml").write_text(EXPERIMENT)
    return made


# What is put into a store


def link_to_file(place: Path, ground: Ground) -> None:
    place.symlink_to(ground.outside / "manifest.json")


def link_to_folder(place: Path, ground: Ground) -> None:
    place.symlink_to(ground.outside)


def dangling_link(place: Path, ground: Ground) -> None:
    place.symlink_to(ground.outside / "new")


def pipe(place: Path, ground: Ground) -> None:
    os.mkfifo(place)


def endless_device(place: Path, ground: Ground) -> None:
    try:
        os.mknod(place, stat.S_IFCHR | 0o666, os.makedev(1, 5))
    except OSError:  # only the administrator can
        place.symlink_to("/dev/zero")


def network_socket(place: Path, ground: Ground) -> None:
    def make() -> None:
        os.chdir(place.parent)  # the name of a socket is short
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(place.name)

    assert call_in_fork(make) == 0


def huge_file(place: Path, ground: Ground) -> None:
    with place.open("wb") as file:
        file.truncate(1 << 36)


def folder_in_its_place(place: Path, ground: Ground) -> None:
    place.mkdir()
    (place / "x").write_bytes(b"x")


ODD: list[Callable[[Path, Ground], None]] = [
    link_to_file,
    link_to_folder,
    dangling_link,
    pipe,
    endless_device,
    network_socket,
    huge_file,
    folder_in_its_place,
]


def hot_journal(database: Path, victim: Path) -> None:
    """A database whose journal makes SQLite delete another file when it is opened."""
    database.unlink(missing_ok=True)
    with sqlite3.connect(database) as made:
        made.execute("CREATE TABLE artifact (kind, id, name, created, work, status, digest, counts)")
        made.execute("PRAGMA user_version = 1")
    made.close()
    pages, size = struct.unpack(">H", database.read_bytes()[16:18])[0], database.stat().st_size
    head = bytes.fromhex("d9d505f920a163d7") + struct.pack(">IIIII", 0, 1, size // pages, 512, pages)
    name = os.fsencode(victim)
    tail = struct.pack(">I", (1 << 30) // pages + 1) + name + struct.pack(">II", len(name), sum(name))
    journal = database.with_name(database.name + "-journal")
    journal.unlink(missing_ok=True)
    journal.write_bytes(head.ljust(512, b"\0") + tail + bytes.fromhex("d9d505f920a163d7"))


def hostile_view(database: Path) -> None:
    """A database whose table is a view without an end."""
    for path in (database, database.with_name(database.name + "-journal")):
        path.unlink(missing_ok=True)
    made = sqlite3.connect(database)
    endless = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT"
    artifact = "'runs' kind, x id, '' name, '' created, '' work, 'open' status, '' digest, '' counts"
    made.execute(f"CREATE VIEW artifact AS {endless} {artifact} FROM n")
    lease = "x shard, 0 done, 'a/1/b' holder, 1e12 until, 1 takers"
    made.execute(f"CREATE VIEW lease AS {endless} {lease} FROM n")
    made.execute("PRAGMA user_version = 1")
    made.commit()
    made.close()


def databases(store: Path) -> Iterator[Path]:
    """The places where earlier versions had databases."""
    yield store / "catalog.db"
    for log in store.glob("*/*/journal/*"):
        yield log / "leases.db"


def places(store: Path) -> list[Path]:
    """Every file and folder of a store, and the places where more could lie."""
    known = [path for path in store.rglob("*") if not path.name.startswith("catalog.db")]
    ids = {path for kind in kind_names() for path in (store / kind).glob("*")}
    more = {path / name for path in ids for name in ("journal", "open.json", ".manifest.json-0a0b0c0d.1.tmp")}
    return sorted({*known, *more, *databases(store), store / "refs" / f"{'0' * 32}.json", store / "runs" / ("a" * 32)})


# A command, in a process of its own


@dataclass
class Called:
    """What became of a command: its exit code, minus the signal that ended it, and its output."""

    code: int
    output: str


def call(command: Sequence[str], ground: Ground) -> Called:
    arguments = [text.replace("OUT", str(ground.folder / "out")) for text in command]
    printed = ground.folder / "printed"
    child = os.fork()
    if not child:
        code = 70
        try:
            os.setsid()
            most = MEMORY + address_space()
            resource.setrlimit(resource.RLIMIT_AS, (most, most))
            target = os.open(printed, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            for stream in (1, 2):
                os.dup2(target, stream)
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            sys.stdin = open(0, closefd=False)  # noqa: SIM115 - until the process ends
            sys.stdout, sys.stderr = (open(number, "w", closefd=False) for number in (1, 2))  # noqa: SIM115
            os.chdir(ground.folder / "out")
            os.environ |= {"EVALUAND_STORE": str(ground.store), "TERM": "dumb", "COLUMNS": "200"}
            code = run_main(arguments)
        except BaseException:
            traceback.print_exc()
        with suppress(BaseException):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)
    until = time.monotonic() + SECONDS
    while True:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return Called(os.waitstatus_to_exitcode(status), printed.read_text(errors="replace"))
        if time.monotonic() > until:
            os.killpg(child, signal.SIGKILL)
            os.waitpid(child, 0)
            return Called(-signal.SIGALRM, f"no end after {SECONDS} s\n{printed.read_text(errors='replace')}")
        time.sleep(0.002)


def address_space() -> int:
    """The bytes of addresses that this process has."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    except OSError:
        return MEMORY


def run_main(arguments: list[str]) -> int:
    if arguments[0] == "complete":
        os.environ |= {
            "_EVALUAND_COMPLETE": "bash_complete",
            "COMP_WORDS": f"evaluand show {arguments[1]}",
            "COMP_CWORD": "2",
        }
        arguments = []
    try:
        main(arguments, prog_name="evaluand")
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    return 0


Tree = dict[str, object]


def snapshot(folder: Path) -> Tree:
    """Everything in a folder: kinds, times and content, without following links."""
    found: Tree = {}
    for path in folder.rglob("*"):
        state = path.lstat()
        content = os.readlink(path) if path.is_symlink() else None
        if stat.S_ISREG(state.st_mode) and state.st_size < 1 << 24:
            content = hashlib.blake2b(path.read_bytes()).hexdigest()
        times = 0 if stat.S_ISDIR(state.st_mode) and path == folder else state.st_mtime_ns
        found[str(path.relative_to(folder))] = (stat.S_IFMT(state.st_mode), state.st_size, times, content)
    return found


def writes(command: Sequence[str]) -> bool:
    return "--yes" in command or command[0] in ("compare", "import", "run", "resume")


def check(ground: Ground, command: Sequence[str], about: str) -> Called:
    outside, store = snapshot(ground.outside), snapshot(ground.store)
    done = call(command, ground)
    about = f"{' '.join(command)}, {about}: exit code {done.code}\n{done.output[-3000:]}"
    assert snapshot(ground.outside) == outside, about
    if not writes(command):
        assert snapshot(ground.store) == store, about
    assert done.code in (0, 1), about
    assert "Traceback" not in done.output, about
    if done.code == 1 and command[0] not in ("verify", "gc"):
        sentences = [line for line in done.output.splitlines() if line.lower().startswith("error")]
        assert len(sentences) == 1, about
    return done


def replace(place: Path, put: Callable[[Path, Ground], None], ground: Ground) -> None:
    if place.is_dir() and not place.is_symlink():
        shutil.rmtree(place)
    else:
        place.unlink(missing_ok=True)
    place.parent.mkdir(parents=True, exist_ok=True)
    put(place, ground)


@pytest.mark.parametrize("command", [*LOOKING, *WRITING], ids=" ".join)
@pytest.mark.slow
def test_commands_do_their_work_in_a_copied_store(ground: Ground, command: list[str]) -> None:
    done = check(ground, command, "nothing odd")
    assert done.code == (1 if command[0] == "resume" else 0), done.output


def test_a_planted_journal_makes_sqlite_delete_a_file(tmp_path: Path) -> None:
    """The weapon of the next test works."""
    victim = tmp_path / "victim"
    victim.write_bytes(PRECIOUS)
    hot_journal(tmp_path / "one.db", victim)
    opened = sqlite3.connect(tmp_path / "one.db")
    opened.execute("SELECT * FROM artifact").fetchall()
    opened.close()
    assert not victim.exists()


@pytest.mark.parametrize(
    "command",
    [
        pytest.param(command, marks=[] if command in (["list"], ["gc", "--yes"]) else pytest.mark.slow)
        for command in (*LOOKING, *WRITING)
    ],
    ids=" ".join,
)
def test_no_command_opens_a_database_inside_a_store(ground: Ground, command: list[str]) -> None:
    catalog, *others = databases(ground.store)
    hostile_view(catalog)
    for database in others:
        hot_journal(database, ground.outside / "notes.txt")
    check(ground, command, "planted journals and a view without an end")


@pytest.mark.slow
@pytest.mark.parametrize("command", [*LOOKING, *WRITING], ids=" ".join)
def test_no_command_opens_another_database_inside_a_store(ground: Ground, command: list[str]) -> None:
    catalog, *others = databases(ground.store)
    hot_journal(catalog, ground.outside / "notes.txt")
    for database in others:
        hostile_view(database)
    check(ground, command, "a planted journal and views without an end")


Attack = tuple[Path, Callable[[Path, Ground], None], list[str]]


def list_attacks(original: Path) -> list[Attack]:
    """Every odd thing at every place, for every command."""
    relative = [path.relative_to(original) for path in places(original)]
    return [(place, put, command) for place in relative for put in ODD for command in (*LOOKING, *WRITING)]


def attack(original: Path, folder: Path, chosen: Sequence[Attack]) -> None:
    for place, put, command in chosen:
        ground = prepare(original, folder)
        replace(ground.store / place, put, ground)
        check(ground, command, f"{put.__name__} at {place}")
        shutil.rmtree(folder)


def test_odd_things_in_a_store_do_no_harm(original: Path, tmp_path: Path) -> None:
    attack(original, tmp_path / "ground", random.Random(1).sample(list_attacks(original), 4))


@pytest.mark.slow
@pytest.mark.parametrize("part", range(20))
def test_anything_odd_anywhere_in_a_store_does_no_harm(original: Path, tmp_path: Path, part: int) -> None:
    """40 of each 1,100 attacks; ALL_ATTACKS in the environment tries all, which takes hours."""
    attacks = list_attacks(original)
    random.Random(0).shuffle(attacks)
    mine = attacks[part::20]
    attack(original, tmp_path / "ground", mine if "ALL_ATTACKS" in os.environ else mine[:40])


@pytest.mark.parametrize(
    "kind", ["runs", *(pytest.param(kind, marks=pytest.mark.slow) for kind in ("datasets", "evaluations"))]
)
def test_a_run_ends_where_a_link_is_in_the_place_of_a_kind(ground: Ground, kind: str) -> None:
    replace(ground.store / kind, link_to_folder, ground)
    assert check(ground, ["run", "OUT/experiment.yaml"], f"link at {kind}").code == 1


def call_with_forgeries(original: Path, folder: Path, chosen: Sequence[tuple[Forgery, list[str]]]) -> None:
    ground = prepare(original, folder)
    for forgery, command in chosen:
        file, place, value = forgery
        before = (original / file).read_bytes()
        (ground.store / file).write_bytes(forge(before, place, value))
        asked = [file.parent.name if text == "sample/double" and file.parts[0] != "refs" else text for text in command]
        check(ground, asked, describe(forgery))
        if writes(command):
            shutil.rmtree(folder)
            ground = prepare(original, folder)
        else:
            (ground.store / file).write_bytes(before)
    shutil.rmtree(folder)


def list_forged_calls(original: Path) -> list[tuple[Forgery, list[str]]]:
    """Every forged manifest and name, for every command; commands ask for the forged artifact."""
    return [(forgery, command) for forgery in list_forgeries(original) for command in (*LOOKING, *WRITING)]


def test_forged_manifests_end_in_one_sentence(original: Path, tmp_path: Path) -> None:
    call_with_forgeries(original, tmp_path / "ground", random.Random(1).sample(list_forged_calls(original), 3))


@pytest.mark.slow
@pytest.mark.parametrize("part", range(20))
def test_any_forged_manifest_ends_in_one_sentence(original: Path, tmp_path: Path, part: int) -> None:
    """30 of each 18,000 calls; ALL_ATTACKS in the environment makes all, which takes hours."""
    calls = list_forged_calls(original)
    random.Random(0).shuffle(calls)
    mine = calls[part::20]
    call_with_forgeries(original, tmp_path / "ground", mine if "ALL_ATTACKS" in os.environ else mine[:30])
