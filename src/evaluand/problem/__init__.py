"""Problems, and how predictions are judged by them: every metric under a named public definition.

    problem      what is predicted, from which data, by which split and metrics
    definitions  each metric in terms of our kinds, under each public definition
    reading      reads the index and cells of truth and predictions
    tables       their columns as kinds of metrics read them
    alignment    checks both tables and aligns their rows
    criteria     fits labels to a criterion
    judging      judges two tables
    layout       the columns of prediction and truth files
    files        reads and checks such files
    truth        the truth of a problem, and the rows that each part of its split tests
    parts        the files of each part
    judge_parts  judges the files of a part, with faults by line
    inline       a problem stated by two files and metrics, without a document
    formats      how problems are written by some system, found by the registry

All faults are reported at once, and nothing with a fault is scored. The arithmetic is that of the kinds of metrics.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from evaluand.core.lazy import lazy_names

if TYPE_CHECKING:
    from evaluand.problem.definitions import DEFINITIONS as DEFINITIONS
    from evaluand.problem.definitions import STANDARD as STANDARD
    from evaluand.problem.definitions import Reads as Reads
    from evaluand.problem.definitions import Rule as Rule
    from evaluand.problem.definitions import rule_of as rule_of
    from evaluand.problem.formats import OpenProblem as OpenProblem
    from evaluand.problem.formats import ProblemFormat as ProblemFormat
    from evaluand.problem.judging import CriterionFault as CriterionFault
    from evaluand.problem.judging import CriterionResult as CriterionResult
    from evaluand.problem.judging import judge as judge
    from evaluand.problem.problem import STANDARD_METRICS as STANDARD_METRICS
    from evaluand.problem.problem import ColumnPlace as ColumnPlace
    from evaluand.problem.problem import Criterion as Criterion
    from evaluand.problem.problem import DatasetView as DatasetView
    from evaluand.problem.problem import Division as Division
    from evaluand.problem.problem import Horizon as Horizon
    from evaluand.problem.problem import Outputs as Outputs
    from evaluand.problem.problem import Problem as Problem
    from evaluand.problem.problem import SubType as SubType
    from evaluand.problem.problem import Target as Target
    from evaluand.problem.problem import TargetDataset as TargetDataset
    from evaluand.problem.problem import TaskType as TaskType

__getattr__, __dir__, __all__ = lazy_names(
    __name__,
    {
        "definitions": ("DEFINITIONS", "STANDARD", "Reads", "Rule", "rule_of"),
        "formats": ("OpenProblem", "ProblemFormat"),
        "judging": ("CriterionFault", "CriterionResult", "judge"),
        "problem": (
            "STANDARD_METRICS",
            "ColumnPlace",
            "Criterion",
            "DatasetView",
            "Division",
            "Horizon",
            "Outputs",
            "Problem",
            "SubType",
            "Target",
            "TargetDataset",
            "TaskType",
        ),
    },
)
