"""The columns of a file that recorded tasks take their outputs from."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from evaluand.core.selector import Selector

RECORDED: Final = "recorded"


def output_columns(task: Mapping[str, Any]) -> Iterator[str]:
    """The columns that a recorded task reads as outputs, and as the numbers of repeats and folds.

    Args:
        task: the kind and parameters of a task, as in its identity; a task of another kind has none.

    Raises:
        SpecError: a path cannot be read.

    Example:
        >>> [*output_columns({"kind": "recorded", "response": {"prediction": "said", "confidence": "p.top"}})]
        ['said', 'p']
    """
    if task.get("kind") != RECORDED:
        return
    response = task.get("response")
    places = [response] if isinstance(response, str) else [*response.values()] if isinstance(response, Mapping) else []
    readings = [entry.get("column") for entry in map(task.get, ("score", "decision")) if isinstance(entry, Mapping)]
    for place in (*places, *readings, task.get("replication"), task.get("fold_key")):
        if isinstance(place, str) and (steps := Selector(place).steps) and isinstance(steps[0], str):
            yield steps[0]
