"""Columns that a dataset's document does not describe, or describes by index or name alone: the table has the rest.

D3M's `*_MIN_METADATA` datasets describe only the index and what the table cannot say, such as what a column refers to.
"""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final

from evaluand.core.errors import DataError
from evaluand.core.files.json import Findings
from evaluand.data.sources import open_file
from evaluand.interop.d3m.checks import learning_resource
from evaluand.interop.d3m.dataset import Column, DatasetDocument, Resource, described, header_of_table
from evaluand.predictions.problem.layout import INDEX_COLUMN, NUMERIC, reads_of
from evaluand.predictions.problem.problem import Problem, TargetDataset

_MOST_LISTED: Final = 10


def describe_table(
    document: DatasetDocument, expected: TargetDataset, problem: Problem, findings: Findings
) -> DatasetDocument:
    """The document with every column of its learning table, as far as the table can be read.

    Types that the document does not state are inferred from the cells, except those of targets, which follow from the
    task: labels are text, because `1` and `1.0` are different labels. Without an index, `d3mIndex` is the index.
    """
    resource = learning_resource(document, expected)
    if resource is None or document.folder is None:
        return document
    path, header = document.folder / resource.path, header_of_table(document.folder, resource)
    added = _undescribed(resource, header, expected)
    columns = [*resource.columns, *added]  # described ones keep their place in the document
    if not header or (resource.index and all(column.type != "unknown" for column in columns)):
        return document
    try:
        schema = open_file(path, "csv").schema
    except DataError:  # which reading the table reports
        return document
    if not resource.index:
        columns = [replace(c, roles=(*c.roles, "index")) if c.name == INDEX_COLUMN else c for c in columns]
    kind = _target_type(problem, len(expected.targets))
    types = dict(described(schema)) | ({target.name: kind for target in expected.targets} if kind else {})
    columns = [replace(c, type=types.get(c.name, c.type)) if c.type == "unknown" else c for c in columns]
    if added:
        _note_undescribed(path, added, types, findings)
    complete = replace(resource, columns=tuple(columns))
    return replace(document, resources=tuple(complete if each is resource else each for each in document.resources))


def _undescribed(resource: Resource, header: list[str], expected: TargetDataset) -> list[Column]:
    """The columns of the table that the document does not describe, and the targets that such a table hides."""
    indices = {column.index for column in resource.columns}
    targets = {target.name: target.column for target in expected.targets}
    places = {name: i for i, name in enumerate(header) if i not in indices and name}
    if places:
        end = len(header) + len(targets)
        places |= {name: i for name, i in targets.items() if name not in header and len(header) <= i < end}
    return [
        Column(index=i, name=name, type="unknown", roles=("suggestedTarget" if name in targets else "attribute",))
        for name, i in places.items()
        if resource.column(name) is None
    ]


def _target_type(problem: Problem, n_targets: int) -> str | None:
    """The type of the targets by their task; None where the cells say it: boxes and their label."""
    reads = reads_of(*problem.criteria)
    if "boxes" in reads:
        return "realVector" if n_targets == 1 else None
    return "real" if "numbers" in reads or NUMERIC.intersection(problem.task_types) else "categorical"


def _note_undescribed(path: Path, added: list[Column], types: Mapping[str, str], findings: Findings) -> None:
    listed = ", ".join(f"{column.name!r} ({types.get(column.name, 'string')})" for column in added[:_MOST_LISTED])
    more = f" and {len(added) - _MOST_LISTED} more" if len(added) > _MOST_LISTED else ""
    message = f"the document does not describe {listed}{more}; types are inferred from the table and the task"
    findings.note(str(path), "undescribed_column", message)
