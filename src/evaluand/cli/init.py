"""`evaluand init`: creates a small project that runs, to be adapted."""

import os
from importlib.resources import files
from pathlib import Path
from shlex import quote

import click

from evaluand.core.errors import SpecError
from evaluand.report.text import safe

KINDS = ("classifier", "llm", "recorded")

_ENDING = ".txt"  # of templates, so that no tool treats their code as part of evaluand

_NEEDS = {"llm": "it asks ollama/llama3.2: start that, or name another model in experiment.yaml"}
"""What a project of a kind needs besides its files."""

_EXAMPLES = """\b
Examples:
  evaluand init
  evaluand init questions --kind llm
  evaluand init reviews --kind recorded
"""


@click.command("init", epilog=_EXAMPLES)
@click.argument("folder", type=click.Path(path_type=Path), default=".", metavar="[FOLDER]")
@click.option("--kind", type=click.Choice(KINDS), default="classifier", show_default=True, help="What to evaluate.")
def command(folder: Path, kind: str) -> None:
    """Create a small project in FOLDER, or here: an experiment file with comments, examples, code.

    It runs as it is, that of the kind llm as soon as its model does. Existing files are never overwritten.
    """
    texts = _read_templates(kind)
    if folder.exists() and not folder.is_dir():
        raise SpecError(f"{folder} is not a folder; name another one")
    existing = [name for name in texts if os.path.lexists(folder / name)]
    if existing:
        raise SpecError(
            f"{folder} already has {', '.join(existing)}; files are never overwritten, so name another folder"
        )
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        _write_new(folder / name, text)
        click.echo(f"created {safe(folder / name)}")
    place = "" if folder.resolve() == Path.cwd() else f"cd {quote(str(folder))} && "
    if kind in _NEEDS:
        click.echo(f"\nneeds:   {_NEEDS[kind]}", nl=False)
    click.echo(f"\nrun it:  {safe(place)}evaluand run experiment.yaml")


def _write_new(path: Path, text: str) -> None:
    """Writes a file that does not exist, or nothing."""
    try:
        with path.open("xb") as file:
            file.write(text.encode())
    except OSError as error:
        if error.filename is None:  # it was created, and the disk is full
            path.unlink(missing_ok=True)
            error.filename = str(path)
        raise


def _read_templates(kind: str) -> dict[str, str]:
    templates = files("evaluand.cli") / "templates" / kind
    found = {entry.name.removesuffix(_ENDING): entry.read_text("utf-8") for entry in templates.iterdir()}
    return {".gitignore": ".evaluand/\n__pycache__/\n"} | dict(sorted(found.items()))
