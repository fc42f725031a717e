"""Runs that are drawn at random: errors, spans, replications, pauses, threads or coroutines."""

from __future__ import annotations

import random
import time
from typing import Any

from evaluand.data.dataset import Dataset
from evaluand.run.runner import Run, Runner
from evaluand.run.task import FunctionTask, task
from evaluand.trace import span


def run_at_random(seed: int, runner: Runner) -> Run:
    """The run that a seed draws; only the runner says where and how."""
    draw = random.Random(seed)
    rows = Dataset.from_rows([{"input": i} for i in range(draw.randint(1, 60))])
    replications = draw.randint(1, 3)
    return runner.run(_draw_task(draw), rows, replications=replications, seed=seed)


def facts(run: Run) -> str:
    """What must be the same wherever a run is made."""
    return f"{run.id} {run.digest} {run.manifest['digest']} {sorted(run.counts.items())}"


def _draw_task(draw: random.Random) -> FunctionTask:
    failing, nests = draw.choice([2, 3, 7, 100]), draw.randint(0, 3)
    is_async, pause = draw.random() < 0.5, draw.choice([0.0, 0.002])

    def answer(value: int, seed: int) -> Any:
        for depth in range(nests):
            with span(f"step {depth}", value=value):
                pass
        if value % failing == 1:
            raise KeyError(f"no {value}")
        time.sleep(pause)
        return [value, seed % 1000] if value % 2 else None

    async def answer_async(value: int, seed: int) -> Any:
        return answer(value, seed)

    return task(name="random", version="1")(answer_async if is_async else answer)
