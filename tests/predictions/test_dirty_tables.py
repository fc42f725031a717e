"""Tables with odd cells give the same value at every door: that of a strict reading, or a refusal.

A table is made of a number; a failure names it, and `table_of(number)` makes it again.
"""

from __future__ import annotations

import json
import random
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sklearn import metrics as sklearn
from support.commands import Folder
from support.strict_reading import Column, Unreadable, comparable, read, spell
from support.workbooks import book

from evaluand import DataError, SpecError, evaluate

Cells = list[Any]
FAST = (*range(30), 2272)  # of which the last has floats beyond 64 bits
SLOW = range(1000, 4000)
PER_TEST = 100


@dataclass(frozen=True)
class Table:
    """Columns with the roles that they have.

    Attributes:
        columns: name → cells; truth is `y`, predictions `p`, scores `s`.
        options: further arguments of `evaluate` with data.
    """

    metric: str
    columns: Mapping[str, Cells]
    options: Mapping[str, Any] = field(default_factory=dict)

    def with_cells(self, change: Callable[[Cells], Cells]) -> Table:
        return replace(self, columns={name: change(cells) for name, cells in self.columns.items()})

    @property
    def n(self) -> int:
        return len(self.columns["y"])


class Value(NamedTuple):
    """The value of a metric in a group of rows (None for all), rounded so that equal ones are equal."""

    group: str | None
    value: float | None
    n_scored: int
    low: float | None = None
    high: float | None = None


class Outcome(NamedTuple):
    values: Sequence[Value]
    notes: Sequence[str]


# Tables


def table_of(number: int) -> Table:
    """A table of odd cells."""
    draw = random.Random(number)
    n = draw.choice([8, 25, 60])
    kind = draw.choice(["labels", "labels", "labels", "numbers", "scores"])
    if kind == "numbers":
        base = [round(draw.uniform(-5, 2000), draw.choice([1, 3])) for _ in range(n)]
        write = draw.choice(MARKS) if draw.random() < 0.3 else str
        columns = {
            name: [soil(draw, cell, rate, FLOATS) for cell in map(marked(draw, write), values)]
            for name, values, rate in (
                ("y", base, draw.choice([0, 0.05])),
                ("p", [round(x + draw.gauss(0, 2), 2) for x in base], draw.choice([0, 0.05, 0.3])),
            )
        }
        table = Table("mae", columns, draw.choice([{"kind": "numeric"}, {}]))
    elif kind == "scores":
        yes, no = draw.choice([(1, 0), ("yes", "no"), (True, False), ("1", "0")])
        truth = [yes, no, *(draw.choice([yes, no]) for _ in range(n - 2))]
        scores = [round(draw.random(), 2) for _ in range(n)]
        dirty = [soil(draw, cell, draw.choice([0, 0.05, 0.1]), FLOATS) for cell in scores]
        table = Table("auc", {"y": truth, "s": dirty}, {"label": str(yes)})
    else:
        labels, dirt = draw.choice(FAMILIES)
        truth = [draw.choice(labels) for _ in range(n)]
        said = [cell if draw.random() < 0.7 else draw.choice(labels) for cell in truth]
        if draw.random() < 0.25 and not isinstance(labels[0], list):
            respelled = draw.choice(SPELLINGS)
            said = [*map(respelled, said)]
        rates = draw.choice([(0, 0), (0, 0.05), (0.05, 0.05), (0.2, 0.2), (0, 0.6)])
        columns = {
            name: [soil(draw, cell, rate, dirt) for cell in cells]
            for name, cells, rate in (("y", truth, rates[0]), ("p", said, rates[1]))
        }
        table = Table("accuracy", columns)
        if draw.random() < 0.15 and not isinstance(labels[0], list):
            table = replace(table, options={"types": {"y": "text", "p": "text"}})
    return with_roles(draw, table)


def with_roles(draw: random.Random, table: Table) -> Table:
    """The table with weights, clusters, groups or a condition on rows."""
    columns, options = dict(table.columns), dict(table.options)
    groups = [*range(4), "1.0", " 2"], ["a", "b", "A", 1], ["01", "1", "02"], [True, "true", "FALSE"], [0.5, ".5", 1]
    rate = draw.choice([0, 0, 0.05])
    if draw.random() < 0.3:
        columns["w"] = [soil(draw, draw.randint(1, 5), rate, WEIGHTS) for _ in range(table.n)]
        options["weight"] = "w"
    if draw.random() < 0.3:
        labels = draw.choice(groups)
        columns["c"] = [soil(draw, draw.choice(labels), rate, WORDS) for _ in range(table.n)]
        options["cluster"] = "c"
    if draw.random() < 0.4:
        labels = draw.choice(groups)
        columns["g"] = [soil(draw, draw.choice(labels), rate, WORDS) for _ in range(table.n)]
        options["by"] = ["g"]
    if draw.random() < 0.3:
        columns["a"] = [soil(draw, draw.randint(20, 40), rate, INTEGERS) for _ in range(table.n)]
        options["where"] = draw.choice(["a > 25", "a <= 30", "a == 30 or a < 28"])
    elif draw.random() < 0.15:
        columns["a"] = [soil(draw, draw.choice(["u", "v", "x"]), rate, WORDS) for _ in range(table.n)]
        options["where"] = draw.choice(['a == "u"', 'a != "u"', 'a in ["u", "x"]'])
    return replace(table, columns=columns, options=options)


def soil(draw: random.Random, cell: Any, rate: float, dirt: Sequence[Callable[[Any], Any]]) -> Any:
    return respell(draw.choice(dirt))(cell) if draw.random() < rate else cell


def marked(draw: random.Random, write: Callable[[float], Any]) -> Callable[[float], Any]:
    """Numbers of a column, of which few or all have a notation of their own."""
    if write is str:
        return lambda number: number
    share = draw.choice([0.1, 1.0])
    return lambda number: write(number) if draw.random() < share else number


def respell(write: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Writes all labels of a column in another way, where they have one."""

    def spelled(label: Any) -> Any:
        try:
            return write(label)
        except (ValueError, TypeError, OverflowError):
            return label

    return spelled


def constant(value: Any) -> Callable[[Any], Any]:
    return lambda cell: value


MARKS: list[Callable[[float], Any]] = [
    lambda number: f"{number}".replace(".", ","),
    lambda number: f"{number:,.3f}",
    lambda number: f"{number:,.2f}".translate(str.maketrans(",.", ".,")),
    lambda number: f"{number:.0f},500",
    lambda number: f"{number}%",
    lambda number: f"${number}" if number >= 0 else f"-${-number}",
    lambda number: f"{number:.2f} €".replace(".", ","),
    lambda number: f"{number:,.1f}".replace(",", " "),
]
SPELLINGS = [
    *map(
        respell, (str, float, int, bool, lambda n: f"{n:.1f}", lambda n: f"{n}.0", lambda n: f"0{n}", lambda n: n + 0.5)
    )
]
WORDS_FOR_MISSING = [
    None,
    None,
    "",
    "NA",
    "n/a",
    "#N/A",
    "NaN",
    "null",
    "None",
    "NIL",
    "-",
    "?",
    ".",
    " na ",
    float("nan"),
]
MISSING = [*map(constant, WORDS_FOR_MISSING)]
INTEGERS: list[Callable[[Any], Any]] = [float, str, lambda n: f"{n}.0", lambda n: f" {n} ", lambda n: f"+{n}"]
INTEGERS += [lambda n: f"{n}e0", lambda n: f"{n}.", constant("unknown"), constant("true"), *MISSING]
FLOATS: list[Callable[[Any], Any]] = [
    str,
    lambda x: f" {x}",
    constant("n.d."),
    constant("1e-3"),
    constant(".5"),
    constant(3),
    *MISSING,
]
WEIGHTS: list[Callable[[Any], Any]] = [float, str, lambda n: f"{n}.50", constant("heavy"), *MISSING[:4]]
WORDS: list[Callable[[Any], Any]] = [
    lambda cell: str(cell).upper(), lambda cell: f"{cell} ", lambda cell: str(cell).replace("ü", "u\u0308"),
    constant("1.0"), constant(1), constant("01"), constant(1.5), *MISSING,
]  # fmt: skip
BOOLEANS: list[Callable[[Any], Any]] = [
    str,
    lambda b: str(b).lower(),
    lambda b: str(b).upper(),
    int,
    constant("maybe"),
    *MISSING,
]
HUGE: list[Callable[[Any], Any]] = [
    str,
    lambda n: f"{n}",
    lambda n: type(n)(int(n) + 1),
    constant("many"),
    constant(7),
    *MISSING,
]
LISTS: list[Callable[[Any], Any]] = [
    str,
    json.dumps,
    lambda items: items[::-1],
    constant([]),
    constant(None),
    constant("NA"),
]
FAMILIES: list[tuple[list[Any], list[Callable[[Any], Any]]]] = [
    ([0, 1], INTEGERS),
    ([1, 2, 3], INTEGERS),
    ([0.5, 1.0, 2.0], FLOATS),
    (["cat", "dog", "Zürich"], WORDS),
    (["yes", "no"], WORDS),
    (["cat", "1", "1.0", 2], WORDS),
    ([True, False], BOOLEANS),
    (["01", "02", "1", "10"], WORDS),
    ([2**53, 2**53 + 1, 2**60], HUGE),
    (["9007199254740993", "9007199254740992"], HUGE),
    ([2**70, 2**70 + 1], HUGE),
    ([*range(30)], INTEGERS),
    ([*range(100, 130)], INTEGERS),
    (["1", "2", "3"], INTEGERS),
    (["true", "false", "maybe"], BOOLEANS),
    (["a\u00a0b", "a b", "a  b"], WORDS),
    ([["a"], ["a", "b"], []], LISTS),
]


# The strict value


def strict_values(table: Table) -> list[Value]:
    """The values by the strict reading; Unreadable where it has none."""
    columns, rows = _chosen(table)
    n = len(rows)
    weights: Sequence[float | None] = columns["w"].numbers() if "w" in columns else [1.0] * n
    if not n or None in weights:
        raise Unreadable
    groups = names_of(columns["g"]) if "g" in columns else []
    rows_of = [*zip(*_pairs(table.metric, columns), weights, strict=True)]
    found = [_value(table, None, rows_of)]
    for group in dict.fromkeys(groups):
        own = [row for row, name in zip(rows_of, groups, strict=True) if name == group]
        found.append(_value(table, str(group), own))
    return found


def _chosen(table: Table) -> tuple[dict[str, Column], list[int]]:
    """The rows that are scored."""
    types = table.options.get("types", {})
    columns = {name: read(cells, types.get(name)) for name, cells in table.columns.items()}
    rows = _matching(columns["a"], table.options["where"]) if "a" in columns else [*range(table.n)]
    return {name: column.take(rows) for name, column in columns.items()}, rows


def _matching(column: Column, condition: str) -> list[int]:
    if '"' not in condition:
        cells: Sequence[Any] = column.numbers()
    elif column.type == "text":
        cells = [key and key[1] for key in column.keys]
    else:
        raise Unreadable
    return [row for row, a in enumerate(cells) if a is not None and eval(condition, {"a": a})]


def names_of(column: Column) -> list[str | None]:
    """How groups are called: whole numbers without a point, unless others of the column have one."""
    known = [key for key in column.keys if key is not None]
    real = all(key[0] == "number" for key in known) and any(key[1].denominator > 1 for key in known)
    return [None if key is None else _name(*key, real=real) for key in column.keys]


def _name(type: str, value: Any, *, real: bool) -> str:
    if type == "number":
        return str(int(value)) if value.denominator == 1 and not real else repr(float(value))
    return str(value).lower() if type == "boolean" else str(value)


def _pairs(metric: str, columns: Mapping[str, Column]) -> tuple[Sequence[Any], Sequence[Any]]:
    if metric == "accuracy":
        return comparable(columns["y"], columns["p"])
    if metric == "mae":
        return columns["y"].numbers(), columns["p"].numbers()
    return names_of(columns["y"]), columns["s"].numbers()


def _value(table: Table, group: str | None, rows: Sequence[tuple[Any, Any, float]]) -> Value:
    known = [row for row in rows if row[0] is not None and row[1] is not None]
    truth, said, weights = zip(*known, strict=True) if known else ((), (), ())
    value = None
    if table.metric == "accuracy" and known:
        value = sklearn.accuracy_score([1] * len(known), [t == p for t, p, _ in known], sample_weight=weights)
    elif table.metric == "mae" and known:
        value = sklearn.mean_absolute_error(truth, said, sample_weight=weights)
    elif table.metric == "auc":
        positive = [name.lower() == table.options["label"].lower() for name in truth]
        if len({*positive}) == 2:
            value = sklearn.roc_auc_score(positive, said, sample_weight=weights)
    return Value(group, None if value is None else float(value), len(known))


# The doors


def as_given(cells: Cells) -> Cells:
    return cells


def as_one_type(cells: Cells) -> Cells:
    """The cells as a library holds them whose columns have one type: as numbers if all are, else as text."""
    known = [cell for cell in cells if spell(cell) is not None]
    types = {*map(type, known)}
    large = any(isinstance(cell, int) and abs(cell) > 2**53 for cell in known)
    if types == {int, float} and not large:
        return [None if spell(cell) is None else float(cell) for cell in cells]
    if len(types) == 1 and not (large and (len(known) < len(cells) or max(map(abs, known)) >= 2**63)):
        return [None if spell(cell) is None else cell for cell in cells]
    return as_text(cells)


def as_nullable(cells: Cells) -> Cells:
    """As one type, where pandas makes integers of floats that are all whole."""
    cells = as_one_type(cells)
    known = [cell for cell in cells if cell is not None and cell == cell]
    if not known or not all(isinstance(cell, float) and cell.is_integer() for cell in known):
        return cells
    return [None if cell is None or cell != cell else int(cell) for cell in cells]


def as_text(cells: Cells) -> Cells:
    return [*map(spell, cells)]


def as_sheet(cells: Cells) -> Cells:
    """The cells as a sheet has them, where empty text is nothing, and large integers are text."""
    large = any(isinstance(cell, int) and abs(cell) > 2**53 for cell in cells)
    cells = [spell(cell) if isinstance(cell, list) or large else cell for cell in cells]
    return [None if spell(cell) in (None, "") else cell for cell in cells]


def by_columns(make: Callable[[Table, Path], Any]) -> Callable[[Table, Path], Outcome]:
    """A door of `evaluate` with data for what a table is made to."""

    def score(table: Table, folder: Path) -> Outcome:
        options: dict[str, Any] = dict(table.options) | {"metrics": [table.metric]}
        options |= {"scores": "s"} if "s" in table.columns else {"predictions": "p"}
        scores = evaluate("y", data=make(table, folder), **options)
        rows = [value_of(row) for row in scores.facts()["metrics"]]
        return Outcome(rows, scores.notes)

    return score


def value_of(row: Mapping[str, Any]) -> Value:
    """The value in a row of facts."""
    groups = [*row["by"].values()]
    return Value(str(groups[0]) if groups else None, row["value"], row["n_scored"], row["low"], row["high"])


def by_arrays(make: Callable[[Cells], Any]) -> Callable[[Table, Path], Outcome]:
    """A door of `evaluate` for what each column is made to."""

    def score(table: Table, folder: Path) -> Outcome:
        columns = {name: make(cells) for name, cells in table.columns.items()}
        options: dict[str, Any] = {"metrics": [table.metric], "kind": table.options.get("kind")}
        options |= {"label": table.options["label"], "scores": columns["s"]} if "s" in columns else {}
        options |= {name: columns[short] for name, short in (("weight", "w"), ("cluster", "c")) if short in columns}
        options |= {"by": {"g": columns["g"]}} if "g" in columns else {}
        result = evaluate(columns["y"], columns.get("p"), **options)
        return Outcome([value_of(row) for row in result.to_dict()], result.notes)

    return score


def write_csv(delimiter: str, suffix: str) -> Callable[[Table, Path], Path]:
    """Writes a table with quotes around empty text, and nothing where a cell is missing."""

    def write(table: Table, folder: Path) -> Path:
        path = folder / f"rows.{suffix}"
        rows = [["row", *table.columns]]
        rows += [[str(number), *row] for number, row in enumerate(zip(*table.columns.values(), strict=True))]
        path.write_text("".join(delimiter.join(map(quoted, row)) + "\n" for row in rows))
        return path

    return write


def quoted(text: str | None) -> str:
    if text is None:
        return ""
    return text if text and not {*text} & {*'",\t'} else '"' + text.replace('"', '""') + '"'


def records(table: Table) -> list[dict[str, Any]]:
    return [dict(zip(table.columns, row, strict=True)) for row in zip(*table.columns.values(), strict=True)]


def without_nan(table: Table) -> Table:
    return table.with_cells(lambda cells: [None if spell(cell) is None else cell for cell in cells])


def write_lines(table: Table, folder: Path) -> Path:
    path = folder / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in records(without_nan(table))))
    return path


def write_json(table: Table, folder: Path) -> Path:
    path = folder / "rows.json"
    path.write_text(json.dumps(records(without_nan(table))))
    return path


def arrow(table: Table, folder: Path) -> pa.Table:
    return pa.table({name: pa.array(cells) for name, cells in table.columns.items()})


def write_parquet(table: Table, folder: Path) -> Path:
    path = folder / "rows.parquet"
    pq.write_table(arrow(table, folder), path)
    return path


def write_sheet(table: Table, folder: Path) -> Path:
    return book(folder / "rows.xlsx", only=[[*table.columns], *zip(*table.columns.values(), strict=True)])


def write_arff(table: Table, folder: Path) -> Path:
    path = folder / "rows.arff"
    types = {
        name: "NUMERIC" if all(c is None or type(c) in (int, float) for c in cells) else "STRING"
        for name, cells in table.columns.items()
    }
    lines = ["@RELATION rows", *(f"@ATTRIBUTE {name} {type}" for name, type in types.items()), "@DATA"]
    for row in zip(*table.columns.values(), strict=True):
        cells = zip(row, types.values(), strict=True)
        lines.append(
            ",".join("?" if c is None else str(c) if t == "NUMERIC" else _quote(str(spell(c))) for c, t in cells)
        )
    path.write_text("\n".join(lines) + "\n")
    return path


def _quote(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def frame(table: Table, dtype: Any = None) -> pd.DataFrame:
    return pd.DataFrame({name: pd.Series(cells, dtype=dtype) for name, cells in table.columns.items()})


def series(cells: Cells) -> pl.Series:
    return pl.Series(cells)


_FLAGS = {"label": "pos-label"}


def command(table: Table, folder: Path) -> Outcome:
    """The command line, by a file of JSON lines."""
    prompt = Folder(folder)
    words: list[Any] = ["score", write_lines(table, folder), "--truth", "y", "--metric", table.metric, "--json"]
    words += ["--score", "s"] if "s" in table.columns else ["--prediction", "p"]
    for name, value in table.options.items():
        if name == "types":
            words += [word for column, type in value.items() for word in ("--type", f"{column}={type}")]
            continue
        words += [f"--{_FLAGS.get(name, name)}", *(value if isinstance(value, list) else [value])]
    result = prompt.call(*words)
    if result.exit_code:
        assert result.exit_code in (1, 2), result.output
        assert "Traceback" not in result.output
        raise SpecError(result.output)
    facts = json.loads(result.stdout)
    return Outcome([value_of(row) for row in facts["metrics"]], facts["notes"])


Door = tuple[Callable[[Cells], Cells], Callable[[Table, Path], Outcome]]
DOORS: dict[str, Door] = {
    "columns": (as_given, by_columns(lambda table, _: dict(table.columns))),
    "rows": (as_given, by_columns(lambda table, _: records(table))),
    "object frame": (as_given, by_columns(lambda table, _: frame(table, object))),
    "frame": (as_one_type, by_columns(lambda table, _: frame(table))),
    "nullable frame": (as_nullable, by_columns(lambda table, _: frame(table).convert_dtypes())),
    "polars": (as_one_type, by_columns(lambda table, _: pl.DataFrame(dict(table.columns)))),
    "arrow": (as_one_type, by_columns(arrow)),
    "csv": (as_text, by_columns(write_csv(",", "csv"))),
    "tsv": (as_text, by_columns(write_csv("\t", "tsv"))),
    "jsonl": (as_given, by_columns(write_lines)),
    "json": (as_given, by_columns(write_json)),
    "parquet": (as_one_type, by_columns(write_parquet)),
    "parquet of text": (as_text, by_columns(write_parquet)),
    "sheet": (as_sheet, by_columns(write_sheet)),
    "arff": (as_one_type, by_columns(write_arff)),
    "lists": (as_given, by_arrays(list)),
    "series": (as_one_type, by_arrays(pd.Series)),
    "series of objects": (as_given, by_arrays(lambda cells: pd.Series(cells, dtype=object))),
    "series of polars": (as_one_type, by_arrays(series)),
    "arrays of arrow": (as_one_type, by_arrays(pa.array)),
}
KNOWN_BY_ARRAYS = {"kind", "label", "by", "weight", "cluster"}
OF_ARRAYS = {name for name in DOORS if "series" in name or name in ("lists", "arrays of arrow")}


def outcome(door: Callable[[Table, Path], Outcome], table: Table, folder: Path) -> Outcome | None:
    """What a door says; None if it refuses with a sentence."""
    with warnings.catch_warnings(record=True, action="always") as caught:
        try:
            values, notes = door(table, folder)
        except (SpecError, DataError):
            return None
    return Outcome(values, [*notes, *(str(each.message) for each in caught)])


# What must hold


def faults(number: int, folder: Path) -> Iterator[str]:
    """Every door that gives a table another value than the strict reading, or the right one without a note."""
    table = table_of(number)
    known: dict[Any, tuple[str, Any]] = {}
    refusing: dict[Any, dict[bool, str]] = {}
    for name, (change, door) in DOORS.items():
        if name in OF_ARRAYS and not {*table.options} <= KNOWN_BY_ARRAYS:
            continue
        seen = table.with_cells(change)
        given = outcome(door, seen, folder)
        refusing.setdefault(change, {}).setdefault(given is None, name)
        if given is None:
            continue
        at = f"table {number}, {name}"
        try:
            strict = {value.group: value for value in strict_values(seen)}
        except Unreadable:
            yield f"{at}: {given.values[0]} of cells that say nothing certain; {given.notes}"
            continue
        for value in given.values:
            expected = strict.get(value.group, Value(value.group, None, 0))
            if not same(value, expected):
                yield f"{at}: {value} is not {expected}; {given.notes}"
        for column in due(seen):
            titles = (column, ARGUMENTS.get(column, column))
            if not any(repr(title) in note for note in given.notes for title in titles):
                yield f"{at}: no note on {column!r}; {given.notes}"
        ends = sorted(((value.group, rounded(value.low), rounded(value.high)) for value in given.values), key=str)
        first, others = known.setdefault(tuple(strict.values()), (name, ends))
        if others != ends:
            yield f"{at}: the intervals {ends} are not those of {first}: {others}"
    for answers in refusing.values():
        if len(answers) > 1:
            yield f"table {number}: {answers[True]} refuses what {answers[False]} reads"


ARGUMENTS = {"y": "truth", "p": "predictions", "s": "scores", "w": "weight", "c": "cluster"}


def due(table: Table) -> set[str]:
    """The columns of which a note must say something; with a condition its own, since odd rows may not match."""
    types = table.options.get("types", {})
    columns = {name for name, cells in table.columns.items() if name not in types and read(cells).is_due}
    return columns & {"a"} if "where" in table.options else columns


def same(value: Value, expected: Value) -> bool:
    if value.value is None or expected.value is None:
        return value.value == expected.value or value.n_scored == expected.n_scored == 0
    return value.n_scored == expected.n_scored and value.value == pytest.approx(expected.value, rel=1e-9, abs=1e-12)


def rounded(number: float | None) -> float | None:
    return None if number is None else round(number, 9)


def changes(number: int) -> Iterator[str]:
    """What changes a value or an interval of a table, although its rows say the same."""
    table = table_of(number)
    door = DOORS["columns"][1]
    given = outcome(door, table, Path())
    if given is None:
        return
    for name, change in (("order", reordered), ("names", renamed), ("files", None)):
        other = (
            outcome(lambda table, _: joined(table), table, Path())
            if change is None
            else outcome(door, change(table), Path())
        )
        if other is None or unordered(other) != unordered(given):
            yield f"{number} {name}: {other and other.values} instead of {given.values}"


def joined(table: Table) -> Outcome:
    """The value where truth and predictions are in two files, whose ids are the same numbers in other spellings."""
    draw = random.Random(7)
    said = "s" if "s" in table.columns else "p"
    ids = draw.sample(range(100), table.n)
    truth = {"id": ids, **{name: cells for name, cells in table.columns.items() if name != said}}
    spelled = [draw.choice([str, float, lambda number: f" {number}.0", lambda number: number])(each) for each in ids]
    order = draw.sample(range(table.n), table.n)
    others = {"id": [spelled[row] for row in order], said: [table.columns[said][row] for row in order]}
    options = dict(table.options) | {"metrics": [table.metric], "id": "id"}
    options |= {"scores": "s"} if said == "s" else {"predictions": "p"}
    scores = evaluate("y", data=[others], truth_file=truth, **options)
    return Outcome([*map(value_of, scores.facts()["metrics"])], scores.notes)


def unordered(outcome: Outcome) -> list[Any]:
    return sorted(
        [(group, n, *map(rounded, ends)) for group, value, n, *ends in outcome.values for ends in [(value, *ends)]],
        key=str,
    )


def reordered(table: Table) -> Table:
    order = random.Random(7).sample(range(table.n), table.n)
    return table.with_cells(lambda cells: [cells[row] for row in order])


def renamed(table: Table) -> Table:
    """The table with other names of its classes, which are those of the strict reading of the rows that are scored."""
    if table.metric != "accuracy":
        return table
    columns, rows = _chosen(table)
    names: dict[Any, str] = {}
    renamed: dict[str, list[str | None]] = {name: [None] * table.n for name in "yp"}
    for name, keys in zip("yp", comparable(columns["y"], columns["p"]), strict=True):
        for row, key in zip(rows, keys, strict=True):
            renamed[name][row] = None if key is None else names.setdefault(key, f"class {len(names)}")
    return replace(table, columns={**table.columns, **renamed})


@pytest.mark.parametrize("number", FAST)
def test_odd_cells_have_the_value_of_the_strict_reading_at_every_door(number: int, tmp_path: Path) -> None:
    assert [*faults(number, tmp_path)] == []


@pytest.mark.parametrize("number", FAST)
def test_neither_order_nor_names_nor_files_change_a_value_or_an_interval(number: int) -> None:
    assert [*changes(number)] == []


def test_the_command_has_the_values_of_the_function(tmp_path: Path) -> None:
    for number in FAST[:3]:
        table = table_of(number)
        given, called = (outcome(door, table, tmp_path) for door in (DOORS["jsonl"][1], command))
        assert (given and unordered(given)) == (called and unordered(called))


def test_most_tables_are_read() -> None:
    given = [outcome(DOORS["columns"][1], table_of(number), Path()) for number in FAST]
    assert sum(each is not None for each in given) > 0.8 * len(FAST)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(SLOW.start, SLOW.stop, PER_TEST))
def test_many_tables_have_the_value_of_the_strict_reading(first: int, tmp_path: Path) -> None:
    numbers = range(first, first + PER_TEST)
    assert [fault for number in numbers for fault in (*faults(number, tmp_path), *changes(number))] == []
