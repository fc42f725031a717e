"""`evaluand judge`: measures judges against people's labels, and chooses the best of several."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from evaluand.cli.options import (
    Group,
    complete_artifact,
    confidence_option,
    json_option,
    repeatable,
    store_option,
    suggest_command,
)
from evaluand.cli.output import print_json, show
from evaluand.cli.progress import show_notes
from evaluand.core.errors import NotFound, SpecError, nearest
from evaluand.evaluation.evaluator import Evaluation, find_evaluations_of
from evaluand.judges.cards.card import KIND, make_card
from evaluand.judges.cards.from_evaluation import open_labels, read_labelled_evaluation
from evaluand.judges.cards.from_files import read_labelled_file
from evaluand.judges.cards.labelled_set import LabelledSet
from evaluand.judges.cards.tuning import CRITERION, tune_judges
from evaluand.judges.people.human_labels import human_scorers
from evaluand.matches.column_options import spelled_for
from evaluand.matches.labelled_sets import read_labelled_matches
from evaluand.matches.matches import Matches
from evaluand.report.terminal.judges import card_table, tuning_table
from evaluand.report.text import SHORT_ID, safe
from evaluand.run.runner import Run
from evaluand.store.addresses import Place
from evaluand.store.folder_store import FolderStore
from evaluand.store.opening import open_store
from evaluand.store.store import resolve

_EXAMPLES = """\b
Examples:
  evaluand judge card support/mine --scorer helpful
  evaluand judge card support/mine --scorer helpful --labels support/mine/human
  evaluand judge card labelled.csv --column judgement=gpt --positive good
  evaluand judge card pairs.jsonl --column judgement=first_try --column swapped=second_try
  evaluand judge tune support/mine --scorer short --scorer strict
"""


@click.group("judge", cls=Group, epilog=_EXAMPLES)
def command() -> None:
    """Measure judges on answers that people have labelled.

    Labels come from `evaluand label`, a column of the dataset, or a column of a file. No judge is asked: stored or
    recorded judgements are compared with the labels.
    """


def _read_once(context: click.Context, option: click.Parameter, values: Sequence[str]) -> str | None:
    """The value of an option that may be given once."""
    if len(values) > 1:
        raise click.UsageError(f"{option.opts[0]} is given twice, {' and '.join(values)}; name one word")
    return values[0] if values else None


def _reading_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """The options that say what is read, and on which scale."""
    options = (
        repeatable("--scorer", "scorers", metavar="NAME", help="The judge among the scorers of an evaluation."),
        click.option(
            "--labels",
            metavar="NAME|COLUMN",
            shell_complete=complete_artifact,
            help="The evaluation or matches with the labels, or the column of the dataset.  [default: the newest labels"
            " of the run]",
        ),
        repeatable(
            "--column",
            "columns",
            metavar="FIELD=COLUMN",
            help="FILE: where a field is, such as label=ann or judgement=results[0].winner; repeatable. For stored"
            " labels, label=NAME chooses one of several questions that people answered.",
        ),
        click.option("--judge-version", metavar="TEXT", help="FILE: the version of the judge, its rubric and model."),
        click.option("--by-place", is_flag=True, help="FILE: swapped judgements name the winner's position."),
        click.option("--judge-model", metavar="NAME", help="The model that judges, to find its own answers."),
        repeatable(
            "--word",
            "words",
            metavar="LABEL=VERDICT",
            help="A word of people, and the verdict of the judge that it means; repeatable.",
        ),
        repeatable(
            "--positive",
            callback=_read_once,
            metavar="LABEL",
            help="The word that means right; all others mean wrong.",
        ),
        click.option("--order", metavar="A,B,…", help="All labels, from the lowest to the highest."),
        click.option("--threshold", type=float, metavar="X", help="The judge's lowest number that counts as right."),
        click.option("--people-threshold", type=float, metavar="X", help="People's lowest grade that counts as right."),
    )
    for option in reversed(options):
        function = option(function)
    return function


@command.command("card", short_help="Measure a judge, and store its card.")
@click.argument("source", metavar="NAME|FILE", shell_complete=complete_artifact)
@_reading_options
@click.option("--judge", metavar="NAME", help="FILE: the name of the judge.  [default: that of the file]")
@click.option("--misses", type=click.IntRange(min=0), default=3, show_default=True, metavar="N", help="Misses to show.")
@click.option("--name", metavar="NAME", help="A name for the card.  [default: NAME/JUDGE]")
@confidence_option
@store_option
@json_option
def card(
    source: str,
    judge: str | None,
    misses: int,
    name: str | None,
    confidence: float,
    folder: Place,
    as_json: bool,
    **options: Any,
) -> None:
    """Measure a judge on answers that people have labelled: agreement, errors, biases, cost.

    NAME is an evaluation or a run with a judge among its scorers, or matches. FILE has a column with people's labels,
    and one with the judge's. A file with two responses in each row holds pairs.

    If anything changes that may change a verdict, such as rubric, model or parameters, the card is stale, and gates on
    the judge are refused until it is measured again.
    """
    store = open_store(folder)
    with show_notes(), spelled_for("command"):
        found = _read_source(store, source, judge, options)
        if len(found) > 1:
            names = ", ".join(found)
            raise click.UsageError(f"{source} has several judges: {names}; name one with --scorer")
        [labelled] = found.values()
        named = name or _usual_name(source, labelled)
        made = make_card(labelled, store, name=named, confidence=confidence, **_scale_options(options))
    facts = made.to_dict()
    if as_json:
        return print_json(facts)
    show(card_table(facts, misses))
    _suggest_positive(facts)
    _suggest(store, made.id, named)


@command.command("tune", short_help="Choose a judge on half of the labels.")
@click.argument("sources", metavar="NAME|FILE...", nargs=-1, required=True, shell_complete=complete_artifact)
@_reading_options
@click.option(
    "--by", "criterion", default=CRITERION, show_default=True, metavar="MEASURE", help="The measure to choose by."
)
@click.option("--seed", type=int, default=0, show_default=True, metavar="N", help="Of the split.")
@click.option("--name", metavar="NAME", help="A name for the card.  [default: NAME/JUDGE]")
@confidence_option
@store_option
@json_option
def tune(
    sources: tuple[str, ...],
    criterion: str,
    seed: int,
    name: str | None,
    confidence: float,
    folder: Place,
    as_json: bool,
    **options: Any,
) -> None:
    """Compare judges of the same answers on one half of the labels, and measure the best on the other half.

    The judges are scorers of one or several evaluations, or of several files. The best is measured on other answers
    than it was chosen by, because there the best of many looks better than it is.
    """
    store = open_store(folder)
    with show_notes(), spelled_for("command"):
        candidates: dict[str, LabelledSet] = {}
        for source in sources:
            for label, labelled in _read_source(store, source, None, options).items():
                candidates[label if label not in candidates else f"{source}/{label}"] = labelled
        found = tune_judges(
            candidates,
            store,
            criterion=criterion,
            seed=seed,
            confidence=confidence,
            **_scale_options(options),
        )
        named = name or _usual_name(sources[0], candidates[found.candidates[0].name])
        store.refer(named, KIND, found.card.id)
    facts = found.to_dict()
    if as_json:
        return print_json(facts)
    show(tuning_table(facts))
    _suggest(store, found.card.id, named)


def _usual_name(source: str, labelled: LabelledSet) -> str:
    """The name of a card without one; an unnamed artifact may be removed by `evaluand gc --unreferenced`."""
    return labelled.judge.name if labelled.source is not None else f"{source}/{labelled.judge.name}"


def _suggest_positive(facts: Mapping[str, Any]) -> None:
    """Says what words that mean right and wrong could tell, if nobody has said which one means right."""
    words = list(dict.fromkeys(row["people"] for row in facts["confusion"]))
    if len(words) == 2 and any(row["measure"] == "recall" for row in facts["measures"]):
        click.echo(
            f"\nif {safe(words[0])} or {safe(words[1])} means right, name it with --positive: the card then has"
            " sensitivity and specificity, and means are corrected by it"
        )


def _suggest(store: FolderStore, id: str, name: str) -> None:
    again = suggest_command("show", name, store.root)
    click.echo(f"\ncard {id[:SHORT_ID]}; again: {safe(again)}")


def _scale_options(options: dict[str, Any]) -> dict[str, Any]:
    """The options of `make_card`."""
    order = [word.strip() for word in (options["order"] or "").split(",") if word.strip()]
    return {name: options[name] for name in ("positive", "threshold", "judge_model")} | {"order": order}


def _read_source(store: FolderStore, source: str, judge: str | None, options: dict[str, Any]) -> dict[str, LabelledSet]:
    """The labelled sets of a name or file, by judge.

    Raises:
        UsageError: an option does not suit what it is.
    """
    words = _parse_words(options["words"])
    found = _read_labelled(store, source, judge, options)
    if words:
        found = {name: labelled.with_words(words) for name, labelled in found.items()}
    threshold = options["people_threshold"]
    return found if threshold is None else {name: each.with_threshold(threshold) for name, each in found.items()}


def _parse_words(texts: Sequence[str]) -> dict[str, str]:
    """A word of people → the verdict that it means."""
    words: dict[str, str] = {}
    for text in texts:
        label, _, verdict = (part.strip() for part in text.partition("="))
        if not (label and verdict):
            raise click.UsageError(f"--word {text} must be a word and the verdict that it means, such as good=correct")
        if words.setdefault(label, verdict) != verdict:
            raise click.UsageError(f"--word {label} means {words[label]} and {verdict}; name one verdict")
    return words


def _read_labelled(
    store: FolderStore, source: str, judge: str | None, options: dict[str, Any]
) -> dict[str, LabelledSet]:
    is_file = Path(source).exists()
    try:
        kind, _ = resolve(store, source)
    except NotFound:
        if not is_file:
            names = [ref.name for ref in store.refs() if ref.kind in ("evaluations", "runs", "matches")]
            raise click.UsageError(
                f"{source}: no such file, and nothing stored with this name{nearest(source, names)}"
            ) from None
        return _read_file(source, judge, options)
    for name in ("judge_version", "by_place"):
        if options[name]:
            raise click.UsageError(f"{_flag(name)} is for files, and {source} is stored")
    if judge is not None:
        raise click.UsageError(f"--judge names the judge of a file; of {source} give --scorer")
    if kind == "matches" or _has_only_matches(store, source):
        return _read_stored_matches(store, source, options)
    return _read_stored_evaluation(store, source, options)


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _has_only_matches(store: FolderStore, source: str) -> bool:
    kinds = {ref.kind for ref in store.named(source)}
    return "matches" in kinds and not kinds & {"evaluations", "runs"}


def _read_file(source: str, judge: str | None, options: dict[str, Any]) -> dict[str, LabelledSet]:
    for name in ("scorers", "labels"):
        if options[name]:
            raise click.UsageError(f"{'--scorer' if name == 'scorers' else '--labels'} is not for files; give --column")
    name = judge or Path(source).stem
    columns = _parse_columns(options["columns"])
    chosen = {"version": options["judge_version"], "judge_model": options["judge_model"]}
    return {name: read_labelled_file(source, name, columns=columns, by_place=options["by_place"], **chosen)}


def _parse_columns(texts: Sequence[str]) -> dict[str, list[str]]:
    columns: dict[str, list[str]] = {}
    for text in texts:
        field, equals, column = text.partition("=")
        if not (field and equals and column):
            raise click.UsageError(f"--column {text} must be a field and its column, such as label=ann")
        columns.setdefault(field, []).append(column)
    return columns


def _read_stored_matches(store: FolderStore, source: str, options: dict[str, Any]) -> dict[str, LabelledSet]:
    if options["scorers"]:
        raise click.UsageError(f"--scorer names a scorer of an evaluation, and {source} are matches")
    if options["columns"]:
        raise click.UsageError(f"--column is for files, and {source} is stored")
    labels = None if options["labels"] is None else Matches.open(store, options["labels"])
    labelled = read_labelled_matches(Matches.open(store, source), labels)
    return {labelled.judge.name: labelled}


def _read_stored_evaluation(store: FolderStore, source: str, options: dict[str, Any]) -> dict[str, LabelledSet]:
    evaluation = _find_evaluation(store, source)
    run = evaluation.run
    labels = None if options["labels"] is None or run is None else open_labels(store, options["labels"], run)
    names = options["scorers"] or _judges_of(evaluation, source)
    question = _read_question(options["columns"], source)
    return {name: read_labelled_evaluation(evaluation, name, labels, question) for name in names}


def _read_question(columns: Sequence[str], source: str) -> str | None:
    """Which labels of people answer the question of the judge; None if that is not said."""
    chosen = _parse_columns(columns)
    if not chosen:
        return None
    if [*chosen] != ["label"] or len(chosen["label"]) > 1:
        raise click.UsageError(
            f"--column is for files, and {source} is stored; only --column label=NAME names its labels"
        )
    return chosen["label"][0]


def _find_evaluation(store: FolderStore, source: str) -> Evaluation:
    """The evaluation of a name or id, or the newest one of a run that has other scorers than people.

    Raises:
        SpecError: it is neither, or the run was never evaluated.
    """
    try:
        return Evaluation.open(store, source)
    except NotFound:
        kind, id = resolve(store, source)
    if kind != "runs":
        known = [ref.name for ref in store.refs() if ref.kind == "evaluations" and ref.name.startswith(f"{source}/")]
        such = f", such as {known[0]}" if known else ""
        raise SpecError(f"{source!r} is no evaluation; name an evaluation, a run, matches or a file{such}")
    run = Run(store, id)
    for evaluation in find_evaluations_of(store, run.digest):
        if set(evaluation.scorers) - set(human_scorers(evaluation)):
            return evaluation
    raise SpecError(f"run {source!r} was not evaluated, so there is no judge to measure")


def _judges_of(evaluation: Evaluation, source: str) -> list[str]:
    """The scorers that are judges, or else the only scorer that is not people."""
    judges = [name for name in evaluation.manifest["provenance"].get("judges") or () if name in evaluation.scorers]
    others = [name for name in evaluation.scorers if name not in human_scorers(evaluation)]
    if judges or len(others) == 1:
        return judges or others
    raise click.UsageError(f"{source} has several scorers; name the judge with --scorer: {', '.join(others)}")
