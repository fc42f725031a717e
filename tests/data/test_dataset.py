"""Datasets: roles, indices, faults with their rows, identity by values, copies in stores, pieces and streams."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd  # type: ignore[import-untyped]
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, strategies as st

from evaluand.core import identity
from evaluand.core.errors import DataError, SpecError
from evaluand.data import DataNote
from evaluand.data.dataset import Dataset, Example, ExampleStream
from evaluand.data.ranges import Ranges
from evaluand.data.roles import Roles
from evaluand.store.directory import DirectoryStore
from evaluand.store.store import MemoryStore, Store
from evaluand.store.tables import BATCH_ROWS

STORES = ["memory", "directory"]


@pytest.fixture(params=STORES)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    return MemoryStore() if request.param == "memory" else DirectoryStore(tmp_path / "store")


def file(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text)
    return path


def indexed(*indices: Any) -> list[dict[str, Any]]:
    return [{"_index_": index, "input": f"row {row}"} for row, index in enumerate(indices)]


def faults(refused: pytest.ExceptionInfo[DataError]) -> list[tuple[str, str]]:
    return [(fault.where, fault.message) for fault in refused.value.faults]


def contents(examples: Iterable[Example]) -> list[bytes]:
    """Everything about examples as text, in which NaN is equal to itself."""
    return [identity.encode(example) for example in examples]


# Roles


def test_columns_named_for_a_role_have_it_and_others_are_left_out() -> None:
    [example] = Dataset.from_rows([{"id": "e1", "input": "q", "expected": "a", "note": "n"}])
    assert (example.id, example.input, example.expected) == ("e1", "q", "a")
    assert (example.attributes, example.metadata, example.weight, example.cluster) == ({}, {}, None, None)


def test_without_an_input_every_column_that_has_no_other_role_is_input() -> None:
    data = Dataset.from_rows(
        [{"a": 1, "answer": "x", "race": "r", "b": 2, "w": 0.5, "who": "p", "note": "n", "_index_": 7}],
        expected="answer",
        attributes="race",
        weight="w",
        cluster="who",
        metadata=["note"],
    )
    [example] = data
    assert data.roles == Roles(("a", "b"), "answer", ("race",), None, "w", "who", ("note",))
    assert example.input == {"a": 1, "b": 2}
    assert (example.index, example.id, example.expected) == (7, "7", "x")
    assert (example.attributes, example.metadata) == ({"race": "r"}, {"note": "n"})
    assert (example.weight, example.cluster) == (0.5, "p")


@pytest.mark.parametrize(
    ("given", "seen"),
    [("a", 1), (["a"], {"a": 1}), (("b", "a"), {"b": 2, "a": 1}), (["a", "expected"], {"a": 1, "expected": 3})],
)
def test_one_input_column_is_seen_as_its_value_and_a_list_of_columns_as_a_mapping(given: Any, seen: Any) -> None:
    [example] = Dataset.from_rows([{"a": 1, "b": 2, "expected": 3}], input=given)
    assert example.input == seen
    assert example.expected == 3


@pytest.mark.parametrize("expected", [["x", "y"], {"x": "x", "y": "y"}])
def test_several_expected_columns_are_targets(expected: Any) -> None:
    [example] = Dataset.from_rows([{"input": 0, "x": 1, "y": None}], expected=expected)
    assert example.expected == {"x": 1, "y": None}


def test_targets_may_be_named_otherwise_than_their_columns() -> None:
    [example] = Dataset.from_rows([{"input": 0, "truth": 1}], expected={"label": "truth"})
    assert example.expected == {"label": 1}


def test_roles_that_name_no_column_are_refused_all_at_once_with_the_nearest() -> None:
    with pytest.raises(SpecError) as refused:
        Dataset.from_rows([{"question": 1, "answer": 2}], input="questoin", expected="anser", attributes=["race"])
    assert str(refused.value).splitlines() == [
        "input: no column is called 'questoin' (did you mean 'question'?); there are question, answer",
        "expected: no column is called 'anser' (did you mean 'answer'?); there are question, answer",
        "attributes: no column is called 'race'; there are question, answer",
    ]


def test_a_role_that_does_not_exist_is_refused_with_the_nearest() -> None:
    with pytest.raises(SpecError) as refused:
        Dataset.from_rows([{"a": 1}], inputs="a", wieght="a")
    listed = "input, expected, attributes, id, weight, cluster, metadata"
    assert str(refused.value).splitlines() == [
        f"inputs: there is no such role (did you mean 'input'?); the roles are {listed}",
        f"wieght: there is no such role (did you mean 'weight'?); the roles are {listed}",
    ]


@pytest.mark.parametrize(
    ("role", "value", "wanted"),
    [
        ("input", 5, "the name of a column, a list of names, or a mapping name: column"),
        ("input", {"a": 1}, "the name of a column, a list of names, or a mapping name: column"),
        ("attributes", ["a", 1], "the name of a column, a list of names, or a mapping name: column"),
        ("metadata", True, "the name of a column, a list of names, or a mapping name: column"),
        ("expected", {"a": 1}, "the name of a column, or a list of names, or a mapping target: column"),
        ("weight", ["a"], "the name of a column"),
        ("id", 5, "the name of a column"),
    ],
)
def test_a_role_of_a_wrong_type_is_refused_with_what_to_give(role: str, value: Any, wanted: str) -> None:
    with pytest.raises(SpecError) as refused:
        Dataset.from_rows([{"a": 1}], **{role: value})
    assert str(refused.value) == f"{role}: is {value!r}; give {wanted}"


def test_a_long_list_of_columns_is_cut() -> None:
    with pytest.raises(SpecError, match=r"there are c0, .*, c19 and 5 more$"):
        Dataset.from_rows([{f"c{i}": 1 for i in range(25)}], input="x")


@pytest.mark.parametrize(
    ("make", "wanted"),
    [
        (Dataset.from_rows, "give a list of mappings, one for each row, not a number"),
        (Dataset.from_file, "give the path of a file, not a number"),
        (Dataset.from_arrow, "give a pyarrow.Table, or anything with __arrow_c_stream__, not a number"),
        (Dataset.from_pandas, "give a pandas.DataFrame, not a number"),
    ],
)
def test_what_a_dataset_cannot_be_made_of_is_refused(make: Any, wanted: str) -> None:
    with pytest.raises(SpecError, match=wanted):
        make(5)


def test_a_dataset_without_a_column_for_the_task_is_refused() -> None:
    with pytest.raises(SpecError, match="every column has another role"):
        Dataset.from_rows([{"expected": 1, "id": "a"}])


@pytest.mark.parametrize(
    ("name", "text"), [("a.jsonl", ""), ("a.json", ""), ("a.json", "[]"), ("a.csv", ""), ("a.parquet", "")]
)
def test_a_file_without_a_row_or_column_is_refused_alike_in_every_format(tmp_path: Path, name: str, text: str) -> None:
    path = file(tmp_path, name, text)
    if name == "a.parquet":
        pq.write_table(pa.table({}), path)
    with pytest.raises(DataError) as refused:
        Dataset.from_file(path)
    assert str(refused.value) == f"{path}: there are no columns, and so no examples"


@pytest.mark.parametrize("name", ["_replication_", "_x_", "__"])
def test_reserved_column_names_are_refused(name: str) -> None:
    with pytest.raises(DataError, match="reserved; rename them") as refused:
        Dataset.from_rows([{"input": 1, name: 2, "_private": 3, "public_": 4}])
    assert repr(name) in str(refused.value)
    assert "_private" not in str(refused.value)


def test_a_column_that_occurs_twice_is_renamed_with_a_note() -> None:
    table = pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["input", "input"])
    with pytest.warns(DataNote, match="table: the second column 'input' is read as 'input_2'"):
        data = Dataset.from_arrow(table)
    assert data.schema.names == ["_index_", "input", "input_2"]


# Indices


def test_rows_without_an_index_are_numbered() -> None:
    rows = 2 * BATCH_ROWS + 3
    data = Dataset.from_rows([{"input": i} for i in range(rows)])
    assert [(e.index, e.position, e.id) for e in data][-2:] == [
        (rows - 2, rows - 2, str(rows - 2)),
        (rows - 1, rows - 1, str(rows - 1)),
    ]
    assert list(data.indices) == list(range(rows))
    assert len(data) == rows


def test_examples_are_in_the_order_of_their_index() -> None:
    data = Dataset.from_rows(indexed(30, -5, 10**12, 0))
    assert [(e.index, e.position, e.input) for e in data] == [
        (-5, 0, "row 1"),
        (0, 1, "row 3"),
        (30, 2, "row 0"),
        (10**12, 3, "row 2"),
    ]
    assert list(data.indices) == [-5, 0, 30, 10**12]


def test_an_index_in_the_middle_of_the_columns_and_of_another_width_is_found() -> None:
    table = pa.table({"input": ["a", "b"], "_index_": pa.array([4, 9], pa.uint8()), "expected": ["A", "B"]})
    assert [(e.index, e.input, e.expected) for e in Dataset.from_arrow(table)] == [(4, "a", "A"), (9, "b", "B")]


def test_indices_that_occur_twice_are_named_with_the_first_of_them_in_the_order_of_the_rows() -> None:
    with pytest.raises(DataError) as refused:
        Dataset.from_rows(indexed(5, 5, 1, 1, 5))
    remedy = "give each example its own"
    assert faults(refused) == [
        ("rows[1]", f"_index_ 5 occurs twice (first at rows[0]); {remedy}"),
        ("rows[3]", f"_index_ 1 occurs twice (first at rows[2]); {remedy}"),
        ("rows[4]", f"_index_ 5 occurs twice (first at rows[0]); {remedy}"),
    ]


def test_missing_indices_are_named_by_row(tmp_path: Path) -> None:
    path = file(tmp_path, "a.jsonl", '{"_index_":1,"input":"a"}\n\n{"input":"b"}\n{"_index_":null,"input":"c"}\n')
    with pytest.raises(DataError) as refused:
        Dataset.from_file(path)
    assert [where for where, _ in faults(refused)] == [f"{path}:3", f"{path}:4"]
    assert all("_index_ is missing" in message for _, message in faults(refused))


def test_missing_and_repeated_indices_are_reported_at_once() -> None:
    with pytest.raises(DataError) as refused:
        Dataset.from_rows(indexed(None, 5, 5, 0))
    assert {where for where, _ in faults(refused)} == {"rows[0]", "rows[2]"}


@pytest.mark.parametrize("wrong", ["x", 1.5, True, [1], 2**63])
def test_an_index_that_is_not_an_integer_is_named_by_row(wrong: Any) -> None:
    with pytest.raises(DataError, match="_index_") as refused:
        Dataset.from_rows(indexed(0, wrong, 2))
    assert [where for where, _ in faults(refused)] == ["rows[1]"]


def test_an_index_that_is_not_an_integer_is_named_by_line_of_a_csv_file(tmp_path: Path) -> None:
    path = file(tmp_path, "a.csv", "_index_,input\n0,a\none,b\n2,c\n3x,d\n")
    with pytest.raises(DataError, match="_index_") as refused:
        Dataset.from_file(path)
    assert [where for where, _ in faults(refused)] == [f"{path}:3", f"{path}:5"]


def test_an_index_too_large_is_refused() -> None:
    table = pa.table({"_index_": pa.array([1, 2**63 + 5], pa.uint64()), "input": ["a", "b"]})
    with pytest.raises(DataError, match="_index_"):
        Dataset.from_arrow(table)


# Ids and weights


def test_ids_that_are_empty_or_occur_twice_are_named_by_row() -> None:
    names = ["a", "a", None, "", 1, "1", "b", "a"]
    with pytest.raises(DataError) as refused:
        Dataset.from_rows([{"input": 0, "name": name} for name in names], id="name")
    empty = "the id is empty; give each example a unique id"
    assert faults(refused) == [
        ("rows[1]", "the id 'a' occurs twice (first at rows[0])"),
        ("rows[2]", empty),
        ("rows[3]", empty),
        ("rows[5]", "the id '1' occurs twice (first at rows[4])"),
        ("rows[7]", "the id 'a' occurs twice (first at rows[0])"),
    ]


@pytest.mark.parametrize("wrong", [-1, -0.5, None, "2", float("nan"), float("inf"), True])
def test_weights_are_numbers_from_zero_up(wrong: Any) -> None:
    with pytest.raises(DataError, match="is not a finite number of at least 0") as refused:
        Dataset.from_rows([{"input": 0, "w": weight} for weight in (0, 2.5, wrong, 1)], weight="w")
    assert [where for where, _ in faults(refused)] == ["rows[2]"]


def test_faults_of_rows_that_were_sorted_name_the_place_in_the_file(tmp_path: Path) -> None:
    lines = ['{"_index_":9,"input":1,"w":1}', "", '{"_index_":3,"input":2,"w":-1}', '{"_index_":6,"input":3,"w":"x"}']
    path = file(tmp_path, "a.jsonl", "\n".join(lines))
    with pytest.raises(DataError) as refused:
        Dataset.from_file(path, weight="w")
    assert sorted(where for where, _ in faults(refused)) == [f"{path}:3", f"{path}:4"]


def test_faults_in_rows_below_line_feeds_name_the_line_that_an_editor_shows(tmp_path: Path) -> None:
    path = file(tmp_path, "a.csv", 'id,input\na,"one\ntwo\n\nfour"\n\nb,x\na,y\n')
    with pytest.raises(DataError) as refused:
        Dataset.from_file(path)
    assert faults(refused) == [(f"{path}:8", f"the id 'a' occurs twice (first at {path}:2)")]


def test_a_csv_file_may_part_its_cells_otherwise(tmp_path: Path) -> None:
    path = file(tmp_path, "a.csv", "input;expected\na,b;1\n")
    [example] = Dataset.from_file(path, delimiter=";")
    assert (example.input, example.expected) == ("a,b", 1)


@pytest.mark.parametrize("name", [None, "who"])
def test_ids_are_yielded_in_order_without_the_examples(name: str | None) -> None:
    data = Dataset.from_rows(
        [{"_index_": 7, "input": "x", "who": "b"}, {"_index_": 3, "input": "y", "who": 5}], id=name
    )
    assert list(data.ids()) == [example.id for example in data]


# Values

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)
COLUMNS = ("input", "expected", "group", "note")


def values(rows: list[tuple[Any, ...]]) -> list[dict[str, Any]]:
    return [dict(zip(COLUMNS, row, strict=True)) for row in rows]


def data_of(rows: list[tuple[Any, ...]]) -> Dataset:
    return Dataset.from_rows(values(rows), attributes="group", metadata="note")


def as_numbers(value: Any) -> Any:
    """Integers as fractions where they are such, as a column with both takes them."""
    if isinstance(value, list):
        return [as_numbers(item) for item in value]
    return float(value) if type(value) is int and abs(value) <= 2**53 else value


@given(st.lists(st.tuples(*[VALUES] * len(COLUMNS)), min_size=1, max_size=5))
def test_examples_hold_the_values_of_their_rows(rows: list[tuple[Any, ...]]) -> None:
    data = data_of(rows)
    for row, example in zip(rows, data, strict=True):
        held = (example.input, example.expected, example.attributes["group"], example.metadata["note"])
        for value, again in zip(row, held, strict=True):
            assert identity.encode(as_numbers(value)) == identity.encode(as_numbers(again))


@given(st.lists(st.tuples(*[VALUES] * len(COLUMNS)), min_size=1, max_size=5))
def test_a_stored_dataset_holds_the_same_examples(rows: list[tuple[Any, ...]]) -> None:
    data = data_of(rows)
    stored = data.save(MemoryStore())
    assert contents(stored) == contents(data)
    assert stored.compute_digest() == stored.digest == data.digest


def test_an_empty_object_an_empty_list_nothing_and_not_a_number_stay_distinct(store: Store) -> None:
    cells: list[Any] = [{}, [], None, float("nan"), "", 0, False, {"a": {}}, [None], [{}]]
    data = Dataset.from_rows([{"input": i, "expected": cell} for i, cell in enumerate(cells)]).save(store)
    assert [identity.encode(e.expected) for e in data] == [identity.encode(cell) for cell in cells]


def test_a_frame_gives_its_rows_without_its_own_index() -> None:
    frame = pd.DataFrame(
        {
            "input": pd.Categorical(["a", "b", "a"]),
            "expected": pd.array([1, None, 3], dtype="Int64"),
            "score": [0.5, float("nan"), 1.0],
            "ok": [True, False, True],
        },
        index=[7, 8, 9],
    )
    data = Dataset.from_pandas(frame, attributes=["score", "ok"])
    assert [(e.index, e.input, e.expected) for e in data] == [(0, "a", 1), (1, "b", None), (2, "a", 3)]
    assert [e.attributes for e in data] == [
        {"score": 0.5, "ok": True},
        {"score": None, "ok": False},
        {"score": 1.0, "ok": True},
    ]


def test_a_frame_may_mix_types_in_a_column() -> None:
    frame = pd.DataFrame({"input": ["a", 1, 2.5, [1], {"a": 1}, True]})
    assert [e.input for e in Dataset.from_pandas(frame)] == ["a", 1, 2.5, [1], {"a": 1}, True]


@pytest.mark.parametrize("missing", [None, float("nan"), pd.NA, pd.NaT])
def test_what_a_frame_counts_as_missing_is_missing_among_any_other_values(missing: Any) -> None:
    for others in (["a", "b"], [1, "b"]):
        frame = pd.DataFrame({"input": [*others, missing]}, dtype=object)
        assert [e.input for e in Dataset.from_pandas(frame)] == [*others, None]


# Identity


def formats(folder: Path) -> list[Dataset]:
    rows = [
        {"input": f"é{i}", "expected": i, "x": i / 4, "ok": i % 2 == 0, "gap": None if i % 3 else "g"} for i in range(9)
    ]
    table = pa.Table.from_pylist(rows)
    pq.write_table(table, folder / "a.parquet", row_group_size=2)
    lines = "\n".join(identity.encode(row).decode() for row in rows)
    cells = [",".join("" if cell is None else str(cell) for cell in row.values()) for row in rows]
    sources = [
        Dataset.from_file(folder / "a.parquet", attributes=["x", "ok", "gap"]),
        Dataset.from_file(file(folder, "a.jsonl", lines), attributes=["x", "ok", "gap"]),
        Dataset.from_file(file(folder, "a.csv", "\n".join([",".join(rows[0]), *cells])), attributes=["x", "ok", "gap"]),
        Dataset.from_arrow(table, attributes=["x", "ok", "gap"]),
        Dataset.from_pandas(pd.DataFrame(rows), attributes=["x", "ok", "gap"]),
    ]
    return [Dataset.from_rows(rows, attributes=["x", "ok", "gap"]), *sources]


def test_the_same_values_are_the_same_dataset_from_whatever_format(tmp_path: Path) -> None:
    made = formats(tmp_path)
    assert len({data.digest for data in made}) == 1
    assert len({data.id for data in made}) == 1
    assert all(contents(data) == contents(made[0]) for data in made)


@given(st.lists(st.integers(1, 7), min_size=1, max_size=6))
def test_the_digest_does_not_depend_on_how_rows_are_chunked(sizes: list[int]) -> None:
    rows = [{"input": {"i": i}, "expected": f"a{i}"} for i in range(sum(sizes))]
    whole = Dataset.from_rows(rows)
    table, start, chunks = pa.Table.from_batches(whole.columns(whole.schema.names)), 0, []
    for size in sizes:
        chunks.append(table.slice(start, size))
        start += size
    assert Dataset.from_arrow(pa.concat_tables(chunks)).digest == whole.digest


@pytest.mark.parametrize(
    "kind", [pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int8(), pa.string())]
)
def test_the_digest_does_not_depend_on_the_type_that_holds_a_value(kind: pa.DataType) -> None:
    table = pa.table({"input": pa.array(["a", None, "é"], kind), "expected": pa.array([1, 2, 3], pa.uint8())})
    plain = Dataset.from_rows([{"input": t, "expected": n} for t, n in (("a", 1), (None, 2), ("é", 3))])
    assert Dataset.from_arrow(table).digest == plain.digest


def test_the_digest_of_an_example_is_that_of_its_values_under_their_roles() -> None:
    rows = [{"_index_": 5, "q": "a", "e": 1, "g": True, "w": 2, "c": "p", "m": "n", "i": "one"}]
    roles = {
        "input": "q",
        "expected": "e",
        "attributes": "g",
        "weight": "w",
        "cluster": "c",
        "metadata": "m",
        "id": "i",
    }
    [example] = Dataset.from_rows(rows, **roles)
    assert example.digest == identity.digest(("a", 1, {"g": True}, 2, "p", {"m": "n"}, "one"))
    assert example.input_digest == identity.digest("a")


def test_every_value_index_and_role_counts_and_a_column_without_a_role_does_not() -> None:
    row = {"_index_": 0, "input": "a", "expected": "b", "g": "c", "note": "n"}
    base = Dataset.from_rows([row], attributes="g")
    changed = [
        Dataset.from_rows([row | {name: value}], attributes="g")
        for name, value in (("_index_", 1), ("input", "A"), ("expected", "B"), ("g", None))
    ]
    assert len({base.id, *(data.id for data in changed)}) == 5
    assert Dataset.from_rows([row], metadata="g").id != base.id
    assert Dataset.from_rows([row | {"note": "other"}], attributes="g").id == base.id
    assert Dataset.from_rows([row], attributes="g", name="named").id == base.id
    [one], [other] = base, changed[0]
    assert one.digest == other.digest


def test_rows_in_another_order_are_the_same_dataset_where_they_bear_their_index() -> None:
    rows = indexed(0, 1, 2, 3)
    assert Dataset.from_rows(rows[::-1]).id == Dataset.from_rows(rows).id


def test_a_column_of_digests_in_a_file_is_not_believed(tmp_path: Path) -> None:
    Dataset.from_rows([{"input": "a", "expected": "b"}]).save(DirectoryStore(tmp_path))
    [path] = tmp_path.glob("datasets/*/*.parquet")
    table = pq.read_table(path)
    changed = table.set_column(table.schema.get_field_index("input"), "input", pa.array(["changed"]))
    pq.write_table(changed, tmp_path / "changed.parquet")
    [example] = Dataset.from_file(tmp_path / "changed.parquet")
    assert example.input == "changed"
    assert example.digest == next(iter(Dataset.from_rows([{"input": "changed", "expected": "b"}]))).digest


# Stores


def test_a_dataset_is_read_from_a_store_as_it_was_saved(store: Store, tmp_path: Path) -> None:
    for data in formats(tmp_path):
        stored = data.save(store)
        assert contents(stored) == contents(data)
        assert (stored.id, stored.digest, stored.roles, list(stored.indices)) == (
            data.id,
            data.digest,
            data.roles,
            list(data.indices),
        )
        assert stored.compute_digest() == data.digest
    assert store.ids("datasets") == [data.id]


def test_targets_and_odd_names_survive_a_store(store: Store) -> None:
    rows: list[dict[str, Any]] = [
        {"$q": 1, "a/b": {"x": 1}, "ü": "é", "g\n": "x"},
        {"$q": 2, "a/b": None, "ü": None, "g\n": None},
    ]
    data = Dataset.from_rows(rows, input=["$q"], expected={"one": "a/b", "$two": "ü"}, attributes="g\n", name="naïve")
    stored = data.save(store)
    assert contents(stored) == contents(data)
    assert (stored.name, stored.roles, stored.id) == ("naïve", data.roles, data.id)
    assert stored.compute_digest() == data.digest


def test_saving_again_and_saving_what_is_stored_change_nothing(store: Store) -> None:
    data = Dataset.from_rows(indexed(0, 1))
    stored = data.save(store)
    assert stored.save(store) is stored
    assert data.save(store).id == stored.id
    assert store.manifest("datasets", stored.id)["counts"] == {"examples": 2}


def test_a_stored_dataset_can_be_saved_to_another_store(store: Store) -> None:
    first = Dataset.from_rows(indexed(3, 4)).save(MemoryStore())
    assert contents(first.save(store)) == contents(first)


def test_a_dataset_without_rows_can_be_saved_and_read(store: Store, tmp_path: Path) -> None:
    empty = pa.table({"input": pa.array([], pa.string())})
    for data in (Dataset.from_arrow(empty), Dataset.from_file(file(tmp_path, "a.csv", "input\n"))):
        stored = data.save(store)
        assert (list(stored), len(stored), stored.id) == ([], 0, data.id)


# Pieces and streams


@pytest.fixture(scope="module")
def long() -> Dataset:
    """Batches of uneven sizes."""
    sizes = (1, 3, BATCH_ROWS, 5, 2)
    parts = [pa.table({"input": pa.array([i] * size, pa.int64())}) for i, size in enumerate(sizes)]
    table = pa.concat_tables(parts)
    return Dataset.from_arrow(table.set_column(0, "input", pa.array(range(10, 10 + table.num_rows))))


@pytest.mark.parametrize(
    ("start", "stop"),
    [(0, None), (0, 0), (0, 1), (1, 4), (3, 5), (4000, 4105), (4106, 4107), (4107, None), (9, 3), (0, 9999)],
)
def test_a_slice_holds_the_examples_of_the_whole(long: Dataset, start: int, stop: int | None) -> None:
    whole = [(i, i, 10 + i) for i in range(len(long))]
    assert [(e.position, e.index, e.input) for e in long.examples(start, stop)] == whole[start:stop]


@given(st.lists(st.tuples(st.integers(0, 12), st.integers(0, 12)), max_size=8))
def test_a_stream_gives_any_pieces_in_any_order(pieces: list[tuple[int, int]]) -> None:
    data = Dataset.from_arrow(pa.Table.from_batches([pa.record_batch({"input": [i]}) for i in range(10)]))
    stream = ExampleStream(data)
    for start, stop in pieces:
        assert [e.input for e in stream.take(start, stop)] == list(range(10))[start:stop]


def test_a_stream_that_has_ended_or_failed_begins_anew() -> None:
    reads = []

    def read() -> Iterator[pa.RecordBatch]:
        reads.append(1)
        yield pa.record_batch({"x": [0, 1]})
        if len(reads) == 1:
            raise OSError("the disk is gone for a moment")
        yield pa.record_batch({"x": [2, 3]})

    rows = Ranges(read)

    def take(start: int, stop: int) -> list[int]:
        return [value for _, part in rows.take(start, stop) for value in part.column("x").to_pylist()]

    with pytest.raises(OSError, match="gone"):
        take(0, 3)
    assert take(2, 4) == [2, 3]
    assert take(3, 9) == [3]
    assert take(3, 4) == [3]
    assert take(1, 3) == [1, 2]


def test_a_stream_that_is_left_in_the_middle_goes_on_from_there_or_anywhere() -> None:
    data = Dataset.from_rows([{"input": i} for i in range(10)])
    stream = ExampleStream(data)
    taken = stream.take(2, 8)
    assert [next(taken).input, next(taken).input] == [2, 3]
    assert [e.input for e in stream.take(4, 6)] == [4, 5]
    assert [e.input for e in stream.take(0, 2)] == [0, 1]


def test_two_readers_do_not_disturb_each_other(long: Dataset) -> None:
    pairs = zip(long, long.examples(1), strict=False)
    assert all(one.position + 1 == other.position for one, other in pairs)


# What a fresh interpreter held at most while it went through a long dataset, in MB: by Arrow, and all in all beyond
# what a short one takes. Arrow's own allocators keep what they free; the system's gives it back.
PASS = """
import resource, sys
import pyarrow as pa
from evaluand.data import DataNote
from evaluand.data.dataset import Dataset
def through(path):
    data = Dataset.from_file(path, format=sys.argv[3])
    rows = sum(batch.num_rows for batch in data.columns(["input", "expected"]))
    return rows, [e.expected for e in data.examples(len(data) - 1)], resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
_, _, before = through(sys.argv[1])
rows, last, after = through(sys.argv[2])
print(rows, len(last), pa.default_memory_pool().max_memory() >> 20, (after - before) >> 10)
"""


def write_many(path: Path, kind: str, times: int) -> Path:
    row = {"input": "x" * 500, "expected": "y" * 100}
    if kind == "jsonl":
        path.write_bytes((identity.encode(row) + b"\n") * times)
        return path
    schema = pa.schema([(name, pa.string()) for name in row])
    batch = pa.RecordBatch.from_pylist([row] * 10_000, schema)
    with pq.ParquetWriter(path, schema, compression="none", use_dictionary=False) as writer:
        for _ in range(times // 10_000):
            writer.write_batch(batch)
    return path


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["jsonl", "parquet"])
def test_a_file_of_many_rows_is_read_as_a_stream_and_never_held(tmp_path: Path, kind: str) -> None:
    short, long = write_many(tmp_path / "short", kind, 10_000), write_many(tmp_path / "long", kind, 200_000)
    command = [sys.executable, "-c", PASS, str(short), str(long), kind]
    environment = os.environ | {"ARROW_DEFAULT_MEMORY_POOL": "system"}
    result = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    rows, last, arrow, process = map(int, result.stdout.split())
    assert (rows, last) == (200_000, 1)
    assert arrow < 40  # held as Arrow, the rows would take 120
    assert process < 100  # held as Python objects, 170


@pytest.mark.parametrize("name", ["a.jsonl", "a.csv"])
def test_a_file_that_changes_after_it_was_opened_is_refused(tmp_path: Path, name: str) -> None:
    line = '{"input": "a"}\n' if name == "a.jsonl" else "a\n"
    path = tmp_path / name
    path.write_text(("" if name == "a.jsonl" else "input\n") + line)
    data = Dataset.from_file(path)
    path.write_text(path.read_text() + line)
    with pytest.raises(DataError, match="the file has changed since it was opened"):
        list(data)
