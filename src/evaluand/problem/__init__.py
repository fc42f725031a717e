"""Scoring: predictions judged by the truth, by the metrics of a problem, each under a named definition.

    definitions  what each metric is of our kinds, under each definition
    reading      columns, index and cells of the two tables, and what is wrong with them
    tables       both as the tables that kinds of metrics read
    judging      all of it in order

All that is wrong is told at once, and nothing is scored that has a fault. The arithmetic is that of the kinds.
"""

from evaluand.problem.definitions import DEFINITIONS, STANDARD, Reads, Rule, rule_of
from evaluand.problem.judging import CriterionFault, CriterionResult, judge

__all__ = ["DEFINITIONS", "STANDARD", "CriterionFault", "CriterionResult", "Reads", "Rule", "judge", "rule_of"]
