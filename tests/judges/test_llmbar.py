"""Cards of judges of LLMBar's natural pairs: two large models, from what they said, and a small one that is asked."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
from pathlib import Path

import numpy as np
import pytest
from support.commands import Folder
from support.pages import blocks_of
from support.places import DATA_FOLDER, ROOT_FOLDER, needs

from evaluand import Dataset, DirectoryStore, Matcher, Policy, Runner
from evaluand.judges import PairwiseJudge, make_card
from evaluand.judges.cards.card import JudgeCard
from evaluand.matches import read_labelled_matches
from evaluand.matches.people import Judged, match_by_people, pairs_to_judge
from evaluand.metrics.prediction_powered import PredictionPowered, prediction_powered_mean
from evaluand.models import ChatModel

LLMBAR = DATA_FOLDER / "llmbar"
PAGE = ROOT_FOLDER / "docs" / "howto" / "judge-cards.md"
SAMPLE = int(os.environ.get("LLMBAR_PAIRS", "3"))  # those with the shortest texts; all 100 take about ten minutes

pytestmark = needs(LLMBAR)


def value(card: JudgeCard, measure: str, part: str = "") -> float:
    found = card.find(measure, part)
    assert found is not None, f"no {measure}"
    return found.value


def commands_of_page() -> list[list[str]]:
    """The commands of the guide that read the files of LLMBar."""
    [block] = [each for each in blocks_of("docs/howto/judge-cards.md") if "Natural.GPT-4.Swap.json" in each.text]
    lines = block.text.replace("\\\n", " ").splitlines()
    return [shlex.split(line)[1:] for line in lines if line.startswith("evaluand")]


@pytest.mark.parametrize(
    ("judge", "agreement", "consistent", "favour", "first_won"),
    [("GPT-4", (0.94, 0.95), 97, (3, 0), 103), ("ChatGPT", (0.77, 0.78), 89, (6, 5), 101)],
)
def test_what_two_models_said_gives_the_figures_of_the_guide(
    judge: str,
    agreement: tuple[float, float],
    consistent: int,
    favour: tuple[int, int],
    first_won: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copyfile(LLMBAR / f"Natural.{judge}.Swap.json", tmp_path / f"Natural.{judge}.Swap.json")
    [command] = [each for each in commands_of_page() if f"Natural.{judge}.Swap.json" in each]
    made = Folder(tmp_path).call(*command, "--json")
    assert made.exit_code == 0, made.output
    card = JudgeCard.open(DirectoryStore(tmp_path / "store"), judge)
    for order, share in zip(("first order", "second order"), agreement, strict=True):
        found = card.find("agreement", order)
        assert found is not None
        assert found.value == share
        assert found.low < share < found.high < found.low + 0.2
    assert value(card, "consistency") == pytest.approx(consistent / 100)
    assert value(card, "position_bias") == pytest.approx(first_won / 200)
    notes = {row["measure"]: row["note"] for row in card.measures}
    assert notes["consistency"] == f"{consistent} of 100; {favour[0]} favour the first place, {favour[1]} the second"
    shown = " ".join(PAGE.read_text(encoding="utf-8").split())
    low, high = (format(getattr(card.find("agreement", "first order"), end), ".2f") for end in ("low", "high"))
    assert re.search(rf"{judge} .{{0,30}}{agreement[0]:.2f} \[{low}, {high}\].*{consistent} of 100", shown)


@pytest.mark.slow  # draws five hundred times
@pytest.mark.parametrize("judge", ["GPT-4", "ChatGPT"])
def test_half_of_the_labels_and_a_real_judge_estimate_the_rest(judge: str) -> None:
    rows = json.loads((LLMBAR / f"Natural.{judge}.Swap.json").read_text(encoding="utf-8"))
    judged = np.array([float(str(row["results"][0]["swap = False"]["winner"]) == "1") for row in rows])
    labels = np.array([float(row["label"] == 1) for row in rows])
    truth, draw = labels.mean(), np.random.default_rng(0)

    def estimate() -> PredictionPowered:
        known = np.full(100, np.nan)
        chosen = draw.permutation(100)[:50]
        known[chosen] = labels[chosen]
        return prediction_powered_mean(judged, known, range=(0.0, 1.0))

    found = [estimate() for _ in range(500)]

    def figures(name: str) -> list[float]:
        ends = np.array([getattr(each, name)[:3] for each in found])
        return [np.sqrt(np.mean((ends[:, 0] - truth) ** 2)), np.mean(ends[:, 2] - ends[:, 1])]

    (error, width), (error_of_both, width_of_both) = figures("people"), figures("both")
    mean = np.mean([each.both.value for each in found])
    covered = np.mean([each.both.low <= truth <= each.both.high for each in found])
    cells = [f"{judged.mean():.2f}", *(f"{one:.3f}" for one in (mean, error, error_of_both, width, width_of_both))]
    page = (PAGE.parent / "judge-and-people.md").read_text(encoding="utf-8")
    assert f"| {' | '.join([judge, *cells, f'{covered:.2f}'])} |" in page


@pytest.mark.slow
def test_a_small_model_is_measured_on_the_same_pairs(smollm: ChatModel, tmp_path: Path) -> None:
    rows = json.loads((LLMBAR / "LLMBar_Natural.json").read_text(encoding="utf-8"))
    rows = sorted(rows, key=lambda row: sum(map(len, map(str, row.values()))))[:SAMPLE]
    by_input = {row["input"]: row for row in rows}
    store = DirectoryStore(tmp_path / "store")
    data = Dataset.from_rows([{"input": row["input"]} for row in rows])
    labels = ["output_1", "output_2"]
    runs = [Runner(store).run(lambda text, of=of: by_input[text][of], data, name=of) for of in labels]
    model = ChatModel(smollm.url, "smollm2", version="135M-Q4_1", max_tokens=150, timeout=600)
    judge = PairwiseJudge(rubric="pairwise", model=model)
    matches = Matcher(store, Policy(concurrency=2, timeout=None)).match(runs, judge, labels=labels)
    experts = [
        Judged(pair.key, ("first", "second")[(pair.first == row["output_1"]) != (row["label"] == 1)], "experts", None)
        for pair in pairs_to_judge(runs, by="experts")
        for row in [by_input[pair.input]]
    ]
    match_by_people(runs, experts, labels=labels)
    card = make_card(read_labelled_matches(matches), store)
    statuses = matches.table().column("status").to_pylist()
    assert len(statuses) == 2 * SAMPLE
    assert {*statuses} <= {"scored", "abstained"}
    assert card.manifest["spec"]["items"] == SAMPLE
    abstained = card.find("abstained")
    assert (abstained is not None) == ("abstained" in statuses)
    facts = card.to_dict()
    assert facts["usage"]["requests"] >= 2 * SAMPLE
    assert facts["seconds"]["median"] > 0
