"""No credential gets into a store with an error, a stack trace or the output of a program; answers stay as they are."""

from __future__ import annotations

import base64
import html
import importlib.util
import json
import os
import sys
from pathlib import Path
from typing import Any
from urllib.parse import quote, quote_plus

import pytest

from evaluand.apps.app import App
from evaluand.core.redaction import redact, redact_command, use_secret
from evaluand.data.dataset import Dataset
from evaluand.engine.outcome import Aborted
from evaluand.engine.policy import Policy
from evaluand.evaluation.evaluator import Evaluator, ScorerFailed
from evaluand.evaluation.scorer import Score
from evaluand.run.runner import Runner
from evaluand.run.task import FunctionTask
from evaluand.run.tasks.program import ProgramTask
from evaluand.store.directory import DirectoryStore

SECRET = "tea/for+two 'and' <more>"
ROWS = Dataset.from_rows([{"input": "a", "expected": "b"}])


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MODELS_API_KEY", SECRET)


BASIC = base64.b64encode(f"user:{SECRET}".encode()).decode()
BASE64 = base64.urlsafe_b64encode(SECRET.encode()).decode()
FORMS = [
    *(SECRET, repr(SECRET)[1:-1], json.dumps(SECRET)[1:-1], html.escape(SECRET)),
    *(quote(SECRET), quote(SECRET, safe=""), quote_plus(SECRET), quote(SECRET, safe="").lower(), BASIC, BASE64),
]


def written(folder: Path) -> str:
    return "".join(path.read_bytes().decode("latin-1") for path in folder.rglob("*") if path.is_file())


def assert_hidden(text: str) -> None:
    assert [form for form in (*FORMS[:-2], BASIC[8:-4], BASE64[:-4]) if form in text] == []


@pytest.mark.parametrize("form", FORMS)
def test_the_value_of_a_variable_is_found_however_it_is_written(form: str) -> None:
    redacted = redact(f"refused: {form}")
    assert "${MODELS_API_KEY}" in redacted
    assert_hidden(redacted)


def test_what_occurs_by_chance_or_is_no_secret_stays(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SHORT_TOKEN", "main")
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(tmp_path))
    monkeypatch.setenv("PWD", str(tmp_path / "app"))
    monkeypatch.setenv("MODE", "production")
    text = f"main failed in {tmp_path}/app in production"
    assert redact(text) == text


def test_a_variable_that_code_sets_later_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    assert redact("refused: hunter2hunter2") == "refused: hunter2hunter2"
    monkeypatch.setenv("DB_PASS", "hunter2hunter2")
    assert redact("refused: hunter2hunter2") == "refused: ${DB_PASS}"
    monkeypatch.setenv("DB_PASS", "otherotherother")
    assert redact("refused: otherotherother") == "refused: ${DB_PASS}"


def test_the_name_of_a_variable_stays_behind_what_announces_a_credential() -> None:
    for text in ("Bearer ${A_KEY}", "Authorization: Bearer ${A_KEY}", "password=${A_KEY}", "https://h/?key=${A_KEY}"):
        assert redact(text) == text


@pytest.mark.parametrize(
    ("command", "redacted"),
    [
        ("bot --api-key abc -v", "bot --api-key *** -v"),
        ("bot --api-key=abc", "bot --api-key=***"),
        ("bot --token abc --key id --max-tokens 8", "bot --token *** --key id --max-tokens 8"),
        ("bot --password --fast", "bot --password --fast"),
        ("env DB_PASSWORD=abc bot", "env DB_PASSWORD=*** bot"),
        ("bot postgres://me:abc@host/db", "bot postgres://me:***@host/db"),
        ("bot sk-proj-abcdefgh1234", "bot ***"),
    ],
)
def test_credentials_in_a_command_are_hidden_by_their_names(command: str, redacted: str) -> None:
    assert redact_command(command.split()) == redacted.split()


class Refused(Exception):
    code = SECRET


@pytest.mark.parametrize("traced", [False, True])
def test_the_error_of_a_task_is_stored_without_the_value(tmp_path: Path, traced: bool) -> None:
    def fail(input: str, task_span: Any) -> str:
        with task_span.span("inner"):
            raise Refused(" and ".join(FORMS))

    def fail_alone(input: str) -> str:
        raise Refused(" and ".join(FORMS))

    run = Runner(DirectoryStore(tmp_path)).run(fail if traced else fail_alone, ROWS)
    assert run.counts == {"failed": 1}
    assert "${MODELS_API_KEY}" in str(next(iter(run)).error)
    assert_hidden(str(next(iter(run)).error))
    assert_hidden(written(tmp_path))


def test_the_open_journal_of_a_run_that_stops_holds_no_value(tmp_path: Path) -> None:
    def fail(input: str) -> str:
        raise ValueError(f"refused {SECRET}")

    with pytest.raises(Aborted, match=r"refused \$\{MODELS_API_KEY\}") as raised:
        Runner(DirectoryStore(tmp_path), Policy(abort_on_error=True)).run(fail, ROWS)
    assert_hidden(str(raised.value))
    assert_hidden(written(tmp_path))


def test_an_answer_is_data_and_stays_as_it_is(tmp_path: Path) -> None:
    run = Runner(DirectoryStore(tmp_path)).run(lambda input: SECRET, ROWS)
    assert next(iter(run)).responses == [SECRET]


def test_scores_that_fail_are_stored_without_the_value_and_others_as_they_are(tmp_path: Path) -> None:
    def fail(output: str, expected: str) -> float:
        raise ValueError(f"refused {SECRET}")

    def report(output: str, expected: str) -> Score:
        return Score(None, status="failed", reason=f"refused {SECRET}")

    def explain(output: str, expected: str) -> Score:
        return Score(1.0, explanation=SECRET)

    store = DirectoryStore(tmp_path)
    run = Runner(store).run(lambda input: "b", ROWS)
    with pytest.warns(ScorerFailed, match=r"refused \$\{MODELS_API_KEY\}"):
        evaluation = Evaluator(store).evaluate(run, {"fail": fail, "report": report, "explain": explain})
    rows = {name: evaluation.table(name).to_pylist()[0] for name in ("fail", "report", "explain")}
    for name in ("fail", "report"):
        assert "refused ${MODELS_API_KEY}" in rows[name]["reason"]
    assert rows["explain"]["explanation"] == SECRET


def test_the_error_of_a_recorded_app_is_stored_without_the_value(tmp_path: Path) -> None:
    def answer(question: str) -> str:
        raise ValueError(f"refused {SECRET}")

    with (
        App(answer, name="app", version="1", store=DirectoryStore(tmp_path)) as recording,
        pytest.raises(ValueError, match="refused"),
    ):
        recording.app.app("a")
    recording.close()
    assert "${MODELS_API_KEY}" in written(tmp_path)
    assert_hidden(written(tmp_path))


PROGRAM = """
import os, sys
sys.stdin.readline()
key, token, option = os.environ["MODELS_API_KEY"], os.environ["BOT_TOKEN"], sys.argv[1].partition("=")[2]
print(key, token, option, file=sys.stderr)
sys.exit(3)
"""


def test_what_a_program_writes_to_stderr_and_its_command_are_stored_without_values(tmp_path: Path) -> None:
    (tmp_path / "bot.py").write_text(PROGRAM)
    command = [sys.executable, "bot.py", "--api-key=hunter2hunter2"]
    task = ProgramTask(command=command, folder=str(tmp_path), env={"BOT_TOKEN": "abc-12345"}, version="1")
    run = Runner(DirectoryStore(tmp_path / "store")).run(task, ROWS)
    message = str(next(iter(run)).error)
    assert "stderr: ${MODELS_API_KEY} *** ***" in message
    stored = written(tmp_path / "store")
    assert_hidden(stored)
    assert "abc-12345" not in stored
    assert '"--api-key=***"' in stored


CUT_PROGRAM = """
import os, sys
sys.stdin.readline()
key = os.environ["MODELS_API_KEY"]
print("ERROR: request failed: Authorization: Bearer", key, "retries ended " + "x" * int(sys.argv[1]), file=sys.stderr)
sys.exit(3)
"""


@pytest.mark.parametrize("more", [0, 200, 235, 245, 250, 255, 265, 280, 300])
def test_no_eight_characters_of_a_key_are_stored_wherever_stderr_is_cut(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, more: int
) -> None:
    key = "ak9-QwErTyUiOpAsDfGhJkLzXcVbNm1234567890"
    monkeypatch.setenv("MODELS_API_KEY", key)
    (tmp_path / "bot.py").write_text(CUT_PROGRAM)
    task = ProgramTask(command=[sys.executable, "bot.py", str(more)], folder=str(tmp_path), version="1")
    message = str(next(iter(Runner(DirectoryStore(tmp_path / "store")).run(task, ROWS))).error)
    assert "x" * more in message or len(message) > 200
    text = message + written(tmp_path / "store")
    assert not [key[at : at + 8] for at in range(len(key) - 7) if key[at : at + 8] in text]


def test_the_identity_of_a_program_does_not_reveal_a_secret_nor_depend_on_it() -> None:
    def spec(**env: str) -> Any:
        return ProgramTask(command="bot", env=env, version="1").identify().spec

    assert spec(BOT_TOKEN="0091") == spec(BOT_TOKEN="0092")
    assert spec(BOT_TOKEN="0091")["env"] == {"BOT_TOKEN": None}
    assert spec(MODE="fast") != spec(MODE="slow")
    assert spec(DSN="postgres://me:a@host/db") == spec(DSN="postgres://me:b@host/db")
    assert spec(DSN="postgres://me:a@host/db") != spec(DSN="postgres://me:a@other/db")


def test_ids_do_not_depend_on_the_variables_of_a_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    task = ProgramTask(command="bot productionserver", env={"MODE": "productionserver"}, version="1")
    before = task.identify().spec
    monkeypatch.setenv("SOME_API_KEY", "productionserver")
    assert task.identify().spec == before


@pytest.mark.parametrize("piece", ["sk-", "-eyJaaaaaaaa", "basic a'", "authorization: value: ", "x://y:"])
def test_a_long_text_that_almost_holds_tokens_is_searched_in_linear_time(piece: str) -> None:
    text = piece * 20_000  # with a quadratic search, this would take a quarter of a minute
    assert redact(text).count(piece[:2]) > 0


def test_a_value_in_use_is_found_whatever_its_name() -> None:
    use_secret("blue-elephant-7", "${RUN_ID}")
    assert redact("refused blue-elephant-7") == "refused ${RUN_ID}"
    use_secret("no1")
    assert redact("no1") == "no1"


CODE = """
import os

API_KEY = os.environ["BOT_KEY"]
HEADERS = {"Authorization": "Bearer " + os.environ["MODELS_API_KEY"], "Accept": "json"}
MODE = os.environ["MODE"]

class Bot:
    def __init__(self, api_key, mode):
        self.api_key, self.mode = api_key, mode

    def __call__(self, input, suffix="-" + os.environ["MODELS_API_KEY"]):
        return [input, API_KEY, HEADERS, MODE, suffix]
"""


def bot_identity(folder: Path, name: str, **more: str) -> Any:
    (folder / f"{name}.py").write_text(CODE)
    spec = importlib.util.spec_from_file_location(name, folder / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    bot = module.Bot(os.environ["BOT_KEY"], more.get("mode", "plain"))
    identity = FunctionTask(bot).identify()
    return identity.spec, [*identity.parts.values()]


def test_the_fingerprint_of_code_does_not_depend_on_the_keys_it_has_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BOT_KEY", "0091")
    monkeypatch.setenv("MODE", "fast")
    here = bot_identity(tmp_path, "bot")
    monkeypatch.setenv("BOT_KEY", "0092")
    monkeypatch.setenv("MODELS_API_KEY", "another-key-of-somebody-else")
    assert bot_identity(tmp_path, "bot") == here
    assert bot_identity(tmp_path, "bot", mode="other") != here
    monkeypatch.setenv("MODE", "slow")
    assert bot_identity(tmp_path, "bot") != here


def test_a_text_of_the_code_counts_whatever_its_name() -> None:
    def guard(secret: str) -> Any:
        return FunctionTask(lambda input: secret in input).identify().spec

    assert guard("xyzzy") != guard("plugh")
