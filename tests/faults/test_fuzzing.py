"""Whatever a file or text from elsewhere says, reading it ends in rows or in one sentence; see `fuzzing`."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from random import Random

import click
import pytest
from faults.fuzzing import campaign
from faults.fuzzing.mutations import FORMS, mutate
from faults.fuzzing.store import TEMPLATE
from faults.fuzzing.targets import CORPUS, TARGETS, Target

MOST_BYTES, MOST_BYTES_OF_CORPUS = 4096, 200_000


def test_kept_and_changed_inputs_end_in_rows_or_in_one_sentence(tmp_path: Path) -> None:
    assert campaign.main(["--findings", str(tmp_path), "--corpus", "--inputs", str(len(TARGETS)), "--seed", "1"]) == 0


@pytest.mark.slow
def test_many_changed_inputs_end_in_rows_or_in_one_sentence(tmp_path: Path) -> None:
    assert campaign.main(["--findings", str(tmp_path), "--inputs", "20000", "--seed", "2"]) == 0


def test_the_corpus_is_small_and_every_target_has_one() -> None:
    files = [path for path in CORPUS.rglob("*") if path.is_file()]
    assert {path.relative_to(CORPUS).parts[0] for path in files} <= {*TARGETS}
    assert not [path for path in files if path.stat().st_size > MOST_BYTES]
    stored = [path for path in TEMPLATE.rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in [*files, *stored]) < MOST_BYTES_OF_CORPUS
    assert all(target.inputs() and target.form in FORMS for target in TARGETS.values())


def test_an_input_is_the_same_whenever_it_is_made() -> None:
    for target in TARGETS.values():
        made = {mutate(target.form, Random(f"{target.name} 3 {n}"), target.inputs()) for n in (1, 1, 2, 2)}
        assert len(made) <= 2


# What a campaign finds


def refuse(message: str) -> int:
    raise click.ClickException(message)


def work_on() -> int:
    """Works for longer than the case may, and has no end."""
    while time.process_time() < 0.5:
        pass
    signal.pause()
    return 0


DEFECTS: dict[str, Callable[[], int]] = {
    "traceback": lambda: [][1],
    "crash": os.abort,
    "hang": work_on,
    "memory": lambda: len(bytearray(b"1") * (200 << 20)),
    "empty message": lambda: refuse(" "),
    "long message": lambda: refuse("x" * 5000),
}


@pytest.mark.parametrize("kind", DEFECTS)
def test_a_campaign_finds_a_planted_defect_and_goes_on(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(campaign, "SECONDS", 0.4 if kind == "hang" else campaign.SECONDS)
    monkeypatch.setattr(campaign, "MOST_MEMORY", 100 << 20)
    planted = Target("planted", "text", lambda content, folder: DEFECTS[kind](), make=lambda random: b"")
    sound = Target("sound", "text", lambda content, folder: 1, make=lambda random: b"")
    outcomes = [outcome for _, outcome in campaign.run([campaign.Case(each) for each in (planted, sound)])]
    assert [outcome.kind for outcome in outcomes] == [kind, "accepted"]
    assert [outcome.is_finding for outcome in outcomes] == [True, False]
