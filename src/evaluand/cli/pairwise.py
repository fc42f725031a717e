"""`evaluand compare --pairwise`: a judge compares the responses of stored runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from evaluand.aggregation.aggregator import Aggregation
from evaluand.cli.gates import conclude, gate_facts, require_gates
from evaluand.cli.matches import print_matches
from evaluand.cli.options import suggest_command
from evaluand.cli.output import stdout_to_stderr
from evaluand.cli.progress import display, show_notes
from evaluand.cli.run import WatchedStore, reported_stop
from evaluand.comparison.comparing import read_run
from evaluand.comparison.measures import read_evaluations
from evaluand.comparison.ratings.rating_gates import check_rating_gates
from evaluand.comparison.rule import Gate
from evaluand.core.errors import NotFound, SpecError, singular
from evaluand.core.labels import short_labels
from evaluand.evaluation.evaluator import Evaluation
from evaluand.evaluation.matching.matcher import Matcher
from evaluand.experiment.match_gates import check_match_gates, is_match_gate
from evaluand.experiment.tournament import Tournament
from evaluand.experiment.tournament_entries import read_tournament
from evaluand.report.facts.tournaments import tournament_facts
from evaluand.report.text import SHORT_ID, safe
from evaluand.run.runner import Run
from evaluand.store.store import Store, resolve

_NEW = ("judge", "by_score", "schedule", "baseline", "budget", "orders", "seed", "limit", "name")
"""The options that need `--pairwise`."""
_OLD = ("scorers", "metrics", "missing", "flips")
"""The options that `--pairwise` does not have."""
_BUDGETED = ("swiss", "information_gain")


def pairwise_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options of pairwise comparisons."""
    options = (
        click.option("--pairwise", is_flag=True, help="Let a judge compare the responses, and rate the systems."),
        click.option("--judge", metavar="JUDGE", help="Of --pairwise: judge.py:FUNCTION, or a kind of judge."),
        click.option("--by-score", metavar="SCORER", help="Of --pairwise: the higher score of this scorer wins."),
        click.option("--schedule", metavar="KIND", help="Of --pairwise: who meets whom.  [default: all_pairs]"),
        click.option("--baseline", metavar="NAME", help="Of --pairwise: compare each system with this one alone."),
        click.option("--budget", type=click.IntRange(min=1), metavar="N", help="Of swiss and information_gain."),
        click.option("--orders", type=click.Choice(["both", "random"]), help="Of --pairwise: who is presented first."),
        click.option("--seed", type=int, metavar="N", help="Of --pairwise: of random orders and schedules."),
        click.option("--limit", type=click.IntRange(min=1), metavar="N", help="Of --pairwise: the first N examples."),
        click.option("--name", metavar="NAME", help="Of --pairwise: a name for the matches and their ratings."),
    )
    for option in reversed(options):
        command = option(command)
    return command


def check_options(ctx: click.Context, pairwise: bool) -> None:
    """Refuses options that the chosen kind of comparison does not have.

    Raises:
        UsageError: names the first.
    """
    for name in _OLD if pairwise else _NEW:
        if ctx.get_parameter_source(name) not in (ParameterSource.DEFAULT, None):
            option = next(param.opts[0] for param in ctx.command.params if param.name == name)
            why = "has no meaning with --pairwise" if pairwise else "needs --pairwise"
            raise click.UsageError(f"{option} {why}", ctx)


def compare_pairwise(
    store: WatchedStore, artifacts: Sequence[str], options: Mapping[str, Any], *, as_json: bool
) -> None:
    """Judges, rates and prints.

    Raises:
        Exit: it was interrupted, or the judge failed on every comparison.
    """
    labels, runs = zip(*(found for text in artifacts for found in _find_runs(store, text)), strict=True)
    short = short_labels(labels, [run.id for run in runs])
    rules = _read_gates(options["gates"])
    require_gates(rules, options["junit"])
    with stdout_to_stderr(), show_notes():
        names = {run.name: label for run, label in zip(runs, short, strict=True)}
        names |= dict(zip(labels, short, strict=True))
        tournament = _read_tournament(options, names)
        check_match_gates(rules, [tournament], short)
        progress = display(as_json, quiet=False)
        name = options["name"]
        with reported_stop(store, progress, again="run the same command again to continue"):
            matcher = Matcher(store, progress=progress)
            by_label = dict(zip(short, runs, strict=True))
            matches = tournament.play(matcher, by_label, name=name, limit=options["limit"])
            ratings = tournament.rate(matches, name=name)
        assert ratings is not None  # no option leaves them out
        checked = gate_facts(check_rating_gates(rules, ratings))
    failed = print_matches(tournament_facts(name or "matches", matches, ratings), checked, as_json=as_json)
    if not as_json:
        more = suggest_command("rate", name or matches.id[:SHORT_ID], store.root)
        click.echo(f"\nmatches {matches.id[:SHORT_ID]}; rated otherwise: {safe(more)}")
    conclude(checked, options["junit"], failed=failed)


def _read_gates(texts: Sequence[str]) -> list[Gate]:
    """Gates that are all about matches.

    Raises:
        SpecError: one is about a metric.
    """
    gates = [Gate.parse(text) for text in texts]
    for gate in gates:
        if not is_match_gate(gate):
            raise SpecError(f"gate {gate.text!r} is about a metric; with --pairwise: `win_rate(SYSTEM, OTHER) >= 0.55`")
    return gates


def _read_tournament(options: Mapping[str, Any], names: Mapping[str | None, str]) -> Tournament:
    """The tournament of the options.

    Args:
        names: what a run may be called → its label.

    Raises:
        UsageError: options do not fit together.
        SpecError: a value is wrong.
    """
    judge, by_score = options["judge"], options["by_score"]
    if (judge is None) == (by_score is None):
        raise click.UsageError("--pairwise needs --judge judge.py:FUNCTION or --by-score SCORER, one of them")
    entry: dict[str, Any] = {"judge": judge if by_score is None else {"by_score": {"scorer": by_score}}}
    entry |= {name: options[name] for name in ("orders", "seed") if options[name] is not None}
    schedule, baseline, budget = options["schedule"], options["baseline"], options["budget"]
    if baseline is not None:
        if schedule not in (None, "against_baseline"):
            raise click.UsageError(f"--baseline is of the schedule against_baseline, not of {schedule}")
        entry["schedule"] = {"against_baseline": names.get(baseline, baseline)}
    elif schedule == "against_baseline":
        raise click.UsageError("--schedule against_baseline needs --baseline NAME")
    elif schedule is not None:
        entry["schedule"] = {"kind": schedule, **({} if budget is None else {"budget": budget})}
    if budget is not None and schedule not in _BUDGETED:
        raise click.UsageError(f"--budget needs --schedule {' or '.join(_BUDGETED)}")
    entry["rating"] = {"confidence": options["confidence"]}
    return read_tournament(entry, Path())


def _find_runs(store: Store, text: str) -> list[tuple[str, Run]]:
    """The runs that a name or id refers to, each with its label: runs, or those of evaluations and aggregations."""
    kind, id = _find_artifact(store, text)
    if kind == "aggregations":
        found = [read_run(evaluation) for evaluation in read_evaluations(store, kind, id)]
        return [*zip(Aggregation(store, id).labels, found, strict=True)]
    run = Run(store, id) if kind == "runs" else read_run(Evaluation(store, id))
    if not store.is_sealed("runs", run.id):
        raise SpecError(f"{text!r} is not finished; `evaluand resume {run.id[:SHORT_ID]}` continues it")
    return [(text if any(ref.name == text for ref in store.refs()) else run.name or text, run)]


def _find_artifact(store: Store, text: str) -> tuple[str, str]:
    for kind in ("runs", "evaluations", "aggregations"):
        try:
            return resolve(store, text, kind)
        except NotFound:
            continue
    kind, id = resolve(store, text)
    raise SpecError(
        f"{text!r} is {singular(kind)} {id[:SHORT_ID]}; name runs, evaluations or an aggregation to compare"
    )
