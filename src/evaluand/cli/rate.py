"""`evaluand rate`: rates systems from matches or from files of battles, and checks gates."""

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from evaluand.cli.battle_options import BATTLE_OPTIONS, BattleOptions
from evaluand.cli.command import argument, make_command, option
from evaluand.cli.gates import conclude, gate_facts, require_gates, show_gates
from evaluand.cli.options import (
    complete_artifact,
    confidence_option,
    gate_option,
    json_option,
    judge_option,
    junit_option,
    refuse_options,
    store_option,
    suggest_command,
)
from evaluand.cli.output import print_json, show
from evaluand.cli.progress import show_notes
from evaluand.comparison.rule import Gate
from evaluand.core.errors import NotFound, SpecError, nearest
from evaluand.evaluation.kind import EVALUATIONS
from evaluand.matches.battle_rows import spelled_for
from evaluand.matches.battles import read_battles
from evaluand.matches.kind import MATCHES, RATINGS
from evaluand.matches.matches import Matches
from evaluand.matches.ratings.method import COVARIATES, POSITION, Contradictory, Kind, Missing, Outcomes
from evaluand.matches.ratings.rating import Ratings, rate
from evaluand.matches.ratings.rating_gates import check_rating_gates
from evaluand.metrics.ratings.counts import Ties
from evaluand.report.facts.match_sets import ratings_facts
from evaluand.report.terminal.ratings import ratings_table
from evaluand.report.text import SHORT_ID, safe
from evaluand.run.kind import RUNS
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


@dataclass(frozen=True, kw_only=True)
class _Rating:
    method: Kind = option("How.", default="bradley_terry", show_default=True)
    ties: Ties | None = option("Bradley–Terry: what a tie is.  [default: half a win]")
    penalty: float | None = option("Bradley–Terry: rates undefeated systems too.  [default: 0]", metavar="X")
    covariates: tuple[str, ...] = option(
        f"Bradley–Terry: rate at equal {', '.join([*COVARIATES, POSITION])}; repeatable.",
        "--covariate",
        metavar="NAME",
    )
    baseline: str | None = option("The system against which win rates are counted.", metavar="SYSTEM")
    outcomes: Outcomes | None = option("How probabilities count.  [default: weighted]")
    contradictory: Contradictory = option(
        "What becomes of pairs whose two orders have opposite winners.",
        default="average",
        show_default=True,
    )
    missing: Missing | None = option(
        "Matches without an outcome are left out, lost by the system without a response, or refused."
        "  [default: leave_out]",
    )
    weighted: bool = option("Count each match by the weight of its example.")
    confidence: float = confidence_option
    replicates: int | None = option("Bradley–Terry: draws of the bootstrap.  [default: 1000]", metavar="N")
    seed: int | None = option("Bradley–Terry: of these draws.  [default: 0]", metavar="N")


@dataclass(frozen=True, kw_only=True)
class _Options:
    sources: tuple[str, ...] = argument(
        metavar="ID|NAME|FILE...", nargs=-1, required=True, shell_complete=complete_artifact
    )
    rating: _Rating
    reading: BattleOptions
    name: str | None = option("A name for the ratings.", metavar="NAME")
    gates: tuple[str, ...] = gate_option
    junit: Path | None = junit_option
    allow_unmeasured: bool = judge_option
    folder: Place = store_option
    as_json: bool = json_option


@make_command("rate", epilog=_EXAMPLES)
def command(options: _Options) -> None:
    """Rate systems from matches: who is better, by how much, and with what confidence?

    Name matches, ratings (for the matches behind them), or files of battles that were judged elsewhere: JSON lines or
    CSV with model_a, model_b and winner, or the columns of AlpacaEval, MT-Bench and Arena-Hard. Several count together,
    so that an earlier comparison is extended by a later one. The exit code is 3 if a gate fails.
    """
    store = open_store(options.folder)
    require_gates(options.gates, options.junit)
    reading = options.reading.arguments
    rules = [Gate.parse(text) for text in options.gates]
    with show_notes(), spelled_for("command"):
        if all(_find_stored(store, source) for source in options.sources):
            refuse_options(BATTLE_OPTIONS, "is for files of battles; stored matches stay as their file was read")
        found = [each for source in options.sources for each in _find_matches(store, source, reading)]
        ratings = rate(*found, name=options.name, **vars(options.rating))
        results = gate_facts(check_rating_gates(rules, ratings, allow_unmeasured_judges=options.allow_unmeasured))
    facts = ratings_facts(ratings)
    if options.as_json:
        print_json(facts | {"gates": results})
    else:
        show(ratings_table(facts))
        show_gates(results)
        again = suggest_command("show", ratings.id[:SHORT_ID], store.root)
        click.echo(f"\nratings {ratings.id[:SHORT_ID]}; again: {safe(again)}")
    conclude(results, options.junit, [caveat for matches in facts["sets"] for caveat in matches["caveats"]])


def _find_matches(store: FolderStore, source: str, reading: dict[str, Any]) -> list[Matches]:
    """The matches that a name, an id or a file refers to.

    Raises:
        UsageError: it is neither, or is stored but has no matches.
    """
    stored = _find_stored(store, source)
    if stored is None:
        if not Path(source).exists():
            _refuse_other_kinds(store, source)
            names = [ref.name for ref in store.refs() if ref.kind in (MATCHES, RATINGS)]
            raise click.UsageError(
                f"{source}: no such file, and no stored matches of this name{nearest(source, names)}"
            )
        return [read_battles(source, store, **reading)]
    kind, id = stored
    if kind == MATCHES:
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
    for kind in (RUNS, EVALUATIONS):
        with suppress(NotFound):
            resolve(store, source, kind)
            raise click.UsageError(
                f"{source}: is {'a run' if kind == RUNS else 'an evaluation'}, not matches; judge it against others"
                f" with `evaluand compare --pairwise {source} OTHER --judge FILE.py:JUDGE`"
            )


def _find_stored(store: FolderStore, source: str) -> tuple[str, str] | None:
    """The kind and id of stored matches, or else of ratings; None if neither has this name or id."""
    for kind in (MATCHES, RATINGS):
        with suppress(NotFound):
            return resolve(store, source, kind)
    return None
