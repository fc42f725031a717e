"""How often properties and simulations that take long are tried."""

import os

from hypothesis import settings

FEW_EXAMPLES = max(settings().max_examples // 8, 5)
"""Of properties that put each example to every metric, by the quick or the thorough profile of `conftest.py`."""

_PORTION = float(os.environ.get("SIMULATIONS", "0.2"))


def simulations(quoted: int) -> int:
    """How many of the simulations that the documentation quotes are made; all with `SIMULATIONS=1`."""
    return round(_PORTION * quoted)
