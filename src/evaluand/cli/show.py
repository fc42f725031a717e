"""`evaluand show`: shows an artifact, what it was made from and what was made from it."""

import math
from collections.abc import Callable, Set
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

import click
from click import UsageError

from evaluand.aggregation.aggregator import Aggregation
from evaluand.aggregation.kind import AGGREGATIONS
from evaluand.apps.recording.kind import RECORDINGS
from evaluand.apps.recording.stored import Recording
from evaluand.cli.command import argument, make_command, option
from evaluand.cli.options import (
    complete_artifact,
    json_option,
    name_store_in,
    refuse_files,
    store_option,
    suggest_command,
    where_option,
)
from evaluand.cli.output import print_json, show
from evaluand.cli.progress import show_notes
from evaluand.core.errors import EngineError, NotFound, SpecError, plural, warn, with_article
from evaluand.data.kind import DATASETS
from evaluand.evaluation.evaluator import Evaluation
from evaluand.evaluation.kind import EVALUATIONS
from evaluand.matches.kind import MATCHES
from evaluand.report.facts.aggregation import value_facts
from evaluand.report.facts.base import Facts, Names
from evaluand.report.facts.evaluation import add_judge_messages
from evaluand.report.facts.judges import rubric_facts
from evaluand.report.facts.run import add_chats
from evaluand.report.kinds.base import Choice
from evaluand.report.terminal.artifact import artifact_table, rubrics_table
from evaluand.report.text import SHORT_ID, safe
from evaluand.run.kind import RUNS
from evaluand.run.runner import Run
from evaluand.store.addresses import Place
from evaluand.store.folder_store import FolderStore
from evaluand.store.kinds import find_kind, kinds, made_of, origins, singular
from evaluand.store.opening import open_store
from evaluand.store.store import Manifest, as_named, caveats, find_made_from, resolve

_BY_SCORE = ("below", "lowest", "against")
_ROWS = {"messages", "failed", "index", "where", *_BY_SCORE}  # options that ask for rows
"""The options that choose rows by their scores; only one of them can be given."""
_AT_MOST = 2000
_MOST_CHECKED = 64 << 20  # bytes of tables that are compared with their digests before an artifact is shown


_EXAMPLES = """\b
Examples:
  evaluand show arithmetic
  evaluand show arithmetic/mine --failed --examples 20
  evaluand show arithmetic/mine --below 1
  evaluand show arithmetic/mine --where 'topic == "sums" and length(response) > 3'
  evaluand show arithmetic/mine --scorer exact --failed
  evaluand show arithmetic/mine --lowest --examples 10
  evaluand show arithmetic/mine --against arithmetic/other
  evaluand show arithmetic/mine --index 17
  evaluand show arithmetic/mine --below 1 --messages
  evaluand show arithmetic/mine --scorer polite --rubric
  evaluand show arithmetic --metric accuracy --group topic=sums --lowest
  evaluand show 3f2a9c --json
"""


def _refuse_nan(ctx: click.Context, param: click.Parameter, value: float | None) -> float | None:
    if value is not None and math.isnan(value):
        raise UsageError(f"{param.opts[0]} must be a number, not {value}", ctx)
    return value


@dataclass(frozen=True, kw_only=True)
class _Options:
    artifact: str = argument(metavar="ID|NAME", shell_complete=complete_artifact, callback=refuse_files)
    examples: int = option("Rows to show.", type=click.IntRange(min=0), default=3, show_default=True, metavar="N")
    failed: bool = option("Only rows that failed or have no score.")
    index: int | None = option(
        "The example with this _index_: its calls with their spans, and its grades.", metavar="I"
    )
    below: float | None = option(
        "Only answers scored below X; with 1, the wrong ones.", metavar="X", callback=_refuse_nan
    )
    lowest: bool = option("Rows sorted by score, the lowest first.")
    against: str | None = option(
        "Only rows that this other evaluation grades differently, the largest difference first.",
        metavar="ID|NAME",
        shell_complete=complete_artifact,
    )
    metric: str | None = option("The rows behind an aggregation's values of this metric.", metavar="NAME")
    groups: tuple[str, ...] = option(
        "With --metric: only rows of this group; repeatable.", "--group", metavar="NAME=VALUE"
    )
    where: str | None = where_option
    messages: bool = option("The conversations with language models in each row, and what judges were sent about it.")
    rubric: bool = option("The rubrics of judges, word for word, without the rows unless options choose some.")
    scorers: tuple[str, ...] = option("Only scores of this scorer; repeatable.", "--scorer", metavar="NAME")
    folder: Place = store_option
    as_json: bool = json_option


@make_command("show", epilog=_EXAMPLES)
def command(options: _Options) -> None:
    """Show a run, evaluation, aggregation, comparison, matches, ratings, card, dataset or recording.

    Give a name, an id or its first digits (at least four). If several artifacts share the name, the run is shown; with
    --below, --lowest, --against, --scorer or --rubric the evaluation, with --metric the aggregation. Failed rows come
    first.
    """
    given = {name for name, value in vars(options).items() if value is not None and value is not False and value != ()}
    _check_combination(given)
    store = open_store(options.folder)
    graded = bool(given & {*_BY_SCORE, "scorers"})
    find: Callable[[FolderStore, str], tuple[str, str]] = partial(
        resolve, kind=AGGREGATIONS if options.metric else EVALUATIONS if graded else None
    )
    if options.index is not None or options.rubric:
        find = _find_judged if options.index is None else _find_calls
    with show_notes():
        kind, id = _find_artifact(store, options.artifact, find)
        _note_damage(store, kind, id)
    with show_notes():
        facts = _facts(store, kind, id, options)
        if options.metric is not None:
            group = dict(_split_group(each) for each in options.groups)
            chosen: dict[str, Any] = {"failed": options.failed, "lowest": options.lowest, "scorers": options.scorers}
            facts["rows"] = value_facts(Aggregation(store, id), options.metric, group, options.examples, **chosen)
        elif options.failed and kind == RUNS:
            _note_unscored(store, options.artifact)
    if options.messages:
        _add_chats(store, facts, options.artifact)
    if options.rubric:
        facts["rubrics"] = _read_rubrics(facts, options.scorers)
    name_store_in(facts.get("judges", ()))
    if options.as_json:
        return print_json(facts)
    show(rubrics_table(facts) if options.rubric and not given & _ROWS else artifact_table(facts))


def _check_combination(given: Set[str]) -> None:
    """Refuses options that exclude each other.

    Args:
        given: the parameters that have a value.
    """
    by_score = [name for name in _BY_SCORE if name in given]
    if len(by_score) > 1 or (by_score and "failed" in given):
        names = " and ".join(f"--{name}" for name in ("failed", *by_score) if name in given)
        raise UsageError(f"give one of --failed, --below, --lowest and --against, not {names}")
    if "index" in given and given & {"failed", *by_score, "scorers", "metric"}:
        raise UsageError("--index shows one example; give it without other options that select rows")
    if ("groups" in given and "metric" not in given) or ("metric" in given and given & {"below", "against"}):
        raise UsageError("--metric can be combined with --group, --scorer and either --failed or --lowest")
    if "where" in given and given & {"lowest", "against", "metric", "index"}:
        raise UsageError("--where can be combined with --failed, --below and --scorer")


def _find_artifact(
    store: FolderStore, artifact: str, find: Callable[[FolderStore, str], tuple[str, str]]
) -> tuple[str, str]:
    """Kind and id of an artifact; a UsageError where `list` was meant."""
    try:
        return find(store, artifact)
    except NotFound:
        if artifact != "metrics":
            raise
        raise UsageError("`evaluand list metrics` lists the names of metrics") from None


def _note_unscored(store: FolderStore, name: str) -> None:
    """Says how many answers of a run have no score in the evaluation of the same name, and how to see them."""
    with suppress(NotFound):
        kind, id = resolve(store, name, EVALUATIONS)
        counts = Evaluation(store, id).counts if store.is_sealed(kind, id) else {}
        for scorer, rows in counts.items():
            if unscored := rows.get("failed", 0) + rows.get("abstained", 0):
                command = suggest_command("show", [name, "--scorer", scorer, "--failed"], store.root)
                warn(f"{plural(unscored, 'row')} without a score of {scorer}: {command}")


def _add_chats(store: FolderStore, facts: Facts, name: str) -> None:
    """Adds the conversations with language models to the rows of a run or an evaluation of a name."""
    kind, id = facts["kind"], facts["id"]
    if kind not in (RUNS, EVALUATIONS) or facts["status"] != "sealed":
        raise SpecError(f"--messages shows those of a finished run or evaluation; {id[:SHORT_ID]} is one of the {kind}")
    if kind == RUNS:
        return add_chats(Run(store, id), facts["rows"])
    rows = [*facts.get("calls", ()), *(row for found in facts["rows"].values() for row in found)]
    if any("evaluation" in row for row in rows):
        raise SpecError("--messages shows the rows of one evaluation; leave out --against")
    evaluation = Evaluation(store, id)
    add_judge_messages(evaluation, evaluation.run, facts["rows"])
    return add_chats(evaluation.read_run(), rows)


def _read_rubrics(facts: Facts, scorers: tuple[str, ...]) -> list[Facts]:
    """The rubrics of an evaluation or of matches."""
    from evaluand.judges.stored_rubric import NO_RUBRIC, NOT_STORED, find_changed_rubrics  # on use: it reads YAML

    kind, id, manifest = facts["kind"], facts["id"][:SHORT_ID], facts["manifest"]
    if kind not in (EVALUATIONS, MATCHES):
        raise SpecError(f"--rubric shows those of the judges of an evaluation or of matches; {id} is one of the {kind}")
    judges = [name for name in manifest["provenance"].get("judges") or () if not scorers or name in scorers]
    if not judges:
        raise SpecError(f"no judge gave these scores; `evaluand show {id}` lists the scorers of {id}")
    changes = [change for judge, change in find_changed_rubrics(manifest).items() if judge in judges]
    found = [each for each in rubric_facts([manifest]) if each["judge"] in judges]
    if changes and not found:
        raise NotFound(changes[0])
    for change in changes:
        click.echo(f"note: {safe(change)}", err=True)
    described = [each for each in facts.get("judges", ()) if kind == MATCHES or each["judge"] in judges]
    if not found and described and not any(each["asked"] for each in described):
        raise SpecError(NO_RUBRIC)
    if not found:
        raise NotFound(f"{NOT_STORED}; `evaluand run FILE --fresh` asks again and stores it")
    return found


def _note_damage(store: FolderStore, kind: str, id: str) -> None:
    """Warns of the first damaged artifact that an artifact was made from, as far as little has to be read for it."""
    waiting, seen, n_bytes = [(kind, id)], {(kind, id)}, 0
    while waiting:
        with suppress(NotFound):
            key = waiting.pop()
            try:
                manifest = store.manifest(*key)
                n_bytes += sum(entry["bytes"] for entry in manifest.get("tables", {}).values())
                is_damaged = key != (kind, id) and n_bytes <= _MOST_CHECKED and bool(store.damage(*key))
                waiting += [origin for origin in origins(manifest) if origin not in seen]
                seen.update(waiting)
            except NotFound:
                raise
            except EngineError:
                is_damaged = key != (kind, id)
            if is_damaged:
                what = f"{singular(key[0])} {key[1][:SHORT_ID]}"
                return warn(f"{what}, from which this was made, is damaged; see `evaluand verify`")


def _find_calls(store: FolderStore, artifact: str) -> tuple[str, str]:
    """The run with this name or id, or else the evaluation."""
    for kind in (RUNS, EVALUATIONS):
        with suppress(NotFound):
            return resolve(store, artifact, kind)
    other, id = resolve(store, artifact)
    if other == RECORDINGS:
        return RUNS, _require_run(store, Recording(store, id))
    raise SpecError(f"{artifact!r} is one of the {other}, which have no calls; --index needs a run or an evaluation")


def _find_judged(store: FolderStore, artifact: str) -> tuple[str, str]:
    """The evaluation with this name or id, or else the matches."""
    for kind in (EVALUATIONS, MATCHES):
        with suppress(NotFound):
            return resolve(store, artifact, kind)
    return resolve(store, artifact)


def _require_run(store: FolderStore, recording: Recording) -> str:
    if not recording.is_sealed:
        again = suggest_command(_continue_command(recording.manifest), recording.id[:SHORT_ID], store.root)
        raise SpecError(f"recording {recording.id[:SHORT_ID]} is open; close it first to see its calls: {again}")
    if recording.run is None:
        raise SpecError(f"recording {recording.id[:SHORT_ID]} has no records")
    return recording.run.id


def _split_group(group: str) -> tuple[str, str]:
    name, found, value = group.partition("=")
    if not found:
        raise UsageError(f"--group {group} must be an attribute and its value, such as topic=sums")
    return name, value


def _facts(store: FolderStore, kind: str, id: str, options: _Options) -> Facts:
    manifest = as_named(store, store.manifest(kind, id), options.artifact)
    names, view = Names(store.refs(), options.artifact), find_kind(kind).shown
    facts: Facts = {
        "kind": kind,
        "id": id,
        "names": names.find(kind, id, manifest.get("name")),
        "status": "sealed" if store.is_sealed(kind, id) else "open",
        "manifest": manifest,
        "made_from": [_artifact_facts(store, names, *origin, called=options.artifact) for origin in origins(manifest)],
        "caveats": caveats(store, [(kind, id)]),
        "used_by": _find_uses(store, names, kind, id),
    }
    if facts["status"] == "open":
        return facts | {
            "progress": list(view.progress(store, manifest)),
            "resume": suggest_command(_continue_command(manifest), id[:SHORT_ID], store.root),
        }
    if options.where is not None and not view.takes_where:
        having = " or ".join(with_article(singular(each.name)) for each in kinds() if each.shown.takes_where)
        raise SpecError(f"--where chooses rows of {having}, and {id[:SHORT_ID]} is one of the {kind}")
    against = None
    if options.against is not None:
        if kind != EVALUATIONS:
            raise SpecError(f"--against compares evaluations, and {id[:SHORT_ID]} is one of the {kind}")
        against = Evaluation.open(store, options.against)
        facts["against"] = _artifact_facts(store, names, against.kind, against.id)
    choice = Choice(
        examples=options.examples,
        failed=options.failed,
        index=options.index,
        below=options.below,
        lowest=options.lowest,
        against=against,
        scorers=options.scorers,
        where=options.where,
    )
    facts |= view.facts(store, id, facts, choice)
    return facts


def _find_uses(store: FolderStore, names: Names, kind: str, id: str) -> list[Facts] | None:
    """The artifacts made from an artifact, of those of experiments those of the one asked for; None if too many."""
    uses = [
        (each, use)
        for each in made_of(kind)
        for use in sorted(made["id"] for made in find_made_from(store, each, kind, id))
        if not names.is_of_another((each, use), (kind, id))
    ]
    return [_artifact_facts(store, names, *use) for use in uses] if len(uses) <= _AT_MOST else None


def _artifact_facts(store: FolderStore, names: Names, kind: str, id: str, called: str = "") -> Facts:
    """What is shown of an artifact from which another was made, or that was made from it.

    Args:
        called: the name of the other, to which the name of the dataset belongs.
    """
    named = store.about(called, RUNS).get("dataset") if called and kind == DATASETS else None
    try:
        own = store.manifest(kind, id).get("name")
        name = named or ", ".join(names.find(kind, id, own))
    except NotFound:
        name = "(not in this store)"
    except EngineError:
        name = "(damaged)"
    return {"kind": kind, "id": id, "name": name}


def _continue_command(manifest: Manifest) -> str:
    """The command that continues the work on an open artifact."""
    return "feedback work" if manifest["spec"].get("mode") == "deferred" else "resume"
