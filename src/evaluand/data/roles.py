"""Roles: the purpose of each column of a dataset."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

from evaluand.core.errors import SpecError, nearest
from evaluand.core.key_columns import INDEX
from evaluand.data.sources import missing_column


class RoleError(SpecError):
    """Roles are wrong.

    Attributes:
        faults: (role, what is wrong with it).
    """

    def __init__(self, faults: Sequence[tuple[str, str]]) -> None:
        self.faults = tuple(faults)
        super().__init__("\n".join(f"{role}: {message}" for role, message in faults))


@dataclass(frozen=True)
class Roles:
    """The purpose of each column.

    A dataset also reads paths into columns, such as `gold.answers[0]`; each becomes a column of this name.

    Attributes:
        input: the column a task sees, or several, which it sees as a mapping.
        expected: the column with the right answer; or a mapping target → column; or None.
        attributes: columns to group examples by.
        id: the column with the examples' ids.
        weight: the column with the examples' weights.
        cluster: the column whose equal values mark examples that belong together (for intervals).
        metadata: columns for people and for the bookkeeping of tasks.
    """

    input: str | tuple[str, ...]
    expected: str | Mapping[str, str] | None = None
    attributes: tuple[str, ...] = ()
    id: str | None = None
    weight: str | None = None
    cluster: str | None = None
    metadata: tuple[str, ...] = ()

    @classmethod
    def over(cls, columns: Sequence[str], **declared: Any) -> Roles:
        """The roles of some columns, with defaults for those that are not declared.

        `input`, `expected` and `id` default to the columns of these names; without a column `input`, every column
        without another role is the input.

        Raises:
            RoleError: a role is unknown or names an unknown column; lists every fault.
        """
        cls.check_values(declared)
        roles = {name: value for name, value in declared.items() if value is not None}
        for name in ("expected", "id", "input"):
            if name not in roles and name in columns:
                roles[name] = name
        for name in ("attributes", "metadata"):
            value = roles.get(name, ())
            roles[name] = (value,) if isinstance(value, str) else tuple(value)
        expected = roles.get("expected")
        if isinstance(expected, Sequence) and not isinstance(expected, str):
            roles["expected"] = {name: name for name in expected}
        if "input" not in roles:
            used = {c for value in roles.values() for c in _list_columns(value)}
            roles["input"] = tuple(c for c in columns if c not in used and c != INDEX)
        elif not isinstance(roles["input"], str):
            roles["input"] = tuple(roles["input"])
        result = cls(**roles)
        result._check_columns(columns)
        return result

    @property
    def columns(self) -> tuple[str, ...]:
        """Every column with a role, once."""
        return tuple(dict.fromkeys(c for value in asdict(self).values() for c in _list_columns(value)))

    @classmethod
    def check_values(cls, declared: Mapping[str, Any]) -> None:
        """Refuse roles that are unknown, or whose value has a wrong type.

        Raises:
            RoleError: lists every fault.
        """
        roles = [field.name for field in fields(cls)]
        faults = []
        for role, value in declared.items():
            if role not in roles:
                message = f"there is no such role{nearest(role, roles)}; the roles are {', '.join(roles)}"
                faults.append((role, message))
            elif not (value is None or isinstance(value, str) or (role in _ALLOWED and _are_column_names(value))):
                faults.append((role, f"is {value!r}; give {_ALLOWED.get(role, 'the name of a column')}"))
        if faults:
            raise RoleError(faults)

    def _check_columns(self, columns: Sequence[str]) -> None:
        faults = [
            (role, missing_column(c, columns))
            for role, value in asdict(self).items()
            for c in _list_columns(value)
            if c not in columns
        ]
        if not self.input:
            faults.append(("input", "every column has another role; name the input column"))
        if faults:
            raise RoleError(faults)


_LIST = "the name of a column, a list of names, or a mapping name: column"
_ALLOWED = {
    "input": _LIST,
    "expected": "the name of a column, or a list of names, or a mapping target: column",
    "attributes": _LIST,
    "metadata": _LIST,
}


def _are_column_names(value: Any) -> bool:
    names = [name for pair in value.items() for name in pair] if isinstance(value, Mapping) else value
    return isinstance(names, list | tuple) and all(isinstance(name, str) for name in names)


def _list_columns(value: Any) -> tuple[str, ...]:
    if value is None:
        return ()
    if isinstance(value, str):
        return (value,)
    return tuple(value.values()) if isinstance(value, Mapping) else tuple(value)


def read_roles(stored: Mapping[str, Any]) -> Roles:
    """The roles in a manifest."""
    roles: dict[str, Any] = {n: tuple(value) if isinstance(value, list) else value for n, value in stored.items()}
    return Roles(**roles)
