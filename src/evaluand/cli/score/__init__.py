"""`evaluand score`: predictions scored against the truth, in columns of a file or in the files of a problem.

commands   the options, and which of the two is meant
columns    columns of a table: types and metrics follow from the data
problems   prediction files by the metrics of their problem
"""

from evaluand.cli.score.commands import command as command
