"""Damage at rest: whatever happens to a file of a store, no number is silently wrong, and `verify` finds it.

Each trial damages one file of a copy of the sample store (a flipped bit, a cut within a line or after one, no first
line, zeros, another file in its place, or no file), with an index of the manifests or without one. Then everything is
verified, everything is read, and what was open is finished:

- what can be read is what was written, everything else is one sentence;
- what `verify` does not find has changed nothing;
- of open work, only the calls whose lines were damaged are repeated, and the result is the same;
- a recorded call of an app, which cannot be repeated, is not lost without a warning. All of the sample were judged: the
  last ones would leave no trace if they had not been.
"""

from __future__ import annotations

import os
import random
import shutil
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from support import sample_store
from support.sample_store import counted, finish_evaluation, finish_matches, finish_run

from evaluand import DirectoryStore
from evaluand.apps.recording.workers import close_recording
from evaluand.core.errors import EvaluandError
from evaluand.report.verification import verify
from evaluand.store import leases
from evaluand.store.store import resolve

# What is continued here is in a copy of the store in which it was begun.
pytestmark = [
    pytest.mark.filterwarnings("ignore:.* was not begun by you in this store"),
    pytest.mark.filterwarnings("ignore:1 name is damaged"),  # of a damaged name, which is then missing among the names
]

QUICK, BATCH = 6, 100
THOROUGH = int(os.environ.get("DAMAGES", "600"))  # 10,000 were tried when this was written

Reading = dict[str, Any]
"""What is stored, by its place: a manifest, a table, the list, the names; an error where it cannot be read."""


class Unreadable(NamedTuple):
    """One sentence in place of what was stored."""

    message: str


@dataclass
class Sample:
    """The undamaged store, and what is known of it."""

    folder: Path
    reading: Reading = field(default_factory=dict)
    finished: Reading = field(default_factory=dict)


@pytest.fixture(autouse=True)
def short_leases(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the newest state of the leases, an earlier one counts, in which this living process works."""
    monkeypatch.setattr(leases, "LEASE_SECONDS", 0.5)


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Sample:
    made = Sample(tmp_path_factory.mktemp("sample") / "store")
    store = sample_store.make(made.folder)
    assert faults_of(store) == []
    made.reading = read_all(store)
    assert not any(isinstance(value, Unreadable) for value in made.reading.values())
    with copied(made.folder, made.folder.parent / "finished") as copy:
        made.finished = {what: finish(copy) for what, finish in FINISH.items()}
    return made


# What is read


def read_all(store: DirectoryStore) -> Reading:
    reading: Reading = {"refs": attempt(store.refs), "list": attempt(lambda: listed(store))}
    for kind, id in store.artifacts():
        reading[f"{kind}/{id}"] = manifest = attempt(lambda kind=kind, id=id: store.manifest(kind, id))
        for table in manifest.get("tables", {}) if isinstance(manifest, dict) else ():
            where = f"{kind}/{id}/{table}"
            reading[where] = attempt(lambda kind=kind, id=id, table=table: rows_of(store, kind, id, table))
    return reading


def attempt(read: Callable[[], Any]) -> Any:
    try:
        return read()
    except EvaluandError as error:
        return Unreadable(str(error))


def listed(store: DirectoryStore) -> list[Any]:
    return sorted(
        [entry["kind"], entry["id"], entry["name"], entry["status"], entry["digest"]]
        for entry in store.catalog.entries()
    )


def rows_of(store: DirectoryStore, kind: str, id: str, table: str) -> list[Any]:
    return [row for batch in store.read(kind, id, table) for row in batch.to_pylist()]


def faults_of(store: DirectoryStore) -> list[str]:
    """What `evaluand verify` reports."""
    faults = [f"{fault.where}: {fault.message}" for fault in store.damaged_refs()]
    for kind, id in store.artifacts():
        try:
            faults += [f"{fault.where}: {fault.message}" for fault in verify(store, kind, id)]
        except EvaluandError as error:
            faults.append(str(error))
    return faults


# What is finished


def finish_the_run(store: DirectoryStore) -> tuple[list[int], Any]:
    with counted() as made:
        run = finish_run(store)
    return sorted(made), (run.digest, run.counts)


def finish_the_evaluation(store: DirectoryStore) -> tuple[list[int], Any]:
    with counted() as made:
        evaluation = finish_evaluation(store)
    return sorted(made), (evaluation.digest, evaluation.counts)


def finish_the_matches(store: DirectoryStore) -> tuple[list[int], Any]:
    with counted() as made:
        matches = finish_matches(store)
    return sorted(made), (matches.digest, matches.counts)


def finish_the_recording(store: DirectoryStore) -> tuple[list[int], Any]:
    recording = close_recording(store, resolve(store, "guide/killed", "recordings")[1], allow=("support",))
    return [], tuple(artifact and artifact.digest for artifact in (recording.run, recording.evaluation))


FINISH = {
    "runs": finish_the_run,
    "evaluations": finish_the_evaluation,
    "matches": finish_the_matches,
    "recordings": finish_the_recording,
}


# What is damaged


class Damage(NamedTuple):
    """What was done to a file."""

    file: Path
    what: str
    before: bytes
    after: bytes | None


def damage(folder: Path, random_: random.Random) -> Damage:
    """Damages one file below a folder, of each sort of file about as often."""
    sorts: dict[str, list[Path]] = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not path.name.startswith("catalog.db"):
            sorts.setdefault(sort_of(path.relative_to(folder)), []).append(path)
    file = random_.choice(sorts[random_.choice(sorted(sorts))])
    before = file.read_bytes()
    what = random_.choice(
        ["flip", "flip", "flips", "cut", "line cut", "first line", "zeros", "noise", "swap", "missing"]
    )
    after = changed(what, file, sorts[sort_of(file.relative_to(folder))], random_)
    if after is None:
        file.unlink()
    else:
        file.write_bytes(after)
    return Damage(file, what, before, after)


def sort_of(path: Path) -> str:
    if path.parts[0] == "refs":
        return "ref"
    last = "lease" if "lease" in str(path) else path.name if path.suffix == ".json" else path.suffix
    return f"{path.parts[0]} {last}"


def changed(what: str, file: Path, alike: list[Path], random_: random.Random) -> bytes | None:
    content = bytearray(file.read_bytes())
    place = random_.randrange(len(content)) if content else 0
    if what == "missing":
        return None
    if what == "swap":
        others = [path for path in alike if path != file] or [file]
        return random_.choice(others).read_bytes()
    if not content or what == "cut":
        return bytes(content[:place])
    if what in ("line cut", "first line"):
        ends = [place + 1 for place, byte in enumerate(content) if byte == ord("\n")] or [len(content)]
        return bytes(content[ends[0] :] if what == "first line" else content[: random_.choice([0, *ends[:-1]])])
    size = random_.choice([1, 8, 64, 512])
    if what == "zeros":
        content[place : place + size] = bytes(len(content[place : place + size]))
    elif what == "noise":
        content[place : place + size] = random_.randbytes(len(content[place : place + size]))
    else:
        for _ in range(1 if what == "flip" else random_.randrange(2, 20)):
            content[random_.randrange(len(content))] ^= 1 << random_.randrange(8)
    return bytes(content)


# A trial


@contextmanager
def copied(folder: Path, place: Path) -> Iterator[DirectoryStore]:
    shutil.copytree(folder, place)
    try:
        yield DirectoryStore(place)
    finally:
        shutil.rmtree(place)


def lost_slots(one: Damage) -> set[int] | None:
    """The slots whose lines in a journal are no longer what was written; None if the file is not a journal."""
    if one.file.suffix not in (".lines", ".jsonl") or "journal" not in one.file.parts:
        return None
    left = set((one.after or b"").splitlines(keepends=True))
    lost = [line for line in one.before.splitlines(keepends=True) if line not in left]
    return {int(line[1:].split(b",")[0]) for line in lost}


def check(sample: Sample, place: Path, seed: int) -> str:
    """One trial.

    Returns:
        What became of it.
    """
    random_ = random.Random(seed)
    with copied(sample.folder, place) as store:
        if random_.random() < 0.5:
            store.catalog.entries()  # the index of the manifests knows the undamaged store
        one = damage(place, random_)
        if one.before == one.after:
            return "the same file"
        if one.after is None and one.file.parent.name == "refs":
            return "a name was removed"  # as anybody may
        about = f"seed {seed}: {one.what} in {one.file.relative_to(place)}"
        found = faults_of(DirectoryStore(place))
        reading = read_all(DirectoryStore(place))
        check_reading(sample.reading, reading, found, about)
        outcome = "found" if found else "harmless"
        for what in FINISH:
            if one.file.is_relative_to(place / what) or one.file.parent.name in ("refs", *sample.reading):
                outcome = f"{outcome}, {check_finished(sample, place, what, one, found, about)}"
        return outcome


def check_reading(before: Reading, after: Reading, found: list[str], about: str) -> None:
    changed = {
        where: (value, after.get(where))
        for where, value in before.items()
        if after.get(where) != value and not isinstance(after.get(where), Unreadable)
    }
    # The list and the names show what can still be read; a table whose manifest cannot be read is not looked for.
    wrong = {where: pair for where, pair in changed.items() if not is_reported(where, pair, found)}
    assert not wrong, f"{about}: {wrong}; verify: {found}"
    assert found or before == after, f"{about}: not found by verify, but {changed}"


def is_reported(where: str, pair: tuple[Any, Any], found: list[str]) -> bool:
    """Whether something that is not read as before is missing, not different, and `verify` says so."""
    stored, read = pair
    if where == "refs":
        return bool(found) and set(read) < set(stored)
    if where == "list":
        intact = [row for row in read if row[3] != "damaged"]
        return bool(found) and all(row in stored for row in intact)
    return read is None and bool(found)


def check_finished(sample: Sample, place: Path, what: str, one: Damage, found: list[str], about: str) -> str:
    usual_calls, result = sample.finished[what]
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        outcome = attempt(lambda: FINISH[what](DirectoryStore(place)))
    if isinstance(outcome, Unreadable):
        assert found, f"{about}: not found by verify, but cannot be finished: {outcome.message}"
        return f"{what} refused"
    calls, finished = outcome
    lost = lost_slots(one) or set()
    if what == "recordings":  # what was recorded cannot be asked for again
        assert finished == result or (found and warned), f"{about}: a recording lost something without a word"
        return "recordings finished"
    assert finished == result, f"{about}: finished with another result"
    whole = not lost and one.file.name != "open.json"
    repeated = set(calls) - set(usual_calls)
    assert repeated <= lost or not whole, f"{about}: repeated {repeated}, lost were {lost}"
    return f"{what} finished"


def test_a_damaged_file_is_found_and_no_number_is_silently_wrong(sample: Sample, tmp_path: Path) -> None:
    outcomes = [check(sample, tmp_path / "copy", seed) for seed in range(QUICK)]
    assert any(outcome.startswith("found") for outcome in outcomes)  # which files are hit depends on random ids


@pytest.mark.slow
@pytest.mark.parametrize("start", range(QUICK, QUICK + THOROUGH, BATCH))
def test_many_damages_are_found_and_no_number_is_silently_wrong(sample: Sample, tmp_path: Path, start: int) -> None:
    for seed in range(start, start + BATCH):
        check(sample, tmp_path / "copy", seed)
