"""A recording in a store: its manifest, its lanes, its progress, and how it is sealed.

A line of the lane `records` is the journal record of a call (`evaluand.run.responses`) and, as its last part, other
facts about the call: `[input, name, tags, metadata]`.
"""

import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from itertools import count
from typing import Any, Final, Self

import orjson

from evaluand.apps.recording.kind import RECORDINGS
from evaluand.apps.recording.missing import Missing, find_missing
from evaluand.core import identity as ids
from evaluand.core.errors import Fault, SpecError, plural, warn
from evaluand.core.fingerprint import Identity
from evaluand.core.key_columns import INDEX
from evaluand.core.provenance import provenance
from evaluand.data.dataset import Dataset, Example
from evaluand.engine.engine import Engine
from evaluand.engine.engines.local import LocalEngine
from evaluand.engine.keyed_work import Artifact, Progress
from evaluand.engine.observation import UNDEFINED, node_key
from evaluand.engine.policy import Policy
from evaluand.engine.reuse import Inputs
from evaluand.evaluation.evaluator import Evaluation, Evaluator, KnownScore
from evaluand.evaluation.grading import N_FIELDS
from evaluand.evaluation.scorer import Scorer
from evaluand.evaluation.units import Traced, Unit, record_of
from evaluand.run.kind import RUNS
from evaluand.run.responses import response_of, seal
from evaluand.run.runner import Run
from evaluand.store import tables
from evaluand.store.journal import WorkLog
from evaluand.store.segments import list_places
from evaluand.store.store import Draft, Manifest, Store, begin, drafted, journalled, now, resolve
from evaluand.store.tables import TableWriter
from evaluand.trace.record import Record

MODES: Final = ("none", "with_app", "with_app_thread", "deferred")
OWN_COLUMNS: Final = ("input", "id", "tags")
"""Columns of the dataset of a recording, which no key of metadata may be named like."""

_RECORDS, _CLOSING = "records", "closing"
_TICK = 0.05


class Lanes:
    """The lanes of an open recording's journal, as opened by one process.

    One has a line for each record; that of a feedback has one for each record that it has judged.
    """

    def __init__(self, store: Store, id: str, feedbacks: Sequence[str]) -> None:
        self.records = store.lane(RECORDINGS, id, _RECORDS, None)
        self.judged = {
            name: store.lane(RECORDINGS, id, f"feedback{n}", None) for n, name in enumerate(sorted(feedbacks))
        }

    @classmethod
    def of(cls, store: Store, manifest: Manifest) -> Self:
        return cls(store, manifest["id"], list(manifest["spec"]["feedbacks"]))

    def refresh(self) -> None:
        """Reads what all processes have written since."""
        self.records.refresh()
        for lane in self.judged.values():
            lane.refresh()

    def sync(self) -> None:
        """Makes what was written survive a crash of the machine."""
        for lane in (self.records, *self.judged.values()):
            lane.sync()

    def missing(self, name: str, start: int = 0) -> Iterator[int]:
        """The slots of records, among those read so far, that a feedback has not judged."""
        records, judged = self.records, self.judged[name]
        return (slot for slot in records.done(start) if not judged.is_done(slot))

    @property
    def are_complete(self) -> bool:
        """Whether every feedback has judged every record that was read so far."""
        records = self.records  # a lost record may have been judged, so as many scores as records are not enough
        return all(lane.n_done >= records.n_done and not records.count_missing(lane) for lane in self.judged.values())

    def find_missing(self) -> Missing:
        """The records that have no line, although something else in the journal shows that they were written."""
        return find_missing(self.records, self.judged.values())

    def close(self) -> None:
        for lane in (self.records, *self.judged.values()):
            lane.close()


def app_name(app: Mapping[str, Any]) -> str:
    """The name of an app."""
    return str(app.get("name") or "app")


def parse_record(line: bytes) -> Unit:
    """The record of a journal line, as feedbacks are given it."""
    record = orjson.loads(line)
    input, name, tags, metadata = record[-1]
    response = response_of(record)
    metadata_columns = {} if tags is None else {"tags": ids.restore(tags)}
    slot = response.index
    return Unit(
        slot,
        Example(
            slot,
            slot,
            str(slot) if name is None else name,
            ids.restore(input),
            None,
            ids.restore(metadata),
            None,
            None,
            metadata_columns,
            response.digest,
        ),
        response,
        response.digest,
        Traced(orjson.dumps(record[11] or []), record[8], record[9]),
    )


def read_record(line: bytes, app: Mapping[str, Any]) -> Unit:
    """The record of a journal line, parsed once for all feedbacks."""
    unit = parse_record(line)
    unit.record = build_record(unit, app)
    return unit


def build_record(unit: Unit, app: Mapping[str, Any]) -> Record:
    """The record that selectors read."""
    answers = unit.response.responses
    return record_of(unit, answers[0] if answers else None, app, app_name(app))


@dataclass(frozen=True)
class RecordingProgress:
    """The progress of an open recording.

    `recording` is whether its app still records, as far as this machine can see; `feedbacks` are records by status, of
    which a feedback has not judged the `waiting` ones; `working` counts the units that workers judge now.
    """

    records: int
    recording: bool
    feedbacks: Mapping[str, Mapping[str, int]]
    working: int

    @property
    def waiting(self) -> int:
        return sum(counts.get("waiting", 0) for counts in self.feedbacks.values())


def read_progress(store: Store, id: str) -> RecordingProgress:
    """The progress of an open recording; an EngineError if its journal is damaged."""
    with closing(Lanes.of(store, store.manifest(RECORDINGS, id))) as lanes, journalled(RECORDINGS, id):
        lanes.refresh()
        feedbacks = {}
        for name, lane in lanes.judged.items():
            counts = Counter(score[2] for _, _, scores, *_ in lane.records() for score in scores)
            left = lanes.records.count_missing(lane)
            feedbacks[name] = dict(sorted(counts.items())) | ({"waiting": left} if left else {})
        working = sum(lane.leases.held() for lane in lanes.judged.values())
        return RecordingProgress(lanes.records.n_done, lanes.records.leases.busy(), feedbacks, working)


class Recording(Artifact):
    """A recording in a store, open or sealed."""

    kind = RECORDINGS

    @property
    def mode(self) -> str:
        return str(self.manifest["spec"]["mode"])

    @property
    def app(self) -> tuple[Any, Any]:
        """The name and the version of the app."""
        app = self.manifest["spec"]["app"]
        return app.get("name"), app.get("version")

    @property
    def is_sealed(self) -> bool:
        return self.store.is_sealed(RECORDINGS, self.id)

    @property
    def run(self) -> Run | None:
        """The recorded calls, once the recording is sealed; None where there are none."""
        id = self._find_id("run")
        return None if id is None else Run(self.store, id)

    @property
    def evaluation(self) -> Evaluation | None:
        """The scores of the feedbacks, once the recording is sealed; None where nothing was judged."""
        id = self._find_id("evaluation")
        return None if id is None else Evaluation(self.store, id)

    def _find_id(self, part: str) -> str | None:
        id: str | None = self.store.manifest(RECORDINGS, self.id)["provenance"].get(part)
        return id


def find_recording_id(store: Store, recording: str) -> str:
    """The id of a recording, from its name, its id or the beginning of its id."""
    return resolve(store, recording, RECORDINGS)[1]


def seal_recording(
    store: Store,
    id: str,
    scorers: Mapping[str, Scorer],
    *,
    evaluated: bool = True,
    policy: Policy | None = None,
    engine: Engine | None = None,
    progress: Progress | None = None,
) -> Recording:
    """Seals a recording that has ended, with the run of its records and the evaluation by its feedbacks.

    The policy, the engine and the progress are for the calls of feedbacks for records that they have not judged. A
    SpecError if the app still records.

    Calls of an app cannot be repeated, so what is damaged or missing in the journal of the records is lost. An
    `EvaluandWarning` says so, the manifest counts the damaged lines and the missing records, and the table
    `damaged_lines` has the bytes of the lines.
    """
    with _exclusively(store, id):
        manifest = store.manifest(RECORDINGS, id)
        if "digest" in manifest:
            return Recording(store, id)
        with closing(Lanes.of(store, manifest)) as lanes:
            if lanes.records.leases.busy(patient=True):
                raise SpecError(f"recording {id} is still being recorded; close it when its app has ended")
            lanes.refresh()
            for lane in lanes.judged.values():
                lane.warn_of_damage("what is missing is judged again")
            run = save_run(store, manifest, lanes.records) if lanes.records.n_done else None
            evaluation = None
            if run is not None and evaluated and scorers:
                evaluation = save_evaluation(store, manifest, run, scorers, lanes, policy, engine, progress)
            _seal(store, manifest, run, evaluation, lanes)
    return Recording(store, id)


def recorded_policy(manifest: Manifest, concurrency: int | None = None) -> Policy:
    """The default policy for the feedbacks of a recording: with the timeout of its app."""
    return Policy(concurrency, timeout=manifest["provenance"]["timeout"])


def recording_digest(run: Run | None, evaluation: Evaluation | None) -> str:
    """The digest of a recording's run and evaluation, in 32 hexadecimal digits."""
    return ids.digest([artifact and artifact.digest for artifact in (run, evaluation)]).hex()


def count_records(run: Run | None) -> dict[str, int]:
    """Records by status."""
    return dict(run.counts) if run else {}


def save_run(store: Store, manifest: Manifest, records: WorkLog) -> Run:
    """The run of the records that were read: an existing one, or a new one that is sealed like any other."""
    id, spec, name = manifest["id"], manifest["spec"], manifest["name"]
    dataset = _build_dataset(id, records, name).save(store)
    run_spec = {
        "task": {"kind": "app", **{key: spec["app"].get(key) for key in ("name", "version")}, "recording": id},
        "seed": 0,
        "dataset": dataset.id,
        "examples": len(dataset),
        "replications": 1,
    }
    about = {"work": [], "pinned": True, "fresh": False, "app": spec["app"]}
    origin = {"parts": {}, "unpinned": [], "policy": {}, "recording": id, "task": app_name(spec["app"])}
    opened = begin(
        store,
        RUNS,
        run_spec,
        name=name,
        again=lambda last: False,
        resume=None,
        about=lambda: about | {"provenance": provenance() | origin},
    )
    if "digest" not in opened:
        places = count()
        placed = ([[next(places), *record[1:-1]] for record in batch] for batch in records.batches())  # without gaps
        seal(store, opened, placed, dataset.indices, 1)
    return Run(store, opened["id"])


def save_evaluation(
    store: Store,
    manifest: Manifest,
    run: Run,
    scorers: Mapping[str, Scorer],
    lanes: Lanes,
    policy: Policy | None = None,
    engine: Engine | None = None,
    progress: Progress | None = None,
) -> Evaluation:
    """The evaluation of a run of records, which takes over the scores in the lanes.

    It is stored under the identities that the feedbacks had when the recording was opened. Where one has changed since,
    its scores may be of either version, so it is unpinned, and an `EvaluandWarning` is given.
    """
    judged = {name: _read_scores(manifest, lane) for name, lane in lanes.judged.items() if name in scorers}
    changed = _find_changed(manifest, {name: scorers[name] for name in judged if lanes.judged[name].n_done})
    evaluation = Evaluator(store, policy or recorded_policy(manifest), engine or LocalEngine(), progress).evaluate(
        run,
        scorers,
        name=manifest["name"],
        judged=judged,
        identities=changed,
        origin={"recording": manifest["id"]},
    )
    for name in (name for name, identity in changed.items() if identity.unpinned == _CHANGED):
        warn(
            f"feedback {name!r} has changed since the recording was opened, so its values may be of two versions; "
            "evaluate the run again with it"
        )
    return evaluation


def _find_changed(manifest: Manifest, scorers: Mapping[str, Scorer]) -> dict[str, Identity]:
    """The recorded identities of the feedbacks that have changed since the recording was opened."""
    recorded = manifest["spec"]["feedbacks"]
    present = {name: scorer.identify() for name, scorer in scorers.items()}
    return {
        n: Identity(recorded[n], False, i.unpinned or _CHANGED) for n, i in present.items() if i.spec != recorded[n]
    }


_CHANGED: Final = ("it has changed since its recording was opened",)


def _read_scores(manifest: Manifest, lane: WorkLog) -> Iterator[KnownScore]:
    """The scores in a lane; only errors of reading it are reported as damage of the journal."""
    with journalled(RECORDINGS, manifest["id"]):
        inputs = Inputs.written(lane, N_FIELDS)
        for slot, _, scores, *_ in lane.records():
            node = inputs.of(slot) if manifest.get("observed") else node_key(*UNDEFINED)
            yield (slot, 0), scores, None if node is None else (node, inputs.nodes)


def _build_dataset(recording: str, records: WorkLog, name: str | None) -> Dataset:
    """The inputs of records with their tags and metadata; a key that a record does not have is null there."""
    with journalled(RECORDINGS, recording):
        facts = [(record[0], *record[-1]) for record in records.records()]
        attributes = sorted({key for *_, metadata in facts for key in metadata})
        names = _distinct_names([(slot, name) for slot, _, name, _, _ in facts])
    tagged = any(tags is not None for *_, tags, _ in facts)
    rows = []
    for (slot, input, _, tags, metadata), id in zip(facts, names, strict=True):
        row = {INDEX: slot, "input": ids.restore(input)} | dict.fromkeys(attributes)
        row |= ids.restore(metadata) | ({"tags": ids.restore(tags)} if tagged else {})
        rows.append(row | ({"id": id} if id is not None else {}))
    roles: dict[str, Any] = {"input": "input", "attributes": attributes, "metadata": ["tags"] if tagged else []}
    return Dataset.from_rows(rows, name=name, **roles)


def _distinct_names(names: Sequence[tuple[int, str | None]]) -> Sequence[str | None]:
    """The ids of examples: their names, and the numbers of those without a name; None where no example has a name."""
    if all(name is None for _, name in names):
        return [None] * len(names)
    taken: set[str] = set()
    distinct = []
    for slot, name in names:
        id, n = str(slot) if name is None else name, 1
        while id in taken:
            n += 1
            id = f"{slot if name is None else name} ({n})"
        taken.add(id)
        distinct.append(id)
    return distinct


def find_faults(store: Store, id: str) -> list[Fault]:
    """The records that are missing from the journal of an open recording."""
    with closing(Lanes.of(store, store.manifest(RECORDINGS, id))) as lanes:
        missing = lanes.find_missing()
    return [Fault(f"{RECORDINGS} {id}", f"{_describe_missing(missing)}; they are lost")] if missing.total else []


def _describe_missing(missing: Missing) -> str:
    return f"at least {plural(missing.total, 'record')} cannot be read, which other lines or leases show: {missing}"


def _seal(store: Store, manifest: Manifest, run: Run | None, evaluation: Evaluation | None, lanes: Lanes) -> None:
    missing = lanes.find_missing()
    parts: dict[str, Any] = {"run": run and run.id, "evaluation": evaluation and evaluation.id}
    ended = {"digest": recording_digest(run, evaluation), "counts": count_records(run), "sealed": now()}
    with drafted(store, RECORDINGS, manifest["id"]) as draft:
        damaged = _set_aside_damage(draft, lanes.records)
        if damaged:
            parts["damaged_lines"] = len(damaged)
        if missing.total:
            parts["missing_records"] = missing.total
        draft.seal(manifest | ended | {"provenance": manifest["provenance"] | parts})
    if damaged:
        lines = f"{plural(len(damaged), 'damaged line')} of the journal of recording {manifest['id']}"
        warn(
            f"{lines} could not be read, so records are lost; the table damaged_lines has them: {list_places(damaged)}"
        )
    if missing.total:
        warn(f"recording {manifest['id']}: {_describe_missing(missing)}; they are lost")


def _set_aside_damage(draft: Draft, records: WorkLog) -> list[str]:
    """Writes what is damaged in the journal of the records to a table; returns the places."""
    table, places = TableWriter(tables.DAMAGED_LINES), dict[str, None]()
    for damage, content in records.read_damage():
        places[f"{damage.segment}:{damage.line}"] = None
        table.add((damage.segment, damage.line, damage.reason, content), len(content))
        if table.is_full:
            table.flush(draft, "damaged_lines")
    table.flush(draft, "damaged_lines")
    return [*places]


@contextmanager
def _exclusively(store: Store, id: str) -> Iterator[None]:
    """Lets one process at a time seal a recording."""
    if store.is_sealed(RECORDINGS, id):
        yield
        return
    store.open(
        store.manifest(RECORDINGS, id)
    )  # makes the journal again if it is missing; without it no lease can be taken
    lane = store.lane(RECORDINGS, id, _CLOSING, 1)
    try:
        while not store.is_sealed(RECORDINGS, id) and lane.leases.claim(1) is None:
            time.sleep(_TICK)
        yield
    finally:
        lane.close()
