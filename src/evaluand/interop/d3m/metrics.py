"""The metrics of D3M's documents, under their names, over columns."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

import pyarrow as pa

from evaluand.core.errors import DataError, Fault, SpecError, nearest
from evaluand.data.sources import is_pandas, read_table
from evaluand.interop.d3m.names import name_of
from evaluand.metrics.detection.definition import Points
from evaluand.metrics.detection.precision import BoxPrecisionCurve, average_precision
from evaluand.predictions import judge
from evaluand.predictions.problem.problem import Criterion

_PARAMETERS: Final = {"K": "k", "k": "k", "posLabel": "positive", "pos_label": "positive"}
_REFUSED: Final = "roc_auc"


def compute_metric(
    metric: str,
    truth: Any,
    predictions: Any,
    *,
    targets: str | Sequence[str],
    index: str | Sequence[str] = "d3mIndex",
    applicability_to_target: str = "singleTarget",
    labels: Sequence[Any] | Mapping[str, Sequence[Any]] | None = None,
    dialect: str | None = None,
    **params: Any,
) -> float | dict[str, float]:
    """The value of a metric, NaN where it is undefined; an undefined area is refused, as all programs do.

    Rows are matched by their index, whatever their order; an index that occurs several times has several labels, a
    confidence for each label, or a ranking, as the metric requires. What cannot be scored is refused with all faults.

    Args:
        metric: as the documents call it, such as `f1Macro`, or scores of the layout 4, `F1_MACRO`; or a registered kind
            of metric.
        truth: columns: a mapping, a pandas frame or an Arrow table.
        predictions: the same, with the columns of the index and the targets, perhaps `confidence` and `rank`.
        targets: the columns that are judged.
        index: the columns that say what a row is about; for `objectDetectionAP` that of the image.
        applicability_to_target: `singleTarget` judges each target, `allTargets` all together.
        labels: all labels there are, or those of each target.
        dialect: the definition: `3.1.1`, `core-2022`, `nist`, `sklearn` or `coco`; the well-defined one if not given.
        params: `K` and `posLabel`.

    Returns:
        One number, or one for each target where several are judged by themselves.

    Raises:
        DataError: it cannot be scored; `faults` have the places, and `codes` the classes of faults.
        SpecError: an argument is invalid.

    Example:
        >>> truth = {"d3mIndex": [0, 1, 2], "y": ["a", "b", "a"]}
        >>> compute_metric("f1", truth, {"d3mIndex": [2, 1, 0], "y": ["b", "b", "a"]}, targets="y", posLabel="a")
        0.6666666666666666
    """
    if applicability_to_target not in ("singleTarget", "allTargets"):
        raise SpecError(f"applicability_to_target={applicability_to_target!r} must be 'singleTarget' or 'allTargets'")
    jointly = applicability_to_target == "allTargets"
    criterion = Criterion(metric=name_of(metric), jointly=jointly, **_parameters(metric, params))
    names = (targets,) if isinstance(targets, str) else tuple(targets)
    found = judge(
        _table("truth", truth),
        _table("predictions", predictions),
        [criterion],
        index=(index,) if isinstance(index, str) else tuple(index),
        targets=names,
        definition=dialect,
        labels=labels,
        several=True,
        confidence_of_interval=None,
    )
    undefined = [each for each in found if each.metric.kind == _REFUSED and math.isnan(each.value)]
    if undefined:
        raise DataError(
            Fault(f"{metric} of {each.target or ', '.join(names)}", str(each.row.reason), code="cannot_be_scored")
            for each in undefined
        )
    if len(found) == 1:
        return found[0].value
    return {str(each.target): each.value for each in found}


def precision_at_top_K(gt: Any, preds: Any, K: int = 20) -> float:  # noqa: N802, N803 - its published name
    """How many values the first K of two lists share, divided by K, as the problem schema 3.1.1 prints it.

    Example:
        >>> gt, pred = [0, 1, 2, 3, 4], [1, 3, 2, 4, 0]
        >>> round(precision_at_top_K(gt, pred, K=3), 3), precision_at_top_K(gt, pred, K=4)
        (0.667, 0.75)
    """
    tables = ({"row": range(len(values)), "value": values} for values in (gt, preds))
    value = compute_metric("precisionAtTopK", *tables, targets="value", index="row", dialect="3.1.1", K=K)
    assert isinstance(value, float)
    return value


def _parameters(metric: str, params: Mapping[str, Any]) -> dict[str, Any]:
    unknown = [name for name in params if name not in _PARAMETERS]
    if unknown:
        raise SpecError(
            f"{metric} has no parameter {unknown[0]!r}{nearest(unknown[0], ('K', 'posLabel'))}: K, posLabel"
        )
    found = {_PARAMETERS[name]: value for name, value in params.items() if value is not None}
    k = found.get("k", 1)
    if not isinstance(k, int) or isinstance(k, bool) or k < 1:
        raise DataError(Fault(metric, f"K is {k!r}; give an integer of at least 1", code="cannot_be_scored"))
    if "positive" in found:
        positive = found["positive"]
        found["positive"] = str(positive).lower() if isinstance(positive, bool) else str(positive)
    return found


def _table(name: str, data: Any) -> pa.Table:
    """Columns as an Arrow table."""
    if is_pandas(data):
        columns_by_name = [(str(column), data.iloc[:, place]) for place, column in enumerate(data.columns)]
    elif isinstance(data, Mapping):
        columns_by_name = list(data.items())
    elif (table := read_table(data)) is not None:
        return table
    else:
        raise SpecError(f"{name} is {type(data).__name__}; give columns: a mapping, a pandas frame or an Arrow table")
    columns = [_column(f"{name}, column {column}", values) for column, values in columns_by_name]
    if len({len(column) for column in columns}) > 1:
        sizes = ", ".join(
            f"{column!r} has {len(values)}" for (column, _), values in zip(columns_by_name, columns, strict=True)
        )
        raise DataError(Fault(name, f"columns of different lengths: {sizes}", code="ragged_row"))
    return pa.table(columns, names=[column for column, _ in columns_by_name])


def _column(where: str, values: Any) -> pa.ChunkedArray | pa.Array:
    if isinstance(values, pa.Array | pa.ChunkedArray):
        return values
    try:
        return pa.array(values, from_pandas=hasattr(values, "to_numpy"))
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError) as error:
        message = f"has values of several types, or of a type that no column has: {error}"
        raise DataError(Fault(where, message, code="wrong_type")) from None


def objectDetectionAP(  # noqa: N802 - its published name
    dets: Sequence[Any], gts: Sequence[Any], ovthresh: float = 0.5, use_07_metric: bool = False
) -> BoxPrecisionCurve:
    """Recall, precision and average precision as the code published with the schema gives them.

    Rows of one confidence, or without any, count in the order of the file. What that code stopped at has a value here:
    without detections it is 0, a detection in an image without true boxes is wrong, and without true boxes it is NaN.

    Args:
        dets: rows of an image, x_min, y_min, x_max, y_max and perhaps a confidence.
        gts: rows of an image, x_min, y_min, x_max, y_max.
        ovthresh: a match overlaps by more than this.
        use_07_metric: average precision at the 11 recalls of VOC 2007.

    Example:
        >>> gts = [["img_00285.png", 480, 457, 515, 529]] * 2
        >>> rec, prec, ap = objectDetectionAP([["img_00285.png", 480, 477, 508, 522, 0.1012]], gts)
        >>> rec, prec, ap
        (array([0.5]), array([1.]), 0.5)
    """
    return object_detection_ap(dets, gts, iou=ovthresh, dialect="3.1.1", points=11 if use_07_metric else None)


def object_detection_ap(
    detections: Any,
    truths: Any,
    *,
    iou: float = 0.5,
    dialect: str | None = None,
    points: Points | None = None,
) -> BoxPrecisionCurve:
    """The same under a dialect: `3.1.1`, `core-2022`, `coco`, or the well-defined one where none is named."""
    return average_precision(detections, truths, iou=iou, definition=dialect or "standard", points=points)
