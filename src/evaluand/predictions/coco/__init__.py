"""Files of detection and segmentation as COCO and LVIS publish them, as datasets and recorded outputs.

files     instances and results, checked, image by image
panoptic  segments in PNG files, checked likewise
scoring   the metrics that pycocotools, lvis and panopticapi print, with intervals, groups, comparisons and gates
"""

from typing import TYPE_CHECKING

from evaluand.core.lazy import lazy_names

if TYPE_CHECKING:
    from evaluand.predictions.coco.scoring import score_coco as score_coco

__getattr__, __dir__ = lazy_names(__name__)
