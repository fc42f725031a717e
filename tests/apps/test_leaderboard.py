"""Leaderboards: versions of apps side by side, with honest counts, and which of them differ."""

from __future__ import annotations

import hashlib
import json
import re
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy import stats

from evaluand import (
    Aggregator,
    Dataset,
    DirectoryStore,
    Evaluation,
    Evaluator,
    Measure,
    MemoryStore,
    Policy,
    RemoteProvider,
    Reply,
    Run,
    Runner,
    asks,
)
from evaluand.apps.leaderboards.board import LEADERBOARD, Leaderboard, collect_sources, leaderboard
from evaluand.apps.leaderboards.versions import version_label
from evaluand.apps.logs import record_logs
from evaluand.apps.recording.writer import RecordingWriter
from evaluand.cli import main
from evaluand.core.errors import SpecError, TransientError
from evaluand.evaluation.feedback import Feedback
from evaluand.metrics.column_statistics import Mean
from evaluand.report.leaderboard import leaderboard_section
from evaluand.report.verification import verify
from evaluand.store.manifests import table_file
from evaluand.store.store import Store, with_seal
from evaluand.trace import Trace


def number(output: float) -> float:
    return output


def right(output: float) -> bool:
    return output >= 1


def picky(output: float) -> float:
    if output < 0:
        raise ValueError("negative")
    return output


def odd_only(output: float) -> Any:
    return (None, {"reason": "even"}) if output % 2 == 0 else output


def both(output: float) -> dict[str, float]:
    return {"itself": output, "twice": 2 * output}


def feedback(function: Callable[..., Any], **options: Any) -> Feedback:
    return Feedback(function, version="1", **options).on_output()


def recording(
    store: Store, version: str, feedbacks: Sequence[Feedback], mode: str = "with_app", name: str = "app"
) -> RecordingWriter:
    return RecordingWriter.begin(store, {"name": name, "version": version}, feedbacks, mode=mode)


def use(recording: RecordingWriter, said: Iterable[tuple[Any, Any]], usage: Any = None) -> None:
    """Records a call for each question and answer; an answer that is an error was raised."""
    for question, answer in said:
        trace = Trace.start("ask", question)
        with trace.root as root:
            root.output = None if isinstance(answer, Exception) else answer
            if usage:
                root.set(usage=usage)
        recording.keep(trace, answer if isinstance(answer, Exception) else None)


def recorded(
    store: Store, version: str, said: Iterable[tuple[Any, Any]], *feedbacks: Feedback, **options: Any
) -> RecordingWriter:
    made = recording(store, version, feedbacks, **options)
    use(made, said)
    return made.close()


def asked(answers: Iterable[Any], prefix: str = "q") -> list[tuple[str, Any]]:
    return [(f"{prefix}{i}", answer) for i, answer in enumerate(answers)]


def row(board: Leaderboard, version: str | None, feedback: str | None = "number") -> dict[str, Any]:
    [found] = [row for row in board.rows if (row["version"], row["feedback"]) == (version, feedback)]
    return found


def letters(board: Leaderboard, feedback: str = "number") -> dict[str, str]:
    return {row["version"]: row["letters"] for row in board.rows if row["feedback"] == feedback}


# Values and counts


@pytest.mark.parametrize(("better", "bounds"), [(None, (4 / 30, 1.0)), (True, (4 / 30, 1.0)), (False, (1.0, 4 / 30))])
def test_what_is_missing_is_bounded_beside_the_mean(better: bool | None, bounds: tuple[float, float]) -> None:
    store = MemoryStore()
    crash = [*([1.0] * 4), *([ValueError("no")] * 26)]
    judge = feedback(right, higher_is_better=better)
    board = leaderboard([recorded(store, v, asked(said), judge) for v, said in (("1", crash), ("2", [1.0] * 30))])
    one, other = (row(board, version, "right") for version in "12")
    assert (one["mean"], one["n_scored"], one["n"]) == (1.0, 4, 30)
    assert (one["worst"], one["best"]) == pytest.approx(bounds)
    assert (other["worst"], other["best"]) == (1.0, 1.0)
    shown = "0.133 … 1" if better is not False else "1.000 … 0.133"
    assert "worst … best" in leaderboard_section(board.to_dict())
    assert shown in leaderboard_section(board.to_dict())
    assert "with all" in str(board)


def test_what_is_missing_has_no_bounds_where_no_range_is_known() -> None:
    store = MemoryStore()
    board = leaderboard([recorded(store, "1", asked([2.0, -1.0]), feedback(picky))])
    assert (row(board, "1", "picky")["worst"], row(board, "1", "picky")["best"]) == (None, None)
    assert "worst" not in leaderboard_section(board.to_dict())
    ranged = leaderboard([recorded(MemoryStore(), "1", asked([2.0, -1.0]), feedback(picky, range=(0, 4)))])
    assert (row(ranged, "1", "picky")["worst"], row(ranged, "1", "picky")["best"]) == (1.0, 3.0)


def test_versions_that_would_be_called_alike_are_reported_apart() -> None:
    store, one = MemoryStore(), {"feedbacks": [feedback(number)], "mode": "with_app"}
    made = []
    for app, value in (({"name": "rag 2"}, 1.0), ({"name": "rag", "version": "2"}, 2.0), ({"name": "rag"}, 3.0)):
        each = RecordingWriter.begin(store, app, **one)
        use(each, asked([value] * 20))
        made.append(each.close())
    board = leaderboard(made)
    assert [version["label"] for version in board.versions] == ["'rag 2'", "'rag' 2", "rag"]
    assert [pair["difference"] for pair in board.pairs] == [-1.0, -2.0, -1.0]
    assert len({pair[side] for pair in board.pairs for side in "ab"}) == 3
    assert version_label({"app": "rag", "version": ""}) == "rag ''"


def test_a_mean_stands_beside_its_interval_and_its_counts() -> None:
    values = [1.0, 0.5, 0.0, 0.25]
    found = row(leaderboard([recorded(MemoryStore(), "1", asked(values), feedback(number))]), "1")
    low, high = stats.t.interval(0.95, 3, np.mean(values), stats.sem(values))
    assert (found["mean"], found["low"], found["high"]) == pytest.approx((0.4375, low, high))
    assert (found["n"], found["n_scored"], found["letters"], found["reason"]) == (4, 4, "a", None)


def test_the_interval_of_zeros_and_ones_is_wilsons() -> None:
    found = row(leaderboard([recorded(MemoryStore(), "1", asked([1, 1, 0, 1]), feedback(right))]), "1", "right")
    wilson = stats.binomtest(3, 4).proportion_ci(method="wilson")
    assert (found["low"], found["high"]) == pytest.approx((wilson.low, wilson.high))


@pytest.mark.parametrize("values", [[0.99, 1.0], [0.5, 0.5, 0.5], [1.0, 1.0], [0.0, 0.01, 0.0]])
@pytest.mark.parametrize("is_open", [False, True])
def test_the_interval_stays_in_the_range_that_is_declared(values: list[float], is_open: bool) -> None:
    made = recording(MemoryStore(), "1", [feedback(number, range=(0, 1))])
    use(made, asked(values))
    found = row(leaderboard([made if is_open else made.close()]), "1")
    assert 0 <= found["low"] <= found["mean"] <= found["high"] <= 1
    assert found["low"] < found["high"]


def test_zeros_of_another_range_are_no_share() -> None:
    found = row(leaderboard([recorded(MemoryStore(), "1", asked([0.0] * 9), feedback(number, range=(0, 100)))]), "1")
    assert found["high"] > 1


def test_values_outside_the_range_have_no_mean_and_that_is_reported() -> None:
    said = asked([0.5, 1.5, 0.25])
    found = row(leaderboard([recorded(MemoryStore(), "1", said, feedback(number, range=(0, 1)))]), "1")
    assert (found["mean"], found["n_scored"]) == (None, 3)
    assert found["reason"] == "1 of 3 values are outside the declared range 0 to 1"


def test_what_has_no_score_is_reported_and_is_no_number() -> None:
    said = asked([1.0, -1.0, ValueError("broken"), 3.0])
    exists = feedback(number, name="never", if_exists="__record__.app.nothing")
    board = leaderboard(
        [recorded(MemoryStore(), "1", said, feedback(picky, on_error="fail"), feedback(odd_only), exists)]
    )
    found = row(board, "1", "picky")
    assert (found["mean"], found["n"], found["n_scored"], found["n_failed"]) == (2.0, 4, 2, 2)
    assert (found["records"], found["calls_failed"]) == (4, 1)
    never = row(board, "1", "never")
    assert (never["mean"], never["n_skipped"] + never["n_failed"], never["reason"]) == (
        None,
        4,
        "no record has a score",
    )


def test_abstentions_are_counted_apart() -> None:
    found = row(leaderboard([recorded(MemoryStore(), "1", asked([1, 2, 3]), feedback(odd_only))]), "1", "odd_only")
    assert (found["mean"], found["n_scored"], found["n_abstained"]) == (2.0, 2, 1)


def test_a_feedback_that_says_several_numbers_has_a_line_for_each() -> None:
    board = leaderboard([recorded(MemoryStore(), "1", asked([1.0, 2.0]), feedback(both))])
    assert [(each["feedback"], each["mean"]) for each in board.rows] == [("both · itself", 1.5), ("both · twice", 3.0)]


def test_a_latency_that_nobody_logged_is_unknown_and_no_number() -> None:
    store = MemoryStore()
    logs: dict[str, list[dict[str, Any]]] = {
        "1": [{"input": "a", "output": "b"}],
        "2": [
            {"input": "a", "output": "b"},
            {"input": "c", "output": "d", "duration": 2.0},
            {"input": "e", "error": "f"},
        ],
    }
    for version, interactions in logs.items():
        made = record_logs(interactions, version=version, store=store)
        if version == "1":
            made.close()
    board = leaderboard(store)
    reported = [(v["label"], v["latency_median"], v["latency_p95"], v["n_latency"]) for v in board.versions]
    assert reported == [("logged 1", None, None, 0), ("logged 2", 2.0, 2.0, 1)]
    assert str(board).splitlines() == [
        "logged 1: 1 records, latency unknown",
        "logged 2: 3 records, latency of 1 of 2 2 s (95 % below 2 s)",
    ]
    section = leaderboard_section(board.to_dict())
    assert section.count("<td>unknown</td>") == 2
    assert section.count("<td>2 s (1 of 2)</td>") == 2


def test_an_app_without_feedbacks_has_its_records_latency_and_cost() -> None:
    made = recording(MemoryStore(), "1", [])
    use(made, asked([1, 2]), {"input_tokens": 10, "output_tokens": 3, "cost": 0.25, "currency": "EUR"})
    use(made, asked([3]))
    found = row(leaderboard([made.close()]), "1", None)
    assert (found["records"], found["input_tokens"], found["output_tokens"], found["n_tokens"]) == (3, 20, 6, 2)
    assert (found["cost"], found["currency"], found["n_cost"]) == (0.5, "EUR", 2)


def test_a_cost_that_is_known_of_some_records_says_of_how_many() -> None:
    made = recording(MemoryStore(), "1", [])
    use(made, asked([1]), {"cost": 0.25, "currency": "EUR"})
    use(made, asked([2]))
    assert "0.250 EUR (1 of 2)" in leaderboard_section(leaderboard([made.close()]).to_dict())


@pytest.mark.parametrize("other", ["USD", None])
@pytest.mark.parametrize("state", ["open", "closed"])
def test_costs_in_several_currencies_or_in_an_unknown_one_are_not_summed(other: str | None, state: str) -> None:
    store = MemoryStore()
    made = recording(store, "1", [])
    for currency in ("EUR", other):
        use(made, asked([1], str(currency)), {"cost": 1.0, "currency": currency})
    use(made, asked([1], "none"), {"input_tokens": 1, "currency": "CHF"})
    board = leaderboard(store if state == "open" else [made.close()])
    assert row(board, "1", None)["cost"] is None
    assert board.notes == ["app 1 has costs in several currencies, which are not summed"]


def test_latencies_are_those_of_completed_calls() -> None:
    store = MemoryStore()
    made = recording(store, "1", [])
    for number, milliseconds in enumerate((10, 20, 30, 40, 1000)):
        error = ValueError() if number == 4 else None
        start = 10**18
        trace = Trace.from_rows([], name="ask", input=number, start_ns=start, end_ns=start + milliseconds * 10**6)
        made.keep(trace, error)
    found = row(leaderboard([made.close()]), "1", None)
    assert (found["latency_median"], found["latency_p95"]) == pytest.approx((0.025, 0.0385))


# What judging took


@dataclass(frozen=True, kw_only=True)
class Judge(RemoteProvider):
    """Each request reads a token for each letter and costs a quarter; some fail, or are worth another attempt."""

    currency: str = "EUR"
    trouble: list[str] = field(default_factory=list)
    unidentified = (*RemoteProvider.unidentified, "trouble")

    @asks
    def reply(self, text: str) -> Any:
        return Reply(len(text), {"input_tokens": len(text), "cost": 0.25, "currency": self.currency})

    def letters(self, text: str) -> float:
        said = float(self.reply(text))
        if text in self.trouble:
            self.trouble.remove(text)
            raise TransientError("try again")
        return said

    async def letters_later(self, text: str) -> float:
        return self.letters(text)

    @asks
    def free(self, text: str) -> int:
        return len(text)


def judge(**options: Any) -> Judge:
    return Judge(version="1", cache=False, **options)


ANSWERS = ["a", "bb", "ccc", "bb"]


@pytest.mark.parametrize("mode", ["none", "with_app", "with_app_thread"])
@pytest.mark.parametrize("method", ["letters", "letters_later"])
def test_what_judging_took_stands_beside_what_calls_cost(mode: str, method: str) -> None:
    provider = judge()
    made = recording(MemoryStore(), "1", [Feedback(getattr(provider, method)).on_output(), feedback(len)], mode=mode)
    use(made, asked(ANSWERS), {"input_tokens": 100, "cost": 7.0, "currency": "USD"})
    made.close()
    board = leaderboard([made.evaluate()])
    [spent] = board.spent
    counts = {"n": 4, "requests": 4, "n_tokens": 4, "n_cost": 4, "input_tokens": 8, "output_tokens": None}
    assert spent == {"label": "app 1", "feedback": method, "cost": 1.0, "currency": "EUR", **counts}
    assert (provider.spent.n_requests, provider.spent.cost) == (4, {"EUR": 1.0})
    [version] = board.versions
    assert (version["input_tokens"], version["cost"], version["currency"]) == (400, 28.0, "USD")


def test_an_open_recording_tells_what_judging_took_so_far() -> None:
    made = recording(MemoryStore(), "1", [Feedback(judge().letters).on_output()])
    use(made, asked(ANSWERS))
    before = leaderboard([made]).spent
    assert (before[0]["requests"], before[0]["cost"]) == (4, 1.0)
    assert leaderboard([made.close()]).spent == before


def test_all_attempts_count_and_those_of_scores_that_fail() -> None:
    provider = judge(trouble=["a", "bb", "bb", "bb"])
    made = recording(MemoryStore(), "1", [Feedback(provider.letters).on_output()], mode="none")
    use(made, asked(["a", "bb", "ccc"]))
    run = made.close().run
    assert run is not None
    scorers = {"letters": Feedback(provider.letters).on_output()}
    evaluation = Evaluator(policy=Policy(retries=1, backoff=0.0, concurrency=1)).evaluate(run, scorers)
    assert evaluation.counts == {"letters": {"scored": 2, "failed": 1}}
    [spent] = leaderboard([evaluation]).spent
    assert (spent["n"], spent["requests"], spent["cost"]) == (3, 5, 1.25)
    assert provider.spent.n_requests == 5


def test_requests_of_no_known_cost_are_counted_and_known_replies_are_none() -> None:
    provider = Judge(version="1")
    free = Feedback(provider.free, name="free").on_output()
    made = recorded(MemoryStore(), "1", asked([*ANSWERS, ValueError()]), free)
    [spent] = leaderboard([made]).spent
    assert (spent["n"], spent["requests"]) == (3, 3)
    assert {spent[name] for name in ("input_tokens", "output_tokens", "cost", "currency")} == {None}
    assert (spent["n_tokens"], spent["n_cost"]) == (0, 0)


def test_what_judging_took_is_no_part_of_what_came_out() -> None:
    store, provider = MemoryStore(), judge()
    run = recorded(store, "1", asked(ANSWERS)).run
    assert run is not None
    first, second = (
        Evaluator().evaluate(run, {"letters": Feedback(each.letters, version="1").on_output()}, fresh=True)
        for each in (provider, Judge(version="1"))
    )
    assert leaderboard([first]).spent != leaderboard([second]).spent
    assert first.digest == second.digest
    assert first.id != second.id
    assert verify(store, "evaluations", first.id) == []


def test_scores_that_are_taken_over_tell_what_they_took() -> None:
    store, provider = MemoryStore(), judge()
    made = recorded(store, "1", asked(ANSWERS))
    assert made.run is not None
    both = {"letters": Feedback(provider.letters).on_output(), "right": lambda output: True}
    first = Evaluator().evaluate(made.run, {"letters": both["letters"]})
    second = Evaluator().evaluate(made.run, both)
    assert leaderboard([second]).spent == leaderboard([first]).spent
    assert provider.spent.n_requests == 4


def test_what_judging_took_in_several_currencies_is_not_summed() -> None:
    store = MemoryStore()
    for currency in ("EUR", "USD"):
        recorded(store, "1", asked(["a"]), Feedback(judge(currency=currency).letters, name="l").on_output())
    board = leaderboard(store)
    assert (board.spent[0]["requests"], board.spent[0]["cost"]) == (2, None)
    assert "app 1: l was paid in several currencies, which are not summed" in board.notes


def test_tables_from_before_what_judging_took_was_kept_can_be_read(tmp_path: Path) -> None:
    store = DirectoryStore(tmp_path)
    made = recorded(store, "1", asked(ANSWERS), Feedback(judge().letters).on_output())
    assert made.evaluation is not None
    [file] = (tmp_path / "evaluations" / made.evaluation.id).rglob("*.parquet")
    pq.write_table(pq.read_table(file).drop_columns(["usage"]), file)
    manifest = orjson.loads((file.parent / "manifest.json").read_bytes())
    digest = hashlib.blake2b(file.read_bytes(), digest_size=16).hexdigest()
    [(table, entry)] = manifest["tables"].items()
    entry |= {"bytes": file.stat().st_size, "digest": digest, "file": table_file(table, digest)}
    file.rename(file.with_name(entry["file"]))
    (file.parent / "manifest.json").write_bytes(orjson.dumps(with_seal(manifest)))
    board = leaderboard([made])
    assert (board.spent, board.rows[0]["mean"]) == ([], 2.0)


def test_what_judging_took_is_shown_in_the_terminal_and_on_pages(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    recorded(DirectoryStore(tmp_path), "1", asked(ANSWERS), Feedback(judge().letters, name="<b>").on_output())
    evaluand("leaderboard", "--store", str(tmp_path))
    shown = capsys.readouterr().out
    assert "spent by feedbacks, in addition to the cost of calls" in shown
    assert re.search(r"^version +feedback +scores +requests +tokens in +cost *$", shown, re.M)
    assert re.search(r"^app 1 +<b> +4 +4 +8 +1(\.0+)? EUR *$", shown, re.M)
    evaluand("leaderboard", "--store", str(tmp_path), "--json")
    assert json.loads(capsys.readouterr().out)["spent"][0]["cost"] == 1.0
    page = leaderboard_section(leaderboard(DirectoryStore(tmp_path)).to_dict())
    assert "Spent by feedbacks, in addition to the cost of calls" in page
    assert "&lt;b&gt;" in page
    assert "<b>" not in page


def test_without_providers_nothing_is_reported_of_what_judging_took(folder: Path) -> None:
    board = leaderboard(DirectoryStore(folder))
    assert board.spent == []
    assert "Spent by" not in leaderboard_section(board.to_dict())


# Which versions differ


def test_versions_that_were_asked_the_same_are_compared_input_by_input() -> None:
    store, levels = MemoryStore(), np.arange(30.0)
    a = recorded(store, "1", asked(levels.tolist()), feedback(number))
    b = recorded(store, "2", reversed(asked((levels + 0.5 + levels % 3 / 10).tolist())), feedback(number))
    board = leaderboard([a, b])
    [pair] = board.pairs
    assert pair["n"] == 30
    assert pair["p"] < 0.001  # as two samples nobody could tell
    assert stats.ttest_ind(levels, levels + 0.6).pvalue > 0.5
    assert letters(board) == {"2": "a", "1": "b"}


def test_versions_that_were_asked_other_things_are_two_samples() -> None:
    generator, store = np.random.default_rng(0), MemoryStore()
    a, b = generator.normal(0, 1, 30), generator.normal(1, 2, 40)
    made = [recorded(store, v, asked(x.tolist(), v), feedback(number)) for v, x in (("1", a), ("2", b))]
    [pair] = leaderboard(made).pairs
    found = stats.ttest_ind(a, b, equal_var=False)
    assert pair["n"] is None
    assert pair["p"] == pytest.approx(stats.t.sf(abs(found.statistic), np.floor(found.df)) * 2)
    assert abs(pair["difference"]) == pytest.approx(abs(b.mean() - a.mean()))


def test_shares_of_two_samples_are_compared_by_the_chi_squared_test() -> None:
    store = MemoryStore()
    a, b = [1] * 18 + [0] * 2, [1] * 9 + [0] * 11
    made = [recorded(store, v, asked(x, v), feedback(right)) for v, x in (("1", a), ("2", b))]
    [pair] = leaderboard(made).pairs
    plain = stats.chi2_contingency([[18, 2], [9, 11]], correction=False).statistic
    assert pair["p"] == pytest.approx(stats.chi2.sf(plain * 39 / 40, 1))


def test_shares_of_the_same_inputs_are_compared_by_mcnemars_test() -> None:
    store = MemoryStore()
    a, b = [1] * 10 + [0] * 10, [1] * 9 + [0] + [1] * 8 + [0] * 2
    [pair] = leaderboard([recorded(store, v, asked(x), feedback(right)) for v, x in (("1", a), ("2", b))]).pairs
    assert pair["p"] == pytest.approx(stats.binomtest(1, 9).pvalue)


def test_an_input_that_comes_again_is_no_further_evidence() -> None:
    store = MemoryStore()
    said = [("the same question", 0.0)] * 50
    better = [("the same question", 1.0)] * 50
    [pair] = leaderboard([recorded(store, v, x, feedback(number)) for v, x in (("1", said), ("2", better))]).pairs
    assert (pair["n"], pair["p"]) == (50, 1.0)


def test_all_pairs_of_all_feedbacks_are_one_family() -> None:
    store = MemoryStore()
    said = {"1": [0] * 8, "2": [1] * 8, "3": [0] * 8}
    made = [recorded(store, v, asked(x), feedback(number), feedback(right)) for v, x in said.items()]
    board = leaderboard(made)
    assert len(board.pairs) == 6
    apart = [pair for pair in board.pairs if pair["p"] < 1]
    assert {pair["p_holm"] for pair in apart} == {6 * 2 / 2**8}
    assert set(letters(board).values()) == {"a", "b"}
    assert set(letters(leaderboard(made, confidence=0.99)).values()) == {"a"}


def test_lower_is_better_where_the_feedback_says_so() -> None:
    store = MemoryStore()
    made = [
        recorded(store, v, asked(x), feedback(number, higher_is_better=False))
        for v, x in (("1", [5.0, 6.0, 7.0]), ("2", [1.0, 2.0, 3.0]))
    ]
    board = leaderboard(made)
    assert list(letters(board)) == ["2", "1"]
    assert row(board, "1")["direction"] == "lower"
    assert row(leaderboard([e for m in made if (e := m.evaluation)]), "1")["direction"] == "lower"


def test_values_that_do_not_vary_tell_nothing_of_two_samples() -> None:
    store = MemoryStore()
    made = [recorded(store, v, asked([x] * 3, v), feedback(number)) for v, x in (("1", 0.5), ("2", 0.7))]
    board = leaderboard(made)
    assert board.pairs[0]["p"] is None
    assert set(letters(board).values()) == {"a"}


def test_feedbacks_that_are_not_defined_alike_are_reported() -> None:
    store = MemoryStore()
    other = Feedback(number, version="2").on_output()
    made = [recorded(store, v, asked([1.0, 2.0]), f) for v, f in (("1", feedback(number)), ("2", other))]
    assert leaderboard(made).notes == ["number is not defined alike everywhere, so its values may not mean the same"]


def test_of_very_many_versions_nothing_is_reported_apart_and_that_is_reported() -> None:
    store = MemoryStore()
    made = [recorded(store, str(v), asked([v, v + 1.0]), feedback(number)) for v in range(41)]
    board = leaderboard(made)
    assert board.pairs == []
    assert row(board, "3")["letters"] is None
    assert board.notes == ["number: more than 40 versions, so pairs are not compared"]
    assert [version["version"] for version in board.versions] == [str(v) for v in range(41)]


# What is collected


def test_all_recordings_of_a_version_are_taken_together() -> None:
    store = MemoryStore()
    for prefix, answers in (("a", [1.0, 2.0]), ("b", [3.0, 4.0, 5.0])):
        recorded(store, "1", asked(answers, prefix), feedback(number))
    found = row(leaderboard(store), "1")
    assert (found["mean"], found["n"], found["records"]) == (3.0, 5, 5)


@pytest.mark.parametrize("on_disk", [False, True])
def test_an_open_recording_counts_as_far_as_it_is(tmp_path: Path, on_disk: bool) -> None:
    store: Store = DirectoryStore(tmp_path) if on_disk else MemoryStore()
    made = recording(store, "1", [feedback(number)])
    use(made, asked([1.0, 2.0, ValueError()]), {"input_tokens": 5})
    deferred = recording(store, "2", [feedback(number), feedback(both)], mode="none")
    use(deferred, asked([1.0]))
    board = leaderboard(store)
    found = row(board, "1")
    assert (found["mean"], found["n"], found["n_failed"], found["calls_failed"]) == (1.5, 3, 1, 1)
    assert (found["input_tokens"], found["latency_median"] is None) == (15, False)
    waits = row(board, "2")
    assert (waits["mean"], waits["n"], waits["n_waiting"]) == (None, 1, 1)
    before = {k: v for k, v in found.items() if k != "metric"}
    made.close()
    assert {k: v for k, v in row(leaderboard(store), "1").items() if k != "metric"} == pytest.approx(before)


def test_a_snapshot_is_not_counted_beside_what_followed() -> None:
    store = MemoryStore()
    made = recording(store, "1", [feedback(number)])
    use(made, asked([1.0]))
    snapshot = made.snapshot().evaluation
    assert snapshot is not None
    use(made, asked([2.0], "later"))
    assert row(leaderboard(store), "1")["n"] == 2
    made.close()
    assert row(leaderboard(store), "1")["n"] == 2
    assert made.evaluation is not None
    assert row(leaderboard([snapshot, made.evaluation]), "1")["n"] == 2
    assert row(leaderboard([snapshot]), "1")["n"] == 1


def test_feedbacks_that_were_asked_afterwards_have_their_lines() -> None:
    store = MemoryStore()
    made = recorded(store, "1", asked([1.0, 2.0]), feedback(number))
    assert made.run is not None
    Evaluator().evaluate(made.run, {"later": feedback(right)})
    board = leaderboard(store)
    assert [(each["feedback"], each["mean"]) for each in board.rows] == [("number", 1.5), ("later", 1.0)]


def test_evaluations_of_ordinary_runs_are_versions_of_their_tasks() -> None:
    store = MemoryStore()
    data = Dataset.from_rows([{"input": float(i)} for i in range(6)])
    made = [
        Evaluator().evaluate(Runner(store).run(task, data, replications=2), {"number": feedback(number)}, name=name)
        for name, task in (("plus", lambda x: x + 1), ("minus", lambda x: x - 1))
    ]
    Aggregator().aggregate(made, [Measure("number", Mean(direction="lower"))])
    board = leaderboard(made)
    assert [each["n"] for each in board.rows] == [12, 12]
    assert board.pairs[0]["n"] == 12
    assert {each["direction"] for each in board.rows} == {"lower"}


def test_tasks_of_one_name_that_are_not_the_same_are_not_taken_together() -> None:
    store, data = MemoryStore(), Dataset.from_rows([{"input": 1.0}])
    runs = [Runner(store).run(task, data) for task in (lambda x: x + 1, lambda x: x - 1)]
    labels = [version["label"] for version in leaderboard(runs).versions]
    assert len(labels) == 2
    assert all(re.fullmatch(r"<lambda> \([0-9a-f]{8}\)", label) for label in labels)


def test_what_belongs_to_names_of_apps_recordings_and_evaluations_is_found() -> None:
    store = MemoryStore()
    one, two = (recorded(store, v, asked([1.0]), feedback(number)) for v in "12")
    recorded(store, "1", asked([1.0]), feedback(number), name="other")
    assert {e.id for e in collect_sources(store, ["app"]) if isinstance(e, Evaluation)} == {
        made.evaluation.id for made in (one, two) if made.evaluation
    }
    assert row(leaderboard(collect_sources(store, ["app/2"])), "2")["n"] == 1
    assert len(leaderboard(collect_sources(store, ["app/2"])).versions) == 1
    assert len(leaderboard(collect_sources(store, [one.id[:8], "other/1"])).versions) == 2
    assert two.evaluation is not None
    assert len(collect_sources(store, [two.evaluation.id])) == 1
    assert len(leaderboard(store).versions) == 3


def test_what_is_no_evaluation_is_refused_in_a_sentence() -> None:
    with pytest.raises(SpecError, match="a leaderboard is made of evaluations and recordings, not a str"):
        leaderboard(["rag"])  # type: ignore[list-item]
    with pytest.raises(SpecError, match="nothing is recorded"):
        leaderboard(MemoryStore())
    with pytest.raises(SpecError, match="confidence=2 must lie between 0 and 1"):
        leaderboard([], confidence=2)


def test_a_run_alone_and_an_empty_recording_can_be_reported_of() -> None:
    store = MemoryStore()
    run = Runner(store).run(str.upper, Dataset.from_rows([{"input": "a"}]))
    assert isinstance(run, Run)
    assert leaderboard([run]).rows[0]["records"] == 1
    empty = recording(store, "1", [feedback(number)])
    assert row(leaderboard([empty]), "1")["n"] == 0


# In other forms


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    store = DirectoryStore(tmp_path / "store")
    for version, shift in (("1", 0.0), ("2", 3.0), ("10", 0.1)):
        made = recording(store, version, [feedback(number, higher_is_better=True), feedback(picky)])
        answers = [float(i) + shift + i % 3 / 10 for i in range(30)]
        use(made, asked([*answers, -1.0]), {"input_tokens": 1000})
        made.close()
    return tmp_path / "store"


def test_the_table_has_a_row_for_each_version_and_feedback(folder: Path) -> None:
    board = leaderboard(DirectoryStore(folder))
    assert board.table().schema == LEADERBOARD
    assert pa.Table.from_pylist(board.rows, LEADERBOARD).num_rows == 6
    frame = board.to_pandas()
    assert frame[frame["feedback"] == "picky"]["n_failed"].tolist() == [1, 1, 1]
    assert next(iter(frame[frame["feedback"] == "number"]["version"])) == "2"
    assert repr(board) == "Leaderboard(3 versions, 2 feedbacks)"


def test_it_prints_a_line_for_each_version_and_feedback(folder: Path) -> None:
    lines = str(leaderboard(DirectoryStore(folder))).splitlines()
    assert lines[0].startswith("number: app 2 ")
    assert lines[0].endswith(" a (31 of 31 scored)")
    assert lines[3].endswith(" a (30 of 31 scored, 1 failed)")
    assert lines[-1].startswith("app 10: 31 records, latency ")


def evaluand(*arguments: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        main([*arguments], standalone_mode=False)


def test_the_command_shows_the_best_version_first(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    evaluand("leaderboard", "--store", str(folder))
    out = capsys.readouterr().out
    blocks = out.split("\n\n")
    assert blocks[0].startswith("number, higher is better\nversion")
    assert re.search(r"^app 2 .* 31 of 31 +a$", blocks[0], re.M)
    assert re.search(r"^app 2 .* 30 of 31 +1 +a$", blocks[1], re.M)
    assert re.search(r"^app 10 +31 .* 31,000$", blocks[2], re.M)
    assert "versions that share a letter do not differ significantly at 95 % (Holm)" in out


def test_the_command_prints_json(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    evaluand("leaderboard", "app/1", "app/2", "--json", "--store", str(folder))
    reported = json.loads(capsys.readouterr().out)
    assert [version["label"] for version in reported["versions"]] == ["app 1", "app 2"]
    assert {pair["feedback"]: pair["n"] for pair in reported["pairs"]} == {"number": 31, "picky": 30}
    assert reported["feedbacks"][0]["label"] == "app 2"


def hostile(output: float) -> dict[str, float]:
    return {"\x1b[31mred": output, "<b>bold": output}


def test_names_can_do_nothing_to_the_terminal_or_a_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    recorded(DirectoryStore(tmp_path), "<i>1", asked([1.0]), feedback(hostile))
    evaluand("leaderboard", "--store", str(tmp_path))
    out = capsys.readouterr().out
    assert "\x1b" not in out
    assert r"hostile · \x1b[31mred" in out
    page = leaderboard_section(leaderboard(DirectoryStore(tmp_path)).to_dict())
    assert "\x1b" not in page
    assert "<i>" not in page
    assert "&lt;i&gt;1" in page
    assert "hostile · &lt;b&gt;bold" in page


def test_the_command_says_what_is_missing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for arguments, reported in (((), "no app was recorded in "), (("nothing",), "nothing is called 'nothing' here")):
        assert main(["leaderboard", *arguments, "--store", str(tmp_path / "none")], standalone_mode=False) == 1
        assert reported in capsys.readouterr().err
