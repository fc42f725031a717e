"""Hours of work on one store with kills, stops, pauses, garbage collection and readers: nothing is lost, nothing grows.

    python -m faults.soak --hours 2        with PYTHONPATH=tests, or `make soak HOURS=2`

A round is an experiment on new rows, at which two processes work that are killed, stopped and paused at random moments
until it is done. Its digests are those of the same experiment left alone; no line that was complete when a process was
killed is computed again; other repeats were in flight. Meanwhile one process reads and verifies whatever is there, one
works on a store of its own round after round, and one serves the page. Their memory, open files and the files of both
stores are written to a table, and must not grow.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson
from support.nursery import Nursery, noted
from support.view_server import Server, serve_store

from evaluand.store.lease_state import unpack_state

CONCURRENCY = 8
LEASE_SECONDS = 2.0
WORKERS = 2
PAUSE_SECONDS = (0.1, 3.0)  # some are longer than a lease


@dataclass
class Counts:
    """What has happened."""

    rounds: int = 0
    calls: int = 0
    kills: int = 0
    stops: int = 0
    pauses: int = 0
    repeats: int = 0
    collections: int = 0
    answers: int = 0
    faults: list[str] = field(default_factory=list)


@dataclass
class Soak:
    """A soak in a folder.

    Attributes:
        nursery: starts processes.
        folder: `work/store` is shared by all, `alone/store` has one process that nobody disturbs.
        random: draws sizes, moments and what happens.
    """

    nursery: Nursery
    folder: Path
    random: random.Random
    counts: Counts = field(default_factory=Counts)

    def go_through_round(self, seed: int) -> None:
        """Runs an experiment on new rows among kills, and checks what is left."""
        examples = self.random.randrange(200, 2000)
        undisturbed = self.nursery.finish(self.folder / "undisturbed", "toil", seed, examples)
        shutil.rmtree(self.folder / "undisturbed")
        work, disturbed = self.folder / "work", Counts()
        graves: list[tuple[int, set[int]]] = []
        told: set[str] = set()
        workers = {self.nursery.start(work, "toil", seed, examples) for _ in range(WORKERS)}
        while not told:
            time.sleep(self.random.uniform(0.02, 0.5))
            for pid in [pid for pid in workers if is_over(pid)]:
                workers.discard(pid)
                told |= self._bury(work, pid)
            if not told and workers:
                self._disturb(self.random.choice(sorted(workers)), work, graves, disturbed)
            while not told and len(workers) < WORKERS:
                workers.add(self.nursery.start(work, "toil", seed, examples))
        for pid in workers:
            told |= self._bury(work, pid)
        self._check(work, undisturbed, told, examples, graves, disturbed)
        self.nursery.finish(work, "tidy")
        for each in ("calls", "grades", *(path.name for path in work.glob("told-*"))):
            (work / each).unlink(missing_ok=True)

    def _disturb(self, pid: int, work: Path, graves: list[tuple[int, set[int]]], disturbed: Counts) -> None:
        """Kills, stops or pauses a worker."""
        what = self.random.choices(["kill", "stop", "pause", "collect"], [6, 2, 1, 1])[0]
        if what == "kill":
            self.nursery.send(pid, signal.SIGKILL)
            disturbed.kills += 1
            wait_for_end(pid)
            complete = read_complete_lines(work / "store")  # first: others go on working
            graves.append((len(noted(work, "calls")), complete))
        elif what == "stop":
            self.nursery.send(pid, signal.SIGINT)
            disturbed.stops += 1
        elif what == "pause":
            self.nursery.send(pid, signal.SIGSTOP)
            time.sleep(self.random.uniform(*PAUSE_SECONDS))
            self.nursery.send(pid, signal.SIGCONT)
            disturbed.pauses += 1
        else:
            self.nursery.finish(work, "collect_old_garbage")
            self.counts.collections += 1

    def _bury(self, work: Path, pid: int) -> set[str]:
        """What a worker told that ended by itself; nothing of one that was killed or stopped."""
        code = self.nursery.end(pid)
        if code == 0:
            return {(work / f"told-{pid}").read_text()}
        if code not in (130, -signal.SIGKILL, -signal.SIGINT):
            self.counts.faults.append(f"round {self.counts.rounds}: a worker ended with {code}")
        return set()

    def _check(
        self,
        work: Path,
        undisturbed: str,
        told: set[str],
        examples: int,
        graves: list[tuple[int, set[int]]],
        disturbed: Counts,
    ) -> None:
        calls = [number % 1_000_000 for number in noted(work, "calls")]
        repeats = len(calls) - examples
        in_flight = CONCURRENCY * (disturbed.kills + disturbed.stops + disturbed.pauses)
        faults = []
        if told != {undisturbed}:
            faults.append(f"digests {told} instead of {undisturbed}")
        if set(calls) != set(range(examples)):
            faults.append(f"{len(set(calls))} of {examples} rows were asked")
        if repeats > in_flight:
            faults.append(f"{repeats} calls were repeated, {in_flight} were in flight")
        for asked, complete in graves:
            if again := complete & set(calls[asked:]):
                faults.append(f"{len(again)} finished calls were repeated, such as row {min(again)}")
        self.counts.faults += [f"round {self.counts.rounds}: {fault}" for fault in faults]
        self.counts.rounds += 1
        self.counts.calls += len(calls)
        self.counts.repeats += repeats
        for name in ("kills", "stops", "pauses"):
            setattr(self.counts, name, getattr(self.counts, name) + getattr(disturbed, name))


def read_complete_lines(store: Path) -> set[int]:
    """The slots of the run that is not finished whose line is complete, and was before another worker took over."""
    lines = [*read_lines(store)]  # before the ends: a worker that was paused may write behind its own
    ends = dict([*read_noted_ends(store), *(rule["fence"] for *_, rule in read_lines(store) if "fence" in rule)])
    return {slot for name, offset, slot, rule in lines if not rule and offset < ends.get(name, offset + 1)}


def read_lines(store: Path) -> Iterator[tuple[str, int, int, dict[str, Any]]]:
    """The lines of a journal: segment, offset, slot, and what it says of other lines, such as where a segment ends."""
    for path in store.glob("runs/*/journal/*/*.lines"):
        offset = 0
        with suppress(FileNotFoundError):  # it has just been sealed
            for line in path.read_bytes().split(b"\n")[:-1]:
                slot, second, *_ = orjson.loads(line[:-8])
                yield path.name, offset, slot, second if isinstance(second, dict) else {}
                offset += len(line) + 1


def read_noted_ends(store: Path) -> Iterator[tuple[str, int]]:
    """The ends of segments that are noted in the leases, and not in a journal yet."""
    for path in store.glob("runs/*/journal/*/leases/*.json"):
        with suppress(FileNotFoundError):
            state = unpack_state(int(path.stem), path.read_bytes())
            yield from state.fences if state else ()


def is_over(pid: int) -> bool:
    """Whether a process has ended, buried or not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


def wait_for_end(pid: int) -> None:
    while not is_over(pid):
        time.sleep(0.001)


def measure(pids: dict[str, int], folder: Path) -> dict[str, float]:
    """Memory in MiB and open files of some processes, and the files of both stores."""
    found: dict[str, float] = {}
    for name, pid in pids.items():
        status = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
        found[f"{name} MiB"] = round(int(status["VmRSS"].split()[0]) / 1024, 1)
        found[f"{name} handles"] = len(list(Path(f"/proc/{pid}/fd").iterdir()))
    for name in ("work", "alone"):
        walked = os.walk(folder / name / "store")  # passes over folders that have just been removed
        found[f"files of {name}"] = sum(len(files) for _, _, files in walked)
    return found


def list_growth(rows: list[dict[str, float]]) -> list[str]:
    """What grew from the second quarter of the time to the last, by medians."""
    quarter = len(rows) // 4
    if quarter < 3:
        return []
    found = []
    for name in rows[0]:
        before, after = (
            statistics.median(row[name] for row in part) for part in (rows[quarter : 2 * quarter], rows[-quarter:])
        )
        most = before * 1.1 + (10 if name.endswith("MiB") else 3)
        if after > most:
            found.append(f"{name} grew from {before:g} to {after:g}")
    return found


def soak(folder: Path, seconds: float, seed: int, *, every: float = 10.0) -> dict[str, Any]:
    """Soaks for some time, and returns what happened, was measured and is wrong."""
    nursery = Nursery(folder)
    for name in ("work", "alone", "reader"):
        (folder / name).mkdir()
        (folder / name / "lease_seconds").write_text(str(LEASE_SECONDS))
    (folder / "reader" / "store").symlink_to(folder / "work" / "store")
    made = Soak(nursery, folder, random.Random(seed))
    rows: list[dict[str, float]] = []
    try:
        made.go_through_round(0)  # there is a store
        reader = nursery.start(folder / "reader", "read_on")
        alone = nursery.start(folder / "alone", "toil_on", 300)
        with serve_store(folder / "work" / "store", folder / "server-errors") as server:
            pids = {"reader": reader, "worker": alone, "server": server.process.pid}
            end, following = time.monotonic() + seconds, 0.0
            while time.monotonic() < end and not made.counts.faults:
                made.go_through_round(made.counts.rounds)
                made.counts.answers += ask_all(server)
                made.counts.faults += [f"the {name} has ended" for name, pid in pids.items() if is_over(pid)]
                if made.counts.faults:
                    break
                if time.monotonic() >= following:
                    rows.append(measure(pids, folder))
                    following = time.monotonic() + every
        for name in ("reader", "alone"):
            (folder / name / "end").touch()
        made.counts.faults += [
            f"{name} failed" for name, pid in (("reader", reader), ("worker", alone)) if nursery.end(pid)
        ]
    finally:
        nursery.close()
    growth = list_growth(rows)
    first, last = (rows[0], rows[-1]) if rows else ({}, {})
    return {
        "seed": seed,
        "counts": vars(made.counts),
        "measured": len(rows),
        "first": first,
        "last": last,
        "growth": growth,
    }


def ask_all(server: Server) -> int:
    """Asks a server for the list and for the rows of each run; how often it answered."""
    answers = [server.ask()]
    listed = orjson.loads(answers[0].body)["artifacts"]
    ids = [each["id"] for each in listed if each["kind"] == "runs" and each["status"] == "sealed"]
    answers += [server.ask(f"/api/columns/{id}/-") for id in ids]
    assert all(answer.status == 200 for answer in answers), answers
    return len(answers)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--hours", type=float, default=2.0)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = soak(Path(folder), asked.hours * 3600, asked.seed)
    sys.stdout.write(json.dumps(found, indent=1) + "\n")
    raise SystemExit(bool(found["growth"] or found["counts"]["faults"]))


if __name__ == "__main__":
    main()
