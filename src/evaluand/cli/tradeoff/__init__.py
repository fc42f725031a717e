"""`evaluand tradeoff`: operating points, fronts, indicators, figures, and the point to use.

A system comes from a file, or from the store by the names of runs, evaluations or aggregations. Stored classifiers are
the models of a system and have points at thresholds of their confidence, as in files; with metrics of other stored
scores, each run is a point. The metrics decide: `acc` and `eod+race` apply to decisions at thresholds, `mean(helpful)`
to stored scores.
"""

import click

from evaluand.cli.tradeoff.commands import evaluate_command, pick_command, plot_command, solve_command
from evaluand.cli.tradeoff.options import EXAMPLES


@click.group("tradeoff", epilog=EXAMPLES)
def command() -> None:
    """Compare the utility of a system with disparities between groups, at every threshold of every model."""


for each in (solve_command, evaluate_command, plot_command, pick_command):
    command.add_command(each)
