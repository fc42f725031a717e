"""Reports: what is stored, for people and for programs.

`facts` returns it as plain data; `terminal` and `html` lay it out. Three rules hold for every report:

- A value is shown with its counts: how many rows it comes from, how many failed and how many were abstained from.
- Failed and abstained rows are listed by reason, each with its count and its first `_index_`.
- Text from data is escaped (`text.safe`) and never read as markup.

Importing this package loads neither NumPy nor Arrow, so listing thousands of artifacts costs only the catalog.
"""

from typing import TYPE_CHECKING

from evaluand.core.lazy import lazy_names

if TYPE_CHECKING:
    from evaluand.report.lineage import (
        Lineage as Lineage,
        lineage_of_scores as lineage_of_scores,
        lineage_of_value as lineage_of_value,
    )
    from evaluand.report.verification import verify as verify


__getattr__, __dir__ = lazy_names(__name__, if_called="evaluand report NAME in a shell, or print(result)")
