"""Matches in experiments: who is compared by which judge, what is judged again, and what is wrong with a file."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from support import casing
from support.casing import EXPERIMENT, write_rows_and_code
from support.json_schemas import jsonschema

from evaluand import Dataset, DirectoryStore, Experiment, Matches, MemoryStore, Run, Runner, SpecError
from evaluand.core.errors import EvaluandError
from evaluand.evaluation import ByScore
from evaluand.experiment import json_schema
from evaluand.experiment.access import read_access
from evaluand.experiment.gates import evaluate_match_gates
from evaluand.experiment.parsing import parse_file
from evaluand.matches import AgainstBaseline
from evaluand.predictions import Tournament
from evaluand.report.verification import verify
from evaluand.testing import assert_gate

CODE = (
    casing.CODE
    + """

from evaluand import ComparisonScorer


def right(output, expected):
    return output == expected


class Longer(ComparisonScorer):
    kind = "longer"
    version = 1

    def __init__(self, margin=0):
        self.margin = margin

    def compare(self, first, second):
        return 0.5

    def identify(self):
        from evaluand.core.fingerprint import Identity

        return Identity({"kind": self.kind, "margin": self.margin})
"""
)

ALL = {"upper": 35, "early": 20, "same": 5}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_rows_and_code(tmp_path, CODE)
    return tmp_path


@pytest.fixture(scope="module")
def file_schema() -> Any:
    return jsonschema.Draft202012Validator(json_schema())


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore()


def load(folder: Path, more: str, text: str = EXPERIMENT) -> Experiment:
    (folder / "e.yaml").write_text(text + more)
    return Experiment.from_file(folder / "e.yaml")


def faults(folder: Path, more: str, text: str = EXPERIMENT) -> list[str]:
    """What is wrong with a file, line by line; the first line of `more` is 6."""
    with pytest.raises(EvaluandError) as refused:
        load(folder, more, text)
    return [line.removeprefix(f"{folder}/e.yaml:") for line in str(refused.value).splitlines()]


def judged(experiment: Experiment, store: Any, name: str = "matches", **options: Any) -> tuple[int, int, int]:
    """How many judgements were made now, reused and stored before."""
    receipt = experiment.run(store, **options).matches[name].receipt
    assert receipt is not None
    return receipt.called, receipt.reused, receipt.kept


def points(experiment: Experiment, store: Any, **options: Any) -> dict[str, float]:
    """What each system won in the one set of matches of an experiment."""
    [matches] = experiment.run(store, **options).matches.values()
    return count_points(matches)


def count_points(matches: Matches) -> dict[str, float]:
    """What each system won of its matches, each order being one, with ties of ½."""
    won = dict.fromkeys(matches.systems, 0.0)
    for row in matches.table(["a", "b", "outcome"]).to_pylist():
        won[matches.systems[row["a"]]] += row["outcome"]
        won[matches.systems[row["b"]]] += 1 - row["outcome"]
    return won


def test_the_tasks_of_a_file_are_compared_by_a_judge_and_rated(folder: Path) -> None:
    store = DirectoryStore(folder / "store")
    experiment = load(folder, "matches: app.py:cased\n")
    results = experiment.run(store)
    [(name, matches)] = results.matches.items()
    assert (name, matches.name, matches.counts) == ("matches", "casing/matches", {"scored": 60})
    assert [run.name for run in matches.runs if run] == [f"casing/{task}" for task in ("upper", "early", "same")]
    assert points(experiment, store) == ALL
    assert assert_gate(results, "win_rate(upper, same) >= 0.55 at 95%")[0].passed
    with pytest.raises(AssertionError, match="FAILED  same: 0; win rate 0 of 10 matches"):
        assert_gate(results, "same wins against upper >= 55%")
    with pytest.raises(SpecError, match="gates of ratings name the systems themselves"):
        assert_gate(results, "win_rate(upper, same) >= 0.55", scorer="right")
    ratings = results.ratings["matches"]
    assert (ratings.name, [row["system"] for row in ratings.ratings]) == ("casing/matches", ["upper", "early", "same"])
    assert ratings.ratings[0]["won"] == 15  # both orders of a pair are one match
    assert ratings.signature in str(results)
    assert not verify(store, "ratings", ratings.id)


def test_ratings_of_an_experiment_may_be_at_equal_length(folder: Path, store: MemoryStore) -> None:
    rating = "{equal_length: {baseline: same}}"
    results = load(folder, f"matches: {{judge: app.py:cased, rating: {rating}}}\n").run(store)
    [ratings] = results.ratings.values()
    assert ratings.signature == "equal_length v2 baseline=same interval=clustered_wilson 95%"
    assert not verify(store, "ratings", ratings.id)


def test_only_new_pairs_are_judged_when_a_task_or_an_example_is_added(folder: Path, store: MemoryStore) -> None:
    both = EXPERIMENT.replace(", app.py:same", "")
    assert judged(load(folder, "matches: app.py:cased\n", both), store) == (10, 0, 0)  # of 20, 10 are equal
    assert judged(load(folder, "matches: app.py:cased\n"), store) == (10, 10, 0)  # others are the same pairs
    assert judged(load(folder, "matches: app.py:cased\n"), store) == (0, 0, 20)
    with (folder / "rows.jsonl").open("a") as file:
        file.write('\n{"input": "k", "expected": "K"}')
    assert judged(load(folder, "matches: app.py:cased\n"), store) == (2, 20, 0)


JUDGES = [
    "{by_score: right}",
    "{by_score: exact_match}",
    "{by_score: {scorer: right, margin: 0.5}}",
    "{by_score: {kind: exact_match}}",
    "{by_score: app.py:right}",
    "{kind: by_score, scorer: {function: app.py:right}}",
    "{function: app.py:cased, version: '2'}",
]


def test_a_judge_is_code_or_compares_the_scores_of_a_scorer(folder: Path, file_schema: Any) -> None:
    entries = [f"  - {{name: m{i}, judge: {judge}}}\n" for i, judge in enumerate(JUDGES)]
    results = load(folder, "matches:\n" + "".join(entries)).run()
    assert [count_points(matches) for matches in results.matches.values()] == [ALL] * len(JUDGES)
    file_schema.validate(yaml.safe_load((folder / "e.yaml").read_text()))


def test_a_class_of_judges_takes_its_parameters(folder: Path) -> None:
    experiment = load(folder, "matches: {judge: {function: app.py:Longer, parameters: {margin: 3}}}\n")
    assert set(points(experiment, MemoryStore()).values()) == {20.0}
    [matches] = experiment.run().matches.values()
    assert matches.manifest["spec"]["judge"] == {"kind": "longer", "margin": 3}


def test_several_sets_of_matches_have_names_schedules_orders_and_ratings(folder: Path, store: MemoryStore) -> None:
    experiment = load(
        folder,
        """matches:
  - {name: cased, judge: app.py:cased, schedule: {against_baseline: early}, orders: random, seed: 3}
  - {name: graded, judge: {by_score: right}, tasks: [upper, same], rating: {win_rate: {baseline: same}}}
  - {name: swiss, judge: {by_score: right}, schedule: {swiss: {budget: 12}}, rating: none}
""",
    )
    results = experiment.run(store)
    assert [(name, each.systems) for name, each in results.matches.items()] == [
        ("cased", ["upper", "early", "same"]),
        ("graded", ["upper", "same"]),
        ("swiss", ["upper", "early", "same"]),
    ]
    cased, graded, swiss = (each.table().to_pylist() for each in results.matches.values())
    assert {(row["a"], row["b"]) for row in cased} == {(0, 1), (1, 2)}
    assert len(cased) == len(graded) == 20
    assert 0 < sum(row["judgement"] is not None for row in swiss) <= 12
    assert set(results.ratings) == {"cased", "graded"}
    assert [row["rating"] for row in results.ratings["graded"].ratings] == [1.0, 0.5]


def test_earlier_runs_are_compared_with_the_tasks(folder: Path, store: MemoryStore) -> None:
    load(folder, "", EXPERIMENT.replace("casing", "before")).run(store)
    two = EXPERIMENT.replace(", app.py:early, app.py:same", "")
    named = load(folder, "matches: {judge: app.py:cased, runs: [before/same, before/early]}\n", two)
    assert points(named, store) == {"upper": 35, "before/same": 5, "before/early": 20}
    id = Run.open(store, "before/same").id
    labelled = load(folder, f"matches: {{judge: app.py:cased, runs: {{old: {id[:10]}}}}}\n", two)
    assert points(labelled, store) == {"upper": 20, "old": 0}
    assert points(named, store, limit=2) == {"upper": 6, "before/same": 0, "before/early": 6}


@pytest.mark.parametrize(
    ("runs", "message"),
    [
        ("[before/upper]", "runs: nothing is called 'before/upper' here"),
        ("[casing/same]", "runs: 'casing/same' are the runs of task 'same', which is compared; give the id of another"),
        ("[other]", "runs: 'other' is over other examples than this experiment"),
    ],
)
def test_earlier_runs_that_cannot_be_compared_are_refused_before_anything_is_called(
    folder: Path, store: MemoryStore, runs: str, message: str
) -> None:
    Runner(store).run(str.upper, Dataset.from_rows([{"input": "x"}]), name="other")
    experiment = load(folder, f"matches: {{judge: app.py:cased, runs: {runs}}}\n")
    with pytest.raises(SpecError) as refused:
        experiment.run(store)
    assert message in str(refused.value)
    assert len(store.ids("runs")) == 1


def test_a_condition_and_a_limit_hold_for_matches_too(folder: Path) -> None:
    experiment = load(folder, "matches: app.py:cased\n")
    assert points(experiment, MemoryStore(), limit=3) == {"upper": 9, "early": 9, "same": 0}
    some = experiment.where('input > "h"')
    assert points(some, MemoryStore()) == {"upper": 8, "early": 2, "same": 2}


def test_one_task_alone_has_no_matches(folder: Path) -> None:
    results = load(folder, "matches: app.py:cased\n").run(only="upper")
    assert (results.matches, results.ratings) == ({}, {})


def test_systems_that_cannot_be_rated_are_named_with_the_reason(folder: Path) -> None:
    code = CODE.replace("return text.upper()\n", "raise ValueError(text) if text == 'b' else None\n")
    (folder / "app.py").write_text(code)
    results = load(folder, "matches: {judge: app.py:cased, rating: {missing: refuse}}\n").run()
    assert results.ratings == {}
    assert "missing=refuse" in results.unrated["matches"]
    assert [each["unrated"] for each in results.matches_facts()] == [results.unrated["matches"]]


def test_tournaments_of_python_are_those_of_a_file(folder: Path) -> None:
    experiment = load(folder, "matches: {judge: {by_score: right}, schedule: {against_baseline: same}}\n")
    other = replace(experiment, matches=[Tournament(ByScore("exact_match"), schedule=AgainstBaseline("same"))])
    mine, theirs = (each.run().matches["matches"].digest for each in (experiment, other))
    assert mine == theirs
    with pytest.raises(SpecError, match=r"matches must be a list of Tournament"):
        replace(experiment, matches="cased")
    with pytest.raises(SpecError, match=r"two tournaments are called 'matches'; give each its own name"):
        replace(experiment, matches=[Tournament(ByScore("exact_match"))] * 2)
    with pytest.raises(SpecError, match=r"runs must be a list of names"):
        Tournament(ByScore("exact_match"), runs="before")  # type: ignore[arg-type]
    with pytest.raises(SpecError, match=r"matches need two systems or more, and there is same; add a task, or"):
        Tournament(ByScore("exact_match")).systems(["same"])


def test_the_version_of_a_judge_is_a_text_as_it_is_written(folder: Path) -> None:
    [one] = load(folder, "matches: {judge: {function: app.py:cased, version: 1.10}}\n").run().matches.values()
    assert one.manifest["spec"]["judge"]["version"].startswith("1.10 of app.py:cased")


# What is wrong with a file


@pytest.mark.parametrize(
    ("matches", "reported"),
    [
        ("{}", ["6: matches.judge: is missing; write judge: judge.py:better, or judge: {by_score: exact_match}"]),
        ("3", ["6: matches: is 3; give a list"]),
        ("better", ["6: matches.judge: no comparison scorer is called 'better'; a function is {function: judge"]),
        ("app.py:csed", ["6: matches.judge: app.py has no 'csed' (did you mean 'cased'?)"]),
        ("app.py:right", ["6: matches.judge: judge 'right' asks for output; a judge is given first,"]),
        ("{judge: app.py:cased, orders: twice}", ["6: matches.orders: is 'twice'; give 'both' or 'random'"]),
        ("{judge: app.py:cased, seed: x}", ["6: matches.seed: is 'x'; give an integer"]),
        ("{judges: app.py:cased}", ["6: matches.judges: unknown key; write judge: judge.py:better, or"]),
        ("{judge: app.py:cased, baseline: same}", ["6: matches.baseline: unknown key; write schedule: {against_base"]),
        ("{judge: {by_score: rigt}}", ["6: matches.judge: no scorer is called 'rigt'"]),
        (
            "{judge: {by_score: {scorer: exact_match, margn: 1}}}",
            ["6: matches.judge.by_score.margn: by_score has no such parameter (did you mean 'margin'?); it has"],
        ),
        (
            "{judge: {by_score: {scorer: {kind: exact_match, any: 1}}}}",
            ["6: matches.judge.by_score.scorer.any: exact_match has no such parameter (did you mean 'any_of'?)"],
        ),
        ("{judge: {by_score: {scorer: exact_match, higher_is_better: yes}}}", ["6: matches.judge.by_score.higher_is_"]),
        ("{judge: {scorer: right}}", ["6: matches.judge: is a mapping of scorer; give by_score: right"]),
        ("{judge: {function: app.py:Longer, batch: true}}", ["6: matches.judge: app.py:Longer is a class of comp"]),
        ("{judge: app.py:cased, tasks: [upper, sme]}", ["6: matches: no task is called 'sme' (did you mean 'same'?)"]),
        ("{judge: app.py:cased, tasks: [upper]}", ["6: matches: matches need two systems or more, and there is upper"]),
        (
            "{judge: app.py:cased, tasks: [same, same]}",
            ["6: matches: two systems are called 'same'; give each its own"],
        ),
        ("{judge: app.py:cased, schedule: swiss}", ["6: matches.schedule.budget: "]),
        ("{judge: app.py:cased, schedule: {against_baseline: sme}}", ["6: matches: baseline 'sme' is not one of"]),
        ("{judge: app.py:cased, rating: elo}", ["6: matches.rating: method is 'elo'; give one of bradley_terry"]),
        (
            "{judge: app.py:cased, rating: {tie: half}}",
            ["6: matches.rating.tie: rating has no such parameter (did you"],
        ),
        ("{judge: app.py:cased, rating: {win_rate: {baseline: sme}}}", ["6: matches: baseline 'sme' is not one of"]),
        (
            "{judge: app.py:cased, rating: {equal_length: {baseline: sme}}}",
            ["6: matches: baseline 'sme' is not one of"],
        ),
        ("[app.py:cased, app.py:cased]", ["6: matches.1: two entries are called 'matches'; give each its own name"]),
        (
            "{schedule: {swis: {budget: 3}}, rating: {methd: x}, orders: randm}",
            [
                "6: matches.judge: is missing; write judge: judge.py:better, or judge: {by_score: exact_match}",
                "6: matches.orders: is 'randm'; give 'both' or 'random'",
                "6: matches.schedule.swis: no schedule is called 'swis' (did you mean 'swiss'?)",
                "6: matches.rating.methd: rating has no such parameter; it has kind",
            ],
        ),
        ("{judge: app.py:cased, name: ' '}", ["6: matches: a name must not be empty or blank: ' '"]),
    ],
)
def test_faults_of_matches_are_reported_by_line(folder: Path, matches: str, reported: list[str]) -> None:
    found = faults(folder, f"matches: {matches}\n")
    assert len(found) == len(reported), found
    for line, beginning in zip(found, reported, strict=True):
        assert line.startswith(beginning), line


def test_a_judge_by_a_scorer_with_faults_is_not_reported_twice(folder: Path) -> None:
    text = EXPERIMENT.replace("exact_match", "{kind: exact_match, normalize: 1}")
    with pytest.raises(EvaluandError) as refused:
        load(folder, "matches: {judge: {by_score: right}}\n", text)
    assert len(str(refused.value).splitlines()) == 1


@pytest.mark.parametrize(
    ("gate", "message"),
    [
        ("win_rate(uper) > 0.5", "no system is called 'uper' (did you mean 'upper'?): upper, early, same"),
        ("upper wins against eary > 50%", "no system is called 'eary' (did you mean 'early'?): upper, early, same"),
        ("win_rate(upper, early, matches=helpful) > 0.5", "no matches are called 'helpful': matches"),
        ("upper wins against early", "at 25: found the end, expected >=, <=, >, <"),
        ("upper wins > 0.5 by 3", "at 18: found 'by', expected `at …%` or the end"),
        ("upper wins > 55", "a share of wins lies between 0 and 1, never at 55; write 55 % or 0.55"),
        (
            "rating(upper) > 55 %",
            "a Bradley–Terry rating, in points, is no share from 0 to 1; write the threshold without %",
        ),
    ],
)
def test_faults_of_gates_of_matches_are_reported_by_line(folder: Path, gate: str, message: str) -> None:
    [line] = faults(folder, f"matches: app.py:cased\ngates: ['{gate}']\n")
    assert line == f"7: gates.0: gate '{gate}': {message}"


def test_a_gate_of_matches_needs_matches_that_are_rated(folder: Path) -> None:
    [line] = faults(folder, "gates: ['upper wins > 0.5']\n")
    assert line == "6: gates.0: gate 'upper wins > 0.5' is about matches; add matches: FILE.py:JUDGE"
    [line] = faults(folder, "matches: {judge: app.py:cased, rating: none}\ngates: [rating(upper) > 1]\n")
    assert line == "7: gates.0: gate 'rating(upper) > 1' needs ratings, and 'matches' has rating: none"


def test_a_gate_names_one_of_several_sets_of_matches(folder: Path) -> None:
    two = "matches: [{name: a, judge: app.py:cased}, {name: b, judge: app.py:cased, tasks: [early, same]}]\n"
    gates = "gates: ['win_rate(early, same, matches=b) > 0.7', 'win_rate(early, matches=a) < 0.6']\n"
    experiment = load(folder, two + gates)
    results = experiment.run()
    checked = evaluate_match_gates(experiment.gates, results.ratings, results.unrated)
    assert [(each.subject, each.passed) for each in checked] == [("early", True)] * 2
    [line] = faults(folder, two + "gates: ['early wins > 0.5']\n")
    assert line == "7: gates.0: gate 'early wins > 0.5': name the matches: win_rate(SYSTEM, matches=a | b)"


def test_gates_of_matches_with_faults_are_not_reported(folder: Path) -> None:
    two = "matches: [{name: a, judge: app.py:cased}, {name: b, judge: app.py:cased, seed: x}]\n"
    [line] = faults(folder, two + "gates: ['win_rate(early, matches=b) > 0.7', early wins > 0.5]\n")
    assert line == "6: matches.1.seed: is 'x'; give an integer"


def test_what_a_judge_reaches_is_listed_without_importing_anything(folder: Path) -> None:
    (folder / "e.yaml").write_text(
        EXPERIMENT
        + """matches:
  - {name: a, judge: "evil:better"}
  - {name: b, judge: {by_score: "worse.py:grade"}}
  - {name: c, judge: {by_score: {kind: feedback, implementation: "other.py:judge"}}}
"""
    )
    spec, _ = parse_file(folder / "e.yaml")
    code = {module.module: module.where for module in read_access(spec, folder).code}
    assert code["evil"] == ["matches.0.judge"]
    assert code["worse.py"] == ["matches.1.judge"]
    assert code["other.py"] == ["matches.2.judge"]


PAIRWISE = """name: casing
dataset: {path: rows.jsonl, input: input}
tasks: [app.py:upper, app.py:early, app.py:same]
matches: app.py:cased
"""


def test_an_experiment_with_matches_needs_no_scorers(folder: Path, store: MemoryStore, file_schema: Any) -> None:
    file_schema.validate(yaml.safe_load(PAIRWISE))
    results = load(folder, "gates: win_rate(upper, same) >= 0.9\n", PAIRWISE).run(store)
    assert (results.aggregation, results.comparison, results.evaluations) == (None, None, {})
    assert results.matches["matches"].counts == {"scored": 60}
    assert "upper" in str(results)
    with pytest.raises(SpecError, match="nothing was graded, so a gate about a metric cannot be checked; add scorers"):
        assert_gate(results, "accuracy >= 90 %")
    judge = Tournament(lambda first, second: "tie")
    data = results.tasks[0].run.dataset
    alone = Experiment("e", data, {"a": str.upper, "b": str.title}, matches=[judge])
    assert [*alone.run().matches] == ["matches"]
    with pytest.raises(SpecError, match="scorers must be a mapping name: scorer with at least one"):
        Experiment("e", data, alone.tasks)


@pytest.mark.parametrize(
    ("more", "reported"),
    [
        ("metrics: accuracy", ["1: scorers: is missing; write scorers: {right: exact_match}"]),
        ("scorers: exact_match", ["1: metrics: is missing; write metrics: [accuracy]"]),
        ("fairness: [{criterion: equalized_odds, by: x}]", ["1: scorers: is missing", "1: metrics: is missing"]),
        ("gates: accuracy >= 0.9", ["5: gates.0: gate 'accuracy >= 0.9' is about a metric; write scorers and metrics"]),
    ],
)
def test_scorers_and_metrics_are_needed_together(
    folder: Path, file_schema: Any, more: str, reported: list[str]
) -> None:
    found = faults(folder, more, PAIRWISE)
    assert [line[: len(start)] for line, start in zip(found, reported, strict=True)] == reported
    if more.startswith(("metrics", "scorers")):
        assert not file_schema.is_valid(yaml.safe_load(PAIRWISE + more))


@pytest.mark.parametrize(
    ("more", "reported"),
    [
        ("matches: {judge: app.py:cased, task: [upper]}", "4: matches.task: unknown key; write tasks: [NAME]"),
        ("match: app.py:cased", "4: match: unknown key; write matches: {judge: judge.py:better}"),
        ("", "1: matches: is missing, and gate 'upper wins > 0.5' is about matches; add matches: FILE.py:JUDGE"),
    ],
)
def test_a_gate_of_matches_with_faults_is_not_reported_too(folder: Path, more: str, reported: str) -> None:
    without = PAIRWISE.replace("matches: app.py:cased\n", f"{more}\n")
    assert faults(folder, "gates: [upper wins > 0.5]\n", without) == [reported]


RECORDED = (
    EXPERIMENT.replace("input: input,", "id: input, input: input,") + "matches: {judge: {recorded: votes.jsonl}}\n"
)


def write_votes(folder: Path, letters: str, winner: str = "upper") -> None:
    votes = [{"id": letter, "model_a": "upper", "model_b": "same", "winner": winner} for letter in letters]
    (folder / "votes.jsonl").write_text("\n".join(map(json.dumps, votes)))


class InterruptedStore(DirectoryStore):
    """A store whose process is interrupted before it seals matches."""

    def draft(self, kind: str, id: str) -> Any:
        if kind == "matches":
            raise KeyboardInterrupt
        return super().draft(kind, id)


def test_a_file_of_battles_judges_the_tasks(folder: Path, store: MemoryStore) -> None:
    write_votes(folder, "aeh")
    experiment = load(folder, "", RECORDED)
    assert experiment.run(store).matches["matches"].counts == {"scored": 3 + 10, "skipped": 17}
    assert experiment.run(store, limit=5).matches["matches"].counts == {"scored": 2 + 5, "skipped": 8}
    write_votes(folder, "aehj", "same")
    changed = load(folder, "", RECORDED).run(store)
    assert changed.matches["matches"].counts == {"scored": 4 + 10, "skipped": 16}
    assert changed.matches["matches"].id != experiment.run(store, limit=5).matches["matches"].id


@pytest.mark.slow
def test_recorded_matches_that_were_interrupted_are_resumed_unless_the_file_has_changed(folder: Path) -> None:
    write_votes(folder, "aeh")
    for limit in (None, 5):
        with pytest.raises(KeyboardInterrupt):
            load(folder, "", RECORDED).run(InterruptedStore(folder / "store"), limit=limit)
    store = DirectoryStore(folder / "store")
    [*opened] = [id for id in store.ids("matches") if not store.is_sealed("matches", id)]
    counts = [load(folder, "", RECORDED).resume_matches(store, id).matches["matches"].counts for id in opened]
    assert sorted(each["scored"] for each in counts) == [7, 13]
    write_votes(folder, "aehj")
    with pytest.raises(KeyboardInterrupt):
        load(folder, "", RECORDED).run(InterruptedStore(folder / "store"))
    write_votes(folder, "aehjc")
    [late] = [id for id in store.ids("matches") if not store.is_sealed("matches", id)]
    with pytest.raises(SpecError, match="cannot be resumed: its code, data or settings have changed since it began"):
        load(folder, "", RECORDED).resume_matches(store, late)


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("orders: random", "has the orders in which pairs were judged; leave out orders: random"),
        ("seed: 7", "has the orders in which pairs were judged; leave out seed: 7"),
        ("schedule: {swiss: {budget: 9}}", "has the pairs that were judged; leave out swiss"),
    ],
)
def test_what_a_file_decides_is_refused_before_anything_is_called(folder: Path, option: str, message: str) -> None:
    write_votes(folder, "aeh")
    refused = RECORDED.replace("votes.jsonl}", f"votes.jsonl}}, {option}")
    with pytest.raises(SpecError, match=f"e.yaml:6: matches: the judge recorded {message}"):
        load(folder, "", refused)
