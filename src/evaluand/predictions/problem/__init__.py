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
    parts        the files of each part, judged with faults by line
    inline       a problem stated by two files and metrics, without a document
    formats      how problems are written by some system, found by the registry

All faults are reported at once, and nothing with a fault is scored. The arithmetic is that of the kinds of metrics.
"""

from typing import TYPE_CHECKING

from evaluand.core.lazy import lazy_names

if TYPE_CHECKING:
    from evaluand.predictions.problem.definitions import (
        DEFINITIONS as DEFINITIONS,
        STANDARD as STANDARD,
        Reads as Reads,
        Rule as Rule,
        rule_of as rule_of,
    )
    from evaluand.predictions.problem.formats import OpenProblem as OpenProblem, ProblemFormat as ProblemFormat
    from evaluand.predictions.problem.judging import (
        CriterionFault as CriterionFault,
        CriterionResult as CriterionResult,
        judge as judge,
    )
    from evaluand.predictions.problem.problem import (
        STANDARD_METRICS as STANDARD_METRICS,
        ColumnPlace as ColumnPlace,
        Criterion as Criterion,
        DatasetView as DatasetView,
        Division as Division,
        Horizon as Horizon,
        Outputs as Outputs,
        Problem as Problem,
        SubType as SubType,
        Target as Target,
        TargetDataset as TargetDataset,
        TaskType as TaskType,
    )

__getattr__, __dir__ = lazy_names(__name__)
