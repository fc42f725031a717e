"""Entries that are several tasks: each prompt with each model; and the model that a command chooses."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result
from support.chats import Chat
from support.places import ROOT_FOLDER

from evaluand.cli import main
from evaluand.core.errors import SpecError
from evaluand.experiment import json_schema
from evaluand.experiment.experiment import Experiment
from evaluand.experiment.parsing import parse_file

SMALL: dict[str, Any] = {"url": "http://127.0.0.1:1/v1", "name": "small", "version": "1"}
ENTRY: dict[str, Any] = {
    "kind": "chat",
    "system": "Be brief.",
    "prompts": {"short": "{{ question }}", "long": "file:prompts/long.txt"},
    "models": {"small": SMALL, "big": SMALL | {"name": "big"}},
}
NAMES = ["ask/short/small", "ask/short/big", "ask/long/small", "ask/long/big"]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    rows = [{"question": f"{n}? Really.", "answer": f"{n}?", "hint": "h"} for n in range(3)]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "prompts").mkdir()
    (tmp_path / "prompts" / "long.txt").write_text("Think.\n{{ question }}\n")
    (tmp_path / "app.py").write_text("def answer(text):\n    return text\n")
    return tmp_path


def write(folder: Path, tasks: Any, **more: Any) -> Path:
    path = folder / "e.yaml"
    dataset = {"path": "rows.jsonl", "input": "question", "expected": "answer"}
    whole = {"name": "e", "dataset": dataset, "tasks": tasks, "scorers": "includes", "metrics": "accuracy", **more}
    path.write_text(yaml.safe_dump(whole, sort_keys=False))
    return path


def loaded(folder: Path, entry: Any, model: str | None = None) -> dict[str, Any]:
    return dict(Experiment.from_file(write(folder, {"ask": entry}), model=model).tasks)


def faults(folder: Path, entry: Any, **more: Any) -> list[str]:
    path = write(folder, {"ask": entry, **more})
    with pytest.raises(SpecError) as error:
        Experiment.from_file(path)
    lines = path.read_text().split("\n")
    found = []
    for line in str(error.value).split("\n"):
        place, _, message = line.removeprefix(f"{path}:").partition(": ")
        found.append(f"{lines[int(place) - 1].strip().partition(':')[0]} | {message}")
    return found


def call(folder: Path, *arguments: object) -> Result:
    return CliRunner(env={"EVALUAND_STORE": str(folder / "store"), "COLUMNS": "120"}).invoke(
        main, [str(each) for each in arguments]
    )


def test_each_prompt_with_each_model_is_a_task(folder: Path) -> None:
    tasks = loaded(folder, ENTRY)
    assert [*tasks] == NAMES
    made = [(each.model.name, each.system, each.make_messages("Q")[-1]["content"]) for each in tasks.values()]
    assert made == [(model, "Be brief.", text) for text in ("Q", "Think.\nQ") for model in ("small", "big")]


def test_either_axis_alone_is_enough(folder: Path) -> None:
    without = {key: value for key, value in ENTRY.items() if key not in ("prompts", "models")}
    assert [*loaded(folder, without | {"prompts": ENTRY["prompts"], "model": SMALL})] == ["ask/short", "ask/long"]
    assert [*loaded(folder, without | {"models": ENTRY["models"]})] == ["ask/small", "ask/big"]
    instruct = {"kind": "instruct", "instruction": "Translate.", "models": ENTRY["models"]}
    assert [*loaded(folder, instruct)] == ["ask/small", "ask/big"]


def test_a_prompt_may_be_several_parameters(folder: Path) -> None:
    prompts = {
        "kind": {"system": "Be kind.", "prompt": "{{ question }}"},
        "none": {"messages": [{"role": "user", "content": "Hi"}]},
    }
    tasks = loaded(folder, {"kind": "chat", "model": SMALL, "prompts": prompts})
    assert [[m["content"] for m in task.make_messages("Q")] for task in tasks.values()] == [["Be kind.", "Q"], ["Hi"]]


def test_lists_are_named_after_files_models_and_numbers(folder: Path) -> None:
    entry = {
        "kind": "chat",
        "prompts": ["{{ question }}", "file:prompts/long.txt"],
        "models": [SMALL, "http://a.example/v1#org/m"],
    }
    assert [*loaded(folder, entry)] == ["ask/1/small", "ask/1/m", "ask/long/small", "ask/long/m"]


def test_faults_are_reported_once_where_they_are_written(folder: Path) -> None:
    (folder / "prompts" / "long.txt").write_text("Think.\n{{ qestion }}\n")
    entry = ENTRY | {"prompts": ENTRY["prompts"] | {"short": "{question}"}}
    entry["models"] = entry["models"] | {"big": SMALL | {"max_tokens": 0}}
    assert faults(folder, entry) == [
        "short | tasks.ask.prompts.short: {question} would be sent as it is; write {{ question }}",
        "long | tasks.ask.prompts.long: prompts/long.txt:2: there is no value 'qestion' (did you mean 'question'?);"
        " known: question, input",
        "max_tokens | tasks.ask.models.big.max_tokens: is 0; give an integer of at least 1",
    ]


@pytest.mark.parametrize(
    ("changed", "fault"),
    [
        ({"prompts": "{{ question }}"}, "prompts | tasks.ask.prompts: is no list of choices; give each a name"),
        ({"models": {}}, "models | tasks.ask.models: is no list of choices; give each a name"),
        ({"models": [SMALL, SMALL]}, "models | tasks.ask.models: has two that are called 'small'; give each a name"),
        ({"prompt": "{{ question }}"}, "prompts | tasks.ask.prompts: and prompt exclude each other"),
    ],
)
def test_what_is_no_matrix_is_refused(folder: Path, changed: Any, fault: str) -> None:
    assert any(found.startswith(fault) for found in faults(folder, ENTRY | changed))


def test_faults_of_models_are_reported_at_each_model(folder: Path) -> None:
    models = {"bare": "gpt-5-mini", "misspelt": "opnai/gpt-5", "nameless": "http://127.0.0.1:1/v1", "good": SMALL}
    found = faults(folder, ENTRY | {"models": models})
    assert [line.partition(": model ")[0] for line in found] == [
        "bare | tasks.ask.models.bare",
        "misspelt | tasks.ask.models.misspelt",
        "nameless | tasks.ask.models.nameless",
    ]
    assert "(did you mean 'openai'?)" in found[1]
    assert found[2].endswith("add the name of the model there, as in http://127.0.0.1:1/v1#NAME")


@pytest.mark.parametrize(("wrong", "meant"), [("promts", "prompts"), ("model_list", "models")])
def test_a_misspelt_key_of_several_choices_is_recognised(folder: Path, wrong: str, meant: str) -> None:
    entry = {wrong if key == meant else key: value for key, value in ENTRY.items()}
    [found] = faults(folder, entry)
    assert found.startswith(f"{wrong} | tasks.ask.{wrong}: chat has no such parameter (did you mean {meant!r}?)")


def test_a_misspelt_key_of_a_model_is_recognised(folder: Path) -> None:
    models = ENTRY["models"] | {"big": SMALL | {"verson": "1"}}
    assert faults(folder, ENTRY | {"models": models}) == [
        "verson | tasks.ask.models.big.verson: unknown key (did you mean 'version'?)"
    ]


def test_an_unknown_kind_is_reported_at_its_line(folder: Path) -> None:
    entry = {"prompt": "{{ question }}", "model": SMALL, "kind": "chats"}
    [found] = faults(folder, entry)
    assert found.startswith("kind | tasks.ask.kind: no kind of task is called 'chats' (did you mean 'chat'?)")
    [found] = faults(folder, "chats")
    assert found.startswith("ask | tasks.ask: no kind of task is called 'chats'")


def test_without_a_library_for_templates_the_fault_is_at_each_prompt(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "jinja2", None)
    for part in ("sandbox", "syntax"):
        monkeypatch.delitem(sys.modules, f"evaluand.core.text.template_{part}", raising=False)
    remedy = "templates need Jinja2: pip install 'evaluand[llm]'"
    assert faults(folder, ENTRY) == [
        f"system | tasks.ask.system: {remedy}",
        f"short | tasks.ask.prompts.short: {remedy}",
        f"long | tasks.ask.prompts.long: {remedy}",
    ]


def test_a_task_of_the_matrix_and_another_entry_may_not_have_one_name(folder: Path) -> None:
    found = faults(folder, ENTRY, **{"ask/short/big": "app.py:answer"})
    assert found == ["ask/short/big | tasks.ask/short/big: is also a task of ask; give it another name"]


def test_the_published_schema_takes_matrices(folder: Path) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    check = jsonschema.Draft202012Validator(json_schema())
    assert check.is_valid(yaml.safe_load(write(folder, {"ask": ENTRY}).read_text()))
    assert check.is_valid(
        yaml.safe_load(write(folder, {"ask": {"kind": "chat", "prompt": "{{ question }}"}}).read_text())
    )
    assert not check.is_valid(yaml.safe_load(write(folder, {"ask": ENTRY | {"prompts": 3}}).read_text()))


# The model of a command


def test_a_model_chosen_by_a_command_takes_the_place_of_the_file_s(folder: Path) -> None:
    other = "http://other.example/v1#large"
    assert [*loaded(folder, ENTRY, "big")] == ["ask/short/big", "ask/long/big"]
    tasks = loaded(folder, ENTRY, other)
    assert {name: (task.model.url, task.model.name) for name, task in tasks.items()} == {
        f"ask/{prompt}": ("http://other.example/v1", "large") for prompt in ("short", "long")
    }
    own = {"kind": "chat", "model": SMALL | {"temperature": 1.0, "max_tokens": 9}}
    [task] = loaded(folder, own, other).values()
    assert (task.model.name, task.model.version, task.model.temperature, task.model.max_tokens) == (
        "large",
        None,
        1.0,
        9,
    )
    [task] = loaded(folder, {"kind": "chat"}, other).values()
    assert task.model.name == "large"


def test_a_model_for_no_task_is_refused(folder: Path) -> None:
    path = write(folder, "app.py:answer")
    with pytest.raises(SpecError, match=r"no task takes a model, such as \{kind: chat, prompt: …\}; leave out --model"):
        parse_file(path, model="openai/gpt-5-mini")
    with pytest.raises(SpecError, match="to run the task 'answer' alone, give --task answer"):
        parse_file(path, model="answer")


# From beginning to end


def test_a_matrix_is_run_compared_gated_and_shown(chat: Callable[..., Chat], folder: Path) -> None:
    server = chat()
    models = {name: SMALL | {"url": server.url, "name": name} for name in ("small", "big")}
    gates = ["accuracy not worse than ask/short/small by 0.9"]
    path = write(folder, {"ask": ENTRY | {"models": models}}, gates=gates)
    ran = call(folder, "run", path)
    assert ran.exit_code == 0, ran.output
    assert len(server.asked) == 12
    assert all(name in ran.stdout for name in NAMES)
    assert ran.stdout.count("passed") == 3
    assert call(folder, "run", path).exit_code == 0
    assert len(server.asked) == 12  # the second run asks nothing
    alone = call(folder, "run", path, "--model", "big")
    assert alone.exit_code == 0
    assert "note: gate 'accuracy not worse than ask/short/small by 0.9' needs the task ask/short/small" in alone.stderr
    compared = call(folder, "compare", "e/ask/short/small", "e/ask/long/big", "--json")
    [change] = json.loads(compared.stdout)["prompts"]
    assert change["settings"] == [{"name": "model", "a": "small", "b": "big"}]
    assert change["prompt"] == [" Be brief.", " user:", "+Think.", " {{ question }}"]
    shown = call(folder, "compare", "e/ask/short/small", "e/ask/long/big").stdout
    assert "what differs, A → B\nmodel  small → big\n Be brief.\n user:\n+Think.\n {{ question }}\n" in shown


def test_a_gate_may_name_a_task_that_another_model_leaves_out_and_no_other(folder: Path) -> None:
    gates = [f"accuracy not worse than {name} by 0.9" for name in ("ask/short/small", "ask/short/huge")]
    path = write(folder, {"ask": ENTRY, "tell": {"kind": "chat", "prompt": "{{ question }}"}}, gates=gates)
    validated = call(folder, "validate", path, "--model", "ollama/tiny", "--json")  # else `tell` has a fault
    [fault] = json.loads(validated.stdout)["faults"]
    assert "gates.1: gate 'accuracy not worse than ask/short/huge by 0.9': no baseline is called" in str(fault)
    assert f"{path}:" in str(fault)
    assert "no baseline is called 'ask/short/huge'" in call(folder, "run", path, "--model", "ollama/tiny").output


def test_runs_with_another_model_are_told_apart_and_resumed_with_it(chat: Callable[..., Chat], folder: Path) -> None:
    server = chat()
    path = write(folder, {"ask": {"kind": "chat", "model": SMALL, "prompt": "{{ question }}"}})
    ran = call(folder, "run", path, "--model", f"{server.url}#other", "--report")
    assert ran.exit_code == 0, ran.output
    [run] = [each for each in json.loads(call(folder, "list", "--json").stdout) if each["kind"] == "runs"]
    manifest = json.loads((folder / "store" / "runs" / run["id"] / "manifest.json").read_text())
    assert manifest["provenance"]["origin"]["model"] == f"{server.url}#other"
    assert manifest["spec"]["task"]["chat"]["model"] == "other"
    assert {body["model"] for body in server.bodies} == {"other"}


def test_equal_answers_of_different_prompts_are_shown_with_their_own(chat: Callable[..., Chat], folder: Path) -> None:
    server = chat(*[{"text": "the same"}] * 6)
    entry = {"kind": "chat", "model": SMALL | {"url": server.url}, "prompts": ENTRY["prompts"]}
    assert call(folder, "run", write(folder, {"ask": entry})).exit_code == 0
    said = call(folder, "show", "e/ask/long", "--below", 1, "--messages").stdout
    assert "Think." in said
    assert "Think." not in call(folder, "show", "e/ask/short", "--below", 1, "--messages").stdout
    [change] = json.loads(call(folder, "compare", "e", "--json").stdout)["prompts"]
    assert "+Think." in change["prompt"]


def test_access_lists_hosts_prompts_examples_and_tools(folder: Path) -> None:
    entry = {
        "kind": "chat",
        "prompts": {"long": "file:../outside.txt"},
        "models": {"a": "openai/gpt-5-mini", "b": SMALL},
        "examples": {"path": "../shots.jsonl"},
        "tools": ["app.py:answer"],
        "response_schema": "app.py:Model",
    }
    found = json.loads(call(folder, "validate", write(folder, {"ask": entry}), "--access", "--json").stdout)["access"]
    assert {(each["host"], *each["variables"]) for each in found["hosts"]} == {
        ("https://api.openai.com", "OPENAI_API_KEY"),
        ("http://127.0.0.1:1",),
    }
    assert {each["path"] for each in found["files"] if each["outside"]} == {"../outside.txt", "../shots.jsonl"}
    assert [each["module"] for each in found["code"]] == ["app.py"]


def test_tools_are_named_as_code_in_the_folder(chat: Callable[..., Chat], folder: Path) -> None:
    server = chat({"tool_calls": [{"name": "answer", "arguments": '{"text": "4"}'}]}, {"text": "four"})
    entry = {
        "kind": "chat",
        "model": SMALL | {"url": server.url},
        "prompt": "{{ question }}",
        "tools": ["app.py:answer"],
    }
    ran = call(folder, "run", write(folder, {"ask": entry}), "--limit", 1)
    assert ran.exit_code == 0, ran.output
    said = call(folder, "show", "e/ask", "--messages").stdout
    line = next(line for line in said.splitlines() if "calls" in line)
    assert line.split() == ["assistant", "calls", 'answer({"text":', '"4"})']
    assert "returns" in said
    assert faults(folder, entry | {"tools": ["app.py:anwser", "answer"]}) == [
        "- app.py | tasks.ask.tools.0: app.py has no 'anwser' (did you mean 'answer'?)",
        "- answer | tasks.ask.tools.1: is 'answer'; give file.py:name",
    ]


def test_the_example_asks_each_prompt_with_each_setting(
    chat: Callable[..., Chat], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    server = chat()
    shutil.copytree(ROOT_FOLDER / "examples" / "prompts", tmp_path, dirs_exist_ok=True)
    path = tmp_path / "experiment.yaml"
    path.write_text(path.read_text().replace("http://127.0.0.1:8080/v1", server.url))
    ran = call(tmp_path, "run", path, "--limit", 2)
    assert ran.exit_code in (0, 3), ran.output  # the gate is about answers, and these are none
    is_judge = ["verdict" in body["messages"][0]["content"] for body in server.bodies]
    asked = {
        (len(body["messages"]), body["temperature"])
        for body, judges in zip(server.bodies, is_judge, strict=True)
        if not judges
    }
    assert any(is_judge)
    assert asked == {(2, 0.0), (2, 0.8), (8, 0.0), (8, 0.8)}


def test_a_server_of_this_machine_that_receives_nothing_is_listed_on_request_only(folder: Path) -> None:
    path = write(
        folder, {"ask": ENTRY, "far": ENTRY | {"models": {"far": SMALL | {"url": "http://models.example/v1"}}}}
    )
    lines = [line for line in call(folder, "validate", path).output.splitlines() if line.startswith("host")]
    assert [line.partition(": ")[2] for line in lines] == [
        "http://models.example would receive no environment variable"
    ]
    assert (
        "http://127.0.0.1:1 would receive no environment variable" in call(folder, "validate", path, "--access").output
    )
    hosts = json.loads(call(folder, "validate", path, "--json").output)["access"]["hosts"]
    assert {host["host"] for host in hosts} == {"http://127.0.0.1:1", "http://models.example"}
