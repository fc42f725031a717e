"""The matches of a report in a real browser: listed, filtered, shown side by side, and harmless."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.browser import open_tab, watch

from evaluand import Dataset, Matcher, Runner, span
from evaluand.cli.report import write
from evaluand.matches.battles import read_battles
from evaluand.matches.ratings.rating import rate
from evaluand.store.directory import DirectoryStore

sync_api = pytest.importorskip("playwright.sync_api", reason="needs playwright: make install")

HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)><!--"
TURNED = "safe\u202egnp.exe"
LONG = "w" * 300


@pytest.fixture(scope="module")
def tab(chromium: Any) -> Iterator[Any]:
    with open_tab(chromium) as tab:
        yield tab


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A report of three systems on ten examples: of each ten pairs 0 is contradictory, 1 and 2 are ties."""
    folder = tmp_path_factory.mktemp("report")
    store = DirectoryStore(folder / "store")
    rows = [
        {
            "id": f"{i} {TURNED}",
            "model_a": first,
            "model_b": second,
            "winner": "model_a" if i == 0 else "tie" if i < 3 else "model_a" if first == a else "model_b",
            "judge": "ann",
            "explanation": f"{HOSTILE} {TURNED}",
            "prompt": HOSTILE,
            "response_a": f"{HOSTILE} by the first",
            "response_b": "ש" * 100_000,
        }
        for i in range(10)
        for a, b in ((HOSTILE, TURNED), (HOSTILE, LONG), (TURNED, LONG))
        for first, second in ((a, b), (b, a))
    ]
    rate(read_battles(rows, store, columns={"example": "id"}, in_order=True, name="judged"), name="judged")
    path, *_ = write(store, "judged", str(folder / "report.html"))
    return Path(path).as_uri()


@pytest.fixture
def page(tab: Any, address: str) -> Iterator[Any]:
    with watch(tab):
        tab.goto(address)
        tab.wait_for_selector(".pair-line")
        yield tab


def test_contradictory_matches_come_first_then_the_decided_ones(page: Any) -> None:
    outcomes = page.locator(".pair-line .pill")
    sync_api.expect(outcomes).to_have_text(["contradictory"] * 3 + ["decided"] * 17)
    page.get_by_role("button", name="Next").click()
    sync_api.expect(outcomes).to_have_text(["decided"] * 4 + ["tie"] * 6)
    sync_api.expect(page.locator(".row-count")).to_contain_text("30 of 30 pairs of responses")


def test_a_match_shows_both_responses_and_each_judgement_as_text(page: Any) -> None:
    page.locator(".pair-line").first.click()
    detail = page.locator(".pair-panel .detail")
    sync_api.expect(detail.locator(".sides > div")).to_have_count(2)
    assert HOSTILE in detail.locator(".sides").inner_text()
    assert "96,000 characters more" in detail.locator(".sides").inner_text()
    lines = detail.locator("tbody tr")
    assert lines.count() == 2
    assert "ann" in lines.first.inner_text()
    assert HOSTILE in lines.first.inner_text()
    assert page.locator("#matches img, #matches script, #ratings img").count() == 0
    assert detail.locator(".invisible", has_text="U+202E").count() > 0
    assert "\u202e" not in page.locator("body").inner_text()


def test_nothing_is_wider_than_the_page(page: Any) -> None:
    page.emulate_media(color_scheme="dark")
    page.locator(".pair-line").first.click()
    page.locator("#ratings summary").last.click()
    for width in (1280, 380):
        page.set_viewport_size({"width": width, "height": 900})
        assert page.evaluate("document.documentElement.scrollWidth") == width


def test_the_steps_of_a_judge_are_folded_below_its_judgements(tab: Any, tmp_path: Path) -> None:
    def shorter(first: str, second: str) -> str:
        with span(HOSTILE, first=first):
            return "first" if len(first) < len(second) else "second"

    store = DirectoryStore(tmp_path / "store")
    data = Dataset.from_rows([{"input": "a"}])
    runs = [Runner(store).run(task, data) for task in (str.strip, lambda text: text * 2)]
    Matcher().match(runs, shorter, labels=["once", "twice"], name="judged")
    path, *_ = write(store, "judged", str(tmp_path / "report.html"))
    with watch(tab):
        tab.goto(Path(path).as_uri())
        tab.locator(".pair-line").first.press("Enter")
        summaries = tab.locator("details.judge-steps > summary")
        sync_api.expect(summaries).to_have_text(
            [f"Steps of the judge with {name} shown first" for name in ("once", "twice")]
        )
        summaries.first.press("Enter")
        sync_api.expect(tab.locator("details.judge-steps .spans").first).to_contain_text(HOSTILE)
        assert tab.locator(".sides .cut").all_inner_texts() == ["1 character · 1 word", "2 characters · 1 word"]
        assert tab.locator(".pair-panel th", has_text="why").count() == 0
