"""`evaluand label`: have people grade the answers of a run."""

from __future__ import annotations

from pathlib import Path

import click
import orjson

from evaluand.cli.options import Group, complete_artifact, json_option, store_option, suggested
from evaluand.cli.output import opened, print_json
from evaluand.errors import SpecError
from evaluand.evaluation import Evaluation, Evaluator
from evaluand.labelling import Labelled, labelled, labelling_rows, read_labels, unmatched
from evaluand.report.text import SHORT_ID, safe
from evaluand.run import Run
from evaluand.store import resolve
from evaluand.stores.directory import DirectoryStore

_EXAMPLES = """\b
Examples:
  evaluand label export arithmetic/mine -o ann.jsonl
  evaluand label import arithmetic/mine ann.jsonl bob.jsonl
  evaluand label export arithmetic/mine -o rest.jsonl --without ann.jsonl
  evaluand label status arithmetic/mine/human
"""

_SCORER = "human"
_NAMED, _SHORT_KEY = 5, 16
_FILES = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.group("label", cls=Group, epilog=_EXAMPLES)
def command() -> None:
    """Have people grade the answers of a run: write a file, have it filled in, and read it as an evaluation."""


@command.command("export")
@click.argument("artifact", metavar="RUN", shell_complete=complete_artifact)
@click.option("-o", "--output", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE", help="JSON lines.")
@click.option(
    "--without",
    type=_FILES,
    multiple=True,
    metavar="FILE",
    help="Leave out what is labelled in this file; may be given several times.",
)
@click.option("--by", metavar="NAME", help="With --without: leave out only what this person has labelled.")
@store_option
def export(artifact: str, output: Path | None, without: tuple[Path, ...], by: str | None, folder: Path) -> None:
    """Write each answer of a run as a line to fill in: value, label, by, explanation.

    Value is a number or true or false, label a word; one of the two makes a label. Lines may be parted among people,
    and several people may label the same ones.
    """
    store = DirectoryStore(folder)
    run = Run(store, resolve(store, artifact, "runs")[1])
    rows = labelling_rows(run, given=read_labels(without), by=by)
    with opened(output) as file:
        count = sum(1 for row in rows if file.write(orjson.dumps(row) + b"\n"))
    if output is not None:
        click.echo(f"{count:,} answers to label in {safe(output)}", err=True)


@command.command("import")
@click.argument("artifact", metavar="RUN", shell_complete=complete_artifact)
@click.argument("files", type=_FILES, nargs=-1, required=True)
@click.option("--name", metavar="NAME", help="A name for the evaluation; RUN/human if not given.")
@store_option
@json_option
def import_(artifact: str, files: tuple[Path, ...], name: str | None, folder: Path, as_json: bool) -> None:
    """Read files that were filled in as an evaluation; give all of them, also those that were read before.

    Answers without a label are abstained from until they have one. Labels of no answer of the run are left out and
    told; where all are, nothing is made.
    """
    store = DirectoryStore(folder)
    run = Run(store, resolve(store, artifact, "runs")[1])
    labels = read_labels(files)
    if not labels.labels:
        raise SpecError(f"no line of {', '.join(map(str, files))} has a value or a label; fill them in first")
    strays = unmatched(run, labels)
    if len(strays) == len(labels.labels):
        raise SpecError(f"none of the {len(strays):,} labels is of an answer of run {run.id[:SHORT_ID]}")
    name = name or (f"{run.name}/{_SCORER}" if run.name else None)
    evaluation = Evaluator(store).evaluate(run, {_SCORER: labels}, name=name)
    found = labelled(evaluation, _SCORER)
    if strays:
        named = ", ".join(safe(key[:_SHORT_KEY]) for key in strays[:_NAMED]) + (", …" if len(strays) > _NAMED else "")
        told = f"{len(strays):,} of {len(labels.labels):,} labels are of no answer of run {run.id[:SHORT_ID]}"
        click.echo(f"{told} and left out; their keys: {named}", err=True)
    _tell(evaluation, found, as_json)
    if not as_json:
        more = suggested("show", name or evaluation.id[:SHORT_ID], folder)
        click.echo(f"evaluation {evaluation.id[:SHORT_ID]}; more: {more}")


@command.command("status")
@click.argument("artifact", metavar="EVALUATION", shell_complete=complete_artifact)
@store_option
@json_option
def status(artifact: str, folder: Path, as_json: bool) -> None:
    """Tell how many answers are labelled, by whom, and how many people disagree on."""
    store = DirectoryStore(folder)
    evaluation = Evaluation(store, resolve(store, artifact, "evaluations")[1])
    scorer = _SCORER if _SCORER in evaluation.scorers else evaluation.scorers[0]
    _tell(evaluation, labelled(evaluation, scorer), as_json)


def _tell(evaluation: Evaluation, found: Labelled, as_json: bool) -> None:
    if as_json:
        people = [{"by": by, "answers": n} for by, n in found.by.items()]
        return print_json({"evaluation": evaluation.id, **found._asdict(), "by": people})
    share = f" ({found.labelled / found.answers:.0%})" if found.answers else ""
    click.echo(f"{found.labelled:,} of {found.answers:,} answers labelled{share}")
    for by, n in found.by.items():
        click.echo(f"  {safe(by) if by is not None else 'without a name'}: {n:,}")
    if found.disputed:
        click.echo(f"{found.disputed:,} labelled differently")
