"""Columns of predictions in files scored against a column of truth."""

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from shlex import join
from typing import Final

import pyarrow.compute as pc
from click import UsageError

from evaluand.cli.progress import display, show_notes
from evaluand.cli.score.options import ScoreOptions
from evaluand.cli.score.output import check_output, write_scores
from evaluand.data.files import STDIN, is_glob
from evaluand.data.source import is_undivided, list_columns
from evaluand.metrics.base.labels import contents
from evaluand.predictions.columns.files import score_tables
from evaluand.predictions.columns.names import ColumnGuesses, guess_columns
from evaluand.predictions.columns.tables import NamedTable, read_table
from evaluand.predictions.options import ColumnOptions
from evaluand.report.text import safe

_SHOWN: Final = 12
_FLIPS: Final = 3


def score_files(given: ScoreOptions) -> None:
    """Scores columns of files, prints and stores the results.

    Raises:
        UsageError: an option is missing; the message has the complete command if columns look like what is missing.
        Exit: a gate failed.
    """
    if not given.files:
        raise UsageError("name the file that has the columns: evaluand score FILE --truth COLUMN --prediction COLUMN")
    check_output(given)
    with show_notes():
        _check_files(given)
        options = _column_options(given)
        types = options.column_types()
        tables = [read_table(file, given.form, given.delimiter, types) for file in given.files]
        base = tables[0]
        if given.truth_file is not None:
            base = read_table(given.truth_file, delimiter=given.delimiter, types=types)
        options = _complete(given, options, base, tables)
    name = given.name or ("stdin" if given.files[0] == STDIN else Path(given.files[0]).stem)
    options = replace(options, origin={"files": [*given.files]})
    progress = display(given.as_json, quiet=False)
    write_scores(
        lambda store: score_tables(base, tables, options, store, name, progress, whole=True),
        given,
        name,
        flips=_FLIPS if given.inputs or given.as_json else 0,
    )


def _column_options(given: ScoreOptions) -> ColumnOptions:
    same = ("scores", "confidences", "by", "gates", "missing", "kind", "threshold", "inputs", "weight")
    return ColumnOptions(
        truth=given.truth or "",
        predictions=given.prediction,
        metrics=[name.strip() for each in given.metrics for name in (each.split(",") if "(" not in each else [each])],
        id=given.id_,
        intervals=not given.no_intervals,
        label=given.pos_label,
        types=dict(_split_type(text) for text in given.types),
        disparities=("difference",),
        **{name: getattr(given, name) for name in (*same, "cluster", "where", "fairness", "groups")},
    )


def _split_type(text: str) -> tuple[str, str]:
    column, sign, type = text.rpartition("=")
    if not sign:
        raise UsageError(f"--type {text}: write COLUMN=TYPE, such as {text}=text")
    return column, type


def _check_files(given: ScoreOptions) -> None:
    """Refuses further words that are columns of the first file.

    Raises:
        UsageError: names the options for columns.
    """
    first, *others = given.files
    missing = [each for each in others if each != STDIN and not Path(each).exists() and not is_glob(each)]
    if missing:
        columns = read_table(first, given.form, given.delimiter).table.column_names
        if missing[0] in columns:
            raise UsageError(f"{missing[0]} is a column of {first}; give it as --truth or as --prediction")
        raise UsageError(f"{missing[0]}: no such file, and no column of {first}")


# What is missing


def _complete(
    given: ScoreOptions, options: ColumnOptions, base: NamedTable, tables: Sequence[NamedTable]
) -> ColumnOptions:
    """The options, if truth and predictions are named.

    Raises:
        UsageError: they are not; the message has a complete command where columns look like them.
    """
    if options.truth:
        base = base.with_paths([("--truth", options.truth)])
    if options.truth and options.truth not in base.table.column_names:
        _explain_truth(options.truth, base, tables, given)
    if options.truth and (options.predictions or options.scores):
        return options
    table = tables[0].table
    guesses = guess_columns(base.table, options.truth or None)
    if base is not tables[0]:
        own = guess_columns(table, options.truth if options.truth in table.column_names else None)
        guesses = replace(guesses, predictions=own.predictions, scores=own.scores)
    missing = [] if options.truth else ["--truth"]
    missing += [] if options.predictions or options.scores else ["--prediction"]
    raise UsageError(_suggest(given, options, guesses, missing, base, tables[0]))


def _explain_truth(truth: str, base: NamedTable, tables: Sequence[NamedTable], given: ScoreOptions) -> None:
    if Path(truth).is_file() and given.truth_file is None:
        columns = read_table(truth).table.column_names
        raise UsageError(
            f"--truth {truth} is a file; give it as --truth-file {truth}, and with --truth its column, one of"
            f" {', '.join(columns[:_SHOWN])}"
        )
    base.column(truth, "--truth")


def _suggest(
    given: ScoreOptions,
    options: ColumnOptions,
    guesses: ColumnGuesses,
    missing: Sequence[str],
    base: NamedTable,
    table: NamedTable,
) -> str:
    truth = options.truth or (guesses.truth[0] if len(guesses.truth) == 1 else "")
    predictions = [*options.predictions] or [*guesses.predictions]
    names = [name for name in table.table.column_names if name != truth]
    lines = f"{' and '.join(missing)} {'is' if len(missing) == 1 else 'are'} missing"
    looks = [
        f"{', '.join(map(repr, found))} {'looks' if len(found) == 1 else 'look'} like {what}"
        for found, what in (
            (guesses.truth if "--truth" in missing else [], "the truth"),
            (guesses.predictions if "--prediction" in missing else [], "predictions"),
            (guesses.scores if "--prediction" in missing else [], "scores"),
        )
        if found
    ]
    words = ["evaluand", "score", *given.files]
    if given.truth_file is not None:
        words += ["--truth-file", given.truth_file]
    command = join([*words, "--truth", truth or "COLUMN"])
    if predictions:
        command += "".join(f" {join(['--prediction', each])}" for each in predictions)
    elif guesses.scores and not options.scores:
        named = _name_classes(base, truth, guesses.scores)
        command += "".join(f" {join(['--score', each])}" for each in named)
    else:
        command += "" if options.scores else " --prediction COLUMN"
    if is_undivided(table.table.column_names):
        looks = [list_columns(table.table.column_names)]
    elif not looks:
        more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
        source = f"{base.name} and {table.name}" if base is not table else table.name
        looks = [f"the columns of {source} are {', '.join(map(repr, names[:_SHOWN]))}{more}"]
    return f"{lines}; {'; '.join(looks)}. Run\n  {safe(command)}"


def _name_classes(base: NamedTable, truth: str, scores: Sequence[str]) -> Sequence[str]:
    """Columns of scores as `LABEL=COLUMN`, if each is called after one of several classes."""
    if truth not in base.table.column_names:
        return scores
    column = base.column(truth, "--truth")
    if contents(column.type) not in ("text", "integers", "bools"):
        return scores
    labels = pc.unique(column.drop_null()).to_pylist()
    named = [
        f"{label}={score}"
        for score in scores
        for label in labels
        if str(label).casefold() in re.split(r"[^a-z0-9]+", score.casefold())
    ]
    return named if len(labels) > 2 and len(named) == len(scores) == len(labels) else scores
