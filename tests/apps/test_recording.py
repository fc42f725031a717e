"""What an app did is kept as it happens: by threads, forks and processes, whatever becomes of them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner
from support.feedback_functions import feedbacks, length, use
from support.forks import end_fork, start_fork
from support.patience import PATIENCE
from support.places import SUPPORT_FOLDER

from evaluand import Aggregator, DirectoryStore, Evaluator, Measure, MemoryStore, compare
from evaluand.apps.app import App
from evaluand.apps.instrumentation.marking import instrument
from evaluand.apps.recording.kind import RECORDINGS
from evaluand.apps.recording.stored import Lanes, Recording, read_progress
from evaluand.apps.recording.workers import close_recording
from evaluand.apps.recording.writer import NotRecorded, RecordingWriter, annotate
from evaluand.cli import main
from evaluand.core.errors import EvaluandWarning, SpecError
from evaluand.evaluation.feedback import Feedback
from evaluand.metrics.column_statistics import Mean
from evaluand.report.verification import verify
from evaluand.store.garbage import leftovers
from evaluand.store.shards import SHARD_SLOTS
from evaluand.store.store import Store
from evaluand.trace import Trace

APP = {"name": "rag", "version": "2", "app_id": "rag:2"}


@pytest.fixture(params=["memory", "directory"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    return MemoryStore() if request.param == "memory" else DirectoryStore(tmp_path / "store")


@pytest.fixture
def folder(tmp_path: Path) -> DirectoryStore:
    return DirectoryStore(tmp_path / "store")


def inputs(recording: RecordingWriter) -> list[object]:
    assert recording.run is not None
    return [example.input for example in recording.run.dataset]


def n_written(store: Store, id: str) -> int:
    return read_progress(store, id).records


# What is kept


def test_a_recording_becomes_a_dataset_a_run_and_an_evaluation(store: Store) -> None:
    with RecordingWriter.begin(store, APP, feedbacks()) as recording:
        for number in range(5):
            use(recording, f"q{number}")
    run, evaluation = recording.run, recording.evaluation
    assert run is not None
    assert evaluation is not None
    assert inputs(recording) == [f"q{number}" for number in range(5)]
    assert [response.responses for response in run] == [[f"Q{number}"] for number in range(5)]
    assert sum(batch.num_rows for batch in run.spans()) == 5
    assert evaluation.counts["same"] == {"scored": 4, "failed": 1}
    assert evaluation.table("context")["value"].to_pylist() == pytest.approx([(0.06 + 0.1) / 2 + 0.1] * 5)
    assert (run.name, evaluation.name, recording.name) == ("rag/2",) * 3
    assert recording.manifest["provenance"].keys() >= {"git", "forms"}


def test_a_sealed_recording_is_whole_for_who_looks_closely(store: Store) -> None:
    with RecordingWriter.begin(store, APP, feedbacks()) as recording:
        use(recording, "q")
    for kind in ("datasets", "runs", "evaluations", RECORDINGS):
        [id] = store.ids(kind)
        assert verify(store, kind, id) == []


def test_what_a_recording_was_made_into_is_missed_when_it_is_gone(folder: DirectoryStore) -> None:
    with RecordingWriter.begin(folder, APP, feedbacks()) as recording:
        use(recording, "q")
    [evaluation] = folder.ids("evaluations")
    (folder.root / "evaluations" / evaluation).rename(folder.root / "elsewhere")
    assert f"no evaluations {evaluation}" in " ".join(
        fault.message for fault in verify(folder, RECORDINGS, recording.id)
    )


def test_a_call_that_raises_is_a_record_that_failed(store: Store) -> None:
    with RecordingWriter.begin(store, APP, feedbacks(), mode="with_app") as recording:
        use(recording, "q0")
        with pytest.raises(OSError, match="no index"):
            use(recording, "q1", OSError("no index"))
    assert recording.run is not None
    assert recording.evaluation is not None
    assert recording.run.counts == {"completed": 1, "failed": 1}
    assert recording.evaluation.counts["answer"] == {"scored": 1, "failed": 1}
    assert recording.evaluation.table("answer")["reason"].to_pylist() == [None, "task: OSError: no index"]


def test_nothing_recorded_leaves_nothing(store: Store) -> None:
    with (
        RecordingWriter.begin(store, APP, feedbacks()) as recording,
        pytest.raises(SpecError, match="nothing was recorded yet"),
    ):
        recording.snapshot()
    assert (recording.run, recording.evaluation) == (None, None)
    assert verify(store, RECORDINGS, recording.id) == []
    assert store.ids("runs") == []


def test_what_cannot_be_stored_is_reported_and_does_not_fail_the_record(store: Store) -> None:
    with RecordingWriter.begin(store, APP) as recording:
        trace = Trace.start("query", threading.Lock())
        with trace.root as root:
            root.output = object()
        recording.keep(trace)
    assert recording.run is not None
    [response] = recording.run
    assert response.responses == [{"$unstorable": "object"}]
    assert inputs(recording) == [{"$unstorable": "lock"}]


def test_names_tags_and_metadata_belong_to_the_calls_that_end_meanwhile(store: Store) -> None:
    with RecordingWriter.begin(store, APP, feedbacks()) as recording:
        use(recording, "q0")
        with annotate(metadata={"topic": "novels"}, tags="first"):
            with annotate(name="emma", metadata={"level": 2}):
                use(recording, "q1")
                use(recording, "q2")
            use(recording, "q4")
    assert recording.run is not None
    examples = list(recording.run.dataset)
    assert [example.id for example in examples] == ["0", "emma", "emma (2)", "3"]
    assert [example.attributes for example in examples] == [
        {"level": None, "topic": None},
        {"level": 2, "topic": "novels"},
        {"level": 2, "topic": "novels"},
        {"level": None, "topic": "novels"},
    ]
    assert [example.metadata["tags"] for example in examples] == [None, "first", "first", "first"]
    assert all(example.expected is None for example in examples)


@pytest.mark.parametrize("key", ["input", "id", "tags", "_index_", "", 3])
def test_metadata_that_cannot_be_a_column_is_refused(key: object) -> None:
    with pytest.raises(SpecError, match="cannot be a key of metadata"), annotate(metadata={key: 1}):  # type: ignore[dict-item]
        pass


def test_metadata_that_is_no_data_is_refused() -> None:
    with pytest.raises(SpecError, match="metadata"), annotate(metadata={"lock": threading.Lock()}):
        pass


def test_values_by_groups_comparison_and_export_take_a_recording_as_any_run(store: Store) -> None:
    evaluations = []
    for version in ("1", "2"):
        with RecordingWriter.begin(store, {"name": "rag", "version": version}, feedbacks()) as recording:
            for number in range(6):
                with annotate(metadata={"parity": "odd" if number % 2 else "even"}):
                    use(recording, f"q{number}")
        assert recording.evaluation is not None
        evaluations.append(recording.evaluation)
    table = Aggregator(store).aggregate(evaluations, [Measure("same", Mean(), (("parity",),))]).table()
    assert {(*by, n) for by, n in zip(table["by"].to_pylist(), table["n"].to_pylist(), strict=True)} >= {
        (("parity", "odd"), 3),
        (("parity", "even"), 3),
    }
    pairs = compare(*evaluations).to_dict()["pairs"]
    assert {pair["scorer"]: pair["n_used"] for pair in pairs} == {"answer": 6, "context": 6, "same": 5, "slowly": 6}
    assert list(evaluations[0].columns("same"))[-1] == "calls"


def test_a_snapshot_tells_of_what_there_is_and_the_recording_goes_on(store: Store) -> None:
    with RecordingWriter.begin(store, APP, feedbacks()) as recording:
        for number in range(3):
            use(recording, f"q{number}")
        first = recording.snapshot()
        use(recording, "q3")
        second = recording.snapshot()
    assert first.evaluation is not None
    assert second.evaluation is not None
    assert (first.run.counts, second.run.counts) == ({"completed": 3}, {"completed": 4})
    assert first.evaluation.counts["answer"] == {"scored": 3}
    assert second.run.id == getattr(recording.run, "id", None)
    assert second.evaluation.id == getattr(recording.evaluation, "id", None)


def test_a_snapshot_without_feedbacks_is_a_run(store: Store) -> None:
    with RecordingWriter.begin(store, APP) as recording:
        use(recording, "q")
        assert recording.snapshot().evaluation is None
    with pytest.raises(SpecError, match="has no feedbacks"):
        recording.evaluate()


def test_a_call_that_ends_after_the_recording_is_reported(store: Store) -> None:
    with RecordingWriter.begin(store, APP) as recording:
        use(recording, "q0")
    with pytest.warns(NotRecorded, match="after the recording had"):
        use(recording, "q1")
    assert inputs(recording) == ["q0"]


def test_feedbacks_of_one_name_are_reported_apart(store: Store) -> None:
    twice = [Feedback(length).on_input(), Feedback(length).on_output()]
    recording = RecordingWriter.begin(store, APP, twice)
    assert list(recording.feedbacks) == ["length", "length 2"]
    recording.close()


@pytest.mark.parametrize(
    ("given", "reported"),
    [
        ({"mode": "sometimes"}, "mode is the text 'sometimes'"),
        ({"feedbacks": [len]}, r"give Feedback\(function\)"),
        ({"feedbacks": [Feedback(length)]}, "length needs text"),
        ({"attempts": 0}, "attempts is 0"),
        ({"store": "folder"}, "is not a store"),
    ],
)
def test_what_cannot_be_recorded_so_is_refused_at_once(given: dict[str, object], reported: str) -> None:
    with pytest.raises(SpecError, match=reported):
        RecordingWriter.begin(**({"store": MemoryStore(), "app": APP} | given))  # type: ignore[arg-type]


# Who records


def test_several_threads_record_at_once(store: Store) -> None:
    with RecordingWriter.begin(store, APP, feedbacks()) as recording:
        threads = [
            threading.Thread(target=lambda t=t: [use(recording, f"{t}-{n}") for n in range(50)]) for t in range(8)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert sorted(map(str, inputs(recording))) == sorted(f"{t}-{n}" for t in range(8) for n in range(50))
    assert recording.evaluation is not None
    assert recording.evaluation.counts["answer"] == {"scored": 400}


def test_more_records_than_a_block_holds(folder: DirectoryStore) -> None:
    with RecordingWriter.begin(folder, APP) as recording:
        for number in range(SHARD_SLOTS + 5):
            use(recording, str(number))
    assert inputs(recording) == [str(number) for number in range(SHARD_SLOTS + 5)]


def test_two_recordings_take_the_calls_of_one_app(store: Store) -> None:
    with RecordingWriter.begin(store, APP, name="a") as one, RecordingWriter.begin(store, APP, name="b") as other:
        use(one, "q0")
        use(other, "q1")
        use(one, "q2")
    assert (inputs(one), inputs(other)) == (["q0", "q2"], ["q1"])
    assert one.id != other.id


@pytest.mark.parametrize("mode", ["none", "with_app", "with_app_thread", "deferred"])
def test_a_fork_records_beside_its_parent(folder: DirectoryStore, mode: str) -> None:
    recording = RecordingWriter.begin(folder, APP, feedbacks(), mode=mode)
    use(recording, "parent 1")

    def record() -> None:
        with recording:  # ends its own part alone
            use(recording, "child 1")
            use(recording, "child 2")

    child = start_fork(record)
    use(recording, "parent 2")
    assert end_fork(child) == 0
    recording.close()
    assert inputs(recording) == ["parent 1", "parent 2", "child 1", "child 2"]
    assert recording.run is not None
    assert [example.index for example in recording.run.dataset] == [0, 1, SHARD_SLOTS, SHARD_SLOTS + 1]
    evaluation = recording.evaluation or recording.evaluate()
    assert evaluation.counts["answer"] == {"scored": 4}
    anew = Evaluator(MemoryStore()).evaluate(recording.run, recording.feedbacks)
    assert anew.digest == evaluation.digest


MANY_FORKS = """
import os, resource, sys, warnings
sys.path.insert(0, sys.argv[4])
from support.feedback_functions import use
from evaluand import DirectoryStore
from evaluand.apps.recording.writer import RecordingWriter

folder, forks, limit = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
resource.setrlimit(resource.RLIMIT_NOFILE, (limit, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
warnings.simplefilter("ignore", DeprecationWarning)
recording = RecordingWriter.begin(DirectoryStore(folder), {"name": "rag", "version": "2"})
for n in range(forks):
    if not (child := os.fork()):
        try:
            with recording:
                use(recording, f"child {n}")
        finally:
            os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
segments = list(recording.store.root.glob("recordings/*/journal/records/*.lines"))
assert len(segments) == forks + 1  # that of the parent, too
print(recording.close().run.counts)
"""


@pytest.mark.slow
def test_a_recording_by_more_forks_than_files_may_be_open_is_closed(tmp_path: Path) -> None:
    forks, limit = 1200, 1024
    command = [sys.executable, "-c", MANY_FORKS, str(tmp_path), str(forks), str(limit), str(SUPPORT_FOLDER.parent)]
    result = subprocess.run(command, capture_output=True, text=True, timeout=10 * PATIENCE)
    assert result.stdout == f"{{'completed': {forks}}}\n", result.stderr


def test_a_recording_is_not_closed_while_another_process_records(folder: DirectoryStore) -> None:
    recording = RecordingWriter.begin(folder, APP)
    use(recording, "q")
    with pytest.raises(SpecError, match="still being recorded"):
        close_recording(DirectoryStore(folder.root), recording.id)
    recording.close()
    assert close_recording(folder, recording.id).run is not None


# What is damaged


def test_a_damaged_record_is_reported_counted_and_set_aside_when_the_recording_is_closed(
    folder: DirectoryStore,
) -> None:
    recording = RecordingWriter.begin(folder, APP, feedbacks(), mode="with_app")
    for number in range(5):
        use(recording, f"q{number}")
    [segment] = (folder.root / RECORDINGS / recording.id).glob("journal/records/*.lines")
    lines = segment.read_bytes().splitlines(keepends=True)
    damaged = lines[2].replace(b"q2", b"q7")
    segment.write_bytes(b"".join([*lines[:2], damaged, *lines[3:4], lines[4][:-20]]))
    assert [fault.where for fault in verify(folder, RECORDINGS, recording.id)] == [f"{segment}:3", f"{segment}:5"]
    places = f"{segment.name}:3, {segment.name}:5"
    lost = "2 damaged lines .* so records are lost; the table damaged_lines .*" + places
    with pytest.warns(EvaluandWarning, match=lost), pytest.warns(EvaluandWarning, match="at least 1 record .* 1 at an"):
        recording.close()
    assert inputs(recording) == ["q0", "q1", "q3"]
    assert recording.evaluation is not None
    assert recording.evaluation.counts["answer"] == {"scored": 3}
    assert folder.manifest(RECORDINGS, recording.id)["provenance"]["damaged_lines"] == 2
    rows = [row for batch in folder.read(RECORDINGS, recording.id, "damaged_lines") for row in batch.to_pylist()]
    assert [(row["line"], row["content"]) for row in rows] == [(3, damaged), (5, lines[4][:-20])]
    assert verify(folder, RECORDINGS, recording.id) == []
    for name in ("rag/2", recording.id):
        out = CliRunner().invoke(main, ["export", name, "--table", "damaged_lines", "--store", str(folder.root)])
        assert out.exit_code == 0, out.output
        assert [row.split(",")[1] for row in out.stdout.splitlines()] == ['"line"', "3", "5"]
    shown = CliRunner().invoke(main, ["show", recording.run.id, "--store", str(folder.root)])
    assert "2 damaged lines of its journal could not be read, so records are lost" in " ".join(shown.stdout.split())


def test_only_a_recording_with_damaged_lines_has_a_table_of_them(folder: DirectoryStore) -> None:
    with RecordingWriter.begin(folder, APP) as recording:
        use(recording, "q")
    without = CliRunner().invoke(main, ["export", recording.id, "--store", str(folder.root)])
    assert f"recording {recording.id} has no damaged lines" in without.stderr
    asked = ["export", recording.id, "--table", "damaged_lines", "--store", str(folder.root)]
    assert f"recording {recording.id} has no damaged lines" in CliRunner().invoke(main, asked).stderr


def test_a_damaged_score_is_judged_again_when_the_recording_is_closed(folder: DirectoryStore) -> None:
    recording = RecordingWriter.begin(folder, APP, feedbacks(), mode="with_app")
    for number in range(5):
        use(recording, f"q{number}")
    for segment in (folder.root / RECORDINGS / recording.id).glob("journal/feedback*/*.lines"):
        segment.write_bytes(segment.read_bytes().replace(b"scored", b"scorex", 1))
    with pytest.warns(EvaluandWarning, match="1 damaged line of the journal counts as not done.* judged again"):
        recording.close()
    assert recording.run is not None
    assert recording.evaluation is not None
    assert Evaluator(MemoryStore()).evaluate(recording.run, recording.feedbacks).digest == recording.evaluation.digest


# What survives


APP_THAT_DIES = """
import sys
sys.path.insert(0, sys.argv[2])
from support.feedback_functions import feedbacks, use
from evaluand.apps.recording.writer import RecordingWriter
from evaluand.store.directory import DirectoryStore

app = {"name": "rag", "version": "2"}
recording = RecordingWriter.begin(DirectoryStore(sys.argv[1]), app, feedbacks(), mode=sys.argv[3])
number = 0
while True:
    use(recording, f"q{number}")
    number += 1
    print(number, flush=True)
    if len(sys.argv) > 4 and number == int(sys.argv[4]):
        break
"""


def started(store: DirectoryStore, mode: str, *more: str) -> subprocess.Popen[str]:
    code = [sys.executable, "-c", APP_THAT_DIES, str(store.root), str(SUPPORT_FOLDER.parent), mode, *more]
    return subprocess.Popen(code, stdout=subprocess.PIPE, text=True)


@pytest.mark.parametrize("mode", ["with_app", "with_app_thread", "none", "deferred"])
@pytest.mark.slow
def test_every_record_that_ended_survives_a_kill(
    folder: DirectoryStore, mode: str, capsys: pytest.CaptureFixture[str]
) -> None:
    app = started(folder, mode)
    assert app.stdout is not None
    lines: Iterator[str] = iter(app.stdout)
    for _ in range(100):
        last = int(next(lines))
    os.kill(app.pid, signal.SIGKILL)
    reported = max([last, *map(int, lines)])
    app.communicate()
    [id] = folder.ids(RECORDINGS)
    n = n_written(folder, id)
    assert reported <= n <= reported + 1

    assert main(["resume", "rag/2", "--store", str(folder.root)], standalone_mode=False) is None
    recording = close_recording(folder, id)
    assert recording.run is not None
    assert [example.input for example in recording.run.dataset] == [f"q{number}" for number in range(n)]
    assert verify(folder, RECORDINGS, id) == []
    if mode == "none":
        assert recording.evaluation is None
    else:
        assert recording.evaluation is not None
        assert recording.evaluation.counts["answer"] == {"scored": n}
        named = {each.name: each for each in feedbacks()}
        assert Evaluator(MemoryStore()).evaluate(recording.run, named).digest == recording.evaluation.digest
    assert f"{n:,} records, closed" in capsys.readouterr().out


@pytest.mark.parametrize("mode", ["none", "with_app", "with_app_thread", "deferred"])
@pytest.mark.slow
def test_what_is_complete_at_the_end_of_the_interpreter_is_closed(folder: DirectoryStore, mode: str) -> None:
    app = started(folder, mode, "200")
    app.communicate(timeout=PATIENCE)
    assert app.returncode == 0
    [id] = folder.ids(RECORDINGS)
    if mode == "deferred":
        made = read_progress(folder, id)
        assert (made.records, made.recording, made.waiting) == (200, False, 800)
        return
    recording = Recording(folder, id)
    assert recording.run is not None
    assert recording.run.counts == {"completed": 200}
    if mode == "none":
        assert recording.evaluation is None
    else:
        assert recording.evaluation is not None  # also what was asynchronous and still waited
        assert recording.evaluation.counts["slowly"] == {"scored": 200}


def test_results_of_a_feedback_that_cannot_be_imported_are_kept(folder: DirectoryStore) -> None:
    said = {"n": 0}

    def once(text: str) -> float:
        said["n"] += 1
        return float(said["n"])

    recording = RecordingWriter.begin(folder, APP, [Feedback(once).on_output()], mode="with_app")
    for number in range(3):
        use(recording, f"q{number}")
    RecordingWriter._stop(recording)
    with_more = Lanes.of(folder, recording.manifest)  # a record that nobody has judged
    with_more.refresh()
    with_more.records.append(with_more.records.line(2).replace(b"[2,", b"[3,", 1))
    with_more.close()

    made = close_recording(folder, recording.id).evaluation
    assert made is not None
    table = made.table("once")
    assert table["value"].to_pylist() == [1.0, 2.0, 3.0, None]
    assert "cannot be imported" in table["reason"].to_pylist()[3]


def test_an_open_recording_is_abandoned_only_when_nobody_records(folder: DirectoryStore) -> None:
    recording = RecordingWriter.begin(folder, APP)
    use(recording, "q")
    assert leftovers(folder, open_older_than=0.0) == []
    recording._stop()
    time.sleep(0.01)
    assert [item.artifact for item in leftovers(folder, open_older_than=0.0)] == [(RECORDINGS, recording.id)]


def test_a_disk_that_is_full_is_no_business_of_the_app(folder: DirectoryStore, monkeypatch: pytest.MonkeyPatch) -> None:
    recording = RecordingWriter.begin(folder, APP, feedbacks(), mode="with_app")

    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "write", full)
        with pytest.warns(NotRecorded, match="No space left"):
            use(recording, "q0")
    use(recording, "q1")
    recording.close()
    assert inputs(recording) == ["q1"]


# Apps


class Rag:
    @instrument
    def search(self, question: str) -> list[str]:
        return [f"{question} one", f"{question} and two"]

    @instrument
    def query(self, question: str) -> str:
        if question == "q9":
            raise KeyError("nine")
        return self.search(question)[0].upper()


OF_APP = [Feedback(length, name="context").on("__record__.app.search[:].rets[:]"), Feedback(length).on_output()]


def test_blocks_of_an_app_go_on_with_one_recording(store: Store) -> None:
    rag = Rag()
    app = App(rag, name="rag", version="2", feedbacks=OF_APP, mode="with_app", store=store)
    blocks = []
    for number in range(4):
        with app as recording:
            rag.query(f"q{number}")
        blocks.append(recording)
    assert [block.get()["main_input"] for block in blocks] == ["q0", "q1", "q2", "q3"]
    assert len({block.id for block in blocks}) == 1
    assert blocks[0].run is not None
    assert blocks[0].run.counts == {"completed": 4}
    assert [block.get()["main_input"] for block in blocks] == ["q0", "q1", "q2", "q3"]
    with app as recording:
        rag.query("q4")
    assert recording.id != blocks[0].id
    app.close()
    assert recording.evaluation is not None
    assert recording.evaluation.counts == {"context": {"scored": 1}, "length": {"scored": 1}}


def test_a_block_within_another_has_a_recording_of_its_own(store: Store) -> None:
    rag = Rag()
    app = App(rag, store=store)
    with app as outer:
        with app.record(tags="inner", meta={"user": 3}) as inner:
            rag.query("q0")
        rag.query("q1")
    assert outer.id != inner.id
    assert [record["main_input"] for record in outer.records] == ["q0", "q1"]
    assert inner.get()["tags"] == "inner"
    assert inner.get()["meta"] == {"user": 3}
    assert inner.run is not None
    [example] = inner.run.dataset
    assert (example.attributes, example.metadata) == ({"user": 3}, {"tags": "inner"})


def test_records_of_an_app_are_the_same_open_and_sealed(store: Store) -> None:
    rag = Rag()
    app = App(rag, feedbacks=OF_APP, mode="with_app", store=store)
    with app as recording, annotate(name="mine", metadata={"topic": "a"}):
        rag.query("q0")
        with pytest.raises(KeyError):
            rag.query("q9")
    open_ = [record.to_json() for record in recording.records]
    recording.close()
    assert [record.to_json() for record in recording.records] == open_
    assert [record["record_id"] for record in recording.records] == ["mine", "mine (2)"]


def test_what_is_being_recorded_is_not_closed_by_looking(store: Store) -> None:
    rag = Rag()
    with App(rag, feedbacks=OF_APP, store=store) as recording:
        rag.query("q0")
        with pytest.raises(SpecError, match=r"take a snapshot\(\)"):
            _ = recording.run
        snapshot = recording.snapshot()
        rag.query("q1")
    assert snapshot.evaluation is not None
    assert snapshot.evaluation.counts["length"] == {"scored": 1}
    assert recording.run is not None
    assert recording.run.counts == {"completed": 2}


def test_an_app_refuses_what_cannot_be_deferred_when_it_is_made(store: Store) -> None:
    with pytest.raises(SpecError, match=r"cannot be deferred.*lambda"):
        App(Rag(), feedbacks=[Feedback(lambda text: 1.0, name="x").on_output()], mode="deferred", store=store)


@pytest.mark.slow
def test_a_store_that_was_removed_holds_up_no_interpreter() -> None:
    code = (
        "import shutil, tempfile\n"
        "from evaluand import App, DirectoryStore\n"
        "folder = tempfile.mkdtemp()\n"
        "app = App(lambda text: text, name='app', mode='none', store=DirectoryStore(folder))\n"
        "with app:\n"
        "    app.app('a')\n"
        "shutil.rmtree(folder)\n"
    )
    assert subprocess.run([sys.executable, "-c", code], timeout=PATIENCE, check=False).returncode == 0
