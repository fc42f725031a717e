"""Data: what a system is evaluated on.

dataset.py       `Dataset` and `Example`
sources.py       files, tables of other libraries and Python rows as Arrow batches
formats/         the formats of files, one module each
roles.py         what the columns are for
paths.py         roles as paths into columns
row_filter.py    conditions on rows
typed_columns.py the type of a column, decided from all of its cells
view.py          what a task sees of a dataset's rows
split.py         hold-outs and cross-validations
adapters/        rows from one shape to another
schema/          what rows must look like
"""

from typing import TYPE_CHECKING

from evaluand.core.lazy import lazy_names

if TYPE_CHECKING:
    from evaluand.core.selector import Selector as Selector
    from evaluand.data.dataset import Dataset as Dataset, Example as Example
    from evaluand.data.formats.publishing import publish as publish
    from evaluand.data.roles import RoleError as RoleError, Roles as Roles
    from evaluand.data.row_filter import RowFilter as RowFilter
    from evaluand.data.sources import (
        DataNote as DataNote,
        DataSource as DataSource,
        FileFormat as FileFormat,
        format_names as format_names,
        open_data as open_data,
        open_file as open_file,
    )
    from evaluand.data.split import Folds as Folds, Split as Split

__getattr__, __dir__ = lazy_names(__name__)
