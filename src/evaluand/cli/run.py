"""`evaluand run`: runs an experiment file from beginning to end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final

import click
from click.exceptions import Exit

from evaluand.aggregation.aggregator import REFUSED
from evaluand.cli import INTERRUPTED
from evaluand.cli.engines import engine_chosen, engine_options
from evaluand.cli.file_gates import check_baselines
from evaluand.cli.gates import (
    anytime_option,
    conclude,
    gate_facts,
    gate_options,
    has_results,
    judge_option,
    look_at_any_time,
    require_gates,
    show_gates,
)
from evaluand.cli.matches import match_failures, note_unpinned, suggest_judging_again
from evaluand.cli.notes import note_renamed
from evaluand.cli.open_costs import sufficient_budget
from evaluand.cli.options import (
    budget_option,
    experiment_argument,
    json_option,
    model_option,
    name_store_in,
    near_options,
    store_option,
    suggest_command,
    where_option,
)
from evaluand.cli.output import print_json, show, stdout_to_stderr
from evaluand.cli.progress import Display, display, show_notes
from evaluand.cli.until import Stop, parse_until, positions_in, run_until
from evaluand.cli.watched import watch_in_browser
from evaluand.comparison.gates import check_fit, check_gates
from evaluand.comparison.measures import find_evaluations
from evaluand.comparison.rule import Gate
from evaluand.core.errors import EngineError, EvaluandError, SpecError, nearest, plural
from evaluand.core.labels import shown_name
from evaluand.core.provenance import ONE_LOOK, look_for_git_changes
from evaluand.engine.budget import CODE as BUDGET, Budget
from evaluand.engine.outcome import Aborted
from evaluand.evaluation.evaluator import Evaluation
from evaluand.evaluation.scorer import NO_ANSWER, as_scorer
from evaluand.experiment.experiment import Experiment
from evaluand.experiment.match_gates import check_match_gates, evaluate_match_gates, is_match_gate
from evaluand.experiment.parsing import parse_file
from evaluand.models.usage_total import UsageTotal
from evaluand.predictions.steps import Result, Results
from evaluand.report.facts.base import Facts
from evaluand.report.facts.report import results_facts
from evaluand.report.facts.run import missing_facts
from evaluand.report.terminal.report import results_table
from evaluand.report.text import SHORT_ID, minute, safe
from evaluand.run.runner import Run
from evaluand.store.addresses import Place
from evaluand.store.folder_store import FolderStore
from evaluand.store.opening import open_store
from evaluand.store.tables import FAILED, SCORED
from evaluand.tradeoff.trade import trades_without_confidences

_EXAMPLES = """\b
Examples:
  evaluand run experiment.yaml --limit 20
  evaluand run experiment.yaml --task mine --retry-failed
  evaluand run experiment.yaml --model ollama/smollm2
  evaluand run experiment.yaml --gate "accuracy >= 0.9" --gate "accuracy not worse than old by 0.02"
  evaluand run experiment.yaml --until "accuracy better than old"
  evaluand run experiment.yaml --json > results.json
"""


_NEAR_OPTIONS: Final = {
    **dict.fromkeys(("--tasks", "-t", "--only"), "--task NAME"),
    **dict.fromkeys(("--models", "-m", "--provider", "--llm"), "--model NAME"),
    **dict.fromkeys(("-n", "--n", "--max-samples", "--max-examples", "--samples", "-l", "--head"), "--limit N"),
    **dict.fromkeys(("-k", "--filter", "--select", "--filter-pattern"), "--where CONDITION"),
    **dict.fromkeys(("-q", "--silent"), "--quiet"),
    **dict.fromkeys(("-o", "--out", "--output", "--output-path", "--output_path"), "--json > FILE"),
    **dict.fromkeys(("-c", "--config", "-f", "--file", "--experiment"), "the file alone: evaluand run FILE"),
    **dict.fromkeys(("--dry-run", "--check", "--validate"), "the file to `evaluand validate FILE`"),
    **dict.fromkeys(("--lf", "--last-failed", "--rerun-failed", "--retry"), "--retry-failed"),
    **dict.fromkeys(("--no-cache", "--no-reuse", "--overwrite"), "--fresh"),
    **dict.fromkeys(("-j", "--max-workers", "--processes", "--n-jobs"), "--engine processes --workers N"),
    "--concurrency": "run: {concurrency: N} in the file",
    **dict.fromkeys(("--seed", "--timeout", "--retries"), "it under run: in the file"),
    **dict.fromkeys(("--metric", "--metrics"), "metrics: [NAME] in the file"),
    **dict.fromkeys(("--html",), "--report"),
    **dict.fromkeys(("--max-cost", "--cost-limit", "--max-budget"), "--budget '5 USD'"),
    **dict.fromkeys(("--threshold", "--fail-under", "--assert"), '--gate "accuracy >= 0.9"'),
}


@click.command("run", cls=near_options(_NEAR_OPTIONS), epilog=_EXAMPLES)
@experiment_argument
@click.option("--limit", type=click.IntRange(min=1), metavar="N", help="Only the first N examples.")
@where_option
@click.option("--task", metavar="NAME", help="Only this task of the experiment.")
@model_option
@click.option("--fresh", is_flag=True, help="Repeat every call and grade.")
@click.option("--retry-failed", is_flag=True, help="Repeat the calls and grades that failed.")
@click.option("--no-calls", is_flag=True, help="Grade and summarise the stored runs without calling tasks.")
@budget_option
@engine_options
@gate_options
@anytime_option
@click.option("--until", metavar="RULE", help="Run more and more examples until this gate is decided.")
@judge_option
@click.option("--view", is_flag=True, help="Watch it in a browser; see `evaluand view`.")
@click.option("--report", is_flag=True, help="Also write the report NAME.html; see `evaluand report`.")
@click.option("--force", is_flag=True, help="With --report: replace a file that is no report of this experiment.")
@click.option(
    "--git-changes",
    is_flag=True,
    help="Ask git whether files have changed since the commit, and store the answer. No hook or filter runs.",
)
@store_option
@json_option
@click.option("--quiet", is_flag=True, help="Print only the values.")
def command(
    file: Path,
    limit: int | None,
    where: str | None,
    task: str | None,
    model: str | None,
    fresh: bool,
    retry_failed: bool,
    no_calls: bool,
    budget: Budget | None,
    engine: str | None,
    workers: int | None,
    address: str | None,
    gates: tuple[str, ...],
    junit: Path | None,
    anytime: bool,
    until: str | None,
    allow_unmeasured: bool,
    view: bool,
    report: bool,
    force: bool,
    git_changes: bool,
    folder: Place,
    as_json: bool,
    quiet: bool,
) -> None:
    """Run an experiment: call every task, grade every response, summarise, compare the tasks, judge matches.

    FILE is the experiment file; without it, the only one of this folder.

    Only what is not stored yet is computed: run it again after a change, with a higher limit, or after an interruption.
    What tasks print goes to stderr. The exit code is 1 if every call of a task failed, or a scorer failed on every row,
    or a judge on every comparison, or a metric cannot use the scores, and 3 if a gate of the file or of --gate fails.
    """
    if force and not report:
        raise click.UsageError("--force needs --report")
    _check_repeats(fresh=fresh, retry_failed=retry_failed, no_calls=no_calls, until=until)
    last_rule = None if until is None else parse_until(until)
    store = open_store(folder)
    watching = watch_in_browser(folder) if view else nullcontext()
    with stdout_to_stderr(), show_notes(), look_for_git_changes() if git_changes else nullcontext(), watching:
        experiment = _read_experiment(file, model, where, budget)
        experiment.engine = engine_chosen(experiment.engine, engine, workers, address)
        experiment.engine.check(experiment.policy)
        if report and not force:
            from evaluand.cli.report import check_replaceable

            check_replaceable(experiment.name)
        tasks = [task] if task else [*experiment.tasks]
        if task and experiment.matches:
            click.echo("note: matches compare several tasks, so none are judged with --task", err=True)
        known = [*experiment.tasks] if model is None else parse_file(file)[0].task_names
        parsed = [*gates_of_file(experiment, tasks, known), *map(Gate.parse, gates)]
        parsed = look_at_any_time(parsed, anytime=anytime, where="gates, in the file or by --gate")
        parsed += [] if last_rule is None else [last_rule]
        require_gates(parsed, junit, "gates: in the file, or --gate")
        check_baselines(file, model, experiment, store)
        rules, of_matches = split_gates(experiment, parsed, tasks, task is None, store)
        options = {"limit": limit, "only": task, "fresh": fresh, "retry_failed": retry_failed, "calls": not no_calls}
        for tournament in experiment.matches if task is None else ():
            note_unpinned(tournament, in_yaml=True)
        named_before = (
            _runs_named(store, map(experiment.run_name, tasks)) if limit is not None or where or until else {}
        )
        is_several = len(tasks) > 1 and not (fresh or retry_failed)  # `resume` continues one task, the file all
        only = [] if task is None else ["--task", task]
        again = [*_words_to_run_again(file), *only] if is_several or until else None
        progress, stop = display(as_json, quiet), None
        if last_rule is None:
            results = carry_out(experiment, store, progress, again, **options)
        else:
            allowed = allow_unmeasured or experiment.allow_unmeasured_judges
            experiment = _only_shared(experiment, last_rule, tasks, store)
            results, stop = _carry_out_until(last_rule, experiment, store, progress, again, allowed, options)
    checked: list[Facts] = []
    try:
        with stdout_to_stderr(), show_notes():
            checked = check_all_gates(experiment, rules, of_matches, results, allow_unmeasured)
            if stop is not None and last_rule is not None:
                checked = _say_why_it_stopped(checked, last_rule, stop)
    finally:
        failed = print_results(results, store, checked, as_json=as_json, quiet=quiet)
        if not quiet:
            again_words = [word for word in _words_to_run_again(file) if word != "--no-calls"]
            _suggest_retries(
                results, experiment, suggest_command("run", [*again_words, *only, "--retry-failed"], store.root)
            )
            _note_smaller_runs(named_before, results, store)
        for note in trades_without_confidences(experiment.tradeoffs, results.evaluations):
            click.echo(f"note: {safe(note)}", err=True)
        if report:
            _write_report(store, experiment.name, results, checked)
    conclude(checked, junit, failed=failed)


def _check_repeats(*, fresh: bool, retry_failed: bool, no_calls: bool, until: str | None) -> None:
    """Refuses options that say different things about calls that are stored."""
    if fresh + retry_failed + no_calls > 1:
        raise click.UsageError("give one of --fresh, --retry-failed and --no-calls")
    if until and (fresh or retry_failed):
        raise click.UsageError("--until looks several times; leave out --fresh and --retry-failed")


def _say_why_it_stopped(checked: Sequence[Facts], rule: Gate, stop: Stop) -> list[Facts]:
    """The results of gates, that of the rule of `--until` with when and why it stopped."""
    click.echo(f"{rule.text}: {safe(stop)}", err=True)
    click.echo(f"note: this rule allows for all looks; {ONE_LOOK}", err=True)
    return [one | ({"until": stop.facts} if one["gate"] == rule.text else {}) for one in checked]


def _only_shared(experiment: Experiment, rule: Gate, tasks: Sequence[str], store: FolderStore) -> Experiment:
    """The experiment over the examples that a stored baseline of the rule has too."""
    if rule.baseline is None or rule.baseline in tasks:
        return experiment
    for baseline in find_evaluations(store, rule.baseline):
        shared, every = positions_in(baseline, experiment.dataset), len(experiment.dataset)
        if len(shared) < every:
            click.echo(f"note: {safe(rule.baseline)} has {len(shared):,} of the {every:,} examples", err=True)
            experiment = replace(experiment, dataset=experiment.dataset.take(shared))
    return experiment


def _read_experiment(file: Path, model: str | None, where: str | None, budget: Budget | None) -> Experiment:
    """The experiment of a file, with what the options change."""
    experiment = Experiment.from_file(file, model=model)
    if where is not None:
        experiment = experiment.where(where)
    if budget is not None:
        experiment.policy = replace(experiment.policy, budget=budget)
    return experiment


def gates_of_file(experiment: Experiment, tasks: Sequence[str], known: Sequence[str]) -> Iterator[Gate]:
    """The gates of the file, without those that need a task that does not run now.

    Args:
        known: the tasks of the file.
    """
    for gate in experiment.gates:
        if experiment.matches and is_match_gate(gate):
            if len(tasks) == len(experiment.tasks):
                yield gate
            else:
                click.echo(f"note: gate {safe(gate.text)!r} needs matches; not checked", err=True)
        elif has_results(gate, tasks, known):
            yield gate


def split_gates(
    experiment: Experiment, gates: Sequence[Gate], tasks: Sequence[str], has_matches: bool, store: FolderStore
) -> tuple[list[Gate], list[Gate]]:
    """The gates on metrics and those on matches, after a check that the experiment has what they name."""
    of_matches = [gate for gate in gates if experiment.matches and is_match_gate(gate)]
    rules = [gate for gate in gates if gate not in of_matches]
    if rules and not experiment.scorers:
        raise SpecError(f"gate {rules[0].text!r} is about a metric; write scorers and metrics into the file")
    check_match_gates(of_matches, experiment.matches if has_matches else (), [*experiment.tasks])
    baselines, roles = [*tasks, *map(experiment.run_name, tasks)], experiment.dataset.roles
    check_fit(rules, [*experiment.scorers], experiment.measures_of_all_rows, roles.attributes, baselines, store)
    return rules, of_matches


def _words_to_run_again(file: Path) -> list[str]:
    """The arguments of this command that decide what is run, checked and written."""
    ctx, words = click.get_current_context(), [str(file)]
    for option in ctx.command.params:
        value = ctx.params[option.name] if option.name in _REPEATED else None
        for each in value if isinstance(value, tuple) else [value]:
            if each is not None and each is not False:
                words += [max(option.opts, key=len), *([] if each is True else [str(each)])]
    return words


_REPEATED: Final = frozenset(
    (
        "limit",
        "where",
        "model",
        "engine",
        "workers",
        "address",
        "no_calls",
        "gates",
        "junit",
        "anytime",
        "until",
        "allow_unmeasured",
        "report",
    )
) | {"force", "git_changes"}


def _runs_named(store: FolderStore, names: Iterable[str]) -> dict[str, Run]:
    """The finished runs that have these names so far, as far as they can be read."""
    found = {}
    for ref in (ref for name in dict.fromkeys(names) for ref in store.named(name)):
        if ref.kind == Run.kind:
            with suppress(EvaluandError):  # what is damaged is not needed
                if store.is_sealed(Run.kind, ref.id):
                    found[ref.name] = Run(store, ref.id)
    return found


def check_all_gates(
    experiment: Experiment, rules: Sequence[Gate], of_matches: Sequence[Gate], results: Results, allow_unmeasured: bool
) -> list[Facts]:
    """The results of the gates on metrics and of those on matches."""
    allowed = allow_unmeasured or experiment.allow_unmeasured_judges
    of_metrics = check_gates(
        rules, results.evaluations, measures=experiment.measures_of_all_rows, allow_unmeasured_judges=allowed
    )
    of_ratings = evaluate_match_gates(of_matches, results.ratings, results.unrated, allow_unmeasured_judges=allowed)
    return gate_facts([*of_metrics, *of_ratings])


def _suggest_retries(results: Results, experiment: Experiment, command: str) -> None:
    """Notes how many calls of each task, grades of each scorer and judgements failed, with what repeats them.

    What a recorded file lacks is not counted, nor what a pure scorer cannot grade: no repetition changes it.
    """
    failures = [
        f"{plural(count, 'call')} of task {result.task} failed"
        for result in results.tasks
        if (count := sum(result.run.failures_to_repeat.values()))
    ]
    ungraded = Counter[str]()
    for result in results.tasks:
        for reason in missing_facts(result.run, result.evaluation):
            if reason["scorer"] is not None and reason["status"] == FAILED:
                ungraded[reason["scorer"]] += reason["count"]
    failures += [
        f"{plural(count, 'grade')} of scorer {name} failed"
        for name, count in ungraded.items()
        if not as_scorer(name, experiment.scorers[name]).cheap
    ]
    for each in failures:
        click.echo(f"note: {safe(each)}; repeat with: {safe(command)}", err=True)
    for matches in results.matches_facts():
        suggest_judging_again(matches, command)


def _note_smaller_runs(before: Mapping[str, Run], results: Results, store: FolderStore) -> None:
    """Notes which names now refer to runs of fewer examples than before."""
    for run in (result.run for result in results.tasks):
        if (earlier := before.get(run.name or "")) is None:
            continue
        now, then = (each.manifest["spec"]["examples"] for each in (run, earlier))
        if now >= then:
            continue
        made = f"a run of {plural(now, 'example')}; that of {then:,}"
        note_renamed(run.name, made, earlier.id, store.root, "without --limit, --where and --until to name it again")


def _carry_out_until(
    rule: Gate,
    experiment: Experiment,
    store: FolderStore,
    progress: Display,
    again: Sequence[str] | None,
    allow_unmeasured: bool,
    options: Mapping[str, Any],
) -> tuple[Results, Stop]:
    """Runs an experiment on more and more examples until a gate is decided, see `run_until` and `carry_out`."""
    most = min(len(experiment.dataset), options["limit"] or len(experiment.dataset))

    def carry_out_drawn(drawn: int) -> Results:
        part = experiment.drawn(drawn, most, rule.text)
        return carry_out(part, store, progress, again, **{**options, "limit": None})

    check = partial(
        check_gates,
        [rule],
        measures=experiment.measures_of_all_rows,
        allow_unmeasured_judges=allow_unmeasured,
        drawn_from=experiment.dataset,
    )
    return run_until(most, carry_out_drawn, lambda found: check(found.evaluations))


def _write_report(store: FolderStore, title: str, results: Results, gates: Sequence[Facts]) -> None:
    """Writes the report of an experiment and its gates: of its aggregation, or of its matches if nothing was graded."""
    from evaluand.cli.report import write

    aggregation = results.aggregation
    ids = [each.id for each in (results.matches.values() if aggregation is None else [aggregation])]
    path, *_ = write(store, ids, title=title, gates=gates)
    click.echo(f"written: {safe(path)}", err=True)


def carry_out(
    experiment: Experiment, store: FolderStore, progress: Display, again: Sequence[str] | None = None, **options: Any
) -> Results:
    """Runs an experiment; if it stops early, reports how far it is and how to continue.

    Args:
        again: arguments of the `evaluand run` that continues it, if not `evaluand resume`.
        options: of `Experiment.run`.

    Raises:
        Exit: it was interrupted.
    """
    only = options.get("only")
    if only is not None and only not in experiment.tasks:
        known = ", ".join(experiment.tasks)
        raise SpecError(f"no task is called {only!r}{nearest(only, experiment.tasks)}; there are {known}")
    experiment.policy = replace(experiment.policy, finishing=_print_finishing, sharing=_print_sharing)
    budget = experiment.policy.shared_budget
    with reported_stop(
        store, progress, again, budget=budget, enough=lambda: _find_enough(experiment, store, budget, only)
    ):
        return experiment.run(store, progress=progress, **options)


@contextmanager
def reported_stop(
    store: FolderStore,
    progress: Display,
    again: Sequence[str] | None = None,
    *,
    can_resume: bool = True,
    budget: Budget | None = None,
    enough: Callable[[], Budget | None] = lambda: None,
) -> Iterator[None]:
    """A block that, if it stops early, reports how far the work is and how to continue.

    Args:
        again: arguments of the `evaluand run` that continues the work, if not `evaluand resume`.
        can_resume: whether `evaluand resume` knows how to continue it; otherwise only the same command does.
        budget: of the work; if it is spent, the work continues with a larger one.
        enough: the budget that will do; None if nobody knows.

    Raises:
        Exit: it was interrupted.
    """
    try:
        yield
    except KeyboardInterrupt:
        go_on = _suggest(store, again, can_resume, budget) or _SAME_COMMAND
        click.echo(safe(f"interrupted{_describe_progress(progress)}; {go_on}"), err=True)
        raise Exit(INTERRUPTED) from None
    except (Aborted, EngineError) as error:
        is_refused = budget is not None and isinstance(error, Aborted) and error.code == BUDGET
        amount, remark = _larger_budget(budget, enough) if budget and is_refused else (budget, "")
        if go_on := _suggest(store, again, can_resume, amount):
            error.add_note(f"stopped{_describe_progress(progress)}; {remark}{go_on}")
        raise


def _larger_budget(budget: Budget, enough: Callable[[], Budget | None]) -> tuple[Budget | str, str]:
    """The budget with which the work continues, and a remark on it."""
    if other := budget.other_currency:
        if budget.spent:
            return f"AMOUNT {other}", f"state all prices in {budget.currency}, as no budget counts two currencies; "
        return f"AMOUNT {other}", f"give the budget in {other}, or all prices in {budget.currency}; "
    if not budget.is_spent:
        return budget, ""
    if (found := enough()) is not None:
        return found, f"the rest will cost about {found.cost - budget.spent:.2g} {budget.currency}; "
    return f"AMOUNT {budget.currency}", "nobody knows yet what the rest costs; "


def _find_enough(experiment: Experiment, store: FolderStore, budget: Budget | None, only: str | None) -> Budget | None:
    """A budget that will do for the experiment; None if nobody knows."""
    if budget is None or store.opened is None or store.opened["kind"] not in ("runs", "evaluations"):
        return None
    return sufficient_budget(budget, experiment, store, store.opened, only)


def print_results(
    results: Results, store: FolderStore, gates: Sequence[Facts] = (), *, as_json: bool, quiet: bool = False
) -> bool:
    """Prints the results of an experiment and of its gates.

    Returns:
        Whether every call of a task failed, or a scorer or a judge everywhere, or a metric could not take the scores,
        or systems were not rated.
    """
    facts = results_facts(results.tasks, results.aggregation, results.matches_facts(), results.comparison)
    name_store_in([*facts["judges"], *(judge for each in facts["matches"] for judge in each["judges"])])
    if as_json:
        print_json(facts | ({"gates": gates} if gates else {}))
    else:
        show(results_table(facts, quiet=quiet))
        show_gates(gates)
    if not (as_json or quiet):
        for headline in facts["headlines"]:
            click.echo(f"\n{safe(headline)}")
        _print_usage(facts)
        graded = facts["aggregation"]
        made_now = [("matches", each) for each in facts["matches"]] if graded is None else [("aggregation", graded)]
        for kind, made in made_now:
            name = shown_name(made["name"] or made["id"][:SHORT_ID])
            more = suggest_command("show", name, store.root)
            click.echo(f"\n{kind} {made['id'][:SHORT_ID]}; more: {safe(more)}")
            if kind == "aggregation":
                click.echo(f"report: {safe(suggest_command('report', name, store.root))}")
        systems = [*dict.fromkeys(task["run"]["name"] for task in facts["tasks"] if task["evaluation"] is not None)]
        if len(systems) > 1 and None not in systems:
            click.echo(f"compare: {safe(suggest_command('compare', [*map(shown_name, systems[:2])], store.root))}")
    failures = list_failures(results, facts)
    for failure in failures:
        click.echo(f"error: {safe(failure)}", err=True)
    return bool(failures)


def list_failures(results: Results, facts: Facts) -> list[str]:
    """Why the results of an experiment are an error: see `print_results`.

    Args:
        facts: of the results, as `results_facts` returns them.
    """
    made = zip(results.tasks, facts["tasks"], strict=True)
    failures = [each for one, task in made for each in (*_failed_calls(one, task), *_failed_scorers(one, task))]
    failures += (text for each in facts["matches"] for text in match_failures(each))
    refused = (row for row in facts["metrics"] if not row["by"] and (row["reason"] or "").startswith(REFUSED))
    failures += dict.fromkeys(f"task {row['task']!r}: {row['reason'].removeprefix(REFUSED)}" for row in refused)
    return failures


def _print_usage(facts: Facts) -> None:
    """Prints what the command has used, if it, or a row that it shows, has used anything."""
    total = UsageTotal.read(facts["usage"])
    steps = [*(task[name] or {} for task in facts["tasks"] for name in ("run", "evaluation")), *facts["matches"]]
    if not any(step.get("usage") for step in steps):
        return
    is_partial = any((step.get("receipt") or {}).get("usage", {}) is None for step in steps)
    others = ", and what other processes finished" if is_partial else ""
    click.echo(f"\nthis command: {safe(total if total else 'nothing asked')}{others}")


def _failed_calls(result: Result, task: Facts) -> Iterator[str]:
    counts = task["run"]["counts"]
    if set(counts) == {FAILED}:
        every = f"all {counts[FAILED]:,} calls" if counts[FAILED] > 1 else "the one call"
        age = _describe_age(result.run)
        yield f"{every} of task {result.task!r} failed{age}: {task['missing'][0]['reason']}"


def _failed_scorers(result: Result, task: Facts) -> Iterator[str]:
    for scorer, counts in (task["evaluation"] or {"counts": {}})["counts"].items():
        reasons = [m for m in task["missing"] if m["scorer"] == scorer and m["reason"] != NO_ANSWER.reason]
        if SCORED not in counts and {m["status"] for m in reasons} == {FAILED}:
            assert result.evaluation is not None
            failed = sum(m["count"] for m in reasons)
            every = f"all {failed:,} rows" if failed > 1 else "the one row"
            reason = reasons[0]["reason"].removeprefix("scorer: ")
            age = _describe_age(result.evaluation)
            yield f"scorer {scorer!r} failed on {every} of task {result.task!r}{age}: {reason}"


def _describe_age(made: Run | Evaluation) -> str:
    """When the errors of a step arose, if not in this command."""
    if made.receipt is None or made.receipt.called or not made.manifest.get("sealed"):
        return ""
    return f" (stored error of {minute(made.manifest['sealed'])} UTC)"


def _print_finishing(calls: int) -> None:
    click.echo(f"finishing {plural(calls, 'call')}; Ctrl-C again to stop at once", err=True)


def _print_sharing(others: str) -> None:
    click.echo(safe(others), err=True)


def _describe_progress(progress: Display) -> str:
    tally = progress.last
    return f": {tally.done:,} of {tally.total:,} done ({tally.label})" if tally else ""


_SAME_COMMAND: Final = "run the same command again to continue"


def _suggest(
    store: FolderStore, again: Sequence[str] | None, can_resume: bool, budget: Budget | str | None = None
) -> str:
    """The command that continues the work [with this budget]; empty if nothing is open that `evaluand resume` finds."""
    if not can_resume:
        return _SAME_COMMAND
    limit = [] if budget is None else ["--budget", str(budget)]
    if again is not None:
        return f"continue with: {suggest_command('run', [*again, *limit], store.root)}"
    opened = store.opened
    if opened is None or store.is_sealed(opened["kind"], opened["id"]):
        return ""
    return f"continue with: {suggest_command('resume', [opened['id'][:SHORT_ID], *limit], store.root)}"
