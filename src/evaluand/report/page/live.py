"""A run while it is made: what its journal and those of its evaluations say so far.

Watchers share one reader of a run, which looks at the files as often as one watcher needs. The run itself is not asked
and does nothing for them.
"""

from __future__ import annotations

import datetime as dt
import math
import time
from collections import Counter, deque
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from threading import Lock
from typing import Any, Final
from zlib import crc32

import numpy as np
import orjson

from evaluand.aggregation.score_shards import clusters_of
from evaluand.core.errors import EvaluandError, NotFound
from evaluand.core.provenance import experiment_origin
from evaluand.data.dataset import Dataset
from evaluand.evaluation.evaluator import Evaluation
from evaluand.evaluation.kind import EVALUATIONS
from evaluand.metrics.accuracy import Accuracy
from evaluand.metrics.base.metric import CLUSTER, VALUE
from evaluand.metrics.column_statistics import Mean
from evaluand.models.usage_total import UsageTotal
from evaluand.report.commands import format_command
from evaluand.report.facts.base import Facts
from evaluand.report.text import SHORT_ID
from evaluand.report.usage import brief_usage
from evaluand.run.kind import RUNS
from evaluand.run.responses import LANE
from evaluand.store.folder_store import FolderStore
from evaluand.store.journal import WorkLog
from evaluand.store.statuses import SCORED, SKIPPED

EVERY: Final = 0.4
"""Seconds between two looks."""

NEWEST: Final = "newest"
"""In place of an id: the run that was started last."""

_RECENT: Final = 60  # seconds whose rows make the rate
_ROWS: Final = 60  # of the last ones, that a new watcher gets
_TEXT: Final = 300
_STARTS_WITHIN: Final = 60.0  # seconds
_LISTING_PAUSE: Final = 20  # times as long as the listing

_SLOT, _STATUS, _ERROR, _ANSWERS, _STARTED, _DURATION, _USAGE = 0, 3, 4, 5, 8, 9, 10


@dataclass
class _Scores:
    """The scores of a scorer so far: those of the first answer in each row, by target.

    Attributes:
        repeats: rows of each example.
        clusters: of each example, if rows are not independent.
        range: the lowest and the highest possible score.
    """

    log: WorkLog
    repeats: int
    clusters: np.ndarray | None = None
    range: tuple[float, float] = (-math.inf, math.inf)
    slots: set[int] = field(default_factory=set)
    values: dict[str | None, dict[int, float]] = field(default_factory=dict)
    n_taken_back: int = 0

    def look(self) -> None:
        """Reads what is new."""
        self.log.refresh()
        if self.log.n_taken_back != self.n_taken_back:  # what was read may not count any more
            self.n_taken_back = self.log.n_taken_back
            self.slots.clear()
            self.values.clear()
        if self.log.n_done != len(self.slots):
            for slot in [slot for slot in self.log.done(0) if slot not in self.slots]:
                self.slots.add(slot)
                for target, value in _read_values(self.log.line(slot)).items():
                    self.values.setdefault(target, {})[slot] = value

    def facts(self) -> list[Facts]:
        """For each target the mean so far with the interval of one look, as an aggregation would have them."""
        return [{"target": target} | self._summarise(values) for target, values in (self.values or {None: {}}).items()]

    def _summarise(self, values: dict[int, float]) -> Facts:
        slots, all_values = np.array([*values], np.int64), np.array([*values.values()], np.float64)
        is_scored = ~np.isnan(all_values)
        known = all_values[is_scored]
        head = {"n": len(values), "scored": len(known)}
        if not len(known):
            return head | {"mean": None, "low": None, "high": None}
        columns: dict[str, np.ndarray] = {VALUE: known}
        if self.clusters is not None:
            columns[CLUSTER] = self.clusters[slots[is_scored] // self.repeats]
        metric: Any = Accuracy() if np.isin(known, (0.0, 1.0)).all() else Mean(range=self.range)
        made = metric.compute(metric.state(columns, np.zeros(len(known), np.int64), 1))
        ends = {"mean": made.value, "low": made.low, "high": made.high}
        return head | {name: float(end[0]) if np.isfinite(end[0]) else None for name, end in ends.items()}


def _read_values(line: bytes) -> dict[str | None, float]:
    """Target → value of the first answer that the scorer was asked about, in the journal's line of a row; NaN for none.

    Metrics reduce several answers in the same way by default.
    """
    found: dict[str | None, float] = {}
    for _, target, status, _, value, *_ in sorted(
        orjson.loads(line)[2], key=lambda score: (score[2] == SKIPPED, score[0] or 0)
    ):
        found.setdefault(target, float(value) if status == SCORED and isinstance(value, int | float) else math.nan)
    return found


class LiveRun:
    """A run in a store, finished or not.

    Raises:
        NotFound: the store has no such run.
    """

    def __init__(self, store: FolderStore, id: str) -> None:
        self._store, self.id = store, id
        self._manifest = store.manifest(RUNS, id)
        spec = self._manifest["spec"]
        self._repeats = spec["replications"]
        self.total = spec["examples"] * self._repeats
        self._log = None if self.is_sealed else store.lane(RUNS, id, LANE, self.total)
        self._lock, self._looked = Lock(), -math.inf
        self._counted: dict[int, int] = {}  # slot → checksum of its line
        self._n_taken_back = 0
        self._rows: deque[tuple[int, Facts]] = deque(maxlen=_ROWS)
        self._number = 0
        self._counts: Counter[str] = Counter()
        self._usage = UsageTotal()
        self._ends: deque[float] = deque()
        self._scores: dict[str, _Scores] = {}
        self._open: dict[str, bool] = {}  # open evaluations that are not made up for: whether somebody works on them
        self._evaluations: dict[str, Facts | None] = {}  # the manifest of open ones of this run; None for all others
        self._begun: dict[str, str] = {}  # when finished evaluations of this run were begun; empty for those of others
        self._next_listing = -math.inf

    @property
    def is_sealed(self) -> bool:
        return self._store.is_sealed(RUNS, self.id)

    def look(self) -> None:
        """Reads what is new, unless another watcher has just done so."""
        with self._lock:
            if time.monotonic() - self._looked < EVERY / 2:
                return
            if self._log is not None:
                self._read_log(self._log)
            self._look_at_scores()
            self._looked = time.monotonic()

    def _read_log(self, log: WorkLog) -> None:
        """Counts the rows that are done, and shows those that are new: a retried one has another line."""
        log.refresh()
        shown: dict[int, int] = {}
        if log.n_taken_back != self._n_taken_back:  # what was counted may not count any more
            self._n_taken_back, shown = log.n_taken_back, self._counted
            self._counted, self._counts, self._usage = {}, Counter(), UsageTotal()
        if log.n_done == len(self._counted):
            return
        for slot in [slot for slot in log.done(0) if slot not in self._counted]:
            line = log.line(slot)
            record, self._counted[slot] = orjson.loads(line), crc32(line)
            self._counts[record[_STATUS]] += 1
            self._usage.add(record[_USAGE])
            if shown.get(slot) != self._counted[slot]:
                self._show(slot, record)

    def _show(self, slot: int, record: list[Any]) -> None:
        ended = (record[_STARTED] + record[_DURATION]) / 1e6 if record[_STARTED] is not None else time.time()
        self._ends.append(ended)
        self._number += 1
        answers = record[_ANSWERS] or []
        self._rows.append(
            (
                self._number,
                {
                    "number": self._number,
                    "place": slot // self._repeats,
                    "replication": slot % self._repeats,
                    "status": record[_STATUS],
                    "error": None if record[_ERROR] is None else f"{record[_ERROR][0]}: {record[_ERROR][1]}"[:_TEXT],
                    "answer": " | ".join(_shorten(answer) for answer in answers)[:_TEXT],
                    "seconds": None if record[_DURATION] is None else record[_DURATION] / 1e6,
                },
            )
        )

    def _look_at_scores(self) -> None:
        found = self._find_evaluations()
        for id, manifest in found.items():
            for number, scorer in enumerate(sorted(manifest["spec"]["scorers"])):
                key = f"{id}/{scorer}"
                if key not in self._scores:
                    log = self._store.lane(EVALUATIONS, id, f"scorer{number}", self.total)
                    possible = Evaluation(self._store, id).ranges.get(scorer, {}).get(VALUE, (-math.inf, math.inf))
                    self._scores[key] = _Scores(log, self._repeats, self._clusters, possible)
                self._scores[key].look()
        worked_on = {id: self._is_worked_on(id, manifest) for id, manifest in found.items()}
        self._open = {
            id: is_worked_on
            for id, is_worked_on in worked_on.items()
            if is_worked_on or not self._is_graded_since(found[id]["created"])
        }

    @cached_property
    def _clusters(self) -> np.ndarray | None:
        """The cluster of each example; None if all rows are independent."""
        with suppress(EvaluandError):  # the store lacks the dataset
            declared = clusters_of(Dataset.stored(self._store, self._manifest["spec"]["dataset"]))
            if declared is not None:
                return declared
        return np.arange(self.total // self._repeats) if self._repeats > 1 else None

    def _find_evaluations(self) -> dict[str, Facts]:
        """The open evaluations of the run: id and manifest.

        Each other one is read once, and where listing them takes long it is done more rarely.
        """
        began = time.monotonic()
        if began >= self._next_listing:
            known = self._evaluations
            self._evaluations = {
                id: known[id] if id in known else self._read_open(id) for id in self._store.ids(EVALUATIONS)
            }
            self._next_listing = began + _LISTING_PAUSE * (time.monotonic() - began)
        for id in [id for id, made in self._evaluations.items() if made and self._store.is_sealed(EVALUATIONS, id)]:
            self._evaluations[id] = None
        return {id: manifest for id, manifest in self._evaluations.items() if manifest}

    def _read_open(self, id: str) -> Facts | None:
        if self._store.is_sealed(EVALUATIONS, id):
            return None
        found = self._store.manifest(EVALUATIONS, id)
        return dict(found) if self._is_of_run(found) else None

    def _is_of_run(self, evaluation: Mapping[str, Any]) -> bool:
        if (evaluation.get("provenance") or {}).get("run") == self.id:
            return True
        digest = self._store.manifest(RUNS, self.id).get("digest")
        return digest is not None and evaluation["spec"].get("run") == digest

    def _is_worked_on(self, id: str, manifest: Facts) -> bool:
        """Whether a living worker has a part of an evaluation, or it has only just begun."""
        own = [scores for key, scores in self._scores.items() if key.partition("/")[0] == id]
        if any(scores.log.leases.held() for scores in own):
            return True
        return (
            not any(scores.slots or scores.n_taken_back for scores in own) and _measure_age(manifest) < _STARTS_WITHIN
        )

    def _is_graded_since(self, created: str) -> bool:
        """Whether an evaluation of the run that was begun later is finished."""
        for id in [id for id, manifest in self._evaluations.items() if manifest is None and id not in self._begun]:
            self._begun[id] = ""
            with suppress(EvaluandError):  # damaged, or removed meanwhile
                found = self._store.manifest(EVALUATIONS, id)
                self._begun[id] = found["created"] if self._is_of_run(found) else ""
        return any(begun > created for begun in self._begun.values())

    def rows_after(self, number: int) -> list[Facts]:
        """The last rows with a higher number."""
        with self._lock:
            return [row for own, row in self._rows if own > number]

    def facts(self) -> Facts:
        """How far it is, how fast, what it has cost, the scores so far, and how to continue it if it is stopped."""
        with self._lock:
            status = self._status()
            is_sealed = self.is_sealed
            done = self.total if is_sealed else len(self._counted)
            used = {"usage": self._usage.to_dict() if self._usage else None, "spent": self._usage.cost}
            made = self._store.manifest(RUNS, self.id) if is_sealed else used
            rate = self._rate()
            return {
                "id": self.id,
                "name": self._manifest.get("name"),
                "status": status,
                "command": self._find_command() if status == "stopped" else None,
                "done": done,
                "total": self.total,
                "counts": made["counts"] if is_sealed else dict(self._counts),
                "rate": rate,
                "left": (self.total - done) / rate if rate else None,
                "used": brief_usage(made),
                "scores": [
                    {"scorer": key.partition("/")[2]} | each
                    for key, scores in sorted(self._scores.items())
                    if key.partition("/")[0] in self._open
                    for each in scores.facts()
                ],
            }

    def progress(self) -> Facts:
        """How many rows are done and whether somebody works on them, without reading any of them."""
        with self._lock:
            if self._log is not None:
                self._log.refresh()
            done = self.total if self._log is None or self.is_sealed else self._log.n_done
            return {"status": self._status(), "done": done, "total": self.total}

    def _status(self) -> str:
        """`finished` if it is graded too, `running` or `grading` if a living worker has a part of it, `starting` for a
        moment before anybody does, or `stopped`.
        """
        if self._log is None or self.is_sealed:
            return "grading" if any(self._open.values()) else "stopped" if self._open else "finished"
        if self._log.leases.held():
            return "running"
        is_new = not self._log.n_done and not self._n_taken_back and _measure_age(self._manifest) < _STARTS_WITHIN
        return "starting" if is_new else "stopped"

    def _find_command(self) -> str | None:
        """The command that continues what is stopped; None if that was begun in Python, where the same call does."""
        kind, id = ("evaluations", min(self._open)) if self.is_sealed else (RUNS, self.id)
        if experiment_origin(self._store.manifest(kind, id)) is None:
            return None
        return format_command("resume", id[:SHORT_ID], self._store.root)

    def _rate(self) -> float | None:
        """Rows in a second, of the last minute; None while there are too few."""
        now = time.time()
        self._ends = deque(end for end in self._ends if end >= now - _RECENT)
        if len(self._ends) < 2 or self._status() != "running":
            return None
        return len(self._ends) / max(now - min(self._ends), 1e-3)

    def close(self) -> None:
        """Closes the journals."""
        for log in (self._log, *(each.log for each in self._scores.values())):
            if log is not None:
                log.close()


def _measure_age(manifest: Mapping[str, Any]) -> float:
    """How many seconds ago an artifact was begun."""
    created = manifest.get("created")
    return math.inf if created is None else time.time() - dt.datetime.fromisoformat(created).timestamp()


def _shorten(answer: Any) -> str:
    """A stored answer, `[index, JSON value]`, as a short text."""
    value = answer[1] if isinstance(answer, list) and len(answer) > 1 else answer
    return value if isinstance(value, str) else orjson.dumps(value).decode()[:_TEXT]


class LiveRuns:
    """The readers of runs that are watched, each shared by all its watchers."""

    def __init__(self, store: FolderStore) -> None:
        self._store, self._lock = store, Lock()
        self._runs: dict[str, tuple[LiveRun, int]] = {}

    def watch(self, id: str) -> LiveRun:
        """The reader of a run, to be given back by `leave`."""
        with self._lock:
            run, watchers = self._runs.get(id) or (LiveRun(self._store, id), 0)
            self._runs[id] = run, watchers + 1
            return run

    def leave(self, run: LiveRun) -> None:
        with self._lock:
            found, watchers = self._runs[run.id]
            if watchers > 1:
                self._runs[run.id] = found, watchers - 1
            else:
                del self._runs[run.id]
                run.close()

    def is_followed(self, asked: str, id: str) -> bool:
        """Whether a run that was asked for as the newest is no longer that."""
        return asked == NEWEST and self.find(NEWEST) != id

    def find(self, asked: str) -> str:
        """The id of a run that exists.

        Args:
            asked: its id, or `NEWEST`.

        Raises:
            NotFound: there is no such run.
        """
        if asked != NEWEST:
            return str(self._store.manifest(RUNS, asked)["id"])
        newest = next(iter(self._store.catalog.entries(RUNS)), None)
        if newest is None:
            raise NotFound("no run has begun yet")
        return newest["id"]
