"""Problems, datasets, splits and scores as the D3M programme writes and names them.

The arithmetic and the checks of predictions are those of `evaluand.predictions.problem`; here are only the files and
the names.
"""

from typing import TYPE_CHECKING

from evaluand.core.lazy import lazy_names

if TYPE_CHECKING:
    from evaluand.interop.d3m.dataset import (
        DatasetDocument as DatasetDocument,
        read_dataset as read_dataset,
        write_dataset as write_dataset,
    )
    from evaluand.interop.d3m.folder import (
        ProblemFolder as ProblemFolder,
        examine_folder as examine_folder,
        open_folder as open_folder,
    )
    from evaluand.interop.d3m.metrics import (
        compute_metric as compute_metric,
        object_detection_ap as object_detection_ap,
        objectDetectionAP as objectDetectionAP,
        precision_at_top_K as precision_at_top_K,
    )
    from evaluand.interop.d3m.problem import (
        examine_problem as examine_problem,
        problem_document as problem_document,
        read_problem as read_problem,
        write_problem as write_problem,
    )
    from evaluand.interop.d3m.solving import solve as solve
    from evaluand.interop.d3m.splits import read_splits as read_splits, write_splits as write_splits
    from evaluand.interop.d3m.write import write_folder as write_folder

__getattr__, __dir__ = lazy_names(__name__)
