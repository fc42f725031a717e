"""Files of predictions and the parts of a split that they are for: one for each, or for all folds of a repeat."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evaluand.core.errors import SpecError
from evaluand.core.files.json import Findings
from evaluand.interop.d3m.paths import held
from evaluand.interop.d3m.predictions import Cells, check_rows, read_predictions
from evaluand.interop.d3m.truth import Mask, Tested


@dataclass(frozen=True, kw_only=True)
class Part:
    """The rows of one fold of one repeat: what is right beside what was predicted.

    Attributes:
        repeat: which repeat.
        fold: which fold of it.
        truth: the rows that are tested, with what is right.
        predictions: the rows for them.
        cells: the file of these.
        truth_rows: which rows of the truth's file they are.
        prediction_rows: likewise of the predictions' file.
    """

    repeat: int
    fold: int
    truth: pa.Table
    predictions: pa.Table
    cells: Cells = field(repr=False)
    truth_rows: np.ndarray[Any, np.dtype[np.int64]] = field(repr=False)
    prediction_rows: np.ndarray[Any, np.dtype[np.int64]] = field(repr=False)

    @property
    def file(self) -> Path:
        """Where the predictions stand."""
        return self.cells.path


def files_beside(task: Tested) -> list[Path]:
    """The file where the problem says, else those beside it that are numbered.

    Raises:
        DataError: a link leads out of the problem's folder.
        SpecError: there are none.
    """
    place = task.expected()
    if place.is_file():
        return [place]
    beside = sorted(place.parent.glob("*.csv"))
    numbered = [path for path in beside if path.stem.startswith(place.stem) and any(_numbers_in(path).values())]
    if not numbered:
        raise SpecError(
            f"{place}: there are no predictions", python="give predictions", command="give --predictions FILE"
        )
    return [held(path, place.parent) for path in numbered]


def _numbers_in(path: Path) -> dict[str, str | None]:
    """The numbers of repeat and fold in a file's name."""
    found = {name: pattern.search(path.stem.lower()) for name, pattern in _NUMBERED.items()}
    return {name: match[1] if match else None for name, match in found.items()}


def assigned(files: Sequence[Path], task: Tested) -> dict[Path, list[tuple[int, int]]]:
    """Which parts each file is for; each part has one file.

    Raises:
        SpecError: a part has none or two, or a file has none.
    """
    found: dict[Path, list[tuple[int, int]]] = {}
    taken: dict[tuple[int, int], Path] = {}
    repeats = len({repeat for repeat, _ in task.parts})
    if not task.parts:
        raise SpecError(f"{task.document}: the split tests no row, so that there is nothing to score")
    twice = next((path for place, path in enumerate(files) if path in files[:place]), None)
    if twice is not None:
        raise SpecError(f"{twice}: is given twice; give each file once")
    for path in files:
        named = {name: None if text is None else int(text) for name, text in _numbers_in(path).items()}
        if len(files) == 1 and len(task.parts) == 1:
            named = {"repeat": None, "fold": None}
        if repeats > 1 and named["repeat"] is None:
            raise SpecError(f"{path}: the split has {repeats} repeats; name a file for each, such as {_example(task)}")
        parts = [part for part in task.parts if _is_for(part, named)]
        if not parts:
            told = ", ".join(f"{name} {number}" for name, number in named.items() if number is not None)
            raise SpecError(f"{path}: the split has no {told}")
        for part in parts:
            if part in taken:
                raise SpecError(f"{path}: {taken[part]} is for repeat {part[0]}, fold {part[1]} too; give one of them")
            taken[part] = path
        found[path] = parts
    lacking = [part for part in task.parts if part not in taken]
    if lacking:
        repeat, fold = lacking[0]
        told = f"{len(lacking)} of {len(task.parts)} parts have no predictions, first repeat {repeat}, fold {fold}"
        raise SpecError(f"{told}; name their files such as {_example(task)}")
    return found


_NUMBERED: Final = {"repeat": re.compile(r"(?:repeat|rep)[_-]?(\d+)"), "fold": re.compile(r"fold[_-]?(\d+)")}


def _is_for(part: tuple[int, int], named: Mapping[str, int | None]) -> bool:
    return all(named[name] in (None, number) for name, number in zip(("repeat", "fold"), part, strict=True))


def _example(task: Tested) -> str:
    return f"{Path(task.problem.outputs.predictions).stem}_repeat0_fold0.csv"


def parts_of(files: Mapping[Path, list[tuple[int, int]]], task: Tested, findings: Findings) -> Iterator[Part]:
    """The rows of each part, after all were held to what is tested."""
    for path, parts in files.items():
        given = read_predictions(path, task.form, findings)
        if given is None:
            continue
        tested = np.any([task.parts[part] for part in parts], axis=0)
        truth = _taken(task.truth.table, tested)
        check_rows(given, truth, task.known, task.form, findings)
        for part in parts:
            mine = np.ones(given.table.num_rows, bool)
            if len(parts) > 1:
                truth = _taken(task.truth.table, task.parts[part])
                own = truth.column(task.form.key).combine_chunks()
                mine = np.asarray(pc.is_in(given.keys(task.form), value_set=own))
            yield Part(
                repeat=part[0],
                fold=part[1],
                truth=truth,
                predictions=_taken(given.table, mine),
                cells=given,
                truth_rows=np.flatnonzero(task.parts[part]),
                prediction_rows=np.flatnonzero(mine),
            )


def _taken(table: pa.Table, mask: Mask) -> pa.Table:
    return table if mask.all() else table.filter(pa.array(mask))
