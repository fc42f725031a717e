"""`evaluand compare --pairwise`: a judge compares the responses of stored runs."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

import click
from click.core import ParameterSource

from evaluand.cli.carry_out import reported_stop
from evaluand.cli.command import option
from evaluand.cli.gates import conclude, gate_facts, require_gates
from evaluand.cli.matches import note_unpinned, print_matches, suggest_judging_again
from evaluand.cli.notes import note_renamed
from evaluand.cli.options import DEFAULT_CONFIDENCE, BudgetType, suggest_command
from evaluand.cli.output import stdout_to_stderr
from evaluand.cli.progress import display, show_notes
from evaluand.comparison.rule import Gate
from evaluand.core.errors import SpecError, plural
from evaluand.core.labels import short_labels
from evaluand.core.provenance import read_origin
from evaluand.core.redaction import redact_command
from evaluand.engine.budget import Budget
from evaluand.engine.policy import Policy
from evaluand.experiment.gates import check_match_gates
from evaluand.experiment.tournament_entries import read_tournament
from evaluand.matches.matcher import Matcher
from evaluand.matches.matches import Matches
from evaluand.matches.ratings.rating_gates import check_rating_gates
from evaluand.predictions.regrading import find_graded_runs
from evaluand.report.facts.base import Facts
from evaluand.report.facts.tournaments import tournament_facts
from evaluand.report.text import SHORT_ID, safe
from evaluand.run.earlier_work import named_work
from evaluand.run.runner import Run
from evaluand.store.folder_store import FolderStore
from evaluand.store.ownership import describe_foreign, is_own
from evaluand.store.store import Manifest

_NEW = ("judge", "by_score", "schedule", "baseline", "budget", "orders", "seed", "limit", "name")
"""The options that need `--pairwise` and say which matches are played."""
_HOW = ("retry_failed", "keep_answers", "repeat_lost", "same_failures")
"""The further options that need it."""
_OLD = ("scorers", "metrics", "missing", "flips", "by", "where", "over")
"""The options that `--pairwise` does not have."""
_ORIGIN: Final = "compare"
"""The entry of a manifest's origin with the command that began its matches."""
_BUDGETED = ("swiss", "information_gain")


class _EitherBudget(BudgetType):
    """A number of judgements, or an amount of money."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if str(value).strip().isdecimal():
            return click.IntRange(min=1).convert(int(value), param, ctx)
        return super().convert(value, param, ctx)


@dataclass(frozen=True, kw_only=True)
class PairwiseOptions:
    """The options of pairwise comparisons."""

    pairwise: bool = option("Let a judge compare the responses, and rate the systems.")
    judge: str | None = option("Of --pairwise: judge.py:FUNCTION, or a kind of judge.", metavar="JUDGE")
    by_score: str | None = option("Of --pairwise: the higher score of this scorer wins.", metavar="SCORER")
    schedule: str | None = option("Of --pairwise: who meets whom.  [default: all_pairs]", metavar="KIND")
    baseline: str | None = option("Of --pairwise: compare each system with this one alone.", metavar="NAME")
    budget: int | Budget | None = option(
        "Of --pairwise: for swiss and information_gain so many judgements; or so much money, such as '5 USD'.",
        type=_EitherBudget(),
        metavar="N|AMOUNT",
    )
    orders: str | None = option("Of --pairwise: who is presented first.", type=click.Choice(["both", "random"]))
    seed: int | None = option("Of --pairwise: of random orders and schedules.", metavar="N")
    limit: int | None = option("Of --pairwise: the first N examples.", type=click.IntRange(min=1), metavar="N")
    name: str | None = option("Of --pairwise: a name for the matches and their ratings.", metavar="NAME")
    retry_failed: bool = option("Of --pairwise: repeat the judgements that failed.")
    keep_answers: bool = option("Of --pairwise: take judgements over though the judge has changed.")
    repeat_lost: bool = option(
        "Of --pairwise: repeat judgements that cost, where the stored ones are damaged or missing."
    )
    same_failures: int | None = option(
        "Of --pairwise: stop if the first N judgements fail alike; 0 never stops.  [default: 20]",
        type=click.IntRange(min=0),
        metavar="N",
    )


def check_options(ctx: click.Context, pairwise: bool) -> None:
    """Refuses options that the chosen kind of comparison does not have.

    Raises:
        UsageError: names the first.
    """
    for name in _OLD if pairwise else (*_NEW, *_HOW):
        if ctx.get_parameter_source(name) not in (ParameterSource.DEFAULT, None):
            option = next(param.opts[0] for param in ctx.command.params if param.name == name)
            why = "has no meaning with --pairwise" if pairwise else "needs --pairwise"
            raise click.UsageError(f"{option} {why}", ctx)


def compare_pairwise(
    store: FolderStore, artifacts: Sequence[str], options: Mapping[str, Any], *, as_json: bool
) -> None:
    """Judges, rates and prints.

    Raises:
        Exit: it was interrupted, or the judge failed on every comparison.
    """
    money = options["budget"] if isinstance(options["budget"], Budget) else None
    options = {**options, "budget": None if money else options["budget"]}
    found = [graded for text in artifacts for graded in find_graded_runs(store, text)]
    labels, runs = [graded.name for graded in found], [graded.run for graded in found]
    short = short_labels(labels, [run.id for run in runs])
    rules = [Gate.parse(text) for text in options["gates"]]
    for gate in rules:
        if not gate.is_of_matches:
            raise SpecError(f"gate {gate.text!r} is about a metric; with --pairwise: `win_rate(SYSTEM, OTHER) >= 0.55`")
    require_gates(rules, options["junit"])
    if options["keep_answers"] and not options["name"]:
        raise click.UsageError("--keep-answers takes over what a name meant before; give --name NAME too")
    with stdout_to_stderr(), show_notes():
        names = {run.name: label for run, label in zip(runs, short, strict=True)}
        names |= dict(zip(labels, short, strict=True))
        entry = _read_entry(options, names)
        tournament = read_tournament(entry, Path())
        check_match_gates(rules, [tournament], short)
        words = _command_words(artifacts, options)
        origin = {_ORIGIN: {"entry": entry, "folder": os.getcwd(), "command": words}}
        has_secrets = redact_command(words) != words
        if has_secrets:  # which the store must not get
            origin = {}
        progress = display(as_json, quiet=False)
        matcher = Matcher(store, _policy(options["same_failures"], money), progress=progress)
        name, by_label = options["name"], dict(zip(short, runs, strict=True))
        before = named_work(store, Matches.kind, name)
        earlier = Matches(store, before) if before and store.is_sealed(Matches.kind, before) else None
        note_unpinned(tournament, in_yaml=False)
        with reported_stop(store, progress, can_resume=not has_secrets, budget=money):
            asked = {part: options[part] for part in ("name", "limit", "retry_failed", "keep_answers", "repeat_lost")}
            matches = tournament.play(matcher, by_label, origin=origin, **asked)
            ratings = tournament.rate(matches, name=name)
        _note_smaller_matches(earlier, matches, store)
        assert ratings is not None  # no option leaves them out
        allowed = options["allow_unmeasured"]
        checked = gate_facts(check_rating_gates(rules, ratings, allow_unmeasured_judges=allowed))
    facts = tournament_facts(name or "matches", matches, ratings)
    failed = _print(store, facts, name, words, checked, as_json=as_json)
    conclude(checked, options["junit"], facts["caveats"], failed=failed)


def comparison_origin(manifest: Manifest) -> ComparisonOrigin | None:
    """The command that began matches, read with types: somebody else may have written the manifest."""
    begun = read_origin(manifest).get(_ORIGIN)
    if not isinstance(begun, Mapping):
        return None
    entry, folder, command = (begun.get(name) for name in ("entry", "folder", "command"))
    if not isinstance(entry, dict) or not isinstance(folder, str) or not isinstance(command, list):
        return None
    return ComparisonOrigin(entry, folder, [str(word) for word in command])


class ComparisonOrigin(NamedTuple):
    """What a manifest says about the `compare --pairwise` that began its matches.

    Attributes:
        entry: the tournament, as an entry of `matches` in an experiment file.
        folder: where the command was run.
        command: its arguments.
    """

    entry: dict[str, Any]
    folder: str
    command: list[str]


def resume_comparison(
    store: FolderStore,
    id: str,
    begun: ComparisonOrigin,
    budget: Budget | None,
    *,
    repeat_lost: bool,
    as_json: bool,
) -> None:
    """Continues open matches that `compare --pairwise` has begun, and rates their systems.

    Raises:
        SpecError: somebody else has begun them, or judge or schedule have changed.
        Exit: it was interrupted, or the judge failed on every comparison.
    """
    manifest = store.manifest(Matches.kind, id)
    if not is_own(store, manifest):
        again = suggest_command("compare", [safe(word) for word in begun.command], store.root)
        raise SpecError(f"matches {id[:SHORT_ID]} {describe_foreign()}; to start anew, type: {again}")
    spec, name = manifest["spec"], manifest["name"]
    with stdout_to_stderr(), show_notes():
        tournament = read_tournament(begun.entry, Path(begun.folder))
        note_unpinned(tournament, in_yaml=False)
        progress = display(as_json, quiet=False)
        runs = zip(spec["systems"], manifest["provenance"]["runs"], strict=True)
        by_label = {label: Run(store, run) for label, run in runs}
        with reported_stop(store, progress, budget=budget):
            matcher = Matcher(store, _policy(None, budget), progress=progress)
            origin = manifest["provenance"]["origin"]
            asked = {"name": name, "limit": spec.get("limit"), "repeat_lost": repeat_lost}
            try:
                matches = tournament.play(matcher, by_label, resume=id, origin=origin, **asked)
            except SpecError as error:  # the judge has changed, so there is nothing to continue
                error.add_note(f"it was begun by: {suggest_command('compare', begun.command, store.root)}")
                raise
            ratings = tournament.rate(matches, name=name)
    facts = tournament_facts(name or "matches", matches, ratings)
    conclude([], None, failed=_print(store, facts, name, begun.command, [], as_json=as_json))


def _print(
    store: FolderStore,
    facts: Facts,
    name: str | None,
    command: Sequence[str],
    gates: Sequence[Facts],
    *,
    as_json: bool,
) -> bool:
    """Prints matches, ratings and gates, and what to do next.

    Args:
        command: the arguments of the command that began the matches.

    Returns:
        Whether the judge failed on every comparison.
    """
    failed = print_matches(facts, gates, as_json=as_json)
    if not as_json:
        id = facts["id"][:SHORT_ID]
        more = suggest_command("rate", name or id, store.root)
        click.echo(f"\nmatches {id}; rated otherwise: {safe(more)}")
    retried = [*(word for word in command if word != "--retry-failed"), "--retry-failed"]
    suggest_judging_again(facts, suggest_command("compare", retried, store.root))
    return failed


def _policy(same_failures: int | None, budget: Budget | None) -> Policy:
    return Policy(budget=budget) if same_failures is None else Policy(same_failures=same_failures, budget=budget)


def _command_words(artifacts: Sequence[str], options: Mapping[str, Any]) -> list[str]:
    """The arguments of the command, so that it can be repeated."""
    values = {name: options[name] for name in (*_NEW, *_HOW) if options[name] not in (None, False)}
    values |= {} if options["confidence"] == DEFAULT_CONFIDENCE else {"confidence": options["confidence"]}
    words = ["--pairwise", *artifacts]
    for name, value in values.items():
        words += [f"--{name.replace('_', '-')}", *([] if value is True else [str(value)])]
    return [*words, *(word for gate in options["gates"] for word in ("--gate", gate))]


def _note_smaller_matches(earlier: Matches | None, matches: Matches, store: FolderStore) -> None:
    """Notes that a name now refers to the matches of fewer examples than before."""
    limit = matches.manifest["spec"].get("limit")
    if earlier is None or limit is None or limit >= earlier.manifest["spec"].get("limit", math.inf):
        return
    made = f"the matches of the first {plural(limit, 'example')}; those of more examples"
    note_renamed(matches.name, made, earlier.id, store.root, "without --limit to name them again")


def _read_entry(options: Mapping[str, Any], names: Mapping[str | None, str]) -> dict[str, Any]:
    """The options as an entry of `matches` in an experiment file.

    Args:
        names: what a run may be called → its label.

    Raises:
        UsageError: options do not fit together.
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
    return entry
