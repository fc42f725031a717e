"""The values of metrics as a LaTeX table."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.commands import Folder

from evaluand.report.latex import _line, escape


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Folder:
    monkeypatch.chdir(tmp_path)
    folder = Folder(tmp_path)
    folder.write("rows.jsonl", [{"n": str(n), "kind": "50%_a&b" if n < 5 else "c"} for n in range(20)])
    (tmp_path / "app.py").write_text("def same(n): return n if n != '3' else 'x'\n")
    (tmp_path / "e.yaml").write_text(
        "name: many\ndataset: {path: rows.jsonl, input: n, expected: n, attributes: [kind]}\n"
        "tasks: {my_task: 'app.py:same'}\nscorers: {same: exact_match}\nmetrics: [{kind: accuracy, by: [kind]}]\n"
    )
    folder.done("run", "e.yaml")
    return folder


def test_a_table_has_values_with_intervals_and_counts(folder: Folder) -> None:
    lines = folder.done("export", "many", "--to", "latex").splitlines()
    assert lines[:3] == [
        r"\begin{tabular}{lllrrrr}",
        r"\toprule",
        r"task & metric & group & value & interval & rows & scored \\",
    ]
    assert r"my\_task & accuracy · same &  & 0.950 & 0.764 to 0.991 & 20 & 20 \\" in lines
    assert any(line.startswith(r"my\_task & accuracy · same & kind=50\%\_a\&b & 0.800 &") for line in lines)
    assert lines[-2:] == [r"\bottomrule", r"\end{tabular}"]


def test_the_suffix_chooses_latex(folder: Folder) -> None:
    folder.done("export", "many", "-o", "metrics.tex")
    assert (folder.path / "metrics.tex").read_text() == folder.done("export", "many", "--to", "latex")


def test_rows_have_no_latex(folder: Folder) -> None:
    assert "LaTeX is for an aggregation" in folder.refused("export", "many/my_task", "--to", "latex")


@pytest.mark.parametrize("character", list("\\{}$&#%_^~<>|"))
def test_no_character_of_data_is_a_command(character: str) -> None:
    shown = escape(character)
    assert shown == f"\\{character}" if character in "{}$&#%_" else shown.startswith("\\text")


@pytest.mark.parametrize("task", ["[3cm] x", "*", "[b]", " [3cm]"])
def test_no_name_is_an_argument_of_the_line_before(task: str) -> None:
    assert _line([task, "a"]).startswith("{}" + task)
    assert _line(["a", task]) == f"a & {task} \\\\"
