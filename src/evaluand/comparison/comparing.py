"""`compare`: two or more evaluations, compared row by row and stored as a `Comparison`.

Its tables are `pairs`, `ranking` and `flips`, and `left_out` if metrics refused the scores of an evaluation.
"""

import itertools
import math
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, Protocol, Self, TypedDict, Unpack

import numpy as np
import pyarrow as pa

from evaluand.aggregation.aggregator import Aggregation, Measure, read_measure, shared_ranges, with_ranges
from evaluand.aggregation.groups import group_text, order_groups
from evaluand.aggregation.score_shards import dataset_of, digests_of_labels
from evaluand.aggregation.seen import heaviest_cluster
from evaluand.comparison.changed import check_examples, check_rows
from evaluand.comparison.difference import change_of_rows, describe, rows_without_partner, weighted_mean
from evaluand.comparison.factors import Factor, find_factor
from evaluand.comparison.labelled_differences import LabelledRows
from evaluand.comparison.measures import declared_measures, definition, find_places, left_out_row, resolve_measures
from evaluand.comparison.measuring import measure_pair, read_rows
from evaluand.comparison.metric_differences import Computed, metric_value
from evaluand.comparison.pairing import PairedRows, Pairing, pair_rows
from evaluand.comparison.prompts import prompt_changes
from evaluand.comparison.significance import assign_letters, benjamini_hochberg, holm, shaffer
from evaluand.comparison.verdict import (
    GROUPS,
    PRIMARY,
    SECONDARY,
    family_key,
    family_of,
    format_p,
    is_significant,
    is_test,
    printable,
    same_evaluation_verdict,
    verdict,
)
from evaluand.core import identity
from evaluand.core.errors import DataError, EvaluandError, EvaluandWarning, NotFound, SpecError, first_fault, warn
from evaluand.core.key_columns import INDEX
from evaluand.core.labels import short_labels
from evaluand.core.near import keywords
from evaluand.core.provenance import experiment_origin, provenance
from evaluand.data.row_filter import RowFilter
from evaluand.engine.keyed_work import Artifact, Receipt
from evaluand.evaluation.evaluator import Evaluation
from evaluand.evaluation.kind import EVALUATIONS
from evaluand.metrics.base.metric import Metric, Missing, check_confidence, check_whole_number
from evaluand.run.excerpts import examples_at, excerpts
from evaluand.run.runner import Run
from evaluand.store.sealing import seal_tables, tables_digest
from evaluand.store.store import (
    Manifest,
    MemoryStore,
    Ref,
    Store,
    caveats,
    check_name,
    exists,
    find_sealed_from,
    find_stops,
    give_name,
)
from evaluand.store.tables import FLIPS, LEFT_OUT, PAIRS, RANKING
from evaluand.store.window import WindowedStore

METHOD = 5
"""Raised whenever the same evaluations and parameters would give other numbers."""


class Comparison(Artifact):
    """A comparison in a store.

    Attributes:
        labels: short names of the evaluations.
    """

    kind = "comparisons"

    def __init__(
        self, store: Store, id: str, receipt: Receipt | None = None, labels: Sequence[str] | None = None
    ) -> None:
        super().__init__(store, id, receipt)
        self.labels: list[str] = list(labels or self.manifest["provenance"]["labels"])

    def __repr__(self) -> str:
        return f"Comparison({self.id[:12]}, {', '.join(map(printable, self.labels))})"

    def __str__(self) -> str:
        """The verdict of each pair and metric, and the ranking."""
        return "\n".join(printable(line) for line in self._summary_lines())

    def _summary_lines(self) -> Iterator[str]:
        labels, pairs = self.labels, self.pairs
        for pair in pairs:
            yield f"{row_title(pair)}: {pair['verdict']}"
        for place in self.ranking:
            value = "–" if place["value"] is None else f"{place['value']:.4g}"
            yield f"{row_title(place)}: {labels[place['evaluation']]} {value} {place['letters']}"
        for one in self.left_out:
            yield f"{row_title(one | {'target': None})}: not compared, {one['reason']}"
        yield from self.caveats

    @property
    def confidence(self) -> float:
        return float(self.manifest["spec"]["confidence"])

    @property
    def evaluations(self) -> list[str]:
        """The ids of the evaluations compared, in the order given."""
        return list(self.manifest["provenance"]["evaluations"])

    @property
    def pairs(self) -> list[dict[str, Any]]:
        """Every two evaluations by every metric: the columns of `store.tables.PAIRS` and the `verdict` as a sentence.

        `clustered_by` is the column that defines the `clusters`; where it is None, each example is a cluster.
        """
        column = self._cluster_column()
        missing = dict.fromkeys(("p_shaffer", "by", "family", "correlation", "variance_saved", "p_interaction"))
        rows = [missing | row for row in self.read_rows("pairs")]  # those of earlier versions lack some
        return [
            pair
            | {"by": pair["by"] and dict(pair["by"])}
            | {"clustered_by": None if pair["clusters"] is None else column}
            | {"verdict": self._verdict(pair, family_of(pair, rows))}
            for pair in rows
        ]

    @property
    def ranking(self) -> list[dict[str, Any]]:
        """For three or more evaluations: by metric, best first, over the rows that all of them have."""
        return self.read_rows("ranking")

    @property
    def left_out(self) -> list[dict[str, Any]]:
        """The declared metrics that are not compared: `scorer`, `metric`, `signature` and the `reason`."""
        return [*self.manifest["spec"].get("left_out", ()), *self.refused]

    @property
    def refused(self) -> list[dict[str, Any]]:
        """The declared metrics that refused the scores of an evaluation."""
        return self.read_rows("left_out") if "left_out" in self.manifest["counts"] else []

    @property
    def caveats(self) -> list[str]:
        """See `store.caveats`, of the evaluations compared."""
        return caveats(self.store, [(EVALUATIONS, id) for id in self.evaluations])

    def flips(self) -> list[dict[str, Any]]:
        """The examples won and lost: the first of each pair, or those that gained and lost most.

        Returns:
            Rows with `pair` (its position in `pairs`), `flip` (`won` or `lost`), both `_index_`, `replication` and
            values, and the question and both answers: `id`, `input`, `expected`, `responses_a`, `responses_b`.
        """
        flips, pairs = self.read_rows("flips"), self.read_rows("pairs")
        keys: dict[int, set[tuple[int, int]]] = {}
        for flip, side in itertools.product(flips, "ab"):
            evaluation = pairs[flip["pair"]][side]
            keys.setdefault(evaluation, set()).add((flip[f"index_{side}"], flip["replication"]))
        excerpts = {evaluation: self._read_excerpts(evaluation, those) for evaluation, those in keys.items()}
        return [flip | _question_and_answers(flip, pairs[flip["pair"]], excerpts) for flip in flips]

    def to_dict(self) -> dict[str, Any]:
        """All of it as JSON-like data."""
        refs = self.store.refs()
        return {
            "id": self.id,
            "digest": self.digest,
            "confidence": self.confidence,
            "evaluations": [
                _describe_evaluation(self.store, id, label, refs)
                for id, label in zip(self.evaluations, self.labels, strict=True)
            ],
            "over": self.manifest["spec"].get("over"),
            "prompts": prompt_changes(find_tasks(self.store, self.evaluations)),
            "pairs": self.pairs,
            "ranking": self.ranking,
            "left_out": self.left_out,
            "caveats": self.caveats,
            "flips": self.flips(),
        }

    def _verdict(self, pair: Mapping[str, Any], family: int) -> str:
        a, b = self.evaluations[pair["a"]], self.evaluations[pair["b"]]
        if over := self.manifest["spec"].get("over"):
            sentence, p = verdict(pair, over["levels"], self.confidence, family), pair["p_interaction"]
            return sentence if p is None else f"{sentence}; interaction with the {over['other']}: {format_p(p)}"
        if a == b:
            return same_evaluation_verdict(pair, self.labels, a)
        return verdict(pair, self.labels, self.confidence, family)

    def read_rows(self, table: str) -> list[dict[str, Any]]:
        """The stored rows of a table; those of earlier versions may lack columns."""
        return [row for batch in self.store.read("comparisons", self.id, table) for row in batch.to_pylist()]

    def _cluster_column(self) -> str | None:
        """The columns that define clusters in the datasets; None unless every dataset declares one."""
        try:
            datasets = [dataset_of(Evaluation(self.store, id)) for id in self.evaluations]
        except NotFound:
            return None
        names = [dataset.roles.cluster for dataset in datasets]
        return None if None in names else " and ".join(dict.fromkeys(filter(None, names)))

    def _read_excerpts(self, evaluation: int, keys: set[tuple[int, int]]) -> dict[tuple[int, int], dict[str, Any]]:
        try:
            store: Any = WindowedStore(self.store, (index for index, _ in keys))
            return excerpts(Evaluation(store, self.evaluations[evaluation]).read_run(), keys)
        except NotFound as error:
            warn(f"inputs and answers of {self.labels[evaluation]} are left out: {error}")
            return {}


def find_tasks(store: Store, evaluations: Sequence[str]) -> list[Mapping[str, Any]]:
    """The identities of the tasks that were evaluated; empty where a run is not in the store."""
    runs = [Evaluation(store, id).run if exists(store, EVALUATIONS, id) else None for id in evaluations]
    return [{} if run is None else run.manifest["spec"]["task"] for run in runs]


class Storable(Protocol):
    """Results in memory that become an evaluation in a store, such as those of `evaluate`."""

    def to_evaluation(self, store: Store, name: str) -> Evaluation:
        """The evaluation in a store."""


@dataclass(frozen=True, kw_only=True)
class RowRequest:
    """Which rows are compared, and of which sides.

    Attributes:
        by: attributes: a difference for each of their groups, too, with p values adjusted for all groups of a metric.
        where: a condition on attributes, such as `sex == "F" and age > 30`: only these examples.
        over: `prompt` or `model`: the evaluations are those of each prompt with each model, and two prompts (or models)
            are compared by the mean of each example over all models (or prompts).
    """

    by: str | Sequence[str] = ()
    where: str | None = None
    over: str | None = None


class RowOptions(TypedDict, total=False):
    """The keywords of `RowRequest`."""

    by: str | Sequence[str]
    where: str | None
    over: str | None


@keywords(RowRequest)
def compare(
    *evaluations: Evaluation | Storable,
    scorers: str | Sequence[str] | None = None,
    metrics: str | Metric | Measure | Sequence[str | Metric | Measure] | None = None,
    missing: Missing | None = None,
    confidence: float = 0.95,
    flips: int = 3,
    labels: Sequence[str] | None = None,
    name: str | None = None,
    origin: dict[str, Any] | None = None,
    declared: Sequence[Measure] | None = None,
    primary: str | Measure | Sequence[str | Measure] | None = None,
    **rows: Unpack[RowOptions],
) -> Comparison:
    """Compares evaluations of one store row by row; a comparison that is already stored is returned.

    Two rows are paired if they have the same example (by its digest) and replication. Rows that only one side has are
    counted and listed; a warning says how many examples have the same id but different content. Rows without a score on
    a side are left out of the pair, with the bounds that follow; see `missing` of the metrics.

    Args:
        evaluations: two or more, or results of `evaluate` of the same truth; the first is the baseline.
        scorers: names of scorers; None takes all that the evaluations share.
        metrics: objects or names; None takes those that summarised the scores, if they have differences and take the
            scores of all evaluations (`left_out` lists the others). Where no metric is known: `accuracy` if all scores
            are 0 or 1, else `mean` without a direction.
        missing: what happens to rows without a score, in place of what the metrics say.
        confidence: of the intervals and of the statement that two systems differ.
        flips: how many examples of each pair to list as won and as lost.
        labels: short names of the evaluations; by default their names without the part that all share.
        origin: where the request came from, for provenance.
        declared: measures that define the direction, range, column and weights of metrics given by name; None takes
            those of the aggregations that summarised the evaluations.
        primary: the metrics that decide, such as those of gates: the pairs of each are tested alone, and those by all
            others together. By default those of the experiment that compared the evaluations; without any that is
            compared, the first metric.
        rows: `by`, `where` and `over`, see `RowRequest`.

    Raises:
        SpecError: the evaluations share nothing that could be compared, lack an attribute or form no such matrix.
        DataError: a metric that is named, or every declared one, refuses the scores of an evaluation; with
            `missing='refuse'` rows are missing; or examples of the same id differ in the recorded outputs of the
            systems.

    Example:
        >>> from evaluand.data.dataset import Dataset
        >>> from evaluand.evaluation.evaluator import Evaluator
        >>> from evaluand.run.runner import Runner
        >>> data = Dataset.from_rows([{"input": str(i), "expected": str(i)} for i in range(40)])
        >>> runner = Runner()
        >>> tasks = [lambda text: "0" if int(text) < 20 else text, str.strip]
        >>> right = {"right": lambda output, expected: output == expected}
        >>> a, b = (Evaluator().evaluate(runner.run(task, data), right, name=n) for task, n in zip(tasks, ("a", "b")))
        >>> print(compare(a, b))
        accuracy · right: b is better: b − a = +47.5 points [32.9, 62.5]; p < 0.0001
    """
    check_confidence("compare", confidence)
    check_whole_number("compare", "flips", flips, 0)
    if name is not None:
        check_name(name)
    n = len(evaluations)
    is_list = isinstance(labels, list | tuple) and len(labels) == n and all(isinstance(each, str) for each in labels)
    if not (labels is None or is_list):
        raise SpecError(f"labels must be a list of texts, one for each of the {n} evaluations, not {labels!r}")
    evaluations, labels = _as_evaluations(evaluations, labels)
    store = _one_store(evaluations)
    known = declared_measures(evaluations) if declared is None else declared
    measures, left_out = resolve_measures(evaluations, scorers, metrics, missing, known)
    short = short_labels(labels or [e.name for e in evaluations], [e.id for e in evaluations])
    check_examples(evaluations, short)
    chosen = _ChosenRows.of(RowRequest(**rows), evaluations, short)
    primary = _primary_of_experiment(evaluations) if primary is None else primary
    deciding = find_places(primary, measures, missing) or [0]
    asked = _Asked(evaluations, short, measures, left_out, deciding, float(confidence), flips, chosen)
    spec = asked.spec
    id = identity.artifact_id("comparisons", spec)
    stored, is_named = store.is_sealed("comparisons", id), bool(metrics) or missing == "refuse"
    if not stored or (is_named and Comparison(store, id).refused):  # then the error is raised again
        tables = _compute_tables(asked, may_refuse=not is_named)
        batches = {table: pa.RecordBatch.from_pylist(own, TABLES[table]) for table, own in tables.items()}
        made_from = provenance(origin) | {"labels": short, "evaluations": [e.id for e in evaluations]}
        seal_tables(store, "comparisons", id, spec, batches, name, made_from)
    give_name(store, name, "comparisons", id, origin or {})
    receipt = Receipt(1, kept=1, why="made before") if stored else Receipt(1, called=1)
    return Comparison(store, id, receipt, short)


def _primary_of_experiment(evaluations: Sequence[Evaluation]) -> list[Measure]:
    """The primary metrics of the newest comparison of these evaluations, and perhaps more, that an experiment made."""
    made = [one for one in _find_comparisons(evaluations) if experiment_origin(one)]
    if not made:
        return []
    spec = made[0]["spec"]
    places = spec.get("primary", 0)
    measures = (read_measure(spec["measures"][place]) for place in (places if isinstance(places, list) else [places]))
    return [measure for measure in measures if measure is not None]


def _as_evaluations(
    given: Sequence[Evaluation | Storable], labels: Sequence[str] | None
) -> tuple[tuple[Evaluation, ...], Sequence[str] | None]:
    """Evaluations in one store, with labels for results that have no name."""
    if all(isinstance(each, Evaluation) for each in given):
        return tuple(each for each in given if isinstance(each, Evaluation)), labels
    store = next((each.store for each in given if isinstance(each, Evaluation)), None) or MemoryStore()
    named = labels or [
        (each.name or each.id[:12]) if isinstance(each, Evaluation) else _LETTERS[place % len(_LETTERS)]
        for place, each in enumerate(given)
    ]
    found: list[Any] = []
    for each, name in zip(given, named, strict=True):
        found.append(each.to_evaluation(store, name) if hasattr(each, "to_evaluation") else each)
    if all(isinstance(each, Evaluation) for each in found):  # else they are refused
        check_rows(found, named)
    return tuple(found), named


_LETTERS: Final = "abcdefghijklmnopqrstuvwxyz"


def _one_store(evaluations: Sequence[Evaluation]) -> Store:
    if not all(isinstance(e, Evaluation) for e in evaluations):
        raise SpecError(
            "compare takes evaluations and results: write compare(evaluate(truth, old), evaluate(truth, new)), or"
            " `evaluand compare OLD NEW` in a shell for what is stored"
        )
    if len(evaluations) < 2:
        raise SpecError("a comparison needs two evaluations or more")
    store = evaluations[0].store
    for evaluation in evaluations:
        if not exists(store, EVALUATIONS, evaluation.id):
            raise SpecError(f"{evaluation!r} is in another store; evaluations are compared in one store")
    return store


MOST_GROUPS: Final = 50
"""The most groups of an attribute; one with more values, such as an id, makes none."""


class _ChosenRows(NamedTuple):
    """The rows that a request chooses; see `Pairing`.

    Attributes:
        stopped: the places of the evaluations of runs that a rule stopped at one of several looks.
    """

    by: Sequence[str]
    where: str | None
    matching: Sequence[np.ndarray] | None
    factor: Factor | None
    stopped: Sequence[int]

    @classmethod
    def of(cls, request: RowRequest, evaluations: Sequence[Evaluation], labels: Sequence[str]) -> Self:
        """The rows of some evaluations.

        Raises:
            SpecError: an attribute does not exist or has too many groups, no example matches, or there is no matrix.
        """
        by = (request.by,) if isinstance(request.by, str) else tuple(dict.fromkeys(request.by))
        where, over, matching = request.where, request.over, dict[str, np.ndarray]()
        datasets = [*map(dataset_of, evaluations)] if by or where is not None else []
        for dataset in datasets:
            dataset.check_attributes([*by, *([] if where is None else RowFilter(where).columns)])
            for name in by:
                if (n := dataset.count_values(name)) > MOST_GROUPS:
                    raise SpecError(
                        f"{name!r} has {n:,} values; compare by one with at most {MOST_GROUPS}, such as ranges of it"
                    )
            if where is not None and dataset.digest not in matching:
                matching[dataset.digest] = dataset.matches(where)
                if not matching[dataset.digest].any():
                    raise SpecError(f"no example matches {where!r}, so nothing can be compared")
        tasks = [] if over is None else find_tasks(evaluations[0].store, [each.id for each in evaluations])
        factor = None if over is None else find_factor(over, tasks, labels)
        matches = [matching[each.digest] for each in datasets] if matching else None
        stopped = [place for place, e in enumerate(evaluations) if find_stops(e.store, [(EVALUATIONS, e.id)])]
        return cls(by, where, matches, factor, stopped)


@dataclass(frozen=True)
class _Asked:
    """What a comparison is asked for.

    Attributes:
        left_out: the declared metrics that are not compared.
        primary: the places of the primary measures.
    """

    evaluations: Sequence[Evaluation]
    labels: Sequence[str]
    measures: Sequence[Measure]
    left_out: Sequence[Mapping[str, str]]
    primary: Sequence[int]
    confidence: float
    flips: int
    rows: _ChosenRows

    @property
    def spec(self) -> dict[str, Any]:
        rows, primary = self.rows, [*self.primary]
        spec = {
            "method": METHOD,
            "evaluations": [e.digest for e in self.evaluations],
            "evaluation_ids": [e.id for e in self.evaluations],
            "runs": [e.manifest["spec"]["run"] for e in self.evaluations],
            "datasets": [e.manifest["spec"]["dataset"] for e in self.evaluations],
            "measures": [measure.spec for measure in self.measures],
            "confidence": self.confidence,
            "flips": self.flips,
            "labels": self.labels,
        } | digests_of_labels(self.evaluations, (measure.metric for measure in self.measures))
        chosen: dict[str, Any] = {"left_out": self.left_out, "primary": primary if len(primary) > 1 else primary[0]}
        chosen |= {"stopped": rows.stopped, "by": [*rows.by], "where": rows.where}
        chosen |= {"over": rows.factor and rows.factor.describe()}
        return spec | {name: value for name, value in chosen.items() if value}

    @property
    def sides(self) -> list[list[int]]:
        """The evaluations of each side: one, or those of a level of a factor."""
        factor = self.rows.factor
        return [[side] for side in range(len(self.evaluations))] if factor is None else factor.cells.tolist()


def stored_digest(store: Store, id: str) -> tuple[str, dict[str, int]]:
    """The digest and the row counts of a stored comparison, computed from the rows as they are now."""
    comparison = Comparison(store, id)
    tables = {table: comparison.read_rows(table) for table in TABLES if table in comparison.manifest["counts"]}
    return tables_digest(tables.values()), {table: len(rows) for table, rows in tables.items()}


def find_comparison(evaluations: Sequence[Evaluation], summaries: Iterable[Aggregation]) -> Comparison | None:
    """The stored comparison of exactly these evaluations by exactly the metrics by which `compare` compares them.

    Of several the one with most examples, then the newest.

    Args:
        summaries: declare the metrics; without any, those that `compare` takes without a declaration are meant.
    """
    asked, ids = _AskedMetrics(evaluations, [*summaries]), sorted(each.id for each in evaluations)
    of_these = (one for one in _find_comparisons(evaluations) if sorted(one["provenance"]["evaluations"]) == ids)
    found = [(*rank, manifest["id"]) for manifest in of_these if (rank := asked.rank(manifest)) is not None]
    return Comparison(evaluations[0].store, max(found)[-1]) if found else None


def _find_comparisons(evaluations: Sequence[Evaluation]) -> list[Manifest]:
    """The manifests of the stored comparisons of these evaluations, and perhaps more, the newest first."""
    made = find_sealed_from(evaluations[0].store, "comparisons", EVALUATIONS, evaluations[0].id)
    ids = {each.id for each in evaluations}
    return [one for one in made if ids <= {*one["provenance"]["evaluations"]}]


class _AskedMetrics:
    """The metrics by which evaluations are to be compared; those of the user's code are known by their spec only."""

    def __init__(self, evaluations: Sequence[Evaluation], summaries: Sequence[Aggregation]) -> None:
        self.ranges = shared_ranges(evaluations)
        declared = [measure for summary in summaries for measure in summary.measures]
        specs = [spec for summary in summaries for spec in summary.manifest["spec"]["measures"]]
        self.own_code = {_encode(spec) for spec in specs if read_measure(spec) is None and "where" not in spec}
        self.declared = self._definitions(declared)
        self.compared = set[tuple[str, str]]()
        try:
            with warnings.catch_warnings(action="ignore", category=EvaluandWarning):
                self.compared = self._definitions(resolve_measures(evaluations, None, None, None, declared).compared)
        except SpecError:  # they share no scorer that returns numbers, but perhaps a metric of the user's code
            pass

    def rank(self, comparison: Manifest) -> tuple[int, int, str] | None:
        """The place of a comparison among those by these metrics; None if it is by others."""
        specs = comparison["spec"]["measures"]
        own_code = {_encode(spec) for spec in specs if read_measure(spec) is None}
        known = self._definitions(measure for spec in specs if (measure := read_measure(spec)) is not None)
        if own_code:
            suits = own_code <= self.own_code and known <= self.declared | self.compared
        else:
            suits = known == self.compared
        return (len(own_code), comparison["spec"]["flips"], str(comparison["created"])) if suits else None

    def _definitions(self, measures: Iterable[Measure]) -> set[tuple[str, str]]:
        return {(each.scorer, definition(each.metric)) for each in with_ranges(measures, self.ranges)}


def _encode(spec: Any) -> bytes:
    """The scorer and the metric of a stored measure."""
    return identity.encode([spec["scorer"], spec["metric"]])


def _question_and_answers(
    flip: Mapping[str, Any], pair: Mapping[str, Any], excerpts: Mapping[int, Any]
) -> dict[str, Any]:
    a, b = (
        excerpts[pair[side]].get((flip[f"index_{side}"], flip["replication"]), {"responses": None}) for side in "ab"
    )
    question = {name: a.get(name) for name in ("id", "input", "expected")}
    return question | {"responses_a": a["responses"], "responses_b": b["responses"]}


def row_title(row: Mapping[str, Any]) -> str:
    """The metric, scorer and target of a row of pairs or of the ranking."""
    metric = row.get("metric") or str(row["signature"]).split(" ", 1)[0]
    group = group_text(row["by"]) if row.get("by") else None
    return " · ".join(part for part in (metric, row["scorer"], row["target"], group) if part is not None)


def _describe_evaluation(store: Store, id: str, label: str, refs: Sequence[Ref]) -> dict[str, Any]:
    """What is known of an evaluation, with what its calls and its judges have used, `{"usage": {run, evaluation}}`."""
    found: dict[str, Any] = {"id": id, "name": None, "label": label}
    made: dict[str, Run | Evaluation | None] = {}
    with suppress(NotFound):
        made["evaluation"] = evaluation = Evaluation(store, id)
        names = (ref.name for ref in refs if (ref.kind, ref.id) == (EVALUATIONS, id))
        found["name"] = next((name for name in names if f"/{name}".endswith(f"/{label}")), evaluation.name)
        made["run"] = evaluation.run
    known = {name: each.manifest["usage"] for name, each in made.items() if each and "usage" in each.manifest}
    return found | ({"usage": known} if known else {})


SHOWN_IDS: Final = 5


TABLES: Final = {"pairs": PAIRS, "ranking": RANKING, "flips": FLIPS, "left_out": LEFT_OUT}


_Tables = dict[str, list[dict[str, Any]]]
"""Rows by table."""


def _compute_tables(asked: _Asked, *, may_refuse: bool) -> _Tables:
    """The rows of all tables: every two evaluations by every measure and target.

    Args:
        may_refuse: whether a measure that refuses the scores of an evaluation is left out.

    Raises:
        DataError: a measure refuses the scores of an evaluation and may not, or all do.
    """
    rows: _Tables = {table: [] for table in TABLES}
    pairing: Pairing | None = None
    compared: dict[int, set[tuple[str, str]]] = {}  # by measure the scorer and the settled metric
    for place, measure in enumerate(asked.measures):
        if pairing is None or pairing.scorer != measure.scorer:
            pairing = Pairing(asked.evaluations, measure.scorer, by=asked.rows.by, matching=asked.rows.matching)
        try:
            found = _compare_by(measure.metric, pairing, asked, len(rows["pairs"]))
            compared[place] = {(pair["scorer"], pair["signature"]) for pair in found["pairs"]}
        except (DataError, SpecError) as error:
            if not may_refuse:
                raise
            found = {"left_out": [_leave_out(measure, asked, error)]}
        for table, own in found.items():
            rows[table] += own
    if not compared:
        reasons = "; ".join(f"{one['metric']} · {one['scorer']}: {one['reason']}" for one in rows["left_out"])
        raise DataError(f"no declared metric can be compared: {reasons}")
    deciding = [place for place in asked.primary if place in compared] or [min(compared)]
    primary = {name for place in deciding for name in compared[place]}
    _adjust(rows["pairs"], primary, len(asked.sides), asked.confidence)
    _add_letters(rows["ranking"], [pair for pair in rows["pairs"] if pair["by"] is None], asked.confidence)
    return {table: own for table, own in rows.items() if own or table != "left_out"}


@np.errstate(over="ignore", invalid="ignore")  # a difference too large for a number is said to be
def _compare_by(metric: Metric, pairing: Pairing, asked: _Asked, n_pairs: int) -> _Tables:
    """The rows of pairs, ranking and flips by one metric; those of pairs also with `seen`, see `Measured`.

    Args:
        n_pairs: the number of pairs by earlier metrics.
    """
    evaluations, factor, stopped, sides = asked.evaluations, asked.rows.factor, {*asked.rows.stopped}, asked.sides
    if factor and (not metric.averages or metric.reads_labels):
        raise SpecError(
            f"{metric.kind} is no mean of one number per row, of which a {factor.name} has an effect on each"
        )
    tables: _Tables = {"pairs": [], "ranking": [], "flips": []}
    heaviest = max(heaviest_cluster(each, metric) for each in evaluations) if stopped else None
    every = read_rows(pairing, metric)
    for target, by, chosen in _split_groups(every, pairing.by):
        cells = every.take(chosen)
        rows = cells if factor is None else factor.average(cells)
        head = _describe_measure(pairing.scorer, every.metric, target)
        computed: Computed = {}
        found: list[dict[str, Any]] = []
        for a, b in itertools.combinations(range(len(sides)), 2):
            # of labelled rows few would be shown; of groups the same as of all; of factors no answer
            if metric.averages and not isinstance(rows, LabelledRows) and by is None and factor is None:
                place = {"pair": n_pairs + len(tables["pairs"])}
                tables["flips"] += [place | flip for flip in _choose_flips(rows, a, b, metric, asked.flips)]
            measured = measure_pair(rows, a, b, computed, heaviest if {*sides[a], *sides[b]} & stopped else None)
            found.append(describe(measured, rows, a, b, asked.confidence))
            first_a, first_b = sides[a][0], sides[b][0]
            more = {
                "by": by,
                "a": first_a,
                "b": first_b,
                "only_a": _first_ids(evaluations[first_a], rows, a, b),
                "only_b": _first_ids(evaluations[first_b], rows, b, a),
                "p_interaction": factor.interaction(cells, a, b) if factor else None,
                "seen": measured.seen,
            }
            tables["pairs"].append(head | _finite_or_none(found[-1] | more))
        if len(sides) > 2 and by is None:
            tables["ranking"] += _rank(head, rows, found, [side[0] for side in sides])
    return tables


def _split_groups(
    rows: PairedRows, attributes: Sequence[str]
) -> Iterator[tuple[str | None, list[tuple[str, str | None]] | None, np.ndarray]]:
    """By target in order: all of its rows (if there are no targets, of none), then those of each group."""
    keys = rows.keys or [(None,) * (1 + len(attributes))]
    for target in sorted({key[0] for key in keys}, key=lambda target: target or ""):
        own = [place for place, key in enumerate(keys) if key[0] == target]
        yield target, None, np.isin(rows.group, own)
        for number, name in enumerate(attributes, 1):
            values = [*dict.fromkeys((keys[place][number],) for place in own)]
            for value in (values[place][0] for place in order_groups(values)):
                yield target, [(name, value)], np.isin(rows.group, [p for p in own if keys[p][number] == value])


def _leave_out(measure: Measure, asked: _Asked, error: EvaluandError) -> dict[str, Any]:
    """The row of a measure that refuses the scores of an evaluation, which the reason names."""
    reason = first_fault(error)
    for label, evaluation in zip(asked.labels, asked.evaluations, strict=True):
        try:
            rows = pair_rows([evaluation], measure.scorer, measure.metric)
            for *_, chosen in _split_groups(rows, ()):
                metric_value(rows.take(chosen), 0)
        except (DataError, SpecError) as own:
            reason = f"{label}: {first_fault(own)}"
            break
    return left_out_row(measure, reason)


def _adjust(pairs: Sequence[dict[str, Any]], primary: Set[tuple[str, str]], systems: int, confidence: float) -> None:
    """Adds families and p values that are adjusted within them: each primary metric, all others, groups of a metric.

    Where intervals hold at all looks and there is no p, the intervals are adjusted, by Bonferroni. They count as tests
    beside those with p, as if they were the last.
    """
    families: dict[Any, list[dict[str, Any]]] = {}
    for pair in pairs:
        is_primary = (pair["scorer"], pair["signature"]) in primary
        pair["family"] = GROUPS if pair["by"] else PRIMARY if is_primary else SECONDARY
        families.setdefault(family_key(pair), []).append(pair)
    for own in families.values():
        tests = sum(map(is_test, own))
        for pair in own:
            seen = pair.pop("seen")
            if tests > 1 and is_test(pair) and pair["p"] is None:
                pair["low"], pair["high"] = seen.bounds(1 - (1 - confidence) / 2 / tests)
        p = np.array([(1.0 if is_test(pair) else math.nan) if pair["p"] is None else pair["p"] for pair in own])
        by_shaffer = np.full(len(own), math.nan)
        if systems > 2:
            measures: dict[tuple[Any, ...], int] = {}
            group = [measures.setdefault(_measure_key(pair), len(measures)) for pair in own]
            by_shaffer = shaffer(p, group, dict.fromkeys(_on_the_same_rows(group, own), systems))
        for pair, *adjusted in zip(own, holm(p), by_shaffer, benjamini_hochberg(p), strict=True):
            names = ("p_holm", "p_shaffer", "p_benjamini_hochberg")
            adjusted = [math.nan if pair["p"] is None else float(each) for each in adjusted]
            pair |= _finite_or_none(dict(zip(names, adjusted, strict=True)))


def _measure_key(row: Mapping[str, Any]) -> tuple[Any, ...]:
    return (*(row[name] for name in ("scorer", "signature", "target")), repr(row.get("by")))


def _on_the_same_rows(group: Sequence[int], pairs: Sequence[Mapping[str, Any]]) -> set[int]:
    """The groups in which no row is left out of any pair: only there two equalities imply a third."""
    names = ("n_a_missing", "n_b_missing", "n_skipped", "n_only_a", "n_only_b")
    return set(group) - {each for each, pair in zip(group, pairs, strict=True) if any(pair[name] for name in names)}


def _describe_measure(scorer: str, metric: Metric, target: str | None) -> dict[str, Any]:
    return {
        "scorer": scorer,
        "metric": metric.kind,
        "signature": definition(metric),
        "direction": metric.direction,
        "share": metric.row_range == (0.0, 1.0),
        "target": target,
    }


def _finite_or_none(numbers: Mapping[str, Any]) -> dict[str, Any]:
    return {n: None if isinstance(v, float) and not math.isfinite(v) else v for n, v in numbers.items()}


def _first_ids(evaluation: Evaluation, found: PairedRows, a: int, b: int) -> list[str]:
    """The ids of the first examples that only side `a` has."""
    indices = np.unique(found.index[a, rows_without_partner(found, a, b)])[:SHOWN_IDS].tolist()
    try:
        examples = examples_at(evaluation.read_run(), indices) if indices else {}
    except NotFound:
        examples = {}
    return [str(examples[i]["id"]) if i in examples else f"{INDEX} {i}" for i in indices]


def _choose_flips(found: PairedRows, a: int, b: int, metric: Metric, at_most: int) -> Iterator[dict[str, Any]]:
    """The first rows lost and won, or where values are not 0 and 1 those that changed most."""
    changed = np.flatnonzero(found.known[a] & found.known[b] & (found.value[a] != found.value[b]))
    used = found.take(changed)
    change = change_of_rows(used.value[a], used.value[b])
    gain = -change if metric.direction == "lower" else change
    values = used.value[[a, b]]
    by_size = np.zeros(len(gain)) if ((values == 0) | (values == 1)).all() else -np.abs(gain)
    order = np.lexsort((used.replication, used.index[a], by_size))
    for flip, sign in (("lost", -1), ("won", 1)):
        for row in order[np.sign(gain[order]) == sign][:at_most].tolist():
            yield {
                "flip": flip,
                "index_a": int(used.index[a, row]),
                "index_b": int(used.index[b, row]),
                "replication": int(used.replication[row]),
                "value_a": float(used.value[a, row]),
                "value_b": float(used.value[b, row]),
            }


def _rank(
    head: Mapping[str, Any], rows: PairedRows, found: Sequence[Mapping[str, Any]], evaluations: Sequence[int]
) -> list[dict[str, Any]]:
    """The sides by their values over the rows that all have, best first.

    Args:
        found: every pair; a mean that people correct has values in pairs only.
        evaluations: the first of each side.
    """
    metric, systems = rows.metric, len(rows.status)
    common = rows.take(np.all(rows.known, axis=0))
    if isinstance(rows, LabelledRows):
        values = [math.nan] * systems
        for (a, b), pair in zip(itertools.combinations(range(systems), 2), found, strict=True):
            values[b] = pair["value_b"] if a == 0 else values[b]
            values[a] = pair["value_a"] if math.isnan(values[a]) else values[a]
    elif metric.averages:
        values = [weighted_mean(common, common.value[side], metric) for side in range(systems)]
    else:
        values = [metric_value(common, side) for side in range(systems)]
    worst_first = metric.direction == "lower"
    order = sorted(range(systems), key=lambda side: values[side] if worst_first else -values[side])
    key = {name: head[name] for name in ("scorer", "signature", "target")}
    return [
        key | _finite_or_none({"evaluation": evaluations[side], "value": values[side]}) | {"n": len(common.group)}
        for side in order
    ]


def _add_letters(ranked: Sequence[dict[str, Any]], pairs: Sequence[dict[str, Any]], confidence: float) -> None:
    """Adds letters to the rows of the ranking: evaluations share one if they cannot be distinguished."""
    keys = [_measure_key(row) for row in ranked]
    for key in dict.fromkeys(keys):
        places = [row for row, own in zip(ranked, keys, strict=True) if own == key]
        differing = [
            frozenset((pair["a"], pair["b"]))
            for pair in pairs
            if _measure_key(pair) == key and is_significant(pair, confidence)
        ]
        found = assign_letters([row["evaluation"] for row in places], differing)
        for row in places:
            row["letters"] = found[row["evaluation"]]
