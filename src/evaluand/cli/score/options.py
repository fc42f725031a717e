"""The options of `evaluand score`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import click

from evaluand.aggregation.fairness import CRITERIA
from evaluand.cli.command import argument, option
from evaluand.cli.options import (
    FILE,
    TARGET,
    force_option,
    gate_option,
    json_option,
    junit_option,
    store_option,
    where_option,
)
from evaluand.metrics.base.metric import Missing
from evaluand.predictions.columns.proposals import KINDS
from evaluand.predictions.options import MOST_GROUPS
from evaluand.predictions.problem.formats import default_format
from evaluand.store.addresses import Place

SHAPES: Final = ("boxes", "masks", "semantic")


class _Layout(click.ParamType):  # type: ignore[type-arg]
    """A layout of the file of scores, of those that the installed format has."""

    name = "layout"

    def get_metavar(self, param: click.Parameter, ctx: click.Context | None = None) -> str:
        return f"[{'|'.join(default_format().score_layouts)}]"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        return str(click.Choice(default_format().score_layouts).convert(value, param, ctx))


@dataclass(frozen=True, kw_only=True)
class ScoreOptions:
    files: tuple[str, ...] = argument(nargs=-1, metavar="[FILE...|FOLDER]")
    truth: str | None = option(
        "The column of the truth. For a problem: a CSV file of index and targets, or a dataset's folder; by default"
        " the truth in FOLDER.",
        metavar="COLUMN|FILE",
    )
    prediction: tuple[str, ...] = option("A column of predictions; repeat it for several systems.", metavar="COLUMN")
    scores: tuple[str, ...] = option(
        "A column of scores: of the positive class, one for each --prediction, or of the class LABEL.",
        "--score",
        metavar="[LABEL=]COLUMN",
    )
    confidences: tuple[str, ...] = option(
        "A column of the confidence of each prediction, one for each --prediction.",
        "--confidence",
        metavar="COLUMN",
    )
    threshold: float | None = option("Without --prediction: predict from this --score on.", metavar="X")
    truth_file: str | None = option("The file that has --truth, if it is another one.", metavar="FILE")
    id_: str | None = option("The column that names each row, by which files are joined.", "--id", metavar="COLUMN")
    metrics: tuple[str, ...] = option(
        "Such as accuracy; repeatable. By default those that suit the column of the truth, or those of the problem.",
        "--metric",
        metavar="NAME",
    )
    by: tuple[str, ...] = option("Values by group, and their disparities; A,B crosses two columns.", metavar="COLUMN")
    groups: int = option("The most groups of --by.", type=click.IntRange(1), default=MOST_GROUPS, metavar="N")
    fairness: tuple[str, ...] = option(
        "A criterion between the groups of --by, such as equalized_odds; repeatable.",
        type=click.Choice([*CRITERIA]),
        metavar="CRITERION",
    )
    missing: Missing | None = option(
        "How rows without a prediction count.",
    )
    pos_label: str | None = option("The label that counts as positive.", metavar="LABEL")
    kind: Any = option("What --truth holds, if its values do not say it.", type=click.Choice(KINDS))
    inputs: tuple[str, ...] = option("A column to show with each example; repeatable.", "--input", metavar="COLUMN")
    weight: str | None = option("The weight of each row.", metavar="COLUMN")
    cluster: str | None = option("Rows with equal values are not independent.", metavar="COLUMN")
    where: str | None = where_option
    types: tuple[str, ...] = option(
        "What a column holds, if its cells do not say it: integer, number, boolean, text, or list for a list in each"
        " cell, with | or ; between its items.",
        "--type",
        metavar="COLUMN=TYPE",
    )
    form: str | None = option(
        "The format of FILE, by default from its suffix or content.", "--format", metavar="FORMAT"
    )
    delimiter: str | None = option("The delimiter of a CSV file.  [default: a comma]", metavar="CHARACTER")
    coco: Path | None = option(
        "Instances of COCO: the arguments are files of results, scored by the metrics of pycocotools.",
        type=FILE,
        metavar="FILE",
    )
    shape: Any = option(
        "With --coco: what to score.  [default: boxes if there are; semantic where results have no score]",
        type=click.Choice(SHAPES),
    )
    gates: tuple[str, ...] = gate_option
    junit: Path | None = junit_option
    problem: Path | None = option(
        "A problem by its document, in place of FOLDER.", type=click.Path(exists=True, path_type=Path), metavar="FILE"
    )
    predictions: tuple[str, ...] = option(
        "For a problem: the file to score, by default the one that the problem names; repeat the option for systems,"
        " which are compared, or for repeats and folds, with their numbers in the names:"
        " predictions_repeat0_fold1.csv.",
        metavar="FILE",
    )
    k: int | None = option("With --predictions and --metric: how many rows count.", type=click.IntRange(1), metavar="N")
    definition: str | None = option(
        "Which public definition a problem's metrics follow: 3.1.1, core-2022 …", metavar="NAME"
    )
    part: str | None = option("TRAIN, TEST or SCORE, if each has its own documents.", metavar="PART")
    out: Path | None = option("Write a problem's scores.csv.", type=TARGET, metavar="FILE")
    layout: str | None = option("The layout of scores.csv, by default the first of these.", type=_Layout())
    table: Path | None = option(
        "Write every value with all its attributes: .csv or .parquet.", type=TARGET, metavar="FILE"
    )
    report: Path | None = option("Write a report as one HTML file.", type=TARGET, metavar="FILE")
    no_intervals: bool = option("Values without intervals: faster on large files.")
    force: bool = force_option
    name: str | None = option("Store runs, evaluations and values under this name.", metavar="NAME")
    folder: Place = store_option
    as_json: bool = json_option
