"""Aggregations: metric values of stored scores, by group, each with its counts, interval and bounds.

An `Aggregator` reads stored evaluations, so values can be recomputed, also by other groups, without scoring anything
again. The table of scores is cut into shards at fixed places, whose states merge in order: the values are the same to
the last bit, however the rows were batched.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from itertools import chain, groupby
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from evaluand.aggregation.disparity import DisparityRow, Kind, check_kinds, with_family_ends
from evaluand.aggregation.group_disparities import disparities
from evaluand.aggregation.group_rules import GroupRules, read_rules
from evaluand.aggregation.groups import MetricRow, summary_of_shards
from evaluand.aggregation.metric_errors import AbsentLabel, describe_absent_labels, naming_scorer, read_shards
from evaluand.aggregation.score_shards import (
    dataset_of,
    digests_of_labels,
    is_repeated,
    shards,
)
from evaluand.aggregation.seen import StoppedRun, stopping_rules
from evaluand.aggregation.shard import scored_columns
from evaluand.aggregation.worst_groups import GroupSearch, WorstGroup, worst_groups_of
from evaluand.core import identity, registry
from evaluand.core.errors import DataError, EvaluandError, NotFound, SpecError, first_fault, nearest, warn
from evaluand.core.files.json import none_if_nan
from evaluand.core.key_columns import INDEX
from evaluand.core.labels import experiment_of
from evaluand.core.provenance import provenance
from evaluand.data.roles import Roles
from evaluand.data.row_filter import RowFilter
from evaluand.engine.keyed_work import Artifact, Receipt
from evaluand.evaluation.evaluator import Evaluation
from evaluand.evaluation.kind import EVALUATIONS
from evaluand.metrics.base.curves import Drawn
from evaluand.metrics.base.metric import Metric
from evaluand.metrics.base.signature import with_condition
from evaluand.store import tables as rows
from evaluand.store.store import (
    Store,
    at_once,
    check_name,
    drafted,
    find_sealed_from,
    give_name,
)


@dataclass(frozen=True)
class Measure:
    """A metric on the table of a scorer.

    Attributes:
        scorer: the scorer whose table the metric reads.
        by: attributes to group by: each entry is a grouping, by one attribute or by several together (a tuple). The
            value over all rows is always computed.
        disparities: the disparities between the groups of each grouping: `difference`, `ratio`, `min`, `max`,
            `difference_to_overall`, `ratio_to_overall`; see `disparity.py`.
        criterion: the name of several measures whose disparities count as one, the largest: equalized odds is that of
            the true and the false positive rates.
        called: the names of the metric in a problem, by which gates find it too.
        where: only rows of examples that match this `RowFilter`; gates, comparisons and trade-offs leave it out.
        rules: which groups disparities compare; by default the two that differ most.
        search: where to look for the groups with the worst values, see `GroupSearch`; by default nowhere.
        states_missing: whether the metric's `missing` was chosen, rather than left at its default: gates pass on many
            rows without a score only then.

    Raises:
        SpecError: the metric is not a `Metric`, there is no such disparity, there are no groups to compare, or the
            metric has no worst group.

    Example:
        >>> from evaluand.metrics.accuracy import Accuracy
        >>> Measure("same", Accuracy(), by=("topic", ("topic", "language"))).by
        (('topic',), ('topic', 'language'))
    """

    scorer: str
    metric: Metric
    by: Sequence[str | Sequence[str]] = ()
    disparities: Sequence[Kind] = ()
    criterion: str | None = None
    called: Sequence[str] = ()
    where: str | None = None
    rules: GroupRules | None = None
    search: GroupSearch | None = None
    states_missing: bool = False

    def __post_init__(self) -> None:
        if self.where is not None:
            RowFilter(self.where)
        if not isinstance(self.metric, Metric):
            made = f"make_metric({self.metric!r})" if isinstance(self.metric, str) else "Accuracy()"
            raise SpecError(f"a measure needs a metric, such as {made}, not {self.metric!r}")
        by = (self.by,) if isinstance(self.by, str) else self.by
        object.__setattr__(self, "by", tuple((names,) if isinstance(names, str) else tuple(names) for names in by))
        object.__setattr__(self, "disparities", check_kinds(self.disparities))
        if self.disparities and not self.by:
            raise SpecError(f"{self.metric.kind}: disparities compare groups; name attributes under by")
        if self.search is not None:
            self.search.check(self.metric)

    @property
    def spec(self) -> dict[str, Any]:
        spec: dict[str, Any] = {"scorer": self.scorer, "metric": self.metric.spec, "by": [list(by) for by in self.by]}
        if self.disparities:
            spec |= {"disparities": list(self.disparities), "criterion": self.criterion}
            spec |= {"rules": self.rules.spec} if self.rules is not None else {}
        chosen: dict[str, Any] = {"called": list(self.called), "where": self.where}
        chosen |= {"worst_groups": self.search and self.search.spec, "states_missing": self.states_missing}
        return spec | {name: value for name, value in chosen.items() if value}


class Aggregation(Artifact):
    """An aggregation in a store."""

    kind = "aggregations"
    _made_from: Sequence[Evaluation] | None = None

    def __repr__(self) -> str:
        return f"Aggregation({self.id[:12]}, {self.manifest['counts']['metrics']} values)"

    @property
    def labels(self) -> list[str]:
        """The label of each evaluation, in order."""
        return list(self.manifest["spec"]["labels"])

    @property
    def evaluations(self) -> Sequence[Evaluation]:
        """The evaluations it was computed from, in order.

        Raises:
            NotFound: they are in other stores.
        """
        if self._made_from is not None:
            return self._made_from
        made_from = self.manifest["provenance"]["evaluations"]
        if not all(self.store.is_sealed(EVALUATIONS, id) for id in made_from):
            raise NotFound("the evaluations of this aggregation are in other stores; pass them as evaluations")
        return [Evaluation(self.store, id) for id in made_from]

    def label_of(self, evaluation: Evaluation) -> str:
        """The label of one of its evaluations; of the same task twice that of its name."""
        summarised = zip(self.labels, self.manifest["provenance"]["evaluations"], strict=True)
        labels = [label for label, id in summarised if id == evaluation.id]
        return next((label for label in labels if (evaluation.called or "").endswith(f"/{label}")), labels[0])

    @property
    def measures(self) -> list[Measure]:
        """Its measures of all rows, without those whose kind of metric is not installed."""
        return [measure for measure in self.every_measure if measure.where is None]

    @property
    def every_measure(self) -> list[Measure]:
        """Its measures, also those of rows that match a condition."""
        return [measure for spec in self.manifest["spec"]["measures"] if (measure := read_measure(spec)) is not None]

    def table(self) -> pa.Table:
        """The table of metric values."""
        return pa.Table.from_batches(self.store.read("aggregations", self.id, "metrics"), rows.METRICS)

    def disparities(self) -> pa.Table:
        """The table of disparities between groups."""
        return self.further_table("disparities", rows.DISPARITIES)

    def worst_groups(self) -> pa.Table:
        """The table of the groups for which metrics are worst."""
        return self.further_table("worst_groups", rows.WORST_GROUPS)

    def curves(self) -> pa.Table:
        """The table of curves, such as ROC curves, point by point."""
        return self.further_table("curves", rows.CURVES)

    def further_table(self, name: str, schema: pa.Schema) -> pa.Table:
        """A table that was stored with the aggregation, such as those of its trade-offs; empty if there is none.

        Args:
            schema: its columns; null where an older aggregation lacks one.
        """
        batches = list(self.store.read("aggregations", self.id, name)) if name in self.manifest["counts"] else []
        table = pa.Table.from_batches(batches, batches[0].schema if batches else schema)
        for field in schema:
            if field.name not in table.column_names:
                table = table.append_column(field, pa.nulls(table.num_rows, field.type))
        return table.select(schema.names)

    def tables(self) -> dict[str, pa.Table]:
        """All tables that have rows, with the columns that were stored, and `metrics`, in the order of the digest."""
        tables, counts = {"metrics": self.table()}, self.manifest["counts"]
        for name in [*(name for name in _OWN if name in counts), *sorted({*counts} - {*_OWN})]:
            tables[name] = pa.Table.from_batches(self.store.read("aggregations", self.id, name))
        return {name: table for name, table in tables.items() if name == "metrics" or table.num_rows}


def read_measure(spec: Mapping[str, Any]) -> Measure | None:
    """The measure with a stored spec; None if its metric is a class of the user, which a store does not contain."""
    stored = spec["metric"]
    try:
        metric = registry.find("metrics", stored["kind"])(**stored["parameters"])
        names = ("disparities", "criterion", "called", "where", "states_missing")
        further = {name: spec[name] for name in names if name in spec}
        if "rules" in spec:
            further["rules"] = read_rules(spec["by"], **spec["rules"])
        if "worst_groups" in spec:
            further["search"] = GroupSearch(**spec["worst_groups"])
        return Measure(spec["scorer"], metric, spec["by"], **further)
    except (SpecError, TypeError):
        return None


def find_summary(evaluation: Evaluation) -> Aggregation | None:
    """The aggregation of an evaluation: that of the experiment of its name, the newest with a name, or the newest."""
    store, experiment = evaluation.store, experiment_of(evaluation.called or "")
    names: dict[str, list[str]] = {}
    for ref in store.refs():
        if ref.kind == "aggregations":
            names.setdefault(ref.id, []).append(ref.name)
    made = []
    for manifest in find_sealed_from(store, "aggregations", EVALUATIONS, evaluation.id):
        rules = dict(zip(manifest["provenance"]["evaluations"], manifest["spec"].get("stopped_by", ()), strict=False))
        if rules.get(evaluation.id, []) == stopping_rules(evaluation):
            made.append(manifest["id"])
    made.sort(key=lambda id: (experiment in names.get(id, ()), id in names), reverse=True)  # the newest stay first
    return Aggregation(store, made[0]) if made else None


@dataclass
class Aggregator:
    """Summarises evaluations.

    Args:
        store: the store of aggregations; by default that of the first evaluation.

    Example:
        >>> from evaluand.data.dataset import Dataset, Roles
        >>> from evaluand.evaluation.evaluator import Evaluator
        >>> from evaluand.metrics.accuracy import Accuracy
        >>> from evaluand.run.runner import Runner
        >>> data = Dataset.from_rows([{"input": "a", "expected": "A"}, {"input": "b", "expected": "C"}])
        >>> run = Runner().run(str.upper, data)
        >>> evaluation = Evaluator().evaluate(run, {"same": lambda output, expected: output == expected})
        >>> aggregation = Aggregator().aggregate([evaluation], [Measure("same", Accuracy())])
        >>> aggregation.table()["value"].to_pylist()
        [0.5]
    """

    store: Store | None = None

    def aggregate(
        self,
        evaluations: Sequence[Evaluation],
        measures: Sequence[Measure],
        *,
        labels: Sequence[str] | None = None,
        name: str | None = None,
        origin: dict[str, Any] | None = None,
        tradeoffs: Sequence[Mapping[str, Any]] = (),
        further: Callable[[Sequence[Measure]], Mapping[str, pa.RecordBatch]] = lambda measures: {},
        known: Sequence[MeasureResults] = (),
    ) -> Aggregation:
        """The aggregation of evaluations by some measures, computed unless it is already stored.

        Args:
            evaluations: the evaluations, each summarised separately.
            labels: the labels of the evaluations; by default their names.
            origin: the origin of the request, for provenance.
            tradeoffs: the specs of trade-offs between the evaluations, see `Trade.spec`.
            further: a function from the measures to further tables to store, such as those of the trade-offs.
            known: the results of each evaluation, if they were computed from the same scores already.

        Raises:
            SpecError: a measure names a scorer, column or attribute that does not exist.
            SpecError, DataError: every metric refuses the scores of all evaluations.
        """
        for what, items, kind in (("evaluations", evaluations, Evaluation), ("measures", measures, Measure)):
            if not isinstance(items, list | tuple) or not items or not all(isinstance(one, kind) for one in items):
                raise SpecError(
                    f"an aggregation needs a list of {what}: at least one {kind.__name__}, and nothing else"
                )
        if name is not None:
            check_name(name)
        store = self.store or evaluations[0].store
        measures = with_ranges(measures, shared_ranges(evaluations))
        spec = {
            "behaviour": BEHAVIOUR,
            "evaluations": [e.digest for e in evaluations],
            "evaluation_ids": [e.id for e in evaluations],
            "runs": [e.manifest["spec"]["run"] for e in evaluations],
            "datasets": [e.manifest["spec"]["dataset"] for e in evaluations],
            "labels": list(labels or (e.name or f"evaluation {e.id[:12]}" for e in evaluations)),
            "measures": [m.spec for m in measures],
        } | digests_of_labels(evaluations, (measure.metric for measure in measures))
        rules = [stopping_rules(each) for each in evaluations]
        spec |= {"stopped_by": rules} if any(rules) else {}
        spec |= {"tradeoffs": [dict(one) for one in tradeoffs]} if tradeoffs else {}
        spec |= {"known": True} if known else {}
        id = identity.artifact_id("aggregations", spec)
        receipt = Receipt(len(measures), kept=len(measures), why="made before")
        if not store.is_sealed("aggregations", id):
            tables = _own_tables(evaluations, measures, known) | dict(sorted(further(measures).items()))
            digest, counts = table_digest(*tables.values()), {table: batch.num_rows for table, batch in tables.items()}
            made_from = provenance(origin) | {"evaluations": [e.id for e in evaluations]}
            with drafted(store, "aggregations", id) as draft:
                for table, batch in tables.items():
                    draft.append(table, batch)
                draft.seal(at_once("aggregations", id, spec, name, digest=digest, counts=counts, provenance=made_from))
            receipt = Receipt(len(measures), called=len(measures))
        give_name(store, name, "aggregations", id, origin or {})
        aggregation = Aggregation(store, id, receipt)
        aggregation.called, aggregation._made_from = name, tuple(evaluations)
        reasons = aggregation.table()["reason"]
        refused = reasons.filter(pc.fill_null(pc.starts_with(reasons, REFUSED), False))
        for reason in dict.fromkeys(refused.to_pylist()):
            warn(reason, MetricRefused)
        return aggregation


_OWN: Final = {
    "metrics": rows.METRICS,
    "disparities": rows.DISPARITIES,
    "curves": rows.CURVES,
    "worst_groups": rows.WORST_GROUPS,
}
"""The tables that an aggregation computes itself, before further ones, in the order of the digest."""


def _own_tables(
    evaluations: Sequence[Evaluation], measures: Sequence[Measure], known: Sequence[MeasureResults]
) -> dict[str, pa.RecordBatch]:
    """The tables of values, disparities, worst groups and curves; `metrics`, and those that have rows."""
    for evaluation in evaluations:
        columns = {scorer: evaluation.columns(scorer) for scorer in evaluation.scorers}
        check_measures(measures, columns, dataset_of(evaluation).roles)
    results: list[tuple[MeasureResults, EvaluandError | None]] = [(each, None) for each in known]
    for evaluation in evaluations[len(known) :]:
        read, stopped = partial(shards, evaluation), StoppedRun.of(evaluation)
        compute = partial(compute_measures, tables=read, repeated=is_repeated(evaluation), stopped=stopped)
        results.append(_compute_separately(measures, compute))
    if all(fault is not None for _, fault in results):
        raise next(fault for _, fault in results if fault is not None)
    for doubt in dict.fromkeys(doubt for each, _ in results for _, doubt in each.doubts):
        warn(doubt, AbsentLabel)
    records: dict[str, list[dict[str, Any]]] = {name: [] for name in _OWN}
    for number, (evaluation, (each, _)) in enumerate(zip(evaluations, results, strict=True)):
        key = {"evaluation": number, "run_digest": evaluation.manifest["spec"]["run"]}
        distinct = {repr(head): (head, curve) for head, curve in each.curves}
        records["metrics"] += [key | {"scorer": scorer} | _record(row) for scorer, row in each.values]
        records["disparities"] += [key | {"scorer": scorer} | _record(row) for scorer, row in each.disparities]
        records["curves"] += [key | point for head, curve in distinct.values() for point in curve_points(head, curve)]
        for measure in measures:
            groups = find_worst_groups(evaluation, measure)
            records["worst_groups"] += [key | {"scorer": measure.scorer} | _record(group) for group in groups]
    tables = {name: pa.RecordBatch.from_pylist(records[name], schema) for name, schema in _OWN.items()}
    return {name: batch for name, batch in tables.items() if name == "metrics" or batch.num_rows}


def _record(row: MetricRow | DisparityRow | WorstGroup) -> dict[str, Any]:
    """The columns of a row: null in place of NaN, groups as pairs of attribute and value."""
    record = {name: _cell(value) for name, value in row._asdict().items()}
    if isinstance(row, MetricRow):
        record["data"] = None if row.data is None else identity.encode(row.data).decode()
    if isinstance(row, DisparityRow):
        record["groups"] = [{**group, "by": _cell(group["by"])} for group in row.groups]
    return record


def _cell(value: Any) -> Any:
    if isinstance(value, Mapping):
        return [*value.items()]
    return [*map(_cell, value)] if isinstance(value, tuple) else none_if_nan(value)


def with_ranges(measures: Iterable[Measure], ranges: Mapping[str, Mapping[str, tuple[float, float]]]) -> list[Measure]:
    """Measures whose metrics have the range that their scorer declares for the column, unless they declare one.

    Args:
        measures: of any metrics; those without a parameter `range` are unchanged.
        ranges: scorer → its `ranges`.
    """
    result = []
    for measure in measures:
        metric: Any = measure.metric
        known = ranges.get(measure.scorer, {}).get(getattr(metric, "column", ""))
        declares = any(field.name == "range" for field in fields(metric))
        if known is not None and declares and metric.range == (-math.inf, math.inf):
            measure = replace(measure, metric=replace(metric, range=known))
        result.append(measure)
    return result


def shared_ranges(evaluations: Iterable[Evaluation]) -> Mapping[str, Mapping[str, tuple[float, float]]]:
    """The `ranges` of scorers that are the same in all evaluations."""
    first, *others = [each.ranges for each in evaluations]
    return {name: known for name, known in first.items() if all(other.get(name) == known for other in others)}


REFUSED: Final = "refused: "
"""The beginning of the reason of a missing value where the metric refuses the scores."""


class MetricRefused(UserWarning):
    """A metric refused the scores; the values of the other metrics are there."""


BEHAVIOUR: Final = 6
"""Incremented whenever the same measures give other intervals, counts or curves; older values are not reused then."""


def table_digest(*batches: pa.RecordBatch) -> str:
    """The digest of the rows of an aggregation's tables, `metrics` first: 32 hexadecimal digits."""
    state = hashlib.blake2b(digest_size=identity.DIGEST_SIZE)
    for batch in batches:
        for row in batch.to_pylist():
            state.update(identity.encode(row))
    return state.hexdigest()


def check_measures(measures: Sequence[Measure], scorers: Mapping[str, Collection[str]], roles: Roles) -> None:
    """Refuses measures that do not fit the tables they read.

    Args:
        scorers: name → the columns of its table.
        roles: those of the dataset.

    Raises:
        SpecError: names every scorer, column and attribute that does not exist.
    """
    faults = [fault for measure in measures for fault in _misfits(measure, scorers, roles)]
    if faults:
        raise SpecError("\n".join(dict.fromkeys(faults)))


def _misfits(measure: Measure, scorers: Mapping[str, Collection[str]], roles: Roles) -> Iterator[str]:
    kind, scorer = measure.metric.kind, measure.scorer
    if scorer not in scorers:
        yield f"{kind}: no scorer is called {scorer!r}{nearest(scorer, scorers)}; there are {', '.join(scorers)}"
    else:
        try:
            measure.metric.columns_for(scorers[scorer])
        except SpecError as error:
            yield f"scorer {scorer!r}: {error}"
    further = [*(measure.rules.given if measure.rules else ()), *(measure.search.attributes if measure.search else ())]
    named = dict.fromkeys([*(attribute for by in measure.by for attribute in by), *further])
    missing = [attribute for attribute in named if attribute not in roles.attributes]
    if missing:
        names = ", ".join(map(repr, missing))
        hint = nearest(missing[0], roles.attributes)
        yield f"{kind}: {names} is not an attribute of the dataset{hint}; name it under attributes"
    for name in RowFilter(measure.where).columns if measure.where is not None else ():
        if name not in (INDEX, *roles.columns):
            hint = nearest(name, roles.columns)
            yield f"{kind}: where: {name!r} has no role in the dataset{hint}; name it under attributes or metadata"
    strata = getattr(measure.metric, "strata", None)
    if strata is not None and strata not in roles.attributes:
        yield f"{kind}: strata: {strata!r} is not an attribute of the dataset{nearest(strata, roles.attributes)}"
    if getattr(measure.metric, "weighted", False) and roles.weight is None:
        yield f"{kind}: weighted needs weights; name the dataset's column under weight"


def find_worst_groups(evaluation: Evaluation, measure: Measure) -> list[WorstGroup]:
    """The groups for which a measure is worst; none if it has no `search`, or its metric refuses the scores.

    Raises:
        SpecError: there is no such scorer, column or attribute.

    Example:
        >>> from evaluand import evaluate
        >>> from evaluand.metrics.accuracy import Accuracy
        >>> from evaluand.store.store import MemoryStore
        >>> age = ["young", "old"] * 200
        >>> right = [place % 4 != 1 for place in range(400)]  # of the old, every second
        >>> result = evaluate([True] * 400, right, metrics="accuracy", by={"age": age})
        >>> evaluation = result.to_evaluation(MemoryStore(), "mine")
        >>> [group] = find_worst_groups(evaluation, Measure("prediction", Accuracy(), search=GroupSearch("age")))
        >>> group.by, group.confirmed
        ({'age': 'old'}, True)
    """
    if measure.search is None:
        return []
    check_measures([measure], {measure.scorer: evaluation.columns(measure.scorer)}, dataset_of(evaluation).roles)
    try:
        with naming_scorer(measure.scorer, [measure.metric]):
            found = worst_groups_of(evaluation, measure.scorer, measure.metric, measure.search, measure.where)
    except (DataError, SpecError):  # the row of the value says why
        return []
    return [_with_condition(group, measure.where) for group in found]


def compute_accepted(
    measures: Sequence[Measure],
    measure: Callable[[Sequence[Measure]], MeasureResults],
) -> MeasureResults:
    """The results of all measures; of one that refuses the scores counts and a reason instead of a value.

    Raises:
        DataError, SpecError: every metric refuses the scores.
    """
    results, fault = _compute_separately(measures, measure)
    if fault is not None:
        raise fault
    return results


def _compute_separately(
    measures: Sequence[Measure],
    measure: Callable[[Sequence[Measure]], MeasureResults],
) -> tuple[MeasureResults, EvaluandError | None]:
    """The results of all measures together, or else of one after the other, see `compute_accepted`.

    With the first error, if every metric refuses the scores.
    """
    try:
        return measure(measures).with_families(), None
    except (DataError, SpecError) as error:
        fault = error
    parts, refused = list[MeasureResults](), 0
    for criterion, alike in groupby(measures, key=lambda each: each.criterion):
        together = list(alike)
        for part in [together] if criterion is not None else [[each] for each in together]:
            try:
                parts.append(measure(part))
            except (DataError, SpecError) as error:
                refused += len(part)
                parts += [count_refused(each, measure, error) for each in part]
    results = MeasureResults(*(list(chain.from_iterable(of)) for of in zip(*parts, strict=True)))
    return results.with_families(), fault if refused == len(measures) else None


def count_refused(
    refused: Measure, measure: Callable[[Sequence[Measure]], MeasureResults], error: EvaluandError
) -> MeasureResults:
    """The counts of the rows that a metric refuses, with the reason in place of a value."""
    metric = refused.metric
    count = registry.find("metrics", "count")(reduce=metric.reduce, over_targets=metric.over_targets)
    counted = measure([Measure(refused.scorer, count, refused.by, where=refused.where)])
    unknown: dict[str, Any] = dict.fromkeys(("value", "low", "high", "worst", "best"), math.nan)
    unknown |= {"metric": metric.kind, "signature": metric.signature, "data": None}
    unknown |= {"reason": f"{REFUSED}{first_fault(error)}"}
    rows = [(scorer, _with_condition(row._replace(**unknown), refused.where)) for scorer, row in counted.values]
    return MeasureResults(rows, [], [], [], [])


class MeasureResults(NamedTuple):
    """The results of measures, each with its scorer, and sentences about metrics that are doubtful.

    A curve comes with the columns that are the same for all of its points. That of all rows comes with each measure of
    a metric.
    `at_share` computes the disparities again, see `with_family_ends`.
    """

    values: list[tuple[str, MetricRow]]
    disparities: list[tuple[str, DisparityRow]]
    curves: list[tuple[dict[str, Any], Drawn]]
    doubts: list[tuple[Metric, str]]
    at_share: list[Callable[..., list[DisparityRow]]]

    def with_families(self) -> MeasureResults:
        """The results with disparities as one family."""
        rows = with_family_ends(
            [row for _, row in self.disparities], lambda share: [row for at in self.at_share for row in at(share=share)]
        )
        disparities = [(scorer, row) for (scorer, _), row in zip(self.disparities, rows, strict=True)]
        return self._replace(disparities=disparities, at_share=[])


def compute_measures(
    measures: Sequence[Measure],
    tables: Callable[..., Iterable[pa.Table]],
    *,
    repeated: bool = False,
    drawn: bool = True,
    stopped: StoppedRun | None = None,
) -> MeasureResults:
    """The values, disparities and curves of every measure, in order.

    Measures with the same table and the same groups share one pass over it.

    Args:
        tables: a function from a scorer, attributes and `where` to its table in shards, see `shards`.
        repeated: whether examples have several replications.
        drawn: whether to compute curves.
        stopped: the run, if a rule stopped it.
    """
    positions_of: dict[tuple[Any, ...], list[int]] = {}
    for position, measure in enumerate(measures):
        labelled_for = measure.metric if measure.metric.reads_labels else None
        given = measure.rules.given if measure.rules else ()
        key = (measure.scorer, measure.by, measure.metric.over_targets, measure.where, labelled_for, given)
        positions_of.setdefault(key, []).append(position)
    of: list[MeasureResults] = [MeasureResults([], [], [], [], []) for _ in measures]
    for (scorer, by, _, where, labelled_for, given), positions in positions_of.items():
        metrics = [measures[position].metric for position in positions]
        drawing = [metric.drawn_by if drawn else None for metric in metrics]
        every = [*metrics, *(source for source in drawing if source is not None and source not in metrics)]
        groupings = [(), *filter(None, by)]
        crossed = [(*each, *given) for each in groupings[1:]] if given else []
        with naming_scorer(scorer, metrics):
            names = tuple(dict.fromkeys([*(a for each in by for a in each), *given]))
            cut = read_shards(tables(scorer, names, where=where, labelled_for=labelled_for))
            needed = {name for metric in every for name in metric.needed_columns}
            scored = scored_columns(tables(scorer, (), where=where), needed) if needed else ()
            summary = summary_of_shards(cut, every, [*groupings, *crossed], repeated=repeated, scored=scored)
            summary.check_missing(range(len(metrics)))
            for place, position in enumerate(positions):
                rows = [row for each in groupings for row in summary.values(place, each)]
                if stopped is not None:
                    rows = stopped.with_ends(rows, summary.settled(place), scorer, where)
                of[position].values.extend((scorer, _with_condition(row, where)) for row in rows)
                doubt = describe_absent_labels(metrics[place], summary.labels[place], scorer, where)
                of[position].doubts.extend([(metrics[place], doubt)] if doubt else [])
                if (source := drawing[place]) is None:
                    continue
                signature = summary.settled(place).signature
                signature = signature if where is None else with_condition(signature, where)
                head = {"scorer": scorer, "metric": metrics[place].kind, "signature": signature}
                for each in groupings:
                    for target, group, curve in summary.curves(every.index(source), each, _DRAWN):
                        own = {"target": target, "by": [*group.items()], "curve": curve.kind, "part": curve.part}
                        of[position].curves.append((head | own, curve))
        for together in _group_criteria([measures[position] for position in positions]):
            first = positions[together[0]]
            options: dict[str, Any] = {"name": measures[first].criterion, "rules": measures[first].rules}
            for over in groupings[1:]:
                compute = partial(disparities, summary, together, over, measures[first].disparities, **options)
                between = compute() if stopped is None else map(stopped.without_ends, compute())
                of[first].disparities.extend((scorer, _with_condition(row, where)) for row in between)
                of[first].at_share.append(compute)
    return MeasureResults(*(list(chain.from_iterable(parts)) for parts in zip(*of, strict=True)))


def _with_condition(row: Any, where: str | None) -> Any:
    """A value, a disparity or a curve whose signature says which rows it is of."""
    return row if where is None else row._replace(signature=with_condition(row.signature, where))


def _group_criteria(measures: Sequence[Measure]) -> Iterable[list[int]]:
    """The places of the measures with disparities; those of one criterion together."""
    of: dict[Any, list[int]] = {}
    for position, measure in enumerate(measures):
        if measure.disparities:
            key: Any = position
            if measure.criterion is not None:
                key = (measure.criterion, tuple(measure.disparities), measure.rules)
            of.setdefault(key, []).append(position)
    return of.values()


_DRAWN = 20
"""The most groups with curves, those with the most rows, so that the table stays small."""


def curve_points(head: Mapping[str, Any], curve: Drawn) -> Iterator[dict[str, Any]]:
    """The points of a curve as rows; an infinite threshold becomes null."""
    points = curve.points
    numbers = {"x": points.x, "y": points.y, "threshold": points.threshold, "n": points.weight}
    numbers |= {name: end for name, end in (("low", curve.low), ("high", curve.high)) if end is not None}
    columns = {name: [v if math.isfinite(v) else None for v in column.tolist()] for name, column in numbers.items()}
    for place in range(len(points.x)):
        label = None if curve.labels is None else curve.labels[place]
        yield {**head, "label": label} | {name: column[place] for name, column in columns.items()}
