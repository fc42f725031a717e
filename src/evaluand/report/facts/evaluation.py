"""Facts about an evaluation: chosen scores with the questions and answers they grade."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from evaluand.core.errors import SpecError, nearest
from evaluand.report.facts.base import (
    KEY,
    Facts,
    choose_rows,
    count_statuses,
    matching_keys,
    plain_row,
    read_row,
    rows_with,
)
from evaluand.report.facts.run import add_ids, missing_facts, run_facts
from evaluand.report.text import SHORT_ID
from evaluand.run.excerpts import excerpts, to_json
from evaluand.store.statuses import SCORE_STATUSES, SCORED

if TYPE_CHECKING:
    import pyarrow as pa

    from evaluand.aggregation.aggregator import Measure
    from evaluand.evaluation.evaluator import Evaluation
    from evaluand.metrics.base.metric import Metric
    from evaluand.report.lineage import Lineage
    from evaluand.run.runner import Run


def evaluation_facts(
    evaluation: Evaluation,
    run: Run | None,
    examples: int = 0,
    *,
    failed: bool = False,
    below: float | None = None,
    scorers: Sequence[str] = (),
    measures: Sequence[Measure] = (),
    lowest: bool = False,
    against: Evaluation | None = None,
    where: str | None = None,
) -> Facts:
    """An evaluation: why rows of each scorer have no score, and the first rows (those without a score first).

    Args:
        run: the run that was graded, if it is in the store.
        examples: how many rows of each scorer.
        failed: only rows without a score.
        below: only rows scored below this.
        scorers: only rows of these; all if empty.
        measures: those that summarised the scores; they define which of several answers decides whether a row is below.
        lowest: the rows with the lowest scores, the lowest first.
        against: only rows that this other evaluation grades differently, with its grades, the largest difference first.
        where: only rows that match this condition, see `RowFilter`; not together with `lowest` and `against`.
    """
    for scorer in scorers:
        if scorer not in evaluation.scorers:
            hint = nearest(scorer, evaluation.scorers)
            raise SpecError(f"no scorer is called {scorer!r}{hint}; there are {', '.join(evaluation.scorers)}")
    metrics = first_metrics(measures)
    asked_for = [scorer for scorer in evaluation.scorers if not scorers or scorer in scorers]
    missing = [reason for reason in missing_facts(None, evaluation) if reason["scorer"] in asked_for]
    facts: Facts = {
        "missing": missing if run is None else add_ids(run, missing),
        "replications": None if run is None else run.manifest["spec"]["replications"],
    }
    if lowest or against is not None:
        return facts | {"rows": _choose_by_lineage(evaluation, against, asked_for, examples)}
    keys = None if where is None else matching_keys(evaluation, where)
    chosen = {}
    for scorer in asked_for:
        batches, counts = evaluation.batches(scorer), evaluation.counts[scorer]
        if keys is not None:
            matching = list(rows_with(batches, (*KEY, "_response_index_", "target"), keys, scorer))
            batches, counts = iter(matching), count_statuses(matching)
        chosen[scorer] = (
            choose_rows(batches, counts, SCORED, examples, failed)
            if below is None
            else _choose_low(batches, examples, below, metrics.get(scorer))
        )
    _complete_calls(evaluation, run, chosen)
    shown = {(row["_index_"], row["replication"]) for found in chosen.values() for row in found}
    questions = excerpts(run, shown) if run is not None else {}
    return facts | {
        "rows": {
            scorer: [plain_row(row) | questions.get((row["_index_"], row["replication"]), {}) for row in found]
            for scorer, found in chosen.items()
        },
    }


def example_facts(evaluation: Evaluation, run: Run, index: int) -> Facts:
    """One example: its calls and, by scorer, their grades."""
    calls = run_facts(run, index=index)["rows"]
    rows = grades_facts(evaluation, index)
    facts = {
        "replications": run.manifest["spec"]["replications"],
        "task": run.manifest["provenance"].get("task", "task"),
    }
    return facts | {"missing": [], "rows": rows, "calls": calls}


def grades_facts(evaluation: Evaluation, index: int) -> dict[str, list[Facts]]:
    """By scorer, the scores of the example with this `_index_`."""
    found = {
        scorer: [
            read_row(batch, i)
            for batch in evaluation.batches(scorer)
            for i, other in enumerate(batch.column("_index_").to_pylist())
            if other == index
        ]
        for scorer in evaluation.scorers
    }
    _complete_calls(evaluation, evaluation.run, found)
    return {scorer: [plain_row(row) for row in rows] for scorer, rows in found.items()}


def add_judge_messages(evaluation: Evaluation, run: Run | None, rows: Mapping[str, Sequence[Facts]]) -> None:
    """Adds what judges were sent to rows by scorer: `sent`, or `not_sent`, why that is not known."""
    from evaluand.judges.sent_messages import SentMessages  # on use: needs Arrow

    sent = SentMessages(evaluation, run)
    judges = [name for name in evaluation.manifest["provenance"].get("judges") or () if name in rows]
    judged = ((row, name) for name in judges for row in rows[name])
    for row, name in sorted(judged, key=lambda each: (each[0]["_index_"], each[0]["replication"])):
        found = sent.of(name, row)
        row |= {NOT_SENT: found} if isinstance(found, str) else {SENT: [each._asdict() for each in found]}


SENT: Final = "sent"
NOT_SENT: Final = "not_sent"


_GRADED = ("_index_", "replication", "_response_index_", "target", "status", "value")


def _choose_low(batches: Iterable[pa.RecordBatch], n: int, below: float, metric: Metric | None) -> list[dict[str, Any]]:
    """The first rows scored below a value, among those that decide a metric."""
    keys = (
        (row[:2], row[2:], batch, i)
        for batch in batches
        for i, row in enumerate(zip(*(batch.column(name).to_pylist() for name in _GRADED), strict=True))
    )
    low = (
        read_row(rows[i][2], rows[i][3])
        for _, group in itertools.groupby(keys, lambda row: row[0])
        for rows in [list(group)]
        for i in deciding([row[1] for row in rows], metric)
        if (value := rows[i][1][-1]) is not None and value < below
    )
    return list(itertools.islice(low, n))


def _choose_by_lineage(
    evaluation: Evaluation, against: Evaluation | None, scorers: Sequence[str], n: int
) -> dict[str, list[Facts]]:
    """By scorer, the lowest rows, or those that another evaluation grades differently, each followed by that grade."""
    from evaluand.report.lineage import lineage_of_scores  # on use, as above

    found = {}
    for scorer in scorers:
        if against is None:
            found[scorer] = graded_rows(lineage_of_scores(evaluation, scorer).lowest(n))
        elif scorer in against.scorers:
            found[scorer] = graded_rows(lineage_of_scores([evaluation, against], scorer).disagreements().head(2 * n))
    if not found and against is not None:
        raise SpecError(f"the two evaluations share no scorer; the other has {', '.join(against.scorers)}")
    return found


def graded_rows(found: Lineage) -> list[Facts]:
    """The scores of a lineage, each with its question and answer, and its evaluation if there are several."""
    rows = [read_row(batch, i) for batch in found.scores.to_batches() for i in range(batch.num_rows)]
    questions: dict[tuple[int, int, int], Facts] = {}
    for number in {row["evaluation"] for row in rows}:
        evaluation, own = found.evaluations[number], [row for row in rows if row["evaluation"] == number]
        run, by_scorer = evaluation.run, {s: [row for row in own if row["scorer"] == s] for s in evaluation.scorers}
        _complete_calls(evaluation, run, by_scorer)
        known = {} if run is None else excerpts(run, {(row["_index_"], row["replication"]) for row in own})
        questions |= {(number, *key): facts for key, facts in known.items()}
    several = len(found.evaluations) > 1
    names = [each.name or each.id[:SHORT_ID] for each in found.evaluations]
    return [
        ({"evaluation": names[row["evaluation"]]} if several else {})
        | plain_row({name: value for name, value in row.items() if name not in ("evaluation", "scorer")})
        | questions.get((row["evaluation"], row["_index_"], row["replication"]), {})
        for row in rows
    ]


def _complete_calls(evaluation: Evaluation, run: Run | None, rows: Mapping[str, Sequence[Facts]]) -> None:
    """Completes the calls in rows of feedbacks, by scorer, with what only the run stores."""
    from evaluand.evaluation.scorer import find_call_reader
    from evaluand.evaluation.units import Sources  # on use: `evaluand list` does without Arrow

    sources, specs = Sources(run), evaluation.manifest["spec"]["scorers"]
    readers = {scorer: find_call_reader(specs[scorer]) for scorer in rows}
    judged = [(row, read) for s, found in rows.items() if (read := readers[s]) for row in found if row[CALLS]]
    for row, read in sorted(judged, key=lambda each: (each[0]["_index_"], each[0]["replication"])):
        source = partial(sources.of, row["_index_"], row["replication"], row["_response_index_"])
        row[CALLS] = to_json(read(row[CALLS], source))


def feedback_calls(value: Any) -> list[Facts] | None:
    """The calls of a feedback, `{args, ret, meta, error}` each; None if the column holds something else.

    Example:
        >>> feedback_calls([{"args": {"text": "a"}, "ret": 1.0, "meta": {}, "error": None}]) is not None
        True
        >>> feedback_calls(["a", "b"]) is None
        True
    """
    if not isinstance(value, list) or not value:
        return None
    known = all(isinstance(each, dict) and each.keys() == _CALL_KEYS for each in value)
    return value if known and all(isinstance(each[n], dict) for each in value for n in ("args", "meta")) else None


CALLS: Final = "calls"
"""The column of a feedback's table that holds its calls."""


_CALL_KEYS: Final = {"args", "ret", "meta", "error"}


def deciding(scores: Sequence[tuple[int | None, str | None, str, float | None]], metric: Metric | None) -> list[int]:
    """The positions of the scores of one call that decide a metric: of several answers the first, the best, or all.

    Args:
        scores: `_response_index_`, target, status and value of each.
        metric: None uses all.

    Example:
        >>> from evaluand.metrics.accuracy import Accuracy
        >>> scores = [(0, None, "scored", 0.0), (1, None, "scored", 1.0)]
        >>> deciding(scores, Accuracy()), deciding(scores, Accuracy(reduce="any")), deciding(scores, None)
        ([0], [1], [0, 1])
    """
    if metric is None:
        return [*range(len(scores))]
    within = [i for i, (number, *_) in enumerate(scores) if (number or 0) < metric.looks_at]
    if metric.reduce not in ("any", "best"):
        return within
    sign = 1 if metric.reduce == "best" and metric.direction == "lower" else -1

    def rank(place: int) -> tuple[int, float]:
        _, _, status, value = scores[place]
        return SCORE_STATUSES.index(status), sign * (value or 0.0)

    targets = dict.fromkeys(scores[i][1] for i in within)
    return [min((i for i in within if scores[i][1] == target), key=rank) for target in targets]


def first_metrics(measures: Iterable[Measure]) -> dict[str, Metric]:
    """The first metric of each scorer: it decides whether a row is right or wrong."""
    found: dict[str, Metric] = {}
    for measure in measures:
        found.setdefault(measure.scorer, measure.metric)
    return found
