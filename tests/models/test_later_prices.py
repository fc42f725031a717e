"""A price that becomes known after a run prices what the run has stored."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from support.chats import Chat
from support.commands import Folder

Starts = Callable[..., Chat]

USAGE = {"prompt_tokens": 1000, "completion_tokens": 100, "total_tokens": 1100, "prompt_cache_hit_tokens": 900}


def experiment(url: str, model: str) -> str:
    return (
        "name: capitals\ndataset: {path: q.jsonl, input: q, expected: a}\n"
        f'tasks: {{ask: {{kind: chat, model: {{model: "{url}#small", version: "1"{model}}}}}}}\n'
        "scorers: {right: exact_match}\nmetrics: [accuracy]\n"
    )


@pytest.mark.parametrize("where", ["table", "model"])
def test_a_later_price_prices_what_is_stored(
    chat: Starts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    choice = {"finish_reason": "stop", "message": {"content": "Paris"}}
    server = chat({"body": json.dumps({"choices": [choice], "usage": USAGE})})
    monkeypatch.chdir(tmp_path)
    folder = Folder(tmp_path)
    Path("q.jsonl").write_text('{"q": "France?", "a": "Paris"}\n')
    Path("e.yaml").write_text(experiment(server.url, ""))
    assert "cost unknown" in folder.done("run", "e.yaml")
    price = "{input: 10000, cached_input: 1000, output: 20000}"
    if where == "table":
        Path("prices.yaml").write_text(f"prices: {{127.0.0.1: {{small: {price}}}}}\n")
        monkeypatch.setenv("EVALUAND_PRICES", "prices.yaml")
        assert "cost 3.90 USD by a later price" in folder.done("show", "capitals/ask")
    else:
        Path("e.yaml").write_text(experiment(server.url, f", price: {price}"))
    facts = folder.json("run", "e.yaml")
    assert len(server.asked) == 1
    assert facts["tasks"][0]["run"]["usage"]["cost"] == {"USD": pytest.approx(3.9)}
