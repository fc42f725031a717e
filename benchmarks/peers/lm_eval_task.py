"""The path through lm-evaluation-harness: `python lm_eval_task.py '{"n": 1000, "folder": "…"}'`.

Its task reads a file of JSON lines and grades by exact match; the model returns its prompts, and the samples are kept.
The tasks that come with it are not listed, which takes 15 seconds at each start.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from lm_eval import simple_evaluate
from lm_eval.api.instance import Instance
from lm_eval.api.model import LM
from lm_eval.loggers import EvaluationTracker
from lm_eval.tasks import TaskManager
from meter import Phases
from workload import example


class Echo(LM):
    def generate_until(self, requests: list[Instance], disable_tqdm: bool = False) -> list[str]:
        return [str(request.args[0]) for request in requests]

    def loglikelihood(self, requests: list[Instance]) -> list[tuple[float, bool]]:
        raise NotImplementedError

    def loglikelihood_rolling(self, requests: list[Instance]) -> list[float]:
        raise NotImplementedError


def measure(n: int, folder: str) -> dict[str, Any]:
    place = Path(folder)
    place.mkdir(exist_ok=True)
    file = place / "examples.jsonl"
    rows = ({"input": i, "expected": e} for i, e in map(example, range(n)))
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    task = {
        "task": "echo",
        "dataset_path": "json",
        "dataset_kwargs": {"data_files": {"test": str(file)}},
        "test_split": "test",
        "output_type": "generate_until",
        "doc_to_text": "{{input}}",
        "doc_to_target": "{{expected}}",
        "generation_kwargs": {"until": ["\n"]},
        "metric_list": [{"metric": "exact_match", "aggregation": "mean", "higher_is_better": True}],
    }
    phases = Phases()
    with phases("path"):
        tasks = TaskManager(include_defaults=False)
        results = simple_evaluate(Echo(), tasks=[task], task_manager=tasks, log_samples=True, bootstrap_iters=0)
        tracker = EvaluationTracker(output_path=folder)
        samples = results.pop("samples")
        tracker.save_results_aggregated(results=results, samples=samples)
        tracker.save_results_samples(task_name="echo", samples=samples["echo"])
    return phases.result(folder) | {"n": n, "value": results["results"]["echo"]["exact_match,none"]}


if __name__ == "__main__":
    print(json.dumps(measure(**json.loads(sys.argv[1]))))
