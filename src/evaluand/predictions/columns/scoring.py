"""`score_columns`: columns of predictions scored against a column of truth, compared, and checked by gates.

The rows become a dataset, each column of predictions a run, and the comparison that of an experiment, so everything
that reads a store works on the result. Nothing is graded row by row: the columns are the scores.
"""

import os
import re
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evaluand.aggregation.aggregator import Measure
from evaluand.aggregation.disparity import Kind as DisparityKind
from evaluand.aggregation.metric_errors import AbsentLabel
from evaluand.comparison.checking import GateResult
from evaluand.comparison.rule import Gate
from evaluand.core import identity, registry
from evaluand.core.errors import SpecError, plural
from evaluand.core.near import keywords, missing_attribute
from evaluand.core.provenance import OF_CLASS
from evaluand.data.dataset import Dataset
from evaluand.data.row_filter import RowFilter
from evaluand.data.typed_columns import TYPES
from evaluand.engine.keyed_work import Progress
from evaluand.evaluation.prediction_table import SCORER, label_text
from evaluand.metrics.base.class_scores import CONFIDENCE, SCORES
from evaluand.metrics.base.labels import contents
from evaluand.metrics.base.metric import VALUE, Metric, Missing
from evaluand.metrics.function import as_metric
from evaluand.metrics.names import is_name, resolve_metric
from evaluand.predictions.columns.gates import check_gate_columns, check_system_gates
from evaluand.predictions.columns.names import guess_columns, looks_like_id
from evaluand.predictions.columns.notes import PYTHON, Notes, note_lines
from evaluand.predictions.columns.proposals import Proposals, Target, note_reversed_scores
from evaluand.predictions.columns.readings import TypedColumns, read_group, read_typed
from evaluand.predictions.columns.systems import System, SystemSpec, make_system, read_numbers
from evaluand.predictions.columns.tables import JoinedTables, NamedTable, as_table, check_ids, join_tables, read_table
from evaluand.predictions.steps import Results, Steps
from evaluand.predictions.unsaved import ColumnStore
from evaluand.report.facts.base import Facts
from evaluand.report.facts.gates import list_gates
from evaluand.report.facts.report import results_facts
from evaluand.run.tasks.recorded import RecordedTask
from evaluand.store.store import Store

_MOST_GROUPS: Final = 1000
_FLIPS: Final = 3


@dataclass(frozen=True, kw_only=True)
class SystemScores:
    """The scores of systems whose predictions exist already.

    Attributes:
        systems: the names of the systems, in order; the first is the baseline of gates.
        results: runs, evaluations, values and the comparison, as of an experiment.
        gates: the result of each gate for each system.
        notes: what was found in the data and taken for granted.
    """

    systems: Sequence[str]
    results: Results
    gates: Sequence[GateResult]
    notes: Sequence[str]

    @property
    def passed(self) -> bool:
        """Whether all gates hold."""
        return all(gate.passed for gate in self.gates)

    def facts(self, flips: int = _FLIPS) -> Facts:
        """The values, the comparison and the gates as plain data.

        Args:
            flips: how many examples of each pair to list as won and as lost.
        """
        found = results_facts(self.results.tasks, self.results.aggregation)
        comparison = None if self.results.comparison is None else self.results.comparison.to_dict()
        if comparison is not None:
            comparison["flips"] = _first_flips(comparison["flips"], flips)
        return {**found, "comparison": comparison, "gates": list_gates(self.gates), "notes": [*self.notes]}

    def __str__(self) -> str:
        from evaluand.report.terminal.plain_text import results_text

        return "\n".join([results_text(self.facts(flips=0)), *note_lines(self.notes)])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """The table of a notebook."""
        from evaluand.report.html.notebook import values_html

        facts = self.facts(flips=0)
        pairs = facts["comparison"]["pairs"] if facts["comparison"] else []
        sentences = [*(pair["verdict"] for pair in pairs), *map(str, self.gates), *note_lines(self.notes)]
        return values_html(facts["metrics"], sentences)

    def __getattr__(self, name: str) -> Any:
        raise missing_attribute(name, "a result of several systems")

    def __getitem__(self, name: str) -> Any:
        raise TypeError("a result of several systems has no values by name; write results.aggregation.table()")


@dataclass(frozen=True, kw_only=True, repr=False)
class ColumnScores(SystemScores):
    """The scores of columns of predictions.

    Attributes:
        target: what the truth holds.
        proposals: the metrics that suit it.
    """

    target: Target
    proposals: Proposals

    def facts(self, flips: int = _FLIPS) -> Facts:
        target = {"column": self.target.name, "kind": self.target.kind, "positive": self.target.positive}
        return {"target": target, **super().facts(flips)}


def _first_flips(flips: Sequence[Facts], most: int) -> list[Facts]:
    counts: dict[Any, int] = {}
    chosen = []
    for flip in flips:
        key = (flip["pair"], flip["flip"])
        counts[key] = counts.get(key, 0) + 1
        if counts[key] <= most:
            chosen.append(flip)
    return chosen


@dataclass(frozen=True, kw_only=True)
class ColumnOptions:
    """What to score, by the names of columns; see `score_columns`."""

    truth: str
    predictions: Sequence[str] = ()
    scores: Sequence[str] = ()
    confidences: Sequence[str] = ()
    metrics: Sequence[str | Metric] = ()
    by: Sequence[str | Sequence[str]] = ()
    disparities: Sequence[DisparityKind] = ("difference",)
    gates: Sequence[str] = ()
    missing: Missing | None = None
    kind: str | None = None
    pos_label: str | None = None
    threshold: float | None = None
    id: str | None = None
    inputs: Sequence[str] = ()
    weight: str | None = None
    cluster: str | None = None
    where: str | None = None
    types: Mapping[str, str] = field(default_factory=dict)
    intervals: bool = True
    origin: Mapping[str, Any] = field(default_factory=dict)

    def column_types(self) -> Mapping[str, str]:
        """Column → its declared type; that of truth and predictions is text for metrics of text.

        Raises:
            SpecError: there is no such type.
        """
        for column, type in self.types.items():
            if type not in TYPES:
                raise SpecError(f"the type {type!r} of {column!r} is none of {', '.join(TYPES)}")
        if not any(map(reads_text, self.metrics)):
            return self.types
        names = [self.truth, *self.predictions, *(part for name in self.predictions for part in name.split(","))]
        return {name.strip(): "text" for name in names} | dict(self.types)


def reads_text(metric: Any) -> bool:
    """Whether a metric, or the one of a name, compares columns as they were written."""
    if isinstance(metric, str):
        return is_name(metric) and bool(registry.find("metrics", resolve_metric(metric).kind).reads_text)
    return bool(getattr(metric, "reads_text", False))


@keywords(ColumnOptions)
def score_columns(
    tables: Any,
    truth: str,
    predictions: str | Sequence[str] = (),
    *,
    truth_file: Any = None,
    store: Store | None = None,
    name: str = "columns",
    **options: Any,
) -> ColumnScores:
    """Scores columns of predictions against a column of truth, and compares them.

    Types and metrics follow from the data: see `notes` of the result for what was taken for granted.

    Args:
        tables: a table of any library, a mapping column → values, a list of rows, a file; or a list of tables or
            files, each of one system.
        truth: the column of the truth, or, as for every other column, a path into one (`gold.answers[0]`).
        predictions: the columns of predictions, one for each system; the first is the baseline.
        truth_file: the table or file with the truth, if it is another one; joined by `id`.
        store: where runs, evaluations and values are stored; by default they are kept in memory.
        name: what they are called.
        scores: columns of the score of the positive class, one for each system, or `LABEL=COLUMN` for each class.
        confidences: columns of the confidence of each prediction, one for each system.
        metrics: names or metrics; proposed from the kind of target if empty.
        by: columns to group by; a list crosses several.
        disparities: the disparities between groups.
        gates: rules such as `accuracy >= 0.9`; `baseline` is the first system.
        missing: how rows without a prediction count: `leave_out` (the default; gates that hold are then undecided where
            more than one row in twenty has none), `wrong` or `refuse`.
        kind: `binary`, `multiclass`, `multilabel` or `numeric`, if the values do not say it.
        pos_label: the text of the positive class.
        threshold: predict the positive class where a score is at least this.
        id: the column that names each row, by which files are joined.
        inputs: columns to show with each example.
        weight: the column of the rows' weights.
        cluster: the column whose equal values mark rows that are not independent.
        where: only rows of the truth that match this condition, such as `age > 30`; see `RowFilter`.
        types: column → `integer`, `number`, `boolean`, `text` or `list`, in place of what its cells look like.
        intervals: whether to compute intervals of values.

    Raises:
        SpecError: there is no such column, or columns do not fit each other.
        DataError: a value is invalid; names its row.

    Example:
        >>> a, b = ["yes", "no", "no", "no"], ["yes", "yes", "no", "no"]
        >>> table = {"label": ["yes", "no", "yes", "no"], "a": a, "b": b}
        >>> scores = score_columns(table, "label", ["a", "b"], metrics=["accuracy"])
        >>> [round(row["value"], 2) for row in scores.facts()["metrics"]]
        [0.75, 0.5]
    """
    texts: dict[str, Any] = {
        each: (options[each],)
        for each in ("scores", "confidences", "metrics", "by", "gates", "inputs")
        if isinstance(options.get(each), str)
    }
    named = (predictions,) if isinstance(predictions, str) else tuple(predictions)
    if options.get("pos_label") is not None:
        texts["pos_label"] = label_text(options["pos_label"])
    chosen = ColumnOptions(truth=truth, predictions=named, **options | texts)
    as_named = partial(_as_table, types=chosen.column_types())
    if isinstance(tables, list | tuple) and _are_tables(tables, chosen.id, truth_file is not None):
        files = [as_named(each, f"table {place}") for place, each in enumerate(tables, 1)]
    else:
        files = [as_named(tables, "the table")]
    base = files[0] if truth_file is None else as_named(truth_file, "the table of the truth")
    return score_tables(base, files, chosen, store, name, notes=Notes(PYTHON))


def _are_tables(items: Sequence[Any], id: str | None, joined: bool) -> bool:
    """Whether a list is one of tables, and not of rows.

    Mappings are tables if their values are columns of one length, and if lists as cells would make no sense: rows are
    joined, or lists are ids.
    """
    if not (items and isinstance(items[0], Mapping)):
        return True
    if not all(isinstance(each, Mapping) and _has_columns(each) for each in items):
        return False
    return joined or any(name == id or looks_like_id(name) for name in items[0])


def _has_columns(table: Mapping[str, Any]) -> bool:
    """Whether all values are arrays of one length."""
    scalar = (str, bytes, Mapping)
    lengths = {
        len(each) if hasattr(each, "__len__") and not isinstance(each, scalar) else None for each in table.values()
    }
    return len(lengths) == 1 and None not in lengths


def _as_table(value: Any, name: str, types: Mapping[str, str]) -> NamedTable:
    if isinstance(value, NamedTable):
        return value
    return read_table(value, types=types) if isinstance(value, str | os.PathLike) else as_table(value, name, types)


def score_tables(
    base: NamedTable,
    files: Sequence[NamedTable],
    options: ColumnOptions,
    store: Store | None,
    name: str,
    progress: Progress | None = None,
    notes: Notes | None = None,
) -> ColumnScores:
    """Scores tables that were read; see `score_columns`.

    Args:
        base: the table with the truth.
        files: the tables of predictions, which may include it.
        progress: shows the progress of each step.
        notes: where to note what is taken for granted, with the names that options have; by default the command's.
    """
    gates = [Gate.parse(gate) for gate in options.gates]
    notes = Notes() if notes is None else notes
    for name in options.types:
        if not any(name in table.table.column_names for table in (base, *files)):
            base.column(name, notes.name("type"))
    check_gate_columns(gates, base, options.by, notes)
    base, files = _choose_rows(base, files, options, notes)
    base.column(options.truth, notes.name("truth"))
    joined = join_tables(base, files, options.truth, options.id, notes)
    notes += joined.notes
    specs = _find_systems(joined, options, notes)
    if options.id is None and all(each is base for each in files):
        _note_repeated_ids(joined.base, options, notes)
    return score_systems(joined.base, specs, options, notes, store, name, progress)


def score_systems(
    base: NamedTable,
    specs: Sequence[SystemSpec],
    options: ColumnOptions,
    notes: Notes,
    store: Store | None,
    name: str,
    progress: Progress | None = None,
    label: Any = None,
) -> ColumnScores:
    """Scores systems whose columns are in the order of the rows of the truth; see `score_tables`.

    Args:
        label: the class that metrics look at, which may occur in no row.
    """
    typed = read_typed(base, options.truth, specs, notes, kind=options.kind, pos_label=options.pos_label, label=label)
    _check_values(base, options.truth, typed, notes)
    weight = _read_weight(base, options.weight, notes)
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
    experiment = _experiment(base, systems, proposals, options, name, notes)
    with warnings.catch_warnings():
        positive = re.escape(f"the label {typed.target.positive!r}")  # whether it is absent is in the notes
        warnings.filterwarnings("ignore", f".* {positive}", AbsentLabel)
        if store is None:
            unsaved = ColumnStore()
            graded = unsaved.put(experiment.dataset, _scorer(systems), {each.name: each.columns for each in systems})
            results = experiment.summarise(unsaved, graded)
        else:
            known = {system.name: {SCORER: system.columns.scored_rows()} for system in systems}
            results = experiment.run(store, known_scores=known, progress=progress)
    _note_reversed(results, specs, typed.target, notes)
    gates = [Gate.parse(gate) for gate in options.gates]
    return ColumnScores(
        target=typed.target,
        systems=[system.name for system in systems],
        results=results,
        gates=check_system_gates(gates, results, experiment.measures, proposals.gate_metric, options.missing),
        notes=notes.sentences(),
        proposals=proposals,
    )


def _note_reversed(results: Results, specs: Sequence[SystemSpec], target: Target, notes: Notes) -> None:
    """Notes the systems whose scores seem to be those of the other class."""
    by_name = {spec.name: spec for spec in specs}
    for row in results_facts(results.tasks, results.aggregation)["metrics"]:
        spec = by_name[row["task"]]
        if spec.confidence is None:
            note_reversed_scores(row["task"], row, target, notes, of_positive=spec.score is not None)


def _read_weight(base: NamedTable, name: str | None, notes: Notes) -> pa.Array | None:
    if name is None:
        return None
    return read_numbers(base, name, "weight", notes)


def _check_values(base: NamedTable, name: str, typed: TypedColumns, notes: Notes) -> None:
    """Refuses a truth without values, and predictions that are the column of the truth."""
    if typed.truth.null_count == len(typed.truth):
        raise SpecError(f"{notes.name('truth')}: every cell of {name!r} in {base.name} is empty; name another column")
    if name in typed.predictions and typed.predictions[name].equals(typed.truth):
        raise SpecError(
            f"{notes.option('prediction', name)}: is the column of {notes.name('truth')}; name the column of the"
            " predictions"
        )


def _note_repeated_ids(table: NamedTable, options: ColumnOptions, notes: Notes) -> None:
    """Notes columns that look like ids, and name several rows."""
    for name in guess_columns(table.table, options.truth).ids:
        column = table.table.column(name)
        if contents(column.type) not in ("integers", "text") or name == options.cluster or name in options.by:
            continue
        counts = pc.value_counts(column.drop_null())
        more = counts.filter(pc.greater(counts.field("counts"), 1))
        if not len(more):
            continue
        n = pc.sum(more.field("counts")).as_py() - len(more)
        have, count, them = ("has", "counts", "it") if n == 1 else ("have", "count", "them")
        notes.append(
            f"{plural(n, 'row')} of {len(column):,} {have} the {name!r} of an earlier row, such as"
            f" {more[0]['values'].as_py()!r}, and {count} too; {notes.option('id', name)} refuses {them},"
            f" {notes.option('cluster', name)} counts {them} as dependent"
        )


def _choose_rows(
    base: NamedTable, files: Sequence[NamedTable], options: ColumnOptions, notes: Notes
) -> tuple[NamedTable, Sequence[NamedTable]]:
    """The tables with the columns that paths name, and the rows of the truth that match the filter."""
    names = [("truth", options.truth), *(("prediction", name) for name in options.predictions)]
    names += [(option, name) for option in ("score", "confidence") for name in getattr(options, f"{option}s")]
    names += [("by", name) for each in options.by for name in ([each] if isinstance(each, str) else each)]
    names += [("input", name) for name in options.inputs]
    single = (("id", options.id), ("weight", options.weight), ("cluster", options.cluster))
    names += [(option, name) for option, name in single if name is not None]
    tables = {
        id(each): each.with_paths([(notes.name(option), name) for option, name in names]) for each in (base, *files)
    }
    if options.where is not None:
        tables[id(base)] = tables[id(base)].filtered(RowFilter(options.where))
    return tables[id(base)], [tables[id(each)] for each in files]


# The systems


def _find_systems(joined: JoinedTables, options: ColumnOptions, notes: Notes) -> list[SystemSpec]:
    """The columns of each system; with several files each file is a system, or several."""
    predictions = _split_names(options.predictions, joined.files)
    plain, labelled = _split_scores(_split_names(options.scores, joined.files), joined.files, notes)
    if not (predictions or plain or labelled):
        raise SpecError("no column of predictions or scores is named")
    twice = next((each for each in predictions if predictions.count(each) > 1), None)
    if twice is not None:
        raise SpecError(f"{notes.option('prediction', twice)} is named twice")
    found: list[SystemSpec] = []
    for table in joined.files:
        specs = _systems_in(table, predictions, plain, labelled, options.confidences, notes)
        if len(joined.files) > 1:
            stem = re.sub(r"(\.[A-Za-z0-9]+)+$", "", os.path.basename(table.name)) or table.name
            specs = [replace(each, name=stem if len(specs) == 1 else f"{stem}/{each.name}") for each in specs]
        found += specs
    names = [each.name for each in found]
    if len(set(names)) < len(names):
        raise SpecError(f"two files have the name {next(n for n in names if names.count(n) > 1)!r}; rename one")
    return found


def _split_names(names: Sequence[str], files: Sequence[NamedTable]) -> list[str]:
    """The names of columns, of which several may be in one text: `a,b`."""
    known = {name for each in files for name in each.table.column_names}
    found = [[name] if name in known else [part.strip() for part in name.split(",")] for name in names]
    return [name for each in found for name in each]


def _split_scores(scores: Sequence[str], files: Sequence[NamedTable], notes: Notes) -> tuple[list[str], dict[str, str]]:
    """Columns of scores, and label → column for those of classes."""
    plain: list[str] = []
    labelled: dict[str, str] = {}
    for text in scores:
        label, sign, column = text.rpartition("=")
        if sign and not any(text in each.table.column_names for each in files):
            if label in labelled:
                raise SpecError(f"{notes.option('score', text)}: the class {label!r} has a score already")
            labelled[label] = column
        else:
            plain.append(text)
    if plain and labelled:
        raise SpecError(
            f"give {notes.option('score', 'COLUMN')} for the positive class, or {notes.class_score()} for each class,"
            " not both"
        )
    return plain, labelled


def _systems_in(
    table: NamedTable,
    predictions: Sequence[str],
    plain: Sequence[str],
    labelled: Mapping[str, str],
    confidences: Sequence[str],
    notes: Notes,
) -> list[SystemSpec]:
    for column in predictions:
        table.column(column, notes.name("prediction"))
    for column in (*plain, *labelled.values()):
        table.column(column, notes.name("score"))
    if labelled:
        if len(predictions) > 1:
            raise SpecError(
                f"{notes.class_score()} is for one system; name one {notes.name('prediction')}, or one file for each"
                " system"
            )
        one = predictions[0] if predictions else None
        return [SystemSpec(one or "scores", table, one, scores=labelled)]
    if not predictions:
        return [SystemSpec(column, table, score=column) for column in plain]
    by_prediction = _match_columns("score", predictions, plain, notes)
    confidence = _match_columns("confidence", predictions, confidences, notes)
    return [
        SystemSpec(each, table, each, score=by_prediction.get(each), confidence=confidence.get(each))
        for each in predictions
    ]


def _match_columns(option: str, predictions: Sequence[str], columns: Sequence[str], notes: Notes) -> dict[str, str]:
    """Prediction → its column of scores: by name where names say it, else in the order in which they were named."""
    if not columns:
        return {}
    by_name = {column: [each for each in predictions if _shares_name(column, each)] for column in columns}
    if all(len(found) == 1 for found in by_name.values()):
        matched = {found[0]: column for column, found in by_name.items()}
        if len(matched) == len(columns):
            return _note_match(option, matched, len(predictions), notes)
    if len(columns) == len(predictions):
        return _note_match(option, dict(zip(predictions, columns, strict=True)), len(predictions), notes)
    raise SpecError(
        f"{notes.name(option)} {' '.join(columns)}: which predictions do they belong to,"
        f" {' or '.join(predictions)}? Give one for each of {notes.name('prediction')}, in the same order"
    )


def _note_match(option: str, matched: dict[str, str], n: int, notes: Notes) -> dict[str, str]:
    if n > 1:
        listed = ", ".join(f"{column!r} belongs to {prediction!r}" for prediction, column in matched.items())
        notes.append(f"{notes.name(option)}: {listed}")
    return matched


def _shares_name(column: str, prediction: str) -> bool:
    """Whether a column is called after a prediction: `p_a` or `a_score` after `a`, `score_1` after `pred_1`."""
    words = set(re.split(r"[^A-Za-z0-9]+", column.lower()))
    own = set(re.split(r"[^A-Za-z0-9]+", prediction.lower())) - _GENERIC
    return bool(own) and own <= words


_GENERIC: Final = frozenset(("pred", "prediction", "predicted", "y", "hat", "output", "response", "label", "class", ""))


# The experiment


def _find_common_scores(systems: Sequence[System], notes: Notes) -> str:
    """The kind of scores that all systems have; see `System.gives`."""
    gives = {system.gives for system in systems}
    common = gives.pop() if len(gives) == 1 else "scores" if gives == {"scores", "probabilities"} else "nothing"
    if ("nothing" not in gives and len(gives) > 1) or (len(gives) > 1 and common == "nothing"):
        lacking = ", ".join(repr(system.name) for system in systems if system.gives == "nothing")
        notes.append(f"{lacking} has no scores, so metrics of scores are not proposed")
    return common


def _experiment(
    base: NamedTable,
    systems: Sequence[System],
    proposals: Proposals,
    options: ColumnOptions,
    name: str,
    notes: Notes,
) -> Steps:
    real = any(system.columns.type == "number" for system in systems)
    metrics = _metrics(proposals, options, notes, real=real)
    by = tuple(_grouping(base, each, notes) for each in options.by)
    disparities = tuple(options.disparities) if by else ()
    scorer = _scorer(systems)
    outputs = {system.name: RecordedTask.from_texts(system.name, system.columns.output_texts) for system in systems}
    measures = [Measure(SCORER, metric, by, disparities) for metric in metrics]
    dataset = _dataset(base, systems[0], options, notes)
    origin = {**options.origin, OF_CLASS: proposals.of_class}
    return Steps(name, dataset, outputs, {SCORER: scorer}, measures, origin=origin)


def _metrics(proposals: Proposals, options: ColumnOptions, notes: Notes, *, real: bool) -> list[Metric]:
    named = options.metrics or proposals.names()
    found = [
        proposals.metric(each) if isinstance(each, str) else proposals.weigh(as_metric(each) or each) for each in named
    ]
    found = [each for place, each in enumerate(found) if each not in found[:place]]
    for metric in found:
        proposals.require_predictions(metric)
    if real and (unequal := next((each for each in found if VALUE in each.columns), None)) is not None:
        raise SpecError(
            f"{unequal.kind}: real numbers are hardly ever equal; name a metric of errors, such as mae, or, if"
            f" predictions are the score of a class, give them as {notes.option('score')} instead of"
            f" {notes.option('prediction')}"
        )
    scored = [each for each in found if {SCORES, CONFIDENCE} & {*each.columns}]
    if scored and proposals.gives == "nothing":
        raise SpecError(
            f"{scored[0].kind} needs scores: give {notes.option('score', 'COLUMN')}, the score of the positive class"
        )
    if options.missing is not None:
        found = [replace(metric, missing=options.missing) for metric in found]
    if not options.intervals:
        found = [*map(_without_interval, found)]
    return found


def _without_interval(metric: Metric) -> Metric:
    """The metric without its interval, unless it always has one, which then costs nothing."""
    try:
        return replace(metric, confidence=None) if hasattr(metric, "confidence") else metric  # type: ignore[call-arg]
    except SpecError:
        return metric


def _grouping(base: NamedTable, by: str | Sequence[str], notes: Notes) -> tuple[str, ...]:
    names = (by,) if isinstance(by, str) else tuple(by)
    if len(names) == 1 and names[0] not in base.table.column_names and "," in names[0]:
        names = tuple(part.strip() for part in names[0].split(","))
    for name in names:
        count = pc.count_distinct(read_group(base, name, notes)).as_py()
        if count > _MOST_GROUPS:
            raise SpecError(
                f"{notes.option('by', name)}: has {count:,} different values in {base.table.num_rows:,} rows; group by"
                f" a column with fewer (at most {_MOST_GROUPS:,})"
            )
    return names


def _scorer(systems: Sequence[System]) -> Any:
    """The scorer that reads the outputs of all systems."""
    scorers = [system.columns.scorer for system in systems]
    return next((each for each in scorers if each.prediction_key is not None), scorers[0])  # type: ignore[attr-defined]


def _dataset(base: NamedTable, first: System, options: ColumnOptions, notes: Notes) -> Dataset:
    """The truth of each row with its groups; the columns of predictions are no part of it."""
    n = base.table.num_rows
    columns: dict[str, pa.Array] = {}
    if options.id:
        ids = base.column(options.id, notes.name("id"))
        check_ids(ids.cast(pa.string()), base, options.id)
        columns[options.id] = ids
    row = options.id or _free_name("row", base.table.column_names)
    columns.setdefault(row, pa.array(np.arange(n)))
    attributes = list(dict.fromkeys(name for by in options.by for name in _grouping(base, by, notes)))
    roles: dict[str, Any] = {"attributes": attributes, "weight": options.weight, "cluster": options.cluster}
    columns |= {name: base.column(name, notes.name("input")) for name in options.inputs}
    columns |= {name: read_group(base, name, notes) for name in (*attributes, *filter(None, [options.cluster]))}
    if options.weight is not None:
        columns[options.weight] = read_numbers(base, options.weight, "weight", notes)
    columns[options.truth] = first.columns.truth
    id_column = row if options.id is None and "id" in columns else options.id  # which "id" would be by its name
    roles |= {"input": [*options.inputs] or row, "expected": options.truth, "id": id_column}
    return _build_dataset(columns, options.truth, first.columns.type, roles)


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
