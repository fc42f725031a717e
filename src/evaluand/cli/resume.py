"""`evaluand resume`: continues an interrupted run, evaluation or set of matches with its experiment file."""

import hashlib
import sys
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

import click

from evaluand.apps.recording.kind import RECORDINGS
from evaluand.apps.recording.workers import close_recording
from evaluand.cli.carry_out import carry_out, repeat_lost_option, reported_stop
from evaluand.cli.command import argument, make_command, option
from evaluand.cli.engines import EngineOptions, engine_chosen
from evaluand.cli.feedback import make_importable, tell
from evaluand.cli.gates import conclude
from evaluand.cli.matches import print_matches
from evaluand.cli.options import budget_option, json_option, store_option, suggest_command
from evaluand.cli.output import print_json, stdout_to_stderr
from evaluand.cli.pairwise import comparison_origin, resume_comparison
from evaluand.cli.progress import display, show_notes
from evaluand.cli.results import print_results
from evaluand.cli.settings import is_inside
from evaluand.core.errors import EngineError, NotFound, SpecError
from evaluand.core.files.regular import read_regular_file
from evaluand.core.provenance import ExperimentOrigin, experiment_origin, read_origin, suite_origin
from evaluand.engine.budget import Budget
from evaluand.evaluation.kind import EVALUATIONS
from evaluand.experiment.experiment import Experiment
from evaluand.matches.matches import Matches
from evaluand.report.text import SHORT_ID, safe
from evaluand.run.kind import RUNS
from evaluand.run.request import ExperimentRequest
from evaluand.store.addresses import Place, local_folder
from evaluand.store.folder_store import FolderStore
from evaluand.store.kinds import singular
from evaluand.store.opening import open_store
from evaluand.store.ownership import describe_foreign, is_own
from evaluand.store.store import check_identity, resolve

_RESUMED = (RECORDINGS, RUNS, EVALUATIONS, Matches.kind)
_MOST_LISTED = 10
_MOST_BYTES = 64 << 20  # of an experiment file
_EXAMPLES = """\b
Examples:
  evaluand resume
  evaluand resume arithmetic/mine
  evaluand resume 3f2a9c
  evaluand resume rag/v2
"""


@dataclass(frozen=True, kw_only=True)
class _Options:
    artifact: str | None = argument(required=False, metavar="[ID|NAME]")
    allow: tuple[str, ...] = option(
        "A module, in addition to your own code, that feedbacks of a recording may be imported from.", metavar="MODULE"
    )
    give_up: bool = option(
        "Close a recording whose feedbacks are not found, or a deferred one whose feedbacks changed; the rest fails."
    )
    yes: bool = option(
        "Do not ask before code is executed that somebody else has begun, or that has changed since you began it."
    )
    repeat_lost: bool = repeat_lost_option
    budget: Budget | None = budget_option
    engine: EngineOptions
    folder: Place = store_option
    as_json: bool = json_option


@make_command("resume", epilog=_EXAMPLES)
def command(options: _Options) -> None:
    """Continue an interrupted run, evaluation or set of matches; without a name, the only one that is open.

    The experiment file that began it is read again. The task, the dataset and the seed must be unchanged; how calls are
    made (concurrency, timeout, retries) may have changed. If the file has changed, you are asked before it is executed.
    If somebody else has begun it, or the store was moved, the file must be unchanged, and you are asked too. Matches of
    `compare --pairwise` continue with its options. --budget takes the place of the file's budget; what was spent so
    far counts.

    A recording whose app has died is closed: its records become a run, which its feedbacks judge. Feedbacks that can be
    imported judge what is missing; what the others have not judged counts as failed (for a deferred recording, or
    where a module is not found from here, only with --give-up). The run can then be evaluated again by the available
    feedbacks.
    """
    store = open_store(options.folder)
    kind, id = _find_artifact(store, options.artifact) if options.artifact is not None else _find_only(store)
    what = f"{singular(kind)} {id[:SHORT_ID]}"
    if store.is_sealed(kind, id):
        _refuse_damage(store, kind, id, what)
        if options.as_json:
            print_json({"resumed": False, "kind": kind, "id": id, "reason": f"{what} is complete"})
        return click.echo(f"nothing to resume: {what} is complete", err=True)
    manifest = check_identity(store.manifest(kind, id))
    if kind == RECORDINGS:
        return _close(store, id, options.allow, options.give_up, options.folder, options.as_json)
    begun = experiment_origin(manifest)
    if begun is None and kind == Matches.kind and (compared := comparison_origin(manifest)) is not None:
        return resume_comparison(
            store, id, compared, options.budget, repeat_lost=options.repeat_lost, as_json=options.as_json
        )
    if begun is None and kind == Matches.kind:
        raise SpecError(f"{what} cannot be continued by its id; repeat the command or the Python call that began it")
    if begun is None and (suite := suite_origin(manifest)) is not None:
        raise SpecError(f"{what} belongs to a suite; continue it with: {suggest_command('suite', suite, store.root)}")
    if begun is None and isinstance(words := read_origin(manifest).get("grade"), list):
        raise SpecError(f"{what} is continued with: {suggest_command('grade', [*map(str, words)], store.root)}")
    if begun is None:
        raise SpecError(f"{what} was not started from an experiment file; continue it from Python with the same call")
    if begun.task is None and (kind != Matches.kind or begun.matches is None):
        raise SpecError(f"{what}: the origin in its manifest is damaged; run its experiment file again")
    content = _read_experiment(store, begun, what, is_own(store, manifest), options.yes)
    with stdout_to_stderr(), show_notes():
        experiment = Experiment.from_file(begun.path, content=content, model=begun.model, store=store)
        if begun.where:
            experiment = experiment.where(begun.where)
        if begun.until:
            experiment = experiment.drawn(begun.until.drawn, begun.until.of, begun.until.rule)
        if options.budget is not None:
            experiment.policy = replace(experiment.policy, budget=options.budget)
        experiment.engine = engine_chosen(experiment.engine, options.engine)
        experiment.engine.check(experiment.policy)
        watched = display(options.as_json, quiet=False)
        try:
            if kind == Matches.kind:
                with reported_stop(store, watched, budget=experiment.policy.shared_budget):
                    played = experiment.resume_matches(store, id, progress=watched, repeat_lost=options.repeat_lost)
                    [matches] = played.matches_facts()
            else:
                asked = ExperimentRequest(only=begun.task, limit=begun.limit, resume=(kind, id))
                request = replace(asked, repeat_lost=options.repeat_lost)
                results = carry_out(experiment, store, request, watched)
        except SpecError as error:
            if _digest(content) != begun.digest:
                error.add_note(f"{begun.path} has changed since")
            raise
    if kind == Matches.kind:
        return conclude([], None, failed=print_matches(matches, as_json=options.as_json))
    if others := [name for name in experiment.tasks if not _is_run(store, experiment.run_name(name))]:
        more = suggest_command("run", safe(begun.path), store.root)
        click.echo(f"not run yet: {', '.join(map(safe, others))}; {more}", err=True)
    if experiment.gates:
        check = suggest_command("run", safe(begun.path), store.root)
        click.echo(f"the gates of the file have not been checked; check them with: {check}", err=True)
    conclude([], None, failed=print_results(results, store, as_json=options.as_json))


def _refuse_damage(store: FolderStore, kind: str, id: str, what: str) -> None:
    """Raises an EngineError if a complete artifact is damaged."""
    if faults := store.damage(kind, id):
        again = suggest_command("gc", "--damaged", store.root)
        raise EngineError(
            f"{what} is complete but damaged: {faults[0].where}: {faults[0].message}; to remove and run it again, type:"
            f" {again}"
        )


def _close(store: FolderStore, id: str, allow: tuple[str, ...], give_up: bool, folder: Place, as_json: bool) -> None:
    make_importable(store, store.manifest(RECORDINGS, id), allow)
    with stdout_to_stderr(), show_notes():
        recording = close_recording(store, id, allow=allow, progress=display(as_json, quiet=False), give_up=give_up)
    tell(recording, folder, as_json)


def _find_only(store: FolderStore) -> tuple[str, str]:
    """The only artifact that is open.

    Raises:
        NotFound: nothing is open.
        SpecError: several are; lists them.
    """
    open_artifacts = [(kind, id) for kind in _RESUMED for id in store.ids(kind) if not store.is_sealed(kind, id)]
    if not open_artifacts:
        raise NotFound(
            "nothing to resume: no run, evaluation, matches or recording is open; `evaluand list` shows what is stored"
        )
    if len(open_artifacts) > 1:
        names = {(ref.kind, ref.id): ref.name for ref in store.refs()}
        listed = ", ".join(
            f"{singular(kind)} {names.get((kind, id), 'without a name')} ({id[:SHORT_ID]})"
            for kind, id in open_artifacts[:_MOST_LISTED]
        )
        more = f" and {len(open_artifacts) - _MOST_LISTED} more" if len(open_artifacts) > _MOST_LISTED else ""
        raise SpecError(f"several are open: {listed}{more}; resume one of them by its id")
    return open_artifacts[0]


def _find_artifact(store: FolderStore, artifact: str) -> tuple[str, str]:
    """The artifact with this name or id; of several with the same name, or of an experiment's tasks, the open one."""
    for kind in _RESUMED:
        with suppress(NotFound):
            found = resolve(store, artifact, kind)
            if not store.is_sealed(*found):
                return found
    open_tasks = [
        ref for ref in store.refs() if ref.name.startswith(f"{artifact}/") and not store.is_sealed(ref.kind, ref.id)
    ]
    if len({ref.id for ref in open_tasks}) > 1:
        listed = ", ".join(f"{singular(ref.kind)} {ref.name} ({ref.id[:SHORT_ID]})" for ref in open_tasks)
        raise SpecError(f"several are open in {artifact}: {listed}; resume one of them by its id")
    if open_tasks:
        return open_tasks[0].kind, open_tasks[0].id
    return resolve(store, artifact)


def _is_run(store: FolderStore, name: str) -> bool:
    try:
        return store.is_sealed(*resolve(store, name, RUNS))
    except EngineError:
        return False


def _read_experiment(store: FolderStore, begun: ExperimentOrigin, what: str, own: bool, yes: bool) -> bytes:
    """The bytes of the experiment file that a manifest names, if the user wants its code to be executed.

    Raises:
        SpecError: the file does not exist, is in a store, or is not the one that began the work of somebody else; or
            nobody can be asked.
    """
    path, shown = Path(begun.path), safe(begun.path)
    if not path.is_file():
        raise SpecError(f"{what} was started from {shown}, which no longer exists; {_find_moved(store, begun)}")
    folder = local_folder(store.root)
    if folder is not None and is_inside(Path(path), folder):
        raise SpecError(f"{what} names {shown}, which is inside the store; a store holds data, and none is executed")
    content = _read(path)
    is_changed = _digest(content) != begun.digest
    if own and not is_changed:
        return content
    foreign, again = describe_foreign(), _suggest_run(store, begun, shown, fresh=not own)
    if not own and is_changed:
        raise SpecError(f"{what} {foreign}, and {shown} is not the file that began it; to start anew, type: {again}")
    if yes:
        return content
    why = (
        f"{shown} has changed since you began {what}; resuming it executes the code that the file names now"
        if own
        else f"{what} {foreign}; resuming it executes the code that {shown} names, and modules that this code imports"
        " are not compared"
    )
    if not sys.stdin.isatty():
        choice = (
            f"if you agree, add --yes, or type: {again}"
            if own
            else f"if you trust it and the calls stored in it, add --yes; to start anew, type: {again}"
        )
        raise SpecError(f"{why}; {choice}")
    click.confirm(f"{why}; continue?", abort=True, err=True)
    return content


def _find_moved(store: FolderStore, begun: ExperimentOrigin) -> str:
    """What to do without the experiment file: run it from the current folder if it is there."""
    here = Path(Path(begun.path).name)
    with suppress(OSError):
        if _digest(_read(here)) == begun.digest:
            return f"the same file is in this folder, and continues it: {_suggest_run(store, begun, f'./{safe(here)}')}"
    return "restore the file, or run another one"


def _suggest_run(store: FolderStore, begun: ExperimentOrigin, file: str, *, fresh: bool = False) -> str:
    """The command that runs an experiment file as the work was begun; stored work is found by its content."""
    limit = [] if begun.limit is None else ["--limit", str(begun.limit)]
    where = [] if begun.where is None else ["--where", safe(begun.where)]
    model = [] if begun.model is None else ["--model", safe(begun.model)]
    until = [] if begun.until is None else ["--until", safe(begun.until.rule), "--limit", str(begun.until.of)]
    more = [*limit, *where, *model, *until, *(["--fresh"] if fresh else [])]
    return suggest_command("run", [file, *more], store.root)


def _read(path: Path) -> bytes:
    return read_regular_file(path, _MOST_BYTES, follow_link=True)


def _digest(content: bytes) -> str:
    return hashlib.blake2b(content).hexdigest()[:32]
