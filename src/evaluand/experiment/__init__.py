"""Experiments: the whole path from one YAML file or a few lines.

    name: arithmetic
    dataset: {path: questions.jsonl, input: question, expected: answer}
    tasks:
      mine: {function: app.py:answer}
      theirs: {kind: recorded, path: theirs.jsonl, response: text, by: id}
    scorers:
      answer: {kind: numeric_answer}
    metrics:
      - {kind: accuracy, scorer: answer, by: [topic]}

Paths are relative to the file. Code is imported only from where the file says.

    spec      what a file may say
    reading   what of a file is sound, and its faults
    code      functions, classes and errors of the user's own, by name
    parts     datasets, tasks, scorers and measures, from what a file says
    fit       what of the parts does not fit together
    running   all of it in order
"""

from evaluand.experiment.experiment import Experiment, Result, Results
from evaluand.experiment.spec import ExperimentSpec, json_schema
from evaluand.experiment.user_code import referred

__all__ = ["Experiment", "ExperimentSpec", "Result", "Results", "json_schema", "referred"]
