"""Problems, datasets, splits and scores as the D3M programme writes and names them, over the core.

The names are loaded on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from evaluand.core.lazy import lazy_names

if TYPE_CHECKING:
    from evaluand.interop.d3m.detection import object_detection_ap as object_detection_ap
    from evaluand.interop.d3m.detection import objectDetectionAP as objectDetectionAP
    from evaluand.interop.d3m.metrics import compute_metric as compute_metric
    from evaluand.interop.d3m.metrics import precision_at_top_K as precision_at_top_K

__getattr__, __dir__, __all__ = lazy_names(
    __name__,
    {"detection": ("objectDetectionAP", "object_detection_ap"), "metrics": ("compute_metric", "precision_at_top_K")},
)
