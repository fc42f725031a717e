"""Judges in the page: all of the store, what each is worth, and the answers on which people disagree."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.accessible import check_readable
from support.browser import open_tab
from support.labelled import Rounding, judge_numbers, label_numbers, play_numbers
from support.view_server import HOSTILE, serve_store

from evaluand import DirectoryStore, Evaluator
from evaluand.core.errors import NotFound
from evaluand.judges.cards.card import make_card
from evaluand.judges.cards.from_evaluation import read_labelled_evaluation
from evaluand.matches.labelled_sets import read_labelled_file
from evaluand.report.page.resources.base import Source, find_resources, read_resource

NUMBERS = [*range(0, 100, 2), *range(1, 100, 2)]
DISPUTED = [number for number in NUMBERS if number >= 50 and number % 25 == 0]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> DirectoryStore:
    """A judge that was measured, and one of a hostile name that was not."""
    folder = tmp_path_factory.mktemp("judges")
    store = DirectoryStore(folder / "store")
    judged = judge_numbers(store, NUMBERS)
    assert judged.run is not None
    label_numbers(judged.run, folder, {"ann": [int(n >= 50 and n not in DISPUTED) for n in NUMBERS]})
    make_card(read_labelled_evaluation(judged, "fine"), store)
    other = play_numbers(store, [1, 2, 3])
    Evaluator(store).evaluate(other, {HOSTILE: Rounding(limit=2)}, name=HOSTILE)
    return store


def read(store: DirectoryStore, path: str) -> Any:
    find_resources()
    return json.loads(read_resource(Source(store), path, {}))


def find(store: DirectoryStore, name: str) -> Any:
    return next(judge for judge in read(store, "judges")["judges"] if judge["judge"] == name)


def test_every_judge_is_listed_with_where_it_judged_and_whether_it_was_measured(store: DirectoryStore) -> None:
    found = read(store, "judges")
    assert {judge["judge"]: judge["status"] for judge in found["judges"]} == {"fine": "measured", HOSTILE: "unmeasured"}
    assert found["cards"] == []
    fine = find(store, "fine")
    assert [use["names"] for use in fine["uses"]] == [["numbers/mine"]]
    assert "agreement" in fine["text"]


def test_a_judge_has_its_card_its_confusion_and_links_to_what_people_see_otherwise(store: DirectoryStore) -> None:
    found = read(store, f"judge/{find(store, 'fine')['id']}")
    assert (found["judge"], found["status"]) == ("fine", "measured")
    for measure in ("agreement", "sensitivity", "specificity", "kappa"):
        assert measure in found["section"]
    assert ">of</th>" not in found["section"]  # no measure is of a part of the answers
    cells = {(row["people"], row["judge"]): row["n"] for row in found["confusion"]}
    assert cells == {("0", "0"): 50, ("1", "0"): 0, ("0", "1"): len(DISPUTED), ("1", "1"): 50 - len(DISPUTED)}
    assert [miss["texts"]["input"] for miss in found["misses"]] == [str(number) for number in DISPUTED]
    for miss in found["misses"]:
        example = read(store, f"example/{miss['dataset']}/{miss['index']}")
        assert example["id"] == miss["id"]
        assert example["input"]["j"] == miss["texts"]["input"]


def test_an_example_has_the_scores_of_the_judge_and_the_labels_of_people(store: DirectoryStore) -> None:
    miss = read(store, f"judge/{find(store, 'fine')['id']}")["misses"][0]
    runs = read(store, f"example/{miss['dataset']}/{miss['index']}")["runs"]
    [run] = [run for run in runs if run["labels"] is not None]
    assert [scorer["name"] for scorer in run["scorers"]] == ["fine"]
    assert [score["value"] for score in run["rows"][0]["scores"]] == [1]
    assert [scorer["name"] for scorer in run["labels"]["scorers"]] == ["human"]
    assert [[score["value"] for score in scores] for scores in run["labels"]["scores"]] == [[0]]


def test_a_judge_without_a_card_has_no_numbers(store: DirectoryStore) -> None:
    found = read(store, f"judge/{find(store, HOSTILE)['id']}")
    assert (found["confusion"], found["calibration"], found["misses"], found["command"]) == ([], [], [], None)
    assert "unmeasured" in found["section"]
    assert "<script" not in found["section"]
    assert "<img" not in found["section"]


def test_a_judge_of_unlabelled_answers_says_to_label_first_and_later_where_to_measure(tmp_path: Path) -> None:
    store = DirectoryStore(tmp_path / "store")
    judged = judge_numbers(store, NUMBERS)
    assert judged.run is not None
    found = find(store, "fine")
    assert found["label"] == judged.run.id
    assert "nobody has labelled what it judged; label the answers of numbers/mine first" in found["text"]
    page = read(store, f"judge/{found['id']}")
    assert page["label"] == judged.run.id
    assert "nobody has labelled" in page["section"]
    label_numbers(judged.run, tmp_path, {"ann": [int(n >= 50) for n in NUMBERS]})
    Evaluator(store).evaluate(play_numbers(store, [1, 2, 3]), {"fine": Rounding()}, name="newer")
    found = find(store, "fine")
    assert (found["label"], found["n_uses"]) == (None, 2)
    assert "measure it with `evaluand judge card numbers/mine --scorer fine`" in found["text"]
    section = read(store, f"judge/{found['id']}")["section"]
    assert "measure it with <code>evaluand judge card numbers/mine --scorer fine</code>" in section


def test_cards_are_found_by_their_ids_even_if_their_judge_judged_nothing_here(tmp_path: Path) -> None:
    store = DirectoryStore(tmp_path)
    assert read(store, "judges") == {"judges": [], "cards": []}
    card = make_card(read_labelled_file([{"label": n % 2, "judgement": n % 2} for n in range(40)], "mine"), store)
    [listed] = read(store, "judges")["cards"]
    assert (listed["id"], listed["name"]) == (card.id, "mine")
    found = read(store, f"judge/{card.id}")
    assert (found["judge"], found["status"], found["uses"]) == ("mine", None, [])
    assert "agreement" in found["section"]


def test_a_damaged_card_does_not_hide_the_judges(tmp_path: Path) -> None:
    store = DirectoryStore(tmp_path / "store")
    judged = judge_numbers(store, NUMBERS)
    assert judged.run is not None
    label_numbers(judged.run, tmp_path, {"ann": [int(n >= 50) for n in NUMBERS]})
    card = make_card(read_labelled_evaluation(judged, "fine"), store)
    for table in (tmp_path / "store" / "cards" / card.id).glob("measures*.parquet"):
        table.write_bytes(table.read_bytes()[:-40] + b"\0" * 40)
    [judge] = read(DirectoryStore(tmp_path / "store"), "judges")["judges"]
    assert (judge["judge"], judge["status"]) == ("fine", None)
    assert "damaged" in judge["text"] or card.id in judge["text"]


def test_results_name_their_judges(store: DirectoryStore) -> None:
    fine = find(store, "fine")
    assert read(store, "results/numbers%2Fmine")["judges"] == [{"id": fine["id"], "name": "fine"}]
    [run, *_] = [ref.id for ref in store.refs() if ref.kind == "evaluations" and ref.name == "numbers/mine/human"]
    assert read(store, f"results/{run}")["judges"] == []


def test_what_is_not_there_is_said(store: DirectoryStore) -> None:
    for id in ("0" * 32, "..%2F..%2Fetc", store.ids("runs")[0]):
        with pytest.raises(NotFound):
            read(store, f"judge/{id}")


@pytest.fixture(scope="module")
def tab(chromium: Any) -> Iterator[Any]:
    with open_tab(chromium) as tab:
        yield tab


@pytest.mark.slow
def test_judges_are_read_in_a_browser(tab: Any, store: DirectoryStore, tmp_path: Path) -> None:
    faults: list[str] = []
    tab.on("dialog", lambda dialog: (faults.append(dialog.message), dialog.dismiss()))
    tab.on("pageerror", lambda error: faults.append(str(error)))
    tab.on("console", lambda message: faults.append(message.text))
    with serve_store(store.root, tmp_path / "errors", is_opened=False) as server:
        tab.goto(server.link)
        tab.get_by_role("link", name="judges", exact=True).click()
        assert tab.get_by_role("link", name=HOSTILE).first.inner_text() == HOSTILE
        assert tab.locator(".entries code").first.inner_text() == "evaluand view --label"
        tab.get_by_role("link", name="fine", exact=True).click()
        table = tab.get_by_role("region", name="Table of labels")
        table.wait_for()
        assert table.locator("tbody th").all_inner_texts() == ["0", "1"]
        miss = tab.get_by_role("article").first
        miss.get_by_role("link").click()
        tab.get_by_role("heading", name="Example ").first.wait_for()
        assert "0" in tab.get_by_role("group", name="Labels by people").first.inner_text()
        tab.set_viewport_size({"width": 390, "height": 800})
        tab.go_back()
        table.wait_for()
        assert tab.evaluate("document.documentElement.scrollWidth") <= 390
        tab.set_viewport_size({"width": 1280, "height": 720})
        tab.goto(f"{server.origin}/j/{find(store, HOSTILE)['id']}")
        tab.get_by_role("heading", name=HOSTILE).wait_for()
        for path in ("j", f"j/{find(store, 'fine')['id']}"):
            check_readable(tab, f"{server.origin}/{path}")
        assert tab.locator("main script, main img").count() == 0
    assert faults == []
