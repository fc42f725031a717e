"""What commands print about matches."""

from collections.abc import Iterator

import click

from evaluand.cli.output import print_json, show
from evaluand.evaluation.matching.matches import Matches
from evaluand.report.facts.base import Facts
from evaluand.report.facts.matches import matches_facts
from evaluand.report.terminal.report import match_steps_table, missing_table
from evaluand.report.text import safe
from evaluand.store.tables import SCORED


def print_matches(name: str, matches: Matches, *, as_json: bool) -> bool:
    """Prints what matches took and why some have no outcome.

    Returns:
        Whether the judge failed on every comparison.
    """
    facts = matches_facts(name, matches)
    if as_json:
        print_json(facts)
    else:
        show(match_steps_table([facts]))
        if facts["missing"]:
            click.echo()
            show(missing_table([(name, {"scorer": None} | reason) for reason in facts["missing"]]))
    failures = [*failed_judges(facts)]
    for failure in failures:
        click.echo(f"error: {safe(failure)}", err=True)
    return bool(failures)


def failed_judges(matches: Facts) -> Iterator[str]:
    """Why a judge gave no outcome at all, if it failed on every comparison that it was asked for."""
    reasons = [m for m in matches["missing"] if m["reason"].startswith("scorer: ")]
    if reasons and SCORED not in matches["counts"]:
        why = reasons[0]["reason"].removeprefix("scorer: ")
        yield f"the judge of {matches['matches']!r} failed on every comparison: {why}"
