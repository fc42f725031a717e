"""`evaluand report`: writes one self-contained HTML file."""

import os
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import click
from rich.console import Group, RenderableType
from rich.text import Text

from evaluand.cli.command import argument, make_command, option
from evaluand.cli.file_gates import is_experiment_file, read_results
from evaluand.cli.options import json_option, refuse_files, store_option
from evaluand.cli.output import print_json, print_markdown
from evaluand.cli.progress import show_notes
from evaluand.core.errors import SpecError, plural
from evaluand.core.files.paths import replaced
from evaluand.report.contents import read_contents
from evaluand.report.facts.base import Facts
from evaluand.report.html.matches import MatchRows
from evaluand.report.html.page import page_title
from evaluand.report.html.report import write_report
from evaluand.report.terminal.comparison import gates_table
from evaluand.report.terminal.report import results_table
from evaluand.report.text import safe
from evaluand.store.addresses import Place
from evaluand.store.folder_store import FolderStore
from evaluand.store.opening import open_store

_MOST = 100_000
_LONGEST = 80
_HEAD = 4096

_EXAMPLES = """\b
Examples:
  evaluand report arithmetic
  evaluand report arithmetic/mine -o mine.html --examples 1000
  evaluand report arithmetic/mine arithmetic/theirs -o both.html
  evaluand report judged
  evaluand report experiment.yaml
  evaluand report 3f2a9c -o - > report.html
  evaluand report experiment.yaml --markdown >> "$GITHUB_STEP_SUMMARY"
"""


@dataclass(frozen=True, kw_only=True)
class _Options:
    artifacts: tuple[str, ...] = argument(metavar="NAME|ID|FILE...", nargs=-1, required=True, callback=refuse_files)
    output: str | None = option(
        "The file to write; - is stdout.  [default: NAME.html]", "-o", "--output", type=click.Path(), metavar="FILE"
    )
    examples: int | None = option(
        "Rows of each task to include, the worst first, and pairs of each set of matches.",
        type=str,
        default=str(_MOST),
        show_default=True,
        callback=lambda context, parameter, value: _parse_number(value),
        metavar="N|all",
    )
    markdown: bool = option("Print the values as Markdown, for a step summary or a pull request.")
    folder: Place = store_option
    as_json: bool = json_option


@make_command("report", epilog=_EXAMPLES)
def command(options: _Options) -> None:
    """Write a report as one HTML file that needs no network.

    NAME is an experiment (all its tasks), a run, an evaluation, an aggregation, matches or ratings, or an id or its
    first digits (at least four); several are shown next to each other. With the FILE of an experiment the report begins
    with its gates, checked by what is stored. Matches of the runs and their ratings are part
    of the report. An existing file is replaced. The report reads what is stored; `evaluand compare` makes a comparison
    that it lacks, and `evaluand rate` ratings.
    """
    artifacts = options.artifacts
    if options.markdown and (options.as_json or options.output):
        raise click.UsageError(f"--markdown prints the report; leave {'--json' if options.as_json else '--output'} out")
    if options.as_json and options.output == "-":
        raise click.UsageError("--json needs a file for the report; give -o FILE")
    store, stored = open_store(options.folder), None
    if files := [name for name in artifacts if is_experiment_file(name)]:
        if len(artifacts) > 1:
            raise click.UsageError(f"{files[0]} is a file; a report of a file shows it alone")
        with show_notes():
            stored = read_results(store, Path(files[0]))
        artifacts = tuple(stored.artifacts)
        if stored.gates:
            click.echo(f"note: {safe(stored.text)}", err=True)
    title, gates = (None, []) if stored is None else (stored.name, stored.gates)
    checked_by = None if stored is None else stored.text
    if options.markdown:
        return _print_markdown(store, artifacts, title, gates)
    if options.output == "-":
        write(store, artifacts, "-", options.examples, title, gates=gates, checked_by=checked_by)
        return
    path, shown, total, matches = write(
        store, artifacts, options.output, options.examples, title, gates=gates, checked_by=checked_by
    )
    size = os.path.getsize(path)
    if options.as_json:
        facts = {"file": os.path.abspath(path), "bytes": size, "examples": shown, "of": total}
        if stored is not None and gates:
            facts |= {"gates": gates, "results": {"made": stored.made, "file_changed": stored.is_changed}}
        return print_json(facts | ({} if matches is None else {"pairs": matches.n, "of_pairs": matches.total}))
    counts = [f"{shown:,} of {total:,} examples"] if total or matches is None else []
    counts += [] if matches is None else [f"{matches.n:,} of {plural(matches.total, 'pair')} of responses"]
    click.echo(f"{safe(path)}: {', '.join(counts)}, {size / 1e6:.1f} MB")


def _print_markdown(store: FolderStore, names: Sequence[str], title: str | None, gates: Sequence[Facts]) -> None:
    """Prints gates, which task is best, and values."""
    with show_notes():
        facts = read_contents(store, [*dict.fromkeys(names)], title, None, folder=os.getcwd()).facts
    parts: list[RenderableType] = [Text(safe(facts["title"]), "bold")]
    parts += [gates_table(gates)] if gates else []
    parts += [Text(safe(sentence)) for sentence in (*facts["caveats"], *facts["headlines"])]
    print_markdown(Group(*parts, results_table(facts, quiet=True)))


def write(
    store: FolderStore,
    artifacts: str | Sequence[str],
    output: str | None = None,
    examples: int | None = _MOST,
    title: str | None = None,
    commands: Mapping[str, str] | None = None,
    gates: Sequence[Facts] = (),
    checked_by: str | None = None,
) -> tuple[str, int, int, MatchRows | None]:
    """Writes a report; returns the file, the number of examples in it, the number of all examples, and its matches.

    Args:
        commands: action → the command line for it, instead of those on the store.
        gates: results of gates, as `gate_facts` returns them.
        checked_by: by which results they were checked, in words.
    """
    names = [artifacts] if isinstance(artifacts, str) else [*dict.fromkeys(artifacts)]
    with show_notes():
        contents = read_contents(store, names, title, commands, folder=os.getcwd())
    facts = contents.facts | {"gates": list(gates), "gates_checked_by": checked_by}
    title, trades = facts["title"], contents.tradeoffs
    rows, matches = contents.examples(examples), contents.match_rows(examples)
    total = sum(each.total for each in rows)
    path = default_file(title) if output is None else output
    if path == "-":
        return path, write_report(facts, rows, sys.stdout.buffer, trades, matches), total, matches
    if os.path.isdir(path):
        raise SpecError(f"{path}: is a folder; name a file with -o")
    if not os.path.isdir(above := os.path.dirname(path) or "."):
        raise SpecError(f"{path}: there is no folder {above}; make it, or name another file with -o")
    if output is None and os.path.lexists(path) and (os.path.islink(path) or not os.path.isfile(path)):
        raise SpecError(f"{path}: is a link, pipe or device; name another file with `evaluand report NAME -o FILE`")
    with replaced(Path(path)) as file:
        shown = write_report(facts, rows, file, trades, matches)
    return path, shown, total, matches


def _parse_number(text: str) -> int | None:
    if text != "all" and not text.isdecimal():
        raise click.BadParameter(f"{text!r} must be a number of examples or all")
    return None if text == "all" else int(text)


def default_file(title: str) -> str:
    """The default file of a report."""
    return f"{_file_name(title)}.html"


def check_replaceable(title: str) -> None:
    """Refuses to replace a file that is not a report with this title.

    Raises:
        SpecError: the default file exists and is another.
    """
    path = Path(default_file(title))
    if path.is_file():
        with path.open("rb") as file:
            begin = file.read(_HEAD).decode(errors="replace")
        if f"<title>{page_title(title)}</title>" not in begin:
            raise SpecError(f"{path} exists and is not a report of {title!r}; move it, or give --force")


def _file_name(title: str) -> str:
    return re.sub(r"[^\w.-]+", "_", title).strip("._-")[:_LONGEST] or "report"
