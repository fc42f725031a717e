"""Providers that ask: at a pace, again where it may help, with what it cost, and nothing twice."""

from __future__ import annotations

import asyncio
import http.client
import json
import selectors
import shutil
import sqlite3
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.clock import Clock, fullest
from support.commands import Folder
from support.forks import end_fork, start_fork
from support.fresh import CONTEXT
from support.patience import PATIENCE
from support.places import SUPPORT_FOLDER
from support.processes import open_process

from evaluand import App, Dataset, DirectoryStore as Store, Evaluator, Feedback, Policy, Runner
from evaluand.core.errors import EngineError, SpecError, TaskError, TransientError
from evaluand.core.fingerprint import fingerprint
from evaluand.engine.http import HttpClient
from evaluand.engine.rate_limit import LONGEST_TRANSIT, TRANSIT, RateLimit
from evaluand.evaluation.evaluator import ScorerFailed
from evaluand.evaluation.feedback.references import reference_of, referred
from evaluand.evaluation.provider import (
    Judgement,
    Provider,
    RemoteProvider,
    Reply,
    asks,
    lower_is_better,
    sent,
)
from evaluand.evaluation.providers.local import Local
from evaluand.models.reply_cache import LAYOUT, Replies
from evaluand.models.usage import spending

TRIES = 4


@dataclass(frozen=True, kw_only=True)
class Echo(RemoteProvider):
    """Says what it is told, counts how often it was asked, and fails as often as it is to."""

    failures: int = 0
    error: type[Exception] = TransientError
    asked: Counter[str] = field(default_factory=Counter)
    pause: float = 0.0
    backoff: float = 0.0

    unidentified = (*RemoteProvider.unidentified, "failures", "error", "asked", "pause")

    @asks
    def say(self, text: str, *, times: int = 1) -> Any:
        self.asked[text] += 1
        time.sleep(self.pause)
        if self.asked[text] <= self.failures:
            raise self.error("busy")
        return Reply([text] * times, {"input_tokens": 3, "output_tokens": times, "cost": 0.5, "currency": "EUR"})

    @asks
    async def say_later(self, text: str) -> Any:
        self.asked[text] += 1
        await asyncio.sleep(self.pause)
        if self.asked[text] <= self.failures:
            raise self.error("busy")
        return text


def fresh(**given: Any) -> Echo:
    return Echo(**{"cache": Replies(), "model": "echo", "version": "1", **given})


# Nothing is asked twice


def test_a_question_is_asked_once_however_its_arguments_are_written() -> None:
    echo = fresh()
    assert echo.say("a") == echo.say(text="a") == echo.say("a", times=1) == ["a"]
    assert echo.say("a", times=2) == ["a", "a"]
    assert echo.asked == {"a": 2}
    assert (echo.spent.n_requests, echo.spent.n_known) == (2, 2)


@pytest.mark.parametrize("other", [{"model": "other"}, {"version": "2"}, {"failures": 0, "cache": False}])
def test_another_model_or_version_is_another_question(other: dict[str, Any]) -> None:
    replies, asked = Replies(), Counter[str]()
    for given in ({}, other):
        fresh(**{"cache": replies, "asked": asked, **given}).say("a")
    assert asked == {"a": 2}


def test_another_rate_or_backoff_is_the_same_question() -> None:
    replies, asked = Replies(), Counter[str]()
    for given in ({}, {"rate": "100/s"}, {"retries": 0, "backoff": 2.0}, {"timeout": 5}):
        fresh(cache=replies, asked=asked, **given).say("a")
    assert asked == {"a": 1}


def test_another_provider_is_another_question() -> None:
    class Other(Echo):
        pass

    replies, asked = Replies(), Counter[str]()
    fresh(cache=replies, asked=asked).say("a")
    Other(cache=replies, asked=asked, model="echo", version="1").say("a")
    assert asked == {"a": 2}


def asked_in_words(words: str) -> type[RemoteProvider]:
    """A class that is always called the same, with a prompt of its own."""
    source = f"""
@dataclass(frozen=True, kw_only=True)
class Judge(RemoteProvider):
    @asks
    def judge(self, text: str) -> str:
        return prompt(text)

def prompt(text):
    return f"{words}: {{text}}"
"""
    names = {"dataclass": dataclass, "RemoteProvider": RemoteProvider, "asks": asks, "__name__": __name__}
    exec(source, names)
    made: type[RemoteProvider] = names["Judge"]  # type: ignore[assignment]
    return made


def test_a_class_that_is_defined_anew_with_other_code_is_another_question() -> None:
    replies = Replies()

    def ask(words: str, version: str | None = None) -> tuple[str, int]:
        judge: Any = asked_in_words(words)(model="m", cache=replies, version=version)
        return judge.judge("a"), judge.spent.n_known

    assert [ask("Is it right"), ask("Is it wrong")] == [("Is it right: a", 0), ("Is it wrong: a", 0)]
    assert ask("Is it right") == ("Is it right: a", 1)
    assert [ask("Is it right", "1"), ask("Is it wrong", "1")] == [("Is it right: a", 0), ("Is it wrong: a", 0)]
    assert ask("Is it right", "1") == ("Is it right: a", 1)


def test_a_reply_is_the_same_whether_asked_now_or_known_and_no_ones_to_change() -> None:
    @dataclass(frozen=True, kw_only=True)
    class Pair(RemoteProvider):
        @asks
        def pair(self) -> Any:
            return (1, {"a": (2.0,)})

    pair = Pair(cache=Replies())
    first = pair.pair()
    assert first == [1, {"a": [2.0]}]
    first[1]["a"].append(3)
    assert pair.pair() == [1, {"a": [2.0]}]
    assert Pair(cache=False).pair() == [1, {"a": [2.0]}]


def test_replies_in_a_file_outlive_the_process_that_asked(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "replies.db"
    echo = fresh(cache=path)
    assert echo.say("a") == ["a"]
    assert echo.asked == {"a": 1}
    later = fresh(cache=Replies(path))
    assert later.say("a") == ["a"]
    assert later.asked == {}


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no modes")
def test_a_file_of_replies_is_for_its_owner_alone(tmp_path: Path) -> None:
    fresh(cache=tmp_path / "replies.db").say("a")
    assert (tmp_path / "replies.db").stat().st_mode & 0o777 == 0o600


def test_coroutines_go_on_while_another_process_holds_the_file(tmp_path: Path) -> None:
    path = tmp_path / "replies.db"
    replies = Replies(path)
    replies.get(b"k" * 16, lambda: b"1")

    async def ask() -> bytes:
        return b"2"

    async def main() -> list[Any]:
        with closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN EXCLUSIVE")
            asked = asyncio.create_task(replies.get_async(b"q" * 16, ask))
            await asyncio.sleep(0.05)  # would not come back before the file is free
            is_waiting = not asked.done()
            other.execute("ROLLBACK")
        return [is_waiting, await asked]

    assert asyncio.run(main()) == [True, (b"2", True)]


def test_what_was_asked_stands_in_no_file(tmp_path: Path) -> None:
    @dataclass(frozen=True, kw_only=True)
    class Length(RemoteProvider):
        @asks
        def length(self, text: str) -> int:
            return len(text)

    assert Length(version="1", cache=tmp_path / "replies.db").length("a secret") == 8
    assert all(b"secret" not in file.read_bytes() for file in tmp_path.iterdir())


def test_without_a_version_nothing_is_kept_beyond_the_process(tmp_path: Path) -> None:
    path = tmp_path / "replies.db"
    echo = fresh(cache=path, version=None)
    assert [echo.say("a"), echo.say("a")] == [["a"], ["a"]]
    assert echo.asked == {"a": 1}
    assert not path.exists()


def test_providers_with_one_file_share_it(tmp_path: Path) -> None:
    asked = Counter[str]()
    for _ in range(2):
        fresh(cache=tmp_path / "replies.db", asked=asked).say("a")
    assert asked == {"a": 1}


def foreign(path: Path, *commands: str) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        for command in commands:
            db.execute(command)


def no_database(path: Path) -> None:
    path.write_text("these are notes, and no database " * 100)


def other_database(path: Path) -> None:
    foreign(
        path, "CREATE TABLE evaluand_reply (mine)", "INSERT INTO evaluand_reply VALUES (1)", "PRAGMA user_version=1"
    )


def database_with_a_log(path: Path) -> None:
    """What a process leaves that is killed: the last changes stand in a file beside."""
    with tempfile.TemporaryDirectory() as folder, closing(sqlite3.connect(Path(folder, "db"))) as db:
        db.executescript("PRAGMA journal_mode=WAL; CREATE TABLE mine (a); INSERT INTO mine VALUES (1);")
        shutil.copy(Path(folder, "db"), path)
        shutil.copy(Path(folder, "db-wal"), f"{path}-wal")


def newer_layout(path: Path) -> None:
    fresh(cache=Replies(path)).say("b")
    foreign(path, "DROP TABLE evaluand_reply", "CREATE TABLE evaluand_reply (a)", f"PRAGMA user_version={LAYOUT + 1}")


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (no_database, "it is not a file of replies"),
        (other_database, "it is not a file of replies"),
        (database_with_a_log, "it is not a file of replies"),
        (newer_layout, f"its layout is {LAYOUT + 1}, of another version of evaluand; this one has {LAYOUT}"),
    ],
)
def test_a_file_that_is_none_of_replies_is_refused_before_anything_is_asked_and_left_as_it_is(
    tmp_path: Path, make: Callable[[Path], None], why: str
) -> None:
    path = tmp_path / "file #1.db"
    make(path)
    before = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    echo = fresh(cache=Replies(path))
    with pytest.raises(EngineError) as raised:
        echo.say("a")
    reported = f"cannot store replies in {path}: {why}; the file is unchanged; choose another"
    assert str(raised.value) == reported
    assert echo.asked == {}
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == before


def test_a_file_that_another_version_takes_over_is_written_to_no_more(tmp_path: Path) -> None:
    echo = fresh(cache=Replies(tmp_path / "replies.db"))
    echo.say("a")
    newer_layout(tmp_path / "replies.db")
    before = (tmp_path / "replies.db").read_bytes()
    with pytest.raises(EngineError, match="of another version of evaluand"):
        echo.say("c")
    assert (tmp_path / "replies.db").read_bytes() == before


def test_a_file_that_was_removed_is_made_again_and_an_empty_one_is_used(tmp_path: Path) -> None:
    path = tmp_path / "replies.db"
    path.touch()
    echo = fresh(cache=Replies(path))
    for text in ("a", "b"):
        echo.say(text)
        path.unlink()
    echo.say("c")
    assert [file.name for file in tmp_path.iterdir()] == ["replies.db"]
    later = fresh(cache=Replies(path))
    assert later.say("c") == ["c"]
    assert later.asked == {}


def test_a_folder_is_no_file_of_replies(tmp_path: Path) -> None:
    with pytest.raises(EngineError, match="it is not a file of replies"):
        fresh(cache=tmp_path).say("a")


def test_only_so_many_replies_are_held_and_those_asked_last() -> None:
    echo = fresh(cache=Replies(largest=2))
    for text in ("a", "b", "a", "c", "a", "b"):
        echo.say(text)
    assert echo.asked == {"a": 1, "b": 2, "c": 1}


@pytest.mark.slow
def test_several_processes_that_begin_at_once_write_one_file(tmp_path: Path) -> None:
    path = tmp_path / "replies.db"
    workers = [CONTEXT.Process(target=_say_many, args=(path, number)) for number in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert [worker.exitcode for worker in workers] == [0] * 4
    echo = fresh(cache=path)
    assert [echo.say(f"{number} {i}") for number in range(4) for i in range(20)]
    assert echo.asked == {}


def _say_many(path: Path, number: int) -> None:
    echo = fresh(cache=path)
    for i in range(20):
        echo.say(f"{number} {i}")


def _check_answer(echo: Any) -> None:
    assert echo.say("a") == ["a"]


def test_a_forked_process_can_ask_what_its_parent_was_asking() -> None:
    echo = fresh(pause=0.3)
    thread = threading.Thread(target=echo.say, args=("a",))
    thread.start()
    time.sleep(0.1)
    child = start_fork(lambda: _check_answer(echo))
    thread.join()
    assert end_fork(child) == 0


# Who asks at the same time


def test_threads_that_ask_the_same_ask_once() -> None:
    echo = fresh(pause=0.2)
    with ThreadPoolExecutor(16) as pool:
        assert list(pool.map(echo.say, ["a"] * 16)) == [["a"]] * 16
    assert echo.asked == {"a": 1}
    assert echo.spent.n_known == 15


def test_coroutines_that_ask_the_same_ask_once() -> None:
    echo = fresh(pause=0.1)

    async def ask() -> list[Any]:
        return await asyncio.gather(*(echo.say_later("a") for _ in range(16)))

    assert asyncio.run(ask()) == ["a"] * 16
    assert echo.asked == {"a": 1}


def test_an_error_is_reported_to_all_who_wait_and_kept_by_nobody() -> None:
    echo = fresh(pause=0.2, failures=1, retries=0)
    with ThreadPoolExecutor(4) as pool:
        reported = [future.exception() for future in [pool.submit(echo.say, "a") for _ in range(4)]]
    assert [str(error) for error in reported] == ["busy"] * 4
    assert echo.asked == {"a": 1}
    assert echo.say("a") == ["a"]


def test_where_who_asked_was_stopped_the_next_asks() -> None:
    echo = fresh(pause=0.2)

    async def ask() -> Any:
        first, second = (asyncio.ensure_future(echo.say_later("a")) for _ in range(2))
        await asyncio.sleep(0.1)
        first.cancel()
        return await second

    assert asyncio.run(ask()) == "a"
    assert echo.asked == {"a": 2}


def test_who_waits_can_be_stopped_alone() -> None:
    echo = fresh(pause=0.2)

    async def ask() -> Any:
        first, second = (asyncio.ensure_future(echo.say_later("a")) for _ in range(2))
        await asyncio.sleep(0.1)
        second.cancel()
        return await first, second.cancelled()

    assert asyncio.run(ask()) == ("a", True)
    assert echo.asked == {"a": 1}


def test_who_is_stopped_ends_so_and_asks_nothing_anew() -> None:
    echo = fresh(pause=0.2)

    async def ask() -> list[Any]:
        tasks = [asyncio.ensure_future(echo.say_later("a")) for _ in range(4)]
        await asyncio.sleep(0.05)
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        return [task.cancelled() for task in tasks]

    assert asyncio.run(ask()) == [True] * 4
    assert echo.asked == {"a": 1}
    assert (echo.spent.n_requests, echo.spent.n_failed) == (1, 1)


def test_who_was_stopped_before_and_went_on_can_wait_for_another() -> None:
    echo = fresh(pause=0.2)

    async def go_on() -> Any:
        try:
            await asyncio.sleep(10)
        except asyncio.CancelledError:
            return await echo.say_later("a")

    async def ask() -> Any:
        second = asyncio.ensure_future(go_on())
        first = asyncio.ensure_future(echo.say_later("a"))
        await asyncio.sleep(0.05)
        second.cancel()
        await asyncio.sleep(0.05)
        first.cancel()
        return await second

    assert asyncio.run(ask()) == "a"
    assert echo.asked == {"a": 2}


# Requests that hang


@dataclass(frozen=True, kw_only=True)
class Hanging(RemoteProvider):
    """Hangs as often as it is to, until it is let go, and then answers."""

    times: int = 1
    asked: list[str] = field(default_factory=list)
    let_go: threading.Event = field(default_factory=threading.Event)
    backoff: float = 0.0

    unidentified = (*RemoteProvider.unidentified, "times", "asked", "let_go")

    @asks
    def say(self, text: str) -> str:
        self.asked.append(text)
        if len(self.asked) <= self.times:
            self.let_go.wait(PATIENCE)
        return text.upper()

    @asks
    async def say_later(self, text: str) -> str:
        self.asked.append(text)
        if len(self.asked) <= self.times:
            await asyncio.sleep(PATIENCE)
        return text.upper()

    def length(self, text: str) -> float:
        return float(len(self.say(text)))

    async def length_later(self, text: str) -> float:
        return float(len(await self.say_later(text)))


@pytest.mark.parametrize("way", ["say", "say_later"])
def test_a_request_that_hangs_is_given_up_and_made_again(way: str) -> None:
    def ask(hanging: Hanging) -> Any:
        return hanging.say("a") if way == "say" else asyncio.run(hanging.say_later("a"))

    hanging = Hanging(cache=Replies(), timeout=0.1)
    assert ask(hanging) == "A"
    assert (hanging.spent.n_requests, hanging.spent.n_failed) == (2, 1)
    hanging = Hanging(cache=Replies(), timeout=0.1, retries=1, times=2)
    with pytest.raises(TransientError, match=rf"^{way} had no reply within 0.1 s$") as raised:
        ask(hanging)
    assert raised.value.code == "timeout"
    assert ask(hanging) == "A"
    hanging.let_go.set()


def test_those_who_wait_for_a_request_that_hangs_have_the_reply_to_the_next() -> None:
    hanging = Hanging(cache=Replies(), timeout=0.3)
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(hanging.say, ["a"] * 4)) == ["A"] * 4
    assert hanging.asked == ["a", "a"]
    hanging.let_go.set()


@pytest.mark.parametrize("way", ["length", "length_later"])
def test_a_further_attempt_of_an_evaluation_does_not_wait_for_the_one_given_up(tmp_path: Path, way: str) -> None:
    hanging = Hanging(cache=Replies(), timeout=PATIENCE)
    policy = Policy(timeout=0.3, retries=1, backoff=0.0, transient=("TaskTimeout",))
    feedback = Feedback(getattr(hanging, way)).on_output()
    with App(answer, name="app", version="1", feedbacks=[feedback], store=Store(tmp_path), policy=policy) as recording:
        recording.app.app("a")
    recording.close()
    evaluation = recording.evaluation
    assert evaluation.table(way).column("value").to_pylist() == [2.0]
    assert hanging.asked == ["a!", "a!"]
    hanging.let_go.set()


def test_who_is_given_up_asks_no_more() -> None:
    hanging = Hanging(cache=False, timeout=0.5, times=2)
    policy = Policy(timeout=0.2, retries=0)
    run = Runner().run(answer, Dataset.from_rows([{"input": "a"}]))
    with pytest.warns(ScorerFailed, match="took longer than 0.2 s"):
        Evaluator(policy=policy).evaluate(run, {"length": Feedback(hanging.length).on_output()})
    time.sleep(0.6)
    assert hanging.asked == ["a!"]
    hanging.let_go.set()


def test_others_than_who_was_given_up_ask_themselves() -> None:
    replies, given_up, hangs, reported = Replies(), threading.Event(), threading.Event(), []

    def hang() -> bytes:
        hangs.set()
        given_up.wait(PATIENCE)
        time.sleep(0.3)
        raise TransientError("nobody hears this")

    def first() -> None:
        with pytest.raises(TransientError):
            replies.get(b"key", hang, is_given_up=given_up.is_set)

    async def later() -> bytes:
        return (await replies.get_async(b"key", asked_anew))[0]

    async def asked_anew() -> bytes:
        return b"anew"

    threads = [threading.Thread(target=first)]
    threads[0].start()
    assert hangs.wait(PATIENCE)
    threads.append(threading.Thread(target=lambda: reported.append(replies.get(b"key", lambda: b"anew")[0])))
    threads.append(threading.Thread(target=lambda: reported.append(asyncio.run(later()))))
    for thread in threads[1:]:
        thread.start()
    time.sleep(0.1)
    assert not reported
    given_up.set()
    for thread in threads:
        thread.join()
    assert reported == [b"anew", b"anew"]
    assert replies.get(b"key", lambda: b"other") == (b"anew", False)


def test_a_request_without_a_limit_is_made_in_the_thread_that_asks() -> None:
    @dataclass(frozen=True, kw_only=True)
    class Where(RemoteProvider):
        @asks
        def thread(self) -> int:
            return threading.get_ident()

    assert Where(cache=False, timeout=None).thread() == threading.get_ident()
    where = Where(cache=False)
    assert where.thread() == where.thread() != threading.get_ident()


def test_what_a_request_raises_is_raised_also_where_it_is_a_timeout_of_its_own() -> None:
    echo = fresh(failures=1, error=TimeoutError)
    with pytest.raises(TimeoutError, match="busy"):
        echo.say("a")
    assert echo.asked == {"a": 1}


# Further attempts


@pytest.mark.parametrize("failures", [0, 1, TRIES - 1])
def test_what_may_pass_is_tried_again(failures: int) -> None:
    echo = fresh(failures=failures, retries=TRIES - 1)
    assert echo.say("a") == ["a"]
    assert asyncio.run(echo.say_later("b")) == "b"
    assert echo.asked == {"a": failures + 1, "b": failures + 1}
    assert (echo.spent.n_requests, echo.spent.n_failed) == (2 * failures + 2, 2 * failures)


def test_when_the_attempts_are_used_up_the_error_is_reported() -> None:
    echo = fresh(failures=TRIES, retries=TRIES - 1)
    with pytest.raises(TransientError, match="busy"):
        echo.say("a")
    assert echo.asked == {"a": TRIES}


def test_what_is_not_declared_transient_is_not_tried_again() -> None:
    echo = fresh(failures=1, error=KeyError)
    with pytest.raises(KeyError):
        echo.say("a")
    declared = fresh(failures=1, error=KeyError, transient=("LookupError",))  # a base counts too
    assert declared.say("a") == ["a"]


def test_a_pause_is_at_least_as_long_as_asked_for() -> None:
    @dataclass(frozen=True, kw_only=True)
    class Busy(RemoteProvider):
        asked: list[float] = field(default_factory=list)

        @asks
        def say(self) -> str:
            self.asked.append(time.monotonic())
            if len(self.asked) == 1:
                raise TransientError("busy", after=0.3)
            return "hello"

    busy = Busy(backoff=0.0, cache=False)
    assert busy.say() == "hello"
    assert busy.asked[1] - busy.asked[0] >= 0.3


# What it cost


def test_what_requests_cost_is_summed_and_what_is_known_costs_nothing() -> None:
    echo = fresh()
    with spending() as outer:
        echo.say("a")
        with spending() as inner:
            echo.say("b", times=2)
            echo.say("a")
    assert (inner.n_requests, inner.n_known, inner.output_tokens, inner.cost) == (1, 1, 2, {"EUR": 0.5})
    counted = {"requests": 2, "failed": 0, "cached": 1}
    used = {**counted, "input_tokens": 6, "output_tokens": 3, "cost": 1.0, "currency": "EUR"}
    assert outer.usage == {**used, "seconds": round(outer.seconds, 6)}
    assert echo.spent.usage == outer.usage


@pytest.mark.parametrize(
    ("usage", "message"),
    [
        ({"input_tokens": "12"}, "input_tokens is '12', not an integer of at least 0"),
        ({"output_tokens": -1}, "output_tokens is -1, not an integer of at least 0"),
        ({"output_tokens": True}, "output_tokens is True, not an integer of at least 0"),
        ({"input_tokens": 1, "cost": float("nan")}, "cost is nan, not a number of at least 0"),
        ({"cost": "0.5"}, "cost is '0.5', not a number of at least 0"),
        ({"cost": Decimal("nan")}, r"cost is Decimal\('NaN'\), not a number of at least 0"),
        ({"cost": 1.0, "currency": 978}, "currency is 978, not a text"),
        ([12, 3], "it is a list, not an object"),
    ],
)
def test_a_usage_that_cannot_be_counted_is_refused_and_the_request_is_counted_once(usage: Any, message: str) -> None:
    @dataclass(frozen=True, kw_only=True)
    class Odd(RemoteProvider):
        @asks
        def say(self) -> Any:
            return Reply("x", usage)

    odd = Odd(cache=Replies(), transient=("TaskError",))
    with pytest.raises(TaskError, match=f"^say reported a usage that cannot be counted: {message}$"):
        odd.say()
    assert (odd.spent.n_requests, odd.spent.n_failed, odd.spent.input_tokens, odd.spent.cost) == (1, 0, 0, {})


def test_a_usage_tells_what_is_known_of_it_in_numbers_of_any_kind() -> None:
    @dataclass(frozen=True, kw_only=True)
    class Numbered(RemoteProvider):
        @asks
        def say(self) -> Any:
            return Reply("x", {"input_tokens": np.int64(2), "output_tokens": None, "cost": Decimal("0.5"), "more": []})

    numbered = Numbered(cache=False)
    numbered.say()
    assert (numbered.spent.input_tokens, numbered.spent.output_tokens, numbered.spent.cost) == (2, 0, {"": 0.5})


def test_what_is_no_data_was_paid_all_the_same() -> None:
    @dataclass(frozen=True, kw_only=True)
    class Odd(RemoteProvider):
        @asks
        def say(self) -> Any:
            return Reply(object(), {"cost": 0.5})

    odd = Odd(cache=False, transient=("TaskError",))
    with pytest.raises(TaskError, match="say returned something that is not data"):
        odd.say()
    assert (odd.spent.n_requests, odd.spent.n_failed, odd.spent.cost) == (1, 0, {"": 0.5})


def test_tasks_of_one_loop_have_what_they_spend_apart() -> None:
    echo = fresh(pause=0.05)

    async def ask(text: str) -> int:
        with spending() as spent:
            await echo.say_later(text)
            if text == "b":
                await echo.say_later("c")
        return spent.n_requests

    async def both() -> list[int]:
        return await asyncio.gather(ask("a"), ask("b"))

    assert asyncio.run(both()) == [1, 2]
    assert echo.spent.n_requests == 3


# What it is


def test_a_declared_version_pins_and_nothing_else() -> None:
    assert fresh().identify("say").pinned
    assert fresh().identify("say").spec == fresh(rate="5/s", retries=0).identify("say").spec
    assert fresh().identify("say").spec != fresh().identify("say_later").spec
    assert fresh().identify("say").spec != fresh(version="2").identify("say").spec
    unpinned = fresh(version=None).identify("say")
    assert not unpinned.pinned
    assert (
        "echo: what answers cannot be seen from here; declare the provider's `version` to pin it" in unpinned.unpinned
    )
    assert not fingerprint(fresh(version=None)).pinned


def test_a_provider_of_ones_own_without_requests_is_known_by_its_code() -> None:
    class Mine(Provider):
        def long(self, text: str) -> float:
            return float(len(text) > 3)

    class Other(Provider):
        def long(self, text: str) -> float:
            return float(len(text) > 4)

    assert Mine().identify("long").pinned
    assert Mine().identify("long").spec != Other().identify("long").spec


def test_a_provider_of_plain_data_can_be_stored_and_made_again() -> None:
    stored = reference_of(Local(k=3).recall_at_k)
    assert stored["parameters"] == {"k": 3}
    again = referred(stored).make()
    assert again(["a"], ["a"]).value == 1.0
    assert again.__self__ == Local(k=3)
    asking = RemoteProvider(model="m", version="1", rate=RateLimit(5, 1), cache=Path("replies.db"))
    assert asking.arguments == {"model": "m", "version": "1", "rate": "5/s", "cache": "replies.db"}
    assert RemoteProvider(**asking.arguments).identify("say").spec == asking.identify("say").spec
    with pytest.raises(SpecError, match="RemoteProvider cannot be stored"):
        _ = RemoteProvider(cache=Replies()).arguments


# What is secret

SECRET = "sk-mustnotbetold/1"
PASSWORD = "hunter2hunter2"
NESTED = {
    "api_key": SECRET,
    "headers": {"Authorization": f"Bearer {SECRET}", "Accept": "json"},
    "hosts": ({"url": f"https://me:{PASSWORD}@models.example/v1", "login": {"access_token": SECRET}},),
}


@dataclass(frozen=True, kw_only=True)
class Keyed(RemoteProvider):
    api_key: str | None = None
    headers: dict[str, Any] = field(default_factory=dict)
    hosts: Any = ()

    unidentified = (*RemoteProvider.unidentified, "hidden")

    @asks
    def say(self, text: str) -> str:
        if "error" in text:
            raise TaskError(f"{text}: {self.api_key} {self.hosts}")
        return text.upper()

    def length(self, text: str) -> float:
        return float(len(self.say(text)))


class Near(Provider):
    def __init__(self, api_key: str, url: str) -> None:
        self.api_key, self.url = api_key, url

    def length(self, text: str) -> float:
        return float(len(text))


def answer(text: str) -> str:
    return text + "!"


@pytest.mark.parametrize(
    "provider",
    [
        Keyed(model="m", version="1", **NESTED),
        Keyed(model=f"https://me:{PASSWORD}@m.example", **NESTED),
        Near(SECRET, f"https://me:{PASSWORD}@models.example"),
    ],
    ids=["pinned", "unpinned", "near"],
)
def test_what_is_secret_stands_in_no_store_and_no_report(tmp_path: Path, provider: Any) -> None:
    folder, store = Folder(tmp_path), Store(tmp_path / "store")
    feedback = Feedback(provider.length).on_output()
    run = Runner(store).run(answer, Dataset.from_rows([{"input": "a"}, {"input": "an error"}]))
    Evaluator(store).evaluate(run, {"length": feedback})
    with App(answer, name="app", version="1", feedbacks=[feedback], store=store) as recording:
        recording.app.app("b")
    recording.close()
    folder.done("report", "app", "--output", tmp_path / "report.html")
    written = [file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()]
    assert any(b"models.example" in each for each in written) == (provider.__class__ is Keyed)
    assert not any(word.encode() in each for each in written for word in (SECRET, PASSWORD))


def test_what_is_secret_is_not_shown_with_the_provider() -> None:
    shown = repr(Keyed(model="m", **NESTED))
    assert shown.startswith("Keyed(model='m', version=None, ")
    assert "api_key='***'" in shown
    assert "{'Authorization': '***', 'Accept': 'json'}" in shown
    assert "https://me:***@models.example/v1" in shown
    assert SECRET not in shown
    assert repr(Local(k=3)) == "Local(k=3)"


def test_another_key_is_the_same_provider_and_all_else_makes_another_one() -> None:
    def spec(**given: Any) -> Any:
        return Keyed(model="m", version="1", **NESTED | given).identify("say").spec

    assert spec() == spec(api_key=None) == spec(api_key="another")
    assert spec() == spec(headers={"Accept": "json", "Authorization": ""})
    hosts = NESTED["hosts"][0] | {"url": "https://me:other@models.example/v1"}  # type: ignore[operator]
    assert spec() == spec(hosts=[hosts])
    for other in (
        {"headers": {"Accept": "text"}},
        {"headers": {"Accept": "json", "key_used": True}},
        {"hosts": [hosts | {"url": f"https://me:{PASSWORD}@models.example/v2"}]},
        {"hosts": [hosts | {"url": f"https://you:{PASSWORD}@models.example/v1"}]},
    ):
        assert spec() != spec(**other)


def test_a_secret_does_not_hide_what_kind_of_thing_holds_it() -> None:
    @dataclass(frozen=True)
    class Account:
        name: str
        token: str = SECRET

    @dataclass(frozen=True)
    class Guest(Account):
        pass

    one, other = (Keyed(version="1", hosts=[kind("jane")]) for kind in (Account, Guest))
    assert SECRET not in f"{one.spec} {one!r}"
    assert one.spec != other.spec


def test_the_same_key_rotated_asks_nothing_anew() -> None:
    replies = Replies()
    for key in ("one", "two"):
        provider = Keyed(model="m", version="1", cache=replies, api_key=key)
        provider.say("a")
    assert provider.spent.n_known == 1


class Stubborn(Exception):
    def __str__(self) -> str:
        return f"refused: {SECRET}"


@pytest.mark.parametrize("error", [ValueError(f"refused: {SECRET}"), Stubborn(), TaskError(f"refused: {SECRET}")])
def test_what_is_secret_is_taken_out_of_errors(error: Exception) -> None:
    @dataclass(frozen=True, kw_only=True)
    class Failing(Keyed):
        @asks
        def fail(self) -> str:
            raise error

        @asks
        async def fail_later(self) -> str:
            raise error

    failing = Failing(api_key=SECRET, cache=False)
    for ask in (failing.fail, lambda: asyncio.run(failing.fail_later())):  # type: ignore[arg-type, return-value]
        with pytest.raises(Exception, match=r"refused: \*\*\*$") as raised:
            ask()
        assert isinstance(raised.value, TaskError if isinstance(error, Stubborn) else type(error))


@pytest.mark.parametrize(
    ("secret", "reported"),
    [
        ({"api_key": SECRET}, "api_key"),
        ({"headers": NESTED["headers"]}, "headers.Authorization"),
        ({"hosts": NESTED["hosts"]}, "hosts.0.url"),
    ],
)
def test_a_provider_with_a_secret_is_not_stored(secret: dict[str, Any], reported: str) -> None:
    with pytest.raises(SpecError, match=rf"^Keyed cannot be stored with its {reported}; let it read that from the env"):
        _ = Keyed(**secret).arguments
    assert Keyed(headers={"Authorization": ""}).arguments == {"headers": {"Authorization": ""}}


def test_rates_written_alike_are_one_rate() -> None:
    one, two, other = (fresh(rate="7/s", model=name) for name in ("a", "a", "b"))
    assert one._policy.rate_limit is two._policy.rate_limit
    assert one._policy.rate_limit is not other._policy.rate_limit


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"rate": "fast"}, "rate is 'fast'; write calls per period"),
        ({"timeout": 0}, "timeout is the integer 0; give a number above 0, or None"),
        ({"timeout": "1 s"}, "timeout is the text '1 s'; give a number above 0, or None"),
        ({"cache": 3}, "cache is 3; give True, False, a path, or Replies"),
        ({"retries": -1}, "retries is -1; give an integer of at least 0"),
        ({"transient": "KeyError"}, "transient is the text 'KeyError'"),
    ],
)
def test_parameters_that_cannot_be_are_refused_when_it_is_made(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(SpecError, match=message):
        fresh(**wrong)


def test_what_is_no_data_is_neither_asked_nor_reported() -> None:
    echo = fresh()
    with pytest.raises(TaskError, match="say: an argument cannot be stored as data: "):
        echo.say(object())  # type: ignore[arg-type]

    class Odd(RemoteProvider):
        @asks
        def thing(self) -> Any:
            return {1, 2}

    with pytest.raises(TaskError, match="thing returned something that is not data"):
        Odd().thing()


def test_only_a_remote_provider_asks() -> None:
    class Near(Provider):
        @asks
        def thing(self) -> float:
            return 1.0

    with pytest.raises(SpecError, match="thing asks, and so must be a method of a RemoteProvider"):
        Near().thing()


def test_a_judgement_is_its_value_and_why() -> None:
    value, meta = Judgement(0.5, {"reason": "half of it"})
    assert (value, meta["reason"]) == (0.5, "half of it")
    assert Judgement.undefined("there is no text").reason == "there is no text"


def test_a_method_can_say_that_less_is_better() -> None:
    @lower_is_better
    def noise(text: str) -> float:
        return 0.0

    assert noise.higher_is_better is False  # type: ignore[attr-defined]


# Against a server that counts


@contextmanager
def server(refusals: int = 0, delay: float = 0.0) -> Iterator[int]:
    with open_process(sys.executable, SUPPORT_FOLDER / "counting_server.py", refusals, delay) as process:
        try:
            assert process.stdout is not None
            yield int(process.stdout.readline())
        finally:
            while _connections:
                _connections.pop().close()


def noted(port: int) -> list[tuple[float, str]]:
    connection = http.client.HTTPConnection("127.0.0.1", port)
    connection.request("GET", "/")
    found: list[tuple[float, str]] = json.loads(connection.getresponse().read())
    connection.close()
    return found


@dataclass(frozen=True, kw_only=True)
class Served(RemoteProvider):
    port: int

    unidentified = (*RemoteProvider.unidentified, "port")

    @asks
    def ask(self, text: str) -> Any:
        connection = _connection(self.port)
        connection.request("POST", "/", text)
        sent()
        reported = json.loads(connection.getresponse().read())
        return Reply(reported["asked"], reported["usage"])

    @asks
    async def ask_async(self, text: str) -> Any:
        reported = await self._exchange.ask(text.encode())
        return Reply(reported["asked"], reported["usage"])

    @cached_property
    def _exchange(self) -> HttpClient:
        return HttpClient(f"http://127.0.0.1:{self.port}/", "POST", {})


_mine = threading.local()
_connections: list[http.client.HTTPConnection] = []  # of threads that outlive a test


def _connection(port: int) -> http.client.HTTPConnection:
    if getattr(_mine, "port", None) != port:
        _mine.port, _mine.connection = port, http.client.HTTPConnection("127.0.0.1", port)
        _connections.append(_mine.connection)
    made: http.client.HTTPConnection = _mine.connection
    return made


def in_threads(served: Served, texts: list[str], workers: int) -> None:
    remaining, lock = iter(texts), threading.Lock()

    def work() -> None:
        while True:
            with lock:
                text = next(remaining, None)
            if text is None:
                return
            served.ask(text)

    threads = [threading.Thread(target=work) for _ in range(workers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def in_a_loop(served: Served, texts: list[str], workers: int) -> None:
    async def main() -> None:
        remaining = iter(texts)

        async def work() -> None:
            for text in remaining:
                await served.ask_async(text)

        await asyncio.gather(*(work() for _ in range(workers)))

    asyncio.run(main())


WAYS = pytest.mark.parametrize("way", [in_threads, in_a_loop])
Way = Callable[[Served, list[str], int], None]


def test_a_slot_waits_for_the_reply_to_its_request_but_not_for_ever() -> None:
    clock = Clock()
    pace = RateLimit(1, 10.0, clock=clock)

    def pause_after(reply: float, reported: float | None) -> float:
        """Seconds from a request to when the next may start, where its reply comes after so many."""
        began = clock.now
        with pace.request():
            if reported is not None:
                clock.now = began + reported
                sent()
            clock.now = began + reply
        with pace.turn() as turn:
            while pause := turn.pause():
                clock.now += pause
        return clock.now - began

    assert pause_after(0.1, None) == pytest.approx(10.1)
    assert pause_after(0.1, 0.05) == pytest.approx(10.1)  # the reply tells more exactly
    assert pause_after(5.0, None) == pytest.approx(10 + LONGEST_TRANSIT)


def test_while_a_reply_is_awaited_its_slot_is_lent_again_after_the_longest_way() -> None:
    clock = Clock()
    pace = RateLimit(1, 10.0, clock=clock)
    for reported, free in ((None, 10 + LONGEST_TRANSIT), (0.2, 10.2 + TRANSIT)):
        clock.now = began = clock.now + 100.0
        with pace.request():
            if reported is not None:
                clock.now = began + reported
                sent()
            with pace.turn() as turn:
                while pause := turn.pause():
                    clock.now += pause
            assert clock.now - began == pytest.approx(free)


def test_a_service_is_left_alone_for_as_long_as_it_asks() -> None:
    with server(refusals=1) as port:
        served = Served(port=port, cache=False, backoff=0.0)
        in_a_loop(served, ["a"], 1)
        first, second = (moment for moment, _ in noted(port))
    assert second - first >= 1.0
    assert (served.spent.n_requests, served.spent.n_failed, served.spent.input_tokens) == (2, 1, 1)


@pytest.mark.slow  # a machine that is too busy for its own server delays requests by more than any client can know
@WAYS
def test_what_a_service_counts_never_exceeds_the_pace(way: Way) -> None:
    with server() as port:
        way(Served(port=port, rate="20/0.5 s", cache=False), [str(i) for i in range(60)], 32)
        moments = [moment for moment, _ in noted(port)]
    assert len(moments) == 60
    assert fullest(moments, 0.5) <= 20


@pytest.mark.slow
@pytest.mark.parametrize(("way", "delay"), [(in_threads, 0.0), (in_threads, 0.1), (in_a_loop, 0.0)])
def test_at_least_95_percent_of_a_pace_are_used_and_no_period_holds_more(way: Way, delay: float) -> None:
    calls, seconds, periods = 100, 5.0, 8
    with server(delay=delay) as port:
        texts = [str(i) for i in range(calls * periods)]
        way(Served(port=port, rate=f"{calls}/{seconds} s", cache=False), texts, 32)
        moments = [moment for moment, _ in noted(port)]
    assert fullest(moments, seconds) <= calls
    assert used(moments, calls, seconds) >= 0.95


def used(moments: list[float], calls: int, seconds: float) -> float:
    """What part of a limit is used: calls by limit times periods, from when the first period's calls were made.

    Counted from the first call instead, all but one burst could be lost in the end and not be seen.
    """
    periods = (moments[-1] - moments[calls - 1]) / seconds
    return (len(moments) - calls) / (calls * periods)


class Machine(asyncio.SelectorEventLoop):
    """An event loop whose time is a clock that is set by hand: by what computes, and where it would wait."""

    def __init__(self, clock: Clock) -> None:
        super().__init__(_Idle(clock))
        self.time = clock  # type: ignore[method-assign]


class _Idle(selectors.SelectSelector):
    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self.clock = clock

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        assert timeout is not None, "nothing would ever happen"
        self.clock.now += timeout
        return super().select(0)


STEP = 0.0003  # seconds that a step of a request takes of the loop


def moments_of(
    calls: int, seconds: float, reported: bool, late: float, reply: float, periods: int = 12, workers: int = 32
) -> list[float]:
    """When the requests of coroutines reach their service, on a loop of which each step of each takes time."""
    clock = Clock()
    pace, moments, remaining = RateLimit(calls, seconds, clock=clock), [], iter(range(calls * periods))

    async def steps(n: int) -> None:
        for _ in range(n):
            clock.now += STEP
            await asyncio.sleep(0)

    async def work() -> None:
        for n in remaining:
            async with pace.request_async():
                await steps(5)
                moments.append(clock.now)
                await steps(1)
                if reported:
                    sent()
                await asyncio.sleep(reply)
                await steps(3)
            clock.now += late * (n % 7 == 0)  # what else the machine does

    async def main() -> None:
        await asyncio.gather(*(work() for _ in range(workers)))

    with asyncio.Runner(loop_factory=lambda: Machine(clock)) as runner:
        runner.run(main())
    return moments


@pytest.mark.parametrize("reported", [True, False])
@pytest.mark.parametrize("late", [0.0, 0.01])
@pytest.mark.parametrize(("calls", "seconds"), [(20, 0.5), (100, 1.0), (100, 5.0), (60, 60.0)])
@pytest.mark.slow
def test_coroutines_use_at_least_95_percent_of_a_pace(calls: int, seconds: float, late: float, reported: bool) -> None:
    moments = moments_of(calls, seconds, reported, late, reply=0.002)
    assert fullest(moments, seconds) == calls
    assert used(moments, calls, seconds) >= 0.95


@pytest.mark.parametrize(
    ("seconds", "reply", "lost"),
    [(10.0, 0.2, 0.2), (10.0, 3.0, TRANSIT), (60.0, 3.0, TRANSIT), (1.0, 3.0, 0.025), (0.5, 3.0, 0.0125)],
)
@pytest.mark.slow
def test_of_each_period_no_more_is_lost_than_a_reply_takes_or_a_request_may_be_on_its_way(
    seconds: float, reply: float, lost: float
) -> None:
    moments = moments_of(20, seconds, reported=True, late=0.0, reply=reply, periods=60, workers=200)
    moments = moments[len(moments) // 2 :]  # by then it is known how long replies take
    assert fullest(moments, seconds) == 20
    assert used(moments, 20, seconds) == pytest.approx(seconds / (seconds + lost), abs=0.01)


def test_a_request_that_is_stopped_at_the_door_gives_its_turn_back_and_lets_the_next_through() -> None:
    pace = RateLimit(3, 60.0)

    async def main() -> list[float]:
        async def ask() -> float:
            async with pace.request_async():
                return time.monotonic()

        async with pace.request_async():  # is in the door
            stopped, other = asyncio.ensure_future(ask()), asyncio.ensure_future(ask())
            await asyncio.sleep(0)
            stopped.cancel()
            sent()
            await asyncio.wait([stopped, other])
        assert stopped.cancelled()
        return [other.result(), await ask()]

    assert asyncio.run(main())
