"""`leaderboard`: the results of feedbacks for versions of apps side by side, and which versions differ.

    evaluand leaderboard rag
    print(leaderboard(DirectoryStore()))

Each version of an app is one line for each feedback: the mean with its interval and how many of how many records have
a score; and its latency, tokens and cost. All recordings of a version are taken together.

Design:

- A mean is shown with its counts: records whose feedback failed, abstained or was skipped, and records that wait to be
  judged, are reported and never counted as some number.
- How versions are compared is in `evaluand.apps.leaderboards.statistics`. All pairs of all feedbacks are one family of
  tests (Holm), and versions that share a letter do not differ significantly.
- An open recording counts as far as it is recorded, and of a recording only its last state counts: a snapshot and what
  followed are the same records.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from evaluand.apps.leaderboards.records import STATUSES, RecordColumns, find_recording, read_journal, read_run
from evaluand.apps.leaderboards.statistics import FeedbackBoard, compare_versions
from evaluand.apps.leaderboards.versions import group_versions, natural_order, version_label
from evaluand.apps.recording.kind import RECORDINGS
from evaluand.apps.recording.stored import Recording
from evaluand.apps.session import RecordingSession
from evaluand.comparison.measures import find_evaluations
from evaluand.comparison.verdict import printable
from evaluand.core.errors import NotFound, SpecError, with_article
from evaluand.evaluation.evaluator import Evaluation
from evaluand.evaluation.kind import EVALUATIONS
from evaluand.metrics.base.metric import check_confidence
from evaluand.run.runner import Run
from evaluand.store.store import Store, resolve

if TYPE_CHECKING:
    import pandas as pd

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
"""A row for each version and feedback, the best version of each feedback first. Latencies are seconds of completed
calls and known for `n_latency` of them (logged calls may have none); tokens and cost are known for `n_tokens` and
`n_cost` records; `worst` and `best` are the means if each record without a value had the worst or the best possible
value (None where no range is known); `reason` is why there is no mean or interval; versions of one feedback that share
a letter do not differ significantly."""

_ABOUT: Final = LEADERBOARD.names[: LEADERBOARD.names.index("feedback")]
_OF_FEEDBACK: Final = ("feedback", "direction", "metric", "mean", "low", "high", "worst", "best", "reason", "letters")


class Leaderboard:
    """Versions of apps side by side; created by `leaderboard`.

    Attributes:
        rows: by version and feedback, as in `LEADERBOARD`.
        spent: by version and feedback what judging cost, where providers were asked: how many `requests` for how many
            scores (`n`), tokens, known for `n_tokens` scores, and cost, known for `n_cost`; None where unknown. It is
            not part of what the calls themselves cost.
        pairs: by feedback every two versions: `a` and `b` (their labels), `difference` (b − a), `n` (the inputs both
            were asked, None where they are two samples), `p` and `p_holm`, None where they are undefined.
        notes: remarks on the numbers, a sentence each.
        confidence: of intervals and comparisons.
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
        """Each version once: its label, records, latency, tokens and cost."""
        by_label = {version_label(row): {name: row[name] for name in _ABOUT} for row in self.rows}
        return [{"label": label} | by_label[label] for label in sorted(by_label, key=natural_order)]

    def table(self) -> pa.Table:
        """The rows as an Arrow table; see `LEADERBOARD`."""
        return pa.Table.from_pylist(self.rows, LEADERBOARD)

    def to_pandas(self) -> pd.DataFrame:
        """The rows as a DataFrame; a SpecError if pandas is not installed."""
        try:
            frame: pd.DataFrame = self.table().to_pandas()
        except ImportError:
            raise SpecError("to_pandas needs pandas: pip install 'evaluand[pandas]'") from None
        return frame

    def to_dict(self) -> dict[str, Any]:
        """The leaderboard as JSON-like data."""
        return {
            "confidence": self.confidence,
            "versions": self.versions,
            "feedbacks": [{"label": version_label(row), **row} for row in self.rows if row["feedback"] is not None],
            "spent": self.spent,
            "pairs": self.pairs,
            "notes": self.notes,
        }

    def _lines(self) -> Iterator[str]:
        for feedback in self.feedbacks:
            yield from (_feedback_line(row) for row in self.rows if row["feedback"] == feedback)
        yield from map(_version_line, self.versions)
        yield from self.notes


def leaderboard(
    evaluations: Store | Iterable[Evaluation | Recording | RecordingSession | Run], *, confidence: float = 0.95
) -> Leaderboard:
    """The results of feedbacks for versions of apps, side by side.

    Args:
        evaluations: evaluations, recordings, open or closed, and runs; or a store: all its recordings and the
            evaluations of what they recorded. Evaluations of other runs count as a version named as their task.
        confidence: of intervals, and for the statement that two versions differ.

    Raises:
        SpecError: nothing was recorded.

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
    sources = collect_sources(evaluations) if hasattr(evaluations, "manifest") else list(evaluations)  # type: ignore[arg-type]
    versions = group_versions(read_sources(sources))
    if not versions:
        raise SpecError("nothing is recorded; record an app, or give its evaluations")
    notes: list[str] = []
    names = dict.fromkeys(name for version in versions for name in version.scores)
    boards = [FeedbackBoard.of(name, versions, confidence) for name in names]
    pairs = compare_versions(boards, notes)
    notes += [note for board in boards for note in board.notes()]
    notes += [
        f"{v.label} has costs in several currencies, which are not summed" for v in versions if len(v.currencies) > 1
    ]
    rows = [row for board in boards for row in board.rows(pairs, 1 - confidence)]
    unjudged = dict.fromkeys(_OF_FEEDBACK) | {"n": 0} | {f"n_{status}": 0 for status in STATUSES}
    rows += [version.about | unjudged for version in versions if not version.scores]
    spent = [one for version in versions for one in version.spent]
    notes += [
        f"{one['label']}: {one['feedback']} was paid in several currencies, which are not summed"
        for one in spent
        if one["n_cost"] and one["cost"] is None
    ]
    return Leaderboard(rows, pairs, notes, confidence, spent)


def _feedback_line(row: Mapping[str, Any]) -> str:
    mean = "–" if row["mean"] is None else f"{row['mean']:.4g}"
    interval = "" if row["low"] is None else f" [{row['low']:.4g}, {row['high']:.4g}]"
    unscored = "".join(f", {row[f'n_{s}']:,} {s}" for s in STATUSES[1:] if row[f"n_{s}"])
    bounds = "" if row["worst"] is None else f"; {row['worst']:.4g} to {row['best']:.4g} with all"
    counts = f"{row['n_scored']:,} of {row['n']:,} scored{unscored}{bounds if unscored else ''}"
    return f"{row['feedback']}: {version_label(row)} {mean}{interval} {row['letters']} ({counts})"


def _version_line(version: Mapping[str, Any]) -> str:
    median, p95, n_known = (version[name] for name in ("latency_median", "latency_p95", "n_latency"))
    completed = version["records"] - version["calls_failed"] - version["calls_skipped"]
    latency = ", latency unknown" if completed else ""
    if n_known:
        share = f" of {n_known:,} of {completed:,}" if n_known < completed else ""
        latency = f", latency{share} {median:.3g} s (95 % below {p95:.3g} s)"
    return f"{version['label']}: {version['records']:,} records{latency}"


def collect_sources(store: Store, names: Sequence[str] = ()) -> list[Evaluation | Recording | Run]:
    """The recordings of a store, or those of some names, and the evaluations of what they recorded.

    Raises:
        NotFound: nothing has such a name.
        SpecError: it is not something that has evaluations.
    """
    recordings = [Recording(store, id) for id in store.ids(RECORDINGS)]
    if not names:
        return add_evaluations(store, recordings)
    return add_evaluations(store, [source for name in names for source in _find_by_name(store, recordings, name)])


def add_evaluations(
    store: Store, sources: Sequence[Evaluation | Recording | Run]
) -> list[Evaluation | Recording | Run]:
    """The sources, and the evaluations that a store has of the recordings among them."""
    sources = [*sources]
    recordings = {source.id for source in sources if isinstance(source, Recording)}
    for id in store.ids(EVALUATIONS) if recordings else ():
        if store.is_sealed(EVALUATIONS, id) and find_recording(evaluation := Evaluation(store, id)) in recordings:
            sources.append(evaluation)
    return list({(type(source), source.id): source for source in sources}.values())


def _find_by_name(store: Store, recordings: Sequence[Recording], name: str) -> Sequence[Evaluation | Recording | Run]:
    """The recordings of an app or of that name; else the evaluations that a name or id refers to."""
    found = [each for each in recordings if name in (each.name, each.manifest["spec"]["app"].get("name"))]
    if found:
        return found
    with suppress(NotFound):
        return [Recording(store, resolve(store, name, RECORDINGS)[1])]
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
            run = source if isinstance(source, Run) else source.read_run()
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
