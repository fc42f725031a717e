"""Programs as tasks: what they are asked and answer, what becomes of those that break, and that none is left over."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from support.patience import PATIENCE

from evaluand.core.errors import SpecError
from evaluand.data.dataset import Dataset
from evaluand.engine.outcome import Aborted
from evaluand.engine.policy import Policy
from evaluand.experiment import Experiment
from evaluand.run.runner import Run, Runner
from evaluand.run.task import task
from evaluand.run.tasks.program import ProgramTask
from evaluand.store.store import MemoryStore

HEAD = """
import json, os, signal, subprocess, sys, time

def answer(call):
    {body}

open(f"pid-{{os.getpid()}}", "w").close()
for line in sys.stdin:
    call = json.loads(line)
    told = answer(call["input"])
    if told is not None:
        sys.stdout.write((told if isinstance(told, str) else json.dumps(told)) + "\\n")
        sys.stdout.flush()
"""


def program(folder: Path, body: str, **more: Any) -> ProgramTask:
    """A program whose function `answer(call)` gives what is written, in a folder."""
    (folder / "bot.py").write_text(HEAD.format(body=body.replace("\n", "\n    ")))
    return ProgramTask(command=[sys.executable, "bot.py"], folder=str(folder), **more)


def data(*inputs: Any) -> Dataset:
    return Dataset.from_rows([{"input": value} for value in inputs])


def outcomes(run: Run) -> list[Any]:
    """Of each row what it answered, or the type, code and message of its failure."""
    return [(r.error["type"], r.error["code"], r.error["message"]) if r.error else r.responses for r in run]


def started(folder: Path) -> list[int]:
    return [int(path.name.removeprefix("pid-")) for path in folder.glob("pid-*")]


def lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def check_none_is_left(folder: Path) -> None:
    assert started(folder)
    end = time.monotonic() + PATIENCE
    while any(lives(pid) for pid in started(folder)):
        assert time.monotonic() < end
        time.sleep(0.01)


# Answers


def test_a_program_answers_line_by_line_and_one_process_serves_all_calls(tmp_path: Path) -> None:
    double = program(tmp_path, "return {'output': call * 2}")
    run = Runner(policy=Policy(concurrency=1)).run(double, data(1, 2, 3))
    assert outcomes(run) == [[2], [4], [6]]
    assert len(started(tmp_path)) == 1
    check_none_is_left(tmp_path)


def test_a_program_gives_the_same_digest_as_the_same_function(tmp_path: Path) -> None:
    inputs = [1, "zwei ü 🎈", None, 2.5, [1, {"a": "\n"}], 2**80, float("nan"), b"raw", "fail"]
    reported = "{'error': {'type': 'ValueError', 'message': 'told so'}}"
    body = f"if call == 'fail':\n    return {reported}\nreturn {{'output': call}}"

    def same(value: Any) -> Any:
        if value == "fail":
            raise ValueError("in other words")
        return value

    asked = program(tmp_path, body)
    runs = [Runner().run(one, data(*inputs)) for one in (asked, same)]
    assert runs[0].digest == runs[1].digest
    assert runs[0].counts == {"completed": 8, "failed": 1}


def test_a_program_sees_the_example_and_may_repeat_it(tmp_path: Path) -> None:
    (tmp_path / "echo.py").write_text(
        "import json, sys\n"
        "for line in sys.stdin:\n"
        "    call = json.loads(line)\n"
        "    print(json.dumps({**call, 'output': sorted(call.items())}), flush=True)\n"
    )
    asked = ProgramTask(command=f"'{sys.executable}' echo.py", folder=str(tmp_path))
    rows = Dataset.from_rows([{"_index_": 7, "name": "q7", "input": "?"}], input="input", id="name")
    [first, second] = Runner().run(asked, rows, replications=2)
    assert [dict(first.responses[0])[n] for n in ("index", "id", "replication", "input")] == [7, "q7", 0, "?"]
    seeds = [dict(r.responses[0])["seed"] for r in (first, second)]
    assert all(isinstance(seed, int) for seed in seeds)
    assert seeds[0] != seeds[1]


def test_no_more_processes_than_calls_in_flight_are_started(tmp_path: Path) -> None:
    slow = program(tmp_path, "time.sleep(0.02)\nreturn {'output': call}")
    run = Runner(policy=Policy(concurrency=4)).run(slow, data(*range(20)))
    assert [r.responses for r in run] == [[n] for n in range(20)]
    assert 1 <= len(started(tmp_path)) <= 4
    check_none_is_left(tmp_path)


def test_lines_longer_than_a_pipe_holds_go_both_ways(tmp_path: Path) -> None:
    echo = program(tmp_path, "return {'output': call + call}")
    text = "ä" * 300_000
    [answer] = Runner().run(echo, data(text))
    assert answer.responses == [text + text]


def test_a_megabyte_on_stderr_stops_nothing(tmp_path: Path) -> None:
    noisy = program(tmp_path, "sys.stderr.write('x' * 1_000_000)\nsys.stderr.flush()\nreturn {'output': call}")
    run = Runner(policy=Policy(concurrency=2)).run(noisy, data(*range(6)))
    assert run.counts == {"completed": 6}


def test_environment_variables_are_set_beside_those_that_are_there(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setenv("THERE", "inherited")
    asked = program(tmp_path, "return {'output': os.environ['THERE'] + os.environ['MORE']}", env={"MORE": "!"})
    [answer] = Runner().run(asked, data(1))
    assert answer.responses == ["inherited!"]


# Errors


def test_an_error_that_a_program_tells_keeps_its_name_and_code_and_is_tried_again_by_its_name(tmp_path: Path) -> None:
    body = "return {'error': {'type': 'Overloaded', 'message': 'later', 'code': 503}}"
    policy = Policy(retries=2, backoff=0, transient=("Overloaded",))
    run = Runner(policy=policy).run(program(tmp_path, body), data(1))
    assert outcomes(run) == [("Overloaded", "503", "later")]
    assert run.table()["attempts"].to_pylist() == [3]
    assert len(started(tmp_path)) == 1


@pytest.mark.parametrize(
    ("body", "kind", "code", "message"),
    [
        ("return {'error': 'out of luck'}", "ProgramError", None, "out of luck"),
        ("return 'Hello!'", "ProgramError", "protocol", "wrote what is not JSON: 'Hello!'; only answers may"),
        ("return '[1, 2]'", "ProgramError", "protocol", "wrote '[1, 2]'; an answer is {\"output\": …}"),
        ("return {'answer': 1}", "ProgramError", "protocol", "wrote '{\"answer\": 1}'; an answer is"),
        ("return {'output': 1, 'index': 9}", "ProgramError", "protocol", "answered another call: index is 9, not 1"),
        ("print('{}' * 9_000_000, flush=True)", "ProgramError", "protocol", "a line of more than 16 MiB, which begins"),
        ("return '{\"output\": 1}\\n{\"output\": 2}'", "ProgramError", "protocol", "2}\\n' without a request"),
        ("sys.stderr.write('oh no\\n')\nsys.exit(3)", "ProgramDied", "exit 3", "exit status 3 without an answer; the"),
        ("os.kill(os.getpid(), 11)", "ProgramDied", "SIGSEGV", "the program was ended by SIGSEGV without an answer"),
        ("os.close(1)\ntime.sleep(60)", "ProgramDied", "closed", "closed its output without an answer"),
    ],
)  # fmt: skip
def test_what_breaks_costs_one_example_and_says_what_came(
    tmp_path: Path, body: str, kind: str, code: str | None, message: str
) -> None:
    broken = program(tmp_path, f"if call != 1:\n    return {{'output': call}}\n{body}")
    run = Runner(policy=Policy(concurrency=1)).run(broken, data(0, 1, 2))
    [before, failed, after] = outcomes(run)
    assert (before, after) == ([0], [2])
    assert failed[:2] == (kind, code)
    assert message in failed[2]
    check_none_is_left(tmp_path)


def test_the_last_words_of_a_program_are_reported(tmp_path: Path) -> None:
    [(_, _, message)] = outcomes(Runner().run(program(tmp_path, "raise KeyError('model')"), data(1)))
    assert message.endswith("KeyError: 'model'")


@pytest.mark.parametrize(
    "body",
    ["sys.stderr.write(line)\nsys.exit(3)", "return line[::-1].replace(key[::-1], key)"],
    ids=["stderr", "no answer"],
)
def test_no_part_of_a_secret_is_left_where_what_a_program_wrote_is_cut(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: str
) -> None:
    key = "ak9-QwErTyUiOpAsDfGhJkLzXcVbNm1234567890"
    monkeypatch.setenv("MODELS_API_KEY", key)
    lines = "key = os.environ['MODELS_API_KEY']\nline = 'ERROR sent Bearer ' + key + ' exhausted ' + 'x' * 250"
    [(_, _, message)] = outcomes(Runner().run(program(tmp_path, f"{lines}\n{body}"), data(1)))
    assert [key[at : at + 6] for at in range(len(key) - 5) if key[at : at + 6] in message] == []


def test_what_is_written_between_calls_is_not_taken_for_an_answer(tmp_path: Path) -> None:
    asked = program(tmp_path, "return {'output': call}")
    (tmp_path / "bot.py").write_text(
        (tmp_path / "bot.py").read_text() + "    time.sleep(.02); print('x', flush=True); open('written', 'w')\n"
    )

    @task
    def slowly(value: int) -> Any:
        answer = asked.do_run(value, None)  # type: ignore[arg-type]
        while not (tmp_path / "written").exists():
            time.sleep(0.01)
        return answer

    [first, second] = outcomes(Runner(policy=Policy(concurrency=1)).run(slowly, data(1, 2)))
    asked.close()
    assert first == [1]
    assert "wrote 'x\\n' without a request; write one line for each call" in second[2]


def test_a_program_that_hangs_is_cut_with_its_helpers_and_costs_one_example(tmp_path: Path) -> None:
    body = (
        "if call == 1:\n    helper = subprocess.Popen(['sleep', '60'])\n    open(f'pid-{helper.pid}', 'w').close()\n"
        "    helper.wait()\nreturn {'output': call}"
    )
    run = Runner(policy=Policy(concurrency=2, timeout=1.5)).run(program(tmp_path, body), data(*range(6)))
    assert [o for i, o in enumerate(outcomes(run)) if i != 1] == [[0], [2], [3], [4], [5]]
    assert outcomes(run)[1] == ("TaskTimeout", "timeout", "took longer than 1.5 s")
    check_none_is_left(tmp_path)


def test_a_program_that_does_not_read_is_cut_too(tmp_path: Path) -> None:
    (tmp_path / "deaf.py").write_text("import time\nopen('pid-0', 'w')\ntime.sleep(60)\n")
    deaf = ProgramTask(command=[sys.executable, "deaf.py"], folder=str(tmp_path))
    run = Runner(policy=Policy(timeout=0.2)).run(deaf, data("x" * 1_000_000))
    assert [o[0] for o in outcomes(run)] == ["TaskTimeout"]


def test_processes_end_when_a_run_is_aborted(tmp_path: Path) -> None:
    body = "if call == 3:\n    return {'error': 'stop'}\ntime.sleep(0.01 if call < 10 else 60)\nreturn {'output': call}"
    with pytest.raises(Aborted, match="stop"):
        Runner(policy=Policy(concurrency=4, abort_on_error=True)).run(program(tmp_path, body), data(0, 1, 10, 3))
    check_none_is_left(tmp_path)


def test_a_process_that_left_the_group_of_its_program_ends_with_it(tmp_path: Path) -> None:
    body = """
ready, done = os.pipe()
if os.fork() == 0:  # as a service starts: in a session of its own, and a child of nobody
    os.setsid()
    if os.fork() == 0:
        open(f"pid-{os.getpid()}", "w").close()
        os.close(done)
        signal.pause()
    os._exit(0)
os.close(done)
os.read(ready, 1)
return {"output": call}
"""
    Runner().run(program(tmp_path, body.strip()), data(0))
    assert len(started(tmp_path)) == 2
    check_none_is_left(tmp_path)


RUNNING = """
import sys
from evaluand.data.dataset import Dataset
from evaluand.engine.policy import Policy
from evaluand.run.runner import Runner
from evaluand.run.tasks.program import ProgramTask

task = ProgramTask(command=[sys.executable, "bot.py"])
Runner(policy=Policy(concurrency=2)).run(task, Dataset.from_rows([{"input": i} for i in range(10_000)]))
"""


@pytest.mark.parametrize("by", [signal.SIGINT, signal.SIGKILL])
@pytest.mark.slow
def test_no_process_outlives_a_run_that_is_stopped_from_outside(tmp_path: Path, by: signal.Signals) -> None:
    program(tmp_path, "time.sleep(0.01)\nreturn {'output': call}")
    run = subprocess.Popen([sys.executable, "-c", RUNNING], cwd=tmp_path, stderr=subprocess.PIPE)
    end = time.monotonic() + PATIENCE
    while len(started(tmp_path)) < 2:
        assert time.monotonic() < end
        time.sleep(0.01)
    assert any(lives(pid) for pid in started(tmp_path))
    run.send_signal(by)
    _, said = run.communicate(timeout=PATIENCE)
    assert run.returncode == -by
    assert b"KeyboardInterrupt" in said or by == signal.SIGKILL
    check_none_is_left(tmp_path)


def test_no_threads_or_files_are_left_after_a_run(tmp_path: Path) -> None:
    asked = program(tmp_path, "if call == 5:\n    sys.exit(1)\nreturn {'output': call}")
    Runner(policy=Policy(concurrency=4)).run(asked, data(*range(20)))
    threads, files = threading.active_count(), len(os.listdir("/proc/self/fd"))
    Runner(policy=Policy(concurrency=4)).run(asked, data(*range(20)))
    assert threading.active_count() <= threads
    assert len(os.listdir("/proc/self/fd")) <= files


# Before anything runs


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (["no-such-program"], "no program is called 'no-such-program'; install it or give its path"),
        (["tool.sh"], "no program is called 'tool.sh'; write ./tool.sh for the one in"),
        (["./tool.sh"], "tool.sh is not executable; run chmod +x on it, or name its interpreter"),
        (["./nothing"], "nothing: no such program"),
    ],
)
def test_a_program_that_cannot_be_run_stops_the_run_before_anything_is_called(
    tmp_path: Path, command: list[str], message: str
) -> None:
    (tmp_path / "tool.sh").write_text("#!/bin/sh\n")
    store = MemoryStore()
    with pytest.raises(SpecError) as raised:
        Runner(store).run(ProgramTask(command=command, folder=str(tmp_path)), data(1))
    assert message in str(raised.value)
    assert store.ids("runs") == []


def test_a_folder_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="nowhere does not exist"):
        Runner().run(ProgramTask(command=["sh"], folder=str(tmp_path / "nowhere")), data(1))


@pytest.mark.parametrize("command", [[], "", [""], ["a\0b"], [1], "it's"])
def test_a_command_that_is_none_is_refused(command: Any) -> None:
    with pytest.raises(SpecError, match="command"):
        ProgramTask(command=command)


def test_no_shell_takes_part(tmp_path: Path) -> None:
    (tmp_path / "args.py").write_text(
        "import json, sys\nfor line in sys.stdin: print(json.dumps({'output': sys.argv[1:]}), flush=True)\n"
    )
    asked = ProgramTask(command=f"'{sys.executable}' args.py $HOME *.py 'a b; c'", folder=str(tmp_path))
    [answer] = Runner().run(asked, data(1))
    assert answer.responses == [["$HOME", "*.py", "a b; c"]]


# Identity


def test_a_program_is_unpinned_until_a_version_or_files_are_declared(tmp_path: Path) -> None:
    plain = program(tmp_path, "return {'output': 1}").identify()
    assert not plain.pinned
    assert plain.unpinned == (
        f"bot: what the program {sys.executable} does cannot be seen in its command;"
        " declare `version`, or all its `files`, to pin it",
    )
    assert program(tmp_path, "return {'output': 1}", version="1").identify().pinned
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "weights").write_text("1")
    one = program(tmp_path, "return {'output': 1}", files=["model"])
    assert one.identify().pinned
    before = one.identify().spec
    (tmp_path / "model" / "weights").write_text("2")
    assert one.identify().spec != before


def test_what_the_identity_is_made_of(tmp_path: Path) -> None:
    def spec(folder: str, body: str = "return {'output': 1}", **more: Any) -> Any:
        (tmp_path / folder).mkdir(exist_ok=True)
        return program(tmp_path / folder, body, **more).identify().spec

    one = spec("a")
    assert spec("b") == one  # wherever it lies
    assert spec("a", "return {'output': 2}") != one
    assert spec("a", version="1") != spec("a", version="2")
    assert spec("a", env={"MODEL": "small"}) != spec("a", env={"MODEL": "large"})
    assert "small" not in json.dumps(spec("a", env={"MODEL": "small"}))


def test_a_declared_file_that_is_missing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match=r"files: .*gone does not exist"):
        Runner().run(program(tmp_path, "return {'output': 1}", files=["gone"]), data(1))


def test_a_pinned_program_is_not_asked_again(tmp_path: Path) -> None:
    store, asked = MemoryStore(), program(tmp_path, "return {'output': call}", version="1")
    Runner(store).run(asked, data(1, 2))
    run = Runner(store).run(asked, data(1, 2, 3))
    assert run.receipt is not None
    assert (run.receipt.reused, run.receipt.called) == (2, 1)


def test_what_a_program_was_reported_of_one_example_answers_no_other(tmp_path: Path) -> None:
    store, asked = MemoryStore(), program(tmp_path, "return {'output': json.loads(line)['id']}", version="1")
    Runner(store).run(asked, Dataset.from_rows([{"id": "a", "input": 1}, {"id": "b", "input": 2}]))
    run = Runner(store).run(asked, Dataset.from_rows([{"id": "c", "input": 1}, {"id": "b", "input": 2}]))
    assert run.receipt is not None
    assert (run.receipt.reused, run.receipt.called) == (1, 1)
    assert [response.responses for response in run] == [["c"], ["b"]]


def test_a_program_can_stand_in_an_experiment_file(tmp_path: Path) -> None:
    program(tmp_path, "return {'output': call.upper()}")
    (tmp_path / "data.jsonl").write_text('{"input": "a", "expected": "A"}\n{"input": "b", "expected": "C"}\n')
    (tmp_path / "experiment.yaml").write_text(
        f"name: shout\ndataset: {{path: data.jsonl}}\n"
        f"tasks:\n  bot: {{kind: program, command: ['{sys.executable}', bot.py], folder: '{tmp_path}', version: 3}}\n"
        f"scorers: {{same: exact_match}}\nmetrics: [{{kind: accuracy}}]\n"
    )
    results = Experiment.from_file(tmp_path / "experiment.yaml").run()
    assert results.aggregation.table()["value"].to_pylist() == [0.5]
