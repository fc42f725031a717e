"""The list of what is stored: each row leads to the page that shows it, or says which command does."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.accessible import check_readable
from support.unread import Unread
from support.view_page import open_page
from support.view_server import HOSTILE

from evaluand import Accuracy, Aggregator, Dataset, DirectoryStore, Evaluation, Evaluator, Runner, compare
from evaluand.aggregation.aggregator import Measure
from evaluand.core.errors import NotFound
from evaluand.core.labels import join_name
from evaluand.engine.policy import Policy
from evaluand.evaluation.scorer import FunctionScorer
from evaluand.evaluation.scorers.prediction import Prediction
from evaluand.metrics.class_rates import Recall
from evaluand.report.page.resources.base import Source, find_resources, read_resource
from evaluand.report.page.resources.listing import read_index
from evaluand.run.task import FunctionTask

ROWS = 8
ID = "an identifier that is too long for a heading"


def right(output: str, expected: str) -> bool:
    return output == expected


def stop(text: str) -> str:
    if text.endswith("5"):
        raise KeyboardInterrupt
    return text


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> DirectoryStore:
    """Three systems of an experiment, compared by twos and threes, an interrupted run and a damaged one."""
    store = DirectoryStore(tmp_path_factory.mktemp("store") / "store")
    rows = [{"id": f"{ID} {i}", "input": f"a {i}", "expected": f"A {i}"} for i in range(ROWS)]
    data = Dataset.from_rows(rows, name="letters", id="id")
    graded = []
    for name, task in (("upper", str.upper), ("lower", str.lower), (HOSTILE, str.isalpha)):
        named = join_name("trial", name)
        run = Runner(store).run(FunctionTask(task, name=name, version="1"), data, name=named)
        graded.append(Evaluator(store).evaluate(run, {"right": right}, name=named))
    Aggregator(store).aggregate(graded, [Measure("right", Accuracy())], name="trial")
    compare(*graded[:2], name="two")
    compare(*graded, name="three")
    with pytest.raises(KeyboardInterrupt):
        Runner(store, Policy(concurrency=1)).run(FunctionTask(stop, name="stop", version="1"), data, name="stopped")
    broken = Runner(store).run(FunctionTask(str.strip, name="strip", version="1"), data, name="broken")
    (Path(store.root) / "runs" / broken.id / "manifest.json").write_text("{")
    return store


def read(store: DirectoryStore, path: str, **query: str) -> Any:
    find_resources()
    return json.loads(read_resource(Source(store), path, query))


def find(store: DirectoryStore, kind: str, name: str) -> str:
    return next(entry["id"] for entry in store.catalog.entries(kind) if entry["name"] == name)


def test_a_run_made_again_under_its_id_is_listed_as_it_is(tmp_path: Path) -> None:
    is_well = Unread(False)

    def answer(text: str) -> str:
        if not is_well.value:
            raise ValueError("not today")
        return text

    find_resources()
    store, data = DirectoryStore(tmp_path), Dataset.from_rows([{"input": "a"}])
    source, listed = Source(store), []
    for is_well.value in (False, True):
        run = Runner(store).run(FunctionTask(answer, name="moody", version="1"), data)
        [entry] = [each for each in read_index(source)["artifacts"] if each["kind"] == "runs"]
        assert entry["created"] == run.manifest["created"]
        listed.append((entry["id"], entry["counts"]))
        shutil.rmtree(tmp_path / "runs" / run.id)
    assert listed[0][0] == listed[1][0]
    assert ["failed" in counts for _, counts in listed] == [True, False]


def test_a_run_that_is_not_finished_says_how_far_it_is(store: DirectoryStore) -> None:
    found = read(store, f"progress/{find(store, 'runs', 'stopped')}")
    assert found == {"status": "stopped", "done": 5, "total": ROWS}
    finished = read(store, f"progress/{find(store, 'runs', join_name('trial', 'upper'))}")
    assert finished == {"status": "finished", "done": ROWS, "total": ROWS}
    with pytest.raises(NotFound):
        read(store, "progress/nothing")


def test_a_stored_comparison_names_what_it_compared(store: DirectoryStore) -> None:
    found = read(store, f"comparison/{find(store, 'comparisons', 'three')}")
    assert [task["task"] for task in found["tasks"]] == ["upper", "lower", HOSTILE]
    assert found["command"].startswith("evaluand show ")
    with pytest.raises(NotFound):
        read(store, f"comparison/{find(store, 'datasets', 'letters')}")


def test_cards_of_evaluations_say_how_long_they_took(store: DirectoryStore) -> None:
    card = read(store, f"card/evaluations/{find(store, 'evaluations', join_name('trial', 'upper'))}")
    assert card["took"].endswith(("ms", "s"))


@pytest.fixture(scope="module")
def tab(chromium: Any, store: DirectoryStore, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with open_page(chromium, Path(store.root), tmp_path_factory.mktemp("log") / "errors") as tab:
        yield tab


def test_every_row_is_a_link_or_has_a_command(tab: Any) -> None:
    tab.goto(f"{tab.origin}/?k=all")
    tab.locator(".entry").first.wait_for()
    entries = tab.locator(".entry").all()
    assert len(entries) == len(tab.locator(".entry .title").all()) > 10
    for entry in entries:
        has_link = entry.locator(".title a").count() == 1
        assert has_link != (entry.locator(".command").count() == 1), entry.inner_text()
    damaged = tab.locator(".entry", has_text="damaged")
    assert "evaluand verify " in damaged.inner_text()


def test_a_run_that_is_not_finished_leads_to_where_it_is_watched(tab: Any, store: DirectoryStore) -> None:
    tab.goto(f"{tab.origin}/?k=runs")
    entry = tab.locator(".entry", has_text="not finished")
    entry.wait_for()
    assert "not finished" in tab.locator(".entry").first.inner_text()  # before newer ones
    entry.get_by_text(f"stopped: 5 of {ROWS} rows").wait_for()
    entry.get_by_role("link", name="stopped").click()
    tab.get_by_role("progressbar").wait_for()
    assert tab.url.endswith(f"/live/{find(store, 'runs', 'stopped')}")


def test_comparisons_open_from_the_list(tab: Any) -> None:
    tab.goto(f"{tab.origin}/?k=comparisons")
    tab.get_by_role("link", name="two").click()
    tab.get_by_role("heading", name="trial/lower compared with trial/upper").wait_for()
    tab.go_back()
    tab.get_by_role("link", name="three").click()
    tab.get_by_label("System").select_option(label=HOSTILE)
    tab.get_by_role("link", name="Compare them").click()
    tab.get_by_role("heading", name=f"trial/{HOSTILE} compared with trial/upper").wait_for()


@pytest.mark.slow
def test_the_way_to_a_page_is_written_in_names(tab: Any, store: DirectoryStore) -> None:
    way = tab.get_by_role("navigation", name="Page", exact=True)
    run = find(store, "runs", join_name("trial", "upper"))
    dataset = find(store, "datasets", "letters")
    for path, text in {
        f"r/{run}": "/ trial / trial/upper",
        f"d/{dataset}": "/ letters",
        f"x/{dataset}/3": "/ letters / Example 3",
        f"t/{run}/3": "/ trial/upper / upper: trace of example 3",
        "e/trial": "/ trial",
    }.items():
        tab.goto(f"{tab.origin}/{path}")
        tab.get_by_role("heading", level=1).wait_for()
        assert " ".join(way.inner_text().split()) == text
    tab.goto(f"{tab.origin}/x/{dataset}/3")
    assert ID not in tab.get_by_role("heading", level=1).inner_text()
    tab.get_by_text(f"{ID} 3").wait_for()
    way.get_by_role("link", name="letters").click()
    tab.get_by_role("heading", name="Columns").wait_for()


def test_ids_stand_for_names_only_until_these_are_known(tab: Any, store: DirectoryStore) -> None:
    way = tab.get_by_role("navigation", name="Page", exact=True)
    tab.route("**/api/dataset/*", lambda route: None)
    dataset = find(store, "datasets", "letters")
    tab.goto(f"{tab.origin}/d/{dataset}")
    way.get_by_text(dataset[:12], exact=True).wait_for()
    tab.unroute_all()


@pytest.mark.parametrize(
    "path",
    [
        "?k=all",
        *(
            pytest.param(path, marks=pytest.mark.slow)
            for path in ("x/{dataset}/3", "c/{three}", "d/{dataset}", "t/{run}/3", "r/{run}")
        ),
    ],
)
def test_readers_of_all_kinds_can_use_the_list_and_examples(tab: Any, store: DirectoryStore, path: str) -> None:
    dataset = find(store, "datasets", "letters")
    run = find(store, "runs", join_name("trial", "upper"))
    three = find(store, "comparisons", "three")
    check_readable(tab, f"{tab.origin}/{path.format(dataset=dataset, run=run, three=three)}")


def test_two_evaluations_of_one_name_are_compared_by_their_ids(store: DirectoryStore) -> None:
    data = Dataset.stored(store, find(store, "datasets", "letters"))
    ids = []
    for version in ("1", "2"):
        task = FunctionTask(lambda text, version=version: text * int(version) + "!", name="title", version=version)
        run = Runner(store).run(task, data, name="again/title")
        ids.append(Evaluator(store).evaluate(run, {"right": right}, name="again/title").id)
    found = read(store, f"compare/{ids[0]}/{ids[1]}")
    assert [task["task"] for task in found["tasks"]] == [f"again/title {id[:12]}" for id in ids]


def same_length(output: str, expected: str) -> bool:
    return len(output) == len(expected)


def test_a_comparison_says_what_its_differences_may_come_from(store: DirectoryStore) -> None:
    upper = find(store, "evaluations", join_name("trial", "upper"))
    data = Dataset.stored(store, find(store, "datasets", "letters"))
    run = Runner(store, Policy(concurrency=1)).run(FunctionTask(fail_at_3, name="some", version="1"), data)
    other = Evaluator(store).evaluate(run, {"right": same_length})
    found = read(store, f"compare/{upper}/{other.id}")
    first, second = found["caveats"]
    assert first.startswith("the scorer 'right' of ")
    assert second == "accuracy · right leaves out 1 of 8 rows without a score"
    assert found["grouped"] == ["accuracy · right"]


@pytest.mark.slow
def test_metrics_of_one_name_are_told_apart_where_groups_are_compared_by_one(tab: Any, store: DirectoryStore) -> None:
    rows = [{"input": f"a{i}", "expected": f"{i % 2}", "half": f"{i // 4}"} for i in range(ROWS)]
    data, policy = Dataset.from_rows(rows, attributes=["half"]), Policy(concurrency=1)
    graded = []
    for name, task in (("last", lambda text: text[-1]), ("parity", lambda text: str(int(text[-1]) % 2))):
        run = Runner(store, policy).run(FunctionTask(task, name=name, version="1"), data, name=name)
        graded.append(Evaluator(store, policy).evaluate(run, {"said": Prediction()}, name=name))
    Aggregator(store).aggregate(graded, [Measure("said", Recall(label=label)) for label in ("0", "1")])
    a, b = (each.id for each in graded)
    found = read(store, f"compare/{a}/{b}")
    labels = ['recall(label="0") · said', 'recall(label="1") · said']
    assert found["grouped"] == [pair["label"] for pair in found["pairs"]] == labels
    tab.goto(f"{tab.origin}/c?a={a}&b={b}")
    choice = tab.get_by_role("region", name="Groups").get_by_role("combobox")
    choice.wait_for()
    assert choice.locator("option").all_text_contents() == labels
    choice.select_option(labels[1])
    tab.locator("caption").get_by_text(f"{labels[1]} in each group").wait_for()


def grade_terse_and_wordy(store: DirectoryStore) -> list[Evaluation]:
    """Two systems by two scorers, of which the second is worse in one of three groups by one of them."""
    rows = [{"input": f"{i}", "topic": ["plus", "times", "minus"][i % 3]} for i in range(90)]
    data, policy = Dataset.from_rows(rows, attributes=["topic"]), Policy(concurrency=1)
    scorers = {
        "any": FunctionScorer(lambda output: float(bool(output)), name="any", version="1"),
        "brief": FunctionScorer(lambda output: float(len(output) < 5), name="brief", version="1"),
    }
    graded = []
    for name, long in (("terse", None), ("wordy", 1)):
        task = FunctionTask(lambda text, long=long: text + "!" * 9 * (int(text) % 3 == long), name=name, version="1")
        run = Runner(store, policy).run(task, data, name=name)
        graded.append(Evaluator(store, policy).evaluate(run, scorers, name=name))
    Aggregator(store).aggregate(graded, [Measure("any", Accuracy()), Measure("brief", Accuracy())])
    return graded


def test_a_group_that_got_worse_is_read_with_the_p_value_of_its_metric(store: DirectoryStore) -> None:
    graded = grade_terse_and_wordy(store)
    a, b = (each.id for each in graded)
    found = read(store, f"compare-worse/{a}/{b}")
    [worse] = found["groups"]
    assert (worse["by"], worse["metric"], worse["difference"]) == ({"topic": "times"}, "accuracy · brief", -1.0)
    by_brief = [each for each in read(store, f"compare-groups/{a}/{b}", metric="1") if each["by"] == worse["by"]]
    assert worse["p_adjusted"] == by_brief[0]["p_adjusted"]  # as in the table of this metric, of its groups alone
    assert (worse["n_groups"], found["n"]) == (3, 6)
    stored = compare(*graded, by="topic").pairs
    [alike] = [p for p in stored if p["by"] == worse["by"] and p["scorer"] == "brief"]
    assert worse["p_adjusted"] == alike["p_holm"]
    assert read(store, f"compare-worse/{b}/{a}")["groups"] == []


def test_after_looks_a_group_is_shown_to_be_worse_by_its_interval_alone(store: DirectoryStore) -> None:
    data = Dataset.from_rows([{"input": n, "expected": 1, "part": "ab"[n % 2]} for n in range(120)], attributes="part")
    graded = []
    for name, task, until in (("a", lambda n: 1, None), ("b", lambda n: n % 2, {"rule": "", "drawn": 120, "of": 500})):
        run = Runner(store).run(task, data, origin={"experiment": "/m.yaml", "until": until}, name=name)
        graded.append(Evaluator(store).evaluate(run, {"right": lambda output, expected: output == expected}, name=name))
    Aggregator(store).aggregate(graded, [Measure("right", Accuracy())])
    found = read(store, f"compare-worse/{graded[0].id}/{graded[1].id}")
    assert [(group["by"], group["shown"], group["p_adjusted"]) for group in found["groups"]] == [
        ({"part": "a"}, "worse", None)
    ]
    assert found["n"] == 2


@pytest.mark.slow
def test_a_group_that_got_worse_is_shown_whatever_its_metric(tab: Any, store: DirectoryStore) -> None:
    a, b = (each.id for each in grade_terse_and_wordy(store))
    tab.goto(f"{tab.origin}/c?a={a}&b={b}")
    listed = tab.get_by_role("list", name="Groups that got worse")
    listed.get_by_role("link", name="topic=times").click()
    tab.locator("caption").get_by_text("accuracy · brief in each group").wait_for()
    assert "metric=1" in tab.url
    tab.goto(f"{tab.origin}/c?a={b}&b={a}")
    tab.get_by_text("No group is shown to be worse by any metric").wait_for()


def fail_at_3(text: str) -> str:
    if text.endswith("3"):
        raise ValueError("no")
    return text
