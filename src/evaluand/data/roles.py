"""Roles: what the columns of a dataset are for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

from evaluand.core import registry
from evaluand.core.errors import SpecError
from evaluand.core.key_columns import INDEX
from evaluand.data.sources import missing_column


class RoleError(SpecError):
    """Roles that cannot be given.

    Attributes:
        faults: (role, what is wrong with it).
    """

    def __init__(self, faults: Sequence[tuple[str, str]]) -> None:
        self.faults = tuple(faults)
        super().__init__("\n".join(f"{role}: {message}" for role, message in faults))


@dataclass(frozen=True)
class Roles:
    """What the columns are for.

    Attributes:
        input: the column a task sees, or several, which it sees as a mapping.
        expected: the column that holds the right answer; or a mapping target → column; or None.
        attributes: columns of the example to group by.
        id: the column that names the examples.
        weight: the column with each example's weight.
        cluster: the column that tells which examples belong together (for intervals).
        metadata: columns kept for people and tasks' bookkeeping.
    """

    input: str | tuple[str, ...]
    expected: str | Mapping[str, str] | None = None
    attributes: tuple[str, ...] = ()
    id: str | None = None
    weight: str | None = None
    cluster: str | None = None
    metadata: tuple[str, ...] = ()

    @classmethod
    def over(cls, columns: Sequence[str], **given: Any) -> Roles:
        """The roles over some columns, with what is not given filled in by name.

        Without `input`, the column `input` is the input, else every column that has no other role. Without
        `expected` and `id`, the columns of these names are.

        Raises:
            RoleError: there is no such role, or it names a column that is not there; all of them at once.
        """
        cls._check_given(given)
        wanted = {name: value for name, value in given.items() if value is not None}
        for name in ("expected", "id", "input"):
            if name not in wanted and name in columns:
                wanted[name] = name
        for name in ("attributes", "metadata"):
            value = wanted.get(name, ())
            wanted[name] = (value,) if isinstance(value, str) else tuple(value)
        expected = wanted.get("expected")
        if isinstance(expected, Sequence) and not isinstance(expected, str):
            wanted["expected"] = {name: name for name in expected}
        if "input" not in wanted:
            taken = {c for name, value in wanted.items() for c in _columns_of(value)}
            wanted["input"] = tuple(c for c in columns if c not in taken and c != INDEX)
        elif not isinstance(wanted["input"], str):
            wanted["input"] = tuple(wanted["input"])
        roles = cls(**wanted)
        roles._check(columns)
        return roles

    @property
    def columns(self) -> tuple[str, ...]:
        """Every column that has a role, once."""
        return tuple(dict.fromkeys(c for value in asdict(self).values() for c in _columns_of(value)))

    @classmethod
    def _check_given(cls, given: Mapping[str, Any]) -> None:
        roles = [field.name for field in fields(cls)]
        faults = []
        for role, value in given.items():
            if role not in roles:
                told = f"no role is called so{registry.nearest(role, roles)}; there are {', '.join(roles)}"
                faults.append((role, told))
            elif not (value is None or isinstance(value, str) or _is_of_names(value, role)):
                faults.append((role, f"is {value!r}; give {_WANTED.get(role, 'the name of a column')}"))
        if faults:
            raise RoleError(faults)

    def _check(self, columns: Sequence[str]) -> None:
        faults = [
            (role, missing_column(c, columns))
            for role, value in asdict(self).items()
            for c in _columns_of(value)
            if c not in columns
        ]
        if not self.input:
            faults.append(("input", "no column is left for the task to see; name one"))
        if faults:
            raise RoleError(faults)


_LIST = "the name of a column, or a list of names"
_WANTED = {
    "input": _LIST,
    "expected": f"{_LIST}, or a mapping target: column",
    "attributes": _LIST,
    "metadata": _LIST,
}


def _is_of_names(value: Any, role: str) -> bool:
    if isinstance(value, Mapping):
        return role == "expected" and all(isinstance(name, str) for pair in value.items() for name in pair)
    return role in _WANTED and isinstance(value, list | tuple) and all(isinstance(name, str) for name in value)


def _columns_of(value: Any) -> tuple[str, ...]:
    if value is None:
        return ()
    if isinstance(value, str):
        return (value,)
    return tuple(value.values()) if isinstance(value, Mapping) else tuple(value)


def roles_from(stored: Mapping[str, Any]) -> Roles:
    """The roles as a manifest has them."""
    roles: dict[str, Any] = {n: tuple(value) if isinstance(value, list) else value for n, value in stored.items()}
    return Roles(**roles)
