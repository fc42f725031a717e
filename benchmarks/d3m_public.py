"""Public D3M problems as they were published: each with its published score next to ours.

    python benchmarks/d3m_public.py FOLDER

FOLDER has unmodified problem folders at any depth, such as clones of usnistgov/dval and byu-dml/d3m-experimenter. Each
problem is scored as a folder and, where it has them, by its parts TRAIN, TEST and SCORE, with the predictions that its
publisher put there.

`bad_input_testing` has NIST's nine invalid predictions. They name their index `d3mIndex`, which NIST's folder of the
problem has since renamed `dse_index`, so there each is refused for that. They are scored by the archive's folder too,
where each is refused for its own reason, except the file whose columns are swapped: it is read by its header, and has
the published score.

Exits 1 if a published score is not reproduced, or an invalid file is accepted.
"""

from __future__ import annotations

import csv
import math
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from evaluand.core.errors import DataError, EvaluandError, SpecError
from evaluand.core.files.paths import relative_name
from evaluand.interop.d3m.documents import PROBLEM, document_at, problem_root
from evaluand.interop.d3m.folder import examine_folder
from evaluand.predictions.result import SystemScores
from evaluand.predictions.scoring import score, scores_table

BAD = "bad_input_testing"
BAD_ARE_OF = "1491_one_hundred_plants_margin"
SWAPPED = "swapped_columns"
PREDICTIONS = ("*_solution/predictions.csv", "mitll_predictions.csv")
PUBLISHED = ("*_solution/scores.csv", "SCORE/baseline_scores.csv", "baseline_scores.csv")
EXPECTED = "expectedResult.txt"
TOLERANCE = 1e-12


@dataclass(frozen=True)
class Row:
    """A problem, or a part of one, and what came of scoring it.

    Attributes:
        ours: the value, or None where there is none.
        published: the value that the publisher states for this metric.
        remark: where the tested rows came from, or why there is no score.
    """

    root: Path
    problem: str
    part: str
    metric: str = ""
    published: float | None = None
    ours: float | None = None
    n: int = 0
    remark: str = ""

    @property
    def differs(self) -> bool:
        both = self.published is not None and self.ours is not None
        return both and not math.isclose(self.ours or 0.0, self.published or 0.0, rel_tol=TOLERANCE)


def main(folder: Path) -> int:
    """Prints both tables; the exit code."""
    roots = sorted({problem_root(path, folder) for path in folder.rglob(PROBLEM)})
    rows = [row for root in roots for row in _score_problem(root, folder)]
    _print_problems(rows)
    accepted = _print_bad_files(folder, roots)
    compared = [row for row in rows if row.published is not None and row.ours is not None]
    scored = {row.root for row in compared}
    different = [row for row in compared if row.differs]
    print(f"{len(roots)} problems, of which {len(scored)} have predictions with a published score")
    print(f"{len(compared) - len(different)} of {len(compared)} published scores reproduced to {TOLERANCE:g}")
    return int(bool(different) or accepted > 0)


def _score_problem(root: Path, folder: Path) -> Iterator[Row]:
    name = root.relative_to(folder).as_posix()
    try:
        parts = document_at(root, None).parts
    except SpecError as error:
        yield Row(root, name, "", remark=_shorten(error, root))
        return
    for part in (None, *parts) if len(parts) > 1 else (None,):
        yield from _score_part(root, part, name if part is None else "")


def _score_part(root: Path, part: str | None, name: str) -> Iterator[Row]:
    predictions = next((path for pattern in PREDICTIONS for path in sorted(root.glob(pattern))), None)
    try:
        opened, findings = examine_folder(root, part, attributes=False)
        findings.check()
        by = None if opened is None else opened.tested_by
        source = "tested: all rows" if by is None else f"tested: {relative_name(by, root)}"
        if predictions is None:
            published = ", ".join(f"{metric} {value:.6g}" for metric, value in _published(root).items())
            yield Row(
                root, name, part or "", remark=f"{source}; no predictions published{published and f'; {published}'}"
            )
            return
        scores = score(root, predictions, part=part)
        yield from _compare(scores, root, part, name, source)
    except EvaluandError as error:
        yield Row(root, name, part or "", remark=_shorten(error, root))


def _compare(scores: SystemScores, root: Path, part: str | None, name: str, source: str) -> Iterator[Row]:
    published, expected = _published(root), root / EXPECTED
    metrics = scores_table(scores)["metric"].to_pylist()
    if expected.is_file() and len(metrics) == 1:  # NIST's value of these very predictions
        metric, value = metrics[0], float(expected.read_text())
        if not math.isclose(published.get(metric, value), value, rel_tol=TOLERANCE):
            source += f"; baseline_scores.csv says {published[metric]:.6g}, of other predictions"
        published[metric] = value
    for metric, row in zip(metrics, scores.rows, strict=True):
        yield Row(root, name, part or "", metric, published.get(metric), row.value, row.n, source)


def _published(root: Path) -> dict[str, float]:
    """Metric → value in the publisher's files of scores."""
    found: dict[str, float] = {}
    for path in [path for pattern in PUBLISHED for path in sorted(root.glob(pattern))]:
        with path.open(newline="") as file:
            found |= {row["metric"]: float(row["value"]) for row in csv.DictReader(file)}
    return found


def _print_bad_files(folder: Path, roots: list[Path]) -> int:
    """Prints why each of NIST's invalid files is refused; how many are accepted that should not be."""
    files = sorted(path for path in folder.rglob("*.csv") if path.parent.name == BAD)
    accepted = 0
    for root in (
        [root for root in roots if root.name == BAD_ARE_OF and (root / PREDICTIONS[1]).is_file()] if files else ()
    ):
        print(f"{BAD} by {root.relative_to(folder).as_posix()}:")
        for file in files:
            name = file.stem.partition("(")[2].rstrip(")") or file.stem
            try:
                scores = score(root, file)
                [metric], value = scores_table(scores)["metric"].to_pylist(), scores.rows[0].value
                sound = name == SWAPPED and math.isclose(value, _published(root)[metric], rel_tol=TOLERANCE)
                accepted += not sound
                print(f"  {'accepted' if sound else 'ACCEPTED':<9} {name:<24} {metric} {value!r}")
            except DataError as error:
                reason = _shorten(error, file.parent).replace(f"{file.name}:", "line ").replace(f"{file.name}, ", "")
                print(f"  {'refused':<9} {name:<24} {reason}")
        print()
    return accepted


def _shorten(error: EvaluandError, folder: Path) -> str:
    first = str(error.faults[0]) if isinstance(error, DataError) and error.faults else str(error)
    more = f" (and {len(error.faults) - 1:,} more)" if isinstance(error, DataError) and len(error.faults) > 1 else ""
    return (first + more).replace(f"{folder}/", "").replace(f"{folder}: ", "").partition("\n")[0]


def _print_problems(rows: list[Row]) -> None:
    print(
        f"{'problem':<36} {'part':<6} {'metric':<17} {'published':<19} {'ours':<19} {'n':>5}  tested rows, or why not"
    )
    for row in rows:
        name = row.problem.rpartition("/")[2] if row.problem else ""
        published, ours = ("" if each is None else repr(each) for each in (row.published, row.ours))
        mark = " DIFFERENT" if row.differs else ""
        print(
            f"{name[:36]:<36} {row.part:<6} {row.metric:<17} {published:<19} {ours:<19} {row.n or '':>5}  "
            f"{row.remark}{mark}".rstrip()
        )
    print()


if __name__ == "__main__":
    if len(sys.argv) != 2 or not Path(sys.argv[1]).is_dir():
        sys.exit(__doc__)
    sys.exit(main(Path(sys.argv[1])))
