"""`evaluand suite`: runs the same systems on many problems, and compares them over all of these."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import click
from rich.console import Group

from evaluand.cli.gates import conclude, gate_facts, judge_option, require_gates
from evaluand.cli.options import TARGET, json_option, model_option, near_options, store_option, suggest_command
from evaluand.cli.output import open_output, print_json, print_markdown, show, stdout_to_stderr
from evaluand.cli.progress import display, show_notes
from evaluand.cli.run import check_all_gates, gates_of_file, list_failures, reported_stop, split_gates
from evaluand.cli.suite_validation import plans
from evaluand.cli.validate import print_plan, unpinned_notes
from evaluand.comparison.checking import GateResult
from evaluand.comparison.rule import Gate
from evaluand.core.errors import EvaluandError, SpecError
from evaluand.core.labels import shown_name
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

_NEAR_OPTIONS: Final = {
    **dict.fromkeys(("-n", "--n", "--max-samples", "--samples"), "--limit N"),
    **dict.fromkeys(("--dry-run", "--check"), "--plan"),
    **dict.fromkeys(("--report", "--output", "-o"), "--html FILE"),
    **dict.fromkeys(("--problem", "--task"), "problems and tasks in the file"),
}

_Gates = Mapping[str, tuple[list[Gate], list[Gate]]]
"""Problem → its gates on metrics, and those on matches."""


@click.command("suite", cls=near_options(_NEAR_OPTIONS), epilog=_EXAMPLES)
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--plan", is_flag=True, help="Only show the calls that would be made now.")
@click.option("--limit", type=click.IntRange(min=1), metavar="N", help="Only the first N examples of each problem.")
@model_option
@click.option("--fresh", is_flag=True, help="Repeat every call and grade.")
@click.option("--retry-failed", is_flag=True, help="Repeat the calls and grades that failed.")
@click.option("--no-calls", is_flag=True, help="Grade and summarise the stored runs without calling tasks.")
@click.option("--junit", type=TARGET, metavar="FILE", help="Write the gates of the problems as JUnit XML.")
@judge_option
@click.option("--html", type=TARGET, metavar="FILE", help="Also write everything to one HTML file.")
@click.option("--markdown", is_flag=True, help="Print Markdown, for a step summary or a pull request.")
@store_option
@json_option
@click.option("--quiet", is_flag=True, help="Show no progress.")
def command(
    file: Path,
    plan: bool,
    limit: int | None,
    model: str | None,
    fresh: bool,
    retry_failed: bool,
    no_calls: bool,
    junit: Path | None,
    allow_unmeasured: bool,
    html: Path | None,
    markdown: bool,
    folder: Place,
    as_json: bool,
    quiet: bool,
) -> None:
    """Run the tasks of a suite on all of its problems, and compare them: scores, mean ranks, means, and cost.

    Each problem is an experiment, SUITE/PROBLEM, which `evaluand show`, `compare` and `report` find by that name. Only
    what is not stored yet is computed. A system that fails on a problem leaves the scores of the others, and the exit
    code is 1; it is 3 if a gate of a problem fails.
    """
    if fresh + retry_failed + no_calls > 1:
        raise click.UsageError("give one of --fresh, --retry-failed and --no-calls")
    if markdown and as_json:
        raise click.UsageError("give one of --markdown and --json")
    if plan and no_calls:
        raise click.UsageError("--plan shows calls, and with --no-calls there are none")
    options: dict[str, Any] = {"limit": limit, "fresh": fresh, "retry_failed": retry_failed}
    store = open_store(folder)
    with stdout_to_stderr(), show_notes():
        suite = Suite.from_file(file, model=model)
        gates = _gates_of(suite, store)
        require_gates(
            [rule for each in gates.values() for rules in each for rule in rules], junit, "gates: in a problem"
        )
        notes = [] if no_calls else [note for one in suite.problems.values() for note in unpinned_notes(one)]
        for note in dict.fromkeys(notes):
            click.echo(f"note: {safe(note)}", err=True)
        planned = plans(suite, store, **options) if plan else []
    if plan:
        return _show_plan(planned, as_json)
    progress = display(as_json, quiet)
    with stdout_to_stderr(), show_notes(), reported_stop(store, progress, can_resume=False):
        results = suite.run(store, progress=progress, calls=not no_calls, **options)
        facts = results.to_dict()
        checked, others = _check_gates(suite, results, gates, allow_unmeasured), _list_other_failures(results, facts)
        facts |= {"gates": checked, "failures": [*absent_sentences(facts), *others]}
    if html is not None:
        _write_page(html, facts)
    _print(facts, as_json=as_json, markdown=markdown)
    if not (as_json or markdown or quiet):
        named = next((each.experiment for each in results.problems if each.is_complete), None)
        if named is not None:
            more = suggest_command("show", shown_name(named), store.root)
            click.echo(f"\neach problem is an experiment; more: {safe(more)}")
    for failure in (*absent_sentences(facts, with_reason=False), *others):
        click.echo(f"error: {safe(failure)}", err=True)
    return conclude(checked, junit, failed=bool(facts["failures"]))


def _gates_of(suite: Suite, store: FolderStore) -> _Gates:
    """The gates of each problem.

    Raises:
        SpecError: lists those that could never be checked.
    """
    found, faults = {}, []
    for name, experiment in suite.problems.items():
        try:
            rules = [*gates_of_file(experiment, suite.systems, suite.systems)]
            found[name] = split_gates(experiment, rules, suite.systems, True, store)
        except EvaluandError as error:
            faults += [f"problems.{name}: {line}" for line in str(error).split("\n")]
    if faults:
        raise SpecError("\n".join(faults))
    return found


def _check_gates(suite: Suite, results: SuiteResults, gates: _Gates, allow_unmeasured: bool) -> list[Facts]:
    """The results of the gates of all problems; the subject begins with the problem.

    A gate that needs a system without results fails.
    """
    checked = []
    for each in results.problems:
        (rules, of_matches), without = gates[each.problem], each.without(suite.systems)
        judged = [gate for gate in rules if gate.baseline not in without and len(without) < len(suite.systems)]
        found: list[Facts] = []
        if each.results is not None and (judged or (of_matches and not without)):
            matches = () if without else of_matches
            found = check_all_gates(suite.problems[each.problem], judged, matches, each.results, allow_unmeasured)
        found += gate_facts(_undecided(rules, of_matches, suite.systems, without))
        checked += [one | {"subject": f"{each.problem}/{one['subject']}"} for one in found]
    return checked


def _undecided(
    rules: Sequence[Gate], of_matches: Sequence[Gate], systems: Sequence[str], without: Collection[str]
) -> Iterator[GateResult]:
    """The gates of a problem that cannot be checked, as some systems have no results."""
    for gate in rules:
        for system in systems:
            absent = [name for name in (system, gate.baseline) if name in without]
            if absent and system != gate.baseline:
                yield GateResult.undecided(gate, system, f"undefined: no result of {absent[0]}")
    for gate in of_matches if without else ():
        yield GateResult.undecided(gate, gate.scorer or "judge", f"undefined: no result of {next(iter(without))}")


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
