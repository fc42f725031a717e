"""The journals of a bucket without a catalog: there are none, so nothing can be opened for work there."""

from __future__ import annotations

from typing import NoReturn

from evaluand.core.errors import Fault, SpecError
from evaluand.store.addresses import Address
from evaluand.store.folder import Folder
from evaluand.store.journal import WorkLog
from evaluand.store.journals import Journals
from evaluand.store.manifests import OPEN, SEALED


class NoJournals(Journals):
    """Refuses open work, which needs files that grow, and leases that drivers see.

    Args:
        top: the folder of the store.
        address: of the store.
    """

    def __init__(self, top: Folder, address: Address) -> None:
        self._top, self._address = top, address

    def make(self, kind: str, id: str) -> None:
        self._refuse()

    def exists(self, kind: str, id: str) -> bool:
        return True  # wherever it is

    def lane(self, kind: str, id: str, name: str, slots: int | None) -> WorkLog:
        self._refuse()

    def find_damage(self, kind: str, id: str) -> list[Fault]:
        return []

    def is_worked_on(self, kind: str, id: str, recent: float) -> bool:
        sealed, opened = (self._top / kind / id).states([SEALED, OPEN])
        return sealed is None and opened is not None  # who has its catalog knows

    def remove(self, kind: str, id: str, folder: Folder) -> None:
        """There is none."""

    def _refuse(self) -> NoReturn:
        raise SpecError(
            f"{self._address}: a bucket alone takes finished artifacts only, because drivers would not see each other's"
            f" calls; for runs and evaluations, by one driver or several, add ?catalog=postgresql://HOST/DATABASE, or"
            " work in a folder and `evaluand copy` it"
        )
