"""The example of prompts: a real small model answers, and judges its own answers."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from support.chats import real_model
from support.places import ROOT_FOLDER

from evaluand.cli import main

EXAMPLE = ROOT_FOLDER / "examples" / "prompts"
ADDRESS = "http://127.0.0.1:8080/v1"
A_GATE_FAILED = 3  # with this model, examples in the prompt make the replies worse


def run_in(store: Path) -> dict[str, Any]:
    arguments = ["run", "experiment.yaml", "--json", "--store", str(store)]
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code in (0, A_GATE_FAILED), result.output or repr(result.exception)
    found: dict[str, Any] = json.loads(result.stdout)
    return found


@pytest.mark.slow
def test_the_example_asks_two_prompts_of_two_models_judges_them_and_asks_nothing_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(EXAMPLE, tmp_path / "prompts", ignore=shutil.ignore_patterns(".evaluand", "replies.db*"))
    monkeypatch.chdir(tmp_path / "prompts")
    with real_model() as model:
        experiment = Path("experiment.yaml")
        text = experiment.read_text()
        assert text.count(ADDRESS) == 1
        experiment.write_text(text.replace(ADDRESS, model.url))
        first = run_in(tmp_path / "store")
    # the model is gone: whatever would be asked now fails
    again = run_in(tmp_path / "store")
    elsewhere = run_in(tmp_path / "other")

    assert [task["task"] for task in first["tasks"]] == [
        "ask/plain/likeliest",
        "ask/plain/sampled",
        "ask/few_shot/likeliest",
        "ask/few_shot/sampled",
    ]
    for task in first["tasks"]:
        for used in (task["run"]["usage"], task["evaluation"]["usage"]["judged"]):
            assert (used["requests"], used["failed"], used["cached"]) == (50, 0, 0)
            [(currency, cost)] = used["cost"].items()
            assert currency == "EUR"
            assert cost == pytest.approx((0.10 * used["input_tokens"] + 0.40 * used["output_tokens"]) / 1e6)
    judged = [row for row in first["metrics"] if row["metric"] == "mean"]
    assert [row["n"] for row in judged] == [50] * 4
    assert all(row["n_scored"] >= 40 for row in judged)
    for later in (again, elsewhere):
        assert [row["value"] for row in later["metrics"]] == [row["value"] for row in first["metrics"]]
    for task in elsewhere["tasks"]:  # nothing was stored there, but the cache knows all replies
        for used in (task["run"]["usage"], task["evaluation"]["usage"]["judged"]):
            assert (used["requests"], used["cached"], used["cost"]) == (0, 50, {})
