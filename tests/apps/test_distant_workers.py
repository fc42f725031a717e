"""Recordings with workers of which only time shows whether they live: of other machines, or from before a restart."""

from __future__ import annotations

import importlib
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner
from support.feedback_functions import use

from evaluand import DirectoryStore, Feedback
from evaluand.apps.recording.writer import RecordingWriter
from evaluand.cli import main
from evaluand.core.system import this_process
from evaluand.store import leases
from evaluand.store.lease_state import State, Worker, pack_state

MODULE = "def length(text):\n    return len(text)\n"


@pytest.mark.parametrize("mode", ["with_app", "deferred"])
def test_resume_closes_what_an_app_recorded_before_a_restart_and_reports_once_for_whom_it_waits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    id = record_before_restart(tmp_path, monkeypatch, mode)
    monkeypatch.setattr(leases, "LEASE_SECONDS", 0.3)
    result = CliRunner().invoke(main, ["resume", id])
    assert result.exit_code == 0, result.output
    assert result.stderr.count("note: waiting up to 0.3 s for a worker of far that may still be alive\n") == 1
    assert DirectoryStore().is_sealed("recordings", id)


def record_before_restart(folder: Path, monkeypatch: pytest.MonkeyPatch, mode: str) -> str:
    """The id of an open recording whose app has leases of another boot of the machine."""
    (folder / "judging_length.py").write_text(MODULE)
    monkeypatch.chdir(folder)
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.delitem(sys.modules, "judging_length", raising=False)
    judge = importlib.import_module("judging_length")
    app = {"name": "rag", "version": "2", "app_id": "rag:2"}
    recording = RecordingWriter.begin(DirectoryStore(), app, [Feedback(judge.length).on_output()], mode=mode)
    use(recording, "q")
    RecordingWriter._stop(recording)
    [log] = folder.glob(f".evaluand/recordings/{recording.id}/journal/records")
    dead = Worker(replace(this_process(), boot="before", host="far"), 5.0, 1, (1,), True)
    (log / "leases").mkdir(exist_ok=True)
    (log / "leases" / f"{900:012d}.json").write_bytes(pack_state(900, State({"a.lines": dead})))
    return recording.id
