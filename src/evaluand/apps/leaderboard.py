"""Leaderboards: what feedbacks say of the versions of apps, side by side, and which versions can be told apart.

    evaluand leaderboard rag
    print(leaderboard(DirectoryStore()))

Each version of an app is one line for each feedback: the mean with its interval and how many of how many records it
rests on; and its latency, tokens and cost. All recordings of a version are taken together.

Why it is so:

- A mean stands beside its counts: records whose feedback failed, abstained or was skipped, and those that wait to be
  judged, are told and never counted as some number.
- Two versions are held against each other by the inputs that both were asked, where these are at least half of what
  the smaller one was asked; records of the same input are not independent then. Else they are two samples. What is
  chance is told with all pairs of all feedbacks considered (Holm), and versions that share a letter are not told apart.
- An open recording counts as far as it is, and of a recording only its last state: a snapshot and what followed are
  the same records.
"""

from __future__ import annotations

import itertools
import math
import re
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from evaluand.apps.app import RecordingSession as Block
from evaluand.apps.recording import KIND, Recording
from evaluand.apps.recording.stored import Lanes
from evaluand.comparison.find import declared_measures, find_evaluations
from evaluand.comparison.pairing import count_earlier, digest_halves, number_rows
from evaluand.comparison.ranking import assign_letters
from evaluand.comparison.significance import holm, mcnemar, sign_flip
from evaluand.comparison.verdict import printable
from evaluand.core import identity, registry
from evaluand.core.errors import NotFound, SpecError, with_article
from evaluand.core.key_columns import INDEX, RESPONSE_INDEX
from evaluand.evaluation.evaluator import Evaluation
from evaluand.metrics.base.metric import VALUE, Metric, check_confidence
from evaluand.metrics.stats.intervals import normal_tail, t_tail
from evaluand.run.runner import Run
from evaluand.store.journal import WorkLog
from evaluand.store.store import Store, journalled, resolve
from evaluand.store.tables import COMPLETED, RESPONSE_STATUSES, SCORE_STATUSES

if TYPE_CHECKING:
    import pandas as pd

WAITING: Final = "waiting"
"""The status of a record that a feedback is still to judge."""

STATUSES: Final = (*SCORE_STATUSES, WAITING)
MOST_COMPARED: Final = 40
"""Of more versions than these, pairs are too many to be told apart."""

LEADERBOARD: Final = pa.schema(
    [
        pa.field("app", pa.string(), nullable=False),
        pa.field("version", pa.string()),
        *(pa.field(name, pa.int64(), nullable=False) for name in ("records", "calls_failed", "calls_skipped")),
        *(pa.field(name, pa.float64()) for name in ("latency_median", "latency_p95")),
        *(pa.field(name, pa.int64()) for name in ("input_tokens", "output_tokens")),
        pa.field("cost", pa.float64()),
        pa.field("currency", pa.string()),
        *(pa.field(name, pa.int64(), nullable=False) for name in ("n_latency", "n_tokens", "n_cost")),
        pa.field("feedback", pa.string()),
        pa.field("direction", pa.string()),
        pa.field("metric", pa.string()),
        *(pa.field(name, pa.float64()) for name in ("mean", "low", "high", "worst", "best")),
        pa.field("reason", pa.string()),
        pa.field("letters", pa.string()),
        pa.field("n", pa.int64(), nullable=False),
        *(pa.field(f"n_{status}", pa.int64(), nullable=False) for status in STATUSES),
    ]
)
"""A row for each version and feedback, of each feedback the best first. Latencies are seconds of completed calls, of
`n_latency` of them: logged ones may have none; `n_tokens` and `n_cost` tell of how many records tokens and cost are
known; `worst` and `best` are the means there would be if each record without a value had the worst or the best there
can be (None where no range is known); `reason` is why there is no mean or interval; versions of one feedback that share
a letter cannot be told apart."""

_SPENT: Final = pa.struct(
    [
        *((name, pa.int64()) for name in ("requests", "failed", "input_tokens", "output_tokens")),
        ("cost", pa.float64()),
        ("currency", pa.string()),
    ]
)
"""What a score took: requests of providers, those without a reply, and what was told of the others."""

_ABOUT: Final = LEADERBOARD.names[: LEADERBOARD.names.index("feedback")]


class Leaderboard:
    """Versions of apps side by side; make one with `leaderboard`.

    Attributes:
        rows: by version and feedback, as `LEADERBOARD` has them.
        spent: by version and feedback what judging took, where providers were asked: how many `requests` for how many
            scores (`n`), tokens, known of so many (`n_tokens`), and cost (`n_cost`); None where it is not known. It is
            no part of what the calls themselves cost.
        pairs: by feedback every two versions: `a` and `b` (their labels), `difference` (b − a), `n` (the inputs both
            were asked, None where they are two samples), `p` and `p_holm`, None where nothing can be said.
        notes: what is to be known of the numbers, a sentence each.
        confidence: of intervals and of what is told apart.
    """

    def __init__(
        self,
        rows: Sequence[Mapping[str, Any]],
        pairs: Sequence[Mapping[str, Any]],
        notes: Sequence[str],
        confidence: float,
        spent: Sequence[Mapping[str, Any]] = (),
    ) -> None:
        self.spent = list(spent)
        self.rows, self.pairs, self.notes, self.confidence = list(rows), list(pairs), list(notes), confidence

    def __repr__(self) -> str:
        return f"Leaderboard({len(self.versions)} versions, {len(self.feedbacks)} feedbacks)"

    def __str__(self) -> str:
        """A line for each version and feedback."""
        return "\n".join(printable(line) for line in self._lines())

    @property
    def feedbacks(self) -> list[str]:
        """The names of the feedbacks."""
        return list(dict.fromkeys(row["feedback"] for row in self.rows if row["feedback"] is not None))

    @property
    def versions(self) -> list[dict[str, Any]]:
        """Each version once: what it is called, its records, latency, tokens and cost."""
        found = {label_of(row): {name: row[name] for name in _ABOUT} for row in self.rows}
        return [{"label": label} | found[label] for label in sorted(found, key=_natural)]

    def table(self) -> pa.Table:
        """The rows as an Arrow table; see `LEADERBOARD`."""
        return pa.Table.from_pylist(self.rows, LEADERBOARD)

    def to_pandas(self) -> pd.DataFrame:
        """The rows as a DataFrame.

        Raises:
            SpecError: pandas is not installed.
        """
        try:
            frame: pd.DataFrame = self.table().to_pandas()
        except ImportError:
            raise SpecError("to_pandas needs pandas: pip install 'evaluand[pandas]'") from None
        return frame

    def to_dict(self) -> dict[str, Any]:
        """All there is to say, as JSON-like data."""
        return {
            "confidence": self.confidence,
            "versions": self.versions,
            "feedbacks": [{"label": label_of(row), **row} for row in self.rows if row["feedback"] is not None],
            "spent": self.spent,
            "pairs": self.pairs,
            "notes": self.notes,
        }

    def _lines(self) -> Iterator[str]:
        for feedback in self.feedbacks:
            for row in (row for row in self.rows if row["feedback"] == feedback):
                mean = "–" if row["mean"] is None else f"{row['mean']:.4g}"
                interval = "" if row["low"] is None else f" [{row['low']:.4g}, {row['high']:.4g}]"
                told = "".join(f", {row[f'n_{s}']:,} {s}" for s in STATUSES[1:] if row[f"n_{s}"])
                bounds = "" if row["worst"] is None else f"; {row['worst']:.4g} to {row['best']:.4g} with all"
                counts = f"{row['n_scored']:,} of {row['n']:,} scored{told}{bounds if told else ''}"
                yield f"{feedback}: {label_of(row)} {mean}{interval} {row['letters']} ({counts})"
        for version in self.versions:
            median, p95 = (version[f"latency_{name}"] for name in ("median", "p95"))
            known = version["n_latency"]
            completed = version["records"] - version["calls_failed"] - version["calls_skipped"]
            latency = ", latency unknown" if completed else ""
            if known:
                of = f" of {known:,} of {completed:,}" if known < completed else ""
                latency = f", latency{of} {median:.3g} s (95 % below {p95:.3g} s)"
            yield f"{version['label']}: {version['records']:,} records{latency}"
        yield from self.notes


def label_of(row: Mapping[str, Any]) -> str:
    """What a version of an app is called.

    Example:
        >>> label_of({"app": "rag", "version": "2"}), label_of({"app": "rag", "version": None})
        ('rag 2', 'rag')
    """
    return str(row["app"]) if row["version"] is None else f"{row['app']} {row['version'] or repr('')}"


def leaderboard(
    evaluations: Store | Iterable[Evaluation | Recording | Block | Run], *, confidence: float = 0.95
) -> Leaderboard:
    """What feedbacks say of versions of apps, side by side.

    Args:
        evaluations: evaluations, recordings, open or closed, and runs; or a store: all its recordings and the
            evaluations of what they recorded. Evaluations of other runs count as a version of what their task is
            called.
        confidence: of intervals, and of the statement that two versions differ.

    Raises:
        SpecError: there is nothing to tell of.

    Example:
        >>> from evaluand.apps.app import App
        >>> from evaluand.evaluation.feedback import Feedback
        >>> def brief(text):
        ...     return len(text) < 6
        >>> recordings = []
        >>> for version, end in (("1", "!"), ("2", " indeed!")):
        ...     app = App(lambda text, end=end: text + end, name="echo", version=version,
        ...               feedbacks=[Feedback(brief, version="1").on_output()])
        ...     with app as recording:
        ...         _ = [app.app(text) for text in ("yes", "no", "perhaps")]
        ...     recordings.append(recording.close())
        >>> board = leaderboard(recordings)
        >>> board.table().select(["app", "version", "mean", "n_scored", "n"]).to_pylist()[0]
        {'app': 'echo', 'version': '1', 'mean': 0.6666666666666666, 'n_scored': 3, 'n': 3}
    """
    confidence = check_confidence("leaderboard", confidence)
    given = gathered(evaluations) if hasattr(evaluations, "manifest") else list(evaluations)  # type: ignore[arg-type]
    sources = _sources(given)
    versions = _versions(sources)
    if not versions:
        raise SpecError("there is nothing recorded to tell of; record an app, or give its evaluations")
    notes: list[str] = []
    names = dict.fromkeys(name for version in versions for name in version.judged)
    boards = [_Board.of(name, versions, confidence) for name in names]
    pairs = _compared(boards, notes)
    notes += [note for board in boards for note in board.notes()]
    notes += [f"{v.label} has costs in several currencies, which are not summed" for v in versions if v.currencies > 1]
    found = [row for board in boards for row in board.rows(pairs, 1 - confidence)]
    found += [version.about | _nothing_said() for version in versions if not version.judged]
    spent = [one for version in versions for one in version.spent]
    notes += [
        f"{one['label']}: {one['feedback']} was paid in several currencies, which are not summed"
        for one in spent
        if one["n_cost"] and one["cost"] is None
    ]
    return Leaderboard(found, pairs, notes, confidence, spent)


def gathered(store: Store, names: Sequence[str] = ()) -> list[Evaluation | Recording | Run]:
    """What a leaderboard is made of: recordings of a store, and the evaluations of what they recorded.

    Args:
        store: where to look.
        names: of apps, of recordings, or of anything that has evaluations; all recordings if not given.

    Raises:
        NotFound: nothing is called so.
        SpecError: it is nothing that has evaluations.
    """
    recordings = [Recording(store, id) for id in store.ids(KIND)]
    if names:
        chosen: list[Evaluation | Recording | Run] = []
        for name in names:
            chosen += _called(store, recordings, name)
    else:
        chosen = [*recordings]
    return gathered_of(store, chosen)


def gathered_of(store: Store, chosen: Sequence[Evaluation | Recording | Run]) -> list[Evaluation | Recording | Run]:
    """These, and the evaluations that a store has of recordings among them."""
    chosen = [*chosen]
    wanted = {made.id for made in chosen if isinstance(made, Recording)}
    for id in store.ids("evaluations") if wanted else ():
        if store.is_sealed("evaluations", id) and _recording_of(evaluation := Evaluation(store, id)) in wanted:
            chosen.append(evaluation)
    return list({(type(each), each.id): each for each in chosen}.values())


def _called(store: Store, recordings: Sequence[Recording], name: str) -> Sequence[Evaluation | Recording | Run]:
    """The recordings of an app, or called so; else the evaluations that a name or id stands for."""
    found = [each for each in recordings if name in (each.name, each.manifest["spec"]["app"].get("name"))]
    if found:
        return found
    with suppress(NotFound):
        return [Recording(store, resolve(store, name, KIND)[1])]
    return find_evaluations(store, name)


def _recording_of(made: Evaluation | Run) -> str | None:
    """The recording that a run, or the run that was evaluated, is made of."""
    try:
        run = made if isinstance(made, Run) else Run(made.store, made.manifest["provenance"]["run"])
    except NotFound:
        return None
    found: str | None = run.manifest["spec"]["task"].get("recording")
    return found


# What is read


@dataclass
class _Judgement:
    """What a feedback said of some records.

    Attributes:
        call: the place of each record among the calls.
        status: of each, a place in `STATUSES`.
        value: NaN where there is none.
        definition: stands for what the feedback is.
        direction: `higher`, `lower` or None.
        range: the lowest and the highest value there can be; None where that is not known.
    """

    call: np.ndarray
    status: np.ndarray
    value: np.ndarray
    definition: frozenset[str]
    direction: str | None
    range: tuple[float, float] | None


@dataclass
class _Source:
    """The records of one recording or run, as columns, and what was said of them."""

    app: str
    version: str | None
    digest: np.ndarray  # of inputs, in two halves
    status: np.ndarray
    seconds: np.ndarray  # NaN where unknown
    tokens: np.ndarray  # input and output; NaN where unknown
    cost: np.ndarray
    currencies: frozenset[str]
    task: str | None = None  # what was asked, where its name does not say it
    judged: dict[str, _Judgement] = field(default_factory=dict)
    spent: dict[str, pa.StructArray] = field(
        default_factory=dict
    )  # by feedback, for each score that anybody was asked for


def _sources(given: Sequence[Any]) -> list[_Source]:
    recorded: dict[str, Recording] = {}
    runs: dict[tuple[str, str], Run] = {}
    evaluations: dict[str, list[Evaluation]] = {}
    for each in given:
        if isinstance(each, Block):
            each = each.kept
        if isinstance(each, Recording):
            recorded[each.id] = each
        elif isinstance(each, Evaluation | Run):
            run = each if isinstance(each, Run) else Run(each.store, each.manifest["provenance"]["run"])
            runs[_recording_of(run) or run.id, run.id] = run
            if isinstance(each, Evaluation):
                evaluations.setdefault(run.id, []).append(each)
        else:
            raise SpecError(
                f"a leaderboard is that of evaluations and recordings, not {with_article(type(each).__name__)}"
            )
    found = []
    for recording in recorded.values():
        if not recording.is_sealed:
            found.append(_of_lanes(recording))
        elif (whole := recording.run) is not None:
            own = [made] if (made := recording.evaluation) is not None else []
            found.append(_of_run(whole, [*evaluations.get(whole.id, ()), *own]))
    for key, of_one in itertools.groupby(sorted(runs), lambda key: key[0]):
        if key not in recorded:  # of several snapshots of a recording, the last
            last = max(
                (runs[each] for each in of_one), key=lambda run: (sum(run.counts.values()), run.manifest["created"])
            )
            found.append(_of_run(last, evaluations.get(last.id, [])))
    return found


def _of_run(run: Run, evaluations: Sequence[Evaluation]) -> _Source:
    names = [INDEX, "replication", "digest", "status", "usage", "duration"]
    table = pa.Table.from_batches(batch.select(names) for batch in run.batches(names)).combine_chunks()
    usage = table["usage"].combine_chunks()
    task = run.manifest["spec"]["task"]
    currency = usage.field("currency").filter(usage.is_valid()).unique().drop_null().to_pylist()
    version, recorded = task.get("version"), _recording_of(run) is not None
    name = run.name or next((each.name for each in evaluations if each.name), None)
    source = _Source(
        app=str(task["name"] if recorded else name or run.manifest["provenance"].get("task") or f"run {run.id[:12]}"),
        version=None if version is None else str(version),
        digest=digest_halves(table["digest"].combine_chunks()),
        status=_codes(table["status"], RESPONSE_STATUSES),
        seconds=table["duration"].cast(pa.int64()).cast(pa.float64()).fill_null(math.nan).to_numpy() / 1e6,
        tokens=np.stack([_floats(usage, name) for name in ("input_tokens", "output_tokens")]),
        cost=_floats(usage, "cost"),
        currencies=frozenset(currency),
        task=None if recorded else identity.digest(task).hex(),
    )
    times = int(run.manifest["spec"]["replications"])
    known = table[INDEX].to_numpy() * times + table["replication"].to_numpy()
    for evaluation in sorted(evaluations, key=lambda each: str(each.manifest["created"])):  # the newest is last
        directions = _directions(evaluation)
        for name, spec in evaluation.manifest["spec"]["scorers"].items():
            about = _about(spec, directions.get(name), evaluation.ranges.get(name, {}))
            source.spent[name] = _spent_in(evaluation, name)
            for part, judged in _of_table(evaluation, name, known, times):
                source.judged[part] = replace(judged, **about)
    return source


def _of_table(evaluation: Evaluation, name: str, known: np.ndarray, times: int) -> Iterator[tuple[str, _Judgement]]:
    """What a scorer's table holds of first answers: apart by target, and by the keys of what has several values."""
    columns = [INDEX, "replication", RESPONSE_INDEX, "target", "status", "value"]
    table = pa.Table.from_batches(
        batch.select([*columns, "data"]) for batch in evaluation.batches(name, [*columns, "data"])
    )
    first = table[RESPONSE_INDEX].fill_null(0).to_numpy() == 0
    if not first.all():
        table = table.filter(pa.array(first))
    target = table["target"].to_pylist() if table["target"].null_count < table.num_rows else None
    call = np.searchsorted(known, table[INDEX].to_numpy() * times + table["replication"].to_numpy())
    status = _codes(table["status"], SCORE_STATUSES)
    value = table["value"].fill_null(math.nan).to_numpy()
    scored = status == 0
    if scored.any() and np.isnan(value[scored]).all():
        said: Sequence[Any] = [None if text is None else orjson.loads(text) for text in table["data"].to_pylist()]
        yield from _by_key(name, call, status, said)
    elif target is None:
        yield name, _judgement(call, status, value)
    else:
        for each in dict.fromkeys(target):
            mine = np.array([other == each for other in target], bool)
            yield name if each is None else f"{name} · {each}", _judgement(call[mine], status[mine], value[mine])


def _spent_in(evaluation: Evaluation, name: str) -> pa.StructArray:
    """What the scores of a table took; tables had not always a column of it."""
    batches = (batch for batch in evaluation.batches(name, ["usage"]) if batch.num_columns)
    told = (text for batch in batches for text in batch.column(0).drop_null().to_pylist())
    return pa.array(map(orjson.loads, told), _SPENT)


def _by_key(name: str, call: np.ndarray, status: np.ndarray, said: Sequence[Any]) -> Iterator[tuple[str, _Judgement]]:
    """The values of a feedback that says several, each as a feedback of its own."""
    keys = dict.fromkeys(key for each in said if isinstance(each, dict) for key in each)
    for key in keys:
        told = [each.get(key) if isinstance(each, dict) else None for each in said]
        value = np.array([v if type(v) in (int, float) else math.nan for v in told], np.float64)
        yield f"{name} · {key}", _judgement(call, status, value)
    if not keys:
        yield name, _judgement(call, status, np.full(len(call), math.nan))


def _judgement(call: np.ndarray, status: np.ndarray, value: np.ndarray) -> _Judgement:
    """Scores that are no number abstain."""
    lacking = (status == 0) & ~np.isfinite(value)
    status = np.where(lacking, STATUSES.index("abstained"), status)
    return _Judgement(call, status, np.where(status == 0, value, math.nan), frozenset(), None, None)


def _about(spec: Any, direction: str | None, ranges: Mapping[str, Sequence[float]]) -> dict[str, Any]:
    """What is the same of all that a feedback said."""
    ends = ranges.get(VALUE)
    known = None if ends is None else tuple(ends)
    return {"definition": frozenset((identity.digest(spec).hex(),)), "direction": direction, "range": known}


def _directions(evaluation: Evaluation) -> dict[str, str | None]:
    """Which way is good by scorer, where that is known: as its recording tells, or as it was summarised."""
    origin = evaluation.manifest["provenance"].get("origin") or {}
    recording = origin.get("recording") or _recording_of(evaluation)
    if recording is not None and (told := _told_directions(evaluation.store, recording)):
        return told
    return {measure.scorer: measure.metric.direction for measure in reversed(declared_measures([evaluation]))}


def _told_directions(store: Store, recording: str) -> dict[str, str | None]:
    try:
        told = store.manifest(KIND, recording)["provenance"].get("higher_is_better") or {}
    except NotFound:
        return {}
    return {name: None if higher is None else "higher" if higher else "lower" for name, higher in told.items()}


def _of_lanes(recording: Recording) -> _Source:
    """An open recording, as far as it is."""
    store, manifest = recording.store, recording.manifest
    directions, ranges = _told_directions(store, recording.id), manifest["provenance"].get("ranges", {})
    with closing(Lanes.of(store, manifest)) as lanes, journalled(KIND, recording.id):
        source, slots = _recorded(lanes.records, manifest["spec"]["app"])
        for name, lane in lanes.judged.items():
            said = _Said.of(lane)
            about = _about(manifest["spec"]["feedbacks"][name], directions.get(name), ranges.get(name, {}))
            source.spent[name] = pa.array(said.usage, _SPENT)
            for part, judged in said.parts(name, slots):
                source.judged[part] = replace(judged, **about)
    return source


def _recorded(lane: WorkLog, app: Mapping[str, Any]) -> tuple[_Source, np.ndarray]:
    """The records in a lane, and their slots; read into columns, so that a hundred thousand leave few objects."""
    slot, status, seconds = array("q"), array("b"), array("d")
    digests: list[bytes] = []
    used = {name: array("d") for name in ("input_tokens", "output_tokens", "cost")}
    currencies: set[Any] = set()
    for record in lane.read_through():
        slot.append(record[0])
        digests.append(bytes.fromhex(record[1]))
        status.append(RESPONSE_STATUSES.index(record[3]))
        seconds.append(math.nan if record[9] is None else record[9] / 1e6)
        usage = record[10] or {}
        for name, values in used.items():
            values.append(usage.get(name, math.nan))
        currencies.add(usage.get("currency"))
    order = np.argsort(slot)
    source = _Source(
        app=str(app.get("name") or "app"),
        version=None if app.get("version") is None else str(app["version"]),
        digest=digest_halves(pa.array(digests, pa.binary(16)))[order],
        status=np.array(status)[order],
        seconds=np.array(seconds)[order],
        tokens=np.stack([used["input_tokens"], used["output_tokens"]])[:, order],
        cost=np.array(used["cost"])[order],
        currencies=frozenset(currencies - {None, ""}),
    )
    return source, np.array(slot)[order]


@dataclass
class _Said:
    """The scores in a lane, as columns.

    Attributes:
        slot: of the record.
        status: a place in `STATUSES`.
        value: NaN where there is none.
        data: as it was said.
        usage: of those that anybody was asked for.
    """

    slot: array[int]
    status: array[int]
    value: array[float]
    data: list[Any]
    usage: list[Mapping[str, Any]]

    @classmethod
    def of(cls, lane: WorkLog) -> _Said:
        said = cls(array("q"), array("b"), array("d"), [], [])
        for slot, _, scores in lane.read_through():
            if scores:
                _, _, status, _, value, _, data, _, _, *usage = scores[0]
                said.slot.append(slot)
                said.status.append(_CODES[status])
                said.value.append(math.nan if value is None else value)
                said.data.append(data)
                said.usage += usage
        return said

    def parts(self, name: str, slots: np.ndarray) -> Iterator[tuple[str, _Judgement]]:
        """What was said of records; what is not judged yet waits."""
        slot = np.array(self.slot, np.int64)
        known = np.isin(slot, slots)
        place = np.searchsorted(slots, slot[known])
        status = np.full(len(slots), STATUSES.index(WAITING), np.int8)
        value = np.full(len(slots), math.nan)
        status[place], value[place] = np.array(self.status)[known], np.array(self.value)[known]
        call, scored = np.arange(len(slots)), status == 0
        if scored.any() and np.isnan(value[scored]).all():
            data: list[Any] = [None] * len(slots)
            for at, each in zip(place.tolist(), itertools.compress(self.data, known.tolist()), strict=True):
                data[at] = each
            yield from _by_key(name, call, status, data)
        else:
            yield name, _judgement(call, status, value)


_CODES: Final = {status: code for code, status in enumerate(STATUSES)}


def _codes(column: pa.ChunkedArray, words: Sequence[str]) -> np.ndarray:
    return np.asarray(pc.index_in(column, pa.array(words)).to_numpy()).astype(np.int8)


def _floats(struct: pa.StructArray, name: str) -> np.ndarray:
    column = struct.flatten()[struct.type.get_field_index(name)]  # flatten, unlike field, heeds rows without usage
    return np.asarray(column.cast(pa.float64()).fill_null(math.nan).to_numpy(zero_copy_only=False))


# Versions


@dataclass
class _Version:
    """All records of one version of an app.

    Attributes:
        sources: where they are from.
        input: a number for the input of each, the same in all versions.
        asked: a number for the input of each and which of equal ones it is.
    """

    sources: Sequence[_Source]
    input: np.ndarray
    asked: np.ndarray

    @property
    def label(self) -> str:
        return label_of(vars(self.sources[0]))

    @cached_property
    def judged(self) -> dict[str, _Judgement]:
        """What each feedback said of all records; records of a source that it was not asked about are none of its."""
        starts = np.cumsum([0, *(len(source.status) for source in self.sources)])
        found: dict[str, list[_Judgement]] = {}
        for start, source in zip(starts.tolist(), self.sources, strict=False):
            for name, judged in source.judged.items():
                found.setdefault(name, []).append(replace(judged, call=judged.call + start))
        return {name: _together(parts) for name, parts in found.items()}

    @property
    def currencies(self) -> int:
        return len(frozenset().union(*(source.currencies for source in self.sources)))

    @cached_property
    def spent(self) -> list[dict[str, Any]]:
        """What each feedback took, of those that asked anybody."""
        found: dict[str, list[pa.StructArray]] = {}
        for source in self.sources:
            for name, usage in source.spent.items():
                found.setdefault(name, []).append(usage)
        usages = {name: pa.chunked_array(parts, _SPENT).combine_chunks() for name, parts in found.items()}
        return [{"label": self.label, "feedback": name, **_summed(each)} for name, each in usages.items() if len(each)]

    @cached_property
    def about(self) -> dict[str, Any]:
        status, seconds, cost = (
            np.concatenate([getattr(source, name) for source in self.sources]) for name in ("status", "seconds", "cost")
        )
        tokens = np.concatenate([source.tokens for source in self.sources], axis=1)
        timed = seconds[(status == RESPONSE_STATUSES.index(COMPLETED)) & ~np.isnan(seconds)]
        median, p95 = np.quantile(timed, (0.5, 0.95)).tolist() if len(timed) else (None, None)
        summed = [int(np.nansum(each)) if not np.isnan(each).all() else None for each in tokens]
        priced = int((~np.isnan(cost)).sum())
        currency = frozenset().union(*(source.currencies for source in self.sources))
        return {
            "app": self.sources[0].app,
            "version": self.sources[0].version,
            "records": len(status),
            "calls_failed": int((status == RESPONSE_STATUSES.index("failed")).sum()),
            "calls_skipped": int((status == RESPONSE_STATUSES.index("skipped")).sum()),
            "latency_median": median,
            "latency_p95": p95,
            "input_tokens": summed[0],
            "output_tokens": summed[1],
            "cost": math.fsum(cost[~np.isnan(cost)]) if priced and len(currency) < 2 else None,
            "currency": next(iter(currency)) if len(currency) == 1 else None,
            "n_latency": len(timed),
            "n_tokens": int((~np.isnan(tokens).all(axis=0)).sum()),
            "n_cost": priced,
        }


def _summed(usage: pa.StructArray) -> dict[str, Any]:
    column = dict(zip(usage.type.names, usage.flatten(), strict=True))
    told = {name: pc.sum(column[name]).as_py() for name in ("requests", "input_tokens", "output_tokens")}
    cost, currencies = column["cost"].drop_null().to_pylist(), column["currency"].drop_null().unique().to_pylist()
    return {
        "n": len(usage),
        **told,
        "cost": math.fsum(cost) if cost and len(currencies) < 2 else None,
        "currency": currencies[0] if len(currencies) == 1 else None,
        "n_tokens": len(pc.coalesce(column["input_tokens"], column["output_tokens"]).drop_null()),
        "n_cost": len(cost),
    }


def _together(parts: Sequence[_Judgement]) -> _Judgement:
    call, status, value = (np.concatenate([getattr(part, name) for part in parts]) for name in _COLUMNS)
    definition = frozenset[str]().union(*(part.definition for part in parts))
    return _Judgement(call, status, value, definition, _direction_of(parts), _range_of(parts))


def _direction_of(said: Iterable[_Judgement]) -> str | None:
    """Which way is good for all that know it."""
    told = {judged.direction for judged in said} - {None}
    return told.pop() if len(told) == 1 else None


def _range_of(said: Iterable[_Judgement]) -> tuple[float, float] | None:
    """The one range of all."""
    told = {judged.range for judged in said}
    return told.pop() if len(told) == 1 else None


_COLUMNS: Final = ("call", "status", "value")


def _versions(sources: Sequence[_Source]) -> list[_Version]:
    found: dict[tuple[str, str | None], dict[str | None, list[_Source]]] = {}
    for source in sources:
        found.setdefault((source.app, source.version), {}).setdefault(source.task, []).append(source)
    for alike in found.values():
        for task, parts in alike.items() if len(alike) > 1 else ():
            for source in parts:
                source.app += f" ({task[:8]})" if task else ""
    groups = [parts for alike in found.values() for parts in alike.values()]
    called = Counter(label_of(vars(parts[0])) for parts in groups)
    for parts in groups:
        if called[label_of(vars(parts[0]))] > 1:  # such as `rag 2` without a version, and version 2 of `rag`
            for source in parts:
                source.app = repr(source.app)
    grouped = sorted(groups, key=lambda parts: _natural(label_of(vars(parts[0]))))
    inputs = number_rows([np.concatenate([source.digest for source in parts]) for parts in grouped]) if grouped else []
    asked = number_rows([np.column_stack([each, count_earlier(each[:, None])]) for each in inputs]) if grouped else []
    return [_Version(*each) for each in zip(grouped, inputs, asked, strict=True)]


def _natural(label: str) -> list[tuple[int, int, str]]:
    """The order in which people put versions: 9 before 10."""
    return [(0, int(part), "") if part.isdecimal() else (1, 0, part) for part in re.split(r"(\d+)", label) if part]


# Feedbacks


@dataclass
class _Board:
    """The versions that one feedback has judged.

    Attributes:
        name: of the feedback.
        versions: best first.
        metric: what means are computed by.
        ends: the lowest and the highest value there can be; None where that is not known.
        values: by version, mean, lower and upper end (NaN where there is none), and why there is none.
    """

    name: str
    versions: Sequence[_Version]
    metric: Metric
    ends: tuple[float, float] | None
    values: Sequence[tuple[float, float, float, str | None]]
    direction: str | None
    confidence: float

    @classmethod
    def of(cls, name: str, versions: Sequence[_Version], confidence: float) -> _Board:
        mine = [version for version in versions if name in version.judged]
        said = [version.judged[name] for version in mine]
        direction, ends = _direction_of(said), _range_of(said)
        scored = [judged.value[judged.status == 0] for judged in said]
        known: dict[str, Any] = {} if ends is None else {"range": ends}
        binary = ends in (None, (0.0, 1.0)) and all(((value == 0) | (value == 1)).all() for value in scored)
        kind = {"name": "accuracy"} if binary else {"name": "mean", "direction": direction} | known
        metric: Metric = registry.make_default("metrics", confidence=confidence, **kind)
        values = [_value(metric, value) for value in scored]
        sign = 1 if direction == "lower" else -1
        order = sorted(range(len(mine)), key=lambda i: math.inf if math.isnan(values[i][0]) else sign * values[i][0])
        whole = (0.0, 1.0) if binary else ends
        return cls(name, [mine[i] for i in order], metric, whole, [values[i] for i in order], direction, confidence)

    def notes(self) -> Iterator[str]:
        definitions = {version.label: version.judged[self.name].definition for version in self.versions}
        if len(frozenset().union(*definitions.values())) > 1:
            yield f"{self.name} is not defined alike everywhere, so its values may not mean the same"
        told = {version.judged[self.name].direction for version in self.versions}
        if self.direction is None and len(told - {None}) > 1:
            yield f"{self.name} is better the higher for some versions and the lower for others"

    def pairs(self) -> Iterator[dict[str, Any]]:
        """Every two versions, and how sure it is that they differ."""
        scored = [_Scored.of(version, version.judged[self.name]) for version in self.versions]
        place = np.full(max((one.asked.max(initial=-1) for one in scored), default=-1) + 1, -1)
        for a, b in itertools.combinations(range(len(scored)), 2):
            place[scored[b].asked] = np.arange(len(scored[b].asked))
            there = place[scored[a].asked]
            place[scored[b].asked] = -1
            of_a = np.flatnonzero(there >= 0)
            of_b = there[of_a]
            paired = 0 < min(len(scored[a].asked), len(scored[b].asked)) <= 2 * len(of_a)
            if paired:
                apart = scored[b].value[of_b] - scored[a].value[of_a]
                p, difference = _paired_p(apart, scored[a].input[of_a], self._is_binary), float(apart.mean())
            else:
                difference = self.values[b][0] - self.values[a][0]
                p = _samples_p(scored[a].value, scored[b].value, self._is_binary)
            told = {"difference": difference, "p": p, "p_holm": math.nan}
            labels = {"a": self.versions[a].label, "b": self.versions[b].label}
            yield {"feedback": self.name, **labels, "n": len(of_a) if paired else None, **told}

    @property
    def _is_binary(self) -> bool:
        return self.metric.kind == "accuracy"

    def rows(self, pairs: Sequence[Mapping[str, Any]], level: float) -> Iterator[dict[str, Any]]:
        place = {version.label: i for i, version in enumerate(self.versions)}
        mine = [pair for pair in pairs if pair["feedback"] == self.name]
        shown = [
            frozenset((place[pair["a"]], place[pair["b"]]))
            for pair in mine
            if pair["p_holm"] is not None and pair["p_holm"] <= level + 1e-12
        ]
        compared = mine or len(self.versions) < 2
        found = assign_letters(range(len(self.versions)), shown) if compared else {}
        for i, (version, (mean, low, high, reason)) in enumerate(zip(self.versions, self.values, strict=True)):
            status = version.judged[self.name].status
            counts = {f"n_{word}": int((status == code).sum()) for code, word in enumerate(STATUSES)}
            told = {"feedback": self.name, "direction": self.direction, "metric": self.metric.signature}
            worst, best = self._bounds(mean, counts["n_scored"], len(status))
            told |= _known({"mean": mean, "low": low, "high": high, "worst": worst, "best": best})
            told |= {"reason": reason, "letters": found.get(i)}
            yield version.about | told | {"n": len(status), **counts}

    def _bounds(self, mean: float, scored: int, n: int) -> tuple[float, float]:
        """The means if each record without a value had the worst, or the best, that there can be."""
        if self.ends is None or not n or (scored and math.isnan(mean)):
            return math.nan, math.nan
        said = mean * scored if scored else 0.0
        low, high = ((said + (n - scored) * end) / n for end in self.ends)
        return (high, low) if self.direction == "lower" else (low, high)


@dataclass
class _Scored:
    """The records that have a value: what each was asked, and the value."""

    asked: np.ndarray
    input: np.ndarray
    value: np.ndarray

    @classmethod
    def of(cls, version: _Version, judged: _Judgement) -> _Scored:
        scored = judged.status == 0
        call = judged.call[scored]
        return cls(version.asked[call], version.input[call], judged.value[scored])


def _value(metric: Metric, value: np.ndarray) -> tuple[float, float, float, str | None]:
    """Mean, lower and upper end of the scores there are, and why there is none."""
    if not len(value):
        return math.nan, math.nan, math.nan, "no record has a score"
    low, high = metric.range
    outside = int(((value < low) | (value > high)).sum())
    if outside:
        told = f"{outside:,} of {len(value):,} values lie outside the range {low:g} to {high:g} that is declared"
        return math.nan, math.nan, math.nan, told
    found = metric.compute(metric.state({VALUE: value}, np.zeros(len(value), np.int64), 1))
    return float(found.value[0]), float(found.low[0]), float(found.high[0]), found.reason[0]


def _paired_p(apart: np.ndarray, inputs: np.ndarray, binary: bool) -> float:
    """McNemar's exact test, or where values are not 0 and 1, or inputs come again, the permutation test."""
    sums = np.bincount(inputs, apart)[np.bincount(inputs) > 0]
    if binary and len(sums) == len(apart):
        return mcnemar(int((apart > 0).sum()), int((apart < 0).sum()))
    return sign_flip(sums, drawn_up_to=_DRAWN_UP_TO).p


_DRAWN_UP_TO: Final = 500  # drawing takes long, and there may be hundreds of pairs


def _samples_p(a: np.ndarray, b: np.ndarray, binary: bool) -> float:
    """Whether two samples differ: Welch's test, or of zeros and ones the chi-squared test as E. Pearson gave it.

    Sources: B. L. Welch, "The generalization of 'Student's' problem when several different population variances are
    involved" (Biometrika 34, 1947); I. Campbell, "Chi-squared and Fisher-Irwin tests of two-by-two tables with small
    sample recommendations" (Statistics in Medicine 26, 2007), for the factor N − 1.
    """
    n, m = len(a), len(b)
    if not n or not m:
        return math.nan
    if binary:
        share = (a.sum() + b.sum()) / (n + m)
        spread = share * (1 - share) * (1 / n + 1 / m)
        z = math.sqrt((n + m - 1) / (n + m) / spread) * abs(b.mean() - a.mean()) if spread else 0.0
        return 2 * normal_tail(z)
    if min(n, m) < 2:
        return math.nan
    of_a, of_b = a.var(ddof=1) / n, b.var(ddof=1) / m
    if np.ptp(a) == np.ptp(b) == 0:  # rounding may still give them a spread
        return math.nan
    degrees = (of_a + of_b) ** 2 / (of_a**2 / (n - 1) + of_b**2 / (m - 1))
    return t_tail(abs(float(b.mean() - a.mean())) / math.sqrt(of_a + of_b), math.floor(degrees))


def _compared(boards: Sequence[_Board], notes: list[str]) -> list[dict[str, Any]]:
    """All pairs of all feedbacks, which are one family of tests."""
    many = [board.name for board in boards if len(board.versions) > MOST_COMPARED]
    if many:
        notes.append(f"{', '.join(many)}: of more than {MOST_COMPARED} versions it is not told which differ")
    pairs = [pair for board in boards if board.name not in many for pair in board.pairs()]
    adjusted = holm(np.array([pair["p"] for pair in pairs]))
    return [_known(pair | {"p_holm": float(p)}) for pair, p in zip(pairs, adjusted, strict=True)]


def _nothing_said() -> dict[str, Any]:
    nothing = dict.fromkeys(
        ("feedback", "direction", "metric", "mean", "low", "high", "worst", "best", "reason", "letters")
    )
    return nothing | {"n": 0} | {f"n_{status}": 0 for status in STATUSES}


def _known(told: Mapping[str, Any]) -> dict[str, Any]:
    return {name: None if isinstance(v, float) and not math.isfinite(v) else v for name, v in told.items()}
