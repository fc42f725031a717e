"""Markdown shows what the terminal shows; texts from data stay texts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import example, given, strategies as st
from markdown_it import MarkdownIt
from rich.console import Group
from rich.table import Table
from rich.text import Text
from support.foreign_results import write_inspect

from evaluand.cli import main
from evaluand.report.markdown import escape, to_markdown

PARSER = MarkdownIt("commonmark").enable("table")
HOSTILE = [
    "a|b",
    "`x`",
    "<b>bold</b>",
    "[x](y.org)",
    "*a*",
    "_a_",
    "# head",
    "![i](x.png)",
    "\\|",
    "$1$",
    "&lt;",
]


def cells_of(text: str) -> list[str]:
    """The texts in the tables of a page, without marks."""
    tokens = PARSER.parse(text)
    shown = [token for token in tokens if token.type == "inline"]
    assert all(child.type in ("text", "softbreak", "html_inline") for token in shown for child in token.children or ())
    return ["".join(child.content for child in token.children or ()) for token in shown]


@pytest.mark.parametrize("hostile", HOSTILE)
def test_a_text_in_a_table_is_shown_as_it_is(hostile: str) -> None:
    table = Table("name", "value")
    table.add_row(Text(hostile), "1")
    assert cells_of(to_markdown(table)) == ["name", "value", hostile, "1"]


@given(st.text(st.characters(codec="ascii", min_codepoint=33), min_size=1, max_size=20))
@example("www.x.org")
@example("https://x.org")
@example("&amp;")
def test_any_word_in_a_table_is_shown_as_it_is(word: str) -> None:
    table = Table("name")
    table.add_row(Text(word))
    assert [cell.replace("\u200b", "") for cell in cells_of(to_markdown(table))] == ["name", word]


@pytest.mark.parametrize(
    "text", ["@someone", "a@x.org", "#12", "GH-12", ":tada:", "https://x.org", "www.x.org", "0123456789" * 4]
)
def test_a_text_mentions_nobody_and_links_nowhere(text: str) -> None:
    assert text not in escape(text).replace("\\", "")


@pytest.mark.parametrize("text", ["- a", "1. a", "2) a", "+ a", "---", "===", "> a", "# a", "    a", "* a"])
def test_a_text_of_its_own_is_a_paragraph(text: str) -> None:
    tokens = PARSER.parse(to_markdown(Group(Text("before"), Text(text))))
    assert [token.type for token in tokens] == ["paragraph_open", "inline", "paragraph_close"] * 2
    assert "".join(child.content for child in tokens[4].children or ()) == text.strip()


def test_a_report_says_why_a_value_is_undefined_and_which_task_is_best(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    rows = "".join(f'{{"n": {n}, "right": "a", "wrong": "b"}}\n' for n in range(20))
    (tmp_path / "rows.jsonl").write_text(rows)
    (tmp_path / "e.yaml").write_text(
        "name: odd\ndataset: {path: rows.jsonl, input: n, expected: right, id: n}\n"
        "tasks:\n"
        "  one: {kind: recorded, path: rows.jsonl, by: id, key: n, response: right}\n"
        "  two: {kind: recorded, path: rows.jsonl, by: id, key: n, response: wrong}\n"
        "scorers: {same: prediction}\nmetrics: [accuracy, cohen_kappa]\n"
    )
    assert CliRunner().invoke(main, ["run", "e.yaml"]).exit_code == 0
    reported = CliRunner().invoke(main, ["report", "odd", "--markdown"])
    assert reported.exit_code == 0, reported.output
    assert "\none is best by accuracy" in reported.stdout
    assert "| all truths and predictions are one label, so chance agrees everywhere |" in reported.stdout


def test_lines_of_a_cell_stay_in_their_row() -> None:
    table = Table("name")
    table.add_row("one\ntwo")
    assert to_markdown(table).splitlines()[-1] == "| one<br>two |"


def test_numbers_are_at_the_right() -> None:
    table = Table("name")
    table.add_column("value", justify="right")
    table.add_row("a", "1")
    assert to_markdown(Group(table)).splitlines()[1] == "| --- | ---: |"


def test_comparisons_and_reports_are_printed_as_markdown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    one = write_inspect(tmp_path)
    other = tmp_path / "other.json"
    other.write_text(one.read_text().replace('"model": "m"', '"model": "n"').replace('"C"', '"I"'))
    run = CliRunner().invoke
    assert run(main, ["import", str(one), str(other), "--json"]).exit_code == 0
    compared = run(main, ["compare", "addition/m", "addition/n", "--markdown", "--gate", "mean >= 0.5"])
    assert compared.exit_code == 3
    assert "| FAILED |" in compared.stdout
    assert "| A → B | 0.667 → 0.000 |" in compared.stdout
    reported = run(main, ["report", "addition", "--markdown"])
    assert reported.exit_code == 0, reported.output
    assert "| mean · match | 0.667 |" in reported.stdout
    assert not [*tmp_path.glob("*.html")]


@pytest.mark.parametrize("command", ["compare a b --markdown --json", "report a --markdown -o x.html"])
def test_one_form_of_output_is_chosen(command: str) -> None:
    refused = CliRunner().invoke(main, command.split())
    assert refused.exit_code == 2
    assert "--markdown" in refused.output


def test_json_of_a_comparison_is_no_markdown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    CliRunner().invoke(main, ["import", str(write_inspect(tmp_path))])
    compared = CliRunner().invoke(main, ["compare", "addition/m", "addition/m", "--json"])
    assert json.loads(compared.stdout)["pairs"]
