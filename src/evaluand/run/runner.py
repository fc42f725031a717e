"""Runs: a task's responses to the examples of a dataset.

A `Runner` makes every call once, even if it is interrupted: finished calls are journalled at once, answers of earlier
runs with the same key (task, seed, example's input, replication) are reused, and a complete run is sealed into tables.
A call that fails becomes a row and does not end the run.

Every call has a slot, ordered by example and then by repeat. Answers of earlier runs are found by a call's key:
everything the task can see of the example, and the number of the repeat.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, nullcontext, suppress
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import chain, islice, repeat
from typing import Any, Final, TypeVar, Unpack

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from evaluand.core import identity as ids
from evaluand.core.errors import EngineError, SpecError, plural, warn
from evaluand.core.fingerprint import Identity, summarize_reasons
from evaluand.core.labels import shown_name
from evaluand.core.near import keywords
from evaluand.core.provenance import provenance
from evaluand.data.dataset import Dataset, Example, ExampleStream
from evaluand.engine.engine import Engine
from evaluand.engine.engines.local import LocalEngine, make_calls
from evaluand.engine.keyed_work import Artifact, KeyedWork, Progress, Receipt, Tally, take_turn_to_seal
from evaluand.engine.observation import machinery
from evaluand.engine.outcome import Outcome as CallOutcome
from evaluand.engine.policy import Policy
from evaluand.engine.repeated import CHECKED, Outcome, Repeatable, check_reuse, is_harmless, note_made
from evaluand.engine.reuse import Answer, InputCheck, OpenSlots
from evaluand.models.account import Account
from evaluand.models.capture import observable
from evaluand.models.preflight import check_prices, find_models
from evaluand.models.prices import Price, default_prices
from evaluand.models.usage_total import RowUsage
from evaluand.run.calling import Call, Calling
from evaluand.run.dataset_fit import prepare
from evaluand.run.kept_answers import EarlierAnswers
from evaluand.run.outputs import identify
from evaluand.run.request import Request, RequestOptions
from evaluand.run.responses import (
    INPUTS,
    LANE,
    N_FIELDS,
    NOT_RECORDED,
    READ,
    RECORDED,
    Response,
    completed,
    completed_keys,
    contents_of,
    failure_in,
    inputs_of,
    key_of,
    responses_of,
    seal,
    seal_recorded,
    skipped_line,
    spans_of,
)
from evaluand.run.task import Recorded, Runnable, Task, as_task
from evaluand.store.journal import WorkLog
from evaluand.store.key_index import KeyIndex
from evaluand.store.ownership import note_foreign
from evaluand.store.store import Manifest, MemoryStore, Store, attempts, begin, check_store, exists, sealed_digests
from evaluand.store.tables import FAILED
from evaluand.trace.values import text_of

T = TypeVar("T")


class Run(Artifact):
    """A run in a store."""

    kind = "runs"
    price: Price | None = None
    """Of the only model that was asked, if the task that was run knows it."""

    def __repr__(self) -> str:
        counts = ", ".join(f"{n} {word}" for word, n in self.counts.items())
        return f"Run({self.id[:12]}, {self.name or 'unnamed'}: {counts})"

    @property
    def counts(self) -> dict[str, int]:
        """Rows by status."""
        return self.manifest["counts"]  # type: ignore[no-any-return]

    @property
    def failures(self) -> dict[str, int]:
        """How many calls failed, by class of error, most frequent first."""
        return self._count_failures(lambda error: True)

    @property
    def failures_to_repeat(self) -> dict[str, int]:
        """The failures that another attempt may mend: not those of recorded outputs."""
        return self._count_failures(lambda error: error["code"] not in (NOT_RECORDED, RECORDED))

    def _count_failures(self, counts: Callable[[dict[str, Any]], bool]) -> dict[str, int]:
        """Failed calls by class of error, most frequent first.

        Args:
            counts: whether an error counts.
        """
        if not self.counts.get(FAILED):
            return {}
        errors = (
            error
            for batch in self.batches(["status", "error"])
            for error in batch.filter(pc.equal(batch.column("status"), FAILED)).column("error").to_pylist()
        )
        return dict(Counter(error["type"] for error in errors if counts(error)).most_common())

    def warn_of_equal_replications(self) -> None:
        """Warns if most examples have the same answer in all replications, which then are hardly further answers."""
        answers: dict[int, list[bytes]] = {}
        for response in self:
            if response.responses is not None:
                answers.setdefault(response.index, []).append(response.content)
        repeated = [contents for contents in answers.values() if len(contents) > 1]
        equal = sum(len({*contents}) == 1 for contents in repeated)
        if 2 * equal > len(repeated):
            name = shown_name(self.called or self.manifest["provenance"]["task"])
            warn(
                f"{name}: all replications of {equal:,} of {plural(len(repeated), 'example')} have the same answer, and"
                " say little more than one; raise the temperature of the model if it takes one, or ask it once"
            )

    @property
    def items(self) -> bool:
        """Whether each response is a list of items."""
        return bool(self.manifest["spec"]["task"].get("items"))

    @property
    def dataset(self) -> Dataset:
        return Dataset.stored(self.store, self.manifest["spec"]["dataset"])

    def batches(self, columns: list[str] | None = None) -> Iterator[pa.RecordBatch]:
        """The table of responses as a stream."""
        return self.store.read("runs", self.id, "responses", columns)

    def table(self) -> pa.Table:
        """The table of responses."""
        return pa.Table.from_batches(self.batches())

    def __iter__(self) -> Iterator[Response]:
        return responses_of(self.batches(list(READ)), self.items)

    def at(self, positions: Sequence[int]) -> Iterator[Response]:
        """The rows at some positions, in ascending order."""
        places = np.asarray(positions, np.int64)
        return responses_of(self.store.read("runs", self.id, "responses", list(READ), at=places), self.items)

    def contents(self) -> Iterator[bytes]:
        """The `content` of each response, in order."""
        return contents_of(self.batches(list(READ)), self.items)

    def spans(self) -> Iterator[pa.RecordBatch]:
        """The table of spans as a stream; empty where the task opened none."""
        return spans_of(self.store, self.manifest)


@dataclass
class Runner:
    """Runs tasks over datasets.

    Args:
        store: where to store runs; in memory by default.
        policy: concurrency, timeout, retries, what stops the run.
        engine: where calls are made; by default in threads and the event loop of this process.

    Example:
        >>> from evaluand.data.dataset import Dataset
        >>> data = Dataset.from_rows([{"input": "a"}, {"input": "b"}])
        >>> run = Runner().run(str.upper, data)
        >>> [response.responses for response in run]
        [['A'], ['B']]
    """

    store: Store = field(default_factory=MemoryStore)
    policy: Policy = field(default_factory=Policy)
    engine: Engine = field(default_factory=LocalEngine)
    progress: Progress | None = None

    @keywords(Request)
    def run(
        self,
        task: Runnable,
        dataset: Any,
        *,
        replications: int | None = None,
        seed: int = 0,
        **options: Unpack[RequestOptions],
    ) -> Run:
        """Run a task over a dataset: return the stored run, continue an unfinished one, or make a new one.

        Args:
            task: a task, a function or an object with `do_run`.
            dataset: a dataset, or whatever `Dataset.from_data` reads: a path, a frame, rows.
            replications: how often each example is run; by default as often as the task declares, or once.
            seed: the number from which the examples' seeds are derived.
            options: what is repeated or continued: `name`, `limit`, `fresh`, `retry_failed`, `resume`, `origin`.

        Raises:
            SpecError: the request is invalid; nothing was called.
            Aborted: a call failed and the policy stops at the first failure, or a budget is spent; the run stays open.
            KeyboardInterrupt: stopped by the user; the run stays open.
        """
        check_store(self.store)
        request = Request(**options)
        if (stored := as_task(task).stored) is not None:
            return self._name_stored(stored, as_task(task), dataset, replications, request)
        calls = Calls.requested(task, dataset, request.limit, replications, seed)
        check_prices(self.policy, calls.task)
        self.engine.check(self.policy)
        calls = replace(calls, dataset=calls.dataset.save(self.store))
        before = self._named_run(request.name)
        inputs = InputCheck(self.store, calls.identity)
        repeated = self._check_reuse(calls, inputs) if not request.fresh else Outcome()
        if not repeated.same:
            calls = replace(calls, identity=replace(calls.identity, pinned=False, unpinned=(repeated.note,)))
        manifest = begin(
            self.store,
            "runs",
            calls.spec,
            name=request.name,
            again=lambda last: self._needs_new_attempt(last, request, calls, inputs),
            resume=request.resume,
            about=lambda: self._manifest_facts(calls, request, inputs, before),
        )
        if "digest" in manifest:
            why = f"nothing to do: the same task, dataset and seed were run on {manifest['created'][:16]}Z"
            why += f"; {repeated.note}" if repeated.note else ""
            receipt = Receipt(calls.total, kept=calls.total)
            if self.policy.shared_budget:
                self.policy.shared_budget.count_earlier(f"runs/{manifest['id']}", manifest.get("spent", {}))
        else:
            note_made(self.store, "runs", manifest["id"])
            receipt = _Job(self, calls, manifest, inputs).perform(before)
            why = self._why(calls, inputs, manifest, before, request, receipt.called)
            why = "; ".join(each for each in (inputs.why if receipt.called else "", why) if each)
        run = Run(self.store, manifest["id"])
        run.called = request.name
        run.receipt = replace(receipt, why=why, failures=run.failures)
        models = [*find_models(calls.task)]
        if calls.replications > 1 and models:
            run.warn_of_equal_replications()
        budget = self.policy.shared_budget
        if budget is not None and budget.is_exceeded:  # by requests whose cost is known only once they are made
            warn(f"{shown_name(request.name or calls.task.name)}: more was spent than the budget: {budget.reason}")
        if len(models) == 1:
            run.price = models[0].find_price(self.policy.prices or default_prices())
        return run

    @keywords(Request)
    def plan(
        self,
        task: Runnable,
        dataset: Any,
        *,
        replications: int | None = None,
        seed: int = 0,
        **options: Unpack[RequestOptions],
    ) -> Receipt:
        """The work that `run` would take now with these arguments: `called` counts the new calls.

        Calls nothing and stores nothing; `why` says what changed since the last run of this name.
        """
        request = Request(**options)
        if (stored := as_task(task).stored) is not None:
            return _stored_receipt(stored)
        calls = Calls.requested(task, dataset, request.limit, replications, seed)
        prepare(calls.task, calls.dataset)
        inputs = InputCheck(self.store, calls.identity)
        last = next(reversed(attempts(self.store, "runs", calls.spec)), None)
        if last is None or self._needs_new_attempt(last, request, calls, inputs):
            receipt = self._planned(calls, None, None, request.fresh)
            why = _FAILURES if request.retry_failed and last is not None else ""
        elif self.store.is_sealed("runs", last):
            return Receipt(calls.total, kept=calls.total)
        else:
            with closing(self.store.lane("runs", last, LANE, calls.total)) as lane:
                lane.refresh()
                receipt, why = self._planned(calls, last, lane, self.store.manifest("runs", last)["fresh"]), ""
        if receipt.why or not receipt.called:
            return receipt
        return replace(
            receipt, why=why or self._changes(self._named_run(request.name), calls, inputs, None, receipt.called)
        )

    def _name_stored(
        self, run: Run, task: Task[Any, Any], dataset: Any, replications: int | None, request: Request
    ) -> Run:
        """A stored run under the name that is asked for; none of its calls is repeated."""
        if not exists(self.store, "runs", run.id):
            raise SpecError(f"run {run.id[:12]} is not in this store; copy it with `evaluand copy`")
        prepare(task, Dataset.from_data(dataset))
        if request.fresh or request.retry_failed:
            warn(f"{shown_name(request.name or task.name)}: a stored run, which cannot be called again")
        if replications not in (None, task.replications):
            warn(f"{shown_name(request.name or task.name)}: a stored run, with {task.replications} replications")
        if request.name is not None:
            self.store.refer(request.name, "runs", run.id)
        named = Run(self.store, run.id, _stored_receipt(run))
        named.called = request.name
        return named

    def _named_run(self, name: str | None) -> str | None:
        """The id of the newest run with a name."""
        return next((ref.id for ref in self.store.named(name) if ref.kind == "runs"), None) if name else None

    def _check_reuse(self, calls: Calls, inputs: InputCheck) -> Outcome:
        """Whether earlier answers of this code are given again the same; no answer of code with a version is asked."""
        facts = calls.identity.observed
        if facts is None or facts.is_versioned or calls.work is None:
            return Outcome()
        last = next(reversed(attempts(self.store, "runs", calls.spec)), None)
        sources = [last] if last else _earlier(self.store, calls, None)

        def read(id: str, slots: np.ndarray) -> Iterator[Repeatable]:
            if "view" in self.store.manifest("runs", id)["spec"]:
                return
            opened = inputs_of(self.store, id)
            prepared = self.store.manifest("runs", id)["provenance"].get("prepared") or 0
            for slot, _, record in completed(self.store, id, slots):
                node, usage, seconds = opened.of(slot), record[9], record[8] / 1e6 + prepared / CHECKED
                if not usage and is_harmless(node, opened.nodes) and inputs.holds(node, opened):
                    yield Repeatable(slot, orjson.loads(orjson.dumps(record[:6])), seconds)

        repeat = partial(repeat_calls, self.store, self.policy, calls.task)
        with suppress(EngineError):  # what is damaged is reported where it would be used
            return check_reuse(self.store, "runs", sources, calls.work, _n_calls, read, repeat, facts.libraries)
        return Outcome()

    def _needs_new_attempt(self, last: str, request: Request, calls: Calls, inputs: InputCheck) -> bool:
        """Whether a new attempt is needed after the last one."""
        if request.fresh or not calls.identity.pinned or inputs.is_stale("runs", last, INPUTS):
            return True
        manifest = self.store.manifest("runs", last)
        if request.keep_answers and "digest" not in manifest and "kept" not in manifest:
            return True
        return request.retry_failed and manifest.get("counts", {}).get(FAILED, 0) > 0

    def _manifest_facts(self, calls: Calls, request: Request, inputs: InputCheck, before: str | None) -> Manifest:
        """The facts of the manifest in addition to the spec, after the task has accepted the dataset."""
        begun = time.monotonic()
        with inputs.observer.preparing() if inputs.observer else nullcontext():
            prepare(calls.task, calls.dataset)
        prepared = time.monotonic() - begun
        identity = calls.identity
        unpinned = identity.reasons(in_yaml="experiment" in (request.origin or {}))
        models = [{"url": model.address, "name": model.name} for model in find_models(calls.task)]
        facts: dict[str, Any] = {
            "task": text_of(calls.task.name),
            "parts": calls.identity.parts,
            "unpinned": unpinned,
            "policy": _policy(self.policy.with_defaults(calls.task.retries, calls.task.transient)),
        }
        facts |= ({"engine": self.engine.facts} if self.engine.facts else {}) | ({"models": models} if models else {})
        facts |= {"prepared": round(prepared, 3)} if prepared > 1 else {}
        facts |= ({"before": before} if before else {}) | (
            {"covered": list(identity.covered)} if identity.covered else {}
        )
        kept: list[dict[str, Any]] = []
        if request.keep_answers:
            kept = earlier_answers(self.store, before, inputs).kept(calls.open_slots(lambda slot: False), calls.total)
        return ({"kept": kept} if kept else {}) | {
            "work": [calls.work] if calls.work and not kept else [],  # kept answers are given by this name alone
            "pinned": identity.pinned,
            "observed": inputs.observer is not None,
            "fresh": request.fresh,
            "provenance": provenance(request.origin) | facts | _defaulted(calls.dataset),
        }

    def _why(
        self, calls: Calls, inputs: InputCheck, manifest: Manifest, before: str | None, request: Request, called: int
    ) -> str:
        """Why there was work to do, in words."""
        if not calls.identity.pinned:
            return _unpinned(manifest["provenance"]["unpinned"])
        if request.retry_failed and manifest["attempt"]:
            return _FAILURES
        return self._changes(before, calls, inputs, manifest["id"], called)

    def _changes(self, before: str | None, calls: Calls, inputs: InputCheck, id: str | None, called: int) -> str:
        """What changed since the previous run of this name, in words."""
        if before is None or before == id:
            return ""
        try:
            earlier = self.store.manifest("runs", before)
        except EngineError:  # it was removed, or is damaged
            return ""
        changes = inputs.explain(earlier) or (_explain_request(earlier["spec"], calls.spec) if called else [])
        return "; ".join(changes[:5])

    def _planned(self, calls: Calls, last: str | None, lane: WorkLog | None, fresh: bool) -> Receipt:
        """The work that remains after what is in the lane of the last attempt; a fresh one reuses nothing."""
        inputs = InputCheck(self.store, calls.identity)
        stale = inputs.stale(lane, N_FIELDS) if lane else ()
        n_done = lane.n_done - len(stale) if lane else 0
        open_slots = calls.open_slots(lambda slot: lane is not None and lane.is_done(slot) and slot not in stale)
        missing = open_slots.left
        earlier = [] if fresh else _earlier(self.store, calls, last)
        reused = sum(1 for _ in _reusable(self.store, calls, inputs, earlier, open_slots))
        why = "" if calls.identity.pinned else _unpinned(calls.identity.unpinned)
        return Receipt(calls.total, missing - reused, reused, n_done, why, skipped=calls.total - n_done - missing)


def _stored_receipt(run: Run) -> Receipt:
    total = sum(run.counts.values())
    return Receipt(total, kept=total, why="nothing to do: the run is stored", failures=run.failures)


_FAILURES: Final = "failures tried again"


def _explain_request(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """What changed between two requests for the same code, in words."""
    one, other = old["task"], new["task"]
    found = [f"{name} of the task changed" for name in sorted({*one, *other}) if one.get(name) != other.get(name)]
    found += [f"another {name}" for name in ("seed", "view") if old.get(name) != new.get(name)]
    return found + (["examples changed"] if old["dataset"] != new["dataset"] else [])


def _earlier(store: Store, calls: Calls, id: str | None) -> list[str]:
    """The other runs of the same work."""
    return [each for each in (store.find("runs", calls.work) if calls.work else ()) if each != id]


def _reusable(
    store: Store, calls: Calls, inputs: InputCheck, sources: Sequence[str], open_slots: OpenSlots
) -> Iterator[bytes]:
    """The journal lines of the open slots of a run that earlier runs of the same work, the sources, fill."""

    def read(source: str, slots: np.ndarray | None) -> Iterator[Answer]:
        if inputs.may_use("runs", source):
            yield from inputs.same(completed(store, source, slots), inputs_of(store, source))

    if not sources or not open_slots.left:
        return
    digests = sealed_digests(store, "runs", sources)
    index = KeyIndex(store, f"runs/{calls.work}", digests, lambda source: completed_keys(store, source))
    yield from open_slots.fill_from(index, read, inputs.observer)


def _unpinned(reasons: Sequence[str]) -> str:
    return f"unpinned, so never reused: {summarize_reasons(reasons)}"


def _n_calls(manifest: Manifest) -> int:
    return sum(manifest["counts"].values())


def earlier_answers(store: Store, run: str | None, inputs: InputCheck) -> EarlierAnswers:
    """The answers of a run, and of those that its name meant before."""
    return EarlierAnswers.of(
        store,
        "runs",
        "answers",
        run,
        lambda id: [(completed(store, id), inputs_of(store, id))],
        inputs,
        lambda manifest: manifest["spec"]["task"],
    )


def repeat_calls(
    store: Store, policy: Policy, task: Task[Any, Any], id: str, slots: Sequence[int]
) -> dict[int, list[Any]]:
    """Makes some calls of a stored run again; by slot, the answers as the journal has them."""
    manifest = store.manifest("runs", id)
    spec, dataset = manifest["spec"], Dataset.stored(store, manifest["spec"]["dataset"])
    calls = Calls(task, identify(task), dataset, spec["examples"], spec["replications"], spec["seed"])
    policy = replace(policy, retries=0, budget=None)
    lane = MemoryStore().lane("runs", id, LANE, calls.total)
    recipe = Calling(task, calls.seed, manifest["attempt"], policy, Account(f"runs/{id}", lane, policy)).recipe
    answers: dict[int, list[Any]] = {}

    def keep(call: Call, outcome: CallOutcome) -> None:
        answers[call.slot] = orjson.loads(recipe.line(call, outcome)[0])[1:7]

    stream = ExampleStream(dataset)
    prepare(task, dataset)
    try:
        with machinery():
            make_calls(
                (call for slot in slots for call in calls.between(stream, slot, slot + 1)), recipe.call, keep, policy
            )
    finally:
        task.close()
    return answers


class _Job:
    """One run in progress."""

    def __init__(self, runner: Runner, calls: Calls, manifest: Manifest, inputs: InputCheck) -> None:
        self.inputs = inputs
        self.runner, self.calls, self.task, self.manifest = runner, calls, calls.task, manifest
        self.store, self.id = runner.store, manifest["id"]
        self.stream = ExampleStream(calls.dataset)
        self.lane = self.store.lane("runs", self.id, LANE, calls.total)
        self.tally = Tally(shown_name(manifest["name"] or calls.task.name), calls.total)
        self.account = Account(f"runs/{self.id}", self.lane, runner.policy)
        self.calling = Calling(calls.task, calls.seed, manifest["attempt"], runner.policy, self.account)

    def perform(self, before: str | None) -> Receipt:
        """Makes the calls that are missing, and seals the run.

        Args:
            before: the run that the name meant before.
        """
        try:
            self.lane.refresh()
            self.inputs.void_stale(self.lane, N_FIELDS)
            self.tally.kept = self.lane.n_done
            self.manifest = note_foreign(self.store, self.manifest, self.lane.n_done, "call")
            outputs = self._recorded()
            if outputs is not None:
                return self._write(outputs)
            if not self.manifest["fresh"] and self.lane.n_done < self.lane.slots:
                self._reuse()
            self._settle_changes(before)
            used = RowUsage(self.lane.done(0))
            progress = self.runner.progress(self.tally) if self.runner.progress else nullcontext()
            with progress, observable(self.runner.policy.observe_models):
                self._work().perform()
            if is_mine := take_turn_to_seal(self.lane, self.is_sealed, self.runner.policy):
                manifest = self.manifest | ({"spent": self.lane.spent} if self.lane.spent else {})
                indices, replications = self.calls.dataset.indices, self.calls.replications
                seal(self.store, manifest, self.lane.records(), indices, replications, used)
        finally:
            self.task.close()
            self.lane.close()
        made_now = used.made_now.to_dict() if used.made_now else {}
        return self._receipt(made_now if is_mine else None)

    def _receipt(self, usage: Mapping[str, Any] | None) -> Receipt:
        tally = self.tally
        return Receipt(
            tally.total,
            tally.called,
            tally.reused,
            tally.kept,
            skipped=tally.skipped,
            failed=tally.failed,
            retried=tally.retried,
            usage=usage,
        )

    def _recorded(self) -> Recorded | None:
        """The outputs of all calls where none has to be made; None if some are made already, or must be."""
        if self.lane.n_done or self.inputs.observer is not None or not {*self.task.reads} <= {"index", "id"}:
            return None
        if not self.manifest["fresh"] and self._earlier:
            return None  # row by row, so that what is reused is taken over and counted
        return self.task.recorded(self.calls.dataset, self.calls.examples, self.calls.replications)

    def _write(self, recorded: Recorded) -> Receipt:
        """Write recorded outputs as tables, without a journal: if this is interrupted, they can be read again."""
        with self.runner.progress(self.tally) if self.runner.progress else nullcontext():
            seal_recorded(self.store, self.manifest, self.calls.keys(), recorded, self.tally)
        return self._receipt({})

    def _reuse(self) -> None:
        """Reuse the answers that earlier runs of the same work have completed, each for one row."""
        if not self._earlier:
            return
        open_slots = self.calls.open_slots(self.lane.is_done)
        for line in _reusable(self.store, self.calls, self.inputs, self._earlier, open_slots):
            self.lane.append(line)
            self.tally.reused += 1
        self.lane.refresh()

    def _settle_changes(self, before: str | None) -> None:
        """Takes over the answers from before a change of code that are kept, or says what repeating them costs."""
        earlier = earlier_answers(self.store, before, self.inputs)
        if self.lane.n_done == self.lane.slots or not (earlier.changes or "kept" in self.manifest):
            return
        open_slots = self.calls.open_slots(self.lane.is_done)
        for kept in self.manifest.get("kept", ()):
            for line in replace(earlier, ids=kept["from"]).lines(open_slots, self.inputs.observer):
                self.lane.append(line)
                self.tally.reused += 1
            self.lane.refresh()
        if not self.manifest["fresh"] and "kept" not in self.manifest:
            earlier.warn_of_cost(self.tally.label, open_slots, lambda manifest: manifest.get("usage"))

    @cached_property
    def _earlier(self) -> list[str]:
        """The other runs of the same work, when this one began."""
        return _earlier(self.store, self.calls, self.id)

    def _work(self) -> KeyedWork[Call]:
        policy = self.runner.policy.with_defaults(self.task.retries, self.task.transient)
        return KeyedWork(
            self.lane,
            lambda start, stop: self.calls.between(self.stream, start, stop),
            self.calling.recipe,
            policy,
            self.runner.engine,
            self.tally,
            sealed=self.is_sealed,
            settled=self._skipped_line if self.calls.may_skip else None,
            observer=self.inputs.observer,
            failure=failure_in,
            stop_reason=self.account.stop_reason,
        )

    def is_sealed(self) -> bool:
        return self.store.is_sealed("runs", self.id)

    def _skipped_line(self, call: Call) -> bytes | None:
        """The line of a skipped call; None if the call is to be made."""
        if not self.calls.skips(call.example, call.replication):
            return None
        return skipped_line(call.slot, call.digest, self.calling.fold(call))


def _defaulted(dataset: Dataset) -> dict[str, Any]:
    """How many rows of the dataset the view's default replaced, and why."""
    counts = dataset.view_counts
    if counts is None or not counts.defaulted:
        return {}
    return {"defaulted": {"rows": counts.defaulted, "of": counts.read, "reasons": dict(counts.reasons)}}


def _policy(policy: Policy) -> dict[str, Any]:
    limits: dict[str, Any] = {"concurrency": policy.concurrency, "timeout": policy.timeout, "retries": policy.retries}
    if not policy.observe_models:
        limits["observe_models"] = False
    return limits | {
        name: str(value) for name in ("rate", "budget", "prices") if (value := getattr(policy, name)) is not None
    }


MAX_CALLS = 1 << 28  # 14 bytes of memory each


@dataclass(frozen=True)
class Calls:
    """All calls of a task over the first examples of a dataset.

    Attributes:
        identity: of the task.
        examples: the number of examples, from the first on.
        replications: the number of repeats of each.
        seed: from which the examples' seeds are derived.
    """

    task: Task[Any, Any]
    identity: Identity
    dataset: Dataset
    examples: int
    replications: int
    seed: int

    @classmethod
    def requested(cls, task: Runnable, dataset: Any, limit: int | None, replications: int | None, seed: int) -> Calls:
        """The calls for the arguments of `Runner.run`.

        Raises:
            SpecError: the calls cannot be made.
        """
        task = as_task(task)
        dataset = Dataset.from_data(dataset)
        if dataset.view_spec is not None and "dataset" in task.reads:
            raise SpecError(
                f"task {task.name!r} reads the dataset's columns, which a view does not change; run it without"
            )
        times = _replications(task, replications)
        calls = cls(task, identify(task), dataset, min(limit or len(dataset), len(dataset)), times, seed)
        if calls.total > MAX_CALLS:
            size = f"{calls.examples:,} examples × {times:,} replications"
            raise SpecError(f"{size} exceed the {MAX_CALLS:,} calls that a run can hold; make several runs")
        return calls

    @property
    def total(self) -> int:
        return self.examples * self.replications

    @property
    def spec(self) -> dict[str, Any]:
        """The identity of the run."""
        data = {"dataset": self.dataset.id, "examples": self.examples, "replications": self.replications}
        view = self.dataset.view_spec
        return self._core | data | ({} if view is None else {"view": view})

    @property
    def work(self) -> str | None:
        """The identity of the work without its data; None if nothing may be reused."""
        return ids.digest(self._core).hex() if self.identity.pinned else None

    @property
    def _core(self) -> dict[str, Any]:
        return {"task": self.identity.spec, "seed": self.seed}

    @property
    def may_skip(self) -> bool:
        """Whether the task may skip calls."""
        return type(self.task).skips is not Task.skips

    def between(self, stream: ExampleStream, start: int, stop: int) -> Iterator[Call]:
        """The calls of the slots start … stop."""
        times = self.replications
        for example in stream.take(start // times, -(-stop // times)):
            digest = self._visible_digest(example)
            for replication in range(times):
                slot = example.position * times + replication
                if start <= slot < stop:
                    yield Call(slot, example, replication, digest)

    def keys(self) -> tuple[Iterator[int], Iterator[int], Iterator[bytes]]:
        """Of the calls, in order, the examples' `_index_`, the repeats and the digests of what the task can see.

        For tasks that read at most the index and the id.
        """
        times = self.replications
        indices = islice(self.dataset.indices, self.examples)
        digests = islice(self.dataset.input_digests(self.task.reads), self.examples)
        if times == 1:
            return indices, repeat(0, self.examples), digests
        return (
            _repeat_each(indices, times),
            chain.from_iterable(repeat(range(times), self.examples)),
            (_repeat_each(digests, times)),
        )

    def open_slots(self, is_done: Callable[[int], bool]) -> OpenSlots:
        """The slots of the calls that are still to be made."""
        return OpenSlots(self._missing(is_done))

    def _missing(self, is_done: Callable[[int], bool]) -> Iterator[tuple[int, bytes]]:
        for example in self.dataset.examples(0, self.examples):
            first = example.position * self.replications
            open_ = (r for r in range(self.replications) if not is_done(first + r))
            missing = [r for r in open_ if not self.skips(example, r)]
            if missing:
                digest = self._visible_digest(example)
                yield from ((first + r, key_of(digest, r)) for r in missing)

    def skips(self, example: Example, replication: int) -> bool:
        """Whether the task skips a call."""
        return self.task.skips(example.index, example.id, replication)

    @cached_property
    def _reads(self) -> tuple[str, ...]:
        return tuple(self.task.reads)

    def _visible_digest(self, example: Example) -> bytes:
        """A digest of everything the task can see of an example."""
        if not self._reads:
            return example.input_digest
        more = (self.dataset.id if name == "dataset" else getattr(example, name) for name in self._reads)
        return ids.digest([example.input, *more])


def _repeat_each(values: Iterator[T], times: int) -> Iterator[T]:
    return (value for value in values for _ in range(times))


def _replications(task: Task[Any, Any], requested: int | None) -> int:
    """How often each example is run."""
    own = task.replications
    if requested is None:
        return own or 1
    if requested < 1:
        raise SpecError("replications must be at least 1")
    if own is not None and requested != own:
        raise SpecError(
            f"task {task.name!r} repeats each example {own} times; set replications: {own}, not {requested}"
        )
    return requested
