"""Code counts beside a declared `version`; answers from before a change are taken over on request, and that shows."""

from __future__ import annotations

import json
import sys
import threading
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from support.chat_answers import Body, ChatServer

from evaluand import Dataset, DirectoryStore, MemoryStore, Run, Runner, SpecError, task
from evaluand.cli import main

APP = """
from pathlib import Path

from evaluand import report_usage

HANDBOOK = {"France": "Paris"}


def retrieve(question):
    return HANDBOOK.get(question, "nothing")


def answer(question):
    report_usage(input_tokens=7, output_tokens=1, cost=0.25, currency="USD", model="m")
    with open("calls", "a") as calls:
        calls.write("1")
    return Path(__file__).with_name("prompt.txt").read_text() + retrieve(question)


def same(output, expected):
    return output == expected
"""
EXPERIMENT = """
name: own
dataset: {path: q.jsonl, input: question, expected: answer}
tasks:
  app: {function: app.py:answer, version: "1"}
scorers:
  right: includes
  same: {function: app.py:same, version: "1"}
metrics: [{kind: accuracy, scorer: right}]
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("app.py").write_text(APP)
    Path("prompt.txt").write_text("Answer: ")
    Path("own.yaml").write_text(EXPERIMENT)
    write_questions("France", "Spain")
    assert call("run", "own.yaml").exit_code == 0
    return tmp_path


def write_questions(*countries: str) -> None:
    rows = [{"question": country, "answer": "Paris"} for country in countries]
    Path("q.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def call(*arguments: str) -> Result:
    before = sys.path[:]
    result = CliRunner().invoke(main, [*arguments])
    sys.path[:] = before
    return result


def notes(result: Result) -> list[str]:
    return [line for line in result.stderr.splitlines() if line.startswith("note: ")]


def n_calls() -> int:
    return len(Path("calls").read_text())


def edit(name: str, old: str, new: str) -> None:
    path = Path(name)
    path.write_text(path.read_text().replace(old, new))


CHANGES = [
    pytest.param("app.py", '"nothing"', '"no idea at all"', "app.retrieve changed", id="function"),
    pytest.param("app.py", '"Paris"', '"Marseille"', "app.HANDBOOK changed", id="constant"),
    pytest.param("prompt.txt", "Answer", "Reply", "changed since opened: prompt.txt", id="file"),
]


@pytest.mark.parametrize(("file", "old", "new", "change"), CHANGES)
def test_a_change_makes_the_calls_again_and_says_before_what_they_cost(
    folder: Path, file: str, old: str, new: str, change: str
) -> None:
    assert (notes(call("run", "own.yaml")), n_calls()) == ([], 2)
    edit(file, old, new)
    assert notes(call("run", "own.yaml")) == [
        f"note: own/app: {change}, so 2 answers are made again; the earlier ones used 2 requests, 14 input tokens, 2"
        " output tokens, cost 0.50 USD; --keep-answers (keep_answers=True) takes them over"
    ]
    assert n_calls() == 4
    assert (notes(call("run", "own.yaml")), n_calls()) == ([], 4)


@pytest.mark.parametrize(("file", "old", "new", "change"), CHANGES)
def test_kept_answers_cost_no_call_and_every_number_of_them_says_so(
    folder: Path, file: str, old: str, new: str, change: str
) -> None:
    edit(file, old, new)
    said = f"own/app: 2 of 2 answers were kept from before a change: {change}"
    printed = call("run", "own.yaml", "--keep-answers")
    assert (notes(printed), n_calls()) == ([], 2)
    assert said in " ".join(printed.output.split())
    again = call("run", "own.yaml")
    assert n_calls() == 2
    assert said in " ".join(again.output.split())
    for command in (("show", "own"), ("show", "own/app"), ("compare", "own/app", "own/app")):
        assert said in " ".join(call(*command).output.split()), command
    for artifact in ("own", "own/app"):
        assert f"note: {said}" in call("export", artifact, "-o", "values.csv").stderr
    call("report", "own", "-o", "own.html")
    assert said in Path("own.html").read_text()
    for command in ("run own.yaml --gate accuracy>=0", "compare own/app own/app --gate accuracy>=0"):
        gated = call(*command.split(), "--junit", "junit.xml")
        assert gated.exit_code == 0, gated.output
        assert said in Path("junit.xml").read_text(), command
    run = Run.open(DirectoryStore(".evaluand"), "own/app")
    [kept] = run.manifest["kept"]
    assert (kept["changes"], kept["kept"], kept["of"]) == ([change], 2, 2)


def write_other_experiment(name: str) -> None:
    Path(f"{name}.yaml").write_text(Path("own.yaml").read_text().replace("name: own", f"name: {name}"))


def test_kept_answers_are_given_by_their_name_alone(folder: Path) -> None:
    edit("app.py", '"nothing"', '"no idea at all"')
    call("run", "own.yaml", "--keep-answers")
    write_questions("France", "Spain", "Peru")
    [note] = notes(call("run", "own.yaml"))
    assert n_calls() == 2 + 3
    assert "app.retrieve changed, so 2 answers are made again" in note


def test_another_name_never_takes_answers_that_were_kept(folder: Path) -> None:
    edit("app.py", '"nothing"', '"no idea at all"')
    call("run", "own.yaml", "--keep-answers")
    write_other_experiment("other")
    printed = call("run", "other.yaml")
    assert (n_calls(), "kept from before" in printed.output) == (4, False)
    answers = [row.responses for row in Run.open(DirectoryStore(".evaluand"), "other/app")]
    assert answers == [["Answer: Paris"], ["Answer: no idea at all"]]
    assert "2 of 2 answers were kept" in " ".join(call("show", "own/app").output.split())


def test_answers_stay_kept_while_the_dataset_grows_and_those_of_the_new_code_are_not_made_again(folder: Path) -> None:
    edit("app.py", '"nothing"', '"no idea at all"')
    for questions in (("France", "Spain", "Peru"), ("France", "Spain", "Peru", "Chile")):
        write_questions(*questions)
        kept = " ".join(call("run", "own.yaml", "--keep-answers").output.split())
        assert n_calls() == len(questions)
        assert f"own/app: 2 of {len(questions)} answers were kept from before a change: app.retrieve changed" in kept
    write_other_experiment("other")
    call("run", "other.yaml")
    assert n_calls() == 4 + 2


def test_a_smaller_run_of_the_new_code_hides_no_earlier_answers(folder: Path) -> None:
    edit("app.py", '"nothing"', '"no idea at all"')
    said = " ".join(notes(call("run", "own.yaml", "--limit", "1")))
    assert "made again; the earlier ones used 1 request, 7 input tokens" in said
    kept = " ".join(call("run", "own.yaml", "--keep-answers").output.split())
    assert "own/app: 1 of 2 answers were kept from before a change: app.retrieve changed" in kept
    assert n_calls() == 3


def test_answers_of_an_interrupted_run_are_offered_with_their_cost(folder: Path) -> None:
    write_questions("France", "Spain", "Peru", "Chile")
    edit(
        "app.py",
        '    with open("calls"',
        '    if question == "Chile":\n        raise KeyboardInterrupt\n    with open("calls"',
    )
    edit("own.yaml", "scorers:", "run: {concurrency: 1}\nscorers:")
    call("run", "own.yaml")
    assert n_calls() == 2 + 3
    edit("app.py", '"nothing"', '"no idea at all"')
    [note] = notes(call("run", "own.yaml"))
    assert "so 3 answers are made again; the earlier ones used 3 requests" in note
    assert "cost 0.75 USD" in note


def test_a_name_without_earlier_answers_says_that_none_are_kept(folder: Path) -> None:
    write_other_experiment("other")
    edit("app.py", '"nothing"', '"no idea at all"')
    [note] = notes(call("run", "other.yaml", "--keep-answers"))
    assert note == "note: other/app: its name has no answers from before a change to keep"


def test_answers_kept_twice_name_both_changes(folder: Path) -> None:
    edit("app.py", '"Paris"', '"Marseille"')
    call("run", "own.yaml", "--keep-answers")
    edit("app.py", '"nothing"', '"no idea at all"')
    kept = " ".join(call("run", "own.yaml", "--keep-answers").output.split())
    assert "2 of 2 answers were kept from before a change: app.retrieve changed; app.HANDBOOK changed" in kept


def test_answers_of_another_seed_are_not_kept(folder: Path) -> None:
    edit("own.yaml", "scorers:", "run: {seed: 2}\nscorers:")
    edit("app.py", '"nothing"', '"no idea at all"')
    call("run", "own.yaml", "--keep-answers")
    assert n_calls() == 4


def test_answers_to_a_prompt_in_the_experiment_file_are_kept(folder: Path) -> None:
    def answer(asked: Body) -> str:
        return str(asked["messages"][-1]["content"])

    with ChatServer(answer) as server:
        model = f'{{url: "{server.url}", name: small, version: "1"}}'
        edit("own.yaml", '{function: app.py:answer, version: "1"}', f"{{kind: chat, prompt: 'Say', model: {model}}}")
        call("run", "own.yaml")
        edit("own.yaml", "prompt: 'Say'", "prompt: 'Tell'")
        kept = " ".join(call("run", "own.yaml", "--keep-answers").output.split())
        assert "2 of 2 answers were kept from before a change: messages changed" in kept
        assert len(server.asked) == 2


def test_a_change_that_is_taken_back_costs_no_call(folder: Path) -> None:
    edit("app.py", '"nothing"', '"no idea at all"')
    call("run", "own.yaml")
    edit("app.py", '"no idea at all"', '"nothing"')
    call("run", "own.yaml")
    assert n_calls() == 4


def test_a_changed_scorer_grades_again_and_makes_no_call(folder: Path) -> None:
    edit("app.py", "output == expected", "len(output) == len(expected)")
    assert "4 done now" in call("run", "own.yaml").stdout  # the other scorer is cheap
    assert n_calls() == 2


PAID = """

def paid(output, expected):
    from evaluand import report_usage
    with open("grades", "a") as grades:
        grades.write("1")
    report_usage(input_tokens=3, output_tokens=1, cost=0.5, currency="USD", model="judge")
    return output == expected
"""


def test_scores_of_a_changed_scorer_are_repeated_with_their_cost_or_kept(folder: Path) -> None:
    Path("app.py").write_text(APP + PAID)
    edit("own.yaml", 'same: {function: app.py:same, version: "1"}', 'same: {function: app.py:paid, version: "1"}')
    call("run", "own.yaml")
    before = Path("grades").read_text()
    edit("app.py", "return output == expected\n", "return bool(output >= expected)\n")
    kept = call("run", "own.yaml", "--keep-answers")
    assert (notes(kept), Path("grades").read_text()) == ([], before)
    said = "own/app: 2 of 2 scores of same were kept from before a change: app.paid changed"
    assert said in " ".join(kept.output.split())
    edit("app.py", "return bool(output >= expected)\n", "return not output > expected\n")
    [note] = notes(call("run", "own.yaml"))
    assert "app.paid changed, so 2 scores of same are made again; the earlier ones used 2 requests" in note
    assert Path("grades").read_text() == before * 2


def test_an_interrupted_run_may_keep_afterwards_what_it_was_about_to_repeat(folder: Path) -> None:
    edit("app.py", '"nothing"', '"no idea at all"')
    edit(
        "app.py",
        '    with open("calls"',
        '    if Path("stop").exists():\n        raise KeyboardInterrupt\n    with open("calls"',
    )
    Path("stop").touch()
    assert "2 answers are made again" in " ".join(notes(call("run", "own.yaml")))
    kept = call("run", "own.yaml", "--keep-answers")
    assert (kept.exit_code, n_calls()) == (0, 2)
    assert "2 of 2 answers were kept" in " ".join(kept.output.split())


def test_answers_of_all_replications_are_kept_and_only_those_that_the_code_has_not_given_anew(folder: Path) -> None:
    edit("own.yaml", "scorers:", "run: {replications: 3}\nscorers:")
    call("run", "own.yaml")
    assert n_calls() == 2 + 4
    edit("app.py", '"nothing"', '"no idea at all"')
    Path("other.yaml").write_text(Path("own.yaml").read_text().replace("name: own", "name: other"))
    call("run", "other.yaml", "--limit", "1")
    assert n_calls() == 6 + 3
    kept = call("run", "own.yaml", "--keep-answers")
    assert n_calls() == 9
    assert "own/app: 3 of 6 answers were kept from before a change" in " ".join(kept.output.split())


SUITE = """
name: all
tasks:
  app: {function: app.py:answer, version: "1"}
problems:
  first:
    dataset: {path: q.jsonl, input: question, expected: answer}
    scorers: {right: includes}
    metrics: accuracy
    gates: [accuracy >= 0]
"""


def test_the_plan_of_a_suite_says_what_would_be_kept_and_the_suite_keeps_it(folder: Path) -> None:
    Path("suite.yaml").write_text(SUITE)
    call("suite", "suite.yaml")
    calls = n_calls()
    edit("app.py", '"nothing"', '"no idea at all"')
    [offered, planned] = (
        " ".join(call("suite", "suite.yaml", "--plan", *options).stdout.split())
        for options in ((), ("--keep-answers",))
    )
    change = "app.retrieve changed"
    assert f"2 of 2 calls to make ({change}; --keep-answers (keep_answers=True) takes 2 answers over)" in offered
    assert f"0 of 2 calls to make, 2 reused (2 answers kept from before a change: {change})" in planned
    kept = call("suite", "suite.yaml", "--keep-answers", "--junit", "junit.xml")
    assert (kept.exit_code, n_calls()) == (0, calls), kept.output
    said = f"all/first/app: 2 of 2 answers were kept from before a change: {change}"
    assert said in " ".join(kept.output.split())
    assert said in Path("junit.xml").read_text()


def test_kept_scores_stay_kept_in_what_grade_makes_of_them(folder: Path) -> None:
    Path("app.py").write_text(APP + PAID)
    edit("own.yaml", 'same: {function: app.py:same, version: "1"}', 'paid: {function: app.py:paid, version: "1"}')
    call("run", "own.yaml")
    edit("app.py", "return output == expected\n", "return output != expected\n")
    said = "2 of 2 scores of paid were kept from before a change: app.paid changed"
    assert said in " ".join(call("run", "own.yaml", "--keep-answers").output.split())
    before = len(Path("grades").read_text())
    graded = call("grade", "own/app", "--scorer", "exact_match")
    assert said in " ".join(graded.output.split())
    write_other_experiment("other")
    printed = call("run", "other.yaml")
    assert (len(Path("grades").read_text()), "kept from before" in printed.output) == (before + 2, False)


def test_all_scorers_whose_file_has_changed_keep_their_grades(folder: Path) -> None:
    reads = 'Path("prompt.txt").read_text() and output == expected\n'
    Path("app.py").write_text(APP + PAID + PAID.replace("def paid", "def too") + "\n")
    edit("app.py", "    return output == expected\n", f"    return {reads}")
    command = ("grade", "own/app", "--scorer", "app.py:paid", "--scorer", "app.py:too")
    call(*command)
    before = Path("grades").read_text()
    edit("prompt.txt", "Answer", "Reply")
    kept = " ".join(call(*command, "--keep-answers").output.split())
    assert Path("grades").read_text() == before
    assert kept.count("were kept from before a change: changed since opened: prompt.txt") == 2


def test_grades_of_a_changed_scorer_are_kept_by_grade(folder: Path) -> None:
    Path("app.py").write_text(APP + PAID)
    command = ("grade", "own/app", "--scorer", "paid=app.py:paid")
    call(*command)
    before = Path("grades").read_text()
    edit("app.py", "    report_usage(input_tokens=3", "    report_usage(input_tokens=30")
    kept = call(*command, "--keep-answers")
    assert (kept.exit_code, Path("grades").read_text()) == (0, before)
    said = "own/app: 2 of 2 scores of paid were kept from before a change: app.paid changed"
    assert said in " ".join(kept.output.split())


JUDGE = """

def judge(first, second):
    from evaluand import report_usage
    with open("judged", "a") as judged:
        judged.write("1")
    report_usage(input_tokens=3, output_tokens=1, cost=0.5, currency="USD", model="judge")
    return "first" if first < second else "second"


def other(question):
    return "Reply: " + retrieve(question)
"""
MATCHES = """
matches: {name: duel, judge: {function: app.py:judge, version: "1"}}
"""


def n_judged() -> int:
    return len(Path("judged").read_text())


@pytest.fixture
def duel(folder: Path) -> Path:
    Path("app.py").write_text(APP + JUDGE)
    edit("own.yaml", "scorers:", '  other: {function: app.py:other, version: "1"}\nscorers:')
    Path("own.yaml").write_text(Path("own.yaml").read_text() + MATCHES)
    assert call("run", "own.yaml").exit_code == 0
    assert n_judged() == 4
    return folder


def change_judge() -> None:
    edit("app.py", '"first" if first < second', '"first" if first <= second')


def test_a_changed_judge_of_pairs_judges_again_and_says_before_what_it_costs(duel: Path) -> None:
    change_judge()
    assert notes(call("run", "own.yaml")) == [
        "note: the judge of own/duel: app.judge changed, so 4 judgements are made again; the earlier ones used 4"
        " requests, 12 input tokens, 4 output tokens, cost 2.00 USD; --keep-answers (keep_answers=True) takes them over"
    ]
    assert n_judged() == 8


def test_kept_judgements_are_shown_with_every_number_of_them(duel: Path) -> None:
    change_judge()
    said = "own/duel: 4 of 4 judgements were kept from before a change: app.judge changed"
    printed = call("run", "own.yaml", "--keep-answers")
    assert (printed.exit_code, notes(printed), n_judged()) == (0, [], 4)
    assert said in " ".join(printed.output.split())
    for command in (("run", "own.yaml"), ("show", "own/duel"), ("show", "own/duel", "--json")):
        assert said in " ".join(call(*command).output.split()), command
    call("report", "own", "-o", "own.html")
    call("report", "own/duel", "-o", "duel.html")
    assert said in Path("own.html").read_text()
    assert said in Path("duel.html").read_text()
    assert n_judged() == 4
    write_questions("France", "Spain", "Peru")
    call("run", "own.yaml")  # the judge as it is now: kept judgements are given by their name alone
    assert n_judged() == 4 + 6


def test_a_comparison_by_the_command_line_keeps_judgements_too(duel: Path) -> None:
    command = ("compare", "--pairwise", "own/app", "own/other", "--judge", "app.py:judge", "--name", "again")
    call(*command)
    before = n_judged()
    change_judge()
    refused = call(*command[:-2], "--keep-answers")
    assert (refused.exit_code, "give --name NAME too" in refused.stderr) == (2, True)
    gate = ("--gate", "win_rate(app, other) >= 0", "--allow-unmeasured-judges", "--junit", "junit.xml")
    kept = call(*command, "--keep-answers", *gate)
    assert (kept.exit_code, n_judged()) == (0, before), kept.output
    said = "again: 4 of 4 judgements were kept from before a change: app.judge changed"
    assert said in " ".join(kept.output.split())
    assert said in Path("junit.xml").read_text()
    assert call("rate", "again", *gate[:-1], "rated.xml").exit_code == 0
    assert said in Path("rated.xml").read_text()


def test_keeping_and_repeating_all_contradict_each_other(folder: Path) -> None:
    with pytest.raises(SpecError, match="fresh repeats the answers that keep_answers takes over; give one of them"):
        Runner().run(str.upper, [{"input": "a"}], fresh=True, keep_answers=True)
    result = call("run", "own.yaml", "--fresh", "--keep-answers")
    assert (result.exit_code, "--fresh repeats the answers that --keep-answers takes over" in result.stderr) == (
        2,
        True,
    )


def test_what_cannot_be_read_is_named_and_stands_under_the_version() -> None:
    lock = threading.Lock()

    @task(version="1")
    def guarded(text: str) -> str:
        with lock:
            return text

    store, data = MemoryStore(), Dataset.from_rows([{"input": "a"}])
    run = Runner(store).run(guarded, data)
    [covered] = run.manifest["provenance"]["covered"]
    assert covered.endswith("guarded (closure variable lock): a lock holds state that cannot be read as data")
    assert Runner(store).run(guarded, data).id == run.id


def test_what_code_keeps_between_calls_is_no_change_of_it() -> None:
    seen, count = list[str](), 0

    @task(version="1")
    def noted(text: str) -> str:
        nonlocal count
        seen.append(text)
        count += 1
        return text

    store, data = MemoryStore(), Dataset.from_rows([{"input": "a"}])
    for _ in range(2):
        run = Runner(store).run(noted, data)
    assert run.receipt is not None
    assert (run.receipt.kept, seen, count) == (1, ["a"], 1)
