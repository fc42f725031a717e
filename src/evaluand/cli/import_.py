"""`evaluand import`: results of other tools, predictions made elsewhere as a run, or battles as matches."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from shlex import join
from typing import Any, Final, Literal

import click
from click import UsageError
from click.core import ParameterSource
from click.exceptions import Exit

from evaluand.cli.battle_options import BATTLE_OPTIONS, BattleOptions
from evaluand.cli.command import LINES, argument, make_command, option
from evaluand.cli.import_results import is_of_battles, store_results
from evaluand.cli.options import complete_artifact, has_battles, json_option, store_option, suggest_command
from evaluand.cli.output import print_json
from evaluand.cli.progress import display, show_notes
from evaluand.core import registry
from evaluand.core.errors import DataError, EvaluandError, NotFound, nearest, plural
from evaluand.data.dataset import Dataset
from evaluand.data.kind import DATASETS
from evaluand.data.sources import format_names, names_files
from evaluand.exchange.importer import Importer, UnknownFormat, find_importers
from evaluand.matches.battle_rows import spelled_for
from evaluand.matches.battles import read_battles
from evaluand.metrics.base.metric import Direction
from evaluand.predictions.columns.names import guess_columns
from evaluand.predictions.columns.tables import read_table
from evaluand.report.facts.base import Facts
from evaluand.report.facts.run import missing_facts
from evaluand.report.text import SHORT_ID, safe
from evaluand.run.kind import RUNS
from evaluand.run.runner import Run, Runner
from evaluand.run.tasks.recorded import RecordedTask
from evaluand.store.addresses import Place
from evaluand.store.folder_store import FolderStore
from evaluand.store.opening import open_store
from evaluand.store.store import resolve
from evaluand.store.tables import COMPLETED, FAILED

_EXAMPLES = """\b
Examples:
  evaluand import logs/addition.eval
  evaluand import logs/
  evaluand import results_2026-11-22T09-36-27.json --name baseline
  evaluand import promptfoo.json --direction latency=lower --json
  evaluand import mine.csv --dataset questions.jsonl --input question --expected answer --response answer
  evaluand import mine.jsonl --dataset arithmetic --response prediction=label --response confidence=score
  evaluand import mine.csv --dataset arithmetic --response text --by id --key question_id --name mine
  evaluand import five.csv --dataset arithmetic --response text --by id --key question_id --replication try
  evaluand import battles.jsonl --battles
  evaluand import judged.csv --battles --column a=left --column b=right --column winner=better --name judged
"""

_REASONS = 3


def _parse_places(ctx: click.Context, param: click.Parameter, values: tuple[str, ...]) -> str | dict[str, str]:
    """One place, or name → place."""
    named = [text.partition("=") for text in values]
    if len(values) == 1 and not named[0][1]:
        return values[0]
    if alone := [text for text, equals, _ in named if not equals]:
        raise click.BadParameter(f"{alone[0]!r} has no name; write several as name=place")
    if twice := [name for name in {n for n, _, _ in named} if sum(n == name for n, _, _ in named) > 1]:
        raise click.BadParameter(f"{twice[0]!r} is given twice")
    return {name: place for name, _, place in named}


def _parse_directions(ctx: click.Context, param: click.Parameter, values: tuple[str, ...]) -> dict[str, Direction]:
    """Scorer → which of its values are better."""
    found: dict[str, Direction] = {}
    for text in values:
        scorer, _, better = text.rpartition("=")
        if not scorer or better not in ("higher", "lower"):
            raise click.BadParameter(f"{text!r} must be a scorer and what is better, such as latency=lower")
        found[scorer] = "higher" if better == "higher" else "lower"
    return found


@dataclass(frozen=True, kw_only=True)
class _Roles:
    """The columns of a file of examples."""

    input: str | tuple[str, ...] = option(
        "In a file of examples: the column that the system saw.",
        multiple=True,
        type=LINES,
        metavar="COLUMN",
        callback=lambda context, parameter, values: values[0] if len(values) == 1 else values,
    )
    expected: str | dict[str, str] = option(
        "… the column of the right answer.",
        multiple=True,
        type=LINES,
        metavar="[TARGET=]COLUMN",
        callback=_parse_places,
    )
    attributes: tuple[str, ...] = option("… a column to group by.", metavar="COLUMN")
    id: str | None = option("… the column of the examples' ids.", metavar="COLUMN")
    weight: str | None = option("… the column of the examples' weights.", metavar="COLUMN")
    cluster: str | None = option("… the column that groups dependent examples.", metavar="COLUMN")
    metadata: tuple[str, ...] = option("… a column to store as metadata.", metavar="COLUMN")


@dataclass(frozen=True, kw_only=True)
class _Options:
    files: tuple[Path, ...] = argument(metavar="FILE...", nargs=-1, required=True, type=click.Path(path_type=Path))
    tool: str | None = option("The tool that wrote FILE.  [default: as recognised]", "--from", metavar="TOOL")
    data: str | None = option(
        "A file of examples, or the name or id of a stored dataset or of a run over it.",
        "--dataset",
        metavar="DATA",
        shell_complete=complete_artifact,
    )
    response: str | dict[str, str] = option(
        "The column (or place, such as choices[0].text) of the output; repeat it for an output of several parts.",
        multiple=True,
        type=LINES,
        default=["response"],
        show_default=True,
        metavar="[NAME=]PLACE",
        callback=_parse_places,
    )
    by: Literal["index", "id"] = option("Match rows to examples by index or by id.", default="index", show_default=True)
    key: str | None = option("The place of this key in a row.  [default: _index_ or id]", metavar="PLACE")
    replication: str | None = option("The place of the number of the repeat, from 0.", metavar="PLACE")
    replications: int | None = option(
        "How many repeats there are.  [default: as in FILE]", type=click.IntRange(min=1), metavar="N"
    )
    fold: str | None = option("The place of the number of the fold.", metavar="PLACE")
    error: str | None = option("The place of the error of a call that failed.", metavar="PLACE")
    items: bool = option("Each output is a list of items that together form the response.")
    form: str | None = option(
        "The format of FILE.  [default: from its suffix]", "--format", type=click.Choice(format_names())
    )
    delimiter: str | None = option("The delimiter of a CSV file.  [default: ,]", metavar="CHAR")
    roles: _Roles
    directions: dict[str, Direction] = option(
        "Results: which scores are better, where the tool does not say it; repeatable.",
        "--direction",
        multiple=True,
        type=LINES,
        metavar="SCORER=higher|lower",
        callback=_parse_directions,
    )
    battles: bool = option("FILE has battles of systems, which become matches.")
    reading: BattleOptions
    name: str | None = option("The name of the run or matches.  [default: the name of the file]", metavar="NAME")
    folder: Place = store_option
    as_json: bool = json_option


@make_command("import", epilog=_EXAMPLES)
def command(options: _Options) -> None:
    """Import results of other tools, predictions as a run, or battles as matches.

    Results of Inspect, lm-eval, promptfoo, DeepEval, MLflow, OpenAI Evals, HELM, Ragas, Langfuse, LangSmith and
    Phoenix, and spans of OpenTelemetry and OpenInference, are recognised by their content; of a folder, all logs in it
    are read. Examples, answers and scores become a dataset, runs and evaluations, and the totals in the file are
    compared with those of the imported scores. Exits 1 if a file cannot be read; the others are stored.

    With --dataset, FILE is a table of predictions. FILE and DATA are any files that a dataset is read from. Rows are
    joined to the examples by number or by id. An example without a row fails; rows that match no example are
    reported. The run equals that of a recorded task of an experiment.

    With --battles, each row of FILE says which of two systems was better on an example, in the columns of Chatbot
    Arena, AlpacaEval, MT-Bench, Arena-Hard or `evaluand export`; the battles become matches.
    """
    battles = options.battles
    context = click.get_current_context()
    _check_options(context, battles=battles)
    file = options.files[0]
    if not (battles or options.data is not None):
        if options.tool is not None or _is_plain(context):
            importers = _find_importers(options.files, options.tool)
            if importers:
                return store_results(
                    importers, options.folder, options.name, options.directions, as_json=options.as_json
                )
        battles = len(options.files) == 1 and is_of_battles(file)
    if options.directions:
        raise UsageError("--direction is for results of other tools; predictions and battles have no scores yet")
    if len(options.files) > 1:
        raise UsageError("several files are for results of other tools; import predictions and battles one by one")
    if battles:
        reading = options.reading.arguments | {"format": options.form, "delimiter": options.delimiter}
        return _import_battles(file, options.folder, options.as_json, name=options.name or file.stem, **reading)
    if options.data is None:
        unknown = _describe_unknown(file) if _is_plain(context) else ""
        what = "To import it as predictions, give the examples with --dataset: a file, or a stored dataset. "
        suggestion = _suggest_rating(file, options.folder) if has_battles(str(file)) else _suggest_score(file)
        raise UsageError(f"{unknown}{what}{suggestion}")
    if options.replications is not None and options.replication is None:
        raise UsageError("--replications needs --replication PLACE, the place of the number of the repeat")
    task = RecordedTask(
        path=str(file),
        response=options.response,
        by=options.by,
        key=options.key,
        replication=options.replication,
        fold_key=options.fold,
        error=options.error,
        items=options.items,
        format=options.form,
        delimiter=options.delimiter,
    )
    store = open_store(options.folder)
    with show_notes():
        dataset = _find_dataset(
            store, options.data, {role: value for role, value in vars(options.roles).items() if value}
        )
        runner = Runner(store, progress=display(options.as_json, quiet=False))
        run = runner.run(
            task, dataset, name=options.name or file.stem, replications=options.replications or task.outputs.repeats
        )
    return _print_run(run, options.folder, options.as_json)


_FOR_BOTH: Final = ("files", "battles", "form", "delimiter", "name", "folder", "as_json")
_FOR_RESULTS: Final = ("files", "tool", "directions", "name", "folder", "as_json")


def _is_plain(ctx: click.Context) -> bool:
    """Whether no option was given that describes predictions or battles."""
    named = (str(parameter.name) for parameter in ctx.command.params)
    return all(
        name in _FOR_RESULTS or ctx.get_parameter_source(name) is not ParameterSource.COMMANDLINE for name in named
    )


def _find_importers(files: Sequence[Path], tool: str | None) -> list[Importer]:
    """The importers of all files and folders; empty for a single one without a format that is recognised.

    Raises:
        DataError: a file cannot be read, or one of several is of an unknown format.
    """
    try:
        return [importer for file in files for importer in find_importers(file, tool)]
    except UnknownFormat:
        if len(files) > 1:
            raise
        return []


def _describe_unknown(file: Path) -> str:
    known = ", ".join(registry.names("importers"))
    return f"{safe(str(file))} is of no format of another tool that is recognised ({known}); name it with --from. "


def _check_options(ctx: click.Context, *, battles: bool) -> None:
    """Raises a UsageError for options of predictions among those of battles, or the reverse."""
    for parameter in ctx.command.params:
        is_given = ctx.get_parameter_source(str(parameter.name)) is ParameterSource.COMMANDLINE
        if is_given and parameter.name not in _FOR_BOTH and (parameter.name in BATTLE_OPTIONS) != battles:
            hint = "is not for --battles" if battles else "is for --battles"
            raise UsageError(f"{parameter.opts[0]} {hint}; leave it out" + ("" if battles else ", or add --battles"))


def _import_battles(file: Path, folder: Place, as_json: bool, **reading: Any) -> None:
    with show_notes(), spelled_for("command"):
        matches = read_battles(file, open_store(folder), **reading)
    if as_json:
        facts = {"id": matches.id, "name": matches.name, "systems": matches.systems, "counts": matches.counts}
        return print_json({"matches": facts})
    counts = ", ".join(f"{n:,} {status}" for status, n in sorted(matches.counts.items()))
    name = matches.name or matches.id[:SHORT_ID]
    click.echo(f"matches {matches.id[:SHORT_ID]} ({safe(name)}) of {plural(len(matches.systems), 'system')}: {counts}")
    for system in matches.systems[:_REASONS]:
        click.echo(f"  {safe(system)}")
    if len(matches.systems) > _REASONS:
        click.echo(f"  … and {len(matches.systems) - _REASONS:,} more")
    click.echo(f"\nrate them:   {safe(suggest_command('rate', name, folder))}")
    click.echo(f"as a table:  {safe(suggest_command('export', name, folder))}")
    return None


def _suggest_rating(file: Path, folder: Place) -> str:
    """The commands that read the battles of a file."""
    rate, store = (suggest_command(command, str(file), folder) for command in ("rate", "import --battles"))
    return f"To rate the systems of its battles run\n  {safe(rate)}\nand to import the battles\n  {safe(store)}"


def _suggest_score(file: Path) -> str:
    """The command that scores a file without an import."""
    words = ["evaluand", "score", str(file)]
    names: list[str] = []
    with suppress(EvaluandError):
        table = read_table(file).table
        guesses, names = guess_columns(table), table.column_names
        truth, predictions = guesses.truth[:1], guesses.predictions
        if truth and predictions:
            words += ["--truth", *truth, *(f"--prediction={each}" for each in predictions)]
    columns = f" (its columns: {', '.join(names)})" if names and len(words) == _BARE else ""
    options = "" if len(words) > _BARE else " --truth COLUMN --prediction COLUMN"
    return f"To score the columns of {safe(str(file))}{safe(columns)} run\n  {safe(join(words))}{options}"


_BARE: Final = 3  # words of a command without options


def _find_dataset(store: FolderStore, data: str, roles: Mapping[str, Any]) -> Dataset:
    """The dataset in a file, or the stored dataset with this name or id, or that of a run."""
    if names_files(data):
        several: Any = {role: list(value) if isinstance(value, tuple) else value for role, value in roles.items()}
        dataset = Dataset.from_file(data, name=_name_of_files(data), **several)
        if not len(dataset):
            raise DataError(f"{data}: the file has no examples")
        return dataset
    if roles:
        options = ", ".join(f"--{role}" for role in roles)
        raise UsageError(
            f"{options}: only for a file of examples; {data!r} is not a file, and a stored dataset has its roles"
        )
    return Dataset.stored(store, _find_stored(store, data))


def _name_of_files(data: str) -> str:
    """The name of a file, or of the folder of a pattern."""
    path = Path(data)
    return path.parent.name or "data" if set(path.stem) & set("*?[") else path.stem


def _find_stored(store: FolderStore, data: str) -> str:
    entries = store.catalog.entries(DATASETS)
    named = [entry["id"] for entry in entries if entry["name"] == data]
    if len(named) > 1:
        raise NotFound(f"{data!r} refers to several datasets: {', '.join(named)}; give the first digits of one")
    if named:
        return named[0]
    for kind in (DATASETS, RUNS):
        with suppress(NotFound):
            found = resolve(store, data, kind)[1]
            return found if kind == DATASETS else str(store.manifest(RUNS, found)["spec"]["dataset"])
    known = [entry["name"] for entry in entries if entry["name"]]
    raise NotFound(f"{data!r} is neither a file nor a stored dataset or run{nearest(data, known)}; see `evaluand list`")


def _print_run(run: Run, folder: Place, as_json: bool) -> None:
    """Prints the run, what is missing and how to continue.

    Raises:
        Exit: no example has an output.
    """
    dataset = run.dataset
    missing = missing_facts(run, None)
    if as_json:
        facts: Facts = {"id": run.id, "name": run.name, "digest": run.digest, "counts": run.counts}
        examples = {"id": dataset.id, "name": dataset.name, "examples": len(dataset)}
        print_json({"run": facts, "dataset": examples, "missing": missing})
    else:
        counts = ", ".join(f"{n:,} {status}" for status, n in sorted(run.counts.items()))
        click.echo(f"run {run.id[:SHORT_ID]} ({safe(run.name)}) over {len(dataset):,} examples: {counts}")
        for reason in missing[:_REASONS]:
            click.echo(f"  {reason['count']:,} {reason['status']}: {safe(reason['reason'])}")
        click.echo(f"\nshow it:   {safe(suggest_command('show', run.name or run.id, folder))}")
        grade = suggest_command("grade", [run.name or run.id, "--scorer", "prediction"], folder)
        click.echo(f"grade it:  {safe(grade)}")
        compare = suggest_command("compare --pairwise", [run.name or run.id, "OTHER"], folder)
        click.echo(f"judge it:  {safe(compare)} --judge judge.py:FUNCTION")
    if not run.counts.get(COMPLETED):
        click.echo(f"error: no example has an output: {run.counts[FAILED]:,} failed", err=True)
        raise Exit(1)
