"""Recordings of apps, as they are shown and written."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from evaluand.apps.recording.kind import RECORDINGS
from evaluand.apps.recording.stored import (
    Recording,
    count_records,
    find_faults,
    read_progress,
    recording_digest,
)
from evaluand.core.errors import Fault
from evaluand.report.facts.base import Facts
from evaluand.report.kinds.base import Choice, KindView
from evaluand.report.kinds.runs import count_losses
from evaluand.report.terminal.artifact import recording_body, spec_text
from evaluand.report.terminal.cells import CELL
from evaluand.report.text import safe
from evaluand.store.store import Manifest, Store

if TYPE_CHECKING:
    from rich.console import RenderableType

DAMAGED_LINES = "damaged_lines"


class RecordingView(KindView):
    """A recording: what an app did, made into a run and an evaluation."""

    name = RECORDINGS
    made = "made into"
    lacks = "damaged lines; its calls are in its run, so export that"

    def open(self, store: Store, id: str) -> Recording:
        return Recording(store, id)

    def recount(self, store: Store, id: str) -> tuple[str, object]:
        recording = Recording(store, id)
        run, evaluation = recording.run, recording.evaluation
        return recording_digest(run, evaluation), count_records(run)

    def find_open_faults(self, store: Store, id: str) -> Iterable[Fault]:
        return find_faults(store, id)

    def facts(self, store: Store, id: str, head: Facts, choice: Choice) -> Facts:
        judged = Recording(store, id).evaluation
        return count_losses(store, id) | {"feedbacks": {} if judged is None else judged.counts}

    def body(self, facts: Facts) -> Iterator[RenderableType]:
        return recording_body(facts)

    def describe(self, spec: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
        yield "app", spec_text({name: spec["app"].get(name) for name in ("name", "version")})
        yield "mode", safe(spec["mode"], CELL)
        for name, feedback in spec["feedbacks"].items():
            yield "feedback", f"{safe(name, CELL)}: {spec_text(feedback)}"

    def progress(self, store: Store, manifest: Manifest) -> Iterator[Facts]:
        made = read_progress(store, manifest["id"])
        for name, counts in made.feedbacks.items():
            judged = made.records - counts.get("waiting", 0)
            yield {"label": f"judged by {name}", "done": judged, "total": made.records}
        if not made.feedbacks:
            yield {"label": "recorded", "done": made.records, "total": made.records}

    def tables(self, artifact: Any) -> list[str]:
        return [DAMAGED_LINES] if DAMAGED_LINES in artifact.manifest.get("tables", ()) else []
