"""A scorer of a plug-in that says itself whether it was measured is gated as a judge is."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from support.forks import in_fork
from support.labelled import play_numbers

from evaluand import Evaluation, Evaluator, MemoryStore
from evaluand.comparison.gates import check_gates
from evaluand.evaluation.scorer import Scorer
from evaluand.evaluation.standing import CorrectedMean, Status
from evaluand.metrics.judging.estimate import Estimate
from evaluand.report.facts.judges import card_facts, judge_facts

PLUGIN = """\
[evaluand.scorers]
taster = {module}:Taster
"""


@dataclass(frozen=True)
class TasterStanding:
    """A taster is measured once it has a certificate; it errs on one answer in ten."""

    name: str
    certificate: str | None
    digest: str = "7a57e5"
    changed: tuple[str, ...] = ()

    @property
    def status(self) -> Status:
        return "unmeasured" if self.certificate is None else "measured"

    @property
    def card_id(self) -> str | None:
        return self.certificate

    @property
    def finding(self) -> str:
        return "unmeasured" if self.certificate is None else f"certified by {self.certificate}"

    @property
    def remedy(self) -> str:
        return "send it to the school of tasters"

    @property
    def text(self) -> str:
        return self.finding

    def correct(self, evaluation: Evaluation, scorer: str) -> CorrectedMean:
        rate = Estimate(0.9, 0.85, 0.95, 100, 100.0)
        return CorrectedMean(Estimate(0.5, 0.4, 0.6, 100, 100.0), (rate, rate), 0.95, True, 0, 100)


@dataclass(frozen=True)
class Taster(Scorer):
    """Likes even numbers."""

    kind = "taster"
    version = 1
    is_judge = True

    certificate: str | None = None

    @classmethod
    def standing(cls, evaluation: Evaluation, name: str) -> TasterStanding:
        parameters = evaluation.manifest["spec"]["scorers"][name]["parameters"]
        return TasterStanding(name, parameters["certificate"])

    def score(self, output: Any, expected: Any) -> bool:  # type: ignore[override]
        return bool(output % 2 == 0)


@pytest.fixture
def plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The metadata of an installed package that has the scorer."""
    metadata = tmp_path / "tasters-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Name: tasters\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(PLUGIN.format(module=__name__))
    monkeypatch.syspath_prepend(str(tmp_path))


@in_fork
def test_of_two_copies_of_a_package_the_first_on_the_path_counts_whole(
    plugin: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from evaluand.core import registry

    older = tmp_path / "later" / "tasters-0.9.dist-info"
    older.mkdir(parents=True)
    (older / "METADATA").write_text("Name: tasters\nVersion: 0.9\n")
    (older / "entry_points.txt").write_text("[evaluand.scorers]\ntaster = gone:Taster\nbitter = gone:Bitter\n")
    monkeypatch.setattr("sys.path", [*sys.path, str(older.parent)])
    registry._installed.cache_clear()
    registry._entry_points.cache_clear()
    assert "bitter" not in registry.names("scorers")
    assert registry.find("scorers", "taster").__module__ == __name__


@in_fork
def test_a_scorer_says_itself_whether_it_was_measured(plugin: None) -> None:
    from evaluand.core import registry

    registry._installed.cache_clear()
    registry._entry_points.cache_clear()
    store = MemoryStore()
    run = play_numbers(store, range(100))

    def check(taster: Taster, rule: str) -> Any:
        evaluation = Evaluator(store).evaluate(run, {"sweet": taster})
        [result] = check_gates([rule], {"mine": evaluation})
        return result

    refused = check(Taster(), "accuracy >= 0.5")
    assert not refused.passed
    assert refused.message == (
        "refused: judge 'sweet' is unmeasured; send it to the school of tasters, or allow it with"
        " --allow-unmeasured-judges (in an experiment file: allow_unmeasured_judges: true)"
    )
    passed = check(Taster("Ann"), "accuracy >= 0.5")
    assert passed.passed
    assert passed.message.startswith(
        "0.5; 100 rows: 100 scored; judge 'sweet': certified by Ann; corrected for its errors 0.5 ["
    )
    assert passed.facts["judges"][0]["card"] == "Ann"
    [described] = judge_facts({"mine": Evaluator(store).evaluate(run, {"sweet": Taster("Ann")})})
    assert (described["text"], described["corrected"]["value"]) == ("certified by Ann", pytest.approx(0.5))
    assert card_facts(store, [described]) == []  # it has no card of a judge
    assert check(Taster("Ann"), "corrected_mean >= 0.4").message.startswith("0.5; 0.5 judged right; judge 'sweet':")
