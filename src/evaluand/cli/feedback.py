"""`evaluand feedback`: the feedbacks of recordings, asked in processes of their own."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from evaluand.apps.recording.stored import KIND, Recording, find_recording_id, read_progress, recorded_policy
from evaluand.apps.recording.workers import work
from evaluand.cli.options import LINE, Group, complete_artifact, json_option, store_option, suggest_command
from evaluand.cli.output import print_json, stdout_to_stderr
from evaluand.cli.run import display
from evaluand.report.facts.base import Facts
from evaluand.report.text import SHORT_ID, safe
from evaluand.store.directory import DirectoryStore

_EXAMPLES = """\b
Examples:
  evaluand feedback work rag/v2 --workers 4
  evaluand feedback work rag/v2 --follow
  evaluand feedback status rag/v2
"""


@click.group("feedback", cls=Group, epilog=_EXAMPLES)
def command() -> None:
    """Judge what an app has recorded, or still records, where its feedbacks are deferred."""


@command.command("work")
@click.argument("artifact", metavar="ID|NAME", shell_complete=complete_artifact)
@click.option("--workers", type=click.IntRange(min=1), default=1, show_default=True, metavar="N", help="Processes.")
@click.option("--follow", is_flag=True, help="Go on until the app has ended.")
@click.option(
    "--timeout",
    type=click.FloatRange(min=0, min_open=True),
    metavar="S",
    help="Seconds for one judgement; as the app says if not given.",
)
@click.option(
    "--retries", type=click.IntRange(min=0), default=0, show_default=True, metavar="N", help="After errors that pass."
)
@click.option(
    "--allow",
    multiple=True,
    type=LINE,
    metavar="MODULE",
    help="A module, beside code of your own, that feedbacks may be imported from; may be given several times.",
)
@store_option
@json_option
def work_(
    artifact: str,
    workers: int,
    follow: bool,
    timeout: float | None,
    retries: int,
    allow: tuple[str, ...],
    folder: Path,
    as_json: bool,
) -> None:
    """Judge what is missing, and close the recording when its app has ended and nothing is missing.

    Any number of these may run at the same time, each with any number of workers, and be stopped at any time. A record
    that kills its worker again and again is given up as failed.
    """
    importable_here()
    store = DirectoryStore(folder)
    known = recorded_policy(store.manifest(KIND, find_recording_id(store, artifact)), 1)
    policy = replace(known, timeout=timeout or known.timeout, retries=retries)
    with stdout_to_stderr():
        recording = work(
            store,
            artifact,
            workers=workers,
            allow=allow,
            policy=policy,
            follow=follow,
            progress=display(as_json, quiet=False),
        )
    tell(recording, folder, as_json)


@command.command("status")
@click.argument("artifact", metavar="ID|NAME", shell_complete=complete_artifact)
@store_option
@json_option
def status(artifact: str, folder: Path, as_json: bool) -> None:
    """Tell how many records there are, and what each feedback has said of them."""
    store = DirectoryStore(folder)
    tell(Recording(store, find_recording_id(store, artifact)), folder, as_json)


def tell(recording: Recording, folder: Path, as_json: bool) -> None:
    """Prints how far a recording is, or what it came to."""
    facts = recording_facts(recording)
    if as_json:
        return print_json(facts)
    state = {"sealed": "closed", "open": "its app still records" if facts["recording"] else "its app has ended"}
    click.echo(
        f"recording {recording.id[:SHORT_ID]} {safe(recording.name or '')}: {facts['records']:,} records,"
        f" {state[facts['status']]}"
    )
    for name, counts in facts["feedbacks"].items():
        told = ", ".join(f"{n:,} {word}" for word, n in counts.items())
        click.echo(f"  {safe(name)}: {told or 'nothing'}")
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


def importable_here() -> None:
    """Has code in the present folder imported as `python` would."""
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())


def recording_facts(recording: Recording) -> Facts:
    """How far a recording is, or what it came to."""
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
    made = read_progress(recording.store, recording.id)
    return facts | {"status": "open", **vars(made), "run": None, "evaluation": None}
