"""Predictions that exist: arrays, columns of tables, files of images and folders of problems, through one path.

steps       what carries a dataset and tasks through run, evaluate, aggregate and compare
tournament  which systems a judge compares, and how
evaluating  `evaluate(truth, predictions)`, of arrays, or of columns of tables and files
options     what is asked of `evaluate`
result      `SystemScores`, what it returns
arrays      arrays as columns of a table; `matrices`, those of several columns
columns     what happens to columns: types, kind of target, metrics, values, gates
unsaved     artifacts in memory, as cheap as columns
coco        `score_coco(truth, results)`, of files of detection and segmentation
problem     problems, and how predictions are judged by them
scoring     `score(problem, predictions)`, of the files of a problem
"""

from typing import TYPE_CHECKING

from evaluand.core.lazy import lazy_names

if TYPE_CHECKING:
    from evaluand.predictions.coco import score_coco as score_coco
    from evaluand.predictions.evaluating import evaluate as evaluate
    from evaluand.predictions.problem.definitions import (
        DEFINITIONS as DEFINITIONS,
        STANDARD as STANDARD,
        STANDARD_METRICS as STANDARD_METRICS,
        Reads as Reads,
        Rule as Rule,
        rule_of as rule_of,
    )
    from evaluand.predictions.problem.formats import OpenProblem as OpenProblem, ProblemFormat as ProblemFormat
    from evaluand.predictions.problem.judging import (
        CriterionResult as CriterionResult,
        judge as judge,
    )
    from evaluand.predictions.problem.problem import (
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
    from evaluand.predictions.problem.sides import CriterionFault as CriterionFault
    from evaluand.predictions.result import SystemScores as SystemScores
    from evaluand.predictions.scoring import (
        score as score,
        scores_table as scores_table,
        write_scores_file as write_scores_file,
    )
    from evaluand.predictions.steps import Result as Result, Results as Results
    from evaluand.predictions.tournament import Tournament as Tournament

__getattr__, __dir__ = lazy_names(__name__)
