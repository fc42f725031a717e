"""`evaluand grade`: grades what is stored, or a log of another tool, by further scorers and judges."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click

from evaluand.aggregation.kind import AGGREGATIONS
from evaluand.cli.carry_out import carry_out, repeat_lost_option, words_to_repeat
from evaluand.cli.command import argument, make_command, option
from evaluand.cli.gates import conclude
from evaluand.cli.import_results import note_import
from evaluand.cli.options import (
    FILE,
    ShareType,
    budget_option,
    complete_artifact,
    is_stored,
    json_option,
    store_option,
    suggest_command,
    where_option,
)
from evaluand.cli.output import stdout_to_stderr
from evaluand.cli.progress import Display, display, show_notes
from evaluand.cli.results import print_results
from evaluand.cli.run import suggest_retries
from evaluand.core.errors import DataError
from evaluand.core.redaction import redact_command
from evaluand.engine.budget import Budget
from evaluand.evaluation.kind import EVALUATIONS
from evaluand.exchange.importer import UnknownFormat, find_importers
from evaluand.exchange.storing import save_results
from evaluand.experiment.grading import read_regrading, scorer_entries
from evaluand.predictions.regrading import GradedRun, RowChoice, find_graded_runs, graded_run, label_runs
from evaluand.run.kind import RUNS
from evaluand.run.request import ExperimentRequest
from evaluand.store.addresses import Place
from evaluand.store.folder_store import FolderStore
from evaluand.store.opening import open_store

_EXAMPLES = """\b
Examples:
  evaluand grade support/mine --scorer exact_match
  evaluand grade support/mine support/other --judge correctness --model openai/gpt-5-mini
  evaluand grade support/mine --where 'value < 1' --judge tone.yaml --model '{model: openai/gpt-5-mini, version: "1"}'
  evaluand grade support --scorers experiment.yaml --sample 200
  evaluand grade support/mine --scorer app.py:polite --where 'length(response) > 100'
  evaluand grade logs/addition.eval --scorer near=numeric_answer:tolerance=0.5
  evaluand grade promptfoo.json --judge rubrics/tone.yaml --model ollama/llama3.2 --sample 10% --budget '2 USD'
"""


class _Size(ShareType):
    """A number of rows, or their share."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if str(value).strip().isdecimal():
            return click.IntRange(min=1).convert(value, param, ctx)
        return super().convert(value, param, ctx)


@dataclass(frozen=True, kw_only=True)
class _Rows:
    """Which rows are graded."""

    size: int | float | None = option(
        "Only so many rows, or such a share, drawn at random; the others are skipped.",
        "--sample",
        type=_Size(),
        metavar="N|SHARE",
    )
    seed: int = option("Of the draw.", type=click.IntRange(min=0), default=0, show_default=True, metavar="N")
    where: str | None = where_option
    failed: bool = option("Only rows that failed or have no score.")


@dataclass(frozen=True, kw_only=True)
class _Options:
    sources: tuple[str, ...] = argument(
        metavar="NAME|LOG...", nargs=-1, required=True, shell_complete=complete_artifact
    )
    scorers: tuple[str, ...] = option(
        "A scorer, such as exact_match, numeric_answer:tolerance=0.5 or app.py:polite; repeatable.",
        "--scorer",
        metavar="[NAME=]KIND[:OPTIONS]",
    )
    judges: tuple[str, ...] = option(
        "A judge with one of evaluand's rubrics, or that of a file; repeatable.", "--judge", metavar="[NAME=]RUBRIC"
    )
    model: str | None = option(
        "The model that judges ask: PROVIDER/NAME, URL#NAME, or '{model: NAME, version: \"1\"}'.", metavar="MODEL"
    )
    file: Path | None = option(
        "The scorers and metrics of an experiment file, or of a file that has only scorers.",
        "--scorers",
        type=FILE,
        metavar="FILE",
    )
    rows: _Rows
    name: str | None = option(
        "A name for the summary.  [default: that of the experiment, if all of it]", metavar="NAME"
    )
    fresh: bool = option("Repeat every grade of these scorers.")
    retry_failed: bool = option("Repeat the grades that failed.")
    repeat_lost: bool = repeat_lost_option
    budget: Budget | None = budget_option
    folder: Place = store_option
    as_json: bool = json_option
    quiet: bool = option("Print only the values.")


@make_command("grade", epilog=_EXAMPLES)
def command(options: _Options) -> None:
    """Grade what is stored, or a log of another tool, by further scorers and judges; no task is called.

    NAME is a run, an evaluation, or an experiment with all its tasks. LOG is what `evaluand import` recognises, and is
    imported first. New scores stay beside those that there are, under the same name, and are summarised and compared as
    `evaluand run` does: by the metrics of --scorers, else by the mean of each scorer. A row that a scorer has graded
    before is not graded again, unless by --fresh; of a model that needs a version.

    The exit code is 1 if a scorer failed on every row, or a metric cannot use the scores.
    """
    given = bool(options.scorers or options.judges)
    if given == (options.file is not None):
        raise click.UsageError(
            "name what grades: --scorer KIND, or --judge RUBRIC and --model NAME, or --scorers FILE alone;"
            " `evaluand list scorers` lists the kinds"
        )
    if options.fresh and options.retry_failed:
        raise click.UsageError("give one of --fresh and --retry-failed")
    entries = scorer_entries(options.scorers, options.judges, options.model)
    choice, store, words = RowChoice(**vars(options.rows)), open_store(options.folder), words_to_repeat(options.sources)
    progress = display(options.as_json, options.quiet)
    with stdout_to_stderr(), show_notes():
        runs = label_runs([graded for source in options.sources for graded in _find_runs(store, source, progress)])
        samples = {label: choice.sample(graded) for label, graded in runs.items()}
        summary = options.name or _name_of_summary(store, options.sources, runs)
        regrading = read_regrading(runs, entries, options.file, samples=samples, summary=summary)
        if options.budget is not None:
            regrading.policy = replace(regrading.policy, budget=options.budget)
        regrading.origin |= {"grade": redact_command(words)}
        request = ExperimentRequest(calls=False, fresh=options.fresh, retry_failed=options.retry_failed)
        request = replace(request, repeat_lost=options.repeat_lost)
        results = carry_out(regrading, store, request, progress, ["grade", *words])
    failed = print_results(results, store, as_json=options.as_json, quiet=options.quiet)
    if not options.quiet:
        suggest_retries(results, regrading, suggest_command("grade", [*words, "--retry-failed"], store.root))
    conclude([], None, failed=failed)


def _find_runs(store: FolderStore, source: str, progress: Display) -> list[GradedRun]:
    """The runs of a name, or those of a log, which is imported."""
    if is_stored(store, source, (RUNS, EVALUATIONS, AGGREGATIONS)):
        return find_graded_runs(store, source)
    try:
        importers = find_importers(Path(source))
    except UnknownFormat:
        raise click.UsageError(
            f"{source} is no log of another tool that is recognised; import it first, by `evaluand import {source}"
            f" --from TOOL` or --dataset DATA, or score its columns by `evaluand score {source}`"
        ) from None
    graded_before = {ref.name: ref.id for ref in store.refs() if ref.kind == EVALUATIONS}
    result = save_results(importers, store, progress=progress)
    note_import(result)
    if result.unreadable:
        raise DataError(result.unreadable)
    found = zip(result.runs, result.evaluations, strict=True)
    return [graded_run(run, graded_before, known=imported) for run, imported in found]


def _name_of_summary(store: FolderStore, sources: tuple[str, ...], runs: Mapping[str, GradedRun]) -> str | None:
    """The name of the only source if it is that of a summary of exactly these runs."""
    [source, *others] = sources
    is_summary = not others and any(ref.kind == AGGREGATIONS for ref in store.named(source))
    return source if is_summary else None
