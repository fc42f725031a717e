"""Facts about a dataset: its roles, columns and first rows."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from evaluand.report.facts.base import Facts
from evaluand.run.excerpts import to_json

if TYPE_CHECKING:
    from evaluand.data.dataset import Dataset


def dataset_facts(dataset: Dataset, examples: int = 0) -> Facts:
    """A dataset: its roles, its columns and its first rows."""
    first = itertools.islice(dataset.examples(0, examples), examples)
    return {
        "roles": to_json(dataset.spec["roles"]),
        "columns": {
            field.name: str(field.type) for field in dataset.schema if field.name not in ("_index_", "_digest_")
        },
        "rows": [
            {"_index_": e.index, "id": e.id, "input": to_json(e.input), "expected": to_json(e.expected)}
            | to_json({"attributes": e.attributes, "weight": e.weight, "cluster": e.cluster, "metadata": e.metadata})
            for e in first
        ],
    }
