"""Experiments: the complete path from one YAML file, a few lines of Python.

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
    preflight   finds what does not fit together before anything runs
    experiment  runs all of it in order
    suite       runs the same systems on several problems; suite_spec reads its file, suite_results compares the systems
"""

from typing import TYPE_CHECKING

from evaluand.core.lazy import lazy_names

if TYPE_CHECKING:
    from evaluand.experiment.experiment import Experiment as Experiment
    from evaluand.experiment.spec import ExperimentSpec as ExperimentSpec
    from evaluand.experiment.spec_schema import json_schema as json_schema
    from evaluand.experiment.suite import Suite as Suite
    from evaluand.experiment.suite_results import ProblemResult as ProblemResult, SuiteResults as SuiteResults
    from evaluand.experiment.suite_schema import suite_json_schema as suite_json_schema
    from evaluand.experiment.user_code import import_reference as import_reference

__getattr__, __dir__ = lazy_names(__name__)
