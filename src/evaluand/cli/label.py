"""`evaluand label`: have people grade the answers of a run."""

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import click
import orjson
import pyarrow as pa
from click import UsageError

from evaluand.cli.command import argument, make_command, option
from evaluand.cli.label_pairs import command as pairs_command
from evaluand.cli.options import FILE, TARGET, complete_artifact, json_option, store_option, suggest_command
from evaluand.cli.output import open_output, print_json
from evaluand.cli.progress import show_notes
from evaluand.core.errors import DataError, SpecError
from evaluand.evaluation.evaluator import Evaluation
from evaluand.evaluation.kind import EVALUATIONS
from evaluand.evaluation.people_labels import find_all_labels, human_scorers
from evaluand.judges.cards.from_evaluation import describe_labels
from evaluand.judges.label_words import find_foreign_words
from evaluand.judges.people.human_labels import (
    COLUMNS,
    HumanLabels,
    Labelled,
    draw_labelling_rows,
    labelled,
    n_filled_in,
    read_labels,
)
from evaluand.judges.people.labelling import SCORER, find_strays, name_labels, store_labels
from evaluand.report.export import write_csv
from evaluand.report.facts.base import Names
from evaluand.report.text import SHORT_ID, safe
from evaluand.run.runner import Run
from evaluand.store.addresses import Place
from evaluand.store.opening import open_store
from evaluand.store.store import Store

_EXAMPLES = """\b
Examples:
  evaluand label export arithmetic/mine -o ann.jsonl
  evaluand label export arithmetic/mine -o fifty.csv --draw 50
  evaluand label import arithmetic/mine ann.jsonl bob.jsonl
  evaluand label import arithmetic/mine stars.csv --range 1 5
  evaluand label export arithmetic/mine -o rest.jsonl --without ann.jsonl
  evaluand label status arithmetic/mine/human
  evaluand label --pairs arithmetic/a arithmetic/b --by ann
"""

_LISTED, _SHORT_KEY, _AT_ONCE = 5, 16, 1000


class _LabelGroup(click.Group):
    """Takes `--pairs` as the name of the subcommand `pairs` too."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        return super().parse_args(ctx, ["pairs", *args[1:]] if args[:1] == ["--pairs"] else args)


@click.group("label", cls=_LabelGroup, epilog=_EXAMPLES)
def command() -> None:
    """Have people grade the answers of a run, or judge which of two answers is better.

    For grades, write a file, have it filled in, and import it as an evaluation. Pairs of answers of several runs are
    judged in the terminal, or in such a file, and become matches: `evaluand label pairs`.
    """


command.add_command(pairs_command)


@dataclass(frozen=True, kw_only=True)
class _ExportOptions:
    artifact: str = argument(metavar="RUN", shell_complete=complete_artifact)
    output: Path | None = option("CSV, or else JSON lines.", "-o", "--output", type=TARGET, metavar="FILE")
    without: tuple[Path, ...] = option(
        "Leave out answers labelled in this file; repeatable.", type=FILE, metavar="FILE"
    )
    by: str | None = option("With --without: leave out only what this person has labelled.", metavar="NAME")
    draw: int | None = option("Write the first N answers of the random order.", type=click.IntRange(1), metavar="N")
    strata: str | None = option("Let the values of this attribute take turns in the random order.", metavar="ATTRIBUTE")
    seed: int = option("Of the random order.", type=click.IntRange(0), default=0, show_default=True)
    force: bool = option("Replace a file that is filled in, or is not a file of labels.")
    folder: Place = store_option


@make_command("export", command, short_help="Write answers as lines to fill in.")
def export(options: _ExportOptions) -> None:
    """Write each answer of a run as a line to fill in: value, label, by, explanation.

    The answers come in a random order, so those labelled first, from the top on, are a random sample of all: with them
    the metric prediction_powered_mean estimates what people would say about all answers.

    Value is a number, true or false; label is a word; fill in at least one of them. Lines may be divided among people,
    and several people may label the same ones. A FILE that ends in .csv is a table for spreadsheets; its cells that
    are not text are JSON.
    """
    store = open_store(options.folder)
    run = Run.open(store, options.artifact)
    if options.output is not None and not options.force:
        _require_nothing_lost(options.output)
    with show_notes():
        rows = iter(
            draw_labelling_rows(
                run, seed=options.seed, strata=options.strata, given=read_labels(options.without), by=options.by
            )[: options.draw]
        )
    with open_output(options.output) as file:
        if options.output is not None and options.output.suffix.lower() == ".csv":
            count = write_csv(_cells(rows), file)
        else:
            count = sum(1 for row in rows if file.write(orjson.dumps(row) + b"\n"))
    if options.output is not None:
        click.echo(f"{count:,} answers to label in {safe(options.output)}", err=True)


@dataclass(frozen=True, kw_only=True)
class _ImportOptions:
    artifact: str = argument(metavar="RUN", shell_complete=complete_artifact)
    files: tuple[Path, ...] = argument(type=FILE, nargs=-1, required=True)
    name: str | None = option("A name for the evaluation.  [default: RUN/human]", metavar="NAME")
    range: tuple[float, float] | None = option(
        "Refuse values that lie outside.", type=float, nargs=2, metavar="LOW HIGH"
    )
    words: tuple[str, ...] = option(
        "An allowed label, others are refused; with the verdict of a judge that it is stored as; repeatable.",
        "--word",
        metavar="LABEL[=VERDICT]",
    )
    folder: Place = store_option
    as_json: bool = json_option


@make_command("import", command, short_help="Import filled-in files as an evaluation.")
def import_(options: _ImportOptions) -> None:
    """Import filled-in files as an evaluation; name all files, also those imported before.

    Files that end in .csv are CSV, others JSON lines. Answers without a label are abstained from until they have one.
    Labels that match no answer of the run are left out and reported; if none matches, no evaluation is created. Labels
    of which none is a verdict of the run's judges are refused, unless --word allows them.
    """
    name = options.name
    if options.range is not None and not options.range[0] < options.range[1]:
        raise UsageError(
            f"--range {options.range[0]:g} {options.range[1]:g}: give the lowest and then the highest value"
        )
    store = open_store(options.folder)
    run = Run.open(store, options.artifact)
    with show_notes():
        labels = read_labels(options.files, range=options.range, words=_parse_words(options.words))
    if not labels.labels:
        raise SpecError(
            f"no line of {', '.join(map(str, options.files))} has a value or a label; fill in the files first"
        )
    strays = find_strays(run, labels)
    _check_foreign_words(run, labels, options.words)
    name = name or name_labels(run)
    evaluation = store_labels(run, labels, name)
    found = labelled(evaluation, SCORER)
    if strays:
        keys = ", ".join(safe(key[:_SHORT_KEY]) for key in strays[:_LISTED]) + (", …" if len(strays) > _LISTED else "")
        counts = f"{len(strays):,} of {len(labels.labels):,} labels"
        click.echo(f"{counts} match no answer of run {run.id[:SHORT_ID]} and are left out; keys: {keys}", err=True)
    _print_progress(evaluation, found, options.as_json)
    all_labels = find_all_labels(store, run)
    is_known = evaluation.receipt is not None and not evaluation.receipt.called
    if len(all_labels) > 1 and not (is_known and all_labels[0].id == evaluation.id):
        click.echo(f"note: for `evaluand judge`, {safe(describe_labels(all_labels))}", err=True)
    if not options.as_json:
        more = suggest_command("show", name or evaluation.id[:SHORT_ID], options.folder)
        click.echo(f"evaluation {evaluation.id[:SHORT_ID]}; more: {more}")


def _parse_words(texts: Sequence[str]) -> dict[str, str]:
    """Allowed labels → what they are stored as: themselves, or the verdict after `=`, which is allowed too."""
    pairs = [
        (label.strip(), verdict.strip() if equals else label.strip())
        for label, equals, verdict in (text.partition("=") for text in texts)
    ]
    if not all(label and verdict for label, verdict in pairs):
        raise UsageError("--word must be a label, or a label and the verdict that it means, such as good=correct")
    meant: dict[str, str] = {}
    for label, verdict in pairs:
        if meant.setdefault(label, verdict) != verdict:
            raise UsageError(f"--word {label} means {meant[label]} and {verdict}; name one verdict")
    return {verdict: verdict for verdict in meant.values()} | meant


def _check_foreign_words(run: Run, labels: HumanLabels, words: Sequence[str]) -> None:
    """Notes labels that no judge of a run writes.

    Raises:
        SpecError: no label can ever agree with a verdict, and `--word` does not allow them as they are.
    """
    foreign = find_foreign_words(run, labels)
    if foreign is None:
        return
    if foreign.can_match or any("=" not in word for word in words):
        click.echo(f"note: {safe(foreign.text)}", err=True)
        return
    as_they_are = " ".join(f"--word {shlex.quote(word)}" for word in foreign.words[:_LISTED])
    raise SpecError(f"{foreign.text}; to import them as they are, for other uses: `{as_they_are}`")


@make_command("status", command, short_help="Show how many answers are labelled.")
def status(
    artifact: str = argument(metavar="EVALUATION", shell_complete=complete_artifact),
    folder: Place = store_option,
    as_json: bool = json_option,
) -> None:
    """Show how many answers are labelled, by whom, and on how many people disagree."""
    store = open_store(folder)
    evaluation = Evaluation.open(store, artifact)
    scorers = human_scorers(evaluation)
    if not scorers:
        raise SpecError(f"{artifact!r} holds no labels by people; {_label_hint(store, evaluation)}")
    _print_progress(evaluation, labelled(evaluation, scorers[0]), as_json)


def _print_progress(evaluation: Evaluation, found: Labelled, as_json: bool) -> None:
    if as_json:
        people = [{"by": by, "answers": n} for by, n in found.by.items()]
        return print_json({"evaluation": evaluation.id, **found._asdict(), "by": people})
    share = f" ({found.labelled / found.answers:.0%})" if found.answers else ""
    click.echo(f"{found.labelled:,} of {found.answers:,} answers labelled{share}")
    for by, n in found.by.items():
        click.echo(f"  {safe(by) if by is not None else 'without a name'}: {n:,}")
    if found.disputed:
        click.echo(f"{found.disputed:,} labelled differently")


def _require_nothing_lost(output: Path) -> None:
    """Raises a SpecError if the file exists and somebody has filled it in."""
    if not output.exists():
        return
    try:
        n = n_filled_in(output)
    except DataError:
        raise SpecError(
            f"{output} exists and is not a file of labels; write to another file, or replace it with --force"
        ) from None
    if n:
        problem = f"{output} has {n:,} filled-in {'answer' if n == 1 else 'answers'}"
        hint = f"-o OTHER --without {output} writes the others"
        raise SpecError(f"{problem}; {hint}, --force replaces the file and loses its labels")


def _cells(rows: Iterator[dict[str, Any]]) -> pa.RecordBatchReader:
    """Rows as a table of texts; other values are JSON."""
    schema = pa.schema([(name, pa.string()) for name in COLUMNS])
    texts = ({name: _text(value) for name, value in row.items()} for row in rows)
    return pa.RecordBatchReader.from_batches(
        schema, (pa.RecordBatch.from_pylist(part, schema) for part in iter(lambda: [*islice(texts, _AT_ONCE)], []))
    )


def _text(value: Any) -> str | None:
    return value if value is None or isinstance(value, str) else orjson.dumps(value).decode()


def _label_hint(store: Store, evaluation: Evaluation) -> str:
    """Names the evaluations of the same run that hold labels, or the command that imports some."""
    names, run = Names(store.refs()), evaluation.run
    found = [] if run is None else find_all_labels(store, run)
    labelled_names = [(names.find(EVALUATIONS, other.id, other.name) or [other.id[:SHORT_ID]])[0] for other in found]
    if not labelled_names:
        return "import them with `evaluand label import`"
    return f"those of its run are in {', '.join(map(safe, labelled_names))}"
