"""`evaluand list`: lists what is stored, and the names of metrics. It reads the catalog alone, so it stays fast."""

import inspect
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from itertools import islice
from typing import Final

import click
from rich.table import Table
from rich.text import Text

from evaluand.cli.command import argument, make_command, option
from evaluand.cli.options import json_option, name_store, store_option
from evaluand.cli.output import print_json, show
from evaluand.core import registry
from evaluand.core.errors import Fault, plural, pluralize, singular
from evaluand.metrics.names import AVERAGES, averaged_names, metric_names
from evaluand.report.facts.base import Facts, Names, usage_facts
from evaluand.report.terminal.listing import Listing
from evaluand.store.addresses import Place
from evaluand.store.catalog import Entries, Entry
from evaluand.store.folder_store import FolderStore
from evaluand.store.kinds import kind_names
from evaluand.store.opening import open_store
from evaluand.store.store import Ref

METRICS: Final = "metrics"
RUBRICS: Final = "rubrics"
_REGISTERED: Final = ("scorers", "tasks")
_NEWEST: Final = 50
_SHOWN: Final = frozenset(("kind", "id", "name", "status", "created", "counts"))

_EXAMPLES = """\b
Examples:
  evaluand list
  evaluand list runs
  evaluand list runs --json --all
  evaluand list metrics
"""


class _Listed(click.Choice[str]):
    """What can be listed: artifacts of the kinds that are known when it is asked, and names of what is registered."""

    @property
    def choices(self) -> tuple[str, ...]:
        return (*kind_names(), METRICS, RUBRICS, *_REGISTERED)

    @choices.setter
    def choices(self, choices: tuple[str, ...]) -> None:
        """They are not chosen here."""


@make_command("list", epilog=_EXAMPLES)
def command(
    kind: str | None = argument(required=False, type=_Listed(()), metavar="[KIND]"),
    folder: Place = store_option,
    everything: bool = option(f"List all artifacts, not only the newest {_NEWEST}.", "--all"),
    as_json: bool = json_option,
) -> None:
    """List what is stored, newest first, or the names of metrics, scorers, tasks and rubrics.

    KIND is runs, evaluations, aggregations, comparisons, matches, ratings, cards, datasets or recordings; everything by
    default. A name in parentheses now belongs to a later artifact. Open artifacts were interrupted or are in progress;
    of damaged ones the manifest cannot be read.
    With KIND metrics: every metric, with its further names; each name works in Python, YAML, commands and gates.
    With KIND scorers or tasks: the kinds that an experiment file can name. With KIND rubrics: what judges can judge by;
    with --json, with all that they are asked.
    """
    if kind == METRICS:
        return _list_metrics(as_json)
    if kind == RUBRICS:
        return _list_rubrics(as_json)
    if kind in _REGISTERED:
        return _list_kinds(kind, as_json)
    store = open_store(folder)
    refs = [ref for _, ref in store.catalog.refs()]
    entries = store.catalog.entries(kind)
    shown = [*islice(entries, None if everything else _NEWEST)]
    facts = _facts(shown, [ref for ref in refs if isinstance(ref, Ref)])
    _print_damage(store, entries, sum(isinstance(ref, Fault) for ref in refs))
    if as_json:
        print_json(facts)
    elif facts:
        show(Listing(facts))
    else:
        click.echo(name_store(f"nothing is stored in {folder} yet; start with `evaluand run FILE`"), err=True)
    if more := len(entries) - len(shown):
        click.echo(f"{more:,} older {pluralize(more, 'one is', 'ones are')} not listed; --all lists all", err=as_json)
    return None


def _list_metrics(as_json: bool) -> None:
    """Prints every metric with a name: what it is, its further names, its kind and parameters."""
    named = metric_names()
    if as_json:
        return print_json([asdict(one) for one in named])
    averages = {f"{base}_{suffix}" for base in averaged_names() for suffix in AVERAGES}
    rows = ((one.name, one.about, ", ".join(one.aliases)) for one in named if one.name not in averages)
    _show_table(("metric", "what it is", "also called"), rows)
    bases, suffixes = ", ".join(averaged_names()), ", ".join(f"_{suffix}" for suffix in AVERAGES)
    click.echo(f"\nAveraged over classes or rows: {bases}, each with {suffixes}.")
    click.echo("With a number: ndcg@10, map@10, precision@5, recall@5, hits@5, pass@3, top_5_accuracy, f2, p95.")


def _list_rubrics(as_json: bool) -> None:
    """Prints the rubrics of evaluand: what they measure, and what they read of a row."""
    from evaluand.judges.rubric import Rubric, rubric_names  # only here, as it imports much

    rubrics = [Rubric.of(name) for name in rubric_names()]
    if as_json:
        return print_json([{**rubric.spec, "digest": rubric.digest} for rubric in rubrics])
    rows = ((rubric.name, rubric.version, rubric.summary, ", ".join(rubric.variables)) for rubric in rubrics)
    return _show_table(("rubric", "version", "measures", "reads"), rows)


def _list_kinds(group: str, as_json: bool) -> None:
    """Prints the registered kinds of a group with what each is, the first line of its docstring."""
    kinds = {name: (inspect.getdoc(registry.find(group, name)) or "").split("\n")[0] for name in registry.names(group)}
    if as_json:
        return print_json([{"name": name, "about": about} for name, about in kinds.items()])
    return _show_table((singular(group), "what it is"), kinds.items())


def _show_table(headers: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Prints rows whose first cell, a name, stays in one line."""
    table = Table(box=None, padding=(0, 2, 0, 0))
    for number, header in enumerate(headers):
        table.add_column(header, no_wrap=number == 0, overflow="fold")
    for row in rows:
        table.add_row(*map(Text, row))
    show(table)


def _print_damage(store: FolderStore, entries: Entries, n_names: int) -> None:
    """Prints one line if manifests, names or folders of the store cannot be read."""
    numbers = ((entries.n_damaged, "artifact"), (n_names, "name"), (len(store.blocked()), "folder"))
    counts = [plural(n, what) for n, what in numbers if n]
    if counts:
        click.echo(name_store(f"{' and '.join(counts)} cannot be read; `evaluand verify` says why"), err=True)


def _facts(entries: list[Entry], refs: list[Ref]) -> list[Facts]:
    names = Names(refs)
    return [
        {name: value for name, value in entry.items() if name in _SHOWN}
        | usage_facts({name: value for name in ("usage", "spent") if (value := entry[name])})
        | {"names": names.find(entry["kind"], entry["id"], entry["name"])}
        for entry in entries
    ]
