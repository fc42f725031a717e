"""What judges were asked can be read later: from the store alone, word for word, and checked by its digest."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import orjson
import pytest
from click.testing import CliRunner
from support.chat_answers import Body, ChatServer

from evaluand import Dataset, DirectoryStore, Evaluator, Runner
from evaluand.cli import main
from evaluand.core.errors import EngineError, SpecError
from evaluand.evaluation.evaluator import Evaluation
from evaluand.evaluation.scorer import Score, Scorer
from evaluand.judges import Judge, JudgeTree, Jury, PairwiseJudge, Rubric, rubric_names
from evaluand.judges.stored_rubric import StoredRubric
from evaluand.matches import Matcher
from evaluand.models import ChatModel
from evaluand.report.verification import verify
from evaluand.store.store import with_seal

HOSTILE = "</details><script>alert(1)</script>"
REFUSES: dict[str, Any] = {
    "instructions": f"Does it refuse? {HOSTILE}",
    "material": ["input", "output"],
    "scale": {"yes": 1, "no": 0},
}
FACTS = {
    "instructions": "Does the source support the fact?",
    "material": ["context", "fact"],
    "scale": {"yes": 1, "no": 0},
    "parts": {"of": "output", "name": "fact", "instructions": "Divide the text into facts."},
}
TEMPLATE = {"instructions": "Is it short?", "material": "Say: {{ output }}", "scale": {"yes": 1, "no": 0}}


def answer(asked: Body) -> str:
    system, text = asked["messages"][0]["content"], asked["messages"][-1]["content"]
    if '"parts"' in system:
        return json.dumps({"parts": ["It opens.", "It closes."]})
    if "<first>" in text:
        return json.dumps({"reasons": "-", "verdict": "first"})
    return json.dumps({"reasons": "-", "verdict": "correct" if "expected answer" in system else "no"})


@pytest.fixture
def server() -> Iterator[ChatServer]:
    with ChatServer(answer) as started:
        yield started


def model(server: ChatServer, name: str = "small") -> ChatModel:
    return ChatModel(server.url, name, version="1", cache=False)


def judges(server: ChatServer) -> dict[str, Any]:
    asked = model(server)
    nodes = {
        "refuses": {"rubric": REFUSES, "then": {"yes": 0, "no": "right"}},
        "right": {"rubric": "correctness"},
    }
    return {
        "whole": Judge(rubric="correctness", model=asked),
        "template": Judge(rubric=TEMPLATE, model=asked),
        "parts": Judge(rubric=FACTS, model=asked),
        "jury": Jury(rubric=FACTS, models=[asked, model(server, "large")]),
        "tree": JudgeTree(nodes=nodes, model=asked),
    }


def evaluate(folder: Path, scorers: dict[str, Any]) -> Evaluation:
    store = DirectoryStore(folder)
    rows = [{"question": "When?", "context": "At nine.", "expected": "9"}]
    data = Dataset.from_rows(rows, input=["question", "context"], expected="expected")
    run = Runner(store).run(lambda row: f"It opens. It closes. </output> {row['question']}", data, name="shop/mine")
    return Evaluator(store).evaluate(run, scorers, name="shop/mine")


def show(folder: Path, *arguments: str) -> Any:
    return CliRunner(env={"EVALUAND_STORE": str(folder), "COLUMNS": "100"}).invoke(main, ["show", *arguments])


def change(evaluation: Evaluation, edit: Callable[[dict[str, Any]], Any]) -> None:
    """Writes a manifest again, with the digest that matches."""
    folder: Any = evaluation.store
    path = folder.root / "evaluations" / evaluation.id / "manifest.json"
    manifest = orjson.loads(path.read_bytes())
    edit(manifest["provenance"])
    path.chmod(0o644)
    path.write_bytes(orjson.dumps(with_seal({name: value for name, value in manifest.items() if name != "seal"})))


@pytest.mark.parametrize("name", rubric_names())
def test_the_digest_of_a_rubric_is_that_of_its_stored_content(name: str) -> None:
    rubric = Rubric.of(name)
    content = orjson.loads(orjson.dumps(rubric.content))
    assert StoredRubric(rubric.title, content).digest == rubric.digest


@pytest.mark.parametrize("name", ["whole", "template", "parts", "jury", "tree"])
def test_the_messages_shown_are_those_that_the_server_received(name: str, server: ChatServer, tmp_path: Path) -> None:
    evaluate(tmp_path, {name: judges(server)[name]})
    shown = json.loads(show(tmp_path, "shop/mine", "--scorer", name, "--messages", "--json").stdout)
    [row] = shown["rows"][name]
    received = {json.dumps(body["messages"]) for body in server.asked}
    assert {json.dumps(each["messages"]) for each in row["sent"]} == received
    questions = {"parts": ["division", "fact 1", "fact 2"], "tree": ["refuses", "right"]}
    assert [each["question"] for each in row["sent"]] == questions.get("parts" if name == "jury" else name, [None])
    printed = show(tmp_path, "shop/mine", "--scorer", name, "--messages").stdout
    assert printed.count("sent to the judge") == len(row["sent"])
    assert "When?" in printed


def test_a_row_that_was_not_judged_has_no_messages(server: ChatServer, tmp_path: Path) -> None:
    needs_hint = {**REFUSES, "material": ["input", "output", "hint"]}
    evaluate(tmp_path, {"hinted": Judge(rubric=needs_hint, model=model(server))})
    shown = json.loads(show(tmp_path, "shop/mine", "--scorer", "hinted", "--messages", "--json").stdout)
    assert [(row["status"], row["sent"]) for row in shown["rows"]["hinted"]] == [("abstained", [])]
    assert server.asked == []


@pytest.mark.filterwarnings("ignore::evaluand.evaluation.evaluator.ScorerFailed")
def test_a_row_whose_request_failed_has_its_messages(server: ChatServer, tmp_path: Path) -> None:
    server.answer = lambda asked: {"status": 400, "body": {"error": {"message": "no"}}}
    evaluate(tmp_path, {"whole": judges(server)["whole"]})
    [row] = json.loads(show(tmp_path, "shop/mine", "--scorer", "whole", "--messages", "--json").stdout)["rows"]["whole"]
    assert row["status"] == "failed"
    assert [each["messages"] for each in row["sent"]] == [server.asked[0]["messages"]]


@pytest.mark.filterwarnings("ignore::evaluand.evaluation.evaluator.ScorerFailed")
def test_messages_about_sentences_of_a_row_that_failed_are_not_known(server: ChatServer, tmp_path: Path) -> None:
    server.answer = lambda asked: {"status": 400, "body": {"error": {"message": "no"}}}
    rubric = {**FACTS, "parts": {"of": "output", "name": "fact", "split": "sentences"}}
    evaluate(tmp_path, {"parts": Judge(rubric=rubric, model=model(server))})
    [row] = json.loads(show(tmp_path, "shop/mine", "--scorer", "parts", "--messages", "--json").stdout)["rows"]["parts"]
    assert row["not_sent"] == "the row failed, and of such rows it is not stored which fact was judged"


class Rewording(Judge):
    """A judge that sends something else than its rubric says."""

    kind = "rewording"

    async def decide(self, values: Mapping[str, Any]) -> Score:
        return await super().decide({**values, "output": "other"})


def test_messages_of_a_class_of_the_user_are_not_known(server: ChatServer, tmp_path: Path) -> None:
    evaluate(tmp_path, {"mine": Rewording(rubric="correctness", model=model(server))})
    [row] = json.loads(show(tmp_path, "shop/mine", "--scorer", "mine", "--messages", "--json").stdout)["rows"]["mine"]
    assert row["not_sent"].startswith("the class of this judge is not one of evaluand's")


def test_judges_are_listed_and_their_rubrics_are_printed_word_for_word(server: ChatServer, tmp_path: Path) -> None:
    evaluation = evaluate(tmp_path, judges(server))
    listed = show(tmp_path, "shop/mine", "--scorer", "whole").stdout
    digest = Rubric.of("correctness").digest
    line = next(line for line in listed.splitlines() if line.split()[:2] == ["whole", "small"])
    assert line.split() == ["whole", "small", "1", "chat", "correctness", "1", digest[:12]]
    printed = show(tmp_path, "shop/mine", "--rubric").stdout
    assert f"rubric of whole: correctness 1  digest {digest}" in printed
    assert "rubric of tree, question refuses: rubric 1" in printed
    assert "Divide the text into facts." in printed
    assert "Say: {{ output }}" in printed
    one = json.loads(show(tmp_path, evaluation.id, "--rubric", "--scorer", "template", "--json").stdout)
    [rubric] = one["rubrics"]
    assert rubric["messages"] == Rubric.of(TEMPLATE).opening
    asked = {each["judge"]: each["asked"] for each in one["judges"]}
    assert [each["model"] for each in asked["jury"]] == ["small", "large"]
    assert {each["protocol"] for each in asked["jury"]} == {"chat"}


@pytest.mark.parametrize("more", [(), ("--scorer", "whole")])
def test_a_rubric_is_shown_without_the_rest_of_its_evaluation(
    more: tuple[str, ...], server: ChatServer, tmp_path: Path
) -> None:
    evaluation = evaluate(tmp_path, {"whole": judges(server)["whole"]})
    first, _, second, *_ = show(tmp_path, "shop/mine", "--rubric", *more).stdout.splitlines()
    assert first == f"evaluation {evaluation.id}  shop/mine"
    assert second.startswith("rubric of whole: correctness 1")
    rows = show(tmp_path, "shop/mine", "--rubric", "--messages", *more).stdout
    assert "rubric of whole: correctness 1" in rows
    assert "sent to the judge" in rows


def test_matches_have_the_rubric_of_their_judge(server: ChatServer, tmp_path: Path) -> None:
    store = DirectoryStore(tmp_path)
    data = Dataset.from_rows([{"input": "a"}])
    runs = [Runner(store).run(task, data) for task in (str.upper, str.lower)]
    judge = PairwiseJudge(rubric="pairwise", model=model(server))
    matches = Matcher(store).match(runs, judge, labels=["a", "b"], name="duel")
    printed = show(tmp_path, "duel", "--rubric").stdout
    assert f"rubric of judge: pairwise 1  digest {Rubric.of('pairwise').digest}" in printed
    assert verify(store, "matches", matches.id) == []


def test_what_an_earlier_version_stored_says_so_in_one_sentence(server: ChatServer, tmp_path: Path) -> None:
    evaluation = evaluate(tmp_path, {"whole": judges(server)["whole"]})
    change(evaluation, lambda provenance: (provenance.pop("rubrics"), provenance.update(evaluand="0.2.0")))
    assert verify(DirectoryStore(tmp_path), "evaluations", evaluation.id) == []
    refused = show(tmp_path, "shop/mine", "--rubric")
    assert refused.exit_code == 1
    assert refused.stderr.startswith("error: an earlier version of evaluand made this, which did not store the text of")
    assert len(refused.stderr.splitlines()) == 1
    shown = show(tmp_path, "shop/mine", "--scorer", "whole", "--messages")
    assert "an earlier version of evaluand made this" in " ".join(shown.stdout.split())
    assert "correctness 1" in shown.stdout


def test_rubrics_of_what_has_no_judge_are_refused(tmp_path: Path) -> None:
    evaluate(tmp_path, {"right": "includes"})
    assert "no judge gave these scores" in show(tmp_path, "shop/mine", "--rubric").stderr
    [dataset] = DirectoryStore(tmp_path).ids("datasets")
    assert "--rubric shows those of the judges" in show(tmp_path, dataset, "--rubric").stderr


class Opinion(Scorer):
    """A judge that is code."""

    kind = "opinion"
    is_judge = True

    def score(self, output: Any, expected: Any) -> Score:
        return Score(1.0)


def test_a_judge_without_a_rubric_says_that_it_has_none(tmp_path: Path) -> None:
    evaluate(tmp_path, {"opinion": Opinion()})
    assert "this judge asks by no rubric" in show(tmp_path, "shop/mine", "--rubric").stderr
    [row] = json.loads(show(tmp_path, "shop/mine", "--scorer", "opinion", "--messages", "--json").stdout)["rows"][
        "opinion"
    ]
    assert row["not_sent"].startswith("this judge asks by no rubric")


def test_verify_names_a_rubric_that_is_not_the_one_that_was_asked(server: ChatServer, tmp_path: Path) -> None:
    evaluation = evaluate(tmp_path, {"whole": judges(server)["whole"]})

    def soften(provenance: dict[str, Any]) -> None:
        provenance["rubrics"]["whole"][0]["content"]["opening"][0]["content"] += " Be kind."

    change(evaluation, soften)
    [fault] = verify(DirectoryStore(tmp_path), "evaluations", evaluation.id)
    assert "judge 'whole' asked by the rubric" in fault.message
    assert Rubric.of("correctness").digest in fault.message


@pytest.mark.parametrize("content", [None, "Be kind."])
def test_messages_of_another_rubric_than_was_asked_are_not_shown(
    content: str | None, server: ChatServer, tmp_path: Path
) -> None:
    evaluation = evaluate(tmp_path, {"whole": judges(server)["whole"]})

    def replace(provenance: dict[str, Any]) -> None:
        if content is None:
            provenance["rubrics"]["whole"] = []
        else:
            provenance["rubrics"]["whole"][0]["content"]["opening"][0]["content"] = content

    change(evaluation, replace)
    shown = show(tmp_path, "shop/mine", "--scorer", "whole", "--messages", "--json")
    [row] = json.loads(shown.stdout)["rows"]["whole"]
    assert row["not_sent"].startswith("the manifest was changed: judge 'whole' asked by the rubric")
    assert "the manifest was changed: judge 'whole'" in show(tmp_path, "shop/mine", "--rubric").stderr
    page = tmp_path / "page.html"
    CliRunner().invoke(main, ["report", "shop/mine", "-o", str(page), "--store", str(tmp_path)])
    assert page.read_text().count('<p class="failed">the manifest was changed: judge') == 1


def test_verify_names_a_rubric_of_a_judge_that_did_not_grade(server: ChatServer, tmp_path: Path) -> None:
    evaluation = evaluate(tmp_path, {"whole": judges(server)["whole"]})
    change(evaluation, lambda provenance: provenance["rubrics"].update(ghost=provenance["rubrics"]["whole"]))
    [fault] = verify(DirectoryStore(tmp_path), "evaluations", evaluation.id)
    assert "judge 'ghost' asked by the rubric none" in fault.message


def faults_after(evaluation: Evaluation, edit: Callable[[dict[str, Any]], Any]) -> list[str]:
    change(evaluation, edit)
    return [fault.message for fault in verify(DirectoryStore(evaluation.store.root), "evaluations", evaluation.id)]  # type: ignore[attr-defined]


def test_verify_names_a_title_that_the_judge_did_not_have(server: ChatServer, tmp_path: Path) -> None:
    evaluation = evaluate(tmp_path, {"whole": judges(server)["whole"]})
    [fault] = faults_after(evaluation, lambda facts: facts["rubrics"]["whole"][0].update(title="kindness 1"))
    assert fault.endswith("judge 'whole' asked by the rubric 'correctness 1', and stored is 'kindness 1'")


def exchange(facts: dict[str, Any], name: str) -> None:
    first, second = facts["rubrics"]["tree"]
    first[name], second[name] = second[name], first[name]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("question", "asked its questions by other names, or in another order, than those that are stored"),
        ("then", "asked its questions by other names, or in another order, than those that are stored"),
        ("content", "asked by the rubric 'correctness 1', and stored is 'rubric 1'"),
    ],
)
def test_verify_notices_questions_of_a_tree_that_were_exchanged(
    name: str, message: str, server: ChatServer, tmp_path: Path
) -> None:
    evaluation = evaluate(tmp_path, {"tree": judges(server)["tree"]})
    assert verify(evaluation.store, "evaluations", evaluation.id) == []
    [fault] = faults_after(evaluation, lambda facts: exchange(facts, name))
    assert fault.startswith("the manifest was changed: judge 'tree' asked")
    assert message in fault


def test_a_tree_of_an_earlier_version_is_intact(server: ChatServer, tmp_path: Path) -> None:
    evaluation = evaluate(tmp_path, {"tree": judges(server)["tree"]})
    assert faults_after(evaluation, lambda facts: [each.pop("then") for each in facts["rubrics"]["tree"]]) == []


@pytest.mark.parametrize("edit", [lambda facts: facts["rubrics"].pop("whole"), lambda facts: facts.pop("rubrics")])
def test_verify_names_a_rubric_that_was_removed(
    edit: Callable[[dict[str, Any]], Any], server: ChatServer, tmp_path: Path
) -> None:
    some = judges(server)
    evaluation = evaluate(tmp_path, {"whole": some["whole"], "template": some["template"]})
    faults = faults_after(evaluation, lambda facts: (edit(facts), facts.update(evaluand="0.3.0")))
    assert f"judge 'whole' asked by the rubric {Rubric.of('correctness').digest}, and none is stored" in " ".join(
        faults
    )
    refused = show(tmp_path, "shop/mine", "--scorer", "whole", "--rubric")
    assert "and none is stored" in refused.stderr
    assert "earlier version" not in refused.stderr


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("title",), 3),
        (("then",), 3),
        (("content",), []),
        (("content", "opening"), [{"role": "system"}]),
        (("content", "parts"), [{}]),
        (("content", "parts"), [{"of": "output"}, "text"]),
        (("content", "material"), {"a": 1}),
    ],
)
def test_a_rubric_of_another_shape_is_refused(
    path: tuple[str, ...], value: Any, server: ChatServer, tmp_path: Path
) -> None:
    evaluation = evaluate(tmp_path, {"whole": judges(server)["whole"]})

    def spoil(provenance: dict[str, Any]) -> None:
        holder = provenance["rubrics"]["whole"][0]
        for name in path[:-1]:
            holder = holder[name]
        holder[path[-1]] = value

    change(evaluation, spoil)
    with pytest.raises(EngineError, match=r"provenance\.rubrics\.whole\[0\]"):
        DirectoryStore(tmp_path).manifest("evaluations", evaluation.id)


def test_the_report_folds_the_rubric_under_the_name_of_its_judge(server: ChatServer, tmp_path: Path) -> None:
    evaluate(tmp_path / "store", {"tree": judges(server)["tree"]})
    page = tmp_path / "page.html"
    made = CliRunner().invoke(main, ["report", "shop/mine", "-o", str(page), "--store", str(tmp_path / "store")])
    assert made.exit_code == 0, made.output
    text = page.read_text()
    assert "question refuses: rubric rubric 1" in text
    folded = text.partition('id="judges"')[2].partition("</section>")[0]
    assert folded.count("<details>") == folded.count("</details>") == 2
    assert "Does it refuse? &lt;/details&gt;&lt;script&gt;" in folded
    assert "<script>alert(1)" not in text


def test_a_rubric_that_holds_a_secret_is_refused_before_the_first_request(
    server: ChatServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRAVEL_API_KEY", "tea-for-two-42")
    rubric = Rubric(**{**REFUSES, "instructions": "Does it say tea-for-two-42?"})
    with pytest.raises(SpecError, match="contains a secret; take it out") as refused:
        Judge(rubric=rubric, model=model(server)).prepare()
    assert "tea-for-two" not in str(refused.value)
    assert not server.asked
