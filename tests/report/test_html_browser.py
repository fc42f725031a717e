"""The HTML report in a real browser: that it shows the examples, answers its reader, and runs nothing of theirs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.browser import open_tab, watch

from evaluand.aggregation.aggregator import Aggregator, Measure
from evaluand.data.dataset import Dataset
from evaluand.evaluation.evaluator import Evaluator
from evaluand.evaluation.scorer import Score
from evaluand.evaluation.scorers.spans import Spans
from evaluand.metrics.accuracy import Accuracy
from evaluand.metrics.column_statistics import Mean
from evaluand.report.facts.aggregation import metrics_facts
from evaluand.report.facts.report import Part, report_facts
from evaluand.report.html.examples import examples_of
from evaluand.report.html.report import write_report
from evaluand.run.runner import Runner
from evaluand.run.task import Candidates, FunctionTask
from evaluand.trace import span

sync_api = pytest.importorskip("playwright.sync_api", reason="needs playwright: make install")

HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)><!--"
TURNED = "safe\u202egnp.exe"


@pytest.fixture(scope="module")
def tab(chromium: Any) -> Iterator[Any]:
    with open_tab(chromium) as tab:
        yield tab


@pytest.fixture
def page(tab: Any) -> Iterator[Any]:
    with watch(tab):
        yield tab


def answer(text: str) -> str:
    with span("outer"), span("inner", kind="tool"):
        pass
    if text.endswith("7"):
        raise ValueError(f"no answer to {text}")
    return f"{text} {HOSTILE} {TURNED}"


def right(output: str, expected: str) -> Any:
    if output.startswith("question 3 "):
        return Score.abstained("nothing to grade")
    return Score(float(output.startswith(expected)), explanation=HOSTILE)


def report(
    folder: Path, rows: int, tasks: tuple[str, ...] = ("mine",), scorer: str = HOSTILE, limit: int | None = None
) -> str:
    """The address of a report: of every ten rows 7 fails, one in two is wrong; row 3 is not scored."""
    records = [
        {
            "input": f"question {i}",
            "expected": f"question {i}" if i % 2 else HOSTILE,
            "id": f"id {i}",
            HOSTILE: f"{i % 3}",
        }
        for i in range(rows)
    ]
    data = Dataset.from_rows(records, attributes=HOSTILE, input="input")
    parts = []
    for task in tasks:
        run = Runner().run(answer, data)
        parts.append(Part(task, run, Evaluator().evaluate(run, {scorer: right})))
    evaluations = [part.evaluation for part in parts if part.evaluation]
    bounded = Mean(missing="wrong", range=(-123456789.25, 123456789.25), direction="higher", bootstrap=1000)
    measures = [Measure(scorer, Accuracy(), (HOSTILE,)), *[Measure(scorer, bounded)] * (scorer != HOSTILE)]
    aggregation = Aggregator(parts[0].run.store).aggregate(evaluations[:1], measures, labels=tasks[:1])
    facts = report_facts(HOSTILE, parts, metrics_facts(aggregation))
    path = folder / "report.html"
    with path.open("wb") as file:
        write_report(facts, examples_of(parts, facts["scores"], limit), file)
    return path.as_uri()


@pytest.fixture(scope="module")
def long_report(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The address of a report of several pieces on two systems."""
    return report(tmp_path_factory.mktemp("long"), 2500, ("a/b", "mine"))


def opened(page: Any, address: str) -> None:
    page.goto(address)
    page.wait_for_selector("html[data-ready]", timeout=60_000)


def open_row(page: Any, place: int = 0) -> None:
    page.locator(".lines .line").nth(place).click()
    page.wait_for_selector(".panel h4")


def test_hostile_text_is_shown_as_text_and_nothing_of_it_runs(page: Any, tmp_path: Path) -> None:
    opened(page, report(tmp_path, 20, (HOSTILE, TURNED)))
    assert page.locator("h1").inner_text() == HOSTILE
    open_row(page, 5)
    for _ in range(3):
        page.get_by_role("button", name="Next").click()
        page.wait_for_selector(".panel h4")
        assert page.locator("[data-part] img, [data-part] script, [data-part] iframe").count() == 0
    assert HOSTILE in page.locator(".text-block").filter(has_text="onerror").first.inner_text()
    assert page.locator(".invisible", has_text="U+202E").count() > 0
    assert "\u202e" not in page.locator("body").inner_text()


def test_failures_come_first_then_what_is_not_scored_then_what_is_wrong(page: Any, tmp_path: Path) -> None:
    opened(page, report(tmp_path, 40))
    found = "lines => lines.map((line) => line.querySelector('.pill').lastChild.textContent)"
    assert page.locator(".lines .line").evaluate_all(found)[:12] == ["failed"] * 4 + ["abstained"] + ["wrong"] * 7


def test_a_row_has_the_scores_of_few_scorers_and_names_those_it_has_no_room_for(page: Any, tmp_path: Path) -> None:
    def grade(number: int) -> Any:
        return lambda output: Score(float(len(output) % 10 > number), explanation=f"rule {number}")

    data = Dataset.from_rows([{"input": "x" * i} for i in range(1, 7)])
    run = Runner().run(FunctionTask(str, version="1"), data)
    graded = Evaluator().evaluate(run, {f"{'much longer ' * 4}rule {number}": grade(number) for number in range(6)})
    parts = [Part("mine", run, graded)]
    facts = report_facts("many", parts, [])
    with (tmp_path / "report.html").open("wb") as file:
        write_report(facts, examples_of(parts, facts["scores"]), file)
    opened(page, (tmp_path / "report.html").as_uri())
    row = page.locator(".lines .line").nth(0)
    assert [text[-1] for text in row.locator(".pill [aria-hidden]").all_inner_texts()] == ["✓", "✗", "✗"]
    assert "+3" in row.locator(".pill").last.inner_text()
    assert row.locator(".pill").last.get_attribute("title").count("✗") == 3
    ends = "pills => pills.map((pill) => pill.getBoundingClientRect().bottom)"
    assert max(row.locator(".pill").evaluate_all(ends)) <= row.evaluate("row => row.getBoundingClientRect().bottom")


def test_each_example_has_the_answers_of_all_tasks_side_by_side(page: Any, tmp_path: Path) -> None:
    opened(page, report(tmp_path, 20, ("mine", "theirs")))
    assert page.locator(".titles [role=columnheader]").all_inner_texts() == ["#", "Input", "Expected", "mine", "theirs"]
    assert page.locator(".row-count").inner_text() == "20 of 20 rows"
    open_row(page)
    assert page.locator(".side h3").all_inner_texts() == ["mine", "theirs"]


def test_of_too_many_rows_the_worst_of_each_task_are_in_the_report(page: Any, tmp_path: Path) -> None:
    opened(page, report(tmp_path, 40, ("mine", "theirs"), limit=5))
    assert page.locator(".row-count").inner_text() == "5 of 5 rows; the 5 worst for any task of 40"
    assert page.get_by_text("not in this report").count() == 0
    page.goto(page.url.split("#")[0] + "#example=mine/39")
    fault = page.locator(".examples .failed[role=alert]")
    sync_api.expect(fault).to_have_text("There is no example 39 of mine here. This report has only some of the rows.")
    page.goto(page.url.split("#")[0] + "#example=mine")
    sync_api.expect(fault).to_contain_text("The link names no example of mine.")


@pytest.mark.slow
def test_links_to_sections_keep_what_is_chosen_in_the_address(page: Any, tmp_path: Path) -> None:
    opened(page, report(tmp_path, 20))
    page.get_by_role("button", name="Failed", exact=True).click()
    page.get_by_role("link", name="Summary").click()
    assert page.url.endswith("#/?p=failed")
    sync_api.expect(page.locator("#summary")).to_be_in_viewport()
    page.reload()
    sync_api.expect(page.locator(".row-count")).to_have_text("2 of 20 rows")
    page.goto(page.url.split("#")[0])
    page.get_by_role("link", name="Summary").click()
    assert page.url.endswith("#summary")


def test_the_filter_that_is_suggested_can_be_used(page: Any, tmp_path: Path) -> None:
    opened(page, report(tmp_path, 20))
    field = page.get_by_label("Filter", exact=True)
    names = page.locator("#grid-names option").evaluate_all("all => all.map((option) => option.value)")
    for name in names:
        field.fill(name)
        page.keyboard.press("Enter")
        sync_api.expect(page.locator(".chip[aria-label='Remove the filter']")).to_be_visible()
        assert page.locator(".examples .failed[role=alert]").count() == 0, name


@pytest.mark.parametrize("rows", [2500, pytest.param(100_000, marks=pytest.mark.slow)])
def test_search_finds_what_is_in_the_last_piece(page: Any, tmp_path: Path, rows: int) -> None:
    opened(page, report(tmp_path, rows))
    count = page.locator(".row-count")
    assert count.inner_text() == f"{rows:,} of {rows:,} rows"
    search(page, f"QUESTION {rows - 1}")
    searched = "; only texts that are in the report were searched"
    sync_api.expect(count).to_have_text(f"1 of {rows:,} rows{searched}", timeout=120_000)
    assert page.locator(".lines .which").all_inner_texts() == [str(rows - 1)]
    assert page.locator(".lines mark").first.inner_text() == f"question {rows - 1}"
    search(page, "no answer to")
    sync_api.expect(count).to_have_text(f"{rows // 10:,} of {rows:,} rows{searched}", timeout=120_000)


def search(page: Any, text: str) -> None:
    page.get_by_label("Search the text").fill(text)
    page.keyboard.press("Enter")


def test_a_link_leads_to_its_example_wherever_it_stands(page: Any, long_report: str) -> None:
    opened(page, f"{long_report}#example=mine/1999")
    sync_api.expect(page.locator(".panel h3").first).to_have_text("Example 1999")
    sync_api.expect(page.locator(".table")).to_be_in_viewport()
    assert page.url.endswith("#/?x=1999")
    page.goto(f"{long_report}#example=mine/9999")
    sync_api.expect(page.locator(".examples .failed[role=alert]")).to_have_text(
        "There is no example 9999 of mine here."
    )
    page.locator("a[href^='#example=a%2Fb/']").first.click()
    sync_api.expect(page.locator(".panel h3").first).to_have_text("Example 7")


def test_the_keyboard_is_enough(page: Any, tmp_path: Path) -> None:
    opened(page, report(tmp_path, 40))
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.get_by_label("Search the text").focus()
    while page.evaluate("document.activeElement.className") != "table":
        page.keyboard.press("Tab")
    outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    for key in ("j", "Enter"):
        page.keyboard.press(key)
    sync_api.expect(page.locator(".panel h3").first).to_have_text("Example 17")
    assert outline == "solid"
    head = page.locator("th button", has_text="value")
    head.focus()
    page.keyboard.press("Enter")
    assert page.locator("th[aria-sort=ascending]").count() == 1
    values = [float(text) for text in page.locator("table.sortable td.value").all_inner_texts()]
    assert values == sorted(values)


def test_light_and_dark_follow_the_system_and_the_button(page: Any, tmp_path: Path) -> None:
    page.emulate_media(color_scheme="dark")
    opened(page, report(tmp_path, 10))
    ground = "getComputedStyle(document.body).backgroundColor"
    assert page.evaluate(ground) == "rgb(21, 24, 27)"
    button = page.get_by_role("button", name="Dark")
    assert button.get_attribute("aria-pressed") == "true"
    button.click()
    assert page.evaluate(ground) == "rgb(255, 255, 255)"
    assert button.get_attribute("aria-pressed") == "false"


def test_text_stands_out_from_its_ground(page: Any, tmp_path: Path) -> None:
    opened(page, report(tmp_path, 20))
    open_row(page)
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        assert page.evaluate(CONTRASTS) == []


def test_a_narrow_page_does_not_scroll_sideways(page: Any, tmp_path: Path) -> None:
    page.set_viewport_size({"width": 400, "height": 800})
    opened(page, report(tmp_path, 20))
    open_row(page)
    assert page.evaluate("document.documentElement.scrollWidth") == 400


def test_the_values_fit_a_page_of_1200_however_long_a_signature_is(page: Any, tmp_path: Path) -> None:
    page.set_viewport_size({"width": 1200, "height": 900})
    page.goto(report(tmp_path, 10, scorer="of_all_that_was_said_the_last"))
    table = "document.querySelector('#summary table')"
    assert page.evaluate(f"{table}.scrollWidth <= {table}.parentElement.clientWidth")


# Spans

SENTENCE = f"🙂 Ada met Bob {HOSTILE}"
ADA, BOB, BOB_AS_PLACE = (2, 5, "PER"), (10, 13, "PER"), (10, 13, f"{HOSTILE}{TURNED}")


def tagged_report(folder: Path, answer: Any, expected: Any, input: Any = SENTENCE, scorer: Any = None) -> str:
    data = Dataset.from_rows([{"input": input, "expected": expected}])
    run = Runner().run(FunctionTask(lambda text: answer, version="1", items=True), data)
    part = Part("tagger", run, Evaluator().evaluate(run, {"spans": scorer or Spans()}))
    facts = report_facts("spans", [part], [])
    path = folder / "report.html"
    with path.open("wb") as file:
        write_report(facts, examples_of([part], facts["scores"]), file)
    return path.as_uri()


def as_spans(*spans: tuple[int, int, str], start: str = "start") -> list[dict[str, Any]]:
    return [{start: a, "end": b, "tag": tag} for a, b, tag in spans]


def marked(page: Any) -> list[list[list[str]]]:
    """For each response the tags in its text as a listener hears them, then what is underlined and how."""
    return [
        [
            box.locator("b").evaluate_all("all => all.map((b) => b.querySelector('.unseen').textContent.trim())"),
            box.locator("b bdi").all_text_contents(),
            box.locator(".marked").evaluate_all("all => all.map((m) => `${m.classList[1]}: ${m.textContent}`)"),
        ]
        for box in page.locator(".tagged").all()
    ]


def test_spans_are_marked_in_the_text_as_those_in_both_and_in_one(page: Any, tmp_path: Path) -> None:
    opened(page, tagged_report(tmp_path, as_spans(ADA, BOB_AS_PLACE), as_spans(ADA, BOB)))
    open_row(page)
    [[kinds, tags, lines]] = marked(page)
    assert kinds == ["in both", "only expected", "only answered"]
    assert (tags[0], tags[1], tags[2].startswith(HOSTILE)) == ("PER", "PER", True)
    assert lines[0] == "both: Ada"
    assert {line.split(":")[0] for line in lines[1:]} == {"expected", "answered"}
    assert {line.split(": ")[1] for line in lines[1:]} == {"Bob"}
    assert page.locator(".tagged img, .tagged script").count() == 0
    assert "\u202e" not in page.locator("body").inner_text()
    assert (
        page.locator("h4", has_text="Spans").locator("+ p").inner_text()
        == "✓ 1 in both · − 1 only expected · + 1 only answered"
    )


def test_lines_of_spans_in_both_and_in_one_differ_in_more_than_colour(page: Any, tmp_path: Path) -> None:
    opened(page, tagged_report(tmp_path, as_spans(ADA, (6, 9, "X")), as_spans(ADA, BOB)))
    open_row(page)
    styles = "all => all.map((m) => getComputedStyle(m).textDecorationStyle)"
    assert page.locator(".marked").evaluate_all(styles) == ["solid", "wavy", "dashed"]
    assert page.locator(".tagged b [aria-hidden]").all_inner_texts() == ["✓", "+", "−"]


def test_spans_that_cross_are_both_marked(page: Any, tmp_path: Path) -> None:
    opened(page, tagged_report(tmp_path, as_spans((2, 9, "X")), as_spans((6, 13, "Y"))))
    open_row(page)
    [[_, tags, lines]] = marked(page)
    assert tags == ["X", "Y"]
    assert [line for line in lines if line.startswith("answered")] == ["answered: Ada ", "answered: met"]
    assert [line for line in lines if line.startswith("expected")] == ["expected: met", "expected:  Bob"]


def test_each_of_several_responses_has_its_marks_and_an_empty_one_misses_all(page: Any, tmp_path: Path) -> None:
    opened(page, tagged_report(tmp_path, Candidates([as_spans(ADA), []]), as_spans(ADA)))
    open_row(page)
    assert [kinds for kinds, _, _ in marked(page)] == [["in both"], ["only expected"]]
    assert page.locator("h4", has_text="Spans of response 2").count() == 1


def test_names_of_fields_are_those_the_scorer_was_reported(page: Any, tmp_path: Path) -> None:
    given, scorer = as_spans(ADA, start="from"), Spans(start_key="from", text_key=None)
    opened(page, tagged_report(tmp_path, given, given, scorer=scorer))
    open_row(page)
    assert [kinds for kinds, _, _ in marked(page)] == [["in both"]]


@pytest.mark.parametrize(
    ("answer", "expected", "input"),
    [
        ([], [], SENTENCE),
        (["Ada"], ["Ada"], SENTENCE),
        (as_spans((0, 999, "A")), as_spans(ADA), SENTENCE),
        (as_spans(ADA), as_spans(ADA), 7),
    ],
)
def test_what_are_no_spans_of_a_text_is_shown_as_it_is(
    page: Any, tmp_path: Path, answer: Any, expected: Any, input: Any
) -> None:
    opened(page, tagged_report(tmp_path, answer, expected, input, scorer=lambda output: True))
    open_row(page)
    assert page.locator(".tagged").count() == 0
    assert page.locator(".text-block").count() >= 3


def test_spans_beyond_the_part_of_a_long_text_that_is_shown_are_counted(page: Any, tmp_path: Path) -> None:
    spans = as_spans((0, 2, "A"), (4990, 4995, "A"))
    opened(page, tagged_report(tmp_path, spans, spans, "x" * 5000))
    open_row(page)
    assert page.locator("h4", has_text="Spans").locator("+ p").inner_text().endswith("+ 0 only answered, and 1 more")


def test_marked_text_stands_out_and_fits_a_narrow_page(page: Any, tmp_path: Path) -> None:
    page.set_viewport_size({"width": 400, "height": 800})
    opened(page, tagged_report(tmp_path, as_spans(ADA, (6, 9, "X" * 60)), as_spans(ADA, BOB)))
    open_row(page)
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        assert page.evaluate(CONTRASTS) == []
        assert page.evaluate("document.documentElement.scrollWidth") == 400


CONTRASTS = """() => {
  const numbers = (color) => (color.match(/[\\d.]+/g) ?? []).map(Number);
  const light = (color) => numbers(color).slice(0, 3).map((v) => v / 255)
    .map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4))
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const ground = (e) => {
    for (; e; e = e.parentElement) {
      const color = numbers(getComputedStyle(e).backgroundColor);
      if (color.length === 3 || color[3] > 0) return getComputedStyle(e).backgroundColor;
    }
    return "rgb(255,255,255)";
  };
  const weak = [];
  for (const e of document.querySelectorAll("body *")) {
    const shown = [...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim());
    if (!shown || !e.checkVisibility() || e.closest("script, style, button:disabled, .quiet, option")) continue;
    const style = getComputedStyle(e);
    const [a, b] = [light(e.closest("svg") ? style.fill : style.color), light(ground(e))].sort((x, y) => y - x);
    if ((a + 0.05) / (b + 0.05) < 4.5) weak.push([e.tagName, e.className, e.textContent.slice(0, 30)]);
  }
  return weak;
}"""
