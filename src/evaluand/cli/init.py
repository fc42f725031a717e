"""`evaluand init`: creates a small project that runs, to be adapted."""

import json
import os
from importlib.resources import files
from pathlib import Path
from shlex import quote

import click

from evaluand.cli.command import argument, make_command, option
from evaluand.core.errors import SpecError
from evaluand.report.text import safe

BENCHMARK = "benchmark"
KINDS = ("classifier", "llm", "recorded", BENCHMARK)
PRESETS = ("arc", "gsm8k", "humaneval", "ifeval", "mbpp", "mbpp_sanitized", "mmlu", "truthfulqa")
"""The public benchmarks for whose files, in their published columns, there is an experiment file."""

_ENDING = ".txt"  # of templates, so that no tool treats their code as part of evaluand

_DATA = "{{data}}"
"""Where the template of a benchmark names the user's file."""

_MODEL = "it asks ollama/llama3.2: start that, or name another model in experiment.yaml"
_NEEDS = {"llm": _MODEL, BENCHMARK: f"the file that its dataset names; {_MODEL}"}
"""What a project of a kind needs besides its files."""

_EXAMPLES = """\b
Examples:
  evaluand init
  evaluand init questions --kind llm
  evaluand init reviews --kind recorded
  evaluand init --kind benchmark --preset gsm8k --data test.jsonl
"""


@make_command("init", epilog=_EXAMPLES)
def command(
    folder: Path = argument(type=click.Path(path_type=Path), default=".", metavar="[FOLDER]"),
    kind: str = option("What to evaluate.", type=click.Choice(KINDS), default="classifier", show_default=True),
    preset: str | None = option("Of the kind benchmark: whose columns your file has.", type=click.Choice(PRESETS)),
    data: str | None = option("Of the kind benchmark: your file, relative to FOLDER; else test.jsonl.", metavar="FILE"),
) -> None:
    """Create a small project in FOLDER, or here: an experiment file with comments, examples, code.

    It runs as it is, that of the kind llm as soon as its model does, and a benchmark with your file of its questions.
    Existing files are never overwritten.
    """
    if (kind == BENCHMARK) != (preset is not None) or (data is not None and kind != BENCHMARK):
        raise SpecError(f"give --kind {BENCHMARK} and --preset together: {', '.join(PRESETS)}; --data only with them")
    texts = _read_templates(kind) if preset is None else _read_preset(preset, data or "test.jsonl")
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
    return {".gitignore": ".evaluand/\n__pycache__/\n"} | _texts_in(kind)


def _read_preset(preset: str, data: str) -> dict[str, str]:
    """The files of a benchmark, which are put beside the user's own."""
    written = json.dumps(data, ensure_ascii=False)  # quoted as YAML reads it
    return {name: text.replace(_DATA, written) for name, text in _texts_in(f"{BENCHMARK}/{preset}").items()}


def _texts_in(folder: str) -> dict[str, str]:
    templates = files("evaluand.cli").joinpath("templates", *folder.split("/"))
    found = {entry.name.removesuffix(_ENDING): entry.read_text("utf-8") for entry in templates.iterdir()}
    return dict(sorted(found.items()))
