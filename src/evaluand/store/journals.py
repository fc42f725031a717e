"""What a store needs of the journals of its open artifacts, wherever they are: in files, or in a database."""

from __future__ import annotations

import math
from typing import Final, Protocol

from evaluand.core.errors import Fault
from evaluand.store.folder import Folder
from evaluand.store.journal import WorkLog
from evaluand.store.lease_state import Worker

BINDING: Final = "journals.json"
"""The file of a store whose journals are in a database: its identity, and the store's address there."""


class Journals(Protocol):
    """The journals of a store."""

    def make(self, kind: str, id: str) -> None:
        """Makes the journal of an artifact that is about to be opened."""

    def exists(self, kind: str, id: str) -> bool:
        """Whether an artifact has a journal."""

    def lane(self, kind: str, id: str, name: str, slots: int | None) -> WorkLog:
        """A log of an artifact, see `Store.lane`; nothing is written before its first line or lease."""

    def find_damage(self, kind: str, id: str) -> list[Fault]:
        """The damaged lines of a journal."""

    def is_worked_on(self, kind: str, id: str, recent: float) -> bool:
        """Whether a worker that may live has a part of an artifact.

        Args:
            recent: workers of which only time shows whether they live count if one was active in so many seconds.
        """

    def distant_workers(self, kind: str, id: str) -> dict[tuple[str, str], Worker]:
        """The workers of which only the time that this process waits shows whether they live, by log and segment."""
        return {}

    def idle(self, kind: str, id: str) -> float:
        """Seconds since the last change that no file of the artifact shows; infinite if there was none."""
        return math.inf

    def remove(self, kind: str, id: str, folder: Folder) -> None:
        """Removes a journal, except what evaluand did not make.

        Args:
            folder: that of the artifact, which may have another name by now.
        """

    def orphans(self) -> dict[tuple[str, str], int]:
        """The (kind, id) of the journals that no file of an artifact shows, with their sizes in bytes."""
        return {}
