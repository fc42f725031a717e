"""`evaluand plan`: how many examples a gate or a comparison needs, before anything is spent."""

from collections.abc import Sequence
from dataclasses import dataclass

import click

from evaluand.aggregation.aggregator import Measure
from evaluand.cli.command import argument, make_command, option
from evaluand.cli.options import ShareType, confidence_option, json_option, store_option
from evaluand.cli.output import print_json, show
from evaluand.cli.progress import show_notes
from evaluand.comparison.measures import declared_measures, find_evaluations
from evaluand.comparison.planning import examples_for_width, plan
from evaluand.comparison.rule import Gate
from evaluand.core.errors import SpecError
from evaluand.evaluation.evaluator import Evaluation
from evaluand.report.terminal.plan import plan_table
from evaluand.store.addresses import Place
from evaluand.store.folder_store import FolderStore
from evaluand.store.opening import open_store

_EXAMPLES = """\b
Examples:
  evaluand plan "accuracy better than base" --base 80% --value 85%
  evaluand plan "accuracy not worse than base by 0.02" --base 80% --value 80% --differ 10%
  evaluand plan "accuracy >= 0.9 at 95%" --value 95%
  evaluand plan --base 80% --value 85% --differ 15% --n 200 --n 500
  evaluand plan "mean better than base" --pilot support/base support/mine
  evaluand plan "mean better than base" --pilot a/base a/mine --pilot b/base b/mine
  evaluand plan --value 90% --width 4%
"""


@dataclass(frozen=True, kw_only=True)
class _Options:
    rule: str | None = argument(metavar="[GATE]", required=False)
    value: float | None = option("The assumed share of right rows of the new system.", type=ShareType())
    base: float | None = option("That of the baseline.", type=ShareType())
    differ: float | None = option("The share of rows on which only one of them is right.", type=ShareType())
    pilots: tuple[tuple[str, str], ...] = option(
        "Two evaluations or runs of the same examples, instead of shares; repeat it for other prompts or seeds.",
        "--pilot",
        nargs=2,
        metavar="BASE NEW",
        type=str,
    )
    scorers: tuple[str, ...] = option(
        "Of the pilot; repeat it for other judges of the same.", "--scorer", metavar="NAME", type=str
    )
    power: float = option("How often the answer is to be yes.", type=ShareType(), default="0.8", show_default=True)
    width: float | None = option("Instead: the rows with which the interval of --value is no wider.", type=ShareType())
    numbers: tuple[int, ...] = option(
        "Show the power of this number too; repeatable.", "--n", type=click.IntRange(min=1), metavar="N"
    )
    confidence: float = confidence_option
    folder: Place = store_option
    as_json: bool = json_option


@make_command("plan", epilog=_EXAMPLES)
def command(options: _Options) -> None:
    """Find out how many examples a question needs.

    GATE is a rule as gates have it; without one, the question is whether `evaluand compare` finds the difference.
    Assume the shares of right rows, or name a pilot: two evaluations of a few examples. The power is that of the very
    bound or test which gates and comparisons use.
    """
    if options.width is not None:
        return _show_width(options.rule, options.value, options.width, options.confidence, options.as_json)
    with show_notes():
        store = open_store(options.folder)
        pairs = [_read_pilot(store, names) for names in options.pilots]
        declared = _declared_measures(options.rule, pairs[0], options.scorers) if pairs else []
        found = plan(
            options.rule,
            value=options.value,
            base=options.base,
            differ=options.differ,
            pilot=pairs or None,
            scorer=options.scorers or [each.scorer for each in declared],
            metric=declared[0].metric if declared else None,
            power=options.power,
            confidence=options.confidence,
            at=options.numbers,
        ).to_dict()
    return print_json(found) if options.as_json else show(plan_table(found))


def _show_width(rule: str | None, value: float | None, width: float, confidence: float, as_json: bool) -> None:
    if rule is not None or value is None:
        raise click.UsageError("--width needs --value, and no gate")
    n = examples_for_width(width, value, confidence)
    if as_json:
        return print_json({"value": value, "width": width, "confidence": confidence, "examples": n})
    return click.echo(f"{n:,} examples: the {100 * confidence:g} % interval of {value:g} is at most {width:g} wide")


def _read_pilot(store: FolderStore, names: tuple[str, str]) -> tuple[Evaluation, Evaluation]:
    found = []
    for name in names:
        evaluations = find_evaluations(store, name)
        if len(evaluations) != 1:
            raise SpecError(f"{name!r} refers to {len(evaluations)} evaluations; name one")
        found += evaluations
    return found[0], found[1]


def _declared_measures(
    rule: str | None, evaluations: tuple[Evaluation, Evaluation], scorers: Sequence[str]
) -> list[Measure]:
    """The metric of the rule as the pilot's experiment declares it, with its scorer; none if that is unclear."""
    gate = None if rule is None else Gate.parse(rule)
    kind, named = ("accuracy", None) if gate is None else (gate.metric, gate.scorer)
    wanted = [*scorers, *([named] if named else [])]
    found = [measure for measure in declared_measures(evaluations) if measure.metric.kind == kind]
    found = [measure for measure in found if not wanted or measure.scorer in wanted]
    return found[:1] if wanted or len({measure.scorer for measure in found}) == 1 else []
