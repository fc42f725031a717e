"""Journals and leases in PostgreSQL: what a worker writes counts, until another takes over from it."""

from __future__ import annotations

import os
import signal
import threading
from contextlib import closing
from pathlib import Path

import psycopg
import pytest
from support.servers import PostgresServer

from evaluand.core.errors import EngineError
from evaluand.store import leases
from evaluand.store.database import Database
from evaluand.store.directory import DirectoryStore
from evaluand.store.io import DiskFolder
from evaluand.store.journal import WorkLog
from evaluand.store.journals import BINDING
from evaluand.store.postgres import PostgresJournals
from evaluand.store.postgres_log import PostgresLog

KIND, ID = "runs", "ab" * 16


@pytest.fixture
def catalog(postgres: PostgresServer) -> str:
    return postgres.database()


@pytest.fixture
def journals(catalog: str, tmp_path: Path) -> PostgresJournals:
    made = PostgresJournals(catalog, DiskFolder(tmp_path))
    made.make(KIND, ID)
    return made


def open_lane(journals: PostgresJournals, slots: int | None = 40) -> WorkLog:
    lane = journals.lane(KIND, ID, "calls", slots)
    lane.refresh()
    return lane


def lose(catalog: str) -> None:
    """Lets the leases of all workers run out."""
    with psycopg.connect(catalog) as connection:
        connection.execute("UPDATE evaluand_1.workers SET beat = beat - interval '1 hour'")


def test_lines_are_read_by_another_worker(journals: PostgresJournals) -> None:
    one, other = open_lane(journals), open_lane(journals)
    assert one.append(b'[0,"a"]\n[1,"b"]\n')
    assert one.append(b'[2,"c"]\n')
    other.refresh()
    assert [*other.records()] == [[0, "a"], [1, "b"], [2, "c"]]
    assert journals.find_damage(KIND, ID) == []


def test_long_lines_have_several_rows(journals: PostgresJournals, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evaluand.store.postgres_log.PIECE_BYTES", 10)
    one, other = open_lane(journals), open_lane(journals)
    assert one.append(b'[0,"%b"]\n' % (b"x" * 95))
    assert one.append(b'[1,"y"]\n')
    other.refresh()
    assert [*other.records()] == [[0, "x" * 95], [1, "y"]]


def test_threads_that_append_at_once_lose_no_line(journals: PostgresJournals) -> None:
    lane = open_lane(journals)
    threads = [threading.Thread(target=lane.append, args=(b'[%d,"x"]\n' % slot,)) for slot in range(40)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    reader = open_lane(journals)
    assert [slot for slot, _ in reader.records()] == [*range(40)]


def test_each_shard_is_claimed_once(journals: PostgresJournals) -> None:
    one, other = open_lane(journals), open_lane(journals)
    claims = [(one if turn % 2 else other).leases.claim(5) for turn in range(6)]
    assert claims == [(0, 0), (1, 0), (2, 0), (3, 0), (4, 0), None]
    assert one.leases.busy()
    one.leases.release()
    assert [other.leases.claim(5), other.leases.claim(5), other.leases.claim(5)] == [(1, 1), (3, 1), None]
    other.leases.finish(0)
    assert other.leases.claim(5) is None
    assert other.leases.history()[:2] == ([(0, 1)], {1, 2, 3, 4})


def test_what_a_worker_writes_after_another_took_over_does_not_count(journals: PostgresJournals, catalog: str) -> None:
    slow, other = open_lane(journals), open_lane(journals)
    assert slow.leases.claim(1) == (0, 0)
    assert slow.append(b'[0,"in time"]\n')
    lose(catalog)
    assert other.leases.claim(1) == (0, 1)
    assert not slow.append(b'[1,"late"]\n')
    other.refresh()
    assert [*other.records()] == [[0, "in time"]]


def test_the_first_claim_after_a_loss_is_refused(journals: PostgresJournals, catalog: str) -> None:
    """Calls of before are in flight, whose lines must not go into a new segment."""
    slow, other = open_lane(journals), open_lane(journals)
    slow.leases.claim(3)
    lose(catalog)
    assert other.leases.claim(3) == (0, 1)
    slow.leases._renew()  # as its heart does
    assert not slow.holds()
    assert not slow.append(b'[0,"late"]\n')
    assert slow.leases.claim(3) is None
    assert slow.leases.claim(3) == (1, 0)
    assert slow.append(b'[16,"new"]\n')


def test_a_dead_process_is_taken_over_at_once(journals: PostgresJournals) -> None:
    pid = os.fork()
    if pid == 0:
        lane = open_lane(journals)
        lane.leases.claim(1)
        lane.append(b'[0,"a"]\n')
        os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(pid, 0)
    lane = open_lane(journals)
    assert not lane.leases.busy()
    assert lane.leases.claim(1) == (0, 1)
    assert lane.is_done(0)


def test_units_are_taken_one_by_one(journals: PostgresJournals) -> None:
    one, other = open_lane(journals, None), open_lane(journals, None)
    assert one.leases.take([7, 9]) == (7, 0)
    assert other.leases.take([7, 9]) == (9, 0)
    assert other.leases.take([7, 9]) is None
    one.leases.drop(7)
    one.leases.release()
    assert other.leases.take([7, 9]) == (7, 0)
    assert other.leases.held() == 2


def test_an_answer_that_was_lost_is_recognised(journals: PostgresJournals, monkeypatch: pytest.MonkeyPatch) -> None:
    lane = open_lane(journals)
    assert lane.leases.claim(9) == (0, 0)
    run, lost = Database.run, []

    def lose_answer(database: Database, work, **options):  # type: ignore[no-untyped-def]
        def repeated(connection):  # type: ignore[no-untyped-def]
            result = work(connection)
            if not lost:
                lost.append(result)
                raise psycopg.OperationalError("the connection was lost after the commit")
            return result

        return run(database, repeated, **options)

    monkeypatch.setattr(Database, "run", lose_answer)
    assert lane.append(b'[0,"a"]\n')
    lost.clear()
    assert lane.leases.claim(9) in [(1, 0), (1, 1)]
    monkeypatch.undo()
    assert lane.append(b'[1,"b"]\n')
    reader = open_lane(journals)
    assert [*reader.records()] == [[0, "a"], [1, "b"]]
    assert reader.leases.held() == 2


def test_a_sealed_journal_is_dropped_when_its_last_reader_leaves(journals: PostgresJournals, tmp_path: Path) -> None:
    one, other = open_lane(journals), open_lane(journals)
    one.leases.claim(2)
    one.append(b'[0,"a"]\n')
    other.leases.claim(2)
    other.refresh()
    journals.remove(KIND, ID, None)  # type: ignore[arg-type]
    assert not one.append(b'[1,"b"]\n')
    one.close()
    assert other.line(0) == b'[0,"a"]\n'
    other.close()
    assert journals.orphans() == {}
    assert not journals.exists(KIND, ID)


def test_a_sealed_journal_is_dropped_by_readers_that_leave_at_once(journals: PostgresJournals) -> None:
    for _ in range(10):
        lanes = [open_lane(journals) for _ in range(4)]
        for lane in lanes:
            lane.leases.claim(2)
        journals.remove(KIND, ID, None)  # type: ignore[arg-type]
        threads = [threading.Thread(target=lane.close) for lane in lanes]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert journals.orphans() == {}


def test_stores_of_one_database_do_not_mix(catalog: str, tmp_path: Path) -> None:
    one, other = (PostgresJournals(catalog, DiskFolder(tmp_path / name)) for name in ("one", "other"))
    one.make(KIND, ID)
    other.make(KIND, ID)
    with closing(open_lane(one)) as lane:
        lane.append(b'[0,"a"]\n')
        lane.leases.claim(1)
        assert open_lane(other).n_done == 0
        assert open_lane(other).leases.claim(1) == (0, 0)


def test_another_database_for_a_store_is_refused(
    journals: PostgresJournals, postgres: PostgresServer, tmp_path: Path
) -> None:
    other = PostgresJournals(postgres.database(), DiskFolder(tmp_path))
    with pytest.raises(EngineError, match=r"are not in postgresql://.* give the same address and catalog"):
        other.make(KIND, ID)
    with pytest.raises(EngineError, match="give the same address"):
        other.is_worked_on(KIND, ID, 0)  # which garbage collection asks
    with pytest.raises(EngineError, match="journals of its open work are in a database; give the store's address"):
        DirectoryStore(tmp_path).journals.make(KIND, ID)
    assert not other.exists(KIND, ID)
    (tmp_path / BINDING).unlink()
    other.make(KIND, ID)


@pytest.mark.filterwarnings("ignore:.* does not answer")
def test_a_server_that_hangs_is_not_waited_for_without_end(
    journals: PostgresJournals, postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    lane = open_lane(journals)
    lane.leases.claim(1)
    monkeypatch.setattr("evaluand.store.database.ANSWER_SECONDS", 0.2)
    monkeypatch.setattr("evaluand.store.database.PATIENCE_SECONDS", 0.1)
    with postgres.hanging(), pytest.raises(EngineError, match="nothing finished is lost; check the database"):
        lane.append(b'[0,"a"]\n')
    monkeypatch.undo()
    assert lane.append(b'[0,"a"]\n')
    assert [*open_lane(journals).records()] == [[0, "a"]]


def test_a_server_that_is_not_there_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(EngineError, match=r"postgresql://127.0.0.1:1/none: .*PGPASSWORD") as caught:
        PostgresJournals("postgresql://127.0.0.1:1/none", DiskFolder(tmp_path)).exists(KIND, ID)
    assert "\n" not in str(caught.value)


@pytest.mark.filterwarnings("ignore:.* does not answer")
@pytest.mark.slow
def test_a_server_that_is_killed_loses_no_line(journals: PostgresJournals, postgres: PostgresServer) -> None:
    lane = open_lane(journals)
    lane.leases.claim(1)
    assert lane.append(b'[0,"before"]\n')
    postgres.kill()
    restarting = threading.Thread(target=postgres.start)
    restarting.start()
    assert lane.append(b'[1,"meanwhile"]\n')
    restarting.join()
    assert lane.append(b'[2,"after"]\n')
    assert [*open_lane(journals).records()] == [[0, "before"], [1, "meanwhile"], [2, "after"]]


def test_the_scope_of_a_line_is_its_log(journals: PostgresJournals, catalog: str) -> None:
    lane = open_lane(journals)
    lane.append(b'[0,"a"]\n')
    with psycopg.connect(catalog) as connection:
        connection.execute("UPDATE evaluand_1.lines SET data = overlay(data PLACING '\\x62'::bytea FROM 5)")
    [fault] = journals.find_damage(KIND, ID)
    assert "checksum" in fault.message
    assert isinstance(lane._log, PostgresLog)
    assert leases.LEASE_SECONDS == 30
