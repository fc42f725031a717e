"""Every page of a store that holds results of all kinds is reached from the list by links alone, and can be read."""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.accessible import check_readable
from support.browser import open_tab
from support.places import DATA_FOLDER, ROOT_FOLDER
from support.view_server import HOSTILE, serve_store

from evaluand import Accuracy, Aggregator, Dataset, DirectoryStore, Evaluator, Experiment, Runner
from evaluand.aggregation.aggregator import Measure
from evaluand.apps.logs import record_logs
from evaluand.core.labels import join_name
from evaluand.engine.policy import Policy
from evaluand.evaluation.feedback import Feedback
from evaluand.run.task import FunctionTask

GSM8K = DATA_FOLDER / "gsm8k"
ROUTES = {"e", "r", "v", "x", "t", "c", "o", "m", "a", "l", "j", "d", "live"}
ROWS = 100_000
MOST = 3  # links of each kind that are followed from a page

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not GSM8K.is_dir(), reason=f"needs GSM8K's questions and solutions in {GSM8K}"),
]


def add_gsm8k(store: DirectoryStore, folder: Path) -> None:
    for name in ("test.jsonl", "example_model_solutions.jsonl"):
        shutil.copy(GSM8K / name, folder)
    file = Path(shutil.copy(ROOT_FOLDER / "examples" / "gsm8k" / "experiment.yaml", folder))
    Experiment.from_file(file).run(store)


def add_detection(store: DirectoryStore) -> None:
    there = {f"{i}.png": [{"box": [10, 10, 60, 60 + i], "label": HOSTILE}] for i in range(9)}
    found = {name: [{**boxes[0], "confidence": 0.9, "box": [12, 9, 60, 62]}] for name, boxes in there.items()}
    data = Dataset.from_rows([{"input": name, "expected": boxes} for name, boxes in there.items()], name="images")
    run = Runner(store).run(FunctionTask(found.get, name="detector", version="1"), data, name="boxes/detector")
    Evaluator(store).evaluate(run, {"boxes": "detection"}, name="boxes/detector")


def relevance(question: str, answer: str) -> float:
    return min(len(answer) / (1 + len(question)), 1.0)


def add_records(store: DirectoryStore) -> None:
    logs = [{"input": f"Who is {i}? {HOSTILE}", "output": "Jane", "calls": {"find": {"rets": [i]}}} for i in range(5)]
    feedbacks = [Feedback(relevance, version="1").on_input_output()]
    record_logs(logs, name="rag", version="1", feedbacks=feedbacks, store=store).close()


def add_tradeoffs(store: DirectoryStore, folder: Path) -> None:
    (folder / "models.py").write_text(
        "import random\n"
        "def tree(i): return {'prediction': 'yes', 'confidence': random.Random(i).random()}\n"
        "def net(i): return {'prediction': 'yes', 'confidence': random.Random(i + 1).random()}\n"
    )
    (folder / "people.jsonl").write_text(
        "".join(f'{{"i": {i}, "truth": "{["no", "yes"][i % 2]}", "site": "{"ab"[i // 30]}"}}\n' for i in range(60))
    )
    (folder / "tradeoffs.yaml").write_text(
        "name: fair\ndataset: {path: people.jsonl, input: i, expected: truth, attributes: [site]}\n"
        "tasks: {tree: {function: models.py:tree, version: '1'}, net: {function: models.py:net, version: '1'}}\n"
        "scorers: {right: prediction}\nmetrics: [accuracy]\n"
        "tradeoffs:\n  - {objectives: [accuracy, recall difference by site],\n"
        "     thresholds: every, label: 'yes', scorer: right}\n"
    )
    Experiment.from_file(folder / "tradeoffs.yaml").run(store)


def add_many_rows(store: DirectoryStore, rows: int) -> None:
    chance = random.Random(0)
    records = [
        {"input": f"{i} {HOSTILE}", "expected": f"{i % 7}", HOSTILE: f"{chance.random():.1f}"} for i in range(rows)
    ]
    data = Dataset.from_rows(records, attributes=[HOSTILE], name=HOSTILE, input="input", expected="expected")
    graded = []
    for number in range(2):
        name = join_name("many", f"{number} {HOSTILE}")
        run = Runner(store).run(FunctionTask(str.upper, name=str(number), version="1"), data, name=name)
        graded.append(Evaluator(store).evaluate(run, {HOSTILE: begins_right}, name=name))
    Aggregator(store).aggregate(graded, [Measure(HOSTILE, Accuracy(), by=HOSTILE)], name="many")


def begins_right(output: str, expected: str) -> bool:
    return output.startswith(expected)


def stop(text: str) -> str:
    raise KeyboardInterrupt


def add_stopped_run(store: DirectoryStore) -> None:
    task = FunctionTask(stop, name="stop", version="1")
    with pytest.raises(KeyboardInterrupt):
        Runner(store, Policy(concurrency=1)).run(task, Dataset.from_rows([{"input": "a"}]), name="stopped")


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("routes")
    store = DirectoryStore(folder / "store")
    add_many_rows(store, ROWS)
    add_stopped_run(store)
    add_detection(store)
    add_records(store)
    add_tradeoffs(store, folder)
    add_gsm8k(store, folder)
    return Path(store.root)


@pytest.fixture(scope="module")
def tab(chromium: Any, store: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    errors = tmp_path_factory.mktemp("log") / "errors"
    with open_tab(chromium) as tab, serve_store(store, errors, "--label", is_opened=False) as server:
        tab.faults = []
        tab.on("dialog", lambda dialog: (tab.faults.append(dialog.message), dialog.dismiss()))
        tab.on("pageerror", lambda error: tab.faults.append(str(error)))
        tab.goto(server.link)
        tab.origin = server.origin
        yield tab


@pytest.fixture(scope="module")
def found(tab: Any) -> dict[str, str]:
    """An address of each kind of page, found by following links from the list of all."""
    pending = [f"{tab.origin}/?k=all"]
    seen, found = set[str](), dict[str, str]()
    while pending:
        address = pending.pop(0)
        tab.goto(address)
        tab.get_by_role("heading", level=1).wait_for()
        if "/live" not in address:
            tab.wait_for_load_state("networkidle")
        kind = address.removeprefix(tab.origin).split("/")[1].split("?")[0]
        found.setdefault(kind, address)
        links = tab.evaluate("[...document.querySelectorAll('main a[href]')].map((link) => link.href)")
        by_kind: dict[str, int] = {}
        for link in links:
            if not link.startswith(tab.origin) or "#" in link:
                continue
            to = link.removeprefix(tab.origin).split("/")[1].split("?")[0]
            by_kind[to] = by_kind.get(to, 0) + 1
            if to not in found and by_kind[to] <= MOST and link not in seen:
                seen.add(link)
                pending.append(link)
    return found


def test_every_page_is_reached_by_links_from_the_list(found: dict[str, str], tab: Any) -> None:
    assert set(found) - {""} == ROUTES
    assert tab.faults == []


@pytest.mark.parametrize("route", sorted(ROUTES))
def test_every_page_of_real_results_can_be_read(found: dict[str, str], tab: Any, route: str) -> None:
    check_readable(tab, found[route])
    assert tab.faults == []
    assert tab.locator("main img:not([src^='data:']), main script, main iframe").count() == 0
