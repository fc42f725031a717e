"""The matcher: compares the responses of several runs by a judge, and stores the matches.

Each judgement is keyed work, as each score is: several are made at once, a stopped matcher continues where it was, and
what the same judge has said about the same responses to the same example, in the same order, is reused from every
earlier set of matches. So a further run costs only the pairs with it.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, nullcontext
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, Unpack

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evaluand.core import identity as ids
from evaluand.core.errors import EngineError, SpecError, described, plural, warn
from evaluand.core.fingerprint import summarize_reasons
from evaluand.core.labels import short_labels, shown_name
from evaluand.core.near import keywords
from evaluand.core.provenance import provenance
from evaluand.engine.engine import Engine
from evaluand.engine.engines.local import LocalEngine
from evaluand.engine.keyed_work import Progress, Tally, take_over
from evaluand.engine.policy import Policy
from evaluand.engine.reuse import InputCheck, Inputs, OpenSlots
from evaluand.evaluation.comparison_scorers import ComparisonScorer, as_comparison_scorer
from evaluand.evaluation.evaluator import ScorerFailed
from evaluand.evaluation.grading import N_FIELDS
from evaluand.matches.earlier_judgements import INPUTS, EarlierJudgements
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
    match_batches,
    seal_matches,
)
from evaluand.matches.matches import JUDGE_FAILED, Matches, describe_left_out
from evaluand.matches.schedule import Field, Pairs, Played, Schedule, as_schedule, on_every_row
from evaluand.models.account import Account
from evaluand.models.preflight import check_prices
from evaluand.run.earlier_work import facts_of, last_attempt, named_work, note_made
from evaluand.run.kind import RUNS
from evaluand.run.lost_answers import settle_lost
from evaluand.run.request import Request, RequestOptions
from evaluand.run.responses import span_columns
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
            options: what is repeated or continued: `name`, `limit`, `fresh`, `retry_failed`,
                `keep_answers`, `repeat_lost`, `resume`, `origin`.

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
        inputs = InputCheck(store, pairing.judge.identify(), "judge")
        before = named_work(store, "matches", request.name)
        earlier = EarlierJudgements(inputs, self.policy, before, pairing.judge)
        spec = pairing.spec | {"judge": inputs.identity.spec}
        last = last_attempt(store, "matches", spec)
        checked = "" if request.fresh else earlier.check(last, pairing.find_all)
        manifest = begin(
            store,
            "matches",
            spec,
            name=request.name,
            again=lambda last: (
                earlier.needs_attempt(last, request, INPUTS)
                or (request.retry_failed and store.is_sealed("matches", last) and bool(Matches(store, last).failures))
            ),
            resume=request.resume,
            about=lambda: pairing.about(request, earlier),
            repeat_lost=request.repeat_lost,
            origin=request.origin or {},
        )
        if "digest" in manifest:
            matches = Matches(store, manifest["id"])
            if budget := self.policy.shared_budget:
                for number, costs in manifest.get("spent", {}).items():
                    budget.count_earlier(f"matches/{manifest['id']}/{number}", costs)
            why = ["nothing to do: the same judge compared the same responses before", checked]
            why += ["retry_failed repeats what failed"] if matches.failures else []
            return _with_receipt(matches, Tally(), why, {})
        note_made(store, "matches", manifest["id"])
        with closing(pairing.judge):
            job = _Job(self, pairing, manifest, earlier, request.repeat_lost)
            job.perform()
            usage = job.seal()
        why = [*job.why, checked if job.tally.reused and inputs.identity.pinned else ""]
        return _with_receipt(Matches(store, manifest["id"]), job.tally, why, usage)


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
        self.orders, self.seed = orders, seed
        most = max(int(run.manifest["spec"]["examples"]) for run in runs)
        self.limit: int | None = limit if limit is not None and limit < most else None

    @property
    def spec(self) -> dict[str, Any]:
        return {
            "systems": [*self.labels],
            "runs": [run.digest for run in self.runs],
            "run_ids": [run.id for run in self.runs],
            "dataset": self.runs[0].manifest["spec"]["dataset"],
            "schedule": self.schedule.spec,
            "orders": self.orders,
            "seed": self.seed,
            **({} if self.limit is None else {"limit": self.limit}),
        }

    @cached_property
    def entrants(self) -> Entrants:
        return Entrants.of(self.runs, self.labels, self.limit)

    @cached_property
    def presenter(self) -> Presenter:
        return Presenter(self.entrants, self.orders, self.seed, JudgeView.of(self.judge))

    @cached_property
    def field(self) -> Field:
        entrants, n_orders = self.entrants, 2 if self.orders == "both" else 1
        examples = np.repeat(entrants.examples, entrants.replications, axis=0)
        return Field(entrants.labels, entrants.states != ABSENT, entrants.numbers(), examples, n_orders, self.seed)

    def present(self, pairs: Pairs) -> Round:
        """The matches of some pairs, or of all for a judge that compares all responses."""
        return self.presenter.groups() if self.judge.compares_all else self.presenter.pairs(pairs)

    def find_all(self) -> OpenSlots:
        """Every judgement that any schedule may ask for."""
        every = on_every_row(self.field, itertools.combinations(range(len(self.runs)), 2))
        return _open_slots(self.present(every).keys)

    def about(self, request: Request, earlier: EarlierJudgements) -> Manifest:
        """The entries of the manifest besides the spec."""
        in_yaml, rubrics = "experiment" in (request.origin or {}), list(self.judge.rubrics)
        identity, name = earlier.inputs.identity, getattr(self.judge, "name", None)
        made_of = {
            "runs": [run.id for run in self.runs],
            "parts": {"judge": identity.parts},
            "unpinned": identity.reasons(in_yaml=in_yaml) if identity.unpinned else [],
            **({"judge": name} if name else {}),
            **({"judges": ["judge"]} if self.judge.is_judge else {}),  # whose verdicts are opinions
            **({"rubrics": {"judge": rubrics}} if rubrics else {}),
            **({"before": earlier.before} if earlier.before else {}),
        }
        return facts_of([earlier], earlier.keeping(request), fresh=request.fresh) | {
            "provenance": provenance(request.origin) | made_of
        }


def _with_receipt(matches: Matches, tally: Tally, why: Sequence[str], usage: Mapping[str, Any] | None) -> Matches:
    """The matches with their receipt, after a warning if the judge failed on all."""
    total, reasons = sum(batch.num_rows for batch in matches.judgements([])), matches.failed_reasons
    tally = replace(tally, total=total, kept=tally.kept if tally.done else total)
    matches.receipt = tally.receipt(why="; ".join(filter(None, why)), failures=matches.failures, usage=usage)
    if reasons and len(reasons) == total:
        reason = reasons[0].removeprefix(JUDGE_FAILED)
        warn(f"the judge failed on all {plural(total, 'comparison')}: {reason}", ScorerFailed)
    return matches


class _Job:
    """Matches in progress."""

    def __init__(
        self,
        matcher: Matcher,
        pairing: _Pairing,
        manifest: Manifest,
        earlier: EarlierJudgements,
        repeat_lost: bool,
    ) -> None:
        self.matcher, self.pairing, self.store = matcher, pairing, earlier.store
        self.manifest, self.earlier, self.inputs, self.repeat_lost = manifest, earlier, earlier.inputs, repeat_lost
        self.n_lanes = 0
        self.spent: dict[str, dict[str, float]] = {}  # by the number of the lane
        self.rounds: list[dict[str, np.ndarray]] = []  # the columns of their matches
        self.keys = np.zeros((0, ids.DIGEST_SIZE), np.uint8)  # of all judgements
        self.judgements = Judgements(pairing.judge.compares_all)
        self.tally = Tally("judge")

    @property
    def why(self) -> list[str]:
        """Why judgements were made that earlier work could have answered."""
        unpinned = self.inputs.identity.unpinned
        reasons = [f"unpinned, so never reused: {summarize_reasons([*unpinned])}"] if unpinned else []
        return [self.inputs.why if self.tally.called else "", *reasons]

    def perform(self) -> None:
        """Judges round by round what no earlier round presented, unless another process seals the matches."""
        pairing, n = self.pairing, self.pairing.field.orders
        played: list[Played] = []
        while not self.is_sealed() and (pairs := pairing.schedule.next(pairing.field, played)) is not None:
            matches = pairing.present(pairs)
            first, judgement = _number_keys(self.keys, matches.keys)
            keys, presented = matches.keys[first], matches.presented[first]
            self.keys = np.concatenate([self.keys, keys])
            if len(first):
                stream = Presentations(pairing.runs, pairing.entrants, matches.rows[first], presented, keys)
                try:
                    self._perform(stream, keys)
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
        id, tally, name = self.manifest["id"], self.tally, self.manifest["name"]
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
            if lane.n_done < lane.slots:
                label = "the judge" if name is None else f"the judge of {shown_name(name)}"
                lines = self.earlier.lines(self.manifest, partial(_open_slots, keys, lane), label)
                tally.reused += take_over(lane, lines)
            repeat = self.repeat_lost
            settle_lost(self.store, self.manifest, lane, self.inputs, tally, "judgement", repeat=repeat)
            earlier = frozenset(lane.done(0))
            self._call(lane, stream)
            if not self.is_sealed():
                with journalled("matches", id):
                    self.judgements.read(lane, keys, earlier)

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
            take_over(lane, _open_slots(keys, lane).fill([iter(answers)], self.inputs.observer))

    def _call(self, lane: WorkLog, stream: Presentations) -> None:
        judge = self.pairing.judge
        policy = self.matcher.policy.with_defaults(judge.retries, judge.transient)
        number = self.n_lanes - 1
        account = Account(f"matches/{self.manifest['id']}/{number}", lane, policy)
        grader = ComparisonGrader(judge, policy, account=account)
        options: dict[str, Any] = {"sealed": self.is_sealed, "observer": self.inputs.observer}
        of_judge = "the judge", self.manifest["attempt"], lane, stream.take
        keyed = grader.work(*of_judge, self.matcher.engine, self.tally, **options)
        if lane.n_done < lane.slots:
            judge.prepare()
        with self.matcher.progress(self.tally) if self.matcher.progress else nullcontext():
            keyed.perform()
        if lane.spent:
            self.spent[str(number)] = lane.spent

    def is_sealed(self) -> bool:
        return self.store.is_sealed("matches", self.manifest["id"])

    def seal(self) -> dict[str, Any] | None:
        """Turns the journals into a table, unless another process did.

        Returns:
            What the judgements made now have used; None if another process has sealed the matches.
        """
        if self.is_sealed():
            return None
        manifest = self.earlier.recount(self.manifest, partial(_open_slots, self.keys))
        with journalled("matches", self.manifest["id"]):
            seal_matches(self.store, manifest, self._batches(), self._write_others)
        return self.judgements.used_now.to_dict() if self.judgements.used_now else {}

    def _write_others(self, draft: Draft) -> dict[str, Any]:
        inputs = Inputs()
        for number, opened in self.judgements.opened:
            inputs.add(number, opened)
        if (batch := inputs.batch()) is not None:
            draft.append(INPUTS, batch)
        for start in range(0, len(self.judgements.spans), tables.BATCH_ROWS):
            numbers, traces = zip(*self.judgements.spans[start : start + tables.BATCH_ROWS], strict=True)
            of, columns = span_columns(traces)
            draft.append(SPANS_TABLE, tables.batch_of([np.array(numbers)[of], *columns], tables.JUDGEMENT_SPANS))
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
        yield from match_batches(self.pairing.entrants, self.pairing.runs, merged, self._said)

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
        if self.pairing.judge.compares_all:
            first[is_asked] = self.judgements.compare(asked, matches.places[is_asked], matches.ab[is_asked])
        else:
            first[is_asked] = self.judgements.values[asked]
        outcome = np.where(matches.ab, first, 1.0 - first)
        columns = {name: getattr(matches, name) for name in ("row", "a", "b", "ab", "equal")}
        rounds = np.full(len(matches.row), number, np.int32)
        return columns | {"judgement": decided, "outcome": outcome, "first": first, "round": rounds}


def _open_slots(keys: np.ndarray, lane: WorkLog | None = None) -> OpenSlots:
    """The slots of judgements with some keys: all, or those that are not done."""
    slots = range(len(keys)) if lane is None else lane.undone(0, lane.slots)
    return OpenSlots((slot, keys[slot].tobytes()) for slot in slots)


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
