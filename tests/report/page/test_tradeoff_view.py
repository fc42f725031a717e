"""Trade-offs on the page: what is read of them, and that the sliders pick what the command picks."""

from __future__ import annotations

import json
import random
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from click.testing import CliRunner
from support.accessible import check_readable
from support.view_page import open_page
from support.view_server import HOSTILE

from evaluand import Accuracy, Aggregator, Dataset, DirectoryStore, Evaluator, Mean, Runner
from evaluand.aggregation.aggregator import Measure
from evaluand.cli import main
from evaluand.core.errors import NotFound
from evaluand.evaluation.scorer import scorer
from evaluand.evaluation.scorers.prediction import Prediction
from evaluand.report.page.resources.base import Source, find_resources, list_paths, read_resource
from evaluand.run.task import FunctionTask
from evaluand.tradeoff.trade import Trade, compute_results, result_tables

ROWS = 60


@scorer(version="1")
def helpful(output: Any, expected: Any) -> float:
    return float(1 - abs((expected == "yes") - output["confidence"]))


@scorer(version="1")
def short(output: Any, expected: Any) -> float:
    return float(1 / output["length"])


def make_results(store: DirectoryStore, name: str, seed: int) -> None:
    """Three models, of which a classifier can decide at every threshold and an application is a point."""
    chance = random.Random(seed)
    rows = [{"i": i, "truth": ["no", "yes"][chance.random() < 0.5], "site": "ab"[i % 2]} for i in range(ROWS)]
    data = Dataset.from_rows(rows, name=f"{name} data", input="i", expected="truth", attributes=["site"])
    evaluations = {}
    for number, model in enumerate(("tree", "net", HOSTILE)):
        noise = [chance.gauss(0, 0.25 + 0.1 * number) for _ in rows]
        means = [0.8 if row["truth"] == "yes" else 0.2 for row in rows]
        sure = [min(max(mean + one, 0), 1) for mean, one in zip(means, noise, strict=True)]

        def answer(i: int, sure: list[float] = sure, number: int = number) -> dict[str, Any]:
            return {"prediction": "yes", "confidence": sure[i], "length": 3 - number}

        run = Runner(store).run(FunctionTask(answer, name=model, version=f"{seed}"), data, name=f"{name}/{model}")
        scorers = {"right": Prediction(), "helpful": helpful, "short": short}
        graded = Evaluator(store).evaluate(run, scorers, name=f"{name}/{model}", origin={"task": model})
        evaluations[model] = graded
    measures = [
        Measure("right", Accuracy()),
        Measure("helpful", Mean(range=(0, 1))),
        Measure("short", Mean(range=(0, 1))),
    ]
    at: dict[str, Any] = {"thresholds": "every", "label": "yes", "scorer": "right"}
    fair = ["accuracy", "recall difference by site"]
    trades = [
        Trade(objectives=fair, name="at thresholds", tasks=["tree", "net"], **at),
        Trade(objectives=["mean(helpful)", "mean(short)"], name=HOSTILE),
        Trade(objectives=["accuracy", "matthews_correlation min by site"], name="no short name", **at),
        Trade(objectives=fair, name="no label", tasks=["tree"], **at | {"label": "maybe"}),
    ]
    Aggregator(store).aggregate(
        list(evaluations.values()),
        measures,
        name=name,
        labels=list(evaluations),
        tradeoffs=[each.spec for each in trades],
        further=lambda measures: result_tables(compute_results(trades, evaluations, measures)),
    )


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> DirectoryStore:
    store = DirectoryStore(tmp_path_factory.mktemp("store") / "store")
    for name, seed in (("validation", 1), ("test", 2)):
        make_results(store, name, seed)
    run = Runner(store).run(str.upper, Dataset.from_rows([{"input": "a"}]), name="plain/upper")
    graded = Evaluator(store).evaluate(run, {"short": short_text}, name="plain/upper")
    Aggregator(store).aggregate([graded], [Measure("short", Mean())], name="plain")
    return store


@scorer(version="1")
def short_text(output: Any, expected: Any) -> float:
    return float(len(output))


def read(store: DirectoryStore, path: str) -> Any:
    find_resources()
    return json.loads(read_resource(Source(store), path, {}))


def picked(command: str) -> dict[str, Any]:
    """What a command line that the page shows picks."""
    result = CliRunner().invoke(main, [*shlex.split(command)[1:], "--json"])
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)  # type: ignore[no-any-return]


def test_trade_offs_are_read_with_figures_and_the_points_to_choose_from(store: DirectoryStore) -> None:
    found = read(store, "tradeoffs/validation")
    assert found["title"] == "validation"
    at, variants, *_ = found["tradeoffs"]
    assert (at["name"], at["reason"], at["metrics"]) == ("at thresholds", None, ["acc", "minmaxd+tpr+site"])
    choice = at["choice"]
    assert choice["models"] == [["tree", "net"]]
    assert choice["lower"] == [False, True]
    assert choice["captions"] == ["recall by site (should be equal)"]
    assert len(choice["points"]) == len(choice["ends"]) > 2
    assert {row[0] for row in choice["points"][0][5][0]} == {"a", "b"}
    assert len(at["frames"]) == at["figures"].count("<figcaption>recall difference by site against accuracy") + 1 == 1
    assert variants["metrics"] == ["mean(helpful)", "mean(short)"]
    assert [point[2] for point in variants["choice"]["points"]] == [""] * len(variants["choice"]["points"])
    assert read(store, f"tradeoffs/{found['id']}") == found


def test_names_from_data_are_no_markup_in_the_figures(store: DirectoryStore) -> None:
    for each in read(store, "tradeoffs/validation")["tradeoffs"][:3]:
        assert "<script" not in each["figures"]
        assert "<img" not in each["figures"]


def test_the_words_of_the_command_are_those_of_tradeoff_pick(store: DirectoryStore) -> None:
    at, variants, other, _ = read(store, "tradeoffs/validation")["tradeoffs"]
    assert at["command"][:3:2] == ["--stored", "--stored"]
    assert at["command"][4:-1] == [
        *("--metric", "acc", "--metric", "minmaxd+tpr+site"),
        *("--label", "yes", "--scorer", "right", "--thresholds", "every"),
    ]
    assert at["command"][-1] == f"--store {store.root}"
    assert variants["command"][:2] == ["--stored", "validation"]
    assert (other["metrics"], other["command"], other["reason"]) == (None, None, None)


def test_a_point_is_found_on_other_data(store: DirectoryStore) -> None:
    at = read(store, "tradeoffs/validation")["tradeoffs"][0]
    place = next(i for i, point in enumerate(at["choice"]["points"]) if not point[6])
    _, model, threshold, *_ = at["choice"]["points"][place]
    name = at["choice"]["models"][0][model]
    [there] = read(store, f"tradeoff-elsewhere/validation/0/{place}")
    assert (there["name"], there["dataset"]) == ("test", "test data")
    command = ["evaluand", "tradeoff", "pick", *at["command"][:-1], "--best", "acc", "--store", str(store.root)]
    limits = [
        f"{metric} {'<=' if lower else '>='} {value}"
        for metric, lower, value in zip(
            at["metrics"], at["choice"]["lower"], at["choice"]["points"][place][4], strict=True
        )
    ]
    on = [ref.id for ref in store.refs() if ref.kind == "evaluations" and ref.name == f"test/{name}"]
    words = [*command, *(word for limit in limits for word in ("--where", limit)), "--on-stored", on[0]]
    made = picked(shlex.join(words))
    assert (made["model"], made["threshold"]) == (name, float(threshold))
    assert [one["value"] for one in made["there"].values()] == pytest.approx(there["values"])


def test_variants_are_found_on_other_data_by_their_names(store: DirectoryStore) -> None:
    variants = read(store, "tradeoffs/test")["tradeoffs"][1]
    [there] = read(store, "tradeoff-elsewhere/test/1/0")
    assert there["name"] == "validation"
    assert there["values"][1] == variants["choice"]["points"][0][4][1]


def test_what_has_no_points_says_why_and_what_is_not_there_is_refused(store: DirectoryStore) -> None:
    last = read(store, "tradeoffs/validation")["tradeoffs"][3]
    assert "maybe" in last["reason"]
    assert "figures" not in last
    assert read(store, "tradeoffs/plain")["tradeoffs"] == []
    for path in (
        "tradeoffs/none",
        "tradeoffs/validation%2Ftree",
        "tradeoffs/..%2F..%2Fetc",
        "tradeoff-elsewhere/validation/9/0",
        "tradeoff-elsewhere/validation/0/99999",
        "tradeoff-elsewhere/validation/-1/0",
        "tradeoff-elsewhere/validation/%D9%A1/0",
        "tradeoff-elsewhere/validation/3/0",
        "tradeoff-elsewhere/plain/0/0",
    ):
        with pytest.raises(NotFound):
            read(store, path)


def test_results_lead_to_their_trade_offs(store: DirectoryStore) -> None:
    assert read(store, "answers/validation")["links"] == [{"title": "Trade-offs", "path": ["o", "validation"]}]
    assert read(store, "answers/plain")["links"] == []


def test_files_of_the_page_have_the_trade_offs(store: DirectoryStore) -> None:
    paths = {path for path in list_paths(Source(store)) if path.startswith("tradeoffs/")}
    ids = {ref.id for ref in store.refs() if ref.kind == "aggregations" and ref.name != "plain"}
    assert paths == {"tradeoffs/validation", "tradeoffs/test", *(f"tradeoffs/{id}" for id in ids)}


@pytest.fixture(scope="module")
def page(chromium: Any, store: DirectoryStore, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with open_page(chromium, Path(store.root), tmp_path_factory.mktemp("log") / "errors") as tab:
        yield tab


@pytest.mark.slow
def test_the_slider_picks_the_point_that_the_command_picks(page: Any, store: DirectoryStore) -> None:
    page.goto(f"{page.origin}/o/validation")
    for section, name in ((0, "at thresholds"), (1, HOSTILE)):
        part = page.locator("section.tradeoff").nth(section)
        assert part.locator("h2").inner_text() == name
        seen = []
        for presses in (0, 1, 3):
            slider = part.get_by_role("slider").nth(1)
            slider.focus()
            for _ in range(presses):
                page.keyboard.press("ArrowLeft" if section == 0 else "ArrowRight")
            command = part.locator(".command code").inner_text()
            made = picked(command)
            shown = part.locator(".picked-point").inner_text()
            threshold = "" if made["threshold"] is None else f" · {made['threshold']!r}".removesuffix(".0")
            assert shown == made["model"] + threshold
            assert part.locator(".planes circle.picked").count() == 1
            seen.append((shown, command))
        assert len(set(seen)) > 1
    limits = [re.findall(r"[<>]= ([\d.e-]+)'", command) for command in page.locator(".command code").all_inner_texts()]
    page.wait_for_url(re.compile(rf"0\.1={limits[0][0]}&1\.1={limits[1][0]}$"))
    before = page.locator(".picked-point").all_inner_texts()
    page.reload()
    page.wait_for_selector(".picked-point")
    assert page.locator(".picked-point").all_inner_texts() == before


@pytest.mark.slow
def test_a_point_of_the_table_or_the_plane_sets_the_limits_to_its_values(page: Any) -> None:
    page.goto(f"{page.origin}/o/validation")
    part = page.locator("section.tradeoff").first
    part.locator("table.points tbody button").nth(2).press("Enter")
    row = part.locator("table.points tr.chosen")
    assert row.count() == 1
    assert row.locator("td").first.inner_text() in part.locator(".picked-point").inner_text()
    assert part.locator("table.rates tbody tr").count() == 2
    part.get_by_role("group", name="The same point on other data").wait_for()
    part.get_by_role("button", name="Clear the limits").click()
    first = part.locator(".picked-point").inner_text()
    dots = part.locator("figure").first.locator("svg > .dot")
    box = dots.first.bounding_box()
    page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    assert part.locator(".picked-point").inner_text() != first


def test_a_limit_that_is_no_number_is_said_and_a_percentage_is_one(page: Any) -> None:
    page.goto(f"{page.origin}/o/{quote('test')}")
    part = page.locator("section.tradeoff").first
    field = part.get_by_role("textbox").nth(1)
    field.fill("low")
    assert part.get_by_role("alert").inner_text() == "“low” is no number: write it as in 0.05."
    field.fill("5 %")
    assert part.get_by_role("alert").count() == 0
    assert "minmaxd+tpr+site <= 0.05" in part.locator(".command code").inner_text()


def test_nothing_is_wider_than_the_window(page: Any) -> None:
    page.set_viewport_size({"width": 390, "height": 900})
    page.goto(f"{page.origin}/o/validation")
    for width in (390, 1280):
        page.set_viewport_size({"width": width, "height": 900})
        page.wait_for_selector(".picked-point")
        assert page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.slow
def test_readers_of_all_kinds_can_use_trade_offs(page: Any) -> None:
    check_readable(page, f"{page.origin}/o/validation")
