"""Stored answers that were lost are named, and repeated without asking only where they cost nothing."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from hypothesis import HealthCheck, given, settings, strategies as st

from evaluand import Dataset, DirectoryStore, Evaluator, Runner, Task, report_usage
from evaluand.cli import main
from evaluand.core.errors import EvaluandWarning
from evaluand.engine.outcome import Aborted
from evaluand.engine.policy import Policy
from evaluand.evaluation.scorer import FunctionScorer
from evaluand.report.verification import verify

ROWS = 10
STOPS_AT = 5


class Doubled(Task[str, str]):
    """Doubles a text; stops while there is a file `stop`, and says what it used where there is a file `paid`."""

    version = "1"

    def do_run(self, input: str, span: Any) -> str:
        with open("calls", "a") as calls:
            calls.write("x")
        if input == str(STOPS_AT) and os.path.exists("stop"):
            raise KeyboardInterrupt
        if os.path.exists("paid"):
            span.set(usage={"input_tokens": 3, "output_tokens": 4, "cost": 0.5, "currency": "EUR"})
        return input * 2


def same(output: str, expected: str) -> bool:
    with open("grades", "a") as grades:
        grades.write("x")
    if output == str(STOPS_AT) * 2 and os.path.exists("stop"):
        raise KeyboardInterrupt
    return output == expected


def alike(output: str, expected: str) -> bool:
    with open("others", "a") as grades:
        grades.write("x")
    return output[:1] == expected[:1]


def paid_same(output: str, expected: str) -> bool:
    report_usage(cost=0.5, currency="EUR")
    return output == expected


DATA = Dataset.from_rows([{"input": str(n), "expected": str(n) * 2} for n in range(ROWS)])


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> DirectoryStore:
    monkeypatch.chdir(tmp_path)
    return DirectoryStore(tmp_path / "store")


def run(store: DirectoryStore, **options: Any) -> Any:
    return Runner(store, Policy(concurrency=1)).run(Doubled(), DATA, name="doubled", **options)


def stop(store: DirectoryStore) -> Path:
    """The segment of a run that was stopped after some calls."""
    Path("stop").touch()
    with pytest.raises(KeyboardInterrupt):
        run(store)
    Path("stop").unlink()
    Path("calls").unlink()
    [segment] = Path("store").glob("runs/*/journal/*/*.lines")
    return segment.absolute()


def take_out_a_line(segment: Path) -> None:
    lines = segment.read_bytes().splitlines(keepends=True)
    segment.write_bytes(b"".join(lines[:1] + lines[2:]))


def flip_a_bit(segment: Path) -> None:
    content = bytearray(segment.read_bytes())
    content[30] ^= 1
    segment.write_bytes(content)


DAMAGES = [
    pytest.param(Path.unlink, 5, ": is missing, with at least 5 rows", id="missing segment"),
    pytest.param(lambda segment: os.truncate(segment, 0), 5, ": has lost at least 5 rows", id="emptied segment"),
    pytest.param(take_out_a_line, 1, ": has lost at least 1 row", id="line taken out"),
    pytest.param(
        flip_a_bit, 5, ":1: damaged: its checksum does not match", id="line with the files that all have opened"
    ),
]


@pytest.mark.parametrize(("damage", "n_lost", "fault"), DAMAGES)
def test_what_a_journal_has_lost_is_damage_and_is_repeated_where_it_is_free(
    store: DirectoryStore, damage: Callable[[Path], None], n_lost: int, fault: str
) -> None:
    segment = stop(store)
    assert verify(store, "runs", store.ids("runs")[0]) == []
    damage(segment)
    [found] = verify(store, "runs", store.ids("runs")[0])
    assert f"{segment}{fault}" in str(found)
    with pytest.warns(EvaluandWarning, match=f"doubled: {n_lost} stored answers? (is|are) lost .* made again"):
        assert run(store).receipt.kept == STOPS_AT - n_lost
    assert len(Path("calls").read_text()) == ROWS - STOPS_AT + n_lost


@pytest.mark.parametrize(("damage", "n_lost", "fault"), DAMAGES)
def test_calls_that_cost_are_repeated_only_if_that_is_asked_for(
    store: DirectoryStore, damage: Callable[[Path], None], n_lost: int, fault: str
) -> None:
    Path("paid").touch()
    damage(stop(store))
    for _ in range(2):
        with pytest.raises(Aborted, match=rf"{n_lost} stored answers? .* or add --repeat-lost \(repeat_lost=True\)"):
            run(store)
    assert not Path("calls").exists()
    with pytest.warns(EvaluandWarning, match=f"{n_lost} stored answers? (is|are) lost"):
        assert run(store, repeat_lost=True).counts == {"completed": ROWS}


def test_a_loss_that_was_accepted_is_not_asked_for_again(store: DirectoryStore) -> None:
    Path("paid").touch()
    stop(store).unlink()
    Path("stop").touch()
    with pytest.warns(EvaluandWarning, match="are lost"), pytest.raises(KeyboardInterrupt):
        run(store, repeat_lost=True)
    Path("stop").unlink()
    assert run(store).receipt.kept == STOPS_AT


def test_a_missing_journal_of_open_work_is_damage(store: DirectoryStore) -> None:
    shutil.rmtree(stop(store).parents[1])
    [fault] = verify(store, "runs", store.ids("runs")[0])
    assert fault.message.startswith(
        "is missing, and with it what was finished; restore it, or start the same work again"
    )
    with pytest.warns(EvaluandWarning, match="journal: is missing, and with it what was finished"):
        assert run(store).receipt.called == ROWS


def test_a_run_that_is_sealed_while_it_is_verified_has_lost_no_journal(
    store: DirectoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    stop(store)
    exists = store.journals.exists

    def exists_once_another_has_sealed(kind: str, id: str) -> bool:
        run(DirectoryStore(store.root))
        return exists(kind, id)

    monkeypatch.setattr(store.journals, "exists", exists_once_another_has_sealed)
    assert verify(store, "runs", store.ids("runs")[0]) == []
    assert store.is_sealed("runs", store.ids("runs")[0])


def test_a_damaged_table_costs_no_grade_of_another_scorer(store: DirectoryStore) -> None:
    scorers = {"alike": FunctionScorer(alike, version="1"), "same": FunctionScorer(same, version="1")}
    graded = run(store)
    first = Evaluator().evaluate(graded, scorers, name="doubled")
    entry = first.manifest["tables"]["scores/same"]
    table = store.root / "evaluations" / first.id / entry["file"]
    flipped = bytearray(table.read_bytes())
    flipped[len(flipped) // 2] ^= 1
    table.write_bytes(flipped)
    assert "scores/alike is kept until the same work was run again" in call("gc", "--damaged", "--yes").output
    Path("grades").unlink()
    Path("others").unlink()
    with pytest.warns(EvaluandWarning) as warned:
        second = Evaluator().evaluate(graded, scorers, name="doubled")
    assert "same of doubled: 10 stored grades are lost" in " ".join(str(each.message) for each in warned)
    assert (second.receipt and second.receipt.reused, Path("others").exists()) == (ROWS, False)
    assert "1 item" in call("gc", "--damaged", "--yes").output
    assert call("verify").exit_code == 0
    again = Evaluator().evaluate(graded, scorers, name="doubled")
    assert (again.id, again.receipt and again.receipt.called) == (second.id, 0)


def call(*arguments: str) -> Result:
    return CliRunner().invoke(main, [*arguments, "--store", "store"])


def test_answers_whose_spans_are_damaged_are_taken_over(store: DirectoryStore) -> None:
    Path("paid").touch()
    first = run(store)
    (store.root / "runs" / first.id / first.manifest["tables"]["spans"]["file"]).write_bytes(b"")
    Path("calls").unlink()
    with pytest.warns(EvaluandWarning) as warned:
        second = run(store)
    assert "taken over without their traces" in str(warned[-1].message)
    assert (second.receipt.reused, second.digest, Path("calls").exists()) == (ROWS, first.digest, False)


def test_a_damaged_run_is_repeated_only_if_that_is_asked_for(store: DirectoryStore) -> None:
    Path("paid").touch()
    first = run(store)
    (store.root / "runs" / first.id / first.manifest["tables"]["responses"]["file"]).write_bytes(b"")
    message = (
        r"10 stored answers are lost .* which used .* cost 5.00 EUR; restore what is missing, or add --repeat-lost"
    )
    with pytest.warns(EvaluandWarning), pytest.raises(Aborted, match=message):
        run(store)
    with pytest.warns(EvaluandWarning) as warned:
        assert run(store, repeat_lost=True).digest == first.digest
    assert str(warned[-1].message).endswith("and are made again")


@pytest.mark.parametrize("damage", [lambda file: os.truncate(file, 100), flip_a_bit], ids=["size", "content"])
def test_answers_lost_in_a_smaller_run_of_the_name_are_asked_for_too(
    store: DirectoryStore, damage: Callable[[Path], None]
) -> None:
    Path("paid").touch()
    first = run(store, limit=3)
    damage(store.root / "runs" / first.id / first.manifest["tables"]["responses"]["file"])
    Path("calls").unlink()
    with pytest.warns(EvaluandWarning), pytest.raises(Aborted, match=r"3 stored answers are lost .* cost 1.50 EUR"):
        run(store)
    assert not Path("calls").exists()
    with pytest.warns(EvaluandWarning):
        assert run(store, repeat_lost=True).counts == {"completed": ROWS}


def test_grades_lost_beside_a_new_scorer_are_asked_for_too(store: DirectoryStore) -> None:
    graded = run(store)
    scorers = {"same": FunctionScorer(paid_same, version="1")}
    first = Evaluator().evaluate(graded, scorers, name="doubled")
    flip_a_bit(store.root / "evaluations" / first.id / first.manifest["tables"]["scores/same"]["file"])
    with pytest.warns(EvaluandWarning), pytest.raises(Aborted, match=r"10 stored grades are lost .* cost 5.00 EUR"):
        Evaluator().evaluate(graded, scorers | {"alike": FunctionScorer(alike, version="1")}, name="doubled")


def test_answers_that_are_never_reused_are_not_asked_for(store: DirectoryStore) -> None:
    def now(input: str) -> str:
        report_usage(cost=0.5, currency="EUR")
        return f"{input} {time.time()}"

    first = Runner(store).run(now, DATA, name="now")
    flip_a_bit(store.root / "runs" / first.id / first.manifest["tables"]["responses"]["file"])
    second = Runner(store).run(now, DATA, name="now")
    assert (second.receipt and second.receipt.called, second.counts) == (ROWS, {"completed": ROWS})


@pytest.fixture(scope="module")
def graded_in_part(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with an evaluation that was stopped."""
    folder = tmp_path_factory.mktemp("open")
    with pytest.MonkeyPatch.context() as patched:
        patched.chdir(folder)
        Path("stop").touch()
        store = DirectoryStore(folder / "store")
        with pytest.raises(KeyboardInterrupt):
            grade(store)
        Path("stop").unlink()
    return folder


def grade(store: DirectoryStore) -> Any:
    graded = Runner(store).run(Recorded(), DATA, name="doubled")
    return Evaluator(policy=Policy(concurrency=1)).evaluate(graded, {"same": FunctionScorer(same, version="1")})


class Recorded(Task[str, str]):
    version = "1"

    def do_run(self, input: str, span: Any) -> str:
        return input * 2


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(place=st.floats(0, 1, exclude_max=True), bit=st.integers(0, 7))
def test_a_changed_bit_of_open_json_does_not_lock_what_is_open(graded_in_part: Path, place: float, bit: int) -> None:
    with pytest.MonkeyPatch.context() as patched:
        patched.chdir(graded_in_part)
        shutil.rmtree("copy", ignore_errors=True)
        shutil.copytree("store", "copy")
        [opened] = Path("copy").glob("evaluations/*/open.json")
        content = bytearray(opened.read_bytes())
        content[int(place * len(content))] ^= 1 << bit
        opened.write_bytes(content)
        with pytest.warns(EvaluandWarning, match=r"open\.json.* it is written again"):
            evaluation = grade(DirectoryStore(graded_in_part / "copy"))
    assert (evaluation.counts, evaluation.receipt.kept) == ({"same": {"scored": ROWS}}, STOPS_AT)


def test_answers_stored_beside_a_stale_index_are_not_paid_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("app.py").write_text(
        "import os\n\n\ndef task(text):\n    with open('calls', 'a') as calls:\n        calls.write('x')\n"
        "    if os.environ.get('OUTAGE') and int(text) % 2:\n        raise RuntimeError('503')\n"
        "    return str(int(text) * 2)\n"
    )
    for n, name in ((20, "small"), (40, "big")):
        rows = [json.dumps({"text": str(i), "want": str(2 * i)}) for i in range(n)]
        Path(f"{name}.jsonl").write_text("\n".join(rows))
        Path(f"{name}.yaml").write_text(
            f"name: exp\ndataset: {{path: {name}.jsonl, name: d, input: text, expected: want}}\n"
            'tasks: {task: {function: app.py:task, version: "1"}}\nscorers: {em: exact_match}\nmetrics: accuracy\n'
        )
    with monkeypatch.context() as patched:
        patched.setenv("OUTAGE", "1")
        call("run", "small.yaml")
    call("run", "big.yaml")  # which indexes the ten answers of the run
    shutil.rmtree("store")
    Path("calls").unlink()
    for name, n_calls in (("small", 20), ("big", 40)):
        assert call("run", f"{name}.yaml").exit_code == 0
        assert len(Path("calls").read_text()) == n_calls
