"""`score_systems`: systems whose columns are in the order of the truth, graded by metrics and checked by gates.

Nothing is graded row by row: the columns are the scores. Values of one system are computed from them; artifacts, which
a comparison, a gate and a store need, are made when they are asked for.
"""

import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import Any, Final

import numpy as np
import pyarrow as pa

from evaluand.aggregation.aggregator import Measure, check_measures, compute_accepted, compute_measures, count_refused
from evaluand.aggregation.disparity import check_kinds
from evaluand.aggregation.group_rules import read_rules
from evaluand.aggregation.metric_errors import AbsentLabel
from evaluand.aggregation.score_shards import cluster_keys
from evaluand.aggregation.shard import ATTRIBUTE
from evaluand.comparison.rule import Gate
from evaluand.core import identity
from evaluand.core.errors import SpecError, warn
from evaluand.core.provenance import OF_CLASS
from evaluand.data.dataset import Dataset
from evaluand.data.roles import Roles
from evaluand.engine.keyed_work import Progress
from evaluand.evaluation.prediction_table import SCORER
from evaluand.evaluation.scorer import Scorer
from evaluand.metrics.base.class_scores import CONFIDENCE, SCORES
from evaluand.metrics.base.metric import CLUSTER, VALUE, Metric
from evaluand.metrics.names import name_in_tables
from evaluand.predictions.columns.gates import check_system_gates
from evaluand.predictions.columns.notes import Notes
from evaluand.predictions.columns.proposals import Proposals, note_reversed_scores
from evaluand.predictions.columns.readings import read_group, read_typed
from evaluand.predictions.columns.systems import System, SystemSpec, make_system, read_weights
from evaluand.predictions.columns.tables import NamedTable, check_ids
from evaluand.predictions.options import ColumnOptions, as_tuple, reads_text
from evaluand.predictions.result import SystemScores, Values
from evaluand.predictions.steps import Results, Steps
from evaluand.predictions.unsaved import ColumnStore
from evaluand.run.tasks.recorded import GivenTask
from evaluand.store.store import Store
from evaluand.store.tables import SHARD_ROWS


def score_systems(
    base: NamedTable,
    specs: Sequence[SystemSpec],
    options: ColumnOptions,
    notes: Notes,
    store: Store | None = None,
    name: str = "predictions",
    progress: Progress | None = None,
    *,
    whole: bool = False,
) -> SystemScores:
    """Scores systems whose columns are in the order of the rows of the truth.

    Args:
        base: the table with the truth.
        options: what to score, by names of its columns.
        notes: where to note what is taken for granted, with the names that options have.
        store: where everything is stored under `name`; None keeps it in memory.
        progress: shows the progress of each step.
        whole: whether the artifacts of one system are needed too, and not its values alone.

    Raises:
        SpecError: columns do not fit each other, or every metric is refused.
        DataError: a value is invalid; names its place.
    """
    metrics = as_tuple(options.metrics)
    as_labels = not metrics or not all(map(reads_text, metrics))
    typed = read_typed(base, options.truth, specs, notes, kind=options.kind, label=options.label, as_labels=as_labels)
    if options.truth in typed.predictions and typed.predictions[options.truth].equals(typed.truth):
        raise SpecError(
            f"{notes.option('prediction', options.truth)}: is the column of {notes.name('truth')}; name the column of"
            " the predictions"
        )
    weight = None if options.weight is None else read_weights(base, options.weight, notes)
    systems = [
        make_system(
            spec,
            typed.truth,
            typed.predictions.get(spec.name),
            typed.target,
            threshold=options.threshold,
            weight=weight,
            type=typed.type,
            notes=notes,
        )
        for spec in specs
    ]
    proposals = Proposals(
        typed.target,
        all(system.decides for system in systems),
        _find_common_scores(systems, notes),
        f"{notes.option('prediction')} or {notes.option('threshold')}",
        weighted=weight is not None,
    )
    graded = GradedColumns(base, systems, proposals, options, notes)
    gates = [Gate.parse(gate) for gate in as_tuple(options.gates)]
    with warnings.catch_warnings():
        positive = re.escape(f"the label {typed.target.positive!r}")  # whether it is absent is in the notes
        warnings.filterwarnings("ignore", f".* {positive}", AbsentLabel)
        made = None
        if store is not None:
            made = graded.save(store, name, progress)
        elif whole or gates or len(systems) > 1:
            made = graded.unsaved()
        values = graded.values() if made is None else Values.of(made)
        refused = graded.count_refused()
    by_name = {spec.name: spec for spec in specs}
    for system, row in values.metrics:
        if by_name[system].confidence is None:
            of_positive = by_name[system].score is not None
            note_reversed_scores(system, row, typed.target, notes, of_positive=of_positive)
    checked = []
    if made is not None:
        checked = check_system_gates(
            gates, made, graded.measures, metric_by_name=proposals.gate_metric, missing=options.missing
        )
    return SystemScores(
        systems=[system.name for system in systems],
        values=values,
        refused=refused,
        gates=checked,
        noted=notes,
        graded=graded,
        made=made,
        target=typed.target,
        proposals=proposals,
    )


def _find_common_scores(systems: Sequence[System], notes: Notes) -> str:
    """The kind of scores that all systems have; see `System.gives`."""
    gives = {system.gives for system in systems}
    common = gives.pop() if len(gives) == 1 else "scores" if gives == {"scores", "probabilities"} else "nothing"
    if ("nothing" not in gives and len(gives) > 1) or (len(gives) > 1 and common == "nothing"):
        lacking = ", ".join(repr(system.name) for system in systems if system.gives == "nothing")
        notes.append(f"{lacking} has no scores, so metrics of scores are not proposed")
    return common


class GradedColumns:
    """The columns of systems, with the measures that read them.

    Attributes:
        measures: the metrics that can use what there is, with their groupings.
    """

    scorer_name: Final = SCORER

    def __init__(
        self,
        base: NamedTable,
        systems: Sequence[System],
        proposals: Proposals,
        options: ColumnOptions,
        notes: Notes,
    ) -> None:
        self._base = base
        self._origin = {**options.origin, OF_CLASS: proposals.of_class}
        self._options = options
        self._notes = notes
        by = tuple(read_names(base, each) for each in options.by)
        self._attributes = {name: read_group(base, name, notes, "by") for names in by for name in names}
        self._check_groups(by)
        self._cluster = None if options.cluster is None else read_group(base, options.cluster, notes, "cluster")
        self._further = {name: base.column(name, "columns") for name in options.columns}
        columns = [replace(system.columns, further=self._further) for system in systems]
        self._systems = [replace(system, columns=each) for system, each in zip(systems, columns, strict=True)]
        self.measures, self._refused = self._choose(proposals, by)

    @property
    def cluster_column(self) -> str | None:
        return self._options.cluster

    # What is measured

    def _choose(
        self, proposals: Proposals, by: Sequence[tuple[str, ...]]
    ) -> tuple[list[Measure], list[tuple[Measure, SpecError]]]:
        """The measures that can use what there is, and the others with the reason.

        Raises:
            SpecError: no metric has a name, no group is compared, or every metric is refused.
        """
        options, notes = self._options, self._notes
        rules = read_rules(by, adjust=options.adjust)
        metrics = [proposals.metric(entry) for entry in as_tuple(options.metrics) or proposals.names()]
        disparities = check_kinds(options.disparities) if by else ()
        measures = [Measure(SCORER, metric, by, disparities, rules=rules) for metric in dict.fromkeys(metrics)]
        for criterion in as_tuple(options.fairness):
            measures += proposals.fairness(criterion, by, rules, notes)
        kept, refused = list[Measure](), list[tuple[Measure, SpecError]]()
        for measure in measures:
            try:
                self._require_columns(measure, proposals)
                kept.append(replace(measure, metric=self._adapt(measure.metric)))
            except SpecError as error:
                refused.append((measure, error))
        if not kept:
            raise refused[0][1]
        return kept, refused

    def _adapt(self, metric: Metric) -> Metric:
        """The metric with the chosen rule for missing rows, and without its interval if none is wanted."""
        if self._options.missing is not None:
            metric = replace(metric, missing=self._options.missing)
        if self._options.intervals or not hasattr(metric, "confidence"):
            return metric
        try:
            return replace(metric, confidence=None)  # type: ignore[call-arg]
        except SpecError:  # it always has one, which then costs nothing
            return metric

    def _require_columns(self, measure: Measure, proposals: Proposals) -> None:
        """Refuses a metric that lacks what it reads.

        Raises:
            SpecError: says what to give.
        """
        metric, notes = measure.metric, self._notes
        proposals.require_predictions(metric)
        if any(system.columns.type == "number" for system in self._systems) and VALUE in metric.columns:
            raise SpecError(
                f"{metric.kind}: real numbers are hardly ever equal; name a metric of errors, such as mae, or, if"
                f" predictions are the score of a class, give them as {notes.option('score')} instead of"
                f" {notes.option('prediction')}"
            )
        if {SCORES, CONFIDENCE} & {*metric.columns} and not all(system.has_scores for system in self._systems):
            name, score = name_in_tables(metric.signature), notes.option("score", "COLUMN")
            raise SpecError(f"{name} needs scores: give {score}, the score of the positive class")
        weight = self._options.weight
        roles = Roles("row", "truth", tuple(self._attributes), weight=weight, cluster=self._options.cluster)
        check_measures([measure], {SCORER: self._scorer.readable}, roles)

    def _check_groups(self, by: Sequence[tuple[str, ...]]) -> None:
        """Refuses more groups than anyone would read."""
        for names in by:
            columns = [self._attributes[name] for name in names]
            groups = pa.table(columns, [*map(str, range(len(columns)))]).group_by([*map(str, range(len(columns)))])
            check_groups(names, groups.aggregate([]).num_rows, len(columns[0]), self._options.groups, self._notes)

    # Values from columns

    def values(self) -> Values:
        """The values of each system, computed from its columns."""
        found = Values(())
        for system in self._systems:
            results = compute_accepted(self.measures, self._compute(system))
            for doubt in dict.fromkeys(doubt for _, doubt in results.doubts):
                warn(doubt, AbsentLabel)
            found = found.and_of(system.name, results)
        return found

    def count_refused(self) -> Values:
        """Of each system and metric that was refused the counts, with the reason in place of a value."""
        found = Values(())
        for system, (measure, error) in ((each, part) for each in self._systems for part in self._refused):
            found = found.and_of(system.name, count_refused(measure, self._compute(system), error))
        return found

    def _compute(self, system: System) -> Any:
        shards = self._shards[system.name]
        return partial(compute_measures, tables=lambda *_, **__: shards, drawn=False)

    @cached_property
    def _shards(self) -> Mapping[str, Sequence[pa.Table]]:
        """The table of the scorer `prediction` of each system, with the columns to group and to cluster by."""
        return {system.name: [*self._cut(system)] for system in self._systems}

    def _cut(self, system: System) -> Iterator[pa.Table]:
        table = system.columns.table()
        columns = {} if self._cluster is None else {CLUSTER: cluster_keys(self._cluster)}
        columns |= {ATTRIBUTE + name: column for name, column in self._attributes.items()}
        for name, column in columns.items():
            table = table.append_column(name, column)
        return (table.slice(start, SHARD_ROWS) for start in range(0, max(table.num_rows, 1), SHARD_ROWS))

    # Artifacts

    def unsaved(self) -> Results:
        """Runs, evaluations, values and the comparison, in memory."""
        steps, store = self._steps("columns"), ColumnStore()
        columns = {system.name: system.columns for system in self._systems}
        return steps.summarise(store, store.put(steps.dataset, self._scorer, columns))

    def save(self, store: Store, name: str, progress: Progress | None = None) -> Results:
        """Runs, evaluations, values and the comparison, in a store."""
        if self._further:
            names = ", ".join(map(repr, self._further))
            raise SpecError(f"a result with further columns ({names}) cannot be saved; run an experiment instead")
        known = {system.name: {SCORER: system.columns.scored_rows()} for system in self._systems}
        return self._steps(name).run(store, known_scores=known, progress=progress)

    def _steps(self, name: str) -> Steps:
        outputs = {each.name: GivenTask.from_texts(each.name, each.columns.output_texts) for each in self._systems}
        return Steps(name, self._dataset(), outputs, {SCORER: self._scorer}, self.measures, origin=self._origin)

    @cached_property
    def _scorer(self) -> Scorer:
        """The scorer that reads the outputs of all systems."""
        scorers = [system.columns.scorer for system in self._systems]
        with_key = (each for each in scorers if each.prediction_key is not None)  # type: ignore[attr-defined]
        return next(with_key, scorers[0])

    def _dataset(self) -> Dataset:
        """The truth of each row with its groups; the columns of predictions are no part of it."""
        base, options, notes = self._base, self._options, self._notes
        columns: dict[str, pa.Array] = {}
        if options.id:
            ids = base.column(options.id, notes.name("id"))
            check_ids(ids.cast(pa.string()), base, options.id)
            columns[options.id] = ids
        row = options.id or _free_name("row", base.table.column_names)
        columns.setdefault(row, pa.array(np.arange(base.table.num_rows)))
        columns |= {name: base.column(name, notes.name("input")) for name in as_tuple(options.inputs)}
        columns |= self._attributes
        if options.cluster is not None and self._cluster is not None:
            columns[options.cluster] = self._cluster
        if options.weight is not None:
            columns[options.weight] = self._systems[0].columns.weight
        columns[options.truth] = self._systems[0].columns.truth
        roles: dict[str, Any] = {"attributes": [*self._attributes], "input": [*as_tuple(options.inputs)] or row}
        roles |= {"weight": options.weight, "cluster": options.cluster, "expected": options.truth}
        roles["id"] = row if options.id is None and "id" in columns else options.id  # which "id" would be by its name
        return _build_dataset(columns, options.truth, self._systems[0].columns.type, roles)


def read_names(base: NamedTable, by: str | Sequence[str]) -> tuple[str, ...]:
    """The columns of a grouping, of which several may be in one text: `a,b`."""
    names = (by,) if isinstance(by, str) else tuple(by)
    if len(names) == 1 and names[0] not in base.table.column_names and "," in names[0]:
        names = tuple(part.strip() for part in names[0].split(","))
    return names


def check_groups(names: Sequence[str], n: int, rows: int, most: int, notes: Notes) -> None:
    """Refuses a grouping with more groups than are wanted.

    Raises:
        SpecError: says how to see all.
    """
    if n > most:
        raise SpecError(
            f"{notes.option('by', ','.join(names))}: {n:,} groups in {rows:,} rows; group by a column with fewer values"
            f" (at most {most:,}), or give {notes.option('groups', n)} to see all"
        )


def _free_name(name: str, taken: Sequence[str]) -> str:
    while name in taken:
        name += "_"
    return name


def _build_dataset(columns: Mapping[str, pa.Array], truth: str, kind: str, roles: Mapping[str, Any]) -> Dataset:
    others = [name for name in columns if pa.types.is_dictionary(columns[name].type)]
    plain = {name: column.dictionary_decode() if name in others else column for name, column in columns.items()}
    if kind != "json" and not any(isinstance(each.type, pa.BaseExtensionType) for each in plain.values()):
        return Dataset.from_arrow(pa.table(plain), **roles)
    values = {name: _plain_values(column, name == truth and kind == "json") for name, column in plain.items()}
    rows = [dict(zip(values, row, strict=True)) for row in zip(*values.values(), strict=True)]
    return Dataset.from_rows(rows, **roles)


def _plain_values(column: pa.Array, encoded: bool) -> list[Any]:
    storage = column.storage if isinstance(column, pa.ExtensionArray) else column
    values: list[Any] = storage.to_pylist()
    if not encoded and storage is column:
        return values
    return [None if text is None else identity.decode(text) for text in values]
