"""The parameters of tasks: every fault of them is reported at once, each with its place."""

from collections.abc import Iterable
from typing import Any

from evaluand.core.errors import ParameterError
from evaluand.core.parameters import parameter_faults

Place = tuple[str | int, ...]
"""Where something is among the parameters, such as `("messages", 1, "role")`."""


def check_parameters(made: Any, further: Iterable[tuple[Place, str]] = ()) -> None:
    """Raise a ParameterError where parameters break their annotations, or have further faults."""
    faults = [*(((name,), fault) for name, fault in parameter_faults(made)), *further]
    if faults:
        raise ParameterError(faults)
