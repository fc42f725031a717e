"""The values of a rubric's variables, which are what a judge sees of a row.

`input`, `output` (`first` and `second` in a comparison) and `expected` are those of the row; any other name is a column
of the example. If the input has several columns, those that are separate variables are left out of `input`. A judge may
name paths for variables: `context: output.passages` reads from the output, `context: __record__.app.search.rets` what
was recorded of the call.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from evaluand.core.errors import DataError, ParameterError, SpecError, described, nearest
from evaluand.core.selector import Selector
from evaluand.data.dataset import Example
from evaluand.evaluation.feedback.selector_checks import may_see_times
from evaluand.judges.scale import Fault

OF_RESPONSE: Final = ("output", "first", "second")
OF_SOURCE: Final = ("__record__", "__app__", "__example__")
"""The first steps of paths that read what was recorded."""


class Variables:
    """Reads the values of variables from rows.

    Args:
        names: the variables.
        paths: name → path of those that are neither of the row nor a column.

    Raises:
        ParameterError: lists the names that the rubric does not have, and the paths that are none.

    Example:
        >>> variables = Variables(["input", "context"], {"context": "output.passages"})
        >>> variables.read({"input": "Who wrote Emma?", "output": {"passages": ["By Jane Austen."]}})
        {'input': 'Who wrote Emma?', 'context': ['By Jane Austen.']}
    """

    def __init__(self, names: Sequence[str], paths: Mapping[str, str]) -> None:
        self.names = tuple(names)
        if faults := list(_faults(names, paths)):
            raise ParameterError(faults)
        self.paths = dict(paths)
        self._selectors = {name: Selector(path) for name, path in paths.items()}

    @property
    def reads_source(self) -> bool:
        """Whether it reads what was recorded of the call."""
        return any(str(path.steps[0]) in OF_SOURCE for path in self._selectors.values())

    @property
    def sees_times(self) -> bool:
        """Whether it may read times, which differ between two calls with equal results."""
        recorded = [path for path in self._selectors.values() if str(path.steps[0]) in OF_SOURCE]
        return any(map(may_see_times, recorded))

    def read(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """The values; None where there is none.

        Args:
            row: by name: parts of the row, columns of the example and, if they are read, parts of the source.
        """
        return {name: self._value(name, row) for name in self.names}

    def missing_columns(self, row: Mapping[str, Any]) -> list[str]:
        """The variables that an example does not have, of those that are known before there is a response."""
        early = [name for name in self.names if not self._is_late(name)]
        return [name for name, value in self.read(row).items() if name in early and value is None]

    def _value(self, name: str, row: Mapping[str, Any]) -> Any:
        path = self._selectors.get(name)
        if path is None:
            return self._input(row.get(name)) if name == "input" else row.get(name)
        try:
            found = path.select(row)
        except DataError:
            return None
        return found[0] if path.singular and len(found) == 1 else found or None

    def _input(self, value: Any) -> Any:
        """The input without the columns that are separate variables; if one column is left, its value."""
        if not isinstance(value, Mapping):
            return value
        rest = {name: part for name, part in value.items() if name not in self.names and part is not None}
        return next(iter(rest.values())) if len(rest) == 1 else rest or None

    def _is_late(self, name: str) -> bool:
        path = self._selectors.get(name)
        return (name if path is None else str(path.steps[0])) in (*OF_RESPONSE, *OF_SOURCE)


def columns_of(example: Example) -> dict[str, Any]:
    """The columns of an example by name."""
    return merge_columns(example.input, example.metadata, example.attributes)


def early_row(example: Mapping[str, Any]) -> dict[str, Any]:
    """The part of a row that is known before there is a response.

    Args:
        example: as `Scorer.check_example` receives it.
    """
    columns = merge_columns(example.get("input"), example.get("metadata"), example.get("attributes"))
    return {**columns, "input": example.get("input"), "expected": example.get("expected")}


def merge_columns(input: Any, *others: Mapping[str, Any] | None) -> dict[str, Any]:
    """The columns of several parts of an example."""
    columns = dict(input) if isinstance(input, Mapping) else {}
    for part in others:
        columns |= part or {}
    return columns


def _faults(names: Sequence[str], paths: Mapping[str, str]) -> Iterator[Fault]:
    for name, path in paths.items():
        if name not in names:
            yield (name,), f"is no variable of the rubric{nearest(name, names)}; it reads {', '.join(names)}"
        elif not isinstance(path, str):
            yield (name,), f"is {described(path)}; give a path, such as output.passages"
        else:
            try:
                Selector(path)
            except SpecError as error:
                yield (name,), str(error)
