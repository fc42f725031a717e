"""`evaluand run`: runs an experiment file from beginning to end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import click

from evaluand.cli.carry_out import RepeatOptions, carry_out, words_to_repeat
from evaluand.cli.command import make_command, option
from evaluand.cli.engines import EngineOptions, engine_chosen
from evaluand.cli.file_gates import check_baselines, names_in_file
from evaluand.cli.gates import conclude, gate_facts, has_results, look_at_any_time, require_gates
from evaluand.cli.matches import note_unpinned, suggest_judging_again
from evaluand.cli.notes import note_renamed
from evaluand.cli.options import (
    anytime_option,
    budget_option,
    experiment_argument,
    gate_option,
    json_option,
    judge_option,
    junit_option,
    model_option,
    store_option,
    suggest_command,
    where_option,
)
from evaluand.cli.output import stdout_to_stderr
from evaluand.cli.progress import Display, display, show_notes
from evaluand.cli.results import print_results
from evaluand.cli.until import Stop, parse_until, positions_in, run_until
from evaluand.cli.watched import watch_in_browser
from evaluand.comparison.gates import check_gates
from evaluand.comparison.measures import find_evaluations
from evaluand.comparison.rule import Gate
from evaluand.core.errors import EvaluandError, plural
from evaluand.core.provenance import AFTER_LOOKS, look_for_git_changes
from evaluand.engine.budget import Budget
from evaluand.evaluation.scorer import as_scorer
from evaluand.experiment.experiment import Experiment
from evaluand.experiment.gates import check_experiment_gates, choose_baseline, evaluate_experiment_gates
from evaluand.predictions.steps import Results, Steps
from evaluand.report.facts.base import Facts
from evaluand.report.facts.run import missing_facts
from evaluand.report.text import safe
from evaluand.run.request import ExperimentRequest
from evaluand.run.runner import Run
from evaluand.run.task import as_task
from evaluand.store.addresses import Place
from evaluand.store.folder_store import FolderStore
from evaluand.store.opening import open_store
from evaluand.store.store import caveats
from evaluand.store.tables import FAILED
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


def _take_one(ctx: click.Context, param: click.Parameter, values: tuple[str, ...]) -> str | None:
    if len(values) > 1:
        raise click.UsageError(f"{param.opts[0]} is given {len(values)} times; one rule decides when to stop", ctx)
    return next(iter(values), None)


@dataclass(frozen=True, kw_only=True)
class _Options:
    file: Path = experiment_argument
    limit: int | None = option("Only the first N examples.", type=click.IntRange(min=1), metavar="N")
    where: str | None = where_option
    task: str | None = option("Only this task of the experiment.", metavar="NAME")
    model: str | None = model_option
    repeat: RepeatOptions
    budget: Budget | None = budget_option
    engine: EngineOptions
    gates: tuple[str, ...] = gate_option
    junit: Path | None = junit_option
    anytime: bool = anytime_option
    until: str | None = option(
        "Run more and more examples until this gate is decided.", metavar="RULE", multiple=True, callback=_take_one
    )
    allow_unmeasured: bool = judge_option
    view: bool = option("Watch it in a browser; see `evaluand view`.")
    report: bool = option("Also write the report NAME.html; see `evaluand report`.")
    force: bool = option("With --report: replace a file that is no report of this experiment.")
    git_changes: bool = option(
        "Ask git whether files have changed since the commit, and store the answer. No hook or filter runs."
    )
    folder: Place = store_option
    as_json: bool = json_option
    quiet: bool = option("Print only the values.")


@make_command("run", epilog=_EXAMPLES)
def command(options: _Options) -> None:
    """Run an experiment: call every task, grade every response, summarise, compare the tasks, judge matches.

    FILE is the experiment file; without it, the only one of this folder.

    Only what is not stored yet is computed: run it again after a change, with a higher limit, or after an interruption.
    What tasks print goes to stderr. The exit code is 1 if every call of a task failed, or a scorer failed on every row,
    or a judge on every comparison, or a metric cannot use the scores, and 3 if a gate of the file or of --gate fails.
    """
    if options.force and not options.report:
        raise click.UsageError("--force needs --report")
    request = ExperimentRequest(**vars(options.repeat.request(options.limit)), only=options.task)
    if options.until and (request.fresh or request.retry_failed):
        raise click.UsageError("--until looks several times; leave out --fresh and --retry-failed")
    last_rule = None if options.until is None else parse_until(options.until)
    store = open_store(options.folder)
    watching = watch_in_browser(options.folder) if options.view else nullcontext()
    with stdout_to_stderr(), show_notes(), look_for_git_changes() if options.git_changes else nullcontext(), watching:
        experiment = _read_experiment(options, store)
        tasks = [options.task] if options.task else [*experiment.tasks]
        gates = _read_gates(options, last_rule, experiment, tasks, store)
        baseline = choose_baseline(gates, tasks)
        for tournament in experiment.matches if options.task is None else ():
            note_unpinned(tournament, in_yaml=True)
        is_part = options.limit is not None or options.where or options.until
        named_before = _runs_named(store, map(experiment.run_name, tasks)) if is_part else {}
        words = words_to_repeat([str(options.file)])
        words += [] if options.task is None else ["--task", options.task]
        is_several = len(tasks) > 1 and not (request.fresh or request.retry_failed)
        again = ["run", *words] if is_several or options.until else None  # `resume` continues one task, the file all
        progress, stop = display(options.as_json, options.quiet), None
        if last_rule is None:
            results = carry_out(experiment, store, request, progress, again)
        else:
            allowed = options.allow_unmeasured or experiment.allow_unmeasured_judges
            experiment = _only_shared(experiment, last_rule, tasks, store)
            results, stop = _carry_out_until(last_rule, baseline, experiment, store, request, progress, again, allowed)
    checked: list[Facts] = []
    try:
        with stdout_to_stderr(), show_notes():
            allowed = options.allow_unmeasured
            evaluated = evaluate_experiment_gates(gates, experiment, results, baseline, allow_unmeasured_judges=allowed)
            checked = gate_facts(evaluated)
            if stop is not None and last_rule is not None:
                checked = _say_why_it_stopped(checked, last_rule, stop)
    finally:
        failed = print_results(results, store, checked, as_json=options.as_json, quiet=options.quiet)
        if not options.quiet:
            retried = [*(word for word in words if word != "--no-calls"), "--retry-failed"]
            suggest_retries(results, experiment, suggest_command("run", retried, store.root))
            _note_smaller_runs(named_before, results, store)
        for note in trades_without_confidences(experiment.tradeoffs, results.evaluations):
            click.echo(f"note: {safe(note)}", err=True)
        if options.report:
            _write_report(store, experiment.name, results, checked)
    made = [(evaluation.kind, evaluation.id) for evaluation in results.evaluations.values()]
    conclude(checked, options.junit, caveats(store, made) if options.junit else (), failed=failed)


def _read_experiment(options: _Options, store: FolderStore) -> Experiment:
    """The experiment of a file, with what the options change."""
    experiment = Experiment.from_file(options.file, model=options.model, store=store)
    if options.where is not None:
        experiment = experiment.where(options.where)
    if options.budget is not None:
        experiment.policy = replace(experiment.policy, budget=options.budget)
    experiment.engine = engine_chosen(experiment.engine, options.engine)
    experiment.engine.check(experiment.policy)
    if options.report and not options.force:
        from evaluand.cli.report import check_replaceable

        check_replaceable(experiment.name)
    return experiment


def _read_gates(
    options: _Options, last_rule: Gate | None, experiment: Experiment, tasks: Sequence[str], store: FolderStore
) -> list[Gate]:
    """The gates of the file and of the options, after checks that they fit."""
    if options.task and experiment.matches:
        click.echo("note: matches compare several tasks, so none are judged with --task", err=True)
    known = names_in_file(options.file, options.model, experiment)
    parsed = [*gates_of_file(experiment, tasks, known), *map(Gate.parse, options.gates)]
    parsed = look_at_any_time(parsed, anytime=options.anytime, where="gates, in the file or by --gate")
    parsed += [] if last_rule is None else [last_rule]
    require_gates(parsed, options.junit, "gates: in the file, or --gate")
    check_baselines(options.file, known, experiment, store)
    check_experiment_gates(parsed, experiment, tasks, store, has_matches=options.task is None)
    return parsed


def _say_why_it_stopped(checked: Sequence[Facts], rule: Gate, stop: Stop) -> list[Facts]:
    """The results of gates, that of the rule of `--until` with when and why it stopped."""
    click.echo(f"{rule.text}: {safe(stop)}", err=True)
    click.echo(f"note: this rule allows for all looks; {AFTER_LOOKS}", err=True)
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


def gates_of_file(experiment: Experiment, tasks: Sequence[str], known: Sequence[str]) -> Iterator[Gate]:
    """The gates of the file, without those that need a task that does not run now.

    Args:
        known: the tasks of the file.
    """
    baseline = choose_baseline(experiment.gates, known)
    for gate in experiment.gates:
        if experiment.is_of_matches(gate):
            if len(tasks) == len(experiment.tasks):
                yield gate
            else:
                click.echo(f"note: gate {safe(gate.text)!r} needs matches; not checked", err=True)
        elif has_results(gate, tasks, known, baseline):
            yield gate


def _runs_named(store: FolderStore, names: Iterable[str]) -> dict[str, Run]:
    """The finished runs that have these names so far, as far as they can be read."""
    found = {}
    for ref in (ref for name in dict.fromkeys(names) for ref in store.named(name)):
        if ref.kind == Run.kind:
            with suppress(EvaluandError):  # what is damaged is not needed
                if store.is_sealed(Run.kind, ref.id):
                    found[ref.name] = Run(store, ref.id)
    return found


def suggest_retries(results: Results, experiment: Steps, command: str) -> None:
    """Notes how many calls of each task, grades of each scorer and judgements failed, with what repeats them.

    What a recorded file lacks is not counted, nor what a pure scorer cannot grade: no repetition changes it.
    """
    failures = [
        f"{plural(count, 'call')} of task {result.task} failed"
        for result in results.tasks
        if as_task(experiment.tasks[result.task]).stored is None
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
        if name in experiment.scorers and not as_scorer(name, experiment.scorers[name]).cheap
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
    baseline: str | None,
    experiment: Experiment,
    store: FolderStore,
    request: ExperimentRequest,
    progress: Display,
    again: Sequence[str] | None,
    allow_unmeasured: bool,
) -> tuple[Results, Stop]:
    """Runs an experiment on more and more examples until a gate is decided, see `run_until` and `carry_out`."""
    most = min(len(experiment.dataset), request.limit or len(experiment.dataset))

    def carry_out_drawn(drawn: int) -> Results:
        part = experiment.drawn(drawn, most, rule.text)
        return carry_out(part, store, replace(request, limit=None), progress, again)

    check = partial(
        check_gates,
        [rule],
        measures=experiment.measures_of_all_rows,
        allow_unmeasured_judges=allow_unmeasured,
        drawn_from=experiment.dataset,
    )
    return run_until(most, carry_out_drawn, lambda found: check(found.evaluations, baseline))


def _write_report(store: FolderStore, title: str, results: Results, gates: Sequence[Facts]) -> None:
    """Writes the report of an experiment and its gates: of its aggregation, or of its matches if nothing was graded."""
    from evaluand.cli.report import write

    aggregation = results.aggregation
    ids = [each.id for each in (results.matches.values() if aggregation is None else [aggregation])]
    path, *_ = write(store, ids, title=title, gates=gates)
    click.echo(f"written: {safe(path)}", err=True)
