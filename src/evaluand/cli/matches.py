"""What commands print about matches."""

from collections.abc import Iterator, Sequence

import click

from evaluand.cli.gates import show_gates
from evaluand.cli.output import print_json, show
from evaluand.core.errors import plural
from evaluand.predictions.tournament import Tournament
from evaluand.report.facts.base import Facts
from evaluand.report.terminal.report import matches_table
from evaluand.report.text import safe


def print_matches(facts: Facts, gates: Sequence[Facts] = (), *, as_json: bool) -> bool:
    """Prints what matches took, why some have no outcome, the ratings and the results of gates.

    Returns:
        Whether the judge failed on every comparison, or the systems were not rated.
    """
    if as_json:
        print_json({**facts, "gates": [*gates]})
    else:
        show(matches_table(facts))
        show_gates(gates)
    failures = [*match_failures(facts)]
    for failure in failures:
        click.echo(f"error: {safe(failure)}", err=True)
    return bool(failures)


def suggest_judging_again(matches: Facts, command: str) -> None:
    """Notes how many judgements failed, with the command that repeats them."""
    if n_failed := sum(matches["failures"].values()):
        failures = f"{plural(n_failed, 'judgement')} of {safe(matches['matches'])} failed"
        click.echo(f"note: {failures}; repeat with: {safe(command)}", err=True)


def note_unpinned(tournament: Tournament, *, in_yaml: bool) -> None:
    """Notes before its calls that an unpinned judge is asked about everything again."""
    for note in tournament.unpinned_notes(in_yaml=in_yaml):
        click.echo(f"note: {safe(note)}", err=True)


def match_failures(matches: Facts) -> Iterator[str]:
    """That a judge failed on every comparison that it was asked for, or that systems could not be rated."""
    if matches["judge_error"] is not None:
        yield f"the judge of {matches['matches']!r} failed on every comparison: {matches['judge_error']}"
    if matches["unrated"] is not None:
        yield f"the systems of {matches['matches']!r} were not rated: {matches['unrated']}"
