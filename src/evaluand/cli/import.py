"""`evaluand import`: a file of predictions made elsewhere, as a run."""

from __future__ import annotations

from pathlib import Path

import click
from click import UsageError

from evaluand.cli.options import complete_artifact, json_option, store_option, suggested
from evaluand.cli.output import print_json
from evaluand.cli.run import display, notes
from evaluand.dataset import Dataset
from evaluand.errors import NotFound, SpecError
from evaluand.report.text import SHORT_ID, safe
from evaluand.run import Run, Runner
from evaluand.store import check_name, resolve
from evaluand.stores.directory import DirectoryStore
from evaluand.tasks.recorded import RecordedTask

_EXAMPLES = """\b
Examples:
  evaluand import mine.csv --dataset questions.jsonl --input question --expected answer --response answer
  evaluand import mine.jsonl --dataset arithmetic --response prediction=label --response confidence=score
  evaluand import mine.csv --dataset arithmetic --response text --by id --key question_id --name mine
"""

_NO_ROLES = "the dataset is stored with its roles: leave out {options}, or give the dataset's file"


def _parsed(ctx: click.Context, param: click.Parameter, given: tuple[str, ...]) -> str | dict[str, str]:
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
    default=["response"],
    show_default=True,
    metavar="[NAME=]PLACE",
    callback=_parsed,
    help="The column (or place, such as choices[0].text) of the output; several times for several parts of it.",
)
@click.option("--by", type=click.Choice(["index", "id"]), default="index", show_default=True, help="What joins rows.")
@click.option("--key", metavar="PLACE", help="Where in a row that stands; _index_ or id if not given.")
@click.option("--replication", metavar="PLACE", help="Where the number of the repeat stands.")
@click.option("--fold", metavar="PLACE", help="Where the number of the fold stands.")
@click.option("--items", is_flag=True, help="An output is a list of items that together are the response.")
@click.option("--delimiter", metavar="CHAR", help="What parts the cells of a CSV file, if not a comma.")
@click.option("--input", multiple=True, metavar="COLUMN", help="Of a file of examples: what the system saw.")
@click.option(
    "--expected", multiple=True, metavar="[TARGET=]COLUMN", callback=_parsed, help="… and what was the right answer."
)
@click.option("--attributes", multiple=True, metavar="COLUMN", help="… and what to group by.")
@click.option("--id", metavar="COLUMN", help="… and what names the examples.")
@click.option("--weight", metavar="COLUMN", help="… and the weight of each example.")
@click.option("--cluster", metavar="COLUMN", help="… and which examples belong together.")
@click.option("--metadata", multiple=True, metavar="COLUMN", help="… and what is kept beside.")
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
    fold: str | None,
    items: bool,
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
    task = RecordedTask(
        path=str(file),
        response=response,
        by=by,
        key=key,
        replication=replication,
        fold_key=fold,
        items=items,
        delimiter=delimiter,
    )
    name = check_name(file.stem if name is None else name)
    store = DirectoryStore(folder)
    given = {role: _one_or_several(value) for role, value in roles.items() if value}
    with notes():
        dataset = _dataset(store, data, given)
        times = _replications(task, dataset) if replication else 1
        run = Runner(store, progress=display(as_json, quiet=False)).run(task, dataset, name=name, replications=times)
    _tell(run, name, folder, as_json)
