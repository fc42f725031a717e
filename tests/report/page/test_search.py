"""A bundle finds the texts that a server finds, in the same rows."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

import orjson
import pytest
from hypothesis import example, given, settings, strategies as st
from support.node import needs_node, serve_script

from evaluand import Dataset, DirectoryStore, Evaluator, Runner
from evaluand.evaluation.scorer import Score
from evaluand.report.page.resources.base import Source, find_resources, read_resource
from evaluand.run.task import FunctionTask

pytestmark = pytest.mark.filterwarnings("ignore::evaluand.evaluation.evaluator.ScorerFailed")
ROWS = 40
ALPHABET = "aAsSſßẞkK\u212aéÉe\u0301ΣσςIiİı\\\"'\n\t.*+?()[]{}|/^$:,n0- "
CODE = """
import { createInterface } from "node:readline";
import { holder } from "./grid/search.js";
for await (const line of createInterface({ input: process.stdin })) {
  const { text, rows } = JSON.parse(line);
  const holds = holder(text);
  console.log(JSON.stringify(rows.flatMap((texts, row) => (holds(texts) ? [row] : []))));
}
"""


def draw_text(draw: random.Random) -> str:
    return "".join(draw.choices(ALPHABET, k=draw.randrange(1, 8)))


def draw_value(draw: random.Random) -> Any:
    text = draw_text(draw)
    return draw.choice([text, [text, 1.5], {text: draw_text(draw), "more": [None, text]}, 42, None])


def answer(text: str) -> Any:
    draw = random.Random(text)
    if draw.random() < 0.2:
        raise ValueError(draw_text(draw))
    return draw_value(draw)


def score(output: Any, expected: Any) -> Score:
    draw = random.Random(f"{output}{expected}")
    if draw.random() < 0.2:
        return Score.abstained(draw_text(draw))
    return Score(1.0, draw_text(draw).strip() or None, explanation=draw_text(draw))


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Source:
    draw = random.Random(1)
    rows = [
        {
            "input": draw_text(draw),
            "expected": {"it": draw_text(draw)},
            "kind": draw_text(draw),
            "note": draw_text(draw),
        }
        for _ in range(ROWS)
    ]
    data = Dataset.from_rows(rows, input="input", expected="expected", attributes=["kind"])
    store = DirectoryStore(tmp_path_factory.mktemp("search"))
    run = Runner(store).run(FunctionTask(answer, version="1"), data, replications=2)
    Evaluator(store).evaluate(run, {"score": score})
    find_resources()
    return Source(store, piece=30)


@pytest.fixture(scope="module")
def path(source: Source) -> str:
    """Of all texts: the run and its evaluation."""
    [run], [graded] = (source.store.ids(kind) for kind in ("runs", "evaluations"))
    return f"{run}/{graded}"


@pytest.fixture(scope="module")
def texts(source: Source, path: str) -> list[list[str]]:
    """Those of each row that a bundle has."""
    pieces = [orjson.loads(read_resource(source, f"texts/{path}/{piece}", {})) for piece in range(3)]
    return [row for piece in pieces for row in piece]


@pytest.fixture(scope="module")
def find_in_page() -> Iterator[Callable[[Any], list[int]]]:
    with serve_script(CODE) as ask:
        yield ask


@needs_node
@settings(max_examples=200)
@given(text=st.text(st.sampled_from(ALPHABET), min_size=1, max_size=3), place=st.integers(0, 2 * ROWS - 1))
@example("more", 0)
@example("completed", 0)
@example("SCORED", 0)
@example("42", 0)
@example('"', 0)
@example("\\n", 0)
@pytest.mark.slow
def test_a_bundle_finds_what_a_server_finds(
    source: Source,
    path: str,
    texts: list[list[str]],
    find_in_page: Callable[[Any], list[int]],
    text: str,
    place: int,
) -> None:
    for wanted in (text, texts[place][0][:4].swapcase()):
        found = orjson.loads(read_resource(source, f"find/{path}", {"q": wanted}))
        assert find_in_page({"text": wanted, "rows": texts}) == found


def test_a_search_finds_what_is_shown_and_not_how_it_is_stored(tmp_path: Any) -> None:
    store = DirectoryStore(tmp_path)
    rows = [{"input": "a"}, {"input": "b", "picture": "data:image/png;base64,AAAA"}]
    answers = {"a": 'say "Hi"\n', "b": {"path": "C:\\new"}}
    run = Runner(store).run(FunctionTask(answers.__getitem__, version="1"), Dataset.from_rows(rows), replications=2)
    find_resources()

    def find(text: str) -> Any:
        return orjson.loads(read_resource(Source(store), f"find/{run.id}/-", {"q": text}))

    assert find('SAY "hi"') == find("hi") == [0, 1]
    assert find("\\new") == find("c:\\NEW") == [2, 3]
    assert find("\\n") == [2, 3]
    assert find("completed") == find("base64") == find('\\"') == []
