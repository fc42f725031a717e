"""Evaluations: the scores of a run, one table per scorer.

An `Evaluator` grades stored responses, so a run can be graded again, or by more scorers, without calling the task
again. Each row of the run ends in exactly one status per scorer, response and target; scores of an earlier evaluation
for the same scorer, example and response are reused, unless to grade again costs less.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import islice
from typing import Any, Unpack

import numpy as np
import orjson
import pyarrow as pa

from evaluand.core import identity as ids
from evaluand.core.errors import SpecError, described, warn, with_article
from evaluand.core.fingerprint import Identity, summarize_reasons
from evaluand.core.key_columns import INDEX, RESPONSE_INDEX
from evaluand.core.labels import shown_name
from evaluand.core.near import keywords
from evaluand.core.provenance import provenance
from evaluand.engine.engine import Engine
from evaluand.engine.engines.local import LocalEngine
from evaluand.engine.garbage import calls_in_flight
from evaluand.engine.keyed_work import Artifact, Progress, Receipt, Tally, take_over, take_turn_to_seal
from evaluand.engine.observation import Node, Observer
from evaluand.engine.policy import Policy
from evaluand.engine.reuse import InputCheck, OpenSlots
from evaluand.evaluation.earlier_scores import EarlierScores, lane_name
from evaluand.evaluation.grading import N_FIELDS, Grader, line_of
from evaluand.evaluation.preflight import warn_of_unequal
from evaluand.evaluation.sample import RowSample
from evaluand.evaluation.score_tables import Grade, KnownRows, Record, ScoredRows, ScoreTable, known_batches, write_rows
from evaluand.evaluation.scorer import NO_ANSWER, FunctionScorer, Scorer, as_scorer, find_call_reader, ranges_of
from evaluand.evaluation.stored_scores import StoredScores
from evaluand.evaluation.units import RowStream, Sources, Unit, app_of, name_of, targets_of
from evaluand.models.account import Account
from evaluand.models.capture import observable
from evaluand.models.preflight import check_prices
from evaluand.models.usage_total import RowUsage
from evaluand.run.earlier_work import facts_of, last_attempt, named_work, note_made
from evaluand.run.kind import RUNS
from evaluand.run.lost_answers import settle_lost
from evaluand.run.request import StepOptions, StepRequest
from evaluand.run.runner import Run
from evaluand.store import tables
from evaluand.store.journal import WorkLog
from evaluand.store.ownership import note_foreign
from evaluand.store.store import (
    Manifest,
    Ref,
    Store,
    begin,
    check_name,
    check_store,
    drafted,
    exists,
    find_sealed_from,
    journalled,
    now,
)
from evaluand.store.tables import FAILED, SCORED, SKIPPED, Rows

_OF_ROW = (INDEX, "replication", RESPONSE_INDEX)


class ScorerFailed(UserWarning):
    """A scorer failed on every row that it graded."""


class Evaluation(Artifact):
    """An evaluation in a store; its `receipt` says what had to be computed, if it was just created."""

    kind = "evaluations"

    def __repr__(self) -> str:
        counts = self.manifest.get("counts", {})  # none while open
        failed = {name: counts.get(name, {}).get(FAILED, 0) for name in self.scorers}
        parts = (f"{name}: {n:,} failed" if n else name for name, n in failed.items())
        return f"Evaluation({self.id[:12]}, {', '.join(parts)})"

    @property
    def scorers(self) -> list[str]:
        """The names of the scorers, each of which has a table."""
        return list(self.manifest["spec"]["scorers"])

    @property
    def ranges(self) -> Mapping[str, Mapping[str, tuple[float, float]]]:
        """The possible range of numbers, where known: scorer → column → the lowest and the highest number."""
        stored = self.manifest["provenance"].get("ranges") or {}
        return {name: {column: (low, high) for column, (low, high) in of.items()} for name, of in stored.items()}

    @property
    def counts(self) -> dict[str, dict[str, int]]:
        """Rows by scorer and status."""
        return self.manifest["counts"]  # type: ignore[no-any-return]

    def batches(self, scorer: str, columns: list[str] | None = None) -> Iterator[pa.RecordBatch]:
        """A scorer's table as a stream, in the order of the key."""
        return self.store.read("evaluations", self.id, f"scores/{scorer}", columns)

    def columns(self, scorer: str) -> list[str]:
        """The names of the columns of a scorer's table."""
        nothing = Rows(of=np.zeros(0, np.int64))
        return list(next(self.store.read("evaluations", self.id, f"scores/{scorer}", rows=nothing)).schema.names)

    def table(self, scorer: str) -> pa.Table:
        """A scorer's table."""
        return pa.Table.from_batches(self.batches(scorer))

    def calls(self, scorer: str) -> Iterator[list[dict[str, Any]]]:
        """The calls of a feedback for each row of its table: `{args, ret, meta, error}` each.

        Long arguments, which are not in the table, are selected from the run again; if the store has lost the run, they
        are `{"selected": "a value of …"}`.

        Raises:
            SpecError: the scorer is not a feedback.

        Example:
            >>> from evaluand.data.dataset import Dataset
            >>> from evaluand.evaluation.feedback import Feedback
            >>> from evaluand.run.runner import Runner
            >>> run = Runner().run(str.upper, Dataset.from_rows([{"input": "abc"}]))
            >>> def same(question: str, answer: str) -> float:
            ...     return float(question == answer)
            >>> evaluation = Evaluator().evaluate(run, {"same": Feedback(same).on_input_output()})
            >>> next(evaluation.calls("same"))
            [{'args': {'answer': 'ABC', 'question': 'abc'}, 'ret': 0.0, 'meta': {}, 'error': None}]
        """
        read = find_call_reader(self.manifest["spec"]["scorers"].get(scorer, {}))
        if read is None:
            raise SpecError(f"{scorer!r} is not a feedback of this evaluation")
        sources = Sources(self.run)
        for batch in self.batches(scorer, [*_OF_ROW, "calls"]):
            for *key, text in zip(*(batch.column(name).to_pylist() for name in (*_OF_ROW, "calls")), strict=True):
                yield [] if text is None else read(orjson.loads(text), partial(sources.of, *key))

    def read_run(self) -> Run:
        """The graded run, by the name of the evaluation if the run has it too.

        Raises:
            NotFound: the store has lost it.
        """
        run = Run(self.store, self.manifest["provenance"]["run"])
        if self.called and Ref(self.called, RUNS, run.id) in self.store.named(self.called):
            run.called = self.called
        return run

    @property
    def run(self) -> Run | None:
        """The graded run as `read_run` reads it; None where the store has lost it."""
        return self.read_run() if exists(self.store, RUNS, self.manifest["provenance"]["run"]) else None


@dataclass
class Evaluator:
    """Grades runs.

    Args:
        store: where evaluations are stored; default: the store of the run.
        policy: concurrency, timeout and retries of scorers that are not cheap.
        engine: where these grade; by default in threads and the event loop of this process.
        progress: shows the progress.

    Example:
        >>> from evaluand.data.dataset import Dataset
        >>> from evaluand.run.runner import Runner
        >>> data = Dataset.from_rows([{"input": "a", "expected": "A"}, {"input": "b", "expected": "C"}])
        >>> run = Runner().run(str.upper, data)
        >>> evaluation = Evaluator().evaluate(run, {"same": lambda output, expected: output == expected})
        >>> evaluation.table("same")["value"].to_pylist()
        [1.0, 0.0]
    """

    store: Store | None = None
    policy: Policy = field(default_factory=Policy)
    engine: Engine = field(default_factory=LocalEngine)
    progress: Progress | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.policy, Policy):
            raise SpecError(f"policy is {described(self.policy)}; give a Policy, such as Policy(concurrency=4)")

    @keywords(StepRequest)
    def evaluate(
        self,
        run: Run,
        scorers: Mapping[str, Scorer | Callable[..., Any] | str],
        *,
        judged: KnownScores | KnownRows | None = None,
        identities: Mapping[str, Identity] | None = None,
        sample: RowSample | None = None,
        **options: Unpack[StepOptions],
    ) -> Evaluation:
        """The evaluation of a run by some scorers: an existing one, a continued one or a new one.

        A scorer that fails on every row that it grades gives a `ScorerFailed` warning.

        Args:
            run: a sealed run.
            scorers: name → scorer, function, or the name of a kind, with its defaults.
            judged: scorer → scores that these scorers have given already, see `KnownScores`; or rows of all scorers.
            identities: by name, the identities under which scores are stored, if not the present ones of the scorers.
            sample: the rows to grade; the others are skipped. By default all.
            options: what is repeated or continued: `name`, `fresh`, `retry_failed`, `keep_answers`,
                `repeat_lost`, `resume`, `origin`.

        Raises:
            SpecError: an argument is wrong; nothing was graded.
            Aborted: a budget is spent, or the first questions to a model failed alike; the evaluation stays open.
            KeyboardInterrupt: stopped by the user; the evaluation stays open.
        """
        request = StepRequest(**options)
        grading = _Grading.of(run, scorers, identities or {}, sample)
        check_prices(self.policy, grading.scorers)
        self.engine.check(self.policy)
        store = run.store if self.store is None else self.store
        check_store(store)
        before = named_work(store, "evaluations", request.name)
        earlier = {
            name: EarlierScores(InputCheck(store, identity, name), self.policy, before, grading.scorers[name], name)
            for name, identity in grading.identities.items()
        }
        computed = {  # scores of a recording are never computed again
            name: of
            for name, of in earlier.items()
            if name not in (judged or {}) and not isinstance(grading.scorers[name], StoredScores)
        }
        last = last_attempt(store, "evaluations", grading.spec)
        checked = {
            name: note
            for name, of in computed.items()
            if not request.fresh and (note := of.check(last, partial(grading.open_slots, name)))
        }
        grading = replace(grading, identities={name: of.inputs.identity for name, of in earlier.items()})
        manifest = begin(
            store,
            "evaluations",
            grading.spec,
            name=request.name,
            again=lambda last: (
                not _is_of_recording(store, last, request.origin)
                and (
                    request.fresh
                    or not (grading.pinned and store.manifest("evaluations", last)["pinned"])
                    # asked of all, so that each knows its files that have changed
                    or sum(of.needs_attempt(last, request, f"inputs/{name}") for name, of in computed.items()) > 0
                    or (request.retry_failed and _has_failures(store, last, run))
                )
            ),
            resume=request.resume,
            about=lambda: grading.about(request, earlier),
            repeat_lost=request.repeat_lost,
            origin=request.origin or {},
        )
        total = sum(run.counts.values()) * len(grading.scorers)
        if is_made := "digest" in manifest:
            if budget := self.policy.shared_budget:
                for name, costs in manifest.get("spent", {}).items():
                    budget.count_earlier(_work_name(manifest, name), costs)
            notes = [f"{name}: {note}" for name, note in checked.items()]
            why = "; ".join(["nothing to do: the same responses were graded by the same scorers before", *notes])
            receipt = Receipt(total, kept=total, why=why)
        else:
            note_made(store, "evaluations", manifest["id"])
            with closing(_Job(self, store, grading, manifest, earlier)) as job:
                job.perform(judged or {}, request.repeat_lost)
            why = "; ".join(dict.fromkeys([*job.stale, *grading.describe_unpinned(request)]))
            receipt = replace(job.tally, total=total).receipt(why=why, usage=job.usage)
        evaluation = Evaluation(store, manifest["id"], receipt)
        evaluation.called = request.name
        _warn_of_failed(evaluation)
        if not is_made:
            warn_of_unequal(evaluation, run, grading.scorers)
        return evaluation


def _work_name(manifest: Manifest, scorer: str) -> str:
    """What a budget calls the work of a scorer."""
    return f"evaluations/{manifest['id']}/{scorer}"


def _is_of_recording(store: Store, id: str, origin: Mapping[str, Any] | None) -> bool:
    """Whether an evaluation was begun for the recording from which a request comes: its sealing was interrupted."""
    recording = (origin or {}).get("recording")
    if recording is None:
        return False
    begun_for: dict[str, Any] = store.manifest("evaluations", id)["provenance"].get("origin") or {}
    return bool(begun_for.get("recording") == recording)


@dataclass(frozen=True)
class _Grading:
    """A run and its scorers; sorted by name, so that the order in which they were given changes nothing."""

    run: Run
    scorers: Mapping[str, Scorer]
    identities: Mapping[str, Identity]
    sample: RowSample | None

    @classmethod
    def of(
        cls,
        run: Run,
        scorers: Mapping[str, Scorer | Callable[..., Any] | str],
        known: Mapping[str, Identity],
        sample: RowSample | None,
    ) -> _Grading:
        if not isinstance(run, Run):
            raise SpecError(f"give a Run to evaluate, not {with_article(type(run).__name__)}; see Runner.run")
        if not scorers:
            raise SpecError("an evaluation needs a scorer")
        if not run.store.is_sealed(RUNS, run.id):
            raise SpecError(f"run {run.id} is not finished; resume it before it is evaluated")
        if not isinstance(scorers, Mapping):
            raise SpecError(f"give the scorers as a mapping name → scorer, not {with_article(type(scorers).__name__)}")
        kinds = {check_name(name): as_scorer(name, kind) for name, kind in sorted(scorers.items())}
        for kind in kinds.values():
            tables.scores_schema(kind.columns)  # which refuses columns that cannot be
        return cls(run, kinds, {name: known.get(name) or scorer.identify() for name, scorer in kinds.items()}, sample)

    @property
    def spec(self) -> dict[str, Any]:
        own = None if self.sample is None else self.sample.spec
        samples = {
            name: scorer.sample if isinstance(scorer, StoredScores) else own for name, scorer in self.scorers.items()
        }
        return {
            "run": self.run.digest,
            "run_id": self.run.id,
            "dataset": self.run.manifest["spec"]["dataset"],
            "scorers": {name: identity.spec for name, identity in self.identities.items()},
        } | ({"samples": {name: rule for name, rule in samples.items() if rule}} if any(samples.values()) else {})

    @property
    def pinned(self) -> bool:
        return all(identity.pinned for identity in self.identities.values())

    def unpinned(self, request: StepRequest) -> dict[str, list[str]]:
        """Why scorers are unpinned, by name, with what to declare as it is written in Python or an experiment file."""
        in_experiment = "experiment" in (request.origin or {})
        return {
            name: identity.reasons(in_yaml=in_experiment and isinstance(self.scorers[name], FunctionScorer))
            for name, identity in self.identities.items()
            if identity.unpinned
        }

    def describe_unpinned(self, request: StepRequest) -> Iterator[str]:
        """Why rows were graded that earlier work could have answered, if scorers are unpinned."""
        if first := [f"{name}: {summarize_reasons(reasons)}" for name, reasons in self.unpinned(request).items()]:
            yield f"unpinned, so never reused: {'; '.join(first)}"

    def open_slots(self, name: str, is_done: Callable[[int], bool] = lambda slot: False) -> OpenSlots:
        """The rows that a scorer is still to grade, by default all that are asked for."""
        rows, sample = RowStream(self.run, self.scorers[name], self.sample), self.sample
        units = (unit for unit in rows.take(0, rows.total) if sample is None or sample.chosen[unit.slot])
        return OpenSlots((unit.slot, unit.digest) for unit in units if not is_done(unit.slot))

    def about(self, request: StepRequest, earlier: Mapping[str, EarlierScores]) -> Manifest:
        """The entries of the manifest besides the spec."""
        kept: list[dict[str, Any]] = []
        for name, of in earlier.items():
            scorer = self.scorers[name]
            if not of.is_quick:
                kept += scorer.kept if isinstance(scorer, StoredScores) else of.keeping(request)
        before = next((of.before for of in earlier.values()), None)
        parts = {name: dict(identity.parts) for name, identity in self.identities.items()}
        reasons = [f"{name}: {why}" for name, each in self.unpinned(request).items() for why in each]
        judges = [name for name, scorer in self.scorers.items() if scorer.is_judge]
        rubrics = {name: list(scorer.rubrics) for name, scorer in self.scorers.items() if scorer.rubrics}
        made_of = {"run": self.run.id, "parts": parts, "unpinned": reasons, "ranges": ranges_of(self.scorers)}
        optional = {"judges": judges, "rubrics": rubrics, "before": before}
        made_of |= {name: entry for name, entry in optional.items() if entry}
        facts = facts_of(earlier.values(), kept, fresh=request.fresh)
        return facts | {"provenance": provenance(request.origin) | made_of}


def _has_failures(store: Store, id: str, run: Run) -> bool:
    """Whether a scorer failed where the task had not."""
    counts = store.manifest("evaluations", id).get("counts", {})
    return any(tally.get(FAILED, 0) > run.counts.get(FAILED, 0) for tally in counts.values())


def _warn_of_failed(evaluation: Evaluation) -> None:
    """Warns of scorers that failed on every row that they graded."""
    for name, counts in evaluation.counts.items():
        if SCORED in counts or FAILED not in counts:
            continue
        graded = (row for batch in evaluation.batches(name, ["status", "reason"]) for row in batch.to_pylist())
        outcomes = [(row["status"], row["reason"] or "") for row in graded if row["status"] != SKIPPED]
        asked = [(status, why) for status, why in outcomes if not why.startswith("task: ") and why != NO_ANSWER.reason]
        if {status for status, _ in asked} == {FAILED}:
            every = f"all {len(asked):,} rows" if len(asked) > 1 else "the one row"
            why = asked[0][1].removeprefix("scorer: ")
            warn(f"scorer {name!r} failed on {every}: {why}", ScorerFailed)


RowKey = tuple[int, int]
"""`_index_` and replication of a row."""

KnownScore = tuple[RowKey, list[Any]] | tuple[RowKey, list[Any], tuple[str, Mapping[str, Node]] | None]
KnownScores = Mapping[str, Iterable[KnownScore] | ScoredRows]
"""Scorer → scores in the order of the rows: columns, or each as a record of the journal has it; see `grading`."""


class _Job:
    """One evaluation in progress."""

    def __init__(
        self,
        evaluator: Evaluator,
        store: Store,
        grading: _Grading,
        manifest: Manifest,
        earlier: Mapping[str, EarlierScores],
    ) -> None:
        self.evaluator, self.store, self.manifest, self.earlier = evaluator, store, manifest, earlier
        self.grading, self.run = grading, grading.run
        self.total = sum(self.run.counts.values())
        self.lanes: dict[str, WorkLog] = {}
        self.streams = {name: RowStream(self.run, of, grading.sample) for name, of in grading.scorers.items()}
        self.prepared: list[Scorer] = []
        self.columns: dict[str, tuple[ScoredRows, Sequence[Record], RowStream]] = {}  # see `known_batches`
        self.known: KnownRows | None = None
        self.graders: dict[str, Grader] = {}  # of the scorers that grade while the evaluation is sealed
        self.tally = Tally()  # of all scorers
        self.used: dict[str, RowUsage] = {}  # by scorer
        self.usage: dict[str, Any] | None = None  # of what was graded now, once this process has sealed it

    @property
    def stale(self) -> list[str]:
        """Why rows were graded again whose inputs have changed."""
        return [of.inputs.why for of in self.earlier.values() if of.inputs.why] if self.tally.called else []

    def perform(self, judged: KnownScores | KnownRows, repeat_lost: bool) -> None:
        """Grades every row by every scorer, and seals the evaluation unless another process does.

        Scorers that neither wait nor cost grade at the end, all in one pass and without a journal: to grade a row again
        takes no longer than to write its line.
        """
        for name, scorer in self.grading.scorers.items():
            if isinstance(scorer, StoredScores):
                self.tally.kept += self.total
            elif isinstance(judged, KnownRows):
                self.known, self.graders[name] = judged, self._make_grader(scorer, self.evaluator.policy)
            else:
                self._grade(name, scorer, judged.get(name, ()), repeat_lost)
        if take_turn_to_seal(self._lane(next(iter(self.grading.scorers))), self.is_sealed, self.evaluator.policy):
            self._seal()
        else:
            self.tally.kept += self.total * len(self.graders)

    def _grade(self, name: str, scorer: Scorer, judged: Iterable[KnownScore] | ScoredRows, repeat_lost: bool) -> None:
        """Grades every row of the run by one scorer, unless this is done later."""
        stream, earlier = self.streams[name], self.earlier[name]
        inputs = earlier.inputs
        if earlier.is_quick:
            grader = self._make_grader(scorer, self.evaluator.policy)
            if isinstance(judged, ScoredRows) and stream.has_one_row_per_example:
                return self._grade_others(name, grader, judged)
            if not judged:
                self._prepare(scorer)
                self.graders[name] = grader
                return None
        if isinstance(judged, ScoredRows):
            judged = judged.records()
        lane = self._lane(name)
        lane.refresh()
        if not judged:
            inputs.void_stale(lane, N_FIELDS)
        self.manifest = note_foreign(self.store, self.manifest, lane.n_done, "grade")
        label = name if self.manifest["name"] is None else f"{name} of {shown_name(self.manifest['name'])}"
        tally = Tally(label, lane.slots, kept=lane.n_done)
        policy = self.evaluator.policy.with_defaults(scorer.retries, scorer.transient)
        account = Account(_work_name(self.manifest, name), lane, policy)
        grader = self._make_grader(scorer, policy, account)
        if (sample := self.grading.sample) is not None:
            tally.skipped = take_over(lane, self._lines_outside(lane, stream, sample, grader.targets))
        if judged and lane.n_done < lane.slots:
            tally.reused += take_over(lane, self._known_lines(lane, stream, judged, inputs.observer))
        if lane.n_done < lane.slots:
            find_open = partial(self.grading.open_slots, name, lane.is_done)
            tally.reused += take_over(lane, earlier.lines(self.manifest, find_open, label))
        settle_lost(self.store, self.manifest, lane, inputs, tally, "grade", repeat=repeat_lost, part=name)
        options: dict[str, Any] = {"sealed": self.is_sealed, "observer": inputs.observer}
        of_scorer = f"scorer {name!r}", self.manifest["attempt"], lane, stream.take
        keyed = grader.work(*of_scorer, self.evaluator.engine, tally, **options)
        if lane.n_done < lane.slots:
            self._prepare(scorer)
        self.used[name] = RowUsage(lane.done(0))
        with self._shown(tally), observable(self.evaluator.policy.observe_models):
            keyed.perform()
        self.tally.add(tally)

    def _lane(self, name: str) -> WorkLog:
        """The lane of a scorer."""
        if name not in self.lanes:
            lane = lane_name([*self.grading.scorers].index(name))
            self.lanes[name] = self.store.lane("evaluations", self.manifest["id"], lane, self.total)
        return self.lanes[name]

    def _prepare(self, scorer: Scorer) -> None:
        self.prepared.append(scorer)
        scorer.prepare()

    def _make_grader(self, scorer: Scorer, policy: Policy, account: Account | None = None) -> Grader:
        return Grader(scorer, policy, targets_of(self.run), app_of(self.run), name_of(self.run), account)

    def _grade_others(self, name: str, grader: Grader, judged: ScoredRows) -> None:
        """Grades the rows whose scores are not known; known columns are written when the evaluation is sealed."""
        stream = self.streams[name]
        indices = np.frombuffer(stream.dataset.indices, np.int64)[: self.total]
        known = judged.among(indices)
        others = np.flatnonzero(~np.isin(indices, known.index))
        tally = Tally(name, self.total, reused=len(known))
        with self._shown(tally):
            records = [
                [unit.slot, unit.digest.hex(), self._grade_now(grader, unit, tally)]
                for unit in stream.at(others.tolist())
            ]
        self.columns[name] = known, records, stream
        self.tally.add(tally)

    def _grade_now(self, grader: Grader, unit: Unit, tally: Tally) -> list[list[Any]]:
        """The scores of a row by a scorer that neither waits nor costs; of one outside of the sample that it is not."""
        sample = self.grading.sample
        if sample is not None and not sample.chosen[unit.slot]:
            tally.skipped += 1
            return _unchosen(sample, grader.targets)
        scores = grader.grade_now(unit)
        tally.count(1, unit.response.status != FAILED and FAILED in [score[2] for score in scores], 0)
        return scores

    def _shown(self, tally: Tally) -> Any:
        """A block in which progress is displayed."""
        return self.evaluator.progress(tally) if self.evaluator.progress else nullcontext()

    def is_sealed(self) -> bool:
        return self.store.is_sealed("evaluations", self.manifest["id"])

    def _seal(self) -> None:
        """Writes the tables."""
        id, names = self.manifest["id"], [*self.grading.scorers]
        spent = {name: lane.spent for name, lane in self.lanes.items() if lane.spent}
        with (
            drafted(self.store, "evaluations", id) as draft,
            journalled("evaluations", id),
            calls_in_flight(tables.BATCH_ROWS),
        ):
            written = {}
            for name, scorer in self.grading.scorers.items():
                schema = scorer.schema if isinstance(scorer, StoredScores) else tables.scores_schema(scorer.columns)
                schema = self.columns[name][0].fitted(schema) if name in self.columns else schema
                written[name] = ScoreTable(draft, name, schema, self.used.setdefault(name, RowUsage()))
            self._write_rows(written)
            stored = {name: of for name, of in self.grading.scorers.items() if isinstance(of, StoredScores)}
            for name, scores in stored.items():
                scores.write(written[name], draft)
            digest = ids.digest_of_digests([self._write(written[name], name) for name in names])
            counts = {name: table.counts for name, table in written.items()}
            facts: dict[str, Any] = {"digest": digest.hex(), "counts": counts, "sealed": now()}
            used = {name: rows.total.to_dict() for name, rows in self.used.items() if rows.total}
            used |= {name: scores.usage for name, scores in stored.items() if scores.usage}
            facts |= ({"usage": used} if used else {}) | ({"spent": spent} if spent else {})
            manifest = self.manifest
            for name in names:
                if name not in stored and name not in self.graders:
                    manifest = self.earlier[name].recount(manifest, partial(self.grading.open_slots, name))
            draft.seal(manifest | facts)
        self.usage = {name: rows.made_now.to_dict() for name, rows in self.used.items() if rows.made_now}

    def _write(self, table: ScoreTable, name: str) -> bytes:
        """Writes what is not written yet of the table of a scorer; returns its digest."""
        if name in self.columns:
            for batch, texts in known_batches(*self.columns[name], table.schema):
                table.add_batch(batch, texts)
        elif name not in self.graders and not isinstance(self.grading.scorers[name], StoredScores):
            keys = _keys(self.run)
            for records in self.lanes[name].batches():
                table.add([*islice(keys, len(records))], records)
        return table.finish()

    def _write_rows(self, written: Mapping[str, ScoreTable]) -> None:
        """Writes scores that are known as rows, and grades by the scorers that neither wait nor cost.

        A row is read once for all that see the same of it.
        """
        views: dict[tuple[Any, ...], dict[str, Grade]] = {}
        tally = Tally(shown_name(self.manifest["name"] or ""), self.total * len(self.graders))
        for name, grader in self.graders.items():
            grade = partial(self._grade_now, grader, tally=tally)
            views.setdefault(self.streams[name].view, {})[name] = grade
        with self._shown(tally) if views else nullcontext():
            for grades in views.values():
                stream = self.streams[next(iter(grades))]
                for n in write_rows(written, grades, _keys(self.run), stream, self.known):
                    tally.reused = n * len(grades) - tally.called if self.known else 0
        self.tally.add(tally)

    def close(self) -> None:
        for scorer in self.prepared:
            scorer.close()
        for lane in self.lanes.values():
            lane.close()

    def _lines_outside(
        self, lane: WorkLog, stream: RowStream, sample: RowSample, targets: Sequence[str] | None
    ) -> Iterator[bytes]:
        """The journal's lines of the rows outside of a sample, without those that it has."""
        cells = _unchosen(sample, targets)
        others = (unit for unit in stream.take(0, lane.slots) if not sample.chosen[unit.slot])
        return (line_of(unit, cells) for unit in others if not lane.is_done(unit.slot))

    def _known_lines(
        self, lane: WorkLog, stream: RowStream, judged: Iterable[KnownScore], observer: Observer[Any] | None
    ) -> Iterator[bytes]:
        """The journal's lines of the rows whose scores are known, without those that it has."""
        said = iter(judged)
        score = next(said, None)
        for unit in stream.take(0, lane.slots):
            key = unit.response.index, unit.response.replication
            while score is not None and score[0] < key:
                score = next(said, None)
            if score is not None and score[0] == key and not lane.is_done(unit.slot):
                line = line_of(unit, score[1])
                opened = score[2] if len(score) > 2 else None
                if observer is not None and opened is not None:
                    observer.learn(*opened)
                    line = observer.with_inputs(line, opened[0])
                yield line


def _unchosen(sample: RowSample, targets: Sequence[str] | None) -> list[list[Any]]:
    """The scores of a row outside of a sample."""
    return [[None, target, SKIPPED, sample.reason, *[None] * 5] for target in targets or (None,)]


def find_evaluations_of(store: Store, run: str) -> list[Evaluation]:
    """The sealed evaluations of the run with an id, the newest first."""
    return [Evaluation(store, manifest["id"]) for manifest in find_sealed_from(store, "evaluations", RUNS, run)]


def newest_evaluation_of(store: Store, run: str) -> Evaluation | None:
    """The newest sealed evaluation of the run with an id."""
    return next(iter(find_evaluations_of(store, run)), None)


def _keys(run: Run) -> Iterator[tuple[int, int, int | None]]:
    """(`_index_`, replication, fold) of every row of a run."""
    for batch in run.batches([INDEX, "replication", "fold"]):
        yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)
