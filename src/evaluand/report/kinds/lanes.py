"""How far the work on an open artifact is."""

from __future__ import annotations

from contextlib import closing

from evaluand.report.facts.base import Facts
from evaluand.store.store import Manifest, Store


def read_lane(store: Store, manifest: Manifest, name: str, label: str, slots: int) -> Facts:
    """How many rows of a lane of its journal are done."""
    with closing(store.lane(manifest["kind"], manifest["id"], name, slots)) as lane:
        lane.refresh()
        return {"label": label, "done": lane.n_done, "total": slots}
