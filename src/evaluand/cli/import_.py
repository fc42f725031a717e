"""`evaluand import`: a file of predictions made elsewhere, as a run."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import click
from click import UsageError
from click.exceptions import Exit

from evaluand.cli.options import LINE, complete_artifact, json_option, store_option, suggest_command
from evaluand.cli.output import print_json
from evaluand.cli.run import display, notes
from evaluand.core.errors import DataError, NotFound
from evaluand.core.registry import nearest
from evaluand.data.dataset import Dataset
from evaluand.data.sources import FORMATS
from evaluand.report.facts.base import Facts
from evaluand.report.facts.run import missing_facts
from evaluand.report.text import SHORT_ID, safe
from evaluand.run.runner import Run, Runner
from evaluand.run.tasks.recorded import RecordedTask
from evaluand.store.directory import DirectoryStore
from evaluand.store.store import resolve
from evaluand.store.tables import COMPLETED, FAILED

_EXAMPLES = """\b
Examples:
  evaluand import mine.csv --dataset questions.jsonl --input question --expected answer --response answer
  evaluand import mine.jsonl --dataset arithmetic --response prediction=label --response confidence=score
  evaluand import mine.csv --dataset arithmetic --response text --by id --key question_id --name mine
  evaluand import five.csv --dataset arithmetic --response text --by id --key question_id --replication try
"""

_REASONS = 3


def _one_or_several(ctx: click.Context, param: click.Parameter, given: tuple[str, ...]) -> Any:
    return given[0] if len(given) == 1 else given


def _parts(ctx: click.Context, param: click.Parameter, given: tuple[str, ...]) -> str | dict[str, str]:
    """One place, or name → place."""
    named = [text.partition("=") for text in given]
    if len(given) == 1 and not named[0][1]:
        return given[0]
    if alone := [text for text, equals, _ in named if not equals]:
        raise click.BadParameter(f"{alone[0]!r} names no part: several are given as name=place")
    if twice := [name for name in {n for n, _, _ in named} if sum(n == name for n, _, _ in named) > 1]:
        raise click.BadParameter(f"{twice[0]!r} is given twice")
    return {name: place for name, _, place in named}


@click.command("import", epilog=_EXAMPLES)
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--dataset",
    "data",
    required=True,
    metavar="DATA",
    shell_complete=complete_artifact,
    help="A file of examples, or the name or id of a stored dataset, or of a run over it.",
)
@click.option(
    "--response",
    multiple=True,
    type=LINE,
    default=["response"],
    show_default=True,
    metavar="[NAME=]PLACE",
    callback=_parts,
    help="The column (or place, such as choices[0].text) of the output; several times for several parts of it.",
)
@click.option("--by", type=click.Choice(["index", "id"]), default="index", show_default=True, help="What joins rows.")
@click.option("--key", metavar="PLACE", help="Where in a row that stands; _index_ or id if not given.")
@click.option("--replication", metavar="PLACE", help="Where the number of the repeat stands, from 0.")
@click.option(
    "--replications",
    type=click.IntRange(min=1),
    metavar="N",
    help="How many repeats there are; as FILE has, if not given.",
)
@click.option("--fold", metavar="PLACE", help="Where the number of the fold stands.")
@click.option("--items", is_flag=True, help="An output is a list of items that together are the response.")
@click.option("--format", "form", type=click.Choice(FORMATS), help="Of FILE, if its suffix does not tell.")
@click.option("--delimiter", metavar="CHAR", help="What parts the cells of a CSV file, if not a comma.")
@click.option(
    "--input",
    multiple=True,
    type=LINE,
    metavar="COLUMN",
    callback=_one_or_several,
    help="Of a file of examples: what the system saw.",
)
@click.option(
    "--expected",
    multiple=True,
    type=LINE,
    metavar="[TARGET=]COLUMN",
    callback=_parts,
    help="… and what was the right answer.",
)
@click.option("--attributes", multiple=True, type=LINE, metavar="COLUMN", help="… and what to group by.")
@click.option("--id", metavar="COLUMN", help="… and what names the examples.")
@click.option("--weight", metavar="COLUMN", help="… and the weight of each example.")
@click.option("--cluster", metavar="COLUMN", help="… and which examples belong together.")
@click.option("--metadata", multiple=True, type=LINE, metavar="COLUMN", help="… and what is kept beside.")
@click.option("--name", metavar="NAME", help="What the run is called; the name of the file if not given.")
@store_option
@json_option
def command(
    file: Path,
    data: str,
    response: str | dict[str, str],
    by: str,
    key: str | None,
    replication: str | None,
    replications: int | None,
    fold: str | None,
    items: bool,
    form: str | None,
    delimiter: str | None,
    name: str | None,
    folder: Path,
    as_json: bool,
    **roles: str | tuple[str, ...] | dict[str, str] | None,
) -> None:
    """Make a run of the predictions in FILE, without an experiment file.

    FILE and DATA are CSV, JSON lines, JSON, Parquet or Arrow. Rows are joined to the examples by their number, or by
    their id. An example without a row fails, and rows that no example has are told. The run is the same as that of a
    recorded task of an experiment.
    """
    if replications is not None and replication is None:
        raise UsageError("--replications needs --replication PLACE: where the number of a repeat stands")
    task = RecordedTask(
        path=str(file),
        response=response,
        by=by,
        key=key,
        replication=replication,
        fold_key=fold,
        items=items,
        format=form,
        delimiter=delimiter,
    )
    store = DirectoryStore(folder)
    with notes():
        dataset = _dataset(store, data, {role: value for role, value in roles.items() if value})
        runner = Runner(store, progress=display(as_json, quiet=False))
        run = runner.run(task, dataset, name=name or file.stem, replications=replications or task.repeats)
    _tell(run, folder, as_json)


def _dataset(store: DirectoryStore, data: str, roles: Mapping[str, Any]) -> Dataset:
    """The examples: of a file, or stored under an id or name, their own or that of a run over them."""
    if Path(data).is_file():
        several: Any = {role: list(value) if isinstance(value, tuple) else value for role, value in roles.items()}
        made = Dataset.from_file(data, name=Path(data).stem, **several)
        if not len(made):
            raise DataError(f"{data}: the file holds no examples")
        return made
    if roles:
        given = ", ".join(f"--{role}" for role in roles)
        raise UsageError(f"{given}: {data!r} is no file here, and what is stored has its roles already")
    return Dataset.stored(store, _stored(store, data))


def _stored(store: DirectoryStore, data: str) -> str:
    entries = store.catalog.entries("datasets")
    named = [entry["id"] for entry in entries if entry["name"] == data]
    if len(named) > 1:
        raise NotFound(f"{data!r} stands for several datasets: {', '.join(named)}; give the first digits of one")
    if named:
        return str(named[0])
    for kind in ("datasets", "runs"):
        with suppress(NotFound):
            found = resolve(store, data, kind)[1]
            return found if kind == "datasets" else str(store.manifest("runs", found)["spec"]["dataset"])
    known = [str(entry["name"]) for entry in entries if entry["name"]]
    raise NotFound(f"{data!r} is neither a file nor a stored dataset or run{nearest(data, known)}; see `evaluand list`")


def _tell(run: Run, folder: Path, as_json: bool) -> None:
    """Says what was made, what is missing and how to go on.

    Raises:
        Exit: no example has an output.
    """
    dataset = run.dataset
    missing = missing_facts(run, None)
    if as_json:
        about: Facts = {"id": run.id, "name": run.name, "digest": run.digest, "counts": run.counts}
        examples = {"id": dataset.id, "name": dataset.name, "examples": len(dataset)}
        print_json({"run": about, "dataset": examples, "missing": missing})
    else:
        counts = ", ".join(f"{n:,} {status}" for status, n in sorted(run.counts.items()))
        click.echo(f"run {run.id[:SHORT_ID]} ({safe(run.name)}) over {len(dataset):,} examples: {counts}")
        for reason in missing[:_REASONS]:
            click.echo(f"  {reason['count']:,} {reason['status']}: {safe(reason['reason'])}")
        click.echo(f"\nlook at it:  {safe(suggest_command('show', run.name or run.id, folder))}")
        click.echo("grade it:    name the file as a recorded task of an experiment; evaluand init --kind recorded")
    if not run.counts.get(COMPLETED):
        click.echo(f"error: no example has an output: {run.counts[FAILED]:,} failed", err=True)
        raise Exit(1)
