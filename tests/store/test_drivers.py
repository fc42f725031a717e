"""Several drivers on one bucket with journals in PostgreSQL: nothing is lost or doubled, whatever is killed."""

from __future__ import annotations

import json
import random
import signal
import threading
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

import psycopg
import pytest
from support.nursery import Nursery, noted
from support.servers import PostgresServer, S3Server

from evaluand.data.dataset import Dataset
from evaluand.report.verification import verify
from evaluand.run.runner import Run, Runner
from evaluand.store.addresses import Address
from evaluand.store.directory import DirectoryStore
from evaluand.store.folder_store import FolderStore
from evaluand.store.opening import open_store

CONCURRENCY = 8  # of the nursery


@pytest.fixture
def shared(s3: S3Server, postgres: PostgresServer, tmp_path: Path) -> FolderStore:
    """A store that the processes of the nursery share."""
    address = f"{s3.bucket()}/evals?catalog={postgres.database()}"
    (tmp_path / "address.json").write_text(json.dumps([address, s3.environment]))
    return open_store(address)


def wait_for_workers(shared: FolderStore, n: int) -> None:
    """Waits until so many workers have leases."""
    assert isinstance(shared.root, Address)
    end = time.monotonic() + 120
    while True:
        with psycopg.connect(shared.root.catalog) as connection, suppress(psycopg.errors.UndefinedTable):
            [(count,)] = connection.execute("SELECT count(*) FROM evaluand_1.workers WHERE is_living").fetchall()
            if count >= n:
                return
        assert time.monotonic() < end
        time.sleep(0.1)


def require_exact(shared: FolderStore, examples: int) -> None:
    """Checks that the run has each row once, and that nothing is left."""
    [id] = shared.ids("runs")
    assert [row["_index_"] for row in Run(shared, id).table().to_pylist()] == [*range(examples)]
    assert all(verify(shared, *key) == [] for key in shared.artifacts())
    assert all(
        not name.endswith(".tmp") for kind, id in shared.artifacts() for name in (shared.top / kind / id).names()
    )


@pytest.mark.slow
def test_two_drivers_make_what_one_makes_in_a_folder(
    nursery: Nursery, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, shared: FolderStore
) -> None:
    examples = 60
    alone = tmp_path_factory.mktemp("alone")
    (tmp_path / "go").touch()
    (alone / "go").touch()
    pids = [nursery.start(tmp_path, "whole", examples) for _ in range(2)]
    told = nursery.finish(alone, "whole", examples)
    assert [nursery.end(pid) for pid in pids] == [0, 0]
    assert {(tmp_path / f"told-{pid}").read_text() for pid in pids} == {told}
    assert Counter(noted(tmp_path, "calls")) == dict.fromkeys(range(examples), 1)
    require_exact(shared, examples)
    here = DirectoryStore(alone / "store")
    assert shared.artifacts() == here.artifacts()
    assert shared.journals.orphans() == {}
    for key in here.artifacts():
        mine, theirs = here.manifest(*key), shared.manifest(*key)
        assert (mine["digest"], mine["counts"]) == (theirs["digest"], theirs["counts"])
        if key[0] != "runs" and key[0] != "evaluations":  # which store when calls began
            assert mine["tables"] == theirs["tables"]


def test_code_without_a_version_runs_in_a_shared_store(shared: FolderStore, tmp_path: Path) -> None:
    (tmp_path / "read.txt").write_text("!")

    def shout(text: str) -> str:
        return text.upper() + (tmp_path / "read.txt").read_text()

    rows = Dataset.from_rows([{"input": "a"}])
    made = Runner(shared).run(shout, rows)
    assert [response.responses for response in made] == [["A!"]]
    again = Runner(shared).run(shout, rows)
    assert again.id == made.id


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20))
def test_two_drivers_make_the_random_runs_of_one_in_a_folder(
    nursery: Nursery, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, shared: FolderStore, seed: int
) -> None:
    pids = [nursery.start(tmp_path, "run_random", seed) for _ in range(2)]
    alone = nursery.finish(tmp_path_factory.mktemp("alone"), "run_random", seed)
    assert [nursery.end(pid) for pid in pids] == [0, 0]
    assert {(tmp_path / f"told-{pid}").read_text() for pid in pids} == {alone}


@pytest.mark.slow
def test_drivers_are_killed(nursery: Nursery, tmp_path: Path, shared: FolderStore) -> None:
    examples, kills, chance = 1500, 20, random.Random(3)
    pids = [nursery.start(tmp_path, "run", "threads", examples) for _ in range(2)]
    for _ in range(kills):
        time.sleep(1.0 + chance.random())
        victim = pids.pop(chance.randrange(2))
        nursery.send(victim, signal.SIGKILL)
        nursery.end(victim)
        pids.append(nursery.start(tmp_path, "run", "threads", examples))
    assert [nursery.end(pid) for pid in pids] == [0, 0]
    calls = Counter(noted(tmp_path, "calls"))
    assert sorted(calls) == [*range(examples)]
    assert sum(calls.values()) - examples <= kills * CONCURRENCY
    require_exact(shared, examples)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.* does not answer")
def test_the_database_is_killed(
    nursery: Nursery, tmp_path: Path, shared: FolderStore, postgres: PostgresServer
) -> None:
    examples = 1500
    pids = [nursery.start(tmp_path, "run", "threads", examples) for _ in range(2)]
    wait_for_workers(shared, 2)  # a server that has never answered is not waited for
    for _ in range(5):
        time.sleep(1.0)
        postgres.kill()
        postgres.start()
    assert [nursery.end(pid) for pid in pids] == [0, 0]
    calls = Counter(noted(tmp_path, "calls"))
    assert sorted(calls) == [*range(examples)]
    assert sum(calls.values()) - examples <= 5 * 2 * CONCURRENCY
    require_exact(shared, examples)


@pytest.mark.slow
def test_the_bucket_refuses_one_request_in_twenty(
    nursery: Nursery, tmp_path: Path, shared: FolderStore, s3_server: S3Server
) -> None:
    examples, seen = 300, list[str]()
    s3_server.refuses = 0.05
    try:
        (tmp_path / "go").touch()
        pids = [nursery.start(tmp_path, "whole", examples) for _ in range(2)]
        watching = threading.Event()

        def watch() -> None:  # a reader meets artifacts with their tables, or none
            while not watching.wait(0.2):
                for kind in ("runs", "evaluations", "aggregations"):
                    for id in shared.ids(kind):
                        if shared.is_sealed(kind, id):
                            seen.extend(map(str, shared.damage(kind, id)))

        reader = threading.Thread(target=watch)
        reader.start()
        ended = [nursery.end(pid) for pid in pids]
        watching.set()
        reader.join()
    finally:
        s3_server.refuses = 0.0
    assert ended == [0, 0]
    assert seen == []
    assert s3_server.n_refused > 0
    assert Counter(noted(tmp_path, "calls")) == dict.fromkeys(range(examples), 1)
    require_exact(shared, examples)
