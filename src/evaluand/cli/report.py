"""`evaluand report`: writes one self-contained HTML file."""

import os
import re
import sys
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from shlex import quote
from typing import Any

import click

from evaluand.aggregation.aggregator import REFUSED, Aggregation, Measure, find_summary
from evaluand.apps.leaderboards.board import add_evaluations, leaderboard
from evaluand.apps.leaderboards.records import find_recording
from evaluand.apps.recording.stored import KIND, Recording
from evaluand.cli.file_gates import is_experiment_file, read_results
from evaluand.cli.options import json_option, refuse_files, store_option, suggest_command
from evaluand.cli.output import print_json
from evaluand.cli.progress import show_notes
from evaluand.comparison.comparing import find_labelled_run, read_run
from evaluand.comparison.measures import find_evaluations, find_summaries, resolve_measures
from evaluand.comparison.prompts import prompt_changes, task_specs
from evaluand.comparison.ratings.stored import Ratings
from evaluand.comparison.stored import find_comparison
from evaluand.core.errors import EvaluandWarning, NotFound, SpecError, plural, singular
from evaluand.core.files.paths import replaced
from evaluand.core.provenance import experiment_origin
from evaluand.evaluation.evaluator import Evaluation
from evaluand.evaluation.matching.matches import Matches
from evaluand.report.facts.aggregation import summary_facts
from evaluand.report.facts.base import Facts
from evaluand.report.facts.judges import card_facts, rubric_changes, rubric_facts
from evaluand.report.facts.match_sets import by_title, find_match_sets, find_ratings, match_facts
from evaluand.report.facts.report import (
    Part,
    comparison_facts,
    headline_facts,
    name_sides,
    report_facts,
)
from evaluand.report.html.examples import Examples
from evaluand.report.html.matches import MatchRows
from evaluand.report.html.page import page_title
from evaluand.report.html.report import write_report
from evaluand.report.metric_labels import left_out_text
from evaluand.report.text import SHORT_ID, safe
from evaluand.run.runner import Run
from evaluand.store.directory import DirectoryStore
from evaluand.store.store import Ref, resolve
from evaluand.tradeoff.results import stored_results

_FIRST = ("aggregations", "evaluations", "runs")
_JUDGED = ("matches", "ratings")
_MOST = 100_000
_LONGEST = 80
_HEAD = 4096

_EXAMPLES = """\b
Examples:
  evaluand report arithmetic
  evaluand report arithmetic/mine -o mine.html --examples 1000
  evaluand report arithmetic/mine arithmetic/theirs -o both.html
  evaluand report judged
  evaluand report experiment.yaml
  evaluand report 3f2a9c -o - > report.html
"""


@click.command("report", epilog=_EXAMPLES)
@click.argument("artifacts", metavar="NAME|ID|FILE...", nargs=-1, required=True, callback=refuse_files)
@click.option(
    "-o", "--output", type=click.Path(), metavar="FILE", help="The file to write; - is stdout.  [default: NAME.html]"
)
@click.option(
    "--examples",
    default=str(_MOST),
    show_default=True,
    callback=lambda context, parameter, value: _parse_number(value),
    metavar="N|all",
    help="Rows of each task to include, the worst first, and pairs of each set of matches.",
)
@store_option
@json_option
def command(artifacts: tuple[str, ...], output: str | None, examples: int | None, folder: Path, as_json: bool) -> None:
    """Write a report as one HTML file that needs no network.

    NAME is an experiment (all its tasks), a run, an evaluation, an aggregation, matches or ratings, or an id or its
    first digits (at least four); several are shown next to each other. With the FILE of an experiment the report begins
    with its gates, checked by what is stored. Matches of the runs and their ratings are part
    of the report. An existing file is replaced. The report reads what is stored; `evaluand compare` makes a comparison
    that it lacks, and `evaluand rate` ratings.
    """
    if as_json and output == "-":
        raise click.UsageError("--json needs a file for the report; give -o FILE")
    store, stored = DirectoryStore(folder), None
    if files := [name for name in artifacts if is_experiment_file(name)]:
        if len(artifacts) > 1:
            raise click.UsageError(f"{files[0]} is a file; a report of a file shows it alone")
        with show_notes():
            stored = read_results(store, Path(files[0]))
        artifacts = tuple(stored.artifacts)
        if stored.gates:
            click.echo(f"note: {safe(stored.text)}", err=True)
    title, gates = (None, []) if stored is None else (stored.name, stored.gates)
    checked_by = None if stored is None else stored.text
    if output == "-":
        write(store, artifacts, "-", examples, title, gates=gates, checked_by=checked_by)
        return
    path, shown, total, matches = write(store, artifacts, output, examples, title, gates=gates, checked_by=checked_by)
    size = os.path.getsize(path)
    if as_json:
        facts = {"file": os.path.abspath(path), "bytes": size, "examples": shown, "of": total}
        if stored is not None and gates:
            facts |= {"gates": gates, "results": {"made": stored.made, "file_changed": stored.is_changed}}
        return print_json(facts | ({} if matches is None else {"pairs": matches.n, "of_pairs": matches.total}))
    counts = [f"{shown:,} of {total:,} examples"] if total or matches is None else []
    counts += [] if matches is None else [f"{matches.n:,} of {plural(matches.total, 'pair')} of responses"]
    click.echo(f"{safe(path)}: {', '.join(counts)}, {size / 1e6:.1f} MB")


def write(
    store: DirectoryStore,
    artifacts: str | Sequence[str],
    output: str | None = None,
    examples: int | None = _MOST,
    title: str | None = None,
    commands: Mapping[str, str] | None = None,
    gates: Sequence[Facts] = (),
    checked_by: str | None = None,
) -> tuple[str, int, int, MatchRows | None]:
    """Writes a report; returns the file, the number of examples in it, the number of all examples, and its matches.

    Args:
        commands: action → the command line for it, instead of those on the store.
        gates: results of gates, as `gate_facts` returns them.
        checked_by: by which results they were checked, in words.
    """
    names = [artifacts] if isinstance(artifacts, str) else [*dict.fromkeys(artifacts)]
    judged = [(kind, id) for kind, id, _ in (_find_artifact(store, name) for name in names) if kind in _JUDGED]
    kind, id, called = _find_artifact(store, names[0]) if len(names) == 1 else ("", "", " and ".join(names))
    title = title or called
    parts, tables = _collect(store, kind, id, title) if len(names) == 1 else _collect_several(store, names)
    listed = commands or (
        _commands(store, kind, id, title, parts) if len(names) == 1 else _several_commands(store, names)
    )
    facts = report_facts(title, parts, commands=listed, folder=os.getcwd(), **tables)
    graded = {part.task: part.evaluation for part in parts if part.evaluation is not None}
    summaries = [Aggregation(store, id)] if kind == "aggregations" else find_summaries(graded.values())
    with show_notes():
        facts |= _comparisons(store, id, graded, summaries, facts)
        facts["leaderboard"] = _leaderboard(store, parts)
        facts |= {"gates": list(gates), "gates_checked_by": checked_by}
        sets, ratings = _find_matches(store, judged, parts)
        facts |= match_facts(sets, ratings)
        facts["rubrics"] += rubric_facts(each.manifest for each in sets.values())
        facts["rubric_changes"] += rubric_changes(each.manifest for each in sets.values())
        known = {card["id"] for card in facts["cards"]}
        of_matches = card_facts(store, [judge for each in facts["matches"] for judge in each["judges"]])
        facts["cards"] += [card for card in of_matches if card["id"] not in known]
        trades = stored_results(Aggregation(store, id)) if kind == "aggregations" else []
    for each in facts["unrated"]:
        each["command"] = suggest_command("rate", each["id"][:SHORT_ID], _shorten_path(store.root), elsewhere=True)
    measures = [measure for summary in summaries for measure in summary.measures]
    rows = Examples(parts, facts["scores"], examples, measures)
    matches = MatchRows(sets, examples, {part.run.id: part.task for part in parts}) if sets else None
    path = default_file(title) if output is None else output
    if path == "-":
        return path, write_report(facts, rows, sys.stdout.buffer, trades, matches), rows.total, matches
    if os.path.isdir(path) or not os.path.isdir(os.path.dirname(path) or "."):
        raise SpecError(f"{path}: a folder, or in a folder that does not exist; name a file with -o")
    if output is None and os.path.lexists(path) and (os.path.islink(path) or not os.path.isfile(path)):
        raise SpecError(f"{path}: is a link, pipe or device; name another file with `evaluand report NAME -o FILE`")
    with replaced(Path(path)) as file:
        shown = write_report(facts, rows, file, trades, matches)
    return path, shown, rows.total, matches


def _parse_number(text: str) -> int | None:
    if text != "all" and not text.isdecimal():
        raise click.BadParameter(f"{text!r} must be a number of examples or all")
    return None if text == "all" else int(text)


def _find_artifact(store: DirectoryStore, text: str) -> tuple[str, str, str]:
    """(kind, id, title) of an artifact; a name of several kinds refers to the last step."""
    ids = {ref.kind: ref.id for ref in store.refs() if ref.name == text}
    for kind in (*_FIRST, *_JUDGED):
        if kind in ids:
            return kind, ids[kind], text
    if any(ref.kind == "evaluations" and ref.name.startswith(f"{text}/") for ref in store.refs()):
        return "", "", text
    kind, id = resolve(store, text)
    if kind == KIND:
        kind, id = _result_of_recording(Recording(store, id))
    if kind not in (*_FIRST, *_JUDGED):
        known = "a run, an evaluation, an aggregation, matches, ratings or an experiment"
        raise SpecError(f"{text} is a {singular(kind)}; name {known}")
    return kind, id, store.manifest(kind, id).get("name") or f"{singular(kind)} {id[:SHORT_ID]}"


def _result_of_recording(recording: Recording) -> tuple[str, str]:
    """The (kind, id) of the evaluation or run of a recording."""
    _require_sealed(recording.store, KIND, recording.id)
    result = recording.evaluation or recording.run
    if result is None:
        raise SpecError(f"recording {recording.id[:SHORT_ID]} has no records")
    return result.kind, result.id


def _collect(store: DirectoryStore, kind: str, id: str, title: str) -> tuple[list[Part], dict[str, Any]]:
    """The tasks of a report, and the rows of aggregations about them by table."""
    if kind:
        _require_sealed(store, kind, id)
    if kind in _JUDGED:
        return [], {"metrics": []}
    if kind == "aggregations":
        aggregation = Aggregation(store, id)
        made_from = aggregation.manifest["provenance"]["evaluations"]
        parts = _read_parts([Evaluation(store, one) for one in made_from], aggregation.labels)
        return parts, summary_facts(aggregation)
    if kind == "runs":
        graded = _find_newest(store, "evaluations", lambda manifest: manifest["provenance"]["run"] == id)
        if graded is None:
            run = Run(store, id)
            return [Part(_task_name(run.manifest), run, None)], {"metrics": []}
        evaluations = [Evaluation(store, graded)]
    elif kind == "evaluations":
        is_name = Ref(title, kind, id) in store.refs()
        evaluations = find_evaluations(store, title) if is_name else [Evaluation(store, id)]
    else:
        found = [ref for ref in store.refs() if ref.kind == "evaluations" and ref.name.startswith(f"{title}/")]
        evaluations = [Evaluation.open(store, ref.name) for ref in found if store.is_sealed(ref.kind, ref.id)]
        if not evaluations:
            raise NotFound(f"no evaluation of {title!r} is finished; see `evaluand list`")
    return _collect_evaluations(evaluations, [_task_name(evaluation.manifest) for evaluation in evaluations])


def _collect_several(store: DirectoryStore, names: Sequence[str]) -> tuple[list[Part], dict[str, Any]]:
    """The tasks of several runs, evaluations, aggregations or experiments, each evaluation once."""
    found: dict[str, tuple[Evaluation, str]] = {}
    for name in names:
        kind, id, title = _find_artifact(store, name)
        for part in _collect(store, kind, id, title)[0]:
            if part.evaluation is None:
                raise SpecError(f"{name} has not been evaluated; a report of several shows evaluations")
            label = part.task if name.endswith(part.task) else f"{name}/{part.task}"
            found.setdefault(part.evaluation.id, (part.evaluation, label))
    return _collect_evaluations([one for one, _ in found.values()], [label for _, label in found.values()])


def _find_matches(
    store: DirectoryStore, named: Sequence[tuple[str, str]], parts: Sequence[Part]
) -> tuple[dict[str, Matches], dict[str, Ratings]]:
    """The matches and ratings of a report by title: those that it names, and those of its runs.

    Args:
        named: (kind, id) of matches and ratings.
    """
    ratings = [Ratings(store, id) for kind, id in named if kind == "ratings"]
    sets = [Matches(store, id) for kind, id in named if kind == "matches"]
    sets += [each for rated in ratings for each in rated.matches if each is not None]
    sets += find_match_sets(store, [part.run for part in parts])
    of_others = [each for each in sets if not any(each.digest in one.manifest["spec"]["matches"] for one in ratings)]
    ratings += find_ratings(store, of_others)
    unique = {each.id: each for each in sets}, {each.id: each for each in ratings}
    return by_title(store, [*unique[0].values()]), by_title(store, [*unique[1].values()])


def _several_commands(store: DirectoryStore, names: Sequence[str]) -> dict[str, str]:
    root = _shorten_path(store.root)
    return {
        "Compare them": suggest_command("compare", names, root, elsewhere=True),
        "Write this report": suggest_command("report", names, root, elsewhere=True),
    }


def _collect_evaluations(evaluations: Sequence[Evaluation], names: Sequence[str]) -> tuple[list[Part], dict[str, Any]]:
    parts = _read_parts(evaluations, names)
    each = [_read_summary(part) for part in parts]
    names_of_tables = ("metrics", "disparities", "worst_groups", "curves")
    return parts, {name: [row for tables in each for row in tables.get(name, ())] for name in names_of_tables}


def _read_parts(evaluations: Sequence[Evaluation], names: Sequence[str]) -> list[Part]:
    return [
        Part(
            name if names.count(name) == 1 else f"{name} {evaluation.id[:SHORT_ID]}",
            find_labelled_run(evaluation, name) or read_run(evaluation),
            evaluation,
        )
        for name, evaluation in zip(names, evaluations, strict=True)
    ]


def _comparisons(
    store: DirectoryStore, id: str, graded: Mapping[str, Evaluation], summaries: Sequence[Aggregation], facts: Facts
) -> dict[str, Any]:
    """The stored comparison of the tasks, or how to make it, what it shows, and what their prompts differ in.

    Args:
        summaries: declare the metrics of the comparison.
        facts: with `metrics` and `judges` of the tasks.
    """
    if len(graded) < 2:
        return {"comparisons": [], "not_compared": None, "prompts": [], "headlines": []}
    comparison = find_comparison([*graded.values()], summaries)
    sides = [] if comparison is None else name_sides(comparison, graded)
    names, specs = [*graded], task_specs([find_labelled_run(each, name) for name, each in graded.items()])
    prompts = [one | {"a": names[one["a"]], "b": names[one["b"]]} for one in prompt_changes(specs)]
    if comparison is None:
        declared = [measure for summary in summaries for measure in summary.measures]
        why = _explain_missing(store, id, graded, declared, facts["metrics"])
        return {"comparisons": [], "not_compared": why, "prompts": prompts, "headlines": []}
    left_out = left_out_text(comparison.left_out, comparison.pairs)
    return {
        "comparisons": comparison_facts(comparison, sides),
        "not_compared": f"Not compared: {left_out}." if left_out else None,
        "prompts": prompts,
        "headlines": headline_facts(comparison, sides, facts["metrics"], facts["judges"]),
    }


def _explain_missing(
    store: DirectoryStore,
    id: str,
    graded: Mapping[str, Evaluation],
    declared: Sequence[Measure],
    values: Sequence[Facts],
) -> str | None:
    """How to make the comparison that the report lacks, or why nobody can; None without numbers to compare.

    Args:
        values: those of the tasks, with the reasons of missing ones.
    """
    try:
        with warnings.catch_warnings(action="ignore", category=EvaluandWarning):
            measures = resolve_measures([*graded.values()], None, None, None, declared).compared
    except SpecError:  # they share no scorer that returns numbers
        return None
    reasons = {
        (row["scorer"], row["metric"]): f"{row['task']}: {row['reason'].removeprefix(REFUSED)}"
        for row in values
        if not row["by"] and (row["reason"] or "").startswith(REFUSED)
    }
    if all((measure.scorer, measure.metric.kind) in reasons for measure in measures):
        return f"The tasks cannot be compared: {'; '.join(reasons.values())}."
    names = [id[:SHORT_ID]] if id else [each.called or each.id[:SHORT_ID] for each in graded.values()]
    command = suggest_command("compare", names, _shorten_path(store.root), elsewhere=True)
    return f"The tasks have not been compared yet: run `{command}` and write the report again."


def _leaderboard(store: DirectoryStore, parts: Sequence[Part]) -> Facts | None:
    """The leaderboard of the versions of recorded apps, from all closed recordings; None if there are none."""
    recorded = [part for part in parts if find_recording(part.run)]
    if not recorded:
        return None
    versions = {(_task_spec(part).get("name"), _task_spec(part).get("version")) for part in recorded}
    closed = [each for id in store.ids(KIND) if (each := Recording(store, id)).is_sealed and each.app in versions]
    ids = {each.id for each in closed}
    snapshots = [part.evaluation or part.run for part in recorded if find_recording(part.run) not in ids]
    board = leaderboard([*add_evaluations(store, closed), *snapshots]).to_dict()
    if len(closed) + len(snapshots) > len(recorded):
        board["notes"].append(
            "the leaderboard covers all recordings, the rest of this report only the newest of each version"
        )
    return board


def _task_spec(part: Part) -> Facts:
    task: Facts = part.run.manifest["spec"]["task"]
    return task


def _task_name(manifest: Facts) -> str:
    origin = (manifest.get("provenance") or {}).get("origin") or {}
    name = origin.get("task") or manifest.get("name")
    return str(name or f"{singular(manifest['kind'])} {manifest['id'][:SHORT_ID]}")


def _read_summary(part: Part) -> dict[str, list[Facts]]:
    """The rows of a task in the aggregation of its evaluation, by table."""
    assert part.evaluation is not None
    aggregation = find_summary(part.evaluation)
    if aggregation is None:
        return {}
    label = aggregation.labels[aggregation.manifest["spec"]["evaluations"].index(part.evaluation.digest)]
    return {
        name: [row | {"task": part.task} for row in rows if row["task"] == label]
        for name, rows in summary_facts(aggregation).items()
    }


def _find_newest(store: DirectoryStore, kind: str, suits: Any) -> str | None:
    """The id of the newest sealed artifact whose manifest suits."""
    manifests = (store.manifest(kind, id) for id in store.ids(kind))
    found = [m for m in manifests if "digest" in m and suits(m)]
    return max(found, key=lambda m: m["created"])["id"] if found else None


def _require_sealed(store: Any, kind: str, id: str) -> None:
    if not store.is_sealed(kind, id):
        again = suggest_command("resume", id[:SHORT_ID], store.root)
        raise SpecError(f"{singular(kind)} {id[:SHORT_ID]} is not finished; continue with: {again}")


def _commands(store: DirectoryStore, kind: str, id: str, title: str, parts: Sequence[Part]) -> dict[str, str]:
    """Action → the command line for it, to be run in the current folder."""
    commands: dict[str, str] = {}
    what, root = id[:SHORT_ID] if kind else title, _shorten_path(store.root)
    again = list(dict.fromkeys(filter(None, (_run_command(root, part, len(parts) == 1) for part in parts))))
    for command in again:
        commands["Reproduce" if len(again) == 1 else f"Reproduce ({len(commands) + 1})"] = command
    commands["Show what is stored"] = suggest_command("show", what, root, elsewhere=True)
    checked = (id or parts[0].run.id)[:SHORT_ID]
    if kind in _JUDGED:
        commands["Rate otherwise"] = suggest_command("rate", what, root, elsewhere=True)
    commands["Check that it is intact"] = suggest_command("verify", checked, root, elsewhere=True)
    commands["Write this report"] = suggest_command("report", what, root, elsewhere=True)
    return commands


def _shorten_path(path: str | Path) -> Path:
    """A path relative to the current folder, or the absolute path if that is shorter."""
    return Path(min(os.path.relpath(path), os.path.abspath(path), key=len))


def _run_command(root: Path, part: Part, alone: bool) -> str | None:
    """The command line that repeats a run, if it came from an experiment file."""
    origin = experiment_origin(part.run.manifest)
    if origin is None:
        return None
    words = suggest_command("run", str(_shorten_path(origin.path)), root, elsewhere=True)
    if origin.limit:
        words += f" --limit {origin.limit}"
    if origin.where:
        words += f" --where {quote(origin.where)}"
    if origin.model:
        words += f" --model {quote(origin.model)}"
    return f"{words} --task {quote(origin.task)}" if alone and origin.task else words


def default_file(title: str) -> str:
    """The default file of a report."""
    return f"{_file_name(title)}.html"


def check_replaceable(title: str) -> None:
    """Refuses to replace a file that is not a report with this title.

    Raises:
        SpecError: the default file exists and is another.
    """
    path = Path(default_file(title))
    if path.is_file():
        with path.open("rb") as file:
            begin = file.read(_HEAD).decode(errors="replace")
        if f"<title>{page_title(title)}</title>" not in begin:
            raise SpecError(f"{path} exists and is not a report of {title!r}; move it, or give --force")


def _file_name(title: str) -> str:
    return re.sub(r"[^\w.-]+", "_", title).strip("._-")[:_LONGEST] or "report"
