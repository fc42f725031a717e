"""Files of detection and segmentation as COCO publishes them.

files    instances and results, checked, image by image
scoring  the metrics that pycocotools prints, with intervals, groups, comparisons and gates
"""

from typing import TYPE_CHECKING

from evaluand.core.lazy import lazy_names

if TYPE_CHECKING:
    from evaluand.predictions.coco.scoring import score_coco as score_coco

__getattr__, __dir__ = lazy_names(__name__)
