"""What is promised after a loss of power, on disks that keep what was synced and anything or nothing of the rest.

Promised: a sealed artifact is complete, a name that was given refers to it, and a line of a journal that was synced
counts. What was written since the last sync may be there, or not, or be zeros; then it counts as not done, and the
result is the same once it was done again.
"""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from support import sample_store
from support.power import Node, WatchedDisk, nameless, unsynced_lines, write_survivors
from support.sample_store import counted, finish_evaluation, finish_matches, finish_run

from evaluand import DirectoryStore
from evaluand.report.verification import verify
from evaluand.store import io, journal
from evaluand.store.kinds import kind_names
from evaluand.store.store import Ref

pytestmark = [
    pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="this system does not show open files"),
    # What is continued here is in a copy of the store in which it was begun.
    pytest.mark.filterwarnings("ignore:.* was not begun by you in this store"),
]


@contextmanager
def watched(root: Path) -> Iterator[WatchedDisk]:
    disk = WatchedDisk(root)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(io, "disk", disk)
        patch.setattr(journal, "SYNC_SECONDS", 0.005)
        yield disk


@dataclass(frozen=True)
class Loss:
    """What is on the disk at the loss of power, and what was promised until then.

    Attributes:
        usual: by kind, the calls and the digest of what is finished without a loss.
    """

    top: Node
    promised: set[tuple[str, str]]
    names: set[Ref]
    usual: dict[str, tuple[int, str]]


@pytest.fixture(scope="module")
def loss(tmp_path_factory: pytest.TempPathFactory) -> Loss:
    """One for some seeds each, as what is synced until then depends on time."""
    folder = tmp_path_factory.mktemp("watched")
    with watched(folder / "store") as disk:
        store = sample_store.make(folder / "store", recordings=False)
    promised = {(kind, id) for kind in kind_names() for id in store.ids(kind) if store.is_sealed(kind, id)}
    names = {ref for ref in store.refs() if (ref.kind, ref.id) in promised}
    assert promised
    assert names
    assert nameless(disk.top) == []
    usual = {what: finish(copy_of(store.root, folder / what)) for what, finish in FINISH.items()}
    return Loss(disk.top, promised, names, usual)


@pytest.mark.parametrize(
    ("loss", "seed"),
    [pytest.param(seed // 6, seed, marks=[pytest.mark.slow] if seed >= 3 else []) for seed in range(40)],
    indirect=["loss"],
    scope="module",
)
def test_after_a_loss_of_power_what_was_promised_is_there_and_the_rest_is_done_again(
    loss: Loss, tmp_path: Path, seed: int
) -> None:
    random_ = random.Random(seed)
    left = tmp_path / "left"
    write_survivors(loss.top, left, random_, lost=[0.0, 1.0, 0.5][seed % 3])
    after = DirectoryStore(left)
    for kind, id in loss.promised:
        assert verify(after, kind, id) == []
        assert after.is_sealed(kind, id)
    assert loss.names <= set(after.refs())
    for what, finish in FINISH.items():
        calls, digest = finish(after)
        usual_calls, usual_digest = loss.usual[what]
        assert digest == usual_digest
        assert usual_calls <= calls <= usual_calls + unsynced_lines(open_one(loss.top.names[what]))


def open_one(kind: Node) -> Node:
    """The folder of the artifact that is open."""
    [node] = [node for node in kind.names.values() if "manifest.json" not in node.names]
    return node


def copy_of(folder: Path, place: Path) -> DirectoryStore:
    shutil.copytree(folder, place)
    return DirectoryStore(place)


def finish_the_run(store: DirectoryStore) -> tuple[int, str]:
    with counted() as made:
        run = finish_run(store)
    return len(made), run.digest


def finish_the_evaluation(store: DirectoryStore) -> tuple[int, str]:
    with counted() as made:
        evaluation = finish_evaluation(store)
    return len(made), evaluation.digest


def finish_the_matches(store: DirectoryStore) -> tuple[int, str]:
    with counted() as made:
        matches = finish_matches(store)
    return len(made), matches.digest


FINISH = {"runs": finish_the_run, "evaluations": finish_the_evaluation, "matches": finish_the_matches}
