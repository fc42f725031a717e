"""A worker may be stopped, live in another container, and see its date jump: at most its calls are repeated.

The quick suite plays one round; `make test-slow` plays as many of each as `ROUNDS` and `KILLS` say.
"""

from __future__ import annotations

import random
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import orjson
import pytest
from support.nursery import Nursery, noted
from support.patience import PATIENCE

from evaluand.store.directory import DirectoryStore
from evaluand.store.io import DiskFolder
from evaluand.store.journal import WorkLog
from evaluand.store.log import FileLog
from evaluand.store.memory_leases import MemoryLeases
from evaluand.store.shards import SHARD_SLOTS

EXAMPLES = SHARD_SLOTS + 300
CONCURRENCY = 8  # of the processes of the nursery
ROUNDS = 50
KILLS = 200
LEASE_SECONDS = 2.0


@pytest.fixture(scope="module")
def elsewhere(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nursery]:
    """A nursery with its own process numbers, on a host of the same name."""
    apart = ["unshare", "--pid", "--fork", "--mount-proc", "--kill-child"]
    if not shutil.which("unshare") or subprocess.run([*apart, "true"], capture_output=True).returncode:
        pytest.skip("needs `unshare` and the right to make a namespace of process numbers")
    one = Nursery(tmp_path_factory.mktemp("elsewhere"), *apart)
    yield one
    one.close()


CLOCK = """
    #define _GNU_SOURCE
    #include <dlfcn.h>
    #include <sys/time.h>
    #include <time.h>
    static int real(clockid_t id, struct timespec *ts) {
        static int (*get)(clockid_t, struct timespec *);
        if (!get) get = (int (*)(clockid_t, struct timespec *)) dlsym(RTLD_NEXT, "clock_gettime");
        return get(id, ts);
    }
    int clock_gettime(clockid_t id, struct timespec *ts) {
        int failed = real(id, ts);
        if (!failed && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE)) {
            struct timespec now;
            real(CLOCK_MONOTONIC, &now);
            unsigned slice = (now.tv_sec * 1000 + now.tv_nsec / 1000000) / 30;
            ts->tv_sec += ((int) ((slice * 2654435761u >> 16) % 3) - 1) * 86400;
        }
        return failed;
    }
    int gettimeofday(struct timeval *tv, void *tz) {
        struct timespec ts;
        clock_gettime(CLOCK_REALTIME, &ts);
        tv->tv_sec = ts.tv_sec; tv->tv_usec = ts.tv_nsec / 1000;
        return 0;
    }
    time_t time(time_t *t) {
        struct timespec ts;
        clock_gettime(CLOCK_REALTIME, &ts);
        if (t) *t = ts.tv_sec;
        return ts.tv_sec;
    }
"""


@pytest.fixture(scope="module")
def jumping(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nursery]:
    """A nursery in which the date jumps by a day, forth and back, every 30 ms."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if sys.platform != "linux" or compiler is None:
        pytest.skip("needs Linux and a C compiler to let the date jump")
    folder = tmp_path_factory.mktemp("jumping")
    (folder / "clock.c").write_text(CLOCK)
    build = [compiler, "-shared", "-fPIC", "-o", folder / "clock.so", folder / "clock.c", "-ldl"]
    subprocess.run(build, check=True, capture_output=True)
    one = Nursery(folder, LD_PRELOAD=str(folder / "clock.so"))
    yield one
    one.close()


@pytest.fixture(scope="module")
def undisturbed(nursery: Nursery, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The digest of the run that nobody disturbs."""
    return nursery.finish(tmp_path_factory.mktemp("undisturbed"), "run", "threads", EXAMPLES)


def rounds(n: int) -> list[object]:
    return [pytest.param(number, marks=pytest.mark.slow) for number in range(n)]


def new_place(tmp_path: Path) -> Path:
    folder = tmp_path / "shared"
    folder.mkdir()
    (folder / "lease_seconds").write_text(str(LEASE_SECONDS))
    return folder


def wait_until(is_so: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE
    while not is_so():
        assert time.monotonic() < end
        time.sleep(0.002)


def calls(folder: Path) -> int:
    return len(noted(folder, "calls"))


def repeats(folder: Path) -> int:
    counts = Counter(noted(folder, "calls"))
    assert set(counts) == set(range(EXAMPLES))
    return sum(counts.values()) - len(counts)


def results(folder: Path, *pids: int) -> set[str]:
    return {(folder / f"told-{pid}").read_text() for pid in pids}


def has_worker(folder: Path, number: int) -> bool:
    """Whether a process is among the workers of the newest state."""
    states = sorted((folder / "store" / "runs").glob("*/journal/*/leases/*.json"))
    try:
        workers = orjson.loads(states[-1].read_bytes())["state"]["workers"]
    except (IndexError, FileNotFoundError):
        return False
    return any(identity[2] == number for identity, *_ in workers.values())


@pytest.mark.parametrize("round", [0, *rounds(ROUNDS)[1:]])
def test_a_worker_that_is_stopped_until_another_takes_over_repeats_at_most_its_calls_in_flight(
    nursery: Nursery, undisturbed: str, tmp_path: Path, round: int
) -> None:
    moments = random.Random(round)
    folder = new_place(tmp_path)
    first, second = (nursery.start(folder, "run", "threads", EXAMPLES) for _ in range(2))
    moment = moments.randrange(1, EXAMPLES)
    wait_until(lambda: calls(folder) >= moment)
    stopped = moments.choice([first, second])
    nursery.send(stopped, signal.SIGSTOP)
    wait_until(lambda: not has_worker(folder, stopped))
    time.sleep(moments.random() * 0.2)
    nursery.send(stopped, signal.SIGCONT)
    assert [nursery.end(first), nursery.end(second)] == [0, 0]
    assert results(folder, first, second) == {undisturbed}
    assert repeats(folder) <= CONCURRENCY


@pytest.mark.parametrize("round", rounds(ROUNDS))
def test_workers_of_two_containers_share_a_run_and_take_over_from_a_dead_one(
    nursery: Nursery, elsewhere: Nursery, undisturbed: str, tmp_path: Path, round: int
) -> None:
    share_a_run(nursery, elsewhere, undisturbed, tmp_path, round)


@pytest.mark.parametrize("round", rounds(ROUNDS))
def test_no_jump_of_the_date_makes_a_worker_repeat_a_call(
    nursery: Nursery, jumping: Nursery, undisturbed: str, tmp_path: Path, round: int
) -> None:
    share_a_run(nursery, jumping, undisturbed, tmp_path, round)


def share_a_run(nursery: Nursery, other: Nursery, undisturbed: str, tmp_path: Path, round: int) -> None:
    """Two workers of two nurseries share a run; in every second round that of the other one is killed."""
    moments = random.Random(round)
    folder = new_place(tmp_path)
    here, there = (each.start(folder, "run", "threads", EXAMPLES) for each in (nursery, other))
    is_killed = round % 2 == 1
    if is_killed:
        moment = moments.randrange(1, EXAMPLES)
        wait_until(lambda: calls(folder) >= moment)
        other.send(there, signal.SIGKILL)
    code = other.end(there)
    assert nursery.end(here) == 0
    assert code in ((0, -signal.SIGKILL) if is_killed else (0,))
    assert results(folder, here) == {undisturbed}
    assert repeats(folder) <= (CONCURRENCY if is_killed else 0)


# Killed at any moment

ROWS, RECORDS = 1000, 300
NOTES = {"runs": "calls", "evaluations": "grades", "recordings": "judged"}
WHOLE, JUDGED, IMPORTED = "whole", "judge", "take_in"


def finished(store: DirectoryStore, kind: str) -> set[int]:
    """The units of the artifact of a kind whose lines count; all if it is sealed."""
    done: set[int] = set()
    for id in store.ids(kind):
        if store.is_sealed(kind, id):
            return set(range(max(ROWS, RECORDS)))
        journal = DiskFolder(store.root, kind, id, "journal")
        for name in journal.folders():
            if kind == "recordings" and name == "records":
                continue
            lane = WorkLog(FileLog(journal / name, f"{kind}/{id}/{name}"), MemoryLeases(), None)
            lane.refresh()
            done |= {slot for slot in range(lane.slots) if lane.is_done(slot)}
            lane.close()
    return done


def prepare(nursery: Nursery, folder: Path, what: str) -> tuple[object, ...]:
    """What a process needs before it begins, and its order."""
    folder.mkdir()
    (folder / "go").touch()
    if what == JUDGED:
        nursery.finish(folder, "record", RECORDS)
        return ()
    if what == IMPORTED:
        for name, column in (("data", "input"), ("predictions", "response")):
            rows = b"".join(b'{"_index_":%d,"%b":"%d"}\n' % (row, column.encode(), row) for row in range(ROWS))
            (folder / f"{name}.jsonl").write_bytes(rows)
    return (ROWS,)


def play_killed(nursery: Nursery, folder: Path, what: str) -> int:
    """Kills a step again and again until it ends; how many processes were killed."""
    moments = random.Random(f"{what} {folder.name}")
    order = prepare(nursery, folder, what)
    code, n_killed = -signal.SIGKILL, 0
    while code == -signal.SIGKILL:
        doomed = moments.choices([(what, *order), ("collect_garbage",)], [8, 1])[0]
        before = calls_of(folder)
        pid = nursery.start(folder, *doomed)
        time.sleep(moments.random() * 0.5)
        nursery.send(pid, signal.SIGKILL)
        code = nursery.end(pid)
        n_killed += code == -signal.SIGKILL
        check_nothing_finished_is_repeated(folder, before)
        done = {kind: finished(DirectoryStore(folder / "store"), kind) for kind in NOTES}
        (folder / "finished").write_bytes(orjson.dumps({kind: sorted(units) for kind, units in done.items()}))
        if doomed[0] != what:
            code = -signal.SIGKILL
    assert code == 0
    return n_killed


def calls_of(folder: Path) -> dict[str, int]:
    return {kind: len(noted(folder, name)) for kind, name in NOTES.items()}


def check_nothing_finished_is_repeated(folder: Path, before: dict[str, int]) -> None:
    """Compares the calls since a moment with what was finished then."""
    try:
        done = orjson.loads((folder / "finished").read_bytes())
    except FileNotFoundError:
        return
    for kind, name in NOTES.items():
        assert set(done[kind]).isdisjoint(noted(folder, name)[before[kind] :]), kind


@pytest.mark.slow
@pytest.mark.parametrize("what", [WHOLE, JUDGED, IMPORTED])
def test_nothing_finished_is_repeated_whatever_is_killed_when(nursery: Nursery, tmp_path: Path, what: str) -> None:
    nursery.finish(tmp_path / "undisturbed", what, *prepare(nursery, tmp_path / "undisturbed", what))
    plays = n_killed = 0
    while n_killed < KILLS / 3:
        plays += 1
        n_killed += play_killed(nursery, tmp_path / str(plays), what)
        assert digests(tmp_path / str(plays)) == digests(tmp_path / "undisturbed")


def digests(folder: Path) -> dict[str, list[str]]:
    """The digests of what was sealed."""
    store = DirectoryStore(folder / "store")
    found = {}
    for kind in ("runs", "evaluations", "aggregations", "recordings"):
        sealed = [id for id in store.ids(kind) if store.is_sealed(kind, id)]
        found[kind] = sorted(store.manifest(kind, id)["digest"] for id in sealed)
    return found
