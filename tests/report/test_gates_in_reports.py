"""The first screen of an experiment's report says which of its gates hold, and by what number."""

from __future__ import annotations

import html
import json
import re
from pathlib import Path

import pytest
from support.commands import Folder

MATCHES = """
name: doubling
dataset: {path: rows.jsonl, input: question, expected: answer}
tasks: {mine: "app.py:double", other: "app.py:whole"}
matches: {judge: {kind: by_score, scorer: numeric_answer}, rating: win_rate}
"""
HOLDS = "accuracy(number) >= 0.5"
FAILS = "accuracy(number) > 0.999 at 95%"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Folder:
    monkeypatch.chdir(tmp_path)
    return Folder(tmp_path)


def gated(folder: Folder, *rules: str, text: str | None = None) -> Path:
    path = folder.experiment() if text is None else folder.path / "e.yaml"
    text = text or path.read_text().replace("by: [parity]", "by: [parity], missing: leave_out")
    path.write_text(text + f"gates: {json.dumps(rules)}\n")
    return path


def gate_cells(page: Path) -> list[list[str]]:
    """The cells of the table of gates, which is the first section."""
    text = page.read_text()
    main = text.partition("<main>")[2]
    assert main.lstrip().startswith('<section id="gates"')
    lines = re.findall(r"<tr>(.*?)</tr>", main.partition("</section>")[0].partition("<tbody>")[2], re.DOTALL)
    cells = [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", line, re.DOTALL) for line in lines]
    return [[html.unescape(re.sub(r"<(?!br)[^>]*>", "", cell)) for cell in line] for line in cells]


def test_a_run_writes_its_gates_into_its_report(folder: Folder) -> None:
    assert folder.call("run", gated(folder, HOLDS, FAILS), "--report").exit_code == 3
    holds, fails = gate_cells(folder.path / "doubling.html")
    assert holds[:4] == [f"{HOLDS}scores of number", "mine", "passed", "1"]
    assert holds[5:7] == ["", ">= 0.5"]
    assert fails[:3] == [f"{FAILS}scores of number", "mine", "failed"]
    assert re.fullmatch(r"0\.\d+ to 1(\.0+)? \(bounds\)", fails[4])
    side, bound = fails[5].split()
    assert (side, fails[6]) == ("lower", "> 0.999")
    assert f"lower 95% bound {bound}" in fails[7]


def test_the_report_of_the_file_checks_its_gates_by_what_is_stored(folder: Folder) -> None:
    folder.call("run", gated(folder, HOLDS, FAILS), "--report")
    first = gate_cells(folder.path / "doubling.html")
    (folder.path / "app.py").write_text("raise SystemError('imported')\n")
    made = folder.json("report", "e.yaml", "-o", "again.html")
    assert gate_cells(folder.path / "again.html") == first
    assert made["results"]["file_changed"] is False
    said = re.search(r"Gates checked by the results of (.*) UTC\.</p>", (folder.path / "again.html").read_text())
    assert said is not None
    assert said[1] == made["results"]["made"][:16].replace("T", " ")
    assert [(gate["passed"], gate["decided"]) for gate in made["gates"]] == [(True, True), (False, True)]
    gated(folder, "accuracy(number) <= 0.2")
    said = folder.call("report", "e.yaml", "-o", "later.html").stderr
    assert re.search(r"note: gates checked by the results of .* UTC; the file has changed since", said)
    assert "UTC; the file has changed since they were made.</p>" in (folder.path / "later.html").read_text()
    assert [line[2] for line in gate_cells(folder.path / "later.html")] == ["failed"]


def test_the_bound_of_a_difference_is_shown_beside_its_margin(folder: Folder) -> None:
    text = (folder.experiment().read_text() + 'gates: ["accuracy(number) not worse than other by 0.9"]\n').replace(
        "tasks:\n", 'tasks:\n  other: "app.py:whole"\n'
    )
    (folder.path / "e.yaml").write_text(text)
    folder.call("run", "e.yaml", "--report")
    [line] = gate_cells(folder.path / "doubling.html")
    side, bound = line[5].split()
    assert side == "lower"
    assert f"lower 95% bound {bound}" in line[7]


def test_a_gate_without_a_number_is_not_decidable(folder: Folder) -> None:
    path = gated(folder, "accuracy(number)[parity=even] >= 0.5", "accuracy(number)[parity=none] >= 0.5")
    assert folder.call("run", path, "--report").exit_code == 3
    assert [line[2] for line in gate_cells(folder.path / "doubling.html")] == ["passed", "undecided"]


def test_gates_of_matches_are_shown(folder: Folder) -> None:
    path = gated(folder, "win_rate(mine, other) >= 0.5", text=MATCHES)
    folder.call("run", path, "--report")
    [first] = gate_cells(folder.path / "doubling.html")
    assert first[:3] == ["win_rate(mine, other) >= 0.5", "mine", "passed"]
    folder.done("report", "e.yaml", "-o", "again.html")
    assert gate_cells(folder.path / "again.html") == [first]


def test_a_report_without_gates_has_no_section_of_them(folder: Folder) -> None:
    folder.call("run", gated(folder), "--report")
    assert 'id="gates"' not in (folder.path / "doubling.html").read_text()
    folder.done("report", "e.yaml", "-o", "again.html")
    assert 'id="gates"' not in (folder.path / "again.html").read_text()


def test_the_text_of_a_gate_is_escaped(folder: Folder) -> None:
    folder.call("run", gated(folder, 'accuracy(number)[parity="<script>"] >= 0.5'), "--report")
    page = (folder.path / "doubling.html").read_text()
    assert "&lt;script&gt;" in page.partition("</section>")[0]
    assert '"<script>"' not in page


def test_wrong_files_are_refused_in_one_sentence(folder: Folder) -> None:
    gated(folder, HOLDS)
    assert "experiment 'doubling' has no results" in folder.refused("report", "e.yaml")
    assert "e.yaml is a file; a report of a file shows it alone" in folder.refused("report", "e.yaml", "x", code=2)
    folder.call("run", "e.yaml")
    gated(folder, "accuracy => 0.9")
    assert re.search(r"e\.yaml:\d+: gates\.0: .*found '='", folder.refused("report", "e.yaml"))
