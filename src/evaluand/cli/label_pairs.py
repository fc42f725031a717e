"""`evaluand label pairs`: have people judge which of two responses is better."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import orjson
import pyarrow as pa
from click import UsageError

from evaluand.cli.command import argument, make_command, option
from evaluand.cli.options import FILE, TARGET, complete_artifact, json_option, store_option, suggest_command
from evaluand.cli.output import open_output, print_json
from evaluand.cli.progress import show_notes
from evaluand.core.errors import SpecError, plural
from evaluand.core.json_like import escape_surrogates
from evaluand.judges.people.label_files import append_row, name_file
from evaluand.matches.labelled_sets import Agreement, agreement
from evaluand.matches.matches import Matches
from evaluand.matches.people import (
    COLUMNS,
    Judged,
    PairToJudge,
    People,
    match_by_people,
    name_matches,
    pairs_to_judge,
    read_judged,
    read_to_append,
)
from evaluand.report.export import write_csv
from evaluand.report.text import SHORT_ID, safe
from evaluand.run.runner import Run
from evaluand.store.addresses import Place
from evaluand.store.opening import open_store

_EXAMPLES = """\b
Examples:
  evaluand label pairs arithmetic/a arithmetic/b --by ann
  evaluand label pairs arithmetic/a arithmetic/b --export pairs.csv
  evaluand label pairs arithmetic/a arithmetic/b --import pairs-ann.jsonl --import bob.csv
"""


@dataclass(frozen=True, kw_only=True)
class _Options:
    runs: tuple[str, ...] = argument(metavar="RUN RUN...", nargs=-1, required=True, shell_complete=complete_artifact)
    by: str | None = option("Who judges, here in the terminal.", metavar="NAME")
    output: Path | None = option(
        "Where answers are appended.  [default: pairs-NAME.jsonl]", "-o", "--output", type=TARGET, metavar="FILE"
    )
    export: Path | None = option("Write all pairs to FILE to be filled in.", type=TARGET, metavar="FILE")
    imported: tuple[Path, ...] = option("Store the answers in FILE; repeatable.", "--import", type=FILE, metavar="FILE")
    seed: int = option("The seed of the random orders.", default=0, show_default=True, metavar="N")
    name: str | None = option("A name for the matches.  [default: PREFIX/NAME, or PREFIX/people]", metavar="NAME")
    others: tuple[str, ...] = option(
        "Show the agreement with these; repeatable.", "--with", metavar="MATCHES", type=str
    )
    folder: Place = store_option
    as_json: bool = json_option


@make_command("pairs", epilog=_EXAMPLES, short_help="Judge which of two responses is better.")
def command(options: _Options) -> None:
    """Judge which of two responses is better, without seeing whose they are.

    Each pair of different responses to an example is shown once, in random order. Each answer is appended to FILE at
    once; the same command continues later. At the end the answers are stored as matches, with the person as judge.

    People who do not work in this terminal fill in a file of --export: winner is first, second, tie or skip. --import
    stores the answers of all files, and shows how often people agree.
    """
    if sum(map(bool, (options.by, options.export, options.imported))) != 1:
        raise UsageError("give one of --by NAME (judge here), --export FILE and --import FILE")
    if options.output is not None and options.by is None:
        raise UsageError("-o FILE is where the answers of --by NAME are appended; leave it out")
    store = open_store(options.folder)
    opened = [Run.open(store, each) for each in options.runs]
    if options.export is not None:
        _export(opened, options.export, options.seed)
        return None
    files: Sequence[Path] = options.imported
    if options.by is not None:
        files = [options.output or name_file("pairs", options.by)]
        _judge(pairs_to_judge(opened, by=options.by, seed=options.seed), options.by, files[0])
    with show_notes():
        answers = read_judged([file for file in files if file.exists()])
        if not answers and options.by is not None:
            return None
        if not answers:
            raise SpecError(f"no row of {', '.join(map(str, files))} has a winner; fill in the files first")
        people = match_by_people(opened, answers, name=options.name or name_matches(opened, options.by))
    return _print_people(
        people, [Matches.open(store, each) for each in options.others], options.as_json, options.folder
    )


def _export(runs: Sequence[Run], target: Path, seed: int) -> None:
    if target.exists() and (n := len(read_judged([target]))):
        raise SpecError(f"{target} has {plural(n, 'filled-in pair')}; write to another file")
    rows = [pair.row for pair in pairs_to_judge(runs, seed=seed)]
    with open_output(target) as file:
        if target.suffix.lower() == ".csv":
            schema = pa.schema([(name, pa.string()) for name in COLUMNS])
            texts = [{name: None if value is None else _as_text(value) for name, value in row.items()} for row in rows]
            write_csv(pa.Table.from_pylist(texts, schema).to_reader(), file)
        else:
            file.writelines(orjson.dumps(row) + b"\n" for row in rows)
    click.echo(f"{plural(len(rows), 'pair')} to judge in {safe(target)}", err=True)


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else orjson.dumps(value).decode()


# In the terminal


_QUESTION = "Which is better? 1 = first, 2 = second, t = tie, s = skip, b = back, q = quit; then a reason, if you like"
_CHOICES = {"1": "first", "2": "second", "t": "tie", "s": "skip"}


def _judge(pairs: Sequence[PairToJudge], by: str, path: Path) -> None:
    """Shows the pairs that a person has not judged yet, one by one, and appends each answer to a file at once."""
    done = {each.key for each in read_to_append(path) if each.by == by}
    rest = [pair for pair in pairs if pair.key not in done]
    if not pairs:
        raise SpecError("there is nothing to judge: the runs gave equal responses to every example, or none")
    n_done, at = len(pairs) - len(rest), 0
    path.open("ab").close()  # whether it can be written is known before the first answer
    while at < len(rest):
        _show(rest[at], n_done + at + 1, len(pairs))
        choice, reason = _ask()
        if choice == "q":
            break
        if choice == "b":
            at = max(at - 1, 0)
            continue
        append_row(path, rest[at].filled_in(Judged(rest[at].key, _CHOICES[choice], by, reason)))
        at += 1
    n_done += at
    more = "" if n_done == len(pairs) else "; the same command continues"
    click.echo(f"{n_done:,} of {plural(len(pairs), 'pair')} judged in {safe(path)}{more}", err=True)


def _show(pair: PairToJudge, number: int, n_pairs: int) -> None:
    click.echo(click.style(f"\nPair {number:,} of {n_pairs:,}", bold=True))
    for title, value in (("Input", pair.input), ("First", pair.first), ("Second", pair.second)):
        click.echo(click.style(f"\n── {title} ──", fg="cyan"))
        for line in _as_text(value).split("\n"):
            click.echo(safe(line))


def _ask() -> tuple[str, str | None]:
    """The choice, and the reason that follows it; the end of the input quits."""
    click.echo(f"\n{_QUESTION}")
    while True:
        try:
            line = click.prompt("", prompt_suffix="> ", default="", show_default=False)
        except click.Abort:
            click.echo()
            return "q", None
        except UnicodeDecodeError:
            click.echo("this line is not UTF-8: type it again")
            continue
        word, _, reason = line.strip().partition(" ")
        if word in (*_CHOICES, "b", "q"):
            return word, escape_surrogates(reason.strip()) or None
        click.echo(f"{safe(word)!r} is no answer: type 1, 2, t, s, b or q")


# What was stored


def _print_people(people: People, others: Sequence[Matches], as_json: bool, folder: Place) -> None:
    matches = people.matches
    agreements = agreement([matches, *others])
    if as_json:
        by = [{"by": person, "pairs": n} for person, n in people.by.items()]
        facts = {"matches": matches.id, "name": matches.name, "counts": matches.counts, "pairs": people.pairs}
        agreed = [each._asdict() | {"disputed": [pair._asdict() for pair in each.disputed]} for each in agreements]
        return print_json(facts | {"by": by, "agreement": agreed, "unmatched": people.unmatched})
    for person, n in people.by.items():
        name = "without a name" if person is None else safe(person)
        click.echo(f"{name}: {n:,} of {plural(people.pairs, 'pair')}")
    for each in agreements:
        both = f"{safe(each.one)} and {safe(each.other)}"
        click.echo(f"{both} {_agreement_text(each)}" if each.pairs else f"{both} have no pair in common")
    if any(each.disputed for each in agreements):
        click.echo("the pairs on which they do not agree: --json")
    more = suggest_command("rate", matches.name or matches.id[:SHORT_ID], folder)
    click.echo(f"matches {matches.id[:SHORT_ID]} ({safe(', '.join(matches.systems))}); rate them: {safe(more)}")


def _agreement_text(found: Agreement) -> str:
    text = f"agree on {found.agreed:,} of {plural(found.pairs, 'common pair')} ({found.agreed / found.pairs:.0%})"
    if found.kappa is None:
        return f"{text}; kappa is undefined, as both always say the same"
    interval = "" if found.low is None or found.high is None else f" [{found.low:.2f}, {found.high:.2f}]"
    return f"{text}, kappa {found.kappa:.2f}{interval}"
