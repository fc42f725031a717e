"""Matches and ratings on the page: pairs in order, read by little more than what is shown, and gone through by keys."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from support.accessible import check_readable
from support.matches import play_runs, table_judge
from support.view_page import open_page
from support.view_server import HOSTILE

from evaluand import DirectoryStore, Evaluator, Matcher, rate
from evaluand.core.errors import NotFound
from evaluand.evaluation.scorer import scorer
from evaluand.matches.battles import read_battles
from evaluand.report.html import matches as module
from evaluand.report.page.resources.base import Source, find_resources, list_paths, read_resource

TURNED = "safe\u202egnp.exe"
OUTCOMES = {
    ("a", "b"): [1.0, (1.0, 0.0), 0.5, None, *[1.0] * 26],
    ("a", HOSTILE): [0.0] * 30,
    ("b", HOSTILE): [(0.0, 1.0)] * 2 + [0.75] * 28,
}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> DirectoryStore:
    """Three systems of an experiment without scorers, on thirty examples, and matches that people have judged."""
    store = DirectoryStore(tmp_path_factory.mktemp("store") / "store")
    runs = play_runs(store, ["a", "b", HOSTILE], 30, {"b": [7]})
    found = Matcher().match(runs, table_judge(OUTCOMES), labels=["a", "b", HOSTILE], name="trial/matches")
    rate(found, name="trial/ratings")
    rows = [
        {
            "id": f"{i} {TURNED}",
            "model_a": one,
            "model_b": other,
            "winner": "model_a" if i == 4 else "model_b",
            "judge": f"ann {HOSTILE}",
            "explanation": f"because {HOSTILE} {i}",
            "prompt": f"question {i}",
            "response_a": f"{HOSTILE} {i} of {one}",
            "response_b": f"{TURNED} {i} of {other}",
        }
        for i in range(5)
        for one, other in (("x", "y"), ("y", "x"))
    ]
    read_battles(rows, store, columns={"example": "id"}, in_order=True, name="people")
    return store


@scorer(version="1")
def long(output: str) -> float:
    return float(len(output))


def read(store: DirectoryStore, path: str, piece: int = 50, **query: str) -> Any:
    find_resources()
    return json.loads(read_resource(Source(store, piece), path, query))


def sets_of(store: DirectoryStore, name: str) -> str:
    return str(read(store, f"matches/{quote(name, safe='')}")["sets"])


def head_of(store: DirectoryStore, name: str) -> dict[str, Any]:
    find_resources()
    content = read_resource(Source(store), f"pair-columns/{sets_of(store, name)}", {})
    return json.loads(content[8 : 8 + int(content[:8])])  # type: ignore[no-any-return]


def test_an_experiment_its_matches_and_its_ratings_show_the_same_pairs(store: DirectoryStore) -> None:
    found = [read(store, f"matches/{quote(name, safe='')}") for name in ("trial", "trial/matches", "trial/ratings")]
    assert len({each["sets"] for each in found}) == 1
    assert [(each["title"], each["kind"]) for each in found] == [
        (name, "Ratings") for name in ("trial", "trial/matches", "trial/ratings")
    ]
    for each in found:
        assert "Who wins against whom" in each["ratings"]
        assert "judged by table" in each["matches"]
        assert "<script" not in each["ratings"] + each["matches"]


def test_matches_without_ratings_say_how_to_rate(store: DirectoryStore) -> None:
    found = read(store, "matches/people")
    assert (found["kind"], "evaluand rate" in found["ratings"]) == ("Matches", True)


def test_contradictory_pairs_come_first_and_pieces_have_all_pairs_once(store: DirectoryStore) -> None:
    sets = sets_of(store, "trial")
    pieces = [read(store, f"pairs/{sets}/{n}", 40) for n in range(3)]
    pairs = [pair for piece in pieces for pair in piece]
    assert [len(piece) for piece in pieces] == [40, 40, 10]
    assert [pair["outcome"] for pair in pairs] == sorted(pair["outcome"] for pair in pairs)
    assert {(pair["index"], pair["a"], pair["b"]) for pair in pairs[:3]} == {("1", 0, 1), ("0", 1, 2), ("1", 1, 2)}
    assert len({(pair["index"], pair["a"], pair["b"]) for pair in pairs}) == 90
    last = next(pair for pair in pairs if (pair["index"], pair["a"], pair["b"]) == ("9", 0, 2))
    assert last["responses"] == ["a 9", f"{HOSTILE} 9"]
    assert [said[:3] for said in last["said"]] == [["ab", "scored", 0.0], ["ba", "scored", 0.0]]
    failed = next(pair for pair in pairs if (pair["index"], pair["a"]) == ("7", 1))
    assert failed["responses"][0] is None


def test_pairs_at_some_places_come_in_their_order(store: DirectoryStore) -> None:
    sets = sets_of(store, "trial")
    whole = read(store, f"pairs/{sets}/0", 90)
    assert read(store, f"pairs-at/{sets}", places="88,0,41") == [whole[88], whole[0], whole[41]]
    with pytest.raises(NotFound, match="there are 90 pairs"):
        read(store, f"pairs-at/{sets}", places="90")


def test_matches_from_a_file_have_the_texts_of_each_pair(store: DirectoryStore) -> None:
    sets = sets_of(store, "people")
    for pair in read(store, f"pairs-at/{sets}", places="4,2"):
        number = pair["input"].split()[1]
        assert [text.split(" ")[-3] for text in pair["responses"]] == [number] * 2
        assert {text[-1] for text in pair["responses"]} == {"x", "y"}
        assert pair["said"][0][5] == f"ann {HOSTILE}"
        assert pair["said"][0][7] == f"because {HOSTILE} {number}"
    assert head_of(store, "people")["sets"][0]["dataset"] is None


def test_only_the_rows_of_what_is_shown_are_read(store: DirectoryStore, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []
    reading = module.read_cases

    def count(matches: Any, chosen: Any, limit: int) -> Any:
        seen.extend(batch.num_rows for run in matches.runs for batch in run.batches(["status"]))
        return reading(matches, chosen, limit)

    monkeypatch.setattr("evaluand.report.page.resources.matches.read_cases", count)
    read(store, f"pairs-at/{sets_of(store, 'trial')}", places="3")
    assert seen == [1, 1, 1]


def test_an_experiment_without_scorers_is_listed_and_has_no_results(store: DirectoryStore) -> None:
    assert [(entry["name"], entry["tasks"]) for entry in read(store, "index")["experiments"]] == [("trial", {})]
    assert "results/trial" not in list_paths(Source(store))


def test_results_lead_to_the_matches_of_their_runs(tmp_path: Path) -> None:
    store = DirectoryStore(tmp_path)
    runs = play_runs(store, ["a", "b"], 2)
    found = Matcher().match(runs, table_judge({("a", "b"): [1.0, 0.0]}), labels=["a", "b"])
    for run in runs:
        Evaluator(store).evaluate(run, {"long": long}, name=f"trial/{run.name}")
    assert read(store, "answers/trial%2Frun")["links"][0]["path"] == ["m", "trial/run"]
    assert sets_of(store, "trial/run") == found.id


def test_what_is_not_there_is_refused(store: DirectoryStore) -> None:
    sets = sets_of(store, "trial")
    for path in (
        "matches/none",
        "matches/..%2F..%2Fetc",
        f"pairs/{sets}/9",
        f"pairs/{sets}/-1",
        f"pairs/{sets[:-1]}/0",
        "pairs/..%2F..%2Fetc/0",
        "pair-columns/+",
        f"pair-columns/{store.ids('runs')[0]}",
    ):
        with pytest.raises(NotFound):
            read(store, path)


def test_runs_that_nobody_compared_have_no_pairs(tmp_path: Path) -> None:
    store = DirectoryStore(tmp_path)
    play_runs(store, ["alone"], 2)
    found = read(store, "matches/run%2Falone")
    assert (found["sets"], found["ratings"], found["matches"]) == ("", "", "")


def test_files_of_the_page_have_each_piece_once(store: DirectoryStore) -> None:
    paths = [*dict.fromkeys(path for path in list_paths(Source(store, 40)) if path.startswith("pairs/"))]
    assert sorted(path.rpartition("/")[2] for path in paths) == ["0", "0", "1", "2"]


@pytest.fixture(scope="module")
def page(chromium: Any, store: DirectoryStore, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with open_page(chromium, Path(store.root), tmp_path_factory.mktemp("log") / "errors") as tab:
        yield tab


def show(page: Any, name: str) -> None:
    page.set_viewport_size({"width": 1280, "height": 900})
    page.goto(f"{page.origin}/m/{quote(name, safe='')}")
    page.wait_for_selector(".pair-line .asked-of:not(:text('…'))")


def test_the_list_leads_to_an_experiment_that_has_only_matches(page: Any) -> None:
    page.goto(f"{page.origin}/?k=all")
    page.get_by_role("link", name="trial", exact=True).click()
    page.wait_for_selector("#ratings-title")


def test_keys_go_from_pair_to_pair_and_close_it(page: Any) -> None:
    show(page, "trial")
    assert page.locator(".pair-line .pill").all_inner_texts()[:4] == ["contradictory"] * 3 + ["decided"]
    assert page.locator(".pair-lines li").count() == 20
    page.locator(".pair-line").first.press("Enter")
    first = page.locator(".pair-panel h3").inner_text()
    assert page.locator(".pair-panel .sides > div").count() == 2
    page.keyboard.press("j")
    page.wait_for_function("(first) => document.querySelector('.pair-panel h3')?.innerText !== first", arg=first)
    assert page.locator(".pair-line[aria-current]").count() == 1
    assert page.locator(".pair-panel .steps [role=status]").inner_text() == "2 of 90 pairs"
    page.keyboard.press("ArrowUp")
    page.wait_for_function("(first) => document.querySelector('.pair-panel h3')?.innerText === first", arg=first)
    page.keyboard.press("Escape")
    assert page.locator(".pair-panel").count() == 0


@pytest.mark.slow
def test_the_next_pair_of_a_page_is_on_the_following_one(page: Any) -> None:
    show(page, "trial")
    page.locator(".pair-line").nth(19).click()
    page.get_by_role("complementary").get_by_role("button", name="Next").click()
    page.get_by_text("Page 2 of 5").wait_for()
    assert page.locator(".pair-panel .steps [role=status]").inner_text() == "21 of 90 pairs"


@pytest.mark.slow
def test_pairs_are_filtered_and_the_address_keeps_it(page: Any) -> None:
    show(page, "trial")
    page.get_by_role("button", name="contradictory (3)").click()
    page.get_by_text("3 of 90 pairs of responses").wait_for()
    page.get_by_label("Against").select_option(label="a")
    page.get_by_text("1 of 90 pairs of responses").wait_for()
    page.reload()
    page.get_by_text("1 of 90 pairs of responses").wait_for()
    page.get_by_role("button", name="all pairs").click()
    page.get_by_text("90 of 90 pairs of responses").wait_for()


def test_a_pair_shows_what_differs_and_who_said_what_as_text(page: Any, store: DirectoryStore) -> None:
    show(page, "people")
    page.locator(".pair-line").first.click()
    panel = page.locator(".pair-panel")
    panel.locator(".sides").wait_for()
    assert HOSTILE in panel.locator(".sides").inner_text()
    assert panel.locator(".invisible", has_text="U+202E").count() > 0
    panel.get_by_text("What differs, word by word").click()
    panel.locator(".diff del").first.wait_for()
    assert panel.get_by_role("region", name="Judgements").locator("tbody tr").count() == 2
    assert f"because {HOSTILE}" in panel.inner_text()
    show(page, "trial")
    page.locator(".pair-line").first.click()
    page.get_by_role("link", name="This example in all runs").click()
    page.wait_for_selector(".cards")


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.slow
def test_nothing_is_wider_than_the_window(page: Any, width: int) -> None:
    show(page, "trial")
    page.locator(".pair-line").first.click()
    page.set_viewport_size({"width": width, "height": 900})
    assert page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.slow
def test_readers_of_all_kinds_can_use_matches(page: Any) -> None:
    check_readable(page, f"{page.origin}/m/trial?x=3")
