"""`evaluand feedback`: judges recordings in separate processes."""

import os
import sys
from dataclasses import dataclass, replace
from typing import Any

import click

from evaluand.apps.recording.kind import RECORDINGS
from evaluand.apps.recording.stored import Recording, find_recording_id, read_progress, recorded_policy
from evaluand.apps.recording.workers import work
from evaluand.cli.command import argument, make_command, option
from evaluand.cli.options import complete_artifact, json_option, store_option, suggest_command
from evaluand.cli.output import print_json, stdout_to_stderr
from evaluand.cli.progress import display, show_notes
from evaluand.report.facts.base import Facts
from evaluand.report.text import SHORT_ID, safe
from evaluand.store.addresses import Place
from evaluand.store.folder_store import FolderStore
from evaluand.store.opening import open_store
from evaluand.store.ownership import is_own
from evaluand.store.store import Manifest

_EXAMPLES = """\b
Examples:
  evaluand feedback work rag/v2 --workers 4
  evaluand feedback work rag/v2 --follow
  evaluand feedback status rag/v2
"""


@click.group("feedback", epilog=_EXAMPLES)
def command() -> None:
    """Judge the records of an app whose feedbacks are deferred, also while it still records."""


@dataclass(frozen=True, kw_only=True)
class _WorkOptions:
    artifact: str = argument(metavar="ID|NAME", shell_complete=complete_artifact)
    workers: int = option("Number of processes.", type=click.IntRange(min=1), default=1, show_default=True, metavar="N")
    follow: bool = option("Continue until the app has ended.")
    timeout: float | None = option(
        "Seconds for one judgement; by default, as set by the app.",
        type=click.FloatRange(min=0, min_open=True),
        metavar="S",
    )
    retries: int = option(
        "Retries after a transient error.", type=click.IntRange(min=0), default=0, show_default=True, metavar="N"
    )
    allow: tuple[str, ...] = option(
        "A further module that feedbacks may be imported from, in addition to your own code; repeatable.",
        metavar="MODULE",
    )
    folder: Place = store_option
    as_json: bool = json_option


@make_command("work", command, short_help="Judge missing records.")
def work_(options: _WorkOptions) -> None:
    """Judge missing records, and close the recording once its app has ended and all are judged.

    Several of these commands may run at the same time, each with several workers; stop them at any time. A record that
    kills its worker repeatedly is marked as failed.
    """
    store = open_store(options.folder)
    manifest = store.manifest(RECORDINGS, find_recording_id(store, options.artifact))
    make_importable(store, manifest, options.allow)
    known = recorded_policy(manifest, 1)
    policy = replace(known, timeout=options.timeout or known.timeout, retries=options.retries)
    with stdout_to_stderr(), show_notes():
        recording = work(
            store,
            options.artifact,
            workers=options.workers,
            allow=options.allow,
            policy=policy,
            follow=options.follow,
            progress=display(options.as_json, quiet=False),
        )
    tell(recording, options.folder, options.as_json)


@make_command("status", command, short_help="Show the results of each feedback.")
def status(
    artifact: str = argument(metavar="ID|NAME", shell_complete=complete_artifact),
    folder: Place = store_option,
    as_json: bool = json_option,
) -> None:
    """Show how many records there are, and the results of each feedback."""
    store = open_store(folder)
    tell(Recording(store, find_recording_id(store, artifact)), folder, as_json)


def tell(recording: Recording, folder: Place, as_json: bool) -> None:
    """Prints the progress of an open recording, or the results of a closed one."""
    facts = recording_facts(recording)
    if as_json:
        return print_json(facts)
    state = {"sealed": "closed", "open": "its app still records" if facts["recording"] else "its app has ended"}
    click.echo(
        f"recording {recording.id[:SHORT_ID]} {safe(recording.name or '')}: {facts['records']:,} records,"
        f" {state[facts['status']]}"
    )
    for name, counts in facts["feedbacks"].items():
        results = ", ".join(f"{n:,} {word}" for word, n in counts.items())
        click.echo(f"  {safe(name)}: {results or 'nothing'}")
    if facts["status"] == "sealed":
        return click.echo(
            f"more: {suggest_command('show', facts['evaluation'] or facts['run'] or recording.id, folder)}"
        )
    if facts["working"]:
        click.echo(f"{facts['working']:,} being judged")
    if not facts["recording"]:
        how = "feedback work" if recording.mode == "deferred" else "resume"
        click.echo(f"to close it: {suggest_command(how, recording.id[:SHORT_ID], folder)}")
    return None


def make_importable(store: FolderStore, manifest: Manifest, allow: tuple[str, ...]) -> None:
    """Adds the current folder to the import path if code in it may be imported: first, as `python` does.

    For a recording of somebody else last, and only if code is allowed: a checkout may have modules named like others.
    """
    folder = os.getcwd()
    if folder in sys.path:
        return
    if is_own(store, manifest):
        sys.path.insert(0, folder)
    elif allow:
        sys.path.append(folder)


def recording_facts(recording: Recording) -> Facts:
    """The progress of an open recording, or the results of a closed one."""
    facts: dict[str, Any] = {"id": recording.id, "name": recording.name, "mode": recording.mode}
    run, evaluation = recording.run, recording.evaluation
    if recording.is_sealed:
        return facts | {
            "status": "sealed",
            "recording": False,
            "records": sum(run.counts.values()) if run else 0,
            "feedbacks": evaluation.counts if evaluation else {},
            "working": 0,
            "run": run and run.id,
            "evaluation": evaluation and evaluation.id,
        }
    progress = read_progress(recording.store, recording.id)
    return facts | {"status": "open", **vars(progress), "run": None, "evaluation": None}
