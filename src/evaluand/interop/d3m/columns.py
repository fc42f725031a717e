"""The layout of a problem's files, as the document of its dataset declares it."""

from __future__ import annotations

from evaluand.interop.d3m.dataset import Resource
from evaluand.interop.d3m.names import COLUMN_TYPES
from evaluand.problem.layout import FileLayout, layout_of, reads_of
from evaluand.problem.problem import Problem


def declared_layout(problem: Problem, resource: Resource) -> FileLayout:
    """The layout of prediction and truth files, by the columns of the learning table.

    Raises:
        SpecError: no dataset has targets, or several have.
    """
    types = {column.name: COLUMN_TYPES[column.type] for column in resource.columns}
    index = tuple(column.name for column in resource.index)
    gathers = "boxes" in reads_of(problem) and resource.gathers is not None
    key = resource.gathers.name if gathers and resource.gathers else index[0]
    return layout_of(problem, index, key, types, several_rows="multiIndex" in resource.index[0].roles)
