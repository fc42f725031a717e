"""Experiments: the complete path from one YAML file, a few lines of Python, two arrays or prediction files.

    name: arithmetic
    dataset: {path: questions.jsonl, input: question, expected: answer}
    tasks:
      mine: {function: app.py:answer}
      theirs: {kind: recorded, path: theirs.jsonl, response: text, by: id}
    scorers:
      answer: {kind: numeric_answer}
    metrics:
      - {kind: accuracy, scorer: answer, by: [topic]}

Paths are relative to the file. Code is imported only from the places that the file names.

    spec        the fields of an experiment file; spec_schema makes a JSON Schema of them
    parsing     reads a file into its valid parts, and collects the faults of the others
    user_code   imports functions, classes and errors of the user by name
    build       makes datasets, tasks, scorers and measures from a spec
    tournament  which systems a judge compares, and how; tournament_entries reads it
    preflight   finds what does not fit together before anything runs
    experiment  runs all of it in order
    suite       runs the same systems on several problems; suite_spec reads its file, suite_results compares the systems
    arrays      `evaluate(truth, predictions)`, in memory
    columns     `score_columns(file, truth, predictions)`, of columns of a table, compared with each other
    coco        `score_coco(truth, results)`, of files of detection and segmentation
    scoring     `score(problem, predictions)`, of prediction files, which it stores
    imports     `import_results(file, store)`, of results of other tools
"""

from typing import TYPE_CHECKING

from evaluand.core.lazy import lazy_names

if TYPE_CHECKING:
    from evaluand.exchange.importer import Importer as Importer, LogFile as LogFile
    from evaluand.exchange.sample import Grade as Grade, Sample as Sample, Total as Total
    from evaluand.exchange.storing import ImportedResult as ImportedResult, import_results as import_results
    from evaluand.experiment.experiment import Experiment as Experiment, Result as Result, Results as Results
    from evaluand.experiment.spec import ExperimentSpec as ExperimentSpec
    from evaluand.experiment.spec_schema import json_schema as json_schema
    from evaluand.experiment.suite import Suite as Suite
    from evaluand.experiment.suite_results import ProblemResult as ProblemResult, SuiteResults as SuiteResults
    from evaluand.experiment.suite_schema import suite_json_schema as suite_json_schema
    from evaluand.experiment.tournament import Tournament as Tournament
    from evaluand.experiment.user_code import import_reference as import_reference
    from evaluand.predictions.arrays.arrays import ArrayEvaluation as ArrayEvaluation, evaluate as evaluate
    from evaluand.predictions.coco import score_coco as score_coco
    from evaluand.predictions.columns import ColumnScores as ColumnScores, score_columns as score_columns
    from evaluand.predictions.scoring import Score as Score, Scores as Scores, Spread as Spread, score as score

__getattr__, __dir__ = lazy_names(__name__)
