"""What a report or page about some artifacts shows: the tasks, their facts, their examples and matches.

Nothing is computed but what only reading can show: comparisons, ratings and numbers are those that are stored.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import Any

from evaluand.aggregation.aggregator import REFUSED, Aggregation, Measure, find_summary
from evaluand.aggregation.kind import AGGREGATIONS
from evaluand.apps.leaderboards.board import add_evaluations, leaderboard
from evaluand.apps.leaderboards.records import find_recording
from evaluand.apps.recording.kind import RECORDINGS
from evaluand.apps.recording.stored import Recording
from evaluand.comparison.comparing import find_comparison, find_tasks
from evaluand.comparison.measures import find_summaries, read_evaluations, resolve_measures
from evaluand.comparison.prompts import prompt_changes
from evaluand.core.errors import EvaluandWarning, NotFound, SpecError
from evaluand.core.labels import shown_name
from evaluand.core.provenance import experiment_origin
from evaluand.evaluation.evaluator import Evaluation, newest_evaluation_of
from evaluand.evaluation.kind import EVALUATIONS
from evaluand.matches.kind import MATCHES, RATINGS
from evaluand.matches.matches import Matches
from evaluand.matches.ratings.rating import Ratings
from evaluand.report.commands import format_command
from evaluand.report.facts.aggregation import summary_facts
from evaluand.report.facts.base import Facts
from evaluand.report.facts.judges import card_facts, rubric_changes, rubric_facts
from evaluand.report.facts.match_sets import by_title, find_match_sets, find_ratings, match_facts
from evaluand.report.facts.report import Part, comparison_facts, headline_facts, name_sides, report_facts
from evaluand.report.html.examples import Examples, examples_of
from evaluand.report.html.matches import MatchRows
from evaluand.report.metric_labels import left_out_text
from evaluand.report.text import SHORT_ID
from evaluand.run.kind import RUNS
from evaluand.run.runner import Run
from evaluand.store.addresses import Address, Place
from evaluand.store.folder_store import FolderStore
from evaluand.store.kinds import singular
from evaluand.store.store import Ref, resolve
from evaluand.tradeoff.trade import TradeoffResult, stored_results

_FIRST = (AGGREGATIONS, EVALUATIONS, RUNS)
_JUDGED = (MATCHES, RATINGS)


@dataclass
class Contents:
    """What is shown of some artifacts.

    Attributes:
        parts: the tasks.
        facts: all but the rows, as `report_facts` returns them, with comparisons, leaderboard, matches and ratings.
        measures: those that summarised the scores; they define which of several answers decides a row.
        matches: the sets of matches, by title.
        tradeoffs: those of the aggregation.
    """

    parts: list[Part]
    facts: Facts
    measures: list[Measure]
    matches: dict[str, Matches]
    tradeoffs: Sequence[TradeoffResult]

    def examples(self, limit: int | None) -> list[Examples]:
        """The rows of each task; of each at most so many, the worst first."""
        return examples_of(self.parts, self.facts["scores"], limit, self.measures)

    def match_rows(self, limit: int | None) -> MatchRows | None:
        """The rows of all matches; None without matches."""
        names = {part.run.id: part.task for part in self.parts}
        return MatchRows(self.matches, limit, names) if self.matches else None


def read_contents(
    store: FolderStore,
    names: Sequence[str],
    title: str | None = None,
    commands: Mapping[str, str] | None = None,
    folder: str | None = None,
    *,
    root: Place | None = None,
    distributions: bool = True,
    is_written: bool = True,
) -> Contents:
    """Reads what is shown of artifacts.

    Args:
        names: of experiments, runs, evaluations, aggregations, matches or ratings, or their ids.
        title: that of the artifact by default.
        commands: action → the command line for it, instead of those on the store.
        folder: where to run the commands.
        root: what commands name the store; by default its path from here.
        distributions: whether to read those of all scores, which takes longest.
        is_written: it is written once, so that what is computed later is shown only if it is written again.

    Raises:
        NotFound, SpecError: a name refers to nothing, or to something else.
    """
    root = _shorten_place(store.root) if root is None else root
    named = [_find_artifact(store, name) for name in names]
    judged = [(kind, id) for kind, id, _ in named if kind in _JUDGED]
    kind, id, called = named[0] if len(names) == 1 else ("", "", " and ".join(names))
    title = title or called
    parts, tables = _collect(store, kind, id, title) if len(names) == 1 else _collect_several(store, names, named)
    listed = commands or (
        _commands(root, kind, id, title, parts) if len(names) == 1 else _several_commands(root, names)
    )
    facts = report_facts(
        shown_name(title), parts, commands=listed, folder=folder, distributions=distributions, **tables
    )
    graded = {part.task: part.evaluation for part in parts if part.evaluation is not None}
    summaries = [Aggregation(store, id)] if kind == AGGREGATIONS else find_summaries(graded.values())
    facts |= _comparisons(root, id, graded, summaries, facts, is_written=is_written)
    facts["leaderboard"] = _leaderboard(store, parts)
    sets, ratings = _find_matches(store, judged, parts)
    facts |= match_facts(sets, ratings)
    facts["rubrics"] += rubric_facts(each.manifest for each in sets.values())
    facts["rubric_changes"] += rubric_changes(each.manifest for each in sets.values())
    known = {card["id"] for card in facts["cards"]}
    of_matches = card_facts(store, [judge for each in facts["matches"] for judge in each["judges"]])
    facts["cards"] += [card for card in of_matches if card["id"] not in known]
    for each in facts["unrated"]:
        each["command"] = format_command("rate", each["id"][:SHORT_ID], root)
    trades = stored_results(Aggregation(store, id)) if kind == AGGREGATIONS else []
    measures = [measure for summary in summaries for measure in summary.measures]
    return Contents(parts, facts, measures, sets, trades)


def read_parts(store: FolderStore, name: str) -> list[Part]:
    """The tasks that a name refers to.

    Raises:
        NotFound, SpecError: it refers to nothing, or to something else.
    """
    kind, id, title = _find_artifact(store, name)
    return _collect(store, kind, id, title)[0]


def read_match_sets(store: FolderStore, name: str) -> tuple[str, dict[str, Matches], dict[str, Ratings]]:
    """The title of an artifact, and the matches and ratings that it is, or that compare its runs, by title.

    An experiment without scorers has nothing but these under its name.

    Raises:
        NotFound, SpecError: a name refers to nothing, or to something else.
    """
    refs = store.refs()
    if not any(ref.name == name or (ref.kind == EVALUATIONS and ref.name.startswith(f"{name}/")) for ref in refs):
        own = [ref for ref in refs if ref.kind in _JUDGED and ref.name.startswith(f"{name}/")]
        if own:
            return name, *_find_matches(store, [(ref.kind, ref.id) for ref in own if store.is_sealed(*ref[1:])], [])
    kind, id, title = _find_artifact(store, name)
    return title, *_find_matches(store, [(kind, id)] * (kind in _JUDGED), _collect(store, kind, id, title)[0])


def _find_artifact(store: FolderStore, text: str) -> tuple[str, str, str]:
    """(kind, id, title) of an artifact; a name of several kinds refers to the last step."""
    ids = {ref.kind: ref.id for ref in store.named(text)}
    for kind in (*_FIRST, *_JUDGED):
        if kind in ids:
            return kind, ids[kind], text
    if any(ref.kind == EVALUATIONS and ref.name.startswith(f"{text}/") for ref in store.refs()):
        return "", "", text
    kind, id = resolve(store, text)
    if kind == RECORDINGS:
        kind, id = _result_of_recording(Recording(store, id))
    if kind not in (*_FIRST, *_JUDGED):
        known = "a run, an evaluation, an aggregation, matches, ratings or an experiment"
        raise SpecError(f"{text} is a {singular(kind)}; name {known}")
    return kind, id, store.manifest(kind, id).get("name") or f"{singular(kind)} {id[:SHORT_ID]}"


def _result_of_recording(recording: Recording) -> tuple[str, str]:
    """The (kind, id) of the evaluation or run of a recording."""
    _require_sealed(recording.store, RECORDINGS, recording.id)
    result = recording.evaluation or recording.run
    if result is None:
        raise SpecError(f"recording {recording.id[:SHORT_ID]} has no records")
    return result.kind, result.id


def _collect(store: FolderStore, kind: str, id: str, title: str) -> tuple[list[Part], dict[str, Any]]:
    """The tasks of a report, and the rows of aggregations about them by table."""
    if kind:
        _require_sealed(store, kind, id)
    if kind in _JUDGED:
        return [], {"metrics": []}
    if kind == AGGREGATIONS:
        aggregation = Aggregation(store, id)
        parts = _read_parts(read_evaluations(store, kind, id, title), aggregation.labels)
        return parts, summary_facts(aggregation)
    if kind == RUNS:
        graded = newest_evaluation_of(store, id)
        if graded is None:
            run = Run(store, id)
            run.called = title if Ref(title, kind, id) in store.named(title) else None
            return [Part(_task_name(run), run, None)], {"metrics": []}
        evaluations = [graded]
    elif kind == EVALUATIONS:
        evaluations = read_evaluations(store, kind, id, title)
    else:
        found = [ref for ref in store.refs() if ref.kind == EVALUATIONS and ref.name.startswith(f"{title}/")]
        evaluations = [Evaluation.open(store, ref.name) for ref in found if store.is_sealed(ref.kind, ref.id)]
        if not evaluations:
            raise NotFound(f"no evaluation of {title!r} is finished; see `evaluand list`")
    return _collect_evaluations(evaluations, [*map(_task_name, evaluations)])


def _collect_several(
    store: FolderStore, names: Sequence[str], named: Sequence[tuple[str, str, str]]
) -> tuple[list[Part], dict[str, Any]]:
    """The tasks of several runs, evaluations, aggregations or experiments, each evaluation once.

    Args:
        named: kind, id and title of what the names refer to.
    """
    found: dict[str, tuple[Evaluation, str]] = {}
    for name, (kind, id, title) in zip(names, named, strict=True):
        for part in _collect(store, kind, id, title)[0]:
            if part.evaluation is None:
                raise SpecError(f"{name} has not been evaluated; a report of several shows evaluations")
            label = part.task if name.endswith(part.task) else f"{name}/{part.task}"
            found.setdefault(part.evaluation.id, (part.evaluation, label))
    return _collect_evaluations([one for one, _ in found.values()], [label for _, label in found.values()])


def _find_matches(
    store: FolderStore, named: Sequence[tuple[str, str]], parts: Sequence[Part]
) -> tuple[dict[str, Matches], dict[str, Ratings]]:
    """The matches and ratings of a report by title: those that it names, and those of its runs.

    Args:
        named: (kind, id) of matches and ratings.
    """
    ratings = [Ratings(store, id) for kind, id in named if kind == RATINGS]
    sets = [Matches(store, id) for kind, id in named if kind == MATCHES]
    sets += [each for rated in ratings for each in rated.matches if each is not None]
    sets += find_match_sets(store, [part.run for part in parts])
    of_others = [each for each in sets if not any(each.id in one.manifest["provenance"]["matches"] for one in ratings)]
    ratings += find_ratings(store, of_others)
    unique = {each.id: each for each in sets}, {each.id: each for each in ratings}
    return by_title(store, [*unique[0].values()]), by_title(store, [*unique[1].values()])


def _several_commands(root: Place, names: Sequence[str]) -> dict[str, str]:
    return {
        "Compare them": format_command("compare", names, root),
        "Write this report": format_command("report", names, root),
    }


def _collect_evaluations(evaluations: Sequence[Evaluation], names: Sequence[str]) -> tuple[list[Part], dict[str, Any]]:
    parts = _read_parts(evaluations, names)
    each = [_read_summary(part) for part in parts]
    names_of_tables = ("metrics", "disparities", "worst_groups", "curves")
    return parts, {name: [row for tables in each for row in tables.get(name, ())] for name in names_of_tables}


def _read_parts(evaluations: Sequence[Evaluation], names: Sequence[str]) -> list[Part]:
    return [
        Part(
            name if names.count(name) == 1 else f"{name} {evaluation.id[:SHORT_ID]}", evaluation.read_run(), evaluation
        )
        for name, evaluation in zip(names, evaluations, strict=True)
    ]


def _comparisons(
    root: Place,
    id: str,
    graded: Mapping[str, Evaluation],
    summaries: Sequence[Aggregation],
    facts: Facts,
    *,
    is_written: bool,
) -> dict[str, Any]:
    """The stored comparison of the tasks, or how to make it, what it shows, and what their prompts differ in.

    Args:
        summaries: declare the metrics of the comparison.
        facts: with `metrics` and `judges` of the tasks.
        is_written: as in `read_contents`.
    """
    if len(graded) < 2:
        return {"comparisons": [], "not_compared": None, "prompts": [], "headlines": []}
    comparison = find_comparison([*graded.values()], summaries)
    sides = [] if comparison is None else name_sides(comparison, graded)
    names, store = [*graded], next(iter(graded.values())).store
    changes = prompt_changes(find_tasks(store, [each.id for each in graded.values()]))
    prompts = [one | {"a": names[one["a"]], "b": names[one["b"]]} for one in changes]
    if comparison is None:
        declared = [measure for summary in summaries for measure in summary.measures]
        why = _explain_missing(root, id, graded, declared, facts["metrics"], is_written=is_written)
        return {"comparisons": [], "not_compared": why, "prompts": prompts, "headlines": []}
    left_out = left_out_text(comparison.left_out, comparison.pairs)
    return {
        "comparisons": comparison_facts(comparison, sides),
        "not_compared": f"Not compared: {left_out}." if left_out else None,
        "prompts": prompts,
        "headlines": headline_facts(comparison, sides, facts["metrics"], facts["judges"]),
    }


def _explain_missing(
    root: Place,
    id: str,
    graded: Mapping[str, Evaluation],
    declared: Sequence[Measure],
    values: Sequence[Facts],
    *,
    is_written: bool,
) -> str | None:
    """How to make the comparison that the report lacks, or why nobody can; None without numbers to compare.

    Args:
        values: those of the tasks, with the reasons of missing ones.
        is_written: as in `read_contents`.
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
    command = format_command("compare", names, root)
    then = " and write the report again" if is_written else ""
    return f"The tasks have not been compared yet: run `{command}`{then}."


def _leaderboard(store: FolderStore, parts: Sequence[Part]) -> Facts | None:
    """The leaderboard of the versions of recorded apps, from all closed recordings; None if there are none."""
    recorded = [part for part in parts if find_recording(part.run)]
    if not recorded:
        return None
    versions = {(_task_spec(part).get("name"), _task_spec(part).get("version")) for part in recorded}
    closed = [each for id in store.ids(RECORDINGS) if (each := Recording(store, id)).is_sealed and each.app in versions]
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


def _task_name(made: Run | Evaluation) -> str:
    """The task of the name by which something was found, or else that for which it was made first."""
    manifest, called = made.manifest, made.called
    if called and called != manifest["name"]:
        return called.partition("/")[2] or called
    origin = (manifest.get("provenance") or {}).get("origin") or {}
    name = origin.get("task") or manifest.get("name")
    return str(name or f"{singular(manifest['kind'])} {manifest['id'][:SHORT_ID]}")


def _read_summary(part: Part) -> dict[str, list[Facts]]:
    """The rows of a task in the aggregation of its evaluation, by table."""
    assert part.evaluation is not None
    aggregation = find_summary(part.evaluation)
    if aggregation is None:
        return {}
    label = aggregation.label_of(part.evaluation)
    return {
        name: [row | {"task": part.task} for row in rows if row["task"] == label]
        for name, rows in summary_facts(aggregation).items()
    }


def _require_sealed(store: Any, kind: str, id: str) -> None:
    if not store.is_sealed(kind, id):
        again = format_command("resume", id[:SHORT_ID], store.root)
        raise SpecError(f"{singular(kind)} {id[:SHORT_ID]} is not finished; continue with: {again}")


def _commands(root: Place, kind: str, id: str, title: str, parts: Sequence[Part]) -> dict[str, str]:
    """Action → the command line for it, to be run in the current folder."""
    commands: dict[str, str] = {}
    what = id[:SHORT_ID] if kind else title
    again = list(dict.fromkeys(filter(None, (_run_command(root, part, len(parts) == 1) for part in parts))))
    for command in again:
        commands["Reproduce" if len(again) == 1 else f"Reproduce ({len(commands) + 1})"] = command
    commands["Show what is stored"] = format_command("show", what, root)
    checked = (id or parts[0].run.id)[:SHORT_ID]
    if kind in _JUDGED:
        commands["Rate otherwise"] = format_command("rate", what, root)
    commands["Check that it is intact"] = format_command("verify", checked, root)
    commands["Write this report"] = format_command("report", what, root)
    return commands


def _shorten_place(place: Place) -> Place:
    return place if isinstance(place, Address) else _shorten_path(place)


def _shorten_path(path: str | Path) -> Path:
    """A path relative to the current folder, or the absolute path if that is shorter."""
    return Path(min(os.path.relpath(path), os.path.abspath(path), key=len))


def _run_command(root: Place, part: Part, alone: bool) -> str | None:
    """The command line that repeats a run, if it came from an experiment file."""
    origin = experiment_origin(part.run.manifest)
    if origin is None:
        return None
    words = format_command("run", str(_shorten_path(origin.path)), root)
    if origin.limit:
        words += f" --limit {origin.limit}"
    if origin.where:
        words += f" --where {quote(origin.where)}"
    if origin.model:
        words += f" --model {quote(origin.model)}"
    return f"{words} --task {quote(origin.task)}" if alone and origin.task else words
