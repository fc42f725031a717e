"""What a report draws: that it says what the curves say, only where there are some, and harms nobody."""

from __future__ import annotations

import io
import re
import struct
import zlib
from pathlib import Path
from typing import Any

import orjson
import pytest
from support.browser import open_tab, watch
from support.cancer import answers, cancer
from support.html_page import Page, rows_of

from evaluand.aggregation.aggregator import Aggregation, Aggregator, Measure
from evaluand.aggregation.fairness import measures_of
from evaluand.data.dataset import Dataset
from evaluand.evaluation.evaluator import Evaluator
from evaluand.evaluation.scorers.detection import Detection
from evaluand.evaluation.scorers.prediction import Prediction
from evaluand.metrics.accuracy import Accuracy
from evaluand.metrics.areas import AveragePrecision, RocAuc
from evaluand.metrics.box_averages import MeanAveragePrecision
from evaluand.metrics.calibration import ExpectedCalibrationError
from evaluand.metrics.confusion_matrix import ConfusionMatrix
from evaluand.metrics.errors import MeanSquaredError, RootMeanSquaredError
from evaluand.report.facts.aggregation import confusion_matrix, curves_facts, summary_facts
from evaluand.report.facts.report import Part, report_facts
from evaluand.report.facts.run import missing_facts
from evaluand.report.html.examples import Images, examples_of, find_source, frames
from evaluand.report.html.page import asset
from evaluand.report.html.report import write_report
from evaluand.report.terminal.plain_text import plain_text
from evaluand.report.terminal.report import curves_tables
from evaluand.run.runner import Runner
from evaluand.store.directory import DirectoryStore

HOSTILE = "</script><script>alert(1)</script><b onclick=x>'\"\u202e"


def made(
    records: list[dict[str, Any]],
    outputs: dict[str, list[Any]],
    measures: list[Measure],
    scorer: Any = None,
    dataset: Dataset | None = None,
) -> tuple[list[Part], Aggregation]:
    """The tasks and what they come to; records are numbered by `input`."""
    attributes = [name for name in records[0] if name == "side"]
    data = dataset or Dataset.from_rows(records, input="input", attributes=attributes)
    parts = []
    for name, given in outputs.items():
        run = Runner().run(lambda i, given=given: given[i], data)
        parts.append(Part(name, run, Evaluator().evaluate(run, {"same": scorer or Prediction()})))
    evaluations = [part.evaluation for part in parts if part.evaluation]
    return parts, Aggregator().aggregate(evaluations, measures, labels=list(outputs))


def page(parts: list[Part], aggregation: Aggregation) -> str:
    facts = report_facts("exp", parts, **summary_facts(aggregation))
    file = io.BytesIO()
    write_report(facts, examples_of(parts, facts["scores"]), file)
    return file.getvalue().decode()


def section(text: str, id: str) -> str:
    found = re.search(rf'<section id="{id}".*?</section>', text, re.DOTALL)
    return found.group() if found else ""


def records_of(truth: list[Any], **more: list[str]) -> list[dict[str, Any]]:
    return [
        {"input": i, "expected": t} | {name: column[i] for name, column in more.items()} for i, t in enumerate(truth)
    ]


def test_a_matrix_is_in_a_table_with_shares_of_the_truth() -> None:
    text = section(
        page(
            *made(
                records_of(["a"] * 4 + ["b"]), {"mine": ["a", "a", "a", "b", "b"]}, [Measure("same", ConfusionMatrix())]
            )
        ),
        "confusion",
    )
    lines = Page(text).lines
    assert lines[0] == ["truth ↓ predicted →", "a", "b", "rows"]
    assert lines[1:] == [["a", "375 %", "125 %", "4"], ["b", "0", "1100 %", "1"]]
    assert [td.get("title") for td in Page(text).all("td")][:2] == [
        "a predicted as a: 3 of 4",
        "a predicted as b: 1 of 4",
    ]


def test_the_summary_leads_to_the_matrix_and_shows_no_number_of_rows_for_its_value() -> None:
    measures = [Measure("same", ConfusionMatrix())]
    text = section(page(*made(records_of(["a", "b"]), {"mine": ["a", "a"]}, measures)), "summary")
    assert '<td><a href="#confusion">matrix</a></td>' in text
    assert 'class="value"' not in text


def test_reasons_that_differ_in_their_figures_are_one_that_says_so() -> None:
    def answer(number: int) -> str:
        raise ValueError(f"fold {number} failed" if number < 2 else "no answer")

    run = Runner().run(answer, Dataset.from_rows([{"input": i} for i in (0, 1, 2, 2)]))
    reported = sorted(reason["reason"] for reason in missing_facts(run, None))
    assert reported == ["ValueError: fold 0 failed; others differ in their figures", "ValueError: no answer"]


def test_of_many_classes_the_most_frequent_are_in_the_matrix_and_the_rest_is_reported() -> None:
    truth = [f"class {i:02}" for i in range(30) for _ in range(1 + (i < 20))]
    text = section(page(*made(records_of(truth), {"mine": truth}, [Measure("same", ConfusionMatrix())])), "confusion")
    lines = Page(text).lines
    assert len(lines) == 1 + 21
    assert lines[-1][0] == "all others"
    assert lines[-1][-2:] == ["10100 %", "10"]
    assert "The 20 classes with most rows; the 10 others are combined." in text


def test_tasks_share_a_plot_of_each_class_with_the_line_of_chance() -> None:
    truth, scores = cancer()
    metrics = [
        RocAuc(confidence=None),
        AveragePrecision(label="benign", confidence=None),
        ExpectedCalibrationError(),
    ]
    outputs = {"sure": answers(scores), "blind": answers(scores * 0 + 0.6)}
    parts, aggregation = made(records_of(truth), outputs, [Measure("same", metric) for metric in metrics])
    text = section(page(parts, aggregation), "curves")
    seen = Page(text)
    pictures = [svg for svg in seen.all("svg") if svg.get("role") == "img"]
    assert [re.sub(":.*", "", svg["aria-label"] or "") for svg in pictures] == [
        "ROC of benign", "ROC of malignant", "Precision against recall of benign", "Calibration",
    ]  # fmt: skip
    assert all("sure" in (svg["aria-label"] or "") and "blind" in (svg["aria-label"] or "") for svg in pictures)
    assert text.count('class="guide"') == 4
    lines = [line.get("class") for line in seen.all("polyline")]
    assert {"line s0 d0", "line s1 d1"} == set(lines)
    assert "blind" in seen.texts
    curve = next(c for c in curves_facts(aggregation) if (c["task"], c["part"]) == ("sure", "benign"))["points"]
    rate = max(y for x, y in zip(curve["x"], curve["y"], strict=True) if x <= 0.05)
    assert ["0.05", "sure", f"{rate:.3f}"] in [line[:3] for line in seen.lines]


def test_each_group_has_a_line_with_its_name_in_the_legend() -> None:
    truth, scores = cancer()
    side = ["north" if i % 3 else HOSTILE for i in range(len(truth))]
    metrics = [
        RocAuc(label="benign", confidence=None),
        AveragePrecision(label="benign", confidence=None),
        ExpectedCalibrationError(),
    ]
    measures = [Measure("same", metric, by="side") for metric in metrics]
    text = section(page(*made(records_of(truth, side=side), {"mine": answers(scores)}, measures)), "curves")
    seen = Page(text)
    assert text.count("<h4>By side</h4>") == 3
    assert text.count('class="line s1 d1" points="') == 3 + 3  # in plots and legends
    assert text.count("without a line") == 0
    assert any("side=north" in line for line in seen.lines)
    assert "alert(1)</script>" not in text
    labels = [svg["aria-label"] or "" for svg in seen.all("svg") if svg.get("role") == "img"]
    assert sum("side=north" in label for label in labels) == 3


def test_of_many_groups_the_largest_have_lines_and_the_others_are_counted() -> None:
    truth, scores = cancer()
    side = [f"g{min(i % 40, 30):02}" for i in range(len(truth))]
    measure = Measure("same", RocAuc(label="benign", confidence=None), by="side")
    parts, aggregation = made(records_of(truth, side=side), {"mine": answers(scores)}, [measure])
    kept = {curve["by"]["side"] for curve in curves_facts(aggregation) if curve["by"]}
    assert len(kept) == 20
    assert "g30" in kept  # the largest
    text = section(page(parts, aggregation), "curves")
    assert "25 groups without a line here, of 31: shown are those with the most rows." in text
    assert "side=g30" in text


def test_aggregations_without_a_table_of_curves_are_reported_without_them() -> None:
    truth, scores = cancer()
    side = ["ab"[i % 2] for i in range(len(truth))]
    measure = Measure("same", RocAuc(label="benign", confidence=None), by="side")
    parts, aggregation = made(records_of(truth, side=side), {"mine": answers(scores)}, [measure])
    del aggregation.manifest["counts"]["curves"]
    assert aggregation.curves().num_rows == 0
    text = page(parts, aggregation)
    assert section(text, "curves") == ""
    assert "roc_auc" in text


def test_bins_of_confidence_stand_with_their_picture_with_counts() -> None:
    truth, scores = cancer()
    parts, aggregation = made(
        records_of(truth), {"mine": answers(scores)}, [Measure("same", ExpectedCalibrationError())]
    )
    [curve] = curves_facts(aggregation)
    lines = Page(section(page(parts, aggregation), "curves")).lines[1:]
    assert [line[-1] for line in lines] == [f"{n:.0f}" for n in curve["points"]["n"]]
    assert lines[0][2] == f"{curve['points']['low'][0]:.3f} to {curve['points']['high'][0]:.3f}"


@pytest.mark.parametrize(
    ("metric", "note", "said", "right", "column"),
    [
        (
            ExpectedCalibrationError(),
            "The proportion of correct rows by the confidence of the answer;",
            "mean confidence",
            "proportion correct",
            "right",
        ),
        (
            ExpectedCalibrationError(label="benign", scored_by="classes"),
            "The proportion of rows with the label by its probability;",
            "mean probability",
            "proportion with the label",
            "with the label",
        ),
    ],
)
def test_a_reliability_curve_is_about_the_answer_or_about_the_label(
    metric: ExpectedCalibrationError, note: str, said: str, right: str, column: str
) -> None:
    truth, scores = cancer()
    parts, aggregation = made(records_of(truth), {"mine": answers(scores)}, [Measure("same", metric)])
    text = section(page(parts, aggregation), "curves")
    assert note in text
    assert Page(text).lines[0] == [said, right, "interval", "rows"]
    assert {said, right} <= {*Page(text).texts}
    printed = plain_text(*curves_tables(summary_facts(aggregation))).splitlines()
    assert re.split(" {2,}", printed[1].strip()) == [said, column, "interval", "rows"]


def test_errors_are_drawn_once_whatever_is_made_of_them() -> None:
    measures = [Measure("same", RootMeanSquaredError()), Measure("same", MeanSquaredError())]
    scorer = Prediction(type="number")
    text = page(
        *made(records_of([float(i) for i in range(9)]), {"mine": [0.0, *map(float, range(8))]}, measures, scorer)
    )
    assert section(text, "curves").count('role="img"') == 1
    assert section(text, "curves").count('<g class="dot') == 9


def test_a_report_without_such_metrics_has_nothing_of_it() -> None:
    text = page(*made(records_of(["a", "b"]), {"mine": ["a", "b"]}, [Measure("same", Accuracy())]))
    assert not any(section(text, id) for id in ("confusion", "curves", "disparities"))
    assert "img-src" not in text


def test_disparities_name_their_groups_and_flag_those_that_are_small() -> None:
    side = ["north"] * 40 + ["south"] * 10
    given = ["a"] * 30 + ["b"] * 15 + ["a"] * 5
    measure = Measure("same", Accuracy(), by="side", disparities=("difference", "ratio"))
    text = section(page(*made(records_of(["a"] * 50, side=side), {"mine": given}, [measure])), "disparities")
    seen = Page(text)
    [line] = [line for line in seen.lines if line[0] == "difference" and len(line) == 8]
    assert line[:3] + line[5:] == ["difference", "mine", "0.250", "side=south fewer than 30 rows", "side=north", "2"]
    assert "1 group with fewer than 30 scored rows: side=south" in text
    assert [svg["aria-label"].startswith(("0.250", "0.667")) for svg in seen.all("svg") if svg.get("aria-label")] == [
        True,
        True,
    ]  # type: ignore[union-attr]


def test_the_rate_that_decides_stands_with_a_disparity_of_two() -> None:
    truth = ["a", "b"] * 40
    side = ["north"] * 40 + ["south"] * 40
    given = ["a", "b"] * 20 + ["a", "b", "a", "a"] * 10  # in the south half of the others are taken for a
    measures = measures_of("equalized_odds", by="side", scorer="same", label="a", disparities="difference")
    text = section(page(*made(records_of(truth, side=side), {"mine": given}, measures)), "disparities")
    [line] = [line for line in Page(text).lines if line[0].startswith("difference") and len(line) == 7]
    assert (line[0], line[2]) == ("difference of false_positive_rate", "0.500")


def test_hostile_names_stay_text_everywhere() -> None:
    truth = [HOSTILE, "b"] * 20
    records = records_of(truth, side=[HOSTILE if i % 4 else "x" for i in range(40)])
    given = [{"prediction": t, "confidence": {HOSTILE: 0.6, "b": 0.4}} for t in truth]
    metrics = [
        ConfusionMatrix(),
        RocAuc(confidence=None),
        ExpectedCalibrationError(label=HOSTILE, scored_by="classes"),
    ]
    measures = [
        Measure("same", Accuracy(), by="side", disparities="difference"),
        *(Measure("same", m) for m in metrics),
    ]
    text = page(*made(records, {HOSTILE: given}, measures))
    assert all(section(text, id) for id in ("confusion", "curves", "disparities"))
    markup = text.replace(asset("report.js"), "")
    assert not re.search(r"<b |alert\(1\)</script>|\u202e", markup)
    seen = Page(text)
    assert len(seen.all("table")) == len(seen.all("caption"))
    assert all("scope" in th for th in seen.all("th"))
    assert not [a for _, a in seen.elements if "style" in a or any(name.startswith("on") for name in a)]


# Boxes


def png(width: int, height: int) -> bytes:
    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    rows = zlib.compress(b"".join(b"\0" + b"\x80" * width for _ in range(height)))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


def boxes(*given: tuple[int, str, float | None]) -> list[dict[str, Any]]:
    return [
        {"box": [x, 10, x + 10, 20], "label": label} | ({} if sure is None else {"confidence": sure})
        for x, label, sure in given
    ]


def detected(folder: Path) -> tuple[list[Part], Aggregation]:
    """Two images, one of which is there, with a right, a missed and a spurious box."""
    rows = [{"image": name, "expected": boxes((0, HOSTILE, None), (40, "dog", None))} for name in ("a.png", "b.png")]
    file = folder / "data.jsonl"
    file.write_bytes(b"\n".join(map(orjson.dumps, rows)))
    (folder / "a.png").write_bytes(png(64, 32))
    given = boxes((1, HOSTILE, 0.9), (40, HOSTILE, 0.4))
    run = Runner().run(lambda image: given, Dataset.from_file(file, input="image"))
    evaluation = Evaluator().evaluate(run, {"boxes": Detection()})
    aggregation = Aggregator().aggregate([evaluation], [Measure("boxes", MeanAveragePrecision())], labels=["mine"])
    return [Part("mine", run, evaluation)], aggregation


def test_boxes_are_reported_as_right_missed_and_spurious(tmp_path: Path) -> None:
    text = page(*detected(tmp_path))
    first, second = rows_of(text)
    [drawn] = first["frames"]
    assert [box[4:] for box in drawn["boxes"]] == [[HOSTILE, 0, 0.9], ["dog", 1, None], [HOSTILE, 2, 0.4]]
    assert (drawn["counts"], drawn["more"]) == ([1, 1, 1], 0)
    assert first["image"].startswith("data:image/png;base64,")
    assert second["image"] is None
    assert "img-src data:" in text
    assert "alert(1)</script>" not in text
    assert section(text, "curves").count('role="img"') == 1  # of what was never detected there is no curve


def test_crowds_and_what_is_found_in_them_are_neither_missed_nor_spurious() -> None:
    truths = '{"box":[[0,0,100,100],[200,0,210,10]],"crowd":[true,false]}'
    [found] = frames([truths], ['{"box":[[10,10,20,20],[300,0,310,10]],"confidence":[0.9,0.8]}'])
    assert found is not None
    assert found["counts"] == [0, 1, 1]


def test_an_image_without_an_answer_has_missed_all_its_boxes() -> None:
    one = '{"box":[[0,0,9,9]]}'
    missed, unknown, empty = frames([one, None, '{"box":[]}'], [None, one, '{"box":[]}'])
    assert missed is not None
    assert missed["counts"] == [0, 1, 0]
    assert (unknown, empty) == (None, None)
    assert frames(['{"box":[["x",0,9,9]]}'], [None]) == [None]


def test_only_small_images_with_the_dataset_are_read(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    (folder / "inner").mkdir(parents=True)
    (folder / "rows.csv").touch()
    (folder / "inner" / "a.png").write_bytes(png(4, 4))
    (folder / "text.png").write_bytes(b"secret")
    (folder / "large.png").write_bytes(png(4, 4) + bytes(400_000))
    (tmp_path / "outside.png").write_bytes(png(4, 4))
    (folder / "link.png").symlink_to(tmp_path / "outside.png")
    images = Images(str(folder / "rows.csv"))
    assert images.read({"image": "inner/a.png"}) == images.read("inner/a.png")
    assert (images.read("inner/a.png") or "").startswith("data:image/png;base64,")
    for name in (
        "text.png",
        "large.png",
        "../outside.png",
        str(tmp_path / "outside.png"),
        "link.png",
        "no.png",
        "\0.png",
        4,
    ):
        assert images.read(name) is None
    assert Images("rows").read("inner/a.png") is None
    assert Images(None).read(str(folder / "inner" / "a.png")) is None


def test_a_report_takes_no_images_that_a_store_of_somebody_else_names_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = DirectoryStore(tmp_path / "checkout" / ".evaluand")
    files = [tmp_path / "checkout" / "data" / "rows.csv", tmp_path / "private" / "rows.csv"]
    for file in files:
        file.parent.mkdir(parents=True)
        file.write_text(f"input\n{file.parent.name}\n")
    runs = [Runner(store).run(str.upper, Dataset.from_file(file)) for file in files]
    assert [find_source(store, run.manifest["spec"]["dataset"]) for run in runs] == [str(file) for file in files]
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home of somebody else"))
    assert [find_source(store, run.manifest["spec"]["dataset"]) for run in runs] == [str(files[0]), None]


def test_the_classes_of_a_matrix_keep_their_order() -> None:
    _, aggregation = made(records_of(["b", "c", "a"]), {"mine": ["a", "d", "a"]}, [Measure("same", ConfusionMatrix())])
    classes, cells = confusion_matrix(curves_facts(aggregation))
    assert classes == ["a", "b", "c", "d"]
    assert cells == [[1, 0, 0, 0], [1, 0, 0, 0], [0, 0, 0, 1], [0, 0, 0, 0]]


def test_a_metric_that_is_declared_twice_is_shown_once() -> None:
    truth, scores = cancer()
    sides = [["left", "right"][i % 2] for i in range(len(truth))]
    metric = ExpectedCalibrationError(label="benign", scored_by="classes")
    measures = [
        Measure("same", metric),
        Measure("same", metric),
        *measures_of("calibration_by_group", "side", scorer="same", label="benign", scored_by="classes"),
    ]
    parts, aggregation = made(records_of(truth, side=sides), {"mine": answers(scores)}, measures)
    text = page(parts, aggregation)
    assert [line[0] for line in Page(section(text, "summary")).lines if "mine" in line] == ["mine"]
    assert [line[0] for line in Page(section(text, "charts")).lines if "mine" in line] == ["mine"]
    assert {tuple(row["by"].items()) for row in curves_facts(aggregation)} == {
        (), (("side", "left"),), (("side", "right"),),
    }  # fmt: skip
    for curve in curves_facts(aggregation):
        assert sum(curve["points"]["n"]) == len(truth) / (2 if curve["by"] else 1)


# In a browser


def test_boxes_lie_over_their_image_in_a_browser(chromium: Any, tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    path.write_text(page(*detected(tmp_path)))
    with open_tab(chromium) as tab, watch(tab):
        tab.set_viewport_size({"width": 360, "height": 800})
        tab.goto(f"{path.as_uri()}#example=mine/0")
        tab.locator(".frame image").wait_for()
        assert tab.locator(".frame svg").get_attribute("viewBox") == "0 0 64 32"
        assert [tab.locator(f".frame .{kind} rect").count() for kind in ("right", "missed", "spurious")] == [1, 1, 1]
        dashes = {
            tab.locator(f".frame .{kind} rect").evaluate("rect => getComputedStyle(rect).strokeDasharray")
            for kind in ("right", "missed", "spurious")
        }
        assert len(dashes) == 3
        assert tab.locator(".boxes li").count() == 3
        assert tab.evaluate("document.documentElement.scrollWidth <= innerWidth")
        tab.goto("about:blank")
        tab.goto(f"{path.as_uri()}#example=mine/1")
        tab.locator(".frame svg:visible").wait_for()
        assert tab.locator(".frame:visible image").count() == 0
