"""Apps: functions and objects of the user whose calls are recorded and judged."""

from typing import TYPE_CHECKING

from evaluand.core.lazy import lazy_names

if TYPE_CHECKING:
    from evaluand.apps.app import App as App, LoggedApp as LoggedApp
    from evaluand.apps.components import Component as Component
    from evaluand.apps.guardrails import (
        block_input as block_input,
        block_output as block_output,
        filter_contexts as filter_contexts,
    )
    from evaluand.apps.instrumentation.marking import carry_context as carry_context, instrument as instrument
    from evaluand.apps.leaderboards.board import (
        LEADERBOARD as LEADERBOARD,
        Leaderboard as Leaderboard,
        leaderboard as leaderboard,
    )
    from evaluand.apps.logs import record_logs as record_logs
    from evaluand.apps.recording.stored import Recording as Recording
    from evaluand.apps.recording.workers import close_recording as close_recording, work as work
    from evaluand.apps.recording.writer import (
        NotRecorded as NotRecorded,
        RecordingWriter as RecordingWriter,
        Snapshot as Snapshot,
        annotate as annotate,
    )
    from evaluand.apps.session import RecordingSession as RecordingSession

__getattr__, __dir__ = lazy_names(__name__)
