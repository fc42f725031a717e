"""`evaluand judge`: measures judges against people's labels, and chooses the best of several."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from evaluand.cli.command import LINES, argument, make_command, option
from evaluand.cli.options import (
    complete_artifact,
    confidence_option,
    is_stored,
    json_option,
    store_option,
    suggest_command,
)
from evaluand.cli.output import print_json, show
from evaluand.cli.progress import show_notes
from evaluand.core.errors import NotFound, SpecError
from evaluand.evaluation.evaluator import Evaluation, find_evaluations_of
from evaluand.evaluation.kind import EVALUATIONS
from evaluand.evaluation.people_labels import human_scorers
from evaluand.judges.cards.card import make_card
from evaluand.judges.cards.from_evaluation import open_labels, read_labelled_evaluation
from evaluand.judges.cards.labelled_set import LabelledSet
from evaluand.judges.cards.tuning import CRITERION, tune_judges
from evaluand.judges.kind import CARDS
from evaluand.matches.battle_rows import spelled_for
from evaluand.matches.kind import MATCHES
from evaluand.matches.labelled_sets import read_labelled_file, read_labelled_matches
from evaluand.matches.matches import Matches
from evaluand.report.terminal.judges import card_table, tuning_table
from evaluand.report.text import SHORT_ID, safe
from evaluand.run.kind import RUNS
from evaluand.run.runner import Run
from evaluand.store.addresses import Place
from evaluand.store.folder_store import FolderStore
from evaluand.store.opening import open_store
from evaluand.store.store import give_name, resolve

_EXAMPLES = """\b
Examples:
  evaluand judge card support/mine --scorer helpful
  evaluand judge card support/mine --scorer helpful --labels support/mine/human
  evaluand judge card labelled.csv --column judgement=gpt --positive good
  evaluand judge card pairs.jsonl --column judgement=first_try --column swapped=second_try
  evaluand judge tune support/mine --scorer short --scorer strict
"""


@click.group("judge", epilog=_EXAMPLES)
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


@dataclass(frozen=True, kw_only=True)
class _Reading:
    """The options that say what is read, and on which scale."""

    scorers: tuple[str, ...] = option("The judge among the scorers of an evaluation.", "--scorer", metavar="NAME")
    labels: str | None = option(
        "The evaluation or matches with the labels, or the column of the dataset.  [default: the newest labels"
        " of the run]",
        metavar="NAME|COLUMN",
        shell_complete=complete_artifact,
    )
    columns: tuple[str, ...] = option(
        "FILE: where a field is, such as label=ann or judgement=results[0].winner; repeatable. For stored"
        " labels, label=NAME chooses one of several questions that people answered.",
        "--column",
        metavar="FIELD=COLUMN",
    )
    judge_version: str | None = option("FILE: the version of the judge, its rubric and model.", metavar="TEXT")
    by_place: bool = option("FILE: swapped judgements name the winner's position.")
    judge_model: str | None = option("The model that judges, to find its own answers.", metavar="NAME")
    words: tuple[str, ...] = option(
        "A word of people, and the verdict of the judge that it means; repeatable.", "--word", metavar="LABEL=VERDICT"
    )
    positive: str | None = option(
        "The word that means right; all others mean wrong.",
        multiple=True,
        type=LINES,
        callback=_read_once,
        metavar="LABEL",
    )
    order: str | None = option("All labels, from the lowest to the highest.", metavar="A,B,…")
    threshold: float | None = option("The judge's lowest number that counts as right.", metavar="X")
    people_threshold: float | None = option("People's lowest grade that counts as right.", metavar="X")

    @property
    def scale(self) -> dict[str, Any]:
        """The options of `make_card`."""
        order = [word.strip() for word in (self.order or "").split(",") if word.strip()]
        return {
            "positive": self.positive,
            "threshold": self.threshold,
            "judge_model": self.judge_model,
            "order": order,
        }


@dataclass(frozen=True, kw_only=True)
class _CardOptions:
    source: str = argument(metavar="NAME|FILE", shell_complete=complete_artifact)
    reading: _Reading
    judge: str | None = option("FILE: the name of the judge.  [default: that of the file]", metavar="NAME")
    misses: int = option("Misses to show.", type=click.IntRange(min=0), default=3, show_default=True, metavar="N")
    name: str | None = option("A name for the card.  [default: NAME/JUDGE]", metavar="NAME")
    confidence: float = confidence_option
    folder: Place = store_option
    as_json: bool = json_option


@make_command("card", command, short_help="Measure a judge, and store its card.")
def card(options: _CardOptions) -> None:
    """Measure a judge on answers that people have labelled: agreement, errors, biases, cost.

    NAME is an evaluation or a run with a judge among its scorers, or matches. FILE has a column with people's labels,
    and one with the judge's. A file with two responses in each row holds pairs.

    If anything changes that may change a verdict, such as rubric, model or parameters, the card is stale, and gates on
    the judge are refused until it is measured again.
    """
    store = open_store(options.folder)
    with show_notes(), spelled_for("command"):
        found = _read_source(store, options.source, options.judge, options.reading)
        if len(found) > 1:
            names = ", ".join(found)
            raise click.UsageError(f"{options.source} has several judges: {names}; name one with --scorer")
        [labelled] = found.values()
        named = options.name or _usual_name(options.source, labelled)
        made = make_card(labelled, store, name=named, confidence=options.confidence, **options.reading.scale)
    facts = made.to_dict()
    if options.as_json:
        return print_json(facts)
    show(card_table(facts, options.misses))
    _suggest_positive(facts)
    _suggest(store, made.id, named)


@dataclass(frozen=True, kw_only=True)
class _TuneOptions:
    sources: tuple[str, ...] = argument(
        metavar="NAME|FILE...", nargs=-1, required=True, shell_complete=complete_artifact
    )
    reading: _Reading
    criterion: str = option(
        "The measure to choose by.", "--by", default=CRITERION, show_default=True, metavar="MEASURE"
    )
    seed: int = option("Of the split.", default=0, show_default=True, metavar="N")
    name: str | None = option("A name for the card.  [default: NAME/JUDGE]", metavar="NAME")
    confidence: float = confidence_option
    folder: Place = store_option
    as_json: bool = json_option


@make_command("tune", command, short_help="Choose a judge on half of the labels.")
def tune(options: _TuneOptions) -> None:
    """Compare judges of the same answers on one half of the labels, and measure the best on the other half.

    The judges are scorers of one or several evaluations, or of several files. The best is measured on other answers
    than it was chosen by, because there the best of many looks better than it is.
    """
    store = open_store(options.folder)
    with show_notes(), spelled_for("command"):
        candidates: dict[str, LabelledSet] = {}
        for source in options.sources:
            for label, labelled in _read_source(store, source, None, options.reading).items():
                candidates[label if label not in candidates else f"{source}/{label}"] = labelled
        found = tune_judges(
            candidates,
            store,
            criterion=options.criterion,
            seed=options.seed,
            confidence=options.confidence,
            **options.reading.scale,
        )
        named = options.name or _usual_name(options.sources[0], candidates[found.candidates[0].name])
        give_name(store, named, CARDS, found.card.id)
    facts = found.to_dict()
    if options.as_json:
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


def _read_source(store: FolderStore, source: str, judge: str | None, reading: _Reading) -> dict[str, LabelledSet]:
    """The labelled sets of a name or file, by judge.

    Raises:
        UsageError: an option does not suit what it is.
    """
    words = _parse_words(reading.words)
    found = _read_labelled(store, source, judge, reading)
    if words:
        found = {name: labelled.with_words(words) for name, labelled in found.items()}
    threshold = reading.people_threshold
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


def _read_labelled(store: FolderStore, source: str, judge: str | None, reading: _Reading) -> dict[str, LabelledSet]:
    if not is_stored(store, source, (EVALUATIONS, RUNS, MATCHES)):
        return _read_file(source, judge, reading)
    kind, _ = resolve(store, source)
    for name in ("judge_version", "by_place"):
        if getattr(reading, name):
            raise click.UsageError(f"{_flag(name)} is for files, and {source} is stored")
    if judge is not None:
        raise click.UsageError(f"--judge names the judge of a file; of {source} give --scorer")
    if kind == MATCHES or _has_only_matches(store, source):
        return _read_stored_matches(store, source, reading)
    return _read_stored_evaluation(store, source, reading)


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _has_only_matches(store: FolderStore, source: str) -> bool:
    kinds = {ref.kind for ref in store.named(source)}
    return MATCHES in kinds and not kinds & {EVALUATIONS, RUNS}


def _read_file(source: str, judge: str | None, reading: _Reading) -> dict[str, LabelledSet]:
    for name in ("scorers", "labels"):
        if getattr(reading, name):
            raise click.UsageError(f"{'--scorer' if name == 'scorers' else '--labels'} is not for files; give --column")
    name = judge or Path(source).stem
    columns = _parse_columns(reading.columns)
    chosen = {"version": reading.judge_version, "judge_model": reading.judge_model}
    return {name: read_labelled_file(source, name, columns=columns, by_place=reading.by_place, **chosen)}


def _parse_columns(texts: Sequence[str]) -> dict[str, list[str]]:
    columns: dict[str, list[str]] = {}
    for text in texts:
        field, equals, column = text.partition("=")
        if not (field and equals and column):
            raise click.UsageError(f"--column {text} must be a field and its column, such as label=ann")
        columns.setdefault(field, []).append(column)
    return columns


def _read_stored_matches(store: FolderStore, source: str, reading: _Reading) -> dict[str, LabelledSet]:
    if reading.scorers:
        raise click.UsageError(f"--scorer names a scorer of an evaluation, and {source} are matches")
    if reading.columns:
        raise click.UsageError(f"--column is for files, and {source} is stored")
    labels = None if reading.labels is None else Matches.open(store, reading.labels)
    labelled = read_labelled_matches(Matches.open(store, source), labels)
    return {labelled.judge.name: labelled}


def _read_stored_evaluation(store: FolderStore, source: str, reading: _Reading) -> dict[str, LabelledSet]:
    evaluation = _find_evaluation(store, source)
    run = evaluation.run
    labels = None if reading.labels is None or run is None else open_labels(store, reading.labels, run)
    names = reading.scorers or _judges_of(evaluation, source)
    question = _read_question(reading.columns, source)
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
    if kind != RUNS:
        known = [ref.name for ref in store.refs() if ref.kind == EVALUATIONS and ref.name.startswith(f"{source}/")]
        such = f", such as {known[0]}" if known else ""
        raise SpecError(f"{source!r} is no evaluation; name an evaluation, a run, matches or a file{such}")
    run = Run(store, id)
    for evaluation in find_evaluations_of(store, run.id):
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
