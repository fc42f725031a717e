"""The path through inspect-ai with its mock model: `python inspect_mock.py '{"n": 1000, "folder": "…"}'`."""

from __future__ import annotations

import json
import sys
from typing import Any

from inspect_ai import Task, eval
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import ModelOutput, ModelUsage, get_model
from inspect_ai.scorer import exact
from inspect_ai.solver import Generate, Solver, TaskState, solver
from inspect_ai.util import span
from meter import Phases
from workload import example


def echo(input: list[Any], *_: Any) -> ModelOutput:
    output = ModelOutput.from_content("mockllm", input[-1].text)
    output.usage = ModelUsage()  # else it counts tokens, for which it fetches a vocabulary from the network
    return output


@solver
def two_spans() -> Solver:
    async def solve(state: TaskState, generate: Generate) -> TaskState:
        async with span("retrieve"):
            pass
        async with span("answer"):
            return await generate(state)

    return solve


def measure(n: int, folder: str) -> dict[str, Any]:
    samples = [Sample(input=i, target=e) for i, e in map(example, range(n))]
    model = get_model("mockllm/model", custom_outputs=echo)
    phases = Phases()
    with phases("path"):
        (log,) = eval(
            Task(dataset=MemoryDataset(samples), solver=two_spans(), scorer=exact()),
            model=model,
            log_dir=folder,
            display="none",
        )
    assert log.results is not None, log.error
    return phases.result(folder) | {"n": n, "value": log.results.scores[0].metrics["mean"].value}


if __name__ == "__main__":
    print(json.dumps(measure(**json.loads(sys.argv[1]))))
