"""Which variables may be sent to which hosts, as the user decides."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from evaluand.core import secret_hosts
from evaluand.core.errors import SpecError
from evaluand.core.secret_hosts import Host, is_of_file, mark_origin, permissions, reading_file, refusal


@pytest.fixture(autouse=True)
def own_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.delenv("EVALUAND_SECRETS", raising=False)


@pytest.mark.parametrize(
    ("host", "url", "includes"),
    [
        ("models.example", "https://models.example/v1?a=b", True),
        ("models.example", "https://MODELS.example:443/", True),
        ("models.example", "http://models.example/", False),
        ("models.example", "https://models.example:8443/", False),
        ("models.example", "https://models.example.evil.example/", False),
        ("models.example", "https://evil-models.example/", False),
        ("models.example", "https://a.models.example/", False),
        ("models.example", "https://evil.example/models.example", False),
        ("models.example", "https://evil.example#@models.example/", False),
        ("models.example", "https://evil.example\\@models.example/", True),  # refused for its user, by the client
        ("models.example:8443", "https://models.example:8443/", True),
        ("models.example:8443", "https://models.example/", False),
        ("http://models.example", "http://models.example/", True),
        ("http://models.example", "https://models.example/", False),
        ("http://models.example:8000", "http://models.example:8000/", True),
        ("http://models.example:8000", "http://models.example/", False),
        ("127.0.0.1", "http://127.0.0.1:5000/", True),
        ("127.0.0.1", "https://127.0.0.1/", True),
        ("127.0.0.1", "http://localhost:5000/", False),
        ("127.0.0.1:5000", "http://127.0.0.1:5000/", True),
        ("127.0.0.1:5000", "http://127.0.0.1:5001/", False),
        ("https://127.0.0.1", "http://127.0.0.1:5000/", False),
        ("localhost", "http://localhost.evil.example/", False),
        ("::1", "http://[::1]:5000/", True),
        ("[::1]:5000", "http://[::1]:5001/", False),
        ("127.0.0.1", "http://127.0.0.1.nip.example/", False),
        ("127.0.0.1", "http://127.0.0.1./", False),
        ("models.example.", "https://models.example/", True),
        ("models.example", "https://models.example./", True),
        ("models.example", "https://models.example../", False),
        ("münchen.example", "https://MÜNCHEN.example/", True),
        ("münchen.example", "https://xn--mnchen-3ya.example./", True),
        ("xn--mnchen-3ya.example", "https://münchen.example/", True),
        ("munchen.example", "https://münchen.example/", False),
        ("strasse.example", "https://straße.example/", False),
    ],
)
def test_a_host_includes_exactly_its_own_urls(host: str, url: str, includes: bool) -> None:
    assert Host.parse(host).includes(url) is includes


@pytest.mark.parametrize(
    "text",
    [
        *("", " ", "*", "*.example", "models.example/v1", "https://models.example/v1", "me@models.example", "a b"),
        *("a,b", "ftp://models.example", "https://", "models.example:port", "models.example?x", "-a.example"),
        *("[::1", "$(id)"),
    ],
)
def test_what_is_no_host_is_refused(text: str) -> None:
    with pytest.raises(SpecError, match="is no host; write its name alone"):
        Host.parse(text)


def test_a_name_is_encoded_as_the_client_encodes_it() -> None:
    yarl = pytest.importorskip("yarl")
    for name in ("münchen.example", "straße.example", "例え.jp", "models.example"):
        assert Host.parse(name).name == yarl.URL(f"https://{name}/").raw_host


@given(
    st.sampled_from(["models.example", "10.0.0.3", "127.0.0.1", "::1", "localhost", "a_b.c-d.example"]),
    st.none() | st.integers(1, 65535),
    st.sampled_from([None, "http", "https"]),
)
def test_a_host_reads_back_from_its_text(name: str, port: int | None, scheme: str | None) -> None:
    host = Host(name, port, scheme)
    assert Host.parse(str(host)) == host


def test_a_refusal_names_variable_host_and_the_command_that_allows_it() -> None:
    assert refusal("AWS_KEY", "https://evil.example/x", permissions()) == (
        "AWS_KEY is not sent to evil.example, which you have not allowed; if you trust this host: "
        "evaluand secrets allow AWS_KEY evil.example"
    )
    exposed = refusal("TOKEN", "http://models.example:8000/", permissions())
    assert exposed is not None
    assert exposed.endswith("use https, or accept that with: evaluand secrets allow TOKEN http://models.example:8000")
    quoted = refusal("TOKEN", "https://`id`.example/", permissions())
    assert quoted is not None
    assert quoted.endswith("allow TOKEN '`id`.example'")


@pytest.mark.parametrize(
    "url",
    [
        *("https://evil.example/", "https://evil.example:8443/", "http://evil.example/", "http://evil.example:443/"),
        *("http://127.0.0.1:5000/", "http://127.0.0.1/", "https://localhost/", "http://[::1]:5000/"),
        *(
            "https://[2001:db8::1]/",
            "https://münchen.example/",
            "https://straße.example:8443/",
            "http://evil.example./",
        ),
    ],
)
def test_the_suggested_command_allows_the_url_that_was_refused(url: str) -> None:
    message = refusal("TOKEN", url, permissions())
    assert message is not None
    host = message.rpartition("evaluand secrets allow TOKEN ")[2].strip("'")
    assert refusal("TOKEN", url, [secret_hosts.Permission("TOKEN", Host.parse(host), "settings")]) is None
    assert refusal("OTHER", url, [secret_hosts.Permission("TOKEN", Host.parse(host), "settings")]) is not None


def test_well_known_keys_go_to_their_issuer_and_nowhere_else() -> None:
    assert refusal("OPENAI_API_KEY", "https://api.openai.com/v1/chat/completions", permissions()) is None
    assert refusal("OPENAI_API_KEY", "http://api.openai.com/v1", permissions()) is not None
    assert refusal("OPENAI_API_KEY", "https://api.openai.com.evil.example/v1", permissions()) is not None
    assert refusal("ANTHROPIC_API_KEY", "https://api.openai.com/v1", permissions()) is not None


def test_settings_are_written_for_the_user_alone_and_read_back() -> None:
    hosts = {"A": [Host("models.example"), Host("::1", 80)], "B": [Host("x.example", 1, "http")], "C": []}
    secret_hosts.write_settings(hosts)
    path = secret_hosts.settings_file()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert secret_hosts.read_settings() == {"A": hosts["A"], "B": hosts["B"]}
    assert [child.name for child in path.parent.iterdir()] == ["secrets.yaml"]


@pytest.mark.parametrize(
    ("text", "reported"),
    [
        ("A: [", "not YAML"),
        ("- A", "must be a mapping"),
        ("A: 3", "A: write a list of hosts"),
        ("A: [1]", "A: write a list of hosts"),
        ("A: !!int ''", "A: write a list of hosts"),
        ("A: !!timestamp x", "A: write a list of hosts"),
        ("A: !!python/object/apply:os.system [a.example]", "A: write a list of hosts"),
        ("A: [a.example]\nA: [b.example]", "A occurs twice; write all of its hosts in one list"),
        ("A: [[a.example]]", "A: write a list of hosts"),
        ("[a.example]: A", "NAME must be the name of an environment variable"),
        ("A: " + "[" * 60 + "]" * 60, "not YAML"),
        ("&a [*a]", "not YAML"),
        ("[]", "must be a mapping"),
        ("A: ['*']", "A: '\\*' is no host"),
        ("sk-1: [a.example]", "NAME must be the name of an environment variable"),
        (b"\xff", "it is not UTF-8"),
    ],
)
def test_invalid_settings_are_one_sentence_with_the_file(text: str | bytes, reported: str) -> None:
    path = secret_hosts.settings_file()
    path.parent.mkdir(parents=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(SpecError, match=f"secrets.yaml: .*{reported}"):
        permissions()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes")
def test_settings_that_are_a_pipe_are_not_waited_for() -> None:
    path = secret_hosts.settings_file()
    path.parent.mkdir(parents=True)
    os.mkfifo(path)
    with pytest.raises(SpecError, match=r"secrets\.yaml: cannot be read: is not a regular file"):
        permissions()


def test_one_host_may_be_written_as_a_text_and_jobs_use_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    path = secret_hosts.settings_file()
    path.parent.mkdir(parents=True)
    path.write_text("A: models.example\n")
    monkeypatch.setenv("EVALUAND_SECRETS", " B=127.0.0.1:80, A=[::1] ,")
    own = [(one.name, str(one.host), one.source) for one in permissions() if one.source != "built in"]
    assert own == [
        ("A", "models.example", "settings"),
        ("A", "::1", "environment"),
        ("B", "127.0.0.1:80", "environment"),
    ]


@pytest.mark.parametrize("value", ["TOKEN", "TOKEN=", "sk-1=models.example", "=models.example", "TOKEN=*"])
def test_an_invalid_environment_variable_is_one_sentence(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv("EVALUAND_SECRETS", value)
    with pytest.raises(SpecError, match=r"^EVALUAND_SECRETS: "):
        permissions()


@dataclass(frozen=True)
class Addressed:
    url: str
    size: int = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "url", mark_origin(self.url))


def test_a_text_of_a_file_remains_one_when_its_owner_is_copied_with_changes() -> None:
    with reading_file():
        of_file = Addressed("https://models.example")
    assert is_of_file(of_file.url)
    assert is_of_file(replace(of_file, size=2).url)
    assert replace(of_file, size=2) == Addressed("https://models.example", 2)
    assert not is_of_file(Addressed("https://models.example").url, None, 3)
