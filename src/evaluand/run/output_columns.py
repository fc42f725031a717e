"""The columns of a file that recorded tasks take their outputs from."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from evaluand.core.selector import Selector

RECORDED: Final = "recorded"


def places_in_rows(task: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """(parameter, path in a row) of everything that a recorded task reads from a row.

    Args:
        task: the parameters of the task.
    """
    response = task.get("response")
    for part in response.values() if isinstance(response, Mapping) else [response]:
        yield from [("response", part)] if isinstance(part, str) else []
    readings = ((name, task.get(name)) for name in ("score", "decision"))
    columns = [(name, entry.get("column")) for name, entry in readings if isinstance(entry, Mapping)]
    columns += [(name, task.get(name)) for name in ("key", "replication", "fold_key", "error")]
    yield from ((name, place) for name, place in columns if isinstance(place, str))


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
    for name, place in places_in_rows(task) if task.get("kind") == RECORDED else ():
        steps = Selector(place).steps
        if name not in ("key", "error") and steps and isinstance(steps[0], str):
            yield steps[0]
