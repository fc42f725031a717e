"""Labelling in the page: what it writes is what `evaluand label` writes, and nobody loses a label."""

from __future__ import annotations

import json
import os
import shutil
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
import pytest
from click.testing import CliRunner
from support.accessible import check_readable
from support.browser import open_tab
from support.view_server import HOSTILE, Server, serve_store

from evaluand import Dataset, DirectoryStore, Evaluator, Runner
from evaluand.cli import main
from evaluand.core.errors import DataError, NotFound, SpecError
from evaluand.evaluation.evaluator import Evaluation
from evaluand.evaluation.scorer import Score, Scorer
from evaluand.judges.people.human_labels import draw_labelling_rows, read_labels
from evaluand.report.page.resources.base import Source, read_resource
from evaluand.report.page.resources.labels import label, store as store_labels
from evaluand.run.runner import Run
from evaluand.run.task import FunctionTask

ROWS = 6


def grade(output: Any) -> float:
    return float(len(output))


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two runs, of which the first is graded; one example is markup."""
    store = DirectoryStore(tmp_path_factory.mktemp("labelling"))
    rows = [{"input": f"question {i}" if i else HOSTILE, "expected": f"{i}"} for i in range(ROWS)]
    data = Dataset.from_rows(rows, name="questions")
    for name, task in (("mine", str.upper), ("theirs", str.title)):
        run = Runner(store).run(FunctionTask(task, name=name, version="1"), data, name=f"exam/{name}")
        Evaluator(store).evaluate(run, {"length": grade}, name=f"exam/{name}")
    return store.root


@pytest.fixture
def store(made: Path, tmp_path: Path) -> DirectoryStore:
    return DirectoryStore(shutil.copytree(made, tmp_path / "store", symlinks=True))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "labels").mkdir()
    return tmp_path / "labels"


@pytest.fixture
def source(store: DirectoryStore, folder: Path) -> Source:
    return Source(store, labels=folder)


def run_id(store: DirectoryStore, name: str = "exam/mine") -> str:
    return Run.open(store, name).id


def read(source: Source, run: str, **query: str) -> Any:
    return json.loads(read_resource(source, f"labelling/{run}", query))


def test_answers_come_in_the_order_of_the_command_without_what_would_bias(source: Source) -> None:
    run = run_id(source.store)
    rows = draw_labelling_rows(Run(source.store, run))
    seen, place = [], 0
    while (found := read(source, run, by="ann", **{"from": str(place)}))["shown"] is not None:
        seen.append(found["shown"])
        place = found["shown"]["place"] + 1
    assert [each["key"] for each in seen] == [row["key"] for row in rows]
    assert [each["responses"] for each in seen] == [[row["response"]] for row in rows]
    text = json.dumps([*seen, found])
    assert "mine" not in text
    assert "length" not in text
    assert run not in text


def test_what_the_page_stores_is_what_the_command_imports(source: Source, folder: Path, tmp_path: Path) -> None:
    run = run_id(source.store)
    rows = draw_labelling_rows(Run(source.store, run))
    given = [{"value": 1}, {"value": 0, "explanation": f" {HOSTILE} "}, {"label": "odd"}]
    for row, said in zip(rows, given, strict=False):
        label(source, run, {"by": "ann", "key": row["key"], **said})
    assert label(source, run, {"by": "bob", "key": rows[0]["key"], "value": 0}) == {"place": 0}
    progress = read(source, run, by="bob")
    assert (progress["done"], progress["total"]) == (1, ROWS)
    assert progress["by"] == [{"by": "ann", "n": 3}, {"by": "bob", "n": 1}]
    [agreed] = progress["agreement"]
    assert (agreed["one"], agreed["other"], agreed["answers"], agreed["agreed"]) == ("ann", "bob", 1, 0)

    filled = tmp_path / "filled.jsonl"
    said = [each | {"by": "ann"} for each in given]
    lines = [row | each for row, each in zip(rows, said, strict=False)] + [rows[0] | {"value": 0, "by": "bob"}]
    filled.write_bytes(b"".join(orjson.dumps(each) + b"\n" for each in lines))
    written = [folder / "labels-ann.jsonl", folder / "labels-bob.jsonl"]
    assert read_labels(written)._digest == read_labels([filled])._digest

    stored = store_labels(source, run, {"by": "ann"})
    args = ["label", "import", "exam/mine", str(filled), "--store", str(source.store.root), "--json"]
    result = CliRunner().invoke(main, args, catch_exceptions=False)
    assert json.loads(result.stdout)["evaluation"] == stored["id"]
    assert stored["name"] == "exam/mine/human"


def test_a_label_given_again_replaces_the_first(source: Source, folder: Path) -> None:
    run = run_id(source.store)
    key = read(source, run, by="ann")["shown"]["key"]
    label(source, run, {"by": "ann", "key": key, "value": 1})
    label(source, run, {"by": "ann", "key": key, "value": 0, "explanation": "no"})
    found = read(source, run, by="ann", at="0")
    assert (found["done"], found["shown"]["said"]["value"], found["shown"]["said"]["explanation"]) == (1, 0.0, "no")
    assert len((folder / "labels-ann.jsonl").read_bytes().splitlines()) == 2


def test_a_line_that_a_killed_program_left_is_removed_by_whose_it_is(source: Source, folder: Path) -> None:
    run = run_id(source.store)
    rows = draw_labelling_rows(Run(source.store, run))
    label(source, run, {"by": "ann", "key": rows[0]["key"], "value": 1})
    file = folder / "labels-ann.jsonl"
    torn = file.read_bytes() + orjson.dumps(rows[1])[:40]
    file.write_bytes(torn)
    shown = read(source, run, by="bob")  # ann may be writing it at this moment
    assert (shown["by"], shown["damaged"], file.read_bytes()) == ([], ["labels-ann.jsonl:2"], torn)
    assert read(source, run, by="ann")["by"] == [{"by": "ann", "n": 1}]
    file.write_bytes(torn)
    label(source, run, {"by": "ann", "key": rows[1]["key"], "value": 1})
    assert read(source, run, by="ann")["done"] == 2
    label(source, run, {"by": "bob", "key": rows[0]["key"], "value": 1})
    file.write_bytes(file.read_bytes() + orjson.dumps(rows[2])[:40])
    store_labels(source, run, {"by": "bob"})
    assert read(source, run, by="bob")["by"] == [{"by": "ann", "n": 2}, {"by": "bob", "n": 1}]


def test_a_damaged_line_stops_only_whose_it_is(source: Source, folder: Path) -> None:
    run = run_id(source.store)
    keys = [row["key"] for row in draw_labelling_rows(Run(source.store, run))]
    for by in ("ann", "bob", "cid"):
        label(source, run, {"by": by, "key": keys[0], "value": 1})
    for by, line in (("bob", b"{damaged\n"), ("cid", b"{damaged")):
        with (folder / f"labels-{by}.jsonl").open("ab") as file:
            file.write(line)
    label(source, run, {"by": "ann", "key": keys[1], "value": 1})
    found = read(source, run, by="ann")
    assert (found["done"], found["by"]) == (2, [{"by": "ann", "n": 2}])
    assert found["damaged"] == ["labels-bob.jsonl:2", "labels-cid.jsonl:2"]
    for by in ("bob", "cid"):
        with pytest.raises(DataError, match=f"labels-{by}.jsonl:2: is no JSON"):
            read(source, run, by=by)
    with pytest.raises(SpecError, match=r"labels-bob.jsonl:2, labels-cid.jsonl:2 cannot be read; mend it"):
        store_labels(source, run, {"by": "ann"})


def test_a_damaged_line_about_pairs_stops_only_whose_it_is(source: Source, folder: Path) -> None:
    one, other = run_id(source.store), run_id(source.store, "exam/theirs")
    (folder / "pairs-bob.jsonl").write_text('{"key": 3}\n')
    key = read(source, one, by="ann", other=other)["shown"]["key"]
    label(source, one, {"by": "ann", "other": other, "key": key, "winner": "first"})
    found = read(source, one, by="ann", other=other)
    assert (found["done"], found["damaged"]) == (1, ["pairs-bob.jsonl:1"])
    assert store_labels(source, one, {"by": "ann", "other": other})["kind"] == "matches"
    with pytest.raises(DataError, match=r"pairs-bob.jsonl:1: has no key"):
        read(source, one, by="bob", other=other)


@pytest.mark.parametrize("make", [lambda file: file.symlink_to(file.parent.parent / "other"), os.mkfifo, Path.mkdir])
def test_only_regular_files_are_read_and_written(source: Source, folder: Path, tmp_path: Path, make: Any) -> None:
    run = run_id(source.store)
    (tmp_path / "other").write_text("precious")
    make(folder / "labels-bob.jsonl")
    key = read(source, run, by="ann")["shown"]["key"]
    label(source, run, {"by": "ann", "key": key, "value": 1})
    assert read(source, run, by="ann")["damaged"] == ["labels-bob.jsonl"]
    with pytest.raises(DataError, match=r"labels-bob.jsonl: is a link or no regular file"):
        label(source, run, {"by": "bob", "key": key, "value": 1})
    assert (tmp_path / "other").read_text() == "precious"


def test_a_number_and_a_word_are_not_compared(source: Source) -> None:
    run = run_id(source.store)
    keys = [row["key"] for row in draw_labelling_rows(Run(source.store, run))]
    for key, ann, bob in (
        (keys[0], {"value": 1}, {"label": "right"}),
        (keys[1], {"value": 1}, {"value": 1, "label": "right"}),
        (keys[2], {"label": "right"}, {"label": "wrong"}),
    ):
        label(source, run, {"by": "ann", "key": key, **ann})
        label(source, run, {"by": "bob", "key": key, **bob})
    progress = read(source, run, by="ann")
    [found] = progress["agreement"]
    assert (found["answers"], found["agreed"], progress["most_compared"]) == (2, 1, None)


def test_a_thousand_names_are_compared(source: Source, folder: Path) -> None:
    run = run_id(source.store)
    rows = draw_labelling_rows(Run(source.store, run))
    said = [row | {"value": number % 2, "by": f"name {number}"} for number in range(1000) for row in rows]
    (folder / "labels-many.jsonl").write_bytes(b"".join(orjson.dumps(each) + b"\n" for each in said))
    found = read(source, run, by="ann")
    assert (len(found["agreement"]), found["most_compared"]) == (20, 20)


def test_browsers_that_label_at_once_lose_nothing(source: Source) -> None:
    run = run_id(source.store)
    keys = [row["key"] for row in draw_labelling_rows(Run(source.store, run))]

    def work(by: str) -> None:
        for key in keys:
            label(source, run, {"by": by, "key": key, "value": 1})

    people = ["ann", "ann", "bob", "bob"]
    threads = [threading.Thread(target=work, args=(by,)) for by in people]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = read(source, run, by="ann")
    assert found["shown"] is None
    assert found["by"] == [{"by": "ann", "n": ROWS}, {"by": "bob", "n": ROWS}]
    lines = [line for file in source.labels.glob("*.jsonl") for line in file.read_bytes().splitlines()]  # type: ignore[union-attr]
    assert len(lines) == 4 * ROWS


def test_labels_imported_from_other_files_are_not_hidden(source: Source, tmp_path: Path) -> None:
    run = run_id(source.store)
    rows = draw_labelling_rows(Run(source.store, run))
    (tmp_path / "cid.jsonl").write_bytes(orjson.dumps(rows[0] | {"value": 1, "by": "cid"}))
    args = ["label", "import", "exam/mine", str(tmp_path / "cid.jsonl"), "--store", str(source.store.root)]
    CliRunner().invoke(main, args, catch_exceptions=False)
    label(source, run, {"by": "ann", "key": rows[0]["key"], "value": 1})
    with pytest.raises(SpecError, match="exam/mine/human holds labels by cid"):
        store_labels(source, run, {"by": "ann"})


def test_pairs_become_the_matches_that_the_command_makes(
    source: Source, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = run_id(source.store), run_id(source.store, "exam/theirs")
    place = 0
    for winner in ("first", "second", "tie", "skip"):
        found = read(source, one, by="ann", other=other, **{"from": str(place)})["shown"]
        assert len(found["responses"]) == 2
        label(source, one, {"by": "ann", "other": other, "key": found["key"], "winner": winner})
        place = found["place"] + 1
    stored = store_labels(source, one, {"by": "ann", "other": other})
    monkeypatch.chdir(folder)
    args = ["label", "--pairs", "exam/mine", "exam/theirs", "--by", "ann", "--store", str(source.store.root), "--json"]
    result = CliRunner().invoke(main, args, input="q\n", catch_exceptions=False)
    printed = result.stdout[result.stdout.index('{"') if '{"' in result.stdout else result.stdout.index("{") :]
    assert json.loads(printed)["matches"] == stored["id"]
    assert stored["name"] == "exam/ann"


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ({"by": ""}, "say who labels"),
        ({"by": "../../etc/x"}, "say who labels"),
        ({"by": "a" * 61}, "by has 61 characters"),
        ({"by": "nul\0"}, "say who labels"),
        ({"by": 3}, "by must be a text"),
        ({"value": None}, "give a value or a label"),
        ({"value": "1"}, "value is"),
        ({"value": [1]}, "value is"),
        ({"value": True}, "value must be a number, such as 1 for right"),
        ({"label": 5}, "label must be a text"),
        ({"label": "x" * 201}, "label has 201 characters"),
        ({"explanation": "x" * 10_001}, "explanation has 10,001 characters"),
        ({"key": "0" * 32}, "there is no such answer"),
        ({"key": None}, "there is no such answer"),
    ],
)
def test_what_is_no_label_is_refused(source: Source, folder: Path, said: dict[str, Any], reason: str) -> None:
    run = run_id(source.store)
    key = read(source, run, by="ann")["shown"]["key"]
    with pytest.raises((SpecError, NotFound), match=reason):
        label(source, run, {"by": "ann", "key": key, "value": 1} | said)
    assert list(folder.iterdir()) == []


def test_what_cannot_be_labelled_is_said(source: Source) -> None:
    run = run_id(source.store)
    for path, query in {
        "labelling/..%2F..%2Fetc": {"by": "ann"},
        f"labelling/{run[:-1]}": {"by": "ann"},
        f"labelling/{run}": {"by": "ann", "at": "99"},
    }.items():
        with pytest.raises(NotFound):
            read_resource(source, path, query)
    with pytest.raises(NotFound, match="evaluand view --label"):
        read_resource(Source(source.store), f"labelling/{run}", {"by": "ann"})
    with pytest.raises(SpecError, match="nothing is labelled yet"):
        store_labels(source, run, {"by": "ann"})


def test_what_others_said_is_not_sent(source: Source) -> None:
    run = run_id(source.store)
    key = read(source, run, by="ann")["shown"]["key"]
    label(source, run, {"by": "ann", "key": key, "value": 1, "explanation": "between us"})
    found = read(source, run, by="bob")
    assert (found["shown"]["key"], found["shown"]["said"]) == (key, None)
    assert "between us" not in json.dumps(found)


def test_a_run_without_answers_has_nothing_to_label(source: Source) -> None:
    data = Dataset.from_rows([{"input": "a"}])
    run = Runner(source.store).run(FunctionTask(lambda text: 1 / 0, name="none", version="1"), data)
    found = read(source, run.id, by="ann")
    assert (found["shown"], found["total"], found["by"], found["agreement"]) == (None, 0, [], [])


def test_only_whoever_starts_the_server_may_let_people_label(
    store: DirectoryStore, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    refused = CliRunner().invoke(main, ["view", "--label", "--bundle", "page", "--store", str(store.root)])
    assert "files cannot take labels" in refused.output
    Path("evaluand.toml").write_text('[view]\nlabel = "."\n')
    refused = CliRunner().invoke(main, ["view", "--no-browser", "--store", str(store.root)])
    assert "view.label" in refused.output
    assert refused.exit_code


# Through a server


@pytest.fixture
def server(store: DirectoryStore, folder: Path, tmp_path: Path) -> Iterator[Server]:
    with serve_store(store.root, tmp_path / "errors", "--label", str(folder)) as server:
        yield server


def post(server: Server, target: str, body: Any, *headers: str) -> Any:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    usual = (f"Origin: {server.origin}", "Content-Type: application/json")
    return server.post(target, *(headers or usual), body=content)


def test_only_the_page_itself_may_send_labels(server: Server, store: DirectoryStore, folder: Path) -> None:
    run = run_id(store)
    key = json.loads(server.ask(f"/api/labelling/{run}?by=ann").body)["shown"]["key"]
    said, target = {"by": "ann", "key": key, "value": 1}, f"/label/{run}"
    json_type = "Content-Type: application/json"
    assert post(server, target, said, json_type).status == 403
    assert post(server, target, said, json_type, "Origin: http://evil.example").status == 403
    assert post(server, target, said, json_type, f"Origin: {server.origin}", "Sec-Fetch-Site: cross-site").status == 403
    assert server.post(target, f"Origin: {server.origin}", json_type, body=b"{}", cookie="").status == 401
    assert post(server, target, said, f"Origin: {server.origin}", "Content-Type: text/plain").status == 415
    assert post(server, target, b"{").status == 400
    assert post(server, target, b"[1]").status == 400
    assert post(server, target, b"\xff").status == 400
    assert post(server, target, b"[" * 5000).status == 400
    assert post(server, target, b" " * (1 << 20) + b"{}").status == 413
    assert server.ask(target).status == 200  # a page, which changes nothing
    assert list(folder.iterdir()) == []
    assert post(server, target, said).status == 200
    assert len((folder / "labels-ann.jsonl").read_bytes().splitlines()) == 1


def test_without_label_the_server_changes_nothing(store: DirectoryStore, tmp_path: Path) -> None:
    run = run_id(store)
    with serve_store(store.root, tmp_path / "errors") as server:
        for target in (f"/label/{run}", f"/label/{run}/store"):
            assert post(server, target, {"by": "ann", "key": "0" * 32, "value": 1}).status == 405
        assert server.ask(f"/api/labelling/{run}?by=ann").status == 404
        assert b"data-label" not in server.ask("/").body


@pytest.fixture(scope="module")
def tab(chromium: Any) -> Iterator[Any]:
    with open_tab(chromium) as tab:
        yield tab


@pytest.mark.slow
def test_three_answers_are_labelled_by_the_keyboard(
    tab: Any, server: Server, store: DirectoryStore, folder: Path
) -> None:
    faults: list[str] = []
    tab.on("dialog", lambda dialog: (faults.append(dialog.message), dialog.dismiss()))
    tab.on("pageerror", lambda error: faults.append(str(error)))
    tab.on("console", lambda message: faults.append(message.text))
    name, value = server.cookie.split("=", 1)
    tab.context.add_cookies([{"name": name, "value": value, "url": server.origin}])
    run = run_id(store)
    tab.goto(f"{server.origin}/l/{run}")
    tab.wait_for_selector("#who")
    tab.keyboard.type("ann")
    tab.keyboard.press("Enter")
    status = tab.locator("p.meta[role=status]")

    def wait(done: int) -> None:
        status.get_by_text(f"{done} of {ROWS} answers labelled").wait_for()

    wait(0)
    check_readable(tab, tab.url)
    tab.keyboard.press("7")
    tab.get_by_text("7 is not among the labels: keys 0 to 1.").wait_for()
    tab.keyboard.press("1")
    wait(1)
    tab.keyboard.press("0")
    wait(2)
    tab.keyboard.press("u")
    tab.get_by_text("You said 0.").wait_for()
    tab.keyboard.press("c")
    tab.keyboard.type("because 1")
    tab.keyboard.press("Enter")
    tab.keyboard.press("1")
    status.get_by_text("this is number 3").wait_for()
    tab.keyboard.press("s")
    status.get_by_text("this is number 4").wait_for()
    tab.keyboard.press("o")
    tab.keyboard.type("odd")
    tab.keyboard.press("Enter")
    wait(3)
    assert "mine" not in tab.locator("body").inner_text()
    rows = [orjson.loads(line) for line in (folder / "labels-ann.jsonl").read_bytes().splitlines()]
    assert [(row["value"], row["label"], row["explanation"]) for row in rows] == [
        (1, None, None),
        (0, None, None),
        (1, None, "because 1"),
        (None, "odd", None),
    ]
    assert rows[1]["key"] == rows[2]["key"]
    assert tab.locator("main script, main img").count() == 0
    tab.get_by_role("button", name="Store the labels").click()
    tab.get_by_role("link", name="exam/mine/human").wait_for()
    assert Evaluation.open(store, "exam/mine/human").manifest["provenance"]["run"] == run
    tab.goto(f"{server.origin}/v/{Evaluation.open(store, 'exam/mine').id}")
    tab.locator(f"a[href='/l/{run}']").wait_for()
    tab.goto(f"{server.origin}/l/{run}?by=bob&other={run_id(store, 'exam/theirs')}")
    status.get_by_text(f"0 of {ROWS} pairs labelled").wait_for()
    for done, key in enumerate("12ts", 1):
        tab.keyboard.press(key)
        status.get_by_text(f"{done} of {ROWS} pairs labelled").wait_for()
    winners = [orjson.loads(line)["winner"] for line in (folder / "pairs-bob.jsonl").read_bytes().splitlines()]
    assert winners == ["first", "second", "tie", "skip"]
    tab.set_viewport_size({"width": 390, "height": 800})
    assert tab.evaluate("document.documentElement.scrollWidth") <= 390
    assert faults == []


@dataclass(frozen=True)
class Sure(Scorer):
    """A judge that takes every answer for right."""

    kind = "sure"
    version = 1
    is_judge = True

    def score(self, output: Any, expected: Any) -> Score:
        return Score(1.0)


@pytest.mark.slow
def test_who_labels_is_asked_with_what_for_and_a_card_is_called_for_afterwards(
    tab: Any, server: Server, store: DirectoryStore, source: Source
) -> None:
    name, value = server.cookie.split("=", 1)
    tab.context.add_cookies([{"name": name, "value": value, "url": server.origin}])
    run = Run.open(store, "exam/mine")
    Evaluator(store).evaluate(run, {"fine judge": Sure()}, name="exam/judged")
    command = f"evaluand judge card --scorer 'fine judge' exam/judged --store {store.root}"
    [judge] = json.loads(read_resource(source, f"asked/{run.id}", {}))["judges"]
    assert (judge["name"], judge["command"]) == ("fine judge", command)
    tab.goto(f"{server.origin}/r/{run.id}")
    for _ in range(2):
        tab.locator(f"a[href='/l/{run.id}']").first.click()
        tab.wait_for_function("() => document.activeElement?.id === 'who'")
        tab.get_by_role("link", name="fine judge").wait_for()
        tab.get_by_role("link", name="Back to the results").click()
        tab.get_by_role("heading", name="Rows", exact=True).wait_for()
    tab.locator(f"a[href='/l/{run.id}']").first.click()
    tab.wait_for_function("() => document.activeElement?.id === 'who'")
    tab.keyboard.type("ann")
    tab.keyboard.press("Enter")
    tab.get_by_text(f"0 of {ROWS} answers labelled").wait_for()
    tab.keyboard.press("1")
    tab.get_by_text(f"1 of {ROWS} answers labelled").wait_for()
    tab.get_by_role("button", name="Store the labels").click()
    tab.get_by_text(command, exact=True).wait_for()


@pytest.mark.slow
def test_a_page_that_only_shows_says_how_to_label(tab: Any, store: DirectoryStore, tmp_path: Path) -> None:
    with serve_store(store.root, tmp_path / "errors", is_opened=False) as server:
        tab.goto(server.link)
        tab.goto(f"{server.origin}/l/{run_id(store)}")
        tab.get_by_text("evaluand view --label", exact=True).wait_for()
        tab.goto(f"{server.origin}/e/exam")
        tab.get_by_role("heading", name="Rows").wait_for()
        assert tab.locator("a[href^='/l/']").count() == 0
