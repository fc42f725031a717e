"""Options that the sub-commands of `evaluand tradeoff` share, and checks of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import wraps
from pathlib import Path
from typing import Any, Final

import click
from click import UsageError
from click.core import ParameterSource

from evaluand.cli.options import store_option
from evaluand.cli.tradeoff.stored import Stored
from evaluand.store.directory import DirectoryStore
from evaluand.tradeoff.confidences import Confidences

EXAMPLES: Final = """\b
Examples:
  evaluand tradeoff solve scores/*.json --metric acc --metric eod+race --out solutions
  evaluand tradeoff solve --stored classifiers --by age_group --label malignant
  evaluand tradeoff solve --stored bots --metric "mean(helpful)" --metric "mean(helpful) difference by language"
  evaluand tradeoff evaluate solutions/*.json
  evaluand tradeoff plot solutions/*.json --out front.html
  evaluand tradeoff pick solutions/validation.json --best acc --where "eod+race <= 0.05" --on scores/test.json
  evaluand tradeoff pick --stored validation --best "mean(helpful)" --where "mean(brief) >= 0.5" --on-stored test
"""

OF_STORED: Final = ("metrics", "by", "label", "scorer", "thresholds")
"""Options about --stored only."""

NO_THRESHOLDS: Final = "applies to models at thresholds; with metrics of stored scores each run is a point without one"

FILE: Final = click.Path(exists=True, dir_okay=False, path_type=Path)

files_argument = click.argument("files", nargs=-1, metavar="[FILE]...", type=FILE)
names_option = click.option(
    "--name",
    "names",
    multiple=True,
    metavar="NAME",
    help="Names for the systems, one for each in order: files first, then those of --stored.",
)
deduplicate_option = click.option(
    "--deduplicate/--no-deduplicate", default=True, show_default=True, help="Treat points with equal values as one."
)
force_option = click.option("--force", is_flag=True, help="Replace existing files.")
format_option = click.option(
    "--format", "form", metavar="NAME", help="Print the table as github, latex, html, csv, tsv, rst …"
)
_STORED: Final = (
    click.option(
        "--stored",
        multiple=True,
        metavar="[SYSTEM=]NAME",
        help="Runs, evaluations or aggregations in the store: the models or variants of one system, or of each SYSTEM;"
        " repeatable. All of one system must be on the same examples.",
    ),
    click.option(
        "--metric",
        "-m",
        "metrics",
        multiple=True,
        metavar="METRIC",
        help="acc, f1, eod+ATTRIBUTE, minmaxd+UTILITY+ATTRIBUTE …: metrics of decisions at thresholds; or of stored"
        ' scores "KIND(SCORER)" and "KIND(SCORER) difference|ratio|min|max by ATTRIBUTE", by which each run is a point.'
        " Repeatable; by default acc, and eod of each attribute.",
    ),
    click.option("--by", multiple=True, metavar="ATTRIBUTE", help="With --stored: attributes, if no metric names any."),
    click.option("--label", metavar="LABEL", help="With --stored: the positive label."),
    click.option(
        "--scorer",
        metavar="SCORER",
        help="With --stored: the scorer of the confidences or scores, if there are several.",
    ),
    click.option(
        "--thresholds",
        metavar="WHICH",
        help="The thresholds of each model: every (each of its scores), roc (the corners of its ROC curve: fewer, but"
        " the best point may be missing), a number of them from 0 to 1, or a list: 0.3,0.5.  [default: every]",
    ),
    store_option,
)


def stored_options(function: Callable[..., None]) -> Callable[..., None]:
    """Adds the options about the store to a command, which gets them as one argument `stored`."""

    @wraps(function)
    def call(*, stored: tuple[str, ...], folder: Path, **options: Any) -> None:
        fields = {name: options.pop(name) for name in OF_STORED}
        function(stored=Stored(DirectoryStore(folder), stored, **fields), **options)

    for option in reversed(_STORED):
        call = option(call)
    return call


def parse_thresholds(text: str | None) -> Any:
    """The value of --thresholds: `every`, `roc`, a number of thresholds, or a list."""
    if text in (None, "every", "roc"):
        return text or "every"
    try:
        number = int(text)
    except ValueError:
        return _parse_list(text)
    if number < 2:
        raise UsageError("--thresholds: at least 2, from 0 to 1")
    return number


def metrics_for(metrics: Sequence[str], confidences: Confidences) -> Sequence[str]:
    """The metrics asked for; by default the accuracy, and the equalized odds of each attribute."""
    return metrics or ("acc", *(f"eod+{attribute}" for attribute in confidences.attributes))


def refuse_options(names: Sequence[str], reason: str) -> None:
    """Refuses options that have no meaning together with the others."""
    context = click.get_current_context()
    for option in context.command.params:
        if option.name in names and context.get_parameter_source(option.name) is ParameterSource.COMMANDLINE:
            raise UsageError(f"{option.opts[0]} {reason}")


def check_form(form: str | None, as_json: bool) -> None:
    """Refuses --format together with --json."""
    if form is not None and as_json:
        raise UsageError("give either --format or --json")


def check_target(path: Path, inputs: Sequence[Path], force: bool) -> None:
    """Refuses to replace an input, or without --force any existing file."""
    if path.resolve() in {file.resolve() for file in inputs}:
        raise UsageError(f"{path} is an input and cannot be the output; choose another file (--out)")
    if path.exists() and not force:
        raise UsageError(f"{path} already exists; choose another file (--out), or give --force")


def _parse_list(text: str) -> list[float]:
    try:
        values = [float(part) for part in text.split(",")]
    except ValueError:
        values = [math.nan]
    if any(map(math.isnan, values)):
        raise UsageError(
            f"--thresholds: {text!r} must be every, roc, a number of thresholds, or numbers such as 0.3,0.5"
        )
    return values
