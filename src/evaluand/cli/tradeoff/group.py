"""The group of the sub-commands of `evaluand tradeoff`."""

from __future__ import annotations

import click

from evaluand.cli.options import Group
from evaluand.cli.tradeoff.evaluate import evaluate_command
from evaluand.cli.tradeoff.options import EXAMPLES
from evaluand.cli.tradeoff.pick import pick_command
from evaluand.cli.tradeoff.plot import plot_command
from evaluand.cli.tradeoff.solve import solve_command


@click.group("tradeoff", cls=Group, epilog=EXAMPLES)
def command() -> None:
    """Compare the utility of a system with disparities between groups, at every threshold of every model."""


for each in (solve_command, evaluate_command, plot_command, pick_command):
    command.add_command(each)
