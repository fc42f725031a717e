"""Paths for roles: a role names a column, or a path to a value inside one, such as `gold.answers[0]`.

A path becomes a column whose name is the path, computed while rows are read, so that everything else sees only columns.
A column of exactly this name comes first. A path of names and indices selects one value, and null where there is none;
any other path (with `*`, slices, filters, `..`) selects the list of its values.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final

import orjson
import pyarrow as pa

from evaluand.core.errors import DataError, SpecError, plural, warn
from evaluand.core.key_columns import INDEX
from evaluand.core.selector import Selector
from evaluand.core.selector.steps import Collect, Filter, Step, Union, quoted
from evaluand.data.records import ColumnGuess, build_batch
from evaluand.data.roles import RoleError, Roles
from evaluand.data.source import DataSource, missing_column, read_column
from evaluand.store import tables

_INDEX: Final = re.compile(r"\.(\d+)(?=[.\[]|$)")


@dataclass(frozen=True)
class ColumnPath:
    """A path into a column.

    Attributes:
        role: the role it is written for.
        name: the name of the new column.
        selector: the path, beginning with the column.
    """

    role: str
    name: str
    selector: Selector

    @property
    def column(self) -> str:
        return str(self.selector.steps[0])

    @cached_property
    def is_one_value(self) -> bool:
        """Whether it selects one value: only names and indices follow the last `.collect()`."""
        steps = self.selector.steps
        last = max((place for place, step in enumerate(steps) if isinstance(step, Collect)), default=-1)
        return all(isinstance(step, str | int | Collect) for step in steps[max(last, 0) :])

    def read(self, batch: pa.RecordBatch) -> list[Any]:
        """The value of each row."""
        columns = batch.schema.names if any(map(_reads_root, self.selector.steps)) else [self.column]
        values = {name: [_as_json(value) for value in read_column(batch, name)] for name in columns}
        rows = (dict(zip(columns, row, strict=True)) for row in zip(*values.values(), strict=True))
        return [self.select(row) for row in rows]

    def select(self, row: Mapping[str, Any]) -> Any:
        """The value of a row: None where there is none."""
        if row[self.column] is None:
            return None
        found = self.selector.find(row)
        if self.is_one_value:
            return found[0] if found else None
        return found


def read_paths(source: DataSource, declared: Mapping[str, Any]) -> tuple[DataSource, dict[str, Any]]:
    """The source with a column for each path, and the roles with names of columns only.

    Args:
        declared: the roles as in `Roles.over`.

    Raises:
        RoleError: a path leads nowhere in any row, or its name is taken; lists every fault.
    """
    columns = [name for name in source.schema.names if name != INDEX]
    Roles.check_values(declared)
    paths: dict[str, ColumnPath] = {}
    faults: list[tuple[str, str]] = []
    roles = dict(declared)
    for role, value in declared.items():
        named = dict(_named_paths(role, value))
        for name, text in named.items():
            try:
                path = find_path(role, name, text, columns, source.schema)
            except SpecError as error:
                faults.append((role, str(error)))
                continue
            if path is not None and paths.setdefault(name, path).selector != path.selector:
                faults.append((role, f"{name!r} is the name of two paths; rename one"))
        if isinstance(value, Mapping) and role != "expected":
            roles[role] = [*named]
    if paths and roles.get("input") is None and "input" not in columns:  # a task must not see an expected value
        used = {name for role, value in roles.items() for name, _ in _named_paths(role, value)}
        used |= {path.column for path in paths.values()} | {"expected", "id"}
        roles["input"] = [name for name in columns if name not in used]
    for name, path in paths.items():
        named_so = [role for role, value in roles.items() for other, _ in _named_paths(role, value) if other == name]
        if name in columns and len(named_so) > 1:
            message = f"the name {name!r} is a column and the name of the path {path.selector.text}; rename one"
            faults.append((path.role, message))
    if faults:
        raise RoleError(faults)
    return (_add_columns(source, [*paths.values()]) if paths else source), roles


def add_paths(source: DataSource, names: Iterable[tuple[str, str]]) -> DataSource:
    """The source with a column for each name that is a path into one of its columns; other names are left alone.

    Args:
        names: (role, name), as in messages.

    Raises:
        RoleError: a path leads nowhere in any row.
    """
    columns = source.schema.names
    paths: dict[str, ColumnPath] = {}
    for role, name in names:
        with suppress(SpecError):  # no path into a column of this source
            path = find_path(role, name, name, columns, source.schema)
            if path is not None:
                paths.setdefault(name, path)
    return _add_columns(source, [*paths.values()]) if paths else source


def find_path(role: str, name: str, text: str, columns: Sequence[str], schema: pa.Schema) -> ColumnPath | None:
    """The path that a role's value is; None if it is the name of a column, or no path.

    Raises:
        SpecError: it is a path, but there is no such column, or no path where one is needed.
    """
    path = _parse(text)
    if text in columns:
        inner = schema.field(str(path.steps[0])) if path and len(path.steps) > 1 and path.steps[0] in columns else None
        if path and inner is not None and (pa.types.is_nested(inner.type) or tables.is_json(inner)):
            warn(
                f"{role}: {text!r} is read as the column of this name, not as a path into the column"
                f" {str(path.steps[0])!r}; for the path write $.{text.removeprefix('.')}"
            )
        return None if name == text else ColumnPath(role, name, Selector.of(text))
    if path is None and _quoted_prefix(text, columns):
        Selector(text)  # which raises, with where the path is wrong
    if path is None or not (len(path.steps) > 1 or text.startswith("$")):
        return None
    first = path.steps[0]
    if not isinstance(first, str):
        raise SpecError(f"{text!r} does not begin with a column; write its name first, as in {columns[0]}[0]")
    if first not in columns:
        whole = _quoted_prefix(text, columns)
        raise SpecError(f"{text}: {f'write {whole}' if whole else missing_column(str(first), columns)}")
    return ColumnPath(role, name, path)


def _named_paths(role: str, value: Any) -> Iterator[tuple[str, str]]:
    """The name and the text of each column or path of a role."""
    if isinstance(value, str):
        yield value, value
    elif isinstance(value, Mapping):
        yield from ((text, text) if role == "expected" else (name, text) for name, text in value.items())
    elif value is not None:
        yield from ((text, text) for text in value)


def _parse(text: str) -> Selector | None:
    try:
        return Selector(text) if text else None
    except SpecError:
        return None


def _quoted_prefix(text: str, columns: Iterable[str]) -> str:
    """The path in which the longest column that the text begins with is in quotes; empty if there is none."""
    fit = [name for name in columns if text.startswith((f"{name}.", f"{name}["))]
    longest = max(fit, key=len, default="")
    return f"[{quoted(longest)}]{text[len(longest) :]}" if longest else ""


def _add_columns(source: DataSource, paths: Sequence[ColumnPath]) -> DataSource:
    """The source with columns for paths, which replace columns of the same name."""
    names = [path.name for path in paths]
    stored = [field for field in source.schema if field.name not in names]
    added = _infer_fields(source, paths)
    schema = pa.schema([*stored, *added])

    def batches() -> Iterator[pa.RecordBatch]:
        for batch in source.batches():
            values = [path.read(batch) for path in paths]
            rows = [dict(zip(names, row, strict=True)) for row in zip(*values, strict=True)]
            new = build_batch(rows, pa.schema(added))
            columns = [*(batch.column(field.name) for field in stored), *new.columns]
            yield pa.RecordBatch.from_arrays(columns, schema=schema)

    return replace(source, schema=schema, batches=batches, objects=None, texts=None)


def _infer_fields(source: DataSource, paths: Sequence[ColumnPath]) -> list[pa.Field]:
    """The field of each path, from the values of all rows.

    Raises:
        RoleError: a path selects nothing in any row.
    """
    seen = [(path, ColumnGuess(), list[int]()) for path in paths]  # with the rows in which it selects nothing
    total = 0
    for batch in source.batches():
        for path, guess, missing in seen:
            for place, value in enumerate(path.read(batch), total):
                guess.see(value)
                if value is None or value == []:
                    missing.append(place)
        total += batch.num_rows
    empty = [path for path, _, missing in seen if total and len(missing) == total]
    if empty:
        raise RoleError([(path.role, _describe_empty(path, source, total)) for path in empty])
    for path, _, missing in seen:
        if missing and path.role == "input":
            count = f"{len(missing):,} of {plural(total, 'row')}"
            warn(f"{path.role}: {path.selector.text} selects nothing in {count}, first {source.where(missing[0])}")
    return [guess.field(path.name) for path, guess, _ in seen]


def _describe_empty(path: ColumnPath, source: DataSource, total: int) -> str:
    """Why a path selects nothing, by the first row that has something in its column."""
    message = f"{path.selector.text} selects nothing in any of {plural(total, 'row')}"
    row = 0
    for batch in source.batches():
        for value in read_column(batch, path.column):
            if value is not None:
                return f"{message}; in {source.where(row)}, {_describe_missing(path, {path.column: _as_json(value)})}"
            row += 1
    return f"{message}: the column {path.column!r} is empty"


def _describe_missing(path: ColumnPath, row: Mapping[str, Any]) -> str:
    indexed = _INDEX.sub(r"[\1]", path.selector.text)
    selector = _parse(indexed)
    if indexed != path.selector.text and selector is not None and selector.find(row):
        return f"a list has elements by number: write {indexed}"
    try:
        path.selector.get(row)
    except DataError as error:
        return str(error).removeprefix(f"{path.selector.text}: ")
    return "the value is null"


def _reads_root(step: Step) -> bool:
    """Whether a filter of a step reads other columns, by a path from `$`."""
    if isinstance(step, Union):
        return any(map(_reads_root, step.parts))
    return isinstance(step, Filter) and "$" in step.text


def _as_json(value: Any) -> Any:
    """The objects and lists in a text of JSON, such as a cell of a CSV file; any other value unchanged."""
    if isinstance(value, str) and value.lstrip()[:1] in ("{", "["):
        try:
            return orjson.loads(value)
        except orjson.JSONDecodeError:
            return value
    return value


def suggest_paths(name: str, values: Iterable[Any], fits: Any, most: int = 5) -> list[str]:
    """The paths from a column to values that fit, by its first values: shortest first.

    Args:
        name: the column, or a path into one.
        values: some values of the column.
        fits: a function that says whether a value fits.
        most: how many paths to return.

    Example:
        >>> suggest_paths("gold", [{"answers": ["a", "b"], "n": 2}], lambda value: isinstance(value, str))
        ['gold.answers[0]']
    """
    found: dict[str, int] = {}
    for value in values:
        for path, inner in _iterate_places(_as_json(value)):
            if fits(inner):
                found.setdefault(path, len(path))
    return [name + path for path in sorted(found, key=lambda path: found[path])[:most]]


_DEEPEST_SUGGESTION = 4
_MOST_SUGGESTED = 200


def _iterate_places(value: Any, path: str = "", depth: int = 0) -> Iterator[tuple[str, Any]]:
    """The values inside a value with their paths; of a list the list itself and the first element."""
    if depth:
        yield path, value
    if depth == _DEEPEST_SUGGESTION:
        return
    if isinstance(value, Mapping):
        for key, inner in [*value.items()][:_MOST_SUGGESTED]:
            step = f".{key}" if key.isidentifier() else f"[{orjson.dumps(key).decode()}]"
            yield from _iterate_places(inner, path + step, depth + 1)
    elif isinstance(value, list | tuple) and value:
        yield from _iterate_places(value[0], f"{path}[0]", depth + 1)
