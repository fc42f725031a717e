"""Credentials: known by their names, however these are written, and kept out of files."""

from __future__ import annotations

import base64
import time
from dataclasses import dataclass
from pathlib import Path

import pytest
from support.feedback_functions import use
from support.thinned import thinned

from evaluand import App, DirectoryStore
from evaluand.apps.recording.stored import MODES
from evaluand.apps.recording.writer import RecordingWriter
from evaluand.core.errors import SpecError
from evaluand.core.redaction import (
    hide_values,
    is_secret,
    redact,
    redact_command,
    redact_message,
    without_passwords,
)
from evaluand.evaluation.feedback import Feedback
from evaluand.evaluation.provider import Provider, RemoteProvider

SURE = """
    api_key apiKey APIKey api_keys openai_api_key_2 OPENAI_API_KEY X-API-Key apikey pwd dbpwd password db_password
    passwords passwd passphrase secret secrets client_secret client_secret_value clientSecret access_token accessToken
    auth_tokens hf_token bearer bearer_token Authorization proxy-authorization aws_secret_access_key access_key_id
    private_key privateKey google_credentials session_token subscription_key id_token
"""
LIKELY = "token key auth basic_auth auth_header cookie Set-Cookie cookies openai_key token_2 jwt"
PLAIN = """
    monkey keyboard keywords keys tokens max_tokens n_tokens input_tokens tokenizer token_limit sort_key primary_key
    cache_key input_key eos_token pad_token_id is_token author authority secretary passage compass public_key
    message_keys key_points cookiecutter name query
"""


def test_credentials_are_known_by_the_words_of_their_names() -> None:
    sure, likely, plain = SURE.split(), LIKELY.split(), PLAIN.split()
    assert [name for name in sure + likely if not is_secret(name)] == []
    assert [name for name in sure if not is_secret(name, strict=True)] == []
    assert [name for name in plain + likely if is_secret(name, strict=True)] == []
    assert [name for name in plain if is_secret(name)] == []


@pytest.mark.parametrize(
    ("text", "reported"),
    [
        ("postgres://me:word@host/db", "postgres://me:***@host/db"),
        ("redis://:word@host:1/0", "redis://:***@host:1/0"),
        ("https://host/x?api_key=word&q=1", "https://host/x?api_key=***&q=1"),
        ("Server=x;Password=word;", "Server=x;Password=***;"),
        ("Authorization: Bearer word", "Authorization: Bearer ***"),
        ("a password is asked for: {password}", "a password is asked for: {password}"),
        ("http://host:80/a@b key=a", "http://host:80/a@b key=a"),
    ],
)
def test_texts_of_configurations_are_reported_without_passwords(text: str, reported: str) -> None:
    assert without_passwords(text) == reported


@pytest.mark.parametrize(
    ("message", "hidden"),
    [
        ("sent Bearer sk-abcdef", "sk-abcdef"),
        ("401 for bearer eyJhbGciOiJIUzI1NiJ9.e30.c2ln, give up", "eyJhbGciOiJIUzI1NiJ9.e30.c2ln"),
        ("tried Basic dXNlcjpwYXNz.", "dXNlcjpwYXNz"),
        ("tried basic dXNlcjo=", "dXNlcjo="),
        ("Bearer 0123456789", "0123456789"),
        ("Bearer qwertyuiopasdfghjklzxcvb", "qwertyuiopasdfghjklzxcvb"),
        ("Bearer SECRETWORD", "SECRETWORD"),
        ("Authorization: Bearer word", "word"),
        ("the Authorization header, Basic word", "word"),
        ("{'X-Auth': 'Bearer word'}", "word"),
        ('curl -H "Authorization: bearer word"', "word"),
        ("proxy-authorization=Basic word", "word"),
        ("Incorrect API key provided: sk-proj-ab12cd34.", "ab12cd34"),
        ("push declined for ghp_0123456789abcdef", "0123456789abcdef"),
        ("sent Bearer secrettoken", "secrettoken"),
        ("Bearer ABCDEFG", "ABCDEFG"),
        ("401: bearer hunter", "hunter"),
        ("gave basic auth, then Basic hunter.", "hunter"),
        ("sk-proj-abcdefGHIJKLMNOP", "abcdefGHIJKLMNOP"),
        ("sk-abcdefghijklmnopqrstuvwxyz", "abcdefghijklmnop"),
        ("sk-ant-api03-abcdefgh-ijkl_mnop", "mnop"),
        ("sk_live_abcdefghijklmnop", "abcdefgh"),
        ("hf_abcdefghijklmnopqrstuvwxyzABCDEFGH", "abcdefgh"),
        ("Incorrect API key provided: gsk_abcdefDEFGHIghijkl", "abcdef"),
        ("token=github_pat_ABCDEFGHabcdefghij_klmnop", "klmnop"),
        ("AIzaSyABCDEFGHIJabcdefghijklmnopqrstuvw", "abcdefgh"),
        ("the key AKIAIOSFODNNEXAMPLEX is unknown", "IOSFODNN"),
        ("npm_abcdefghijklmnopqrstuvwxyzABCDEFGHIJ", "abcdefgh"),
        ("xoxb-123456789012-abcdefgh", "abcdefgh"),
        ("glpat-abcdefghijklmnopqrst", "abcdefgh"),
        ("the token eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl has expired", "eyJzdWIiOiIxIn0"),
        ("https://a1b2c3d4e5f6a7b8c9d0a1b2c3d4e5f6@o1.ingest.sentry.io/42", "a1b2c3d4"),
        ("https://a1b2c3d4e5f6a7b8c9d0:x-oauth-basic@host/x.git", "a1b2c3d4"),
        ("postgres://u:first@second@host/db", "second"),
        ("404 of https://hooks.slack.com/services/T0AB/B0CD/wordword", "B0CD/wordword"),
        ("https://discord.com/api/webhooks/123456/wordword?wait=1", "wordword"),
        ("https://acme.webhook.office.com/webhookb2/word@word/IncomingWebhook/wordword", "wordword"),
        ("https://api.telegram.org/bot123456:AAwordword/getMe", "AAwordword"),
        ("curl -u me:word http://host", "word"),
        ("['curl', '-u', 'me:word']", "word"),
        ("curl --user=me:word http://host", "word"),
        ("login --user me --password hush", "hush"),
        ("['login', '--password', 'hush']", "hush"),
        ("tool --api-key 'word'", "word"),
        ("mysql -h host -pword db", "word"),
        ("mysqldump -u me -pword", "word"),
        ("-----BEGIN RSA PRIVATE KEY-----\nMIIEword+/=\nword\n-----END RSA PRIVATE KEY-----", "word"),
        (r"'-----BEGIN PRIVATE KEY-----\nMIIEwordwordwordword\nword\n-----END PRIVATE KEY-----\n'", "word"),
        ("-----BEGIN PRIVATE KEY-----\nMIIEwordwordwordword\nwordMIIEwordwordword", "word"),
        ("Cookie: first=1; session=word", "word"),
        ("Set-Cookie: session=word; Path=/; HttpOnly", "word"),
        ("{'set-cookie': 'session=word; Path=/'}", "word"),
        ("[('set-cookie', 'session=word'), ('date', 'now')]", "word"),
        ("{'password': 'ab, cd hush', 'user': 'me'}", "hush"),
        ('{"client_secret": "ab \\" cd word", "user": "me"}', "word"),
        (r'"{\"password\": \"ab cd hush\"}"', "hush"),
    ],
)
def test_credentials_of_headers_are_hidden_in_messages(message: str, hidden: str) -> None:
    redacted = redact_message(message)
    assert hidden not in redacted
    assert "***" in redacted


@pytest.mark.parametrize(
    "message",
    [
        "basic auth failed",
        "Basic authentication is required; bearer tokens are not accepted",
        "the bearer token expired",
        "Bearer Token missing.",
        "RuntimeError('basic auth failed')",
        "a basic URL (basic auth) and the basic model's answer",
        "sk-learn and hf-hub are packages; the task-key_1 is a name",
        "a basic idea, a basic fault, and basics in general",
        'WWW-Authenticate: Basic realm="x"',
        "Basic and Bearer are accepted; basic access authentication is off",
        "rk-model-v2, hf-internal-testing1, pk_column_2 and sk-learn-1.5.2",
        "--password is required; set --token or --api-key. The option --api-key must not be empty",
        "use --password to log in, -u for the user, docker run -u 1000:1000 image, python -u main.py",
        "a '-----BEGIN PRIVATE KEY-----' line is missing in the file of this service",
        "the cookie: it has crumbs; Set-Cookie is a header, cookies = 3",
        "https://hooks.slack.com/services and https://user@host, https://documentation@readthedocs.io",
        "https://host/services/T0/B0 and git+https://release-candidate@host/x",
        "max_tokens: 'at most ten', sort_key='the name of a column'",
        "compare -p and --passes 3 of mysql; --max-tokens 8, --keys a b",
        "hf_internal_testing_2026, npm_config_registry_1, sk-learn-intelex-2026, fw_version_2 and AKIA",
    ],
)
def test_prose_about_credentials_is_readable(message: str) -> None:
    assert redact_message(message) == message


KEY = "sk-proj-abcdEFGH0123ijklMNOP4567wxyz"


@pytest.mark.parametrize(
    ("message", "redacted"),
    [
        (f"Incorrect API key provided: {KEY[:12]}****{KEY[-4:]}.", f"provided: ${{MODELS_TOKEN}}****{KEY[-4:]}."),
        (f"unknown key {KEY[:10]}… here", "unknown key ${MODELS_TOKEN}… here"),
        (
            f"{KEY[9:17]}|{KEY[-8:]}|{KEY[-7:]}|{KEY[3:10]}",
            f"${{MODELS_TOKEN}}|${{MODELS_TOKEN}}|{KEY[-7:]}|{KEY[3:10]}",
        ),
        (f"cut: {KEY[13:]}", "cut: ${MODELS_TOKEN}"),
        (f"{KEY}{KEY}", "${MODELS_TOKEN}${MODELS_TOKEN}"),
        (f"bytes {KEY.encode().hex()}", "bytes ${MODELS_TOKEN}"),
        (f"wrapped:\n  {KEY[:20]}\n  {KEY[20:]}\nend", "wrapped:\n  ${MODELS_TOKEN}\nend"),
    ],
)
def test_parts_of_a_known_value_are_hidden(monkeypatch: pytest.MonkeyPatch, message: str, redacted: str) -> None:
    monkeypatch.setenv("MODELS_TOKEN", KEY)
    assert redact(message).endswith(redacted)
    assert not any(KEY[start : start + 8] in redact(message) for start in range(len(KEY) - 7))


@pytest.mark.parametrize("written", [KEY, base64.b64encode(KEY.encode()).decode(), KEY.encode().hex()])
def test_eight_characters_of_a_known_value_are_hidden_wherever_a_text_is_cut(
    monkeypatch: pytest.MonkeyPatch, written: str
) -> None:
    monkeypatch.setenv("MODELS_TOKEN", KEY)
    for start in range(len(written) - 8):
        for end in range(start + 8, len(written) - 1):  # the last digits of base64 depend on what follows
            assert redact(f"{'x' * (start % 4)} {written[start:end]}") == f"{'x' * (start % 4)} ${{MODELS_TOKEN}}"


@pytest.mark.parametrize(
    "message",
    ["reached https://other.org/v1", "https://other.example/T1", "no /home/me/data.csv", "***, loading..."],
)
def test_what_is_public_in_a_known_value_is_readable(monkeypatch: pytest.MonkeyPatch, message: str) -> None:
    monkeypatch.setenv("HOOK_SECRET", "https://hooks.example/T0123/B4567")
    monkeypatch.setenv("SSH_KEY", "/home/me/.ssh/no_such_key")
    assert redact(message) == message


def test_what_is_no_part_of_a_known_value_is_readable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MODELS_TOKEN", KEY)
    message = f"sk-prox-... and ***{KEY[-3:]}, {KEY[-4:]} ... {KEY[-4:]}s, loading..."
    assert redact(message) == message


def test_the_text_after_a_hidden_value_is_readable() -> None:
    texts = {
        "{'password': 'ab cd', 'user': 'me'}": "{'password': '***', 'user': 'me'}",
        "{'authorization': 'Bearer ab', 'user': 'me'}": "{'authorization': 'Bearer ***', 'user': 'me'}",
        "Cookie: a=b; c=d\nHost: x": "Cookie: ***\nHost: x",
        "the password: 'x is not closed": "the password: '*** is not closed",
        "curl -u me:word host": "curl -u me:*** host",
        "-----BEGIN PRIVATE KEY-----\na\n-----END PRIVATE KEY-----, no": "-----BEGIN PRIVATE KEY-----***, no",
        "postgres://u:p@ss@h/d?x=a@b": "postgres://u:***@h/d?x=a@b",
    }
    assert {text: redact_message(text) for text in texts} == texts


def test_the_arguments_of_commands_have_no_credentials() -> None:
    assert redact_command(["curl", "-u", "me:word", "x"]) == ["curl", "-u", "me:***", "x"]
    assert redact_command(["mysql", "-pword", "-P3306"]) == ["mysql", "-p***", "-P3306"]
    assert redact_command(["tool", "-pages", "-u", "x"]) == ["tool", "-pages", "-u", "x"]


@thinned(
    "piece",
    ["a://b:", "a@", "-----BEGIN PRIVATE KEY-----", "cookie: a=b;", "-u a:", "mysql ", "'password': '", 'password="\\',
     KEY[:8], "*", ".", f"{KEY[:8]}...", "--password ", "\n", "//x.", "a1", "-", "sk-"], every=4,
)  # fmt: skip
def test_redaction_takes_linear_time(monkeypatch: pytest.MonkeyPatch, piece: str) -> None:
    monkeypatch.setenv("MODELS_TOKEN", KEY)

    def seconds(n_bytes: int) -> float:
        begin = time.process_time()
        redact(piece * (n_bytes // len(piece)))
        return time.process_time() - begin

    small, large = (min(seconds(n) for _ in range(2)) for n in (20_000, 80_000))
    assert large < 10 * small + 0.05


class Judge(Provider):
    def __init__(self, url: str = "", authorization: str = "", pwd: str = "", headers: object = None) -> None:
        self.url, self.authorization, self.pwd, self.headers = url, authorization, pwd, headers

    def judge(self, text: str) -> float:
        return 1.0


@dataclass(frozen=True, kw_only=True)
class Remote(RemoteProvider):
    api_key: str | None = None
    url: str = ""

    def judge(self, text: str) -> float:
        return 1.0


SECRET = "SECRETWORD"
JUDGES = {
    "url": Judge(url=f"https://me:{SECRET}@host/x"),
    "authorization": Judge(authorization=f"Bearer {SECRET}"),
    "pwd": Judge(pwd=SECRET),
    "headers.api_key": Judge(headers={"api_key": SECRET}),
    "headers": Judge(headers=[f"Authorization: Bearer {SECRET}"]),
    "api_key": Remote(version="1", api_key=SECRET, url=f"https://me:{SECRET}@host"),
}


FEEDBACKS = {place: Feedback(judge.judge, name=place).on_output() for place, judge in JUDGES.items()}


@pytest.mark.parametrize("mode", MODES[:-1])
def test_no_credential_of_a_judge_or_an_app_is_written(tmp_path: Path, mode: str) -> None:
    with RecordingWriter.begin(DirectoryStore(tmp_path), {"name": "rag"}, FEEDBACKS, mode=mode) as recording:
        use(recording, "q")
    assert recording.evaluate().counts == {place: {"scored": 1} for place in JUDGES}
    written = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert [path.name for path in written if SECRET.encode() in path.read_bytes()] == []


@pytest.mark.parametrize("place", JUDGES)
def test_a_judge_with_a_credential_cannot_be_deferred(tmp_path: Path, place: str) -> None:
    with pytest.raises(SpecError, match=f"cannot be stored with its {place}.*; let it read that from the environment"):
        FEEDBACKS[place].to_json()
    with pytest.raises(SpecError, match="cannot be deferred"):
        RecordingWriter.begin(DirectoryStore(tmp_path), {"name": "rag"}, [FEEDBACKS[place]], mode="deferred")


def test_another_key_is_the_same_provider_and_stands_in_no_identity() -> None:
    specs = [Remote(version="1", api_key=key).identify("judge").spec for key in ("a", "b", None)]
    assert specs[0] == specs[1] == specs[2]
    assert specs[0]["parameters"].keys() == {"model", "version", "url"}


class Agent:
    def __init__(self) -> None:
        self.openai_api_key_2 = self.pwd = self.access_key_id = self.client_secret_value = self.bearer = SECRET
        self.dsn, self.connection = f"postgres://me:{SECRET}@host/db", f"Server=x;Password={SECRET};"
        self.headers = {"Authorization": SECRET, "x-api-key": SECRET, "Cookie": SECRET}
        self.api_keys, self.auth, self.max_tokens = [SECRET], ("me", SECRET), 3

    def ask(self, question: str) -> str:
        return question


def test_the_structure_of_an_app_has_no_credential() -> None:
    structure = App(Agent(), name="agent", metadata={"connection": f"a;pwd={SECRET}", "team": "x"}).json
    assert SECRET not in str(structure)
    assert structure["app"]["max_tokens"] == 3
    assert structure["metadata"] == {"connection": "a;pwd=***", "team": "x"}


class Word:
    def __init__(self, token: str, key: int) -> None:
        self.token, self.key = token, key


def test_what_a_call_gives_is_judged_as_it_is() -> None:
    distinct = Feedback(lambda tokens: len(set(tokens)), name="distinct", version="1")
    feedback = distinct.on("__record__.main_output[:].token.collect()")
    app = App(lambda text: [Word(word, i) for i, word in enumerate(text.split())], name="words", feedbacks=[feedback])
    with app as recording:
        app.app("Jane wrote Emma")
    assert recording.evaluation is not None
    assert recording.evaluation.table("distinct")["value"].to_pylist() == [3.0]


@pytest.mark.parametrize("password", ["pässwörd-7", "pä'ss\"wörd", "密码-secret-1", "back\\släsh"])
def test_a_password_with_other_letters_is_hidden_in_literals_of_python(password: str) -> None:
    for text in (ascii(password), repr(password.encode()), ascii([password, "'"]), repr({"p": password.encode()})):
        hidden = hide_values(text, {password: "${P}"})
        assert "${P}" in hidden
        assert not any(part in hidden for part in ("\\x", "\\u", "secret", "back"))
