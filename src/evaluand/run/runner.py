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
from contextlib import closing, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final, Unpack

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evaluand.core.errors import EngineError, SpecError, plural, warn
from evaluand.core.fingerprint import summarize_reasons
from evaluand.core.labels import shown_name
from evaluand.core.near import keywords
from evaluand.core.provenance import provenance
from evaluand.data.dataset import Dataset, ExampleStream
from evaluand.engine.engine import Engine
from evaluand.engine.engines.local import LocalEngine
from evaluand.engine.keyed_work import Artifact, KeyedWork, Progress, Receipt, Tally, take_over, take_turn_to_seal
from evaluand.engine.policy import Policy
from evaluand.engine.reuse import InputCheck, OpenSlots
from evaluand.models.account import Account
from evaluand.models.capture import observable
from evaluand.models.preflight import check_prices, find_models
from evaluand.models.prices import Price, default_prices
from evaluand.models.usage_total import RowUsage
from evaluand.run.calling import Call, Calling
from evaluand.run.calls import Calls
from evaluand.run.dataset_fit import prepare
from evaluand.run.earlier_calls import EarlierCalls
from evaluand.run.earlier_work import MOST_CHANGES, facts_of, kept_in, last_attempt, named_work, note_made, sources_in
from evaluand.run.lost_answers import settle_lost
from evaluand.run.request import Request, RequestOptions
from evaluand.run.responses import (
    INPUTS,
    LANE,
    N_FIELDS,
    NOT_RECORDED,
    READ,
    RECORDED,
    Response,
    contents_of,
    failure_in,
    responses_of,
    seal,
    seal_recorded,
    skipped_line,
    spans_of,
)
from evaluand.run.task import Recorded, Runnable, Task, as_task
from evaluand.store.ownership import note_foreign
from evaluand.store.store import Manifest, MemoryStore, Store, begin, check_store, describe_damage, exists, give_name
from evaluand.store.tables import FAILED, Rows
from evaluand.trace.values import text_of


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
        rows = Rows(at=np.asarray(positions, np.int64))
        return responses_of(self.store.read("runs", self.id, "responses", list(READ), rows), self.items)

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
            options: what is repeated or continued: `name`, `limit`, `fresh`, `retry_failed`,
                `keep_answers`, `repeat_lost`, `resume`, `origin`.

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
        named, calls = calls.dataset.name, replace(calls, dataset=calls.dataset.save(self.store))
        earlier = self._earlier(calls, request)
        last = last_attempt(self.store, "runs", calls.spec)
        checked = "" if request.fresh else earlier.check(last, calls.open_slots)
        calls = replace(calls, identity=earlier.inputs.identity)
        manifest = begin(
            self.store,
            "runs",
            calls.spec,
            name=request.name,
            again=lambda last: self._needs_attempt(last, request, earlier),
            resume=request.resume,
            about=lambda: self._manifest_facts(calls, request, earlier),
            repeat_lost=request.repeat_lost,
            origin=request.origin or {},
            dataset=named,
        )
        if "digest" in manifest:
            why = [f"nothing to do: the same task, dataset and seed were run on {manifest['created'][:16]}Z", checked]
            why += ["--fresh (fresh=True) makes again what was kept"] if "kept" in manifest else []
            receipt = Receipt(calls.total, kept=calls.total)
            if self.policy.shared_budget:
                self.policy.shared_budget.count_earlier(f"runs/{manifest['id']}", manifest.get("spent", {}))
        else:
            note_made(self.store, "runs", manifest["id"])
            receipt = _Job(self, calls, manifest, earlier).perform(request.repeat_lost)
            why = [
                earlier.inputs.why if receipt.called else "",
                self._why(calls, earlier, manifest, request, receipt.called),
                checked if receipt.reused and calls.identity.pinned else "",
            ]
        run = Run(self.store, manifest["id"])
        run.called = request.name
        run.receipt = replace(receipt, why="; ".join(filter(None, why)), failures=run.failures)
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
        earlier = self._earlier(calls, request)
        last = last_attempt(self.store, "runs", calls.spec)
        is_stale = (
            last is None
            or bool(describe_damage(self.store, "runs", last))
            or self._needs_attempt(last, request, earlier)
        )
        id = None if is_stale else last
        if id and self.store.is_sealed("runs", id):
            return Receipt(calls.total, kept=calls.total)
        manifest = self.store.manifest("runs", id) if id else {"fresh": request.fresh}
        open_slots, n_done = self._find_open(calls, earlier, id)
        missing, sources = open_slots.left, [] if manifest["fresh"] else earlier.others(id)
        called = missing - sum(1 for _ in earlier.reused(open_slots, sources))
        offered = kept_in(manifest, earlier.what) if id else [] if request.fresh else earlier.offered
        kept = earlier.count_kept(open_slots, sources_in(offered))
        if keeps := kept > 0 and (id is not None or request.keep_answers):
            called -= kept
        receipt = Receipt(calls.total, called, missing - called, n_done, skipped=calls.total - n_done - missing)
        if not calls.identity.pinned:
            why = [_unpinned(calls.identity.unpinned)]
        elif request.retry_failed and last != id:
            why = [_FAILURES]
        else:
            why = [self._changes(earlier, calls, id, called)] if called else []
        if keeps:
            why.append(f"{plural(kept, 'answer')} kept from before a change: {'; '.join(earlier.changes)}")
        elif kept:
            why.append(f"--keep-answers (keep_answers=True) takes {plural(kept, 'answer')} over")
        return replace(receipt, why="; ".join(filter(None, why)))

    def _find_open(self, calls: Calls, earlier: EarlierCalls, id: str | None) -> tuple[OpenSlots, int]:
        """The slots that a run, open or not yet begun, would fill, and the number of those that are done."""
        if id is None:
            return calls.open_slots(), 0
        with closing(self.store.lane("runs", id, LANE, calls.total)) as lane:
            lane.refresh()
            stale = {*earlier.inputs.stale(lane, N_FIELDS)}
            return calls.open_slots(lambda slot: lane.is_done(slot) and slot not in stale), lane.n_done - len(stale)

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
        give_name(self.store, request.name, "runs", run.id, request.origin or {}, Dataset.from_data(dataset).name)
        named = Run(self.store, run.id, _stored_receipt(run))
        named.called = request.name
        return named

    def _earlier(self, calls: Calls, request: Request) -> EarlierCalls:
        """The earlier calls of the same task, and of what the name means now."""
        before = named_work(self.store, "runs", request.name)
        return EarlierCalls(InputCheck(self.store, calls.identity), self.policy, before, calls)

    def _needs_attempt(self, last: str, request: Request, earlier: EarlierCalls) -> bool:
        if earlier.needs_attempt(last, request, INPUTS):
            return True
        return request.retry_failed and self.store.manifest("runs", last).get("counts", {}).get(FAILED, 0) > 0

    def _manifest_facts(self, calls: Calls, request: Request, earlier: EarlierCalls) -> Manifest:
        """The facts of the manifest in addition to the spec, after the task has accepted the dataset."""
        begun, inputs = time.monotonic(), earlier.inputs
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
        facts |= {"before": earlier.before} if earlier.before else {}
        facts |= {"covered": list(identity.covered)} if identity.covered else {}
        kept = earlier.keeping(request)
        if request.keep_answers and not kept:
            warn(f"{shown_name(request.name or calls.task.name)}: its name has no answers from before a change to keep")
        made_of = provenance(request.origin) | facts | _defaulted(calls.dataset)
        return facts_of([earlier], kept, fresh=request.fresh) | {"provenance": made_of}

    def _why(self, calls: Calls, earlier: EarlierCalls, manifest: Manifest, request: Request, called: int) -> str:
        """Why there was work to do, in words."""
        if not calls.identity.pinned:
            return _unpinned(manifest["provenance"]["unpinned"])
        if request.retry_failed and manifest["attempt"]:
            return _FAILURES
        return self._changes(earlier, calls, manifest["id"], called)

    def _changes(self, earlier: EarlierCalls, calls: Calls, id: str | None, called: int) -> str:
        """What changed since the previous run of this name, in words."""
        if earlier.before is None or earlier.before == id:
            return ""
        try:
            before = self.store.manifest("runs", earlier.before)
        except EngineError:  # it was removed, or is damaged
            return ""
        changes = earlier.inputs.explain(before) or (_explain_request(before["spec"], calls.spec) if called else [])
        return "; ".join(changes[:MOST_CHANGES])


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


def _unpinned(reasons: Sequence[str]) -> str:
    return f"unpinned, so never reused: {summarize_reasons(reasons)}"


class _Job:
    """One run in progress."""

    def __init__(self, runner: Runner, calls: Calls, manifest: Manifest, earlier: EarlierCalls) -> None:
        self.earlier, self.inputs = earlier, earlier.inputs
        self.runner, self.calls, self.task, self.manifest = runner, calls, calls.task, manifest
        self.store, self.id = runner.store, manifest["id"]
        self.stream = ExampleStream(calls.dataset)
        self.lane = self.store.lane("runs", self.id, LANE, calls.total)
        self.tally = Tally(shown_name(manifest["name"] or calls.task.name), calls.total)
        self.account = Account(f"runs/{self.id}", self.lane, runner.policy)
        self.calling = Calling(calls.task, calls.seed, manifest["attempt"], runner.policy, self.account)

    def perform(self, repeat_lost: bool) -> Receipt:
        """Makes the calls that are missing, and seals the run."""
        try:
            self.lane.refresh()
            self.inputs.void_stale(self.lane, N_FIELDS)
            self.tally.kept = self.lane.n_done
            self.manifest = note_foreign(self.store, self.manifest, self.lane.n_done, "call")
            outputs = self._recorded()
            if outputs is not None:
                return self._write(outputs)
            if self.lane.n_done < self.lane.slots:
                find_open = partial(self.calls.open_slots, self.lane.is_done)
                self.tally.reused = take_over(self.lane, self.earlier.lines(self.manifest, find_open, self.tally.label))
            inputs = self.earlier.inputs
            settle_lost(self.store, self.manifest, self.lane, inputs, self.tally, "answer", repeat=repeat_lost)
            used = RowUsage(self.lane.done(0))
            progress = self.runner.progress(self.tally) if self.runner.progress else nullcontext()
            with progress, observable(self.runner.policy.observe_models):
                self._work().perform()
            if is_mine := take_turn_to_seal(self.lane, self.is_sealed, self.runner.policy):
                spent = {"spent": self.lane.spent} if self.lane.spent else {}
                manifest = self.earlier.recount(self.manifest, self.calls.open_slots) | spent
                indices, replications = self.calls.dataset.indices, self.calls.replications
                seal(self.store, manifest, self.lane.batches(), indices, replications, used)
        finally:
            self.task.close()
            self.lane.close()
        made_now = used.made_now.to_dict() if used.made_now else {}
        return self.tally.receipt(usage=made_now if is_mine else None)

    def _recorded(self) -> Recorded | None:
        """The outputs of all calls where none has to be made; None if some are made already, or must be."""
        if self.lane.n_done or self.inputs.observer is not None or not {*self.task.reads} <= {"index", "id"}:
            return None
        if not self.manifest["fresh"] and self.earlier.others(self.id):
            return None  # row by row, so that what is reused is taken over and counted
        return self.task.recorded(self.calls.dataset, self.calls.examples, self.calls.replications)

    def _write(self, recorded: Recorded) -> Receipt:
        """Write recorded outputs as tables, without a journal: if this is interrupted, they can be read again."""
        with self.runner.progress(self.tally) if self.runner.progress else nullcontext():
            seal_recorded(self.store, self.manifest, self.calls.keys(), recorded, self.tally)
        return self.tally.receipt(usage={})

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
