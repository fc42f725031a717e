"""Apps: functions and objects of the user whose calls are recorded and judged."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evaluand.core.lazy import lazy_names

if TYPE_CHECKING:
    from evaluand.apps.app import App as App
    from evaluand.apps.app import LoggedApp as LoggedApp
    from evaluand.apps.components import Component as Component
    from evaluand.apps.instrumentation.marking import carry_context as carry_context
    from evaluand.apps.instrumentation.marking import instrument as instrument
    from evaluand.apps.leaderboards.board import LEADERBOARD as LEADERBOARD
    from evaluand.apps.leaderboards.board import Leaderboard as Leaderboard
    from evaluand.apps.leaderboards.board import leaderboard as leaderboard
    from evaluand.apps.logs import record_logs as record_logs
    from evaluand.apps.recording.stored import Recording as Recording
    from evaluand.apps.recording.workers import close_recording as close_recording
    from evaluand.apps.recording.workers import work as work
    from evaluand.apps.recording.writer import NotRecorded as NotRecorded
    from evaluand.apps.recording.writer import RecordingWriter as RecordingWriter
    from evaluand.apps.recording.writer import Snapshot as Snapshot
    from evaluand.apps.recording.writer import annotate as annotate
    from evaluand.apps.session import RecordingSession as RecordingSession

__getattr__, __dir__, __all__ = lazy_names(
    __name__,
    {
        "app": ("App", "LoggedApp"),
        "components": ("Component",),
        "instrumentation.marking": ("carry_context", "instrument"),
        "leaderboards.board": ("LEADERBOARD", "Leaderboard", "leaderboard"),
        "logs": ("record_logs",),
        "recording.stored": ("Recording",),
        "recording.workers": ("close_recording", "work"),
        "recording.writer": ("NotRecorded", "RecordingWriter", "Snapshot", "annotate"),
        "session": ("RecordingSession",),
    },
)
