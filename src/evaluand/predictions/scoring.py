"""`score`: prediction files scored by the metrics of their problem: read, checked, judged, written and stored.

The problem's split says which rows are tested; the truth is in the problem's folder or in a file that is named. All
files are checked before anything is scored. Values are computed once, from the aligned columns.

In a store, the rows of the truth are the examples, named by their index; the predictions are the responses. A repeat of
the split is a replication, in which rows that it does not test are skipped. The aligned columns are stored as outputs
of the run and as scores of the evaluation.
"""

from __future__ import annotations

import math
import os
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evaluand.aggregation.aggregator import Measure, MeasureResults
from evaluand.aggregation.groups import MetricRow
from evaluand.comparison.rule import Gate
from evaluand.core import identity, registry
from evaluand.core.errors import Fault, SpecError, alternatives
from evaluand.core.files.csv import write_table
from evaluand.core.key_columns import INDEX
from evaluand.data.dataset import Dataset
from evaluand.evaluation.prediction_table import SCORER, PredictionColumns
from evaluand.metrics.base.curves import Drawn
from evaluand.metrics.base.metric import Metric
from evaluand.predictions.columns.gates import check_system_gates
from evaluand.predictions.columns.notes import PYTHON, Notes
from evaluand.predictions.columns.scoring import check_groups
from evaluand.predictions.options import MOST_GROUPS, as_tuple
from evaluand.predictions.problem.definitions import STANDARD
from evaluand.predictions.problem.formats import OpenProblem, ProblemFormat, default_format, format_of
from evaluand.predictions.problem.judging import JudgeOptions, scorer_of
from evaluand.predictions.problem.layout import FileLayout
from evaluand.predictions.problem.parts import JudgedPart, assign_files, find_files, judge_part, read_parts
from evaluand.predictions.problem.problem import Problem
from evaluand.predictions.problem.sides import CONFIDENCE, RANK
from evaluand.predictions.problem.truth import ProblemTruth
from evaluand.predictions.result import SystemScores, Values
from evaluand.predictions.steps import Results, Steps
from evaluand.predictions.unsaved import ColumnStore
from evaluand.run.tasks.recorded import GivenTask
from evaluand.store.store import MemoryStore, Store

_CONFIDENCE: Final = 0.95


def score(
    problem: str | os.PathLike[str] | OpenProblem | Problem,
    predictions: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] | Mapping[str, Sequence[Path]] = (),
    truth: str | os.PathLike[str] | None = None,
    *,
    definition: str | None = None,
    part: str | None = None,
    by: str | Sequence[str] = (),
    gates: str | Sequence[str] = (),
    intervals: bool = True,
    groups: int = MOST_GROUPS,
    store: Store | None = None,
    name: str | None = None,
    notes: Notes | None = None,
) -> SystemScores:
    """Scores prediction files by the metrics of their problem.

    Of a split with several parts each part is a group, and the value over all is the mean of those of the parts.

    Args:
        problem: the problem's folder or document, an open folder, or a problem stated in code.
        predictions: the file; or one for each repeat and fold, with `repeat0`, `fold1` or both in its name; or those of
            several systems, which are compared, by name or called after their files. By default the file that the
            problem names, or the numbered ones in the same folder.
        truth: a CSV file of index and targets, or a dataset; by default the truth in the problem's folder.
        definition: the public definition that metrics follow where several are in use.
        part: TRAIN, TEST or SCORE, where each has its own documents.
        by: columns of the learning table to group by, several together as `sex,age`, and between whose groups there are
            differences.
        gates: rules such as `f1Macro >= 0.8`; of several systems all but the first are judged.
        intervals: whether to compute intervals; without them large files are scored faster.
        groups: the most groups of a grouping.
        store: where everything is stored; None for values only, in memory.
        name: what it is called there, by default as the problem.
        notes: where to note what is taken for granted, with the names that options have.

    Raises:
        DataError: anything that the scores depend on is wrong: every fault with its place and code.
        SpecError: there is no truth, no prediction or no metric.

    Example:
        >>> score("185_baseball")["f1Macro"].value  # doctest: +SKIP
        0.691369766847508
    """
    parsed = [Gate.parse(gate) for gate in as_tuple(gates)]
    notes = Notes(PYTHON) if notes is None else notes
    paths = [predictions] if isinstance(predictions, str | os.PathLike) else [*predictions]
    source = Path(problem) if isinstance(problem, str | os.PathLike) else problem
    chosen = format_of(source) if isinstance(source, Path) else default_format()
    task, findings = chosen.read_truth(source, None if truth is None else Path(truth), part)
    findings.check()
    assert task is not None  # else there are faults
    if not task.problem.criteria:
        raise SpecError(f"{task.document}: the problem has no metric; name one under performanceMetrics")
    named = predictions if isinstance(predictions, Mapping) else [Path(path) for path in paths]
    systems = assign_files(named or find_files(task), task)
    task = task.for_files(path for files in systems.values() for path in files)
    parts = {
        system: sorted(read_parts(files, task, findings), key=lambda part: (part.repeat, part.fold))
        for system, files in systems.items()
    }
    findings.check()
    groupings = tuple(tuple(word.strip() for word in each.split(",")) for each in as_tuple(by))
    attributes = _Attributes(task, groupings, groups, notes)
    judged: dict[str, list[JudgedPart]] = {}
    for system, of_system in parts.items():
        judged[system] = []
        for each in of_system:
            keys = each.truth.column(task.layout.key).unique().sort()
            options = JudgeOptions(
                definition=definition,
                confidence=_CONFIDENCE if intervals else None,
                groups=attributes.of(keys),
                by=groupings,
            )
            judged[system].append(judge_part(each, task, options))
    of_criteria = (
        note for each in chain.from_iterable(judged.values()) for result in each.results for note in result.notes
    )
    graded = GradedProblem(
        task, chosen, judged, groupings, attributes, tuple(dict.fromkeys([*findings.notes, *of_criteria]))
    )
    notes += [f"{note}  [{note.code}]" for note in graded.notes]
    if definition not in (None, STANDARD):
        notes.append(f"metrics follow the definition {definition}")
    if graded.why_apart and parsed:
        raise parsed[0].fault(f"{graded.why_apart}; gate the table of values instead")
    if groupings and len(graded.parts) > 1:
        notes.append("differences between groups are not computed over several parts of a split")
    if graded.why_apart and len(systems) > 1:
        notes.append(f"the systems are not compared row by row: {graded.why_apart}")
    if graded.why_apart and store is not None:
        notes.append(f"stored values are those of all rows: here {graded.why_apart}")
    made = None
    if store is not None:
        made = graded.save(store, name or task.problem.id)
    elif parsed or len(systems) > 1:
        made = graded.unsaved()
    return SystemScores(
        systems=[*systems],
        values=graded.values(),
        gates=[] if made is None else check_system_gates(parsed, made, graded.measures),
        noted=notes,
        graded=graded,
        made=made,
        about=graded.about,
        curves=graded.curves(),
    )


class _Attributes:
    """The columns of the learning table by which values are grouped."""

    def __init__(self, truth: ProblemTruth, by: Sequence[tuple[str, ...]], most: int, notes: Notes) -> None:
        self.names = tuple(dict.fromkeys(chain.from_iterable(by)))
        self._known, self._key = truth.known, truth.layout.key
        if not self.names:
            return
        for name in self.names:
            if name not in self._known:
                listed = alternatives(name, [*self._known]) if self._known else "; there is no learning table"
                raise SpecError(f"{notes.option('by', name)}: the learning table has no such column{listed}")
        tested = truth.cells.filter(np.any([*truth.parts.values()], axis=0))
        columns = self.of(tested.column(self._key).unique())
        for names in by:
            found = pa.table([columns[name] for name in names], [*names]).group_by([*names]).aggregate([])
            check_groups(names, found.num_rows, len(columns[names[0]]), most, notes)

    def of(self, keys: pa.Array) -> dict[str, pa.Array]:
        """The values of examples, by their index."""
        if not self.names:
            return {}
        rows = pc.index_in(keys, value_set=self._known[self._key].cast(keys.type))
        return {name: self._known[name].cast(pa.string()).take(rows) for name in self.names}


def write_scores_file(
    scores: SystemScores, path: str | os.PathLike[str], layout: str | None = None, *, force: bool = False
) -> None:
    """Writes the file of scores that a problem expects.

    Args:
        scores: those of one system, as `score` returns them.
        layout: see `scores_table`.

    Raises:
        SpecError: the file exists, or see `scores_table`.
    """
    if Path(path).exists() and not force:
        raise SpecError(f"{path}: exists already", python="give force=True", command="give --force")
    write_table(scores_table(scores, layout), path)


def scores_table(scores: SystemScores, layout: str | None = None) -> pa.Table:
    """The scores of a problem as a file in its format; an undefined value is empty.

    Args:
        scores: those of one system, as `score` returns them.
        layout: one of those that the format has; by default the first.

    Raises:
        SpecError: there is no such layout, there are several systems, or these are no scores of a problem.
    """
    graded = scores.graded
    if not isinstance(graded, GradedProblem):
        raise SpecError("only scores of a problem have a file; write the table of all values instead")
    if len(scores.systems) > 1:
        raise SpecError("a file of scores has those of one system; write the table of all values instead")
    [parts] = graded.systems.values()
    return graded.format.scores_table(parts, graded.problem, layout or graded.format.score_layouts[0])


_TYPES: Final = {"text": "text", "time": "text", "integer": "integer", "real": "number", "boolean": "boolean"}


@dataclass(frozen=True, eq=False)
class GradedProblem:
    """Judged parts of systems, as values, and as a dataset, tasks and what a scorer would say of them.

    Attributes:
        systems: system → its parts.
        notes: deviations that did not prevent scoring.
    """

    truth: ProblemTruth
    format: ProblemFormat
    systems: Mapping[str, Sequence[JudgedPart]]
    by: Sequence[tuple[str, ...]]
    attributes: _Attributes
    notes: Sequence[Fault]
    cluster_column: None = None

    @property
    def problem(self) -> Problem:
        return self.truth.problem

    @property
    def layout(self) -> FileLayout:
        return self.truth.layout

    @cached_property
    def scorer_name(self) -> str:
        """The kind of scorer that reads the rows."""
        kinds = {scorer_of(result.reads) for result in self.parts[0].results}
        return next((kind for kind in ("detection", "ranking") if kind in kinds), SCORER)

    @cached_property
    def about(self) -> dict[str, Any]:
        """The problem, its definition and the digests of all files, for provenance."""
        files = dict.fromkeys(p.part.predictions.path for parts in self.systems.values() for p in parts)
        return {
            "problem": self.problem.id,
            "definition": self.parts[0].results[0].definition,
            "files": {str(path): identity.digest_of_file(path) for path in files if path is not None},
            "problem_digest": identity.digest_of_file(self.truth.document),
            "truth_digest": identity.digest_of_file(self.truth.cells.path or self.truth.document),
        }

    # Values

    def values(self) -> Values:
        """The values of each criterion, and of several parts their mean and then those of each."""
        metrics, disparities = list[tuple[str, MetricRow]](), list[Any]()
        for system, parts in self.systems.items():
            for results in zip(*(each.results for each in parts), strict=True):
                if len(parts) > 1:
                    metrics.append((system, _mean([result.row for result in results])))
                for each, result in zip(parts, results, strict=True):
                    own = self._name_part(each)
                    metrics += [(system, row._replace(by=own | row.by)) for _, row in result.results.values]
                    disparities += [(system, row) for _, row in result.results.disparities if len(parts) == 1]
        return Values(metrics, disparities)

    def _name_part(self, judged: JudgedPart) -> dict[str, str | None]:
        """The repeat and the fold of a part, as far as there are several."""
        numbers = {name: {getattr(each.part, name) for each in self.parts} for name in ("repeat", "fold")}
        return {name: str(getattr(judged.part, name)) for name, all_of in numbers.items() if len(all_of) > 1}

    @cached_property
    def measures(self) -> list[Measure]:
        """The metrics, each once, with the names that documents have for them."""
        named: dict[str, tuple[Metric, dict[str, None]]] = {}
        for result in chain.from_iterable(each.results for each in chain.from_iterable(self.systems.values())):
            _, words = named.setdefault(result.metric.signature, (result.metric, {}))
            words[self.format.metric_word(result.criterion.metric)] = None
        by = self.by if len(self.parts) == 1 else ()
        return [Measure(self.scorer_name, metric, by, called=tuple(words)) for metric, words in named.values()]

    @cached_property
    def _known_values(self) -> list[MeasureResults]:
        """The results of each system; none of several parts, of which the values over all rows are others."""
        if len(self.parts) > 1:
            return []
        known = []
        for [judged] in self.systems.values():
            results = [each.results for each in judged.results]
            merged = MeasureResults(*(list(chain.from_iterable(of)) for of in zip(*results, strict=True)))
            distinct = {(row.signature, row.target, *row.by.items()): (scorer, row) for scorer, row in merged.values}
            known.append(merged._replace(values=[*distinct.values()]).with_families())
        return known

    def curves(self) -> list[tuple[str, dict[str, Any], Drawn]]:
        """The curves of each system; none of several parts."""
        found: dict[Any, tuple[str, dict[str, Any], Drawn]] = {}
        for system, results in zip(self.systems, self._known_values, strict=False):
            found |= {(system, repr(head)): (system, head, curve) for head, curve in results.curves}
        return [*found.values()]

    @cached_property
    def why_apart(self) -> str | None:
        """Why gates and comparisons, which see all rows at once, would judge other values than these; None if not."""
        if len(self.parts) > 1:
            return f"each value is the mean over {len(self.parts)} parts of the split, and not that of all rows"
        ordered = any(getattr(result.metric, "definition", None) == "3.1.1" for result in self.parts[0].results)
        ranked = (CONFIDENCE in parts[0].part.predictions.table.column_names for parts in self.systems.values())
        return "boxes without confidence count in the order of their file" if ordered and not all(ranked) else None

    # Artifacts

    def unsaved(self) -> Results:
        """The results in memory."""
        columns = self._plain_columns()
        if not columns:
            return self.save(MemoryStore(), "scores")
        steps, store = self.steps("scores"), ColumnStore()
        made = store.put(steps.dataset, self._scorer(), columns)
        return steps.summarise(store, made, self._known_values, compared=self.why_apart is None)

    def save(self, store: Store, name: str) -> Results:
        """The results in a store.

        Raises:
            SpecError: a target has a reserved name, or metrics read rows in ways that no single scorer does.
        """
        scores = {system: {SCORER: each.scored_rows()} for system, each in self._plain_columns().items()}
        compared = self.why_apart is None
        return self.steps(name).run(store, known_scores=scores, known_values=self._known_values, compared=compared)

    def steps(self, name: str) -> Steps:
        """The path of the dataset, and of the predictions of each system as a task.

        Raises:
            SpecError: see `save`.
        """
        if INDEX in self.layout.targets:
            raise SpecError(f"a target called {INDEX!r} cannot be stored, since runs use this name; leave out --name")
        tasks = {system: self._task(system) for system in self.systems}
        return Steps(name, self._dataset(), tasks, {self.scorer_name: self._scorer()}, self.measures, origin=self.about)

    def _scorer(self) -> Any:
        """The scorer that grades the outputs."""
        kind = registry.find("scorers", self.scorer_name)
        return kind(type=self._type) if self.scorer_name == SCORER else kind()

    @cached_property
    def parts(self) -> Sequence[JudgedPart]:
        """Those of the first system, with the truth of all."""
        return next(iter(self.systems.values()))

    @cached_property
    def _type(self) -> str:
        """The type of all targets."""
        if any(judged.aligned.with_sets for parts in self.systems.values() for judged in parts):
            return "labels"
        types = {_TYPES.get(kind, "json") for kind in self.layout.targets.values()}
        if types == {"number"} and any(result.reads in ("labels", "sets") for result in self.parts[0].results):
            return "integer"
        return types.pop() if len(types) == 1 else "json"

    @cached_property
    def _targets(self) -> list[str]:
        """The targets that have values of their own: not the label of boxes."""
        return [*self.parts[0].aligned.boxes] or [*self.layout.targets]

    @cached_property
    def _as_filed(self) -> bool:
        """Whether a metric depends on the order of the files."""
        return any(result.reads == "rows" for result in self.parts[0].results)

    @cached_property
    def _places(self) -> dict[Any, int]:
        """The place of each example by its index: sorted, or in the order of the files if a metric depends on that."""
        keys = pa.chunked_array([each.part.truth.column(self.layout.key) for each in self.parts]).unique()
        return {key: place for place, key in enumerate((keys if self._as_filed else keys.sort()).to_pylist())}

    def _plain_columns(self) -> dict[str, PredictionColumns]:
        """System → its columns, where each is one table of one target, which need not become rows; else none."""
        is_one = len(self.parts) == len(self.layout.targets) == 1
        if not is_one or self.scorer_name != SCORER or self._type == "json" or self._as_filed:
            return {}
        return {system: self._columns[id(parts[0]), self._targets[0]] for system, parts in self.systems.items()}

    @cached_property
    def _columns(self) -> dict[tuple[int, str], PredictionColumns]:
        """The columns of each part, by its identity in memory, and target."""
        every = chain.from_iterable(self.systems.values())
        return {
            (id(each), name): each.aligned.as_predictions(name, self._type) for each in every for name in self._targets
        }

    def _dataset(self) -> Dataset:
        """The truth of each example, with its attributes."""
        targets, key = self._targets, self.layout.key
        names = [name for name in self.attributes.names if name not in (key, *targets)]
        groups, keys = self.attributes.of(pa.array([*self._places])), pa.array([*self._places])
        roles: dict[str, Any] = {"id": key, "input": key, "attributes": [*self.attributes.names]}
        if columns := self._plain_columns():
            truth = next(iter(columns.values())).truth
            table = pa.table({key: keys, targets[0]: truth} | {name: groups[name] for name in names})
            return Dataset.from_arrow(table, expected=targets[0], **roles)
        truths: dict[Any, Mapping[str, Any]] = {}
        for judged in self.parts:
            truths |= zip(self._keys(judged), self._values(judged, predicted=False), strict=True)
        records = [{key: each, **truths[each]} for each in self._places]
        for name in names:
            records = [record | {name: cell} for record, cell in zip(records, groups[name].to_pylist(), strict=True)]
        expected = targets[0] if len(targets) == 1 else {target: target for target in targets}
        return Dataset.from_rows(records, expected=expected, **roles)

    def _task(self, system: str) -> GivenTask:
        """The predictions of a system as the outputs of a task."""
        if columns := self._plain_columns():
            return GivenTask.from_texts(system, columns[system].output_texts)
        outputs: dict[tuple[int, int], bytes] = {}
        folds: dict[tuple[int, int], int] = {}
        for judged in self.systems[system]:
            for key, values in zip(self._keys(judged), self._values(judged, predicted=True), strict=True):
                row = judged.part.repeat, self._places[key]
                outputs[row] = identity.encode(values if len(values) > 1 else next(iter(values.values())))
                folds[row] = judged.part.fold
        return GivenTask.from_outputs(system, outputs, folds if len({*folds.values()}) > 1 else {})

    def _keys(self, judged: JudgedPart) -> list[Any]:
        """The index of each example of a part, sorted."""
        return judged.part.truth.column(self.layout.key).unique().sort().to_pylist()  # type: ignore[no-any-return]

    def _values(self, judged: JudgedPart, *, predicted: bool) -> Iterator[dict[str, Any]]:
        """Of each example of a part its true or predicted value for each target."""
        if self.scorer_name == SCORER:
            columns = [self._columns[id(judged), name] for name in self._targets]
            values = [each.outputs() if predicted else each.truths() for each in columns]
            return (dict(zip(self._targets, row, strict=True)) for row in zip(*values, strict=True))
        by_key: dict[Any, list[Mapping[str, Any]]] = {key: [] for key in self._keys(judged)}
        for row in (judged.part.predictions if predicted else judged.part.truth).table.to_pylist():
            if row[self.layout.key] in by_key:
                by_key[row[self.layout.key]].append(row)
        return (
            {name: [self._cell(row, name, predicted) for row in rows] for name in self._targets}
            for rows in by_key.values()
        )

    def _cell(self, row: Mapping[str, Any], target: str, predicted: bool) -> Any:
        """A box with its label and confidence, an answer with its rank, or a relevant answer."""
        if self.scorer_name == "ranking":
            return {"answer": row[target], "rank": row[RANK]} if predicted else row[target]
        labels = [row[name] for name in self.layout.targets if name not in self._targets]
        given = {"box": row[target], "label": next(iter(labels), None), CONFIDENCE: row.get(CONFIDENCE)}
        return {key: value for key, value in given.items() if value is not None}


def _mean(rows: Sequence[MetricRow]) -> MetricRow:
    """The mean of the values of several parts, with their spread; undefined ones are left out and counted."""
    values = [row.value for row in rows if not math.isnan(row.value)]
    spread = {
        "parts": len(rows),
        "undefined": len(rows) - len(values),
        "deviation": statistics.stdev(values) if len(values) > 1 else None,
        "least": min(values, default=None),
        "most": max(values, default=None),
    }
    reason = f"the mean of {len(values)} of {len(rows)} parts, the others of which are undefined"
    if len(values) == len(rows):
        deviation = "" if spread["deviation"] is None else f", their deviation {spread['deviation']:.4g}"
        reason = f"the mean of {len(rows)} parts, from {spread['least']:.4g} to {spread['most']:.4g}{deviation}"
    counts = ("n", "n_scored", "n_failed", "n_abstained", "n_skipped")
    changed: dict[str, Any] = {name: sum(getattr(row, name) for row in rows) for name in counts}
    changed |= dict.fromkeys(("low", "high", "worst", "best"), math.nan) | {"reason": reason, "data": spread}
    return rows[0]._replace(value=statistics.fmean(values) if values else math.nan, **changed)
