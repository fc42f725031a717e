"""Segments of images: the scorer, and what failed, merged and grouped images come to."""

from typing import Any

import numpy as np
import orjson
import pyarrow as pa
import pytest
from hypothesis import given, settings, strategies as st

from evaluand.aggregation.groups import MetricRow, merge, summarise, summarise_shard
from evaluand.core.errors import DataError, SpecError
from evaluand.evaluation.scorers.segmentation import Segmentation
from evaluand.metrics.segment_averages import (
    MeanIou,
    OfSegments,
    PanopticQuality,
    RecognitionQuality,
    SegmentationQuality,
)

pytest.importorskip("pycocotools.mask")
pytestmark = pytest.mark.filterwarnings("ignore:__array__ implementation")  # of pycocotools with NumPy 2

Segments = list[dict[str, Any]]
KINDS = [PanopticQuality, SegmentationQuality, RecognitionQuality, MeanIou]
WIDTH = 12


def strip(text: str, **more: Any) -> Segments:
    """An image of one row: each run of a letter is a segment with that label, a dot is void."""
    starts = [0, *(place for place in range(1, WIDTH) if text[place] != text[place - 1])]
    runs = zip(starts, [*starts[1:], WIDTH], strict=True)
    return [
        {"label": text[start], "mask": {"size": [1, WIDTH], "counts": [start, stop - start, WIDTH - stop]}, **more}
        for start, stop in runs
        if text[start] != "."
    ]


def table(*images: tuple[Segments | None, Segments | None], **columns: list[Any]) -> pa.Table:
    """The table of the scorer; an image without segments has failed."""
    rows = [
        Segmentation().unanswered(truth) if found is None else Segmentation().score(found, truth).columns
        for found, truth in images
    ]
    classes = [None if row is None else orjson.dumps(row["classes"]).decode() for row in rows]
    status = ["failed" if found is None else "scored" for found, _ in images]
    index = np.arange(len(images))
    return pa.table({"_index_": index, "status": status, "classes": pa.array(classes, pa.string()), **columns})


def value_of(metric: OfSegments, *images: tuple[Segments | None, Segments | None]) -> MetricRow:
    [row] = summarise([table(*images)], [metric])
    return row


SKY = strip("aaaaaabbbbbb")
HALF = strip("aaaaaaaaabbb")  # of b exactly one half is found, which is no match


def test_values_and_counts_of_each_class() -> None:
    row = value_of(PanopticQuality(), (HALF, SKY))
    assert row.value == pytest.approx((6 / 9 + 0) / 2)
    assert row.data["labels"] == {
        "a": {"value": pytest.approx(6 / 9), "matched": 1, "missed": 0, "extra": 0},
        "b": {"value": 0.0, "matched": 0, "missed": 1, "extra": 1},
    }
    assert value_of(SegmentationQuality(), (HALF, SKY)).value == pytest.approx(6 / 9 / 2)
    assert value_of(RecognitionQuality(), (HALF, SKY)).value == 0.5
    row = value_of(MeanIou(), (HALF, SKY))
    assert row.value == pytest.approx((6 / 9 + 3 / 6) / 2)
    assert row.data["labels"]["b"] == {"value": 0.5, "intersection": 3, "union": 6, "pixels": 6}


def test_iou_divides_the_sums_over_all_images() -> None:
    images = (strip("aaaa" + "." * 8), strip("aaaaaaaa....")), (strip("aa" + "." * 10), strip("aa" + "." * 10))
    assert value_of(MeanIou(), *images).value == pytest.approx((4 + 2) / (8 + 2))


def test_classes_without_truth_count_for_panoptic_quality_alone() -> None:
    image = strip("aaaaaaaaaccc"), strip("aaaaaaaaaaaa")
    assert value_of(PanopticQuality(), image).value == pytest.approx((9 / 12 + 0) / 2)
    assert value_of(MeanIou(), image).value == pytest.approx(9 / 12)


@pytest.mark.parametrize(
    ("label", "value"), [("a", 6 / 9), (["a", "b"], (6 / 9 + 3 / 6) / 2), (("b", "z"), 3 / 6), ("z", None)]
)
def test_some_labels(label: Any, value: float | None) -> None:
    row = value_of(MeanIou(label=label), (HALF, SKY))
    if value is None:
        assert np.isnan(row.value)
        assert row.reason == "no image has a true segment with the label 'z'"
    else:
        assert row.value == pytest.approx(value)


def test_things_and_stuff() -> None:
    truth, found = (
        strip(text, thing=True) + strip("......bbbbbb", thing=False) for text in ("aaaa........", "a...........")
    )
    assert value_of(PanopticQuality(part="things"), (found, truth)).value == 0
    assert value_of(PanopticQuality(part="stuff"), (found, truth)).value == 1
    with pytest.raises(SpecError, match="part='things' needs to know which labels are things"):
        value_of(PanopticQuality(part="things"), (SKY, SKY))


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_found_is_0_and_nothing_there_is_undefined(kind: type[OfSegments]) -> None:
    assert value_of(kind(), ([], SKY)).value == 0
    row = value_of(kind(), (SKY, []), ([], []))
    assert np.isnan(row.value)
    assert str(row.reason).startswith("no image has a")


@pytest.mark.parametrize(
    ("kind", "wrong", "best"), [(PanopticQuality, 1 / 1.5, 1), (SegmentationQuality, 1, 1), (MeanIou, 12 / 24, 1)]
)
def test_an_image_that_failed_has_found_nothing_where_that_is_asked_and_bounds_otherwise(
    kind: type[OfSegments], wrong: float, best: float
) -> None:
    images = (SKY, SKY), (None, SKY)
    row = value_of(kind(), *images)
    assert (row.value, row.worst, row.best, row.n_failed) == (1, 0, best, 1)
    assert value_of(kind(missing="wrong"), *images).value == pytest.approx(wrong)


def test_labels_that_only_a_failed_image_has_count_too() -> None:
    images = (strip("aaaaaaaaaaaa"), strip("aaaaaaaaaaaa")), (None, strip("bbbbbbbbbbbb"))
    assert value_of(MeanIou(missing="wrong"), *images).value == 0.5


def test_nothing_counts_as_wrong_where_nothing_is_known() -> None:
    with pytest.raises(DataError, match="_index_ 1: has no score, and its segments are unknown"):
        value_of(MeanIou(missing="wrong"), (SKY, SKY), (None, None))
    row = value_of(MeanIou(), (HALF, SKY), (None, None))
    assert (row.worst, row.best) == (0, 1)


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 1000), st.integers(0, 9), st.sampled_from(KINDS))
def test_halves_merge_to_the_whole(seed: int, cut: int, kind: type[OfSegments]) -> None:
    random = np.random.default_rng(seed)
    images = [[strip("".join(random.choice(list("abcd."), 4).repeat(3))) for _ in "ft"] for _ in range(9)]
    group = [str(each) for each in random.integers(0, 3, len(images))]
    all_rows = table(*map(tuple, images), group=group)  # type: ignore[arg-type]
    by: list[tuple[str, ...]] = [(), ("group",)]
    parts = [part for part in (all_rows.slice(0, cut), all_rows.slice(cut)) if part.num_rows]
    merged = merge([summarise_shard(part, [kind()], by) for part in parts]).rows()
    assert repr(merged) == repr(summarise([all_rows], [kind()], by))  # where NaN is NaN


def mask(*counts: int, width: int = WIDTH) -> dict[str, Any]:
    return {"size": [1, width], "counts": [*counts]}


@pytest.mark.parametrize(
    ("found", "message"),
    [
        ("sky", "the predicted segments are the text 'sky', not a list"),
        (["sky"], "predicted segment 0 is the text 'sky', not an object"),
        ([{"label": "a"}], "predicted segment 0 has 'label' and not 'mask'; name its keys"),
        ([{"label": 1.5, "mask": mask(12)}], "predicted segment 0: label is"),
        ([{"label": "a", "mask": mask(3)}], "predicted segment 0: mask: the runs of a mask cover 3 pixels"),
        ([{"label": "a", "mask": mask(12)}], "predicted segment 0 covers no pixel; leave it out"),
        ([{"label": "a", "mask": mask(0, 12), "thing": "no"}], "predicted segment 0: thing is"),
        ([{"label": "a", "mask": mask(0, 9, width=9)}], r"have the sizes 1 × 9 \(predicted\) and 1 × 12 \(expected\)"),
        (
            [{"label": x, "mask": m} for x, m in (("a", mask(0, 7, 5)), ("b", mask(5, 7)))],
            "predicted segments 0 and 1 overlap in 2 pixels; give each pixel one label",
        ),
        ([{"label": "a", "mask": mask(0, 12), "thing": True}], "segments with the label 'b' do not say whether they"),
        (strip("aaaaaaaaa...", thing=True) + strip("..........aa", thing=False), "label 'a' is a thing in one segment"),
        ([{"label": "a", "mask": {"size": [-1, -12], "counts": [0, 12]}}], "a mask of -1 × -12 pixels is not possible"),
        (
            [{"label": "a", "mask": {"size": [65536, 65536], "counts": [0, 65536**2]}}],
            "a mask of 65536 × 65536 pixels is not possible; at most 4294967295 are",
        ),
    ],
)
def test_a_segment_that_is_none_is_named(found: Any, message: str) -> None:
    with pytest.raises(DataError, match=message):
        Segmentation().score(found, SKY)


def test_null_is_no_empty_image() -> None:
    assert Segmentation().score(SKY, None).status == "abstained"
    score = Segmentation().score(None, SKY)
    assert (score.status, dict(score.columns or {})["n_expected"]) == ("abstained", 2)


def test_another_table_is_refused() -> None:
    with pytest.raises(SpecError, match="mean_iou reads 'classes', which the table lacks"):
        summarise([pa.table({"_index_": [0], "status": ["scored"], "value": [1.0]})], [MeanIou()])
    for text in ("7", "{", '{"label": ["a"]}'):
        other = pa.table({"_index_": [0], "status": ["scored"], "classes": [text]})
        with pytest.raises(DataError, match="the column does not hold classes of segments"):
            summarise([other], [MeanIou()])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"part": "all"}, "part is the text 'all'; give one of things, stuff"),
        ({"label": 0.5}, "label=0.5 must be text or an"),
    ],
)
def test_parameters_that_cannot_be_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(SpecError, match=message):
        PanopticQuality(**options)
