"""The guarantee of judges from outside: a server counts what is asked of it by processes that are killed."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest
from support.chat_answers import Body, ChatServer

ROWS, IN_FLIGHT = 400, 32

CHILD = f"""
import sys
from evaluand import ChatModel, Dataset, DirectoryStore, Evaluator, Policy, Runner, task
from evaluand.judges import Judge

@task(version="1")
def respond(question):
    return "An answer to " + question

store = DirectoryStore(sys.argv[1])
rows = [{{"input": f"row {{number}} of all", "expected": "none"}} for number in range({ROWS})]
made = Runner(store).run(respond, Dataset.from_rows(rows))
judge = Judge(rubric="correctness", model=ChatModel(sys.argv[2], "small", version="1"))
done = Evaluator(store, Policy(concurrency={IN_FLIGHT})).evaluate(made, {{"right": judge}})
print(done.counts["right"])
"""


def row_of(asked: Body) -> str:
    found = re.search(r"row (\d+) of all", asked["messages"][-1]["content"])
    assert found is not None
    return found[1]


def verdict(asked: Body) -> dict[str, object]:
    reply = {"reasons": f"row {row_of(asked)} of all is no answer", "verdict": "incorrect"}
    return {"text": json.dumps(reply), "delay": 0.03}


def stored_rows(folder: Path) -> set[str]:
    """The rows of which a complete line is in the journal."""
    lines = [
        line
        for path in folder.glob("evaluations/*/journal/**/*")
        if path.is_file()
        for line in path.read_bytes().split(b"\n")[:-1]
    ]
    return {row.decode() for line in lines for row in re.findall(rb"row (\d+) of all is no answer", line)}


@pytest.mark.slow
def test_a_killed_evaluation_asks_nothing_finished_twice(tmp_path: Path) -> None:
    with ChatServer(verdict) as server:
        command = [sys.executable, "-c", CHILD, str(tmp_path), server.url]
        finished, n_asked = set[str](), 0
        for n_before_kill in (40, 150, 300, None):
            process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
            while n_before_kill and len(server.asked) < n_before_kill and process.poll() is None:
                time.sleep(0.002)
            if n_before_kill:
                process.kill()
            said, _ = process.communicate()
            time.sleep(0.1)  # until what was on its way has arrived
            assert not finished & {row_of(asked) for asked in server.asked[n_asked:]}
            finished, n_asked = stored_rows(tmp_path), len(server.asked)
            assert finished or not n_before_kill
        assert said == f"{{'scored': {ROWS}}}\n"
        counts = Counter(map(row_of, server.asked))
    assert len(counts) == ROWS
    assert counts.total() - ROWS <= 3 * IN_FLIGHT
