"""Formats of problems: how some system writes problems, their data and their scores as files.

A format is a kind found by the registry (entry points `evaluand.problem_formats`), so that judging predictions needs no
module of the system whose files it reads.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Protocol

from evaluand.core import registry
from evaluand.core.errors import Fault
from evaluand.core.files.json import Findings
from evaluand.predictions.problem.problem import Problem
from evaluand.predictions.problem.sides import CellFault, CriterionFault

if TYPE_CHECKING:
    import pyarrow as pa

    from evaluand.data.dataset import Dataset
    from evaluand.data.split import Folds
    from evaluand.predictions.problem.parts import JudgedPart
    from evaluand.predictions.problem.truth import ProblemTruth

GROUP = "problem_formats"


class OpenProblem(Protocol):
    """A problem with its data, opened from files.

    Attributes:
        root: the folder with all of its files.
        problem: what the document says.
    """

    @property
    def root(self) -> Path: ...

    @property
    def document(self) -> Path: ...

    @property
    def problem(self) -> Problem: ...

    @property
    def hidden(self) -> bool:
        """Whether the target values are missing from the data."""

    @property
    def tested_by(self) -> Path | None:
        """The file that says which rows are tested: the split, or without one the truth; None for neither."""

    def dataset(self, *, truth: bool = True) -> Dataset:
        """The rows as examples; with `truth`, hidden target values are read from their own file if there is one."""

    def folds(self) -> Folds:
        """The split of the rows.

        Raises:
            SpecError: the problem has no split.
        """


class ProblemFormat(ABC):
    """How a system writes problems.

    Attributes:
        kind: the name under which the registry finds it.
        score_layouts: the layouts of its files of scores, the default one first.
    """

    kind: ClassVar[str]
    score_layouts: ClassVar[tuple[str, ...]]

    @abstractmethod
    def recognises(self, path: Path) -> bool:
        """Whether a path is a problem of this format: its document, or a folder with one."""

    @abstractmethod
    def examine(self, path: Path, part: str | None) -> tuple[OpenProblem | None, Findings]:
        """Opens a problem as far as it can be read, with what is wrong.

        Args:
            path: the folder or the document.
            part: which of several parts of the data, where each has its own documents.

        Raises:
            DataError: there is no such file.
            SpecError: there is no problem, or there are several.
        """

    @abstractmethod
    def read_truth(
        self, problem: Path | OpenProblem | Problem, truth: Path | None, part: str | None
    ) -> tuple[ProblemTruth | None, Findings]:
        """The problem with the truth of its tested rows, as far as it can be read, with what is wrong.

        Args:
            problem: its folder or document, an open problem, or a problem stated in code.
            truth: a file of index and targets, or a dataset; None where the problem's folder has the truth.
            part: which of several parts of the data, where each has its own documents.

        Raises:
            DataError: there is no such file, or a path leaves the problem's folder.
            SpecError: there is no truth, or the problem has no target.
        """

    @abstractmethod
    def metric_name(self, word: str) -> str:
        """What a `Criterion` calls a metric that documents of this format call `word`; our own names stay.

        Raises:
            DataError: there is no such metric.
        """

    @abstractmethod
    def metric_word(self, name: str) -> str:
        """What documents of this format call a metric of a `Criterion`."""

    @abstractmethod
    def translate(self, message: str) -> str:
        """A message with the metrics' names as documents of this format have them."""

    @abstractmethod
    def definition_of(self, document: Path) -> str:
        """The public definition of metrics, one of `DEFINITIONS`, that goes with a document's version of its schema."""

    @abstractmethod
    def criterion_path(self, number: int, attribute: str | None) -> str:
        """Where the document has a criterion, or one of its attributes."""

    def locate(self, fault: CriterionFault, document: Path | None, name: str) -> Fault:
        """The fault of a criterion at its path in a document, in the words of documents.

        Args:
            document: None of a problem without one.
            name: how messages name the document.
        """
        message = f"{fault.where}: {fault.message}" if fault.where and document else fault.message
        if document is None:
            return replace(fault, where=self.translate(fault.where) or name, message=self.translate(message))
        place = f"{name}: {self.criterion_path(fault.number, fault.key)}"
        return CellFault(place, self.translate(message), code=fault.code, file=str(document))

    @abstractmethod
    def scores_table(self, parts: Sequence[JudgedPart], problem: Problem, layout: str) -> pa.Table:
        """The scores of the parts of a split as the format's file of scores has them.

        Args:
            layout: one of `score_layouts`.
        """


def formats() -> list[ProblemFormat]:
    """All formats that are installed, by name."""
    return [registry.find(GROUP, name)() for name in registry.names(GROUP)]


def default_format() -> ProblemFormat:
    """The format whose words are used for a problem without a document."""
    return formats()[0]


def format_of(path: Path) -> ProblemFormat:
    """The format of a folder or document; the default one where none recognises it, which then says what is missing."""
    return next((one for one in formats() if one.recognises(path)), None) or default_format()
