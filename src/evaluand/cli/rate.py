"""`evaluand rate`: rates systems from matches or from files of battles, and checks gates."""

from contextlib import suppress
from pathlib import Path
from typing import Any, get_args

import click

from evaluand.cli.battle_options import battle_options
from evaluand.cli.gates import conclude, gate_facts, gate_options, judge_option, require_gates, show_gates
from evaluand.cli.options import (
    complete_artifact,
    confidence_option,
    json_option,
    repeatable,
    store_option,
    suggest_command,
)
from evaluand.cli.output import print_json, show
from evaluand.cli.progress import show_notes
from evaluand.comparison.rule import Gate
from evaluand.core.errors import NotFound, SpecError, nearest
from evaluand.matches.battles import read_battles
from evaluand.matches.column_options import spelled_for
from evaluand.matches.matches import Matches
from evaluand.matches.ratings.method import COVARIATES, POSITION, Contradictory, Kind, Missing, Outcomes
from evaluand.matches.ratings.rating import rate
from evaluand.matches.ratings.rating_gates import check_rating_gates
from evaluand.matches.ratings.stored import Ratings
from evaluand.metrics.ratings.connectivity import Ties
from evaluand.report.facts.match_sets import ratings_facts
from evaluand.report.terminal.ratings import ratings_table
from evaluand.report.text import SHORT_ID, safe
from evaluand.store.addresses import Place
from evaluand.store.folder_store import FolderStore
from evaluand.store.opening import open_store
from evaluand.store.store import resolve

_EXAMPLES = """\b
Examples:
  evaluand rate support/judged
  evaluand rate support/judged support/judged-2 --name support/ratings
  evaluand rate battles.jsonl --ties davidson
  evaluand rate battles.csv --column a=left --column b=right --column winner=better
  evaluand rate judged --method win_rate --baseline base
  evaluand rate judged --covariate length --covariate position
  evaluand rate judged --gate "win_rate(mine, base) >= 0.55 at 95%"
"""


@click.command("rate", epilog=_EXAMPLES)
@click.argument("sources", metavar="ID|NAME|FILE...", nargs=-1, required=True, shell_complete=complete_artifact)
@click.option("--method", type=click.Choice(get_args(Kind)), default="bradley_terry", show_default=True, help="How.")
@click.option("--ties", type=click.Choice(get_args(Ties)), help="Bradley–Terry: what a tie is.  [default: half a win]")
@click.option("--penalty", type=float, metavar="X", help="Bradley–Terry: rates undefeated systems too.  [default: 0]")
@repeatable(
    "--covariate",
    "covariates",
    metavar="NAME",
    help=f"Bradley–Terry: rate at equal {', '.join([*COVARIATES, POSITION])}; repeatable.",
)
@click.option("--baseline", metavar="SYSTEM", help="The system against which win rates are counted.")
@click.option("--outcomes", type=click.Choice(get_args(Outcomes)), help="How probabilities count.  [default: weighted]")
@click.option(
    "--contradictory",
    type=click.Choice(get_args(Contradictory)),
    default="average",
    show_default=True,
    help="What becomes of pairs whose two orders have opposite winners.",
)
@click.option(
    "--missing",
    type=click.Choice(get_args(Missing)),
    help="Matches without an outcome are left out, lost by the system without a response, or refused."
    "  [default: leave_out]",
)
@click.option("--weighted", is_flag=True, help="Count each match by the weight of its example.")
@confidence_option
@click.option("--replicates", type=int, metavar="N", help="Bradley–Terry: draws of the bootstrap.  [default: 1000]")
@click.option("--seed", type=int, metavar="N", help="Bradley–Terry: of these draws.  [default: 0]")
@battle_options("FILE")
@click.option("--name", metavar="NAME", help="A name for the ratings.")
@gate_options
@judge_option
@store_option
@json_option
def command(
    sources: tuple[str, ...],
    columns: dict[str, str],
    first: str | None,
    second: str | None,
    in_order: bool,
    by_people: bool,
    gates: tuple[str, ...],
    junit: Path | None,
    allow_unmeasured: bool,
    folder: Place,
    as_json: bool,
    **options: Any,
) -> None:
    """Rate systems from matches: who is better, by how much, and with what confidence?

    Name matches, ratings (for the matches behind them), or files of battles that were judged elsewhere: JSON lines or
    CSV with model_a, model_b and winner, or the columns of AlpacaEval, MT-Bench and Arena-Hard. Several count together,
    so that an earlier comparison is extended by a later one. The exit code is 3 if a gate fails.
    """
    store = open_store(folder)
    require_gates(gates, junit)
    reading = {"columns": columns, "a": first, "b": second, "in_order": in_order, "by_people": by_people}
    rules = [Gate.parse(text) for text in gates]
    with show_notes(), spelled_for("command"):
        found = [each for source in sources for each in _find_matches(store, source, reading)]
        ratings = rate(*found, **options)
        results = gate_facts(check_rating_gates(rules, ratings, allow_unmeasured_judges=allow_unmeasured))
    if as_json:
        print_json(ratings_facts(ratings) | {"gates": results})
    else:
        show(ratings_table(ratings_facts(ratings)))
        show_gates(results)
        again = suggest_command("show", ratings.id[:SHORT_ID], store.root)
        click.echo(f"\nratings {ratings.id[:SHORT_ID]}; again: {safe(again)}")
    conclude(results, junit)


def _find_matches(store: FolderStore, source: str, reading: dict[str, Any]) -> list[Matches]:
    """The matches that a name, an id or a file refers to.

    Raises:
        UsageError: it is neither, or is stored but has no matches.
    """
    try:
        kind, id = _resolve(store, source)
    except NotFound:
        if not Path(source).exists():
            _refuse_other_kinds(store, source)
            names = [ref.name for ref in store.refs() if ref.kind in ("matches", "ratings")]
            raise click.UsageError(
                f"{source}: no such file, and no stored matches of this name{nearest(source, names)}"
            ) from None
        return [read_battles(source, store, **reading)]
    if kind == "matches":
        return [Matches.open(store, id)]
    ratings = Ratings(store, id)
    found = [each for each in ratings.matches if each is not None]
    if len(found) < len(ratings.matches):
        raise SpecError(f"ratings {id[:SHORT_ID]}: some of their matches are not in the store")
    return found


def _refuse_other_kinds(store: FolderStore, source: str) -> None:
    """Refuses what is stored, but is neither matches nor ratings.

    Raises:
        UsageError: says what it is, and how its matches are made.
    """
    for kind in ("runs", "evaluations"):
        with suppress(NotFound):
            resolve(store, source, kind)
            raise click.UsageError(
                f"{source}: is {'a run' if kind == 'runs' else 'an evaluation'}, not matches; judge it against others"
                f" with `evaluand compare --pairwise {source} OTHER --judge FILE.py:JUDGE`"
            )


def _resolve(store: FolderStore, source: str) -> tuple[str, str]:
    """The kind and id of stored matches, or else of ratings."""
    try:
        return resolve(store, source, "matches")
    except NotFound:
        return resolve(store, source, "ratings")
