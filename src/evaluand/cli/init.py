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
PRESETS: dict[str, dict[str, str]] = json.loads(
    files("evaluand.cli").joinpath("templates", BENCHMARK, "published.json").read_text("utf-8")
)
"""The public benchmarks, each with its file in a repository of Hugging Face, at a commit that never changes."""

_SHOWN = 200  # characters of an error of the Hub
_ENDING = ".txt"  # of templates, so that no tool treats their code as part of evaluand

_DATA = "{{data}}"
"""Where the template of a benchmark names the user's file."""

_MODEL = "it asks ollama/llama3.2: start that, or name another model in experiment.yaml"
_FILE = "your file of its questions; without --data, and with 'evaluand[hugging-face]', init fetches it"

_EXAMPLES = """\b
Examples:
  evaluand init
  evaluand init questions --kind llm
  evaluand init reviews --kind recorded
  evaluand init --preset gsm8k
  evaluand init --preset gsm8k --data test.jsonl
"""


@make_command("init", epilog=_EXAMPLES)
def command(
    folder: Path = argument(type=click.Path(path_type=Path), default=".", metavar="[FOLDER]"),
    kind: str = option("What to evaluate.", type=click.Choice(KINDS), default="classifier", show_default=True),
    preset: str | None = option("Which public benchmark.", type=click.Choice([*PRESETS])),
    data: str | None = option("Your file of its questions, relative to FOLDER; else it is fetched.", metavar="FILE"),
) -> None:
    """Create a small project in FOLDER, or here: an experiment file with comments, examples, code.

    It runs as it is, that of the kind llm and a benchmark as soon as their model does. The questions of a benchmark are
    fetched at a fixed commit if the extra hugging-face is installed. Existing files are never overwritten.
    """
    if preset is None and (kind == BENCHMARK or data is not None):
        raise SpecError(f"name the benchmark by --preset: {', '.join(PRESETS)}")
    name = data or ("test.jsonl" if preset is None else f"test{Path(PRESETS[preset]['filename']).suffix}")
    texts = _read_templates(kind) if preset is None else _read_preset(preset, name)
    if folder.exists() and not folder.is_dir():
        raise SpecError(f"{folder} is not a folder; name another one")
    existing = [name for name in texts if os.path.lexists(folder / name)]
    if existing:
        raise SpecError(
            f"{folder} already has {', '.join(existing)}; files are never overwritten, so name another folder"
        )
    fetched = _fetch(preset) if preset is not None and not os.path.lexists(folder / name) and data is None else None
    folder.mkdir(parents=True, exist_ok=True)
    contents = {file: text.encode() for file, text in texts.items()} | ({} if fetched is None else {name: fetched})
    for file, content in contents.items():
        _write_new(folder / file, content)
        click.echo(f"created {safe(folder / file)}")
    place = "" if folder.resolve() == Path.cwd() else f"cd {quote(str(folder))} && "
    needs = [f"{safe(folder / name)}, {_FILE}"] if preset is not None and not os.path.lexists(folder / name) else []
    if needs := [*needs, *([_MODEL] if kind == "llm" or preset is not None else [])]:
        click.echo(f"\nneeds:   {'; '.join(needs)}", nl=False)
    click.echo(f"\nrun it:  {safe(place)}evaluand run experiment.yaml")


def _fetch(preset: str) -> bytes | None:
    """The questions of a benchmark; None if nothing is installed that fetches them.

    Raises:
        SpecError: they cannot be fetched now.
    """
    try:
        from huggingface_hub import hf_hub_download
    except ImportError:
        return None
    published = PRESETS[preset]
    try:
        path: str = hf_hub_download(
            published["repo_id"],
            published["filename"],
            repo_type="dataset",
            revision=published["revision"],
            endpoint=os.environ.get("HF_ENDPOINT"),
        )
    except Exception as error:  # which errors there are depends on the HTTP library of huggingface_hub
        where = f"{published['filename']} of the repository {published['repo_id']}"
        problem = " ".join(str(error).split())[:_SHOWN]
        raise SpecError(f"{where} cannot be fetched: {problem}; give your own file by --data") from None
    return Path(path).read_bytes()


def _write_new(path: Path, content: bytes) -> None:
    """Writes a file that does not exist, or nothing."""
    try:
        with path.open("xb") as file:
            file.write(content)
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
