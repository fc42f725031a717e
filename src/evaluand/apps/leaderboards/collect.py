"""Which evaluations, recordings and runs a leaderboard is made of."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from evaluand.apps.leaderboards.records import RecordColumns, find_recording, read_journal, read_run
from evaluand.apps.recording.stored import KIND, Recording
from evaluand.apps.session import RecordingSession
from evaluand.comparison.measures import find_evaluations
from evaluand.core.errors import NotFound, SpecError, with_article
from evaluand.evaluation.evaluator import Evaluation
from evaluand.run.runner import Run
from evaluand.store.store import Store, resolve


def collect_sources(store: Store, names: Sequence[str] = ()) -> list[Evaluation | Recording | Run]:
    """What a leaderboard is made of: recordings of a store, and the evaluations of what they recorded.

    Args:
        store: where to look.
        names: of apps, of recordings, or of anything that has evaluations; default: all recordings.

    Raises:
        NotFound: nothing has such a name.
        SpecError: it is not something that has evaluations.
    """
    recordings = [Recording(store, id) for id in store.ids(KIND)]
    if not names:
        return add_evaluations(store, recordings)
    return add_evaluations(store, [source for name in names for source in _find_by_name(store, recordings, name)])


def add_evaluations(
    store: Store, sources: Sequence[Evaluation | Recording | Run]
) -> list[Evaluation | Recording | Run]:
    """The sources, and the evaluations that a store has of the recordings among them."""
    sources = [*sources]
    recordings = {source.id for source in sources if isinstance(source, Recording)}
    for id in store.ids("evaluations") if recordings else ():
        if store.is_sealed("evaluations", id) and find_recording(evaluation := Evaluation(store, id)) in recordings:
            sources.append(evaluation)
    return list({(type(source), source.id): source for source in sources}.values())


def _find_by_name(store: Store, recordings: Sequence[Recording], name: str) -> Sequence[Evaluation | Recording | Run]:
    """The recordings of an app or of that name; else the evaluations that a name or id refers to."""
    found = [each for each in recordings if name in (each.name, each.manifest["spec"]["app"].get("name"))]
    if found:
        return found
    with suppress(NotFound):
        return [Recording(store, resolve(store, name, KIND)[1])]
    return find_evaluations(store, name)


def read_sources(sources: Sequence[Any]) -> list[RecordColumns]:
    """The records of sources as columns; of several snapshots of a recording, only the last is read."""
    recordings: dict[str, Recording] = {}
    runs: dict[tuple[str, str], Run] = {}
    evaluations: dict[str, list[Evaluation]] = {}
    for source in sources:
        if isinstance(source, RecordingSession):
            source = source.writer
        if isinstance(source, Recording):
            recordings[source.id] = source
        elif isinstance(source, Evaluation | Run):
            run = source if isinstance(source, Run) else Run(source.store, source.manifest["provenance"]["run"])
            runs[find_recording(run) or run.id, run.id] = run
            if isinstance(source, Evaluation):
                evaluations.setdefault(run.id, []).append(source)
        else:
            raise SpecError(
                f"a leaderboard is made of evaluations and recordings, not {with_article(type(source).__name__)}"
            )
    read = [_read_recording(recording, evaluations) for recording in recordings.values()]
    for recording_id, keys in itertools.groupby(sorted(runs), lambda key: key[0]):
        if recording_id not in recordings:
            snapshots = [runs[key] for key in keys]
            last = max(snapshots, key=lambda run: (sum(run.counts.values()), run.manifest["created"]))
            read.append(read_run(last, evaluations.get(last.id, [])))
    return [columns for columns in read if columns is not None]


def _read_recording(recording: Recording, evaluations: dict[str, list[Evaluation]]) -> RecordColumns | None:
    """The records of a recording; None where it was closed without any."""
    if not recording.is_sealed:
        return read_journal(recording)
    run = recording.run
    if run is None:
        return None
    judged = [] if (evaluation := recording.evaluation) is None else [evaluation]
    return read_run(run, [*evaluations.get(run.id, ()), *judged])
