"""Whoever judges a record, and whenever: the results are the same, each is there once, and no app is harmed."""

from __future__ import annotations

import asyncio
import importlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import orjson
import pytest
from click.testing import CliRunner
from support.feedback_functions import feedbacks, length, noted, noted_and_held, sleepy, use
from support.patience import PATIENCE
from support.places import SUPPORT_FOLDER

from evaluand import DirectoryStore, Evaluator, MemoryStore
from evaluand.apps.leaderboards.board import leaderboard
from evaluand.apps.recording import writer
from evaluand.apps.recording.judge import QUEUE
from evaluand.apps.recording.kind import RECORDINGS
from evaluand.apps.recording.stored import MODES, find_recording_id, read_progress
from evaluand.apps.recording.workers import _WorkerPool, work
from evaluand.apps.recording.writer import RecordingWriter
from evaluand.cli import main
from evaluand.core.errors import EngineError, EvaluandWarning, SpecError, TransientError
from evaluand.core.fingerprint import Identity
from evaluand.engine.keyed_work import Tally
from evaluand.engine.policy import Policy
from evaluand.evaluation.evaluator import Evaluation
from evaluand.evaluation.feedback import Feedback
from evaluand.evaluation.scorer import Score, Scorer
from evaluand.evaluation.scorers.feedback import FeedbackKind
from evaluand.store.ownership import with_mac
from evaluand.store.segments import add_checksums, seed_of
from evaluand.store.store import Store, with_seal

APP = {"name": "rag", "version": "2", "app_id": "rag:2"}


@pytest.fixture(params=["memory", "directory"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    return MemoryStore() if request.param == "memory" else DirectoryStore(tmp_path / "store")


@pytest.fixture
def folder(tmp_path: Path) -> DirectoryStore:
    return DirectoryStore(tmp_path / "store")


@pytest.fixture
def notes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "notes"
    path.touch()
    monkeypatch.setenv("NOTES", str(path))
    return path


def noted_lines(notes: Path) -> list[tuple[int, str]]:
    return [(int(pid), text) for pid, _, text in (line.partition(" ") for line in notes.read_text().splitlines())]


def eventually(what: object) -> None:
    until = time.monotonic() + PATIENCE
    while not what():  # type: ignore[operator]
        assert time.monotonic() < until
        time.sleep(0.01)


# One digest


def test_all_modes_and_a_later_evaluation_give_one_digest(tmp_path: Path) -> None:
    digests = set()
    for mode in MODES:
        for at, store in enumerate((MemoryStore(), DirectoryStore(tmp_path / mode))):
            with RecordingWriter.begin(store, APP, feedbacks(), mode=mode) as recording:
                for number in range(12):
                    use(recording, f"q{number}")
            recording.close()
            evaluation = recording.evaluate()
            assert evaluation.counts["same"] == {"scored": 11, "failed": 1}, (mode, at)
            digests.add(evaluation.digest)
            run = recording.run
            assert run is not None
            named = {each.name: each for each in feedbacks()}
            digests.add(Evaluator(store).evaluate(run, named, fresh=True).digest)
    assert len(digests) == 1


def test_all_modes_give_up_what_takes_too_long(store: Store) -> None:
    given = [Feedback(sleepy).on_output(), Feedback(length).on_output()]

    def judge(mode: str) -> Evaluation:
        with RecordingWriter.begin(store, APP, given, mode=mode, policy=Policy(timeout=0.5)) as recording:
            for number in range(3):
                use(recording, f"q{number}")
        if mode == "deferred":
            work(store, recording.id)
        return recording.close().evaluate()

    with ThreadPoolExecutor(len(MODES)) as pool:  # they wait for the timeout together
        evaluations = list(pool.map(judge, MODES))
    for mode, evaluation in zip(MODES, evaluations, strict=True):
        assert evaluation.counts == {"length": {"scored": 3}, "sleepy": {"failed": 1, "scored": 2}}, mode
        assert evaluation.table("sleepy")["reason"].to_pylist()[1] == "scorer: TaskTimeout: took longer than 0.5 s"
    assert len({evaluation.digest for evaluation in evaluations}) == 1


def test_with_app_a_feedback_that_hangs_holds_the_call_no_longer_than_its_timeout(store: Store) -> None:
    free = threading.Event()

    def hangs(text: str) -> float:
        return float(free.wait(PATIENCE))

    given = [Feedback(hangs).on_output(), Feedback(length).on_output()]
    recording = RecordingWriter.begin(store, APP, given, mode="with_app", policy=Policy(timeout=0.3))
    use(recording, "q")
    assert recording.progress().feedbacks == {"hangs": {"failed": 1}, "length": {"scored": 1}}
    free.set()
    with pytest.warns(UserWarning, match="failed on the one row: TaskTimeout: took longer than 0.3 s"):
        recording.close()


def test_threads_that_are_left_behind_end_when_their_call_has(store: Store) -> None:
    free = threading.Event()

    def hangs(text: str) -> float:
        if text == "Q1":
            raise TransientError("not now")
        return float(free.wait(PATIENCE))

    def alive() -> int:
        return sum(thread.name == "evaluand call" for thread in threading.enumerate())

    before = alive()
    policy = Policy(timeout=0.1, retries=1, backoff=0.0)
    recording = RecordingWriter.begin(
        store, APP, [Feedback(hangs, version="1").on_output()], mode="with_app", policy=policy
    )
    for number in range(4):
        use(recording, f"q{number}")
    assert alive() > before + 1
    assert recording.progress().feedbacks == {"hangs": {"failed": 4}}
    free.set()
    with pytest.warns(UserWarning, match="failed on all 4 rows"):
        recording.close()
    eventually(lambda: alive() <= before + 1)  # one that waits for the next call


def test_without_a_policy_what_takes_too_long_with_the_app_fails_as_elsewhere(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "POLICY", Policy(timeout=0.05))
    threads = []

    def slow(text: str) -> float:
        threads.append(threading.current_thread())
        time.sleep(0.1)
        return 1.0

    recording = RecordingWriter.begin(store, APP, [Feedback(slow, version="1").on_output()], mode="with_app")
    use(recording, "q")
    assert recording.progress().feedbacks == {"slow": {"failed": 1}}
    assert threads == [threading.current_thread()]
    with pytest.warns(UserWarning, match="took longer than 0.05 s"):
        recording.close()


def test_all_modes_keep_what_each_call_of_a_feedback_said(store: Store) -> None:
    kept = []
    for mode in MODES:
        with RecordingWriter.begin(store, APP, feedbacks(), mode=mode) as recording:
            use(recording, "q")
        recording.close()
        kept.append(recording.evaluate().table("context").drop(["digest"]).to_pylist())
    assert kept == [kept[0]] * len(MODES)
    assert [call["args"] for call in orjson.loads(kept[0][0]["calls"])] == [{"text": "q one"}, {"text": "q and two"}]


class Biased:
    def __init__(self, bias: float) -> None:
        self.bias = bias

    def judge(self, text: str) -> float:
        return self.bias


def biased(bias: float) -> Feedback:
    return Feedback(Biased(bias).judge, name="biased").on_output()


@pytest.mark.parametrize("mode", ["with_app", "with_app_thread"])
def test_what_a_judge_said_before_it_was_another_is_not_taken_for_the_others_word(store: Store, mode: str) -> None:
    feedback = biased(1)
    recording = RecordingWriter.begin(store, APP, [feedback], mode=mode)
    use(recording, "a")
    assert recording.snapshot().evaluation is not None  # by now, the first record is judged
    feedback.implementation.__self__.bias = 7.0
    use(recording, "b")
    with pytest.warns(EvaluandWarning, match="'biased' has changed since the recording was opened"):
        recording.close()
    made, run = recording.evaluation, recording.run
    assert made is not None
    assert run is not None
    assert made.table("biased")["value"].to_pylist() == [1.0, 7.0]
    assert made.manifest["spec"]["scorers"] == recording.manifest["spec"]["feedbacks"]
    assert not made.manifest["pinned"]
    assert made.manifest["provenance"]["unpinned"] == ["biased: it has changed since its recording was opened"]
    for bias in (1.0, 7.0):
        again = Evaluator(store).evaluate(run, {"biased": biased(bias)})
        assert again.table("biased")["value"].to_pylist() == [bias, bias]


def test_a_judge_that_changed_before_it_was_asked_is_what_it_is_when_it_is_asked(store: Store) -> None:
    feedback = biased(1)
    with RecordingWriter.begin(store, APP, [feedback], mode="none") as recording:
        use(recording, "a")
    feedback.implementation.__self__.bias = 7.0
    made = recording.evaluate()
    assert made.manifest["pinned"]
    assert made.table("biased")["value"].to_pylist() == [7.0]


def test_an_error_of_a_users_own_code_is_not_reported_as_damage_of_the_journal(store: Store) -> None:
    class Unsure(Scorer):
        kind = "unsure"
        known = True

        @property
        def arguments(self) -> tuple[str, ...]:
            return ("source",)

        def identify(self) -> Identity:
            if not self.known:
                raise TypeError("what am I?")
            return Identity({"kind": self.kind})

        def score(self, source: Any) -> Score:  # type: ignore[override]
            return Score(1.0)

    scorer = Unsure()
    recording = RecordingWriter.begin(store, APP, {"unsure": scorer}, mode="with_app")
    use(recording, "q")
    scorer.known = False
    with pytest.raises(TypeError, match="what am I"):
        recording.close()
    scorer.known = True
    assert recording.close().evaluate().counts == {"unsure": {"scored": 1}}


def test_a_line_with_a_valid_checksum_that_evaluand_did_not_write_is_an_error(folder: DirectoryStore) -> None:
    recording = RecordingWriter.begin(folder, APP, [Feedback(length).on_output()], mode="with_app")
    use(recording, "q")
    [segment] = [path for path in (folder.root / RECORDINGS / recording.id).rglob("*") if b"scored" in _bytes(path)]
    scope = f"{RECORDINGS}/{recording.id}/{segment.parent.name}"
    segment.write_bytes(add_checksums(b"[0,5]\n", seed_of(scope, segment.name)))
    message = f"the journal of recording {recording.id} has a record that evaluand did not write"
    with pytest.raises(EngineError, match=message):
        recording.close()


def _bytes(path: Path) -> bytes:
    return path.read_bytes() if path.is_file() else b""


def test_a_mode_of_an_enum_is_taken(store: Store) -> None:
    class Mode:
        value = "with_app"

    recording = RecordingWriter.begin(store, APP, mode=Mode())  # type: ignore[arg-type]
    assert recording.close().mode == "with_app"


def test_in_mode_none_nobody_is_asked_until_somebody_asks(store: Store, notes: Path) -> None:
    with RecordingWriter.begin(store, APP, [Feedback(noted).on_output()], mode="none") as recording:
        use(recording, "q")
    assert recording.evaluation is None
    assert noted_lines(notes) == []
    assert recording.evaluate().counts == {"noted": {"scored": 1}}
    assert recording.evaluate().digest == recording.evaluate().digest
    assert [text for _, text in noted_lines(notes)] == ["Q"]


@pytest.mark.parametrize("mode", MODES)
def test_nothing_is_judged_twice(store: Store, notes: Path, mode: str) -> None:
    with RecordingWriter.begin(store, APP, [Feedback(noted).on_output()], mode=mode) as recording:
        for number in range(20):
            use(recording, f"q{number}")
            if number == 10 and mode != "none":
                recording.snapshot()
    recording.close()
    recording.evaluate()
    assert Counter(text for _, text in noted_lines(notes)) == {f"Q{number}": 1 for number in range(20)}


# With the app


def test_with_app_a_record_is_judged_when_its_call_returns(store: Store, notes: Path) -> None:
    with RecordingWriter.begin(store, APP, [Feedback(noted).on_output()], mode="with_app") as recording:
        for number in range(3):
            use(recording, f"q{number}")
            assert [text for _, text in noted_lines(notes)] == [f"Q{n}" for n in range(number + 1)]


@pytest.mark.parametrize("mode", ["with_app", "with_app_thread"])
@pytest.mark.parametrize("error", [ValueError("no"), SystemExit(3), TransientError("later")])
def test_no_error_of_a_feedback_reaches_the_app(store: Store, mode: str, error: BaseException) -> None:
    def fails(text: str) -> float:
        raise error

    policy = Policy(concurrency=1, retries=1, backoff=0.0)
    recording = RecordingWriter.begin(store, APP, [Feedback(fails).on_output()], mode=mode, policy=policy)
    use(recording, "q0")
    use(recording, "q1")
    with pytest.warns(UserWarning, match="failed on"):
        recording.end()
    evaluation = recording.evaluation
    assert evaluation is not None
    assert evaluation.counts == {"fails": {"failed": 2}}
    assert type(error).__name__ in evaluation.table("fails")["reason"].to_pylist()[0]


@pytest.mark.parametrize("mode", ["with_app", "with_app_thread", "deferred"])
def test_what_passes_is_tried_again_as_the_policy_says(store: Store, mode: str) -> None:
    asked = Counter[str]()

    def shy(text: str) -> float:
        asked[text] += 1
        if asked[text] < 3:
            raise TransientError("not now")
        return 1.0

    policy = Policy(concurrency=2, retries=2, backoff=0.0)
    given = Feedback(shy, version="1").on_output()
    if mode == "deferred":
        with pytest.raises(SpecError, match="cannot be deferred"):
            RecordingWriter.begin(store, APP, [given], mode=mode, policy=policy)
        return
    with RecordingWriter.begin(store, APP, [given], mode=mode, policy=policy) as recording:
        for number in range(4):
            use(recording, f"q{number}")
    assert recording.evaluation is not None
    assert recording.evaluation.counts == {"shy": {"scored": 4}}
    assert set(asked.values()) == {3}


@pytest.mark.parametrize("what", ["close", "snapshot"])
@pytest.mark.parametrize("policy", [None, Policy(timeout=PATIENCE)])
def test_what_is_being_judged_in_another_thread_is_waited_for(store: Store, what: str, policy: Policy | None) -> None:
    begun, free = threading.Event(), threading.Event()
    asked: list[str] = []

    def waits(text: str) -> float:
        asked.append(text)
        begun.set()
        free.wait(PATIENCE)
        return 1.0

    given = [Feedback(waits, version="1").on_output()]
    recording = RecordingWriter.begin(store, APP, given, mode="with_app", policy=policy)
    caller = threading.Thread(target=use, args=(recording, "q"))
    caller.start()
    assert begun.wait(PATIENCE)
    closer = threading.Thread(target=getattr(recording, what))
    closer.start()
    closer.join(0.05)
    assert closer.is_alive()
    free.set()
    caller.join(PATIENCE)
    closer.join(PATIENCE)
    assert recording.close().evaluate().counts == {"waits": {"scored": 1}}
    assert asked == ["Q"]


@pytest.mark.slow
def test_what_a_feedback_calls_of_the_app_is_not_recorded(store: Store) -> None:
    inner: list[RecordingWriter] = []

    def asks_the_app(text: str) -> float:
        use(inner[0], f"not {text}")
        return 1.0

    async def asks_it_async(text: str) -> float:
        use(inner[0], f"not {text} either")
        return 1.0

    given = [Feedback(asks_the_app).on_output(), Feedback(asks_it_async).on_output()]
    for mode in ("with_app", "with_app_thread"):
        with RecordingWriter.begin(store, APP, given, mode=mode) as recording:
            inner[:] = [recording]
            use(recording, "q")
        assert recording.run is not None
        assert recording.run.counts == {"completed": 1}


@pytest.mark.parametrize("mode", MODES)
def test_an_async_app_is_recorded_and_judged(store: Store, mode: str) -> None:
    async def main() -> None:
        async def one(number: int) -> None:
            await asyncio.sleep(0)
            use(recording, f"q{number}")

        await asyncio.gather(*(one(number) for number in range(10)))

    with RecordingWriter.begin(store, APP, feedbacks(), mode=mode) as recording:
        asyncio.run(main())
    recording.close()
    assert recording.evaluate().counts["slowly"] == {"scored": 10}


# Beside the app


def test_a_feedback_that_hangs_holds_up_neither_the_app_nor_the_other_feedbacks(store: Store) -> None:
    free = threading.Event()

    def hangs(text: str) -> float:
        if text == "Q0":
            free.wait(PATIENCE)
        return 1.0

    given = [Feedback(hangs).on_output(), Feedback(length).on_output()]
    policy = Policy(concurrency=2, timeout=0.3)
    with RecordingWriter.begin(store, APP, given, policy=policy) as recording:
        for number in range(30):
            use(recording, f"q{number}")
    free.set()
    assert recording.evaluation is not None
    assert recording.evaluation.counts == {"hangs": {"failed": 1, "scored": 29}, "length": {"scored": 30}}
    assert "took longer than 0.3 s" in recording.evaluation.table("hangs")["reason"].to_pylist()[0]


@pytest.mark.slow
def test_more_records_than_the_queue_holds_are_all_judged(store: Store) -> None:
    free = threading.Event()

    def waits(text: str) -> float:
        free.wait(PATIENCE)
        return 1.0

    policy = Policy(concurrency=1)
    with RecordingWriter.begin(store, APP, [Feedback(waits).on_output()], policy=policy) as recording:
        for number in range(QUEUE + 300):
            use(recording, f"q{number}")
        assert recording._background is not None
        assert len(recording._background._queue) <= QUEUE
        free.set()
    assert recording.evaluation is not None
    assert recording.evaluation.counts == {"waits": {"scored": QUEUE + 300}}


# Deferred


def deferred(store: Store, n: int, *given: Feedback, attempts: int = 3) -> RecordingWriter:
    with RecordingWriter.begin(store, APP, given or feedbacks(), mode="deferred", attempts=attempts) as recording:
        for number in range(n):
            use(recording, f"q{number}")
    return recording


def local(text: str) -> float:
    return 1.0


local.__module__ = "__main__"


@pytest.mark.parametrize(
    ("feedback", "reported"),
    [
        (Feedback(lambda text: 1.0, name="short").on_output(), "feedback 'short' cannot be deferred: .*lambda"),
        (Feedback(length).on_output().aggregate(lambda said: 1.0), "aggregate.*lambda"),
        (Feedback(local).on_output(), "is defined in the script that runs"),
    ],
)
def test_what_cannot_be_imported_is_refused_for_deferred_alone(store: Store, feedback: Feedback, reported: str) -> None:
    with pytest.raises(SpecError, match=reported):
        RecordingWriter.begin(store, APP, [feedback], mode="deferred")
    assert store.ids(RECORDINGS) == []
    for mode in MODES[:-1]:
        with RecordingWriter.begin(store, APP, [feedback], mode=mode) as recording:
            use(recording, "q")
        assert recording.evaluate().counts == {feedback.name: {"scored": 1}}


def test_a_deferred_recording_stays_open_until_it_is_judged(folder: DirectoryStore) -> None:
    recording = deferred(folder, 5)
    made = read_progress(folder, recording.id)
    assert (made.records, made.recording, made.waiting, made.working) == (5, False, 20, 0)
    assert not recording.is_sealed
    done = work(folder, recording.id)
    assert done.is_sealed
    assert done.evaluation is not None
    assert done.evaluation.counts["same"] == {"scored": 4, "failed": 1}
    assert work(folder, "rag/2").id == recording.id


def test_the_kind_of_experiment_files_can_be_deferred(folder: DirectoryStore) -> None:
    kind = FeedbackKind(implementation=length, on="output", name="letters", higher_is_better=False)
    recording = RecordingWriter.begin(folder, APP, [kind], mode="deferred")
    with recording:
        use(recording, "q")
    done = work(folder, recording.id)
    assert done.evaluation is not None
    assert done.evaluation.counts == {"letters": {"scored": 1}}
    assert done.manifest["provenance"]["higher_is_better"] == {"letters": False}
    assert leaderboard(folder).rows[0]["direction"] == "lower"


@pytest.mark.slow
def test_a_provider_of_a_module_of_ones_own_judges_in_another_process(
    tmp_path: Path, folder: DirectoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "my_judge.py").write_text(PROVIDER)
    monkeypatch.syspath_prepend(str(tmp_path))
    import my_judge  # type: ignore[import-not-found]

    recording = deferred(folder, 2, Feedback(my_judge.Judge(least=1).long_enough).on_output())
    main_of_it = "from evaluand.cli import main; main()"
    command = [sys.executable, "-c", main_of_it, "feedback", "work", recording.id, "--store", str(folder.root)]
    subprocess.run(command, check=True, cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(tmp_path)})
    assert recording.is_sealed
    assert recording.evaluation is not None
    assert recording.evaluation.counts == {"long_enough": {"scored": 2}}


def test_workers_go_on_while_the_app_records(folder: DirectoryStore) -> None:
    recording = RecordingWriter.begin(folder, APP, feedbacks(), mode="deferred")
    worker = threading.Thread(target=lambda: work(DirectoryStore(folder.root), recording.id, follow=True))
    worker.start()
    for number in range(30):
        use(recording, f"q{number}")
    eventually(lambda: read_progress(folder, recording.id).waiting == 0)
    assert not recording.is_sealed
    for number in range(30, 40):
        use(recording, f"q{number}")
    recording.end()
    worker.join(PATIENCE)
    assert recording.is_sealed
    assert recording.evaluation is not None
    assert recording.evaluation.counts["answer"] == {"scored": 40}


def test_without_follow_a_worker_does_what_there_is_and_leaves_it_open(folder: DirectoryStore) -> None:
    recording = RecordingWriter.begin(folder, APP, feedbacks(), mode="deferred")
    use(recording, "q")
    assert not work(folder, recording.id).is_sealed
    assert read_progress(folder, recording.id).waiting == 0
    recording.close()


@pytest.mark.parametrize("records", [200, pytest.param(1000, marks=pytest.mark.slow)])
@pytest.mark.slow
def test_many_results_by_four_workers_of_which_one_is_killed(
    folder: DirectoryStore, notes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, records: int
) -> None:
    monkeypatch.setenv("GATE", str(tmp_path / "gate"))
    recording = deferred(folder, records, Feedback(noted_and_held).on_output())
    code = (
        f"import sys; sys.path.insert(0, {str(SUPPORT_FOLDER.parent)!r});"
        "from evaluand.apps.recording.workers import work; from evaluand.store.directory import DirectoryStore;"
        f"work(DirectoryStore({str(folder.root)!r}), {recording.id!r})"
    )
    workers = [subprocess.Popen([sys.executable, "-c", code]) for _ in range(4)]
    eventually(lambda: len({pid for pid, _ in noted_lines(notes)}) == 4)
    os.kill(workers[0].pid, signal.SIGKILL)
    (tmp_path / "gate").touch()
    for worker in workers:
        worker.wait(PATIENCE)
    assert [worker.returncode for worker in workers] == [-signal.SIGKILL, 0, 0, 0]
    assert recording.is_sealed
    assert recording.evaluation is not None
    assert recording.evaluation.counts == {"noted_and_held": {"scored": records}}
    asked = Counter(text for _, text in noted_lines(notes))
    twice = [text for text, n in asked.items() if n > 1]
    assert len(asked) == records
    assert len(twice) <= 1
    assert all(asked[text] == 2 for text in twice)


@pytest.mark.slow
def test_a_crew_replaces_a_worker_that_is_killed(folder: DirectoryStore, notes: Path) -> None:
    recording = deferred(folder, 400, Feedback(noted).on_output())

    def kill_one() -> None:
        eventually(lambda: len(noted_lines(notes)) > 20)
        os.kill(noted_lines(notes)[0][0], signal.SIGKILL)

    killer = threading.Thread(target=kill_one)
    killer.start()
    done = work(folder, recording.id, workers=2)
    killer.join()
    assert done.evaluation is not None
    assert done.evaluation.counts == {"noted": {"scored": 400}}
    assert len(noted_lines(notes)) <= 401


def deadly(text: str) -> float:
    noted(text)
    if text == "Q1":
        os.kill(os.getpid(), signal.SIGKILL)
    return 1.0


def test_a_record_that_kills_its_workers_is_given_up(folder: DirectoryStore, notes: Path) -> None:
    recording = deferred(folder, 3, Feedback(deadly).on_output(), attempts=2)
    done = work(folder, recording.id, workers=1)
    assert done.evaluation is not None
    table = done.evaluation.table("deadly")
    assert table["status"].to_pylist() == ["scored", "failed", "scored"]
    assert "died, 2 times" in table["reason"].to_pylist()[1]
    assert Counter(text for _, text in noted_lines(notes)) == {"Q0": 1, "Q1": 2, "Q2": 1}


def stopped(text: str) -> float:
    os._exit(5)


@pytest.mark.slow
def test_workers_that_end_without_having_done_anything_are_not_started_for_ever(folder: DirectoryStore) -> None:
    recording = deferred(folder, 1, Feedback(stopped).on_output(), attempts=6)
    crew = _WorkerPool(folder, recording.id, recording.feedbacks, Policy(concurrency=1), 6, False, 1, Tally())
    crew.patience = 3
    with pytest.raises(EngineError, match=r"again and again.*exit status 5"):
        crew.perform()


def test_code_that_is_not_first_party_is_not_imported_for_a_stranger(folder: DirectoryStore) -> None:
    recording = deferred(folder, 1)
    path = folder.root / RECORDINGS / recording.id / "open.json"
    manifest = orjson.loads(path.read_bytes())
    for named in ("shutil:rmtree", "click:echo", "evaluand.core.files.paths:replaced"):
        manifest["provenance"]["forms"]["answer"]["implementation"] = {"function": named}
        path.write_bytes(orjson.dumps(with_seal(manifest)))
        with pytest.raises(SpecError, match="may not be imported"):
            work(folder, recording.id)


def test_a_feedback_that_has_changed_does_not_work_for_the_one_that_was(folder: DirectoryStore) -> None:
    recording = deferred(folder, 1)
    path = folder.root / RECORDINGS / recording.id / "open.json"
    manifest = orjson.loads(path.read_bytes())
    manifest["provenance"]["forms"]["answer"]["implementation"] = {"function": "support.feedback_functions:noted"}
    path.write_bytes(orjson.dumps(with_seal(manifest)))
    with pytest.raises(SpecError, match="not begun by you in this store"):
        work(folder, recording.id)
    with pytest.raises(SpecError, match="'answer' has changed"):
        work(folder, recording.id, allow=["support.feedback_functions"])
    with pytest.raises(SpecError, match="'answer' has changed"):
        work(folder, recording.id, feedbacks=recording.feedbacks | {"answer": Feedback(noted).on_output()})
    with pytest.raises(SpecError, match="which is missing in feedbacks="):
        work(folder, recording.id, feedbacks={})
    assert work(folder, recording.id, feedbacks=recording.feedbacks).is_sealed


def test_a_deferred_recording_is_closed_without_a_judge_that_has_changed_and_judged_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = tmp_path / "changing.py"
    module.write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    import changing  # type: ignore[import-not-found]

    store = DirectoryStore()
    recording = RecordingWriter.begin(store, APP, [Feedback(changing.length).on_output()], mode="deferred")
    use(recording, "q0")
    work(store, recording.id)
    use(recording, "q1")
    recording.end()
    module.write_text(MODULE.replace("len(text)", "len(text) + 1.0"))
    importlib.reload(changing)
    for command in ("work", "resume"):
        refused = CliRunner().invoke(main, ["feedback", "work", "rag/2"] if command == "work" else ["resume", "rag/2"])
        assert refused.exit_code != 0
        assert "has changed since the recording was opened; `evaluand resume" in refused.stderr
        assert "--give-up` closes it without the missing scores" in refused.stderr
    closing = CliRunner().invoke(main, ["resume", "rag/2", "--give-up"])
    assert closing.exit_code == 0, closing.output
    assert "length: 1 failed, 1 scored" in closing.stdout
    assert recording.evaluation is not None
    assert "has changed since" in recording.evaluation.table("length")["reason"].to_pylist()[1]
    assert recording.run is not None
    anew = Evaluator(store).evaluate(recording.run, {"length": Feedback(changing.length).on_output()})
    assert anew.table("length")["value"].to_pylist() == [3.0, 3.0]


def test_a_feedback_that_is_not_found_from_here_is_reported_as_those_who_ask_can_help_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = DirectoryStore(tmp_path / ".evaluand")
    recording = deferred(folder, 1)
    path = folder.root / RECORDINGS / recording.id / "open.json"
    manifest = orjson.loads(path.read_bytes())
    monkeypatch.chdir(tmp_path)
    for named, reported in (
        ("elsewhere_judges:length", f"no module elsewhere_judges is found from {tmp_path}; start in the folder"),
        ("click:echo", "click:echo may not be imported: it is not first-party code; allow it by name: --allow click"),
    ):
        manifest["provenance"]["forms"]["answer"]["implementation"] = {"function": named}
        path.write_bytes(orjson.dumps(with_seal(with_mac(folder, manifest))))
        refused = CliRunner().invoke(main, ["feedback", "work", "rag/2"])
        assert reported in " ".join(refused.stderr.split())
        assert "modules=" not in refused.stderr


def test_a_recording_is_not_closed_without_a_judge_that_is_only_in_another_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, away = tmp_path / "home", tmp_path / "away"
    home.mkdir()
    away.mkdir()
    (home / "judge_at_home.py").write_text(MODULE)
    store = DirectoryStore(tmp_path / "store")
    with monkeypatch.context() as at_home:
        at_home.syspath_prepend(str(home))
        judge = importlib.import_module("judge_at_home")
        recording = RecordingWriter.begin(store, APP, [Feedback(judge.length).on_output()], mode="with_app")
        use(recording, "q0")
        RecordingWriter._stop(recording)
    monkeypatch.delitem(sys.modules, "judge_at_home")
    monkeypatch.chdir(away)
    command = ["resume", "rag/2", "--store", str(store.root)]
    refused = CliRunner().invoke(main, command)
    assert refused.exit_code != 0
    assert f"no module judge_at_home is found from {away}; start in the folder where it is" in refused.stderr
    assert "evaluand resume rag/2 --give-up" in refused.stderr.replace(recording.id, "rag/2")
    assert not recording.is_sealed
    assert CliRunner().invoke(main, [*command, "--give-up"]).exit_code == 0
    assert recording.is_sealed


def test_a_recording_that_its_app_judges_has_no_workers(folder: DirectoryStore) -> None:
    recording = RecordingWriter.begin(folder, APP, feedbacks(), mode="with_app")
    with pytest.raises(SpecError, match="judged by the app that records it"):
        work(folder, recording.id)
    recording.close()
    store = MemoryStore()
    in_memory = deferred(store, 1)
    with pytest.raises(SpecError, match="in memory"):
        work(store, in_memory.id, workers=1)
    in_memory.close()


PROVIDER = """
from dataclasses import dataclass
from evaluand import Provider

@dataclass(frozen=True)
class Judge(Provider):
    least: int

    def long_enough(self, text):
        return float(len(text) >= self.least)
"""


# The command line


MODULE = """
def length(text):
    return len(text)
"""


def test_the_commands_work_and_tell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "own_judges.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    import own_judges  # type: ignore[import-not-found]

    store = DirectoryStore()
    recording = RecordingWriter.begin(store, APP, [Feedback(own_judges.length).on_output()], mode="deferred")
    for number in range(7):
        use(recording, f"q{number}")

    def called(*arguments: str) -> str:
        result = CliRunner().invoke(main, arguments, catch_exceptions=False)
        assert result.exit_code == 0, result.output
        return str(result.stdout)

    reported = called("feedback", "status", "rag/2")
    assert "7 records, its app still records" in reported
    assert "length: 7 waiting" in reported
    assert orjson.loads(called("feedback", "status", "rag/2", "--json"))["feedbacks"] == {"length": {"waiting": 7}}
    assert "length: 7 scored" in called("feedback", "work", "rag/2")
    assert "recordings" in called("list")
    shown = called("show", recording.id[:12])
    assert "7 of 7 judged by length" in shown
    recording.end()
    assert "to close it: evaluand feedback work" in called("feedback", "status", "rag/2")
    reported = called("feedback", "work", recording.id[:8], "--workers", "2")
    assert "7 records, closed" in reported
    assert recording.is_sealed
    assert find_recording_id(store, "rag/2") == recording.id
    assert "7 scored" in called("show", recording.id[:12])
    assert "0 with faults" in called("verify")
    assert "7 completed" in called("list", "recordings")
    assert orjson.loads(called("show", recording.id[:12], "--json"))["kind"] == RECORDINGS
    assert recording.id not in called("gc", "--dry-run", "--unreferenced")
