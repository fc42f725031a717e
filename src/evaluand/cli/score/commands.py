"""The options of `evaluand score`, and whether columns of a table or the files of a problem are meant."""

from pathlib import Path
from shlex import join
from typing import Any, Final, get_args

import click
import orjson
from click import UsageError

from evaluand.cli.gates import gate_options
from evaluand.cli.options import (
    FILE,
    TARGET,
    force_option,
    json_option,
    near_options,
    repeatable,
    store_option,
    where_option,
)
from evaluand.cli.score.columns import ColumnFiles, score_files
from evaluand.cli.score.objects import SHAPES, ObjectFiles, score_objects
from evaluand.cli.score.output import Output
from evaluand.cli.score.problems import ProblemOptions, score_problem
from evaluand.data.files import STDIN, is_glob
from evaluand.metrics.base.metric import Missing
from evaluand.predictions.columns.proposals import KINDS
from evaluand.predictions.columns.scoring import ColumnOptions
from evaluand.predictions.problem.formats import default_format

_EXAMPLES = """\b
Examples:
  evaluand score predictions.csv --truth label --prediction model
  evaluand score predictions.csv --truth label --prediction a --prediction b --by sex
  evaluand score predictions.csv --truth label --score p_yes --pos-label yes --metric roc_auc
  evaluand score a.csv b.csv --truth-file truth.csv --truth label --prediction said --id id
  evaluand score 185_baseball --predictions mine.csv --out scores.csv
  evaluand score --predictions mine.csv --truth right.csv --metric accuracy --metric f1Macro
  evaluand score --coco instances.json results_a.json results_b.json
"""


class _Layout(click.ParamType):  # type: ignore[type-arg]
    """A layout of the file of scores, of those that the installed format has."""

    name = "layout"

    def get_metavar(self, param: click.Parameter, ctx: click.Context | None = None) -> str:
        return f"[{'|'.join(default_format().score_layouts)}]"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        return str(click.Choice(default_format().score_layouts).convert(value, param, ctx))


_NEAR_OPTIONS: Final = {
    **dict.fromkeys(("--target", "--label", "--labels", "--y", "--y-true", "--gold", "--expected"), "--truth COLUMN"),
    **dict.fromkeys(("--pred", "--preds", "--y-pred", "--predicted", "--output", "--response"), "--prediction COLUMN"),
    **dict.fromkeys(("--prob", "--proba", "--probability", "--y-score", "--scores"), "--score COLUMN"),
    **dict.fromkeys(("--group", "--groupby", "--group-by", "--slice"), "--by COLUMN"),
    **dict.fromkeys(("--metrics", "--measure"), "--metric NAME"),
    **dict.fromkeys(("--positive", "--pos", "--positive-label", "--positive-class"), "--pos-label LABEL"),
    **dict.fromkeys(("--key", "--on", "--join"), "--id COLUMN"),
    **dict.fromkeys(("--html", "--output-html"), "--report FILE"),
    **dict.fromkeys(("--sep", "--separator"), "--delimiter CHARACTER"),
    **dict.fromkeys(("--task", "--type", "--problem-type"), "--kind"),
    **dict.fromkeys(
        ("--compare", "--baseline", "--vs"), "--prediction once for each system; the first is the baseline"
    ),
}


@click.command("score", cls=near_options(_NEAR_OPTIONS), epilog=_EXAMPLES)
@click.argument("files", nargs=-1, metavar="[FILE...|FOLDER]")
@click.option(
    "--truth",
    metavar="COLUMN|FILE",
    help="The column of the truth. For a problem: a CSV file of index and targets, or a dataset's folder; by default"
    " the truth in FOLDER.",
)
@repeatable("--prediction", metavar="COLUMN", help="A column of predictions; repeat it for several systems.")
@repeatable(
    "--score",
    "scores",
    metavar="[LABEL=]COLUMN",
    help="A column of scores: of the positive class, one for each --prediction, or of the class LABEL.",
)
@repeatable(
    "--confidence",
    "confidences",
    metavar="COLUMN",
    help="A column of the confidence of each prediction, one for each --prediction.",
)
@click.option("--threshold", type=float, metavar="X", help="Without --prediction: predict from this --score on.")
@click.option("--truth-file", metavar="FILE", help="The file that has --truth, if it is another one.")
@click.option("--id", "id_", metavar="COLUMN", help="The column that names each row, by which files are joined.")
@repeatable(
    "--metric",
    "metrics",
    metavar="NAME",
    help="Such as accuracy; repeatable. By default those that suit the column of the truth, or those of the problem.",
)
@repeatable("--by", metavar="COLUMN", help="Values by group, and their disparities; A,B crosses two columns.")
@click.option("--missing", type=click.Choice(get_args(Missing)), help="How rows without a prediction count.")
@click.option("--pos-label", metavar="LABEL", help="The label that counts as positive.")
@click.option("--kind", type=click.Choice(KINDS), help="What --truth holds, if its values do not say it.")
@repeatable("--input", "inputs", metavar="COLUMN", help="A column to show with each example; repeatable.")
@click.option("--weight", metavar="COLUMN", help="The weight of each row.")
@click.option("--cluster", metavar="COLUMN", help="Rows with equal values are not independent.")
@where_option
@click.option("--format", "form", metavar="FORMAT", help="The format of FILE, by default from its suffix or content.")
@click.option("--delimiter", metavar="CHARACTER", help="The delimiter of a CSV file.  [default: a comma]")
@click.option(
    "--coco",
    type=FILE,
    metavar="FILE",
    help="Instances of COCO or LVIS, or a panoptic document: the arguments are files of results, scored by the metrics"
    " of pycocotools, lvis or panopticapi.",
)
@click.option(
    "--shape",
    type=click.Choice(SHAPES),
    help="With --coco: what to score.  [default: boxes if there are; semantic where results have no score]",
)
@gate_options
@click.option("--problem", type=click.Path(exists=True, path_type=Path), metavar="FILE", help="Instead of FOLDER.")
@repeatable(
    "--predictions",
    metavar="FILE",
    help="For a problem: the file to score, by default the one that the problem names; repeat the option for repeats"
    " and folds, with their numbers in the names: predictions_repeat0_fold1.csv.",
)
@click.option("--k", type=click.IntRange(1), metavar="N", help="With --predictions and --metric: how many rows count.")
@click.option(
    "--definition", metavar="NAME", help="Which public definition a problem's metrics follow: 3.1.1, core-2022 …"
)
@click.option("--part", metavar="PART", help="TRAIN, TEST or SCORE, if each has its own documents.")
@click.option("--out", type=TARGET, metavar="FILE", help="Write a problem's scores.csv.")
@click.option("--layout", type=_Layout(), help="The layout of scores.csv, by default the first of these.")
@click.option(
    "--table", type=TARGET, metavar="FILE", help="Write every value with all its attributes: .csv or .parquet."
)
@click.option("--report", type=TARGET, metavar="FILE", help="Write a report as one HTML file.")
@click.option("--no-intervals", is_flag=True, help="Values without intervals: faster on large files.")
@force_option
@click.option("--name", metavar="NAME", help="Store runs, evaluations and values under this name.")
@store_option
@json_option
def command(**given: Any) -> None:
    """Score predictions: columns of a file against a column of truth, or files by the metrics of their problem.

    FILE is CSV, JSON lines, JSON, Parquet, Arrow or Excel, or - for stdin; several files are one system each. Types and
    metrics follow from the data. Several systems are compared row by row. FOLDER is a problem with its data: every
    fault of its files is reported with line, column and code, and the exit code is 1. It is 3 if a gate fails.
    """
    if given["coco"] is not None:
        return score_objects(_object_files(given))
    if given["shape"]:
        raise UsageError("--shape is for --coco")
    used = [name for name in _COLUMN_OPTIONS if given[name]]
    source = _find_problem(given, used)
    if source is None and not given["files"] and not used:
        source = given["problem"]
    elif source is None:
        return score_files(_column_files(given))
    if used:
        raise UsageError(f"{_flag(used[0])} is for columns of a file, and {source} is a problem")
    score_problem(_problem_options(given, source))


_COLUMN_OPTIONS: Final = (
    *("prediction", "scores", "confidences", "threshold", "truth_file", "id_", "by", "kind", "inputs", "weight"),
    *("cluster", "where", "missing", "form", "delimiter", "gates", "junit"),
)
_PROBLEM_OPTIONS: Final = ("predictions", "k", "definition", "part", "out", "layout")
_FLAGS: Final = {"id_": "--id", "form": "--format", "scores": "--score", "confidences": "--confidence"}


def _flag(name: str) -> str:
    return _FLAGS.get(name, f"--{name.rstrip('s') if name in ('inputs', 'gates') else name}".replace("_", "-"))


def _find_problem(given: dict[str, Any], used: list[str]) -> Path | None:
    """The problem that is named; None where columns of files are meant, or no file is named."""
    files: tuple[str, ...] = given["files"]
    if given["problem"] is not None:
        if files:
            raise UsageError(f"give {files[0]} or --problem, not both")
        return Path(given["problem"])
    if len(files) != 1 or files[0] == STDIN:
        return None
    path = Path(files[0])
    if not path.exists() and Path(files[0].partition("#")[0]).is_file():
        return None  # a part of a file
    if not path.exists() and not is_glob(files[0]):
        raise UsageError(f"{files[0]}: no such file or folder")
    if path.suffix in (".yaml", ".yml", ".py"):
        what = "an experiment" if path.suffix != ".py" else "an experiment with this code"
        raise UsageError(f"{path} has no rows to score; `evaluand run FILE` runs {what}")
    if used and not (path.is_dir() and given["predictions"]):
        return None
    return path if path.is_dir() or _is_document(path) else None


def _is_document(path: Path) -> bool:
    """Whether a file is one JSON object, and so the document of a problem and no table."""
    if path.suffix.lower() != ".json":
        return False
    try:
        return isinstance(orjson.loads(path.read_bytes()), dict)
    except orjson.JSONDecodeError:
        return True  # which lists what is wrong with it


def _column_files(given: dict[str, Any]) -> ColumnFiles:
    files: tuple[str, ...] = given["files"]
    if given["predictions"]:
        columns = join(f"--prediction={each}" for each in given["predictions"])
        raise UsageError(
            f"--predictions names files of a problem; for columns of {files[0] if files else 'FILE'} give {columns}"
        )
    wrong = next((name for name in _PROBLEM_OPTIONS if given[name]), None)
    if wrong is not None:
        raise UsageError(f"{_flag(wrong)} is for problems; for columns of a file see evaluand score --help")
    options = ColumnOptions(
        truth=given["truth"] or "",
        predictions=given["prediction"],
        scores=given["scores"],
        confidences=given["confidences"],
        metrics=[
            name.strip() for each in given["metrics"] for name in (each.split(",") if "(" not in each else [each])
        ],
        by=given["by"],
        gates=given["gates"],
        missing=given["missing"],
        kind=given["kind"],
        pos_label=given["pos_label"],
        threshold=given["threshold"],
        id=given["id_"],
        inputs=given["inputs"],
        weight=given["weight"],
        cluster=given["cluster"],
        where=given["where"],
        intervals=not given["no_intervals"],
    )
    return ColumnFiles(
        files=files,
        truth_file=given["truth_file"],
        format=given["form"],
        delimiter=given["delimiter"],
        options=options,
        output=_output(given),
    )


def _output(given: dict[str, Any]) -> Output:
    names = ("junit", "table", "report", "force", "name", "folder", "as_json")
    return Output(**{name: given[name] for name in names})


def _object_files(given: dict[str, Any]) -> ObjectFiles:
    """The options of files of object detection.

    Raises:
        UsageError: an option is for columns or problems.
    """
    taken = ("by", "gates", "junit")
    names = ("truth", *_COLUMN_OPTIONS, *_PROBLEM_OPTIONS, "problem", "pos_label")
    wrong = next((name for name in names if given[name] and name not in taken), None)
    if wrong is not None:
        raise UsageError(f"{_flag(wrong)} is not for --coco; its files say what is true and what was found")
    return ObjectFiles(
        instances=given["coco"],
        intervals=not given["no_intervals"],
        **{name: given[name] for name in ("by", "gates", "files", "metrics", "shape")},
        output=_output(given),
    )


def _problem_options(given: dict[str, Any], source: Path | None) -> ProblemOptions:
    truth = given["truth"]
    if truth is not None and not Path(truth).exists():
        file = next(iter(given["predictions"]), "FILE")
        raise UsageError(
            f"--truth {truth}: no such file; for columns of one file: evaluand score {file} --truth {truth}"
            " --prediction COLUMN"
        )
    for path in given["predictions"]:
        if not Path(path).exists():
            raise UsageError(f"--predictions {path}: no such file; --prediction names a column")
    names = ("predictions", "metrics", "pos_label", "k", "definition", "part", "out", "layout", "table", "report")
    return ProblemOptions(
        source=source,
        truth=None if truth is None else Path(truth),
        intervals=not given["no_intervals"],
        **{name: given[name] for name in (*names, "force", "name", "folder", "as_json")},
    )
