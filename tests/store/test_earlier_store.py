"""A store written by the version before 0.1.0 is read, continued and finished; see `store_0_0/README.md`."""

from __future__ import annotations

import csv
import importlib
import inspect
import io
import json
import shutil
import sys
import tarfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from support.stored import call, finish, read_all, read_json, read_status, sealed_ids

from evaluand import DirectoryStore, Evaluation, Run, SpecError
from evaluand.evaluation.evaluator import find_evaluations_of
from evaluand.evaluation.feedback.references import referred
from evaluand.evaluation.scorers.exact_match import ExactMatch

SAMPLE = Path(__file__).parent / "store_0_0"
EXPECTED = json.loads((SAMPLE / "expected.json").read_text())

VERSIONED = "interrupted/versioned"  # whose code did not count beside its version

resumes = pytest.mark.skipif(
    not Path("/proc/self/cwd").exists(), reason="the experiments are stored as files of the working folder of Linux"
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A copy of the sample."""
    with tarfile.open(SAMPLE / "store.tar.gz") as archive:
        archive.extractall(tmp_path, filter="data")
    return tmp_path


@pytest.fixture
def project(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A copy of the sample in the working folder, with the project's files."""
    for file in (SAMPLE / "project").iterdir():
        shutil.copy(file, folder / file.name.removesuffix(".txt"))
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "path", [str(folder), *sys.path])
    importlib.invalidate_caches()
    yield folder
    for name in ("sample_reviews", "sample_guide"):
        sys.modules.pop(name, None)


def test_all_that_was_stored_is_read_as_the_earlier_version_read_it(folder: Path) -> None:
    read = read_all(folder)
    assert [faults for _, faults in read["verify"] if faults] == []
    commands = dict(EXPECTED["commands"])
    exported, expected = read["commands"].pop("export"), commands.pop("export")
    for one in (read["commands"], commands):  # by scorer; since then the metric that is declared first comes first
        one["compare"] = sorted(([*row[:8], *row[9:]] for row in one["compare"]), key=str)  # p is now a mid-p value
    for part, values in read.items():
        assert values == (commands if part == "commands" else EXPECTED[part]), part
    for name, text in expected.items():
        assert columns_of(exported[name], header_of(text)) == columns_of(text, header_of(text)), name


def header_of(text: str) -> list[str]:
    return next(csv.reader(io.StringIO(text)))


def columns_of(text: str, names: list[str]) -> list[list[str]]:
    """The columns of a CSV that an earlier version wrote, too: later ones write more."""
    return [[row[name] for name in names] for row in csv.DictReader(io.StringIO(text))]


def test_a_copy_has_the_same_manifests_in_their_format(folder: Path) -> None:
    call(folder, "copy", str(folder / "store"), str(folder / "other"))
    places = sorted(path.relative_to(folder / "other") for path in (folder / "other").glob("*/*/manifest.json"))
    assert places == sorted(path.relative_to(folder / "store") for path in (folder / "store").glob("*/*/manifest.json"))
    for place in places:
        content = (folder / "other" / place).read_bytes()
        assert content == (folder / "store" / place).read_bytes()
        assert json.loads(content)["format"] == 1
    call(folder, "show", "reviews", "--store", str(folder / "other"))


def test_an_evaluation_without_the_id_of_its_run_is_that_of_the_run_it_came_from(folder: Path) -> None:
    store = DirectoryStore(folder / "store")
    sealed = [Evaluation(store, id) for id in sealed_ids(store, "evaluations")]
    assert {each.manifest["spec"].get("run_id") for each in sealed} == {None}
    for evaluation in sealed:
        run = evaluation.manifest["provenance"]["run"]
        assert evaluation.id in [each.id for each in find_evaluations_of(store, run)]
        assert evaluation.read_run().id == run


@pytest.mark.slow
def test_a_report_shows_the_stored_values(folder: Path) -> None:
    call(folder, "report", "reviews", "-o", str(folder / "reviews.html"))
    call(folder, "report", "guide/1", "-o", str(folder / "guide.html"))
    reviews, guide = (folder / "reviews.html").read_text(), (folder / "guide.html").read_text()
    assert all(text in reviews for text in ("short and right", "equalized_odds", "a review has no text", "words"))
    assert all(text in guide for text in ("Who wrote Emma?", "Jane Austen.", "relevance"))


# -- open artifacts


@resumes
def test_open_artifacts_are_finished_as_the_earlier_version_finishes_them(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    changed = call(project, "resume", "grading/quick", "--yes", code=1).stderr
    assert "cannot be resumed: its code, data or settings have changed since it began" in changed
    monkeypatch.setattr(ExactMatch, "version", 1)  # which grades these words alike
    begin = datetime.now(UTC)
    refused = call(
        project, "feedback", "work", "guide/3", "--allow", "sample_guide", "--allow", "sample_reviews", code=1
    )
    assert "feedback 'relevance' has changed since the recording was opened" in refused.stderr
    finished = finish(project)
    for name in ("grading/quick", "guide/3"):
        assert {**finished[name], "id": ""} == {**EXPECTED["finished"][name], "id": ""}
    call(project, "run", "interrupted.yaml", "--task", "versioned", "--keep-answers")
    assert read_json(project, "verify")["ok"]
    run = Run.open(DirectoryStore(project / "store"), VERSIONED)
    assert run.digest == EXPECTED["finished"][VERSIONED]["digest"]
    assert sum(started < begin for started in run.table()["started"].to_pylist()) == 5  # those were not called again
    assert [kept["kept"] for kept in run.manifest["kept"]] == [5]


@resumes
def test_a_run_whose_fingerprint_has_changed_is_refused_and_can_be_run_again(project: Path) -> None:
    refused = call(project, "resume", "interrupted/fingerprinted", "--yes", code=1)
    assert "cannot be resumed: its code, data or settings have changed since it began" in refused.stderr
    assert "start it again with `evaluand run`" in refused.stderr
    printed = call(project, "run", "interrupted.yaml", "--task", "fingerprinted").stdout
    assert "10 done now" in " ".join(printed.split())
    listed = [(run["name"], run["status"]) for run in read_json(project, "list", "runs")]
    assert listed.count(("interrupted/fingerprinted", "sealed")) == 1


def test_a_recording_whose_app_was_killed_is_closed_with_the_feedbacks_that_have_not_changed(project: Path) -> None:
    assert "was not begun by you in this store; allow it" in call(project, "resume", "guide/4", code=1).stderr
    call(project, "resume", "guide/4", "--allow", "sample_guide")
    status = read_status(project, "guide/4")
    assert status["status"] == "sealed"
    counts = {"right": {"abstained": 1, "scored": 3}}
    counts |= {
        name: {"failed": 1, "scored": 3} for name in ("strict", "waits")
    }  # whose code has changed, or now counts
    assert status["feedbacks"] == counts
    [evaluation] = [e for e in evaluations(project) if e.name == "guide/4"]
    [reason] = [row["reason"] for row in evaluation.table("strict").to_pylist() if row["status"] == "failed"]
    assert "feedback 'strict' has changed since the recording was opened" in reason


def evaluations(folder: Path) -> list[Evaluation]:
    store = DirectoryStore(folder / "store")
    return [Evaluation(store, id) for id in sealed_ids(store, "evaluations")]


# -- reuse


def test_answers_pinned_by_a_version_alone_are_reused_only_where_that_is_asked_and_said(project: Path) -> None:
    for experiment, name, task in (("experiment", "reviews", "counting"), ("names", "names", "capitals")):
        command = ("run", f"{experiment}.yaml", "--task", task, "--keep-answers")
        call(project, *command)
        run = Run.open(DirectoryStore(project / "store"), f"{name}/{task}")
        [kept] = run.manifest["kept"]
        assert kept["kept"] == run.counts["completed"]


@pytest.mark.parametrize("provider", EXPECTED["references"])
def test_methods_of_providers_are_found_by_the_names_they_had(provider: str) -> None:
    for method in EXPECTED["references"][provider]:
        reference = {"class": provider, "method": method, "parameters": parameters_of(provider)}
        assert referred(reference).likeness.__name__ == method


def parameters_of(provider: str) -> dict[str, None]:
    """Those that the class needs."""
    needed = {
        "GroundTruth": "ground_truth",
        "GroundTruthAgreement": "ground_truth",
        "GroundTruthAggregator": "true_labels",
    }
    name = needed.get(provider.rpartition(":")[2])
    return {} if name is None else {name: None}


def test_a_stored_name_leads_only_to_what_evaluand_had_there() -> None:
    with pytest.raises(SpecError, match=r"evaluand.providersx:f may not be imported"):
        referred({"function": "evaluand.providersx:f"})
    assert inspect.isfunction(referred({"function": "evaluand.feedback:mean"}).make())
