"""Prediction files scored by the metrics of their problem."""

from collections.abc import Sequence
from pathlib import Path
from shlex import join

import click
from click import UsageError
from click.exceptions import Exit

from evaluand.cli.output import condensed, print_json
from evaluand.cli.progress import show_notes
from evaluand.cli.score.options import ScoreOptions
from evaluand.cli.score.output import check_output, write_scores
from evaluand.core.errors import DataError, Fault, plural
from evaluand.predictions.columns.names import looks_like_prediction, looks_like_truth
from evaluand.predictions.columns.notes import Notes
from evaluand.predictions.problem.files import read_header
from evaluand.predictions.problem.inline import criterion_named, inline_problem
from evaluand.predictions.problem.problem import Problem
from evaluand.predictions.result import SystemScores
from evaluand.predictions.scoring import score, write_scores_file
from evaluand.report.facts.base import Facts
from evaluand.report.text import safe
from evaluand.store.store import Store


def score_problem(given: ScoreOptions, problem: Path | None) -> None:
    """Scores prediction files by the metrics of their problem, or by named metrics against a file of truth.

    Raises:
        Exit: there are faults, which were printed, or a gate failed.
        UsageError: the options do not fit.
    """
    if problem is not None and given.metrics:
        raise UsageError(f"--metric: {problem} names its own metrics; leave out one of the two")
    if problem is None and len(given.predictions) == 1 and given.truth is not None:
        _require_one_meaning(given.predictions[0], given.truth, given.metrics)
    elif given.metrics:
        raise UsageError("--metric needs a FILE with columns, or one file of --predictions and a file of --truth")
    elif problem is None:
        raise UsageError(
            "name a file and its columns (evaluand score FILE --truth COLUMN --prediction COLUMN), or a problem by its"
            " FOLDER or --problem"
        )
    if not given.metrics and (given.pos_label is not None or given.k is not None):
        raise UsageError("--pos-label and --k need --metric; a problem states its own parameters")
    check_output(given)
    name = given.name or (Path(given.truth or "scores").stem if problem is None else problem.resolve().stem)
    try:
        with show_notes():
            source = problem or _inline_problem(given)
        write_scores(lambda store: _score(source, given, store, name), given, name, flips=0)
    except DataError as error:
        if given.as_json:
            print_json({"ok": False, "faults": [*map(_fault_facts, error.faults)], "notes": []})
        else:
            for line in condensed(error.faults):
                click.echo(f"fault  {safe(line)}", err=True)
            click.echo(f"{plural(len(error.faults), 'fault')}; nothing was scored", err=True)
        raise Exit(1) from None


def _inline_problem(given: ScoreOptions) -> Problem:
    criteria = [criterion_named(each, given.definition, positive=given.pos_label, k=given.k) for each in given.metrics]
    return inline_problem(Path(given.predictions[0]), Path(given.truth or ""), criteria)


def _score(source: Path | Problem, given: ScoreOptions, store: Store | None, name: str) -> SystemScores:
    scores = score(
        source,
        given.predictions,
        None if given.truth is None else Path(given.truth),
        definition=given.definition,
        part=given.part,
        by=given.by,
        gates=given.gates,
        intervals=not given.no_intervals,
        groups=given.groups,
        store=store,
        name=name,
        notes=Notes(),
    )
    if given.out is not None:
        write_scores_file(scores, given.out, given.layout, force=True)
    return scores


def _require_one_meaning(predictions: str, truth: str, metrics: Sequence[str]) -> None:
    """Refuses two files without a metric, and those that both have truth and predictions.

    Raises:
        UsageError: the message has the command with the columns named.
    """
    own, true = (read_header(Path(path)) if Path(path).is_file() else [] for path in (predictions, truth))
    truths = [name for name in own if name in true and looks_like_truth(name)]
    others = [name for name in own if looks_like_prediction(name)]
    if metrics and not (truths and others):
        return
    named = [next(iter(truths), "COLUMN"), "--prediction", next(iter(others), "COLUMN")]
    command = join(["evaluand", "score", predictions, "--truth-file", truth, "--truth", *named])
    reason = (
        "name the column of the truth and that of the predictions, or a --metric by which the columns that both files"
        " have are judged"
    )
    if metrics:
        command = " ".join([command, *(join([f"--metric={metric}"]) for metric in metrics)])
        reason = (
            f"both files have the column {truths[0]!r}, which would be scored against itself, and {predictions} has"
            f" {others[0]!r}"
        )
    raise UsageError(f"{reason}. Run\n  {safe(command)}")


def _fault_facts(fault: Fault) -> Facts:
    place = {name: getattr(fault, name, None) for name in ("file", "line", "column")}
    return {"where": fault.where, **place, "code": fault.code, "message": fault.message}
