"""The matcher: compares the responses of several runs by a judge, and stores the matches.

Each judgement is keyed work, as each score is: several are made at once, a stopped matcher continues where it was, and
what the same judge has said about the same responses to the same example, in the same order, is reused from every
earlier set of matches. So a further run costs only the pairs with it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, nullcontext
from dataclasses import dataclass, field
from typing import Any, Unpack

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evaluand.core import identity as ids
from evaluand.core.errors import EngineError, SpecError, plural, warn
from evaluand.core.fingerprint import summarize_reasons
from evaluand.core.labels import short_labels
from evaluand.core.near import keywords
from evaluand.core.provenance import provenance
from evaluand.engine.engine import Engine
from evaluand.engine.engines.local import InlineEngine, LocalEngine
from evaluand.engine.keyed_work import KeyedWork, Progress, Receipt, Tally
from evaluand.engine.policy import Policy
from evaluand.engine.reuse import Answer, InputCheck, Inputs, OpenSlots
from evaluand.evaluation.comparison_scorers import ComparisonScorer, as_comparison_scorer
from evaluand.evaluation.evaluator import ScorerFailed
from evaluand.evaluation.grading import N_FIELDS
from evaluand.evaluation.scorer import described
from evaluand.evaluation.units import GATHER, batched
from evaluand.matches.judging import (
    ABSENT,
    SPANS_TABLE,
    ComparisonGrader,
    Entrants,
    Judgements,
    JudgeView,
    Presentations,
    Presenter,
    Round,
    check_labels,
    check_one_dataset,
    check_presentation,
    failure_in_judgement,
    match_batches,
    read_open,
    read_sealed,
    seal_matches,
)
from evaluand.matches.matches import JUDGE_FAILED, Matches, describe_left_out
from evaluand.matches.schedule import Field, Pairs, Played, Schedule, as_schedule
from evaluand.models.account import Account
from evaluand.models.preflight import check_prices
from evaluand.run.kind import RUNS
from evaluand.run.lost_answers import settle_lost
from evaluand.run.request import Request, RequestOptions
from evaluand.run.responses import span_row
from evaluand.run.runner import Run
from evaluand.store import tables
from evaluand.store.journal import WorkLog
from evaluand.store.ownership import note_foreign
from evaluand.store.store import Draft, Manifest, Store, begin, check_store, journalled
from evaluand.store.tables import MATCHES


@dataclass
class Matcher:
    """Compares runs by a judge.

    Args:
        store: where matches are stored; default: the store of the runs.
        policy: concurrency, timeout and retries of judges that are not cheap.
        progress: shows the progress.

    Example:
        >>> from evaluand import Dataset, Runner
        >>> data = Dataset.from_rows([{"input": "a"}, {"input": "bc"}])
        >>> runner = Runner()
        >>> once, twice = runner.run(str.upper, data), runner.run(lambda text: text * 2, data)
        >>> shorter = lambda first, second: "first" if len(first) < len(second) else "second"
        >>> matches = Matcher().match([once, twice], shorter, labels=["once", "twice"])
        >>> matches.table(["order", "outcome"]).to_pylist()[:2]
        [{'order': 'ab', 'outcome': 1.0}, {'order': 'ba', 'outcome': 1.0}]
    """

    store: Store | None = None
    policy: Policy = field(default_factory=Policy)
    engine: Engine = field(default_factory=LocalEngine)
    progress: Progress | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.policy, Policy):
            raise SpecError(f"policy is {described(self.policy)}; give a Policy, such as Policy(concurrency=4)")

    @keywords(Request)
    def match(
        self,
        runs: Sequence[Run],
        judge: ComparisonScorer | Callable[..., Any] | str,
        *,
        schedule: Schedule | str | None = None,
        orders: str = "both",
        seed: int = 0,
        labels: Sequence[str] | None = None,
        **options: Unpack[RequestOptions],
    ) -> Matches:
        """The matches of some runs by a judge: existing ones, continued ones or new ones.

        Args:
            runs: sealed runs over one dataset; with several answers to an example, the first is compared.
            judge: a comparison scorer, a function of two responses, or the name of a kind.
            schedule: which pairs are compared on which examples; default: all pairs on all examples.
            orders: `both` to judge each pair in both orders; `random` to judge it in one, by the seed.
            seed: of random orders and of schedules that choose at random.
            labels: of the systems; by default the names of the runs without the part that all share.
            options: what is repeated or continued: `name`, `limit`, `fresh`, `retry_failed`, `resume`, `origin`.

        Raises:
            SpecError: an argument is wrong; nothing was judged.
            Aborted: a budget is spent, or the first judgements failed alike; the matches stay open.
            KeyboardInterrupt: stopped by the user; the matches stay open.
        """
        request = Request(**options)
        pairing = _Pairing(runs, judge, as_schedule(schedule), orders, seed, labels, request.limit)
        check_prices(self.policy, pairing.judge)
        self.engine.check(self.policy)
        store = pairing.runs[0].store if self.store is None else self.store
        check_store(store)
        if (left_out := describe_left_out(pairing.runs, pairing.labels, pairing.limit)) is not None:
            warn(left_out)
        where = {"resume": request.resume, "origin": request.origin}
        recorded: Matches | None = pairing.judge.read_matches(
            pairing.runs, pairing.labels, name=request.name, limit=pairing.limit, **where
        )
        if recorded is not None:
            return recorded
        inputs = InputCheck(store, pairing.identity, "judge")
        manifest = begin(
            store,
            "matches",
            pairing.spec,
            name=request.name,
            again=lambda last: (
                request.fresh
                or not (pairing.identity.pinned and store.manifest("matches", last)["pinned"])
                or inputs.is_stale("matches", last, _INPUTS)
                or (request.retry_failed and store.is_sealed("matches", last) and bool(Matches(store, last).failures))
            ),
            resume=request.resume,
            about=lambda: pairing.about(request, inputs),
            repeat_lost=request.repeat_lost,
            origin=request.origin,
        )
        if "digest" in manifest:
            matches = Matches(store, manifest["id"])
            if budget := self.policy.shared_budget:
                for number, costs in manifest.get("spent", {}).items():
                    budget.count_earlier(f"matches/{manifest['id']}/{number}", costs)
            why = "nothing to do: the same judge compared the same responses before"
            if matches.failures:
                why += "; retry_failed repeats what failed"
            return _with_receipt(matches, Tally(), why, {})
        with closing(pairing.judge):
            job = _Job(self, store, pairing, manifest, inputs, request.repeat_lost)
            job.perform()
            usage = job.seal()
        return _with_receipt(Matches(store, manifest["id"]), job.tally, job.why, usage)


_INPUTS = "inputs"


def check_pairing(judge: ComparisonScorer, schedule: Schedule, orders: Any, seed: Any) -> None:
    """Refuses a schedule, orders or a seed that the judge cannot follow.

    Raises:
        SpecError: says what to leave out.
    """
    check_presentation(orders, seed)
    if judge.compares_all and schedule.kind != "all_pairs":
        raise SpecError(f"a judge of all responses at once compares all pairs; leave out {schedule.kind}")
    if not judge.has_pairs:
        return
    if schedule.kind != "all_pairs":
        raise SpecError(f"the judge {judge.kind} has the pairs that were judged; leave out {schedule.kind}")
    if orders != "both" or seed != 0:
        option = f"orders: {orders}" if orders != "both" else f"seed: {seed}"
        raise SpecError(f"the judge {judge.kind} has the orders in which pairs were judged; leave out {option}")


class _Pairing:
    """Runs, a judge, and how they are paired."""

    def __init__(
        self,
        runs: Any,
        judge: ComparisonScorer | Callable[..., Any] | str,
        schedule: Schedule,
        orders: Any,
        seed: Any,
        labels: Sequence[str] | None,
        limit: int | None,
    ) -> None:
        if not isinstance(runs, Sequence) or not all(isinstance(run, Run) for run in runs):
            raise SpecError("give a list of Run objects to match; see Runner.run")
        check_one_dataset(runs, "matches")
        if open_ := next((run.id for run in runs if not run.store.is_sealed(RUNS, run.id)), None):
            raise SpecError(f"run {open_} is not finished; resume it before it is matched")
        if labels is None:
            labels = short_labels([run.name for run in runs], [run.id for run in runs])
        self.labels, self.schedule = check_labels(labels, len(runs)), schedule
        self.runs: Sequence[Run] = runs
        schedule.check(self.labels, 2 if orders == "both" else 1)
        self.judge = as_comparison_scorer(judge)
        check_pairing(self.judge, schedule, orders, seed)
        self.identity, self.orders, self.seed = self.judge.identify(), orders, seed
        most = max(int(run.manifest["spec"]["examples"]) for run in runs)
        self.limit: int | None = limit if limit is not None and limit < most else None

    @property
    def spec(self) -> dict[str, Any]:
        return {
            "systems": [*self.labels],
            "runs": [run.digest for run in self.runs],
            "run_ids": [run.id for run in self.runs],
            "dataset": self.runs[0].manifest["spec"]["dataset"],
            "judge": self.identity.spec,
            "schedule": self.schedule.spec,
            "orders": self.orders,
            "seed": self.seed,
            **({} if self.limit is None else {"limit": self.limit}),
        }

    @property
    def work(self) -> str | None:
        """What identifies the judge's work for any responses; None where nothing may be reused."""
        return ids.digest({"judge": self.identity.spec}).hex() if self.identity.pinned else None

    def about(self, request: Request, inputs: InputCheck) -> Manifest:
        """The entries of the manifest besides the spec."""
        in_yaml, rubrics = "experiment" in (request.origin or {}), list(self.judge.rubrics)
        made_of = {
            "runs": [run.id for run in self.runs],
            "parts": {"judge": self.identity.parts},
            "unpinned": self.identity.reasons(in_yaml=in_yaml) if self.identity.unpinned else [],
            **({"judges": ["judge"]} if self.judge.is_judge else {}),  # whose verdicts are opinions
            **({"rubrics": {"judge": rubrics}} if rubrics else {}),
        }
        return {
            "work": [self.work] if self.work else [],
            "pinned": self.identity.pinned,
            "observed": inputs.observer is not None,
            "fresh": request.fresh,
            "provenance": provenance(request.origin) | made_of,
        }


def _with_receipt(matches: Matches, tally: Tally, why: str, usage: Mapping[str, Any] | None) -> Matches:
    """The matches with their receipt, after a warning if the judge failed on all."""
    total, reasons = sum(batch.num_rows for batch in matches.judgements([])), matches.failed_reasons
    kept = tally.kept if tally.done else total
    done = total, tally.called, tally.reused, kept, why
    matches.receipt = Receipt(*done, failed=tally.failed, failures=matches.failures, usage=usage)
    if reasons and len(reasons) == total:
        reason = reasons[0].removeprefix(JUDGE_FAILED)
        warn(f"the judge failed on all {plural(total, 'comparison')}: {reason}", ScorerFailed)
    return matches


class _Job:
    """Matches in progress."""

    def __init__(
        self,
        matcher: Matcher,
        store: Store,
        request: _Pairing,
        manifest: Manifest,
        inputs: InputCheck,
        repeat_lost: bool,
    ) -> None:
        self.matcher, self.store, self.request = matcher, store, request
        self.manifest, self.inputs, self.repeat_lost = manifest, inputs, repeat_lost
        self.entrants = Entrants.of(request.runs, request.labels, request.limit)
        view = JudgeView.of(request.judge, has_ids=request.runs[0].dataset.roles.id is not None)
        self.presenter = Presenter(self.entrants, request.orders, request.seed, view)
        self.n_orders = 2 if request.orders == "both" else 1
        self.n_lanes = 0
        self.spent: dict[str, dict[str, float]] = {}  # by the number of the lane
        self.rounds: list[dict[str, np.ndarray]] = []  # the columns of their matches
        self.keys = np.zeros((0, ids.DIGEST_SIZE), np.uint8)  # of all judgements
        self.judgements = Judgements(request.judge.compares_all)
        self.tally = Tally("judge")

    @property
    def why(self) -> str:
        """Why judgements were made that earlier work could have answered."""
        stale, unpinned = [self.inputs.why] if self.inputs.why else [], self.request.identity.unpinned
        reasons = [f"unpinned, so never reused: {summarize_reasons([*unpinned])}"] if unpinned else []
        return "; ".join([*(stale if self.tally.called else []), *reasons])

    def perform(self) -> None:
        """Judges round by round what no earlier round presented, unless another process seals the matches."""
        request, entrants, n = self.request, self.entrants, self.n_orders
        examples = np.repeat(entrants.examples, entrants.replications, axis=0)
        field = Field(entrants.labels, entrants.states != ABSENT, entrants.numbers(), examples, n, request.seed)
        played: list[Played] = []
        while not self.is_sealed() and (pairs := request.schedule.next(field, played)) is not None:
            matches = self.presenter.groups() if request.judge.compares_all else self.presenter.pairs(pairs)
            first, judgement = _number_keys(self.keys, matches.keys)
            keys, presented = matches.keys[first], matches.presented[first]
            self.keys = np.concatenate([self.keys, keys])
            if len(first):
                try:
                    self._perform(Presentations(request.runs, entrants, matches.rows[first], presented, keys), keys)
                except EngineError:
                    if not self.is_sealed():  # which removes the journal that was being read
                        raise
                if self.is_sealed():
                    return
            columns = self._columns(len(self.rounds), matches, judgement)
            self.rounds.append(columns)
            met = Pairs(*(columns[name][::n] for name in ("row", "a", "b")))
            played.append(Played(met, columns["outcome"].reshape(-1, n).mean(axis=1)))

    def _perform(self, stream: Presentations, keys: np.ndarray) -> None:
        """Makes the judgements with these keys, as far as they are missing, and reads them."""
        id, tally = self.manifest["id"], self.tally
        with closing(self.store.lane("matches", id, f"round{self.n_lanes}", len(keys))) as lane:
            self.n_lanes += 1
            lane.refresh()
            self.inputs.void_stale(lane, N_FIELDS)
            if self.inputs.observer is not None:
                self.inputs.observer.begin_log()
            self.manifest = note_foreign(self.store, self.manifest, lane.n_done, "judgement")
            with journalled("matches", id):
                self._move(lane, keys)
            tally.total += lane.slots
            tally.kept += lane.n_done
            work = None if self.manifest["fresh"] else self.request.work
            if work and lane.n_done < lane.slots:
                others = [other for other in self.store.find("matches", work) if other != id]
                sources = [other for other in others if self.inputs.may_use("matches", other)]
                tally.reused += self._fill(lane, keys, map(self._answers_in, sources))
            repeat = self.repeat_lost
            settle_lost(self.store, self.manifest, lane, self.inputs, tally, "judgement", repeat=repeat)
            earlier = frozenset(lane.done(0))
            self._call(lane, stream)
            if not self.is_sealed():
                with journalled("matches", id):
                    self.judgements.read(lane, keys, earlier)

    def _fill(self, lane: WorkLog, keys: np.ndarray, answers: Iterable[Iterator[Answer]]) -> int:
        """Writes answers to the open slots of their keys; says how many."""
        missing = OpenSlots((slot, keys[slot].tobytes()) for slot in lane.undone(0, lane.slots))
        n = 0
        for line in missing.fill(answers, self.inputs.observer):
            lane.append(line)
            n += 1
        lane.refresh()
        return n

    def _move(self, lane: WorkLog, keys: np.ndarray) -> None:
        """Moves judgements to the slots of their keys.

        They differ where a round before was judged again, after damage, with other outcomes.
        """
        expected = keys.tobytes().hex()
        others = [
            (slot, bytes.fromhex(key), [key, scores])
            for slot, key, scores, *_ in (lane.records() if lane.n_done else ())
            if key != expected[slot * 2 * ids.DIGEST_SIZE : (slot + 1) * 2 * ids.DIGEST_SIZE]
        ]
        if others:
            answers = [*self.inputs.same(iter(others), Inputs.written(lane, N_FIELDS))]
            lane.void(slot for slot, *_ in others)
            self._fill(lane, keys, [iter(answers)])

    def _call(self, lane: WorkLog, stream: Presentations) -> None:
        judge = self.request.judge
        policy = self.matcher.policy.with_defaults(judge.retries, judge.transient)
        number = self.n_lanes - 1
        account = Account(f"matches/{self.manifest['id']}/{number}", lane, policy)
        grader = ComparisonGrader(judge, policy, account=account)
        quick = judge.cheap and not judge.is_batch and not judge.is_async
        keyed = KeyedWork(
            lane,
            lambda start, stop: batched(stream.take(start, stop), lane) if judge.is_batch else stream.take(start, stop),
            grader.recipe("the judge", self.manifest["attempt"]),
            policy,
            InlineEngine() if quick else self.matcher.engine,
            self.tally,
            GATHER if quick else 1,
            self.is_sealed,
            observer=self.inputs.observer,
            failure=None if quick or judge.is_batch else failure_in_judgement,
            stop_reason=account.stop_reason,
        )
        if lane.n_done < lane.slots:
            judge.prepare()
        with self.matcher.progress(self.tally) if self.matcher.progress else nullcontext():
            keyed.perform()
        if lane.spent:
            self.spent[str(number)] = lane.spent

    def _answers_in(self, id: str) -> Iterator[Answer]:
        """What the judge said in other matches, sealed or open."""
        if not self.store.is_sealed("matches", id):
            try:
                yield from self._answers_in_open(id)
            except EngineError:
                if not self.store.is_sealed("matches", id):
                    raise
            if not self.store.is_sealed("matches", id):  # meanwhile, which removes the journal
                return
        opened = Inputs.stored(self.store, "matches", id, _INPUTS)
        yield from self.inputs.same(read_sealed(Matches(self.store, id), self.request.judge.compares_all), opened)

    def _answers_in_open(self, id: str) -> Iterator[Answer]:
        for number in range(_MOST_ROUNDS):
            with closing(self.store.lane("matches", id, f"round{number}", None)) as lane:
                lane.refresh()
                if not lane.n_done:
                    return
                with journalled("matches", id):
                    yield from self.inputs.same(read_open(lane), Inputs.written(lane, N_FIELDS))

    def is_sealed(self) -> bool:
        return self.store.is_sealed("matches", self.manifest["id"])

    def seal(self) -> dict[str, Any] | None:
        """Turns the journals into a table, unless another process did.

        Returns:
            What the judgements made now have used; None if another process has sealed the matches.
        """
        if self.is_sealed():
            return None
        with journalled("matches", self.manifest["id"]):
            seal_matches(self.store, self.manifest, self._batches(), self._write_others)
        return self.judgements.used_now.to_dict() if self.judgements.used_now else {}

    def _write_others(self, draft: Draft) -> dict[str, Any]:
        inputs, written = Inputs(), tables.TableWriter(tables.JUDGEMENT_SPANS)
        for number, opened in self.judgements.opened:
            inputs.add(number, opened)
        if (batch := inputs.batch()) is not None:
            draft.append(_INPUTS, batch)
        for number, spans in self.judgements.spans:
            for span in spans:
                key, _, *cells = span_row(number, 0, span)
                written.add((key, *cells), sum(len(cell) for cell in cells if isinstance(cell, str)))
            if written.is_full:
                written.flush(draft, SPANS_TABLE)
        written.flush(draft, SPANS_TABLE)
        further: dict[str, Any] = {"spent": self.spent} if self.spent else {}
        return further | ({"usage": self.judgements.used.to_dict()} if self.judgements.used else {})

    def _batches(self) -> Iterator[pa.RecordBatch]:
        """The rows of the table, in the order of their key."""
        if not self.rounds:
            return
        merged = {name: np.concatenate([each[name] for each in self.rounds]) for name in self.rounds[0]}
        self.rounds.clear()
        order = np.lexsort((~merged["ab"], merged["b"], merged["a"], merged["row"]))
        merged = {name: column[order] for name, column in merged.items()}
        yield from match_batches(self.entrants, self.request.runs, merged, self._said)

    def _said(self, judgements: np.ndarray) -> dict[str, pa.Array]:
        """What the judge said in some judgements, and the digest of what it saw; null for -1."""
        is_asked = judgements >= 0
        keys = np.zeros((len(judgements), ids.DIGEST_SIZE), np.uint8)
        keys[is_asked] = self.keys[judgements[is_asked]]
        kind = MATCHES.field("digest").type
        digests = pa.FixedSizeBinaryArray.from_buffers(kind, len(keys), [None, pa.py_buffer(keys.tobytes())])
        return self.judgements.take(judgements) | {"digest": pc.if_else(pa.array(is_asked), digests, None)}

    def _columns(self, number: int, matches: Round, judgement: np.ndarray) -> dict[str, np.ndarray]:
        """The matches of a round: who met, the judgement that decides each, and what it says."""
        decided = np.full(len(matches.row), -1, np.int64)
        is_asked = matches.presentation >= 0
        decided[is_asked] = asked = judgement[matches.presentation[is_asked]]
        first = np.where(matches.equal, 0.5, np.nan)
        if self.request.judge.compares_all:
            first[is_asked] = self.judgements.compare(asked, matches.places[is_asked], matches.ab[is_asked])
        else:
            first[is_asked] = self.judgements.values[asked]
        outcome = np.where(matches.ab, first, 1.0 - first)
        columns = {name: getattr(matches, name) for name in ("row", "a", "b", "ab", "equal")}
        rounds = np.full(len(matches.row), number, np.int32)
        return columns | {"judgement": decided, "outcome": outcome, "first": first, "round": rounds}


_MOST_ROUNDS = 100_000


def _number_keys(known: np.ndarray, keys: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Numbers for keys: that of the known one, or a new one for each key that is not known.

    Returns:
        The places of the new keys, and the number of each key.
    """
    every = np.ascontiguousarray(np.concatenate([known, keys])).view("V16").ravel()
    _, first, inverse = np.unique(every, return_index=True, return_inverse=True)
    is_new = np.zeros(len(every), bool)
    is_new[first] = True
    number = np.cumsum(is_new) - 1  # known keys differ from each other, so each keeps its place
    return np.flatnonzero(is_new[len(known) :]), number[first[inverse]][len(known) :]
