"""A recording as it is kept: its manifest, its lanes, how far it is, and what it becomes.

A line of the lane `records` is the journal record of a call (`evaluand.responses`) and, as its last part, what is known
of the call beside: `[input, name, tags, metadata]`.
"""

from __future__ import annotations

import time
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Any, Final, Self

import orjson

from evaluand.core import identity as ids
from evaluand.core.errors import EvaluandWarning, SpecError
from evaluand.core.fingerprint import Identity
from evaluand.core.key_columns import INDEX
from evaluand.core.provenance import provenance
from evaluand.data.dataset import Dataset, Example
from evaluand.engine.engine import Engine, LocalEngine, Policy
from evaluand.engine.keyed_work import Artifact, Progress
from evaluand.evaluation.evaluator import Evaluation, Evaluator, RowKey
from evaluand.evaluation.grading import Traced, Unit, record_of
from evaluand.evaluation.scorer import Scorer
from evaluand.run.responses import response_of, seal
from evaluand.run.runner import Run
from evaluand.store.journal import WorkLog
from evaluand.store.store import Manifest, Store, begin, drafted, journalled, now, resolve
from evaluand.trace.record import Record

KIND: Final = "recordings"
MODES: Final = ("none", "with_app", "with_app_thread", "deferred")
OWN_COLUMNS: Final = ("input", "id", "tags")
"""Columns of the dataset of a recording that metadata cannot be called."""

_RECORDS, _CLOSING = "records", "closing"
_TICK = 0.05


class Lanes:
    """The lanes of an open recording, as one process has them.

    Attributes:
        records: one line for each record.
        judged: by feedback, one line for each record that it has judged.
    """

    def __init__(self, store: Store, id: str, feedbacks: Sequence[str]) -> None:
        self.records = store.lane(KIND, id, _RECORDS, None)
        self.judged = {name: store.lane(KIND, id, f"feedback{n}", None) for n, name in enumerate(sorted(feedbacks))}

    @classmethod
    def of(cls, store: Store, manifest: Manifest) -> Self:
        return cls(store, manifest["id"], list(manifest["spec"]["feedbacks"]))

    def refresh(self) -> None:
        """Reads what anybody has written since."""
        self.records.refresh()
        for lane in self.judged.values():
            lane.refresh()

    def sync(self) -> None:
        """Makes what was written survive the death of the machine."""
        for lane in (self.records, *self.judged.values()):
            lane.sync()

    def missing(self, name: str, start: int = 0) -> Iterator[int]:
        """The slots of records that a feedback has not judged, as far as was read."""
        records, judged = self.records, self.judged[name]
        return (s for s in range(start, records.slots) if records.is_done(s) and not judged.is_done(s))

    @property
    def are_complete(self) -> bool:
        """Whether every feedback has judged every record, as far as was read."""
        return all(lane.n_done >= self.records.n_done for lane in self.judged.values())

    def close(self) -> None:
        for lane in (self.records, *self.judged.values()):
            lane.close()


def name_in(app: Mapping[str, Any]) -> str:
    """What an app is called."""
    return str(app.get("name") or "app")


def unit_of(line: bytes) -> Unit:
    """A record, as what judges it sees it."""
    record = orjson.loads(line)
    input, name, tags, metadata = record[-1]
    response = response_of(record)
    told = {} if tags is None else {"tags": ids.restore(tags)}
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
            told,
            response.digest,
        ),
        response,
        response.digest,
        Traced(orjson.dumps(record[11] or []), record[8], record[9]),
    )


def read(line: bytes, app: Mapping[str, Any]) -> Unit:
    """A record with what is read of it for all feedbacks."""
    unit = unit_of(line)
    unit.record = record_in(unit, app)
    return unit


def record_in(unit: Unit, app: Mapping[str, Any]) -> Record:
    """A record as selectors see it."""
    answers = unit.response.responses
    return record_of(unit, answers[0] if answers else None, app, name_in(app))


@dataclass(frozen=True)
class Standing:
    """How far an open recording is.

    Attributes:
        records: how many there are.
        recording: whether its app still records, as far as can be seen from here.
        feedbacks: by feedback: records by status, `waiting` for those it has not judged.
        working: how many units workers hold.
    """

    records: int
    recording: bool
    feedbacks: Mapping[str, Mapping[str, int]]
    working: int

    @property
    def waiting(self) -> int:
        return sum(counts.get("waiting", 0) for counts in self.feedbacks.values())


def standing(store: Store, id: str) -> Standing:
    """How far an open recording is.

    Raises:
        EngineError: its journal is damaged.
    """
    with closing(Lanes.of(store, store.manifest(KIND, id))) as lanes, journalled(KIND, id):
        lanes.refresh()
        feedbacks = {}
        for name, lane in lanes.judged.items():
            counts = Counter(score[2] for _, _, scores in lane.records() for score in scores)
            left = lanes.records.n_done - lane.n_done
            feedbacks[name] = dict(sorted(counts.items())) | ({"waiting": left} if left > 0 else {})
        working = sum(lane.leases.held() for lane in lanes.judged.values())
        return Standing(lanes.records.n_done, lanes.records.leases.busy(), feedbacks, working)


class Recording(Artifact):
    """A recording in a store, open or sealed."""

    kind = KIND

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
        return self.store.is_sealed(KIND, self.id)

    @property
    def run(self) -> Run | None:
        """What was recorded, once it is sealed; None where nothing was."""
        id = self._made("run")
        return None if id is None else Run(self.store, id)

    @property
    def evaluation(self) -> Evaluation | None:
        """What the feedbacks said, once it is sealed; None where nobody was asked."""
        id = self._made("evaluation")
        return None if id is None else Evaluation(self.store, id)

    def _made(self, what: str) -> str | None:
        made: str | None = self.store.manifest(KIND, self.id)["provenance"].get(what)
        return made


def found(store: Store, recording: str) -> str:
    """The id of the recording that a name, an id or the beginning of one stands for."""
    return resolve(store, recording, KIND)[1]


def sealed(
    store: Store,
    id: str,
    scorers: Mapping[str, Scorer],
    *,
    evaluated: bool = True,
    policy: Policy | None = None,
    engine: Engine | None = None,
    progress: Progress | None = None,
) -> Recording:
    """A recording that has ended, as a whole: with the run of its records and the evaluation of its feedbacks.

    Args:
        scorers: its feedbacks.
        evaluated: whether they are asked.
        policy: how they are asked about what they have not judged.
        engine: which makes these calls.
        progress: shows how far they are.

    Raises:
        SpecError: its app still records.
    """
    with _alone(store, id):
        manifest = store.manifest(KIND, id)
        if "digest" in manifest:
            return Recording(store, id)
        with closing(Lanes.of(store, manifest)) as lanes:
            if lanes.records.leases.busy():
                raise SpecError(f"recording {id} is still being recorded; close it when its app has ended")
            lanes.refresh()
            run = run_of(store, manifest, lanes.records) if lanes.records.n_done else None
            evaluation = None
            if run is not None and evaluated and scorers:
                evaluation = evaluation_of(store, manifest, run, scorers, lanes, policy, engine, progress)
            _seal(store, manifest, run, evaluation)
    return Recording(store, id)


def policy_of(manifest: Manifest, concurrency: int | None = None) -> Policy:
    """How the feedbacks of a recording are asked where nobody says: no longer than by its own app."""
    return Policy(concurrency, timeout=manifest["provenance"]["timeout"])  # type: ignore[arg-type] # None is as if not given


def digest_of(run: Run | None, evaluation: Evaluation | None) -> str:
    """32 hexadecimal digits that stand for what a recording came to."""
    return ids.digest([made and made.digest for made in (run, evaluation)]).hex()


def counts_of(run: Run | None) -> dict[str, int]:
    """Records by status."""
    return dict(run.counts) if run else {}


def run_of(store: Store, manifest: Manifest, records: WorkLog) -> Run:
    """The run of the records that were read: found, or made by the ordinary seal."""
    id, spec, name = manifest["id"], manifest["spec"], manifest["name"]
    dataset = _dataset(id, records, name).save(store)
    asked = {
        "task": {"kind": "app", **{key: spec["app"].get(key) for key in ("name", "version")}, "recording": id},
        "seed": 0,
        "dataset": dataset.id,
        "examples": len(dataset),
        "replications": 1,
    }
    about = {"work": [], "pinned": True, "fresh": False, "app": spec["app"]}
    made_by = {"parts": {}, "unpinned": [], "policy": {}, "recording": id, "task": name_in(spec["app"])}
    opened = begin(
        store,
        "runs",
        asked,
        name=name,
        again=lambda last: False,
        resume=None,
        about=lambda: about | {"provenance": provenance() | made_by},
    )
    if "digest" not in opened:
        placed = ([place, *record[1:-1]] for place, record in enumerate(records.records()))  # without gaps
        seal(store, opened, placed, dataset.indices, 1)
    return Run(store, opened["id"])


def evaluation_of(
    store: Store,
    manifest: Manifest,
    run: Run,
    scorers: Mapping[str, Scorer],
    lanes: Lanes,
    policy: Policy | None = None,
    engine: Engine | None = None,
    progress: Progress | None = None,
) -> Evaluation:
    """The evaluation of a run of records, which takes over what stands in the lanes.

    It is filed under what the feedbacks were when the recording was opened. Where one has become another since, nobody
    knows which of them has said what, so that is unpinned, and an `EvaluandWarning` is told.
    """
    judged = {name: _judgements(manifest["id"], lane) for name, lane in lanes.judged.items() if name in scorers}
    changed = _changed(manifest, {name: scorers[name] for name in judged if lanes.judged[name].n_done})
    made = Evaluator(store, policy or policy_of(manifest), engine or LocalEngine(), progress).evaluate(
        run,
        scorers,
        name=manifest["name"],
        judged=judged,
        identities=changed,
        origin={"recording": manifest["id"]},
    )
    for name in (name for name, identity in changed.items() if identity.unpinned == _CHANGED):
        warnings.warn(
            f"feedback {name!r} is not what it was when the recording was opened: its values may not be of one kind; "
            "ask it anew about the run, or where what changes is of no account give the feedback a version",
            EvaluandWarning,
            stacklevel=3,
        )
    return made


def _changed(manifest: Manifest, scorers: Mapping[str, Scorer]) -> dict[str, Identity]:
    """What feedbacks were when the recording was opened, of those that are something else by now."""
    asked = manifest["spec"]["feedbacks"]
    present = {name: scorer.identify() for name, scorer in scorers.items()}
    return {n: Identity(asked[n], False, i.unpinned or _CHANGED) for n, i in present.items() if i.spec != asked[n]}


_CHANGED: Final = ("it is not what it was when its recording was opened",)


def _judgements(id: str, lane: WorkLog) -> Iterator[tuple[RowKey, list[Any]]]:
    """What stands in a lane; only reading it is to say that the journal is damaged, not what is done with it."""
    with journalled(KIND, id):
        for slot, _, scores in lane.records():
            yield (slot, 0), scores


def _dataset(recording: str, records: WorkLog, name: str | None) -> Dataset:
    """The inputs of records with what is known of them; what is unknown of some is null there."""
    with journalled(KIND, recording):
        told = [(record[0], *record[-1]) for record in records.records()]
        attributes = sorted({key for *_, metadata in told for key in metadata})
        names = _told_apart([(slot, name) for slot, _, name, _, _ in told])
    tagged = any(tags is not None for *_, tags, _ in told)
    rows = []
    for (slot, input, _, tags, metadata), id in zip(told, names, strict=True):
        row = {INDEX: slot, "input": ids.restore(input)} | dict.fromkeys(attributes)
        row |= ids.restore(metadata) | ({"tags": ids.restore(tags)} if tagged else {})
        rows.append(row | ({"id": id} if id is not None else {}))
    roles: dict[str, Any] = {"input": "input", "attributes": attributes, "metadata": ["tags"] if tagged else []}
    return Dataset.from_rows(rows, name=name, **roles)


def _told_apart(names: Sequence[tuple[int, str | None]]) -> Sequence[str | None]:
    """The ids of examples: their names, or their numbers where some have one; None where none has."""
    if all(name is None for _, name in names):
        return [None] * len(names)
    taken: set[str] = set()
    made = []
    for slot, name in names:
        id, n = str(slot) if name is None else name, 1
        while id in taken:
            n += 1
            id = f"{slot if name is None else name} ({n})"
        taken.add(id)
        made.append(id)
    return made


def _seal(store: Store, manifest: Manifest, run: Run | None, evaluation: Evaluation | None) -> None:
    made = {"run": run and run.id, "evaluation": evaluation and evaluation.id}
    ended = {"digest": digest_of(run, evaluation), "counts": counts_of(run), "sealed": now()}
    with drafted(store, KIND, manifest["id"]) as draft:
        draft.seal(manifest | ended | {"provenance": manifest["provenance"] | made})


@contextmanager
def _alone(store: Store, id: str) -> Iterator[None]:
    """Of several who seal a recording, one after the other."""
    lane = store.lane(KIND, id, _CLOSING, 1) if not store.is_sealed(KIND, id) else None
    if lane is None:
        yield
        return
    try:
        while not store.is_sealed(KIND, id) and lane.leases.claim(1) is None:
            time.sleep(_TICK)
        yield
    finally:
        lane.close()
