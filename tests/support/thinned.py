"""Cases of which `make test` tries some and `make test-slow` the others."""

from collections.abc import Iterable
from typing import Any

import pytest


def thinned(names: str | tuple[str, ...], cases: Iterable[Any], every: int, **more: Any) -> pytest.MarkDecorator:
    """Parametrizes a test whose cases take long: but for the first of `every` cases, they are slow ones."""
    is_single = isinstance(names, str) and "," not in names
    made = [case if n % every == 0 else _slow(case, is_single) for n, case in enumerate(cases)]
    return pytest.mark.parametrize(names, made, **more)


def _slow(case: Any, is_single: bool) -> Any:
    if hasattr(case, "marks"):
        return case._replace(marks=(*case.marks, pytest.mark.slow))
    return pytest.param(*([case] if is_single else case), marks=pytest.mark.slow)
