"""Conversations with language models, and what prompts differ in, as `show`, `compare` and reports show them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from support.browser import open_tab, watch

from evaluand import Dataset, DirectoryStore, Evaluator, Runner
from evaluand.cli import main
from evaluand.comparison.prompts import prompt_changes
from evaluand.report.facts.report import Part, report_facts
from evaluand.report.html.comparisons import prompts_section
from evaluand.report.html.examples import examples_of
from evaluand.report.html.report import write_report
from evaluand.run.runner import Run
from evaluand.store.store import MemoryStore, Store
from evaluand.trace import span

HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)>"
CALL = {"id": "c", "type": "function", "function": {"name": HOSTILE, "arguments": json.dumps({"of": HOSTILE})}}
LONG = "x" * 9000


def answer(text: str) -> str:
    asked = [{"role": "system", "content": LONG}, {"role": "user", "content": f"{text} {HOSTILE}"}]
    called = [*asked, {"role": "assistant", "content": "", "tool_calls": [CALL]}]
    called.append({"role": "tool", "tool_call_id": "c", "content": f"found {HOSTILE}"})
    with span("chat", kind="llm", input=called) as request:
        request.output = "word" * 200
    return "four"


def made(store: Store, name: str | None = None) -> Part:
    data = Dataset.from_rows([{"input": "How many?", "expected": "5"}])
    run = Runner(store).run(answer, data, name=name)
    return Part("mine", run, Evaluator(store).evaluate(run, {"right": "includes"}, name=name))


def call(folder: Path, *arguments: str) -> Any:
    result = CliRunner(env={"EVALUAND_STORE": str(folder), "COLUMNS": "100"}).invoke(main, [*arguments])
    assert result.exit_code == 0 or result.stderr, result.exception
    return result


def test_show_prints_who_said_what(tmp_path: Path) -> None:
    made(DirectoryStore(tmp_path), "e/mine")
    shown = call(tmp_path, "show", "e/mine", "--messages").stdout
    names = [
        line.split("  ")[2].strip() for line in shown.splitlines() if line.startswith("    ") and line[4:5].strip()
    ]
    assert [name for name in names if name in ("system", "user", "assistant calls", "assistant")] == [
        "system", "user", "assistant calls", "assistant",
    ]  # fmt: skip
    wrong = json.loads(call(tmp_path, "show", "e/mine", "--below", "1", "--messages", "--json").stdout)
    [[chat]] = [row["chats"] for row in wrong["rows"]["right"]]
    assert [turn["role"] for turn in chat] == ["system", "user", "assistant", "assistant"]
    assert chat[2]["tools"] == [
        {"name": HOSTILE, "arguments": json.dumps({"of": HOSTILE}), "result": f"found {HOSTILE}"}
    ]
    [row] = json.loads(call(tmp_path, "show", "e/mine", "--json").stdout)["rows"]
    assert "chats" not in row


def test_show_says_where_there_are_no_messages(tmp_path: Path) -> None:
    store = DirectoryStore(tmp_path)
    Runner(store).run(str.upper, Dataset.from_rows([{"input": "a"}]), name="plain")
    assert "no messages to a language model" in call(tmp_path, "show", "plain", "--messages").stdout
    [dataset] = store.ids("datasets")
    refused = call(tmp_path, "show", dataset, "--messages").stderr
    assert "--messages shows those of a finished run or evaluation" in refused


@pytest.fixture(scope="module")
def tab(chromium: Any) -> Iterator[Any]:
    with open_tab(chromium) as tab:
        yield tab


@pytest.mark.slow
def test_a_report_shows_bubbles_that_fit_a_narrow_screen(tab: Any, tmp_path: Path) -> None:
    part = made(MemoryStore())
    facts = report_facts("chats", [part], [])
    with (tmp_path / "report.html").open("wb") as file:
        write_report(facts, examples_of([part], facts["scores"]), file)
    with watch(tab) as page:
        page.set_viewport_size({"width": 380, "height": 800})
        page.goto((tmp_path / "report.html").as_uri())
        page.wait_for_selector("html[data-ready]", timeout=60_000)
        page.locator(".lines .line").click()
        page.wait_for_selector(".bubble")
        assert page.locator(".bubble .role").all_inner_texts() == ["system", "user", "assistant", "assistant"]
        assert f"How many? {HOSTILE}" in page.locator(".bubble.user").inner_text()
        assert "characters more; the whole: evaluand show" in page.locator(".bubble.other").inner_text()
        call = page.locator(".bubble details")
        assert not call.get_attribute("open")
        call.locator("summary").click()
        assert f"found {HOSTILE}" in call.inner_text()
        assert page.locator(".chat img, .chat script").count() == 0
        assert page.evaluate("document.documentElement.scrollWidth") <= 380
        page.get_by_label("Search the text").fill("found </script>")
        page.keyboard.press("Enter")
        page.locator(".lines .line").click()
        page.wait_for_selector(".bubble mark")


def task(model: str = "m", *messages: tuple[str, str], **more: Any) -> dict[str, Any]:
    said = [{"role": role, "content": content} for role, content in messages]
    return {"kind": "chat", "behaviour": 1, "chat": {"model": model, "behaviour": 1}, "messages": said, **more}


def test_tasks_that_ask_models_are_compared_with_the_first() -> None:
    one, other = task("m", ("user", "a\nb\nc\nd\ne\nf")), task("n", ("system", "S"), ("user", "a\nb\nc\nd\ne\nF"))
    assert prompt_changes([one, {}, one, {"kind": "function"}, other]) == [
        {
            "a": 0,
            "b": 4,
            "settings": [{"name": "model", "a": "m", "b": "n"}],
            "prompt": ["+system:", "+S", " user:", " a", "…", " d", " e", "-f", "+F"],
        }
    ]
    assert prompt_changes([{}, one]) == prompt_changes([{"kind": "function"}, one]) == prompt_changes([]) == []
    [change] = prompt_changes([task(examples=["1"]), task(tools=[{"name": "t"}])])
    assert [(each["name"], each["a"], each["b"]) for each in change["settings"]] == [
        ("examples", '["1"]', None),
        ("tools", None, '[{"name":"t"}]'),
    ]


def test_differences_are_escaped_in_reports() -> None:
    change = prompt_changes([task("m", ("user", "a")), task(HOSTILE, ("user", HOSTILE))])
    html = prompts_section([one | {"a": HOSTILE, "b": "b"} for one in change])
    assert "<script" not in html
    assert "<img" not in html
    assert "&lt;/script&gt;" in html
    assert '<del title="only in a">-a</del>' in html
    assert prompts_section([]) == ""


def test_runs_of_other_kinds_have_no_prompts(tmp_path: Path) -> None:
    store = DirectoryStore(tmp_path)
    made(store, "e/mine")
    data = Dataset.from_rows([{"input": "How many?", "expected": "5"}])
    run: Run = Runner(store).run(str.upper, data, name="e/upper")
    Evaluator(store).evaluate(run, {"right": "includes"}, name="e/upper")
    compared = json.loads(call(tmp_path, "compare", "e/mine", "e/upper", "--json").stdout)
    assert compared["prompts"] == []
