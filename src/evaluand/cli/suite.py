"""`evaluand suite`: runs the same systems on many problems, and compares them over all of these."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click
from rich.console import Group

from evaluand.cli.carry_out import RepeatOptions, reported_stop
from evaluand.cli.command import argument, make_command, option
from evaluand.cli.gates import conclude, gate_facts, require_gates
from evaluand.cli.options import TARGET, json_option, judge_option, model_option, store_option, suggest_command
from evaluand.cli.output import open_output, print_json, print_markdown, show, stdout_to_stderr
from evaluand.cli.progress import display, show_notes
from evaluand.cli.results import list_failures
from evaluand.cli.run import gates_of_file
from evaluand.cli.suite_validation import plans
from evaluand.cli.validate import print_plan, unpinned_notes
from evaluand.comparison.checking import GateResult
from evaluand.comparison.gates import find_candidates
from evaluand.comparison.rule import Gate
from evaluand.core.errors import EvaluandError, SpecError
from evaluand.core.labels import shown_name
from evaluand.experiment.gates import check_experiment_gates, choose_baseline, evaluate_experiment_gates
from evaluand.experiment.suite import Suite
from evaluand.experiment.suite_results import SuiteResults
from evaluand.report.facts.base import Facts
from evaluand.report.facts.report import results_facts
from evaluand.report.terminal.comparison import gates_table
from evaluand.report.terminal.suite import absent_sentences, suite_table
from evaluand.report.text import safe
from evaluand.store.addresses import Place
from evaluand.store.folder_store import FolderStore
from evaluand.store.opening import open_store

_EXAMPLES = """\b
Examples:
  evaluand suite suite.yaml --plan
  evaluand suite suite.yaml --limit 20
  evaluand suite suite.yaml
  evaluand suite suite.yaml --html suite.html
  evaluand suite suite.yaml --markdown >> "$GITHUB_STEP_SUMMARY"
"""


@dataclass(frozen=True, kw_only=True)
class _Options:
    file: Path = argument(type=click.Path(path_type=Path))
    plan: bool = option("Only show the calls that would be made now.")
    limit: int | None = option("Only the first N examples of each problem.", type=click.IntRange(min=1), metavar="N")
    model: str | None = model_option
    repeat: RepeatOptions
    junit: Path | None = option("Write the gates of the problems as JUnit XML.", type=TARGET, metavar="FILE")
    allow_unmeasured: bool = judge_option
    html: Path | None = option("Also write everything to one HTML file.", type=TARGET, metavar="FILE")
    markdown: bool = option("Print Markdown, for a step summary or a pull request.")
    folder: Place = store_option
    as_json: bool = json_option
    quiet: bool = option("Show no progress.")


@make_command("suite", epilog=_EXAMPLES)
def command(options: _Options) -> None:
    """Run the tasks of a suite on all of its problems, and compare them: scores, mean ranks, means, and cost.

    Each problem is an experiment, SUITE/PROBLEM, which `evaluand show`, `compare` and `report` find by that name. Only
    what is not stored yet is computed. A system that fails on a problem leaves the scores of the others, and the exit
    code is 1; it is 3 if a gate of a problem fails.
    """
    request = options.repeat.request(options.limit)
    if options.markdown and options.as_json:
        raise click.UsageError("give one of --markdown and --json")
    if options.plan and not request.calls:
        raise click.UsageError("--plan shows calls, and with --no-calls there are none")
    store = open_store(options.folder)
    with stdout_to_stderr(), show_notes():
        suite = Suite.from_file(options.file, model=options.model)
        gates = _gates_of(suite, store)
        require_gates([gate for each in gates.values() for gate in each], options.junit, "gates: in a problem")
        notes = (note for one in suite.problems.values() for note in unpinned_notes(one))
        for note in dict.fromkeys(notes) if request.calls else ():
            click.echo(f"note: {safe(note)}", err=True)
        planned = plans(suite, store, request) if options.plan else []
    if options.plan:
        return _show_plan(planned, options.as_json)
    progress = display(options.as_json, options.quiet)
    with stdout_to_stderr(), show_notes(), reported_stop(store, progress, can_resume=False):
        results = suite.run(store, progress=progress, **vars(request))
        facts = results.to_dict()
        checked = _check_gates(suite, results, gates, options.allow_unmeasured)
        others = _list_other_failures(results, facts)
        facts |= {"gates": checked, "failures": [*absent_sentences(facts), *others]}
    if options.html is not None:
        _write_page(options.html, facts)
    _print(facts, as_json=options.as_json, markdown=options.markdown)
    if not (options.as_json or options.markdown or options.quiet):
        named = next((each.experiment for each in results.problems if each.is_complete), None)
        if named is not None:
            more = suggest_command("show", shown_name(named), store.root)
            click.echo(f"\neach problem is an experiment; more: {safe(more)}")
    for failure in (*absent_sentences(facts, with_reason=False), *others):
        click.echo(f"error: {safe(failure)}", err=True)
    return conclude(checked, options.junit, facts["caveats"], failed=bool(facts["failures"]))


def _gates_of(suite: Suite, store: FolderStore) -> dict[str, list[Gate]]:
    """The gates of each problem.

    Raises:
        SpecError: lists those that could never be checked.
    """
    found, faults = dict[str, list[Gate]](), []
    for name, experiment in suite.problems.items():
        try:
            found[name] = [*gates_of_file(experiment, suite.systems, suite.systems)]
            check_experiment_gates(found[name], experiment, suite.systems, store)
        except EvaluandError as error:
            faults += [f"problems.{name}: {line}" for line in str(error).split("\n")]
    if faults:
        raise SpecError("\n".join(faults))
    return found


def _check_gates(
    suite: Suite, results: SuiteResults, gates: Mapping[str, Sequence[Gate]], allow_unmeasured: bool
) -> list[Facts]:
    """The results of the gates of all problems; the subject begins with the problem.

    A gate that needs a system without results fails.
    """
    checked = []
    for each in results.problems:
        experiment, without, judged = suite.problems[each.problem], each.without(suite.systems), list[Gate]()
        undecided: list[GateResult] = []
        baseline = suite.control or choose_baseline(gates[each.problem], suite.systems)
        names = {system: experiment.run_name(system) for system in suite.systems}
        for gate in sorted(gates[each.problem], key=experiment.is_of_matches):
            of_matches = experiment.is_of_matches(gate)
            candidates = [] if of_matches else find_candidates(gate, names, baseline)
            compares = of_matches or gate.baseline is not None
            for subject in candidates or [gate.scorer or "judge"]:
                absent = [name for name in without if name == subject or (compares and name not in candidates)]
                if absent:
                    undecided.append(GateResult.undecided(gate, subject, f"undefined: no result of {absent[0]}"))
                elif gate not in judged:
                    judged.append(gate)
        found: list[GateResult] = []
        if each.results is not None:
            found += evaluate_experiment_gates(
                judged, experiment, each.results, baseline, allow_unmeasured_judges=allow_unmeasured
            )
        facts = gate_facts([*found, *undecided])
        checked += [one | {"subject": f"{each.problem}/{one['subject']}"} for one in facts]
    return checked


def _list_other_failures(results: SuiteResults, facts: Facts) -> list[str]:
    """What failed in the problems besides their systems: a scorer on all rows, a judge, a metric."""
    failures: list[str] = []
    for each, problem in zip(results.problems, facts["problems"], strict=True):
        if each.results is None:
            continue
        failed = {value["system"] for value in problem["values"] if value["state"] == "failed"}
        made = replace(each.results, tasks=[one for one in each.results.tasks if one.task not in failed])
        own: dict[str, Any] = results_facts(made.tasks, made.aggregation, made.matches_facts())
        failures += [f"problem {each.problem}: {text}" for text in list_failures(made, own)]
    return failures


def _show_plan(planned: Sequence[Facts], as_json: bool) -> None:
    if as_json:
        return print_json({"problems": planned})
    for problem in planned:
        print_plan(problem, problem["problem"])
    return None


def _write_page(path: Path, facts: Facts) -> None:
    from evaluand.report.html.suite import suite_page  # on use: the other forms do without

    with open_output(path) as out:
        out.write(suite_page(facts).encode())
    click.echo(f"written: {safe(str(path))}", err=True)


def _print(facts: Facts, *, as_json: bool, markdown: bool) -> None:
    if as_json:
        return print_json(facts)
    tables = Group(suite_table(facts), *(["", gates_table(facts["gates"])] if facts["gates"] else []))
    return print_markdown(tables) if markdown else show(tables)
