"""`evaluand tradeoff`: operating points, fronts, indicators, figures, and the point to use; one module per sub-command.

A system comes from a file, or from the store by the names of runs, evaluations or aggregations. Stored classifiers are
the models of a system and have points at thresholds of their confidence, as in files; with metrics of other stored
scores, each run is a point. The metrics decide: `acc` and `eod+race` apply to decisions at thresholds, `mean(helpful)`
to stored scores.
"""

from evaluand.cli.tradeoff.group import command as command
