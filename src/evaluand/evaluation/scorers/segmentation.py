"""Segments of images, predicted and true: the input of panoptic quality and mean intersection over union.

An example is an image. This scorer matches its segments and adds up, class by class, what the image contributes. The
value is empty: the metrics divide sums over all images.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from evaluand.core.errors import DataError, described
from evaluand.core.parameters import Text
from evaluand.evaluation.image_objects import read_flag, read_label, read_object_mask
from evaluand.evaluation.scorer import NO_ANSWER, ExpectationScorer, Score, read_field
from evaluand.metrics.detection.masks import Segments, contributions


@dataclass(frozen=True, kw_only=True)
class Segmentation(ExpectationScorer):
    """Column `classes` with what each class of an image contributes; `n_expected` and `n_predicted` count segments.

    Output and expected are lists of objects, each with a label and a mask: its run lengths as in COCO's files. Masks of
    one side do not overlap. Pixels without a true segment are void and do not count. A true segment may be marked as a
    crowd: many things that are not annotated individually. In panoptic segmentation each thing is a segment, in
    semantic segmentation each class. An empty list means that nothing was segmented, null that it is unknown: then the
    row abstains.

    An invalid mask, or two that overlap, fail the row, with the segment in the reason.

    Attributes:
        label_key: key of the label, which is text or an integer.
        mask_key: key of the mask, with `size` and `counts`.
        crowd_key: key of the mark for a crowd in an expected segment: true or false, or 1 or 0.
        thing_key: key of the mark for things, in all segments or none: false for stuff, such as sky.

    Raises:
        SpecError: a key is not text, or pycocotools is not installed.

    Example:
        >>> segment = {"label": "sky", "mask": {"size": [1, 4], "counts": [1, 3]}}
        >>> Segmentation().score([segment], [segment]).columns["classes"]["matched"]
        [1]
    """

    kind = "segmentation"
    version = 1
    cheap = True
    columns: ClassVar = {"classes": "json", "n_expected": "int64", "n_predicted": "int64"}
    readable = tuple(columns)

    label_key: Text = "label"
    mask_key: Text = "mask"
    crowd_key: Text = "crowd"
    thing_key: Text = "thing"

    def grade(self, output: Any, truth: Segments, *others: Any) -> Score:
        """The contributions of one image."""
        if output is None:
            return self.abstained(NO_ANSWER.reason, truth)
        predicted = self._segments("predicted", output)
        counts = {"n_expected": len(truth.labels), "n_predicted": len(predicted.labels)}
        return Score(columns={"classes": contributions(truth, predicted), **counts})

    def read_expected(self, expected: Any) -> Segments:
        return self._segments("expected", expected)

    def columns_of(self, truth: Segments) -> Mapping[str, Any]:
        return {"classes": contributions(truth, Segments("predicted")), "n_expected": len(truth.labels)}

    def _segments(self, what: str, value: Any) -> Segments:
        if not isinstance(value, list | tuple):
            raise DataError(f"the {what} segments are {described(value)}, not a list of segments")
        labels, masks, crowd, thing = list[Any](), list[dict[str, Any]](), list[bool](), list[bool | None]()
        for place, item in enumerate(value):
            name = f"{what} segment {place}"
            if not isinstance(item, Mapping):
                raise DataError(f"{name} is {described(item)}, not an object with a label and a mask")
            given = {key: value for key, value in item.items() if value is not None}
            label, mask = (
                read_field(name, given, key, "; name its keys with label_key, mask_key …")
                for key in (self.label_key, self.mask_key)
            )
            labels.append(read_label(name, label))
            masks.append(read_object_mask(name, mask))
            crowd.append(what == "expected" and bool(read_flag(f"{name}: crowd", item.get(self.crowd_key))))
            thing.append(read_flag(f"{name}: thing", item.get(self.thing_key)))
        return Segments(what, labels, masks, crowd, thing)
