"""What tokens cost: prices of models, tables of prices, and models whose price is unknown."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st
from support.chats import Chat

from evaluand.core.errors import ParameterError, SpecError
from evaluand.data.dataset import Dataset
from evaluand.engine.outcome import Aborted
from evaluand.engine.policy import Policy
from evaluand.evaluation.evaluator import Evaluator
from evaluand.judges.judge import Judge
from evaluand.models.chat_model import ChatModel
from evaluand.models.prices import VARIABLE, Price, PriceTable, default_prices
from evaluand.run.runner import Run, Runner
from evaluand.run.tasks.instruct import Instruct
from evaluand.store.store import MemoryStore

Starts = Callable[..., Chat]
PRICE = {"input": 2, "output": 10, "cached_input": 0.5, "currency": "EUR"}


def data(*texts: str) -> Dataset:
    return Dataset.from_rows([{"input": text} for text in texts])


def instruct(server: Chat, **fields: Any) -> Instruct:
    return Instruct(replace(server.model, **fields), instruction="Answer.")


def usage_of(run: Run) -> dict[str, Any]:
    [used] = run.table()["usage"].to_pylist()
    return used  # type: ignore[no-any-return]


# Prices

amounts = st.decimals(0, 100, places=3)
counts = st.integers(0, 10**6)


@given(amounts, amounts, amounts, counts, counts, counts, st.sampled_from([1000, 1_000_000]))
def test_a_cost_is_the_sum_of_tokens_times_prices(
    read: Decimal, written: Decimal, reread: Decimal, new: int, output: int, cached: int, per: int
) -> None:
    price = Price(float(read), float(written), float(reread), per=per)
    expected = (new * read + cached * reread + output * written) / per
    assert price.cost(new + cached, output, cached_tokens=cached) == pytest.approx(float(expected), rel=1e-12)


def test_tokens_read_before_cost_the_usual_price_unless_they_have_their_own() -> None:
    assert Price(1, 0, per=10).cost(100, 0, cached_tokens=60) == 10.0
    assert Price(1, 0, 0, per=10).cost(100, 0, cached_tokens=60) == 4.0
    assert Price(1, 0, 0, per=10).cost(100, 0, cached_tokens=600) == 0.0  # a server that reports nonsense


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"input": -1, "output": 1}, "input: is -1; give a number of at least 0"),
        ({"input": 1, "output": "2"}, "output: is '2'; give a number of at least 0"),
        ({"input": 1}, "output: is missing"),
        ({"input": 1, "output": 1, "outputs": 2}, r"outputs: unknown key \(did you mean 'output'\?\)"),
        ({"input": 1, "output": 1, "currency": ""}, "currency: is ''; give one such as USD or EUR"),
        ({"input": 1, "output": 1, "per": 0}, "per: is 0; give a number of tokens"),
        (5, "is a number; give a mapping"),
    ],
)
def test_what_is_no_price_is_refused(wrong: Any, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        Price.read(wrong)
    with pytest.raises(ParameterError, match=r"price(\.|: )" + message):
        ChatModel("http://127.0.0.1:1/v1", "small", price=wrong)


# Tables


def write_table(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


TABLE = """
date: 2026-01-31
currency: EUR
prices:
  api.example.com: {small: {input: 1, output: 2}}
  "*": {small: {input: 3, output: 4, currency: CHF, per: 1000}, local: {input: 0, output: 0}}
"""


def test_a_model_has_the_price_of_its_host_else_of_any_host(tmp_path: Path) -> None:
    table = PriceTable.load(write_table(tmp_path / "prices.yaml", TABLE))
    assert table.find("https://API.example.com:443/v1", "small") == Price(1, 2, currency="EUR")
    assert table.find("http://127.0.0.1:8080/v1", "small") == Price(3, 4, currency="CHF", per=1000)
    assert table.find("https://api.example.com/v1", "large") is None
    assert str(table) == f"{tmp_path / 'prices.yaml'} of 2026-01-31"


def test_the_prices_that_come_with_evaluand_have_date_and_sources(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    table = default_prices()
    assert table.date
    for named in table.prices.values():
        for price in named.values():
            assert 0 < (price.cached_input or 0) < price.input < price.output
    assert table.find("https://api.openai.com/v1", "gpt-5-mini") is not None
    assert table.find("https://api.openai.com/v1", "gpt-5-mini-2025-08-07") is None  # another name, another price
    assert table.find("http://127.0.0.1:8080/v1", "gpt-5-mini") is None  # who answers there is unknown


def test_a_file_takes_the_place_of_the_table(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(VARIABLE, str(write_table(tmp_path / "mine.json", '{"prices": {"*": {}}}')))
    assert default_prices().find("https://api.openai.com/v1", "gpt-5-mini") is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[]", r"mine.yaml:1: prices: must be a mapping of hosts"),
        ("prices: {host: {small: 5}}", "prices.host.small: is a number; give a mapping"),
        ("prices: {host: {small: {input: 1}}}", "prices.host.small.output: is missing"),
        ("price: {}\nprices: {}", "price: unknown key"),
    ],
)
def test_faults_of_a_table_have_their_place(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(SpecError, match=message):
        PriceTable.load(write_table(tmp_path / "mine.yaml", text))


def test_a_missing_table_is_named(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match=r"prices\.yaml: no such file of prices"):
        PriceTable.load(tmp_path / "prices.yaml")


# Models


def test_a_run_stores_what_its_model_costs(chat: Starts) -> None:
    server = chat({"text": "four words of reply"})
    run = Runner().run(instruct(server, price=PRICE), data("two words"))
    used = usage_of(run)
    expected = Price.read(PRICE).cost(used["input_tokens"], 4)
    assert (used["requests"], used["output_tokens"], used["currency"]) == (1, 4, "EUR")
    assert used["cost"] == pytest.approx(expected)
    assert run.manifest["spent"]["EUR"] == pytest.approx(expected)


def test_tokens_that_the_server_has_read_before_have_their_own_price(chat: Starts) -> None:
    usage = {"prompt_tokens": 100, "completion_tokens": 10, "prompt_tokens_details": {"cached_tokens": 80}}
    body = '{"choices": [{"message": {"content": "hi"}, "finish_reason": "stop"}], "usage": %s}'
    server = chat({"body": body % json.dumps(usage)})
    completion = replace(server.model, price=PRICE).complete([{"role": "user", "content": "Hello"}])
    assert completion.cached_tokens == 80
    assert completion.cost == pytest.approx((20 * 2 + 80 * 0.5 + 10 * 10) / 1e6)
    assert completion.currency == "EUR"


def test_a_model_without_a_price_has_an_unknown_cost(chat: Starts) -> None:
    run = Runner().run(instruct(chat()), data("a"))
    assert usage_of(run)["cost"] is None
    assert run.manifest["usage"]["without_cost"] == 1


def test_tokens_that_the_server_does_not_report_have_an_unknown_cost_unless_all_is_free(chat: Starts) -> None:
    server = chat({"text": "a", "usage": None}, {"text": "a", "usage": None})
    used = usage_of(Runner().run(instruct(server, price=PRICE), data("a")))
    assert (used["cost"], used["input_tokens"]) == (None, None)
    free = usage_of(Runner().run(instruct(server, price={"input": 0, "output": 0}), data("a")))
    assert (free["cost"], free["currency"]) == (0.0, "USD")


def test_another_service_tier_has_another_price(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    usual = ChatModel("https://api.openai.com/v1", "gpt-5-mini", parameters={"service_tier": "default"})
    flexible = ChatModel("https://api.openai.com/v1", "gpt-5-mini", parameters={"service_tier": "flex"})
    assert usual.find_price(default_prices()) is not None
    assert flexible.find_price(default_prices()) is None


def test_a_policy_brings_the_prices_of_a_run(chat: Starts) -> None:
    prices = PriceTable({"*": {"small": Price(1, 1, currency="CHF", per=1)}}, "today", "mine.yaml")
    run = Runner(policy=Policy(prices=prices)).run(instruct(chat({"text": "a b"})), data("c"))
    used = usage_of(run)
    assert (used["cost"], used["currency"]) == (used["input_tokens"] + 2, "CHF")
    assert run.manifest["provenance"]["policy"]["prices"] == "mine.yaml of today"


def test_the_price_is_no_part_of_what_identifies_a_model(chat: Starts) -> None:
    server = chat()
    assert replace(server.model, price=PRICE, token_rate="5000/min").spec == server.model.spec


# Under a budget


def test_a_model_without_a_price_is_refused_before_anything_is_begun(chat: Starts) -> None:
    server, store = chat(), MemoryStore()
    policy = Policy(budget="5 USD")
    with pytest.raises(
        SpecError, match="the price of small is unknown, so the budget of 5 USD cannot count it; give"
    ) as e:
        Runner(store, policy).run(instruct(server), data("a"))
    assert "price: {input: 0.25, output: 2.00, currency: USD}, or list it in a file of prices" in str(e.value)
    with pytest.raises(SpecError, match="the price of small is in EUR, so the budget of 5 USD cannot count it"):
        Runner(store, policy).run(instruct(server, price=PRICE), data("a"))
    assert store.ids("runs") == server.bodies == []


def test_a_model_that_only_code_knows_is_refused_before_it_is_asked(chat: Starts) -> None:
    server, store = chat(), MemoryStore()

    def judge(output: str) -> float:
        return float(server.model.complete([{"role": "user", "content": output}]).text)

    run = Runner(store).run(str, Dataset.from_rows([{"input": "1"}]))
    with pytest.raises(Aborted, match="the price of small is unknown, so the budget of 5 USD cannot count it"):
        Evaluator(policy=Policy(budget="5 USD")).evaluate(run, {"judge": judge})
    assert server.bodies == []


def test_a_budget_stops_a_model_and_a_larger_one_continues(chat: Starts) -> None:
    server = chat(*[{"text": "one two"}] * 4)
    task = instruct(server, version="1", price={"input": 0, "output": 1, "per": 1})
    store = MemoryStore()
    with pytest.raises(Aborted, match=r"the budget of 3 USD is spent \(4 USD\); 2 of 4 are done"):
        Runner(store, Policy(budget="3 USD", concurrency=1)).run(task, data("a", "b", "c", "d"))
    run = Runner(store, Policy(budget="8 USD", concurrency=1)).run(task, data("a", "b", "c", "d"))
    assert len(server.bodies) == 4
    assert run.manifest["spent"] == {"USD": 8.0}


def test_a_judge_is_counted_and_stops_with_the_budget(chat: Starts) -> None:
    server, store = chat(*[{"text": json.dumps({"reasons": "Short.", "verdict": 5})}] * 4), MemoryStore()
    model = replace(server.model, price={"input": 0, "output": 1, "per": 1}, cache=False)
    run = Runner(store).run(str, Dataset.from_rows([{"input": i} for i in range(4)]))
    judge = {"concise": Judge(rubric="conciseness", model=model)}
    unpriced = {"concise": Judge(rubric="conciseness", model=server.model)}
    with pytest.raises(SpecError, match="the price of small is unknown, so the budget of 5 USD cannot count it"):
        Evaluator(policy=Policy(budget="5 USD")).evaluate(run, unpriced)
    with pytest.raises(Aborted, match="2 of 4 are done"):
        Evaluator(policy=Policy(budget="5 USD", concurrency=1)).evaluate(run, judge)
    evaluation = Evaluator(policy=Policy(budget="50 USD", concurrency=1)).evaluate(run, judge)
    assert evaluation.counts == {"concise": {"scored": 4}}
    assert len(server.bodies) == evaluation.manifest["usage"]["concise"]["requests"] == 4
    assert evaluation.manifest["usage"]["concise"]["cost"] == evaluation.manifest["spent"]["concise"]
