from __future__ import annotations

from collections.abc import Iterator

import pytest
from support.nursery import Nursery


@pytest.fixture(scope="session")
def nursery(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nursery]:
    """Forks processes that run, evaluate, judge and import."""
    one = Nursery(tmp_path_factory.mktemp("nursery"))
    yield one
    one.close()
