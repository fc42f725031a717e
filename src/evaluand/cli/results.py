"""What commands print about the results of an experiment."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import click

from evaluand.aggregation.aggregator import REFUSED
from evaluand.cli.gates import show_gates
from evaluand.cli.matches import match_failures
from evaluand.cli.options import name_store_in, suggest_command
from evaluand.cli.output import print_json, show
from evaluand.core.labels import shown_name
from evaluand.evaluation.evaluator import Evaluation
from evaluand.evaluation.scorer import NO_ANSWER
from evaluand.models.usage_total import UsageTotal
from evaluand.predictions.steps import Result, Results
from evaluand.report.facts.base import Facts
from evaluand.report.facts.report import results_facts
from evaluand.report.terminal.report import results_table
from evaluand.report.text import SHORT_ID, minute, safe
from evaluand.run.runner import Run
from evaluand.store.folder_store import FolderStore
from evaluand.store.tables import FAILED, SCORED


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
