"""Systems that find spans are compared by precision, recall and F."""

import numpy as np
import pytest

from evaluand.aggregation.aggregator import Measure
from evaluand.comparison.comparing import compare
from evaluand.comparison.gates import check_gates
from evaluand.data.dataset import Dataset
from evaluand.evaluation.evaluator import Evaluator
from evaluand.metrics.names import make_metric
from evaluand.run.runner import Runner
from evaluand.store.store import MemoryStore

SPANS = [{"start": 0, "end": 1, "tag": "PER"}, {"start": 2, "end": 3, "tag": "LOC"}]


@pytest.mark.parametrize("metric", ["precision", "recall", "f1", "f1_macro"])
def test_differences_of_counted_items_have_an_interval(metric: str) -> None:
    store, rng = MemoryStore(), np.random.default_rng(1)
    known = {f"text {i}": bool(rng.random() < 0.5) for i in range(300)}
    data = Dataset.from_rows([{"input": text, "expected": SPANS} for text in known])
    first, second = (
        Evaluator(store).evaluate(Runner(store).run(find, data), {"spans": "spans"})
        for find in (lambda text: SPANS[: 1 + known[text]], lambda text: SPANS if known[text] else [])
    )
    [pair] = compare(first, second, metrics=[Measure("spans", make_metric(metric))]).pairs
    share = sum(known.values()) / 300
    if metric == "recall":
        assert pair["difference"] == pytest.approx(share - (1 + share) / 2)
    assert pair["low"] <= pair["difference"] <= pair["high"]
    assert (pair["low"] <= 0 <= pair["high"]) == (pair["p"] > 0.05)
    assert pair["family"] == "primary"


def test_a_gate_on_one_tag_has_a_bound() -> None:
    data = Dataset.from_rows([{"input": f"text {i}", "expected": SPANS} for i in range(60)])
    found = Evaluator().evaluate(Runner().run(lambda text: SPANS[: 1 + (text > "text 3")], data), {"spans": "spans"})
    precision = Measure("spans", make_metric("precision", label="PER"))
    [gate] = check_gates(["precision >= 0.9 at 95%"], {"found": found}, measures=[precision])
    assert gate.passed
    assert "lower 95% bound" in gate.message
