"""What commands print about matches."""

from collections.abc import Iterator, Sequence

import click

from evaluand.cli.output import print_json, show
from evaluand.report.facts.base import Facts
from evaluand.report.terminal.comparison import gates_table
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
        if gates:
            click.echo()
            show(gates_table(gates))
    failures = [*match_failures(facts)]
    for failure in failures:
        click.echo(f"error: {safe(failure)}", err=True)
    return bool(failures)


def match_failures(matches: Facts) -> Iterator[str]:
    """That a judge failed on every comparison that it was asked for, or that systems could not be rated."""
    reasons = [reason for reason in matches["missing"] if reason["reason"].startswith("scorer: ")]
    if reasons and sum(reason["count"] for reason in reasons) == matches["judged"]:
        why = reasons[0]["reason"].removeprefix("scorer: ")
        yield f"the judge of {matches['matches']!r} failed on every comparison: {why}"
    if matches["unrated"] is not None:
        yield f"the systems of {matches['matches']!r} were not rated: {matches['unrated']}"
