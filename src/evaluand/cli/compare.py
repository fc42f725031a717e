"""`evaluand compare`: compares runs on the same examples, and checks gates."""

from dataclasses import dataclass
from pathlib import Path

import click
from rich.console import Group, RenderableType

from evaluand.aggregation.aggregator import Aggregation
from evaluand.aggregation.kind import AGGREGATIONS
from evaluand.cli.command import argument, make_command, option
from evaluand.cli.gates import conclude, gate_facts, look_at_any_time, require_gates, show_gates
from evaluand.cli.options import (
    anytime_option,
    confidence_option,
    gate_option,
    json_option,
    judge_option,
    junit_option,
    name_store_in,
    refuse_files,
    store_option,
    suggest_command,
)
from evaluand.cli.output import print_json, print_markdown, show
from evaluand.cli.pairwise import PairwiseOptions, check_options, compare_pairwise
from evaluand.cli.progress import show_notes
from evaluand.comparison.comparing import compare
from evaluand.comparison.gate_metrics import measures_of_gates
from evaluand.comparison.gates import check_gates
from evaluand.comparison.measures import declared_measures, find_artifact, find_evaluations, find_measures
from evaluand.comparison.rule import Gate
from evaluand.core.labels import short_labels
from evaluand.evaluation.evaluator import Evaluation
from evaluand.metrics.base.metric import Missing
from evaluand.report.facts.judges import judge_facts
from evaluand.report.terminal.comparison import comparison_table, gates_table
from evaluand.report.terminal.judges import standings_table
from evaluand.report.text import SHORT_ID, safe
from evaluand.store.addresses import Place
from evaluand.store.folder_store import FolderStore
from evaluand.store.opening import open_store

_EXAMPLES = """\b
Examples:
  evaluand compare support/base support/mine
  evaluand compare support --metric accuracy
  evaluand compare base mine --gate "accuracy not worse than baseline by 0.02"
  evaluand compare base mine --gate "accuracy >= 0.9" --junit gates.xml
  evaluand compare base mine --by topic --where 'level >= 3'
  evaluand compare prompts --over prompt
  evaluand compare --pairwise support/base support/mine support/new --judge judge.py:better
"""


@dataclass(frozen=True, kw_only=True)
class _Options:
    artifacts: tuple[str, ...] = argument(metavar="ID|NAME...", nargs=-1, required=True, callback=refuse_files)
    scorers: tuple[str, ...] = option(
        "Only this scorer; repeatable.  [default: all that they share]", "--scorer", metavar="NAME"
    )
    metrics: tuple[str, ...] = option(
        "Such as accuracy, as the experiment declares it; repeatable.", "--metric", metavar="KIND"
    )
    missing: Missing | None = option("How rows without a score count; of matches: see `evaluand rate`.")
    confidence: float = confidence_option
    flips: int = option("Examples to show.", type=click.IntRange(min=0), default=3, show_default=True, metavar="N")
    by: tuple[str, ...] = option("Also the difference in each group of an attribute; repeatable.", metavar="ATTRIBUTE")
    where: str | None = option(
        "Only examples whose attributes match, such as 'sex == \"F\" and age > 30'.", metavar="CONDITION"
    )
    over: str | None = option(
        "The effect of prompts, or of models, in a matrix of both: `prompt` or `model`.", metavar="FACTOR"
    )
    pairwise: PairwiseOptions
    gates: tuple[str, ...] = gate_option
    junit: Path | None = junit_option
    anytime: bool = anytime_option
    allow_unmeasured: bool = judge_option
    markdown: bool = option("Print Markdown, for a step summary or a pull request.")
    folder: Place = store_option
    as_json: bool = json_option


@make_command("compare", epilog=_EXAMPLES)
def command(options: _Options) -> None:
    """Compare evaluations row by row: is the second better than the first?

    Name evaluations, runs (their newest evaluation is taken) or an aggregation (all of its evaluations). Rows are
    paired by the content of their example, whatever file they came from. Gates must hold for all but the first, which
    is the baseline; the exit code is 3 if one fails.

    With --pairwise a judge compares the responses of the runs, or of the runs that were evaluated, two by two. Earlier
    judgements of the same responses by the same judge are reused, so an added run costs only the pairs with it.
    """
    pairwise = options.pairwise
    check_options(click.get_current_context(), pairwise.pairwise)
    if options.markdown and (options.as_json or pairwise.pairwise):
        raise click.UsageError(f"--markdown cannot be combined with {'--json' if options.as_json else '--pairwise'}")
    if pairwise.pairwise and options.anytime:
        raise click.UsageError("--anytime is for gates on metrics, not for --pairwise")
    if pairwise.pairwise:
        of_both = ("confidence", "gates", "junit", "allow_unmeasured")
        chosen = vars(pairwise) | {name: getattr(options, name) for name in of_both}
        return compare_pairwise(open_store(options.folder), options.artifacts, chosen, as_json=options.as_json)
    if options.gates and options.where is not None:
        raise click.UsageError('--where does not reach gates; write the group in a gate: "accuracy[topic=x] >= 0.9"')
    rules = look_at_any_time([*map(Gate.parse, options.gates)], anytime=options.anytime, where="--gate")
    store = open_store(options.folder)
    labels, evaluations = zip(
        *(found for text in options.artifacts for found in _find_labelled(store, text)), strict=True
    )
    declared = find_measures(store, options.artifacts)
    require_gates(options.gates, options.junit)
    short = short_labels(labels, [e.id for e in evaluations])
    known = declared_measures(evaluations) if declared is None else declared
    usual = options.scorers[0] if len(options.scorers) == 1 else None
    results = gate_facts(
        check_gates(
            rules if len(evaluations) > 1 else [],  # else `compare` raises the more helpful error
            dict(zip(short, evaluations, strict=True)),
            short[0],
            measures=declared,
            scorer=usual,
            missing=options.missing,
            allow_unmeasured_judges=options.allow_unmeasured,
        )
    )
    with show_notes():
        comparison = compare(
            *evaluations,
            scorers=options.scorers,
            metrics=options.metrics,
            missing=options.missing,
            confidence=options.confidence,
            flips=options.flips,
            labels=labels,
            declared=declared,
            by=options.by,
            where=options.where,
            over=options.over,
            primary=measures_of_gates(rules, evaluations, known, usual) or None,
        )
    judges = judge_facts(dict(zip(labels, evaluations, strict=True)))
    name_store_in(judges)
    if options.as_json:
        print_json(comparison.to_dict() | {"judges": judges, "gates": results})
    elif options.markdown:
        parts: list[RenderableType] = [gates_table(results)] if results else []
        parts += [comparison_table(comparison.to_dict())] + ([standings_table(judges)] if judges else [])
        print_markdown(Group(*parts))
    else:
        show(comparison_table(comparison.to_dict()))
        if judges:
            click.echo()
            show(standings_table(judges))
        show_gates(results)
        again = suggest_command("show", comparison.id[:SHORT_ID], store.root)
        click.echo(f"\ncomparison {comparison.id[:SHORT_ID]}; again: {safe(again)}")
    conclude(results, options.junit, comparison.caveats)


def _find_labelled(store: FolderStore, text: str) -> list[tuple[str, Evaluation]]:
    """The evaluations that a name or id refers to, each with its label."""
    kind, id = find_artifact(store, text)
    found = find_evaluations(store, text)
    if kind == AGGREGATIONS:  # its labels, since one run may be that of several tasks
        return [*zip(Aggregation(store, id).labels, found, strict=True)]
    if store.named(text):
        return [(text, found[0])]
    return [(e.name or e.id[:SHORT_ID], e) for e in found]
