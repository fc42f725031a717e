"""Arguments that are named like credentials: hidden in what apps and tracers store, unless they are to be kept."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st
from pydantic import BaseModel

from evaluand import Dataset, DirectoryStore, Runner, keep_credentials, span
from evaluand.apps.app import App
from evaluand.apps.instrumentation.marking import instrument
from evaluand.core.credentials import VARIABLE, hide_arguments, hide_credentials
from evaluand.core.errors import NotStored
from evaluand.evaluation.evaluator import ScorerFailed
from evaluand.evaluation.feedback import Feedback
from evaluand.trace import Trace
from evaluand.trace.tracers.composite import CompositeTracer
from evaluand.trace.tracers.file import FileTracer
from evaluand.trace.tracers.in_memory import InMemoryTracer

SECRET = "f7Qx92-tulip"


@dataclass
class Login:
    user: str
    password: str


class Settings(BaseModel):
    model: str
    api_key: str


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("api_key", SECRET),
        ("apiKey", SECRET),
        ("openai_api_key", SECRET),
        ("password", SECRET),
        ("password", 1234),
        ("client_secret", [SECRET]),
        ("access_token", SECRET),
        ("token", "abc"),
        ("auth", ("me", SECRET)),
        ("cookies", {"session": SECRET}),
        ("Authorization", f"Bearer {SECRET}"),
        ("X-API-Key", SECRET),
        ("key", "sk-proj-abcdefgh12345678"),
    ],
)
def test_an_argument_named_like_a_credential_is_hidden(name: str, value: Any) -> None:
    assert hide_arguments({name: value, "question": "Who?"}) == {name: "***", "question": "Who?"}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("max_tokens", 9),
        ("session_tokens", 512),
        ("key", "chapter 2"),
        ("sort_key", "title"),
        ("token", 5),
        ("monkey", "ape"),
        ("password", None),
        ("has_password", True),
        ("tokens", ["Em", "ma"]),
        ("logprobs", [{"token": "Emma", "logprob": -0.1}, {"token": "2024", "logprob": -3.0}]),
        ("pattern", "a*"),
    ],
)
def test_what_only_sounds_like_one_is_not(name: str, value: Any) -> None:
    assert hide_arguments({name: value}) == {name: value}


@pytest.mark.parametrize(
    ("value", "hidden"),
    [
        ({"headers": {"Authorization": SECRET, "Accept": "a"}}, {"headers": {"Authorization": "***", "Accept": "a"}}),
        ([{"token": "a1b2c3d4e5"}, {"token": "Emma"}], [{"token": "***"}, {"token": "Emma"}]),
        (({"login": Login("me", SECRET)},), [{"login": {"user": "me", "password": "***"}}]),
        (Settings(model="m", api_key=SECRET), {"model": "m", "api_key": "***"}),
    ],
)
def test_credentials_inside_arguments_are_hidden(value: Any, hidden: Any) -> None:
    assert hide_credentials(value) == hidden


def test_a_value_without_credentials_is_itself() -> None:
    value = {"a": [1, ({"b": Login},)], "model": Settings}
    assert hide_credentials(value) is value


def test_a_value_within_itself_and_one_that_is_very_deep_are_hidden_too() -> None:
    looped: dict[str, Any] = {"api_key": SECRET}
    looped["self"] = looped
    assert hide_credentials(looped) == {"api_key": "***", "self": {"$unstorable": "dict within itself"}}
    deep: dict[str, Any] = {"api_key": SECRET}
    for _ in range(100_000):
        deep = {"in": deep}
    assert hide_credentials(deep) == {"$too_large": "dict nested too deeply"}


json_values = st.recursive(
    st.none() | st.booleans() | st.floats(allow_nan=False) | st.text(),
    lambda children: st.lists(children) | st.dictionaries(st.sampled_from(["a", "password", "text", "b"]), children),
)


@given(json_values)
def test_hiding_changes_nothing_but_credentials(value: Any) -> None:
    def expected(value: Any) -> Any:
        if isinstance(value, list):
            return [expected(item) for item in value]
        if isinstance(value, dict):
            is_hidden = {
                name: name == "password" and item is not None and type(item) is not bool for name, item in value.items()
            }
            return {name: "***" if is_hidden[name] else expected(item) for name, item in value.items()}
        return value

    assert hide_credentials(value) == expected(value)
    assert hide_credentials(hide_credentials(value)) == hide_credentials(value)


class Client:
    @instrument
    def post(self, url: str, *, api_key: str, headers: dict[str, str], **more: Any) -> str:
        return "ok"

    @instrument
    def ask(self, question: str, token: str, login: Login) -> str:
        return self.post("u", api_key=token, headers={"Authorization": f"Bearer {token}"}, timeout=3, secret=token)

    @instrument
    def log_in(self, password: str) -> str:
        return "welcome"


def use(client: Client) -> None:
    client.ask("Who?", SECRET, Login("me", SECRET))
    client.log_in(SECRET)


def stored_bytes(folder: Path) -> bytes:
    return b"".join(file.read_bytes() for file in sorted(folder.rglob("*")) if file.is_file())


def test_an_app_stores_no_credentials_among_arguments(tmp_path: Path) -> None:
    client = Client()
    with App(client, store=DirectoryStore(tmp_path), mode="none") as recording:
        use(client)
        recorded = stored_bytes(tmp_path)
    asked, logged_in = recording.records
    assert SECRET.encode() not in recorded + stored_bytes(tmp_path)
    assert asked["main_input"] == "Who?"
    assert asked["calls"][0]["args"] == {
        "url": "u",
        "api_key": "***",
        "headers": {"Authorization": "***"},
        "more": {"timeout": 3, "secret": "***"},
    }
    assert asked["calls"][1]["args"]["token"] == "***"
    assert asked["calls"][1]["args"]["login"] == {"user": "me", "password": "***"}
    assert (logged_in["main_input"], logged_in["calls"][0]["args"]) == ("***", {"password": "***"})


def test_an_app_within_another_stores_none_either(tmp_path: Path) -> None:
    outer, inner = DirectoryStore(tmp_path / "outer"), DirectoryStore(tmp_path / "inner")

    class Service:
        def __init__(self, client: Client) -> None:
            self.client = client

        @instrument
        def serve(self, text: str) -> str:
            use(self.client)
            return text

    client = Client()
    service = Service(client)
    with App(service, store=outer, mode="none"), App(client, store=inner, mode="none") as recording:
        service.serve("a")
    assert len(recording.records) == 2
    assert SECRET.encode() not in stored_bytes(tmp_path)


@pytest.mark.parametrize("switch", ["block", "variable"])
def test_the_switch_keeps_them_in_all_threads(switch: str, monkeypatch: pytest.MonkeyPatch) -> None:
    client = Client()

    def record() -> None:
        with App(client) as recording:
            use(client)
        records.extend(recording.records)

    records: list[Any] = []
    thread = threading.Thread(target=record)
    if switch == "variable":
        monkeypatch.setenv(VARIABLE, "1")
        thread.start()
        thread.join()
    else:
        with keep_credentials():
            thread.start()
            thread.join()
    asked, logged_in = records
    assert asked["calls"][0]["args"]["headers"] == {"Authorization": f"Bearer {SECRET}"}
    assert logged_in["main_input"] == SECRET


@pytest.mark.parametrize("path", ["main_input", "calls[0].args.password", "app.log_in[:].args.password"])
def test_a_feedback_scores_nothing_from_a_hidden_argument(path: str) -> None:
    client, feedback = Client(), Feedback(lambda text: len(text) / 10, name="strength").on(f"__record__.{path}")
    with App(client, feedbacks=[feedback], mode="with_app") as recording:
        client.log_in(SECRET)
    with pytest.warns(ScorerFailed, match=r"named like a credential .* record it within keep_credentials\(\)"):
        evaluation = recording.evaluation
    assert evaluation is not None
    assert evaluation.counts == {"strength": {"failed": 1}}
    with keep_credentials(), App(client, feedbacks=[feedback], mode="with_app") as recording:
        client.log_in(SECRET)
    assert recording.evaluation is not None
    assert recording.evaluation.table("strength")["value"].to_pylist() == [pytest.approx(len(SECRET) / 10)]


def test_asterisks_that_somebody_wrote_are_data() -> None:
    record = {"main_input": "***", "main_output": "***", "calls": [{"args": {"text": "***"}}]}
    feedback = Feedback(lambda a, b: float(a == b), name="same").on_input_output()
    assert feedback.evaluate({"__record__": record}).value == 1.0


def trace_in_run(tmp_path: Path, traced: Callable[[], None]) -> str:
    def task(text: str) -> str:
        traced()
        return text

    store = DirectoryStore(tmp_path)
    run = Runner(store).run(task, Dataset.from_rows([{"input": "a"}]))
    return json.dumps([batch.to_pylist() for batch in run.spans()], default=str)


def trace_in_file(tmp_path: Path, traced: Callable[[], None]) -> str:
    tracer = FileTracer(tmp_path / "trace.jsonl")
    with tracer.span("root"):
        traced()
    return (tmp_path / "trace.jsonl").read_text()


def trace_in_memory(tmp_path: Path, traced: Callable[[], None]) -> str:
    tracer = InMemoryTracer()
    with tracer.span("root"):
        traced()
    return str([each.model_dump_json() for each in tracer.export_for_viewing()])


def trace_in_several(tmp_path: Path, traced: Callable[[], None]) -> str:
    here, trace = InMemoryTracer(), Trace.start("mine")
    with CompositeTracer([here, trace.root]).span("root"):
        traced()
    return str([each.model_dump_json() for each in here.export_for_viewing()]) + str(trace.rows())


@pytest.mark.parametrize("stored", [trace_in_run, trace_in_file, trace_in_memory, trace_in_several])
def test_no_tracer_stores_or_sends_credentials(
    stored: Callable[[Path, Callable[[], None]], str], tmp_path: Path
) -> None:
    def traced() -> None:
        with span("ask", api_key=SECRET, input={"headers": {"Authorization": SECRET}, "question": "Who?"}) as s:
            s.set(token=SECRET, model="m")
            s.log("settings", Settings(model="m", api_key=SECRET))
            s.log("password", SECRET)

    text = stored(tmp_path, traced)
    assert SECRET not in text
    assert "Who?" in text
    assert text.count("***") >= 5
    with keep_credentials():
        kept = stored(tmp_path / "kept" if stored is trace_in_run else tmp_path, traced)
    assert SECRET in kept


def test_what_was_not_stored_is_an_error_of_data() -> None:
    result = Feedback(len).on("__record__.args.api_key").evaluate({"__record__": {"args": {"api_key": "***"}}})
    assert isinstance(result.error, NotStored)
