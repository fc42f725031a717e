"""Recordings: what an app did while it was used, kept as it happens, and judged then, afterwards or by others.

    App ── each call that has ended ──▶ Recording ── close ──▶ Dataset of inputs, Run of calls, Evaluation

A recording is an open artifact of a store. Each record is one line of its journal, written the moment the call has
ended, so a process that is killed loses none; each feedback has a lane of its own, with the lines of an evaluation.
The mode says who judges, and when:

    none             nobody, until `evaluate` is called
    with_app         the app's own thread, before the call returns; beside it where a policy has a timeout
    with_app_thread  threads beside the app
    deferred         other processes (`work`, `evaluand feedback work`), while the app records or afterwards

Why it is so:

- A record is judged as it is read back from its line, whoever does it. So all modes see the same, and so does an
  evaluation of the sealed run: there is one digest.
- Sealing is that of every run and evaluation. The evaluation takes over what the lanes hold and does what is missing,
  so it does not matter how far the judging has come.
- What is judged must not harm what is used: an error of a feedback is a row, one that hangs holds up no call, and what
  is given to a full queue is left in the journal.
- A slot belongs to one writer, who has claimed its block: threads, forks and other processes record at once, and the
  blocks that they do not use up leave gaps.
"""

from evaluand.apps.recording.feedback_import import loaded
from evaluand.apps.recording.judge import ATTEMPTS
from evaluand.apps.recording.stored import KIND, MODES, Recording, Standing, found, sealed, standing
from evaluand.apps.recording.workers import closed, work
from evaluand.apps.recording.writer import (
    About,
    NotRecorded,
    RecordingWriter,
    Snapshot,
    about,
    check_metadata,
    check_policy,
    definitions,
)

__all__ = [
    "ATTEMPTS",
    "KIND",
    "MODES",
    "About",
    "NotRecorded",
    "Recording",
    "RecordingWriter",
    "Snapshot",
    "Standing",
    "about",
    "check_metadata",
    "check_policy",
    "closed",
    "definitions",
    "found",
    "loaded",
    "sealed",
    "standing",
    "work",
]
