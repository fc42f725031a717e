"""`evaluand score`: whether columns of a table or the files of a problem are meant."""

from pathlib import Path
from shlex import join
from typing import Final

import orjson
from click import UsageError

from evaluand.cli.command import make_command
from evaluand.cli.score.columns import score_files
from evaluand.cli.score.objects import score_objects
from evaluand.cli.score.options import ScoreOptions
from evaluand.cli.score.problems import score_problem
from evaluand.data.files import STDIN, is_glob

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


@make_command("score", epilog=_EXAMPLES)
def command(given: ScoreOptions) -> None:
    """Score predictions: columns of a file against a column of truth, or files by the metrics of their problem.

    FILE is CSV, JSON lines, JSON, Parquet, Arrow or Excel, or - for stdin; several files are one system each. Types and
    metrics follow from the data. Several systems are compared row by row. FOLDER is a problem with its data: every
    fault of its files is reported with line, column and code, and the exit code is 1. It is 3 if a gate fails.
    """
    if given.coco is not None:
        _check_for_objects(given)
        return score_objects(given, given.coco)
    if given.shape:
        raise UsageError("--shape is for --coco")
    used = [name for name in _COLUMN_OPTIONS if getattr(given, name)]
    source = _find_problem(given, used)
    if source is None and not given.files and not used:
        source = given.problem
    elif source is None:
        _check_for_columns(given)
        return score_files(given)
    if used:
        raise UsageError(f"{_flag(used[0])} is for columns of a file, and {source} is a problem")
    _check_for_problem(given)
    score_problem(given, source)


_COLUMN_OPTIONS: Final = (
    *("prediction", "scores", "confidences", "threshold", "truth_file", "id_", "kind", "inputs", "weight", "cluster"),
    *("where", "missing", "types", "form", "delimiter", "fairness"),
)
_PROBLEM_OPTIONS: Final = ("predictions", "k", "definition", "part", "out", "layout")
_FLAGS: Final = {
    "id_": "--id",
    "form": "--format",
    "scores": "--score",
    "types": "--type",
    "confidences": "--confidence",
}


def _flag(name: str) -> str:
    return _FLAGS.get(name, f"--{name.rstrip('s') if name in ('inputs', 'gates') else name}".replace("_", "-"))


def _find_problem(given: ScoreOptions, used: list[str]) -> Path | None:
    """The problem that is named; None where columns of files are meant, or no file is named."""
    files = given.files
    if given.problem is not None:
        if files:
            raise UsageError(f"give {files[0]} or --problem, not both")
        return Path(given.problem)
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
    if used and not (path.is_dir() and given.predictions):
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


def _check_for_columns(given: ScoreOptions) -> None:
    """Refuses options for problems."""
    if given.predictions:
        columns = join(f"--prediction={each}" for each in given.predictions)
        file = given.files[0] if given.files else "FILE"
        raise UsageError(f"--predictions names files of a problem; for columns of {file} give {columns}")
    wrong = next((name for name in _PROBLEM_OPTIONS if getattr(given, name)), None)
    if wrong is not None:
        raise UsageError(f"{_flag(wrong)} is for problems; for columns of a file see evaluand score --help")


def _check_for_objects(given: ScoreOptions) -> None:
    """Refuses options for columns or problems."""
    names = ("truth", *_COLUMN_OPTIONS, *_PROBLEM_OPTIONS, "problem", "pos_label")
    wrong = next((name for name in names if getattr(given, name)), None)
    if wrong is not None:
        raise UsageError(f"{_flag(wrong)} is not for --coco; its files say what is true and what was found")


def _check_for_problem(given: ScoreOptions) -> None:
    """Refuses files that do not exist."""
    if given.truth is not None and not Path(given.truth).exists():
        file = next(iter(given.predictions), "FILE")
        raise UsageError(
            f"--truth {given.truth}: no such file; for columns of one file: evaluand score {file} --truth {given.truth}"
            " --prediction COLUMN"
        )
    for path in given.predictions:
        if not Path(path).exists():
            raise UsageError(f"--predictions {path}: no such file; --prediction names a column")
