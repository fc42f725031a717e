"""The path through DeepEval: `python deepeval_cases.py '{"n": 1000, "folder": "…"}'`.

It has no step that calls the system: test cases hold what it said. They are made here by a function, without spans.
The cache of results is off: it writes all of them again after each, which makes a thousand examples 40 times as dear.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

from deepeval import evaluate
from deepeval.evaluate import AsyncConfig, CacheConfig, DisplayConfig
from deepeval.metrics import BaseMetric
from deepeval.test_case import LLMTestCase
from meter import Phases
from workload import example


class ExactMatch(BaseMetric):
    threshold = 0.5
    async_mode = False

    def measure(self, test_case: LLMTestCase, *args: Any, **kwargs: Any) -> float:
        self.score = float(test_case.actual_output == test_case.expected_output)
        self.success = self.score >= self.threshold
        return self.score

    async def a_measure(self, test_case: LLMTestCase, *args: Any, **kwargs: Any) -> float:
        return self.measure(test_case)

    def is_successful(self) -> bool:
        return bool(self.success)

    @property
    def __name__(self) -> str:
        return "exact match"


def echo(text: str) -> str:
    return text


def measure(n: int, folder: str) -> dict[str, Any]:
    os.makedirs(folder, exist_ok=True)
    os.chdir(folder)  # where it keeps what it stores
    examples = [example(number) for number in range(n)]
    phases = Phases()
    with phases("path"):
        cases = [LLMTestCase(input=i, actual_output=echo(i), expected_output=e) for i, e in examples]
        result = evaluate(
            cases,
            [ExactMatch()],
            cache_config=CacheConfig(write_cache=False),
            async_config=AsyncConfig(run_async=False),
            display_config=DisplayConfig(show_indicator=False, print_results=False, results_folder=folder),
        )
    passed = sum(bool(case.success) for case in result.test_results)
    return phases.result(folder) | {"n": n, "value": passed / n}


if __name__ == "__main__":
    print(json.dumps(measure(**json.loads(sys.argv[1]))))
