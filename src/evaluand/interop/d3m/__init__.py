"""Problems, datasets, splits and scores as the D3M programme writes and names them, over the core.

The names are loaded on first use.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from evaluand.interop.d3m.detection import object_detection_ap, objectDetectionAP
    from evaluand.interop.d3m.metrics import compute_metric, precision_at_top_K

_PLACES = {
    "compute_metric": "metrics",
    "objectDetectionAP": "detection",
    "object_detection_ap": "detection",
    "precision_at_top_K": "metrics",
}

__all__ = ["compute_metric", "objectDetectionAP", "object_detection_ap", "precision_at_top_K"]


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_PLACES[name]}"), name)
