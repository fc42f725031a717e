"""The rows and the systems of files: rows are joined by id, and columns are those of systems by their names."""

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

import pyarrow.compute as pc

from evaluand.comparison.rule import Gate
from evaluand.core.errors import SpecError, plural
from evaluand.data.row_filter import RowFilter
from evaluand.engine.keyed_work import Progress
from evaluand.metrics.base.labels import contents
from evaluand.predictions.columns.gates import check_gate_columns
from evaluand.predictions.columns.names import guess_columns
from evaluand.predictions.columns.notes import Notes
from evaluand.predictions.columns.scoring import score_systems
from evaluand.predictions.columns.systems import SystemSpec
from evaluand.predictions.columns.tables import JoinedTables, NamedTable, join_tables
from evaluand.predictions.options import ColumnOptions, as_tuple
from evaluand.predictions.result import SystemScores
from evaluand.store.store import Store


def score_tables(
    base: NamedTable,
    files: Sequence[NamedTable],
    options: ColumnOptions,
    store: Store | None,
    name: str,
    progress: Progress | None = None,
    notes: Notes | None = None,
    *,
    whole: bool = False,
) -> SystemScores:
    """Scores tables that were read; see `evaluate`, and `score_systems` for `whole`.

    Args:
        base: the table with the truth.
        files: the tables of predictions, which may include it.
        progress: shows the progress of each step.
        notes: where to note what is taken for granted, with the names that options have; by default the command's.
    """
    gates = [Gate.parse(gate) for gate in as_tuple(options.gates)]
    notes = Notes() if notes is None else notes
    for column in options.types:
        if not any(column in table.table.column_names for table in (base, *files)):
            base.column(column, notes.name("type"))
    check_gate_columns(gates, base, options.by, notes)
    base, files = _choose_rows(base, files, options, notes)
    base.column(options.truth, notes.name("truth"))
    if base.typed(options.truth, "truth", notes).type == "empty":
        raise SpecError(
            f"{notes.name('truth')}: every cell of {options.truth!r} in {base.name} is empty; name another column"
        )
    joined = join_tables(base, files, options.truth, options.id, notes)
    notes += joined.notes
    specs = _find_systems(joined, options, notes)
    if options.id is None and all(each is base for each in files):
        _note_repeated_ids(joined.base, options, notes)
    return score_systems(joined.base, specs, options, notes, store, name, progress, whole=whole)


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
    names += [("input", name) for name in as_tuple(options.inputs)]
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
    titles = [os.path.basename(table.name) for table in joined.files]
    stems = [re.sub(r"(\.[A-Za-z0-9]+)+$", "", title) or title for title in titles]
    for table, title in zip(joined.files, stems if len({*stems}) == len(stems) else titles, strict=True):
        specs = _systems_in(table, predictions, plain, labelled, options.confidences, notes)
        if len(joined.files) > 1:
            specs = [replace(spec, name=title if len(specs) == 1 else f"{title}/{spec.name}") for spec in specs]
        found += specs
    names = [spec.name for spec in found]
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
