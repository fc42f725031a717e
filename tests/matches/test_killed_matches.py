"""The guarantee of matches from outside: calls of the judge are counted on disk, in processes that are killed."""

from __future__ import annotations

import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

CHILD = """
import os
import sys
import time

from evaluand import Dataset, DirectoryStore, Matcher, Policy, Runner, comparison_scorer, task

folder, stage, workers = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])


def system(number):
    version = "2" if stage >= 2 and number == 1 else "1"

    @task(name=f"system {number}", version=version)
    def respond(text):
        return f"{number} {text}" + ("!" if version == "2" and text == "question 2" else "")

    return respond


@comparison_scorer(version="1")
def judge(first, second, input):
    log = os.open(f"{folder}/calls", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(log, f"{input}|{first}|{second}\\n".encode())
    os.close(log)
    time.sleep(0.02)
    return "first" if first > second else "second"


store = DirectoryStore(f"{folder}/store")
rows = [{"id": str(n), "input": f"question {n}"} for n in range(5 if stage == 3 else 4)]
data = Dataset.from_rows(rows, id="id")
runs = [Runner(store).run(system(number), data) for number in range(3 if stage == 0 else 4)]
matcher = Matcher(store, Policy(concurrency=workers))
print(matcher.match(runs, judge, labels=[f"system {number}" for number in range(len(runs))]).digest)
"""

NEW_PAIRS = [24, 24, 6, 12]
"""Three runs over four examples in both orders; a fourth run, a corrected answer, a further example."""


def begin(folder: Path, stage: int, workers: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", CHILD, str(folder), str(stage), str(workers)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def read_calls(folder: Path) -> list[str]:
    path = folder / "calls"
    return path.read_text().splitlines() if path.exists() else []


def judge_all(folder: Path, stage: int, workers: int) -> str:
    return begin(folder, stage, workers).communicate(timeout=60)[0]


@pytest.mark.slow
def test_exactly_the_new_pairs_are_judged_also_after_a_kill_and_by_eight_workers(tmp_path: Path) -> None:
    plain, killed = tmp_path / "plain", tmp_path / "killed"
    plain.mkdir()
    killed.mkdir()
    digests = []
    for stage, n_new in enumerate(NEW_PAIRS):
        before = len(read_calls(plain))
        digests.append(judge_all(plain, stage, 1))
        assert len(read_calls(plain)) - before == n_new
    assert len({*read_calls(plain)}) == len(read_calls(plain)) == sum(NEW_PAIRS)

    for stage, n_new in enumerate(NEW_PAIRS):
        before = len(read_calls(killed))
        process = begin(killed, stage, 8)
        while len(read_calls(killed)) - before < n_new // 2 and process.poll() is None:
            time.sleep(0.005)
        process.kill()
        process.communicate()
        assert judge_all(killed, stage, 8) == digests[stage]
    counts = Counter(read_calls(killed))
    assert counts.keys() == {*read_calls(plain)}
    assert counts.total() - len(counts) <= 8 * len(NEW_PAIRS)  # the calls in flight when it was killed
