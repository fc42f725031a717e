"""A pickle is read as data: what it would import or call is a name, and is refused where it is not expected."""

from __future__ import annotations

import collections
import datetime
import io
import os
import pickle
from pathlib import Path
from typing import Any

import pytest

from evaluand.core.errors import DataError
from evaluand.core.files.inert_pickle import Array, Inert, read_inert

numpy = pytest.importorskip("numpy")


class Calls:
    """Would call a function when it is unpickled."""

    def __init__(self, function: Any, *arguments: Any) -> None:
        self.call = function, arguments

    def __reduce__(self) -> Any:
        return self.call


@pytest.mark.parametrize(
    "value",
    [
        {
            "a": [1, -1, 2**40, 1.5, True, False, None],
            "b": ("x", ("y",), (), (1, 2, 3, 4)),
            "c": [],
            "d": {},
            "é": b"ab",
        },
        [[n] for n in range(2000)],
        {str(n): n for n in range(3000)},
    ],
)
def test_plain_values_are_what_unpickling_makes(value: Any) -> None:
    assert read_inert(pickle.dumps(value, 5), []) == value


def test_an_object_is_its_name_its_arguments_and_its_state() -> None:
    inert = read_inert(pickle.dumps(collections.OrderedDict, 5), ["collections"])
    assert inert == "collections.OrderedDict"
    day = read_inert(pickle.dumps(datetime.timedelta(2), 5), ["datetime"])
    assert isinstance(day, Inert)
    assert (day.maker, day.arguments) == ("datetime.timedelta", (2, 0, 0))


def test_arrays_of_joblib_are_read_from_between_the_instructions() -> None:
    joblib = pytest.importorskip("joblib")
    first, second = numpy.arange(6.0).reshape(2, 3), numpy.array([1, -(2**40)])
    file = io.BytesIO()
    joblib.dump({"first": first, "second": second, "third": numpy.float64(0.1)}, file)
    read = read_inert(file.getvalue(), ["joblib", "numpy"])
    assert all(isinstance(read[name], Array) for name in ("first", "second"))
    assert (read["first"].shape, read["first"].numbers) == ((2, 3), (0.0, 1.0, 2.0, 3.0, 4.0, 5.0))
    assert (read["second"].numbers, read["third"]) == ((1, -(2**40)), 0.1)


@pytest.mark.parametrize("protocol", range(6))
def test_nothing_is_called(tmp_path: Path, protocol: int) -> None:
    hostile = Calls(os.mkdir, str(tmp_path / "made"))
    with pytest.raises(
        DataError, match=r"is a pickle (that names '\w+\.mkdir', which|with the instruction \w+, which)"
    ):
        read_inert(pickle.dumps(["sound", hostile], protocol), ["collections", "numpy"])
    allowed = read_inert(pickle.dumps(hostile, 5), [os.mkdir.__module__])
    assert allowed.maker.endswith(".mkdir")
    assert not [*tmp_path.iterdir()]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is no pickle, or is damaged"),
        (b"PK\x03\x04", "is no pickle, or is damaged"),
        (pickle.dumps([1, 2], 5)[:-3], "is no pickle, or is damaged"),
        (b"\x80\x05e.", "is no pickle, or is damaged"),
        (b"\x80\x05]u.", "is no pickle, or is damaged"),
        (b"\x80\x05h\x05.", "is no pickle, or is damaged"),
        (b"\x80\x05NN.", "is no pickle, or is damaged"),
        (b"\x80\x05N)R.", "is no pickle, or is damaged"),
        (b"\x80\x05N}b.", "is no pickle, or is damaged"),
        (b"\x80\x05\x8c\x01a\x93.", "is no pickle, or is damaged"),
        (b"\x80\x05NN\x93.", "is no pickle, or is damaged"),
        (b"\x80\x05})" + b"\x85\x94h\x00\x86" * 2 + b"Ns.", "is no pickle, or is damaged"),
        (b"\x80\x05\x96" + (2**62).to_bytes(8, "little") + b".", "is no pickle, or is damaged"),
        (b"\x80\x05\x82\x01.", "is a pickle with the instruction EXT1, which is not followed"),
    ],
)
def test_what_is_no_pickle_of_data_is_refused(content: bytes, message: str) -> None:
    with pytest.raises(DataError) as refused:
        read_inert(content, ["collections"])
    assert str(refused.value) == message


def test_values_that_contain_one_another_many_times_take_no_time() -> None:
    doubled = b"".join(b"\x94h" + bytes([n]) + b"\x86" for n in range(100))  # (x, x), a hundred times
    for use in (b"})" + doubled + b"Ns.", b")" + doubled + b"\x8c\x01a\x93."):  # a key, and the name of a module
        with pytest.raises(DataError, match="is no pickle, or is damaged"):
            read_inert(b"\x80\x05" + use, ["a"])


def test_an_array_that_is_not_there_takes_no_memory() -> None:
    joblib = pytest.importorskip("joblib")
    file = io.BytesIO()
    joblib.dump(numpy.zeros(3), file)
    shape, large = b"K\x03\x85", b"J\xff\xff\xff\x7f\x85"  # (3,), and the largest that four bytes say
    assert file.getvalue().count(shape) == 1
    with pytest.raises(DataError, match="is no pickle, or is damaged"):
        read_inert(file.getvalue().replace(shape, large), ["joblib", "numpy"])


def test_a_shape_that_no_file_can_hold_is_refused_at_once() -> None:
    joblib = pytest.importorskip("joblib")
    file = io.BytesIO()
    joblib.dump(numpy.arange(6.0), file)
    content = file.getvalue()
    huge = content.replace(b"K\x06\x85", b"J\xff\xff\xff\x7f\x85")
    assert huge != content
    with pytest.raises(DataError, match="damaged"):
        read_inert(huge, ["joblib", "numpy"])
