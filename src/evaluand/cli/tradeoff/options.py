"""Options that the sub-commands of `evaluand tradeoff` share, the stored systems they name, and printed tables."""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import click
import pyarrow as pa
from click import UsageError
from rich.text import Text

from evaluand.aggregation.score_shards import dataset_of
from evaluand.cli.command import argument, option
from evaluand.cli.options import FILE, store_option
from evaluand.cli.output import show
from evaluand.core.errors import SpecError
from evaluand.evaluation.evaluator import Evaluation
from evaluand.metrics.names import is_name
from evaluand.report.terminal.cells import plain_table
from evaluand.report.text import safe
from evaluand.store.addresses import Place
from evaluand.store.folder_store import FolderStore
from evaluand.store.opening import open_store
from evaluand.tradeoff.confidences import Confidences
from evaluand.tradeoff.evaluations import CONFIDENT, confidences_of, find_variants, of_evaluations
from evaluand.tradeoff.files.metrics import parse_metrics
from evaluand.tradeoff.objectives import Limit
from evaluand.tradeoff.points import Tradeoff
from evaluand.tradeoff.short_names import FAIRNESS, UTILITIES, WITHIN


@dataclass(frozen=True, kw_only=True)
class Stored:
    """The systems of --stored, with the metrics, attributes and thresholds asked for."""

    runs: tuple[str, ...] = option(
        "Runs, evaluations or aggregations in the store: the models or variants of one system, or of each SYSTEM;"
        " repeatable. All of one system must be on the same examples.",
        "--stored",
        type=str,
        metavar="[SYSTEM=]NAME",
    )
    metrics: tuple[str, ...] = option(
        "acc, f1, eod+ATTRIBUTE, minmaxd+UTILITY+ATTRIBUTE …: metrics of decisions at thresholds; or of stored"
        ' scores "KIND(SCORER)" and "KIND(SCORER) difference|ratio|min|max by ATTRIBUTE", by which each run is a point.'
        " Repeatable; by default acc, and eod of each attribute.",
        "--metric",
        "-m",
        type=str,
        metavar="METRIC",
    )
    by: tuple[str, ...] = option("With --stored: attributes, if no metric names any.", type=str, metavar="ATTRIBUTE")
    label: str | None = option("With --stored: the positive label.", metavar="LABEL")
    scorer: str | None = option(
        "With --stored: the scorer of the confidences or scores, if there are several.", metavar="SCORER"
    )
    thresholds: str | None = option(
        "The thresholds of each model: every (each of its scores), roc (the corners of its ROC curve: fewer, but"
        " the best point may be missing), a number of them from 0 to 1, or a list: 0.3,0.5.  [default: every]",
        metavar="WHICH",
    )
    folder: Place = store_option

    @cached_property
    def store(self) -> FolderStore:
        """The store of the systems."""
        return open_store(self.folder)

    @property
    def of_scores(self) -> bool:
        """Whether runs are points by their stored scores, not models with thresholds."""
        of_scores = [_is_of_scores(metric) for metric in self.metrics]
        if any(of_scores) and not all(of_scores):
            one, other = self.metrics[of_scores.index(True)], self.metrics[of_scores.index(False)]
            raise UsageError(
                f"{one} is a metric of stored scores and {other} one of decisions at thresholds; give only one sort"
            )
        return bool(self.runs) and any(of_scores)

    def with_metrics_of(self, best: str, where: Sequence[str]) -> Stored:
        """The same with the metrics of a choice, if no others are asked for."""
        if self.metrics or not self.runs:
            return self
        metrics = dict.fromkeys([best, *(Limit.parse(text, best).name for text in where)])
        return replace(self, metrics=tuple(metrics))

    def confidences(self) -> Iterator[Confidences]:
        """The confidences of each system."""
        objectives = parse_metrics(self.metrics) if self.metrics else ()
        names = dict.fromkeys((*self.by, *(name for one in objectives for name in one.by)))
        for system, evaluations in self._systems():
            every = dataset_of(next(iter(evaluations.values()))).roles.attributes
            yield self.confidences_of(evaluations, [*names] if names or objectives else every, system)

    def confidences_of(self, evaluations: Mapping[str, Evaluation], by: Sequence[str], system: str) -> Confidences:
        """The confidences of some evaluations, with the options of the command."""
        label = _parse_label(self.label, [*evaluations.values()])
        return confidences_of(evaluations, by, label=label, scorer=self.scorer, system=system)

    def points(self) -> Iterator[Tradeoff]:
        """The points of each system, by stored scores."""
        for system, evaluations in self._systems():
            yield self.points_of(evaluations, self.metrics, system)

    def points_of(self, evaluations: Mapping[str, Evaluation], metrics: Sequence[str], system: str) -> Tradeoff:
        """The points of some evaluations, with the options of the command."""
        label = _parse_label(self.label, [*evaluations.values()])
        return of_evaluations(evaluations, metrics, label=label, scorer=self.scorer, system=system)

    def _systems(self) -> Iterator[tuple[str, dict[str, Evaluation]]]:
        """Each system with its models or variants: `SYSTEM=NAME`, or all names without a system as one."""
        known = {ref.name for ref in self.store.refs()}
        names_of: dict[str, list[str]] = {}
        unnamed = [text for text in self.runs if text in known or "=" not in text]
        together = " + ".join(unnamed)
        if len(together) > _LONGEST:
            together = f"{unnamed[0]} + {len(unnamed) - 1} others"
        for text in self.runs:
            system, _, name = (together, "", text) if text in unnamed else text.partition("=")
            names_of.setdefault(system, []).append(name)
        for system, names in names_of.items():
            yield system, find_variants(self.store, names)


def _is_of_scores(metric: str) -> bool:
    """Whether a metric is one of stored scores; the attributes of short names may contain any character."""
    head, attribute, _ = metric.partition("+")
    if head in UTILITIES or (attribute and head in (*FAIRNESS, *WITHIN)):
        return False
    return bool(re.search(r"[(\s]", metric)) or is_name(metric)


def _parse_label(text: str | None, evaluations: Sequence[Evaluation]) -> str | int | bool | None:
    """The label in the type of the stored truths; as text if it does not fit that type."""
    if text is None:
        return None
    types = [
        schema.field("truth").type
        for evaluation in evaluations
        for schema in (next(evaluation.batches(scorer)).schema for scorer in evaluation.scorers)
        if set(schema.names) >= CONFIDENT
    ]
    if any(map(pa.types.is_boolean, types)):
        return {"true": True, "false": False}.get(text.lower(), text)
    if any(pa.types.is_integer(kind) or pa.types.is_floating(kind) for kind in types):
        try:
            return int(text)
        except ValueError:
            return text
    return text


_LONGEST: Final = 80


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

files_argument = argument(nargs=-1, metavar="[FILE]...", type=FILE)
names_option = option(
    "Names for the systems, one for each in order: files first, then those of --stored.",
    "--name",
    type=str,
    metavar="NAME",
)
deduplicate_option = option(
    "Treat points with equal values as one.", "--deduplicate/--no-deduplicate", default=True, show_default=True
)
format_option = option("Print the table as github, latex, html, csv, tsv, rst …", "--format", metavar="NAME")


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


def print_table(header: Sequence[str], rows: Sequence[Sequence[Any]], form: str | None = None) -> None:
    """Prints a table of texts, counts and numbers; without a format for people."""
    if form is None:
        return _print_for_people(header, rows)
    if form == "csv":
        return _print_csv(header, rows)
    try:
        from tabulate import tabulate, tabulate_formats
    except ImportError:
        raise SpecError(f"tables as {form} need tabulate: pip install 'evaluand[plots]'") from None
    known = [one for one in tabulate_formats if one not in _UNSAFE]
    if form not in known:
        raise UsageError(f"--format: there is no {form!r}; there are csv, {', '.join(known)}")
    sides = [_side(value) for value in rows[0]]
    cells = [[*map(_format_cell, row)] for row in rows]
    if form in _PIPED:
        header, *cells = ([cell.replace("|", "\\|") for cell in row] for row in (header, *cells))
    click.echo(tabulate(cells, header, tablefmt=form, disable_numparse=True, colalign=sides))


def _print_for_people(header: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    table = plain_table(*header)
    for column, value in zip(table.columns, rows[0] if rows else (), strict=False):
        column.no_wrap, column.overflow = not isinstance(value, str), "fold"  # names wrap, numbers do not
    for row in rows:
        table.add_row(*(Text(_format_cell(value), justify=_side(value)) for value in row))
    show(table)


def _print_csv(header: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    text = io.StringIO()
    exact = [[safe(each) if isinstance(each, str) else each for each in row] for row in rows]
    csv.writer(text, lineterminator="\n").writerows([header, *exact])
    click.echo(text.getvalue(), nl=False)


def _format_cell(value: str | float | None) -> str:
    if isinstance(value, str | int):
        return safe(str(value))
    return "–" if value is None or math.isnan(value) else f"{value:.4f}"


def _side(value: object) -> Any:
    return "left" if isinstance(value, str) else "right"


_PIPED: Final = ("github", "pipe", "orgtbl", "jira")
"""Formats of tables in which | ends a cell."""
_UNSAFE: Final = ("latex_raw", "unsafehtml")
"""Formats that read names as markup."""
